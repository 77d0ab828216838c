/* Goal: faults of clients, publishers and disks, and large amounts of data, affect no other client, and the client that asked
 * gets an error. Method: a bare session (server_rig.h) against an invoked archive; logs of publications are damaged in place,
 * as a broken publisher would. Spec: 07 §10. */
#define _GNU_SOURCE /* memmem */
#include "server_rig.h"
#include "server/report.h"

static test_rig rig;

/* Writes `length` as the frame length behind what the publication has published. */
static void break_log(const as_publication *publication, int32_t length)
{
    as_publication_constants constants;
    char path[AS_PATH_MAX];
    as_publication_get_constants(publication, &constants);
    snprintf(path, sizeof(path), "%s/publications/%" PRId64 ".logbuffer", rig.aeron_dir, constants.original_registration_id);
    const int64_t position = as_publication_position(publication);
    const int64_t term = position / constants.term_length % 3;
    FILE *file = fopen(path, "r+b");
    CHECK(NULL != file);
    CHECK(0 == fseek(file, (long)(term * constants.term_length + position % constants.term_length), SEEK_SET));
    CHECK(1 == fwrite(&length, sizeof(length), 1, file) && 0 == fclose(file));
}

static void a_broken_publisher_ends_its_recording(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording other = raw_start(session, 6001, true);
    const raw_recording broken = raw_start(session, 6002, true);
    const int64_t end = publish(&rig, broken.publication, 1000, 10);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, broken.id) == end);
    raw_forget(session);
    break_log(broken.publication, 7);
    const asi_codec_event *event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, broken.correlation_id);
    CHECK_I64(event->code, ASI_CODEC_ERROR);
    CHECK_I64(event->relevant_id, ASI_CODEC_E_GENERIC);
    CHECK(NULL != memmem(event->error_message.data, (size_t)event->error_message.length, "broken frame at position", 24));
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, broken.correlation_id)->position, end);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, broken.id), end);
    const int64_t other_end = publish(&rig, other.publication, 1000, 10);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, other.id) == other_end);
    as_publication_close(other.publication);
    as_publication_close(broken.publication);
    raw_close(session);
}

static void a_broken_client_stops_no_other(void)
{
    raw_session *broken = raw_connect(&rig);
    raw_session *session = raw_connect(&rig);
    break_log(broken->requests, 7);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    for (int i = 0; i < 20; i++)
    {
        CHECK_I64(raw_ask_ok(session, &request), 42);
    }
    raw_close(broken);
    raw_close(session);
}

/* Sessions are counted by the archive itself here, which the test's thread runs. */
static void a_refused_client_may_close_at_once(void)
{
    UNTIL(&rig, 0 == rig.archive->sessions->count);
    raw_session *session = raw_open(&rig);
    raw_send_connect(session, 2 << 16);
    session->id = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, session->last_correlation_id)->control_session_id;
    const int64_t errors = as_counter_get(rig.archive->counters.errors);
    asi_codec_request request = request_of(ASI_CODEC_CLOSE_SESSION, AS_NULL_VALUE);
    raw_send(session, &request);
    UNTIL(&rig, 0 == rig.archive->sessions->count);
    CHECK_I64(as_counter_get(rig.archive->counters.errors), errors);
    raw_close(session);
}

static void a_client_that_does_not_read_delays_no_other(void)
{
    raw_session *silent = raw_connect(&rig);
    raw_session *session = raw_connect(&rig);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    for (int i = 0; i < 600; i++)
    {
        raw_send(silent, &request); /* more answers than its window holds */
    }
    for (int i = 0; i < 20; i++)
    {
        CHECK_I64(raw_ask_ok(session, &request), 42);
    }
    const raw_recording recording = raw_record(session, 6003, 1000, 200);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, recording.id), 62 * 1056 * 3 + 14 * 1056 + 3 * 64);
    raw_close(silent);
    raw_close(session);
}

/* -- replays ------------------------------------------------------------------------------------------------------------------- */

static void count_fragment(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)data;
    (void)length;
    (void)header;
    ++*(int64_t *)context;
}

