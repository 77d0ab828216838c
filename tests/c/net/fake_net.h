/* A network in memory behind udp_ops: datagrams move at once, in order, from socket to socket of one fake_net. It passes the same
 * conformance suite as the kernel (test_udp_ops_conformance.c). A test plays a peer by opening a socket of its own.
 *
 * Loopback rules only: a wildcard host matches any; groups reach every member, the sender's own sockets too; a connected socket
 * receives datagrams of its peer only; port 0 gets a fresh one. Queues are bounded, as kernel buffers are, and lose the excess.
 * `is_full` makes every send take nothing, `is_busy` those to strangers, `fail_with` makes it fail, with `fail_to` that to one port. */
#ifndef AS_TESTS_NET_FAKE_NET_H
#define AS_TESTS_NET_FAKE_NET_H

#include <arpa/inet.h>
#include <errno.h>

#include "check.h"
#include "driver/net/udp_ops.h"

#define FAKE_NET_SOCKETS 64
#define FAKE_NET_QUEUE 512

typedef struct fake_datagram
{
    uint8_t *bytes; /* owned */
    int32_t length;
    asi_address source;
} fake_datagram;

struct asi_udp_socket
{
    asi_udp_params params;
    asi_address bound;
    fake_datagram queue[FAKE_NET_QUEUE];
    int32_t head;
    int32_t count;
};

typedef struct fake_net
{
    asi_udp_socket *sockets[FAKE_NET_SOCKETS];
    uint16_t next_port;
    int64_t epoch_ns; /* receive timestamps */
    bool is_full;
    bool is_busy;
    int32_t fail_with; /* errno, 0 for none */
    uint16_t fail_to;  /* 0: to every port */
    int32_t sends;     /* calls so far */
    int64_t sent_bytes; /* in all of them */
} fake_net;

static inline asi_address fake_address(const char *host, uint16_t port)
{
    asi_address address = asi_address_any(AF_INET);
    CHECK(1 == inet_pton(AF_INET, host, &address.v4.sin_addr));
    asi_address_set_port(&address, port);
    return address;
}

static inline as_result fake_open(void *context, const asi_udp_params *params, asi_udp_socket **socket)
{
    fake_net *net = context;
    int32_t free_slot = -1;
    for (int32_t i = 0; i < FAKE_NET_SOCKETS; i++)
    {
        const asi_udp_socket *other = net->sockets[i];
        if (NULL == other)
        {
            free_slot = free_slot < 0 ? i : free_slot;
        }
        else if (0 != asi_address_port(&params->bind) && asi_address_equal(&other->bound, &params->bind) &&
            asi_address_is_none(&params->group))
        {
            return asi_fail(AS_E_USAGE, EADDRINUSE, "failed to bind: Address already in use");
        }
    }
    if (free_slot < 0)
    {
        return asi_fail(AS_E_USAGE, EMFILE, "failed to open a socket: this network has %d", FAKE_NET_SOCKETS);
    }
    asi_udp_socket *opened = calloc(1, sizeof(*opened));
    CHECK(NULL != opened);
    opened->params = *params;
    opened->bound = params->bind;
    if (0 == asi_address_port(&opened->bound))
    {
        asi_address_set_port(&opened->bound, (uint16_t)(40000 + net->next_port++));
    }
    net->sockets[free_slot] = opened;
    *socket = opened;
    return AS_OK;
}

static inline void fake_close(void *context, asi_udp_socket *socket)
{
    fake_net *net = context;
    for (int32_t i = 0; NULL != socket && i < FAKE_NET_SOCKETS; i++)
    {
        if (net->sockets[i] == socket)
        {
            net->sockets[i] = NULL;
            for (int32_t k = 0; k < socket->count; k++)
            {
                free(socket->queue[(socket->head + k) % FAKE_NET_QUEUE].bytes);
            }
            free(socket);
            return;
        }
    }
}

static inline bool fake_takes(const asi_udp_socket *socket, const asi_address *to, const asi_address *source)
{
    if (asi_address_is_multicast(to))
    {
        return asi_address_equal(&socket->params.group, to);
    }
    asi_address host = socket->bound;
    if (asi_address_is_any(&host))
    {
        host = *to;
        asi_address_set_port(&host, asi_address_port(&socket->bound));
    }
    const bool is_peer = asi_address_is_none(&socket->params.connect) || asi_address_is_multicast(&socket->params.connect) ||
        asi_address_equal(&socket->params.connect, source);
    return is_peer && asi_address_equal(&host, to);
}

