/* Goal: control sessions as stock peers expect them, from connect to every way of ending. Method: a bare session (server_rig.h)
 * against an invoked archive whose clock is pushed. Names carry the scenario of Spec: 08 §19. */
#include "server_rig.h"
#include "wire/command.h"

static test_rig rig;

/* Sessions of earlier tests end when the archive learns that their clients are gone. */
static raw_session *raw_open_alone(test_rig *of)
{
    UNTIL(of, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == 0);
    return raw_open(of);
}

static raw_session *raw_connect_alone(test_rig *of)
{
    UNTIL(of, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == 0);
    return raw_connect(of);
}

static void s01_connect_is_answered_with_the_session(void)
{
    raw_session *session = raw_open_alone(&rig);
    raw_send_connect(session, 1 << 16 | 99 << 8);
    const asi_codec_event *event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, session->last_correlation_id);
    CHECK_I64(event->code, ASI_CODEC_OK);
    CHECK_I64(event->relevant_id, event->control_session_id);
    CHECK_I64(event->protocol_version, 68608);
    CHECK_I64(session->lengths[0], 44);
    raw_close(session);
}

static void s02_the_answer_is_repeated_until_the_first_request(void)
{
    raw_session *session = raw_open_alone(&rig);
    raw_send_connect(session, ASI_CODEC_PROTOCOL_VERSION);
    for (int i = 1; i <= 4; i++)
    {
        UNTIL(&rig, (raw_poll(session), session->event_count >= i));
        asi_store_relaxed_i64(&rig.clock_ahead_ns, rig.clock_ahead_ns + RIG_SECOND / 4);
    }
    session->id = session->events[0].control_session_id;
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(session, &request), 42);
    raw_forget(session);
    rig.clock_ahead_ns += RIG_SECOND / 2;
    rig_turn_times(&rig, 50);
    raw_poll(session);
    CHECK_I64(session->event_count, 0);
    raw_close(session);
}

static void s03_another_major_version_is_refused_until_the_deadline(void)
{
    raw_session *session = raw_open_alone(&rig);
    const int64_t sessions = rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS);
    raw_send_connect(session, 2 << 16);
    for (int i = 1; i <= 3; i++)
    {
        UNTIL(&rig, (raw_poll(session), session->event_count >= i));
        rig.clock_ahead_ns += RIG_SECOND / 4;
    }
    const asi_codec_event *event = &session->events[0];
    check_error(event, (int32_t)event->control_session_id, "invalid client version 2.0.0, archive is 1.12.0");
    rig.clock_ahead_ns += 6 * RIG_SECOND;
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == sessions);
    raw_close(session);
}

/* Spec: 11 A2, D24 - a request that clients from before 2019 sent: no session, no counter, no word of it. */
static void s04_d24_a_connect_request_of_old_is_passed_over(void)
{
    raw_session *session = raw_open_alone(&rig);
    const int64_t next_id = rig.archive->sessions->next_id;
    const int64_t errors = as_counter_get(rig.archive->counters.errors);
    as_subscription_constants constants;
    as_subscription_get_constants(session->responses, &constants);
    uint8_t bytes[256];
    const size_t length = strlen(constants.channel);
    asi_put_u16(bytes, 16);
    asi_put_u16(bytes + 2, 2);
    asi_put_u16(bytes + 4, 101);
    asi_put_u16(bytes + 6, 13);
    asi_put_i64(bytes + 8, 4711);
    asi_put_i32(bytes + 16, 20);
    asi_put_i32(bytes + 20, ASI_CODEC_PROTOCOL_VERSION);
    asi_put_i32(bytes + 24, (int32_t)length);
    memcpy(bytes + 28, constants.channel, length);
    raw_offer(session, bytes, (int64_t)(28 + length));
    raw_send_connect(session, ASI_CODEC_PROTOCOL_VERSION); /* behind it: when this is answered, that was read */
    CHECK_I64(raw_await(session, ASI_CODEC_CONTROL_RESPONSE, session->last_correlation_id)->code, ASI_CODEC_OK);
    for (int i = 0; i < 60; i++)
    {
        rig.clock_ahead_ns += RIG_SECOND / 10;
        rig_turn_times(&rig, 5);
        raw_poll(session);
    }
    CHECK(NULL == raw_find(session, ASI_CODEC_CONTROL_RESPONSE, 4711));
    CHECK_I64(rig.archive->sessions->next_id, next_id + 1);
    CHECK_I64(as_counter_get(rig.archive->counters.errors), errors);
    raw_close(session);
}

