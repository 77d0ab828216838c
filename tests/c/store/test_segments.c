/* Goal: the folder reader returns what the segment writer was given; a disk that refuses any one call never lets the
 * recorded position pass durable data; after a crash the recovered end is a frame's end and everything before it is whole.
 * Method: random streams (printed seed) are written in blocks, with each checksum, then read; the same with a fault at call
 * 1, 2, ... and extension afterwards; the same with the bytes behind some point lost page by page, as in a power cut.
 * Spec: 06 §7.2, 08 §17. */
#include <fcntl.h>
#include <unistd.h>

#include "archive_support.h"
#include "failing_files.h"
#include "stream_maker.h"
#include "store/folder.h"
#include "store/recover.h"
#include "store/segment_layout.h"
#include "store/segment_write.h"

#define TERM_LENGTH 65536
#define SEGMENT_LENGTH 131072

static int32_t segment_length(const stream *made)
{
    return made->term_length > SEGMENT_LENGTH ? made->term_length : SEGMENT_LENGTH;
}

static int64_t add_recording(const char *dir, const stream *made, int64_t stop_position)
{
    const asi_catalog_params catalog_params = { .files = asi_file_ops_posix(), .archive_dir = dir, .capacity = 4096 };
    asi_catalog *catalog = NULL;
    CHECK_I64(asi_catalog_open(&catalog_params, &catalog), AS_OK);
    const asi_recording_params params = { .start_timestamp_ms = 1, .stop_timestamp_ms = -1, .start_position = made->start_position,
        .stop_position = stop_position, .initial_term_id = made->initial_term_id, .segment_file_length = segment_length(made),
        .term_buffer_length = made->term_length, .mtu_length = STREAM_MTU, .session_id = STREAM_SESSION_ID,
        .stream_id = STREAM_STREAM_ID, .stripped_channel = asi_text_of("aeron:ipc"), .original_channel = asi_text_of("aeron:ipc"),
        .source_identity = asi_text_of("aeron:ipc") };
    int64_t id = -1;
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    asi_catalog_close(catalog);
    return id;
}

static asi_segment_writer *writer_open(
    const asi_file_ops *files, const char *dir, const stream *made, int64_t join, as_record_checksum checksum)
{
    const asi_segment_writer_params params = { .files = files, .archive_dir = dir, .recording_id = 0,
        .start_position = made->start_position, .join_position = join, .initial_term_id = made->initial_term_id,
        .term_length = made->term_length, .segment_length = segment_length(made), .file_sync_level = 1, .checksum = checksum };
    asi_segment_writer *writer = NULL;
    return AS_OK == asi_segment_writer_open(&params, &writer) ? writer : NULL;
}

/* Appends the blocks from `join` on; stops at a failure. */
static as_result write_blocks(asi_segment_writer *writer, const stream *made, int64_t join)
{
    for (int64_t i = 0; i < made->block_count; i++)
    {
        const stream_block *block = &made->blocks[i];
        if (block->position + block->length <= join)
        {
            continue;
        }
        const int64_t begin = block->position < join ? join : block->position;
        const int64_t before = asi_segment_writer_position(writer);
        const as_result result =
            asi_segment_writer_append(writer, stream_at(made, begin), block->position + block->length - begin);
        if (AS_OK != result)
        {
            CHECK_I64(asi_segment_writer_position(writer), before);
            return result;
        }
        CHECK_I64(asi_segment_writer_position(writer), block->position + block->length);
    }
    return AS_OK;
}

