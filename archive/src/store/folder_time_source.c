/* Opens the runs for time lookups: those of the time index, or runs made from the segments' modification times. See
 * folder_time_source.h.
 *
 * The bytes of a segment were written no later than the file's modification time and no earlier than the segment before it. The
 * system's timestamps may lag by a timer tick, so a margin is added: a later timestamp only makes a result earlier. */
#include "store/folder_time_source.h"

#include <errno.h>
#include <stdlib.h>

#include "store/segment_layout.h"

#define STAMP_LAG_NS 20000000 /* two ticks of the slowest kernels */

/* -- of the segments -------------------------------------------------------------------------------------------------------- */

/* Segments found by name. The catalog's positions may be damaged and imply more segments than can be checked one by one. */
typedef struct segment_list
{
    int64_t recording_id;
    int64_t *bases; /* owned */
    int64_t count;
    int64_t capacity;
    bool has_failed;
} segment_list;

static bool keep_base(void *context, const char *name)
{
    segment_list *list = context;
    int64_t recording_id;
    int64_t base;
    if (ASI_SEGMENT_NAME_LIVE != asi_segment_name_parse(name, &recording_id, &base) || recording_id != list->recording_id)
    {
        return true;
    }
    if (list->count == list->capacity)
    {
        const int64_t capacity = 0 == list->capacity ? 64 : 2 * list->capacity;
        int64_t *bases = realloc(list->bases, (size_t)capacity * sizeof(*bases));
        list->has_failed = NULL == bases;
        list->bases = NULL == bases ? list->bases : bases;
        list->capacity = NULL == bases ? list->capacity : capacity;
    }
    if (!list->has_failed)
    {
        list->bases[list->count++] = base;
    }
    return !list->has_failed;
}

static int compare_bases(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a;
    const int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right ? 1 : 0;
}

static as_result list_segments(const as_folder *folder, int64_t recording_id, segment_list *list)
{
    *list = (segment_list){ .recording_id = recording_id };
    const int error = folder->files->readdir(folder->files->context, folder->path, keep_base, list);
    if (list->has_failed || error < 0)
    {
        free(list->bases);
        return list->has_failed ? asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the segments of %s", folder->path) :
            asi_fail_errno(AS_E_STORAGE, -error, "cannot list archive folder %s", folder->path);
    }
    if (list->count > 0)
    {
        qsort(list->bases, (size_t)list->count, sizeof(list->bases[0]), compare_bases);
    }
    return AS_OK;
}

/* Modification time of the segment; AS_NULL_VALUE if it is not there. */
static int64_t modified_ns(const as_folder *folder, int64_t recording_id, int64_t base)
{
    const asi_file_ops *files = folder->files;
    char path[AS_PATH_MAX];
    if (NULL == files->modified_ns || AS_OK != asi_segment_path(path, sizeof(path), folder->path, recording_id, base))
    {
        return AS_NULL_VALUE;
    }
    const int fd = files->open(files->context, path, ASI_FILE_READ);
    if (fd < 0)
    {
        return AS_NULL_VALUE;
    }
    const int64_t modified = files->modified_ns(files->context, fd);
    files->close(files->context, fd);
    return modified < 0 ? AS_NULL_VALUE : modified + STAMP_LAG_NS;
}

as_result asi_time_of_segments(const as_folder *folder, const asi_catalog_record *record, int64_t begin, int64_t end,
    int64_t not_before, int64_t not_after, asi_time_runs *runs)
{
    int64_t previous_ns = not_before > 0 ? not_before : 0;
    segment_list list;
    as_result result = list_segments(folder, record->recording_id, &list);
    if (AS_OK != result)
    {
        return result;
    }
    for (int64_t i = 0; AS_OK == result && i < list.count && list.bases[i] < end; i++)
    {
        const int64_t base = list.bases[i];
        const int64_t position = base > begin ? base : begin;
        const int64_t file_end = base <= INT64_MAX - record->segment_file_length ? base + record->segment_file_length : end;
        const int64_t segment_end = file_end < end ? file_end : end;
        const bool is_ours = position < segment_end && base == asi_segment_base(
            record->start_position, position, record->term_buffer_length, record->segment_file_length);
        int64_t time_ns = is_ours ? modified_ns(folder, record->recording_id, base) : AS_NULL_VALUE;
        if (AS_NULL_VALUE != time_ns)
        {
            time_ns = time_ns < not_after ? time_ns : not_after;
            time_ns = time_ns > previous_ns ? time_ns : previous_ns;
            const asi_time_run run = { .position = position, .length = segment_end - position, .first_ns = previous_ns,
                .last_ns = time_ns, .is_rebuilt = true };
            result = asi_time_runs_add(runs, &run);
            previous_ns = time_ns;
        }
    }
    free(list.bases);
    return result;
}

/* -- of the index, or the segments ------------------------------------------------------------------------------------------ */

static as_result open_file(const as_folder *folder, asi_time_source *source)
{
    const as_result result = asi_time_file_open_untrusted(
        &source->runs, folder->files, folder->path, source->record.recording_id, ASI_FILE_READ);
    source->has_file = AS_OK == result;
    const asi_time_era era = asi_time_era_of(&source->record);
    source->is_believed = source->has_file && asi_time_era_equals(&source->runs.header.era, &era);
    return AS_AGAIN == result ? AS_OK : result;
}

static as_result use_segments(const as_folder *folder, asi_time_source *source)
{
    asi_time_runs found = { 0 };
    const as_result result = asi_time_of_segments(folder, &source->record, source->extent.start_position,
        source->extent.limit_position, asi_time_of_ms(source->record.start_timestamp_ms), INT64_MAX, &found);
    if (AS_OK != result)
    {
        free(found.runs);
        return result;
    }
    asi_time_file_close(&source->runs);
    source->runs = (asi_time_file){ .files = folder->files, .fd = -1, .runs = found.runs, .slot_count = found.count };
    return AS_OK;
}

static as_result open_source(as_folder *folder, int64_t recording_id, bool is_bounded, asi_time_source *source)
{
    const asi_folder_recording *recording;
    *source = (asi_time_source){ .runs = { .fd = -1 } };
    as_result result = asi_folder_find(folder, recording_id, &recording);
    if (AS_OK == result)
    {
        source->record = recording->record;
        source->extent = (as_recording_extent){ .start_position = source->record.start_position, .limit_position = INT64_MAX };
        result = is_bounded ? as_folder_extent(folder, recording_id, &source->extent) : AS_OK;
    }
    /* Read after the extent: only the writers that the entry names now can have written the bytes that it covers. */
    result = AS_OK == result ? asi_catalog_reread(folder->files, folder->path, &source->record) : result;
    result = AS_OK == result ? open_file(folder, source) : result;
    if (AS_OK != result)
    {
        asi_time_source_close(source);
    }
    return result;
}

as_result asi_time_source_open(as_folder *folder, int64_t recording_id, asi_time_source *source)
{
    return open_source(folder, recording_id, true, source);
}

void asi_time_source_close(asi_time_source *source) { asi_time_file_close(&source->runs); }

as_result asi_time_source_open_believed(as_folder *folder, int64_t recording_id, bool is_bounded, asi_time_source *source)
{
    as_result result = open_source(folder, recording_id, is_bounded, source);
    if (AS_OK == result && !source->is_believed)
    {
        result = use_segments(folder, source);
        if (AS_OK != result)
        {
            asi_time_source_close(source);
        }
    }
    return result;
}
