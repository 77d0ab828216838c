/* See gossip.h. */
#include "driver/ctl/gossip.h"

#include <inttypes.h>
#include <stdio.h>

#include "driver/ctl/report.h"
#include "driver/ctl/state.h"
#include "wire/frame.h"

#define CACHE_CAPACITY 1024
#define NEIGHBOR_CAPACITY 256
#define BOOTSTRAP_CAPACITY 20
#define NAME_MAX_LENGTH 512
#define WORK_INTERVAL_NS 10000000LL
#define DATAGRAMS_PER_WORK 16
#define BUFFER_LENGTH 65536
#define DATAGRAMS_PER_INTERVAL 2048 /* limits what forged names can make the driver send in one interval */
#define INITIAL_ANNOUNCEMENTS 2

#define ENTRY_V4 1
#define ENTRY_V6 2
#define ENTRY_SELF 0x80
#define ENTRY_ALIGNMENT 8
#define ENTRY_ADDRESS_OFFSET 8

typedef struct cached_name
{
    char name[NAME_MAX_LENGTH + 1];
    int8_t type;
    asi_address address;       /* with the resolver's port */
    int64_t last_activity_ns;
} cached_name;

typedef struct neighbor
{
    asi_address address;
    int64_t last_activity_ns;
    int64_t sendable_bytes; /* see send_allowance */
    int32_t next_name;      /* cache index where the next round starts */
} neighbor;

typedef struct bootstrap
{
    const char *name;    /* "host:port", borrowed from bootstrap_text */
    asi_address address; /* none while unresolved */
    int32_t counter_id;
} bootstrap;

struct asi_gossip
{
    const asi_udp_ops *ops; /* borrowed */
    asi_udp_socket *socket; /* owned */
    asi_address bound;
    char name[ASI_RESOLVER_NAME_CAPACITY];
    int32_t mtu_length;
    cached_name *cache;     /* owned */
    int32_t cache_count;
    neighbor *neighbors;    /* owned */
    int32_t neighbor_count;
    bootstrap bootstraps[BOOTSTRAP_CAPACITY];
    int32_t bootstrap_count;
    char bootstrap_text[ASI_ARGS_TEXT_CAPACITY];
    int32_t neighbors_counter_id;
    int32_t cache_counter_id;
    int64_t last_work_ns;
    int64_t last_self_ns;
    int64_t last_neighbor_ns;
    int64_t last_bootstrap_ns;
    int32_t send_budget;    /* datagrams left in this interval */
    int32_t next_neighbor;  /* index of the neighbour that is first in the next round */
    int32_t self_length;    /* length of the datagram that announces this driver */
    uint8_t *incoming;      /* owned */
    uint8_t *outgoing;      /* owned */
};

static int32_t entry_length(const asi_address *address, const char *name)
{
    const int32_t address_length = AF_INET6 == address->any.sa_family ? 16 : 4;
    return asi_align_i32(
        ENTRY_ADDRESS_OFFSET + address_length + (int32_t)sizeof(int16_t) + (int32_t)strlen(name), ENTRY_ALIGNMENT);
}

static int64_t cost_of(int32_t length) { return (int64_t)length + ASI_DATAGRAM_HEADERS_LENGTH; }

/* -- opening and closing --------------------------------------------------------------------------------------------------- */

static as_result allocate_counter(asi_conductor *conductor, int32_t type_id, const char *label, const int32_t *key, int32_t *id)
{
    const asi_counter_request request = { .type_id = type_id, .key = key, .key_length = NULL == key ? 0 : sizeof(*key),
        .label = label, .label_length = (int64_t)strlen(label) };
    return asi_counters_allocate(&conductor->counters, &request, conductor->now_ms, id);
}

static void set_counter(const asi_conductor *conductor, int32_t counter_id, int64_t value)
{
    asi_store_release_i64(asi_counter_addr(&conductor->counters.counters, counter_id), value);
}

