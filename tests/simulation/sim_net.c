/* See sim_net.h; sim_corrupt.c makes the corrupted datagrams. */
#include "sim_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim_corrupt.h"

#define FIRST_ADDRESS 0x0A000001 /* 10.0.0.1 */
#define FIRST_EPHEMERAL_PORT 40000
#define DEFAULT_RCVBUF_LENGTH (208 * 1024)
#define REORDER_FACTOR 20

typedef struct datagram
{
    struct datagram *next;
    int64_t due_ns;
    bool has_arrived; /* has its place in the receive buffer */
    bool is_hostile;
    int32_t length;
    asi_address source;
    uint8_t bytes[];
} datagram;

struct asi_udp_socket
{
    sim_host *host;
    asi_udp_params params;
    asi_address bound;
    datagram *queue; /* by time of arrival */
    int64_t arrived_bytes;
};

static const char *const FAULT_NAMES[SIM_FAULT_COUNT] = { "lost", "duplicated", "reordered", "stale", "truncated", "corrupted",
    "forged", "partitioned", "overflowed", "short-sends", "hostile" };

const char *sim_fault_name(sim_fault fault) { return FAULT_NAMES[fault]; }

static int64_t below(sim_net *net, int64_t bound) { return bound <= 0 ? 0 : (int64_t)(asi_rand_u64(&net->rand) % (uint64_t)bound); }

static bool happens(sim_net *net, sim_fault fault, int32_t chance)
{
    const bool is_so = chance > 0 && below(net, 10000) < chance;
    net->injected[fault] += is_so ? 1 : 0;
    return is_so;
}

static asi_address address_of(const char *host, uint16_t port)
{
    asi_address address = asi_address_any(AF_INET);
    (void)inet_pton(AF_INET, host, &address.v4.sin_addr);
    asi_address_set_port(&address, port);
    return address;
}

asi_address sim_net_address(int32_t node, uint16_t port)
{
    asi_address address = asi_address_any(AF_INET);
    address.v4.sin_addr.s_addr = htonl(FIRST_ADDRESS + (uint32_t)node);
    asi_address_set_port(&address, port);
    return address;
}

void sim_net_init(sim_net *net, const int64_t *now_ns, uint64_t seed)
{
    *net = (sim_net){ .now_ns = now_ns };
    asi_rand_seed(&net->rand, seed);
}

static void free_socket(asi_udp_socket *socket)
{
    while (NULL != socket->queue)
    {
        datagram *head = socket->queue;
        socket->queue = head->next;
        free(head);
    }
    free(socket);
}

void sim_net_close(sim_net *net)
{
    for (int32_t i = 0; i < net->socket_end; i++)
    {
        if (NULL != net->sockets[i])
        {
            free_socket(net->sockets[i]);
            net->sockets[i] = NULL;
        }
    }
}

sim_host *sim_net_add_host(sim_net *net, int32_t node)
{
    sim_host *host = &net->hosts[net->host_count++];
    *host = (sim_host){ .net = net, .node = node };
    return host;
}

void sim_net_kill_host(sim_host *host) { host->is_dead = true; }

int32_t sim_net_open_sockets(const sim_net *net, const sim_host *host)
{
    int32_t count = 0;
    for (int32_t i = 0; i < net->socket_end; i++)
    {
        count += NULL != net->sockets[i] && net->sockets[i]->host == host ? 1 : 0;
    }
    return count;
}

int64_t sim_net_next_ns(const sim_net *net)
{
    int64_t next_ns = INT64_MAX;
    for (int32_t i = 0; i < net->socket_end; i++)
    {
        const asi_udp_socket *socket = net->sockets[i];
        const datagram *at = NULL == socket || socket->host->is_dead ? NULL : socket->queue;
        while (NULL != at && at->due_ns <= *net->now_ns)
        {
            at = at->next;
        }
        next_ns = NULL != at && at->due_ns < next_ns ? at->due_ns : next_ns;
    }
    return next_ns;
}

/* -- sockets ------------------------------------------------------------------------------------------------------------ */

static bool is_loopback(const asi_address *address)
{
    return AF_INET == address->any.sa_family && 127 == ntohl(address->v4.sin_addr.s_addr) >> 24;
}

