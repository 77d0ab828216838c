/* The receiver as a publisher's driver sees it, how images come and go: scenarios 37, 39, 40, 49-53, 56, 58-60 and 63 of Spec:
 * 04 §25. tests/conformance/udp has the others. Method: as test_receiver.c. Spec: 04 §8.2-8.3, §12. */
#include "rig.h"

static const rig_options plain = { 0 };

static void s37_data_elicits_one_setup_a_second(rx_rig *rig)
{
    for (int i = 0; i < 5; i++)
    {
        peer_data(rig, 0, 100);
    }
    rig_cycles(rig, 3);
    CHECK_I64(peer_receive(rig, -1), 36);
    CHECK_I64(got_status(rig)->prefix.flags, 0x80);
    CHECK_I64(got_status(rig)->prefix.frame_length, 36);
    CHECK_I64(got_status(rig)->session_id, SESSION);
    CHECK_I64(got_status(rig)->stream_id, STREAM);
    CHECK_I64(got_status(rig)->receiver_window, 0);
    CHECK_I64(got_status(rig)->receiver_id, RIG_RECEIVER_ID);
    CHECK(asi_address_equal(&rig->got.source, &rig->data_address));
    CHECK_I64(peer_receive(rig, -1), 0);
    rig_pass(rig, 900 * RIG_MS, 100 * RIG_MS);
    peer_data(rig, 0, 100);
    rig_cycles(rig, 2);
    CHECK_I64(peer_receive(rig, -1), 0);
    rig_pass(rig, 200 * RIG_MS, 100 * RIG_MS);
    peer_data(rig, 0, 100);
    rig_cycles(rig, 2);
    CHECK_I64(peer_count(rig, -1), 1);
    CHECK_I64(rig->image_count, 0);
}

static void s39_setup_makes_an_image_and_a_status_message_each_200_ms(rx_rig *rig)
{
    asi_setup_frame setup = setup_frame();
    setup.active_term_id = INITIAL_TERM + 2;
    setup.term_offset = 4096;
    peer_send(rig, &setup, sizeof(setup));
    rig_cycles(rig, 2);
    CHECK_I64(rig->create_count, 1);
    CHECK_I64(rig->create.mtu_length, MTU);
    CHECK_I64(rig->create.endpoint_id, 5);
    CHECK_I64(rig->create.destination_id, 100);
    CHECK_I64(peer_receive(rig, -1), 36);
    CHECK_I64(got_status(rig)->prefix.flags, 0);
    CHECK_I64(got_status(rig)->consumption_term_id, INITIAL_TERM + 2);
    CHECK_I64(got_status(rig)->consumption_term_offset, 4096);
    CHECK_I64(got_status(rig)->receiver_window, TERM / 2);
    rig_pass(rig, 190 * RIG_MS, 10 * RIG_MS);
    CHECK_I64(peer_receive(rig, -1), 0);
    rig_pass(rig, 20 * RIG_MS, 10 * RIG_MS);
    CHECK_I64(peer_receive(rig, -1), 36);
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_STATUS_MESSAGES_SENT), 2);
    CHECK_I64(rig->images[0]->log.metadata->active_transport_count, 1);
}

static void s40_no_image_then_a_later_setup_is_tried_again(void)
{
    rx_rig rig;
    const rig_options options = { .is_manual_images = true };
    rig_open(&rig, &options);
    peer_setup(&rig);
    peer_setup(&rig);
    rig_cycles(&rig, 2);
    CHECK_I64(rig.create_count, 1); /* the second arrived while the first was pending */
    rig_send_command(&rig, (asi_receiver_command){ .kind = ASI_RECEIVER_CLEAR_INIT, .stream_id = STREAM, .session_id = SESSION });
    rig_cycles(&rig, 1);
    peer_setup(&rig);
    rig_cycles(&rig, 2);
    CHECK_I64(rig.create_count, 2);
    rig_close(&rig);
}

