/* Goal: the archive client asks for the right things, understands every kind of answer, and survives an archive that is late,
 * rude, old, of another version or gone. Method: a scripted archive made of the codec and a real driver, all in one thread:
 * driver, archive and client run by invokers, so that nothing depends on timing but the timeouts that are tested.
 * Spec: 07 §13, 11 C1, D30. */
#include <unistd.h>

#include "aeron_spark/as_archive.h"
#include "aeron_spark/as_driver.h"
#include "base/bits.h"
#include "check.h"
#include "client/archive_client.h"
#include "codec/event.h"
#include "codec/request.h"

#define SESSION_ID 4711
#define ARCHIVE_ID 42
#define SECOND_NS INT64_C(1000000000)

typedef struct fake_archive
{
    as_driver *driver;
    as_client *aeron;
    as_subscription *requests;
    as_fragment_assembler *assembler;
    as_publication *responses;
    bool is_closed_by_client;
    int keepalives;
    /* How to behave. */
    int32_t protocol_version;
    bool is_silent;        /* to anything but the connect sequence */
    bool with_noise;       /* messages around each answer that are not for the awaited request */
    bool challenges;
    const char *reject_connect;
    const char *error;     /* instead of an answer */
    int32_t error_code;
    int32_t code;          /* of answers */
    int64_t relevant_id;
    int32_t descriptors;   /* that listings give before they say UNKNOWN, if asked for more */
    /* What was asked last. */
    asi_codec_request last;
    char last_channel[AS_CHANNEL_MAX_LENGTH + 1];
} fake_archive;

static char aeron_dir[64];
static fake_archive fake;

static void send_bytes(const uint8_t *bytes, int64_t length)
{
    while (as_publication_offer(fake.responses, bytes, length) < 0)
    {
        as_driver_do_work(fake.driver);
        as_client_invoke(fake.aeron);
    }
}

static void send_event(const asi_codec_event *event, int64_t trailing_bytes)
{
    uint8_t bytes[8192];
    int64_t length;
    memset(bytes, 0xEE, sizeof(bytes));
    CHECK_I64(asi_codec_event_encode(event, bytes, sizeof(bytes), &length), AS_OK);
    send_bytes(bytes, length + trailing_bytes);
}

static void send_response(int64_t session_id, int64_t correlation_id, int32_t code, int64_t relevant_id, const char *text)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_CONTROL_RESPONSE);
    event.control_session_id = session_id;
    event.correlation_id = correlation_id;
    event.code = code;
    event.relevant_id = relevant_id;
    event.protocol_version = fake.protocol_version;
    event.error_message = asi_codec_text(text);
    send_event(&event, 0);
}

static void send_signal(int64_t position)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_RECORDING_SIGNAL);
    event.control_session_id = SESSION_ID;
    event.correlation_id = 5;
    event.recording_id = 6;
    event.subscription_id = 7;
    event.position = position;
    event.signal = AS_SIGNAL_EXTEND;
    send_event(&event, 0);
}

static void send_noise(int64_t correlation_id)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_PING);
    event.control_session_id = SESSION_ID;
    send_event(&event, 0);
    send_response(SESSION_ID, correlation_id - 1000, ASI_CODEC_OK, 1, NULL);          /* a late copy */
    send_response(SESSION_ID + 1, correlation_id, ASI_CODEC_OK, 2, NULL);             /* another session */
    send_response(SESSION_ID, 99, ASI_CODEC_ERROR, ASI_CODEC_E_STORAGE_SPACE, "disk full later");
    uint8_t unknown[16] = { 8, 0, 0xE7, 3, 101, 0, 13, 0 };                           /* template 999 */
    send_bytes(unknown, sizeof(unknown));
    send_signal(1024);
}

static void copy_channel(char *to, const asi_codec_request *request)
{
    CHECK(request->channel.length <= AS_CHANNEL_MAX_LENGTH);
    if (request->channel.length > 0)
    {
        memcpy(to, request->channel.data, (size_t)request->channel.length);
    }
    to[request->channel.length] = '\0';
}

