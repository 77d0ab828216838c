/* Goal: recovery finds the end of a recording: behind the last whole frame, and written to disk in an order that keeps it so.
 * Method: segments made frame by frame by hand, and files that record each call; all of it in milliseconds. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive_support.h"
#include "store/catalog_format.h"
#include "store/catalog_scan.h"
#include "store/recover.h"
#include "store/segment_layout.h"
#include "store/segment_read.h"
#include "store/segment_write.h"
#include "wire/frame.h"

#define TERM_LENGTH 65536
#define SEGMENT_LENGTH 131072
#define PAGE 4096
#define STREAM_ID 1001
#define SESSION_ID 4242
#define INITIAL_TERM_ID 7

static char scratch[SCRATCH_CAPACITY];
static uint8_t segment[SEGMENT_LENGTH];

/* A frame with a payload without zeros at an offset of the first segment; returns where the next one begins. */
static int64_t put_frame(int64_t at, int64_t length, bool is_padding)
{
    asi_frame_header *frame = (asi_frame_header *)(void *)(segment + at);
    memset(segment + at, 0x5a, is_padding ? AS_FRAME_HEADER_LENGTH : (size_t)length);
    *frame = (asi_frame_header){ .frame_length = (int32_t)length, .flags = ASI_FLAG_UNFRAGMENTED,
        .type = is_padding ? ASI_FRAME_PAD : ASI_FRAME_DATA, .term_offset = (int32_t)(at % TERM_LENGTH), .session_id = SESSION_ID,
        .stream_id = STREAM_ID, .term_id = INITIAL_TERM_ID + (int32_t)(at / TERM_LENGTH) };
    return at + asi_frame_occupancy((int32_t)length);
}

static char *path_of(int64_t base)
{
    static char path[AS_PATH_MAX];
    CHECK_I64(asi_segment_path(path, sizeof(path), scratch, 0, base), AS_OK);
    return path;
}

static void store_segment(int64_t base)
{
    char name[64];
    snprintf(name, sizeof(name), "0-%" PRId64 ".rec", base);
    file_store(scratch, name, segment, SEGMENT_LENGTH);
}

static asi_catalog *open_catalog(void)
{
    const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = scratch, .capacity = 4096 };
    asi_catalog *catalog = NULL;
    CHECK_I64(asi_catalog_open(&params, &catalog), AS_OK);
    return catalog;
}

/* A fresh folder with one active recording. */
static asi_catalog_record begin(void)
{
    scratch_create(scratch);
    memset(segment, 0, sizeof(segment));
    const asi_recording_params params = { .start_timestamp_ms = 1, .stop_timestamp_ms = -1, .stop_position = AS_NULL_VALUE,
        .initial_term_id = INITIAL_TERM_ID, .segment_file_length = SEGMENT_LENGTH, .term_buffer_length = TERM_LENGTH,
        .mtu_length = 1408, .session_id = SESSION_ID, .stream_id = STREAM_ID, .stripped_channel = asi_text_of("aeron:ipc"),
        .original_channel = asi_text_of("aeron:ipc"), .source_identity = asi_text_of("aeron:ipc") };
    asi_catalog *catalog = open_catalog();
    asi_catalog_record record;
    int64_t id;
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    CHECK(asi_catalog_find(catalog, id, &record));
    asi_catalog_close(catalog);
    return record;
}

static void check_end(const asi_catalog_record *record, as_record_checksum checksum, int64_t stop, int64_t last, bool is_proven)
{
    asi_recovered_end end;
    CHECK_I64(asi_recover_end(asi_file_ops_posix(), scratch, record, checksum, &end), AS_OK);
    CHECK_I64(end.is_proven, is_proven);
    CHECK_I64(end.stop_position, stop);
    CHECK_I64(end.last_fragment_position, last);
}

/* -- recovery ---------------------------------------------------------------------------------------------------------------- */

