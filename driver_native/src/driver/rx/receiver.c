/* The receiver's duty cycle and its handling of each datagram; see receiver.h. */
#include "driver/rx/receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "driver/rx/image_status.h"
#include "driver/rx/receiver_commands.h"
#include "driver/rx/receiver_report.h"
#include "driver/rx/receiver_send.h"
#include "wire/frame_check.h"

#define COMMANDS_PER_CYCLE 8
#define READS_PER_POLL 8                   /* for one socket, while it fills all buffers */
#define SETUP_TIMEOUT_NS 1000000000LL      /* Spec: 04 §8.3 */
#define NO_ROOM_INTERVAL_NS 1000000000LL
#define CONTROL_SILENCE_NS 5000000000LL    /* Spec: 04 §16.1 */

as_result asi_receiver_open(asi_receiver *receiver, const asi_receiver_params *params)
{
    *receiver = (asi_receiver){ .params = *params };
    const int32_t capacity = params->io_vector_capacity;
    as_result result = asi_dispatch_open(&receiver->dispatch, ASI_DISPATCH_STREAM_CAPACITY, ASI_DISPATCH_SESSION_CAPACITY);
    if (AS_OK != result)
    {
        return result;
    }
    receiver->endpoints = calloc(ASI_RECEIVER_MAX_ENDPOINTS, sizeof(*receiver->endpoints));
    receiver->images = calloc(ASI_RECEIVER_MAX_IMAGES, sizeof(*receiver->images));
    receiver->pending = calloc(ASI_PENDING_SETUP_CAPACITY, sizeof(*receiver->pending));
    receiver->buffers = aligned_alloc(ASI_CACHE_LINE, (size_t)capacity * ASI_UDP_BUFFER_LENGTH);
    receiver->incoming = calloc((size_t)capacity * ASI_UDP_MAX_SEGMENTS, sizeof(*receiver->incoming));
    if (NULL == receiver->endpoints || NULL == receiver->images || NULL == receiver->pending || NULL == receiver->buffers ||
        NULL == receiver->incoming)
    {
        asi_receiver_close(receiver);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the receiver");
    }
    asi_udp_poller_open(&receiver->poller);
    receiver->now_ns = asi_clock_ns(&params->clock);
    receiver->last_resolution_check_ns = receiver->now_ns;
    receiver->last_no_room_ns = receiver->now_ns - NO_ROOM_INTERVAL_NS;
    asi_proofs_init(&receiver->proofs, params->secret, receiver->now_ns);
    return AS_OK;
}

void asi_receiver_close(asi_receiver *receiver)
{
    asi_udp_poller_close(&receiver->poller);
    asi_dispatch_close(&receiver->dispatch);
    free(receiver->endpoints);
    free(receiver->images);
    free(receiver->pending);
    free(receiver->buffers);
    free(receiver->incoming);
    *receiver = (asi_receiver){ 0 };
}

/* True when the entry stays. */
/* --- pending setups --- */

static bool check_pending(asi_receiver *receiver, asi_pending_setup *pending)
{
    if (receiver->now_ns <= pending->since_ns + SETUP_TIMEOUT_NS)
    {
        return true;
    }
    if (pending->is_periodic)
    {
        if (pending->endpoint->stream_count > 0)
        {
            asi_receiver_send_setup_request(
                receiver, pending->endpoint, pending->destination, 0, 0, &pending->destination->control_address);
        }
        pending->since_ns = receiver->now_ns;
        return true;
    }
    asi_session *session =
        asi_dispatch_find(&receiver->dispatch, pending->endpoint, pending->stream_id, pending->session_id);
    if (NULL != session && ASI_SESSION_PENDING_SETUP == session->state)
    {
        asi_dispatch_set_state(&receiver->dispatch, session, ASI_SESSION_NONE, NULL); /* the next data requests it again */
    }
    return false;
}

static void check_pending_setups(asi_receiver *receiver)
{
    for (int32_t i = receiver->pending_count - 1; i >= 0; i--)
    {
        if (!check_pending(receiver, &receiver->pending[i]))
        {
            receiver->pending[i] = receiver->pending[--receiver->pending_count];
        }
    }
}

