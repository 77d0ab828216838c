/* A driver in INVOKER mode under a clock of the test's own, and a bare client of its shared memory: commands go into the ring as
 * bytes, broadcasts come out as bytes. Nothing here uses the client library, so a test proves the protocol. */
#ifndef AS_TESTS_DRIVER_RIG_H
#define AS_TESTS_DRIVER_RIG_H

#include <sys/stat.h>

#include "driver/driver.h"
#include "shm/log_layout.h"
#include "support.h"
#include "term/append.h"
#include "wire/command.h"

#define RIG_MS 1000000LL
#define RIG_SECOND 1000000000LL
#define RIG_START_MS 1700000000000LL
#define RIG_MESSAGE_CAPACITY 16384

typedef struct rig_message
{
    int32_t type_id;
    int64_t length;
    uint8_t bytes[RIG_MESSAGE_CAPACITY];
} rig_message;

typedef struct test_rig
{
    char dir[SCRATCH_CAPACITY];
    int64_t now_ns;
    int32_t terminations;
    as_driver *driver;
    asi_cnc cnc; /* the client's own mapping */
    asi_ring_mpsc ring;
    asi_broadcast_receiver receiver;
    asi_counters counters;
    rig_message last;
} test_rig;

static inline int64_t rig_nano_time(void *context) { return ((test_rig *)context)->now_ns; }
static inline int64_t rig_epoch_ms(void *context) { return RIG_START_MS + ((test_rig *)context)->now_ns / RIG_MS; }
static inline void rig_on_termination(void *context) { ((test_rig *)context)->terminations++; }

static inline void rig_attach(test_rig *rig)
{
    CHECK_I64(asi_cnc_open_untrusted(&rig->cnc, rig->dir), AS_OK);
    CHECK_I64(asi_ring_mpsc_init(&rig->ring, rig->cnc.to_driver, rig->cnc.lengths.to_driver), AS_OK);
    CHECK_I64(asi_broadcast_receiver_open(&rig->receiver, rig->cnc.to_clients, rig->cnc.lengths.to_clients), AS_OK);
    CHECK_I64(asi_counters_init(&rig->counters, rig->cnc.counters_metadata, rig->cnc.lengths.counters_metadata,
        rig->cnc.counters_values, rig->cnc.lengths.counters_values), AS_OK);
}

/* Settings of a rig: small, invoked, everything else the defaults. */
static inline asi_driver_settings rig_settings(const char *dir)
{
    asi_driver_settings settings;
    asi_driver_settings_init(&settings);
    snprintf(settings.aeron_dir, sizeof(settings.aeron_dir), "%s", dir);
    settings.threading_mode = ASI_THREADING_INVOKER;
    settings.ipc_term_buffer_length = AS_TERM_MIN_LENGTH;
    settings.counters_values_buffer_length = 1024 * 1024;
    settings.low_file_store_warning_threshold = 0;
    return settings;
}

/* In a directory of the caller's, which exists; `adjust` may be NULL. */
static inline void rig_open_in(test_rig *rig, const char *dir, void (*adjust)(asi_driver_settings *settings))
{
    memset(rig, 0, sizeof(*rig));
    rig->now_ns = RIG_SECOND;
    snprintf(rig->dir, sizeof(rig->dir), "%s", dir);
    asi_driver_settings settings = rig_settings(rig->dir);
    if (NULL != adjust)
    {
        adjust(&settings);
    }
    const asi_clock clock = { .nano_time = rig_nano_time, .epoch_ms = rig_epoch_ms, .context = rig };
    asi_rand rand;
    asi_rand_seed(&rand, 4711);
    CHECK_I64(asi_driver_open(&settings, clock, rand, rig_on_termination, rig, &rig->driver), AS_OK);
    rig_attach(rig);
}

static inline void rig_open(test_rig *rig, void (*adjust)(asi_driver_settings *settings))
{
    char dir[SCRATCH_CAPACITY];
    scratch_create(dir);
    rig_open_in(rig, dir, adjust);
}

static inline void rig_close(test_rig *rig)
{
    as_driver_close(rig->driver);
    asi_broadcast_receiver_close(&rig->receiver);
    asi_cnc_close(&rig->cnc);
    scratch_delete(rig->dir);
}

