/* Requests, polls and response correlation of a control session; rules in control_session.h. */
#include "client/control_session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FRAGMENT_LIMIT 10
/* Times FRAGMENT_LIMIT: the pings of 64 bytes that fill a term of 64 KiB. */
#define MAX_ROUNDS_OF_PINGS 100

static bool is_of_session(const asi_client_session *session, const asi_codec_event *event)
{
    return AS_NULL_VALUE == session->control_session_id || event->control_session_id == session->control_session_id;
}

static int64_t copy_text(char *to, asi_codec_var from)
{
    const size_t length = from.length < ASI_CLIENT_TEXT_CAPACITY ? (size_t)from.length : ASI_CLIENT_TEXT_CAPACITY - 1;
    if (length > 0)
    {
        memcpy(to, from.data, length);
    }
    to[length] = '\0';
    return (int64_t)length;
}

static asi_call *find_call(const asi_client_session *session, const asi_codec_event *event)
{
    asi_call *call = session->calls;
    while (NULL != call && (call->is_answered || call->correlation_id != event->correlation_id))
    {
        call = call->next;
    }
    return call;
}

static void answer_call(asi_client_session *session, asi_call *call, const asi_codec_event *event)
{
    asi_call_answer *answer = &call->answer;
    answer->template_id = event->template_id;
    answer->code = event->code;
    answer->protocol_version = event->protocol_version;
    answer->control_session_id = event->control_session_id;
    answer->relevant_id = event->relevant_id;
    answer->text_length = copy_text(
        answer->text, ASI_CODEC_CHALLENGE == event->template_id ? event->encoded_challenge : event->error_message);
    call->is_answered = true;
    session->handled++;
    session->action = AS_ACTION_BREAK;
}

static void on_unawaited_error(asi_client_session *session, const asi_codec_event *event)
{
    asi_unawaited_error *error = &session->unawaited;
    session->error_count++;
    session->handled++;
    if (0 == error->count++)
    {
        error->correlation_id = event->correlation_id;
        error->code = (int32_t)event->relevant_id;
        copy_text(error->text, event->error_message);
    }
    if (NULL != session->on_error)
    {
        /* Already reported, so it is not kept for the next poll. */
        error->count = 0;
        session->in_handler = true;
        session->on_error(session->on_error_context, AS_E_PEER, error->code, error->correlation_id, error->text);
        session->in_handler = false;
    }
}

static void on_response(asi_client_session *session, const asi_codec_event *event)
{
    if (!is_of_session(session, event))
    {
        return;
    }
    asi_call *call = find_call(session, event);
    if (NULL != call)
    {
        answer_call(session, call, event);
    }
    else if (ASI_CODEC_ERROR == event->code && AS_NULL_VALUE != session->control_session_id)
    {
        on_unawaited_error(session, event);
    }
}

static void on_challenge(asi_client_session *session, const asi_codec_event *event)
{
    asi_call *call = find_call(session, event);
    if (NULL != call)
    {
        answer_call(session, call, event);
    }
}

static void on_signal(asi_client_session *session, const asi_codec_event *event)
{
    if (!is_of_session(session, event) || AS_NULL_VALUE == session->control_session_id)
    {
        return;
    }
    session->handled++;
    if (NULL == session->on_signal)
    {
        return;
    }
    const as_signal signal = {
        .control_session_id = event->control_session_id,
        .correlation_id = event->correlation_id,
        .recording_id = event->recording_id,
        .subscription_id = event->subscription_id,
        .position = event->position,
        .signal = event->signal,
    };
    session->in_handler = true;
    session->on_signal(session->on_signal_context, &signal);
    session->in_handler = false;
}

static as_result reserve_strings(asi_client_session *session, int64_t needed)
{
    if (needed > session->strings_capacity)
    {
        char *grown = realloc(session->strings, (size_t)needed);
        if (NULL == grown)
        {
            return asi_fail(AS_E_INTERNAL, 0, "no memory for a descriptor of %" PRId64 " bytes", needed);
        }
        session->strings = grown;
        session->strings_capacity = needed;
    }
    return AS_OK;
}

static const char *terminate(char **next, asi_codec_var from)
{
    char *text = *next;
    if (from.length > 0)
    {
        memcpy(text, from.data, (size_t)from.length);
    }
    text[from.length] = '\0';
    *next += from.length + 1;
    return text;
}

