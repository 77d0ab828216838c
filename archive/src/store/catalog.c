/* The archive's writable catalog. Format, order of writes and crash argument are in catalog.h. */
#include "store/catalog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/catalog_file.h"
#include "store/catalog_repair.h"
#include "store/checksum.h"

/* -- file ----------------------------------------------------------------------------------------------------------------- */

static as_result put_i32(asi_catalog *catalog, int64_t offset, int32_t value)
{
    return asi_catalog_put(catalog, offset, &value, sizeof(value));
}

static as_result put_i64(asi_catalog *catalog, int64_t offset, int64_t value)
{
    return asi_catalog_put(catalog, offset, &value, sizeof(value));
}

/* Finishes every mutation of fields. */
static as_result finish(asi_catalog *catalog, int64_t record_offset)
{
    as_result result = AS_OK;
    if (NULL != catalog->checksum)
    {
        result = put_i32(catalog, record_offset + RECORD_CHECKSUM, asi_catalog_checksum(catalog, catalog->bytes + record_offset));
    }
    return AS_OK == result ? asi_catalog_sync(catalog) : result;
}

/* Grows the file and the mirror to hold [0, needed). */
static as_result ensure_capacity(asi_catalog *catalog, int64_t needed, int64_t frame_length)
{
    const asi_file_ops *files = catalog->files;
    int64_t length;
    const as_result result = asi_catalog_grown_length(catalog, needed, frame_length, &length);
    if (AS_OK != result)
    {
        return result;
    }
    if (length > catalog->file_length)
    {
        int error = files->ftruncate(files->context, catalog->fd, length);
        error = 0 == error ? files->fsync(files->context, catalog->fd) : error;
        if (0 != error)
        {
            return asi_fail_errno(AS_E_STORAGE, -error, "cannot grow %s to %" PRId64 " bytes", catalog->path, length);
        }
        catalog->file_length = length;
    }
    return asi_catalog_reserve(catalog, needed);
}

/* -- open ----------------------------------------------------------------------------------------------------------------- */

/* Writes the header before the new catalog gets its name. */
static as_result create_file(asi_catalog *catalog, int64_t capacity)
{
    const asi_file_ops *files = catalog->files;
    char temporary[AS_PATH_MAX + 8];
    snprintf(temporary, sizeof(temporary), "%s.new", catalog->path);
    uint8_t header[ASI_CATALOG_HEADER_LENGTH] = { 0 };
    asi_put_i32(header + CATALOG_VERSION, ASI_ARCHIVE_STORAGE_VERSION);
    asi_put_i32(header + CATALOG_LENGTH, ASI_CATALOG_HEADER_LENGTH);
    asi_put_i32(header + CATALOG_RECORD_ALIGNMENT, ASI_CATALOG_ALIGNMENT);
    const int fd = files->open(files->context, temporary, ASI_FILE_CREATE);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -fd, "cannot create %s", temporary);
    }
    int error = files->ftruncate(files->context, fd, 0);
    error = 0 == error ? asi_file_write_all(files, fd, header, sizeof(header), 0) : error;
    error = 0 == error ? files->ftruncate(files->context, fd, capacity) : error;
    error = 0 == error ? files->fsync(files->context, fd) : error; /* at every level: without a header the archive can't start */
    error = 0 == error ? files->rename(files->context, temporary, catalog->path) : error;
    if (0 == error)
    {
        error = files->sync_directory(files->context, catalog->archive_dir);
    }
    if (0 != error)
    {
        files->close(files->context, fd);
        files->unlink(files->context, temporary);
        return asi_fail_errno(AS_E_STORAGE, -error, "cannot create %s", catalog->path);
    }
    catalog->fd = fd;
    return AS_OK;
}

static as_result open_file(asi_catalog *catalog, int64_t capacity)
{
    const asi_file_ops *files = catalog->files;
    catalog->fd = files->open(files->context, catalog->path, ASI_FILE_WRITE);
    if (-ENOENT == catalog->fd)
    {
        const as_result result = create_file(catalog, capacity);
        if (AS_OK != result)
        {
            return result;
        }
    }
    if (catalog->fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -catalog->fd, "cannot open %s", catalog->path);
    }
    return asi_catalog_read(files, catalog->fd, catalog->path, &catalog->bytes, &catalog->bytes_capacity);
}

