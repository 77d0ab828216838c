/* Goal: the catalog survives a fault at each of its writes. Method: each mutation is run with a fault at call 1, 2, ... until it
 * passes, and the file is opened again each time. Spec: 06 §5. */
#include "catalog_support.h"
#include "failing_files.h"

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

static void fault_at_creation_of(bool stays_broken)
{
    asi_catalog *catalog = NULL;
    for (int64_t fail_at = 1; NULL == catalog; fail_at++)
    {
        CHECK(fail_at < 100);
        const char *scratch = scratch_folder();
        char begun[AS_PATH_MAX];
        snprintf(begun, sizeof(begun), "%s/" ASI_CATALOG_FILE ".new", scratch);
        failing_files files;
        failing_files_init(&files, fail_at, EIO, stays_broken);
        catalog = catalog_open(&files.ops, scratch, 4096, 2, AS_CHECKSUM_NONE);
        CHECK(NULL != catalog || 0 == files.open_count);
        CHECK(stays_broken || !asi_file_exists(begun));
        asi_catalog_close(catalog);
        asi_catalog *after = catalog_open(asi_file_ops_posix(), scratch, 4096, 2, AS_CHECKSUM_NONE);
        CHECK(NULL != after);
        CHECK_I64(asi_catalog_next_recording_id(after), 0);
        asi_catalog_close(after);
    }
}

static void fault_at_creation(void)
{
    fault_at_creation_of(false);
    fault_at_creation_of(true);
}

int main(void)
{
    RUN(faults);
    RUN(an_extension_that_fails_leaves_the_recording_stopped);
    RUN(an_add_that_fails_leaves_nothing_active);
    RUN(the_writer_is_synced);
    RUN(fault_at_creation);
    return 0;
}
