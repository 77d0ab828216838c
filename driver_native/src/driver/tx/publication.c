/* See publication.h. */
#include "driver/tx/publication.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "driver/tx/scan.h"
#include "driver/tx/sender_report.h"

#define SETUP_INTERVAL_MAX_NS (8 * ASI_SETUP_INTERVAL_NS) /* of a publication that backs off */
/* Spec: 04 §7.5 - how far behind the sender position a resend may begin, beyond half a term. */
#define RESEND_MARGIN_MAX (16 * 1024 * 1024)
#define CREDIT_INTERVAL_NS 1000000000LL
#define MIN_CREDIT (16 * 1024)
#define IDLE_COPIES (8 * 1024 * 1024)   /* limit for resends to many destinations, in an interval in which no data was sent */
#define MAX_CYCLE_BYTES (2 * 1024 * 1024) /* limit of copies for one publication in a cycle: a few milliseconds at most */

/* aeron.network.publication.max.messages.per.send counts messages passed to the kernel; one message can hold a run of datagrams
 * (net/udp_batch.h). */
#define DATAGRAMS_PER_MESSAGE 32

typedef struct position_in_log
{
    int32_t term_id;
    int32_t offset;
    const uint8_t *term;
} position_in_log;

static position_in_log locate(const asi_sender_publication *publication, int64_t position)
{
    const asi_log *log = &publication->log;
    return (position_in_log){
        .term_id = asi_log_term_id_of_position(position, log->position_bits, log->initial_term_id),
        .offset = (int32_t)(position & (log->term_length - 1)),
        .term = log->terms[asi_log_index_of_position(position, log->position_bits)]
    };
}

static void set_position(asi_sender_publication *publication, int64_t position)
{
    if (position != publication->position)
    {
        AS_ASSERT(position > publication->position);
        asi_store_release_i64(&publication->position, position);
        asi_store_release_i64(publication->position_counter, position);
    }
}

void asi_sender_publication_set_limit(asi_sender_publication *publication, int64_t limit)
{
    if (limit != publication->limit)
    {
        publication->limit = limit;
        asi_store_release_i64(publication->limit_counter, limit);
    }
}

bool asi_sender_publication_show_receivers(asi_sender_publication *publication)
{
    const bool has_receivers = publication->receivers.count > 0;
    const bool has_required = asi_flow_has_required_receivers(&publication->flow);
    const bool is_first = has_receivers && !publication->has_receivers;
    if (has_required != publication->has_required_receivers)
    {
        asi_store_release_bool(&publication->has_required_receivers, has_required);
    }
    if (has_receivers != publication->has_receivers)
    {
        asi_store_release_bool(&publication->has_receivers, has_receivers);
    }
    return is_first;
}

/* Number of destinations that each get a copy. */
static int32_t proven_count(const asi_sender_publication *publication)
{
    const asi_destinations *destinations = &publication->endpoint->destinations;
    return publication->endpoint->has_destinations ? destinations->count - destinations->newcomer_count : 1;
}

/* Sends and reports failures; returns the number of datagrams sent. Returns 0 until `fan_out` has reached all destinations. */
static int32_t send_within(asi_sender *sender, asi_sender_publication *publication, asi_outgoing *datagrams, int32_t count,
    asi_fan_out *fan_out, int64_t *budget, int64_t *bytes)
{
    const int64_t budget_before = *budget;
    int32_t sent = 0;
    const as_result result = asi_sender_endpoint_send(
        publication->endpoint, publication, datagrams, count, sender->now_ns, fan_out, budget, &sent, bytes);
    if (publication->endpoint->has_destinations)
    {
        sender->copied_bytes += budget_before - *budget;
    }
    if (AS_OK != result)
    {
        asi_sender_log_failure(sender, result);
    }
    if (sent < count && 0 == fan_out->slots)
    {
        asi_sender_short_send(sender);
    }
    return sent;
}

