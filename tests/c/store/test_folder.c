/* Goal: the folder reader gives, for archive folders that the stock archive wrote, exactly the messages that the stock archive
 * replayed: positions, lengths, checksums, reserved values; in whole, in every cut, and with the right descriptors.
 * Method: golden folders with their message lists; every recording is read in one range, in ranges of several sizes from
 * as_folder_split, through small columns, and in steps of as_folder_advance. */
#include "archive_support.h"

static const char *const folders[] = { "archive", "archive-crashed", "archive-crc", "archive-crc32c", "archive-full",
    "archive-replicated" };

#define FOLDER_COUNT (sizeof(folders) / sizeof(folders[0]))

static int64_t fragmented_length(int64_t length, int32_t mtu)
{
    const int64_t max_payload = mtu - AS_FRAME_HEADER_LENGTH;
    const int64_t rest = length % max_payload;
    return length / max_payload * mtu + (rest > 0 || 0 == length ? asi_align_i64(rest + AS_FRAME_HEADER_LENGTH, 32) : 0);
}

static void check_rows(const as_recording *recording, const as_columns *columns, const message *list, int64_t *next)
{
    for (int64_t row = 0; row < columns->row_count; row++, (*next)++)
    {
        const message *expected = &list[*next];
        CHECK_I64(columns->next_position[row], expected->end_position);
        CHECK_I64(columns->position[row], expected->begin_position >= 0 ? expected->begin_position :
            expected->end_position - fragmented_length(expected->length, recording->mtu_length));
        CHECK_I64(row_length(columns, row), expected->length);
        CHECK_I64(row_crc32(columns, row), expected->crc32);
        CHECK_I64(columns->reserved_value[row], expected->reserved_value);
        CHECK_I64(columns->stream_id[row], recording->stream_id);
        CHECK_I64(columns->term_offset[row], columns->position[row] % recording->term_buffer_length);
        CHECK_I64(columns->flags[row] & 0xC0, 0xC0);
    }
}

static void read_range(as_folder *folder, const as_recording *recording, int64_t start, int64_t end, int64_t limit,
    as_columns *columns, const message *list, int64_t *next)
{
    as_segment_reader *reader = NULL;
    CHECK_I64(as_segment_reader_open(folder, recording->recording_id, start, end, limit, &reader), AS_OK);
    do
    {
        CHECK_I64(as_segment_reader_next(reader, columns), AS_OK);
        check_rows(recording, columns, list, next);
    } while (columns->row_count > 0);
    CHECK(as_segment_reader_position(reader) >= end);
    as_segment_reader_close(reader);
}

typedef void (*on_recording)(as_folder *folder, const as_recording *recording, const as_recording_extent *extent,
    const message *list, int64_t count);

static void each_recording(on_recording check)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    for (size_t i = 0; i < FOLDER_COUNT; i++)
    {
        golden_folder(scratch, folders[i], path);
        as_folder *folder = folder_open(path, AS_CHECKSUM_AUTO);
        CHECK(as_folder_recording_count(folder) > 0);
        for (int64_t index = 0; index < as_folder_recording_count(folder); index++)
        {
            as_recording recording;
            as_recording_extent extent;
            CHECK_I64(as_folder_recording_at(folder, index, &recording), AS_OK);
            CHECK_I64(as_folder_extent(folder, recording.recording_id, &extent), AS_OK);
            CHECK(!extent.is_active);
            CHECK_I64(extent.start_position, recording.start_position);
            int64_t count = 0;
            message *list = message_list(path, recording.recording_id, &count);
            CHECK(NULL != list);
            check(folder, &recording, &extent, list, count);
            free(list);
        }
        as_folder_close(folder);
    }
}

static void check_whole(as_folder *folder, const as_recording *recording, const as_recording_extent *extent, const message *list,
    int64_t count)
{
    as_columns columns = columns_create(4096, 4 << 20);
    int64_t next = 0;
    read_range(folder, recording, extent->start_position, extent->limit_position, extent->limit_position, &columns, list, &next);
    CHECK_I64(next, count);
    columns_free(&columns);
}

static void whole_recordings(void) { each_recording(check_whole); }

