/* Files and durability as an injected dependency: the disk's swap point. Segment writer, catalog and recovery do all their I/O
 * through it; production passes asi_file_ops_posix(), tests pass wrappers that fail at the Nth call.
 *
 * Every call answers like the system call it is named after, but with -errno in the result instead of a global. Reads and
 * writes are positional and may be short; asi_file_write_all and asi_file_read_full below loop. Reads of bytes that were
 * written by another descriptor of the same file see them at once (page cache); only sync makes them survive a power cut.
 * Thread rule: as the implementation; the POSIX one: any. */
#ifndef ASI_STORE_FILE_OPS_H
#define ASI_STORE_FILE_OPS_H

#include "base/result.h"

/* Of what the archive makes, whatever the umask: its user writes, its group reads, nobody else sees recordings. A narrower umask
 * narrows them further; a folder that is there keeps what it has. */
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
    int64_t (*usable_space)(void *context, const char *path); /* bytes; INT64_MAX if it can't be told */
    /* May be NULL, for "can't": blocks of the range go back to the file system and read as zeros, the length stays. */
    int (*punch)(void *context, int fd, int64_t offset, int64_t length);
    int64_t (*modified_ns)(void *context, int fd); /* may be NULL: last modification, ns since 1970-01-01 UTC, or -errno */
    /* A second name for a file; -EEXIST if it is taken. NULL: not possible; call asi_file_link. */
    int (*link)(void *context, const char *from, const char *to);
    int64_t (*names)(void *context, int fd); /* how many a file has, or -errno; may be NULL where it can't have a second one */
    void *context;
} asi_file_ops;

const asi_file_ops *asi_file_ops_posix(void);

/* As link; -ENOTSUP where files can't have second names: on file systems and disks without them. */
int asi_file_link(const asi_file_ops *files, const char *from, const char *to);
/* 0 none, 1 data (fdatasync), 2 data and metadata (fsync); Spec: 06 §4, §7.2. 0 or -errno. */
int asi_file_sync(const asi_file_ops *files, int fd, int32_t sync_level);
/* Writes all of it: 0 or -errno. */
int asi_file_write_all(const asi_file_ops *files, int fd, const void *from, int64_t length, int64_t offset);
/* Reads until `length` or the end of the file: bytes read or -errno. */
int64_t asi_file_read_full(const asi_file_ops *files, int fd, void *to, int64_t length, int64_t offset);
/* Whether a regular file has that name and can be read. */
bool asi_file_is_there(const asi_file_ops *files, const char *path);

#endif