/* Scans all records, builds the index and determines nextRecordingId. Spec: 06 §3.5. */
static as_result load(asi_catalog *catalog, const asi_catalog_params *params, asi_catalog_scan *scan)
{
    asi_catalog_record record;
    as_result result;
    while (AS_OK == (result = asi_catalog_scan_next_untrusted(scan, &record)))
    {
        catalog->deleted_bytes += ASI_RECORDING_DELETED == record.state ? record.frame_length : 0;
        if (ASI_RECORDING_VALID == record.state)
        {
            result = asi_recording_check_untrusted(&record);
            if (AS_OK != result)
            {
                result = asi_fail_in(result, "%s", catalog->path);
                asi_catalog_report_damage(params);
            }
            result = asi_catalog_index_append(&catalog->index, &record);
            if (AS_OK != result)
            {
                return result;
            }
        }
    }
    if (AS_AGAIN != result)
    {
        return result;
    }
    catalog->end = scan->offset;
    const int64_t least = scan->last_recording_id + 1;
    if (0 == scan->next_recording_id && 0 != least)
    {
        return put_i64(catalog, CATALOG_NEXT_RECORDING_ID, least);
    }
    if (scan->next_recording_id < least)
    {
        return asi_fail(AS_E_DATA, 0, "%s: invalid nextRecordingId: expected value greater or equal to %" PRId64 ", was %" PRId64
            "; the catalog is damaged, restore it from a copy", catalog->path, least, scan->next_recording_id);
    }
    return AS_OK;
}

/* Sets the file's length only after the content is known to be a catalog. */
static as_result open_checked(asi_catalog *catalog, const asi_catalog_params *params)
{
    const asi_file_ops *files = catalog->files;
    const int64_t capacity = params->capacity;
    asi_catalog_scan scan;
    as_result result = open_file(catalog, capacity);
    if (AS_OK == result)
    {
        result = asi_catalog_scan_start_untrusted(&scan, catalog->bytes, catalog->bytes_capacity, catalog->path);
    }
    if (AS_OK == result)
    {
        catalog->alignment = scan.alignment;
        /* The mark file may be lost, too. */
        const bool is_after_crash = params->is_after_crash || asi_catalog_get_writer(catalog).is_known;
        if (is_after_crash)
        {
            result = asi_catalog_repair(
                params, catalog->fd, catalog->path, catalog->bytes, catalog->bytes_capacity, scan.alignment);
            scan.next_recording_id = asi_get_i64(catalog->bytes + CATALOG_NEXT_RECORDING_ID);
        }
        result = AS_OK == result ? load(catalog, params, &scan) : result;
        /* A sync may have failed before the last archive died: then readable bytes need not be durable. */
        catalog->must_rewrite = is_after_crash && catalog->sync_level > 0;
        /* After a power failure the name may still be that of an older file. */
        catalog->must_sync_directory = true;
    }
    if (AS_OK != result)
    {
        return result;
    }
    catalog->least_length = capacity;
    catalog->file_length = files->size(files->context, catalog->fd);
    if (catalog->file_length >= 0 && catalog->file_length < capacity)
    {
        const int error = files->ftruncate(files->context, catalog->fd, capacity);
        catalog->file_length = 0 == error ? capacity : error;
    }
    return catalog->file_length >= 0 ? AS_OK :
        asi_fail_errno(AS_E_STORAGE, (int)-catalog->file_length, "cannot set the length of %s", catalog->path);
}

static void free_catalog(asi_catalog *catalog)
{
    if (catalog->fd >= 0)
    {
        catalog->files->close(catalog->files->context, catalog->fd);
    }
    asi_catalog_index_close(&catalog->index);
    free(catalog->bytes);
    free(catalog->archive_dir);
    free(catalog);
}

as_result asi_catalog_open(const asi_catalog_params *params, asi_catalog **catalog_out)
{
    if (params->capacity < ASI_CATALOG_MIN_CAPACITY || params->capacity > ASI_CATALOG_MAX_CAPACITY)
    {
        return asi_fail(AS_E_USAGE, 0, "catalog capacity is %" PRId64 ", %d to %d are possible", params->capacity,
            ASI_CATALOG_MIN_CAPACITY, ASI_CATALOG_MAX_CAPACITY);
    }
    asi_catalog *catalog = calloc(1, sizeof(*catalog));
    if (NULL != catalog)
    {
        catalog->archive_dir = strdup(params->archive_dir);
    }
    if (NULL == catalog || NULL == catalog->archive_dir)
    {
        free(catalog);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the catalog of %s", params->archive_dir);
    }
    catalog->files = params->files;
    catalog->fd = -1;
    catalog->sync_level = params->sync_level;
    catalog->checksum = asi_checksum_function(params->checksum);
    as_result result = AS_OK;
    if (snprintf(catalog->path, sizeof(catalog->path), "%s/" ASI_CATALOG_FILE, params->archive_dir) >= (int)sizeof(catalog->path))
    {
        result = asi_fail(AS_E_USAGE, ENAMETOOLONG, "archive folder name is too long: %s", params->archive_dir);
    }
    result = AS_OK == result ? open_checked(catalog, params) : result;
    if (AS_OK != result)
    {
        free_catalog(catalog);
        return result;
    }
    *catalog_out = catalog;
    return AS_OK;
}

