/* The receiver as a publisher's driver sees it: scenarios 37-67 of Spec: 04 §25 as far as they need no conductor beyond what
 * rig.h does. Each test is one scenario (its number in the name), on a network in memory and a clock of its own. */
#include "rig.h"

static const rig_options plain = { 0 };

static void s37_data_elicits_one_setup_a_second(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    for (int i = 0; i < 5; i++)
    {
        peer_data(&rig, 0, 100);
    }
    rig_cycles(&rig, 3);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, 0x80);
    CHECK_I64(got_status(&rig)->prefix.frame_length, 36);
    CHECK_I64(got_status(&rig)->session_id, SESSION);
    CHECK_I64(got_status(&rig)->stream_id, STREAM);
    CHECK_I64(got_status(&rig)->receiver_window, 0);
    CHECK_I64(got_status(&rig)->receiver_id, RIG_RECEIVER_ID);
    CHECK(asi_address_equal(&rig.got.source, &rig.data_address));
    CHECK_I64(peer_receive(&rig, -1), 0);
    rig_pass(&rig, 900 * RIG_MS, 100 * RIG_MS);
    peer_data(&rig, 0, 100);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_receive(&rig, -1), 0);
    rig_pass(&rig, 200 * RIG_MS, 100 * RIG_MS);
    peer_data(&rig, 0, 100);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_count(&rig, -1), 1);
    CHECK_I64(rig.image_count, 0);
    rig_close(&rig);
}

static void s38_end_of_stream_of_unknown_session_elicits_nothing(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    peer_heartbeat(&rig, 0, 0xE0);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_receive(&rig, -1), 0);
    peer_heartbeat(&rig, 0, 0xC0);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_count(&rig, ASI_FRAME_STATUS), 1);
    rig_close(&rig);
}

static void s39_setup_makes_an_image_and_a_status_message_each_200_ms(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_setup_frame setup = setup_frame();
    setup.active_term_id = INITIAL_TERM + 2;
    setup.term_offset = 4096;
    peer_send(&rig, &setup, sizeof(setup));
    rig_cycles(&rig, 2);
    CHECK_I64(rig.create_count, 1);
    CHECK_I64(rig.create.mtu_length, MTU);
    CHECK_I64(rig.create.endpoint_id, 5);
    CHECK_I64(rig.create.destination_id, 100);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, 0);
    CHECK_I64(got_status(&rig)->consumption_term_id, INITIAL_TERM + 2);
    CHECK_I64(got_status(&rig)->consumption_term_offset, 4096);
    CHECK_I64(got_status(&rig)->receiver_window, TERM / 2);
    rig_pass(&rig, 190 * RIG_MS, 10 * RIG_MS);
    CHECK_I64(peer_receive(&rig, -1), 0);
    rig_pass(&rig, 20 * RIG_MS, 10 * RIG_MS);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_STATUS_MESSAGES_SENT), 2);
    CHECK_I64(rig.images[0]->log.metadata->active_transport_count, 1);
    rig_close(&rig);
}

static void s40_no_image_then_a_later_setup_is_tried_again(void)
{
    rx_rig rig;
    const rig_options options = { .is_manual_images = true };
    rig_open(&rig, &options);
    peer_setup(&rig);
    peer_setup(&rig);
    rig_cycles(&rig, 2);
    CHECK_I64(rig.create_count, 1); /* the second came while the first was being looked at */
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_CLEAR_INIT, .stream_id = STREAM, .session_id = SESSION });
    rig_cycles(&rig, 1);
    peer_setup(&rig);
    rig_cycles(&rig, 2);
    CHECK_I64(rig.create_count, 2);
    rig_close(&rig);
}

static void s41_the_first_gap_is_asked_for_until_it_is_filled(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    peer_data(&rig, 0, 1376);
    peer_data(&rig, 2 * 1408, 1376); /* 1408 and 4224 are missing */
    peer_data(&rig, 4 * 1408, 1376);
    rig_cycles(&rig, 5);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 28);
    CHECK_I64(got_nak(&rig)->prefix.flags, 0);
    CHECK_I64(got_nak(&rig)->session_id, SESSION);
    CHECK_I64(got_nak(&rig)->stream_id, STREAM);
    CHECK_I64(got_nak(&rig)->term_id, INITIAL_TERM);
    CHECK_I64(got_nak(&rig)->term_offset, 1408);
    CHECK_I64(got_nak(&rig)->length, 1408);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 0);
    const int64_t before = rig_counter(&rig, ASI_SYSTEM_NAKS_SENT);
    rig_pass(&rig, 1000 * RIG_US, 10 * RIG_US);
    const int64_t naks = rig_counter(&rig, ASI_SYSTEM_NAKS_SENT) - before;
    CHECK(naks >= 9 && naks <= 10);
    CHECK_I64(*image->naks_counter, naks + 1);
    while (peer_receive(&rig, ASI_FRAME_NAK) > 0)
    {
        CHECK_I64(got_nak(&rig)->term_offset, 1408);
    }
    peer_data(&rig, 1408, 1376);
    rig_cycles(&rig, 5);
    CHECK_I64(image->rebuild_position, 3 * 1408);
    CHECK(peer_receive(&rig, ASI_FRAME_NAK) > 0);
    if (1408 == got_nak(&rig)->term_offset) /* one may have been on its way */
    {
        CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 28);
    }
    CHECK_I64(got_nak(&rig)->term_offset, 3 * 1408);
    peer_data(&rig, 3 * 1408, 1376);
    rig_cycles(&rig, 2);
    CHECK_I64(image->rebuild_position, 5 * 1408);
    rig_pass(&rig, 1000 * RIG_US, 10 * RIG_US);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 0);
    for (int64_t i = 0; i < 5; i++)
    {
        CHECK(log_has(image, i * 1408, 1376));
    }
    rig_close(&rig);
}

