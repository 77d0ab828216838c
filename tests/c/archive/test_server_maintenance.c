/* Goal: maintenance requests that fail change nothing; while one is in progress, nothing that it removes can be recorded,
 * replayed or attached, and no other recording is disturbed; each ends well when its session or the archive does. The
 * successful requests are in tests/conformance/archive/test_maintenance.py. Method: a bare session (server_rig.h) against an
 * invoked archive on files that fail at call N, for every N until none fails; after each, everything that the catalog claims
 * is read back message by message. Spec: 06 §9. */
#include "../store/failing_files.h"
#include "server_rig.h"
#include "store/segment_layout.h"

#define CHANNEL "aeron:ipc?term-length=64k|mtu=16k"
#define MESSAGE 8160                         /* a frame of 8,192 bytes: 16 to a segment, no padding */
#define FRAME INT64_C(8192)
#define PER_SEGMENT (RIG_SEGMENT_LENGTH / FRAME)

static test_rig rig;
static failing_files disk;

/* An archive on `disk`, which refuses nothing yet. */
static void open_on_failing_disk(int error, bool stays_broken)
{
    rig_open(&rig);
    failing_files_init(&disk, 0, error, stays_broken);
    rig.files = disk.ops;
    rig_set(&rig, "aeron.archive.record.checksum", "CRC-32C");
    rig_set(&rig, "aeron.archive.file.sync.level", "1");
    rig_set(&rig, "aeron.archive.catalog.file.sync.level", "1");
    rig_open_archive(&rig);
}

static asi_codec_request at(int32_t template_id, int64_t recording_id, int64_t position)
{
    asi_codec_request request = request_of(template_id, recording_id);
    request.position = position;
    return request;
}

static asi_codec_request migration_of(int64_t src, int64_t dst)
{
    asi_codec_request request = request_of(ASI_CODEC_MIGRATE_SEGMENTS, src);
    request.dst_recording_id = dst;
    return request;
}

/* Messages that the folder gives of a recording, every one of them; -1: it is not in the catalog. */
static int64_t read_messages(int64_t recording_id, as_recording *recording)
{
    static uint8_t bytes[256 * 1024];
    static int32_t offsets[257];
    as_folder *folder = NULL;
    as_segment_reader *reader = NULL;
    as_columns columns = { .row_capacity = 256, .byte_capacity = sizeof(bytes), .value_offset = offsets, .value = bytes };
    CHECK_I64(as_folder_open(rig.archive_dir, NULL, &folder), AS_OK);
    if (AS_OK != as_folder_recording(folder, recording_id, recording))
    {
        as_folder_close(folder);
        return -1;
    }
    const int64_t stop = recording->stop_position;
    int64_t count = 0;
    CHECK_I64(as_segment_reader_open(folder, recording_id, recording->start_position, stop, stop, &reader), AS_OK);
    do
    {
        if (AS_OK != as_segment_reader_next(reader, &columns))
        {
            fprintf(stderr, "recording %" PRId64 ": %s\n", recording_id, as_error_text());
            exit(1);
        }
        count += columns.row_count;
    } while (columns.row_count > 0);
    as_segment_reader_close(reader);
    as_folder_close(folder);
    CHECK_I64(count, (stop - recording->start_position) / FRAME);
    return count;
}

/* A recording by a request that starts or extends; ended by its publication's end. */
static int64_t record(raw_session *session, asi_codec_request *request, const char *channel, int32_t stream_id, int64_t count)
{
    as_publication *publication = NULL;
    raw_ask_ok(session, request);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, stream_id, &publication), AS_OK);
    const int64_t end = publish(&rig, publication, MESSAGE, count);
    as_publication_close(publication);
    const asi_codec_event *stop = raw_await_signal(session, AS_SIGNAL_STOP, request->correlation_id);
    CHECK_I64(stop->position, end);
    return stop->recording_id;
}

static int64_t make_recording_of(raw_session *session, int32_t stream_id, int64_t count)
{
    asi_codec_request request = start_of(CHANNEL, stream_id, true);
    return record(session, &request, CHANNEL, stream_id, count);
}

/* Three segments and ten messages. */
static int64_t make_recording(raw_session *session, int32_t stream_id)
{
    return make_recording_of(session, stream_id, 3 * PER_SEGMENT + 10);
}

