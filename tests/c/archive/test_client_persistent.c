/* Goal: whatever happens to archive, live stream and reader, a persistent subscription gives every message exactly once and in
 * order, in whole; its states, counters and listener are those of Spec: 08 §16. Method: archive, client and subscription in one thread,
 * invoked, over a driver of ours; a reader that knows which message must come next; deadlines pass by pushing the subscription's
 * clock. */
#include "archive/client_rig.h"
#include "base/rand.h"
#include "client/persistent.h"
#include "shm/counters.h"

#define IPC "aeron:ipc?term-length=64k"
#define REPLAY_STREAM 2001

static as_persistent_subscription *subscription;
static int joined;
static int left;
static int errors;
static as_result last_error;
static char last_error_text[1024];
static int64_t last_position;
static bool poll_columns;
static bool is_slow; /* the next message is handled for so long that live is lost meanwhile */
static asi_rand *chance; /* of a run by seed; NULL: nothing is left to it */

static uint64_t below(uint64_t bound) { return asi_rand_u64(chance) % bound; }

static void on_joined(void *context)
{
    (void)context;
    joined++;
    CHECK(as_persistent_subscription_is_live(subscription));
}

static void on_left(void *context)
{
    (void)context;
    left++;
}

static void on_error(void *context, as_result result, int32_t code, const char *text)
{
    (void)context;
    (void)code;
    errors++;
    last_error = result;
    snprintf(last_error_text, sizeof(last_error_text), "%s", text);
    CHECK_I64(as_persistent_subscription_poll(subscription, NULL, NULL, 1), AS_E_USAGE);
}

static as_action on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)context;
    if (NULL != chance && 0 == below(10))
    {
        return AS_ACTION_ABORT; /* it comes again */
    }
    expect_message(data, length);
    CHECK(NULL != header->image); /* of its end: it may have begun in another */
    CHECK(header->position > last_position);
    last_position = header->position;
    if (is_slow)
    {
        is_slow = false;
        publish_messages(60); /* three windows: they are accepted once the reader is given up */
        CHECK(as_image_is_closed(header->image));
    }
    return AS_ACTION_CONTINUE;
}

static void take_columns(void)
{
    static int64_t positions[64];
    static int64_t next_positions[64];
    static int32_t offsets[65];
    static uint8_t value[64 * RIG_LENGTH_MAX];
    as_columns columns = { .row_capacity = 64, .byte_capacity = sizeof(value), .position = positions,
        .next_position = next_positions, .value_offset = offsets, .value = value };
    CHECK_I64(as_persistent_subscription_poll_columns(subscription, &columns, 0), AS_OK);
    for (int64_t row = 0; row < columns.row_count; row++)
    {
        expect_message(value + offsets[row], offsets[row + 1] - offsets[row]);
        CHECK(positions[row] >= last_position && next_positions[row] > positions[row]);
        last_position = next_positions[row];
    }
}

/* One poll and one turn of everything else. */
static void step(void)
{
    if (poll_columns)
    {
        take_columns();
    }
    else
    {
        CHECK(as_persistent_subscription_poll(subscription, on_message, NULL, 10) >= 0);
    }
}

#define STEP_UNTIL(condition) UNTIL(&R.rig, (step(), (condition)))

static as_persistent_options persistent_options(void)
{
    as_persistent_options options;
    as_persistent_options_init(&options);
    options.archive = client_options();
    options.archive.on_signal = NULL;
    options.recording_id = R.recording_id;
    options.start_position = AS_PERSISTENT_FROM_START;
    options.live_channel = "aeron:ipc";
    options.live_stream_id = RIG_STREAM;
    options.replay_channel = "aeron:ipc";
    options.replay_stream_id = REPLAY_STREAM;
    options.listener =
        (as_persistent_listener){ .on_live_joined = on_joined, .on_live_left = on_left, .on_error = on_error };
    return options;
}

static void open_subscription(const as_persistent_options *options)
{
    const asi_clock clock = client_clock();
    joined = left = errors = 0;
    last_position = 0;
    last_error_text[0] = '\0';
    CHECK_I64(asi_persistent_open_with(options, &clock, &subscription), AS_OK);
}

static void close_all(void)
{
    as_persistent_subscription_close(subscription);
    subscription = NULL;
    poll_columns = false;
    client_rig_close();
}