/* Uses the system's resolver: a driver's own bootstrap name must not depend on other drivers. */
static as_result resolve_bootstrap(const asi_conductor *conductor, bootstrap *one)
{
    return asi_address_resolve(&conductor->network.system_resolver, one->name, "bootstrap neighbor", false, &one->address);
}

static as_result open_bootstraps(asi_conductor *conductor, asi_gossip *gossip)
{
    const char *given = conductor->settings->resolver_bootstrap;
    memcpy(gossip->bootstrap_text, given, strlen(given) + 1);
    char *rest = NULL;
    for (char *name = strtok_r(gossip->bootstrap_text, ", ", &rest); NULL != name; name = strtok_r(NULL, ", ", &rest))
    {
        if (BOOTSTRAP_CAPACITY == gossip->bootstrap_count)
        {
            return asi_fail(AS_E_USAGE, EINVAL, "aeron.driver.resolver.bootstrap.neighbor has more than %d names",
                BOOTSTRAP_CAPACITY);
        }
        const int32_t index = gossip->bootstrap_count;
        bootstrap *one = &gossip->bootstraps[index];
        char label[ASI_COUNTER_LABEL_CAPACITY];
        char text[ASI_ADDRESS_TEXT_CAPACITY] = "";
        one->name = name;
        if (AS_OK == resolve_bootstrap(conductor, one))
        {
            asi_address_format(&one->address, text);
        }
        snprintf(label, sizeof(label), "Bootstrap neighbor: name=%s resolved=%s", name, text);
        const as_result result =
            allocate_counter(conductor, ASI_COUNTER_TYPE_BOOTSTRAP_NEIGHBOR, label, &index, &one->counter_id);
        if (AS_OK != result)
        {
            return result;
        }
        gossip->bootstrap_count++;
    }
    return AS_OK;
}

static as_result open_socket(asi_conductor *conductor, asi_gossip *gossip)
{
    asi_udp_params params = { .sndbuf_length = 0 };
    as_result result = asi_address_resolve(&conductor->network.system_resolver, conductor->settings->resolver_interface,
        "resolver interface", false, &params.bind);
    if (AS_OK == result)
    {
        result = gossip->ops->open(gossip->ops->context, &params, &gossip->socket);
    }
    return AS_OK == result ? gossip->ops->bound_address(gossip->ops->context, gossip->socket, &gossip->bound) : result;
}

static as_result open_counters(asi_conductor *conductor, asi_gossip *gossip)
{
    char text[ASI_ADDRESS_TEXT_CAPACITY];
    char label[ASI_COUNTER_LABEL_CAPACITY];
    asi_address_format(&gossip->bound, text);
    snprintf(label, sizeof(label), "Resolver neighbors: bound %s", text);
    const as_result result = allocate_counter(
        conductor, ASI_COUNTER_TYPE_RESOLVER_NEIGHBORS, label, NULL, &gossip->neighbors_counter_id);
    if (AS_OK != result)
    {
        return result;
    }
    snprintf(label, sizeof(label), "Resolver cache entries: name=%s", gossip->name);
    return allocate_counter(conductor, ASI_COUNTER_TYPE_RESOLVER_CACHE, label, NULL, &gossip->cache_counter_id);
}

