/* Goal: an agent runs its duty cycle until stopped, under its name, and stopping is harmless at any time;
 * its CPU and its stack are the ones asked for, with glibc and with musl. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <sched.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "check.h"

static int count_cycle(void *context)
{
    return 0 == asi_fetch_add_i64(context, 1) % 2;
}

static void runs_until_stopped(void)
{
    asi_idle idle;
    CHECK_I64(asi_idle_parse(&idle, "yield", NULL), AS_OK);
    int64_t cycles = 0;
    asi_agent agent;
    CHECK_I64(asi_agent_start(&agent, "test-agent-with-a-long-name", count_cycle, &cycles, &idle, -1), AS_OK);
    char name[16];
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ns = asi_clock_ns(&clock) + 10000000000LL;
    while (asi_load_acquire_i64(&cycles) < 10)
    {
        CHECK(asi_clock_ns(&clock) < deadline_ns);
    }
    CHECK_I64(pthread_getname_np(agent.thread, name, sizeof(name)), 0);
    CHECK_TEXT(name, "test-agent-with");
    asi_agent_stop(&agent);
    const int64_t after = asi_load_acquire_i64(&cycles);
    asi_agent_stop(&agent);
    CHECK_I64(asi_load_acquire_i64(&cycles), after);
}

static as_result start_on(asi_agent *agent, int64_t *cycles, int cpu)
{
    asi_idle idle;
    CHECK_I64(asi_idle_parse(&idle, "yield", NULL), AS_OK);
    return asi_agent_start(agent, "test-agent", count_cycle, cycles, &idle, cpu);
}

static void runs_on_the_cpu_it_is_given(void)
{
    cpu_set_t allowed;
    CHECK_I64(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed))
    {
        cpu++;
    }
    int64_t cycles = 0;
    asi_agent agent;
    CHECK_I64(start_on(&agent, &cycles, cpu), AS_OK);
    cpu_set_t set;
    CHECK_I64(pthread_getaffinity_np(agent.thread, sizeof(set), &set), 0);
    CHECK_I64(CPU_COUNT(&set), 1);
    CHECK(CPU_ISSET(cpu, &set));
    asi_agent_stop(&agent);

    CHECK_I64(start_on(&agent, &cycles, CPU_SETSIZE - 1), AS_E_INTERNAL);
    CHECK(NULL != strstr(as_error_text(), "cannot run thread test-agent on CPU 1023"));
    CHECK(!agent.started);
}

static void has_the_same_stack_with_every_libc(void)
{
    int64_t cycles = 0;
    asi_agent agent;
    CHECK_I64(start_on(&agent, &cycles, -1), AS_OK);
    pthread_attr_t attributes;
    size_t stack_bytes = 0;
    CHECK_I64(pthread_getattr_np(agent.thread, &attributes), 0);
    CHECK_I64(pthread_attr_getstacksize(&attributes, &stack_bytes), 0);
    CHECK(stack_bytes >= 4 * 1024 * 1024);
    pthread_attr_destroy(&attributes);
    asi_agent_stop(&agent);
}

static void stopping_what_never_ran_is_harmless(void)
{
    asi_agent agent = { 0 };
    asi_agent_stop(&agent);
}

int main(void)
{
    RUN(runs_until_stopped);
    RUN(runs_on_the_cpu_it_is_given);
    RUN(has_the_same_stack_with_every_libc);
    RUN(stopping_what_never_ran_is_harmless);
    return 0;
}
