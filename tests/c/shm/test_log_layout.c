/* Goal: log files are laid out as the stock drivers', position arithmetic holds at its edges, foreign files are refused, and
 * rotation and cleaning do what Spec: 02 §4-5, §8 says. Method: tables; golden log buffers; files with single fields spoilt.
 * Spec: 02 §1. */
#include "shm/log_layout.h"

#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

#define TERM 65536
#define PAGE 4096

static void computes_positions(void)
{
    CHECK_I64(asi_log_file_length(TERM, 4096), 3 * TERM + 4096);
    CHECK_I64(asi_log_file_length(TERM, 1 << 21), 1 << 21);
    CHECK_I64(asi_log_file_length(1 << 30, 4096), 3221229568LL);
    static const struct { int32_t initial; int32_t term_id; int64_t offset; int64_t position; } ROWS[] = {
        { 7, 7, 0, 0 },
        { 7, 8, 32, TERM + 32 },
        { INT32_MAX, INT32_MIN, 64, TERM + 64 },
        { -5, 3, TERM, 9LL * TERM },
        { 0, INT32_MAX, TERM, (int64_t)TERM << 31 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        CHECK_I64(asi_log_position(ROWS[i].term_id, ROWS[i].offset, 16, ROWS[i].initial), ROWS[i].position);
        if (ROWS[i].offset < TERM)
        {
            CHECK_I64(asi_log_term_id_of_position(ROWS[i].position, 16, ROWS[i].initial), ROWS[i].term_id);
        }
    }
    /* The id after the last term's is the largest position; the one before the first is none. */
    const int64_t max = asi_log_max_position(TERM);
    CHECK_I64(asi_log_position(asi_wrap_add(7, INT32_MIN), 0, 16, 7), max);
    CHECK(asi_log_position(6, 0, 16, 7) > max);
    CHECK_I64(asi_log_position(-1, TERM - 32, 30, 0), (1LL << 62) - (1 << 30) + TERM - 32);
    CHECK_I64(asi_log_nameable_position(max - 64, TERM), max - 64);
    CHECK_I64(asi_log_nameable_position(max - 32, TERM), max - 32);
    CHECK_I64(asi_log_nameable_position(max, TERM), max - 32);
    CHECK_I64(asi_log_term_id(asi_log_raw_tail(-9, 96)), -9);
    CHECK_I64(asi_log_term_offset(asi_log_raw_tail(-9, 96), TERM), 96);
    CHECK_I64(asi_log_term_offset(asi_log_raw_tail(-9, 65760), TERM), TERM);
    CHECK_I64(asi_log_term_offset(-1, TERM), TERM);
    CHECK_I64(asi_log_index(5), 2);
    for (int64_t position = INT64_MIN; position < INT64_MIN + 4 * TERM; position += TERM)
    {
        const int32_t index = asi_log_index_of_position(position, 16);
        CHECK(index >= 0 && index < ASI_LOG_PARTITION_COUNT);
    }
    CHECK_I64(asi_log_max_message_length(TERM), 8192);
    CHECK_I64(asi_log_max_message_length(1 << 30), 16 * 1024 * 1024);
    CHECK_I64(asi_log_fragmented_length(1376, 1376), 1408);
    CHECK_I64(asi_log_fragmented_length(1377, 1376), 1408 + 64);
    CHECK_I64(asi_log_fragmented_length(2752, 1376), 2816);
}

static void creates_and_opens(void)
{
    const char *path = scratch_file("log");
    asi_log log;
    CHECK_I64(asi_log_create(&log, path, 100000, 4096), AS_E_USAGE);
    CHECK_I64(asi_log_create(&log, path, 32768, 4096), AS_E_USAGE);
    CHECK_I64(asi_log_create(&log, path, TERM, 4095), AS_E_USAGE);
    CHECK_I64(asi_log_create(&log, path, TERM, 8192), AS_OK);
    CHECK_I64(log.map.length, 3 * TERM + 8192);
    asi_log_init_tails(&log, -3, -1, 96);
    log.metadata->mtu_length = 1408;
    asi_log opened;
    CHECK_I64(asi_log_open_untrusted(&opened, path, true), AS_OK);
    CHECK_I64(opened.term_length, TERM);
    CHECK_I64(opened.initial_term_id, -3);
    CHECK_I64(opened.position_bits, 16);
    CHECK_I64(opened.mtu_length, 1408);
    CHECK_I64(asi_log_producer_position(&opened), 2 * TERM + 96);
    CHECK_I64(opened.terms[2] - opened.terms[0], 2 * TERM);
    CHECK_I64((uint8_t *)opened.metadata - opened.terms[0], 3 * TERM + 4096);
    asi_log_close(&opened);
    asi_log_close(&log);
    asi_log_close(&log);
    CHECK_I64(unlink(path), 0);
    CHECK_I64(asi_log_open_untrusted(&log, path, false), AS_E_STORAGE);
}

static void initialises_tails(void)
{
    asi_log_metadata metadata = { 0 };
    asi_log log = { .metadata = &metadata, .term_length = TERM, .position_bits = 16 };
    static const struct { int32_t initial; int32_t term_id; int32_t offset; int32_t active; } ROWS[] = {
        { 7, 7, 0, 0 }, { 7, 8, 64, 1 }, { 7, 12, 0, 2 }, { INT32_MAX, INT32_MIN, 32, 1 }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_log_init_tails(&log, ROWS[i].initial, ROWS[i].term_id, ROWS[i].offset);
        const int32_t active = ROWS[i].active;
        CHECK_I64(metadata.active_term_count, asi_wrap_sub(ROWS[i].term_id, ROWS[i].initial));
        CHECK_I64(metadata.tail_counters[active], asi_log_raw_tail(ROWS[i].term_id, ROWS[i].offset));
        CHECK_I64(metadata.tail_counters[(active + 1) % 3], asi_log_raw_tail(asi_wrap_sub(ROWS[i].term_id, 2), 0));
        CHECK_I64(metadata.tail_counters[(active + 2) % 3], asi_log_raw_tail(asi_wrap_sub(ROWS[i].term_id, 1), 0));
    }
}

/* A stock log opens, and what we would have initialised equals what the stock driver did. */
static void agrees_with_stock_logs(void)
{
    static const struct { const char *name; int32_t stream_id; int64_t correlation_id; int32_t transports; } ROWS[] = {
        { "shm/c-driver-udp-publication.sparse", 1002, 5, 0 }, { "shm/c-driver-ipc-publication.sparse", 1001, 6, 0 }
    };
    char path[SCRATCH_CAPACITY + 16];
    const char *dir = scratch_folder();
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        snprintf(path, sizeof(path), "%s/%zu", dir, i);
        golden_unpack(ROWS[i].name, path);
        asi_log log;
        CHECK_I64(asi_log_open_untrusted(&log, path, false), AS_OK);
        const asi_log_metadata *metadata = log.metadata;
        CHECK_I64(log.term_length, TERM);
        CHECK_I64(log.mtu_length, 1408);
        CHECK_I64(asi_log_producer_position(&log), 167200);
        CHECK_I64(metadata->active_term_count, 2);
        CHECK_I64(metadata->end_of_stream_position, INT64_MAX);
        CHECK_I64(metadata->correlation_id, ROWS[i].correlation_id);
        CHECK_I64(metadata->is_connected, 1);
        CHECK_I64(metadata->page_size, 4096);
        CHECK_I64(metadata->publication_window_length, TERM / 2);
        CHECK_I64(metadata->entity_tag, -1);
        CHECK_I64(metadata->response_correlation_id, -1);
        CHECK_I64(metadata->linger_timeout_ns, 5000000000LL);
        CHECK_I64(metadata->untethered_window_limit_timeout_ns, 5000000000LL);
        CHECK_I64(metadata->untethered_resting_timeout_ns, 10000000000LL);
        CHECK_I64(metadata->untethered_linger_timeout_ns, 5000000000LL);
        CHECK_I64(metadata->sparse, 1);
        CHECK_I64(metadata->signal_eos, 1);
        CHECK_I64(metadata->is_publication_revoked, 0);
        CHECK_I64(metadata->type, ASI_LOG_EXCLUSIVE_PUBLICATION);

        const asi_frame_header *stock = (const asi_frame_header *)(const void *)metadata->default_header;
        asi_log_metadata ours = { 0 };
        asi_log mine = { .metadata = &ours, .term_length = TERM, .position_bits = 16 };
        asi_log_init_default_header(&mine, stock->session_id, ROWS[i].stream_id, log.initial_term_id);
        CHECK(0 == memcmp(ours.default_header, metadata->default_header, sizeof(ours.default_header)));
        CHECK_I64(metadata->default_header_length, ours.default_header_length);
        asi_log_close(&log);
    }
}