static int64_t count_of(const raw_session *session, int64_t correlation_id)
{
    int64_t count = 0;
    for (int i = 0; i < session->event_count; i++)
    {
        count += session->events[i].correlation_id == correlation_id ? 1 : 0;
    }
    return count;
}

/* Answers and signals of three clients that record and ask at the same time. */
static void each_session_hears_of_its_own_requests_only(void)
{
    enum { COUNT = 3 };
    raw_session *sessions[COUNT];
    raw_recording recordings[COUNT];
    asi_codec_request lists[COUNT];
    for (int i = 0; i < COUNT; i++)
    {
        sessions[i] = raw_connect(&rig);
        recordings[i] = raw_start(sessions[i], 6020 + i, true);
        raw_forget(sessions[i]);
    }
    for (int i = 0; i < COUNT; i++)
    {
        publish(&rig, recordings[i].publication, 1000, 5);
        lists[i] = request_of(ASI_CODEC_LIST_RECORDINGS, recordings[0].id);
        lists[i].record_count = COUNT;
        raw_send(sessions[i], &lists[i]);
        as_publication_close(recordings[i].publication);
    }
    for (int i = 0; i < COUNT; i++)
    {
        CHECK_I64(raw_await_signal(sessions[i], AS_SIGNAL_STOP, recordings[i].correlation_id)->recording_id, recordings[i].id);
        UNTIL(&rig, (raw_poll(sessions[i]), COUNT == count_of(sessions[i], lists[i].correlation_id)));
        for (int j = 0; j < sessions[i]->event_count; j++)
        {
            CHECK_I64(sessions[i]->events[j].control_session_id, sessions[i]->id);
        }
        CHECK_I64(sessions[i]->event_count, COUNT + 1);
    }
    for (int i = 0; i < COUNT; i++)
    {
        raw_close(sessions[i]);
    }
}

static void a_reader_that_pauses_delays_no_other_and_misses_nothing(void)
{
    enum { COUNT = 500 };
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 6030, 1000, COUNT);
    as_subscription *readers[2];
    int64_t fragments[2] = { 0, 0 };
    for (int i = 0; i < 2; i++)
    {
        asi_codec_request request = replay_of(recording.id, 0, -1, "aeron:ipc", 6130 + i);
        CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc", 6130 + i, &readers[i]), AS_OK);
        raw_ask_ok(session, &request);
    }
    UNTIL(&rig, as_subscription_poll(readers[1], count_fragment, &fragments[1], 10) >= 0 && COUNT == fragments[1]);
    UNTIL(&rig, 1 == rig.archive->uses->count[ASI_USE_REPLAYS]);
    UNTIL(&rig, as_subscription_poll(readers[0], count_fragment, &fragments[0], 10) >= 0 && COUNT == fragments[0]);
    UNTIL(&rig, 0 == rig.archive->uses->count[ASI_USE_REPLAYS]);
    as_subscription_close(readers[0]);
    as_subscription_close(readers[1]);
    raw_close(session);
}

/* A bounded replay of 20 messages whose counter, set within the third, is closed before the replay or at the limit. */
static void a_final_limit_within_a_frame_ends_the_replay(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 6004, 1000, 20);
    const int64_t limits[] = { 2 * 1056 + 500, 2 * 1056 + 8, 2 * 1056 + 32, 2 * 1056 };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
    {
        as_counter *counter = NULL;
        as_subscription *subscription = NULL;
        int64_t fragments = 0;
        CHECK_I64(as_client_add_counter(rig.client, 4711, NULL, 0, "limit", &counter), AS_OK);
        as_counter_set(counter, limits[i]);
        CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc", 6104, &subscription), AS_OK);
        asi_codec_request request = replay_of(recording.id, 0, -1, "aeron:ipc", 6104);
        request.template_id = ASI_CODEC_BOUNDED_REPLAY;
        request.limit_counter_id = as_counter_id(counter);
        raw_ask_ok(session, &request);
        UNTIL(&rig, as_subscription_poll(subscription, count_fragment, &fragments, 10) >= 0 && 2 == fragments);
        rig_turn_times(&rig, 50);
        CHECK_I64(rig.archive->uses->count[ASI_USE_REPLAYS], 1);
        as_counter_close(counter);
        UNTIL(&rig, as_subscription_poll(subscription, count_fragment, &fragments, 10) >= 0 && 0 == rig.archive->uses->count[ASI_USE_REPLAYS]);
        CHECK_I64(fragments, 2);
        as_subscription_close(subscription);
        raw_forget(session);
    }
    raw_close(session);
}

