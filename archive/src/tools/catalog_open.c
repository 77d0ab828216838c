/* as_catalog: opens a folder's catalog with records in any state, and reads its mark file; see catalog_open.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/error_log.h"
#include "store/catalog_format.h"
#include "store/catalog_scan.h"
#include "store/folder.h"
#include "store/folder_extent.h"
#include "store/segment_layout.h"
#include "tools/catalog_open.h"

#define TEXTS 3

static as_result fail_memory(const as_catalog *catalog)
{
    return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for %s", catalog->path);
}

/* -- opening -------------------------------------------------------------------------------------------------------------- */

static char *keep_text(asi_text text)
{
    char *kept = malloc((size_t)text.length + 1);
    if (NULL != kept)
    {
        memcpy(kept, text.at, (size_t)text.length);
        kept[text.length] = '\0';
    }
    return kept;
}

static as_result keep_record(as_catalog *catalog, const asi_catalog_record *record, int64_t *capacity)
{
    if (catalog->count == *capacity)
    {
        const int64_t grown = 0 == *capacity ? 64 : *capacity * 2;
        asi_catalog_record *records = realloc(catalog->records, (size_t)grown * sizeof(*records));
        catalog->records = NULL != records ? records : catalog->records;
        char **texts = realloc(catalog->texts, (size_t)grown * TEXTS * sizeof(*texts));
        catalog->texts = NULL != texts ? texts : catalog->texts;
        if (NULL == records || NULL == texts)
        {
            return fail_memory(catalog);
        }
        *capacity = grown;
    }
    const asi_text texts[TEXTS] = { record->stripped_channel, record->original_channel, record->source_identity };
    char **kept = &catalog->texts[catalog->count * TEXTS];
    catalog->records[catalog->count] = *record;
    catalog->count++;
    memset(kept, 0, TEXTS * sizeof(*kept));
    for (int i = 0; i < TEXTS; i++)
    {
        kept[i] = keep_text(texts[i]);
        if (NULL == kept[i])
        {
            return fail_memory(catalog);
        }
    }
    return AS_OK;
}

/* Scans records up to the first impossible one: the tools show and repair the rest. */
static as_result scan_records(as_catalog *catalog)
{
    as_result result = asi_catalog_scan_start_untrusted(&catalog->scan, catalog->bytes, catalog->bytes_length, catalog->path);
    asi_catalog_record record;
    int64_t capacity = 0;
    while (AS_OK == result && AS_OK == (result = asi_catalog_scan_next_untrusted(&catalog->scan, &record)))
    {
        result = keep_record(catalog, &record, &capacity);
    }
    result = AS_AGAIN == result ? asi_catalog_scan_check_end_untrusted(&catalog->scan) : result;
    if (AS_E_DATA == result && NULL != catalog->scan.path) /* the file's header was valid */
    {
        catalog->damage = strdup(as_error_text());
        return NULL != catalog->damage ? AS_OK : fail_memory(catalog);
    }
    return result;
}

static as_result read_file(as_catalog *catalog, bool writable)
{
    const asi_file_ops *files = catalog->files;
    const int fd = files->open(files->context, catalog->path, writable ? ASI_FILE_WRITE : ASI_FILE_READ);
    if (fd < 0)
    {
        return asi_catalog_fail_open(catalog->dir, catalog->path, fd);
    }
    as_result result = asi_catalog_read(files, fd, catalog->path, &catalog->bytes, &catalog->bytes_length);
    catalog->capacity = files->size(files->context, fd);
    if (AS_OK == result && catalog->capacity < 0)
    {
        result = asi_fail_errno(AS_E_STORAGE, (int)-catalog->capacity, "cannot find the length of %s", catalog->path);
    }
    if (writable && AS_OK == result)
    {
        catalog->fd = fd;
    }
    else
    {
        files->close(files->context, fd);
    }
    return result;
}

