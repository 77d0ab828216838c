/* The driver as a client sees it: a CnC file, a command ring that is read, events that are written. The
 * test decides the answers, and owns the time: each turn is one millisecond. */
#ifndef AS_TESTS_CLIENT_SCRIPTED_H
#define AS_TESTS_CLIENT_SCRIPTED_H

#include <limits.h>

#include "client/client.h"
#include "support.h"

#define STREAM 1001
#define CHANNEL "aeron:ipc?term-length=64k"
#define LIVENESS_NS 10000000000LL
#define EPOCH_MS 1700000000000LL
#define LIMIT_COUNTER 3
#define POSITION_COUNTER 4

typedef enum script_mode
{
    SCRIPT_ANSWER,
    SCRIPT_SILENT,
    SCRIPT_REFUSE,   /* ON_ERROR with code 12 */
    SCRIPT_IGNORE    /* the ring is not even read */
} script_mode;

typedef struct scripted
{
    char dir[SCRATCH_CAPACITY];
    asi_cnc cnc;
    asi_ring_mpsc ring;
    asi_broadcast to_clients;
    asi_counters_manager counters;
    asi_log log; /* of every publication and image */
    char log_path[SCRATCH_CAPACITY + 32];
    int64_t now_ns;
    bool has_stopped_clock;
    bool is_heart_stopped;
    script_mode mode;
    int still_closing; /* commands that are answered first by "a socket of this channel is closing, please retry" */
    as_client *client;
    /* Commands seen. */
    int64_t counts[32];
    int64_t last_correlation_id;
    int64_t last_registration_id;
    uint8_t last[512];
    int64_t last_length;
    /* Handlers. */
    int64_t errors;
    int64_t closes;
    as_result error_class;
    int32_t error_code;
    char error_text[ASI_CLIENT_TEXT_CAPACITY];
    int64_t images;
    int64_t lost_images;
    int64_t publication_errors;
    as_result reentrant;
} scripted;

static inline int64_t scripted_nano_time(void *context) { return ((scripted *)context)->now_ns; }
static inline int64_t scripted_epoch_ms(void *context) { return EPOCH_MS + ((scripted *)context)->now_ns / 1000000; }

static inline void send_event(scripted *s, int32_t type_id, const void *message, int64_t length)
{
    CHECK_I64(asi_broadcast_transmit(&s->to_clients, type_id, message, length), AS_OK);
}

static inline void send_value(scripted *s, int32_t type_id, int64_t correlation_id, int32_t value)
{
    const asi_rsp_correlated_i32 message = { .correlation_id = correlation_id, .value = value };
    send_event(s, type_id, &message, sizeof(message));
}

static inline void send_error(scripted *s, int64_t correlation_id, int32_t code, const char *text)
{
    uint8_t message[512];
    const asi_rsp_error error = { .offending_correlation_id = correlation_id, .error_code = code, .message_length = (int32_t)strlen(text) };
    memcpy(message, &error, sizeof(error));
    memcpy(message + sizeof(error), text, strlen(text));
    send_event(s, ASI_RSP_ERROR, message, (int64_t)(sizeof(error) + strlen(text)));
}

static inline void send_publication_ready(scripted *s, int32_t type_id, int64_t correlation_id, int32_t limit_counter, const char *path)
{
    uint8_t message[512];
    const asi_rsp_publication_ready ready = { .correlation_id = correlation_id, .registration_id = 5000, .session_id = 9,
        .stream_id = STREAM, .position_limit_counter_id = limit_counter, .channel_status_id = -1,
        .log_file_name_length = (int32_t)strlen(path) };
    memcpy(message, &ready, sizeof(ready));
    memcpy(message + sizeof(ready), path, strlen(path));
    send_event(s, type_id, message, (int64_t)(sizeof(ready) + strlen(path)));
}

static inline void send_image(scripted *s, int64_t image_id, int64_t subscription_id, int32_t counter_id, const char *path)
{
    uint8_t message[512] = { 0 };
    const asi_rsp_available_image image = { .image_correlation_id = image_id, .session_id = 9, .stream_id = STREAM,
        .subscription_registration_id = subscription_id, .subscriber_position_id = counter_id,
        .log_file_name_length = (int32_t)strlen(path) };
    const int64_t at = (int64_t)sizeof(image) + asi_align_i64((int64_t)strlen(path), 4);
    memcpy(message, &image, sizeof(image));
    memcpy(message + sizeof(image), path, strlen(path));
    asi_put_i32(message + at, 9);
    memcpy(message + at + 4, "aeron:ipc", 9);
    send_event(s, ASI_RSP_AVAILABLE_IMAGE, message, at + 4 + 9);
}

