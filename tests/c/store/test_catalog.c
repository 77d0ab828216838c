/* Goal: our catalog is byte for byte the stock archive's, refuses what is no catalog, and repairs what a power failure left.
 * Method: the operations that made the golden catalogs are repeated and the files compared; bytes of a file are changed, and it
 * is opened. Faults of the disk: test_catalog_faults.c. Spec: 06 §2, §5. */
#include "catalog_support.h"

static asi_recording_params params_of(const asi_catalog_record *record)
{
    return (asi_recording_params){ .start_timestamp_ms = record->start_timestamp_ms, .stop_timestamp_ms = record->stop_timestamp_ms,
        .start_position = record->start_position, .stop_position = record->stop_position,
        .initial_term_id = record->initial_term_id, .segment_file_length = record->segment_file_length,
        .term_buffer_length = record->term_buffer_length, .mtu_length = record->mtu_length, .session_id = record->session_id,
        .stream_id = record->stream_id, .stripped_channel = record->stripped_channel,
        .original_channel = record->original_channel, .source_identity = record->source_identity };
}

/* Adds what the record was when it began, then does to it what happened to it. */
static void repeat(asi_catalog *catalog, const asi_catalog_record *record)
{
    asi_recording_params params = params_of(record);
    params.stop_position = AS_NULL_VALUE;
    params.stop_timestamp_ms = AS_NULL_VALUE;
    params.start_position = 0;
    params.session_id = 77;
    int64_t id = -1;
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    CHECK_I64(id, record->recording_id);
    CHECK_I64(asi_catalog_extend(catalog, id, record->control_session_id, record->correlation_id, record->session_id), AS_OK);
    CHECK_I64(asi_catalog_set_start_position(catalog, id, record->start_position), AS_OK);
    if (AS_NULL_VALUE != record->stop_position)
    {
        CHECK_I64(asi_catalog_stop(catalog, id, record->stop_position, record->stop_timestamp_ms), AS_OK);
    }
    if (ASI_RECORDING_VALID != record->state)
    {
        CHECK_I64(asi_catalog_invalidate(catalog, id, record->state), AS_OK);
    }
}

static void same_bytes_as_stock(void)
{
    static const struct
    {
        const char *name;
        as_record_checksum checksum;
        int64_t replaced_id; /* its padding holds rests of the old texts in stock's file; Spec: 06 §4, QUIRK */
    } rows[] = { { "archive", AS_CHECKSUM_NONE, 8 }, { "archive-crashed", AS_CHECKSUM_NONE, -1 },
        { "archive-crc", AS_CHECKSUM_CRC32, -1 }, { "archive-crc32c", AS_CHECKSUM_CRC32C, -1 },
        { "archive-full", AS_CHECKSUM_NONE, -1 } };
    char path[AS_PATH_MAX];
    char dir[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        golden_folder(scratch, rows[i].name, path);
        snprintf(dir, sizeof(dir), "%s/ours-%zu", scratch, i);
        CHECK_I64(asi_dir_create(dir), AS_OK);
        int64_t length;
        uint8_t *stock = file_load(path, ASI_CATALOG_FILE, &length);
        asi_catalog *catalog = catalog_open(asi_file_ops_posix(), dir, length, 0, rows[i].checksum);
        CHECK(NULL != catalog);
        asi_catalog_scan scan;
        asi_catalog_record record;
        int64_t replaced_begin = 0;
        int64_t replaced_end = 0;
        CHECK_I64(asi_catalog_scan_start_untrusted(&scan, stock, length, "stock"), AS_OK);
        while (AS_OK == asi_catalog_scan_next_untrusted(&scan, &record))
        {
            repeat(catalog, &record);
            if (record.recording_id == rows[i].replaced_id)
            {
                replaced_begin = (const uint8_t *)record.source_identity.at + record.source_identity.length - stock;
                replaced_end = record.offset + record.frame_length;
            }
        }
        asi_catalog_close(catalog);
        memset(stock + replaced_begin, 0, (size_t)(replaced_end - replaced_begin));
        int64_t our_length;
        uint8_t *ours = file_load(dir, ASI_CATALOG_FILE, &our_length);
        CHECK_I64(our_length, length);
        for (int64_t at = 0; at < length; at++)
        {
            if (ours[at] != stock[at])
            {
                fprintf(stderr, "%s: byte %" PRId64 " is %02x, stock has %02x\n", rows[i].name, at, ours[at], stock[at]);
            }
            CHECK(ours[at] == stock[at]);
        }
        free(ours);
        free(stock);
    }
}

