/* The archive's mark file. Format and protocol are in mark.h. */
#include "store/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/map.h"
#include "shm/error_log.h"
#include "store/catalog.h"

enum
{
    MARK_BLOCK_LENGTH = 128,
    MARK_TEMPLATE_ID = 200,
    MARK_SCHEMA_ID = 100,
    MARK_SCHEMA_VERSION = 2,
    MARK_MESSAGE_HEADER_LENGTH = 8
};

enum /* from the start of the block, which follows the message header or, in old files, begins the file */
{
    BLOCK_VERSION = ASI_MARK_BLOCK_VERSION,
    BLOCK_ACTIVITY_TIMESTAMP = ASI_MARK_BLOCK_ACTIVITY,
    BLOCK_START_TIMESTAMP = 16,
    BLOCK_PID = 24,
    BLOCK_CONTROL_STREAM_ID = 32,
    BLOCK_LOCAL_CONTROL_STREAM_ID = 36,
    BLOCK_EVENTS_STREAM_ID = 40,
    BLOCK_HEADER_LENGTH = 44,
    BLOCK_ERROR_BUFFER_LENGTH = 48,
    BLOCK_ARCHIVE_ID = 56
};

struct asi_mark
{
    asi_map map;    /* owned */
    uint8_t *block; /* borrowed from map */
    int32_t error_buffer_length;
    /* State of the file when it was claimed. */
    bool is_after_crash;
    int32_t found_version;
    int64_t found_start_ms;
    int64_t found_activity_ms;
    char path[AS_PATH_MAX];
    char link_path[AS_PATH_MAX]; /* empty: the mark file is in the archive's folder */
};

/* 8-byte fields are aligned in both forms of the file, because the block begins at 0 or 8. */
static int64_t *block_i64(uint8_t *block, int64_t offset) { return (int64_t *)(void *)(block + offset); }

/* Offset of the block in the file. Spec: 06 §10 - old files have no message header. */
static int64_t block_offset(const uint8_t *file)
{
    const bool has_header = MARK_TEMPLATE_ID == asi_get_u16(file + 2) && MARK_SCHEMA_ID == asi_get_u16(file + 4);
    return has_header ? MARK_MESSAGE_HEADER_LENGTH : 0;
}

static as_result check_version(const char *path, int32_t version)
{
    const int32_t major = ASI_ARCHIVE_STORAGE_MAJOR(version);
    if (0 != version && ASI_ARCHIVE_STORAGE_MAJOR(ASI_ARCHIVE_STORAGE_VERSION) != major)
    {
        return asi_fail(AS_E_DATA, 0, "mark file (%s) major version %d does not match software: %d; if the archive is older, on a "
            "copy: aeron-spark archive migrate %.*s --yes", path, major, ASI_ARCHIVE_STORAGE_MAJOR(ASI_ARCHIVE_STORAGE_VERSION),
            (int)(strrchr(path, '/') - path), path);
    }
    return AS_OK;
}

static as_result join_path(char *to, size_t capacity, const char *dir, const char *file)
{
    if (snprintf(to, capacity, "%s/%s", dir, file) >= (int)capacity)
    {
        return asi_fail(AS_E_USAGE, ENAMETOOLONG, "directory name is too long: %s", dir);
    }
    return AS_OK;
}

/* -- errors of the previous run ------------------------------------------------------------------------------------------- */

static void format_time(char *to, size_t capacity, int64_t epoch_ms, const char *format, const char *zone_format)
{
    const time_t seconds = (time_t)(epoch_ms / 1000);
    struct tm tm;
    char date[64] = "";
    char zone[16] = "";
    if (NULL != localtime_r(&seconds, &tm))
    {
        strftime(date, sizeof(date), format, &tm);
        strftime(zone, sizeof(zone), zone_format, &tm);
    }
    snprintf(to, capacity, "%s%03d%s", date, (int)(((epoch_ms % 1000) + 1000) % 1000), zone);
}

