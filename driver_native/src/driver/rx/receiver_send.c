/* Sends control frames to publishers: status messages, NAKs, error frames, round trip requests. Spec: 04 §1, §8.7, §9.4. */
#include "driver/rx/receiver_send.h"

#include <string.h>

#include "base/atomic.h"
#include "driver/rx/image_status.h"
#include "driver/rx/receiver_report.h"
#include "wire/command.h"

/* True when the network accepted it. */
static bool send_frame(asi_receiver *receiver, const asi_receive_destination *destination, const void *frame, int32_t length,
    const asi_address *to, bool is_to_stranger)
{
    const asi_udp_ops *ops = receiver->params.ops;
    const asi_outgoing datagram = { .bytes = frame, .length = length, .to = to, .is_to_stranger = is_to_stranger };
    int32_t sent = 0;
    const as_result result = ops->send(ops->context, destination->socket, &datagram, 1, &sent);
    if (AS_OK != result)
    {
        asi_receiver_report(receiver, result);
    }
    if (1 != sent)
    {
        asi_receiver_count(receiver, ASI_SYSTEM_SHORT_SENDS, 1);
    }
    return 1 == sent;
}

static bool send_to_connection(
    asi_receiver *receiver, const asi_rx_image_connection *connection, const void *frame, int32_t length, const asi_address *to)
{
    return send_frame(receiver, connection->destination, frame, length, to,
        asi_rx_image_connection_is_stranger(connection, receiver->now_ns));
}

/* A request (NAK, RSP_SETUP, RTTM) leaves enough bytes for a status message, without which the publisher drops its receiver. A
 * request that found too few after a status message is next: until it is sent, status messages leave enough for it. Where they are
 * due more often than the publisher's heartbeats pay for, they would otherwise take every byte, and a stream whose first data was
 * lost would never get it again. */
static bool may_send(asi_rx_image_connection *connection, const asi_frame_prefix *frame, int32_t length)
{
    const int32_t for_status = ASI_STATUS_TAGGED_LENGTH + ASI_DATAGRAM_HEADERS_LENGTH;
    const bool is_status = ASI_FRAME_STATUS == frame->type;
    if (asi_rx_image_may_answer(connection, length, is_status ? connection->owed_bytes : for_status))
    {
        connection->owed_bytes = is_status ? connection->owed_bytes : 0;
        connection->is_status_last = is_status;
        return true;
    }
    if (!is_status && connection->is_status_last)
    {
        connection->owed_bytes = length + ASI_DATAGRAM_HEADERS_LENGTH + for_status;
    }
    return false;
}

/* Sends to every connection that is not silent; returns how many sends succeeded. */
static int32_t send_to_connections(asi_receiver *receiver, asi_rx_image *image, const void *frame, int32_t length)
{
    int32_t sent = 0;
    for (int32_t i = 0; i < image->connection_count; i++)
    {
        asi_rx_image_connection *connection = &image->connections[i];
        const asi_address *to = asi_rx_image_live_connection_address(connection, receiver->now_ns);
        sent += NULL != to && may_send(connection, frame, length) && send_to_connection(receiver, connection, frame, length, to);
    }
    return sent;
}

/* A rejected image accepts nothing, so all of its connections are silent. They still get the frame. Both stock drivers do so
 * until the image is gone. */
static int32_t send_to_all_connections(asi_receiver *receiver, asi_rx_image *image, const void *frame, int32_t length)
{
    int32_t sent = 0;
    for (int32_t i = 0; i < image->connection_count; i++)
    {
        asi_rx_image_connection *connection = &image->connections[i];
        const asi_address *to = asi_rx_image_connection_address(connection);
        const bool may_send = NULL != to && asi_rx_image_may_answer(connection, length, 0);
        sent += may_send && send_to_connection(receiver, connection, frame, length, to) ? 1 : 0;
    }
    return sent;
}

static asi_status_frame status_frame(const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id, uint8_t flags)
{
    return (asi_status_frame){
        .prefix = {
            .frame_length = endpoint->has_group_tag ? ASI_STATUS_TAGGED_LENGTH : ASI_STATUS_LENGTH,
            .flags = flags,
            .type = ASI_FRAME_STATUS
        },
        .session_id = session_id,
        .stream_id = stream_id,
        .receiver_id = endpoint->receiver_id,
        .group_tag = endpoint->group_tag
    };
}