static inline void send_image_gone(scripted *s, int64_t image_id, int64_t subscription_id)
{
    const asi_rsp_unavailable_image message = { .image_correlation_id = image_id, .subscription_registration_id = subscription_id };
    send_event(s, ASI_RSP_UNAVAILABLE_IMAGE, &message, sizeof(message));
}

static inline void answer(scripted *s, int32_t type_id)
{
    const int64_t id = s->last_correlation_id;
    switch (type_id)
    {
        case ASI_CMD_ADD_PUBLICATION:
            send_publication_ready(s, ASI_RSP_PUBLICATION_READY, id, LIMIT_COUNTER, s->log_path);
            break;
        case ASI_CMD_ADD_EXCLUSIVE_PUBLICATION:
            send_publication_ready(s, ASI_RSP_EXCLUSIVE_PUBLICATION_READY, id, LIMIT_COUNTER, s->log_path);
            break;
        case ASI_CMD_ADD_SUBSCRIPTION:
            send_value(s, ASI_RSP_SUBSCRIPTION_READY, id, -1);
            break;
        case ASI_CMD_ADD_COUNTER:
            send_value(s, ASI_RSP_COUNTER_READY, id, 7);
            break;
        case ASI_CMD_ADD_STATIC_COUNTER:
            send_value(s, ASI_RSP_STATIC_COUNTER, id, 7);
            break;
        case ASI_CMD_GET_NEXT_AVAILABLE_SESSION_ID:
            send_value(s, ASI_RSP_NEXT_AVAILABLE_SESSION_ID, id, 4711);
            break;
        default:
        {
            const asi_rsp_operation_success message = { .correlation_id = id };
            send_event(s, ASI_RSP_OPERATION_SUCCESS, &message, sizeof(message));
            break;
        }
    }
}

static inline asi_ring_action on_command(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    scripted *s = context;
    CHECK(type_id > 0 && type_id < 32 && length >= 16);
    s->counts[type_id]++;
    s->last_correlation_id = asi_get_i64(message + 8);
    s->last_registration_id = length >= 24 ? asi_get_i64(message + 16) : 0;
    s->last_length = length;
    memcpy(s->last, message, (size_t)(length < (int64_t)sizeof(s->last) ? length : (int64_t)sizeof(s->last)));
    if (SCRIPT_ANSWER == s->mode && s->still_closing > 0)
    {
        s->still_closing--;
        send_error(s, s->last_correlation_id, ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE, "please retry");
    }
    else if (SCRIPT_ANSWER == s->mode && ASI_CMD_CLIENT_CLOSE != type_id)
    {
        answer(s, type_id);
    }
    else if (SCRIPT_REFUSE == s->mode)
    {
        send_error(s, s->last_correlation_id, ASI_ERR_STORAGE_SPACE, "no room");
    }
    return ASI_RING_CONTINUE;
}

/* What the driver does in a millisecond. Also the client's driver invoker. */
static inline void scripted_turn(void *context)
{
    scripted *s = context;
    s->now_ns += s->has_stopped_clock ? 0 : 1000000;
    if (!s->is_heart_stopped)
    {
        asi_ring_mpsc_set_consumer_heartbeat(&s->ring, scripted_epoch_ms(s));
    }
    if (SCRIPT_IGNORE != s->mode)
    {
        asi_ring_mpsc_read(&s->ring, on_command, s, INT64_MAX);
    }
}

static inline void on_scripted_error(void *context, as_result result, int32_t code, const char *text)
{
    scripted *s = context;
    s->errors++;
    s->error_class = result;
    s->error_code = code;
    snprintf(s->error_text, sizeof(s->error_text), "%s", text);
}

static inline void on_scripted_close(void *context) { ((scripted *)context)->closes++; }

static inline void on_scripted_image(void *context, as_subscription *subscription, as_image *image)
{
    scripted *s = context;
    s->images++;
    as_image_constants constants;
    as_image_get_constants(image, &constants); /* may be asked in a handler, as may these: */
    as_image_release(as_image_retain(image));
    as_image *found = as_subscription_image_at(subscription, 0);
    as_image_release(found);
    int64_t id;
    s->reentrant = as_client_async_add_subscription(s->client, CHANNEL, STREAM, NULL, NULL, NULL, &id);
}

static inline void on_scripted_lost_image(void *context, as_subscription *subscription, as_image *image)
{
    (void)subscription;
    CHECK(as_image_is_closed(image));
    ((scripted *)context)->lost_images++;
}

static inline void on_scripted_publication_error(
    void *context, int64_t registration_id, int32_t session_id, int32_t stream_id, int32_t code, const char *text)
{
    scripted *s = context;
    (void)registration_id;
    CHECK_I64(session_id, 9);
    CHECK_I64(stream_id, STREAM);
    CHECK_I64(code, ASI_ERR_IMAGE_REJECTED);
    CHECK_TEXT(text, "bad");
    s->publication_errors++;
}