/* Rows of [start, end of the recording) must be the stream's messages that end at or before `end`, in columns of either form. */
static void check_messages_in(
    const char *dir, const stream *made, int64_t end, as_record_checksum checksum, bool has_gaps)
{
    as_folder *folder = folder_open(dir, AS_CHECKSUM_AUTO);
    as_columns columns = columns_create(100, 200000 + made->term_length / 4);
    columns.value_end = has_gaps ? calloc(100, sizeof(int32_t)) : NULL;
    int64_t gaps = 0;
    as_segment_reader *reader = NULL;
    as_record_checksum found = AS_CHECKSUM_AUTO;
    CHECK_I64(as_folder_checksum(folder, 0, &found), AS_OK);
    CHECK(end == made->start_position || found == checksum);
    CHECK_I64(as_segment_reader_open(folder, 0, made->start_position, end, end, &reader), AS_OK);
    int64_t next = 0;
    do
    {
        CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
        for (int64_t row = 0; row < columns.row_count; row++, next++)
        {
            CHECK_I64(columns.position[row], made->messages[next].begin_position);
            CHECK_I64(columns.next_position[row], made->messages[next].end_position);
            CHECK_I64(row_length(&columns, row), made->messages[next].length);
            CHECK_I64(row_crc32(&columns, row), made->messages[next].crc32);
            gaps += row > 0 && columns.value_offset[row] > columns.value_offset[row - 1] + row_length(&columns, row - 1);
            CHECK_I64(columns.reserved_value[row], made->messages[next].reserved_value);
            CHECK_I64(columns.session_id[row], STREAM_SESSION_ID);
        }
    } while (columns.row_count > 0);
    CHECK(next == made->message_count || made->messages[next].end_position > end);
    CHECK(has_gaps || 0 == gaps);
    as_segment_reader_close(reader);
    columns_free(&columns);
    as_folder_close(folder);
}

static void check_messages(const char *dir, const stream *made, int64_t end, as_record_checksum checksum)
{
    check_messages_in(dir, made, end, checksum, false);
    check_messages_in(dir, made, end, checksum, true);
}

static const as_record_checksum checksums[] = { AS_CHECKSUM_NONE, AS_CHECKSUM_CRC32, AS_CHECKSUM_CRC32C };

static void write_and_read(void)
{
    asi_rand rand = test_rand();
    for (int round = 0; round < 12; round++)
    {
        const char *scratch = scratch_folder();
        stream made = stream_make(&rand, 32 * test_rand_below(&rand, 10000), TERM_LENGTH, 400, 8000);
        const as_record_checksum checksum = checksums[round % 3];
        add_recording(scratch, &made, made.end_position);
        asi_segment_writer *writer = writer_open(asi_file_ops_posix(), scratch, &made, made.start_position, checksum);
        CHECK(NULL != writer);
        CHECK_I64(write_blocks(writer, &made, made.start_position), AS_OK);
        CHECK_I64(asi_segment_writer_position(writer), made.end_position);
        asi_segment_writer_close(writer);
        check_messages(scratch, &made, made.end_position, checksum);
        stream_free(&made);
    }
}

/* Joins blocks of data to longer ones, as a recorder that lags behind gets them. */
static void join_blocks(stream *made, int64_t max_length)
{
    int64_t count = 1;
    for (int64_t i = 1; i < made->block_count; i++)
    {
        const stream_block *block = &made->blocks[i];
        stream_block *last = &made->blocks[count - 1];
        const bool is_padding = asi_frame_is_padding((const asi_frame_header *)(const void *)stream_at(made, block->position)) ||
            asi_frame_is_padding((const asi_frame_header *)(const void *)stream_at(made, last->position));
        if (is_padding || 0 == block->position % made->term_length || last->length + block->length > max_length)
        {
            made->blocks[count++] = *block;
        }
        else
        {
            last->length += block->length;
        }
    }
    made->block_count = count;
}

/* Messages and padding that are larger than a reading window; blocks that are larger than the writer's buffer for checksums. */
static void large_messages(void)
{
    asi_rand rand = test_rand();
    for (int round = 0; round < 2; round++)
    {
        const char *scratch = scratch_folder();
        stream made = stream_make(&rand, 32 * test_rand_below(&rand, 10000), 16 << 20, 60, 2 << 20);
        join_blocks(&made, 1 << 20);
        add_recording(scratch, &made, made.end_position);
        asi_segment_writer *writer =
            writer_open(asi_file_ops_posix(), scratch, &made, made.start_position, checksums[round]);
        CHECK(NULL != writer);
        CHECK_I64(write_blocks(writer, &made, made.start_position), AS_OK);
        asi_segment_writer_close(writer);
        check_messages(scratch, &made, made.end_position, checksums[round]);
        as_folder *folder = folder_open(scratch, AS_CHECKSUM_AUTO);
        as_columns columns = columns_create(10, 1000);
        as_segment_reader *reader = NULL;
        CHECK_I64(as_segment_reader_open(folder, 0, made.start_position, made.end_position, made.end_position, &reader), AS_OK);
        as_result result;
        do
        {
            result = as_segment_reader_next(reader, &columns);
        } while (AS_OK == result && columns.row_count > 0);
        CHECK_I64(result, AS_E_USAGE); /* the columns are too small for one message, and the text says how large it is */
        CHECK(NULL != strstr(as_error_text(), "the columns hold 1000"));
        as_segment_reader_close(reader);
        columns_free(&columns);
        as_folder_close(folder);
        stream_free(&made);
    }
}

