/* Goal: both appenders write the frames a stock publisher writes, trip and rotate at the end of a term, and lose nothing when
 * many threads append. Method: single steps; a stock log buffer rebuilt byte for byte; threads. Spec: 02 §5-6. */
#include "term/append.h"

#include <pthread.h>
#include <sched.h>

#include "log_fixture.h"
#include "term/frame_walk.h"

static int64_t append_bytes(asi_appender *appender, const void *bytes, int64_t length)
{
    if (length <= appender->max_payload)
    {
        return asi_append_short(appender, bytes, length);
    }
    const struct asi_append_part part = { .data = bytes, .length = length };
    const asi_append_source source = { .parts = &part, .part_count = 1, .length = length };
    return asi_append_message(appender, &source);
}

static void check_frame(const asi_frame_header *frame, int32_t length, int64_t offset, int32_t term_id, uint8_t flags, uint16_t type)
{
    CHECK_I64(frame->frame_length, length);
    CHECK_I64(frame->version, 0);
    CHECK_I64(frame->flags, flags);
    CHECK_I64(frame->type, type);
    CHECK_I64(frame->term_offset, offset);
    CHECK_I64(frame->session_id, SESSION);
    CHECK_I64(frame->stream_id, STREAM);
    CHECK_I64(frame->term_id, term_id);
}

static void appends_single_frames(bool exclusive)
{
    asi_log log = log_create(5, 5, 0);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, exclusive);
    CHECK_I64(asi_append_position(&appender), 0);
    CHECK_I64(append_bytes(&appender, NULL, 0), 32);
    CHECK_I64(append_bytes(&appender, "hello", 5), 96);
    CHECK_I64(asi_append_position(&appender), 96);
    check_frame(frame_at(&log, 0, 0), 32, 0, 5, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_DATA);
    check_frame(frame_at(&log, 0, 32), 37, 32, 5, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_DATA);
    CHECK(0 == memcmp(log.terms[0] + 64, "hello", 5));
    CHECK_I64(frame_at(&log, 0, 32)->reserved_value, 0);
    CHECK_I64(log.metadata->tail_counters[0], asi_log_raw_tail(5, 96));

    const struct asi_append_part parts[] = { { (const uint8_t *)"ab", 2 }, { NULL, 0 }, { (const uint8_t *)"cde", 3 } };
    const asi_append_source source = {
        .parts = parts, .part_count = 3, .length = 5, .has_reserved_value = true, .reserved_value = -77
    };
    CHECK_I64(asi_append_message(&appender, &source), 160);
    CHECK(0 == memcmp(log.terms[0] + 128, "abcde", 5));
    CHECK_I64(frame_at(&log, 0, 96)->reserved_value, -77);

    const asi_append_source one = { .parts = parts, .part_count = 1, .length = 2, .has_reserved_value = true, .reserved_value = 8 };
    CHECK_I64(asi_append_message(&appender, &one), 224);
    check_frame(frame_at(&log, 0, 160), 34, 160, 5, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_DATA);
    CHECK(0 == memcmp(log.terms[0] + 192, "ab", 2));
    CHECK_I64(frame_at(&log, 0, 160)->reserved_value, 8);
    log_delete(&log);
}

static int64_t supply_offset(void *context, uint8_t *frame, int64_t frame_length)
{
    CHECK(asi_get_i32(frame) < 0); /* not committed yet */
    CHECK_I64(-asi_get_i32(frame), frame_length);
    return (*(int64_t *)context)++;
}

