/* Which of many sockets have something to read: what keeps idle ones from costing a system call each in every duty cycle.
 * Spec: 04 §4.4.
 *
 * Called by sender and receiver, each with a poller of its own. Only sockets that the kernel can watch are taken
 * (udp_ops.pollable_fd); as long as there are few, or one that can't be watched, the agent reads them all.
 * Thread rule: the agent's; a socket is removed before its owner closes it. */
#ifndef ASI_DRIVER_NET_UDP_POLLER_H
#define ASI_DRIVER_NET_UDP_POLLER_H

#include "driver/net/udp_ops.h"

#define ASI_UDP_POLLER_BATCH 64

typedef struct asi_udp_poller
{
    bool is_open;
    int epoll_fd;
    int32_t socket_count;     /* all that were added */
    int32_t unwatched_count;  /* of these, those that can't be watched */
} asi_udp_poller;

/* Where the kernel gives no epoll, no socket is watched. */
void asi_udp_poller_open(asi_udp_poller *poller);
void asi_udp_poller_close(asi_udp_poller *poller); /* harmless on a zeroed one */
/* `tag`: what poll tells of it. */
void asi_udp_poller_add(asi_udp_poller *poller, const asi_udp_ops *ops, asi_udp_socket *socket, void *tag);
void asi_udp_poller_remove(asi_udp_poller *poller, const asi_udp_ops *ops, asi_udp_socket *socket);
/* False: read every socket. */
bool asi_udp_poller_is_worth_it(const asi_udp_poller *poller);
/* Tags of sockets with something to read, at most ASI_UDP_POLLER_BATCH; the others' turn comes next time. */
int32_t asi_udp_poller_poll(const asi_udp_poller *poller, void **tags);

#endif
