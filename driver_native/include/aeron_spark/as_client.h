/* Client of an Aeron media driver (ours or a stock one): publications, subscriptions, images, counters, and batch calls that
 * move whole Arrow-style columns. Spec: 01 §2.3-2.4, 02 §5-6, §10, 03 §2-3, §15.
 *
 * Thread rule: an as_client runs a conductor on its own thread, or the application invokes it, never both. Any thread may
 * call the client and its shared publications. An exclusive publication has one publishing thread. An image or a subscription
 * has one polling thread. Handlers run one at a time, on the conductor's thread or on the thread of a blocking call, because
 * a blocking call drives the conductor while it waits. A handler may not call into the client (AS_E_USAGE). Calls that only
 * read an image or a subscription, retain and release are allowed in handlers and on any thread.
 * Forks: a child of fork() has no conductor and no right to the parent's streams. In the child, calls into the client fail
 * (AS_E_USAGE) and closing does nothing; do not offer, poll or release. Open a client after the fork.
 * Ownership: no object keeps a reference to the caller's strings or buffers. Close publications, subscriptions and counters
 * before their client. as_client_close closes what is still open and invalidates the pointers. *_close(NULL) does nothing. */
#ifndef AERON_SPARK_AS_CLIENT_H
#define AERON_SPARK_AS_CLIENT_H

#include "aeron_spark/as_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
/* CFFI-BEGIN */
typedef struct as_client as_client;
typedef struct as_publication as_publication;
typedef struct as_subscription as_subscription;
typedef struct as_image as_image;
typedef struct as_counter as_counter;

/* Reports a failure that the conductor detects outside any call. A fatal failure (driver gone, client timed out, or its
 * conductor did not run within the driver's client liveness timeout) closes the client and all its resources: later calls
 * return AS_E_CLOSED with the reason, and offers return AS_PUBLICATION_CLOSED. The codes are those of the stock C client:
 * 1000 driver, 1001 client, 1002 service timeout. */
typedef void (*as_on_error)(void *context, as_result result, int32_t code, const char *text);
typedef void (*as_on_image)(void *context, as_subscription *subscription, as_image *image);
typedef void (*as_on_counter)(void *context, int64_t registration_id, int32_t counter_id);
typedef void (*as_on_event)(void *context);
/* Reports an error frame or a rejection that a publication received (PUBLICATION_ERROR). */
typedef void (*as_on_publication_error)(
    void *context, int64_t registration_id, int32_t session_id, int32_t stream_id, int32_t code, const char *text);

typedef struct as_client_options
{
    const char *aeron_dir;            /* NULL: AERON_DIR, else /dev/shm/aeron-<user> */
    const char *dir_owner;            /* user, by name or number, whose driver is trusted besides one's own and root's;
                                         NULL: AERON_SPARK_DIR_OWNER, else none */
    const char *dir_writers;          /* who may have write permission for directory and cnc.dat: owner, group, all;
                                         NULL: AERON_SPARK_DIR_WRITERS, else group */
    const char *client_name;          /* NULL: none; part of the heartbeat counter's label */
    int64_t driver_timeout_ns;        /* connect, answer to a command and driver heartbeat age (2 s or more); default 10 s */
    int64_t keepalive_interval_ns;    /* default 500 ms */
    int64_t idle_sleep_ns;            /* of the conductor thread; default 16 ms */
    int64_t resource_linger_ns;       /* log buffers stay mapped this long after their last use; default 3 s */
    bool use_invoker;                 /* no thread: the application calls as_client_invoke */
    bool pre_touch;                   /* pre-fault log buffers when they are mapped: a hint, from Linux 5.14 on */
    as_on_event driver_invoker;       /* called while waiting in invoker mode, for a driver in the same thread; may be NULL */
    void *driver_invoker_context;
    as_on_error on_error;
    as_on_image on_available_image;   /* default for subscriptions without handlers of their own */
    as_on_image on_unavailable_image;
    as_on_counter on_available_counter;
    as_on_counter on_unavailable_counter;
    as_on_publication_error on_publication_error;
    as_on_event on_close;             /* called once: after a fatal failure or from as_client_close */
    void *context;                    /* passed to every handler above except driver_invoker */
} as_client_options;

