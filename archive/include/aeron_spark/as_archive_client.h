/* Public API of the client of an archive, ours or a stock one. Spec: 07 (protocol), 08 (behaviour).
 *
 *   as_archive_client           control session with an archive, blocking calls
 *   as_archive_call             non-blocking requests
 *   as_replay_merge, as_persistent_subscription   replays that continue with the live stream
 * Thread rule: each object belongs to one thread at a time; different objects are independent. */
#ifndef AERON_SPARK_AS_ARCHIVE_CLIENT_H
#define AERON_SPARK_AS_ARCHIVE_CLIENT_H

#include "aeron_spark/as_client.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
/* CFFI-BEGIN */
/* -- recordings ------------------------------------------------------------------------------------------------------------ */

typedef struct as_recording
{
    int64_t recording_id;
    int64_t start_timestamp_ms;
    int64_t stop_timestamp_ms;  /* -1 while active */
    int64_t start_position;
    int64_t stop_position;      /* -1 while active */
    int32_t initial_term_id;
    int32_t segment_file_length;
    int32_t term_buffer_length;
    int32_t mtu_length;
    int32_t session_id;
    int32_t stream_id;
    const char *stripped_channel; /* borrowed; the function that fills the struct defines how long it is valid */
    const char *original_channel;
    const char *source_identity;
} as_recording;

/* -- client ---------------------------------------------------------------------------------------------------------------- */

typedef struct as_archive_client as_archive_client;

typedef enum as_source_location_e
{
    AS_SOURCE_LOCAL = 0,
    AS_SOURCE_REMOTE = 1
} as_source_location;

typedef enum as_recording_signal_e
{
    AS_SIGNAL_START = 0,
    AS_SIGNAL_STOP = 1,
    AS_SIGNAL_EXTEND = 2,
    AS_SIGNAL_REPLICATE = 3,
    AS_SIGNAL_MERGE = 4,
    AS_SIGNAL_SYNC = 5,
    AS_SIGNAL_DELETE = 6,
    AS_SIGNAL_REPLICATE_END = 7
} as_recording_signal;

typedef struct as_signal
{
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t recording_id;
    int64_t subscription_id;
    int64_t position;
    int32_t signal;
} as_signal;

typedef void (*as_on_recording_signal)(void *context, const as_signal *signal);
/* Called with each recording of a listing. Return false to skip the rest. The recording is valid during the call. */
typedef bool (*as_on_recording)(void *context, const as_recording *recording);
typedef bool (*as_on_recording_subscription)(
    void *context, int64_t subscription_id, int32_t stream_id, const char *stripped_channel);

/* Answers an archive's challenge: writes at most `capacity` bytes of credentials and returns their number; negative: none. */
typedef int64_t (*as_on_challenge)(
    void *context, const uint8_t *challenge, int64_t challenge_length, uint8_t *credentials, int64_t capacity);

/* Error codes of an archive; Spec: 07 §2. Codes that a later archive adds pass unchanged. */
typedef enum as_archive_error_e
{
    AS_ARCHIVE_ERROR_GENERIC = 0,
    AS_ARCHIVE_ERROR_ACTIVE_LISTING = 1,
    AS_ARCHIVE_ERROR_ACTIVE_RECORDING = 2,
    AS_ARCHIVE_ERROR_ACTIVE_SUBSCRIPTION = 3,
    AS_ARCHIVE_ERROR_UNKNOWN_SUBSCRIPTION = 4,
    AS_ARCHIVE_ERROR_UNKNOWN_RECORDING = 5,
    AS_ARCHIVE_ERROR_UNKNOWN_REPLAY = 6,
    AS_ARCHIVE_ERROR_MAX_REPLAYS = 7,
    AS_ARCHIVE_ERROR_MAX_RECORDINGS = 8,
    AS_ARCHIVE_ERROR_INVALID_EXTENSION = 9,
    AS_ARCHIVE_ERROR_AUTHENTICATION_REJECTED = 10,
    AS_ARCHIVE_ERROR_STORAGE_SPACE = 11,
    AS_ARCHIVE_ERROR_UNKNOWN_REPLICATION = 12,
    AS_ARCHIVE_ERROR_UNAUTHORISED_ACTION = 13,
    AS_ARCHIVE_ERROR_REPLICATION_CONNECTION_FAILURE = 14,
    AS_ARCHIVE_ERROR_EMPTY_RECORDING = 15,
    AS_ARCHIVE_ERROR_INVALID_POSITION = 16
} as_archive_error;