static int64_t counter_value(int32_t type_id)
{
    as_counter_row row;
    for (int32_t id = 0; id <= as_client_max_counter_id(R.rig.client); id++)
    {
        if (AS_OK == as_client_counter(R.rig.client, id, &row) && row.type_id == type_id)
        {
            return row.value;
        }
    }
    CHECK(!"there is such a counter");
    return 0;
}

/* -- joining ----------------------------------------------------------------------------------------------------------------------- */

static void replays_and_joins(const char *live_channel, const char *replay_channel, bool by_columns)
{
    publish_messages(40);
    as_persistent_options options = persistent_options();
    options.live_channel = live_channel;
    options.replay_channel = replay_channel;
    open_subscription(&options);
    poll_columns = by_columns;
    CHECK_I64(counter_value(115), INT64_MIN);
    STEP_UNTIL(R.read > 0);
    CHECK(as_persistent_subscription_is_replaying(subscription));
    R.reader = step;
    /* Published while it catches up, so that some come by the replay and some live. */
    for (int i = 0; i < 200 || (i < 2000 && !as_persistent_subscription_is_live(subscription)); i++)
    {
        publish_next();
        STEP_UNTIL(R.read + 10 >= R.published); /* or the replay might never catch up */
    }
    /* A publisher that is quick and waits for nobody may leave the live image behind before its first status message. */
    STEP_UNTIL(as_persistent_subscription_is_live(subscription));
    publish_messages(5);
    STEP_UNTIL(R.read == R.published);
    CHECK_I64(joined, 1);
    CHECK_I64(left, 0);
    CHECK_I64(errors, 0);
    CHECK_I64(counter_value(114), AS_PERSISTENT_LIVE);
    CHECK(INT64_MIN != counter_value(115));
    CHECK_I64(counter_value(116), 0);
    CHECK_I64(counter_value(117), 1);
    CHECK_I64(as_persistent_subscription_position(subscription), as_publication_position(R.publication));
}

static void every_message_comes_once_over_ipc(void)
{
    client_rig_open();
    record_stream(IPC);
    replays_and_joins("aeron:ipc", "aeron:ipc", false);
    close_all();
}

static void every_message_comes_once_as_columns(void)
{
    client_rig_open();
    record_stream(IPC);
    replays_and_joins("aeron:ipc", "aeron:ipc", true);
    close_all();
}

static void record_udp(char *live, size_t capacity)
{
    char channel[256];
    const int port = free_port();
    snprintf(channel, sizeof(channel), "aeron:udp?control=127.0.0.1:%d|control-mode=dynamic|term-length=64k|ssc=true", port);
    snprintf(live, capacity, "aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:%d|control-mode=dynamic", port);
    record_stream(channel);
}

static void every_message_comes_once_over_udp(void)
{
    static const char *const REPLAYS[] = { "aeron:udp?endpoint=127.0.0.1:%d", "aeron:udp?endpoint=127.0.0.1:0" };
    for (size_t i = 0; i < sizeof(REPLAYS) / sizeof(REPLAYS[0]); i++)
    {
        char live[256];
        char replay[256];
        client_rig_open();
        record_udp(live, sizeof(live));
        snprintf(replay, sizeof(replay), 0 == i ? "aeron:udp?endpoint=127.0.0.1:%d" : "aeron:udp?endpoint=127.0.0.1:0",
            free_port());
        replays_and_joins(live, replay, false);
        close_all();
    }
}

static void every_message_comes_once_over_a_response_channel(void)
{
    client_rig_open();
    record_stream(IPC);
    replays_and_joins("aeron:ipc", "aeron:ipc?control-mode=response", false);
    close_all();
}

static void from_live_joins_at_once(void)
{
    client_rig_open();
    record_stream(IPC);
    publish_messages(20);
    R.read = R.published;
    as_persistent_options options = persistent_options();
    options.start_position = AS_PERSISTENT_FROM_LIVE;
    open_subscription(&options);
    CHECK_I64(as_persistent_subscription_position(subscription), AS_PERSISTENT_FROM_LIVE);
    STEP_UNTIL(as_persistent_subscription_is_live(subscription));
    CHECK_I64(counter_value(115), 0);
    CHECK_I64(joined, 1);
    publish_messages(10);
    STEP_UNTIL(R.read == R.published);
    close_all();
}

