/* Calls that change a resource in the driver and wait for its answer: destinations, rejection of an image. Public:
   as_client.h. */
#include <errno.h>
#include <string.h>

#include "client/request.h"
#include "client/wait.h"

/* -- destinations ------------------------------------------------------------------------------------------------------- */

static as_result send_destination(as_client *client, int32_t type_id, int64_t registration_id, const char *channel,
    bool wait_for_room, asi_request **request)
{
    as_result result = asi_request_new(client, ASI_REQUEST_OPERATION, channel, 0, request);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_cmd_destination fixed = {
        .correlated = { .client_id = client->client_id, .correlation_id = (*request)->correlation_id },
        .registration_id = registration_id,
        .channel_length = (int32_t)strlen(channel),
    };
    asi_command command;
    asi_command_start(&command, type_id, &fixed, sizeof(fixed));
    asi_command_put(&command, channel, fixed.channel_length);
    return asi_request_send(client, *request, &command, wait_for_room);
}

static as_result send_and_wait(as_client *client, int32_t type_id, int64_t registration_id, const char *channel)
{
    asi_request *request;
    const as_result result = send_destination(client, type_id, registration_id, channel, true, &request);
    return AS_OK == result ? asi_request_wait(client, request, NULL, NULL) : result;
}

static as_result send_without_wait(
    as_client *client, int32_t type_id, int64_t registration_id, const char *channel, int64_t *correlation_id)
{
    asi_request *request;
    const as_result result = send_destination(client, type_id, registration_id, channel, false, &request);
    if (AS_OK == result)
    {
        *correlation_id = request->correlation_id; /* no thread takes the request before it has this id */
    }
    return result;
}

/* Spec: 03 §6.6 - the driver identifies a shared publication by the id of its first handle. */
static as_result change_publication(as_publication *publication, int32_t type_id, const char *channel)
{
    if (NULL == channel)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "no destination channel was given");
    }
    return send_and_wait(publication->client, type_id, publication->original_registration_id, channel);
}

as_result as_publication_add_destination(as_publication *publication, const char *channel)
{
    return change_publication(publication, ASI_CMD_ADD_DESTINATION, channel);
}

as_result as_publication_remove_destination(as_publication *publication, const char *channel)
{
    return change_publication(publication, ASI_CMD_REMOVE_DESTINATION, channel);
}

static as_result check_destination(const char *channel)
{
    return NULL == channel ? asi_fail(AS_E_USAGE, EINVAL, "no destination channel was given") : AS_OK;
}

static as_result change_subscription(as_subscription *subscription, int32_t type_id, const char *channel)
{
    const as_result result = check_destination(channel);
    return AS_OK == result ?
        send_and_wait(subscription->client, type_id, subscription->registration_id, channel) : result;
}

as_result as_subscription_add_destination(as_subscription *subscription, const char *channel)
{
    return change_subscription(subscription, ASI_CMD_ADD_RCV_DESTINATION, channel);
}

as_result as_subscription_remove_destination(as_subscription *subscription, const char *channel)
{
    return change_subscription(subscription, ASI_CMD_REMOVE_RCV_DESTINATION, channel);
}

static as_result change_subscription_later(
    as_subscription *subscription, int32_t type_id, const char *channel, int64_t *correlation_id)
{
    const as_result result = check_destination(channel);
    return AS_OK == result ? send_without_wait(
        subscription->client, type_id, subscription->registration_id, channel, correlation_id) : result;
}

as_result as_subscription_async_add_destination(
    as_subscription *subscription, const char *channel, int64_t *correlation_id)
{
    return change_subscription_later(subscription, ASI_CMD_ADD_RCV_DESTINATION, channel, correlation_id);
}

as_result as_subscription_async_remove_destination(
    as_subscription *subscription, const char *channel, int64_t *correlation_id)
{
    return change_subscription_later(subscription, ASI_CMD_REMOVE_RCV_DESTINATION, channel, correlation_id);
}

/* -- images ------------------------------------------------------------------------------------------------------------- */

as_result as_image_reject(as_image *image, const char *reason)
{
    const size_t length = NULL == reason ? 0 : strlen(reason);
    if (length > ASI_REJECT_REASON_MAX_LENGTH)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "reason has %zu bytes, at most %d are possible", length, ASI_REJECT_REASON_MAX_LENGTH);
    }
    if (!asi_client_image_is_open(image))
    {
        return asi_fail(AS_E_CLOSED, 0, "image of session %d, stream %d is closed", image->session_id, image->stream_id);
    }
    as_client *client = image->client;
    asi_request *request;
    const as_result result = asi_request_new(client, ASI_REQUEST_OPERATION, NULL, image->stream_id, &request);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_cmd_reject_image fixed = {
        .correlated = { .client_id = client->client_id, .correlation_id = request->correlation_id },
        .image_correlation_id = image->correlation_id,
        .position = as_image_position(image),
        .reason_length = (int32_t)length,
    };
    /* Spec: 03 §16 T4 - the stock C driver requires at least 40 bytes. */
    static const uint8_t ZEROS[4] = { 0 };
    asi_command command;
    asi_command_start(&command, ASI_CMD_REJECT_IMAGE, &fixed, sizeof(fixed));
    asi_command_put(&command, reason, (int64_t)length);
    asi_command_put(&command, ZEROS, sizeof(ZEROS));
    const as_result sent = asi_request_send(client, request, &command, true);
    return AS_OK == sent ? asi_request_wait(client, request, NULL, NULL) : sent;
}
