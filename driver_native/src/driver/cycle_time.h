/* How long an agent's duty cycles take: the longest, and how many take longer than a threshold. Each of conductor, sender and
 * receiver has one, and is the only writer of its two counters. */
#ifndef ASI_DRIVER_CYCLE_TIME_H
#define ASI_DRIVER_CYCLE_TIME_H

#include "shm/counters.h"

typedef struct asi_cycle_time
{
    int64_t last_ns; /* start of the last cycle */
    bool has_cycled;
} asi_cycle_time;

/* At the start of each cycle. */
static inline void asi_cycle_time_track(asi_cycle_time *cycle, int64_t now_ns, int64_t threshold_ns, const asi_counters *counters,
    int32_t max_counter_id, int32_t exceeded_counter_id)
{
    const int64_t taken_ns = cycle->has_cycled ? now_ns - cycle->last_ns : 0;
    int64_t *max = asi_counter_addr(counters, max_counter_id);
    if (taken_ns > asi_load_relaxed_i64(max))
    {
        asi_store_release_i64(max, taken_ns);
    }
    if (cycle->has_cycled && taken_ns > threshold_ns)
    {
        asi_counters_add(counters, exceeded_counter_id, 1);
    }
    cycle->has_cycled = true;
    cycle->last_ns = now_ns;
}

#endif
