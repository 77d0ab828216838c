/* See publications.h. */
#include "driver/ctl/publications.h"

#include <inttypes.h>

#include "driver/ctl/channel.h"
#include "driver/ctl/images.h"
#include "driver/ctl/ipc.h"
#include "driver/ctl/ipc_open.h"
#include "driver/ctl/liveness.h"
#include "driver/ctl/log_files.h"
#include "driver/ctl/network_add.h"
#include "driver/ctl/network_publications.h"
#include "driver/ctl/params.h"
#include "driver/ctl/report.h"
#include "driver/ctl/respond.h"
#include "driver/ctl/subscription.h"

typedef struct add_request
{
    asi_ipc_request publication; /* session_id is filled in on creation */
    int64_t correlation_id;
} add_request;

/* -- finding what exists, Spec: 03 §6.2-6.3 ------------------------------------------------------------------------------ */

static asi_ipc_publication *find_shared(
    const asi_conductor *conductor, int32_t stream_id, int64_t response_correlation_id)
{
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        asi_ipc_publication *publication = conductor->publications.items[i];
        if (stream_id == publication->stream_id && ASI_PUBLICATION_ACTIVE == publication->state &&
            !publication->is_exclusive && response_correlation_id == publication->params.response_correlation_id &&
            0 == asi_load_acquire_u8(&publication->log.metadata->is_publication_revoked)) /* those end on the next tick */
        {
            return publication;
        }
    }
    return NULL;
}

static const asi_ctl_publication_params *find_tagged(const asi_conductor *conductor, int64_t tag, int32_t *session_id)
{
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        const asi_ipc_publication *publication = conductor->publications.items[i];
        if (AS_NULL_VALUE != tag && tag == publication->params.entity_tag && ASI_PUBLICATION_ACTIVE == publication->state)
        {
            *session_id = publication->session_id;
            return &publication->params;
        }
    }
    return NULL;
}

static bool is_session_used(const asi_conductor *conductor, int32_t stream_id, int32_t session_id, bool also_lingering)
{
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        const asi_ipc_publication *publication = conductor->publications.items[i];
        if (stream_id == publication->stream_id && session_id == publication->session_id &&
            (also_lingering || ASI_PUBLICATION_LINGER != publication->state))
        {
            return true;
        }
    }
    return false;
}

static bool is_ipc_session_used(const asi_conductor *conductor, int32_t session_id, const void *stream_id)
{
    return is_session_used(conductor, *(const int32_t *)stream_id, session_id, true);
}

static bool is_any_session_used(const asi_conductor *conductor, int32_t session_id, const void *stream_id)
{
    return is_ipc_session_used(conductor, session_id, stream_id) ||
        asi_network_is_session_used(conductor, *(const int32_t *)stream_id, session_id);
}

/* -- adding ------------------------------------------------------------------------------------------------------------- */

/* Spec: 03 §6.4 step 8 - only the subscription that the requester added for the answers gets the publication that answers the
 * requests. */
static void connect_response(asi_conductor *conductor, const asi_ipc_publication *publication)
{
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        const asi_ipc_publication *request = conductor->publications.items[i];
        if (request->registration_id != publication->params.response_correlation_id)
        {
            continue;
        }
        for (int32_t j = 0; j < conductor->subscriptions.count; j++)
        {
            asi_ctl_subscription *subscription = conductor->subscriptions.items[j];
            if (subscription->registration_id == request->params.response_correlation_id)
            {
                subscription->has_session_id = true;
                subscription->session_id = publication->session_id;
            }
        }
    }
}

static as_result create(asi_conductor *conductor, const add_request *request, asi_ctl_publication_params *params,
    asi_ipc_publication **created)
{
    asi_ipc_request publication = request->publication;
    if (params->has_session_id &&
        is_session_used(conductor, publication.stream_id, params->session_id, false))
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL,
            "existing publication has clashing sessionId=%d for streamId=%d channel=%.*s", params->session_id,
            publication.stream_id, (int)publication.channel_length, publication.channel);
    }
    publication.session_id =
        params->has_session_id ? params->session_id :
            asi_session_id_next(conductor, is_ipc_session_used, &publication.stream_id);
    if (!params->has_position)
    {
        params->initial_term_id = asi_rand_i32(&conductor->rand);
        params->term_id = params->initial_term_id;
    }
    asi_ipc_publication *opened;
    as_result result = asi_ipc_open(conductor, &publication, params, &opened);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_list_add(&conductor->publications, opened);
    if (AS_OK != result)
    {
        asi_ipc_close(conductor, opened);
        return result;
    }
    connect_response(conductor, opened);
    *created = opened;
    return AS_OK;
}

/* Called last, so that the counters of a client's first publication get lower ids than its heartbeat, as in the stock driver. */
static as_result add_link(asi_conductor *conductor, const add_request *request, asi_ipc_publication *publication)
{
    const asi_ctl_publication_link link = { .registration_id = request->correlation_id, .publication = publication,
        .release = asi_ipc_release };
    asi_driver_client *client = NULL;
    as_result result = asi_client_get_or_add(conductor, request->publication.client_id, &client);
    result = AS_OK == result ? asi_client_add_link(client, &link) : result;
    publication->reference_count += AS_OK == result ? 1 : 0;
    return result;
}

