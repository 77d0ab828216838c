/* Datagrams in and out of one kernel socket, many per call. Spec: 04 §4.4.
 *
 * Called by udp_socket.c, whose sockets these are. The kernel does the cutting and joining where it can: a run of datagrams of one
 * length that lie back to back goes out as one send (UDP_SEGMENT), and what belongs together comes in as one read (UDP_GRO). On
 * the wire nothing differs. Where a kernel, a device or a route refuses, each datagram travels alone.
 * Thread rule: of the socket. */
#ifndef ASI_DRIVER_NET_UDP_BATCH_H
#define ASI_DRIVER_NET_UDP_BATCH_H

#include "driver/net/udp_ops.h"

#define ASI_UDP_NO_FD (-1)

/* One socket, but for connected multicast senders: they receive status messages of the group on another one. */
struct asi_udp_socket
{
    int receive_fd;
    int send_fd;
    bool has_receive_timestamps;
    bool is_coalescing;
    int32_t segment_limit; /* longest datagram that may be one of a run; 0: no runs. Sinks when a run is refused */
};

/* After open: what the kernel knows of runs. */
void asi_udp_batch_probe(struct asi_udp_socket *socket, bool may_coalesce);

/* As udp_ops. */
as_result asi_udp_batch_send(
    void *context, asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count, int32_t *sent);
as_result asi_udp_batch_receive(
    void *context, asi_udp_socket *socket, asi_incoming *datagrams, int32_t count, int32_t *received);

#endif
