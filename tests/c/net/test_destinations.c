/* Destination lists over a network in memory: who gets in, who is dropped, what is sent to whom and what counts as sent.
 * Spec: 04 §11, scenarios 28-30 of §25. */
#include "fake_net.h"

#include "driver/net/destinations.h"

#define SECOND 1000000000LL

static fake_net net;
static asi_udp_ops ops;
static int64_t counter;

static asi_udp_socket *open_at(uint16_t port)
{
    const asi_udp_params params = { .bind = fake_address("127.0.0.1", port) };
    asi_udp_socket *socket;
    CHECK_I64(ops.open(ops.context, &params, &socket), AS_OK);
    return socket;
}

static int32_t send_three(asi_destinations *destinations, asi_udp_socket *from, int64_t now_ns, as_result expected, int64_t *bytes)
{
    const asi_outgoing datagrams[] = {
        { .bytes = "a", .length = 1 }, { .bytes = "bb", .length = 2 }, { .bytes = "ccc", .length = 3 }
    };
    int32_t sent = -1;
    CHECK_I64(asi_destinations_send(destinations, &ops, from, datagrams, 3, now_ns, &sent, bytes), expected);
    return sent;
}

static void dynamic_ones_come_and_go(void)
{
    asi_destinations destinations;
    asi_udp_socket *from = open_at(100);
    asi_udp_socket *q1 = open_at(101);
    asi_udp_socket *q2 = open_at(102);
    const asi_address at1 = fake_address("127.0.0.1", 101);
    const asi_address at2 = fake_address("127.0.0.1", 102);
    const asi_address elsewhere = fake_address("10.0.0.1", 101);
    int64_t bytes;
    CHECK_I64(asi_destinations_open(&destinations, false, 4, &counter), AS_OK);
    CHECK_I64(send_three(&destinations, from, SECOND, AS_OK, &bytes), 3); /* nobody there: all is sent */
    CHECK_I64(bytes, 0);
    asi_destinations_on_status_message(&destinations, 1, &at1, SECOND);
    asi_destinations_on_status_message(&destinations, 2, &at2, SECOND);
    asi_destinations_on_status_message(&destinations, 1, &elsewhere, SECOND); /* same receiver and port: same one */
    CHECK_I64(counter, 2);
    CHECK_I64(send_three(&destinations, from, 2 * SECOND, AS_OK, &bytes), 3);
    CHECK_I64(bytes, 12);
    CHECK_I64(q1->count, 3);
    CHECK_I64(q2->count, 3);
    asi_destinations_on_status_message(&destinations, 1, &at1, 6 * SECOND);
    CHECK_I64(send_three(&destinations, from, 6 * SECOND, AS_OK, &bytes), 3);
    CHECK_I64(counter, 2); /* exactly 5 s is not more than 5 s */
    CHECK_I64(send_three(&destinations, from, 6 * SECOND + 1, AS_OK, &bytes), 3);
    CHECK_I64(counter, 1);
    CHECK_I64(bytes, 6);
    CHECK_I64(asi_destinations_find_registration(&destinations, 1, &at1), -1);
    CHECK(NULL == asi_destinations_next_silent(&destinations, 100 * SECOND));
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
    ops.close(ops.context, q1);
    ops.close(ops.context, q2);
}

static void a_flood_is_bounded(void)
{
    asi_destinations destinations;
    CHECK_I64(asi_destinations_open(&destinations, false, 8, &counter), AS_OK);
    for (int64_t i = 0; i < 100; i++)
    {
        const asi_address at = fake_address("127.0.0.1", (uint16_t)(1000 + i));
        asi_destinations_on_status_message(&destinations, i, &at, SECOND);
    }
    CHECK_I64(counter, 8);
    asi_destinations_close(&destinations);
    asi_destinations_close(&destinations);
}

static void manual_ones_are_listed(void)
{
    asi_destinations destinations;
    const asi_address at1 = fake_address("127.0.0.1", 101);
    const asi_address at2 = fake_address("127.0.0.1", 102);
    const asi_address at3 = fake_address("127.0.0.1", 103);
    const asi_address nowhere = { .any = { .sa_family = AF_UNSPEC } };
    int64_t bytes;
    asi_udp_socket *from = open_at(100);
    CHECK_I64(asi_destinations_open(&destinations, true, 3, &counter), AS_OK);
    CHECK(asi_destinations_add(&destinations, &at1, 11, SECOND));
    CHECK(asi_destinations_add(&destinations, &at2, 12, SECOND));
    CHECK(asi_destinations_add(&destinations, &nowhere, 13, SECOND)); /* its name is not known yet */
    CHECK(!asi_destinations_add(&destinations, &at3, 14, SECOND));
    asi_destinations_on_status_message(&destinations, 7, &at3, SECOND);
    CHECK_I64(counter, 3);
    CHECK_I64(send_three(&destinations, from, 100 * SECOND, AS_OK, &bytes), 3);
    CHECK_I64(bytes, 12);
    /* Bound to a receiver by its first SM. */
    asi_destinations_on_status_message(&destinations, 21, &at1, 99 * SECOND);
    const asi_address moved = fake_address("10.0.0.1", 101);
    CHECK_I64(asi_destinations_find_registration(&destinations, 21, &moved), 11);
    CHECK_I64(asi_destinations_find_registration(&destinations, 22, &at1), -1);
    asi_destinations_on_status_message(&destinations, 22, &at1, 300 * SECOND); /* of another receiver */
    CHECK_I64(destinations.items[0].last_activity_ns, 99 * SECOND);
    CHECK_I64(destinations.items[0].receiver_id, 21);
    CHECK_I64(asi_destinations_find_registration(&destinations, 22, &at2), 12);
    /* The silent ones are asked about once per timeout. */
    CHECK_I64(asi_destinations_next_silent(&destinations, 100 * SECOND)->registration_id, 12);
    CHECK_I64(asi_destinations_next_silent(&destinations, 100 * SECOND)->registration_id, 13);
    CHECK(NULL == asi_destinations_next_silent(&destinations, 100 * SECOND));
    asi_destinations_remove(&destinations, 14); /* absent: fine */
    asi_destinations_remove(&destinations, 11);
    asi_destinations_remove(&destinations, 13);
    asi_destinations_remove(&destinations, 13);
    CHECK_I64(counter, 1);
    CHECK_I64(destinations.items[0].registration_id, 12);
    asi_destinations_on_status_message(&destinations, 7, &at3, SECOND); /* there is room, but nobody added it */
    CHECK_I64(counter, 1);
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
}

/* Spec: 04 §11.3 */
static void what_counts_as_sent(void)
{
    asi_destinations destinations;
    const asi_address at1 = fake_address("127.0.0.1", 101);
    asi_udp_socket *from = open_at(100);
    int64_t bytes;
    CHECK_I64(asi_destinations_open(&destinations, true, 3, &counter), AS_OK);
    CHECK(asi_destinations_add(&destinations, &at1, 11, SECOND));
    net.is_full = true;
    CHECK_I64(send_three(&destinations, from, SECOND, AS_OK, &bytes), 3);
    CHECK_I64(bytes, 0);
    net.is_full = false;
    net.fail_with = EPERM;
    CHECK_I64(send_three(&destinations, from, SECOND, AS_E_USAGE, &bytes), 0);
    net.fail_with = 0;
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
}

int main(void)
{
    ops = fake_net_ops(&net);
    RUN(dynamic_ones_come_and_go);
    RUN(a_flood_is_bounded);
    RUN(manual_ones_are_listed);
    RUN(what_counts_as_sent);
    return 0;
}