static void refuses_foreign_files(void)
{
    static const struct { int64_t field; int32_t value; const char *text; } ROWS[] = {
        { offsetof(asi_log_metadata, term_length), 0, "term length 0" },
        { offsetof(asi_log_metadata, term_length), -65536, "term length -65536" },
        { offsetof(asi_log_metadata, term_length), 65537, "term length 65537" },
        { offsetof(asi_log_metadata, term_length), 131072, "file has 200704 bytes" },
        { offsetof(asi_log_metadata, term_length), 1 << 30, "file has 200704 bytes" },
        { offsetof(asi_log_metadata, page_size), 0, "page size 0" },
        { offsetof(asi_log_metadata, page_size), 1 << 21, "file has 200704 bytes" },
        { offsetof(asi_log_metadata, mtu_length), 0, "mtu 0" },
        { offsetof(asi_log_metadata, mtu_length), 32, "mtu 32" },
        { offsetof(asi_log_metadata, mtu_length), 1400, "mtu 1400" },
        { offsetof(asi_log_metadata, mtu_length), 65536, "mtu 65536" },
    };
    const char *path = scratch_file("log");
    asi_log log;
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        golden_unpack("shm/c-driver-udp-publication.sparse", path);
        asi_map map;
        CHECK_I64(asi_map_open(&map, path, 1, true), AS_OK);
        asi_put_i32(map.base + map.length - ASI_LOG_METADATA_LENGTH + ROWS[i].field, ROWS[i].value);
        asi_map_close(&map);
        CHECK_I64(asi_log_open_untrusted(&log, path, false), AS_E_DATA);
        CHECK(NULL != strstr(as_error_text(), ROWS[i].text));
        CHECK(NULL != strstr(as_error_text(), path));
    }
    static const int32_t MTUS[] = { 64, 65504 }; /* from the least to the most */
    for (size_t i = 0; i < sizeof(MTUS) / sizeof(MTUS[0]); i++)
    {
        golden_unpack("shm/c-driver-udp-publication.sparse", path);
        asi_map map;
        CHECK_I64(asi_map_open(&map, path, 1, true), AS_OK);
        asi_put_i32(map.base + map.length - ASI_LOG_METADATA_LENGTH + (int64_t)offsetof(asi_log_metadata, mtu_length), MTUS[i]);
        asi_map_close(&map);
        CHECK_I64(asi_log_open_untrusted(&log, path, false), AS_OK);
        CHECK_I64(log.mtu_length, MTUS[i]);
        asi_log_close(&log);
    }
    static const int64_t LENGTHS[] = { 0, 4096, 200703, 200705, 204800 };
    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
    {
        golden_unpack("shm/c-driver-udp-publication.sparse", path);
        CHECK_I64(truncate(path, LENGTHS[i]), 0);
        const as_result result = asi_log_open_untrusted(&log, path, false);
        CHECK(AS_E_DATA == result || AS_E_STORAGE == result);
    }
}