/* A full segment at once gets an empty one behind it, every file has its full length, padding is written as its header only. */
static void files_as_stock(void)
{
    char path[AS_PATH_MAX];
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    stream made = stream_make(&rand, 0, TERM_LENGTH, 1, 100);
    made.end_position = 0;
    asi_segment_writer *writer = writer_open(asi_file_ops_posix(), scratch, &made, 0, AS_CHECKSUM_CRC32);
    CHECK(NULL != writer);
    memset(made.bytes, 0xEE, 2 * TERM_LENGTH); /* what a dirty term holds behind a padding header */
    for (int64_t term = 0; term < 2; term++)
    {
        made.end_position = term * TERM_LENGTH;
        stream_frame(&made, TERM_LENGTH, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_PAD, 0);
        CHECK_I64(asi_segment_writer_append(writer, stream_at(&made, term * TERM_LENGTH), TERM_LENGTH), AS_OK);
    }
    CHECK_I64(asi_segment_writer_position(writer), SEGMENT_LENGTH);
    CHECK_I64(asi_segment_writer_bytes_written(writer), 64);
    asi_segment_writer_close(writer);
    int64_t length;
    uint8_t *first = file_load(scratch, "0-0.rec", &length);
    CHECK_I64(length, SEGMENT_LENGTH);
    CHECK_I64(((const asi_frame_header *)(const void *)first)->session_id, STREAM_SESSION_ID); /* no checksum on padding */
    for (int64_t at = 32; at < TERM_LENGTH; at++)
    {
        CHECK(0 == first[at]);
    }
    free(first);
    uint8_t *second = file_load(scratch, "0-131072.rec", &length);
    CHECK_I64(length, SEGMENT_LENGTH);
    CHECK(0 == second[0] && 0 == memcmp(second, second + 1, (size_t)length - 1));
    free(second);

    /* The next file must not be there already. */
    writer = writer_open(asi_file_ops_posix(), scratch, &made, TERM_LENGTH, AS_CHECKSUM_NONE);
    CHECK(NULL != writer);
    CHECK_I64(asi_segment_writer_append(writer, stream_at(&made, TERM_LENGTH), TERM_LENGTH), AS_E_STORAGE);
    snprintf(path, sizeof(path), "segment file already exists: %s/0-131072.rec", scratch);
    CHECK(NULL != strstr(as_error_text(), path));
    CHECK(!asi_segment_writer_is_out_of_space(writer));
    CHECK_I64(asi_segment_writer_append(writer, stream_at(&made, TERM_LENGTH), TERM_LENGTH), AS_E_CLOSED);
    asi_segment_writer_close(writer);
    stream_free(&made);
}

/* Blocks are made by another process. */
static void bad_blocks(void)
{
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    stream made = stream_make(&rand, 0, TERM_LENGTH, 10, 100);
    uint8_t *block = calloc(1, 4 * SEGMENT_LENGTH);
    for (int i = 0; i < 6; i++)
    {
        asi_segment_writer *writer = writer_open(asi_file_ops_posix(), scratch, &made, 0, AS_CHECKSUM_CRC32);
        CHECK(NULL != writer);
        static const struct
        {
            int32_t frame_length;
            uint16_t type;
            int64_t block_length;
        } rows[] = { { 0, 1, 64 }, { 31, 1, 64 }, { 100, 1, 64 }, { 64, 0, 96 }, { 64, 1, 40 }, { 64, 1, 4 * SEGMENT_LENGTH } };
        memset(block, 0, 4 * SEGMENT_LENGTH);
        asi_put_i32(block, rows[i].frame_length);
        asi_put_u16(block + 6, rows[i].type);
        CHECK_I64(asi_segment_writer_append(writer, block, rows[i].block_length), AS_E_DATA);
        CHECK_I64(asi_segment_writer_position(writer), 0);
        asi_segment_writer_close(writer);
    }
    free(block);
    stream_free(&made);
}

