/* What every udp_ops must do, run over the kernel's sockets (loopback), the loss wrapper around them with a rate of 0, and the
 * network in memory that other tests use, and that of the simulation. Waiting is polling with a deadline. Spec: 04 §3. */
#include "fake_net.h"

#include "base/clock.h"
#include "driver/net/udp_loss.h"
#include "driver/net/udp_poller.h"
#include "driver/net/udp_socket.h"
#include "ports.h"
#include "sim_net.h"
#include "support.h"

#define DEADLINE_NS 5000000000LL
#define CAPACITY 65536

static asi_udp_ops ops;
static bool is_kernel;
static uint8_t buffers[ASI_UDP_MAX_BATCH][CAPACITY] __attribute__((aligned(8)));
static asi_incoming incoming[ASI_UDP_MAX_BATCH];

static void prepare(void)
{
    for (int i = 0; i < ASI_UDP_MAX_BATCH; i++)
    {
        incoming[i] = (asi_incoming){ .buffer = buffers[i], .capacity = CAPACITY };
    }
}

static asi_udp_socket *open_at(const asi_address *bind, const asi_address *connect)
{
    asi_udp_params params = { .bind = *bind, .rcvbuf_length = 1 << 20 };
    if (NULL != connect)
    {
        params.connect = *connect;
    }
    asi_udp_socket *socket;
    CHECK_I64(ops.open(ops.context, &params, &socket), AS_OK);
    return socket;
}

static asi_address address_of(asi_udp_socket *socket)
{
    asi_address address;
    CHECK_I64(ops.bound_address(ops.context, socket, &address), AS_OK);
    return address;
}

/* Until `wanted` datagrams came, at least one call. */
static int32_t receive_until(asi_udp_socket *socket, int32_t wanted)
{
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ns = asi_clock_ns(&clock) + DEADLINE_NS;
    int32_t total = 0;
    do
    {
        int32_t received = -1;
        CHECK_I64(ops.receive(ops.context, socket, incoming + total, ASI_UDP_MAX_BATCH - total, &received), AS_OK);
        CHECK(received >= 0);
        total += received;
    } while (total < wanted && asi_clock_ns(&clock) < deadline_ns);
    return total;
}

static void send_one(asi_udp_socket *socket, const void *bytes, int32_t length, const asi_address *to)
{
    const asi_outgoing datagram = { .bytes = bytes, .length = length, .to = to };
    int32_t sent = -1;
    CHECK_I64(ops.send(ops.context, socket, &datagram, 1, &sent), AS_OK);
    CHECK_I64(sent, 1);
}

static void port_zero_becomes_real(void)
{
    const asi_address any = fake_address("127.0.0.1", 0);
    asi_udp_socket *a = open_at(&any, NULL);
    asi_udp_socket *b = open_at(&any, NULL);
    const asi_address at_a = address_of(a);
    const asi_address at_b = address_of(b);
    CHECK(0 != asi_address_port(&at_a) && 0 != asi_address_port(&at_b));
    CHECK(asi_address_port(&at_a) != asi_address_port(&at_b));
    CHECK_I64(receive_until(a, 0), 0);
    ops.close(ops.context, a);
    ops.close(ops.context, b);
}

static void a_port_is_bound_once(void)
{
    const asi_address any = fake_address("127.0.0.1", 0);
    asi_udp_socket *first = open_at(&any, NULL);
    const asi_udp_params params = { .bind = address_of(first) };
    asi_udp_socket *second = NULL;
    CHECK_I64(ops.open(ops.context, &params, &second), AS_E_USAGE);
    CHECK(NULL == second);
    CHECK(NULL != strstr(as_error_text(), "Address already in use"));
    ops.close(ops.context, first);
}