as_result asi_gossip_open(asi_conductor *conductor, asi_gossip **gossip)
{
    const asi_driver_settings *settings = conductor->settings;
    asi_gossip *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the name resolver");
    }
    opened->ops = &conductor->network.own_ops;
    opened->mtu_length = (int32_t)settings->mtu_length;
    opened->neighbors_counter_id = AS_NULL_VALUE;
    opened->cache_counter_id = AS_NULL_VALUE;
    memcpy(opened->name, settings->resolver_name, sizeof(opened->name));
    opened->cache = calloc(CACHE_CAPACITY, sizeof(*opened->cache));
    opened->neighbors = calloc(NEIGHBOR_CAPACITY, sizeof(*opened->neighbors));
    opened->incoming = malloc(BUFFER_LENGTH);
    opened->outgoing = malloc(BUFFER_LENGTH);
    as_result result = NULL != opened->cache && NULL != opened->neighbors && NULL != opened->incoming &&
            NULL != opened->outgoing ? AS_OK : asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the name resolver");
    result = AS_OK == result ? open_socket(conductor, opened) : result;
    result = AS_OK == result ? open_bootstraps(conductor, opened) : result;
    result = AS_OK == result ? open_counters(conductor, opened) : result;
    if (AS_OK != result)
    {
        asi_gossip_close(conductor, opened);
        return result;
    }
    opened->self_length = (int32_t)sizeof(asi_frame_prefix) + entry_length(&opened->bound, opened->name);
    opened->last_self_ns = conductor->now_ns - settings->resolver_self_interval_ns - 1; /* announce at once */
    opened->last_neighbor_ns = conductor->now_ns;
    opened->last_bootstrap_ns = conductor->now_ns;
    *gossip = opened;
    return AS_OK;
}

void asi_gossip_close(asi_conductor *conductor, asi_gossip *gossip)
{
    if (NULL == gossip)
    {
        return;
    }
    if (NULL != gossip->socket)
    {
        gossip->ops->close(gossip->ops->context, gossip->socket);
    }
    for (int32_t i = 0; i < gossip->bootstrap_count; i++)
    {
        asi_counters_free(&conductor->counters, gossip->bootstraps[i].counter_id, conductor->now_ms);
    }
    if (gossip->neighbors_counter_id >= 0)
    {
        asi_counters_free(&conductor->counters, gossip->neighbors_counter_id, conductor->now_ms);
    }
    if (gossip->cache_counter_id >= 0)
    {
        asi_counters_free(&conductor->counters, gossip->cache_counter_id, conductor->now_ms);
    }
    free(gossip->cache);
    free(gossip->neighbors);
    free(gossip->incoming);
    free(gossip->outgoing);
    free(gossip);
}

/* -- cache of names ------------------------------------------------------------------------------------------------------ */

bool asi_gossip_find(const asi_gossip *gossip, const char *name, asi_address *address)
{
    for (int8_t type = ENTRY_V4; type <= ENTRY_V6; type++)
    {
        for (int32_t i = 0; i < gossip->cache_count; i++)
        {
            if (type == gossip->cache[i].type && 0 == strcmp(name, gossip->cache[i].name))
            {
                *address = gossip->cache[i].address;
                return true;
            }
        }
    }
    if (0 == strcmp(name, gossip->name))
    {
        *address = gossip->bound;
        return true;
    }
    return false;
}

static neighbor *find_neighbor(const asi_gossip *gossip, const asi_address *address)
{
    for (int32_t i = 0; i < gossip->neighbor_count; i++)
    {
        if (asi_address_equal(address, &gossip->neighbors[i].address))
        {
            return &gossip->neighbors[i];
        }
    }
    return NULL;
}

static void learn_name(
    asi_conductor *conductor, asi_gossip *gossip, const char *name, int8_t type, const asi_address *address, int64_t activity_ns)
{
    cached_name *entry = NULL;
    for (int32_t i = 0; i < gossip->cache_count && NULL == entry; i++)
    {
        cached_name *known = &gossip->cache[i];
        entry = type == known->type && 0 == strcmp(name, known->name) ? known : NULL;
    }
    if (NULL == entry && CACHE_CAPACITY == gossip->cache_count)
    {
        return;
    }
    if (NULL == entry)
    {
        entry = &gossip->cache[gossip->cache_count++];
        *entry = (cached_name){ .type = type, .last_activity_ns = activity_ns };
        snprintf(entry->name, sizeof(entry->name), "%s", name);
        set_counter(conductor, gossip->cache_counter_id, gossip->cache_count);
    }
    if (activity_ns >= entry->last_activity_ns)
    {
        entry->last_activity_ns = activity_ns;
        entry->address = *address;
    }
}

