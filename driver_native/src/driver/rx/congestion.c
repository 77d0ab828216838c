/* See congestion.h. */
#include "driver/rx/congestion.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/atomic.h"

/* Spec: 04 §10.3 */
#define CUBIC_C 0.4
#define CUBIC_B 0.2
#define INITIAL_CWND 10

static int32_t min_i32(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t max_i32(int32_t a, int32_t b) { return a > b ? a : b; }

as_result asi_congestion_parse(const char *cc, asi_congestion_kind *kind)
{
    if (NULL == cc || 0 == strcmp(cc, "static"))
    {
        *kind = ASI_CONGESTION_STATIC;
        return AS_OK;
    }
    if (0 == strcmp(cc, "cubic"))
    {
        *kind = ASI_CONGESTION_CUBIC;
        return AS_OK;
    }
    return asi_fail(AS_E_USAGE, EINVAL, "unsupported congestion control: cc=%s is neither static nor cubic", cc);
}

static double cubic_k(int32_t w_max) { return cbrt((double)w_max * CUBIC_B / CUBIC_C); }

void asi_congestion_init(asi_congestion *congestion, const asi_congestion_params *params, int32_t term_length,
    int32_t mtu_length, int32_t receiver_window_length, int64_t now_ns)
{
    const int32_t max_window = min_i32(receiver_window_length, term_length / 2);
    const int32_t max_cwnd = max_i32(1, max_window / mtu_length);
    *congestion = (asi_congestion){
        .params = *params,
        .mtu_length = mtu_length,
        .max_window = max_window,
        .max_cwnd = max_cwnd,
        .cwnd = min_i32(INITIAL_CWND, max_cwnd),
        .w_max = max_cwnd,
        .k = cubic_k(max_cwnd),
        .loss_time_ns = now_ns,
        .update_time_ns = now_ns,
        .update_interval_ns = params->initial_rtt_ns
    };
    if (ASI_CONGESTION_CUBIC == params->kind)
    {
        asi_store_release_i64(params->window_counter, asi_congestion_window(congestion));
    }
}

int32_t asi_congestion_window(const asi_congestion *congestion)
{
    return ASI_CONGESTION_STATIC == congestion->params.kind ? congestion->max_window :
        congestion->cwnd * congestion->mtu_length;
}

static void grow(asi_congestion *congestion, int64_t now_ns, int64_t rtt_ns)
{
    const double seconds = (double)(now_ns - congestion->loss_time_ns) / 1e9;
    const double since = seconds - congestion->k;
    const double target = congestion->w_max + trunc(CUBIC_C * since * since * since);
    congestion->cwnd = target < congestion->max_cwnd ? max_i32(1, (int32_t)target) : congestion->max_cwnd;
    if (congestion->params.is_tcp_mode && congestion->cwnd < congestion->w_max && rtt_ns > 0)
    {
        const double rtt_seconds = (double)rtt_ns / 1e9;
        const double tcp = trunc(congestion->w_max * (1 - CUBIC_B) + 3 * CUBIC_B / (2 - CUBIC_B) * (seconds / rtt_seconds));
        congestion->cwnd = max_i32(congestion->cwnd, tcp < congestion->max_cwnd ? (int32_t)tcp : congestion->max_cwnd);
    }
    congestion->update_time_ns = now_ns;
}

int32_t asi_congestion_on_rebuild(asi_congestion *congestion, int64_t now_ns, int64_t min_subscriber_position,
    int64_t next_sm_position, int64_t rtt_ns, bool found_loss, bool *force_sm)
{
    *force_sm = false;
    if (ASI_CONGESTION_STATIC == congestion->params.kind)
    {
        return congestion->max_window;
    }
    if (found_loss)
    {
        *force_sm = true;
        congestion->w_max = congestion->cwnd;
        congestion->k = cubic_k(congestion->w_max);
        congestion->cwnd = max_i32(1, (int32_t)(congestion->cwnd * (1 - CUBIC_B)));
        congestion->loss_time_ns = now_ns;
    }
    else if (congestion->cwnd < congestion->max_cwnd && now_ns > congestion->update_time_ns + congestion->update_interval_ns)
    {
        grow(congestion, now_ns, rtt_ns);
    }
    else if (1 == congestion->cwnd && min_subscriber_position > next_sm_position)
    {
        *force_sm = true; /* otherwise the last quarter of such a window is never consumed for long */
    }
    const int32_t window = asi_congestion_window(congestion);
    asi_store_release_i64(congestion->params.window_counter, window);
    return window;
}
