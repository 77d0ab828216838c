/* Faults by seed, besides the network's own; see sim_world.h. */
#include <string.h>

#include "sim_scarce.h"
#include "sim_trace.h"
#include "sim_world.h"

#define MS 1000000LL

static sim_flow *some_flow(sim_world *world) { return &world->flows[sim_below(world, world->plan->flow_count)]; }

static sim_subscriber *some_subscriber(sim_world *world)
{
    sim_flow *flow = some_flow(world);
    return &flow->subscribers[sim_below(world, flow->publisher.plan->subscriber_count)];
}

/* The driver's image stays until all of its subscribers have read what there is: one of them excuses it for all. */
static void excuse_image(auditor *a, const auditor_image *stalled, int64_t until_ns)
{
    for (int32_t i = 0; i < a->image_count; i++)
    {
        auditor_image *image = &a->images[i];
        if (image->is_open && image->driver == stalled->driver && image->correlation_id == stalled->correlation_id &&
            image->stalled_until_ns < until_ns)
        {
            image->stalled_until_ns = until_ns;
        }
    }
}

/* Until then the subscriber reads nothing, or its client does not hear what the driver says. */
static void excuse_images(sim_world *world, const sim_subscriber *subscriber, int64_t until_ns)
{
    auditor *a = &world->audit;
    for (int32_t i = 0; i < a->image_count; i++)
    {
        if (a->images[i].is_open && a->images[i].subscription == subscriber->subscription)
        {
            excuse_image(a, &a->images[i], until_ns);
        }
    }
}

static void pause_driver(sim_world *world)
{
    sim_node *node = &world->nodes[sim_below(world, world->plan->node_count)];
    node->paused_until_ns = world->now_ns + sim_below(world, world->plan->max_pause_ns);
}

static void stall_subscriber(sim_world *world)
{
    sim_subscriber *subscriber = some_subscriber(world);
    const int64_t until_ns = world->now_ns + 10 * MS + sim_below(world, world->plan->max_stall_ns);
    if (NULL != subscriber->subscription)
    {
        sim_trace("stream %d: a subscriber at node %d stalls until %.3f", subscriber->flow->stream_id, subscriber->plan->node,
            (double)until_ns / 1e9);
        subscriber->stalled_until_ns = until_ns;
        excuse_images(world, subscriber, until_ns);
    }
}

/* For less than half the liveness timeout, so that nobody minds, or so long that the driver must have given it up. */
static int64_t stall_ns(sim_world *world, bool is_deadly)
{
    const auditor_times *times = &world->plan->times;
    return is_deadly ? times->client_liveness_ns + 4 * times->timer_interval_ns + 2 * times->slack_ns + 200 * MS :
        sim_below(world, times->client_liveness_ns / 2);
}

static void stall_client(sim_world *world)
{
    const bool is_deadly = sim_percent(world, 40);
    const int64_t until_ns = world->now_ns + stall_ns(world, is_deadly);
    sim_publisher *publisher = &some_flow(world)->publisher;
    sim_subscriber *subscriber = some_subscriber(world);
    if (sim_percent(world, 50))
    {
        subscriber = NULL;
    }
    if (NULL == subscriber && NULL != publisher->client && world->now_ns >= publisher->client->stalled_until_ns)
    {
        sim_trace("stream %d: the publisher's client is not run until %.3f", publisher->plan->stream_id, (double)until_ns / 1e9);
        publisher->client->stalled_until_ns = until_ns;
        if (is_deadly)
        {
            auditor_on_client_dead(&world->audit, publisher->client->node->judged, as_client_id(publisher->client->client));
        }
        if (is_deadly && NULL != publisher->stream)
        {
            auditor_on_publication_end(&world->audit, publisher->stream, publisher->handles[0], AUDITOR_CLOSED);
        }
    }
    else if (NULL != subscriber && NULL != subscriber->client && world->now_ns >= subscriber->client->stalled_until_ns)
    {
        sim_trace("stream %d: a subscriber's client is not run until %.3f", subscriber->flow->stream_id, (double)until_ns / 1e9);
        subscriber->client->stalled_until_ns = until_ns;
        excuse_images(world, subscriber, until_ns);
        if (is_deadly)
        {
            auditor_on_client_dead(&world->audit, subscriber->client->node->judged, as_client_id(subscriber->client->client));
        }
    }
}

static void kill_client(sim_world *world)
{
    if (sim_percent(world, 50))
    {
        sim_publisher *publisher = &some_flow(world)->publisher;
        if (NULL != publisher->client && world->now_ns >= publisher->client->stalled_until_ns)
        {
            sim_publisher_abandon(world, publisher);
        }
        return;
    }
    sim_subscriber *subscriber = some_subscriber(world);
    if (NULL != subscriber->client && world->now_ns >= subscriber->client->stalled_until_ns)
    {
        sim_subscriber_abandon(world, subscriber);
    }
}

static bool is_running(const sim_world *world, const sim_client *client)
{
    return NULL != client && world->now_ns >= client->stalled_until_ns && !as_client_is_closed(client->client);
}

static void close_something(sim_world *world)
{
    if (sim_percent(world, 50))
    {
        sim_publisher *publisher = &some_flow(world)->publisher;
        if (is_running(world, publisher->client))
        {
            sim_publisher_close(world, publisher, sim_percent(world, 30));
        }
        return;
    }
    sim_subscriber *subscriber = some_subscriber(world);
    if (is_running(world, subscriber->client))
    {
        sim_subscriber_close(world, subscriber);
    }
}

