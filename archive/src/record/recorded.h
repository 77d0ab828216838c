/* How far a recording has come: what its counter 100 shows, kept apart from the counter so that replays can outlive it.
 *
 * Written by the recorder, read by the conductor (positions) and by the replayer (replays that follow a live recording). Shared
 * by reference count between the recording session and its replays. Thread rule: any thread with a reference. */
#ifndef ASI_RECORD_RECORDED_H
#define ASI_RECORD_RECORDED_H

#include <stdlib.h>

#include "base/atomic.h"

typedef struct asi_recorded
{
    /* Written by the recorder with release after write and sync; a stale read costs a follower one cycle. */
    int64_t position;
    bool is_final;      /* released after the last position: who sees it true and then reads position has the end */
    int32_t references;
} asi_recorded;

/* NULL: no memory. One reference is the caller's. */
static inline asi_recorded *asi_recorded_open(int64_t position)
{
    asi_recorded *recorded = calloc(1, sizeof(*recorded));
    if (NULL != recorded)
    {
        recorded->position = position;
        recorded->references = 1;
    }
    return recorded;
}

static inline asi_recorded *asi_recorded_retain(asi_recorded *recorded)
{
    asi_fetch_add_i32(&recorded->references, 1);
    return recorded;
}

static inline void asi_recorded_release(asi_recorded *recorded)
{
    if (NULL != recorded && 1 == asi_fetch_add_i32(&recorded->references, -1))
    {
        free(recorded);
    }
}

#endif