static void s42_a_heartbeat_tells_of_a_lost_tail(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    rig_join(&rig);
    peer_data(&rig, 0, 96);
    peer_heartbeat(&rig, 128 + 256, 0xC0);
    rig_cycles(&rig, 5);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 28);
    CHECK_I64(got_nak(&rig)->term_offset, 128);
    CHECK_I64(got_nak(&rig)->length, 256);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_HEARTBEATS_RECEIVED), 1);
    rig_close(&rig);
}

static void s43_a_resend_with_more_than_was_missing(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    uint8_t bytes[2048] __attribute__((aligned(8)));
    int32_t length = put_frame(bytes, 0, 96);
    length += put_frame(bytes + length, 128, 96);
    peer_data(&rig, 128, 96);
    rig_cycles(&rig, 2);
    peer_send(&rig, bytes, length);
    rig_cycles(&rig, 3);
    CHECK_I64(image->rebuild_position, 256);
    CHECK(log_has(image, 0, 96) && log_has(image, 128, 96));
    rig_close(&rig);
}

static void s44_below_and_beyond_the_window(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    const int64_t bound = TERM / 2; /* half a term past the last SM sent; Spec: 04 §24 T4 */
    peer_data(&rig, bound - 64, 32);
    rig_cycles(&rig, 1);
    CHECK_I64(image->hwm, bound);
    peer_data(&rig, bound, 32);
    rig_cycles(&rig, 3);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_FLOW_CONTROL_OVER_RUNS), 1);
    CHECK_I64(image->hwm, bound);
    while (peer_receive(&rig, ASI_FRAME_NAK) > 0)
    {
        CHECK(got_nak(&rig)->term_offset + got_nak(&rig)->length <= bound);
    }
    /* 24 frames of 1344 let the position pass window / 4, so that an SM moves the lower bound. */
    for (int64_t i = 0; i < 24; i++)
    {
        peer_data(&rig, i * 1344, 1312);
        rig_cycles(&rig, 1);
    }
    rig_cycles(&rig, 2);
    CHECK(image->last_sm_position > 0);
    const int64_t hwm = image->hwm;
    peer_data(&rig, 0, 1312);
    rig_cycles(&rig, 2);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_FLOW_CONTROL_UNDER_RUNS), 1);
    CHECK_I64(image->hwm, hwm);
    CHECK(log_has(image, 0, 1312));
    rig_close(&rig);
}

static void s45_consumption_of_more_than_a_quarter_window_is_told_at_once(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    rig_join(&rig);
    const int64_t quarter = TERM / 2 / 4;
    rig.min_position = 0;
    for (int64_t at = 0; at < quarter + 1024; at += 1024)
    {
        peer_data(&rig, at, 1024 - 32);
        rig_cycles(&rig, 1);
    }
    rig.min_position = quarter;
    rig_cycles(&rig, 3);
    CHECK_I64(peer_receive(&rig, -1), 0);
    rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(got_status(&rig)->consumption_term_offset, 0); /* the old one; Spec: 04 §8.7 R3 */
    rig.min_position = quarter + 32;
    rig_cycles(&rig, 2);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(got_status(&rig)->consumption_term_offset, quarter + 32);
    CHECK_I64(peer_receive(&rig, -1), 0);
    rig_close(&rig);
}

static void s46_the_slowest_subscriber_decides(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    for (int64_t at = 0; at < 16384; at += 1024)
    {
        peer_data(&rig, at, 1024 - 32);
        rig_cycles(&rig, 1);
    }
    rig.min_position = 8192 + 1024;
    rig.max_position = 16384;
    rig_cycles(&rig, 3);
    CHECK_I64(image->next_sm_position, 8192 + 1024);
    rig_close(&rig);
}