/* A frame that touches five pages, of which any but the first can be lost: it is found whole only with all of them. */
static void each_page_of_the_last_frame_counts(void)
{
    const asi_catalog_record record = begin();
    const int64_t last = put_frame(0, 96, false);
    const int64_t end = put_frame(last, 4 * PAGE, false);
    store_segment(0);
    check_end(&record, AS_CHECKSUM_NONE, end, last, true);
    for (int64_t page = PAGE; page < end; page += PAGE)
    {
        put_frame(last, 4 * PAGE, false);
        memset(segment + page, 0, (size_t)(page + PAGE < end ? PAGE : end - page));
        store_segment(0);
        check_end(&record, AS_CHECKSUM_NONE, end, last, false);
    }
    asi_catalog *catalog = open_catalog();
    asi_catalog_record found;
    asi_recover_options options = { .checksum = AS_CHECKSUM_NONE, .now_ms = 5 };
    CHECK_I64(asi_recover_catalog(catalog, asi_file_ops_posix(), scratch, &options, NULL), AS_E_DATA);
    options.cuts_unproven = true;
    CHECK_I64(asi_recover_catalog(catalog, asi_file_ops_posix(), scratch, &options, NULL), AS_OK);
    CHECK(asi_catalog_find(catalog, 0, &found));
    CHECK_I64(found.stop_position, last);
    asi_catalog_close(catalog);
    int64_t length;
    uint8_t *cut = file_load(scratch, "0-0.rec", &length);
    CHECK_I64(length, SEGMENT_LENGTH);
    CHECK(0 == memcmp(cut, segment, (size_t)last));
    for (int64_t i = last; i < length; i++)
    {
        CHECK_I64(cut[i], 0);
    }
    free(cut);
    scratch_delete(scratch);
}

/* A payload of zeros looks like a lost one; its checksum proves that it is not. */
static void a_checksum_proves_a_frame(void)
{
    const asi_catalog_record record = begin();
    const int64_t end = put_frame(0, 3 * PAGE, false);
    memset(segment + AS_FRAME_HEADER_LENGTH, 0, (size_t)(end - AS_FRAME_HEADER_LENGTH));
    store_segment(0);
    check_end(&record, AS_CHECKSUM_NONE, end, 0, false);
    check_end(&record, AS_CHECKSUM_CRC32, end, 0, false);
    asi_frame_header *frame = (asi_frame_header *)(void *)segment;
    frame->session_id = (int32_t)asi_crc32(segment + AS_FRAME_HEADER_LENGTH, end - AS_FRAME_HEADER_LENGTH);
    store_segment(0);
    check_end(&record, AS_CHECKSUM_CRC32, end, 0, true);
    check_end(&record, AS_CHECKSUM_CRC32C, end, 0, false);
    scratch_delete(scratch);
}

static void the_highest_segment_has_the_end(void)
{
    const asi_catalog_record record = begin();
    int64_t at = put_frame(0, TERM_LENGTH, true);
    at = put_frame(at, 2 * PAGE, false);
    put_frame(at, 2 * TERM_LENGTH - at, true); /* whole by construction, although but its header is written */
    store_segment(0);
    check_end(&record, AS_CHECKSUM_NONE, SEGMENT_LENGTH, at, true);
    memset(segment, 0, sizeof(segment));
    for (int64_t first = put_frame(0, 64, false); first < 4 * 64;)
    {
        first = put_frame(first, 64, false);
    }
    for (int64_t frame = 0; frame < 4 * 64; frame += 64)
    {
        ((asi_frame_header *)(void *)(segment + frame))->term_id += SEGMENT_LENGTH / TERM_LENGTH;
    }
    store_segment(SEGMENT_LENGTH);
    check_end(&record, AS_CHECKSUM_NONE, SEGMENT_LENGTH + 4 * 64, SEGMENT_LENGTH + 3 * 64, true);
    scratch_delete(scratch);
}

static void behind_a_full_segment_is_an_empty_one(void)
{
    (void)begin();
    put_frame(put_frame(0, TERM_LENGTH, true), TERM_LENGTH, true);
    store_segment(0);
    asi_catalog *catalog = open_catalog();
    const asi_recover_options options = { .checksum = AS_CHECKSUM_NONE, .now_ms = 5 };
    CHECK_I64(asi_recover_catalog(catalog, asi_file_ops_posix(), scratch, &options, NULL), AS_OK);
    struct stat st;
    CHECK(0 == stat(path_of(SEGMENT_LENGTH), &st));
    CHECK_I64(st.st_size, SEGMENT_LENGTH);
    asi_catalog_close(catalog);
    scratch_delete(scratch);
}

