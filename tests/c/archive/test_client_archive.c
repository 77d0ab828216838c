/* Goal: archive client and archive do the main job together: record, list, ask, replay, extend, stop, with the errors and
 * signals of Spec: 08 §19. Method: one suite for any archive. Without arguments the driver and the archive run in this process,
 * the archive in each of its threading modes (in INVOKER mode the client is invoked too); with `--aeron-dir <dir>` an archive that
 * somebody started there is used (the stock one, by tests/interop).
 * Nothing waits by sleeping; what does not happen in time is a failure that names it.
 * Spec: 08 §1, §13. */
#include <sched.h>
#include <unistd.h>

#include "aeron_spark/as_archive.h"
#include "aeron_spark/as_driver.h"
#include "base/bits.h"
#include "base/clock.h"
#include "check.h"

#define CHANNEL "aeron:ipc?term-length=64k"
#define TERM_LENGTH (64 * 1024)
#define MESSAGE_MAX_LENGTH 4000
#define TIMEOUT_NS INT64_C(20000000000)
#define SIGNALS_MAX 256

static bool is_invoked; /* archive and client have no threads */
static char aeron_dir[128];
static char archive_dir[160];
static as_driver *driver;
static as_archive *archive;
static as_client *aeron;
static as_archive_client *client;
static as_signal signals[SIGNALS_MAX];
static int signal_count;
static int32_t next_stream_id = 5000;

static int64_t deadline_ns;

static void start_waiting(void)
{
    const asi_clock clock = asi_clock_system();
    deadline_ns = asi_clock_ns(&clock) + TIMEOUT_NS;
}

static void run_archive(void *context)
{
    (void)context;
    as_archive_do_work(archive);
}

static void keep_waiting(const char *what)
{
    if (is_invoked)
    {
        as_archive_do_work(archive);
        as_client_invoke(aeron);
    }
    const asi_clock clock = asi_clock_system();
    if (asi_clock_ns(&clock) > deadline_ns)
    {
        fprintf(stderr, "did not happen in time: %s; last error: %s\n", what, as_error_text());
        exit(1);
    }
    sched_yield();
}

static void on_signal(void *context, const as_signal *signal)
{
    (void)context;
    CHECK(signal_count < SIGNALS_MAX);
    signals[signal_count++] = *signal;
}

static const as_signal *await_signal(int32_t kind, int64_t recording_id)
{
    start_waiting();
    for (;;)
    {
        for (int i = 0; i < signal_count; i++)
        {
            if (signals[i].signal == kind && (AS_NULL_VALUE == recording_id || signals[i].recording_id == recording_id))
            {
                return &signals[i];
            }
        }
        int32_t handled;
        CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
        keep_waiting("a recording signal");
    }
}

/* -- messages -------------------------------------------------------------------------------------------------------------- */

static int64_t message_length(int index) { return 1 + (index * 997) % MESSAGE_MAX_LENGTH; }

static void publish(as_publication *publication, int from, int count)
{
    uint8_t message[MESSAGE_MAX_LENGTH];
    for (int i = from; i < from + count; i++)
    {
        for (int64_t j = 0; j < message_length(i); j++)
        {
            message[j] = (uint8_t)(i * 31 + j);
        }
        start_waiting();
        while (as_publication_offer(publication, message, message_length(i)) < 0)
        {
            keep_waiting("an offer is accepted");
        }
    }
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    int *next = context;
    (void)header;
    CHECK_I64(length, message_length(*next));
    for (int64_t j = 0; j < length; j++)
    {
        CHECK_I64(data[j], (uint8_t)(*next * 31 + j));
    }
    ++*next;
}

/* Reads messages `next`.. from the only image until it ends or `stop` was read; returns the image's last position. */
static int64_t read_messages(as_subscription *subscription, int *next, int stop)
{
    as_fragment_assembler *assembler = NULL;
    CHECK_I64(as_fragment_assembler_open(on_message, next, &assembler), AS_OK);
    as_image *image = NULL;
    start_waiting();
    while (NULL == (image = as_subscription_image_at(subscription, 0)))
    {
        keep_waiting("the replay's image");
    }
    start_waiting();
    while (*next < stop && !as_image_is_closed(image) && !as_image_is_end_of_stream(image))
    {
        CHECK(as_image_poll(image, as_fragment_assembler_on_fragment, assembler, 16) >= 0);
        keep_waiting("the replay's messages");
    }
    const int64_t position = as_image_position(image);
    as_image_release(image);
    as_fragment_assembler_close(assembler);
    return position;
}

