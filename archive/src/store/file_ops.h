/* Interface for file I/O and durability, passed as a dependency so that tests can replace the disk. Segment writer, catalog and
 * recovery do all their I/O through it. Production passes asi_file_ops_posix(); tests pass wrappers that fail at the Nth call.
 *
 * Every call returns what the system call of its name returns, except that errors are -errno in the result. Reads and writes are
 * positional and may be short; asi_file_write_all and asi_file_read_full below loop. A read sees bytes written through another
 * descriptor of the same file at once (page cache). Only a sync makes them survive a power failure.
 * Thread rule: that of the implementation; the POSIX one: any. */
#ifndef ASI_STORE_FILE_OPS_H
#define ASI_STORE_FILE_OPS_H

#include "base/result.h"

/* Modes of the files and folders that the archive makes: its user writes, its group reads, others have no access to recordings. A
 * wider umask does not widen them, a narrower one narrows them further. An existing folder keeps its mode. */
#define ASI_ARCHIVE_FILE_MODE 0640
#define ASI_ARCHIVE_DIR_MODE 0750

typedef enum asi_file_mode
{
    ASI_FILE_READ,       /* must exist, read only */
    ASI_FILE_WRITE,      /* must exist, read and write */
    ASI_FILE_CREATE,     /* read and write, created if absent */
    ASI_FILE_CREATE_NEW  /* read and write, -EEXIST if present */
} asi_file_mode;

typedef struct asi_file_ops
{
    int (*open)(void *context, const char *path, asi_file_mode mode); /* descriptor or -errno */
    int (*close)(void *context, int fd);
    int64_t (*size)(void *context, int fd);
    int64_t (*pread)(void *context, int fd, void *to, int64_t length, int64_t offset);
    int64_t (*pwrite)(void *context, int fd, const void *from, int64_t length, int64_t offset);
    int (*ftruncate)(void *context, int fd, int64_t length);
    int (*fsync)(void *context, int fd);
    int (*fdatasync)(void *context, int fd);
    int (*sync_directory)(void *context, const char *path);
    int (*unlink)(void *context, const char *path);
    int (*rename)(void *context, const char *from, const char *to);
    /* Calls on_name for each entry but "." and ".."; on_name returns false to stop. */
    int (*readdir)(void *context, const char *path, bool (*on_name)(void *name_context, const char *name), void *name_context);
    int64_t (*usable_space)(void *context, const char *path); /* bytes; INT64_MAX if unknown */
    /* Frees the blocks of the range: it reads as zeros, and the length stays. May be NULL: not supported. */
    int (*punch)(void *context, int fd, int64_t offset, int64_t length);
    int64_t (*modified_ns)(void *context, int fd); /* may be NULL: last modification, ns since 1970-01-01 UTC, or -errno */
    /* Adds a second name to a file; -EEXIST if the name exists. NULL: not supported. Call asi_file_link instead. */
    int (*link)(void *context, const char *from, const char *to);
    int64_t (*names)(void *context, int fd); /* number of names of a file, or -errno; NULL if `link` is not supported */
    void *context;
} asi_file_ops;

const asi_file_ops *asi_file_ops_posix(void);

/* As link; -ENOTSUP if the file system or the disk does not support it. */
int asi_file_link(const asi_file_ops *files, const char *from, const char *to);
/* Syncs by level: 0 none, 1 data (fdatasync), 2 data and metadata (fsync); Spec: 06 §4, §7.2. Returns 0 or -errno. */
int asi_file_sync(const asi_file_ops *files, int fd, int32_t sync_level);
/* Writes all bytes. Returns 0 or -errno. */
int asi_file_write_all(const asi_file_ops *files, int fd, const void *from, int64_t length, int64_t offset);
/* Reads up to `length` bytes or the end of the file. Returns the bytes read or -errno. */
int64_t asi_file_read_full(const asi_file_ops *files, int fd, void *to, int64_t length, int64_t offset);
/* True if a regular file has that name and can be read. */
bool asi_file_is_there(const asi_file_ops *files, const char *path);

#endif
