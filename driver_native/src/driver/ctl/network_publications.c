/* Positions, spies and life cycle of a network publication; see network_publications.h. */
#include "driver/ctl/network_publications.h"

#include <inttypes.h>

#include "base/assert.h"
#include "driver/ctl/agent_queues.h"
#include "driver/ctl/report.h"
#include "term/unblock.h"

#define QUIET_NS 10000000LL /* maximum age of pub-pos while the sender has nothing to send */

asi_network_publication *asi_network_publication_find(const asi_conductor *conductor, int64_t registration_id)
{
    for (int32_t i = 0; i < conductor->network.publications.count; i++)
    {
        asi_network_publication *publication = conductor->network.publications.items[i];
        if (registration_id == publication->sender.registration_id && ASI_PUBLICATION_DONE != publication->state)
        {
            return publication;
        }
    }
    return NULL;
}

bool asi_network_is_session_used(const asi_conductor *conductor, int32_t stream_id, int32_t session_id)
{
    for (int32_t i = 0; i < conductor->network.publications.count; i++)
    {
        const asi_network_publication *publication = conductor->network.publications.items[i];
        if (stream_id == publication->sender.stream_id && session_id == publication->sender.session_id)
        {
            return true;
        }
    }
    return false;
}

/* -- positions ---------------------------------------------------------------------------------------------------------- */

static int64_t sender_position(const asi_network_publication *publication)
{
    return asi_load_acquire_i64(&publication->sender.position);
}

/* Highest position that a producer has claimed. The tails are in shared memory, so a value that moves backwards is ignored. */
static int64_t refresh_producer_position(asi_network_publication *publication)
{
    const asi_log *log = &publication->sender.log;
    const int64_t position = asi_log_producer_position(log);
    if (position > publication->producer_position && position <= asi_log_max_position(log->term_length))
    {
        publication->producer_position = position;
        asi_store_release_i64(publication->position_counter, position);
    }
    return publication->producer_position;
}

static asi_position_span span_of(const asi_network_publication *publication)
{
    return asi_subscribers_span(&publication->spies, publication->clean_position, publication->producer_position);
}

static bool has_receivers(const asi_network_publication *publication)
{
    return asi_load_acquire_bool(&publication->sender.has_receivers);
}

static bool has_subscribers(const asi_network_publication *publication)
{
    return (has_receivers(publication) && asi_load_acquire_bool(&publication->sender.has_required_receivers)) ||
        (publication->sender.spies_simulate_connection && asi_subscribers_has_working(&publication->spies));
}

/* Only the conductor writes it, so that sender and conductor cannot overwrite each other's value. */
static void set_connected(asi_network_publication *publication, bool is_connected)
{
    if (is_connected != publication->is_connected)
    {
        publication->is_connected = is_connected;
        asi_store_release_i32(&publication->sender.log.metadata->is_connected, is_connected ? 1 : 0);
    }
}

static void set_limit(asi_network_publication *publication, int64_t limit)
{
    publication->limit = limit;
    asi_store_release_i64(publication->limit_counter, limit);
}

static void clean_behind(asi_network_publication *publication, int64_t position)
{
    asi_sender_publication *sender = &publication->sender;
    const int64_t term_length = sender->log.term_length;
    publication->clean_position = asi_log_clean(&sender->log, publication->clean_position, position - term_length);
    asi_store_release_i64(&sender->zeroed_limit, publication->clean_position + ASI_LOG_PARTITION_COUNT * term_length);
}

static int update_limit(asi_network_publication *publication, const asi_position_span *spies)
{
    const int64_t sent = sender_position(publication);
    const bool made_pages = asi_log_page_ahead(&publication->sender.log, refresh_producer_position(publication));
    const bool is_connected = has_subscribers(publication);
    set_connected(publication, is_connected);
    if (!is_connected)
    {
        if (publication->limit > sent)
        {
            set_limit(publication, sent);
            return 1;
        }
        return made_pages;
    }
    const int64_t consumed = spies->min < sent ? spies->min : sent;
    const int64_t limit = consumed + publication->params.window_length;
    if (limit <= publication->limit)
    {
        return made_pages;
    }
    clean_behind(publication, consumed);
    if (asi_log_is_clean_for(&publication->sender.log, publication->clean_position, limit))
    {
        set_limit(publication, limit);
    }
    return 1;
}

/* Without spies, the limit depends on the sender only. */
static bool is_quiet(const asi_network_publication *publication, int64_t now_ns)
{
    return now_ns < publication->quiet_until_ns && sender_position(publication) == publication->quiet_position &&
        has_subscribers(publication) == publication->is_connected;
}

