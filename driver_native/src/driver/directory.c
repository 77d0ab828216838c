/* See directory.h. */
#define _GNU_SOURCE
#include "driver/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "shm/cnc.h"
#include "shm/error_log.h"
#include "shm/loss_report.h"

#define PATH_CAPACITY (AS_PATH_MAX + 300)
#define LOG_SUFFIX ".logbuffer"

/* Files that drivers create in their directory, this one and the stock ones. Spec: 01 §1.2. The lock file is deleted last. */
static const char *const FILES[] = { ASI_CNC_FILE, ASI_LOSS_REPORT_FILE };
static const char *const FOLDERS[] = { "publications", "images" };

#define FILE_COUNT (sizeof(FILES) / sizeof(FILES[0]))
#define FOLDER_COUNT (sizeof(FOLDERS) / sizeof(FOLDERS[0]))

/* -- the lock --------------------------------------------------------------------------------------------------------------- */

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* The lock is valid only if the names still refer to the locked file: a driver that closes may have deleted it meanwhile. */
static bool is_still_there(const char *path, const asi_directory *directory)
{
    struct stat opened;
    struct stat named;
    return 0 == fstat(directory->fd, &opened) && 0 == stat(path, &named) && is_same(&opened, &named) &&
        0 == fstat(directory->lock, &opened) &&
        0 == fstatat(directory->fd, ASI_DIRECTORY_LOCK_FILE, &named, AT_SYMLINK_NOFOLLOW) && is_same(&opened, &named);
}

static void close_directory(asi_directory *directory)
{
    if (directory->lock >= 0)
    {
        close(directory->lock);
    }
    if (directory->fd >= 0)
    {
        close(directory->fd);
    }
    *directory = ASI_DIRECTORY_NONE;
}

static as_result open_lock(const char *path, const asi_trust *trust, asi_directory *directory)
{
    char name[PATH_CAPACITY];
    struct stat st;
    snprintf(name, sizeof(name), "%s/" ASI_DIRECTORY_LOCK_FILE, path);
    directory->lock = openat(directory->fd, ASI_DIRECTORY_LOCK_FILE,
        O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (directory->lock < 0)
    {
        return ENOENT == errno ? AS_AGAIN : asi_fail_errno(AS_E_STORAGE, errno, "cannot make %s", name);
    }
    return 0 == fstat(directory->lock, &st) ? asi_trust_check(trust, &st, name) :
        asi_fail_errno(AS_E_STORAGE, errno, "cannot stat %s", name);
}

/* AS_AGAIN while another driver holds it. */
static as_result try_lock(const char *path, const asi_trust *trust, asi_directory *directory)
{
    asi_directory tried = ASI_DIRECTORY_NONE;
    as_result result = asi_dir_create(path);
    if (AS_OK == result)
    {
        result = asi_trust_open_dir(trust, path, O_RDONLY, &tried.fd);
    }
    if (AS_OK == result)
    {
        result = open_lock(path, trust, &tried);
    }
    if (AS_OK == result && 0 == flock(tried.lock, LOCK_EX | LOCK_NB) && is_still_there(path, &tried))
    {
        *directory = tried;
        return AS_OK;
    }
    close_directory(&tried);
    return AS_OK == result ? AS_AGAIN : result;
}

static as_result trust_of(const asi_driver_settings *settings, asi_trust *trust)
{
    return asi_trust_parse(trust, settings->dir_owner, settings->dir_writers);
}

as_result asi_directory_lock(const asi_driver_settings *settings, asi_directory *directory)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    asi_trust trust;
    as_result result = trust_of(settings, &trust);
    for (int64_t waited_ms = 0; AS_OK == result && waited_ms <= settings->driver_timeout_ms; waited_ms++)
    {
        result = try_lock(settings->aeron_dir, &trust, directory);
        if (AS_AGAIN != result)
        {
            return result;
        }
        result = AS_OK;
        nanosleep(&pause, NULL);
    }
    return AS_OK != result ? result : asi_fail(AS_E_USAGE, EBUSY,
        "another media driver is starting or ending in %s: use another aeron.dir, or try again", settings->aeron_dir);
}

