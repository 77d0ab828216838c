/* A recording in a folder of its own with its time index, written block by block under a clock that jumps, and the list of its
 * messages with their write times, as a publisher would note them. */
#ifndef AS_TESTS_STORE_TIME_WORLD_H
#define AS_TESTS_STORE_TIME_WORLD_H

#include "store/segment_layout.h"
#include "store/segment_write.h"
#include "store/time_index_edit.h"
#include "store/time_index_write.h"
#include "stream_maker.h"

#define WORLD_TERM_LENGTH 65536
#define WORLD_SEGMENT_LENGTH 131072
#define WORLD_INTERVAL_NS INT64_C(10000000)
#define WORLD_START_MS INT64_C(1700000000000)
#define WORLD_MESSAGES_MAX 20000
#define WORLD_LONGEST 3000

typedef struct timed_message
{
    int64_t begin;
    int64_t end;
    int64_t time_ns; /* of the write that made it whole, clamped */
} timed_message;

typedef struct time_world
{
    char dir[SCRATCH_CAPACITY];
    asi_rand *rand;
    const asi_file_ops *files;  /* of the index */
    asi_catalog *catalog;
    int64_t start_position;
    int64_t position;
    int32_t initial_term_id;
    int64_t clock_ns;           /* may be set back */
    int64_t last_ns;            /* the clamp */
    int64_t interval_bytes;
    timed_message *messages;
    int64_t count;
    asi_segment_writer *segments;
    asi_time_writer *times;     /* NULL: it could not be opened */
    int open_failure;
} time_world;

static inline void world_open(time_world *world, asi_rand *rand)
{
    *world = (time_world){ .rand = rand, .files = asi_file_ops_posix(), .clock_ns = WORLD_START_MS * 1000000,
        .interval_bytes = 16384 };
    scratch_create(world->dir);
    world->messages = calloc(WORLD_MESSAGES_MAX, sizeof(timed_message));
    CHECK(NULL != world->messages);
    world->start_position = world->position = 32 * test_rand_below(rand, 5000);
    world->initial_term_id = asi_rand_i32(rand);
    const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = world->dir, .capacity = 4096 };
    CHECK_I64(asi_catalog_open(&params, &world->catalog), AS_OK);
    const asi_recording_params recording = { .start_timestamp_ms = WORLD_START_MS, .stop_timestamp_ms = -1,
        .start_position = world->start_position, .stop_position = -1, .initial_term_id = world->initial_term_id,
        .segment_file_length = WORLD_SEGMENT_LENGTH, .term_buffer_length = WORLD_TERM_LENGTH, .mtu_length = STREAM_MTU,
        .session_id = STREAM_SESSION_ID, .stream_id = STREAM_STREAM_ID, .stripped_channel = asi_text_of("aeron:ipc"),
        .original_channel = asi_text_of("aeron:ipc"), .source_identity = asi_text_of("aeron:ipc") };
    int64_t id = -1;
    CHECK_I64(asi_catalog_add(world->catalog, &recording, &id), AS_OK);
    CHECK_I64(id, 0);
}

static inline asi_catalog_record world_record(const time_world *world)
{
    asi_catalog_record record;
    CHECK(asi_catalog_find(world->catalog, 0, &record));
    return record;
}

/* As a start, or as an extension when it was stopped. */
static inline void world_begin(time_world *world, bool is_off)
{
    asi_catalog_record record = world_record(world);
    const asi_time_era known = asi_time_era_of(&record);
    world->last_ns = AS_NULL_VALUE == record.stop_position ? 0 : record.stop_timestamp_ms * 1000000;
    if (AS_NULL_VALUE != record.stop_position)
    {
        CHECK_I64(asi_catalog_extend(world->catalog, 0, 7, (int64_t)asi_rand_u64(world->rand), STREAM_SESSION_ID), AS_OK);
        record = world_record(world);
    }
    const asi_segment_writer_params segments = { .files = asi_file_ops_posix(), .archive_dir = world->dir, .recording_id = 0,
        .start_position = world->start_position, .join_position = world->position,
        .initial_term_id = world->initial_term_id, .term_length = WORLD_TERM_LENGTH, .segment_length = WORLD_SEGMENT_LENGTH,
        .checksum = AS_CHECKSUM_NONE };
    CHECK_I64(asi_segment_writer_open(&segments, &world->segments), AS_OK);
    const asi_time_writer_params times = { .files = world->files, .archive_dir = world->dir, .recording_id = 0,
        .join_position = world->position, .not_before_ns = world->last_ns, .interval_ns = WORLD_INTERVAL_NS, .interval_bytes = world->interval_bytes,
        .is_off = is_off, .known_era = known, .era = asi_time_era_of(&record), .term_length = WORLD_TERM_LENGTH,
        .segment_length = WORLD_SEGMENT_LENGTH, .positions = asi_catalog_positions(world->catalog, 0) };
    const as_result opened = asi_time_writer_open(&times, &world->times);
    world->open_failure = AS_OK == opened ? 0 : as_error_code();
    CHECK(AS_OK == opened || (AS_E_STORAGE == opened && asi_file_ops_posix() != world->files));
}