static void appends_fragments(bool exclusive)
{
    asi_log log = log_create(5, 5, 0);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, exclusive);
    uint8_t message[4000];
    for (size_t i = 0; i < sizeof(message); i++)
    {
        message[i] = (uint8_t)(i * 7);
    }
    int64_t supplied = 100;
    const struct asi_append_part parts[] = { { message, 1000 }, { message + 1000, 2990 }, { message + 3990, 10 } };
    const asi_append_source source = {
        .parts = parts, .part_count = 3, .length = 4000, .supplier = supply_offset, .supplier_context = &supplied
    };
    const int64_t expected = 2 * 1408 + asi_align_i64(4000 - 2 * 1376 + 32, 32);
    CHECK_I64(asi_append_message(&appender, &source), expected);
    check_frame(frame_at(&log, 0, 0), 1408, 0, 5, ASI_FLAG_BEGIN, ASI_FRAME_DATA);
    check_frame(frame_at(&log, 0, 1408), 1408, 1408, 5, 0, ASI_FRAME_DATA);
    check_frame(frame_at(&log, 0, 2816), 4000 - 2752 + 32, 2816, 5, ASI_FLAG_END, ASI_FRAME_DATA);
    CHECK(0 == memcmp(log.terms[0] + 32, message, 1376));
    CHECK(0 == memcmp(log.terms[0] + 1440, message + 1376, 1376));
    CHECK(0 == memcmp(log.terms[0] + 2848, message + 2752, 4000 - 2752));
    CHECK_I64(frame_at(&log, 0, 0)->reserved_value, 100);
    CHECK_I64(frame_at(&log, 0, 2816)->reserved_value, 102);

    CHECK_I64(append_bytes(&appender, message, 2752), expected + 2816); /* whole fragments only */
    CHECK_I64(frame_at(&log, 0, expected + 1408)->flags, ASI_FLAG_END);
    log_delete(&log);
}

static void trips_pads_and_rotates(bool exclusive)
{
    asi_log log = log_create(INT32_MAX, INT32_MAX, TERM - 96);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, exclusive);
    CHECK_I64(asi_append_position(&appender), TERM - 96);
    CHECK_I64(append_bytes(&appender, "x", 1), TERM - 32);
    uint8_t message[100] = { 1 };
    CHECK_I64(append_bytes(&appender, message, 100), AS_ADMIN_ACTION);
    check_frame(frame_at(&log, 0, TERM - 32), 32, TERM - 32, INT32_MAX, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_PAD);
    CHECK_I64(log.metadata->tail_counters[0], asi_log_raw_tail(INT32_MAX, TERM - 32 + 160));
    CHECK_I64(log.metadata->active_term_count, 1);
    CHECK_I64(log.metadata->tail_counters[1], asi_log_raw_tail(INT32_MIN, 0));
    CHECK_I64(asi_append_position(&appender), TERM);
    CHECK_I64(append_bytes(&appender, message, 100), TERM + 160);
    check_frame(frame_at(&log, 1, 0), 132, 0, INT32_MIN, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_DATA);
    log_delete(&log);
}

static void an_exact_fit_trips_the_next(bool exclusive)
{
    asi_log log = log_create(0, 0, TERM - 64);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, exclusive);
    uint8_t message[32] = { 0 };
    CHECK_I64(append_bytes(&appender, message, 32), TERM);
    CHECK_I64(log.metadata->active_term_count, 0);
    CHECK_I64(append_bytes(&appender, message, 32), AS_ADMIN_ACTION);
    CHECK_I64(frame_at(&log, 1, 0)->frame_length, 0);
    CHECK_I64(append_bytes(&appender, message, 32), TERM + 64);
    log_delete(&log);
}

static void ends_at_the_last_position(bool exclusive)
{
    asi_log log = log_create(1, asi_wrap_add(1, INT32_MAX), TERM - 64);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, exclusive);
    uint8_t message[64] = { 0 };
    CHECK_I64(append_bytes(&appender, message, 64), AS_MAX_POSITION_EXCEEDED);
    const int32_t last = asi_log_index(INT32_MAX);
    CHECK_I64(frame_at(&log, last, TERM - 64)->type, ASI_FRAME_PAD);
    CHECK_I64(append_bytes(&appender, message, 0), AS_MAX_POSITION_EXCEEDED);
    CHECK_I64(frame_at(&log, last, TERM - 64)->frame_length, 64); /* the padding stands */
    CHECK_I64(asi_append_position(&appender), asi_log_max_position(TERM));
    CHECK_I64(log.metadata->active_term_count, INT32_MAX);
    log_delete(&log);
}