static bool give_recording(asi_client_session *session, const asi_call_listing *listing, const asi_codec_event *event)
{
    char *next = session->strings;
    as_recording recording = {
        .recording_id = event->recording_id,
        .start_timestamp_ms = event->start_timestamp_ms,
        .stop_timestamp_ms = event->stop_timestamp_ms,
        .start_position = event->start_position,
        .stop_position = event->stop_position,
        .initial_term_id = event->initial_term_id,
        .segment_file_length = event->segment_file_length,
        .term_buffer_length = event->term_buffer_length,
        .mtu_length = event->mtu_length,
        .session_id = event->session_id,
        .stream_id = event->stream_id,
    };
    recording.stripped_channel = terminate(&next, event->stripped_channel);
    recording.original_channel = terminate(&next, event->original_channel);
    recording.source_identity = terminate(&next, event->source_identity);
    return listing->on_recording(listing->context, &recording);
}

static bool give_subscription(asi_client_session *session, const asi_call_listing *listing, const asi_codec_event *event)
{
    char *next = session->strings;
    return listing->on_subscription(
        listing->context, event->subscription_id, event->stream_id, terminate(&next, event->stripped_channel));
}

static as_result on_descriptor(asi_client_session *session, const asi_codec_event *event)
{
    asi_call *call = find_call(session, event);
    const bool is_recording = ASI_CODEC_RECORDING_DESCRIPTOR == event->template_id;
    if (!is_of_session(session, event) || NULL == call ||
        (is_recording ? NULL == call->listing.on_recording : NULL == call->listing.on_subscription))
    {
        return AS_OK;
    }
    asi_call_listing *listing = &call->listing;
    if (!listing->enough)
    {
        const as_result result = reserve_strings(session,
            event->stripped_channel.length + event->original_channel.length + event->source_identity.length + 3);
        if (AS_OK != result)
        {
            return result;
        }
        session->in_handler = true;
        call->is_in_handler = true;
        listing->enough = !(is_recording ? give_recording : give_subscription)(session, listing, event);
        call->is_in_handler = false;
        session->in_handler = false;
        listing->given++;
    }
    if (++listing->received == listing->wanted)
    {
        answer_call(session, call, event);
        return AS_OK;
    }
    call->deadline_ns = asi_clock_ns(&session->clock) + session->message_timeout_ns;
    session->handled++;
    return AS_OK;
}

static as_action on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    asi_client_session *session = context;
    (void)header;
    asi_codec_event event;
    as_result result = asi_codec_event_decode_untrusted(data, length, &event);
    if (AS_AGAIN == result)
    {
        return AS_ACTION_CONTINUE;
    }
    if (AS_OK == result)
    {
        switch (event.template_id)
        {
            case ASI_CODEC_CONTROL_RESPONSE:
                on_response(session, &event);
                break;
            case ASI_CODEC_CHALLENGE:
                on_challenge(session, &event);
                break;
            case ASI_CODEC_RECORDING_SIGNAL:
                on_signal(session, &event);
                break;
            case ASI_CODEC_RECORDING_DESCRIPTOR:
            case ASI_CODEC_RECORDING_SUBSCRIPTION_DESCRIPTOR:
                result = on_descriptor(session, &event);
                break;
            default: /* Ping needs no action; progress events belong to another stream */
                break;
        }
    }
    session->failure = result;
    return AS_OK != result ? AS_ACTION_BREAK : session->action;
}

as_result asi_client_session_poll(asi_client_session *session)
{
    session->failure = AS_OK;
    session->action = AS_ACTION_CONTINUE;
    session->handled = 0;
    if (NULL == session->assembler)
    {
        const as_result result = as_controlled_assembler_open(on_message, session, &session->assembler);
        if (AS_OK != result)
        {
            return result;
        }
    }
    int64_t fragments = FRAGMENT_LIMIT;
    /* An archive sends a ping each second. A caller that polls less often than these fill a poll would fall behind by more and
     * more of them, until the archive ends the session because it can't send. */
    for (int round = 0; AS_OK == session->failure && FRAGMENT_LIMIT == fragments && 0 == session->handled &&
        round < MAX_ROUNDS_OF_PINGS; round++)
    {
        fragments = as_subscription_controlled_poll(
            session->responses, as_controlled_assembler_on_fragment, session->assembler, FRAGMENT_LIMIT);
    }
    return AS_OK == session->failure && fragments < 0 ? (as_result)fragments : session->failure;
}

int asi_client_session_invoke(asi_client_session *session)
{
    return session->is_aeron_invoked && !session->in_handler ? as_client_invoke(session->aeron) : 0;
}

