/* Finds message boundaries of a recording, to split it into ranges: advance, align, split of aeron_spark/as_archive.h.
 *
 * A message never leaves its term. Every start of a term is therefore a boundary, and a search reads at most one term before its
 * target. Pure functions of the recorded bytes: the same arguments always give the same result. */
#include <inttypes.h>
#include <stdlib.h>

#include "store/folder.h"
#include "store/folder_plan.h"
#include "store/segment_judge.h"
#include "store/segment_layout.h"

/* Walks frames and marks the boundaries between messages. */
typedef struct boundary_walk
{
    asi_segment_walk frames;
    bool in_message;       /* after a BEGIN, before its END */
    bool before;           /* the frame's own position is a boundary */
    bool after;            /* the frame's end is a boundary */
    bool ends_message;     /* a whole message ends with it */
} boundary_walk;

/* `position` is a boundary or a frame. */
static boundary_walk start_walk(asi_segment_window *window, int64_t position, int64_t limit)
{
    return (boundary_walk){ .frames = asi_segment_walk_start(window, position, limit, true) };
}

static asi_segment_step next_frame(boundary_walk *walk)
{
    const asi_segment_step step = asi_segment_walk_next(&walk->frames);
    if (ASI_SEGMENT_FRAME != step)
    {
        return step;
    }
    const asi_frame_header *frame = walk->frames.frames.frame;
    const bool is_padding = asi_frame_is_padding(frame);
    const bool begins = !is_padding && 0 != (frame->flags & ASI_FLAG_BEGIN);
    const bool ends = !is_padding && 0 != (frame->flags & ASI_FLAG_END);
    const bool begins_term = 0 == walk->frames.frames.frame_offset;
    walk->in_message = begins || (walk->in_message && !is_padding && !begins_term);
    walk->before = begins || is_padding || begins_term;
    walk->ends_message = walk->in_message && ends;
    walk->in_message = walk->in_message && !ends;
    walk->after = !walk->in_message;
    return ASI_SEGMENT_FRAME;
}

/* Result of a walk that found no frame: AS_OK at the limit. */
static as_result end_of_walk(const boundary_walk *walk, asi_segment_step step)
{
    if (ASI_SEGMENT_FAILED == step)
    {
        return walk->frames.failure;
    }
    return ASI_SEGMENT_GAP != step ? AS_OK : asi_segment_fail(&walk->frames.window->source, walk->frames.position,
        "gap: no frame was recorded here; restore the segment, or read up to this position");
}

/* Checks by all known header fields whether a frame of the recording begins at the position, and whether the position is then a
 * boundary. */
static as_result check_frame(
    asi_segment_window *window, int64_t position, int64_t limit, bool *is_one, bool *is_boundary)
{
    const asi_segment_source *source = &window->source;
    *is_one = *is_boundary = false;
    if (0 != position % AS_FRAME_ALIGNMENT || limit - position < AS_FRAME_HEADER_LENGTH)
    {
        return AS_OK;
    }
    const as_result result = asi_segment_window_load(window, position, AS_FRAME_HEADER_LENGTH, limit);
    if (AS_OK == result)
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)(window->buffer + (position - window->position));
        *is_one = asi_segment_is_frame(source, frame, position);
        *is_boundary = *is_one && (asi_frame_is_padding(frame) || 0 != (frame->flags & ASI_FLAG_BEGIN));
    }
    return result;
}

/* Start of a walk that covers `position`: the start of its term, or of the recording if that is later. */
static int64_t walk_start(const asi_segment_source *source, int64_t position)
{
    const int64_t term_base = asi_term_base(position, source->term_length);
    return term_base > source->start_position ? term_base : source->start_position;
}

as_result asi_folder_frame_at(asi_segment_window *window, int64_t position, int64_t limit, int64_t *frame_position)
{
    const int64_t start = walk_start(&window->source, position);
    bool is_one = position == start || position >= limit;
    bool is_boundary;
    as_result result = is_one ? AS_OK : check_frame(window, position, limit, &is_one, &is_boundary);
    if (AS_OK != result || is_one)
    {
        *frame_position = position;
        return result;
    }
    asi_segment_walk walk = asi_segment_walk_start(window, start, limit, true);
    asi_segment_step step;
    do
    {
        step = asi_segment_walk_next(&walk);
    } while (ASI_SEGMENT_FRAME == step && walk.position < position);
    *frame_position = ASI_SEGMENT_FRAME == step ? walk.position : limit;
    const boundary_walk ended = { .frames = walk };
    return ASI_SEGMENT_FRAME == step ? AS_OK : end_of_walk(&ended, step);
}