static void on_connect(const asi_codec_request *request)
{
    char channel[AS_CHANNEL_MAX_LENGTH + 1];
    copy_channel(channel, request);
    CHECK_I64(as_client_add_exclusive_publication(fake.aeron, channel, request->stream_id, &fake.responses), AS_OK);
    if (fake.challenges)
    {
        asi_codec_event event;
        asi_codec_event_init(&event, ASI_CODEC_CHALLENGE);
        event.control_session_id = SESSION_ID;
        event.correlation_id = request->correlation_id;
        event.encoded_challenge = asi_codec_text("who?");
        send_event(&event, 0);
        return;
    }
    const bool rejects = NULL != fake.reject_connect;
    for (int copy = 0; copy < 2; copy++)
    {
        send_response(SESSION_ID, request->correlation_id, rejects ? ASI_CODEC_ERROR : ASI_CODEC_OK,
            rejects ? ASI_CODEC_E_AUTHENTICATION_REJECTED : SESSION_ID, fake.reject_connect);
    }
}

static void give_descriptors(const asi_codec_request *request)
{
    const bool is_subscription = ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS == request->template_id;
    const int32_t asked = ASI_CODEC_LIST_RECORDING == request->template_id ? 1 : request->record_count;
    for (int32_t i = 0; i < fake.descriptors && i < asked; i++)
    {
        asi_codec_event event;
        asi_codec_event_init(
            &event, is_subscription ? ASI_CODEC_RECORDING_SUBSCRIPTION_DESCRIPTOR : ASI_CODEC_RECORDING_DESCRIPTOR);
        event.control_session_id = SESSION_ID;
        event.correlation_id = request->correlation_id;
        event.recording_id = i;
        event.subscription_id = 100 + i;
        event.start_position = i * 32;
        event.stream_id = 1001;
        event.stripped_channel = asi_codec_text("aeron:ipc");
        event.original_channel = asi_codec_text("aeron:ipc?alias=x");
        event.source_identity = asi_codec_text(i % 2 ? "aeron:ipc" : "");
        send_event(&event, is_subscription ? 0 : 9 + i);
    }
    if (fake.descriptors < asked)
    {
        send_response(SESSION_ID, request->correlation_id,
            is_subscription ? ASI_CODEC_SUBSCRIPTION_UNKNOWN : ASI_CODEC_RECORDING_UNKNOWN, fake.descriptors, NULL);
    }
}

static void on_call(const asi_codec_request *request)
{
    fake.last = *request;
    copy_channel(fake.last_channel, request);
    if (fake.is_silent)
    {
        return;
    }
    if (fake.with_noise)
    {
        send_noise(request->correlation_id);
    }
    switch (request->template_id)
    {
        case ASI_CODEC_LIST_RECORDINGS:
        case ASI_CODEC_LIST_RECORDINGS_FOR_URI:
        case ASI_CODEC_LIST_RECORDING:
        case ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS:
            give_descriptors(request);
            break;
        default:
            if (NULL != fake.error)
            {
                send_response(SESSION_ID, request->correlation_id, ASI_CODEC_ERROR, fake.error_code, fake.error);
            }
            else
            {
                send_response(SESSION_ID, request->correlation_id, fake.code, fake.relevant_id, NULL);
            }
    }
}

static void on_request(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)context;
    (void)header;
    asi_codec_request request;
    CHECK_I64(asi_codec_request_decode_untrusted(data, length, &request), AS_OK);
    if (ASI_CODEC_AUTH_CONNECT == request.template_id)
    {
        CHECK_I64(request.client_version, ASI_CODEC_PROTOCOL_VERSION);
        on_connect(&request);
        return;
    }
    CHECK_I64(request.control_session_id, SESSION_ID);
    switch (request.template_id)
    {
        case ASI_CODEC_ARCHIVE_ID:
            send_response(SESSION_ID, request.correlation_id, ASI_CODEC_OK, ARCHIVE_ID, NULL);
            break;
        case ASI_CODEC_KEEP_ALIVE:
            fake.keepalives++;
            break;
        case ASI_CODEC_CLOSE_SESSION:
            fake.is_closed_by_client = true;
            break;
        default:
            on_call(&request);
    }
}

static void run_all(void *context)
{
    (void)context;
    as_driver_do_work(fake.driver);
    if (NULL != fake.aeron)
    {
        as_client_invoke(fake.aeron);
    }
    if (NULL != fake.requests)
    {
        CHECK(as_subscription_poll(fake.requests, as_fragment_assembler_on_fragment, fake.assembler, 10) >= 0);
    }
}

static void run_driver(void *context)
{
    (void)context;
    as_driver_do_work(fake.driver);
}

