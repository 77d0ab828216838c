/* Holds the mark file as a lock; see lock.h. */
#include "tools/lock.h"

#include <inttypes.h>

#include "base/atomic.h"
#include "store/mark.h"

static as_result fail_live(const asi_mark_info *mark)
{
    return asi_fail(AS_E_USAGE, 0,
        "active mark file detected: %s; the folder belongs to the running archive of process %" PRId64 ", or to a tool: stop it "
        "first, or wait %d s if it was killed%s", mark->path, mark->pid, ASI_MARK_LIVENESS_TIMEOUT_MS / 1000,
        INT64_MAX == mark->activity_timestamp_ms ? " (it was starting; if it died then, delete the mark file)" : "");
}

as_result asi_tool_lock_take(asi_tool_lock *lock, const char *archive_dir)
{
    *lock = (asi_tool_lock){ .clock = asi_clock_system() };
    asi_mark_info mark;
    as_result result = asi_mark_read_any_untrusted(archive_dir, &mark);
    if (AS_AGAIN == result)
    {
        return AS_OK;
    }
    const int64_t now_ms = asi_clock_ms(&lock->clock);
    if (AS_OK == result && asi_mark_is_live(&mark, now_ms))
    {
        result = fail_live(&mark);
    }
    result = AS_OK == result ? asi_map_open(&lock->map, mark.path, ASI_MARK_HEADER_LENGTH, true) : result;
    if (AS_OK != result)
    {
        return AS_AGAIN == result ? asi_fail(AS_E_DATA, 0, "mark file %s is too short: delete it if no archive runs", mark.path) :
            result;
    }
    int64_t *activity = (int64_t *)(void *)(lock->map.base + mark.block_offset + ASI_MARK_BLOCK_ACTIVITY);
    lock->before = asi_load_acquire_i64(activity);
    mark.activity_timestamp_ms = lock->before;
    if (asi_mark_is_live(&mark, now_ms) || !asi_cas_i64(activity, lock->before, now_ms))
    {
        asi_map_close(&lock->map);
        return fail_live(&mark);
    }
    lock->activity = activity;
    lock->beat_ms = now_ms;
    return AS_OK;
}

void asi_tool_lock_beat(asi_tool_lock *lock)
{
    if (NULL == lock->activity)
    {
        return;
    }
    const int64_t now_ms = asi_clock_ms(&lock->clock);
    if (now_ms - lock->beat_ms >= ASI_MARK_UPDATE_INTERVAL_MS)
    {
        lock->beat_ms = now_ms;
        asi_store_release_i64(lock->activity, now_ms);
    }
}

void asi_tool_lock_release(asi_tool_lock *lock)
{
    if (NULL != lock->activity)
    {
        asi_store_release_i64(lock->activity, lock->before);
        asi_map_sync(&lock->map);
        lock->activity = NULL;
    }
    asi_map_close(&lock->map);
}
