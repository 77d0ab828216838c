/* How clients and their counters end over time, and how a driver behaves without any.
 *
 * Method: a rig whose clock the test moves; the test plays the client through shared memory as a client process would. Times
 * are the stock defaults: timer 1 s, liveness 10 s.
 * Spec: 03 §7, §11, §12, 03 §13. */
#include <glob.h>

#include "rig.h"

#define PUBLISHER 101
#define SUBSCRIBER 102
#define STREAM 1001

typedef enum client_life
{
    LIFE_HEARTBEAT,
    LIFE_KEEPALIVE,
    LIFE_SILENT,
    LIFE_CLOSED
} client_life;

/* Spec: 03 §12. */
static void clients(void)
{
    static const struct { client_life life; bool is_reaped; int64_t timeouts; } ROWS[] = {
        { LIFE_HEARTBEAT, false, 0 }, { LIFE_KEEPALIVE, false, 0 }, { LIFE_SILENT, true, 1 }, { LIFE_CLOSED, true, 0 }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        test_rig rig;
        uint8_t message[32];
        rig_open(&rig, NULL);
        const asi_cmd_counter add = { { PUBLISHER, 2 }, 1001, 0 };
        memcpy(message, &add, sizeof(add));
        asi_put_i32(message + sizeof(add), 1);
        message[sizeof(add) + 4] = 'c';
        rig_send(&rig, ASI_CMD_ADD_COUNTER, message, sizeof(add) + 5);
        const int32_t heartbeat_id = rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, PUBLISHER);
        const int32_t counter_id = rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, 2);
        CHECK_I64(rig.counters.values[heartbeat_id].value, rig_epoch_ms(&rig));
        CHECK_I64(rig.counters.values[counter_id].owner_id, PUBLISHER);
        if (LIFE_CLOSED == ROWS[i].life)
        {
            rig_send_ids(&rig, ASI_CMD_CLIENT_CLOSE, PUBLISHER, -1);
        }
        for (int second = 0; second < 12; second++)
        {
            if (LIFE_HEARTBEAT == ROWS[i].life)
            {
                rig_heartbeat(&rig, heartbeat_id);
            }
            else if (LIFE_KEEPALIVE == ROWS[i].life)
            {
                rig_send_ids(&rig, ASI_CMD_CLIENT_KEEPALIVE, PUBLISHER, 0);
            }
            rig_pass(&rig, RIG_SECOND);
        }
        if (ROWS[i].timeouts > 0)
        {
            rig_expect(&rig, ASI_RSP_CLIENT_TIMEOUT);
        }
        if (ROWS[i].is_reaped)
        {
            CHECK_I64(rig_expect_i32(&rig, ASI_RSP_UNAVAILABLE_COUNTER, PUBLISHER), heartbeat_id);
            CHECK_I64(rig_expect_i32(&rig, ASI_RSP_UNAVAILABLE_COUNTER, 2), counter_id);
            CHECK_I64(asi_counter_state(&rig.counters, counter_id), ASI_COUNTER_RECLAIMED);
        }
        rig_expect_none(&rig);
        CHECK_I64(rig_system(&rig, ASI_SYSTEM_CLIENT_TIMEOUTS), ROWS[i].timeouts);
        rig_close(&rig);
    }
}

/* Alive at its timeout, dead beyond it. */
static void the_edge_of_the_timeout(test_rig *rig)
{
    rig_send_add(rig, ASI_CMD_ADD_SUBSCRIPTION, PUBLISHER, 2, STREAM, "aeron:ipc");
    int64_t *heartbeat_ms =
        asi_counter_addr(&rig->counters, rig_expect_i32(rig, ASI_RSP_COUNTER_READY, PUBLISHER));
    rig_expect_i32(rig, ASI_RSP_SUBSCRIPTION_READY, 2);
    for (int i = 0; i < 25; i++)
    {
        asi_store_release_i64(heartbeat_ms, rig_epoch_ms(rig) + 100 - 10000);
        rig_pass(rig, 100 * RIG_MS);
    }
    rig_expect_none(rig);
    for (int i = 0; i < 12; i++)
    {
        asi_store_release_i64(heartbeat_ms, rig_epoch_ms(rig) + 100 - 10001);
        rig_pass(rig, 100 * RIG_MS);
    }
    rig_expect(rig, ASI_RSP_CLIENT_TIMEOUT);
}

