/* Goal: no catalog, mark file or segment, however damaged, makes the folder reader or recovery crash, hang or silently deliver
 * a message that was not recorded where a checksum could detect it. Method: golden folders with random bytes changed, lengths
 * cut and fields set to extremes (printed seed), read in every way; run under the address and undefined sanitizers. */
#include "archive_support.h"
#include "store/catalog.h"
#include "store/catalog_format.h"
#include "store/catalog_scan.h"
#include "store/recover.h"

#define ROUNDS 400

static const int32_t extremes[] = { 0, 1, -1, 31, 32, 33, 64, 65535, 65536, 1 << 30, INT32_MAX, INT32_MIN, INT32_MAX - 31 };

static void damage(asi_rand *rand, uint8_t *bytes, int64_t length, int64_t range)
{
    const int64_t count = 1 + test_rand_below(rand, 4);
    for (int64_t i = 0; i < count; i++)
    {
        const int64_t offset = test_rand_below(rand, range < length ? range : length);
        const int64_t word = offset & ~3LL;
        switch (test_rand_below(rand, 4))
        {
            case 0:
                bytes[offset] ^= (uint8_t)(1u << test_rand_below(rand, 8));
                break;
            case 1:
                bytes[offset] = (uint8_t)asi_rand_u64(rand);
                break;
            default:
                if (word + 4 <= length)
                {
                    asi_put_i32(bytes + word, extremes[test_rand_below(rand, sizeof(extremes) / sizeof(extremes[0]))]);
                }
                break;
        }
    }
}

/* Everything a user can do with the folder; results may be errors, with a text. */
static void use_folder(const char *path, asi_rand *rand, as_columns *columns)
{
    as_folder *folder = NULL;
    as_folder_options options;
    as_folder_options_init(&options);
    options.checksum = (as_record_checksum)test_rand_below(rand, 4);
    options.aeron_dir = "/dev/shm/as-store-no-such-directory";
    if (AS_OK != as_folder_open(path, &options, &folder))
    {
        CHECK('\0' != as_error_text()[0]);
        return;
    }
    for (int64_t i = 0; i < as_folder_recording_count(folder); i++)
    {
        as_recording recording;
        as_recording_extent extent;
        CHECK_I64(as_folder_recording_at(folder, i, &recording), AS_OK);
        CHECK(NULL != recording.original_channel);
        if (AS_OK != as_folder_extent(folder, recording.recording_id, &extent) || extent.limit_position - extent.start_position > 1 << 24)
        {
            continue;
        }
        const int64_t length = extent.limit_position - extent.start_position;
        const int64_t start = extent.start_position + test_rand_below(rand, length + 1);
        int64_t ignored = 0;
        int64_t starts[64];
        (void)!as_folder_advance(folder, recording.recording_id, start, extent.limit_position, -1, 3, &ignored);
        (void)!as_folder_align(folder, recording.recording_id, start, extent.limit_position, true, &ignored);
        (void)!as_folder_split(
            folder, recording.recording_id, extent.start_position, extent.limit_position, 5000, starts, 64, &ignored);
        as_segment_reader *reader = NULL;
        if (AS_OK == as_segment_reader_open(folder, recording.recording_id, test_rand_below(rand, 2) ? start : extent.start_position,
                extent.limit_position, extent.limit_position, &reader))
        {
            int64_t last = -1;
            while (AS_OK == as_segment_reader_next(reader, columns) && columns->row_count > 0)
            {
                for (int64_t row = 0; row < columns->row_count; row++)
                {
                    CHECK(columns->position[row] > last && columns->next_position[row] > columns->position[row]);
                    CHECK(columns->next_position[row] <= extent.limit_position);
                    last = columns->position[row];
                }
            }
            as_segment_reader_close(reader);
        }
    }
    as_folder_close(folder);
}

/* A file of the folder is damaged, used, and restored. */
static void fuzz_file(const char *golden, const char *name, int64_t range, int64_t rounds)
{
    char path[AS_PATH_MAX];
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    golden_folder(scratch, golden, path);
    int64_t length;
    uint8_t *good = file_load(path, name, &length);
    uint8_t *bad = malloc((size_t)length);
    as_columns columns = columns_create(64, 1 << 20);
    for (int64_t round = 0; round < rounds; round++)
    {
        memcpy(bad, good, (size_t)length);
        damage(&rand, bad, length, range);
        const bool is_cut = 0 == test_rand_below(&rand, 5);
        file_store(path, name, bad, is_cut ? test_rand_below(&rand, length) : length);
        use_folder(path, &rand, &columns);
    }
    columns_free(&columns);
    free(good);
    free(bad);
}

