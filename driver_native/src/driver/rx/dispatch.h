/* Which datagram goes to which image, and what happens to those that have none. Spec: 04 §8.1-8.4.
 *
 * Two tables: streams (endpoint and stream id: who is interested) and sessions (one stream's session: its image, or the state
 * of getting one). Both live in pools of fixed size that the receiver allocates when it opens; only pages in use are touched.
 * A session is looked up once per datagram; streams are looked at only when there is none. Not being interested needs no mark:
 * it is the absence of interest (upstream keeps marks and clears them). Thread rule: the receiver's. */
#ifndef ASI_DRIVER_RX_DISPATCH_H
#define ASI_DRIVER_RX_DISPATCH_H

#include "driver/rx/image.h"

#define ASI_DISPATCH_STREAM_CAPACITY 16384
#define ASI_DISPATCH_SESSION_CAPACITY 65536

typedef enum asi_session_state
{
    ASI_SESSION_NONE,             /* known for its own interest only */
    ASI_SESSION_PENDING_SETUP,    /* asked for a SETUP */
    ASI_SESSION_INIT_IN_PROGRESS, /* the conductor is making the image */
    ASI_SESSION_ACTIVE,           /* has an image */
    ASI_SESSION_COOL_DOWN         /* its image ended without end of stream */
} asi_session_state;

struct asi_stream;

typedef struct asi_session
{
    struct asi_stream *stream;
    struct asi_session *next_in_bucket; /* or of the free ones */
    struct asi_session *next_in_stream;
    struct asi_session *previous_in_stream;
    asi_image *image;       /* borrowed; NULL unless ACTIVE */
    int32_t session_id;
    uint8_t state;          /* asi_session_state */
    bool is_subscribed;     /* for this very session */
} asi_session;

typedef struct asi_stream
{
    struct asi_stream *next_in_bucket; /* or of the free ones */
    asi_receive_endpoint *endpoint;
    asi_session *sessions;  /* those of which something is known */
    int32_t stream_id;
    int32_t image_count;
    bool is_all_sessions;
} asi_stream;

typedef struct asi_dispatch
{
    asi_session *sessions;  /* owned, like the next three */
    asi_stream *streams;
    asi_session **session_buckets;
    asi_stream **stream_buckets;
    asi_session *free_sessions;
    asi_stream *free_streams;
    int32_t session_capacity; /* powers of two; as many buckets */
    int32_t stream_capacity;
    int32_t session_used;     /* never used from here on */
    int32_t stream_used;
    int32_t init_count;          /* sessions in INIT_IN_PROGRESS */
} asi_dispatch;

/* Capacities are powers of two. */
as_result asi_dispatch_open(asi_dispatch *dispatch, int32_t stream_capacity, int32_t session_capacity) AS_MUST_USE;
void asi_dispatch_close(asi_dispatch *dispatch); /* harmless on a zeroed one */

/* NULL when nothing is known. */
asi_session *asi_dispatch_find(
    const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id);
/* NULL when nobody is interested in anything of it. */
asi_stream *asi_dispatch_find_stream(const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id);
bool asi_dispatch_is_interested(
    const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id);
/* Makes the entry if there is none; NULL when the pool is used up or the stream has no interest. */
asi_session *asi_dispatch_get_or_add(
    asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id);
/* The only way a state changes; gives the entry back when nothing is left to be known, so don't use it after NONE. */
void asi_dispatch_set_state(asi_dispatch *dispatch, asi_session *session, asi_session_state state, asi_image *image);

/* AS_E_STORAGE when the pool is used up. */
as_result asi_dispatch_add_stream(asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id) AS_MUST_USE;
as_result asi_dispatch_add_session(
    asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id) AS_MUST_USE;
/* Sessions that nobody wants any more lose their image and state. */
void asi_dispatch_remove_stream(asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id);
void asi_dispatch_remove_session(
    asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id);
void asi_dispatch_remove_endpoint(asi_dispatch *dispatch, asi_receive_endpoint *endpoint);

#endif