/* Segments that are there without a record keep their ids from being given to another recording. */
static void an_id_with_segments_is_not_given_again(void)
{
    (void)begin();
    file_store(scratch, "5-0.rec", segment, 32);
    asi_catalog *catalog = open_catalog();
    bool is_clean;
    CHECK_I64(asi_recover_leftovers(catalog, asi_file_ops_posix(), scratch, &is_clean), AS_OK);
    CHECK_I64(asi_catalog_next_recording_id(catalog), 6);
    asi_catalog_close(catalog);
    scratch_delete(scratch);
}

/* -- writing ------------------------------------------------------------------------------------------------------------------ */

static char calls[1024]; /* of segment files and folders: w<offset>+<length>, s, d */
static int64_t fail_at;  /* this write is refused; 0: none */

static void note(const char *call)
{
    const size_t used = strlen(calls);
    snprintf(calls + used, sizeof(calls) - used, "%s%s", used > 0 ? " " : "", call);
}

static int64_t noted_pwrite(void *context, int fd, const void *from, int64_t length, int64_t offset)
{
    char call[64];
    snprintf(call, sizeof(call), "w%" PRId64 "+%" PRId64, offset, length);
    note(call);
    return 0 != fail_at && 0 == --fail_at ? -EIO : asi_file_ops_posix()->pwrite(context, fd, from, length, offset);
}

static int noted_sync(void *context, int fd)
{
    (void)context;
    (void)fd;
    note("s");
    return 0;
}

static int noted_sync_directory(void *context, const char *path)
{
    (void)context;
    (void)path;
    note("d");
    return 0;
}

static asi_file_ops noted_files(void)
{
    asi_file_ops files = *asi_file_ops_posix();
    files.pwrite = noted_pwrite;
    files.fsync = noted_sync;
    files.fdatasync = noted_sync;
    files.sync_directory = noted_sync_directory;
    calls[0] = '\0';
    fail_at = 0;
    return files;
}

static as_result open_writer(
    const asi_file_ops *files, int64_t join, int32_t sync_level, as_record_checksum checksum, asi_segment_writer **writer)
{
    const asi_segment_writer_params params = { .files = files, .archive_dir = scratch, .join_position = join,
        .initial_term_id = INITIAL_TERM_ID, .term_length = TERM_LENGTH, .segment_length = SEGMENT_LENGTH,
        .file_sync_level = sync_level, .checksum = checksum };
    return asi_segment_writer_open(&params, writer);
}

/* What a crash may tear becomes visible by its first four bytes, when all else is there (with a sync level: durable). */
static void a_block_becomes_visible_last(void)
{
    static const struct { int32_t sync_level; int64_t length; const char *calls; } ROWS[] = {
        { 0, 64, "w0+64" },
        { 0, 2 * PAGE, "w4+8188 w0+4" },
        { 1, 64, "w0+64 s" },
        { 1, 1024, "w4+1020 s w0+4 s" },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        (void)begin();
        const asi_file_ops files = noted_files();
        asi_segment_writer *writer = NULL;
        CHECK_I64(open_writer(&files, 0, ROWS[i].sync_level, AS_CHECKSUM_NONE, &writer), AS_OK);
        CHECK_TEXT(calls, 0 == ROWS[i].sync_level ? "" : "s d");
        calls[0] = '\0';
        put_frame(0, ROWS[i].length, false);
        CHECK_I64(asi_segment_writer_append(writer, segment, ROWS[i].length), AS_OK);
        CHECK_TEXT(calls, ROWS[i].calls);
        CHECK_I64(asi_segment_writer_position(writer), ROWS[i].length);
        asi_segment_writer_close(writer);
        scratch_delete(scratch);
    }
}

/* -- a log that is overwritten ------------------------------------------------------------------------------------------------- */

static int64_t lap_at; /* in the call of that number; 0: none */
static int64_t lapped_length;
static bool is_cleaned;