void as_client_options_init(as_client_options *options);
/* Loads AERON_DRIVER_TIMEOUT (ms) and AERON_CLIENT_NAME, _RESOURCE_LINGER_DURATION, _IDLE_SLEEP_DURATION,
 * _PRE_TOUCH_MAPPED_MEMORY where they are set. The client name stays in the environment's memory. AERON_DIR needs no loading.
 * The text of AS_E_USAGE names the variable. Spec: 05 §12. */
as_result as_client_options_load_environment(as_client_options *options) AS_MUST_USE;

/* Blocks until the directory has a live driver or driver_timeout_ns has passed. AS_E_TIMEOUT: the text names what is missing
 * (no directory, file not ready, no heartbeat). AS_E_DATA: the CnC file has another version. AS_E_USAGE: the directory
 * belongs to a user that is not trusted, or is a link. */
as_result as_client_open(const as_client_options *options, as_client **client) AS_MUST_USE;
void as_client_close(as_client *client);
/* Runs one duty cycle in invoker mode; returns its work count. */
int as_client_invoke(as_client *client);
int64_t as_client_id(const as_client *client);
bool as_client_is_closed(const as_client *client);
const char *as_client_aeron_dir(const as_client *client);
int64_t as_client_next_correlation_id(as_client *client);
/* Requests a session id from the driver (control protocol 1.0.0), or generates one if the driver does not support the
   command. Blocks up to driver_timeout_ns. */
as_result as_client_next_session_id(as_client *client, int32_t stream_id, int32_t *session_id) AS_MUST_USE;

/* Adding resources. The blocking form waits up to driver_timeout_ns (AS_E_TIMEOUT, AS_E_PEER with the driver's text), and so
 * long it asks again where the driver is still closing a socket of the channel; a poll returns that as AS_E_PEER, code 10. The
 * asynchronous form returns at once with a correlation id to poll. A poll returns AS_AGAIN until the answer has arrived.
 * After AS_OK or a failure the id is no longer valid. */
as_result as_client_add_publication(as_client *client, const char *channel, int32_t stream_id, as_publication **publication)
    AS_MUST_USE;
as_result as_client_add_exclusive_publication(
    as_client *client, const char *channel, int32_t stream_id, as_publication **publication) AS_MUST_USE;
as_result as_client_add_subscription(as_client *client, const char *channel, int32_t stream_id, as_subscription **subscription)
    AS_MUST_USE;
/* Uses the given handlers (either may be NULL) instead of the client's. */
as_result as_client_add_subscription_with(as_client *client, const char *channel, int32_t stream_id,
    as_on_image on_available, as_on_image on_unavailable, void *context, as_subscription **subscription) AS_MUST_USE;
/* The key has at most 112 bytes, the label at most 380. */
as_result as_client_add_counter(as_client *client, int32_t type_id, const uint8_t *key, int64_t key_length, const char *label,
    as_counter **counter) AS_MUST_USE;
as_result as_client_add_static_counter(as_client *client, int32_t type_id, int64_t registration_id, const uint8_t *key,
    int64_t key_length, const char *label, as_counter **counter) AS_MUST_USE;

as_result as_client_async_add_publication(as_client *client, const char *channel, int32_t stream_id, int64_t *correlation_id)
    AS_MUST_USE;
as_result as_client_async_add_exclusive_publication(
    as_client *client, const char *channel, int32_t stream_id, int64_t *correlation_id) AS_MUST_USE;
as_result as_client_async_add_subscription(as_client *client, const char *channel, int32_t stream_id,
    as_on_image on_available, as_on_image on_unavailable, void *context, int64_t *correlation_id) AS_MUST_USE;
as_result as_client_async_add_counter(as_client *client, int32_t type_id, const uint8_t *key, int64_t key_length,
    const char *label, int64_t *correlation_id) AS_MUST_USE;
as_result as_client_poll_publication(as_client *client, int64_t correlation_id, as_publication **publication) AS_MUST_USE;
as_result as_client_poll_subscription(as_client *client, int64_t correlation_id, as_subscription **subscription) AS_MUST_USE;
as_result as_client_poll_counter(as_client *client, int64_t correlation_id, as_counter **counter) AS_MUST_USE;
as_result as_client_async_next_session_id(as_client *client, int32_t stream_id, int64_t *correlation_id) AS_MUST_USE;
as_result as_client_poll_session_id(as_client *client, int64_t correlation_id, int32_t *session_id) AS_MUST_USE;
/* Abandons an asynchronous request. The resource that it has created or will create is closed. */
void as_client_forget(as_client *client, int64_t correlation_id);
/* Outcome of a destination that was added or removed asynchronously. */
as_result as_client_poll_destination(as_client *client, int64_t correlation_id) AS_MUST_USE;