static void s47_unreliable_gaps_become_padding(void)
{
    rx_rig rig;
    const rig_options options = { .is_unreliable = true };
    rig_open(&rig, &options);
    asi_image *image = rig_join(&rig);
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

static void s48_windows(void)
{
    static const struct
    {
        int32_t receiver_window;
        int32_t expected;
    } rows[] = { { 0, TERM / 2 }, { 16384, 16384 }, { 1 << 20, TERM / 2 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        rx_rig rig;
        const rig_options options = { .receiver_window = rows[i].receiver_window };
        rig_open(&rig, &options);
        rig_join(&rig);
        CHECK_I64(got_status(&rig)->receiver_window, rows[i].expected);
        rig_close(&rig);
    }
}

/* The conductor decides on liveness; here is what follows: EOS SMs, removal, cool-down, and what ends it. */
static void s49_removal_cools_down_until_the_conductor_says_so(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    asi_store_release_bool(&image->is_sending_eos_sm, true);
    rig_pass(&rig, 1020 * RIG_MS, 20 * RIG_MS);
    int32_t count = 0;
    while (peer_receive(&rig, ASI_FRAME_STATUS) > 0)
    {
        CHECK_I64(got_status(&rig)->prefix.flags, ASI_STATUS_FLAG_EOS);
        count++;
    }
    CHECK_I64(count, 4); /* each 200 ms; the clock steps by 20 and the rule is "later than" */
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_REMOVE_IMAGE, .image = image });
    rig_cycles(&rig, 1);
    CHECK(image->is_released);
    peer_data(&rig, 0, 96);
    peer_setup(&rig);
    rig_cycles(&rig, 3);
    CHECK_I64(peer_receive(&rig, -1), 0);
    CHECK_I64(rig.create_count, 1);
    rig_send_mail(&rig,
        (asi_receiver_mail){ .kind = ASI_RECEIVER_CLEAR_COOL_DOWN, .stream_id = STREAM, .session_id = SESSION });
    rig_cycles(&rig, 1);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, ASI_STATUS_FLAG_SEND_SETUP);
    rig_close(&rig);
}

static void s50_setups_do_not_keep_an_image_alive(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    const int64_t last_packet_ns = image->last_packet_ns;
    rig_pass(&rig, RIG_SECOND, 100 * RIG_MS);
    peer_setup(&rig);
    rig_cycles(&rig, 2);
    CHECK_I64(image->last_packet_ns, last_packet_ns);
    CHECK_I64(image->connections[0].last_activity_ns > last_packet_ns, 1);
    CHECK_I64(rig.create_count, 1);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 2);
    CHECK(image->last_packet_ns > last_packet_ns);
    rig_close(&rig);
}

static void s51_end_of_stream_then_a_new_session_of_the_same_id(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    peer_data(&rig, 0, 96);
    peer_heartbeat(&rig, 128, 0xE0);
    rig_cycles(&rig, 3);
    CHECK(image->is_end_of_stream && !image->is_revoked);
    CHECK_I64(image->log.metadata->end_of_stream_position, 128);
    CHECK_I64(image->rebuild_position, 128);
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_REMOVE_IMAGE, .image = image });
    rig_cycles(&rig, 1);
    peer_setup(&rig); /* Spec: 04 §8.9.2 - no cool-down after an end of stream */
    rig_cycles(&rig, 2);
    CHECK_I64(rig.create_count, 2);
    rig_close(&rig);
}

static void s52_end_of_stream_beyond_a_gap(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    peer_data(&rig, 0, 96);
    peer_heartbeat(&rig, 512, 0xE0);
    rig_cycles(&rig, 4);
    CHECK(image->is_end_of_stream);
    CHECK(image->rebuild_position < image->hwm);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 28);
    peer_data(&rig, 128, 512 - 128 - 32);
    rig_cycles(&rig, 2);
    CHECK_I64(image->rebuild_position, 512);
    CHECK_I64(image->log.metadata->end_of_stream_position, 512);
    rig_close(&rig);
}

static void s53_revoke(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    peer_heartbeat(&rig, 4096, 0xF0);
    rig_cycles(&rig, 1);
    CHECK(image->is_end_of_stream && image->is_revoked);
    CHECK_I64(image->log.metadata->is_publication_revoked, 1);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_PUBLICATION_IMAGES_REVOKED), 1);
    rig_pass(&rig, 1000 * RIG_US, 10 * RIG_US);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 0); /* the receiver sends none whatever the conductor finds */
    peer_heartbeat(&rig, 4096, 0xF0);
    rig_cycles(&rig, 2);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_PUBLICATION_IMAGES_REVOKED), 1);
    rig_close(&rig);
}

static void s54_many_frames_and_padding(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_setup_frame setup = setup_frame();
    setup.term_offset = TERM - 10048 - 384;
    peer_send(&rig, &setup, sizeof(setup));
    rig_cycles(&rig, 3);
    asi_image *image = rig.images[0];
    uint8_t bytes[2048] __attribute__((aligned(8)));
    const int64_t start = TERM - 10048 - 384;
    int32_t length = 0;
    for (int i = 0; i < 3; i++)
    {
        length += put_frame(bytes + length, start + length, 96);
    }
    asi_frame_header *padding = (asi_frame_header *)(void *)(bytes + length);
    put_frame(bytes + length, start + length, 0);
    padding->type = ASI_FRAME_PAD;
    padding->frame_length = 10048; /* to the end of the term; travels as 32 bytes */
    peer_send(&rig, bytes, length + 32);
    rig_cycles(&rig, 2);
    CHECK_I64(image->hwm, start + 384 + 32);
    CHECK_I64(image->rebuild_position, TERM);
    peer_data(&rig, TERM, 96);
    rig_cycles(&rig, 3);
    CHECK_I64(image->rebuild_position, TERM + 128);
    CHECK(log_has(image, start, 96) && log_has(image, start + 128, 96) && log_has(image, start + 256, 96));
    CHECK(log_has(image, TERM, 96));
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 0);
    rig_close(&rig);
}

