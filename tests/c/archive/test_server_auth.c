/* Goal: a client without credentials gets nothing, one with credentials gets what the file or the plug-in allows, and no
 * session can use another. Method: bare sessions (server_rig.h) against an invoked archive; credentials files written by the
 * test with keys that it derives itself; plug-ins of tests/c/archive/plugins and the one of examples/. */
#include "users_rig.h"

static raw_session *log_in(const char *credentials)
{
    raw_session *session = raw_open(&rig);
    const asi_codec_event *event = connect_with(session, credentials);
    CHECK_I64(event->code, ASI_CODEC_OK);
    session->id = event->control_session_id;
    return session;
}

static void check_denied(raw_session *session, asi_codec_request request)
{
    check_error(raw_ask(session, &request), ASI_CODEC_E_UNAUTHORISED_ACTION, "unauthorised action");
}

static void check_dropped(raw_session *session, asi_codec_request request)
{
    raw_send(session, &request);
    rig_turn_times(&rig, 50);
    raw_poll(session);
    CHECK(NULL == raw_find(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id));
}

/* -- tests ------------------------------------------------------------------------------------------------------------------------ */

static void s06_who_can_not_prove_himself_is_rejected_until_the_deadline(void)
{
    static const char *const WRONG[] = { "alice:open sesam", "alice:", "alice:open sesame ", "nobody:open sesame", ":", "", "bob:b" };
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++)
    {
        raw_session *session = raw_open(&rig);
        const asi_codec_event *event = connect_with(session, WRONG[i]);
        check_error(event, ASI_CODEC_E_AUTHENTICATION_REJECTED, "authentication rejected");
        session->id = event->control_session_id;
        check_dropped(session, request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE));
        check_dropped(session, request_of(ASI_CODEC_LIST_RECORDINGS, 0));
        raw_close(session);
    }
    raw_session *session = raw_open(&rig);
    (void)connect_with(session, "alice:open says me");
    for (int i = 1; i <= 3; i++)
    {
        UNTIL(&rig, (raw_poll(session), session->event_count >= i));
        rig.clock_ahead_ns += RIG_SECOND / 4;
    }
    as_image *image = as_subscription_image_at(session->responses, 0);
    rig.clock_ahead_ns += 6 * RIG_SECOND;
    UNTIL(&rig, (raw_poll(session), as_image_is_closed(image)));
    as_image_release(image);
    CHECK(rig_has_logged(&rig, "authentication rejected: sourceIdentity=aeron:ipc"));
    CHECK(!rig_has_logged(&rig, "open says me"));
    CHECK(!rig_has_logged(&rig, "sesam"));
    raw_close(session);
}

static void users_do_what_their_line_says(void)
{
    raw_session *alice = log_in("alice:open sesame");
    raw_session *bob = log_in("bob:b:o:b");
    raw_session *carol = log_in("carol:c");
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(alice, &request), 42);
    CHECK_I64(raw_ask_ok(bob, &request), 42);
    CHECK_I64(raw_ask_ok(carol, &request), 42);
    request = start_of(RIG_CHANNEL, 1001, false);
    check_denied(bob, request);
    CHECK(raw_ask_ok(carol, &request) > 0);
    check_denied(carol, extend_of(0, RIG_CHANNEL, 1001, false));
    check_denied(carol, request_of(ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, 0));
    check_denied(carol, request_of(ASI_CODEC_LIST_RECORDINGS, 0));
    request = request_of(ASI_CODEC_FIND_LAST_MATCHING_RECORDING, 0);
    CHECK_I64(raw_ask_ok(bob, &request), -1);
    check_denied(bob, request_of(ASI_CODEC_TRUNCATE_RECORDING, 0));
    check_denied(bob, request_of(ASI_CODEC_REPLICATE_2, 0));
    request = request_of(ASI_CODEC_START_POSITION, 7);
    check_error(raw_ask(alice, &request), ASI_CODEC_E_UNKNOWN_RECORDING, "unknown recording id: 7");
    CHECK(rig_has_logged(&rig, "unauthorised archive action=63"));
    raw_close(alice);
    raw_close(bob);
    raw_close(carol);
}

