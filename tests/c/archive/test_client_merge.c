/* Goal: a replay merged into a live stream gives every message once and in order, ends the replay at the archive, and says what
 * keeps it from merging (Spec: 08 §14, scenarios 94 to 96); requests that nobody blocks for, recorded publications and recording
 * positions do what as_archive.h says. Method: as test_client_persistent.c.
 * Spec: 08 §15. */
#include "archive/client_rig.h"

#define REPLAYS_COUNTER 112

static as_subscription *subscription;
static as_replay_merge *merge;
static as_fragment_assembler *assembler;
static char live_destination[256];

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)context;
    (void)header;
    expect_message(data, length);
}

static void open_streams(void)
{
    char channel[256];
    const int port = free_port();
    client_rig_open();
    snprintf(channel, sizeof(channel), "aeron:udp?control=127.0.0.1:%d|control-mode=dynamic|term-length=64k|ssc=true", port);
    snprintf(live_destination, sizeof(live_destination), "aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:%d", port);
    record_stream(channel);
    CHECK_I64(as_fragment_assembler_open(on_message, NULL, &assembler), AS_OK);
}

static void open_merge(const char *replay_destination)
{
    as_publication_constants constants;
    char channel[128];
    char replay[128];
    as_publication_get_constants(R.publication, &constants);
    snprintf(channel, sizeof(channel), "aeron:udp?control-mode=manual|session-id=%d", constants.session_id);
    snprintf(replay, sizeof(replay), "aeron:udp?session-id=%d", constants.session_id);
    CHECK_I64(as_client_add_subscription(R.rig.client, channel, RIG_STREAM, &subscription), AS_OK);
    as_replay_merge_options options;
    as_replay_merge_options_init(&options);
    options.archive = R.archive;
    options.subscription = subscription;
    options.replay_channel = replay;
    options.replay_destination = replay_destination;
    options.live_destination = live_destination;
    options.recording_id = R.recording_id;
    options.start_position = 0;
    CHECK_I64(as_replay_merge_open(&options, &merge), AS_OK);
}

static void close_all(void)
{
    as_replay_merge_close(merge);
    merge = NULL;
    as_subscription_close(subscription);
    subscription = NULL;
    as_fragment_assembler_close(assembler);
    client_rig_close();
}

static void step(void)
{
    CHECK(as_replay_merge_poll(merge, as_fragment_assembler_on_fragment, assembler, 10) >= 0);
}

#define STEP_UNTIL(condition) UNTIL(&R.rig, (step(), (condition)))

static int64_t active_replays(void)
{
    as_counter_row row;
    for (int32_t id = 0; id <= as_client_max_counter_id(R.rig.client); id++)
    {
        if (AS_OK == as_client_counter(R.rig.client, id, &row) && REPLAYS_COUNTER == row.type_id)
        {
            return row.value;
        }
    }
    return AS_NULL_VALUE;
}

static void merges(const char *replay_destination)
{
    open_streams();
    publish_messages(60);
    open_merge(replay_destination);
    STEP_UNTIL(AS_MERGE_CATCHUP == as_replay_merge_get_state(merge));
    CHECK(!as_replay_merge_is_live_added(merge));
    R.reader = step;
    for (int i = 0; AS_MERGE_MERGED != as_replay_merge_get_state(merge); i++)
    {
        CHECK(i < 100000);
        publish_next();
        STEP_UNTIL(R.read + 10 >= R.published); /* or the replay might never catch up */
    }
    CHECK(as_replay_merge_is_live_added(merge));
    publish_messages(30);
    STEP_UNTIL(R.read == R.published);
    UNTIL(&R.rig, 0 == active_replays());
    /* What was merged goes on alone. */
    as_image *image = as_image_retain(as_replay_merge_image(merge));
    as_replay_merge_close(merge);
    merge = NULL;
    R.reader = NULL;
    publish_messages(3);
    UNTIL(&R.rig, as_image_poll(image, as_fragment_assembler_on_fragment, assembler, 10) >= 0 && R.read == R.published);
    as_image_release(image);
    close_all();
}

static void a_replay_merges_into_the_live_stream(void)
{
    char destination[64];
    snprintf(destination, sizeof(destination), "aeron:udp?endpoint=127.0.0.1:%d", free_port());
    merges(destination);
    merges("aeron:udp?endpoint=127.0.0.1:0");
}

