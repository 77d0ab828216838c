/* Goal: the archive client asks for the right things, understands every kind of answer, and survives an archive that is late,
 * rude, old, of another version or gone. Method: the scripted archive of fake_archive.h. Spec: 07 §13, 11 C1, D30. */
#include "fake_archive.h"

static void connects_and_closes(void)
{
    open_both();
    CHECK_I64(as_archive_client_control_session_id(client), SESSION_ID);
    CHECK_I64(as_archive_client_archive_id(client), ARCHIVE_ID);
    CHECK(client_aeron == as_archive_client_aeron(client));
    CHECK_I64(as_archive_client_keepalive(client), AS_OK);
    for (int i = 0; fake.keepalives < 2 && i < 1000; i++)
    {
        run_all(NULL);
    }
    CHECK_I64(fake.keepalives, 2);
    as_publication_constants constants;
    as_publication_get_constants(fake.responses, &constants);
    CHECK_I64(constants.term_length, 64 * 1024);
    close_both();
}

/* They do the work that is waited for. */
static void agents_that_have_no_thread_run_without_pause(void)
{
    open_both();
    for (int i = 0; i < 100; i++)
    {
        asi_client_session_idle(asi_archive_client_session(client), 0);
    }
    CHECK_I64(asi_archive_client_session(client)->idle.idle_count, 0);
    close_both();
}

static void numbers_are_asked_and_answered(void)
{
    open_both();
    fake.relevant_id = 123456;
    int64_t value = 0;
    CHECK_I64(as_archive_client_start_recording(client, "aeron:ipc?alias=a", 7, AS_SOURCE_REMOTE, true, &value), AS_OK);
    CHECK_I64(value, 123456);
    CHECK_I64(fake.last.template_id, ASI_CODEC_START_RECORDING_2);
    CHECK_I64(fake.last.stream_id, 7);
    CHECK_I64(fake.last.source_location, 1);
    CHECK_I64(fake.last.auto_stop, 1);
    CHECK_TEXT(fake.last_channel, "aeron:ipc?alias=a");
    CHECK_I64(signals, 1);
    CHECK_I64(last_signal.position, 1024);
    CHECK_I64(last_signal.signal, AS_SIGNAL_EXTEND);
    CHECK_I64(result_inside_handler, AS_E_USAGE);
    CHECK_I64(
        as_archive_client_extend_recording(client, 3, "aeron:ipc", 8, AS_SOURCE_LOCAL, false, &value), AS_OK);
    CHECK_I64(fake.last.recording_id, 3);
    CHECK_I64(fake.last.auto_stop, 0);
    CHECK_I64(as_archive_client_stop_recording(client, "aeron:ipc?x=1", 9), AS_OK);
    CHECK_TEXT(fake.last_channel, "aeron:ipc?x=1");
    CHECK_I64(as_archive_client_stop_recording_subscription(client, 31), AS_OK);
    CHECK_I64(fake.last.subscription_id, 31);
    bool was_active = false;
    fake.relevant_id = 1;
    CHECK_I64(as_archive_client_stop_recording_by_identity(client, 4, &was_active), AS_OK);
    CHECK(was_active);
    fake.relevant_id = 77;
    static as_result (*const position_calls[])(as_archive_client *, int64_t, int64_t *) = {
        as_archive_client_start_position, as_archive_client_recording_position, as_archive_client_stop_position,
        as_archive_client_max_recorded_position };
    static const int32_t position_templates[] = {
        ASI_CODEC_START_POSITION, ASI_CODEC_RECORDING_POSITION, ASI_CODEC_STOP_POSITION, ASI_CODEC_MAX_RECORDED_POSITION };
    for (int i = 0; i < 4; i++)
    {
        CHECK_I64(position_calls[i](client, 50 + i, &value), AS_OK);
        CHECK_I64(value, 77);
        CHECK_I64(fake.last.template_id, position_templates[i]);
        CHECK_I64(fake.last.recording_id, 50 + i);
    }
    CHECK_I64(as_archive_client_find_last_matching(client, 2, "frag", 5, 6, &value), AS_OK);
    CHECK_I64(fake.last.recording_id, 2);
    CHECK_I64(fake.last.session_id, 6);
    CHECK_TEXT(fake.last_channel, "frag");
    CHECK_I64(as_archive_client_stop_replay(client, -5), AS_OK);
    CHECK_I64(fake.last.replay_session_id, -5);
    CHECK_I64(as_archive_client_stop_all_replays(client, AS_NULL_VALUE), AS_OK);
    close_both();
}

