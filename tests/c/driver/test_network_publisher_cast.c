/* Scenarios 28-34 of Spec: 04 §25, publisher side: multi-destination cast, flow control of groups, multicast. Each test carries its
 * scenario's number. Method: network_rig.h. */
#include "network_rig.h"

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
    cast_status(&c, &c.q1, 1, 0, 0, 32768, 0);
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

int main(void)
{
    RUN(s28_dynamic_destinations_come_and_go);
    RUN(s29_the_host_is_no_part_of_a_destination);
    RUN(s30_manual_destinations_are_the_listed_ones);
    RUN(s31_min_waits_for_the_slowest);
    RUN(s32_a_group_may_have_a_least_size);
    RUN(s33_tagged_counts_its_own);
    RUN(s34_multicast_data_goes_to_odd_addresses);
    return 0;
}
