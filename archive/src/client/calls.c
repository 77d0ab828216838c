/* Public API of non-blocking calls: builds requests from plain arguments, owns the handles. Spec: 07 §3, §9; contract in
 * as_archive.h. */
#include <stdlib.h>
#include <string.h>

#include "client/archive_client.h"
#include "client/call.h"

struct as_archive_call
{
    asi_call call;
    asi_async_listing listing;
    int32_t template_id;
    /* The outcome, once known. */
    as_result result;
    int64_t value;
    int32_t code;
    char *text; /* owned; NULL without a failure, or if its allocation failed */
};

void as_archive_request_init(as_archive_request *request, as_archive_operation operation)
{
    *request = (as_archive_request){
        .operation = operation,
        .recording_id = AS_NULL_VALUE,
        .dst_recording_id = AS_NULL_VALUE,
        .position = AS_NULL_VALUE,
        .length = AS_NULL_VALUE,
        .subscription_id = AS_NULL_VALUE,
        .replay_session_id = AS_NULL_VALUE,
        .replication_id = AS_NULL_VALUE,
        .limit_counter_id = AS_NULL_VALUE,
        .file_io_max_length = AS_NULL_VALUE,
    };
}

static bool is_listing(as_archive_operation operation)
{
    return AS_OP_LIST_RECORDINGS == operation || AS_OP_LIST_RECORDINGS_FOR_URI == operation ||
        AS_OP_LIST_RECORDING == operation || AS_OP_LIST_RECORDING_SUBSCRIPTIONS == operation;
}

static as_result check_request(const as_archive_request *request)
{
    const char *name = asi_codec_request_name((int32_t)request->operation);
    if (NULL == name)
    {
        return asi_fail(AS_E_USAGE, 0, "%d is no operation of an archive", (int)request->operation);
    }
    if (!is_listing(request->operation))
    {
        return AS_OK;
    }
    const bool is_of_subscriptions = AS_OP_LIST_RECORDING_SUBSCRIPTIONS == request->operation;
    if (is_of_subscriptions ? NULL == request->on_subscription : NULL == request->on_recording)
    {
        return asi_fail(AS_E_USAGE, 0, "%s needs a handler for what it lists", name);
    }
    if (AS_OP_LIST_RECORDING != request->operation && request->count <= 0)
    {
        return asi_fail(AS_E_USAGE, 0, "%s for %d entries: ask for at least one", name, request->count);
    }
    return AS_OK;
}

static void encode(const as_archive_request *request, asi_codec_request *encoded)
{
    asi_codec_request_init(encoded, (int32_t)request->operation);
    encoded->channel = asi_codec_text(request->channel);
    encoded->recording_id = request->recording_id;
    encoded->dst_recording_id = request->dst_recording_id;
    encoded->position = request->position;
    encoded->length = request->length;
    encoded->subscription_id = request->subscription_id;
    encoded->replay_session_id = request->replay_session_id;
    encoded->replication_id = request->replication_id;
    encoded->stream_id = request->stream_id;
    encoded->session_id = request->session_id;
    encoded->record_count = request->count;
    encoded->pseudo_index = request->pseudo_index;
    encoded->limit_counter_id = request->limit_counter_id;
    encoded->file_io_max_length = request->file_io_max_length;
    encoded->source_location = (int32_t)request->source_location;
    encoded->auto_stop = request->auto_stop ? 1 : 0;
    encoded->apply_stream_id = request->apply_stream_id ? 1 : 0;
}

as_result as_archive_client_send(as_archive_client *client, const as_archive_request *request, as_archive_call **call)
{
    asi_async *async = asi_archive_client_async(client);
    as_result result = check_request(request);
    result = AS_OK == result ? asi_archive_client_check(client) : result;
    if (AS_OK != result)
    {
        return result;
    }
    as_archive_call *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, 0, "no memory for a call to the archive");
    }
    const bool lists_subscriptions = AS_OP_LIST_RECORDING_SUBSCRIPTIONS == request->operation;
    opened->template_id = (int32_t)request->operation;
    opened->result = AS_AGAIN;
    opened->listing = (asi_async_listing){
        .on_recording = lists_subscriptions ? NULL : request->on_recording,
        .on_subscription = lists_subscriptions ? request->on_subscription : NULL,
        .context = request->context,
        .wanted = AS_OP_LIST_RECORDING == request->operation ? 1 : request->count,
    };
    asi_codec_request encoded;
    encode(request, &encoded);
    result = asi_call_start(&opened->call, async, &encoded, is_listing(request->operation) ? &opened->listing : NULL);
    if (AS_OK != result)
    {
        free(opened);
        return result;
    }
    *call = opened;
    return AS_OK;
}

/* A listing ends with its last entry or with UNKNOWN; both count as success. */
static as_result read_answer(const as_archive_call *call, int64_t *value)
{
    const asi_async_answer *answer = &call->call.answer;
    if (is_listing((as_archive_operation)call->template_id) && ASI_CODEC_ERROR != answer->code)
    {
        *value = call->listing.given;
        return AS_OK;
    }
    return asi_call_value(answer, call->template_id, value);
}

static as_result settle(as_archive_call *call, as_result result)
{
    call->result = result;
    if (result < 0)
    {
        call->code = as_error_code();
        call->text = strdup(as_error_text());
    }
    return result;
}

as_result as_archive_call_poll(as_archive_call *call, int64_t *value)
{
    if (AS_AGAIN == call->result)
    {
        asi_async *async = call->call.async;
        as_result result = AS_OK;
        int32_t handled = 0;
        if (!call->call.is_answered && NULL != async)
        {
            result = asi_async_check_usable(async);
            if (AS_E_USAGE == result)
            {
                return result;
            }
            if (AS_OK == result && async->is_aeron_invoked)
            {
                as_client_invoke(async->aeron);
            }
            result = AS_OK == result ? asi_async_poll(async, &handled) : result;
        }
        if (AS_OK == result && NULL != async && !call->call.is_answered && 0 == handled)
        {
            result = asi_async_check_connected(async);
        }
        if (AS_OK != result)
        {
            asi_call_end(&call->call);
            return settle(call, result);
        }
        result = asi_call_check(&call->call);
        if (AS_AGAIN == result)
        {
            return AS_AGAIN;
        }
        settle(call, AS_OK == result ? read_answer(call, &call->value) : result);
    }
    if (AS_OK == call->result)
    {
        *value = call->value;
        return AS_OK;
    }
    return asi_fail(call->result, call->code, "%s", NULL == call->text ? "no memory for the text" : call->text);
}

int64_t as_archive_call_correlation_id(const as_archive_call *call) { return call->call.correlation_id; }

void as_archive_call_close(as_archive_call *call)
{
    if (NULL != call)
    {
        asi_call_end(&call->call);
        free(call->text);
        free(call);
    }
}
