/* Public API of non-blocking calls: builds requests from plain arguments, owns the handles. Spec: 07 §3, §9; contract in
 * as_archive.h. */
#include <stdlib.h>
#include <string.h>

#include "client/archive_client.h"
#include "client/call.h"

struct as_archive_call
{
    asi_call call;
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
    const asi_call_listing listing = {
        .on_recording = lists_subscriptions ? NULL : request->on_recording,
        .on_subscription = lists_subscriptions ? request->on_subscription : NULL,
        .context = request->context,
        .wanted = AS_OP_LIST_RECORDING == request->operation ? 1 : request->count,
    };
    asi_codec_request encoded;
    encode(request, &encoded);
    opened->result = AS_AGAIN;
    result = asi_call_start(
        &opened->call, asi_archive_client_session(client), &encoded, is_listing(request->operation) ? &listing : NULL);
    if (AS_OK != result)
    {
        free(opened);
        return result;
    }
    *call = opened;
    return AS_OK;
}

as_result as_archive_call_poll(as_archive_call *call, int64_t *value)
{
    if (AS_AGAIN == call->result)
    {
        if (NULL != call->call.session)
        {
            asi_client_session_invoke(call->call.session);
        }
        as_result result = asi_call_poll(&call->call);
        if (AS_AGAIN == result || call->call.is_in_flight)
        {
            return result;
        }
        result = AS_OK == result ? asi_call_value(&call->call, &call->value) : result;
        call->result = result;
        if (AS_OK != result)
        {
            call->code = as_error_code();
            call->text = strdup(as_error_text());
        }
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
    if (NULL == call || call->call.is_in_handler)
    {
        return;
    }
    asi_call_end(&call->call);
    free(call->text);
    free(call);
}
