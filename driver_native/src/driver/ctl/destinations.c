/* See destinations.h. */
#include "driver/ctl/destinations.h"

#include <inttypes.h>

#include "driver/ctl/agent_queues.h"
#include "driver/ctl/channel.h"
#include "driver/ctl/endpoints.h"
#include "driver/ctl/network_publications.h"
#include "driver/ctl/receive_channels.h"
#include "driver/ctl/respond.h"
#include "driver/ctl/subscription.h"
#include "driver/ctl/subscription_links.h"
#include "driver/ctl/subscriptions.h"
#include "driver/ctl/udp_channels.h"

/* -- of publications ------------------------------------------------------------------------------------------------------- */

static as_result find_send_channel(const asi_conductor *conductor, int64_t registration_id, asi_send_channel **channel)
{
    asi_network_publication *publication = asi_network_publication_find(conductor, registration_id);
    if (NULL == publication)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_PUBLICATION, "unknown publication registration_id=%" PRId64,
            registration_id);
    }
    *channel = publication->channel;
    return ASI_CONTROL_MODE_MANUAL == publication->channel->channel->control_mode ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "channel does not allow manual control of destinations: publication_registration_id=%" PRId64
        ": it needs control-mode=manual: %s", registration_id, publication->uri);
}

/* Accepts an unknown host: the sender skips the destination until the name is resolved. Spec: 03 §6.6. */
static void resolve_leniently(asi_conductor *conductor, const char *endpoint, asi_address *address)
{
    *address = (asi_address){ 0 };
    if (AS_OK != asi_address_resolve(&conductor->network.resolver, endpoint, "endpoint", false, address))
    {
        *address = (asi_address){ 0 };
    }
}

static as_result parse_send_destination(
    asi_conductor *conductor, const asi_destination_command *command, asi_uri *uri, asi_send_channel **channel)
{
    char text[AS_CHANNEL_MAX_LENGTH + 1];
    as_result result = find_send_channel(conductor, command->registration_id, channel);
    result = AS_OK == result ? asi_uri_parse_untrusted(uri, command->channel, command->channel_length) : result;
    if (AS_OK != result)
    {
        return result;
    }
    memcpy(text, command->channel, (size_t)command->channel_length);
    text[command->channel_length] = '\0';
    return asi_udp_channel_check_send_destination_untrusted(uri, text);
}

as_result asi_send_destination_add(asi_conductor *conductor, const asi_destination_command *command)
{
    asi_uri uri;
    asi_send_channel *channel = NULL;
    as_result result = parse_send_destination(conductor, command, &uri, &channel);
    if (AS_OK != result)
    {
        return result;
    }
    const char *endpoint = asi_uri_get(&uri, "endpoint");
    asi_send_destination *destination = calloc(1, sizeof(*destination));
    if (NULL == destination)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a destination");
    }
    destination->registration_id = command->correlation_id;
    destination->endpoint = asi_channel_copy(endpoint, (int64_t)strlen(endpoint));
    resolve_leniently(conductor, endpoint, &destination->address);
    result = NULL == destination->endpoint ? AS_E_INTERNAL : asi_list_add(&channel->destinations, destination);
    if (AS_OK != result)
    {
        free(destination->endpoint);
        free(destination);
        return result;
    }
    const asi_sender_command agent_command = { .kind = ASI_SENDER_ADD_DESTINATION, .endpoint = &channel->sender,
        .destination_id = command->correlation_id, .address = destination->address };
    asi_network_to_sender(conductor, &agent_command);
    asi_respond_success(conductor, command->correlation_id);
    return AS_OK;
}

static void forget_destination(asi_conductor *conductor, asi_send_channel *channel, int32_t index)
{
    asi_send_destination *destination = channel->destinations.items[index];
    const asi_sender_command agent_command = { .kind = ASI_SENDER_REMOVE_DESTINATION, .endpoint = &channel->sender,
        .destination_id = destination->registration_id };
    asi_network_to_sender(conductor, &agent_command);
    asi_list_remove_at(&channel->destinations, index);
    free(destination->endpoint);
    free(destination);
}

/* Index of the destination that was added by that name, else of one with the name's current address; -1 when there is none. The
 * name finds a destination that has moved or never had an address. */
static int32_t find_destination(asi_conductor *conductor, const asi_send_channel *channel, const char *endpoint)
{
    for (int32_t i = 0; i < channel->destinations.count; i++)
    {
        if (0 == strcmp(((const asi_send_destination *)channel->destinations.items[i])->endpoint, endpoint))
        {
            return i;
        }
    }
    asi_address address;
    resolve_leniently(conductor, endpoint, &address);
    for (int32_t i = 0; i < channel->destinations.count && !asi_address_is_none(&address); i++)
    {
        if (asi_address_equal(&((const asi_send_destination *)channel->destinations.items[i])->address, &address))
        {
            return i;
        }
    }
    return -1;
}

as_result asi_send_destination_remove(asi_conductor *conductor, const asi_destination_command *command)
{
    asi_uri uri;
    asi_send_channel *channel = NULL;
    const as_result result = parse_send_destination(conductor, command, &uri, &channel);
    if (AS_OK != result)
    {
        return result;
    }
    const int32_t at = find_destination(conductor, channel, asi_uri_get(&uri, "endpoint"));
    if (at >= 0)
    {
        forget_destination(conductor, channel, at);
    }
    asi_respond_success(conductor, command->correlation_id);
    return AS_OK;
}