static void rotates_once_however_often_it_is_told(void)
{
    asi_log_metadata metadata = { 0 };
    asi_log log = { .metadata = &metadata, .term_length = TERM, .position_bits = 16 };
    const int32_t initial = INT32_MAX - 3;
    asi_log_init_tails(&log, initial, initial, 0);
    for (int32_t count = 0; count < 10; count++)
    {
        const int32_t term_id = asi_wrap_add(initial, count);
        for (int again = 0; again < 3; again++)
        {
            asi_log_rotate(&log, count, term_id);
            CHECK_I64(metadata.active_term_count, count + 1);
            CHECK_I64(metadata.tail_counters[(count + 1) % 3], asi_log_raw_tail(asi_wrap_add(term_id, 1), 0));
        }
    }
    asi_log_rotate(&log, 3, asi_wrap_add(initial, 3)); /* a very late one changes nothing */
    CHECK_I64(metadata.active_term_count, 10);
    CHECK_I64(asi_log_term_id(metadata.tail_counters[1]), asi_wrap_add(initial, 10));
}

/* The longest logs that are cleaned through the caches, and those cleaned past them. */
static void cleans_logs_of_any_length(void)
{
    static const uint8_t ZEROS[4096];
    const char *path = scratch_file("log");
    for (int32_t term = 8 * 1024 * 1024; term <= 16 * 1024 * 1024; term *= 2)
    {
        asi_log log;
        CHECK_I64(asi_log_create(&log, path, term, 4096), AS_OK);
        asi_log_page_ahead(&log, 0);
        uint8_t *begin = log.map.base + term - 4096;
        memset(begin, 0xff, 3 * 4096);
        CHECK_I64(asi_log_clean(&log, term - 4096 + 32, term + 4096), term);
        CHECK_I64(asi_log_clean(&log, term, term + 4096 + 96), term + 4096 + 96);
        CHECK(0xff == begin[31] && 0xff == begin[2 * 4096 + 96]);
        CHECK(0 == memcmp(begin + 32, ZEROS, 4096) && 0 == memcmp(begin + 32 + 4096, ZEROS, 4096));
        CHECK(0 == memcmp(begin + 2 * 4096, ZEROS, 96));
        asi_log_close(&log);
        CHECK_I64(unlink(path), 0);
    }
}