static void positions_and_index(void)
{
    const char *scratch = scratch_folder();
    asi_catalog *catalog = catalog_open(asi_file_ops_posix(), scratch, 4096, 1, AS_CHECKSUM_CRC32);
    CHECK(NULL != catalog);
    const asi_recording_params params = sample_params("aeron:ipc?alias=a");
    int64_t id = -1;
    for (int64_t i = 0; i < 100; i++)
    {
        CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
        CHECK_I64(id, i);
    }
    CHECK(asi_catalog_capacity(catalog) > 4096); /* grew by halves */
    const asi_recording_positions *positions = asi_catalog_positions(catalog, 42);
    CHECK_I64(asi_recording_stop(positions), AS_NULL_VALUE);
    CHECK_I64(asi_catalog_stop(catalog, 42, 4096, 2000), AS_OK);
    CHECK_I64(asi_recording_stop(positions), 4096);
    CHECK_I64(asi_recording_start(positions), 64);
    CHECK_I64(asi_catalog_invalidate(catalog, 42, ASI_RECORDING_DELETED), AS_OK);
    asi_catalog_record record;
    CHECK(!asi_catalog_find(catalog, 42, &record));
    CHECK(NULL == asi_catalog_positions(catalog, 42));
    CHECK_I64(asi_catalog_count(catalog), 99);
    CHECK_I64(asi_catalog_index_from(catalog, 42), 42);
    asi_catalog_at(catalog, 42, &record);
    CHECK_I64(record.recording_id, 43);
    CHECK_I64(asi_catalog_last_of(catalog, 0, 99, 9, 10), 98);
    CHECK_I64(asi_catalog_last_of(catalog, 0, 98, 9, 10), 97);
    CHECK_I64(asi_catalog_extend(catalog, 43, 1, 2, 77), AS_OK);
    CHECK_I64(asi_catalog_last_of(catalog, 0, 99, 77, 10), 42);
    CHECK_I64(asi_catalog_last_of(catalog, 42, 99, 77, 10), 42);
    CHECK_I64(asi_catalog_last_of(catalog, 43, 99, 77, 10), -1);
    CHECK_I64(asi_catalog_last_of(catalog, 0, 42, 77, 10), -1);
    CHECK_I64(asi_catalog_last_of(catalog, 0, 99, 77, 11), -1);
    CHECK_I64(asi_catalog_stop(catalog, 42, 4096, 2000), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "unknown recording id: 42"));
    asi_catalog_close(catalog);

    catalog = catalog_open(asi_file_ops_posix(), scratch, 4096, 1, AS_CHECKSUM_CRC32);
    CHECK(NULL != catalog);
    CHECK_I64(asi_catalog_count(catalog), 99);
    CHECK_I64(asi_catalog_next_recording_id(catalog), 100);
    CHECK_I64(asi_catalog_invalidate(catalog, 99, ASI_RECORDING_DELETED), AS_OK);
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    CHECK_I64(id, 100); /* never used twice */
    asi_catalog_close(catalog);
}

static void replace_grows_and_shrinks(void)
{
    char long_channel[600];
    const char *scratch = scratch_folder();
    memset(long_channel, 'x', sizeof(long_channel) - 1);
    long_channel[sizeof(long_channel) - 1] = '\0';
    asi_catalog *catalog = catalog_open(asi_file_ops_posix(), scratch, 1024, 0, AS_CHECKSUM_CRC32);
    CHECK(NULL != catalog);
    const asi_recording_params params = sample_params("aeron:ipc?alias=short");
    asi_recording_params longer = sample_params(long_channel);
    longer.session_id = 70;
    longer.stream_id = 71;
    int64_t id;
    for (int64_t i = 0; i < 3; i++)
    {
        CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    }
    CHECK_I64(asi_catalog_extend(catalog, 1, 1234, 5678, 9), AS_OK);
    asi_catalog_record record;
    for (int round = 0; round < 3; round++)
    {
        CHECK_I64(asi_catalog_replace(catalog, 1, 1 == round ? &params : &longer), AS_OK);
        CHECK_I64(asi_catalog_last_of(catalog, 0, 3, 70, 71), 1 == round ? -1 : 1);
        CHECK_I64(asi_catalog_last_of(catalog, 0, 2, params.session_id, params.stream_id), 1 == round ? 1 : 0);
        asi_catalog_close(catalog);
        check_checksums(scratch);
        catalog = catalog_open(asi_file_ops_posix(), scratch, 1024, 0, AS_CHECKSUM_CRC32);
        CHECK(NULL != catalog);
        CHECK_I64(asi_catalog_count(catalog), 3);
        CHECK(asi_catalog_find(catalog, 1, &record));
        CHECK_I64(record.original_channel.length, 1 == round ? params.original_channel.length : longer.original_channel.length);
        CHECK_I64(record.control_session_id, 1234);
        CHECK_I64(record.correlation_id, 5678);
        CHECK(asi_catalog_find(catalog, 2, &record));
        CHECK_I64(record.stripped_channel.length, params.stripped_channel.length);
    }
    CHECK_I64(asi_catalog_stop(catalog, 2, 128, 1), AS_OK); /* found where it was moved to */
    asi_catalog_close(catalog);
    check_checksums(scratch);
}