static void print_entry(const asi_error_entry *entry, void *context)
{
    char first[96];
    char last[96];
    format_time(first, sizeof(first), entry->first_ms, "%Y-%m-%d %H:%M:%S.", "%z");
    format_time(last, sizeof(last), entry->last_ms, "%Y-%m-%d %H:%M:%S.", "%z");
    fprintf(context, "***\n%d observations from %s to %s for:\n %.*s\n", entry->count, first, last, (int)entry->text_length,
        entry->text);
}

/* Creates a file that not everybody can read. Fails if the name exists, for example as a link. */
static FILE *create_text(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, ASI_ARCHIVE_FILE_MODE);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && NULL == file)
    {
        close(fd);
    }
    return file;
}

/* Spec: 06 §1 - archive-<time>-error.log beside the mark file, only if there are entries. */
static as_result save_errors(const char *mark_dir, const uint8_t *section, int64_t length, int64_t now_ms)
{
    if (0 == asi_get_i32(section))
    {
        return AS_OK;
    }
    char name[128];
    char path[AS_PATH_MAX];
    format_time(name, sizeof(name), now_ms, "archive-%Y-%m-%d-%H-%M-%S-", "%z-error.log");
    const as_result result = join_path(path, sizeof(path), mark_dir, name);
    if (AS_OK != result)
    {
        return result;
    }
    FILE *file = create_text(path);
    if (NULL == file)
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot save the errors of the previous archive to %s", path);
    }
    const int64_t count = asi_error_log_read_untrusted(section, length, 0, print_entry, file);
    fprintf(file, "\n%" PRId64 " distinct errors observed.\n", count);
    if (0 != fclose(file))
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot save the errors of the previous archive to %s", path);
    }
    fprintf(stderr, "WARNING: existing errors saved to: %s\n", path);
    return AS_OK;
}

/* -- claiming ------------------------------------------------------------------------------------------------------------- */

/* Reserves the file's blocks: on a full disk a store into a hole of a mapping kills the process before the archive can report it.
 * Returns an errno. A file system without reservation is accepted. */
static int reserve_blocks(int fd, int64_t length)
{
    const int error = posix_fallocate(fd, 0, length);
    return EOPNOTSUPP == error || EINVAL == error ? 0 : error;
}

/* A file that ends inside its fields is damaged and holds no information: no archive makes such a length. */
static int set_length(int fd, int64_t length)
{
    struct stat st;
    int error = fstat(fd, &st);
    if (0 == error && !S_ISREG(st.st_mode))
    {
        errno = EINVAL;
        return -1;
    }
    if (0 == error && st.st_size > 0 && st.st_size < MARK_MESSAGE_HEADER_LENGTH + MARK_BLOCK_LENGTH)
    {
        error = ftruncate(fd, 0);
        st.st_size = 0;
    }
    return 0 == error && st.st_size < length ? ftruncate(fd, length) : error;
}

/* Maps the file, new or old, with at least `length` bytes. */
static as_result map_file(asi_mark *mark, int64_t length)
{
    /* Do not follow a link: its target would be overwritten. */
    const int fd =
        open(mark->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, ASI_ARCHIVE_FILE_MODE);
    as_result result = AS_OK;
    if (fd < 0 || 0 != set_length(fd, length))
    {
        const bool is_link = fd < 0 && ELOOP == errno;
        result = asi_fail_errno(AS_E_STORAGE, errno, "cannot create mark file %s%s", mark->path,
            is_link ? ", there is a symbolic link: delete it" : "");
    }
    const int error = AS_OK == result ? reserve_blocks(fd, length) : 0;
    if (0 != error)
    {
        result = asi_fail_errno(AS_E_STORAGE, error, "cannot create mark file %s: %" PRId64 " bytes of space are needed; free some, "
            "or set aeron.archive.mark.file.dir to another file system", mark->path, length);
    }
    if (fd >= 0)
    {
        close(fd);
    }
    return AS_OK == result ? asi_map_open(&mark->map, mark->path, length, true) : result;
}