/* Sends in one call. */
static int32_t send_datagrams(
    asi_sender *sender, asi_sender_publication *publication, asi_outgoing *datagrams, int32_t count, int64_t *bytes)
{
    asi_fan_out fan_out = { 0 };
    int64_t budget = INT64_MAX;
    const int32_t sent = send_within(sender, publication, datagrams, count, &fan_out, &budget, bytes);
    publication->cycle_bytes_left -= INT64_MAX - budget;
    return sent;
}

bool asi_sender_publication_send_frame(
    asi_sender *sender, asi_sender_publication *publication, const void *frame, int32_t length, int64_t *bytes)
{
    asi_outgoing datagram = { .bytes = frame, .length = length };
    return 1 == send_datagrams(sender, publication, &datagram, 1, bytes);
}

/* -- sending --------------------------------------------------------------------------------------------------------------- */

static position_in_log locate_nameable(const asi_sender_publication *publication, int64_t position)
{
    return locate(publication, asi_log_nameable_position(position, publication->log.term_length));
}

static asi_setup_frame make_setup(const asi_sender_publication *publication, int64_t position)
{
    const position_in_log at = locate_nameable(publication, position);
    return (asi_setup_frame){
        .prefix = {
            .frame_length = sizeof(asi_setup_frame),
            .type = ASI_FRAME_SETUP,
            .flags = (uint8_t)((publication->has_response_subscription ? ASI_SETUP_FLAG_RESPONSE : 0) |
                (publication->is_group ? ASI_SETUP_FLAG_GROUP : 0))
        },
        .term_offset = at.offset,
        .session_id = publication->session_id,
        .stream_id = publication->stream_id,
        .initial_term_id = publication->log.initial_term_id,
        .active_term_id = at.term_id,
        .term_length = publication->log.term_length,
        .mtu_length = publication->log.mtu_length,
        .ttl = publication->setup_ttl
    };
}

/* True when the publication is revoked and no receiver ever asked for more than its SETUP: a new receiver would only learn of its
 * end. A departure: stock continues for the linger time, so a server that dropped a peer with a forged address would send there
 * for that long. */
static bool is_given_up(const asi_sender_publication *publication)
{
    return !publication->has_initial_connection && 0 != asi_load_acquire_u8(&publication->log.metadata->is_publication_revoked);
}

/* Time between two SETUPs. A departure where the channel says setup-backoff=true: a server that answers to an unproven address
 * would otherwise send it 10 of them a second. */
static int64_t setup_interval(const asi_sender_publication *publication)
{
    return publication->backs_off_setups && !publication->has_initial_connection && publication->setup_interval_ns > 0 ?
        publication->setup_interval_ns : ASI_SETUP_INTERVAL_NS;
}

/* Spec: 04 §5.3. */
static void send_setup_if_due(asi_sender *sender, asi_sender_publication *publication, int64_t position)
{
    const int64_t interval_ns = setup_interval(publication);
    if (sender->now_ns - publication->last_setup_ns <= interval_ns)
    {
        return;
    }
    publication->last_setup_ns = sender->now_ns;
    publication->setup_interval_ns = publication->setup_interval_ns > 0 && interval_ns < SETUP_INTERVAL_MAX_NS ?
        2 * interval_ns : interval_ns;
    if (is_given_up(publication))
    {
        return;
    }
    if (publication->is_setup_elicited)
    {
        asi_flow_on_setup(&publication->flow, publication->limit, sender->now_ns);
    }
    const asi_setup_frame frame = make_setup(publication, position);
    asi_sender_endpoint *endpoint = publication->endpoint;
    int64_t bytes;
    asi_sender_publication_send_frame(sender, publication, &frame, sizeof(frame), &bytes);
    if (endpoint->has_destinations)
    {
        const asi_outgoing datagram = { .bytes = &frame, .length = sizeof(frame) };
        (void)asi_destinations_send_introduced(
            &endpoint->destinations, endpoint->ops, endpoint->socket, &datagram, sender->now_ns);
    }
    if (publication->is_setup_elicited && publication->receivers.count > 0)
    {
        publication->is_setup_elicited = false;
    }
}