/* Called with an error response that no call waits for. Its request timed out earlier, or a recording or replay failed after its
 * start was confirmed. */
typedef void (*as_on_archive_error)(
    void *context, as_result result, int32_t code, int64_t correlation_id, const char *text);

typedef struct as_archive_client_options
{
    as_client *client;              /* borrowed and shared; NULL: the archive client opens its own, with aeron_dir */
    const char *aeron_dir;          /* NULL: default directory */
    const char *control_channel;    /* NULL: "aeron:ipc" */
    int32_t control_stream_id;      /* default 10 */
    const char *response_channel;   /* NULL: "aeron:ipc" */
    int32_t response_stream_id;     /* default 20 */
    int64_t message_timeout_ns;     /* default 10 s */
    const char *client_info;        /* NULL: none */
    int64_t control_term_length;    /* for both control channels unless the URI sets it; default 64 KiB */
    int64_t control_mtu_length;     /* likewise; default 1408 */
    bool control_term_sparse;       /* likewise; default true */
    const uint8_t *credentials;     /* for the archive's authenticator, sent when connecting; NULL: none */
    int64_t credentials_length;
    as_on_challenge on_challenge;   /* NULL: a challenge fails the connect */
    void *on_challenge_context;
    as_on_recording_signal on_signal; /* runs inside calls and as_archive_client_poll; must not call into this client */
    void *on_signal_context;
    as_on_archive_error on_error;   /* as on_signal; NULL: as_archive_client_poll returns the error */
    void *on_error_context;
    as_on_event invoker;            /* called while waiting, for a driver or an archive in the same thread; NULL: none */
    void *invoker_context;
} as_archive_client_options;

void as_archive_client_options_init(as_archive_client_options *options);
as_result as_archive_client_open(const as_archive_client_options *options, as_archive_client **client) AS_MUST_USE;
void as_archive_client_close(as_archive_client *client);
as_client *as_archive_client_aeron(as_archive_client *client); /* borrowed until close */
int64_t as_archive_client_control_session_id(const as_archive_client *client);
int64_t as_archive_client_archive_id(const as_archive_client *client); /* -1 if the archive sent none */
/* Handles pending signals and errors without a request. *handled is the number of messages. Fails if the control session is gone,
 * or if the archive sent an error for a request that timed out earlier and on_error is NULL. */
as_result as_archive_client_poll(as_archive_client *client, int32_t *handled) AS_MUST_USE;
/* Keeps the session alive while no other request is made. The archive ends a session whose client neither makes a request, nor polls,
 * nor calls this for some minutes: its pings, one a second by default, fill the response channel. Processes what a poll would. */
as_result as_archive_client_keepalive(as_archive_client *client) AS_MUST_USE;

/* Error responses of the archive give AS_E_PEER. as_error_code() is the archive's code (as_archive_error), as_error_text() its
 * text. */
as_result as_archive_client_start_recording(as_archive_client *client, const char *channel, int32_t stream_id,
    as_source_location location, bool auto_stop, int64_t *subscription_id) AS_MUST_USE;
as_result as_archive_client_extend_recording(as_archive_client *client, int64_t recording_id, const char *channel,
    int32_t stream_id, as_source_location location, bool auto_stop, int64_t *subscription_id) AS_MUST_USE;
as_result as_archive_client_stop_recording(as_archive_client *client, const char *channel, int32_t stream_id) AS_MUST_USE;
as_result as_archive_client_stop_recording_subscription(as_archive_client *client, int64_t subscription_id) AS_MUST_USE;
as_result as_archive_client_stop_recording_by_identity(as_archive_client *client, int64_t recording_id, bool *was_active)
    AS_MUST_USE;
/* Listings return at most `count` recordings. *listed is the number returned. */
as_result as_archive_client_list_recordings(as_archive_client *client, int64_t from_recording_id, int32_t count,
    as_on_recording on_recording, void *context, int32_t *listed) AS_MUST_USE;
as_result as_archive_client_list_recordings_for_uri(as_archive_client *client, int64_t from_recording_id, int32_t count,
    const char *channel_fragment, int32_t stream_id, as_on_recording on_recording, void *context, int32_t *listed) AS_MUST_USE;
