/* Goal: receivers get every record in order or learn that they were overtaken, never a torn one; stock bytes are read and
 * written alike. Method: single steps, golden cnc.dat, a transmitter thread against receivers, random bytes. Spec: 01 §4. */
#include "shm/broadcast.h"

#include <pthread.h>
#include <sched.h>

#include "shm/cnc.h"
#include "support.h"

#define CAPACITY 1024
#define SECTION (CAPACITY + ASI_BROADCAST_TRAILER_LENGTH)

typedef struct collected
{
    int64_t count;
    int32_t type_id;
    int64_t length;
    uint8_t message[CAPACITY];
} collected;

static void collect(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    collected *to = context;
    to->count++;
    to->type_id = type_id;
    to->length = length;
    memcpy(to->message, message, (size_t)length);
}

static uint8_t *section_create(int64_t length)
{
    uint8_t *section = aligned_alloc(64, (size_t)asi_align_i64(length, 64));
    CHECK(NULL != section);
    memset(section, 0, (size_t)length);
    return section;
}

static void refuses_bad_lengths_and_types(void)
{
    uint8_t *section = section_create(SECTION);
    asi_broadcast broadcast;
    asi_broadcast_receiver receiver;
    static const int64_t BAD[] = { 0, -1, 128, 128 + 8, 128 + 1000, INT64_MAX };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
    {
        CHECK_I64(asi_broadcast_init(&broadcast, section, BAD[i]), AS_E_DATA);
        CHECK_I64(asi_broadcast_receiver_open(&receiver, section, BAD[i]), AS_E_DATA);
    }
    CHECK_I64(asi_broadcast_init(&broadcast, section, SECTION), AS_OK);
    CHECK_I64(asi_broadcast_transmit(&broadcast, 0, "x", 1), AS_E_USAGE);
    CHECK_I64(asi_broadcast_transmit(&broadcast, 1, "x", CAPACITY / 8 + 1), AS_E_USAGE);
    CHECK_I64(asi_broadcast_transmit(&broadcast, 1, "x", -1), AS_E_USAGE);
    free(section);
}

static void delivers_in_order_and_wraps(void)
{
    uint8_t *section = section_create(SECTION);
    asi_broadcast broadcast;
    asi_broadcast_receiver receiver;
    CHECK_I64(asi_broadcast_init(&broadcast, section, SECTION), AS_OK);
    CHECK_I64(asi_broadcast_receiver_open(&receiver, section, SECTION), AS_OK);
    collected got = { 0 };
    CHECK_I64(asi_broadcast_receive(&receiver, collect, &got), AS_AGAIN);
    for (int i = 0; i < 1000; i++)
    {
        uint8_t message[128];
        const int64_t length = i % 129;
        memset(message, i, sizeof(message));
        CHECK_I64(asi_broadcast_transmit(&broadcast, i + 1, message, length), AS_OK);
        CHECK_I64(asi_broadcast_receive(&receiver, collect, &got), AS_OK);
        CHECK_I64(got.type_id, i + 1);
        CHECK_I64(got.length, length);
        CHECK(0 == memcmp(got.message, message, (size_t)length));
        CHECK_I64(asi_broadcast_receive(&receiver, collect, &got), AS_AGAIN);
    }
    asi_broadcast_receiver_close(&receiver);

    CHECK_I64(asi_broadcast_receiver_open(&receiver, section, SECTION), AS_OK); /* gets the latest once more */
    CHECK_I64(asi_broadcast_receive(&receiver, collect, &got), AS_OK);
    CHECK_I64(got.type_id, 1000);
    CHECK_I64(asi_broadcast_receive(&receiver, collect, &got), AS_AGAIN);
    asi_broadcast_receiver_close(&receiver);
    free(section);
}

static void tells_an_overtaken_receiver(void)
{
    uint8_t *section = section_create(SECTION);
    asi_broadcast broadcast;
    asi_broadcast_receiver receiver;
    CHECK_I64(asi_broadcast_init(&broadcast, section, SECTION), AS_OK);
    CHECK_I64(asi_broadcast_receiver_open(&receiver, section, SECTION), AS_OK);
    for (int i = 0; i < CAPACITY / 16; i++)
    {
        CHECK_I64(asi_broadcast_transmit(&broadcast, i + 1, "12345678", 8), AS_OK);
    }
    collected got = { 0 };
    CHECK_I64(asi_broadcast_receive(&receiver, collect, &got), AS_E_DATA);
    CHECK_I64(receiver.lapped_count, 1);
    CHECK_I64(got.count, 0);
    CHECK_I64(asi_broadcast_receive(&receiver, collect, &got), AS_OK);
    CHECK_I64(got.type_id, CAPACITY / 16);
    asi_broadcast_receiver_close(&receiver);
    free(section);
}

typedef struct copied
{
    asi_broadcast *to;
    int64_t count;
} copied;

static void transmit_again(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    copied *copy = context;
    CHECK(type_id >= 0x0F01 && type_id <= 0x0F0D);
    CHECK_I64(asi_broadcast_transmit(copy->to, type_id, message, length), AS_OK);
    copy->count++;
}

