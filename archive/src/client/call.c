/* Calls in flight; rules in call.h. */
#include "client/call.h"

#include <inttypes.h>

static void unlink_call(asi_call *call)
{
    for (asi_call **link = NULL == call->async ? NULL : &call->async->calls; NULL != link && NULL != *link;
         link = &(*link)->next)
    {
        if (*link == call)
        {
            *link = call->next;
            break;
        }
    }
    call->async = NULL;
}

void asi_call_end(asi_call *call)
{
    unlink_call(call);
    call->template_id = 0;
}

void asi_call_watch(asi_call *call, asi_async *async, const asi_codec_request *request, asi_async_listing *listing)
{
    asi_call_end(call);
    call->async = async;
    call->correlation_id = request->correlation_id;
    call->deadline_ns = asi_clock_ns(&async->clock) + async->message_timeout_ns;
    call->template_id = request->template_id;
    call->is_answered = false;
    call->listing = listing;
    call->next = async->calls;
    async->calls = call;
}

as_result asi_call_start(asi_call *call, asi_async *async, asi_codec_request *request, asi_async_listing *listing)
{
    const as_result result = asi_async_offer(async, request);
    if (AS_OK == result)
    {
        asi_call_watch(call, async, request, listing);
    }
    return result;
}

static as_result fail_by_timeout(const asi_call *call)
{
    char timeout[32];
    asi_format_duration(timeout, sizeof(timeout), call->async->message_timeout_ns);
    return asi_fail(AS_E_TIMEOUT, 0, "awaiting response to %s - correlationId=%" PRId64 " messageTimeout=%s: is the archive "
        "running, and slow or blocked?", asi_codec_request_name(call->template_id), call->correlation_id, timeout);
}

as_result asi_call_check(asi_call *call)
{
    as_result result = AS_OK;
    if (!call->is_answered)
    {
        if (NULL == call->async)
        {
            result = asi_fail(AS_E_CLOSED, 0, "the archive client of a call to %s is closed",
                asi_codec_request_name(call->template_id));
        }
        else if (asi_clock_ns(&call->async->clock) >= call->deadline_ns)
        {
            result = fail_by_timeout(call);
        }
        else
        {
            return AS_AGAIN;
        }
    }
    asi_call_end(call);
    return result;
}

as_result asi_call_value(const asi_async_answer *answer, int32_t template_id, int64_t *value)
{
    const char *name = asi_codec_request_name(template_id);
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

void asi_call_abandon_all(asi_async *async)
{
    while (NULL != async->calls)
    {
        unlink_call(async->calls);
    }
}
