/* A scripted archive made of the codec and a real driver, and a client of it, all in one thread: driver, archive and client run by
 * invokers, so that nothing depends on timing but the timeouts that are tested. Spec: 07 §13. */
#ifndef AS_TESTS_FAKE_ARCHIVE_H
#define AS_TESTS_FAKE_ARCHIVE_H

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

static inline void send_bytes(const uint8_t *bytes, int64_t length)
{
    while (as_publication_offer(fake.responses, bytes, length) < 0)
    {
        as_driver_do_work(fake.driver);
        as_client_invoke(fake.aeron);
    }
}

static inline void send_event(const asi_codec_event *event, int64_t trailing_bytes)
{
    uint8_t bytes[8192];
    int64_t length;
    memset(bytes, 0xEE, sizeof(bytes));
    CHECK_I64(asi_codec_event_encode(event, bytes, sizeof(bytes), &length), AS_OK);
    send_bytes(bytes, length + trailing_bytes);
}

static inline void send_response(int64_t session_id, int64_t correlation_id, int32_t code, int64_t relevant_id, const char *text)
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

static inline void send_signal(int64_t position)
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

static inline void send_ping(void)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_PING);
    event.control_session_id = SESSION_ID;
    send_event(&event, 0);
}

static inline void send_noise(int64_t correlation_id)
{
    send_ping();
    send_response(SESSION_ID, correlation_id - 1000, ASI_CODEC_OK, 1, NULL);          /* a late copy */
    send_response(SESSION_ID + 1, correlation_id, ASI_CODEC_OK, 2, NULL);             /* another session */
    send_response(SESSION_ID, 99, ASI_CODEC_ERROR, ASI_CODEC_E_STORAGE_SPACE, "disk full later");
    uint8_t unknown[16] = { 8, 0, 0xE7, 3, 101, 0, 13, 0 };                           /* template 999 */
    send_bytes(unknown, sizeof(unknown));
    send_signal(1024);
}

static inline void copy_channel(char *to, const asi_codec_request *request)
{
    CHECK(request->channel.length <= AS_CHANNEL_MAX_LENGTH);
    if (request->channel.length > 0)
    {
        memcpy(to, request->channel.data, (size_t)request->channel.length);
    }
    to[request->channel.length] = '\0';
}

static inline void on_connect(const asi_codec_request *request)
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

static inline void give_descriptors(const asi_codec_request *request)
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

static inline void on_call(const asi_codec_request *request)
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

static inline void on_request(void *context, const uint8_t *data, int64_t length, const as_header *header)
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

static inline void run_all(void *context)
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

static inline void run_driver(void *context)
{
    (void)context;
    as_driver_do_work(fake.driver);
}

static inline as_client *open_aeron(as_on_event driver_invoker)
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

static inline void open_fake(void)
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

static inline void close_fake(void)
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

static inline int64_t client_nano_time(void *context)
{
    (void)context;
    const asi_clock clock = asi_clock_system();
    return asi_clock_ns(&clock) + ahead_ns;
}

static inline int64_t client_epoch_ms(void *context)
{
    (void)context;
    const asi_clock clock = asi_clock_system();
    return asi_clock_ms(&clock);
}

static inline void on_signal(void *context, const as_signal *signal)
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

static inline as_result try_open(int64_t timeout_ns)
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

static inline void open_both(void)
{
    open_fake();
    CHECK_I64(try_open(10 * SECOND_NS), AS_OK);
    fake.with_noise = true;
}

static inline void close_both(void)
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

static inline bool count_recording(void *context, const as_recording *recording)
{
    int *count = context;
    CHECK_I64(recording->recording_id, *count);
    CHECK_I64(recording->start_position, *count * 32);
    CHECK_TEXT(recording->stripped_channel, "aeron:ipc");
    CHECK_TEXT(recording->original_channel, "aeron:ipc?alias=x");
    CHECK_TEXT(recording->source_identity, *count % 2 ? "aeron:ipc" : "");
    return ++*count < 3;
}

#endif
