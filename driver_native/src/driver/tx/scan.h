/* Finds the bytes of a term that can be sent: the sender's scan of committed frames. Spec: 02 §9, 04 §5.4. Called by publication
 * and retransmit. Other processes write the log, so lengths are checked before use. Thread rule: the sender's. */
#ifndef ASI_DRIVER_TX_SCAN_H
#define ASI_DRIVER_TX_SCAN_H

#include "base/atomic.h"
#include "wire/frame.h"

/* Returns the bytes of one datagram from `offset` on, at most `limit` (which ends inside the term). *padding: log bytes that
 * follow it but are not sent. 0: nothing committed there. Negative: the first frame alone exceeds the limit. */
static inline int32_t asi_scan_available(const uint8_t *term, int32_t offset, int32_t limit, int32_t *padding)
{
    int32_t available = 0;
    *padding = 0;
    while (available < limit)
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)(term + offset + available);
        const int32_t frame_length = asi_load_acquire_i32(&frame->frame_length); /* pairs with the publisher's commit */
        if (frame_length <= 0)
        {
            break;
        }
        const int64_t occupancy = asi_frame_occupancy(frame_length);
        /* Prefetches the header of a later frame, at the place where frames of this length would put it. The publisher wrote it
         * on another core, and each frame gives only the position of the next one. */
        __builtin_prefetch((const void *)((uintptr_t)frame + (uintptr_t)(occupancy * (occupancy <= 128 ? 16 : 8))));
        const bool is_padding = ASI_FRAME_PAD == frame->type;
        const int64_t travelling = is_padding ? AS_FRAME_HEADER_LENGTH : occupancy;
        if (available + travelling > limit)
        {
            return 0 == available ? -1 : available;
        }
        available += (int32_t)travelling;
        if (is_padding)
        {
            *padding = occupancy > INT32_MAX ? 0 : (int32_t)(occupancy - AS_FRAME_HEADER_LENGTH);
            break;
        }
    }
    return available;
}

#endif
