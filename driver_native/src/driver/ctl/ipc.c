/* Positions, subscribers and life cycle of an IPC publication; see ipc.h. */
#include "driver/ctl/ipc.h"

#include <arpa/inet.h>
#include <inttypes.h>

#include "driver/ctl/report.h"
#include "driver/ctl/respond.h"
#include "term/unblock.h"

/* -- positions ---------------------------------------------------------------------------------------------------------- */

/* Highest position that a producer has claimed. The tails are in shared memory, so a value that moves backwards is ignored. */
static int64_t refresh_producer_position(asi_ipc_publication *publication)
{
    const int64_t position = asi_log_producer_position(&publication->log);
    if (position > publication->producer_position && position <= asi_log_max_position(publication->log.term_length))
    {
        publication->producer_position = position;
        asi_store_release_i64(publication->position_counter, position);
    }
    return publication->producer_position;
}

/* Valid positions: from the clean position, where the log is no longer zeroed, to the producer position. */
static asi_position_span span_of(const asi_ipc_publication *publication)
{
    return asi_subscribers_span(&publication->subscribers, publication->clean_position, publication->producer_position);
}

static void follow_consumers(asi_ipc_publication *publication, const asi_position_span *span)
{
    publication->consumer_position = span->max > publication->consumer_position ? span->max : publication->consumer_position;
}

static int64_t join_position(const asi_ipc_publication *publication)
{
    const asi_position_span span = span_of(publication);
    return span.min < publication->consumer_position ? span.min : publication->consumer_position;
}

/* Before the limit moves: the release store of the limit makes the zeroed space visible to publishers. */
static void clean_up_to(asi_ipc_publication *publication, int64_t position)
{
    publication->clean_position = asi_log_clean(&publication->log, publication->clean_position, position);
}

static void set_limit(asi_ipc_publication *publication, int64_t limit, int64_t trip_limit)
{
    publication->limit = limit;
    publication->trip_limit = trip_limit;
    asi_store_release_i64(publication->limit_counter, limit);
}

/* Spec: 02 §7.2. */
int asi_ipc_update(asi_ipc_publication *publication)
{
    if (ASI_PUBLICATION_ACTIVE != publication->state)
    {
        return 0;
    }
    const bool made_pages = asi_log_page_ahead(&publication->log, refresh_producer_position(publication));
    const asi_position_span span = span_of(publication);
    if (span.has_working)
    {
        const int64_t limit = span.min + publication->params.window_length;
        follow_consumers(publication, &span);
        if (limit > publication->trip_limit)
        {
            clean_up_to(publication, span.min);
            if (asi_log_is_clean_for(&publication->log, publication->clean_position, limit))
            {
                set_limit(publication, limit, limit + publication->params.window_length / 8);
            }
            return 1;
        }
    }
    else if (publication->limit > publication->consumer_position)
    {
        clean_up_to(publication, publication->consumer_position);
        set_limit(publication, publication->consumer_position, publication->consumer_position);
        return 1;
    }
    return made_pages;
}

/* -- subscribers -------------------------------------------------------------------------------------------------------- */

static void set_connected(asi_ipc_publication *publication, bool is_connected)
{
    asi_store_release_i32(&publication->log.metadata->is_connected, is_connected ? 1 : 0);
}

static bool is_drained(const asi_ipc_publication *publication)
{
    return asi_subscribers_have_read(&publication->subscribers, publication->producer_position);
}

static bool accepts_subscriptions(asi_ipc_publication *publication)
{
    if (publication->in_cool_down)
    {
        return false;
    }
    if (ASI_PUBLICATION_DRAINING == publication->state)
    {
        refresh_producer_position(publication);
        return !is_drained(publication);
    }
    return ASI_PUBLICATION_ACTIVE == publication->state;
}

