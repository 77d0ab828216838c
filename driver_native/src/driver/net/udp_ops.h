/* The interface between the driver and the network: all UDP operations that the driver uses. Spec: 04 §3.
 *
 * Implementations: the kernel (udp_socket), simulated loss for tests (udp_loss, over another one), the simulation. The conductor
 * opens and closes sockets; in between, the sender or receiver that was given a socket is its only user. No operation blocks.
 * When there is nothing to do now, the count is empty; the same holds when a peer has refused an earlier datagram
 * (Spec: 04 §3.5). */
#ifndef ASI_DRIVER_NET_UDP_OPS_H
#define ASI_DRIVER_NET_UDP_OPS_H

#include "driver/net/address.h"

#define ASI_UDP_MAX_BATCH 128    /* datagrams per send */
#define ASI_UDP_MAX_BUFFERS 16   /* buffers per receive */
#define ASI_UDP_MAX_SEGMENTS 128 /* datagrams that may share a buffer; Linux joins no more */
/* Holds the longest datagram, and the padding that aligns the datagrams that share a buffer. */
#define ASI_UDP_BUFFER_LENGTH (64 * 1024 + ASI_UDP_MAX_SEGMENTS * 8)

typedef struct asi_udp_socket asi_udp_socket; /* defined by each implementation */

/* A resolved description of one socket. */
typedef struct asi_udp_params
{
    asi_address bind;       /* local address to receive on; for multicast the family's wildcard with the group's port */
    asi_address connect;    /* none: unconnected. With `group`: a second socket, for sending, is connected */
    asi_address group;      /* multicast group to receive from; none: unicast */
    asi_address interface;  /* multicast: address of the interface used to join the group and to send to it */
    uint32_t interface_index;
    int32_t ttl;            /* multicast; 0: the system default */
    int32_t sndbuf_length;  /* 0: the system default */
    int32_t rcvbuf_length;
    bool has_receive_timestamps;
    bool may_coalesce;      /* several datagrams may share a buffer, see receive; not with receive timestamps */
} asi_udp_params;

typedef struct asi_outgoing
{
    const void *bytes;
    int32_t length;
    const asi_address *to; /* NULL: the connected peer */
    /* Its address may be forged. Not accepted while a quarter of the socket's send buffer waits: the kernel holds what goes to a
     * neighbour that does not exist for three seconds, and a buffer full of it would hold back every other receiver or sender. */
    bool is_to_stranger;
} asi_outgoing;

typedef struct asi_incoming
{
    uint8_t *buffer;    /* borrowed, aligned to 8; holds the datagram */
    int32_t capacity;
    int32_t length;     /* receive sets the fields from here on; longer datagrams are truncated */
    asi_address source;
    int64_t receive_time_ns; /* since the epoch, by kernel or NIC; INT64_MIN unless has_receive_timestamps */
} asi_incoming;

typedef struct asi_interface
{
    char name[64];
    uint32_t index;
    asi_address address;
    int32_t prefix_length; /* bits of the netmask */
    bool is_up;
    bool is_loopback;
    bool is_multicast;
} asi_interface;

/* Amplification limit for forged source addresses: bytes sent for each byte received, each datagram with its headers. */
#define ASI_ANSWERS_FOR_BYTE 3
#define ASI_DATAGRAM_HEADERS_LENGTH 42 /* Ethernet, IPv4, UDP */

static inline int64_t asi_answers_for(int32_t length)
{
    return ASI_ANSWERS_FOR_BYTE * ((int64_t)length + ASI_DATAGRAM_HEADERS_LENGTH);
}

typedef struct asi_udp_ops
{
    as_result (*open)(void *context, const asi_udp_params *params, asi_udp_socket **socket);
    void (*close)(void *context, asi_udp_socket *socket);
    /* Sends in order, at most ASI_UDP_MAX_BATCH. *sent: how many the network accepted, from the first on. A failure is an error
     * to log; *sent is set then, too. Cheapest: datagrams of equal length, the last maybe shorter, contiguous in memory and to
     * one address. */
    as_result (*send)(void *context, asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count, int32_t *sent);
    /* Takes `count` buffers, at most ASI_UDP_MAX_BUFFERS. *received: how many of `datagrams` are filled, in order of arrival; at
     * most `count`, except for sockets that may coalesce. For those `datagrams` holds ASI_UDP_MAX_SEGMENTS times as many, each
     * buffer holds ASI_UDP_BUFFER_LENGTH, and `buffer` of each filled one points into one of the given buffers. */
    as_result (*receive)(
        void *context, asi_udp_socket *socket, asi_incoming *datagrams, int32_t count, int32_t *received);
    /* Replaces the connected peer. */
    as_result (*reconnect)(void *context, asi_udp_socket *socket, const asi_address *peer);
    /* The socket's receive address, with the real port in place of port 0. */
    as_result (*bound_address)(void *context, asi_udp_socket *socket, asi_address *address);
    /* Fills at most `capacity`; *count: how many interfaces exist. */
    as_result (*interfaces)(void *context, asi_interface *to, int32_t capacity, int32_t *count);
    /* Returns a file descriptor that is readable when receive would return datagrams; NULL or negative: there is none. */
    int (*pollable_fd)(void *context, const asi_udp_socket *socket);
    void *context;
} asi_udp_ops;

#endif
