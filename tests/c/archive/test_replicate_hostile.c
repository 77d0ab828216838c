/* Goal: an impossible answer of a source archive ends a replication with an error that names it, and leaves nothing behind; it is
 * never used as a position, a session or a descriptor. Method: the destination is our archive, the test plays the source:
 * it answers every request correctly except one. tests/fuzz/fuzz_replication.c does the same with random answers. */
#include "server_rig.h"

#define SOURCE_STREAM 110
#define SOURCE_SESSION 5000

typedef struct played
{
    test_rig rig;
    raw_session *session;
    as_subscription *control;
    as_publication *responses;
    asi_codec_request asked;
    char channel[1024];
    bool is_asked;
} played;

static void on_request(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    played *p = context;
    (void)header;
    asi_codec_request request;
    CHECK_I64(asi_codec_request_decode_untrusted(data, length, &request), AS_OK);
    if (ASI_CODEC_KEEP_ALIVE != request.template_id && ASI_CODEC_CLOSE_SESSION != request.template_id)
    {
        p->asked = request;
        p->is_asked = true;
        snprintf(p->channel, sizeof(p->channel), "%.*s", (int)request.channel.length, request.channel.data);
    }
}

static asi_codec_event descriptor(void)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_RECORDING_DESCRIPTOR);
    event.recording_id = 3;
    event.start_position = 4096;
    event.start_timestamp_ms = 1000;
    event.initial_term_id = 7;
    event.segment_file_length = 2 * RIG_TERM_LENGTH;
    event.term_buffer_length = RIG_TERM_LENGTH;
    event.mtu_length = 1408;
    event.session_id = 99;
    event.stream_id = 1001;
    event.stripped_channel = event.original_channel = event.source_identity = asi_codec_text("aeron:ipc");
    return event;
}

static asi_codec_event ok(int64_t relevant_id)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_CONTROL_RESPONSE);
    event.code = ASI_CODEC_OK;
    event.relevant_id = relevant_id;
    event.protocol_version = ASI_CODEC_PROTOCOL_VERSION;
    return event;
}

static void send_event(played *p, asi_codec_event event)
{
    uint8_t bytes[RIG_MESSAGE_CAPACITY];
    int64_t length;
    event.control_session_id = SOURCE_SESSION;
    event.correlation_id = p->asked.correlation_id;
    CHECK_I64(asi_codec_event_encode(&event, bytes, sizeof(bytes), &length), AS_OK);
    UNTIL(&p->rig, as_publication_offer(p->responses, bytes, length) > 0);
}

/* Answers what is asked until it is `wanted`, which stays without an answer. */
static void answer_until(played *p, int32_t wanted)
{
    for (;;)
    {
        UNTIL(&p->rig, (p->is_asked || as_subscription_poll(p->control, on_request, p, 1) >= 0) && p->is_asked);
        p->is_asked = false;
        if (wanted == p->asked.template_id)
        {
            return;
        }
        if (ASI_CODEC_AUTH_CONNECT == p->asked.template_id)
        {
            CHECK_I64(as_client_add_exclusive_publication(p->rig.client, p->channel, p->asked.stream_id, &p->responses), AS_OK);
        }
        send_event(p, ASI_CODEC_LIST_RECORDING == p->asked.template_id ? descriptor() : ok(43));
    }
}

static void check_ended(played *p, int64_t id, const char *text)
{
    raw_await_signal(p->session, AS_SIGNAL_REPLICATE_END, id);
    const asi_codec_event *error = NULL;
    for (int i = 0; i < p->session->event_count; i++)
    {
        const asi_codec_event *event = &p->session->events[i];
        const bool is_error = ASI_CODEC_CONTROL_RESPONSE == event->template_id && ASI_CODEC_ERROR == event->code;
        error = is_error && event->correlation_id == id ? event : error;
    }
    CHECK(NULL != error);
    check_error(error, ASI_CODEC_E_GENERIC, text);
    UNTIL(&p->rig, NULL == p->rig.archive->replications && 0 == p->rig.archive->uses->count[ASI_USE_RECORDS]);
}

