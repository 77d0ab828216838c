/* Scenarios 1-36 of Spec: 04 §25, publisher side: the driver publishes, a raw socket Q plays the subscriber's driver. Each test
 * carries its scenario's number. Method: network_rig.h. */
#include "network_rig.h"

typedef struct stage
{
    test_rig rig;
    peer q;
    rig_publication publication;
} stage;

/* A publication to Q with further channel parameters ("|..." or ""). */
static void open_stage_with(stage *s, const char *params, bool exclusive)
{
    char channel[256];
    rig_open(&s->rig, network_settings);
    peer_open(&s->q);
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:%d|term-length=64k%s", s->q.port, params);
    rig_add_network_publication(&s->rig, channel, exclusive, &s->publication);
    rig_cycles(&s->rig, 3);
}

static void open_stage(stage *s) { open_stage_with(s, "", false); }

static void close_stage(stage *s)
{
    asi_log_close(&s->publication.log);
    peer_close(&s->q);
    rig_close(&s->rig);
}

static bool is_connected(const stage *s) { return 1 == asi_load_acquire_i32(&s->publication.log.metadata->is_connected); }

/* SETUP taken, status message given: heartbeats have begun. */
static void connect_stage(stage *s, int32_t window)
{
    peer_expect(&s->q, ASI_FRAME_SETUP);
    send_status(&s->rig, &s->q, &s->publication, 0, window, 0);
    CHECK(is_connected(s));
    peer_drain(&s->q, ASI_FRAME_DATA);
}

static int64_t offer(stage *s, int64_t length)
{
    const int64_t position = rig_offer(&s->publication, length);
    CHECK(position > 0);
    return position;
}

static void s01_setups_come_every_100_ms(void)
{
    stage s;
    open_stage(&s);
    const asi_setup_frame *setup = peer_expect(&s.q, ASI_FRAME_SETUP);
    CHECK_I64(s.q.length, 40);
    CHECK_I64(setup->prefix.frame_length, 40);
    CHECK_I64(setup->prefix.version, 0);
    CHECK_I64(setup->prefix.flags, 0);
    CHECK_I64(setup->session_id, s.publication.ready.session_id);
    CHECK_I64(setup->stream_id, NETWORK_STREAM);
    CHECK_I64(setup->initial_term_id, s.publication.log.initial_term_id);
    CHECK_I64(setup->active_term_id, s.publication.log.initial_term_id);
    CHECK_I64(setup->term_offset, 0);
    CHECK_I64(setup->term_length, 65536);
    CHECK_I64(setup->mtu_length, 1408);
    CHECK_I64(setup->ttl, 0);
    for (int i = 0; i < 5; i++)
    {
        rig_run(&s.rig, 100);
        peer_expect_none(&s.q);
        rig_run(&s.rig, 1);
        peer_expect(&s.q, ASI_FRAME_SETUP);
        peer_expect_none(&s.q);
    }
    close_stage(&s);
}

static void s02_nothing_is_sent_without_a_receiver(void)
{
    stage s;
    open_stage(&s);
    CHECK_I64(rig_offer(&s.publication, 100), AS_NOT_CONNECTED);
    rig_run(&s.rig, 300);
    while (peer_receive(&s.q))
    {
        CHECK_I64(peer_type(&s.q), ASI_FRAME_SETUP);
    }
    close_stage(&s);
}

static void s03_a_status_message_connects(void)
{
    stage s;
    open_stage(&s);
    peer_expect(&s.q, ASI_FRAME_SETUP);
    send_status(&s.rig, &s.q, &s.publication, 0, 32768, 0);
    CHECK(is_connected(&s));
    const asi_frame_header *heartbeat = peer_expect(&s.q, ASI_FRAME_DATA);
    CHECK_I64(s.q.length, 32);
    CHECK_I64(heartbeat->frame_length, 0);
    CHECK_I64(heartbeat->flags, 0xC0);
    CHECK_I64(heartbeat->term_offset, 0);
    peer_expect_none(&s.q);
    for (int i = 0; i < 3; i++)
    {
        rig_run(&s.rig, 100);
        peer_expect_none(&s.q);
        rig_run(&s.rig, 1);
        peer_expect(&s.q, ASI_FRAME_DATA);
    }
    peer_expect_none(&s.q);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_HEARTBEATS_SENT), 4);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_RECEIVED), 1);
    close_stage(&s);
}