static void a_position_between_messages_goes_on_there(void)
{
    client_rig_open();
    record_stream(IPC);
    const int64_t position = publish_messages(7);
    publish_messages(20);
    R.read = 7;
    as_persistent_options options = persistent_options();
    options.start_position = position;
    open_subscription(&options);
    STEP_UNTIL(R.read == R.published && as_persistent_subscription_is_live(subscription));
    close_all();
}

static void step_by_a_fragment(void)
{
    CHECK(as_persistent_subscription_poll(subscription, on_message, NULL, 1) >= 0);
}

#define THREE_FRAGMENTS 4 /* number of a message that has them */

/* A reader that leaves in the middle of its first message goes on at that message's begin, however it had begun. */
static void a_first_message_that_was_read_in_part_comes_again_in_whole(void)
{
    static const int64_t STARTS[] = { AS_PERSISTENT_FROM_START, AS_PERSISTENT_FROM_LIVE, 0 };
    for (size_t i = 0; i < sizeof(STARTS) / sizeof(STARTS[0]); i++)
    {
        client_rig_open();
        record_stream(IPC);
        int64_t begin = 0;
        if (STARTS[i] >= 0)
        {
            begin = publish_messages(3);
        }
        R.read = R.published = THREE_FRAGMENTS;
        as_persistent_options options = persistent_options();
        options.start_position = STARTS[i] >= 0 ? begin : STARTS[i];
        if (AS_PERSISTENT_FROM_LIVE != STARTS[i])
        {
            publish_messages(5);
        }
        open_subscription(&options);
        if (AS_PERSISTENT_FROM_LIVE == STARTS[i])
        {
            STEP_UNTIL(as_persistent_subscription_is_live(subscription));
            publish_messages(5);
        }
        UNTIL(&R.rig, (step_by_a_fragment(), subscription->position > begin));
        CHECK_I64(R.read, THREE_FRAGMENTS);
        CHECK_I64(as_persistent_subscription_position(subscription), begin);
        options.start_position = as_persistent_subscription_position(subscription);
        as_persistent_subscription_close(subscription);
        open_subscription(&options);
        STEP_UNTIL(R.read == R.published && as_persistent_subscription_is_live(subscription));
        close_all();
    }
}

/* -- losses ------------------------------------------------------------------------------------------------------------------------- */

/* An untethered reader that falls behind by more than the window loses its image. */
static void open_untethered(void)
{
    client_rig_open();
    record_stream(IPC);
    publish_messages(10);
    as_persistent_options options = persistent_options();
    options.live_channel = "aeron:ipc?tether=false";
    open_subscription(&options);
}

static void live_lost_to_flow_control_is_replayed(void)
{
    open_untethered();
    for (int round = 1; round <= 3; round++)
    {
        STEP_UNTIL(R.read == R.published && as_persistent_subscription_is_live(subscription));
        CHECK_I64(joined, round);
        publish_messages(60); /* three windows: they are accepted once the reader is given up */
        STEP_UNTIL(left == round);
    }
    STEP_UNTIL(R.read == R.published && as_persistent_subscription_is_live(subscription));
    CHECK_I64(counter_value(116), 3);
    CHECK_I64(counter_value(117), 4);
    CHECK_I64(errors, 0);
    close_all();
}

/* What was handed out before it, in the same poll, does not come again. */
static void live_lost_within_a_poll_is_replayed_from_there(void)
{
    open_untethered();
    STEP_UNTIL(R.read == R.published && as_persistent_subscription_is_live(subscription));
    publish_messages(3);
    is_slow = true;
    STEP_UNTIL(left == 1);
    STEP_UNTIL(R.read == R.published && as_persistent_subscription_is_live(subscription));
    CHECK(!is_slow);
    CHECK_I64(last_position, as_publication_position(R.publication));
    CHECK_I64(errors, 0);
    close_all();
}