/* From now on the disk refuses call `n` that changes something. */
static void break_disk(int64_t n)
{
    disk.calls = 0;
    disk.fail_at = n;
}

static bool has_failed(void) { return disk.calls >= disk.fail_at; }

static int64_t count_responses(const raw_session *session, int64_t correlation_id, int32_t code)
{
    int64_t count = 0;
    for (int i = 0; i < session->event_count; i++)
    {
        const asi_codec_event *event = &session->events[i];
        count += ASI_CODEC_CONTROL_RESPONSE == event->template_id && event->correlation_id == correlation_id && event->code == code;
    }
    return count;
}

/* The answer's code; when it was OK, everything is gone that was to go, but for files that were refused. */
static int32_t run_to_end(raw_session *session, asi_codec_request *request)
{
    raw_forget(session);
    const int32_t code = raw_ask(session, request)->code;
    if (ASI_CODEC_OK == code)
    {
        raw_await_signal(session, AS_SIGNAL_DELETE, request->correlation_id);
    }
    CHECK(NULL == rig.archive->deletions->outstanding);
    return code;
}

static void a_truncate_that_fails_changes_nothing(void)
{
    open_on_failing_disk(EIO, false);
    raw_session *session = raw_connect(&rig);
    bool failed = true;
    int refused = 0;
    for (int64_t n = 1; failed && n < 100; n++)
    {
        const int64_t positions[] = { RIG_SEGMENT_LENGTH + 5 * FRAME, RIG_SEGMENT_LENGTH, 0 };
        failed = false;
        for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++)
        {
            const int64_t id = make_recording(session, (int32_t)(8000 + 10 * n + (int64_t)i));
            as_recording recording;
            asi_codec_request request = at(ASI_CODEC_TRUNCATE_RECORDING, id, positions[i]);
            break_disk(n);
            const int32_t code = run_to_end(session, &request);
            failed = failed || has_failed();
            disk.fail_at = 0;
            refused += ASI_CODEC_ERROR == code;
            const int64_t left = ASI_CODEC_ERROR == code ? 3 * PER_SEGMENT + 10 : positions[i] / FRAME;
            CHECK_I64(read_messages(id, &recording), left);
            CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, id), left * FRAME);
        }
    }
    CHECK(!failed && refused > 0);
    raw_close(session);
    rig_close(&rig);
    CHECK_I64(disk.open_count, 0);
}

static void a_full_disk_is_told_as_such(void)
{
    open_on_failing_disk(ENOSPC, false);
    raw_session *session = raw_connect(&rig);
    const int64_t id = make_recording(session, 7001);
    asi_codec_request request = at(ASI_CODEC_TRUNCATE_RECORDING, id, FRAME);
    break_disk(1);
    CHECK_I64(raw_ask(session, &request)->relevant_id, ASI_CODEC_E_STORAGE_SPACE);
    request = at(ASI_CODEC_DETACH_SEGMENTS, id, RIG_SEGMENT_LENGTH);
    break_disk(1);
    CHECK_I64(raw_ask(session, &request)->relevant_id, ASI_CODEC_E_STORAGE_SPACE);
    CHECK_I64(raw_position(session, ASI_CODEC_START_POSITION, id), 0);
    raw_close(session);
    rig_close(&rig);
}

/* A disk that is gone for good from call N on: whatever the archive could store, an archive that opens the folder afterwards has
 * all that the catalog claims. */
static void a_disk_that_dies_leaves_whole_recordings(void)
{
    static const int32_t REQUESTS[] = { ASI_CODEC_TRUNCATE_RECORDING, ASI_CODEC_PURGE_SEGMENTS, ASI_CODEC_PURGE_RECORDING };
    bool failed = true;
    for (int64_t n = 1; failed && n < 40; n++)
    {
        int64_t ids[3];
        open_on_failing_disk(EIO, true);
        raw_session *session = raw_connect(&rig);
        failed = false;
        for (int i = 0; i < 3; i++)
        {
            disk.fail_at = 0;
            ids[i] = make_recording(session, 7010 + i);
            asi_codec_request request = at(REQUESTS[i], ids[i], 0 == i ? RIG_SEGMENT_LENGTH + FRAME : 2 * RIG_SEGMENT_LENGTH);
            break_disk(n);
            run_to_end(session, &request);
            failed = failed || has_failed();
        }
        raw_close(session);
        rig_close_archive(&rig);
        disk.fail_at = 0;
        rig_open_archive(&rig);
        for (int i = 0; i < 3; i++)
        {
            as_recording recording;
            read_messages(ids[i], &recording);
        }
        rig_close(&rig);
    }
    CHECK(!failed);
}

