/* Time as an injected dependency: production uses asi_clock_system(), tests and the simulation pass their own. Only duty
 * cycles read a clock; other functions take now_ns or now_ms as an argument. Thread rule: that of the implementation; system:
 * any. */
#ifndef ASI_BASE_CLOCK_H
#define ASI_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef struct asi_clock
{
    int64_t (*nano_time)(void *context);  /* monotonic ns, comparable inside one process only */
    int64_t (*epoch_ms)(void *context);   /* ms since 1970-01-01 UTC, comparable between processes */
    int64_t (*epoch_ns)(void *context);   /* the same in ns, for timestamps in payloads; NULL: as epoch_ms */
    void *context;
} asi_clock;

asi_clock asi_clock_system(void);

static inline int64_t asi_clock_ns(const asi_clock *clock) { return clock->nano_time(clock->context); }
static inline int64_t asi_clock_ms(const asi_clock *clock) { return clock->epoch_ms(clock->context); }

static inline int64_t asi_clock_epoch_ns(const asi_clock *clock)
{
    return NULL == clock->epoch_ns ? asi_clock_ms(clock) * 1000000LL : clock->epoch_ns(clock->context);
}

#endif