/* -- publications ------------------------------------------------------------------------------------------------------ */

typedef struct as_publication_constants
{
    const char *channel;      /* valid while the publication is open */
    int64_t registration_id;  /* of this handle */
    int64_t original_registration_id; /* of the first handle of a shared publication */
    int64_t max_possible_position;
    int32_t stream_id;
    int32_t session_id;
    int32_t initial_term_id;
    int32_t term_length;
    int32_t mtu_length;
    int32_t max_payload_length;
    int32_t max_message_length;
    int32_t limit_counter_id;
    int32_t channel_status_counter_id; /* -1 for IPC */
    bool is_exclusive;
} as_publication_constants;

typedef struct as_iovec
{
    const uint8_t *data;
    int64_t length;
} as_iovec;

/* Returns the value for a frame's reserved field, given the frame that is about to be committed. */
typedef int64_t (*as_reserved_value_supplier)(void *context, uint8_t *frame, int64_t frame_length);

typedef struct as_buffer_claim
{
    uint8_t *frame; /* header of the claimed frame */
    uint8_t *data;  /* length bytes of payload to fill */
    int64_t length;
} as_buffer_claim;

void as_publication_get_constants(const as_publication *publication, as_publication_constants *constants);
/* Tries once: returns the new stream position, or one of AS_NOT_CONNECTED .. AS_PUBLICATION_ERROR (the last with
   as_error_text()). */
int64_t as_publication_offer(as_publication *publication, const uint8_t *data, int64_t length) AS_MUST_USE;
int64_t as_publication_offerv(as_publication *publication, const as_iovec *parts, int64_t part_count,
    as_reserved_value_supplier supplier, void *supplier_context) AS_MUST_USE;
/* Claims at most max_payload_length bytes. Finish with commit or abort before the driver's publication unblock timeout. */
int64_t as_publication_try_claim(as_publication *publication, int64_t length, as_buffer_claim *claim) AS_MUST_USE;
void as_buffer_claim_commit(as_buffer_claim *claim);
void as_buffer_claim_abort(as_buffer_claim *claim);
/* For exclusive publications only. The first appends a padding frame of `length` payload bytes, at most a term with its
 * header. The second appends a block of whole framed bytes at the current position. */
int64_t as_publication_append_padding(as_publication *publication, int64_t length) AS_MUST_USE;
int64_t as_publication_offer_block(as_publication *publication, const uint8_t *frames, int64_t length) AS_MUST_USE;
/* As as_publication_offer_block, but in two steps, for a caller that can write the frames in place. Claiming returns a region
 * of at most `length` bytes, less at the end of a term; the result is its length, or a status as from offer. The region is
 * all zero. The caller may write bytes 8 and up. The first 8 bytes are passed to the commit, and readers see nothing before
 * it. Do not offer anything else in between. The commit takes `length` bytes of whole frames. Bytes that were written behind
 * them must be zero again; if nothing is committed, all of the region must be. */
int64_t as_publication_claim_block(as_publication *publication, int64_t length, uint8_t **room) AS_MUST_USE;
int64_t as_publication_commit_block(as_publication *publication, const uint8_t *first_word, int64_t length) AS_MUST_USE;
int64_t as_publication_position(const as_publication *publication);       /* AS_PUBLICATION_CLOSED when closed */
int64_t as_publication_position_limit(const as_publication *publication); /* likewise */
int64_t as_publication_available_window(const as_publication *publication); /* likewise */
bool as_publication_is_connected(const as_publication *publication);
bool as_publication_is_closed(const as_publication *publication);
/* Value of the channel status counter; 1 (active) for IPC, -1 when closed. */
int64_t as_publication_channel_status(const as_publication *publication);
/* Send destinations of a multi-destination publication. Both block until the driver answers. */
as_result as_publication_add_destination(as_publication *publication, const char *channel) AS_MUST_USE;
as_result as_publication_remove_destination(as_publication *publication, const char *channel) AS_MUST_USE;
void as_publication_close(as_publication *publication);
/* Closes the publication and notifies subscribers that the stream was revoked. They do not receive what they have not read. */
void as_publication_revoke(as_publication *publication);