static void check_small_columns(as_folder *folder, const as_recording *recording, const as_recording_extent *extent,
    const message *list, int64_t count)
{
    as_columns columns = columns_create(3, 10000);
    int64_t next = 0;
    read_range(folder, recording, extent->start_position, extent->limit_position, extent->limit_position, &columns, list, &next);
    CHECK_I64(next, count);
    columns_free(&columns);
}

static void small_columns(void) { each_recording(check_small_columns); }

static void check_split(as_folder *folder, const as_recording *recording, const as_recording_extent *extent, const message *list,
    int64_t count)
{
    static const int64_t targets[] = { 32, 1000, 5000, 40000, 65536, 100000, 1 << 20 };
    as_columns columns = columns_create(4096, 4 << 20);
    int64_t starts[4096];
    int64_t again[4096];
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
    {
        int64_t ranges = 0;
        int64_t ranges_again = 0;
        int64_t next = 0;
        CHECK_I64(as_folder_split(folder, recording->recording_id, extent->start_position, extent->limit_position, targets[i], starts,
            4096, &ranges), AS_OK);
        CHECK_I64(as_folder_split(folder, recording->recording_id, extent->start_position, extent->limit_position, targets[i], again,
            4096, &ranges_again), AS_OK);
        CHECK(ranges == ranges_again && 0 == memcmp(starts, again, (size_t)ranges * sizeof(starts[0])));
        CHECK_I64(starts[0], extent->start_position);
        for (int64_t range = 0; range < ranges; range++)
        {
            const int64_t end = range + 1 < ranges ? starts[range + 1] : extent->limit_position;
            CHECK(end > starts[range] || 0 == count);
            read_range(folder, recording, starts[range], end, extent->limit_position, &columns, list, &next);
        }
        CHECK_I64(next, count);
        CHECK(targets[i] < 1 << 20 || 1 == ranges);
    }
    columns_free(&columns);
}

static void split_ranges(void) { each_recording(check_split); }

/* Steps of advance must be message boundaries: no message is cut, none is lost, bounds are kept. */
static void check_advance(as_folder *folder, const as_recording *recording, const as_recording_extent *extent, const message *list,
    int64_t count)
{
    static const struct
    {
        int64_t bytes;
        int64_t messages;
    } bounds[] = { { -1, -1 }, { 1, -1 }, { 4000, -1 }, { 70000, -1 }, { -1, 1 }, { -1, 7 }, { 3000, 2 } };
    as_columns columns = columns_create(4096, 4 << 20);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
    {
        int64_t next = 0;
        int64_t from = extent->start_position;
        while (from < extent->limit_position)
        {
            int64_t to = 0;
            const int64_t before = next;
            CHECK_I64(as_folder_advance(folder, recording->recording_id, from, extent->limit_position, bounds[i].bytes,
                bounds[i].messages, &to), AS_OK);
            CHECK(to > from);
            read_range(folder, recording, from, to, to, &columns, list, &next);
            CHECK(-1 == bounds[i].messages || next - before <= bounds[i].messages);
            CHECK(-1 == bounds[i].bytes || to - from <= bounds[i].bytes || next - before <= 1);
            CHECK(next > before || to == extent->limit_position);
            from = to;
        }
        CHECK_I64(next, count);
    }
    columns_free(&columns);
}

static void advance_in_steps(void) { each_recording(check_advance); }

/* From any position, aligned or not, reading gives the messages that begin there or later, and align finds their boundary. */
static void check_any_start(as_folder *folder, const as_recording *recording, const as_recording_extent *extent,
    const message *list, int64_t count)
{
    as_columns columns = columns_create(4096, 4 << 20);
    for (int64_t start = extent->start_position + 1; start < extent->limit_position; start += 3331)
    {
        int64_t next = 0;
        while (next < count &&
            (list[next].begin_position >= 0 ? list[next].begin_position :
                list[next].end_position - fragmented_length(list[next].length, recording->mtu_length)) < start)
        {
            next++;
        }
        int64_t up = -1;
        int64_t down = -1;
        CHECK_I64(as_folder_align(folder, recording->recording_id, start, extent->limit_position, false, &up), AS_OK);
        CHECK_I64(as_folder_align(folder, recording->recording_id, start, extent->limit_position, true, &down), AS_OK);
        CHECK(up >= start && down <= start && down >= extent->start_position && up <= extent->limit_position);
        CHECK(0 == next || list[next - 1].end_position <= up);
        int64_t again = next;
        int64_t from_up = next;
        read_range(folder, recording, start, extent->limit_position, extent->limit_position, &columns, list, &again);
        read_range(folder, recording, up, extent->limit_position, extent->limit_position, &columns, list, &from_up);
        CHECK(count == again && count == from_up);
    }
    columns_free(&columns);
}

