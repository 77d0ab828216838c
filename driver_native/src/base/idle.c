/* Idle strategies, and the value grammars of the configuration; see idle.h. */
#include "base/idle.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/atomic.h"

#define BRIEF_PARK_NS 16000

typedef struct named_idle
{
    const char *name;
    asi_idle_kind kind;
    int64_t period_ns;
} named_idle;

static const named_idle NAMES[] = {
    { "noop", ASI_IDLE_NOOP, 0 },
    { "aeron_idle_strategy_noop", ASI_IDLE_NOOP, 0 },
    { "org.agrona.concurrent.NoOpIdleStrategy", ASI_IDLE_NOOP, 0 },
    { "spin", ASI_IDLE_SPIN, 0 },
    { "aeron_idle_strategy_busy_spinning", ASI_IDLE_SPIN, 0 },
    { "org.agrona.concurrent.BusySpinIdleStrategy", ASI_IDLE_SPIN, 0 },
    { "yield", ASI_IDLE_YIELD, 0 },
    { "aeron_idle_strategy_yielding", ASI_IDLE_YIELD, 0 },
    { "org.agrona.concurrent.YieldingIdleStrategy", ASI_IDLE_YIELD, 0 },
    { "sleeping", ASI_IDLE_SLEEP, 1 },
    { "sleep-ns", ASI_IDLE_SLEEP, 1 },
    { "sleep-ms", ASI_IDLE_SLEEP, 1000000 },
    { "aeron_idle_strategy_sleeping", ASI_IDLE_SLEEP, 1 },
    { "org.agrona.concurrent.SleepingIdleStrategy", ASI_IDLE_SLEEP, 1000 },
    { "org.agrona.concurrent.SleepingMillisIdleStrategy", ASI_IDLE_SLEEP, 1000000 },
    { "backoff", ASI_IDLE_BACKOFF, 0 },
    { "aeron_idle_strategy_backoff", ASI_IDLE_BACKOFF, 0 },
    { "org.agrona.concurrent.BackoffIdleStrategy", ASI_IDLE_BACKOFF, 0 },
};

static as_result parse_number(const char *text, int64_t *value, const char **rest)
{
    if (!isdigit((unsigned char)text[0]))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "'%s' does not start with a digit", text);
    }
    char *end = NULL;
    errno = 0;
    const long long parsed = strtoll(text, &end, 10);
    *value = 0 == errno ? parsed : INT64_MAX;
    *rest = end;
    return AS_OK;
}

static int64_t saturating_multiply(int64_t value, int64_t factor)
{
    return value > INT64_MAX / factor ? INT64_MAX : value * factor;
}

as_result asi_parse_duration_ns(const char *text, int64_t *duration_ns)
{
    static const struct { const char *unit; int64_t factor; } UNITS[] = {
        { "", 1 }, { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }
    };
    int64_t value;
    const char *rest;
    const as_result result = parse_number(text, &value, &rest);
    if (AS_OK != result)
    {
        return result;
    }
    for (size_t i = 0; i < sizeof(UNITS) / sizeof(UNITS[0]); i++)
    {
        if (0 == strcasecmp(rest, UNITS[i].unit))
        {
            *duration_ns = saturating_multiply(value, UNITS[i].factor);
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EINVAL, "duration '%s' has no unit of s, ms, us, ns", text);
}

as_result asi_parse_bool(const char *text, bool *value)
{
    static const struct { const char *prefix; bool value; } WORDS[] = {
        { "1", true }, { "on", true }, { "true", true }, { "0", false }, { "off", false }, { "false", false }
    };
    for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++)
    {
        if (0 == strncmp(text, WORDS[i].prefix, strlen(WORDS[i].prefix)))
        {
            *value = WORDS[i].value;
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EINVAL, "'%s' is neither true nor false", text);
}

as_result asi_parse_i64(const char *text, int64_t *value)
{
    char *end = NULL;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && '\0' == *end && 0 == errno ? AS_OK :
        asi_fail(AS_E_USAGE, EINVAL, "'%s' is not a decimal number of 64 bits", text);
}

as_result asi_parse_size(const char *text, int64_t *bytes)
{
    int64_t value;
    const char *rest;
    const as_result result = parse_number(text, &value, &rest);
    if (AS_OK != result)
    {
        return result;
    }
    int shift = 0;
    switch (tolower((unsigned char)rest[0]))
    {
        case '\0': shift = 0; break;
        case 'k': shift = 10; break;
        case 'm': shift = 20; break;
        case 'g': shift = 30; break;
        default: return asi_fail(AS_E_USAGE, EINVAL, "size '%s' has no unit of k, m, g", text);
    }
    if (value > (INT64_MAX >> shift))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "size '%s' is more than 64 bits hold", text);
    }
    *bytes = value << shift;
    return AS_OK;
}