int asi_network_publication_update(asi_network_publication *publication, int64_t now_ns)
{
    if (is_quiet(publication, now_ns))
    {
        return 0;
    }
    publication->quiet_until_ns = INT64_MIN;
    if (ASI_PUBLICATION_DONE == publication->state)
    {
        return 0;
    }
    const asi_position_span spies = span_of(publication);
    asi_sender_publication *sender = &publication->sender;
    if (sender->spies_simulate_connection)
    {
        if (spies.has_working)
        {
            asi_store_release_i64(&sender->max_spy_position, spies.max);
        }
        asi_store_release_bool(&sender->has_spies, spies.has_working);
    }
    if (ASI_PUBLICATION_ACTIVE != publication->state)
    {
        return 0;
    }
    const int64_t position = sender_position(publication);
    const int work = update_limit(publication, &spies);
    if (0 == work && 0 == publication->spies.count)
    {
        publication->quiet_position = position;
        publication->quiet_until_ns = now_ns + QUIET_NS;
    }
    return work;
}

/* -- spies, Spec: 03 §10, 04 §13 ------------------------------------------------------------------------------------------- */

static bool accepts_spies(asi_network_publication *publication)
{
    if (ASI_PUBLICATION_DRAINING == publication->state)
    {
        return asi_subscribers_has_working(&publication->spies) &&
            refresh_producer_position(publication) > sender_position(publication);
    }
    return ASI_PUBLICATION_ACTIVE == publication->state;
}

static bool is_spied_by(const asi_network_publication *publication, const asi_ctl_subscription *subscription)
{
    const asi_udp_channel *own = publication->channel->channel;
    if (!subscription->is_spy || publication->sender.stream_id != subscription->stream_id)
    {
        return false;
    }
    const asi_udp_channel *wanted = subscription->udp;
    if (own->has_tag && wanted->has_tag)
    {
        return own->tag == wanted->tag;
    }
    return (!subscription->has_session_id || publication->sender.session_id == subscription->session_id) &&
        asi_udp_channel_matches_canonical(own, wanted);
}

void asi_network_publication_link(
    asi_conductor *conductor, asi_network_publication *publication, asi_ctl_subscription *subscription)
{
    if (is_spied_by(publication, subscription) && !asi_subscribers_is_linked(&publication->spies, subscription) &&
        accepts_spies(publication))
    {
        const as_result result =
            asi_subscribers_link(conductor, &publication->spies, subscription, sender_position(publication));
        publication->quiet_until_ns = INT64_MIN;
        if (AS_OK != result)
        {
            asi_conductor_log_failure(conductor, result);
        }
    }
}

bool asi_network_publication_unlink(
    asi_conductor *conductor, asi_network_publication *publication, const asi_ctl_subscription *subscription)
{
    publication->quiet_until_ns = INT64_MIN;
    return asi_subscribers_unlink(conductor, &publication->spies, subscription);
}

static void let_spies_go(asi_conductor *conductor, asi_network_publication *publication)
{
    asi_subscribers_withdraw(conductor, &publication->spies);
    asi_subscribers_unlink_all(conductor, &publication->spies);
}

static void check_tethers(asi_conductor *conductor, asi_network_publication *publication)
{
    const asi_ctl_publication_params *params = &publication->params;
    const int64_t sent = sender_position(publication);
    const asi_tether_rules rules = {
        .limit = sent - params->window_length + params->window_length / 4,
        .floor = publication->clean_position,
        .ceiling = publication->producer_position,
        .join_position = sent,
        .timeouts = params->untethered
    };
    asi_subscribers_check_tethers(conductor, &publication->spies, &rules);
}

/* -- life cycle, Spec: 04 §5.8 --------------------------------------------------------------------------------------------- */

static void change_state(asi_conductor *conductor, asi_network_publication *publication, asi_ctl_publication_state state)
{
    asi_ctl_publication_enter(&publication->state, state);
    publication->state_since_ns = conductor->now_ns;
}

static void end_producing(asi_network_publication *publication)
{
    const int64_t position = refresh_producer_position(publication);
    set_limit(publication, position);
    asi_store_release_i64(&publication->sender.log.metadata->end_of_stream_position, position);
}

static bool is_revoked(const asi_network_publication *publication)
{
    return 0 != asi_load_acquire_u8(&publication->sender.log.metadata->is_publication_revoked);
}