as_result as_archive_client_list_recording(
    as_archive_client *client, int64_t recording_id, as_on_recording on_recording, void *context, int32_t *listed) AS_MUST_USE;
as_result as_archive_client_list_recording_subscriptions(as_archive_client *client, int32_t pseudo_index, int32_t count,
    const char *channel_fragment, int32_t stream_id, bool apply_stream_id, as_on_recording_subscription on_subscription,
    void *context, int32_t *listed) AS_MUST_USE;
as_result as_archive_client_find_last_matching(as_archive_client *client, int64_t min_recording_id,
    const char *channel_fragment, int32_t stream_id, int32_t session_id, int64_t *recording_id) AS_MUST_USE;
as_result as_archive_client_start_position(as_archive_client *client, int64_t recording_id, int64_t *position) AS_MUST_USE;
as_result as_archive_client_recording_position(as_archive_client *client, int64_t recording_id, int64_t *position) AS_MUST_USE;
as_result as_archive_client_stop_position(as_archive_client *client, int64_t recording_id, int64_t *position) AS_MUST_USE;
as_result as_archive_client_max_recorded_position(as_archive_client *client, int64_t recording_id, int64_t *position) AS_MUST_USE;

typedef struct as_replay_params
{
    int64_t position;                 /* AS_NULL_VALUE: the recording's start */
    int64_t length;                   /* AS_NULL_VALUE: follow the recording while it is live; -2: up to the current end */
    int32_t bounding_limit_counter_id;/* AS_NULL_VALUE: not bounded */
    int32_t file_io_max_length;       /* AS_NULL_VALUE: the archive's */
    int64_t subscription_registration_id; /* with control-mode=response: the subscription that receives the replay */
} as_replay_params;

void as_replay_params_init(as_replay_params *params);
as_result as_archive_client_start_replay(as_archive_client *client, int64_t recording_id, const char *replay_channel,
    int32_t replay_stream_id, const as_replay_params *params, int64_t *replay_session_id) AS_MUST_USE;
/* Starts a replay and subscribes to its session only. The image may not be available yet when this returns. With
 * control-mode=response in the channel, the archive replays to the subscription, which needs no session id; its image is
 * available when this returns. */
as_result as_archive_client_replay(as_archive_client *client, int64_t recording_id, const char *replay_channel,
    int32_t replay_stream_id, const as_replay_params *params, int64_t *replay_session_id, as_subscription **subscription)
    AS_MUST_USE;
as_result as_archive_client_stop_replay(as_archive_client *client, int64_t replay_session_id) AS_MUST_USE;
as_result as_archive_client_stop_all_replays(as_archive_client *client, int64_t recording_id) AS_MUST_USE;

/* Requests a replay token for a response channel. Spec: 07 §11. The replay calls above use tokens internally; this call is for
 * code that speaks the protocol itself. A token expires after the archive's connect timeout, and with this session. */
as_result as_archive_client_replay_token(as_archive_client *client, int64_t recording_id, int64_t *token) AS_MUST_USE;

typedef struct as_replication_params
{
    int64_t dst_recording_id;        /* AS_NULL_VALUE: a new recording; else an inactive recording to extend */
    int64_t stop_position;           /* AS_NULL_VALUE: the source's end, which moves while the source is active */
    int64_t channel_tag_id;          /* of the archive's subscription; AS_NULL_VALUE: none; also for the next field */
    int64_t subscription_tag_id;
    const char *live_destination;    /* live stream to join once the copy has caught up; NULL: none */
    const char *replication_channel; /* channel of the source's replay; NULL: the archive's aeron.archive.replication.channel */
    const char *src_response_channel;/* of the session with the source; NULL: the archive's own */
    const uint8_t *credentials;      /* for the source's authenticator; NULL: none */
    int64_t credentials_length;
    int32_t file_io_max_length;      /* of the source's replay; AS_NULL_VALUE: the source's */
    int32_t session_id;              /* of the replay, not with live_destination; AS_NULL_VALUE: the source recording's */
} as_replication_params;

void as_replication_params_init(as_replication_params *params);
/* Makes the archive copy a recording of another archive (Spec: 08 §10). Returns once the replication has started. Signals with
 * correlation_id == replication_id report its progress (REPLICATE, EXTEND, SYNC, MERGE, REPLICATE_END, STOP). A failure arrives
 * as an error that no call waits for (see as_on_archive_error). `params` NULL: the defaults. */
