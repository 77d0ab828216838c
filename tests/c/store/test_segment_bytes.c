/* Goal: recordings whose files are not on a local path are listed and read from bytes exactly as their folder is, and no bytes,
 * however damaged, and no arguments make the reader leave them. Method: golden folders; each segment is read from memory that has
 * exactly its bytes, whole and in terms, and compared with the messages that the stock archive replayed; bytes are changed at
 * random (printed seed); meant to run under the address and undefined sanitizers. */
#include "archive_support.h"
#include "store/segment_layout.h"

#define ROUNDS 300

static const char *const folders[] = { "archive", "archive-crashed", "archive-crc", "archive-crc32c", "archive-full" };

#define FOLDER_COUNT (sizeof(folders) / sizeof(folders[0]))

typedef struct listing
{
    as_folder *folder;
    int64_t count;
    int64_t most;
} listing;

static bool compare(void *context, const as_recording *listed)
{
    listing *seen = context;
    as_recording recording;
    CHECK_I64(as_folder_recording_at(seen->folder, seen->count++, &recording), AS_OK);
    CHECK_I64(listed->recording_id, recording.recording_id);
    CHECK_I64(listed->stop_position, recording.stop_position);
    CHECK_I64(listed->term_buffer_length, recording.term_buffer_length);
    CHECK(0 == strcmp(listed->original_channel, recording.original_channel));
    CHECK(0 == strcmp(listed->source_identity, recording.source_identity));
    return seen->count < seen->most;
}

static void lists(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    for (size_t i = 0; i < FOLDER_COUNT; i++)
    {
        int64_t length;
        golden_folder(scratch, folders[i], path);
        uint8_t *bytes = file_load(path, "archive.catalog", &length);
        listing seen = { .folder = folder_open(path, AS_CHECKSUM_AUTO), .most = INT64_MAX };
        CHECK_I64(as_catalog_list("name", bytes, length, NULL, 0, compare, &seen), AS_OK);
        CHECK_I64(seen.count, as_folder_recording_count(seen.folder));
        seen = (listing){ .folder = seen.folder, .most = 1 };
        CHECK_I64(as_catalog_list("name", bytes, length, NULL, 0, compare, &seen), AS_OK);
        CHECK_I64(seen.count, 1);
        CHECK_I64(as_catalog_list("name", bytes, 20, NULL, 0, compare, &seen), AS_E_DATA);
        CHECK(NULL != strstr(as_error_text(), "name"));
        as_folder_close(seen.folder);
        free(bytes);
    }
}

/* Reads [begin, end) of the recording's segment from memory of exactly the bytes from `begin` on. */
static void read_segment(const as_recording *recording, const uint8_t *segment, int64_t base, int64_t begin, int64_t end,
    as_columns *columns, const message *list, int64_t *next)
{
    const int64_t segment_end = base + recording->segment_file_length;
    as_recording shown = *recording;
    shown.start_position = shown.start_position > base ? shown.start_position : base;
    shown.stop_position = recording->stop_position < segment_end ? recording->stop_position : segment_end;
    const int64_t limit = shown.stop_position;
    uint8_t *bytes = malloc((size_t)(limit - begin));
    memcpy(bytes, segment + (begin - base), (size_t)(limit - begin));
    const as_segment_bytes given = { .folder = "store", .bytes = bytes, .position = begin, .length = limit - begin };
    as_segment_reader *reader = NULL;
    CHECK_I64(as_segment_reader_open_bytes(&shown, &given, begin, end, limit, &reader), AS_OK);
    CHECK(AS_CHECKSUM_AUTO != as_segment_reader_checksum(reader));
    do
    {
        CHECK_I64(as_segment_reader_next(reader, columns), AS_OK);
        for (int64_t row = 0; row < columns->row_count; row++, (*next)++)
        {
            CHECK_I64(columns->next_position[row], list[*next].end_position);
            CHECK_I64(row_length(columns, row), list[*next].length);
            CHECK_I64(row_crc32(columns, row), list[*next].crc32);
        }
    } while (columns->row_count > 0);
    as_segment_reader_close(reader);
    free(bytes);
}