/* Whether a datagram to `to` reaches the address that `socket` is bound to. */
static bool is_bound_to(const asi_udp_socket *socket, const sim_host *from, const asi_address *to)
{
    if (asi_address_port(&socket->bound) != asi_address_port(to))
    {
        return false;
    }
    const asi_address own = sim_net_address(socket->host->node, asi_address_port(to));
    const bool is_reached = is_loopback(to) ? socket->host == from : asi_address_equal(&own, to);
    return is_reached && (asi_address_is_any(&socket->bound) || asi_address_equal(&socket->bound, to));
}

static bool takes(const asi_udp_socket *socket, const sim_host *from, const asi_address *to, const asi_address *source)
{
    if (asi_address_is_multicast(to)) /* as with IP_MULTICAST_ALL off, see net/udp_socket.c */
    {
        return asi_address_equal(&socket->params.group, to);
    }
    const bool is_peer = asi_address_is_none(&socket->params.connect) || asi_address_is_multicast(&socket->params.connect) ||
        asi_address_equal(&socket->params.connect, source);
    return is_peer && is_bound_to(socket, from, to);
}

static bool is_taken(const sim_net *net, const sim_host *host, const asi_address *bind)
{
    for (int32_t i = 0; i < net->socket_end; i++)
    {
        const asi_udp_socket *other = net->sockets[i];
        if (NULL != other && other->host == host && asi_address_is_none(&other->params.group) &&
            asi_address_port(&other->bound) == asi_address_port(bind) &&
            (asi_address_is_any(bind) || asi_address_is_any(&other->bound) || asi_address_equal(&other->bound, bind)))
        {
            return true;
        }
    }
    return false;
}

static as_result net_open(void *context, const asi_udp_params *params, asi_udp_socket **socket)
{
    sim_host *host = context;
    sim_net *net = host->net;
    asi_address bound = params->bind;
    if (net->has_no_sockets)
    {
        return asi_fail(AS_E_STORAGE, EMFILE, "no socket: Too many open files");
    }
    if (asi_address_is_none(&params->group) && 0 != asi_address_port(&bound) && is_taken(net, host, &bound))
    {
        return asi_fail(AS_E_USAGE, EADDRINUSE, "failed to bind: Address already in use");
    }
    while (0 == asi_address_port(&bound) || (asi_address_is_none(&params->group) && is_taken(net, host, &bound)))
    {
        asi_address_set_port(&bound, (uint16_t)(FIRST_EPHEMERAL_PORT + net->next_port++ % 20000));
    }
    for (int32_t i = 0; i < SIM_NET_MAX_SOCKETS; i++)
    {
        if (NULL == net->sockets[i])
        {
            asi_udp_socket *opened = calloc(1, sizeof(*opened));
            if (NULL == opened)
            {
                break;
            }
            opened->host = host;
            opened->params = *params;
            opened->bound = bound;
            net->sockets[i] = opened;
            net->socket_end = i < net->socket_end ? net->socket_end : i + 1;
            *socket = opened;
            return AS_OK;
        }
    }
    return asi_fail(AS_E_STORAGE, EMFILE, "too many sockets in the simulated network");
}

static void net_close(void *context, asi_udp_socket *socket)
{
    sim_net *net = ((sim_host *)context)->net;
    for (int32_t i = 0; NULL != socket && i < net->socket_end; i++)
    {
        if (net->sockets[i] == socket)
        {
            net->sockets[i] = NULL;
            free_socket(socket);
            return;
        }
    }
}

static as_result net_reconnect(void *context, asi_udp_socket *socket, const asi_address *peer)
{
    (void)context;
    socket->params.connect = *peer;
    return AS_OK;
}

static as_result net_bound_address(void *context, asi_udp_socket *socket, asi_address *address)
{
    (void)context;
    *address = socket->bound;
    return AS_OK;
}

static as_result net_interfaces(void *context, asi_interface *to, int32_t capacity, int32_t *count)
{
    const sim_host *host = context;
    const asi_interface interfaces[] = {
        { .name = "lo", .index = 1, .address = address_of("127.0.0.1", 0), .prefix_length = 8, .is_up = true,
            .is_loopback = true },
        { .name = "sim0", .index = 2, .address = sim_net_address(host->node, 0), .prefix_length = 24, .is_up = true,
            .is_multicast = true }
    };
    *count = (int32_t)(sizeof(interfaces) / sizeof(interfaces[0]));
    memcpy(to, interfaces, sizeof(interfaces[0]) * (size_t)(capacity < *count ? capacity : *count));
    return AS_OK;
}

