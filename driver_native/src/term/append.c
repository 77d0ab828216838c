/* Writes frames for the concurrent and the exclusive appender; see append.h.
 *
 * Order of the stores of one frame: negative length (release), release fence, header, payload, reserved value, positive
 * length (release). Readers must see the negative length before any other byte of the frame, because the driver's unblocking
 * reads from it the size of a dead publisher's claim. The positive length pairs with the acquire load of every frame walk.
 * Spec: 02 §5.6, §11. */
#include "term/append.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

#define COPY_BLOCK_LENGTH 32
#define INLINE_COPY_LENGTH 512
#define LINES_AHEAD_LENGTH 1024

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* Where a claim begins. */
typedef struct claimed_range
{
    uint8_t *term;
    int64_t offset;
    int32_t term_id;
} claimed_range;

/* Reads the parts of a gathered message in order. */
typedef struct gather
{
    const struct asi_append_part *part;
    int64_t offset;
} gather;

void asi_appender_init(asi_appender *appender, asi_log *log, int32_t session_id, int32_t stream_id, bool is_exclusive)
{
    *appender = (asi_appender){
        .log = log,
        .session_id = session_id,
        .stream_id = stream_id,
        .max_payload = log->mtu_length - AS_FRAME_HEADER_LENGTH,
        .is_exclusive = is_exclusive,
    };
    if (is_exclusive)
    {
        const int32_t term_count = asi_load_acquire_i32(&log->metadata->active_term_count);
        appender->index = asi_log_index(term_count);
        const int64_t raw_tail = asi_load_acquire_i64(&log->metadata->tail_counters[appender->index]);
        appender->term_id = asi_log_term_id(raw_tail);
        /* Valid logs have tails that are multiples of 32. Rounding keeps frames inside the term in an invalid log. */
        appender->term_offset = asi_align_i64(asi_log_term_offset(raw_tail, log->term_length), AS_FRAME_ALIGNMENT);
        appender->term_begin_position = asi_log_position(appender->term_id, 0, log->position_bits, log->initial_term_id);
    }
}

int64_t asi_append_broken_tail(int32_t term_id, int64_t offset)
{
    asi_fail(AS_E_DATA, 0, "log buffer is broken: its tail has term id %" PRId32 ", offset %" PRId64, term_id, offset);
    return AS_PUBLICATION_ERROR;
}

ALWAYS_INLINE void write_header(
    const asi_appender *appender, const claimed_range *range, int64_t offset, int32_t frame_length, uint16_t type)
{
    asi_frame_header *frame = (asi_frame_header *)(void *)(range->term + offset);
    asi_store_release_i32(&frame->frame_length, -frame_length);
    asi_fence_release();
    frame->version = 0;
    frame->flags = ASI_FLAG_UNFRAGMENTED;
    frame->type = type;
    frame->term_offset = (int32_t)offset;
    frame->session_id = appender->session_id;
    frame->stream_id = appender->stream_id;
    frame->term_id = range->term_id;
}

static inline void commit_frame(uint8_t *frame, int32_t frame_length)
{
    asi_store_release_i32(&((asi_frame_header *)(void *)frame)->frame_length, frame_length);
}

/* Prefetches the cache lines of frames that follow soon. When a term is reused, its lines lie in the cache of the core that
 * cleaned them, or in memory; a store that has to fetch its line blocks those behind it. The processor's own prefetcher
 * handles longer frames. Prefetching an unmapped address is harmless. Always inline: gcc considers a function that only
 * prefetches to have no effect, and drops the call. */
ALWAYS_INLINE void fetch_lines_ahead(const uint8_t *frame, int64_t frame_length)
{
    if (frame_length <= INLINE_COPY_LENGTH)
    {
        for (int64_t at = 0; at < frame_length; at += ASI_CACHE_LINE)
        {
            __builtin_prefetch(frame + LINES_AHEAD_LENGTH + at, 1);
        }
    }
}

__attribute__((noinline)) static void pad_to_end_of_term(const asi_appender *appender, claimed_range range)
{
    const int32_t length = (int32_t)(appender->log->term_length - range.offset);
    AS_ASSERT(length >= AS_FRAME_HEADER_LENGTH && 0 == length % AS_FRAME_ALIGNMENT);
    write_header(appender, &range, range.offset, length, ASI_FRAME_PAD);
    commit_frame(range.term + range.offset, length);
}

/* No term follows the last one: claims that are refused there for ever would carry its tail's offset into the term id. */
__attribute__((cold, noinline)) static bool is_full(const asi_log *log, int32_t index)
{
    const int64_t raw_tail = asi_load_relaxed_i64(&log->metadata->tail_counters[index]);
    return asi_log_term_offset(raw_tail, log->term_length) >= log->term_length;
}