/* What goes is gone, what stays has its bytes, and ids go on where they were. */
static void compaction_keeps_what_is_valid(void)
{
    enum { COUNT = 200 };
    const char *scratch = scratch_folder();
    asi_catalog *catalog = catalog_open(asi_file_ops_posix(), scratch, 4096, 1, AS_CHECKSUM_CRC32);
    CHECK(NULL != catalog);
    const asi_catalog_writer writer = { .is_known = true, .file_sync_level = 1, .start = 77, .boot = 99 };
    CHECK_I64(asi_catalog_set_writer(catalog, &writer), AS_OK);
    const asi_recording_params params = sample_params("aeron:ipc?alias=compacted");
    int64_t id;
    for (int64_t i = 0; i < COUNT; i++)
    {
        CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
        CHECK_I64(asi_catalog_set_start_position(catalog, id, 64 * (i + 1)), AS_OK);
    }
    const asi_recording_positions *positions = asi_catalog_positions(catalog, 150);
    const int64_t full = asi_catalog_capacity(catalog);
    const int64_t used = asi_catalog_used_bytes(catalog);
    const int64_t held = 7;
    for (int64_t i = 0; i < COUNT; i++)
    {
        if (0 != i % 10 && 3 != i)
        {
            CHECK_I64(asi_catalog_invalidate(catalog, i, 5 == i ? ASI_RECORDING_INVALID : ASI_RECORDING_DELETED), AS_OK);
        }
    }
    /* 20 tens and number 3 are VALID, number 5 INVALID, number 7 needed: 177 go. */
    const int64_t each = (used - ASI_CATALOG_HEADER_LENGTH) / COUNT;
    CHECK_I64(asi_catalog_deleted_bytes(catalog), 178 * each);
    int64_t reclaimed = 0;
    CHECK_I64(asi_catalog_compact(catalog, stays, (void *)&held, &reclaimed), AS_OK);
    CHECK_I64(reclaimed, 177 * each);
    CHECK_I64(asi_catalog_deleted_bytes(catalog), each);
    CHECK_I64(asi_catalog_used_bytes(catalog), ASI_CATALOG_HEADER_LENGTH + 23 * each);
    CHECK(asi_catalog_capacity(catalog) < full);
    for (int round = 0; round < 2; round++)
    {
        CHECK_I64(asi_catalog_count(catalog), 21);
        CHECK_I64(asi_catalog_next_recording_id(catalog), COUNT);
        CHECK_I64(asi_catalog_get_writer(catalog).boot, 99);
        asi_catalog_record record;
        for (int64_t i = 0; i < COUNT; i++)
        {
            CHECK(asi_catalog_find(catalog, i, &record) == (0 == i % 10 || 3 == i));
            if (0 == i % 10)
            {
                CHECK_I64(record.start_position, 64 * (i + 1));
                CHECK_I64(record.original_channel.length, params.original_channel.length);
            }
        }
        if (0 == round)
        {
            /* Threads that read positions go on with what they have; mutations reach the moved record. */
            CHECK_I64(asi_catalog_stop(catalog, 150, 1 << 20, 5), AS_OK);
            CHECK_I64(asi_recording_stop(positions), 1 << 20);
            asi_catalog_close(catalog);
            check_checksums(scratch);
            catalog = catalog_open(asi_file_ops_posix(), scratch, 4096, 1, AS_CHECKSUM_CRC32);
            CHECK(NULL != catalog);
        }
    }
    int64_t count;
    int64_t *deleted = asi_catalog_deleted(catalog, &count);
    CHECK_I64(count, 1);
    CHECK_I64(deleted[0], held);
    free(deleted);
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    CHECK_I64(id, COUNT);
    asi_catalog_close(catalog);
}

