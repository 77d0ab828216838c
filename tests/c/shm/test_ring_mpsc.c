/* Goal: the command ring delivers every message once, in order per producer, keeps its free space zero, recovers from dead
 * producers and survives hostile ones. Method: tables and single steps on a heap ring, threads, random bytes. Spec: 01 §3. */
#include "shm/ring_mpsc.h"

#include <pthread.h>
#include <sched.h>

#include "support.h"

#define CAPACITY 1024
#define SECTION (CAPACITY + ASI_RING_TRAILER_LENGTH)

static asi_ring_mpsc ring_create(int64_t capacity)
{
    asi_ring_mpsc ring;
    void *section = aligned_alloc(64, (size_t)(capacity + ASI_RING_TRAILER_LENGTH));
    CHECK(NULL != section);
    memset(section, 0, (size_t)(capacity + ASI_RING_TRAILER_LENGTH));
    CHECK_I64(asi_ring_mpsc_init(&ring, section, capacity + ASI_RING_TRAILER_LENGTH), AS_OK);
    return ring;
}

typedef struct collected
{
    int64_t count;
    int32_t type_ids[256];
    int64_t lengths[256];
    uint8_t first_bytes[256];
    int64_t abort_at; /* index of the message to refuse, -1 for none */
} collected;

static asi_ring_action collect(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    collected *to = context;
    if (to->count == to->abort_at)
    {
        return ASI_RING_ABORT;
    }
    to->type_ids[to->count] = type_id;
    to->lengths[to->count] = length;
    to->first_bytes[to->count] = length > 0 ? message[0] : 0;
    to->count++;
    return ASI_RING_CONTINUE;
}

static collected read_all(asi_ring_mpsc *ring, int64_t limit)
{
    collected to = { .abort_at = -1 };
    CHECK_I64(asi_ring_mpsc_read(ring, collect, &to, limit), to.count);
    return to;
}

static void refuses_bad_lengths_and_types(void)
{
    static uint8_t section[SECTION] __attribute__((aligned(64)));
    asi_ring_mpsc ring;
    static const int64_t BAD[] = { 0, -1, 767, 768, 768 + 1000, 768 + 4, INT64_MAX };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
    {
        CHECK_I64(asi_ring_mpsc_init(&ring, section, BAD[i]), AS_E_DATA);
    }
    CHECK_I64(asi_ring_mpsc_init(&ring, section, SECTION), AS_OK);
    uint8_t message[CAPACITY] = { 0 };
    uint8_t *claimed;
    CHECK_I64(asi_ring_mpsc_write(&ring, 0, message, 8), AS_E_USAGE);
    CHECK_I64(asi_ring_mpsc_write(&ring, -1, message, 8), AS_E_USAGE);
    CHECK_I64(asi_ring_mpsc_write(&ring, 1, message, CAPACITY / 8 + 1), AS_E_USAGE);
    CHECK_I64(asi_ring_mpsc_write(&ring, 1, message, -1), AS_E_USAGE);
    CHECK_I64(asi_ring_mpsc_try_claim(&ring, 1, CAPACITY / 8 + 1, &claimed), AS_E_USAGE);
    CHECK_I64(asi_ring_mpsc_write(&ring, 1, NULL, 0), AS_OK);
    CHECK_I64(asi_ring_mpsc_write(&ring, 1, message, CAPACITY / 8), AS_OK);
    CHECK_I64(read_all(&ring, 10).count, 2);
}

