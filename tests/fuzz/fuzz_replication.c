/* A replication fed by a hostile source archive: the destination is a living archive whose conductor steps it, the source is played
 * here, over IPC. An input says what is asked for, then step by step how the source answers the request it was sent: as it should,
 * with a field of its choice, with any bytes, to another correlation id, out of order, or not at all; and what it replays.
 * Whatever it does, the replication must end, once, with REPLICATE_END; what it leaves in the catalog must be possible, and the
 * archive must go on serving and start again. */
#include "archive/server_rig.h"
#include "fuzz.h"
#include "server/replication.h"

#define SOURCE_STREAM 110
#define COPY_STREAM 1001
#define MAX_STEPS 64
#define PATIENT_TURNS 300
#define INPUTS_PER_ARCHIVE 100
#define TERM_LENGTH 65536

typedef struct hostile_source
{
    as_subscription *control;
    as_publication *responses;
    as_publication *replay;
    int64_t session_id;
    asi_codec_request asked;     /* the last one that wants an answer; texts are copied */
    char channel[1024];          /* of `asked` */
    bool is_asked;
    asi_codec_event descriptor;  /* of the recording, as it should be */
} hostile_source;

static test_rig rig;
static raw_session *session;
static hostile_source source;
static int inputs;

/* -- the world ----------------------------------------------------------------------------------------------------------------- */

static void check_catalog(void)
{
    asi_catalog_record record;
    for (int64_t id = 0; asi_catalog_find(rig.archive->catalog, id, &record); id++)
    {
        CHECK_I64(asi_recording_check_untrusted(&record), AS_OK);
    }
}

static void end(void)
{
    raw_close(session);
    as_subscription_close(source.control);
    rig_close_archive(&rig);
    rig_open_archive(&rig);
    check_catalog();
    rig_close(&rig);
}

static void begin(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.message.timeout", "2s");
    rig_open_archive(&rig);
    session = raw_connect(&rig);
    raw_record(session, COPY_STREAM, 100, 10);
    raw_forget(session);
    CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc", SOURCE_STREAM, &source.control), AS_OK);
    inputs = 0;
}

static void on_request(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)context;
    (void)header;
    asi_codec_request request;
    CHECK_I64(asi_codec_request_decode_untrusted(data, length, &request), AS_OK);
    const bool wants_none = ASI_CODEC_KEEP_ALIVE == request.template_id || ASI_CODEC_CLOSE_SESSION == request.template_id ||
        ASI_CODEC_STOP_REPLAY == request.template_id;
    if (!wants_none)
    {
        source.asked = request;
        source.is_asked = true;
        snprintf(source.channel, sizeof(source.channel), "%.*s", (int)request.channel.length, request.channel.data);
    }
}

static void turn(void)
{
    rig_turn(&rig);
    raw_poll(session);
    CHECK(as_subscription_poll(source.control, on_request, NULL, 10) >= 0);
}

/* Until the source is asked something else, or for a while: the driver's thread takes its time. */
static void turn_until_asked(void)
{
    source.is_asked = false;
    for (int i = 0; i < PATIENT_TURNS && !source.is_asked && NULL != rig.archive->replications; i++)
    {
        turn();
    }
}

/* -- the source ---------------------------------------------------------------------------------------------------------------- */

static int64_t any_number(fuzz_input *input)
{
    switch (fuzz_u8(input) % 8)
    {
        case 0: return 0;
        case 1: return AS_NULL_VALUE;
        case 2: return INT64_MIN;
        case 3: return INT64_MAX;
        case 4: return 1LL << (fuzz_u8(input) % 63);
        case 5: return 32 * (int64_t)fuzz_u16(input);
        case 6: return -32 * (int64_t)fuzz_u16(input);
        default: return (int64_t)fuzz_number(input, 8);
    }
}

static void send(const uint8_t *bytes, int64_t length)
{
    for (int i = 0; i < PATIENT_TURNS && NULL != source.responses; i++)
    {
        if (as_publication_offer(source.responses, bytes, length) > 0)
        {
            return;
        }
        turn();
    }
}

static void send_event(const asi_codec_event *event)
{
    uint8_t bytes[RIG_MESSAGE_CAPACITY];
    int64_t length;
    if (AS_OK == asi_codec_event_encode(event, bytes, sizeof(bytes), &length))
    {
        send(bytes, length);
    }
}

static void close_publication(as_publication **publication)
{
    as_publication_close(*publication);
    *publication = NULL;
}

static void accept_session(void)
{
    close_publication(&source.responses);
    (void)!as_client_add_exclusive_publication(rig.client, source.channel, source.asked.stream_id, &source.responses);
}

