/* Adds publications, subscriptions and counters: blocking calls on top of the asynchronous ones. Spec: 03 §2, §15.5. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/rand.h"
#include "client/conductor.h"
#include "client/lock.h"
#include "client/request.h"
#include "client/wait.h"

/* -- commands of each kind ---------------------------------------------------------------------------------------------- */

static as_result check_channel(const char *channel)
{
    return NULL == channel || '\0' == channel[0] ? asi_fail(AS_E_USAGE, EINVAL, "no channel was given") : AS_OK;
}

static as_result send_add_publication(as_client *client, asi_request_kind kind, const char *channel, int32_t stream_id,
    bool wait_for_room, asi_request **request)
{
    as_result result = check_channel(channel);
    if (AS_OK == result)
    {
        result = asi_request_new(client, kind, channel, stream_id, request);
    }
    if (AS_OK != result)
    {
        return result;
    }
    const asi_cmd_publication fixed = {
        .correlated = { .client_id = client->client_id, .correlation_id = (*request)->correlation_id },
        .stream_id = stream_id,
        .channel_length = (int32_t)strlen(channel),
    };
    asi_command command;
    asi_command_start(&command,
        ASI_REQUEST_PUBLICATION == kind ? ASI_CMD_ADD_PUBLICATION : ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, &fixed, sizeof(fixed));
    asi_command_put(&command, channel, fixed.channel_length);
    return asi_request_send(client, *request, &command, wait_for_room);
}

typedef struct image_handlers
{
    as_on_image on_available;
    as_on_image on_unavailable;
    void *context;
} image_handlers;

static as_result send_add_subscription(as_client *client, const char *channel, int32_t stream_id, const image_handlers *handlers,
    bool wait_for_room, asi_request **request)
{
    as_result result = check_channel(channel);
    if (AS_OK == result)
    {
        result = asi_request_new(client, ASI_REQUEST_SUBSCRIPTION, channel, stream_id, request);
    }
    if (AS_OK != result)
    {
        return result;
    }
    (*request)->on_available = handlers->on_available;
    (*request)->on_unavailable = handlers->on_unavailable;
    (*request)->image_context = handlers->context;
    const asi_cmd_subscription fixed = {
        .correlated = { .client_id = client->client_id, .correlation_id = (*request)->correlation_id },
        .registration_correlation_id = AS_NULL_VALUE,
        .stream_id = stream_id,
        .channel_length = (int32_t)strlen(channel),
    };
    asi_command command;
    asi_command_start(&command, ASI_CMD_ADD_SUBSCRIPTION, &fixed, sizeof(fixed));
    asi_command_put(&command, channel, fixed.channel_length);
    return asi_request_send(client, *request, &command, wait_for_room);
}

typedef struct counter_text
{
    const uint8_t *key;
    int64_t key_length;
    const char *label;
} counter_text;

static as_result check_counter(const counter_text *text)
{
    if (text->key_length < 0 || text->key_length > ASI_COUNTER_KEY_CAPACITY || (NULL == text->key && text->key_length > 0))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "counter key has %" PRId64 " bytes, 0 to %d are possible", text->key_length,
            ASI_COUNTER_KEY_CAPACITY);
    }
    if (NULL == text->label || strlen(text->label) > ASI_COUNTER_LABEL_CAPACITY)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "counter label is missing or longer than %d bytes", ASI_COUNTER_LABEL_CAPACITY);
    }
    return AS_OK;
}

/* Appends the key padded to 4, the label length and the label: the tail of both counter commands. Spec: 03 §2.9-2.10. */
static void put_counter_text(asi_command *command, const counter_text *text)
{
    static const uint8_t ZEROS[4] = { 0 };
    const int32_t label_length = (int32_t)strlen(text->label);
    asi_command_put(command, text->key, text->key_length);
    asi_command_put(command, ZEROS, asi_align_i64(text->key_length, 4) - text->key_length);
    asi_command_put(command, &label_length, sizeof(label_length));
    asi_command_put(command, text->label, label_length);
}

static as_result send_add_counter(
    as_client *client, int32_t type_id, const counter_text *text, bool wait_for_room, asi_request **request)
{
    as_result result = check_counter(text);
    if (AS_OK == result)
    {
        result = asi_request_new(client, ASI_REQUEST_COUNTER, NULL, 0, request);
    }
    if (AS_OK != result)
    {
        return result;
    }
    const asi_cmd_counter fixed = {
        .correlated = { .client_id = client->client_id, .correlation_id = (*request)->correlation_id },
        .type_id = type_id,
        .key_length = (int32_t)text->key_length,
    };
    asi_command command;
    asi_command_start(&command, ASI_CMD_ADD_COUNTER, &fixed, sizeof(fixed));
    put_counter_text(&command, text);
    return asi_request_send(client, *request, &command, wait_for_room);
}

