/* Goal: a recording that is being made is read up to its recorded position and no further; without the counters the error says
 * what to set; what happens to a recording while it is read is an error or right data, never wrong data.
 * Method: mark file, catalog, segments and a driver's counters are made here, so every moment can be held still. */
#include "archive_support.h"
#include "shm/cnc.h"
#include "shm/counters.h"
#include "store/catalog.h"
#include "store/folder.h"
#include "store/mark.h"
#include "store/segment_write.h"
#include "stream_maker.h"

#define TERM_LENGTH 65536
#define SEGMENT_LENGTH 131072
#define ARCHIVE_ID 77

typedef struct world
{
    char scratch[SCRATCH_CAPACITY];
    char archive_dir[AS_PATH_MAX];
    char aeron_dir[AS_PATH_MAX];
    stream made;
    asi_mark *mark;
    asi_catalog *catalog;
    asi_cnc cnc;
    asi_counters counters;
    asi_counters_manager manager;
    asi_segment_writer *writer;
    int32_t counter_id;
} world;

static int64_t wall_ms(void)
{
    const asi_clock clock = asi_clock_system();
    return asi_clock_ms(&clock);
}

static int32_t allocate_position(world *at, int64_t archive_id, int64_t value)
{
    uint8_t key[16 + 9 + 8] = { 0 };
    asi_put_i32(key + 8, STREAM_SESSION_ID);
    asi_put_i32(key + 12, 9);
    memcpy(key + 16, "aeron:ipc", 9);
    asi_put_i64(key + 25, archive_id);
    const asi_counter_request request = { .type_id = ASI_COUNTER_TYPE_RECORDING_POSITION, .key = key, .key_length = sizeof(key),
        .label = "rec-pos: 0", .label_length = 10, .initial_value = value };
    int32_t id = -1;
    CHECK_I64(asi_counters_allocate(&at->manager, &request, wall_ms(), &id), AS_OK);
    return id;
}

static void start_driver(world *at)
{
    const asi_cnc_params cnc_params = { .lengths = { .to_driver = 65536 + 768, .to_clients = 65536 + 128,
        .counters_metadata = 4 * 65536, .counters_values = 65536, .error_log = 65536 }, .client_liveness_timeout_ns = 1000000000,
        .start_timestamp_ms = wall_ms(), .pid = 1, .file_page_size = 4096 };
    CHECK_I64(asi_cnc_create(&at->cnc, at->aeron_dir, &cnc_params), AS_OK);
    asi_cnc_publish(&at->cnc);
    CHECK_I64(asi_counters_init(&at->counters, at->cnc.counters_metadata, at->cnc.lengths.counters_metadata,
        at->cnc.counters_values, at->cnc.lengths.counters_values), AS_OK);
    CHECK_I64(asi_counters_manager_init(&at->manager, &at->counters, 0), AS_OK);
}

static void world_open(world *at, asi_rand *rand)
{
    memset(at, 0, sizeof(*at));
    scratch_create(at->scratch);
    snprintf(at->archive_dir, sizeof(at->archive_dir), "%s/archive", at->scratch);
    snprintf(at->aeron_dir, sizeof(at->aeron_dir), "%s/aeron", at->scratch);
    CHECK_I64(asi_dir_create(at->archive_dir), AS_OK);
    CHECK_I64(asi_dir_create(at->aeron_dir), AS_OK);
    at->made = stream_make(rand, 4096, TERM_LENGTH, 300, 4000);
    start_driver(at);

    const asi_mark_params mark_params = { .archive_dir = at->archive_dir, .error_buffer_length = 1048576, .file_page_size = 4096,
        .start_timestamp_ms = wall_ms(), .pid = getpid(), .local_control_channel = "aeron:ipc", .aeron_dir = at->aeron_dir };
    const asi_clock clock = asi_clock_system();
    CHECK_I64(asi_mark_open(&mark_params, &clock, &at->mark), AS_OK);
    asi_mark_ready(at->mark, ARCHIVE_ID, wall_ms());

    const asi_catalog_params catalog_params = { .files = asi_file_ops_posix(), .archive_dir = at->archive_dir, .capacity = 4096 };
    CHECK_I64(asi_catalog_open(&catalog_params, &at->catalog), AS_OK);
    const asi_recording_params params = { .start_timestamp_ms = 1, .stop_timestamp_ms = -1,
        .start_position = at->made.start_position, .stop_position = -1, .initial_term_id = at->made.initial_term_id,
        .segment_file_length = SEGMENT_LENGTH, .term_buffer_length = TERM_LENGTH, .mtu_length = STREAM_MTU,
        .session_id = STREAM_SESSION_ID, .stream_id = STREAM_STREAM_ID, .stripped_channel = asi_text_of("aeron:ipc"),
        .original_channel = asi_text_of("aeron:ipc"), .source_identity = asi_text_of("aeron:ipc") };
    int64_t id;
    CHECK_I64(asi_catalog_add(at->catalog, &params, &id), AS_OK);
    (void)allocate_position(at, ARCHIVE_ID + 1, 32); /* another archive on the same driver, same recording id */
    at->counter_id = allocate_position(at, ARCHIVE_ID, at->made.start_position);
    const asi_segment_writer_params writer_params = { .files = asi_file_ops_posix(), .archive_dir = at->archive_dir,
        .start_position = at->made.start_position, .join_position = at->made.start_position,
        .initial_term_id = at->made.initial_term_id, .term_length = TERM_LENGTH, .segment_length = SEGMENT_LENGTH };
    CHECK_I64(asi_segment_writer_open(&writer_params, &at->writer), AS_OK);
}