/* A foreign or damaged file is an error that says so, and is not written to. */
static void refused(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    int64_t length;
    uint8_t *good = file_load(path, ASI_CATALOG_FILE, &length);
    static const struct
    {
        int64_t length;  /* of the file; -1: whole */
        int64_t offset;  /* of an i32 that is changed; -1: none */
        int32_t value;
        const char *text;
    } rows[] = {
        { 0, -1, 0, "too few" },
        { 20, -1, 0, "too few" },
        { -1, 0, 0x00020000, "incompatible catalog file version 2.0.0, archive software is 3.1.0" },
        { -1, 0, 0x464C457F, "incompatible catalog file version" },
        { -1, 4, 64, "no catalog or its header is damaged" },
        { -1, 16, 0, "no catalog or its header is damaged" },
        { -1, 16, 63, "no catalog or its header is damaged" },
        { -1, 8, 3, "invalid nextRecordingId: expected value greater or equal to 12, was 3" },
        { 300, -1, 0, "is truncated" },
        { -1, 32, INT32_MAX, "none has more than 1048576" },
        { -1, 32, 64, "no recording descriptor" },
        { -1, 32 + 112, INT32_MAX, "no recording descriptor" },
        { -1, 32 + 112, -5, "no recording descriptor" },
        { -1, 32 + 48, 5, "ids must increase" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        const int64_t bad_length = -1 == rows[i].length ? length : rows[i].length;
        uint8_t *bad = malloc((size_t)length);
        CHECK(NULL != bad);
        memcpy(bad, good, (size_t)length);
        if (rows[i].offset >= 0)
        {
            asi_put_i32(bad + rows[i].offset, rows[i].value);
        }
        file_store(path, ASI_CATALOG_FILE, bad, bad_length);
        CHECK(NULL == catalog_open(asi_file_ops_posix(), path, length, 0, AS_CHECKSUM_NONE));
        if (NULL == strstr(as_error_text(), rows[i].text))
        {
            CHECK_TEXT(as_error_text(), rows[i].text);
        }
        CHECK(NULL != strstr(as_error_text(), path));
        int64_t after_length;
        uint8_t *after = file_load(path, ASI_CATALOG_FILE, &after_length);
        CHECK(after_length == bad_length && 0 == memcmp(after, bad, (size_t)bad_length));
        free(after);
        free(bad);
    }
    free(good);
}

typedef struct damage
{
    int count;
    char text[1024];
} damage;

static void on_damage(void *context, const char *text)
{
    damage *told = context;
    told->count++;
    snprintf(told->text, sizeof(told->text), "%s", text);
}

/* A record with impossible values is kept as it is, after a crash too, and reported. */
static void damaged_records_are_kept(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    int64_t length;
    uint8_t *good = file_load(path, ASI_CATALOG_FILE, &length);
    static const struct
    {
        int64_t offset; /* of an i32 of recording 0 */
        int32_t value;
        const char *text;
    } rows[] = {
        { 32 + 96, 1000, "termBufferLength=1000 must be" },
        { 32 + 92, 65535, "segmentFileLength=65535 must be" },
        { 32 + 72, 33, "startPosition=33 must be" },
        { 32 + 80, 33, "stopPosition=33 must be" },
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++)
    {
        uint8_t *bad = malloc((size_t)length);
        CHECK(NULL != bad);
        memcpy(bad, good, (size_t)length);
        asi_put_i32(bad + rows[i / 2].offset, rows[i / 2].value);
        file_store(path, ASI_CATALOG_FILE, bad, length);
        damage told = { 0 };
        const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = path, .capacity = length,
            .is_after_crash = 0 != i % 2, .on_damage = on_damage, .damage_context = &told };
        asi_catalog *catalog = NULL;
        asi_catalog_record record;
        CHECK_I64(asi_catalog_open(&params, &catalog), AS_OK);
        CHECK_I64(told.count, 1);
        CHECK(NULL != strstr(told.text, rows[i / 2].text) && NULL != strstr(told.text, path));
        CHECK(asi_catalog_find(catalog, 0, &record));
        CHECK_I64(asi_recording_check_untrusted(&record), AS_E_DATA);
        asi_catalog_close(catalog);
        free(bad);
    }
    free(good);
}

/* A power failure brought back a longer version of a record: its padding, or the bytes behind the end, hold a record that was
 * written there since. It is not in the catalog, and must not look like a record later, when its id has been assigned. */
