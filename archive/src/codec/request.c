/* The table of requests, in the order of Spec: 07 §3. Rules in request.h. */
#include "codec/request.h"

#define I64(since, member) { 8, since, offsetof(asi_codec_request, member) }
#define I32(since, member) { 4, since, offsetof(asi_codec_request, member) }
#define FLAG(since, member) { 4, since, offsetof(asi_codec_request, member), true }
#define VAR(since, member) { 1, since, offsetof(asi_codec_request, member) }

/* Template id, block length, name, fields, var data; each with the schema version that introduced it. */
static const asi_codec_layout LAYOUTS[] = {
    { ASI_CODEC_AUTH_CONNECT, 16, "AuthConnectRequest",
        { I64(0, correlation_id), I32(0, stream_id), I32(0, client_version) },
        { VAR(0, channel), VAR(0, encoded_credentials), VAR(12, client_info) } },
    { ASI_CODEC_CHALLENGE_RESPONSE, 16, "ChallengeResponse",
        { I64(0, control_session_id), I64(0, correlation_id) },
        { VAR(0, encoded_credentials) } },
    { ASI_CODEC_KEEP_ALIVE, 16, "KeepAliveRequest",
        { I64(0, control_session_id), I64(0, correlation_id) } },
    { ASI_CODEC_CLOSE_SESSION, 8, "CloseSessionRequest",
        { I64(0, control_session_id) } },
    { ASI_CODEC_ARCHIVE_ID, 16, "ArchiveIdRequest",
        { I64(0, control_session_id), I64(0, correlation_id) } },
    { ASI_CODEC_START_RECORDING, 24, "StartRecordingRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I32(0, stream_id), FLAG(0, source_location) },
        { VAR(0, channel) } },
    { ASI_CODEC_START_RECORDING_2, 28, "StartRecordingRequest2",
        { I64(0, control_session_id), I64(0, correlation_id), I32(0, stream_id), FLAG(0, source_location),
            FLAG(0, auto_stop) },
        { VAR(0, channel) } },
    { ASI_CODEC_EXTEND_RECORDING, 32, "ExtendRecordingRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I32(0, stream_id),
            FLAG(0, source_location) },
        { VAR(0, channel) } },
    { ASI_CODEC_EXTEND_RECORDING_2, 36, "ExtendRecordingRequest2",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I32(0, stream_id),
            FLAG(0, source_location), FLAG(0, auto_stop) },
        { VAR(0, channel) } },
    { ASI_CODEC_STOP_RECORDING, 20, "StopRecordingRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I32(0, stream_id) },
        { VAR(0, channel) } },
    { ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, 24, "StopRecordingSubscriptionRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, subscription_id) } },
    { ASI_CODEC_STOP_RECORDING_BY_IDENTITY, 24, "StopRecordingByIdentityRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_REPLAY, 56, "ReplayRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, position), I64(0, length),
            I32(0, stream_id), I32(7, file_io_max_length), I64(10, replay_token) },
        { VAR(0, channel) } },
    { ASI_CODEC_BOUNDED_REPLAY, 60, "BoundedReplayRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, position), I64(0, length),
            I32(0, limit_counter_id), I32(0, stream_id), I32(7, file_io_max_length), I64(10, replay_token) },
        { VAR(0, channel) } },
    { ASI_CODEC_STOP_REPLAY, 24, "StopReplayRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, replay_session_id) } },
    { ASI_CODEC_STOP_ALL_REPLAYS, 24, "StopAllReplaysRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_REPLAY_TOKEN, 24, "ReplayTokenRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_LIST_RECORDINGS, 28, "ListRecordingsRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I32(0, record_count) } },
    { ASI_CODEC_LIST_RECORDINGS_FOR_URI, 32, "ListRecordingsForUriRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I32(0, record_count),
            I32(0, stream_id) },
        { VAR(0, channel) } },
    { ASI_CODEC_LIST_RECORDING, 24, "ListRecordingRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_FIND_LAST_MATCHING_RECORDING, 32, "FindLastMatchingRecordingRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I32(0, session_id),
            I32(0, stream_id) },
        { VAR(0, channel) } },
    { ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS, 32, "ListRecordingSubscriptionsRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I32(0, pseudo_index), I32(0, record_count),
            FLAG(0, apply_stream_id), I32(0, stream_id) },
        { VAR(0, channel) } },
    { ASI_CODEC_START_POSITION, 24, "StartPositionRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_RECORDING_POSITION, 24, "RecordingPositionRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_STOP_POSITION, 24, "StopPositionRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_MAX_RECORDED_POSITION, 24, "MaxRecordedPositionRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_TRUNCATE_RECORDING, 32, "TruncateRecordingRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, position) } },
    { ASI_CODEC_PURGE_RECORDING, 24, "PurgeRecordingRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_DETACH_SEGMENTS, 32, "DetachSegmentsRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, position) } },
    { ASI_CODEC_DELETE_DETACHED_SEGMENTS, 24, "DeleteDetachedSegmentsRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_PURGE_SEGMENTS, 32, "PurgeSegmentsRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, position) } },
    { ASI_CODEC_ATTACH_SEGMENTS, 24, "AttachSegmentsRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) } },
    { ASI_CODEC_MIGRATE_SEGMENTS, 32, "MigrateSegmentsRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, dst_recording_id) } },
    { ASI_CODEC_UPDATE_CHANNEL, 24, "UpdateChannelRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id) },
        { VAR(0, channel) } },
    { ASI_CODEC_REPLICATE, 36, "ReplicateRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, dst_recording_id),
            I32(0, stream_id) },
        { VAR(0, channel), VAR(0, live_destination) } },
    { ASI_CODEC_TAGGED_REPLICATE, 52, "TaggedReplicateRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, dst_recording_id),
            I64(0, channel_tag_id), I64(0, subscription_tag_id), I32(0, stream_id) },
        { VAR(0, channel), VAR(0, live_destination) } },
    { ASI_CODEC_REPLICATE_2, 68, "ReplicateRequest2",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, dst_recording_id),
            I64(0, stop_position), I64(0, channel_tag_id), I64(0, subscription_tag_id), I32(0, stream_id),
            I32(7, file_io_max_length), I32(8, replication_session_id) },
        { VAR(0, channel), VAR(0, live_destination), VAR(0, replication_channel), VAR(8, encoded_credentials),
            VAR(10, src_response_channel) } },
    { ASI_CODEC_STOP_REPLICATION, 24, "StopReplicationRequest",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, replication_id) } },
};