static void world_close(world *at)
{
    asi_segment_writer_close(at->writer);
    asi_catalog_close(at->catalog);
    asi_mark_close(at->mark);
    asi_counters_manager_close(&at->manager);
    asi_cnc_close(&at->cnc);
    stream_free(&at->made);
    scratch_delete(at->scratch);
}

/* Writes block `index` and publishes the position, as the recorder does. */
static int64_t record_block(world *at, int64_t index)
{
    const stream_block *block = &at->made.blocks[index];
    CHECK_I64(asi_segment_writer_append(at->writer, stream_at(&at->made, block->position), block->length), AS_OK);
    const int64_t position = asi_segment_writer_position(at->writer);
    asi_store_release_i64(asi_counter_addr(&at->counters, at->counter_id), position);
    return position;
}

static as_recording_extent extent_of(as_folder *folder)
{
    as_recording_extent extent;
    CHECK_I64(as_folder_extent(folder, 0, &extent), AS_OK);
    return extent;
}

/* Micro-batches while the recording grows block by block: every message once, none before it is whole. */
static void follows_the_counter(void)
{
    asi_rand rand = test_rand();
    world at;
    world_open(&at, &rand);
    as_folder *folder = folder_open(at.archive_dir, AS_CHECKSUM_AUTO);
    as_columns columns = columns_create(1000, 1 << 20);
    int64_t next = 0;
    int64_t from = at.made.start_position;
    CHECK_I64(extent_of(folder).limit_position, at.made.start_position);
    for (int64_t i = 0; i < at.made.block_count; i++)
    {
        const int64_t position = record_block(&at, i);
        const as_recording_extent extent = extent_of(folder);
        CHECK(extent.is_active);
        CHECK_I64(extent.limit_position, position);
        int64_t to = -1;
        CHECK_I64(as_folder_advance(folder, 0, from, extent.limit_position, -1, -1, &to), AS_OK);
        CHECK(to >= from && to <= position);
        as_segment_reader *reader = NULL;
        CHECK_I64(as_segment_reader_open(folder, 0, from, to, to, &reader), AS_OK);
        do
        {
            CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
            for (int64_t row = 0; row < columns.row_count; row++, next++)
            {
                CHECK_I64(columns.position[row], at.made.messages[next].begin_position);
                CHECK_I64(row_crc32(&columns, row), at.made.messages[next].crc32);
            }
        } while (columns.row_count > 0);
        as_segment_reader_close(reader);
        CHECK(next == at.made.message_count || at.made.messages[next].end_position > position);
        from = to;
    }
    CHECK_I64(next, at.made.message_count);
    as_segment_reader *reader = NULL;
    CHECK_I64(as_segment_reader_open(folder, 0, from, from, from + 32, &reader), AS_E_USAGE); /* behind the counter */
    columns_free(&columns);
    as_folder_close(folder);
    world_close(&at);
}