static void s04_two_messages_share_a_datagram(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 32768);
    offer(&s, 100);
    offer(&s, 100);
    rig_cycle(&s.rig);
    const uint8_t *frames = peer_expect(&s.q, ASI_FRAME_DATA);
    CHECK_I64(s.q.length, 320);
    CHECK_I64(asi_get_i32(frames), 132);
    CHECK_I64(asi_get_i32(frames + 160), 132);
    CHECK_I64(asi_get_i32(frames + 160 + 8), 160);
    close_stage(&s);
}

static void s05_data_holds_heartbeats_back(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    for (int i = 0; i < 20; i++)
    {
        offer(&s, 100);
        rig_run(&s.rig, 20);
        peer_expect(&s.q, ASI_FRAME_DATA);
        CHECK_I64(s.q.length, 160);
        peer_expect_none(&s.q);
    }
    rig_run(&s.rig, 81);
    peer_expect_none(&s.q);
    rig_run(&s.rig, 30);
    const asi_frame_header *heartbeat = peer_expect(&s.q, ASI_FRAME_DATA);
    CHECK_I64(s.q.length, 32);
    CHECK_I64(heartbeat->term_offset, 20 * 160);
    close_stage(&s);
}

static void s06_the_window_holds_the_sender(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 1408);
    for (int i = 0; i < 10; i++)
    {
        offer(&s, 500);
    }
    rig_cycles(&s.rig, 20);
    int64_t sent = 0;
    while (peer_receive(&s.q))
    {
        sent += s.q.length;
    }
    CHECK(sent > 0 && sent <= 1408);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_SENDER_FLOW_CONTROL_LIMITS), 1);
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_BPE), 1);
    send_status(&s.rig, &s.q, &s.publication, sent, 1408, 0);
    CHECK(peer_receive(&s.q));
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_SENDER_FLOW_CONTROL_LIMITS), 2);
    close_stage(&s);
}

static void s07_padding_travels_as_a_header(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    int64_t position = 0;
    while (position < 65536 - 1408 - 1000)
    {
        position = offer(&s, 1376);
        rig_cycles(&s.rig, 2);
        send_status(&s.rig, &s.q, &s.publication, position, 65536, 0);
    }
    peer_drain(&s.q, ASI_FRAME_DATA);
    CHECK_I64(rig_offer(&s.publication, 1376 < 65536 - position - 32 ? 1376 : 1300) > 0, true);
    for (int64_t tail = 0; tail <= 0;)
    {
        tail = rig_offer(&s.publication, 1376); /* trips at the end of the term, then goes on in the next */
        if (tail > 0 && tail <= 65536)
        {
            tail = 0;
        }
        rig_cycles(&s.rig, 3);
        send_status(&s.rig, &s.q, &s.publication, 65536 - 1408, 65536, 0);
    }
    bool has_padding = false;
    bool has_next = false;
    while (peer_receive(&s.q))
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)s.q.bytes;
        int64_t at = 0;
        while (at < s.q.length && 0 != frame->frame_length)
        {
            frame = (const asi_frame_header *)(const void *)(s.q.bytes + at);
            if (ASI_FRAME_PAD == frame->type)
            {
                CHECK_I64(s.q.length - at, 32);
                CHECK_I64(frame->frame_length, 65536 - frame->term_offset);
                has_padding = true;
                break;
            }
            if (frame->term_id == asi_wrap_add(s.publication.log.initial_term_id, 1) && 0 == frame->term_offset)
            {
                CHECK(has_padding);
                has_next = true;
            }
            at += asi_frame_occupancy(frame->frame_length);
        }
    }
    CHECK(has_padding && has_next);
    close_stage(&s);
}

/* Ten messages of an MTU each, all received. */
static void send_ten(stage *s)
{
    for (int i = 0; i < 10; i++)
    {
        offer(s, 1376);
    }
    rig_cycles(&s->rig, 5);
    CHECK_I64(peer_drain(&s->q, ASI_FRAME_DATA), 10);
}