/* The publisher, or the driver's cleaning, has passed through the block from its begin on. */
static void lap(void)
{
    memset(segment, is_cleaned ? 0 : 0xAA, (size_t)lapped_length);
    if (!is_cleaned)
    {
        *(asi_frame_header *)(void *)segment = (asi_frame_header){ .frame_length = (int32_t)lapped_length,
            .flags = ASI_FLAG_UNFRAGMENTED, .type = ASI_FRAME_DATA, .session_id = SESSION_ID, .stream_id = STREAM_ID,
            .term_id = INITIAL_TERM_ID + 3 };
    }
}

static void lap_in_its_call(void)
{
    if (1 == lap_at--)
    {
        lap();
    }
}

static int64_t lapped_pwrite(void *context, int fd, const void *from, int64_t length, int64_t offset)
{
    lap_in_its_call();
    return asi_file_ops_posix()->pwrite(context, fd, from, length, offset);
}

static int lapped_sync(void *context, int fd)
{
    (void)context;
    (void)fd;
    lap_in_its_call();
    return 0;
}

/* An archive that is paused while it writes finds another lap's bytes in the log: it records the ones of its position, or none. */
static void bytes_of_another_lap_are_not_recorded(int32_t initial_term_id, as_record_checksum checksum, int32_t sync_level)
{
    static const int64_t LENGTHS[] = { 64, 3 * PAGE };
    for (int64_t round = 0; round < 2 * 2 * 5; round++)
    {
        const int64_t length = LENGTHS[round % 2];
        (void)begin();
        asi_file_ops files = *asi_file_ops_posix();
        files.pwrite = lapped_pwrite;
        files.fsync = files.fdatasync = lapped_sync;
        const asi_segment_writer_params params = { .files = &files, .archive_dir = scratch, .initial_term_id = initial_term_id,
            .term_length = TERM_LENGTH, .segment_length = SEGMENT_LENGTH, .file_sync_level = sync_level, .checksum = checksum };
        asi_segment_writer *writer = NULL;
        lap_at = 0;
        CHECK_I64(asi_segment_writer_open(&params, &writer), AS_OK);
        put_frame(0, length, false);
        ((asi_frame_header *)(void *)segment)->term_id = initial_term_id;
        uint8_t own[3 * PAGE];
        memcpy(own, segment, (size_t)length);
        is_cleaned = 0 != round / 2 % 2;
        lapped_length = length;
        lap_at = round / 4;
        0 == lap_at ? lap() : (void)0;
        const as_result result = asi_segment_writer_append(writer, segment, length);
        CHECK(AS_OK == result || AS_E_DATA == result);
        CHECK(0 != round / 4 || AS_E_DATA == result);
        CHECK_I64(asi_segment_writer_position(writer), AS_OK == result ? length : 0);
        CHECK(AS_OK == result || is_cleaned || NULL != strstr(as_error_text(), "was overwritten in the log"));
        asi_segment_writer_close(writer);
        int64_t file_length;
        uint8_t *stored = file_load(scratch, "0-0.rec", &file_length);
        const int64_t payload = AS_OK == result ? AS_FRAME_HEADER_LENGTH : length;
        CHECK(0 == memcmp(stored + payload, own + payload, (size_t)(length - payload)));
        CHECK_I64(((const asi_frame_header *)(const void *)stored)->frame_length, AS_OK == result ? length : 0);
        free(stored);
        scratch_delete(scratch);
    }
}

static void a_lapped_archive_records_its_own_bytes_or_none(void)
{
    static const as_record_checksum CHECKSUMS[] = { AS_CHECKSUM_NONE, AS_CHECKSUM_CRC32C };
    for (int32_t i = 0; i < 8; i++)
    {
        bytes_of_another_lap_are_not_recorded(0 == i / 4 ? INITIAL_TERM_ID : 0, CHECKSUMS[i % 2], i / 2 % 2);
    }
}

