/* Routes each datagram to its image, and tracks the sessions that have none. Spec: 04 §8.1-8.4.
 *
 * There are two tables: streams (by endpoint and stream id, with their interest) and sessions (of one stream, with an image or
 * the state of creating one). Both are pools of fixed size that the receiver allocates when it opens; only pages in use are
 * touched. A datagram costs one session lookup; the streams are searched only when that finds nothing. A stream without interest
 * needs no mark: it has no entry (upstream keeps marks and clears them). Thread rule: the receiver's. */
#ifndef ASI_DRIVER_RX_DISPATCH_H
#define ASI_DRIVER_RX_DISPATCH_H

#include "driver/rx/image.h"

#define ASI_DISPATCH_STREAM_CAPACITY 16384
#define ASI_DISPATCH_SESSION_CAPACITY 65536

typedef enum asi_session_state
{
    ASI_SESSION_NONE,             /* has an entry only because of its own interest */
    ASI_SESSION_PENDING_SETUP,    /* SETUP requested */
    ASI_SESSION_INIT_IN_PROGRESS, /* the conductor creates the image */
    ASI_SESSION_ACTIVE,           /* has an image */
    ASI_SESSION_COOL_DOWN         /* its image ended without end of stream */
} asi_session_state;

struct asi_stream;

typedef struct asi_session
{
    struct asi_stream *stream;
    struct asi_session *next_in_bucket; /* or in the free list */
    struct asi_session *next_in_stream;
    struct asi_session *previous_in_stream;
    asi_rx_image *image;    /* borrowed; NULL unless ACTIVE */
    int32_t session_id;
    uint8_t state;          /* asi_session_state */
    bool is_subscribed;     /* for this session alone */
} asi_session;

typedef struct asi_stream
{
    struct asi_stream *next_in_bucket; /* or in the free list */
    asi_receive_endpoint *endpoint;
    asi_session *sessions;  /* the stream's sessions that have an entry */
    int32_t stream_id;
    int32_t image_count;
    bool is_all_sessions;
} asi_stream;

typedef struct asi_dispatch
{
    asi_session *sessions;  /* owned, as are the next three */
    asi_stream *streams;
    asi_session **session_buckets;
    asi_stream **stream_buckets;
    asi_session *free_sessions;
    asi_stream *free_streams;
    int32_t session_capacity; /* powers of two; also the number of buckets */
    int32_t stream_capacity;
    int32_t session_used;     /* entries from here on were never used */
    int32_t stream_used;
    int32_t init_count;          /* number of sessions in INIT_IN_PROGRESS */
} asi_dispatch;

/* Capacities are powers of two. */
as_result asi_dispatch_open(asi_dispatch *dispatch, int32_t stream_capacity, int32_t session_capacity) AS_MUST_USE;
void asi_dispatch_close(asi_dispatch *dispatch); /* no effect on a zeroed table */

/* NULL when the session has no entry. */
asi_session *asi_dispatch_find(
    const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id);
/* NULL when the stream has no interest. */
asi_stream *asi_dispatch_find_stream(const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id);
bool asi_dispatch_is_interested(
    const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id);
/* Creates the entry if there is none. NULL when the pool is exhausted or the stream has no interest. */
asi_session *asi_dispatch_get_or_add(
    asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id);
/* All state changes go through this function. It frees an entry that holds nothing more, so do not use the entry after NONE. */
void asi_dispatch_set_state(asi_dispatch *dispatch, asi_session *session, asi_session_state state, asi_rx_image *image);

/* AS_E_STORAGE when the pool is exhausted. */
as_result asi_dispatch_add_stream(asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id) AS_MUST_USE;
as_result asi_dispatch_add_session(
    asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id) AS_MUST_USE;
/* Sessions without any interest left lose their image and state. */
void asi_dispatch_remove_stream(asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id);
void asi_dispatch_remove_session(
    asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id);
void asi_dispatch_remove_endpoint(asi_dispatch *dispatch, asi_receive_endpoint *endpoint);

#endif
