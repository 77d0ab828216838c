/* See network_add.h. */
#include "driver/ctl/network_add.h"

#include <inttypes.h>

#include "driver/ctl/agent_queues.h"
#include "driver/ctl/endpoints.h"
#include "driver/ctl/images.h"
#include "driver/ctl/liveness.h"
#include "driver/ctl/network_open.h"
#include "driver/ctl/network_publications.h"
#include "driver/ctl/params.h"
#include "driver/ctl/respond.h"
#include "driver/ctl/send_channels.h"
#include "driver/ctl/subscription.h"
#include "driver/ctl/udp_channels.h"
#include "driver/rx/image_status.h"

static const asi_ctl_publication_params *find_tagged(const asi_conductor *conductor, int64_t tag, int32_t *session_id)
{
    for (int32_t i = 0; i < conductor->network.publications.count; i++)
    {
        const asi_network_publication *publication = conductor->network.publications.items[i];
        if (AS_NULL_VALUE != tag && tag == publication->params.entity_tag && ASI_PUBLICATION_ACTIVE == publication->state)
        {
            *session_id = publication->sender.session_id;
            return &publication->params;
        }
    }
    return NULL;
}

/* -- checks --------------------------------------------------------------------------------------------------------------- */

static as_result check_response(const asi_conductor *conductor, const asi_ctl_publication_params *params)
{
    const int64_t id = params->response_correlation_id;
    if (!params->is_response)
    {
        return AS_NULL_VALUE == id || asi_ctl_subscription_is_on_network(conductor, id) ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
            "unable to find response subscription for response-correlation-id=%" PRId64 "%s", id,
            ASI_RESPONSE_PROTOTYPE == id ? ": prototype needs control-mode=response" : "");
    }
    if (AS_NULL_VALUE == id)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "control-mode=response was specified, but no response-correlation-id set");
    }
    if (ASI_RESPONSE_PROTOTYPE == id)
    {
        return AS_OK;
    }
    const asi_network_image *image = asi_network_image_find(conductor, id);
    if (NULL == image)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "image.correlationId=%" PRId64 " not found", id);
    }
    return image->wants_response ? AS_OK :
        asi_fail(AS_E_USAGE, EINVAL, "image.correlationId=%" PRId64 " did not request a response channel", id);
}

/* `of` is "channel" for the requested channel, "endpoint" for the channel of the endpoint that it shares. */
static as_result check_mtu(
    const asi_conductor *conductor, const char *of, const asi_udp_channel *channel, int32_t mtu_length)
{
    const int64_t sndbuf = asi_effective_sndbuf(conductor, channel);
    return 0 == sndbuf || mtu_length <= sndbuf ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "MTU greater than SO_SNDBUF for %s: mtu=%d so-sndbuf=%" PRId64 ": lower the one or raise the other, channel=%s",
        of, mtu_length, sndbuf, channel->original);
}

/* -- sharing, Spec: 03 §6.2-6.3 ----------------------------------------------------------------------------------------- */

static asi_network_publication *find_shared(const asi_conductor *conductor, const asi_send_channel *channel,
    int32_t stream_id, int64_t response_correlation_id)
{
    for (int32_t i = 0; i < conductor->network.publications.count; i++)
    {
        asi_network_publication *publication = conductor->network.publications.items[i];
        if (channel == publication->channel && stream_id == publication->sender.stream_id &&
            ASI_PUBLICATION_ACTIVE == publication->state && !publication->is_exclusive &&
            response_correlation_id == publication->params.response_correlation_id &&
            0 == asi_load_acquire_u8(&publication->sender.log.metadata->is_publication_revoked))
        {
            return publication;
        }
    }
    return NULL;
}

static as_result check_shared(const asi_network_publication *publication, const asi_ctl_publication_params *requested)
{
    as_result result = asi_ctl_publication_params_check_same(&publication->params, publication->sender.session_id, requested);
    if (AS_OK == result && requested->spies_simulate_connection != publication->params.spies_simulate_connection)
    {
        result = asi_fail(AS_E_USAGE, EINVAL, "existing publication has different spies simulate connection: requested=%s "
            "existing=%s", requested->spies_simulate_connection ? "true" : "false",
            publication->params.spies_simulate_connection ? "true" : "false");
    }
    return result;
}

typedef struct session_scope
{
    const asi_send_channel *channel;
    int32_t stream_id;
} session_scope;

static bool is_session_used(const asi_conductor *conductor, int32_t session_id, const void *context)
{
    const session_scope *scope = context;
    for (int32_t i = 0; i < conductor->network.publications.count; i++)
    {
        const asi_network_publication *publication = conductor->network.publications.items[i];
        if (scope->channel == publication->channel && scope->stream_id == publication->sender.stream_id &&
            session_id == publication->sender.session_id && ASI_PUBLICATION_DONE != publication->state)
        {
            return true;
        }
    }
    return false;
}

/* -- creation ------------------------------------------------------------------------------------------------------------- */