/* Of a publication that goes on where a recording stops. */
static void channel_behind(int64_t recording_id, char *channel, size_t capacity)
{
    asi_catalog_record found;
    CHECK(asi_catalog_find(rig.archive->catalog, recording_id, &found));
    snprintf(channel, capacity, CHANNEL "|init-term-id=%d|term-id=%d|term-offset=%d", found.initial_term_id,
        found.initial_term_id + (int32_t)(found.stop_position / RIG_TERM_LENGTH), (int32_t)(found.stop_position % RIG_TERM_LENGTH));
}

/* Two recordings that meet at a segment boundary. */
static void make_pair(raw_session *session, int32_t stream_id, int64_t *head, int64_t *tail)
{
    char channel[256];
    *head = make_recording_of(session, stream_id, 2 * PER_SEGMENT);
    channel_behind(*head, channel, sizeof(channel));
    asi_codec_request request = start_of(channel, stream_id, true);
    *tail = record(session, &request, channel, stream_id, PER_SEGMENT + 3);
}

static void migrate_at_every_fault(bool is_head, bool can_link)
{
    open_on_failing_disk(EIO, false);
    rig.files.link = can_link ? asi_file_ops_posix()->link : NULL;
    raw_session *session = raw_connect(&rig);
    bool failed = true;
    for (int64_t n = 1; failed && n < 100; n++)
    {
        int64_t ids[2];
        as_recording head;
        as_recording tail;
        make_pair(session, (int32_t)(7300 + n), &ids[0], &ids[1]);
        asi_codec_request request = is_head ? migration_of(ids[0], ids[1]) : migration_of(ids[1], ids[0]);
        break_disk(n);
        const int32_t code = run_to_end(session, &request);
        failed = has_failed();
        disk.fail_at = 0;
        const int64_t counts[] = { read_messages(ids[0], &head), read_messages(ids[1], &tail) };
        const bool is_moved = ASI_CODEC_OK == code;
        CHECK_I64(counts[is_head ? 1 : 0], is_moved ? 3 * PER_SEGMENT + 3 : is_head ? PER_SEGMENT + 3 : 2 * PER_SEGMENT);
        CHECK_I64(counts[is_head ? 0 : 1], is_moved ? 0 : is_head ? 2 * PER_SEGMENT : PER_SEGMENT + 3);
        if (!is_moved)
        {
            /* And it can be tried again. */
            CHECK_I64(run_to_end(session, &request), ASI_CODEC_OK);
            CHECK_I64(read_messages(request.dst_recording_id, &head), 3 * PER_SEGMENT + 3);
        }
    }
    CHECK(!failed);
    raw_close(session);
    rig_close(&rig);
    CHECK_I64(disk.open_count, 0);
}

static void a_migrate_that_fails_changes_nothing(void)
{
    migrate_at_every_fault(true, true);
    migrate_at_every_fault(false, true);
    migrate_at_every_fault(true, false);
}

static void go_on(raw_session *session, int64_t recording_id, int32_t stream_id, int64_t count)
{
    char channel[256];
    channel_behind(recording_id, channel, sizeof(channel));
    asi_codec_request request = extend_of(recording_id, channel, stream_id, true);
    CHECK_I64(record(session, &request, channel, stream_id, count), recording_id);
}

/* Extends by a publication that goes on where the recording ends, with the disk's call `n` refused. True: it was refused, and the
 * client was told. */
static bool extend_with_fault(raw_session *session, int64_t id, int32_t stream_id, int64_t n)
{
    char channel[160];
    as_publication *publication = NULL;
    asi_codec_request request = extend_of(id, CHANNEL, stream_id, true);
    raw_forget(session);
    raw_ask_ok(session, &request);
    channel_behind(id, channel, sizeof(channel));
    raw_forget(session);
    break_disk(n);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, stream_id, &publication), AS_OK);
    UNTIL(&rig, (raw_poll(session), session->event_count > 0));
    const bool is_refused = ASI_CODEC_CONTROL_RESPONSE == session->events[0].template_id;
    CHECK(!is_refused || ASI_CODEC_ERROR == session->events[0].code);
    disk.fail_at = 0;
    as_publication_close(publication);
    if (!is_refused)
    {
        raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id);
    }
    return is_refused;
}

