/* When SETUPs, heartbeats and resends are sent, to the millisecond, and which bytes are never resent. A test with a number is
 * that scenario of Spec: 04 §25; tests/conformance/udp has the others of its section. Method: network_publishing.h. Spec: 04
 * §5.1-5.3, §5.5-5.6, §21. */
#include "network_publishing.h"

static void s01_setups_come_every_100_ms(stage *s)
{
    const asi_setup_frame *setup = peer_expect(&s->q, ASI_FRAME_SETUP);
    CHECK_I64(s->q.length, 40);
    CHECK_I64(setup->prefix.frame_length, 40);
    CHECK_I64(setup->prefix.version, 0);
    CHECK_I64(setup->prefix.flags, 0);
    CHECK_I64(setup->session_id, s->publication.ready.session_id);
    CHECK_I64(setup->stream_id, NETWORK_STREAM);
    CHECK_I64(setup->initial_term_id, s->publication.log.initial_term_id);
    CHECK_I64(setup->active_term_id, s->publication.log.initial_term_id);
    CHECK_I64(setup->term_offset, 0);
    CHECK_I64(setup->term_length, 65536);
    CHECK_I64(setup->mtu_length, 1408);
    CHECK_I64(setup->ttl, 0);
    for (int i = 0; i < 5; i++)
    {
        rig_run(&s->rig, 100);
        peer_expect_none(&s->q);
        rig_run(&s->rig, 1);
        peer_expect(&s->q, ASI_FRAME_SETUP);
        peer_expect_none(&s->q);
    }
}

static void s03_a_status_message_connects(stage *s)
{
    peer_expect(&s->q, ASI_FRAME_SETUP);
    send_status(&s->rig, &s->q, &s->publication, 0, 32768, 0);
    CHECK(is_connected(s));
    const asi_frame_header *heartbeat = peer_expect(&s->q, ASI_FRAME_DATA);
    CHECK_I64(s->q.length, 32);
    CHECK_I64(heartbeat->frame_length, 0);
    CHECK_I64(heartbeat->flags, 0xC0);
    CHECK_I64(heartbeat->term_offset, 0);
    peer_expect_none(&s->q);
    for (int i = 0; i < 3; i++)
    {
        rig_run(&s->rig, 100);
        peer_expect_none(&s->q);
        rig_run(&s->rig, 1);
        peer_expect(&s->q, ASI_FRAME_DATA);
    }
    peer_expect_none(&s->q);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_HEARTBEATS_SENT), 4);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_STATUS_MESSAGES_RECEIVED), 1);
}

static void s05_data_holds_heartbeats_back(stage *s)
{
    connect_stage(s, 32768);
    for (int i = 0; i < 20; i++)
    {
        offer(s, 100);
        rig_run(&s->rig, 20);
        peer_expect(&s->q, ASI_FRAME_DATA);
        CHECK_I64(s->q.length, 160);
        peer_expect_none(&s->q);
    }
    rig_run(&s->rig, 81);
    peer_expect_none(&s->q);
    rig_run(&s->rig, 30);
    const asi_frame_header *heartbeat = peer_expect(&s->q, ASI_FRAME_DATA);
    CHECK_I64(s->q.length, 32);
    CHECK_I64(heartbeat->term_offset, 20 * 160);
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

static void s08_a_nak_is_answered_once(stage *s)
{
    connect_stage(s, 32768);
    send_ten(s);
    send_nak(&s->rig, &s->q, &s->publication, 0, 1408, 1408);
    const asi_frame_header *frame = peer_expect(&s->q, ASI_FRAME_DATA);
    CHECK_I64(s->q.length, 1408);
    CHECK_I64(frame->term_offset, 1408);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_RETRANSMITS_SENT), 1);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_RETRANSMITTED_BYTES), 1408);
    rig_run(&s->rig, 9);
    send_nak(&s->rig, &s->q, &s->publication, 0, 1408, 1408);
    peer_expect_none(&s->q);
    rig_run(&s->rig, 2);
    send_nak(&s->rig, &s->q, &s->publication, 0, 1408, 1408);
    peer_expect(&s->q, ASI_FRAME_DATA);
    peer_expect_none(&s->q);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_NAKS_RECEIVED), 3);
    CHECK_I64(rig_counter_of_type(&s->rig, ASI_COUNTER_TYPE_SENDER_NAKS_RECEIVED), 3);
}

