/* Goal: recordings begin, grow, are extended, end and fail as specified, and the recorded position never covers what is not in
 * the file. Method: a bare session against an invoked archive; segment files are read back as bytes; the disk fails at write N
 * for every N. Names carry the scenario of Spec: 08 §19. */
#include "server_rig.h"
#include "store/checksum.h"

static test_rig rig;

static void stop_subscription(raw_session *session, int64_t subscription_id)
{
    asi_codec_request request = request_of(ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, AS_NULL_VALUE);
    request.subscription_id = subscription_id;
    CHECK_I64(raw_ask_ok(session, &request), 0);
}

static int64_t list_count(raw_session *session)
{
    asi_codec_request request = request_of(ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS, AS_NULL_VALUE);
    request.record_count = 1000;
    request.pseudo_index = 0;
    raw_forget(session);
    CHECK_I64(raw_ask(session, &request)->code, ASI_CODEC_SUBSCRIPTION_UNKNOWN);
    int64_t count = 0;
    for (int i = 0; i < session->event_count; i++)
    {
        count += ASI_CODEC_RECORDING_SUBSCRIPTION_DESCRIPTOR == session->events[i].template_id ? 1 : 0;
    }
    return count;
}

static void s18_a_recording_starts_with_its_counter(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_start(session, 2018, false);
    as_publication_constants publication;
    as_publication_get_constants(recording.publication, &publication);
    const asi_codec_event *signal = raw_await_signal(session, AS_SIGNAL_START, recording.correlation_id);
    CHECK_I64(signal->position, 0);
    CHECK_I64(signal->subscription_id, recording.subscription_id);
    CHECK_I64(signal->control_session_id, session->id);
    as_inspector *inspector = NULL;
    CHECK_I64(as_inspector_open(rig.aeron_dir, &inspector), AS_OK);
    bool found = false;
    for (int32_t id = 0; id <= as_inspector_max_counter_id(inspector); id++)
    {
        as_counter_row row;
        if (AS_OK == as_inspector_counter(inspector, id, &row) && ASI_ARCHIVE_COUNTER_RECORDING_POSITION == row.type_id)
        {
            char label[512];
            snprintf(label, sizeof(label), "rec-pos: %" PRId64 " %d 2018 aeron:ipc - archiveId=42", recording.id,
                publication.session_id);
            CHECK_TEXT(row.label, label);
            CHECK_I64(asi_get_i64(row.key), recording.id);
            CHECK_I64(asi_get_i32(row.key + 8), publication.session_id);
            CHECK_I64(asi_get_i32(row.key + 12), 9);
            CHECK(0 == memcmp(row.key + 16, "aeron:ipc", 9));
            CHECK_I64(asi_get_i64(row.key + 25), 42);
            found = true;
        }
    }
    CHECK(found);
    as_inspector_close(inspector);
    const int64_t end = publish(&rig, recording.publication, 100, 10);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, recording.id) == end);
    CHECK_I64(raw_position(session, ASI_CODEC_MAX_RECORDED_POSITION, recording.id), end);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, recording.id), AS_NULL_VALUE);
    CHECK_I64(raw_position(session, ASI_CODEC_START_POSITION, recording.id), 0);
    stop_subscription(session, recording.subscription_id);
    raw_await_signal(session, AS_SIGNAL_STOP, recording.correlation_id);
    CHECK_I64(raw_position(session, ASI_CODEC_RECORDING_POSITION, recording.id), AS_NULL_VALUE);
    CHECK_I64(raw_position(session, ASI_CODEC_MAX_RECORDED_POSITION, recording.id), end);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, recording.id), end);
    as_publication_close(recording.publication);
    raw_close(session);
}

