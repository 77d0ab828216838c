/* See cpus.h. */
#define _GNU_SOURCE
#include "driver/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

void asi_cpu_set_of_process(asi_cpu_set *set)
{
    cpu_set_t mask;
    set->count = 0;
    if (0 != sched_getaffinity(0, sizeof(mask), &mask))
    {
        return;
    }
    for (int32_t cpu = 0; cpu < CPU_SETSIZE && set->count < ASI_CPU_CAPACITY; cpu++)
    {
        if (CPU_ISSET((size_t)cpu, &mask))
        {
            set->cpus[set->count++] = cpu;
        }
    }
}

static int32_t thread_count(asi_threading_mode mode)
{
    return ASI_THREADING_DEDICATED == mode ? 3 : ASI_THREADING_SHARED_NETWORK == mode ? 2 : 1;
}

as_result asi_driver_cpus_choose(const asi_driver_settings *settings, const asi_cpu_set *allowed, asi_driver_cpus *cpus)
{
    const int32_t count = thread_count(settings->threading_mode);
    int32_t chosen[3] = { (int32_t)settings->conductor_cpu_affinity, (int32_t)settings->sender_cpu_affinity,
        (int32_t)settings->receiver_cpu_affinity };
    int32_t next = 0;
    for (int32_t i = 0; settings->cpuset_affinity && i < count; i++)
    {
        while (chosen[i] < 0 && next < allowed->count)
        {
            const int32_t cpu = allowed->cpus[next++];
            chosen[i] = cpu == chosen[0] || cpu == chosen[1] || cpu == chosen[2] ? -1 : cpu;
        }
        if (chosen[i] < 0 && settings->cpuset_warnings_as_errors)
        {
            return asi_fail(AS_E_USAGE, EINVAL, "aeron.driver.cpuset.affinity: %d threads and %d CPUs to run them on; give the "
                "driver more, or set aeron.threading.mode=SHARED", count, allowed->count);
        }
        if (chosen[i] < 0)
        {
            fprintf(stderr, "WARNING: AERON_DRIVER_CPUSET_AFFINITY has no effect: %d threads and %d CPUs to run them on\n",
                count, allowed->count);
            chosen[0] = (int32_t)settings->conductor_cpu_affinity;
            chosen[1] = (int32_t)settings->sender_cpu_affinity;
            chosen[2] = (int32_t)settings->receiver_cpu_affinity;
            break;
        }
    }
    *cpus = (asi_driver_cpus){ .conductor = chosen[0], .sender = chosen[1], .receiver = chosen[2] };
    return AS_OK;
}
