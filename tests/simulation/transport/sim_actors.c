/* Publishers and subscribers; see sim_world.h. */
#include <stdlib.h>
#include <string.h>

#include "sim_trace.h"
#include "sim_world.h"

#define MS 1000000LL
#define REOPEN_NS (20 * MS)
#define FRAGMENT_LIMIT 10
#define GIVEN_UP_PERCENT 5

/* True when the client is there and running; opens one when it is time. */
static bool has_client(sim_world *world, sim_client **client, int32_t node, int64_t reopen_ns)
{
    if (NULL == *client && world->now_ns >= reopen_ns)
    {
        *client = sim_client_open(&world->nodes[node]);
    }
    return NULL != *client && world->now_ns >= (*client)->stalled_until_ns;
}

static sim_client *drop_client(sim_world *world, sim_client *client)
{
    if (NULL != client)
    {
        sim_client_close(world, client);
    }
    return NULL;
}

/* -- publisher ---------------------------------------------------------------------------------------------------------- */

static void forget_publication(sim_world *world, sim_publisher *publisher)
{
    for (int32_t i = 0; i < 2; i++)
    {
        publisher->handles[i] = NULL;
        publisher->requests[i] = AS_NULL_VALUE;
    }
    publisher->stream = NULL;
    publisher->destinations_added = 0;
    publisher->has_abandoned_claim = false;
    publisher->reopen_ns = world->now_ns + REOPEN_NS + sim_below(world, 10 * REOPEN_NS);
}

void sim_publisher_close(sim_world *world, sim_publisher *publisher, bool revoke)
{
    if (NULL == publisher->handles[0])
    {
        return;
    }
    sim_trace("stream %d: publication of session %d is %s at %" PRId64, publisher->plan->stream_id, publisher->stream->session_id,
        revoke ? "revoked" : "closed", publisher->stream->position);
    auditor_on_publication_end(&world->audit, publisher->stream, publisher->handles[0], revoke ? AUDITOR_REVOKED : AUDITOR_CLOSED);
    for (int32_t i = 0; i < 2; i++)
    {
        if (NULL == publisher->handles[i])
        {
            continue;
        }
        if (revoke)
        {
            as_publication_revoke(publisher->handles[i]);
        }
        else
        {
            as_publication_close(publisher->handles[i]);
        }
    }
    /* The second handle may be asked for and not there yet; nobody would close it when it comes. */
    as_client_forget(publisher->client->client, publisher->requests[1]);
    forget_publication(world, publisher);
}

void sim_publisher_abandon(sim_world *world, sim_publisher *publisher)
{
    if (NULL == publisher->client)
    {
        return;
    }
    sim_trace("stream %d: the publisher's client dies", publisher->plan->stream_id);
    auditor_on_client_dead(&world->audit, publisher->client->node->judged, as_client_id(publisher->client->client));
    if (NULL != publisher->stream)
    {
        auditor_on_publication_end(&world->audit, publisher->stream, publisher->handles[0], AUDITOR_CLOSED);
    }
    publisher->client->is_zombie = true;
    publisher->client = NULL;
    forget_publication(world, publisher);
}

/* Its client ended by itself: it was not run for too long, or its driver is gone. */
static void on_client_closed(sim_world *world, sim_publisher *publisher)
{
    sim_trace("stream %d: the publisher finds its client closed", publisher->plan->stream_id);
    if (NULL != publisher->stream)
    {
        auditor_on_publication_end(&world->audit, publisher->stream, publisher->handles[0], AUDITOR_CLOSED);
    }
    publisher->client = drop_client(world, publisher->client);
    forget_publication(world, publisher);
}

static bool add_destinations(sim_world *world, sim_publisher *publisher)
{
    const sim_flow_plan *plan = publisher->plan;
    bool is_well = true;
    for (; is_well && publisher->destinations_added < plan->destination_count; publisher->destinations_added++)
    {
        world->waiting = publisher->client;
        is_well = AS_OK == as_publication_add_destination(
            publisher->handles[0], plan->destinations[publisher->destinations_added]);
        world->waiting = NULL;
    }
    return is_well;
}