static void recover(const char *dir, const stream *made, as_record_checksum checksum, asi_recovered_end *end)
{
    const asi_catalog_record record = { .recording_id = 0, .start_position = made->start_position, .stop_position = -1,
        .initial_term_id = made->initial_term_id, .segment_file_length = SEGMENT_LENGTH, .term_buffer_length = made->term_length,
        .stream_id = STREAM_STREAM_ID, .session_id = STREAM_SESSION_ID };
    CHECK_I64(asi_recover_end(asi_file_ops_posix(), dir, &record, checksum, end), AS_OK);
}

static void fault_at_each_call(void)
{
    asi_rand rand = test_rand();
    stream made = stream_make(&rand, 64, TERM_LENGTH, 60, 30000);
    bool has_passed = false;
    for (int64_t fail_at = 1; !has_passed; fail_at++)
    {
        const as_record_checksum checksum = checksums[fail_at % 3];
        const int error = 0 == fail_at % 2 ? ENOSPC : EIO;
        const char *scratch = scratch_folder();
        add_recording(scratch, &made, AS_NULL_VALUE);
        failing_files files;
        failing_files_init(&files, fail_at, error, false);
        asi_segment_writer *writer = writer_open(&files.ops, scratch, &made, made.start_position, checksum);
        int64_t position = made.start_position;
        if (NULL != writer)
        {
            const as_result result = write_blocks(writer, &made, made.start_position);
            CHECK(AS_OK == result || (AS_E_STORAGE == result && error == as_error_code()));
            CHECK(AS_OK == result || asi_segment_writer_is_out_of_space(writer) == (ENOSPC == error));
            has_passed = AS_OK == result;
            position = asi_segment_writer_position(writer);
            asi_segment_writer_close(writer);
        }
        CHECK_I64(files.open_count, 0);
        /* Recovery finds at least the promised data. */
        asi_recovered_end end;
        recover(scratch, &made, checksum, &end);
        CHECK((end.is_proven ? end.stop_position : end.last_fragment_position) >= position);
        /* The recording goes on where it stopped, as if nothing had been. */
        writer = writer_open(asi_file_ops_posix(), scratch, &made, position, checksum);
        CHECK(NULL != writer);
        CHECK_I64(write_blocks(writer, &made, position), AS_OK);
        CHECK_I64(asi_segment_writer_position(writer), made.end_position);
        asi_segment_writer_close(writer);
        check_messages(scratch, &made, made.end_position, checksum);
    }
    stream_free(&made);
}

typedef struct live_segments
{
    const char *dir;
    int64_t count;
} live_segments;

static bool check_length(void *context, const char *name)
{
    live_segments *live = context;
    int64_t id;
    int64_t base;
    if (ASI_SEGMENT_NAME_LIVE == asi_segment_name_parse(name, &id, &base))
    {
        char path[AS_PATH_MAX];
        CHECK_I64(asi_segment_path(path, sizeof(path), live->dir, id, base), AS_OK);
        const int fd = open(path, O_RDONLY);
        CHECK_I64(lseek(fd, 0, SEEK_END), SEGMENT_LENGTH);
        close(fd);
        live->count++;
    }
    return true;
}

/* Killed at any call: tools of others refuse a segment that is shorter than its recording's are. */
static void no_segment_is_short_after_a_crash(void)
{
    asi_rand rand = test_rand();
    stream made = stream_make(&rand, 64, TERM_LENGTH, 150, 30000);
    int64_t most = 0;
    bool has_passed = false;
    for (int64_t fail_at = 1; !has_passed; fail_at++)
    {
        const char *scratch = scratch_folder();
        failing_files files;
        failing_files_init(&files, fail_at, EIO, true);
        asi_segment_writer *writer = writer_open(&files.ops, scratch, &made, made.start_position, AS_CHECKSUM_NONE);
        has_passed = NULL != writer && AS_OK == write_blocks(writer, &made, made.start_position);
        asi_segment_writer_close(writer);
        live_segments live = { .dir = scratch };
        CHECK_I64(asi_file_ops_posix()->readdir(NULL, scratch, check_length, &live), 0);
        CHECK(live.count >= most);
        most = live.count;
    }
    CHECK(most > 1);
    stream_free(&made);
}

