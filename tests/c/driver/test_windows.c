/* Goal: whatever the window, the term, the sizes and the readers' speed, a publisher writes into zeroes only, never gets further
 * ahead of the slowest reader than its window and one message, and no reader misses or sees a wrong byte.
 *
 * Method: random steps of publishing, reading, joining and leaving against a driver under the test's clock; before each message
 * the test checks the bytes that it will overwrite, every frame carries its position. Spec: 02 §7.2, §8. */
#include "rig.h"

#include "term/frame_walk.h"

#define PUBLISHER 101
#define FIRST_READER 200
#define READERS 4
#define STREAM 1001
#define TERM AS_TERM_MIN_LENGTH
#define MAX_MESSAGE (TERM / 8)

typedef struct reader
{
    bool is_there;
    int32_t heartbeat;
    int64_t registration_id;
    rig_image image;
} reader;

typedef struct model
{
    test_rig rig;
    asi_rand rand;
    int32_t publisher_heartbeat;
    rig_publication publication;
    int64_t window;
    int64_t next_id;
    reader readers[READERS];
} model;

static int64_t lowest_position(const model *m, int64_t otherwise)
{
    int64_t lowest = INT64_MAX;
    for (int i = 0; i < READERS; i++)
    {
        const int64_t position = m->readers[i].is_there ? *m->readers[i].image.position : INT64_MAX;
        lowest = position < lowest ? position : lowest;
    }
    return INT64_MAX == lowest ? otherwise : lowest;
}

static int64_t tag_frame(void *context, uint8_t *frame, int64_t frame_length)
{
    const model *m = context;
    const asi_frame_header *header = (const asi_frame_header *)(const void *)frame;
    (void)frame_length;
    return asi_log_position(
        header->term_id, header->term_offset, m->publication.log.position_bits, m->publication.log.initial_term_id);
}

/* The bytes that the next message of `length` takes: to its end, or to the term's where it does not fit. */
static void check_is_zero(const model *m, int64_t position, int64_t length)
{
    const asi_log *log = &m->publication.log;
    const int64_t offset = position & (TERM - 1);
    const int64_t needed = asi_log_fragmented_length(length, m->publication.appender.max_payload);
    const int64_t end = offset + needed < TERM ? offset + needed : TERM;
    const uint8_t *term = log->terms[asi_log_index_of_position(position, log->position_bits)];
    for (int64_t at = offset; at < end; at += (int64_t)sizeof(int64_t))
    {
        CHECK_I64(asi_get_i64(term + at), 0);
    }
}

static void publish(model *m)
{
    static const uint8_t bytes[MAX_MESSAGE];
    const int64_t length = test_rand_below(&m->rand, 0 == test_rand_below(&m->rand, 8) ? MAX_MESSAGE + 1 : 300);
    const struct asi_append_part part = { .data = bytes, .length = length };
    const asi_append_source source = { .parts = &part, .part_count = 1, .length = length, .supplier = tag_frame, .supplier_context = m };
    const int64_t position = asi_append_position(&m->publication.appender);
    const int64_t limit = asi_load_acquire_i64(m->publication.limit);
    CHECK(limit <= lowest_position(m, limit) + m->window);
    if (position < 0 || position >= limit)
    {
        return;
    }
    check_is_zero(m, position, length);
    (void)asi_append_message(&m->publication.appender, &source);
}

static void read_some(model *m, reader *r)
{
    const asi_log *log = &m->publication.log;
    const int64_t position = *r->image.position;
    const int64_t term_position = position & ~(int64_t)(TERM - 1);
    asi_frame_walk walk = asi_frame_walk_start(
        log->terms[asi_log_index_of_position(position, log->position_bits)], position - term_position, TERM, TERM);
    for (int64_t frames = test_rand_below(&m->rand, 60); frames > 0 && ASI_WALK_FRAME == asi_frame_walk_next(&walk); frames--)
    {
        CHECK_I64(walk.frame->term_offset, walk.frame_offset);
        CHECK_I64(walk.frame->term_id, asi_log_term_id_of_position(position, log->position_bits, log->initial_term_id));
        CHECK_I64(asi_frame_is_padding(walk.frame) ? 0 : walk.frame->reserved_value - walk.frame_offset - term_position, 0);
    }
    asi_store_release_i64(r->image.position, term_position + walk.offset);
}

