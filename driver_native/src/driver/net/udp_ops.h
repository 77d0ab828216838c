/* The network's swap point: everything the driver asks of UDP. Spec: 04 §3.
 *
 * Implementations: the kernel (udp_socket), loss for tests (udp_loss, over another one), the simulation. The conductor opens and
 * closes sockets; the sender or receiver that was given one uses it alone in between. Nothing here blocks: "nothing now" is an
 * empty count, and so is a peer that refused an earlier datagram (Spec: 04 §3.5). */
#ifndef ASI_DRIVER_NET_UDP_OPS_H
#define ASI_DRIVER_NET_UDP_OPS_H

#include "driver/net/address.h"

#define ASI_UDP_MAX_BATCH 128    /* datagrams per send */
#define ASI_UDP_MAX_BUFFERS 16   /* buffers per receive */
#define ASI_UDP_MAX_SEGMENTS 128 /* datagrams that may share a buffer; as many as Linux puts together */
/* A buffer for the longest datagram; with room for aligning the datagrams that share it. */
#define ASI_UDP_BUFFER_LENGTH (64 * 1024 + ASI_UDP_MAX_SEGMENTS * 8)

typedef struct asi_udp_socket asi_udp_socket; /* an implementation's own */

/* A resolved description of one socket. */
typedef struct asi_udp_params
{
    asi_address bind;       /* where to receive; of a multicast socket the wildcard of the family with the group's port */
    asi_address connect;    /* none: unconnected. With `group`: a second, sending socket of its own is connected */
    asi_address group;      /* multicast group to receive from; none: unicast */
    asi_address interface;  /* multicast: address of the interface that joins the group and sends to it */
    uint32_t interface_index;
    int32_t ttl;            /* multicast; 0: the system's */
    int32_t sndbuf_length;  /* 0: the system's */
    int32_t rcvbuf_length;
    bool has_receive_timestamps;
    bool may_coalesce;      /* several datagrams may share a buffer, see receive; not with receive timestamps */
} asi_udp_params;

typedef struct asi_outgoing
{
    const void *bytes;
    int32_t length;
    const asi_address *to; /* NULL: the connected peer */
} asi_outgoing;

typedef struct asi_incoming
{
    uint8_t *buffer;    /* borrowed, aligned to 8; where the datagram is */
    int32_t capacity;
    int32_t length;     /* from here on set by receive; longer datagrams are cut */
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

/* What whoever forges a source address may have us write there: three bytes for one, each datagram with its headers. */
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
    /* Sends in order, at most ASI_UDP_MAX_BATCH; *sent = how many the network took, from the first on. A failure means an error
     * worth logging; *sent is set then, too. Cheapest: datagrams of one length, the last maybe shorter, that lie back to back and
     * go to one address. */
    as_result (*send)(void *context, asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count, int32_t *sent);
    /* `count` buffers, at most ASI_UDP_MAX_BUFFERS; *received = how many of `datagrams` are filled, in order of arrival. At most
     * `count`, but for sockets that may coalesce: of those `datagrams` has room for ASI_UDP_MAX_SEGMENTS times as many, each
     * buffer holds ASI_UDP_BUFFER_LENGTH, and `buffer` of those filled points into one of the buffers given. */
    as_result (*receive)(
        void *context, asi_udp_socket *socket, asi_incoming *datagrams, int32_t count, int32_t *received);
    /* Replaces the connected peer. */
    as_result (*reconnect)(void *context, asi_udp_socket *socket, const asi_address *peer);
    /* Where it receives, port 0 replaced by the real one. */
    as_result (*bound_address)(void *context, asi_udp_socket *socket, asi_address *address);
    /* Fills at most `capacity`; *count = how many there are. */
    as_result (*interfaces)(void *context, asi_interface *to, int32_t capacity, int32_t *count);
    /* A file descriptor that is readable while receive would find something; NULL or negative: there is none. */
    int (*pollable_fd)(void *context, const asi_udp_socket *socket);
    void *context;
} asi_udp_ops;

#endif
