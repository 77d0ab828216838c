/* Internals of PersistentSubscription, shared by its files. Spec: 08 §16; contract in as_archive.h. From the bottom:
 *
 *   persistent_state.c    the state, its failure, and the release of session, replay and live stream
 *   persistent_replay.c   from a request to a replay image (states 3-11)
 *   persistent_archive.c  the session with the archive, reconnected without limit; the recording's descriptor (states 0-2)
 *   persistent_stream.c   replay, switch, live (states 12-16)
 *   persistent.c          open, close, the state table, polls into handlers and columns
 *
 * Why the stream is complete: `position` alone advances, and only by the bytes that a poll of the replay or live image consumed.
 * A new replay begins there. One assembler serves both images, so a message that began in the replay may end in the live image.
 * Fragments are passed to it under the recording's session id, because replays have other session ids.
 * Thread rule: one thread. */
#ifndef ASI_CLIENT_PERSISTENT_STATE_H
#define ASI_CLIENT_PERSISTENT_STATE_H

#include "client/archive_client.h"
#include "client/connect.h"

#define ASI_PERSISTENT_TEXT_CAPACITY 1024
#define ASI_PERSISTENT_NO_DIFFERENCE INT64_MIN /* of the join difference counter */

typedef enum asi_replay_kind
{
    ASI_REPLAY_SESSION_SPECIFIC, /* fixed endpoint or IPC: the subscription is added for the replay's session */
    ASI_REPLAY_DYNAMIC_PORT,     /* port 0: the subscription is added first, and the replay is sent to its bound port */
    ASI_REPLAY_RESPONSE_CHANNEL  /* control-mode=response: the replay is requested over its own publication */
} asi_replay_kind;

typedef enum asi_archive_link
{
    ASI_LINK_IDLE,
    ASI_LINK_CONNECTING,
    ASI_LINK_CONNECTED,
    ASI_LINK_SETTLING            /* a failed connect whose driver requests are still unanswered */
} asi_archive_link;

/* The recording's state as the archive last reported it. */
typedef struct asi_persistent_recording
{
    int64_t start_position;
    int64_t stop_position;       /* AS_NULL_VALUE: active */
    int32_t term_length;
    int32_t stream_id;
    int32_t session_id;
} asi_persistent_recording;

struct as_persistent_subscription
{
    /* Constant. */
    as_persistent_options options;   /* strings and credentials: owned copies, in `strings` */
    char *strings;                   /* owned */
    int64_t strings_length;
    as_client *aeron;                /* borrowed, or own_aeron */
    as_client *own_aeron;            /* owned; NULL: the caller's client is used */
    bool is_aeron_invoked;
    asi_clock clock;
    asi_idle idle;
    asi_replay_kind replay_kind;
    int64_t timeout_ns;              /* the message timeout: every deadline derives from it */
    as_counter *state_counter;       /* owned, as are the next three */
    as_counter *difference_counter;
    as_counter *left_counter;
    as_counter *joined_counter;
    /* The archive. */
    asi_client_session session;
    asi_connect connect;
    asi_archive_link link;
    asi_call call;                   /* the only one in flight */
    asi_persistent_recording recording;
    /* The stream. */
    as_persistent_state state;
    int64_t position;                /* next to consume; FROM_START or FROM_LIVE until it is known */
    int64_t message_position;        /* end of the last message delivered, initially the start; AS_NULL_VALUE: not known */
    int64_t last_live_position;      /* where the live stream was lost; AS_NULL_VALUE: never was live */
    as_controlled_assembler *assembler; /* owned */
    /* The replay. */
    as_subscription *replay;         /* owned */
    as_image *replay_image;          /* retained */
    as_publication *requests;        /* owned: the request publication of a response channel */
    int64_t driver_request;          /* for one of these two, unanswered; AS_NULL_VALUE: none */
    int64_t replay_session_id;       /* AS_NULL_VALUE: no known replay is running */
    int64_t replay_token;
    int64_t deadline_ns;             /* of the state, if it has one */
    int64_t next_query_position;     /* position from which the recorded position is requested again; AS_NULL_VALUE: now */
    /* Live. */
    as_subscription *live;           /* owned */
    as_image *live_image;            /* retained */
    int64_t live_request;            /* AS_NULL_VALUE: none */
    int64_t live_deadline_ns;
    bool is_live_wanted;             /* the replay has caught up */
    bool is_live_missed;             /* its absence was reported */
    int64_t next_live_position;      /* of a switch: end of the first live fragment that is not skipped */
    /* The poll in flight. */
    bool in_poll;
    as_image *polled_image;          /* of the fragment that the assembler got last; valid while it is handled */
    as_controlled_handler handler;
    void *handler_context;
    as_columns *columns;
    as_result column_failure;
    int64_t limit;
    /* Set in state FAILED. */
    as_persistent_failure failure;
    as_result failure_class;
    int32_t failure_code;
    char failure_text[ASI_PERSISTENT_TEXT_CAPACITY];
};

void asi_persistent_enter(as_persistent_subscription *self, as_persistent_state state);
/* Fails permanently: reports the last recorded failure to the listener and releases all resources. */
void asi_persistent_fail(as_persistent_subscription *self, as_persistent_failure reason, as_result failure);
/* Reports the last recorded failure to the listener; the subscription continues. */
void asi_persistent_report(as_persistent_subscription *self, as_result failure);
/* Whether a request that the driver failed may succeed when retried. */
bool asi_persistent_is_temporary(as_result result);
/* Stops the replay if it is running (best effort) and releases its resources. */
void asi_persistent_drop_replay(as_persistent_subscription *self);
void asi_persistent_drop_live(as_persistent_subscription *self);
/* Releases replay, live stream and the session with the archive. */
void asi_persistent_release(as_persistent_subscription *self);
static inline int64_t asi_persistent_now(const as_persistent_subscription *self) { return asi_clock_ns(&self->clock); }
static inline bool asi_persistent_is_linked(const as_persistent_subscription *self)
{
    return ASI_LINK_CONNECTED == self->link;
}

#endif
