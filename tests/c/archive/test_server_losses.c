/* Goal: recording, replay and truncation lose and invent no bytes in cases where a small mistake once did so unnoticed.
 * Method: a bare session against an invoked archive (server_rig.h), one situation at a time, in milliseconds. */
#include "server_rig.h"

static test_rig rig;

/* -- recording ----------------------------------------------------------------------------------------------------------------- */

static asi_active_recording *active(int64_t recording_id) { return asi_recordings_find(rig.archive, recording_id); }

/* Turns the client alone: the archive stands still. */
#define UNTIL_WITHOUT_ARCHIVE(condition) \
    do                                   \
    {                                    \
        as_archive *held = rig.archive;  \
        rig.archive = NULL;              \
        UNTIL(&rig, condition);          \
        rig.archive = held;              \
    } while (0)

/* More than a poll takes is there when the publisher has gone: padding and a new term begin blocks of their own. */
static void what_was_published_before_the_end_is_recorded(void)
{
    raw_session *session = raw_connect(&rig);
    raw_recording made = raw_start(session, 1001, true);
    int64_t position = publish(&rig, made.publication, 1000, 55); /* the term ends within the next 8 messages */
    const asi_active_recording *recording = active(made.id);
    UNTIL(&rig, asi_load_acquire_i64(&recording->session.recorded->position) == position);
    CHECK_I64(as_counter_get(recording->session.counter), position);
    for (int i = 0; i < 20; i++)
    {
        uint8_t message[1000] = { 1 };
        UNTIL_WITHOUT_ARCHIVE((position = as_publication_offer(made.publication, message, sizeof(message))) > 0);
    }
    CHECK(position > RIG_TERM_LENGTH);
    as_publication_close(made.publication);
    const as_image *image = recording->session.image;
    UNTIL_WITHOUT_ARCHIVE(as_image_end_of_stream_position(image) < INT64_MAX);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, made.correlation_id)->position, position);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, made.id), position);
    raw_close(session);
}

/* The publisher stays: a recording that can't be written ends all the same. */
static void a_refused_write_ends_the_recording(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording made = raw_start(session, 1002, true);
    const int64_t good = publish(&rig, made.publication, 1000, 1);
    UNTIL(&rig, asi_load_acquire_i64(&active(made.id)->session.recorded->position) == good);
    rig.write_count = 0;
    rig.fail_at = 1;
    rig.fail_with = EIO;
    publish(&rig, made.publication, 1000, 1);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, made.correlation_id)->position, good);
    rig.fail_at = 0;
    as_publication_close(made.publication);
    raw_close(session);
}

/* -- tokens -------------------------------------------------------------------------------------------------------------------- */

#define RESPONSE_CHANNEL "aeron:udp?control-mode=response|control=localhost:24999"

static int64_t token_of(raw_session *session, int64_t recording_id)
{
    asi_codec_request request = request_of(ASI_CODEC_REPLAY_TOKEN, recording_id);
    return raw_ask_ok(session, &request);
}

static asi_codec_request replay_with(int64_t token, int64_t recording_id)
{
    asi_codec_request request = replay_of(recording_id, 0, -1, RESPONSE_CHANNEL, 1103);
    request.replay_token = token;
    return request;
}

static void check_unknown_token(raw_session *session, int64_t token, int64_t recording_id)
{
    char text[128];
    asi_codec_request request = replay_with(token, recording_id);
    snprintf(text, sizeof(text), "Unknown session or token timeout for replayToken=%" PRId64, token);
    check_error(raw_ask(session, &request), ASI_CODEC_E_GENERIC, text);
}

static void a_token_is_good_for_its_recording_and_its_time(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording first = raw_record(session, 1003, 100, 1);
    const raw_recording second = raw_record(session, 1004, 100, 1);
    int64_t token = token_of(session, first.id);
    check_unknown_token(session, token, second.id);
    check_unknown_token(session, token + 1, first.id);
    rig.clock_ahead_ns += rig.config->connect_timeout_ns + RIG_SECOND;
    check_unknown_token(session, token, first.id); /* in the cycle before it is dropped */
    UNTIL(&rig, NULL == rig.archive->tokens);
    token = token_of(session, first.id);
    CHECK(NULL != rig.archive->tokens);
    rig.clock_ahead_ns += rig.config->connect_timeout_ns + RIG_SECOND;
    UNTIL(&rig, NULL == rig.archive->tokens);
    raw_close(session);
}

