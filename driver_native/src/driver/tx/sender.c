/* See sender.h. */
#include "driver/tx/sender.h"

#include <stdio.h>

#include "base/atomic.h"
#include "driver/tx/publication.h"
#include "driver/tx/publication_control.h"
#include "driver/tx/sender_report.h"
#include "wire/frame_check.h"

#define BATCHES_PER_POLL 16
#define COMMANDS_PER_CYCLE 16
#define COPIES_PER_CYCLE (8 * 1024 * 1024) /* limit of bytes to many destinations: about ten milliseconds */
#define PEER_SILENCE_NS 5000000000LL /* Spec: 04 §16.1 */

void asi_sender_open(asi_sender *sender, const asi_sender_params *params)
{
    *sender = (asi_sender){ .params = *params, .now_ns = asi_clock_ns(&params->clock) };
    sender->last_poll_ns = sender->now_ns;
    sender->last_resolution_check_ns = sender->now_ns;
    sender->next_round_ns = INT64_MAX;
    asi_udp_poller_open(&sender->poller);
}

void asi_sender_close(asi_sender *sender) { asi_udp_poller_close(&sender->poller); }

/* -- commands ----------------------------------------------------------------------------------------------------------- */

static void add_publication(asi_sender *sender, asi_sender_publication *publication)
{
    asi_sender_publication *first = sender->publications;
    publication->next = NULL == first ? publication : first;
    publication->previous = NULL == first ? publication : first->previous;
    publication->next->previous = publication;
    publication->previous->next = publication;
    sender->publications = NULL == first ? publication : first;
    sender->publication_count++;
    publication->quiet_until_ns = INT64_MIN;
    publication->last_setup_ns = sender->now_ns - ASI_SETUP_INTERVAL_NS - 1;
    publication->last_data_or_heartbeat_ns = sender->now_ns - ASI_HEARTBEAT_INTERVAL_NS - 1;
    asi_sender_endpoint_add(publication->endpoint, publication);
}

static void remove_publication(asi_sender *sender, asi_sender_publication *publication)
{
    publication->previous->next = publication->next;
    publication->next->previous = publication->previous;
    if (sender->publications == publication)
    {
        sender->publications = publication->next == publication ? NULL : publication->next;
    }
    sender->publication_count--;
    asi_round_robin_remove(&sender->schedule, publication);
    asi_sender_endpoint_remove(publication->endpoint, publication);
    asi_store_release_bool(&publication->is_released, true);
}

static void add_endpoint(asi_sender *sender, asi_sender_endpoint *endpoint)
{
    endpoint->last_status_ns = sender->now_ns;
    endpoint->next = sender->endpoints;
    sender->endpoints = endpoint;
    asi_udp_poller_add(&sender->poller, endpoint->ops, endpoint->socket, endpoint);
}

static void remove_endpoint(asi_sender *sender, asi_sender_endpoint *endpoint)
{
    for (asi_sender_endpoint **slot = &sender->endpoints; NULL != *slot; slot = &(*slot)->next)
    {
        if (*slot == endpoint)
        {
            *slot = endpoint->next;
            asi_udp_poller_remove(&sender->poller, endpoint->ops, endpoint->socket);
            break;
        }
    }
    asi_store_release_bool(&endpoint->is_released, true);
}

static void add_destination(asi_sender *sender, const asi_sender_command *command)
{
    if (!asi_destinations_add(&command->endpoint->destinations, &command->address, command->destination_id, sender->now_ns))
    {
        char text[ASI_ADDRESS_TEXT_CAPACITY];
        asi_address_format(&command->address, text);
        asi_sender_log_failure(sender, asi_fail(AS_E_USAGE, 0, "no room for destination %s: a publication has at most %d", text,
            command->endpoint->destinations.capacity));
    }
}

static void move_endpoint(asi_sender *sender, asi_sender_endpoint *endpoint, const asi_address *address)
{
    const as_result result = !endpoint->is_connected ? AS_OK :
        endpoint->ops->reconnect(endpoint->ops->context, endpoint->socket, address);
    if (AS_OK == result)
    {
        endpoint->peer = *address;
    }
    else
    {
        asi_sender_log_failure(sender, result);
    }
}