void asi_receiver_send_setup_request(asi_receiver *receiver, const asi_receive_endpoint *endpoint,
    const asi_receive_destination *destination, int32_t stream_id, int32_t session_id, const asi_address *to)
{
    const asi_status_frame frame = status_frame(endpoint, stream_id, session_id, ASI_STATUS_FLAG_SEND_SETUP);
    if (send_frame(receiver, destination, &frame, frame.prefix.frame_length, to, true))
    {
        asi_receiver_count(receiver, ASI_SYSTEM_STATUS_MESSAGES_SENT, 1);
    }
}

/* Sends RSP_SETUP before a status message: once per status message timeout, however often status messages go, and with each one
 * that has the EOS flag, because the publisher's driver may drop the publication after it. */
static void send_due_response_setup(asi_receiver *receiver, asi_rx_image *image)
{
    const int64_t response_session_id = asi_load_acquire_i64(&image->response_session_id);
    if (ASI_NO_RESPONSE_SESSION == response_session_id ||
        (receiver->now_ns < image->response_deadline_ns && !asi_load_acquire_bool(&image->is_sending_eos_sm)))
    {
        return;
    }
    const asi_response_setup_frame frame = {
        .prefix = { .frame_length = sizeof(frame), .type = ASI_FRAME_RESPONSE_SETUP },
        .session_id = image->session_id,
        .stream_id = image->stream_id,
        .response_session_id = (int32_t)response_session_id
    };
    (void)send_to_connections(receiver, image, &frame, sizeof(frame));
    image->response_deadline_ns = receiver->now_ns + receiver->params.status_message_timeout_ns;
}

static void send_rejection(asi_receiver *receiver, asi_rx_image *image)
{
    const asi_receive_endpoint *endpoint = image->endpoint;
    const size_t text_length = strlen(image->rejection_reason);
    struct
    {
        asi_error_frame header;
        char text[ASI_ERROR_TEXT_MAX_LENGTH + 1];
    } frame = { .header = {
        .prefix = {
            .frame_length = (int32_t)(sizeof(asi_error_frame) + text_length),
            .flags = endpoint->has_group_tag ? ASI_ERROR_FLAG_GROUP_TAG : 0,
            .type = ASI_FRAME_ERROR
        },
        .session_id = image->session_id,
        .stream_id = image->stream_id,
        .receiver_id = endpoint->receiver_id,
        .group_tag = endpoint->has_group_tag ? endpoint->group_tag : AS_NULL_VALUE,
        .error_code = ASI_ERR_IMAGE_REJECTED,
        .error_length = (int32_t)text_length
    } };
    memcpy(frame.text, image->rejection_reason, text_length);
    asi_receiver_count(receiver, ASI_SYSTEM_ERROR_FRAMES_SENT,
        send_to_all_connections(receiver, image, &frame, frame.header.prefix.frame_length));
}

static void send_status(asi_receiver *receiver, asi_rx_image *image, int64_t position, int32_t window)
{
    const asi_log *log = &image->log;
    asi_status_frame frame = status_frame(image->endpoint, image->stream_id, image->session_id,
        asi_load_acquire_bool(&image->is_sending_eos_sm) ? ASI_STATUS_FLAG_EOS : 0);
    const int64_t named = asi_log_nameable_position(position, log->term_length);
    frame.consumption_term_id = asi_log_term_id_of_position(named, log->position_bits, log->initial_term_id);
    frame.consumption_term_offset = (int32_t)(named & (log->term_length - 1));
    frame.receiver_window = window;
    asi_receiver_count(receiver, ASI_SYSTEM_STATUS_MESSAGES_SENT,
        send_to_connections(receiver, image, &frame, frame.prefix.frame_length));
    image->last_sm_position = position;
    image->over_run_threshold = position + log->term_length / 2;
    asi_rx_image_update_active_transports(image, receiver->now_ns);
}

static int send_due_status(asi_receiver *receiver, asi_rx_image *image)
{
    int64_t position;
    int32_t window;
    int64_t change;
    if (!asi_rx_image_read_sm(image, &position, &window, &change) || asi_load_acquire_bool(&image->is_sm_disabled))
    {
        return 0;
    }
    const bool is_time = image->sm_deadline_ns < receiver->now_ns;
    if (!is_time && (image->is_rejected || change == image->last_sm_change))
    {
        return 0;
    }
    if (image->is_rejected) /* Spec: 04 §15.1 - replaces the SM, at its time */
    {
        send_rejection(receiver, image);
    }
    else
    {
        send_due_response_setup(receiver, image);
        send_status(receiver, image, position, window);
    }
    image->last_sm_change = change;
    image->sm_deadline_ns = receiver->now_ns + receiver->params.status_message_timeout_ns;
    return 1;
}