static void read_recording(const char *path, as_folder *folder, const as_recording *described, int64_t step, as_columns *columns)
{
    as_recording recording = *described;
    as_recording_extent extent;
    int64_t count = 0;
    int64_t next = 0;
    message *list = message_list(path, recording.recording_id, &count);
    CHECK_I64(as_folder_extent(folder, recording.recording_id, &extent), AS_OK);
    recording.stop_position = extent.limit_position;
    for (int64_t begin = recording.start_position, end = 0; begin < extent.limit_position; begin = end)
    {
        char name[64];
        int64_t length;
        const int64_t base = asi_segment_base(
            recording.start_position, begin, recording.term_buffer_length, recording.segment_file_length);
        end = begin - begin % step + step;
        end = end < base + recording.segment_file_length ? end : base + recording.segment_file_length;
        end = end < extent.limit_position ? end : extent.limit_position;
        snprintf(name, sizeof(name), "%" PRId64 "-%" PRId64 ".rec", recording.recording_id, base);
        uint8_t *segment = file_load(path, name, &length);
        read_segment(&recording, segment, base, begin, end, columns, list, &next);
        free(segment);
    }
    CHECK_I64(next, count);
    free(list);
}

static void rows(void)
{
    char path[AS_PATH_MAX];
    as_columns columns = columns_create(100, 1 << 20);
    const char *scratch = scratch_folder();
    for (size_t i = 0; i < FOLDER_COUNT; i++)
    {
        golden_folder(scratch, folders[i], path);
        as_folder *folder = folder_open(path, AS_CHECKSUM_AUTO);
        for (int64_t index = 0; index < as_folder_recording_count(folder); index++)
        {
            as_recording recording;
            CHECK_I64(as_folder_recording_at(folder, index, &recording), AS_OK);
            read_recording(path, folder, &recording, recording.term_buffer_length, &columns);
            read_recording(path, folder, &recording, recording.segment_file_length, &columns);
        }
        as_folder_close(folder);
    }
    columns_free(&columns);
}

#define TERM (64 * 1024)

static const as_recording described = { .recording_id = 7, .start_position = 2 * TERM + 64, .stop_position = 3 * TERM,
    .segment_file_length = 2 * TERM, .term_buffer_length = TERM, .mtu_length = 1408, .stream_id = 3 };

static as_result open_with(const as_recording *recording, int64_t position, int64_t length, int32_t checksum, int64_t start,
    int64_t end, int64_t limit)
{
    static const uint8_t bytes[2 * TERM];
    const as_segment_bytes given = { .folder = "store", .bytes = bytes, .position = position, .length = length,
        .checksum = (as_record_checksum)checksum };
    as_segment_reader *reader = NULL;
    const as_result result = as_segment_reader_open_bytes(recording, &given, start, end, limit, &reader);
    as_segment_reader_close(reader);
    return result;
}

/* The segment is [2, 4) terms. */
static void arguments(void)
{
    const int64_t start = described.start_position;
    const int64_t stop = described.stop_position;
    CHECK_I64(open_with(&described, start, TERM, 0, start, stop, stop), AS_OK);
    CHECK_I64(open_with(&described, start, 0, 0, start, start, start), AS_OK);
    CHECK_I64(open_with(&described, 2 * TERM, 2 * TERM, 0, start, stop, stop), AS_OK);
    CHECK_I64(open_with(&described, 2 * TERM - 32, TERM, 0, start, stop, stop), AS_E_USAGE);
    CHECK_I64(open_with(&described, 2 * TERM + 32, 2 * TERM, 0, start, stop, stop), AS_E_USAGE);
    CHECK_I64(open_with(&described, INT64_MAX, INT64_MAX, 0, start, stop, stop), AS_E_USAGE);
    CHECK_I64(open_with(&described, start, -1, 0, start, stop, stop), AS_E_USAGE);
    CHECK_I64(open_with(&described, start, TERM, 4, start, stop, stop), AS_E_USAGE);
    CHECK_I64(open_with(&described, start, TERM, -1, start, stop, stop), AS_E_USAGE);
    CHECK_I64(open_with(&described, start, TERM, 0, start - 32, stop, stop), AS_E_USAGE);
    CHECK_I64(open_with(&described, start, TERM, 0, stop, start, stop), AS_E_USAGE);
    CHECK_I64(open_with(&described, start, TERM, 0, start, stop, stop + 32), AS_E_USAGE);
    as_recording bad = described;
    bad.stop_position = 4 * TERM + 32;
    CHECK_I64(open_with(&bad, start, TERM, 0, start, stop, stop), AS_E_USAGE);
    bad.stop_position = -1;
    CHECK_I64(open_with(&bad, start, TERM, 0, start, stop, stop), AS_E_USAGE);
    bad = described;
    bad.term_buffer_length = 0;
    CHECK_I64(open_with(&bad, start, TERM, 0, start, stop, stop), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "store"));
}

