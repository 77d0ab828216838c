/* Whose turn it is in a duty cycle over many items of which few are busy: the busy ones' in each cycle, the others' in turn, so
 * many a cycle, and more after a cycle that was long: an agent with nothing to do parks for a millisecond. What is idle then costs
 * the cycle next to nothing, and what wakes up among thousands waits a few milliseconds once.
 *
 * Called by the sender over its publications, by the receiver over its images and by the conductor over both. The owner keeps
 * the items and walks those in turn itself; this holds who is busy. While there are few items, or too many are busy to be told,
 * all have their turn in each cycle. Thread rule: the owner's. */
#ifndef ASI_BASE_ROTA_H
#define ASI_BASE_ROTA_H

#include <stdbool.h>
#include <stdint.h>

#define ASI_ROTA_TURNS 64           /* idle items with a turn in each cycle */
#define ASI_ROTA_TURN_NS 2048       /* one more for so much time since the last cycle; a look takes less than a hundredth of it */
#define ASI_ROTA_BUSY_CAPACITY 64
#define ASI_ROTA_BUSY_NS 100000000LL /* since its last work */

typedef struct asi_rota_entry
{
    void *item; /* borrowed */
    int64_t last_work_ns;
} asi_rota_entry;

typedef struct asi_rota
{
    asi_rota_entry busy[ASI_ROTA_BUSY_CAPACITY];
    int32_t busy_count;
    int64_t last_cycle_ns;
    int32_t next; /* index of the item that is next in turn, for owners of arrays */
} asi_rota;

/* The item did something. */
static inline void asi_rota_note(asi_rota *rota, void *item, int64_t now_ns)
{
    int32_t at = 0;
    while (at < rota->busy_count && rota->busy[at].item != item)
    {
        at++;
    }
    if (at < ASI_ROTA_BUSY_CAPACITY)
    {
        rota->busy_count += at == rota->busy_count ? 1 : 0;
        rota->busy[at] = (asi_rota_entry){ .item = item, .last_work_ns = now_ns };
    }
}

/* Before the item goes. */
static inline void asi_rota_forget(asi_rota *rota, const void *item)
{
    for (int32_t i = 0; i < rota->busy_count; i++)
    {
        if (rota->busy[i].item == item)
        {
            rota->busy[i] = rota->busy[--rota->busy_count];
            return;
        }
    }
}

/* At the end of a cycle: what has not worked for a while is not busy any more. */
static inline void asi_rota_tire(asi_rota *rota, int64_t now_ns)
{
    rota->last_cycle_ns = now_ns;
    for (int32_t i = rota->busy_count - 1; i >= 0; i--)
    {
        if (now_ns - rota->busy[i].last_work_ns > ASI_ROTA_BUSY_NS)
        {
            rota->busy[i] = rota->busy[--rota->busy_count];
        }
    }
}

/* How many of `count` items have a turn beside the busy ones. */
static inline int32_t asi_rota_turns(const asi_rota *rota, int32_t count, int64_t now_ns)
{
    const int64_t turns = ASI_ROTA_TURNS + (now_ns - rota->last_cycle_ns) / ASI_ROTA_TURN_NS;
    return count <= 2 * ASI_ROTA_TURNS || ASI_ROTA_BUSY_CAPACITY == rota->busy_count || turns >= count ? count : (int32_t)turns;
}

/* The index whose turn is next, and the one after it; for owners of arrays. */
static inline int32_t asi_rota_next(asi_rota *rota, int32_t count)
{
    const int32_t at = rota->next < count ? rota->next : 0;
    rota->next = at + 1;
    return at;
}

#endif