/* -- asynchronous ------------------------------------------------------------------------------------------------------- */

/* No thread takes the request before this returns its id, so reading it is safe. */
static as_result give_id(as_result result, const asi_request *request, int64_t *correlation_id)
{
    if (AS_OK == result)
    {
        *correlation_id = request->correlation_id;
    }
    return result;
}

as_result as_client_async_add_publication(as_client *client, const char *channel, int32_t stream_id, int64_t *correlation_id)
{
    asi_request *request;
    const as_result sent = send_add_publication(client, ASI_REQUEST_PUBLICATION, channel, stream_id, false, &request);
    return give_id(sent, request, correlation_id);
}

as_result as_client_async_add_exclusive_publication(
    as_client *client, const char *channel, int32_t stream_id, int64_t *correlation_id)
{
    asi_request *request;
    const as_result sent =
        send_add_publication(client, ASI_REQUEST_EXCLUSIVE_PUBLICATION, channel, stream_id, false, &request);
    return give_id(sent, request, correlation_id);
}

as_result as_client_async_add_subscription(as_client *client, const char *channel, int32_t stream_id,
    as_on_image on_available, as_on_image on_unavailable, void *context, int64_t *correlation_id)
{
    const image_handlers handlers = { .on_available = on_available, .on_unavailable = on_unavailable, .context = context };
    asi_request *request;
    const as_result sent = send_add_subscription(client, channel, stream_id, &handlers, false, &request);
    return give_id(sent, request, correlation_id);
}

as_result as_client_async_add_counter(as_client *client, int32_t type_id, const uint8_t *key, int64_t key_length,
    const char *label, int64_t *correlation_id)
{
    const counter_text text = { .key = key, .key_length = key_length, .label = label };
    asi_request *request;
    const as_result sent = send_add_counter(client, type_id, &text, false, &request);
    return give_id(sent, request, correlation_id);
}

static bool is_publication(asi_request_kind kind)
{
    return ASI_REQUEST_PUBLICATION == kind || ASI_REQUEST_EXCLUSIVE_PUBLICATION == kind;
}

static bool is_subscription(asi_request_kind kind)
{
    return ASI_REQUEST_SUBSCRIPTION == kind;
}

static bool is_counter(asi_request_kind kind)
{
    return ASI_REQUEST_COUNTER == kind;
}

static as_result poll_request(as_client *client, int64_t correlation_id, bool (*is_kind)(asi_request_kind kind),
    void **resource, int32_t *value)
{
    as_result result = asi_client_lock(client);
    if (AS_OK != result)
    {
        return result;
    }
    asi_conductor_service(client);
    asi_request *request = asi_request_find(client, correlation_id);
    if (NULL == request && client->is_closed)
    {
        result = asi_client_fail_closed(client);
    }
    else if (NULL == request || !is_kind(request->kind) || ASI_REQUEST_ABANDONED == request->state)
    {
        result = asi_fail(AS_E_USAGE, 0, "no request of this kind has correlation id %" PRId64
            ", an id is forgotten once its outcome was polled", correlation_id);
    }
    else
    {
        result = ASI_REQUEST_AWAITING == request->state ? AS_AGAIN : asi_request_take(client, request, resource, value);
    }
    asi_client_unlock(client);
    return result;
}

as_result as_client_poll_publication(as_client *client, int64_t correlation_id, as_publication **publication)
{
    void *resource;
    const as_result result = poll_request(client, correlation_id, is_publication, &resource, NULL);
    if (AS_OK == result)
    {
        *publication = resource;
    }
    return result;
}

as_result as_client_poll_subscription(as_client *client, int64_t correlation_id, as_subscription **subscription)
{
    void *resource;
    const as_result result = poll_request(client, correlation_id, is_subscription, &resource, NULL);
    if (AS_OK == result)
    {
        *subscription = resource;
    }
    return result;
}

as_result as_client_poll_counter(as_client *client, int64_t correlation_id, as_counter **counter)
{
    void *resource;
    const as_result result = poll_request(client, correlation_id, is_counter, &resource, NULL);
    if (AS_OK == result)
    {
        *counter = resource;
    }
    return result;
}

static void close_resource(asi_request_kind kind, void *resource)
{
    if (is_publication(kind))
    {
        as_publication_close(resource);
    }
    else if (is_subscription(kind))
    {
        as_subscription_close(resource);
    }
    else if (is_counter(kind))
    {
        as_counter_close(resource);
    }
}