/* Handles data of a session without an image: requests its SETUP, once a second, from the source of the data even with an
 * explicit control address. Spec: 04 §8.2. */
static void elicit_setup(asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination,
    const asi_frame_header *frame, const asi_address *source)
{
    const asi_pending_setup pending = {
        .endpoint = endpoint,
        .destination = destination,
        .stream_id = frame->stream_id,
        .session_id = frame->session_id,
        .since_ns = receiver->now_ns
    };
    asi_session *session =
        asi_dispatch_get_or_add(&receiver->dispatch, endpoint, frame->stream_id, frame->session_id);
    if (NULL == session)
    {
        return; /* the table is full; a session that ends frees an entry */
    }
    const bool is_asked =
        asi_receiver_add_pending(receiver, &pending, destination->is_multicast ? &destination->control_address : source);
    asi_dispatch_set_state(
        &receiver->dispatch, session, is_asked ? ASI_SESSION_PENDING_SETUP : ASI_SESSION_NONE, NULL);
}

/* --- datagrams --- */

/* At most one line a second: a line for each dropped datagram adds nothing. */
static void report_no_room(asi_receiver *receiver)
{
    if (receiver->now_ns - receiver->last_no_room_ns >= NO_ROOM_INTERVAL_NS)
    {
        receiver->last_no_room_ns = receiver->now_ns;
        asi_receiver_report(receiver, asi_fail(AS_E_STORAGE, ENOSPC,
            "no room in aeron.dir for what comes in: datagrams are dropped until there is: free space there, or give streams "
            "a smaller term-length"));
    }
}

static void on_data(asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination,
    const asi_incoming *datagram, asi_rx_image **recent)
{
    const asi_frame_header *frame = (const asi_frame_header *)(const void *)datagram->buffer;
    const asi_session *session = NULL;
    asi_rx_image *image = *recent;
    if (NULL == image || frame->session_id != image->session_id || frame->stream_id != image->stream_id)
    {
        session = asi_dispatch_find(&receiver->dispatch, endpoint, frame->stream_id, frame->session_id);
        image = NULL == session ? NULL : session->image;
        *recent = image;
    }
    if (NULL != image)
    {
        const int32_t inserted = asi_rx_image_insert_untrusted(
            image, destination, frame, datagram->length, &datagram->source, receiver->now_ns);
        if (ASI_IMAGE_INVALID == inserted)
        {
            asi_receiver_count(receiver, ASI_SYSTEM_INVALID_PACKETS, 1);
        }
        else if (ASI_IMAGE_NO_ROOM == inserted)
        {
            report_no_room(receiver);
        }
    }
    else if ((NULL == session || ASI_SESSION_NONE == session->state) && 0 == (frame->flags & ASI_FLAG_EOS) &&
        asi_dispatch_is_interested(&receiver->dispatch, endpoint, frame->stream_id, frame->session_id))
    {
        elicit_setup(receiver, endpoint, destination, frame, &datagram->source);
    }
}

/* Spec: 04 §8.4. Limits the requests in flight: the conductor may answer each with a command, and commands must not pile up. */
static void ask_for_image(asi_receiver *receiver, asi_receive_endpoint *endpoint, const asi_receive_destination *destination,
    const asi_setup_frame *frame, const asi_address *source)
{
    const asi_proof_subject subject = { .source = source, .stream_id = frame->stream_id, .session_id = frame->session_id };
    const asi_conductor_command command = {
        .kind = ASI_CONDUCTOR_CREATE_IMAGE,
        .create_image = {
            .endpoint_id = endpoint->id,
            .destination_id = destination->id,
            .session_id = frame->session_id,
            .stream_id = frame->stream_id,
            .initial_term_id = frame->initial_term_id,
            .active_term_id = frame->active_term_id,
            .term_offset = frame->term_offset,
            .term_length = frame->term_length,
            .mtu_length = frame->mtu_length,
            .flags = frame->prefix.flags,
            .is_proven = asi_proofs_has(&receiver->proofs, &subject, receiver->now_ns),
            .source = *source
        }
    };
    asi_session *session =
        asi_dispatch_get_or_add(&receiver->dispatch, endpoint, frame->stream_id, frame->session_id);
    if (NULL == session)
    {
        return;
    }
    const bool is_sent =
        receiver->dispatch.init_count < ASI_RECEIVER_MAX_IMAGE_REQUESTS && asi_receiver_notify_conductor(receiver, &command);
    asi_dispatch_set_state(
        &receiver->dispatch, session, is_sent ? ASI_SESSION_INIT_IN_PROGRESS : ASI_SESSION_NONE, NULL);
    if (destination->is_multicast && destination->ttl < frame->ttl)
    {
        asi_receiver_count(receiver, ASI_SYSTEM_POSSIBLE_TTL_ASYMMETRY, 1);
    }
}