static void nothing_is_written_behind_a_failure(void)
{
    (void)begin();
    const asi_file_ops files = noted_files();
    asi_segment_writer *writer = NULL;
    CHECK_I64(open_writer(&files, 0, 0, AS_CHECKSUM_NONE, &writer), AS_OK);
    put_frame(0, 64, false);
    CHECK_I64(asi_segment_writer_append(writer, segment, 64), AS_OK);
    fail_at = 1;
    put_frame(64, 64, false);
    CHECK_I64(asi_segment_writer_append(writer, segment + 64, 64), AS_E_STORAGE);
    CHECK_I64(asi_segment_writer_append(writer, segment + 64, 64), AS_E_CLOSED);
    CHECK_I64(asi_segment_writer_position(writer), 64);
    asi_segment_writer_close(writer);
    scratch_delete(scratch);
}

static void checksums_are_of_the_payload(void)
{
    (void)begin();
    asi_segment_writer *writer = NULL;
    CHECK_I64(open_writer(asi_file_ops_posix(), 0, 0, AS_CHECKSUM_CRC32C, &writer), AS_OK);
    const int64_t padding = put_frame(0, 64, false);
    put_frame(padding, TERM_LENGTH - padding, true);
    CHECK_I64(asi_segment_writer_append(writer, segment, padding), AS_OK);
    CHECK_I64(asi_segment_writer_append(writer, segment + padding, TERM_LENGTH - padding), AS_OK);
    asi_segment_writer_close(writer);
    int64_t length;
    uint8_t *stored = file_load(scratch, "0-0.rec", &length);
    const asi_frame_header *frame = (const asi_frame_header *)(const void *)stored;
    CHECK_I64((uint32_t)frame->session_id, asi_crc32c(segment + AS_FRAME_HEADER_LENGTH, 64 - AS_FRAME_HEADER_LENGTH));
    frame = (const asi_frame_header *)(const void *)(stored + padding);
    CHECK_I64(frame->session_id, SESSION_ID);
    free(stored);
    scratch_delete(scratch);
}

/* The file behind a full one is made at once, and never over one that is there. */
static void a_full_segment_is_followed_at_once(void)
{
    for (int has_next = 0; has_next < 2; has_next++)
    {
        (void)begin();
        asi_segment_writer *writer = NULL;
        CHECK_I64(open_writer(asi_file_ops_posix(), 0, 0, AS_CHECKSUM_NONE, &writer), AS_OK);
        const int64_t second = put_frame(0, TERM_LENGTH, true);
        put_frame(second, TERM_LENGTH, true);
        CHECK_I64(asi_segment_writer_append(writer, segment, TERM_LENGTH), AS_OK);
        if (1 == has_next)
        {
            file_store(scratch, "0-131072.rec", "another's", 9);
        }
        const as_result result = asi_segment_writer_append(writer, segment + second, TERM_LENGTH);
        struct stat st;
        CHECK(0 == stat(path_of(SEGMENT_LENGTH), &st));
        CHECK_I64(result, 1 == has_next ? AS_E_STORAGE : AS_OK);
        CHECK_I64(st.st_size, 1 == has_next ? 9 : SEGMENT_LENGTH);
        asi_segment_writer_close(writer);
        scratch_delete(scratch);
    }
}

static void an_extension_needs_what_is_before_and_clears_what_is_behind(void)
{
    (void)begin();
    asi_segment_writer *writer = NULL;
    const int64_t join = put_frame(0, 64, false);
    put_frame(join, 64, false);
    store_segment(0);
    CHECK_I64(open_writer(asi_file_ops_posix(), join, 0, AS_CHECKSUM_NONE, &writer), AS_OK);
    asi_segment_writer_close(writer);
    int64_t length;
    uint8_t *stored = file_load(scratch, "0-0.rec", &length);
    CHECK_I64(length, SEGMENT_LENGTH);
    CHECK(0 == memcmp(stored, segment, (size_t)join) && 0 == stored[join] && 0 == stored[join + AS_FRAME_HEADER_LENGTH]);
    free(stored);
    CHECK(0 == truncate(path_of(0), join - 32));
    CHECK_I64(open_writer(asi_file_ops_posix(), join, 0, AS_CHECKSUM_NONE, &writer), AS_E_DATA);
    CHECK(0 == unlink(path_of(0)));
    CHECK_I64(open_writer(asi_file_ops_posix(), join, 0, AS_CHECKSUM_NONE, &writer), AS_E_DATA);
    scratch_delete(scratch);
}

