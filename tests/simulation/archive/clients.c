/* See clients.h. */
#include "clients.h"

#include "client/client.h"

as_result clients_open(const as_client_options *options, const asi_clock *clock, as_client **client)
{
    return asi_client_open_with_clock(options, clock, client);
}
