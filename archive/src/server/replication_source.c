/* A replication's session with the source archive: requests, answers, errors and deadlines. See replication.h. */
#include "server/replication_source.h"

#include <stdio.h>

#define LOOK_INTERVAL_NS 100000000LL

static const char *const STATE_NAMES[] = { "CONNECT", "REPLICATE_DESCRIPTOR", "SRC_RECORDING_POSITION", "EXTEND", "DESTINATION",
    "REPLAY_TOKEN", "GET_ARCHIVE_PROXY", "REPLAY", "AWAIT_IMAGE", "REPLICATE", "CATCHUP", "ATTEMPT_LIVE_JOIN", "CLOSING" };

static int64_t now_ns(const asi_replication *replication)
{
    return asi_clock_ns(&replication->archive->clock);
}

void asi_replication_fail_as_told(asi_replication *replication)
{
    char text[ASI_CLIENT_TEXT_CAPACITY];
    snprintf(text, sizeof(text), "%s", as_error_text());
    asi_replication_fail(replication, ASI_CODEC_E_GENERIC, text);
}

/* False when the state's deadline has passed, which ends the replication. */
bool asi_replication_has_time(asi_replication *replication)
{
    if (now_ns(replication) < replication->deadline_ns)
    {
        return true;
    }
    char text[192];
    char timeout[32];
    asi_format_duration(timeout, sizeof(timeout), replication->archive->config.message_timeout_ns);
    snprintf(text, sizeof(text), "replication of srcRecordingId=%lld made no progress within %s: state=%s",
        (long long)replication->params.source_recording_id, timeout, STATE_NAMES[replication->state]);
    asi_replication_fail(replication, ASI_CODEC_E_GENERIC, text);
    return false;
}

asi_codec_request *asi_replication_prepare(asi_replication *replication, int32_t template_id)
{
    asi_codec_request_init(&replication->request, template_id);
    replication->request.recording_id = replication->params.source_recording_id;
    return &replication->request;
}

/* Fails on a message that does not answer the request: its id must not be used as a position or a session id. */
static as_result fail_by_answer(asi_replication *replication)
{
    const asi_call_answer *answer = &replication->call.answer;
    char text[160];
    snprintf(text, sizeof(text), "the source archive answered %s with template id %d and code %d, which is no answer to it: is it an "
        "archive?", asi_codec_request_name(replication->request.template_id), answer->template_id, answer->code);
    asi_replication_fail(replication, ASI_CODEC_E_GENERIC, text);
    return AS_E_PEER;
}

/* AS_OK: the source answered OK (or with a descriptor); AS_AGAIN: no answer yet; other results have ended the replication. First
 * sends replication->request on `publication`, unless it is in flight. */
as_result asi_replication_ask_on(asi_replication *replication, as_publication *publication, const asi_call_listing *listing)
{
    asi_client_session *source = &replication->source;
    asi_call *call = &replication->call;
    as_result result = AS_OK;
    if (!call->is_in_flight)
    {
        result = asi_call_start_on(call, source, publication, &replication->request, listing);
        call->deadline_ns = INT64_MAX; /* the state's deadline applies */
    }
    result = AS_OK == result ? asi_call_poll(call) : result;
    if (AS_AGAIN == result)
    {
        result = asi_client_session_check_connected(source);
        if (AS_OK == result)
        {
            return asi_replication_has_time(replication) ? AS_AGAIN : AS_E_TIMEOUT;
        }
    }
    if (AS_OK != result)
    {
        asi_replication_fail_as_told(replication);
        return result;
    }
    if (ASI_CODEC_CONTROL_RESPONSE == call->answer.template_id && ASI_CODEC_ERROR == call->answer.code)
    {
        /* Clients would read the source's error code as one of this archive: as in stock, only its text is forwarded. */
        char text[ASI_CLIENT_TEXT_CAPACITY + 16];
        snprintf(text, sizeof(text), "ERROR - %s", call->answer.text);
        asi_replication_fail(replication, ASI_CODEC_E_GENERIC, text);
        return AS_E_PEER;
    }
    const bool is_ok = ASI_CODEC_CONTROL_RESPONSE == call->answer.template_id && ASI_CODEC_OK == call->answer.code;
    return is_ok || NULL != listing ? AS_OK : fail_by_answer(replication);
}

as_result asi_replication_ask(asi_replication *replication, const asi_call_listing *listing)
{
    return asi_replication_ask_on(replication, replication->source.requests, listing);
}

/* Checks for errors that the source reports without a request, such as a failed replay. False: the replication has ended. */
bool asi_replication_is_source_well(asi_replication *replication)
{
    const int64_t now = now_ns(replication);
    if (now < replication->look_ns)
    {
        return true;
    }
    replication->look_ns = now + LOOK_INTERVAL_NS;
    asi_client_session *source = &replication->source;
    as_result result = asi_client_session_poll(source);
    if (AS_OK == result && source->unawaited.count > 0)
    {
        asi_replication_fail(replication, source->unawaited.code, source->unawaited.text);
        return false;
    }
    result = AS_OK == result ? asi_client_session_check_connected(source) : result;
    if (AS_OK != result)
    {
        asi_replication_fail_as_told(replication);
        return false;
    }
    return true;
}

/* AS_OK: source_position is current. Other results as asi_replication_ask. */
as_result asi_replication_query_position(asi_replication *replication)
{
    if (!replication->call.is_in_flight)
    {
        asi_replication_prepare(replication, ASI_CODEC_RECORDING_POSITION);
    }
    const as_result result = asi_replication_ask(replication, NULL);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t position = replication->call.answer.relevant_id;
    if (position < AS_NULL_VALUE)
    {
        char text[128];
        snprintf(text, sizeof(text), "the source archive answered %lld as the position of recording %lld: is it an archive?",
            (long long)position, (long long)replication->params.source_recording_id);
        asi_replication_fail(replication, ASI_CODEC_E_GENERIC, text);
        return AS_E_PEER;
    }
    replication->source_position = position;
    return AS_OK;
}