void asi_directory_unlock(asi_directory *directory)
{
    struct stat opened;
    struct stat named;
    if (directory->lock >= 0 && 0 == fstat(directory->lock, &opened) &&
        0 == fstatat(directory->fd, ASI_DIRECTORY_LOCK_FILE, &named, AT_SYMLINK_NOFOLLOW) && is_same(&opened, &named))
    {
        (void)unlinkat(directory->fd, ASI_DIRECTORY_LOCK_FILE, 0);
    }
    close_directory(directory);
}

/* -- contents ------------------------------------------------------------------------------------------------------------- */

/* Called with the names in a directory, except "." and "..". */
typedef as_result (*on_name)(void *context, int fd, const char *path, const char *name);

/* Leaves `fd` open and its offset unchanged. */
static as_result each_name(int fd, const char *path, on_name call, void *context)
{
    const int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listed = own < 0 ? NULL : fdopendir(own);
    if (NULL == listed)
    {
        const int error = errno;
        if (own >= 0)
        {
            close(own);
        }
        return asi_fail_errno(AS_E_STORAGE, error, "cannot read directory %s", path);
    }
    as_result result = AS_OK;
    for (struct dirent *entry = readdir(listed); NULL != entry && AS_OK == result; entry = readdir(listed))
    {
        if (0 != strcmp(entry->d_name, ".") && 0 != strcmp(entry->d_name, ".."))
        {
            result = call(context, fd, path, entry->d_name);
        }
    }
    closedir(listed);
    return result;
}

static as_result fail_strange(const char *path, const char *name)
{
    return asi_fail(AS_E_USAGE, EEXIST, "%s/%s is nothing that a media driver makes, so nothing in that directory is deleted: "
        "move it elsewhere, or name another aeron.dir", path, name);
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
    {
        if (0 == strcmp(name, names[i]))
        {
            return true;
        }
    }
    return false;
}

/* `format` is S_IFREG or S_IFDIR. True also when the file no longer exists. */
static bool is_of_format(int fd, const char *name, mode_t format)
{
    struct stat st;
    return 0 == fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) ? format == (st.st_mode & S_IFMT) : ENOENT == errno;
}

static as_result judge_log(void *context, int fd, const char *path, const char *name)
{
    (void)context;
    const size_t length = strlen(name);
    const size_t suffix = strlen(LOG_SUFFIX);
    return length > suffix && 0 == strcmp(name + length - suffix, LOG_SUFFIX) && is_of_format(fd, name, S_IFREG) ? AS_OK :
        fail_strange(path, name);
}

static as_result delete_file(void *context, int fd, const char *path, const char *name)
{
    (void)context;
    return 0 == unlinkat(fd, name, 0) || ENOENT == errno ? AS_OK :
        asi_fail_errno(AS_E_STORAGE, errno, "cannot delete %s/%s", path, name);
}

/* Iterates over the logs in one of the folders, if the folder exists. */
static as_result each_log(int fd, const char *path, const char *name, on_name call)
{
    char folder[PATH_CAPACITY];
    snprintf(folder, sizeof(folder), "%s/%s", path, name);
    const int opened = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0)
    {
        return ENOENT == errno ? AS_OK : asi_fail_errno(AS_E_STORAGE, errno, "cannot open directory %s", folder);
    }
    const as_result result = each_name(opened, folder, call, NULL);
    close(opened);
    return result;
}