static void s19_one_subscription_per_key(void)
{
    raw_session *session = raw_connect(&rig);
    asi_codec_request request = start_of("aeron:ipc?term-length=64k", 2019, false);
    const int64_t first = raw_ask_ok(session, &request);
    request = start_of("aeron:ipc?alias=other", 2019, false);
    check_error(raw_ask(session, &request), ASI_CODEC_E_ACTIVE_SUBSCRIPTION,
        "recording exists for streamId=2019 channel=aeron:ipc?alias=other");
    request = start_of("aeron-spy:aeron:ipc", 2019, false);
    check_error(raw_ask(session, &request), ASI_CODEC_E_ACTIVE_SUBSCRIPTION,
        "recording exists for streamId=2019 channel=aeron-spy:aeron:ipc");
    request = start_of("aeron:ipc?session-id=5", 2019, false);
    const int64_t second = raw_ask_ok(session, &request);
    CHECK(second != first);
    request = request_of(ASI_CODEC_STOP_RECORDING, AS_NULL_VALUE);
    request.channel = asi_codec_text("aeron:ipc?session-id=5");
    request.stream_id = 2019;
    CHECK_I64(raw_ask_ok(session, &request), 0);
    stop_subscription(session, first);
    request = start_of("aeron:ipc", 2019, false);
    stop_subscription(session, raw_ask_ok(session, &request)); /* the key is free again */
    raw_close(session);
}

static void s20_s21_s22_each_image_is_a_recording_of_its_own(void)
{
    raw_session *session = raw_connect(&rig);
    asi_codec_request request = start_of(RIG_CHANNEL, 2020, false);
    const int64_t subscription_id = raw_ask_ok(session, &request);
    as_publication *a = NULL;
    as_publication *b = NULL;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, RIG_CHANNEL, 2020, &a), AS_OK);
    const int64_t first = raw_await_signal(session, AS_SIGNAL_START, request.correlation_id)->recording_id;
    raw_forget(session);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, RIG_CHANNEL, 2020, &b), AS_OK);
    const int64_t second = raw_await_signal(session, AS_SIGNAL_START, request.correlation_id)->recording_id;
    CHECK(first != second);
    const int64_t end_a = publish(&rig, a, 333, 100);
    const int64_t end_b = publish(&rig, b, 44, 7);
    raw_forget(session);
    as_publication_close(a);
    const asi_codec_event *stop = raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id);
    CHECK_I64(stop->recording_id, first);
    CHECK_I64(stop->position, end_a);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, first), end_a);
    CHECK_I64(list_count(session), 1); /* without auto-stop it goes on */
    as_publication_close(b);
    stop = raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id);
    CHECK_I64(stop->position, end_b);
    CHECK_I64(list_count(session), 1);
    raw_forget(session);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, RIG_CHANNEL, 2020, &a), AS_OK);
    CHECK(raw_await_signal(session, AS_SIGNAL_START, request.correlation_id)->recording_id > second);
    stop_subscription(session, subscription_id);
    CHECK_I64(list_count(session), 0);
    as_publication_close(a);
    raw_record(session, 2021, 50, 5); /* with auto-stop */
    CHECK_I64(list_count(session), 0);
    raw_close(session);
}

static void s23_s24_stopping_what_is_and_what_is_not_recorded(void)
{
    raw_session *session = raw_connect(&rig);
    asi_codec_request request = request_of(ASI_CODEC_STOP_RECORDING, AS_NULL_VALUE);
    request.channel = asi_codec_text("aeron:ipc");
    request.stream_id = 9999;
    check_error(raw_ask(session, &request), ASI_CODEC_E_UNKNOWN_SUBSCRIPTION,
        "no recording found for streamId=9999 channel=aeron:ipc");
    request.channel = asi_codec_text("bogus");
    check_error(raw_ask(session, &request), ASI_CODEC_E_GENERIC, "Aeron URIs must start with 'aeron:', found: bogus");
    request = request_of(ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, AS_NULL_VALUE);
    request.subscription_id = 987654321;
    check_error(raw_ask(session, &request), ASI_CODEC_E_UNKNOWN_SUBSCRIPTION,
        "no recording subscription found for subscriptionId=987654321");
    request = request_of(ASI_CODEC_STOP_RECORDING_BY_IDENTITY, 99999);
    check_error(raw_ask(session, &request), ASI_CODEC_E_UNKNOWN_RECORDING, "unknown recording id: 99999");
    const raw_recording recording = raw_start(session, 2024, false);
    const int64_t end = publish(&rig, recording.publication, 700, 3);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, recording.id) == end);
    request = request_of(ASI_CODEC_STOP_RECORDING_BY_IDENTITY, recording.id);
    CHECK_I64(raw_ask_ok(session, &request), 1);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, recording.correlation_id)->position, end);
    CHECK_I64(raw_ask_ok(session, &request), 0);
    CHECK_I64(list_count(session), 0);
    as_publication_close(recording.publication);
    raw_close(session);
}