static void batches_arrive_whole_and_in_order(void)
{
    static const int32_t lengths[] = { 1, 32, 1408, 8192, 65504, 28, 36, 40 };
    enum { COUNT = sizeof(lengths) / sizeof(lengths[0]) };
    static uint8_t bytes[COUNT][65504];
    const asi_address any = fake_address("127.0.0.1", 0);
    asi_udp_socket *to = open_at(&any, NULL);
    const asi_address target = address_of(to);
    asi_udp_socket *from = open_at(&any, &target);
    asi_outgoing outgoing[COUNT];
    for (int i = 0; i < COUNT; i++)
    {
        memset(bytes[i], i + 1, (size_t)lengths[i]);
        outgoing[i] = (asi_outgoing){ .bytes = bytes[i], .length = lengths[i] };
    }
    int32_t sent = -1;
    CHECK_I64(ops.send(ops.context, from, outgoing, COUNT, &sent), AS_OK);
    CHECK_I64(sent, COUNT);
    CHECK_I64(receive_until(to, COUNT), COUNT);
    const asi_address source = address_of(from);
    for (int i = 0; i < COUNT; i++)
    {
        CHECK_I64(incoming[i].length, lengths[i]);
        CHECK(0 == memcmp(incoming[i].buffer, bytes[i], (size_t)lengths[i]));
        CHECK_I64(asi_address_port(&incoming[i].source), asi_address_port(&source));
        CHECK_I64(incoming[i].receive_time_ns, INT64_MIN);
    }
    ops.close(ops.context, to);
    ops.close(ops.context, from);
}

/* One send, a datagram each for two receivers; and an answer to where the datagram came from. */
static void each_datagram_has_its_own_destination(void)
{
    const asi_address any = fake_address("127.0.0.1", 0);
    asi_udp_socket *a = open_at(&any, NULL);
    asi_udp_socket *b = open_at(&any, NULL);
    asi_udp_socket *from = open_at(&any, NULL);
    const asi_address at_a = address_of(a);
    const asi_address at_b = address_of(b);
    const asi_outgoing outgoing[] = {
        { .bytes = "to b", .length = 4, .to = &at_b }, { .bytes = "to a!", .length = 5, .to = &at_a }
    };
    int32_t sent = -1;
    CHECK_I64(ops.send(ops.context, from, outgoing, 2, &sent), AS_OK);
    CHECK_I64(sent, 2);
    CHECK_I64(receive_until(a, 1), 1);
    CHECK_I64(incoming[0].length, 5);
    const asi_address back = incoming[0].source;
    CHECK_I64(receive_until(b, 1), 1);
    CHECK_I64(incoming[0].length, 4);
    send_one(a, "answer", 6, &back);
    CHECK_I64(receive_until(from, 1), 1);
    CHECK_I64(incoming[0].length, 6);
    CHECK(asi_address_equal(&incoming[0].source, &at_a));
    ops.close(ops.context, a);
    ops.close(ops.context, b);
    ops.close(ops.context, from);
}

/* -- runs: datagrams that lie back to back, as a term's do; sockets that may read several into one buffer ------------------ */

#define SHARED_BUFFERS 4
#define RUN_BYTES (ASI_UDP_MAX_BATCH * 1408)

static uint8_t run_bytes[RUN_BYTES];
static uint8_t shared_buffers[SHARED_BUFFERS][ASI_UDP_BUFFER_LENGTH] __attribute__((aligned(8)));

static asi_udp_socket *open_coalescing(void)
{
    const asi_udp_params params = { .bind = fake_address("127.0.0.1", 0), .rcvbuf_length = 1 << 20, .may_coalesce = true };
    asi_udp_socket *socket;
    CHECK_I64(ops.open(ops.context, &params, &socket), AS_OK);
    return socket;
}