/* Messages in Arrow's layout: message i is data[offsets[i] .. offsets[i + 1]). Set exactly one of the offset arrays. */
typedef struct as_messages
{
    int64_t count;
    const uint8_t *data;
    const int32_t *offsets32;       /* count + 1, or NULL */
    const int64_t *offsets64;       /* count + 1, or NULL */
    const int64_t *reserved_values; /* count, or NULL */
} as_messages;

typedef struct as_offer_outcome
{
    int64_t accepted;  /* number of messages published, counted from the first */
    int64_t position;  /* stream position after the last published message; 0 if none was published */
    int64_t status;    /* 0 if all were accepted, else the AS_NOT_CONNECTED .. AS_PUBLICATION_ERROR that stopped it */
} as_offer_outcome;

/* Publishes messages in order. Retries up to timeout_ns in total on back-pressure, admin action and a missing subscriber.
 * AS_OK: all are published. AS_E_TIMEOUT, AS_E_CLOSED, or AS_E_USAGE (message `accepted` is longer than max_message_length;
 * those before it are published). `outcome` holds the progress in every case. AS_E_CLOSED also at the last position. In
 * invoker mode the wait invokes the client. */
as_result as_publication_offer_messages(
    as_publication *publication, const as_messages *messages, int64_t timeout_ns, as_offer_outcome *outcome) AS_MUST_USE;

/* When messages are due, and on which publication. Message i is due at at_ns + (times_ns[i] - time_ns) * pace, on the
 * monotonic clock of the system. */
typedef struct as_schedule
{
    const int64_t *times_ns; /* one a message, ascending */
    const int32_t *targets;  /* one a message: an index of the publications */
    int64_t time_ns;
    int64_t at_ns;
    double pace;             /* ns of the clock for each ns of times_ns; 0: every message is due at once */
} as_schedule;

/* What was published, and how well in time. The caller keeps it from call to call, and sets last_due_ns to AS_NULL_VALUE where
 * the schedule changes: no interval is measured across a change. */
typedef struct as_timing
{
    int64_t accepted;      /* messages published by this call */
    int64_t status;        /* 0, or the AS_NOT_CONNECTED .. AS_PUBLICATION_ERROR of the message that is next */
    int64_t blocked_ns;    /* how long this call was refused that message; 0 if status is 0 */
    int64_t last_due_ns;   /* of the last message: when it was due, */
    int64_t last_at_ns;    /* and when it was published */
    int64_t max_error_ns;
    int64_t max_late_ns;
    /* Intervals between messages by their error, |interval - interval of the schedule| in ns; and messages by how late they were.
     * A count for each of 0 .. 7 ns, then 8 for each power of two: bin b has what is from (8 + b % 8) << (b / 8 - 1) on. The last
     * has all that is larger. */
    int64_t error_counts[320];
    int64_t late_counts[320];
} as_timing;

/* Publishes messages in order, each on its publication when it is due: sleeps before it, and spins for the last 0.1 ms. Returns
 * AS_OK after the last message or after timeout_ns, whichever is first; also while a publication takes nothing, as `status`
 * then says. AS_E_CLOSED and AS_E_USAGE as as_publication_offer_messages, and AS_E_USAGE for publications of several clients. In
 * invoker mode the wait invokes the client. */
as_result as_publications_offer_timed(as_publication *const *publications, int32_t publication_count,
    const as_messages *messages, const as_schedule *schedule, int64_t timeout_ns, as_timing *timing) AS_MUST_USE;

/* -- subscriptions and images ------------------------------------------------------------------------------------------- */

typedef struct as_header
{
    const uint8_t *frame;      /* 32-byte header of the frame, or of the first frame */
    int64_t position;          /* aligned end of this fragment, or of the last fragment of an assembled message */
    int64_t reserved_value;
    int32_t session_id;
    int32_t stream_id;
    int32_t term_id;
    int32_t term_offset;
    int32_t initial_term_id;
    uint8_t flags;
    as_image *image;
} as_header;

typedef enum as_action_e
{
    AS_ACTION_ABORT = 1,
    AS_ACTION_BREAK = 2,
    AS_ACTION_COMMIT = 3,
    AS_ACTION_CONTINUE = 4
} as_action;