/* Spec: 04 §8.4 */
static void on_setup(asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination,
    const asi_incoming *datagram)
{
    const asi_setup_frame *frame = (const asi_setup_frame *)(const void *)datagram->buffer;
    const asi_stream *stream = asi_dispatch_find_stream(&receiver->dispatch, endpoint, frame->stream_id);
    if (NULL == stream)
    {
        return;
    }
    if (stream->image_count >= receiver->params.stream_session_limit) /* Spec: 04 §24 T14 - also for known sessions */
    {
        asi_receiver_report(receiver, asi_fail(AS_E_USAGE, 0,
            "exceeded session limit, limit=%d, stream-id=%d, session-id=%d", receiver->params.stream_session_limit,
            frame->stream_id, frame->session_id));
        return;
    }
    const asi_session *session =
        asi_dispatch_find(&receiver->dispatch, endpoint, frame->stream_id, frame->session_id);
    if (NULL != session && NULL != session->image)
    {
        asi_rx_image_on_setup(session->image, destination, frame, &datagram->source, receiver->now_ns);
        return;
    }
    const bool is_wanted = stream->is_all_sessions || (NULL != session && session->is_subscribed);
    const bool is_free = NULL == session || ASI_SESSION_NONE == session->state;
    if ((NULL != session && ASI_SESSION_PENDING_SETUP == session->state) || (is_free && is_wanted))
    {
        ask_for_image(receiver, endpoint, destination, frame, &datagram->source);
    }
}

static void on_rttm(asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination,
    const asi_incoming *datagram)
{
    const asi_rttm_frame *frame = (const asi_rttm_frame *)(const void *)datagram->buffer;
    const asi_session *session =
        asi_dispatch_find(&receiver->dispatch, endpoint, frame->stream_id, frame->session_id);
    const bool is_request = 0 != (frame->prefix.flags & ASI_RTTM_FLAG_REQUEST);
    if (frame->receiver_id != endpoint->receiver_id && 0 != frame->receiver_id)
    {
        return;
    }
    if (NULL == session || NULL == session->image)
    {
        const asi_proof_subject subject =
            { .source = &datagram->source, .stream_id = frame->stream_id, .session_id = frame->session_id };
        if (!is_request && NULL != asi_dispatch_find_stream(&receiver->dispatch, endpoint, frame->stream_id))
        {
            asi_proofs_take(&receiver->proofs, &subject, frame->echo_timestamp_ns, receiver->now_ns);
        }
        return;
    }
    if (is_request)
    {
        asi_receiver_reply_rttm(receiver, endpoint, destination, frame, &datagram->source);
        return;
    }
    asi_rx_image_count_received(session->image, destination, datagram->length);
    asi_rx_image_on_rtt(session->image, asi_wrap_sub_i64(
        asi_wrap_sub_i64(receiver->now_ns, frame->echo_timestamp_ns), frame->reception_delta_ns));
}

/* Writes the timestamp into the payload of every message that begins in the datagram and is long enough. Frames that are not
 * contiguous are left to the image, which refuses the datagram. Spec: 04 §18, 11 N9. */
