/* Request, poll and response correlation of a control session; rules in async.h. */
#include "client/async.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FRAGMENT_LIMIT 10

static bool awaits(const asi_async *async, const asi_codec_event *event)
{
    return AS_NULL_VALUE != async->awaited_correlation_id && !async->is_answered &&
        event->correlation_id == async->awaited_correlation_id;
}

static bool is_of_session(const asi_async *async, const asi_codec_event *event)
{
    return AS_NULL_VALUE == async->control_session_id || event->control_session_id == async->control_session_id;
}

static int64_t copy_text(char *to, asi_codec_var from)
{
    const size_t length = from.length < ASI_ASYNC_TEXT_CAPACITY ? (size_t)from.length : ASI_ASYNC_TEXT_CAPACITY - 1;
    if (length > 0)
    {
        memcpy(to, from.data, length);
    }
    to[length] = '\0';
    return (int64_t)length;
}

static void copy_answer(asi_async_answer *answer, const asi_codec_event *event)
{
    answer->template_id = event->template_id;
    answer->code = event->code;
    answer->protocol_version = event->protocol_version;
    answer->control_session_id = event->control_session_id;
    answer->relevant_id = event->relevant_id;
    answer->text_length = copy_text(
        answer->text, ASI_CODEC_CHALLENGE == event->template_id ? event->encoded_challenge : event->error_message);
}

static void answer(asi_async *async, const asi_codec_event *event)
{
    copy_answer(&async->answer, event);
    async->is_answered = true;
}

static asi_call *find_call(const asi_async *async, const asi_codec_event *event)
{
    asi_call *call = async->calls;
    while (NULL != call && (call->is_answered || call->correlation_id != event->correlation_id))
    {
        call = call->next;
    }
    return call;
}

static void answer_call(asi_async *async, asi_call *call, const asi_codec_event *event)
{
    copy_answer(&call->answer, event);
    call->is_answered = true;
    async->handled++;
}

static void remember_forgotten(asi_async *async, const asi_codec_event *event)
{
    async->error_count++;
    async->handled++;
    if (0 == async->forgotten.count++)
    {
        async->forgotten.correlation_id = event->correlation_id;
        async->forgotten.code = (int32_t)event->relevant_id;
        copy_text(async->forgotten.text, event->error_message);
    }
    if (NULL != async->on_error)
    {
        /* Already reported, so it is not kept for the next poll. */
        async->forgotten.count = 0;
        async->in_handler = true;
        async->on_error(
            async->on_error_context, AS_E_PEER, async->forgotten.code, async->forgotten.correlation_id, async->forgotten.text);
        async->in_handler = false;
    }
}

static void on_response(asi_async *async, const asi_codec_event *event)
{
    if (!is_of_session(async, event))
    {
        return;
    }
    asi_call *call = find_call(async, event);
    if (awaits(async, event))
    {
        answer(async, event);
    }
    else if (NULL != call)
    {
        answer_call(async, call, event);
    }
    else if (ASI_CODEC_ERROR == event->code && AS_NULL_VALUE != async->control_session_id)
    {
        remember_forgotten(async, event);
    }
}

static void on_signal(asi_async *async, const asi_codec_event *event)
{
    if (!is_of_session(async, event) || AS_NULL_VALUE == async->control_session_id)
    {
        return;
    }
    async->handled++;
    if (NULL == async->on_signal)
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
    async->in_handler = true;
    async->on_signal(async->on_signal_context, &signal);
    async->in_handler = false;
}

