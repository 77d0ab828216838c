/* Goal: counters of the application live as long as they should, and an inspector sees them, the driver and its errors.
 * Method: our driver and a client invoked on one thread. */
#include "world.h"

#include "shm/counters.h"

static as_counter_row row_of(const char *dir, int32_t counter_id)
{
    as_inspector *inspector;
    CHECK_I64(as_inspector_open(dir, &inspector), AS_OK);
    as_counter_row row = { 0 };
    CHECK(counter_id <= as_inspector_max_counter_id(inspector));
    if (AS_OK != as_inspector_counter(inspector, counter_id, &row))
    {
        row.id = AS_NULL_VALUE;
    }
    as_inspector_close(inspector);
    return row;
}

static void counters(world *w)
{
    const uint8_t key[5] = { 1, 2, 3, 4, 5 };
    as_counter *counter;
    CHECK_I64(as_client_add_counter(w->client, 1234, key, sizeof(key), "my label", &counter), AS_OK);
    const int32_t id = as_counter_id(counter);
    CHECK_I64(as_counter_get(counter), 0);
    as_counter_set(counter, 40);
    CHECK_I64(as_counter_add(counter, 2), 40);
    CHECK_I64(as_counter_get(counter), 42);
    CHECK_I64(*as_counter_address(counter), 42);
    CHECK(w->available_counters >= 2); /* the heartbeat's too */
    as_counter_row row = row_of(w->dir, id);
    CHECK_I64(row.id, id);
    CHECK_I64(row.type_id, 1234);
    CHECK_I64(row.value, 42);
    CHECK_I64(row.registration_id, as_counter_registration_id(counter));
    CHECK_I64(row.owner_id, as_client_id(w->client));
    CHECK_I64(row.key_length, 112);
    CHECK(0 == memcmp(row.key, key, sizeof(key)) && 0 == row.key[5]);
    CHECK_TEXT(row.label, "my label");
    CHECK_I64(row.label_length, 8);
    as_counter_close(counter);
    AWAIT(w, AS_NULL_VALUE == row_of(w->dir, id).id);
    AWAIT(w, w->unavailable_counters >= 1);

    char label[400];
    memset(label, 'x', sizeof(label));
    label[381] = '\0';
    uint8_t long_key[113] = { 0 };
    CHECK_I64(as_client_add_counter(w->client, 1234, NULL, 0, label, &counter), AS_E_USAGE);
    CHECK_I64(as_client_add_counter(w->client, 1234, long_key, 113, "l", &counter), AS_E_USAGE);
    CHECK_I64(as_client_add_counter(w->client, 1234, NULL, 1, "l", &counter), AS_E_USAGE);
    CHECK_I64(as_client_add_counter(w->client, 1234, NULL, 0, NULL, &counter), AS_E_USAGE);
    label[380] = '\0';
    CHECK_I64(as_client_add_counter(w->client, 1234, long_key, 112, label, &counter), AS_OK);
    CHECK_TEXT(row_of(w->dir, as_counter_id(counter)).label, label);
}

static void static_counters_outlive_their_client(world *w)
{
    as_counter *counter;
    CHECK_I64(as_client_add_static_counter(w->client, 2000, 77, NULL, 0, "static", &counter), AS_OK);
    as_counter_set(counter, 5);
    as_counter *again;
    CHECK_I64(as_client_add_static_counter(w->client, 2000, 77, NULL, 0, "static", &again), AS_OK);
    CHECK_I64(as_counter_id(again), as_counter_id(counter));
    CHECK_I64(as_counter_registration_id(again), 77);
    const int32_t id = as_counter_id(counter);
    as_counter_close(counter);
    as_client_close(w->client);
    w->client = NULL;
    for (int i = 0; i < 50; i++)
    {
        world_turn(w);
    }
    const as_counter_row row = row_of(w->dir, id);
    CHECK_I64(row.id, id);
    CHECK_I64(row.owner_id, -1);
    CHECK_I64(row.registration_id, 77);
    CHECK_I64(row.value, 5);
}

static void asynchronous_adding(world *w)
{
    int64_t ids[4];
    CHECK_I64(as_client_async_add_counter(w->client, 1500, NULL, 0, "a", &ids[0]), AS_OK);
    CHECK_I64(as_client_async_add_publication(w->client, IPC_64K, STREAM, &ids[1]), AS_OK);
    CHECK_I64(as_client_async_add_exclusive_publication(w->client, IPC_64K, STREAM, &ids[2]), AS_OK);
    CHECK_I64(as_client_async_add_subscription(w->client, IPC_64K, STREAM, NULL, NULL, NULL, &ids[3]), AS_OK);
    as_counter *counter = NULL;
    as_publication *shared = NULL;
    as_publication *exclusive = NULL;
    as_subscription *subscription = NULL;
    CHECK_I64(as_client_poll_counter(w->client, ids[0], &counter), AS_AGAIN);
    AWAIT(w, AS_OK == as_client_poll_counter(w->client, ids[0], &counter));
    AWAIT(w, AS_OK == as_client_poll_publication(w->client, ids[1], &shared));
    AWAIT(w, AS_OK == as_client_poll_publication(w->client, ids[2], &exclusive));
    CHECK_I64(as_client_poll_counter(w->client, ids[3], &counter), AS_E_USAGE); /* it is a subscription */
    AWAIT(w, AS_OK == as_client_poll_subscription(w->client, ids[3], &subscription));
    CHECK_I64(as_client_poll_subscription(w->client, ids[3], &subscription), AS_E_USAGE); /* forgotten */
    AWAIT(w, 2 == as_subscription_image_count(subscription));
    CHECK_I64(w->available_images, 0); /* it gave no handler */
    int64_t bad;
    CHECK_I64(as_client_async_add_publication(w->client, "aeron:nonsense", STREAM, &bad), AS_OK);
    as_result result;
    AWAIT(w, AS_AGAIN != (result = as_client_poll_publication(w->client, bad, &shared)));
    CHECK_I64(result, AS_E_PEER);
}