static as_client *open_aeron(as_on_event driver_invoker)
{
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = aeron_dir;
    options.use_invoker = true;
    options.driver_invoker = driver_invoker;
    as_client *client = NULL;
    CHECK_I64(as_client_open(&options, &client), AS_OK);
    return client;
}

static void open_fake(void)
{
    memset(&fake, 0, sizeof(fake));
    fake.protocol_version = ASI_CODEC_PROTOCOL_VERSION;
    snprintf(aeron_dir, sizeof(aeron_dir), "/dev/shm/as-test-session-%d", (int)getpid());
    as_driver_config *config = NULL;
    CHECK_I64(as_driver_config_open(&config), AS_OK);
    CHECK_I64(as_driver_config_set(config, "aeron.dir", aeron_dir), AS_OK);
    CHECK_I64(as_driver_config_set(config, "aeron.threading.mode", "INVOKER"), AS_OK);
    CHECK_I64(as_driver_config_set(config, "aeron.dir.delete.on.start", "true"), AS_OK);
    CHECK_I64(as_driver_config_set(config, "aeron.dir.delete.on.shutdown", "true"), AS_OK);
    CHECK_I64(as_driver_open(config, NULL, NULL, &fake.driver), AS_OK);
    as_driver_config_close(config);
    fake.aeron = open_aeron(run_driver);
    CHECK_I64(as_client_add_subscription(fake.aeron, "aeron:ipc", 10, &fake.requests), AS_OK);
    CHECK_I64(as_fragment_assembler_open(on_request, NULL, &fake.assembler), AS_OK);
}

static void close_fake(void)
{
    as_fragment_assembler_close(fake.assembler);
    as_client_close(fake.aeron);
    as_driver_close(fake.driver);
}

static as_archive_client *client;
static as_client *client_aeron;
static int signals;
static as_signal last_signal;
static as_result result_inside_handler;
static as_archive_call *call_inside_handler; /* polled by the handler of signals */
static as_result call_result_inside_handler;
static int64_t ahead_ns; /* of the client's clock */

static int64_t client_nano_time(void *context)
{
    (void)context;
    const asi_clock clock = asi_clock_system();
    return asi_clock_ns(&clock) + ahead_ns;
}

static int64_t client_epoch_ms(void *context)
{
    (void)context;
    const asi_clock clock = asi_clock_system();
    return asi_clock_ms(&clock);
}

static void on_signal(void *context, const as_signal *signal)
{
    CHECK(&signals == context);
    signals++;
    last_signal = *signal;
    int64_t position;
    result_inside_handler = as_archive_client_start_position(client, 0, &position);
    if (NULL != call_inside_handler)
    {
        call_result_inside_handler = as_archive_call_poll(call_inside_handler, &position);
    }
    as_archive_client_close(client); /* refused, harmless */
}

static as_result try_open(int64_t timeout_ns)
{
    signals = 0;
    client = NULL;
    client_aeron = open_aeron(run_all);
    as_archive_client_options options;
    as_archive_client_options_init(&options);
    options.client = client_aeron;
    options.message_timeout_ns = timeout_ns;
    options.client_info = "name=test";
    options.on_signal = on_signal;
    options.on_signal_context = &signals;
    options.invoker = run_all;
    const asi_clock clock = { .nano_time = client_nano_time, .epoch_ms = client_epoch_ms };
    ahead_ns = 0;
    return asi_archive_client_open_with(&options, &clock, &client);
}

static void open_both(void)
{
    open_fake();
    CHECK_I64(try_open(10 * SECOND_NS), AS_OK);
    fake.with_noise = true;
}

static void close_both(void)
{
    as_archive_client_close(client);
    for (int i = 0; NULL != client && !fake.is_closed_by_client && i < 1000; i++)
    {
        run_all(NULL);
    }
    CHECK(NULL == client || fake.is_closed_by_client);
    as_client_close(client_aeron);
    close_fake();
}

static void connects_and_closes(void)
{
    open_both();
    CHECK_I64(as_archive_client_control_session_id(client), SESSION_ID);
    CHECK_I64(as_archive_client_archive_id(client), ARCHIVE_ID);
    CHECK(client_aeron == as_archive_client_aeron(client));
    CHECK_I64(as_archive_client_keepalive(client), AS_OK);
    for (int i = 0; fake.keepalives < 2 && i < 1000; i++)
    {
        run_all(NULL);
    }
    CHECK_I64(fake.keepalives, 2);
    as_publication_constants constants;
    as_publication_get_constants(fake.responses, &constants);
    CHECK_I64(constants.term_length, 64 * 1024);
    close_both();
}

