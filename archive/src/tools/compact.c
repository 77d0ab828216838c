/* Packs a catalog: copies only its VALID records into a new one. Spec: 06 §12 (`compact`).
 *
 * The new file is whole and synced before it is renamed over the old one. Ids, the order of offsets and nextRecordingId are
 * kept. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/catalog_format.h"
#include "store/catalog_scan.h"
#include "tools/compact.h"

as_result asi_tool_replace_file(
    const asi_file_ops *files, const char *dir, const char *temporary, const char *path, const uint8_t *bytes, int64_t length)
{
    const int fd = files->open(files->context, temporary, ASI_FILE_CREATE);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -fd, "cannot create %s", temporary);
    }
    int error = files->ftruncate(files->context, fd, 0);
    error = 0 == error ? asi_file_write_all(files, fd, bytes, length, 0) : error;
    error = 0 == error ? files->fsync(files->context, fd) : error;
    files->close(files->context, fd);
    error = 0 == error ? files->rename(files->context, temporary, path) : error;
    error = 0 == error ? files->sync_directory(files->context, dir) : error;
    if (0 != error)
    {
        files->unlink(files->context, temporary);
        return asi_fail_errno(AS_E_STORAGE, -error, "cannot write %s as %s", path, temporary);
    }
    return AS_OK;
}

as_result as_catalog_compact(as_catalog *catalog, int64_t *deleted, int64_t *reclaimed)
{
    if (catalog->fd < 0)
    {
        return asi_fail(AS_E_USAGE, 0, "%s was opened for reading", catalog->path);
    }
    if (NULL != catalog->damage)
    {
        return asi_fail(AS_E_DATA, 0, "%s; a compaction would lose what can't be read", catalog->damage);
    }
    uint8_t *packed = malloc((size_t)catalog->scan.offset);
    if (NULL == packed)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for %s", catalog->path);
    }
    memcpy(packed, catalog->bytes, ASI_CATALOG_HEADER_LENGTH);
    if (0 == catalog->scan.next_recording_id)
    {
        asi_put_i64(packed + CATALOG_NEXT_RECORDING_ID, catalog->scan.last_recording_id + 1);
    }
    int64_t length = ASI_CATALOG_HEADER_LENGTH;
    int64_t dropped = 0;
    for (int64_t i = 0; i < catalog->count; i++)
    {
        const asi_catalog_record *record = &catalog->records[i];
        if (AS_RECORDING_VALID == record->state)
        {
            memcpy(packed + length, catalog->bytes + record->offset, (size_t)record->frame_length);
            length += record->frame_length;
        }
        else
        {
            dropped++;
        }
    }
    char temporary[AS_PATH_MAX + 16];
    snprintf(temporary, sizeof(temporary), "%s.compact", catalog->path);
    const as_result result =
        asi_tool_replace_file(catalog->files, catalog->dir, temporary, catalog->path, packed, length);
    free(packed);
    if (AS_OK == result)
    {
        *deleted = dropped;
        *reclaimed = catalog->scan.offset - length;
    }
    return result;
}