/* The last frame of the recording, and one longer than is read at a time, with a length that reaches too far. */
static void a_frame_that_never_ends_fails_the_replay(void)
{
    raw_session *session = raw_connect(&rig);
    const int64_t rows[][2] = { { 19 * 1056, 1100 }, { 3 * 1056, 5000 } };
    for (int i = 0; i < 2; i++)
    {
        const raw_recording recording = raw_record(session, 6010 + i, 1000, 20);
        const int32_t length = (int32_t)rows[i][1];
        char path[AS_PATH_MAX];
        snprintf(path, sizeof(path), "%s/%" PRId64 "-0.rec", rig.archive_dir, recording.id);
        FILE *file = fopen(path, "r+b");
        CHECK(NULL != file && 0 == fseek(file, (long)rows[i][0], SEEK_SET) && 1 == fwrite(&length, 4, 1, file) &&
            0 == fclose(file));
        as_subscription *subscription = NULL;
        int64_t fragments = 0;
        CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc", 6110, &subscription), AS_OK);
        asi_codec_request request = replay_of(recording.id, 0, -1, "aeron:ipc", 6110);
        request.file_io_max_length = 1408;
        raw_ask_ok(session, &request);
        raw_forget(session);
        UNTIL(&rig, as_subscription_poll(subscription, count_fragment, &fragments, 10) >= 0 && 0 == rig.archive->uses->count[ASI_USE_REPLAYS]);
        const asi_codec_event *event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id);
        static const char BEGIN[] = "unexpected end of recording at position=";
        CHECK(0 == strncmp(event->error_message.data, BEGIN, sizeof(BEGIN) - 1));
        as_subscription_close(subscription);
    }
    raw_close(session);
}

static void a_replay_that_is_not_running_yet_has_no_session_to_stop(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 6005, 1000, 20);
    asi_codec_request replay = replay_of(recording.id, 0, -1, "aeron:ipc", 6105);
    asi_codec_request stop = request_of(ASI_CODEC_STOP_REPLAY, AS_NULL_VALUE);
    stop.replay_session_id = 0;
    raw_send(session, &replay);
    raw_send(session, &stop); /* routed in the same cycle, before the driver has made the publication */
    const asi_codec_event *event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, replay.correlation_id);
    CHECK_I64(event->code, ASI_CODEC_OK);
    raw_close(session);
    rig.clock_ahead_ns += 6 * RIG_SECOND;
    UNTIL(&rig, 0 == rig.archive->uses->count[ASI_USE_REPLAYS]);
}

/* -- size ------------------------------------------------------------------------------------------------------------------------ */

static void a_listing_shows_recordings_as_they_are_when_sent(void)
{
    raw_session *session = raw_connect(&rig);
    raw_recording recording = raw_start(session, 6006, true);
    asi_codec_request list = request_of(ASI_CODEC_LIST_RECORDINGS, recording.id);
    list.record_count = 1000;
    const int64_t end = publish(&rig, recording.publication, 1000, 5);
    raw_send(session, &list);
    CHECK_I64(raw_await(session, ASI_CODEC_RECORDING_DESCRIPTOR, list.correlation_id)->stop_position, AS_NULL_VALUE);
    CHECK_I64(raw_await(session, ASI_CODEC_CONTROL_RESPONSE, list.correlation_id)->relevant_id, recording.id + 1);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, recording.id) == end);
    raw_finish(session, &recording, end);
    raw_send(session, &list);
    CHECK_I64(raw_await(session, ASI_CODEC_RECORDING_DESCRIPTOR, list.correlation_id)->stop_position, end);
    raw_close(session);
}