static void s55_group_tags(void)
{
    rx_rig rig;
    const rig_options options = { .channel = "aeron:udp?endpoint=127.0.0.1:24000|gtag=9" };
    rig_open(&rig, &options);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_receive(&rig, -1), 44);
    CHECK_I64(got_status(&rig)->prefix.frame_length, 44);
    CHECK_I64(got_status(&rig)->group_tag, 9);
    rig_join(&rig);
    CHECK_I64(got_status(&rig)->prefix.frame_length, 44);
    CHECK_I64(got_status(&rig)->group_tag, 9);
    rig_close(&rig);
}

static void s56_explicit_control_asks_for_setups_for_ever(void)
{
    rx_rig rig;
    const rig_options options = { .channel = "aeron:udp?control=127.0.0.1:24100|control-mode=dynamic", .no_interest = true };
    rig_open(&rig, &options);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, 0x80);
    CHECK_I64(got_status(&rig)->session_id, 0);
    CHECK_I64(got_status(&rig)->stream_id, 0);
    rig_pass(&rig, 3 * RIG_SECOND, 100 * RIG_MS);
    CHECK_I64(peer_count(&rig, -1), 0); /* nobody is interested */
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_ADD_STREAM, .stream_id = STREAM });
    rig_pass(&rig, 3300 * RIG_MS, 100 * RIG_MS);
    CHECK_I64(peer_count(&rig, -1), 3);
    CHECK_I64(rig.resolve_count > 0, 1); /* silent for more than 5 s */
    /* A session of its own asks for that session, too. */
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_ADD_SESSION, .stream_id = 2002, .session_id = 5 });
    rig_cycles(&rig, 1);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(got_status(&rig)->session_id, 5);
    CHECK_I64(got_status(&rig)->stream_id, 2002);
    rig_close(&rig);
}

static void s57_other_sessions_elicit_nothing(void)
{
    rx_rig rig;
    const rig_options options = { .no_interest = true };
    rig_open(&rig, &options);
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_ADD_SESSION, .stream_id = STREAM, .session_id = SESSION + 1 });
    rig_cycles(&rig, 1);
    peer_data(&rig, 0, 96);
    peer_setup(&rig);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_receive(&rig, -1), 0);
    CHECK_I64(rig.create_count, 0);
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_ADD_SESSION, .stream_id = STREAM, .session_id = SESSION });
    rig_cycles(&rig, 1);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_count(&rig, -1), 1);
    rig_close(&rig);
}

static void s58_session_limit(void)
{
    rx_rig rig;
    const rig_options options = { .stream_session_limit = 2 };
    rig_open(&rig, &options);
    asi_setup_frame setup = setup_frame();
    for (int32_t i = 0; i < 3; i++)
    {
        setup.session_id = SESSION + i;
        peer_send(&rig, &setup, sizeof(setup));
        rig_cycles(&rig, 3);
    }
    CHECK_I64(rig.image_count, 2);
    CHECK_I64(rig.error_count, 1);
    CHECK(NULL != strstr(rig.error, "session limit"));
    peer_setup(&rig); /* of the first, which has its image */
    rig_cycles(&rig, 2);
    CHECK_I64(rig.error_count, 2);
    rig_close(&rig);
}

static void s59_two_destinations(void)
{
    rx_rig rig;
    const rig_options options = { .second = "aeron:udp?endpoint=127.0.0.1:24001" };
    rig_open(&rig, &options);
    asi_image *image = rig_join(&rig);
    const asi_udp_params params = { .bind = fake_address("127.0.0.1", 24101) };
    const asi_address second = fake_address("127.0.0.1", 24001);
    asi_udp_socket *peer2;
    CHECK_I64(rig.ops.open(rig.ops.context, &params, &peer2), AS_OK);
    const asi_setup_frame setup = setup_frame();
    peer_send_to(&rig, peer2, &setup, sizeof(setup), &second);
    rig_cycles(&rig, 1);
    CHECK_I64(rig.create_count, 1);
    CHECK_I64(image->connection_count, 2);
    CHECK_I64(image->log.metadata->active_transport_count, 2);
    rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_count(&rig, ASI_FRAME_STATUS), 1);
    CHECK_I64(peer_receive_at(&rig, peer2, ASI_FRAME_STATUS), 36);
    CHECK(asi_address_equal(&rig.got.source, &second));
    /* The first stays, the second falls silent. */
    for (int i = 0; i < 52; i++)
    {
        peer_data(&rig, 0, 96);
        rig_pass(&rig, 100 * RIG_MS, 100 * RIG_MS);
    }
    while (peer_receive_at(&rig, peer2, -1) > 0)
    {
    }
    CHECK(peer_count(&rig, ASI_FRAME_STATUS) > 0);
    peer_heartbeat(&rig, 128, 0xE0);
    rig_pass(&rig, 420 * RIG_MS, 20 * RIG_MS);
    CHECK(peer_count(&rig, ASI_FRAME_STATUS) > 0);
    CHECK_I64(peer_receive_at(&rig, peer2, -1), 0);
    CHECK(!image->is_end_of_stream);
    /* The end of both ends it, at the larger position. */
    uint8_t bytes[AS_FRAME_HEADER_LENGTH] __attribute__((aligned(8)));
    put_frame(bytes, 96, 0);
    ((asi_frame_header *)(void *)bytes)->frame_length = 0;
    ((asi_frame_header *)(void *)bytes)->flags = 0xE0;
    peer_send_to(&rig, peer2, bytes, sizeof(bytes), &second);
    rig_cycles(&rig, 1);
    CHECK(image->is_end_of_stream);
    CHECK_I64(image->log.metadata->end_of_stream_position, 128);
    /* A destination goes, its connection with it. */
    rig_send_mail(&rig,
        (asi_receiver_mail){ .kind = ASI_RECEIVER_REMOVE_DESTINATION, .destination = &rig.destinations[1] });
    rig_cycles(&rig, 1);
    CHECK(rig.destinations[1].is_released);
    CHECK_I64(image->connection_count, 1);
    CHECK_I64(image->log.metadata->active_transport_count, 1);
    CHECK_I64(rig.endpoint.destination_count, 1);
    rig.ops.close(rig.ops.context, peer2);
    rig_close(&rig);
}

