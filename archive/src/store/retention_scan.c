/* See retention_scan.h. Reads the folder through its public API, while the archive continues to run. */
#include "store/retention_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/result.h"
#include "store/segment_layout.h"

#define BLOCK_BYTES 512 /* of st_blocks, by POSIX on Linux */

typedef struct segment_file
{
    int64_t recording_id;
    as_retention_segment segment; /* written_ms: its modification time */
} segment_file;

typedef struct file_list
{
    segment_file *files; /* owned; by id and base */
    int64_t count;
    int64_t capacity;
} file_list;

static as_result fail_memory(void) { return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for a retention"); }

/* -- files ---------------------------------------------------------------------------------------------------------------- */

static as_result append_file(file_list *list, const segment_file *file)
{
    if (list->count == list->capacity)
    {
        const int64_t capacity = 0 == list->capacity ? 256 : list->capacity * 2;
        segment_file *grown = realloc(list->files, (size_t)capacity * sizeof(*grown));
        if (NULL == grown)
        {
            return fail_memory();
        }
        list->files = grown;
        list->capacity = capacity;
    }
    list->files[list->count++] = *file;
    return AS_OK;
}

static int by_id_and_base(const void *a, const void *b)
{
    const segment_file *left = a;
    const segment_file *right = b;
    if (left->recording_id != right->recording_id)
    {
        return left->recording_id < right->recording_id ? -1 : 1;
    }
    return left->segment.base < right->segment.base ? -1 : left->segment.base > right->segment.base ? 1 : 0;
}

static as_result list_files(const char *archive_dir, file_list *list)
{
    DIR *dir = opendir(archive_dir);
    if (NULL == dir)
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot list archive folder %s", archive_dir);
    }
    as_result result = AS_OK;
    for (const struct dirent *entry = readdir(dir); NULL != entry && AS_OK == result; entry = readdir(dir))
    {
        segment_file file;
        struct stat status;
        if (ASI_SEGMENT_NAME_LIVE == asi_segment_name_parse(entry->d_name, &file.recording_id, &file.segment.base) &&
            0 == fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW)) /* otherwise purged meanwhile */
        {
            file.segment.bytes = (int64_t)status.st_blocks * BLOCK_BYTES;
            file.segment.written_ms = (int64_t)status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1000000;
            result = append_file(list, &file);
        }
    }
    closedir(dir);
    if (list->count > 0)
    {
        qsort(list->files, (size_t)list->count, sizeof(list->files[0]), by_id_and_base);
    }
    return result;
}

/* Copies the recording's files as segments. Returns their number. */
static int64_t take_files(const file_list *list, const as_recording *recording, as_retention_segment *segments)
{
    const int64_t first =
        asi_segment_base(recording->start_position, recording->start_position, recording->term_buffer_length,
            recording->segment_file_length);
    int64_t low = 0;
    int64_t high = list->count;
    while (low < high)
    {
        const int64_t middle = low + (high - low) / 2;
        if (list->files[middle].recording_id < recording->recording_id)
        {
            low = middle + 1;
        }
        else
        {
            high = middle;
        }
    }
    int64_t count = 0;
    for (; low < list->count && list->files[low].recording_id == recording->recording_id; low++)
    {
        const as_retention_segment *segment = &list->files[low].segment;
        if (segment->base >= first && 0 == (segment->base - first) % recording->segment_file_length)
        {
            segments[count++] = *segment;
        }
    }
    return count;
}

/* -- times ---------------------------------------------------------------------------------------------------------------- */

static void set_times(as_folder *folder, const as_recording *recording, int64_t limit, as_retention_segment *segments,
    int64_t count, int64_t *scratch)
{
    int64_t *ends = scratch;
    int64_t *times_ns = scratch + count;
    uint8_t *sources = (uint8_t *)(scratch + 2 * count);
    const int64_t length = recording->segment_file_length;
    for (int64_t i = 0; i < count; i++)
    {
        const int64_t end = segments[i].base + length < limit ? segments[i].base + length : limit;
        ends[i] = end - 1 > recording->start_position ? end - 1 : recording->start_position;
    }
    const bool is_indexed =
        count > 0 && AS_OK == as_folder_times_at(folder, recording->recording_id, ends, count, times_ns, sources);
    for (int64_t i = 0; i < count; i++)
    {
        const bool is_last = segments[i].base + length >= limit;
        if (is_indexed && AS_TIME_FROM_INDEX == sources[i])
        {
            segments[i].written_ms = times_ns[i] / 1000000;
        }
        else if (is_last && AS_NULL_VALUE != recording->stop_timestamp_ms)
        {
            segments[i].written_ms = recording->stop_timestamp_ms;
        }
    }
}