static void cleans_to_the_target_and_no_further(void)
{
    const char *path = scratch_file("log");
    asi_log log;
    CHECK_I64(asi_log_create(&log, path, TERM, 4096), AS_OK);
    memset(log.map.base, 0xff, 3 * TERM);
    static const struct { int64_t from; int64_t target; int64_t reached; } ROWS[] = {
        { 0, 0, 0 }, { 0, 96, 96 }, { 96, 64, 96 }, { 96, 100, 96 }, { 96, INT64_MIN, 96 }, { 96, TERM + 64, TERM },
        { TERM, TERM + 64, TERM + 64 }, { TERM + 64, 10LL * TERM, 2 * TERM }, { 2 * TERM, INT64_MAX, 3 * TERM }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        CHECK_I64(asi_log_clean(&log, ROWS[i].from, ROWS[i].target), ROWS[i].reached);
        const int64_t cleaned = ROWS[i].reached;
        CHECK(0 == cleaned || 0 == log.map.base[cleaned - 1]);
        CHECK(cleaned == 3 * TERM || 0xff == log.map.base[cleaned]);
    }
    CHECK_I64(log.metadata->term_length, TERM);
    asi_log_close(&log);
}

static int64_t pages_there(const asi_log *log, int64_t from, int64_t to)
{
    unsigned char there[1];
    int64_t count = 0;
    for (int64_t at = from; at < to; at += PAGE)
    {
        CHECK_I64(mincore(log->map.base + at, PAGE, there), 0);
        count += there[0] & 1;
    }
    return count;
}