/* A crash of a migration leaves files with two names; a writer must not write into the other recording. */
static void a_shared_segment_is_copied_before_it_is_written(void)
{
    char other[AS_PATH_MAX];
    (void)begin();
    asi_segment_writer *writer = NULL;
    const int64_t join = put_frame(0, 64, false);
    store_segment(0);
    snprintf(other, sizeof(other), "%s/1-0.rec", scratch);
    CHECK(0 == link(path_of(0), other));
    CHECK_I64(open_writer(asi_file_ops_posix(), join, 0, AS_CHECKSUM_NONE, &writer), AS_OK);
    put_frame(join, 64, false);
    CHECK_I64(asi_segment_writer_append(writer, segment + join, 64), AS_OK);
    asi_segment_writer_close(writer);
    int64_t length;
    uint8_t *shared = file_load(scratch, "1-0.rec", &length);
    uint8_t *own = file_load(scratch, "0-0.rec", &length);
    CHECK(0 == shared[join] && 0 != own[join]);
    CHECK(0 == memcmp(shared, own, (size_t)join));
    free(shared);
    free(own);
    scratch_delete(scratch);
}

/* After a sync that failed, the kernel takes for durable what never reached the disk: only writing it again helps. */
static void what_a_restart_finds_is_written_again(void)
{
    (void)begin();
    const int64_t end = put_frame(0, 64, false);
    store_segment(0);
    const asi_file_ops files = noted_files();
    asi_catalog *catalog = open_catalog();
    const asi_recover_options options = { .checksum = AS_CHECKSUM_NONE, .file_sync_level = 1, .now_ms = 5 };
    CHECK_I64(asi_recover_catalog(catalog, &files, scratch, &options, NULL), AS_OK);
    CHECK_TEXT(calls, "w0+64 s d");
    CHECK_I64(end, 64);
    asi_catalog_close(catalog);
    scratch_delete(scratch);
}

/* A record is seen by its header: that comes when the body is durable, in a catalog that has a sync level. */
static void a_record_becomes_visible_last(void)
{
    scratch_create(scratch);
    const asi_file_ops files = noted_files();
    const asi_catalog_params at = { .files = &files, .archive_dir = scratch, .capacity = 4096, .sync_level = 1 };
    const asi_recording_params params = { .stop_position = AS_NULL_VALUE, .segment_file_length = SEGMENT_LENGTH,
        .term_buffer_length = TERM_LENGTH, .mtu_length = 1408, .stripped_channel = asi_text_of("aeron:ipc"),
        .original_channel = asi_text_of("aeron:ipc"), .source_identity = asi_text_of("aeron:ipc") };
    asi_catalog *catalog = NULL;
    char body[64];
    char header[64];
    int64_t id;
    CHECK_I64(asi_catalog_open(&at, &catalog), AS_OK);
    calls[0] = '\0';
    const int64_t begin = asi_catalog_used_bytes(catalog);
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    snprintf(body, sizeof(body), " w%" PRId64 "+", begin + ASI_CATALOG_RECORD_HEADER_LENGTH);
    snprintf(header, sizeof(header), " s w%" PRId64 "+%d s", begin, ASI_CATALOG_RECORD_HEADER_LENGTH);
    const char *of_body = strstr(calls, body);
    CHECK(NULL != of_body && of_body < strstr(calls, header));
    asi_catalog_close(catalog);
    scratch_delete(scratch);
}