/* Spec: 04 §18 - writes into the shared term buffer, so that a retransmit carries the time of the first send. The frame's length
 * may have changed since the scan, so the datagram's length bounds the write. */
static void stamp(const asi_sender *sender, const asi_outgoing *datagram, int32_t timestamp_offset)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)datagram->bytes;
    const asi_frame_header *frame = datagram->bytes;
    const int64_t at = (int64_t)AS_FRAME_HEADER_LENGTH + timestamp_offset;
    if (ASI_FRAME_DATA == frame->type && 0 != (frame->flags & ASI_FLAG_BEGIN) &&
        at + (int64_t)sizeof(int64_t) <= datagram->length && at + (int64_t)sizeof(int64_t) <= frame->frame_length)
    {
        asi_put_i64(bytes + at, asi_clock_epoch_ns(&sender->params.clock));
    }
}

static void stamp_all(
    const asi_sender *sender, const asi_sender_publication *publication, const asi_outgoing *datagrams, int32_t count)
{
    const int32_t offset = publication->endpoint->channel->channel_send_timestamp_offset;
    for (int32_t i = 0; ASI_TIMESTAMP_OFF != offset && i < count; i++)
    {
        stamp(sender, &datagrams[i], offset);
    }
}

static void on_back_pressure(asi_sender *sender, asi_sender_publication *publication)
{
    if (publication->is_tracking_limits)
    {
        publication->is_tracking_limits = false;
        asi_store_release_i64(
            publication->back_pressure_counter, asi_load_relaxed_i64(publication->back_pressure_counter) + 1);
        asi_sender_count(sender, ASI_SYSTEM_SENDER_FLOW_CONTROL_LIMITS, 1);
    }
}

static int32_t min_i32(int64_t a, int64_t b) { return (int32_t)(a < b ? a : b); }

/* Collects the datagrams of [position, position + length) of one term, each at most an MTU; `lengths` holds the log bytes that
 * each covers. */
static int32_t gather(const asi_sender_publication *publication, int64_t position, int64_t length, int32_t max_count,
    asi_outgoing *datagrams, int32_t *lengths, bool *is_blocked)
{
    const position_in_log at = locate(publication, position);
    int32_t offset = at.offset;
    int32_t count = 0;
    *is_blocked = false;
    while (count < max_count && length > 0 && offset < publication->log.term_length)
    {
        const int32_t left_in_term = publication->log.term_length - offset;
        int32_t padding;
        const int32_t limit = min_i32(min_i32(length, publication->log.mtu_length), left_in_term);
        const int32_t available = asi_scan_available(at.term, offset, limit, &padding);
        if (available <= 0)
        {
            *is_blocked = available < 0;
            break;
        }
        datagrams[count] = (asi_outgoing){ .bytes = at.term + offset, .length = available };
        lengths[count] = min_i32((int64_t)available + padding, left_in_term);
        AS_ASSERT(available <= limit && lengths[count] >= available);
        offset += lengths[count];
        length -= lengths[count];
        count++;
    }
    return count;
}

/* Starts the interval that measures the allowance for resends. */
static void begin_interval_if_due(asi_sender_publication *publication, int64_t now_ns)
{
    const int64_t since_ns = now_ns - publication->credit_since_ns;
    if (since_ns > CREDIT_INTERVAL_NS)
    {
        publication->credit_since_ns = now_ns;
        publication->sent_before_bytes = since_ns > 2 * CREDIT_INTERVAL_NS ? 0 : publication->sent_bytes;
        publication->sent_bytes = 0;
        publication->resent_bytes = 0;
    }
}

/* Spec: 04 §5.4. Datagrams that the network accepted are done; the rest is sent in the next cycle. A batch for many destinations
 * stays the same until it has reached all of them. */