/* -- a recording ----------------------------------------------------------------------------------------------------------- */

typedef struct recorded
{
    int32_t stream_id;
    int64_t subscription_id;
    int64_t recording_id;
    int64_t half_position; /* of the publisher, after half of the messages */
    int64_t stop_position; /* of the publisher */
} recorded;

static recorded start(const char *channel, bool auto_stop, as_publication **publication)
{
    recorded made = { .stream_id = next_stream_id++ };
    signal_count = 0;
    CHECK_I64(as_archive_client_start_recording(
        client, channel, made.stream_id, AS_SOURCE_LOCAL, auto_stop, &made.subscription_id), AS_OK);
    CHECK_I64(as_client_add_exclusive_publication(aeron, channel, made.stream_id, publication), AS_OK);
    const as_signal *signal = await_signal(AS_SIGNAL_START, AS_NULL_VALUE);
    CHECK_I64(signal->subscription_id, made.subscription_id);
    CHECK_I64(signal->position, 0);
    CHECK_I64(signal->control_session_id, as_archive_client_control_session_id(client));
    made.recording_id = signal->recording_id;
    return made;
}

static void await_recorded(const recorded *made, int64_t position)
{
    int64_t reached = AS_NULL_VALUE;
    start_waiting();
    while (reached < position)
    {
        CHECK_I64(as_archive_client_recording_position(client, made->recording_id, &reached), AS_OK);
        keep_waiting("the recording reaches the publisher");
    }
    CHECK_I64(reached, position);
}

static recorded record(int count)
{
    as_publication *publication = NULL;
    recorded made = start(CHANNEL, true, &publication);
    publish(publication, 0, count / 2);
    made.half_position = as_publication_position(publication);
    publish(publication, count / 2, count - count / 2);
    made.stop_position = as_publication_position(publication);
    await_recorded(&made, made.stop_position);
    as_publication_close(publication);
    CHECK_I64(await_signal(AS_SIGNAL_STOP, made.recording_id)->position, made.stop_position);
    return made;
}

/* -- the suite ------------------------------------------------------------------------------------------------------------- */

static void a_session_is_connected(void)
{
    CHECK(aeron == as_archive_client_aeron(client));
    CHECK(as_archive_client_control_session_id(client) >= 0);
    CHECK(as_archive_client_archive_id(client) >= 0);
    CHECK_I64(as_archive_client_keepalive(client), AS_OK);
    int32_t handled = -1;
    CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
    CHECK(handled >= 0);
}

static void positions_follow_the_publisher(void)
{
    as_publication *publication = NULL;
    const recorded made = start(CHANNEL, true, &publication);
    publish(publication, 0, 100);
    const int64_t end = as_publication_position(publication);
    await_recorded(&made, end);
    int64_t position = -9;
    CHECK_I64(as_archive_client_start_position(client, made.recording_id, &position), AS_OK);
    CHECK_I64(position, 0);
    CHECK_I64(as_archive_client_stop_position(client, made.recording_id, &position), AS_OK);
    CHECK_I64(position, AS_NULL_VALUE);
    CHECK_I64(as_archive_client_max_recorded_position(client, made.recording_id, &position), AS_OK);
    CHECK_I64(position, end);
    as_publication_close(publication);
    CHECK_I64(await_signal(AS_SIGNAL_STOP, made.recording_id)->position, end);
    CHECK_I64(as_archive_client_recording_position(client, made.recording_id, &position), AS_OK);
    CHECK_I64(position, AS_NULL_VALUE);
    CHECK_I64(as_archive_client_stop_position(client, made.recording_id, &position), AS_OK);
    CHECK_I64(position, end);
    CHECK_I64(as_archive_client_max_recorded_position(client, made.recording_id, &position), AS_OK);
    CHECK_I64(position, end);
}

typedef struct listing
{
    int64_t last_id;
    int32_t stream_id;
    int32_t initial_term_id;
    bool is_active;
} listing;

