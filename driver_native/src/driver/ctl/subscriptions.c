/* See subscriptions.h. */
#include "driver/ctl/subscriptions.h"

#include <inttypes.h>

#include "driver/ctl/channel.h"
#include "driver/ctl/images.h"
#include "driver/ctl/ipc.h"
#include "driver/ctl/liveness.h"
#include "driver/ctl/network_publications.h"
#include "driver/ctl/network_subscriptions.h"
#include "driver/ctl/params.h"
#include "driver/ctl/respond.h"

/* Spec: 05 §3, scope S. */
static as_result read_params(const asi_conductor *conductor, const asi_uri *uri, asi_subscription *subscription)
{
    const asi_driver_settings *settings = conductor->settings;
    const char *control_mode = asi_uri_get(uri, "control-mode");
    const char *group = asi_uri_get(uri, "group");
    subscription->has_session_id = NULL != asi_uri_get(uri, "session-id");
    subscription->is_response = NULL != control_mode && 0 == strcmp(control_mode, "response");
    subscription->group = NULL == group ? settings->receiver_group_consideration :
        0 == strcmp(group, "infer") ? ASI_INFER : 0 == strcmp(group, "true") ? ASI_INFER_TRUE : ASI_INFER_FALSE;
    as_result result = asi_uri_get_i32(uri, "session-id", 0, &subscription->session_id);
    if (AS_OK == result)
    {
        result = asi_uri_get_bool(uri, "tether", settings->tether_subscriptions, &subscription->is_tethered);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_bool(uri, "rejoin", settings->rejoin_stream, &subscription->is_rejoin);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_bool(uri, "reliable", settings->reliable_stream, &subscription->is_reliable);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_bool(uri, "sparse", settings->term_buffer_sparse_file, &subscription->is_sparse);
    }
    asi_untethered_timeouts of_images; /* read from the endpoint's channel, when one is made: too late to say that it is wrong */
    return AS_OK == result ? asi_untethered_timeouts_read(conductor, uri, &of_images) : result;
}

void asi_driver_subscription_free(asi_subscription *subscription)
{
    asi_udp_channel_close(subscription->udp);
    free(subscription->channel);
    free(subscription);
}

as_result asi_driver_subscription_create(const asi_conductor *conductor, const asi_uri *uri, const asi_subscription_request *request,
    asi_subscription **created)
{
    asi_subscription *subscription = calloc(1, sizeof(*subscription));
    if (NULL == subscription)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a subscription");
    }
    as_result result = read_params(conductor, uri, subscription);
    if (AS_OK == result)
    {
        subscription->client_id = request->client_id;
        subscription->registration_id = request->registration_id;
        subscription->stream_id = request->stream_id;
        subscription->is_spy = uri->is_spy;
        subscription->channel = asi_channel_copy(request->channel, request->channel_length);
        result = NULL != subscription->channel ? AS_OK : AS_E_INTERNAL;
    }
    if (AS_OK != result)
    {
        free(subscription);
        return result;
    }
    *created = subscription;
    return AS_OK;
}

/* -- linking ------------------------------------------------------------------------------------------------------------ */

bool asi_subscription_matches_ipc(const asi_subscription *subscription, int32_t stream_id, int32_t session_id)
{
    if (subscription->is_spy || NULL != subscription->receive || stream_id != subscription->stream_id)
    {
        return false;
    }
    return subscription->has_session_id ? session_id == subscription->session_id : !subscription->is_response;
}

bool asi_subscription_matches_image(
    const asi_subscription *subscription, const asi_receive_channel *receive, int32_t stream_id, int32_t session_id)
{
    if (NULL == receive || receive != subscription->receive || stream_id != subscription->stream_id)
    {
        return false;
    }
    return subscription->has_session_id ? session_id == subscription->session_id : !subscription->is_response;
}

bool asi_subscription_is_on_network(const asi_conductor *conductor, int64_t registration_id)
{
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        const asi_subscription *subscription = conductor->subscriptions.items[i];
        if (registration_id == subscription->registration_id && NULL != subscription->receive)
        {
            return true;
        }
    }
    return false;
}