/* The answer as auth_file.c defines it. */
static void answer_of(const asi_codec_event *challenge, const char *password, char answer[2 * ASI_SHA256_LENGTH + 1])
{
    char text[AS_ARCHIVE_AUTH_BYTES_MAX + 1];
    char salt_text[2 * ASI_AUTH_SALT_MAX + 1];
    char nonce[64];
    int iterations;
    uint8_t salt[ASI_AUTH_SALT_MAX];
    uint8_t key[ASI_SHA256_LENGTH];
    uint8_t stored[ASI_SHA256_LENGTH];
    uint8_t signature[ASI_SHA256_LENGTH];
    snprintf(text, sizeof(text), "%.*s", (int)challenge->encoded_challenge.length, challenge->encoded_challenge.data);
    CHECK_I64(sscanf(text, "scram-sha-256 %d %128s %63s", &iterations, salt_text, nonce), 3);
    CHECK_I64(iterations, ITERATIONS);
    const int64_t salt_length = asi_auth_parse_hex(salt_text, (int64_t)strlen(salt_text), salt, sizeof(salt));
    CHECK(salt_length > 0);
    client_key_of(password, salt, salt_length, key);
    asi_sha256_of(key, sizeof(key), stored);
    asi_hmac_sha256(stored, sizeof(stored), text, (int64_t)strlen(text), signature);
    for (int i = 0; i < ASI_SHA256_LENGTH; i++)
    {
        key[i] ^= signature[i];
    }
    asi_auth_format_hex(answer, key, sizeof(key));
}

static const asi_codec_event *challenge_of(raw_session *session, const char *user)
{
    send_connect(session, user, (int64_t)strlen(user));
    const asi_codec_event *event = raw_await(session, ASI_CODEC_CHALLENGE, session->last_correlation_id);
    session->id = event->control_session_id;
    return event;
}

static const asi_codec_event *send_answer(raw_session *session, const char *answer)
{
    asi_codec_request request = request_of(ASI_CODEC_CHALLENGE_RESPONSE, AS_NULL_VALUE);
    request.encoded_credentials = asi_codec_text(answer);
    return raw_ask(session, &request);
}

static void s05_the_right_answer_to_a_challenge(void)
{
    char answer[2 * ASI_SHA256_LENGTH + 1];
    raw_session *session = raw_open(&rig);
    answer_of(challenge_of(session, "bob"), "b:o:b", answer);
    check_dropped(session, request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE));
    const asi_codec_event *event = send_answer(session, answer);
    CHECK_I64(event->code, ASI_CODEC_OK);
    CHECK_I64(event->relevant_id, session->id);
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(session, &request), 42);
    check_denied(session, start_of(RIG_CHANNEL, 1001, false));
    raw_close(session);
}

static void an_answer_is_good_for_one_challenge(void)
{
    char answer[2 * ASI_SHA256_LENGTH + 1];
    static const char *const NOT_HEX[] = { "", "00", "zz", "b:o:b" };
    raw_session *first = raw_open(&rig);
    answer_of(challenge_of(first, "bob"), "b:o:b", answer);
    raw_session *second = raw_open(&rig);
    (void)challenge_of(second, "bob");
    check_error(send_answer(second, answer), ASI_CODEC_E_AUTHENTICATION_REJECTED, "authentication rejected");
    check_dropped(second, request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE));
    raw_close(first);
    raw_close(second);
    for (size_t i = 0; i < sizeof(NOT_HEX) / sizeof(NOT_HEX[0]); i++)
    {
        raw_session *session = raw_open(&rig);
        (void)challenge_of(session, "alice");
        check_error(send_answer(session, NOT_HEX[i]), ASI_CODEC_E_AUTHENTICATION_REJECTED, "authentication rejected");
        raw_close(session);
    }
    raw_session *wrong = raw_open(&rig);
    answer_of(challenge_of(wrong, "bob"), "bob", answer);
    check_error(send_answer(wrong, answer), ASI_CODEC_E_AUTHENTICATION_REJECTED, "authentication rejected");
    raw_close(wrong);
}

/* An answer must not reveal whether a user exists. */
static void an_unknown_user_is_challenged_like_a_known_one(void)
{
    char texts[2][AS_ARCHIVE_AUTH_BYTES_MAX];
    for (int i = 0; i < 2; i++)
    {
        char answer[2 * ASI_SHA256_LENGTH + 1];
        raw_session *session = raw_open(&rig);
        const asi_codec_event *event = challenge_of(session, "mallory");
        snprintf(texts[i], sizeof(texts[i]), "%.*s", (int)event->encoded_challenge.length, event->encoded_challenge.data);
        answer_of(event, "whatever", answer);
        check_error(send_answer(session, answer), ASI_CODEC_E_AUTHENTICATION_REJECTED, "authentication rejected");
        raw_close(session);
    }
    const size_t salt_end = (size_t)(strrchr(texts[0], ' ') - texts[0]);
    CHECK(0 == strncmp(texts[0], texts[1], salt_end));
    CHECK(0 != strcmp(texts[0], texts[1]));
}