static void on_publication(sim_world *world, sim_publisher *publisher, as_publication *publication)
{
    const sim_flow_plan *plan = publisher->plan;
    auditor_stream *stream = auditor_on_publication(&world->audit, publisher->client->node->judged, publication);
    const bool is_new = publisher->stream != stream;
    publisher->stream = stream;
    stream->is_network = SIM_IPC != plan->kind;
    stream->has_eos = plan->has_eos;
    stream->is_unicast = SIM_UNICAST == plan->kind;
    stream->waits_for_all = stream->is_unicast || NULL != strstr(plan->channel, "fc=min");
    stream->follows_spies = NULL != strstr(plan->channel, "ssc=true");
    stream->is_plain_unicast = SIM_UNICAST == plan->kind && !stream->follows_spies;
    stream->window_length = 0 != plan->window_length ? plan->window_length : stream->term_length / 2;
    if (is_new)
    {
        sim_trace("stream %d: session %d begins at %" PRId64, plan->stream_id, stream->session_id, stream->position);
    }
}

/* True when all handles are open. */
static bool open_publication(sim_world *world, sim_publisher *publisher)
{
    const sim_flow_plan *plan = publisher->plan;
    as_client *client = publisher->client->client;
    const int32_t handles = plan->is_exclusive ? 1 : plan->handles;
    for (int32_t i = 0; i < handles; i++)
    {
        if (NULL != publisher->handles[i] || (i > 0 && NULL == publisher->handles[i - 1]))
        {
            continue;
        }
        as_result result = AS_AGAIN;
        if (AS_NULL_VALUE == publisher->requests[i])
        {
            result = plan->is_exclusive ?
                as_client_async_add_exclusive_publication(client, plan->channel, plan->stream_id, &publisher->requests[i]) :
                as_client_async_add_publication(client, plan->channel, plan->stream_id, &publisher->requests[i]);
            result = AS_OK == result ? AS_AGAIN : result;
        }
        else
        {
            result = as_client_poll_publication(client, publisher->requests[i], &publisher->handles[i]);
            publisher->requests[i] = AS_AGAIN == result ? publisher->requests[i] : AS_NULL_VALUE;
            if (AS_OK == result)
            {
                on_publication(world, publisher, publisher->handles[i]);
            }
        }
        if (AS_OK != result && AS_AGAIN != result)
        {
            /* Endpoints that are closing, session ids of streams that linger: another try later. */
            sim_trace("stream %d: no publication: %.150s", plan->stream_id, as_error_text());
            publisher->reopen_ns = world->now_ns + REOPEN_NS;
            return false;
        }
    }
    return NULL != publisher->handles[handles - 1] && add_destinations(world, publisher);
}

/* One message by claim: -1 as number when it is given up. False when nothing was claimed. */
static bool claim_one(sim_world *world, sim_publisher *publisher, as_publication *publication, auditor_offer *offer)
{
    as_buffer_claim claim;
    offer->position = as_publication_try_claim(publication, offer->length, &claim);
    if (offer->position <= 0)
    {
        return false;
    }
    if (!publisher->plan->is_exclusive && world->is_storm && !publisher->has_abandoned_claim && sim_percent(world, 1))
    {
        /* Never committed: the driver must unblock the log. */
        sim_trace("stream %d: a claim at %" PRId64 " is left open", publisher->plan->stream_id, offer->position);
        publisher->has_abandoned_claim = true;
        offer->number = -1;
    }
    else if (sim_percent(world, GIVEN_UP_PERCENT))
    {
        as_buffer_claim_abort(&claim);
        offer->number = -1;
    }
    else
    {
        auditor_fill(claim.data, offer->number, 0, offer->length);
        as_buffer_claim_commit(&claim);
    }
    return true;
}

static bool offer_one(sim_world *world, sim_publisher *publisher, as_publication *publication, auditor_offer *offer)
{
    static uint8_t bytes[AS_TERM_MIN_LENGTH];
    auditor_fill(bytes, offer->number, 0, offer->length);
    if (sim_percent(world, 20))
    {
        const int64_t first = offer->length / 3;
        const as_iovec parts[] = { { .data = bytes, .length = first },
            { .data = bytes + first, .length = offer->length - first } };
        offer->position = as_publication_offerv(publication, parts, 2, NULL, NULL);
    }
    else
    {
        offer->position = as_publication_offer(publication, bytes, offer->length);
    }
    (void)publisher;
    return offer->position > 0;
}

