/* Control messages of several clients over time, to an archive with logins: an input is a sequence of steps, so that what one
 * message leaves behind meets the next: connects and their challenges, requests of every kind under any session on any image,
 * repetitions on another one, clients that come, stop listening and go, streams that are recorded and end, and passing time.
 * Some know the password of a user who may do everything, so that handlers are reached; one client, `honest`, has connected
 * before and does nothing. After each step the archive's sessions are looked at; at the end it must answer the honest client,
 * get rid of all that is not accepted, and close.
 *
 * Driver, archive and clients run in this thread, by a clock of the target's own and over a network in memory: an input is the
 * same run each time, but for the kernel's random numbers in challenges and tokens. Each has a world of its own. */
#define _GNU_SOURCE /* memmem */
#include <sys/stat.h>

#include "clients.h"
#include "driver/driver.h"
#include "fuzz.h"
#include "net/fake_net.h"
#include "server/auth_users.h"
#include "server/recording.h"
#include "server/server.h"
#include "server/session.h"
#include "wire/command.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define START_NS (1700000000 * SECOND)
#define CONNECTIONS 4
#define STREAMS 4
#define HONEST CONNECTIONS           /* connection of the honest client */
#define RESPONSE_PORT 24500
#define STEPS_MAX 128
#define CYCLES_MAX 24
#define UNDECIDED_MAX 6
#define MESSAGE_CAPACITY 2048
#define KNOWN_SESSIONS 8
#define ANSWER_CYCLES 200

static const char CONTROL[] = "aeron:udp?endpoint=127.0.0.1:24400|term-length=64k";
static const uint8_t SALT[] = "saltsalt";

typedef struct connection
{
    as_publication *requests;
    as_subscription *responses;
    bool is_local;
    bool is_deaf;
} connection;

typedef struct world
{
    char dir[SCRATCH_CAPACITY];
    char aeron_dir[SCRATCH_CAPACITY + 16];
    char archive_dir[SCRATCH_CAPACITY + 16];
    int64_t now_ns;
    asi_clock clock;
    fake_net net;
    as_driver *driver;
    as_client *client;
    as_archive_config *config;
    as_archive *archive;
    connection connections[CONNECTIONS + 1];
    as_fragment_assembler *assembler;
    as_publication *streams[STREAMS];
    int64_t sessions[KNOWN_SESSIONS];  /* heard of, the newest last */
    int64_t heard;
    int64_t honest_session;
    int64_t asked;                     /* correlation id of the honest client's request; AS_NULL_VALUE: it is answered */
    char challenge[AS_ARCHIVE_AUTH_BYTES_MAX];
    uint8_t last[MESSAGE_CAPACITY];    /* message sent */
    int64_t last_length;
    int64_t correlation_id;
} world;

/* -- world ------------------------------------------------------------------------------------------------------------------------ */

static int64_t nano_time(void *context) { return ((const world *)context)->now_ns; }
static int64_t epoch_ns(void *context) { return nano_time(context) + START_NS; }
static int64_t epoch_ms(void *context) { return epoch_ns(context) / MS; }

static as_result resolve(void *context, const char *name, const char *param, bool is_again, asi_address *address)
{
    (void)context;
    (void)is_again;
    if (0 != strcmp(name, "localhost"))
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST, "unknown host %s in %s", name, param);
    }
    *address = fake_address("127.0.0.1", 0);
    return AS_OK;
}

static void spin(void *context)
{
    world *all = context;
    all->now_ns += MS / 50;
    as_driver_do_work(all->driver);
}

static as_result open_client(void *context, const as_client_options *wanted, as_client **client)
{
    world *all = context;
    as_client_options options = *wanted;
    options.driver_invoker = spin;
    options.driver_invoker_context = all;
    return clients_open(&options, &all->clock, client);
}

