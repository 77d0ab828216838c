/* Goal: any number of requests in flight are matched with their answers, time out each by itself, and end with their session.
 * Method: the scripted archive of fake_archive.h, silent unless the test answers. Spec: 07 §13, 08 §13. */
#include "fake_archive.h"

/* A session whose archive answers nothing unless the test does. */
static void open_silent(void)
{
    open_fake();
    CHECK_I64(try_open(10 * SECOND_NS), AS_OK);
    fake.is_silent = true;
}

static as_archive_call *send_call(const as_archive_request *request)
{
    as_archive_call *call = NULL;
    CHECK_I64(as_archive_client_send(client, request, &call), AS_OK);
    fake.last.correlation_id = AS_NULL_VALUE;
    for (int i = 0; fake.last.correlation_id != as_archive_call_correlation_id(call) && i < 1000; i++)
    {
        run_all(NULL);
    }
    CHECK_I64(fake.last.correlation_id, as_archive_call_correlation_id(call));
    return call;
}

static as_archive_call *send_position_call(void)
{
    as_archive_request request;
    as_archive_request_init(&request, AS_OP_START_POSITION);
    request.recording_id = 1;
    return send_call(&request);
}

static as_result await_call(as_archive_call *call, int64_t *value)
{
    as_result result = as_archive_call_poll(call, value);
    for (int i = 0; AS_AGAIN == result && i < 1000; i++)
    {
        run_all(NULL);
        result = as_archive_call_poll(call, value);
    }
    return result;
}

/* Polls until the client has handled a message: what the polls found is lost otherwise. */
static void poll_once_handled(void)
{
    int32_t handled = 0;
    for (int i = 0; 0 == handled && i < 1000; i++)
    {
        run_all(NULL);
        CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
    }
    CHECK(handled > 0);
}

/* An answer ends the poll: an unreadable message behind it fails the next one, and a signal is delivered by the next one. */
static void what_follows_an_answer_waits_for_the_next_poll(void)
{
    open_silent();
    const uint8_t foreign[16] = { 8, 0, 1, 0, 99, 0, 13, 0 };
    as_archive_call *first = send_position_call();
    as_archive_call *second = send_position_call();
    send_response(SESSION_ID, as_archive_call_correlation_id(second), ASI_CODEC_OK, 22, NULL);
    send_response(SESSION_ID, as_archive_call_correlation_id(first), ASI_CODEC_OK, 11, NULL);
    send_signal(96);
    send_bytes(foreign, sizeof(foreign));
    int64_t value = 0;
    CHECK_I64(await_call(first, &value), AS_OK);
    CHECK_I64(value, 11);
    CHECK_I64(signals, 0);
    CHECK_I64(as_archive_call_poll(second, &value), AS_OK);
    CHECK_I64(value, 22);
    int32_t handled = 0;
    CHECK_I64(as_archive_client_poll(client, &handled), AS_E_DATA);
    CHECK_I64(signals, 1);
    as_archive_call_close(first);
    as_archive_call_close(second);
    close_both();
}

static void a_call_times_out_and_its_late_error_is_reported(void)
{
    open_silent();
    as_archive_call *late = send_position_call();
    int64_t value = 0;
    ahead_ns = 5 * SECOND_NS;
    CHECK_I64(as_archive_call_poll(late, &value), AS_AGAIN);
    ahead_ns = 10 * SECOND_NS;
    CHECK_I64(as_archive_call_poll(late, &value), AS_E_TIMEOUT);
    CHECK(NULL != strstr(as_error_text(), "StartPositionRequest"));
    CHECK(NULL != strstr(as_error_text(), "messageTimeout=10s"));
    send_response(SESSION_ID, as_archive_call_correlation_id(late), ASI_CODEC_ERROR, ASI_CODEC_E_UNKNOWN_RECORDING, "too late");
    int32_t handled = 0;
    as_result polled = AS_OK;
    for (int i = 0; AS_OK == polled && i < 1000; i++)
    {
        run_all(NULL);
        polled = as_archive_client_poll(client, &handled);
    }
    CHECK_I64(polled, AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "too late"));
    CHECK_I64(as_archive_call_poll(late, &value), AS_E_TIMEOUT);
    as_archive_call_close(late);
    close_both();
}

static void send_descriptor(int64_t correlation_id, int64_t recording_id)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_RECORDING_DESCRIPTOR);
    event.control_session_id = SESSION_ID;
    event.correlation_id = correlation_id;
    event.recording_id = recording_id;
    event.start_position = recording_id * 32;
    event.stripped_channel = asi_codec_text("aeron:ipc");
    event.original_channel = asi_codec_text("aeron:ipc?alias=x");
    event.source_identity = asi_codec_text("");
    send_event(&event, 0);
}

