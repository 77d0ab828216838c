/* Goal: while a maintenance request is in progress, nothing that it removes can be recorded, replayed or attached, and no other
 * recording is disturbed; each ends well when its session or the archive does. The successful requests are in
 * tests/conformance/archive/test_maintenance.py, those that fail in test_server_maintenance_faults.c. Method: a bare session
 * (server_rig.h) against an invoked archive. Spec: 06 §9. */
#include "maintenance_rig.h"

static int64_t fdatasync_count;
static int64_t syncs_before_unlink; /* -1: nothing was unlinked */

static int counted_fdatasync(void *context, int fd)
{
    fdatasync_count++;
    return asi_file_ops_posix()->fdatasync(context, fd);
}

static int noted_unlink(void *context, const char *path)
{
    if (NULL != strstr(path, ".rec") && syncs_before_unlink < 0)
    {
        syncs_before_unlink = fdatasync_count;
    }
    return asi_file_ops_posix()->unlink(context, path);
}

/* The archive died before it made a purge durable, and the next one saw it in the page cache: a power failure would bring the record
 * back, so it is made durable before the files go. */
static void files_go_after_their_record(void)
{
    rig_open(&rig);
    rig.files = *asi_file_ops_posix();
    rig.files.fdatasync = counted_fdatasync;
    rig.files.unlink = noted_unlink;
    rig_set(&rig, "aeron.archive.catalog.file.sync.level", "1");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    const int64_t id = make_recording(session, 7410);
    CHECK_I64(asi_catalog_invalidate(rig.archive->catalog, id, ASI_RECORDING_DELETED), AS_OK);
    rig_close_archive(&rig);
    fdatasync_count = 0;
    syncs_before_unlink = -1;
    rig_open_archive(&rig);
    int64_t length;
    CHECK(NULL == read_segment(&rig, id, 0, &length));
    CHECK(syncs_before_unlink > 0);
    raw_close(session);
    rig_close(&rig);
}

/* -- requests in progress --------------------------------------------------------------------------------------------------- */

/* A replay that is not read from keeps a truncation waiting: the deletion's state is the test's to look at until it is aborted. */
static void while_a_truncation_waits_nothing_may_rely_on_what_goes(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    const int64_t id = make_recording(session, 7030);
    as_subscription *replayed = NULL;
    CHECK_I64(as_client_add_subscription(rig.client, RIG_CHANNEL, 7031, &replayed), AS_OK);
    asi_codec_request replay = replay_of(id, 0, AS_NULL_VALUE, RIG_CHANNEL, 7031);
    raw_ask_ok(session, &replay);
    asi_codec_request truncate = at(ASI_CODEC_TRUNCATE_RECORDING, id, 5 * FRAME);
    asi_codec_request rest[] = { at(ASI_CODEC_TRUNCATE_RECORDING, id, FRAME), replay_of(id, 0, AS_NULL_VALUE, RIG_CHANNEL, 7032),
        extend_of(id, RIG_CHANNEL, 7030, true), request_of(ASI_CODEC_ATTACH_SEGMENTS, id), migration_of(id, id - 1) };
    static const char *const TEXTS[] = { "another delete operation in progress for recording id: %" PRId64,
        "cannot start replay of recording %" PRId64 " due to an outstanding delete operation",
        "cannot extend recording %" PRId64 " due to an outstanding delete operation",
        "another delete operation in progress for recording id: %" PRId64 };
    raw_send(session, &truncate);
    for (int i = 0; i < 4; i++)
    {
        raw_send(session, &rest[i]);
    }
    /* All five are routed by one step, so the replay can't have ended in between. */
    for (int i = 0; i < 4; i++)
    {
        char text[128];
        snprintf(text, sizeof(text), TEXTS[i], id);
        const int32_t code = ASI_CODEC_E_GENERIC;
        check_error(raw_await(session, ASI_CODEC_CONTROL_RESPONSE, rest[i].correlation_id), code, text);
    }
    raw_await_signal(session, AS_SIGNAL_DELETE, truncate.correlation_id);
    as_recording recording;
    CHECK_I64(read_messages(id, &recording), 5);
    go_on(session, id, 7030, PER_SEGMENT);
    CHECK_I64(read_messages(id, &recording), PER_SEGMENT + 5);
    as_subscription_close(replayed);
    raw_close(session);
    rig_close(&rig);
}

static void a_deletion_ends_without_its_session(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *first = raw_connect(&rig);
    const int64_t id = make_recording(first, 7040);
    asi_codec_request request = at(ASI_CODEC_TRUNCATE_RECORDING, id, FRAME);
    asi_codec_request end = request_of(ASI_CODEC_CLOSE_SESSION, AS_NULL_VALUE);
    raw_send(first, &request);
    raw_send(first, &end);
    raw_session *session = raw_connect(&rig);
    UNTIL(&rig, NULL == rig.archive->deletions->outstanding);
    int64_t length;
    uint8_t *bytes = read_segment(&rig, id, 0, &length);
    CHECK(NULL != bytes && RIG_SEGMENT_LENGTH == length);
    free(bytes);
    CHECK(NULL == read_segment(&rig, id, RIG_SEGMENT_LENGTH, &length));
    raw_close(first);
    raw_close(session);
    rig_close(&rig);
}