static void s60_rejection(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    snprintf(image->rejection_reason, sizeof(image->rejection_reason), "not wanted");
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_REJECT_IMAGE, .image = image });
    rig_cycles(&rig, 1);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 2);
    CHECK_I64(image->hwm, 0);
    CHECK_I64(peer_receive(&rig, -1), 0); /* the first waits for the running deadline */
    rig_pass(&rig, 420 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_receive(&rig, -1), 40 + 10);
    const asi_error_frame *error = (const asi_error_frame *)(void *)rig.got.bytes;
    CHECK_I64(error->prefix.type, ASI_FRAME_ERROR);
    CHECK_I64(error->prefix.frame_length, 50);
    CHECK_I64(error->prefix.flags, 0);
    CHECK_I64(error->session_id, SESSION);
    CHECK_I64(error->stream_id, STREAM);
    CHECK_I64(error->receiver_id, RIG_RECEIVER_ID);
    CHECK_I64(error->group_tag, -1);
    CHECK_I64(error->error_code, 13);
    CHECK_I64(error->error_length, 10);
    CHECK(0 == memcmp(rig.got.bytes + 40, "not wanted", 10));
    CHECK_I64(peer_count(&rig, ASI_FRAME_ERROR), 1);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_ERROR_FRAMES_SENT), 2);
    rig_pass(&rig, 10 * RIG_SECOND, 20 * RIG_MS); /* the publisher hears it for as long as the image is there */
    CHECK(peer_count(&rig, ASI_FRAME_ERROR) >= 45);
    rig_close(&rig);
}

static void s61_group_members_wait_before_they_ask(void)
{
    rx_rig rig;
    const rig_options options = { .is_group = true };
    rig_open(&rig, &options);
    asi_image *image = rig_join(&rig);
    peer_data(&rig, 512, 96);
    rig_cycles(&rig, 1);
    const int64_t delay_ns = image->loss.deadline_ns - rig.now_ns;
    CHECK(delay_ns >= -2 * RIG_US && delay_ns < 10 * RIG_MS);
    if (delay_ns > 10 * RIG_US)
    {
        peer_data(&rig, 0, 512 - 32); /* somebody else asked */
        rig_pass(&rig, 20 * RIG_MS, RIG_MS);
        CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), 0);
    }
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
    asi_rttm_frame request = {
        .prefix = { .frame_length = 40, .flags = ASI_RTTM_FLAG_REQUEST, .type = ASI_FRAME_RTTM },
        .session_id = SESSION, .stream_id = STREAM, .echo_timestamp_ns = 4711, .receiver_id = 12345
    };
    peer_send(&rig, &request, sizeof(request));
    rig_cycles(&rig, 1);
    CHECK_I64(peer_count(&rig, ASI_FRAME_RTTM), 0); /* somebody else's */
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
    rig.now_ns += 300 * RIG_US;
    peer_send(&rig, &reply, sizeof(reply));
    rig_cycle(&rig);
    CHECK_I64(rtt_counter, rig.now_ns - reply.echo_timestamp_ns);
    CHECK_I64(rig.images[0]->rtt_timeout_ns, 4 * rtt_counter);
    /* An echo of chance is no measurement: it would have us ask in each cycle, or never again. */
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

static void s63_response_setups(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    asi_store_release_i64(&image->response_session_id, 4242);
    rig_pass(&rig, 420 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_receive(&rig, -1), 20); /* before the SM */
    const asi_response_setup_frame *frame = (const asi_response_setup_frame *)(void *)rig.got.bytes;
    CHECK_I64(frame->prefix.type, ASI_FRAME_RESPONSE_SETUP);
    CHECK_I64(frame->session_id, SESSION);
    CHECK_I64(frame->stream_id, STREAM);
    CHECK_I64(frame->response_session_id, 4242);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(peer_count(&rig, ASI_FRAME_RESPONSE_SETUP), 1);
    asi_store_release_i64(&image->response_session_id, ASI_NO_RESPONSE_SESSION);
    rig_pass(&rig, 420 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_count(&rig, ASI_FRAME_RESPONSE_SETUP), 0);
    rig_close(&rig);
}