static void makes_pages_ahead_of_a_stream_in_its_first_lap(void)
{
    if (PAGE != sysconf(_SC_PAGESIZE))
    {
        return; /* the rows below count pages of 4 KiB */
    }
    const char *path = scratch_file("log");
    asi_log log;
    CHECK_I64(asi_log_create(&log, path, TERM, 4096), AS_OK);
    /* As many as were used: a stream of a few messages gets none. One in each call, so that no message waits for more. */
    static const struct { int64_t position; int calls; int64_t from; int64_t to; } ROWS[] = {
        { 0, 2, 0, 0 }, { 4000, 2, 0, 0 }, { 4096, 2, 4096, 8192 }, { 8192, 1, 8192, 12288 }, { 8224, 1, 8192, 16384 },
        { 8256, 9, 8192, 20480 }, { 32768, 1, 32768, 36864 }, { 32800, 2, 32768, 45056 }, { 32800, 5, 32768, TERM },
        { TERM - 32, 1, TERM, TERM + PAGE }, { TERM - 32, 99, TERM, TERM + 61440 }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        for (int call = 0; call < ROWS[i].calls; call++)
        {
            asi_log_page_ahead(&log, ROWS[i].position);
        }
        CHECK_I64(pages_there(&log, ROWS[i].from, ROWS[i].to), (ROWS[i].to - ROWS[i].from) / PAGE);
        CHECK_I64(pages_there(&log, ROWS[i].to, 3 * TERM), 0);
    }
    for (int64_t position = TERM; position <= 3 * TERM; position += 96)
    {
        asi_log_page_ahead(&log, position);
    }
    CHECK_I64(pages_there(&log, 32768, 3 * TERM), (3 * TERM - 32768) / PAGE);
    CHECK_I64(log.page_next_at, INT64_MAX);
    asi_log_close(&log);
    CHECK_I64(unlink(path), 0);
    CHECK_I64(asi_log_create(&log, path, TERM, 4096), AS_OK);
    int64_t populated = 0;
    CHECK(asi_log_populate(&log, &populated, 8191));
    CHECK_I64(populated, 8192);
    CHECK_I64(pages_there(&log, 0, 3 * TERM), 8192 / PAGE);
    CHECK_I64(log.page_next_at, 0);
    CHECK(asi_log_populate(&log, &populated, INT32_MAX));
    CHECK_I64(populated, log.map.length);
    CHECK_I64(pages_there(&log, 0, 3 * TERM), 3 * TERM / PAGE);
    CHECK_I64(log.page_next_at, INT64_MAX);
    asi_log_close(&log);
}

/* A publisher keeps less ahead than the driver and takes more in a call: the driver has made the pages by then. */
static void maps_pages_ahead_of_a_publisher_a_few_at_a_time(void)
{
    if (PAGE != sysconf(_SC_PAGESIZE))
    {
        return; /* what follows counts pages of 4 KiB */
    }
    const char *path = scratch_file("log");
    asi_log made;
    asi_log log;
    CHECK_I64(asi_log_create(&made, path, 2 * TERM, 4096), AS_OK);
    made.metadata->mtu_length = 1408;
    CHECK_I64(asi_log_open_untrusted(&log, path, false), AS_OK);
    int64_t most = 0;
    int64_t calls = 0;
    int64_t before = 0;
    for (int64_t position = 0; position <= TERM; position += 32)
    {
        asi_log_page_ahead(&log, position);
        const int64_t there = pages_there(&log, 0, 6 * TERM);
        most = there - before > most ? there - before : most;
        calls += there > before && position >= TERM / 2;
        before = there;
    }
    CHECK_I64(most, 2);
    CHECK_I64(calls, 8 / 2);
    CHECK(pages_there(&log, TERM, 6 * TERM) >= 6 && pages_there(&log, TERM, 6 * TERM) <= 8);
    asi_log_close(&log);
    asi_log_close(&made);
}

