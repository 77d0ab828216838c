/* The kernel's sockets where batched receive and send are not available. test_udp_ops_conformance.c tests them where they are. */
#include "driver/net/udp_batch.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "check.h"
#include "driver/net/udp_socket.h"

#define DEADLINE_NS 10000000000LL
#define BUFFERS 2

static uint8_t bytes[8 * 1408];
static uint8_t buffers[BUFFERS][ASI_UDP_BUFFER_LENGTH] __attribute__((aligned(8)));

static asi_udp_socket *open_socket(const asi_udp_ops *ops, const asi_address *connect, bool has_receive_timestamps)
{
    asi_udp_params params = { .bind = asi_address_any(AF_INET), .rcvbuf_length = 1 << 20, .may_coalesce = true,
        .has_receive_timestamps = has_receive_timestamps };
    CHECK(1 == inet_pton(AF_INET, "127.0.0.1", &params.bind.v4.sin_addr));
    if (NULL != connect)
    {
        params.connect = *connect;
    }
    asi_udp_socket *socket;
    CHECK_I64(ops->open(ops->context, &params, &socket), AS_OK);
    return socket;
}

static void send_and_receive(
    const asi_udp_ops *ops, asi_udp_socket *from, asi_udp_socket *to, const int32_t *lengths, int32_t count)
{
    static asi_incoming incoming[BUFFERS * ASI_UDP_MAX_SEGMENTS];
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ns = asi_clock_ns(&clock) + DEADLINE_NS;
    asi_outgoing outgoing[8];
    int32_t offset = 0;
    for (int32_t i = 0; i < count; i++)
    {
        outgoing[i] = (asi_outgoing){ .bytes = bytes + offset, .length = lengths[i] };
        offset += lengths[i];
    }
    int32_t sent = -1;
    CHECK_I64(ops->send(ops->context, from, outgoing, count, &sent), AS_OK);
    CHECK_I64(sent, count);
    int32_t total = 0;
    while (total < count && asi_clock_ns(&clock) < deadline_ns)
    {
        int32_t received = -1;
        for (int i = 0; i < BUFFERS; i++)
        {
            incoming[i] = (asi_incoming){ .buffer = buffers[i], .capacity = ASI_UDP_BUFFER_LENGTH };
        }
        CHECK_I64(ops->receive(ops->context, to, incoming, BUFFERS, &received), AS_OK);
        for (int32_t i = 0; i < received; i++, total++)
        {
            CHECK(total < count);
            CHECK_I64(incoming[i].length, lengths[total]);
            CHECK(0 == memcmp(incoming[i].buffer, outgoing[total].bytes, (size_t)lengths[total]));
            CHECK_I64(INT64_MIN != incoming[i].receive_time_ns, to->has_receive_timestamps);
        }
    }
    CHECK_I64(total, count);
}

static const int32_t SHAPE[] = { 1408, 1408, 1408, 64, 1408, 1408 };

/* Linux refuses runs of a socket without checksums, as it does on routes whose MTU is too small: the datagrams go alone, and
 * nobody notices. */
static void refused_runs_go_one_by_one(void)
{
    const asi_udp_ops ops = asi_udp_ops_kernel();
    asi_address target;
    asi_udp_socket *to = open_socket(&ops, NULL, false);
    CHECK_I64(ops.bound_address(ops.context, to, &target), AS_OK);
    asi_udp_socket *from = open_socket(&ops, &target, false);
    CHECK(from->segment_limit >= 1408);
    const int on = 1;
    CHECK(0 == setsockopt(from->send_fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)));
    send_and_receive(&ops, from, to, SHAPE, 6);
    CHECK(from->segment_limit < 1408);
    send_and_receive(&ops, from, to, SHAPE, 6);
    ops.close(ops.context, to);
    ops.close(ops.context, from);
}

/* Datagrams of one length, and a shorter one behind them, are one message: they come out of one buffer. */
static void a_run_is_one_message(void)
{
    const asi_udp_ops ops = asi_udp_ops_kernel();
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ns = asi_clock_ns(&clock) + DEADLINE_NS;
    static asi_incoming incoming[ASI_UDP_MAX_SEGMENTS];
    asi_outgoing outgoing[4];
    asi_address target;
    asi_udp_socket *to = open_socket(&ops, NULL, false);
    CHECK_I64(ops.bound_address(ops.context, to, &target), AS_OK);
    asi_udp_socket *from = open_socket(&ops, &target, false);
    for (int32_t i = 0; i < 4; i++)
    {
        outgoing[i] = (asi_outgoing){ .bytes = bytes + i * 1408, .length = 3 == i ? 64 : 1408 };
    }
    int32_t sent;
    int32_t received = 0;
    CHECK(to->is_coalescing && from->segment_limit >= 1408);
    CHECK_I64(ops.send(ops.context, from, outgoing, 4, &sent), AS_OK);
    while (0 == received && asi_clock_ns(&clock) < deadline_ns)
    {
        incoming[0] = (asi_incoming){ .buffer = buffers[0], .capacity = ASI_UDP_BUFFER_LENGTH };
        CHECK_I64(ops.receive(ops.context, to, incoming, 1, &received), AS_OK);
    }
    CHECK_I64(received, 4);
    ops.close(ops.context, to);
    ops.close(ops.context, from);
}

static void a_kernel_without_runs_and_coalescing(void)
{
    const asi_udp_ops ops = asi_udp_ops_kernel();
    asi_address target;
    asi_udp_socket *to = open_socket(&ops, NULL, true); /* times are of datagrams: no coalescing */
    CHECK(!to->is_coalescing);
    CHECK_I64(ops.bound_address(ops.context, to, &target), AS_OK);
    asi_udp_socket *from = open_socket(&ops, &target, false);
    from->segment_limit = 0; /* as the probe leaves it where the kernel knows nothing of runs */
    send_and_receive(&ops, from, to, SHAPE, 6);
    ops.close(ops.context, to);
    ops.close(ops.context, from);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(bytes); i++)
    {
        bytes[i] = (uint8_t)(i * 31 + i / 251);
    }
    RUN(refused_runs_go_one_by_one);
    RUN(a_run_is_one_message);
    RUN(a_kernel_without_runs_and_coalescing);
    return 0;
}