/* One term before the last there is a next one. */
static void the_last_term_is_reached(bool exclusive)
{
    asi_log log = log_create(1, INT32_MAX, TERM - 64);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, exclusive);
    uint8_t message[4000] = { 0 };
    CHECK_I64(append_bytes(&appender, message, sizeof(message)), AS_ADMIN_ACTION);
    CHECK_I64(log.metadata->active_term_count, INT32_MAX);
    CHECK_I64(append_bytes(&appender, message, 0), asi_log_max_position(TERM) - TERM + 32);
    CHECK_I64(frame_at(&log, asi_log_index(INT32_MAX), 0)->term_id, asi_wrap_add(1, INT32_MAX));
    log_delete(&log);
}

/* The last term takes frames up to its last byte, and then none: no claim gives room, and nothing in it is overwritten. */
static void the_last_byte_is_reached(bool exclusive)
{
    asi_log log = log_create(1, asi_wrap_add(1, INT32_MAX), TERM - 128);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, exclusive);
    const int64_t max_position = asi_log_max_position(TERM);
    const int32_t last = asi_log_index(INT32_MAX);
    uint8_t message[96] = { 0 };
    uint8_t *frame = NULL;
    CHECK_I64(append_bytes(&appender, message, 96), max_position);
    const int64_t tail = log.metadata->tail_counters[last];
    uint8_t whole[TERM];
    memcpy(whole, log.terms[asi_log_index(0)], TERM);
    for (int i = 0; i < 3; i++)
    {
        CHECK_I64(append_bytes(&appender, message, 0), AS_MAX_POSITION_EXCEEDED);
        CHECK_I64(asi_append_claim(&appender, 8, &frame), AS_MAX_POSITION_EXCEEDED);
        CHECK(NULL == frame);
    }
    if (exclusive)
    {
        CHECK_I64(asi_append_claim_block(&appender, 64, &frame), AS_MAX_POSITION_EXCEEDED);
        CHECK_I64(asi_append_padding(&appender, 0), AS_MAX_POSITION_EXCEEDED);
        CHECK(NULL == frame);
    }
    CHECK(exclusive || tail == log.metadata->tail_counters[last]); /* the offset of many refusals would reach the term id */
    CHECK_I64(frame_at(&log, last, TERM - 128)->frame_length, 128);
    CHECK(0 == memcmp(whole, log.terms[asi_log_index(0)], TERM));
    CHECK_I64(log.metadata->active_term_count, INT32_MAX);
    log_delete(&log);
}

static void claims_commit_and_abort(bool exclusive)
{
    asi_log log = log_create(5, 5, 0);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, exclusive);
    uint8_t *frame;
    CHECK_I64(asi_append_claim(&appender, 10, &frame), 64);
    CHECK(frame == log.terms[0]);
    CHECK_I64(frame_at(&log, 0, 0)->frame_length, -42);
    memcpy(frame + 32, "0123456789", 10);
    asi_append_commit(frame);
    check_frame(frame_at(&log, 0, 0), 42, 0, 5, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_DATA);
    CHECK_I64(asi_append_claim(&appender, 10, &frame), 128);
    asi_append_abort(frame);
    check_frame(frame_at(&log, 0, 64), 42, 64, 5, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_PAD);
    CHECK_I64(asi_append_claim(&appender, 10, &frame), 192);
    asi_put_i32(frame, 64); /* the driver unblocked it */
    asi_append_commit(frame);
    CHECK_I64(frame_at(&log, 0, 128)->frame_length, 64);
    log_delete(&log);
}

static void concurrent_position_waits_for_a_rotation(void)
{
    asi_log log = log_create(5, 5, 0);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, false);
    log.metadata->active_term_count = 1; /* as if the count were ahead of the tail */
    CHECK_I64(asi_append_position(&appender), AS_ADMIN_ACTION);
    log_delete(&log);
}