void asi_catalog_close(asi_catalog *catalog)
{
    if (NULL != catalog)
    {
        catalog->files->fsync(catalog->files->context, catalog->fd);
        free_catalog(catalog);
    }
}

/* -- adding --------------------------------------------------------------------------------------------------------------- */

as_result asi_catalog_add(asi_catalog *catalog, const asi_recording_params *params, int64_t *recording_id)
{
    const int64_t frame_length = asi_catalog_frame_length(catalog, params);
    const int64_t offset = catalog->end;
    const int64_t id = asi_catalog_next_recording_id(catalog);
    as_result result = ensure_capacity(catalog, offset + frame_length, frame_length);
    result = AS_OK == result ? asi_catalog_reserve(catalog, offset + frame_length + ASI_CATALOG_RECORD_HEADER_LENGTH) : result;
    result = AS_OK == result ? put_i64(catalog, CATALOG_NEXT_RECORDING_ID, id + 1) : result;
    if (AS_OK != result)
    {
        return result;
    }
    uint8_t *frame = catalog->bytes + offset;
    /* Writes the body and a terminating header after it: remains of an interrupted add must not look like a record. */
    int64_t body_length = frame_length - RECORD_BODY + ASI_CATALOG_RECORD_HEADER_LENGTH;
    if (offset + RECORD_BODY + body_length > catalog->file_length)
    {
        body_length = catalog->file_length - offset - RECORD_BODY;
    }
    memset(frame, 0, (size_t)(frame_length + ASI_CATALOG_RECORD_HEADER_LENGTH));
    asi_catalog_encode(catalog, frame, frame_length, id, params);
    result = asi_catalog_put(catalog, offset + RECORD_BODY, frame + RECORD_BODY, body_length);
    result = AS_OK == result ? asi_catalog_sync(catalog) : result;
    result = AS_OK == result ? asi_catalog_put(catalog, offset, frame, ASI_CATALOG_RECORD_HEADER_LENGTH) : result;
    asi_catalog_record record;
    if (AS_OK == result && !asi_catalog_parse_untrusted(frame, frame_length, &record))
    {
        result = asi_fail(AS_E_INTERNAL, 0, "recording %" PRId64 " was encoded wrongly", id);
    }
    if (AS_OK == result)
    {
        record.offset = offset;
        result = asi_catalog_index_append(&catalog->index, &record);
    }
    if (AS_OK != result)
    {
        return result; /* `end` has not moved: the next add uses the same offset */
    }
    catalog->end = offset + frame_length;
    *recording_id = id;
    result = asi_catalog_sync(catalog);
    if (AS_OK != result && AS_NULL_VALUE == params->stop_position)
    {
        /* It is listed, but the caller will not record it: as an active one it could be neither extended nor purged. */
        (void)!asi_catalog_stop(catalog, id, params->start_position, params->start_timestamp_ms);
    }
    return result;
}

/* -- fields --------------------------------------------------------------------------------------------------------------- */

as_result asi_catalog_stop(asi_catalog *catalog, int64_t recording_id, int64_t stop_position, int64_t stop_timestamp_ms)
{
    asi_catalog_entry *entry;
    as_result result = asi_catalog_require(catalog, recording_id, &entry);
    if (AS_OK != result)
    {
        return result;
    }
    result = put_i64(catalog, entry->offset + RECORD_STOP_TIMESTAMP, stop_timestamp_ms);
    result = AS_OK == result ? asi_catalog_set_stop_position(catalog, recording_id, stop_position) : result;
    if (AS_OK != result)
    {
        /* The recording has stopped even if the write failed. */
        uint8_t *frame = catalog->bytes + entry->offset;
        asi_put_i64(frame + RECORD_STOP_TIMESTAMP, stop_timestamp_ms);
        asi_put_i64(frame + RECORD_STOP_POSITION, stop_position);
        asi_put_i32(frame + RECORD_CHECKSUM, asi_catalog_checksum(catalog, frame));
        asi_store_release_i64(&entry->positions.stop_position, stop_position);
        catalog->must_rewrite = true;
    }
    return result;
}

