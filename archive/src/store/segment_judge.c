/* See segment_judge.h. */
#include "store/segment_judge.h"

#include "store/segment_layout.h"

#define PIECE_LENGTH ASI_DATA_FRAME_MAX_LENGTH

const char *asi_doubt_text(int kind)
{
    static const char *const texts[ASI_RECORDING_DOUBTS] = {
        [ASI_DOUBT_CUT] = "a message breaks off where the next one begins: its publisher died inside it and another one went on, or a "
            "flag has changed",
        [ASI_DOUBT_SHORT] = "a message breaks off with a fragment that is not full: a flag may have changed",
        [ASI_DOUBT_PADDING] = "padding holds bytes: it may be a message whose frame type has changed",
        [ASI_DOUBT_TAIL] = "bytes stand between the end of a frame and the next one: the frame's length may have changed",
        [ASI_DOUBT_KIND] = "a frame has a version or type that no publication writes; it is read as data",
        [ASI_DOUBT_BELOW_START] = "bytes of the recording stand before its startPosition: the catalog's entry may have changed",
        [ASI_DOUBT_BEHIND_STOP] = "frames of the recording go on behind its stopPosition: the catalog's entry may have changed, or the "
            "disk was full when they were written",
        [ASI_DOUBT_UNCHECKED] = "the catalog's entry has a checksum, but no frame looked at matches its own: they were recorded "
            "without, or are damaged",
        [ASI_DOUBT_HOLDS_FRAMES] = "a message holds frames of the recording for their places: its frame's length may have grown by "
            "those that followed it",
    };
    return texts[kind];
}

as_result asi_segment_judge_padding(asi_segment_window *window, const asi_frame_header *header, int64_t position, int64_t limit,
    asi_frame_checksum checksum, int32_t recording_session_id, asi_padding_verdict *verdict)
{
    uint8_t bytes[PIECE_LENGTH];
    const int64_t frame_end = position + asi_frame_occupancy(header->frame_length);
    const int64_t end = frame_end < limit ? frame_end : limit;
    const int64_t begin = position + AS_FRAME_HEADER_LENGTH;
    bool is_zero = true;
    bool was_data = false;
    for (int64_t at = begin; at < end && is_zero && !was_data; at += PIECE_LENGTH)
    {
        const int64_t length = end - at < PIECE_LENGTH ? end - at : PIECE_LENGTH;
        const as_result result = asi_segment_window_read(window, at, length, bytes);
        if (AS_OK != result)
        {
            return result;
        }
        is_zero = asi_bytes_are_zero(bytes, length);
        was_data = NULL != checksum && at == begin && at + length == frame_end &&
            asi_padding_was_data(header, bytes, length, checksum, recording_session_id);
    }
    was_data = was_data || (NULL != checksum && begin == frame_end &&
        asi_padding_was_data(header, bytes, 0, checksum, recording_session_id));
    *verdict = was_data ? ASI_PADDING_WAS_DATA : is_zero ? ASI_PADDING_EMPTY : ASI_PADDING_FILLED;
    return AS_OK;
}

bool asi_segment_is_frame(const asi_segment_source *source, const asi_frame_header *frame, int64_t position)
{
    const int64_t term_offset = position & ((int64_t)source->term_length - 1);
    return frame->frame_length >= AS_FRAME_HEADER_LENGTH &&
        asi_frame_occupancy(frame->frame_length) <= source->term_length - term_offset && frame->term_offset == term_offset &&
        frame->stream_id == source->stream_id && frame->type <= ASI_FRAME_DATA &&
        frame->term_id == asi_segment_term_id(position, source->term_length, source->initial_term_id);
}

bool asi_segment_has_bytes_below(asi_segment_window *window, int64_t start_position)
{
    uint8_t bytes[PIECE_LENGTH];
    const asi_segment_source *source = &window->source;
    const int64_t base = asi_segment_base(start_position, start_position, source->term_length, source->segment_length);
    const int64_t length = start_position - base < PIECE_LENGTH ? start_position - base : PIECE_LENGTH;
    if (0 == length)
    {
        return false;
    }
    /* Test the segment's first frame and the last frame before the start: a longer last frame can only be padding. */
    return (AS_OK == asi_segment_window_read(window, base, AS_FRAME_ALIGNMENT, bytes) &&
               !asi_bytes_are_zero(bytes, AS_FRAME_ALIGNMENT)) ||
        (AS_OK == asi_segment_window_read(window, start_position - length, length, bytes) && !asi_bytes_are_zero(bytes, length));
}

bool asi_segment_has_frame_at(asi_segment_window *window, int64_t position)
{
    asi_frame_header frame;
    return AS_OK == asi_segment_window_read(window, position, sizeof(frame), (uint8_t *)&frame) &&
        asi_segment_is_frame(&window->source, &frame, position);
}

asi_chain_before asi_segment_before(asi_segment_window *window, int64_t position)
{
    const int64_t term_base = asi_term_base(position, window->source.term_length);
    const int64_t start = term_base > window->source.start_position ? term_base : window->source.start_position;
    asi_segment_walk walk = asi_segment_walk_start(window, start, position, true);
    asi_chain_before before = ASI_BEFORE_UNKNOWN;
    while (ASI_SEGMENT_FRAME == asi_segment_walk_next(&walk))
    {
        const asi_frame_header *frame = walk.frames.frame;
        const bool begins = 0 != (frame->flags & ASI_FLAG_BEGIN);
        before = asi_frame_is_padding(frame) ? ASI_BEFORE_PADDING :
            asi_chain_after_orphan(begins ? ASI_BEFORE_UNKNOWN : before, frame->flags);
    }
    return walk.position == position ? before : ASI_BEFORE_UNKNOWN;
}