as_result as_archive_client_replicate(as_archive_client *client, int64_t src_recording_id, const char *src_control_channel,
    int32_t src_control_stream_id, const as_replication_params *params, int64_t *replication_id) AS_MUST_USE;
/* AS_E_PEER with error 12 if the replication has ended. */
as_result as_archive_client_stop_replication(as_archive_client *client, int64_t replication_id) AS_MUST_USE;
as_result as_archive_client_try_stop_replication(as_archive_client *client, int64_t replication_id, bool *was_active) AS_MUST_USE;

/* Maintenance (Spec: 08 §9). `count` (may be NULL) receives the number of segment files. The archive deletes files after the call
 * has returned and sends a DELETE signal with the recording's id when they are deleted. Each recording allows one such operation
 * at a time. */
/* Truncates a stopped recording to `position`: the start of a frame, or the recording's end or start. Ends its replays. */
as_result as_archive_client_truncate_recording(
    as_archive_client *client, int64_t recording_id, int64_t position, int64_t *count) AS_MUST_USE;
/* Deletes a stopped recording that has no replay. Its id is never used again. */
as_result as_archive_client_purge_recording(as_archive_client *client, int64_t recording_id, int64_t *count) AS_MUST_USE;
/* Moves the start of a stopped or active recording to the start of one of its segments. The files before it stay. Fails if a
 * replay reads the detached range. */
as_result as_archive_client_detach_segments(as_archive_client *client, int64_t recording_id, int64_t new_start_position)
    AS_MUST_USE;
/* Deletes the files before the recording's start. */
as_result as_archive_client_delete_detached_segments(as_archive_client *client, int64_t recording_id, int64_t *count) AS_MUST_USE;
/* Detach and delete in one. */
as_result as_archive_client_purge_segments(
    as_archive_client *client, int64_t recording_id, int64_t new_start_position, int64_t *count) AS_MUST_USE;
/* Extends a recording backwards by the segment files that precede its start without a gap: detached or copied files. */
as_result as_archive_client_attach_segments(as_archive_client *client, int64_t recording_id, int64_t *count) AS_MUST_USE;
/* Moves all segments of a stopped recording to the head or the tail of another recording. Both must meet at a segment boundary.
 * The source is empty afterwards. */
as_result as_archive_client_migrate_segments(
    as_archive_client *client, int64_t src_recording_id, int64_t dst_recording_id, int64_t *count) AS_MUST_USE;
/* Changes the channel in the descriptor of a stopped or active recording. */
as_result as_archive_client_update_channel(as_archive_client *client, int64_t recording_id, const char *channel) AS_MUST_USE;

/* -- positions ------------------------------------------------------------------------------------------------------------- */

/* Position arithmetic of recordings (Spec: 08 §17). Positions and lengths are in bytes, positions >= start_position >= 0, lengths
 * are powers of two. Pure functions; any thread. */
/* Position of the first byte of the segment file that holds `position`; the file is <recording id>-<that>.rec. */
int64_t as_segment_base_position(int64_t start_position, int64_t position, int32_t term_length, int32_t segment_length);
/* Number of segment files that hold [start_position, stop_position]. An empty file after a full one counts. */
int64_t as_segment_count(int64_t start_position, int64_t stop_position, int32_t term_length, int32_t segment_length);
/* First and last position, both included, to which the start of a recording can move: every segment_length from the first one.
 * If there is no such position, the last is below the first. */
int64_t as_segment_first_detachable(int64_t start_position, int32_t term_length, int32_t segment_length);
int64_t as_segment_last_detachable(
    int64_t start_position, int64_t recorded_position, int32_t term_length, int32_t segment_length);
/* Term id of the bytes at a position, with the 32-bit wrap. */
int32_t as_position_term_id(int64_t position, int32_t term_length, int32_t initial_term_id);
int32_t as_position_term_offset(int64_t position, int32_t term_length);
/* Position of a byte of a term: the inverse of the two functions above, up to the maximum position, which the term id after the
 * last one names. An id before the initial one gives a position beyond it. */
int64_t as_position_of(int32_t term_id, int32_t term_offset, int32_t term_length, int32_t initial_term_id);

/* -- client: non-blocking calls -------------------------------------------------------------------------------------------- */

/* A request in flight. Any number may be in flight. Responses are received by polls of any of them, by as_archive_client_poll,
 * and while a blocking call waits. */
