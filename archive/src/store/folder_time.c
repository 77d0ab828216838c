/* Maps positions of a recording to write times and back; see folder_time_source.h, time_index.h and aeron_spark/as_archive.h.
 *
 * Every result follows from single runs. Bytes before a run's end were written no later than the run's last time. Bytes before
 * its start were written no later than its first time. */
#include <inttypes.h>

#include "store/folder_time_source.h"
#include "store/segment_layout.h"

#define NS_PER_MS 1000000

/* -- from a time to a position ---------------------------------------------------------------------------------------------- */

typedef struct time_wanted
{
    const as_recording_extent *extent;
    int64_t time_ns;
} time_wanted;

/* Runs before the start or after the limit do not describe the current recording. */
static bool reaches_time(void *context, const asi_time_run *run)
{
    const time_wanted *wanted = context;
    return run->position >= wanted->extent->limit_position ||
        (asi_time_run_end(run) > wanted->extent->start_position && run->last_ns >= wanted->time_ns);
}

static int64_t clamp(int64_t value, const as_recording_extent *extent)
{
    return value < extent->start_position ? extent->start_position :
        value > extent->limit_position ? extent->limit_position : value;
}

static void locate(asi_time_source *source, int64_t time_ns, as_time_position *found)
{
    const as_recording_extent *extent = &source->extent;
    time_wanted wanted = { .extent = extent, .time_ns = time_ns };
    int64_t before;
    const int64_t slot = asi_time_file_search(&source->runs, reaches_time, &wanted, &before);
    asi_time_run run;
    *found = (as_time_position){ .position = extent->start_position };
    if (before >= 0 && asi_time_file_run(&source->runs, before, &run))
    {
        found->position = clamp(asi_time_run_end(&run), extent);
        found->is_rebuilt = run.is_rebuilt;
    }
    if (!asi_time_file_run(&source->runs, slot, &run) || run.position >= extent->limit_position)
    {
        return;
    }
    found->is_rebuilt = found->is_rebuilt || run.is_rebuilt;
    const int64_t begin = clamp(run.position, extent);
    if (time_ns > run.first_ns && begin > found->position)
    {
        found->position = begin; /* the bytes in the gap before it were written before the time */
    }
}

as_result as_folder_position_at_time(as_folder *folder, int64_t recording_id, int64_t time_ns, as_time_position *found)
{
    asi_time_source source;
    as_result result = asi_time_source_open_believed(folder, recording_id, true, &source);
    if (AS_OK != result)
    {
        return result;
    }
    as_time_position located;
    locate(&source, time_ns, &located);
    result = as_folder_align(
        folder, recording_id, located.position, source.extent.limit_position, true, &located.position);
    if (AS_OK == result)
    {
        *found = located;
    }
    asi_time_source_close(&source);
    return result;
}

/* -- exactly, by a time that the messages carry ----------------------------------------------------------------------------- */

/* True if a message, given by its first frame, matches. */
typedef bool (*message_predicate)(void *context, const asi_frame_header *first_frame);

/* Finds the first message in [from, limit) that matches, or `limit`. `from` is a message boundary. */
static as_result first_message(
    asi_segment_window *window, int64_t from, int64_t limit, message_predicate holds, void *context, int64_t *position)
{
    asi_segment_walk walk = asi_segment_walk_start(window, from, limit, true);
    asi_segment_step step;
    while (ASI_SEGMENT_FRAME == (step = asi_segment_walk_next(&walk)))
    {
        const asi_frame_header *frame = walk.frames.frame;
        if (!asi_frame_is_padding(frame) && 0 != (frame->flags & ASI_FLAG_BEGIN) && holds(context, frame))
        {
            *position = walk.frame_position;
            return AS_OK;
        }
    }
    *position = limit;
    return ASI_SEGMENT_FAILED == step ? walk.failure : ASI_SEGMENT_GAP != step ? AS_OK : asi_segment_fail(&window->source,
        walk.position, "gap: no frame was recorded here; restore the segment, or look for a time before it");
}