/* Spec: 11 N5, D9. */
static void s09_a_nak_beyond_the_term_is_refused(stage *s)
{
    connect_stage(s, 32768);
    send_ten(s);
    send_nak(&s->rig, &s->q, &s->publication, 0, 0, 65536 + 32);
    send_nak(&s->rig, &s->q, &s->publication, 0, 1408, INT32_MAX);
    peer_expect_none(&s->q);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_INVALID_PACKETS), 2);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_NAKS_RECEIVED), 0);
    CHECK_I64(rig_counter_of_type(&s->rig, ASI_COUNTER_TYPE_SENDER_NAKS_RECEIVED), 0);
    send_nak(&s->rig, &s->q, &s->publication, 0, 0, 65536);
    CHECK_I64(peer_drain(&s->q, ASI_FRAME_DATA), 10);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_RETRANSMITTED_BYTES), 10 * 1408);
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

/* Payload may look like frames, of another session or at another place. */
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
static void what_was_never_sent_is_not_resent(stage *s)
{
    connect_stage(s, 1408);
    offer(s, 1376);
    offer(s, 1376);
    rig_cycles(&s->rig, 5);
    CHECK_I64(peer_drain(&s->q, ASI_FRAME_DATA), 1);
    send_nak(&s->rig, &s->q, &s->publication, 0, 1408, 1408);
    rig_run(&s->rig, 11);
    send_nak(&s->rig, &s->q, &s->publication, 0, 0, 2 * 1408);
    CHECK_I64(peer_drain(&s->q, ASI_FRAME_DATA), 1);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_RETRANSMITTED_BYTES), 1408);
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
    /* What has nothing to send takes no place: inside of messages, and what was not sent. */
    send_nak(&s.rig, &s.q, &s.publication, 0, 64, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 2 * 1408 + 96, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 10 * 1408, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 20 * 1408, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 0, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 4 * 1408, 1408);
    send_nak(&s.rig, &s.q, &s.publication, 0, 8 * 1408, 1408);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_DATA), 2);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMIT_OVERFLOW), 1);
    close_stage(&s);
}

/* A receiver that stalls half a term behind: the padding at the end of the term takes the sender over its limit. */
static void padding_over_the_limit_turns_no_receiver_away(stage *s)
{
    connect_stage(s, 32768);
    const int64_t stands_at = 23 * 1408;
    for (int64_t sent = 0; sent < 65536;)
    {
        rig_offer(&s->publication, 1376);
        rig_cycles(&s->rig, 2);
        sent = rig_counter_of_type(&s->rig, ASI_COUNTER_TYPE_SENDER_POSITION);
        send_status(&s->rig, &s->q, &s->publication, sent < stands_at ? sent : stands_at, 32768, 0);
    }
    CHECK_I64(rig_counter_of_type(&s->rig, ASI_COUNTER_TYPE_SENDER_LIMIT), stands_at + 32768);
    send_status(&s->rig, &s->q, &s->publication, stands_at, 32768, 0);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 0);
    CHECK(is_connected(s));
    send_status(&s->rig, &s->q, &s->publication, stands_at - 32, 32768, 0);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 1);
}

int main(void)
{
    RUN_ON_STAGE(s01_setups_come_every_100_ms);
    RUN_ON_STAGE(s03_a_status_message_connects);
    RUN_ON_STAGE(s05_data_holds_heartbeats_back);
    RUN_ON_STAGE(s08_a_nak_is_answered_once);
    RUN_ON_STAGE(s09_a_nak_beyond_the_term_is_refused);
    RUN(a_long_resend_goes_on_where_it_stopped);
    RUN(a_nak_inside_a_message_gets_nothing);
    RUN_ON_STAGE(what_was_never_sent_is_not_resent);
    RUN(s13_the_resend_pool_of_groups_is_bounded);
    RUN_ON_STAGE(padding_over_the_limit_turns_no_receiver_away);
    return 0;
}