static void log_neighbor(asi_conductor *conductor, asi_event event, const asi_address *address)
{
    char text[ASI_ADDRESS_TEXT_CAPACITY];
    asi_address_format(address, text);
    asi_events_log(conductor->events, event, "address=%s", text);
}

static void learn_neighbor(
    asi_conductor *conductor, asi_gossip *gossip, const asi_address *address, bool is_self, int64_t activity_ns)
{
    neighbor *known = find_neighbor(gossip, address);
    if (NULL != known)
    {
        known->last_activity_ns = is_self && activity_ns > known->last_activity_ns ? activity_ns : known->last_activity_ns;
    }
    else if (gossip->neighbor_count < NEIGHBOR_CAPACITY)
    {
        gossip->neighbors[gossip->neighbor_count++] = (neighbor){ .address = *address, .last_activity_ns = activity_ns,
            .sendable_bytes = INITIAL_ANNOUNCEMENTS * cost_of(gossip->self_length) };
        set_counter(conductor, gossip->neighbors_counter_id, gossip->neighbor_count);
        log_neighbor(conductor, ASI_EVENT_NAME_RESOLUTION_NEIGHBOR_ADDED, address);
    }
}

static int expire(asi_conductor *conductor, asi_gossip *gossip)
{
    const int64_t timeout_ns = conductor->settings->resolver_neighbor_timeout_ns;
    const int32_t before = gossip->cache_count + gossip->neighbor_count;
    for (int32_t i = gossip->cache_count - 1; i >= 0; i--)
    {
        if (conductor->now_ns - gossip->cache[i].last_activity_ns > timeout_ns)
        {
            gossip->cache[i] = gossip->cache[--gossip->cache_count];
        }
    }
    for (int32_t i = gossip->neighbor_count - 1; i >= 0; i--)
    {
        if (conductor->now_ns - gossip->neighbors[i].last_activity_ns > timeout_ns)
        {
            log_neighbor(conductor, ASI_EVENT_NAME_RESOLUTION_NEIGHBOR_REMOVED, &gossip->neighbors[i].address);
            gossip->neighbors[i] = gossip->neighbors[--gossip->neighbor_count];
        }
    }
    const int expired = before - gossip->cache_count - gossip->neighbor_count;
    if (expired > 0)
    {
        set_counter(conductor, gossip->cache_counter_id, gossip->cache_count);
        set_counter(conductor, gossip->neighbors_counter_id, gossip->neighbor_count);
    }
    return expired;
}

/* -- receiving ----------------------------------------------------------------------------------------------------------- */

typedef struct received_entry
{
    int8_t type;
    bool is_self;
    int32_t age_ms;
    asi_address address;
    char name[NAME_MAX_LENGTH + 1];
} received_entry;

/* Returns the entry's length in bytes; 0 when it is invalid. */
static int64_t read_entry_untrusted(const uint8_t *bytes, int64_t left, received_entry *entry)
{
    if (left < ENTRY_ADDRESS_OFFSET)
    {
        return 0;
    }
    const int8_t type = (int8_t)bytes[0];
    const int64_t address_length = ENTRY_V4 == type ? 4 : ENTRY_V6 == type ? 16 : 0;
    const int64_t name_at = ENTRY_ADDRESS_OFFSET + address_length + (int64_t)sizeof(int16_t);
    if (0 == address_length || left < name_at)
    {
        return 0;
    }
    const int16_t name_length = (int16_t)asi_get_u16(bytes + name_at - sizeof(int16_t));
    *entry = (received_entry){ .type = type, .is_self = 0 != (bytes[1] & ENTRY_SELF), .age_ms = asi_get_i32(bytes + 4) };
    if (name_length < 1 || name_length > NAME_MAX_LENGTH || left < name_at + name_length || entry->age_ms < 0)
    {
        return 0;
    }
    if (NULL != memchr(bytes + name_at, '\0', (size_t)name_length))
    {
        return 0; /* it would be forwarded up to there, without a character perhaps, which no driver accepts */
    }
    entry->address = asi_address_any(ENTRY_V4 == type ? AF_INET : AF_INET6);
    memcpy(ENTRY_V4 == type ? (void *)&entry->address.v4.sin_addr : (void *)&entry->address.v6.sin6_addr,
        bytes + ENTRY_ADDRESS_OFFSET, (size_t)address_length);
    asi_address_set_port(&entry->address, asi_get_u16(bytes + 2));
    memcpy(entry->name, bytes + name_at, (size_t)name_length);
    const int64_t length = asi_align_i64(name_at + name_length, ENTRY_ALIGNMENT);
    return length <= left ? length : left;
}

