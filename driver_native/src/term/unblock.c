/* Finds what a dead publisher left and turns it into padding; see unblock.h. */
#include "term/unblock.h"

#include <string.h>

typedef enum unblock_outcome
{
    NOTHING_TO_DO,
    UNBLOCKED,
    UNBLOCKED_TO_END
} unblock_outcome;

/* The part of a log that is examined: one term from `offset` to its tail. */
typedef struct blocked_term
{
    asi_log *log;
    uint8_t *term;
    int32_t term_id;
    int64_t offset;
    int64_t tail;
    bool has_publisher;
} blocked_term;

static int32_t length_at(const blocked_term *blocked, int64_t offset)
{
    return asi_load_acquire_i32(&((const asi_frame_header *)(const void *)(blocked->term + offset))->frame_length);
}

static void make_padding(const blocked_term *blocked, int32_t length)
{
    asi_frame_header *frame = (asi_frame_header *)(void *)(blocked->term + blocked->offset);
    asi_frame_header header;
    memcpy(&header, blocked->log->metadata->default_header, sizeof(header));
    frame->version = header.version;
    frame->flags = header.flags;
    frame->type = ASI_FRAME_PAD;
    frame->term_offset = (int32_t)blocked->offset;
    frame->session_id = header.session_id;
    frame->stream_id = header.stream_id;
    frame->term_id = blocked->term_id;
    frame->reserved_value = header.reserved_value;
    asi_store_release_i32(&frame->frame_length, length);
}

/* True if no frame has begun in [from, to). Scans backwards, to see a producer that started meanwhile. */
static bool is_untouched(const blocked_term *blocked, int64_t from, int64_t to)
{
    for (int64_t at = to - AS_FRAME_ALIGNMENT; at >= from; at -= AS_FRAME_ALIGNMENT)
    {
        if (0 != length_at(blocked, at))
        {
            return false;
        }
    }
    return true;
}

static unblock_outcome unblock_unwritten(const blocked_term *blocked)
{
    int64_t at = blocked->offset + AS_FRAME_ALIGNMENT;
    for (; at < blocked->tail; at += AS_FRAME_ALIGNMENT)
    {
        if (0 != length_at(blocked, at))
        {
            if (!is_untouched(blocked, blocked->offset, at))
            {
                return NOTHING_TO_DO;
            }
            make_padding(blocked, (int32_t)(at - blocked->offset));
            return UNBLOCKED;
        }
    }
    const bool is_to_end = at == blocked->log->term_length;
    if ((!is_to_end && blocked->has_publisher) || 0 != length_at(blocked, blocked->offset))
    {
        return NOTHING_TO_DO;
    }
    /* The last publisher died between moving its tail and writing its frame. Without padding the driver cannot advance, and
     * the stream would never end for its subscribers. */
    make_padding(blocked, (int32_t)(at - blocked->offset));
    return is_to_end ? UNBLOCKED_TO_END : UNBLOCKED;
}

static unblock_outcome unblock_term(const blocked_term *blocked)
{
    const int32_t length = length_at(blocked, blocked->offset);
    if (length > 0)
    {
        return NOTHING_TO_DO;
    }
    if (0 == length)
    {
        return unblock_unwritten(blocked);
    }
    const int32_t claimed = asi_wrap_sub(0, length);
    if (claimed < AS_FRAME_HEADER_LENGTH || asi_frame_occupancy(claimed) > blocked->log->term_length - blocked->offset)
    {
        return NOTHING_TO_DO; /* no publisher claims that much: the log is broken, and such padding would damage it further */
    }
    make_padding(blocked, claimed);
    return UNBLOCKED;
}

bool asi_log_unblock(asi_log *log, int64_t blocked_position, bool has_publisher)
{
    if (blocked_position < 0 || blocked_position >= asi_log_max_position(log->term_length))
    {
        return false; /* a stream at its maximum position blocks nobody: there is no term to rotate to */
    }
    const int32_t blocked_count = (int32_t)(blocked_position >> log->position_bits);
    const int32_t active_count = asi_load_acquire_i32(&log->metadata->active_term_count);
    const int64_t offset = blocked_position & (log->term_length - 1) & ~(int64_t)(AS_FRAME_ALIGNMENT - 1);
    if (active_count == asi_wrap_sub(blocked_count, 1) && 0 == offset)
    {
        /* The publisher filled its term and died before it rotated. */
        const int64_t raw_tail = asi_load_acquire_i64(&log->metadata->tail_counters[asi_log_index(active_count)]);
        asi_log_rotate(log, active_count, asi_log_term_id(raw_tail));
        return true;
    }
    const int32_t index = asi_log_index(blocked_count);
    const int64_t raw_tail = asi_load_acquire_i64(&log->metadata->tail_counters[index]);
    const blocked_term blocked = {
        .log = log,
        .term = log->terms[index],
        .term_id = asi_log_term_id(raw_tail),
        .offset = offset,
        .tail = asi_align_i64(asi_log_term_offset(raw_tail, log->term_length), AS_FRAME_ALIGNMENT),
        .has_publisher = has_publisher,
    };
    if (blocked.term_id != asi_wrap_add(log->initial_term_id, blocked_count) || blocked.offset >= blocked.tail)
    {
        return false; /* no producer has claimed that position */
    }
    const unblock_outcome outcome = unblock_term(&blocked);
    if (UNBLOCKED_TO_END == outcome)
    {
        asi_log_rotate(log, blocked_count, blocked.term_id);
    }
    return NOTHING_TO_DO != outcome;
}