typedef struct as_archive_call as_archive_call;

/* Template ids of the control protocol (Spec: 07 §3). */
typedef enum as_archive_operation_e
{
    AS_OP_STOP_RECORDING = 5,              /* channel, stream_id */
    AS_OP_REPLAY = 6,                      /* recording_id, position, length, channel, stream_id, file_io_max_length */
    AS_OP_STOP_REPLAY = 7,                 /* replay_session_id */
    AS_OP_LIST_RECORDINGS = 8,             /* recording_id, count, on_recording */
    AS_OP_LIST_RECORDINGS_FOR_URI = 9,     /* recording_id, count, channel, stream_id, on_recording */
    AS_OP_LIST_RECORDING = 10,             /* recording_id, on_recording */
    AS_OP_RECORDING_POSITION = 12,         /* recording_id */
    AS_OP_TRUNCATE_RECORDING = 13,         /* recording_id, position */
    AS_OP_STOP_RECORDING_SUBSCRIPTION = 14,/* subscription_id */
    AS_OP_STOP_POSITION = 15,              /* recording_id */
    AS_OP_FIND_LAST_MATCHING_RECORDING = 16, /* recording_id, channel, stream_id, session_id */
    AS_OP_LIST_RECORDING_SUBSCRIPTIONS = 17, /* pseudo_index, count, channel, stream_id, apply_stream_id, on_subscription */
    AS_OP_BOUNDED_REPLAY = 18,             /* as REPLAY, limit_counter_id */
    AS_OP_STOP_ALL_REPLAYS = 19,           /* recording_id */
    AS_OP_STOP_REPLICATION = 51,           /* replication_id */
    AS_OP_START_POSITION = 52,             /* recording_id */
    AS_OP_DETACH_SEGMENTS = 53,            /* recording_id, position */
    AS_OP_DELETE_DETACHED_SEGMENTS = 54,   /* recording_id */
    AS_OP_PURGE_SEGMENTS = 55,             /* recording_id, position */
    AS_OP_ATTACH_SEGMENTS = 56,            /* recording_id */
    AS_OP_MIGRATE_SEGMENTS = 57,           /* recording_id, dst_recording_id */
    AS_OP_START_RECORDING = 63,            /* channel, stream_id, source_location, auto_stop */
    AS_OP_EXTEND_RECORDING = 64,           /* as START_RECORDING, recording_id */
    AS_OP_STOP_RECORDING_BY_IDENTITY = 65, /* recording_id */
    AS_OP_MAX_RECORDED_POSITION = 67,      /* recording_id */
    AS_OP_ARCHIVE_ID = 68,
    AS_OP_PURGE_RECORDING = 104,           /* recording_id */
    AS_OP_REPLAY_TOKEN = 105,              /* recording_id */
    AS_OP_UPDATE_CHANNEL = 107             /* recording_id, channel */
} as_archive_operation;

typedef struct as_archive_request
{
    as_archive_operation operation;
    const char *channel;            /* or the fragment of a query; NULL: empty */
    int64_t recording_id;           /* of listings: the first */
    int64_t dst_recording_id;
    int64_t position;
    int64_t length;
    int64_t subscription_id;
    int64_t replay_session_id;
    int64_t replication_id;
    int32_t stream_id;
    int32_t session_id;
    int32_t count;                  /* of a listing */
    int32_t pseudo_index;
    int32_t limit_counter_id;
    int32_t file_io_max_length;
    as_source_location source_location;
    bool auto_stop;
    bool apply_stream_id;
    as_on_recording on_recording;   /* listings only; called inside polls */
    as_on_recording_subscription on_subscription;
    void *context;
} as_archive_request;

/* Sets every number to AS_NULL_VALUE, except stream_id, session_id and pseudo_index, which are 0. Every other field is 0. */
void as_archive_request_init(as_archive_request *request, as_archive_operation operation);
/* Sends a request without waiting. AS_AGAIN: the control stream is back-pressured, call again. Copies the request's texts. */
as_result as_archive_client_send(as_archive_client *client, const as_archive_request *request, as_archive_call **call)
    AS_MUST_USE;
/* Polls the client for responses. Returns AS_AGAIN until the response has arrived, then AS_OK with its number (for a listing: the
 * number of entries returned), AS_E_PEER with the archive's error, AS_E_TIMEOUT after the client's message timeout, or
 * AS_E_CLOSED if the session is gone. Later calls return the same. May be called after the client was closed. */
