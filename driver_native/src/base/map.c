/* Mapped files and directories; see map.h. */
#define _GNU_SOURCE
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define UNMAPPED_AT_ONCE (8 * 1024 * 1024)

as_result asi_map_create(asi_map *map, const char *path, int64_t length, bool reserve_storage)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot create %s", path);
    }
    int error = reserve_storage ? posix_fallocate(fd, 0, length) : (0 == ftruncate(fd, length) ? 0 : errno);
    void *base = MAP_FAILED;
    if (0 == error)
    {
        base = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_SHARED | (reserve_storage ? MAP_POPULATE : 0), fd, 0);
        error = MAP_FAILED == base ? errno : 0;
    }
    close(fd);
    if (0 != error)
    {
        unlink(path);
        return asi_fail_errno(AS_E_STORAGE, error, "cannot map %lld bytes for %s, free space or lower the buffer lengths",
            (long long)length, path);
    }
    *map = (asi_map){ .base = base, .length = length };
    return AS_OK;
}

/* Maps the file opened as `path` and closes its descriptor. */
static as_result map_opened(asi_map *map, int fd, const char *path, const asi_trust *trust, int64_t min_length, bool writable)
{
    if (fd < 0)
    {
        const int error = errno;
        asi_fail_errno(AS_E_STORAGE, error, "cannot open %s%s", path, ELOOP == error ? ", a symbolic link" : "");
        return ENOENT == error ? AS_AGAIN : AS_E_STORAGE;
    }
    struct stat st;
    as_result result = AS_OK;
    if (0 != fstat(fd, &st))
    {
        result = asi_fail_errno(AS_E_STORAGE, errno, "cannot stat %s", path);
    }
    else if (!S_ISREG(st.st_mode))
    {
        result = asi_fail(AS_E_STORAGE, EINVAL, "%s is not a regular file", path);
    }
    else if (NULL != trust)
    {
        result = asi_trust_check(trust, &st, path);
    }
    if (AS_OK == result && (st.st_size < min_length || 0 == st.st_size))
    {
        asi_fail(AS_E_STORAGE, EINVAL, "%s has %lld bytes, at least %lld are needed", path, (long long)st.st_size,
            (long long)min_length);
        result = AS_AGAIN;
    }
    if (AS_OK == result)
    {
        void *base = mmap(NULL, (size_t)st.st_size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
        if (MAP_FAILED == base)
        {
            result = asi_fail_errno(AS_E_STORAGE, errno, "cannot map %s", path);
        }
        else
        {
            *map = (asi_map){ .base = base, .length = st.st_size, .device = st.st_dev, .inode = st.st_ino };
        }
    }
    close(fd);
    return result;
}

/* O_NONBLOCK: opening a FIFO of that name must not block. */
static int open_flags(bool writable) { return (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC; }

as_result asi_map_open(asi_map *map, const char *path, int64_t min_length, bool writable)
{
    return map_opened(map, open(path, open_flags(writable)), path, NULL, min_length, writable);
}

as_result asi_map_open_in(
    asi_map *map, const char *dir, const char *name, const asi_trust *trust, int64_t min_length, bool writable)
{
    char path[2 * AS_PATH_MAX];
    int dir_fd;
    const as_result result = asi_trust_open_dir(trust, dir, O_PATH, &dir_fd);
    if (AS_OK != result)
    {
        return result;
    }
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    const int fd = openat(dir_fd, name, open_flags(writable));
    const int error = errno;
    close(dir_fd);
    errno = error;
    return map_opened(map, fd, path, trust, min_length, writable);
}

bool asi_map_is_at(const asi_map *map, const char *path)
{
    struct stat st;
    return NULL != map->base && 0 == lstat(path, &st) && st.st_dev == map->device && st.st_ino == map->inode &&
        st.st_size >= map->length;
}

void asi_map_close(asi_map *map)
{
    if (NULL != map->base)
    {
        munmap(map->base, (size_t)map->length);
        *map = (asi_map){ 0 };
    }
}

static void *close_in_pieces(void *context)
{
    asi_map map = *(asi_map *)context;
    free(context);
    while (map.length > UNMAPPED_AT_ONCE)
    {
        munmap(map.base, UNMAPPED_AT_ONCE);
        map.base += UNMAPPED_AT_ONCE;
        map.length -= UNMAPPED_AT_ONCE;
    }
    asi_map_close(&map);
    return NULL;
}

void asi_map_close_by_thread(asi_map *map)
{
    pthread_t thread;
    pthread_attr_t attributes;
    asi_map *handed = NULL == map->base ? NULL : malloc(sizeof(*handed));
    if (NULL != handed && 0 == pthread_attr_init(&attributes))
    {
        sigset_t all, before;
        *handed = *map;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); /* signals belong to the process's main thread */
        const bool is_started = 0 == pthread_create(&thread, &attributes, close_in_pieces, handed);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        if (is_started)
        {
            *map = (asi_map){ 0 };
            return;
        }
    }
    free(handed);
    asi_map_close(map);
}

void asi_map_sync(const asi_map *map)
{
    if (NULL != map->base)
    {
        msync(map->base, (size_t)map->length, MS_SYNC);
    }
}

as_result asi_dir_create(const char *path) { return asi_dir_create_with(path, 0777); }

as_result asi_dir_create_with(const char *path, uint32_t mode)
{
    char partial[AS_PATH_MAX];
    const size_t length = strlen(path);
    if (0 == length || length >= sizeof(partial))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "directory name has %zu bytes, 1 to %zu are possible", length, sizeof(partial) - 1);
    }
    memcpy(partial, path, length + 1);
    for (size_t i = 1; i <= length; i++)
    {
        if ('/' != partial[i] && '\0' != partial[i])
        {
            continue;
        }
        const char kept = partial[i];
        partial[i] = '\0';
        if (0 != mkdir(partial, (mode_t)mode) && EEXIST != errno)
        {
            return asi_fail_errno(AS_E_STORAGE, errno, "cannot create directory %s", partial);
        }
        partial[i] = kept;
    }
    return asi_dir_exists(path) ? AS_OK : asi_fail(AS_E_STORAGE, ENOTDIR, "%s exists and is not a directory", path);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return 0 == remove(path) || ENOENT == errno ? 0 : -1;
}

