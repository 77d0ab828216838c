/* Loads windows of segment files and walks their frames; see segment_read.h. */
#include "store/segment_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/segment_layout.h"

#define WINDOW_ALIGNMENT 64

void asi_segment_window_init(asi_segment_window *window, const asi_segment_source *source)
{
    *window = (asi_segment_window){ .source = *source, .fd = -1 };
}

static void close_file(asi_segment_window *window)
{
    if (window->fd >= 0)
    {
        const asi_file_ops *files = window->source.files;
        files->close(files->context, window->fd);
        window->fd = -1;
    }
}

void asi_segment_window_close(asi_segment_window *window)
{
    close_file(window);
    free(window->buffer);
    window->buffer = NULL;
    window->length = 0;
}

static int64_t segment_of(const asi_segment_source *source, int64_t position)
{
    return asi_segment_base(source->start_position, position, source->term_length, source->segment_length);
}

as_result asi_segment_fail(const asi_segment_source *source, int64_t position, const char *what)
{
    return asi_fail(AS_E_DATA, 0, "recording %" PRId64 " at position %" PRId64 " (segment %s/%" PRId64 "-%" PRId64 ".rec): %s",
        source->recording_id, position, source->archive_dir, source->recording_id, segment_of(source, position), what);
}

/* Opens the segment that holds the position, unless it is open already. */
static as_result open_file(asi_segment_window *window, int64_t position)
{
    const asi_segment_source *source = &window->source;
    const int64_t base = segment_of(source, position);
    if (window->fd >= 0 && window->segment_base == base)
    {
        return AS_OK;
    }
    char path[AS_PATH_MAX];
    const as_result result = asi_segment_path(path, sizeof(path), source->archive_dir, source->recording_id, base);
    if (AS_OK != result)
    {
        return result;
    }
    close_file(window);
    const int fd = source->files->open(source->files->context, path, ASI_FILE_READ);
    if (-ENOENT == fd)
    {
        return asi_segment_fail(source, position, "the segment file is missing; if it was purged or moved away, start at a later "
            "position, else restore it");
    }
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -fd, "recording %" PRId64 " at position %" PRId64 ": cannot open segment %s",
            source->recording_id, position, path);
    }
    window->fd = fd;
    window->segment_base = base;
    return AS_OK;
}

static as_result reserve(asi_segment_window *window, int64_t length)
{
    if (length <= window->capacity)
    {
        return AS_OK;
    }
    const int64_t capacity = asi_align_i64(length < ASI_WINDOW_LENGTH ? ASI_WINDOW_LENGTH : length, WINDOW_ALIGNMENT);
    free(window->buffer);
    window->length = 0;
    window->capacity = 0;
    window->buffer = aligned_alloc(WINDOW_ALIGNMENT, (size_t)capacity);
    if (NULL == window->buffer)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for %" PRId64 " bytes of recording %" PRId64, capacity,
            window->source.recording_id);
    }
    window->capacity = capacity;
    return AS_OK;
}

as_result asi_segment_window_read(asi_segment_window *window, int64_t position, int64_t length, uint8_t *to)
{
    const asi_segment_source *source = &window->source;
    const as_result result = open_file(window, position);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t count = asi_file_read_full(source->files, window->fd, to, length, position - window->segment_base);
    if (count < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, (int)-count, "recording %" PRId64 " at position %" PRId64 ": cannot read segment %s/%"
            PRId64 "-%" PRId64 ".rec", source->recording_id, position, source->archive_dir, source->recording_id,
            window->segment_base);
    }
    if (count < length)
    {
        char what[160];
        snprintf(what, sizeof(what), "the segment file has %" PRId64 " bytes, %" PRId64 " are needed; it is truncated, restore it",
            position - window->segment_base + count, position + length - window->segment_base);
        return asi_segment_fail(source, position + count, what);
    }
    return AS_OK;
}

