/* Recomputes a recording's checksums. Spec: 06 §8, §12 (`checksum`).
 *
 * A frame's checksum is stored in its session id field. Frames are changed in the window that the walk reads. The changed bytes
 * are written back as one stretch for each window, so holes of padding frames stay holes. A crash leaves part of the frames
 * changed; running the tool again completes them. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "store/recover.h"
#include "store/segment_layout.h"
#include "tools/catalog_open.h"

#define MAX_DATA_FRAME_LENGTH (64 * 1024)

typedef struct rewriting
{
    as_catalog *catalog;
    const asi_catalog_record *record;
    asi_frame_checksum function;
    bool is_dry;
    asi_segment_window window;
    int fd;             /* of the segment being written, -1: none */
    int64_t base;       /* of that segment */
    int64_t dirty_from; /* positions; equal: nothing to write */
    int64_t dirty_to;
    as_checksum_report *report;
} rewriting;

static as_result close_segment(rewriting *to)
{
    if (to->fd < 0)
    {
        return AS_OK;
    }
    const asi_file_ops *files = to->catalog->files;
    const int error = files->fsync(files->context, to->fd);
    files->close(files->context, to->fd);
    to->fd = -1;
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot sync segment %s/%" PRId64 "-%" PRId64 ".rec",
        to->catalog->dir, to->record->recording_id, to->base);
}

static as_result open_segment(rewriting *to, int64_t base)
{
    if (to->fd >= 0 && to->base == base)
    {
        return AS_OK;
    }
    char path[AS_PATH_MAX];
    as_result result = close_segment(to);
    result = AS_OK == result ? asi_segment_path(path, sizeof(path), to->catalog->dir, to->record->recording_id, base) : result;
    if (AS_OK != result)
    {
        return result;
    }
    const int fd = to->catalog->files->open(to->catalog->files->context, path, ASI_FILE_WRITE);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -fd, "cannot open segment %s for writing", path);
    }
    to->fd = fd;
    to->base = base;
    return AS_OK;
}

/* Writes the changed stretch of the window. */
static as_result flush(rewriting *to)
{
    const int64_t length = to->dirty_to - to->dirty_from;
    if (0 == length)
    {
        return AS_OK;
    }
    const asi_segment_window *window = &to->window;
    const asi_file_ops *files = to->catalog->files;
    const as_result result = open_segment(to, window->segment_base);
    if (AS_OK != result)
    {
        return result;
    }
    const int error = asi_file_write_all(
        files, to->fd, window->buffer + (to->dirty_from - window->position), length, to->dirty_from - to->base);
    to->dirty_from = to->dirty_to = 0;
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot write segment %s/%" PRId64 "-%" PRId64 ".rec",
        to->catalog->dir, to->record->recording_id, to->base);
}

static void change(rewriting *to, int64_t position, int64_t occupancy)
{
    uint8_t *frame = to->window.buffer + (position - to->window.position);
    uint8_t *field = frame + offsetof(asi_frame_header, session_id);
    const int32_t wanted = (int32_t)to->function(frame + AS_FRAME_HEADER_LENGTH, occupancy - AS_FRAME_HEADER_LENGTH);
    to->report->frames++;
    if (wanted == asi_get_i32(field))
    {
        return;
    }
    to->report->changed++;
    if (to->is_dry)
    {
        return;
    }
    asi_put_i32(field, wanted);
    to->dirty_from = to->dirty_from == to->dirty_to ? position : to->dirty_from;
    to->dirty_to = position + AS_FRAME_HEADER_LENGTH;
}

