/* Storm, calm and end of a run; see sim_world.h. */
#include <stdio.h>

#include "sim_trace.h"
#include "sim_world.h"

#define MS 1000000LL
#define GRACE_NS (200 * MS)         /* before the first thing goes wrong */
#define TALK_NS (150 * MS)          /* publishing in the calm */
#define ATTACK_NS (200 * MS)        /* publishing under attack in the calm */
#define COMPLETE_NS (20000 * MS)    /* all is delivered by then, whatever had to be timed out, asked for and resent */

static void run_until(sim_world *world, int64_t until_ns)
{
    while (world->now_ns < until_ns)
    {
        sim_world_round(world);
    }
}

static bool is_everybody_back(const sim_world *world)
{
    for (int32_t i = 0; i < world->plan->node_count; i++)
    {
        if (NULL == world->nodes[i].driver)
        {
            return false;
        }
    }
    for (int32_t i = 0; i < world->client_count; i++)
    {
        const sim_client *client = &world->clients[i];
        if (NULL != client->client && !client->is_zombie && world->now_ns < client->stalled_until_ns)
        {
            return false;
        }
    }
    return true;
}

static bool is_delivered(sim_world *world, const sim_subscriber *subscriber, const auditor_stream *stream)
{
    if (!subscriber->plan->is_reliable)
    {
        as_image *image = as_subscription_image_by_session(subscriber->subscription, stream->session_id);
        if (NULL != image)
        {
            auditor_on_position(&world->audit, subscriber->subscription, image);
            as_image_release(image);
        }
    }
    return auditor_is_delivered(&world->audit, subscriber->subscription, stream);
}

/* The first thing that is not delivered, or NULL. */
static const sim_flow_plan *find_incomplete(sim_world *world, int32_t *subscriber_index)
{
    for (int32_t i = 0; i < world->plan->flow_count; i++)
    {
        const sim_flow *flow = &world->flows[i];
        const sim_flow_plan *plan = flow->publisher.plan;
        for (int32_t k = 0; k < plan->subscriber_count; k++)
        {
            const sim_subscriber *subscriber = &flow->subscribers[k];
            if (NULL == flow->publisher.stream || NULL == subscriber->subscription ||
                !is_delivered(world, subscriber, flow->publisher.stream))
            {
                *subscriber_index = k;
                return plan;
            }
        }
    }
    return NULL;
}

static void wait_until_complete(sim_world *world)
{
    const int64_t deadline_ns = world->now_ns + COMPLETE_NS;
    int32_t subscriber;
    for (const sim_flow_plan *plan = find_incomplete(world, &subscriber); NULL != plan;
         plan = find_incomplete(world, &subscriber))
    {
        if (world->now_ns > deadline_ns)
        {
            sim_fail("complete", "stream %d: subscriber %d (%s) does not get to the end", plan->stream_id, subscriber,
                plan->subscribers[subscriber].channel);
        }
        run_until(world, world->now_ns + 20 * MS);
    }
}

static void talk(sim_world *world)
{
    world->is_publishing = true;
    run_until(world, world->now_ns + TALK_NS);
    world->is_publishing = false;
    wait_until_complete(world);
}

/* Existing streams go on, whatever the adversary does; data published meanwhile is delivered when it pauses. */
static void talk_under_attack(sim_world *world)
{
    world->is_publishing = true;
    sim_adversary_set_active(&world->adversary, true, true);
    run_until(world, world->now_ns + ATTACK_NS);
    sim_adversary_set_active(&world->adversary, false, true);
    world->is_publishing = false;
    wait_until_complete(world);
}

static void calm_down(sim_world *world)
{
    const auditor_times *times = &world->plan->times;
    sim_storm_end(world);
    sim_adversary_set_active(&world->adversary, false, false);
    world->is_publishing = false;
    const int64_t stale_until_ns = world->now_ns + (world->audit.is_wire_clean ? 0 : world->plan->max_stale_ns);
    while (!is_everybody_back(world) || world->now_ns < stale_until_ns)
    {
        sim_world_round(world);
    }
    auditor_set_calm(&world->audit, true);
    sim_trace("calm");
    talk(world);
    /* Whatever was dying has died; from here on nothing may end without reason. */
    run_until(world, world->audit.calm_since_ns + 2 * times->image_liveness_ns + 5 * times->timer_interval_ns +
        6 * times->status_message_ns + 3 * times->slack_ns);
    talk(world);
    if (world->plan->has_adversary)
    {
        talk_under_attack(world);
    }
}