static bool on_recording(void *context, const as_recording *recording)
{
    listing *list = context;
    CHECK(recording->recording_id > list->last_id);
    list->last_id = recording->recording_id;
    list->stream_id = recording->stream_id;
    list->initial_term_id = recording->initial_term_id;
    list->is_active = AS_NULL_VALUE == recording->stop_position;
    CHECK_I64(recording->term_buffer_length, TERM_LENGTH);
    CHECK_I64(recording->mtu_length, 1408);
    CHECK_TEXT(recording->source_identity, "aeron:ipc");
    CHECK_TEXT(recording->stripped_channel, "aeron:ipc");
    CHECK(0 == strncmp(recording->original_channel, CHANNEL, strlen(CHANNEL)));
    CHECK(recording->start_timestamp_ms > INT64_C(1600000000000));
    return true;
}

static void listings_find_recordings(void)
{
    const recorded first = record(3);
    const recorded second = record(2);
    listing list = { .last_id = -1 };
    int32_t listed = -1;
    CHECK_I64(as_archive_client_list_recording(client, second.recording_id, on_recording, &list, &listed), AS_OK);
    CHECK_I64(listed, 1);
    CHECK_I64(list.stream_id, second.stream_id);
    CHECK(!list.is_active);
    list = (listing){ .last_id = -1 };
    CHECK_I64(as_archive_client_list_recordings(client, first.recording_id, 100, on_recording, &list, &listed), AS_OK);
    CHECK_I64(listed, 2);
    CHECK_I64(list.last_id, second.recording_id);
    list = (listing){ .last_id = -1 };
    CHECK_I64(as_archive_client_list_recordings(client, 0, 1, on_recording, &list, &listed), AS_OK);
    CHECK_I64(listed, 1);
    list = (listing){ .last_id = -1 };
    CHECK_I64(as_archive_client_list_recordings_for_uri(
        client, 0, 10, "term-length", first.stream_id, on_recording, &list, &listed), AS_OK);
    CHECK_I64(listed, 1);
    CHECK_I64(list.last_id, first.recording_id);
    CHECK_I64(as_archive_client_list_recordings_for_uri(
        client, 0, 10, "no such text", first.stream_id, on_recording, &list, &listed), AS_OK);
    CHECK_I64(listed, 0);
    CHECK_I64(as_archive_client_list_recording(client, 999999, on_recording, &list, &listed), AS_OK);
    CHECK_I64(listed, 0);
    int64_t found = -9;
    CHECK_I64(as_archive_client_find_last_matching(client, 0, "ipc", first.stream_id, 0, &found), AS_OK);
    CHECK_I64(found, AS_NULL_VALUE);
}

static bool on_subscription(void *context, int64_t subscription_id, int32_t stream_id, const char *stripped_channel)
{
    CHECK_TEXT(stripped_channel, "aeron:ipc");
    CHECK(stream_id >= 5000);
    *(int64_t *)context = subscription_id;
    return true;
}

static void subscriptions_live_until_stopped(void)
{
    const int32_t stream_id = next_stream_id++;
    int64_t subscription_id = -9, seen = -9;
    int32_t listed = -1;
    CHECK_I64(as_archive_client_start_recording(client, CHANNEL, stream_id, AS_SOURCE_LOCAL, false, &subscription_id), AS_OK);
    CHECK_I64(as_archive_client_list_recording_subscriptions(
        client, 0, 10, "ipc", stream_id, true, on_subscription, &seen, &listed), AS_OK);
    CHECK_I64(listed, 1);
    CHECK_I64(seen, subscription_id);
    int64_t again;
    CHECK_I64(as_archive_client_start_recording(client, CHANNEL, stream_id, AS_SOURCE_LOCAL, false, &again), AS_E_PEER);
    CHECK_I64(as_error_code(), 3);
    CHECK(NULL != strstr(as_error_text(), "recording exists for streamId="));
    CHECK_I64(as_archive_client_stop_recording(client, CHANNEL, stream_id), AS_OK);
    CHECK_I64(as_archive_client_stop_recording(client, CHANNEL, stream_id), AS_E_PEER);
    CHECK_I64(as_error_code(), 4);
    CHECK_I64(as_archive_client_list_recording_subscriptions(
        client, 0, 10, "ipc", stream_id, true, on_subscription, &seen, &listed), AS_OK);
    CHECK_I64(listed, 0);
    CHECK_I64(as_archive_client_start_recording(client, CHANNEL, stream_id, AS_SOURCE_LOCAL, false, &subscription_id), AS_OK);
    CHECK_I64(as_archive_client_stop_recording_subscription(client, subscription_id), AS_OK);
    CHECK_I64(as_archive_client_stop_recording_subscription(client, subscription_id), AS_E_PEER);
}

