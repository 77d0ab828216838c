/* Goal: the recorded position never covers what is not in the file, whatever the disk does, and a recording ends cleanly in
 * every threading mode. Method: a bare session against an invoked archive; segment files are read back as bytes; the disk
 * fails at write N for every N, and its free space is the test's. tests/conformance/archive/test_recording.py has the
 * scenarios of recordings. */
#include "server_rig.h"
#include "store/checksum.h"

static test_rig rig;

static void s26_low_storage_to_the_byte(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.low.storage.space.threshold", "1k");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 2025, 100, 0);
    rig.usable_space = 1024;
    asi_codec_request request = start_of(RIG_CHANNEL, 2026, false);
    check_error(raw_ask(session, &request), ASI_CODEC_E_STORAGE_SPACE, "low storage threshold=1024 <= usableSpace=1024");
    request = extend_of(recording.id, RIG_CHANNEL, 2025, false);
    check_error(raw_ask(session, &request), ASI_CODEC_E_STORAGE_SPACE, "low storage threshold=1024 <= usableSpace=1024");
    rig.usable_space = 1025;
    request = start_of(RIG_CHANNEL, 2026, false);
    raw_ask_ok(session, &request);
    raw_close(session);
    rig_close(&rig);
}

static void s30_checksums_take_the_place_of_the_session_id(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.record.checksum", "org.agrona.checksum.Crc32");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 2030, 1000, 70);
    int64_t length;
    uint8_t *bytes = read_segment(&rig, recording.id, 0, &length);
    CHECK(NULL != bytes);
    int frames = 0;
    for (int64_t at = 0; asi_get_i32(bytes + at) > 0; at += asi_frame_occupancy(asi_get_i32(bytes + at)))
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)(bytes + at);
        if (ASI_FRAME_DATA == frame->type)
        {
            CHECK_I64((uint32_t)frame->session_id, asi_crc32(bytes + at + 32, asi_frame_occupancy(frame->frame_length) - 32));
            frames++;
        }
    }
    CHECK_I64(frames, 70);
    free(bytes);
    raw_close(session);
    rig_close(&rig);
}

/* Spec: 08 §5 - for every N the disk refuses from write N on: the recording ends with the error, the recorded position stays at
 * what was written, and those bytes are in the file. */
static void a_failing_disk_never_advances_the_position(void)
{
    static const int ERRORS[] = { ENOSPC, EIO };
    raw_session *session = raw_connect(&rig);
    bool failed = true;
    for (int n = 1; failed && n < 100; n++)
    {
        raw_recording recording = raw_start(session, 3000 + n, true);
        rig.write_count = 0;
        rig.fail_at = n;
        rig.fail_with = ERRORS[n % 2];
        int64_t end = 0;
        for (int i = 0; i < 12 && rig.write_count < n; i++)
        {
            end = publish_one(&rig, recording.publication, 1000, i);
            rig_turn_times(&rig, 4); /* so that each message is a write of its own */
        }
        as_publication_close(recording.publication);
        const asi_codec_event *stop = raw_await_signal(session, AS_SIGNAL_STOP, recording.correlation_id);
        failed = rig.write_count >= n;
        rig.fail_at = 0;
        CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, recording.id), stop->position);
        CHECK(failed ? stop->position < end : stop->position == end);
        CHECK(0 == stop->position % 1056);
        int errors = 0;
        for (int i = 0; i < session->event_count; i++)
        {
            const asi_codec_event *event = &session->events[i];
            if (ASI_CODEC_CONTROL_RESPONSE == event->template_id && ASI_CODEC_ERROR == event->code &&
                event->correlation_id == recording.correlation_id)
            {
                CHECK_I64(event->relevant_id, ENOSPC == rig.fail_with ? ASI_CODEC_E_STORAGE_SPACE : ASI_CODEC_E_GENERIC);
                CHECK(event->error_message.length > 0);
                errors++;
            }
        }
        CHECK_I64(errors, failed ? 1 : 0);
        int64_t length;
        uint8_t *bytes = read_segment(&rig, recording.id, 0, &length);
        CHECK(NULL != bytes);
        for (int64_t at = 0; at < stop->position; at += 1056)
        {
            CHECK_I64(asi_get_i32(bytes + at), 1032);
            CHECK_I64(asi_get_i32(bytes + at + 8), at);
        }
        free(bytes);
        raw_forget(session);
    }
    CHECK(!failed);
    raw_close(session);
}