static inline void fake_put(asi_udp_socket *socket, const asi_outgoing *datagram, const asi_address *source)
{
    if (FAKE_NET_QUEUE == socket->count)
    {
        return;
    }
    fake_datagram *slot = &socket->queue[(socket->head + socket->count++) % FAKE_NET_QUEUE];
    slot->bytes = malloc((size_t)datagram->length + 1);
    CHECK(NULL != slot->bytes);
    memcpy(slot->bytes, datagram->bytes, (size_t)datagram->length);
    slot->length = datagram->length;
    slot->source = *source;
}

static inline as_result fake_send(
    void *context, asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count, int32_t *sent)
{
    fake_net *net = context;
    asi_address source = socket->bound;
    net->sends++;
    *sent = 0;
    if (0 != net->fail_with && (0 == net->fail_to || net->fail_to == asi_address_port(datagrams->to)))
    {
        return asi_fail_errno(AS_E_USAGE, net->fail_with, "cannot send");
    }
    if (asi_address_is_any(&source))
    {
        source = fake_address("127.0.0.1", asi_address_port(&socket->bound));
    }
    const bool is_closed = net->is_full || (net->is_busy && count > 0 && datagrams->is_to_stranger);
    for (int32_t i = 0; !is_closed && i < count && i < ASI_UDP_MAX_BATCH; i++)
    {
        const asi_address *to = NULL != datagrams[i].to ? datagrams[i].to : &socket->params.connect;
        for (int32_t k = 0; k < FAKE_NET_SOCKETS; k++)
        {
            if (NULL != net->sockets[k] && fake_takes(net->sockets[k], to, &source))
            {
                fake_put(net->sockets[k], &datagrams[i], &source);
            }
        }
        (*sent)++;
        net->sent_bytes += datagrams[i].length;
    }
    return AS_OK;
}

/* Sockets that may coalesce get as many datagrams in a buffer as it holds. */
static inline as_result fake_receive(
    void *context, asi_udp_socket *socket, asi_incoming *datagrams, int32_t count, int32_t *received)
{
    const fake_net *net = context;
    const bool is_coalescing = socket->params.may_coalesce && !socket->params.has_receive_timestamps;
    asi_incoming buffers[ASI_UDP_MAX_BUFFERS];
    int32_t used = -1;   /* buffer */
    int32_t length = 0;  /* of it, a multiple of 8 */
    int32_t shared = 0;  /* datagrams in it */
    count = count < ASI_UDP_MAX_BUFFERS ? count : ASI_UDP_MAX_BUFFERS;
    memcpy(buffers, datagrams, (size_t)count * sizeof(*datagrams));
    *received = 0;
    while (socket->count > 0)
    {
        const fake_datagram *from = &socket->queue[socket->head];
        if (used < 0 || !is_coalescing || shared == ASI_UDP_MAX_SEGMENTS || from->length > buffers[used].capacity - length)
        {
            if (used + 1 == count)
            {
                break;
            }
            used++;
            length = 0;
            shared = 0;
        }
        asi_incoming *to = &datagrams[(*received)++];
        const int32_t left = buffers[used].capacity - length;
        to->buffer = buffers[used].buffer + length;
        to->length = from->length < left ? from->length : left;
        memcpy(to->buffer, from->bytes, (size_t)to->length);
        to->source = from->source;
        to->receive_time_ns = socket->params.has_receive_timestamps ? net->epoch_ns : INT64_MIN;
        length += (to->length + 7) / 8 * 8;
        shared++;
        free(from->bytes);
        socket->head = (socket->head + 1) % FAKE_NET_QUEUE;
        socket->count--;
    }
    return AS_OK;
}

static inline as_result fake_reconnect(void *context, asi_udp_socket *socket, const asi_address *peer)
{
    (void)context;
    socket->params.connect = *peer;
    return AS_OK;
}

static inline as_result fake_bound_address(void *context, asi_udp_socket *socket, asi_address *address)
{
    (void)context;
    *address = socket->bound;
    return AS_OK;
}

static inline as_result fake_interfaces(void *context, asi_interface *to, int32_t capacity, int32_t *count)
{
    (void)context;
    CHECK(capacity > 0);
    to[0] = (asi_interface){ .name = "lo", .index = 1, .address = fake_address("127.0.0.1", 0), .prefix_length = 8,
        .is_up = true, .is_loopback = true };
    *count = 1;
    return AS_OK;
}

static inline asi_udp_ops fake_net_ops(fake_net *net)
{
    return (asi_udp_ops){
        .open = fake_open,
        .close = fake_close,
        .send = fake_send,
        .receive = fake_receive,
        .reconnect = fake_reconnect,
        .bound_address = fake_bound_address,
        .interfaces = fake_interfaces,
        .context = net
    };
}

#endif