static void who_never_answers_is_given_up(void)
{
    raw_session *session = raw_open(&rig);
    (void)challenge_of(session, "alice");
    as_image *image = as_subscription_image_at(session->responses, 0);
    rig.clock_ahead_ns += 6 * RIG_SECOND;
    UNTIL(&rig, (raw_poll(session), as_image_is_closed(image)));
    CHECK(rig_has_logged(&rig, "failed to establish initial connection: state=CHALLENGED"));
    as_image_release(image);
    raw_close(session);
}

/* Ids are counted up, so another's is easily guessed. */
static void another_image_can_not_speak_for_a_session(void)
{
    raw_session *alice = log_in("alice:open sesame");
    raw_session *bob = log_in("bob:b:o:b");
    const int64_t own = bob->id;
    bob->id = alice->id;
    check_dropped(bob, start_of(RIG_CHANNEL, 1001, false));
    asi_codec_request request = request_of(ASI_CODEC_CLOSE_SESSION, AS_NULL_VALUE);
    raw_send(bob, &request);
    bob->id = own;
    request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(bob, &request), 42);
    CHECK_I64(raw_ask_ok(alice, &request), 42);
    raw_poll(alice);
    raw_close(alice);
    raw_close(bob);
}

static int64_t replay_count(void) { return as_counter_get(rig.archive->counters.replay_sessions); }

static void replays_belong_to_who_started_them(void)
{
    raw_session *alice = log_in("alice:open sesame");
    raw_session *bob = log_in("bob:b:o:b");
    raw_recording made = raw_start(alice, 1501, false);
    const int64_t position = publish(&rig, made.publication, 1000, 20);
    UNTIL(&rig, raw_position(alice, ASI_CODEC_RECORDING_POSITION, made.id) == position);
    as_subscription *listener = NULL;
    CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc", 1502, &listener), AS_OK);
    asi_codec_request request = replay_of(made.id, 0, -1, "aeron:ipc", 1502);
    const int64_t of_alice = raw_ask_ok(alice, &request);
    const int64_t of_bob = raw_ask_ok(bob, &request);
    UNTIL(&rig, 2 == replay_count());

    char text[128];
    request = request_of(ASI_CODEC_STOP_REPLAY, AS_NULL_VALUE);
    request.replay_session_id = of_alice;
    snprintf(text, sizeof(text), "unauthorised action: another user's replay, replaySessionId=%" PRId64, of_alice);
    check_error(raw_ask(bob, &request), ASI_CODEC_E_UNAUTHORISED_ACTION, text);
    request = request_of(ASI_CODEC_STOP_ALL_REPLAYS, AS_NULL_VALUE);
    raw_ask_ok(bob, &request);
    UNTIL(&rig, 1 == replay_count());
    rig_turn_times(&rig, 50);
    CHECK_I64(replay_count(), 1);

    raw_close(bob);
    bob = log_in("bob:b:o:b");
    request = replay_of(made.id, 0, -1, "aeron:ipc", 1502);
    raw_ask_ok(bob, &request);
    request = request_of(ASI_CODEC_STOP_REPLAY, AS_NULL_VALUE); /* a second session of the same user */
    request.replay_session_id = of_bob;
    raw_ask_ok(bob, &request); /* gone already: OK, as always */
    request = request_of(ASI_CODEC_STOP_ALL_REPLAYS, made.id);
    UNTIL(&rig, 2 == replay_count());
    raw_ask_ok(alice, &request); /* hers, and with `all` also bob's */
    UNTIL(&rig, 0 == replay_count());
    as_subscription_close(listener);
    as_publication_close(made.publication);
    raw_close(alice);
    raw_close(bob);
}