static void hostile_tails_are_refused(void)
{
    static const int64_t TAILS[] = { 33, 31, -1, INT64_MIN, INT64_MAX, (int64_t)0xFFFFFFFF, TERM - 8 };
    for (size_t i = 0; i < sizeof(TAILS) / sizeof(TAILS[0]); i++)
    {
        asi_log log = log_create(0, 0, 0);
        asi_appender appender;
        asi_appender_init(&appender, &log, SESSION, STREAM, false);
        log.metadata->tail_counters[0] = TAILS[i];
        CHECK(append_bytes(&appender, "abc", 3) < 0);
        CHECK(asi_append_position(&appender) < 0 || asi_append_position(&appender) <= 2 * TERM);
        asi_appender_init(&appender, &log, SESSION, STREAM, true);
        (void)append_bytes(&appender, "abc", 3);
        CHECK_I64(log.metadata->mtu_length, MTU);
        log_delete(&log);
    }
}

static void padding_and_blocks(void)
{
    asi_log log = log_create(5, 5, 0);
    asi_appender appender;
    asi_appender_init(&appender, &log, SESSION, STREAM, true);
    CHECK_I64(asi_append_padding(&appender, 100), 160);
    check_frame(frame_at(&log, 0, 0), 132, 0, 5, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_PAD);

    asi_log source = log_create(5, 5, 0);
    const int64_t first_end = put_frame(&source, 0, 160, 40, ASI_FLAG_UNFRAGMENTED, 'a');
    const int64_t length = put_frame(&source, 0, first_end, 64, ASI_FLAG_UNFRAGMENTED, 'b') - 160;
    CHECK_I64(asi_append_block(&appender, source.terms[0] + 160, length), 160 + length);
    CHECK(0 == memcmp(source.terms[0] + 160, log.terms[0] + 160, (size_t)length));
    CHECK_I64(log.metadata->tail_counters[0], asi_log_raw_tail(5, 160 + length));

    const uint8_t *again = source.terms[0] + 160; /* is not at the position that is due */
    CHECK_I64(asi_append_block(&appender, again, length), AS_PUBLICATION_ERROR);
    CHECK_I64(asi_append_block(&appender, again, 0), AS_PUBLICATION_ERROR);
    CHECK_I64(asi_append_block(&appender, again, -32), AS_PUBLICATION_ERROR);
    CHECK_I64(asi_append_block(&appender, again, 33), AS_PUBLICATION_ERROR);
    CHECK_I64(asi_append_block(&appender, again, TERM), AS_PUBLICATION_ERROR);
    CHECK_I64(asi_append_position(&appender), 160 + length);

    CHECK_I64(asi_append_padding(&appender, TERM - 160 - length - 32), TERM); /* full: a block rotates by itself */
    asi_frame_header *frame = frame_at(&source, 0, 0);
    (void)put_frame(&source, 0, 0, 32, ASI_FLAG_UNFRAGMENTED, 'c');
    frame->term_id = 6;
    CHECK_I64(asi_append_block(&appender, source.terms[0], 64), TERM + 64);
    CHECK_I64(log.metadata->active_term_count, 1);
    CHECK_I64(frame_at(&log, 1, 0)->frame_length, 64);
    log_delete(&source);
    log_delete(&log);
}

/* The pages of a block are made where the block will lie, in any term. */
static void a_block_gets_its_pages(void)
{
    asi_log log = log_create(5, 6, 8192);
    asi_appender appender;
    uint8_t *room;
    log.paged_to = log.paged_from = TERM;
    asi_appender_init(&appender, &log, SESSION, STREAM, true);
    CHECK_I64(asi_append_claim_block(&appender, 4096, &room), 4096);
    CHECK_I64(log.paged_to, TERM + 8192 + 4096);
    log_delete(&log);
}

/* Publishes what the stock client published (README in tests/golden/shm) and compares every byte that its driver had not
 * erased. Message i of stream s: byte j is s*17 + i*31 + j; a term that is too short for one is padded, as by any publisher. */
