/* Goal: publishing, polling, adding and closing from many threads lose nothing and touch no freed memory; run under the thread
 * and the address sanitizer. Method: our driver and the client's conductor on threads of their own.
 *
 * ThreadSanitizer knows addresses, not files. Publisher and subscriber of one client share a mapping, so it checks them until
 * a term is used again: that is ordered by way of the driver's own mapping, which it can't see. Long streams therefore use
 * a client, and so a mapping, each.
 * Spec: 02 §11. */
#include "world.h"

#include "client/client.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

/* Called by the conductors of several clients. */
static void count_error(void *context, as_result result, int32_t code, const char *text)
{
    (void)result;
    (void)code;
    (void)text;
    asi_fetch_add_i64(&((world *)context)->errors, 1);
}

static as_client *open_client(world *w, int64_t idle_sleep_ns, int64_t resource_linger_ns)
{
    as_client_options options;
    world_options(w, &options);
    options.idle_sleep_ns = idle_sleep_ns;
    options.resource_linger_ns = resource_linger_ns;
    options.keepalive_interval_ns = 20000000;
    options.on_error = count_error;
    as_client *client;
    CHECK_I64(as_client_open(&options, &client), AS_OK);
    return client;
}

static as_publication *add_exclusive(as_client *client)
{
    as_publication *publication;
    CHECK_I64(as_client_add_exclusive_publication(client, IPC_64K, STREAM, &publication), AS_OK);
    return publication;
}

/* The first 16 bytes of a message: who published it and which of its messages it is. */
typedef struct tag
{
    int64_t publisher;
    int64_t number;
} tag;

#define MAX_PUBLISHERS 64

typedef struct reader
{
    as_subscription *subscription;
    int64_t next[MAX_PUBLISHERS];
    int64_t total;
    int64_t wanted;  /* atomic: messages that will be published, INT64_MAX while unknown */
    bool is_started; /* atomic */
} reader;

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    reader *r = context;
    tag t;
    (void)header;
    CHECK(length >= (int64_t)sizeof(t));
    memcpy(&t, data, sizeof(t));
    CHECK(t.publisher >= 0 && t.publisher < MAX_PUBLISHERS);
    CHECK_I64(t.number, r->next[t.publisher]);
    CHECK(data[length - 1] == (uint8_t)t.number || (int64_t)sizeof(t) == length);
    r->next[t.publisher]++;
    r->total++;
}

static void *read_stream(void *context)
{
    reader *r = context;
    as_fragment_assembler *assembler;
    CHECK_I64(as_fragment_assembler_open(on_message, r, &assembler), AS_OK);
    asi_store_release_bool(&r->is_started, true);
    const int64_t deadline_ns = test_now_ns() + 3 * TIMEOUT_NS;
    while (r->total < asi_load_acquire_i64(&r->wanted))
    {
        CHECK(test_now_ns() < deadline_ns);
        const int64_t fragments = as_subscription_poll(r->subscription, as_fragment_assembler_on_fragment, assembler, 10);
        CHECK(fragments >= 0);
        if (0 == fragments)
        {
            sched_yield();
        }
    }
    as_fragment_assembler_close(assembler);
    return NULL;
}

static void publish(as_publication *publication, int64_t publisher, int64_t count, int64_t length)
{
    uint8_t data[4096];
    const int64_t deadline_ns = test_now_ns() + 3 * TIMEOUT_NS;
    for (int64_t i = 0; i < count; i++)
    {
        const tag t = { .publisher = publisher, .number = i };
        memset(data, (uint8_t)i, (size_t)length);
        memcpy(data, &t, sizeof(t));
        int64_t position;
        while ((position = as_publication_offer(publication, data, length)) < 0)
        {
            CHECK(AS_BACK_PRESSURED == position || AS_ADMIN_ACTION == position || AS_NOT_CONNECTED == position);
            CHECK(test_now_ns() < deadline_ns);
            sched_yield();
        }
    }
}

typedef struct writer
{
    pthread_t thread;
    as_client *client;
    as_publication *publication;
    int64_t publisher;
    int64_t count;
    int64_t length;
} writer;

static void *write_stream(void *context)
{
    writer *w = context;
    publish(w->publication, w->publisher, w->count, w->length);
    return NULL;
}