static void replays_are_bounded_or_not(void)
{
    open_both();
    int64_t session = 0;
    fake.relevant_id = (INT64_C(9) << 32) | 0xFFFFFFFBu;
    CHECK_I64(as_archive_client_start_replay(client, 1, "aeron:ipc", 30, NULL, &session), AS_OK);
    CHECK_I64(session, fake.relevant_id);
    CHECK_I64(fake.last.template_id, ASI_CODEC_REPLAY);
    CHECK_I64(fake.last.position, AS_NULL_VALUE);
    CHECK_I64(fake.last.length, AS_NULL_VALUE);
    CHECK_I64(fake.last.replay_token, AS_NULL_VALUE);
    as_replay_params params;
    as_replay_params_init(&params);
    params.position = 64;
    params.length = -2;
    params.bounding_limit_counter_id = 12;
    params.file_io_max_length = 4096;
    as_subscription *subscription = NULL;
    CHECK_I64(as_archive_client_replay(client, 1, "aeron:ipc?session-id=8|alias=r", 30, &params, &session, &subscription), AS_OK);
    CHECK_I64(fake.last.template_id, ASI_CODEC_BOUNDED_REPLAY);
    CHECK_I64(fake.last.position, 64);
    CHECK_I64(fake.last.length, -2);
    CHECK_I64(fake.last.limit_counter_id, 12);
    CHECK_I64(fake.last.file_io_max_length, 4096);
    as_subscription_constants constants;
    as_subscription_get_constants(subscription, &constants);
    CHECK_TEXT(constants.channel, "aeron:ipc?alias=r|session-id=-5");
    CHECK_I64(constants.stream_id, 30);
    as_subscription_close(subscription);
    CHECK_I64(as_archive_client_start_replay(client, 1, "bogus", 30, NULL, &session), AS_E_USAGE);
    close_both();
}

static bool count_subscription(void *context, int64_t subscription_id, int32_t stream_id, const char *channel)
{
    int *count = context;
    CHECK_I64(subscription_id, 100 + *count);
    CHECK_I64(stream_id, 1001);
    CHECK_TEXT(channel, "aeron:ipc");
    ++*count;
    return true;
}