static void a_message_that_began_live_ends_in_the_replay(void)
{
    client_rig_open();
    record_stream(IPC);
    R.read = R.published = THREE_FRAGMENTS;
    as_persistent_options options = persistent_options();
    options.live_channel = "aeron:ipc?tether=false";
    options.start_position = AS_PERSISTENT_FROM_LIVE;
    open_subscription(&options);
    STEP_UNTIL(as_persistent_subscription_is_live(subscription));
    publish_messages(1);
    UNTIL(&R.rig, (step_by_a_fragment(), subscription->position > 0));
    CHECK_I64(R.read, THREE_FRAGMENTS);
    publish_messages(60);
    STEP_UNTIL(left == 1);
    STEP_UNTIL(R.read == R.published && as_persistent_subscription_is_live(subscription));
    close_all();
}

static void an_archive_that_restarts_while_live_is_not_missed(void)
{
    client_rig_open();
    record_stream(IPC);
    publish_messages(10);
    const as_persistent_options options = persistent_options();
    open_subscription(&options);
    STEP_UNTIL(as_persistent_subscription_is_live(subscription));
    rig_close_archive(&R.rig);
    publish_messages(10);
    STEP_UNTIL(R.read == R.published);
    CHECK(as_persistent_subscription_is_live(subscription));
    rig_open_archive(&R.rig);
    STEP_UNTIL(asi_persistent_is_linked(subscription));
    publish_messages(10);
    STEP_UNTIL(R.read == R.published);
    CHECK(as_persistent_subscription_is_live(subscription));
    CHECK_I64(joined, 1);
    CHECK_I64(left, 0);
    close_all();
}

static void an_archive_that_restarts_while_replaying_goes_on_there(void)
{
    client_rig_open();
    record_stream(IPC);
    const int64_t end = publish_messages(200);
    UNTIL(&R.rig, recorded_position() == end);
    as_publication_close(R.publication);
    R.publication = NULL;
    UNTIL(&R.rig, R.signals[AS_SIGNAL_STOP] > 0 || (rig_turn(&R.rig), recorded_position(), false));
    const as_persistent_options options = persistent_options();
    open_subscription(&options);
    STEP_UNTIL(R.read >= 20);
    CHECK(as_persistent_subscription_is_replaying(subscription));
    rig_close_archive(&R.rig);
    const int64_t read_before = R.read;
    STEP_UNTIL(AS_PERSISTENT_AWAIT_ARCHIVE_CONNECTION == as_persistent_subscription_get_state(subscription));
    CHECK(R.read >= read_before && R.read < R.published);
    rig_open_archive(&R.rig);
    STEP_UNTIL(R.read == R.published);
    CHECK_I64(last_position, end);
    close_all();
}

static void a_connect_that_times_out_is_told_and_tried_again(void)
{
    client_rig_open();
    record_stream(IPC);
    publish_messages(10);
    rig_close_archive(&R.rig);
    const as_persistent_options options = persistent_options();
    open_subscription(&options);
    STEP_UNTIL(ASI_LINK_CONNECTING == subscription->link && NULL != subscription->session.requests);
    R.client_ahead_ns += 11 * RIG_SECOND;
    STEP_UNTIL(errors > 0);
    CHECK_I64(last_error, AS_E_TIMEOUT);
    CHECK(!as_persistent_subscription_has_failed(subscription));
    rig_open_archive(&R.rig);
    STEP_UNTIL(R.read == R.published);
    close_all();
}

static int publications_at_the_driver(void)
{
    int count = 0;
    as_counter_row row;
    for (int32_t id = 0; id <= as_client_max_counter_id(R.rig.client); id++)
    {
        count += AS_OK == as_client_counter(R.rig.client, id, &row) && ASI_COUNTER_TYPE_PUBLISHER_LIMIT == row.type_id;
    }
    return count;
}

/* What the driver still adds for it is removed again, as nobody else knows of it. */
static void closed_while_it_connects_it_leaves_nothing(void)
{
    client_rig_open();
    record_stream(IPC);
    const int before = publications_at_the_driver();
    const as_persistent_options options = persistent_options();
    open_subscription(&options);
    STEP_UNTIL(ASI_CONNECT_REQUESTS == subscription->connect.state && AS_NULL_VALUE != subscription->connect.driver_request);
    as_persistent_subscription_close(subscription);
    subscription = NULL;
    as_counter *later;
    CHECK_I64(as_client_add_counter(R.rig.client, 1000, NULL, 0, "later", &later), AS_OK); /* both were answered */
    UNTIL(&R.rig, publications_at_the_driver() == before);
    as_counter_close(later);
    close_all();
}

