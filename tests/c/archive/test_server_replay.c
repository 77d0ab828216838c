/* Goal: replays send exactly the recorded bytes, and end with an error where files are damaged or missing. Method: a bare
 * session against an invoked archive whose clock the test advances. Names carry the scenario of Spec: 08 §19; the other
 * scenarios of replays are in tests/conformance/archive/test_replay.py. */
#include "server_rig.h"

static test_rig rig;

#define REPLAY_CHANNEL "aeron:ipc?alias=replay"

/* -- reading a replay ------------------------------------------------------------------------------------------------------------ */

typedef struct reader
{
    as_subscription *subscription;
    as_image *image;
    as_fragment_assembler *assembler;
    int64_t messages;
    int64_t length;         /* of every message */
    int64_t end_position;   /* of the last message */
} reader;

static void on_read(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    reader *at = context;
    CHECK_I64(length, at->length);
    for (int64_t j = 0; j < length; j++)
    {
        CHECK_I64(data[j], (uint8_t)(at->messages * 31 + j));
    }
    at->end_position = header->position;
    at->messages++;
}

static reader *read_open(int64_t replay_session_id, int32_t stream_id, int64_t message_length)
{
    reader *opened = calloc(1, sizeof(*opened));
    CHECK(NULL != opened);
    opened->length = message_length;
    char channel[128];
    snprintf(channel, sizeof(channel), "aeron:ipc?session-id=%d", (int32_t)replay_session_id);
    CHECK_I64(as_client_add_subscription(rig.client, channel, stream_id, &opened->subscription), AS_OK);
    CHECK_I64(as_fragment_assembler_open(on_read, opened, &opened->assembler), AS_OK);
    UNTIL(&rig, NULL != (opened->image = as_subscription_image_at(opened->subscription, 0)));
    return opened;
}

static int64_t read_some(reader *from)
{
    const int64_t read = as_image_poll(from->image, as_fragment_assembler_on_fragment, from->assembler, 10);
    CHECK(read >= 0);
    return read;
}

static bool has_ended(const reader *of) { return as_image_is_closed(of->image) || as_image_is_end_of_stream(of->image); }

static void read_until_end(reader *from)
{
    UNTIL(&rig, (read_some(from), has_ended(from)));
}

static void read_close(reader *opened)
{
    as_image_release(opened->image);
    as_subscription_close(opened->subscription);
    as_fragment_assembler_close(opened->assembler);
    free(opened);
}

static int64_t replay_count(void) { return rig.archive->uses->count[ASI_USE_REPLAYS]; }

static void await_no_replay(void) { UNTIL(&rig, 0 == replay_count()); }

/* -- scenarios ---------------------------------------------------------------------------------------------------------------------- */

static void s43_s60_a_whole_recording(void)
{
    static const int64_t LENGTHS[] = { 1000, 1376, 3000, 8, 0, 8000 };
    raw_session *session = raw_connect(&rig);
    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
    {
        const int32_t stream_id = 4300 + (int32_t)i;
        const raw_recording recording = raw_record(session, stream_id, LENGTHS[i], 300); /* over terms, mostly over segments */
        asi_codec_request request = replay_of(recording.id, 0, -1, REPLAY_CHANNEL, stream_id);
        const int64_t replay_session_id = raw_ask_ok(session, &request);
        reader *replay = read_open(replay_session_id, stream_id, LENGTHS[i]);
        as_image_constants image;
        as_image_get_constants(replay->image, &image);
        CHECK_I64(image.session_id, (int32_t)replay_session_id);
        read_until_end(replay);
        CHECK_I64(replay->messages, 300);
        CHECK_I64(as_image_position(replay->image), raw_position(session, ASI_CODEC_STOP_POSITION, recording.id));
        CHECK(!as_image_is_publication_revoked(replay->image));
        read_close(replay);
        raw_forget(session);
    }
    await_no_replay();
    raw_close(session);
}

/* As a publisher leaves it at a term's end when a message of many fragments does not fit, and a receiver in the place of what was
 * lost. */