/* The bytes of one record and its trailer, by Spec: 01 §3.1. */
static void writes_the_specified_bytes(void)
{
    asi_ring_mpsc ring = ring_create(CAPACITY);
    CHECK_I64(asi_ring_mpsc_next_correlation_id(&ring), 0);
    CHECK_I64(asi_ring_mpsc_next_correlation_id(&ring), 1);
    asi_ring_mpsc_set_consumer_heartbeat(&ring, 123);
    CHECK_I64(asi_ring_mpsc_write(&ring, 7, "hello", 5), AS_OK);
    CHECK_I64(asi_get_i32(ring.buffer), 13);
    CHECK_I64(asi_get_i32(ring.buffer + 4), 7);
    CHECK(0 == memcmp(ring.buffer + 8, "hello\0\0\0", 8));
    CHECK_I64(asi_get_i64(ring.buffer + CAPACITY + 128), 16);
    CHECK_I64(asi_get_i64(ring.buffer + CAPACITY + 384), 0);
    CHECK_I64(asi_get_i64(ring.buffer + CAPACITY + 512), 2);
    CHECK_I64(asi_get_i64(ring.buffer + CAPACITY + 640), 123);
    const collected got = read_all(&ring, 1);
    CHECK_I64(got.count, 1);
    CHECK_I64(got.type_ids[0], 7);
    CHECK_I64(got.lengths[0], 5);
    CHECK_I64(asi_get_i64(ring.buffer + CAPACITY + 384), 16);
    CHECK_I64(asi_get_i64(ring.buffer), 0);
    CHECK_I64(asi_get_i64(ring.buffer + 8), 0);
    free(ring.buffer);
}

static void wraps_with_padding_and_fills_up(void)
{
    asi_ring_mpsc ring = ring_create(CAPACITY);
    const uint8_t message[120] = { 42 };
    for (int i = 0; i < 7; i++)
    {
        CHECK_I64(asi_ring_mpsc_write(&ring, 1, message, 120), AS_OK); /* 128 bytes each */
    }
    CHECK_I64(asi_ring_mpsc_write(&ring, 1, message, 56), AS_OK); /* 960 used */
    CHECK_I64(asi_ring_mpsc_write(&ring, 1, message, 120), AS_AGAIN);
    CHECK_I64(asi_ring_mpsc_producer_position(&ring), 960); /* as the C driver: nothing touched */
    CHECK_I64(read_all(&ring, 1).count, 1);
    CHECK_I64(asi_ring_mpsc_write(&ring, 2, message, 120), AS_OK);
    CHECK_I64(asi_ring_mpsc_producer_position(&ring), 1024 + 128);
    CHECK_I64(asi_get_i32(ring.buffer + 960), 64);
    CHECK_I64(asi_get_i32(ring.buffer + 964), ASI_RING_PADDING_TYPE);
    CHECK_I64(read_all(&ring, 100).count, 7); /* up to the end of the area, padding is no message */
    CHECK_I64(asi_ring_mpsc_consumer_position(&ring), 1024);
    const collected last = read_all(&ring, 100);
    CHECK_I64(last.count, 1);
    CHECK_I64(last.type_ids[0], 2);
    for (int64_t i = 0; i < CAPACITY; i++)
    {
        CHECK_I64(ring.buffer[i], 0);
    }
    free(ring.buffer);
}

/* The producer's cached head is stale by then: it reads the head again, and uses the free space to the byte. */
static void a_full_ring_takes_as_much_as_was_read(void)
{
    asi_ring_mpsc ring = ring_create(CAPACITY);
    const uint8_t message[120] = { 42 };
    for (int i = 0; i < CAPACITY / 128; i++)
    {
        CHECK_I64(asi_ring_mpsc_write(&ring, 1, message, 120), AS_OK);
    }
    CHECK_I64(asi_ring_mpsc_write(&ring, 1, NULL, 0), AS_AGAIN);
    for (int i = 0; i < 100; i++)
    {
        CHECK_I64(read_all(&ring, 1).count, 1);
        CHECK_I64(asi_ring_mpsc_write(&ring, 2, message, 120), AS_OK);
        CHECK_I64(asi_ring_mpsc_write(&ring, 1, NULL, 0), AS_AGAIN);
    }
    free(ring.buffer);
}

