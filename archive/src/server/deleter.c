/* See deleter.h. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/deleter.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "store/segment_layout.h"
#include "store/segment_write.h"

#define NAME_CAPACITY 320
#define REST_MIN_NS 10000
#define REST_MAX_NS 10000000

/* -- names ------------------------------------------------------------------------------------------------------------------- */

static bool append_name(asi_name_list *list, const char *name)
{
    const int64_t length = (int64_t)strlen(name) + 1;
    if (list->length + length > list->capacity)
    {
        const int64_t capacity = 2 * list->capacity + length + 1024;
        char *grown = realloc(list->text, (size_t)capacity);
        if (NULL == grown)
        {
            return false;
        }
        list->text = grown;
        list->capacity = capacity;
    }
    memcpy(list->text + list->length, name, (size_t)length);
    list->length += length;
    list->count++;
    return true;
}

typedef struct listing
{
    asi_delete_work *work;
    char prefix[32]; /* "<id>-" */
    int64_t lowest;  /* base of the lowest segment; end_base when no segment is below it */
    bool has_memory;
} listing;

static bool ends_with(const char *name, const char *suffix)
{
    const size_t length = strlen(name);
    const size_t suffix_length = strlen(suffix);
    return length >= suffix_length && 0 == strcmp(name + length - suffix_length, suffix);
}

/* Spec: 06 §9 - file names of older archives match, too. */
static bool take_name(void *context, const char *name)
{
    listing *list = context;
    asi_delete_work *work = list->work;
    int64_t recording_id;
    int64_t base;
    if (ASI_DELETE_ALL == work->scope)
    {
        const bool is_of_recording = 0 == strncmp(name, list->prefix, strlen(list->prefix)) &&
            (ends_with(name, ASI_SEGMENT_SUFFIX) || ends_with(name, ASI_SEGMENT_DELETED_SUFFIX));
        list->has_memory = !is_of_recording || append_name(&work->names, name);
        return list->has_memory;
    }
    const asi_segment_name kind = asi_segment_name_parse(name, &recording_id, &base);
    if ((ASI_SEGMENT_NAME_LIVE == kind || ASI_SEGMENT_NAME_DELETED == kind) && recording_id == work->recording_id &&
        base < list->lowest)
    {
        list->lowest = base;
    }
    return true;
}

static as_result list_files(asi_delete_work *work)
{
    listing list = { .work = work, .lowest = work->end_base, .has_memory = true };
    snprintf(list.prefix, sizeof(list.prefix), "%" PRId64 "-", work->recording_id);
    const int error = work->files->readdir(work->files->context, work->archive_dir, take_name, &list);
    if (0 != error)
    {
        return asi_fail_errno(AS_E_STORAGE, -error, "cannot list archive folder %s", work->archive_dir);
    }
    if (!list.has_memory)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the segments of recording %" PRId64, work->recording_id);
    }
    if (ASI_DELETE_DETACHED == work->scope)
    {
        work->first_base = list.lowest;
    }
    return AS_OK;
}

/* -- preparing --------------------------------------------------------------------------------------------------------------- */

/* Zeros the file from the offset on: in one step where the file system supports it, else by truncating the file and extending it
 * again. If that second step fails, the truncation has still succeeded: readers stop at the stop position, and the next
 * extension restores the file's length. Returns 0, or -errno when nothing has changed. */
static int clear_tail(const asi_delete_work *work, int fd)
{
    const asi_file_ops *files = work->files;
    int error = NULL == files->punch ? -EOPNOTSUPP :
        files->punch(files->context, fd, work->cut_offset, work->segment_length - work->cut_offset);
    if (-EOPNOTSUPP == error || -ENOSYS == error)
    {
        error = files->ftruncate(files->context, fd, work->cut_offset);
        if (0 == error)
        {
            (void)files->ftruncate(files->context, fd, work->segment_length);
        }
    }
    return error;
}

