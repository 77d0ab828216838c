/* See leftovers.h. */
#include "server/leftovers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "server/archive.h"
#include "store/segment_layout.h"
#include "store/segment_write.h"

typedef struct leftovers
{
    const as_archive *archive;
    int64_t recording_id;
    int64_t last_base;   /* base of the segment that holds the stop position */
    int error;
    char path[AS_PATH_MAX + 320];
} leftovers;

static bool remove_if_above(void *context, const char *name)
{
    leftovers *left = context;
    const asi_file_ops *files = left->archive->files;
    int64_t recording_id;
    int64_t base;
    if (ASI_SEGMENT_NAME_LIVE == asi_segment_name_parse(name, &recording_id, &base) && recording_id == left->recording_id &&
        base > left->last_base)
    {
        snprintf(left->path, sizeof(left->path), "%s/%s", left->archive->config.archive_dir, name);
        left->error = files->unlink(files->context, left->path);
    }
    return 0 == left->error;
}

/* Zeros the last segment after the recording's end, so that recovery after a crash finds that end and not older bytes after it.
 * The file may be missing. */
static int clear_tail(const as_archive *archive, const asi_catalog_record *record, int64_t base, char *path, size_t capacity)
{
    const asi_file_ops *files = archive->files;
    if (AS_OK != asi_segment_path(path, capacity, archive->config.archive_dir, record->recording_id, base))
    {
        return -ENAMETOOLONG;
    }
    const int fd = asi_segment_open_own(files, path);
    if (fd < 0)
    {
        return -ENOENT == fd ? 0 : fd;
    }
    int error = 0;
    if (base == record->stop_position)
    {
        error = asi_segment_replace_by_empty(
            files, path, record->segment_file_length, (int32_t)archive->config.file_sync_level);
    }
    else if (files->size(files->context, fd) > record->stop_position - base)
    {
        error = files->ftruncate(files->context, fd, record->stop_position - base);
        error = 0 == error ? files->ftruncate(files->context, fd, record->segment_file_length) : error;
        error = 0 == error ? asi_file_sync(files, fd, (int32_t)archive->config.file_sync_level) : error;
    }
    files->close(files->context, fd);
    return error;
}

as_result asi_leftovers_clear_above(as_archive *archive, const asi_catalog_record *record)
{
    const asi_file_ops *files = archive->files;
    leftovers left = {
        .archive = archive,
        .recording_id = record->recording_id,
        .last_base = asi_segment_base(
            record->start_position, record->stop_position, record->term_buffer_length, record->segment_file_length),
    };
    int error = files->readdir(files->context, archive->config.archive_dir, remove_if_above, &left);
    const char *what = archive->config.archive_dir;
    if (0 != left.error)
    {
        error = left.error;
        what = left.path;
    }
    if (0 == error)
    {
        error = clear_tail(archive, record, left.last_base, left.path, sizeof(left.path));
        what = left.path;
    }
    if (0 == error && archive->config.file_sync_level > 0)
    {
        error = files->sync_directory(files->context, archive->config.archive_dir);
        what = archive->config.archive_dir;
    }
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot extend recording %" PRId64
        ": what is left behind its stop position can't be deleted: %s", record->recording_id, what);
}
