/* Scenarios 1-16, 35 and 67 of Spec: 04 §25, publisher side: SETUPs, data, windows, resends. Each test carries its scenario's
 * number. Method: network_publishing.h.
 * Spec: 04 §5.1-5.3, §5.5-5.6, §21. */
#include "network_publishing.h"

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
    connect_stage(&s, 32768);
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
    connect_stage(&s, 32768);
    int64_t position = 0;
    while (position < 65536 - 1408 - 1000)
    {
        position = offer(&s, 1376);
        rig_cycles(&s.rig, 2);
        send_status(&s.rig, &s.q, &s.publication, position, 32768, 0);
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
        send_status(&s.rig, &s.q, &s.publication, 65536 - 1408, 32768, 0);
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
    connect_stage(&s, 32768);
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

/* Spec: 11 N5, D9. */
static void s09_a_nak_beyond_the_term_is_refused(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 32768);
    send_ten(&s);
    send_nak(&s.rig, &s.q, &s.publication, 0, 0, 65536 + 32);
    send_nak(&s.rig, &s.q, &s.publication, 0, 1408, INT32_MAX);
    peer_expect_none(&s.q);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 2);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_NAKS_RECEIVED), 0);
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_NAKS_RECEIVED), 0);
    send_nak(&s.rig, &s.q, &s.publication, 0, 0, 65536);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), 10);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITTED_BYTES), 10 * 1408);
    close_stage(&s);
}

/* More datagrams than one send takes: each goes once, in order. */
static void a_long_resend_goes_on_where_it_stopped(void)
{
    enum { DATAGRAMS = 150 };
    stage s;
    open_stage_with(&s, "|mtu=96", false);
    connect_stage(&s, 32768);
    for (int i = 0; i < DATAGRAMS + 5; i++)
    {
        offer(&s, 64);
        rig_cycle(&s.rig);
    }
    rig_cycles(&s.rig, 5);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), DATAGRAMS + 5);
    send_nak(&s.rig, &s.q, &s.publication, 0, 96, DATAGRAMS * 96);
    for (int i = 0; i < DATAGRAMS; i++)
    {
        const asi_frame_header *frame = peer_expect(&s.q, ASI_FRAME_DATA);
        CHECK_I64(s.q.length, 96);
        CHECK_I64(frame->term_offset, (i + 1) * 96);
    }
    peer_expect_none(&s.q);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITTED_BYTES), DATAGRAMS * 96);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITS_SENT), 1);
    close_stage(&s);
}

static void s10_bad_naks_are_counted(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 32768);
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
    connect_stage(&s, 32768);
    send_ten(&s);
    send_nak(&s.rig, &s.q, &s.publication, 0, 10 * 1408, 1408);
    rig_run(&s.rig, 11);
    send_nak(&s.rig, &s.q, &s.publication, 65536, 0, 1408);
    rig_run(&s.rig, 11);
    send_nak(&s.rig, &s.q, &s.publication, -65536, 0, 1408);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITS_SENT), 0);
    close_stage(&s);
}

/* What an application writes may look like frames, of another session or at another place. */
static void a_nak_inside_a_message_gets_nothing(void)
{
    static const struct
    {
        const char *what;
        int32_t term_offset;
        int32_t session_offset;
        int32_t stream_offset;
        int32_t term_id_offset;
        uint8_t version;
        uint16_t type;
    } ROWS[] = {
        { "frames of no place", 0, 0, 0, 0, 0, ASI_FRAME_DATA },
        { "frames of another session", 64, 1, 0, 0, 0, ASI_FRAME_DATA },
        { "frames of another stream", 64, 0, 1, 0, 0, ASI_FRAME_DATA },
        { "frames of another term", 64, 0, 0, 1, 0, ASI_FRAME_DATA },
        { "frames of another version", 64, 0, 0, 0, 1, ASI_FRAME_DATA },
        { "set-ups", 64, 0, 0, 0, 0, ASI_FRAME_SETUP }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        open_stage(&s);
        connect_stage(&s, 32768);
        uint8_t *term = s.publication.log.terms[0];
        const asi_frame_header *real = (const asi_frame_header *)(void *)term;
        offer(&s, 1376);
        asi_frame_header fake = *real;
        fake.frame_length = 64;
        fake.term_offset = ROWS[i].term_offset;
        fake.session_id += ROWS[i].session_offset;
        fake.stream_id += ROWS[i].stream_offset;
        fake.term_id += ROWS[i].term_id_offset;
        fake.version = ROWS[i].version;
        fake.type = ROWS[i].type;
        memcpy(term + 64, &fake, sizeof(fake));
        rig_cycles(&s.rig, 5);
        CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), 1);
        send_nak(&s.rig, &s.q, &s.publication, 0, 64, 64);
        if (peer_receive(&s.q))
        {
            printf("%s\n", ROWS[i].what);
            CHECK(false);
        }
        CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITS_SENT), 0);
        close_stage(&s);
    }
}