static void files_that_can_not_be_are_refused_with_the_remedy(void)
{
    char good[512];
    char text[1024];
    char path[AS_PATH_MAX];
    asi_auth_users users;
    line_of(good, sizeof(good), "alice", "secret", "all");
    const struct
    {
        const char *text;
        const char *why;
    } rows[] = {
        { "", "names no user" },
        { "# nobody\n\n", "names no user" },
        { "alice secret\n", "three fields" },
        { "alice open-sesame all\n", "line 1: user alice: the second field must be scram-sha-256$" },
        { "\nalice scram-sha-256$999$7361$aa all\n", "line 2: user alice: iterations must be 1000" },
        { "alice scram-sha-256$1000$7361$aa all\n", "the salt must be 16 to 128 hexadecimal digits" },
        { "alice scram-sha-256$1000$73616c7473616c74$aa$ all\n", "the stored key 64" },
        { "al!ce x all\n", "a user's name is" },
    };
    snprintf(path, sizeof(path), "%s/bad", rig.scratch);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        write_file(path, rows[i].text, 0600);
        CHECK_I64(asi_auth_users_load_untrusted(&users, path), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), rows[i].why));
        CHECK(NULL != strstr(as_error_text(), path));
        CHECK(NULL == strstr(as_error_text(), "open-sesame"));
    }
    snprintf(text, sizeof(text), "%s%s", good, good);
    write_file(path, text, 0600);
    CHECK_I64(asi_auth_users_load_untrusted(&users, path), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "line 2: user alice stands there twice"));
    line_of(text, sizeof(text), "bob", "secret", "replay,fly");
    write_file(path, text, 0600);
    CHECK_I64(asi_auth_users_load_untrusted(&users, path), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "'fly' is no action: give all, query"));
    static const mode_t MODES[] = { 0640, 0604, 0660, 0666, 0610 };
    for (size_t i = 0; i < sizeof(MODES) / sizeof(MODES[0]); i++)
    {
        write_file(path, good, MODES[i]);
        CHECK_I64(asi_auth_users_load_untrusted(&users, path), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), "chmod 600"));
    }
    write_file(path, good, 0400);
    CHECK_I64(asi_auth_users_load_untrusted(&users, path), AS_OK);
    CHECK_I64(users.count, 1);
    asi_auth_users_close(&users);
    CHECK_I64(asi_auth_users_load_untrusted(&users, rig.scratch), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "no regular file"));
    CHECK_I64(asi_auth_users_load_untrusted(&users, "/dev/shm/aeron-spark-test-no-such-file"), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "aeron.spark.archive.credentials.file: can't open"));
}

/* Names of which one begins another are two users, in either order. */
static void a_name_that_begins_another_is_nobody_else(void)
{
    char text[2048];
    char path[AS_PATH_MAX];
    asi_auth_users users;
    snprintf(path, sizeof(path), "%s/prefixes", rig.scratch);
    line_of(text, sizeof(text), "alice", "a", "all");
    const size_t used = strlen(text);
    line_of(text + used, sizeof(text) - used, "ali", "b", "query,StartRecordingRequest2");
    write_file(path, text, 0600);
    CHECK_I64(asi_auth_users_load_untrusted(&users, path), AS_OK);
    CHECK_I64(users.count, 2);
    CHECK(&users.items[0] == asi_auth_users_find(&users, "alice", 5));
    CHECK(&users.items[1] == asi_auth_users_find(&users, "ali", 3));
    CHECK(users.items[0].can_stop_any_replay && !users.items[1].can_stop_any_replay);
    CHECK(users.items[1].actions[ASI_CODEC_START_RECORDING_2] && !users.items[1].actions[ASI_CODEC_REPLAY]);
    CHECK(NULL == asi_auth_users_find(&users, "al", 2));
    CHECK(NULL == asi_auth_users_find(&users, "", 0));
    CHECK(NULL == asi_auth_users_find(&users, "alices", 6));
    asi_auth_users_close(&users);
    const as_auth_bytes alice = { .length = 5, .bytes = "alice" };
    const as_auth_bytes ali = { .length = 3, .bytes = "ali" };
    const as_auth_bytes other = { .length = 3, .bytes = "bob" };
    CHECK(asi_auth_is_same(&ali, &ali));
    CHECK(!asi_auth_is_same(&ali, &alice) && !asi_auth_is_same(&alice, &ali) && !asi_auth_is_same(&ali, &other));
}