/* Room enough in all, but in two pieces: the record would need more at the start than has been read there. */
static void a_record_does_not_reach_into_what_is_unread(void)
{
    asi_ring_mpsc ring = ring_create(CAPACITY);
    const uint8_t message[120] = { 42 };
    CHECK_I64(asi_ring_mpsc_write(&ring, 1, message, 56), AS_OK); /* 64 bytes */
    for (int i = 0; i < 7; i++)
    {
        CHECK_I64(asi_ring_mpsc_write(&ring, 2, message, 120), AS_OK);
    }
    CHECK_I64(read_all(&ring, 1).count, 1);
    uint8_t before[CAPACITY];
    memcpy(before, ring.buffer, CAPACITY);
    CHECK_I64(asi_ring_mpsc_write(&ring, 3, message, 120), AS_AGAIN);
    CHECK_I64(asi_ring_mpsc_producer_position(&ring), 960);
    CHECK(0 == memcmp(before, ring.buffer, CAPACITY));
    CHECK_I64(read_all(&ring, 1).count, 1);
    CHECK_I64(asi_ring_mpsc_write(&ring, 3, message, 120), AS_OK);
    CHECK_I64(asi_ring_mpsc_write(&ring, 4, message, 56), AS_OK);
    CHECK_I64(asi_ring_mpsc_write(&ring, 4, NULL, 0), AS_AGAIN); /* full to the byte */
    const collected rest = read_all(&ring, 100);
    CHECK_I64(rest.count, 6);
    const collected last = read_all(&ring, 100);
    CHECK_I64(last.count, 2);
    CHECK_I64(last.type_ids[0], 3);
    CHECK_I64(last.lengths[0], 120);
    CHECK_I64(last.type_ids[1], 4);
    free(ring.buffer);
}

static void claims_commit_and_abort(void)
{
    asi_ring_mpsc ring = ring_create(CAPACITY);
    uint8_t *first;
    uint8_t *second;
    CHECK_I64(asi_ring_mpsc_try_claim(&ring, 3, 16, &first), AS_OK);
    CHECK_I64(asi_ring_mpsc_try_claim(&ring, 4, 16, &second), AS_OK);
    second[0] = 9;
    asi_ring_mpsc_commit(&ring, second);
    CHECK_I64(read_all(&ring, 10).count, 0);
    asi_ring_mpsc_abort(&ring, first);
    const collected got = read_all(&ring, 10);
    CHECK_I64(got.count, 1);
    CHECK_I64(got.type_ids[0], 4);
    CHECK_I64(got.first_bytes[0], 9);
    free(ring.buffer);
}

static void abort_leaves_the_message_for_the_next_read(void)
{
    asi_ring_mpsc ring = ring_create(CAPACITY);
    for (uint8_t i = 0; i < 3; i++)
    {
        CHECK_I64(asi_ring_mpsc_write(&ring, 1, &i, 1), AS_OK);
    }
    collected to = { .abort_at = 1 };
    CHECK_I64(asi_ring_mpsc_read(&ring, collect, &to, 10), 1);
    const collected rest = read_all(&ring, 10);
    CHECK_I64(rest.count, 2);
    CHECK_I64(rest.first_bytes[0], 1);
    free(ring.buffer);
}

