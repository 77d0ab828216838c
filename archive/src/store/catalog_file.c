/* The catalog's file and its mirror in memory: writes, syncs, file length and encoding. Used by catalog.c and catalog_swap.c; see
 * catalog_file.h. */
#include "store/catalog_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

as_result asi_catalog_fail_memory(const asi_catalog *catalog)
{
    return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for %s", catalog->path);
}

as_result asi_catalog_require(const asi_catalog *catalog, int64_t recording_id, asi_catalog_entry **entry)
{
    *entry = asi_catalog_index_find(&catalog->index, recording_id);
    return NULL != *entry ? AS_OK : asi_fail(AS_E_USAGE, 0, "unknown recording id: %" PRId64, recording_id);
}

as_result asi_catalog_reserve(asi_catalog *catalog, int64_t needed)
{
    if (needed <= catalog->bytes_capacity)
    {
        return AS_OK;
    }
    const int64_t capacity = needed + needed / 2;
    uint8_t *grown = realloc(catalog->bytes, (size_t)capacity);
    if (NULL == grown)
    {
        return asi_catalog_fail_memory(catalog);
    }
    memset(grown + catalog->bytes_capacity, 0, (size_t)(capacity - catalog->bytes_capacity));
    catalog->bytes = grown;
    catalog->bytes_capacity = capacity;
    return AS_OK;
}

/* -- file ----------------------------------------------------------------------------------------------------------------- */

static as_result fail_write(const asi_catalog *catalog, int error)
{
    return asi_fail_errno(AS_E_STORAGE, -error, "cannot write %s", catalog->path);
}

as_result asi_catalog_put(asi_catalog *catalog, int64_t offset, const void *from, int64_t length)
{
    const int error = asi_file_write_all(catalog->files, catalog->fd, from, length, offset);
    if (0 != error)
    {
        return fail_write(catalog, error);
    }
    if (from != catalog->bytes + offset)
    {
        memcpy(catalog->bytes + offset, from, (size_t)length);
    }
    return AS_OK;
}

as_result asi_catalog_sync_directory(asi_catalog *catalog)
{
    const int error = catalog->files->sync_directory(catalog->files->context, catalog->archive_dir);
    catalog->must_sync_directory = 0 != error;
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot sync %s", catalog->archive_dir);
}

as_result asi_catalog_sync(asi_catalog *catalog)
{
    if (catalog->must_sync_directory && catalog->sync_level > 0)
    {
        const as_result result = asi_catalog_sync_directory(catalog);
        if (AS_OK != result)
        {
            return result;
        }
    }
    if (catalog->must_rewrite)
    {
        const int rewritten = asi_file_write_all(catalog->files, catalog->fd, catalog->bytes, catalog->end, 0);
        if (0 != rewritten)
        {
            return fail_write(catalog, rewritten);
        }
        catalog->must_rewrite = false;
    }
    const int error = asi_file_sync(catalog->files, catalog->fd, catalog->sync_level);
    catalog->must_rewrite = 0 != error;
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot sync %s", catalog->path);
}

as_result asi_catalog_grown_length(const asi_catalog *catalog, int64_t needed, int64_t frame_length, int64_t *length)
{
    *length = catalog->file_length;
    if (needed > *length && *length >= ASI_CATALOG_MAX_CAPACITY)
    {
        return asi_fail(AS_E_STORAGE, 0, "catalog is full, max capacity reached: %d", ASI_CATALOG_MAX_CAPACITY);
    }
    if (frame_length > RECORD_MAX_LENGTH)
    {
        return asi_fail(AS_E_STORAGE, 0, "recording is too big: total recording length is %" PRId64 " bytes, a record takes %d bytes",
            frame_length, RECORD_MAX_LENGTH);
    }
    if (needed > ASI_CATALOG_MAX_CAPACITY)
    {
        return asi_fail(AS_E_STORAGE, 0, "recording is too big: total recording length is %" PRId64 " bytes, available space is %"
            PRId64 " bytes", frame_length, ASI_CATALOG_MAX_CAPACITY - catalog->end);
    }
    while (*length < needed)
    {
        *length = *length + *length / 2 < ASI_CATALOG_MAX_CAPACITY ? *length + *length / 2 : ASI_CATALOG_MAX_CAPACITY;
    }
    return AS_OK;
}

/* -- records -------------------------------------------------------------------------------------------------------------- */

int64_t asi_catalog_frame_length(const asi_catalog *catalog, const asi_recording_params *params)
{
    return asi_align_i64((int64_t)RECORD_TEXTS + 12 + params->stripped_channel.length + params->original_channel.length +
        params->source_identity.length, catalog->alignment);
}

int64_t asi_catalog_frame_length_at(const asi_catalog *catalog, int64_t offset)
{
    return asi_align_i64(
        (int64_t)asi_get_i32(catalog->bytes + offset) + ASI_CATALOG_RECORD_HEADER_LENGTH, catalog->alignment);
}

int32_t asi_catalog_checksum(const asi_catalog *catalog, const uint8_t *frame)
{
    return NULL == catalog->checksum ?
        0 : (int32_t)catalog->checksum(frame + RECORD_BODY, asi_get_i32(frame + RECORD_LENGTH));
}

static uint8_t *put_text(uint8_t *at, asi_text text)
{
    asi_put_i32(at, text.length);
    memcpy(at + 4, text.at, (size_t)text.length);
    return at + 4 + text.length;
}

void asi_catalog_encode(const asi_catalog *catalog, uint8_t *frame, int64_t frame_length, int64_t recording_id,
    const asi_recording_params *params)
{
    asi_put_i64(frame + RECORD_RECORDING_ID, recording_id);
    asi_put_i64(frame + RECORD_START_TIMESTAMP, params->start_timestamp_ms);
    asi_put_i64(frame + RECORD_STOP_TIMESTAMP, params->stop_timestamp_ms);
    asi_put_i64(frame + RECORD_START_POSITION, params->start_position);
    asi_put_i64(frame + RECORD_STOP_POSITION, params->stop_position);
    asi_put_i32(frame + RECORD_INITIAL_TERM_ID, params->initial_term_id);
    asi_put_i32(frame + RECORD_SEGMENT_FILE_LENGTH, params->segment_file_length);
    asi_put_i32(frame + RECORD_TERM_BUFFER_LENGTH, params->term_buffer_length);
    asi_put_i32(frame + RECORD_MTU_LENGTH, params->mtu_length);
    asi_put_i32(frame + RECORD_SESSION_ID, params->session_id);
    asi_put_i32(frame + RECORD_STREAM_ID, params->stream_id);
    uint8_t *at = put_text(frame + RECORD_TEXTS, params->stripped_channel);
    at = put_text(at, params->original_channel);
    put_text(at, params->source_identity);
    asi_put_i32(frame + RECORD_LENGTH, (int32_t)(frame_length - ASI_CATALOG_RECORD_HEADER_LENGTH));
    asi_put_i32(frame + RECORD_STATE, ASI_RECORDING_VALID);
    asi_put_i32(frame + RECORD_CHECKSUM, asi_catalog_checksum(catalog, frame));
}
