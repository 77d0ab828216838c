/* Copies frames into columns; see columns.h.
 *
 * This is the hot path of batch reading: one pass, no state between calls. A message of one frame is the common case and is
 * handled directly in the loop. A fragmented message is first measured (have all fragments arrived, do they fit) and then
 * copied, so that the columns never hold a partial message. The loop state is in locals: the columns are written through
 * pointers, and the compiler must assume that these could point into a struct that it received. */
#include "term/columns.h"

#include <string.h>

#define INLINE_COPY_LENGTH 256
/* Rarely called functions must not make the loop over frames larger, nor force its walk into memory: they get a copy. */
#define NOINLINE __attribute__((noinline))
#define INLINE inline __attribute__((always_inline))

/* The frames of one message, from BEGIN on. */
typedef struct message_extent
{
    int64_t begin_offset;
    int64_t end_offset;     /* where the next message may begin */
    int64_t length;         /* bytes of payload */
    int64_t fragment_count; /* seen so far */
    bool is_short;          /* a fragment other than the last is shorter than the MTU */
    asi_chain_cut cut;      /* of MESSAGE_CUT_OFF */
} message_extent;

typedef enum message_state
{
    MESSAGE_WHOLE,
    MESSAGE_UNFINISHED, /* the committed bytes end before its END */
    MESSAGE_CUT_OFF,    /* BEGIN has no END: another message, padding or the term's end follows */
    MESSAGE_BAD
} message_state;

static NOINLINE void doubt(asi_columns_range *range, asi_columns_doubt kind, int64_t offset)
{
    if (range->doubt_position[kind] < 0)
    {
        range->doubt_position[kind] = range->term_position + offset;
    }
}

/* Verdict on a frame whose header does not match its location, that exceeds the MTU, or whose version or type no publication
   writes. */
static NOINLINE asi_columns_fault judge_frame(asi_columns_range *range, asi_frame_walk walk, bool is_misplaced)
{
    if (range->check_headers && is_misplaced)
    {
        return ASI_FAULT_HEADER;
    }
    if (range->mtu_length > 0 && !asi_frame_is_of_log(walk.frame))
    {
        doubt(range, ASI_DOUBT_KIND, walk.frame_offset);
    }
    const bool is_long = range->mtu_length > 0 && walk.frame_length > range->mtu_length;
    return is_long && !asi_frame_is_padding(walk.frame) ? ASI_FAULT_MTU : ASI_FAULT_NONE;
}

/* Writers leave the bytes up to the frames' alignment zero. The checksum covers these bytes, but not the length. */
static inline void check_tail(asi_columns_range *range, const asi_frame_walk *walk)
{
    const int64_t occupancy = asi_frame_occupancy(walk->frame_length);
    int64_t left = occupancy - walk->frame_length;
    uint64_t found = 0;
    for (const uint8_t *at = (const uint8_t *)walk->frame + occupancy - 8; left > 0; at -= 8, left -= 8)
    {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        found |= left >= 8 ? word : word >> 8 * (8 - left); /* little-endian: drops the bytes before the tail */
    }
    if (__builtin_expect(0 != found, 0))
    {
        doubt(range, ASI_DOUBT_TAIL, walk->frame_offset);
    }
}

/* Checks the walk's current frame against the range. Spec: 06 §7.3, §8. */
static INLINE asi_columns_fault check_frame(asi_columns_range *range, const asi_frame_walk *walk)
{
    const asi_frame_header *frame = walk->frame;
    /* One branch covers all of it, because this runs for each frame. */
    const int32_t mismatch = (frame->term_offset ^ (int32_t)walk->frame_offset) | (frame->term_id ^ range->term_id) |
        (frame->stream_id ^ range->stream_id);
    const bool is_odd = (walk->frame_length > range->mtu_length) | !asi_frame_is_of_log(frame);
    if (__builtin_expect((0 != mismatch) | is_odd, 0))
    {
        const asi_columns_fault fault = judge_frame(range, *walk, 0 != mismatch);
        if (ASI_FAULT_NONE != fault)
        {
            return fault;
        }
    }
    if (NULL != range->checksum && !asi_frame_is_padding(frame))
    {
        const int64_t covered = asi_frame_occupancy(walk->frame_length) - AS_FRAME_HEADER_LENGTH;
        if (range->checksum((const uint8_t *)(frame + 1), covered) != (uint32_t)frame->session_id)
        {
            return ASI_FAULT_CHECKSUM;
        }
        if (range->mtu_length > 0)
        {
            check_tail(range, walk);
        }
    }
    return ASI_FAULT_NONE;
}