/* Spec: 01 §3.4, case by case; the dead producer is played by undoing stores. */
static void unblocks_what_a_dead_producer_left(void)
{
    uint8_t *claimed;
    asi_ring_mpsc ring = ring_create(CAPACITY);
    CHECK(!asi_ring_mpsc_unblock(&ring));

    CHECK_I64(asi_ring_mpsc_try_claim(&ring, 3, 20, &claimed), AS_OK); /* died between claim and commit */
    CHECK_I64(asi_ring_mpsc_write(&ring, 5, "a", 1), AS_OK);
    CHECK(asi_ring_mpsc_unblock(&ring));
    CHECK_I64(asi_get_i32(ring.buffer), 28);
    asi_ring_mpsc_commit(&ring, claimed); /* came back too late */
    collected got = read_all(&ring, 10);
    CHECK_I64(got.count, 1);
    CHECK_I64(got.type_ids[0], 5);
    free(ring.buffer);

    ring = ring_create(CAPACITY);
    CHECK_I64(asi_ring_mpsc_try_claim(&ring, 3, 24, &claimed), AS_OK);
    asi_put_i64(ring.buffer, 0); /* died before its first store */
    CHECK(!asi_ring_mpsc_unblock(&ring)); /* nothing behind it yet: its size can't be known */
    CHECK_I64(asi_ring_mpsc_write(&ring, 5, "a", 1), AS_OK);
    CHECK(asi_ring_mpsc_unblock(&ring));
    CHECK_I64(asi_get_i32(ring.buffer), 32);
    CHECK_I64(read_all(&ring, 10).count, 1);

    *ring.head_position = *ring.tail_position = CAPACITY - 32; /* the same with the tail wrapped past the head */
    CHECK_I64(asi_ring_mpsc_try_claim(&ring, 3, 8, &claimed), AS_OK);
    asi_put_i64(ring.buffer + CAPACITY - 32, 0);
    CHECK_I64(asi_ring_mpsc_write(&ring, 5, "b", 1), AS_OK);
    CHECK_I64(asi_ring_mpsc_write(&ring, 6, "c", 1), AS_OK);
    CHECK(asi_ring_mpsc_unblock(&ring));
    CHECK_I64(read_all(&ring, 10).count, 1);
    CHECK_I64(read_all(&ring, 10).count, 1);

    CHECK_I64(asi_ring_mpsc_write(&ring, 5, "d", 1), AS_OK);
    CHECK(!asi_ring_mpsc_unblock(&ring)); /* a committed record is not blocked */
    free(ring.buffer);
}

/* Two clients die between their claims and their first stores. The second claim does not fit before the end of the area, or fits
 * exactly. No store shows where they end, but no record passes the end of the area. */
static void unblocks_claims_that_reach_the_end(void)
{
    static const int64_t LENGTHS[] = { 32, 48 - ASI_RING_RECORD_HEADER_LENGTH };
    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
    {
        const bool is_wrapped = 0 == i;
        uint8_t *claimed;
        asi_ring_mpsc ring = ring_create(CAPACITY);
        *ring.head_position = *ring.tail_position = CAPACITY - (is_wrapped ? 48 : 64);
        CHECK_I64(asi_ring_mpsc_try_claim(&ring, 3, 8, &claimed), AS_OK);
        CHECK_I64(asi_ring_mpsc_try_claim(&ring, 3, LENGTHS[i], &claimed), AS_OK);
        const int64_t begin = *ring.tail_position;
        CHECK_I64(begin, CAPACITY + (is_wrapped ? 40 : 0));
        memset(ring.buffer, 0, CAPACITY);
        CHECK_I64(asi_ring_mpsc_write(&ring, 5, "a", 1), AS_OK);
        CHECK(!asi_ring_mpsc_unblock(&ring)); /* one of them may live: it has the time up to the next call */
        CHECK_I64(read_all(&ring, 10).count, 0);
        CHECK(asi_ring_mpsc_unblock(&ring));
        CHECK_I64(read_all(&ring, 10).count, 0);
        CHECK_I64(asi_ring_mpsc_consumer_position(&ring), CAPACITY);
        CHECK_I64(asi_ring_mpsc_unblock(&ring), is_wrapped); /* the second one's record, behind the padding */
        const collected got = read_all(&ring, 10);
        CHECK_I64(got.count, 1);
        CHECK_I64(got.type_ids[0], 5);
        CHECK_I64(asi_ring_mpsc_consumer_position(&ring), asi_ring_mpsc_producer_position(&ring));
        free(ring.buffer);
    }
}