static as_result cut_file(asi_delete_work *work)
{
    const asi_file_ops *files = work->files;
    char path[AS_PATH_MAX];
    const as_result result =
        asi_segment_path(path, sizeof(path), work->archive_dir, work->recording_id, work->cut_base);
    if (AS_OK != result)
    {
        return result;
    }
    const int fd = asi_segment_open_own(files, path);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -fd, "cannot open segment %s to truncate it", path);
    }
    const int error = clear_tail(work, fd);
    if (0 == error)
    {
        (void)asi_file_sync(files, fd, work->file_sync_level);
    }
    files->close(files->context, fd);
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot truncate segment %s", path);
}

static void prepare(asi_delete_work *work)
{
    as_result result = ASI_DELETE_RANGE == work->scope ? AS_OK : list_files(work);
    if (AS_OK == result && AS_NULL_VALUE != work->cut_base)
    {
        result = cut_file(work);
    }
    work->failure = result;
    if (AS_OK != result)
    {
        work->failure_code = as_error_code();
        snprintf(work->failure_text, sizeof(work->failure_text), "%s", as_error_text());
        return;
    }
    const int64_t range = work->end_base - work->first_base;
    work->count = ASI_DELETE_ALL == work->scope ? work->names.count : range > 0 ? range / work->segment_length : 0;
}

/* -- deleting ---------------------------------------------------------------------------------------------------------------- */

static int unlink_name(const asi_delete_work *work, const char *name)
{
    char path[AS_PATH_MAX + NAME_CAPACITY];
    snprintf(path, sizeof(path), "%s/%s", work->archive_dir, name);
    return work->files->unlink(work->files->context, path);
}

static void delete_next(asi_delete_work *work)
{
    char name[NAME_CAPACITY];
    if (ASI_DELETE_ALL == work->scope)
    {
        snprintf(name, sizeof(name), "%s", work->names.text + work->name_offset);
        work->name_offset += (int64_t)strlen(work->names.text + work->name_offset) + 1;
    }
    else
    {
        snprintf(name, sizeof(name), "%" PRId64 "-%" PRId64 ASI_SEGMENT_SUFFIX, work->recording_id,
            work->first_base + work->done * work->segment_length);
    }
    int error = unlink_name(work, name);
    if (-ENOENT == error && ends_with(name, ASI_SEGMENT_SUFFIX))
    {
        const size_t length = strlen(name);
        snprintf(name + length, sizeof(name) - length, "%s", ASI_SEGMENT_DELETED_SUFFIX);
        error = unlink_name(work, name);
        name[length] = '\0';
    }
    work->done++;
    if (0 != error && -ENOENT != error)
    {
        char path[AS_PATH_MAX + NAME_CAPACITY];
        snprintf(path, sizeof(path), "%s/%s", work->archive_dir, name);
        (void)append_name(&work->failed, path); /* out of memory: this path is missing from the report to the requester */
    }
}

void asi_delete_work_init(asi_delete_work *work)
{
    *work = (asi_delete_work){ .cut_base = AS_NULL_VALUE, .must_prepare = true };
}

void asi_delete_work_close(asi_delete_work *work)
{
    free(work->names.text);
    free(work->failed.text);
}

bool asi_delete_work_step(asi_delete_work *work)
{
    if (work->must_prepare)
    {
        prepare(work);
        return false;
    }
    if (work->done < work->count)
    {
        delete_next(work);
    }
    if (work->done < work->count)
    {
        return true;
    }
    if (work->file_sync_level > 0 && work->count > 0)
    {
        (void)work->files->sync_directory(work->files->context, work->archive_dir);
    }
    return false;
}

/* -- the thread -------------------------------------------------------------------------------------------------------------- */

static asi_delete_work *take(asi_deleter *deleter)
{
    asi_delete_work *work = deleter->first;
    if (NULL != work)
    {
        deleter->first = work->next_work;
        deleter->last = NULL == deleter->first ? NULL : deleter->last;
    }
    return work;
}