static void connect_response(asi_conductor *conductor, const asi_network_publication *publication)
{
    asi_network_image *image = !publication->params.is_response ? NULL :
        asi_network_image_find(conductor, publication->params.response_correlation_id);
    if (NULL != image)
    {
        asi_store_release_i64(&image->image.response_session_id, publication->sender.session_id);
        asi_rx_image_schedule_sm_now(&image->image); /* Spec: 11 N7 - the request's stream may end before its next status message */
    }
}

static as_result create(asi_conductor *conductor, const asi_ipc_request *request, asi_ctl_publication_params *params,
    asi_send_channel *channel, asi_network_publication **created)
{
    asi_ipc_request publication = *request;
    const session_scope scope = { .channel = channel, .stream_id = request->stream_id };
    if (params->has_session_id && is_session_used(conductor, params->session_id, &scope))
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL,
            "existing publication has clashing sessionId=%d for streamId=%d channel=%.*s", params->session_id,
            request->stream_id, (int)request->channel_length, request->channel);
    }
    publication.session_id =
        params->has_session_id ? params->session_id : asi_session_id_next(conductor, is_session_used, &scope);
    if (!params->has_position)
    {
        params->initial_term_id = asi_rand_i32(&conductor->rand);
        params->term_id = params->initial_term_id;
    }
    asi_network_publication *opened = NULL;
    as_result result = asi_network_publication_open(conductor, &publication, params, channel, &opened);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_list_add(&conductor->network.publications, opened);
    if (AS_OK != result)
    {
        asi_network_publication_close(conductor, opened);
        return result;
    }
    connect_response(conductor, opened);
    const asi_sender_command command = { .kind = ASI_SENDER_ADD_PUBLICATION, .publication = &opened->sender };
    asi_network_to_sender(conductor, &command);
    *created = opened;
    return AS_OK;
}

static void announce(asi_conductor *conductor, int64_t correlation_id, const asi_network_publication *publication)
{
    const asi_ctl_publication_announcement ready = {
        .is_exclusive = publication->is_exclusive,
        .correlation_id = correlation_id,
        .registration_id = publication->sender.registration_id,
        .session_id = publication->sender.session_id,
        .stream_id = publication->sender.stream_id,
        .limit_counter_id = publication->counter_ids[ASI_NETWORK_PUBLISHER_LIMIT],
        .channel_status_id = publication->channel->status_counter_id,
        .log_file_name = publication->log_path
    };
    asi_respond_publication_ready(conductor, &ready);
}

/* The endpoint exists from here on; it is closed again if it gets no user. */
static as_result add_on(
    asi_conductor *conductor, const asi_ipc_request *request, asi_ctl_publication_params *params, asi_send_channel *channel)
{
    asi_network_publication *publication = request->is_exclusive ? NULL :
        find_shared(conductor, channel, request->stream_id, params->response_correlation_id);
    as_result result = check_mtu(conductor, "endpoint", channel->channel, params->mtu_length);
    if (AS_OK == result)
    {
        result = NULL != publication ? check_shared(publication, params) :
            create(conductor, request, params, channel, &publication);
    }
    asi_driver_client *client = NULL;
    if (AS_OK == result)
    {
        result = asi_client_get_or_add(conductor, request->client_id, &client);
    }
    if (AS_OK == result)
    {
        const asi_ctl_publication_link link = { .registration_id = request->registration_id, .publication = publication,
            .release = asi_network_publication_release };
        result = asi_client_add_link(client, &link);
        publication->reference_count += AS_OK == result ? 1 : 0;
    }
    if (AS_OK != result)
    {
        if (NULL != publication && 0 == publication->reference_count)
        {
            publication->reference_count = 1;
            asi_network_publication_release(publication, false);
        }
        return result;
    }
    announce(conductor, request->registration_id, publication);
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        asi_network_publication_link(conductor, publication, conductor->subscriptions.items[i]);
    }
    return AS_OK;
}

as_result asi_network_publication_add(asi_conductor *conductor, const asi_ipc_request *request)
{
    asi_udp_channel *udp = NULL;
    asi_ctl_publication_params params;
    as_result result = asi_network_parse_channel(conductor, request->channel, request->channel_length, false, &udp);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_udp_channel_check_publication(udp);
    result = AS_OK == result ? asi_ctl_publication_params_read(conductor, &udp->uri, true, find_tagged, &params) : result;
    result = AS_OK == result ? check_response(conductor, &params) : result;
    result = AS_OK == result ? check_mtu(conductor, "channel", udp, params.mtu_length) : result;
    if (AS_OK != result)
    {
        asi_udp_channel_close(udp);
        return result;
    }
    if (ASI_RESPONSE_PROTOTYPE == params.response_correlation_id)
    {
        params.term_length = AS_TERM_MIN_LENGTH;
        params.window_length = params.window_length < params.term_length / 2 ? params.window_length : params.term_length / 2;
    }
    asi_send_channel *channel = NULL;
    result = asi_send_channel_get(conductor, udp, request->registration_id, &channel);
    if (AS_OK == result)
    {
        result = add_on(conductor, request, &params, channel);
        asi_send_channel_drop_if_unused(conductor, channel);
    }
    return result;
}