/* Who stores between the two calls was only slow; and what is not claimed up to the end is left alone. */
static void leaves_claims_of_the_living(void)
{
    uint8_t *claimed;
    asi_ring_mpsc ring = ring_create(CAPACITY);
    *ring.head_position = *ring.tail_position = CAPACITY - 64;
    CHECK_I64(asi_ring_mpsc_try_claim(&ring, 3, 8, &claimed), AS_OK);
    asi_put_i64(ring.buffer + CAPACITY - 64, 0);
    CHECK(!asi_ring_mpsc_unblock(&ring) && !asi_ring_mpsc_unblock(&ring));
    CHECK_I64(asi_ring_mpsc_try_claim(&ring, 4, 40, &claimed), AS_OK);
    asi_put_i64(ring.buffer + CAPACITY - 48, 0);
    CHECK(!asi_ring_mpsc_unblock(&ring));
    asi_put_i32(ring.buffer + CAPACITY - 48, -48); /* it lives */
    asi_put_i32(ring.buffer + CAPACITY - 44, 4);
    CHECK(asi_ring_mpsc_unblock(&ring));
    CHECK_I64(asi_get_i32(ring.buffer + CAPACITY - 64), 16);
    asi_ring_mpsc_commit(&ring, claimed);
    const collected got = read_all(&ring, 10);
    CHECK_I64(got.count, 1);
    CHECK_I64(got.type_ids[0], 4);
    free(ring.buffer);
}

static void skips_hostile_records(void)
{
    static const int32_t LENGTHS[] = { 1, 7, CAPACITY + 1, CAPACITY * 2, INT32_MAX };
    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
    {
        asi_ring_mpsc ring = ring_create(CAPACITY);
        CHECK_I64(asi_ring_mpsc_write(&ring, 1, "good", 4), AS_OK);
        CHECK_I64(asi_ring_mpsc_write(&ring, 2, "bad", 3), AS_OK);
        asi_put_i32(ring.buffer + 16, LENGTHS[i]);
        CHECK_I64(read_all(&ring, 10).count, 1);
        CHECK_I64(asi_ring_mpsc_consumer_position(&ring), 32);
        CHECK_I64(asi_ring_mpsc_write(&ring, 3, "next", 4), AS_OK);
        const collected got = read_all(&ring, 10);
        CHECK_I64(got.count, 1);
        CHECK_I64(got.type_ids[0], 3);
        free(ring.buffer);
    }
}

