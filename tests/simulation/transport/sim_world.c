/* Machines, clients and time; see sim_world.h. */
#include "sim_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "sim_machine.h"
#include "sim_scarce.h"
#include "sim_trace.h"

#define MS 1000000LL
#define CLIENT_LINGER_NS (50 * MS)
#define SPIN_NS 20000

int64_t sim_below(sim_world *world, int64_t bound) { return sim_random_below(&world->rand, bound); }
bool sim_percent(sim_world *world, int64_t chance) { return sim_random_percent(&world->rand, chance); }

/* -- clocks ------------------------------------------------------------------------------------------------------------- */

static int64_t nano_time(void *context)
{
    const sim_node *node = context;
    return node->world->now_ns + node->clock_offset_ns;
}

static int64_t epoch_ns(void *context) { return ((const sim_node *)context)->world->now_ns + SIM_EPOCH_NS; }
static int64_t epoch_ms(void *context) { return epoch_ns(context) / MS; }

/* -- nodes -------------------------------------------------------------------------------------------------------------- */

static as_result start(sim_node *node, as_driver **driver)
{
    sim_world *world = node->world;
    asi_driver_settings settings = world->plan->settings;
    snprintf(settings.aeron_dir, sizeof(settings.aeron_dir), "%s", node->dir);
    if (world->plan->has_resolver)
    {
        snprintf(settings.name_resolver, sizeof(settings.name_resolver), "driver");
        snprintf(settings.resolver_name, sizeof(settings.resolver_name), "node%d", node->index);
        snprintf(settings.resolver_interface, sizeof(settings.resolver_interface), "10.0.0.%d:%d", node->index + 1,
            SIM_RESOLVER_PORT);
        snprintf(settings.resolver_bootstrap, sizeof(settings.resolver_bootstrap), "10.0.0.1:%d", SIM_RESOLVER_PORT);
    }
    asi_driver_dependencies dependencies = { .clock = node->clock, .ops = sim_net_ops(node->host),
        .resolver = { .resolve = sim_resolve } };
    asi_rand_seed(&dependencies.rand, asi_rand_u64(&world->rand));
    return asi_driver_open_with(&settings, &dependencies, NULL, NULL, driver);
}

void sim_node_start(sim_node *node)
{
    node->host = sim_net_add_host(&node->world->net, node->index);
    if (AS_OK != start(node, &node->driver))
    {
        sim_fail("setup", "driver of node %d: %s", node->index, as_error_text());
    }
    node->judged = auditor_on_driver(&node->world->audit, node->host, node->dir);
    sim_trace("node %d: driver %d starts", node->index, node->judged);
}

void sim_node_kill(sim_node *node)
{
    sim_world *world = node->world;
    sim_trace("node %d: driver %d is killed", node->index, node->judged);
    sim_net_kill_host(node->host);
    auditor_on_driver_gone(&world->audit, node->judged);
    for (int32_t i = 0; i < world->audit.stream_count; i++)
    {
        if (world->audit.streams[i].driver == node->judged)
        {
            auditor_on_publication_end(&world->audit, &world->audit.streams[i], NULL, AUDITOR_LOST);
        }
    }
    world->zombies[world->zombie_count++] = node->driver;
    node->driver = NULL;
    node->killed_ns = world->now_ns;
    node->is_refused = false;
}

/* A killed driver's directory looks alive until its heartbeat is as old as the driver timeout. Spec: 01 §1.4. */
static void restart_if_due(sim_node *node)
{
    sim_world *world = node->world;
    const int64_t dead_ns = world->now_ns - node->killed_ns;
    if (!node->is_refused && dead_ns > 50 * MS && dead_ns < world->plan->settings.driver_timeout_ms * MS / 2)
    {
        as_driver *too_early;
        const sim_host *host = node->host;
        if (AS_E_USAGE != start(node, &too_early))
        {
            sim_fail("liveness", "a driver started in %s though the last heartbeat there is not old", node->dir);
        }
        node->host = (sim_host *)(uintptr_t)host;
        node->is_refused = true;
    }
    if (world->now_ns >= node->restart_ns)
    {
        sim_node_start(node);
    }
}