static void catalogs(void) { fuzz_file("archive", ASI_CATALOG_FILE, 3000, ROUNDS); }
static void catalogs_of_active_recordings(void) { fuzz_file("archive-crashed", ASI_CATALOG_FILE, 300, ROUNDS); }
static void mark_files(void) { fuzz_file("archive-crashed", "archive-mark.dat", 300, ROUNDS / 2); }
static void segments(void) { fuzz_file("archive-crc", "0-0.rec", 131072, ROUNDS); }
static void last_segments(void) { fuzz_file("archive-crashed", "0-262144.rec", 60000, ROUNDS); }
static void segment_heads(void) { fuzz_file("archive", "1-0.rec", 256, ROUNDS); }

/* The writable catalog on the same input. */
static void server_catalogs(void)
{
    char path[AS_PATH_MAX];
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive-crashed", path);
    int64_t length;
    uint8_t *good = file_load(path, ASI_CATALOG_FILE, &length);
    uint8_t *bad = malloc((size_t)length);
    for (int64_t round = 0; round < ROUNDS; round++)
    {
        memcpy(bad, good, (size_t)length);
        damage(&rand, bad, length, 300);
        file_store(path, ASI_CATALOG_FILE, bad, length);
        const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = path, .capacity = length,
            .checksum = AS_CHECKSUM_CRC32 };
        asi_catalog *catalog = NULL;
        if (AS_OK == asi_catalog_open(&params, &catalog))
        {
            asi_catalog_record record;
            (void)!asi_recover_catalog(catalog, asi_file_ops_posix(), path, &(asi_recover_options){ .now_ms = 1 }, NULL);
            for (int64_t i = 0; i < asi_catalog_count(catalog); i++)
            {
                asi_catalog_at(catalog, i, &record);
                (void)!asi_catalog_stop(catalog, record.recording_id, record.start_position, 1);
            }
            asi_catalog_close(catalog);
        }
    }
    free(good);
    free(bad);
}

/* After a crash a catalog is repaired, or refused: records before the damage stay, and a second repair finds nothing. */
static void repaired_catalogs(void)
{
    char path[AS_PATH_MAX];
    asi_rand rand = test_rand();
    int64_t repaired = 0;
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    int64_t length;
    uint8_t *good = file_load(path, ASI_CATALOG_FILE, &length);
    uint8_t *bad = malloc((size_t)length);
    for (int64_t round = 0; round < ROUNDS; round++)
    {
        memcpy(bad, good, (size_t)length);
        damage(&rand, bad, length, 3000);
        int64_t first_bad = 0;
        while (first_bad < length && good[first_bad] == bad[first_bad])
        {
            first_bad++;
        }
        file_store(path, ASI_CATALOG_FILE, bad, length);
        asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = path, .capacity = length,
            .checksum = AS_CHECKSUM_NONE, .is_after_crash = true };
        asi_catalog *catalog = NULL;
        if (AS_OK != asi_catalog_open(&params, &catalog))
        {
            CHECK('\0' != as_error_text()[0]);
            continue;
        }
        repaired++;
        const int64_t count = asi_catalog_count(catalog);
        const int64_t next_id = asi_catalog_next_recording_id(catalog);
        asi_catalog_scan scan;
        asi_catalog_record before;
        asi_catalog_record after;
        CHECK_I64(asi_catalog_scan_start_untrusted(&scan, good, length, "golden"), AS_OK);
        while (AS_OK == asi_catalog_scan_next_untrusted(&scan, &before) && scan.offset <= first_bad)
        {
            if (ASI_RECORDING_VALID == before.state)
            {
                CHECK(asi_catalog_find(catalog, before.recording_id, &after));
                CHECK_I64(after.stop_position, before.stop_position);
                CHECK_I64(after.offset, before.offset);
            }
        }
        for (int64_t i = 0; i < count; i++)
        {
            asi_catalog_at(catalog, i, &after);
            CHECK(after.recording_id < next_id);
        }
        asi_catalog_close(catalog);
        int64_t stored_length;
        uint8_t *stored = file_load(path, ASI_CATALOG_FILE, &stored_length);
        CHECK_I64(asi_catalog_scan_start_untrusted(&scan, stored, stored_length, "repaired"), AS_OK);
        while (AS_OK == asi_catalog_scan_next_untrusted(&scan, &after))
        {
        }
        if (scan.offset + (int64_t)sizeof(int32_t) <= stored_length)
        {
            CHECK_I64(asi_get_i32(stored + scan.offset), 0);
        }
        free(stored);
        params.is_after_crash = false;
        CHECK_I64(asi_catalog_open(&params, &catalog), AS_OK);
        CHECK_I64(asi_catalog_count(catalog), count);
        CHECK_I64(asi_catalog_next_recording_id(catalog), next_id);
        asi_catalog_close(catalog);
    }
    CHECK(repaired > ROUNDS / 4);
    free(good);
    free(bad);
}

