/* See subscriptions.h. */
#include "driver/ctl/subscriptions.h"

#include <inttypes.h>

#include "driver/ctl/channel.h"
#include "driver/ctl/liveness.h"
#include "driver/ctl/network_subscriptions.h"
#include "driver/ctl/respond.h"
#include "driver/ctl/subscription_links.h"
#include "driver/ctl/udp_channels.h"

/* -- adding and removing -------------------------------------------------------------------------------------------------- */

as_result asi_ctl_subscription_add_local(
    asi_conductor *conductor, const asi_uri *uri, const asi_ctl_subscription_request *request, asi_ctl_subscription **added)
{
    asi_ctl_subscription *subscription = NULL;
    as_result result = asi_driver_subscription_create(conductor, uri, request, &subscription);
    if (AS_OK != result)
    {
        return result;
    }
    if (uri->is_spy)
    {
        result = asi_network_parse_channel(
            conductor, request->channel, request->channel_length, false, &subscription->udp);
    }
    if (AS_OK == result)
    {
        result = asi_list_add(&conductor->subscriptions, subscription);
    }
    if (AS_OK != result)
    {
        asi_driver_subscription_free(subscription);
        return result;
    }
    *added = subscription;
    return AS_OK;
}

static as_result add_ipc_or_spy(asi_conductor *conductor, const asi_uri *uri, const asi_ctl_subscription_request *request)
{
    asi_driver_client *client = NULL;
    asi_ctl_subscription *subscription = NULL;
    as_result result = asi_ctl_subscription_add_local(conductor, uri, request, &subscription);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_client_get_or_add(conductor, request->client_id, &client);
    if (AS_OK != result)
    {
        asi_list_remove(&conductor->subscriptions, subscription);
        asi_driver_subscription_free(subscription);
        return result;
    }
    asi_respond_i32(conductor, ASI_RSP_SUBSCRIPTION_READY, request->registration_id, AS_NULL_VALUE);
    asi_ctl_subscription_link(conductor, subscription);
    return AS_OK;
}

as_result asi_ctl_subscription_add(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int32_t stream_id,
    const char *channel, int64_t channel_length)
{
    const asi_ctl_subscription_request request = { .client_id = client_id, .registration_id = correlation_id,
        .stream_id = stream_id, .channel = channel, .channel_length = channel_length };
    asi_uri uri;
    const as_result result = asi_channel_parse_subscription_untrusted(&uri, channel, channel_length);
    if (AS_OK != result)
    {
        return result;
    }
    return ASI_MEDIA_UDP == uri.media && !uri.is_spy ? asi_network_subscription_add(conductor, &uri, &request) :
        add_ipc_or_spy(conductor, &uri, &request);
}

void asi_ctl_subscription_remove_at(asi_conductor *conductor, int32_t index, bool withdraw)
{
    asi_ctl_subscription *subscription = conductor->subscriptions.items[index];
    asi_list_remove_at(&conductor->subscriptions, index);
    asi_events_log(conductor->events, ASI_EVENT_REMOVE_SUBSCRIPTION_CLEANUP, "id=%" PRId64 " streamId=%d channel=%s",
        subscription->registration_id, subscription->stream_id, subscription->channel);
    asi_ctl_subscription_unlink(conductor, subscription, withdraw);
    if (NULL != subscription->receive)
    {
        asi_network_subscription_release(conductor, subscription);
    }
    asi_driver_subscription_free(subscription);
}

as_result asi_ctl_subscription_remove(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int64_t registration_id)
{
    bool found = false;
    for (int32_t i = conductor->subscriptions.count - 1; i >= 0; i--)
    {
        const asi_ctl_subscription *subscription = conductor->subscriptions.items[i];
        if (registration_id == subscription->registration_id)
        {
            asi_ctl_subscription_remove_at(conductor, i, false);
            found = true;
        }
    }
    if (!found)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_SUBSCRIPTION,
            "unknown subscription client_id=%" PRId64 " registration_id=%" PRId64, client_id, registration_id);
    }
    asi_respond_success(conductor, correlation_id);
    return AS_OK;
}

void asi_ctl_subscriptions_remove_client(asi_conductor *conductor, int64_t client_id)
{
    for (int32_t i = conductor->subscriptions.count - 1; i >= 0; i--)
    {
        const asi_ctl_subscription *subscription = conductor->subscriptions.items[i];
        if (client_id == subscription->client_id)
        {
            asi_ctl_subscription_remove_at(conductor, i, false);
        }
    }
}

void asi_ctl_subscriptions_release(asi_conductor *conductor)
{
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        asi_driver_subscription_free(conductor->subscriptions.items[i]);
    }
    asi_list_close(&conductor->subscriptions);
}
