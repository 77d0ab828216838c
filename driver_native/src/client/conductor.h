/* The client's conductor: driver answers and events, keepalives, timeouts. Thread rule: the caller holds the client's lock. */
#ifndef ASI_CLIENT_CONDUCTOR_H
#define ASI_CLIENT_CONDUCTOR_H

#include "client/state.h"

int asi_conductor_service(as_client *client);
/* Closes the client for good and reports the reason once. AS_OK as class: the application closes it. */
void asi_conductor_terminate(as_client *client, as_result failure, int32_t code, const char *text);

#endif
