/* See subscription.h. */
#include "driver/ctl/subscription.h"

#include "driver/ctl/channel.h"
#include "driver/ctl/params.h"

/* Spec: 05 §3, scope S. */
static as_result read_params(const asi_conductor *conductor, const asi_uri *uri, asi_ctl_subscription *subscription)
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
    asi_untethered_timeouts of_images; /* parsed again when an image is created, too late to report an error */
    return AS_OK == result ? asi_untethered_timeouts_read(conductor, uri, &of_images) : result;
}

void asi_driver_subscription_free(asi_ctl_subscription *subscription)
{
    asi_udp_channel_close(subscription->udp);
    free(subscription->channel);
    free(subscription);
}

as_result asi_driver_subscription_create(const asi_conductor *conductor, const asi_uri *uri,
    const asi_ctl_subscription_request *request, asi_ctl_subscription **created)
{
    asi_ctl_subscription *subscription = calloc(1, sizeof(*subscription));
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

/* -- matching ----------------------------------------------------------------------------------------------------------- */

bool asi_ctl_subscription_matches_ipc(const asi_ctl_subscription *subscription, int32_t stream_id, int32_t session_id)
{
    if (subscription->is_spy || NULL != subscription->receive || stream_id != subscription->stream_id)
    {
        return false;
    }
    return subscription->has_session_id ? session_id == subscription->session_id : !subscription->is_response;
}

bool asi_ctl_subscription_matches_image(
    const asi_ctl_subscription *subscription, const asi_receive_channel *receive, int32_t stream_id, int32_t session_id)
{
    if (NULL == receive || receive != subscription->receive || stream_id != subscription->stream_id)
    {
        return false;
    }
    return subscription->has_session_id ? session_id == subscription->session_id : !subscription->is_response;
}

bool asi_ctl_subscription_is_on_network(const asi_conductor *conductor, int64_t registration_id)
{
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        const asi_ctl_subscription *subscription = conductor->subscriptions.items[i];
        if (registration_id == subscription->registration_id && NULL != subscription->receive)
        {
            return true;
        }
    }
    return false;
}
