/* See publication_control.h. */
#include "driver/tx/publication_control.h"

#include <string.h>

#include "base/atomic.h"
#include "driver/tx/publication.h"
#include "driver/tx/sender_report.h"

#define REPLIES_INTERVAL_NS 10000000LL
#define MAX_REPLIES 1024

static int64_t position_of_status(const asi_sender_publication *publication, const asi_status_frame *frame)
{
    return asi_log_position(frame->consumption_term_id, frame->consumption_term_offset, publication->log.position_bits,
        publication->log.initial_term_id);
}

bool asi_sender_publication_is_status_in_bounds(const asi_sender_publication *publication, const asi_status_frame *frame)
{
    const int64_t half = publication->log.term_length / 2;
    const int64_t position = position_of_status(publication, frame);
    /* A departure: with a window of half a term, padding that begins before the limit and ends beyond it would put a paused
     * receiver out of bounds, and so disconnect a stream whose slowest subscriber pauses. */
    const int64_t over = publication->position - publication->limit;
    const int64_t padding = over > 0 && over < half / 2 ? over : 0;
    return position >= publication->position - half - padding && position <= publication->position + half;
}

static void notify_response(
    asi_sender *sender, const asi_sender_publication *publication, asi_conductor_command_kind kind, int32_t session_id)
{
    const asi_conductor_command command = {
        .kind = kind,
        .response = { .response_correlation_id = publication->response_correlation_id, .response_session_id = session_id }
    };
    asi_sender_notify_conductor(sender, &command);
}

void asi_sender_publication_on_status(
    asi_sender *sender, asi_sender_publication *publication, const asi_status_frame *frame, const asi_address *source)
{
    publication->quiet_until_ns = INT64_MIN;
    const bool is_tagged = ASI_STATUS_TAGGED_LENGTH == frame->prefix.frame_length;
    const asi_flow_status status = {
        .receiver_id = frame->receiver_id,
        .position = position_of_status(publication, frame),
        .window_length = frame->receiver_window,
        .is_end_of_stream = 0 != (frame->prefix.flags & ASI_STATUS_FLAG_EOS),
        .has_group_tag = is_tagged,
        .group_tag = is_tagged ? frame->group_tag : AS_NULL_VALUE
    };
    if (0 != (frame->prefix.flags & ASI_STATUS_FLAG_SEND_SETUP))
    {
        if (!asi_load_acquire_bool(&publication->is_end_of_stream))
        {
            publication->is_setup_elicited = true;
            asi_flow_on_setup_request(&publication->flow, &status);
            if (publication->is_response)
            {
                publication->response_address = *source;
            }
        }
        return;
    }
    if (status.is_end_of_stream)
    {
        asi_receivers_remove(&publication->receivers, status.receiver_id);
        if (!publication->is_group)
        {
            asi_store_release_bool(&publication->has_received_unicast_eos, true);
        }
    }
    else
    {
        asi_receivers_refresh(&publication->receivers, status.receiver_id, sender->now_ns);
    }
    publication->has_initial_connection = true;
    asi_retransmit_on_window(&publication->retransmit, frame->receiver_window);
    asi_sender_publication_set_limit(
        publication, asi_flow_on_status(&publication->flow, &status, publication->limit, sender->now_ns));
    if (asi_sender_publication_show_receivers(publication) && publication->is_response)
    {
        notify_response(sender, publication, ASI_CONDUCTOR_RESPONSE_CONNECTED, publication->session_id);
    }
}

void asi_sender_publication_on_nak(asi_sender *sender, asi_sender_publication *publication, const asi_nak_frame *frame)
{
    publication->quiet_until_ns = INT64_MIN;
    asi_resend range;
    const asi_nak_outcome outcome = asi_retransmit_on_nak(
        &publication->retransmit, frame->term_id, frame->term_offset, frame->length, sender->now_ns, &range);
    if (ASI_NAK_INVALID == outcome)
    {
        asi_sender_count(sender, ASI_SYSTEM_INVALID_PACKETS, 1);
        return;
    }
    asi_sender_count(sender, ASI_SYSTEM_NAKS_RECEIVED, 1);
    asi_store_release_i64(publication->naks_counter, asi_load_relaxed_i64(publication->naks_counter) + 1);
    const bool is_taken = ASI_NAK_RESEND == outcome || ASI_NAK_DELAYED == outcome;
    if (is_taken && !asi_sender_publication_can_resend(publication, &range))
    {
        /* Otherwise such NAKs, of a forged session or behind a forged heartbeat, would keep the pool from those that lack data. */
        asi_retransmit_release(&publication->retransmit, &range);
        return;
    }
    switch (outcome)
    {
        case ASI_NAK_OVERFLOW: asi_sender_count(sender, ASI_SYSTEM_RETRANSMIT_OVERFLOW, 1); break;
        case ASI_NAK_RESEND: asi_sender_publication_resend(sender, publication, &range); break;
        default: break;
    }
}