/* The replay that was asked for, from the position that was: its log is what the descriptor said at first. */
static void start_replay(void)
{
    char channel[sizeof(source.channel) + 128];
    const int64_t position = source.asked.position < 0 ? 0 : source.asked.position;
    snprintf(channel, sizeof(channel), "%s|term-length=64k|mtu=1408|init-term-id=7|term-id=%d|term-offset=%d", source.channel,
        (int32_t)(uint32_t)(7 + position / TERM_LENGTH), (int32_t)(position % TERM_LENGTH));
    close_publication(&source.replay);
    (void)!as_client_add_exclusive_publication(rig.client, channel, source.asked.stream_id, &source.replay);
}

/* What a good archive would say to the request. */
static asi_codec_event good_answer(void)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_CONTROL_RESPONSE);
    event.code = ASI_CODEC_OK;
    event.relevant_id = 4096;
    switch (source.asked.template_id)
    {
        case ASI_CODEC_AUTH_CONNECT:
            accept_session();
            event.protocol_version = ASI_CODEC_PROTOCOL_VERSION;
            break;
        case ASI_CODEC_LIST_RECORDING:
            event = source.descriptor;
            break;
        case ASI_CODEC_REPLAY:
        {
            as_publication_constants constants = { .session_id = 0 };
            start_replay();
            if (NULL != source.replay)
            {
                as_publication_get_constants(source.replay, &constants);
            }
            event.relevant_id = constants.session_id;
            break;
        }
        default:
            break;
    }
    event.control_session_id = source.session_id;
    event.correlation_id = source.asked.correlation_id;
    return event;
}

static void change(asi_codec_event *event, fuzz_input *input)
{
    static const char LONG[] = "a text that nobody has asked for: aeron:udp?endpoint=localhost:0|session-id=1";
    const uint8_t field = fuzz_u8(input) % 19;
    const int64_t value = any_number(input);
    switch (field)
    {
        case 0: event->control_session_id = value; break;
        case 1: event->correlation_id = value; break;
        case 2: event->relevant_id = value; break;
        case 3: event->code = (int32_t)(value & 7); break;
        case 4: event->protocol_version = (int32_t)value; break;
        case 5: event->recording_id = value; break;
        case 6: event->start_position = value; break;
        case 7: event->stop_position = value; break;
        case 8: event->start_timestamp_ms = value; break;
        case 9: event->stop_timestamp_ms = value; break;
        case 10: event->initial_term_id = (int32_t)value; break;
        case 11: event->segment_file_length = (int32_t)value; break;
        case 12: event->term_buffer_length = (int32_t)value; break;
        case 13: event->mtu_length = (int32_t)value; break;
        case 14: event->session_id = (int32_t)value; break;
        case 15: event->stream_id = (int32_t)value; break;
        case 16: event->original_channel = asi_codec_text(LONG); break;
        case 17: event->error_message = asi_codec_text(LONG); break;
        default: event->template_id = ASI_CODEC_CHALLENGE; break;
    }
}

static void send_changed(fuzz_input *input)
{
    asi_codec_event event = good_answer();
    for (int i = fuzz_u8(input) % 4; i >= 0; i--)
    {
        change(&event, input);
    }
    send_event(&event);
}

static void send_signal(fuzz_input *input)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_RECORDING_SIGNAL);
    event.control_session_id = source.session_id;
    event.correlation_id = any_number(input);
    event.recording_id = any_number(input);
    event.subscription_id = any_number(input);
    event.position = any_number(input);
    event.signal = fuzz_u8(input);
    send_event(&event);
}

/* Any bytes, as an answer to what was asked where they are long enough. */
static void send_bytes(fuzz_input *input)
{
    int64_t length;
    uint8_t *bytes = fuzz_take(input, fuzz_u16(input) % 1200, &length);
    if (length >= 24 && 0 == (bytes[0] & 1))
    {
        asi_put_i64(bytes + 8, source.session_id);
        asi_put_i64(bytes + 16, source.asked.correlation_id);
    }
    send(bytes, length);
    free(bytes);
}

static void send_unasked_error(fuzz_input *input)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_CONTROL_RESPONSE);
    event.control_session_id = source.session_id;
    event.correlation_id = any_number(input);
    event.code = ASI_CODEC_ERROR;
    event.relevant_id = any_number(input);
    event.error_message = asi_codec_text("the replay has failed");
    send_event(&event);
}

static void replay_some(fuzz_input *input)
{
    uint8_t message[8192] = { 0 };
    const int64_t length = fuzz_u16(input) % (int64_t)sizeof(message);
    for (int count = fuzz_u8(input) % 32; NULL != source.replay && count >= 0; count--)
    {
        (void)!as_publication_offer(source.replay, message, length);
        turn();
    }
}

/* -- one input ----------------------------------------------------------------------------------------------------------------- */