static as_result open_folder_with(const char *path, const uint8_t *bytes, int64_t length, as_folder **folder)
{
    file_store(path, ASI_CATALOG_FILE, bytes, length);
    return as_folder_open(path, NULL, folder);
}

/* A record's header is outside its checksum: a length that takes in the next record, or ends the catalog before it, must not hide it,
 * nor a state that there is none of. */
static void headers_that_hide_records(void)
{
    char path[AS_PATH_MAX];
    int64_t hidden = 0;
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    int64_t length;
    uint8_t *good = file_load(path, ASI_CATALOG_FILE, &length);
    uint8_t *bad = malloc((size_t)length);
    asi_catalog_scan scan;
    asi_catalog_record record;
    as_folder *folder = NULL;
    CHECK_I64(asi_catalog_scan_start_untrusted(&scan, good, length, "golden"), AS_OK);
    while (AS_OK == asi_catalog_scan_next_untrusted(&scan, &record))
    {
        const int32_t next_length = asi_get_i32(good + scan.offset);
        memcpy(bad, good, (size_t)length);
        asi_put_i32(bad + record.offset, 0);
        CHECK_I64(open_folder_with(path, bad, length, &folder), AS_E_DATA);
        CHECK(NULL != strstr(as_error_text(), "there is a record behind that"));
        asi_put_i32(bad + record.offset, -1);
        CHECK_I64(open_folder_with(path, bad, length, &folder), AS_E_DATA);
        if (next_length > 0)
        {
            hidden++;
            asi_put_i32(bad + record.offset, (int32_t)record.frame_length - 32 + next_length + 32);
            CHECK_I64(open_folder_with(path, bad, length, &folder), AS_E_DATA);
            CHECK(NULL != strstr(as_error_text(), "takes in another one"));
        }
        memcpy(bad, good, (size_t)length);
        asi_put_i32(bad + record.offset + 4, 5);
        CHECK_I64(open_folder_with(path, bad, length, &folder), AS_OK);
        as_recording found;
        CHECK_I64(as_folder_recording(folder, record.recording_id, &found), AS_E_DATA);
        CHECK(NULL != strstr(as_error_text(), "state=5 must be"));
        as_folder_close(folder);
        asi_put_i32(bad + record.offset + 4, ASI_RECORDING_INVALID);
        CHECK_I64(open_folder_with(path, bad, length, &folder), AS_OK);
        as_folder_info info;
        CHECK_I64(as_folder_get_info(folder, &info), AS_OK);
        CHECK_I64(info.invalid_count, 1);
        as_folder_close(folder);
    }
    CHECK(hidden > 5);
    free(good);
    free(bad);
}

