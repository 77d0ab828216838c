/* How streams end, to the millisecond, and the error event that a client gets, byte by byte: scenarios 17, 20, 22 and 25 of
 * Spec: 04 §25. tests/conformance/udp has the others of its section. Method: network_publishing.h.
 * Spec: 04 §15, §20. */
#include "network_publishing.h"

static void s17_silence_disconnects(stage *s)
{
    connect_stage(s, 32768);
    rig_run(&s->rig, 4950);
    CHECK(is_connected(s));
    rig_run(&s->rig, 100);
    CHECK(!is_connected(s));
    peer_drain(&s->q, ASI_FRAME_DATA);
    rig_run(&s->rig, 101);
    CHECK_I64(peer_drain(&s->q, ASI_FRAME_DATA), 1);
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

static void s20_without_it_the_publication_lingers(stage *s)
{
    connect_stage(s, 32768);
    remove_publication(s, 20, 0);
    rig_run(&s->rig, 5000);
    CHECK_I64(heartbeat_flags(s), 0xE0);
    rig_run(&s->rig, 3000);
    peer_drain(&s->q, ASI_FRAME_DATA);
    rig_run(&s->rig, 300);
    peer_expect_none(&s->q);
}

static void s22_no_eos_before_everything_is_sent(stage *s)
{
    connect_stage(s, 0);
    const int64_t end = offer(s, 100);
    remove_publication(s, 20, 0);
    for (int i = 0; i < 15; i++)
    {
        rig_run(&s->rig, 200);
        send_status(&s->rig, &s->q, &s->publication, 0, 0, 0);
        CHECK_I64(heartbeat_flags(s), 0xC0);
    }
    send_status(&s->rig, &s->q, &s->publication, 0, 32768, 0);
    CHECK_I64(rig_counter_of_type(&s->rig, ASI_COUNTER_TYPE_SENDER_POSITION), end);
    rig_run(&s->rig, 1200);
    CHECK_I64(heartbeat_flags(s), 0xE0);
}

static void s25_errors_of_known_receivers_reach_the_client(stage *s)
{
    connect_stage(s, 32768);
    static const char TEXT[] = "no thanks, no more";
    uint8_t datagram[sizeof(asi_error_frame) + sizeof(TEXT)];
    const asi_error_frame frame = {
        .prefix = { .frame_length = (int32_t)(sizeof(frame) + sizeof(TEXT) - 1), .type = ASI_FRAME_ERROR },
        .session_id = s->publication.ready.session_id,
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
        peer_send(&s->q, datagram, sizeof(frame) + sizeof(TEXT) - 1);
        rig_cycles(&s->rig, 3);
    }
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_ERROR_FRAMES_RECEIVED), 2);
    asi_rsp_publication_error error;
    const uint8_t *message = rig_expect(&s->rig, ASI_RSP_PUBLICATION_ERROR);
    memcpy(&error, message, sizeof(error));
    CHECK_I64(error.registration_id, 10);
    CHECK_I64(error.destination_registration_id, -1);
    CHECK_I64(error.receiver_id, 4711);
    CHECK_I64(error.group_tag, -1);
    CHECK_I64(error.address_type, 1);
    CHECK_I64(error.source_port, s->q.port);
    CHECK_I64(error.source_address[0], 127);
    CHECK_I64(error.error_code, 13);
    CHECK_I64(error.message_length, sizeof(TEXT) - 1);
    CHECK(0 == memcmp(message + sizeof(error), TEXT, sizeof(TEXT) - 1));
    rig_expect_none(&s->rig);
    rig_cycles(&s->rig, 2);
    CHECK(!is_connected(s));
}

int main(void)
{
    RUN_ON_STAGE(s17_silence_disconnects);
    RUN_ON_STAGE(s20_without_it_the_publication_lingers);
    RUN_ON_STAGE(s22_no_eos_before_everything_is_sent);
    RUN_ON_STAGE(s25_errors_of_known_receivers_reach_the_client);
    return 0;
}
