/* The archive-replayer agent: steps every replay once a cycle. Spec: 08 §1, §8.
 *
 * Owns the sessions from the take from `incoming` until the put to `closed`. Thread rule: do_work runs on the replayer's thread,
 * close after that thread has ended; the queues are between threads. */
#ifndef ASI_REPLAY_REPLAYER_H
#define ASI_REPLAY_REPLAYER_H

#include "replay/session.h"

typedef struct asi_replayer
{
    asi_intrusive_queue incoming;   /* asi_replay_session, put by the conductor */
    asi_intrusive_queue *closed;    /* borrowed: the conductor's queue for ended sessions */
    asi_intrusive_queue *answers;   /* borrowed: the conductor's queue for asi_replay_answer */
    const asi_clock *clock;         /* borrowed */
    const as_inspector *inspector;  /* borrowed */
    as_counter *max_read_ns;        /* borrowed; counters 108, 110 and 109 of Spec: 08 §3 */
    as_counter *total_read_ns;
    as_counter *total_read_bytes;
    asi_replay_session **sessions;  /* owned */
    int32_t session_count;
    int32_t session_capacity;
} asi_replayer;

void asi_replayer_init(asi_replayer *replayer, asi_intrusive_queue *closed, asi_intrusive_queue *answers, const asi_clock *clock);
int asi_replayer_do_work(void *replayer);
/* Ends every session with revoke and returns it to the conductor. The agent's thread must have ended. */
void asi_replayer_close(asi_replayer *replayer);

#endif
