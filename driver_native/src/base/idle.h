/* Idle strategies of a duty cycle, with the stock names and arguments. Spec: 05 §8. Thread rule: one owner per strategy. */
#ifndef ASI_BASE_IDLE_H
#define ASI_BASE_IDLE_H

#include "base/result.h"

typedef enum asi_idle_kind
{
    ASI_IDLE_NOOP,
    ASI_IDLE_SPIN,
    ASI_IDLE_YIELD,
    ASI_IDLE_SLEEP,
    ASI_IDLE_BACKOFF
} asi_idle_kind;

typedef struct asi_idle
{
    asi_idle_kind kind;
    int64_t max_spins;
    int64_t max_yields;
    int64_t min_park_ns; /* also the period of SLEEP */
    int64_t max_park_ns;
    int64_t idle_count;  /* cycles without work in a row */
    int64_t park_ns;
} asi_idle;

/* `name`: noop, spin, yield, sleep-ns, sleep-ms, sleeping, backoff, or the stock symbol or class name of one; `args` may be
 * NULL. The text of AS_E_USAGE lists the choices. */
as_result asi_idle_parse(asi_idle *idle, const char *name, const char *args) AS_MUST_USE;
/* Call once per cycle with the cycle's work count. A backoff yields instead of parking for up to 16 us, except at its longest
   park. */
void asi_idle_cycle(asi_idle *idle, int work_count);
/* Decimal digits and an optional s, ms, us, ns (bare = ns). Spec: 05 §1. */
as_result asi_parse_duration_ns(const char *text, int64_t *duration_ns) AS_MUST_USE;
/* Accepts a text that starts with 1, on, true, 0, off or false, as the stock C driver does. */
as_result asi_parse_bool(const char *text, bool *value) AS_MUST_USE;
as_result asi_parse_i64(const char *text, int64_t *value) AS_MUST_USE;
/* Decimal digits and an optional k, m, g. */
as_result asi_parse_size(const char *text, int64_t *bytes) AS_MUST_USE;
/* "<n>s|ms|us|ns", the largest unit that divides; for labels. */
void asi_format_duration(char *to, size_t capacity, int64_t duration_ns);

#endif