static bool is_gone(int64_t pid) { return pid <= 0 || (pid <= INT32_MAX && 0 != kill((pid_t)pid, 0) && ESRCH == errno); }

/* An archive that was killed during its start leaves INT64_MAX, which is not an activity timestamp. It is dead if it started long
 * ago and its process is gone. Our own pid means another archive of a simulation. */
static bool has_starter_died(const uint8_t *block, int64_t pid, int64_t now_ms)
{
    /* In this form no value of the file overflows. */
    return (pid == getpid() || is_gone(pid)) &&
        asi_get_i64(block + BLOCK_START_TIMESTAMP) <= now_ms - ASI_MARK_LIVENESS_TIMEOUT_MS;
}

/* A timestamp in the future (the clock was set back, or the file is damaged) counts only if the process exists. */
static bool is_fresh(int64_t activity_ms, int64_t pid, int64_t now_ms)
{
    return activity_ms > now_ms + ASI_MARK_LIVENESS_TIMEOUT_MS ? !is_gone(pid) :
        activity_ms > 0 && now_ms - activity_ms < ASI_MARK_LIVENESS_TIMEOUT_MS;
}

/* Spec: 06 §10, start protocol 1. A new file holds 0 there, so two concurrent starts also compete in the compare-and-set. */
static as_result claim(asi_mark *mark, int64_t now_ms)
{
    uint8_t *block = mark->map.base + block_offset(mark->map.base);
    const as_result result = check_version(mark->path, asi_get_i32(block + BLOCK_VERSION));
    if (AS_OK != result)
    {
        return result;
    }
    int64_t *activity = block_i64(block, BLOCK_ACTIVITY_TIMESTAMP);
    const int64_t seen = asi_load_acquire_i64(activity);
    const int64_t pid = asi_get_i64(block + BLOCK_PID);
    if (INT64_MAX == seen ? !has_starter_died(block, pid, now_ms) : is_fresh(seen, pid, now_ms))
    {
        return asi_fail(AS_E_USAGE, 0,
            "active mark file detected: %s; it belongs to process %" PRId64 ": use another folder, stop "
            "that archive, or wait %d s if it was killed%s", mark->path, pid, ASI_MARK_LIVENESS_TIMEOUT_MS / 1000,
            INT64_MAX == seen ? " (it is starting)" : "");
    }
    mark->is_after_crash = AS_NULL_VALUE != seen;
    mark->found_version = asi_get_i32(block + BLOCK_VERSION);
    mark->found_start_ms = asi_get_i64(block + BLOCK_START_TIMESTAMP);
    mark->found_activity_ms = INT64_MAX == seen ? mark->found_start_ms : seen;
    if (!asi_cas_i64(activity, seen, INT64_MAX))
    {
        return asi_fail(AS_E_USAGE, 0,
            "concurrent mark file activation: %s; another archive starts on the same folder", mark->path);
    }
    return AS_OK;
}

static as_result keep_old_errors(const asi_mark *mark, const char *mark_dir, int64_t now_ms)
{
    const uint8_t *block = mark->map.base + block_offset(mark->map.base);
    const int64_t header_length = asi_get_i32(block + BLOCK_HEADER_LENGTH);
    const int64_t length = asi_get_i32(block + BLOCK_ERROR_BUFFER_LENGTH);
    const bool is_inside = header_length > 0 && header_length % 8 == 0 && length > 0 && header_length + length <= mark->map.length;
    return is_inside ? save_errors(mark_dir, mark->map.base + header_length, length, now_ms) : AS_OK;
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
    const int32_t length = NULL == text ? 0 : (int32_t)strlen(text);
    asi_put_i32(at, length);
    if (length > 0)
    {
        memcpy(at + 4, text, (size_t)length);
    }
    return at + 4 + length;
}

