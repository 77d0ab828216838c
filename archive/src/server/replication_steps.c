/* Steps of a replication in every state except those of the copy: from the connection to the image of the replay. See
 * replication.h. Spec: 08 §10.3. */
#include "server/replication_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/recordings.h"
#include "server/replication_channels.h"
#include "server/replication_copy.h"
#include "server/replication_source.h"
#include "server/uses.h"
#include "store/catalog_swap.h"
#include "wire/command.h"

/* -- from the connection to the destination ---------------------------------------------------------------------------------- */

static int step_connect(asi_replication *replication)
{
    const as_result result = asi_connect_step(&replication->connect);
    if (AS_AGAIN == result)
    {
        return 0;
    }
    if (AS_OK == result)
    {
        asi_replication_enter(replication, ASI_REPLICATION_DESCRIPTOR);
    }
    else if (AS_E_USAGE == result)
    {
        /* An invalid channel: Spec: 07 §7 defines code 0 for it, and the text is that of stock's parser. */
        asi_uri uri;
        const char *channel = replication->params.source_channel;
        (void)!asi_channel_parse_untrusted(&uri, channel, (int64_t)strlen(channel));
        asi_replication_fail_as_told(replication);
    }
    else
    {
        const bool is_rejected = ASI_CODEC_E_AUTHENTICATION_REJECTED == as_error_code();
        const char *reason = ASI_CONNECT_CHALLENGE == replication->connect.state ?
            "Replication does not support challenge/response authentication" :
            is_rejected ? replication->connect.call.answer.text : as_error_text();
        char text[ASI_CLIENT_TEXT_CAPACITY + 64];
        snprintf(text, sizeof(text), "Replication connection failed=ERROR - %s", reason);
        asi_replication_fail(replication, ASI_CODEC_E_REPLICATION_CONNECTION_FAILURE, text);
    }
    return 1;
}

/* Handler of the source's descriptor, called during the poll of its responses; copies the descriptor. */
static bool on_descriptor(void *context, const as_recording *recording)
{
    asi_replication *replication = context;
    replication->stripped_channel = strdup(recording->stripped_channel);
    replication->original_channel = strdup(recording->original_channel);
    replication->source_identity = strdup(recording->source_identity);
    if (NULL == replication->stripped_channel || NULL == replication->original_channel || NULL == replication->source_identity)
    {
        return false;
    }
    replication->record = (asi_catalog_record){
        .recording_id = recording->recording_id,
        .start_timestamp_ms = recording->start_timestamp_ms,
        .stop_timestamp_ms = recording->stop_timestamp_ms,
        .start_position = recording->start_position,
        .stop_position = recording->stop_position,
        .initial_term_id = recording->initial_term_id,
        .segment_file_length = recording->segment_file_length,
        .term_buffer_length = recording->term_buffer_length,
        .mtu_length = recording->mtu_length,
        .session_id = recording->session_id,
        .stream_id = recording->stream_id,
        .stripped_channel = asi_text_of(replication->stripped_channel),
        .original_channel = asi_text_of(replication->original_channel),
        .source_identity = asi_text_of(replication->source_identity),
    };
    replication->has_record = true;
    return false;
}

/* Parameters of an empty destination that begins at the source's start position. */
static asi_recording_params empty_copy(const asi_catalog_record *record)
{
    return (asi_recording_params){
        .start_timestamp_ms = record->start_timestamp_ms,
        .stop_timestamp_ms = record->start_timestamp_ms,
        .start_position = record->start_position,
        .stop_position = record->start_position,
        .initial_term_id = record->initial_term_id,
        .segment_file_length = record->segment_file_length,
        .term_buffer_length = record->term_buffer_length,
        .mtu_length = record->mtu_length,
        .session_id = record->session_id,
        .stream_id = record->stream_id,
        .stripped_channel = record->stripped_channel,
        .original_channel = record->original_channel,
        .source_identity = record->source_identity,
    };
}

/* Creates or finds the destination; *stop is the position where the copy continues. False: the replication has ended. */
static bool prepare_destination(asi_replication *replication, int64_t *stop)
{
    asi_catalog *catalog = replication->archive->catalog;
    const asi_catalog_record *source = &replication->record;
    const asi_recording_params params = empty_copy(source);
    asi_catalog_record record;
    as_result result = AS_OK;
    if (AS_NULL_VALUE == replication->recording_id)
    {
        result = asi_catalog_add(catalog, &params, &replication->recording_id);
        if (AS_OK == result)
        {
            asi_replication_signal(replication, source->start_position, AS_SIGNAL_REPLICATE);
        }
        *stop = source->start_position;
    }
    else if (!asi_catalog_find(catalog, replication->recording_id, &record))
    {
        result = asi_fail(AS_E_USAGE, 0, "unknown destination recording id %lld", (long long)replication->recording_id);
    }
    else if (NULL != asi_uses_recorded(replication->archive, replication->recording_id))
    {
        result = asi_fail(AS_E_USAGE, 0, "cannot replicate to active recording %lld", (long long)replication->recording_id);
    }
    else if (record.start_position == record.stop_position)
    {
        result = asi_catalog_replace(catalog, replication->recording_id, &params);
        *stop = source->start_position;
    }
    else
    {
        *stop = record.stop_position;
    }
    if (AS_OK != result)
    {
        asi_replication_fail_as_told(replication);
    }
    return AS_OK == result;
}

