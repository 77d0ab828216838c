/* Publications of a client. */
#ifndef ASI_CLIENT_PUBLICATION_H
#define ASI_CLIENT_PUBLICATION_H

#include "client/state.h"

as_result asi_client_publication_create(
    as_client *client, asi_request *request, const asi_rsp_publication_ready *ready, const char *path) AS_MUST_USE;
void asi_client_publication_free(as_publication *publication);
/* Tries once to append a message of length 0..max_message_length. */
int64_t asi_client_publication_append(as_publication *publication, const asi_append_source *source);

#endif