as_result as_catalog_open(const char *archive_dir, bool writable, as_catalog **catalog_out)
{
    as_catalog *catalog = calloc(1, sizeof(*catalog));
    if (NULL == catalog)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the catalog of %s", archive_dir);
    }
    catalog->files = asi_file_ops_posix();
    catalog->fd = -1;
    as_result result = AS_OK;
    if ((size_t)snprintf(catalog->dir, sizeof(catalog->dir), "%s", archive_dir) >= sizeof(catalog->dir) ||
        (size_t)snprintf(catalog->path, sizeof(catalog->path), "%s/" ASI_CATALOG_FILE, archive_dir) >= sizeof(catalog->path))
    {
        result = asi_fail(AS_E_USAGE, ENAMETOOLONG, "archive folder name is too long: %s", archive_dir);
    }
    result = AS_OK == result && writable ? asi_tool_lock_take(&catalog->lock, archive_dir) : result;
    result = AS_OK == result ? read_file(catalog, writable) : result;
    result = AS_OK == result ? scan_records(catalog) : result;
    if (AS_OK != result)
    {
        as_catalog_close(catalog);
        return result;
    }
    *catalog_out = catalog;
    return AS_OK;
}

void as_catalog_close(as_catalog *catalog)
{
    if (NULL == catalog)
    {
        return;
    }
    if (catalog->fd >= 0)
    {
        catalog->files->close(catalog->files->context, catalog->fd);
    }
    asi_tool_lock_release(&catalog->lock);
    for (int64_t i = 0; i < catalog->count * TEXTS; i++)
    {
        free(catalog->texts[i]);
    }
    free(catalog->texts);
    free(catalog->records);
    free(catalog->damage);
    free(catalog->bytes);
    free(catalog);
}

/* -- reading -------------------------------------------------------------------------------------------------------------- */

as_result as_catalog_get_info(const as_catalog *catalog, as_catalog_info *info)
{
    *info = (as_catalog_info){ .version = catalog->scan.version, .alignment = catalog->scan.alignment,
        .next_recording_id = catalog->scan.next_recording_id, .capacity = catalog->capacity, .used = catalog->scan.offset,
        .damage = NULL != catalog->damage ? catalog->damage : "" };
    return AS_OK;
}

int64_t as_catalog_count(const as_catalog *catalog) { return catalog->count; }

as_result asi_tool_record(const as_catalog *catalog, int64_t index, bool is_writing, asi_catalog_record **record)
{
    if (index < 0 || index >= catalog->count)
    {
        return asi_fail(AS_E_USAGE, 0, "record index %" PRId64 " is not below the count %" PRId64, index, catalog->count);
    }
    if (is_writing && catalog->fd < 0)
    {
        return asi_fail(AS_E_USAGE, 0, "%s was opened for reading", catalog->path);
    }
    *record = &catalog->records[index];
    return AS_OK;
}

as_result as_catalog_at(const as_catalog *catalog, int64_t index, as_catalog_entry *entry)
{
    asi_catalog_record *record = NULL;
    const as_result result = asi_tool_record(catalog, index, false, &record);
    if (AS_OK != result)
    {
        return result;
    }
    char **texts = &catalog->texts[index * TEXTS];
    *entry = (as_catalog_entry){ .control_session_id = record->control_session_id, .correlation_id = record->correlation_id,
        .state = record->state, .checksum = record->checksum, .offset = record->offset, .length = record->frame_length,
        .recording = { .recording_id = record->recording_id, .start_timestamp_ms = record->start_timestamp_ms,
            .stop_timestamp_ms = record->stop_timestamp_ms, .start_position = record->start_position,
            .stop_position = record->stop_position, .initial_term_id = record->initial_term_id,
            .segment_file_length = record->segment_file_length, .term_buffer_length = record->term_buffer_length,
            .mtu_length = record->mtu_length, .session_id = record->session_id, .stream_id = record->stream_id,
            .stripped_channel = texts[0], .original_channel = texts[1], .source_identity = texts[2] } };
    return AS_OK;
}