static void open_driver(world *all)
{
    asi_driver_settings settings;
    asi_driver_settings_init(&settings);
    snprintf(settings.aeron_dir, sizeof(settings.aeron_dir), "%s", all->aeron_dir);
    settings.threading_mode = ASI_THREADING_INVOKER;
    settings.perform_storage_checks = false;
    settings.ipc_term_buffer_length = AS_TERM_MIN_LENGTH;
    settings.term_buffer_length = AS_TERM_MIN_LENGTH;
    settings.term_buffer_sparse_file = true;
    settings.to_driver_buffer_length = 64 * 1024 + ASI_RING_TRAILER_LENGTH;
    settings.to_clients_buffer_length = 64 * 1024 + ASI_BROADCAST_TRAILER_LENGTH;
    settings.counters_values_buffer_length = 256 * 1024;
    settings.error_buffer_length = 64 * 1024;
    settings.loss_report_length = 64 * 1024;
    settings.publication_linger_timeout_ns = 100 * MS;
    asi_driver_dependencies dependencies = { .clock = all->clock, .ops = fake_net_ops(&all->net), .resolver = { .resolve = resolve } };
    asi_rand_seed(&dependencies.rand, 4711);
    CHECK_I64(asi_driver_open_with(&settings, &dependencies, NULL, NULL, &all->driver), AS_OK);
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = all->aeron_dir;
    options.use_invoker = true;
    CHECK_I64(open_client(all, &options, &all->client), AS_OK);
}

static void client_key(const char *password, uint8_t key[ASI_SHA256_LENGTH], uint8_t stored[ASI_SHA256_LENGTH])
{
    asi_pbkdf2 derivation;
    asi_pbkdf2_start(&derivation, password, (int64_t)strlen(password), SALT, sizeof(SALT) - 1, ASI_AUTH_ITERATIONS_MIN);
    CHECK(asi_pbkdf2_step(&derivation, ASI_AUTH_ITERATIONS_MIN));
    asi_hmac_sha256(derivation.key, sizeof(derivation.key), "Client Key", 10, key);
    asi_sha256_of(key, ASI_SHA256_LENGTH, stored);
}

static void write_users(const char *path)
{
    static const char *const USERS[][3] = { { "alice", "a", "all" }, { "bob", "b", "all" }, { "carol", "c", "query" } };
    FILE *file = fopen(path, "w");
    CHECK(NULL != file && 0 == fchmod(fileno(file), 0600));
    for (int i = 0; i < 3; i++)
    {
        uint8_t key[ASI_SHA256_LENGTH];
        uint8_t stored[ASI_SHA256_LENGTH];
        char salt[2 * sizeof(SALT)];
        char text[2 * ASI_SHA256_LENGTH + 1];
        client_key(USERS[i][1], key, stored);
        asi_auth_format_hex(salt, SALT, sizeof(SALT) - 1);
        asi_auth_format_hex(text, stored, sizeof(stored));
        fprintf(file, "%s scram-sha-256$%d$%s$%s %s\n", USERS[i][0], ASI_AUTH_ITERATIONS_MIN, salt, text, USERS[i][2]);
    }
    CHECK(0 == fclose(file));
}

static void set(world *all, const char *name, const char *value) { CHECK_I64(as_archive_config_set(all->config, name, value), AS_OK); }

static void open_archive(world *all)
{
    char users[SCRATCH_CAPACITY + 16];
    snprintf(users, sizeof(users), "%s/users", all->dir);
    write_users(users);
    CHECK_I64(as_archive_config_open(&all->config), AS_OK);
    set(all, "aeron.dir", all->aeron_dir);
    set(all, "aeron.archive.dir", all->archive_dir);
    set(all, "aeron.archive.id", "42");
    set(all, "aeron.archive.threading.mode", "INVOKER");
    set(all, "aeron.archive.segment.file.length", "64k");
    set(all, "aeron.archive.low.storage.space.threshold", "0");
    set(all, "aeron.archive.control.channel", CONTROL);
    set(all, "aeron.archive.replication.channel", "aeron:udp?endpoint=127.0.0.1:0");
    set(all, "aeron.archive.connect.timeout", "1s");
    set(all, "aeron.archive.max.concurrent.recordings", "8");
    set(all, "aeron.archive.max.concurrent.replays", "8");
    set(all, "aeron.archive.catalog.capacity", "4096");
    set(all, "aeron.spark.archive.undecided.sessions.max", "6");
    set(all, "aeron.spark.archive.max.control.sessions", "16");
    set(all, "aeron.spark.archive.credentials.file", users);
    asi_rand rand;
    asi_rand_seed(&rand, 4712);
    const asi_archive_dependencies dependencies = { .clock = &all->clock, .rand = &rand, .open_client = open_client,
        .open_client_context = all, .boot = 1 };
    CHECK_I64(asi_archive_open_on(all->config, &dependencies, &all->archive), AS_OK);
    CHECK_I64(as_archive_start(all->archive), AS_OK);
}