static void identity_stops_an_active_recording(void)
{
    as_publication *publication = NULL;
    const recorded made = start(CHANNEL, false, &publication);
    publish(publication, 0, 5);
    await_recorded(&made, as_publication_position(publication));
    bool was_active = false;
    CHECK_I64(as_archive_client_stop_recording_by_identity(client, made.recording_id, &was_active), AS_OK);
    CHECK(was_active);
    CHECK_I64(await_signal(AS_SIGNAL_STOP, made.recording_id)->position, as_publication_position(publication));
    CHECK_I64(as_archive_client_stop_recording_by_identity(client, made.recording_id, &was_active), AS_OK);
    CHECK(!was_active);
    CHECK_I64(as_archive_client_stop_recording_by_identity(client, 999999, &was_active), AS_E_PEER);
    CHECK_I64(as_error_code(), 5);
    as_publication_close(publication);
}

static void a_stopped_recording_is_replayed(void)
{
    const int count = 400;
    const recorded made = record(count);
    CHECK(made.stop_position > 4 * TERM_LENGTH);
    int64_t session = 0;
    as_subscription *subscription = NULL;
    const int32_t replay_stream_id = next_stream_id++;
    CHECK_I64(as_archive_client_replay(
        client, made.recording_id, "aeron:ipc", replay_stream_id, NULL, &session, &subscription), AS_OK);
    int next = 0;
    CHECK_I64(read_messages(subscription, &next, INT32_MAX), made.stop_position);
    CHECK_I64(next, count);
    as_subscription_close(subscription);
}

static void an_active_recording_is_followed(void)
{
    as_publication *publication = NULL;
    const recorded made = start(CHANNEL, true, &publication);
    publish(publication, 0, 50);
    await_recorded(&made, as_publication_position(publication));
    int64_t session = 0;
    as_subscription *subscription = NULL;
    CHECK_I64(as_archive_client_replay(
        client, made.recording_id, "aeron:ipc", next_stream_id++, NULL, &session, &subscription), AS_OK);
    int next = 0;
    read_messages(subscription, &next, 50);
    CHECK_I64(next, 50);
    publish(publication, 50, 50);
    const int64_t end = as_publication_position(publication);
    as_publication_close(publication);
    CHECK_I64(read_messages(subscription, &next, INT32_MAX), end);
    CHECK_I64(next, 100);
    as_subscription_close(subscription);
}

static void a_bounded_replay_stops_at_its_counter(void)
{
    const recorded made = record(40);
    as_counter *counter = NULL;
    CHECK_I64(as_client_add_counter(aeron, 1001, NULL, 0, "replay limit", &counter), AS_OK);
    as_counter_set(counter, 0);
    as_replay_params params;
    as_replay_params_init(&params);
    params.bounding_limit_counter_id = as_counter_id(counter);
    int64_t session = 0;
    as_subscription *subscription = NULL;
    CHECK_I64(as_archive_client_replay(
        client, made.recording_id, "aeron:ipc", next_stream_id++, &params, &session, &subscription), AS_OK);
    /* At a frame's end: a stock archive stalls for ever at a limit inside of a frame. */
    as_counter_set(counter, made.half_position);
    int next = 0;
    CHECK_I64(read_messages(subscription, &next, 20), made.half_position);
    CHECK_I64(next, 20);
    int32_t handled;
    CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
    as_image *image = as_subscription_image_at(subscription, 0);
    CHECK(NULL != image);
    CHECK_I64(as_image_poll(image, on_message, &next, 1), 0);
    as_image_release(image);
    as_counter_set(counter, made.stop_position);
    read_messages(subscription, &next, 40);
    CHECK_I64(next, 40);
    CHECK_I64(as_archive_client_stop_replay(client, session), AS_OK);
    CHECK_I64(as_archive_client_stop_replay(client, session), AS_OK);
    CHECK_I64(as_archive_client_stop_all_replays(client, AS_NULL_VALUE), AS_OK);
    as_subscription_close(subscription);
    as_counter_close(counter);
}

