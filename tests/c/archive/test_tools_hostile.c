/* Goal: no folder, however damaged, makes a tool crash, hang, write without consent, or lose a readable recording; a repair is
 * permanent. Method: golden folders with random bytes of catalog, mark file or a segment changed or cut off (printed
 * seed), verified, dumped, repaired, checksummed and compacted; run under the address and undefined sanitizers. */
#include "../store/archive_support.h"
#include "store/catalog.h"

#define ROUNDS 150

static const int32_t extremes[] = { 0, 1, -1, 31, 32, 33, 64, 65535, 65536, 1 << 30, INT32_MAX, INT32_MIN, INT32_MAX - 31 };

static void damage(asi_rand *rand, uint8_t *bytes, int64_t range)
{
    for (int64_t i = 1 + test_rand_below(rand, 4); i > 0; i--)
    {
        const int64_t offset = test_rand_below(rand, range);
        if (test_rand_below(rand, 2))
        {
            bytes[offset] = (uint8_t)asi_rand_u64(rand);
        }
        else
        {
            asi_put_i32(bytes + (offset & ~3LL), extremes[test_rand_below(rand, sizeof(extremes) / sizeof(extremes[0]))]);
        }
    }
}

static void on_error(
    void *context, int32_t count, int64_t first_ms, int64_t last_ms, const char *text, int64_t text_length)
{
    (void)context, (void)count, (void)first_ms, (void)last_ms;
    CHECK(NULL != text && text_length >= 0);
}

static void dump(as_catalog *catalog, int64_t index)
{
    as_dump *opened = NULL;
    as_dump_frame frame;
    as_catalog_entry entry;
    CHECK_I64(as_catalog_at(catalog, index, &entry), AS_OK);
    const int64_t start = entry.recording.start_position;
    if (AS_OK == as_dump_open(catalog, index, start + 32, start + (1 << 19), start + (1 << 20), &opened))
    {
        int64_t last = -1;
        while (AS_OK == as_dump_next(opened, &frame))
        {
            CHECK(frame.position > last);
            last = frame.position;
        }
    }
    as_dump_close(opened);
}

static as_verify_report verify(as_catalog *catalog, int64_t index, bool repair, as_record_checksum checksum)
{
    as_verify_options options;
    as_verify_report report = { .outcome = -1 };
    as_verify_options_init(&options);
    options.all_segments = true;
    options.repair = repair;
    options.checksum = checksum;
    if (AS_OK != as_catalog_verify(catalog, index, &options, &report))
    {
        CHECK('\0' != as_error_text()[0]);
        report.outcome = AS_VERIFY_BAD;
        return report;
    }
    CHECK(report.outcome >= AS_VERIFY_OK && report.outcome <= AS_VERIFY_BAD);
    CHECK(AS_VERIFY_OK == report.outcome || AS_VERIFY_SKIPPED == report.outcome || '\0' != report.text[0]);
    CHECK(NULL != memchr(report.text, '\0', sizeof(report.text)));
    CHECK(repair || AS_VERIFY_REPAIRED != report.outcome);
    return report;
}

/* What looks must not write. */
static void look(const char *path, asi_rand *rand, const char *name)
{
    int64_t before_length;
    int64_t after_length;
    uint8_t *before = file_load(path, name, &before_length);
    as_catalog *catalog = NULL;
    if (AS_OK == as_catalog_open(path, false, &catalog))
    {
        as_mark_view mark;
        as_catalog_info info;
        as_checksum_report report;
        CHECK_I64(as_catalog_get_info(catalog, &info), AS_OK);
        CHECK(info.used <= info.capacity && NULL != info.damage);
        (void)!as_catalog_mark(catalog, &mark);
        CHECK(as_catalog_errors(catalog, on_error, NULL) >= 0);
        for (int64_t i = 0; i < as_catalog_count(catalog); i++)
        {
            as_catalog_entry entry;
            CHECK_I64(as_catalog_at(catalog, i, &entry), AS_OK);
            CHECK(entry.offset + entry.length <= info.used);
            verify(catalog, i, false, (as_record_checksum)test_rand_below(rand, 4));
            dump(catalog, i);
            (void)!as_catalog_checksum(catalog, i, AS_CHECKSUM_CRC32, true, true, NULL, NULL, &report);
            CHECK_I64(as_catalog_set_state(catalog, i, AS_RECORDING_INVALID), AS_E_USAGE);
        }
    }
    else
    {
        CHECK('\0' != as_error_text()[0]);
    }
    as_catalog_close(catalog);
    uint8_t *after = file_load(path, name, &after_length);
    CHECK_I64(after_length, before_length);
    CHECK(0 == memcmp(before, after, (size_t)before_length));
    free(before);
    free(after);
}