static void take_columns(void)
{
    static int32_t offsets[257];
    static uint8_t value[256 * RIG_LENGTH_MAX];
    as_columns columns = { .row_capacity = 256, .byte_capacity = sizeof(value), .value_offset = offsets, .value = value };
    CHECK_I64(as_replay_merge_poll_columns(merge, &columns, 0), AS_OK);
    for (int64_t row = 0; row < columns.row_count; row++)
    {
        expect_message(value + offsets[row], offsets[row + 1] - offsets[row]);
    }
}

static void columns_are_whole_messages(void)
{
    open_streams();
    publish_messages(60);
    open_merge("aeron:udp?endpoint=127.0.0.1:0");
    R.reader = take_columns;
    for (int i = 0; AS_MERGE_MERGED != as_replay_merge_get_state(merge); i++)
    {
        CHECK(i < 100000);
        publish_next();
        UNTIL(&R.rig, (take_columns(), R.read + 10 >= R.published));
    }
    UNTIL(&R.rig, (take_columns(), R.read == R.published));
    close_all();
}

static void fails_with(as_result result, const char *text)
{
    int32_t work_count;
    UNTIL(&R.rig, AS_OK != as_replay_merge_do_work(merge, &work_count));
    for (int i = 0; i < 2; i++)
    {
        CHECK_I64(as_replay_merge_do_work(merge, &work_count), result); /* and stays so */
        CHECK(NULL != strstr(as_error_text(), text));
        CHECK_I64(as_replay_merge_get_state(merge), AS_MERGE_FAILED);
    }
}

static void an_archive_that_dies_fails_the_merge(void)
{
    open_streams();
    publish_messages(60);
    open_merge("aeron:udp?endpoint=127.0.0.1:0");
    STEP_UNTIL(R.read > 5);
    rig_close_archive(&R.rig);
    R.client_ahead_ns += RIG_SECOND; /* past the interval of idle polls */
    fails_with(AS_E_CLOSED, "");
    CHECK_I64(as_archive_client_get_state(R.archive), AS_ARCHIVE_DISCONNECTED);
    int64_t position;
    CHECK_I64(as_archive_client_start_position(R.archive, 0, &position), AS_E_CLOSED);
    CHECK(NULL != strstr(as_error_text(), "client is closed"));
    CHECK_I64(as_archive_client_get_state(R.archive), AS_ARCHIVE_CLOSED);
    close_all();
}

static void no_progress_times_out(void)
{
    open_streams();
    publish_messages(60);
    open_merge("aeron:udp?endpoint=127.0.0.1:0");
    STEP_UNTIL(AS_MERGE_CATCHUP == as_replay_merge_get_state(merge) && NULL != as_replay_merge_image(merge));
    R.client_ahead_ns += 5 * RIG_SECOND;
    fails_with(AS_E_TIMEOUT, "ReplayMerge no progress: state=CATCHUP, activeTransportCount=");
    close_all();
}

static void an_error_of_the_archive_fails_the_merge(void)
{
    open_streams();
    publish_messages(5);
    open_merge("aeron:udp?endpoint=127.0.0.1:0");
    as_replay_merge_close(merge);
    as_subscription_close(subscription);
    R.recording_id = 99;
    open_merge("aeron:udp?endpoint=127.0.0.1:0");
    fails_with(AS_E_PEER, "unknown recording id: 99");
    close_all();
}

static void what_cannot_be_merged_is_refused(void)
{
    open_streams();
    CHECK_I64(as_client_add_subscription(R.rig.client, "aeron:udp?control-mode=manual", RIG_STREAM, &subscription), AS_OK);
    as_replay_merge_options options;
    as_replay_merge_options_init(&options);
    options.archive = R.archive;
    options.subscription = subscription;
    options.replay_channel = "aeron:ipc";
    options.replay_destination = "aeron:udp?endpoint=127.0.0.1:0";
    options.live_destination = live_destination;
    options.recording_id = R.recording_id;
    CHECK_I64(as_replay_merge_open(&options, &merge), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "IPC merging is not supported"));
    options.replay_channel = "aeron:udp";
    options.live_destination = "aeron:ipc";
    CHECK_I64(as_replay_merge_open(&options, &merge), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "live_destination"));
    options.live_destination = live_destination;
    options.recording_id = -1;
    CHECK_I64(as_replay_merge_open(&options, &merge), AS_E_USAGE);
    options.recording_id = R.recording_id;
    as_subscription *plain;
    CHECK_I64(as_client_add_subscription(R.rig.client, "aeron:udp?endpoint=127.0.0.1:0", RIG_STREAM, &plain), AS_OK);
    options.subscription = plain;
    CHECK_I64(as_replay_merge_open(&options, &merge), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "control-mode=manual"));
    as_subscription_close(plain);
    merge = NULL;
    close_all();
}

