/* Schedules a duty cycle over many items when few are busy. Busy items run every cycle. Idle items share a fixed number of
 * slots per cycle, with more slots after a long cycle, because an agent without work parks for a millisecond. Idle items then
 * cost the cycle almost nothing, and an item that becomes busy among thousands waits a few milliseconds once.
 *
 * The sender uses it for its publications, the receiver for its images, and the conductor for both. The owner keeps the items
 * and iterates over the idle ones itself; this struct records which items are busy. If there are few items, or too many busy
 * ones to record, all items run every cycle. Thread rule: the owner's. */
#ifndef ASI_BASE_ROUND_ROBIN_H
#define ASI_BASE_ROUND_ROBIN_H

#include <stdbool.h>
#include <stdint.h>

#define ASI_ROUND_ROBIN_SLOTS 64           /* idle items that run per cycle */
#define ASI_ROUND_ROBIN_SLOT_NS 2048       /* one more slot for this much time since the last cycle; a check takes under 1% */
#define ASI_ROUND_ROBIN_BUSY_CAPACITY 64
#define ASI_ROUND_ROBIN_BUSY_NS 100000000LL /* an item counts as busy this long after its last work */

typedef struct asi_round_robin_entry
{
    void *item; /* borrowed */
    int64_t last_work_ns;
} asi_round_robin_entry;

typedef struct asi_round_robin
{
    asi_round_robin_entry busy[ASI_ROUND_ROBIN_BUSY_CAPACITY];
    int32_t busy_count;
    int64_t last_cycle_ns;
    int32_t next; /* index of the next idle item to run, for owners of arrays */
} asi_round_robin;

/* Call when the item did work. */
static inline void asi_round_robin_mark_busy(asi_round_robin *schedule, void *item, int64_t now_ns)
{
    int32_t at = 0;
    while (at < schedule->busy_count && schedule->busy[at].item != item)
    {
        at++;
    }
    if (at < ASI_ROUND_ROBIN_BUSY_CAPACITY)
    {
        schedule->busy_count += at == schedule->busy_count ? 1 : 0;
        schedule->busy[at] = (asi_round_robin_entry){ .item = item, .last_work_ns = now_ns };
    }
}

/* Call before the item is freed. */
static inline void asi_round_robin_remove(asi_round_robin *schedule, const void *item)
{
    for (int32_t i = 0; i < schedule->busy_count; i++)
    {
        if (schedule->busy[i].item == item)
        {
            schedule->busy[i] = schedule->busy[--schedule->busy_count];
            return;
        }
    }
}

/* Call at the end of a cycle. Items without recent work become idle. */
static inline void asi_round_robin_expire_busy(asi_round_robin *schedule, int64_t now_ns)
{
    schedule->last_cycle_ns = now_ns;
    for (int32_t i = schedule->busy_count - 1; i >= 0; i--)
    {
        if (now_ns - schedule->busy[i].last_work_ns > ASI_ROUND_ROBIN_BUSY_NS)
        {
            schedule->busy[i] = schedule->busy[--schedule->busy_count];
        }
    }
}

/* How many of `count` items run in this cycle besides the busy ones. */
static inline int32_t asi_round_robin_slots(const asi_round_robin *schedule, int32_t count, int64_t now_ns)
{
    const int64_t slots = ASI_ROUND_ROBIN_SLOTS + (now_ns - schedule->last_cycle_ns) / ASI_ROUND_ROBIN_SLOT_NS;
    const bool is_for_all = count <= 2 * ASI_ROUND_ROBIN_SLOTS || ASI_ROUND_ROBIN_BUSY_CAPACITY == schedule->busy_count;
    return is_for_all || slots >= count ? count : (int32_t)slots;
}

/* Returns the index of the next item to run, and advances; for owners of arrays. */
static inline int32_t asi_round_robin_next(asi_round_robin *schedule, int32_t count)
{
    const int32_t at = schedule->next < count ? schedule->next : 0;
    schedule->next = at + 1;
    return at;
}

#endif