static inline void rig_cycle(test_rig *rig) { as_driver_do_work(rig->driver); }

/* Lets time pass in steps of 100 ms, with a duty cycle after each. */
static inline void rig_pass(test_rig *rig, int64_t duration_ns)
{
    for (int64_t passed = 0; passed < duration_ns; passed += 100 * RIG_MS)
    {
        rig->now_ns += 100 * RIG_MS;
        rig_cycle(rig);
    }
}

/* -- client's side --- */

static inline void rig_on_message(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    rig_message *last = context;
    CHECK(length <= RIG_MESSAGE_CAPACITY);
    last->type_id = type_id;
    last->length = length;
    memcpy(last->bytes, message, (size_t)length);
}

/* The next broadcast is in rig->last; false when there is none. */
static inline bool rig_receive(test_rig *rig)
{
    const as_result result = asi_broadcast_receive(&rig->receiver, rig_on_message, &rig->last);
    CHECK(AS_OK == result || AS_AGAIN == result);
    return AS_OK == result;
}

static inline void rig_expect_none(test_rig *rig)
{
    if (rig_receive(rig))
    {
        fprintf(stderr, "unexpected broadcast 0x%04x\n", (unsigned)rig->last.type_id);
        CHECK(false);
    }
}

static inline const void *rig_expect(test_rig *rig, int32_t type_id)
{
    CHECK(rig_receive(rig));
    if (ASI_RSP_ERROR == rig->last.type_id && ASI_RSP_ERROR != type_id)
    {
        fprintf(stderr, "error: %.*s\n", asi_get_i32(rig->last.bytes + 12), (const char *)rig->last.bytes + 16);
    }
    CHECK_I64(rig->last.type_id, type_id);
    return rig->last.bytes;
}

/* Writes the command and runs one duty cycle. */
static inline void rig_send(test_rig *rig, int32_t type_id, const void *message, int64_t length)
{
    CHECK_I64(asi_ring_mpsc_write(&rig->ring, type_id, message, length), AS_OK);
    rig_cycle(rig);
}

static inline void rig_send_add(test_rig *rig, int32_t type_id, int64_t client_id, int64_t correlation_id, int32_t stream_id,
    const char *channel)
{
    uint8_t message[512];
    const int32_t channel_length = (int32_t)strlen(channel);
    size_t fixed;
    if (ASI_CMD_ADD_SUBSCRIPTION == type_id)
    {
        const asi_cmd_subscription command = { { client_id, correlation_id }, -1, stream_id, channel_length };
        memcpy(message, &command, fixed = sizeof(command));
    }
    else
    {
        const asi_cmd_publication command = { { client_id, correlation_id }, stream_id, channel_length };
        memcpy(message, &command, fixed = sizeof(command));
    }
    memcpy(message + fixed, channel, (size_t)channel_length);
    rig_send(rig, type_id, message, (int64_t)fixed + channel_length);
}

static inline void rig_send_remove(
    test_rig *rig, int32_t type_id, int64_t client_id, int64_t correlation_id, int64_t registration_id)
{
    const asi_cmd_remove command = { { client_id, correlation_id }, registration_id };
    rig_send(rig, type_id, &command, sizeof(command));
}

static inline void rig_send_ids(test_rig *rig, int32_t type_id, int64_t client_id, int64_t correlation_id)
{
    const asi_cmd_correlated command = { client_id, correlation_id };
    rig_send(rig, type_id, &command, sizeof(command));
}

static inline void rig_expect_success(test_rig *rig, int64_t correlation_id)
{
    asi_rsp_operation_success success;
    memcpy(&success, rig_expect(rig, ASI_RSP_OPERATION_SUCCESS), sizeof(success));
    CHECK_I64(success.correlation_id, correlation_id);
}

static inline asi_rsp_error rig_expect_error(test_rig *rig, int64_t correlation_id, int32_t code)
{
    asi_rsp_error error;
    memcpy(&error, rig_expect(rig, ASI_RSP_ERROR), sizeof(error));
    CHECK_I64(error.offending_correlation_id, correlation_id);
    CHECK_I64(error.error_code, code);
    CHECK_I64(rig->last.length, (int64_t)sizeof(error) + error.message_length);
    return error;
}