/* Root reads everything, so only the owner's id decides. */
static void a_file_of_a_stranger_is_refused(void)
{
    char line[512];
    char path[AS_PATH_MAX];
    asi_auth_users users;
    if (0 != geteuid())
    {
        return;
    }
    snprintf(path, sizeof(path), "%s/stranger", rig.scratch);
    line_of(line, sizeof(line), "alice", "a", "all");
    write_file(path, line, 0600);
    CHECK(0 == chown(path, 65534, (gid_t)-1));
    CHECK_I64(asi_auth_users_load_untrusted(&users, path), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "belongs to another user (uid 65534)"));
}

static void hostile_files_are_refused_or_read(void)
{
    asi_rand rand = test_rand();
    char path[AS_PATH_MAX];
    char good[512];
    line_of(good, sizeof(good), "alice", "secret", "query,replay,63,all");
    const int64_t length = (int64_t)strlen(good);
    snprintf(path, sizeof(path), "%s/hostile", rig.scratch);
    for (int i = 0; i < 500; i++)
    {
        char bytes[512];
        memcpy(bytes, good, (size_t)length);
        for (int64_t changes = 1 + test_rand_below(&rand, 4); changes > 0; changes--)
        {
            bytes[test_rand_below(&rand, length)] = (char)asi_rand_u64(&rand);
        }
        FILE *file = fopen(path, "w");
        CHECK(NULL != file && 0 == chmod(path, 0600) &&
            (size_t)length == fwrite(bytes, 1, (size_t)length, file) && 0 == fclose(file));
        asi_auth_users users;
        if (AS_OK == asi_auth_users_load_untrusted(&users, path))
        {
            CHECK(users.count > 0);
            asi_auth_users_close(&users);
        }
    }
}

static void settings_that_contradict_each_other(void)
{
    static const char *const ROWS[][3] = {
        { "aeron.spark.archive.auth.library", AS_EXAMPLE_PLUGIN, "leave one of them out" },
        { "aeron.archive.authenticator.supplier", "io.aeron.security.DefaultAuthenticatorSupplier", "leave one of them out" },
        { "aeron.archive.authorisation.service.supplier", "ALLOW_ALL", "would void what the users" },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        rig_open(&rig);
        rig_set(&rig, "aeron.spark.archive.credentials.file", "/somewhere");
        rig_set(&rig, ROWS[i][0], ROWS[i][1]);
        CHECK_I64(rig_try_open_archive(&rig), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), ROWS[i][2]));
        rig_close(&rig);
    }
    as_archive_config *config = NULL;
    CHECK_I64(as_archive_config_open(&config), AS_OK);
    static const char *const SUPPLIERS[][2] = {
        { "aeron.archive.authenticator.supplier", "com.example.Mine" },
        { "aeron.archive.authorisation.service.supplier", "com.example.MineToo" },
    };
    for (size_t i = 0; i < 2; i++)
    {
        CHECK_I64(as_archive_config_set(config, SUPPLIERS[i][0], SUPPLIERS[i][1]), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), SUPPLIERS[i][0]));
        CHECK(NULL != strstr(as_error_text(), "aeron.spark.archive.credentials.file"));
        CHECK(NULL != strstr(as_error_text(), "aeron.spark.archive.auth.library"));
    }
    CHECK_I64(as_archive_config_set(config, "aeron.archive.authorisation.service.supplier", "AuthorisationService.DENY_ALL"), AS_OK);
    CHECK_I64(config->authorisation, ASI_AUTHORISATION_DENY_ALL);
    as_archive_config_close(config);
}

static void open_with_plugin(const char *library, const char *symbol, const char *argument)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.spark.archive.auth.library", library);
    rig_set(&rig, "aeron.spark.archive.auth.symbol", symbol);
    rig_set(&rig, "aeron.spark.archive.auth.argument", argument);
}

static void the_plugin_of_the_examples(void)
{
    char path[AS_PATH_MAX];
    open_with_plugin(AS_EXAMPLE_PLUGIN, "", "");
    snprintf(path, sizeof(path), "%s/token", rig.scratch);
    write_file(path, "t0ken\n", 0600);
    rig_set(&rig, "aeron.spark.archive.auth.argument", path);
    rig_open_archive(&rig);
    raw_session *session = log_in("t0ken");
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(session, &request), 42);
    check_denied(session, start_of(RIG_CHANNEL, 1001, false));
    raw_close(session);
    session = raw_open(&rig);
    check_error(connect_with(session, "token"), ASI_CODEC_E_AUTHENTICATION_REJECTED, "authentication rejected");
    raw_close(session);
    rig_close(&rig);
}

