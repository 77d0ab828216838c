/* Requests of the archive control protocol, client to archive. Spec: 07 §3-4.
 *
 * One plain struct serves all messages: the table in request.c says which members each carries. Fields of one meaning share a
 * member, whatever the message calls them; the comments tell the other names. Pure functions; any thread. */
#ifndef ASI_CODEC_REQUEST_H
#define ASI_CODEC_REQUEST_H

#include "codec/header.h"

enum
{
    ASI_CODEC_CLOSE_SESSION = 3,
    ASI_CODEC_START_RECORDING = 4,
    ASI_CODEC_STOP_RECORDING = 5,
    ASI_CODEC_REPLAY = 6,
    ASI_CODEC_STOP_REPLAY = 7,
    ASI_CODEC_LIST_RECORDINGS = 8,
    ASI_CODEC_LIST_RECORDINGS_FOR_URI = 9,
    ASI_CODEC_LIST_RECORDING = 10,
    ASI_CODEC_EXTEND_RECORDING = 11,
    ASI_CODEC_RECORDING_POSITION = 12,
    ASI_CODEC_TRUNCATE_RECORDING = 13,
    ASI_CODEC_STOP_RECORDING_SUBSCRIPTION = 14,
    ASI_CODEC_STOP_POSITION = 15,
    ASI_CODEC_FIND_LAST_MATCHING_RECORDING = 16,
    ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS = 17,
    ASI_CODEC_BOUNDED_REPLAY = 18,
    ASI_CODEC_STOP_ALL_REPLAYS = 19,
    ASI_CODEC_REPLICATE = 50,
    ASI_CODEC_STOP_REPLICATION = 51,
    ASI_CODEC_START_POSITION = 52,
    ASI_CODEC_DETACH_SEGMENTS = 53,
    ASI_CODEC_DELETE_DETACHED_SEGMENTS = 54,
    ASI_CODEC_PURGE_SEGMENTS = 55,
    ASI_CODEC_ATTACH_SEGMENTS = 56,
    ASI_CODEC_MIGRATE_SEGMENTS = 57,
    ASI_CODEC_AUTH_CONNECT = 58,
    ASI_CODEC_CHALLENGE_RESPONSE = 60,
    ASI_CODEC_KEEP_ALIVE = 61,
    ASI_CODEC_TAGGED_REPLICATE = 62,
    ASI_CODEC_START_RECORDING_2 = 63,
    ASI_CODEC_EXTEND_RECORDING_2 = 64,
    ASI_CODEC_STOP_RECORDING_BY_IDENTITY = 65,
    ASI_CODEC_REPLICATE_2 = 66,
    ASI_CODEC_MAX_RECORDED_POSITION = 67,
    ASI_CODEC_ARCHIVE_ID = 68,
    ASI_CODEC_PURGE_RECORDING = 104,
    ASI_CODEC_REPLAY_TOKEN = 105,
    ASI_CODEC_UPDATE_CHANNEL = 107
};

/* Members a message does not carry, or its sender's version does not know, are AS_NULL_VALUE, empty, or as noted. */
typedef struct asi_codec_request
{
    int32_t template_id;
    int32_t schema_version;    /* of the sender; not encoded */
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t recording_id;      /* also fromRecordingId, minRecordingId, srcRecordingId */
    int64_t dst_recording_id;
    int64_t position;          /* also newStartPosition */
    int64_t length;
    int64_t stop_position;
    int64_t subscription_id;
    int64_t replay_session_id;
    int64_t replay_token;
    int64_t replication_id;
    int64_t channel_tag_id;
    int64_t subscription_tag_id;
    int32_t stream_id;         /* also responseStreamId, replayStreamId, srcControlStreamId */
    int32_t session_id;
    int32_t source_location;   /* 0 local, 1 remote */
    int32_t auto_stop;         /* 0 false, 1 true; null 0 */
    int32_t client_version;    /* of the protocol, major << 16 | minor << 8 | patch; null 0 */
    int32_t record_count;      /* also subscriptionCount */
    int32_t pseudo_index;
    int32_t apply_stream_id;   /* 0 false, 1 true; null 0 */
    int32_t limit_counter_id;
    int32_t file_io_max_length;
    int32_t replication_session_id;
    asi_codec_var channel;     /* also responseChannel, replayChannel, srcControlChannel; a fragment in queries */
    asi_codec_var encoded_credentials;
    asi_codec_var client_info;
    asi_codec_var live_destination;
    asi_codec_var replication_channel;
    asi_codec_var src_response_channel;
} asi_codec_request;

/* Everything null. */
void asi_codec_request_init(asi_codec_request *request, int32_t template_id);
/* `ReplayRequest` etc. for texts; NULL for an unknown template id. */
const char *asi_codec_request_name(int32_t template_id);
/* AS_AGAIN: a template id that is no request, to be ignored (Spec: 07 §1). AS_E_DATA: another schema, or too short for what it
 * declares. The vars point into `bytes`. */
as_result asi_codec_request_decode_untrusted(const uint8_t *bytes, int64_t length, asi_codec_request *request) AS_MUST_USE;
/* AS_E_USAGE: template_id is no request, or the message is longer than capacity. */
as_result asi_codec_request_encode(
    const asi_codec_request *request, uint8_t *to, int64_t capacity, int64_t *length) AS_MUST_USE;

#endif
