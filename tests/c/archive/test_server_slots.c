/* Goal: aeron.archive.max.concurrent.recordings limits the recordings of all clients together; senders that can reach a
 * recorded endpoint take a few slots with datagrams without data, and none from other streams. Method: bare sessions against
 * an invoked archive, and raw datagrams to the sockets of its driver. tests/conformance/archive has the scenarios of Spec: 11. */
static const char *images_unbegun_max = "1536"; /* the default */
#define RIG_SET_DRIVER(config)                                                                                    \
    CHECK_I64(as_driver_config_set(config, "aeron.counters.buffer.length", "4m"), 0);                            \
    CHECK_I64(as_driver_config_set(config, "aeron.image.liveness.timeout", "60s"), 0); /* a flood takes its time */ \
    CHECK_I64(as_driver_config_set(config, "aeron.spark.driver.images.unbegun.max", images_unbegun_max), 0)
#include <dirent.h>
#include <sys/resource.h>

#include "ports.h"
#include "server_rig.h"
#include "wire/frame.h"

#define STREAM 1001
#define IN_FLIGHT 20 /* SETUPs at a time */
#define UNBEGUN_MAX 8 /* the default */

static test_rig rig;
static raw_session *session;

static void open_world(const char *max_recordings)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.max.concurrent.recordings", max_recordings);
    rig_open_archive(&rig);
    session = raw_connect(&rig);
}

static void close_world(void)
{
    raw_close(session);
    rig_close(&rig);
}

static void stop(int64_t subscription_id)
{
    asi_codec_request request = request_of(ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, AS_NULL_VALUE);
    request.subscription_id = subscription_id;
    raw_ask_ok(session, &request);
}

static int64_t start_ok(int32_t stream_id)
{
    asi_codec_request request = start_of(RIG_CHANNEL, stream_id, false);
    return raw_ask_ok(session, &request);
}

static as_publication *publication_of(int32_t stream_id)
{
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, RIG_CHANNEL, stream_id, &publication), AS_OK);
    return publication;
}

/* -- requests -------------------------------------------------------------------------------------------------------------------- */

/* A second publisher of a recorded stream finds no slot: its requester is told once, and when there is one, it is recorded from its
 * first byte on. */
static void an_image_without_a_slot_waits(void)
{
    open_world("1");
    asi_codec_request request = start_of(RIG_CHANNEL, 1, false);
    raw_ask_ok(session, &request);
    as_publication *first = publication_of(1);
    UNTIL(&rig, 1 == rig.archive->uses->count[ASI_USE_RECORDS]);
    as_publication *second = publication_of(1);
    const int64_t end = publish(&rig, second, 100, 10);
    raw_forget(session);
    check_error(raw_await(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id), ASI_CODEC_E_MAX_RECORDINGS,
        "a stream waits to be recorded, and its publisher with it, until a recording ends: max concurrent recordings reached 1: raise "
        "aeron.archive.max.concurrent.recordings: streamId=1 channel=" RIG_CHANNEL);
    raw_forget(session);
    for (int i = 0; i < 100; i++)
    {
        rig.clock_ahead_ns += RIG_SECOND / 1000;
        rig_turn(&rig);
        raw_poll(session);
    }
    CHECK(NULL == raw_find(session, ASI_CODEC_CONTROL_RESPONSE, request.correlation_id));
    CHECK_I64(rig.archive->uses->count[ASI_USE_RECORDS], 1);
    as_publication_close(first);
    const asi_codec_event *signal = raw_await_signal(session, AS_SIGNAL_START, request.correlation_id);
    CHECK_I64(signal->position, 0);
    const int64_t id = signal->recording_id;
    UNTIL(&rig, end == raw_position(session, ASI_CODEC_RECORDING_POSITION, id));
    as_publication_close(second);
    close_world();
}

/* -- file descriptors ------------------------------------------------------------------------------------------------------------- */

#define FILES_MAX 96
#define SCARCE 64