/* -- sending ------------------------------------------------------------------------------------------------------------ */

static datagram *enqueue(
    asi_udp_socket *socket, const void *bytes, int32_t length, const asi_address *source, int64_t due_ns)
{
    datagram *added = malloc(sizeof(*added) + (size_t)length);
    if (NULL == added)
    {
        return NULL;
    }
    added->due_ns = due_ns;
    added->has_arrived = false;
    added->is_hostile = false;
    added->length = length;
    added->source = *source;
    memcpy(added->bytes, bytes, (size_t)length);
    datagram **slot = &socket->queue;
    while (NULL != *slot && (*slot)->due_ns <= due_ns)
    {
        slot = &(*slot)->next;
    }
    added->next = *slot;
    *slot = added;
    return added;
}

static int64_t arrival_ns(sim_net *net)
{
    const sim_faults *faults = &net->faults;
    int64_t at_ns = *net->now_ns + faults->delay_ns + below(net, faults->jitter_ns);
    if (happens(net, SIM_FAULT_REORDERED, faults->reordered))
    {
        at_ns += below(net, REORDER_FACTOR * (faults->delay_ns + faults->jitter_ns));
    }
    return at_ns;
}

/* One datagram in flight to one socket. */
static void carry(sim_host *from, asi_udp_socket *to, const void *bytes, int32_t length, const asi_address *source)
{
    static uint8_t changed[ASI_DATAGRAM_MAX_LENGTH + SIM_CORRUPT_MAX_GROWTH];
    sim_net *net = from->net;
    const sim_faults *faults = &net->faults;
    if (from->is_dead || to->host->is_dead || (from->node < SIM_NET_MAX_NODES && to->host->node < SIM_NET_MAX_NODES &&
            net->is_cut[from->node][to->host->node]))
    {
        net->injected[SIM_FAULT_PARTITIONED] += from->is_dead || to->host->is_dead ? 0 : 1;
        return;
    }
    if (happens(net, SIM_FAULT_LOST, faults->lost))
    {
        return;
    }
    if (happens(net, SIM_FAULT_FORGED, faults->forged))
    {
        memcpy(changed, bytes, (size_t)length);
        const int32_t forged = sim_forge(changed, length, &net->rand);
        enqueue(to, changed, forged, source, arrival_ns(net));
    }
    if (happens(net, SIM_FAULT_STALE, faults->stale))
    {
        enqueue(to, bytes, length, source, *net->now_ns + below(net, faults->stale_ns));
    }
    if (happens(net, SIM_FAULT_DUPLICATED, faults->duplicated))
    {
        enqueue(to, bytes, length, source, arrival_ns(net));
    }
    if (happens(net, SIM_FAULT_CORRUPTED, faults->corrupted))
    {
        memcpy(changed, bytes, (size_t)length);
        length = sim_corrupt(changed, length, &net->rand);
        bytes = changed;
    }
    if (happens(net, SIM_FAULT_TRUNCATED, faults->truncated))
    {
        length = (int32_t)below(net, length);
    }
    enqueue(to, bytes, length, source, arrival_ns(net));
}

static as_result net_send(void *context, asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count, int32_t *sent)
{
    sim_host *host = context;
    sim_net *net = host->net;
    int32_t allowed = count < ASI_UDP_MAX_BATCH ? count : ASI_UDP_MAX_BATCH;
    if (happens(net, SIM_FAULT_SHORT_SEND, net->faults.short_send))
    {
        allowed = (int32_t)below(net, allowed);
    }
    for (*sent = 0; *sent < allowed; (*sent)++)
    {
        const asi_outgoing *outgoing = &datagrams[*sent];
        const asi_address *to = NULL != outgoing->to ? outgoing->to : &socket->params.connect;
        asi_address source = socket->bound;
        if (asi_address_is_any(&source))
        {
            const uint16_t port = asi_address_port(&socket->bound);
            source = is_loopback(to) ? address_of("127.0.0.1", port) : sim_net_address(host->node, port);
        }
        net->datagrams++;
        host->sent_datagrams++;
        host->sent_bytes += outgoing->length;
        if (NULL != net->spy)
        {
            net->spy(net->spy_context, &(sim_sighting){ .from = host, .source = &source, .to = to, .bytes = outgoing->bytes,
                .length = outgoing->length });
        }
        for (int32_t k = 0; k < net->socket_end; k++)
        {
            if (NULL != net->sockets[k] && takes(net->sockets[k], host, to, &source))
            {
                carry(host, net->sockets[k], outgoing->bytes, outgoing->length, &source);
            }
        }
    }
    return AS_OK;
}

