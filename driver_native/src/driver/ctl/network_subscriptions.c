/* See network_subscriptions.h. */
#include "driver/ctl/network_subscriptions.h"

#include "driver/ctl/agent_queues.h"
#include "driver/ctl/endpoints.h"
#include "driver/ctl/liveness.h"
#include "driver/ctl/receive_channels.h"
#include "driver/ctl/report.h"
#include "driver/ctl/respond.h"
#include "driver/ctl/subscription_links.h"
#include "driver/ctl/udp_channels.h"

static const char *bool_text(bool value) { return value ? "true" : "false"; }

/* Subscriptions of one stream and session must agree on the parameters of their image. Spec: 03 §6.8. */
static as_result check_clash(const asi_ctl_subscription *existing, const asi_ctl_subscription *added)
{
    const struct { const char *key; bool existing; bool added; } rows[] = {
        { "reliable", existing->is_reliable, added->is_reliable },
        { "rejoin", existing->is_rejoin, added->is_rejoin },
        { "isResponse", existing->is_response, added->is_response },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        if (rows[i].existing != rows[i].added)
        {
            return asi_fail(AS_E_USAGE, EINVAL, "option conflicts with existing subscription: %s=%s existingChannel=%s "
                "channel=%s", rows[i].key, bool_text(rows[i].added), existing->channel, added->channel);
        }
    }
    return AS_OK;
}

static as_result check_clashes(const asi_conductor *conductor, const asi_ctl_subscription *added)
{
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        const asi_ctl_subscription *existing = conductor->subscriptions.items[i];
        if (existing->receive == added->receive && existing->stream_id == added->stream_id &&
            existing->has_session_id == added->has_session_id && existing->session_id == added->session_id)
        {
            const as_result result = check_clash(existing, added);
            if (AS_OK != result)
            {
                return result;
            }
        }
    }
    return AS_OK;
}

/* A response channel without a session id matches nothing yet: it only keeps the endpoint open. Spec: 04 §14 step 1. */
static bool is_waiting_for_session(const asi_ctl_subscription *subscription)
{
    return subscription->is_response && !subscription->has_session_id;
}

static as_result add_interest(asi_conductor *conductor, const asi_ctl_subscription *subscription)
{
    if (is_waiting_for_session(subscription))
    {
        subscription->receive->response_count++;
        return AS_OK;
    }
    return asi_receive_channel_add_interest(conductor, subscription->receive, subscription->stream_id,
        subscription->has_session_id, subscription->session_id);
}

static void remove_interest(asi_conductor *conductor, const asi_ctl_subscription *subscription)
{
    if (is_waiting_for_session(subscription))
    {
        subscription->receive->response_count--;
    }
    else
    {
        asi_receive_channel_remove_interest(conductor, subscription->receive, subscription->stream_id,
            subscription->has_session_id, subscription->session_id);
    }
}

void asi_network_subscription_release(asi_conductor *conductor, asi_ctl_subscription *subscription)
{
    remove_interest(conductor, subscription);
    asi_receive_channel_drop_if_unused(conductor, subscription->receive);
}

/* Call with the endpoint open. The subscription is in the list on success only. */
static as_result attach(asi_conductor *conductor, asi_ctl_subscription *subscription)
{
    asi_driver_client *client = NULL;
    as_result result = check_clashes(conductor, subscription);
    result = AS_OK == result ? add_interest(conductor, subscription) : result;
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_client_get_or_add(conductor, subscription->client_id, &client);
    result = AS_OK == result ? asi_list_add(&conductor->subscriptions, subscription) : result;
    if (AS_OK != result)
    {
        remove_interest(conductor, subscription);
    }
    return result;
}

as_result asi_network_subscription_add(
    asi_conductor *conductor, const asi_uri *uri, const asi_ctl_subscription_request *request)
{
    asi_ctl_subscription *subscription = NULL;
    asi_udp_channel *udp = NULL;
    as_result result = asi_network_parse_channel(conductor, request->channel, request->channel_length, false, &udp);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_udp_channel_check_subscription(udp);
    result = AS_OK == result ? asi_driver_subscription_create(conductor, uri, request, &subscription) : result;
    if (AS_OK != result)
    {
        asi_udp_channel_close(udp);
        return result;
    }
    result = asi_receive_channel_get(conductor, udp, request->registration_id, &subscription->receive);
    if (AS_OK == result)
    {
        result = attach(conductor, subscription);
        if (AS_OK != result)
        {
            asi_receive_channel_drop_if_unused(conductor, subscription->receive);
        }
    }
    if (AS_OK != result)
    {
        asi_driver_subscription_free(subscription);
        return result;
    }
    asi_respond_i32(conductor, ASI_RSP_SUBSCRIPTION_READY, request->registration_id,
        subscription->receive->status_counter_id);
    asi_ctl_subscription_link(conductor, subscription);
    return AS_OK;
}

void asi_network_subscription_on_response(asi_conductor *conductor, const asi_command_response *response)
{
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        asi_ctl_subscription *subscription = conductor->subscriptions.items[i];
        if (NULL == subscription->receive || !subscription->is_response ||
            response->response_correlation_id != subscription->registration_id)
        {
            continue;
        }
        asi_receive_channel *receive = subscription->receive;
        if (is_waiting_for_session(subscription))
        {
            /* The receiver requests the SETUP when it learns of the session. */
            const as_result result = asi_receive_channel_add_interest(
                conductor, receive, subscription->stream_id, true, response->response_session_id);
            if (AS_OK != result)
            {
                asi_conductor_log_failure(conductor, result);
                return;
            }
            receive->response_count--;
            subscription->has_session_id = true;
            subscription->session_id = response->response_session_id;
            return;
        }
        const asi_receiver_command command = { .kind = ASI_RECEIVER_REQUEST_SETUP, .endpoint = &receive->endpoint,
            .stream_id = subscription->stream_id, .session_id = subscription->session_id };
        asi_network_to_receiver(conductor, &command);
    }
}