typedef void (*as_fragment_handler)(void *context, const uint8_t *data, int64_t length, const as_header *header);
typedef as_action (*as_controlled_handler)(void *context, const uint8_t *data, int64_t length, const as_header *header);
/* Receives a block of whole frames inside one term, or one padding frame alone. */
typedef void (*as_block_handler)(
    void *context, const uint8_t *frames, int64_t length, int32_t session_id, int32_t term_id);

typedef struct as_subscription_constants
{
    const char *channel;
    int64_t registration_id;
    int32_t stream_id;
    int32_t channel_status_counter_id;
} as_subscription_constants;

void as_subscription_get_constants(const as_subscription *subscription, as_subscription_constants *constants);
/* Polls fragments of all images in round-robin order. Returns the number delivered, or a negative as_result: AS_E_USAGE on
 * misuse, AS_E_CLOSED with the reason when the client is closed, AS_E_DATA when a broken frame is next and nothing was
 * delivered. */
int64_t as_subscription_poll(as_subscription *subscription, as_fragment_handler handler, void *context, int64_t limit)
    AS_MUST_USE;
int64_t as_subscription_controlled_poll(
    as_subscription *subscription, as_controlled_handler handler, void *context, int64_t limit) AS_MUST_USE;
/* Returns the number of bytes consumed. */
int64_t as_subscription_block_poll(as_subscription *subscription, as_block_handler handler, void *context, int64_t limit_bytes)
    AS_MUST_USE;
int32_t as_subscription_image_count(const as_subscription *subscription);
/* Returns a retained image, or NULL if there is none. Release each, even after the client was closed. */
as_image *as_subscription_image_at(as_subscription *subscription, int32_t index) AS_MUST_USE;
as_image *as_subscription_image_by_session(as_subscription *subscription, int32_t session_id) AS_MUST_USE;
as_image *as_image_retain(as_image *image);
void as_image_release(as_image *image);
bool as_subscription_is_connected(const as_subscription *subscription);
bool as_subscription_is_closed(const as_subscription *subscription);
int64_t as_subscription_channel_status(const as_subscription *subscription);
as_result as_subscription_add_destination(as_subscription *subscription, const char *channel) AS_MUST_USE;
as_result as_subscription_remove_destination(as_subscription *subscription, const char *channel) AS_MUST_USE;
as_result as_subscription_async_add_destination(
    as_subscription *subscription, const char *channel, int64_t *correlation_id) AS_MUST_USE;
as_result as_subscription_async_remove_destination(
    as_subscription *subscription, const char *channel, int64_t *correlation_id) AS_MUST_USE;
/* Writes the "host:port" that the (first) socket is bound to, which shows the port chosen for an endpoint with port 0.
 * AS_AGAIN: no socket is bound, or the channel is IPC. AS_E_USAGE: the text with its terminator is longer than capacity. */
as_result as_subscription_resolved_endpoint(const as_subscription *subscription, char *endpoint, int64_t capacity) AS_MUST_USE;
void as_subscription_close(as_subscription *subscription);

typedef struct as_image_constants
{
    const char *source_identity; /* valid while the image is retained */
    int64_t correlation_id;
    int64_t join_position;
    int64_t subscription_registration_id;
    int32_t session_id;
    int32_t stream_id;
    int32_t initial_term_id;
    int32_t term_length;
    int32_t mtu_length;
    int32_t subscriber_position_id;
} as_image_constants;

void as_image_get_constants(const as_image *image, as_image_constants *constants);
/* Where the next poll begins. */
int64_t as_image_position(const as_image *image);
/* What its position counter shows the driver: the position or, over UDP, after as_image_poll_columns, the end of the fragments
 * of a message whose last one has not arrived. For watching progress; a reader that starts again does so at the position. */
int64_t as_image_flow_position(const as_image *image);
as_result as_image_set_position(as_image *image, int64_t position) AS_MUST_USE;
bool as_image_is_closed(const as_image *image);
bool as_image_is_end_of_stream(const as_image *image);
int64_t as_image_end_of_stream_position(const as_image *image); /* INT64_MAX while unknown */
bool as_image_is_publication_revoked(const as_image *image);
int32_t as_image_active_transport_count(const as_image *image);
/* True when a frame is ready to be polled. */
bool as_image_has_data(const as_image *image);
/* Polls of one image. In a handler of its own poll, each is refused (AS_E_USAGE), and so is as_image_set_position. */
int64_t as_image_poll(as_image *image, as_fragment_handler handler, void *context, int64_t limit) AS_MUST_USE;
int64_t as_image_controlled_poll(as_image *image, as_controlled_handler handler, void *context, int64_t limit) AS_MUST_USE;
int64_t as_image_bounded_poll(
    as_image *image, as_fragment_handler handler, void *context, int64_t limit_position, int64_t limit) AS_MUST_USE;
