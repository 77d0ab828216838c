/* The Archive, seen by its clients: ours or a stock one. Spec: 07 (protocol), 08 (behaviour).
 *
 *   as_archive_client           control session with an archive, blocking calls
 *   as_archive_call             requests that do not wait
 *   as_replay_merge, as_persistent_subscription   replays that go on live
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
    const char *stripped_channel; /* borrowed: valid as the function that gave the struct says */
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
/* Return false to stop listening to the rest of a listing. The recording is valid during the call. */
typedef bool (*as_on_recording)(void *context, const as_recording *recording);
typedef bool (*as_on_recording_subscription)(
    void *context, int64_t subscription_id, int32_t stream_id, const char *stripped_channel);

/* Answers an archive's challenge: writes at most `capacity` bytes of credentials and returns how many; negative: none. */
typedef int64_t (*as_on_challenge)(
    void *context, const uint8_t *challenge, int64_t challenge_length, uint8_t *credentials, int64_t capacity);

/* Why an archive refuses a request; Spec: 07 §2. Numbers that a later archive may send pass unchanged. */
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

/* An error answer of the archive that no call waits for: a request that timed out before, or a recording or replay that failed
 * after its start was answered. */
typedef void (*as_on_archive_error)(
    void *context, as_result result, int32_t code, int64_t correlation_id, const char *text);

typedef struct as_archive_client_options
{
    as_client *client;              /* borrowed and shared; NULL: one of its own, from aeron_dir */
    const char *aeron_dir;          /* NULL: default directory */
    const char *control_channel;    /* NULL: "aeron:ipc" */
    int32_t control_stream_id;      /* default 10 */
    const char *response_channel;   /* NULL: "aeron:ipc" */
    int32_t response_stream_id;     /* default 20 */
    int64_t message_timeout_ns;     /* default 10 s */
    const char *client_info;        /* NULL: none */
    int64_t control_term_length;    /* of both control channels unless they say so themselves; default 64 KiB */
    int64_t control_mtu_length;     /* likewise; default 1408 */
    bool control_term_sparse;       /* likewise; default true */
    const uint8_t *credentials;     /* for the archive's authenticator, sent when connecting; NULL: none */
    int64_t credentials_length;
    as_on_challenge on_challenge;   /* NULL: a challenge fails the connect */
    void *on_challenge_context;
    as_on_recording_signal on_signal; /* called during calls and as_archive_client_poll; must not call into this client */
    void *on_signal_context;
    as_on_archive_error on_error;   /* as on_signal; NULL: as_archive_client_poll answers with the error */
    void *on_error_context;
    as_on_event invoker;            /* called while waiting, for a driver or an archive in the same thread; NULL: none */
    void *invoker_context;
} as_archive_client_options;

void as_archive_client_options_init(as_archive_client_options *options);
as_result as_archive_client_open(const as_archive_client_options *options, as_archive_client **client);
void as_archive_client_close(as_archive_client *client);
as_client *as_archive_client_aeron(as_archive_client *client); /* borrowed until close */
int64_t as_archive_client_control_session_id(const as_archive_client *client);
int64_t as_archive_client_archive_id(const as_archive_client *client); /* -1 if the archive told none */
/* Takes pending signals and errors without a request; returns how many messages were handled. Fails when the archive's
 * session is gone or it answered a forgotten request with an error. */
as_result as_archive_client_poll(as_archive_client *client, int32_t *handled);
/* Keeps the session alive while no other request is made. */
as_result as_archive_client_keepalive(as_archive_client *client);

/* Answers of the archive that are errors: AS_E_PEER, the archive's code (as_archive_error) in as_error_code(), its text in
 * as_error_text(). */
as_result as_archive_client_start_recording(as_archive_client *client, const char *channel, int32_t stream_id,
    as_source_location location, bool auto_stop, int64_t *subscription_id);
