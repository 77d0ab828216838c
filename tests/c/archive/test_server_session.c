/* Goal: control sessions that send anything or read nothing cost the archive little and reach no other session. Method: a bare
 * session (server_rig.h) against an invoked archive whose clock the test advances. The scenarios of sessions that behave are in
 * tests/conformance/archive/test_sessions.py. */
#include "server_rig.h"
#include "shm/counters.h"
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
    request = request_of(ASI_CODEC_CLOSE_SESSION, AS_NULL_VALUE);
    raw_send(session, &request); /* which is closed already */
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
    CHECK(!rig_has_logged(&rig, "templateId=3"));
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

/* Streams whose requests have many frames: 10 of them are read in a turn. */
static raw_session *raw_connect_for_long_requests(const char *term_length)
{
    raw_session *session = raw_open(&rig);
    char channel[128];
    as_publication_close(session->requests);
    snprintf(channel, sizeof(channel), "aeron:ipc?term-length=%s|mtu=1408|init-term-id=0|term-id=0|term-offset=0", term_length);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, RIG_CONTROL_STREAM, &session->requests), AS_OK);
    raw_send_connect(session, ASI_CODEC_PROTOCOL_VERSION);
    session->id = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, session->last_correlation_id)->control_session_id;
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(session, &request), 42);
    return session;
}

/* Encodes a request that nothing matches, of `length` bytes in all. */
static int64_t encode_long(const raw_session *session, uint8_t *bytes, int64_t length)
{
    static char channel[256 * 1024];
    memset(channel, 'x', sizeof(channel));
    asi_codec_request request = request_of(ASI_CODEC_LIST_RECORDINGS_FOR_URI, 0);
    request.record_count = 1;
    request.control_session_id = session->id;
    request.correlation_id = as_client_next_correlation_id(rig.client);
    int64_t empty;
    int64_t encoded;
    CHECK_I64(asi_codec_request_encode(&request, bytes, length, &empty), AS_OK);
    request.channel = (asi_codec_var){ .data = channel, .length = length - empty };
    CHECK_I64(asi_codec_request_encode(&request, bytes, length, &encoded), AS_OK);
    CHECK_I64(encoded, length);
    return request.correlation_id;
}

/* Who has no login chooses the session id of his stream, and where it begins: as the stream of a client of this machine. */
static void a_stranger_ends_no_request_of_another(void)
{
    static uint8_t harmless[20 * 1024];
    static uint8_t evil[20 * 1024];
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.control.channel", "aeron:udp?endpoint=localhost:0");
    rig_open_archive(&rig);
    raw_session *owner = raw_connect_for_long_requests("256k");
    const int64_t correlation_id = encode_long(owner, harmless, sizeof(harmless));
    asi_codec_request purge = request_of(ASI_CODEC_PURGE_RECORDING, 4711);
    purge.control_session_id = owner->id;
    purge.correlation_id = as_client_next_correlation_id(rig.client);
    int64_t length;
    CHECK_I64(asi_codec_request_encode(&purge, evil, sizeof(evil), &length), AS_OK);

    char endpoint[64];
    char channel[256];
    as_publication_constants constants;
    as_publication_get_constants(owner->requests, &constants);
    CHECK_I64(as_subscription_resolved_endpoint(rig.archive->requests->network, endpoint, sizeof(endpoint)), AS_OK);
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=%s|term-length=256k|mtu=1408|session-id=%d|init-term-id=0|term-id=0|"
        "term-offset=%" PRId64, endpoint, constants.session_id, as_publication_position(owner->requests));
    as_publication *stranger;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, RIG_CONTROL_STREAM, &stranger), AS_OK);
    UNTIL(&rig, as_publication_is_connected(stranger) && as_publication_available_window(stranger) > 2 * (int64_t)sizeof(evil));

    CHECK(as_publication_offer(owner->requests, harmless, sizeof(harmless)) > 0);
    as_archive_do_work(rig.archive); /* gathers the first 10 frames */
    const int64_t end = as_publication_offer(stranger, evil, sizeof(evil));
    CHECK(end > 0);
    const int64_t until_ns = rig_system_ns() + RIG_TIMEOUT_NS;
    while (rig_counter(&rig, ASI_COUNTER_TYPE_RECEIVER_HWM) < end)
    {
        CHECK(rig_system_ns() < until_ns);
        sched_yield();
    }
    CHECK_I64(raw_await(owner, ASI_CODEC_CONTROL_RESPONSE, correlation_id)->code, ASI_CODEC_RECORDING_UNKNOWN);
    rig_turn_times(&rig, 50);
    raw_poll(owner);
    CHECK(NULL == raw_find(owner, ASI_CODEC_CONTROL_RESPONSE, purge.correlation_id));
    as_publication_close(stranger);
    raw_close(owner);
    rig_close(&rig);
}

