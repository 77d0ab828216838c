/* Goal: the time index of a recording finds each time never late and at most one interval early, over a clock that is set back
 * and forth, a truncate and an extension; requests that delete or move a recording do so with its index. Method: the publisher
 * notes the archive's clock, which the test sets, when each of its messages was recorded; a thousand random times are looked
 * up in the folder beside the live archive. */
#include "server_rig.h"

#define MESSAGES_MAX 4000
#define LOOKUPS 1000
#define INTERVAL_NS 10000000
#define INTERVAL_BYTES 65536
#define LONGEST 4000

static test_rig rig;
static int64_t clock_ns; /* of the recorder's writes, held by the test; the conductor's goes on, as it lives by it */

static int64_t held_epoch_ns(void *context)
{
    (void)context;
    return clock_ns;
}

static void open_archive(void)
{
    const asi_clock clock = { .nano_time = rig_nano_time, .epoch_ms = rig_epoch_ms, .epoch_ns = held_epoch_ns, .context = &rig };
    CHECK_I64(asi_archive_open_with(rig.config, &rig.files, &clock, &rig.archive), AS_OK);
    CHECK_I64(as_archive_start(rig.archive), AS_OK);
}

typedef struct noted
{
    int64_t begin;
    int64_t end;
    int64_t time_ns;
} noted;

typedef struct publisher
{
    noted messages[MESSAGES_MAX];
    int64_t count;
    int64_t last_ns; /* times do not go back */
} publisher;

static publisher log_;

static int64_t recorded_position(int64_t recording_id)
{
    const asi_active_recording *recording = asi_recordings_find(rig.archive, recording_id);
    return NULL == recording ? AS_NULL_VALUE : recording->session.recorded->position;
}

/* Where a message that ends at `end` begins: before its fragments. */
static int64_t begin_of(int64_t end, int64_t length)
{
    const int64_t max_payload = 1408 - AS_FRAME_HEADER_LENGTH;
    const int64_t rest = length % max_payload;
    return end - length / max_payload * 1408 - (rest > 0 || 0 == length ? asi_align_i64(rest + AS_FRAME_HEADER_LENGTH, 32) : 0);
}

/* Publishes, and lets the clock go on between the writes of the recorder only. */
static void publish_noted(const raw_recording *recording, asi_rand *rand, int64_t count)
{
    while (count > 0)
    {
        const int64_t kind = test_rand_below(rand, 200);
        clock_ns += 0 == kind ? -300000000 : 1 == kind ? 700000000 : kind < 40 ? test_rand_below(rand, 25000000) :
            test_rand_below(rand, 2000000);
        log_.last_ns = clock_ns > log_.last_ns ? clock_ns : log_.last_ns;
        int64_t position = as_publication_position(recording->publication);
        for (int64_t burst = 1 + test_rand_below(rand, 4); burst > 0 && count > 0; burst--, count--)
        {
            const int64_t length = test_rand_below(rand, 0 == test_rand_below(rand, 5) ? LONGEST : 300);
            position = publish_one(&rig, recording->publication, length, count);
            CHECK(log_.count < MESSAGES_MAX);
            log_.messages[log_.count++] = (noted){ .begin = begin_of(position, length), .end = position, .time_ns = log_.last_ns };
        }
        UNTIL(&rig, recorded_position(recording->id) == position);
        rig_turn_times(&rig, (int)test_rand_below(rand, 3));
    }
}

/* The first message at or after the time, or the log's count. */
static int64_t first_at(int64_t time_ns)
{
    int64_t i = 0;
    while (i < log_.count && log_.messages[i].time_ns < time_ns)
    {
        i++;
    }
    return i;
}

