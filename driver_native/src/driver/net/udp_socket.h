/* udp_ops over the kernel's sockets: non-blocking, recvmmsg and sendmmsg. Spec: 04 §3.5-3.8.
 * Thread rule: no state of its own; each socket as udp_ops.h says. */
#ifndef ASI_DRIVER_NET_UDP_SOCKET_H
#define ASI_DRIVER_NET_UDP_SOCKET_H

#include "driver/net/udp_ops.h"

asi_udp_ops asi_udp_ops_kernel(void);
/* SO_SNDBUF and SO_RCVBUF that a new socket has, and the largest one may ask for; 0 where it can't be told. */
typedef struct asi_socket_limits
{
    int32_t default_sndbuf_length;
    int32_t max_sndbuf_length;
    int32_t default_rcvbuf_length;
    int32_t max_rcvbuf_length;
} asi_socket_limits;
void asi_udp_socket_limits(asi_socket_limits *limits);

#endif