static void stamp(const asi_incoming *datagram, int32_t offset, int64_t time_ns)
{
    const int64_t in_frame = (int64_t)AS_FRAME_HEADER_LENGTH + offset;
    const int64_t least = in_frame + (int64_t)sizeof(int64_t);
    for (int64_t at = 0; at + AS_FRAME_HEADER_LENGTH <= datagram->length;)
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)(datagram->buffer + at);
        const int32_t frame_length = frame->frame_length;
        if (ASI_FRAME_DATA != frame->type || frame_length < AS_FRAME_HEADER_LENGTH || at + frame_length > datagram->length)
        {
            break;
        }
        if (0 != (frame->flags & ASI_FLAG_BEGIN) && least <= frame_length)
        {
            asi_put_i64(datagram->buffer + at + in_frame, time_ns);
        }
        at += asi_frame_occupancy(frame_length);
    }
}

static void stamp_all(asi_receiver *receiver, const asi_receive_destination *destination, const asi_incoming *datagram)
{
    if (ASI_TIMESTAMP_OFF != destination->media_timestamp_offset && INT64_MIN != datagram->receive_time_ns)
    {
        stamp(datagram, destination->media_timestamp_offset, datagram->receive_time_ns);
    }
    if (ASI_TIMESTAMP_OFF != destination->channel_timestamp_offset)
    {
        stamp(datagram, destination->channel_timestamp_offset, asi_clock_epoch_ns(&receiver->params.clock));
    }
}

/* `recent`: the image of the previous datagram, or NULL. Most datagrams follow one of their own stream. */
static void on_datagram_untrusted(asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination,
    const asi_incoming *datagram, asi_rx_image **recent)
{
    const asi_datagram_verdict verdict = asi_check_data_datagram_untrusted(datagram->buffer, datagram->length);
    if (ASI_DATAGRAM_ACCEPTED != verdict)
    {
        asi_receiver_count(receiver, ASI_SYSTEM_INVALID_PACKETS, ASI_DATAGRAM_INVALID == verdict ? 1 : 0);
        return;
    }
    destination->last_activity_ns = receiver->now_ns;
    switch (((const asi_frame_prefix *)(const void *)datagram->buffer)->type)
    {
        case ASI_FRAME_SETUP:
            on_setup(receiver, endpoint, destination, datagram);
            break;
        case ASI_FRAME_RTTM:
            on_rttm(receiver, endpoint, destination, datagram);
            break;
        default:
            stamp_all(receiver, destination, datagram);
            on_data(receiver, endpoint, destination, datagram, recent);
            break;
    }
}

/* --- the duty cycle --- */

/* Reads a socket once; *is_full: it used the last buffer, so more datagrams may wait. */
static int64_t read_destination(asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination,
    bool *is_full)
{
    const asi_udp_ops *ops = receiver->params.ops;
    const int32_t capacity = receiver->params.io_vector_capacity;
    int32_t received = 0;
    int64_t bytes = 0;
    asi_rx_image *recent = NULL;
    for (int32_t i = 0; i < capacity; i++)
    {
        receiver->incoming[i].buffer = receiver->buffers + (size_t)i * ASI_UDP_BUFFER_LENGTH;
        receiver->incoming[i].capacity = ASI_UDP_BUFFER_LENGTH;
    }
    const as_result result = ops->receive(ops->context, destination->socket, receiver->incoming, capacity, &received);
    if (AS_OK != result)
    {
        asi_receiver_report(receiver, result);
    }
    for (int32_t i = 0; i < received; i++)
    {
        bytes += receiver->incoming[i].length;
        on_datagram_untrusted(receiver, endpoint, destination, &receiver->incoming[i], &recent);
    }
    *is_full = received > 0 && receiver->incoming[received - 1].buffer >=
        receiver->buffers + (size_t)(capacity - 1) * ASI_UDP_BUFFER_LENGTH;
    return bytes;
}

static int64_t poll_destination(asi_receiver *receiver, asi_receive_destination *destination)
{
    int64_t bytes = 0;
    bool is_full = true;
    for (int32_t i = 0; is_full && i < READS_PER_POLL; i++)
    {
        bytes += read_destination(receiver, destination->endpoint, destination, &is_full);
    }
    return bytes;
}

static int64_t poll_all(asi_receiver *receiver)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < receiver->endpoint_count; i++)
    {
        asi_receive_endpoint *endpoint = receiver->endpoints[i];
        for (int32_t k = 0; k < endpoint->destination_count; k++)
        {
            bytes += poll_destination(receiver, endpoint->destinations[k]);
        }
    }
    return bytes;
}