static void s65_channel_timestamps(void)
{
    static const struct
    {
        const char *channel;
        int32_t at;
    } rows[] = {
        { "aeron:udp?endpoint=127.0.0.1:24000|channel-rcv-ts-offset=reserved", 24 },
        { "aeron:udp?endpoint=127.0.0.1:24000|channel-rcv-ts-offset=8", 40 },
        { "aeron:udp?endpoint=127.0.0.1:24000|channel-rcv-ts-offset=4000", -1 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        rx_rig rig;
        const rig_options options = { .channel = rows[i].channel };
        rig_open(&rig, &options);
        asi_image *image = rig_join(&rig);
        uint8_t bytes[512] __attribute__((aligned(8)));
        int32_t length = put_frame(bytes, 0, 96);
        length += put_frame(bytes + length, 128, 96);
        peer_send(&rig, bytes, length);
        rig_cycle(&rig);
        if (rows[i].at >= 0)
        {
            CHECK_I64(asi_get_i64(image->log.terms[0] + rows[i].at), rig_epoch_ms(&rig) * 1000000);
        }
        else
        {
            CHECK(log_has(image, 0, 96));
        }
        CHECK(log_has(image, 128, 96));
        rig_close(&rig);
    }
}

static void s67_term_ids_wrap(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_setup_frame setup = setup_frame();
    setup.initial_term_id = INT32_MAX;
    setup.active_term_id = INT32_MAX;
    peer_send(&rig, &setup, sizeof(setup));
    rig_cycles(&rig, 3);
    asi_image *image = rig.images[0];
    uint8_t bytes[2048] __attribute__((aligned(8)));
    for (int64_t at = 0; at < 4 * TERM; at += 1024)
    {
        const int32_t length = put_frame(bytes, at, 1024 - 32);
        ((asi_frame_header *)(void *)bytes)->term_id = asi_wrap_add(INT32_MAX, (int32_t)(at / TERM));
        peer_send(&rig, bytes, length);
        rig_cycles(&rig, 2);
        CHECK_I64(image->rebuild_position, at + 1024);
    }
    int32_t last_term = 0;
    while (peer_receive(&rig, ASI_FRAME_STATUS) > 0)
    {
        last_term = got_status(&rig)->consumption_term_id;
    }
    CHECK(INT32_MIN + 2 == last_term || INT32_MIN + 3 == last_term);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_INVALID_PACKETS), 0);
    rig_close(&rig);
}

/* Spec: 04 §3.2 - data on the odd address, control to the even one; §8.4 - a SETUP that may go further than we can answer. */
static void multicast_control_goes_to_the_even_address(void)
{
    rx_rig rig;
    const rig_options options = { .channel = "aeron:udp?endpoint=224.20.30.39:24000|interface=127.0.0.1" };
    rig_open(&rig, &options);
    const asi_udp_params params = { .bind = fake_address("0.0.0.0", 24000), .group = fake_address("224.20.30.40", 24000) };
    asi_udp_socket *control;
    CHECK_I64(rig.ops.open(rig.ops.context, &params, &control), AS_OK);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_receive_at(&rig, control, -1), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, ASI_STATUS_FLAG_SEND_SETUP);
    asi_setup_frame setup = setup_frame();
    setup.ttl = 4;
    setup.prefix.flags = ASI_SETUP_FLAG_GROUP;
    peer_send(&rig, &setup, sizeof(setup));
    rig_cycles(&rig, 3);
    CHECK_I64(rig.create.flags, ASI_SETUP_FLAG_GROUP);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_POSSIBLE_TTL_ASYMMETRY), 1);
    CHECK_I64(peer_receive_at(&rig, control, -1), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, 0);
    CHECK_I64(peer_receive(&rig, -1), 0);
    rig.destinations[0].ttl = 4; /* as the settings' default would be: what counts is how far the socket really reaches */
    setup.session_id = SESSION + 1;
    peer_send(&rig, &setup, sizeof(setup));
    rig_cycles(&rig, 3);
    CHECK_I64(rig.image_count, 2);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_POSSIBLE_TTL_ASYMMETRY), 1);
    rig.ops.close(rig.ops.context, control);
    rig_close(&rig);
}

/* A session that was asked for through a destination that goes is asked for through the next one its data comes in by. */
static void a_destination_takes_its_questions_with_it(void)
{
    rx_rig rig;
    const rig_options options = { .second = "aeron:udp?endpoint=127.0.0.1:24001" };
    rig_open(&rig, &options);
    const asi_address second = fake_address("127.0.0.1", 24001);
    uint8_t bytes[512] __attribute__((aligned(8)));
    const int32_t length = put_frame(bytes, 0, 96);
    peer_send_to(&rig, rig.peer, bytes, length, &second);
    rig_cycles(&rig, 1);
    CHECK_I64(peer_count(&rig, ASI_FRAME_STATUS), 1);
    rig_send_mail(&rig,
        (asi_receiver_mail){ .kind = ASI_RECEIVER_REMOVE_DESTINATION, .destination = &rig.destinations[1] });
    rig_cycles(&rig, 1);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 1);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_STATUS), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, ASI_STATUS_FLAG_SEND_SETUP);
    rig_close(&rig);
}