static inline void scripted_options(scripted *s, as_client_options *options)
{
    as_client_options_init(options);
    options->aeron_dir = s->dir;
    options->use_invoker = true;
    options->driver_invoker = scripted_turn;
    options->driver_invoker_context = s;
    options->driver_timeout_ns = 1000000000;
    options->on_error = on_scripted_error;
    options->on_close = on_scripted_close;
    options->on_available_image = on_scripted_image;
    options->on_unavailable_image = on_scripted_lost_image;
    options->on_publication_error = on_scripted_publication_error;
    options->context = s;
}

static inline as_result scripted_connect(scripted *s)
{
    as_client_options options;
    scripted_options(s, &options);
    const asi_clock clock = { .nano_time = scripted_nano_time, .epoch_ms = scripted_epoch_ms, .context = s };
    return asi_client_open_with_clock(&options, &clock, &s->client);
}

/* The driver's files, with a heartbeat of now; no client yet. */
static inline void scripted_create(scripted *s)
{
    *s = (scripted){ .now_ns = 1000000000, .reentrant = AS_OK };
    scratch_create(s->dir);
    const asi_cnc_params params = {
        .lengths = { .to_driver = (1 << 20) + ASI_RING_TRAILER_LENGTH, .to_clients = (1 << 20) + ASI_BROADCAST_TRAILER_LENGTH,
            .counters_metadata = 4 << 20, .counters_values = 1 << 20, .error_log = 4 << 20 },
        .client_liveness_timeout_ns = LIVENESS_NS,
        .start_timestamp_ms = EPOCH_MS,
        .pid = getpid(),
        .file_page_size = 4096,
    };
    CHECK_I64(asi_cnc_create(&s->cnc, s->dir, &params), AS_OK);
    CHECK_I64(asi_ring_mpsc_init(&s->ring, s->cnc.to_driver, s->cnc.lengths.to_driver), AS_OK);
    CHECK_I64(asi_broadcast_init(&s->to_clients, s->cnc.to_clients, s->cnc.lengths.to_clients), AS_OK);
    asi_counters counters;
    CHECK_I64(asi_counters_init(&counters, s->cnc.counters_metadata, s->cnc.lengths.counters_metadata, s->cnc.counters_values,
        s->cnc.lengths.counters_values), AS_OK);
    CHECK_I64(asi_counters_manager_init(&s->counters, &counters, 1000), AS_OK);
    asi_ring_mpsc_next_correlation_id(&s->ring);
    snprintf(s->log_path, sizeof(s->log_path), "%s/5000.logbuffer", s->dir);
    CHECK_I64(asi_log_create(&s->log, s->log_path, 65536, 4096), AS_OK);
    s->log.metadata->mtu_length = 1408;
    s->log.metadata->end_of_stream_position = INT64_MAX;
    asi_log_init_tails(&s->log, 0, 0, 0);
    *asi_counter_addr(&counters, LIMIT_COUNTER) = 32768;
}

static inline void scripted_publish(scripted *s)
{
    asi_ring_mpsc_set_consumer_heartbeat(&s->ring, scripted_epoch_ms(s));
    asi_cnc_publish(&s->cnc);
}

static inline void scripted_open(scripted *s)
{
    scripted_create(s);
    scripted_publish(s);
    CHECK_I64(scripted_connect(s), AS_OK);
}

static inline void scripted_close(scripted *s)
{
    as_client_close(s->client);
    asi_log_close(&s->log);
    asi_counters_manager_close(&s->counters);
    asi_cnc_close(&s->cnc);
    scratch_delete(s->dir);
}

/* Driver and client each get their turn. */
static inline void scripted_run(scripted *s, int turns)
{
    for (int i = 0; i < turns; i++)
    {
        scripted_turn(s);
        as_client_invoke(s->client);
    }
}

/* One of each kind; `which` counts them. */
typedef struct scripted_resources
{
    as_publication *publication;
    as_publication *exclusive;
    as_subscription *subscription;
    as_counter *counter;
} scripted_resources;

static inline as_result scripted_add(scripted *s, scripted_resources *r, int which)
{
    switch (which)
    {
        case 0: return as_client_add_publication(s->client, CHANNEL, STREAM, &r->publication);
        case 1: return as_client_add_exclusive_publication(s->client, CHANNEL, STREAM, &r->exclusive);
        case 2: return as_client_add_subscription(s->client, CHANNEL, STREAM, &r->subscription);
        default: return as_client_add_counter(s->client, 1000, NULL, 0, "c", &r->counter);
    }
}

#define RUN_SCRIPTED(test) RUN_IN(scripted, scripted_open(&fixture), test, scripted_close(&fixture))

#endif