static void a_missing_publisher_is_told_once_and_the_replay_goes_on(void)
{
    client_rig_open();
    record_stream(IPC);
    const int64_t end = publish_messages(30);
    UNTIL(&R.rig, recorded_position() == end);
    as_persistent_options options = persistent_options();
    options.live_channel = "aeron:ipc?session-id=777"; /* nobody has it */
    open_subscription(&options);
    STEP_UNTIL(R.read == R.published && NULL != subscription->live);
    R.client_ahead_ns += 11 * RIG_SECOND;
    STEP_UNTIL(errors == 1);
    CHECK(NULL != strstr(last_error_text, "no image became available on the live subscription within 10s"));
    publish_messages(30);
    STEP_UNTIL(R.read == R.published);
    CHECK(as_persistent_subscription_is_replaying(subscription));
    R.client_ahead_ns += 11 * RIG_SECOND;
    publish_messages(5);
    STEP_UNTIL(R.read == R.published);
    CHECK_I64(errors, 1);
    close_all();
}

/* -- by seed ------------------------------------------------------------------------------------------------------------------------- */

static void reopen(const as_persistent_options *options)
{
    as_persistent_options next = *options;
    if (NULL != subscription)
    {
        next.start_position = as_persistent_subscription_position(subscription);
        as_persistent_subscription_close(subscription);
    }
    const int64_t position = last_position;
    open_subscription(&next);
    last_position = position;
}

static void something_happens(const as_persistent_options *options)
{
    switch (below(40))
    {
        case 0: /* another process goes on where this one was */
            reopen(options);
            break;
        case 1: /* too slow: live is lost */
            publish_messages(20 + (int64_t)below(40));
            break;
        case 2:
            CHECK_I64(as_archive_client_stop_all_replays(R.archive, R.recording_id), AS_OK);
            break;
        case 3:
            R.client_ahead_ns += RIG_SECOND * (int64_t)below(4);
            break;
        case 4:
            poll_columns = !poll_columns;
            break;
        default:
            if (R.published - R.read < 10)
            {
                R.reader = step;
                publish_messages(1 + (int64_t)below(4));
                R.reader = NULL;
            }
            for (uint64_t polls = below(20); polls > 0; polls--)
            {
                step();
                rig_turn(&R.rig);
            }
            break;
    }
}

static void live_by_seed(uint64_t seed)
{
    static const char *const REPLAYS[] = { "aeron:ipc", "aeron:ipc?control-mode=response", "aeron:udp?endpoint=127.0.0.1:0",
        NULL };
    char replay[64];
    asi_rand rand;
    asi_rand_seed(&rand, seed);
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    client_rig_open();
    record_stream(IPC);
    publish_messages((int64_t)(asi_rand_u64(&rand) % 30));
    as_persistent_options options = persistent_options();
    options.live_channel = "aeron:ipc?tether=false";
    const uint64_t kind = asi_rand_u64(&rand) % 4;
    snprintf(replay, sizeof(replay), "aeron:udp?endpoint=127.0.0.1:%d", free_port());
    options.replay_channel = NULL == REPLAYS[kind] ? replay : REPLAYS[kind];
    last_position = 0;
    chance = &rand;
    reopen(&options);
    for (int i = 0; i < 300; i++)
    {
        something_happens(&options);
    }
    chance = NULL;
    STEP_UNTIL(R.read == R.published && as_persistent_subscription_is_live(subscription));
    CHECK_I64(last_position, as_publication_position(R.publication));
    close_all();
}

static void every_message_comes_once_whatever_happens(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
    {
        live_by_seed(seed);
    }
    live_by_seed((uint64_t)rig_system_ns());
}

/* -- failures ----------------------------------------------------------------------------------------------------------------------- */