static int64_t text_length(const char *text) { return 4 + (NULL == text ? 0 : (int64_t)strlen(text)); }

/* Writes all fields except version, archive id and the activity of a ready file. */
static void write_header(asi_mark *mark, const asi_mark_params *params)
{
    uint8_t *file = mark->map.base;
    uint8_t *block = file + MARK_MESSAGE_HEADER_LENGTH;
    const int64_t behind_activity = MARK_MESSAGE_HEADER_LENGTH + BLOCK_START_TIMESTAMP;
    asi_store_release_i64(block_i64(block, BLOCK_ACTIVITY_TIMESTAMP), INT64_MAX);
    memset(file, 0, MARK_MESSAGE_HEADER_LENGTH + BLOCK_ACTIVITY_TIMESTAMP);
    memset(file + behind_activity, 0, (size_t)(mark->map.length - behind_activity));
    asi_put_u16(file, MARK_BLOCK_LENGTH);
    asi_put_u16(file + 2, MARK_TEMPLATE_ID);
    asi_put_u16(file + 4, MARK_SCHEMA_ID);
    asi_put_u16(file + 6, MARK_SCHEMA_VERSION);
    asi_put_i64(block + BLOCK_START_TIMESTAMP, params->start_timestamp_ms);
    asi_put_i64(block + BLOCK_PID, params->pid);
    asi_put_i32(block + BLOCK_CONTROL_STREAM_ID, params->control_stream_id);
    asi_put_i32(block + BLOCK_LOCAL_CONTROL_STREAM_ID, params->local_control_stream_id);
    asi_put_i32(block + BLOCK_EVENTS_STREAM_ID, params->events_stream_id);
    asi_put_i32(block + BLOCK_HEADER_LENGTH, ASI_MARK_HEADER_LENGTH);
    asi_put_i32(block + BLOCK_ERROR_BUFFER_LENGTH, params->error_buffer_length);
    asi_put_i64(block + BLOCK_ARCHIVE_ID, AS_NULL_VALUE);
    uint8_t *at = put_text(block + MARK_BLOCK_LENGTH, params->control_channel);
    at = put_text(at, params->local_control_channel);
    at = put_text(at, params->events_channel);
    put_text(at, params->aeron_dir);
}

static as_result check_params(const asi_mark_params *params)
{
    const int64_t header_length = MARK_MESSAGE_HEADER_LENGTH + MARK_BLOCK_LENGTH + text_length(params->control_channel) +
        text_length(params->local_control_channel) + text_length(params->events_channel) + text_length(params->aeron_dir);
    if (header_length > ASI_MARK_HEADER_LENGTH)
    {
        return asi_fail(AS_E_USAGE, 0,
            "ArchiveMarkFile headerLength=%" PRId64 " > headerLengthCapacity=%d: use shorter channels or a "
            "shorter directory name", header_length, ASI_MARK_HEADER_LENGTH);
    }
    if (params->error_buffer_length < ASI_MARK_MIN_ERROR_BUFFER_LENGTH ||
        params->error_buffer_length > INT32_MAX - ASI_MARK_HEADER_LENGTH - params->file_page_size)
    {
        return asi_fail(AS_E_USAGE, 0, "invalid errorBufferLength=%d: at least %d", params->error_buffer_length,
            ASI_MARK_MIN_ERROR_BUFFER_LENGTH);
    }
    return AS_OK;
}

/* Writes the link file, or removes it if mark file and archive share a folder. Spec: 06 §1. */
static as_result write_link(asi_mark *mark, const char *archive_dir, const char *mark_dir, bool is_apart)
{
    char path[AS_PATH_MAX];
    as_result result = join_path(path, sizeof(path), archive_dir, ASI_MARK_LINK_FILE);
    if (AS_OK != result)
    {
        return result;
    }
    if (0 != unlink(path) && ENOENT != errno)
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot delete %s", path);
    }
    if (!is_apart)
    {
        return AS_OK;
    }
    memcpy(mark->link_path, path, sizeof(path));
    FILE *file = create_text(path);
    const bool is_written = NULL != file && fputs(mark_dir, file) >= 0;
    const bool is_closed = NULL != file && 0 == fclose(file);
    return is_written && is_closed ? AS_OK : asi_fail_errno(AS_E_STORAGE, errno, "cannot write %s", path);
}