/* Whatever is VALID stays, in its order, and is readable again. */
static void check_compaction(const char *path)
{
    enum { MAX = 64 };
    int64_t ids[MAX];
    int64_t count = 0;
    as_catalog *catalog = NULL;
    as_catalog_info info;
    CHECK_I64(as_catalog_open(path, true, &catalog), AS_OK);
    CHECK_I64(as_catalog_get_info(catalog, &info), AS_OK);
    const bool is_damaged = '\0' != info.damage[0];
    for (int64_t i = 0; i < as_catalog_count(catalog); i++)
    {
        as_catalog_entry entry;
        CHECK_I64(as_catalog_at(catalog, i, &entry), AS_OK);
        if (AS_RECORDING_VALID == entry.state)
        {
            CHECK(count < MAX);
            ids[count++] = entry.recording.recording_id;
        }
    }
    const int64_t all = as_catalog_count(catalog);
    int64_t deleted = -1;
    int64_t reclaimed = -1;
    const as_result result = as_catalog_compact(catalog, &deleted, &reclaimed);
    as_catalog_close(catalog);
    CHECK_I64(result, is_damaged ? AS_E_DATA : AS_OK);
    CHECK_I64(as_catalog_open(path, false, &catalog), AS_OK);
    CHECK_I64(as_catalog_count(catalog), is_damaged ? all : count);
    CHECK(is_damaged || deleted == all - count);
    for (int64_t i = 0; i < count && !is_damaged; i++)
    {
        as_catalog_entry entry;
        CHECK_I64(as_catalog_at(catalog, i, &entry), AS_OK);
        CHECK_I64(entry.recording.recording_id, ids[i]);
    }
    as_catalog_close(catalog);
}

static void repair(const char *path)
{
    as_catalog *catalog = NULL;
    if (AS_OK != as_catalog_open(path, true, &catalog))
    {
        CHECK('\0' != as_error_text()[0]);
        return;
    }
    for (int64_t i = 0; i < as_catalog_count(catalog); i++)
    {
        const as_verify_report report = verify(catalog, i, true, AS_CHECKSUM_AUTO);
        if (AS_VERIFY_OK == report.outcome || AS_VERIFY_REPAIRED == report.outcome)
        {
            CHECK_I64(verify(catalog, i, false, AS_CHECKSUM_AUTO).outcome, AS_VERIFY_OK);
        }
    }
    as_catalog_close(catalog);
    check_compaction(path);
}

static void fuzz_file(const char *golden, const char *name, int64_t range)
{
    char path[AS_PATH_MAX];
    asi_rand rand = test_rand();
    const char *scratch = scratch_folder();
    golden_folder(scratch, golden, path);
    int64_t length;
    int64_t catalog_length;
    uint8_t *good = file_load(path, name, &length);
    uint8_t *catalog = file_load(path, ASI_CATALOG_FILE, &catalog_length);
    uint8_t *bad = malloc((size_t)length);
    for (int64_t round = 0; round < ROUNDS; round++)
    {
        memcpy(bad, good, (size_t)length);
        damage(&rand, bad, range < length ? range : length);
        file_store(path, ASI_CATALOG_FILE, catalog, catalog_length);
        file_store(path, name, bad, 0 == test_rand_below(&rand, 5) ? test_rand_below(&rand, length) : length);
        look(path, &rand, name);
        repair(path);
    }
    free(good);
    free(bad);
    free(catalog);
}

static void catalogs(void) { fuzz_file("archive-crc", ASI_CATALOG_FILE, 400); }
static void catalogs_of_active_recordings(void) { fuzz_file("archive-crashed", ASI_CATALOG_FILE, 300); }
static void mark_files(void) { fuzz_file("archive-crashed", "archive-mark.dat", 9000); }
static void segments(void) { fuzz_file("archive-crc", "0-0.rec", 131072); }
static void last_segments(void) { fuzz_file("archive-crashed", "0-262144.rec", 60000); }

int main(void)
{
    RUN(catalogs);
    RUN(catalogs_of_active_recordings);
    RUN(mark_files);
    RUN(segments);
    RUN(last_segments);
    return 0;
}