/* What a stranger never ends is kept up to the length of the longest request. */
static void requests_that_are_too_long_are_dropped(void)
{
    static uint8_t bytes[128 * 1024 + 1];
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect_for_long_requests("4m");
    const int64_t longest = encode_long(session, bytes, sizeof(bytes) - 1);
    raw_offer(session, bytes, sizeof(bytes) - 1);
    CHECK_I64(raw_await(session, ASI_CODEC_CONTROL_RESPONSE, longest)->code, ASI_CODEC_RECORDING_UNKNOWN);
    const int64_t too_long = encode_long(session, bytes, sizeof(bytes));
    raw_offer(session, bytes, sizeof(bytes));
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(session, &request), 42);
    CHECK(NULL == raw_find(session, ASI_CODEC_CONTROL_RESPONSE, too_long));
    raw_close(session);
    rig_close(&rig);
}

/* Whoever connects has a session until the connect timeout, without a login and without listening. */
static void texts_of_a_connect_request_are_cut(void)
{
    static uint8_t bytes[100 * 1024];
    static char text[40 * 1024];
    memset(text, 'x', sizeof(text));
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect_for_long_requests("4m");
    asi_codec_request request = request_of(ASI_CODEC_AUTH_CONNECT, AS_NULL_VALUE);
    int64_t length;
    request.client_version = ASI_CODEC_PROTOCOL_VERSION;
    request.stream_id = 20;
    request.channel = asi_codec_text("aeron:ipc?session-id=77");
    request.client_info = (asi_codec_var){ .data = text, .length = sizeof(text) };
    CHECK_I64(asi_codec_request_encode(&request, bytes, sizeof(bytes), &length), AS_OK);
    raw_offer(session, bytes, length);
    UNTIL(&rig, 2 == rig.archive->sessions->count);
    CHECK_I64((int64_t)strlen(rig.archive->sessions->first->client_info), ASI_COUNTER_LABEL_CAPACITY);
    memcpy(text, "aeron:ipc?alias=", strlen("aeron:ipc?alias="));
    request.channel = (asi_codec_var){ .data = text, .length = sizeof(text) };
    CHECK_I64(asi_codec_request_encode(&request, bytes, sizeof(bytes), &length), AS_OK);
    raw_offer(session, bytes, length);
    UNTIL(&rig, rig_has_logged(&rig, "exceeds max supported length (4095): aeron:ipc?alias=xxx"));
    raw_close(session);
    rig_close(&rig);
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
    UNTIL(&rig, ASI_CONTROL_CONNECTING == rig.archive->sessions->first->state);
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
    RUN(sessions_beyond_the_limit_are_dropped);
    RUN(a_client_that_asks_and_does_not_read_costs_little_memory);
    RUN(a_stranger_ends_no_request_of_another);
    RUN(requests_that_are_too_long_are_dropped);
    RUN(texts_of_a_connect_request_are_cut);
    return 0;
}
