/* A driver of ours and a client in one process. By default the test's thread invokes both, so that every run is the
 * same; with `threads` both run their own. Nothing sleeps: AWAIT runs both until a condition holds or 20 s have passed. */
#ifndef AS_TESTS_CLIENT_WORLD_H
#define AS_TESTS_CLIENT_WORLD_H

#include <sched.h>

#include "aeron_spark/as_client.h"
#include "aeron_spark/as_driver.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "support.h"

#define IPC_64K "aeron:ipc?term-length=64k"
#define STREAM 1001
#define TIMEOUT_NS 20000000000LL

typedef struct world
{
    char scratch[SCRATCH_CAPACITY];
    char dir[SCRATCH_CAPACITY + 8];
    bool has_threads;
    as_driver *driver;
    as_client *client;
    /* What handlers saw. */
    int64_t available_images;
    int64_t unavailable_images;
    int64_t available_counters;
    int64_t unavailable_counters;
    int64_t errors;
    int64_t closes;
    char error_text[1024];
    as_result error_class;
    int32_t error_code;
    int64_t publication_errors;
    int32_t publication_error_code;
} world;

static inline int64_t test_now_ns(void)
{
    const asi_clock clock = asi_clock_system();
    return asi_clock_ns(&clock);
}

static inline void world_turn(world *w)
{
    if (w->has_threads)
    {
        sched_yield();
        return;
    }
    as_driver_do_work(w->driver);
    if (NULL != w->client)
    {
        as_client_invoke(w->client);
    }
}

#define AWAIT(w, condition)                                              \
    do                                                                   \
    {                                                                    \
        const int64_t await_deadline_ns = test_now_ns() + TIMEOUT_NS;   \
        while (!(condition))                                             \
        {                                                                \
            CHECK(test_now_ns() < await_deadline_ns && #condition);      \
            world_turn(w);                                               \
        }                                                                \
    } while (0)

static inline void world_on_available(void *context, as_subscription *subscription, as_image *image)
{
    (void)subscription;
    CHECK(!as_image_is_closed(image));
    asi_fetch_add_i64(&((world *)context)->available_images, 1);
}

static inline void world_on_unavailable(void *context, as_subscription *subscription, as_image *image)
{
    (void)subscription;
    CHECK(as_image_is_closed(image));
    asi_fetch_add_i64(&((world *)context)->unavailable_images, 1);
}

static inline void world_on_available_counter(void *context, int64_t registration_id, int32_t counter_id)
{
    (void)registration_id;
    (void)counter_id;
    asi_fetch_add_i64(&((world *)context)->available_counters, 1);
}

static inline void world_on_unavailable_counter(void *context, int64_t registration_id, int32_t counter_id)
{
    (void)registration_id;
    (void)counter_id;
    asi_fetch_add_i64(&((world *)context)->unavailable_counters, 1);
}

static inline void world_on_error(void *context, as_result result, int32_t code, const char *text)
{
    world *w = context;
    w->error_class = result;
    w->error_code = code;
    snprintf(w->error_text, sizeof(w->error_text), "%s", text);
    asi_fetch_add_i64(&w->errors, 1);
}

static inline void world_on_close(void *context)
{
    asi_fetch_add_i64(&((world *)context)->closes, 1);
}

static inline void world_on_publication_error(
    void *context, int64_t registration_id, int32_t session_id, int32_t stream_id, int32_t code, const char *text)
{
    (void)registration_id;
    (void)session_id;
    (void)stream_id;
    (void)text;
    world *w = context;
    w->publication_errors++;
    w->publication_error_code = code;
}

static inline void world_invoke_driver(void *context)
{
    as_driver_do_work(((world *)context)->driver);
}

static inline void world_options(world *w, as_client_options *options)
{
    as_client_options_init(options);
    options->aeron_dir = w->dir;
    options->client_name = "test";
    options->use_invoker = !w->has_threads;
    options->driver_invoker = w->has_threads ? NULL : world_invoke_driver;
    options->driver_invoker_context = w;
    options->on_available_image = world_on_available;
    options->on_unavailable_image = world_on_unavailable;
    options->on_available_counter = world_on_available_counter;
    options->on_unavailable_counter = world_on_unavailable_counter;
    options->on_error = world_on_error;
    options->on_close = world_on_close;
    options->on_publication_error = world_on_publication_error;
    options->context = w;
}

static inline void world_set(as_driver_config *config, const char *name, const char *value)
{
    CHECK_I64(as_driver_config_set(config, name, value), AS_OK);
}

static inline void world_open_driver(world *w, bool threads)
{
    *w = (world){ .has_threads = threads };
    scratch_create(w->scratch);
    snprintf(w->dir, sizeof(w->dir), "%s/aeron", w->scratch);
    as_driver_config *config;
    CHECK_I64(as_driver_config_open(&config), AS_OK);
    world_set(config, "aeron.dir", w->dir);
    world_set(config, "aeron.threading.mode", threads ? "SHARED" : "INVOKER");
    world_set(config, "aeron.shared.idle.strategy", "yield");
    world_set(config, "aeron.ipc.term.buffer.length", "64k");
    world_set(config, "aeron.timer.interval", "10ms");
    CHECK_I64(as_driver_open(config, NULL, NULL, &w->driver), AS_OK);
    as_driver_config_close(config);
    if (threads)
    {
        CHECK_I64(as_driver_start(w->driver), AS_OK);
    }
}

static inline void world_open(world *w, bool threads)
{
    world_open_driver(w, threads);
    as_client_options options;
    world_options(w, &options);
    CHECK_I64(as_client_open(&options, &w->client), AS_OK);
}

static inline void world_close(world *w)
{
    as_client_close(w->client);
    as_driver_close(w->driver);
    scratch_delete(w->scratch);
}

static inline as_publication *world_publication(world *w, const char *channel, bool exclusive)
{
    as_publication *publication;
    CHECK_I64(exclusive ? as_client_add_exclusive_publication(w->client, channel, STREAM, &publication) :
        as_client_add_publication(w->client, channel, STREAM, &publication), AS_OK);
    return publication;
}

static inline as_subscription *world_subscription(world *w, const char *channel)
{
    as_subscription *subscription;
    CHECK_I64(as_client_add_subscription(w->client, channel, STREAM, &subscription), AS_OK);
    return subscription;
}

/* A connected pair. */
typedef struct pair
{
    as_publication *publication;
    as_subscription *subscription;
    as_image *image; /* retained */
    as_publication_constants constants;
} pair;

static inline pair world_pair(world *w, const char *channel, bool exclusive)
{
    pair p;
    p.subscription = world_subscription(w, IPC_64K);
    p.publication = world_publication(w, channel, exclusive);
    as_publication_get_constants(p.publication, &p.constants);
    AWAIT(w, NULL != (p.image = as_subscription_image_by_session(p.subscription, p.constants.session_id)));
    AWAIT(w, as_publication_is_connected(p.publication) && as_publication_position_limit(p.publication) > 0);
    return p;
}

static inline void world_close_pair(pair *p)
{
    as_image_release(p->image);
    as_publication_close(p->publication);
    as_subscription_close(p->subscription);
}

/* Message `number`'s bytes. */
static inline void fill_payload(uint8_t *to, int64_t number, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
    {
        to[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
    }
}

static inline void check_payload(const uint8_t *data, int64_t number, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
    {
        CHECK(data[i] == (uint8_t)(number * 31 + i * 7 + (i >> 8)));
    }
}

#define RUN_IN_WORLD(test) RUN_IN(world, world_open(&fixture, false), test, world_close(&fixture))

#endif