/* A second recording of the same archive, whose counter says `position`. */
static int64_t add_recording(world *at, int64_t position, int64_t stop_position)
{
    const asi_recording_params params = { .start_timestamp_ms = 1, .stop_timestamp_ms = stop_position < 0 ? -1 : 2,
        .start_position = 0, .stop_position = stop_position, .segment_file_length = SEGMENT_LENGTH,
        .term_buffer_length = TERM_LENGTH, .mtu_length = STREAM_MTU, .session_id = STREAM_SESSION_ID,
        .stream_id = STREAM_STREAM_ID, .stripped_channel = asi_text_of("aeron:ipc"),
        .original_channel = asi_text_of("aeron:ipc"), .source_identity = asi_text_of("aeron:ipc") };
    int64_t id;
    CHECK_I64(asi_catalog_add(at->catalog, &params, &id), AS_OK);
    if (stop_position < 0)
    {
        const int32_t counter = allocate_position(at, ARCHIVE_ID, position);
        asi_put_i64(at->counters.metadata[counter].key, id);
    }
    return id;
}

static int opened_count;

static int counted_open(void *context, const char *path, asi_file_mode mode)
{
    opened_count++;
    return asi_file_ops_posix()->open(context, path, mode);
}

/* What a planner asks at each trigger must not open a file for each of thousands of recordings. */
static void check_opens_once(as_folder *folder, const int64_t *wanted, int64_t count)
{
    asi_file_ops counted = *folder->files;
    const asi_file_ops *before = folder->files;
    as_recording_extent extents[4];
    counted.open = counted_open;
    folder->files = &counted;
    opened_count = 0;
    CHECK_I64(as_folder_extents(folder, wanted, count, extents), AS_OK);
    CHECK_I64(opened_count, 1);
    folder->files = before;
}

static void many_at_once(void)
{
    asi_rand rand = test_rand();
    world at;
    world_open(&at, &rand);
    const int64_t active = add_recording(&at, 64, -1);
    const int64_t stopped = add_recording(&at, 0, 96);
    const int64_t other = add_recording(&at, 128, -1);
    as_folder *folder = folder_open(at.archive_dir, AS_CHECKSUM_AUTO);
    int64_t ids[4];
    int64_t revisions[4];
    int64_t starts[4];
    int64_t stops[4];
    const as_folder_columns columns =
        { .recording_id = ids, .revision = revisions, .start_position = starts, .stop_position = stops };
    CHECK_I64(as_folder_recording_count(folder), 4);
    as_folder_get_columns(folder, &columns);
    CHECK_I64(ids[stopped], stopped);
    CHECK_I64(stops[stopped], 96);
    CHECK_I64(stops[active], -1);
    const int64_t before = revisions[other];
    /* In any order, each as if it were asked for alone. */
    const int64_t wanted[] = { other, 0, stopped, active };
    as_recording_extent extents[4];
    CHECK_I64(as_folder_extents(folder, wanted, 4, extents), AS_OK);
    const int64_t limits[] = { 128, at.made.start_position, 96, 64 };
    for (int64_t i = 0; i < 4; i++)
    {
        as_recording_extent alone;
        CHECK_I64(as_folder_extent(folder, wanted[i], &alone), AS_OK);
        CHECK_I64(extents[i].limit_position, limits[i]);
        CHECK_I64(extents[i].start_position, alone.start_position);
        CHECK_I64(extents[i].limit_position, alone.limit_position);
        CHECK_I64(extents[i].is_active, alone.is_active);
    }
    check_opens_once(folder, wanted, 4);
    /* A stop changes a position, and no revision; an extension brings a session. */
    CHECK_I64(asi_catalog_stop(at.catalog, other, 128, 5), AS_OK);
    CHECK_I64(as_folder_refresh(folder), AS_OK);
    as_folder_get_columns(folder, &columns);
    CHECK_I64(stops[other], 128);
    CHECK_I64(revisions[other], before);
    CHECK_I64(asi_catalog_extend(at.catalog, other, 1, 2, STREAM_SESSION_ID + 1), AS_OK);
    CHECK_I64(as_folder_refresh(folder), AS_OK);
    as_folder_get_columns(folder, &columns);
    CHECK(revisions[other] > before);
    CHECK(revisions[other] != revisions[active] && revisions[0] < before);
    const int64_t unknown[] = { 0, 99 };
    CHECK_I64(as_folder_extents(folder, unknown, 2, extents), AS_E_USAGE);
    as_folder_close(folder);
    world_close(&at);
}