/* Takes `required` bytes of the term with one fetch-add. Returns the position after them, or a status of asi_append_message. */
ALWAYS_INLINE int64_t claim_concurrent(asi_appender *appender, int64_t required, claimed_range *range)
{
    asi_log *log = appender->log;
    const int32_t active_count = asi_load_acquire_i32(&log->metadata->active_term_count);
    const int32_t index = asi_log_index(active_count);
    if (__builtin_expect(INT32_MAX == active_count, 0) && is_full(log, index))
    {
        return AS_MAX_POSITION_EXCEEDED;
    }
    const int64_t raw_tail = asi_fetch_add_i64(&log->metadata->tail_counters[index], required);
    range->term = log->terms[index];
    range->term_id = asi_log_term_id(raw_tail);
    range->offset = asi_log_term_offset(raw_tail, log->term_length);

    const int32_t term_count = asi_wrap_sub(range->term_id, log->initial_term_id);
    if (__builtin_expect(term_count < 0 || 0 != (range->offset & (AS_FRAME_ALIGNMENT - 1)), 0))
    {
        return asi_append_broken_tail(range->term_id, range->offset);
    }
    const int64_t end = range->offset + required;
    const int64_t position = asi_log_position_of_count(term_count, end, log->position_bits);
    if (__builtin_expect(end <= log->term_length, 1))
    {
        return position;
    }
    /* Spec: 02 §5.4 - only the claim that straddles the end has bytes to fill; every claim that trips helps to rotate. */
    if (range->offset < log->term_length)
    {
        pad_to_end_of_term(appender, *range);
    }
    if (position >= asi_log_max_position(log->term_length))
    {
        return AS_MAX_POSITION_EXCEEDED;
    }
    asi_log_rotate(log, term_count, range->term_id);
    return AS_ADMIN_ACTION;
}

__attribute__((noinline)) static int64_t rotate_exclusive(asi_appender *appender)
{
    asi_log *log = appender->log;
    AS_ASSERT(0 == (appender->term_begin_position & (log->term_length - 1)) && appender->term_offset <= log->term_length);
    if (appender->term_begin_position + log->term_length >= asi_log_max_position(log->term_length))
    {
        appender->term_offset = log->term_length; /* nothing may overwrite the padding at the end of the last term */
        return AS_MAX_POSITION_EXCEEDED;
    }
    appender->index = (appender->index + 1) % ASI_LOG_PARTITION_COUNT;
    appender->term_offset = 0;
    appender->term_id = asi_wrap_add(appender->term_id, 1);
    appender->term_begin_position += log->term_length;
    /* The release store of the count publishes the tail to the driver, which loads the count first. */
    asi_store_relaxed_i64(&log->metadata->tail_counters[appender->index], asi_log_raw_tail(appender->term_id, 0));
    asi_store_release_i32(&log->metadata->active_term_count, asi_wrap_sub(appender->term_id, log->initial_term_id));
    return AS_ADMIN_ACTION;
}

ALWAYS_INLINE int64_t claim_exclusive(asi_appender *appender, int64_t required, claimed_range *range)
{
    asi_log *log = appender->log;
    range->term = log->terms[appender->index];
    range->term_id = appender->term_id;
    range->offset = appender->term_offset;

    const int64_t end = range->offset + required;
    asi_store_release_i64(&log->metadata->tail_counters[appender->index], asi_log_raw_tail(range->term_id, end));
    if (__builtin_expect(end <= log->term_length, 1))
    {
        appender->term_offset = end;
        const int64_t position = appender->term_begin_position + end;
        (void)asi_log_page_ahead(log, position);
        return position;
    }
    if (range->offset < log->term_length)
    {
        pad_to_end_of_term(appender, *range);
    }
    return rotate_exclusive(appender);
}

ALWAYS_INLINE int64_t claim_range(asi_appender *appender, int64_t required, claimed_range *range)
{
    return appender->is_exclusive ? claim_exclusive(appender, required, range) : claim_concurrent(appender, required, range);
}

static void copy_gathered(uint8_t *to, gather *from, int64_t length)
{
    while (length > 0)
    {
        const int64_t left_in_part = from->part->length - from->offset;
        if (left_in_part <= 0)
        {
            from->part++;
            from->offset = 0;
            continue;
        }
        const int64_t bytes = length < left_in_part ? length : left_in_part;
        memcpy(to, from->part->data + from->offset, (size_t)bytes);
        from->offset += bytes;
        to += bytes;
        length -= bytes;
    }
}