static const asi_codec_table TABLE = {
    .layouts = LAYOUTS, .count = (int32_t)(sizeof(LAYOUTS) / sizeof(LAYOUTS[0])), .what = "request"
};

void asi_codec_request_init(asi_codec_request *request, int32_t template_id)
{
    *request = (asi_codec_request){
        .template_id = template_id,
        .schema_version = ASI_CODEC_SCHEMA_VERSION,
        .control_session_id = AS_NULL_VALUE,
        .correlation_id = AS_NULL_VALUE,
        .recording_id = AS_NULL_VALUE,
        .dst_recording_id = AS_NULL_VALUE,
        .position = AS_NULL_VALUE,
        .length = AS_NULL_VALUE,
        .stop_position = AS_NULL_VALUE,
        .subscription_id = AS_NULL_VALUE,
        .replay_session_id = AS_NULL_VALUE,
        .replay_token = AS_NULL_VALUE,
        .replication_id = AS_NULL_VALUE,
        .channel_tag_id = AS_NULL_VALUE,
        .subscription_tag_id = AS_NULL_VALUE,
        .stream_id = AS_NULL_VALUE,
        .session_id = AS_NULL_VALUE,
        .source_location = AS_NULL_VALUE,
        .record_count = AS_NULL_VALUE,
        .pseudo_index = AS_NULL_VALUE,
        .limit_counter_id = AS_NULL_VALUE,
        .file_io_max_length = AS_NULL_VALUE,
        .replication_session_id = AS_NULL_VALUE,
    };
}

const char *asi_codec_request_name(int32_t template_id)
{
    const asi_codec_layout *layout = asi_codec_layout_find(&TABLE, template_id);
    return NULL == layout ? NULL : layout->name;
}

as_result asi_codec_request_decode_untrusted(const uint8_t *bytes, int64_t length, asi_codec_request *request)
{
    asi_codec_header header;
    const asi_codec_layout *layout;
    as_result result = asi_codec_layout_find_untrusted(&TABLE, bytes, length, &header, &layout);
    if (AS_OK != result)
    {
        return result;
    }
    asi_codec_request decoded;
    asi_codec_request_init(&decoded, header.template_id);
    decoded.schema_version = header.version;
    result = asi_codec_decode_untrusted(layout, &header, bytes, length, &decoded);
    if (AS_OK == result)
    {
        *request = decoded;
    }
    return result;
}

as_result asi_codec_request_encode(const asi_codec_request *request, uint8_t *to, int64_t capacity, int64_t *length)
{
    return asi_codec_encode(&TABLE, request->template_id, request, to, capacity, length);
}