static void s08_a_nak_is_answered_once(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    send_ten(&s);
    send_nak(&s.rig, &s.q, &s.publication, 0, 1408, 1408);
    const asi_frame_header *frame = peer_expect(&s.q, ASI_FRAME_DATA);
    CHECK_I64(s.q.length, 1408);
    CHECK_I64(frame->term_offset, 1408);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITS_SENT), 1);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITTED_BYTES), 1408);
    rig_run(&s.rig, 9);
    send_nak(&s.rig, &s.q, &s.publication, 0, 1408, 1408);
    peer_expect_none(&s.q);
    rig_run(&s.rig, 2);
    send_nak(&s.rig, &s.q, &s.publication, 0, 1408, 1408);
    peer_expect(&s.q, ASI_FRAME_DATA);
    peer_expect_none(&s.q);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_NAKS_RECEIVED), 3);
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_NAKS_RECEIVED), 3);
    close_stage(&s);
}

static void s09_a_long_nak_ends_with_the_term(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    send_ten(&s);
    send_nak(&s.rig, &s.q, &s.publication, 0, 0, 500000);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), 10);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITTED_BYTES), 10 * 1408);
    close_stage(&s);
}

static void s10_bad_naks_are_counted(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    send_ten(&s);
    send_nak(&s.rig, &s.q, &s.publication, 0, -32, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 65536, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 0, -1);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 3);
    send_nak(&s.rig, &s.q, &s.publication, 0, 0, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 3);
    send_nak(&s.rig, &s.q, &s.publication, 0, 16, 1408); /* ours: an offset is a multiple of 32 */
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 4);
    peer_expect_none(&s.q);
    close_stage(&s);
}

static void s11_naks_out_of_reach_get_nothing(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    send_ten(&s);
    send_nak(&s.rig, &s.q, &s.publication, 0, 10 * 1408, 1408);
    rig_run(&s.rig, 11);
    send_nak(&s.rig, &s.q, &s.publication, 65536, 0, 1408);
    rig_run(&s.rig, 11);
    send_nak(&s.rig, &s.q, &s.publication, -65536, 0, 1408);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITS_SENT), 0);
    close_stage(&s);
}

static void s12_disjoint_naks_of_unicast_are_both_served(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    send_ten(&s);
    send_nak(&s.rig, &s.q, &s.publication, 0, 0, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 5 * 1408, 1408);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), 2);
    close_stage(&s);
}

static void s13_the_resend_pool_of_groups_is_bounded(void)
{
    stage s;
    char channel[256];
    rig_open(&s.rig, network_settings);
    peer_open(&s.q);
    snprintf(channel, sizeof(channel), "aeron:udp?control=127.0.0.1:%d|control-mode=dynamic|term-length=64k|max-resend=2",
        s.q.port + 1 < 65535 ? s.q.port + 1 : s.q.port - 1);
    rig_add_network_publication(&s.rig, channel, false, &s.publication);
    rig_cycles(&s.rig, 3);
    s.q.driver = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)(s.q.port + 1 < 65535 ? s.q.port + 1 : s.q.port - 1)) };
    send_status(&s.rig, &s.q, &s.publication, 0, 65536, ASI_STATUS_FLAG_SEND_SETUP);
    rig_run(&s.rig, 101);
    const asi_setup_frame *setup = peer_expect(&s.q, ASI_FRAME_SETUP);
    CHECK_I64(setup->prefix.flags, ASI_SETUP_FLAG_GROUP);
    send_status(&s.rig, &s.q, &s.publication, 0, 65536, 0);
    CHECK(is_connected(&s));
    peer_drain(&s.q, ASI_FRAME_DATA);
    send_ten(&s);
    send_nak(&s.rig, &s.q, &s.publication, 0, 0, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 4 * 1408, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 8 * 1408, 1408);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), 2);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMIT_OVERFLOW), 1);
    close_stage(&s);
}

static void s14_status_messages_far_off_are_rejected(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 1408);
    send_status(&s.rig, &s.q, &s.publication, 32768 + 32, 65536, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 1);
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_LIMIT), 1408);
    send_status(&s.rig, &s.q, &s.publication, 32768, 4096, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 1);
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_LIMIT), 32768 + 4096);
    close_stage(&s);
}

