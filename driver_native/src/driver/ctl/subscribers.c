/* See subscribers.h. */
#include "driver/ctl/subscribers.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "driver/ctl/respond.h"

static bool is_working(const asi_subscriber_position *subscriber)
{
    return ASI_TETHER_ACTIVE == subscriber->state || ASI_TETHER_LINGER == subscriber->state;
}

static int64_t position_of(const asi_subscriber_position *subscriber, int64_t floor, int64_t ceiling)
{
    const int64_t position = asi_load_acquire_i64(subscriber->position);
    const int64_t floored = position < floor ? floor : position;
    return floored > ceiling ? ceiling : floored;
}

asi_position_span asi_subscribers_span(const asi_subscribers *subscribers, int64_t floor, int64_t ceiling)
{
    asi_position_span span = { .has_working = false, .min = INT64_MAX, .max = INT64_MIN };
    for (int32_t i = 0; i < subscribers->count; i++)
    {
        const asi_subscriber_position *subscriber = &subscribers->items[i];
        if (is_working(subscriber))
        {
            const int64_t position = position_of(subscriber, floor, ceiling);
            span.has_working = true;
            span.min = position < span.min ? position : span.min;
            span.max = position > span.max ? position : span.max;
        }
    }
    return span;
}

bool asi_subscribers_has_working(const asi_subscribers *subscribers)
{
    for (int32_t i = 0; i < subscribers->count; i++)
    {
        if (is_working(&subscribers->items[i]))
        {
            return true;
        }
    }
    return false;
}

bool asi_subscribers_have_read(const asi_subscribers *subscribers, int64_t position)
{
    for (int32_t i = 0; i < subscribers->count; i++)
    {
        const asi_subscriber_position *subscriber = &subscribers->items[i];
        if (ASI_TETHER_ACTIVE == subscriber->state && asi_load_acquire_i64(subscriber->position) < position)
        {
            return false;
        }
    }
    return true;
}

bool asi_subscribers_is_linked(const asi_subscribers *subscribers, const asi_ctl_subscription *subscription)
{
    for (int32_t i = 0; i < subscribers->count; i++)
    {
        const asi_ctl_subscription *linked = subscribers->items[i].subscription;
        if (linked->registration_id == subscription->registration_id && linked->client_id == subscription->client_id)
        {
            return true;
        }
    }
    return false;
}

static as_result reserve(asi_subscribers *subscribers)
{
    if (subscribers->count < subscribers->capacity)
    {
        return AS_OK;
    }
    const int32_t capacity = 0 == subscribers->capacity ? 4 : subscribers->capacity * 2;
    asi_subscriber_position *items = realloc(subscribers->items, (size_t)capacity * sizeof(*items));
    if (NULL == items)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for %d subscribers of a stream", capacity);
    }
    subscribers->items = items;
    subscribers->capacity = capacity;
    return AS_OK;
}

static void announce(
    asi_conductor *conductor, const asi_subscribers *subscribers, const asi_subscriber_position *subscriber)
{
    const asi_ctl_image_announcement image = {
        .image_correlation_id = subscribers->image_id,
        .session_id = subscribers->session_id,
        .stream_id = subscribers->stream_id,
        .subscription_registration_id = subscriber->subscription->registration_id,
        .subscriber_position_id = subscriber->counter_id,
        .log_file_name = subscribers->log_path,
        .source_identity = subscribers->source_identity
    };
    asi_respond_available_image(conductor, &image);
}

static void free_position(asi_conductor *conductor, const asi_subscriber_position *subscriber)
{
    if (ASI_TETHER_CLOSED != subscriber->state)
    {
        asi_counters_free(&conductor->counters, subscriber->counter_id, conductor->now_ms);
    }
}

as_result asi_subscribers_link(
    asi_conductor *conductor, asi_subscribers *subscribers, asi_ctl_subscription *subscription, int64_t join_position)
{
    char suffix[32];
    snprintf(suffix, sizeof(suffix), " @%" PRId64, join_position);
    const asi_stream_counter counter = {
        .type_id = ASI_COUNTER_TYPE_SUBSCRIBER_POSITION,
        .name = "sub-pos",
        .registration_id = subscription->registration_id,
        .counter_registration_id = subscription->registration_id,
        .owner_id = subscription->client_id,
        .reference_id = subscribers->image_id,
        .session_id = subscribers->session_id,
        .stream_id = subscribers->stream_id,
        .channel = subscription->channel,
        .suffix = suffix,
        .initial_value = join_position
    };
    int32_t counter_id;
    as_result result = reserve(subscribers);
    if (AS_OK == result)
    {
        result = asi_counters_allocate_stream(&conductor->counters, &counter, conductor->now_ms, &counter_id);
    }
    if (AS_OK != result)
    {
        return result;
    }
    asi_subscriber_position *subscriber = &subscribers->items[subscribers->count++];
    *subscriber = (asi_subscriber_position){
        .subscription = subscription,
        .position = asi_counter_addr(&conductor->counters.counters, counter_id),
        .counter_id = counter_id,
        .state_since_ns = conductor->now_ns
    };
    announce(conductor, subscribers, subscriber);
    return AS_OK;
}