int32_t sim_net_inject(sim_net *net, const asi_address *source, const asi_address *to, const void *bytes, int32_t length)
{
    int32_t count = 0;
    net->injected[SIM_FAULT_HOSTILE]++;
    for (int32_t i = 0; i < net->socket_end; i++)
    {
        asi_udp_socket *socket = net->sockets[i];
        if (NULL != socket && !socket->host->is_dead && takes(socket, NULL, to, source))
        {
            datagram *added = enqueue(socket, bytes, length, source,
                *net->now_ns + net->faults.delay_ns + below(net, net->faults.jitter_ns));
            if (NULL != added)
            {
                added->is_hostile = true;
                count++;
            }
        }
    }
    return count;
}

int32_t sim_net_endpoints(const sim_net *net, sim_endpoint *to, int32_t capacity)
{
    int32_t count = 0;
    for (int32_t i = 0; i < net->socket_end && count < capacity; i++)
    {
        const asi_udp_socket *socket = net->sockets[i];
        if (NULL != socket && !socket->host->is_dead)
        {
            const bool is_group = !asi_address_is_none(&socket->params.group);
            const asi_address *bound = &socket->bound;
            to[count++] = (sim_endpoint){
                .address = is_group ? socket->params.group :
                    asi_address_is_any(bound) ? sim_net_address(socket->host->node, asi_address_port(bound)) : *bound,
                .peer = socket->params.connect
            };
        }
    }
    return count;
}

/* -- receiving ---------------------------------------------------------------------------------------------------------- */

/* Datagrams that arrived since the last call enter the receive buffer, or are lost if it is full. */
static void arrive(asi_udp_socket *socket)
{
    sim_net *net = socket->host->net;
    const int64_t capacity = 0 != socket->params.rcvbuf_length ? socket->params.rcvbuf_length : DEFAULT_RCVBUF_LENGTH;
    datagram **slot = &socket->queue;
    while (NULL != *slot && (*slot)->due_ns <= *net->now_ns)
    {
        datagram *at = *slot;
        if (!at->has_arrived && socket->arrived_bytes > 0 && socket->arrived_bytes + at->length > capacity)
        {
            net->injected[SIM_FAULT_OVERFLOWED]++;
            *slot = at->next;
            free(at);
            continue;
        }
        socket->arrived_bytes += at->has_arrived ? 0 : at->length;
        at->has_arrived = true;
        slot = &at->next;
    }
}

static as_result net_receive(
    void *context, asi_udp_socket *socket, asi_incoming *datagrams, int32_t count, int32_t *received)
{
    sim_host *host = context;
    sim_net *net = host->net;
    *received = 0;
    arrive(socket);
    while (*received < count && *received < ASI_UDP_MAX_BATCH && NULL != socket->queue && socket->queue->has_arrived)
    {
        datagram *from = socket->queue;
        asi_incoming *to = &datagrams[(*received)++];
        to->length = from->length < to->capacity ? from->length : to->capacity;
        memcpy(to->buffer, from->bytes, (size_t)to->length);
        to->source = from->source;
        to->receive_time_ns = socket->params.has_receive_timestamps ? *net->now_ns + net->epoch_offset_ns : INT64_MIN;
        socket->arrived_bytes -= from->length;
        socket->queue = from->next;
        host->taken_datagrams++;
        host->taken_bytes += to->length;
        if (NULL != net->tap)
        {
            net->tap(net->tap_context, host, to->buffer, to->length, from->is_hostile);
        }
        free(from);
    }
    return AS_OK;
}

asi_udp_ops sim_net_ops(sim_host *host)
{
    return (asi_udp_ops){
        .open = net_open,
        .close = net_close,
        .send = net_send,
        .receive = net_receive,
        .reconnect = net_reconnect,
        .bound_address = net_bound_address,
        .interfaces = net_interfaces,
        .context = host
    };
}