/* An archive of one thread: the request behind an OK finds over what the OK said was stopped. */
static void s23_what_was_stopped_is_over(void)
{
    raw_session *session = raw_connect(&rig);
    for (int32_t way = 0; way < 3; way++)
    {
        raw_recording recording = raw_start(session, 2070 + way, false);
        const int64_t end = publish(&rig, recording.publication, 100, 10);
        UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, recording.id) == end);
        const int32_t templates[] = { ASI_CODEC_STOP_RECORDING, ASI_CODEC_STOP_RECORDING_SUBSCRIPTION,
            ASI_CODEC_STOP_RECORDING_BY_IDENTITY };
        asi_codec_request request = request_of(templates[way], recording.id);
        request.channel = asi_codec_text(RIG_CHANNEL);
        request.stream_id = recording.stream_id;
        request.subscription_id = recording.subscription_id;
        raw_ask_ok(session, &request);
        CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, recording.id), end);
        as_publication_close(recording.publication);
    }
    raw_close(session);
}

/* Also one that was told to begin and nothing more. */
static void s23_what_was_stopped_can_be_extended(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_start(session, 2074, false);
    stop_subscription(session, recording.subscription_id);
    asi_codec_request request = extend_of(recording.id, "aeron:ipc?session-id=99", 2074, false);
    stop_subscription(session, raw_ask_ok(session, &request));
    request = request_of(ASI_CODEC_PURGE_RECORDING, recording.id);
    raw_ask_ok(session, &request);
    as_publication_close(recording.publication);
    raw_close(session);
}

static void s51_a_replay_that_was_stopped_is_over(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 2075, 100, 10);
    for (int i = 0; i < 3; i++)
    {
        asi_codec_request request = replay_of(recording.id, AS_NULL_VALUE, AS_NULL_VALUE, RIG_CHANNEL, 2076);
        raw_ask_ok(session, &request);
    }
    asi_codec_request request = request_of(ASI_CODEC_STOP_ALL_REPLAYS, recording.id);
    raw_ask_ok(session, &request);
    request = request_of(ASI_CODEC_PURGE_RECORDING, recording.id);
    raw_ask_ok(session, &request);
    raw_close(session);
}

static void start_errors(void)
{
    static const char *const ROWS[][2] = {
        { "", "Aeron URIs must start with 'aeron:', found: " },
        { "bogus", "Aeron URIs must start with 'aeron:', found: bogus" },
        { "aeron:nonsense", "unknown media: nonsense" },
        { "aeron:ipc?alias=a|", "no more input found, state=PARAMS_KEY in aeron:ipc?alias=a|" },
        { "aeron:ipc?alias", "no more input found, state=PARAMS_KEY in aeron:ipc?alias" },
    };
    raw_session *session = raw_connect(&rig);
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_codec_request request = start_of(ROWS[i][0], 1, false);
        check_error(raw_ask(session, &request), ASI_CODEC_E_GENERIC, ROWS[i][1]);
    }
    asi_codec_request request = start_of("aeron:udp?endpoint=10.99.99.99:24325", 1, false);
    request.source_location = AS_SOURCE_REMOTE;
    const asi_codec_event *event = raw_ask(session, &request); /* the driver's own words */
    CHECK_I64(event->code, ASI_CODEC_ERROR);
    CHECK_I64(event->relevant_id, ASI_CODEC_E_GENERIC);
    CHECK(event->error_message.length > 0);
    CHECK_I64(list_count(session), 0);
    raw_close(session);
}