static as_result rewrite(rewriting *to, int64_t from, int64_t limit, asi_tool_progress *progress)
{
    asi_segment_window *window = &to->window;
    asi_segment_walk walk = asi_segment_walk_start(window, from, limit, true);
    for (;;)
    {
        /* Flush before the next step, which may load another window. */
        if (walk.frames.offset >= walk.frames.limit)
        {
            const as_result result = flush(to);
            if (AS_OK != result)
            {
                return result;
            }
        }
        const asi_segment_step step = asi_segment_walk_next(&walk);
        if (ASI_SEGMENT_FRAME != step)
        {
            const as_result result = flush(to);
            if (AS_OK == result && ASI_SEGMENT_FAILED != step && walk.position < limit)
            {
                return asi_segment_fail(&window->source, walk.position, "the frames end here, before the stop position; see `verify`");
            }
            return ASI_SEGMENT_FAILED == step ? walk.failure : result;
        }
        const int64_t occupancy = walk.position - walk.frame_position;
        if (!asi_frame_is_padding(walk.frames.frame))
        {
            as_result result = occupancy <= MAX_DATA_FRAME_LENGTH ? AS_OK :
                asi_segment_fail(&window->source, walk.frame_position, "a data frame of this length can't be");
            if (AS_OK == result && walk.position > asi_segment_window_end(window))
            {
                result = flush(to);
                result = AS_OK == result ? asi_segment_window_load(window, walk.frame_position, ASI_WINDOW_LENGTH, limit) : result;
                walk = asi_segment_walk_start(window, walk.frame_position, limit, true);
                if (AS_OK == result)
                {
                    continue;
                }
            }
            if (AS_OK != result)
            {
                return result;
            }
            change(to, walk.frame_position, occupancy);
        }
        to->report->bytes += occupancy;
        if (!asi_tool_progress_add(progress, occupancy))
        {
            const as_result result = flush(to);
            return AS_OK == result ? AS_AGAIN : result;
        }
    }
}

/* Finds the end of the frames: the stored stop position, or by recovery if the archive died. */
static as_result find_limit(const as_catalog *catalog, const asi_catalog_record *record, int64_t *limit)
{
    as_result result = asi_recording_check_untrusted(record);
    *limit = record->stop_position;
    if (AS_OK == result && AS_NULL_VALUE == record->stop_position)
    {
        asi_recovered_end end;
        result = asi_recover_end(catalog->files, catalog->dir, record, AS_CHECKSUM_NONE, &end);
        *limit = AS_OK != result ? *limit : end.is_proven ? end.stop_position : end.last_fragment_position;
    }
    return result;
}

as_result as_catalog_checksum(as_catalog *catalog, int64_t index, as_record_checksum checksum, bool all_segments, bool is_dry,
    as_on_progress on_progress, void *context, as_checksum_report *report)
{
    asi_catalog_record *record = NULL;
    as_result result = asi_tool_record(catalog, index, !is_dry, &record);
    const asi_frame_checksum function = asi_checksum_function(checksum);
    if (AS_OK == result && NULL == function)
    {
        result = asi_fail(AS_E_USAGE, EINVAL, "checksum is %d: CRC-32 (2) or CRC-32C (3)", (int)checksum);
    }
    *report = (as_checksum_report){ 0 };
    int64_t limit = 0;
    result = AS_OK == result ? find_limit(catalog, record, &limit) : result;
    result = AS_OK == result && !is_dry ? asi_tool_refresh_checksum(catalog, record, checksum) : result;
    if (AS_OK != result || limit <= record->start_position)
    {
        return result;
    }
    const int64_t last_base =
        asi_segment_base(record->start_position, limit - 1, record->term_buffer_length, record->segment_file_length);
    const int64_t from = all_segments || last_base < record->start_position ? record->start_position : last_base;
    const asi_segment_source source = asi_tool_source(catalog, record);
    asi_tool_progress progress = { .lock = &catalog->lock, .on_progress = on_progress, .context = context };
    rewriting to = { .catalog = catalog, .record = record, .function = function, .is_dry = is_dry, .fd = -1, .report = report };
    asi_segment_window_init(&to.window, &source);
    result = rewrite(&to, from, limit, &progress);
    const as_result closed = close_segment(&to);
    asi_segment_window_close(&to.window);
    return AS_OK == result ? closed : result;
}