void as_client_forget(as_client *client, int64_t correlation_id)
{
    if (AS_OK != asi_client_lock(client))
    {
        return;
    }
    asi_request *request = asi_request_find(client, correlation_id);
    asi_request_kind kind = ASI_REQUEST_OPERATION;
    void *resource = NULL;
    if (NULL != request && ASI_REQUEST_AWAITING == request->state)
    {
        request->state = ASI_REQUEST_ABANDONED;
    }
    else if (NULL != request && ASI_REQUEST_ABANDONED != request->state)
    {
        kind = request->kind;
        (void)!asi_request_take(client, request, &resource, NULL);
    }
    asi_client_unlock(client);
    if (NULL != resource)
    {
        close_resource(kind, resource);
    }
}

/* -- blocking ----------------------------------------------------------------------------------------------------------- */

static as_result await_resource(as_client *client, as_result sent, asi_request *request, void **resource)
{
    return AS_OK == sent ? asi_request_wait(client, request, resource, NULL) : sent;
}

/* True when the driver, which is still closing a socket of this channel, asks for the command again. Spec: 03 §6.1, §6.8 */
static bool is_to_be_sent_again(as_client *client, as_result result, int64_t deadline_ns)
{
    return AS_E_PEER == result && ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE == as_error_code() &&
        asi_clock_ns(&client->clock) < deadline_ns;
}

static as_result add_publication(
    as_client *client, asi_request_kind kind, const char *channel, int32_t stream_id, as_publication **publication)
{
    const int64_t deadline_ns = asi_clock_ns(&client->clock) + client->options.driver_timeout_ns;
    asi_request *request;
    void *resource;
    as_result result;
    do
    {
        result = send_add_publication(client, kind, channel, stream_id, true, &request);
        result = await_resource(client, result, request, &resource);
    } while (is_to_be_sent_again(client, result, deadline_ns));
    if (AS_OK != result)
    {
        return asi_fail_in(result, "cannot add a publication of %s, stream %d", NULL == channel ? "(null)" : channel, stream_id);
    }
    *publication = resource;
    return AS_OK;
}

as_result as_client_add_publication(as_client *client, const char *channel, int32_t stream_id, as_publication **publication)
{
    return add_publication(client, ASI_REQUEST_PUBLICATION, channel, stream_id, publication);
}

as_result as_client_add_exclusive_publication(
    as_client *client, const char *channel, int32_t stream_id, as_publication **publication)
{
    return add_publication(client, ASI_REQUEST_EXCLUSIVE_PUBLICATION, channel, stream_id, publication);
}

as_result as_client_add_subscription(as_client *client, const char *channel, int32_t stream_id, as_subscription **subscription)
{
    return as_client_add_subscription_with(client, channel, stream_id, client->options.on_available_image,
        client->options.on_unavailable_image, client->options.context, subscription);
}

as_result as_client_add_subscription_with(as_client *client, const char *channel, int32_t stream_id,
    as_on_image on_available, as_on_image on_unavailable, void *context, as_subscription **subscription)
{
    const image_handlers handlers = { .on_available = on_available, .on_unavailable = on_unavailable, .context = context };
    const int64_t deadline_ns = asi_clock_ns(&client->clock) + client->options.driver_timeout_ns;
    asi_request *request;
    void *resource;
    as_result result;
    do
    {
        result = send_add_subscription(client, channel, stream_id, &handlers, true, &request);
        result = await_resource(client, result, request, &resource);
    } while (is_to_be_sent_again(client, result, deadline_ns));
    if (AS_OK != result)
    {
        return asi_fail_in(result, "cannot add a subscription of %s, stream %d", NULL == channel ? "(null)" : channel, stream_id);
    }
    *subscription = resource;
    return AS_OK;
}

as_result as_client_add_counter(as_client *client, int32_t type_id, const uint8_t *key, int64_t key_length, const char *label,
    as_counter **counter)
{
    const counter_text text = { .key = key, .key_length = key_length, .label = label };
    asi_request *request;
    void *resource;
    const as_result sent = send_add_counter(client, type_id, &text, true, &request);
    const as_result result = await_resource(client, sent, request, &resource);
    if (AS_OK != result)
    {
        return asi_fail_in(result, "cannot add a counter of type %d", type_id);
    }
    *counter = resource;
    return AS_OK;
}

