/* Counters that a client owns. Thread rule: the client's lock is held. */
#ifndef ASI_CLIENT_COUNTER_H
#define ASI_CLIENT_COUNTER_H

#include "client/state.h"

as_result asi_counter_create(as_client *client, asi_request *request, int32_t counter_id) AS_MUST_USE;

#endif