static void describe(fuzz_input *input)
{
    asi_codec_event *descriptor = &source.descriptor;
    asi_codec_event_init(descriptor, ASI_CODEC_RECORDING_DESCRIPTOR);
    descriptor->recording_id = 3;
    descriptor->start_position = 0;
    descriptor->stop_position = 0 == (fuzz_u8(input) & 1) ? AS_NULL_VALUE : 32 * (int64_t)fuzz_u16(input);
    descriptor->start_timestamp_ms = 1000;
    descriptor->stop_timestamp_ms = AS_NULL_VALUE == descriptor->stop_position ? AS_NULL_VALUE : 2000;
    descriptor->initial_term_id = 7;
    descriptor->segment_file_length = 2 * TERM_LENGTH;
    descriptor->term_buffer_length = TERM_LENGTH;
    descriptor->mtu_length = 1408;
    descriptor->session_id = 1000 + inputs; /* that no image of an earlier input still has */
    descriptor->stream_id = COPY_STREAM;
    descriptor->stripped_channel = asi_codec_text("aeron:ipc");
    descriptor->original_channel = asi_codec_text("aeron:ipc");
    descriptor->source_identity = asi_codec_text("aeron:ipc");
}

static int64_t ask(fuzz_input *input)
{
    const uint8_t how = fuzz_u8(input);
    asi_codec_request request = request_of(ASI_CODEC_REPLICATE_2, 3);
    request.stream_id = SOURCE_STREAM;
    request.channel = asi_codec_text("aeron:ipc");
    request.dst_recording_id = 0 != (how & 1) ? 0 : AS_NULL_VALUE;
    request.stop_position = 0 != (how & 2) ? any_number(input) : AS_NULL_VALUE;
    request.file_io_max_length = 0 != (how & 4) ? (int32_t)any_number(input) : AS_NULL_VALUE;
    request.channel_tag_id = 0 != (how & 8) ? 77 : AS_NULL_VALUE;
    request.live_destination = asi_codec_text(0 != (how & 16) ? "aeron:udp?endpoint=localhost:0" : "");
    const bool is_manual = 0 != (how & 24);
    request.replication_channel = asi_codec_text(is_manual ? "aeron:udp?endpoint=localhost:0" :
        0 != (how & 32) ? "aeron:ipc?control-mode=response" : "aeron:ipc");
    return raw_ask_ok(session, &request);
}

static void step(fuzz_input *input)
{
    asi_codec_event event;
    switch (fuzz_u8(input) % 12)
    {
        case 0: send_changed(input); break;
        case 1: send_signal(input); break;
        case 2: send_bytes(input); break;
        case 3: send_unasked_error(input); break;
        case 4: replay_some(input); return;
        case 5: close_publication(&source.replay); break;
        case 6: close_publication(&source.responses); break;
        case 7: rig.clock_ahead_ns += fuzz_u16(input) * 100000LL; break;
        case 8: rig_turn_times(&rig, fuzz_u8(input)); return;
        default:
            event = good_answer();
            send_event(&event);
            break;
    }
    turn_until_asked();
}

/* The events of the destination's session that concern the replication. */
static void check_told(int64_t replication_id)
{
    int ends = 0;
    for (int i = 0; i < session->event_count; i++)
    {
        const asi_codec_event *event = &session->events[i];
        if (event->correlation_id == replication_id && ASI_CODEC_RECORDING_SIGNAL == event->template_id)
        {
            ends += AS_SIGNAL_REPLICATE_END == event->signal;
            CHECK(0 == ends || AS_SIGNAL_REPLICATE_END == event->signal || AS_SIGNAL_STOP == event->signal);
        }
    }
    CHECK_I64(ends, 1);
}

static void settle(int64_t replication_id)
{
    close_publication(&source.replay);
    if (NULL != rig.archive->replications)
    {
        asi_codec_request stop = request_of(ASI_CODEC_STOP_REPLICATION, AS_NULL_VALUE);
        stop.replication_id = replication_id;
        (void)raw_ask(session, &stop); /* it may be closing already */
    }
    UNTIL(&rig, (turn(), NULL == rig.archive->replications && 0 == rig.archive->uses->count[ASI_USE_RECORDS]));
    close_publication(&source.responses);
    raw_await_signal(session, AS_SIGNAL_REPLICATE_END, replication_id);
    check_told(replication_id);
    check_catalog();
    asi_codec_request request = request_of(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    CHECK_I64(raw_ask_ok(session, &request), 42);
    raw_forget(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (NULL == session)
    {
        begin();
        atexit(end);
    }
    fuzz_input input = { .at = data, .left = (int64_t)size };
    describe(&input);
    source.session_id = 5000 + inputs;
    const int64_t replication_id = ask(&input);
    turn_until_asked();
    for (int i = 0; i < MAX_STEPS && input.left > 0 && NULL != rig.archive->replications; i++)
    {
        step(&input);
    }
    settle(replication_id);
    if (++inputs == INPUTS_PER_ARCHIVE)
    {
        end();
        begin();
    }
    return 0;
}