static void a_plugin_that_challenges_twice_and_waits(void)
{
    open_with_plugin(AS_TEST_PLUGINS, "challenges_twice", "");
    rig_open_archive(&rig);
    raw_session *session = raw_open(&rig);
    const asi_codec_event *event = challenge_of(session, "");
    CHECK(5 == event->encoded_challenge.length && 0 == memcmp(event->encoded_challenge.data, "first", 5));
    asi_codec_request request = request_of(ASI_CODEC_CHALLENGE_RESPONSE, AS_NULL_VALUE);
    request.encoded_credentials = asi_codec_text("one");
    raw_send(session, &request);
    event = raw_await(session, ASI_CODEC_CHALLENGE, request.correlation_id);
    CHECK(6 == event->encoded_challenge.length && 0 == memcmp(event->encoded_challenge.data, "second", 6));
    event = send_answer(session, "two");
    CHECK_I64(event->code, ASI_CODEC_OK);
    request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(session, &request), 42);
    raw_close(session);
    rig_close(&rig);
}

static void plugins_that_are_wrong(void)
{
    static const char *const SYMBOLS[] = { "talks_nonsense", "without_answers" };
    for (size_t i = 0; i < 2; i++)
    {
        open_with_plugin(AS_TEST_PLUGINS, SYMBOLS[i], "");
        rig_open_archive(&rig);
        raw_session *session = raw_open(&rig);
        const asi_codec_event *event;
        if (0 == i)
        {
            event = connect_with(session, "");
        }
        else
        {
            (void)challenge_of(session, "");
            event = send_answer(session, "one");
        }
        check_error(event, ASI_CODEC_E_AUTHENTICATION_REJECTED, "authentication rejected");
        raw_close(session);
        rig_close(&rig);
    }
    static const char *const ROWS[][3] = {
        { AS_TEST_PLUGINS, "of_the_future", "has version 2, this archive knows 1" },
        { AS_TEST_PLUGINS, "without_connect", "has no on_connect" },
        { AS_TEST_PLUGINS, "refuses_to_open", "refused to open: the directory of 'somewhere' is not reachable" },
        { AS_TEST_PLUGINS, "not_there", "exports no not_there: define `const as_archive_auth not_there`" },
        { "/dev/shm/aeron-spark-test-no-such.so", "x", "can't look at" },
        { "relative.so", "x", "give its whole path" },
        { "/dev/shm", "x", "is no file" },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        open_with_plugin(ROWS[i][0], ROWS[i][1], "somewhere");
        CHECK_I64(rig_try_open_archive(&rig), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), ROWS[i][2]));
        rig_close(&rig);
    }
    char path[AS_PATH_MAX];
    open_with_plugin("", "x", "");
    snprintf(path, sizeof(path), "%s/loose.so", rig.scratch);
    rig_set(&rig, "aeron.spark.archive.auth.library", path);
    static const mode_t LOOSE[] = { 0602, 0620, 0622 };
    for (size_t i = 0; i < sizeof(LOOSE) / sizeof(LOOSE[0]); i++)
    {
        write_file(path, "no shared object", LOOSE[i]);
        CHECK_I64(rig_try_open_archive(&rig), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), "chmod go-w"));
    }
    CHECK(0 == chmod(path, 0600));
    CHECK_I64(rig_try_open_archive(&rig), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "can't load"));
    rig_close(&rig);
}

int main(void)
{
    open_with_users();
    RUN(s06_who_can_not_prove_himself_is_rejected_until_the_deadline);
    RUN(users_do_what_their_line_says);
    RUN(s05_the_right_answer_to_a_challenge);
    RUN(an_answer_is_good_for_one_challenge);
    RUN(an_unknown_user_is_challenged_like_a_known_one);
    RUN(who_never_answers_is_given_up);
    RUN(another_image_can_not_speak_for_a_session);
    RUN(replays_belong_to_who_started_them);
    RUN(files_that_can_not_be_are_refused_with_the_remedy);
    RUN(a_name_that_begins_another_is_nobody_else);
    RUN(a_file_of_a_stranger_is_refused);
    RUN(hostile_files_are_refused_or_read);
    rig_close(&rig);
    RUN(settings_that_contradict_each_other);
    RUN(the_plugin_of_the_examples);
    RUN(a_plugin_that_challenges_twice_and_waits);
    RUN(plugins_that_are_wrong);
    return 0;
}