/* It lies in the log, but beyond the receiver's window: a NAK does not get it out. */
static void what_was_never_sent_is_not_resent(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 1408);
    offer(&s, 1376);
    offer(&s, 1376);
    rig_cycles(&s.rig, 5);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), 1);
    send_nak(&s.rig, &s.q, &s.publication, 0, 1408, 1408);
    rig_run(&s.rig, 11);
    send_nak(&s.rig, &s.q, &s.publication, 0, 0, 2 * 1408);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), 1);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITTED_BYTES), 1408);
    close_stage(&s);
}

static void s12_disjoint_naks_of_unicast_are_both_served(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 32768);
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
    send_status(&s.rig, &s.q, &s.publication, 0, 32768, ASI_STATUS_FLAG_SEND_SETUP);
    rig_run(&s.rig, 101);
    const asi_setup_frame *setup = peer_expect(&s.q, ASI_FRAME_SETUP);
    CHECK_I64(setup->prefix.flags, ASI_SETUP_FLAG_GROUP);
    send_status(&s.rig, &s.q, &s.publication, 0, 32768, 0);
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
    send_status(&s.rig, &s.q, &s.publication, 32768 + 32, 32768, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 1);
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_LIMIT), 1408);
    send_status(&s.rig, &s.q, &s.publication, 32768, 4096, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 1);
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_LIMIT), 32768 + 4096);
    close_stage(&s);
}

/* A receiver that stands still half a term behind: the padding at the end of the term takes the sender over its limit. */
static void padding_over_the_limit_turns_no_receiver_away(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 32768);
    const int64_t stands_at = 23 * 1408;
    for (int64_t sent = 0; sent < 65536;)
    {
        rig_offer(&s.publication, 1376);
        rig_cycles(&s.rig, 2);
        sent = rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_POSITION);
        send_status(&s.rig, &s.q, &s.publication, sent < stands_at ? sent : stands_at, 32768, 0);
    }
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_LIMIT), stands_at + 32768);
    send_status(&s.rig, &s.q, &s.publication, stands_at, 32768, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 0);
    CHECK(is_connected(&s));
    send_status(&s.rig, &s.q, &s.publication, stands_at - 32, 32768, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 1);
    close_stage(&s);
}

static void s15_a_setup_can_be_asked_for(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 32768);
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

static void s35_a_start_position_shows_in_setup(void)
{
    stage s;
    open_stage_with(&s, "|init-term-id=7|term-id=8|term-offset=128", true);
    const asi_setup_frame *setup = peer_expect(&s.q, ASI_FRAME_SETUP);
    CHECK_I64(setup->initial_term_id, 7);
    CHECK_I64(setup->active_term_id, 8);
    CHECK_I64(setup->term_offset, 128);
    send_status(&s.rig, &s.q, &s.publication, 0, 32768, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 1);
    CHECK(!is_connected(&s));
    send_status(&s.rig, &s.q, &s.publication, 65536 + 128, 32768, 0);
    CHECK(is_connected(&s));
    close_stage(&s);
}

static void s67_terms_wrap_around(void)
{
    stage s;
    open_stage_with(&s, "|init-term-id=2147483647|term-id=2147483647|term-offset=0", true);
    connect_stage(&s, 32768);
    int64_t position = 0;
    while (position < 3 * 65536)
    {
        const int64_t offered = rig_offer(&s.publication, 1376);
        position = offered > 0 ? offered : position;
        rig_cycles(&s.rig, 2);
        send_status(&s.rig, &s.q, &s.publication, rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_POSITION), 32768, 0);
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
    RUN(s09_a_nak_beyond_the_term_is_refused);
    RUN(a_long_resend_goes_on_where_it_stopped);
    RUN(s10_bad_naks_are_counted);
    RUN(s11_naks_out_of_reach_get_nothing);
    RUN(a_nak_inside_a_message_gets_nothing);
    RUN(what_was_never_sent_is_not_resent);
    RUN(s12_disjoint_naks_of_unicast_are_both_served);
    RUN(s13_the_resend_pool_of_groups_is_bounded);
    RUN(s14_status_messages_far_off_are_rejected);
    RUN(padding_over_the_limit_turns_no_receiver_away);
    RUN(s15_a_setup_can_be_asked_for);
    RUN(s16_asking_for_setups_connects_nobody);
    RUN(s35_a_start_position_shows_in_setup);
    RUN(s67_terms_wrap_around);
    return 0;
}