as_result asi_send_destination_remove_by_id(
    asi_conductor *conductor, int64_t correlation_id, int64_t publication_id, int64_t destination_id)
{
    asi_send_channel *channel = NULL;
    const as_result result = find_send_channel(conductor, publication_id, &channel);
    if (AS_OK != result)
    {
        return result;
    }
    for (int32_t i = 0; i < channel->destinations.count; i++)
    {
        if (destination_id == ((const asi_send_destination *)channel->destinations.items[i])->registration_id)
        {
            forget_destination(conductor, channel, i);
            break;
        }
    }
    asi_respond_success(conductor, correlation_id);
    return AS_OK;
}

/* -- of subscriptions ------------------------------------------------------------------------------------------------------ */

static as_result find_subscription(
    const asi_conductor *conductor, const asi_destination_command *command, asi_ctl_subscription **found)
{
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        asi_ctl_subscription *subscription = conductor->subscriptions.items[i];
        if (command->registration_id == subscription->registration_id && NULL != subscription->receive)
        {
            *found = subscription;
            return ASI_CONTROL_MODE_MANUAL == subscription->receive->channel->control_mode ? AS_OK :
                asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "channel does not allow manual control, it needs "
                    "control-mode=manual: %s", subscription->channel);
        }
    }
    return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_SUBSCRIPTION, "unknown subscription client_id=%" PRId64
        " registration_id=%" PRId64, command->client_id, command->registration_id);
}

/* IPC publications and spied publications need no socket: adds a second subscription under the same registration id. */
static as_result add_local(asi_conductor *conductor, const asi_uri *uri, const asi_destination_command *command,
    const asi_ctl_subscription *subscription)
{
    const asi_ctl_subscription_request request = { .client_id = subscription->client_id,
        .registration_id = subscription->registration_id, .stream_id = subscription->stream_id,
        .channel = command->channel, .channel_length = command->channel_length };
    asi_ctl_subscription *added = NULL;
    const as_result result = asi_ctl_subscription_add_local(conductor, uri, &request, &added);
    if (AS_OK == result)
    {
        asi_respond_success(conductor, command->correlation_id);
        asi_ctl_subscription_link(conductor, added);
    }
    return result;
}

as_result asi_receive_destination_add(asi_conductor *conductor, const asi_destination_command *command)
{
    asi_uri uri;
    asi_ctl_subscription *subscription = NULL;
    asi_udp_channel *destination = NULL;
    as_result result = asi_channel_parse_subscription_untrusted(&uri, command->channel, command->channel_length);
    result = AS_OK == result ? find_subscription(conductor, command, &subscription) : result;
    if (AS_OK != result)
    {
        return result;
    }
    if (ASI_MEDIA_IPC == uri.media || uri.is_spy)
    {
        return add_local(conductor, &uri, command, subscription);
    }
    result = asi_network_parse_channel(conductor, command->channel, command->channel_length, true, &destination);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_udp_channel_check_destination_keys_untrusted(&uri, destination->original);
    if (AS_OK != result)
    {
        asi_udp_channel_close(destination);
        return result;
    }
    result = asi_receive_channel_add_transport(conductor, subscription->receive, destination);
    if (AS_OK == result)
    {
        asi_respond_success(conductor, command->correlation_id);
    }
    return result;
}

/* Another local destination may match what the removed one was linked to: a stream has one image for both. */
static void link_destinations(asi_conductor *conductor, int64_t registration_id)
{
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        asi_ctl_subscription *subscription = conductor->subscriptions.items[i];
        if (registration_id == subscription->registration_id && NULL == subscription->receive)
        {
            asi_ctl_subscription_link(conductor, subscription);
        }
    }
}

static as_result remove_local(asi_conductor *conductor, const asi_destination_command *command)
{
    for (int32_t i = conductor->subscriptions.count - 1; i >= 0; i--)
    {
        const asi_ctl_subscription *subscription = conductor->subscriptions.items[i];
        if (command->registration_id == subscription->registration_id && NULL == subscription->receive &&
            command->channel_length == (int64_t)strlen(subscription->channel) &&
            0 == memcmp(command->channel, subscription->channel, (size_t)command->channel_length))
        {
            asi_respond_success(conductor, command->correlation_id);
            asi_ctl_subscription_remove_at(conductor, i, true);
            link_destinations(conductor, command->registration_id);
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_SUBSCRIPTION, "unknown subscription client_id=%" PRId64 " registration_id=%"
        PRId64 ": it has no destination %.*s", command->client_id, command->registration_id, (int)command->channel_length,
        command->channel);
}

as_result asi_receive_destination_remove(asi_conductor *conductor, const asi_destination_command *command)
{
    asi_uri uri;
    asi_ctl_subscription *subscription = NULL;
    asi_udp_channel *destination = NULL;
    as_result result = asi_channel_parse_subscription_untrusted(&uri, command->channel, command->channel_length);
    if (AS_OK == result && (ASI_MEDIA_IPC == uri.media || uri.is_spy))
    {
        return remove_local(conductor, command);
    }
    result = AS_OK == result ? find_subscription(conductor, command, &subscription) : result;
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_network_parse_channel(conductor, command->channel, command->channel_length, true, &destination);
    if (AS_OK == result)
    {
        asi_receive_channel_remove_transport(conductor, subscription->receive, destination);
        asi_udp_channel_close(destination);
        asi_respond_success(conductor, command->correlation_id);
    }
    return result;
}