static void check_lookups(int64_t recording_id, asi_rand *rand, int64_t behind_bytes)
{
    as_folder *folder = NULL;
    CHECK_I64(as_folder_open(rig.archive_dir, NULL, &folder), AS_OK);
    const int64_t begin_ns = log_.messages[0].time_ns;
    const int64_t end_ns = log_.messages[log_.count - 1].time_ns;
    for (int i = 0; i < LOOKUPS; i++)
    {
        const int64_t time_ns = begin_ns - 1000 + test_rand_below(rand, end_ns - begin_ns + 2000);
        const int64_t first = first_at(time_ns);
        const int64_t right = first < log_.count ? log_.messages[first].begin : log_.messages[log_.count - 1].end;
        as_time_position found;
        CHECK_I64(as_folder_position_at_time(folder, recording_id, time_ns, &found), AS_OK);
        CHECK(!found.is_rebuilt);
        CHECK(found.position <= right);
        CHECK(right - found.position <= INTERVAL_BYTES + LONGEST + 2048 + behind_bytes);
        for (int64_t early = first - 1; early >= 0 && log_.messages[early].begin >= found.position; early--)
        {
            CHECK(behind_bytes > 0 || time_ns - log_.messages[early].time_ns < INTERVAL_NS);
        }
    }
    as_folder_close(folder);
}

static bool has_index(int64_t recording_id)
{
    char path[AS_PATH_MAX];
    CHECK_I64(asi_time_index_path(path, sizeof(path), rig.archive_dir, recording_id), AS_OK);
    return 0 == access(path, F_OK);
}

/* What an extension records is no earlier than the stop, nor than what the index knows of before it. */
static void note_extension(int64_t recording_id)
{
    asi_catalog_record record;
    CHECK(asi_catalog_find(rig.archive->catalog, recording_id, &record));
    as_folder *folder = NULL;
    as_time_index_info info;
    CHECK_I64(as_folder_open(rig.archive_dir, NULL, &folder), AS_OK);
    CHECK_I64(as_folder_time_index_info(folder, recording_id, &info), AS_OK);
    as_folder_close(folder);
    const int64_t stop_ns = record.stop_timestamp_ms * 1000000;
    log_.last_ns = stop_ns > info.last_ns ? stop_ns : info.last_ns;
}

/* A publication that goes on with the recording's terms at the position. */
static as_publication *add_publication(int64_t recording_id, int32_t stream_id, int64_t position)
{
    asi_catalog_record record;
    CHECK(asi_catalog_find(rig.archive->catalog, recording_id, &record));
    char channel[256];
    as_publication *publication = NULL;
    snprintf(channel, sizeof(channel), "aeron:ipc?term-length=64k|mtu=1408|init-term-id=%d|term-id=%d|term-offset=%d",
        record.initial_term_id, asi_wrap_add(record.initial_term_id, (int32_t)(position / RIG_TERM_LENGTH)),
        (int)(position % RIG_TERM_LENGTH));
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, stream_id, &publication), AS_OK);
    return publication;
}

static void extend(raw_session *session, raw_recording *recording, int64_t position)
{
    note_extension(recording->id);
    asi_codec_request request = extend_of(recording->id, RIG_CHANNEL, recording->stream_id, true);
    raw_ask_ok(session, &request);
    recording->correlation_id = request.correlation_id;
    recording->publication = add_publication(recording->id, recording->stream_id, position);
    raw_await_signal(session, AS_SIGNAL_EXTEND, request.correlation_id);
}

static void truncate_noted(raw_session *session, int64_t recording_id, int64_t count)
{
    asi_codec_request request = request_of(ASI_CODEC_TRUNCATE_RECORDING, recording_id);
    log_.count = count;
    request.position = log_.messages[count - 1].end;
    raw_ask_ok(session, &request);
    raw_await_signal(session, AS_SIGNAL_DELETE, request.correlation_id);
}

/* Messages that fill up to the position, noted as the others. */
static int64_t publish_up_to(const raw_recording *recording, int64_t position, int64_t end)
{
    while (position < end)
    {
        const int64_t left = end - position;
        const int64_t length = left > 2 * 1024 ? 1024 - AS_FRAME_HEADER_LENGTH : left > 1024 ? left - 1024 - 32 : left - 32;
        clock_ns += 1000000;
        log_.last_ns = clock_ns > log_.last_ns ? clock_ns : log_.last_ns;
        position = publish_one(&rig, recording->publication, length, 0);
        CHECK(log_.count < MESSAGES_MAX);
        log_.messages[log_.count++] = (noted){ .begin = begin_of(position, length), .end = position, .time_ns = log_.last_ns };
        UNTIL(&rig, recorded_position(recording->id) == position);
    }
    return position;
}