static void join(model *m, reader *r, int64_t client_id)
{
    r->registration_id = m->next_id++;
    rig_send_add(&m->rig, ASI_CMD_ADD_SUBSCRIPTION, client_id, r->registration_id, STREAM, "aeron:ipc");
    if (0 == r->heartbeat)
    {
        r->heartbeat = rig_expect_i32(&m->rig, ASI_RSP_COUNTER_READY, client_id);
    }
    rig_expect_i32(&m->rig, ASI_RSP_SUBSCRIPTION_READY, r->registration_id);
    rig_expect_image(&m->rig, r->registration_id, &r->image);
    r->is_there = true;
}

static void leave(model *m, reader *r, int64_t client_id)
{
    rig_send_remove(&m->rig, ASI_CMD_REMOVE_SUBSCRIPTION, client_id, m->next_id, r->registration_id);
    rig_expect_success(&m->rig, m->next_id++);
    r->is_there = false;
}

/* Most often a duty cycle, sometimes a timer tick too. */
static void let_drive(model *m)
{
    m->rig.now_ns += test_rand_below(&m->rand, 20 * RIG_MS);
    rig_heartbeat(&m->rig, m->publisher_heartbeat);
    for (int i = 0; i < READERS; i++)
    {
        if (0 != m->readers[i].heartbeat)
        {
            rig_heartbeat(&m->rig, m->readers[i].heartbeat);
        }
    }
    rig_cycle(&m->rig);
}

static void step(model *m)
{
    const int64_t which = test_rand_below(&m->rand, READERS);
    reader *r = &m->readers[which];
    const int64_t kind = test_rand_below(&m->rand, 1000);
    if (kind < 600)
    {
        publish(m);
    }
    else if (kind < 850)
    {
        if (r->is_there)
        {
            read_some(m, r);
        }
    }
    else if (kind < 990 || m->next_id > 200)
    {
        let_drive(m);
    }
    else if (r->is_there)
    {
        leave(m, r, FIRST_READER + which);
    }
    else
    {
        join(m, r, FIRST_READER + which);
    }
}

static void any_window(void)
{
    static const struct { const char *channel; int64_t window; bool is_exclusive; } ROWS[] = {
        { "aeron:ipc?term-length=64k", TERM / 2, true },
        { "aeron:ipc?term-length=64k", TERM / 2, false },
        { "aeron:ipc?term-length=64k|pub-wnd=1408", 1408, true },
        { "aeron:ipc?term-length=64k|pub-wnd=1409", 1409, false },
        { "aeron:ipc?term-length=64k|mtu=64|pub-wnd=64", 64, true },
        { "aeron:ipc?term-length=64k|mtu=8k|pub-wnd=8k", 8192, false },
        { "aeron:ipc?term-length=64k|pub-wnd=4000|init-term-id=2147483640|term-id=-2147483640|term-offset=65536", 4000, true },
    };
    asi_rand rand = test_rand();
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        model m = { .rand = rand, .window = ROWS[i].window, .next_id = 10 };
        rig_open(&m.rig, NULL);
        rig_send_add(&m.rig, ROWS[i].is_exclusive ? ASI_CMD_ADD_EXCLUSIVE_PUBLICATION : ASI_CMD_ADD_PUBLICATION, PUBLISHER, 1,
            STREAM, ROWS[i].channel);
        m.publisher_heartbeat = rig_expect_i32(&m.rig, ASI_RSP_COUNTER_READY, PUBLISHER);
        rig_expect_publication(&m.rig, ROWS[i].is_exclusive, &m.publication);
        const int64_t begin = asi_log_producer_position(&m.publication.log);
        for (int steps = 0; steps < 40000; steps++)
        {
            step(&m);
        }
        CHECK(asi_log_producer_position(&m.publication.log) - begin > 3 * TERM);
        rig_expect_none(&m.rig);
        asi_log_close(&m.publication.log);
        rig_close(&m.rig);
        rand = m.rand;
    }
}

int main(void)
{
    RUN(any_window);
    return 0;
}
