/* aeron.spark.driver.nak.ahead: gaps behind the first one are requested once each, one for each cycle of the receiver, so that a
 * round trip fills all gaps of a window; not what lies before a frame far ahead. */
#include "rig.h"

#define FRAME 64
#define RETRY_US 100
#define LINGER_MS 10

/* Every second frame of the first ten arrives, from the first one on. */
static asi_rx_image *join_with_gaps(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    peer_be_heard(rig);
    for (int64_t at = 0; at < 10 * FRAME; at += 2 * FRAME)
    {
        peer_data(rig, at, FRAME - AS_FRAME_HEADER_LENGTH);
    }
    return image;
}

static void check_requests(rx_rig *rig, const int32_t *offsets, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
    {
        CHECK_I64(peer_receive(rig, ASI_FRAME_NAK), 28);
        CHECK_I64(got_nak(rig)->term_offset, offsets[i]);
        CHECK_I64(got_nak(rig)->length, FRAME);
    }
    CHECK_I64(peer_receive(rig, ASI_FRAME_NAK), 0);
}

static void pass(rx_rig *rig, int64_t duration_ns) { rig_pass(rig, duration_ns, 10 * RIG_US); }

static void all_gaps_are_requested_at_once(rx_rig *rig)
{
    static const int32_t GAPS[] = { 64, 192, 320, 448 };
    const asi_rx_image *image = join_with_gaps(rig);
    rig_cycles(rig, 20);
    check_requests(rig, GAPS, 4);
    CHECK_I64(image->rebuild_position, FRAME);
    for (int32_t i = 0; i < 4; i++)
    {
        peer_data(rig, GAPS[i], FRAME - AS_FRAME_HEADER_LENGTH);
    }
    rig_cycles(rig, 4);
    CHECK_I64(image->rebuild_position, 9 * FRAME);
    CHECK_I64(image->loss.repeats, 1);
    pass(rig, 20 * RIG_MS);
    check_requests(rig, NULL, 0);
}

/* A sender with one resend forgets that of the first gap with the next request, so the first is not repeated for as long as it would
 * have ignored that. */
static void the_first_is_repeated_and_the_others_wait(rx_rig *rig)
{
    static const int32_t GAPS[] = { 64, 192, 320, 448 };
    (void)join_with_gaps(rig);
    rig_cycles(rig, 20);
    check_requests(rig, GAPS, 4);
    pass(rig, (LINGER_MS - 1) * RIG_MS);
    check_requests(rig, NULL, 0);
    pass(rig, RIG_MS + (RETRY_US + 20) * RIG_US);
    check_requests(rig, (const int32_t[]){ 64, 64 }, 2);
}

/* Its resend may be on the way: it is requested again when that has had its time, then at the pace of repetitions. */
static void what_was_requested_ahead_is_repeated_late(rx_rig *rig)
{
    asi_rx_image *image = join_with_gaps(rig);
    rig_cycles(rig, 20);
    CHECK_I64(peer_count(rig, ASI_FRAME_NAK), 4);
    peer_data(rig, 64, FRAME - AS_FRAME_HEADER_LENGTH);
    rig_cycles(rig, 2);
    CHECK_I64(image->loss.active.term_offset, 192);
    pass(rig, (LINGER_MS - 1) * RIG_MS);
    check_requests(rig, NULL, 0);
    pass(rig, RIG_MS + (RETRY_US + 20) * RIG_US);
    check_requests(rig, (const int32_t[]){ 192, 192 }, 2);
    /* What is lost later is requested at once. */
    peer_data(rig, 10 * FRAME + FRAME, FRAME - AS_FRAME_HEADER_LENGTH);
    rig_cycles(rig, 3);
    CHECK_I64(peer_receive(rig, ASI_FRAME_NAK), 28);
    CHECK_I64(got_nak(rig)->term_offset, 9 * FRAME);
    CHECK_I64(got_nak(rig)->length, 2 * FRAME);
}