as_result asi_dir_delete(const char *path)
{
    if (!asi_dir_exists(path))
    {
        return AS_OK;
    }
    if (0 != nftw(path, remove_entry, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) && ENOENT != errno)
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot delete directory %s", path);
    }
    return AS_OK;
}

bool asi_dir_exists(const char *path)
{
    struct stat st;
    return 0 == stat(path, &st) && S_ISDIR(st.st_mode);
}

bool asi_file_exists(const char *path)
{
    struct stat st;
    return 0 == stat(path, &st) && S_ISREG(st.st_mode);
}

void asi_path_owner(const char *path, char *to, size_t capacity)
{
    char at[AS_PATH_MAX];
    struct stat st;
    snprintf(at, sizeof(at), "%s", path);
    while (0 != stat(at, &st))
    {
        char *slash = strrchr(at, '/');
        if (NULL == slash)
        {
            snprintf(at, sizeof(at), ".");
        }
        else
        {
            slash[slash == at ? 1 : 0] = '\0';
        }
    }
    struct passwd entry;
    struct passwd *found = NULL;
    char strings[4096];
    const bool is_known = 0 == getpwuid_r(st.st_uid, &entry, strings, sizeof(strings), &found) && NULL != found;
    if (is_known)
    {
        snprintf(to, capacity, "%s", found->pw_name);
    }
    else
    {
        snprintf(to, capacity, "'#%u'", (unsigned)st.st_uid);
    }
}

int64_t asi_usable_space(const char *path)
{
    struct statvfs vfs;
    return 0 == statvfs(path, &vfs) ? (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize : INT64_MAX;
}

void asi_default_aeron_dir(char *to, size_t capacity)
{
    const char *dir = getenv("AERON_DIR");
    if (NULL != dir && '\0' != dir[0])
    {
        snprintf(to, capacity, "%s", dir);
        return;
    }
    const char *user = getenv("USER");
    struct passwd entry;
    struct passwd *found = NULL;
    char strings[4096];
    if ((NULL == user || '\0' == user[0]) && 0 == getpwuid_r(getuid(), &entry, strings, sizeof(strings), &found) && NULL != found)
    {
        user = found->pw_name;
    }
    snprintf(to, capacity, "/dev/shm/aeron-%s", NULL != user && '\0' != user[0] ? user : "default");
}
