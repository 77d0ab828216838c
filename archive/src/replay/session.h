/* One replay: reads the frames of a recording from its segment files and sends them on an exclusive publication.
 * Spec: 08 §7.3, §8.
 *
 * The conductor makes the session and its publication and queues the session to the replayer. The replayer steps it once a cycle
 * and returns it when it has ended. The conductor then closes or revokes the publication and frees the rest.
 *
 *   INIT --segment there, frame valid: OK answered--> CONNECTING --subscriber--> REPLAY --limit reached--> DONE (drains)
 *     `---- error -----------------------------------------'---- abort, error, subscriber gone --------> DONE (revoked)
 *
 * Publication position and recording position are always the same number, so blocks are sent unchanged except for session and
 * stream id. A replay never reads beyond the recorded position: the bytes there are not committed. */
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

/* A response to the requester. The replayer queues it; the conductor sends it. */
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
    asi_intrusive_queue_item item; /* used by the queue */
    /* Set by the conductor before it queues the session; constant until the session is returned. */
    asi_segment_source source;
    char *archive_dir;             /* owned; source points to it */
    char *channel;                 /* owned: channel of the publication */
    as_publication *publication;   /* closed by the conductor */
    asi_recorded *recorded;        /* holds one reference; NULL: the recording is stopped */
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
    /* Written by the conductor (release), read by the replayer. A stale read costs one more batch. */
    bool is_aborted;
    /* Written by the replayer; read by the conductor after the session is returned. */
    asi_replay_state state;
    bool must_revoke;
    bool has_window;
    asi_segment_window window;
    int64_t position;              /* of the next frame to send */
    int64_t reached_position;      /* copy for the conductor, released after each step; a stale read is too low */
    int64_t recording_end;         /* stop position of the recording if `recorded` is NULL */
    int64_t stop_position;         /* end of the bytes that may be sent now */
    bool is_stop_final;            /* stop_position does not move any more */
    int64_t replay_limit;          /* the replay ends at the first frame boundary at or after it */
    int64_t bound;                 /* last value read from the limit counter */
    int64_t padding_length;        /* of the padding frame to send next, header included; 0: none */
} asi_replay_session;

/* Context shared by the sessions in one cycle. */
typedef struct asi_replay_work
{
    int64_t now_ns;
    const asi_clock *clock;
    const as_inspector *inspector; /* of the driver that holds the limit counters */
    asi_intrusive_queue *answers;
    int64_t bytes;                 /* totals of one cycle, as the next two */
    int64_t ns;
    int64_t max_ns;
} asi_replay_work;

/* Does one step and returns its work count. The state is DONE when the replay has ended. */
int asi_replay_session_step(asi_replay_session *session, asi_replay_work *work);
/* Frees what the replayer's thread has opened, and sets the state to DONE. */
void asi_replay_session_end(asi_replay_session *session, bool must_revoke);

#endif