/* The request `wanted` of a replication is answered with `answer`. */
static void check_answer(bool is_live, int32_t wanted, asi_codec_event answer, const char *text)
{
    played p = { .is_asked = false };
    rig_open(&p.rig);
    rig_open_archive(&p.rig);
    p.session = raw_connect(&p.rig);
    CHECK_I64(as_client_add_subscription(p.rig.client, "aeron:ipc", SOURCE_STREAM, &p.control), AS_OK);
    asi_codec_request request = request_of(ASI_CODEC_REPLICATE_2, 3);
    request.stream_id = SOURCE_STREAM;
    request.channel = asi_codec_text("aeron:ipc");
    request.live_destination = asi_codec_text(is_live ? "aeron:udp?endpoint=localhost:0" : "");
    request.replication_channel = asi_codec_text(is_live ? "aeron:udp?endpoint=localhost:0" : "aeron:ipc");
    const int64_t id = raw_ask_ok(p.session, &request);
    answer_until(&p, wanted);
    send_event(&p, answer);
    check_ended(&p, id, text);
    as_publication_close(p.responses);
    as_subscription_close(p.control);
    raw_close(p.session);
    rig_close(&p.rig);
}

static void another_recordings_descriptor(void)
{
    asi_codec_event other = descriptor();
    other.recording_id = 4;
    check_answer(false, ASI_CODEC_LIST_RECORDING, other,
        "the source archive answered with the descriptor of recording 4, not of 3: is it an archive?");
}

static void a_position_that_can_not_be(void)
{
    check_answer(true, ASI_CODEC_RECORDING_POSITION, ok(INT64_MIN),
        "the source archive answered -9223372036854775808 as the position of recording 3: is it an archive?");
}

static void an_answer_that_is_none(void)
{
    asi_codec_event unknown = ok(3);
    unknown.code = ASI_CODEC_RECORDING_UNKNOWN;
    check_answer(true, ASI_CODEC_RECORDING_POSITION, unknown, "the source archive answered RecordingPositionRequest with template id "
        "1 and code 2, which is no answer to it: is it an archive?");
    asi_codec_event challenge;
    asi_codec_event_init(&challenge, ASI_CODEC_CHALLENGE);
    check_answer(false, ASI_CODEC_REPLAY, challenge, "the source archive answered ReplayRequest with template id 59 and code 0, "
        "which is no answer to it: is it an archive?");
}

/* The length of its replay would be less than any number, from the start of the source's recording. */
static void a_live_stop_position_before_the_start(void)
{
    played p = { .is_asked = false };
    rig_open(&p.rig);
    rig_open_archive(&p.rig);
    p.session = raw_connect(&p.rig);
    CHECK_I64(as_client_add_subscription(p.rig.client, "aeron:ipc", SOURCE_STREAM, &p.control), AS_OK);
    asi_codec_request request = request_of(ASI_CODEC_REPLICATE_2, 3);
    request.stream_id = SOURCE_STREAM;
    request.channel = asi_codec_text("aeron:ipc");
    request.stop_position = INT64_MIN;
    request.live_destination = request.replication_channel = asi_codec_text("aeron:udp?endpoint=localhost:0");
    const int64_t id = raw_ask_ok(p.session, &request);
    answer_until(&p, ASI_CODEC_LIST_RECORDING);
    send_event(&p, descriptor());
    raw_await_signal(p.session, AS_SIGNAL_REPLICATE_END, id);
    CHECK(as_subscription_poll(p.control, on_request, &p, 10) >= 0);
    CHECK(!p.is_asked); /* neither a position nor a replay */
    as_publication_close(p.responses);
    as_subscription_close(p.control);
    raw_close(p.session);
    rig_close(&p.rig);
}

int main(void)
{
    RUN(another_recordings_descriptor);
    RUN(a_position_that_can_not_be);
    RUN(an_answer_that_is_none);
    RUN(a_live_stop_position_before_the_start);
    return 0;
}
