/* The receiver as a publisher's driver sees it, an image's data: when NAKs, status messages and round trip requests are sent,
 * and which bytes of a log they and timestamps concern. A test with a number is that scenario of Spec: 04 §25;
 * tests/conformance/udp has the others. Method: a network in memory and a clock of the test's own (rig.h).
 * Spec: 02 §9, 04 §8.6, 11 N9. */
#include "rig.h"

static void s41_the_first_gap_is_asked_for_until_it_is_filled(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    peer_data(rig, 0, 1376);
    peer_data(rig, 2 * 1408, 1376); /* 1408 and 4224 are missing */
    peer_data(rig, 4 * 1408, 1376);
    rig_cycles(rig, 5);
    CHECK_I64(peer_receive(rig, ASI_FRAME_NAK), 28);
    CHECK_I64(got_nak(rig)->prefix.flags, 0);
    CHECK_I64(got_nak(rig)->session_id, SESSION);
    CHECK_I64(got_nak(rig)->stream_id, STREAM);
    CHECK_I64(got_nak(rig)->term_id, INITIAL_TERM);
    CHECK_I64(got_nak(rig)->term_offset, 1408);
    CHECK_I64(got_nak(rig)->length, 1408);
    CHECK_I64(peer_receive(rig, ASI_FRAME_NAK), 0);
    const int64_t before = rig_counter(rig, ASI_SYSTEM_NAKS_SENT);
    rig_pass(rig, 1000 * RIG_US, 10 * RIG_US);
    const int64_t naks = rig_counter(rig, ASI_SYSTEM_NAKS_SENT) - before;
    CHECK(naks >= 9 && naks <= 10);
    CHECK_I64(*image->naks_counter, naks + 1);
    while (peer_receive(rig, ASI_FRAME_NAK) > 0)
    {
        CHECK_I64(got_nak(rig)->term_offset, 1408);
    }
    peer_data(rig, 1408, 1376);
    rig_cycles(rig, 5);
    CHECK_I64(image->rebuild_position, 3 * 1408);
    CHECK(peer_receive(rig, ASI_FRAME_NAK) > 0);
    if (1408 == got_nak(rig)->term_offset) /* one may have been on its way */
    {
        CHECK_I64(peer_receive(rig, ASI_FRAME_NAK), 28);
    }
    CHECK_I64(got_nak(rig)->term_offset, 3 * 1408);
    peer_data(rig, 3 * 1408, 1376);
    rig_cycles(rig, 2);
    CHECK_I64(image->rebuild_position, 5 * 1408);
    rig_pass(rig, 1000 * RIG_US, 10 * RIG_US);
    CHECK_I64(peer_receive(rig, ASI_FRAME_NAK), 0);
    for (int64_t i = 0; i < 5; i++)
    {
        CHECK(log_has(image, i * 1408, 1376));
    }
}

static void s45_consumption_of_more_than_a_quarter_window_is_told_at_once(rx_rig *rig)
{
    rig_join(rig);
    const int64_t quarter = TERM / 2 / 4;
    rig->min_position = 0;
    for (int64_t at = 0; at < quarter + 1024; at += 1024)
    {
        peer_data(rig, at, 1024 - 32);
        rig_cycles(rig, 1);
    }
    rig->min_position = quarter;
    rig_cycles(rig, 3);
    CHECK_I64(peer_receive(rig, -1), 0);
    rig_pass(rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_receive(rig, -1), 36);
    CHECK_I64(got_status(rig)->consumption_term_offset, 0); /* the old one; Spec: 04 §8.7 R3 */
    rig->min_position = quarter + 32;
    rig_cycles(rig, 2);
    CHECK_I64(peer_receive(rig, -1), 36);
    CHECK_I64(got_status(rig)->consumption_term_offset, quarter + 32);
    CHECK_I64(peer_receive(rig, -1), 0);
}

static void s47_unreliable_gaps_become_padding(void)
{
    rx_rig rig;
    const rig_options options = { .is_unreliable = true };
    rig_open(&rig, &options);
    asi_rx_image *image = rig_join(&rig);
    peer_data(&rig, 0, 96);
    peer_data(&rig, 512, 96);
    rig_cycles(&rig, 4);
    CHECK_I64(image->rebuild_position, 640);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_LOSS_GAP_FILLS), 1);
    const asi_frame_header *padding = (const asi_frame_header *)(void *)(image->log.terms[0] + 128);
    CHECK_I64(padding->type, ASI_FRAME_PAD);
    CHECK_I64(padding->frame_length, 512 - 128);
    CHECK_I64(padding->term_offset, 128);
    CHECK_I64(padding->term_id, INITIAL_TERM);
    CHECK_I64(padding->session_id, SESSION);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 0);
    rig_close(&rig);
}