/* Receives what was sent, in order and with the same boundaries, from `source`; nothing after it. */
static void check_received(asi_udp_socket *to, const asi_outgoing *outgoing, int32_t count, const asi_address *source)
{
    static asi_incoming arrived[SHARED_BUFFERS * ASI_UDP_MAX_SEGMENTS];
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ns = asi_clock_ns(&clock) + DEADLINE_NS;
    int32_t total = 0;
    int32_t received = 0;
    while ((total < count && asi_clock_ns(&clock) < deadline_ns) || received > 0)
    {
        for (int i = 0; i < SHARED_BUFFERS; i++)
        {
            arrived[i] = (asi_incoming){ .buffer = shared_buffers[i], .capacity = ASI_UDP_BUFFER_LENGTH };
        }
        CHECK_I64(ops.receive(ops.context, to, arrived, SHARED_BUFFERS, &received), AS_OK);
        for (int32_t i = 0; i < received; i++)
        {
            CHECK(total < count);
            CHECK_I64(arrived[i].length, outgoing[total].length);
            CHECK(0 == memcmp(arrived[i].buffer, outgoing[total].bytes, (size_t)arrived[i].length));
            CHECK_I64((int64_t)((uintptr_t)arrived[i].buffer % sizeof(int64_t)), 0);
            CHECK(asi_address_equal(&arrived[i].source, source));
            CHECK_I64(arrived[i].receive_time_ns, INT64_MIN);
            total++;
        }
    }
    CHECK_I64(total, count);
}

static void send_run(asi_udp_socket *from, asi_udp_socket *to, const int32_t *lengths, int32_t count, const asi_address *target)
{
    asi_outgoing outgoing[ASI_UDP_MAX_BATCH];
    const asi_address source = address_of(from);
    int32_t offset = 0;
    for (int32_t i = 0; i < count; i++)
    {
        outgoing[i] = (asi_outgoing){ .bytes = run_bytes + offset, .length = lengths[i], .to = target };
        offset += lengths[i];
    }
    CHECK(offset <= RUN_BYTES);
    int32_t sent = -1;
    CHECK_I64(ops.send(ops.context, from, outgoing, count, &sent), AS_OK);
    CHECK_I64(sent, count);
    check_received(to, outgoing, count, &source);
}

/* Every shape of a run: by one length, an end that is shorter, a change in the middle, lengths no multiple of 8, longer than
 * one send can be, more datagrams than one send can have. */
static void runs_keep_their_boundaries(void)
{
    static const struct { int32_t count; int32_t length; int32_t last; int32_t odd_at; int32_t odd_length; } SHAPES[] = {
        { 2, 1408, 1408, -1, 0 }, { 40, 1408, 96, -1, 0 }, { ASI_UDP_MAX_BATCH, 1408, 1408, -1, 0 }, { 128, 32, 32, -1, 0 },
        { 64, 33, 7, -1, 0 }, { 30, 320, 320, 11, 64 }, { 30, 320, 320, 11, 1408 }, { 9, 8192, 8192, -1, 0 },
        { 2, 65504, 65504, -1, 0 }, { 100, 1, 1, -1, 0 }
    };
    for (int32_t i = 0; i < RUN_BYTES; i++)
    {
        run_bytes[i] = (uint8_t)(i * 31 + i / 251);
    }
    asi_udp_socket *to = open_coalescing();
    const asi_address any = fake_address("127.0.0.1", 0);
    const asi_address target = address_of(to);
    asi_udp_socket *connected = open_at(&any, &target);
    asi_udp_socket *unconnected = open_at(&any, NULL);
    for (size_t i = 0; i < sizeof(SHAPES) / sizeof(SHAPES[0]); i++)
    {
        int32_t lengths[ASI_UDP_MAX_BATCH];
        for (int32_t k = 0; k < SHAPES[i].count; k++)
        {
            lengths[k] = k == SHAPES[i].odd_at ? SHAPES[i].odd_length : SHAPES[i].length;
        }
        lengths[SHAPES[i].count - 1] = SHAPES[i].last;
        send_run(connected, to, lengths, SHAPES[i].count, NULL);
        send_run(unconnected, to, lengths, SHAPES[i].count, &target);
    }
    ops.close(ops.context, to);
    ops.close(ops.context, connected);
    ops.close(ops.context, unconnected);
}