as_result as_archive_client_extend_recording(as_archive_client *client, int64_t recording_id, const char *channel,
    int32_t stream_id, as_source_location location, bool auto_stop, int64_t *subscription_id);
as_result as_archive_client_stop_recording(as_archive_client *client, const char *channel, int32_t stream_id);
as_result as_archive_client_stop_recording_subscription(as_archive_client *client, int64_t subscription_id);
as_result as_archive_client_stop_recording_by_identity(as_archive_client *client, int64_t recording_id, bool *was_active);
/* Listings give at most `count` recordings; *listed says how many were given. */
as_result as_archive_client_list_recordings(as_archive_client *client, int64_t from_recording_id, int32_t count,
    as_on_recording on_recording, void *context, int32_t *listed);
as_result as_archive_client_list_recordings_for_uri(as_archive_client *client, int64_t from_recording_id, int32_t count,
    const char *channel_fragment, int32_t stream_id, as_on_recording on_recording, void *context, int32_t *listed);
as_result as_archive_client_list_recording(
    as_archive_client *client, int64_t recording_id, as_on_recording on_recording, void *context, int32_t *listed);
as_result as_archive_client_list_recording_subscriptions(as_archive_client *client, int32_t pseudo_index, int32_t count,
    const char *channel_fragment, int32_t stream_id, bool apply_stream_id, as_on_recording_subscription on_subscription,
    void *context, int32_t *listed);
as_result as_archive_client_find_last_matching(as_archive_client *client, int64_t min_recording_id,
    const char *channel_fragment, int32_t stream_id, int32_t session_id, int64_t *recording_id);
as_result as_archive_client_start_position(as_archive_client *client, int64_t recording_id, int64_t *position);
as_result as_archive_client_recording_position(as_archive_client *client, int64_t recording_id, int64_t *position);
as_result as_archive_client_stop_position(as_archive_client *client, int64_t recording_id, int64_t *position);
as_result as_archive_client_max_recorded_position(as_archive_client *client, int64_t recording_id, int64_t *position);

typedef struct as_replay_params
{
    int64_t position;                 /* AS_NULL_VALUE: the recording's start */
    int64_t length;                   /* AS_NULL_VALUE: follow to the end, live included; -2: up to the current end */
    int32_t bounding_limit_counter_id;/* AS_NULL_VALUE: not bounded */
    int32_t file_io_max_length;       /* AS_NULL_VALUE: the archive's */
    int64_t subscription_registration_id; /* where the channel's control-mode is response: whom the replay answers to */
} as_replay_params;

void as_replay_params_init(as_replay_params *params);
as_result as_archive_client_start_replay(as_archive_client *client, int64_t recording_id, const char *replay_channel,
    int32_t replay_stream_id, const as_replay_params *params, int64_t *replay_session_id);
/* Starts a replay and subscribes to exactly its session; the image may still be on its way. With control-mode=response in the
 * channel the replay answers to the subscription, which needs no session id: its image is there when this returns. */
as_result as_archive_client_replay(as_archive_client *client, int64_t recording_id, const char *replay_channel,
    int32_t replay_stream_id, const as_replay_params *params, int64_t *replay_session_id, as_subscription **subscription);
as_result as_archive_client_stop_replay(as_archive_client *client, int64_t replay_session_id);
as_result as_archive_client_stop_all_replays(as_archive_client *client, int64_t recording_id);

/* Replay tokens and response channels: Spec: 07 §11. The calls above show a token by themselves; it is for whoever speaks
 * the protocol otherwise, lasts for the archive's connect timeout, and ends with this session. */
as_result as_archive_client_replay_token(as_archive_client *client, int64_t recording_id, int64_t *token);