as_result as_archive_call_poll(as_archive_call *call, int64_t *value) AS_MUST_USE;
int64_t as_archive_call_correlation_id(const as_archive_call *call);
/* Closes the call, before or after its client. Inside the handler of what this very call lists it does nothing: let
 * that return false, and close the call after the poll. If the response is an error and arrives later, as_on_archive_error
 * reports it. */
void as_archive_call_close(as_archive_call *call);

/* -- client: states, errors, recorded publications --------------------------------------------------------------------------- */

typedef enum as_archive_client_state_e
{
    AS_ARCHIVE_CONNECTED = 0,
    AS_ARCHIVE_DISCONNECTED = 1, /* the archive has disconnected; the next call returns AS_E_CLOSED and closes the session */
    AS_ARCHIVE_CLOSED = 2
} as_archive_client_state;

as_archive_client_state as_archive_client_get_state(const as_archive_client *client);
/* Polls once. *text is NULL, or the error of an earlier request, or "not connected". It is valid until the next call. */
as_result as_archive_client_poll_for_error(as_archive_client *client, const char **text) AS_MUST_USE;
/* Polls once. *count is 1 if on_signal was called, else 0. AS_E_PEER as in as_archive_client_poll. */
as_result as_archive_client_poll_for_signals(as_archive_client *client, int32_t *count) AS_MUST_USE;
/* Adds a publication and starts a local recording of its session only. AS_E_USAGE: the client has such a publication already. If
 * the recording can't be started, the publication is closed. */
as_result as_archive_client_add_recorded_publication(
    as_archive_client *client, const char *channel, int32_t stream_id, as_publication **publication) AS_MUST_USE;
as_result as_archive_client_add_recorded_exclusive_publication(
    as_archive_client *client, const char *channel, int32_t stream_id, as_publication **publication) AS_MUST_USE;
/* Loads the stock client's environment variables: AERON_ARCHIVE_CONTROL_CHANNEL and _STREAM_ID,
 * AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL and _STREAM_ID, AERON_ARCHIVE_MESSAGE_TIMEOUT, AERON_ARCHIVE_CLIENT_NAME,
 * AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH, AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE, AERON_ARCHIVE_CONTROL_MTU_LENGTH (or
 * AERON_MTU_LENGTH), AERON_DIR. Texts point into the environment. AS_E_USAGE: a value is not valid; the text names the
 * variable. */
as_result as_archive_client_options_load_environment(as_archive_client_options *options) AS_MUST_USE;

/* -- recording positions and events ------------------------------------------------------------------------------------------ */

/* Finds the counter (type 100) of an active recording; AS_NULL_VALUE if there is none. `archive_id` AS_NULL_VALUE: any archive.
 * Spec: 08 §15. Any thread. */
int32_t as_recording_position_find(const as_client *client, int64_t recording_id, int64_t archive_id);
int32_t as_recording_position_find_by_session(const as_client *client, int32_t session_id, int64_t archive_id);
/* False once the recording has ended, also if the counter was reused for another recording. */
bool as_recording_position_is_active(const as_client *client, int32_t counter_id, int64_t recording_id);
/* AS_NULL_VALUE if the counter is not a recording's. */
int64_t as_recording_position_recording_id(const as_client *client, int32_t counter_id);
/* Copies the terminated source identity. AS_AGAIN: the counter is not a recording's. AS_E_USAGE: `capacity` is too small; 113 is
 * always enough. */
as_result as_recording_position_source_identity(
    const as_client *client, int32_t counter_id, char *source_identity, int64_t capacity) AS_MUST_USE;

typedef enum as_recording_event_kind_e
{
    AS_RECORDING_STARTED = 101,
    AS_RECORDING_PROGRESS = 102,
    AS_RECORDING_STOPPED = 103
} as_recording_event_kind;

typedef struct as_recording_event
{
    as_recording_event_kind kind;
    int32_t session_id;          /* STARTED only, as the next three fields */
    int32_t stream_id;
    const char *channel;         /* valid during the handler's call */
    const char *source_identity;
    int64_t recording_id;
    int64_t start_position;      /* start of this recording session */
    int64_t position;            /* STARTED: start_position */
} as_recording_event;

