/* The rig of server_rig.h with an archive client, a publisher whose messages carry their index, and a reader that knows the
 * next expected message. A test can advance the clock of client constructs independently of the archive's. */
#ifndef AS_TESTS_CLIENT_RIG_H
#define AS_TESTS_CLIENT_RIG_H

/* A reader that is slower than the window by 100 ms loses its image, if it is untethered; it is back after 100 ms. */
#define RIG_SET_DRIVER(config)                                                                             \
    do                                                                                                     \
    {                                                                                                      \
        CHECK_I64(as_driver_config_set(config, "aeron.timer.interval", "10ms"), AS_OK);                    \
        CHECK_I64(as_driver_config_set(config, "aeron.untethered.window.limit.timeout", "100ms"), AS_OK);  \
        CHECK_I64(as_driver_config_set(config, "aeron.untethered.resting.timeout", "100ms"), AS_OK);       \
        CHECK_I64(as_driver_config_set(config, "aeron.publication.linger.timeout", "200ms"), AS_OK);       \
        CHECK_I64(as_driver_config_set(config, "aeron.image.liveness.timeout", "1s"), AS_OK);              \
    } while (0)

#include "archive/server_rig.h"
#include "client/archive_client.h"
#include "ports.h"

#define RIG_STREAM 1001
#define RIG_LENGTH_MAX 4000 /* three fragments */

typedef struct client_rig
{
    test_rig rig;
    as_archive_client *archive;
    as_publication *publication;
    int64_t recording_id;
    int64_t published;           /* messages, and the index of the next */
    int64_t read;                /* likewise */
    void (*reader)(void);        /* reads between tries to publish; NULL: nobody does */
    int64_t client_ahead_ns;     /* of constructs' clocks before the system's */
    int64_t signals[8];
} client_rig;

static client_rig R;

static inline int64_t client_nano_time(void *context)
{
    return rig_system_ns() + ((client_rig *)context)->client_ahead_ns;
}

static inline int64_t client_epoch_ms(void *context)
{
    (void)context;
    const asi_clock clock = asi_clock_system();
    return asi_clock_ms(&clock);
}

static inline asi_clock client_clock(void)
{
    return (asi_clock){ .nano_time = client_nano_time, .epoch_ms = client_epoch_ms, .context = &R };
}

static inline void turn_rig(void *context)
{
    (void)context;
    rig_turn(&R.rig);
}

static inline void count_signal(void *context, const as_signal *signal)
{
    (void)context;
    CHECK(signal->signal >= 0 && signal->signal < 8);
    R.signals[signal->signal]++;
}

static inline as_archive_client_options client_options(void)
{
    as_archive_client_options options;
    as_archive_client_options_init(&options);
    options.client = R.rig.client;
    options.invoker = turn_rig;
    options.on_signal = count_signal;
    return options;
}

static inline void client_rig_open(void)
{
    memset(&R, 0, sizeof(R));
    rig_open(&R.rig);
    rig_open_archive(&R.rig);
    const as_archive_client_options options = client_options();
    const asi_clock clock = client_clock();
    CHECK_I64(asi_archive_client_open_with(&options, &clock, &R.archive), AS_OK);
}

static inline void client_rig_close(void)
{
    as_archive_client_close(R.archive);
    as_publication_close(R.publication);
    rig_close(&R.rig);
}

/* -- the stream ------------------------------------------------------------------------------------------------------------------ */

/* 8 bytes of index, then bytes that follow from it; one to three fragments. */
static inline int64_t message_length(int64_t index) { return 8 + (index * 997) % (RIG_LENGTH_MAX - 8); }

static inline void make_message(uint8_t *message, int64_t index)
{
    fill_message(message, message_length(index), index);
    asi_put_i64(message, index);
}

static inline int64_t publish_next(void)
{
    uint8_t message[RIG_LENGTH_MAX];
    int64_t position;
    make_message(message, R.published);
    UNTIL(&R.rig, (position = as_publication_offer(R.publication, message, message_length(R.published))) > 0 ||
        (NULL != R.reader && (R.reader(), false)));
    R.published++;
    return position;
}

static inline int64_t publish_messages(int64_t count)
{
    int64_t position = 0;
    for (int64_t i = 0; i < count; i++)
    {
        position = publish_next();
    }
    return position;
}

static inline void expect_message(const uint8_t *data, int64_t length)
{
    uint8_t expected[RIG_LENGTH_MAX];
    CHECK(length >= 8);
    CHECK_I64(asi_get_i64(data), R.read);
    CHECK_I64(length, message_length(R.read));
    make_message(expected, R.read);
    CHECK(0 == memcmp(data, expected, (size_t)length));
    R.read++;
}

static inline int64_t recorded_position(void)
{
    int64_t position;
    CHECK_I64(as_archive_client_max_recorded_position(R.archive, R.recording_id, &position), AS_OK);
    return position;
}

/* A publication of `channel` whose recording is active. */
static inline void record_stream(const char *channel)
{
    int64_t subscription_id;
    CHECK_I64(as_archive_client_start_recording(
        R.archive, channel, RIG_STREAM, AS_SOURCE_LOCAL, false, &subscription_id), AS_OK);
    CHECK_I64(as_client_add_exclusive_publication(R.rig.client, channel, RIG_STREAM, &R.publication), AS_OK);
    as_publication_constants constants;
    as_publication_get_constants(R.publication, &constants);
    int32_t counter_id;
    UNTIL(&R.rig, AS_NULL_VALUE !=
        (counter_id = as_recording_position_find_by_session(R.rig.client, constants.session_id, AS_NULL_VALUE)));
    R.recording_id = as_recording_position_recording_id(R.rig.client, counter_id);
}

#endif
