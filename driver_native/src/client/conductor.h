/* The client's conductor: the driver's answers and news, keepalives, timeouts. Thread rule: the client's lock is held. */
#ifndef ASI_CLIENT_CONDUCTOR_H
#define ASI_CLIENT_CONDUCTOR_H

#include "client/state.h"

int asi_conductor_service(as_client *client);
/* Closes everything for good and says why, once. AS_OK as class: the application closes. */
void asi_conductor_terminate(as_client *client, as_result failure, int32_t code, const char *text);

#endif