void asi_ipc_link(asi_conductor *conductor, asi_ipc_publication *publication, asi_ctl_subscription *subscription)
{
    if (asi_ctl_subscription_matches_ipc(subscription, publication->stream_id, publication->session_id) &&
        !asi_subscribers_is_linked(&publication->subscribers, subscription) && accepts_subscriptions(publication))
    {
        const as_result result =
            asi_subscribers_link(conductor, &publication->subscribers, subscription, join_position(publication));
        if (AS_OK != result)
        {
            asi_conductor_log_failure(conductor, result);
            return;
        }
        set_connected(publication, true);
    }
}

void asi_ipc_link_all(asi_conductor *conductor, asi_ipc_publication *publication)
{
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        asi_ipc_link(conductor, publication, conductor->subscriptions.items[i]);
    }
}

bool asi_ipc_unlink(asi_conductor *conductor, asi_ipc_publication *publication, const asi_ctl_subscription *subscription)
{
    /* A later subscriber joins at the position that this one reached. */
    const asi_position_span span = span_of(publication);
    if (!asi_subscribers_unlink(conductor, &publication->subscribers, subscription))
    {
        return false;
    }
    follow_consumers(publication, &span);
    if (!asi_subscribers_has_working(&publication->subscribers))
    {
        set_connected(publication, false);
    }
    return true;
}

void asi_ipc_reject(asi_conductor *conductor, asi_ipc_publication *publication, const char *reason, int64_t reason_length)
{
    const asi_ctl_publication_error error = {
        .registration_id = publication->registration_id,
        .destination_id = AS_NULL_VALUE,
        .session_id = publication->session_id,
        .stream_id = publication->stream_id,
        .receiver_id = AS_NULL_VALUE,
        .group_tag = AS_NULL_VALUE,
        .source = { .v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } },
        .error_code = ASI_ERR_IMAGE_REJECTED,
        .text = reason,
        .text_length = reason_length
    };
    asi_respond_publication_error(conductor, &error);
    publication->cool_down_since_ns = conductor->now_ns;
    if (!publication->in_cool_down)
    {
        publication->in_cool_down = true;
        set_connected(publication, false);
        const asi_position_span span = span_of(publication);
        asi_subscribers_withdraw(conductor, &publication->subscribers);
        follow_consumers(publication, &span);
        asi_subscribers_unlink_all(conductor, &publication->subscribers);
    }
}

/* -- life cycle ---------------------------------------------------------------------------------------------------------- */

void asi_ipc_release(void *released, bool revoke)
{
    asi_ipc_publication *publication = released;
    asi_log_metadata *metadata = publication->log.metadata;
    if (revoke)
    {
        asi_store_release_u8(&metadata->is_publication_revoked, 1);
    }
    AS_ASSERT(publication->reference_count > 0);
    publication->reference_count--;
    if (publication->reference_count > 0 || ASI_PUBLICATION_ACTIVE != publication->state ||
        0 != asi_load_acquire_u8(&metadata->is_publication_revoked))
    {
        return; /* Spec: 03 §8 - a revoked publication stays ACTIVE until the next timer tick */
    }
    const int64_t position = refresh_producer_position(publication);
    if (publication->limit > position)
    {
        publication->limit = position;
        asi_store_release_i64(publication->limit_counter, position);
    }
    asi_store_release_i64(&metadata->end_of_stream_position, position);
    asi_ctl_publication_enter(&publication->state, ASI_PUBLICATION_DRAINING);
}

static void end_revoked(asi_conductor *conductor, asi_ipc_publication *publication)
{
    const int64_t position = refresh_producer_position(publication);
    publication->limit = position;
    asi_store_release_i64(publication->limit_counter, position);
    asi_store_release_i64(&publication->log.metadata->end_of_stream_position, position);
    set_connected(publication, false);
    asi_subscribers_withdraw(conductor, &publication->subscribers);
    asi_conductor_count(conductor, ASI_SYSTEM_PUBLICATIONS_REVOKED, 1);
    asi_events_log(conductor->events, ASI_EVENT_PUBLICATION_REVOKE, "position=%" PRId64 " sessionId=%d streamId=%d channel=%s",
        position, publication->session_id, publication->stream_id, publication->channel);
    asi_ctl_publication_enter(&publication->state, ASI_PUBLICATION_LINGER);
}