static void s35_a_local_udp_stream_is_spied_on(void)
{
    raw_session *session = raw_connect(&rig);
    asi_codec_request request = start_of("aeron:udp?endpoint=localhost:24325|mtu=1408|alias=spied", 2035, false);
    const int64_t subscription_id = raw_ask_ok(session, &request);
    request = request_of(ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS, AS_NULL_VALUE);
    request.record_count = 1;
    request.pseudo_index = 0;
    raw_send(session, &request);
    const asi_codec_event *event =
        raw_await(session, ASI_CODEC_RECORDING_SUBSCRIPTION_DESCRIPTOR, request.correlation_id);
    static const char EXPECTED[] = "aeron-spy:aeron:udp?endpoint=localhost:24325|alias=spied";
    CHECK_I64(event->stripped_channel.length, sizeof(EXPECTED) - 1);
    CHECK(0 == memcmp(event->stripped_channel.data, EXPECTED, sizeof(EXPECTED) - 1));
    stop_subscription(session, subscription_id);
    raw_close(session);
}

static void s25_s26_limits(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.max.concurrent.recordings", "1");
    rig_set(&rig, "aeron.archive.low.storage.space.threshold", "1k");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    raw_recording recording = raw_start(session, 2025, true);
    asi_codec_request request = start_of(RIG_CHANNEL, 2026, false);
    check_error(raw_ask(session, &request), ASI_CODEC_E_MAX_RECORDINGS, "max concurrent recordings reached 1");
    request = extend_of(0, RIG_CHANNEL, 2026, false);
    check_error(raw_ask(session, &request), ASI_CODEC_E_MAX_RECORDINGS, "max concurrent recordings reached at 1");
    raw_finish(session, &recording, 0);
    rig.usable_space = 1024;
    request = start_of(RIG_CHANNEL, 2026, false);
    check_error(raw_ask(session, &request), ASI_CODEC_E_STORAGE_SPACE, "low storage threshold=1024 <= usableSpace=1024");
    request = extend_of(recording.id, RIG_CHANNEL, 2025, false);
    check_error(raw_ask(session, &request), ASI_CODEC_E_STORAGE_SPACE, "low storage threshold=1024 <= usableSpace=1024");
    rig.usable_space = 1025;
    request = start_of(RIG_CHANNEL, 2026, false);
    raw_ask_ok(session, &request);
    raw_close(session);
    rig_close(&rig);
}

static void s27_a_full_segment_has_an_empty_one_behind_it(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 2027, 1024 - 32, 128);
    int64_t length;
    uint8_t *full = read_segment(&rig, recording.id, 0, &length);
    CHECK(NULL != full);
    CHECK_I64(length, RIG_SEGMENT_LENGTH);
    CHECK_I64(asi_get_i32(full + RIG_SEGMENT_LENGTH - 1024), 1024);
    free(full);
    uint8_t *empty = read_segment(&rig, recording.id, RIG_SEGMENT_LENGTH, &length);
    CHECK(NULL != empty);
    CHECK_I64(length, RIG_SEGMENT_LENGTH);
    for (int64_t i = 0; i < length; i++)
    {
        CHECK(0 == empty[i]);
    }
    free(empty);
    raw_close(session);
}

static void s28_padding_is_a_header_and_a_hole(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 2028, 1000, 64); /* 1056 each: 62 fit, then 64 bytes of padding */
    int64_t length;
    uint8_t *bytes = read_segment(&rig, recording.id, 0, &length);
    CHECK(NULL != bytes);
    const asi_frame_header *padding = (const asi_frame_header *)(const void *)(bytes + 62 * 1056);
    CHECK_I64(padding->frame_length, RIG_TERM_LENGTH - 62 * 1056);
    CHECK_I64(padding->type, ASI_FRAME_PAD);
    for (int64_t i = 62 * 1056 + 32; i < RIG_TERM_LENGTH; i++)
    {
        CHECK(0 == bytes[i]);
    }
    CHECK_I64(asi_get_i32(bytes + RIG_TERM_LENGTH), 1032);
    free(bytes);
    raw_close(session);
}