/* What was not given is no frame: the reader says so instead of an end. */
static void missing_bytes(void)
{
    as_columns columns = columns_create(10, 1 << 16);
    const uint8_t byte = 0;
    const as_segment_bytes given = { .folder = "store", .bytes = &byte, .position = 3 * TERM - 1, .length = 1 };
    as_segment_reader *reader = NULL;
    CHECK_I64(as_segment_reader_open_bytes(
        &described, &given, described.start_position, 3 * TERM, 3 * TERM, &reader), AS_OK);
    CHECK_I64(as_segment_reader_next(reader, &columns), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "(segment store/7-131072.rec): gap"));
    as_segment_reader_close(reader);
    columns_free(&columns);
}

static bool ignore(void *context, const as_recording *recording)
{
    (void)context;
    return '\0' == recording->source_identity[strlen(recording->source_identity)];
}

static void damaged(void)
{
    char path[AS_PATH_MAX];
    int64_t catalog_length;
    int64_t segment_length;
    as_columns columns = columns_create(100, 1 << 17);
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive-crc", path);
    uint8_t *catalog = file_load(path, "archive.catalog", &catalog_length);
    uint8_t *segment = file_load(path, "0-0.rec", &segment_length);
    as_folder *folder = folder_open(path, AS_CHECKSUM_AUTO);
    as_recording recording;
    CHECK_I64(as_folder_recording(folder, 0, &recording), AS_OK);
    CHECK_I64(recording.start_position, 0);
    recording.stop_position = recording.stop_position < segment_length ? recording.stop_position : segment_length;
    for (int round = 0; round < ROUNDS; round++)
    {
        const int64_t cut = test_rand_below(&rand, 4096);
        uint8_t *bytes = malloc((size_t)cut + 1);
        memcpy(bytes, catalog, (size_t)cut);
        bytes[cut] = 0;
        for (int k = 0; k < 3; k++)
        {
            bytes[test_rand_below(&rand, cut + 1)] = (uint8_t)asi_rand_u64(&rand);
            segment[test_rand_below(&rand, segment_length)] = (uint8_t)asi_rand_u64(&rand);
        }
        CHECK(AS_OK == as_catalog_list("name", bytes, cut, (int64_t[]){ 0, 1, 2 }, 3, ignore, NULL) || '\0' != as_error_text()[0]);
        free(bytes);
        const int64_t start = test_rand_below(&rand, recording.stop_position / 32) * 32;
        const as_segment_bytes given = { .folder = "store", .bytes = segment + start, .position = start,
            .length = recording.stop_position - start, .checksum = (as_record_checksum)test_rand_below(&rand, 4) };
        as_segment_reader *reader = NULL;
        if (AS_OK == as_segment_reader_open_bytes(
                &recording, &given, start, recording.stop_position, recording.stop_position, &reader))
        {
            int64_t last = -1;
            while (AS_OK == as_segment_reader_next(reader, &columns) && columns.row_count > 0)
            {
                CHECK(columns.position[0] > last && columns.position[0] >= start);
                last = columns.position[columns.row_count - 1];
                CHECK(columns.next_position[columns.row_count - 1] <= recording.stop_position);
            }
            as_segment_reader_close(reader);
        }
    }
    as_folder_close(folder);
    free(catalog);
    free(segment);
    columns_free(&columns);
}

int main(void)
{
    RUN(lists);
    RUN(rows);
    RUN(arguments);
    RUN(missing_bytes);
    RUN(damaged);
    return 0;
}
