/* The archive-recorder agent: steps every running recording once a cycle. Spec: 08 §1, §5.
 *
 * Owns the sessions from the take from `incoming` until the put to `closed`. Thread rule: do_work runs on the recorder's thread,
 * close after that thread has ended; incoming and closed are queues between threads. */
#ifndef ASI_RECORD_RECORDER_H
#define ASI_RECORD_RECORDER_H

#include "base/clock.h"
#include "record/session.h"

typedef struct asi_recorder
{
    asi_intrusive_queue incoming;   /* asi_record_session, put by the conductor */
    asi_intrusive_queue *closed;    /* borrowed: the conductor's queue for stopped sessions */
    asi_record_events events;
    const asi_clock *clock;         /* borrowed */
    as_counter *max_write_ns;       /* borrowed; counters 105, 107 and 106 of Spec: 08 §3 */
    as_counter *total_write_ns;
    as_counter *total_write_bytes;
    asi_record_session **sessions;  /* owned */
    int32_t session_count;
    int32_t session_capacity;
} asi_recorder;

void asi_recorder_init(asi_recorder *recorder, asi_intrusive_queue *closed, const asi_clock *clock);
int asi_recorder_do_work(void *recorder);
/* Stops every session, sends its Stopped event, and returns it to the conductor. The agent's thread must have ended. */
void asi_recorder_close(asi_recorder *recorder);

#endif
