/* Whose turn it is in a duty cycle over many items of which few are busy: the busy ones' in each cycle, the others' in turn, so
 * many a cycle, and more after a cycle that was long: an agent with nothing to do parks for a millisecond. What is idle then costs
 * the cycle next to nothing, and what wakes up among thousands waits a few milliseconds once.
 *
 * Called by the sender over its publications, by the receiver over its images and by the conductor over both. The owner keeps
 * the items and walks those in turn itself; this holds who is busy. While there are few items, or too many are busy to be told,
 * all have their turn in each cycle. Thread rule: the owner's. */
#ifndef ASI_BASE_ROUND_ROBIN_H
#define ASI_BASE_ROUND_ROBIN_H

#include <stdbool.h>
#include <stdint.h>

#define ASI_ROUND_ROBIN_SLOTS 64           /* idle items with a turn in each cycle */
#define ASI_ROUND_ROBIN_SLOT_NS 2048       /* one more for so much time since the last cycle; a look takes less than a hundredth of it */
#define ASI_ROUND_ROBIN_BUSY_CAPACITY 64
#define ASI_ROUND_ROBIN_BUSY_NS 100000000LL /* since its last work */

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
    int32_t next; /* index of the item that is next in turn, for owners of arrays */
} asi_round_robin;

/* The item did something. */
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

/* Before the item goes. */
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

/* At the end of a cycle: what has not worked for a while is not busy any more. */
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

/* How many of `count` items have a turn beside the busy ones. */
static inline int32_t asi_round_robin_slots(const asi_round_robin *schedule, int32_t count, int64_t now_ns)
{
    const int64_t turns = ASI_ROUND_ROBIN_SLOTS + (now_ns - schedule->last_cycle_ns) / ASI_ROUND_ROBIN_SLOT_NS;
    return count <= 2 * ASI_ROUND_ROBIN_SLOTS || ASI_ROUND_ROBIN_BUSY_CAPACITY == schedule->busy_count || turns >= count ? count : (int32_t)turns;
}

/* The index whose turn is next, and the one after it; for owners of arrays. */
static inline int32_t asi_round_robin_next(asi_round_robin *schedule, int32_t count)
{
    const int32_t at = schedule->next < count ? schedule->next : 0;
    schedule->next = at + 1;
    return at;
}

#endif