static bool is_reserved_reached(void *context, const asi_frame_header *first_frame)
{
    return first_frame->reserved_value >= *(const int64_t *)context;
}

as_result as_folder_position_at_reserved_time(as_folder *folder, int64_t recording_id, int64_t time_ns, int64_t unit_ns,
    int64_t skew_ns, int64_t *position)
{
    if (unit_ns <= 0 || skew_ns < 0 || time_ns < INT64_MIN / 2 + skew_ns)
    {
        return asi_fail(AS_E_USAGE, 0, "time %" PRId64 " with a unit of %" PRId64 " ns and a skew of %" PRId64 " ns: the unit must be "
            "positive, the skew not negative", time_ns, unit_ns, skew_ns);
    }
    as_time_position known;
    asi_time_source source;
    as_result result = as_folder_position_at_time(folder, recording_id, time_ns - skew_ns, &known);
    result = AS_OK == result ? asi_time_source_open(folder, recording_id, &source) : result;
    if (AS_OK != result)
    {
        return result;
    }
    int64_t value = time_ns / unit_ns + (time_ns > 0 && 0 != time_ns % unit_ns ? 1 : 0); /* rounded up */
    const asi_segment_source segments = asi_folder_source(folder, &source.record);
    asi_segment_window window;
    asi_segment_window_init(&window, &segments);
    result = first_message(&window, known.position, source.extent.limit_position, is_reserved_reached, &value, position);
    asi_segment_window_close(&window);
    asi_time_source_close(&source);
    return result;
}

/* -- from positions to times ------------------------------------------------------------------------------------------------ */

static bool ends_behind(void *context, const asi_time_run *run) { return asi_time_run_end(run) > *(const int64_t *)context; }

/* The runs around the last position. With ascending positions the next one is mostly in the same run or not far behind it. */
typedef struct time_cursor
{
    asi_time_file *runs;
    int64_t slot;         /* of `run`; slot_count: no run at or after the position */
    asi_time_run run;     /* first run that ends after the position */
    int64_t before_ns;    /* last time of the run before it */
} time_cursor;

static void seek(time_cursor *cursor, int64_t position)
{
    const bool is_near = cursor->slot >= 0 && cursor->slot < cursor->runs->slot_count && position >= cursor->run.position;
    if (is_near && position < asi_time_run_end(&cursor->run))
    {
        return;
    }
    int64_t before;
    cursor->slot = is_near ? asi_time_file_search_behind(cursor->runs, cursor->slot, ends_behind, &position, &before) :
        asi_time_file_search(cursor->runs, ends_behind, &position, &before);
    asi_time_run run;
    cursor->before_ns = before >= 0 && asi_time_file_run(cursor->runs, before, &run) ? run.last_ns : AS_NULL_VALUE;
    if (!asi_time_file_run(cursor->runs, cursor->slot, &cursor->run))
    {
        cursor->slot = cursor->runs->slot_count;
    }
}

as_result as_folder_times_at(as_folder *folder, int64_t recording_id, const int64_t *positions, int64_t count, int64_t *times_ns,
    uint8_t *sources)
{
    asi_time_source source;
    /* Without counters nothing tells where an active recording ends, and no byte behind that can have been read. */
    const as_result result = asi_time_source_open_believed(folder, recording_id, !folder->without_counters, &source);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t start_ns = asi_time_of_ms(source.record.start_timestamp_ms);
    time_cursor cursor = { .runs = &source.runs, .slot = -1 };
    for (int64_t i = 0; i < count; i++)
    {
        seek(&cursor, positions[i]);
        const bool is_known = cursor.slot < source.runs.slot_count && cursor.run.position <= positions[i];
        times_ns[i] = is_known ? cursor.run.first_ns : AS_NULL_VALUE != cursor.before_ns ? cursor.before_ns : start_ns;
        sources[i] = (uint8_t)(!is_known ? AS_TIME_FROM_BEFORE : cursor.run.is_rebuilt ? AS_TIME_FROM_SEGMENT : AS_TIME_FROM_INDEX);
    }
    asi_time_source_close(&source);
    return AS_OK;
}