static void padding_longer_than_a_message(void)
{
    raw_session *session = raw_connect(&rig);
    raw_recording recording = raw_start(session, 4100, true);
    for (int64_t i = 0; i < 6; i++)
    {
        publish_one(&rig, recording.publication, 8192, i); /* frames of 8,384 bytes in all */
    }
    int64_t end;
    UNTIL(&rig, (end = as_publication_append_padding(recording.publication, RIG_TERM_LENGTH - 8320 - 6 * 8384 - 32)) > 0);
    CHECK_I64(end, RIG_TERM_LENGTH - 8320);
    CHECK_I64(publish_one(&rig, recording.publication, 8192, 6), RIG_TERM_LENGTH + 8384);
    UNTIL(&rig, (end = as_publication_append_padding(recording.publication, 50000 - 32)) > 0);
    CHECK_I64(end, RIG_TERM_LENGTH + 8384 + 50016);
    raw_finish(session, &recording, publish_one(&rig, recording.publication, 8192, 7));
    asi_codec_request request = replay_of(recording.id, 0, -1, REPLAY_CHANNEL, 4100);
    reader *replay = read_open(raw_ask_ok(session, &request), 4100, 8192);
    read_until_end(replay);
    CHECK_I64(replay->messages, 8);
    CHECK_I64(as_image_position(replay->image), raw_position(session, ASI_CODEC_STOP_POSITION, recording.id));
    read_close(replay);
    await_no_replay();
    raw_close(session);
}