/* Finds the boundary next to `position` on one side. Walks from `known`, a boundary at or before it. Upwards, the limit counts as
 * a boundary, because nothing follows it. */
static as_result find_boundary(
    asi_segment_window *window, int64_t known, int64_t position, int64_t limit, bool back, int64_t *boundary)
{
    int64_t last = known;
    boundary_walk walk = start_walk(window, known, limit);
    asi_segment_step step = ASI_SEGMENT_LIMIT;
    while (last < position && ASI_SEGMENT_FRAME == (step = next_frame(&walk)))
    {
        if (walk.before && (walk.frames.frame_position <= position || !back))
        {
            last = walk.frames.frame_position;
        }
        if (last < position && walk.after && (walk.frames.position <= position || !back))
        {
            last = walk.frames.position;
        }
        if (walk.frames.position >= position && back)
        {
            break;
        }
    }
    *boundary = !back && last < position ? limit : last;
    const bool has_ended = last < position && ASI_SEGMENT_FRAME != step;
    return has_ended ? end_of_walk(&walk, step) : AS_OK;
}

/* Returns `position` if it is a boundary, as planned positions usually are, else the next boundary on that side. */
static as_result align(asi_segment_window *window, int64_t position, int64_t limit, bool back, int64_t *boundary)
{
    bool is_frame;
    bool is_boundary;
    const as_result result = check_frame(window, position, limit, &is_frame, &is_boundary);
    if (AS_OK != result || is_boundary)
    {
        *boundary = position;
        return result;
    }
    return find_boundary(window, walk_start(&window->source, position), position, limit, back, boundary);
}

/* Checks the arguments common to advance, align and split, and opens a window. On AS_OK the caller closes it. */
static as_result open_plan(
    const as_folder *folder, int64_t recording_id, int64_t from, int64_t limit, asi_segment_window *window)
{
    const asi_folder_recording *recording;
    as_result result = asi_folder_find(folder, recording_id, &recording);
    if (AS_OK != result)
    {
        return result;
    }
    asi_catalog_record record = recording->record;
    result = asi_catalog_reread(folder->files, folder->path, &record);
    if (AS_OK != result)
    {
        return result;
    }
    const bool is_beyond = AS_NULL_VALUE != record.stop_position && limit > record.stop_position;
    if (from < record.start_position || from > limit || is_beyond)
    {
        return asi_fail(AS_E_USAGE, 0,
            "recording %" PRId64 " of %s: positions %" PRId64 " to %" PRId64 " are not inside startPosition=%"
            PRId64 " stopPosition=%" PRId64, recording_id, folder->path, from, limit, record.start_position, record.stop_position);
    }
    const asi_segment_source source = asi_folder_source(folder, &record);
    asi_segment_window_init(window, &source);
    return AS_OK;
}

/* Limits of one advance. */
typedef struct advance_bounds
{
    int64_t target;       /* last position that the byte bound allows */
    int64_t max_messages; /* INT64_MAX: no bound */
} advance_bounds;

/* Walks from boundary `begin` on. `has_message`: a message was already passed before it. */
static as_result walk_bounds(asi_segment_window *window, int64_t begin, int64_t limit, const advance_bounds *bounds,
    bool has_message, int64_t *to)
{
    boundary_walk walk = start_walk(window, begin, limit);
    int64_t best = begin;
    int64_t messages = 0;
    asi_segment_step step;
    while (ASI_SEGMENT_FRAME == (step = next_frame(&walk)))
    {
        if (walk.before && walk.frames.frame_position <= bounds->target)
        {
            best = walk.frames.frame_position;
        }
        messages += walk.ends_message;
        const bool is_allowed = walk.frames.position <= bounds->target && messages <= bounds->max_messages;
        if (!is_allowed && has_message)
        {
            break;
        }
        if (walk.after)
        {
            best = walk.frames.position;
            has_message = has_message || walk.ends_message;
        }
    }
    *to = best;
    return ASI_SEGMENT_FRAME == step ? AS_OK : end_of_walk(&walk, step);
}

/* Skips padding at `position`. */
static as_result skip_padding(asi_segment_window *window, int64_t position, int64_t limit, int64_t *behind)
{
    asi_segment_walk walk = asi_segment_walk_start(window, position, limit, true);
    asi_segment_step step;
    *behind = position;
    while (ASI_SEGMENT_FRAME == (step = asi_segment_walk_next(&walk)) && asi_frame_is_padding(walk.frames.frame))
    {
        *behind = walk.position;
    }
    return ASI_SEGMENT_FAILED == step ? walk.failure : AS_OK;
}