/* -- streams -------------------------------------------------------------------------------------------------------------- */

typedef struct stream_of
{
    as_retention_recording *recording;
    const char *channel;
    int32_t stream_id;
} stream_of;

static int compare_streams(const stream_of *left, const stream_of *right)
{
    const int channels = strcmp(left->channel, right->channel);
    return 0 != channels ? channels : left->stream_id < right->stream_id ? -1 : left->stream_id > right->stream_id ? 1 : 0;
}

static int by_stream(const void *a, const void *b) { return compare_streams(a, b); }

static void number_streams(stream_of *streams, int64_t count)
{
    qsort(streams, (size_t)count, sizeof(*streams), by_stream);
    int64_t number = 0;
    for (int64_t i = 0; i < count; i++)
    {
        number += i > 0 && 0 != compare_streams(&streams[i], &streams[i - 1]) ? 1 : 0;
        streams[i].recording->stream = number;
    }
}

/* ------------------------------------------------------------------------------------------------------------------------- */

static as_result scan_recordings(
    as_folder *folder, const file_list *list, stream_of *streams, int64_t *scratch, asi_retention_scan *scan)
{
    as_retention_segment *segments = scan->segments;
    const int64_t count = as_folder_recording_count(folder);
    for (int64_t i = 0; i < count; i++)
    {
        as_recording recording;
        as_recording_extent extent;
        const as_result result = as_folder_recording_at(folder, i, &recording);
        if (AS_OK != result)
        {
            return result;
        }
        if (AS_OK != as_folder_extent(folder, recording.recording_id, &extent))
        {
            continue;
        }
        const int64_t segment_count = take_files(list, &recording, segments);
        const int64_t limit = extent.limit_position;
        set_times(folder, &recording, limit, segments, segment_count, scratch);
        as_retention_recording *one = &scan->recordings[scan->count];
        *one = (as_retention_recording){ .recording_id = recording.recording_id,
            .is_active = AS_NULL_VALUE == recording.stop_position,
            .is_kept = as_is_ledger(recording.stream_id, recording.original_channel), .stop_timestamp_ms = recording.stop_timestamp_ms,
            .last_base = asi_segment_base(recording.start_position,
                limit > recording.start_position ? limit : recording.start_position, recording.term_buffer_length,
                recording.segment_file_length),
            .segments = segments, .segment_count = segment_count };
        streams[scan->count++] =
            (stream_of){ .recording = one, .channel = recording.stripped_channel, .stream_id = recording.stream_id };
        segments += segment_count;
    }
    number_streams(streams, scan->count);
    return AS_OK;
}

as_result asi_retention_scan_open(const char *archive_dir, const char *aeron_dir, asi_retention_scan *scan)
{
    as_folder *folder = NULL;
    as_folder_options options;
    as_folder_options_init(&options);
    options.aeron_dir = aeron_dir;
    *scan = (asi_retention_scan){ 0 };
    as_result result = as_folder_open(archive_dir, &options, &folder);
    if (AS_OK != result)
    {
        return result;
    }
    file_list list = { 0 };
    stream_of *streams = NULL;
    int64_t *scratch = NULL;
    result = list_files(archive_dir, &list);
    if (AS_OK == result)
    {
        const size_t count = (size_t)as_folder_recording_count(folder) + 1;
        const size_t file_count = (size_t)list.count + 1;
        scan->recordings = calloc(count, sizeof(*scan->recordings));
        scan->segments = calloc(file_count, sizeof(*scan->segments));
        streams = calloc(count, sizeof(*streams));
        scratch = calloc(file_count, 2 * sizeof(*scratch) + 1);
        result = NULL == scan->recordings || NULL == scan->segments || NULL == streams || NULL == scratch ? fail_memory() :
            scan_recordings(folder, &list, streams, scratch, scan);
    }
    free(scratch);
    free(streams);
    free(list.files);
    as_folder_close(folder);
    if (AS_OK != result)
    {
        asi_retention_scan_close(scan);
    }
    return result;
}

void asi_retention_scan_close(asi_retention_scan *scan)
{
    free(scan->recordings);
    free(scan->segments);
    *scan = (asi_retention_scan){ 0 };
}