/* A socket that did not ask for it gets a run's datagrams one to a buffer, never more than it has buffers. */
static void others_get_runs_apart(void)
{
    const asi_address any = fake_address("127.0.0.1", 0);
    asi_udp_socket *to = open_at(&any, NULL);
    const asi_address target = address_of(to);
    asi_udp_socket *from = open_at(&any, &target);
    asi_outgoing outgoing[20];
    for (int32_t i = 0; i < 20; i++)
    {
        outgoing[i] = (asi_outgoing){ .bytes = run_bytes + i * 1408, .length = 1408 };
    }
    int32_t sent = -1;
    CHECK_I64(ops.send(ops.context, from, outgoing, 20, &sent), AS_OK);
    CHECK_I64(sent, 20);
    CHECK_I64(receive_until(to, 20), 20);
    for (int32_t i = 0; i < 20; i++)
    {
        CHECK_I64(incoming[i].length, 1408);
        CHECK(incoming[i].buffer == buffers[i]);
        CHECK(0 == memcmp(incoming[i].buffer, outgoing[i].bytes, 1408));
    }
    ops.close(ops.context, to);
    ops.close(ops.context, from);
}

static void long_datagrams_are_cut(void)
{
    const asi_address any = fake_address("127.0.0.1", 0);
    asi_udp_socket *to = open_at(&any, NULL);
    const asi_address target = address_of(to);
    asi_udp_socket *from = open_at(&any, &target);
    uint8_t bytes[200];
    memset(bytes, 7, sizeof(bytes));
    send_one(from, bytes, sizeof(bytes), NULL);
    incoming[0].capacity = 64;
    incoming[0].buffer[64] = 99;
    CHECK_I64(receive_until(to, 1), 1);
    CHECK_I64(incoming[0].length, 64);
    CHECK_I64(incoming[0].buffer[64], 99);
    ops.close(ops.context, to);
    ops.close(ops.context, from);
    prepare();
}

/* Spec: 04 §3.5, §24 T22 - no receiver: neither sending nor receiving fails, whatever ICMP the kernel gets. */
static void a_missing_peer_is_no_error(void)
{
    const asi_address any = fake_address("127.0.0.1", 0);
    asi_udp_socket *gone = open_at(&any, NULL);
    const asi_address nowhere = address_of(gone);
    ops.close(ops.context, gone);
    asi_udp_socket *from = open_at(&any, &nowhere);
    for (int i = 0; i < 20; i++)
    {
        const asi_outgoing datagram = { .bytes = "x", .length = 1 };
        int32_t sent = -1;
        CHECK_I64(ops.send(ops.context, from, &datagram, 1, &sent), AS_OK);
        CHECK(0 == sent || 1 == sent);
        CHECK_I64(receive_until(from, 0), 0);
    }
    ops.close(ops.context, from);
}

static void connected_sockets_hear_their_peer_only(void)
{
    const asi_address any = fake_address("127.0.0.1", 0);
    asi_udp_socket *peer = open_at(&any, NULL);
    asi_udp_socket *stranger = open_at(&any, NULL);
    const asi_address at_peer = address_of(peer);
    asi_udp_socket *socket = open_at(&any, &at_peer);
    const asi_address at_socket = address_of(socket);
    const asi_address at_stranger = address_of(stranger);
    send_one(stranger, "no", 2, &at_socket);
    send_one(peer, "yes", 3, &at_socket);
    CHECK_I64(receive_until(socket, 1), 1);
    CHECK_I64(incoming[0].length, 3);
    /* It can change its peer. */
    CHECK_I64(ops.reconnect(ops.context, socket, &at_stranger), AS_OK);
    const asi_address moved = address_of(socket);
    send_one(stranger, "now", 3, &moved);
    CHECK_I64(receive_until(socket, 1), 1);
    send_one(socket, "hello", 5, NULL);
    CHECK_I64(receive_until(stranger, 1), 1);
    CHECK_I64(receive_until(peer, 0), 0);
    ops.close(ops.context, socket);
    ops.close(ops.context, peer);
    ops.close(ops.context, stranger);
}

static asi_udp_params multicast_params(const char *group, uint16_t port)
{
    return (asi_udp_params){
        .bind = fake_address("0.0.0.0", port),
        .group = fake_address(group, port),
        .interface = fake_address("127.0.0.1", 0),
        .interface_index = 1
    };
}