/* A dead subscriber holds no publisher back, a dead publisher's stream ends, and nothing of either stays. */
static void what_a_dead_client_leaves(void)
{
    test_rig rig;
    rig_publication publication;
    rig_image image;
    rig_open(&rig, NULL);
    rig_send_add(&rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, PUBLISHER, 2, STREAM, "aeron:ipc");
    const int32_t heartbeat = rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, PUBLISHER);
    rig_expect_publication(&rig, true, &publication);
    rig_send_add(&rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 3, STREAM, "aeron:ipc");
    rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, SUBSCRIBER);
    rig_expect_i32(&rig, ASI_RSP_SUBSCRIPTION_READY, 3);
    rig_expect_image(&rig, 3, &image);
    CHECK_I64(publication.log.metadata->is_connected, 1);
    for (int second = 0; second < 12; second++)
    {
        rig_heartbeat(&rig, heartbeat);
        rig_pass(&rig, RIG_SECOND);
    }
    rig_expect(&rig, ASI_RSP_CLIENT_TIMEOUT);
    CHECK_I64(publication.log.metadata->is_connected, 0);
    CHECK(asi_counters_find(&rig.counters, ASI_COUNTER_TYPE_SUBSCRIBER_POSITION, NULL, NULL) < 0);
    CHECK(asi_counters_find(&rig.counters, ASI_COUNTER_TYPE_PUBLISHER_LIMIT, NULL, NULL) >= 0);
    rig_pass(&rig, 30 * RIG_SECOND);
    CHECK(asi_counters_find(&rig.counters, ASI_COUNTER_TYPE_PUBLISHER_LIMIT, NULL, NULL) < 0);
    CHECK(asi_counters_find(&rig.counters, ASI_COUNTER_TYPE_CLIENT_HEARTBEAT, NULL, NULL) < 0);
    CHECK_I64(rig_system(&rig, ASI_SYSTEM_CLIENT_TIMEOUTS), 2);
    asi_log_close(&publication.log);
    rig_close(&rig);
}

static void send_counter(test_rig *rig, int64_t correlation_id)
{
    uint8_t message[32] = { 0 };
    const asi_cmd_counter add = { { PUBLISHER, correlation_id }, 1001, 0 };
    memcpy(message, &add, sizeof(add));
    rig_send(rig, ASI_CMD_ADD_COUNTER, message, sizeof(add) + 4);
}

static void send_static_counter(test_rig *rig, int64_t correlation_id, int64_t registration_id)
{
    uint8_t message[40] = { 0 };
    const asi_cmd_static_counter add = { { PUBLISHER, correlation_id }, registration_id, 1001, 0 };
    memcpy(message, &add, sizeof(add));
    rig_send(rig, ASI_CMD_ADD_STATIC_COUNTER, message, sizeof(add) + 4);
}

/* A client removes the counter that it names; one of a client is no static one, and a static one outlives its clients. */
static void counters_by_their_names(test_rig *rig)
{
    send_counter(rig, 2);
    rig_expect_i32(rig, ASI_RSP_COUNTER_READY, PUBLISHER);
    const int32_t first = rig_expect_i32(rig, ASI_RSP_COUNTER_READY, 2);
    send_counter(rig, 3);
    const int32_t second = rig_expect_i32(rig, ASI_RSP_COUNTER_READY, 3);
    rig_send_remove(rig, ASI_CMD_REMOVE_COUNTER, PUBLISHER, 4, 3);
    rig_expect_success(rig, 4);
    CHECK_I64(rig_expect_i32(rig, ASI_RSP_UNAVAILABLE_COUNTER, 3), second);
    CHECK_I64(asi_counter_state(&rig->counters, first), ASI_COUNTER_ALLOCATED);
    CHECK_I64(asi_counter_state(&rig->counters, second), ASI_COUNTER_RECLAIMED);
    rig_send_remove(rig, ASI_CMD_REMOVE_COUNTER, PUBLISHER, 5, 3);
    rig_expect_error(rig, 5, ASI_ERR_UNKNOWN_COUNTER);
    send_static_counter(rig, 6, 2);
    rig_expect_error(rig, 6, ASI_ERR_GENERIC);
    send_static_counter(rig, 7, 77);
    const int32_t lasting = rig_expect_i32(rig, ASI_RSP_STATIC_COUNTER, 7);
    send_static_counter(rig, 8, 77);
    CHECK_I64(rig_expect_i32(rig, ASI_RSP_STATIC_COUNTER, 8), lasting);
    rig_pass(rig, 13 * RIG_SECOND);
    CHECK_I64(asi_counter_state(&rig->counters, first), ASI_COUNTER_RECLAIMED);
    CHECK_I64(asi_counter_state(&rig->counters, lasting), ASI_COUNTER_ALLOCATED);
}