/* -- calls that do not wait ------------------------------------------------------------------------------------------------------- */

static as_result await_call(as_archive_call *call, int64_t *value)
{
    as_result result;
    UNTIL(&R.rig, AS_AGAIN != (result = as_archive_call_poll(call, value)));
    return result;
}

static as_archive_call *send_request(const as_archive_request *request)
{
    as_archive_call *call = NULL;
    UNTIL(&R.rig, AS_OK == as_archive_client_send(R.archive, request, &call));
    return call;
}

static bool count_recording(void *context, const as_recording *recording)
{
    CHECK_I64(recording->recording_id, R.recording_id);
    (*(int *)context)++;
    return true;
}

static void calls_are_answered_in_any_order(void)
{
    client_rig_open();
    record_stream("aeron:ipc?term-length=64k");
    const int64_t end = publish_messages(10);
    UNTIL(&R.rig, recorded_position() == end);
    as_archive_request request;
    as_archive_request_init(&request, AS_OP_RECORDING_POSITION);
    request.recording_id = R.recording_id;
    as_archive_call *position = send_request(&request);
    request.recording_id = 99;
    as_archive_call *unknown = send_request(&request);
    int listed = 0;
    as_archive_request_init(&request, AS_OP_LIST_RECORDINGS);
    request.recording_id = 0;
    request.count = 10;
    request.on_recording = count_recording;
    request.context = &listed;
    as_archive_call *listing = send_request(&request);
    as_archive_request_init(&request, AS_OP_ARCHIVE_ID);
    as_archive_call *given_up = send_request(&request);
    as_archive_call_close(given_up);
    /* A blocking call beside them takes their answers too. */
    int64_t value = 0;
    CHECK_I64(as_archive_client_start_position(R.archive, R.recording_id, &value), AS_OK);
    CHECK_I64(await_call(listing, &value), AS_OK);
    CHECK_I64(value, 1);
    CHECK_I64(listed, 1);
    CHECK_I64(await_call(unknown, &value), AS_E_PEER);
    CHECK_I64(as_error_code(), 5);
    CHECK_I64(await_call(position, &value), AS_OK);
    CHECK_I64(value, end);
    CHECK_I64(as_archive_call_poll(unknown, &value), AS_E_PEER); /* and again */
    as_archive_call_close(listing);
    as_archive_call_close(unknown);
    as_archive_call_close(position);
    as_archive_request_init(&request, (as_archive_operation)999);
    CHECK_I64(as_archive_client_send(R.archive, &request, &position), AS_E_USAGE);
    as_archive_request_init(&request, AS_OP_LIST_RECORDING);
    CHECK_I64(as_archive_client_send(R.archive, &request, &position), AS_E_USAGE);
    client_rig_close();
}

static void calls_end_with_time_and_with_their_client(void)
{
    client_rig_open();
    as_archive_request request;
    as_archive_request_init(&request, AS_OP_ARCHIVE_ID);
    as_archive_call *late = send_request(&request);
    as_archive_call *orphan = send_request(&request);
    int64_t value;
    R.client_ahead_ns += 10 * RIG_SECOND; /* nobody has turned the archive since */
    CHECK_I64(as_archive_call_poll(late, &value), AS_E_TIMEOUT);
    as_archive_client_close(R.archive);
    R.archive = NULL;
    CHECK_I64(as_archive_call_poll(orphan, &value), AS_E_CLOSED);
    CHECK_I64(as_archive_call_poll(late, &value), AS_E_TIMEOUT);
    as_archive_call_close(late);
    as_archive_call_close(orphan);
    client_rig_close();
}

/* -- recorded publications and positions -------------------------------------------------------------------------------------------- */