static void makes_the_pages_of_a_block_and_leaves_those_of_a_fast_stream(void)
{
    if (PAGE != sysconf(_SC_PAGESIZE))
    {
        return; /* the rows below count pages of 4 KiB */
    }
    const int32_t term = 4 * TERM;
    const char *path = scratch_file("log");
    asi_log log;
    CHECK_I64(asi_log_create(&log, path, term, 4096), AS_OK);
    asi_log_page_block(&log, 96, 4096 + 32);
    CHECK_I64(pages_there(&log, 0, 3 * term), 2);
    asi_log_page_block(&log, 4096 + 32, 8192);
    CHECK_I64(pages_there(&log, 0, 3 * term), 2);
    asi_log_page_block(&log, 8192, term);
    CHECK_I64(pages_there(&log, 0, term), term / PAGE);
    CHECK_I64(pages_there(&log, term, 3 * term), 0);
    asi_log_page_ahead(&log, term + 2 * TERM); /* another wrote so much */
    CHECK_I64(pages_there(&log, term, 3 * term), 0);
    asi_log_page_ahead(&log, term + 2 * TERM + 2 * PAGE); /* and now is slow */
    CHECK_I64(pages_there(&log, term, term + 2 * TERM + 2 * PAGE), 0);
    CHECK_I64(pages_there(&log, term + 2 * TERM + 2 * PAGE, 2 * term), 1);
    asi_log_page_block(&log, 3 * (int64_t)term - PAGE, 3 * (int64_t)term);
    CHECK_I64(pages_there(&log, 2 * term, 3 * term), 1);
    CHECK_I64(log.page_next_at, INT64_MAX);
    asi_log_close(&log);
}

/* A client that asks for it has all pages before the first message. */
static void pages_touched_on_opening(void)
{
    const char *path = scratch_file("log");
    asi_log made;
    asi_log opened;
    CHECK_I64(asi_log_create(&made, path, TERM, 4096), AS_OK);
    made.metadata->mtu_length = 1408;
    CHECK_I64(asi_log_open_untrusted(&opened, path, false), AS_OK);
    CHECK_I64(pages_there(&made, 0, 3 * TERM), 0);
    asi_log_close(&opened);
    CHECK_I64(asi_log_open_untrusted(&opened, path, true), AS_OK);
    CHECK_I64(pages_there(&made, 0, 3 * TERM), 3 * TERM / PAGE);
    CHECK_I64(opened.page_next_at, INT64_MAX);
    asi_log_close(&opened);
    asi_log_close(&made);
}

/* A file that is cut short simulates a full file system: both end a process that touches the page by SIGBUS. */
static void a_page_that_gets_no_storage_is_told(void)
{
    const char *path = scratch_file("log");
    asi_log log;
    CHECK_I64(asi_log_create(&log, path, TERM, 4096), AS_OK);
    CHECK(asi_log_is_backed(&log, log.terms[0]));
    CHECK_I64(asi_log_track_backing(&log), AS_OK);
    CHECK(!asi_log_is_backed(&log, log.terms[0]));
    CHECK(asi_log_back(&log, 0, 32));
    CHECK(asi_log_is_backed(&log, log.terms[0]));
    CHECK(asi_log_back(&log, TERM - 32, 64)); /* the end of a term and where the next begins */
    CHECK(asi_log_is_backed(&log, log.terms[0] + TERM - 32) && asi_log_is_backed(&log, log.terms[1]));
    CHECK_I64(truncate(path, 2 * TERM), 0);
    CHECK(asi_log_back(&log, 2 * TERM - 32, 32));
    CHECK(!asi_log_back(&log, 2 * TERM, 32));
    CHECK(!asi_log_back(&log, 2 * TERM - 32, 64));
    CHECK(!asi_log_is_backed(&log, log.terms[2]));
    CHECK(!asi_log_back(&log, 2 * TERM + 8 * PAGE, 32)); /* a refused jump leaves no page before it as if it were there */
    CHECK(!asi_log_back(&log, 2 * TERM + 4 * PAGE, 32));
    /* Nothing was written there, so cleaning it is done without a touch. */
    (void)asi_log_page_ahead(&log, 0);
    CHECK_I64(asi_log_clean(&log, 2 * TERM, 2 * TERM + 4096), 2 * TERM + 4096);
    /* A page without storage at the end of a range leaves nothing in those before it. */
    uint8_t *written = log.terms[1] + TERM - 4096 - 64;
    asi_put_i64(written, 4711);
    CHECK_I64(truncate(path, 2 * TERM - 4096), 0);
    int64_t cleaned = TERM + TERM / 2;
    while (cleaned < 2 * TERM)
    {
        cleaned = asi_log_clean(&log, cleaned, 2 * TERM);
    }
    CHECK_I64(asi_get_i64(written), 0);
    asi_log_close(&log);
}