/* Finds the canonical directory of the mark file, and whether it differs from the archive's. */
static as_result resolve_dir(const asi_mark_params *params, char *mark_dir, bool *is_apart)
{
    const char *wanted = NULL == params->mark_dir || '\0' == params->mark_dir[0] ? params->archive_dir : params->mark_dir;
    char archive_dir[AS_PATH_MAX];
    if (NULL == realpath(params->archive_dir, archive_dir))
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "archive folder %s", params->archive_dir);
    }
    if (NULL == realpath(wanted, mark_dir))
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "mark file directory %s", wanted);
    }
    *is_apart = 0 != strcmp(mark_dir, archive_dir);
    return AS_OK;
}

as_result asi_mark_open(const asi_mark_params *params, const asi_clock *clock, asi_mark **mark_out)
{
    char mark_dir[AS_PATH_MAX];
    bool is_apart = false;
    as_result result = check_params(params);
    result = AS_OK == result ? resolve_dir(params, mark_dir, &is_apart) : result;
    if (AS_OK != result)
    {
        return result;
    }
    asi_mark *mark = calloc(1, sizeof(*mark));
    if (NULL == mark)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the mark file");
    }
    mark->error_buffer_length = params->error_buffer_length;
    const int64_t length =
        asi_align_i64((int64_t)ASI_MARK_HEADER_LENGTH + params->error_buffer_length, params->file_page_size);
    const int64_t now_ms = asi_clock_ms(clock);
    result = join_path(mark->path, sizeof(mark->path), mark_dir, ASI_MARK_FILE);
    result = AS_OK == result ? map_file(mark, length) : result;
    if (AS_OK == result)
    {
        result = claim(mark, now_ms);
        if (AS_OK == result)
        {
            /* We own the file from here on: a failure shuts down cleanly. */
            if (AS_OK != keep_old_errors(mark, mark_dir, now_ms))
            {
                /* For example a full disk, which must not prevent the start. */
                fprintf(stderr, "WARNING: the errors of the previous run are lost: %s\n", as_error_text());
            }
            write_header(mark, params);
            mark->block = mark->map.base + MARK_MESSAGE_HEADER_LENGTH;
            result = AS_OK == result ? write_link(mark, params->archive_dir, mark_dir, is_apart) : result;
        }
    }
    if (AS_OK != result)
    {
        asi_mark_withdraw(mark);
        return AS_AGAIN == result ? AS_E_STORAGE : result;
    }
    *mark_out = mark;
    return AS_OK;
}

void asi_mark_ready(asi_mark *mark, int64_t archive_id, int64_t now_ms)
{
    asi_put_i64(mark->block + BLOCK_ARCHIVE_ID, archive_id);
    asi_store_release_i64(block_i64(mark->block, BLOCK_ACTIVITY_TIMESTAMP), now_ms);
    /* Written last: a reader that loads the version with acquire sees all fields. */
    asi_store_release_i32((int32_t *)(void *)(mark->block + BLOCK_VERSION), ASI_ARCHIVE_STORAGE_VERSION);
    asi_map_sync(&mark->map);
}

void asi_mark_heartbeat(asi_mark *mark, int64_t now_ms)
{
    asi_store_release_i64(block_i64(mark->block, BLOCK_ACTIVITY_TIMESTAMP), now_ms);
}

bool asi_mark_is_after_crash(const asi_mark *mark) { return mark->is_after_crash; }
int64_t asi_mark_last_start_ms(const asi_mark *mark) { return 0 != mark->found_version ? mark->found_start_ms : AS_NULL_VALUE; }
int64_t asi_mark_start_ms(const asi_mark *mark) { return asi_get_i64(mark->block + BLOCK_START_TIMESTAMP); }