static void limit_files(rlim_t count)
{
    struct rlimit limit;
    CHECK(0 == getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 0 == count ? limit.rlim_max : count;
    CHECK(0 == setrlimit(RLIMIT_NOFILE, &limit));
}

static bool has_recorded(int64_t count, const as_publication *const *publications)
{
    for (int64_t i = 0; i < count; i++)
    {
        if (asi_recordings_find(rig.archive, i)->session.recorded->position != as_publication_position(publications[i]))
        {
            return false;
        }
    }
    return true;
}

/* No recording starts that cannot continue: active ones open their next segments when no other file can be opened. */
static void descriptors_bound_recordings(void)
{
    static const char REFUSED[] = "no file descriptor is left for it: 96 files may be open, and what is recorded already keeps some in "
        "reserve; raise the limit (ulimit -n, LimitNOFILE=), or end other recordings and replays";
    as_publication *publications[SCARCE];
    int64_t subscriptions[SCARCE];
    int taken[FILES_MAX];
    int taken_count = 0;
    int32_t count = 0;
    open_world("1000");
    limit_files(FILES_MAX);
    for (;; count++)
    {
        CHECK(count < SCARCE);
        asi_codec_request request = start_of(RIG_CHANNEL, 100 + count, false);
        const asi_codec_event *answer = raw_ask(session, &request);
        if (ASI_CODEC_OK != answer->code)
        {
            check_error(answer, ASI_CODEC_E_MAX_RECORDINGS, REFUSED);
            break;
        }
        subscriptions[count] = answer->relevant_id;
        publications[count] = publication_of(100 + count);
        UNTIL(&rig, 1 + count == rig.archive->uses->count[ASI_USE_RECORDS]);
        raw_forget(session);
        publish(&rig, publications[count], 1000, 1);
    }
    CHECK(count >= 15);
    asi_codec_request replay = replay_of(0, 0, 1056, "aeron:ipc", 4000);
    const asi_codec_event *answer = raw_ask(session, &replay);
    for (int i = 0; i < 3 && ASI_CODEC_OK == answer->code; i++) /* it needs less than a recording */
    {
        answer = raw_ask(session, &replay);
    }
    check_error(answer, ASI_CODEC_E_MAX_REPLAYS, REFUSED);
    UNTIL(&rig, has_recorded(count, (const as_publication *const *)publications));
    while (taken_count < FILES_MAX && (taken[taken_count] = dup(0)) >= 0)
    {
        taken_count++;
    }
    CHECK_I64(errno, EMFILE);
    for (int32_t i = 0; i < count; i++)
    {
        publish(&rig, publications[i], 1000, 300);
    }
    UNTIL(&rig, has_recorded(count, (const as_publication *const *)publications));
    CHECK_I64(rig.archive->uses->count[ASI_USE_RECORDS], count);
    while (taken_count > 0)
    {
        close(taken[--taken_count]);
    }
    for (int i = 0; i < 2; i++) /* each keeps one more in reserve than it holds */
    {
        stop(subscriptions[i]);
        as_publication_close(publications[i]);
    }
    UNTIL(&rig, count - 2 == rig.archive->uses->count[ASI_USE_RECORDS]);
    rig.clock_ahead_ns += 2 * RIG_SECOND;
    rig_turn_times(&rig, 10);
    start_ok(100 + count);
    for (int32_t i = 2; i < count; i++)
    {
        as_publication_close(publications[i]);
    }
    limit_files(0);
    close_world();
}

/* -- strangers ------------------------------------------------------------------------------------------------------------------- */

typedef struct stranger
{
    int fd;
    struct sockaddr_in to;
} stranger;

static stranger stranger_at(const char *address, int port)
{
    struct sockaddr_in from = { .sin_family = AF_INET };
    stranger made = { .fd = socket(AF_INET, SOCK_DGRAM, 0),
        .to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
    CHECK(made.fd >= 0 && 1 == inet_pton(AF_INET, address, &from.sin_addr) &&
        0 == bind(made.fd, (struct sockaddr *)&from, sizeof(from)));
    return made;
}

static void stranger_send(const stranger *from, const void *bytes, size_t length)
{
    CHECK((ssize_t)length == sendto(from->fd, bytes, length, 0, (const struct sockaddr *)&from->to, sizeof(from->to)));
}

static void forge_setup(const stranger *from, int32_t stream_id, int32_t session_id)
{
    const asi_setup_frame frame = { .prefix = { .frame_length = sizeof(frame), .type = ASI_FRAME_SETUP }, .session_id = session_id,
        .stream_id = stream_id, .initial_term_id = 7, .active_term_id = 7, .term_length = RIG_TERM_LENGTH, .mtu_length = 1408 };
    stranger_send(from, &frame, sizeof(frame));
}

static void forge_data(const stranger *from, int32_t stream_id, int32_t session_id)
{
    const struct
    {
        asi_frame_header header;
        uint8_t payload[32];
    } frame = { .header = { .frame_length = 64, .type = ASI_FRAME_DATA, .flags = ASI_FLAG_UNFRAGMENTED, .session_id = session_id,
        .stream_id = stream_id, .term_id = 7 } };
    stranger_send(from, &frame, sizeof(frame));
}

static int32_t image_count(void)
{
    int32_t count = 0;
    for (const asi_recording_subscription *at = rig.archive->recordings->subscriptions; NULL != at; at = at->next)
    {
        count += as_subscription_image_count(at->subscription);
    }
    return count;
}

static int64_t open_descriptors(void)
{
    int64_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(NULL != dir);
    while (NULL != readdir(dir))
    {
        count++;
    }
    closedir(dir);
    return count;
}

static int64_t catalog_count(void)
{
    int64_t count = 0;
    asi_catalog_record record;
    while (asi_catalog_find(rig.archive->catalog, count, &record))
    {
        count++;
    }
    return count;
}

/* Until the driver made images of them all; no more at once than a socket's buffer holds. */
static void flood(const stranger *from, int32_t stream_id, int32_t first, int32_t count)
{
    const int32_t before = image_count();
    for (int32_t i = 0; i < count; i++)
    {
        forge_setup(from, stream_id, first + i);
        UNTIL(&rig, image_count() > before + i - IN_FLIGHT);
    }
    UNTIL(&rig, before + count == image_count());
}

static char channel[64];

static int64_t record_network(int32_t stream_id, int port)
{
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:%d|term-length=64k", port);
    asi_codec_request request = start_of(channel, stream_id, false);
    request.source_location = AS_SOURCE_REMOTE;
    return raw_ask_ok(session, &request);
}

static as_publication *publish_network(int32_t stream_id)
{
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, stream_id, &publication), AS_OK);
    return publication;
}