/* -- connections ------------------------------------------------------------------------------------------------------------ */

static void response_channel(const world *all, int32_t at, char *channel, size_t capacity)
{
    static const char *const UDP = "aeron:udp?endpoint=127.0.0.1:%d|term-length=64k";
    snprintf(channel, capacity, all->connections[at].is_local ? "aeron:ipc?term-length=64k" : UDP,
        RESPONSE_PORT + at);
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)header;
    world *all = context;
    asi_codec_event event;
    if (AS_OK != asi_codec_event_decode_untrusted(data, length, &event))
    {
        return;
    }
    if (ASI_CODEC_CHALLENGE == event.template_id)
    {
        snprintf(all->challenge, sizeof(all->challenge), "%.*s", (int)event.encoded_challenge.length, event.encoded_challenge.data);
    }
    if (event.control_session_id == all->honest_session)
    {
        /* Others can ask in its name, and their answers come here, too. */
        all->asked = event.correlation_id == all->asked ? AS_NULL_VALUE : all->asked;
    }
    else if (all->sessions[(all->heard + KNOWN_SESSIONS - 1) % KNOWN_SESSIONS] != event.control_session_id)
    {
        all->sessions[all->heard++ % KNOWN_SESSIONS] = event.control_session_id;
    }
}

static void open_connection(world *all, int32_t at, bool is_local)
{
    connection *opened = &all->connections[at];
    char channel[128];
    *opened = (connection){ .is_local = is_local };
    response_channel(all, at, channel, sizeof(channel));
    CHECK_I64(as_client_add_subscription(all->client, channel, 20 + at, &opened->responses), AS_OK);
    CHECK_I64(as_client_add_exclusive_publication(
        all->client, is_local ? "aeron:ipc?term-length=64k" : CONTROL, 10, &opened->requests), AS_OK);
}

static void close_connection(connection *closed)
{
    as_publication_close(closed->requests);
    as_subscription_close(closed->responses);
    *closed = (connection){ 0 };
}

static void check_sessions(const world *all)
{
    int64_t undecided = 0;
    for (const asi_control_session *at = all->archive->sessions->first; NULL != at; at = at->next)
    {
        const bool is_accepted = ASI_CONTROL_AUTHENTICATED == at->state || ASI_CONTROL_ACTIVE == at->state;
        const bool is_current = 1 == ASI_CODEC_VERSION_MAJOR(at->client_version);
        CHECK(!is_accepted || AS_AUTH_ACCEPT == at->decision);
        if (is_current && AS_AUTH_WAIT == at->decision && NULL != at->publication)
        {
            as_publication_constants constants;
            as_publication_get_constants(at->publication, &constants);
            CHECK(constants.term_length <= AS_TERM_MIN_LENGTH);
        }
        undecided += is_accepted || ASI_CONTROL_DONE == at->state ? 0 : 1;
    }
    CHECK(undecided <= 2 * UNDECIDED_MAX); /* of two sources */
    CHECK(all->archive->uses->count[ASI_USE_RECORDS] <= 8 && all->archive->uses->count[ASI_USE_REPLAYS] <= 8);
}

static void turn(world *all, int64_t duration_ns)
{
    all->now_ns += duration_ns;
    as_driver_do_work(all->driver);
    CHECK(as_archive_do_work(all->archive) >= 0);
    check_sessions(all);
    as_client_invoke(all->client);
    for (int32_t i = 0; i <= CONNECTIONS; i++)
    {
        if (NULL != all->connections[i].responses && !all->connections[i].is_deaf)
        {
            (void)!as_subscription_poll(all->connections[i].responses, as_fragment_assembler_on_fragment, all->assembler, 10);
        }
    }
}

/* -- messages --------------------------------------------------------------------------------------------------------------------- */