/* Three threads on one handle or a handle each, one client, less than three terms: the sanitizer sees every access. */
static void concurrent_publishers(world *w)
{
    as_client *client = open_client(w, 1000000, 0);
    reader r = { .wanted = 3 * 400 };
    CHECK_I64(as_client_add_subscription(client, IPC_64K, STREAM, &r.subscription), AS_OK);
    writer writers[3];
    for (int64_t i = 0; i < 3; i++)
    {
        writers[i] = (writer){ .publisher = i, .count = 400, .length = 1 == i ? 16 : 100 };
        if (2 == i)
        {
            writers[i].publication = writers[1].publication;
        }
        else
        {
            CHECK_I64(as_client_add_publication(client, IPC_64K, STREAM, &writers[i].publication), AS_OK);
        }
        CHECK(0 == pthread_create(&writers[i].thread, NULL, write_stream, &writers[i]));
    }
    read_stream(&r);
    for (int i = 0; i < 3; i++)
    {
        pthread_join(writers[i].thread, NULL);
    }
    as_client_close(client);
}

static void long_streams(world *w)
{
    as_client *client = open_client(w, 1000000, 0);
    as_client *publishing = open_client(w, 1000000, 0);
    reader r = { .wanted = 2 * 20000 };
    CHECK_I64(as_client_add_subscription(client, IPC_64K, STREAM, &r.subscription), AS_OK);
    writer writers[2];
    for (int64_t i = 0; i < 2; i++)
    {
        writers[i] = (writer){ .publisher = i, .count = 20000, .length = 0 == i ? 40 : 1500,
            .publication = add_exclusive(publishing) };
        CHECK(0 == pthread_create(&writers[i].thread, NULL, write_stream, &writers[i]));
    }
    read_stream(&r);
    for (int i = 0; i < 2; i++)
    {
        pthread_join(writers[i].thread, NULL);
    }
    as_client_close(publishing);
    as_client_close(client);
}

static void *churn(void *context)
{
    writer *w = context;
    for (int64_t i = 0; i < w->count; i++)
    {
        as_publication *publication = add_exclusive(w->client);
        publish(publication, w->publisher + i, 50, w->length);
        as_publication_close(publication);
    }
    return NULL;
}

/* Images come and go while they are polled, with no linger at all: what a poll holds must live by the sequence alone. */
static void images_come_and_go(bool fences_for_all)
{
    world w;
    world_open_driver(&w, true);
    as_client *client = open_client(&w, 100000, 0);
    as_client *publishing = open_client(&w, 100000, 0);
    client->fences_for_all = client->fences_for_all && fences_for_all;
    reader r = { .wanted = 2 * 30 * 50 };
    CHECK_I64(as_client_add_subscription(client, IPC_64K, STREAM, &r.subscription), AS_OK);
    writer writers[2];
    for (int64_t i = 0; i < 2; i++)
    {
        writers[i] = (writer){ .client = publishing, .publisher = 32 * i, .count = 30, .length = 200 };
        CHECK(0 == pthread_create(&writers[i].thread, NULL, churn, &writers[i]));
    }
    read_stream(&r);
    for (int i = 0; i < 2; i++)
    {
        pthread_join(writers[i].thread, NULL);
    }
    AWAIT(&w, asi_load_acquire_i64(&w.unavailable_images) >= 60);
    AWAIT(&w, 0 == as_subscription_image_count(r.subscription));
    as_client_close(publishing);
    as_client_close(client);
    world_close(&w);
}

static void images_come_and_go_under_a_poll(void)
{
    images_come_and_go(true);
}

static void images_come_and_go_where_the_kernel_has_no_fence_for_all(void)
{
    images_come_and_go(false);
}

/* Another thread reads images and keeps some while the polling thread polls and images end. */
typedef struct onlooker
{
    as_subscription *subscription;
    bool is_done; /* atomic */
    int64_t seen; /* atomic, written by the onlooker */
} onlooker;

static void *look_on(void *context)
{
    onlooker *o = context;
    while (!asi_load_acquire_bool(&o->is_done))
    {
        as_image *image = as_subscription_image_at(o->subscription, 0);
        if (NULL != image)
        {
            as_image_constants constants;
            as_image_get_constants(image, &constants);
            CHECK_I64(constants.stream_id, STREAM);
            CHECK(as_image_position(image) >= 0 && as_image_end_of_stream_position(image) >= 0);
            asi_store_release_i64(&o->seen, o->seen + 1);
            as_image_release(image);
        }
        sched_yield();
    }
    return NULL;
}