void asi_format_duration(char *to, size_t capacity, int64_t duration_ns)
{
    static const struct { const char *unit; int64_t factor; } UNITS[] = {
        { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }
    };
    for (size_t i = 0; i < sizeof(UNITS) / sizeof(UNITS[0]); i++)
    {
        if (duration_ns >= UNITS[i].factor && 0 == duration_ns % UNITS[i].factor)
        {
            snprintf(to, capacity, "%" PRId64 "%s", duration_ns / UNITS[i].factor, UNITS[i].unit);
            return;
        }
    }
    snprintf(to, capacity, "%" PRId64 "ns", duration_ns);
}

/* "<spins>-<yields>-<minPark>-<maxPark>" */
static as_result parse_backoff_args(asi_idle *idle, const char *args)
{
    char copy[128];
    if (strlen(args) >= sizeof(copy))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "backoff arguments '%s' are too long", args);
    }
    memcpy(copy, args, strlen(args) + 1);
    int64_t values[4];
    char *state = NULL;
    char *token = strtok_r(copy, "-", &state);
    for (int i = 0; i < 4; i++, token = strtok_r(NULL, "-", &state))
    {
        if (NULL == token || AS_OK != asi_parse_duration_ns(token, &values[i]))
        {
            return asi_fail(AS_E_USAGE, EINVAL, "backoff arguments '%s' are not <spins>-<yields>-<minPark>-<maxPark>", args);
        }
    }
    idle->max_spins = values[0];
    idle->max_yields = values[1];
    idle->min_park_ns = values[2];
    idle->max_park_ns = values[3];
    return AS_OK;
}

as_result asi_idle_parse(asi_idle *idle, const char *name, const char *args)
{
    const bool has_args = NULL != args && '\0' != args[0];
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
    {
        if (0 != strcmp(name, NAMES[i].name))
        {
            continue;
        }
        asi_idle parsed = { .kind = NAMES[i].kind, .max_spins = 10, .max_yields = 20, .min_park_ns = 1000, .max_park_ns = 1000000 };
        as_result result = AS_OK;
        if (ASI_IDLE_SLEEP == parsed.kind)
        {
            parsed.min_park_ns = NAMES[i].period_ns;
            result = has_args ? asi_parse_duration_ns(args, &parsed.min_park_ns) : AS_OK;
        }
        else if (ASI_IDLE_BACKOFF == parsed.kind && has_args)
        {
            result = parse_backoff_args(&parsed, args);
        }
        if (AS_OK == result)
        {
            parsed.park_ns = parsed.min_park_ns;
            *idle = parsed;
        }
        return result;
    }
    return asi_fail(AS_E_USAGE, EINVAL, "idle strategy '%s' is unknown, choose noop, spin, yield, sleep-ns, sleep-ms or backoff", name);
}

static void park(int64_t duration_ns)
{
    const struct timespec ts = { .tv_sec = duration_ns / 1000000000, .tv_nsec = duration_ns % 1000000000 };
    nanosleep(&ts, NULL);
}

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* Yields instead of sleeping. On a virtual machine a sleep costs more CPU time than that and wakes up late, which a thread
 * that exchanges work with another process would wait for each time. */
static void park_briefly(int64_t duration_ns)
{
    const int64_t end_ns = now_ns() + duration_ns;
    do
    {
        sched_yield();
    } while (now_ns() < end_ns);
}

static void backoff(asi_idle *idle)
{
    if (idle->idle_count < idle->max_spins)
    {
        asi_cpu_pause();
    }
    else if (idle->idle_count < idle->max_spins + idle->max_yields)
    {
        sched_yield();
    }
    else
    {
        const bool is_brief = idle->park_ns <= BRIEF_PARK_NS && idle->park_ns < idle->max_park_ns;
        (is_brief ? park_briefly : park)(idle->park_ns);
        idle->park_ns = idle->park_ns * 2 < idle->max_park_ns ? idle->park_ns * 2 : idle->max_park_ns;
        return;
    }
    idle->idle_count++;
}

void asi_idle_cycle(asi_idle *idle, int work_count)
{
    if (work_count > 0)
    {
        idle->idle_count = 0;
        idle->park_ns = idle->min_park_ns;
        return;
    }
    switch (idle->kind)
    {
        case ASI_IDLE_NOOP: break;
        case ASI_IDLE_SPIN: asi_cpu_pause(); break;
        case ASI_IDLE_YIELD: sched_yield(); break;
        case ASI_IDLE_SLEEP: park(idle->min_park_ns); break;
        case ASI_IDLE_BACKOFF: backoff(idle); break;
    }
}
