/* Mapped log buffers of one client, shared by registration id. A publication, its other handles and the images of an IPC
 * stream share one mapping. Spec: 02 §10.2, 03 §15.6.
 *
 * An unused log stays mapped until the time that its last user set, so that a claim or a frame that the application still
 * holds does not fault. Thread rule: the caller holds the client's lock. */
#ifndef ASI_CLIENT_LOG_CACHE_H
#define ASI_CLIENT_LOG_CACHE_H

#include "shm/log_layout.h"

typedef struct asi_cached_log
{
    asi_log log; /* owned */
    int64_t registration_id;
    int64_t unmap_at_ns; /* valid when the log has no user */
    int32_t user_count;
    struct asi_cached_log *next;
} asi_cached_log;

typedef struct asi_log_cache
{
    asi_cached_log *first; /* owned */
    bool pre_touch;
} asi_log_cache;

/* Maps the log, or shares an existing mapping. Release it with asi_log_cache_release. */
as_result asi_log_cache_acquire(asi_log_cache *cache, int64_t registration_id, const char *path, asi_cached_log **log)
    AS_MUST_USE;
void asi_log_cache_release(asi_cached_log *log, int64_t unmap_at_ns);
/* Unmaps unused logs that are due; returns their number. */
int asi_log_cache_sweep(asi_log_cache *cache, int64_t now_ns);
/* Unmaps all logs, used or not. */
void asi_log_cache_close(asi_log_cache *cache);

#endif