/* -- how far times are known ------------------------------------------------------------------------------------------------- */

as_result as_folder_time_reach(as_folder *folder, int64_t recording_id, as_time_reach *reach)
{
    asi_time_source source;
    const as_result result = asi_time_source_open(folder, recording_id, &source);
    if (AS_OK != result)
    {
        return result;
    }
    *reach = (as_time_reach){ .position = source.extent.limit_position };
    if (source.extent.is_active && source.is_believed && source.runs.header.interval_ms > 0)
    {
        as_time_position located;
        locate(&source, INT64_MAX, &located);
        reach->position = located.position;
        reach->interval_ns = source.runs.header.interval_ms * (int64_t)NS_PER_MS;
    }
    asi_time_source_close(&source);
    return AS_OK;
}

/* -- the index itself -------------------------------------------------------------------------------------------------------- */

as_result as_folder_time_runs(as_folder *folder, int64_t recording_id, int64_t from, as_time_run *runs, int64_t capacity,
    int64_t *count)
{
    asi_time_source source;
    const as_result result = asi_time_source_open_believed(folder, recording_id, true, &source);
    if (AS_OK != result)
    {
        return result;
    }
    int64_t before;
    from = from > source.extent.start_position ? from : source.extent.start_position;
    *count = 0;
    for (int64_t slot = asi_time_file_search(&source.runs, ends_behind, &from, &before);
         slot < source.runs.slot_count && *count < capacity; slot++)
    {
        asi_time_run run;
        if (!asi_time_file_run(&source.runs, slot, &run))
        {
            continue;
        }
        if (run.position >= source.extent.limit_position)
        {
            break;
        }
        const int64_t begin = clamp(run.position, &source.extent);
        const int64_t end = clamp(asi_time_run_end(&run), &source.extent);
        if (end > begin)
        {
            runs[(*count)++] = (as_time_run){ .position = begin, .length = end - begin, .first_ns = run.first_ns,
                .last_ns = run.last_ns, .is_rebuilt = run.is_rebuilt };
        }
    }
    asi_time_source_close(&source);
    return AS_OK;
}

as_result as_folder_time_index_info(as_folder *folder, int64_t recording_id, as_time_index_info *info)
{
    asi_time_source source;
    const as_result result = asi_time_source_open(folder, recording_id, &source);
    if (AS_OK != result)
    {
        return result;
    }
    *info = (as_time_index_info){ .exists = source.has_file, .is_believed = source.is_believed, .first_ns = AS_NULL_VALUE,
        .last_ns = AS_NULL_VALUE, .recording_bytes = source.extent.limit_position - source.extent.start_position };
    const int64_t slots = source.has_file ? source.runs.slot_count : 0;
    info->file_length = source.has_file ? asi_time_slot_offset(slots) : 0;
    for (int64_t slot = source.runs.header.first_slot; slot < slots; slot++)
    {
        asi_time_run run;
        if (!asi_time_file_run(&source.runs, slot, &run))
        {
            info->broken_count++;
            continue;
        }
        const int64_t bytes = clamp(asi_time_run_end(&run), &source.extent) - clamp(run.position, &source.extent);
        if (bytes > 0)
        {
            info->run_count++;
            info->rebuilt_count += run.is_rebuilt;
            info->indexed_bytes += bytes;
            info->first_ns = AS_NULL_VALUE == info->first_ns ? run.first_ns : info->first_ns;
            info->last_ns = run.last_ns;
        }
    }
    asi_time_source_close(&source);
    return AS_OK;
}