static void stops_and_dies(void)
{
    asi_rand rand = test_rand();
    world at;
    world_open(&at, &rand);
    as_folder *folder = folder_open(at.archive_dir, AS_CHECKSUM_AUTO);
    int64_t position = 0;
    for (int64_t i = 0; i < at.made.block_count; i++)
    {
        position = record_block(&at, i);
    }
    /* It stopped after the folder read the catalog; the counter is gone. */
    asi_counters_free(&at.manager, at.counter_id, wall_ms());
    CHECK_I64(asi_catalog_stop(at.catalog, 0, position, 5), AS_OK);
    as_recording_extent extent = extent_of(folder);
    CHECK(!extent.is_active);
    CHECK_I64(extent.limit_position, position);
    /* Extended, but no counter yet: an error that says what to do. */
    CHECK_I64(asi_catalog_extend(at.catalog, 0, 1, 2, 3), AS_OK);
    CHECK_I64(as_folder_extent(folder, 0, &extent), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), at.aeron_dir));
    /* Dead: the heartbeat is old. */
    asi_mark_heartbeat(at.mark, wall_ms() - 20000);
    extent = extent_of(folder);
    CHECK(!extent.is_active);
    CHECK_I64(extent.limit_position, position);
    as_folder_close(folder);
    world_close(&at);
}

static void counters_out_of_reach(void)
{
    asi_rand rand = test_rand();
    world at;
    world_open(&at, &rand);
    record_block(&at, 0);
    as_folder_options options;
    as_folder_options_init(&options);
    options.aeron_dir = "/dev/shm/as-store-no-such-directory";
    as_folder *folder = NULL;
    as_recording_extent extent;
    CHECK_I64(as_folder_open(at.archive_dir, &options, &folder), AS_OK);
    as_folder_info info;
    CHECK_I64(as_folder_get_info(folder, &info), AS_OK);
    CHECK(info.is_live);
    CHECK_I64(info.archive_id, ARCHIVE_ID);
    CHECK_I64(as_folder_extent(folder, 0, &extent), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), options.aeron_dir) && NULL != strstr(as_error_text(), at.aeron_dir));
    as_folder_close(folder);
    options.aeron_dir = at.aeron_dir;
    CHECK_I64(as_folder_open(at.archive_dir, &options, &folder), AS_OK);
    CHECK_I64(extent_of(folder).limit_position, asi_segment_writer_position(at.writer));
    as_folder_close(folder);
    world_close(&at);
}

/* A folder stays open for days. Its driver may start anew, with other counters, or leave a file that was cut off. */
static void another_driver(void)
{
    asi_rand rand = test_rand();
    world at;
    world_open(&at, &rand);
    as_folder *folder = folder_open(at.archive_dir, AS_CHECKSUM_AUTO);
    const int64_t first = record_block(&at, 0);
    CHECK_I64(extent_of(folder).limit_position, first);
    CHECK_I64(extent_of(folder).limit_position, first);

    char path[AS_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/cnc.dat", at.aeron_dir);
    const asi_cnc old = at.cnc;
    asi_counters_manager_close(&at.manager);
    CHECK_I64(unlink(path), 0);
    as_recording_extent extent;
    CHECK_I64(as_folder_extent(folder, 0, &extent), AS_E_PEER);
    start_driver(&at);
    at.counter_id = allocate_position(&at, ARCHIVE_ID, first);
    const int64_t second = record_block(&at, 1);
    CHECK_I64(extent_of(folder).limit_position, second);

    CHECK_I64(truncate(path, 4096), 0);
    CHECK_I64(as_folder_extent(folder, 0, &extent), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), at.aeron_dir));
    as_folder_close(folder);
    asi_cnc before = old;
    asi_cnc_close(&before);
    world_close(&at);
}

static as_segment_reader *begin_reading(world *at, as_folder **folder, as_columns *columns)
{
    int64_t position = 0;
    for (int64_t i = 0; i < at->made.block_count; i++)
    {
        position = record_block(at, i);
    }
    CHECK_I64(asi_catalog_stop(at->catalog, 0, position, 5), AS_OK);
    *folder = folder_open(at->archive_dir, AS_CHECKSUM_AUTO);
    *columns = columns_create(10, 1 << 20);
    as_segment_reader *reader = NULL;
    CHECK_I64(as_segment_reader_open(*folder, 0, at->made.start_position, position, position, &reader), AS_OK);
    CHECK_I64(as_segment_reader_next(reader, columns), AS_OK);
    CHECK_I64(columns->row_count, 10);
    return reader;
}

static as_result read_rest(as_segment_reader *reader, as_columns *columns)
{
    as_result result;
    while (AS_OK == (result = as_segment_reader_next(reader, columns)) && columns->row_count > 0)
    {
    }
    return result;
}