/* Spec: 04 §15.3. */
void asi_sender_publication_on_error(asi_sender *sender, asi_sender_publication *publication, const asi_error_frame *frame,
    const asi_address *source)
{
    publication->quiet_until_ns = INT64_MIN;
    const bool has_group_tag = 0 != (frame->prefix.flags & ASI_ERROR_FLAG_GROUP_TAG);
    asi_flow_on_error(&publication->flow, frame->receiver_id, has_group_tag, frame->group_tag);
    if (!asi_receivers_remove(&publication->receivers, frame->receiver_id))
    {
        return;
    }
    asi_conductor_command command = {
        .kind = ASI_CONDUCTOR_PUBLICATION_ERROR,
        .publication_error = {
            .registration_id = publication->registration_id,
            .destination_id = AS_NULL_VALUE,
            .session_id = publication->session_id,
            .stream_id = publication->stream_id,
            .receiver_id = frame->receiver_id,
            .group_tag = has_group_tag ? frame->group_tag : AS_NULL_VALUE,
            .error_code = frame->error_code,
            .text_length = frame->error_length,
            .source = *source
        }
    };
    const asi_destination *destination = !publication->endpoint->has_destinations ? NULL :
        asi_destinations_find(&publication->endpoint->destinations, frame->receiver_id, source);
    if (NULL != destination)
    {
        command.publication_error.destination_id = destination->registration_id;
    }
    memcpy(command.publication_error.text, frame + 1, (size_t)frame->error_length);
    asi_sender_notify_conductor(sender, &command);
}

/* Number of reply datagrams, and their destination. With many destinations the reply goes only to the one that asked; others
 * ignore it. When the requester is unknown it may be behind any address of a manual list, so all get one. A departure: stock
 * sends it to all. */
static int32_t replies_to(const asi_sender_publication *publication, const asi_rttm_frame *frame, const asi_address *source,
    const asi_address **to)
{
    const asi_sender_endpoint *endpoint = publication->endpoint;
    const asi_destination *destination =
        endpoint->has_destinations ? asi_destinations_find(&endpoint->destinations, frame->receiver_id, source) : NULL;
    *to = NULL != destination && destination->is_proven ? &destination->address : NULL;
    return !endpoint->has_destinations || NULL != *to ? 1 : endpoint->destinations.is_manual ? endpoint->destinations.count : 0;
}

/* Spec: 04 §10.5. */
void asi_sender_publication_on_rttm(asi_sender *sender, asi_sender_publication *publication, const asi_rttm_frame *frame,
    const asi_address *source)
{
    const asi_sender_endpoint *endpoint = publication->endpoint;
    const asi_address *to;
    if (sender->now_ns - publication->replies_since_ns > REPLIES_INTERVAL_NS)
    {
        publication->replies_since_ns = sender->now_ns;
        publication->replies = 0;
    }
    if (0 == (frame->prefix.flags & ASI_RTTM_FLAG_REQUEST) || publication->replies >= MAX_REPLIES)
    {
        return;
    }
    const int32_t replies = replies_to(publication, frame, source, &to);
    publication->replies += replies;
    asi_rttm_frame reply = *frame;
    reply.prefix.frame_length = sizeof(reply);
    reply.prefix.flags = 0;
    reply.reception_delta_ns = 0;
    if (NULL != to)
    {
        const asi_outgoing datagram = { .bytes = &reply, .length = sizeof(reply), .to = to };
        int32_t sent;
        (void)endpoint->ops->send(endpoint->ops->context, endpoint->socket, &datagram, 1, &sent);
    }
    else if (replies > 0)
    {
        int64_t bytes;
        asi_sender_publication_send_frame(sender, publication, &reply, sizeof(reply), &bytes);
    }
}

/* Spec: 04 §14 step 5. */
void asi_sender_publication_on_response_setup(
    asi_sender *sender, asi_sender_publication *publication, const asi_response_setup_frame *frame)
{
    if (publication->has_response_subscription)
    {
        notify_response(sender, publication, ASI_CONDUCTOR_RESPONSE_SETUP, frame->response_session_id);
    }
}
