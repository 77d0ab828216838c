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

#define PATH_CAPACITY (AS_PATH_MAX + 300)

/* The lock counts only if the path still leads to what was locked: a driver that ends may have deleted it meanwhile. */
static bool is_same_directory(int fd, const char *path)
{
    struct stat opened;
    struct stat named;
    return 0 == fstat(fd, &opened) && 0 == stat(path, &named) && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* AS_AGAIN while another driver holds it. */
static as_result try_lock(const char *path, int *lock)
{
    const as_result created = asi_dir_create(path);
    if (AS_OK != created)
    {
        return created;
    }
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
    {
        return ENOENT == errno ? AS_AGAIN : asi_fail_errno(AS_E_STORAGE, errno, "cannot open directory %s", path);
    }
    if (0 == flock(fd, LOCK_EX | LOCK_NB) && is_same_directory(fd, path))
    {
        *lock = fd;
        return AS_OK;
    }
    close(fd);
    return AS_AGAIN;
}

as_result asi_directory_lock(const char *path, int64_t timeout_ms, int *lock)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    for (int64_t waited_ms = 0; waited_ms <= timeout_ms; waited_ms++)
    {
        const as_result result = try_lock(path, lock);
        if (AS_AGAIN != result)
        {
            return result;
        }
        nanosleep(&pause, NULL);
    }
    return asi_fail(AS_E_USAGE, EBUSY, "another media driver is starting or ending in %s: use another aeron.dir, or try again",
        path);
}

void asi_directory_unlock(int lock)
{
    if (lock >= 0)
    {
        close(lock);
    }
}

static as_result delete_entry(const char *directory, const char *name)
{
    char path[PATH_CAPACITY];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    struct stat st;
    if (0 == lstat(path, &st) && S_ISDIR(st.st_mode))
    {
        return asi_dir_delete(path);
    }
    return 0 == unlink(path) || ENOENT == errno ? AS_OK : asi_fail_errno(AS_E_STORAGE, errno, "cannot delete %s", path);
}

static as_result clear(const char *path)
{
    DIR *directory = opendir(path);
    if (NULL == directory)
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot read directory %s", path);
    }
    as_result result = AS_OK;
    for (struct dirent *entry = readdir(directory); NULL != entry && AS_OK == result; entry = readdir(directory))
    {
        if (0 != strcmp(entry->d_name, ".") && 0 != strcmp(entry->d_name, ".."))
        {
            result = delete_entry(path, entry->d_name);
        }
    }
    closedir(directory);
    return result;
}

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

/* Spec: 01 §1.6. Failing to save is warned of and no reason not to start. */
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
    FILE *file = fopen(name, "w");
    if (NULL == file)
    {
        fprintf(stderr, "WARNING: cannot save existing errors to %s: %s\n", name, strerror(errno));
        return;
    }
    const int64_t count = asi_error_log_read_untrusted(cnc->error_log, length, 0, print_entry, file);
    fprintf(file, "\n%" PRId64 " distinct errors observed.\n", count);
    fclose(file);
    fprintf(stderr, "WARNING: Existing errors saved to: %s\n", name);
}

/* As with the stock C driver, who can't be asked whether he lives counts as dead; but not in silence. `reason` is of the failed opening. */
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

/* Spec: 01 §1.3 step 2b, §1.4. */
static as_result take_over(const asi_driver_settings *settings, const asi_clock *clock)
{
    bool is_active = false;
    as_result result = asi_cnc_is_driver_active(settings->aeron_dir, settings->driver_timeout_ms, clock, &is_active);
    if (AS_OK != result)
    {
        return result;
    }
    asi_cnc cnc = { 0 };
    const bool is_readable = AS_OK == asi_cnc_open_untrusted(&cnc, settings->aeron_dir);
    if (is_active)
    {
        result = asi_fail(AS_E_USAGE, EBUSY, "Active media driver detected: %s/" ASI_CNC_FILE " pid=%" PRId64
            ": use another aeron.dir, or stop that driver", settings->aeron_dir, cnc.pid);
    }
    else if (is_readable)
    {
        save_errors(settings->aeron_dir, &cnc, asi_clock_ms(clock));
    }
    else
    {
        warn_of_unreadable(settings->aeron_dir, as_error_text());
    }
    asi_cnc_close(&cnc);
    return result;
}

static as_result create_folder(const char *path, const char *name)
{
    char folder[PATH_CAPACITY];
    snprintf(folder, sizeof(folder), "%s/%s", path, name);
    return asi_dir_create(folder);
}

as_result asi_directory_claim(const asi_driver_settings *settings, const asi_clock *clock, int *lock)
{
    const char *path = settings->aeron_dir;
    if (settings->warn_if_exists && asi_dir_exists(path))
    {
        fprintf(stderr, "WARNING: %s exists\n", path);
    }
    int held;
    as_result result = asi_directory_lock(path, settings->driver_timeout_ms, &held);
    if (AS_OK != result)
    {
        return result;
    }
    if (!settings->delete_on_start)
    {
        result = take_over(settings, clock);
    }
    if (AS_OK == result)
    {
        result = clear(path);
    }
    if (AS_OK == result)
    {
        result = create_folder(path, "publications");
    }
    if (AS_OK == result)
    {
        result = create_folder(path, "images");
    }
    if (AS_OK != result)
    {
        asi_directory_unlock(held);
        return result;
    }
    *lock = held;
    return AS_OK;
}
