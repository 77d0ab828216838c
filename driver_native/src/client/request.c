/* Sends commands to the driver and waits for its answers; see client.h. Spec: 03 §2, §15.5.
 *
 * A request is added to the client's list before its command is sent. Any thread may receive the answer, and it finds the
 * request there. If an answer arrives after its owner gave up, the client undoes it in the driver, so that nothing leaks
 * there. */
#include "client/request.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lock.h"

#define SEND_TRIES 10

/* -- commands ----------------------------------------------------------------------------------------------------------- */

void asi_command_start(asi_command *command, int32_t type_id, const void *fixed, int64_t fixed_length)
{
    command->type_id = type_id;
    command->length = 0;
    asi_command_put(command, fixed, fixed_length);
}

void asi_command_put(asi_command *command, const void *bytes, int64_t length)
{
    /* The callers have bounded every part; this checks their sum. */
    AS_ASSERT(length >= 0 && length <= ASI_COMMAND_CAPACITY - command->length);
    if (length > 0)
    {
        memcpy(command->bytes + command->length, bytes, (size_t)length);
        command->length += length;
    }
}

static as_result send(as_client *client, int32_t type_id, const void *message, int64_t length, int64_t deadline_ns)
{
    for (int tries = 1;; tries++)
    {
        const as_result result = asi_ring_mpsc_write(&client->ring, type_id, message, length);
        if (AS_AGAIN != result)
        {
            return result;
        }
        if (tries >= SEND_TRIES && asi_clock_ns(&client->clock) >= deadline_ns)
        {
            return asi_fail(AS_E_TIMEOUT, 0,
                "command ring of the driver in %s is full, the driver is too slow, stuck or gone", client->aeron_dir);
        }
        if (client->options.use_invoker && NULL != client->options.driver_invoker)
        {
            client->options.driver_invoker(client->options.driver_invoker_context);
        }
        sched_yield();
    }
}

/* -- lifetime of a request ---------------------------------------------------------------------------------------------- */

as_result asi_request_new(as_client *client, asi_request_kind kind, const char *channel, int32_t stream_id, asi_request **request)
{
    if (NULL != channel && strlen(channel) > AS_CHANNEL_MAX_LENGTH)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "channel has %zu bytes, at most %d are possible", strlen(channel),
            AS_CHANNEL_MAX_LENGTH);
    }
    asi_request *fresh = calloc(1, sizeof(*fresh));
    char *copy = NULL == channel ? NULL : strdup(channel);
    if (NULL == fresh || (NULL != channel && NULL == copy))
    {
        free(fresh);
        free(copy);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a request");
    }
    fresh->kind = kind;
    fresh->channel = copy;
    fresh->stream_id = stream_id;
    fresh->correlation_id = asi_ring_mpsc_next_correlation_id(&client->ring);
    fresh->deadline_ns = asi_clock_ns(&client->clock) + client->options.driver_timeout_ns;
    *request = fresh;
    return AS_OK;
}

void asi_request_free(asi_request *request)
{
    free(request->channel);
    free(request->text);
    free(request);
}

asi_request *asi_request_find(as_client *client, int64_t correlation_id)
{
    asi_request *request = client->requests;
    while (NULL != request && request->correlation_id != correlation_id)
    {
        request = request->next;
    }
    return request;
}

void asi_request_unlink(as_client *client, asi_request *request)
{
    for (asi_request **link = &client->requests; NULL != *link; link = &(*link)->next)
    {
        if (*link == request)
        {
            *link = request->next;
            return;
        }
    }
}

as_result asi_request_send(as_client *client, asi_request *request, const asi_command *command, bool wait_for_room)
{
    as_result result = asi_client_lock_open(client);
    if (AS_OK != result)
    {
        asi_request_free(request);
        return result;
    }
    request->next = client->requests;
    client->requests = request;
    const int64_t deadline_ns = wait_for_room ? request->deadline_ns : 0;
    asi_client_unlock(client);
    result = send(client, command->type_id, command->bytes, command->length, deadline_ns);
    if (AS_OK != result)
    {
        if (AS_OK == asi_client_lock(client))
        {
            asi_request_unlink(client, request);
            asi_client_unlock(client);
        }
        asi_request_free(request);
    }
    return result;
}