static as_result check_descriptor_untrusted(const asi_replication *replication)
{
    const asi_catalog_record *record = &replication->record;
    if (record->recording_id != replication->params.source_recording_id)
    {
        return asi_fail(AS_E_DATA, 0, "the source archive answered with the descriptor of recording %lld, not of %lld: is it an "
            "archive?", (long long)record->recording_id, (long long)replication->params.source_recording_id);
    }
    const as_result result = asi_recording_check_untrusted(record);
    if (AS_OK != result)
    {
        return asi_fail_in(result, "the source archive's descriptor");
    }
    if (record->mtu_length < AS_FRAME_HEADER_LENGTH || record->mtu_length > AS_MAX_UDP_PAYLOAD_LENGTH)
    {
        return asi_fail(AS_E_DATA, 0, "the source archive's descriptor has mtuLength=%d, it must be %d to %d",
            record->mtu_length, AS_FRAME_HEADER_LENGTH, AS_MAX_UDP_PAYLOAD_LENGTH);
    }
    return AS_OK;
}

static void take_descriptor(asi_replication *replication)
{
    const asi_catalog_record *source = &replication->record;
    const int32_t io_length = replication->params.file_io_max_length;
    int64_t stop = AS_NULL_VALUE;
    char text[192];
    if (AS_OK != check_descriptor_untrusted(replication))
    {
        asi_replication_fail_as_told(replication);
        return;
    }
    if (AS_NULL_VALUE != io_length && io_length < source->mtu_length)
    {
        snprintf(text, sizeof(text), "Replication fileIoMaxLength (%d) is less than than the recording mtuLength (%d)",
            io_length, source->mtu_length);
        asi_replication_fail(replication, ASI_CODEC_E_GENERIC, text);
        return;
    }
    if (!prepare_destination(replication, &stop))
    {
        return;
    }
    replication->replay_position = stop;
    if (replication->params.is_live && AS_NULL_VALUE != source->stop_position)
    {
        asi_replication_fail(replication, ASI_CODEC_E_GENERIC, "cannot live merge without active source recording");
        return;
    }
    if (source->start_position == source->stop_position || source->stop_position == stop)
    {
        asi_replication_signal(replication, source->stop_position, AS_SIGNAL_SYNC);
        asi_replication_finish(replication);
        return;
    }
    if (AS_NULL_VALUE != replication->params.stop_position && replication->params.stop_position < source->start_position)
    {
        /* The error that the source would return if it did not read this length as an open end. */
        /* May wrap, as in stock: the position is arbitrary client input. */
        const long long length = asi_wrap_sub_i64(replication->params.stop_position, stop);
        snprintf(text, sizeof(text), "ERROR - replay length must be positive: replayLength=%lld, length=%lld, stopPosition=%lld, "
            "replayPosition=%lld for recording %lld", length, length, (long long)source->stop_position, (long long)stop,
            (long long)source->recording_id);
        asi_replication_fail(replication, ASI_CODEC_E_GENERIC, text);
        return;
    }
    if (AS_NULL_VALUE != replication->params.stop_position && stop >= replication->params.stop_position)
    {
        asi_replication_finish(replication); /* nothing is left to copy; the source would replay a length of 0 or less */
        return;
    }
    asi_replication_enter(
        replication, replication->params.is_live ? ASI_REPLICATION_SOURCE_POSITION : ASI_REPLICATION_EXTEND);
}

static int step_descriptor(asi_replication *replication)
{
    if (!replication->call.is_in_flight)
    {
        asi_replication_prepare(replication, ASI_CODEC_LIST_RECORDING)->record_count = 1;
    }
    const asi_call_listing listing = { .on_recording = on_descriptor, .context = replication, .wanted = 1 };
    const as_result result = asi_replication_ask(replication, &listing);
    if (AS_OK != result)
    {
        return AS_AGAIN == result ? 0 : 1;
    }
    if (replication->has_record)
    {
        take_descriptor(replication);
    }
    else if (ASI_CODEC_CONTROL_RESPONSE == replication->call.answer.template_id)
    {
        char text[64];
        snprintf(text, sizeof(text), "unknown src recording id %lld", (long long)replication->params.source_recording_id);
        asi_replication_fail(replication, ASI_CODEC_E_UNKNOWN_RECORDING, text);
    }
    else
    {
        asi_replication_fail(replication, ASI_CODEC_E_GENERIC, "no memory for the source's descriptor");
    }
    return 1;
}