/* CPU time of the calling thread. */
static int64_t core_ns(void)
{
    struct timespec time = { 0 };
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Sleeps as long as the last file kept a core busy. A thread that runs without a pause gets a whole scheduler slice of some
 * milliseconds, and a recorder on the same core waits that long. A thread that sleeps after each file delays the recorder for
 * one file only. */
static void rest(int64_t worked_ns)
{
    const int64_t rest_ns = worked_ns < REST_MIN_NS ? REST_MIN_NS : worked_ns > REST_MAX_NS ? REST_MAX_NS : worked_ns;
    const struct timespec pause = { .tv_nsec = rest_ns };
    nanosleep(&pause, NULL);
}

static void work_off(const asi_deleter *deleter, asi_delete_work *work)
{
    int64_t begin_ns = core_ns();
    while (asi_delete_work_step(work) && !asi_load_acquire_bool(&deleter->must_end))
    {
        rest(core_ns() - begin_ns);
        begin_ns = core_ns();
    }
}

static void *run(void *context)
{
    asi_deleter *deleter = context;
    pthread_setname_np(pthread_self(), "archive-del");
    asi_thread_sleep_exactly();
    pthread_mutex_lock(&deleter->mutex);
    while (!deleter->must_end)
    {
        asi_delete_work *work = take(deleter);
        if (NULL == work)
        {
            pthread_cond_wait(&deleter->wake, &deleter->mutex);
            continue;
        }
        pthread_mutex_unlock(&deleter->mutex);
        work_off(deleter, work);
        asi_intrusive_queue_put(deleter->returned, &work->item);
        pthread_mutex_lock(&deleter->mutex);
    }
    pthread_mutex_unlock(&deleter->mutex);
    return NULL;
}

/* The thread blocks signals: the process's main thread handles them. */
static bool start(asi_deleter *deleter)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    deleter->is_started = 0 == pthread_create(&deleter->thread, NULL, run, deleter);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return deleter->is_started;
}

void asi_deleter_init(asi_deleter *deleter, asi_intrusive_queue *returned, bool has_thread)
{
    *deleter = (asi_deleter){ .returned = returned, .has_thread = has_thread };
    pthread_mutex_init(&deleter->mutex, NULL);
    pthread_cond_init(&deleter->wake, NULL);
}

void asi_deleter_put(asi_deleter *deleter, asi_delete_work *work)
{
    work->next_work = NULL;
    if (deleter->has_thread && !deleter->is_started && !start(deleter))
    {
        deleter->has_thread = false; /* no thread is available: the conductor does the work, more slowly */
    }
    pthread_mutex_lock(&deleter->mutex);
    if (NULL == deleter->last)
    {
        deleter->first = work;
    }
    else
    {
        deleter->last->next_work = work;
    }
    deleter->last = work;
    pthread_cond_signal(&deleter->wake);
    pthread_mutex_unlock(&deleter->mutex);
}

int asi_deleter_step(asi_deleter *deleter)
{
    if (deleter->has_thread || NULL == deleter->first)
    {
        return 0;
    }
    if (!asi_delete_work_step(deleter->first))
    {
        asi_intrusive_queue_put(deleter->returned, &take(deleter)->item);
    }
    return 1;
}

void asi_deleter_stop(asi_deleter *deleter)
{
    if (deleter->is_started)
    {
        pthread_mutex_lock(&deleter->mutex);
        asi_store_release_bool(&deleter->must_end, true);
        pthread_cond_signal(&deleter->wake);
        pthread_mutex_unlock(&deleter->mutex);
        pthread_join(deleter->thread, NULL);
        deleter->is_started = false;
    }
    deleter->has_thread = false;
}

void asi_deleter_close(asi_deleter *deleter)
{
    asi_deleter_stop(deleter);
    pthread_cond_destroy(&deleter->wake);
    pthread_mutex_destroy(&deleter->mutex);
}
