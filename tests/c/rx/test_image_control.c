/* Loss and windows by themselves: gap scan by table, NAK delays against the formula of Spec: 04 §9.3, cubic against the windows
 * that were captured (Spec: 04 §10.3), and the hand-over of gaps and schedules between two threads (thread sanitizer). */
#include <math.h>

#include "base/thread.h"
#include "rig.h"

static void gaps_by_table(void)
{
    static const struct
    {
        int32_t frames[6][2]; /* offset, frame length */
        int32_t offset;
        int32_t limit;
        int32_t reached;
        int32_t gap;
    } rows[] = {
        { { { 0 } }, 0, 0, 0, 0 },
        { { { 0 } }, 0, 1024, 0, 1024 },
        { { { 0, 100 } }, 0, 128, 128, 0 },
        { { { 0, 100 }, { 256, 100 } }, 0, 384, 128, 128 },
        { { { 0, 100 }, { 128, 32 }, { 256, 100 } }, 0, 384, 160, 96 },
        { { { 0, 100 } }, 0, 1024, 128, 896 },
        { { { 0, 100 }, { 128, -64 } }, 0, 1024, 128, 896 },       /* being written: not there yet */
        { { { 0, 4096 } }, 0, 32, 4096, 0 },                       /* padding reaches beyond what was seen */
        { { { 0, TERM + 32 } }, 0, 4096, TERM, 0 },                /* can't be: the term is over */
        { { { TERM - 32, 32 } }, TERM - 32, TERM, TERM, 0 },
        { { { 64, 32 } }, 64, 96, 96, 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        uint8_t *term = calloc(1, TERM);
        CHECK(NULL != term);
        for (int k = 0; k < 6 && 0 != rows[i].frames[k][1]; k++)
        {
            asi_put_i32(term + rows[i].frames[k][0], rows[i].frames[k][1]);
        }
        int32_t gap;
        CHECK_I64(asi_gap_scan_untrusted(term, rows[i].offset, rows[i].limit, TERM, &gap), rows[i].reached);
        CHECK_I64(gap, rows[i].gap);
        free(term);
    }
}

static void multicast_delays(void)
{
    const asi_nak_delay delay = { .is_multicast = true, .max_backoff_ns = 10 * RIG_MS, .group_size = 10 };
    CHECK_I64(asi_nak_multicast_delay_ns(&delay, 0), 0);
    const int64_t median = asi_nak_multicast_delay_ns(&delay, 0.5);
    CHECK(median > 8000 * RIG_US && median < 8020 * RIG_US);
    CHECK(asi_nak_multicast_delay_ns(&delay, 0.999999) <= 10 * RIG_MS);
    asi_loss_detector detector = { .delay = delay };
    asi_rand_seed(&detector.rand, 4711);
    int64_t below = 0;
    for (int i = 0; i < 10000; i++)
    {
        const int64_t first = asi_nak_first_delay_ns(&detector);
        CHECK(first >= 0 && first <= 10 * RIG_MS);
        below += first < median ? 1 : 0;
    }
    CHECK(below > 4500 && below < 5500);
    detector.delay = (asi_nak_delay){ .first_ns = 5, .retry_ns = 500 };
    CHECK_I64(asi_nak_first_delay_ns(&detector), 5);
    CHECK_I64(asi_nak_retry_delay_ns(&detector), 500);
}

static void cubic_windows(void)
{
    int64_t rtt_counter = 0;
    int64_t window_counter = 0;
    const asi_congestion_params params = { .kind = ASI_CONGESTION_CUBIC, .initial_rtt_ns = 100 * RIG_US,
        .rtt_counter = &rtt_counter, .window_counter = &window_counter };
    asi_congestion congestion;
    bool force;
    asi_congestion_init(&congestion, &params, TERM, MTU, 128 * 1024, 0);
    CHECK_I64(congestion.max_cwnd, 23);
    CHECK_I64(asi_congestion_window(&congestion), 10 * MTU);
    CHECK_I64(rtt_counter, 0); /* until one is measured */
    static const struct
    {
        int64_t at_ms; /* when it was seen */
        int32_t window;
    } seen[] = { { 1, 26752 }, { 103, 28160 }, { 300, 29568 }, { 548, 30976 }, { 900, 32384 } };
    int64_t now_ns = 0;
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
    {
        int32_t window = 0;
        while (window != seen[i].window)
        {
            now_ns += RIG_MS;
            CHECK(now_ns <= (seen[i].at_ms + 5) * RIG_MS);
            window = asi_congestion_on_rebuild(&congestion, now_ns, 0, 0, 100 * RIG_US, false, &force);
            CHECK(!force && window_counter == window);
        }
        CHECK(now_ns >= (seen[i].at_ms - 5) * RIG_MS);
    }
    /* A loss costs a fifth, down to one MTU. */
    CHECK_I64(asi_congestion_on_rebuild(&congestion, now_ns, 0, 0, 100 * RIG_US, true, &force), 18 * MTU);
    CHECK(force);
    for (int i = 0; i < 30; i++)
    {
        asi_congestion_on_rebuild(&congestion, now_ns, 0, 0, 100 * RIG_US, true, &force);
    }
    CHECK_I64(congestion.cwnd, 1);
    /* One MTU only: every consumption is told at once. */
    CHECK_I64(asi_congestion_on_rebuild(&congestion, now_ns, 1408, 0, 100 * RIG_US, false, &force), MTU);
    CHECK(force);
    asi_congestion_on_rebuild(&congestion, now_ns, 0, 0, 100 * RIG_US, false, &force);
    CHECK(!force);
}

static void congestion_names(void)
{
    asi_congestion_kind kind;
    CHECK_I64(asi_congestion_parse(NULL, &kind), AS_OK);
    CHECK_I64(kind, ASI_CONGESTION_STATIC);
    CHECK_I64(asi_congestion_parse("cubic", &kind), AS_OK);
    CHECK_I64(kind, ASI_CONGESTION_CUBIC);
    CHECK_I64(asi_congestion_parse("bogus", &kind), AS_E_USAGE);
}

/* --- two threads --- */

#define HANDOVERS 200000

typedef struct handover
{
    asi_image *image;
    int64_t at;
} handover;

static int hand_over(void *context)
{
    handover *h = context;
    if (h->at >= HANDOVERS)
    {
        return 0;
    }
    h->at++;
    const asi_gap gap = { .term_id = (int32_t)h->at, .term_offset = (int32_t)h->at * 3, .length = (int32_t)h->at * 7 };
    asi_image_publish_gap(h->image, &gap);
    asi_image_publish_sm(h->image, h->at * 1000, (int32_t)h->at);
    return 1;
}

static void values_that_belong_together_arrive_together(void)
{
    asi_image *image = aligned_alloc(ASI_CACHE_LINE, sizeof(asi_image));
    CHECK(NULL != image);
    memset(image, 0, sizeof(*image));
    handover h = { .image = image };
    asi_agent agent;
    asi_idle idle;
    memset(&agent, 0, sizeof(agent));
    CHECK_I64(asi_idle_parse(&idle, "yield", NULL), AS_OK);
    CHECK_I64(asi_agent_start(&agent, "conductor", hand_over, &h, &idle, -1), AS_OK);
    int64_t last = 0;
    while (last < HANDOVERS)
    {
        asi_gap gap;
        int64_t position;
        int32_t window;
        int64_t change;
        if (asi_image_poll_gap(image, &gap))
        {
            CHECK(gap.term_id > last);
            last = gap.term_id;
            CHECK_I64(gap.term_offset, (int32_t)last * 3);
            CHECK_I64(gap.length, (int32_t)last * 7);
        }
        if (asi_image_read_sm(image, &position, &window, &change) && change > 0)
        {
            CHECK_I64(position, (int64_t)window * 1000);
            CHECK_I64(change, window);
        }
    }
    asi_agent_stop(&agent);
    free(image);
}

int main(void)
{
    RUN(gaps_by_table);
    RUN(multicast_delays);
    RUN(cubic_windows);
    RUN(congestion_names);
    RUN(values_that_belong_together_arrive_together);
    return 0;
}