static void any_start(void) { each_recording(check_any_start); }

static void descriptors(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    as_folder *folder = folder_open(path, AS_CHECKSUM_AUTO);
    as_folder_info info;
    CHECK_I64(as_folder_get_info(folder, &info), AS_OK);
    CHECK(info.has_mark_file && !info.is_live);
    CHECK_I64(info.archive_id, 42);
    CHECK_I64(info.local_control_stream_id, 10);
    CHECK_I64(info.activity_timestamp_ms, -1);
    CHECK_I64(as_folder_recording_count(folder), 11); /* 0 to 11, 9 was purged */
    as_recording recording;
    CHECK_I64(as_folder_recording(folder, 8, &recording), AS_OK);
    CHECK_TEXT(recording.stripped_channel, "aeron:udp?endpoint=localhost:24999|alias=updated");
    CHECK_TEXT(recording.original_channel, "aeron:udp?endpoint=localhost:24999|alias=updated");
    CHECK_TEXT(recording.source_identity, "aeron:ipc");
    CHECK_I64(recording.stop_position, 70208);
    CHECK_I64(recording.start_timestamp_ms, 1795190218972);
    CHECK_I64(as_folder_recording(folder, 9, &recording), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "0, 1, 2, 3"));
    as_recording_extent extent;
    CHECK_I64(as_folder_extent(folder, 5, &extent), AS_OK);
    CHECK_I64(extent.start_position, 262144);
    CHECK_I64(extent.limit_position, 528512);
    as_folder_close(folder);
}

/* Two publications in one recording; each row shows its own. */
static void extended_sessions(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    as_folder *folder = folder_open(path, AS_CHECKSUM_AUTO);
    as_columns columns = columns_create(4096, 4 << 20);
    as_segment_reader *reader = NULL;
    CHECK_I64(as_segment_reader_open(folder, 2, 0, 136512, 136512, &reader), AS_OK);
    CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
    CHECK_I64(columns.row_count, 250);
    CHECK_I64(columns.session_id[0], 388734532);
    CHECK_I64(columns.session_id[249], 388734533);
    as_segment_reader_close(reader);
    columns_free(&columns);
    as_folder_close(folder);
}

/* No byte behind the limit counts, nor what the reader's memory held before: a header of which a part is there is no frame. */
static void limit_inside_a_header(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    as_folder *folder = folder_open(path, AS_CHECKSUM_AUTO);
    as_columns columns = columns_create(2, 1 << 20);
    as_segment_reader *reader = NULL;
    CHECK_I64(as_segment_reader_open(folder, 2, 0, 136512, 136512, &reader), AS_OK);
    CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
    const int64_t second = columns.position[1];
    as_segment_reader_close(reader);
    for (int64_t limit = second + 1; limit < second + AS_FRAME_ALIGNMENT; limit += 3)
    {
        CHECK_I64(as_segment_reader_open(folder, 2, 0, limit, limit, &reader), AS_OK);
        CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
        CHECK_I64(columns.row_count, 1);
        CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
        CHECK_I64(columns.row_count, 0);
        as_segment_reader_close(reader);
    }
    columns_free(&columns);
    as_folder_close(folder);
}