static void wrong_replays_are_refused(void)
{
    const recorded made = record(10);
    static const struct
    {
        int64_t position;
        int64_t length;
        int32_t io_length;
        int32_t code;
        const char *text;
    } rows[] = {
        { 33, -1, -1, 0, "is not a multiple of FRAME_ALIGNMENT (32)" },
        { 1 << 20, -1, -1, 16, "must be less than the limit position" },
        { -32, -1, -1, 16, "is less than recording start position" },
        { 0, -1, 64, 0, "fileIoMaxLength=64 < mtuLength=1408" },
        { 0, -5, -1, 0, "replay length must be positive" },
    };
    int64_t session = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        as_replay_params params;
        as_replay_params_init(&params);
        params.position = rows[i].position;
        params.length = rows[i].length;
        params.file_io_max_length = rows[i].io_length;
        CHECK_I64(as_archive_client_start_replay(
            client, made.recording_id, "aeron:ipc", 1, &params, &session), AS_E_PEER);
        CHECK_I64(as_error_code(), rows[i].code);
        CHECK(NULL != strstr(as_error_text(), rows[i].text));
    }
    CHECK_I64(as_archive_client_start_replay(client, 999999, "aeron:ipc", 1, NULL, &session), AS_E_PEER);
    CHECK_I64(as_error_code(), 5);
    CHECK(NULL != strstr(as_error_text(), "unknown recording id: 999999"));
}

static void a_recording_is_extended_without_a_seam(void)
{
    const recorded made = record(30);
    int64_t subscription_id = -9;
    signal_count = 0;
    CHECK_I64(as_archive_client_extend_recording(
        client, made.recording_id, CHANNEL, made.stream_id, AS_SOURCE_LOCAL, true, &subscription_id), AS_OK);
    char channel[256];
    listing list = { .last_id = -1 };
    int32_t listed = 0;
    CHECK_I64(as_archive_client_list_recording(client, made.recording_id, on_recording, &list, &listed), AS_OK);
    snprintf(channel, sizeof(channel), CHANNEL "|mtu=1408|init-term-id=%d|term-id=%d|term-offset=%d", list.initial_term_id,
        asi_wrap_add(list.initial_term_id, (int32_t)(made.stop_position / TERM_LENGTH)),
        (int)(made.stop_position % TERM_LENGTH));
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(aeron, channel, made.stream_id, &publication), AS_OK);
    const as_signal *signal = await_signal(AS_SIGNAL_EXTEND, made.recording_id);
    CHECK_I64(signal->position, made.stop_position);
    CHECK_I64(signal->subscription_id, subscription_id);
    int64_t ignored;
    CHECK_I64(as_archive_client_extend_recording(
        client, made.recording_id, CHANNEL, made.stream_id, AS_SOURCE_LOCAL, true, &ignored), AS_E_PEER);
    CHECK_I64(as_error_code(), 2);
    publish(publication, 30, 30);
    const int64_t end = as_publication_position(publication);
    await_recorded(&made, end);
    as_publication_close(publication);
    CHECK_I64(await_signal(AS_SIGNAL_STOP, made.recording_id)->position, end);
    int64_t session = 0;
    as_subscription *subscription = NULL;
    CHECK_I64(as_archive_client_replay(
        client, made.recording_id, "aeron:ipc", next_stream_id++, NULL, &session, &subscription), AS_OK);
    int next = 0;
    CHECK_I64(read_messages(subscription, &next, INT32_MAX), end);
    CHECK_I64(next, 60);
    as_subscription_close(subscription);
}

static void an_own_aeron_client_serves_as_well(void)
{
    const recorded made = record(1);
    as_archive_client_options options;
    as_archive_client_options_init(&options);
    options.aeron_dir = aeron_dir;
    options.control_channel = "aeron:ipc?alias=control";
    options.response_channel = "aeron:ipc?alias=responses|term-length=128k";
    options.response_stream_id = 21;
    options.invoker = is_invoked ? run_archive : NULL;
    as_archive_client *other = NULL;
    CHECK_I64(as_archive_client_open(&options, &other), AS_OK);
    CHECK(aeron != as_archive_client_aeron(other));
    CHECK(as_archive_client_control_session_id(other) != as_archive_client_control_session_id(client));
    CHECK_I64(as_archive_client_archive_id(other), as_archive_client_archive_id(client));
    int64_t position = -9;
    CHECK_I64(as_archive_client_stop_position(other, made.recording_id, &position), AS_OK);
    CHECK_I64(position, made.stop_position);
    as_archive_client_close(other);
    CHECK_I64(as_archive_client_start_position(client, made.recording_id, &position), AS_OK);
}

/* -- what it runs on ------------------------------------------------------------------------------------------------------- */