/* Each term ends in padding that covers a page without storage: such a log is never complete, and must not be slow for ever. */
static void a_log_with_holes_is_looked_through_rarely(void)
{
    const char *path = scratch_file("log");
    asi_log log;
    CHECK_I64(asi_log_create(&log, path, TERM, 4096), AS_OK);
    CHECK_I64(asi_log_track_backing(&log), AS_OK);
    int32_t looks[3] = { 0 };
    for (int32_t pass = 0; pass < 3; pass++)
    {
        for (int64_t position = 3LL * TERM * pass; position < 3LL * TERM * (pass + 1); position += 32)
        {
            if (position % TERM < TERM / 2)
            {
                looks[pass] += position < log.backed_from || position + 32 > log.backed_to;
                CHECK(asi_log_back(&log, position, 32));
            }
        }
    }
    CHECK_I64(looks[0], 3 * 5);                 /* in each term runs of 1, 1, 1, 2 and 4 pages */
    CHECK_I64(looks[1], 3);                     /* once for each term, as each ends in a hole */
    CHECK_I64(looks[2], 3);
    CHECK(!asi_log_is_backed(&log, log.terms[0] + TERM - PAGE));
    asi_log_close(&log);
}

/* Pages that the conductor makes ahead of an image cost its receiver no call of the system. */
static void pages_made_ahead_have_storage(void)
{
    const char *path = scratch_file("log");
    asi_log log;
    CHECK_I64(asi_log_create(&log, path, TERM, 4096), AS_OK);
    CHECK_I64(asi_log_track_backing(&log), AS_OK);
    int64_t made = 0;
    for (int64_t position = 0; position < 2LL * TERM; position += 32)
    {
        made += asi_log_page_ahead(&log, position) ? 1 : 0;
        const int64_t behind = position & ~(int64_t)(PAGE - 1);
        CHECK_I64(asi_log_is_backed(&log, log.terms[0] + behind), behind >= PAGE); /* the first page is the writer's */
    }
    CHECK(made > 0);
    int64_t populated = 0;
    CHECK(asi_log_populate(&log, &populated, log.map.length));
    for (int64_t at = 0; at < 3LL * TERM; at += PAGE)
    {
        CHECK(asi_log_is_backed(&log, log.terms[0] + at));
    }
    asi_log_close(&log);
}

int main(void)
{
    RUN(computes_positions);
    RUN(creates_and_opens);
    RUN(initialises_tails);
    RUN(agrees_with_stock_logs);
    RUN(refuses_foreign_files);
    RUN(rotates_once_however_often_it_is_told);
    RUN(cleans_to_the_target_and_no_further);
    RUN(cleans_logs_of_any_length);
    RUN(pages_touched_on_opening);
    RUN(a_page_that_gets_no_storage_is_told);
    RUN(a_log_with_holes_is_looked_through_rarely);
    RUN(pages_made_ahead_have_storage);
    RUN(makes_pages_ahead_of_a_stream_in_its_first_lap);
    RUN(maps_pages_ahead_of_a_publisher_a_few_at_a_time);
    RUN(makes_the_pages_of_a_block_and_leaves_those_of_a_fast_stream);
    return 0;
}
