/* See sim_plan.h. */
#include "sim_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "auditor_bounds.h"
#include "base/bits.h"
#include "shm/broadcast.h"
#include "shm/ring_mpsc.h"

#define MS 1000000LL
#define FIRST_STREAM_ID 1001
#define FIRST_PORT 20000
#define SEEDS_PER_ADVERSARY 3
#define GROUPS_PER_FLOW 25

static int64_t below(asi_rand *rand, int64_t bound) { return (int64_t)(asi_rand_u64(rand) % (uint64_t)bound); }
static int64_t between(asi_rand *rand, int64_t low, int64_t high) { return low + below(rand, high - low + 1); }
static bool percent(asi_rand *rand, int64_t chance) { return below(rand, 100) < chance; }

#define PICK(rand, array) ((array)[below((rand), (int64_t)(sizeof(array) / sizeof((array)[0])))])

static void put(char *channel, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(char *channel, const char *format, ...)
{
    const size_t length = strlen(channel);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(channel + length, SIM_CHANNEL_CAPACITY - length, format, arguments);
    va_end(arguments);
}

/* -- settings ----------------------------------------------------------------------------------------------------------- */

/* From and to, milliseconds where nothing is said. Set-ups and heartbeats come every 100 ms, whatever is set: all that waits for them is longer. */
typedef struct sim_range
{
    int64_t low;
    int64_t high;
} sim_range;

typedef struct sim_pace
{
    sim_range client_liveness;
    sim_range unblock_more;
    sim_range image_liveness;
    sim_range connection;
    sim_range linger; /* time for heartbeats that announce the end */
    sim_range untethered_limit;
    sim_range untethered_resting;
    sim_range receiver_timeout;
    sim_range storm;
    sim_range event_interval;
    sim_range step_us;
    sim_range idle_step_us;
    int64_t counters_length; /* of the files that each driver begins with */
    int64_t commands_length;
    int64_t driver_timeout_ms;
    int64_t keepalive_ms;
    int64_t max_stall_ms;
    int64_t max_stale_ms;
} sim_pace;

static const sim_pace USUAL = { .client_liveness = { 800, 1500 }, .unblock_more = { 100, 600 }, .image_liveness = { 500, 1200 },
    .connection = { 300, 800 }, .linger = { 250, 600 }, .untethered_limit = { 150, 300 }, .untethered_resting = { 200, 400 },
    .receiver_timeout = { 300, 700 }, .storm = { 500, 3000 }, .event_interval = { 50, 600 }, .step_us = { 10, 100 },
    .idle_step_us = { 100, 2000 }, .counters_length = 1 << 20, .commands_length = 1 << 20, .driver_timeout_ms = 1000,
    .keepalive_ms = 100, .max_stall_ms = 800, .max_stale_ms = 3000 };
static const sim_pace SIEGE = { .client_liveness = { 300, 500 }, .unblock_more = { 50, 200 }, .image_liveness = { 400, 600 },
    .connection = { 200, 400 }, .linger = { 220, 350 }, .untethered_limit = { 80, 150 }, .untethered_resting = { 100, 200 },
    .receiver_timeout = { 200, 400 }, .storm = { 300, 1000 }, .event_interval = { 30, 200 }, .step_us = { 30, 200 },
    .idle_step_us = { 500, 2000 }, .counters_length = 1 << 18, .commands_length = 1 << 17, .driver_timeout_ms = 400,
    .keepalive_ms = 40, .max_stall_ms = 300, .max_stale_ms = 800 };

static int64_t in(asi_rand *rand, sim_range range) { return between(rand, range.low, range.high) * MS; }

static void make_times(sim_plan *plan, const sim_pace *pace, asi_rand *rand)
{
    asi_driver_settings *settings = &plan->settings;
    settings->timer_interval_ns = between(rand, 5, 30) * MS;
    settings->client_liveness_timeout_ns = in(rand, pace->client_liveness);
    settings->image_liveness_timeout_ns = in(rand, pace->image_liveness);
    settings->publication_unblock_timeout_ns = settings->client_liveness_timeout_ns + in(rand, pace->unblock_more);
    settings->publication_connection_timeout_ns = in(rand, pace->connection);
    settings->publication_linger_timeout_ns = in(rand, pace->linger);
    settings->status_message_timeout_ns = between(rand, 20, 80) * MS;
    settings->untethered_window_limit_timeout_ns = in(rand, pace->untethered_limit);
    settings->untethered_resting_timeout_ns = in(rand, pace->untethered_resting);
    settings->flow_control_receiver_timeout_ns = in(rand, pace->receiver_timeout);
    settings->counter_free_to_reuse_ns = between(rand, 0, 100) * MS;
    settings->driver_timeout_ms = pace->driver_timeout_ms;
    plan->step_ns = in(rand, pace->step_us) / 1000;
    plan->idle_step_ns = in(rand, pace->idle_step_us) / 1000;
    plan->max_pause_ns = between(rand, 1, 30) * MS;
    plan->keepalive_ns = pace->keepalive_ms * MS;
    plan->max_stall_ns = pace->max_stall_ms * MS;
    plan->max_stale_ns = pace->max_stale_ms * MS;
    plan->times = (auditor_times){
        .timer_interval_ns = settings->timer_interval_ns,
        .client_liveness_ns = settings->client_liveness_timeout_ns,
        .image_liveness_ns = settings->image_liveness_timeout_ns,
        .connection_ns = settings->publication_connection_timeout_ns,
        .linger_ns = settings->publication_linger_timeout_ns,
        .status_message_ns = settings->status_message_timeout_ns,
        .unblock_ns = settings->publication_unblock_timeout_ns,
        .slack_ns = plan->max_pause_ns + 20 * plan->idle_step_ns + 5 * MS
    };
}

static void make_settings(sim_plan *plan, const sim_pace *pace, asi_rand *rand)
{
    static const int64_t WINDOWS[] = { 8 * 1024, 16 * 1024, 32 * 1024, 128 * 1024 };
    static const int64_t BATCHES[] = { 1, 2, 4, 8, 16 };
    asi_driver_settings *settings = &plan->settings;
    asi_driver_settings_init(settings);
    settings->threading_mode = ASI_THREADING_INVOKER;
    settings->perform_storage_checks = false;
    settings->reserved_session_id_low = SIM_HOSTILE_SESSION(0); /* no honest stream gets an id of the adversary's */
    settings->reserved_session_id_high = SIM_STRAY_SESSION;
    settings->counters_values_buffer_length = pace->counters_length;
    settings->to_driver_buffer_length = pace->commands_length + ASI_RING_TRAILER_LENGTH;
    settings->to_clients_buffer_length = pace->commands_length + ASI_BROADCAST_TRAILER_LENGTH;
    settings->loss_report_length = 64 * 1024;
    settings->term_buffer_length = AS_TERM_MIN_LENGTH;
    settings->ipc_term_buffer_length = AS_TERM_MIN_LENGTH;
    settings->initial_window_length = PICK(rand, WINDOWS);
    settings->socket_rcvbuf_length = percent(rand, 50) ? 128 * 1024 : 1024 * 1024;
    settings->max_messages_per_send = PICK(rand, BATCHES);
    settings->sender_io_vector_capacity = PICK(rand, BATCHES);
    settings->receiver_io_vector_capacity = PICK(rand, BATCHES);
    settings->send_to_status_poll_ratio = between(rand, 1, 8);
    settings->max_resend = percent(rand, 50) ? 16 : between(rand, 1, 4);
    settings->retransmit_unicast_delay_ns = percent(rand, 60) ? 0 : between(rand, 50, 1000) * 1000;
    settings->retransmit_unicast_linger_ns = between(rand, 1, 10) * MS;
    settings->nak_ahead = percent(rand, 50);
    settings->nak_multicast_max_backoff_ns = between(rand, 1, 10) * MS;
    settings->cubic_measure_rtt = percent(rand, 50);
    settings->cubic_tcp_mode = percent(rand, 50);
    make_times(plan, pace, rand);
}

/* -- streams ------------------------------------------------------------------------------------------------------------ */

static const int32_t MTUS[] = { 96, 288, 1408, 1408, 4096, 8192 };

static void put_publication_options(const sim_plan *plan, sim_flow_plan *flow, asi_rand *rand)
{
    static const int32_t WINDOWS[] = { 8 * 1024, 16 * 1024, 32 * 1024 };
    int32_t mtu = PICK(rand, MTUS);
    /* A receiver reports consumption in steps of a quarter window (Spec: 04 §8.7): a step of about an MTU has no space for a full
     * frame. */
    while (2 * mtu > plan->settings.initial_window_length)
    {
        mtu = PICK(rand, MTUS);
    }
    const bool is_big = percent(rand, 20);
    put(flow->channel, "|mtu=%d|term-length=%s", mtu, is_big ? "128k" : "64k");
    flow->mtu_length = mtu;
    flow->term_length = is_big ? 128 * 1024 : 64 * 1024;
    if (percent(rand, 50)) /* an explicit position; half of them where term ids wrap */
    {
        const int32_t initial = percent(rand, 50) ? INT32_MAX - (int32_t)below(rand, 3) : (int32_t)asi_rand_u64(rand);
        put(flow->channel, "|init-term-id=%d|term-id=%d|term-offset=%d", initial, asi_wrap_add(initial, (int32_t)below(rand, 4)),
            32 * (int32_t)below(rand, 2049));
    }
    if (percent(rand, 30))
    {
        flow->window_length = PICK(rand, WINDOWS);
        put(flow->channel, "|pub-wnd=%d", (int32_t)flow->window_length);
    }
    if (SIM_IPC == flow->kind)
    {
        return;
    }
    flow->has_eos = !percent(rand, 10);
    put(flow->channel, "%s", flow->has_eos ? "" : "|eos=false");
    const bool has_spy = flow->subscribers[flow->subscriber_count - 1].is_spy;
    put(flow->channel, "%s", percent(rand, has_spy ? 50 : 20) ? "|ssc=true" : "");
    if (percent(rand, 20))
    {
        put(flow->channel, "|linger=250ms");
    }
}

static void put_flow_control(sim_flow_plan *flow, asi_rand *rand, bool *is_tagged)
{
    static const char *const STRATEGIES[] = { "", "|fc=max", "|fc=min", "|fc=min", "|fc=min,g:/1", "|fc=tagged,g:5/1" };
    const char *strategy = PICK(rand, STRATEGIES);
    put(flow->channel, "%s", strategy);
    *is_tagged = NULL != strstr(strategy, "tagged");
}

static void put_subscription_options(sim_subscriber_plan *subscriber, bool is_reliable, bool is_tagged, asi_rand *rand)
{
    subscriber->is_reliable = is_reliable;
    subscriber->is_tethered = !percent(rand, 10);
    put(subscriber->channel, "%s", is_reliable ? "" : "|reliable=false");
    put(subscriber->channel, "%s", subscriber->is_tethered ? "" : "|tether=false");
    put(subscriber->channel, "%s", percent(rand, 30) ? "|cc=cubic" : "");
    put(subscriber->channel, "%s", percent(rand, 20) ? "|group=true" : percent(rand, 20) ? "|group=false" : "");
    put(subscriber->channel, "%s", is_tagged ? "|gtag=5" : "");
    put(subscriber->channel, "%s", percent(rand, 20) ? "|nak-delay=500us" : "");
}

static void make_ipc(sim_flow_plan *flow, asi_rand *rand)
{
    strcpy(flow->channel, "aeron:ipc?alias=sim");
    for (int32_t i = 0; i < flow->subscriber_count; i++)
    {
        sim_subscriber_plan *subscriber = &flow->subscribers[i];
        subscriber->node = flow->node;
        subscriber->is_reliable = true;
        subscriber->is_tethered = !percent(rand, 20);
        put(subscriber->channel, "aeron:ipc%s", subscriber->is_tethered ? "" : "?tether=false");
    }
}

static void make_unicast(sim_flow_plan *flow, int32_t port, asi_rand *rand, int32_t node_count, bool is_reliable)
{
    const int32_t node = (int32_t)below(rand, node_count);
    put(flow->channel, "aeron:udp?endpoint=10.0.0.%d:%d", node + 1, port);
    for (int32_t i = 0; i < flow->subscriber_count; i++)
    {
        sim_subscriber_plan *subscriber = &flow->subscribers[i];
        subscriber->node = node;
        put(subscriber->channel, "aeron:udp?endpoint=10.0.0.%d:%d", node + 1, port);
        put_subscription_options(subscriber, is_reliable, false, rand);
    }
}

/* Half of the groups are at the port of another stream's, as where a site has one port for all groups. */
static void share_port(const sim_plan *plan, sim_flow_plan *flow, asi_rand *rand)
{
    for (const sim_flow_plan *other = plan->flows; other < flow; other++)
    {
        if (SIM_MULTICAST == other->kind && percent(rand, 50))
        {
            flow->first_port = other->first_port;
        }
    }
}

static void make_multicast(const sim_plan *plan, sim_flow_plan *flow, asi_rand *rand, bool is_reliable)
{
    bool is_tagged;
    const int32_t node_count = plan->node_count;
    share_port(plan, flow, rand);
    flow->group = 1 + 2 * (SIM_MAX_FLOWS * (int32_t)below(rand, GROUPS_PER_FLOW) + flow->stream_id - FIRST_STREAM_ID);
    put(flow->channel, "aeron:udp?endpoint=224.20.30.%d:%d%s", flow->group, flow->first_port,
        percent(rand, 50) ? "|interface=10.0.0.0/24" : "");
    for (int32_t i = 0; i < flow->subscriber_count; i++)
    {
        flow->subscribers[i].node = (int32_t)below(rand, node_count);
        strcpy(flow->subscribers[i].channel, flow->channel);
    }
    put_flow_control(flow, rand, &is_tagged);
    /* The tag is the endpoint's, which the subscriptions of one node share, and comes of the first of them (Spec: 04 §8.7.3). */
    const int32_t tagged_node = flow->subscribers[0].node;
    const bool is_other_tagged = percent(rand, 50);
    for (int32_t i = 0; i < flow->subscriber_count; i++)
    {
        sim_subscriber_plan *subscriber = &flow->subscribers[i];
        put_subscription_options(subscriber, is_reliable, is_tagged && (tagged_node == subscriber->node || is_other_tagged), rand);
    }
}

static void make_mdc(sim_flow_plan *flow, int32_t port, asi_rand *rand, int32_t node_count, bool is_reliable)
{
    bool is_tagged;
    char control[64] = "";
    const bool is_dynamic = SIM_MDC_DYNAMIC == flow->kind;
    if (is_dynamic)
    {
        snprintf(control, sizeof(control), "control=10.0.0.%d:%d|control-mode=dynamic", flow->node + 1, port);
    }
    put(flow->channel, "aeron:udp?%s", is_dynamic ? control : "control-mode=manual");
    put_flow_control(flow, rand, &is_tagged);
    for (int32_t i = 0; i < flow->subscriber_count; i++)
    {
        sim_subscriber_plan *subscriber = &flow->subscribers[i];
        subscriber->node = (int32_t)below(rand, node_count);
        put(subscriber->channel, "aeron:udp?endpoint=10.0.0.%d:%d", subscriber->node + 1, port + 1 + i);
        if (is_dynamic)
        {
            put(subscriber->channel, "|%s", control);
        }
        else
        {
            strcpy(flow->destinations[flow->destination_count++], subscriber->channel);
        }
        put_subscription_options(subscriber, is_reliable, is_tagged && (0 == i || percent(rand, 50)), rand);
    }
}

static void make_mds(sim_flow_plan *flow, int32_t port, asi_rand *rand, int32_t node_count, bool is_reliable)
{
    flow->subscriber_count = 1;
    put(flow->channel, "aeron:udp?control-mode=manual");
    sim_subscriber_plan *subscriber = &flow->subscribers[0];
    subscriber->node = (int32_t)below(rand, node_count);
    put(subscriber->channel, "aeron:udp?control-mode=manual");
    subscriber->destination_count = SIM_MAX_DESTINATIONS;
    for (int32_t i = 0; i < SIM_MAX_DESTINATIONS; i++)
    {
        put(subscriber->destinations[i], "aeron:udp?endpoint=10.0.0.%d:%d", subscriber->node + 1, port + 1 + i);
        strcpy(flow->destinations[flow->destination_count++], subscriber->destinations[i]);
    }
    put_subscription_options(subscriber, is_reliable, false, rand);
}

static void make_spy(sim_flow_plan *flow)
{
    sim_subscriber_plan *spy = &flow->subscribers[flow->subscriber_count - 1];
    *spy = (sim_subscriber_plan){ .node = flow->node, .is_spy = true, .is_reliable = true, .is_tethered = true };
    /* Of the publication's URI, the part that makes its canonical form. */
    put(spy->channel, "aeron-spy:%s", flow->channel);
}

static void make_flow(sim_plan *plan, int32_t index, asi_rand *rand)
{
    static const int32_t LENGTHS[] = { 64, 1000, 1376, 8000 };
    sim_flow_plan *flow = &plan->flows[index];
    const int32_t port = FIRST_PORT + SIM_PORTS_PER_FLOW * index;
    const bool is_reliable = !percent(rand, 25);
    *flow = (sim_flow_plan){
        .kind = (sim_kind)(percent(rand, 25) ? SIM_UNICAST : below(rand, SIM_KIND_COUNT)),
        .stream_id = FIRST_STREAM_ID + index,
        .node = (int32_t)below(rand, plan->node_count),
        .first_port = port,
        .is_exclusive = percent(rand, 50),
        .handles = 1 + (int32_t)below(rand, 2),
        .has_eos = true,
        .subscriber_count = 1 + (int32_t)below(rand, SIM_MAX_SUBSCRIBERS),
        .max_length = PICK(rand, LENGTHS),
        .interval_ns = percent(rand, 20) ? 0 : between(rand, 20, 2000) * 1000,
        .burst = 1 + (int32_t)below(rand, 8),
        .is_claiming = percent(rand, 40)
    };
    switch (flow->kind)
    {
        case SIM_UNICAST: make_unicast(flow, port, rand, plan->node_count, is_reliable); break;
        case SIM_MULTICAST: make_multicast(plan, flow, rand, is_reliable); break;
        case SIM_MDC_DYNAMIC:
        case SIM_MDC_MANUAL: make_mdc(flow, port, rand, plan->node_count, is_reliable); break;
        case SIM_MDS: make_mds(flow, port, rand, plan->node_count, is_reliable); break;
        case SIM_IPC: make_ipc(flow, rand); break;
        case SIM_KIND_COUNT: break;
    }
    if (SIM_MDC_MANUAL == flow->kind || SIM_MDS == flow->kind)
    {
        flow->handles = 1; /* each such publication has an endpoint of its own */
    }
    /* Manual publications have a canonical form of their own, so nobody can name them. */
    if (flow->subscriber_count > 1 && percent(rand, 30) &&
        (SIM_UNICAST == flow->kind || SIM_MULTICAST == flow->kind || SIM_MDC_DYNAMIC == flow->kind))
    {
        make_spy(flow);
    }
    if (SIM_IPC == flow->kind && flow->interval_ns < 50000)
    {
        flow->interval_ns = 50000; /* nothing else holds it back, and there is little to see in it */
    }
    put_publication_options(plan, flow, rand);
}

/* -- network ------------------------------------------------------------------------------------------------------------ */

static int32_t some(asi_rand *rand, int64_t chance_of_any, int64_t max)
{
    return percent(rand, chance_of_any) ? (int32_t)between(rand, 1, max) : 0;
}

static void make_faults(sim_plan *plan, const sim_pace *pace, asi_rand *rand)
{
    const bool is_clean = percent(rand, 30);
    plan->faults = (sim_faults){
        .lost = some(rand, 70, 1500),
        .duplicated = some(rand, 50, 500),
        .reordered = some(rand, 50, 1000),
        .stale = is_clean ? 0 : some(rand, 40, 100),
        .truncated = is_clean ? 0 : some(rand, 40, 300),
        .corrupted = is_clean ? 0 : some(rand, 40, 300),
        .forged = is_clean ? 0 : some(rand, 40, 300),
        .short_send = some(rand, 40, 1000),
        .delay_ns = between(rand, 1, 50) * (percent(rand, 70) ? 1000 : 100000),
        .jitter_ns = between(rand, 0, 100) * 1000,
        .stale_ns = plan->max_stale_ns
    };
    plan->storm_ns = in(rand, pace->storm);
    plan->event_interval_ns = percent(rand, 20) ? INT64_MAX : in(rand, pace->event_interval);
    plan->has_driver_deaths = percent(rand, 30);
}

/* Limits so low that an adversary of a few thousand datagrams gets to them. */
static void make_adversary(sim_plan *plan, asi_rand *rand)
{
    static const int64_t TERMS[] = { 128 * 1024, 1024 * 1024, 1024 * 1024 * 1024 };
    asi_driver_settings *settings = &plan->settings;
    plan->has_adversary = true;
    plan->is_sighted = percent(rand, 60);
    plan->is_scarce = percent(rand, 40);
    plan->has_resolver = percent(rand, 25);
    settings->images_unbegun_max = between(rand, 16, 48);
    settings->image_term_length_max = PICK(rand, TERMS);
    settings->stream_session_limit = percent(rand, 30) ? 32 : settings->stream_session_limit;
    settings->error_buffer_length = 32 * 1024;
    settings->resolver_neighbor_timeout_ns = between(rand, 300, 1000) * MS;
    settings->resolver_self_interval_ns = between(rand, 50, 200) * MS;
    settings->resolver_neighbor_interval_ns = between(rand, 200, 500) * MS;
}

void sim_plan_make(sim_plan *plan, uint64_t seed, bool is_siege)
{
    const sim_pace *pace = is_siege ? &SIEGE : &USUAL;
    asi_rand rand;
    asi_rand_seed(&rand, seed * 0x9e3779b97f4a7c15ULL + 1);
    *plan = (sim_plan){ .seed = seed };
    plan->node_count = 2 + (int32_t)below(&rand, 2);
    make_settings(plan, pace, &rand);
    make_faults(plan, pace, &rand);
    plan->flow_count = 1 + (int32_t)below(&rand, SIM_MAX_FLOWS);
    for (int32_t i = 0; i < plan->flow_count; i++)
    {
        make_flow(plan, i, &rand);
    }
    if (is_siege || 0 == seed % SEEDS_PER_ADVERSARY)
    {
        make_adversary(plan, &rand);
    }
}

void sim_plan_print(const sim_plan *plan)
{
    if (plan->has_adversary)
    {
        printf("an adversary that %s%s%s\n", plan->is_sighted ? "listens" : "guesses",
            plan->is_scarce ? "; storage and descriptors run out" : "", plan->has_resolver ? "; drivers tell names" : "");
    }
    for (int32_t i = 0; i < plan->flow_count; i++)
    {
        const sim_flow_plan *flow = &plan->flows[i];
        printf("stream %d at node %d, %s: %s\n", flow->stream_id, flow->node, flow->is_exclusive ? "exclusive" : "shared",
            flow->channel);
        for (int32_t k = 0; k < flow->subscriber_count; k++)
        {
            printf("  node %d: %s\n", flow->subscribers[k].node, flow->subscribers[k].channel);
        }
    }
}