static void found_never_late_and_early_by_an_interval(void)
{
    asi_rand rand = test_rand();
    raw_session *session = raw_connect(&rig);
    log_ = (publisher){ 0 };
    raw_recording recording = raw_start(session, 3001, true);
    publish_noted(&recording, &rand, 800);
    check_lookups(recording.id, &rand, 2 * LONGEST * 4); /* beside the recorder: what it holds back */
    raw_finish(session, &recording, log_.messages[log_.count - 1].end);
    check_lookups(recording.id, &rand, 0);
    truncate_noted(session, recording.id, log_.count / 2 + test_rand_below(&rand, 100));
    check_lookups(recording.id, &rand, 0);
    extend(session, &recording, log_.messages[log_.count - 1].end);
    publish_noted(&recording, &rand, 400);
    raw_finish(session, &recording, log_.messages[log_.count - 1].end);
    check_lookups(recording.id, &rand, 0);
    raw_close(session);
}

/* Segments that are detached are not there for a lookup, and are again once they are attached. */
static void detached_and_attached(void)
{
    asi_rand rand = test_rand();
    raw_session *session = raw_connect(&rig);
    log_ = (publisher){ 0 };
    raw_recording recording = raw_start(session, 3004, true);
    publish_noted(&recording, &rand, 700);
    raw_finish(session, &recording, log_.messages[log_.count - 1].end);
    asi_codec_request request = request_of(ASI_CODEC_DETACH_SEGMENTS, recording.id);
    request.position = RIG_SEGMENT_LENGTH;
    raw_ask_ok(session, &request);
    as_folder *folder = NULL;
    as_time_position found;
    CHECK_I64(as_folder_open(rig.archive_dir, NULL, &folder), AS_OK);
    CHECK_I64(as_folder_position_at_time(folder, recording.id, log_.messages[0].time_ns, &found), AS_OK);
    CHECK_I64(found.position, RIG_SEGMENT_LENGTH);
    as_folder_close(folder);
    request = request_of(ASI_CODEC_ATTACH_SEGMENTS, recording.id);
    raw_ask_ok(session, &request);
    check_lookups(recording.id, &rand, 0);
    request = request_of(ASI_CODEC_PURGE_SEGMENTS, recording.id);
    request.position = RIG_SEGMENT_LENGTH;
    raw_ask_ok(session, &request);
    CHECK_I64(as_folder_open(rig.archive_dir, NULL, &folder), AS_OK);
    CHECK_I64(as_folder_position_at_time(folder, recording.id, log_.messages[0].time_ns, &found), AS_OK);
    CHECK_I64(found.position, RIG_SEGMENT_LENGTH);
    as_folder_close(folder);
    request = request_of(ASI_CODEC_PURGE_RECORDING, recording.id);
    raw_ask_ok(session, &request);
    CHECK(!has_index(recording.id));
    raw_close(session);
}

/* A recording whose segments become another one's takes its times along. */
static void migrated(void)
{
    asi_rand rand = test_rand();
    raw_session *session = raw_connect(&rig);
    log_ = (publisher){ 0 };
    raw_recording first = raw_start(session, 3005, true);
    publish_noted(&first, &rand, 100);
    int64_t position = log_.messages[log_.count - 1].end;
    position = publish_up_to(&first, position, RIG_SEGMENT_LENGTH);
    raw_finish(session, &first, position);
    /* A second recording that begins where the first one ended, with the terms of it. */
    raw_recording second = { .stream_id = 3005 };
    asi_codec_request request = start_of(RIG_CHANNEL, 3005, true);
    raw_ask_ok(session, &request);
    second.correlation_id = request.correlation_id;
    second.publication = add_publication(first.id, 3005, position);
    second.id = raw_await_signal(session, AS_SIGNAL_START, request.correlation_id)->recording_id;
    publish_noted(&second, &rand, 200);
    raw_finish(session, &second, log_.messages[log_.count - 1].end);
    request = request_of(ASI_CODEC_MIGRATE_SEGMENTS, second.id);
    request.dst_recording_id = first.id;
    raw_ask_ok(session, &request);
    CHECK(!has_index(second.id));
    check_lookups(first.id, &rand, 0);
    raw_close(session);
}