static void s15_a_setup_can_be_asked_for(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    offer(&s, 100);
    rig_run(&s.rig, 150);
    peer_drain(&s.q, ASI_FRAME_DATA);
    send_status(&s.rig, &s.q, &s.publication, 0, 0, ASI_STATUS_FLAG_SEND_SETUP);
    const asi_setup_frame *setup = peer_expect(&s.q, ASI_FRAME_SETUP);
    CHECK_I64(setup->term_offset, 160);
    rig_run(&s.rig, 500);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_SETUP), 0);
    close_stage(&s);
}

static void s16_asking_for_setups_connects_nobody(void)
{
    stage s;
    open_stage(&s);
    peer_expect(&s.q, ASI_FRAME_SETUP);
    for (int i = 0; i < 5; i++)
    {
        send_status(&s.rig, &s.q, &s.publication, 0, 0, ASI_STATUS_FLAG_SEND_SETUP);
        rig_run(&s.rig, 101);
    }
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_SETUP), 5);
    CHECK(!is_connected(&s));
    close_stage(&s);
}

static void s17_silence_disconnects(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    rig_run(&s.rig, 4950);
    CHECK(is_connected(&s));
    rig_run(&s.rig, 100);
    CHECK(!is_connected(&s));
    peer_drain(&s.q, ASI_FRAME_DATA);
    rig_run(&s.rig, 101);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), 1);
    close_stage(&s);
}

static void s18_an_eos_status_disconnects_at_once(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    send_status(&s.rig, &s.q, &s.publication, 0, 65536, ASI_STATUS_FLAG_EOS);
    rig_cycles(&s.rig, 2);
    CHECK(!is_connected(&s));
    close_stage(&s);
}

static void remove_publication(stage *s, int64_t correlation_id, uint64_t flags)
{
    const asi_cmd_remove_publication command = { { 1, correlation_id }, 10, flags };
    rig_send(&s->rig, ASI_CMD_REMOVE_PUBLICATION, &command, sizeof(command));
    rig_expect_success(&s->rig, correlation_id);
}

/* Flags of the heartbeats of the last period; 0 without any. */
static uint8_t heartbeat_flags(stage *s)
{
    uint8_t flags = 0;
    while (peer_receive(&s->q))
    {
        flags = ASI_FRAME_DATA == peer_type(&s->q) && 32 == s->q.length ? s->q.bytes[5] : flags;
    }
    return flags;
}

static void s19_a_close_ends_with_the_receivers_eos(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    const int64_t end = offer(&s, 100);
    rig_cycles(&s.rig, 2);
    remove_publication(&s, 20, 0);
    rig_run(&s.rig, 200);
    CHECK_I64(heartbeat_flags(&s), 0xE0);
    send_status(&s.rig, &s.q, &s.publication, end, 65536, ASI_STATUS_FLAG_EOS);
    rig_run(&s.rig, 2100);
    peer_drain(&s.q, ASI_FRAME_DATA);
    rig_run(&s.rig, 500);
    peer_expect_none(&s.q);
    CHECK(asi_counters_find(&s.rig.counters, ASI_COUNTER_TYPE_SENDER_POSITION, NULL, NULL) < 0);
    close_stage(&s);
}

static void s20_without_it_the_publication_lingers(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    remove_publication(&s, 20, 0);
    rig_run(&s.rig, 5000);
    CHECK_I64(heartbeat_flags(&s), 0xE0);
    rig_run(&s.rig, 3000);
    peer_drain(&s.q, ASI_FRAME_DATA);
    rig_run(&s.rig, 300);
    peer_expect_none(&s.q);
    close_stage(&s);
}

static void s21_eos_can_be_switched_off(void)
{
    stage s;
    open_stage_with(&s, "|eos=false", false);
    connect_stage(&s, 65536);
    remove_publication(&s, 20, 0);
    rig_run(&s.rig, 1000);
    CHECK_I64(heartbeat_flags(&s), 0xC0);
    close_stage(&s);
}

static void s22_no_eos_before_everything_is_sent(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 0);
    const int64_t end = offer(&s, 100);
    remove_publication(&s, 20, 0);
    for (int i = 0; i < 15; i++)
    {
        rig_run(&s.rig, 200);
        send_status(&s.rig, &s.q, &s.publication, 0, 0, 0);
        CHECK_I64(heartbeat_flags(&s), 0xC0);
    }
    send_status(&s.rig, &s.q, &s.publication, 0, 65536, 0);
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_POSITION), end);
    rig_run(&s.rig, 1200);
    CHECK_I64(heartbeat_flags(&s), 0xE0);
    close_stage(&s);
}

