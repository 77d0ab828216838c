/* Goal: the tools compare frame headers with their neighbours: impossible values are errors, values that look damaged but may
 * be right are doubts, and the traces of a lossy, extended or late stream are neither. Method: tables of frames, written by
 * hand into one segment of a stopped recording, read as rows and verified. */
#include "store/archive_support.h"
#include "store/catalog.h"
#include "store/catalog_format.h"
#include "store/catalog_scan.h"
#include "wire/frame.h"

#define TERM_LENGTH 65536
#define SEGMENT_LENGTH 131072
#define MTU 1024
#define STREAM_ID 1001
#define SESSION 4242
#define OTHER_SESSION 77
#define INITIAL_TERM_ID 7
#define FRAMES_MAX 8

enum
{
    B = ASI_FLAG_BEGIN,
    E = ASI_FLAG_END,
    W = ASI_FLAG_UNFRAGMENTED,
    M = 0
};

typedef struct frame
{
    int32_t length;  /* 0: no more; negative: padding of that length */
    uint8_t flags;
    int32_t session; /* 0: SESSION */
} frame;

typedef struct row
{
    const char *what;
    frame frames[FRAMES_MAX];
    int64_t messages;
    const char *error; /* part of its text; NULL: none */
    const char *doubt; /* likewise */
    bool has_checksums;
    bool to_term_end;  /* padding fills the term, and a message stands behind it */
} row;

static char scratch[SCRATCH_CAPACITY];
static uint8_t segment[SEGMENT_LENGTH];

static int64_t put_frame(int64_t at, const frame *made, bool has_checksums)
{
    const bool is_padding = made->length < 0;
    const int32_t length = is_padding ? -made->length : made->length;
    asi_frame_header *header = (asi_frame_header *)(void *)(segment + at);
    *header = (asi_frame_header){ .frame_length = length, .flags = made->flags, .type = is_padding ? ASI_FRAME_PAD : ASI_FRAME_DATA,
        .term_offset = (int32_t)(at % TERM_LENGTH), .session_id = 0 == made->session ? SESSION : made->session,
        .stream_id = STREAM_ID, .term_id = INITIAL_TERM_ID + (int32_t)(at / TERM_LENGTH) };
    if (!is_padding)
    {
        const int64_t occupancy = asi_frame_occupancy(length);
        memset(segment + at + 32, 0x5a, (size_t)length - 32);
        header->session_id =
            has_checksums ? (int32_t)asi_crc32c(segment + at + 32, occupancy - 32) : header->session_id;
    }
    return at + asi_frame_occupancy(length);
}

static int64_t put_frames(const row *given)
{
    memset(segment, 0, sizeof(segment));
    int64_t at = 0;
    for (int i = 0; i < FRAMES_MAX && 0 != given->frames[i].length; i++)
    {
        at = put_frame(at, &given->frames[i], given->has_checksums);
    }
    if (given->to_term_end)
    {
        at = put_frame(at, &(frame){ -(int32_t)(TERM_LENGTH - at), W, 0 }, given->has_checksums);
        at = put_frame(at, &(frame){ 96, W, 0 }, given->has_checksums);
    }
    return at;
}

static void store(int64_t start, int64_t stop)
{
    const asi_recording_params params = { .start_timestamp_ms = 1, .stop_timestamp_ms = 2, .start_position = start,
        .stop_position = stop, .initial_term_id = INITIAL_TERM_ID, .segment_file_length = SEGMENT_LENGTH,
        .term_buffer_length = TERM_LENGTH, .mtu_length = MTU, .session_id = SESSION, .stream_id = STREAM_ID,
        .stripped_channel = asi_text_of("aeron:ipc"), .original_channel = asi_text_of("aeron:ipc"),
        .source_identity = asi_text_of("aeron:ipc") };
    const asi_catalog_params catalog_params = { .files = asi_file_ops_posix(), .archive_dir = scratch, .capacity = 4096 };
    asi_catalog *catalog = NULL;
    int64_t id;
    scratch_create(scratch);
    CHECK_I64(asi_catalog_open(&catalog_params, &catalog), AS_OK);
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    asi_catalog_close(catalog);
    file_store(scratch, "0-0.rec", segment, SEGMENT_LENGTH);
}