static void recorded_publications(void)
{
    as_publication *again = NULL;
    char source[128];
    client_rig_open();
    CHECK_I64(as_archive_client_add_recorded_publication(R.archive, "aeron:ipc?term-length=64k", RIG_STREAM, &R.publication), AS_OK);
    as_publication_constants constants;
    as_publication_get_constants(R.publication, &constants);
    int32_t counter_id = AS_NULL_VALUE;
    UNTIL(&R.rig, (counter_id = as_recording_position_find_by_session(R.rig.client, constants.session_id, 42)) >= 0);
    R.recording_id = as_recording_position_recording_id(R.rig.client, counter_id);
    CHECK_I64(as_recording_position_find(R.rig.client, R.recording_id, AS_NULL_VALUE), counter_id);
    CHECK_I64(as_recording_position_find(R.rig.client, R.recording_id, 43), AS_NULL_VALUE);
    CHECK_I64(as_recording_position_find(R.rig.client, 99, AS_NULL_VALUE), AS_NULL_VALUE);
    CHECK(as_recording_position_is_active(R.rig.client, counter_id, R.recording_id));
    CHECK(!as_recording_position_is_active(R.rig.client, counter_id, 99));
    CHECK_I64(as_recording_position_recording_id(R.rig.client, 0), AS_NULL_VALUE);
    CHECK_I64(as_recording_position_source_identity(R.rig.client, counter_id, source, sizeof(source)), AS_OK);
    CHECK_TEXT(source, "aeron:ipc");
    CHECK_I64(as_recording_position_source_identity(R.rig.client, counter_id, source, 4), AS_E_USAGE);
    CHECK_I64(as_recording_position_source_identity(R.rig.client, 0, source, 4), AS_AGAIN);
    /* A second handle of the same publication is not recorded anew. */
    CHECK_I64(as_archive_client_add_recorded_publication(
        R.archive, "aeron:ipc?term-length=64k", RIG_STREAM, &again), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "publication already added for channel="));
    const int64_t end = publish_messages(10);
    UNTIL(&R.rig, recorded_position() == end);
    as_publication *exclusive;
    CHECK_I64(as_archive_client_add_recorded_exclusive_publication(
        R.archive, "aeron:ipc?term-length=64k", RIG_STREAM, &exclusive), AS_OK);
    UNTIL(&R.rig, AS_OK == as_archive_client_poll(R.archive, &counter_id) && 2 == R.signals[AS_SIGNAL_START]);
    as_publication_close(exclusive);
    int32_t signals = 0;
    UNTIL(&R.rig, AS_OK == as_archive_client_poll_for_signals(R.archive, &signals) && 1 == signals);
    CHECK_I64(R.signals[AS_SIGNAL_STOP], 1);
    UNTIL(&R.rig, as_recording_position_find(R.rig.client, R.recording_id + 1, AS_NULL_VALUE) < 0);
    client_rig_close();
}

static int events[104];

static void on_event(void *context, const as_recording_event *event)
{
    (void)context;
    events[event->kind]++;
    if (AS_RECORDING_STARTED == event->kind)
    {
        CHECK_TEXT(event->source_identity, "aeron:ipc");
        CHECK(NULL != strstr(event->channel, "aeron:ipc"));
        CHECK_I64(event->stream_id, RIG_STREAM);
    }
    CHECK(event->position >= event->start_position);
}

static void recording_events_are_read(void)
{
    memset(&R, 0, sizeof(R));
    rig_open(&R.rig);
    rig_set(&R.rig, "aeron.archive.recording.events.enabled", "true");
    rig_set(&R.rig, "aeron.archive.recording.events.channel", "aeron:ipc?term-length=64k");
    rig_open_archive(&R.rig);
    const as_archive_client_options options = client_options();
    CHECK_I64(as_archive_client_open(&options, &R.archive), AS_OK);
    as_subscription *stream;
    as_recording_events *reader;
    CHECK_I64(as_client_add_subscription(R.rig.client, "aeron:ipc", 30, &stream), AS_OK);
    CHECK_I64(as_recording_events_open(stream, NULL, NULL, &reader), AS_E_USAGE);
    CHECK_I64(as_recording_events_open(stream, on_event, NULL, &reader), AS_OK);
    UNTIL(&R.rig, as_subscription_is_connected(stream));
    record_stream("aeron:ipc?term-length=64k");
    const int64_t end = publish_messages(3);
    UNTIL(&R.rig, recorded_position() == end);
    as_publication_close(R.publication);
    R.publication = NULL;
    UNTIL(&R.rig, as_recording_events_poll(reader, 10) >= 0 && 1 == events[AS_RECORDING_STOPPED]);
    CHECK_I64(events[AS_RECORDING_STARTED], 1);
    CHECK(events[AS_RECORDING_PROGRESS] > 0);
    as_recording_events_close(reader);
    client_rig_close();
}

int main(void)
{
    RUN(a_replay_merges_into_the_live_stream);
    RUN(columns_are_whole_messages);
    RUN(an_archive_that_dies_fails_the_merge);
    RUN(no_progress_times_out);
    RUN(an_error_of_the_archive_fails_the_merge);
    RUN(what_cannot_be_merged_is_refused);
    RUN(calls_are_answered_in_any_order);
    RUN(calls_end_with_time_and_with_their_client);
    RUN(recorded_publications);
    RUN(recording_events_are_read);
    return 0;
}
