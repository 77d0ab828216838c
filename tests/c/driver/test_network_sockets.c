/* Goal: sockets are bound in the ranges that the settings give, each port once, and follow names that move: a destination of a
 * publication, a control address of a subscription, until they are removed; removed ones are closed. Method: memory_rig.h, with names of the test's own.
 * Spec: 04 §16, 05 §4. */
#include "driver/ctl/receive_channels.h"
#include "driver/ctl/send_channels.h"
#include "memory_rig.h"
#include "wire/frame.h"

#define STREAM 1001

static const char *host_of_name; /* where every name points */
static int lookups;

static as_result resolve(void *context, const char *name, const char *param, bool is_re_resolution, asi_address *address)
{
    (void)context;
    (void)param;
    (void)is_re_resolution;
    CHECK_TEXT(name, "moving");
    lookups++;
    *address = fake_address(host_of_name, 0);
    return AS_OK;
}

static void open_at(memory_rig *m, const char *host)
{
    host_of_name = host;
    lookups = 0;
    memory_rig_open_with(m, NULL, (asi_name_resolver){ .resolve = resolve });
}

static asi_udp_socket *socket_at(memory_rig *m, const char *host, uint16_t port)
{
    const asi_udp_params params = { .bind = fake_address(host, port) };
    asi_udp_socket *socket;
    CHECK_I64(fake_open(&m->net, &params, &socket), AS_OK);
    return socket;
}

/* Drops what waits at a socket; the number of frames of that type. */
static int take(memory_rig *m, asi_udp_socket *socket, uint16_t type)
{
    static uint8_t buffer[65536] __attribute__((aligned(8)));
    int count = 0;
    for (;;)
    {
        asi_incoming incoming = { .buffer = buffer, .capacity = sizeof(buffer) };
        int32_t received;
        CHECK_I64(fake_receive(&m->net, socket, &incoming, 1, &received), AS_OK);
        if (0 == received)
        {
            return count;
        }
        count += type == ((const asi_frame_prefix *)(const void *)buffer)->type ? 1 : 0;
    }
}

static void pass(memory_rig *m, int64_t duration_ms)
{
    for (int64_t i = 0; i < duration_ms; i += 10)
    {
        m->rig.now_ns += 10 * RIG_MS;
        memory_rig_cycles(m, 2);
    }
}

static void send_destination(memory_rig *m, int32_t type_id, int64_t correlation_id, const char *channel)
{
    uint8_t message[512];
    const asi_cmd_destination command = { { 1, correlation_id }, 10, (int32_t)strlen(channel) };
    memcpy(message, &command, sizeof(command));
    memcpy(message + sizeof(command), channel, strlen(channel));
    rig_send(&m->rig, type_id, message, (int64_t)(sizeof(command) + strlen(channel)));
    rig_expect_success(&m->rig, correlation_id);
    memory_rig_cycles(m, 3);
}