static void s23_a_revoked_stream_says_so(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    offer(&s, 100);
    remove_publication(&s, 20, ASI_REMOVE_PUBLICATION_REVOKE);
    rig_run(&s.rig, 1100);
    CHECK_I64(heartbeat_flags(&s), 0xF0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_PUBLICATIONS_REVOKED), 1);
    close_stage(&s);
}

static void s24_round_trips_are_answered(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    asi_rttm_frame frame = {
        .prefix = { .frame_length = sizeof(frame), .flags = ASI_RTTM_FLAG_REQUEST, .type = ASI_FRAME_RTTM },
        .session_id = s.publication.ready.session_id,
        .stream_id = NETWORK_STREAM,
        .echo_timestamp_ns = 0x123456789abcdefLL,
        .reception_delta_ns = 77,
        .receiver_id = 4711
    };
    peer_send(&s.q, &frame, sizeof(frame));
    rig_cycles(&s.rig, 2);
    const asi_rttm_frame *reply = peer_expect(&s.q, ASI_FRAME_RTTM);
    CHECK_I64(s.q.length, 40);
    CHECK_I64(reply->prefix.flags, 0);
    CHECK_I64(reply->echo_timestamp_ns, frame.echo_timestamp_ns);
    CHECK_I64(reply->reception_delta_ns, 0);
    CHECK_I64(reply->receiver_id, 4711);
    frame.prefix.flags = 0;
    peer_send(&s.q, &frame, sizeof(frame));
    rig_cycles(&s.rig, 2);
    peer_expect_none(&s.q);
    close_stage(&s);
}

static void s25_errors_of_known_receivers_reach_the_client(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    static const char TEXT[] = "no thanks, no more";
    uint8_t datagram[sizeof(asi_error_frame) + sizeof(TEXT)];
    const asi_error_frame frame = {
        .prefix = { .frame_length = (int32_t)(sizeof(frame) + sizeof(TEXT) - 1), .type = ASI_FRAME_ERROR },
        .session_id = s.publication.ready.session_id,
        .stream_id = NETWORK_STREAM,
        .receiver_id = 4711,
        .group_tag = 5, /* without the flag it says nothing */
        .error_code = ASI_ERR_IMAGE_REJECTED,
        .error_length = sizeof(TEXT) - 1
    };
    memcpy(datagram, &frame, sizeof(frame));
    memcpy(datagram + sizeof(frame), TEXT, sizeof(TEXT));
    for (int i = 0; i < 2; i++)
    {
        peer_send(&s.q, datagram, sizeof(frame) + sizeof(TEXT) - 1);
        rig_cycles(&s.rig, 3);
    }
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_ERROR_FRAMES_RECEIVED), 2);
    asi_rsp_publication_error error;
    const uint8_t *message = rig_expect(&s.rig, ASI_RSP_PUBLICATION_ERROR);
    memcpy(&error, message, sizeof(error));
    CHECK_I64(error.registration_id, 10);
    CHECK_I64(error.destination_registration_id, -1);
    CHECK_I64(error.receiver_id, 4711);
    CHECK_I64(error.group_tag, -1);
    CHECK_I64(error.address_type, 1);
    CHECK_I64(error.source_port, s.q.port);
    CHECK_I64(error.source_address[0], 127);
    CHECK_I64(error.error_code, 13);
    CHECK_I64(error.message_length, sizeof(TEXT) - 1);
    CHECK(0 == memcmp(message + sizeof(error), TEXT, sizeof(TEXT) - 1));
    rig_expect_none(&s.rig);
    rig_cycles(&s.rig, 2);
    CHECK(!is_connected(&s));
    close_stage(&s);
}

static void s26_what_is_no_frame_is_counted(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    const uint8_t rows[][8] = { { 8, 0, 0, 0, 0, 0, 3 }, { 8, 0, 0, 0, 1, 0, 3, 0 }, { 8, 0, 0, 0, 0, 0, 12, 0 } };
    peer_send(&s.q, rows[0], 7);
    peer_send(&s.q, rows[1], 8);
    rig_cycles(&s.rig, 4);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 2);
    peer_send(&s.q, rows[2], 8);
    rig_cycles(&s.rig, 4);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 2);
    peer_expect_none(&s.q);
    close_stage(&s);
}