/* Spec: 08 §7.1, row by row, with the texts of the stock server. */
static void s44_wrong_requests_are_refused(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording stopped = raw_record(session, 4044, 1000, 10); /* stop 10560 */
    const raw_recording empty = raw_record(session, 4144, 1, 0);
    raw_recording active = raw_start(session, 4244, true);
    const int64_t end = publish(&rig, active.publication, 1000, 10);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, active.id) == end);
    const struct
    {
        int64_t recording_id;
        int64_t position;
        int64_t length;
        const char *channel;
        int32_t code;
        const char *text; /* %lld: the recording's id */
    } rows[] = {
        { 99, 0, 100, "aeron:ipc", ASI_CODEC_E_UNKNOWN_RECORDING, "unknown recording id: 99" },
        { -1, 0, 100, "aeron:ipc", ASI_CODEC_E_UNKNOWN_RECORDING, "unknown recording id: -1" },
        { stopped.id, 33, 100, "aeron:ipc", ASI_CODEC_E_GENERIC,
            "requested replay start position=33 is not a multiple of FRAME_ALIGNMENT (32) for recording %lld" },
        { stopped.id, -2, 100, "aeron:ipc", ASI_CODEC_E_GENERIC,
            "requested replay start position=-2 is not a multiple of FRAME_ALIGNMENT (32) for recording %lld" },
        { stopped.id, -32, 100, "aeron:ipc", ASI_CODEC_E_INVALID_POSITION,
            "requested replay start position=-32 is less than recording start position=0 for recording %lld" },
        { stopped.id, 1 << 20, 100, "aeron:ipc", ASI_CODEC_E_INVALID_POSITION,
            "requested replay start position=1048576 must be less than the limit position=10560 for recording %lld" },
        { stopped.id, 10560, 100, "aeron:ipc", ASI_CODEC_E_INVALID_POSITION,
            "requested replay start position=10560 must be less than the limit position=10560 for recording %lld" },
        { stopped.id, 10560, -1, "aeron:ipc", ASI_CODEC_E_INVALID_POSITION,
            "requested replay start position=10560 must be less than the limit position=10560 for recording %lld" },
        { stopped.id, 0, -3, "aeron:ipc", ASI_CODEC_E_GENERIC,
            "replay length must be positive: replayLength=-3, length=-3, stopPosition=10560, replayPosition=0 for recording %lld" },
        { stopped.id, 0, INT64_MIN, "aeron:ipc", ASI_CODEC_E_GENERIC,
            "replay length must be positive: replayLength=-9223372036854775808, length=-9223372036854775808, "
            "stopPosition=10560, replayPosition=0 for recording %lld" },
        { empty.id, 0, -2, "aeron:ipc", ASI_CODEC_E_INVALID_POSITION,
            "requested replay start position=0 must be less than the limit position=0 for recording %lld" },
        { empty.id, AS_NULL_VALUE, -2, "aeron:ipc", ASI_CODEC_E_EMPTY_RECORDING,
            "when replaying and stopping the replay length must be non-zero, recordingId=%lld" },
        { empty.id, AS_NULL_VALUE, -3, "aeron:ipc", ASI_CODEC_E_GENERIC,
            "replay length must be positive: replayLength=-3, length=-3, stopPosition=0, replayPosition=0 for recording %lld" },
        { active.id, 10592, 100, "aeron:ipc", ASI_CODEC_E_INVALID_POSITION,
            "requested replay start position=10592 must be less than the limit position=10560 for recording %lld" },
        { active.id, 10560, -2, "aeron:ipc", ASI_CODEC_E_EMPTY_RECORDING,
            "when replaying and stopping the replay length must be non-zero, recordingId=%lld" },
        { stopped.id, 0, 100, "aeron:ipc?linger=5s", ASI_CODEC_E_GENERIC,
            "failed to process replayChannel - For input string: \"5s\"" },
        { stopped.id, 0, 100, "aeron:ipc?session-id=x", ASI_CODEC_E_GENERIC,
            "failed to process replayChannel - 'session-id' must be a valid integer" },
        { stopped.id, 0, 100, "aeron:ipc?session-id=2147483648", ASI_CODEC_E_GENERIC,
            "failed to process replayChannel - 'session-id' must be a valid integer" },
        { stopped.id, 0, 100, "aeron:ipc?session-id= 5", ASI_CODEC_E_GENERIC,
            "failed to process replayChannel - 'session-id' must be a valid integer" },
        { stopped.id, 0, 100, "aeron:ipc?ttl=x", ASI_CODEC_E_GENERIC, "failed to process replayChannel - 'ttl' must be a value integer" },
        { stopped.id, 0, 100, "aeron:ipc?ttl=256", ASI_CODEC_E_GENERIC,
            "failed to process replayChannel - TTL not in range 0-255: 256" },
        { stopped.id, 0, 100, "aeron:ipc?media-rcv-ts-offset=RESERVED", ASI_CODEC_E_GENERIC,
            "failed to process replayChannel - mediaReceiveTimestampOffset must be a number or the value 'reserved' found: RESERVED" },
        { stopped.id, 0, 100, "aeron:ipc?control-mode=manuel", ASI_CODEC_E_GENERIC,
            "failed to process replayChannel - invalid control mode: manuel" },
        { stopped.id, 0, 100, "bogus", ASI_CODEC_E_GENERIC,
            "failed to process replayChannel - Aeron URIs must start with 'aeron:', found: bogus" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_codec_request request =
            replay_of(rows[i].recording_id, rows[i].position, rows[i].length, rows[i].channel, 4044);
        char text[512];
        const char *mark = strstr(rows[i].text, "%lld");
        snprintf(text, sizeof(text), "%.*s", (int)(NULL == mark ? (long)strlen(rows[i].text) : mark - rows[i].text), rows[i].text);
        if (NULL != mark)
        {
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%" PRId64, rows[i].recording_id);
        }
        check_error(raw_ask(session, &request), rows[i].code, text);
        CHECK_I64(replay_count(), 0);
    }
    asi_codec_request request = replay_of(stopped.id, 0, 100, "aeron:ipc", 4044);
    request.file_io_max_length = 100;
    check_error(raw_ask(session, &request), ASI_CODEC_E_GENERIC, "fileIoMaxLength=100 < mtuLength=1408"); /* scenario 54 */
    request = replay_of(stopped.id, 0, 100, "aeron:udp?endpoint=localhost:0", 4044);
    const asi_codec_event *event = raw_ask(session, &request);
    CHECK_I64(event->code, ASI_CODEC_ERROR);
    static const char BEGIN[] = "failed to create replay publication: ";
    CHECK(0 == strncmp(event->error_message.data, BEGIN, sizeof(BEGIN) - 1));
    CHECK_I64(replay_count(), 0);
    as_publication_close(active.publication);
    raw_close(session);
}