typedef void (*as_on_recording_event)(void *context, const as_recording_event *event);
/* Reader of an archive's recording events stream. `subscription` is borrowed; the caller must not poll it. */
typedef struct as_recording_events as_recording_events;
as_result as_recording_events_open(
    as_subscription *subscription, as_on_recording_event on_event, void *context, as_recording_events **events) AS_MUST_USE;
/* Returns the number of fragments consumed, or a negative as_result. AS_E_DATA: a malformed message; it is skipped. */
int64_t as_recording_events_poll(as_recording_events *events, int64_t limit) AS_MUST_USE;
void as_recording_events_close(as_recording_events *events);

/* -- replay merge ------------------------------------------------------------------------------------------------------------ */

/* Replays a recording into a subscription and then switches to its live stream, in one image that never repeats and never skips a
 * message. Spec: 08 §14. One thread; that thread may use the archive client for other calls meanwhile. */
typedef struct as_replay_merge as_replay_merge;

typedef enum as_replay_merge_state_e
{
    AS_MERGE_RESOLVE_REPLAY_PORT = 0,
    AS_MERGE_GET_RECORDING_POSITION = 1,
    AS_MERGE_REPLAY = 2,
    AS_MERGE_CATCHUP = 3,
    AS_MERGE_ATTEMPT_LIVE_JOIN = 4,
    AS_MERGE_MERGED = 5,
    AS_MERGE_FAILED = 6,
    AS_MERGE_CLOSED = 7
} as_replay_merge_state;

typedef struct as_replay_merge_options
{
    as_archive_client *archive;       /* borrowed until close */
    as_subscription *subscription;    /* borrowed until close; UDP with control-mode=manual and no destination yet */
    const char *replay_channel;       /* UDP; the endpoint of replay_destination, linger=0 and eos=false are added */
    const char *replay_destination;   /* "aeron:udp?endpoint=<host>:<port>"; port 0 selects a free port */
    const char *live_destination;
    int64_t recording_id;
    int64_t start_position;
    int64_t progress_timeout_ns;      /* the merge fails after this time without progress; default 5 s */
} as_replay_merge_options;

void as_replay_merge_options_init(as_replay_merge_options *options);
as_result as_replay_merge_open(const as_replay_merge_options *options, as_replay_merge **merge) AS_MUST_USE;
/* Does one step. *work_count is 0 if there was nothing to do. A failure is final (AS_MERGE_FAILED); each later call returns it
 * again: AS_E_TIMEOUT without progress, AS_E_CLOSED if archive or image are gone, AS_E_PEER with the archive's error. */
as_result as_replay_merge_do_work(as_replay_merge *merge, int32_t *work_count) AS_MUST_USE;
/* Calls do_work, then polls the image. Returns the number of fragments, or a negative as_result. Fragments need reassembly as
 * those of any image. */
int64_t as_replay_merge_poll(as_replay_merge *merge, as_fragment_handler handler, void *context, int64_t limit) AS_MUST_USE;
/* Calls do_work, then reads whole messages into columns. Waits up to timeout_ns for the first message. If a failure follows, the
 * rows read before it are kept. */
as_result as_replay_merge_poll_columns(as_replay_merge *merge, as_columns *columns, int64_t timeout_ns) AS_MUST_USE;
as_replay_merge_state as_replay_merge_get_state(const as_replay_merge *merge);
bool as_replay_merge_is_live_added(const as_replay_merge *merge);
as_image *as_replay_merge_image(as_replay_merge *merge); /* borrowed until close; NULL before CATCHUP has found it */
/* After MERGED, subscription and image stay open. Before, close stops the replay and removes its destination. */
void as_replay_merge_close(as_replay_merge *merge);

/* -- persistent subscription ------------------------------------------------------------------------------------------------- */

/* One gap-free ordered stream of whole messages: replayed from a recording, then live. If the live stream is lost, it replays
 * again. It has its own session with the archive and survives restarts of the archive. Spec: 08 §16. One thread. */
typedef struct as_persistent_subscription as_persistent_subscription;

