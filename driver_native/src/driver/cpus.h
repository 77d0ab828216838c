/* Which CPU each thread of the driver runs on: as told one by one, or from those that the process may use. Spec: 05 §7.5.
 * Called by driver.c before threads start. Thread rule: any. */
#ifndef ASI_DRIVER_CPUS_H
#define ASI_DRIVER_CPUS_H

#include "driver/config.h"

#define ASI_CPU_CAPACITY 1024

typedef struct asi_cpu_set /* CPUs that the process may use, by rising number */
{
    int32_t count;
    int32_t cpus[ASI_CPU_CAPACITY];
} asi_cpu_set;

typedef struct asi_driver_cpus /* -1: wherever the kernel likes */
{
    int32_t conductor; /* of the thread that runs the conductor, whatever else it runs */
    int32_t sender;    /* of the thread that runs the sender, maybe with the receiver */
    int32_t receiver;
} asi_driver_cpus;

/* As cgroups and taskset leave it. */
void asi_cpu_set_of_process(asi_cpu_set *set);
/* Settings that name a CPU win. With aeron.driver.cpuset.affinity each other thread gets the next CPU of `allowed` that no
 * thread has; too few are warned of on stderr and none is used then, or AS_E_USAGE where warnings are errors. */
as_result asi_driver_cpus_choose(const asi_driver_settings *settings, const asi_cpu_set *allowed, asi_driver_cpus *cpus)
    AS_MUST_USE;

#endif
