/* Mutations that replace the catalog by a new file: of one record that may grow, and of all records. See catalog.h. */
#include "store/catalog_swap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/catalog_file.h"

/* Replaces the catalog atomically by `image`, of which [0, end) is used: its name always refers to a whole catalog. */
static as_result swap_file(asi_catalog *catalog, const uint8_t *image, int64_t end, int64_t file_length)
{
    const asi_file_ops *files = catalog->files;
    char temporary[AS_PATH_MAX + 8];
    snprintf(temporary, sizeof(temporary), "%s.new", catalog->path);
    const int fd = files->open(files->context, temporary, ASI_FILE_CREATE);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -fd, "cannot create %s", temporary);
    }
    int error = files->ftruncate(files->context, fd, 0);
    error = 0 == error ? asi_file_write_all(files, fd, image, end, 0) : error;
    error = 0 == error ? files->ftruncate(files->context, fd, file_length) : error;
    error = 0 == error ? files->fsync(files->context, fd) : error;
    error = 0 == error ? files->rename(files->context, temporary, catalog->path) : error;
    if (0 != error)
    {
        files->close(files->context, fd);
        files->unlink(files->context, temporary);
        return asi_fail_errno(AS_E_STORAGE, -error, "cannot write %s", temporary);
    }
    files->close(files->context, catalog->fd);
    catalog->fd = fd;
    catalog->file_length = file_length;
    catalog->must_rewrite = false;
    catalog->must_sync_directory = true;
    return AS_OK;
}

/* Makes the new file's bytes the mirror. */
static void take_image(asi_catalog *catalog, uint8_t *image, int64_t end)
{
    free(catalog->bytes);
    catalog->bytes = image;
    catalog->bytes_capacity = end + ASI_CATALOG_RECORD_HEADER_LENGTH;
    catalog->end = end;
}

as_result asi_catalog_replace(asi_catalog *catalog, int64_t recording_id, const asi_recording_params *params)
{
    asi_catalog_entry *entry;
    as_result result = asi_catalog_require(catalog, recording_id, &entry);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t offset = entry->offset;
    const int64_t old_length = asi_catalog_frame_length_at(catalog, offset);
    const int64_t new_length = asi_catalog_frame_length(catalog, params);
    /* Spec: 06 §4 - a shorter body keeps the frame's length; ours clears the rest and includes it in the checksum. */
    const int64_t frame_length = new_length > old_length ? new_length : old_length;
    const int64_t end = catalog->end + frame_length - old_length;
    int64_t file_length = 0;
    result = asi_catalog_grown_length(catalog, end, new_length, &file_length);
    uint8_t *image = AS_OK == result ? calloc(1, (size_t)end + ASI_CATALOG_RECORD_HEADER_LENGTH) : NULL;
    if (NULL == image)
    {
        return AS_OK == result ? asi_catalog_fail_memory(catalog) : result;
    }
    memcpy(image, catalog->bytes, (size_t)offset);
    memcpy(image + offset + RECORD_BODY, catalog->bytes + offset + RECORD_BODY, 16);
    asi_catalog_encode(catalog, image + offset, frame_length, recording_id, params);
    memcpy(image + offset + frame_length, catalog->bytes + offset + old_length, (size_t)(catalog->end - offset - old_length));
    result = swap_file(catalog, image, end, file_length);
    if (AS_OK != result)
    {
        free(image);
        return result;
    }
    take_image(catalog, image, end);
    asi_catalog_index_shift(&catalog->index, offset, frame_length - old_length);
    entry->session_id = params->session_id;
    entry->stream_id = params->stream_id;
    asi_store_release_i64(&entry->positions.start_position, params->start_position);
    asi_store_release_i64(&entry->positions.stop_position, params->stop_position);
    return catalog->sync_level > 0 ? asi_catalog_sync_directory(catalog) : AS_OK;
}

/* -- compaction ----------------------------------------------------------------------------------------------------------- */

static bool is_dropped(const asi_catalog *catalog, int64_t offset, asi_catalog_must_stay must_stay, void *context)
{
    const uint8_t *frame = catalog->bytes + offset;
    return ASI_RECORDING_DELETED == asi_get_i32(frame + RECORD_STATE) &&
        !must_stay(context, asi_get_i64(frame + RECORD_RECORDING_ID));
}

/* Copies the records that stay. Returns the bytes used. */
static int64_t pack(const asi_catalog *catalog, uint8_t *image, asi_catalog_must_stay must_stay, void *context)
{
    memcpy(image, catalog->bytes, ASI_CATALOG_HEADER_LENGTH);
    int64_t end = ASI_CATALOG_HEADER_LENGTH;
    for (int64_t offset = ASI_CATALOG_HEADER_LENGTH; offset < catalog->end;)
    {
        const int64_t frame_length = asi_catalog_frame_length_at(catalog, offset);
        if (!is_dropped(catalog, offset, must_stay, context))
        {
            memcpy(image + end, catalog->bytes + offset, (size_t)frame_length);
            end += frame_length;
        }
        offset += frame_length;
    }
    return end;
}

/* Updates the entries' offsets. Records and entries are both in id order. */
static void update_offsets(asi_catalog *catalog)
{
    int64_t count = 0;
    for (int64_t offset = ASI_CATALOG_HEADER_LENGTH; offset < catalog->end;
        offset += asi_catalog_frame_length_at(catalog, offset))
    {
        const uint8_t *frame = catalog->bytes + offset;
        if (ASI_RECORDING_VALID == asi_get_i32(frame + RECORD_STATE))
        {
            asi_catalog_entry *entry = catalog->index.entries[count++];
            AS_ASSERT(entry->recording_id == asi_get_i64(frame + RECORD_RECORDING_ID));
            entry->offset = offset;
        }
    }
    AS_ASSERT(count == catalog->index.count);
}

as_result asi_catalog_compact(
    asi_catalog *catalog, asi_catalog_must_stay must_stay, void *context, int64_t *reclaimed_bytes)
{
    uint8_t *image = calloc(1, (size_t)catalog->end + ASI_CATALOG_RECORD_HEADER_LENGTH);
    if (NULL == image)
    {
        return asi_catalog_fail_memory(catalog);
    }
    /* A crash must not bring back files whose record is gone: they would belong to no recording. */
    as_result result = asi_catalog_sync_directory(catalog);
    const int64_t end = pack(catalog, image, must_stay, context);
    int64_t file_length = catalog->least_length;
    while (file_length < end)
    {
        file_length += file_length / 2;
    }
    file_length = file_length < ASI_CATALOG_MAX_CAPACITY ? file_length : ASI_CATALOG_MAX_CAPACITY;
    result = AS_OK == result ? swap_file(catalog, image, end, file_length) : result;
    if (AS_OK != result)
    {
        free(image);
        return result;
    }
    *reclaimed_bytes = catalog->end - end;
    catalog->deleted_bytes -= *reclaimed_bytes;
    take_image(catalog, image, end);
    update_offsets(catalog);
    return asi_catalog_sync_directory(catalog);
}