static as_result advance(
    asi_segment_window *window, int64_t from, int64_t limit, int64_t max_bytes, int64_t max_messages, int64_t *to)
{
    int64_t begin = from;
    as_result result = align(window, from, limit, false, &begin);
    int64_t first = begin; /* start of the first message */
    result = AS_OK == result ? skip_padding(window, begin, limit, &first) : result;
    if (AS_OK != result)
    {
        return result;
    }
    const advance_bounds bounds = {
        .target = max_bytes < 0 || max_bytes > limit - from ? limit : from + max_bytes,
        .max_messages = max_messages < 0 ? INT64_MAX : max_messages,
    };
    /* Without a message bound, only the last term needs a walk. */
    const int64_t last_term = asi_term_base(bounds.target, window->source.term_length);
    const bool can_skip = max_messages < 0 && last_term > first;
    return walk_bounds(window, can_skip ? last_term : begin, limit, &bounds, can_skip, to);
}

as_result as_folder_advance(as_folder *folder, int64_t recording_id, int64_t from, int64_t limit, int64_t max_bytes,
    int64_t max_messages, int64_t *to)
{
    if (0 == max_bytes || max_bytes < AS_NULL_VALUE || 0 == max_messages || max_messages < AS_NULL_VALUE)
    {
        return asi_fail(AS_E_USAGE, 0, "limits must be positive or -1 for none: bytes=%" PRId64 " messages=%" PRId64, max_bytes,
            max_messages);
    }
    asi_segment_window window;
    as_result result = open_plan(folder, recording_id, from, limit, &window);
    if (AS_OK == result)
    {
        result = advance(&window, from, limit, max_bytes, max_messages, to);
        asi_segment_window_close(&window);
    }
    return result;
}

as_result as_folder_align(
    as_folder *folder, int64_t recording_id, int64_t position, int64_t limit, bool back, int64_t *boundary)
{
    asi_segment_window window;
    as_result result = open_plan(folder, recording_id, position, limit, &window);
    if (AS_OK == result)
    {
        result = align(&window, position, limit, back, boundary);
        asi_segment_window_close(&window);
    }
    return result;
}

/* Finds the end of the range that begins at `begin` (its first frame at `frame_position`): a start of a term within half the
 * target around the ideal length, else the first message after that length. */
static as_result next_cut(
    asi_segment_window *window, int64_t begin, int64_t frame_position, int64_t end, int64_t target_bytes, int64_t *cut)
{
    const int32_t term_length = window->source.term_length;
    const int64_t half = target_bytes / 2;
    const int64_t ideal = begin + target_bytes;
    const int64_t term_before = asi_term_base(ideal, term_length);
    const int64_t term_behind = term_before + term_length;
    if (term_before > begin && ideal - term_before <= half)
    {
        *cut = term_before;
        return AS_OK;
    }
    if (term_behind - ideal <= half)
    {
        *cut = term_behind;
        return AS_OK;
    }
    const int64_t known = frame_position > term_before ? frame_position : term_before;
    return find_boundary(window, known, ideal, end < term_behind ? end : term_behind, false, cut);
}

as_result as_folder_split(as_folder *folder, int64_t recording_id, int64_t start, int64_t end, int64_t target_bytes,
    int64_t *starts, int64_t capacity, int64_t *count)
{
    if (target_bytes <= 0 || capacity <= 0)
    {
        return asi_fail(AS_E_USAGE, 0,
            "target of %" PRId64 " bytes and room for %" PRId64 " ranges must be positive", target_bytes,
            capacity);
    }
    asi_segment_window window;
    as_result result = open_plan(folder, recording_id, start, end, &window);
    if (AS_OK != result)
    {
        return result;
    }
    int64_t begin = start;
    int64_t frame_position = start; /* `start` need not be the start of a frame; the cuts are */
    int64_t found = 1;
    starts[0] = start;
    result = asi_folder_frame_at(&window, start, end, &frame_position);
    const int64_t target = target_bytes < end - start ? target_bytes : end - start;
    while (AS_OK == result && found < capacity && target < end - begin)
    {
        int64_t cut = end;
        result = next_cut(&window, begin, frame_position, end, target, &cut);
        if (AS_OK != result || cut >= end)
        {
            break;
        }
        starts[found++] = cut;
        begin = frame_position = cut;
    }
    asi_segment_window_close(&window);
    if (AS_OK == result)
    {
        *count = found;
    }
    return result;
}