/* Of two recordings. */
static as_archive_call *send_listing(as_on_recording on_recording, int *count)
{
    as_archive_request request;
    as_archive_request_init(&request, AS_OP_LIST_RECORDINGS);
    request.recording_id = 0;
    request.count = 2;
    request.on_recording = on_recording;
    request.context = count;
    return send_call(&request);
}

static void each_descriptor_extends_the_time_of_a_listing(void)
{
    open_silent();
    int count = 0;
    as_archive_call *listing = send_listing(count_recording, &count);
    as_archive_call *position = send_position_call();
    int64_t value = 0;
    ahead_ns = 9 * SECOND_NS;
    send_descriptor(as_archive_call_correlation_id(listing), 0);
    poll_once_handled();
    CHECK_I64(count, 1);
    ahead_ns = 18 * SECOND_NS;
    CHECK_I64(as_archive_call_poll(listing, &value), AS_AGAIN);
    CHECK_I64(as_archive_call_poll(position, &value), AS_E_TIMEOUT);
    ahead_ns = 20 * SECOND_NS;
    CHECK_I64(as_archive_call_poll(listing, &value), AS_E_TIMEOUT);
    as_archive_call_close(listing);
    as_archive_call_close(position);
    close_both();
}

static void a_challenge_is_no_answer_to_a_call(void)
{
    open_silent();
    as_archive_call *call = send_position_call();
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_CHALLENGE);
    event.control_session_id = SESSION_ID;
    event.correlation_id = as_archive_call_correlation_id(call);
    event.encoded_challenge = asi_codec_text("who?");
    send_event(&event, 0);
    int64_t value = -9;
    CHECK_I64(await_call(call, &value), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "is no answer to it"));
    CHECK_I64(value, -9);
    as_archive_call_close(call);
    close_both();
}

static void a_call_survives_a_poll_from_a_handler(void)
{
    open_silent();
    as_archive_call *call = send_position_call();
    call_inside_handler = call;
    send_signal(32);
    poll_once_handled();
    call_inside_handler = NULL;
    CHECK_I64(signals, 1);
    CHECK_I64(call_result_inside_handler, AS_E_USAGE);
    send_response(SESSION_ID, as_archive_call_correlation_id(call), ASI_CODEC_OK, 5, NULL);
    int64_t value = 0;
    CHECK_I64(await_call(call, &value), AS_OK);
    CHECK_I64(value, 5);
    as_archive_call_close(call);
    close_both();
}

static as_archive_call *closed_inside_handler;

static bool close_own_call(void *context, const as_recording *recording)
{
    (void)recording;
    as_archive_call_close(closed_inside_handler);
    ++*(int *)context;
    return false;
}

static void a_handler_that_closes_its_call_is_too_early(void)
{
    open_silent();
    int count = 0;
    as_archive_call *listing = send_listing(close_own_call, &count);
    closed_inside_handler = listing;
    send_descriptor(as_archive_call_correlation_id(listing), 0);
    poll_once_handled();
    send_descriptor(as_archive_call_correlation_id(listing), 1);
    int64_t value = 0;
    CHECK_I64(await_call(listing, &value), AS_OK);
    CHECK_I64(value, 1);
    CHECK_I64(count, 1);
    as_archive_call_close(listing);
    close_both();
}

static void an_answer_survives_the_client_but_a_call_does_not(void)
{
    open_silent();
    as_archive_call *answered = send_position_call();
    as_archive_call *unanswered = send_position_call();
    send_response(SESSION_ID, as_archive_call_correlation_id(answered), ASI_CODEC_OK, 5, NULL);
    poll_once_handled();
    as_archive_client_close(client);
    client = NULL;
    int64_t value = 0;
    CHECK_I64(as_archive_call_poll(answered, &value), AS_OK);
    CHECK_I64(value, 5);
    CHECK_I64(as_archive_call_poll(unanswered, &value), AS_E_CLOSED);
    CHECK(NULL != strstr(as_error_text(), "the archive client of a call to StartPositionRequest is closed"));
    as_archive_call_close(answered);
    as_archive_call_close(unanswered);
    close_both();
}

int main(void)
{
    RUN(what_follows_an_answer_waits_for_the_next_poll);
    RUN(a_call_times_out_and_its_late_error_is_reported);
    RUN(each_descriptor_extends_the_time_of_a_listing);
    RUN(a_challenge_is_no_answer_to_a_call);
    RUN(a_call_survives_a_poll_from_a_handler);
    RUN(a_handler_that_closes_its_call_is_too_early);
    RUN(an_answer_survives_the_client_but_a_call_does_not);
    return 0;
}