static void records_that_can_not_be_are_refused(void)
{
    asi_catalog_record record = begin();
    CHECK_I64(asi_recording_check_untrusted(&record), AS_OK);
    record.start_position = 64;
    record.stop_position = 32;
    CHECK_I64(asi_recording_check_untrusted(&record), AS_E_DATA);
    record.stop_position = 64;
    CHECK_I64(asi_recording_check_untrusted(&record), AS_OK);

    asi_catalog *catalog = open_catalog();
    const asi_recording_params params = { .stop_position = 0, .segment_file_length = SEGMENT_LENGTH,
        .term_buffer_length = TERM_LENGTH, .mtu_length = 1408, .stripped_channel = asi_text_of("aeron:ipc"),
        .original_channel = asi_text_of("aeron:ipc"), .source_identity = asi_text_of("aeron:ipc") };
    int64_t id;
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    CHECK(asi_catalog_find(catalog, id, &record));
    asi_catalog_close(catalog);
    int64_t length;
    uint8_t *bytes = file_load(scratch, ASI_CATALOG_FILE, &length);
    asi_put_i64(bytes + record.offset + RECORD_RECORDING_ID, 0);
    file_store(scratch, ASI_CATALOG_FILE, bytes, length);
    free(bytes);
    const asi_catalog_params again = { .files = asi_file_ops_posix(), .archive_dir = scratch, .capacity = 4096 };
    CHECK_I64(asi_catalog_open(&again, &catalog), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "ids must increase"));
    scratch_delete(scratch);
}

/* -- reading ------------------------------------------------------------------------------------------------------------------ */

static asi_segment_step walk_to(int64_t limit, int64_t *position)
{
    const asi_segment_source source = { .files = asi_file_ops_posix(), .archive_dir = scratch, .term_length = TERM_LENGTH,
        .segment_length = SEGMENT_LENGTH, .initial_term_id = INITIAL_TERM_ID, .stream_id = STREAM_ID };
    asi_segment_window window;
    asi_segment_window_init(&window, &source);
    asi_segment_walk walk = asi_segment_walk_start(&window, 0, limit, true);
    asi_segment_step step = ASI_SEGMENT_FRAME;
    while (ASI_SEGMENT_FRAME == (step = asi_segment_walk_next(&walk)))
    {
        CHECK(walk.position <= limit);
        CHECK(asi_segment_window_end(&window) <= limit);
    }
    *position = walk.position;
    asi_segment_window_close(&window);
    return step;
}

static void frames_of_another_place_are_refused(void)
{
    (void)begin();
    const int64_t second = put_frame(0, 64, false);
    const int64_t end = put_frame(second, 64, false);
    asi_frame_header *frame = (asi_frame_header *)(void *)(segment + second);
    const asi_frame_header right = *frame;
    int64_t position;
    for (int kind = 0; kind < 4; kind++)
    {
        *frame = right;
        frame->stream_id += 1 == kind;
        frame->term_id += 2 == kind;
        frame->term_offset += 3 == kind ? 32 : 0;
        store_segment(0);
        CHECK_I64(walk_to(end, &position), 0 == kind ? ASI_SEGMENT_LIMIT : ASI_SEGMENT_FAILED);
        CHECK_I64(position, 0 == kind ? end : second);
    }
    *frame = right;
    store_segment(0);
    CHECK_I64(walk_to(second, &position), ASI_SEGMENT_LIMIT);
    CHECK_I64(position, second);
    CHECK_I64(walk_to(end + 64, &position), ASI_SEGMENT_GAP);
    CHECK_I64(position, end);
    CHECK(0 == truncate(path_of(0), end - 32));
    CHECK_I64(walk_to(end, &position), ASI_SEGMENT_FAILED);
    scratch_delete(scratch);
}

/* Rows are taken of [0, end); meanwhile the recording is truncated, or its first segment purged. */
static void a_reader_says_what_went_away(void)
{
    for (int is_purge = 0; is_purge < 2; is_purge++)
    {
        (void)begin();
        const int64_t second = put_frame(0, 64, false);
        const int64_t end = put_frame(second, 64, false);
        store_segment(0);
        asi_catalog *catalog = open_catalog();
        CHECK_I64(asi_catalog_stop(catalog, 0, is_purge ? SEGMENT_LENGTH + 64 : end, 5), AS_OK);
        as_folder *folder = folder_open(scratch, AS_CHECKSUM_NONE);
        as_segment_reader *reader = NULL;
        as_columns columns = columns_create(100, 1000);
        CHECK_I64(as_segment_reader_open(folder, 0, 0, end, end, &reader), AS_OK);
        if (is_purge)
        {
            CHECK_I64(asi_catalog_set_start_position(catalog, 0, SEGMENT_LENGTH), AS_OK);
            memset(segment, 0, sizeof(segment));
            store_segment(0);
        }
        else
        {
            CHECK_I64(asi_catalog_set_stop_position(catalog, 0, second), AS_OK);
        }
        CHECK_I64(as_segment_reader_next(reader, &columns), AS_E_DATA);
        CHECK(NULL != strstr(as_error_text(), is_purge ? "since segments were purged" : "was truncated to position"));
        as_segment_reader_close(reader);
        columns_free(&columns);
        as_folder_close(folder);
        asi_catalog_close(catalog);
        scratch_delete(scratch);
    }
}