static void on_entry(asi_conductor *conductor, asi_gossip *gossip, received_entry *entry, const asi_address *source)
{
    const uint16_t port = asi_address_port(&entry->address);
    if (port == asi_address_port(&gossip->bound) && 0 == strcmp(entry->name, gossip->name))
    {
        return; /* this driver's own entry, forwarded by another driver */
    }
    if (entry->is_self && asi_address_is_any(&entry->address))
    {
        entry->address = *source; /* Spec: 04 §23 row 24 - but the port of the entry */
        asi_address_set_port(&entry->address, port);
        entry->type = AF_INET6 == source->any.sa_family ? ENTRY_V6 : ENTRY_V4;
    }
    const int64_t activity_ns = conductor->now_ns - (int64_t)entry->age_ms * 1000000LL;
    if (0 == asi_address_port(&entry->address) || asi_address_is_any(&entry->address) || asi_address_is_multicast(&entry->address))
    {
        asi_conductor_count(conductor, ASI_SYSTEM_INVALID_PACKETS, 1);
        return; /* not a possible address of a driver */
    }
    learn_name(conductor, gossip, entry->name, entry->type, &entry->address, activity_ns);
    learn_neighbor(conductor, gossip, &entry->address, entry->is_self, activity_ns);
}

static void on_datagram_untrusted(asi_conductor *conductor, asi_gossip *gossip, const asi_incoming *datagram)
{
    const asi_frame_prefix *prefix = (const asi_frame_prefix *)(const void *)datagram->buffer;
    int64_t at = sizeof(*prefix);
    if (datagram->length < (int32_t)sizeof(*prefix) || 0 != prefix->version || ASI_FRAME_RESOLUTION != prefix->type ||
        prefix->frame_length != datagram->length)
    {
        asi_conductor_count(conductor, ASI_SYSTEM_INVALID_PACKETS, 1);
        return;
    }
    while (at < datagram->length)
    {
        received_entry entry;
        const int64_t length = read_entry_untrusted(datagram->buffer + at, datagram->length - at, &entry);
        if (0 == length)
        {
            asi_conductor_count(conductor, ASI_SYSTEM_INVALID_PACKETS, 1);
            return;
        }
        on_entry(conductor, gossip, &entry, &datagram->source);
        at += length;
    }
    neighbor *from = find_neighbor(gossip, &datagram->source);
    if (NULL != from)
    {
        from->sendable_bytes += asi_answers_for(datagram->length);
    }
}

static int receive(asi_conductor *conductor, asi_gossip *gossip)
{
    int count = 0;
    int32_t received = 1;
    while (received > 0 && count < DATAGRAMS_PER_WORK)
    {
        asi_incoming datagram = { .buffer = gossip->incoming, .capacity = BUFFER_LENGTH };
        const as_result result = gossip->ops->receive(gossip->ops->context, gossip->socket, &datagram, 1, &received);
        if (AS_OK != result)
        {
            asi_conductor_log_peer_failure(conductor, result);
            return count;
        }
        if (received > 0)
        {
            on_datagram_untrusted(conductor, gossip, &datagram);
            count++;
        }
    }
    return count;
}

/* -- sending ------------------------------------------------------------------------------------------------------------- */

