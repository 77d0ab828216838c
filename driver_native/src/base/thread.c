/* Runs agents on threads; see thread.h. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"

/* What glibc gives by default; musl would give 128 KiB, too little for a plug-in or a name look-up to rely on. */
#define STACK_BYTES (8 * 1024 * 1024)

void asi_thread_sleep_exactly(void) { (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

void asi_thread_name(const char *name) { pthread_setname_np(pthread_self(), name); }

/* Of a running thread: musl has no such attribute for threads to be. */
static int run_on(pthread_t thread, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return pthread_setaffinity_np(thread, sizeof(set), &set);
}

static void *run_agent(void *argument)
{
    asi_agent *agent = argument;
    asi_thread_name(agent->name);
    asi_thread_sleep_exactly();
    while (asi_load_acquire_bool(&agent->running))
    {
        asi_idle_cycle(&agent->idle, agent->do_work(agent->context));
    }
    return NULL;
}

as_result asi_agent_start(
    asi_agent *agent, const char *name, int (*do_work)(void *), void *context, const asi_idle *idle, int cpu)
{
    *agent = (asi_agent){ .do_work = do_work, .context = context, .idle = *idle, .running = true };
    snprintf(agent->name, sizeof(agent->name), "%s", name);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&agent->thread, &attributes, run_agent, agent);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (0 != error)
    {
        return asi_fail_errno(AS_E_INTERNAL, error, "cannot start thread %s", name);
    }
    agent->started = true;
    error = cpu >= 0 ? run_on(agent->thread, cpu) : 0;
    if (0 != error)
    {
        asi_agent_stop(agent);
        return asi_fail_errno(AS_E_INTERNAL, error, "cannot run thread %s on CPU %d", name, cpu);
    }
    return AS_OK;
}

void asi_agent_stop(asi_agent *agent)
{
    if (agent->started)
    {
        asi_store_release_bool(&agent->running, false);
        pthread_join(agent->thread, NULL);
        agent->started = false;
    }
}

bool asi_fence_for_all_prepare(void)
{
    return 0 == syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

void asi_fence_for_all(void)
{
    asi_fence_full();
    /* After preparation the call can fail only for lack of memory, which is temporary. */
    while (0 != syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
    {
        sched_yield();
    }
}