typedef struct as_replication_params
{
    int64_t dst_recording_id;        /* AS_NULL_VALUE: a new one; else an inactive recording, which is extended */
    int64_t stop_position;           /* AS_NULL_VALUE: to the source's end, which is followed while it is active */
    int64_t channel_tag_id;          /* of the archive's subscription; AS_NULL_VALUE: none, as the next */
    int64_t subscription_tag_id;
    const char *live_destination;    /* joins the live stream there once the copy has caught up; NULL: none */
    const char *replication_channel; /* where the source replays to; NULL: the archive's aeron.archive.replication.channel */
    const char *src_response_channel;/* of the session with the source; NULL: the archive's own */
    const uint8_t *credentials;      /* for the source's authenticator; NULL: none */
    int64_t credentials_length;
    int32_t file_io_max_length;      /* of the source's replay; AS_NULL_VALUE: the source's */
    int32_t session_id;              /* of the replay, not with a live destination; AS_NULL_VALUE: the source recording's */
} as_replication_params;

void as_replication_params_init(as_replication_params *params);
/* Lets the archive copy a recording of another archive (Spec: 08 §10). Returns once it has begun: how it goes on is told by
 * signals with correlation_id == replication_id (REPLICATE, EXTEND, SYNC, MERGE, REPLICATE_END, STOP) and, as a forgotten error of
 * as_archive_client_poll, why it failed. `params` NULL: the defaults. */
as_result as_archive_client_replicate(as_archive_client *client, int64_t src_recording_id, const char *src_control_channel,
    int32_t src_control_stream_id, const as_replication_params *params, int64_t *replication_id);
/* AS_E_PEER with error 12 for a replication that has ended. */
as_result as_archive_client_stop_replication(as_archive_client *client, int64_t replication_id);
as_result as_archive_client_try_stop_replication(as_archive_client *client, int64_t replication_id, bool *was_active);

/* Maintenance (Spec: 08 §9). `count` (NULL: not wanted) gets the number of segment files; those that go, go after the call has
 * returned, and a DELETE signal with the recording's id tells when they are gone. One such operation per recording at a time. */
/* Makes a stopped recording end at `position`, where a frame begins or the recording ends or starts; its replays are ended. */
as_result as_archive_client_truncate_recording(
    as_archive_client *client, int64_t recording_id, int64_t position, int64_t *count);
/* Deletes a stopped recording that nobody replays; its id is never used again. */
as_result as_archive_client_purge_recording(as_archive_client *client, int64_t recording_id, int64_t *count);
/* Makes a recording, stopped or active, start where one of its segments does; the files before stay. No replay may be there. */
as_result as_archive_client_detach_segments(as_archive_client *client, int64_t recording_id, int64_t new_start_position);
/* Deletes the files before the recording's start. */
as_result as_archive_client_delete_detached_segments(as_archive_client *client, int64_t recording_id, int64_t *count);
/* Detach and delete in one. */
as_result as_archive_client_purge_segments(
    as_archive_client *client, int64_t recording_id, int64_t new_start_position, int64_t *count);
/* Makes a recording start with the files that lie without a gap before its start, as after a detach or copied there. */
as_result as_archive_client_attach_segments(as_archive_client *client, int64_t recording_id, int64_t *count);
/* Moves all of a stopped recording to the head or the tail of one that it meets at a segment boundary; it is empty then. */
as_result as_archive_client_migrate_segments(
    as_archive_client *client, int64_t src_recording_id, int64_t dst_recording_id, int64_t *count);
/* Changes the channel that a recording is listed with, stopped or active. */
as_result as_archive_client_update_channel(as_archive_client *client, int64_t recording_id, const char *channel);

/* -- positions ------------------------------------------------------------------------------------------------------------- */

/* Arithmetic of recordings (Spec: 08 §17): positions and lengths in bytes, positions >= start_position >= 0, lengths powers
 * of two. Pure; any thread. */