as_result as_catalog_mark(as_catalog *catalog, as_mark_view *view)
{
    asi_mark_info *mark = &catalog->mark;
    const as_result result = asi_mark_read_any_untrusted(catalog->dir, mark);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_clock clock = asi_clock_system();
    *view = (as_mark_view){ .version = mark->version, .activity_timestamp_ms = mark->activity_timestamp_ms,
        .start_timestamp_ms = mark->start_timestamp_ms, .pid = mark->pid, .archive_id = mark->archive_id,
        .control_stream_id = mark->control_stream_id, .local_control_stream_id = mark->local_control_stream_id,
        .events_stream_id = mark->events_stream_id, .header_length = mark->header_length,
        .error_buffer_length = mark->error_buffer_length, .is_live = asi_mark_is_live(mark, asi_clock_ms(&clock)),
        .path = mark->path, .control_channel = mark->control_channel, .local_control_channel = mark->local_control_channel,
        .events_channel = mark->events_channel, .aeron_dir = mark->aeron_dir };
    return AS_OK;
}

typedef struct error_call
{
    as_on_error_entry on_entry;
    void *context;
} error_call;

static void pass_on(const asi_error_entry *entry, void *context)
{
    const error_call *call = context;
    call->on_entry(call->context, entry->count, entry->first_ms, entry->last_ms, entry->text, entry->text_length);
}

int64_t as_catalog_errors(as_catalog *catalog, as_on_error_entry on_entry, void *context)
{
    asi_mark_info *mark = &catalog->mark;
    asi_map map = { 0 };
    if (AS_OK != asi_mark_read_any_untrusted(catalog->dir, mark) || mark->header_length < ASI_CATALOG_HEADER_LENGTH ||
        0 != mark->header_length % 8 || mark->error_buffer_length <= 0 ||
        AS_OK != asi_map_open(&map, mark->path, (int64_t)mark->header_length + mark->error_buffer_length, false))
    {
        return 0;
    }
    error_call call = { .on_entry = on_entry, .context = context };
    const int64_t count = asi_error_log_read_untrusted(map.base + mark->header_length, mark->error_buffer_length, 0, pass_on, &call);
    asi_map_close(&map);
    return count;
}

/* -- writing -------------------------------------------------------------------------------------------------------------- */

asi_segment_source asi_tool_source(const as_catalog *catalog, const asi_catalog_record *record)
{
    return (asi_segment_source){ .files = catalog->files, .archive_dir = catalog->dir, .recording_id = record->recording_id,
        .start_position = record->start_position, .term_length = record->term_buffer_length,
        .segment_length = record->segment_file_length, .initial_term_id = record->initial_term_id, .stream_id = record->stream_id,
        .mtu_length = record->mtu_length };
}

as_result asi_tool_put(as_catalog *catalog, int64_t offset, const void *from, int64_t length)
{
    asi_tool_lock_beat(&catalog->lock);
    const int error = asi_file_write_all(catalog->files, catalog->fd, from, length, offset);
    if (0 != error)
    {
        return asi_fail_errno(AS_E_STORAGE, -error, "cannot write %s", catalog->path);
    }
    memcpy(catalog->bytes + offset, from, (size_t)length);
    return AS_OK;
}

uint32_t asi_tool_catalog_checksum(const as_catalog *catalog, const asi_catalog_record *record, as_record_checksum checksum)
{
    const uint8_t *frame = catalog->bytes + record->offset;
    return asi_checksum_function(checksum)(frame + RECORD_BODY, asi_get_i32(frame + RECORD_LENGTH));
}

as_record_checksum asi_tool_catalog_checksum_kind(const as_catalog *catalog, const asi_catalog_record *record)
{
    static const as_record_checksum kinds[] = { AS_CHECKSUM_CRC32, AS_CHECKSUM_CRC32C };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
    {
        if (0 != record->checksum && asi_tool_catalog_checksum(catalog, record, kinds[i]) == (uint32_t)record->checksum)
        {
            return kinds[i];
        }
    }
    return AS_CHECKSUM_NONE;
}

as_result asi_tool_refresh_checksum(as_catalog *catalog, asi_catalog_record *record, as_record_checksum checksum)
{
    as_result result = AS_OK;
    if (AS_CHECKSUM_CRC32 == checksum || AS_CHECKSUM_CRC32C == checksum)
    {
        record->checksum = (int32_t)asi_tool_catalog_checksum(catalog, record, checksum);
        result = asi_tool_put(catalog, record->offset + RECORD_CHECKSUM, &record->checksum, sizeof(record->checksum));
    }
    const int error = AS_OK == result ? catalog->files->fsync(catalog->files->context, catalog->fd) : 0;
    return 0 == error ? result : asi_fail_errno(AS_E_STORAGE, -error, "cannot sync %s", catalog->path);
}