/* The cost of a file depends on its contents, not on its header: a chain of empty records, up to the largest catalog. */
static void catalogs_that_promise_much(void)
{
    char path[AS_PATH_MAX];
    char name[2 * AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    int64_t length;
    uint8_t *good = file_load(path, ASI_CATALOG_FILE, &length);
    asi_put_i32(good + 32, 1 << 30);
    file_store(path, ASI_CATALOG_FILE, good, length);
    snprintf(name, sizeof(name), "%s/" ASI_CATALOG_FILE, path);
    const asi_file_ops *files = asi_file_ops_posix();
    const int fd = files->open(files->context, name, ASI_FILE_WRITE);
    CHECK(fd >= 0);
    for (int64_t at = length; at < 64 << 20; at += 1 << 20)
    {
        CHECK_I64(asi_file_write_all(files, fd, "x", 1, at), 0);
    }
    uint8_t *bytes;
    int64_t read;
    CHECK_I64(asi_catalog_read(files, fd, name, &bytes, &read), AS_OK);
    CHECK(read <= 4 << 20);
    free(bytes);
    files->close(files->context, fd);
    as_folder *folder;
    CHECK_I64(as_folder_open(path, NULL, &folder), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "none has more than"));
    free(good);
}

/* What is one above the highest id has no number. */
static void ids_without_a_next_one(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    int64_t length;
    uint8_t *bytes = file_load(path, ASI_CATALOG_FILE, &length);
    asi_catalog_scan scan;
    asi_catalog_record record;
    as_folder *folder = NULL;
    int64_t last = 0;
    CHECK_I64(asi_catalog_scan_start_untrusted(&scan, bytes, length, "golden"), AS_OK);
    while (AS_OK == asi_catalog_scan_next_untrusted(&scan, &record))
    {
        last = record.offset;
    }
    for (int32_t state = ASI_RECORDING_INVALID; state <= ASI_RECORDING_DELETED; state++)
    {
        asi_put_i32(bytes + last + RECORD_STATE, state);
        asi_put_i64(bytes + last + RECORD_RECORDING_ID, INT64_MAX);
        CHECK_I64(open_folder_with(path, bytes, length, &folder), AS_E_DATA);
        CHECK(NULL != strstr(as_error_text(), "has the id 9223372036854775807, which no archive gives"));
    }
    asi_put_i64(bytes + CATALOG_NEXT_RECORDING_ID, INT64_MAX);
    CHECK_I64(open_folder_with(path, bytes, length, &folder), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "nextRecordingId=9223372036854775807"));
    free(bytes);
}

static int64_t catalog_bytes_read(const char *path)
{
    char name[2 * AS_PATH_MAX];
    uint8_t *bytes;
    int64_t length;
    snprintf(name, sizeof(name), "%s/" ASI_CATALOG_FILE, path);
    const asi_file_ops *files = asi_file_ops_posix();
    const int fd = files->open(files->context, name, ASI_FILE_READ);
    CHECK(fd >= 0);
    CHECK_I64(asi_catalog_read(files, fd, name, &bytes, &length), AS_OK);
    free(bytes);
    files->close(files->context, fd);
    return length;
}

/* Of a catalog of the usual MiB little is read, but for one that lacks an id: there may be a record far behind the others. */
static void records_far_behind(void)
{
    enum { CAPACITY = 1 << 20, FAR = 600 << 10 };
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    int64_t length;
    uint8_t *golden = file_load(path, ASI_CATALOG_FILE, &length);
    uint8_t *bytes = calloc(1, CAPACITY);
    memcpy(bytes, golden, (size_t)length);
    file_store(path, ASI_CATALOG_FILE, bytes, CAPACITY);
    CHECK(catalog_bytes_read(path) <= CAPACITY / 8);
    asi_catalog_scan scan;
    asi_catalog_record record;
    asi_catalog_record last = { 0 };
    as_folder *folder = NULL;
    CHECK_I64(asi_catalog_scan_start_untrusted(&scan, golden, length, "golden"), AS_OK);
    while (AS_OK == asi_catalog_scan_next_untrusted(&scan, &record))
    {
        last = record;
    }
    memmove(bytes + FAR, bytes + last.offset, (size_t)last.frame_length);
    memset(bytes + last.offset, 0, (size_t)last.frame_length);
    CHECK_I64(open_folder_with(path, bytes, CAPACITY, &folder), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "there is a record behind that"));
    free(bytes);
    free(golden);
}

int main(void)
{
    RUN(headers_that_hide_records);
    RUN(ids_without_a_next_one);
    RUN(records_far_behind);
    RUN(catalogs_that_promise_much);
    RUN(repaired_catalogs);
    RUN(catalogs);
    RUN(catalogs_of_active_recordings);
    RUN(mark_files);
    RUN(segments);
    RUN(last_segments);
    RUN(segment_heads);
    RUN(server_catalogs);
    return 0;
}