/* Position of the first byte of the segment file that holds `position`; the file is <recording id>-<that>.rec. */
int64_t as_segment_base_position(int64_t start_position, int64_t position, int32_t term_length, int32_t segment_length);
/* How many segment files hold [start_position, stop_position]; an empty one behind a full one counts. */
int64_t as_segment_count(int64_t start_position, int64_t stop_position, int32_t term_length, int32_t segment_length);
/* Bounds, both included, of where a recording can be made to start: multiples of segment_length from the first one. No such
 * position: the last is below the first. */
int64_t as_segment_first_detachable(int64_t start_position, int32_t term_length, int32_t segment_length);
int64_t as_segment_last_detachable(
    int64_t start_position, int64_t recorded_position, int32_t term_length, int32_t segment_length);
/* Term id of the bytes at a position, with the 32-bit wrap. */
int32_t as_position_term_id(int64_t position, int32_t term_length, int32_t initial_term_id);
int32_t as_position_term_offset(int64_t position, int32_t term_length);
/* Position of a term's byte: the inverse of the two above. */
int64_t as_position_of(int32_t term_id, int32_t term_offset, int32_t term_length, int32_t initial_term_id);

/* -- client: calls that do not wait ---------------------------------------------------------------------------------------- */

/* A request under way. As many at a time as wanted; answers are taken by polls of any of them, by as_archive_client_poll, and
 * while a blocking call waits. */
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
    as_on_recording on_recording;   /* listings only; called inside of polls */
    as_on_recording_subscription on_subscription;
    void *context;
} as_archive_request;

/* Every number AS_NULL_VALUE, but stream_id, session_id and pseudo_index 0; everything else 0. */
void as_archive_request_init(as_archive_request *request, as_archive_operation operation);
/* Sends a request and does not wait. AS_AGAIN: no room in the control stream, call again. Texts of the request are copied. */
as_result as_archive_client_send(as_archive_client *client, const as_archive_request *request, as_archive_call **call);
/* Takes what the archive sent; AS_AGAIN until the answer is there, then AS_OK with its number (of a listing: how many entries
 * were given), AS_E_PEER with the archive's error, AS_E_TIMEOUT after the client's message timeout, AS_E_CLOSED when the session
 * is gone; the same again when asked again. May be called after the client was closed. */
as_result as_archive_call_poll(as_archive_call *call, int64_t *value);
int64_t as_archive_call_correlation_id(const as_archive_call *call);
/* Of an unanswered call: an error that comes later is one that nobody waited for. Before or after its client. */
void as_archive_call_close(as_archive_call *call);

/* -- client: states, errors, recorded publications --------------------------------------------------------------------------- */

typedef enum as_archive_client_state_e
{
    AS_ARCHIVE_CONNECTED = 0,
    AS_ARCHIVE_DISCONNECTED = 1, /* the archive's end is gone; the next call answers AS_E_CLOSED and closes the session */
    AS_ARCHIVE_CLOSED = 2
} as_archive_client_state;

as_archive_client_state as_archive_client_get_state(const as_archive_client *client);
/* Polls once. *text: NULL, or the error that an earlier request ended with, or "not connected"; valid until the next call. */
as_result as_archive_client_poll_for_error(as_archive_client *client, const char **text);
/* Polls once; *count: 1 if a signal was handed to on_signal, else 0. AS_E_PEER as as_archive_client_poll. */
as_result as_archive_client_poll_for_signals(as_archive_client *client, int32_t *count);
/* Adds a publication and starts a local recording of exactly its session. AS_E_USAGE: the client has such a publication. The
 * publication is closed again when the recording can't be started. */
as_result as_archive_client_add_recorded_publication(
    as_archive_client *client, const char *channel, int32_t stream_id, as_publication **publication);
as_result as_archive_client_add_recorded_exclusive_publication(
    as_archive_client *client, const char *channel, int32_t stream_id, as_publication **publication);