static INLINE asi_walk_step next_checked(asi_columns_range *range, asi_frame_walk *walk)
{
    const asi_walk_step step = asi_frame_walk_next(walk);
    if (__builtin_expect(ASI_WALK_BROKEN == step, 0))
    {
        range->fault_offset = walk->offset;
        range->fault = ASI_FAULT_LENGTH;
        return ASI_WALK_BROKEN;
    }
    if (ASI_WALK_FRAME == step && __builtin_expect(walk->offset > range->data_limit && !asi_frame_is_padding(walk->frame), 0))
    {
        walk->offset = walk->frame_offset;
        return ASI_WALK_END;
    }
    if (ASI_WALK_FRAME == step && (range->check_headers || NULL != range->checksum))
    {
        const asi_columns_fault fault = check_frame(range, walk);
        if (__builtin_expect(ASI_FAULT_NONE != fault, 0))
        {
            range->fault_offset = walk->frame_offset;
            range->fault = fault;
            return ASI_WALK_BROKEN;
        }
    }
    return step;
}

/* Walks from a BEGIN frame, at which `walk` (a copy) stands, to its END. On MESSAGE_CUT_OFF the search continues at
 * end_offset: the frame that is not part of the message, or the end of the term. */
static NOINLINE message_state measure(asi_columns_range *range, asi_frame_walk walk, message_extent *extent)
{
    *extent = (message_extent){ .begin_offset = walk.frame_offset };
    const int32_t session_id = walk.frame->session_id;
    for (;;)
    {
        extent->length += walk.frame_length - AS_FRAME_HEADER_LENGTH;
        extent->fragment_count++;
        extent->end_offset = walk.offset;
        if (0 != (walk.frame->flags & ASI_FLAG_END))
        {
            return MESSAGE_WHOLE;
        }
        extent->is_short = extent->is_short || walk.frame_length != range->mtu_length;
        switch (next_checked(range, &walk))
        {
            case ASI_WALK_END:
                extent->cut = ASI_CUT_BY_TERM_END;
                return walk.offset >= range->term_length ? MESSAGE_CUT_OFF : MESSAGE_UNFINISHED;
            case ASI_WALK_BROKEN:
                return MESSAGE_BAD;
            case ASI_WALK_FRAME:
                break;
        }
        if (asi_frame_is_padding(walk.frame) || 0 != (walk.frame->flags & ASI_FLAG_BEGIN))
        {
            const bool is_other = NULL == range->checksum && walk.frame->session_id != session_id;
            extent->cut = asi_frame_is_padding(walk.frame) ? ASI_CUT_BY_PADDING :
                is_other ? ASI_CUT_BY_OTHER_SESSION : ASI_CUT_BY_MESSAGE;
            return MESSAGE_CUT_OFF;
        }
    }
}

static asi_columns_stop stop_at_fragment(asi_columns_range *range, int64_t offset)
{
    range->fault_offset = offset;
    range->fault = ASI_FAULT_FRAGMENT;
    return ASI_COLUMNS_BROKEN;
}

/* Verdict on a message without its end. */
static NOINLINE asi_columns_stop judge_cut(asi_columns_range *range, const message_extent *extent)
{
    range->skipped_fragments += extent->fragment_count;
    if (0 == range->mtu_length)
    {
        return ASI_COLUMNS_END;
    }
    switch (asi_chain_judge_cut(extent->cut, extent->is_short))
    {
        case ASI_CHAIN_WRONG:
            return stop_at_fragment(range, extent->begin_offset);
        case ASI_CHAIN_DOUBTFUL:
            doubt(range, ASI_CUT_BY_MESSAGE == extent->cut ? ASI_DOUBT_CUT : ASI_DOUBT_SHORT, extent->begin_offset);
            break;
        case ASI_CHAIN_RIGHT:
            break;
    }
    return ASI_COLUMNS_END;
}

/* Verdict on a fragment that continues no message. */
static NOINLINE asi_columns_stop judge_orphan(asi_columns_range *range, asi_frame_walk walk, asi_chain_before before)
{
    const bool is_last = 0 != (walk.frame->flags & ASI_FLAG_END);
    range->skipped_fragments++;
    if (0 == range->mtu_length)
    {
        return ASI_COLUMNS_END;
    }
    switch (asi_chain_judge_orphan(before, walk.frame_offset, !is_last && walk.frame_length != range->mtu_length))
    {
        case ASI_CHAIN_WRONG:
            return stop_at_fragment(range, walk.frame_offset);
        case ASI_CHAIN_DOUBTFUL:
            doubt(range, ASI_DOUBT_SHORT, walk.frame_offset);
            break;
        case ASI_CHAIN_RIGHT:
            break;
    }
    return ASI_COLUMNS_END;
}