static int64_t send_data(asi_sender *sender, asi_sender_publication *publication)
{
    asi_outgoing datagrams[ASI_UDP_MAX_BATCH];
    int32_t lengths[ASI_UDP_MAX_BATCH];
    const bool is_in_progress = publication->fan_out.slots > 0;
    const int64_t zeroed_limit = asi_load_acquire_i64(&publication->zeroed_limit); /* pairs with the conductor's cleaning */
    const int64_t limit = publication->limit < zeroed_limit ? publication->limit : zeroed_limit;
    const int64_t window = is_in_progress ? publication->batch_length : limit - publication->position;
    bool is_blocked;
    const int32_t max_count = is_in_progress ? publication->batch_count :
        min_i32((int64_t)publication->max_messages_per_send * DATAGRAMS_PER_MESSAGE, ASI_UDP_MAX_BATCH);
    const int32_t count =
        gather(publication, publication->position, window, max_count, datagrams, lengths, &is_blocked);
    if (0 == count && (is_blocked || window <= 0)) /* once: the next sent data begins a new episode */
    {
        on_back_pressure(sender, publication);
    }
    if (0 == count)
    {
        publication->fan_out = (asi_fan_out){ 0 };
        return 0;
    }
    if (!is_in_progress)
    {
        stamp_all(sender, publication, datagrams, count);
    }
    int64_t bytes;
    const int32_t sent =
        send_within(sender, publication, datagrams, count, &publication->fan_out, &publication->cycle_bytes_left, &bytes);
    if (publication->fan_out.slots > 0)
    {
        publication->batch_count = count;
        publication->batch_length = 0;
        for (int32_t i = 0; i < count; i++)
        {
            publication->batch_length += lengths[i];
        }
    }
    int64_t position = publication->position;
    for (int32_t i = 0; i < sent; i++)
    {
        position += lengths[i];
    }
    if (sent > 0)
    {
        begin_interval_if_due(publication, sender->now_ns);
        publication->sent_bytes += position - publication->position;
        set_position(publication, position);
        publication->last_data_or_heartbeat_ns = sender->now_ns;
        publication->is_tracking_limits = true;
    }
    return bytes;
}

static asi_frame_header make_heartbeat(const asi_sender_publication *publication, uint8_t flags)
{
    const position_in_log at = locate_nameable(publication, publication->position);
    return (asi_frame_header){
        .flags = flags,
        .type = ASI_FRAME_DATA,
        .term_offset = at.offset,
        .session_id = publication->session_id,
        .stream_id = publication->stream_id,
        .term_id = at.term_id
    };
}

/* Spec: 04 §5.5. */
static int64_t send_heartbeat_if_due(asi_sender *sender, asi_sender_publication *publication)
{
    if (!publication->has_initial_connection ||
        sender->now_ns - publication->last_data_or_heartbeat_ns <= ASI_HEARTBEAT_INTERVAL_NS)
    {
        return 0;
    }
    publication->last_data_or_heartbeat_ns = sender->now_ns;
    uint8_t flags = ASI_FLAG_UNFRAGMENTED;
    if (asi_load_acquire_bool(&publication->is_revoked))
    {
        flags |= ASI_FLAG_EOS | ASI_FLAG_REVOKED;
    }
    else if (publication->signal_eos && asi_load_acquire_bool(&publication->is_end_of_stream))
    {
        flags |= ASI_FLAG_EOS;
    }
    const asi_frame_header frame = make_heartbeat(publication, flags);
    int64_t bytes;
    asi_sender_publication_send_frame(sender, publication, &frame, sizeof(frame), &bytes);
    asi_sender_count(sender, ASI_SYSTEM_HEARTBEATS_SENT, 1);
    return bytes;
}

/* Spec: 04 §5.3, §5.5 - a heartbeat makes an interested receiver request the SETUP itself. */
int32_t asi_sender_publication_introduction(const asi_sender_publication *publication, void *to)
{
    if (!publication->has_initial_connection)
    {
        const asi_setup_frame frame = make_setup(publication, publication->position);
        AS_STATIC_ASSERT(ASI_INTRODUCTION_LENGTH == sizeof(frame), "an introduction holds the longer of both");
        memcpy(to, &frame, sizeof(frame));
        return (int32_t)sizeof(frame);
    }
    if (asi_load_acquire_bool(&publication->is_end_of_stream))
    {
        return 0;
    }
    const asi_frame_header frame = make_heartbeat(publication, ASI_FLAG_UNFRAGMENTED);
    memcpy(to, &frame, sizeof(frame));
    return (int32_t)sizeof(frame);
}