static as_result reserve_strings(asi_async *async, int64_t needed)
{
    if (needed > async->strings_capacity)
    {
        char *grown = realloc(async->strings, (size_t)needed);
        if (NULL == grown)
        {
            return asi_fail(AS_E_INTERNAL, 0, "no memory for a descriptor of %" PRId64 " bytes", needed);
        }
        async->strings = grown;
        async->strings_capacity = needed;
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

static bool give_recording(asi_async *async, const asi_async_listing *listing, const asi_codec_event *event)
{
    char *next = async->strings;
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

static bool give_subscription(asi_async *async, const asi_async_listing *listing, const asi_codec_event *event)
{
    char *next = async->strings;
    return listing->on_subscription(
        listing->context, event->subscription_id, event->stream_id, terminate(&next, event->stripped_channel));
}

static as_result on_descriptor(asi_async *async, const asi_codec_event *event)
{
    const bool is_awaited = awaits(async, event);
    asi_call *call = is_awaited ? NULL : find_call(async, event);
    asi_async_listing *listing = is_awaited ? async->listing : NULL != call ? call->listing : NULL;
    const bool is_recording = ASI_CODEC_RECORDING_DESCRIPTOR == event->template_id;
    if (!is_of_session(async, event) || NULL == listing || is_recording != (NULL != listing->on_recording))
    {
        return AS_OK;
    }
    if (!listing->enough)
    {
        const as_result result = reserve_strings(async,
            event->stripped_channel.length + event->original_channel.length + event->source_identity.length + 3);
        if (AS_OK != result)
        {
            return result;
        }
        async->in_handler = true;
        listing->enough = !(is_recording ? give_recording : give_subscription)(async, listing, event);
        async->in_handler = false;
        listing->given++;
    }
    if (++listing->received == listing->wanted)
    {
        if (is_awaited)
        {
            answer(async, event);
        }
        else
        {
            answer_call(async, call, event);
        }
    }
    else if (!is_awaited)
    {
        call->deadline_ns = asi_clock_ns(&async->clock) + async->message_timeout_ns;
        async->handled++;
    }
    return AS_OK;
}

static as_action on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    asi_async *async = context;
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
                on_response(async, &event);
                break;
            case ASI_CODEC_CHALLENGE:
                if (awaits(async, &event))
                {
                    answer(async, &event);
                }
                break;
            case ASI_CODEC_RECORDING_SIGNAL:
                on_signal(async, &event);
                break;
            case ASI_CODEC_RECORDING_DESCRIPTOR:
            case ASI_CODEC_RECORDING_SUBSCRIPTION_DESCRIPTOR:
                result = on_descriptor(async, &event);
                break;
            default: /* Ping needs no action; progress events belong to another stream */
                break;
        }
    }
    async->failure = result;
    const bool is_awaited_answered = AS_NULL_VALUE != async->awaited_correlation_id && async->is_answered;
    return AS_OK != result || is_awaited_answered ? AS_ACTION_BREAK : AS_ACTION_CONTINUE;
}

as_result asi_async_poll(asi_async *async, int32_t *handled)
{
    async->failure = AS_OK;
    async->handled = 0;
    if (NULL == async->assembler)
    {
        const as_result result = as_controlled_assembler_open(on_message, async, &async->assembler);
        if (AS_OK != result)
        {
            return result;
        }
    }
    const int64_t fragments = as_subscription_controlled_poll(
        async->responses, as_controlled_assembler_on_fragment, async->assembler, FRAGMENT_LIMIT);
    if (AS_OK != async->failure)
    {
        return async->failure;
    }
    if (fragments < 0)
    {
        return (as_result)fragments;
    }
    *handled = async->handled;
    return AS_OK;
}

void asi_async_idle(asi_async *async, int work_count)
{
    if (async->is_aeron_invoked)
    {
        work_count += as_client_invoke(async->aeron);
    }
    if (NULL != async->invoker)
    {
        async->invoker(async->invoker_context);
        work_count = 1; /* the agents it runs may have done work */
    }
    asi_idle_cycle(&async->idle, work_count);
}

as_result asi_async_check_usable(const asi_async *async)
{
    if (async->in_handler)
    {
        return asi_fail(AS_E_USAGE, 0, "reentrant calls not permitted during callbacks of an archive client: call it after "
            "the handler has returned");
    }
    if (async->is_lost)
    {
        return asi_fail(AS_E_CLOSED, 0, "client is closed: the session with the archive has ended, open a new archive client");
    }
    return AS_OK;
}

as_result asi_async_check_connected(asi_async *async)
{
    if (as_client_is_closed(async->aeron))
    {
        async->is_lost = true;
        return asi_fail(AS_E_CLOSED, 0, "the Aeron client in %s is closed, its driver may be gone: open a new one, then a new "
            "archive client", as_client_aeron_dir(async->aeron));
    }
    if (!as_subscription_is_connected(async->responses))
    {
        as_subscription_constants constants;
        as_subscription_get_constants(async->responses, &constants);
        async->is_lost = true;
        return asi_fail(AS_E_CLOSED, 0, "response channel from archive is not connected, channel=%s, streamId=%d, "
            "imageCount=%d: the archive ended the session or is gone", constants.channel, constants.stream_id,
            as_subscription_image_count(async->responses));
    }
    return AS_OK;
}