static void move_destination(const asi_sender_command *command)
{
    asi_destinations *destinations = &command->endpoint->destinations;
    for (int32_t i = 0; i < destinations->slot_count; i++)
    {
        if (destinations->items[i].is_used && command->destination_id == destinations->items[i].registration_id)
        {
            destinations->items[i].address = command->address;
        }
    }
}

static void on_agent_command(asi_sender *sender, const asi_sender_command *command)
{
    switch (command->kind)
    {
        case ASI_SENDER_ADD_ENDPOINT: add_endpoint(sender, command->endpoint); break;
        case ASI_SENDER_REMOVE_ENDPOINT: remove_endpoint(sender, command->endpoint); break;
        case ASI_SENDER_ADD_PUBLICATION: add_publication(sender, command->publication); break;
        case ASI_SENDER_REMOVE_PUBLICATION: remove_publication(sender, command->publication); break;
        case ASI_SENDER_ADD_DESTINATION: add_destination(sender, command); break;
        case ASI_SENDER_REMOVE_DESTINATION:
            asi_destinations_remove(&command->endpoint->destinations, command->destination_id);
            break;
        case ASI_SENDER_ENDPOINT_MOVED: move_endpoint(sender, command->endpoint, &command->address); break;
        case ASI_SENDER_DESTINATION_MOVED: move_destination(command); break;
    }
}

/* -- control frames, Spec: 04 §5.6, §7.1, §10.5, §14, §15.3 ---------------------------------------------------------------- */

/* A window larger than any receiver's would disable back-pressure for all. Spec: 11 N4 */
static bool is_valid_status(const asi_sender_publication *publication, const asi_status_frame *frame)
{
    const int32_t term_length = NULL != publication ? publication->log.term_length : AS_TERM_MAX_LENGTH;
    const int32_t offset = frame->consumption_term_offset;
    return offset >= 0 && offset < term_length && 0 == offset % AS_FRAME_ALIGNMENT && frame->receiver_window >= 0 &&
        frame->receiver_window <= term_length / 2;
}

/* Passes the source of a status message to the endpoint's destinations, with what the message proves about it. */
static void update_destinations(asi_sender *sender, asi_sender_endpoint *endpoint, const asi_sender_publication *publication,
    const asi_status_frame *frame, const asi_address *source)
{
    asi_destinations *destinations = &endpoint->destinations;
    const bool had_refused = destinations->has_refused;
    const bool is_asking = 0 != (frame->prefix.flags & ASI_STATUS_FLAG_SEND_SETUP);
    asi_destinations_on_status_message(destinations, frame->receiver_id, source,
        NULL == publication ? ASI_UNPROVEN : is_asking ? ASI_INTRODUCED : ASI_PROVEN, sender->now_ns);
    if (destinations->next_round_ns < sender->next_round_ns)
    {
        sender->next_round_ns = destinations->next_round_ns;
    }
    if (destinations->has_refused && !had_refused)
    {
        asi_sender_log_failure(sender, asi_fail(AS_E_USAGE, 0, "no more than %d destinations of one address: raise "
            "aeron.spark.driver.destinations.per.address.max if they are yours", destinations->capacity_per_address));
    }
}

static void on_status(
    asi_sender *sender, asi_sender_endpoint *endpoint, const asi_status_frame *frame, const asi_address *source)
{
    asi_sender_publication *publication = asi_sender_endpoint_find(endpoint, frame->stream_id, frame->session_id);
    if (!is_valid_status(publication, frame))
    {
        asi_sender_count(sender, ASI_SYSTEM_INVALID_PACKETS, 1);
        return;
    }
    asi_sender_count(sender, ASI_SYSTEM_STATUS_MESSAGES_RECEIVED, 1);
    if (NULL != publication && 0 == (frame->prefix.flags & ASI_STATUS_FLAG_SEND_SETUP) &&
        !asi_sender_publication_is_status_in_bounds(publication, frame))
    {
        asi_sender_count(sender, ASI_SYSTEM_STATUS_MESSAGES_REJECTED, 1);
        return;
    }
    if (endpoint->has_destinations)
    {
        update_destinations(sender, endpoint, publication, frame, source);
    }
    if (NULL != publication)
    {
        endpoint->last_status_ns = sender->now_ns;
        asi_sender_publication_on_status(sender, publication, frame, source);
    }
}