static inline int32_t rig_expect_i32(test_rig *rig, int32_t type_id, int64_t correlation_id)
{
    asi_rsp_correlated_i32 message;
    memcpy(&message, rig_expect(rig, type_id), sizeof(message));
    CHECK_I64(rig->last.length, sizeof(message));
    CHECK_I64(message.correlation_id, correlation_id);
    return message.value;
}

/* A publication as its client has it: log mapped, limit at hand. */
typedef struct rig_publication
{
    asi_rsp_publication_ready ready;
    asi_log log;
    asi_appender appender;
    const int64_t *limit;
} rig_publication;

static inline void rig_map_log(const char *name, int32_t name_length, asi_log *log)
{
    char path[AS_PATH_MAX];
    snprintf(path, sizeof(path), "%.*s", name_length, name);
    CHECK_I64(asi_log_open_untrusted(log, path, false), AS_OK);
}

static inline void rig_expect_publication(test_rig *rig, bool is_exclusive, rig_publication *publication)
{
    const uint8_t *message =
        rig_expect(rig, is_exclusive ? ASI_RSP_EXCLUSIVE_PUBLICATION_READY : ASI_RSP_PUBLICATION_READY);
    memcpy(&publication->ready, message, sizeof(publication->ready));
    rig_map_log((const char *)message + sizeof(publication->ready), publication->ready.log_file_name_length, &publication->log);
    asi_appender_init(&publication->appender, &publication->log, publication->ready.session_id, publication->ready.stream_id,
        is_exclusive);
    publication->limit = asi_counter_addr(&rig->counters, publication->ready.position_limit_counter_id);
}

/* One try to publish `length` zero bytes, as a client does. */
static inline int64_t rig_offer(rig_publication *publication, int64_t length)
{
    static const uint8_t zeros[65536];
    const struct asi_append_part part = { .data = zeros, .length = length };
    const asi_append_source source = { .parts = &part, .part_count = 1, .length = length };
    const int64_t position = asi_append_position(&publication->appender);
    if (position < 0)
    {
        return position;
    }
    if (position >= asi_load_acquire_i64(publication->limit))
    {
        return 1 == asi_load_acquire_i32(&publication->log.metadata->is_connected) ? AS_BACK_PRESSURED : AS_NOT_CONNECTED;
    }
    return asi_append_message(&publication->appender, &source);
}

/* An image as its client has it. */
typedef struct rig_image
{
    asi_rsp_available_image available;
    int64_t *position;
} rig_image;

static inline void rig_expect_image(test_rig *rig, int64_t subscription_id, rig_image *image)
{
    memcpy(&image->available, rig_expect(rig, ASI_RSP_AVAILABLE_IMAGE), sizeof(image->available));
    CHECK_I64(image->available.subscription_registration_id, subscription_id);
    image->position = asi_counter_addr(&rig->counters, image->available.subscriber_position_id);
}

static inline void rig_expect_unavailable(test_rig *rig, int64_t image_id, int64_t subscription_id)
{
    asi_rsp_unavailable_image message;
    memcpy(&message, rig_expect(rig, ASI_RSP_UNAVAILABLE_IMAGE), sizeof(message));
    CHECK_I64(message.image_correlation_id, image_id);
    CHECK_I64(message.subscription_registration_id, subscription_id);
}

/* The client lives on: its heartbeat counter says now. */
static inline void rig_heartbeat(test_rig *rig, int32_t counter_id)
{
    asi_store_release_i64(asi_counter_addr(&rig->counters, counter_id), rig_epoch_ms(rig));
}

static inline int64_t rig_system(const test_rig *rig, int32_t id)
{
    return asi_load_acquire_i64(asi_counter_addr(&rig->counters, id));
}

/* Value of the first counter of that type. */
static inline int64_t rig_counter_of_type(const test_rig *rig, int32_t type_id)
{
    const int32_t id = asi_counters_find(&rig->counters, type_id, NULL, NULL);
    CHECK(id >= 0);
    return asi_load_acquire_i64(asi_counter_addr(&rig->counters, id));
}

#define RUN_IN_RIG(test) RUN_IN(test_rig, rig_open(&fixture, NULL), test, rig_close(&fixture))

#endif