static void check_tethers(asi_conductor *conductor, asi_ipc_publication *publication)
{
    const asi_ctl_publication_params *params = &publication->params;
    const asi_tether_rules rules = {
        .limit = publication->consumer_position - params->window_length + params->window_length / 4,
        .floor = publication->clean_position,
        .ceiling = publication->producer_position,
        .join_position = join_position(publication),
        .timeouts = params->untethered
    };
    asi_subscribers_check_tethers(conductor, &publication->subscribers, &rules);
}

static void unblock(asi_conductor *conductor, asi_ipc_publication *publication)
{
    const bool has_publisher = publication->reference_count > 0;
    if (asi_log_unblock(&publication->log, publication->consumer_position, has_publisher))
    {
        asi_conductor_count(conductor, ASI_SYSTEM_UNBLOCKED_PUBLICATIONS, 1);
    }
}

/* Spec: 02 §7.5 - the position does not move although a producer has claimed space beyond it. */
static void check_blocked(asi_conductor *conductor, asi_ipc_publication *publication)
{
    const int64_t consumer = publication->consumer_position;
    const int32_t consumer_term_count = (int32_t)(consumer >> publication->log.position_bits);
    const int32_t active_term_count = asi_load_acquire_i32(&publication->log.metadata->active_term_count);
    const bool is_behind = publication->producer_position > consumer || active_term_count != consumer_term_count;
    if (!is_behind || consumer != publication->blocked_position)
    {
        publication->blocked_position = consumer;
        publication->blocked_since_ns = conductor->now_ns;
    }
    else if (conductor->now_ns - publication->blocked_since_ns > conductor->settings->publication_unblock_timeout_ns)
    {
        unblock(conductor, publication);
    }
}

static void check_cool_down(asi_conductor *conductor, asi_ipc_publication *publication)
{
    const int64_t elapsed_ns = conductor->now_ns - publication->cool_down_since_ns;
    if (publication->in_cool_down && elapsed_ns > conductor->settings->image_liveness_timeout_ns)
    {
        publication->in_cool_down = false;
        asi_ipc_link_all(conductor, publication);
    }
}

static void on_active(asi_conductor *conductor, asi_ipc_publication *publication)
{
    if (0 != asi_load_acquire_u8(&publication->log.metadata->is_publication_revoked))
    {
        end_revoked(conductor, publication);
        return;
    }
    check_tethers(conductor, publication);
    set_connected(publication, !publication->in_cool_down && asi_subscribers_has_working(&publication->subscribers));
    refresh_producer_position(publication);
    if (!publication->is_exclusive)
    {
        check_blocked(conductor, publication);
    }
    check_cool_down(conductor, publication);
}

static void on_draining(asi_conductor *conductor, asi_ipc_publication *publication)
{
    refresh_producer_position(publication);
    if (is_drained(publication))
    {
        asi_subscribers_withdraw(conductor, &publication->subscribers);
        asi_ctl_publication_enter(&publication->state, ASI_PUBLICATION_LINGER);
        return;
    }
    const asi_position_span span = span_of(publication);
    follow_consumers(publication, &span);
    unblock(conductor, publication);
}

bool asi_ipc_on_timer(asi_conductor *conductor, asi_ipc_publication *publication)
{
    if (ASI_PUBLICATION_ACTIVE == publication->state)
    {
        on_active(conductor, publication);
    }
    else if (ASI_PUBLICATION_DRAINING == publication->state)
    {
        on_draining(conductor, publication);
    }
    return ASI_PUBLICATION_LINGER == publication->state && publication->reference_count <= 0;
}
