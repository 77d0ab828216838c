/* The rig of rig.h with a raw UDP socket as the peer's driver: Q plays subscribers' drivers, P publishers'. The driver runs
 * invoked under the test's clock, over the kernel's loopback, where datagrams arrive at once. The rig waits up to two seconds
 * of real time for an expected frame; "nothing" means that no frame has arrived after the given cycles. */
#ifndef AS_TESTS_DRIVER_NETWORK_RIG_H
#define AS_TESTS_DRIVER_NETWORK_RIG_H

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include "ports.h"
#include "rig.h"
#include "wire/frame.h"

#define NETWORK_STREAM 1001
#define NETWORK_DATAGRAM_CAPACITY 65536

typedef struct peer
{
    int fd;
    int port;
    struct sockaddr_in driver; /* source of the last datagram; where sends go */
    int64_t length;            /* of the last datagram */
    uint8_t bytes[NETWORK_DATAGRAM_CAPACITY] __attribute__((aligned(8)));
} peer;

static inline void peer_open_at(peer *p, const char *host, int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    socklen_t length = sizeof(address);
    CHECK(1 == inet_pton(AF_INET, host, &address.sin_addr));
    p->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    CHECK(p->fd >= 0 && 0 == bind(p->fd, (struct sockaddr *)&address, length) &&
        0 == getsockname(p->fd, (struct sockaddr *)&address, &length));
    p->port = ntohs(address.sin_port);
    p->length = 0;
}

static inline void peer_open(peer *p) { peer_open_at(p, "127.0.0.1", 0); }

static inline void peer_close(peer *p) { close(p->fd); }

/* A datagram that is there already. */
static inline bool peer_receive(peer *p)
{
    socklen_t length = sizeof(p->driver);
    p->length = recvfrom(p->fd, p->bytes, sizeof(p->bytes), 0, (struct sockaddr *)&p->driver, &length);
    return p->length >= 0;
}

static inline void peer_expect_none(peer *p)
{
    if (peer_receive(p))
    {
        fprintf(stderr, "unexpected frame of type %u, flags %02x, %" PRId64 " bytes\n", (unsigned)p->bytes[6], p->bytes[5],
            p->length);
        CHECK(false);
    }
}

static inline uint16_t peer_type(const peer *p) { return asi_get_u16(p->bytes + 6); }

/* The next datagram must be of this type. */
static inline const void *peer_expect(peer *p, uint16_t type)
{
    struct pollfd wait = { .fd = p->fd, .events = POLLIN };
    CHECK(1 == poll(&wait, 1, 2000));
    CHECK(peer_receive(p));
    CHECK_I64(peer_type(p), type);
    return p->bytes;
}

/* Drops everything that is there; the number of datagrams of a type. */
static inline int peer_drain(peer *p, uint16_t type)
{
    int count = 0;
    while (peer_receive(p))
    {
        count += type == peer_type(p) ? 1 : 0;
    }
    return count;
}

static inline void peer_send_to(const peer *p, const void *bytes, size_t length, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    CHECK_I64(sendto(p->fd, bytes, length, 0, (struct sockaddr *)&to, sizeof(to)), length);
}

/* To the source of the last datagram. */
static inline void peer_send(const peer *p, const void *bytes, size_t length)
{
    CHECK_I64(sendto(p->fd, bytes, length, 0, (const struct sockaddr *)&p->driver, sizeof(p->driver)), length);
}

/* Cycles without time. */
static inline void rig_cycles(test_rig *rig, int count)
{
    for (int i = 0; i < count; i++)
    {
        rig_cycle(rig);
    }
}

/* Time in steps of one millisecond, a duty cycle after each. */
static inline void rig_run(test_rig *rig, int64_t duration_ms)
{
    for (int64_t i = 0; i < duration_ms; i++)
    {
        rig->now_ns += RIG_MS;
        rig_cycle(rig);
    }
}

/* Frames as peers make them. */
static inline asi_status_frame make_status(const rig_publication *publication, int64_t position, int32_t window, uint8_t flags)
{
    const asi_log *log = &publication->log;
    return (asi_status_frame){
        .prefix = { .frame_length = ASI_STATUS_LENGTH, .flags = flags, .type = ASI_FRAME_STATUS },
        .session_id = publication->ready.session_id,
        .stream_id = publication->ready.stream_id,
        .consumption_term_id = asi_log_term_id_of_position(position, log->position_bits, log->initial_term_id),
        .consumption_term_offset = (int32_t)(position & (log->term_length - 1)),
        .receiver_window = window,
        .receiver_id = 4711
    };
}

static inline void send_status(
    test_rig *rig, const peer *q, const rig_publication *publication, int64_t position, int32_t window, uint8_t flags)
{
    const asi_status_frame frame = make_status(publication, position, window, flags);
    peer_send(q, &frame, ASI_STATUS_LENGTH);
    rig_cycles(rig, 3);
}

static inline void send_nak(
    test_rig *rig, const peer *q, const rig_publication *publication, int64_t position, int32_t offset, int32_t length)
{
    const asi_log *log = &publication->log;
    const asi_nak_frame frame = {
        .prefix = { .frame_length = sizeof(frame), .type = ASI_FRAME_NAK },
        .session_id = publication->ready.session_id,
        .stream_id = publication->ready.stream_id,
        .term_id = asi_log_term_id_of_position(position, log->position_bits, log->initial_term_id),
        .term_offset = offset,
        .length = length
    };
    peer_send(q, &frame, sizeof(frame));
    rig_cycles(rig, 2);
}

static inline void network_settings(asi_driver_settings *settings)
{
    settings->term_buffer_length = AS_TERM_MIN_LENGTH;
}

/* Adds a client's first publication (registration id 10) and maps it. */
static inline void rig_add_network_publication(test_rig *rig, const char *channel, bool exclusive, rig_publication *publication)
{
    rig_send_add(rig, exclusive ? ASI_CMD_ADD_EXCLUSIVE_PUBLICATION : ASI_CMD_ADD_PUBLICATION, 1, 10, NETWORK_STREAM, channel);
    rig_expect_i32(rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect_publication(rig, exclusive, publication);
}

#define RUN_IN_NETWORK_RIG(test) RUN_IN(test_rig, rig_open(&fixture, network_settings), test, rig_close(&fixture))

#endif
