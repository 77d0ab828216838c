/* Two drivers of ours with a client each, in one process, that communicate over the kernel's loopback: A publishes, B subscribes.
 * The test's thread invokes drivers and clients. Nothing sleeps: TURN_UNTIL runs both worlds until a condition holds or
 * 20 s have passed. Timers of the drivers are short, so that a test of a whole life takes well under a second. */
#ifndef AS_TESTS_DRIVER_NETWORK_WORLDS_H
#define AS_TESTS_DRIVER_NETWORK_WORLDS_H

#include "client/world.h"
#include "ports.h"
#include "shm/cnc.h"
#include "shm/counters.h"

typedef struct worlds
{
    world a;
    world b;
} worlds;

typedef struct setting_pair
{
    const char *name;
    const char *value;
} setting_pair;

#define MAX_SETTINGS 16

static inline void worlds_open_one(world *w, const char *mode, const setting_pair *settings)
{
    static const setting_pair COMMON[] = {
        { "aeron.shared.idle.strategy", "yield" },
        { "aeron.conductor.idle.strategy", "yield" },
        { "aeron.sender.idle.strategy", "yield" },
        { "aeron.receiver.idle.strategy", "yield" },
        { "aeron.timer.interval", "10ms" },
        { "aeron.term.buffer.length", "64k" },
        { "aeron.image.liveness.timeout", "2s" },
        { "aeron.publication.linger.timeout", "100ms" },
        { "aeron.rcv.status.message.timeout", "20ms" },
        { "aeron.low.file.store.warning.threshold", "0" },
    };
    *w = (world){ .has_threads = 0 != strcmp(mode, "INVOKER") };
    scratch_create(w->scratch);
    snprintf(w->dir, sizeof(w->dir), "%s/aeron", w->scratch);
    as_driver_config *config;
    CHECK_I64(as_driver_config_open(&config), AS_OK);
    world_set(config, "aeron.dir", w->dir);
    world_set(config, "aeron.threading.mode", mode);
    for (size_t i = 0; i < sizeof(COMMON) / sizeof(COMMON[0]); i++)
    {
        world_set(config, COMMON[i].name, COMMON[i].value);
    }
    for (; NULL != settings && NULL != settings->name; settings++)
    {
        world_set(config, settings->name, settings->value);
    }
    CHECK_I64(as_driver_open(config, NULL, NULL, &w->driver), AS_OK);
    as_driver_config_close(config);
    CHECK_I64(as_driver_start(w->driver), AS_OK);
    as_client_options options;
    world_options(w, &options);
    CHECK_I64(as_client_open(&options, &w->client), AS_OK);
}

static inline void worlds_open(worlds *ws, const char *mode, const setting_pair *of_a, const setting_pair *of_b)
{
    worlds_open_one(&ws->a, mode, of_a);
    worlds_open_one(&ws->b, mode, of_b);
}

static inline void worlds_close(worlds *ws)
{
    world_close(&ws->a);
    world_close(&ws->b);
}

static inline void worlds_turn(worlds *ws)
{
    world_turn(&ws->a);
    world_turn(&ws->b);
}

#define TURN_UNTIL(ws, condition)                                        \
    do                                                                   \
    {                                                                    \
        const int64_t turn_deadline_ns = test_now_ns() + TIMEOUT_NS;    \
        while (!(condition))                                             \
        {                                                                \
            CHECK(test_now_ns() < turn_deadline_ns && #condition);       \
            worlds_turn(ws);                                             \
        }                                                                \
    } while (0)

static inline int64_t world_counter(const world *w, int32_t id)
{
    asi_cnc cnc;
    asi_counters counters;
    CHECK_I64(asi_cnc_open_untrusted(&cnc, w->dir), AS_OK);
    CHECK_I64(asi_counters_init(&counters, cnc.counters_metadata, cnc.lengths.counters_metadata, cnc.counters_values,
        cnc.lengths.counters_values), AS_OK);
    const int64_t value = asi_load_acquire_i64(asi_counter_addr(&counters, id));
    asi_cnc_close(&cnc);
    return value;
}

/* Messages of changing length whose number determines every byte, published as fast as they are accepted. */
typedef struct stream_check
{
    int64_t next_number;
    int64_t bytes;
} stream_check;

#define MESSAGE_CAPACITY 4096

static inline int64_t message_length(int64_t number) { return 8 + (number * 37) % 3000; }

static inline void make_message(int64_t number, uint8_t *to)
{
    const int64_t length = message_length(number);
    asi_put_i64(to, number);
    for (int64_t i = 8; i < length; i++)
    {
        to[i] = (uint8_t)(number * 31 + i);
    }
}

static inline void check_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)header;
    stream_check *check = context;
    uint8_t expected[MESSAGE_CAPACITY];
    CHECK_I64(asi_get_i64(data), check->next_number);
    CHECK_I64(length, message_length(check->next_number));
    make_message(check->next_number, expected);
    CHECK(0 == memcmp(expected, data, (size_t)length));
    check->next_number++;
    check->bytes += length;
}

/* Everything is published by A and read by B, each byte as it was. Drivers on threads are given way to only when nothing moves:
 * beside other programs a yield takes milliseconds. */
static inline void run_stream(worlds *ws, as_publication *publication, as_subscription *subscription, int64_t count)
{
    stream_check check = { .next_number = 0 };
    as_fragment_assembler *assembler = NULL;
    CHECK_I64(as_fragment_assembler_open(check_message, &check, &assembler), AS_OK);
    uint8_t message[MESSAGE_CAPACITY];
    const int64_t deadline_ns = test_now_ns() + TIMEOUT_NS;
    for (int64_t number = 0; check.next_number < count;)
    {
        CHECK(test_now_ns() < deadline_ns);
        bool has_moved = false;
        if (number < count)
        {
            make_message(number, message);
            const int64_t position = as_publication_offer(publication, message, message_length(number));
            CHECK(position > 0 || AS_BACK_PRESSURED == position || AS_ADMIN_ACTION == position || AS_NOT_CONNECTED == position);
            has_moved = position > 0;
            number += has_moved ? 1 : 0;
        }
        const int64_t fragments = as_subscription_poll(subscription, as_fragment_assembler_on_fragment, assembler, 10);
        CHECK(fragments >= 0);
        if (!ws->a.has_threads || (!has_moved && 0 == fragments))
        {
            worlds_turn(ws);
        }
    }
    as_fragment_assembler_close(assembler);
}

#endif