/* memcpy without a call for the lengths of most messages: blocks of 32 bytes, the last one overlapping. */
static inline void copy_short(uint8_t *to, const uint8_t *from, int64_t length)
{
    if (length < COPY_BLOCK_LENGTH || length > INLINE_COPY_LENGTH)
    {
        if (length > 0)
        {
            memcpy(to, from, (size_t)length);
        }
        return;
    }
    for (int64_t at = 0; at < length - COPY_BLOCK_LENGTH; at += COPY_BLOCK_LENGTH)
    {
        memcpy(to + at, from + at, COPY_BLOCK_LENGTH);
    }
    memcpy(to + length - COPY_BLOCK_LENGTH, from + length - COPY_BLOCK_LENGTH, COPY_BLOCK_LENGTH);
}

static inline void set_reserved_value(const asi_append_source *source, uint8_t *frame, int32_t frame_length)
{
    if (NULL != source->supplier)
    {
        ((asi_frame_header *)(void *)frame)->reserved_value = source->supplier(source->supplier_context, frame, frame_length);
    }
    else if (source->has_reserved_value)
    {
        ((asi_frame_header *)(void *)frame)->reserved_value = source->reserved_value;
    }
}

/* Spec: 02 §5.3 - each fragment is committed on its own, so a subscriber may see only the first ones. */
static void write_fragments(const asi_appender *appender, const asi_append_source *source, const claimed_range *range)
{
    gather from = { .part = source->parts };
    int64_t remaining = source->length;
    int64_t offset = range->offset;
    uint8_t flags = ASI_FLAG_BEGIN;
    while (remaining > 0)
    {
        const int64_t bytes = remaining < appender->max_payload ? remaining : appender->max_payload;
        const int32_t frame_length = (int32_t)bytes + AS_FRAME_HEADER_LENGTH;
        uint8_t *frame = range->term + offset;
        write_header(appender, range, offset, frame_length, ASI_FRAME_DATA);
        copy_gathered(frame + AS_FRAME_HEADER_LENGTH, &from, bytes);
        remaining -= bytes;
        ((asi_frame_header *)(void *)frame)->flags = (uint8_t)(flags | (0 == remaining ? ASI_FLAG_END : 0));
        set_reserved_value(source, frame, frame_length);
        commit_frame(frame, frame_length);
        flags = 0;
        offset += asi_frame_occupancy(frame_length);
    }
}

ALWAYS_INLINE int64_t claim_frame(asi_appender *appender, int64_t length, uint8_t **frame)
{
    claimed_range range;
    const int32_t frame_length = (int32_t)length + AS_FRAME_HEADER_LENGTH;
    const int64_t position = claim_range(appender, asi_frame_occupancy(frame_length), &range);
    if (__builtin_expect(position > 0, 1))
    {
        *frame = range.term + range.offset;
        fetch_lines_ahead(*frame, frame_length);
        write_header(appender, &range, range.offset, frame_length, ASI_FRAME_DATA);
    }
    return position;
}

static int64_t append_fragmented(asi_appender *appender, const asi_append_source *source)
{
    claimed_range range;
    const int64_t position =
        claim_range(appender, asi_log_fragmented_length(source->length, appender->max_payload), &range);
    if (position > 0)
    {
        write_fragments(appender, source, &range);
    }
    return position;
}

int64_t asi_append_message(asi_appender *appender, const asi_append_source *source)
{
    if (source->length > appender->max_payload)
    {
        return append_fragmented(appender, source);
    }
    const int32_t frame_length = (int32_t)source->length + AS_FRAME_HEADER_LENGTH;
    uint8_t *frame;
    const int64_t position = claim_frame(appender, source->length, &frame);
    if (__builtin_expect(position > 0, 1))
    {
        if (__builtin_expect(1 == source->part_count, 1))
        {
            copy_short(frame + AS_FRAME_HEADER_LENGTH, source->parts->data, source->length);
        }
        else
        {
            gather from = { .part = source->parts };
            copy_gathered(frame + AS_FRAME_HEADER_LENGTH, &from, source->length);
        }
        set_reserved_value(source, frame, frame_length);
        commit_frame(frame, frame_length);
    }
    return position;
}

int64_t asi_append_short(asi_appender *appender, const uint8_t *data, int64_t length)
{
    uint8_t *frame;
    const int64_t position = claim_frame(appender, length, &frame);
    if (__builtin_expect(position > 0, 1))
    {
        copy_short(frame + AS_FRAME_HEADER_LENGTH, data, length);
        commit_frame(frame, (int32_t)length + AS_FRAME_HEADER_LENGTH);
    }
    return position;
}

int64_t asi_append_claim(asi_appender *appender, int64_t length, uint8_t **frame)
{
    return claim_frame(appender, length, frame);
}