/* What the stock client's environment says: AERON_ARCHIVE_CONTROL_CHANNEL and _STREAM_ID, AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL
 * and _STREAM_ID, AERON_ARCHIVE_MESSAGE_TIMEOUT, AERON_ARCHIVE_CLIENT_NAME, AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH,
 * AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE, AERON_ARCHIVE_CONTROL_MTU_LENGTH (or AERON_MTU_LENGTH), AERON_DIR. Texts point into
 * the environment. AS_E_USAGE: a value can't be, by name. */
as_result as_archive_client_options_load_environment(as_archive_client_options *options);

/* -- recording positions and events ------------------------------------------------------------------------------------------ */

/* The counter (type 100) of an active recording; AS_NULL_VALUE when there is none. `archive_id` AS_NULL_VALUE: of any archive.
 * Spec: 08 §15. Any thread. */
int32_t as_recording_position_find(const as_client *client, int64_t recording_id, int64_t archive_id);
int32_t as_recording_position_find_by_session(const as_client *client, int32_t session_id, int64_t archive_id);
/* False once the recording has ended, also when the counter serves another one. */
bool as_recording_position_is_active(const as_client *client, int32_t counter_id, int64_t recording_id);
/* AS_NULL_VALUE when it is no counter of a recording. */
int64_t as_recording_position_recording_id(const as_client *client, int32_t counter_id);
/* Copies the terminated source identity; AS_AGAIN when it is no counter of a recording; AS_E_USAGE: `capacity` is too small, 113
 * suffices. */
as_result as_recording_position_source_identity(
    const as_client *client, int32_t counter_id, char *source_identity, int64_t capacity);

typedef enum as_recording_event_kind_e
{
    AS_RECORDING_STARTED = 101,
    AS_RECORDING_PROGRESS = 102,
    AS_RECORDING_STOPPED = 103
} as_recording_event_kind;

typedef struct as_recording_event
{
    as_recording_event_kind kind;
    int32_t session_id;          /* these four of STARTED only */
    int32_t stream_id;
    const char *channel;         /* valid during the handler's call */
    const char *source_identity;
    int64_t recording_id;
    int64_t start_position;      /* where this session of recording began */
    int64_t position;            /* STARTED: start_position */
} as_recording_event;

typedef void (*as_on_recording_event)(void *context, const as_recording_event *event);
/* Reader of an archive's recording events stream; `subscription` is borrowed and polled by nobody else. */
typedef struct as_recording_events as_recording_events;
as_result as_recording_events_open(
    as_subscription *subscription, as_on_recording_event on_event, void *context, as_recording_events **events);
/* Fragments taken, or a negative as_result: AS_E_DATA for a message that can't be read, it is passed over. */
int64_t as_recording_events_poll(as_recording_events *events, int64_t limit);
void as_recording_events_close(as_recording_events *events);

/* -- replay merge ------------------------------------------------------------------------------------------------------------ */

/* Replays a recording into a subscription and hands over to its live stream: one image that never repeats and never skips a
 * message. Spec: 08 §14. One thread; the archive client may serve other calls of that thread meanwhile. */
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
    const char *replay_channel;       /* UDP; the endpoint is the replay destination's, linger=0 and eos=false are put in */
    const char *replay_destination;   /* "aeron:udp?endpoint=<host>:<port>"; port 0 takes a free one */
    const char *live_destination;
    int64_t recording_id;
    int64_t start_position;
    int64_t progress_timeout_ns;      /* default 5 s without progress fail the merge */
} as_replay_merge_options;

void as_replay_merge_options_init(as_replay_merge_options *options);
as_result as_replay_merge_open(const as_replay_merge_options *options, as_replay_merge **merge);
/* One step; *work_count 0 when there was nothing to do. A failure is final (AS_MERGE_FAILED) and is answered again at each call:
 * AS_E_TIMEOUT without progress, AS_E_CLOSED when archive or image are gone, AS_E_PEER with the archive's error. */