as_result asi_segment_window_load(asi_segment_window *window, int64_t position, int64_t length, int64_t limit)
{
    const asi_segment_source *source = &window->source;
    const int64_t term_end = asi_term_base(position, source->term_length) + source->term_length;
    int64_t end = position + length;
    end = end < term_end ? end : term_end;
    end = end < limit ? end : limit;
    if (position >= window->position && end <= asi_segment_window_end(window) &&
        asi_term_base(window->position, source->term_length) == term_end - source->term_length)
    {
        return AS_OK;
    }
    as_result result = open_file(window, position);
    result = AS_OK == result ? reserve(window, end - position) : result;
    if (AS_OK != result)
    {
        return result;
    }
    window->length = 0;
    result = asi_segment_window_read(window, position, end - position, window->buffer);
    if (AS_OK == result)
    {
        window->position = position;
        window->length = end - position;
    }
    return result;
}

/* -- walking -------------------------------------------------------------------------------------------------------------- */

asi_segment_walk asi_segment_walk_start(asi_segment_window *window, int64_t position, int64_t limit, bool check_headers)
{
    /* Nothing is loaded yet: the empty range makes the first step load. */
    return (asi_segment_walk){ .window = window, .position = position, .limit = limit, .check_headers = check_headers,
        .term_base = asi_term_base(position, window->source.term_length) };
}

static asi_segment_step fail_at(asi_segment_walk *walk, int64_t position, const char *what)
{
    walk->failure = asi_segment_fail(&walk->window->source, position, what);
    return ASI_SEGMENT_FAILED;
}

/* Loads the next piece of the recording after the walked bytes. */
static asi_segment_step load_next(asi_segment_walk *walk)
{
    asi_segment_window *window = walk->window;
    walk->failure = asi_segment_window_load(window, walk->position, ASI_WINDOW_LENGTH, walk->limit);
    if (AS_OK != walk->failure)
    {
        return ASI_SEGMENT_FAILED;
    }
    const int32_t term_length = window->source.term_length;
    walk->term_base = asi_term_base(walk->position, term_length);
    walk->frames = asi_frame_walk_start(asi_segment_window_term(window), walk->position - walk->term_base,
        asi_segment_window_end(window) - walk->term_base, term_length);
    return ASI_SEGMENT_FRAME;
}

static bool is_header_right(const asi_segment_walk *walk)
{
    const asi_segment_source *source = &walk->window->source;
    const asi_frame_header *frame = walk->frames.frame;
    return frame->term_offset == walk->frames.frame_offset && frame->stream_id == source->stream_id &&
        frame->term_id == asi_segment_term_id(walk->term_base, source->term_length, source->initial_term_id);
}

static bool is_too_long(const asi_segment_walk *walk)
{
    const int32_t mtu_length = walk->window->source.mtu_length;
    return mtu_length > 0 && walk->frames.frame_length > mtu_length && !asi_frame_is_padding(walk->frames.frame);
}

asi_segment_step asi_segment_walk_next(asi_segment_walk *walk)
{
    for (;;)
    {
        switch (asi_frame_walk_next(&walk->frames))
        {
            case ASI_WALK_BROKEN:
                return fail_at(walk, walk->position, "broken frame: its length can't be; restore the segment");
            case ASI_WALK_FRAME:
                if (walk->check_headers && __builtin_expect(!is_header_right(walk), 0))
                {
                    return fail_at(walk, walk->position, "broken frame: its header is of another stream or position; restore the "
                        "segment");
                }
                if (walk->check_headers && __builtin_expect(is_too_long(walk), 0))
                {
                    return fail_at(walk, walk->position, ASI_SEGMENT_TOO_LONG);
                }
                walk->frame_position = walk->position;
                if (walk->term_base + walk->frames.offset > walk->limit)
                {
                    return ASI_SEGMENT_LIMIT;
                }
                walk->position = walk->term_base + walk->frames.offset;
                return ASI_SEGMENT_FRAME;
            case ASI_WALK_END:
                break;
        }
        if (walk->position >= walk->limit)
        {
            return ASI_SEGMENT_LIMIT;
        }
        if (NULL != walk->frames.term && walk->frames.offset < walk->frames.limit)
        {
            return ASI_SEGMENT_GAP;
        }
        if (ASI_SEGMENT_FAILED == load_next(walk))
        {
            return ASI_SEGMENT_FAILED;
        }
    }
}