static as_result judge_entry(void *context, int fd, const char *path, const char *name)
{
    (void)context;
    if (is_one_of(name, FOLDERS, FOLDER_COUNT) && is_of_format(fd, name, S_IFDIR))
    {
        return each_log(fd, path, name, judge_log);
    }
    const bool is_file = is_one_of(name, FILES, FILE_COUNT) || 0 == strcmp(name, ASI_DIRECTORY_LOCK_FILE);
    /* The root of a file system contains lost+found. */
    return (is_file && is_of_format(fd, name, S_IFREG)) || 0 == strcmp(name, "lost+found") ? AS_OK : fail_strange(path, name);
}

static as_result delete_folder(int fd, const char *path, const char *name)
{
    const as_result result = each_log(fd, path, name, delete_file);
    if (AS_OK != result)
    {
        return result;
    }
    return 0 == unlinkat(fd, name, AT_REMOVEDIR) || ENOENT == errno ? AS_OK :
        asi_fail_errno(AS_E_STORAGE, errno, "cannot delete %s/%s", path, name);
}

/* AS_E_USAGE for a directory with anything that no media driver makes. */
static as_result judge(int fd, const char *path) { return each_name(fd, path, judge_entry, NULL); }

/* Deletes everything or nothing, except for what appears meanwhile. */
static as_result clear(int fd, const char *path)
{
    as_result result = judge(fd, path);
    for (size_t i = 0; i < FILE_COUNT && AS_OK == result; i++)
    {
        result = delete_file(NULL, fd, path, FILES[i]);
    }
    for (size_t i = 0; i < FOLDER_COUNT && AS_OK == result; i++)
    {
        result = delete_folder(fd, path, FOLDERS[i]);
    }
    return result;
}

as_result asi_directory_delete(const asi_directory *directory, const char *path)
{
    as_result result = clear(directory->fd, path);
    if (AS_OK == result)
    {
        result = delete_file(NULL, directory->fd, path, ASI_DIRECTORY_LOCK_FILE);
    }
    /* Not empty: another driver has started in it, or it is a mount point. Not permitted: root created it for this driver. */
    if (AS_OK != result || 0 == rmdir(path) || ENOENT == errno || EBUSY == errno || ENOTEMPTY == errno ||
        EPERM == errno || EACCES == errno)
    {
        return result;
    }
    return asi_fail_errno(AS_E_STORAGE, errno, "cannot delete directory %s", path);
}

/* -- the previous driver -------------------------------------------------------------------------------------------------- */

static void format_time(char *to, size_t capacity, int64_t epoch_ms)
{
    const time_t seconds = (time_t)(epoch_ms / 1000);
    struct tm local;
    char date[64] = "";
    char zone[16] = "";
    localtime_r(&seconds, &local);
    strftime(date, sizeof(date), "%Y-%m-%d %H-%M-%S", &local);
    strftime(zone, sizeof(zone), "%z", &local);
    snprintf(to, capacity, "%s.%03d%s", date, (int)(epoch_ms % 1000), zone);
}

static void print_entry(const asi_error_entry *entry, void *context)
{
    char first[96];
    char last[96];
    format_time(first, sizeof(first), entry->first_ms);
    format_time(last, sizeof(last), entry->last_ms);
    fprintf(context, "***\n%d observations from %s to %s for:\n %.*s\n", entry->count, first, last, (int)entry->text_length,
        entry->text);
}

static void count_entry(const asi_error_entry *entry, void *context)
{
    (void)entry;
    (void)context;
}

/* Spec: 01 §1.6. A failure to save prints a warning and does not prevent the start. */
static void save_errors(const char *path, const asi_cnc *cnc, int64_t now_ms)
{
    const int64_t length = cnc->lengths.error_log;
    if (0 == asi_error_log_read_untrusted(cnc->error_log, length, 0, count_entry, NULL))
    {
        return;
    }
    char date[96];
    char name[PATH_CAPACITY];
    format_time(date, sizeof(date), now_ms);
    snprintf(name, sizeof(name), "%s-%s-error.log", path, date);
    /* Beside the directory, where another user may have created a file of that name. */
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR | S_IRGRP);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (NULL == file)
    {
        const int error = errno;
        if (fd >= 0)
        {
            close(fd);
        }
        errno = error;
        fprintf(stderr, "WARNING: cannot save existing errors to %s: %s\n", name, strerror(errno));
        return;
    }
    const int64_t count = asi_error_log_read_untrusted(cnc->error_log, length, 0, print_entry, file);
    fprintf(file, "\n%" PRId64 " distinct errors observed.\n", count);
    fclose(file);
    fprintf(stderr, "WARNING: Existing errors saved to: %s\n", name);
}

