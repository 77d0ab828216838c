/* The table of responses, signals and progress events, in the order of Spec: 07 §3. Rules in event.h. */
#include "codec/event.h"

#define I64(since, member) { 8, since, offsetof(asi_codec_event, member) }
#define I32(since, member) { 4, since, offsetof(asi_codec_event, member) }
#define VAR(since, member) { 1, since, offsetof(asi_codec_event, member) }

/* Template id, block length, name, fields, var data; each with the schema version that brought it. */
static const asi_codec_layout LAYOUTS[] = {
    { ASI_CODEC_CONTROL_RESPONSE, 32, "ControlResponse",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, relevant_id), I32(0, code),
            I32(4, protocol_version) },
        { VAR(0, error_message) } },
    { ASI_CODEC_CHALLENGE, 20, "Challenge",
        { I64(0, control_session_id), I64(0, correlation_id), I32(0, protocol_version) },
        { VAR(0, encoded_challenge) } },
    { ASI_CODEC_RECORDING_DESCRIPTOR, 80, "RecordingDescriptor",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, start_timestamp_ms),
            I64(0, stop_timestamp_ms), I64(0, start_position), I64(0, stop_position), I32(0, initial_term_id),
            I32(0, segment_file_length), I32(0, term_buffer_length), I32(0, mtu_length), I32(0, session_id),
            I32(0, stream_id) },
        { VAR(0, stripped_channel), VAR(0, original_channel), VAR(0, source_identity) } },
    { ASI_CODEC_RECORDING_SUBSCRIPTION_DESCRIPTOR, 28, "RecordingSubscriptionDescriptor",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, subscription_id), I32(0, stream_id) },
        { VAR(0, stripped_channel) } },
    { ASI_CODEC_RECORDING_SIGNAL, 44, "RecordingSignalEvent",
        { I64(0, control_session_id), I64(0, correlation_id), I64(0, recording_id), I64(0, subscription_id),
            I64(0, position), I32(0, signal) } },
    { ASI_CODEC_PING, 8, "Ping",
        { I64(0, control_session_id) } },
    { ASI_CODEC_RECORDING_STARTED, 24, "RecordingStarted",
        { I64(0, recording_id), I64(0, start_position), I32(0, session_id), I32(0, stream_id) },
        { VAR(0, original_channel), VAR(0, source_identity) } },
    { ASI_CODEC_RECORDING_PROGRESS, 24, "RecordingProgress",
        { I64(0, recording_id), I64(0, start_position), I64(0, position) } },
    { ASI_CODEC_RECORDING_STOPPED, 24, "RecordingStopped",
        { I64(0, recording_id), I64(0, start_position), I64(0, stop_position) } },
};

static const asi_codec_table TABLE = {
    .layouts = LAYOUTS, .count = (int32_t)(sizeof(LAYOUTS) / sizeof(LAYOUTS[0])), .what = "event"
};

void asi_codec_event_init(asi_codec_event *event, int32_t template_id)
{
    *event = (asi_codec_event){
        .template_id = template_id,
        .schema_version = ASI_CODEC_SCHEMA_VERSION,
        .control_session_id = AS_NULL_VALUE,
        .correlation_id = AS_NULL_VALUE,
        .relevant_id = AS_NULL_VALUE,
        .recording_id = AS_NULL_VALUE,
        .subscription_id = AS_NULL_VALUE,
        .position = AS_NULL_VALUE,
        .start_timestamp_ms = AS_NULL_VALUE,
        .stop_timestamp_ms = AS_NULL_VALUE,
        .start_position = AS_NULL_VALUE,
        .stop_position = AS_NULL_VALUE,
        .signal = AS_NULL_VALUE,
        .initial_term_id = AS_NULL_VALUE,
        .segment_file_length = AS_NULL_VALUE,
        .term_buffer_length = AS_NULL_VALUE,
        .mtu_length = AS_NULL_VALUE,
        .session_id = AS_NULL_VALUE,
        .stream_id = AS_NULL_VALUE,
    };
}

as_result asi_codec_event_decode_untrusted(const uint8_t *bytes, int64_t length, asi_codec_event *event)
{
    asi_codec_header header;
    const asi_codec_layout *layout;
    as_result result = asi_codec_layout_find_untrusted(&TABLE, bytes, length, &header, &layout);
    if (AS_OK != result)
    {
        return result;
    }
    asi_codec_event decoded;
    asi_codec_event_init(&decoded, header.template_id);
    decoded.schema_version = header.version;
    result = asi_codec_decode_untrusted(layout, &header, bytes, length, &decoded);
    if (AS_OK == result)
    {
        *event = decoded;
    }
    return result;
}

as_result asi_codec_event_encode(const asi_codec_event *event, uint8_t *to, int64_t capacity, int64_t *length)
{
    return asi_codec_encode(&TABLE, event->template_id, event, to, capacity, length);
}