/* One that answers stays; one that was silent for 5 s goes where its name points by then. */
static void a_manual_destination_moves(void)
{
    memory_rig m;
    open_at(&m, "127.0.0.1");
    asi_udp_socket *before = socket_at(&m, "127.0.0.1", 24300);
    asi_udp_socket *after = socket_at(&m, "127.0.0.2", 24300);
    asi_udp_socket *other = socket_at(&m, "127.0.0.1", 24301);
    rig_send_add(&m.rig, ASI_CMD_ADD_PUBLICATION, 1, 10, STREAM,
        "aeron:udp?control-mode=manual|control=127.0.0.1:24200|term-length=64k");
    rig_expect_i32(&m.rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect(&m.rig, ASI_RSP_PUBLICATION_READY);
    send_destination(&m, ASI_CMD_ADD_DESTINATION, 11, "aeron:udp?endpoint=127.0.0.1:24301");
    send_destination(&m, ASI_CMD_ADD_DESTINATION, 12, "aeron:udp?endpoint=moving:24300");
    pass(&m, 200);
    CHECK(take(&m, before, ASI_FRAME_SETUP) > 0 && take(&m, other, ASI_FRAME_SETUP) > 0);
    host_of_name = "127.0.0.2";
    pass(&m, 4000);
    CHECK_I64(take(&m, after, ASI_FRAME_SETUP), 0);
    pass(&m, 2500);
    CHECK_I64(rig_system(&m.rig, ASI_SYSTEM_RESOLUTION_CHANGES), 1);
    CHECK(take(&m, after, ASI_FRAME_SETUP) > 0);
    (void)take(&m, before, 0);
    (void)take(&m, other, 0);
    pass(&m, 300);
    CHECK(take(&m, other, ASI_FRAME_SETUP) > 0 && take(&m, after, ASI_FRAME_SETUP) > 0);
    CHECK_I64(before->count, 0);
    const int before_removal = lookups;
    send_destination(&m, ASI_CMD_REMOVE_DESTINATION, 13, "aeron:udp?endpoint=moving:24300");
    host_of_name = "127.0.0.1";
    const int for_removal = lookups - before_removal;
    CHECK(for_removal <= 1);
    (void)take(&m, after, 0);
    pass(&m, 12000);
    CHECK_I64(lookups, before_removal + for_removal);
    CHECK_I64(after->count + before->count, 0);
    CHECK_I64(rig_system(&m.rig, ASI_SYSTEM_RESOLUTION_CHANGES), 1);
    CHECK_I64(rig_system(&m.rig, ASI_SYSTEM_ERRORS), 0);
    fake_close(&m.net, before);
    fake_close(&m.net, after);
    fake_close(&m.net, other);
    memory_rig_close(&m);
}

/* A subscription asks at its control address for SETUPs; without any it asks where the name points by then. */
static void a_control_address_moves(void)
{
    memory_rig m;
    open_at(&m, "127.0.0.1");
    asi_udp_socket *before = socket_at(&m, "127.0.0.1", 24300);
    asi_udp_socket *after = socket_at(&m, "127.0.0.2", 24300);
    rig_send_add(&m.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM,
        "aeron:udp?endpoint=127.0.0.1:24201|control=moving:24300|control-mode=dynamic");
    rig_expect_i32(&m.rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect_i32(&m.rig, ASI_RSP_SUBSCRIPTION_READY, 10);
    pass(&m, 1200);
    CHECK(take(&m, before, ASI_FRAME_STATUS) > 0);
    host_of_name = "127.0.0.2";
    pass(&m, 7000);
    CHECK_I64(rig_system(&m.rig, ASI_SYSTEM_RESOLUTION_CHANGES), 1);
    (void)take(&m, before, 0);
    (void)take(&m, after, 0);
    pass(&m, 2000);
    CHECK(take(&m, after, ASI_FRAME_STATUS) > 0);
    CHECK_I64(before->count, 0);
    fake_close(&m.net, before);
    fake_close(&m.net, after);
    memory_rig_close(&m);
}

static void port_ranges(asi_driver_settings *settings)
{
    settings->sender_port_range = (asi_port_range){ .low = 20100, .high = 20102 };
    settings->receiver_port_range = (asi_port_range){ .low = 20200, .high = 20201 };
}

/* Ports of the driver's sockets that lie in the range, as bits from `low`. */
static uint32_t ports_in_use(const memory_rig *m, uint16_t low)
{
    uint32_t ports = 0;
    for (int i = 0; i < FAKE_NET_SOCKETS; i++)
    {
        const int offset = NULL == m->net.sockets[i] ? -1 : asi_address_port(&m->net.sockets[i]->bound) - low;
        if (offset >= 0 && offset < 32)
        {
            CHECK(0 == (ports & (1U << offset)));
            ports |= 1U << offset;
        }
    }
    return ports;
}

/* A destination that is removed has no socket any more; the others keep theirs. */
static void receive_destinations_come_and_go(memory_rig *m)
{
    rig_send_add(&m->rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, "aeron:udp?control-mode=manual");
    rig_expect_i32(&m->rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect_i32(&m->rig, ASI_RSP_SUBSCRIPTION_READY, 10);
    send_destination(m, ASI_CMD_ADD_RCV_DESTINATION, 11, "aeron:udp?endpoint=127.0.0.1:24400");
    CHECK_I64(ports_in_use(m, 24400), 1);
    send_destination(m, ASI_CMD_ADD_RCV_DESTINATION, 12, "aeron:udp?endpoint=127.0.0.1:24401");
    CHECK_I64(ports_in_use(m, 24400), 3);
    send_destination(m, ASI_CMD_REMOVE_RCV_DESTINATION, 13, "aeron:udp?endpoint=127.0.0.1:24400");
    memory_rig_cycles(m, 10);
    CHECK_I64(ports_in_use(m, 24400), 2);
    send_destination(m, ASI_CMD_ADD_RCV_DESTINATION, 14, "aeron:udp?endpoint=127.0.0.1:24400"); /* free again */
    CHECK_I64(ports_in_use(m, 24400), 3);
    rig_send_remove(&m->rig, ASI_CMD_REMOVE_SUBSCRIPTION, 1, 15, 10);
    rig_expect_success(&m->rig, 15);
    memory_rig_cycles(m, 20);
    CHECK_I64(ports_in_use(m, 24400), 0);
    CHECK_I64(rig_system(&m->rig, ASI_SYSTEM_ERRORS), 0);
}

static void ports_of_receivers(void)
{
    memory_rig m;
    memory_rig_open(&m, port_ranges);
    static const char CHANNEL[] = "aeron:udp?endpoint=127.0.0.1:0";
    rig_send_add(&m.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, CHANNEL);
    rig_expect_i32(&m.rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect_i32(&m.rig, ASI_RSP_SUBSCRIPTION_READY, 10);
    CHECK_I64(ports_in_use(&m, 20200), 1);
    rig_send_add(&m.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 11, STREAM, CHANNEL);
    rig_expect_i32(&m.rig, ASI_RSP_SUBSCRIPTION_READY, 11);
    CHECK_I64(ports_in_use(&m, 20200), 3);
    rig_send_add(&m.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 12, STREAM, CHANNEL);
    rig_expect_error(&m.rig, 12, ASI_ERR_GENERIC);
    CHECK(NULL != strstr((const char *)m.rig.last.bytes + sizeof(asi_rsp_error), "no available ports in range 20200 20201"));
    CHECK_I64(asi_counter_state(&m.rig.counters, 0), ASI_COUNTER_ALLOCATED); /* it had no counter yet that could be freed */
    rig_send_remove(&m.rig, ASI_CMD_REMOVE_SUBSCRIPTION, 1, 13, 10);
    rig_expect_success(&m.rig, 13);
    memory_rig_cycles(&m, 10);
    CHECK_I64(ports_in_use(&m, 20200), 2);
    rig_send_add(&m.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 14, STREAM, CHANNEL);
    rig_expect_i32(&m.rig, ASI_RSP_SUBSCRIPTION_READY, 14);
    CHECK_I64(ports_in_use(&m, 20200), 3);
    /* A port that is asked for is not of the range. */
    rig_send_add(&m.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 15, STREAM, "aeron:udp?endpoint=127.0.0.1:20210");
    rig_expect_i32(&m.rig, ASI_RSP_SUBSCRIPTION_READY, 15);
    CHECK_I64(ports_in_use(&m, 20200), 3 | 1 << 10);
    memory_rig_close(&m);
}

/* Those with a control address only. */
static void ports_of_senders(void)
{
    memory_rig m;
    memory_rig_open(&m, port_ranges);
    for (int i = 0; i < 4; i++)
    {
        char channel[128];
        snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:%d|control=127.0.0.1:0|term-length=64k", 24300 + i);
        rig_send_add(&m.rig, ASI_CMD_ADD_PUBLICATION, 1, 10 + i, STREAM, channel);
        if (0 == i)
        {
            rig_expect_i32(&m.rig, ASI_RSP_COUNTER_READY, 1);
        }
        if (i < 3)
        {
            rig_expect(&m.rig, ASI_RSP_PUBLICATION_READY);
            CHECK_I64(ports_in_use(&m, 20100), (2 << i) - 1);
        }
    }
    rig_expect_error(&m.rig, 13, ASI_ERR_GENERIC);
    CHECK(NULL != strstr((const char *)m.rig.last.bytes + sizeof(asi_rsp_error), "no available ports in range 20100 20102"));
    CHECK_I64(asi_counter_state(&m.rig.counters, 0), ASI_COUNTER_ALLOCATED);
    rig_send_add(&m.rig, ASI_CMD_ADD_PUBLICATION, 1, 20, STREAM, "aeron:udp?endpoint=127.0.0.1:24310|term-length=64k");
    rig_expect(&m.rig, ASI_RSP_PUBLICATION_READY);
    CHECK_I64(ports_in_use(&m, 20100), 7);
    CHECK_I64(ports_in_use(&m, 20200), 0);
    memory_rig_close(&m);
}

/* Agents may name an endpoint that is closed, the last one, too. */
static void endpoints_that_are_gone(void)
{
    static const asi_conductor without;
    CHECK(NULL == asi_send_channel_by_id(&without, 1));
    CHECK(NULL == asi_receive_channel_by_id(&without, 1));
}

int main(void)
{
    RUN(a_manual_destination_moves);
    RUN(a_control_address_moves);
    RUN_IN_MEMORY_RIG(receive_destinations_come_and_go);
    RUN(ports_of_receivers);
    RUN(ports_of_senders);
    RUN(endpoints_that_are_gone);
    return 0;
}