/* Reads what a stock driver broadcast and broadcasts it again: the section must come out the same, trailer and all. */
static void stock_bytes_come_out_the_same(void)
{
    char path[SCRATCH_CAPACITY + 16];
    const char *dir = scratch_folder();
    snprintf(path, sizeof(path), "%s/%s", dir, ASI_CNC_FILE);
    golden_unpack("shm/c-driver-cnc.sparse", path);
    asi_cnc cnc;
    CHECK_I64(asi_cnc_open_untrusted(&cnc, dir), AS_OK);
    asi_broadcast_receiver receiver;
    CHECK_I64(asi_broadcast_receiver_open(&receiver, cnc.to_clients, cnc.lengths.to_clients), AS_OK);
    receiver.cursor = receiver.next = 0; /* nothing was overwritten in so short a run */
    uint8_t *section = section_create(cnc.lengths.to_clients);
    asi_broadcast again;
    CHECK_I64(asi_broadcast_init(&again, section, cnc.lengths.to_clients), AS_OK);
    copied copy = { .to = &again };
    as_result result;
    while (AS_OK == (result = asi_broadcast_receive(&receiver, transmit_again, &copy)))
    {
    }
    CHECK_I64(result, AS_AGAIN);
    CHECK_I64(copy.count, 8);
    CHECK(0 == memcmp(section, cnc.to_clients, (size_t)cnc.lengths.to_clients));
    asi_broadcast_receiver_close(&receiver);
    asi_cnc_close(&cnc);
    free(section);
}

/* Touches every byte it was given, for the sanitizers. */
static void add_up(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    uint64_t *sum = context;
    *sum += (uint64_t)type_id;
    for (int64_t i = 0; i < length; i++)
    {
        *sum += message[i];
    }
}

static void survives_random_sections(void)
{
    asi_rand rand = test_rand();
    uint8_t *section = section_create(SECTION);
    uint64_t sum = 0;
    for (int round = 0; round < 3000; round++)
    {
        for (int64_t i = 0; i < SECTION; i += 8)
        {
            asi_put_i64(section + i, 0 == test_rand_below(&rand, 4) ? (int64_t)asi_rand_u64(&rand) : test_rand_below(&rand, 2000));
        }
        asi_broadcast_receiver receiver;
        CHECK_I64(asi_broadcast_receiver_open(&receiver, section, SECTION), AS_OK);
        for (int step = 0; step < 20 && AS_AGAIN != asi_broadcast_receive(&receiver, add_up, &sum); step++)
        {
        }
        asi_broadcast_receiver_close(&receiver);
    }
    printf("sum of what was delivered: %" PRIu64 "\n", sum);
    free(section);
}

#define TRANSMISSIONS 100000
#define RECEIVERS 2

typedef struct follower
{
    uint8_t *section;
    bool opened;
    int64_t received;
    int64_t overtaken;
    int64_t last;
    pthread_t thread;
} follower;

static void check_message(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    follower *self = context;
    const int64_t number = asi_get_i64(message);
    CHECK_I64(type_id, 1 + number % 7);
    CHECK_I64(length, 8 + number % 15 * 8);
    for (int64_t at = 0; at < length; at += 8)
    {
        CHECK_I64(asi_get_i64(message + at), number);
    }
    CHECK(number > self->last);
    self->last = number;
    self->received++;
}

static void *follow(void *context)
{
    follower *self = context;
    asi_broadcast_receiver receiver;
    CHECK_I64(asi_broadcast_receiver_open(&receiver, self->section, SECTION), AS_OK);
    asi_store_release_bool(&self->opened, true);
    while (self->last < TRANSMISSIONS - 1)
    {
        switch (asi_broadcast_receive(&receiver, check_message, self))
        {
            case AS_OK: break;
            case AS_AGAIN: sched_yield(); break;
            default: self->overtaken++; break;
        }
    }
    asi_broadcast_receiver_close(&receiver);
    return NULL;
}

static void transmitter_and_receivers_run_together(void)
{
    uint8_t *section = section_create(SECTION);
    asi_broadcast broadcast;
    CHECK_I64(asi_broadcast_init(&broadcast, section, SECTION), AS_OK);
    follower followers[RECEIVERS];
    for (int i = 0; i < RECEIVERS; i++)
    {
        followers[i] = (follower){ .section = section, .last = -1 };
        CHECK_I64(pthread_create(&followers[i].thread, NULL, follow, &followers[i]), 0);
        while (!asi_load_acquire_bool(&followers[i].opened))
        {
            sched_yield();
        }
    }
    for (int64_t number = 0; number < TRANSMISSIONS; number++)
    {
        int64_t message[15];
        for (size_t i = 0; i < 15; i++)
        {
            message[i] = number;
        }
        CHECK_I64(asi_broadcast_transmit(&broadcast, (int32_t)(1 + number % 7), message, 8 + number % 15 * 8), AS_OK);
        if (0 == number % 8)
        {
            sched_yield(); /* otherwise no receiver keeps up on few cores */
        }
    }
    for (int i = 0; i < RECEIVERS; i++)
    {
        CHECK_I64(pthread_join(followers[i].thread, NULL), 0);
        CHECK(followers[i].received > 0);
        CHECK(followers[i].received == TRANSMISSIONS || followers[i].overtaken > 0);
        printf("receiver %d: %" PRId64 " received, overtaken %" PRId64 " times\n", i, followers[i].received, followers[i].overtaken);
    }
    free(section);
}

int main(void)
{
    RUN(refuses_bad_lengths_and_types);
    RUN(delivers_in_order_and_wraps);
    RUN(tells_an_overtaken_receiver);
    RUN(stock_bytes_come_out_the_same);
    RUN(survives_random_sections);
    RUN(transmitter_and_receivers_run_together);
    return 0;
}
