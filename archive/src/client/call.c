/* Calls in flight; rules in call.h. */
#include "client/call.h"

#include <inttypes.h>

static void unlink_call(asi_call *call)
{
    for (asi_call **link = NULL == call->session ? NULL : &call->session->calls; NULL != link && NULL != *link;
         link = &(*link)->next)
    {
        if (*link == call)
        {
            *link = call->next;
            break;
        }
    }
    call->session = NULL;
}

void asi_call_end(asi_call *call)
{
    unlink_call(call);
    call->is_in_flight = false;
}

void asi_call_abandon_all(asi_client_session *session)
{
    while (NULL != session->calls)
    {
        unlink_call(session->calls);
    }
}

/* -- sending ----------------------------------------------------------------------------------------------------------------- */

/* Awaits the answer to a request that was sent. */
static void await(asi_call *call, asi_client_session *session, const asi_codec_request *request,
    const asi_call_listing *listing, int64_t deadline_ns)
{
    asi_call_end(call);
    call->session = session;
    call->template_id = request->template_id;
    call->correlation_id = request->correlation_id;
    call->deadline_ns = deadline_ns;
    call->is_in_flight = true;
    call->is_answered = false;
    call->listing = NULL == listing ? (asi_call_listing){ .wanted = 0 } : *listing;
    call->next = session->calls;
    session->calls = call;
}

as_result asi_call_start_on(asi_call *call, asi_client_session *session, as_publication *publication,
    asi_codec_request *request, const asi_call_listing *listing)
{
    const as_result result = asi_client_session_offer_on(session, publication, request);
    if (AS_OK == result)
    {
        await(call, session, request, listing, asi_clock_ns(&session->clock) + session->message_timeout_ns);
    }
    return result;
}

as_result asi_call_start(
    asi_call *call, asi_client_session *session, asi_codec_request *request, const asi_call_listing *listing)
{
    return asi_call_start_on(call, session, session->requests, request, listing);
}

as_result asi_call_run(asi_call *call, asi_client_session *session, as_publication *publication, asi_codec_request *request,
    const asi_call_listing *listing, int64_t deadline_ns)
{
    as_result result = asi_client_session_send(session, publication, request, deadline_ns);
    if (AS_OK != result)
    {
        return result;
    }
    await(call, session, request, listing, deadline_ns);
    result = asi_call_poll(call);
    while (AS_AGAIN == result)
    {
        asi_client_session_idle(session, session->handled);
        result = asi_call_poll(call);
    }
    return result;
}

/* -- the outcome ------------------------------------------------------------------------------------------------------------- */

as_result asi_call_fail_by_timeout(const asi_client_session *session, int32_t template_id, int64_t correlation_id)
{
    char timeout[32];
    asi_format_duration(timeout, sizeof(timeout), session->message_timeout_ns);
    return asi_fail(AS_E_TIMEOUT, 0, "awaiting response to %s - correlationId=%" PRId64 " messageTimeout=%s: is the archive "
        "running, and slow or blocked?", asi_codec_request_name(template_id), correlation_id, timeout);
}

as_result asi_call_check(asi_call *call)
{
    as_result result = AS_OK;
    if (!call->is_answered)
    {
        if (NULL == call->session)
        {
            result = asi_fail(AS_E_CLOSED, 0, "the archive client of a call to %s is closed",
                asi_codec_request_name(call->template_id));
        }
        else if (asi_clock_ns(&call->session->clock) >= call->deadline_ns)
        {
            result = asi_call_fail_by_timeout(call->session, call->template_id, call->correlation_id);
        }
        else
        {
            return AS_AGAIN;
        }
    }
    asi_call_end(call);
    return result;
}

as_result asi_call_poll(asi_call *call)
{
    asi_client_session *session = call->session;
    as_result result = AS_OK;
    if (!call->is_answered && NULL != session)
    {
        result = asi_client_session_check_usable(session);
        if (AS_E_USAGE == result)
        {
            return result;
        }
        result = AS_OK == result ? asi_client_session_poll(session) : result;
        if (AS_OK == result && 0 == session->handled)
        {
            result = asi_client_session_check_connected(session);
        }
    }
    if (AS_OK == result)
    {
        return asi_call_check(call);
    }
    asi_call_end(call);
    return result;
}

static bool is_listing(const asi_call *call) { return call->listing.wanted > 0; }

as_result asi_call_value(const asi_call *call, int64_t *value)
{
    const asi_call_answer *answer = &call->answer;
    const char *name = asi_codec_request_name(call->template_id);
    if (ASI_CODEC_CHALLENGE == answer->template_id)
    {
        return asi_fail(
            AS_E_PEER, 0, "the archive answered %s with a challenge, which is no answer to it: is it an archive?", name);
    }
    if (is_listing(call) && ASI_CODEC_ERROR != answer->code)
    {
        *value = call->listing.given;
        return AS_OK;
    }
    switch (answer->code)
    {
        case ASI_CODEC_OK:
            *value = answer->relevant_id;
            return AS_OK;
        case ASI_CODEC_RECORDING_UNKNOWN:
            return asi_fail(AS_E_PEER, ASI_CODEC_E_UNKNOWN_RECORDING, "the archive answered %s: unknown recording %" PRId64,
                name, answer->relevant_id);
        case ASI_CODEC_SUBSCRIPTION_UNKNOWN:
            return asi_fail(AS_E_PEER, ASI_CODEC_E_UNKNOWN_SUBSCRIPTION,
                "the archive answered %s: unknown subscription %" PRId64, name, answer->relevant_id);
        default:
            return asi_fail(AS_E_PEER, (int32_t)answer->relevant_id, "the archive answered %s with error %" PRId64 ": %s", name,
                answer->relevant_id, answer->text);
    }
}