/* A power cut lost pages behind some position. The surviving pages of the last frame decide. */
static void lost_pages(void)
{
    asi_rand rand = test_rand();
    for (int round = 0; round < 30; round++)
    {
        const char *scratch = scratch_folder();
        const as_record_checksum checksum = checksums[round % 3];
        stream made = stream_make(&rand, 32 * test_rand_below(&rand, 100), TERM_LENGTH, 150, 6000);
        add_recording(scratch, &made, AS_NULL_VALUE);
        asi_segment_writer *writer = writer_open(asi_file_ops_posix(), scratch, &made, made.start_position, checksum);
        CHECK(NULL != writer);
        CHECK_I64(write_blocks(writer, &made, made.start_position), AS_OK);
        asi_segment_writer_close(writer);
        asi_recovered_end whole;
        recover(scratch, &made, checksum, &whole);
        CHECK(whole.is_proven);
        CHECK_I64(whole.stop_position, made.end_position);

        const int64_t base = asi_segment_base(made.start_position, made.end_position, TERM_LENGTH, SEGMENT_LENGTH);
        char name[ASI_SEGMENT_NAME_CAPACITY];
        int64_t length;
        snprintf(name, sizeof(name), "0-%" PRId64 ".rec", base);
        uint8_t *segment = file_load(scratch, name, &length);
        const int64_t written = made.end_position - base;
        const int64_t lost_from = written / 4096 * test_rand_below(&rand, 100) / 100 * 4096;
        memset(segment + lost_from, 0, (size_t)(length - lost_from));
        file_store(scratch, name, segment, length);
        free(segment);

        asi_recovered_end end;
        recover(scratch, &made, checksum, &end);
        const int64_t limit = end.is_proven ? end.stop_position : end.last_fragment_position;
        CHECK(limit >= made.start_position);
        CHECK(limit <= base + lost_from + 65536);
        as_folder *folder = folder_open(scratch, AS_CHECKSUM_AUTO);
        as_recording_extent extent;
        CHECK_I64(as_folder_extent(folder, 0, &extent), AS_OK);
        CHECK_I64(extent.limit_position, limit);
        as_folder_close(folder);
        check_messages(scratch, &made, limit, checksum);
        stream_free(&made);
    }
}

/* Stock refuses to start here; Spec: 06 §6, QUIRK. */
static void padding_last(void)
{
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    stream made = stream_make(&rand, 0, TERM_LENGTH, 3, 100);
    stream_frame(&made, TERM_LENGTH - made.end_position, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_PAD, 0);
    const int64_t padding = made.blocks[made.block_count - 1].position + made.blocks[made.block_count - 1].length;
    made.blocks[made.block_count++] = (stream_block){ .position = padding, .length = TERM_LENGTH - padding };
    asi_segment_writer *writer = writer_open(asi_file_ops_posix(), scratch, &made, 0, AS_CHECKSUM_NONE);
    CHECK(NULL != writer);
    CHECK_I64(write_blocks(writer, &made, 0), AS_OK);
    asi_segment_writer_close(writer);
    asi_recovered_end end;
    recover(scratch, &made, AS_CHECKSUM_NONE, &end);
    CHECK(end.is_proven);
    CHECK_I64(end.stop_position, TERM_LENGTH);
    stream_free(&made);
}

/* Rests of a crash behind the stop position must not come back after an extension and another crash. */
static void extension_clears_rests(void)
{
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    stream made = stream_make(&rand, 0, TERM_LENGTH, 100, 300);
    add_recording(scratch, &made, AS_NULL_VALUE);
    asi_segment_writer *writer = writer_open(asi_file_ops_posix(), scratch, &made, 0, AS_CHECKSUM_NONE);
    CHECK(NULL != writer);
    CHECK_I64(write_blocks(writer, &made, 0), AS_OK);
    asi_segment_writer_close(writer);
    const int64_t join = made.messages[50].begin_position;
    writer = writer_open(asi_file_ops_posix(), scratch, &made, join, AS_CHECKSUM_NONE);
    CHECK(NULL != writer);
    asi_segment_writer_close(writer);
    asi_recovered_end end;
    recover(scratch, &made, AS_CHECKSUM_NONE, &end);
    CHECK_I64(end.stop_position, join);
    stream_free(&made);
}