static void numbers_are_asked_and_answered(void)
{
    open_both();
    fake.relevant_id = 123456;
    int64_t value = 0;
    CHECK_I64(as_archive_client_start_recording(client, "aeron:ipc?alias=a", 7, AS_SOURCE_REMOTE, true, &value), AS_OK);
    CHECK_I64(value, 123456);
    CHECK_I64(fake.last.template_id, ASI_CODEC_START_RECORDING_2);
    CHECK_I64(fake.last.stream_id, 7);
    CHECK_I64(fake.last.source_location, 1);
    CHECK_I64(fake.last.auto_stop, 1);
    CHECK_TEXT(fake.last_channel, "aeron:ipc?alias=a");
    CHECK_I64(signals, 1);
    CHECK_I64(last_signal.position, 1024);
    CHECK_I64(last_signal.signal, AS_SIGNAL_EXTEND);
    CHECK_I64(result_inside_handler, AS_E_USAGE);
    CHECK_I64(
        as_archive_client_extend_recording(client, 3, "aeron:ipc", 8, AS_SOURCE_LOCAL, false, &value), AS_OK);
    CHECK_I64(fake.last.recording_id, 3);
    CHECK_I64(fake.last.auto_stop, 0);
    CHECK_I64(as_archive_client_stop_recording(client, "aeron:ipc?x=1", 9), AS_OK);
    CHECK_TEXT(fake.last_channel, "aeron:ipc?x=1");
    CHECK_I64(as_archive_client_stop_recording_subscription(client, 31), AS_OK);
    CHECK_I64(fake.last.subscription_id, 31);
    bool was_active = false;
    fake.relevant_id = 1;
    CHECK_I64(as_archive_client_stop_recording_by_identity(client, 4, &was_active), AS_OK);
    CHECK(was_active);
    fake.relevant_id = 77;
    static as_result (*const position_calls[])(as_archive_client *, int64_t, int64_t *) = {
        as_archive_client_start_position, as_archive_client_recording_position, as_archive_client_stop_position,
        as_archive_client_max_recorded_position };
    static const int32_t position_templates[] = {
        ASI_CODEC_START_POSITION, ASI_CODEC_RECORDING_POSITION, ASI_CODEC_STOP_POSITION, ASI_CODEC_MAX_RECORDED_POSITION };
    for (int i = 0; i < 4; i++)
    {
        CHECK_I64(position_calls[i](client, 50 + i, &value), AS_OK);
        CHECK_I64(value, 77);
        CHECK_I64(fake.last.template_id, position_templates[i]);
        CHECK_I64(fake.last.recording_id, 50 + i);
    }
    CHECK_I64(as_archive_client_find_last_matching(client, 2, "frag", 5, 6, &value), AS_OK);
    CHECK_I64(fake.last.recording_id, 2);
    CHECK_I64(fake.last.session_id, 6);
    CHECK_TEXT(fake.last_channel, "frag");
    CHECK_I64(as_archive_client_stop_replay(client, -5), AS_OK);
    CHECK_I64(fake.last.replay_session_id, -5);
    CHECK_I64(as_archive_client_stop_all_replays(client, AS_NULL_VALUE), AS_OK);
    close_both();
}

static void replays_are_bounded_or_not(void)
{
    open_both();
    int64_t session = 0;
    fake.relevant_id = (INT64_C(9) << 32) | 0xFFFFFFFBu;
    CHECK_I64(as_archive_client_start_replay(client, 1, "aeron:ipc", 30, NULL, &session), AS_OK);
    CHECK_I64(session, fake.relevant_id);
    CHECK_I64(fake.last.template_id, ASI_CODEC_REPLAY);
    CHECK_I64(fake.last.position, AS_NULL_VALUE);
    CHECK_I64(fake.last.length, AS_NULL_VALUE);
    CHECK_I64(fake.last.replay_token, AS_NULL_VALUE);
    as_replay_params params;
    as_replay_params_init(&params);
    params.position = 64;
    params.length = -2;
    params.bounding_limit_counter_id = 12;
    params.file_io_max_length = 4096;
    as_subscription *subscription = NULL;
    CHECK_I64(as_archive_client_replay(client, 1, "aeron:ipc?session-id=8|alias=r", 30, &params, &session, &subscription), AS_OK);
    CHECK_I64(fake.last.template_id, ASI_CODEC_BOUNDED_REPLAY);
    CHECK_I64(fake.last.position, 64);
    CHECK_I64(fake.last.length, -2);
    CHECK_I64(fake.last.limit_counter_id, 12);
    CHECK_I64(fake.last.file_io_max_length, 4096);
    as_subscription_constants constants;
    as_subscription_get_constants(subscription, &constants);
    CHECK_TEXT(constants.channel, "aeron:ipc?alias=r|session-id=-5");
    CHECK_I64(constants.stream_id, 30);
    as_subscription_close(subscription);
    CHECK_I64(as_archive_client_start_replay(client, 1, "bogus", 30, NULL, &session), AS_E_USAGE);
    close_both();
}