/* As in the stock C driver, a driver whose CnC file can't be read counts as dead, but here with a warning. `reason` is of the
 * failed open. */
static void warn_of_unreadable(const char *path, const char *reason)
{
    char file[PATH_CAPACITY];
    snprintf(file, sizeof(file), "%s/" ASI_CNC_FILE, path);
    if (asi_file_exists(file))
    {
        fprintf(stderr, "WARNING: %s; taken for a dead driver's and replaced: if a driver does run there, stop it and start this one "
            "again, or give one of them another aeron.dir\n", reason);
    }
}

/* Spec: 01 §1.3-1.4, step 2b. */
static as_result take_over(const asi_driver_settings *settings, int fd, const asi_clock *clock)
{
    asi_trust trust;
    asi_cnc cnc = { 0 };
    as_result result = trust_of(settings, &trust);
    result = AS_OK == result ? asi_cnc_open_own_untrusted(&cnc, settings->aeron_dir, &trust) : result;
    asi_cnc_close(&cnc);
    if (AS_E_USAGE == result)
    {
        return result;
    }
    bool is_active = false;
    result = asi_cnc_is_driver_active(settings->aeron_dir, settings->driver_timeout_ms, clock, &is_active);
    if (AS_OK != result)
    {
        return result;
    }
    const bool is_readable = AS_OK == asi_cnc_open_own_untrusted(&cnc, settings->aeron_dir, &trust);
    if (is_active)
    {
        result = asi_fail(AS_E_USAGE, EBUSY, "Active media driver detected: %s/" ASI_CNC_FILE " pid=%" PRId64
            ": use another aeron.dir, or stop that driver", settings->aeron_dir, cnc.pid);
    }
    else
    {
        /* Before anything is written: refused starts that a manager repeats would add a file each. */
        result = judge(fd, settings->aeron_dir);
    }
    if (AS_OK == result && is_readable)
    {
        save_errors(settings->aeron_dir, &cnc, asi_clock_ms(clock));
    }
    else if (AS_OK == result)
    {
        warn_of_unreadable(settings->aeron_dir, as_error_text());
    }
    asi_cnc_close(&cnc);
    return result;
}

as_result asi_directory_claim(const asi_driver_settings *settings, const asi_clock *clock, asi_directory *directory)
{
    const char *path = settings->aeron_dir;
    if (settings->warn_if_exists && asi_dir_exists(path))
    {
        fprintf(stderr, "WARNING: %s exists\n", path);
    }
    asi_directory held = ASI_DIRECTORY_NONE;
    as_result result = asi_directory_lock(settings, &held);
    if (AS_OK == result && !settings->delete_on_start)
    {
        result = take_over(settings, held.fd, clock);
    }
    if (AS_OK == result)
    {
        result = clear(held.fd, path);
    }
    for (size_t i = 0; i < FOLDER_COUNT && AS_OK == result; i++)
    {
        /* The directory was deleted, so if it exists again, another user has created it. */
        result = 0 == mkdirat(held.fd, FOLDERS[i], 0777) ? AS_OK :
            asi_fail_errno(AS_E_STORAGE, errno, "cannot create directory %s/%s", path, FOLDERS[i]);
    }
    if (AS_OK != result)
    {
        asi_directory_unlock(&held);
        return result;
    }
    *directory = held;
    return AS_OK;
}
