/* A named thread that runs a duty cycle until it is stopped. All agents of driver, client and archive run this way. Thread
 * rule: start and stop from the owner's thread. */
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

/* `cpu` < 0 leaves affinity to the kernel. All signals are blocked in the new thread, because the process's main thread
   handles them. */
as_result asi_agent_start(
    asi_agent *agent, const char *name, int (*do_work)(void *), void *context, const asi_idle *idle, int cpu) AS_MUST_USE;
/* Joins; does nothing if the agent was never started. */
void asi_agent_stop(asi_agent *agent);

/* Names the calling thread; on the main thread this names the process. At most 15 bytes. */
void asi_thread_name(const char *name);

/* Makes the calling thread's sleeps end on time. By default Linux extends them by 50 us, many times an idle strategy's
 * shortest sleeps. */
void asi_thread_sleep_exactly(void);

/* Prepares a full fence in every thread of this process at once, by the kernel (membarrier). The frequent side of a pair then
 * needs only asi_fence_compiler. Call this before the fence, any number of times; false if the kernel does not have it or
 * forbids it. */
bool asi_fence_for_all_prepare(void);
void asi_fence_for_all(void);

#endif