static void announce(asi_conductor *conductor, const add_request *request, const asi_ipc_publication *publication)
{
    const asi_ctl_publication_announcement ready = {
        .is_exclusive = publication->is_exclusive,
        .correlation_id = request->correlation_id,
        .registration_id = publication->registration_id,
        .session_id = publication->session_id,
        .stream_id = publication->stream_id,
        .limit_counter_id = publication->limit_counter_id,
        .channel_status_id = AS_NULL_VALUE,
        .log_file_name = publication->log_path
    };
    asi_respond_publication_ready(conductor, &ready);
}

as_result asi_ctl_publication_add(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int32_t stream_id,
    const char *channel, int64_t channel_length, bool is_exclusive)
{
    const add_request request = {
        .publication = { .client_id = client_id, .registration_id = correlation_id, .stream_id = stream_id,
            .is_exclusive = is_exclusive, .channel = channel, .channel_length = channel_length },
        .correlation_id = correlation_id
    };
    asi_uri uri;
    asi_ctl_publication_params params;
    as_result result = asi_channel_parse_publication_untrusted(&uri, channel, channel_length);
    if (AS_OK == result && ASI_MEDIA_UDP == uri.media)
    {
        return asi_network_publication_add(conductor, &request.publication);
    }
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_ctl_publication_params_read(conductor, &uri, false, find_tagged, &params);
    if (AS_OK != result)
    {
        return asi_fail_in(result, "failed to parse IPC publication params");
    }
    asi_ipc_publication *publication =
        is_exclusive ? NULL : find_shared(conductor, stream_id, params.response_correlation_id);
    result = NULL == publication ? create(conductor, &request, &params, &publication) :
        asi_ctl_publication_params_check_same(&publication->params, publication->session_id, &params);
    if (AS_OK != result)
    {
        return result;
    }
    result = add_link(conductor, &request, publication);
    if (AS_OK != result)
    {
        if (0 == publication->reference_count)
        {
            asi_list_remove(&conductor->publications, publication);
            asi_ipc_close(conductor, publication);
        }
        return result;
    }
    announce(conductor, &request, publication);
    asi_ipc_link_all(conductor, publication);
    return AS_OK;
}

/* -- removing and session ids --------------------------------------------------------------------------------------------- */

as_result asi_ctl_publication_remove(
    asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int64_t registration_id, bool revoke)
{
    asi_driver_client *client = asi_client_find(conductor, client_id);
    for (int32_t i = 0; NULL != client && i < client->publication_links.count; i++)
    {
        asi_ctl_publication_link *link = client->publication_links.items[i];
        if (registration_id == link->registration_id)
        {
            asi_list_remove_at(&client->publication_links, i);
            link->release(link->publication, revoke);
            free(link);
            asi_respond_success(conductor, correlation_id);
            return AS_OK;
        }
    }
    if (asi_log_file_cancel(conductor, client_id, registration_id))
    {
        asi_respond_success(conductor, correlation_id);
        return AS_OK;
    }
    return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_PUBLICATION,
        "unknown publication client_id=%" PRId64 " registration_id=%" PRId64, client_id, registration_id);
}

void asi_ctl_publication_next_session_id(asi_conductor *conductor, int64_t correlation_id, int32_t stream_id)
{
    const int32_t session_id = asi_session_id_next(conductor, is_any_session_used, &stream_id);
    asi_respond_i32(conductor, ASI_RSP_NEXT_AVAILABLE_SESSION_ID, correlation_id, session_id);
}

as_result asi_ctl_publication_reject_image(asi_conductor *conductor, int64_t correlation_id, int64_t image_correlation_id,
    const char *reason, int64_t reason_length)
{
    if (reason_length < 0 || reason_length > ASI_REJECT_REASON_MAX_LENGTH)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_GENERIC, "Invalidation reason must be %d bytes or less",
            ASI_REJECT_REASON_MAX_LENGTH);
    }
    asi_network_image *image = asi_network_image_find(conductor, image_correlation_id);
    if (NULL != image)
    {
        asi_network_image_reject(conductor, image, reason, reason_length);
        asi_conductor_count(conductor, ASI_SYSTEM_IMAGES_REJECTED, 1);
        asi_respond_success(conductor, correlation_id);
        return AS_OK;
    }
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        asi_ipc_publication *publication = conductor->publications.items[i];
        if (image_correlation_id == publication->registration_id)
        {
            asi_ipc_reject(conductor, publication, reason, reason_length);
            asi_conductor_count(conductor, ASI_SYSTEM_IMAGES_REJECTED, 1);
            asi_respond_success(conductor, correlation_id);
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, ASI_ERR_GENERIC, "Unable to resolve image for correlationId=%" PRId64, image_correlation_id);
}

void asi_ctl_publications_on_timer(asi_conductor *conductor)
{
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        asi_ipc_publication *publication = conductor->publications.items[i];
        if (asi_ipc_on_timer(conductor, publication))
        {
            asi_list_remove_at(&conductor->publications, i--);
            asi_ipc_close(conductor, publication);
        }
    }
}

void asi_ctl_publications_release(asi_conductor *conductor)
{
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        asi_ipc_close(conductor, conductor->publications.items[i]);
    }
    asi_list_close(&conductor->publications);
}
