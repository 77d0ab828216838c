/* Walks the frames of a recording one by one, for display. Spec: 06 §12 (`dump`). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "store/folder.h"
#include "store/folder_plan.h"
#include "store/segment_layout.h"
#include "tools/catalog_open.h"

struct as_dump
{
    asi_segment_window window;
    asi_segment_walk walk;
    int64_t end; /* frames that begin before it are returned; the last may extend past it, up to the walk's limit */
};

as_result as_dump_open(
    as_catalog *catalog, int64_t index, int64_t start, int64_t end, int64_t limit, as_dump **dump_out)
{
    asi_catalog_record *record = NULL;
    as_result result = asi_tool_record(catalog, index, false, &record);
    result = AS_OK == result ? asi_recording_check_untrusted(record) : result;
    if (AS_OK != result)
    {
        return result;
    }
    if (start < record->start_position || end < start || limit < end)
    {
        return asi_fail(AS_E_USAGE, 0,
            "recording %" PRId64 " goes from position %" PRId64 " to %" PRId64 ": no frames from %" PRId64 " to %" PRId64,
            record->recording_id, record->start_position, limit, start, end);
    }
    as_dump *dump = calloc(1, sizeof(*dump));
    if (NULL == dump)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for recording %" PRId64, record->recording_id);
    }
    const asi_segment_source source = asi_tool_source(catalog, record);
    asi_segment_window_init(&dump->window, &source);
    /* Inside a frame, payload would be read as a header and reported as broken. */
    int64_t first = start;
    result = start < end ? asi_folder_frame_at(&dump->window, start, limit, &first) : AS_OK;
    if (AS_OK != result)
    {
        as_dump_close(dump);
        return result;
    }
    dump->walk = asi_segment_walk_start(&dump->window, first, limit, true);
    dump->end = end;
    *dump_out = dump;
    return AS_OK;
}

as_result as_dump_next(as_dump *dump, as_dump_frame *out)
{
    asi_segment_walk *walk = &dump->walk;
    asi_segment_window *window = &dump->window;
    if (walk->position >= dump->end)
    {
        return AS_AGAIN;
    }
    const asi_segment_step step = asi_segment_walk_next(walk);
    if (ASI_SEGMENT_FRAME != step)
    {
        return ASI_SEGMENT_FAILED == step ? walk->failure : AS_AGAIN;
    }
    const asi_frame_header *frame = walk->frames.frame;
    const bool is_padding = asi_frame_is_padding(frame);
    if (!is_padding && walk->position > asi_segment_window_end(window))
    {
        const int64_t at = walk->frame_position;
        const as_result result = asi_segment_window_load(window, at, walk->position - at, walk->limit);
        if (AS_OK != result)
        {
            return result;
        }
        *walk = asi_segment_walk_start(window, at, walk->limit, true);
        return as_dump_next(dump, out);
    }
    *out = (as_dump_frame){ .position = walk->frame_position, .frame_length = walk->frames.frame_length,
        .segment_base = window->segment_base, .version = frame->version, .flags = frame->flags, .type = frame->type,
        .term_offset = frame->term_offset, .session_id = frame->session_id, .stream_id = frame->stream_id,
        .term_id = frame->term_id, .reserved_value = frame->reserved_value, .payload = (const uint8_t *)(frame + 1),
        .payload_length = is_padding ? 0 : walk->frames.frame_length - AS_FRAME_HEADER_LENGTH };
    return AS_OK;
}

void as_dump_close(as_dump *dump)
{
    if (NULL != dump)
    {
        asi_segment_window_close(&dump->window);
        free(dump);
    }
}