static bool count_recording(void *context, const as_recording *recording)
{
    int *count = context;
    CHECK_I64(recording->recording_id, *count);
    CHECK_I64(recording->start_position, *count * 32);
    CHECK_TEXT(recording->stripped_channel, "aeron:ipc");
    CHECK_TEXT(recording->original_channel, "aeron:ipc?alias=x");
    CHECK_TEXT(recording->source_identity, *count % 2 ? "aeron:ipc" : "");
    return ++*count < 3;
}

static bool count_subscription(void *context, int64_t subscription_id, int32_t stream_id, const char *channel)
{
    int *count = context;
    CHECK_I64(subscription_id, 100 + *count);
    CHECK_I64(stream_id, 1001);
    CHECK_TEXT(channel, "aeron:ipc");
    ++*count;
    return true;
}

static void listings_end_by_count_or_by_unknown(void)
{
    open_both();
    static const struct
    {
        int32_t there, asked, given;
    } rows[] = { { 0, 1, 0 }, { 2, 10, 2 }, { 2, 2, 2 }, { 5, 4, 3 }, { 2, 1, 1 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        int count = 0;
        int32_t listed = -1;
        fake.descriptors = rows[i].there;
        CHECK_I64(as_archive_client_list_recordings(client, 0, rows[i].asked, count_recording, &count, &listed), AS_OK);
        CHECK_I64(count, rows[i].given);
        CHECK_I64(listed, rows[i].given);
        count = 0;
        CHECK_I64(as_archive_client_list_recordings_for_uri(
            client, 0, rows[i].asked, "ali", 1001, count_recording, &count, &listed), AS_OK);
        CHECK_I64(listed, rows[i].given);
        CHECK_TEXT(fake.last_channel, "ali");
        CHECK_I64(fake.last.stream_id, 1001);
        count = 0;
        CHECK_I64(as_archive_client_list_recording_subscriptions(
            client, 0, rows[i].asked, "", 1, true, count_subscription, &count, &listed), AS_OK);
        CHECK_I64(listed, rows[i].there < rows[i].asked ? rows[i].there : rows[i].asked);
        CHECK_I64(fake.last.apply_stream_id, 1);
    }
    int count = 0;
    int32_t listed = -1;
    CHECK_I64(as_archive_client_list_recording(client, 3, count_recording, &count, &listed), AS_OK);
    CHECK_I64(listed, 1);
    CHECK_I64(fake.last.recording_id, 3);
    CHECK_I64(as_archive_client_list_recordings(client, 0, 0, count_recording, &count, &listed), AS_E_USAGE);
    close_both();
}

static void errors_carry_code_and_text(void)
{
    open_both();
    int64_t position = -9;
    fake.error = "unknown recording id: 8";
    fake.error_code = ASI_CODEC_E_UNKNOWN_RECORDING;
    CHECK_I64(as_archive_client_start_position(client, 8, &position), AS_E_PEER);
    CHECK_I64(as_error_code(), ASI_CODEC_E_UNKNOWN_RECORDING);
    CHECK_TEXT(as_error_text(), "the archive answered StartPositionRequest with error 5: unknown recording id: 8");
    CHECK_I64(position, -9);
    fake.error = NULL;
    fake.code = ASI_CODEC_RECORDING_UNKNOWN;
    CHECK_I64(as_archive_client_stop_position(client, 8, &position), AS_E_PEER);
    CHECK_I64(as_error_code(), ASI_CODEC_E_UNKNOWN_RECORDING);
    /* The noise had errors for a request nobody waits for: told by poll, once. */
    int32_t handled = 0;
    CHECK_I64(as_archive_client_poll(client, &handled), AS_E_PEER);
    CHECK_I64(as_error_code(), ASI_CODEC_E_STORAGE_SPACE);
    CHECK(NULL != strstr(as_error_text(), "disk full later"));
    CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
    send_signal(64);
    for (int i = 0; handled < 1 && i < 1000; i++)
    {
        run_all(NULL);
        CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
    }
    CHECK_I64(handled, 1);
    CHECK_I64(last_signal.position, 64);
    close_both();
}

static void a_late_answer_is_dropped(void)
{
    open_fake();
    CHECK_I64(try_open(SECOND_NS / 5), AS_OK);
    fake.is_silent = true;
    int64_t position = 0;
    CHECK_I64(as_archive_client_start_position(client, 1, &position), AS_E_TIMEOUT);
    CHECK(NULL != strstr(as_error_text(), "StartPositionRequest"));
    CHECK(NULL != strstr(as_error_text(), "messageTimeout=200ms"));
    fake.is_silent = false;
    fake.relevant_id = 5;
    send_response(SESSION_ID, fake.last.correlation_id, ASI_CODEC_OK, 1, NULL);
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_OK);
    CHECK_I64(position, 5);
    close_both();
}