int64_t as_image_bounded_controlled_poll(
    as_image *image, as_controlled_handler handler, void *context, int64_t limit_position, int64_t limit) AS_MUST_USE;
int64_t as_image_block_poll(as_image *image, as_block_handler handler, void *context, int64_t limit_bytes) AS_MUST_USE;
/* Stops the flow of this image for every subscriber and reports the reason to the publication. The reason has at most 1023
   bytes. */
as_result as_image_reject(as_image *image, const char *reason) AS_MUST_USE;

/* Joins fragments and calls `handler` once per message. Pass as_fragment_assembler_on_fragment to a poll call, with the
 * assembler as its context. Fragments are joined by image, or by session id if header.image is NULL. What is
 * left of an image that has closed is freed as other messages of several fragments begin. A message longer than its stream can
 * carry is dropped. One polling thread. */
typedef struct as_fragment_assembler as_fragment_assembler;
as_result as_fragment_assembler_open(as_fragment_handler handler, void *context, as_fragment_assembler **assembler) AS_MUST_USE;
void as_fragment_assembler_on_fragment(void *assembler, const uint8_t *data, int64_t length, const as_header *header);
/* Fragmented messages of more bytes are dropped, and never held in memory as a whole. */
void as_fragment_assembler_set_max_length(as_fragment_assembler *assembler, int64_t max_length);
void as_fragment_assembler_close(as_fragment_assembler *assembler);
typedef struct as_controlled_assembler as_controlled_assembler;
as_result as_controlled_assembler_open(as_controlled_handler handler, void *context, as_controlled_assembler **assembler)
    AS_MUST_USE;
as_action as_controlled_assembler_on_fragment(void *assembler, const uint8_t *data, int64_t length, const as_header *header);
void as_controlled_assembler_close(as_controlled_assembler *assembler);

/* Columns of whole messages, in memory of the caller. A NULL column is not built. `value_offset` and `value` go together.
 * With `value_end`, which costs the reader of segments no copy, the value of a row is [value_offset[row], value_end[row]).
 * byte_capacity must be at least the length of the stream's largest message; 16 MiB always suffices. */
typedef struct as_columns
{
    int64_t row_capacity;
    int64_t byte_capacity;   /* at most INT32_MAX */
    int64_t *position;       /* where the message's first frame begins */
    int64_t *next_position;  /* aligned end of the message's last frame */
    int64_t *reserved_value; /* of the first frame */
    int32_t *session_id;
    int32_t *stream_id;
    int32_t *term_id;
    int32_t *term_offset;
    uint8_t *flags;          /* of the first frame, with END set */
    int32_t *value_offset;   /* row_capacity + 1 */
    uint8_t *value;          /* byte_capacity */
    int64_t row_count;       /* out */
    int64_t byte_count;      /* out */
    int32_t *value_end;      /* row_capacity; NULL: each value begins where the one before it ends, else there may be gaps */
} as_columns;

/* Appends whole messages of one image to the columns, from row 0, and moves the image's position past them. A message
 * whose last fragment has not arrived stays for the next call, whole. A message that the end of the stream cuts off is skipped.
 * Waits up to timeout_ns for a first row. AS_OK: row_count >= 0. AS_E_USAGE: the next message alone is larger than
 * byte_capacity, or over IPC, as of a replay, than its publisher's window. AS_E_DATA: a frame is broken. AS_E_CLOSED: the image is
 * closed and drained. */
as_result as_image_poll_columns(as_image *image, as_columns *columns, int64_t timeout_ns) AS_MUST_USE;
/* Does the same over the images of a subscription, one after the other until the columns are full. Never returns AS_E_CLOSED
   because of one image. */
as_result as_subscription_poll_columns(as_subscription *subscription, as_columns *columns, int64_t timeout_ns) AS_MUST_USE;

/* -- counters ----------------------------------------------------------------------------------------------------------- */

/* After the client or the driver has closed the counter, get and add return -1 and set does nothing. Closing a static counter
   does not change it. */