/* Endpoint away with everything that hangs on it. */
static void endpoints_are_given_back(void)
{
    rx_rig rig;
    const rig_options options = { .channel = "aeron:udp?endpoint=127.0.0.1:24000|control=127.0.0.1:24100" };
    rig_open(&rig, &options);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 1);
    CHECK(rig.receiver.pending_count >= 2);
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_REMOVE_ENDPOINT });
    rig_cycles(&rig, 1);
    CHECK(rig.endpoint.is_released && rig.destinations[0].is_released);
    CHECK_I64(rig.receiver.pending_count, 0);
    CHECK_I64(rig.receiver.endpoint_count, 0);
    CHECK_I64(rig.endpoint.stream_count, 0);
    rig_close(&rig);
}

/* Interest goes while there is an image: its data is ignored from then on. */
static void images_nobody_wants_get_no_data(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_REMOVE_STREAM, .stream_id = STREAM });
    rig_cycles(&rig, 1);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 1);
    CHECK_I64(image->hwm, 0);
    CHECK_I64(peer_receive(&rig, -1), 0);
    rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_count(&rig, ASI_FRAME_STATUS), 1); /* it still owes status messages until it is removed */
    rig_send_mail(&rig, (asi_receiver_mail){ .kind = ASI_RECEIVER_REMOVE_IMAGE, .image = image });
    rig_cycles(&rig, 1);
    CHECK(image->is_released);
    CHECK_I64(rig.receiver.image_count, 0);
    rig_close(&rig);
}

/* A full conductor's box loses the request only; the next SETUP asks again. */
static void a_full_conductor_box_loses_nothing_for_good(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    const asi_conductor_mail filler = { .kind = ASI_CONDUCTOR_ERROR };
    while (asi_mailbox_put(&rig.to_conductor, &filler))
    {
    }
    peer_setup(&rig);
    asi_receiver_do_work(&rig.receiver);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_CONDUCTOR_MAIL_FAILURES), 1);
    rig_drain_mail(&rig);
    CHECK_I64(rig.create_count, 0);
    rig_join(&rig);
    rig_close(&rig);
}

/* Sends that fail or don't fit are counted and not fatal. */
static void short_sends_are_counted(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    rig_join(&rig);
    rig.net.is_full = true;
    rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_SHORT_SENDS), 1);
    rig.net.is_full = false;
    rig.net.fail_with = EPERM;
    rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
    rig.net.fail_with = 0;
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_SHORT_SENDS), 2);
    CHECK_I64(rig.error_count, 1);
    rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_count(&rig, ASI_FRAME_STATUS), 1);
    rig_close(&rig);
}

/* Whole terms, several laps: slots are zeroed in time and every byte is right where a reader would look. */
static void laps_of_the_log(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    int64_t at = 0;
    int32_t payload = 96;
    while (at < 10 * (int64_t)TERM)
    {
        const int64_t left = TERM - at % TERM;
        const int32_t fits = left - 32 < payload ? (int32_t)left - 32 : payload;
        peer_data(&rig, at, fits);
        rig_cycles(&rig, 2);
        CHECK(log_has(image, at, fits));
        at += asi_frame_occupancy(32 + fits);
        CHECK_I64(image->rebuild_position, at);
        payload = 32 + (payload * 7 + 96) % 1312;
    }
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_FLOW_CONTROL_OVER_RUNS), 0);
    rig_close(&rig);
}

static bool is_zero(const asi_image *image, int64_t position, int64_t length)
{
    const uint8_t *slot = image->log.terms[position / TERM % ASI_LOG_PARTITION_COUNT] + position % TERM;
    for (int64_t i = 0; i < length; i++)
    {
        if (0 != slot[i])
        {
            return false;
        }
    }
    return true;
}

/* Datagrams of a window in any order, some of them twice, over several laps: what is there reads as it was sent, and what is not
 * is zero, though the lap before left its bytes everywhere. */