/* A claim of no length that can be would hold up every client if unblocking left it as it is. */
static void unblocks_hostile_claims(void)
{
    static const int32_t LENGTHS[] = { -1, -7, -(CAPACITY + 1), -INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
    {
        asi_ring_mpsc ring = ring_create(CAPACITY);
        uint8_t *message;
        CHECK_I64(asi_ring_mpsc_try_claim(&ring, 1, 8, &message), AS_OK);
        asi_put_i32(ring.buffer, LENGTHS[i]);
        CHECK_I64(read_all(&ring, 10).count, 0);
        CHECK(asi_ring_mpsc_unblock(&ring));
        CHECK_I64(read_all(&ring, 10).count, 0);
        CHECK_I64(asi_ring_mpsc_consumer_position(&ring), 16);
        CHECK_I64(asi_ring_mpsc_write(&ring, 3, "next", 4), AS_OK);
        CHECK_I64(read_all(&ring, 10).count, 1);
        free(ring.buffer);
    }
}

/* Any process can write the whole section, counters too: whatever it contains, no access leaves it. */
static void survives_random_sections(void)
{
    asi_rand rand = test_rand();
    asi_ring_mpsc ring = ring_create(CAPACITY);
    for (int round = 0; round < 2000; round++)
    {
        for (int64_t i = 0; i < SECTION; i += 8)
        {
            const int64_t kind = test_rand_below(&rand, 4);
            asi_put_i64(ring.buffer + i, 0 == kind ? (int64_t)asi_rand_u64(&rand) : test_rand_below(&rand, 64) - 16);
        }
        for (int step = 0; step < 8; step++)
        {
            (void)read_all(&ring, 20);
            (void)asi_ring_mpsc_unblock(&ring);
            const as_result result = asi_ring_mpsc_write(&ring, 1, "message", 7);
            CHECK(AS_OK == result || AS_AGAIN == result);
        }
    }
    free(ring.buffer);
}

#define PRODUCERS 3
#define MESSAGES_EACH 20000

typedef struct producer
{
    asi_ring_mpsc *ring;
    int32_t id;
    pthread_t thread;
} producer;

static void *produce(void *context)
{
    const producer *self = context;
    for (int64_t i = 0; i < MESSAGES_EACH; i++)
    {
        int64_t message[6] = { self->id, i, i, i, i, i };
        const int64_t length = 16 + i % 5 * 8;
        uint8_t *claimed;
        as_result result;
        do
        {
            result = 0 == i % 3 ? asi_ring_mpsc_try_claim(self->ring, self->id + 1, length, &claimed) :
                asi_ring_mpsc_write(self->ring, self->id + 1, message, length);
            if (AS_AGAIN == result)
            {
                sched_yield();
            }
        }
        while (AS_AGAIN == result);
        CHECK_I64(result, AS_OK);
        if (0 == i % 3)
        {
            memcpy(claimed, message, (size_t)length);
            asi_ring_mpsc_commit(self->ring, claimed);
        }
    }
    return NULL;
}

static asi_ring_action check_sequence(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    int64_t *next = context;
    const int64_t id = asi_get_i64(message);
    CHECK_I64(type_id, id + 1);
    const int64_t i = next[id]++;
    CHECK_I64(length, 16 + i % 5 * 8);
    for (int64_t at = 8; at < length; at += 8)
    {
        CHECK_I64(asi_get_i64(message + at), i);
    }
    return ASI_RING_CONTINUE;
}

static void producers_and_consumer_run_together(void)
{
    asi_ring_mpsc ring = ring_create(CAPACITY);
    producer producers[PRODUCERS];
    for (int32_t i = 0; i < PRODUCERS; i++)
    {
        producers[i] = (producer){ .ring = &ring, .id = i };
        CHECK_I64(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
    int64_t next[PRODUCERS] = { 0 };
    int64_t total = 0;
    while (total < PRODUCERS * MESSAGES_EACH)
    {
        const int64_t read = asi_ring_mpsc_read(&ring, check_sequence, next, 10);
        if (0 == read)
        {
            sched_yield();
        }
        total += read;
    }
    for (int32_t i = 0; i < PRODUCERS; i++)
    {
        CHECK_I64(pthread_join(producers[i].thread, NULL), 0);
        CHECK_I64(next[i], MESSAGES_EACH);
    }
    CHECK_I64(read_all(&ring, 1).count, 0);
    CHECK_I64(asi_ring_mpsc_consumer_position(&ring), asi_ring_mpsc_producer_position(&ring));
    free(ring.buffer);
}

int main(void)
{
    RUN(refuses_bad_lengths_and_types);
    RUN(writes_the_specified_bytes);
    RUN(wraps_with_padding_and_fills_up);
    RUN(a_full_ring_takes_as_much_as_was_read);
    RUN(a_record_does_not_reach_into_what_is_unread);
    RUN(claims_commit_and_abort);
    RUN(abort_leaves_the_message_for_the_next_read);
    RUN(unblocks_what_a_dead_producer_left);
    RUN(unblocks_claims_that_reach_the_end);
    RUN(leaves_claims_of_the_living);
    RUN(skips_hostile_records);
    RUN(unblocks_hostile_claims);
    RUN(survives_random_sections);
    RUN(producers_and_consumer_run_together);
    return 0;
}