/* A quarter of the steps are long, now and then the clock is set back or forth. */
static inline void world_pass_time(time_world *world)
{
    const int64_t kind = test_rand_below(world->rand, 100);
    world->clock_ns += kind < 2 ? -test_rand_below(world->rand, 200000000) : kind < 4 ? test_rand_below(world->rand, 5000000000) :
        kind < 25 ? test_rand_below(world->rand, 30000000) : test_rand_below(world->rand, 1500000);
    if (NULL != world->times && asi_time_writer_is_waiting(world->times) && kind % 3 == 0)
    {
        asi_time_writer_idle(world->times, world->clock_ns);
    }
}

/* Frames made for another initial term id get the recording's. */
static inline void world_adopt(const time_world *world, stream *made)
{
    for (int64_t position = made->start_position; position < made->end_position;)
    {
        asi_frame_header *frame = (asi_frame_header *)(void *)stream_at(made, position);
        frame->term_id = asi_wrap_add(world->initial_term_id, (int32_t)(position / made->term_length));
        position += asi_frame_occupancy(frame->frame_length);
    }
}

static inline void world_write(time_world *world, int64_t count)
{
    stream made = stream_make(world->rand, world->position, WORLD_TERM_LENGTH, count, WORLD_LONGEST);
    world_adopt(world, &made);
    int64_t next = 0;
    for (int64_t i = 0; i < made.block_count; i++)
    {
        const stream_block *block = &made.blocks[i];
        world_pass_time(world);
        world->last_ns = world->clock_ns > world->last_ns ? world->clock_ns : world->last_ns;
        CHECK_I64(asi_segment_writer_append(world->segments, stream_at(&made, block->position), block->length), AS_OK);
        if (NULL != world->times)
        {
            asi_time_writer_add(world->times, block->position, block->length, world->clock_ns);
        }
        for (; next < made.message_count && made.messages[next].end_position <= block->position + block->length; next++)
        {
            CHECK(world->count < WORLD_MESSAGES_MAX);
            world->messages[world->count++] = (timed_message){ .begin = made.messages[next].begin_position,
                .end = made.messages[next].end_position, .time_ns = world->last_ns };
        }
    }
    world->position = made.end_position;
    stream_free(&made);
}

/* Returns the errno of the index's first failure. */
static inline int world_end(time_world *world)
{
    const int failure = NULL == world->times ? world->open_failure : asi_time_writer_close(world->times);
    world->times = NULL;
    asi_segment_writer_close(world->segments);
    CHECK_I64(asi_catalog_stop(world->catalog, 0, world->position, world->last_ns / 1000000 + 1), AS_OK);
    return failure;
}

static inline void world_forget_from(time_world *world, int64_t position)
{
    while (world->count > 0 && world->messages[world->count - 1].begin >= position)
    {
        world->count--;
    }
    world->position = position;
}

/* As truncating does; `tells`: by an archive that knows the index. */
static inline void world_truncate(time_world *world, bool tells)
{
    const int64_t position = world->messages[test_rand_below(world->rand, world->count)].begin;
    world_forget_from(world, position);
    CHECK_I64(asi_catalog_set_stop_position(world->catalog, 0, position), AS_OK);
    if (tells)
    {
        CHECK_I64(asi_time_index_truncate(asi_file_ops_posix(), world->dir, 0, position), AS_OK);
    }
    const int64_t first = asi_segment_base(world->start_position, position, WORLD_TERM_LENGTH, WORLD_SEGMENT_LENGTH);
    for (int64_t base = first + (position > first ? WORLD_SEGMENT_LENGTH : 0); base < first + (64 << 20); base += WORLD_SEGMENT_LENGTH)
    {
        char path[AS_PATH_MAX];
        CHECK_I64(asi_segment_path(path, sizeof(path), world->dir, 0, base), AS_OK);
        if (0 != unlink(path) && base > first + WORLD_SEGMENT_LENGTH)
        {
            break;
        }
    }
}

static inline void world_close(time_world *world)
{
    asi_catalog_close(world->catalog);
    free(world->messages);
    scratch_delete(world->dir);
}

/* The first message at or after the time; count: none. */
static inline int64_t world_first(const time_world *world, int64_t time_ns)
{
    int64_t low = 0;
    int64_t high = world->count;
    while (low < high)
    {
        const int64_t middle = low + (high - low) / 2;
        if (world->messages[middle].time_ns < time_ns)
        {
            low = middle + 1;
        }
        else
        {
            high = middle;
        }
    }
    return low;
}

/* Most near a message's time, some anywhere. */
static inline int64_t world_time(const time_world *world)
{
    const int64_t first_ns = world->messages[0].time_ns;
    const int64_t span_ns = world->messages[world->count - 1].time_ns - first_ns;
    return 0 == test_rand_below(world->rand, 3) ? first_ns - 1000000 + test_rand_below(world->rand, span_ns + 2000000) :
        world->messages[test_rand_below(world->rand, world->count)].time_ns - 1 + test_rand_below(world->rand, 3);
}

#endif
