/* See liveness.h. */
#include "driver/ctl/liveness.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/atomic.h"
#include "driver/ctl/log_files.h"
#include "driver/ctl/report.h"
#include "driver/ctl/respond.h"

#define NANOS_PER_MS 1000000LL

asi_driver_client *asi_client_find(asi_conductor *conductor, int64_t client_id)
{
    for (int32_t i = 0; i < conductor->clients.count; i++)
    {
        asi_driver_client *client = conductor->clients.items[i];
        if (client_id == client->client_id)
        {
            return client;
        }
    }
    return NULL;
}

static as_result add_client(asi_conductor *conductor, int64_t client_id, asi_driver_client **added)
{
    asi_driver_client *client = calloc(1, sizeof(*client));
    if (NULL == client)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for client_id=%" PRId64, client_id);
    }
    char label[64];
    snprintf(label, sizeof(label), "client-heartbeat: id=%" PRId64, client_id);
    const asi_counter_request request = {
        .type_id = ASI_COUNTER_TYPE_CLIENT_HEARTBEAT,
        .key = &client_id,
        .key_length = sizeof(client_id),
        .label = label,
        .label_length = (int64_t)strlen(label),
        .registration_id = client_id,
        .owner_id = client_id,
        .initial_value = conductor->now_ms
    };
    client->client_id = client_id;
    as_result result =
        asi_counters_allocate(&conductor->counters, &request, conductor->now_ms, &client->heartbeat_counter_id);
    if (AS_OK != result)
    {
        free(client);
        return result;
    }
    result = asi_list_add(&conductor->clients, client);
    if (AS_OK != result)
    {
        asi_counters_free(&conductor->counters, client->heartbeat_counter_id, conductor->now_ms);
        free(client);
        return result;
    }
    client->heartbeat_ms = asi_counter_addr(&conductor->counters.counters, client->heartbeat_counter_id);
    asi_respond_i32(conductor, ASI_RSP_COUNTER_READY, client_id, client->heartbeat_counter_id);
    *added = client;
    return AS_OK;
}

as_result asi_client_get_or_add(asi_conductor *conductor, int64_t client_id, asi_driver_client **client)
{
    asi_driver_client *known = asi_client_find(conductor, client_id);
    if (NULL != known)
    {
        *client = known;
        return AS_OK;
    }
    return add_client(conductor, client_id, client);
}

as_result asi_client_add_link(asi_driver_client *client, const asi_ctl_publication_link *added)
{
    asi_ctl_publication_link *link = malloc(sizeof(*link));
    if (NULL == link)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for publication %" PRId64, added->registration_id);
    }
    *link = *added;
    const as_result result = asi_list_add(&client->publication_links, link);
    if (AS_OK != result)
    {
        free(link);
    }
    return result;
}

void asi_client_keepalive(asi_conductor *conductor, int64_t client_id)
{
    asi_driver_client *client = asi_client_find(conductor, client_id);
    if (NULL != client)
    {
        asi_store_release_i64(client->heartbeat_ms, conductor->now_ms);
    }
}

void asi_client_close(asi_conductor *conductor, int64_t client_id)
{
    asi_driver_client *client = asi_client_find(conductor, client_id);
    if (NULL != client)
    {
        client->closed_by_command = true;
        asi_store_release_i64(client->heartbeat_ms, 0);
    }
}

static void free_client(asi_driver_client *client)
{
    for (int32_t i = 0; i < client->publication_links.count; i++)
    {
        free(client->publication_links.items[i]);
    }
    for (int32_t i = 0; i < client->counters.count; i++)
    {
        free(client->counters.items[i]);
    }
    asi_list_close(&client->publication_links);
    asi_list_close(&client->counters);
    free(client);
}

/* Spec: 03 §12 - the order of the messages to other clients. */
static void reap(asi_conductor *conductor, asi_driver_client *client,
    void (*remove_subscriptions)(asi_conductor *conductor, int64_t client_id))
{
    if (!client->closed_by_command)
    {
        asi_conductor_count(conductor, ASI_SYSTEM_CLIENT_TIMEOUTS, 1);
        asi_respond_client_timeout(conductor, client->client_id);
    }
    asi_respond_i32(conductor, ASI_RSP_UNAVAILABLE_COUNTER, client->client_id, client->heartbeat_counter_id);
    for (int32_t i = 0; i < client->publication_links.count; i++)
    {
        const asi_ctl_publication_link *link = client->publication_links.items[i];
        link->release(link->publication, false);
    }
    for (int32_t i = 0; i < client->counters.count; i++)
    {
        const asi_client_counter *counter = client->counters.items[i];
        asi_respond_i32(conductor, ASI_RSP_UNAVAILABLE_COUNTER, counter->registration_id, counter->counter_id);
        asi_counters_free(&conductor->counters, counter->counter_id, conductor->now_ms);
    }
    asi_log_files_cancel_client(conductor, client->client_id);
    remove_subscriptions(conductor, client->client_id);
    asi_counters_free(&conductor->counters, client->heartbeat_counter_id, conductor->now_ms);
    free_client(client);
}