static void s29_a_recording_may_start_within_a_term(void)
{
    raw_session *session = raw_connect(&rig);
    static const char *const CHANNEL = "aeron:ipc?term-length=64k|mtu=1408|init-term-id=7|term-id=9|term-offset=96";
    asi_codec_request request = start_of(CHANNEL, 2029, true);
    raw_ask_ok(session, &request);
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, CHANNEL, 2029, &publication), AS_OK);
    const asi_codec_event *signal = raw_await_signal(session, AS_SIGNAL_START, request.correlation_id);
    const int64_t start = 2 * RIG_TERM_LENGTH + 96;
    const int64_t id = signal->recording_id;
    CHECK_I64(signal->position, start);
    const int64_t end = publish(&rig, publication, 10, 3);
    as_publication_close(publication);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id)->position, end);
    int64_t length;
    uint8_t *bytes = read_segment(&rig, id, 2 * RIG_TERM_LENGTH, &length);
    CHECK(NULL != bytes);
    for (int i = 0; i < 96; i++)
    {
        CHECK(0 == bytes[i]);
    }
    CHECK_I64(asi_get_i32(bytes + 96), 42);
    free(bytes);
    CHECK_I64(raw_position(session, ASI_CODEC_START_POSITION, id), start);
    raw_close(session);
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

static void resume_channel(char *to, size_t capacity, int32_t initial_term_id, int64_t position)
{
    snprintf(to, capacity, "%s|init-term-id=%d|term-id=%d|term-offset=%d", RIG_CHANNEL, initial_term_id,
        initial_term_id + (int32_t)(position / RIG_TERM_LENGTH), (int32_t)(position % RIG_TERM_LENGTH));
}

static int32_t initial_term_id_of(raw_session *session, int64_t recording_id, int32_t *session_id, int64_t *stop_position)
{
    asi_codec_request request = request_of(ASI_CODEC_LIST_RECORDING, recording_id);
    raw_send(session, &request);
    const asi_codec_event *descriptor = raw_await(session, ASI_CODEC_RECORDING_DESCRIPTOR, request.correlation_id);
    *session_id = descriptor->session_id;
    *stop_position = descriptor->stop_position;
    return descriptor->initial_term_id;
}

static void s31_s33_a_recording_is_extended(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 2031, 1000, 80);
    int32_t session_id;
    int64_t stop;
    const int32_t initial_term_id = initial_term_id_of(session, recording.id, &session_id, &stop);
    char channel[256];
    resume_channel(channel, sizeof(channel), initial_term_id, stop);
    asi_codec_request request = extend_of(recording.id, channel, 2031, true);
    raw_ask_ok(session, &request);
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, 2031, &publication), AS_OK);
    const asi_codec_event *signal = raw_await_signal(session, AS_SIGNAL_EXTEND, request.correlation_id);
    CHECK_I64(signal->recording_id, recording.id);
    CHECK_I64(signal->position, stop);
    as_publication_constants constants;
    as_publication_get_constants(publication, &constants);
    int32_t new_session_id;
    int64_t new_stop;
    initial_term_id_of(session, recording.id, &new_session_id, &new_stop);
    CHECK_I64(new_session_id, constants.session_id);
    CHECK_I64(new_stop, AS_NULL_VALUE);
    asi_codec_request again = extend_of(recording.id, channel, 2031, true);
    char text[128];
    snprintf(text, sizeof(text), "cannot extend active recording %" PRId64, recording.id);
    check_error(raw_ask(session, &again), ASI_CODEC_E_ACTIVE_RECORDING, text);
    again.stream_id = 2;
    snprintf(text, sizeof(text), "cannot extend recording %" PRId64 " with streamId=2 for existing streamId=2031", recording.id);
    check_error(raw_ask(session, &again), ASI_CODEC_E_UNKNOWN_RECORDING, text);
    const int64_t end = publish(&rig, publication, 1000, 80);
    as_publication_close(publication);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id)->position, end);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, recording.id), end);
    again = extend_of(99999, channel, 2031, true);
    check_error(raw_ask(session, &again), ASI_CODEC_E_UNKNOWN_RECORDING, "unknown recording id: 99999");
    raw_close(session);
}

