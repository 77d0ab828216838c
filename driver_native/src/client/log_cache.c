/* Reference-counted log mappings; see log_cache.h. */
#include "client/log_cache.h"

#include <errno.h>
#include <stdlib.h>

as_result asi_log_cache_acquire(asi_log_cache *cache, int64_t registration_id, const char *path, asi_cached_log **log)
{
    for (asi_cached_log *at = cache->first; NULL != at; at = at->next)
    {
        if (at->registration_id == registration_id)
        {
            at->user_count++;
            *log = at;
            return AS_OK;
        }
    }
    asi_cached_log *fresh = calloc(1, sizeof(*fresh));
    if (NULL == fresh)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the log %s", path);
    }
    const as_result result = asi_log_open_untrusted(&fresh->log, path, cache->pre_touch);
    if (AS_OK != result)
    {
        free(fresh);
        return result;
    }
    fresh->registration_id = registration_id;
    fresh->user_count = 1;
    fresh->next = cache->first;
    cache->first = fresh;
    *log = fresh;
    return AS_OK;
}

void asi_log_cache_release(asi_cached_log *log, int64_t unmap_at_ns)
{
    log->user_count--;
    if (unmap_at_ns > log->unmap_at_ns)
    {
        log->unmap_at_ns = unmap_at_ns;
    }
}

int asi_log_cache_sweep(asi_log_cache *cache, int64_t now_ns)
{
    int unmapped = 0;
    for (asi_cached_log **link = &cache->first; NULL != *link;)
    {
        asi_cached_log *log = *link;
        if (log->user_count > 0 || now_ns < log->unmap_at_ns)
        {
            link = &log->next;
            continue;
        }
        *link = log->next;
        asi_log_close(&log->log);
        free(log);
        unmapped++;
    }
    return unmapped;
}

void asi_log_cache_close(asi_log_cache *cache)
{
    while (NULL != cache->first)
    {
        asi_cached_log *log = cache->first;
        cache->first = log->next;
        asi_log_close(&log->log);
        free(log);
    }
}