/* A catalog that outgrows its first capacity while the archive runs, with thousands of recordings, opens again. */
static void a_large_catalog(void)
{
    enum { COUNT = 20000, MORE = 40 };
    rig_close(&rig);
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.catalog.capacity", "64k");
    rig_open_archive(&rig);
    const asi_recording_params params = { .stop_timestamp_ms = 1, .segment_file_length = RIG_SEGMENT_LENGTH,
        .term_buffer_length = RIG_TERM_LENGTH, .mtu_length = 1408, .stream_id = 6007,
        .stripped_channel = asi_text_of("aeron:ipc"), .original_channel = asi_text_of("aeron:ipc?alias=many"),
        .source_identity = asi_text_of("aeron:ipc") };
    for (int64_t i = 0; i < COUNT; i++)
    {
        int64_t id;
        CHECK_I64(asi_catalog_add(rig.archive->catalog, &params, &id), AS_OK);
        CHECK_I64(id, i);
    }
    raw_session *session = raw_connect(&rig);
    for (int i = 0; i < MORE; i++)
    {
        CHECK_I64(raw_record(session, 6008, 1000, 3).id, COUNT + i);
        raw_forget(session);
    }
    raw_close(session);
    rig_close_archive(&rig);
    rig_open_archive(&rig);
    session = raw_connect(&rig);
    asi_codec_request last = request_of(ASI_CODEC_FIND_LAST_MATCHING_RECORDING, 0);
    last.stream_id = 6007;
    last.session_id = 0;
    last.channel = asi_codec_text("alias=many");
    CHECK_I64(raw_ask_ok(session, &last), COUNT - 1);
    for (int64_t id = 0; id < COUNT + MORE; id += 997)
    {
        CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, id), id < COUNT ? 0 : 3 * 1056);
        raw_forget(session);
    }
    raw_close(session);
}

/* Its counters are the sign of a living archive with the same id: they go with it, not when the driver looks for dead clients. */
static void a_closed_archive_leaves_no_counters(void)
{
    as_inspector *inspector = NULL;
    int64_t archive_id = 42;
    rig_close_archive(&rig);
    CHECK_I64(as_inspector_open(rig.aeron_dir, &inspector), AS_OK);
    /* A command that is answered after the archive's last ones: the driver has worked off those. */
    as_counter *counter = NULL;
    CHECK_I64(as_client_add_counter(rig.client, 4711, NULL, 0, "after", &counter), AS_OK);
    for (int32_t id = 0; id <= as_inspector_max_counter_id(inspector); id++)
    {
        as_counter_row row;
        if (AS_OK == as_inspector_counter(inspector, id, &row) && row.type_id > ASI_ARCHIVE_COUNTER_RECORDING_POSITION &&
            row.type_id <= ASI_ARCHIVE_COUNTER_CONTROL_SESSION)
        {
            CHECK(0 != memcmp(row.key, &archive_id, sizeof(archive_id)));
        }
    }
    as_counter_close(counter);
    as_inspector_close(inspector);
    rig_open_archive(&rig);
}

/* -- the error log ------------------------------------------------------------------------------------------------------------- */

/* A mistake of a client's is answered, and is no error of the archive. */
static void mistakes_are_answered_and_not_logged(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 6101, 1000, 20);
    const int64_t errors = as_counter_get(rig.archive->counters.errors);
    asi_codec_request request = request_of(ASI_CODEC_UPDATE_CHANNEL, recording.id);
    request.channel = asi_codec_text("bogus:1");
    CHECK_I64(raw_ask(session, &request)->code, ASI_CODEC_ERROR);
    request = request_of(ASI_CODEC_TRUNCATE_RECORDING, recording.id);
    request.position = 64;
    check_error(raw_ask(session, &request), ASI_CODEC_E_GENERIC, "64 position not aligned to a data header");
    CHECK_I64(as_counter_get(rig.archive->counters.errors), errors);
    raw_close(session);
}

static bool is_counted_as(const char *kind)
{
    char text[128];
    snprintf(text, sizeof(text), "ERROR - %s (more of them, not told apart any more)", kind);
    return rig_has_logged(&rig, text);
}

