/* Goal: our catalog is byte for byte the stock archive's, survives a fault at each of its writes, and refuses what is no catalog.
 * Method: the operations that made the golden catalogs are repeated and the files compared; each mutation is run with a fault at
 * call 1, 2, ... until it passes, and the file is opened again each time.
 * Spec: 06 §2, §5. */
#include "store/catalog.h"
#include "store/catalog_swap.h"

#include "archive_support.h"
#include "failing_files.h"

static asi_catalog *catalog_open(
    const asi_file_ops *files, const char *dir, int64_t capacity, int32_t sync_level, as_record_checksum checksum)
{
    const asi_catalog_params params = { .files = files, .archive_dir = dir, .capacity = capacity, .sync_level = sync_level,
        .checksum = checksum };
    asi_catalog *catalog = NULL;
    return AS_OK == asi_catalog_open(&params, &catalog) ? catalog : NULL;
}

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

static asi_recording_params sample_params(const char *channel)
{
    return (asi_recording_params){ .start_timestamp_ms = 1000, .stop_timestamp_ms = AS_NULL_VALUE, .start_position = 64,
        .stop_position = AS_NULL_VALUE, .initial_term_id = 5, .segment_file_length = 131072, .term_buffer_length = 65536,
        .mtu_length = 1408, .session_id = 9, .stream_id = 10, .stripped_channel = asi_text_of(channel),
        .original_channel = asi_text_of(channel), .source_identity = asi_text_of("aeron:ipc") };
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

static void check_checksums(const char *dir)
{
    int64_t length;
    uint8_t *bytes = file_load(dir, ASI_CATALOG_FILE, &length);
    asi_catalog_scan scan;
    asi_catalog_record record;
    CHECK_I64(asi_catalog_scan_start_untrusted(&scan, bytes, length, "catalog"), AS_OK);
    as_result result;
    while (AS_OK == (result = asi_catalog_scan_next_untrusted(&scan, &record)))
    {
        CHECK_I64((uint32_t)record.checksum, asi_crc32(bytes + record.offset + 32, asi_get_i32(bytes + record.offset)));
    }
    CHECK_I64(result, AS_AGAIN);
    free(bytes);
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

/* -- compaction --------------------------------------------------------------------------------------------------------------- */

static bool stays(void *context, int64_t recording_id) { return NULL != context && *(const int64_t *)context == recording_id; }

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

typedef as_result (*mutation)(asi_catalog *catalog);

static as_result do_add(asi_catalog *catalog)
{
    const asi_recording_params params = sample_params("aeron:ipc?alias=added-under-faults");
    int64_t id;
    return asi_catalog_add(catalog, &params, &id);
}

static as_result do_stop(asi_catalog *catalog) { return asi_catalog_stop(catalog, 1, 4096, 5); }
static as_result do_extend(asi_catalog *catalog) { return asi_catalog_extend(catalog, 0, 1, 2, 3); }
static as_result do_invalidate(asi_catalog *catalog) { return asi_catalog_invalidate(catalog, 1, ASI_RECORDING_DELETED); }
static as_result do_start(asi_catalog *catalog) { return asi_catalog_set_start_position(catalog, 1, 131072); }

/* Grows over a sector, so recording 1 moves. */
static as_result do_replace(asi_catalog *catalog)
{
    static char channel[700];
    memset(channel, 'x', sizeof(channel) - 1);
    asi_recording_params params = sample_params(channel);
    params.stop_position = 8192;
    return asi_catalog_replace(catalog, 0, &params);
}

/* Recording 1 goes. */
static as_result do_compact(asi_catalog *catalog)
{
    int64_t reclaimed;
    as_result result = asi_catalog_deleted_bytes(catalog) > 0 ? AS_OK : do_invalidate(catalog);
    result = AS_OK == result ? asi_catalog_compact(catalog, stays, NULL, &reclaimed) : result;
    if (AS_OK == result)
    {
        CHECK(reclaimed > 0);
        CHECK_I64(asi_catalog_deleted_bytes(catalog), 0);
    }
    return result;
}

/* Recording 0 is stopped, 1 active; then the mutation with a fault at each call. Whatever was reached, the catalog opens, both
 * recordings are in a state that they had before or have after, and a new recording gets a fresh id. */
static void fault_at_each_write(mutation mutate, bool stays_broken)
{
    bool has_passed = false;
    for (int64_t fail_at = 1; !has_passed; fail_at++)
    {
        CHECK(fail_at < 100);
        const char *scratch = scratch_folder();
        asi_catalog *catalog = catalog_open(asi_file_ops_posix(), scratch, 512, 1, AS_CHECKSUM_NONE);
        CHECK(NULL != catalog);
        CHECK_I64(do_add(catalog), AS_OK);
        CHECK_I64(do_add(catalog), AS_OK);
        CHECK_I64(asi_catalog_stop(catalog, 0, 8192, 5), AS_OK);
        asi_catalog_close(catalog);

        failing_files files;
        failing_files_init(&files, 0, ENOSPC, stays_broken);
        catalog = catalog_open(&files.ops, scratch, 512, 1, AS_CHECKSUM_NONE);
        CHECK(NULL != catalog);
        files.calls = 0;
        files.fail_at = fail_at;
        const as_result result = mutate(catalog);
        has_passed = AS_OK == result && files.calls < fail_at;
        CHECK(has_passed || AS_E_STORAGE == result);
        CHECK(has_passed || ENOSPC == as_error_code());
        asi_catalog_close(catalog);
        CHECK_I64(files.open_count, 0);

        catalog = catalog_open(asi_file_ops_posix(), scratch, 512, 1, AS_CHECKSUM_NONE);
        CHECK(NULL != catalog);
        asi_catalog_record record;
        CHECK(asi_catalog_find(catalog, 0, &record));
        CHECK(8192 == record.stop_position || -1 == record.stop_position);
        const int64_t next = asi_catalog_next_recording_id(catalog);
        int64_t id;
        const asi_recording_params params = sample_params("aeron:ipc");
        CHECK(next >= 2);
        CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
        CHECK_I64(id, next);
        asi_catalog_close(catalog);
        catalog = catalog_open(asi_file_ops_posix(), scratch, 512, 1, AS_CHECKSUM_NONE);
        CHECK(NULL != catalog && asi_catalog_find(catalog, id, &record));
        CHECK_I64(record.original_channel.length, params.original_channel.length);
        asi_catalog_close(catalog);
    }
}

static void faults(void)
{
    static const mutation mutations[] = { do_add, do_stop, do_extend, do_invalidate, do_start, do_replace, do_compact };
    for (size_t i = 0; i < sizeof(mutations) / sizeof(mutations[0]); i++)
    {
        fault_at_each_write(mutations[i], true);
        fault_at_each_write(mutations[i], false);
    }
}

static bool is_same(const asi_catalog_record *a, const asi_catalog_record *b)
{
    return a->stop_position == b->stop_position && a->stop_timestamp_ms == b->stop_timestamp_ms &&
        a->control_session_id == b->control_session_id && a->correlation_id == b->correlation_id &&
        a->session_id == b->session_id && a->start_position == b->start_position;
}

/* What a reader of the file finds as the first record, with its checksum as it should be. */
static void check_first_in_file(const char *dir, const asi_catalog_record *expected)
{
    int64_t length;
    uint8_t *bytes = file_load(dir, ASI_CATALOG_FILE, &length);
    asi_catalog_scan scan;
    asi_catalog_record record;
    CHECK_I64(asi_catalog_scan_start_untrusted(&scan, bytes, length, "catalog"), AS_OK);
    CHECK_I64(asi_catalog_scan_next_untrusted(&scan, &record), AS_OK);
    CHECK(is_same(&record, expected));
    free(bytes);
    check_checksums(dir);
}

/* An extension with a fault at one of its calls. Nobody records then, so the recording must be stopped as it was: at once, and in
 * the file as soon as the disk takes writes again. False: no call was left that could fail. */
static bool extend_with_fault(int64_t fail_at, bool stays_broken, int32_t sync_level)
{
    const char *scratch = scratch_folder();
    failing_files files;
    failing_files_init(&files, 0, EIO, stays_broken);
    asi_catalog *catalog = catalog_open(&files.ops, scratch, 4096, sync_level, AS_CHECKSUM_CRC32);
    CHECK(NULL != catalog);
    CHECK_I64(do_add(catalog), AS_OK);
    CHECK_I64(asi_catalog_extend(catalog, 0, 11, 12, 13), AS_OK);
    CHECK_I64(asi_catalog_stop(catalog, 0, 8192, 5), AS_OK);
    asi_catalog_record before;
    asi_catalog_record after;
    CHECK(asi_catalog_find(catalog, 0, &before));
    files.calls = 0;
    files.fail_at = fail_at;
    const as_result result = do_extend(catalog);
    const bool has_failed = files.calls >= fail_at;
    CHECK_I64(result, has_failed ? AS_E_STORAGE : AS_OK);
    if (has_failed)
    {
        CHECK_I64(as_error_code(), EIO);
        CHECK(asi_catalog_find(catalog, 0, &after) && is_same(&after, &before));
        CHECK_I64(asi_recording_stop(asi_catalog_positions(catalog, 0)), 8192);
        CHECK_I64(asi_catalog_last_of(catalog, 0, 1, 13, 10), 0);
        files.fail_at = 0;
        if (stays_broken)
        {
            CHECK_I64(do_add(catalog), AS_OK); /* the next mutation */
        }
        check_first_in_file(scratch, &before);
        CHECK_I64(do_extend(catalog), AS_OK);
        CHECK_I64(asi_recording_stop(asi_catalog_positions(catalog, 0)), AS_NULL_VALUE);
    }
    asi_catalog_close(catalog);
    return has_failed;
}

static void an_extension_that_fails_leaves_the_recording_stopped(void)
{
    for (int32_t sync_level = 0; sync_level <= 1; sync_level++)
    {
        for (int stays_broken = 0; stays_broken <= 1; stays_broken++)
        {
            int64_t fail_at = 1;
            while (extend_with_fault(fail_at, 0 != stays_broken, sync_level))
            {
                fail_at++;
            }
            CHECK_I64(fail_at - 1, 6 + sync_level); /* five fields, the checksum, and the sync if there is one */
        }
    }
}

/* An add with a fault at each of its calls: what is listed afterwards is stopped, because nobody records it. */
static void an_add_that_fails_leaves_nothing_active(void)
{
    int stopped_count = 0;
    for (int round = 0; round < 2; round++)
    {
        bool has_failed = true;
        for (int64_t fail_at = 1; has_failed; fail_at++)
        {
            const char *scratch = scratch_folder();
            failing_files files;
            failing_files_init(&files, 0, EIO, 0 != round);
            asi_catalog *catalog = catalog_open(&files.ops, scratch, 4096, 1, AS_CHECKSUM_CRC32);
            CHECK(NULL != catalog);
            CHECK_I64(do_add(catalog), AS_OK);
            files.calls = 0;
            files.fail_at = fail_at;
            has_failed = AS_OK != do_add(catalog);
            CHECK(has_failed == (files.calls >= fail_at));
            asi_catalog_record record;
            if (has_failed && asi_catalog_find(catalog, 1, &record))
            {
                CHECK_I64(record.stop_position, record.start_position);
                CHECK_I64(record.stop_timestamp_ms, record.start_timestamp_ms);
                CHECK_I64(asi_recording_stop(asi_catalog_positions(catalog, 1)), record.start_position);
                stopped_count++;
            }
            asi_catalog_close(catalog);
        }
    }
    CHECK_I64(stopped_count, 2); /* the last sync, once on a disk that goes on and once on one that does not */
}

/* Who writes the folder is durable when an archive runs, at every sync level; else a power cut would bring an older one back. */
static void the_writer_is_synced(void)
{
    for (int32_t sync_level = 1; sync_level <= 2; sync_level++)
    {
        const char *scratch = scratch_folder();
        failing_files files;
        failing_files_init(&files, 0, EIO, true);
        asi_catalog *catalog = catalog_open(&files.ops, scratch, 4096, sync_level, AS_CHECKSUM_NONE);
        CHECK(NULL != catalog);
        files.fail_at = files.calls + 2; /* behind the write */
        const asi_catalog_writer writer = { .is_known = true, .start = 7, .boot = 8 };
        CHECK_I64(asi_catalog_set_writer(catalog, &writer), AS_E_STORAGE);
        files.fail_at = 0;
        CHECK_I64(asi_catalog_set_writer(catalog, &writer), AS_OK);
        asi_catalog_close(catalog);
    }
}

static void fault_at_creation(void)
{
    asi_catalog *catalog = NULL;
    for (int64_t fail_at = 1; NULL == catalog; fail_at++)
    {
        CHECK(fail_at < 100);
        const char *scratch = scratch_folder();
        failing_files files;
        failing_files_init(&files, fail_at, EIO, true);
        catalog = catalog_open(&files.ops, scratch, 4096, 2, AS_CHECKSUM_NONE);
        CHECK(NULL != catalog || 0 == files.open_count);
        asi_catalog_close(catalog);
        asi_catalog *after = catalog_open(asi_file_ops_posix(), scratch, 4096, 2, AS_CHECKSUM_NONE);
        CHECK(NULL != after);
        CHECK_I64(asi_catalog_next_recording_id(after), 0);
        asi_catalog_close(after);
    }
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
    RUN(faults);
    RUN(an_extension_that_fails_leaves_the_recording_stopped);
    RUN(an_add_that_fails_leaves_nothing_active);
    RUN(the_writer_is_synced);
    RUN(fault_at_creation);
    RUN(refused);
    RUN(damaged_records_are_kept);
    RUN(what_a_power_failure_left_of_records);
    RUN(an_old_length_hides_nothing);
    return 0;
}