static void kill_driver(sim_world *world)
{
    sim_node *node = &world->nodes[sim_below(world, world->plan->node_count)];
    if (world->plan->has_driver_deaths && NULL != node->driver && world->zombie_count < SIM_MAX_ZOMBIES / 2)
    {
        sim_node_kill(node);
        node->restart_ns = world->now_ns + (world->plan->settings.driver_timeout_ms + 50) * MS +
            sim_below(world, world->plan->settings.driver_timeout_ms * MS / 2);
    }
}

static void cut_link(sim_world *world)
{
    const int32_t from = (int32_t)sim_below(world, world->plan->node_count);
    const int32_t to = (int32_t)sim_below(world, world->plan->node_count);
    const int64_t until_ns = world->now_ns + sim_below(world, world->plan->times.image_liveness_ns * 3 / 2);
    const bool is_both = sim_percent(world, 50);
    sim_trace("node %d does not reach node %d%s until %.3f", from, to, is_both ? ", nor the other way," : "",
        (double)until_ns / 1e9);
    world->net.is_cut[from][to] = true;
    world->heal_ns[from][to] = until_ns;
    if (is_both)
    {
        world->net.is_cut[to][from] = true;
        world->heal_ns[to][from] = until_ns;
    }
}

static void heal_links(sim_world *world)
{
    for (int32_t i = 0; i < world->plan->node_count; i++)
    {
        for (int32_t k = 0; k < world->plan->node_count; k++)
        {
            world->net.is_cut[i][k] = world->net.is_cut[i][k] && world->now_ns < world->heal_ns[i][k];
        }
    }
}

static void reject_image(sim_world *world)
{
    sim_subscriber *subscriber = some_subscriber(world);
    if (!is_running(world, subscriber->client) || NULL == subscriber->subscription || subscriber->plan->is_spy)
    {
        return;
    }
    as_image *image = as_subscription_image_at(subscriber->subscription, 0);
    if (NULL == image)
    {
        return;
    }
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    sim_trace("stream %d: image %" PRId64 " of session %d is rejected", constants.stream_id, constants.correlation_id,
        constants.session_id);
    for (int32_t i = 0; i < world->audit.image_count; i++)
    {
        auditor_image *judged = &world->audit.images[i];
        if (judged->driver == subscriber->seat->judged && judged->correlation_id == constants.correlation_id)
        {
            judged->is_rejected = true;
            judged->rejected_ns = world->now_ns;
        }
    }
    world->waiting = subscriber->client;
    if (AS_OK != as_image_reject(image, "the simulation wills it"))
    {
        sim_trace("stream %d: not rejected: %.150s", constants.stream_id, as_error_text());
    }
    world->waiting = NULL;
    as_image_release(image);
}

static void change_destination(sim_world *world)
{
    sim_flow *flow = some_flow(world);
    sim_publisher *publisher = &flow->publisher;
    const sim_flow_plan *plan = publisher->plan;
    if (0 == plan->destination_count || !is_running(world, publisher->client) || NULL == publisher->handles[0] ||
        publisher->destinations_added < plan->destination_count)
    {
        return;
    }
    /* The last one goes and is added again when the publisher works next. */
    world->waiting = publisher->client;
    const char *channel = plan->destinations[plan->destination_count - 1];
    sim_trace("stream %d: destination %s is removed", plan->stream_id, channel);
    if (AS_OK == as_publication_remove_destination(publisher->handles[0], channel))
    {
        publisher->destinations_added--;
    }
    world->waiting = NULL;
}

static void change_scarcity(sim_world *world)
{
    sim_scarce.is_full = !sim_scarce.is_full;
    world->next_full_ns = world->now_ns + 1 + sim_below(world, (sim_scarce.is_full ? 150 : 600) * MS);
    sim_trace("storage and descriptors %s", sim_scarce.is_full ? "have run out" : "are there");
}

static void (*const EVENTS[])(sim_world *world) = { pause_driver, pause_driver, stall_subscriber, stall_subscriber, stall_client,
    kill_client, close_something, close_something, kill_driver, cut_link, cut_link, reject_image, change_destination };

void sim_storm_work(sim_world *world)
{
    if (!world->is_storm)
    {
        return;
    }
    heal_links(world);
    if (world->plan->is_scarce && world->now_ns >= world->next_full_ns)
    {
        change_scarcity(world);
    }
    if (world->now_ns < world->next_event_ns || INT64_MAX == world->plan->event_interval_ns)
    {
        return;
    }
    world->next_event_ns = world->now_ns + 1 + sim_below(world, 2 * world->plan->event_interval_ns);
    world->events++;
    EVENTS[sim_below(world, sizeof(EVENTS) / sizeof(EVENTS[0]))](world);
}

void sim_storm_end(sim_world *world)
{
    world->is_storm = false;
    sim_scarce.is_full = false;
    world->net.faults = (sim_faults){ .delay_ns = world->plan->faults.delay_ns, .jitter_ns = world->plan->faults.jitter_ns };
    memset(world->net.is_cut, 0, sizeof(world->net.is_cut));
    for (int32_t i = 0; i < world->plan->flow_count; i++)
    {
        for (int32_t k = 0; k < SIM_MAX_SUBSCRIBERS; k++)
        {
            world->flows[i].subscribers[k].stalled_until_ns = 0;
        }
    }
    sim_trace("the storm is over");
}