static void images_looked_at_by_others(world *w)
{
    as_client *client = open_client(w, 100000, 0);
    reader r = { .wanted = 20 * 50 };
    CHECK_I64(as_client_add_subscription(client, IPC_64K, STREAM, &r.subscription), AS_OK);
    onlooker o = { .subscription = r.subscription };
    pthread_t looking;
    CHECK(0 == pthread_create(&looking, NULL, look_on, &o));
    writer churning = { .client = client, .count = 20, .length = 100 };
    CHECK(0 == pthread_create(&churning.thread, NULL, churn, &churning));
    read_stream(&r);
    pthread_join(churning.thread, NULL);
    /* A busy machine may not have let the onlooker run until now: one more image stays until it has been looked at. */
    as_publication *staying;
    CHECK_I64(as_client_add_publication(client, IPC_64K, STREAM, &staying), AS_OK);
    AWAIT(w, asi_load_acquire_i64(&o.seen) > 0);
    asi_store_release_bool(&o.is_done, true);
    pthread_join(looking, NULL);
    as_publication_close(staying);
    as_client_close(client);
}

static void *add_and_close(void *context)
{
    writer *w = context;
    for (int64_t i = 0; i < w->count; i++)
    {
        as_publication *publication;
        as_subscription *subscription;
        as_counter *counter;
        CHECK_I64(as_client_add_publication(w->client, "aeron:ipc", 2000 + (int32_t)w->publisher, &publication), AS_OK);
        CHECK_I64(as_client_add_subscription(w->client, "aeron:ipc", 3000, &subscription), AS_OK);
        CHECK_I64(as_client_add_counter(w->client, 1000, NULL, 0, "c", &counter), AS_OK);
        CHECK_I64(as_counter_add(counter, 1), 0);
        CHECK(AS_E_PEER == as_client_add_publication(w->client, "aeron:ipc?mtu=1", 1, &publication));
        as_counter_close(counter);
        as_subscription_close(subscription);
        as_publication_close(publication);
    }
    return NULL;
}

/* Blocking calls drive the conductor themselves: were they to wait for its sleep, this would take minutes. */
static void adding_does_not_wait_for_the_conductor(world *w)
{
    const int64_t sleep_ns = 1000000000;
    as_client *client = open_client(w, sleep_ns, 0);
    const int64_t begin_ns = test_now_ns();
    writer writers[2];
    for (int64_t i = 0; i < 2; i++)
    {
        writers[i] = (writer){ .client = client, .publisher = i, .count = 50 };
        CHECK(0 == pthread_create(&writers[i].thread, NULL, add_and_close, &writers[i]));
    }
    for (int i = 0; i < 2; i++)
    {
        pthread_join(writers[i].thread, NULL);
    }
    CHECK(test_now_ns() - begin_ns < 50 * sleep_ns);
    as_client_close(client);
}

static void *offer_until_closed(void *context)
{
    as_publication *publication = context;
    const uint8_t data[100] = { 0 };
    const int64_t deadline_ns = test_now_ns() + TIMEOUT_NS;
    while (AS_PUBLICATION_CLOSED != as_publication_offer(publication, data, sizeof(data)))
    {
        CHECK(test_now_ns() < deadline_ns);
        sched_yield();
    }
    return NULL;
}

static void ignore(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)context;
    (void)data;
    (void)length;
    (void)header;
}

static void *poll_until_closed(void *context)
{
    as_subscription *subscription = context;
    const int64_t deadline_ns = test_now_ns() + TIMEOUT_NS;
    int64_t result;
    while ((result = as_subscription_poll(subscription, ignore, NULL, 10)) >= 0)
    {
        CHECK(test_now_ns() < deadline_ns);
        sched_yield();
    }
    CHECK_I64(result, AS_E_CLOSED);
    return NULL;
}

static void driver_goes_while_streams_run(world *w)
{
    as_client *client = open_client(w, 1000000, 0);
    as_client *publishing = open_client(w, 1000000, 0);
    as_subscription *subscription;
    CHECK_I64(as_client_add_subscription(client, IPC_64K, STREAM, &subscription), AS_OK);
    as_publication *publication = add_exclusive(publishing);
    AWAIT(w, as_publication_position_limit(publication) > 0 && as_subscription_is_connected(subscription));
    pthread_t threads[2];
    CHECK(0 == pthread_create(&threads[0], NULL, offer_until_closed, publication));
    CHECK(0 == pthread_create(&threads[1], NULL, poll_until_closed, subscription));
    as_driver_close(w->driver);
    w->driver = NULL;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    AWAIT(w, 2 == asi_load_acquire_i64(&w->errors));
    AWAIT(w, 2 == asi_load_acquire_i64(&w->closes));
    CHECK(as_client_is_closed(client) && as_client_is_closed(publishing));
    as_client_close(publishing);
    as_client_close(client);
}

typedef struct batch_writer
{
    as_publication *publication;
    int64_t batches;
} batch_writer;

#define BATCH 500
#define ROW_LENGTH 64