static void listings_end_by_count_or_by_unknown(void)
{
    open_both();
    static const struct
    {
        int32_t there, asked, given;
    } rows[] = { { 0, 1, 0 }, { 2, 10, 2 }, { 2, 2, 2 }, { 5, 4, 3 }, { 2, 1, 1 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        int count = 0;
        int32_t listed = -1;
        fake.descriptors = rows[i].there;
        CHECK_I64(as_archive_client_list_recordings(client, 0, rows[i].asked, count_recording, &count, &listed), AS_OK);
        CHECK_I64(count, rows[i].given);
        CHECK_I64(listed, rows[i].given);
        count = 0;
        CHECK_I64(as_archive_client_list_recordings_for_uri(
            client, 0, rows[i].asked, "ali", 1001, count_recording, &count, &listed), AS_OK);
        CHECK_I64(listed, rows[i].given);
        CHECK_TEXT(fake.last_channel, "ali");
        CHECK_I64(fake.last.stream_id, 1001);
        count = 0;
        CHECK_I64(as_archive_client_list_recording_subscriptions(
            client, 0, rows[i].asked, "", 1, true, count_subscription, &count, &listed), AS_OK);
        CHECK_I64(listed, rows[i].there < rows[i].asked ? rows[i].there : rows[i].asked);
        CHECK_I64(fake.last.apply_stream_id, 1);
    }
    int count = 0;
    int32_t listed = -1;
    CHECK_I64(as_archive_client_list_recording(client, 3, count_recording, &count, &listed), AS_OK);
    CHECK_I64(listed, 1);
    CHECK_I64(fake.last.recording_id, 3);
    CHECK_I64(as_archive_client_list_recordings(client, 0, 0, count_recording, &count, &listed), AS_E_USAGE);
    close_both();
}

static void errors_carry_code_and_text(void)
{
    open_both();
    int64_t position = -9;
    fake.error = "unknown recording id: 8";
    fake.error_code = ASI_CODEC_E_UNKNOWN_RECORDING;
    CHECK_I64(as_archive_client_start_position(client, 8, &position), AS_E_PEER);
    CHECK_I64(as_error_code(), ASI_CODEC_E_UNKNOWN_RECORDING);
    CHECK_TEXT(as_error_text(), "the archive answered StartPositionRequest with error 5: unknown recording id: 8");
    CHECK_I64(position, -9);
    fake.error = NULL;
    fake.code = ASI_CODEC_RECORDING_UNKNOWN;
    CHECK_I64(as_archive_client_stop_position(client, 8, &position), AS_E_PEER);
    CHECK_I64(as_error_code(), ASI_CODEC_E_UNKNOWN_RECORDING);
    /* The noise had errors for a request nobody waits for: told by poll, once. */
    int32_t handled = 0;
    CHECK_I64(as_archive_client_poll(client, &handled), AS_E_PEER);
    CHECK_I64(as_error_code(), ASI_CODEC_E_STORAGE_SPACE);
    CHECK(NULL != strstr(as_error_text(), "disk full later"));
    CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
    send_signal(64);
    for (int i = 0; handled < 1 && i < 1000; i++)
    {
        run_all(NULL);
        CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
    }
    CHECK_I64(handled, 1);
    CHECK_I64(last_signal.position, 64);
    close_both();
}

static void send_pings(int count)
{
    for (int i = 0; i < count; i++)
    {
        send_ping();
    }
    run_all(NULL);
}

/* Of a client that polls, or is kept alive, once in many seconds: the signal is not behind the pings of minutes, and the response
 * channel has room for twice as many as fit. */
static void pings_between_two_polls_do_not_add_up(void)
{
    open_both();
    int32_t handled = 0;
    send_pings(100);
    send_signal(64);
    run_all(NULL);
    CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
    CHECK_I64(handled, 1);
    CHECK_I64(last_signal.position, 64);
    for (int i = 0; i < 4; i++)
    {
        send_pings(256);
        CHECK_I64(as_archive_client_keepalive(client), AS_OK);
    }
    for (int i = 0; i < 4; i++)
    {
        send_pings(256);
        CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
        CHECK_I64(handled, 0);
    }
    close_both();
}

static void a_late_answer_is_dropped(void)
{
    open_fake();
    CHECK_I64(try_open(SECOND_NS / 5), AS_OK);
    fake.is_silent = true;
    int64_t position = 0;
    CHECK_I64(as_archive_client_start_position(client, 1, &position), AS_E_TIMEOUT);
    CHECK(NULL != strstr(as_error_text(), "StartPositionRequest"));
    CHECK(NULL != strstr(as_error_text(), "messageTimeout=200ms"));
    fake.is_silent = false;
    fake.relevant_id = 5;
    send_response(SESSION_ID, fake.last.correlation_id, ASI_CODEC_OK, 1, NULL);
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_OK);
    CHECK_I64(position, 5);
    close_both();
}