static void unreadable_messages_fail_the_call_only(void)
{
    open_both();
    const uint8_t foreign[16] = { 8, 0, 1, 0, 99, 0, 13, 0 };
    int64_t position = 0;
    send_bytes(foreign, sizeof(foreign));
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "expected schemaId=101, actual=99"));
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_OK);
    close_both();
}

static void a_lost_session_is_noticed(void)
{
    open_both();
    as_publication_close(fake.responses);
    int64_t position = 0;
    fake.is_silent = true;
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_E_CLOSED);
    CHECK(NULL != strstr(as_error_text(), "response channel from archive is not connected"));
    CHECK_I64(as_archive_client_stop_position(client, 1, &position), AS_E_CLOSED);
    int32_t handled;
    CHECK_I64(as_archive_client_poll(client, &handled), AS_E_CLOSED);
    close_both();
}

static void connect_says_why_it_fails(void)
{
    open_fake();
    fake.reject_connect = "authentication rejected";
    CHECK_I64(try_open(10 * SECOND_NS), AS_E_PEER);
    CHECK_I64(as_error_code(), ASI_CODEC_E_AUTHENTICATION_REJECTED);
    CHECK(NULL != strstr(as_error_text(), "authentication rejected"));
    close_both();

    open_fake();
    fake.challenges = true;
    CHECK_I64(try_open(10 * SECOND_NS), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "challenges"));
    close_both();

    open_fake();
    fake.protocol_version = 0x00020000;
    CHECK_I64(try_open(10 * SECOND_NS), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "2.0.0"));
    close_both();

    open_fake();
    as_subscription_close(fake.requests);
    fake.requests = NULL;
    CHECK_I64(try_open(SECOND_NS / 10), AS_E_TIMEOUT);
    CHECK(NULL != strstr(as_error_text(), "no archive reads control requests"));
    close_both();
}

static void an_old_archive_has_no_id(void)
{
    open_fake();
    fake.protocol_version = 0x00010A00;
    CHECK_I64(try_open(10 * SECOND_NS), AS_OK);
    CHECK_I64(as_archive_client_archive_id(client), AS_NULL_VALUE);
    close_both();
}

/* Each number of the protocol, and one that is not known yet, however the answer is waited for. */
static void every_error_code_reaches_the_caller(void)
{
    open_both();
    fake.with_noise = false;
    fake.error = "for this reason";
    for (int32_t code = AS_ARCHIVE_ERROR_GENERIC; code <= AS_ARCHIVE_ERROR_INVALID_POSITION + 1; code++)
    {
        int64_t position = -9;
        fake.error_code = code;
        CHECK_I64(as_archive_client_start_position(client, 8, &position), AS_E_PEER);
        CHECK_I64(as_error_code(), code);
        CHECK_I64(position, -9);
        CHECK(NULL != strstr(as_error_text(), "for this reason"));
        /* And of a request that nobody waits for any more. */
        as_result polled = AS_OK;
        int32_t handled;
        send_response(SESSION_ID, 99, ASI_CODEC_ERROR, code, "later");
        for (int i = 0; AS_OK == polled && i < 1000; i++)
        {
            run_all(NULL);
            polled = as_archive_client_poll(client, &handled);
        }
        CHECK_I64(polled, AS_E_PEER);
        CHECK_I64(as_error_code(), code);
    }
    close_both();
}

