/* The driver on its own thread beside clients on theirs, in each threading mode: for the thread sanitizer, and to see that a
 * publisher and a subscriber progress through many terms.
 *
 * Method: a rig whose clock is the system's; the test is the clients. */
#include <pthread.h>

#include "rig.h"
#include "term/frame_walk.h"

#define MESSAGES 20000
#define DEADLINE_NS (60 * RIG_SECOND)

static void wait_for_broadcast(test_rig *rig, int32_t type_id)
{
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ns = asi_clock_ns(&clock) + DEADLINE_NS;
    asi_idle idle;
    CHECK_I64(asi_idle_parse(&idle, "backoff", NULL), AS_OK);
    while (!rig_receive(rig))
    {
        CHECK(asi_clock_ns(&clock) < deadline_ns);
        asi_idle_cycle(&idle, 0);
    }
    CHECK_I64(rig->last.type_id, type_id);
}

static void write_add(test_rig *rig, int32_t type_id, int64_t client_id, int64_t correlation_id)
{
    static const char channel[] = "aeron:ipc?term-length=64k";
    uint8_t message[128];
    size_t fixed;
    if (ASI_CMD_ADD_SUBSCRIPTION == type_id)
    {
        const asi_cmd_subscription command = { { client_id, correlation_id }, -1, 7, sizeof(channel) - 1 };
        memcpy(message, &command, fixed = sizeof(command));
    }
    else
    {
        const asi_cmd_publication command = { { client_id, correlation_id }, 7, sizeof(channel) - 1 };
        memcpy(message, &command, fixed = sizeof(command));
    }
    memcpy(message + fixed, channel, sizeof(channel) - 1);
    CHECK_I64(asi_ring_mpsc_write(&rig->ring, type_id, message, (int64_t)(fixed + sizeof(channel)) - 1), AS_OK);
}

typedef struct publisher_thread
{
    rig_publication publication;
    int64_t end_position; /* of the last message; read after the join */
    /* The subscriber's position, passed to the publisher too: the thread sanitizer does not know that the driver's
     * mapping of a counter and ours are the same memory, so it can't see the order that goes through the driver. */
    int64_t consumed_position;
} publisher_thread;

static void *publish(void *argument)
{
    publisher_thread *publisher = argument;
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ns = asi_clock_ns(&clock) + DEADLINE_NS;
    asi_idle idle;
    CHECK_I64(asi_idle_parse(&idle, "yield", NULL), AS_OK);
    for (int i = 0; i < MESSAGES;)
    {
        const bool has_room = asi_append_position(&publisher->publication.appender) <
            asi_load_acquire_i64(publisher->publication.limit);
        asi_load_acquire_i64(&publisher->consumed_position);
        const int64_t position = has_room ? rig_offer(&publisher->publication, 100) : AS_BACK_PRESSURED;
        if (position > 0)
        {
            publisher->end_position = position;
            i++;
            continue;
        }
        CHECK(AS_BACK_PRESSURED == position || AS_ADMIN_ACTION == position || AS_NOT_CONNECTED == position);
        CHECK(asi_clock_ns(&clock) < deadline_ns);
        asi_idle_cycle(&idle, 0);
    }
    return NULL;
}

/* Reads one term's committed frames; returns the new position. */
static int64_t consume(const asi_log *log, int64_t position, int *messages)
{
    const int64_t offset = position & (log->term_length - 1);
    asi_frame_walk walk = asi_frame_walk_start(
        log->terms[asi_log_index_of_position(position, log->position_bits)], offset, log->term_length, log->term_length);
    asi_walk_step step;
    while (ASI_WALK_FRAME == (step = asi_frame_walk_next(&walk)))
    {
        *messages += asi_frame_is_padding(walk.frame) ? 0 : 1;
    }
    CHECK_I64(step, ASI_WALK_END);
    return position + walk.offset - offset;
}

static void flow(void)
{
    static const asi_threading_mode MODES[] = { ASI_THREADING_DEDICATED, ASI_THREADING_SHARED, ASI_THREADING_SHARED_NETWORK };
    for (size_t mode = 0; mode < sizeof(MODES) / sizeof(MODES[0]); mode++)
    {
        test_rig rig = { 0 };
        rig_image image;
        publisher_thread publisher = { .consumed_position = 0 };
        pthread_t thread;
        scratch_create(rig.dir);
        asi_driver_settings settings = rig_settings(rig.dir);
        settings.threading_mode = MODES[mode];
        settings.client_liveness_timeout_ns = 1000 * RIG_SECOND; /* no keepalives are sent */
        settings.publication_unblock_timeout_ns = 2000 * RIG_SECOND;
        asi_rand rand;
        asi_rand_seed(&rand, 1);
        CHECK_I64(asi_driver_open(&settings, asi_clock_system(), rand, NULL, NULL, &rig.driver), AS_OK);
        CHECK_I64(as_driver_start(rig.driver), AS_OK);
        rig_attach(&rig);
        write_add(&rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 2);
        wait_for_broadcast(&rig, ASI_RSP_COUNTER_READY);
        wait_for_broadcast(&rig, ASI_RSP_SUBSCRIPTION_READY);
        write_add(&rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 3);
        wait_for_broadcast(&rig, ASI_RSP_EXCLUSIVE_PUBLICATION_READY);
        memcpy(&publisher.publication.ready, rig.last.bytes, sizeof(publisher.publication.ready));
        rig_map_log((const char *)rig.last.bytes + sizeof(publisher.publication.ready),
            publisher.publication.ready.log_file_name_length, &publisher.publication.log);
        asi_appender_init(&publisher.publication.appender, &publisher.publication.log, publisher.publication.ready.session_id, 7,
            true);
        publisher.publication.limit =
            asi_counter_addr(&rig.counters, publisher.publication.ready.position_limit_counter_id);
        wait_for_broadcast(&rig, ASI_RSP_AVAILABLE_IMAGE);
        memcpy(&image.available, rig.last.bytes, sizeof(image.available));
        image.position = asi_counter_addr(&rig.counters, image.available.subscriber_position_id);

        CHECK(0 == pthread_create(&thread, NULL, publish, &publisher));
        const asi_clock clock = asi_clock_system();
        const int64_t deadline_ns = asi_clock_ns(&clock) + DEADLINE_NS;
        int64_t position = 0;
        for (int messages = 0; messages < MESSAGES;)
        {
            CHECK(asi_clock_ns(&clock) < deadline_ns);
            position = consume(&publisher.publication.log, position, &messages);
            asi_store_release_i64(&publisher.consumed_position, position);
            asi_store_release_i64(image.position, position);
        }
        CHECK(0 == pthread_join(thread, NULL));
        CHECK_I64(position, publisher.end_position);
        asi_log_close(&publisher.publication.log);
        rig_close(&rig);
    }
}

int main(void)
{
    RUN(flow);
    return 0;
}
