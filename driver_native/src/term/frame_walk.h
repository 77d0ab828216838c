/* Stepping from frame to frame in a checked byte range of one term: the one frame loop of the project.
 *
 * Image poll, archive recorder, segment reader, recovery, columns and dump all walk with it, because recorded bytes are term
 * bytes. The range [offset, limit) lies inside one term; nothing outside it is read. Frame lengths are loaded with acquire,
 * so the same walk is safe on a live term buffer. Spec: 02 §3, §10.1, 06 §7.3. */
#ifndef ASI_TERM_FRAME_WALK_H
#define ASI_TERM_FRAME_WALK_H

#include "base/atomic.h"
#include "wire/frame.h"

/* Streams mostly are of frames of one size: this many frames on, the header is asked for while this frame is dealt with.
 * It lies in the publisher's cache, or in memory, and its length is what the walk waits for. */
#define ASI_WALK_FRAMES_AHEAD 12

typedef enum asi_walk_step
{
    ASI_WALK_FRAME,   /* a committed frame lies at `frame` */
    ASI_WALK_END,     /* offset reached limit, or nothing is committed there (length <= 0) */
    ASI_WALK_BROKEN   /* a length that can't be: shorter than a header, or past the end of the term */
} asi_walk_step;

typedef struct asi_frame_walk
{
    const uint8_t *term;   /* borrowed: first byte of the term, 32-byte aligned frames from here */
    int64_t offset;        /* of the next frame to look at */
    int64_t limit;         /* no frame that starts at or after it is looked at */
    int64_t term_length;   /* no frame may end after it */
    const asi_frame_header *frame; /* after ASI_WALK_FRAME */
    int64_t frame_offset;
    int32_t frame_length;  /* the value loaded with acquire; do not re-read frame->frame_length */
} asi_frame_walk;

static inline asi_frame_walk asi_frame_walk_start(const uint8_t *term, int64_t offset, int64_t limit, int64_t term_length)
{
    return (asi_frame_walk){ .term = term, .offset = offset, .limit = limit, .term_length = term_length };
}

static inline asi_walk_step asi_frame_walk_next(asi_frame_walk *walk)
{
    if (walk->offset >= walk->limit || walk->term_length - walk->offset < AS_FRAME_HEADER_LENGTH)
    {
        return ASI_WALK_END;
    }
    const asi_frame_header *frame = (const asi_frame_header *)(const void *)(walk->term + walk->offset);
    const int32_t length = asi_load_acquire_i32(&frame->frame_length);
    if (length <= 0)
    {
        return ASI_WALK_END;
    }
    const int64_t occupancy = asi_frame_occupancy(length);
    if (__builtin_expect(length < AS_FRAME_HEADER_LENGTH || occupancy > walk->term_length - walk->offset, 0))
    {
        return ASI_WALK_BROKEN;
    }
    __builtin_prefetch((const uint8_t *)frame + ASI_WALK_FRAMES_AHEAD * occupancy);
    walk->frame = frame;
    walk->frame_offset = walk->offset;
    walk->frame_length = length;
    walk->offset += occupancy;
    return ASI_WALK_FRAME;
}

static inline bool asi_frame_is_padding(const asi_frame_header *frame) { return ASI_FRAME_PAD == frame->type; }

#endif