static void fails(as_persistent_options options, as_persistent_failure reason, as_result result, const char *text)
{
    int64_t polled = 0;
    open_subscription(&options);
    UNTIL(&R.rig, (polled = as_persistent_subscription_poll(subscription, on_message, NULL, 10)) < 0);
    CHECK_I64(polled, result);
    CHECK(NULL != strstr(as_error_text(), text));
    CHECK(as_persistent_subscription_has_failed(subscription));
    CHECK_I64(as_persistent_subscription_failure(subscription), reason);
    CHECK_I64(counter_value(114), AS_PERSISTENT_FAILED);
    CHECK_I64(errors, 1);
    CHECK(NULL != strstr(last_error_text, text));
    CHECK_I64(as_persistent_subscription_poll(subscription, on_message, NULL, 10), result); /* and stays so */
    CHECK_I64(errors, 1);
    as_persistent_subscription_close(subscription);
    subscription = NULL;
}

static void what_cannot_work_fails_for_good(void)
{
    client_rig_open();
    record_stream(IPC);
    const int64_t end = publish_messages(10);
    UNTIL(&R.rig, recorded_position() == end);
    as_persistent_options options = persistent_options();
    options.recording_id = 99;
    fails(options, AS_PERSISTENT_RECORDING_NOT_FOUND, AS_E_PEER, "unknown recording id: 99");
    options = persistent_options();
    options.live_stream_id = RIG_STREAM + 1;
    fails(options, AS_PERSISTENT_STREAM_ID_MISMATCH, AS_E_USAGE, "not of live_stream_id 1002");
    options = persistent_options();
    options.start_position = 33;
    fails(options, AS_PERSISTENT_GENERIC, AS_E_PEER, "replay request failed: ");
    options = persistent_options();
    options.start_position = end + 32768;
    fails(options, AS_PERSISTENT_INVALID_START_POSITION, AS_E_PEER, "replay request failed: ");
    as_publication_close(R.publication);
    R.publication = NULL;
    int64_t stop = AS_NULL_VALUE;
    UNTIL(&R.rig, AS_OK == as_archive_client_stop_position(R.archive, R.recording_id, &stop) && end == stop);
    options = persistent_options();
    options.start_position = end + 32;
    fails(options, AS_PERSISTENT_INVALID_START_POSITION, AS_E_DATA, "must be less than the limit position");
    close_all();
}

static void options_are_checked(void)
{
    client_rig_open();
    record_stream(IPC);
    const asi_clock clock = client_clock();
    as_persistent_options options = persistent_options();
    options.recording_id = -1;
    CHECK_I64(asi_persistent_open_with(&options, &clock, &subscription), AS_E_USAGE);
    options = persistent_options();
    options.start_position = -3;
    CHECK_I64(asi_persistent_open_with(&options, &clock, &subscription), AS_E_USAGE);
    options = persistent_options();
    options.live_channel = NULL;
    CHECK_I64(asi_persistent_open_with(&options, &clock, &subscription), AS_E_USAGE);
    options = persistent_options();
    options.replay_channel = "nonsense";
    CHECK_I64(asi_persistent_open_with(&options, &clock, &subscription), AS_E_USAGE);
    options = persistent_options();
    options.replay_channel = "aeron:udp?control-mode=response|control=127.0.0.1:5"; /* the control channel is IPC */
    CHECK_I64(asi_persistent_open_with(&options, &clock, &subscription), AS_E_USAGE);
    subscription = NULL;
    close_all();
}

int main(void)
{
    RUN(every_message_comes_once_over_ipc);
    RUN(every_message_comes_once_as_columns);
    RUN(every_message_comes_once_over_udp);
    RUN(every_message_comes_once_over_a_response_channel);
    RUN(from_live_joins_at_once);
    RUN(a_position_between_messages_goes_on_there);
    RUN(a_first_message_that_was_read_in_part_comes_again_in_whole);
    RUN(live_lost_to_flow_control_is_replayed);
    RUN(live_lost_within_a_poll_is_replayed_from_there);
    RUN(a_message_that_began_live_ends_in_the_replay);
    RUN(an_archive_that_restarts_while_live_is_not_missed);
    RUN(an_archive_that_restarts_while_replaying_goes_on_there);
    RUN(a_connect_that_times_out_is_told_and_tried_again);
    RUN(closed_while_it_connects_it_leaves_nothing);
    RUN(a_missing_publisher_is_told_once_and_the_replay_goes_on);
    RUN(what_cannot_work_fails_for_good);
    RUN(options_are_checked);
    RUN(every_message_comes_once_whatever_happens);
    return 0;
}