/* A NAK of a few bytes must not trigger megabytes of resends without limit. Only sent data can be missing, so the stream's own
 * rate is the measure. In a group each receiver adds an eighth, because each may miss different data. When nothing was sent for a
 * while, a window at most is missing; with many destinations, each of which gets a copy, the allowance is smaller. */
static int64_t resend_credit(asi_sender_publication *publication, int64_t now_ns)
{
    begin_interval_if_due(publication, now_ns);
    const int32_t copies = proven_count(publication);
    int64_t idle = publication->retransmit.window_length;
    if (copies > 0 && idle > IDLE_COPIES / copies)
    {
        idle = IDLE_COPIES / copies > MIN_CREDIT ? IDLE_COPIES / copies : MIN_CREDIT;
    }
    const int64_t factor = 16 + (publication->is_group ? publication->receivers.count : 0); /* in eighths */
    return idle + (publication->sent_bytes + publication->sent_before_bytes) / 8 * factor - publication->resent_bytes;
}

/* The receiver chooses the offset, so it must be checked: inside a message are bytes of an application, which must not be sent as
 * a frame. */
static bool begins_frame(const asi_sender_publication *publication, const asi_resend *range, int64_t position)
{
    const position_in_log at = locate(publication, position);
    const asi_frame_header *frame = (const asi_frame_header *)(const void *)(at.term + at.offset);
    return frame->term_offset == at.offset && frame->term_id == range->term_id && frame->session_id == publication->session_id &&
        frame->stream_id == publication->stream_id && 0 == frame->version &&
        (ASI_FRAME_DATA == frame->type || ASI_FRAME_PAD == frame->type);
}

bool asi_sender_publication_can_resend(const asi_sender_publication *publication, const asi_resend *range)
{
    const asi_log *log = &publication->log;
    const int64_t margin = min_i32(log->term_length / 8, RESEND_MARGIN_MAX);
    const int64_t position = asi_log_position(range->term_id, range->term_offset, log->position_bits, log->initial_term_id);
    return position >= publication->position - log->term_length / 2 - margin && position >= 0 && position < publication->position &&
        begins_frame(publication, range, position);
}

void asi_sender_publication_resend(asi_sender *sender, asi_sender_publication *publication, const asi_resend *range)
{
    const asi_log *log = &publication->log;
    int64_t position = asi_log_position(range->term_id, range->term_offset, log->position_bits, log->initial_term_id);
    if (!asi_sender_publication_can_resend(publication, range))
    {
        return;
    }
    const int64_t copies = proven_count(publication) > 0 ? proven_count(publication) : 1;
    const int64_t credit = resend_credit(publication, sender->now_ns);
    /* Heartbeats name the maximum position by the slot before it, so a receiver that lacks the end asks for all but this slot. */
    const bool is_to_end = position + range->length == asi_log_nameable_position(INT64_MAX, log->term_length);
    int64_t left = min_i32(is_to_end ? INT64_MAX : range->length, publication->position - position);
    int64_t resent = 0;
    left = left < credit ? left : credit;
    while (left > 0)
    {
        asi_outgoing datagrams[ASI_UDP_MAX_BATCH];
        int32_t lengths[ASI_UDP_MAX_BATCH];
        bool is_blocked;
        int64_t bytes;
        if (publication->cycle_bytes_left <= 0)
        {
            asi_retransmit_put_back(&publication->retransmit, range, (int32_t)resent);
            break;
        }
        const int64_t fitting = publication->cycle_bytes_left / (log->mtu_length * copies);
        const int32_t max_count = min_i32(fitting > 0 ? fitting : 1, ASI_UDP_MAX_BATCH);
        const int32_t count = gather(publication, position, left, max_count, datagrams, lengths, &is_blocked);
        stamp_all(sender, publication, datagrams, count);
        const int32_t sent = 0 == count ? 0 : send_datagrams(sender, publication, datagrams, count, &bytes);
        for (int32_t i = 0; i < sent; i++)
        {
            position += lengths[i];
            left -= lengths[i];
            resent += lengths[i];
        }
        if (sent < max_count)
        {
            break;
        }
    }
    if (resent > 0)
    {
        publication->resent_bytes += resent;
        asi_sender_count(sender, ASI_SYSTEM_RETRANSMITS_SENT, 1);
        asi_events_log(sender->params.events, ASI_EVENT_RESEND,
            "sessionId=%d streamId=%d termId=%d termOffset=%d length=%" PRId64, publication->session_id, publication->stream_id,
            range->term_id, range->term_offset, resent);
        asi_sender_count(sender, ASI_SYSTEM_RETRANSMITTED_BYTES, resent);
    }
}