bool asi_subscribers_unlink(asi_conductor *conductor, asi_subscribers *subscribers, const asi_ctl_subscription *subscription)
{
    for (int32_t i = 0; i < subscribers->count; i++)
    {
        if (subscribers->items[i].subscription == subscription)
        {
            free_position(conductor, &subscribers->items[i]);
            subscribers->count--;
            memmove(&subscribers->items[i], &subscribers->items[i + 1],
                (size_t)(subscribers->count - i) * sizeof(*subscribers->items));
            return true;
        }
    }
    return false;
}

void asi_subscribers_unlink_all(asi_conductor *conductor, asi_subscribers *subscribers)
{
    for (int32_t i = 0; i < subscribers->count; i++)
    {
        free_position(conductor, &subscribers->items[i]);
    }
    subscribers->count = 0;
}

void asi_subscribers_withdraw_one(
    asi_conductor *conductor, const asi_subscribers *subscribers, const asi_ctl_subscription *subscription)
{
    asi_respond_unavailable_image(
        conductor, subscribers->image_id, subscription->registration_id, subscribers->stream_id);
}

void asi_subscribers_withdraw(asi_conductor *conductor, const asi_subscribers *subscribers)
{
    for (int32_t i = 0; i < subscribers->count; i++)
    {
        if (ASI_TETHER_ACTIVE == subscribers->items[i].state)
        {
            asi_subscribers_withdraw_one(conductor, subscribers, subscribers->items[i].subscription);
        }
    }
}

static void change_state(asi_conductor *conductor, asi_subscriber_position *subscriber, asi_tether_state state)
{
    static const char *const NAMES[] = { "ACTIVE", "LINGER", "RESTING", "CLOSED" }; /* as asi_tether_state */
    static const uint32_t MOVES[] = {
        [ASI_TETHER_ACTIVE] = 1U << ASI_TETHER_LINGER,
        [ASI_TETHER_LINGER] = 1U << ASI_TETHER_RESTING | 1U << ASI_TETHER_CLOSED,
        [ASI_TETHER_RESTING] = 1U << ASI_TETHER_ACTIVE,
        [ASI_TETHER_CLOSED] = 0
    };
    AS_ASSERT_MOVE(MOVES, subscriber->state, state);
    asi_events_log(conductor->events, ASI_EVENT_UNTETHERED_SUBSCRIPTION_STATE_CHANGE,
        "subscriptionId=%" PRId64 " streamId=%d %s -> %s", subscriber->subscription->registration_id,
        subscriber->subscription->stream_id, NAMES[subscriber->state], NAMES[state]);
    subscriber->state = state;
    subscriber->state_since_ns = conductor->now_ns;
}

static void check_tether(asi_conductor *conductor, asi_subscribers *subscribers, asi_subscriber_position *subscriber,
    const asi_tether_rules *rules)
{
    const int64_t elapsed_ns = conductor->now_ns - subscriber->state_since_ns;
    switch (subscriber->state)
    {
        case ASI_TETHER_ACTIVE:
            if (subscriber->subscription->is_tethered ||
                position_of(subscriber, rules->floor, rules->ceiling) > rules->limit)
            {
                subscriber->state_since_ns = conductor->now_ns;
            }
            else if (elapsed_ns > rules->timeouts.window_limit_ns)
            {
                asi_subscribers_withdraw_one(conductor, subscribers, subscriber->subscription);
                change_state(conductor, subscriber, ASI_TETHER_LINGER);
            }
            break;
        case ASI_TETHER_LINGER:
            if (elapsed_ns > rules->timeouts.linger_ns)
            {
                const bool is_rejoin = subscriber->subscription->is_rejoin;
                if (!is_rejoin)
                {
                    free_position(conductor, subscriber);
                }
                change_state(conductor, subscriber, is_rejoin ? ASI_TETHER_RESTING : ASI_TETHER_CLOSED);
            }
            break;
        case ASI_TETHER_RESTING:
            if (elapsed_ns > rules->timeouts.resting_ns)
            {
                asi_store_release_i64(subscriber->position, rules->join_position);
                change_state(conductor, subscriber, ASI_TETHER_ACTIVE);
                announce(conductor, subscribers, subscriber);
            }
            break;
        case ASI_TETHER_CLOSED:
            break;
    }
}

void asi_subscribers_check_tethers(asi_conductor *conductor, asi_subscribers *subscribers, const asi_tether_rules *rules)
{
    for (int32_t i = 0; i < subscribers->count; i++)
    {
        check_tether(conductor, subscribers, &subscribers->items[i], rules);
    }
}