uint8_t *asi_mark_error_buffer(asi_mark *mark, int64_t *length)
{
    *length = mark->error_buffer_length;
    return mark->map.base + ASI_MARK_HEADER_LENGTH;
}

static void end_activity(asi_mark *mark, int64_t activity_ms)
{
    asi_store_release_i64(block_i64(mark->block, BLOCK_ACTIVITY_TIMESTAMP), activity_ms);
    asi_map_sync(&mark->map);
}

static void release(asi_mark *mark)
{
    asi_map_close(&mark->map);
    free(mark);
}

void asi_mark_close(asi_mark *mark)
{
    if (NULL != mark)
    {
        end_activity(mark, AS_NULL_VALUE);
        release(mark);
    }
}

/* Restores the state that the last archive left: the next start must find its crash and its start time. */
static void restore(asi_mark *mark)
{
    asi_put_i64(mark->block + BLOCK_START_TIMESTAMP, mark->found_start_ms);
    asi_store_release_i32((int32_t *)(void *)(mark->block + BLOCK_VERSION), mark->found_version);
    end_activity(mark, mark->found_activity_ms);
}

void asi_mark_abandon(asi_mark *mark)
{
    if (NULL != mark)
    {
        /* Old enough that no start waits for another heartbeat. */
        const int64_t last_ms = asi_load_acquire_i64(block_i64(mark->block, BLOCK_ACTIVITY_TIMESTAMP));
        end_activity(mark, last_ms - ASI_MARK_LIVENESS_TIMEOUT_MS);
        release(mark);
    }
}

void asi_mark_withdraw(asi_mark *mark)
{
    const bool is_claimed = NULL != mark && NULL != mark->block;
    if (is_claimed && 0 == mark->found_version)
    {
        /* No archive was here. A process that already has the file open finds it claimed by a starting process. */
        unlink(mark->path);
        if ('\0' != mark->link_path[0])
        {
            unlink(mark->link_path);
        }
    }
    else if (is_claimed)
    {
        restore(mark);
    }
    if (NULL != mark)
    {
        release(mark);
    }
}

/* -- reading -------------------------------------------------------------------------------------------------------------- */

/* Reads up to `capacity` bytes. Returns the number read, or -1 with errno. */
static int64_t read_file(const char *path, uint8_t *to, int64_t capacity)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
    {
        return -1;
    }
    int64_t length = 0;
    ssize_t count;
    while (length < capacity && (count = read(fd, to + length, (size_t)(capacity - length))) > 0)
    {
        length += count;
    }
    const int error = length < capacity && count < 0 ? errno : 0;
    close(fd);
    errno = error;
    return 0 == error ? length : -1;
}

/* Finds the path of the folder's mark file: beside the catalog, or in the directory that the link file names. */
static as_result find_file(const char *archive_dir, char *path, size_t capacity)
{
    char link_path[AS_PATH_MAX];
    char target[AS_PATH_MAX];
    as_result result = join_path(link_path, sizeof(link_path), archive_dir, ASI_MARK_LINK_FILE);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t length = read_file(link_path, (uint8_t *)target, sizeof(target) - 1);
    if (length < 0 && ENOENT != errno)
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot read %s", link_path);
    }
    target[length > 0 ? length : 0] = '\0';
    target[strcspn(target, "\r\n")] = '\0';
    return join_path(path, capacity, '\0' != target[0] ? target : archive_dir, ASI_MARK_FILE);
}