static int step_source_position(asi_replication *replication)
{
    const as_result result = asi_replication_query_position(replication);
    if (AS_OK == result && AS_NULL_VALUE == replication->source_position)
    {
        asi_replication_fail(replication, ASI_CODEC_E_GENERIC, "cannot live merge without active source recording");
    }
    else if (AS_OK == result)
    {
        asi_replication_enter(replication, ASI_REPLICATION_EXTEND);
    }
    return AS_AGAIN == result ? 0 : 1;
}

static int step_extend(asi_replication *replication)
{
    asi_uri_builder channel;
    if (AS_OK != asi_replication_recording_channel(replication, &channel))
    {
        asi_replication_fail_as_told(replication);
        return 1;
    }
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_EXTEND_RECORDING_2);
    request.control_session_id = replication->control_session_id;
    request.correlation_id = replication->id;
    request.recording_id = replication->recording_id;
    request.stream_id = replication->record.stream_id;
    request.source_location = AS_SOURCE_REMOTE;
    request.auto_stop = 1;
    request.channel = asi_codec_text(channel.text);
    asi_recording_subscription *recorded = asi_recordings_extend_for(replication->archive, &request);
    if (NULL == recorded)
    {
        asi_replication_finish(replication); /* the error was already reported to the requester */
        return 1;
    }
    replication->subscription_id = recorded->id;
    recorded->on_recording_end = asi_replications_on_recording_end;
    const bool is_manual = replication->params.is_live || replication->params.is_tagged;
    asi_replication_enter(replication, is_manual ? ASI_REPLICATION_DESTINATION :
        replication->params.is_response ? ASI_REPLICATION_TOKEN : ASI_REPLICATION_REPLAY);
    return 1;
}

static int step_destination(asi_replication *replication)
{
    const asi_recording_subscription *recorded = asi_replication_recorded(replication);
    if (asi_replication_is_recording_lost(replication, recorded))
    {
        return 1;
    }
    as_result result = AS_OK;
    if ('\0' == replication->replay_destination[0])
    {
        asi_uri_builder channel;
        result = asi_replication_destination_channel(replication, &channel);
        if (AS_OK == result)
        {
            memcpy(replication->replay_destination, channel.text, (size_t)channel.length + 1);
            result = as_subscription_async_add_destination(
                recorded->subscription, channel.text, &replication->destination_request);
        }
    }
    result = AS_OK == result ? asi_replication_poll_destination(replication) : result;
    if (AS_OK == result)
    {
        asi_replication_enter(replication, ASI_REPLICATION_REPLAY);
    }
    else if (AS_AGAIN != result)
    {
        asi_replication_fail_as_told(replication);
    }
    return AS_AGAIN == result && asi_replication_has_time(replication) ? 0 : 1;
}

/* -- the replay -------------------------------------------------------------------------------------------------------------- */

static int step_token(asi_replication *replication)
{
    if (!replication->call.is_in_flight)
    {
        asi_replication_prepare(replication, ASI_CODEC_REPLAY_TOKEN);
    }
    const as_result result = asi_replication_ask(replication, NULL);
    if (AS_OK == result)
    {
        replication->token = replication->call.answer.relevant_id;
        asi_replication_enter(replication, ASI_REPLICATION_REQUESTS);
    }
    return AS_AGAIN == result ? 0 : 1;
}

static as_result request_publication(asi_replication *replication)
{
    asi_uri_builder channel;
    as_publication_constants requests;
    as_publication_get_constants(replication->source.requests, &requests);
    const as_result result = asi_connect_replay_requests(&replication->source, replication->subscription_id, &channel);
    return AS_OK != result ? result : as_client_async_add_exclusive_publication(
        replication->archive->client, channel.text, requests.stream_id, &replication->publication_request);
}

/* Spec: 07 §11 - adds the publication that the replay responds to, without the first one's session id (Spec: 08 §18, quirk
 * 18). */
