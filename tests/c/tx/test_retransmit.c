/* The pool of resends: which NAKs are answered, how long ranges stay shut, delays, overflow; the scan that makes datagrams of
 * a term; receivers' ids. Under a clock of the test's own. Spec: 04 §5.4, §7. */
#include "driver/tx/retransmit.h"

#include "check.h"
#include "driver/tx/receivers.h"
#include "driver/tx/scan.h"

#define TERM 65536
#define LINGER 10

static asi_retransmit opened(bool is_group, int32_t max_resend, int64_t delay_ns, int64_t rrwm)
{
    const asi_retransmit_params params = { .is_group = is_group, .max_resend = max_resend, .term_length = TERM, .rrwm = rrwm,
        .delay_ns = delay_ns, .linger_ns = LINGER };
    asi_retransmit retransmit;
    CHECK_I64(asi_retransmit_open(&retransmit, &params), AS_OK);
    return retransmit;
}

static void ranges(void)
{
    static const struct { int32_t offset; int32_t length; asi_nak_outcome outcome; int32_t resent; } ROWS[] = {
        { 0, 1408, ASI_NAK_RESEND, 1408 },
        { TERM - 32, 32, ASI_NAK_RESEND, 32 },
        { TERM - 32, 1408, ASI_NAK_INVALID, 0 },
        { 0, TERM, ASI_NAK_RESEND, TERM / 2 }, /* no receiver has a longer window */
        { 0, TERM + 32, ASI_NAK_INVALID, 0 },
        { 0, INT32_MAX, ASI_NAK_INVALID, 0 },
        { TERM, 32, ASI_NAK_INVALID, 0 },
        { TERM, 0, ASI_NAK_INVALID, 0 },
        { -32, 32, ASI_NAK_INVALID, 0 },
        { 48, 32, ASI_NAK_INVALID, 0 },
        { INT32_MIN, 32, ASI_NAK_INVALID, 0 },
        { 0, -1, ASI_NAK_INVALID, 0 },
        { 0, 0, ASI_NAK_SUPPRESSED, 0 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_retransmit retransmit = opened(false, 16, 0, 16);
        asi_resend range = { .length = 0 };
        CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, ROWS[i].offset, ROWS[i].length, 0, &range), ROWS[i].outcome);
        CHECK_I64(ASI_NAK_RESEND == ROWS[i].outcome ? range.length : 0, ROWS[i].resent);
        asi_retransmit_close(&retransmit);
    }
    asi_retransmit retransmit = opened(false, 16, 0, 1);
    asi_resend range;
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 0, TERM, 0, &range), ASI_NAK_RESEND);
    CHECK_I64(range.length, TERM / 2); /* one assumed window */
    asi_retransmit_close(&retransmit);
}

/* No receiver lacks more than the longest window. */
static void windows(void)
{
    static const struct { int32_t told; int64_t rrwm; int32_t resent; } ROWS[] = {
        { 0, 16, TERM / 2 }, { 1024, 16, TERM / 2 }, { TERM / 2 + 4096, 16, TERM / 2 + 4096 }, { TERM, 16, TERM },
        { TERM, 1, TERM / 2 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_retransmit retransmit = opened(false, 16, 0, ROWS[i].rrwm);
        asi_resend range;
        asi_retransmit_on_window(&retransmit, ROWS[i].told);
        asi_retransmit_on_window(&retransmit, 64);
        CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 0, TERM, 0, &range), ASI_NAK_RESEND);
        CHECK_I64(range.length, ROWS[i].resent);
        asi_retransmit_close(&retransmit);
    }
}

/* A range of which a part went is due again from there on, as often as it takes, and shut meanwhile. */
static void what_is_put_back_is_due(void)
{
    asi_retransmit retransmit = opened(true, 16, 0, 16);
    asi_resend range;
    asi_resend other;
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 0, 64, 0, &other), ASI_NAK_RESEND);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 64, 1024, 0, &range), ASI_NAK_RESEND);
    asi_retransmit_put_back(&retransmit, &range, 256);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 64, 64, 0, &other), ASI_NAK_SUPPRESSED);
    CHECK(asi_retransmit_next_due(&retransmit, 5, &range));
    CHECK(7 == range.term_id && 320 == range.term_offset && 768 == range.length);
    asi_retransmit_put_back(&retransmit, &range, 512);
    CHECK(asi_retransmit_next_due(&retransmit, 5, &range));
    CHECK(832 == range.term_offset && 256 == range.length);
    CHECK(!asi_retransmit_next_due(&retransmit, 5, &range));
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 64, 64, 5 + LINGER, &other), ASI_NAK_SUPPRESSED);
    CHECK(!asi_retransmit_next_due(&retransmit, 6 + LINGER, &range));
    CHECK_I64(retransmit.active_count, 0);
    asi_retransmit_close(&retransmit);
}

static void what_was_resent_stays_shut(void)
{
    asi_retransmit retransmit = opened(true, 16, 0, 16);
    asi_resend range;
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 64, 128, 0, &range), ASI_NAK_RESEND);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 64, 128, LINGER, &range), ASI_NAK_SUPPRESSED);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 160, 128, LINGER, &range), ASI_NAK_SUPPRESSED);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 192, 32, LINGER, &range), ASI_NAK_RESEND);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 8, 64, 32, LINGER, &range), ASI_NAK_RESEND);
    CHECK(!asi_retransmit_next_due(&retransmit, LINGER, &range));
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 64, 32, LINGER, &range), ASI_NAK_SUPPRESSED);
    CHECK(!asi_retransmit_next_due(&retransmit, LINGER + 1, &range));
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 64, 32, LINGER + 1, &range), ASI_NAK_RESEND);
    asi_retransmit_close(&retransmit);
}