/* A thousand SETUPs to a recorded endpoint, with 1,024 descriptors: recordings continue, others can start, and sessions open. */
static void setups_make_few_recordings(void)
{
    const struct rlimit few = { .rlim_cur = 1024, .rlim_max = 1024 };
    CHECK(0 == setrlimit(RLIMIT_NOFILE, &few));
    open_world("20");
    const int port = free_port();
    record_network(STREAM, port);
    as_publication *honest = publish_network(STREAM);
    int64_t end = publish(&rig, honest, 1000, 10);
    raw_await_signal(session, AS_SIGNAL_START, AS_NULL_VALUE);
    UNTIL(&rig, end == raw_position(session, ASI_CODEC_RECORDING_POSITION, 0));
    const int64_t descriptors = open_descriptors();

    const stranger attacker = stranger_at("127.0.0.2", port);
    flood(&attacker, STREAM, 1, 1000);
    CHECK_I64(rig.archive->uses->count[ASI_USE_RECORDS], 1 + UNBEGUN_MAX);
    CHECK_I64(catalog_count(), 1 + UNBEGUN_MAX);
    CHECK(open_descriptors() <= descriptors + UNBEGUN_MAX + 2); /* the time index of the honest one, and the socket here */

    end = publish(&rig, honest, 1000, 300); /* over two segments' ends */
    UNTIL(&rig, end == raw_position(session, ASI_CODEC_RECORDING_POSITION, 0));
    const int64_t recording_id = catalog_count();
    as_publication *second = publish_network(STREAM); /* recorded when it has something to say */
    end = publish(&rig, second, 1000, 10);
    UNTIL(&rig, recording_id < catalog_count());
    UNTIL(&rig, end == raw_position(session, ASI_CODEC_RECORDING_POSITION, recording_id));
    raw_session *login = raw_connect(&rig);
    raw_close(login);

    as_publication_close(honest);
    as_publication_close(second);
    close(attacker.fd);
    close_world();
}

