/* Chooses the CPU of each driver thread: from its own setting, or from the CPUs that the process may use. Spec: 05 §7.5. driver.c
 * calls it before threads start. Thread rule: any. */
#ifndef ASI_DRIVER_CPUS_H
#define ASI_DRIVER_CPUS_H

#include "driver/config.h"

#define ASI_CPU_CAPACITY 1024

typedef struct asi_cpu_set /* CPUs that the process may use, in ascending order */
{
    int32_t count;
    int32_t cpus[ASI_CPU_CAPACITY];
} asi_cpu_set;

typedef struct asi_driver_cpus /* -1: no affinity */
{
    int32_t conductor; /* of the thread that runs the conductor, with any other agent on it */
    int32_t sender;    /* of the thread that runs the sender, and the receiver where they share it */
    int32_t receiver;
} asi_driver_cpus;

/* As limited by cgroups and taskset. */
void asi_cpu_set_of_process(asi_cpu_set *set);
/* Settings that name a CPU take precedence. With aeron.driver.cpuset.affinity each other thread gets the next CPU of `allowed`
 * that no thread has. When there are too few, none is used and stderr gets a warning, or AS_E_USAGE where warnings are errors. */
as_result asi_driver_cpus_choose(const asi_driver_settings *settings, const asi_cpu_set *allowed, asi_driver_cpus *cpus)
    AS_MUST_USE;

#endif
