/* Memory-mapped files: create exclusively, open with a length check, unmap, and directory chores.
 * Every failure is AS_E_STORAGE with the path, errno and remedy in the text. Thread rule: any; a mapping has one owner. */
#ifndef ASI_BASE_MAP_H
#define ASI_BASE_MAP_H

#include "base/trust.h"

typedef struct asi_map
{
    uint8_t *base;   /* owned; NULL when not mapped */
    int64_t length;  /* bytes mapped = file length at the time */
} asi_map;

/* Creates `path` exclusively (mode 0666 & ~umask) with `length` zero bytes and maps it shared read-write. With
 * `reserve_storage` blocks are allocated and mapped now, so that a full file system fails here and not as SIGBUS later.
 * A failure removes the file. */
as_result asi_map_create(asi_map *map, const char *path, int64_t length, bool reserve_storage) AS_MUST_USE;
/* Maps an existing file whole; a symbolic link under its name is refused. AS_AGAIN when it does not exist or is shorter than
 * `min_length` (it may be on its way). */
as_result asi_map_open(asi_map *map, const char *path, int64_t min_length, bool writable) AS_MUST_USE;
/* The same of the file `name` in `dir`, when both are to be relied on. AS_E_USAGE when not. */
as_result asi_map_open_in(asi_map *map, const char *dir, const char *name, const asi_trust *trust, int64_t min_length,
    bool writable) AS_MUST_USE;
/* Harmless on an unmapped or zeroed map. */
void asi_map_close(asi_map *map);
/* The same by a thread made for it, in pieces: to unmap 3 GiB and give them back takes half a second, in which a thread can do nothing
 * else, nor others map anything. In the caller's thread where none can be made. */
void asi_map_close_by_thread(asi_map *map);
/* Flushes the mapping to its file; best effort. */
void asi_map_sync(const asi_map *map);

/* mkdir -p. */
as_result asi_dir_create(const char *path) AS_MUST_USE;
/* The same; directories that it makes have `mode` & ~umask. */
as_result asi_dir_create_with(const char *path, uint32_t mode) AS_MUST_USE;
/* rm -r; a missing directory is fine. Does not follow symbolic links. */
as_result asi_dir_delete(const char *path) AS_MUST_USE;
bool asi_dir_exists(const char *path);
bool asi_file_exists(const char *path);
/* Name of the user who owns the path, or what of it exists, as sudo -u takes it. */
void asi_path_owner(const char *path, char *to, size_t capacity);
/* Bytes an unprivileged process may still write to the file system of `path`; INT64_MAX if it can't be told. */
int64_t asi_usable_space(const char *path);
/* AERON_DIR, else "/dev/shm/aeron-<user>". Spec: 01 §1.1. */
void asi_default_aeron_dir(char *to, size_t capacity);

#endif