static bool run_drivers(sim_world *world)
{
    bool is_busy = false;
    const int32_t first = (int32_t)(world->rounds % world->plan->node_count);
    for (int32_t i = 0; i < world->plan->node_count; i++)
    {
        sim_node *node = &world->nodes[(first + i) % world->plan->node_count];
        if (NULL == node->driver)
        {
            restart_if_due(node);
        }
        else if (world->now_ns >= node->paused_until_ns)
        {
            const sim_host before = *node->host;
            sim_scarce.is_driver_running = true;
            world->net.has_no_sockets = sim_scarce.is_full;
            is_busy |= as_driver_do_work(node->driver) > 0;
            world->net.has_no_sockets = false;
            sim_scarce.is_driver_running = false;
            auditor_on_cycle(&world->audit, node->judged, &before);
        }
    }
    return is_busy;
}

/* -- clients ------------------------------------------------------------------------------------------------------------ */

static bool run_clients(sim_world *world)
{
    bool is_busy = false;
    for (int32_t i = 0; i < world->client_count; i++)
    {
        sim_client *client = &world->clients[i];
        if (NULL != client->client && !client->is_zombie && world->now_ns >= client->stalled_until_ns && client != world->waiting)
        {
            is_busy |= as_client_invoke(client->client) > 0;
        }
    }
    return is_busy;
}

/* While a client waits for its driver, the others go on. */
static void spin(void *context)
{
    sim_node *node = context;
    sim_world *world = node->world;
    world->now_ns += SPIN_NS;
    run_drivers(world);
    run_clients(world);
}

static void on_error(void *context, as_result result, int32_t code, const char *text)
{
    const sim_node *node = context;
    sim_trace("client of node %d: error %d, %d: %.120s", node->index, (int)result, code, text);
}

sim_client *sim_client_open(sim_node *node)
{
    sim_world *world = node->world;
    if (NULL == node->driver)
    {
        return NULL;
    }
    if (SIM_MAX_CLIENTS == world->client_count)
    {
        sim_fail("setup", "more than %d clients", SIM_MAX_CLIENTS);
    }
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = node->dir;
    options.client_name = "sim";
    options.driver_timeout_ns = world->plan->settings.driver_timeout_ms * MS;
    options.keepalive_interval_ns = world->plan->keepalive_ns;
    options.resource_linger_ns = CLIENT_LINGER_NS;
    options.use_invoker = true;
    options.driver_invoker = spin;
    options.driver_invoker_context = node;
    options.on_error = on_error;
    options.context = node;
    sim_client *client = &world->clients[world->client_count++];
    *client = (sim_client){ .node = node };
    world->waiting = client;
    if (AS_OK != asi_client_open_with_clock(&options, &node->clock, &client->client))
    {
        sim_fail("setup", "client of node %d: %s", node->index, as_error_text());
    }
    world->waiting = NULL;
    return client;
}

void sim_client_close(sim_world *world, sim_client *client)
{
    world->waiting = client;
    as_client_close(client->client);
    world->waiting = NULL;
    client->client = NULL;
}

/* -- the world ---------------------------------------------------------------------------------------------------------- */

/* Of every datagram that a driver sends. */
static void on_sent(void *context, const sim_sighting *sighting)
{
    sim_world *world = context;
    auditor_judge_sent(&world->audit, sighting);
    auditor_on_sent(&world->audit, sighting);
    sim_adversary_see(&world->adversary, sighting);
}

static void open_adversary(sim_world *world)
{
    const sim_plan *plan = world->plan;
    const asi_driver_settings *settings = &plan->settings;
    auditor_limits limits = {
        .node_count = plan->node_count,
        .flow_count = plan->flow_count,
        .receivers_max = SIM_MAX_SUBSCRIBERS * SIM_MAX_DESTINATIONS,
        .images_unbegun_max = settings->images_unbegun_max,
        .image_term_length_max = settings->image_term_length_max,
        .window_length = settings->initial_window_length,
        .max_resend = settings->max_resend,
        .status_message_ns = settings->status_message_timeout_ns,
        .rttm_ns = settings->cubic_measure_rtt ? 4 * settings->cubic_initial_rtt_ns : 0,
        .gossip_interval_ns = plan->has_resolver ? settings->resolver_self_interval_ns : 0
    };
    for (int32_t i = 0; i < plan->flow_count; i++)
    {
        limits.unreliable[i] = plan->flows[i].subscribers[0].is_reliable ? 0 : plan->flows[i].stream_id;
    }
    auditor_bounds_open(&world->audit, &limits);
    sim_adversary_open(&world->adversary, &world->net, &world->audit, plan);
    world->next_full_ns = world->now_ns;
}