static int send_due_nak(asi_receiver *receiver, asi_rx_image *image)
{
    asi_gap gap;
    if (!asi_rx_image_poll_gap(image, &gap) || image->is_revoked)
    {
        return 0;
    }
    if (!image->is_reliable)
    {
        asi_rx_image_fill_gap(image, &gap);
        return 1;
    }
    const asi_nak_frame frame = {
        .prefix = { .frame_length = sizeof(frame), .type = ASI_FRAME_NAK },
        .session_id = image->session_id,
        .stream_id = image->stream_id,
        .term_id = gap.term_id,
        .term_offset = gap.term_offset,
        .length = gap.length
    };
    const int32_t sent = send_to_connections(receiver, image, &frame, sizeof(frame));
    asi_receiver_count(receiver, ASI_SYSTEM_NAKS_SENT, sent);
    asi_fetch_add_i64(image->naks_counter, sent);
    return 1;
}

static int send_due_rttm(asi_receiver *receiver, asi_rx_image *image)
{
    if (!asi_rx_image_is_rttm_due(image, receiver->now_ns))
    {
        return 0;
    }
    const asi_rttm_frame frame = {
        .prefix = { .frame_length = sizeof(frame), .flags = ASI_RTTM_FLAG_REQUEST, .type = ASI_FRAME_RTTM },
        .session_id = image->session_id,
        .stream_id = image->stream_id,
        .echo_timestamp_ns = receiver->now_ns,
        .receiver_id = image->endpoint->receiver_id
    };
    (void)send_to_connections(receiver, image, &frame, sizeof(frame));
    image->last_rttm_ns = receiver->now_ns;
    return 1;
}

/* For most idle images this is the only check. */
static bool is_nothing_due(const asi_receiver *receiver, const asi_rx_image *image)
{
    return image->sm_deadline_ns >= receiver->now_ns &&
        asi_load_acquire_i64(&image->sm_schedule.change_end) == image->last_sm_change &&
        asi_load_acquire_i64(&image->gap_schedule.change_end) == image->last_gap_change &&
        !asi_rx_image_is_rttm_due(image, receiver->now_ns);
}

int asi_receiver_send_pending(asi_receiver *receiver, asi_rx_image *image)
{
    if (is_nothing_due(receiver, image))
    {
        return 0;
    }
    return send_due_status(receiver, image) + send_due_nak(receiver, image) + send_due_rttm(receiver, image);
}

void asi_receiver_reply_rttm(asi_receiver *receiver, const asi_receive_endpoint *endpoint,
    const asi_receive_destination *destination, const asi_rttm_frame *request, const asi_address *source)
{
    asi_rttm_frame reply = *request;
    reply.prefix.frame_length = sizeof(reply);
    reply.prefix.flags = 0;
    reply.reception_delta_ns = 0;
    reply.receiver_id = endpoint->receiver_id;
    (void)send_frame(receiver, destination, &reply, sizeof(reply),
        destination->is_multicast ? &destination->control_address : source, !destination->is_multicast);
}

void asi_receiver_challenge(asi_receiver *receiver, const asi_receive_endpoint *endpoint,
    const asi_receive_destination *destination, const asi_proof_subject *subject)
{
    const asi_rttm_frame frame = {
        .prefix = { .frame_length = sizeof(frame), .flags = ASI_RTTM_FLAG_REQUEST, .type = ASI_FRAME_RTTM },
        .session_id = subject->session_id,
        .stream_id = subject->stream_id,
        .echo_timestamp_ns = asi_proofs_challenge(&receiver->proofs, subject, receiver->now_ns),
        .receiver_id = endpoint->receiver_id
    };
    const bool has_control = destination->is_multicast || destination->has_explicit_control;
    (void)send_frame(receiver, destination, &frame, sizeof(frame),
        has_control ? &destination->control_address : subject->source, !has_control);
}

bool asi_receiver_add_pending(asi_receiver *receiver, const asi_pending_setup *pending, const asi_address *to)
{
    if (ASI_PENDING_SETUP_CAPACITY == receiver->pending_count)
    {
        return false;
    }
    receiver->pending[receiver->pending_count++] = *pending;
    asi_receiver_send_setup_request(
        receiver, pending->endpoint, pending->destination, pending->stream_id, pending->session_id, to);
    return true;
}