static void resend_what_is_due(asi_sender *sender, asi_sender_publication *publication)
{
    asi_resend range;
    while (publication->cycle_bytes_left > 0 && asi_retransmit_next_due(&publication->retransmit, sender->now_ns, &range))
    {
        asi_sender_publication_resend(sender, publication, &range);
    }
}

static void on_idle(asi_sender *sender, asi_sender_publication *publication)
{
    const int64_t now_ns = sender->now_ns;
    if (publication->spies_simulate_connection && 0 == publication->receivers.count &&
        asi_load_acquire_bool(&publication->has_spies))
    {
        const int64_t spy_position = asi_load_acquire_i64(&publication->max_spy_position);
        if (spy_position > publication->position)
        {
            publication->fan_out = (asi_fan_out){ 0 }; /* no receiver is left to get the rest */
            set_position(publication, spy_position);
        }
        asi_sender_publication_set_limit(publication, asi_flow_on_idle(&publication->flow, publication->position, now_ns));
    }
    else
    {
        asi_sender_publication_set_limit(publication, asi_flow_on_idle(&publication->flow, publication->limit, now_ns));
    }
    asi_receivers_expire(&publication->receivers, now_ns, publication->connection_timeout_ns);
    asi_sender_publication_show_receivers(publication);
}

/* Sets the time until which a publication without data needs no check except for its next frame. */
static void set_quiet_until(const asi_sender *sender, asi_sender_publication *publication)
{
    const int64_t due_ns = publication->has_initial_connection ?
        publication->last_data_or_heartbeat_ns + ASI_HEARTBEAT_INTERVAL_NS : publication->last_setup_ns + ASI_SETUP_INTERVAL_NS;
    const int64_t latest_ns = sender->now_ns + ASI_PUBLICATION_QUIET_NS;
    const position_in_log at = locate(publication, publication->position);
    publication->next_frame_length = (const int32_t *)(const void *)(at.term + at.offset);
    publication->quiet_until_ns = publication->spies_simulate_connection || publication->is_setup_elicited ||
        publication->retransmit.active_count > 0 ? INT64_MIN : due_ns < latest_ns ? due_ns : latest_ns;
}

int64_t asi_sender_publication_send(asi_sender *sender, asi_sender_publication *publication)
{
    if (sender->now_ns < publication->quiet_until_ns && asi_load_acquire_i32(publication->next_frame_length) <= 0)
    {
        return 0;
    }
    publication->quiet_until_ns = INT64_MIN;
    publication->cycle_bytes_left = MAX_CYCLE_BYTES;
    if (!publication->has_initial_connection || publication->is_setup_elicited)
    {
        send_setup_if_due(sender, publication, publication->position);
    }
    int64_t bytes = send_data(sender, publication);
    if (0 == bytes)
    {
        bytes = send_heartbeat_if_due(sender, publication);
        on_idle(sender, publication);
    }
    resend_what_is_due(sender, publication);
    if (0 == bytes)
    {
        set_quiet_until(sender, publication);
    }
    return bytes;
}