/* A recording without a recorder would be active for ever: not replayed, not extended, not deleted, until the next start. */
static void an_extension_that_fails_leaves_the_recording_as_it_was(void)
{
    open_on_failing_disk(EIO, false);
    raw_session *session = raw_connect(&rig);
    as_recording recording;
    int refused = 0;
    int64_t n = 1;
    for (; n < 30; n++)
    {
        const int32_t stream_id = (int32_t)(7020 + n);
        const int64_t id = make_recording_of(session, stream_id, 10);
        if (!extend_with_fault(session, id, stream_id, n))
        {
            continue; /* a call of something else, such as of the time index */
        }
        refused++;
        CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, id), 10 * FRAME);
        CHECK_I64(read_messages(id, &recording), 10);
        go_on(session, id, stream_id, 5);
        CHECK_I64(read_messages(id, &recording), 15);
        asi_codec_request request = at(ASI_CODEC_TRUNCATE_RECORDING, id, FRAME);
        CHECK_I64(run_to_end(session, &request), ASI_CODEC_OK);
    }
    CHECK(refused >= 7); /* five fields, checksum, sync */
    raw_close(session);
    rig_close(&rig);
}

/* A start with the disk's call `n` refused. True: it was refused, and the recording is listed all the same. */
static bool start_with_fault(raw_session *session, int32_t stream_id, int64_t n)
{
    as_publication *publication = NULL;
    const int64_t count = asi_catalog_count(rig.archive->catalog);
    asi_codec_request request = start_of(CHANNEL, stream_id, true);
    raw_ask_ok(session, &request);
    raw_forget(session);
    break_disk(n);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, CHANNEL, stream_id, &publication), AS_OK);
    UNTIL(&rig, (raw_poll(session), session->event_count > 0));
    const bool is_refused = ASI_CODEC_CONTROL_RESPONSE == session->events[0].template_id;
    const bool is_listed = asi_catalog_count(rig.archive->catalog) > count;
    disk.fail_at = 0;
    as_publication_close(publication);
    if (!is_refused)
    {
        raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id);
    }
    return is_refused && is_listed;
}

/* A start whose record was written but not synced: it is listed, so it must be stopped, and can be purged. */
static void a_start_that_fails_leaves_nothing_active(void)
{
    open_on_failing_disk(EIO, false);
    raw_session *session = raw_connect(&rig);
    int listed = 0;
    for (int32_t n = 1; n < 10; n++)
    {
        if (start_with_fault(session, 7200 + n, n))
        {
            asi_catalog_record record;
            asi_catalog_at(rig.archive->catalog, asi_catalog_count(rig.archive->catalog) - 1, &record);
            asi_codec_request purge = request_of(ASI_CODEC_PURGE_RECORDING, record.recording_id);
            CHECK_I64(record.stop_position, record.start_position);
            CHECK_I64(run_to_end(session, &purge), ASI_CODEC_OK);
            listed++;
        }
        make_recording_of(session, 7220 + n, 1); /* rewrites what a failed sync left: the calls of each round are the same */
    }
    CHECK_I64(listed, 1);
    raw_close(session);
    rig_close(&rig);
}

/* As a migration leaves it that died when the destination had got the bytes and the source still had them. */
static void share_segments(int64_t head, int64_t tail)
{
    as_recording from;
    CHECK_I64(read_messages(tail, &from), PER_SEGMENT + 3);
    for (int64_t base = 2 * RIG_SEGMENT_LENGTH; base < from.stop_position; base += RIG_SEGMENT_LENGTH)
    {
        char src[AS_PATH_MAX];
        char dst[AS_PATH_MAX];
        CHECK_I64(asi_segment_path(src, sizeof(src), rig.archive_dir, tail, base), AS_OK);
        CHECK_I64(asi_segment_path(dst, sizeof(dst), rig.archive_dir, head, base), AS_OK);
        CHECK(0 == unlink(dst) || ENOENT == errno);
        CHECK_I64(link(src, dst), 0);
    }
    CHECK_I64(asi_catalog_set_stop_position(rig.archive->catalog, head, from.stop_position), AS_OK);
}

