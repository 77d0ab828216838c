/* Sends and receives datagrams on one kernel socket, many per call. Spec: 04 §4.4.
 *
 * Called by udp_socket.c, which owns the sockets. Where the kernel can, it splits and joins: a run of datagrams of equal length
 * that are contiguous in memory goes out as one send (UDP_SEGMENT), and datagrams of one flow come in as one read (UDP_GRO). The
 * wire format is the same. Where a kernel, a device or a route refuses, each datagram is sent alone. Thread rule: of the
 * socket. */
#ifndef ASI_DRIVER_NET_UDP_BATCH_H
#define ASI_DRIVER_NET_UDP_BATCH_H

#include "driver/net/udp_ops.h"

#define ASI_UDP_NO_FD (-1)

/* One socket, except for connected multicast senders: they receive the group's status messages on a second one. */
struct asi_udp_socket
{
    int receive_fd;
    int send_fd;
    bool has_receive_timestamps;
    bool is_coalescing;
    int sndbuf_length;
    int32_t segment_limit; /* longest datagram in a run; 0: no runs. Lowered when a run is refused */
};

/* Call after open: detects the kernel's support for runs. */
void asi_udp_batch_probe(struct asi_udp_socket *socket, bool may_coalesce);

/* As udp_ops. */
as_result asi_udp_batch_send(
    void *context, asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count, int32_t *sent) AS_MUST_USE;
as_result asi_udp_batch_receive(
    void *context, asi_udp_socket *socket, asi_incoming *datagrams, int32_t count, int32_t *received) AS_MUST_USE;

#endif
