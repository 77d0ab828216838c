/* What an archive sends: responses and signals of a control session, progress events of the recording events stream.
 * Spec: 07 §3.
 *
 * As in request.h one plain struct serves all messages and the table in event.c says which members each carries.
 * Pure functions; any thread. */
#ifndef ASI_CODEC_EVENT_H
#define ASI_CODEC_EVENT_H

#include "codec/header.h"

enum
{
    ASI_CODEC_CONTROL_RESPONSE = 1,
    ASI_CODEC_RECORDING_DESCRIPTOR = 22,
    ASI_CODEC_RECORDING_SUBSCRIPTION_DESCRIPTOR = 23,
    ASI_CODEC_RECORDING_SIGNAL = 24,
    ASI_CODEC_CHALLENGE = 59,
    ASI_CODEC_RECORDING_STARTED = 101,
    ASI_CODEC_RECORDING_PROGRESS = 102,
    ASI_CODEC_RECORDING_STOPPED = 103,
    ASI_CODEC_PING = 106
};

/* Members a message does not carry, or its sender's version does not know, are AS_NULL_VALUE, empty, or as noted. */
typedef struct asi_codec_event
{
    int32_t template_id;
    int32_t schema_version;    /* of the sender; not encoded */
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t relevant_id;       /* ControlResponse: a result, an error code or an id, as `code` says (Spec: 07 §3) */
    int64_t recording_id;
    int64_t subscription_id;
    int64_t position;          /* RecordingSignal, RecordingProgress */
    int64_t start_timestamp_ms;
    int64_t stop_timestamp_ms;
    int64_t start_position;
    int64_t stop_position;
    int32_t code;              /* ASI_CODEC_OK .. ASI_CODEC_SUBSCRIPTION_UNKNOWN; null OK */
    int32_t protocol_version;  /* of the archive; null 0. In a Challenge of a stock archive it is garbage */
    int32_t signal;            /* as_recording_signal */
    int32_t initial_term_id;
    int32_t segment_file_length;
    int32_t term_buffer_length;
    int32_t mtu_length;
    int32_t session_id;
    int32_t stream_id;
    asi_codec_var error_message;
    asi_codec_var encoded_challenge;
    asi_codec_var stripped_channel;
    asi_codec_var original_channel; /* also the channel of RecordingStarted */
    asi_codec_var source_identity;
} asi_codec_event;

/* Everything null. */
void asi_codec_event_init(asi_codec_event *event, int32_t template_id);
/* AS_AGAIN: a template id that is no event, to be ignored (Spec: 07 §1). AS_E_DATA: another schema, or too short for what it
 * declares. The vars point into `bytes`. Bytes after the message are allowed: stock archives send descriptors with the
 * catalog's padding behind them (Spec: 07 §3). */
as_result asi_codec_event_decode_untrusted(const uint8_t *bytes, int64_t length, asi_codec_event *event) AS_MUST_USE;
/* AS_E_USAGE: template_id is no event, or the message is longer than capacity. */
as_result asi_codec_event_encode(const asi_codec_event *event, uint8_t *to, int64_t capacity, int64_t *length) AS_MUST_USE;

#endif
