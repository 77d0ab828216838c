/* Mapped log buffers of one client, shared by registration id: a publication, its other handles and the images of an IPC
 * stream use one mapping. Spec: 02 §10.2, 03 §15.6.
 *
 * A log nobody uses any more stays mapped until the time its last user named, so that a claim or a frame that the
 * application still holds does not fault. Thread rule: under the client's lock. */
#ifndef ASI_CLIENT_LOG_CACHE_H
#define ASI_CLIENT_LOG_CACHE_H

#include "shm/log_layout.h"

typedef struct asi_cached_log
{
    asi_log log; /* owned */
    int64_t registration_id;
    int64_t unmap_at_ns; /* once nobody uses it */
    int32_t user_count;
    struct asi_cached_log *next;
} asi_cached_log;

typedef struct asi_log_cache
{
    asi_cached_log *first; /* owned */
    bool pre_touch;
} asi_log_cache;

/* Maps the log, or shares the mapping that exists. Give it back with asi_log_cache_release. */
as_result asi_log_cache_acquire(asi_log_cache *cache, int64_t registration_id, const char *path, asi_cached_log **log)
    AS_MUST_USE;
void asi_log_cache_release(asi_cached_log *log, int64_t unmap_at_ns);
/* Unmaps what has no user and is due; returns how many. */
int asi_log_cache_sweep(asi_log_cache *cache, int64_t now_ns);
/* Unmaps all, used or not. */
void asi_log_cache_close(asi_log_cache *cache);

#endif