static bool publish_one(sim_world *world, sim_publisher *publisher)
{
    const sim_flow_plan *plan = publisher->plan;
    as_publication *publication = publisher->handles[NULL != publisher->handles[1] ? sim_below(world, 2) : 0];
    auditor_offer offer = {
        .position_before = as_publication_position(publication),
        .limit_before = as_publication_position_limit(publication),
        .number = publisher->next_number,
        .length = (int32_t)sim_below(world, plan->max_length + 1)
    };
    const bool is_claim = plan->is_claiming && offer.length <= publisher->stream->mtu_length - AS_FRAME_HEADER_LENGTH &&
        sim_percent(world, 50);
    if (is_claim ? claim_one(world, publisher, publication, &offer) : offer_one(world, publisher, publication, &offer))
    {
        auditor_on_offer(&world->audit, publisher->stream, &offer);
        publisher->next_number++;
        return true;
    }
    if (AS_NOT_CONNECTED != offer.position && AS_BACK_PRESSURED != offer.position && AS_ADMIN_ACTION != offer.position &&
        AS_PUBLICATION_CLOSED != offer.position)
    {
        sim_fail("bytes", "stream %d: offering %d bytes gives %" PRId64 ": %s", plan->stream_id, offer.length, offer.position,
            as_error_text());
    }
    return AS_ADMIN_ACTION == offer.position;
}

bool sim_publisher_work(sim_world *world, sim_flow *flow)
{
    sim_publisher *publisher = &flow->publisher;
    if (publisher->is_done || !has_client(world, &publisher->client, publisher->plan->node, publisher->reopen_ns))
    {
        return false;
    }
    if (as_client_is_closed(publisher->client->client))
    {
        on_client_closed(world, publisher);
        return true;
    }
    if (world->now_ns < publisher->reopen_ns || !open_publication(world, publisher))
    {
        return false;
    }
    auditor_look_at_publication(&world->audit, publisher->stream, publisher->handles[0], true);
    if (!world->is_publishing || world->now_ns < publisher->next_send_ns)
    {
        return false;
    }
    bool is_busy = false;
    for (int32_t i = 0; i < publisher->plan->burst && publish_one(world, publisher); i++)
    {
        is_busy = true;
    }
    publisher->next_send_ns = world->now_ns + (is_busy ? publisher->plan->interval_ns : 0);
    return is_busy;
}

/* -- subscriber --------------------------------------------------------------------------------------------------------- */

static void on_available(void *context, as_subscription *subscription, as_image *image)
{
    const sim_seat *seat = context;
    auditor_image *judged = auditor_on_image(&seat->world->audit, seat->judged, subscription, image, seat->is_local);
    judged->is_reliable = seat->is_reliable;
    judged->may_rest = !seat->is_tethered;
}

static void on_unavailable(void *context, as_subscription *subscription, as_image *image)
{
    const sim_seat *seat = context;
    const sim_client *client = seat->client;
    if (client->is_zombie)
    {
        return;
    }
    const bool is_leaving = seat->is_leaving || NULL == client->node->driver || client->node->judged != seat->judged ||
        as_client_is_closed(client->client);
    auditor_on_image_gone(&seat->world->audit, subscription, image, is_leaving ? AUDITOR_LEAVES : AUDITOR_UNAVAILABLE);
}

static void forget_subscription(sim_world *world, sim_subscriber *subscriber)
{
    subscriber->subscription = NULL;
    subscriber->request = AS_NULL_VALUE;
    subscriber->destinations_added = 0;
    subscriber->reopen_ns = world->now_ns + REOPEN_NS + sim_below(world, 10 * REOPEN_NS);
}

void sim_subscriber_close(sim_world *world, sim_subscriber *subscriber)
{
    if (NULL == subscriber->subscription)
    {
        return;
    }
    sim_trace("stream %d: subscription at node %d is closed", subscriber->flow->stream_id, subscriber->plan->node);
    subscriber->seat->is_leaving = true;
    as_subscription_close(subscriber->subscription);
    forget_subscription(world, subscriber);
}