static void stock_bytes_come_out_the_same(void)
{
    static const int64_t LENGTHS[] = { 100, 1000, 3000, 8 };
    int64_t file_length;
    uint8_t *stock = golden_load_sparse("shm/c-driver-udp-publication.sparse", &file_length);
    const asi_log_metadata *metadata = (const asi_log_metadata *)(const void *)(stock + 3 * TERM);
    const asi_frame_header *defaults = (const asi_frame_header *)(const void *)metadata->default_header;
    asi_log log = log_create(metadata->initial_term_id, metadata->initial_term_id, 0);
    asi_appender appender;
    asi_appender_init(&appender, &log, defaults->session_id, defaults->stream_id, true);
    int64_t position = 0;
    for (int64_t i = 0; i < 150;)
    {
        uint8_t message[3000];
        const int64_t length = LENGTHS[i % 4];
        for (int64_t j = 0; j < length; j++)
        {
            message[j] = (uint8_t)(1002 * 17 + i * 31 + j);
        }
        const struct asi_append_part part = { .data = message, .length = length };
        const asi_append_source source = {
            .parts = &part, .part_count = 1, .length = length, .has_reserved_value = true, .reserved_value = i * 1000003
        };
        position = asi_append_message(&appender, &source);
        CHECK(position > 0 || AS_ADMIN_ACTION == position);
        i += position > 0;
    }
    CHECK_I64(position, 167200);
    /* Spec: 02 §8 - a network log is erased up to sender position - T. */
    const int64_t erased_to = position - TERM;
    const int64_t kept_in_term_1 = erased_to - TERM;
    CHECK(0 == memcmp(log.terms[1] + kept_in_term_1, stock + TERM + kept_in_term_1, (size_t)(TERM - kept_in_term_1)));
    CHECK(0 == memcmp(log.terms[2], stock + 2 * TERM, TERM));
    CHECK(0 == memcmp(log.metadata->tail_counters, metadata->tail_counters, sizeof(metadata->tail_counters)));
    CHECK_I64(log.metadata->active_term_count, metadata->active_term_count);
    log_delete(&log);
    free(stock);
}

#define THREADS 3
#define MESSAGES_EACH 20000
#define WINDOW (TERM / 2)

typedef struct shared_run
{
    asi_log log;
    int64_t limit; /* written by the reader, read by publishers */
} shared_run;

typedef struct publisher
{
    shared_run *run;
    int64_t id;
    pthread_t thread;
} publisher;

/* Message: thread, number, then the number repeated; lengths from one frame to three. */
static void *publish(void *context)
{
    const publisher *self = context;
    asi_appender appender;
    asi_appender_init(&appender, &self->run->log, SESSION, STREAM, false);
    for (int64_t number = 0; number < MESSAGES_EACH;)
    {
        int64_t words[400];
        const int64_t count = 0 == number % 50 ? 400 : 2 + number % 9;
        words[0] = self->id;
        for (int64_t i = 1; i < count; i++)
        {
            words[i] = number;
        }
        const int64_t limit = asi_load_acquire_i64(&self->run->limit);
        const int64_t before = asi_append_position(&appender);
        int64_t result = before;
        if (before >= limit)
        {
            sched_yield();
            continue;
        }
        if (before >= 0 && 1 == number % 4 && count * 8 <= appender.max_payload)
        {
            uint8_t *frame;
            result = asi_append_claim(&appender, count * 8, &frame);
            if (result > 0)
            {
                memcpy(frame + AS_FRAME_HEADER_LENGTH, words, (size_t)count * 8);
                asi_append_commit(frame);
            }
        }
        else if (before >= 0)
        {
            result = append_bytes(&appender, words, count * 8);
        }
        CHECK(result > 0 || AS_ADMIN_ACTION == result);
        number += result > 0;
    }
    return NULL;
}

typedef enum read_outcome
{
    READ_MESSAGE,
    READ_PADDING,
    READ_NOTHING /* not all there yet */
} read_outcome;

