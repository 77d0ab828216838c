/* Goal: an agent runs its duty cycle until stopped, under its name, and stopping is harmless at any time. */
#define _GNU_SOURCE
#include "base/thread.h"

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

static void stopping_what_never_ran_is_harmless(void)
{
    asi_agent agent = { 0 };
    asi_agent_stop(&agent);
}

int main(void)
{
    RUN(runs_until_stopped);
    RUN(stopping_what_never_ran_is_harmless);
    return 0;
}