/* Tools expect a whole segment behind a full one: an extension that begins there and fails anywhere leaves it. */
static void extension_at_a_boundary(void)
{
    char path[AS_PATH_MAX];
    asi_rand rand = test_rand();
    bool has_passed = false;
    for (int64_t fail_at = 1; !has_passed; fail_at++)
    {
        CHECK(fail_at < 100);
        const char *scratch = scratch_folder();
        stream made = stream_make(&rand, 0, TERM_LENGTH, 10, 100);
        CHECK_I64(asi_segment_path(path, sizeof(path), scratch, 0, SEGMENT_LENGTH), AS_OK);
        const int fd = open(path, O_RDWR | O_CREAT, 0600);
        CHECK(0 == ftruncate(fd, SEGMENT_LENGTH) && 4 == pwrite(fd, "rest", 4, 4096));
        close(fd);
        failing_files files;
        failing_files_init(&files, fail_at, EIO, true);
        asi_segment_writer *writer = writer_open(&files.ops, scratch, &made, SEGMENT_LENGTH, AS_CHECKSUM_NONE);
        has_passed = NULL != writer && files.calls < fail_at;
        asi_segment_writer_close(writer);
        CHECK_I64(files.open_count, 0);
        uint8_t rest[4] = { 0 };
        const int again = open(path, O_RDONLY);
        CHECK_I64(lseek(again, 0, SEEK_END), SEGMENT_LENGTH);
        CHECK(4 == pread(again, rest, 4, 4096));
        CHECK(!has_passed || 0 == rest[0]);
        close(again);
        stream_free(&made);
    }
}

/* The server's refresh on the stock archive that was killed gives what the stock archive found, and keeps the checksum right. */
static void server_refresh(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive-crashed", path);
    const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = path, .capacity = 65536,
        .checksum = AS_CHECKSUM_CRC32 };
    asi_catalog *catalog = NULL;
    int32_t recovered = -1;
    asi_catalog_record record;
    CHECK_I64(asi_catalog_open(&params, &catalog), AS_OK);
    CHECK_I64(asi_recover_catalog(catalog, asi_file_ops_posix(), path, &(asi_recover_options){ .now_ms = 7777 }, &recovered), AS_OK);
    CHECK_I64(recovered, 1);
    CHECK(asi_catalog_find(catalog, 0, &record));
    CHECK_I64(record.stop_position, 317056);
    CHECK_I64(record.stop_timestamp_ms, 7777);
    CHECK(0 != record.checksum);
    CHECK_I64(asi_recover_catalog(catalog, asi_file_ops_posix(), path, &(asi_recover_options){ .now_ms = 8888 }, &recovered), AS_OK);
    CHECK_I64(recovered, 0);
    asi_catalog_close(catalog);
}

/* By hand, for a recording that begins within its fourth term and whose term ids wrap. */
static void positions(void)
{
    enum { T = 65536, S = 131072 };
    const int64_t start = 3 * T + 96;
    CHECK_I64(as_segment_base_position(start, start, T, S), 3 * T);
    CHECK_I64(as_segment_base_position(start, 3 * T + S - 32, T, S), 3 * T);
    CHECK_I64(as_segment_base_position(start, 3 * T + S, T, S), 3 * T + S);
    CHECK_I64(as_segment_count(start, start, T, S), 1);
    CHECK_I64(as_segment_count(start, 3 * T + S - 32, T, S), 1);
    CHECK_I64(as_segment_count(start, 3 * T + 2 * S, T, S), 3);
    CHECK_I64(as_segment_first_detachable(start, T, S), 3 * T + S);
    CHECK_I64(as_segment_last_detachable(start, 3 * T + 2 * S + 32, T, S), 3 * T + 2 * S);
    for (int64_t position = start; position < start + 5 * T; position += 4064)
    {
        const int32_t id = as_position_term_id(position, T, INT32_MAX - 1);
        CHECK_I64(id, position / T < 2 ? INT32_MAX - 1 + position / T : INT32_MIN + position / T - 2);
        CHECK_I64(as_position_of(id, as_position_term_offset(position, T), T, INT32_MAX - 1), position);
    }
    const int64_t maximum = (int64_t)T << 31;
    CHECK_I64(as_position_of(as_position_term_id(maximum, T, 7), 0, T, 7), maximum);
}