static void a_migration_that_died_ties_no_recordings_together(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    int64_t head;
    int64_t tail;
    as_recording end;
    make_pair(session, 7400, &head, &tail);
    share_segments(head, tail);
    CHECK_I64(read_messages(head, &end), 3 * PER_SEGMENT + 3);

    asi_codec_request request = at(ASI_CODEC_TRUNCATE_RECORDING, tail, 3 * RIG_SEGMENT_LENGTH + FRAME);
    CHECK_I64(run_to_end(session, &request), ASI_CODEC_OK);
    CHECK_I64(read_messages(tail, &end), PER_SEGMENT + 1);
    CHECK_I64(read_messages(head, &end), 3 * PER_SEGMENT + 3);
    go_on(session, head, 7400, 5);
    CHECK_I64(read_messages(head, &end), 3 * PER_SEGMENT + 8);
    go_on(session, tail, 7400, 1);
    CHECK_I64(read_messages(tail, &end), PER_SEGMENT + 2);
    request = at(ASI_CODEC_TRUNCATE_RECORDING, head, 2 * RIG_SEGMENT_LENGTH + FRAME);
    CHECK_I64(run_to_end(session, &request), ASI_CODEC_OK);
    CHECK_I64(read_messages(head, &end), 2 * PER_SEGMENT + 1);
    CHECK_I64(read_messages(tail, &end), PER_SEGMENT + 2);

    /* The death came later: the source has no bytes any more, and its name of the file is still there. */
    make_pair(session, 7401, &head, &tail);
    share_segments(head, tail);
    CHECK_I64(asi_catalog_set_stop_position(rig.archive->catalog, tail, 2 * RIG_SEGMENT_LENGTH + FRAME), AS_OK);
    go_on(session, tail, 7401, 1);
    CHECK_I64(read_messages(tail, &end), 2);
    CHECK_I64(read_messages(head, &end), 3 * PER_SEGMENT + 3);

    raw_close(session);
    rig_close(&rig);
}

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

static void files_that_stay_are_told_one_by_one(void)
{
    open_on_failing_disk(EACCES, true);
    raw_session *session = raw_connect(&rig);
    const int64_t id = make_recording(session, 7020);
    asi_codec_request request = at(ASI_CODEC_PURGE_SEGMENTS, id, 2 * RIG_SEGMENT_LENGTH);
    raw_send(session, &request);
    UNTIL(&rig, (raw_poll(session), 1 == count_responses(session, request.correlation_id, ASI_CODEC_OK)));
    break_disk(1);
    raw_await_signal(session, AS_SIGNAL_DELETE, request.correlation_id);
    disk.fail_at = 0;
    const int64_t told = count_responses(session, request.correlation_id, ASI_CODEC_ERROR);
    CHECK(1 <= told && told <= 2); /* one file may have gone before the disk broke */
    char text[AS_PATH_MAX + 64];
    snprintf(text, sizeof(text), "unable to delete segment file: %s/%" PRId64 "-%d.rec", rig.archive_dir, id, RIG_SEGMENT_LENGTH);
    const asi_codec_event *last = NULL;
    for (int i = 0; i < session->event_count; i++)
    {
        last = ASI_CODEC_ERROR == session->events[i].code ? &session->events[i] : last;
    }
    CHECK(NULL != last);
    check_error(last, ASI_CODEC_E_GENERIC, text);
    CHECK_I64(raw_position(session, ASI_CODEC_START_POSITION, id), 2 * RIG_SEGMENT_LENGTH);
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
    RUN(a_truncate_that_fails_changes_nothing);
    RUN(a_full_disk_is_told_as_such);
    RUN(a_disk_that_dies_leaves_whole_recordings);
    RUN(an_extension_that_fails_leaves_the_recording_as_it_was);
    RUN(a_start_that_fails_leaves_nothing_active);
    RUN(a_migrate_that_fails_changes_nothing);
    RUN(a_migration_that_died_ties_no_recordings_together);
    RUN(files_go_after_their_record);
    RUN(files_that_stay_are_told_one_by_one);
    RUN(while_a_truncation_waits_nothing_may_rely_on_what_goes);
    RUN(a_deletion_ends_without_its_session);
    RUN(closing_finishes_what_is_outstanding);
    RUN(a_large_purge_disturbs_nobody);
    RUN(readers_are_told_what_went_away);
    return 0;
}
