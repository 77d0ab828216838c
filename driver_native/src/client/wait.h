/* Waiting for the driver: whoever waits runs the conductor meanwhile. Thread rule: any thread, without the lock. */
#ifndef ASI_CLIENT_WAIT_H
#define ASI_CLIENT_WAIT_H

#include "client/state.h"

/* One round of waiting for something others do: in invoker mode runs driver and conductor, else idles. */
void asi_client_idle(as_client *client, asi_idle *idle);
asi_idle asi_client_backoff(void);
/* Drives the conductor until the answer is there; consumes the request. `resource` and `value` may be NULL. */
as_result asi_request_wait(as_client *client, asi_request *request, void **resource, int32_t *value) AS_MUST_USE;

#endif