/* Spec: 11 A2, D23 - what a newer schema has in its messages' headers is never compared for equality. */
static void s17_d23_later_schema_versions_are_answered(void)
{
    for (uint16_t version = 14; version <= 15; version++)
    {
        raw_session *session = raw_open_alone(&rig);
        as_subscription_constants constants;
        as_subscription_get_constants(session->responses, &constants);
        asi_codec_request request;
        asi_codec_request_init(&request, ASI_CODEC_AUTH_CONNECT);
        request.stream_id = 20;
        request.client_version = ASI_CODEC_PROTOCOL_VERSION;
        request.channel = asi_codec_text(constants.channel);
        for (int i = 0; i < 2; i++)
        {
            uint8_t bytes[RIG_MESSAGE_CAPACITY];
            int64_t length;
            request.correlation_id = 100 + i;
            CHECK_I64(asi_codec_request_encode(&request, bytes, sizeof(bytes), &length), AS_OK);
            asi_put_u16(bytes + 6, version);
            raw_offer(session, bytes, length);
            const asi_codec_event *event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, 100 + i);
            CHECK_I64(event->code, ASI_CODEC_OK);
            const int64_t session_id = event->control_session_id;
            CHECK(0 == i || 42 == event->relevant_id);
            request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
            request.control_session_id = session_id;
        }
        raw_close(session);
    }
}

static void s09_a_closed_session_leaves_nothing(void)
{
    raw_session *session = raw_connect_alone(&rig);
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSION) == session->id);
    const int64_t sessions = rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS);
    as_image *image = as_subscription_image_at(session->responses, 0);
    CHECK(NULL != image);
    asi_codec_request request = request_of(ASI_CODEC_CLOSE_SESSION, AS_NULL_VALUE);
    raw_forget(session);
    raw_send(session, &request);
    UNTIL(&rig, (raw_poll(session), as_image_is_closed(image)));
    CHECK(as_image_is_publication_revoked(image));
    CHECK(NULL == raw_find(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id));
    CHECK_I64(rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS), sessions - 1);
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSION) != session->id);
    as_image_release(image);
    raw_close(session);
}

static void s10_a_client_that_vanishes_takes_its_session_with_it(void)
{
    raw_session *session = raw_connect_alone(&rig);
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSION) == session->id);
    const int64_t sessions = rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS);
    const int64_t errors = rig_counter(&rig, ASI_ARCHIVE_COUNTER_ERRORS);
    as_publication_close(session->requests);
    session->requests = NULL;
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == sessions - 1);
    CHECK_I64(rig_counter(&rig, ASI_ARCHIVE_COUNTER_ERRORS), errors);
    raw_close(session);
}

static void s11_a_client_that_stops_reading_is_given_up(void)
{
    raw_session *session = raw_connect_alone(&rig);
    const int64_t sessions = rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    for (int i = 0; i < 800; i++)
    {
        raw_send(session, &request); /* 96 bytes of answer each, 32 KiB of window */
    }
    rig_turn_times(&rig, 200);
    CHECK_I64(rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS), sessions);
    rig.clock_ahead_ns += 6 * RIG_SECOND;
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == sessions - 1);
    CHECK(rig_has_logged(&rig, "failed to send response for more than connectTimeoutMs=5000"));
    raw_close(session);
}

static void s11b_queued_responses_come_in_order_once_the_client_reads_again(void)
{
    raw_session *session = raw_connect_alone(&rig);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    raw_send(session, &request);
    const int64_t first = request.correlation_id;
    for (int i = 0; i < 400; i++)
    {
        raw_send(session, &request);
    }
    rig_turn_times(&rig, 200);
    UNTIL(&rig, (raw_poll(session), NULL != raw_find(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id)));
    int64_t last = first - 1;
    for (int i = 0; i < session->event_count; i++)
    {
        if (session->events[i].correlation_id >= first)
        {
            CHECK(session->events[i].correlation_id > last);
            last = session->events[i].correlation_id;
        }
    }
    CHECK_I64(last, request.correlation_id);
    raw_close(session);
}

