/* The lock of a client, which every call takes that is not of the paths of messages. See state.h. */
#ifndef ASI_CLIENT_LOCK_H
#define ASI_CLIENT_LOCK_H

#include "client/state.h"

/* AS_E_USAGE when the calling thread holds the lock already, that is, calls from a handler, and in a forked child. */
as_result asi_client_lock(as_client *client) AS_MUST_USE;
/* AS_E_CLOSED with the reason when the client is closed; then it is not locked. */
as_result asi_client_lock_open(as_client *client) AS_MUST_USE;
void asi_client_unlock(as_client *client);
as_result asi_client_fail_closed(as_client *client);

#endif
