/* Memory-mapped files: create exclusively, open with a length check, unmap; and operations on directories. Every failure is
 * AS_E_STORAGE with the path, errno and remedy in the text. Thread rule: any; a mapping has one owner. */
#ifndef ASI_BASE_MAP_H
#define ASI_BASE_MAP_H

#include "base/trust.h"

typedef struct asi_map
{
    uint8_t *base;   /* owned; NULL when not mapped */
    int64_t length;  /* mapped bytes = file length at that time */
    uint64_t device; /* of a file that asi_map_open has mapped: with inode its identity, which no other file has meanwhile */
    uint64_t inode;
} asi_map;

/* Creates `path` exclusively (mode 0666 & ~umask) with `length` zero bytes and maps it shared read-write. With
 * `reserve_storage` blocks are allocated and mapped now, so that a full file system fails here and does not raise SIGBUS
 * later. A failure removes the file. */
as_result asi_map_create(asi_map *map, const char *path, int64_t length, bool reserve_storage) AS_MUST_USE;
/* Maps an existing file whole; a symbolic link of that name is refused. AS_AGAIN if the file does not exist or is shorter
 * than `min_length` (another process may be creating it). */
as_result asi_map_open(asi_map *map, const char *path, int64_t min_length, bool writable) AS_MUST_USE;
/* As asi_map_open, for the file `name` in `dir`, if both are trusted. AS_E_USAGE if not. */
as_result asi_map_open_in(asi_map *map, const char *dir, const char *name, const asi_trust *trust, int64_t min_length,
    bool writable) AS_MUST_USE;
/* True if `path` still names the file that was opened, and it still has all mapped bytes. */
bool asi_map_is_at(const asi_map *map, const char *path);
/* Does nothing to an unmapped or zeroed map. */
void asi_map_close(asi_map *map);
/* As asi_map_close, on a thread created for it, in pieces. To unmap and free 3 GiB takes half a second, during which the
 * unmapping thread can do nothing else and other threads can map nothing. Runs on the caller's thread if no thread can be
 * created. */
void asi_map_close_by_thread(asi_map *map);
/* Flushes the mapping to its file; best effort. */
void asi_map_sync(const asi_map *map);

/* mkdir -p. */
as_result asi_dir_create(const char *path) AS_MUST_USE;
/* As asi_dir_create; directories that it creates have `mode` & ~umask. */
as_result asi_dir_create_with(const char *path, uint32_t mode) AS_MUST_USE;
/* rm -r; a missing directory is not an error. Does not follow symbolic links. */
as_result asi_dir_delete(const char *path) AS_MUST_USE;
bool asi_dir_exists(const char *path);
bool asi_file_exists(const char *path);
/* Name of the user who owns the path, or its deepest existing parent, in the form that sudo -u accepts. */
void asi_path_owner(const char *path, char *to, size_t capacity);
/* Bytes that an unprivileged process may still write to the file system of `path`; INT64_MAX if unknown. */
int64_t asi_usable_space(const char *path);
/* AERON_DIR, else "/dev/shm/aeron-<user>". Spec: 01 §1.1. */
void asi_default_aeron_dir(char *to, size_t capacity);

#endif