/* The conductor decides on liveness; here is what follows: EOS SMs, removal, cool-down, and what ends it. */
static void s49_removal_cools_down_until_the_conductor_says_so(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    peer_be_heard(rig);
    asi_store_release_bool(&image->is_sending_eos_sm, true);
    rig_pass(rig, 1020 * RIG_MS, 20 * RIG_MS);
    int32_t count = 0;
    while (peer_receive(rig, ASI_FRAME_STATUS) > 0)
    {
        CHECK_I64(got_status(rig)->prefix.flags, ASI_STATUS_FLAG_EOS);
        count++;
    }
    CHECK_I64(count, 4); /* each 200 ms; the clock steps by 20 and the rule is "later than" */
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_REMOVE_IMAGE, .image = image });
    rig_cycles(rig, 1);
    CHECK(image->is_released);
    peer_data(rig, 0, 96);
    peer_setup(rig);
    rig_cycles(rig, 3);
    CHECK_I64(peer_receive(rig, -1), 0);
    CHECK_I64(rig->create_count, 1);
    rig_send_command(rig,
        (asi_receiver_command){ .kind = ASI_RECEIVER_CLEAR_COOL_DOWN, .stream_id = STREAM, .session_id = SESSION });
    rig_cycles(rig, 1);
    peer_data(rig, 0, 96);
    rig_cycles(rig, 2);
    CHECK_I64(peer_receive(rig, -1), 36);
    CHECK_I64(got_status(rig)->prefix.flags, ASI_STATUS_FLAG_SEND_SETUP);
}

static void s50_setups_do_not_keep_an_image_alive(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    const int64_t last_packet_ns = image->last_packet_ns;
    rig_pass(rig, RIG_SECOND, 100 * RIG_MS);
    peer_setup(rig);
    rig_cycles(rig, 2);
    CHECK_I64(image->last_packet_ns, last_packet_ns);
    CHECK_I64(image->connections[0].last_activity_ns > last_packet_ns, 1);
    CHECK_I64(rig->create_count, 1);
    peer_data(rig, 0, 96);
    rig_cycles(rig, 2);
    CHECK(image->last_packet_ns > last_packet_ns);
}

static void s51_end_of_stream_then_a_new_session_of_the_same_id(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    peer_data(rig, 0, 96);
    peer_heartbeat(rig, 128, 0xE0);
    rig_cycles(rig, 3);
    CHECK(image->is_end_of_stream && !image->is_revoked);
    CHECK_I64(image->log.metadata->end_of_stream_position, 128);
    CHECK_I64(image->rebuild_position, 128);
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_REMOVE_IMAGE, .image = image });
    rig_cycles(rig, 1);
    peer_setup(rig); /* Spec: 04 §8.9.2 - no cool-down after an end of stream */
    rig_cycles(rig, 2);
    CHECK_I64(rig->create_count, 2);
}

static void s52_end_of_stream_beyond_a_gap(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    peer_data(rig, 0, 96);
    peer_heartbeat(rig, 512, 0xE0);
    rig_cycles(rig, 4);
    CHECK(image->is_end_of_stream);
    CHECK(image->rebuild_position < image->hwm);
    CHECK_I64(peer_receive(rig, ASI_FRAME_NAK), 28);
    peer_data(rig, 128, 512 - 128 - 32);
    rig_cycles(rig, 2);
    CHECK_I64(image->rebuild_position, 512);
    CHECK_I64(image->log.metadata->end_of_stream_position, 512);
}