static void *write_batches(void *context)
{
    batch_writer *b = context;
    static uint8_t data[BATCH * ROW_LENGTH];
    static int32_t offsets[BATCH + 1];
    for (int64_t batch = 0; batch < b->batches; batch++)
    {
        for (int i = 0; i < BATCH; i++)
        {
            fill_payload(data + i * ROW_LENGTH, batch * BATCH + i, ROW_LENGTH);
            offsets[i + 1] = (i + 1) * ROW_LENGTH;
        }
        const as_messages messages = { .count = BATCH, .data = data, .offsets32 = offsets };
        as_offer_outcome outcome;
        CHECK_I64(as_publication_offer_messages(b->publication, &messages, TIMEOUT_NS, &outcome), AS_OK);
        CHECK_I64(outcome.accepted, BATCH);
    }
    return NULL;
}

static void batches_and_columns(world *w)
{
    as_client *client = open_client(w, 1000000, 0);
    as_client *publishing = open_client(w, 1000000, 0);
    as_subscription *subscription;
    CHECK_I64(as_client_add_subscription(client, IPC_64K, STREAM, &subscription), AS_OK);
    batch_writer b = { .publication = add_exclusive(publishing), .batches = 40 };
    pthread_t thread;
    CHECK(0 == pthread_create(&thread, NULL, write_batches, &b));
    static uint8_t value[300 * ROW_LENGTH];
    static int32_t value_offset[301];
    int64_t rows = 0;
    while (rows < b.batches * BATCH)
    {
        as_columns columns = { .row_capacity = 300, .byte_capacity = sizeof(value), .value = value, .value_offset = value_offset };
        CHECK_I64(as_subscription_poll_columns(subscription, &columns, TIMEOUT_NS), AS_OK);
        CHECK(columns.row_count > 0);
        for (int64_t i = 0; i < columns.row_count; i++)
        {
            CHECK_I64(value_offset[i + 1] - value_offset[i], ROW_LENGTH);
            check_payload(value + value_offset[i], rows + i, ROW_LENGTH);
        }
        rows += columns.row_count;
    }
    pthread_join(thread, NULL);
    as_client_close(publishing);
    as_client_close(client);
}

/* In a forked child: what a program's clean-up would do. */
static void close_all(const world *w, const pair *p)
{
    as_publication *publication;
    CHECK_I64(as_client_add_publication(w->client, IPC_64K, STREAM, &publication), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "forked"));
    as_publication_close(p->publication);
    as_subscription_close(p->subscription);
    as_client_close(w->client);
    as_driver_close(w->driver);
}

/* A fork takes no thread with it, but every pointer: closing in the child must neither hang nor end the parent's client,
 * driver or stream. */
static void forked_children_leave_all_alone(void)
{
    for (int threads = 0; threads < 2; threads++)
    {
        world w;
        world_open(&w, 1 == threads);
        pair p = world_pair(&w, IPC_64K, true);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (0 == child)
        {
            close_all(&w, &p);
            _exit(0);
        }
        int status = -1;
        pid_t ended = 0;
        const int64_t deadline_ns = test_now_ns() + TIMEOUT_NS / 2;
        while (0 == (ended = waitpid(child, &status, WNOHANG)) && test_now_ns() < deadline_ns)
        {
            world_turn(&w);
        }
        if (0 == ended)
        {
            kill(child, SIGKILL);
        }
        CHECK_I64(ended, child);
        CHECK_I64(status, 0);
        world_turn(&w);
        CHECK(!as_client_is_closed(w.client));
        int64_t position;
        AWAIT(&w, (position = as_publication_offer(p.publication, (const uint8_t *)"hello", 5)) > 0);
        as_publication *another = world_publication(&w, IPC_64K, true);
        as_publication_close(another);
        CHECK(asi_dir_exists(w.dir));
        world_close_pair(&p);
        world_close(&w);
    }
}

#define RUN_BESIDE_DRIVER(test) RUN_IN(world, world_open_driver(&fixture, true), test, world_close(&fixture))

int main(void)
{
    RUN_BESIDE_DRIVER(concurrent_publishers);
    RUN_BESIDE_DRIVER(long_streams);
    RUN(images_come_and_go_under_a_poll);
    RUN(images_come_and_go_where_the_kernel_has_no_fence_for_all);
    RUN_BESIDE_DRIVER(images_looked_at_by_others);
    RUN_BESIDE_DRIVER(adding_does_not_wait_for_the_conductor);
    RUN_BESIDE_DRIVER(driver_goes_while_streams_run);
    RUN_BESIDE_DRIVER(batches_and_columns);
    RUN(forked_children_leave_all_alone);
    return 0;
}