typedef struct seen
{
    int64_t messages;
    as_result result;
    char error[1024];
    char doubts[2048];
} seen;

static void take_doubts(as_segment_reader *reader, seen *found)
{
    as_doubt doubt;
    while (as_segment_reader_doubt(reader, &doubt))
    {
        strncat(found->doubts, doubt.text, sizeof(found->doubts) - strlen(found->doubts) - 1);
    }
}

/* With room for so many rows and bytes at a time: batches and pieces end everywhere. */
static seen read_all(int64_t start, int64_t stop, int64_t rows, int64_t bytes)
{
    seen found = { 0 };
    as_columns columns = columns_create(rows, bytes);
    as_folder *folder = folder_open(scratch, AS_CHECKSUM_AUTO);
    as_segment_reader *reader = NULL;
    CHECK_I64(as_segment_reader_open(folder, 0, start, stop, stop, &reader), AS_OK);
    while (AS_OK == (found.result = as_segment_reader_next(reader, &columns)) && columns.row_count > 0)
    {
        found.messages += columns.row_count;
        take_doubts(reader, &found);
    }
    snprintf(found.error, sizeof(found.error), "%s", AS_OK == found.result ? "" : as_error_text());
    take_doubts(reader, &found);
    as_segment_reader_close(reader);
    as_folder_close(folder);
    columns_free(&columns);
    return found;
}

static as_verify_report verify(void)
{
    as_catalog *catalog = NULL;
    as_verify_options options;
    as_verify_report report;
    as_verify_options_init(&options);
    options.all_segments = true;
    CHECK_I64(as_catalog_open(scratch, false, &catalog), AS_OK);
    CHECK_I64(as_catalog_verify(catalog, 0, &options, &report), AS_OK);
    as_catalog_close(catalog);
    return report;
}

static void check_said(const char *what, const char *said, const char *expected)
{
    const bool is_right = NULL == expected ? '\0' == said[0] : NULL != strstr(said, expected);
    if (!is_right)
    {
        fprintf(stderr, "%s: said '%s', expected '%s'\n", what, said, NULL == expected ? "" : expected);
    }
    CHECK(is_right);
}

static const char TORN[] = "a fragment that belongs to no message";
static const char CUT[] = "breaks off where the next one begins";
static const char SHORT[] = "a fragment that is not full";