static void offer(const world *all, int32_t at, const uint8_t *bytes, int64_t length)
{
    if (NULL != all->connections[at].requests)
    {
        (void)!as_publication_offer(all->connections[at].requests, bytes, length);
    }
}

static void send_by(world *all, int32_t at, const asi_codec_request *request)
{
    if (AS_OK == asi_codec_request_encode(request, all->last, sizeof(all->last), &all->last_length))
    {
        offer(all, at, all->last, all->last_length);
    }
}

static int64_t choose_session(const world *all, uint8_t choice)
{
    return choice < KNOWN_SESSIONS ? all->sessions[choice] :
        choice < 12 ? all->archive->sessions->next_id - (choice - KNOWN_SESSIONS) - 1 :
        13 == choice ? all->honest_session : choice;
}

/* 0: the connection's own. */
static void choose_channel(const world *all, int32_t at, fuzz_input *input, char *channel, size_t capacity)
{
    static const char *const CHANNELS[] = { "aeron:ipc", "aeron:ipc?term-length=64k|mtu=1408", "aeron:udp?endpoint=127.0.0.1:24600",
        "aeron:udp?endpoint=localhost:24601|sparse=false|term-length=128k", "aeron:udp?control=127.0.0.1:24602|control-mode=dynamic",
        "aeron:udp?control=127.0.0.1:24603|control-mode=response", "aeron-spy:aeron:udp?endpoint=127.0.0.1:24600",
        "aeron:udp?control-mode=manual", "aeron:ipc?session-id=7", "aeron:udp?endpoint=127.0.0.1:24400", "aeron:udp", "aeron:", "" };
    const uint8_t choice = fuzz_u8(input);
    if (0 == choice % 16)
    {
        response_channel(all, at, channel, capacity);
    }
    else if (15 == choice % 16)
    {
        int64_t length;
        uint8_t *bytes = fuzz_take(input, fuzz_u8(input), &length);
        const bool is_greedy = NULL != memmem(bytes, (size_t)length, "term-length", 11) || NULL != memmem(bytes, (size_t)length, "sparse", 6);
        snprintf(channel, capacity, "%.*s", is_greedy ? 0 : (int)length, (const char *)bytes);
        free(bytes);
    }
    else
    {
        snprintf(channel, capacity, "%s", CHANNELS[(choice % 16 - 1) % (int)(sizeof(CHANNELS) / sizeof(CHANNELS[0]))]);
    }
}

static void step_connect(world *all, fuzz_input *input)
{
    static const char *const CREDENTIALS[] = { "bob:b", "bob:wrong", "carol:c", "alice", "bob", "nobody", "", ":", "alice:wrong", "x:" };
    const int32_t at = fuzz_u8(input) % CONNECTIONS;
    const uint8_t choice = fuzz_u8(input);
    char channel[512];
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_AUTH_CONNECT);
    choose_channel(all, at, input, channel, sizeof(channel));
    request.channel = asi_codec_text(channel);
    request.correlation_id = all->correlation_id++;
    request.stream_id = 0 == (choice & 32) ? 20 + at : fuzz_u8(input);
    request.client_version = 3 == choice >> 6 ? fuzz_u16(input) : ASI_CODEC_PROTOCOL_VERSION;
    request.encoded_credentials = asi_codec_text(CREDENTIALS[(choice & 31) % (int)(sizeof(CREDENTIALS) / sizeof(CREDENTIALS[0]))]);
    send_by(all, at, &request);
}

/* bob's, to the challenge that came last: right or wrong. */
static void step_answer(world *all, fuzz_input *input)
{
    const int32_t at = fuzz_u8(input) % CONNECTIONS;
    const uint8_t choice = fuzz_u8(input);
    uint8_t key[ASI_SHA256_LENGTH];
    uint8_t stored[ASI_SHA256_LENGTH];
    uint8_t signature[ASI_SHA256_LENGTH];
    char answer[2 * ASI_SHA256_LENGTH + 1];
    asi_codec_request request;
    client_key(0 == choice >> 4 ? "b" : "wrong", key, stored);
    asi_hmac_sha256(stored, sizeof(stored), all->challenge, (int64_t)strlen(all->challenge), signature);
    for (int i = 0; i < ASI_SHA256_LENGTH; i++)
    {
        key[i] ^= signature[i];
    }
    asi_auth_format_hex(answer, key, sizeof(key));
    asi_codec_request_init(&request, ASI_CODEC_CHALLENGE_RESPONSE);
    request.control_session_id = choose_session(all, choice & 15);
    request.correlation_id = all->correlation_id++;
    request.encoded_credentials = asi_codec_text(answer);
    send_by(all, at, &request);
}