/* As publication and two subscriptions of one machine have it: data to the odd address, control to the even one. */
static void groups_reach_every_member(void)
{
    const uint16_t port = (uint16_t)free_port();
    const asi_address data_group = fake_address("224.20.30.39", port);
    const asi_address control_group = fake_address("224.20.30.40", port);
    asi_udp_params receiver = multicast_params("224.20.30.39", port);
    asi_udp_params sender = multicast_params("224.20.30.40", port);
    sender.connect = data_group;
    asi_udp_socket *a;
    asi_udp_socket *b;
    asi_udp_socket *publication;
    CHECK_I64(ops.open(ops.context, &receiver, &a), AS_OK);
    CHECK_I64(ops.open(ops.context, &receiver, &b), AS_OK);
    CHECK_I64(ops.open(ops.context, &sender, &publication), AS_OK);
    send_one(publication, "data", 4, NULL);
    CHECK_I64(receive_until(a, 1), 1);
    CHECK_I64(incoming[0].length, 4);
    CHECK_I64(receive_until(b, 1), 1);
    send_one(a, "status", 6, &control_group);
    int32_t heard = 0;
    for (int32_t i = 0, received = receive_until(publication, 1); i < received; i++)
    {
        heard += 6 == incoming[i].length ? 1 : 0;
    }
    CHECK_I64(heard, 1);
    ops.close(ops.context, a);
    ops.close(ops.context, b);
    ops.close(ops.context, publication);
}

/* Spec: 11 N8, D12. Both sockets are bound to the wildcard and one port. */
static void a_group_reaches_no_other(void)
{
    const uint16_t port = (uint16_t)free_port();
    const asi_address first_group = fake_address("224.20.30.39", port);
    asi_udp_params first = multicast_params("224.20.30.39", port);
    asi_udp_params second = multicast_params("224.20.30.41", port);
    asi_udp_params sender = multicast_params("224.20.30.43", (uint16_t)free_port());
    asi_udp_socket *a;
    asi_udp_socket *b;
    asi_udp_socket *from;
    CHECK_I64(ops.open(ops.context, &first, &a), AS_OK);
    CHECK_I64(ops.open(ops.context, &second, &b), AS_OK);
    CHECK_I64(ops.open(ops.context, &sender, &from), AS_OK);
    send_one(from, "data", 4, &first_group);
    CHECK_I64(receive_until(a, 1), 1);
    CHECK_I64(receive_until(b, 0), 0);
    ops.close(ops.context, a);
    ops.close(ops.context, b);
    ops.close(ops.context, from);
}

static void timestamps_when_asked_for(void)
{
    asi_udp_params params = { .bind = fake_address("127.0.0.1", 0), .has_receive_timestamps = true };
    asi_udp_socket *to;
    CHECK_I64(ops.open(ops.context, &params, &to), AS_OK);
    const asi_address target = address_of(to);
    asi_udp_socket *from = open_at(&params.bind, &target);
    const asi_clock clock = asi_clock_system();
    const int64_t before_ns = asi_clock_epoch_ns(&clock);
    send_one(from, "x", 1, NULL);
    CHECK_I64(receive_until(to, 1), 1);
    if (is_kernel)
    {
        CHECK(incoming[0].receive_time_ns >= before_ns - 1000000);
        CHECK(incoming[0].receive_time_ns <= asi_clock_epoch_ns(&clock));
    }
    else
    {
        CHECK_I64(incoming[0].receive_time_ns, 1234567);
    }
    ops.close(ops.context, to);
    ops.close(ops.context, from);
}

static void there_is_a_loopback_interface(void)
{
    asi_interface interfaces[64];
    int32_t count = 0;
    CHECK_I64(ops.interfaces(ops.context, interfaces, 64, &count), AS_OK);
    int32_t loopbacks = 0;
    for (int32_t i = 0; i < count; i++)
    {
        const asi_address loopback = fake_address("127.0.0.1", 0);
        loopbacks += interfaces[i].is_up && interfaces[i].is_loopback && 8 == interfaces[i].prefix_length &&
            asi_address_equal(&interfaces[i].address, &loopback);
    }
    CHECK(loopbacks >= 1);
}