static void s32_an_image_that_does_not_fit_extends_nothing(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 2032, 1000, 10);
    int32_t session_id;
    int64_t stop;
    const int32_t first = initial_term_id_of(session, recording.id, &session_id, &stop);
    char channels[4][256];
    resume_channel(channels[0], sizeof(channels[0]), first, stop - 1056);
    resume_channel(channels[1], sizeof(channels[1]), first + 1, stop);
    snprintf(channels[2], sizeof(channels[2]), "aeron:ipc?term-length=128k|mtu=1408|init-term-id=%d|term-id=%d|term-offset=%d",
        first, first, (int32_t)stop);
    snprintf(channels[3], sizeof(channels[3]), "aeron:ipc?term-length=64k|mtu=4096|init-term-id=%d|term-id=%d|term-offset=%d",
        first, first, (int32_t)stop);
    static const char *const FIELDS[] = { "joinPosition", "initialTermId", "termBufferLength", "mtuLength" };
    for (int i = 0; i < 4; i++)
    {
        asi_codec_request request = extend_of(recording.id, channels[i], 2032, true);
        raw_ask_ok(session, &request);
        raw_forget(session);
        as_publication *publication = NULL;
        CHECK_I64(as_client_add_exclusive_publication(rig.client, channels[i], 2032, &publication), AS_OK);
        const asi_codec_event *event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id);
        char begin[128];
        snprintf(begin, sizeof(begin), "cannot extend recording %" PRId64 " image.%s=", recording.id, FIELDS[i]);
        CHECK_I64(event->relevant_id, ASI_CODEC_E_INVALID_EXTENSION);
        CHECK(0 == strncmp(event->error_message.data, begin, strlen(begin)));
        CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, recording.id), stop);
        as_publication_close(publication);
        CHECK_I64(list_count(session), 0); /* auto-stop gave it up */
    }
    raw_close(session);
}

static void s34_events_tell_the_progress(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.recording.events.enabled", "true");
    rig_set(&rig, "aeron.archive.recording.events.channel", "aeron:ipc");
    rig_open_archive(&rig);
    raw_session *events = calloc(1, sizeof(*events));
    CHECK(NULL != events);
    events->rig = &rig;
    CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc", 30, &events->responses), AS_OK);
    CHECK_I64(as_fragment_assembler_open(raw_on_message, events, &events->assembler), AS_OK);
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 2034, 1000, 100);
    UNTIL(&rig, (raw_poll(events), events->event_count > 2 &&
        ASI_CODEC_RECORDING_STOPPED == events->events[events->event_count - 1].template_id));
    CHECK_I64(events->events[0].template_id, ASI_CODEC_RECORDING_STARTED);
    CHECK_I64(events->events[0].recording_id, recording.id);
    CHECK_I64(events->events[0].stream_id, 2034);
    CHECK(0 == memcmp(events->events[0].original_channel.data, RIG_CHANNEL, strlen(RIG_CHANNEL)));
    CHECK(0 == memcmp(events->events[0].source_identity.data, "aeron:ipc", 9));
    int64_t position = 0;
    for (int i = 1; i < events->event_count - 1; i++)
    {
        CHECK_I64(events->events[i].template_id, ASI_CODEC_RECORDING_PROGRESS);
        CHECK(events->events[i].position > position);
        position = events->events[i].position;
    }
    CHECK_I64(events->events[events->event_count - 1].stop_position, position);
    as_subscription_close(events->responses);
    as_fragment_assembler_close(events->assembler);
    free(events);
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
    RUN(s18_a_recording_starts_with_its_counter);
    RUN(s19_one_subscription_per_key);
    RUN(s20_s21_s22_each_image_is_a_recording_of_its_own);
    RUN(s23_s24_stopping_what_is_and_what_is_not_recorded);
    RUN(s23_what_was_stopped_is_over);
    RUN(s23_what_was_stopped_can_be_extended);
    RUN(s51_a_replay_that_was_stopped_is_over);
    RUN(start_errors);
    RUN(s35_a_local_udp_stream_is_spied_on);
    RUN(s27_a_full_segment_has_an_empty_one_behind_it);
    RUN(s28_padding_is_a_header_and_a_hole);
    RUN(s29_a_recording_may_start_within_a_term);
    RUN(s31_s33_a_recording_is_extended);
    RUN(s32_an_image_that_does_not_fit_extends_nothing);
    RUN(a_failing_disk_never_advances_the_position);
    RUN(signals_are_dropped_when_their_session_is_gone);
    rig_close(&rig);
    RUN(s25_s26_limits);
    RUN(s30_checksums_take_the_place_of_the_session_id);
    RUN(s34_events_tell_the_progress);
    RUN(a_clean_end_in_every_threading_mode);
    RUN(nothing_is_synced_that_need_not_be);
    return 0;
}