static void step_request(world *all, fuzz_input *input)
{
    const int32_t at = fuzz_u8(input) % CONNECTIONS;
    char channel[512];
    char other[512];
    asi_codec_request request;
    asi_codec_request_init(&request, fuzz_u8(input) % 108);
    request.control_session_id = choose_session(all, fuzz_u8(input) & 15);
    request.correlation_id = all->correlation_id++;
    request.recording_id = (int8_t)fuzz_u8(input);
    request.dst_recording_id = (int8_t)fuzz_u8(input);
    request.position = (int64_t)fuzz_number(input, 4) * ((request.recording_id & 1) ? 65536 : 1);
    request.stop_position = request.position + (int16_t)fuzz_u16(input);
    request.length = (int64_t)fuzz_number(input, 3) - 1;
    request.stream_id = 1000 + fuzz_u8(input) % (STREAMS + 1);
    const uint8_t flags = fuzz_u8(input);
    request.source_location = flags & 1;
    request.auto_stop = flags >> 1 & 1;
    request.apply_stream_id = flags >> 2 & 1;
    request.record_count = flags;
    request.pseudo_index = flags >> 4;
    const uint8_t number = fuzz_u8(input);
    request.subscription_id = NULL != all->archive->recordings->subscriptions && 0 != number ? all->archive->recordings->subscriptions->id : number;
    request.replay_session_id = request.replication_id = request.replay_token = request.limit_counter_id = number;
    choose_channel(all, at, input, channel, sizeof(channel));
    request.channel = asi_codec_text(channel);
    if (0 != (flags & 128))
    {
        choose_channel(all, at, input, other, sizeof(other));
        request.live_destination = request.replication_channel = asi_codec_text(other);
    }
    send_by(all, at, &request);
}

/* The last message, as it was or damaged, or any bytes. */
static void step_bytes(world *all, fuzz_input *input)
{
    const int32_t at = fuzz_u8(input) % CONNECTIONS;
    const uint8_t how = fuzz_u8(input);
    uint8_t changed[MESSAGE_CAPACITY];
    int64_t length = all->last_length;
    memcpy(changed, all->last, sizeof(changed));
    if (0 == how % 4)
    {
        uint8_t *bytes = fuzz_take(input, how, &length);
        memcpy(changed, bytes, (size_t)length);
        free(bytes);
    }
    else if (1 == how % 4 && length > 0)
    {
        changed[fuzz_u16(input) % length] = fuzz_u8(input);
    }
    else if (2 == how % 4)
    {
        length = length > 0 ? fuzz_u16(input) % length : 0;
    }
    offer(all, at, changed, length);
}

static void step_door(world *all, fuzz_input *input)
{
    const uint8_t how = fuzz_u8(input);
    connection *at = &all->connections[how % CONNECTIONS];
    if (NULL == at->requests)
    {
        open_connection(all, how % CONNECTIONS, 0 != (how & 4));
    }
    else if (0 != (how & 8))
    {
        close_connection(at);
    }
    else
    {
        at->is_deaf = !at->is_deaf;
    }
}

static void step_stream(world *all, fuzz_input *input)
{
    const uint8_t how = fuzz_u8(input);
    const int32_t at = how % STREAMS;
    uint8_t message[4096] = { 0 };
    if (NULL == all->streams[at])
    {
        CHECK_I64(as_client_add_exclusive_publication(all->client, 0 == (how & 4) ? "aeron:ipc?term-length=64k|mtu=1408" :
            "aeron:udp?endpoint=127.0.0.1:24600|term-length=64k", 1000 + at, &all->streams[at]), AS_OK);
    }
    else if (0 != (how & 8))
    {
        as_publication_close(all->streams[at]);
        all->streams[at] = NULL;
        return;
    }
    for (int i = 0; i <= how >> 4; i++)
    {
        (void)!as_publication_offer(all->streams[at], message, fuzz_u16(input) % (int64_t)sizeof(message));
    }
}

