/* Scenarios 17-27 and 36 of Spec: 04 §25, publisher side: how streams end, and what control frames do to them. Each test carries its
 * scenario's number. Method: network_publishing.h.
 * Spec: 04 §15, §20. */
#include "network_publishing.h"

static void s17_silence_disconnects(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 32768);
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
    connect_stage(&s, 32768);
    send_status(&s.rig, &s.q, &s.publication, 0, 32768, ASI_STATUS_FLAG_EOS);
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
    connect_stage(&s, 32768);
    const int64_t end = offer(&s, 100);
    rig_cycles(&s.rig, 2);
    remove_publication(&s, 20, 0);
    rig_run(&s.rig, 200);
    CHECK_I64(heartbeat_flags(&s), 0xE0);
    send_status(&s.rig, &s.q, &s.publication, end, 32768, ASI_STATUS_FLAG_EOS);
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
    connect_stage(&s, 32768);
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
    connect_stage(&s, 32768);
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
    send_status(&s.rig, &s.q, &s.publication, 0, 32768, 0);
    CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_SENDER_POSITION), end);
    rig_run(&s.rig, 1200);
    CHECK_I64(heartbeat_flags(&s), 0xE0);
    close_stage(&s);
}

static void s23_a_revoked_stream_says_so(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 32768);
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
    connect_stage(&s, 32768);
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
    connect_stage(&s, 32768);
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
    connect_stage(&s, 32768);
    const uint8_t rows[][8] = { { 8, 0, 0, 0, 0, 0, 3 }, { 8, 0, 0, 0, 1, 0, 3, 0 }, { 8, 0, 0, 0, 0, 0, 12, 0 } };
    peer_send(&s.q, rows[0], 7);
    peer_send(&s.q, rows[1], 8);
    rig_cycles(&s.rig, 4);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 2);
    peer_send(&s.q, rows[2], 8);
    rig_cycles(&s.rig, 4);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 3); /* no type at all; Spec: 11 N1 */
    peer_expect_none(&s.q);
    close_stage(&s);
}

static void s27_short_status_messages_are_counted(void)
{
    stage s;
    open_stage(&s);
    peer_expect(&s.q, ASI_FRAME_SETUP);
    asi_status_frame frame = make_status(&s.publication, 0, 32768, 0);
    peer_send(&s.q, &frame, 35);
    frame.prefix.frame_length = ASI_STATUS_TAGGED_LENGTH;
    peer_send(&s.q, &frame, 36);
    rig_cycles(&s.rig, 4);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 2);
    CHECK(!is_connected(&s));
    close_stage(&s);
}

static void s36_an_ended_stream_answers_no_setup_request(void)
{
    stage s;
    open_stage(&s);
    connect_stage(&s, 32768);
    remove_publication(&s, 20, 0);
    rig_run(&s.rig, 300);
    peer_drain(&s.q, ASI_FRAME_DATA);
    send_status(&s.rig, &s.q, &s.publication, 0, 0, ASI_STATUS_FLAG_SEND_SETUP);
    rig_run(&s.rig, 500);
    CHECK_I64(peer_drain(&s.q, ASI_FRAME_SETUP), 0);
    close_stage(&s);
}

int main(void)
{
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
    RUN(s36_an_ended_stream_answers_no_setup_request);
    return 0;
}
