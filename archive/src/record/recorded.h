/* Recorded position of an active recording. It equals the value of counter 100, but is a separate object so that replays can
 * outlive the counter.
 *
 * The recorder writes it. The conductor (positions) and the replayer (replays that follow a live recording) read it. The
 * recording session and its replays share it by reference count. Thread rule: any thread with a reference. */
#ifndef ASI_RECORD_RECORDED_H
#define ASI_RECORD_RECORDED_H

#include <stdlib.h>

#include "base/atomic.h"

typedef struct asi_recorded
{
    /* Written by the recorder with release after write and sync; a stale read costs a follower one cycle. */
    int64_t position;
    bool is_final;      /* released after the last position: a reader that sees true and then reads position has the end */
    int32_t references;
} asi_recorded;

/* Returns NULL if out of memory. The caller owns one reference. */
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