static void a_gap_that_is_filled_meanwhile_is_not_requested(rx_rig *rig)
{
    static const int32_t GAPS[] = { 64, 320, 448 };
    (void)join_with_gaps(rig);
    rig_cycles(rig, 2); /* the first gap is found, and requested */
    peer_data(rig, 192, FRAME - AS_FRAME_HEADER_LENGTH);
    rig_cycles(rig, 20);
    check_requests(rig, GAPS, 3);
}

/* The receiver takes the last request that it finds. A receiver with much to do takes few. */
static void each_request_waits_until_the_last_was_taken(rx_rig *rig)
{
    asi_rx_image *image = join_with_gaps(rig);
    (void)asi_receiver_do_work(&rig->receiver);
    int32_t requests = 0;
    for (int32_t i = 0; i < 1000; i++)
    {
        asi_gap published;
        bool found_loss;
        rig->now_ns += 2 * RIG_US;
        (void)asi_rx_image_rebuild(image, image->rebuild_position, rig->now_ns, &found_loss, &published);
        requests += published.length > 0 && 64 != published.term_offset ? 1 : 0;
    }
    CHECK_I64(requests, 0);
    rig_cycles(rig, 20);
    CHECK_I64(image->loss.asked_position, 9 * FRAME);
}

static void with(const rig_options *options, int32_t requests)
{
    rx_rig rig;
    rig_open(&rig, options);
    (void)join_with_gaps(&rig);
    pass(&rig, 90 * RIG_US);
    CHECK_I64(peer_count(&rig, ASI_FRAME_NAK), requests);
    rig_close(&rig);
}

static void only_what_was_lost_and_where_it_is_wanted(void)
{
    with(&(rig_options){ .is_ahead = true }, 4);
    with(&(rig_options){ 0 }, 1);
    with(&(rig_options){ .is_ahead = true, .receiver_window = FRAME }, 1); /* gaps as long as the window */
}

/* Gaps at the end of a term, and in the next one, which is looked at when the first is whole. */
static void gaps_of_two_terms(void)
{
    rx_rig rig;
    rig_open(&rig, &(rig_options){ .is_ahead = true, .receiver_window = 32768 });
    asi_rx_image *image = rig_join(&rig);
    peer_be_heard(&rig);
    const int32_t most = 1024 - AS_FRAME_HEADER_LENGTH;
    for (int64_t at = 0; at < TERM - 4096; at += 1024)
    {
        peer_data(&rig, at, most);
        rig_cycles(&rig, 2);
    }
    CHECK_I64(image->rebuild_position, TERM - 4096);
    peer_data(&rig, TERM - 3072, most); /* what begins at TERM - 4096, TERM - 2048 and TERM + 1024 is lost */
    peer_data(&rig, TERM - 1024, most);
    peer_data(&rig, TERM, most);
    peer_data(&rig, TERM + 2048, most);
    rig_cycles(&rig, 20);
    for (int32_t i = 0; i < 2; i++)
    {
        CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 28);
        CHECK_I64(got_nak(&rig)->term_id, INITIAL_TERM);
        CHECK_I64(got_nak(&rig)->term_offset, TERM - 4096 + 2048 * i);
        peer_data(&rig, TERM - 4096 + 2048 * i, most);
    }
    rig_cycles(&rig, 4);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 28);
    CHECK_I64(got_nak(&rig)->term_id, INITIAL_TERM + 1);
    CHECK_I64(got_nak(&rig)->term_offset, 1024);
    CHECK_I64(image->rebuild_position, TERM + 1024);
    rig_close(&rig);
}

#define RUN_AHEAD(test) RUN_IN(rx_rig, rig_open(&fixture, &(rig_options){ .is_ahead = true }), test, rig_close(&fixture))

int main(void)
{
    RUN_AHEAD(all_gaps_are_requested_at_once);
    RUN_AHEAD(the_first_is_repeated_and_the_others_wait);
    RUN_AHEAD(what_was_requested_ahead_is_repeated_late);
    RUN_AHEAD(a_gap_that_is_filled_meanwhile_is_not_requested);
    RUN_AHEAD(each_request_waits_until_the_last_was_taken);
    RUN(only_what_was_lost_and_where_it_is_wanted);
    RUN(gaps_of_two_terms);
    return 0;
}