static const auditor_image *find_open_image(const sim_world *world)
{
    for (int32_t i = 0; i < world->audit.image_count; i++)
    {
        if (world->audit.images[i].is_open)
        {
            return &world->audit.images[i];
        }
    }
    return NULL;
}

static void close_publications(sim_world *world)
{
    const auditor_times *times = &world->plan->times;
    for (int32_t i = 0; i < world->plan->flow_count; i++)
    {
        world->flows[i].publisher.is_done = true;
        sim_publisher_close(world, &world->flows[i].publisher, sim_percent(world, 25));
        run_until(world, world->now_ns + 1 + sim_below(world, 50 * MS));
    }
    const int64_t deadline_ns = world->now_ns + 2 * times->image_liveness_ns + times->linger_ns + 10 * times->timer_interval_ns +
        6 * times->status_message_ns + 2 * times->slack_ns;
    for (const auditor_image *image = find_open_image(world); NULL != image; image = find_open_image(world))
    {
        if (world->now_ns > deadline_ns)
        {
            sim_fail("eos", "image %" PRId64 " of session %d at driver %d is still there long after all was closed",
                image->correlation_id, image->session_id, image->driver);
        }
        sim_world_round(world);
    }
}

static void close_rest(sim_world *world)
{
    for (int32_t i = 0; i < world->plan->flow_count; i++)
    {
        sim_flow *flow = &world->flows[i];
        for (int32_t k = 0; k < flow->publisher.plan->subscriber_count; k++)
        {
            flow->subscribers[k].is_done = true;
            sim_subscriber_close(world, &flow->subscribers[k]);
            if (sim_percent(world, 50))
            {
                run_until(world, world->now_ns + 1 + sim_below(world, 50 * MS));
            }
        }
    }
    for (int32_t i = 0; i < world->client_count; i++)
    {
        if (NULL != world->clients[i].client && !world->clients[i].is_zombie)
        {
            sim_client_close(world, &world->clients[i]);
        }
    }
}

/* Nobody is there any more: all that was made for them must go within its timeouts. */
static void wait_until_empty(sim_world *world)
{
    const auditor_times *times = &world->plan->times;
    const int64_t deadline_ns = world->now_ns + 2 * times->image_liveness_ns + times->linger_ns + times->client_liveness_ns +
        times->unblock_ns + 10 * times->timer_interval_ns + 6 * times->status_message_ns + 2 * times->slack_ns;
    for (int32_t i = 0; i < world->plan->node_count; i++)
    {
        char what[512];
        while (!auditor_is_empty(&world->audit, world->nodes[i].judged, what, sizeof(what)))
        {
            if (world->now_ns > deadline_ns)
            {
                sim_fail("leak", "driver %d keeps %s", world->nodes[i].judged, what);
            }
            run_until(world, world->now_ns + 20 * MS);
        }
    }
}

void sim_run(sim_world *world, const sim_plan *plan, const char *dir)
{
    sim_world_open(world, plan, dir);
    const sim_faults *faults = &plan->faults;
    world->net.faults = *faults;
    world->audit.is_wire_clean =
        0 == faults->stale && 0 == faults->truncated && 0 == faults->corrupted && 0 == faults->forged && !plan->has_adversary;
    for (int32_t i = 0; i < plan->flow_count; i++)
    {
        for (int32_t k = 0; k < plan->flows[i].subscriber_count; k++)
        {
            world->audit.has_untethered |= !plan->flows[i].subscribers[k].is_tethered;
        }
    }
    world->is_storm = true;
    world->is_publishing = true;
    sim_adversary_set_active(&world->adversary, true, false);
    world->next_event_ns = world->now_ns + GRACE_NS;
    run_until(world, world->now_ns + plan->storm_ns);
    calm_down(world);
    close_publications(world);
    close_rest(world);
    wait_until_empty(world);
    for (int32_t id = 0; id < 46; id++) /* the figures of every driver are part of what must come out the same */
    {
        for (int32_t i = 0; i < plan->node_count; i++)
        {
            const auditor_driver *driver = &world->audit.drivers[world->nodes[i].judged];
            sim_digest(id, i, asi_load_acquire_i64(asi_counter_addr(&driver->counters, id)));
        }
    }
    sim_world_close(world);
}