/* Requests that fail, each in words with a number or a name of its own. */
static void fail_in_each_way(raw_session *session, int64_t recording_id)
{
    char path[AS_PATH_MAX];
    asi_codec_request request = start_of("aeron:udp?alias=nowhere", 6111, true);
    CHECK_I64(raw_ask(session, &request)->code, ASI_CODEC_ERROR);
    request = replay_of(recording_id, 0, -1, "aeron:udp?endpoint=localhost:0", 6112);
    CHECK_I64(raw_ask(session, &request)->code, ASI_CODEC_ERROR);
    request = replay_of(recording_id, 0, -1, "aeron:udp?endpoint=localhost:20999", 6113);
    raw_ask_ok(session, &request);
    rig.clock_ahead_ns += 6 * RIG_SECOND; /* nobody listens */
    UNTIL(&rig, 0 == rig.archive->uses->count[ASI_USE_REPLAYS]);
    request = request_of(ASI_CODEC_REPLICATE_2, 0);
    request.stream_id = 10;
    request.channel = asi_codec_text("aeron:udp?endpoint=localhost:20998");
    request.src_response_channel = asi_codec_text("aeron:udp?endpoint=localhost:0");
    raw_ask_ok(session, &request);
    while (NULL != rig.archive->replications)
    {
        rig.clock_ahead_ns += RIG_SECOND / 10;
        rig_turn_times(&rig, 100);
        raw_poll(session);
    }
    snprintf(path, sizeof(path), "%s/%" PRId64 "-0.rec", rig.archive_dir, recording_id);
    CHECK(0 == unlink(path));
    request = request_of(ASI_CODEC_TRUNCATE_RECORDING, recording_id);
    request.position = 64;
    CHECK_I64(raw_ask(session, &request)->code, ASI_CODEC_ERROR);
}

/* The texts of clients' requests have numbers and names of the clients' choice. When such texts fill their quarter of the log,
 * those are recorded by their kind, and the archive's own errors still have room. */
static void texts_of_requests_take_a_quarter_of_the_log(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.replication.channel", "aeron:udp?endpoint=localhost:0");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 6110, 1000, 20);
    const asi_error_log *log = &rig.archive->error_log;
    /* Not after each text: under the thread sanitizer a search takes 10 ms, and the client must run each 10 s. */
    for (int count = 0; 0 != count % 64 || !rig_has_logged(&rig, "WARN - filling (more"); count++)
    {
        char text[4096];
        snprintf(text, sizeof(text), "%0*" PRId64, log->next_offset < log->length / 5 ? 4000 : 8, log->observation_count);
        asi_archive_log_of_peer(rig.archive, "WARN", 0, text, "filling");
    }
    fail_in_each_way(session, recording.id);
    CHECK(is_counted_as("channels that can't be recorded"));
    CHECK(is_counted_as("replay publications that can't be created"));
    CHECK(is_counted_as("replays that failed"));
    CHECK(is_counted_as("replications that failed"));
    CHECK(is_counted_as("requests that files or the catalog refused"));
    CHECK(log->next_offset < log->length / 4 + 4096);
    raw_close(session);
    rig_close(&rig);
}

int main(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    RUN(a_closed_archive_leaves_no_counters);
    RUN(a_broken_publisher_ends_its_recording);
    RUN(a_broken_client_stops_no_other);
    RUN(a_refused_client_may_close_at_once);
    RUN(a_client_that_does_not_read_delays_no_other);
    RUN(each_session_hears_of_its_own_requests_only);
    RUN(a_reader_that_pauses_delays_no_other_and_misses_nothing);
    RUN(a_final_limit_within_a_frame_ends_the_replay);
    RUN(a_frame_that_never_ends_fails_the_replay);
    RUN(a_replay_that_is_not_running_yet_has_no_session_to_stop);
    RUN(a_listing_shows_recordings_as_they_are_when_sent);
    RUN(a_large_catalog);
    RUN(mistakes_are_answered_and_not_logged);
    rig_close(&rig);
    RUN(texts_of_requests_take_a_quarter_of_the_log);
    return 0;
}