static void s12_s16_what_is_no_request_of_a_session_is_ignored(void)
{
    raw_session *session = raw_connect_alone(&rig);
    asi_codec_request request = request_of(ASI_CODEC_START_POSITION, 0);
    const int64_t id = session->id;
    session->id = id + 1000;
    raw_send(session, &request); /* unknown session */
    session->id = id;
    uint8_t bytes[64] = { 0 };
    asi_put_u16(bytes + 2, ASI_CODEC_ARCHIVE_ID);
    asi_put_u16(bytes + 4, 99);
    raw_offer(session, bytes, 24); /* another schema */
    asi_put_u16(bytes + 2, 999);
    asi_put_u16(bytes + 4, 101);
    raw_offer(session, bytes, 24); /* unknown template */
    raw_offer(session, bytes, 4);  /* less than a header */
    asi_put_u16(bytes, 16);
    asi_put_u16(bytes + 2, ASI_CODEC_REPLAY);
    raw_offer(session, bytes, 24); /* shorter than its block */
    raw_forget(session);
    request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(session, &request), 42);
    CHECK_I64(session->event_count, 1);
    char text[128];
    snprintf(text, sizeof(text), "control request for unknown session: controlSessionId=%" PRId64 " templateId=52", id + 1000);
    CHECK(rig_has_logged(&rig, text));
    CHECK(rig_has_logged(&rig, "expected schemaId=101, actual=99"));
    raw_close(session);
}

/* Spec: 11 A1, D21. Ids are counted up, so another's is easily guessed; nobody has to log in here. */
static void a_session_obeys_its_own_image_only(void)
{
    raw_session *owner = raw_connect_alone(&rig);
    raw_session *other = raw_connect(&rig);
    const int64_t own = other->id;
    char text[160];
    const asi_codec_request tried[] = {
        request_of(ASI_CODEC_LIST_RECORDINGS, 0), start_of(RIG_CHANNEL, 7001, false), request_of(ASI_CODEC_KEEP_ALIVE, AS_NULL_VALUE),
        request_of(ASI_CODEC_CLOSE_SESSION, AS_NULL_VALUE)
    };
    other->id = owner->id;
    for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++)
    {
        asi_codec_request request = tried[i];
        raw_send(other, &request);
        rig_turn_times(&rig, 50);
        raw_poll(other);
        raw_poll(owner);
        CHECK(NULL == raw_find(other, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id));
        CHECK(NULL == raw_find(owner, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id));
        snprintf(text, sizeof(text), "WARN - unauthorised archive action=%d controlSessionId=%" PRId64 " source=aeron:ipc",
            request.template_id, owner->id);
        CHECK_I64(rig_has_logged(&rig, text), ASI_CODEC_CLOSE_SESSION != request.template_id);
    }
    other->id = own;
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(other, &request), 42);
    CHECK_I64(raw_ask_ok(owner, &request), 42);
    CHECK_I64(rig_counter(&rig, ASI_ARCHIVE_COUNTER_RECORDING_POSITION), AS_NULL_VALUE);
    raw_close(other);
    raw_close(owner);
}

/* Whoever invents numbers fills a part of the log, and what is of another kind is still told. */
static void invented_sessions_fill_a_part_of_the_log(void)
{
    raw_session *owner = raw_connect_alone(&rig);
    raw_session *other = raw_open(&rig);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    const int64_t owners = owner->id;
    for (int i = 0; i < 4000; i++)
    {
        owner->id = owners + 1000 + i;
        raw_send(owner, &request);
    }
    owner->id = owners;
    CHECK(rig_has_logged(&rig, "WARN - control requests for unknown sessions (more of them, not told apart any more)"));
    CHECK(!rig_has_logged(&rig, "unauthorised archive actions"));
    other->id = owners;
    raw_send(other, &request);
    UNTIL(&rig, rig_has_logged(&rig, "WARN - unauthorised archive actions (more of them, not told apart any more)"));
    CHECK_I64(raw_ask_ok(owner, &request), 42);
    raw_close(other);
    raw_close(owner);
}

static void requests_before_the_session_is_there_are_dropped(void)
{
    raw_session *session = raw_open_alone(&rig);
    raw_send_connect(session, 2 << 16);
    UNTIL(&rig, (raw_poll(session), session->event_count > 0));
    session->id = session->events[0].control_session_id;
    raw_forget(session);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    raw_send(session, &request);
    rig_turn_times(&rig, 100);
    raw_poll(session);
    CHECK(NULL == raw_find(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id));
    raw_close(session);
}

static void a_connect_that_can_not_be_answered_makes_no_session(void)
{
    raw_session *session = raw_open_alone(&rig);
    const int64_t sessions = rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS);
    asi_codec_request request = request_of(ASI_CODEC_AUTH_CONNECT, AS_NULL_VALUE);
    request.client_version = ASI_CODEC_PROTOCOL_VERSION;
    request.channel = asi_codec_text("bogus");
    request.stream_id = 20;
    raw_send(session, &request);
    request.channel = asi_codec_text("aeron:udp?endpoint=localhost:24325");
    raw_send(session, &request);
    UNTIL(&rig, rig_has_logged(&rig, "Aeron URIs must start with 'aeron:', found: bogus"));
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == sessions);
    /* A response channel that nobody listens to is given up after the connect timeout. */
    request.channel = asi_codec_text("aeron:ipc?session-id=77");
    raw_send(session, &request);
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == sessions + 1);
    rig_turn_times(&rig, 200);
    rig.clock_ahead_ns += 6 * RIG_SECOND;
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == sessions);
    CHECK(rig_has_logged(&rig, "failed to establish initial connection: state=CONNECTING"));
    raw_close(session);
}