/* Takes back an extension that failed. Nobody will record, so the recording is stopped as it was, even if the disk refuses that
 * too; then the next mutation rewrites the file. `before` holds the record up to its texts. */
static void undo_extend(asi_catalog *catalog, asi_catalog_entry *entry, const uint8_t *before)
{
    memcpy(catalog->bytes + entry->offset, before, RECORD_TEXTS);
    entry->session_id = asi_get_i32(before + RECORD_SESSION_ID);
    asi_store_release_i64(&entry->positions.stop_position, asi_get_i64(before + RECORD_STOP_POSITION));
    catalog->must_rewrite = true;
    (void)!asi_catalog_sync(catalog);
}

as_result asi_catalog_extend(asi_catalog *catalog, int64_t recording_id, int64_t control_session_id, int64_t correlation_id,
    int32_t session_id)
{
    asi_catalog_entry *entry;
    uint8_t before[RECORD_TEXTS];
    as_result result = asi_catalog_require(catalog, recording_id, &entry);
    if (AS_OK != result)
    {
        return result;
    }
    memcpy(before, catalog->bytes + entry->offset, sizeof(before));
    entry->session_id = session_id;
    result = put_i64(catalog, entry->offset + RECORD_CONTROL_SESSION_ID, control_session_id);
    result = AS_OK == result ? put_i64(catalog, entry->offset + RECORD_CORRELATION_ID, correlation_id) : result;
    result = AS_OK == result ? put_i64(catalog, entry->offset + RECORD_STOP_TIMESTAMP, AS_NULL_VALUE) : result;
    result = AS_OK == result ? put_i32(catalog, entry->offset + RECORD_SESSION_ID, session_id) : result;
    result = AS_OK == result ? asi_catalog_set_stop_position(catalog, recording_id, AS_NULL_VALUE) : result;
    if (AS_OK != result)
    {
        undo_extend(catalog, entry, before);
    }
    return result;
}

as_result asi_catalog_set_start_position(asi_catalog *catalog, int64_t recording_id, int64_t position)
{
    asi_catalog_entry *entry;
    as_result result = asi_catalog_require(catalog, recording_id, &entry);
    result = AS_OK == result ? put_i64(catalog, entry->offset + RECORD_START_POSITION, position) : result;
    if (AS_OK != result)
    {
        return result;
    }
    asi_store_release_i64(&entry->positions.start_position, position);
    return finish(catalog, entry->offset);
}

as_result asi_catalog_set_stop_position(asi_catalog *catalog, int64_t recording_id, int64_t position)
{
    asi_catalog_entry *entry;
    as_result result = asi_catalog_require(catalog, recording_id, &entry);
    result = AS_OK == result ? put_i64(catalog, entry->offset + RECORD_STOP_POSITION, position) : result;
    if (AS_OK != result)
    {
        return result;
    }
    asi_store_release_i64(&entry->positions.stop_position, position);
    return finish(catalog, entry->offset);
}

as_result asi_catalog_invalidate(asi_catalog *catalog, int64_t recording_id, int32_t state)
{
    asi_catalog_entry *entry;
    as_result result = asi_catalog_require(catalog, recording_id, &entry);
    result = AS_OK == result ? put_i32(catalog, entry->offset + RECORD_STATE, state) : result;
    if (AS_OK != result)
    {
        return result;
    }
    catalog->deleted_bytes += ASI_RECORDING_DELETED == state ? asi_catalog_frame_length_at(catalog, entry->offset) : 0;
    asi_catalog_index_remove(&catalog->index, recording_id);
    return asi_catalog_sync(catalog);
}

/* -- reading -------------------------------------------------------------------------------------------------------------- */

static void read_entry(const asi_catalog *catalog, const asi_catalog_entry *entry, asi_catalog_record *record)
{
    const uint8_t *frame = catalog->bytes + entry->offset;
    const bool is_parsed = asi_catalog_parse_untrusted(frame, asi_catalog_frame_length_at(catalog, entry->offset), record);
    AS_ASSERT(is_parsed); /* was parsed when loaded or encoded by us */
    record->offset = entry->offset;
}

bool asi_catalog_find(const asi_catalog *catalog, int64_t recording_id, asi_catalog_record *record)
{
    const asi_catalog_entry *entry = asi_catalog_index_find(&catalog->index, recording_id);
    if (NULL != entry)
    {
        read_entry(catalog, entry, record);
    }
    return NULL != entry;
}