int32_t as_counter_id(const as_counter *counter);
int64_t as_counter_registration_id(const as_counter *counter);
int64_t *as_counter_address(as_counter *counter); /* valid while open; access it with the functions below or with C11 atomics */
int64_t as_counter_get(const as_counter *counter);
void as_counter_set(as_counter *counter, int64_t value);
int64_t as_counter_add(as_counter *counter, int64_t delta); /* previous value */
bool as_counter_is_closed(const as_counter *counter);
void as_counter_close(as_counter *counter);

/* Read-only view of a driver's directory: counters, error log, liveness. It registers no client, and the driver need not be
   alive. */
typedef struct as_inspector as_inspector;

typedef struct as_counter_row
{
    int32_t id;
    int32_t type_id;
    int64_t value;
    int64_t registration_id;
    int64_t owner_id;
    int64_t reference_id;
    int32_t key_length;       /* always 112 */
    int32_t label_length;
    uint8_t key[112];
    char label[381];          /* terminated */
} as_counter_row;

typedef struct as_driver_info
{
    int64_t pid;
    int64_t start_timestamp_ms;
    int64_t heartbeat_ms;     /* -1: closed */
    int64_t client_liveness_timeout_ns;
    int32_t cnc_version;
    bool is_active;           /* heartbeat within 10 s of now */
} as_driver_info;

as_result as_inspector_open(const char *aeron_dir, as_inspector **inspector) AS_MUST_USE;
void as_inspector_close(as_inspector *inspector);
void as_inspector_driver_info(const as_inspector *inspector, as_driver_info *info);
int32_t as_inspector_max_counter_id(const as_inspector *inspector);
/* AS_OK: the row is filled. AS_AGAIN: the id is not allocated. */
as_result as_inspector_counter(const as_inspector *inspector, int32_t counter_id, as_counter_row *row) AS_MUST_USE;
/* Fills `rows` with allocated counters, in the order of their ids and from *next_id on, and sets *next_id behind the last id
 * that it looked at. Returns the number of rows; fewer than `capacity`: there are no more. */
int64_t as_inspector_counters(const as_inspector *inspector, int32_t *next_id, as_counter_row *rows, int64_t capacity) AS_MUST_USE;
/* Reads the counter that was registered with that id. AS_OK: the counter is open. AS_E_CLOSED: it is closed and this is its
 * last value. AS_AGAIN: another counter has reused the record. */
as_result as_inspector_counter_value(
    const as_inspector *inspector, int32_t counter_id, int64_t registration_id, int64_t *value) AS_MUST_USE;
/* As as_inspector_counter, for the driver that the client is connected to. */
int32_t as_client_max_counter_id(const as_client *client);
as_result as_client_counter(const as_client *client, int32_t counter_id, as_counter_row *row) AS_MUST_USE;
typedef void (*as_on_error_entry)(
    void *context, int32_t count, int64_t first_ms, int64_t last_ms, const char *text, int64_t text_length);
int64_t as_inspector_errors(const as_inspector *inspector, int64_t since_ms, as_on_error_entry on_entry, void *context)
    AS_MUST_USE;

typedef struct as_loss_row    /* of one image of a network stream */
{
    int64_t observation_count;
    int64_t total_bytes_lost;
    int64_t first_observation_ms; /* since the epoch */
    int64_t last_observation_ms;
    int32_t session_id;
    int32_t stream_id;
    int64_t channel_length;
    int64_t source_length;
    const char *channel;      /* not terminated; both texts are valid during the call */
    const char *source;
} as_loss_row;

typedef void (*as_on_loss_row)(void *context, const as_loss_row *row);
/* Reports every entry of the driver's loss report; none if the driver has created no report. */
as_result as_inspector_losses(const as_inspector *inspector, as_on_loss_row on_row, void *context) AS_MUST_USE;
/* Checks by owners and modes whether a client of this process would use a driver in that directory (see dir_owner). The text
 * of AS_E_USAGE gives the reason against it. A directory that does not exist passes. NULL texts as in as_client_options. */
as_result as_check_aeron_dir(const char *aeron_dir, const char *dir_owner, const char *dir_writers) AS_MUST_USE;
/* Requests the driver of that directory to terminate. The driver's termination validator decides. There is no answer. */
as_result as_request_driver_termination(const char *aeron_dir, const uint8_t *token, int64_t token_length) AS_MUST_USE;
/* CFFI-END */
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
