/* Opens and closes a client, and holds its lock and its waiting. The calls that add resources are in resources.c. See
 * client.h. Spec: 01 §2.3, 03 §15.1, §15.6. */
#include "client/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "client/conductor.h"
#include "client/lock.h"
#include "client/publication.h"
#include "client/request.h"
#include "client/subscription.h"

#define AWAIT_FILE_NS 16000000
#define AWAIT_HEARTBEAT_NS 1000000
#define AWAIT_DRIVER_NS 100000000

static const int64_t NS_PER_MS = 1000000;

void as_client_options_init(as_client_options *options)
{
    *options = (as_client_options){
        .driver_timeout_ns = 10000 * NS_PER_MS,
        .keepalive_interval_ns = 500 * NS_PER_MS,
        .idle_sleep_ns = 16 * NS_PER_MS,
        .resource_linger_ns = 3000 * NS_PER_MS,
    };
}

/* -- open --------------------------------------------------------------------------------------------------------------- */

static void wait_for_driver(const as_client *client, int64_t duration_ns)
{
    if (NULL != client->options.driver_invoker)
    {
        client->options.driver_invoker(client->options.driver_invoker_context);
        return;
    }
    const struct timespec ts = { .tv_sec = duration_ns / 1000000000, .tv_nsec = duration_ns % 1000000000 };
    nanosleep(&ts, NULL);
}

/* Checks the directory once. AS_AGAIN: no driver there yet; *pause_ns is the delay before the next check, and the error text
   names what is missing. */
static as_result attach(as_client *client, int64_t *pause_ns)
{
    *pause_ns = AWAIT_FILE_NS;
    const as_result result = asi_cnc_open_own_untrusted(&client->cnc, client->aeron_dir, &client->trust);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t heartbeat_ms = asi_cnc_driver_heartbeat(&client->cnc);
    const int64_t age_ms = asi_wrap_sub_i64(asi_clock_ms(&client->clock), heartbeat_ms);
    if (heartbeat_ms > 0 && age_ms <= asi_client_heartbeat_age_ms(client))
    {
        return AS_OK;
    }
    *pause_ns = 0 == heartbeat_ms ? AWAIT_HEARTBEAT_NS : AWAIT_DRIVER_NS;
    if (0 == heartbeat_ms)
    {
        asi_fail(AS_E_TIMEOUT, 0, "the driver (pid %lld) has written no heartbeat yet", (long long)client->cnc.pid);
    }
    else if (AS_NULL_VALUE == heartbeat_ms)
    {
        asi_fail(AS_E_TIMEOUT, 0, "the driver (pid %lld) has been shut down, start one", (long long)client->cnc.pid);
    }
    else
    {
        asi_fail(AS_E_TIMEOUT, 0, "the last heartbeat of the driver (pid %lld) is %lld ms old, start one",
            (long long)client->cnc.pid, (long long)age_ms);
    }
    asi_cnc_close(&client->cnc);
    return AS_AGAIN;
}

static as_result await_driver(as_client *client)
{
    const int64_t deadline_ns = asi_clock_ns(&client->clock) + client->options.driver_timeout_ns;
    for (;;)
    {
        int64_t pause_ns;
        const as_result result = attach(client, &pause_ns);
        if (AS_AGAIN != result)
        {
            return AS_OK == result ? AS_OK : asi_fail_in(result, "cannot use the driver in %s", client->aeron_dir);
        }
        const int64_t left_ns = deadline_ns - asi_clock_ns(&client->clock);
        if (left_ns <= 0)
        {
            asi_fail(AS_E_TIMEOUT, ASI_CLIENT_DRIVER_TIMEOUT, "%s", as_error_text());
            return asi_fail_in(AS_E_TIMEOUT, "no live driver in %s within %lld ms, is one running on that directory?",
                client->aeron_dir, (long long)(client->options.driver_timeout_ns / NS_PER_MS));
        }
        wait_for_driver(client, pause_ns < left_ns ? pause_ns : left_ns);
    }
}

static as_result open_sections(as_client *client)
{
    as_result result = asi_ring_mpsc_init(&client->ring, client->cnc.to_driver, client->cnc.lengths.to_driver);
    if (AS_OK == result)
    {
        result = asi_counters_init(&client->counters, client->cnc.counters_metadata, client->cnc.lengths.counters_metadata,
            client->cnc.counters_values, client->cnc.lengths.counters_values);
    }
    if (AS_OK == result && client->cnc.client_liveness_timeout_ns <= client->options.keepalive_interval_ns)
    {
        result = asi_fail(AS_E_USAGE, 0, "keepalive interval of %lld ns is not below the driver's client liveness "
            "timeout of %lld ns",
            (long long)client->options.keepalive_interval_ns, (long long)client->cnc.client_liveness_timeout_ns);
    }
    if (AS_OK == result)
    {
        result = asi_broadcast_receiver_open(&client->receiver, client->cnc.to_clients, client->cnc.lengths.to_clients);
    }
    return AS_OK == result ? AS_OK : asi_fail_in(result, "cannot use the driver in %s", client->aeron_dir);
}

