/* Schedules a duty cycle over many items when few are busy. Busy items run every cycle; idle items share a fixed number of slots
 * per cycle. A long cycle adds slots, because an agent without work parks for a millisecond. An idle item then adds almost
 * nothing to the cycle, and an item that becomes active among thousands waits a few milliseconds once.
 *
 * The sender uses it for its publications, the receiver for its images, and the conductor for both. The owner keeps the items and
 * iterates over the idle ones itself; this struct holds the busy ones. When there are few items, or more busy items than the
 * capacity, every item runs in every cycle. Thread rule: the owner's. */
#ifndef ASI_BASE_ROUND_ROBIN_H
#define ASI_BASE_ROUND_ROBIN_H

#include <stdbool.h>
#include <stdint.h>

#define ASI_ROUND_ROBIN_SLOTS 64           /* slots for idle items in each cycle */
#define ASI_ROUND_ROBIN_SLOT_NS 2048       /* one extra slot per this time since the last cycle; a slot takes under 1 % of it */
#define ASI_ROUND_ROBIN_BUSY_CAPACITY 64
#define ASI_ROUND_ROBIN_BUSY_NS 100000000LL /* an item is busy for so long after its last work */

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
    int32_t next; /* index of the next idle item, for owners of arrays */
} asi_round_robin;

/* Records that the item did work at `now_ns`. */
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

/* Call at the end of a cycle. Drops the items that have not worked for ASI_ROUND_ROBIN_BUSY_NS. */
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

/* Number of slots of this cycle for the idle items among `count` items. */
static inline int32_t asi_round_robin_slots(const asi_round_robin *schedule, int32_t count, int64_t now_ns)
{
    const int64_t turns = ASI_ROUND_ROBIN_SLOTS + (now_ns - schedule->last_cycle_ns) / ASI_ROUND_ROBIN_SLOT_NS;
    return count <= 2 * ASI_ROUND_ROBIN_SLOTS || ASI_ROUND_ROBIN_BUSY_CAPACITY == schedule->busy_count || turns >= count ? count : (int32_t)turns;
}

/* Returns the index of the next slot and advances by one; for owners of arrays. */
static inline int32_t asi_round_robin_next(asi_round_robin *schedule, int32_t count)
{
    const int32_t at = schedule->next < count ? schedule->next : 0;
    schedule->next = at + 1;
    return at;
}

#endif