static void s53_revoke(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    peer_heartbeat(rig, 4096, 0xF0);
    rig_cycles(rig, 1);
    CHECK(image->is_end_of_stream && image->is_revoked);
    CHECK_I64(image->log.metadata->is_publication_revoked, 1);
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_PUBLICATION_IMAGES_REVOKED), 1);
    rig_pass(rig, 1000 * RIG_US, 10 * RIG_US);
    CHECK_I64(peer_receive(rig, ASI_FRAME_NAK), 0); /* the receiver sends none whatever the conductor finds */
    peer_heartbeat(rig, 4096, 0xF0);
    rig_cycles(rig, 2);
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_PUBLICATION_IMAGES_REVOKED), 1);
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
    CHECK_I64(peer_count(&rig, -1), 0); /* no subscription */
    rig_send_command(&rig, (asi_receiver_command){ .kind = ASI_RECEIVER_ADD_STREAM, .stream_id = STREAM });
    rig_pass(&rig, 3300 * RIG_MS, 100 * RIG_MS);
    CHECK_I64(peer_count(&rig, -1), 3);
    CHECK_I64(rig.resolve_count > 0, 1); /* silent for more than 5 s */
    /* A session of its own asks for that session, too. */
    rig_send_command(&rig, (asi_receiver_command){ .kind = ASI_RECEIVER_ADD_SESSION, .stream_id = 2002, .session_id = 5 });
    rig_cycles(&rig, 1);
    CHECK_I64(peer_receive(&rig, -1), 36);
    CHECK_I64(got_status(&rig)->session_id, 5);
    CHECK_I64(got_status(&rig)->stream_id, 2002);
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
    asi_rx_image *image = rig_join(&rig);
    const asi_udp_params params = { .bind = fake_address("127.0.0.1", 24101) };
    const asi_address second = fake_address("127.0.0.1", 24001);
    asi_udp_socket *peer2;
    CHECK_I64(rig.ops.open(rig.ops.context, &params, &peer2), AS_OK);
    const asi_setup_frame setup = setup_frame();
    peer_send_to(&rig, peer2, &setup, sizeof(setup), &second);
    rig_cycles(&rig, 1);
    CHECK_I64(rig.create_count, 1);
    CHECK_I64(image->connection_count, 2);
    CHECK_I64(image->log.metadata->active_transport_count, 1); /* its sender has not begun to send */
    rig_pass(&rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_count(&rig, ASI_FRAME_STATUS), 1);
    CHECK_I64(peer_receive_at(&rig, peer2, ASI_FRAME_STATUS), 36);
    CHECK(asi_address_equal(&rig.got.source, &second));
    uint8_t bytes[AS_FRAME_HEADER_LENGTH] __attribute__((aligned(8)));
    put_frame(bytes, 0, 0);
    ((asi_frame_header *)(void *)bytes)->frame_length = 0;
    peer_send_to(&rig, peer2, bytes, sizeof(bytes), &second);
    rig_cycles(&rig, 1);
    CHECK_I64(image->log.metadata->active_transport_count, 2);
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
    put_frame(bytes, 96, 0);
    ((asi_frame_header *)(void *)bytes)->frame_length = 0;
    ((asi_frame_header *)(void *)bytes)->flags = 0xE0;
    peer_send_to(&rig, peer2, bytes, sizeof(bytes), &second);
    rig_cycles(&rig, 1);
    CHECK(image->is_end_of_stream);
    CHECK_I64(image->log.metadata->end_of_stream_position, 128);
    /* A destination goes, its connection with it. */
    rig_send_command(&rig,
        (asi_receiver_command){ .kind = ASI_RECEIVER_REMOVE_DESTINATION, .destination = &rig.destinations[1] });
    rig_cycles(&rig, 1);
    CHECK(rig.destinations[1].is_released);
    CHECK_I64(image->connection_count, 1);
    CHECK_I64(image->log.metadata->active_transport_count, 1);
    CHECK_I64(rig.endpoint.destination_count, 1);
    rig.ops.close(rig.ops.context, peer2);
    rig_close(&rig);
}

static void s60_rejection(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    snprintf(image->rejection_reason, sizeof(image->rejection_reason), "not wanted");
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_REJECT_IMAGE, .image = image });
    rig_cycles(rig, 1);
    peer_data(rig, 0, 96);
    rig_cycles(rig, 2);
    CHECK_I64(image->hwm, 0);
    CHECK_I64(peer_receive(rig, -1), 0); /* the first waits for the running deadline */
    rig_pass(rig, 420 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_receive(rig, -1), 40 + 10);
    const asi_error_frame *error = (const asi_error_frame *)(void *)rig->got.bytes;
    CHECK_I64(error->prefix.type, ASI_FRAME_ERROR);
    CHECK_I64(error->prefix.frame_length, 50);
    CHECK_I64(error->prefix.flags, 0);
    CHECK_I64(error->session_id, SESSION);
    CHECK_I64(error->stream_id, STREAM);
    CHECK_I64(error->receiver_id, RIG_RECEIVER_ID);
    CHECK_I64(error->group_tag, -1);
    CHECK_I64(error->error_code, 13);
    CHECK_I64(error->error_length, 10);
    CHECK(0 == memcmp(rig->got.bytes + 40, "not wanted", 10));
    CHECK_I64(peer_count(rig, ASI_FRAME_ERROR), 1);
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_ERROR_FRAMES_SENT), 2);
    for (int i = 0; i < 100; i++) /* the publisher hears it for as long as the image is there */
    {
        peer_heartbeat(rig, 128, 0xC0);
        rig_pass(rig, 100 * RIG_MS, 20 * RIG_MS);
    }
    CHECK(peer_count(rig, ASI_FRAME_ERROR) >= 45);
}

static void s63_response_setups(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    peer_be_heard(rig);
    asi_store_release_i64(&image->response_session_id, 4242);
    rig_pass(rig, 420 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_receive(rig, -1), 20); /* before the SM */
    const asi_response_setup_frame *frame = (const asi_response_setup_frame *)(void *)rig->got.bytes;
    CHECK_I64(frame->prefix.type, ASI_FRAME_RESPONSE_SETUP);
    CHECK_I64(frame->session_id, SESSION);
    CHECK_I64(frame->stream_id, STREAM);
    CHECK_I64(frame->response_session_id, 4242);
    CHECK_I64(peer_receive(rig, -1), 36);
    CHECK_I64(peer_count(rig, ASI_FRAME_RESPONSE_SETUP), 1);
    asi_store_release_i64(&image->response_session_id, ASI_NO_RESPONSE_SESSION);
    rig_pass(rig, 420 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_count(rig, ASI_FRAME_RESPONSE_SETUP), 0);
}