/* Appends an entry; returns the new length. */
static int32_t put_entry(
    uint8_t *to, int32_t at, const asi_address *address, const char *name, uint8_t flags, int64_t age_ms)
{
    const bool is_v6 = AF_INET6 == address->any.sa_family;
    const int32_t address_length = is_v6 ? 16 : 4;
    const int32_t name_length = (int32_t)strlen(name);
    const int32_t length = entry_length(address, name);
    uint8_t *entry = to + at;
    memset(entry, 0, (size_t)length);
    entry[0] = is_v6 ? ENTRY_V6 : ENTRY_V4;
    entry[1] = flags;
    asi_put_u16(entry + 2, asi_address_port(address));
    asi_put_i32(entry + 4, age_ms > INT32_MAX ? INT32_MAX : (int32_t)age_ms);
    memcpy(entry + ENTRY_ADDRESS_OFFSET,
        is_v6 ? (const void *)&address->v6.sin6_addr : (const void *)&address->v4.sin_addr, (size_t)address_length);
    asi_put_u16(entry + ENTRY_ADDRESS_OFFSET + address_length, (uint16_t)name_length);
    memcpy(entry + ENTRY_ADDRESS_OFFSET + address_length + sizeof(int16_t), name, (size_t)name_length);
    return at + length;
}

static bool is_bootstrap(const asi_gossip *gossip, const asi_address *address)
{
    for (int32_t i = 0; i < gossip->bootstrap_count; i++)
    {
        if (asi_address_equal(address, &gossip->bootstraps[i].address))
        {
            return true;
        }
    }
    return false;
}

static void send_to(asi_conductor *conductor, asi_gossip *gossip, int32_t length, const asi_address *to)
{
    const asi_frame_prefix prefix = { .frame_length = length, .type = ASI_FRAME_RESOLUTION };
    memcpy(gossip->outgoing, &prefix, sizeof(prefix));
    const asi_outgoing datagram = {
        .bytes = gossip->outgoing, .length = length, .to = to, .is_to_stranger = !is_bootstrap(gossip, to)
    };
    int32_t sent = 0;
    const as_result result = gossip->ops->send(gossip->ops->context, gossip->socket, &datagram, 1, &sent);
    if (AS_OK != result)
    {
        asi_conductor_log_peer_failure(conductor, result);
    }
    else if (0 == sent)
    {
        asi_conductor_count(conductor, ASI_SYSTEM_SHORT_SENDS, 1);
    }
}

/* Returns the maximum length of a datagram to this neighbour. Any host can name a neighbour, or forge its source address, and
 * must not make the driver flood it. A neighbour from the settings has no limit. Any other gets two announcements of this driver,
 * and beyond that three times the bytes that came from it. The driver forwards the names that it learned, so a new driver learns
 * twenty names in its first round and a hundred by the second. A departure: stock sends everything to everybody. */
static int64_t send_allowance(const asi_gossip *gossip, const neighbor *to)
{
    const int64_t length = to->sendable_bytes - ASI_DATAGRAM_HEADERS_LENGTH;
    return is_bootstrap(gossip, &to->address) || length > gossip->mtu_length ? gossip->mtu_length : length;
}

static void send_self(asi_conductor *conductor, asi_gossip *gossip)
{
    const int32_t length =
        put_entry(gossip->outgoing, (int32_t)sizeof(asi_frame_prefix), &gossip->bound, gossip->name, ENTRY_SELF, 0);
    for (int32_t i = 0; i < gossip->bootstrap_count; i++)
    {
        if (!asi_address_is_none(&gossip->bootstraps[i].address))
        {
            send_to(conductor, gossip, length, &gossip->bootstraps[i].address);
        }
    }
    for (int32_t i = 0; i < gossip->neighbor_count; i++)
    {
        neighbor *to = &gossip->neighbors[i];
        if (!is_bootstrap(gossip, &to->address) && to->sendable_bytes >= cost_of(length))
        {
            to->sendable_bytes -= cost_of(length);
            send_to(conductor, gossip, length, &to->address);
        }
    }
}