static as_result take_options(as_client *client, const as_client_options *options)
{
    client->options = *options;
    if (options->driver_timeout_ns <= 0 || options->keepalive_interval_ns <= 0 || options->idle_sleep_ns < 0 ||
        options->resource_linger_ns < 0)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "client times must be positive (idle sleep and resource linger may be 0)");
    }
    if (NULL != options->driver_invoker && !options->use_invoker)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "a driver invoker needs use_invoker");
    }
    const char *name = NULL == options->client_name ? "" : options->client_name;
    if (strlen(name) >= sizeof(client->client_name))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "client name has %zu bytes, at most %d are possible", strlen(name),
            ASI_CLIENT_NAME_MAX_LENGTH);
    }
    memcpy(client->client_name, name, strlen(name) + 1);
    if (NULL == options->aeron_dir || '\0' == options->aeron_dir[0])
    {
        asi_default_aeron_dir(client->aeron_dir, sizeof(client->aeron_dir));
    }
    else if (strlen(options->aeron_dir) >= sizeof(client->aeron_dir))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "directory name has %zu bytes, at most %d are possible", strlen(options->aeron_dir),
            AS_PATH_MAX - 1);
    }
    else
    {
        memcpy(client->aeron_dir, options->aeron_dir, strlen(options->aeron_dir) + 1);
    }
    client->options.aeron_dir = client->aeron_dir;
    client->options.client_name = client->client_name;
    client->options.dir_owner = NULL; /* these point to the caller's strings; `trust` holds their meaning */
    client->options.dir_writers = NULL;
    client->logs.pre_touch = options->pre_touch;
    return asi_trust_parse(&client->trust, options->dir_owner, options->dir_writers);
}

static int run_conductor(void *context)
{
    as_client *client = context;
    pthread_mutex_lock(&client->mutex);
    const int work_count = asi_conductor_service(client);
    pthread_mutex_unlock(&client->mutex);
    return work_count;
}

static as_result start_conductor(as_client *client)
{
    const int64_t now_ns = asi_clock_ns(&client->clock);
    client->client_id = asi_ring_mpsc_next_correlation_id(&client->ring);
    client->heartbeat_counter_id = AS_NULL_VALUE;
    client->last_service_ns = now_ns;
    client->next_keepalive_ns = now_ns + client->options.keepalive_interval_ns;
    if (client->options.use_invoker)
    {
        return AS_OK;
    }
    const asi_idle idle = { .kind = ASI_IDLE_SLEEP, .min_park_ns = client->options.idle_sleep_ns };
    return asi_agent_start(&client->agent, "as-client", run_conductor, client, &idle, -1);
}

as_result asi_client_open_with_clock(const as_client_options *options, const asi_clock *clock, as_client **client)
{
    as_result result = asi_fork_watch();
    as_client *fresh = AS_OK == result ? calloc(1, sizeof(*fresh)) : NULL;
    if (NULL == fresh)
    {
        return AS_OK == result ? asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a client") : result;
    }
    fresh->clock = *clock;
    fresh->fences_for_all = asi_fence_for_all_prepare();
    fresh->pid = getpid();
    fresh->generation = asi_fork_generation();
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&fresh->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    result = take_options(fresh, options);
    result = AS_OK == result ? await_driver(fresh) : result;
    result = AS_OK == result ? open_sections(fresh) : result;
    result = AS_OK == result ? start_conductor(fresh) : result;
    if (AS_OK != result)
    {
        asi_broadcast_receiver_close(&fresh->receiver);
        asi_cnc_close(&fresh->cnc);
        pthread_mutex_destroy(&fresh->mutex);
        free(fresh);
        return result;
    }
    *client = fresh;
    return AS_OK;
}

as_result as_client_open(const as_client_options *options, as_client **client)
{
    const asi_clock clock = asi_clock_system();
    return asi_client_open_with_clock(options, &clock, client);
}

/* -- close -------------------------------------------------------------------------------------------------------------- */

static void free_resources(as_client *client)
{
    while (NULL != client->publications)
    {
        as_publication *publication = client->publications;
        client->publications = publication->next;
        asi_client_publication_free(publication);
    }
    while (NULL != client->subscriptions)
    {
        as_subscription *subscription = client->subscriptions;
        client->subscriptions = subscription->next;
        asi_client_subscription_free(subscription);
    }
    while (NULL != client->retired_images)
    {
        as_image *image = client->retired_images;
        client->retired_images = image->next;
        /* Closes an image that the application still holds; the application's release frees it. */
        as_image_release(image);
    }
    while (NULL != client->owned_counters)
    {
        as_counter *counter = client->owned_counters;
        client->owned_counters = counter->next;
        free(counter);
    }
    while (NULL != client->requests)
    {
        asi_request *request = client->requests;
        client->requests = request->next;
        asi_request_free(request);
    }
    while (NULL != client->unsent)
    {
        asi_unsent *unsent = client->unsent;
        client->unsent = unsent->next;
        free(unsent);
    }
}

void as_client_close(as_client *client)
{
    if (NULL == client || AS_OK != asi_client_lock(client))
    {
        return;
    }
    asi_client_unlock(client);
    asi_agent_stop(&client->agent);
    if (AS_OK == asi_client_lock(client))
    {
        asi_conductor_terminate(client, AS_OK, 0, "the application closed it");
        asi_client_unlock(client);
    }
    free_resources(client);
    asi_log_cache_close(&client->logs);
    asi_broadcast_receiver_close(&client->receiver);
    asi_cnc_close(&client->cnc);
    pthread_mutex_destroy(&client->mutex);
    free(client);
}

/* -- other calls -------------------------------------------------------------------------------------------------------- */

int64_t as_client_id(const as_client *client)
{
    return client->client_id;
}

bool as_client_is_closed(const as_client *client)
{
    return asi_load_acquire_bool(&client->is_closed);
}

const char *as_client_aeron_dir(const as_client *client)
{
    return client->aeron_dir;
}

int64_t as_client_next_correlation_id(as_client *client)
{
    return asi_ring_mpsc_next_correlation_id(&client->ring);
}