static void on_nak(asi_sender *sender, asi_sender_endpoint *endpoint, const asi_nak_frame *frame)
{
    asi_sender_publication *publication = asi_sender_endpoint_find(endpoint, frame->stream_id, frame->session_id);
    if (NULL != publication)
    {
        asi_sender_publication_on_nak(sender, publication, frame);
    }
}

static void on_error(asi_sender *sender, asi_sender_endpoint *endpoint, const asi_incoming *datagram)
{
    const asi_error_frame *frame = (const asi_error_frame *)(const void *)datagram->buffer;
    asi_sender_publication *publication = asi_sender_endpoint_find(endpoint, frame->stream_id, frame->session_id);
    asi_sender_count(sender, ASI_SYSTEM_ERROR_FRAMES_RECEIVED, 1);
    if (NULL != publication)
    {
        asi_sender_publication_on_error(sender, publication, frame, &datagram->source);
    }
}

static void on_rttm(
    asi_sender *sender, asi_sender_endpoint *endpoint, const asi_rttm_frame *frame, const asi_address *source)
{
    asi_sender_publication *publication = asi_sender_endpoint_find(endpoint, frame->stream_id, frame->session_id);
    if (NULL != publication)
    {
        asi_sender_publication_on_rttm(sender, publication, frame, source);
    }
}

static void on_response_setup(asi_sender *sender, asi_sender_endpoint *endpoint, const asi_response_setup_frame *frame)
{
    asi_sender_publication *publication = asi_sender_endpoint_find(endpoint, frame->stream_id, frame->session_id);
    if (NULL != publication)
    {
        asi_sender_publication_on_response_setup(sender, publication, frame);
    }
}

static void on_datagram_untrusted(asi_sender *sender, asi_sender_endpoint *endpoint, const asi_incoming *datagram)
{
    const void *bytes = datagram->buffer;
    const asi_datagram_verdict verdict = asi_check_control_datagram_untrusted(bytes, datagram->length);
    if (ASI_DATAGRAM_INVALID == verdict)
    {
        asi_sender_count(sender, ASI_SYSTEM_INVALID_PACKETS, 1);
    }
    if (ASI_DATAGRAM_ACCEPTED != verdict)
    {
        return;
    }
    switch (((const asi_frame_prefix *)bytes)->type)
    {
        case ASI_FRAME_STATUS: on_status(sender, endpoint, bytes, &datagram->source); break;
        case ASI_FRAME_NAK: on_nak(sender, endpoint, bytes); break;
        case ASI_FRAME_ERROR: on_error(sender, endpoint, datagram); break;
        case ASI_FRAME_RTTM: on_rttm(sender, endpoint, bytes, &datagram->source); break;
        case ASI_FRAME_RESPONSE_SETUP: on_response_setup(sender, endpoint, bytes); break;
        default: break;
    }
}

/* Reads one batch; returns the number of datagrams. */
static int32_t poll_batch(asi_sender *sender, asi_sender_endpoint *endpoint, int32_t capacity)
{
    asi_incoming datagrams[ASI_UDP_MAX_BUFFERS];
    int32_t received = 0;
    for (int32_t i = 0; i < capacity; i++)
    {
        datagrams[i] = (asi_incoming){ .buffer = sender->buffers[i], .capacity = ASI_CONTROL_BUFFER_LENGTH };
    }
    const as_result result =
        endpoint->ops->receive(endpoint->ops->context, endpoint->socket, datagrams, capacity, &received);
    if (AS_OK != result)
    {
        asi_sender_log_failure(sender, result);
    }
    for (int32_t i = 0; i < received; i++)
    {
        on_datagram_untrusted(sender, endpoint, &datagrams[i]);
    }
    return received;
}

/* An endpoint with many streams gets status messages from all of their receivers; one batch per cycle would not keep up. */
static int poll_endpoint(asi_sender *sender, asi_sender_endpoint *endpoint)
{
    const int32_t capacity = (int32_t)sender->params.settings->sender_io_vector_capacity;
    int total = 0;
    for (int32_t i = 0; i < BATCHES_PER_POLL; i++)
    {
        const int32_t received = poll_batch(sender, endpoint, capacity);
        total += received;
        if (received < capacity)
        {
            break;
        }
    }
    return total;
}

