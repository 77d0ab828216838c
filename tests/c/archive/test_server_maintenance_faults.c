/* Goal: maintenance requests that fail change nothing. Method: a bare session (server_rig.h) against an invoked archive on files
 * that fail at call N, for every N until none fails. Spec: 06 §9. */
#include "maintenance_rig.h"

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

static int64_t size_of_segment(int64_t id, int64_t base)
{
    char path[AS_PATH_MAX + 64];
    struct stat status;
    snprintf(path, sizeof(path), "%s/%lld-%lld.rec", rig.archive_dir, (long long)id, (long long)base);
    CHECK_I64(stat(path, &status), 0);
    return status.st_size;
}

/* Where holes can't be made, the end of the last segment is cut off and put back. */
static void a_truncate_keeps_the_length_of_the_last_segment(void)
{
    open_on_failing_disk(EIO, false);
    raw_session *session = raw_connect(&rig);
    const int64_t id = make_recording(session, 7002);
    asi_codec_request request = at(ASI_CODEC_TRUNCATE_RECORDING, id, RIG_SEGMENT_LENGTH + 5 * FRAME);
    CHECK(NULL == disk.ops.punch && ASI_CODEC_OK == run_to_end(session, &request));
    CHECK_I64(size_of_segment(id, RIG_SEGMENT_LENGTH), RIG_SEGMENT_LENGTH);
    raw_close(session);
    rig_close(&rig);
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

/* Starts a recording, and its stream with the disk's call `n` refused; the session has the first event of that. */
static as_publication *publish_on_broken_disk(raw_session *session, asi_codec_request *request, int64_t n)
{
    as_publication *publication = NULL;
    raw_ask_ok(session, request);
    raw_forget(session);
    break_disk(n);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, CHANNEL, request->stream_id, &publication), AS_OK);
    UNTIL(&rig, (raw_poll(session), session->event_count > 0));
    return publication;
}

/* A start with the disk's call `n` refused. True: it was refused, and the recording is listed all the same. */
static bool start_with_fault(raw_session *session, int32_t stream_id, int64_t n)
{
    const int64_t count = asi_catalog_count(rig.archive->catalog);
    asi_codec_request request = start_of(CHANNEL, stream_id, true);
    as_publication *publication = publish_on_broken_disk(session, &request, n);
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

/* What a start is answered whose disk call `n` is refused: the error's code, or AS_NULL_VALUE when it is none of the recording. */
static int64_t code_of_start(raw_session *session, int32_t stream_id, int64_t n)
{
    asi_codec_request request = start_of(CHANNEL, stream_id, true);
    as_publication *publication = publish_on_broken_disk(session, &request, n);
    rig_turn_times(&rig, 10);
    disk.fail_at = 0;
    as_publication_close(publication);
    if (ASI_CODEC_RECORDING_SIGNAL == session->events[0].template_id)
    {
        raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id);
    }
    const asi_codec_event *answer = raw_find(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id);
    return NULL == answer ? AS_NULL_VALUE : answer->relevant_id;
}

/* In the catalog, or in the first segment that the recorder creates. */
static void a_full_disk_is_told_as_such_where_a_recording_starts(void)
{
    static const int ERRORS[] = { ENOSPC, EDQUOT };
    for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
    {
        open_on_failing_disk(ERRORS[i], false);
        raw_session *session = raw_connect(&rig);
        int refused = 0;
        for (int32_t n = 1; n < 16; n++)
        {
            const int64_t code = code_of_start(session, 7240 + n, n);
            CHECK(AS_NULL_VALUE == code || ASI_CODEC_E_STORAGE_SPACE == code);
            refused += AS_NULL_VALUE != code;
        }
        CHECK(refused >= 6);
        raw_close(session);
        rig_close(&rig);
    }
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

int main(void)
{
    RUN(a_truncate_keeps_the_length_of_the_last_segment);
    RUN(a_truncate_that_fails_changes_nothing);
    RUN(a_full_disk_is_told_as_such);
    RUN(a_disk_that_dies_leaves_whole_recordings);
    RUN(an_extension_that_fails_leaves_the_recording_as_it_was);
    RUN(a_start_that_fails_leaves_nothing_active);
    RUN(a_full_disk_is_told_as_such_where_a_recording_starts);
    RUN(files_that_stay_are_told_one_by_one);
    return 0;
}