/* Spec: 11 N7, D11. No time passes but where the test lets it: a publisher that ends its stream at once gets RSP_SETUP, too. */
static void response_setups_go_at_once(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    peer_be_heard(rig);
    asi_store_release_i64(&image->response_session_id, 4242);
    asi_rx_image_schedule_sm_now(image);
    rig_cycle(rig);
    CHECK_I64(peer_receive(rig, -1), 20);
    CHECK_I64(peer_receive(rig, -1), 36);
    asi_rx_image_schedule_sm_now(image); /* an answer is given a status message timeout */
    rig_cycle(rig);
    CHECK_I64(peer_receive(rig, -1), 36);
    CHECK_I64(peer_receive(rig, -1), 0);
    asi_store_release_bool(&image->is_sending_eos_sm, true);
    asi_rx_image_schedule_sm_now(image); /* the publication may be gone after this one */
    rig_cycle(rig);
    CHECK_I64(peer_receive(rig, -1), 20);
    CHECK_I64(peer_receive(rig, -1), 36);
    CHECK_I64(got_status(rig)->prefix.flags, ASI_STATUS_FLAG_EOS);
}

/* Its status messages go long before each is due by time. */
static void response_setups_of_a_busy_stream_are_repeated(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    peer_be_heard(rig);
    asi_store_release_i64(&image->response_session_id, 4242);
    for (int i = 0; i < 50; i++)
    {
        asi_rx_image_schedule_sm_now(image);
        rig_pass(rig, 20 * RIG_MS, 20 * RIG_MS);
    }
    CHECK_I64(peer_count(rig, ASI_FRAME_RESPONSE_SETUP), 5); /* in a second */
}

/* One forged datagram has nothing written to its source at a rate: whatever there would be to say, it is three times what came,
 * headers and all. */
static void a_silent_source_is_sent_little(void)
{
    static const struct
    {
        bool has_heartbeat;
        int32_t ahead;    /* its position; beyond 0 there is something to ask for */
        bool is_rejected;
        int32_t heard;
    } ROWS[] = { { false, 0, false, 40 }, { true, 0, false, 72 }, { true, 4096, false, 72 }, { true, 0, true, 72 } };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        rx_rig rig;
        rig_open(&rig, &plain);
        peer_setup(&rig);
        rig_cycles(&rig, 3);
        if (ROWS[i].has_heartbeat)
        {
            peer_heartbeat(&rig, ROWS[i].ahead, 0xC0);
        }
        rig_cycles(&rig, 2);
        if (ROWS[i].is_rejected)
        {
            snprintf(rig.images[0]->rejection_reason, sizeof(rig.images[0]->rejection_reason), "not wanted");
            rig_send_command(&rig, (asi_receiver_command){ .kind = ASI_RECEIVER_REJECT_IMAGE, .image = rig.images[0] });
        }
        rig_pass(&rig, 10 * RIG_SECOND, RIG_MS);
        int32_t sent = 0;
        int32_t count = 0;
        while (peer_receive(&rig, -1) > 0)
        {
            sent += rig.got.length + ASI_DATAGRAM_HEADERS_LENGTH;
            count++;
        }
        CHECK(count >= 2);
        CHECK(sent <= 3 * (ROWS[i].heard + ASI_DATAGRAM_HEADERS_LENGTH * (ROWS[i].has_heartbeat ? 2 : 1)));
        peer_setup(&rig); /* it is heard of again */
        rig_pass(&rig, 420 * RIG_MS, 20 * RIG_MS);
        CHECK(peer_count(&rig, -1) > 0);
        rig_close(&rig);
    }
}

/* What an idle publisher sends, a heartbeat each 100 ms, has it hear each status message that is due, for as long as it likes, and though
 * it answers no round trip request. */