void asi_network_publication_release(void *released, bool revoke)
{
    asi_network_publication *publication = released;
    if (revoke)
    {
        asi_store_release_u8(&publication->sender.log.metadata->is_publication_revoked, 1);
    }
    AS_ASSERT(publication->reference_count > 0);
    publication->reference_count--;
    if (publication->reference_count > 0 || ASI_PUBLICATION_ACTIVE != publication->state || is_revoked(publication))
    {
        return; /* Spec: 03 §8 - a revoked publication stays ACTIVE until the next timer tick */
    }
    end_producing(publication);
    if (sender_position(publication) >= publication->producer_position)
    {
        asi_store_release_bool(&publication->sender.is_end_of_stream, true);
    }
    asi_ctl_publication_enter(&publication->state, ASI_PUBLICATION_DRAINING);
}

static bool unblock(asi_conductor *conductor, asi_network_publication *publication)
{
    const bool has_publisher = publication->reference_count > 0;
    const bool unblocked = asi_log_unblock(&publication->sender.log, sender_position(publication), has_publisher);
    if (unblocked)
    {
        asi_conductor_count(conductor, ASI_SYSTEM_UNBLOCKED_PUBLICATIONS, 1);
    }
    return unblocked;
}

/* Spec: 02 §7.5. */
static void check_blocked(asi_conductor *conductor, asi_network_publication *publication)
{
    const int64_t sent = sender_position(publication);
    const int32_t sent_term_count = (int32_t)(sent >> publication->sender.log.position_bits);
    const int32_t active_term_count = asi_load_acquire_i32(&publication->sender.log.metadata->active_term_count);
    const bool is_behind = publication->producer_position > sent || active_term_count != sent_term_count;
    if (!is_behind || sent != publication->blocked_position)
    {
        publication->blocked_position = sent;
        publication->blocked_since_ns = conductor->now_ns;
    }
    else if (conductor->now_ns - publication->blocked_since_ns > conductor->settings->publication_unblock_timeout_ns)
    {
        unblock(conductor, publication);
    }
}

static void on_active(asi_conductor *conductor, asi_network_publication *publication)
{
    if (is_revoked(publication))
    {
        end_producing(publication);
        set_connected(publication, false);
        asi_store_release_bool(&publication->sender.is_revoked, true);
        asi_store_release_bool(&publication->sender.is_end_of_stream, true);
        let_spies_go(conductor, publication);
        asi_conductor_count(conductor, ASI_SYSTEM_PUBLICATIONS_REVOKED, 1);
        asi_events_log(conductor->events, ASI_EVENT_PUBLICATION_REVOKE,
            "position=%" PRId64 " sessionId=%d streamId=%d channel=%s", publication->producer_position,
            publication->sender.session_id, publication->sender.stream_id, publication->uri);
        change_state(conductor, publication, ASI_PUBLICATION_LINGER);
        return;
    }
    check_tethers(conductor, publication);
    refresh_producer_position(publication);
    if (!publication->is_exclusive)
    {
        check_blocked(conductor, publication);
    }
}

static void on_draining(asi_conductor *conductor, asi_network_publication *publication)
{
    if (refresh_producer_position(publication) > sender_position(publication))
    {
        if (unblock(conductor, publication) || has_receivers(publication))
        {
            return;
        }
    }
    else
    {
        asi_store_release_bool(&publication->sender.is_end_of_stream, true);
    }
    if (asi_subscribers_have_read(&publication->spies, publication->producer_position))
    {
        let_spies_go(conductor, publication);
        change_state(conductor, publication, ASI_PUBLICATION_LINGER);
    }
}

static void on_linger(asi_conductor *conductor, asi_network_publication *publication)
{
    if (publication->reference_count <= 0 && (asi_load_acquire_bool(&publication->sender.has_received_unicast_eos) ||
            conductor->now_ns - publication->state_since_ns > publication->params.linger_timeout_ns))
    {
        const asi_sender_command command = { .kind = ASI_SENDER_REMOVE_PUBLICATION, .publication = &publication->sender };
        asi_network_to_sender(conductor, &command);
        change_state(conductor, publication, ASI_PUBLICATION_DONE);
    }
}

void asi_network_publication_on_timer(asi_conductor *conductor, asi_network_publication *publication)
{
    switch (publication->state)
    {
        case ASI_PUBLICATION_ACTIVE: on_active(conductor, publication); break;
        case ASI_PUBLICATION_DRAINING: on_draining(conductor, publication); break;
        case ASI_PUBLICATION_LINGER: on_linger(conductor, publication); break;
        case ASI_PUBLICATION_DONE: break;
    }
}