/* Values of the counter with type 114. */
typedef enum as_persistent_state_e
{
    AS_PERSISTENT_AWAIT_ARCHIVE_CONNECTION = 0,
    AS_PERSISTENT_SEND_LIST_RECORDING_REQUEST = 1,
    AS_PERSISTENT_AWAIT_LIST_RECORDING_RESPONSE = 2,
    AS_PERSISTENT_SEND_REPLAY_REQUEST = 3,
    AS_PERSISTENT_AWAIT_REPLAY_RESPONSE = 4,
    AS_PERSISTENT_ADD_REPLAY_SUBSCRIPTION = 5,
    AS_PERSISTENT_AWAIT_REPLAY_SUBSCRIPTION = 6,
    AS_PERSISTENT_AWAIT_REPLAY_CHANNEL_ENDPOINT = 7,
    AS_PERSISTENT_ADD_REQUEST_PUBLICATION = 8,
    AS_PERSISTENT_AWAIT_REQUEST_PUBLICATION = 9,
    AS_PERSISTENT_SEND_REPLAY_TOKEN_REQUEST = 10,
    AS_PERSISTENT_AWAIT_REPLAY_TOKEN = 11,
    AS_PERSISTENT_REPLAY = 12,
    AS_PERSISTENT_ATTEMPT_SWITCH = 13,
    AS_PERSISTENT_ADD_LIVE_SUBSCRIPTION = 14,
    AS_PERSISTENT_AWAIT_LIVE = 15,
    AS_PERSISTENT_LIVE = 16,
    AS_PERSISTENT_FAILED = 17
} as_persistent_state;

typedef enum as_persistent_failure_e
{
    AS_PERSISTENT_NO_FAILURE = 0,
    AS_PERSISTENT_GENERIC = 1,
    AS_PERSISTENT_RECORDING_NOT_FOUND = 2,
    AS_PERSISTENT_INVALID_START_POSITION = 3,
    AS_PERSISTENT_STREAM_ID_MISMATCH = 4
} as_persistent_failure;

/* Special values of start_position. */
enum
{
    AS_PERSISTENT_FROM_START = -1,
    AS_PERSISTENT_FROM_LIVE = -2
};

/* Handlers run inside polls and must not call into the subscription. */
typedef struct as_persistent_listener
{
    as_on_event on_live_joined;
    as_on_event on_live_left;
    as_on_error on_error;     /* terminal if as_persistent_subscription_has_failed is true */
    void *context;
} as_persistent_listener;

typedef struct as_persistent_options
{
    as_archive_client_options archive;   /* `client` NULL: opens its own client, which the polls invoke; on_signal is not used */
    int64_t recording_id;                /* required */
    int64_t start_position;              /* a position or a special value above; default FROM_LIVE */
    const char *live_channel;            /* required, as the next three fields */
    const char *replay_channel;          /* a fixed endpoint, port 0, or control-mode=response; IPC too */
    int32_t live_stream_id;
    int32_t replay_stream_id;
    as_persistent_listener listener;
} as_persistent_options;

void as_persistent_options_init(as_persistent_options *options);
/* Needs a driver, but no archive yet: the polls wait for the archive. */
as_result as_persistent_subscription_open(
    const as_persistent_options *options, as_persistent_subscription **subscription) AS_MUST_USE;
/* Does one step, then calls `handler` with each whole message. Position and header are those of an assembled message; the session
 * id is always the recording's. ABORT leaves the message for the next poll. Returns the number of fragments consumed. After a
 * terminal failure each call returns its negative as_result and text. */
int64_t as_persistent_subscription_poll(
    as_persistent_subscription *subscription, as_controlled_handler handler, void *context, int64_t limit) AS_MUST_USE;
/* The same, into columns. Waits up to timeout_ns for the first message. AS_E_USAGE: the next message is larger than
 * byte_capacity. */
as_result as_persistent_subscription_poll_columns(
    as_persistent_subscription *subscription, as_columns *columns, int64_t timeout_ns) AS_MUST_USE;
as_persistent_state as_persistent_subscription_get_state(const as_persistent_subscription *subscription);
bool as_persistent_subscription_is_live(const as_persistent_subscription *subscription);
bool as_persistent_subscription_is_replaying(const as_persistent_subscription *subscription);
bool as_persistent_subscription_has_failed(const as_persistent_subscription *subscription);
as_persistent_failure as_persistent_subscription_failure(const as_persistent_subscription *subscription);
/* Start of the next message, or AS_PERSISTENT_FROM_START / _FROM_LIVE while it is unknown. */
int64_t as_persistent_subscription_position(const as_persistent_subscription *subscription);
void as_persistent_subscription_close(as_persistent_subscription *subscription);
/* CFFI-END */
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