static as_result read_rows(int64_t end, int64_t *rows)
{
    as_folder *folder = folder_open(scratch, AS_CHECKSUM_AUTO);
    as_segment_reader *reader = NULL;
    as_columns columns = columns_create(100, 1000);
    as_result result = as_segment_reader_open(folder, 0, 0, end, end, &reader);
    if (AS_OK == result)
    {
        result = as_segment_reader_next(reader, &columns);
        *rows = columns.row_count;
        as_segment_reader_close(reader);
    }
    columns_free(&columns);
    as_folder_close(folder);
    return result;
}

static void a_reader_takes_no_broken_rows(void)
{
    (void)begin();
    asi_segment_writer *writer = NULL;
    const int64_t second = put_frame(0, 64, false);
    const int64_t third = put_frame(second, 64, false);
    const int64_t end = put_frame(third, 64, false);
    CHECK_I64(open_writer(asi_file_ops_posix(), 0, 0, AS_CHECKSUM_CRC32, &writer), AS_OK);
    CHECK_I64(asi_segment_writer_append(writer, segment, end), AS_OK);
    asi_segment_writer_close(writer);
    asi_catalog *catalog = open_catalog();
    CHECK_I64(asi_catalog_stop(catalog, 0, end, 5), AS_OK);
    asi_catalog_close(catalog);
    int64_t length;
    int64_t rows = 0;
    uint8_t *stored = file_load(scratch, "0-0.rec", &length);
    CHECK_I64(read_rows(end, &rows), AS_OK);
    CHECK_I64(rows, 3);
    CHECK_I64(read_rows(third, &rows), AS_OK);
    CHECK_I64(rows, 2);
    CHECK_I64(read_rows(end + 32, &rows), AS_E_USAGE);
    static const int64_t AT[] = { AS_FRAME_HEADER_LENGTH + 1, 16, 20, 8 }; /* payload, stream, term, offset */
    for (size_t i = 0; i < sizeof(AT) / sizeof(AT[0]); i++)
    {
        stored[third + AT[i]] ^= 0x40;
        file_store(scratch, "0-0.rec", stored, length);
        CHECK_I64(read_rows(end, &rows), AS_E_DATA);
        stored[third + AT[i]] ^= 0x40;
    }
    memset(stored + second, 0, 64);
    file_store(scratch, "0-0.rec", stored, length);
    CHECK_I64(read_rows(end, &rows), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "gap: no frame was recorded here"));
    free(stored);
    scratch_delete(scratch);
}

int main(void)
{
    RUN(each_page_of_the_last_frame_counts);
    RUN(a_checksum_proves_a_frame);
    RUN(the_highest_segment_has_the_end);
    RUN(behind_a_full_segment_is_an_empty_one);
    RUN(an_id_with_segments_is_not_given_again);
    RUN(a_block_becomes_visible_last);
    RUN(a_lapped_archive_records_its_own_bytes_or_none);
    RUN(nothing_is_written_behind_a_failure);
    RUN(checksums_are_of_the_payload);
    RUN(a_full_segment_is_followed_at_once);
    RUN(an_extension_needs_what_is_before_and_clears_what_is_behind);
    RUN(a_shared_segment_is_copied_before_it_is_written);
    RUN(what_a_restart_finds_is_written_again);
    RUN(a_record_becomes_visible_last);
    RUN(records_that_can_not_be_are_refused);
    RUN(frames_of_another_place_are_refused);
    RUN(a_reader_says_what_went_away);
    RUN(a_reader_takes_no_broken_rows);
    return 0;
}