/* Until the index has all of an active recording. */
static void await_index(int64_t recording_id)
{
    as_folder *folder = NULL;
    as_time_index_info info = { 0 };
    clock_ns += INTERVAL_NS;
    CHECK_I64(as_folder_open(rig.archive_dir, NULL, &folder), AS_OK);
    UNTIL(&rig, AS_OK == as_folder_time_index_info(folder, recording_id, &info) && info.recording_bytes == info.indexed_bytes);
    CHECK(info.exists && info.is_believed && info.last_ns <= log_.last_ns);
    as_folder_close(folder);
}

/* What becomes the head of a recording that is still active may be younger than what that one holds. */
static void migrated_when_younger(void)
{
    raw_session *session = raw_connect(&rig);
    log_ = (publisher){ 0 };
    raw_recording head = raw_start(session, 3006, false);
    const int64_t begun = publish_up_to(&head, 0, RIG_SEGMENT_LENGTH / 2);
    raw_forget(session);
    raw_recording tail = { .stream_id = 3006, .publication = add_publication(head.id, 3006, RIG_SEGMENT_LENGTH) };
    tail.correlation_id = head.correlation_id;
    tail.id = raw_await_signal(session, AS_SIGNAL_START, tail.correlation_id)->recording_id;
    const int64_t end = publish_up_to(&tail, RIG_SEGMENT_LENGTH, RIG_SEGMENT_LENGTH + RIG_SEGMENT_LENGTH / 2);
    clock_ns += 1000000000;
    raw_finish(session, &head, publish_up_to(&head, begun, RIG_SEGMENT_LENGTH));
    raw_forget(session);
    await_index(tail.id);
    asi_codec_request request = request_of(ASI_CODEC_MIGRATE_SEGMENTS, head.id);
    request.dst_recording_id = tail.id;
    raw_ask_ok(session, &request);
    CHECK(!has_index(tail.id)); /* its entries would tell that all before them is older */
    raw_finish(session, &tail, end);
    raw_close(session);
}

/* Without anything new to record the index is completed by time alone. */
static void an_idle_recorder_writes_what_it_holds(void)
{
    asi_rand rand = test_rand();
    raw_session *session = raw_connect(&rig);
    log_ = (publisher){ 0 };
    raw_recording recording = raw_start(session, 3002, true);
    publish_noted(&recording, &rand, 50);
    await_index(recording.id);
    check_lookups(recording.id, &rand, 0);
    raw_finish(session, &recording, log_.messages[log_.count - 1].end);
    raw_close(session);
}

static void off_by_a_setting(void)
{
    rig_close_archive(&rig);
    rig_set(&rig, "aeron.spark.archive.time.index", "false");
    open_archive();
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_record(session, 3003, 100, 10);
    CHECK(!has_index(recording.id));
    raw_close(session);
    rig_close_archive(&rig);
    rig_set(&rig, "aeron.spark.archive.time.index", "true");
    open_archive();
}

int main(void)
{
    const asi_clock system = asi_clock_system();
    clock_ns = asi_clock_epoch_ns(&system);
    rig_open(&rig);
    open_archive();
    RUN(found_never_late_and_early_by_an_interval);
    RUN(an_idle_recorder_writes_what_it_holds);
    RUN(detached_and_attached);
    RUN(migrated);
    RUN(migrated_when_younger);
    RUN(off_by_a_setting);
    rig_close(&rig);
    return 0;
}