static int64_t bytes_read;

static int64_t counting_pread(void *context, int fd, void *to, int64_t length, int64_t offset)
{
    const int64_t count = asi_file_ops_posix()->pread(context, fd, to, length, offset);
    bytes_read += count > 0 ? count : 0;
    return count;
}

/* To find the checksum, 16 frames are looked at. They are in one window, or two. */
static void opening_reads_little(void)
{
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    stream made = stream_make(&rand, 0, 1 << 20, 8000, 1000);
    add_recording(scratch, &made, made.end_position);
    asi_segment_writer *writer = writer_open(asi_file_ops_posix(), scratch, &made, 0, AS_CHECKSUM_NONE);
    CHECK(NULL != writer);
    CHECK_I64(write_blocks(writer, &made, 0), AS_OK);
    asi_segment_writer_close(writer);
    asi_file_ops files = *asi_file_ops_posix();
    files.pread = counting_pread;
    as_folder *folder = folder_open(scratch, AS_CHECKSUM_AUTO);
    folder->files = &files;
    as_segment_reader *reader = NULL;
    bytes_read = 0;
    CHECK_I64(as_segment_reader_open(folder, 0, 0, made.end_position, made.end_position, &reader), AS_OK);
    CHECK(bytes_read > 0 && bytes_read <= 2 * ASI_WINDOW_LENGTH);
    as_segment_reader_close(reader);
    as_folder_close(folder);
    stream_free(&made);
}

static void names(void)
{
    static const struct
    {
        const char *name;
        asi_segment_name kind;
        int64_t id;
        int64_t base;
    } rows[] = { { "3-131072.rec", ASI_SEGMENT_NAME_LIVE, 3, 131072 }, { "3-0.rec.del", ASI_SEGMENT_NAME_DELETED, 3, 0 },
        { "3-64.del", ASI_SEGMENT_NAME_DELETED, 3, 64 }, { "3--64.rec", ASI_SEGMENT_NAME_BAD_BASE, 3, 0 },
        { "3-x.rec", ASI_SEGMENT_NAME_BAD_BASE, 3, 0 }, { "-3-64.rec", ASI_SEGMENT_NAME_OTHER, 0, 0 },
        { "3.rec", ASI_SEGMENT_NAME_OTHER, 0, 0 }, { "archive.catalog", ASI_SEGMENT_NAME_OTHER, 0, 0 },
        { "99999999999999999999-0.rec", ASI_SEGMENT_NAME_OTHER, 0, 0 },
        { "3-99999999999999999999.rec", ASI_SEGMENT_NAME_BAD_BASE, 3, 0 }, { "", ASI_SEGMENT_NAME_OTHER, 0, 0 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        int64_t id = 0;
        int64_t base = 0;
        CHECK_I64(asi_segment_name_parse(rows[i].name, &id, &base), rows[i].kind);
        CHECK_I64(id, rows[i].id);
        CHECK_I64(base, rows[i].base);
    }
    CHECK_I64(asi_segment_base(200704, 200704, TERM_LENGTH, SEGMENT_LENGTH), 196608);
    CHECK_I64(asi_segment_base(200704, 196608 + SEGMENT_LENGTH, TERM_LENGTH, SEGMENT_LENGTH), 196608 + SEGMENT_LENGTH);
    CHECK_I64(asi_segment_base(200704, 196608 + SEGMENT_LENGTH - 32, TERM_LENGTH, SEGMENT_LENGTH), 196608);
}

static int refuse_to_sync(void *context, const char *path)
{
    (void)context;
    (void)path;
    return -EIO;
}

/* After a power cut without sync levels old bytes may follow the last frame: our archive ends there. */
static void rests_behind_the_end(void)
{
    char path[AS_PATH_MAX];
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    stream made = stream_make(&rand, 0, TERM_LENGTH, 20, 300);
    const int64_t id = add_recording(scratch, &made, AS_NULL_VALUE);
    asi_segment_writer *writer = writer_open(asi_file_ops_posix(), scratch, &made, 0, AS_CHECKSUM_CRC32);
    CHECK(NULL != writer);
    CHECK_I64(write_blocks(writer, &made, 0), AS_OK);
    asi_segment_writer_close(writer);
    CHECK_I64(asi_segment_path(path, sizeof(path), scratch, id, 0), AS_OK);
    const int fd = open(path, O_RDWR);
    CHECK_I64(pwrite(fd, "what was", 8, made.end_position), 8);
    const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = scratch, .capacity = 4096 };
    asi_recover_options options = { .checksum = AS_CHECKSUM_CRC32, .now_ms = 5 };
    asi_catalog *catalog = NULL;
    asi_catalog_record record;
    CHECK_I64(asi_catalog_open(&params, &catalog), AS_OK);
    CHECK_I64(asi_recover_catalog(catalog, asi_file_ops_posix(), scratch, &options, NULL), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "broken frame") && NULL != strstr(as_error_text(), path));
    options.cuts_unproven = true;
    CHECK_I64(asi_recover_catalog(catalog, asi_file_ops_posix(), scratch, &options, NULL), AS_OK);
    CHECK(asi_catalog_find(catalog, id, &record));
    CHECK_I64(record.stop_position, made.end_position);
    uint8_t rest[8];
    CHECK_I64(pread(fd, rest, sizeof(rest), made.end_position), sizeof(rest));
    CHECK(0 == rest[0] && 0 == memcmp(rest, rest + 1, sizeof(rest) - 1));
    close(fd);
    asi_catalog_close(catalog);
    check_messages(scratch, &made, made.end_position, AS_CHECKSUM_CRC32);
    stream_free(&made);
}