typedef void (*disturbance)(world *at);

static void purge(world *at) { CHECK_I64(asi_catalog_invalidate(at->catalog, 0, ASI_RECORDING_DELETED), AS_OK); }

static void truncate_recording(world *at)
{
    CHECK_I64(asi_catalog_set_stop_position(at->catalog, 0, at->made.messages[100].begin_position), AS_OK);
}

static void delete_segment(world *at)
{
    char path[AS_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/0-131072.rec", at->archive_dir);
    CHECK_I64(unlink(path), 0);
}

static void cut_segment(world *at)
{
    char path[AS_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/0-131072.rec", at->archive_dir);
    CHECK_I64(truncate(path, 1000), 0);
}

static void zero_segment(world *at)
{
    char path[AS_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/0-131072.rec", at->archive_dir);
    CHECK_I64(truncate(path, 0), 0);
    CHECK_I64(truncate(path, SEGMENT_LENGTH), 0);
}

/* As the archive does it: the catalog first. */
static void truncate_with_file(world *at)
{
    char path[AS_PATH_MAX + 64];
    const int64_t stop = at->made.messages[100].begin_position;
    CHECK_I64(asi_catalog_set_stop_position(at->catalog, 0, stop), AS_OK);
    snprintf(path, sizeof(path), "%s/0-0.rec", at->archive_dir);
    CHECK_I64(truncate(path, stop), 0);
    CHECK_I64(truncate(path, SEGMENT_LENGTH), 0);
    delete_segment(at);
}

static void disturbed(void)
{
    static const struct
    {
        disturbance disturb;
        const char *text;
    } rows[] = { { purge, "was purged" }, { truncate_recording, "was truncated to position" },
        { delete_segment, "0-131072.rec): the segment file is missing" }, { cut_segment, "it is truncated" },
        { zero_segment, "gap: no frame was recorded here" },
        { truncate_with_file, "was truncated to position" } };
    asi_rand rand = test_rand();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        world at;
        as_folder *folder;
        as_columns columns;
        world_open(&at, &rand);
        as_segment_reader *reader = begin_reading(&at, &folder, &columns);
        rows[i].disturb(&at);
        CHECK_I64(read_rest(reader, &columns), AS_E_DATA);
        if (NULL == strstr(as_error_text(), rows[i].text) || NULL == strstr(as_error_text(), "recording 0"))
        {
            CHECK_TEXT(as_error_text(), rows[i].text);
        }
        as_segment_reader_close(reader);
        columns_free(&columns);
        as_folder_close(folder);
        world_close(&at);
    }
}

/* The process of a Spark task: what was planned is read, and the driver's files are left alone, which may shrink at any time. */
static void planned_without_counters(void)
{
    asi_rand rand = test_rand();
    world at;
    world_open(&at, &rand);
    int64_t end = 0;
    for (int64_t i = 0; i < at.made.block_count; i++) /* the first may hold but a part of a message */
    {
        end = record_block(&at, i);
    }
    char path[AS_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/cnc.dat", at.aeron_dir);
    CHECK_I64(unlink(path), 0);
    as_folder_options options;
    as_folder_options_init(&options);
    options.without_counters = true;
    as_folder *folder = NULL;
    CHECK_I64(as_folder_open(at.archive_dir, &options, &folder), AS_OK);
    as_recording_extent extent;
    CHECK_I64(as_folder_extent(folder, 0, &extent), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "counters are not read"));
    int64_t time_ns = 0;
    uint8_t time_source = 0;
    CHECK_I64(as_folder_times_at(folder, 0, &at.made.start_position, 1, &time_ns, &time_source), AS_OK);
    as_columns columns = columns_create(1000, 1 << 20);
    as_segment_reader *reader = NULL;
    CHECK_I64(as_segment_reader_open(folder, 0, at.made.start_position, end, end, &reader), AS_OK);
    int64_t rows = 0;
    do
    {
        CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
        rows += columns.row_count;
    } while (columns.row_count > 0);
    CHECK_I64(rows, at.made.message_count);
    as_segment_reader_close(reader);
    columns_free(&columns);
    as_folder_close(folder);
    world_close(&at);
}

int main(void)
{
    RUN(follows_the_counter);
    RUN(planned_without_counters);
    RUN(many_at_once);
    RUN(stops_and_dies);
    RUN(counters_out_of_reach);
    RUN(another_driver);
    RUN(disturbed);
    return 0;
}