static void s27_short_status_messages_are_counted(void)
{
    stage s;
    open_stage(&s);
    peer_expect(&s.q, ASI_FRAME_SETUP);
    asi_status_frame frame = make_status(&s.publication, 0, 65536, 0);
    peer_send(&s.q, &frame, 35);
    frame.prefix.frame_length = ASI_STATUS_TAGGED_LENGTH;
    peer_send(&s.q, &frame, 36);
    rig_cycles(&s.rig, 4);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 2);
    CHECK(!is_connected(&s));
    close_stage(&s);
}

/* -- multi-destination cast ---------------------------------------------------------------------------------------------- */

typedef struct cast
{
    test_rig rig;
    peer q1;
    peer q2;
    rig_publication publication;
} cast;

static void set_driver(peer *q, int port)
{
    q->driver = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)port) };
}

static int unused_port(void)
{
    peer p;
    peer_open(&p);
    peer_close(&p);
    return p.port;
}

static void open_cast(cast *c, const char *params)
{
    char channel[256];
    const int port = unused_port();
    rig_open(&c->rig, network_settings);
    peer_open(&c->q1);
    peer_open(&c->q2);
    snprintf(channel, sizeof(channel), "aeron:udp?control=127.0.0.1:%d|term-length=64k|%s", port, params);
    rig_add_network_publication(&c->rig, channel, false, &c->publication);
    rig_cycles(&c->rig, 3);
    set_driver(&c->q1, port);
    set_driver(&c->q2, port);
}

static void close_cast(cast *c)
{
    asi_log_close(&c->publication.log);
    peer_close(&c->q1);
    peer_close(&c->q2);
    rig_close(&c->rig);
}

/* Status message with a receiver id, and a group tag unless it is 0. */
static void cast_status(cast *c, const peer *q, int64_t receiver_id, int64_t tag, int64_t position, int32_t window, uint8_t flags)
{
    asi_status_frame frame = make_status(&c->publication, position, window, flags);
    frame.receiver_id = receiver_id;
    frame.group_tag = tag;
    frame.prefix.frame_length = 0 == tag ? ASI_STATUS_LENGTH : ASI_STATUS_TAGGED_LENGTH;
    peer_send(q, &frame, (size_t)frame.prefix.frame_length);
    rig_cycles(&c->rig, 3);
}

static void wildcard_request(cast *c, const peer *q, int64_t receiver_id)
{
    const asi_status_frame frame = {
        .prefix = { .frame_length = ASI_STATUS_LENGTH, .flags = ASI_STATUS_FLAG_SEND_SETUP, .type = ASI_FRAME_STATUS },
        .receiver_id = receiver_id
    };
    peer_send(q, &frame, ASI_STATUS_LENGTH);
    rig_cycles(&c->rig, 2);
}

static void s28_dynamic_destinations_come_and_go(void)
{
    cast c;
    open_cast(&c, "control-mode=dynamic");
    wildcard_request(&c, &c.q1, 1);
    wildcard_request(&c, &c.q2, 2);
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 2);
    rig_run(&c.rig, 101);
    CHECK_I64(((const asi_setup_frame *)peer_expect(&c.q1, ASI_FRAME_SETUP))->prefix.flags, ASI_SETUP_FLAG_GROUP);
    CHECK_I64(((const asi_setup_frame *)peer_expect(&c.q2, ASI_FRAME_SETUP))->prefix.flags, ASI_SETUP_FLAG_GROUP);
    for (int i = 0; i < 6; i++)
    {
        rig_run(&c.rig, 900);
        wildcard_request(&c, &c.q1, 1);
    }
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 1);
    close_cast(&c);
}

static void s29_the_host_is_no_part_of_a_destination(void)
{
    cast c;
    peer elsewhere;
    open_cast(&c, "control-mode=dynamic");
    wildcard_request(&c, &c.q1, 1);
    peer_open_at(&elsewhere, "127.0.0.2", c.q1.port);
    elsewhere.driver = c.q1.driver;
    wildcard_request(&c, &elsewhere, 1);
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 1);
    peer_close(&elsewhere);
    close_cast(&c);
}