static const row rows[] = {
    { "whole messages", { { 96, W, 0 }, { MTU, B, 0 }, { MTU, M, 0 }, { 200, E, 0 }, { 32, W, 0 } }, 3, NULL, NULL, false, false },
    { "lost packets: the end", { { MTU, B, 0 }, { -MTU, W, 0 }, { 96, W, 0 } }, 1, NULL, NULL, false, false },
    { "lost packets: the middle", { { MTU, B, 0 }, { -MTU, W, 0 }, { MTU, M, 0 }, { 96, E, 0 }, { 96, W, 0 } }, 1, NULL, NULL, false, false },
    { "lost packets: the beginning", { { 96, W, 0 }, { -MTU, W, 0 }, { 100, E, 0 }, { 96, W, 0 } }, 2, NULL, NULL, false, false },
    { "a claim that was given up", { { 96, W, 0 }, { -96, W, 0 }, { 96, W, 0 } }, 2, NULL, NULL, false, false },
    { "padding to the term's end", { { 96, W, 0 } }, 2, NULL, NULL, false, true },
    { "a publisher that died before padding", { { 96, W, 0 }, { MTU, B, 0 } }, 2, NULL, NULL, false, true },
    { "another session goes on", { { 96, W, 0 }, { MTU, B, 0 }, { 96, W, OTHER_SESSION } }, 2, NULL, NULL, false, false },
    { "a replication that was begun again inside a message", { { MTU, B, 0 }, { 96, E, OTHER_SESSION } }, 1, NULL, NULL, false, false },
    { "its publisher died inside a message", { { 96, W, 0 }, { MTU, B, 0 }, { MTU, M, 0 } }, 1, NULL, NULL, false, false },
    { "a lost END flag", { { 96, W, 0 }, { MTU, B, 0 }, { 200, M, 0 }, { 96, W, 0 } }, 2, NULL, CUT, false, false },
    { "a lost END flag, with checksums", { { 96, W, 0 }, { MTU, B, 0 }, { MTU, M, 0 }, { 96, W, 0 } }, 2, NULL, CUT, true, false },
    { "a lost END flag before padding", { { 96, W, 0 }, { 200, B, 0 } }, 2, NULL, SHORT, false, true },
    { "a lost END flag before another session", { { 96, W, 0 }, { 200, B, 0 }, { 96, W, OTHER_SESSION } }, 2, NULL, SHORT, false, false },
    { "a lost END flag at the end", { { 96, W, 0 }, { 200, B, 0 } }, 1, NULL, SHORT, false, false },
    { "a lost BEGIN flag", { { 96, W, 0 }, { 96, E, 0 }, { 96, W, 0 } }, 1, TORN, NULL, false, false },
    { "a lost BEGIN flag at a term's begin", { { 96, E, 0 }, { 96, W, 0 } }, 0, TORN, NULL, false, false },
    { "an END flag too much", { { MTU, W, 0 }, { 96, E, 0 }, { 96, W, 0 } }, 1, TORN, NULL, false, false },
    { "a middle fragment that is not full behind padding", { { 96, W, 0 }, { -96, W, 0 }, { 96, M, 0 }, { 96, E, 0 } }, 1, NULL, SHORT, false, false },
    { "longer than the MTU", { { 96, W, 0 }, { MTU + 1, W, 0 }, { 96, W, 0 } }, 1, "longer than the recording's mtuLength", NULL, false, false },
};

static void neighbours_tell(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        const row *given = &rows[i];
        const int64_t stop = put_frames(given);
        store(0, stop);
        static const int64_t room[][2] = { { 64, 1 << 17 }, { 1, 1 << 17 }, { 2, 4096 } };
        for (size_t k = 0; k < sizeof(room) / sizeof(room[0]); k++)
        {
            const seen found = read_all(0, stop, room[k][0], room[k][1]);
            check_said(given->what, found.error, given->error);
            check_said(given->what, found.doubts, given->doubt);
            CHECK(NULL != given->error || found.messages == given->messages); /* rows of the batch with the error are not given */
        }
        const as_verify_report report = verify();
        CHECK_I64(AS_VERIFY_BAD == report.outcome, NULL != given->error);
        CHECK(NULL == given->error || NULL != strstr(report.text, given->error));
        CHECK(NULL == given->doubt || NULL != strstr(report.text, given->doubt));
        scratch_delete(scratch);
    }
}

/* A range that begins with a fragment: inside a message, as a user may ask, and where a message has lost its BEGIN flag. */
static void what_stands_before_a_range(void)
{
    const row given = { "", { { 96, W, 0 }, { MTU, B, 0 }, { 96, E, 0 }, { 96, W, 0 } }, 0, NULL, NULL, false, false };
    const row broken = { "", { { 96, W, 0 }, { 96, E, 0 }, { 96, W, 0 } }, 0, NULL, NULL, false, false };
    int64_t stop = put_frames(&given);
    store(0, stop);
    seen found = read_all(96 + MTU, stop, 8, 4096);
    CHECK_I64(found.result, AS_OK);
    CHECK_I64(found.messages, 1);
    check_said("inside a message", found.doubts, NULL);
    scratch_delete(scratch);
    stop = put_frames(&broken);
    store(0, stop);
    found = read_all(96, stop, 8, 4096);
    check_said("a lost flag", found.error, TORN);
    scratch_delete(scratch);
}