static void a_publisher_that_only_beats_hears_everything(void)
{
    rx_rig rig;
    int64_t rtt_counter = 0;
    int64_t window_counter = 0;
    const rig_options options = { .channel = "aeron:udp?endpoint=127.0.0.1:24000|gtag=9",
        .congestion = { .kind = ASI_CONGESTION_CUBIC, .is_measuring_rtt = true, .initial_rtt_ns = 100 * RIG_US,
            .rtt_counter = &rtt_counter, .window_counter = &window_counter } };
    rig_open(&rig, &options);
    (void)rig_join(&rig);
    int32_t statuses = 0;
    int32_t requests = 0;
    for (int i = 0; i < 600; i++)
    {
        peer_heartbeat(&rig, 0, 0xC0);
        rig_pass(&rig, 100 * RIG_MS, 10 * RIG_MS);
        while (peer_receive(&rig, -1) > 0)
        {
            statuses += ASI_FRAME_STATUS == got_status(&rig)->prefix.type ? 1 : 0;
            requests += ASI_FRAME_RTTM == got_status(&rig)->prefix.type ? 1 : 0;
        }
    }
    CHECK(requests > 60);
    CHECK(statuses >= 60 * 4); /* the clock steps by 10 ms, and the rule is "later than" */
    rig_close(&rig);
}

/* Status messages are due more often than heartbeats pay for, and all data before the heartbeat's position was lost: NAKs go out all
 * the same, and status messages still. */
static void requests_have_their_share(void)
{
    rx_rig rig;
    rig_open(&rig, &plain);
    rig.receiver.params.status_message_timeout_ns = 5 * RIG_MS;
    (void)rig_join(&rig);
    int32_t naks = 0;
    int32_t statuses = 0;
    for (int i = 0; i < 50; i++)
    {
        peer_heartbeat(&rig, 4096, 0xC0);
        rig_pass(&rig, 100 * RIG_MS, RIG_MS);
        while (peer_receive(&rig, -1) > 0)
        {
            naks += ASI_FRAME_NAK == got_status(&rig)->prefix.type ? 1 : 0;
            statuses += ASI_FRAME_STATUS == got_status(&rig)->prefix.type ? 1 : 0;
        }
    }
    CHECK(naks >= 20);
    CHECK(statuses >= 20);
    rig_close(&rig);
}

static int32_t statuses_of_a_second(rx_rig *rig)
{
    (void)peer_count(rig, -1);
    for (int i = 0; i < 10; i++)
    {
        peer_heartbeat(rig, 0, 0xC0);
        rig_pass(rig, 100 * RIG_MS, 10 * RIG_MS);
    }
    return peer_count(rig, ASI_FRAME_STATUS);
}

/* While the send buffer is full of answers to hosts that may not exist, those that have sent for ten seconds, or 64 KiB, hear
 * theirs. */
static void strangers_wait_for_room(void)
{
    for (int has_sent_much = 0; has_sent_much < 2; has_sent_much++)
    {
        rx_rig rig;
        rig_open(&rig, &plain);
        (void)rig_join(&rig);
        CHECK(statuses_of_a_second(&rig) > 0);
        rig.net.is_busy = true;
        CHECK_I64(statuses_of_a_second(&rig), 0);
        for (int i = 0; i < 900 && has_sent_much; i++)
        {
            peer_heartbeat(&rig, 0, 0xC0);
            rig_cycles(&rig, 1);
        }
        for (int i = 0; i < 8 && !has_sent_much; i++)
        {
            CHECK_I64(statuses_of_a_second(&rig), 0);
        }
        (void)statuses_of_a_second(&rig);
        CHECK(statuses_of_a_second(&rig) > 0);
        rig_close(&rig);
    }
}

int main(void)
{
    RUN_IN_RIG(s37_data_elicits_one_setup_a_second);
    RUN_IN_RIG(s39_setup_makes_an_image_and_a_status_message_each_200_ms);
    RUN(s40_no_image_then_a_later_setup_is_tried_again);
    RUN_IN_RIG(s49_removal_cools_down_until_the_conductor_says_so);
    RUN_IN_RIG(s50_setups_do_not_keep_an_image_alive);
    RUN_IN_RIG(s51_end_of_stream_then_a_new_session_of_the_same_id);
    RUN_IN_RIG(s52_end_of_stream_beyond_a_gap);
    RUN_IN_RIG(s53_revoke);
    RUN(s56_explicit_control_asks_for_setups_for_ever);
    RUN(s58_session_limit);
    RUN(s59_two_destinations);
    RUN_IN_RIG(s60_rejection);
    RUN(a_silent_source_is_sent_little);
    RUN(a_publisher_that_only_beats_hears_everything);
    RUN(requests_have_their_share);
    RUN(strangers_wait_for_room);
    RUN_IN_RIG(s63_response_setups);
    RUN_IN_RIG(response_setups_go_at_once);
    RUN_IN_RIG(response_setups_of_a_busy_stream_are_repeated);
    return 0;
}