/* A freed counter's id comes back after a second, not before. */
static void counter_reuse(void)
{
    static const struct { int64_t pause_ns; bool is_reused; } ROWS[] = { { 500 * RIG_MS, false }, { 1100 * RIG_MS, true } };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        test_rig rig;
        uint8_t message[32] = { 0 };
        rig_open(&rig, NULL);
        const asi_cmd_counter first = { { PUBLISHER, 2 }, 1001, 0 };
        memcpy(message, &first, sizeof(first));
        rig_send(&rig, ASI_CMD_ADD_COUNTER, message, sizeof(first) + 4);
        rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, PUBLISHER);
        const int32_t counter_id = rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, 2);
        rig_send_remove(&rig, ASI_CMD_REMOVE_COUNTER, PUBLISHER, 3, 2);
        rig_expect_success(&rig, 3);
        CHECK_I64(rig_expect_i32(&rig, ASI_RSP_UNAVAILABLE_COUNTER, 2), counter_id);
        rig_pass(&rig, ROWS[i].pause_ns);
        const asi_cmd_counter second = { { PUBLISHER, 4 }, 1001, 0 };
        memcpy(message, &second, sizeof(second));
        rig_send(&rig, ASI_CMD_ADD_COUNTER, message, sizeof(second) + 4);
        CHECK_I64(rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, 4) == counter_id, ROWS[i].is_reused);
        rig_close(&rig);
    }
}

static void use_few_counters(asi_driver_settings *settings) { settings->counters_values_buffer_length = 1024 * 1024; }

/* When every counter is taken an add fails and leaves nothing behind. */
static void counters_exhausted(void)
{
    test_rig rig;
    uint8_t message[32] = { 0 };
    rig_open(&rig, use_few_counters);
    for (int64_t correlation_id = 2;; correlation_id++)
    {
        const asi_cmd_counter add = { { PUBLISHER, correlation_id }, 1001, 0 };
        memcpy(message, &add, sizeof(add));
        rig_send(&rig, ASI_CMD_ADD_COUNTER, message, sizeof(add) + 4);
        CHECK(rig_receive(&rig));
        if (ASI_RSP_ERROR == rig.last.type_id)
        {
            break;
        }
        while (rig_receive(&rig))
        {
        }
    }
    rig_send_add(&rig, ASI_CMD_ADD_PUBLICATION, PUBLISHER, 1, STREAM, "aeron:ipc");
    rig_expect_error(&rig, 1, ASI_ERR_GENERIC);
    char path[128];
    snprintf(path, sizeof(path), "%s/publications/1.logbuffer", rig.dir);
    CHECK(!asi_file_exists(path));
    rig_close(&rig);
}

static void exit_after_five_seconds(asi_driver_settings *settings) { settings->exit_when_idle_ns = 5 * RIG_SECOND; }

/* Idle from the start: its own time and the driver timeout; after a client: from the time it is reaped. */
static void exit_when_idle(void)
{
    test_rig rig;
    rig_open(&rig, exit_after_five_seconds);
    rig_pass(&rig, 14 * RIG_SECOND);
    CHECK(!as_driver_is_idle_expired(rig.driver));
    rig_pass(&rig, 2 * RIG_SECOND);
    CHECK(as_driver_is_idle_expired(rig.driver));
    rig_close(&rig);

    rig_open(&rig, exit_after_five_seconds);
    rig_send_add(&rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 2, STREAM, "aeron:ipc");
    rig_pass(&rig, 14 * RIG_SECOND); /* killed: 10 s liveness, a timer tick, then 5 s */
    CHECK(!as_driver_is_idle_expired(rig.driver));
    rig_pass(&rig, 4 * RIG_SECOND);
    CHECK(as_driver_is_idle_expired(rig.driver));
    rig_close(&rig);

    rig_open(&rig, NULL);
    rig_pass(&rig, 60 * RIG_SECOND);
    CHECK(!as_driver_is_idle_expired(rig.driver));
    rig_close(&rig);
}

/* Heartbeat once a second while it runs, -1 when it ended. */
static void driver_heartbeat(test_rig *rig)
{
    CHECK_I64(asi_cnc_driver_heartbeat(&rig->cnc), rig_epoch_ms(rig));
    rig_pass(rig, 3 * RIG_SECOND);
    CHECK(rig_epoch_ms(rig) - asi_cnc_driver_heartbeat(&rig->cnc) <= 1000);
    as_driver_close(rig->driver);
    CHECK_I64(asi_cnc_driver_heartbeat(&rig->cnc), -1);
    rig->driver = NULL;
}

/* -- logs that are not sparse --------------------------------------------------------------------------------------------- */

#define RESERVED "aeron:ipc?term-length=16m|sparse=false"