static void s50_nobody_listens(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 4050, 1000, 20);
    asi_codec_request request = replay_of(recording.id, 0, -1, "aeron:ipc?session-id=4242", 4150);
    const int64_t replay_session_id = raw_ask_ok(session, &request);
    CHECK_I64((int32_t)replay_session_id, 4242); /* scenario 59 */
    raw_forget(session);
    rig_turn_times(&rig, 20);
    CHECK_I64(replay_count(), 1);
    rig.clock_ahead_ns += 6 * RIG_SECOND;
    const asi_codec_event *event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id);
    char text[512];
    asi_codec_request list = request_of(ASI_CODEC_LIST_RECORDING, recording.id);
    char copied[512];
    snprintf(copied, sizeof(copied), "%.*s", (int)event->error_message.length, event->error_message.data);
    CHECK_I64(event->relevant_id, ASI_CODEC_E_GENERIC);
    raw_send(session, &list);
    const asi_codec_event *descriptor = raw_await(session, ASI_CODEC_RECORDING_DESCRIPTOR, list.correlation_id);
    snprintf(text, sizeof(text), "no connection established for replayChannel=aeron:ipc?mtu=1408|term-length=64k|init-term-id=%d|"
        "term-id=%d|term-offset=0|session-id=4242|linger=5s, replayStreamId=4150, recordingId=%" PRId64 ", replaySessionId=%" PRId64
        ", segmentFile=%" PRId64 "-0.rec", descriptor->initial_term_id, descriptor->initial_term_id, recording.id,
        replay_session_id, recording.id);
    CHECK_TEXT(copied, text);
    await_no_replay();
    raw_close(session);
}

static void s53_s55_s56_limits_and_damaged_folders(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.max.concurrent.replays", "2");
    rig_set(&rig, "aeron.archive.record.checksum", "CRC-32C");
    rig_set(&rig, "aeron.archive.replay.checksum", "CRC-32C");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 4053, 1000, 400);
    asi_codec_request request = replay_of(recording.id, 0, -1, REPLAY_CHANNEL, 4153);
    reader *replay = read_open(raw_ask_ok(session, &request), 4153, 1000);
    request.stream_id = 4154;
    raw_ask_ok(session, &request);
    request.stream_id = 4155;
    check_error(raw_ask(session, &request), ASI_CODEC_E_MAX_REPLAYS, "max concurrent replays reached 2");
    read_until_end(replay); /* with checksums of all frames verified */
    CHECK_I64(replay->messages, 400);
    read_close(replay);
    asi_codec_request stop = request_of(ASI_CODEC_STOP_ALL_REPLAYS, AS_NULL_VALUE);
    raw_ask_ok(session, &stop);
    await_no_replay();

    char path[AS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%" PRId64 "-%d.rec", rig.archive_dir, recording.id, 0);
    FILE *file = fopen(path, "r+b");
    CHECK(NULL != file);
    CHECK(0 == fseek(file, 1056 * 2 + 100, SEEK_SET) && EOF != fputc(0xEE, file) && 0 == fclose(file));
    request = replay_of(recording.id, 0, -1, REPLAY_CHANNEL, 4156);
    replay = read_open(raw_ask_ok(session, &request), 4156, 1000);
    raw_forget(session);
    const asi_codec_event *event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id);
    static const char BEGIN[] = "CRC checksum mismatch at position=2112 (segmentFilePosition=0, segmentOffset=0, termOffset=0, "
        "frameOffset=2112): recorded checksum=";
    CHECK_I64(event->code, ASI_CODEC_ERROR);
    CHECK(0 == strncmp(event->error_message.data, BEGIN, sizeof(BEGIN) - 1));
    UNTIL(&rig, (read_some(replay), as_image_is_closed(replay->image)));
    CHECK(as_image_is_publication_revoked(replay->image));
    read_close(replay);
    await_no_replay();

    snprintf(path, sizeof(path), "%s/%" PRId64 "-%d.rec", rig.archive_dir, recording.id, 2 * RIG_SEGMENT_LENGTH);
    CHECK(0 == unlink(path));
    request = replay_of(recording.id, RIG_SEGMENT_LENGTH, -1, REPLAY_CHANNEL, 4157);
    replay = read_open(raw_ask_ok(session, &request), 4157, 1000);
    replay->messages = 124; /* of 1056 bytes, 62 in each term */
    raw_forget(session);
    UNTIL(&rig, (read_some(replay), raw_poll(session),
        NULL != (event = raw_find(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id))));
    static const char MISSING[] = "recording segment not found, recordingId=";
    CHECK_I64(event->code, ASI_CODEC_ERROR);
    CHECK(0 == strncmp(event->error_message.data, MISSING, sizeof(MISSING) - 1));
    read_close(replay);
    request = replay_of(recording.id, 2 * RIG_SEGMENT_LENGTH, -1, REPLAY_CHANNEL, 4158);
    raw_send(session, &request);
    rig_turn_times(&rig, 50);
    rig.clock_ahead_ns += 6 * RIG_SECOND;
    event = raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id);
    static const char ABSENT[] = "recording segment file not created, recordingId=";
    CHECK(0 == strncmp(event->error_message.data, ABSENT, sizeof(ABSENT) - 1));
    await_no_replay();
    raw_close(session);
    rig_close(&rig);
}