/* -- requests in flight ------------------------------------------------------------------------------------------------------ */

/* A session whose archive answers nothing unless the test does. */
static void open_silent(void)
{
    open_fake();
    CHECK_I64(try_open(10 * SECOND_NS), AS_OK);
    fake.is_silent = true;
}

static as_archive_call *send_call(const as_archive_request *request)
{
    as_archive_call *call = NULL;
    CHECK_I64(as_archive_client_send(client, request, &call), AS_OK);
    fake.last.correlation_id = AS_NULL_VALUE;
    for (int i = 0; fake.last.correlation_id != as_archive_call_correlation_id(call) && i < 1000; i++)
    {
        run_all(NULL);
    }
    CHECK_I64(fake.last.correlation_id, as_archive_call_correlation_id(call));
    return call;
}

static as_archive_call *send_position_call(void)
{
    as_archive_request request;
    as_archive_request_init(&request, AS_OP_START_POSITION);
    request.recording_id = 1;
    return send_call(&request);
}

static as_result await_call(as_archive_call *call, int64_t *value)
{
    as_result result = as_archive_call_poll(call, value);
    for (int i = 0; AS_AGAIN == result && i < 1000; i++)
    {
        run_all(NULL);
        result = as_archive_call_poll(call, value);
    }
    return result;
}

/* Polls until the client has handled a message: what the polls found is lost otherwise. */
static void poll_once_handled(void)
{
    int32_t handled = 0;
    for (int i = 0; 0 == handled && i < 1000; i++)
    {
        run_all(NULL);
        CHECK_I64(as_archive_client_poll(client, &handled), AS_OK);
    }
    CHECK(handled > 0);
}

/* An answer ends the poll: an unreadable message behind it fails the next one, and a signal is delivered by the next one. */
static void what_follows_an_answer_waits_for_the_next_poll(void)
{
    open_silent();
    const uint8_t foreign[16] = { 8, 0, 1, 0, 99, 0, 13, 0 };
    as_archive_call *first = send_position_call();
    as_archive_call *second = send_position_call();
    send_response(SESSION_ID, as_archive_call_correlation_id(second), ASI_CODEC_OK, 22, NULL);
    send_response(SESSION_ID, as_archive_call_correlation_id(first), ASI_CODEC_OK, 11, NULL);
    send_signal(96);
    send_bytes(foreign, sizeof(foreign));
    int64_t value = 0;
    CHECK_I64(await_call(first, &value), AS_OK);
    CHECK_I64(value, 11);
    CHECK_I64(signals, 0);
    CHECK_I64(as_archive_call_poll(second, &value), AS_OK);
    CHECK_I64(value, 22);
    int32_t handled = 0;
    CHECK_I64(as_archive_client_poll(client, &handled), AS_E_DATA);
    CHECK_I64(signals, 1);
    as_archive_call_close(first);
    as_archive_call_close(second);
    close_both();
}

static void a_call_times_out_and_its_late_error_is_reported(void)
{
    open_silent();
    as_archive_call *late = send_position_call();
    int64_t value = 0;
    ahead_ns = 5 * SECOND_NS;
    CHECK_I64(as_archive_call_poll(late, &value), AS_AGAIN);
    ahead_ns = 10 * SECOND_NS;
    CHECK_I64(as_archive_call_poll(late, &value), AS_E_TIMEOUT);
    CHECK(NULL != strstr(as_error_text(), "StartPositionRequest"));
    CHECK(NULL != strstr(as_error_text(), "messageTimeout=10s"));
    send_response(SESSION_ID, as_archive_call_correlation_id(late), ASI_CODEC_ERROR, ASI_CODEC_E_UNKNOWN_RECORDING, "too late");
    int32_t handled = 0;
    as_result polled = AS_OK;
    for (int i = 0; AS_OK == polled && i < 1000; i++)
    {
        run_all(NULL);
        polled = as_archive_client_poll(client, &handled);
    }
    CHECK_I64(polled, AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "too late"));
    CHECK_I64(as_archive_call_poll(late, &value), AS_E_TIMEOUT);
    as_archive_call_close(late);
    close_both();
}