int64_t asi_catalog_count(const asi_catalog *catalog) { return catalog->index.count; }

int64_t asi_catalog_index_from(const asi_catalog *catalog, int64_t recording_id)
{
    return asi_catalog_index_search(&catalog->index, recording_id);
}

void asi_catalog_at(const asi_catalog *catalog, int64_t index, asi_catalog_record *record)
{
    read_entry(catalog, catalog->index.entries[index], record);
}

int64_t asi_catalog_last_of(const asi_catalog *catalog, int64_t from, int64_t below, int32_t session_id, int32_t stream_id)
{
    for (int64_t index = below - 1; index >= from; index--)
    {
        const asi_catalog_entry *entry = catalog->index.entries[index];
        if (entry->session_id == session_id && entry->stream_id == stream_id)
        {
            return index;
        }
    }
    return -1;
}

int64_t asi_catalog_next_recording_id(const asi_catalog *catalog)
{
    return asi_get_i64(catalog->bytes + CATALOG_NEXT_RECORDING_ID);
}

int64_t asi_catalog_capacity(const asi_catalog *catalog) { return catalog->file_length; }
int64_t asi_catalog_used_bytes(const asi_catalog *catalog) { return catalog->end; }
int64_t asi_catalog_deleted_bytes(const asi_catalog *catalog) { return catalog->deleted_bytes; }

const asi_recording_positions *asi_catalog_positions(const asi_catalog *catalog, int64_t recording_id)
{
    const asi_catalog_entry *entry = asi_catalog_index_find(&catalog->index, recording_id);
    return NULL != entry ? &entry->positions : NULL;
}

/* -- for recovery --------------------------------------------------------------------------------------------------------- */

as_result asi_catalog_skip_ids(asi_catalog *catalog, int64_t next_recording_id)
{
    if (next_recording_id <= asi_catalog_next_recording_id(catalog))
    {
        return AS_OK;
    }
    const as_result result = put_i64(catalog, CATALOG_NEXT_RECORDING_ID, next_recording_id);
    return AS_OK == result ? asi_catalog_sync(catalog) : result;
}

int64_t *asi_catalog_deleted(const asi_catalog *catalog, int64_t *count)
{
    asi_catalog_scan scan;
    asi_catalog_record record;
    int64_t capacity = 64;
    int64_t *ids = malloc((size_t)capacity * sizeof(*ids));
    *count = NULL == ids ? -1 : 0;
    as_result result = asi_catalog_scan_start_untrusted(&scan, catalog->bytes, catalog->end, catalog->path);
    while (*count >= 0 && AS_OK == result && AS_OK == (result = asi_catalog_scan_next_untrusted(&scan, &record)))
    {
        if (*count == capacity)
        {
            capacity *= 2;
            int64_t *grown = realloc(ids, (size_t)capacity * sizeof(*ids));
            if (NULL == grown)
            {
                free(ids);
                *count = -1;
                return NULL;
            }
            ids = grown;
        }
        if (ASI_RECORDING_DELETED == record.state)
        {
            ids[(*count)++] = record.recording_id;
        }
    }
    return ids;
}

asi_catalog_writer asi_catalog_get_writer(const asi_catalog *catalog)
{
    const uint8_t *header = catalog->bytes;
    const uint8_t kind = header[CATALOG_WRITER];
    return (asi_catalog_writer){ .is_known = 0xA0 == (kind & 0xF0), .file_sync_level = kind & 0x0F,
        .start = header[CATALOG_WRITER_START] | (uint32_t)header[CATALOG_WRITER_START + 1] << 8 |
            (uint32_t)header[CATALOG_WRITER_START + 2] << 16,
        .boot = (uint32_t)asi_get_i32(header + CATALOG_WRITER_BOOT) };
}

as_result asi_catalog_set_writer(asi_catalog *catalog, const asi_catalog_writer *writer)
{
    uint8_t bytes[8] = { 0 };
    if (writer->is_known)
    {
        bytes[0] = (uint8_t)(0xA0 | writer->file_sync_level);
        bytes[1] = (uint8_t)writer->start;
        bytes[2] = (uint8_t)(writer->start >> 8);
        bytes[3] = (uint8_t)(writer->start >> 16);
        asi_put_i32(bytes + 4, (int32_t)writer->boot);
    }
    as_result result = asi_catalog_put(catalog, CATALOG_WRITER, bytes, sizeof(bytes));
    result = AS_OK == result ? asi_catalog_sync(catalog) : result;
    return result;
}
