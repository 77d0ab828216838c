/* Commands to the driver, and the requests that wait for its answers. Spec: 03 §2, §15.5. Thread rule: where not said otherwise, the
 * client's lock is held. */
#ifndef ASI_CLIENT_REQUEST_H
#define ASI_CLIENT_REQUEST_H

#include "client/state.h"

/* A fresh request with a correlation id; `channel` is copied. */
as_result asi_request_new(as_client *client, asi_request_kind kind, const char *channel, int32_t stream_id, asi_request **request)
    AS_MUST_USE;
/* Starts a command with its client and correlation id. */
void asi_command_start(asi_command *command, int32_t type_id, const void *fixed, int64_t fixed_length);
void asi_command_put(asi_command *command, const void *bytes, int64_t length);
/* Registers the request and sends the command. With `wait_for_room` a full ring is retried until the request's deadline,
 * else a few times. Consumes the request on failure. */
as_result asi_request_send(as_client *client, asi_request *request, const asi_command *command, bool wait_for_room) AS_MUST_USE;
/* Under the lock, the state being DONE or FAILED: hands out the answer and ends the request. */
as_result asi_request_take(as_client *client, asi_request *request, void **resource, int32_t *value) AS_MUST_USE;
/* For the conductor, under the lock. */
asi_request *asi_request_find(as_client *client, int64_t correlation_id);
void asi_request_fail(asi_request *request, as_result failure, int32_t code, const char *text, int64_t text_length);
void asi_request_done(asi_request *request, void *resource, int32_t value);
/* A late or unusable answer: takes back in the driver what the request made; forgets an abandoned request. */
void asi_request_undo(as_client *client, asi_request *request);
void asi_request_unlink(as_client *client, asi_request *request);
void asi_request_free(asi_request *request);
int asi_request_check_deadlines(as_client *client, int64_t now_ns);
/* Sends a removal now or, if the ring is full, from the conductor later. `flags` is for REMOVE_PUBLICATION. */
void asi_client_send_remove(as_client *client, int32_t type_id, int64_t registration_id, uint64_t flags);
int asi_client_retry_unsent(as_client *client);

#endif