typedef struct seen_errors
{
    int64_t count;
    char text[512];
} seen_errors;

static void on_entry(void *context, int32_t count, int64_t first_ms, int64_t last_ms, const char *text, int64_t text_length)
{
    seen_errors *seen = context;
    CHECK(count >= 1 && first_ms > 0 && last_ms >= first_ms);
    seen->count++;
    snprintf(seen->text, sizeof(seen->text), "%.*s", (int)text_length, text);
}

/* Blocks of any size give the rows that single reads give, in their order. */
static void check_blocks(const as_inspector *inspector)
{
    for (int64_t capacity = 1; capacity <= 100; capacity += 33)
    {
        as_counter_row rows[100];
        as_counter_row row;
        int32_t next_id = 0;
        int32_t id = 0;
        int64_t count;
        do
        {
            count = as_inspector_counters(inspector, &next_id, rows, capacity);
            for (int64_t i = 0; i < count; i++)
            {
                while (AS_OK != as_inspector_counter(inspector, id, &row))
                {
                    id++;
                }
                CHECK_I64(rows[i].id, id++);
                CHECK_TEXT(rows[i].label, row.label);
            }
        } while (count == capacity);
        CHECK(id > 40);
        CHECK_I64(as_inspector_counter(inspector, id, &row), AS_AGAIN);
    }
    int32_t none = -1;
    as_counter_row row;
    CHECK_I64(as_inspector_counters(inspector, &none, &row, 1), 0);
}

static void inspector(world *w)
{
    as_publication *publication;
    CHECK_I64(as_client_add_publication(w->client, "aeron:ipc?term-length=7", STREAM, &publication), AS_E_PEER);
    CHECK(as_error_code() > 0 && NULL != strstr(as_error_text(), "term-length"));
    as_inspector *inspector;
    CHECK_I64(as_inspector_open(w->dir, &inspector), AS_OK);
    as_driver_info info;
    as_inspector_driver_info(inspector, &info);
    CHECK(info.is_active && info.heartbeat_ms > 0 && info.cnc_version == 0x0200);
    CHECK_I64(info.pid, getpid());
    CHECK_I64(info.client_liveness_timeout_ns, 10000000000LL);
    seen_errors seen = { 0 };
    CHECK_I64(as_inspector_errors(inspector, 0, on_entry, &seen), 1);
    CHECK_I64(seen.count, 1);
    CHECK(NULL != strstr(seen.text, "term length less than min"));
    CHECK_I64(as_inspector_errors(inspector, INT64_MAX, on_entry, &seen), 0);
    as_counter_row row;
    CHECK_I64(as_inspector_counter(inspector, -1, &row), AS_AGAIN);
    CHECK_I64(as_inspector_counter(inspector, INT32_MAX, &row), AS_AGAIN);
    CHECK_I64(as_inspector_counter(inspector, 0, &row), AS_OK);
    int64_t value = -1;
    CHECK_I64(as_inspector_counter_value(inspector, 0, row.registration_id, &value), AS_OK);
    CHECK_I64(value, row.value);
    CHECK_I64(as_inspector_counter_value(inspector, 0, row.registration_id + 1, &value), AS_AGAIN);
    CHECK_I64(as_inspector_counter_value(inspector, -1, row.registration_id, &value), AS_AGAIN);
    CHECK_TEXT(row.label, "Bytes sent");
    check_blocks(inspector);
    as_inspector_close(inspector);
    as_inspector_close(NULL);
    CHECK_I64(as_inspector_open("/dev/shm/aeron-spark-test-absent", &inspector), AS_E_STORAGE);
    CHECK(NULL != strstr(as_error_text(), "/dev/shm/aeron-spark-test-absent"));
}

/* Spec: 01 §2.4 - the client finds its heartbeat counter, names itself in it and keeps it fresh. */
static void heartbeat_counter(void)
{
    world w;
    world_open_driver(&w, false);
    as_client_options options;
    world_options(&w, &options);
    options.keepalive_interval_ns = 1;
    CHECK_I64(as_client_open(&options, &w.client), AS_OK);
    world_publication(&w, IPC_64K, true);
    as_inspector *inspector;
    CHECK_I64(as_inspector_open(w.dir, &inspector), AS_OK);
    as_counter_row row = { 0 };
    int32_t id = 0;
    while (AS_OK != as_inspector_counter(inspector, id, &row) || ASI_COUNTER_TYPE_CLIENT_HEARTBEAT != row.type_id)
    {
        CHECK(++id <= as_inspector_max_counter_id(inspector));
    }
    char expected[400];
    snprintf(expected, sizeof(expected), "client-heartbeat: id=%" PRId64 " name=test version=%s commit=%s",
        as_client_id(w.client), as_version_text(), as_commit_text());
    AWAIT(&w, AS_OK == as_inspector_counter(inspector, id, &row) && 0 == strcmp(row.label, expected));
    const int64_t before = row.value;
    AWAIT(&w, AS_OK == as_inspector_counter(inspector, id, &row) && row.value > before);
    as_inspector_close(inspector);
    world_close(&w);
}

int main(void)
{
    RUN_IN_WORLD(counters);
    RUN_IN_WORLD(static_counters_outlive_their_client);
    RUN_IN_WORLD(asynchronous_adding);
    RUN_IN_WORLD(inspector);
    RUN(heartbeat_counter);
    return 0;
}