void sim_subscriber_abandon(sim_world *world, sim_subscriber *subscriber)
{
    if (NULL == subscriber->client)
    {
        return;
    }
    sim_trace("stream %d: the subscriber's client at node %d dies", subscriber->flow->stream_id, subscriber->plan->node);
    auditor_on_client_dead(&world->audit, subscriber->client->node->judged, as_client_id(subscriber->client->client));
    for (int32_t i = 0; i < world->audit.image_count; i++)
    {
        if (NULL != subscriber->subscription && world->audit.images[i].subscription == subscriber->subscription)
        {
            world->audit.images[i].is_open = false;
        }
    }
    subscriber->client->is_zombie = true;
    subscriber->client = NULL;
    forget_subscription(world, subscriber);
}

static bool subscribe(sim_world *world, sim_subscriber *subscriber)
{
    const sim_subscriber_plan *plan = subscriber->plan;
    as_client *client = subscriber->client->client;
    as_result result = AS_AGAIN;
    if (AS_NULL_VALUE == subscriber->request)
    {
        if (SIM_MAX_SEATS == world->seat_count)
        {
            sim_fail("setup", "more than %d subscriptions", SIM_MAX_SEATS);
        }
        subscriber->seat = &world->seats[world->seat_count++];
        *subscriber->seat = (sim_seat){ .world = world, .client = subscriber->client,
            .judged = subscriber->client->node->judged, .is_local = plan->is_spy || SIM_IPC == subscriber->flow->kind,
            .is_reliable = plan->is_reliable, .is_tethered = plan->is_tethered };
        result = as_client_async_add_subscription(client, plan->channel, subscriber->flow->stream_id, on_available,
            on_unavailable, subscriber->seat, &subscriber->request);
        result = AS_OK == result ? AS_AGAIN : result;
    }
    else
    {
        result = as_client_poll_subscription(client, subscriber->request, &subscriber->subscription);
        subscriber->request = AS_AGAIN == result ? subscriber->request : AS_NULL_VALUE;
    }
    if (AS_OK != result && AS_AGAIN != result)
    {
        sim_trace("stream %d: no subscription: %.150s", subscriber->flow->stream_id, as_error_text());
        subscriber->reopen_ns = world->now_ns + REOPEN_NS;
    }
    return AS_OK == result;
}

static void on_fragment(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    const sim_subscriber *subscriber = context;
    auditor_on_fragment(&subscriber->seat->world->audit, subscriber->subscription, data, length, header);
}

static void join_destinations(sim_world *world, sim_subscriber *subscriber)
{
    while (subscriber->destinations_added < subscriber->plan->destination_count)
    {
        world->waiting = subscriber->client;
        const as_result result = as_subscription_add_destination(
            subscriber->subscription, subscriber->plan->destinations[subscriber->destinations_added++]);
        world->waiting = NULL;
        if (AS_OK != result)
        {
            sim_trace("stream %d: no destination: %.150s", subscriber->flow->stream_id, as_error_text());
            sim_subscriber_close(world, subscriber); /* all of it again */
            return;
        }
    }
}

bool sim_subscriber_work(sim_world *world, sim_subscriber *subscriber)
{
    if (subscriber->is_done || !has_client(world, &subscriber->client, subscriber->plan->node, subscriber->reopen_ns))
    {
        return false;
    }
    if (as_client_is_closed(subscriber->client->client))
    {
        sim_trace("stream %d: the subscriber finds its client closed", subscriber->flow->stream_id);
        subscriber->seat->is_leaving = true;
        subscriber->client = drop_client(world, subscriber->client);
        forget_subscription(world, subscriber);
        return true;
    }
    if (NULL == subscriber->subscription)
    {
        if (world->now_ns < subscriber->reopen_ns || !subscribe(world, subscriber))
        {
            return false;
        }
    }
    join_destinations(world, subscriber);
    if (NULL == subscriber->subscription || world->now_ns < subscriber->stalled_until_ns)
    {
        return false;
    }
    const int64_t fragments =
        as_subscription_poll(subscriber->subscription, on_fragment, subscriber, 1 + sim_below(world, FRAGMENT_LIMIT));
    if (fragments < 0 && AS_E_CLOSED != fragments)
    {
        sim_fail("bytes", "stream %d: poll gives %" PRId64 ": %s", subscriber->flow->stream_id, fragments, as_error_text());
    }
    return fragments > 0;
}