static void unreadable_messages_fail_the_call_only(void)
{
    open_both();
    const uint8_t foreign[16] = { 8, 0, 1, 0, 99, 0, 13, 0 };
    int64_t position = 0;
    send_bytes(foreign, sizeof(foreign));
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "expected schemaId=101, actual=99"));
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_OK);
    close_both();
}

static void a_lost_session_is_noticed(void)
{
    open_both();
    as_publication_close(fake.responses);
    int64_t position = 0;
    fake.is_silent = true;
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_E_CLOSED);
    CHECK(NULL != strstr(as_error_text(), "response channel from archive is not connected"));
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_E_CLOSED);
    int32_t handled;
    CHECK_I64(as_archive_client_poll(client, &handled), AS_E_CLOSED);
    close_both();
}

static void connect_says_why_it_fails(void)
{
    open_fake();
    fake.reject_connect = "authentication rejected";
    CHECK_I64(try_open(10 * SECOND_NS), AS_E_PEER);
    CHECK_I64(as_error_code(), ASI_CODEC_E_AUTHENTICATION_REJECTED);
    CHECK(NULL != strstr(as_error_text(), "authentication rejected"));
    close_both();

    open_fake();
    fake.challenges = true;
    CHECK_I64(try_open(10 * SECOND_NS), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "challenges"));
    close_both();

    open_fake();
    fake.protocol_version = 0x00020000;
    CHECK_I64(try_open(10 * SECOND_NS), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "2.0.0"));
    close_both();

    open_fake();
    as_subscription_close(fake.requests);
    fake.requests = NULL;
    CHECK_I64(try_open(SECOND_NS / 10), AS_E_TIMEOUT);
    CHECK(NULL != strstr(as_error_text(), "no archive reads control requests"));
    close_both();
}

static void an_old_archive_has_no_id(void)
{
    open_fake();
    fake.protocol_version = 0x00010A00;
    CHECK_I64(try_open(10 * SECOND_NS), AS_OK);
    CHECK_I64(as_archive_client_archive_id(client), AS_NULL_VALUE);
    close_both();
}

/* Each number of the protocol, and one that is not known yet, however the answer is waited for. */
static void every_error_code_reaches_the_caller(void)
{
    open_both();
    fake.with_noise = false;
    fake.error = "for this reason";
    for (int32_t code = AS_ARCHIVE_ERROR_GENERIC; code <= AS_ARCHIVE_ERROR_INVALID_POSITION + 1; code++)
    {
        int64_t position = -9;
        fake.error_code = code;
        CHECK_I64(as_archive_client_start_position(client, 8, &position), AS_E_PEER);
        CHECK_I64(as_error_code(), code);
        CHECK_I64(position, -9);
        CHECK(NULL != strstr(as_error_text(), "for this reason"));
        /* And of a request that nobody waits for any more. */
        as_result polled = AS_OK;
        int32_t handled;
        send_response(SESSION_ID, 99, ASI_CODEC_ERROR, code, "later");
        for (int i = 0; AS_OK == polled && i < 1000; i++)
        {
            run_all(NULL);
            polled = as_archive_client_poll(client, &handled);
        }
        CHECK_I64(polled, AS_E_PEER);
        CHECK_I64(as_error_code(), code);
    }
    close_both();
}

int main(void)
{
    RUN(every_error_code_reaches_the_caller);
    RUN(connects_and_closes);
    RUN(agents_that_have_no_thread_run_without_pause);
    RUN(numbers_are_asked_and_answered);
    RUN(replays_are_bounded_or_not);
    RUN(listings_end_by_count_or_by_unknown);
    RUN(errors_carry_code_and_text);
    RUN(pings_between_two_polls_do_not_add_up);
    RUN(a_late_answer_is_dropped);
    RUN(unreadable_messages_fail_the_call_only);
    RUN(a_lost_session_is_noticed);
    RUN(connect_says_why_it_fails);
    RUN(an_old_archive_has_no_id);
    return 0;
}
