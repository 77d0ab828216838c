/* The system's clocks; see clock.h. */
#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id, int64_t units_per_second)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * units_per_second + ts.tv_nsec / (1000000000 / units_per_second);
}

static int64_t system_nano_time(void *context)
{
    (void)context;
    return read_clock(CLOCK_MONOTONIC, 1000000000);
}

static int64_t system_epoch_ms(void *context)
{
    (void)context;
    return read_clock(CLOCK_REALTIME, 1000);
}

static int64_t system_epoch_ns(void *context)
{
    (void)context;
    return read_clock(CLOCK_REALTIME, 1000000000);
}

asi_clock asi_clock_system(void)
{
    return (asi_clock){ .nano_time = system_nano_time, .epoch_ms = system_epoch_ms, .epoch_ns = system_epoch_ns };
}