/* One byte of a frame, or the entry's positions, are other than they were. */
static void bytes_that_headers_deny(void)
{
    const row given = { "", { { 96, W, 0 }, { 100, W, 0 }, { 96, W, 0 }, { 96, W, 0 } }, 0, NULL, NULL, true, true };
    static const struct
    {
        int64_t offset;
        uint8_t value;
        const char *error;
        const char *doubt;
    } changes[] = {
        { 96 + 6, 0, "so it was a message", NULL },                        /* type */
        { 96 + 7, 1, NULL, "version or type" },
        { 96 + 4, 1, NULL, "version or type" },
        { 96, 97, NULL, "between the end of a frame and the next" },       /* length within its 32 bytes */
        { 96 + 128 + 96 + 96 + 4000, 1, NULL, "padding holds bytes" },     /* within the padding at the term's end */
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
    {
        const int64_t stop = put_frames(&given);
        segment[changes[i].offset] = changes[i].value;
        store(0, stop);
        for (int64_t bytes = 4096; bytes <= 1 << 17; bytes *= 32)
        {
            const seen found = read_all(0, stop, 64, bytes);
            check_said("change", found.error, changes[i].error);
            check_said("change", found.doubts, changes[i].doubt);
        }
        const as_verify_report report = verify();
        CHECK(NULL != strstr(report.text, NULL != changes[i].error ? changes[i].error : changes[i].doubt));
        scratch_delete(scratch);
    }
}

/* No other header denies a length that reaches exactly to a later frame, or over the padding to the term's end. */
static void a_message_that_holds_frames(void)
{
    static const struct { int64_t padding; int32_t length; bool has_checksums; const char *said; } ROWS[] = {
        { 0, 96 + 96, false, "at position 0: a message holds frames of the recording" },
        { 0, 96 + 96 + 96, false, "at position 0: a message holds frames of the recording" },
        { 64, 96 + 64, false, "at position 0: a message holds frames of the recording" },
        { 0, 96 + 96, true, "checksum failed" },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        const row given = { "", { { 96, W, 0 }, { ROWS[i].padding > 0 ? -64 : 96, W, 0 }, { 96, W, 0 }, { 96, W, 0 } }, 0, NULL, NULL,
            ROWS[i].has_checksums, false };
        const int64_t stop = put_frames(&given);
        asi_put_i32(segment, ROWS[i].length);
        store(0, stop);
        CHECK(NULL != strstr(verify().text, ROWS[i].said));
        scratch_delete(scratch);
    }
}

static void entries_that_segments_deny(void)
{
    const row given = { "", { { 96, W, 0 }, { 96, W, 0 }, { 96, W, 0 }, { 96, W, 0 } }, 0, NULL, NULL, false, false };
    const int64_t stop = put_frames(&given);
    store(96, stop);
    seen found = read_all(96, stop, 64, 4096);
    CHECK_I64(found.messages, 3);
    check_said("start", found.doubts, "before its startPosition");
    CHECK(NULL != strstr(verify().text, "before its startPosition"));
    scratch_delete(scratch);
    store(0, stop - 96);
    found = read_all(0, stop - 96, 64, 4096);
    CHECK_I64(found.messages, 3);
    check_said("stop", found.doubts, "behind its stopPosition");
    CHECK(NULL != strstr(verify().text, "behind its stopPosition"));
    found = read_all(0, 96, 64, 4096);
    check_said("a range that ends before", found.doubts, NULL);
    found = read_all(96, 96, 64, 4096);
    check_said("a range of nothing", found.doubts, NULL);
    scratch_delete(scratch);
    store(0, stop - 32);
    found = read_all(0, stop - 32, 64, 4096);
    check_said("stop inside a frame", found.error, "stopPosition lies inside this frame");
    scratch_delete(scratch);
    memset(segment, 0, 96); /* a recording that began within its term */
    store(96, stop);
    found = read_all(96, stop, 64, 4096);
    check_said("start", found.doubts, NULL);
    scratch_delete(scratch);
}

int main(void)
{
    RUN(neighbours_tell);
    RUN(what_stands_before_a_range);
    RUN(bytes_that_headers_deny);
    RUN(a_message_that_holds_frames);
    RUN(entries_that_segments_deny);
    return 0;
}