as_result as_client_add_static_counter(as_client *client, int32_t type_id, int64_t registration_id, const uint8_t *key,
    int64_t key_length, const char *label, as_counter **counter)
{
    const counter_text text = { .key = key, .key_length = key_length, .label = label };
    as_result result = check_counter(&text);
    asi_request *request;
    if (AS_OK == result)
    {
        result = asi_request_new(client, ASI_REQUEST_STATIC_COUNTER, NULL, 0, &request);
    }
    if (AS_OK != result)
    {
        return result;
    }
    request->counter_registration_id = registration_id;
    const asi_cmd_static_counter fixed = {
        .correlated = { .client_id = client->client_id, .correlation_id = request->correlation_id },
        .registration_id = registration_id,
        .type_id = type_id,
        .key_length = (int32_t)key_length,
    };
    asi_command command;
    asi_command_start(&command, ASI_CMD_ADD_STATIC_COUNTER, &fixed, sizeof(fixed));
    put_counter_text(&command, &text);
    void *resource;
    const as_result sent = asi_request_send(client, request, &command, true);
    result = await_resource(client, sent, request, &resource);
    if (AS_OK != result)
    {
        return asi_fail_in(result, "cannot add a static counter of type %d, registration id %" PRId64, type_id, registration_id);
    }
    *counter = resource;
    return AS_OK;
}

/* -- session ids -------------------------------------------------------------------------------------------------------- */

static int64_t control_protocol_version(const as_client *client)
{
    const asi_counter_metadata *metadata = &client->counters.metadata[ASI_SYSTEM_CONTROL_PROTOCOL_VERSION];
    const bool is_there = client->counters.max_count > ASI_SYSTEM_CONTROL_PROTOCOL_VERSION &&
        ASI_COUNTER_ALLOCATED == asi_counter_state(&client->counters, ASI_SYSTEM_CONTROL_PROTOCOL_VERSION) &&
        ASI_COUNTER_TYPE_SYSTEM == metadata->type_id && ASI_SYSTEM_CONTROL_PROTOCOL_VERSION == asi_get_i32(metadata->key);
    return is_there ? asi_load_acquire_i64(asi_counter_addr(&client->counters, ASI_SYSTEM_CONTROL_PROTOCOL_VERSION)) : 0;
}

static as_result send_next_session_id(as_client *client, int32_t stream_id, bool wait_for_room, asi_request **request)
{
    const as_result result = asi_request_new(client, ASI_REQUEST_SESSION_ID, NULL, stream_id, request);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_cmd_next_session_id fixed = {
        .correlated = { .client_id = client->client_id, .correlation_id = (*request)->correlation_id },
        .stream_id = stream_id,
    };
    asi_command command;
    asi_command_start(&command, ASI_CMD_GET_NEXT_AVAILABLE_SESSION_ID, &fixed, sizeof(fixed));
    return asi_request_send(client, *request, &command, wait_for_room);
}

static int32_t invent_session_id(void)
{
    asi_rand rand;
    asi_rand_seed_system(&rand);
    return asi_rand_i32(&rand);
}

as_result as_client_next_session_id(as_client *client, int32_t stream_id, int32_t *session_id)
{
    if (control_protocol_version(client) < ASI_CONTROL_PROTOCOL_VERSION)
    {
        *session_id = invent_session_id();
        return AS_OK;
    }
    asi_request *request;
    const as_result result = send_next_session_id(client, stream_id, true, &request);
    return AS_OK == result ? asi_request_wait(client, request, NULL, session_id) : result;
}

/* Answers in place of a driver that does not support the command. */
static as_result answer_session_id(as_client *client, int32_t stream_id, asi_request **request)
{
    as_result result = asi_request_new(client, ASI_REQUEST_SESSION_ID, NULL, stream_id, request);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_client_lock_open(client);
    if (AS_OK != result)
    {
        asi_request_free(*request);
        return result;
    }
    asi_request_done(*request, NULL, invent_session_id());
    (*request)->next = client->requests;
    client->requests = *request;
    asi_client_unlock(client);
    return AS_OK;
}

as_result as_client_async_next_session_id(as_client *client, int32_t stream_id, int64_t *correlation_id)
{
    asi_request *request;
    const as_result sent = control_protocol_version(client) < ASI_CONTROL_PROTOCOL_VERSION ?
        answer_session_id(client, stream_id, &request) : send_next_session_id(client, stream_id, false, &request);
    return give_id(sent, request, correlation_id);
}

static bool is_session_id(asi_request_kind kind)
{
    return ASI_REQUEST_SESSION_ID == kind;
}

as_result as_client_poll_session_id(as_client *client, int64_t correlation_id, int32_t *session_id)
{
    return poll_request(client, correlation_id, is_session_id, NULL, session_id);
}

static bool is_operation(asi_request_kind kind)
{
    return ASI_REQUEST_OPERATION == kind;
}

as_result as_client_poll_destination(as_client *client, int64_t correlation_id)
{
    return poll_request(client, correlation_id, is_operation, NULL, NULL);
}