static int64_t poll_ready(asi_receiver *receiver)
{
    void *ready[ASI_UDP_POLLER_BATCH];
    int64_t bytes = 0;
    const int32_t count = asi_udp_poller_poll(&receiver->poller, ready);
    for (int32_t i = 0; i < count; i++)
    {
        bytes += poll_destination(receiver, ready[i]);
    }
    return bytes;
}

static int64_t poll_sockets(asi_receiver *receiver)
{
    const int64_t bytes = asi_udp_poller_is_worth_it(&receiver->poller) ? poll_ready(receiver) : poll_all(receiver);
    if (bytes > 0)
    {
        asi_receiver_count(receiver, ASI_SYSTEM_BYTES_RECEIVED, bytes);
    }
    return bytes;
}

/* Re-resolves an explicit control address that is silent: it may have moved. Spec: 04 §16. */
static void check_control_addresses(asi_receiver *receiver)
{
    for (int32_t i = 0; i < receiver->endpoint_count; i++)
    {
        const asi_receive_endpoint *endpoint = receiver->endpoints[i];
        for (int32_t k = 0; k < endpoint->destination_count; k++)
        {
            asi_receive_destination *destination = endpoint->destinations[k];
            if (destination->has_explicit_control && receiver->now_ns > destination->last_activity_ns + CONTROL_SILENCE_NS)
            {
                const asi_conductor_command command = {
                    .kind = ASI_CONDUCTOR_RESOLVE_CONTROL,
                    .resolve = {
                        .endpoint_id = endpoint->id,
                        .destination_id = destination->id,
                        .current = destination->control_address
                    }
                };
                (void)asi_receiver_notify_conductor(receiver, &command);
                destination->last_activity_ns = receiver->now_ns;
            }
        }
    }
}

static int send_pending_of(asi_receiver *receiver, asi_rx_image *image)
{
    const int64_t change = image->last_sm_change;
    const int work = asi_receiver_send_pending(receiver, image);
    if (change != image->last_sm_change)
    {
        asi_round_robin_mark_busy(&receiver->schedule, image, receiver->now_ns);
    }
    return work;
}

static int send_pending(asi_receiver *receiver)
{
    int work = 0;
    const int32_t turns = asi_round_robin_slots(&receiver->schedule, receiver->image_count, receiver->now_ns);
    for (int32_t i = 0; i < turns; i++)
    {
        work += send_pending_of(receiver, receiver->images[asi_round_robin_next(&receiver->schedule, receiver->image_count)]);
    }
    for (int32_t i = 0; turns < receiver->image_count && i < receiver->schedule.busy_count; i++)
    {
        work += send_pending_of(receiver, receiver->schedule.busy[i].item);
    }
    asi_round_robin_expire_busy(&receiver->schedule, receiver->now_ns);
    return work;
}

int asi_receiver_do_work(asi_receiver *receiver)
{
    asi_receiver_command command;
    int work = 0;
    receiver->now_ns = asi_clock_ns(&receiver->params.clock);
    asi_cycle_time_track(&receiver->cycle, receiver->now_ns, receiver->params.cycle_threshold_ns, receiver->params.counters,
        ASI_SYSTEM_RECEIVER_MAX_CYCLE_TIME, ASI_SYSTEM_RECEIVER_CYCLE_EXCEEDED);
    /* The command for an endpoint's subscription follows the endpoint's; the socket must not be read between the two. */
    for (int32_t i = 0; i < COMMANDS_PER_CYCLE && asi_command_queue_take(receiver->params.command, &command); i++)
    {
        asi_receiver_on_command(receiver, &command);
        work++;
    }
    work += poll_sockets(receiver) > 0 ? 1 : 0;
    work += send_pending(receiver);
    check_pending_setups(receiver);
    if (receiver->params.re_resolution_interval_ns > 0 &&
        receiver->now_ns > receiver->last_resolution_check_ns + receiver->params.re_resolution_interval_ns)
    {
        receiver->last_resolution_check_ns = receiver->now_ns;
        check_control_addresses(receiver);
    }
    return work;
}