static void s62_round_trip_times(void)
{
    rx_rig rig;
    int64_t rtt_counter = 0;
    int64_t window_counter = 0;
    const rig_options options = { .congestion = { .kind = ASI_CONGESTION_CUBIC, .is_measuring_rtt = true,
        .initial_rtt_ns = 100 * RIG_US, .rtt_counter = &rtt_counter, .window_counter = &window_counter } };
    rig_open(&rig, &options);
    rig_join(&rig);
    peer_be_heard(&rig);
    asi_rttm_frame request = {
        .prefix = { .frame_length = 40, .flags = ASI_RTTM_FLAG_REQUEST, .type = ASI_FRAME_RTTM },
        .session_id = SESSION, .stream_id = STREAM, .echo_timestamp_ns = 4711, .receiver_id = 12345
    };
    peer_send(&rig, &request, sizeof(request));
    rig_cycles(&rig, 1);
    CHECK_I64(peer_count(&rig, ASI_FRAME_RTTM), 0); /* for another receiver */
    request.receiver_id = 0;
    peer_send(&rig, &request, sizeof(request));
    rig_cycles(&rig, 1);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_RTTM), 40);
    const asi_rttm_frame *got = (const asi_rttm_frame *)(void *)rig.got.bytes;
    CHECK_I64(got->prefix.flags, 0);
    CHECK_I64(got->echo_timestamp_ns, 4711);
    CHECK_I64(got->reception_delta_ns, 0);
    CHECK_I64(got->receiver_id, RIG_RECEIVER_ID);
    /* Own requests: every 400 us until a longer time is measured. */
    rig_pass(&rig, 420 * RIG_US, 20 * RIG_US);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_RTTM), 40);
    CHECK_I64(got->prefix.flags, ASI_RTTM_FLAG_REQUEST);
    CHECK_I64(got->receiver_id, RIG_RECEIVER_ID);
    asi_rttm_frame reply = *got;
    reply.prefix.flags = 0;
    rig_cycles(&rig, 10);
    CHECK_I64(peer_count(&rig, ASI_FRAME_RTTM), 0); /* one each time, not one each cycle */
    rig.now_ns += 300 * RIG_US;
    peer_send(&rig, &reply, sizeof(reply));
    rig_cycle(&rig);
    CHECK_I64(rtt_counter, rig.now_ns - reply.echo_timestamp_ns);
    CHECK_I64(rig.images[0]->rtt_timeout_ns, 4 * rtt_counter);
    /* A random echo is no measurement: it would cause requests in each cycle, or never again. */
    const int64_t measured_ns = rtt_counter;
    reply.echo_timestamp_ns = rig.now_ns - INT64_MAX;
    peer_send(&rig, &reply, sizeof(reply));
    rig_cycle(&rig);
    reply.echo_timestamp_ns = rig.now_ns - 60 * RIG_SECOND;
    peer_send(&rig, &reply, sizeof(reply));
    rig_cycle(&rig);
    CHECK_I64(rtt_counter, measured_ns);
    CHECK_I64(rig.images[0]->rtt_timeout_ns, 4 * measured_ns);
    rig_close(&rig);
}

