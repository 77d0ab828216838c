/* Finds the sockets that have datagrams to read, so that an idle socket does not cost a system call in every duty cycle.
 * Spec: 04 §4.4.
 *
 * Sender and receiver each have a poller of their own. It takes only sockets that the kernel can watch (udp_ops.pollable_fd).
 * When there are few sockets, or one that can't be watched, the agent reads them all. Thread rule: the agent's; a socket is
 * removed before its owner closes it. */
#ifndef ASI_DRIVER_NET_UDP_POLLER_H
#define ASI_DRIVER_NET_UDP_POLLER_H

#include "driver/net/udp_ops.h"

#define ASI_UDP_POLLER_BATCH 64

typedef struct asi_udp_poller
{
    bool is_open;
    int epoll_fd;
    int32_t socket_count;     /* number of sockets added */
    int32_t unwatched_count;  /* those of them that can't be watched */
} asi_udp_poller;

/* Without epoll in the kernel, no socket is watched. */
void asi_udp_poller_open(asi_udp_poller *poller);
void asi_udp_poller_close(asi_udp_poller *poller); /* no effect on a zeroed one */
/* `tag`: the value that poll returns for the socket. */
void asi_udp_poller_add(asi_udp_poller *poller, const asi_udp_ops *ops, asi_udp_socket *socket, void *tag);
void asi_udp_poller_remove(asi_udp_poller *poller, const asi_udp_ops *ops, asi_udp_socket *socket);
/* False: read every socket instead. */
bool asi_udp_poller_is_worth_it(const asi_udp_poller *poller);
/* Returns the tags of sockets that have datagrams, at most ASI_UDP_POLLER_BATCH; the next call returns the others. */
int32_t asi_udp_poller_poll(const asi_udp_poller *poller, void **tags);

#endif