as_result asi_request_take(as_client *client, asi_request *request, void **resource, int32_t *value)
{
    as_result result = AS_OK;
    if (ASI_REQUEST_DONE == request->state)
    {
        if (NULL != resource)
        {
            *resource = request->resource;
        }
        if (NULL != value)
        {
            *value = request->value;
        }
    }
    else
    {
        result = asi_fail(request->failure, request->code, "%s", NULL == request->text ? "no memory for the text" : request->text);
    }
    if (request->is_answered)
    {
        asi_request_unlink(client, request);
        asi_request_free(request);
    }
    else
    {
        request->state = ASI_REQUEST_ABANDONED;
    }
    return result;
}

void asi_request_fail(asi_request *request, as_result failure, int32_t code, const char *text, int64_t text_length)
{
    request->state = ASI_REQUEST_FAILED;
    request->failure = failure;
    request->code = code;
    request->text = strndup(text, (size_t)text_length);
}

void asi_request_done(asi_request *request, void *resource, int32_t value)
{
    request->state = ASI_REQUEST_DONE;
    request->is_answered = true;
    request->resource = resource;
    request->value = value;
}

void asi_request_undo(as_client *client, asi_request *request)
{
    switch (request->kind)
    {
        case ASI_REQUEST_PUBLICATION:
        case ASI_REQUEST_EXCLUSIVE_PUBLICATION:
            asi_client_send_remove(client, ASI_CMD_REMOVE_PUBLICATION, request->correlation_id, 0);
            break;
        case ASI_REQUEST_SUBSCRIPTION:
            asi_client_send_remove(client, ASI_CMD_REMOVE_SUBSCRIPTION, request->correlation_id, 0);
            break;
        case ASI_REQUEST_COUNTER:
            asi_client_send_remove(client, ASI_CMD_REMOVE_COUNTER, request->correlation_id, 0);
            break;
        case ASI_REQUEST_STATIC_COUNTER: /* a static counter lives as long as the driver by definition */
        case ASI_REQUEST_OPERATION:
        case ASI_REQUEST_SESSION_ID:
            break;
    }
    request->is_answered = true;
    if (ASI_REQUEST_ABANDONED == request->state)
    {
        asi_request_unlink(client, request);
        asi_request_free(request);
    }
}

int asi_request_check_deadlines(as_client *client, int64_t now_ns)
{
    int expired = 0;
    for (asi_request *request = client->requests; NULL != request; request = request->next)
    {
        if (ASI_REQUEST_AWAITING == request->state && now_ns >= request->deadline_ns)
        {
            char text[256];
            const int length = snprintf(text, sizeof(text),
                "no answer of the driver within %" PRId64 " ms (correlation id %" PRId64 "), see its error log",
                client->options.driver_timeout_ns / 1000000, request->correlation_id);
            asi_request_fail(request, AS_E_TIMEOUT, 0, text, length);
            expired++;
        }
    }
    return expired;
}

/* -- removals ----------------------------------------------------------------------------------------------------------- */

static int64_t remove_length(int32_t type_id)
{
    return ASI_CMD_REMOVE_PUBLICATION == type_id ? (int64_t)sizeof(asi_cmd_remove_publication) : (int64_t)sizeof(asi_cmd_remove);
}

AS_STATIC_ASSERT(offsetof(asi_cmd_remove_publication, flags) == sizeof(asi_cmd_remove), "one struct serves every removal");

void asi_client_send_remove(as_client *client, int32_t type_id, int64_t registration_id, uint64_t flags)
{
    if (client->is_closed)
    {
        return; /* CLIENT_CLOSE has removed everything */
    }
    const asi_cmd_remove_publication message = {
        .correlated = { .client_id = client->client_id, .correlation_id = asi_ring_mpsc_next_correlation_id(&client->ring) },
        .registration_id = registration_id,
        .flags = flags,
    };
    if (AS_OK == asi_ring_mpsc_write(&client->ring, type_id, &message, remove_length(type_id)))
    {
        return;
    }
    asi_unsent *unsent = calloc(1, sizeof(*unsent));
    if (NULL != unsent)
    {
        *unsent = (asi_unsent){ .message = message, .type_id = type_id, .next = client->unsent };
        client->unsent = unsent;
    }
}

int asi_client_retry_unsent(as_client *client)
{
    int sent = 0;
    while (NULL != client->unsent)
    {
        asi_unsent *unsent = client->unsent;
        if (AS_OK != asi_ring_mpsc_write(&client->ring, unsent->type_id, &unsent->message, remove_length(unsent->type_id)))
        {
            break;
        }
        client->unsent = unsent->next;
        free(unsent);
        sent++;
    }
    return sent;
}
