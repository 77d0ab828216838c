/* PersistentSubscription from the inside: what its files share. Spec: 08 §16; contract in as_archive.h. From the bottom:
 *
 *   persistent_state.c    the state, its failure, and letting go of session, replay and live stream
 *   persistent_replay.c   from a request to a replay image (states 3-11)
 *   persistent_archive.c  the session with the archive: connecting again and again; the recording's descriptor (states 0-2)
 *   persistent_stream.c   replay, switch, live (states 12-16)
 *   persistent.c          opening, closing, the states' table, polls into handlers and columns
 *
 * What makes the stream whole: `position` is the only thing that moves forward, and only by what a poll of the replay or the live
 * image has consumed; a new replay begins there. Messages are joined by one assembler for both, so one that began in the replay may
 * end live. Fragments go to it under the recording's session id, since replays have others.
 * Thread rule: one thread. */
#ifndef ASI_CLIENT_PERSISTENT_STATE_H
#define ASI_CLIENT_PERSISTENT_STATE_H

#include "client/archive_client.h"
#include "client/call.h"
#include "client/connect.h"

#define ASI_PERSISTENT_TEXT_CAPACITY 1024
#define ASI_PERSISTENT_NO_DIFFERENCE INT64_MIN /* of the join difference counter */

typedef enum asi_replay_kind
{
    ASI_REPLAY_SESSION_SPECIFIC, /* a fixed endpoint, or IPC: the subscription is made for the replay's session */
    ASI_REPLAY_DYNAMIC_PORT,     /* port 0: the subscription is made first, the replay goes to its port */
    ASI_REPLAY_RESPONSE_CHANNEL  /* control-mode=response: the replay is asked for over a publication of its own */
} asi_replay_kind;

typedef enum asi_archive_link
{
    ASI_LINK_IDLE,
    ASI_LINK_CONNECTING,
    ASI_LINK_CONNECTED,
    ASI_LINK_SETTLING            /* a failed connect whose resources are on their way */
} asi_archive_link;

/* Of the recording, as the archive told last. */
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
    as_client *own_aeron;            /* owned; NULL: the caller's is used */
    bool is_aeron_invoked;
    asi_clock clock;
    asi_idle idle;
    asi_replay_kind replay_kind;
    int64_t timeout_ns;              /* the message timeout: the deadline of everything */
    as_counter *state_counter;       /* owned, as are the next three */
    as_counter *difference_counter;
    as_counter *left_counter;
    as_counter *joined_counter;
    /* The archive. */
    asi_async async;
    asi_connect connect;
    asi_archive_link link;
    asi_call call;                   /* the only one in flight */
    asi_async_listing listing;
    asi_persistent_recording recording;
    /* The stream. */
    as_persistent_state state;
    int64_t position;                /* next to consume; FROM_START or FROM_LIVE before it is known */
    int64_t message_position;        /* end of the last message that was taken, at first the start; AS_NULL_VALUE: not known */
    int64_t last_live_position;      /* where live was lost; AS_NULL_VALUE: never was live */
    as_controlled_assembler *assembler; /* owned */
    /* The replay. */
    as_subscription *replay;         /* owned */
    as_image *replay_image;          /* retained */
    as_publication *requests;        /* owned: the request publication of a response channel */
    int64_t driver_request;          /* for one of these two, not answered yet; AS_NULL_VALUE: none */
    int64_t replay_session_id;       /* AS_NULL_VALUE: no replay is running that we know of */
    int64_t replay_token;
    int64_t deadline_ns;             /* of the state, where it has one */
    int64_t ask_again_at;            /* position from which on the recorded position is asked for; AS_NULL_VALUE: now */
    /* Live. */
    as_subscription *live;           /* owned */
    as_image *live_image;            /* retained */
    int64_t live_request;            /* AS_NULL_VALUE: none */
    int64_t live_deadline_ns;
    bool is_live_wanted;             /* the replay has caught up */
    bool is_live_missed;             /* its absence was told */
    int64_t next_live_position;      /* of a switch: end of the first live fragment that is not to be skipped */
    /* The poll in flight. */
    bool in_poll;
    as_controlled_handler handler;
    void *handler_context;
    as_columns *columns;
    as_result column_failure;
    int64_t limit;
    /* FAILED. */
    as_persistent_failure failure;
    as_result failure_class;
    int32_t failure_code;
    char failure_text[ASI_PERSISTENT_TEXT_CAPACITY];
};

void asi_persistent_enter(as_persistent_subscription *self, as_persistent_state state);
/* For good: tells the listener the failure recorded last, and lets everything go. */
void asi_persistent_fail(as_persistent_subscription *self, as_persistent_failure reason, as_result failure);
/* Tells the listener the failure recorded last, and goes on. */
void asi_persistent_tell(as_persistent_subscription *self, as_result failure);
/* Whether a failed answer of the driver may be better next time. */
bool asi_persistent_is_temporary(as_result result);
/* Stops the replay if it runs, as well as that can be done, and lets its resources go. */
void asi_persistent_drop_replay(as_persistent_subscription *self);
void asi_persistent_drop_live(as_persistent_subscription *self);
/* Replay, live stream and the session with the archive. */
void asi_persistent_let_go(as_persistent_subscription *self);
static inline int64_t asi_persistent_now(const as_persistent_subscription *self) { return asi_clock_ns(&self->clock); }
static inline bool asi_persistent_is_linked(const as_persistent_subscription *self)
{
    return ASI_LINK_CONNECTED == self->link;
}

#endif