/* Adds as many of the next `max` names as fit; sets *length to the datagram's length. A name longer than the MTU gets a datagram
 * of its own. */
static int32_t put_names(
    const asi_conductor *conductor, asi_gossip *gossip, const neighbor *to, int32_t max, int32_t *length)
{
    const int64_t allowance = send_allowance(gossip, to);
    int32_t count = 0;
    *length = (int32_t)sizeof(asi_frame_prefix);
    while (count < max)
    {
        const cached_name *entry = &gossip->cache[(to->next_name + count) % gossip->cache_count];
        const int64_t age_ms = (conductor->now_ns - entry->last_activity_ns) / 1000000LL;
        const int32_t with_entry = *length + entry_length(&entry->address, entry->name);
        if (with_entry > allowance && (count > 0 || allowance < gossip->mtu_length))
        {
            break;
        }
        *length = put_entry(gossip->outgoing, *length, &entry->address, entry->name, 0, age_ms);
        count++;
    }
    return count;
}

/* Sends each name at most once; the next round continues where this one ended. */
static void send_names(asi_conductor *conductor, asi_gossip *gossip, neighbor *to)
{
    for (int32_t left = gossip->cache_count; left > 0 && gossip->send_budget > 0;)
    {
        int32_t length;
        const int32_t count = put_names(conductor, gossip, to, left, &length);
        if (0 == count)
        {
            return;
        }
        to->next_name = (to->next_name + count) % gossip->cache_count;
        to->sendable_bytes -= cost_of(length);
        gossip->send_budget--;
        left -= count;
        send_to(conductor, gossip, length, &to->address);
    }
}

static void send_cache(asi_conductor *conductor, asi_gossip *gossip)
{
    const int32_t count = gossip->neighbor_count;
    gossip->send_budget = DATAGRAMS_PER_INTERVAL;
    int32_t done = 0;
    for (; done < count && gossip->send_budget > 0; done++)
    {
        send_names(conductor, gossip, &gossip->neighbors[(gossip->next_neighbor + done) % count]);
    }
    gossip->next_neighbor = count > 0 ? (gossip->next_neighbor + done) % count : 0;
}

/* Resolves bootstrap names again when their drivers are silent: they may have moved. */
static void check_bootstraps(asi_conductor *conductor, asi_gossip *gossip, bool is_resolving)
{
    for (int32_t i = 0; i < gossip->bootstrap_count; i++)
    {
        bootstrap *one = &gossip->bootstraps[i];
        const bool is_neighbor = NULL != find_neighbor(gossip, &one->address);
        set_counter(conductor, one->counter_id, is_neighbor ? 1 : 0);
        if (is_resolving && !is_neighbor && AS_OK != resolve_bootstrap(conductor, one))
        {
            asi_conductor_log_peer_failure(conductor, AS_E_USAGE);
        }
    }
}

/* True when the interval has passed; restarts it. */
static bool is_due(const asi_conductor *conductor, int64_t *last_ns, int64_t interval_ns)
{
    if (conductor->now_ns - *last_ns <= interval_ns)
    {
        return false;
    }
    *last_ns = conductor->now_ns;
    return true;
}

int asi_gossip_do_work(asi_conductor *conductor, asi_gossip *gossip)
{
    const asi_driver_settings *settings = conductor->settings;
    if (!is_due(conductor, &gossip->last_work_ns, WORK_INTERVAL_NS))
    {
        return 0;
    }
    int work = receive(conductor, gossip) + expire(conductor, gossip);
    if (is_due(conductor, &gossip->last_self_ns, settings->resolver_self_interval_ns))
    {
        send_self(conductor, gossip);
        work++;
    }
    if (is_due(conductor, &gossip->last_neighbor_ns, settings->resolver_neighbor_interval_ns))
    {
        send_cache(conductor, gossip);
        work++;
    }
    check_bootstraps(
        conductor, gossip, is_due(conductor, &gossip->last_bootstrap_ns, settings->resolver_bootstrap_interval_ns));
    return work;
}