/* If a claim was held too long, the driver has made it padding. Its length is already positive and is not changed. */
static void end_claim(asi_frame_header *frame)
{
    const int32_t length = asi_load_relaxed_i32(&frame->frame_length);
    if (length < 0)
    {
        asi_store_release_i32(&frame->frame_length, asi_wrap_sub(0, length));
    }
}

void asi_append_commit(uint8_t *frame) { end_claim((asi_frame_header *)(void *)frame); }

void asi_append_abort(uint8_t *frame)
{
    asi_frame_header *header = (asi_frame_header *)(void *)frame;
    header->type = ASI_FRAME_PAD;
    end_claim(header);
}

int64_t asi_append_padding(asi_appender *appender, int64_t length)
{
    claimed_range range;
    const int32_t frame_length = (int32_t)length + AS_FRAME_HEADER_LENGTH;
    const int64_t position = claim_exclusive(appender, asi_frame_occupancy(frame_length), &range);
    if (position > 0)
    {
        write_header(appender, &range, range.offset, frame_length, ASI_FRAME_PAD);
        commit_frame(range.term + range.offset, frame_length);
    }
    return position;
}

static int64_t check_block(const asi_appender *appender, const asi_frame_header *first, int64_t length)
{
    const int64_t room = appender->log->term_length - appender->term_offset;
    if (length < AS_FRAME_HEADER_LENGTH || 0 != length % AS_FRAME_ALIGNMENT || length > room)
    {
        asi_fail(AS_E_USAGE, 0, "block of %" PRId64 " bytes is no multiple of 32 that fits the %" PRId64 " left in the term",
            length, room);
        return AS_PUBLICATION_ERROR;
    }
    if (first->term_offset != appender->term_offset || first->session_id != appender->session_id ||
        first->stream_id != appender->stream_id || first->term_id != appender->term_id || ASI_FRAME_DATA != first->type)
    {
        asi_fail(AS_E_USAGE, 0,
            "block's first frame is type %d of session %" PRId32 ", stream %" PRId32 ", term id %" PRId32 ", offset %" PRId32
            "; data of session %" PRId32 ", stream %" PRId32 ", term id %" PRId32 ", offset %" PRId64 " is due",
            first->type, first->session_id, first->stream_id, first->term_id, first->term_offset, appender->session_id,
            appender->stream_id, appender->term_id, appender->term_offset);
        return AS_PUBLICATION_ERROR;
    }
    return 0;
}

int64_t asi_append_claim_block(asi_appender *appender, int64_t length, uint8_t **room)
{
    asi_log *log = appender->log;
    if (appender->term_offset >= log->term_length && AS_MAX_POSITION_EXCEEDED == rotate_exclusive(appender))
    {
        return AS_MAX_POSITION_EXCEEDED;
    }
    const int64_t left = log->term_length - appender->term_offset;
    const int64_t claimed = length < left ? length : left;
    const int64_t position = appender->term_begin_position + appender->term_offset;
    asi_log_page_block(log, position, position + claimed);
    *room = log->terms[appender->index] + appender->term_offset;
    return claimed;
}

int64_t asi_append_commit_block(asi_appender *appender, const uint8_t *first_word, int64_t length)
{
    asi_log *log = appender->log;
    const int64_t offset = appender->term_offset;
    uint8_t *to = log->terms[appender->index] + offset;
    asi_frame_header first;
    memcpy(&first, to, sizeof(first));
    memcpy(&first, first_word, sizeof(int64_t));
    const int64_t failure = check_block(appender, &first, length);
    if (failure < 0)
    {
        return failure;
    }
    asi_store_release_i64(
        &log->metadata->tail_counters[appender->index], asi_log_raw_tail(appender->term_id, offset + length));
    /* The first word is stored last: until its length is set, readers see nothing of the block. Spec: 02 §6. */
    asi_store_release_i64((int64_t *)(void *)to, asi_get_i64(first_word));
    appender->term_offset = offset + length;
    return appender->term_begin_position + appender->term_offset;
}

int64_t asi_append_block(asi_appender *appender, const uint8_t *frames, int64_t length)
{
    uint8_t *to;
    const int64_t room = asi_append_claim_block(appender, AS_FRAME_HEADER_LENGTH, &to); /* check_block bounds the length */
    if (room < 0)
    {
        return room;
    }
    asi_frame_header first = { 0 };
    memcpy(&first, frames, length < AS_FRAME_HEADER_LENGTH ? 0 : sizeof(first));
    const int64_t failure = check_block(appender, &first, length);
    if (failure < 0)
    {
        return failure;
    }
    const int64_t position = appender->term_begin_position + appender->term_offset;
    asi_log_page_block(appender->log, position, position + length);
    memcpy(to + sizeof(int64_t), frames + sizeof(int64_t), (size_t)length - sizeof(int64_t));
    return asi_append_commit_block(appender, frames, length);
}
