/* The rig of rig.h over a network in memory (net/fake_net.h), with one socket of the test's own at 127.0.0.1:24100. Nothing takes
 * real time: sent datagrams arrive at once, and clients never time out. */
#ifndef AS_TESTS_DRIVER_MEMORY_RIG_H
#define AS_TESTS_DRIVER_MEMORY_RIG_H

#include "net/fake_net.h"
#include "rig.h"

typedef struct memory_rig
{
    test_rig rig; /* first: the clock's context */
    fake_net net;
    asi_udp_socket *peer;
} memory_rig;

static inline void memory_rig_open_with(
    memory_rig *h, void (*adjust)(asi_driver_settings *settings), asi_name_resolver resolver)
{
    memset(h, 0, sizeof(*h));
    h->rig.now_ns = RIG_SECOND;
    scratch_create(h->rig.dir);
    asi_driver_settings settings = rig_settings(h->rig.dir);
    settings.term_buffer_length = AS_TERM_MIN_LENGTH;
    settings.term_buffer_sparse_file = true;
    settings.error_buffer_length = 64 * 1024;
    settings.client_liveness_timeout_ns = 1000 * RIG_SECOND; /* no keepalives are sent */
    settings.publication_unblock_timeout_ns = 2000 * RIG_SECOND;
    if (NULL != adjust)
    {
        adjust(&settings);
    }
    asi_driver_dependencies dependencies = {
        .clock = { .nano_time = rig_nano_time, .epoch_ms = rig_epoch_ms, .context = &h->rig },
        .ops = fake_net_ops(&h->net),
        .resolver = resolver
    };
    asi_rand_seed(&dependencies.rand, 4711);
    CHECK_I64(asi_driver_open_with(&settings, &dependencies, rig_on_termination, &h->rig, &h->rig.driver), AS_OK);
    rig_attach(&h->rig);
    const asi_udp_params peer = { .bind = fake_address("127.0.0.1", 24100) };
    CHECK_I64(fake_open(&h->net, &peer, &h->peer), AS_OK);
}

static inline void memory_rig_open(memory_rig *h, void (*adjust)(asi_driver_settings *settings))
{
    memory_rig_open_with(h, adjust, asi_name_resolver_system());
}

static inline void memory_rig_close(memory_rig *h)
{
    fake_close(&h->net, h->peer);
    rig_close(&h->rig);
}

static inline void memory_rig_cycles(memory_rig *h, int count)
{
    for (int i = 0; i < count; i++)
    {
        rig_cycle(&h->rig);
    }
}

/* To that port, from the test's socket. */
static inline void memory_rig_send(memory_rig *h, const void *bytes, int32_t length, uint16_t port)
{
    const asi_address to = fake_address("127.0.0.1", port);
    const asi_outgoing datagram = { .bytes = bytes, .length = length, .to = &to };
    int32_t sent;
    CHECK_I64(fake_send(&h->net, h->peer, &datagram, 1, &sent), AS_OK);
}

#define RUN_IN_MEMORY_RIG(test) RUN_IN(memory_rig, memory_rig_open(&fixture, NULL), test, memory_rig_close(&fixture))

#endif
