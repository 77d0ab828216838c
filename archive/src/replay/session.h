/* One replay: frames of a recording out of its segment files into an exclusive publication. Spec: 08 §7.3, §8.
 *
 * Made by the conductor with its publication, handed to the replayer, stepped there once a cycle, handed back when it is over; the
 * conductor then closes or revokes the publication and frees the rest.
 *
 *   INIT --segment there, frame valid: OK answered--> CONNECTING --subscriber--> REPLAY --limit reached--> DONE (drains)
 *     `---- error -----------------------------------------'---- abort, error, subscriber gone --------> DONE (revoked)
 *
 * Publication position and recording position are the same number throughout, which is why blocks can be offered unchanged but
 * for session and stream id. Never reads beyond the recorded position: what lies there is not committed. */
#ifndef ASI_REPLAY_SESSION_H
#define ASI_REPLAY_SESSION_H

#include "base/clock.h"
#include "record/intrusive_queue.h"
#include "record/recorded.h"
#include "store/checksum.h"
#include "store/segment_read.h"

typedef enum asi_replay_state
{
    ASI_REPLAY_INIT,
    ASI_REPLAY_CONNECTING,
    ASI_REPLAY_REPLAY,
    ASI_REPLAY_DONE
} asi_replay_state;

#define ASI_REPLAY_TEXT_CAPACITY 2048

/* What the replayer lets the conductor tell the requester. */
typedef struct asi_replay_answer
{
    asi_intrusive_queue_item item;
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t relevant_id;
    int32_t code;            /* ASI_CODEC_OK or ASI_CODEC_ERROR */
    char text[ASI_REPLAY_TEXT_CAPACITY];
} asi_replay_answer;

typedef struct asi_replay_session
{
    asi_intrusive_queue_item item; /* the queue's, while handed over */
    /* Set by the conductor before the hand-over, constant until the session comes back. */
    asi_segment_source source;
    char *archive_dir;             /* owned; source points to it */
    char *channel;                 /* owned: of the publication */
    as_publication *publication;   /* closed by the conductor */
    asi_recorded *recorded;        /* one reference; NULL: the recording is stopped */
    asi_frame_checksum checksum;   /* NULL: not verified */
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t replay_session_id;
    int64_t connect_deadline_ns;
    int64_t bound_registration_id; /* of the limit counter */
    int32_t bound_counter_id;      /* AS_NULL_VALUE: not bounded */
    int32_t publication_session_id;
    int32_t publication_stream_id;
    int32_t batch_limit;           /* bytes */
    /* Written by the conductor (release), read by the replayer: a stale read costs one more batch. */
    bool is_aborted;
    /* The replayer's; read by the conductor after it came back. */
    asi_replay_state state;
    bool must_revoke;
    bool has_window;
    asi_segment_window window;
    int64_t position;              /* of the next frame to send */
    int64_t reached_position;      /* the same for the conductor: released after each step; a stale read is too low */
    int64_t recording_end;         /* without `recorded`: where the recording stopped */
    int64_t stop_position;         /* bytes may be sent up to here, as known now */
    bool is_stop_final;            /* it moves no more */
    int64_t replay_limit;          /* ends at the first frame boundary at or after it */
    int64_t bound;                 /* last value seen of the limit counter */
    int64_t padding_length;        /* of the frame that is due, header included; 0: none */
} asi_replay_session;

/* What the sessions share. */
typedef struct asi_replay_work
{
    int64_t now_ns;
    const asi_clock *clock;
    const as_inspector *inspector; /* of the driver whose counters bound replays */
    asi_intrusive_queue *answers;
    int64_t bytes;                 /* sums of one cycle */
    int64_t ns;
    int64_t max_ns;
} asi_replay_work;

/* One step; returns its work count. The state is DONE when it is over. */
int asi_replay_session_step(asi_replay_session *session, asi_replay_work *work);
/* Frees what the replayer's thread opened. */
void asi_replay_session_end(asi_replay_session *session, bool must_revoke);

#endif