/* Padding is stored as its header only; its bytes are a hole in the file. */
static NOINLINE asi_columns_stop judge_padding(asi_columns_range *range, asi_frame_walk walk)
{
    if (0 == range->mtu_length)
    {
        return ASI_COLUMNS_END;
    }
    if (walk.offset > range->data_limit)
    {
        return ASI_COLUMNS_PADDING;
    }
    const uint8_t *bytes = (const uint8_t *)(walk.frame + 1);
    const int64_t length = walk.offset - walk.frame_offset - AS_FRAME_HEADER_LENGTH;
    if (NULL != range->checksum && asi_padding_was_data(walk.frame, bytes, length, range->checksum, range->session_id))
    {
        range->fault_offset = walk.frame_offset;
        range->fault = ASI_FAULT_PADDING;
        return ASI_COLUMNS_BROKEN;
    }
    if (!asi_bytes_are_zero(bytes, length))
    {
        doubt(range, ASI_DOUBT_PADDING, walk.frame_offset);
    }
    return ASI_COLUMNS_END;
}

/* Copies a payload, also down over its own frame's header. Short payloads are copied in blocks of 32 bytes without a call.
 * Rounding up to 32 is safe for the reads, because frames occupy multiples of 32. It is safe for the writes while `room`
 * allows, because the next message overwrites the excess. */
static inline void copy_payload(uint8_t *to, const uint8_t *from, int64_t length, int64_t room)
{
    if (length <= INLINE_COPY_LENGTH && room >= INLINE_COPY_LENGTH)
    {
        for (int64_t at = 0; at < length; at += 32)
        {
            memcpy(to + at, from + at, 32);
        }
    }
    else
    {
        memmove(to, from, (size_t)length);
    }
}

/* Walks again instead of trusting lengths read before. Another process may write to a live term, and the copy must stay
 * within both the measured length and the term. */
static void copy_fragments(uint8_t *to, const asi_columns_range *range, const message_extent *extent)
{
    asi_frame_walk walk = asi_frame_walk_start(range->term, extent->begin_offset, extent->end_offset, range->term_length);
    int64_t remaining = extent->length;
    while (remaining > 0 && ASI_WALK_FRAME == asi_frame_walk_next(&walk))
    {
        const int64_t payload = walk.frame_length - AS_FRAME_HEADER_LENGTH;
        const int64_t bytes = payload < remaining ? payload : remaining;
        memmove(to, walk.frame + 1, (size_t)bytes);
        to += bytes;
        remaining -= bytes;
    }
}

static inline void put_row(as_columns *columns, const asi_columns_range *range, const asi_frame_header *frame,
    const message_extent *extent, int64_t value_offset)
{
    const int64_t row = columns->row_count++;
    if (NULL != columns->position)
    {
        columns->position[row] = range->term_position + extent->begin_offset;
    }
    if (NULL != columns->next_position)
    {
        columns->next_position[row] = range->term_position + extent->end_offset;
    }
    if (NULL != columns->reserved_value)
    {
        columns->reserved_value[row] = frame->reserved_value;
    }
    if (NULL != columns->session_id)
    {
        columns->session_id[row] = range->override_session_id ? range->session_id : frame->session_id;
    }
    if (NULL != columns->stream_id)
    {
        columns->stream_id[row] = frame->stream_id;
    }
    if (NULL != columns->term_id)
    {
        columns->term_id[row] = frame->term_id;
    }
    if (NULL != columns->term_offset)
    {
        columns->term_offset[row] = (int32_t)extent->begin_offset;
    }
    if (NULL != columns->flags)
    {
        columns->flags[row] = (uint8_t)(frame->flags | ASI_FLAG_END);
    }
    if (NULL != columns->value_offset)
    {
        columns->byte_count = value_offset + extent->length;
        columns->value_offset[row] = (int32_t)value_offset;
        columns->value_offset[row + 1] = (int32_t)columns->byte_count;
    }
    if (NULL != columns->value_end)
    {
        columns->value_end[row] = (int32_t)columns->byte_count;
    }
}