static char publication_error[512];
static int32_t publication_error_code;

static void on_publication_error(void *context, int64_t registration_id, int32_t session_id, int32_t stream_id,
    int32_t error_code, const char *message)
{
    (void)context, (void)registration_id, (void)session_id, (void)stream_id;
    publication_error_code = error_code;
    snprintf(publication_error, sizeof(publication_error), "%s", message);
}

/* Spec: 11 A3, D25 - whose response channel the driver refuses hears of it at once, by the end of his requests' image. */
static void a_response_channel_that_is_refused(void)
{
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = rig.aeron_dir;
    options.use_invoker = true;
    options.on_publication_error = on_publication_error;
    as_client *client = rig.client, *own = NULL;
    CHECK_I64(as_client_open(&options, &own), AS_OK);
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == 0);
    rig.client = own;
    raw_session *session = raw_open(&rig);
    asi_codec_request request = request_of(ASI_CODEC_AUTH_CONNECT, AS_NULL_VALUE);
    request.stream_id = 20;
    request.client_version = ASI_CODEC_PROTOCOL_VERSION;
    request.channel = asi_codec_text("aeron:udp?endpoint=127.0.0.1:20|mtu=33");
    raw_send(session, &request);
    UNTIL(&rig, 0 != publication_error_code);
    CHECK_I64(publication_error_code, ASI_ERR_IMAGE_REJECTED);
    CHECK(0 == strncmp(publication_error, "failed with exception: ", strlen("failed with exception: ")));
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == 0);
    CHECK(rig_has_logged(&rig, "terminated: failed with exception: "));
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSION) == AS_NULL_VALUE);
    raw_close(session);
    rig.client = client;
    as_client_close(own);
}

static void an_idle_session_is_pinged(void)
{
    raw_session *session = raw_connect_alone(&rig);
    for (int i = 1; i <= 3; i++)
    {
        rig.clock_ahead_ns += RIG_SECOND + RIG_SECOND / 10;
        UNTIL(&rig, (raw_poll(session), session->ping_count >= i));
    }
    raw_close(session);
}

/* Requests with bytes changed at random: refused, ignored or served, but never the end of the archive. Connect requests are left
 * out: one that nobody completes has the image rejected on which all of these come (Spec: 07 §6.4). */
static void random_requests_do_no_harm(void)
{
    static const int32_t IDS[] = { ASI_CODEC_START_RECORDING_2, ASI_CODEC_EXTEND_RECORDING_2, ASI_CODEC_STOP_RECORDING,
        ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, ASI_CODEC_STOP_RECORDING_BY_IDENTITY, ASI_CODEC_REPLAY, ASI_CODEC_BOUNDED_REPLAY,
        ASI_CODEC_STOP_REPLAY, ASI_CODEC_STOP_ALL_REPLAYS, ASI_CODEC_LIST_RECORDINGS, ASI_CODEC_LIST_RECORDINGS_FOR_URI,
        ASI_CODEC_LIST_RECORDING, ASI_CODEC_FIND_LAST_MATCHING_RECORDING, ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS,
        ASI_CODEC_START_POSITION, ASI_CODEC_RECORDING_POSITION, ASI_CODEC_STOP_POSITION, ASI_CODEC_MAX_RECORDED_POSITION,
        ASI_CODEC_CHALLENGE_RESPONSE, ASI_CODEC_KEEP_ALIVE, ASI_CODEC_ARCHIVE_ID };
    asi_rand rand = test_rand();
    raw_session *session = raw_connect_alone(&rig);
    raw_record(session, 1500, 1000, 100);
    for (int i = 0; i < 1000; i++)
    {
        asi_codec_request request = request_of(IDS[test_rand_below(&rand, sizeof(IDS) / sizeof(IDS[0]))], 0);
        request.control_session_id = session->id;
        request.correlation_id = i;
        request.channel = asi_codec_text("aeron:ipc?term-length=64k|session-id=99");
        request.stream_id = 20;
        request.record_count = 10;
        request.position = 0;
        request.length = 1000;
        request.client_version = ASI_CODEC_PROTOCOL_VERSION;
        uint8_t bytes[512];
        int64_t length;
        CHECK_I64(asi_codec_request_encode(&request, bytes, sizeof(bytes), &length), AS_OK);
        for (int64_t changes = test_rand_below(&rand, 4); changes > 0; changes--)
        {
            /* Mostly behind the session id, so that the request gets that far. */
            const int64_t at = 0 == test_rand_below(&rand, 8) ? test_rand_below(&rand, length) :
                16 + test_rand_below(&rand, length > 16 ? length - 16 : 1);
            const bool is_template_id = 2 == at || 3 == at;
            bytes[at < length && !is_template_id ? at : length - 1] = (uint8_t)asi_rand_u64(&rand);
        }
        if (0 == test_rand_below(&rand, 10))
        {
            length = test_rand_below(&rand, length);
        }
        raw_offer(session, bytes, length);
        rig_turn(&rig);
        raw_poll(session);
        raw_forget(session);
        if (0 == i % 50)
        {
            rig.clock_ahead_ns += 6 * RIG_SECOND; /* replays and sessions that nobody took end */
        }
    }
    raw_close(session);
    session = raw_connect(&rig);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(session, &request), 42);
    raw_close(session);
}