/* Copies text number `index` after the block; false if it passes the header. */
static bool copy_text(const uint8_t *texts, const uint8_t *end, int index, char *to, size_t capacity)
{
    const uint8_t *at = texts;
    for (;; index--)
    {
        if (end - at < 4)
        {
            return false;
        }
        const int32_t length = asi_get_i32(at);
        if (length < 0 || length > end - at - 4)
        {
            return false;
        }
        if (0 == index)
        {
            if ((size_t)length >= capacity)
            {
                return false;
            }
            memcpy(to, at + 4, (size_t)length);
            to[length] = '\0';
            return true;
        }
        at += 4 + length;
    }
}

/* Reads fields and texts of the file info->path. */
static as_result read_info(asi_mark_info *info, bool is_any_version)
{
    uint8_t file[ASI_MARK_HEADER_LENGTH];
    const int64_t length = read_file(info->path, file, sizeof(file));
    if (length < 0)
    {
        const int error = errno;
        asi_fail_errno(AS_E_STORAGE, error, "cannot read mark file %s", info->path);
        return ENOENT == error ? AS_AGAIN : AS_E_STORAGE;
    }
    if (length < MARK_MESSAGE_HEADER_LENGTH + MARK_BLOCK_LENGTH)
    {
        return asi_fail(AS_E_DATA, 0,
            "mark file %s has %" PRId64 " bytes, too few: delete it if no archive runs", info->path, length);
    }
    info->block_offset = block_offset(file);
    const uint8_t *block = file + info->block_offset;
    info->version = asi_get_i32(block + BLOCK_VERSION);
    const as_result result = is_any_version ? AS_OK : check_version(info->path, info->version);
    if (AS_OK != result || 0 == info->version)
    {
        return result;
    }
    info->activity_timestamp_ms = asi_get_i64(block + BLOCK_ACTIVITY_TIMESTAMP);
    info->start_timestamp_ms = asi_get_i64(block + BLOCK_START_TIMESTAMP);
    info->pid = asi_get_i64(block + BLOCK_PID);
    info->archive_id = 0 != info->block_offset ? asi_get_i64(block + BLOCK_ARCHIVE_ID) : AS_NULL_VALUE;
    info->control_stream_id = asi_get_i32(block + BLOCK_CONTROL_STREAM_ID);
    info->local_control_stream_id = asi_get_i32(block + BLOCK_LOCAL_CONTROL_STREAM_ID);
    info->events_stream_id = asi_get_i32(block + BLOCK_EVENTS_STREAM_ID);
    info->header_length = asi_get_i32(block + BLOCK_HEADER_LENGTH);
    info->error_buffer_length = asi_get_i32(block + BLOCK_ERROR_BUFFER_LENGTH);
    char *const texts[] = { info->control_channel, info->local_control_channel, info->events_channel, info->aeron_dir };
    for (int i = 0; i < (int)(sizeof(texts) / sizeof(texts[0])); i++)
    {
        if (!copy_text(block + MARK_BLOCK_LENGTH, file + length, i, texts[i], ASI_MARK_TEXT_CAPACITY))
        {
            return asi_fail(AS_E_DATA, 0,
                "mark file %s is damaged: its texts pass the header; delete it if no archive runs", info->path);
        }
    }
    return AS_OK;
}

static as_result read_of_folder(const char *archive_dir, asi_mark_info *info, bool is_any_version)
{
    *info = (asi_mark_info){ .activity_timestamp_ms = AS_NULL_VALUE, .archive_id = AS_NULL_VALUE };
    const as_result result = find_file(archive_dir, info->path, sizeof(info->path));
    return AS_OK == result ? read_info(info, is_any_version) : result;
}

as_result asi_mark_read_untrusted(const char *archive_dir, asi_mark_info *info)
{
    return read_of_folder(archive_dir, info, false);
}

as_result asi_mark_read_any_untrusted(const char *archive_dir, asi_mark_info *info)
{
    return read_of_folder(archive_dir, info, true);
}

bool asi_mark_is_live(const asi_mark_info *info, int64_t now_ms)
{
    return INT64_MAX == info->activity_timestamp_ms || is_fresh(info->activity_timestamp_ms, info->pid, now_ms);
}