/* Recordings to which no data came in time leave empty entries in the catalog, a bounded number of them. */
static void setups_again_and_again_make_few_entries(void)
{
    open_world("20");
    const int port = free_port();
    record_network(STREAM, port);
    const stranger attacker = stranger_at("127.0.0.2", port);
    flood(&attacker, STREAM, 1, 30);
    CHECK_I64(catalog_count(), 1 + UNBEGUN_MAX);
    for (asi_active_recording *at = rig.archive->recordings->active; NULL != at; at = at->next)
    {
        asi_store_release_bool(&at->session.is_aborted, true); /* as their images' end would, after ten seconds */
    }
    UNTIL(&rig, 0 == rig.archive->uses->count[ASI_USE_RECORDS]);
    flood(&attacker, STREAM, 100, 30);
    CHECK_I64(catalog_count(), 1 + UNBEGUN_MAX);
    rig.clock_ahead_ns += 2 * 60 * RIG_SECOND;
    UNTIL(&rig, 1 + UNBEGUN_MAX + 2 == catalog_count());
    forge_data(&attacker, STREAM, 120);
    UNTIL(&rig, 1 + UNBEGUN_MAX + 3 == catalog_count());
    close(attacker.fd);
    close_world();
}

/* Streams with data of one address leave room, where logins are required, for those of another. */
static void one_source_leaves_room(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.max.concurrent.recordings", "6");
    rig_set(&rig, "aeron.spark.archive.recordings.source.max", "3");
    rig_open_archive(&rig);
    session = raw_connect(&rig);
    const int port = free_port();
    record_network(STREAM, port);
    const stranger attacker = stranger_at("127.0.0.2", port);
    const stranger other = stranger_at("127.0.0.3", port);
    for (int32_t i = 0; i < 20; i++)
    {
        flood(&attacker, STREAM, i, 1);
        forge_data(&attacker, STREAM, i);
    }
    UNTIL(&rig, rig_has_logged(&rig, "max concurrent recordings of one source reached 3: "));
    CHECK_I64(rig.archive->uses->count[ASI_USE_RECORDS], 1 + 3);
    flood(&other, STREAM, 100, 1);
    forge_data(&other, STREAM, 100);
    UNTIL(&rig, 1 + 3 + 1 == rig.archive->uses->count[ASI_USE_RECORDS]);
    close(attacker.fd);
    close(other.fd);
    close_world();
}

/* SETUPs to the control endpoint until the driver makes no more images of them: another host still gets a session. */
static void a_flooded_control_endpoint_takes_sessions(void)
{
    images_unbegun_max = "60";
    rig_open(&rig);
    const int port = free_port();
    char control[64];
    char responses[64];
    snprintf(control, sizeof(control), "aeron:udp?endpoint=127.0.0.1:%d|term-length=64k", port);
    snprintf(responses, sizeof(responses), "aeron:udp?endpoint=127.0.0.1:%d", free_port());
    rig_set(&rig, "aeron.archive.control.channel", control);
    rig_open_archive(&rig);
    const stranger attacker = stranger_at("127.0.0.2", port);
    const as_subscription *at_control = rig.archive->requests->network;
    for (int32_t i = 0; i < 100; i++)
    {
        forge_setup(&attacker, RIG_CONTROL_STREAM, i);
    }
    UNTIL(&rig, 40 == as_subscription_image_count(at_control)); /* two thirds */
    session = calloc(1, sizeof(*session));
    CHECK(NULL != session);
    session->rig = &rig;
    CHECK_I64(as_client_add_subscription(rig.client, responses, 20, &session->responses), AS_OK);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, control, RIG_CONTROL_STREAM, &session->requests), AS_OK);
    CHECK_I64(as_fragment_assembler_open(raw_on_message, session, &session->assembler), AS_OK);
    raw_send_connect(session, ASI_CODEC_PROTOCOL_VERSION);
    CHECK_I64(raw_await(session, ASI_CODEC_CONTROL_RESPONSE, session->last_correlation_id)->code, ASI_CODEC_OK);
    close(attacker.fd);
    close_world();
}

int main(void)
{
    RUN(an_image_without_a_slot_waits);
    RUN(descriptors_bound_recordings);
    RUN(setups_make_few_recordings);
    RUN(setups_again_and_again_make_few_entries);
    RUN(one_source_leaves_room);
    RUN(a_flooded_control_endpoint_takes_sessions);
    return 0;
}