as_record_checksum asi_tool_frame_checksum(const as_catalog *catalog, const asi_catalog_record *record, int64_t limit)
{
    const asi_segment_source source = asi_tool_source(catalog, record);
    asi_segment_window window;
    asi_segment_window_init(&window, &source);
    as_record_checksum checksum = AS_CHECKSUM_NONE;
    const as_result result =
        asi_folder_detect_checksum(&window, record->start_position, limit, record->session_id, &checksum, NULL);
    asi_segment_window_close(&window);
    return AS_OK == result ? checksum : AS_CHECKSUM_NONE;
}

as_result as_catalog_set_state(as_catalog *catalog, int64_t index, as_recording_state state)
{
    static const char *const names[] = { "INVALID", "VALID", "DELETED" };
    asi_catalog_record *record = NULL;
    as_result result = asi_tool_record(catalog, index, true, &record);
    if (AS_OK != result)
    {
        return result;
    }
    const bool is_known = record->state >= AS_RECORDING_INVALID && record->state <= AS_RECORDING_DELETED;
    if (!(AS_RECORDING_VALID == record->state && AS_RECORDING_INVALID == state) &&
        !(AS_RECORDING_INVALID == record->state && AS_RECORDING_VALID == state))
    {
        return asi_fail(AS_E_USAGE, 0, "(recordingId=%" PRId64 ") state transition %s -> %s is not allowed", record->recording_id,
            is_known ? names[record->state] : "UNKNOWN", state >= 0 && state <= AS_RECORDING_DELETED ? names[state] : "UNKNOWN");
    }
    const int32_t value = (int32_t)state;
    result = asi_tool_put(catalog, record->offset + RECORD_STATE, &value, sizeof(value));
    if (AS_OK == result)
    {
        record->state = value;
        result = asi_tool_refresh_checksum(catalog, record, AS_CHECKSUM_NONE);
    }
    return result;
}

as_result as_catalog_set_stop(as_catalog *catalog, int64_t index, int64_t stop_position, int64_t stop_timestamp_ms)
{
    asi_catalog_record *record = NULL;
    as_result result = asi_tool_record(catalog, index, true, &record);
    if (AS_OK != result)
    {
        return result;
    }
    if (AS_NULL_VALUE != stop_position &&
        (stop_position < record->start_position || 0 != stop_position % AS_FRAME_ALIGNMENT))
    {
        return asi_fail(AS_E_USAGE, 0, "(recordingId=%" PRId64 ") cannot end at position %" PRId64 ": it starts at %" PRId64
            ", and frames end at multiples of %d", record->recording_id, stop_position, record->start_position, AS_FRAME_ALIGNMENT);
    }
    const as_record_checksum kind = asi_tool_catalog_checksum_kind(catalog, record);
    result = asi_tool_put(catalog, record->offset + RECORD_STOP_TIMESTAMP, &stop_timestamp_ms, sizeof(stop_timestamp_ms));
    result = AS_OK == result ?
        asi_tool_put(catalog, record->offset + RECORD_STOP_POSITION, &stop_position, sizeof(stop_position)) : result;
    if (AS_OK == result)
    {
        record->stop_timestamp_ms = stop_timestamp_ms;
        record->stop_position = stop_position;
        result = asi_tool_refresh_checksum(catalog, record, kind);
    }
    return result;
}

bool asi_tool_progress_add(asi_tool_progress *progress, int64_t bytes)
{
    progress->done += bytes;
    if (progress->done - progress->reported < ASI_TOOL_PROGRESS_BYTES)
    {
        return true;
    }
    progress->reported = progress->done;
    asi_tool_lock_beat(progress->lock);
    return NULL == progress->on_progress || progress->on_progress(progress->context, progress->done);
}
