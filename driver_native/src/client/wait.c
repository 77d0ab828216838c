/* See wait.h. */
#include "client/wait.h"

#include "client/conductor.h"
#include "client/lock.h"
#include "client/request.h"

asi_idle asi_client_backoff(void)
{
    return (asi_idle){
        .kind = ASI_IDLE_BACKOFF, .max_spins = 20, .max_yields = 50, .min_park_ns = 1000, .max_park_ns = 100000, .park_ns = 1000
    };
}

int as_client_invoke(as_client *client)
{
    if (!client->options.use_invoker)
    {
        return asi_fail(AS_E_USAGE, 0, "the client has a conductor thread, open it with use_invoker to invoke it");
    }
    if (AS_OK != asi_client_lock(client))
    {
        return AS_E_USAGE;
    }
    const int work_count = asi_conductor_service(client);
    asi_client_unlock(client);
    return work_count;
}

void asi_client_idle(as_client *client, asi_idle *idle)
{
    if (client->options.use_invoker)
    {
        if (NULL != client->options.driver_invoker)
        {
            client->options.driver_invoker(client->options.driver_invoker_context);
        }
        if (as_client_invoke(client) > 0 || NULL != client->options.driver_invoker)
        {
            return;
        }
    }
    asi_idle_cycle(idle, 0);
}

as_result asi_request_wait(as_client *client, asi_request *request, void **resource, int32_t *value)
{
    asi_idle idle = asi_client_backoff();
    for (;;)
    {
        as_result result = asi_client_lock(client);
        if (AS_OK != result)
        {
            return result;
        }
        asi_conductor_service(client);
        if (ASI_REQUEST_AWAITING != request->state)
        {
            result = asi_request_take(client, request, resource, value);
            asi_client_unlock(client);
            return result;
        }
        asi_client_unlock(client);
        asi_client_idle(client, &idle);
    }
}