/* Takes the message that begins with the walk's current frame, and moves the walk past it. ASI_COLUMNS_END: continue. */
static inline asi_columns_stop take_message(
    asi_columns_range *range, asi_frame_walk *walk, as_columns *columns, bool stays)
{
    if (columns->row_count >= columns->row_capacity)
    {
        return ASI_COLUMNS_FULL;
    }
    const asi_frame_header *frame = walk->frame;
    message_extent extent = {
        .begin_offset = walk->frame_offset,
        .end_offset = walk->offset,
        .length = walk->frame_length - AS_FRAME_HEADER_LENGTH,
        .fragment_count = 1,
    };
    if (__builtin_expect(0 == (frame->flags & ASI_FLAG_END), 0))
    {
        message_extent measured; /* separate, so that the other stays in registers */
        const message_state state = measure(range, *walk, &measured);
        extent = measured;
        switch (state)
        {
            case MESSAGE_WHOLE:
                break;
            case MESSAGE_UNFINISHED:
                range->unfinished_end = extent.end_offset;
                return ASI_COLUMNS_PARTIAL;
            case MESSAGE_BAD:
                return ASI_COLUMNS_BROKEN;
            case MESSAGE_CUT_OFF:
                walk->offset = extent.end_offset;
                return judge_cut(range, &measured);
        }
        walk->offset = extent.end_offset;
    }
    const int64_t room = columns->byte_capacity - columns->byte_count;
    if (NULL != columns->value && __builtin_expect(extent.length > room, 0))
    {
        range->needed_bytes = extent.length;
        return 0 == columns->row_count ? ASI_COLUMNS_TOO_LARGE : ASI_COLUMNS_FULL;
    }
    const uint8_t *const payload = (const uint8_t *)(frame + 1);
    const int64_t value_offset = stays ? payload - columns->value : columns->byte_count;
    put_row(columns, range, frame, &extent, value_offset); /* before the copy: the payload may overwrite the header */
    if (NULL != columns->value)
    {
        if (__builtin_expect(1 != extent.fragment_count, 0))
        {
            copy_fragments(columns->value + value_offset, range, &extent);
        }
        else if (!stays)
        {
            copy_payload(columns->value + value_offset, payload, extent.length, room);
        }
    }
    return ASI_COLUMNS_END;
}

/* True if payloads may stay where their frames are: in the values, which may have gaps. */
static bool can_stay(const asi_columns_range *range, const as_columns *columns)
{
    const uintptr_t first = (uintptr_t)range->term + (uintptr_t)range->offset;
    const uintptr_t values = (uintptr_t)columns->value;
    return NULL != columns->value_end && first - values < (uintptr_t)columns->byte_capacity;
}

asi_columns_stop asi_columns_append(asi_columns_range *range, as_columns *columns)
{
    as_columns local = *columns;
    asi_frame_walk walk = asi_frame_walk_start(range->term, range->offset, range->data_limit, range->term_length);
    int64_t offset = range->offset; /* of the first frame not yet processed */
    asi_chain_before before = range->before;
    asi_columns_stop stop = ASI_COLUMNS_END;
    const bool stays = can_stay(range, columns);
    range->fault = ASI_FAULT_NONE;
    if (NULL != local.value_offset)
    {
        local.value_offset[local.row_count] = (int32_t)local.byte_count;
    }
    while (ASI_COLUMNS_END == stop && walk.offset < range->begin_limit)
    {
        const asi_walk_step step = next_checked(range, &walk);
        if (ASI_WALK_FRAME != step)
        {
            stop = ASI_WALK_BROKEN == step ? ASI_COLUMNS_BROKEN : ASI_COLUMNS_END;
            break;
        }
        asi_chain_before now = ASI_BEFORE_MESSAGE;
        if (__builtin_expect(asi_frame_is_padding(walk.frame), 0))
        {
            stop = judge_padding(range, walk);
            now = ASI_BEFORE_PADDING;
        }
        else if (__builtin_expect(0 != (walk.frame->flags & ASI_FLAG_BEGIN), 1))
        {
            stop = take_message(range, &walk, &local, stays);
        }
        else
        {
            stop = judge_orphan(range, walk, before);
            now = asi_chain_after_orphan(before, walk.frame->flags);
        }
        if (ASI_COLUMNS_END == stop)
        {
            offset = walk.offset;
            before = now;
        }
    }
    range->before = before;
    range->offset = offset;
    columns->row_count = local.row_count;
    columns->byte_count = local.byte_count;
    return stop;
}