static void tokens_end_with_their_session(void)
{
    raw_session *session = raw_connect(&rig);
    raw_session *other = raw_connect(&rig);
    const raw_recording made = raw_record(session, 1005, 100, 1);
    token_of(session, made.id);
    asi_codec_request request = request_of(ASI_CODEC_CLOSE_SESSION, AS_NULL_VALUE);
    raw_send(session, &request);
    UNTIL(&rig, NULL == asi_control_find(rig.archive, session->id));
    CHECK(NULL == rig.archive->tokens);
    raw_close(session);
    raw_close(other);
}

static void tokens_have_a_bound(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording made = raw_record(session, 1006, 100, 1);
    for (int i = 0; i < 4096; i++)
    {
        token_of(session, made.id);
        raw_forget(session);
    }
    asi_codec_request request = request_of(ASI_CODEC_REPLAY_TOKEN, made.id);
    check_error(raw_ask(session, &request), ASI_CODEC_E_GENERIC,
        "4096 replay tokens are out already: use some, or wait until they expire");
    raw_close(session);
}

/* -- replays --------------------------------------------------------------------------------------------------------------------- */

static void damage(int64_t recording_id, int64_t at)
{
    char path[AS_PATH_MAX];
    uint8_t byte;
    snprintf(path, sizeof(path), "%s/%" PRId64 "-0.rec", rig.archive_dir, recording_id);
    FILE *file = fopen(path, "r+b");
    CHECK(NULL != file && 0 == fseek(file, at, SEEK_SET) && 1 == fread(&byte, 1, 1, file));
    byte ^= 0x40;
    CHECK(0 == fseek(file, at, SEEK_SET) && 1 == fwrite(&byte, 1, 1, file) && 0 == fclose(file));
}

static const asi_codec_event *find_error(const raw_session *session, int64_t correlation_id)
{
    for (int i = 0; i < session->event_count; i++)
    {
        const asi_codec_event *event = &session->events[i];
        if (ASI_CODEC_CONTROL_RESPONSE == event->template_id && ASI_CODEC_ERROR == event->code &&
            event->correlation_id == correlation_id)
        {
            return event;
        }
    }
    return NULL;
}

/* A replay may begin at a frame of the recording only, and not where another stream's header stands. */
static void a_replay_begins_at_its_own_frames(void)
{
    static const int64_t FIELDS[] = { 8, 16, 20 }; /* term offset, stream id, term id */
    for (size_t i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++)
    {
        raw_session *session = raw_connect(&rig);
        const raw_recording made = raw_record(session, 1012 + (int32_t)i, 1000, 3);
        damage(made.id, 1056 + FIELDS[i]);
        asi_codec_request request = replay_of(made.id, 1056, -1, "aeron:ipc", 1112);
        const asi_codec_event *event = raw_ask(session, &request);
        CHECK_I64(event->code, ASI_CODEC_ERROR);
        CHECK_I64(event->relevant_id, ASI_CODEC_E_INVALID_POSITION);
        raw_close(session);
    }
}