void asi_client_session_idle(asi_client_session *session, int work_count)
{
    work_count += asi_client_session_invoke(session);
    if (NULL != session->invoker)
    {
        session->invoker(session->invoker_context);
        work_count = 1; /* the agents it runs may have done work */
    }
    asi_idle_cycle(&session->idle, work_count);
}

as_result asi_client_session_check_usable(const asi_client_session *session)
{
    if (session->in_handler)
    {
        return asi_fail(AS_E_USAGE, 0, "reentrant calls not permitted during callbacks of an archive client: call it after "
            "the handler has returned");
    }
    if (session->is_lost)
    {
        return asi_fail(AS_E_CLOSED, 0, "client is closed: the session with the archive has ended, open a new archive client");
    }
    return AS_OK;
}

as_result asi_client_session_check_connected(asi_client_session *session)
{
    if (as_client_is_closed(session->aeron))
    {
        session->is_lost = true;
        return asi_fail(AS_E_CLOSED, 0, "the Aeron client in %s is closed, its driver may be gone: open a new one, then a new "
            "archive client", as_client_aeron_dir(session->aeron));
    }
    if (!as_subscription_is_connected(session->responses))
    {
        as_subscription_constants constants;
        as_subscription_get_constants(session->responses, &constants);
        session->is_lost = true;
        return asi_fail(AS_E_CLOSED, 0, "response channel from archive is not connected, channel=%s, streamId=%d, "
            "imageCount=%d: the archive is gone or has ended the session, as it does when a client polls and asks nothing for some "
            "minutes; open a new archive client", constants.channel, constants.stream_id,
            as_subscription_image_count(session->responses));
    }
    return AS_OK;
}

static as_result fail_to_send(int64_t outcome, const char *name)
{
    switch (outcome)
    {
        case AS_NOT_CONNECTED:
            return asi_fail(AS_E_CLOSED, 0, "failed to send %s: connection to the archive is no longer available", name);
        case AS_PUBLICATION_CLOSED:
            return asi_fail(AS_E_CLOSED, 0, "failed to send %s: connection to the archive has been closed", name);
        case AS_MAX_POSITION_EXCEEDED:
            return asi_fail(AS_E_CLOSED, 0, "failed to send %s: the request publication is at its max position, open a new "
                "archive client", name);
        default:
            return asi_fail_in(AS_E_USAGE, "failed to send %s", name);
    }
}

as_result asi_client_session_offer_on(asi_client_session *session, as_publication *publication, asi_codec_request *request)
{
    request->control_session_id = session->control_session_id;
    request->correlation_id = as_client_next_correlation_id(session->aeron);
    int64_t length;
    const as_result result = asi_codec_request_encode(request, session->request, sizeof(session->request), &length);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t outcome = as_publication_offer(publication, session->request, length);
    if (AS_BACK_PRESSURED == outcome || AS_ADMIN_ACTION == outcome)
    {
        return AS_AGAIN;
    }
    if (outcome >= 0)
    {
        return AS_OK;
    }
    session->is_lost = session->is_lost || (publication == session->requests && AS_PUBLICATION_ERROR != outcome);
    return fail_to_send(outcome, asi_codec_request_name(request->template_id));
}

as_result asi_client_session_offer(asi_client_session *session, asi_codec_request *request)
{
    return asi_client_session_offer_on(session, session->requests, request);
}

as_result asi_client_session_send(
    asi_client_session *session, as_publication *publication, asi_codec_request *request, int64_t deadline_ns)
{
    as_result result = asi_client_session_offer_on(session, publication, request);
    while (AS_AGAIN == result)
    {
        if (asi_clock_ns(&session->clock) >= deadline_ns)
        {
            return asi_fail(AS_E_TIMEOUT, 0, "failed to send %s: the archive does not read its control stream",
                asi_codec_request_name(request->template_id));
        }
        result = asi_client_session_poll(session);
        if (AS_OK == result)
        {
            asi_client_session_idle(session, session->handled);
            result = asi_client_session_offer_on(session, publication, request);
        }
    }
    return result;
}

as_result asi_client_session_take_error(asi_client_session *session)
{
    asi_unawaited_error *error = &session->unawaited;
    const int64_t count = error->count;
    error->count = 0;
    if (0 == count)
    {
        return AS_OK;
    }
    return asi_fail(AS_E_PEER, error->code, "the archive reported error %d for the earlier request with correlationId=%" PRId64
        ": %s%s", error->code, error->correlation_id, error->text, count > 1 ? " (others followed)" : "");
}