static int64_t bytes_stored(const test_rig *rig)
{
    int64_t bytes = 0;
    char pattern[SCRATCH_CAPACITY + 32];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/publications/*", rig->dir);
    if (0 == glob(pattern, 0, NULL, &found))
    {
        for (size_t i = 0; i < found.gl_pathc; i++)
        {
            struct stat st;
            CHECK_I64(stat(found.gl_pathv[i], &st), 0);
            bytes += 512 * (int64_t)st.st_blocks;
        }
        globfree(&found);
    }
    return bytes;
}

static void request_reserved(test_rig *rig, int64_t client_id, int64_t correlation_id)
{
    rig_send_add(rig, ASI_CMD_ADD_PUBLICATION, client_id, correlation_id, STREAM, RESERVED);
    rig_expect_none(rig);
}

/* Its storage is reserved in pieces, with heartbeats and other clients' commands in between. */
static void a_log_that_is_not_sparse(void)
{
    test_rig rig;
    rig_open(&rig, NULL);
    rig_send_ids(&rig, ASI_CMD_CLIENT_KEEPALIVE, SUBSCRIBER, 1);
    request_reserved(&rig, 77, 2);
    rig_send_add(&rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 3, STREAM, "aeron:ipc");
    rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, SUBSCRIBER);
    rig_expect(&rig, ASI_RSP_SUBSCRIPTION_READY);
    request_reserved(&rig, 77, 4); /* finds the publication of the other, when its turn comes */
    int64_t most = 0, before = bytes_stored(&rig);
    int32_t cycles = 0;
    for (; !rig_receive(&rig); cycles++)
    {
        CHECK(cycles < 10000);
        rig_cycle(&rig);
        const int64_t now = bytes_stored(&rig);
        most = now - before > most ? now - before : most;
        before = now;
    }
    CHECK(cycles > 100);
    CHECK(most <= 1024 * 1024);
    CHECK_I64(rig.last.type_id, ASI_RSP_COUNTER_READY);
    rig_expect(&rig, ASI_RSP_PUBLICATION_READY);
    CHECK(before >= 3 * 16 * 1024 * 1024);
    rig_expect(&rig, ASI_RSP_AVAILABLE_IMAGE);
    for (cycles = 0; !rig_receive(&rig); cycles++)
    {
        CHECK(cycles < 10000);
        rig_cycle(&rig);
    }
    CHECK_I64(rig.last.type_id, ASI_RSP_PUBLICATION_READY);
    asi_rsp_publication_ready ready;
    memcpy(&ready, rig.last.bytes, sizeof(ready));
    CHECK_I64(ready.correlation_id, 4);
    CHECK_I64(ready.registration_id, 2);
    CHECK_I64(bytes_stored(&rig), 3 * 16 * 1024 * 1024 + 4096); /* the reservation of the second is released */
    rig_close(&rig);
}

/* Whoever asked takes it back, or is gone. */
static void nobody_waits_for_a_log_any_more(test_rig *rig)
{
    rig_send_add(rig, ASI_CMD_ADD_SUBSCRIPTION, 77, 1, STREAM, "aeron:ipc");
    rig_expect_i32(rig, ASI_RSP_COUNTER_READY, 77);
    rig_expect(rig, ASI_RSP_SUBSCRIPTION_READY);
    request_reserved(rig, 77, 2);
    rig_send_remove(rig, ASI_CMD_REMOVE_PUBLICATION, SUBSCRIBER, 3, 2);
    rig_expect_error(rig, 3, ASI_ERR_UNKNOWN_PUBLICATION);
    rig_send_remove(rig, ASI_CMD_REMOVE_PUBLICATION, 77, 4, 2);
    rig_expect_success(rig, 4);
    CHECK_I64(bytes_stored(rig), 0);
    request_reserved(rig, 77, 5);
    rig_send_ids(rig, ASI_CMD_CLIENT_CLOSE, 77, 6);
    rig_pass(rig, 2 * RIG_SECOND);
    CHECK_I64(bytes_stored(rig), 0);
    rig_expect_i32(rig, ASI_RSP_UNAVAILABLE_COUNTER, 77);
    request_reserved(rig, 78, 7); /* left to the end of the driver */
}

int main(void)
{
    RUN(a_log_that_is_not_sparse);
    RUN_IN_RIG(nobody_waits_for_a_log_any_more);
    RUN(clients);
    RUN_IN_RIG(the_edge_of_the_timeout);
    RUN(what_a_dead_client_leaves);
    RUN_IN_RIG(counters_by_their_names);
    RUN(counter_reuse);
    RUN(counters_exhausted);
    RUN(exit_when_idle);
    RUN_IN_RIG(driver_heartbeat);
    return 0;
}