static void checksums(void)
{
    static const struct
    {
        const char *name;
        as_record_checksum checksum;
        const char *first_segment;
    } rows[] = { { "archive", AS_CHECKSUM_NONE, "0-0.rec" }, { "archive-crc", AS_CHECKSUM_CRC32, "0-0.rec" },
        { "archive-crc32c", AS_CHECKSUM_CRC32C, "0-0.rec" } };
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    as_columns columns = columns_create(4096, 4 << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        golden_folder(scratch, rows[i].name, path);
        as_folder *folder = folder_open(path, AS_CHECKSUM_AUTO);
        as_record_checksum checksum = AS_CHECKSUM_AUTO;
        as_recording recording;
        as_segment_reader *reader = NULL;
        CHECK_I64(as_folder_checksum(folder, 0, &checksum), AS_OK);
        CHECK_I64(checksum, rows[i].checksum);
        CHECK_I64(as_folder_recording(folder, 0, &recording), AS_OK);
        const int64_t stop = recording.stop_position;
        CHECK_I64(as_segment_reader_open(folder, 0, 0, stop, stop, &reader), AS_OK);
        CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
        CHECK_I64(columns.session_id[0], recording.session_id);
        as_segment_reader_close(reader);

        /* One byte of the first payload changed: found where there is a checksum, silent where there is none. */
        int64_t length;
        uint8_t *segment = file_load(path, rows[i].first_segment, &length);
        segment[40] ^= 1;
        file_store(path, rows[i].first_segment, segment, length);
        free(segment);
        CHECK_I64(as_segment_reader_open(folder, 0, 0, stop, stop, &reader), AS_OK);
        CHECK_I64(as_segment_reader_next(reader, &columns), AS_CHECKSUM_NONE == checksum ? AS_OK : AS_E_DATA);
        CHECK(AS_CHECKSUM_NONE == checksum || NULL != strstr(as_error_text(), "recording 0 at position 0"));
        as_segment_reader_close(reader);
        as_folder_close(folder);

        folder = folder_open(path, AS_CHECKSUM_NONE);
        CHECK_I64(as_segment_reader_open(folder, 0, 0, stop, stop, &reader), AS_OK);
        CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
        as_segment_reader_close(reader);
        as_folder_close(folder);
    }
    columns_free(&columns);
}

/* The crashed archive ends where the stock archive found it to end, and nothing was written. */
static void crashed(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive-crashed", path);
    int64_t length;
    int64_t length_after;
    uint8_t *before = file_load(path, "archive.catalog", &length);
    as_folder *folder = folder_open(path, AS_CHECKSUM_AUTO);
    as_recording recording;
    as_recording_extent extent;
    CHECK_I64(as_folder_recording(folder, 0, &recording), AS_OK);
    CHECK_I64(recording.stop_position, -1);
    CHECK_I64(as_folder_extent(folder, 0, &extent), AS_OK);
    CHECK_I64(extent.limit_position, 317056);
    CHECK(!extent.is_active);
    as_folder_close(folder);
    uint8_t *after = file_load(path, "archive.catalog", &length_after);
    CHECK(length == length_after && 0 == memcmp(before, after, (size_t)length));
    free(before);
    free(after);
}

/* Cut right behind a record: the segments of later recordings show it. A compacted catalog ends so, too. */
static void catalog_cut_behind_a_record(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    int64_t length;
    uint8_t *bytes = file_load(path, "archive.catalog", &length);
    int64_t end = 32;
    int64_t after_4 = 0;
    while (asi_get_i32(bytes + end) > 0)
    {
        after_4 = 5 == asi_get_i64(bytes + end + 48) ? end : after_4;
        end += 32 + asi_get_i32(bytes + end);
    }
    file_store(path, "archive.catalog", bytes, after_4);
    as_folder *folder = NULL;
    CHECK_I64(as_folder_open(path, NULL, &folder), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "it ends with recording 4"));
    file_store(path, "archive.catalog", bytes, end);
    folder = folder_open(path, AS_CHECKSUM_AUTO);
    CHECK_I64(as_folder_recording_count(folder), 11);
    as_folder_close(folder);
    free(bytes);
}

int main(void)
{
    RUN(whole_recordings);
    RUN(small_columns);
    RUN(split_ranges);
    RUN(advance_in_steps);
    RUN(any_start);
    RUN(descriptors);
    RUN(extended_sessions);
    RUN(limit_inside_a_header);
    RUN(checksums);
    RUN(crashed);
    RUN(catalog_cut_behind_a_record);
    return 0;
}