/* The first frame of a batch is read apart from the others. */
static void no_damaged_frame_is_replayed(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.record.checksum", "org.agrona.checksum.Crc32");
    rig_set(&rig, "aeron.archive.replay.checksum", "org.agrona.checksum.Crc32");
    rig_open_archive(&rig);
    as_subscription *listener = NULL;
    CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc", 1113, &listener), AS_OK);
    for (int64_t frame = 0; frame < 2; frame++)
    {
        raw_session *session = raw_connect(&rig);
        const raw_recording made = raw_record(session, 1016 + (int32_t)frame, 1000, 2);
        damage(made.id, frame * 1056 + AS_FRAME_HEADER_LENGTH + 10);
        asi_codec_request request = replay_of(made.id, 0, -1, "aeron:ipc", 1113);
        raw_send(session, &request);
        const asi_codec_event *event = NULL;
        UNTIL(&rig, (raw_poll(session), NULL != (event = find_error(session, request.correlation_id))));
        CHECK(0 == strncmp(event->error_message.data, "CRC checksum mismatch at position=", 34));
        UNTIL(&rig, 0 == rig.archive->uses->count[ASI_USE_REPLAYS]);
        raw_close(session);
    }
    as_subscription_close(listener);
    rig_close(&rig);
}

/* -- truncation ------------------------------------------------------------------------------------------------------------------ */

static void put_header(int64_t recording_id, int64_t at, const asi_frame_header *header)
{
    char path[AS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%" PRId64 "-0.rec", rig.archive_dir, recording_id);
    FILE *file = fopen(path, "r+b");
    CHECK(NULL != file && 0 == fseek(file, at, SEEK_SET) && 1 == fwrite(header, sizeof(*header), 1, file) && 0 == fclose(file));
}

/* Within a message may stand anything, also what looks like a frame of another stream, term or place. */
static void a_recording_is_cut_between_frames_only(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording made = raw_record(session, 1007, 1000, 3);
    int64_t length;
    uint8_t *bytes = read_segment(&rig, made.id, 0, &length);
    CHECK(NULL != bytes);
    const int64_t within = 64;
    asi_frame_header right = *(const asi_frame_header *)(const void *)bytes;
    free(bytes);
    right.term_offset = (int32_t)within;
    asi_codec_request request = request_of(ASI_CODEC_TRUNCATE_RECORDING, made.id);
    request.position = within;
    for (int kind = 0; kind < 4; kind++)
    {
        asi_frame_header header = right;
        header.stream_id += 0 == kind;
        header.term_id += 1 == kind;
        header.term_offset += 2 == kind ? 32 : 0;
        header.frame_length = 3 == kind ? 0 : header.frame_length;
        put_header(made.id, within, &header);
        check_error(raw_ask(session, &request), ASI_CODEC_E_GENERIC, "64 position not aligned to a data header");
        raw_forget(session);
    }
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, made.id), 3 * 1056);
    request.position = 1056;
    raw_ask_ok(session, &request);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, made.id), 1056);
    bytes = read_segment(&rig, made.id, 0, &length);
    CHECK_I64(length, RIG_SEGMENT_LENGTH);
    for (int64_t i = 1056; i < length; i++)
    {
        CHECK_I64(bytes[i], 0);
    }
    free(bytes);
    raw_close(session);
}

static bool has_segment(int64_t recording_id, int64_t base)
{
    int64_t length;
    uint8_t *bytes = read_segment(&rig, recording_id, base, &length);
    free(bytes);
    return NULL != bytes;
}

/* Three segments; cut in the first, the others go. */
static void a_cut_takes_all_segments_behind_it(void)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording made = raw_record(session, 1009, 1000, 300);
    CHECK(has_segment(made.id, 2 * RIG_SEGMENT_LENGTH));
    asi_codec_request request = request_of(ASI_CODEC_TRUNCATE_RECORDING, made.id);
    request.position = 1056;
    raw_ask_ok(session, &request);
    raw_await_signal(session, AS_SIGNAL_DELETE, request.correlation_id);
    CHECK(has_segment(made.id, 0));
    CHECK(!has_segment(made.id, RIG_SEGMENT_LENGTH) && !has_segment(made.id, 2 * RIG_SEGMENT_LENGTH));
    raw_close(session);
}