static void unicast_serves_the_latest(void)
{
    asi_retransmit retransmit = opened(false, 16, 0, 16);
    asi_resend range;
    CHECK_I64(retransmit.capacity, 1);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 0, 32, 0, &range), ASI_NAK_RESEND);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 32, 32, 0, &range), ASI_NAK_RESEND);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 0, 32, 0, &range), ASI_NAK_RESEND);
    CHECK_I64(retransmit.active_count, 1);
    asi_retransmit_close(&retransmit);
}

static void groups_overflow(void)
{
    asi_retransmit retransmit = opened(true, 2, 0, 4);
    asi_resend range;
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 0, 32, 0, &range), ASI_NAK_RESEND);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 32, 32, 0, &range), ASI_NAK_RESEND);
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 64, 32, 0, &range), ASI_NAK_OVERFLOW);
    asi_retransmit_close(&retransmit);
}

static void delays(void)
{
    asi_retransmit retransmit = opened(true, 4, 5, 4);
    asi_resend range;
    CHECK_I64(asi_retransmit_on_nak(&retransmit, 7, 96, 32, 0, &range), ASI_NAK_DELAYED);
    CHECK(!asi_retransmit_next_due(&retransmit, 5, &range));
    CHECK(asi_retransmit_next_due(&retransmit, 6, &range));
    CHECK_I64(range.term_id, 7);
    CHECK_I64(range.term_offset, 96);
    CHECK_I64(range.length, 32);
    CHECK(!asi_retransmit_next_due(&retransmit, 6, &range));
    CHECK_I64(retransmit.active_count, 1);
    CHECK(!asi_retransmit_next_due(&retransmit, 6 + LINGER + 1, &range));
    CHECK_I64(retransmit.active_count, 0);
    asi_retransmit_close(&retransmit);
}

/* A term of frames by their lengths; 0 ends them, a negative one is a padding frame of that length. */
static void scan(void)
{
    static const struct { int32_t frames[5]; int32_t limit; int32_t available; int32_t padding; } ROWS[] = {
        { { 0 }, 1408, 0, 0 },
        { { 132, 132, 0 }, 1408, 320, 0 },
        { { 132, 132, 0 }, 319, 160, 0 },
        { { 132, 132, 0 }, 159, -1, 0 },
        { { 1408, 1408, 0 }, 1408, 1408, 0 },
        { { 64, -4096, 32, 0 }, 1408, 96, 4064 },
        { { -4096, 0 }, 32, 32, 4064 },
        { { -32, 0 }, 1408, 32, 0 },
        { { 1409, 0 }, 1408, -1, 0 },
        { { INT32_MAX, 0 }, 1408, -1, 0 },
        { { -INT32_MAX, 0 }, 1408, 32, 0 }, /* a length that can't be: no padding is believed */
    };
    static uint8_t term[TERM] __attribute__((aligned(8)));
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        int64_t at = 0;
        int32_t padding = -1;
        memset(term, 0, sizeof(term));
        for (int k = 0; 0 != ROWS[i].frames[k] && at < TERM; k++)
        {
            const int32_t length = ROWS[i].frames[k];
            asi_frame_header *frame = (asi_frame_header *)(void *)(term + at);
            frame->frame_length = length < 0 ? -length : length;
            frame->type = length < 0 ? ASI_FRAME_PAD : ASI_FRAME_DATA;
            at += asi_frame_occupancy(frame->frame_length);
        }
        CHECK_I64(asi_scan_available(term, 0, ROWS[i].limit, &padding), ROWS[i].available);
        CHECK_I64(padding, ROWS[i].padding);
    }
}

static void receivers(void)
{
    asi_receivers receivers = { 0 };
    asi_receivers_refresh(&receivers, 1, 10);
    asi_receivers_refresh(&receivers, 2, 20);
    asi_receivers_refresh(&receivers, 1, 30);
    CHECK_I64(receivers.count, 2);
    asi_receivers_expire(&receivers, 119, 100);
    CHECK_I64(receivers.count, 2);
    asi_receivers_expire(&receivers, 120, 100);
    CHECK_I64(receivers.count, 1);
    CHECK(asi_receivers_remove(&receivers, 1));
    CHECK(!asi_receivers_remove(&receivers, 1));
    for (int64_t i = 0; i < 10 * ASI_RECEIVERS_CAPACITY; i++) /* invented ones take each other's place */
    {
        asi_receivers_refresh(&receivers, i, i);
    }
    CHECK_I64(receivers.count, ASI_RECEIVERS_CAPACITY);
    CHECK(asi_receivers_remove(&receivers, 10 * ASI_RECEIVERS_CAPACITY - 1));
}

int main(void)
{
    RUN(ranges);
    RUN(windows);
    RUN(what_is_put_back_is_due);
    RUN(what_was_resent_stays_shut);
    RUN(unicast_serves_the_latest);
    RUN(groups_overflow);
    RUN(delays);
    RUN(scan);
    RUN(receivers);
    return 0;
}