void asi_clients_on_timer(asi_conductor *conductor, void (*remove_subscriptions)(asi_conductor *conductor, int64_t client_id))
{
    const int64_t configured_ms = conductor->settings->client_liveness_timeout_ns / NANOS_PER_MS;
    const int64_t timeout_ms = configured_ms > 0 ? configured_ms : 1;
    for (int32_t i = conductor->clients.count - 1; i >= 0; i--)
    {
        asi_driver_client *client = conductor->clients.items[i];
        /* The client can write any heartbeat value; this order of the comparison cannot overflow. A closing client's thread may
         * have written it once more. */
        if (client->closed_by_command || conductor->now_ms - timeout_ms > asi_load_acquire_i64(client->heartbeat_ms))
        {
            asi_list_remove_at(&conductor->clients, i);
            reap(conductor, client, remove_subscriptions);
        }
    }
}

void asi_clients_release(asi_conductor *conductor)
{
    for (int32_t i = 0; i < conductor->clients.count; i++)
    {
        free_client(conductor->clients.items[i]);
    }
    asi_list_close(&conductor->clients);
}

static asi_counter_request counter_request(const asi_counter_command *command, int64_t registration_id, int64_t owner_id)
{
    return (asi_counter_request){
        .type_id = command->type_id,
        .key = command->key,
        .key_length = command->key_length,
        .label = command->label,
        .label_length = command->label_length,
        .registration_id = registration_id,
        .owner_id = owner_id
    };
}

as_result asi_counter_add(asi_conductor *conductor, const asi_counter_command *command)
{
    asi_driver_client *client = NULL;
    as_result result = asi_client_get_or_add(conductor, command->client_id, &client);
    if (AS_OK != result)
    {
        return result;
    }
    asi_client_counter *counter = malloc(sizeof(*counter));
    if (NULL == counter)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for counter %" PRId64, command->correlation_id);
    }
    counter->registration_id = command->correlation_id;
    const asi_counter_request request = counter_request(command, command->correlation_id, command->client_id);
    result = asi_counters_allocate(&conductor->counters, &request, conductor->now_ms, &counter->counter_id);
    if (AS_OK == result)
    {
        result = asi_list_add(&client->counters, counter);
        if (AS_OK != result)
        {
            asi_counters_free(&conductor->counters, counter->counter_id, conductor->now_ms);
        }
    }
    if (AS_OK != result)
    {
        free(counter);
        return result;
    }
    asi_respond_i32(conductor, ASI_RSP_COUNTER_READY, command->correlation_id, counter->counter_id);
    return AS_OK;
}

as_result asi_counter_add_static(asi_conductor *conductor, const asi_counter_command *command)
{
    asi_driver_client *client = NULL;
    as_result result = asi_client_get_or_add(conductor, command->client_id, &client);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_counters *counters = &conductor->counters.counters;
    int32_t counter_id = asi_counters_find_by_registration(counters, command->type_id, command->registration_id);
    if (counter_id >= 0 && AS_NULL_VALUE != counters->values[counter_id].owner_id)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_GENERIC, "cannot add static counter, because a non-static counter exists "
            "(counterId=%d) for typeId=%d and registrationId=%" PRId64, counter_id, command->type_id, command->registration_id);
    }
    if (counter_id < 0)
    {
        const asi_counter_request request = counter_request(command, command->registration_id, AS_NULL_VALUE);
        result = asi_counters_allocate(&conductor->counters, &request, conductor->now_ms, &counter_id);
        if (AS_OK != result)
        {
            return result;
        }
    }
    asi_respond_i32(conductor, ASI_RSP_STATIC_COUNTER, command->correlation_id, counter_id);
    return AS_OK;
}

as_result asi_counter_remove(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int64_t registration_id)
{
    asi_driver_client *client = asi_client_find(conductor, client_id);
    for (int32_t i = 0; NULL != client && i < client->counters.count; i++)
    {
        asi_client_counter *counter = client->counters.items[i];
        if (registration_id == counter->registration_id)
        {
            asi_list_remove_at(&client->counters, i);
            asi_respond_success(conductor, correlation_id);
            asi_respond_i32(conductor, ASI_RSP_UNAVAILABLE_COUNTER, registration_id, counter->counter_id);
            asi_counters_free(&conductor->counters, counter->counter_id, conductor->now_ms);
            free(counter);
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_COUNTER, "unknown counter client_id=%" PRId64 " registration_id=%" PRId64,
        client_id, registration_id);
}