static int poll_ready(asi_sender *sender)
{
    void *ready[ASI_UDP_POLLER_BATCH];
    int received = 0;
    const int32_t count = asi_udp_poller_poll(&sender->poller, ready);
    for (int32_t i = 0; i < count; i++)
    {
        received += poll_endpoint(sender, ready[i]);
    }
    return received;
}

static int poll_all(asi_sender *sender)
{
    int received = 0;
    for (asi_sender_endpoint *endpoint = sender->endpoints; NULL != endpoint; endpoint = endpoint->next)
    {
        received += poll_endpoint(sender, endpoint);
    }
    return received;
}

static int poll_control(asi_sender *sender)
{
    const int received = asi_udp_poller_is_worth_it(&sender->poller) ? poll_ready(sender) : poll_all(sender);
    sender->last_poll_ns = sender->now_ns;
    sender->cycles_since_poll = 0;
    return received;
}

/* -- duty cycle --------------------------------------------------------------------------------------------------------- */

static int64_t send_publication(asi_sender *sender, asi_sender_publication *publication)
{
    const int64_t position = publication->position;
    const int64_t bytes = asi_sender_publication_send(sender, publication);
    if (position != publication->position || publication->fan_out.slots > 0)
    {
        asi_round_robin_mark_busy(&sender->schedule, publication, sender->now_ns);
    }
    return bytes;
}

static bool may_go_on(const asi_sender *sender) { return sender->copied_bytes < COPIES_PER_CYCLE; }

static int64_t send_busy(asi_sender *sender)
{
    int64_t bytes = 0;
    const int32_t count = sender->schedule.busy_count;
    const int32_t start = count > 0 ? sender->next_busy % count : 0;
    for (int32_t i = 0; i < count && may_go_on(sender); i++)
    {
        const int32_t at = (start + i) % count;
        bytes += send_publication(sender, sender->schedule.busy[at].item);
        sender->next_busy = at + 1;
    }
    return bytes;
}

/* Spec: 11 T4 - each cycle starts with a different publication. A cycle that copied many bytes to many destinations ends early,
 * and the next one starts where it stopped. */
static int64_t send_publications(asi_sender *sender)
{
    int64_t bytes = 0;
    const int32_t turns = asi_round_robin_slots(&sender->schedule, sender->publication_count, sender->now_ns);
    asi_sender_publication *publication = sender->publications;
    int32_t done = 0;
    for (; done < turns && may_go_on(sender); done++)
    {
        bytes += send_publication(sender, publication);
        publication = publication->next;
    }
    if (turns < sender->publication_count)
    {
        bytes += send_busy(sender);
    }
    if (NULL != publication)
    {
        /* The next cycle starts with another publication. */
        sender->publications = done < sender->publication_count ? publication : publication->next;
    }
    asi_round_robin_expire_busy(&sender->schedule, sender->now_ns);
    if (bytes > 0)
    {
        asi_sender_count(sender, ASI_SYSTEM_BYTES_SENT, bytes);
    }
    return bytes;
}

/* -- introductions to new destinations, see net/destinations.h ------------------------------------------------------------ */

typedef struct introductions
{
    const asi_sender_endpoint *endpoint;
    uint8_t frames[ASI_NEWCOMER_FRAMES][ASI_INTRODUCTION_LENGTH] __attribute__((aligned(8)));
} introductions;

/* The order is that of the table of chains. A cursor names a chain, and how many of its publications are passed. */
static int32_t next_introductions(void *context, int64_t *cursor, asi_outgoing *datagrams, int32_t capacity)
{
    introductions *to = context;
    const int64_t first = *cursor >> 32;
    const int64_t passed = *cursor & INT32_MAX;
    int32_t count = 0;
    for (int64_t i = 0; i <= ASI_SEND_BUCKETS && count < capacity; i++)
    {
        const int64_t bucket = (first + i) % ASI_SEND_BUCKETS;
        const int64_t end = ASI_SEND_BUCKETS == i ? passed : INT32_MAX;
        const asi_sender_publication *publication = to->endpoint->buckets[bucket];
        for (int64_t at = 0; NULL != publication && at < end && count < capacity; at++)
        {
            const bool is_next = 0 != i || at >= passed;
            const int32_t length = is_next ? asi_sender_publication_introduction(publication, to->frames[count]) : 0;
            if (length > 0)
            {
                datagrams[count] = (asi_outgoing){ .bytes = to->frames[count], .length = length };
                *cursor = bucket << 32 | (at + 1);
                count++;
            }
            publication = publication->next_in_bucket;
        }
    }
    return count;
}

