/* Counters of the application. Spec: 01 §5.4, 03 §15.7. */
#include "client/counter.h"

#include <errno.h>
#include <stdlib.h>

#include "client/lock.h"
#include "client/request.h"

as_result asi_counter_create(as_client *client, asi_request *request, int32_t counter_id)
{
    if (counter_id < 0 || counter_id >= client->counters.max_count)
    {
        return asi_fail(AS_E_DATA, 0, "the driver announced counter %d, ids are 0 to %d", counter_id,
            client->counters.max_count - 1);
    }
    as_counter *counter = calloc(1, sizeof(*counter));
    if (NULL == counter)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a counter");
    }
    counter->client = client;
    counter->value = asi_counter_addr(&client->counters, counter_id);
    counter->value_registration_id = asi_counter_registration(counter->value);
    counter->counter_id = counter_id;
    counter->is_static = ASI_REQUEST_STATIC_COUNTER == request->kind;
    counter->registration_id = counter->is_static ? request->counter_registration_id : request->correlation_id;
    counter->next = client->owned_counters;
    client->owned_counters = counter;
    asi_request_done(request, counter, counter_id);
    return AS_OK;
}

void as_counter_close(as_counter *counter)
{
    if (NULL == counter || AS_OK != asi_client_lock(counter->client))
    {
        return;
    }
    as_client *client = counter->client;
    for (as_counter **link = &client->owned_counters; NULL != *link; link = &(*link)->next)
    {
        if (*link == counter)
        {
            *link = counter->next;
            if (!counter->is_static && !counter->is_closed)
            {
                asi_client_send_remove(client, ASI_CMD_REMOVE_COUNTER, counter->registration_id, 0);
            }
            free(counter);
            break;
        }
    }
    asi_client_unlock(client);
}

int32_t as_counter_id(const as_counter *counter)
{
    return counter->counter_id;
}

int64_t as_counter_registration_id(const as_counter *counter)
{
    return counter->registration_id;
}

int64_t *as_counter_address(as_counter *counter)
{
    return counter->value;
}

bool as_counter_is_closed(const as_counter *counter)
{
    /* The value record of a closed counter may belong to another one by now, also before the driver's word of it is read. */
    return asi_load_acquire_bool(&counter->is_closed) ||
        asi_counter_registration(counter->value) != counter->value_registration_id;
}

int64_t as_counter_get(const as_counter *counter)
{
    return as_counter_is_closed(counter) ? AS_NULL_VALUE : asi_load_acquire_i64(counter->value);
}

void as_counter_set(as_counter *counter, int64_t value)
{
    if (!as_counter_is_closed(counter))
    {
        asi_store_release_i64(counter->value, value);
    }
}

int64_t as_counter_add(as_counter *counter, int64_t delta)
{
    return as_counter_is_closed(counter) ? AS_NULL_VALUE : asi_fetch_add_i64(counter->value, delta);
}
