/* udp_ops over the kernel's sockets: non-blocking, recvmmsg and sendmmsg. Spec: 04 §3.5-3.8.
 * Thread rule: no state of its own; each socket as udp_ops.h says. */
#ifndef ASI_DRIVER_NET_UDP_SOCKET_H
#define ASI_DRIVER_NET_UDP_SOCKET_H

#include "driver/net/udp_ops.h"

asi_udp_ops asi_udp_ops_kernel(void);
/* Initial SO_SNDBUF and SO_RCVBUF of a new socket, and their largest permitted values; 0 when unknown. */
typedef struct asi_socket_limits
{
    int32_t default_sndbuf_length;
    int32_t max_sndbuf_length;
    int32_t default_rcvbuf_length;
    int32_t max_rcvbuf_length;
} asi_socket_limits;
void asi_udp_socket_limits(asi_socket_limits *limits);

#endif