/* The archive is closed when it has answered, with files still to go; in every threading mode. */
static void closing_finishes_what_is_outstanding(void)
{
    static const char *const MODES[] = { "INVOKER", "SHARED", "DEDICATED" };
    for (size_t i = 0; i < sizeof(MODES) / sizeof(MODES[0]); i++)
    {
        rig_open(&rig);
        rig_set(&rig, "aeron.archive.threading.mode", MODES[i]);
        rig.has_threads = 0 != i;
        rig_open_archive(&rig);
        raw_session *session = raw_connect(&rig);
        const int64_t id = make_recording(session, 7050);
        asi_codec_request request = request_of(ASI_CODEC_PURGE_RECORDING, id);
        CHECK_I64(raw_ask_ok(session, &request), 4);
        rig_close_archive(&rig);
        for (int64_t base = 0; base < 4 * RIG_SEGMENT_LENGTH; base += RIG_SEGMENT_LENGTH)
        {
            int64_t length;
            CHECK(NULL == read_segment(&rig, id, base, &length));
        }
        raw_close(session);
        rig_close(&rig);
    }
}

/* Thousands of segments go while a recording and its replay are live, in every threading mode; the deletion holds neither up for
 * good, and what is recorded meanwhile is whole. */
static void a_large_purge_disturbs_nobody(void)
{
    enum { FILES = 2000 };
    static const char *const MODES[] = { "INVOKER", "DEDICATED" };
    for (size_t i = 0; i < sizeof(MODES) / sizeof(MODES[0]); i++)
    {
        rig_open(&rig);
        rig_set(&rig, "aeron.archive.threading.mode", MODES[i]);
        rig.has_threads = 0 != i;
        rig_open_archive(&rig);
        raw_session *session = raw_connect(&rig);
        const int64_t big = make_recording(session, 7060);
        as_publication *live = NULL;
        asi_codec_request start = start_of(CHANNEL, 7061, true);
        raw_ask_ok(session, &start);
        CHECK_I64(as_client_add_exclusive_publication(rig.client, CHANNEL, 7061, &live), AS_OK);
        for (int64_t n = 100; n < 100 + FILES; n++)
        {
            char path[AS_PATH_MAX];
            CHECK_I64(asi_segment_path(path, sizeof(path), rig.archive_dir, big, n * RIG_SEGMENT_LENGTH), AS_OK);
            FILE *file = fopen(path, "wb");
            CHECK(NULL != file && 0 == fclose(file));
        }
        asi_codec_request request = request_of(ASI_CODEC_PURGE_RECORDING, big);
        CHECK_I64(raw_ask_ok(session, &request), FILES + 4);
        publish(&rig, live, MESSAGE, 2 * PER_SEGMENT + 1);
        raw_await_signal(session, AS_SIGNAL_DELETE, request.correlation_id);
        as_publication_close(live);
        const int64_t live_id = raw_await_signal(session, AS_SIGNAL_STOP, start.correlation_id)->recording_id;
        as_recording recording;
        CHECK_I64(read_messages(live_id, &recording), 2 * PER_SEGMENT + 1);
        CHECK_I64(read_messages(big, &recording), -1);
        raw_close(session);
        rig_close(&rig);
    }
}

/* -- readers of the folder ----------------------------------------------------------------------------------------------------- */

/* A reader that has taken a few messages; after the request it must give the right ones, or the reason. */
static void disturb_reader(raw_session *session, asi_codec_request *request, const char *reason)
{
    static uint8_t bytes[16 * MESSAGE];
    static int32_t offsets[17];
    as_columns columns = { .row_capacity = 16, .byte_capacity = sizeof(bytes), .value_offset = offsets, .value = bytes };
    as_folder *folder = NULL;
    as_segment_reader *reader = NULL;
    const int64_t id = request->recording_id;
    const int64_t stop = raw_position(session, ASI_CODEC_STOP_POSITION, id);
    CHECK_I64(as_folder_open(rig.archive_dir, NULL, &folder), AS_OK);
    CHECK_I64(as_segment_reader_open(folder, id, 0, stop, stop, &reader), AS_OK);
    as_result result = as_segment_reader_next(reader, &columns);
    CHECK_I64(run_to_end(session, request), ASI_CODEC_OK);
    int64_t index = 0;
    while (AS_OK == result && columns.row_count > 0)
    {
        for (int64_t i = 0; i < columns.row_count; i++)
        {
            uint8_t message[MESSAGE];
            fill_message(message, MESSAGE, index++);
            CHECK_I64(offsets[i + 1] - offsets[i], MESSAGE);
            CHECK(0 == memcmp(bytes + offsets[i], message, MESSAGE));
        }
        result = as_segment_reader_next(reader, &columns);
    }
    CHECK_I64(result, AS_E_DATA);
    if (NULL == strstr(as_error_text(), reason))
    {
        CHECK_TEXT(as_error_text(), reason);
    }
    as_segment_reader_close(reader);
    as_folder_close(folder);
}

static void readers_are_told_what_went_away(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    asi_codec_request request = at(ASI_CODEC_TRUNCATE_RECORDING, make_recording(session, 7071), 7 * FRAME);
    disturb_reader(session, &request, "was truncated to position 57344 while it was read");
    request = at(ASI_CODEC_PURGE_SEGMENTS, make_recording(session, 7072), 3 * RIG_SEGMENT_LENGTH);
    disturb_reader(session, &request, "starts at position 393216 since segments were purged or detached while it was read");
    request = request_of(ASI_CODEC_PURGE_RECORDING, make_recording(session, 7073));
    disturb_reader(session, &request, "is gone: it was purged");
    raw_close(session);
    rig_close(&rig);
}

int main(void)
{
    RUN(files_go_after_their_record);
    RUN(while_a_truncation_waits_nothing_may_rely_on_what_goes);
    RUN(a_deletion_ends_without_its_session);
    RUN(closing_finishes_what_is_outstanding);
    RUN(a_large_purge_disturbs_nobody);
    RUN(readers_are_told_what_went_away);
    return 0;
}