static void open_node(sim_world *world, int32_t index)
{
    sim_node *node = &world->nodes[index];
    *node = (sim_node){ .index = index, .world = world, .clock_offset_ns = (index + 1) * 1000000000000LL };
    node->clock = (asi_clock){ .nano_time = nano_time, .epoch_ms = epoch_ms, .epoch_ns = epoch_ns, .context = node };
    snprintf(node->dir, sizeof(node->dir), "%.4000s/node%d", world->dir, index);
    sim_node_start(node);
}

void sim_world_open(sim_world *world, const sim_plan *plan, const char *dir)
{
    memset(world, 0, sizeof(*world));
    world->plan = plan;
    world->now_ns = 1000 * MS;
    snprintf(world->dir, sizeof(world->dir), "%s", dir);
    asi_rand_seed(&world->rand, plan->seed);
    sim_net_init(&world->net, &world->now_ns, asi_rand_u64(&world->rand));
    world->net.epoch_offset_ns = SIM_EPOCH_NS;
    world->net.tap = auditor_on_datagram;
    world->net.tap_context = &world->audit;
    world->net.spy = on_sent;
    world->net.spy_context = world;
    auditor_open(&world->audit, &world->now_ns, &plan->times);
    for (int32_t i = 0; i < plan->flow_count; i++)
    {
        const sim_flow_plan *flow = &plan->flows[i];
        auditor_set_flow(&world->audit, &(auditor_flow){ .stream_id = flow->stream_id, .term_length = flow->term_length,
            .mtu_length = flow->mtu_length, .first_port = flow->first_port, .port_count = SIM_PORTS_PER_FLOW });
    }
    for (int32_t i = 0; i < plan->node_count; i++)
    {
        open_node(world, i);
    }
    if (plan->has_adversary)
    {
        open_adversary(world);
    }
    for (int32_t i = 0; i < plan->flow_count; i++)
    {
        sim_flow *flow = &world->flows[i];
        flow->publisher = (sim_publisher){ .plan = &plan->flows[i], .requests = { AS_NULL_VALUE, AS_NULL_VALUE },
            .next_number = 1 + 1000000LL * i, .reopen_ns = world->now_ns + sim_below(world, 100 * MS) };
        for (int32_t k = 0; k < plan->flows[i].subscriber_count; k++)
        {
            flow->subscribers[k] = (sim_subscriber){ .flow = &plan->flows[i], .plan = &plan->flows[i].subscribers[k],
                .request = AS_NULL_VALUE, .reopen_ns = world->now_ns + sim_below(world, 100 * MS) };
        }
    }
}

void sim_world_close(sim_world *world)
{
    for (int32_t i = 0; i < world->client_count; i++)
    {
        if (NULL != world->clients[i].client)
        {
            sim_client_close(world, &world->clients[i]);
        }
    }
    for (int32_t i = 0; i < world->plan->node_count; i++)
    {
        as_driver_close(world->nodes[i].driver);
    }
    for (int32_t i = 0; i < world->zombie_count; i++)
    {
        as_driver_close(world->zombies[i]);
    }
    for (int32_t i = 0; i < world->net.host_count; i++)
    {
        if (0 != sim_net_open_sockets(&world->net, &world->net.hosts[i]))
        {
            sim_fail("sockets", "driver %d leaves sockets open", i);
        }
    }
    sim_adversary_close(&world->adversary);
    auditor_close(&world->audit);
    sim_net_close(&world->net);
}

void sim_world_round(sim_world *world)
{
    bool is_busy = run_drivers(world);
    is_busy |= run_clients(world);
    for (int32_t i = 0; i < world->plan->flow_count; i++)
    {
        sim_flow *flow = &world->flows[i];
        is_busy |= sim_publisher_work(world, flow);
        for (int32_t k = 0; k < flow->publisher.plan->subscriber_count; k++)
        {
            is_busy |= sim_subscriber_work(world, &flow->subscribers[k]);
        }
    }
    sim_storm_work(world);
    sim_adversary_work(&world->adversary);
    auditor_look(&world->audit);
    auditor_look_at_bounds(&world->audit);
    world->rounds++;
    const int64_t step_ns = is_busy ? world->plan->step_ns : world->plan->idle_step_ns;
    const int64_t arrival_ns = sim_net_next_ns(&world->net);
    const int64_t next_ns = world->now_ns + step_ns;
    const int64_t least_ns = world->now_ns + 1000;
    world->now_ns = is_busy || arrival_ns > next_ns ? next_ns : arrival_ns < least_ns ? least_ns : arrival_ns;
}
