/* asi_file_ops for the operating system's files; see file_ops.h. */
#define _GNU_SOURCE
#include "store/file_ops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"

static int answer(int result) { return result < 0 ? -errno : result; }

static int disk_open(void *context, const char *path, asi_file_mode mode)
{
    (void)context;
    /* Writes never follow a symbolic link, which may point to any file. Reads follow links, as stock archives do: segments may
     * have been moved to another disk and linked. O_NONBLOCK: a FIFO with the name must not block the archive. */
    static const int flags[] = { [ASI_FILE_READ] = O_RDONLY, [ASI_FILE_WRITE] = O_RDWR | O_NOFOLLOW,
        [ASI_FILE_CREATE] = O_RDWR | O_CREAT | O_NOFOLLOW, [ASI_FILE_CREATE_NEW] = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW };
    const int fd = answer(open(path, flags[mode] | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, ASI_ARCHIVE_FILE_MODE));
    struct stat st;
    if (fd >= 0 && (0 != fstat(fd, &st) || !S_ISREG(st.st_mode)))
    {
        close(fd);
        return -EINVAL; /* a directory or device with the name would block or return garbage */
    }
    return fd;
}

static int disk_close(void *context, int fd)
{
    (void)context;
    return answer(close(fd));
}

static int64_t disk_size(void *context, int fd)
{
    (void)context;
    struct stat st;
    return 0 == fstat(fd, &st) ? (int64_t)st.st_size : -errno;
}

static int64_t disk_pread(void *context, int fd, void *to, int64_t length, int64_t offset)
{
    (void)context;
    ssize_t count;
    do
    {
        count = pread(fd, to, (size_t)length, offset);
    } while (count < 0 && EINTR == errno);
    return count < 0 ? -errno : count;
}

static int64_t disk_pwrite(void *context, int fd, const void *from, int64_t length, int64_t offset)
{
    (void)context;
    ssize_t count;
    do
    {
        count = pwrite(fd, from, (size_t)length, offset);
    } while (count < 0 && EINTR == errno);
    return count < 0 ? -errno : count;
}

static int disk_ftruncate(void *context, int fd, int64_t length)
{
    (void)context;
    int result;
    do
    {
        result = ftruncate(fd, length);
    } while (result < 0 && EINTR == errno);
    return answer(result);
}

static int disk_fsync(void *context, int fd)
{
    (void)context;
    return answer(fsync(fd));
}

static int disk_fdatasync(void *context, int fd)
{
    (void)context;
    return answer(fdatasync(fd));
}

static int disk_sync_directory(void *context, const char *path)
{
    (void)context;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
    {
        return -errno;
    }
    const int result = answer(fsync(fd));
    close(fd);
    return result;
}

static int disk_unlink(void *context, const char *path)
{
    (void)context;
    return answer(unlink(path));
}

static int disk_rename(void *context, const char *from, const char *to)
{
    (void)context;
    return answer(rename(from, to));
}

static int disk_link(void *context, const char *from, const char *to)
{
    (void)context;
    return answer(link(from, to));
}

static int disk_readdir(
    void *context, const char *path, bool (*on_name)(void *name_context, const char *name), void *name_context)
{
    (void)context;
    DIR *dir = opendir(path);
    if (NULL == dir)
    {
        return -errno;
    }
    int result = 0;
    for (;;)
    {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (NULL == entry)
        {
            result = -errno;
            break;
        }
        const bool is_dots = 0 == strcmp(entry->d_name, ".") || 0 == strcmp(entry->d_name, "..");
        if (!is_dots && !on_name(name_context, entry->d_name))
        {
            break;
        }
    }
    closedir(dir);
    return result;
}

static int64_t disk_usable_space(void *context, const char *path)
{
    (void)context;
    return asi_usable_space(path);
}

static int disk_punch(void *context, int fd, int64_t offset, int64_t length)
{
    (void)context;
    return answer(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length));
}

static int64_t disk_modified_ns(void *context, int fd)
{
    (void)context;
    struct stat st;
    return 0 == fstat(fd, &st) ? (int64_t)st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec : -errno;
}

static int64_t disk_names(void *context, int fd)
{
    (void)context;
    struct stat st;
    return 0 == fstat(fd, &st) ? (int64_t)st.st_nlink : -errno;
}

const asi_file_ops *asi_file_ops_posix(void)
{
    static const asi_file_ops ops = { .open = disk_open, .close = disk_close, .size = disk_size, .pread = disk_pread,
        .pwrite = disk_pwrite, .ftruncate = disk_ftruncate, .fsync = disk_fsync, .fdatasync = disk_fdatasync,
        .sync_directory = disk_sync_directory, .unlink = disk_unlink, .rename = disk_rename, .readdir = disk_readdir,
        .usable_space = disk_usable_space, .punch = disk_punch, .modified_ns = disk_modified_ns, .link = disk_link,
        .names = disk_names };
    return &ops;
}

int asi_file_link(const asi_file_ops *files, const char *from, const char *to)
{
    const int error = NULL == files->link ? -ENOTSUP : files->link(files->context, from, to);
    return -EPERM == error || -EOPNOTSUPP == error || -ENOSYS == error || -EMLINK == error ? -ENOTSUP : error;
}

int asi_file_sync(const asi_file_ops *files, int fd, int32_t sync_level)
{
    if (sync_level <= 0)
    {
        return 0;
    }
    return 1 == sync_level ? files->fdatasync(files->context, fd) : files->fsync(files->context, fd);
}

int asi_file_write_all(const asi_file_ops *files, int fd, const void *from, int64_t length, int64_t offset)
{
    int64_t done = 0;
    while (done < length)
    {
        const int64_t count = files->pwrite(files->context, fd, (const uint8_t *)from + done, length - done, offset + done);
        if (count <= 0)
        {
            return 0 == count ? -ENOSPC : (int)count;
        }
        done += count;
    }
    return 0;
}

int64_t asi_file_read_full(const asi_file_ops *files, int fd, void *to, int64_t length, int64_t offset)
{
    int64_t done = 0;
    while (done < length)
    {
        const int64_t count = files->pread(files->context, fd, (uint8_t *)to + done, length - done, offset + done);
        if (count < 0)
        {
            return count;
        }
        if (0 == count)
        {
            break;
        }
        done += count;
    }
    return done;
}

bool asi_file_is_there(const asi_file_ops *files, const char *path)
{
    const int fd = files->open(files->context, path, ASI_FILE_READ);
    if (fd >= 0)
    {
        files->close(files->context, fd);
    }
    return fd >= 0;
}
