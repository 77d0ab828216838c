/* Goal: value grammars and idle strategy names are read as the stock driver reads them, and nonsense is refused.
 * Method: tables of text and result. Spec: 05 §1, §8. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "base/idle.h"

#include <sys/resource.h>

#include "check.h"

static void reads_durations(void)
{
    static const struct { const char *text; int64_t ns; } GOOD[] = {
        { "0", 0 }, { "17", 17 }, { "5ns", 5 }, { "5us", 5000 }, { "16ms", 16000000 }, { "10s", 10000000000LL }, { "1S", 1000000000 },
        { "99999999999999999999", INT64_MAX }, { "9999999999s", INT64_MAX }
    };
    static const char *const BAD[] = { "", "abc", "-1s", "5m", "5 s", "s" };
    int64_t ns;
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++)
    {
        CHECK_I64(asi_parse_duration_ns(GOOD[i].text, &ns), AS_OK);
        CHECK_I64(ns, GOOD[i].ns);
    }
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
    {
        CHECK_I64(asi_parse_duration_ns(BAD[i], &ns), AS_E_USAGE);
    }
}

static void reads_sizes(void)
{
    static const struct { const char *text; int64_t bytes; } GOOD[] = {
        { "1408", 1408 }, { "64k", 65536 }, { "64K", 65536 }, { "16m", 16777216 }, { "1g", 1073741824 }, { "64kb", 65536 }
    };
    static const char *const BAD[] = { "", "k", "-64k", "64t", "9999999999g" };
    int64_t bytes;
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++)
    {
        CHECK_I64(asi_parse_size(GOOD[i].text, &bytes), AS_OK);
        CHECK_I64(bytes, GOOD[i].bytes);
    }
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
    {
        CHECK_I64(asi_parse_size(BAD[i], &bytes), AS_E_USAGE);
    }
}

static void writes_durations(void)
{
    static const struct { int64_t ns; const char *text; } ROWS[] = {
        { 1000000000, "1s" }, { 100000000, "100ms" }, { 1500000000, "1500ms" }, { 1000, "1us" }, { 1001, "1001ns" }, { 0, "0ns" }
    };
    char text[32];
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_format_duration(text, sizeof(text), ROWS[i].ns);
        CHECK_TEXT(text, ROWS[i].text);
    }
}

static void reads_strategies(void)
{
    static const struct { const char *name; const char *args; asi_idle_kind kind; int64_t park_ns; } GOOD[] = {
        { "noop", NULL, ASI_IDLE_NOOP, 1000 },
        { "spin", "", ASI_IDLE_SPIN, 1000 },
        { "yield", NULL, ASI_IDLE_YIELD, 1000 },
        { "sleep-ns", "500ns", ASI_IDLE_SLEEP, 500 },
        { "sleep-ms", NULL, ASI_IDLE_SLEEP, 1000000 },
        { "backoff", "1-2-3us-4ms", ASI_IDLE_BACKOFF, 3000 },
        { "org.agrona.concurrent.BusySpinIdleStrategy", NULL, ASI_IDLE_SPIN, 1000 },
        { "aeron_idle_strategy_yielding", NULL, ASI_IDLE_YIELD, 1000 },
    };
    asi_idle idle;
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++)
    {
        CHECK_I64(asi_idle_parse(&idle, GOOD[i].name, GOOD[i].args), AS_OK);
        CHECK_I64(idle.kind, GOOD[i].kind);
        CHECK_I64(idle.park_ns, GOOD[i].park_ns);
    }
    CHECK_I64(asi_idle_parse(&idle, "nap", NULL), AS_E_USAGE);
    CHECK_I64(asi_idle_parse(&idle, "sleep-ns", "soon"), AS_E_USAGE);
    CHECK_I64(asi_idle_parse(&idle, "backoff", "1-2-3"), AS_E_USAGE);
}

static void backs_off_and_recovers(void)
{
    asi_idle idle;
    CHECK_I64(asi_idle_parse(&idle, "backoff", "2-2-1ns-8ns"), AS_OK);
    for (int i = 0; i < 4; i++)
    {
        asi_idle_cycle(&idle, 0);
        CHECK_I64(idle.park_ns, 1);
    }
    static const int64_t PARKS[] = { 2, 4, 8, 8 };
    for (size_t i = 0; i < sizeof(PARKS) / sizeof(PARKS[0]); i++)
    {
        asi_idle_cycle(&idle, 0);
        CHECK_I64(idle.park_ns, PARKS[i]);
    }
    asi_idle_cycle(&idle, 1);
    CHECK_I64(idle.park_ns, 1);
    CHECK_I64(idle.idle_count, 0);
}

/* How often 20 idle cycles gave up the core to sleep. */
static int64_t sleeps(const char *args)
{
    asi_idle idle;
    struct rusage before;
    struct rusage after;
    CHECK_I64(asi_idle_parse(&idle, "backoff", args), AS_OK);
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < 20; i++)
    {
        asi_idle_cycle(&idle, 0);
    }
    getrusage(RUSAGE_THREAD, &after);
    return after.ru_nvcsw - before.ru_nvcsw;
}

static void sleeps_where_a_park_is_worth_it(void)
{
    static const struct { const char *args; int64_t min; int64_t max; } ROWS[] = {
        { "0-20-1us-1ms", 0, 3 }, { "0-15-1us-1ms", 0, 3 }, { "0-0-1us-1ms", 13, 18 }, { "0-0-20us-1ms", 18, 23 }, { "0-0-1us-1us", 18, 23 }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        const int64_t count = sleeps(ROWS[i].args);
        CHECK(count >= ROWS[i].min && count <= ROWS[i].max);
    }
}

int main(void)
{
    RUN(reads_durations);
    RUN(reads_sizes);
    RUN(writes_durations);
    RUN(reads_strategies);
    RUN(backs_off_and_recovers);
    RUN(sleeps_where_a_park_is_worth_it);
    return 0;
}