static void add_destination(cast *c, int64_t correlation_id, int port)
{
    uint8_t message[128];
    char channel[64];
    const int length = snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:%d", port);
    const asi_cmd_destination command = { { 1, correlation_id }, 10, length };
    memcpy(message, &command, sizeof(command));
    memcpy(message + sizeof(command), channel, (size_t)length);
    rig_send(&c->rig, ASI_CMD_ADD_DESTINATION, message, (int64_t)sizeof(command) + length);
    rig_expect_success(&c->rig, correlation_id);
    rig_cycles(&c->rig, 2);
}

static void s30_manual_destinations_are_the_listed_ones(void)
{
    cast c;
    peer q3;
    open_cast(&c, "control-mode=manual");
    add_destination(&c, 21, c.q1.port);
    add_destination(&c, 22, c.q2.port);
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 2);
    peer_open(&q3);
    q3.driver = c.q1.driver;
    wildcard_request(&c, &q3, 3);
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 2);
    cast_status(&c, &c.q1, 1, 0, 0, 65536, 0);
    peer_drain(&c.q1, 0);
    peer_drain(&c.q2, 0);
    CHECK(rig_offer(&c.publication, 100) > 0);
    rig_cycles(&c.rig, 2);
    peer_expect(&c.q1, ASI_FRAME_DATA);
    CHECK_I64(c.q1.length, 160);
    peer_expect(&c.q2, ASI_FRAME_DATA);
    CHECK_I64(c.q2.length, 160);
    peer_expect_none(&q3);
    const asi_cmd_destination_by_id command = { { 1, 23 }, 10, 22 };
    rig_send(&c.rig, ASI_CMD_REMOVE_DESTINATION_BY_ID, &command, sizeof(command));
    rig_expect_success(&c.rig, 23);
    rig_cycles(&c.rig, 2);
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_MDC_DESTINATIONS), 1);
    peer_close(&q3);
    close_cast(&c);
}

static void s31_min_waits_for_the_slowest(void)
{
    cast c;
    open_cast(&c, "control-mode=dynamic|fc=min");
    cast_status(&c, &c.q1, 1, 0, 0, 16384, 0);
    cast_status(&c, &c.q2, 2, 0, 0, 16384, 0);
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_FLOW_CONTROL_RECEIVERS), 2);
    cast_status(&c, &c.q1, 1, 0, 4096, 16384, 0);
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_SENDER_LIMIT), 16384);
    for (int i = 0; i < 6; i++)
    {
        rig_run(&c.rig, 900);
        cast_status(&c, &c.q1, 1, 0, 4096, 16384, 0);
    }
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_FLOW_CONTROL_RECEIVERS), 1);
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_SENDER_LIMIT), 4096 + 16384);
    close_cast(&c);
}

static bool is_cast_connected(const cast *c) { return 1 == asi_load_acquire_i32(&c->publication.log.metadata->is_connected); }

static void s32_a_group_may_have_a_least_size(void)
{
    cast c;
    open_cast(&c, "control-mode=dynamic|fc=min,g:/2");
    cast_status(&c, &c.q1, 1, 0, 0, 16384, 0);
    CHECK(!is_cast_connected(&c));
    cast_status(&c, &c.q2, 2, 0, 0, 16384, 0);
    CHECK(is_cast_connected(&c));
    close_cast(&c);
}

static void s33_tagged_counts_its_own(void)
{
    cast c;
    open_cast(&c, "control-mode=dynamic|fc=tagged,g:5/1");
    cast_status(&c, &c.q1, 1, 0, 0, 16384, 0);
    CHECK(!is_cast_connected(&c));
    cast_status(&c, &c.q2, 2, 6, 0, 16384, 0);
    CHECK(!is_cast_connected(&c));
    cast_status(&c, &c.q1, 1, 5, 0, 16384, 0);
    CHECK(is_cast_connected(&c));
    CHECK_I64(rig_counter_of_type(&c.rig, ASI_COUNTER_TYPE_FLOW_CONTROL_RECEIVERS), 1);
    close_cast(&c);
}