static void step(world *all, fuzz_input *input)
{
    switch (fuzz_u8(input) % 9)
    {
        case 0: step_connect(all, input); break;
        case 1: step_answer(all, input); break;
        case 2:
        case 3: step_request(all, input); break;
        case 4: step_bytes(all, input); break;
        case 5: step_door(all, input); break;
        case 6: step_stream(all, input); break;
        default:
        {
            const int64_t duration_ns = fuzz_u8(input) * MS;
            for (int cycles = 1 + fuzz_u8(input) % CYCLES_MAX; cycles > 0; cycles--)
            {
                turn(all, duration_ns);
            }
            break;
        }
    }
    turn(all, MS);
}

/* -- the honest client -------------------------------------------------------------------------------------------------------------- */

static void ask_honestly(world *all, asi_codec_request *request)
{
    request->control_session_id = all->honest_session;
    request->correlation_id = all->asked = INT64_C(1) << 40 | all->correlation_id++;
    send_by(all, HONEST, request);
    for (int i = 0; AS_NULL_VALUE != all->asked; i++)
    {
        CHECK(i < ANSWER_CYCLES);
        turn(all, MS);
    }
}

static void log_in_honestly(world *all)
{
    char channel[128];
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_AUTH_CONNECT);
    response_channel(all, HONEST, channel, sizeof(channel));
    request.channel = asi_codec_text(channel);
    request.stream_id = 20 + HONEST;
    request.client_version = ASI_CODEC_PROTOCOL_VERSION;
    request.encoded_credentials = asi_codec_text("alice:a");
    for (int i = 0; !as_publication_is_connected(all->connections[HONEST].requests); i++)
    {
        CHECK(i < ANSWER_CYCLES);
        turn(all, MS);
    }
    all->honest_session = all->archive->sessions->next_id;
    ask_honestly(all, &request);
    asi_codec_request_init(&request, ASI_CODEC_ARCHIVE_ID);
    ask_honestly(all, &request);
}

static void open_world(world *all)
{
    memset(all, 0, sizeof(*all));
    all->now_ns = SECOND;
    all->clock = (asi_clock){ .nano_time = nano_time, .epoch_ms = epoch_ms, .epoch_ns = epoch_ns, .context = all };
    all->asked = all->honest_session = AS_NULL_VALUE;
    scratch_create(all->dir);
    snprintf(all->aeron_dir, sizeof(all->aeron_dir), "%s/aeron", all->dir);
    snprintf(all->archive_dir, sizeof(all->archive_dir), "%s/archive", all->dir);
    CHECK_I64(as_fragment_assembler_open(on_message, all, &all->assembler), AS_OK);
    open_driver(all);
    open_archive(all);
    open_connection(all, HONEST, true);
    open_connection(all, 0, true);
    open_connection(all, 1, false);
    log_in_honestly(all);
}

static void close_world(world *all)
{
    for (int32_t i = 0; i <= CONNECTIONS; i++)
    {
        if (NULL != all->connections[i].requests)
        {
            close_connection(&all->connections[i]);
        }
    }
    as_archive_close(all->archive);
    as_client_close(all->client); /* with its publications */
    as_fragment_assembler_close(all->assembler);
    as_driver_close(all->driver);
    as_archive_config_close(all->config);
    scratch_delete(all->dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world all;
    fuzz_input input = { .at = data, .left = (int64_t)size };
    open_world(&all);
    for (int i = 0; i < STEPS_MAX && input.left > 0; i++)
    {
        step(&all, &input);
    }
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_ARCHIVE_ID);
    ask_honestly(&all, &request);
    for (int i = 0; i < 25; i++)
    {
        turn(&all, 100 * MS);
    }
    for (const asi_control_session *at = all.archive->sessions->first; NULL != at; at = at->next)
    {
        CHECK(ASI_CONTROL_AUTHENTICATED == at->state || ASI_CONTROL_ACTIVE == at->state || ASI_CONTROL_DONE == at->state);
    }
    asi_codec_request_init(&request, ASI_CODEC_ARCHIVE_ID);
    ask_honestly(&all, &request);
    close_world(&all);
    return 0;
}
