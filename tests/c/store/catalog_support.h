/* Shared by the tests of the catalog: opening one, a recording to add, and a check of each record's checksum. */
#ifndef AS_TESTS_STORE_CATALOG_SUPPORT_H
#define AS_TESTS_STORE_CATALOG_SUPPORT_H

#include "archive_support.h"
#include "store/catalog.h"
#include "store/catalog_swap.h"

static inline asi_catalog *catalog_open(
    const asi_file_ops *files, const char *dir, int64_t capacity, int32_t sync_level, as_record_checksum checksum)
{
    const asi_catalog_params params = { .files = files, .archive_dir = dir, .capacity = capacity, .sync_level = sync_level,
        .checksum = checksum };
    asi_catalog *catalog = NULL;
    return AS_OK == asi_catalog_open(&params, &catalog) ? catalog : NULL;
}

static inline asi_recording_params sample_params(const char *channel)
{
    return (asi_recording_params){ .start_timestamp_ms = 1000, .stop_timestamp_ms = AS_NULL_VALUE, .start_position = 64,
        .stop_position = AS_NULL_VALUE, .initial_term_id = 5, .segment_file_length = 131072, .term_buffer_length = 65536,
        .mtu_length = 1408, .session_id = 9, .stream_id = 10, .stripped_channel = asi_text_of(channel),
        .original_channel = asi_text_of(channel), .source_identity = asi_text_of("aeron:ipc") };
}

static inline void check_checksums(const char *dir)
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

static inline bool stays(void *context, int64_t recording_id)
{
    return NULL != context && *(const int64_t *)context == recording_id;
}

#endif