static void s34_multicast_data_goes_to_odd_addresses(void)
{
    test_rig rig;
    rig_open(&rig, network_settings);
    rig_send_add(&rig, ASI_CMD_ADD_PUBLICATION, 1, 10, NETWORK_STREAM,
        "aeron:udp?endpoint=224.20.30.38:24326|interface=127.0.0.1");
    rig_expect_error(&rig, 10, ASI_ERR_GENERIC);
    CHECK(NULL != strstr((const char *)rig.last.bytes + sizeof(asi_rsp_error), "Multicast data address must be odd"));
    rig_close(&rig);
}

static void s35_a_start_position_shows_in_setup(void)
{
    stage s;
    open_stage_with(&s, "|init-term-id=7|term-id=8|term-offset=128", true);
    const asi_setup_frame *setup = peer_expect(&s.q, ASI_FRAME_SETUP);
    CHECK_I64(setup->initial_term_id, 7);
    CHECK_I64(setup->active_term_id, 8);
    CHECK_I64(setup->term_offset, 128);
    send_status(&s.rig, &s.q, &s.publication, 0, 65536, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 1);
    CHECK(!is_connected(&s));
    send_status(&s.rig, &s.q, &s.publication, 65536 + 128, 65536, 0);
    CHECK(is_connected(&s));
    close_stage(&s);
}

static void s36_an_ended_stream_answers_no_setup_request(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 65536);
    remove_publication(&s, 20, 0);
    rig_run(&s.rig, 300);
    peer_drain(&s.q, ASI_FRAME_DATA);
    send_status(&s.rig, &s.q, &s.publication, 0, 0, ASI_STATUS_FLAG_SEND_SETUP);
    rig_run(&s.rig, 500);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_SETUP), 0);
    close_stage(&s);
}

static void s67_terms_wrap_around(void)
{
    stage s;
    open_stage_with(&s, "|init-term-id=2147483647|term-id=2147483647|term-offset=0", true);
    connect_stage(&s, 65536);
    int64_t position = 0;
    while (position < 3 * 65536)
    {
        const int64_t offered = rig_offer(&s.publication, 1376);
        position = offered > 0 ? offered : position;
        rig_cycles(&s.rig, 2);
        send_status(&s.rig, &s.q, &s.publication, rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_POSITION), 65536, 0);
    }
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_POSITION), position);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 0);
    close_stage(&s);
}

int main(void)
{
    RUN(s01_setups_come_every_100_ms);
    RUN(s02_nothing_is_sent_without_a_receiver);
    RUN(s03_a_status_message_connects);
    RUN(s04_two_messages_share_a_datagram);
    RUN(s05_data_holds_heartbeats_back);
    RUN(s06_the_window_holds_the_sender);
    RUN(s07_padding_travels_as_a_header);
    RUN(s08_a_nak_is_answered_once);
    RUN(s09_a_long_nak_ends_with_the_term);
    RUN(s10_bad_naks_are_counted);
    RUN(s11_naks_out_of_reach_get_nothing);
    RUN(s12_disjoint_naks_of_unicast_are_both_served);
    RUN(s13_the_resend_pool_of_groups_is_bounded);
    RUN(s14_status_messages_far_off_are_rejected);
    RUN(s15_a_setup_can_be_asked_for);
    RUN(s16_asking_for_setups_connects_nobody);
    RUN(s17_silence_disconnects);
    RUN(s18_an_eos_status_disconnects_at_once);
    RUN(s19_a_close_ends_with_the_receivers_eos);
    RUN(s20_without_it_the_publication_lingers);
    RUN(s21_eos_can_be_switched_off);
    RUN(s22_no_eos_before_everything_is_sent);
    RUN(s23_a_revoked_stream_says_so);
    RUN(s24_round_trips_are_answered);
    RUN(s25_errors_of_known_receivers_reach_the_client);
    RUN(s26_what_is_no_frame_is_counted);
    RUN(s27_short_status_messages_are_counted);
    RUN(s28_dynamic_destinations_come_and_go);
    RUN(s29_the_host_is_no_part_of_a_destination);
    RUN(s30_manual_destinations_are_the_listed_ones);
    RUN(s31_min_waits_for_the_slowest);
    RUN(s32_a_group_may_have_a_least_size);
    RUN(s33_tagged_counts_its_own);
    RUN(s34_multicast_data_goes_to_odd_addresses);
    RUN(s35_a_start_position_shows_in_setup);
    RUN(s36_an_ended_stream_answers_no_setup_request);
    RUN(s67_terms_wrap_around);
    return 0;
}