as_result as_replay_merge_do_work(as_replay_merge *merge, int32_t *work_count);
/* do_work, then polls the image. Fragments (reassemble them as those of any image), or a negative as_result. */
int64_t as_replay_merge_poll(as_replay_merge *merge, as_fragment_handler handler, void *context, int64_t limit);
/* do_work, then whole messages as columns; waits up to timeout_ns for a first one. Rows are kept when a failure follows them. */
as_result as_replay_merge_poll_columns(as_replay_merge *merge, as_columns *columns, int64_t timeout_ns);
as_replay_merge_state as_replay_merge_get_state(const as_replay_merge *merge);
bool as_replay_merge_is_live_added(const as_replay_merge *merge);
as_image *as_replay_merge_image(as_replay_merge *merge); /* borrowed until close; NULL before CATCHUP found it */
/* Merged: subscription and image go on alone. Otherwise the replay is stopped and its destination removed. */
void as_replay_merge_close(as_replay_merge *merge);

/* -- persistent subscription ------------------------------------------------------------------------------------------------- */

/* One gap-free ordered stream of whole messages: replayed from a recording, then live; when live is lost, replayed again. It keeps
 * its own session with the archive and survives the archive's restarts. Spec: 08 §16. One thread. */
typedef struct as_persistent_subscription as_persistent_subscription;

/* Values of the counter of type 114. */
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

/* Start positions that are no positions. */
enum
{
    AS_PERSISTENT_FROM_START = -1,
    AS_PERSISTENT_FROM_LIVE = -2
};

/* Handlers run inside of polls and must not call into the subscription. */
typedef struct as_persistent_listener
{
    as_on_event on_live_joined;
    as_on_event on_live_left;
    as_on_error on_error;     /* terminal or not: as_persistent_subscription_has_failed tells */
    void *context;
} as_persistent_listener;

typedef struct as_persistent_options
{
    as_archive_client_options archive;   /* `client` NULL: a client of its own, invoked by the polls; on_signal is not used */
    int64_t recording_id;                /* required */
    int64_t start_position;              /* a position, or one of the two above; default FROM_LIVE */
    const char *live_channel;            /* these four are required */
    const char *replay_channel;          /* a fixed endpoint, port 0, or control-mode=response; IPC too */
    int32_t live_stream_id;
    int32_t replay_stream_id;
    as_persistent_listener listener;
} as_persistent_options;

void as_persistent_options_init(as_persistent_options *options);
/* Needs a driver but no archive: that is waited for by the polls. */
as_result as_persistent_subscription_open(
    const as_persistent_options *options, as_persistent_subscription **subscription);
/* One step, then messages: calls `handler` with each whole message (position and header as of an assembled message; the session id
 * is the recording's throughout). ABORT leaves the message for the next poll. Returns fragments taken; after a terminal failure
 * its negative as_result and text, each time. */
int64_t as_persistent_subscription_poll(
    as_persistent_subscription *subscription, as_controlled_handler handler, void *context, int64_t limit);
/* The same into columns; waits up to timeout_ns for a first message. AS_E_USAGE: the next message is larger than byte_capacity. */
as_result as_persistent_subscription_poll_columns(
    as_persistent_subscription *subscription, as_columns *columns, int64_t timeout_ns);
as_persistent_state as_persistent_subscription_get_state(const as_persistent_subscription *subscription);
bool as_persistent_subscription_is_live(const as_persistent_subscription *subscription);
bool as_persistent_subscription_is_replaying(const as_persistent_subscription *subscription);
bool as_persistent_subscription_has_failed(const as_persistent_subscription *subscription);
as_persistent_failure as_persistent_subscription_failure(const as_persistent_subscription *subscription);
/* Where the next message begins, or AS_PERSISTENT_FROM_START / _FROM_LIVE before that is known. */
int64_t as_persistent_subscription_position(const as_persistent_subscription *subscription);
void as_persistent_subscription_close(as_persistent_subscription *subscription);
/* CFFI-END */
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