static int step_requests(asi_replication *replication)
{
    as_result result = AS_OK;
    if (NULL == replication->requests)
    {
        if (AS_NULL_VALUE == replication->publication_request)
        {
            result = request_publication(replication);
        }
        if (AS_OK == result)
        {
            result = as_client_poll_publication(
                replication->archive->client, replication->publication_request, &replication->requests);
            replication->publication_request = AS_AGAIN == result ? replication->publication_request : AS_NULL_VALUE;
            if (AS_E_PEER == result && ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE == as_error_code())
            {
                result = AS_AGAIN;
            }
        }
    }
    if (AS_OK == result &&
        (!as_publication_is_connected(replication->requests) || as_publication_available_window(replication->requests) <= 0))
    {
        result = AS_AGAIN;
    }
    if (AS_OK == result)
    {
        asi_replication_enter(replication, ASI_REPLICATION_REPLAY);
    }
    else if (AS_AGAIN != result)
    {
        asi_replication_fail_as_told(replication);
    }
    return AS_AGAIN == result && asi_replication_has_time(replication) ? 0 : 1;
}

static int step_replay(asi_replication *replication)
{
    const asi_recording_subscription *recorded = asi_replication_recorded(replication);
    asi_uri_builder channel;
    if (asi_replication_is_recording_lost(replication, recorded))
    {
        return 1;
    }
    if (!replication->call.is_in_flight)
    {
        const as_result result = asi_replication_replay_channel(replication, recorded->subscription, &channel);
        if (AS_AGAIN == result)
        {
            return asi_replication_has_time(replication) ? 0 : 1;
        }
        if (AS_OK != result)
        {
            asi_replication_fail_as_told(replication);
            return 1;
        }
        asi_codec_request *request = asi_replication_prepare(replication, ASI_CODEC_REPLAY);
        const int64_t stop = replication->params.stop_position;
        request->position = replication->replay_position;
        request->length = AS_NULL_VALUE == stop ? AS_NULL_VALUE : stop - replication->replay_position;
        request->stream_id = replication->record.stream_id;
        request->file_io_max_length = replication->params.file_io_max_length;
        request->replay_token = replication->token;
        request->channel = asi_codec_text(channel.text);
    }
    as_publication *publication = NULL == replication->requests ? replication->source.requests : replication->requests;
    const as_result result = asi_replication_ask_on(replication, publication, NULL);
    replication->request.channel = asi_codec_text(NULL);
    if (AS_OK == result)
    {
        replication->replay_session_id = replication->call.answer.relevant_id;
        asi_replication_enter(replication, ASI_REPLICATION_AWAIT_IMAGE);
    }
    return AS_AGAIN == result ? 0 : 1;
}

static int step_await_image(asi_replication *replication)
{
    const asi_recording_subscription *recorded = asi_replication_recorded(replication);
    if (replication->has_ended)
    {
        asi_replication_enter(replication, ASI_REPLICATION_REPLICATE);
        return 1;
    }
    if (asi_replication_is_recording_lost(replication, recorded))
    {
        return 1;
    }
    if (NULL == replication->image)
    {
        replication->image = as_subscription_image_by_session(
            recorded->subscription, (int32_t)(uint32_t)(uint64_t)replication->replay_session_id);
    }
    /* A step of the recordings takes over the image, and may refuse it. */
    if (NULL != replication->image && NULL != asi_uses_recorded(replication->archive, replication->recording_id))
    {
        asi_replication_enter(
            replication, replication->params.is_live ? ASI_REPLICATION_CATCHUP : ASI_REPLICATION_REPLICATE);
        return 1;
    }
    return asi_replication_is_source_well(replication) && asi_replication_has_time(replication) ? 0 : 1;
}

int asi_replication_step(asi_replication *replication)
{
    switch (replication->state)
    {
        case ASI_REPLICATION_CONNECT:
            return step_connect(replication);
        case ASI_REPLICATION_DESCRIPTOR:
            return step_descriptor(replication);
        case ASI_REPLICATION_SOURCE_POSITION:
            return step_source_position(replication);
        case ASI_REPLICATION_EXTEND:
            return step_extend(replication);
        case ASI_REPLICATION_DESTINATION:
            return step_destination(replication);
        case ASI_REPLICATION_TOKEN:
            return step_token(replication);
        case ASI_REPLICATION_REQUESTS:
            return step_requests(replication);
        case ASI_REPLICATION_REPLAY:
            return step_replay(replication);
        case ASI_REPLICATION_AWAIT_IMAGE:
            return step_await_image(replication);
        case ASI_REPLICATION_REPLICATE:
            return asi_replication_step_replicate(replication);
        case ASI_REPLICATION_CATCHUP:
            return asi_replication_step_catchup(replication);
        case ASI_REPLICATION_LIVE_JOIN:
            return asi_replication_step_live_join(replication);
        case ASI_REPLICATION_CLOSING:
            break;
    }
    return 0;
}