/* Whole, within the message, of its first frame, and of data only. */
static void timestamps_stay_within_their_message(void)
{
    static const struct { int32_t payload_length; uint8_t flags; uint16_t type; bool is_stamped; } rows[] = {
        { 16, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_DATA, true },
        { 15, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_DATA, false },
        { 64, ASI_FLAG_BEGIN, ASI_FRAME_DATA, true },
        { 64, 0, ASI_FRAME_DATA, false },
        { 64, ASI_FLAG_END, ASI_FRAME_DATA, false },
        { 64, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_PAD, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        rx_rig rig;
        const rig_options options = { .channel = "aeron:udp?endpoint=127.0.0.1:24000|channel-rcv-ts-offset=8" };
        rig_open(&rig, &options);
        const asi_rx_image *image = rig_join(&rig);
        uint8_t bytes[128] __attribute__((aligned(8)));
        const int32_t length = put_frame(bytes, 0, rows[i].payload_length);
        ((asi_frame_header *)(void *)bytes)->flags = rows[i].flags;
        ((asi_frame_header *)(void *)bytes)->type = rows[i].type;
        peer_send(&rig, bytes, length);
        rig_cycle(&rig);
        const int64_t expected = rows[i].is_stamped ? rig_epoch_ms(&rig) * 1000000 : asi_get_i64(bytes + 40);
        CHECK_I64(asi_get_i64(image->log.terms[0] + 40), expected);
        asi_put_i64(bytes + 40, expected);
        CHECK(0 == memcmp(bytes, image->log.terms[0], (size_t)length));
        rig_close(&rig);
    }
}

/* Spec: 11 D13 - each message that has room for it, behind others that have none; and a bad datagram is none with a stamp either. */
static void every_message_of_a_datagram_is_stamped(void)
{
    static const int32_t PAYLOADS[] = { 8, 4, 8 };
    rx_rig rig;
    const rig_options options = { .channel = "aeron:udp?endpoint=127.0.0.1:24000|channel-rcv-ts-offset=0" };
    rig_open(&rig, &options);
    const asi_rx_image *image = rig_join(&rig);
    uint8_t bytes[256] __attribute__((aligned(8)));
    int32_t length = 0;
    for (int i = 0; i < 3; i++)
    {
        length += put_frame(bytes + length, length, PAYLOADS[i]);
    }
    peer_send(&rig, bytes, length);
    rig_cycle(&rig);
    const uint8_t *term = image->log.terms[0];
    CHECK_I64(asi_get_i64(term + 32), rig_epoch_ms(&rig) * 1000000);
    CHECK(0 == memcmp(term + 64 + 32, bytes + 64 + 32, 4));
    CHECK_I64(asi_get_i64(term + 128 + 32), rig_epoch_ms(&rig) * 1000000);
    for (int32_t bad = -32; bad < 64; bad += 16)
    {
        const int64_t invalid = rig_counter(&rig, ASI_SYSTEM_INVALID_PACKETS);
        length = put_frame(bytes, 192, 8);
        length += put_frame(bytes + length, 192 + length, 8);
        ((asi_frame_header *)(void *)(bytes + 64))->frame_length = bad < 32 ? bad : INT32_MAX - bad;
        peer_send(&rig, bytes, length);
        rig_cycle(&rig);
        CHECK_I64(rig_counter(&rig, ASI_SYSTEM_INVALID_PACKETS), invalid + 1);
    }
    CHECK_I64(asi_load_acquire_i32((const int32_t *)(const void *)(term + 192)), 0);
    rig_close(&rig);
}

/* Spec: 11 D3, D4. One bent frame costs the whole datagram, and none of it keeps the image alive; the right one is taken afterwards. */
static void frames_that_do_not_lie_in_a_row(rx_rig *rig)
{
    static const struct { int32_t term_offset; uint16_t type; int32_t frame_length; } ROWS[] = {
        { 96, ASI_FRAME_DATA, 64 }, { 64, ASI_FRAME_NAK, 64 }, { 64, ASI_FRAME_DATA, 0 }, { 64, ASI_FRAME_DATA, 4096 } };
    enum { COUNT = sizeof(ROWS) / sizeof(ROWS[0]) };
    const asi_rx_image *image = rig_join(rig);
    const int64_t begun_ns = image->last_packet_ns;
    uint8_t bytes[192] __attribute__((aligned(8)));
    for (int i = 0; i <= COUNT; i++)
    {
        for (int32_t at = 0; at < 192; at += put_frame(bytes + at, at, 32))
        {
        }
        asi_frame_header *middle = (asi_frame_header *)(void *)(bytes + 64);
        if (i < COUNT)
        {
            middle->term_offset = ROWS[i].term_offset;
            middle->type = ROWS[i].type;
            middle->frame_length = ROWS[i].frame_length;
        }
        peer_send(rig, bytes, sizeof(bytes));
        rig_cycles(rig, 2);
        CHECK_I64(rig_counter(rig, ASI_SYSTEM_INVALID_PACKETS), i < COUNT ? i + 1 : COUNT);
        CHECK_I64(image->hwm, i < COUNT ? 0 : 192);
        CHECK_I64(image->last_packet_ns != begun_ns, i == COUNT);
    }
    asi_frame_header heartbeat = { .type = ASI_FRAME_DATA, .session_id = SESSION, .stream_id = STREAM, .term_id = INITIAL_TERM };
    heartbeat.term_offset = TERM;
    peer_send(rig, &heartbeat, sizeof(heartbeat));
    heartbeat.term_offset = 40;
    peer_send(rig, &heartbeat, sizeof(heartbeat));
    rig_cycles(rig, 2);
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_INVALID_PACKETS), COUNT + 2);
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_HEARTBEATS_RECEIVED), 0);
}

int main(void)
{
    RUN_IN_RIG(s41_the_first_gap_is_asked_for_until_it_is_filled);
    RUN_IN_RIG(s45_consumption_of_more_than_a_quarter_window_is_told_at_once);
    RUN(s47_unreliable_gaps_become_padding);
    RUN(s62_round_trip_times);
    RUN(timestamps_stay_within_their_message);
    RUN(every_message_of_a_datagram_is_stamped);
    RUN_IN_RIG(frames_that_do_not_lie_in_a_row);
    return 0;
}