static int64_t introduce(asi_sender *sender, asi_sender_endpoint *endpoint)
{
    introductions to = { .endpoint = endpoint };
    const asi_introductions from = { .next = next_introductions, .context = &to };
    return asi_destinations_introduce(
        &endpoint->destinations, &sender->newcomer_reserve, endpoint->ops, endpoint->socket, &from, sender->now_ns);
}

static int64_t introduce_all(asi_sender *sender)
{
    int64_t bytes = 0;
    if (sender->now_ns < sender->next_round_ns)
    {
        return 0;
    }
    sender->next_round_ns = INT64_MAX;
    for (asi_sender_endpoint *endpoint = sender->endpoints; NULL != endpoint; endpoint = endpoint->next)
    {
        asi_destinations *destinations = &endpoint->destinations;
        if (endpoint->has_destinations && sender->now_ns >= destinations->next_round_ns)
        {
            bytes += introduce(sender, endpoint);
        }
        if (endpoint->has_destinations && destinations->next_round_ns < sender->next_round_ns)
        {
            sender->next_round_ns = destinations->next_round_ns;
        }
    }
    return bytes;
}

/* Spec: 04 §16. */
static void check_silence(asi_sender *sender)
{
    for (asi_sender_endpoint *endpoint = sender->endpoints; NULL != endpoint; endpoint = endpoint->next)
    {
        asi_conductor_command command = { .kind = ASI_CONDUCTOR_RESOLVE_SEND_ENDPOINT,
            .resolve = { .endpoint_id = endpoint->id, .destination_id = AS_NULL_VALUE, .current = endpoint->peer } };
        if (endpoint->is_re_resolvable && sender->now_ns - endpoint->last_status_ns > PEER_SILENCE_NS)
        {
            endpoint->last_status_ns = sender->now_ns;
            asi_sender_notify_conductor(sender, &command);
        }
        if (!endpoint->has_destinations || !endpoint->destinations.is_manual)
        {
            continue;
        }
        command.kind = ASI_CONDUCTOR_RESOLVE_SEND_DESTINATION;
        for (const asi_destination *silent = asi_destinations_next_silent(&endpoint->destinations, sender->now_ns);
             NULL != silent; silent = asi_destinations_next_silent(&endpoint->destinations, sender->now_ns))
        {
            command.resolve.destination_id = silent->registration_id;
            command.resolve.current = silent->address;
            asi_sender_notify_conductor(sender, &command);
        }
    }
}

int asi_sender_do_work(asi_sender *sender)
{
    const asi_driver_settings *settings = sender->params.settings;
    sender->now_ns = asi_clock_ns(&sender->params.clock);
    asi_cycle_time_track(&sender->cycle, sender->now_ns, settings->sender_cycle_threshold_ns, sender->params.counters,
        ASI_SYSTEM_SENDER_MAX_CYCLE_TIME, ASI_SYSTEM_SENDER_CYCLE_EXCEEDED);
    asi_sender_command command;
    int work = 0;
    while (work < COMMANDS_PER_CYCLE && asi_command_queue_take(sender->params.command, &command))
    {
        on_agent_command(sender, &command);
        work++;
    }
    sender->copied_bytes = 0;
    const int64_t short_sends = sender->short_sends;
    const int64_t bytes = send_publications(sender);
    work += bytes > 0 ? 1 : 0;
    sender->cycles_since_poll++;
    if (0 == bytes || sender->cycles_since_poll >= settings->send_to_status_poll_ratio ||
        sender->now_ns - sender->last_poll_ns > settings->status_message_timeout_ns / 2 || short_sends != sender->short_sends)
    {
        work += poll_control(sender);
    }
    work += introduce_all(sender) > 0 ? 1 : 0;
    if (settings->reresolution_check_interval_ns > 0 &&
        sender->now_ns - sender->last_resolution_check_ns > settings->reresolution_check_interval_ns)
    {
        sender->last_resolution_check_ns = sender->now_ns;
        check_silence(sender);
    }
    return work;
}