static void send_descriptor(int64_t correlation_id, int64_t recording_id)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_RECORDING_DESCRIPTOR);
    event.control_session_id = SESSION_ID;
    event.correlation_id = correlation_id;
    event.recording_id = recording_id;
    event.start_position = recording_id * 32;
    event.stripped_channel = asi_codec_text("aeron:ipc");
    event.original_channel = asi_codec_text("aeron:ipc?alias=x");
    event.source_identity = asi_codec_text("");
    send_event(&event, 0);
}

static void each_descriptor_extends_the_time_of_a_listing(void)
{
    open_silent();
    int count = 0;
    as_archive_request request;
    as_archive_request_init(&request, AS_OP_LIST_RECORDINGS);
    request.recording_id = 0;
    request.count = 2;
    request.on_recording = count_recording;
    request.context = &count;
    as_archive_call *listing = send_call(&request);
    as_archive_call *position = send_position_call();
    int64_t value = 0;
    ahead_ns = 9 * SECOND_NS;
    send_descriptor(as_archive_call_correlation_id(listing), 0);
    poll_once_handled();
    CHECK_I64(count, 1);
    ahead_ns = 18 * SECOND_NS;
    CHECK_I64(as_archive_call_poll(listing, &value), AS_AGAIN);
    CHECK_I64(as_archive_call_poll(position, &value), AS_E_TIMEOUT);
    ahead_ns = 20 * SECOND_NS;
    CHECK_I64(as_archive_call_poll(listing, &value), AS_E_TIMEOUT);
    as_archive_call_close(listing);
    as_archive_call_close(position);
    close_both();
}

static void a_challenge_is_no_answer_to_a_call(void)
{
    open_silent();
    as_archive_call *call = send_position_call();
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_CHALLENGE);
    event.control_session_id = SESSION_ID;
    event.correlation_id = as_archive_call_correlation_id(call);
    event.encoded_challenge = asi_codec_text("who?");
    send_event(&event, 0);
    int64_t value = -9;
    CHECK_I64(await_call(call, &value), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "is no answer to it"));
    CHECK_I64(value, -9);
    as_archive_call_close(call);
    close_both();
}

static void a_call_survives_a_poll_from_a_handler(void)
{
    open_silent();
    as_archive_call *call = send_position_call();
    call_inside_handler = call;
    send_signal(32);
    poll_once_handled();
    call_inside_handler = NULL;
    CHECK_I64(signals, 1);
    CHECK_I64(call_result_inside_handler, AS_E_USAGE);
    send_response(SESSION_ID, as_archive_call_correlation_id(call), ASI_CODEC_OK, 5, NULL);
    int64_t value = 0;
    CHECK_I64(await_call(call, &value), AS_OK);
    CHECK_I64(value, 5);
    as_archive_call_close(call);
    close_both();
}

static void an_answer_survives_the_client_but_a_call_does_not(void)
{
    open_silent();
    as_archive_call *answered = send_position_call();
    as_archive_call *unanswered = send_position_call();
    send_response(SESSION_ID, as_archive_call_correlation_id(answered), ASI_CODEC_OK, 5, NULL);
    poll_once_handled();
    as_archive_client_close(client);
    client = NULL;
    int64_t value = 0;
    CHECK_I64(as_archive_call_poll(answered, &value), AS_OK);
    CHECK_I64(value, 5);
    CHECK_I64(as_archive_call_poll(unanswered, &value), AS_E_CLOSED);
    CHECK(NULL != strstr(as_error_text(), "the archive client of a call to StartPositionRequest is closed"));
    as_archive_call_close(answered);
    as_archive_call_close(unanswered);
    close_both();
}

int main(void)
{
    RUN(what_follows_an_answer_waits_for_the_next_poll);
    RUN(a_call_times_out_and_its_late_error_is_reported);
    RUN(each_descriptor_extends_the_time_of_a_listing);
    RUN(a_challenge_is_no_answer_to_a_call);
    RUN(a_call_survives_a_poll_from_a_handler);
    RUN(an_answer_survives_the_client_but_a_call_does_not);
    RUN(every_error_code_reaches_the_caller);
    RUN(connects_and_closes);
    RUN(numbers_are_asked_and_answered);
    RUN(replays_are_bounded_or_not);
    RUN(listings_end_by_count_or_by_unknown);
    RUN(errors_carry_code_and_text);
    RUN(a_late_answer_is_dropped);
    RUN(unreadable_messages_fail_the_call_only);
    RUN(a_lost_session_is_noticed);
    RUN(connect_says_why_it_fails);
    RUN(an_old_archive_has_no_id);
    return 0;
}
