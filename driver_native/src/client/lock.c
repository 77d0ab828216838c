/* See lock.h. */
#include "client/lock.h"

#include "base/fork.h"

as_result asi_client_lock(as_client *client)
{
    if (__builtin_expect(client->generation != asi_fork_generation(), 0))
    {
        return asi_fail(AS_E_USAGE, 0, "the client was opened by process %lld, a forked child must open its own",
            (long long)client->pid);
    }
    const int error = pthread_mutex_lock(&client->mutex);
    return 0 == error ? AS_OK :
        asi_fail(AS_E_USAGE, error, "a handler called into its client, hand the work to another thread");
}

void asi_client_unlock(as_client *client)
{
    pthread_mutex_unlock(&client->mutex);
}

as_result asi_client_fail_closed(as_client *client)
{
    return asi_fail(AS_E_CLOSED, client->close_code, "client of %s is closed: %s", client->aeron_dir, client->close_reason);
}

as_result asi_client_lock_open(as_client *client)
{
    const as_result result = asi_client_lock(client);
    if (AS_OK == result && client->is_closed)
    {
        const as_result closed = asi_client_fail_closed(client);
        asi_client_unlock(client);
        return closed;
    }
    return result;
}