static void what_is_written_or_read_stays(void)
{
    char text[128];
    raw_session *session = raw_connect(&rig);
    const raw_recording written = raw_start(session, 1010, true);
    asi_codec_request request = request_of(ASI_CODEC_TRUNCATE_RECORDING, written.id);
    check_error(raw_ask(session, &request), ASI_CODEC_E_ACTIVE_RECORDING, "cannot truncate active recording");
    request = request_of(ASI_CODEC_PURGE_RECORDING, written.id);
    snprintf(text, sizeof(text), "cannot purge active recording %" PRId64, written.id);
    check_error(raw_ask(session, &request), ASI_CODEC_E_ACTIVE_RECORDING, text);
    as_publication_close(written.publication);

    const raw_recording read = raw_record(session, 1011, 1000, 300);
    request = replay_of(read.id, 0, -1, "aeron:ipc", 1111); /* nobody listens yet */
    raw_ask_ok(session, &request);
    request = request_of(ASI_CODEC_PURGE_RECORDING, read.id);
    snprintf(text, sizeof(text), "cannot purge recording with active replay %" PRId64, read.id);
    check_error(raw_ask(session, &request), ASI_CODEC_E_ACTIVE_RECORDING, text);
    static const int32_t MOVES[] = { ASI_CODEC_DETACH_SEGMENTS, ASI_CODEC_PURGE_SEGMENTS };
    for (size_t i = 0; i < 2; i++)
    {
        request = request_of(MOVES[i], read.id);
        request.position = RIG_SEGMENT_LENGTH;
        const asi_codec_event *event = raw_ask(session, &request);
        CHECK_I64(event->code, ASI_CODEC_ERROR);
        CHECK(0 == strncmp(event->error_message.data, "invalid detach: replay in progress", 34));
    }
    CHECK_I64(raw_position(session, ASI_CODEC_START_POSITION, read.id), 0);
    CHECK(has_segment(read.id, 0));
    request = request_of(ASI_CODEC_STOP_ALL_REPLAYS, read.id);
    raw_ask_ok(session, &request);
    UNTIL(&rig, 0 == rig.archive->uses->count[ASI_USE_REPLAYS]);
    static const int64_t WRONG[] = { 32, RIG_SEGMENT_LENGTH + 32, 3 * RIG_SEGMENT_LENGTH, 0 };
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++)
    {
        request = request_of(ASI_CODEC_DETACH_SEGMENTS, read.id);
        request.position = WRONG[i];
        CHECK_I64(raw_ask(session, &request)->code, ASI_CODEC_ERROR);
    }
    raw_close(session);
}

/* The files of recordings whose ids begin with another's stay, and so do files that are no segments. */
static void a_purge_takes_its_own_files(void)
{
    char path[AS_PATH_MAX];
    raw_session *session = raw_connect(&rig);
    const raw_recording made = raw_record(session, 1008, 100, 1);
    static const char *const OTHERS[] = { "%s/%" PRId64 "0-0.rec", "%s/%" PRId64 "-notes.txt" };
    for (int i = 0; i < 2; i++)
    {
        snprintf(path, sizeof(path), OTHERS[i], rig.archive_dir, made.id);
        FILE *file = fopen(path, "w");
        CHECK(NULL != file && 0 == fclose(file));
    }
    asi_codec_request request = request_of(ASI_CODEC_PURGE_RECORDING, made.id);
    raw_ask_ok(session, &request);
    raw_await_signal(session, AS_SIGNAL_DELETE, request.correlation_id);
    for (int i = 0; i < 2; i++)
    {
        snprintf(path, sizeof(path), OTHERS[i], rig.archive_dir, made.id);
        CHECK(0 == unlink(path));
    }
    raw_close(session);
}

int main(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    RUN(what_was_published_before_the_end_is_recorded);
    RUN(a_refused_write_ends_the_recording);
    RUN(a_token_is_good_for_its_recording_and_its_time);
    RUN(tokens_end_with_their_session);
    RUN(a_replay_begins_at_its_own_frames);
    RUN(a_recording_is_cut_between_frames_only);
    RUN(a_purge_takes_its_own_files);
    RUN(a_cut_takes_all_segments_behind_it);
    RUN(what_is_written_or_read_stays);
    RUN(tokens_have_a_bound);
    rig_close(&rig);
    RUN(no_damaged_frame_is_replayed);
    return 0;
}