static void signals_are_dropped_when_their_session_is_gone(void)
{
    raw_session *first = raw_connect(&rig);
    raw_recording recording = raw_start(first, 2050, true);
    asi_codec_request request = request_of(ASI_CODEC_CLOSE_SESSION, AS_NULL_VALUE);
    raw_send(first, &request);
    raw_session *session = raw_connect(&rig);
    const int64_t end = publish(&rig, recording.publication, 100, 10);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, recording.id) == end);
    as_publication_close(recording.publication);
    UNTIL(&rig, raw_position(session, ASI_CODEC_STOP_POSITION, recording.id) == end);
    raw_close(first);
    raw_close(session);
}

static void a_clean_end_stores_the_stop_positions(const char *threading)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.threading.mode", threading);
    rig.has_threads = 0 != strcmp(threading, "INVOKER");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_start(session, 2060, false);
    const int64_t end = publish(&rig, recording.publication, 1000, 200);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, recording.id) == end);
    rig_close_archive(&rig);
    raw_close(session);
    rig_open_archive(&rig);
    session = raw_connect(&rig);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, recording.id), end);
    raw_close(session);
    rig_close(&rig);
}

static void a_clean_end_in_every_threading_mode(void)
{
    a_clean_end_stores_the_stop_positions("INVOKER");
    a_clean_end_stores_the_stop_positions("SHARED");
    a_clean_end_stores_the_stop_positions("DEDICATED");
}

static int64_t sync_count;

static int count_fsync(void *context, int fd)
{
    (void)context;
    (void)fd;
    sync_count++;
    return 0;
}

static int count_sync_directory(void *context, const char *path)
{
    (void)context;
    (void)path;
    sync_count++;
    return 0;
}

/* A sync takes seconds on a disk that is busy, and an archive of one thread stands still for it. */
static void nothing_is_synced_that_need_not_be(void)
{
    rig_open(&rig);
    rig.files.fsync = count_fsync;
    rig.files.fdatasync = count_fsync;
    rig.files.sync_directory = count_sync_directory;
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    raw_recording recording = raw_record(session, 2080, 100, 10);
    raw_close(session);
    rig_close_archive(&rig);
    sync_count = 0;
    rig_open_archive(&rig);
    CHECK_I64(sync_count, 0); /* a start */
    session = raw_connect(&rig);
    char channel[256];
    asi_catalog_record record;
    CHECK(asi_catalog_find(rig.archive->catalog, recording.id, &record));
    snprintf(channel, sizeof(channel), RIG_CHANNEL "|init-term-id=%d|term-id=%d|term-offset=%" PRId64, record.initial_term_id,
        record.initial_term_id, record.stop_position);
    asi_codec_request request = extend_of(recording.id, RIG_CHANNEL, 2080, true);
    raw_ask_ok(session, &request);
    recording.correlation_id = request.correlation_id;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, 2080, &recording.publication), AS_OK);
    raw_await_signal(session, AS_SIGNAL_EXTEND, request.correlation_id);
    raw_finish(session, &recording, publish(&rig, recording.publication, 100, 10));
    CHECK_I64(sync_count, 0); /* an extension */
    raw_close(session);
    rig_close(&rig);
}

int main(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    RUN(a_failing_disk_never_advances_the_position);
    RUN(signals_are_dropped_when_their_session_is_gone);
    rig_close(&rig);
    RUN(s26_low_storage_to_the_byte);
    RUN(s30_checksums_take_the_place_of_the_session_id);
    RUN(a_clean_end_in_every_threading_mode);
    RUN(nothing_is_synced_that_need_not_be);
    return 0;
}