/* Agents of many sockets ask which of them are readable; those that do not know are read each time. */
static void a_poller_tells_who_has_something(void)
{
    enum { SOCKETS = 12 };
    const asi_address any = fake_address("127.0.0.1", 0);
    const asi_clock clock = asi_clock_system();
    asi_udp_socket *sockets[SOCKETS];
    asi_udp_poller poller;
    void *tags[ASI_UDP_POLLER_BATCH];
    asi_udp_poller_open(&poller);
    for (int i = 0; i < SOCKETS; i++)
    {
        CHECK(!asi_udp_poller_is_worth_it(&poller) || i > 1);
        sockets[i] = open_at(&any, NULL);
        asi_udp_poller_add(&poller, &ops, sockets[i], &sockets[i]);
    }
    CHECK_I64(asi_udp_poller_is_worth_it(&poller), NULL != ops.pollable_fd);
    for (int at = 0; at < SOCKETS && asi_udp_poller_is_worth_it(&poller); at += 5)
    {
        const asi_address target = address_of(sockets[at]);
        CHECK_I64(asi_udp_poller_poll(&poller, tags), 0);
        send_one(sockets[1], "x", 1, &target);
        int32_t ready = 0;
        for (const int64_t deadline_ns = asi_clock_ns(&clock) + DEADLINE_NS; 0 == ready && asi_clock_ns(&clock) < deadline_ns;)
        {
            ready = asi_udp_poller_poll(&poller, tags);
        }
        CHECK_I64(ready, 1);
        CHECK(tags[0] == &sockets[at]);
        CHECK_I64(receive_until(sockets[at], 1), 1);
    }
    const asi_address target = address_of(sockets[0]);
    send_one(sockets[1], "x", 1, &target);
    for (int i = 0; i < SOCKETS; i++)
    {
        asi_udp_poller_remove(&poller, &ops, sockets[i]);
        CHECK(i < SOCKETS - 2 || !asi_udp_poller_is_worth_it(&poller));
        CHECK(NULL == ops.pollable_fd || 0 == asi_udp_poller_poll(&poller, tags));
        ops.close(ops.context, sockets[i]);
    }
    CHECK_I64(poller.unwatched_count, 0);
    asi_udp_poller_close(&poller);
}

static void closing_nothing_is_harmless(void) { ops.close(ops.context, NULL); }

static void run_suite(const char *name)
{
    printf("-- %s\n", name);
    prepare();
    RUN(port_zero_becomes_real);
    RUN(a_port_is_bound_once);
    RUN(batches_arrive_whole_and_in_order);
    RUN(each_datagram_has_its_own_destination);
    RUN(runs_keep_their_boundaries);
    RUN(others_get_runs_apart);
    RUN(long_datagrams_are_cut);
    RUN(a_missing_peer_is_no_error);
    RUN(connected_sockets_hear_their_peer_only);
    RUN(groups_reach_every_member);
    RUN(a_group_reaches_no_other);
    RUN(timestamps_when_asked_for);
    RUN(there_is_a_loopback_interface);
    RUN(a_poller_tells_who_has_something);
    RUN(closing_nothing_is_harmless);
}

int main(void)
{
    const asi_udp_ops kernel = asi_udp_ops_kernel();
    ops = kernel;
    is_kernel = true;
    run_suite("kernel");

    asi_udp_loss *loss;
    CHECK_I64(asi_udp_loss_open(&kernel, ASI_LOSS_INCOMING, "loss", "rate=0.0|seed=1", &loss), AS_OK);
    ops = asi_udp_loss_ops(loss);
    run_suite("kernel behind a loss generator that loses nothing");
    CHECK_I64(asi_udp_loss_dropped_count(loss), 0);
    asi_udp_loss_close(loss);

    fake_net net = { .epoch_ns = 1234567 };
    ops = fake_net_ops(&net);
    is_kernel = false;
    run_suite("network in memory");

    const int64_t now_ns = 1234567;
    sim_net simulated;
    sim_net_init(&simulated, &now_ns, 1);
    ops = sim_net_ops(sim_net_add_host(&simulated, 0));
    run_suite("network of the simulation, without faults");
    sim_net_close(&simulated);
    return 0;
}