/* Reads one message's fragments, or one padding frame. Each frame is looked at once: between two looks it may be committed. */
static read_outcome read_next(asi_frame_walk *walk, int64_t *words, int64_t *count)
{
    *count = 0;
    do
    {
        if (ASI_WALK_FRAME != asi_frame_walk_next(walk))
        {
            return READ_NOTHING;
        }
        if (asi_frame_is_padding(walk->frame))
        {
            CHECK_I64(*count, 0);
            return READ_PADDING;
        }
        const int64_t bytes = walk->frame_length - AS_FRAME_HEADER_LENGTH;
        CHECK(*count + bytes / 8 <= 400);
        memcpy(words + *count, walk->frame + 1, (size_t)bytes);
        *count += bytes / 8;
    }
    while (0 == (walk->frame->flags & ASI_FLAG_END));
    return READ_MESSAGE;
}

static void check_message(const int64_t *words, int64_t count, int64_t *next)
{
    const int64_t id = words[0];
    CHECK(id >= 0 && id < THREADS);
    const int64_t number = next[id]++;
    CHECK_I64(count, 0 == number % 50 ? 400 : 2 + number % 9);
    for (int64_t i = 1; i < count; i++)
    {
        CHECK_I64(words[i], number);
    }
}

static void threads_lose_nothing(void)
{
    shared_run run = { .log = log_create(-1, -1, 0), .limit = WINDOW };
    publisher publishers[THREADS];
    for (int64_t i = 0; i < THREADS; i++)
    {
        publishers[i] = (publisher){ .run = &run, .id = i };
        CHECK_I64(pthread_create(&publishers[i].thread, NULL, publish, &publishers[i]), 0);
    }
    int64_t next[THREADS] = { 0 };
    int64_t position = 0;
    int64_t cleaned = 0;
    int64_t total = 0;
    while (total < THREADS * MESSAGES_EACH)
    {
        const int32_t index = asi_log_index_of_position(position, 16);
        asi_frame_walk walk = asi_frame_walk_start(run.log.terms[index], position & (TERM - 1), TERM, TERM);
        int64_t words[400];
        int64_t count;
        const read_outcome outcome = read_next(&walk, words, &count);
        if (READ_NOTHING == outcome)
        {
            sched_yield();
            continue;
        }
        if (READ_MESSAGE == outcome)
        {
            check_message(words, count, next);
            total++;
        }
        position += walk.offset - (position & (TERM - 1));
        while (cleaned < position)
        {
            cleaned = asi_log_clean(&run.log, cleaned, position);
        }
        asi_store_release_i64(&run.limit, position + WINDOW);
    }
    for (int64_t i = 0; i < THREADS; i++)
    {
        CHECK_I64(pthread_join(publishers[i].thread, NULL), 0);
    }
    CHECK_I64(asi_log_producer_position(&run.log), position);
    log_delete(&run.log);
}

static void concurrent_appender(void)
{
    appends_single_frames(false);
    appends_fragments(false);
    trips_pads_and_rotates(false);
    an_exact_fit_trips_the_next(false);
    ends_at_the_last_position(false);
    the_last_term_is_reached(false);
    the_last_byte_is_reached(false);
    claims_commit_and_abort(false);
}

static void exclusive_appender(void)
{
    appends_single_frames(true);
    appends_fragments(true);
    trips_pads_and_rotates(true);
    an_exact_fit_trips_the_next(true);
    ends_at_the_last_position(true);
    the_last_term_is_reached(true);
    the_last_byte_is_reached(true);
    claims_commit_and_abort(true);
}

int main(void)
{
    RUN(concurrent_appender);
    RUN(exclusive_appender);
    RUN(concurrent_position_waits_for_a_rotation);
    RUN(hostile_tails_are_refused);
    RUN(padding_and_blocks);
    RUN(a_block_gets_its_pages);
    RUN(stock_bytes_come_out_the_same);
    RUN(threads_lose_nothing);
    return 0;
}