/* The archive may have died before the name of the last segment was durable: a stop position behind it must not be, before it is. */
static void names_are_durable_before_the_stop_position(void)
{
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    stream made = stream_make(&rand, 0, TERM_LENGTH, 20, 300);
    const int64_t id = add_recording(scratch, &made, AS_NULL_VALUE);
    asi_segment_writer *writer = writer_open(asi_file_ops_posix(), scratch, &made, 0, AS_CHECKSUM_NONE);
    CHECK(NULL != writer);
    CHECK_I64(write_blocks(writer, &made, 0), AS_OK);
    asi_segment_writer_close(writer);
    const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = scratch, .capacity = 4096 };
    const asi_recover_options options = { .checksum = AS_CHECKSUM_NONE, .file_sync_level = 1, .now_ms = 5 };
    asi_file_ops files = *asi_file_ops_posix();
    files.sync_directory = refuse_to_sync;
    asi_catalog *catalog = NULL;
    asi_catalog_record record;
    CHECK_I64(asi_catalog_open(&params, &catalog), AS_OK);
    CHECK_I64(asi_recover_catalog(catalog, &files, scratch, &options, NULL), AS_E_STORAGE);
    CHECK(asi_catalog_find(catalog, id, &record));
    CHECK_I64(record.stop_position, AS_NULL_VALUE);
    CHECK_I64(asi_recover_catalog(catalog, asi_file_ops_posix(), scratch, &options, NULL), AS_OK);
    CHECK(asi_catalog_find(catalog, id, &record));
    CHECK_I64(record.stop_position, made.end_position);
    asi_catalog_close(catalog);
    stream_free(&made);
}

int main(void)
{
    RUN(names);
    RUN(positions);
    RUN(write_and_read);
    RUN(large_messages);
    RUN(files_as_stock);
    RUN(bad_blocks);
    RUN(fault_at_each_call);
    RUN(no_segment_is_short_after_a_crash);
    RUN(lost_pages);
    RUN(padding_last);
    RUN(extension_clears_rests);
    RUN(extension_at_a_boundary);
    RUN(server_refresh);
    RUN(opening_reads_little);
    RUN(rests_behind_the_end);
    RUN(names_are_durable_before_the_stop_position);
    return 0;
}