/* Bytes of the disk are input: whatever a broken frame holds, the replay ends with an error and the archive goes on. */
static void broken_frames_end_a_replay_and_nothing_else(void)
{
    static const struct
    {
        int64_t at;
        int32_t value;
    } ROWS[] = { { 1056, 0 }, { 1056, -5 }, { 1056, 7 }, { 1056, INT32_MAX }, { 1056, RIG_TERM_LENGTH }, { 1056 + 8, 4711 },
        { 1056 + 20, 99 } };
    raw_session *session = raw_connect(&rig);
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        const int32_t stream_id = 4500 + (int32_t)i;
        const raw_recording recording = raw_record(session, stream_id, 1000, 5);
        char path[AS_PATH_MAX];
        snprintf(path, sizeof(path), "%s/%" PRId64 "-0.rec", rig.archive_dir, recording.id);
        FILE *file = fopen(path, "r+b");
        CHECK(NULL != file);
        CHECK(0 == fseek(file, (long)ROWS[i].at, SEEK_SET) && 1 == fwrite(&ROWS[i].value, 4, 1, file) && 0 == fclose(file));
        asi_codec_request request = replay_of(recording.id, 0, -1, REPLAY_CHANNEL, stream_id);
        reader *replay = read_open(raw_ask_ok(session, &request), stream_id, 1000);
        raw_forget(session);
        CHECK_I64(raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id)->code, ASI_CODEC_ERROR);
        await_no_replay();
        read_close(replay);
    }
    raw_close(session);
}

static void replays_on_threads_of_their_own(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.threading.mode", "DEDICATED");
    rig.has_threads = true;
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    for (int i = 0; i < 3; i++)
    {
        raw_recording recording = raw_start(session, 4800 + i, true);
        asi_codec_request request = replay_of(recording.id, AS_NULL_VALUE, -1, REPLAY_CHANNEL, 4850 + i);
        reader *replay = read_open(raw_ask_ok(session, &request), 4850 + i, 1000);
        int64_t end = 0;
        for (int64_t j = 0; j < 500; j++)
        {
            end = publish_one(&rig, recording.publication, 1000, j);
            read_some(replay);
        }
        raw_finish(session, &recording, end);
        read_until_end(replay);
        CHECK_I64(replay->messages, 500);
        read_close(replay);
    }
    raw_close(session);
    rig_close(&rig);
}

int main(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    RUN(s43_s60_a_whole_recording);
    RUN(padding_longer_than_a_message);
    RUN(s44_wrong_requests_are_refused);
    RUN(s50_nobody_listens);
    RUN(broken_frames_end_a_replay_and_nothing_else);
    rig_close(&rig);
    RUN(s53_s55_s56_limits_and_damaged_folders);
    RUN(replays_on_threads_of_their_own);
    return 0;
}
