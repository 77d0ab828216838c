/* The client's lock. Every call takes it, except offer, claim and poll. See state.h. */
#ifndef ASI_CLIENT_LOCK_H
#define ASI_CLIENT_LOCK_H

#include "client/state.h"

/* AS_E_USAGE when the calling thread already holds the lock (a call from a handler), and in a forked child. */
as_result asi_client_lock(as_client *client) AS_MUST_USE;
/* AS_E_CLOSED with the reason when the client is closed; the lock is not held then. */
as_result asi_client_lock_open(as_client *client) AS_MUST_USE;
void asi_client_unlock(as_client *client);
as_result asi_client_fail_closed(as_client *client);

#endif