static void bytes_of_no_record_stay_none(bool is_in_padding, bool has_mark)
{
    const char *scratch = scratch_folder();
    const asi_recording_params params = sample_params("aeron:ipc");
    const asi_catalog_writer writer = { .is_known = true };
    int64_t id = -1;
    asi_catalog *catalog = catalog_open(asi_file_ops_posix(), scratch, ASI_CATALOG_MIN_CAPACITY, 0, AS_CHECKSUM_CRC32C);
    CHECK(NULL != catalog);
    for (int i = 0; i < 2; i++)
    {
        CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
        CHECK_I64(asi_catalog_stop(catalog, id, 64, 1), AS_OK);
    }
    CHECK_I64(asi_catalog_set_writer(catalog, &writer), AS_OK);
    asi_catalog_record first;
    CHECK(asi_catalog_find(catalog, 0, &first));
    asi_catalog_close(catalog);
    int64_t length;
    uint8_t *bytes = file_load(scratch, ASI_CATALOG_FILE, &length);
    uint8_t *second = bytes + first.offset + first.frame_length;
    asi_put_i64(second + 48, 5);
    asi_put_i64(bytes + 8, 1);
    if (is_in_padding)
    {
        asi_put_i32(bytes + first.offset, (int32_t)(2 * first.frame_length - 32));
    }
    else
    {
        asi_put_i32(second, 0);
    }
    file_store(scratch, ASI_CATALOG_FILE, bytes, length);
    free(bytes);
    const asi_catalog_params after = { .files = asi_file_ops_posix(), .archive_dir = scratch, .capacity = length,
        .checksum = AS_CHECKSUM_CRC32C, .is_after_crash = has_mark };
    CHECK_I64(asi_catalog_open(&after, &catalog), AS_OK);
    CHECK_I64(asi_catalog_count(catalog), 1);
    CHECK_I64(asi_catalog_skip_ids(catalog, 9), AS_OK); /* its segments are there */
    asi_catalog_close(catalog);
    as_folder *folder = NULL;
    CHECK_I64(as_folder_open(scratch, NULL, &folder), AS_OK);
    as_folder_close(folder);
    catalog = catalog_open(asi_file_ops_posix(), scratch, length, 0, AS_CHECKSUM_CRC32C);
    CHECK(NULL != catalog);
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    CHECK_I64(id, 9);
    asi_catalog_close(catalog);
}

/* The record in the padding is one of the catalog's: an old, longer length has come back, and covers it. */
static void an_old_length_hides_nothing(void)
{
    const char *scratch = scratch_folder();
    const asi_recording_params params = sample_params("aeron:ipc");
    asi_catalog *catalog = catalog_open(asi_file_ops_posix(), scratch, ASI_CATALOG_MIN_CAPACITY, 0, AS_CHECKSUM_CRC32C);
    CHECK(NULL != catalog);
    int64_t id = -1;
    asi_catalog_record record;
    for (int i = 0; i < 3; i++)
    {
        CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    }
    CHECK(asi_catalog_find(catalog, 1, &record));
    asi_catalog_close(catalog);
    int64_t length;
    uint8_t *good = file_load(scratch, ASI_CATALOG_FILE, &length);
    uint8_t *bad = file_load(scratch, ASI_CATALOG_FILE, &length);
    asi_put_i32(bad + record.offset, (int32_t)(2 * record.frame_length - 32));
    file_store(scratch, ASI_CATALOG_FILE, bad, length);
    CHECK(NULL == catalog_open(asi_file_ops_posix(), scratch, length, 0, AS_CHECKSUM_CRC32C));
    CHECK(NULL != strstr(as_error_text(), "takes in another one"));
    damage told = { 0 };
    const asi_catalog_params after = { .files = asi_file_ops_posix(), .archive_dir = scratch, .capacity = length,
        .checksum = AS_CHECKSUM_CRC32C, .is_after_crash = true, .on_damage = on_damage, .damage_context = &told };
    CHECK_I64(asi_catalog_open(&after, &catalog), AS_OK);
    CHECK_I64(asi_catalog_count(catalog), 3);
    CHECK_I64(told.count, 1);
    CHECK(NULL != strstr(told.text, "recording 1 at offset"));
    asi_catalog_close(catalog);
    free(bad);
    bad = file_load(scratch, ASI_CATALOG_FILE, &length);
    CHECK(0 == memcmp(good, bad, (size_t)length));
    free(bad);
    free(good);
}

static void what_a_power_failure_left_of_records(void)
{
    for (int i = 0; i < 4; i++)
    {
        bytes_of_no_record_stay_none(0 != (i & 1), 0 != (i & 2));
    }
}

int main(void)
{
    RUN(same_bytes_as_stock);
    RUN(positions_and_index);
    RUN(replace_grows_and_shrinks);
    RUN(compaction_keeps_what_is_valid);
    RUN(refused);
    RUN(damaged_records_are_kept);
    RUN(what_a_power_failure_left_of_records);
    RUN(an_old_length_hides_nothing);
    return 0;
}