void asi_subscription_link(asi_conductor *conductor, asi_subscription *subscription)
{
    const asi_network *network = &conductor->network;
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        asi_ipc_link(conductor, conductor->publications.items[i], subscription);
    }
    for (int32_t i = 0; i < network->publications.count; i++)
    {
        asi_network_publication_link(conductor, network->publications.items[i], subscription);
    }
    for (int32_t i = 0; i < network->images.count; i++)
    {
        asi_network_image_link(conductor, network->images.items[i], subscription);
    }
}

static void unlink_all(asi_conductor *conductor, const asi_subscription *subscription, bool withdraw)
{
    const asi_network *network = &conductor->network;
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        asi_ipc_publication *publication = conductor->publications.items[i];
        if (asi_ipc_unlink(conductor, publication, subscription) && withdraw)
        {
            asi_subscribers_withdraw_one(conductor, &publication->subscribers, subscription);
        }
    }
    for (int32_t i = 0; i < network->publications.count; i++)
    {
        asi_network_publication *publication = network->publications.items[i];
        if (asi_network_publication_unlink(conductor, publication, subscription) && withdraw)
        {
            asi_subscribers_withdraw_one(conductor, &publication->spies, subscription);
        }
    }
    for (int32_t i = 0; i < network->images.count; i++)
    {
        asi_network_image_unlink(conductor, network->images.items[i], subscription);
    }
}

/* -- adding and removing -------------------------------------------------------------------------------------------------- */

as_result asi_subscription_add_local(
    asi_conductor *conductor, const asi_uri *uri, const asi_subscription_request *request, asi_subscription **added)
{
    asi_subscription *subscription = NULL;
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

static as_result add_ipc_or_spy(asi_conductor *conductor, const asi_uri *uri, const asi_subscription_request *request)
{
    asi_driver_client *client = NULL;
    asi_subscription *subscription = NULL;
    as_result result = asi_subscription_add_local(conductor, uri, request, &subscription);
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
    asi_subscription_link(conductor, subscription);
    return AS_OK;
}

as_result asi_subscription_add(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int32_t stream_id,
    const char *channel, int64_t channel_length)
{
    const asi_subscription_request request = { .client_id = client_id, .registration_id = correlation_id,
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

void asi_subscription_remove_at(asi_conductor *conductor, int32_t index, bool withdraw)
{
    asi_subscription *subscription = conductor->subscriptions.items[index];
    asi_list_remove_at(&conductor->subscriptions, index);
    asi_events_say(conductor->events, ASI_EVENT_REMOVE_SUBSCRIPTION_CLEANUP, "id=%" PRId64 " streamId=%d channel=%s",
        subscription->registration_id, subscription->stream_id, subscription->channel);
    unlink_all(conductor, subscription, withdraw);
    if (NULL != subscription->receive)
    {
        asi_network_subscription_release(conductor, subscription);
    }
    asi_driver_subscription_free(subscription);
}

as_result asi_subscription_remove(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int64_t registration_id)
{
    bool found = false;
    for (int32_t i = conductor->subscriptions.count - 1; i >= 0; i--)
    {
        const asi_subscription *subscription = conductor->subscriptions.items[i];
        if (registration_id == subscription->registration_id)
        {
            asi_subscription_remove_at(conductor, i, false);
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

void asi_subscriptions_remove_client(asi_conductor *conductor, int64_t client_id)
{
    for (int32_t i = conductor->subscriptions.count - 1; i >= 0; i--)
    {
        const asi_subscription *subscription = conductor->subscriptions.items[i];
        if (client_id == subscription->client_id)
        {
            asi_subscription_remove_at(conductor, i, false);
        }
    }
}

void asi_subscriptions_release(asi_conductor *conductor)
{
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        asi_driver_subscription_free(conductor->subscriptions.items[i]);
    }
    asi_list_close(&conductor->subscriptions);
}