static as_result fail_to_send(asi_async *async, int64_t outcome, const char *name)
{
    async->is_lost = AS_PUBLICATION_ERROR != outcome;
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

static as_result offer_on(asi_async *async, as_publication *publication, asi_codec_request *request)
{
    request->control_session_id = async->control_session_id;
    request->correlation_id = as_client_next_correlation_id(async->aeron);
    int64_t length;
    const as_result result = asi_codec_request_encode(request, async->request, sizeof(async->request), &length);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t outcome = as_publication_offer(publication, async->request, length);
    if (AS_BACK_PRESSURED == outcome || AS_ADMIN_ACTION == outcome)
    {
        return AS_AGAIN;
    }
    return outcome >= 0 ? AS_OK : fail_to_send(async, outcome, asi_codec_request_name(request->template_id));
}

as_result asi_async_offer(asi_async *async, asi_codec_request *request)
{
    return offer_on(async, async->requests, request);
}

as_result asi_async_send(asi_async *async, asi_codec_request *request, int64_t deadline_ns)
{
    for (;;)
    {
        as_result result = asi_async_offer(async, request);
        if (AS_AGAIN != result)
        {
            return result;
        }
        if (asi_clock_ns(&async->clock) >= deadline_ns)
        {
            return asi_fail(AS_E_TIMEOUT, 0, "failed to send %s: the archive does not read its control stream",
                asi_codec_request_name(request->template_id));
        }
        int32_t handled = 0;
        result = asi_async_poll(async, &handled);
        if (AS_OK != result)
        {
            return result;
        }
        asi_async_idle(async, handled);
    }
}

as_result asi_async_begin_on(
    asi_async *async, as_publication *publication, asi_codec_request *request, asi_async_listing *listing)
{
    const as_result result = offer_on(async, publication, request);
    if (AS_OK == result)
    {
        async->awaited_correlation_id = request->correlation_id;
        async->listing = listing;
        async->is_answered = false;
    }
    return result;
}

as_result asi_async_begin(asi_async *async, asi_codec_request *request, asi_async_listing *listing)
{
    return asi_async_begin_on(async, async->requests, request, listing);
}

as_result asi_async_poll_answer(asi_async *async)
{
    int32_t handled = 0;
    const as_result result = async->is_answered ? AS_OK : asi_async_poll(async, &handled);
    if (AS_OK == result && !async->is_answered)
    {
        return AS_AGAIN;
    }
    async->awaited_correlation_id = AS_NULL_VALUE;
    async->listing = NULL;
    return result;
}

as_result asi_async_fail_by_timeout(const asi_async *async, const asi_codec_request *request)
{
    char timeout[32];
    asi_format_duration(timeout, sizeof(timeout), async->message_timeout_ns);
    return asi_fail(AS_E_TIMEOUT, 0, "awaiting response to %s - correlationId=%" PRId64 " messageTimeout=%s: is the archive "
        "running, and slow or blocked?", asi_codec_request_name(request->template_id), request->correlation_id, timeout);
}

as_result asi_async_await(
    asi_async *async, const asi_codec_request *request, asi_async_listing *listing, int64_t deadline_ns)
{
    as_result result = AS_OK;
    async->awaited_correlation_id = request->correlation_id;
    async->listing = listing;
    async->is_answered = false;
    while (AS_OK == result && !async->is_answered)
    {
        const int32_t received = NULL == listing ? 0 : listing->received;
        int32_t handled = 0;
        result = asi_async_poll(async, &handled);
        if (AS_OK != result || async->is_answered)
        {
            break;
        }
        const int64_t now_ns = asi_clock_ns(&async->clock);
        if (NULL != listing && received != listing->received)
        {
            deadline_ns = now_ns + async->message_timeout_ns;
            handled++;
        }
        else if (now_ns >= deadline_ns)
        {
            result = asi_async_fail_by_timeout(async, request);
        }
        else
        {
            result = asi_async_check_connected(async);
        }
        if (AS_OK == result)
        {
            asi_async_idle(async, handled);
        }
    }
    async->awaited_correlation_id = AS_NULL_VALUE;
    async->listing = NULL;
    return result;
}

as_result asi_async_fail_as_answered(const asi_async *async, const char *request_name)
{
    return asi_fail(AS_E_PEER, (int32_t)async->answer.relevant_id, "the archive answered %s with error %" PRId64 ": %s",
        request_name, async->answer.relevant_id, async->answer.text);
}

as_result asi_async_call(asi_async *async, asi_codec_request *request, asi_async_listing *listing)
{
    as_result result = asi_async_check_usable(async);
    const int64_t deadline_ns = asi_clock_ns(&async->clock) + async->message_timeout_ns;
    if (AS_OK == result)
    {
        result = asi_async_send(async, request, deadline_ns);
    }
    if (AS_OK == result)
    {
        result = asi_async_await(async, request, listing, deadline_ns);
    }
    if (AS_OK == result && ASI_CODEC_ERROR == async->answer.code)
    {
        result = asi_async_fail_as_answered(async, asi_codec_request_name(request->template_id));
    }
    return result;
}

as_result asi_async_take_forgotten(asi_async *async)
{
    const int64_t count = async->forgotten.count;
    async->forgotten.count = 0;
    if (0 == count)
    {
        return AS_OK;
    }
    return asi_fail(AS_E_PEER, async->forgotten.code, "the archive reported error %d for the earlier request with "
        "correlationId=%" PRId64 ": %s%s", async->forgotten.code, async->forgotten.correlation_id, async->forgotten.text,
        count > 1 ? " (others followed)" : "");
}
