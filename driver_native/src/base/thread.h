/* A named thread that runs a duty cycle until told to stop: the one way agents of driver, client and archive are run.
 * Thread rule: start and stop from the owner's thread. */
#ifndef ASI_BASE_THREAD_H
#define ASI_BASE_THREAD_H

#include <pthread.h>

#include "base/idle.h"

typedef struct asi_agent
{
    int (*do_work)(void *context); /* one duty cycle; returns its work count */
    void *context;
    char name[16];
    asi_idle idle;
    pthread_t thread;
    bool running;  /* written by the owner (release), read by the thread (acquire); stale read costs one more cycle */
    bool started;
} asi_agent;

/* `cpu` < 0 leaves affinity to the kernel. All signals are blocked in the new thread: they belong to the process's main. */
as_result asi_agent_start(
    asi_agent *agent, const char *name, int (*do_work)(void *), void *context, const asi_idle *idle, int cpu) AS_MUST_USE;
/* Joins; harmless when never started. */
void asi_agent_stop(asi_agent *agent);

/* Names the calling thread, of the first one the process; at most 15 bytes. */
void asi_thread_name(const char *name);

/* The calling thread's sleeps end when they should: Linux lets them last 50 us longer by default, which is many times what an
 * idle strategy's shortest sleeps are. */
void asi_thread_sleep_exactly(void);

/* A full fence in every thread of this process at once, by the kernel (membarrier): lets the frequent side of a pair do with
 * asi_fence_compiler. To be prepared first, any number of times; false where the kernel does not have it or forbids it. */
bool asi_fence_for_all_prepare(void);
void asi_fence_for_all(void);

#endif
