/* The POSIX files with a fault at call N. The store must survive it, because a disk may refuse any call, and a full one may
 * take part of a write. From the fault on every call that changes something fails ("the disk is gone") or only that one does. */
#ifndef AS_TESTS_STORE_FAILING_FILES_H
#define AS_TESTS_STORE_FAILING_FILES_H

#include <errno.h>

#include "check.h"
#include "store/file_ops.h"

typedef struct failing_files
{
    asi_file_ops ops;
    int64_t calls;     /* that change something, so far */
    int64_t fail_at;   /* 1 = the first; 0 = never */
    bool stays_broken;
    int error;
    int open_count;    /* descriptors not closed yet */
} failing_files;

static inline bool failing_now(failing_files *files)
{
    files->calls++;
    return files->fail_at > 0 && (files->calls == files->fail_at || (files->stays_broken && files->calls > files->fail_at));
}

static inline int failing_open(void *context, const char *path, asi_file_mode mode)
{
    failing_files *files = context;
    if (ASI_FILE_READ != mode && failing_now(files))
    {
        return -files->error;
    }
    const int fd = asi_file_ops_posix()->open(NULL, path, mode);
    files->open_count += fd >= 0;
    return fd;
}

static inline int failing_close(void *context, int fd)
{
    ((failing_files *)context)->open_count--;
    return asi_file_ops_posix()->close(NULL, fd);
}

static inline int64_t failing_size(void *context, int fd)
{
    (void)context;
    return asi_file_ops_posix()->size(NULL, fd);
}

static inline int64_t failing_pread(void *context, int fd, void *to, int64_t length, int64_t offset)
{
    (void)context;
    return asi_file_ops_posix()->pread(NULL, fd, to, length, offset);
}

/* The failing write leaves a first part behind, whole sectors of it: no disk tears within a sector, which the catalog relies on
 * for its 8-byte fields. */
static inline int64_t failing_pwrite(void *context, int fd, const void *from, int64_t length, int64_t offset)
{
    failing_files *files = context;
    if (failing_now(files))
    {
        const int64_t torn_end = (offset + length / 2) & ~511LL;
        if (torn_end > offset)
        {
            CHECK(asi_file_ops_posix()->pwrite(NULL, fd, from, torn_end - offset, offset) == torn_end - offset);
        }
        return -files->error;
    }
    return asi_file_ops_posix()->pwrite(NULL, fd, from, length, offset);
}

static inline int failing_ftruncate(void *context, int fd, int64_t length)
{
    failing_files *files = context;
    return failing_now(files) ? -files->error : asi_file_ops_posix()->ftruncate(NULL, fd, length);
}

static inline int failing_fsync(void *context, int fd)
{
    failing_files *files = context;
    return failing_now(files) ? -files->error : asi_file_ops_posix()->fsync(NULL, fd);
}

static inline int failing_sync_directory(void *context, const char *path)
{
    failing_files *files = context;
    return failing_now(files) ? -files->error : asi_file_ops_posix()->sync_directory(NULL, path);
}

static inline int failing_unlink(void *context, const char *path)
{
    failing_files *files = context;
    return failing_now(files) ? -files->error : asi_file_ops_posix()->unlink(NULL, path);
}

static inline int failing_rename(void *context, const char *from, const char *to)
{
    failing_files *files = context;
    return failing_now(files) ? -files->error : asi_file_ops_posix()->rename(NULL, from, to);
}

static inline int failing_readdir(
    void *context, const char *path, bool (*on_name)(void *name_context, const char *name), void *name_context)
{
    (void)context;
    return asi_file_ops_posix()->readdir(NULL, path, on_name, name_context);
}

static inline int64_t failing_usable_space(void *context, const char *path)
{
    (void)context;
    (void)path;
    return INT64_MAX;
}

static inline void failing_files_init(failing_files *files, int64_t fail_at, int error, bool stays_broken)
{
    *files = (failing_files){ .ops = { .open = failing_open, .close = failing_close, .size = failing_size, .pread = failing_pread,
        .pwrite = failing_pwrite, .ftruncate = failing_ftruncate, .fsync = failing_fsync, .fdatasync = failing_fsync,
        .sync_directory = failing_sync_directory, .unlink = failing_unlink, .rename = failing_rename, .readdir = failing_readdir,
        .usable_space = failing_usable_space }, .fail_at = fail_at, .error = error, .stays_broken = stays_broken };
    files->ops.context = files;
}

#endif