static void laps_out_of_order(void)
{
    enum { COUNT = 24, PAYLOAD = 640 - 32, STEP = 640 };
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    asi_rand rand = test_rand();
    for (int64_t base = 0; base < 8 * (int64_t)TERM;)
    {
        const int64_t left = (TERM - base % TERM) / STEP;
        const int32_t count = left < COUNT ? (int32_t)left : COUNT;
        bool is_there[COUNT + 1] = { false };
        for (int32_t missing = count; missing > 0;)
        {
            const int32_t at = (int32_t)test_rand_below(&rand, count);
            missing -= is_there[at] ? 0 : 1;
            is_there[at] = true;
            peer_data(&rig, base + (int64_t)at * STEP, PAYLOAD);
            asi_receiver_do_work(&rig.receiver);
            for (int32_t i = 0; i <= count && base + (int64_t)i * STEP <= image->hwm; i++)
            {
                const int64_t position = base + (int64_t)i * STEP;
                const int64_t seen = image->hwm - position < STEP ? AS_FRAME_ALIGNMENT : STEP;
                CHECK(is_there[i] ? log_has(image, position, PAYLOAD) : is_zero(image, position, seen));
            }
        }
        base += (int64_t)count * STEP;
        if (TERM - base % TERM < STEP)
        {
            uint8_t padding[AS_FRAME_HEADER_LENGTH] __attribute__((aligned(8)));
            put_frame(padding, base, 0);
            ((asi_frame_header *)(void *)padding)->frame_length = (int32_t)(TERM - base % TERM);
            ((asi_frame_header *)(void *)padding)->type = ASI_FRAME_PAD;
            peer_send(&rig, padding, sizeof(padding));
            base += TERM - base % TERM;
        }
        rig_cycles(&rig, 2);
        CHECK_I64(image->rebuild_position, base);
        CHECK(is_zero(image, base, AS_FRAME_ALIGNMENT));
    }
    rig_close(&rig);
}

/* A datagram whose first frame is known is dropped whole; rcv-hwm rises by what it brought, and what is there now must be zero
 * and not what the lap before left. One whose frames are no frames raises nothing. */
static void known_first_frame(void)
{
    enum { PAYLOAD = 640 - 32, STEP = 640 };
    rx_rig rig;
    rig_open(&rig, &plain);
    asi_image *image = rig_join(&rig);
    int64_t at = 0;
    while (at < 4 * (int64_t)TERM)
    {
        const int64_t left = TERM - at % TERM;
        const int32_t payload = (int32_t)(left < STEP ? left : STEP) - AS_FRAME_HEADER_LENGTH;
        peer_data(&rig, at, payload);
        rig_cycles(&rig, 2);
        at += asi_frame_occupancy(AS_FRAME_HEADER_LENGTH + payload);
    }
    uint8_t bytes[2 * STEP + AS_FRAME_ALIGNMENT] __attribute__((aligned(8))) = { 0 };
    put_frame(bytes, at, PAYLOAD);
    peer_data(&rig, at, PAYLOAD);
    peer_send(&rig, bytes, STEP + AS_FRAME_ALIGNMENT);
    rig_cycles(&rig, 2);
    CHECK_I64(image->hwm, at + STEP);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_INVALID_PACKETS), 1);
    put_frame(bytes + STEP, at + STEP, PAYLOAD);
    peer_send(&rig, bytes, 2 * STEP);
    rig_cycles(&rig, 2);
    CHECK_I64(image->hwm, at + 2 * STEP);
    CHECK_I64(image->rebuild_position, at + STEP);
    CHECK(is_zero(image, at + STEP, STEP + AS_FRAME_ALIGNMENT));
    peer_send(&rig, bytes + STEP, STEP);
    rig_cycles(&rig, 2);
    CHECK_I64(image->rebuild_position, at + 2 * STEP);
    CHECK(log_has(image, at + STEP, PAYLOAD));
    rig_close(&rig);
}

int main(void)
{
    RUN(s37_data_elicits_one_setup_a_second);
    RUN(s38_end_of_stream_of_unknown_session_elicits_nothing);
    RUN(s39_setup_makes_an_image_and_a_status_message_each_200_ms);
    RUN(s40_no_image_then_a_later_setup_is_tried_again);
    RUN(s41_the_first_gap_is_asked_for_until_it_is_filled);
    RUN(s42_a_heartbeat_tells_of_a_lost_tail);
    RUN(s43_a_resend_with_more_than_was_missing);
    RUN(s44_below_and_beyond_the_window);
    RUN(s45_consumption_of_more_than_a_quarter_window_is_told_at_once);
    RUN(s46_the_slowest_subscriber_decides);
    RUN(s47_unreliable_gaps_become_padding);
    RUN(s48_windows);
    RUN(s49_removal_cools_down_until_the_conductor_says_so);
    RUN(s50_setups_do_not_keep_an_image_alive);
    RUN(s51_end_of_stream_then_a_new_session_of_the_same_id);
    RUN(s52_end_of_stream_beyond_a_gap);
    RUN(s53_revoke);
    RUN(s54_many_frames_and_padding);
    RUN(s55_group_tags);
    RUN(s56_explicit_control_asks_for_setups_for_ever);
    RUN(s57_other_sessions_elicit_nothing);
    RUN(s58_session_limit);
    RUN(s59_two_destinations);
    RUN(s60_rejection);
    RUN(s61_group_members_wait_before_they_ask);
    RUN(s62_round_trip_times);
    RUN(s63_response_setups);
    RUN(s65_channel_timestamps);
    RUN(s67_term_ids_wrap);
    RUN(multicast_control_goes_to_the_even_address);
    RUN(a_destination_takes_its_questions_with_it);
    RUN(endpoints_are_given_back);
    RUN(images_nobody_wants_get_no_data);
    RUN(a_full_conductor_box_loses_nothing_for_good);
    RUN(short_sends_are_counted);
    RUN(laps_of_the_log);
    RUN(laps_out_of_order);
    RUN(known_first_frame);
    return 0;
}