static void open_driver_and_archive(const char *archive_threading)
{
    snprintf(aeron_dir, sizeof(aeron_dir), "/dev/shm/as-test-client-%d", (int)getpid());
    snprintf(archive_dir, sizeof(archive_dir), "%s-archive", aeron_dir);
    as_driver_config *driver_config = NULL;
    CHECK_I64(as_driver_config_open(&driver_config), AS_OK);
    CHECK_I64(as_driver_config_set(driver_config, "aeron.dir", aeron_dir), AS_OK);
    CHECK_I64(as_driver_config_set(driver_config, "aeron.threading.mode", "SHARED"), AS_OK);
    CHECK_I64(as_driver_config_set(driver_config, "aeron.dir.delete.on.start", "true"), AS_OK);
    CHECK_I64(as_driver_config_set(driver_config, "aeron.dir.delete.on.shutdown", "true"), AS_OK);
    CHECK_I64(as_driver_open(driver_config, NULL, NULL, &driver), AS_OK);
    CHECK_I64(as_driver_start(driver), AS_OK);
    as_driver_config_close(driver_config);
    as_archive_config *archive_config = NULL;
    CHECK_I64(as_archive_config_open(&archive_config), AS_OK);
    CHECK_I64(as_archive_config_set(archive_config, "aeron.dir", aeron_dir), AS_OK);
    CHECK_I64(as_archive_config_set(archive_config, "aeron.archive.dir", archive_dir), AS_OK);
    CHECK_I64(as_archive_config_set(archive_config, "aeron.archive.dir.delete.on.start", "true"), AS_OK);
    CHECK_I64(as_archive_config_set(archive_config, "aeron.archive.control.channel.enabled", "false"), AS_OK);
    CHECK_I64(as_archive_config_set(archive_config, "aeron.archive.threading.mode", archive_threading), AS_OK);
    CHECK_I64(as_archive_config_set(archive_config, "aeron.archive.segment.file.length", "131072"), AS_OK);
    CHECK_I64(as_archive_open(archive_config, &archive), AS_OK);
    CHECK(is_invoked || AS_OK == as_archive_start(archive));
    as_archive_config_close(archive_config);
}

static void open_client(void)
{
    as_client_options aeron_options;
    as_client_options_init(&aeron_options);
    aeron_options.aeron_dir = aeron_dir;
    aeron_options.use_invoker = is_invoked;
    aeron_options.driver_invoker = is_invoked ? run_archive : NULL;
    CHECK_I64(as_client_open(&aeron_options, &aeron), AS_OK);
    as_archive_client_options options;
    as_archive_client_options_init(&options);
    options.client = aeron;
    options.client_info = "name=test_client_archive";
    options.on_signal = on_signal;
    options.invoker = is_invoked ? run_archive : NULL;
    CHECK_I64(as_archive_client_open(&options, &client), AS_OK);
}

static void remove_archive_dir(void)
{
    char command[256];
    snprintf(command, sizeof(command), "rm -rf '%s'", archive_dir);
    CHECK_I64(system(command), 0);
}

static void run_suite(void)
{
    open_client();
    RUN(a_session_is_connected);
    RUN(positions_follow_the_publisher);
    RUN(listings_find_recordings);
    RUN(subscriptions_live_until_stopped);
    RUN(identity_stops_an_active_recording);
    RUN(a_stopped_recording_is_replayed);
    RUN(an_active_recording_is_followed);
    RUN(a_bounded_replay_stops_at_its_counter);
    RUN(wrong_replays_are_refused);
    RUN(a_recording_is_extended_without_a_seam);
    RUN(an_own_aeron_client_serves_as_well);
    as_archive_client_close(client);
    as_client_close(aeron);
}

int main(int argc, char **argv)
{
    if (argc == 3 && 0 == strcmp(argv[1], "--aeron-dir"))
    {
        snprintf(aeron_dir, sizeof(aeron_dir), "%s", argv[2]);
        run_suite();
        return 0;
    }
    CHECK_I64(argc, 1);
    static const char *const MODES[] = { "SHARED", "DEDICATED", "INVOKER" };
    for (int i = 0; i < 3; i++)
    {
        printf("archive threading mode %s\n", MODES[i]);
        is_invoked = 0 == strcmp(MODES[i], "INVOKER");
        open_driver_and_archive(MODES[i]);
        run_suite();
        as_archive_close(archive);
        as_driver_close(driver);
        remove_archive_dir();
    }
    return 0;
}