static void s07_denied_requests(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.authorisation.service.supplier", "DENY_ALL");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    asi_codec_request request = start_of(RIG_CHANNEL, 1001, false);
    check_error(raw_ask(session, &request), ASI_CODEC_E_UNAUTHORISED_ACTION, "unauthorised action");
    raw_close(session);
    rig_close(&rig);
}

static void sessions_beyond_the_limit_are_dropped(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.spark.archive.max.control.sessions", "1");
    rig_open_archive(&rig);
    raw_session *first = raw_connect(&rig);
    raw_session *second = raw_open(&rig);
    raw_send_connect(second, ASI_CODEC_PROTOCOL_VERSION);
    UNTIL(&rig, rig_has_logged(&rig, "max control sessions reached 1: connect request dropped"));
    CHECK_I64(rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS), 1);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(first, &request), 42);
    raw_close(first);
    UNTIL(&rig, rig_counter(&rig, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS) == 0);
    raw_send_connect(second, ASI_CODEC_PROTOCOL_VERSION);
    CHECK_I64(raw_await(second, ASI_CODEC_CONTROL_RESPONSE, second->last_correlation_id)->code, ASI_CODEC_OK);
    raw_close(second);
    rig_close(&rig);
}

/* The queue of answers ends at 1 MiB, long before the deadline does. */
static void a_client_that_asks_and_does_not_read_costs_little_memory(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    request.control_session_id = session->id;
    uint8_t bytes[64];
    int64_t length;
    int64_t sent = 0;
    CHECK_I64(asi_codec_request_encode(&request, bytes, sizeof(bytes), &length), AS_OK);
    UNTIL(&rig, 1 == rig.archive->sessions->count);
    while (rig.archive->sessions->count > 0)
    {
        CHECK(sent < 100000);
        sent += as_publication_offer(session->requests, bytes, length) > 0 ? 1 : 0;
        if (0 == sent % 10)
        {
            rig_turn(&rig);
        }
    }
    CHECK(sent > 20000);
    CHECK(rig_has_logged(&rig, "too many responses are not read"));
    raw_close(session);
    rig_close(&rig);
}

int main(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    RUN(s01_connect_is_answered_with_the_session);
    RUN(s02_the_answer_is_repeated_until_the_first_request);
    RUN(s03_another_major_version_is_refused_until_the_deadline);
    RUN(s04_d24_a_connect_request_of_old_is_passed_over);
    RUN(s17_d23_later_schema_versions_are_answered);
    RUN(s09_a_closed_session_leaves_nothing);
    RUN(s10_a_client_that_vanishes_takes_its_session_with_it);
    RUN(s11_a_client_that_stops_reading_is_given_up);
    RUN(s11b_queued_responses_come_in_order_once_the_client_reads_again);
    RUN(s12_s16_what_is_no_request_of_a_session_is_ignored);
    RUN(a_session_obeys_its_own_image_only);
    RUN(requests_before_the_session_is_there_are_dropped);
    RUN(a_connect_that_can_not_be_answered_makes_no_session);
    RUN(a_response_channel_that_is_refused);
    RUN(an_idle_session_is_pinged);
    RUN(random_requests_do_no_harm);
    RUN(invented_sessions_fill_a_part_of_the_log);
    rig_close(&rig);
    RUN(s07_denied_requests);
    RUN(sessions_beyond_the_limit_are_dropped);
    RUN(a_client_that_asks_and_does_not_read_costs_little_memory);
    return 0;
}
