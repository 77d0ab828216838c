/* Starts and lists replications: checks requests and owns the list. See replication.h. Spec: 08 §10.1-10.2. */
#include "server/replications.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/replication.h"
#include "server/replication_steps.h"
#include "server/reply.h"
#include "server/report.h"
#include "server/uses.h"

/* -- ending ------------------------------------------------------------------------------------------------------------------ */

static void free_params(asi_replication_params *params)
{
    free(params->source_channel);
    free(params->response_channel);
    free(params->replication_channel);
    free(params->live_destination);
    if (NULL != params->credentials)
    {
        explicit_bzero(params->credentials, (size_t)params->credentials_length);
        free(params->credentials);
    }
}

static void free_replication(asi_replication *replication)
{
    asi_connect_close(&replication->source);
    as_publication_close(replication->requests);
    as_image_release(replication->image);
    free_params(&replication->params);
    free(replication->stripped_channel);
    free(replication->original_channel);
    free(replication->source_identity);
    explicit_bzero(replication->source.request, sizeof(replication->source.request)); /* the first one contained credentials */
    free(replication);
}

/* Collects the driver's outstanding answers, so that their resources are released; otherwise the driver would keep them. */
static bool is_settled(asi_replication *replication)
{
    as_client *client = replication->archive->client;
    if (AS_NULL_VALUE != replication->publication_request &&
        AS_AGAIN != as_client_poll_publication(client, replication->publication_request, &replication->requests))
    {
        replication->publication_request = AS_NULL_VALUE;
    }
    if (AS_NULL_VALUE != replication->destination_request &&
        AS_AGAIN != as_client_poll_destination(client, replication->destination_request))
    {
        replication->destination_request = AS_NULL_VALUE;
    }
    const bool is_connect_settled = asi_connect_is_settled(&replication->connect);
    return is_connect_settled && AS_NULL_VALUE == replication->publication_request &&
        AS_NULL_VALUE == replication->destination_request;
}

/* -- the request ------------------------------------------------------------------------------------------------------------- */

static char *copy_text(asi_codec_var from)
{
    return strndup(0 == from.length ? "" : from.data, (size_t)from.length);
}

/* Builds "aeron:udp?endpoint=<host>:0" with the host of `channel`'s endpoint. False if it has none. */
static bool make_response_channel(const char *channel, char *to, size_t capacity)
{
    asi_uri uri;
    if (AS_OK != asi_channel_parse_untrusted(&uri, channel, (int64_t)strlen(channel)))
    {
        return false;
    }
    const char *endpoint = asi_uri_get(&uri, "endpoint");
    const char *colon = NULL == endpoint ? NULL : strrchr(endpoint, ':');
    return NULL != colon &&
        snprintf(to, capacity, "aeron:udp?endpoint=%.*s:0", (int)(colon - endpoint), endpoint) < (int)capacity;
}

/* Spec: 07 §5 - the server's own response channel unless the request sets one; IPC when the source is reached by IPC. */
static as_result choose_response_channel(const as_archive *archive, asi_replication_params *params)
{
    const as_archive_config *config = &archive->config;
    const char *source = params->source_channel;
    char channel[ASI_ARCHIVE_CHANNEL_CAPACITY];
    asi_uri uri;
    if ('\0' != params->response_channel[0])
    {
        return AS_OK;
    }
    if ('\0' != config->control_response_channel[0])
    {
        snprintf(channel, sizeof(channel), "%s", config->control_response_channel);
    }
    else if (AS_OK == asi_channel_parse_untrusted(&uri, source, (int64_t)strlen(source)) && ASI_MEDIA_IPC == uri.media)
    {
        snprintf(channel, sizeof(channel), "aeron:ipc");
    }
    else if (!make_response_channel(config->control_channel, channel, sizeof(channel)) &&
        !make_response_channel(params->replication_channel, channel, sizeof(channel)))
    {
        return asi_fail(AS_E_USAGE, 0, "this archive has no channel for the responses of srcControlChannel=%s: give "
            "srcResponseChannel, or set aeron.archive.control.response.channel", source);
    }
    free(params->response_channel);
    params->response_channel = strdup(channel);
    return NULL == params->response_channel ? asi_fail(AS_E_INTERNAL, 0, "no memory for a replication") : AS_OK;
}

/* Spec: 08 §10.2, rows 1 and 2, and the cases in which a stock archive does not answer. */
static as_result check_channels(asi_replication_params *params)
{
    asi_uri uri;
    const char *channel = params->replication_channel;
    if ('\0' == *channel)
    {
        return asi_fail(AS_E_USAGE, 0, "no replicationChannel was given, and aeron.archive.replication.channel is not set");
    }
    as_result result = asi_channel_parse_untrusted(&uri, channel, (int64_t)strlen(channel));
    if (AS_OK != result)
    {
        return asi_fail_in(result, "replicationChannel");
    }
    params->is_response = asi_channel_is_response(&uri);
    const bool is_manual = params->is_live || params->is_tagged;
    if (params->is_response && is_manual)
    {
        return asi_fail(AS_E_USAGE, 0, params->is_live ? "response channels can't be used with live destinations" :
            "response channels can't be used with tagged replication");
    }
    if (!params->is_response && NULL == asi_uri_get(&uri, "endpoint") && (ASI_MEDIA_UDP == uri.media || is_manual))
    {
        return asi_fail(AS_E_USAGE, 0, "replicationChannel %s has no endpoint for the source to replay to", channel);
    }
    const char *live = params->live_destination;
    result = params->is_live ? asi_channel_parse_untrusted(&uri, live, (int64_t)strlen(live)) : AS_OK;
    return AS_OK == result ? AS_OK : asi_fail_in(result, "liveDestination");
}

static as_result read_params(
    const as_archive *archive, const asi_codec_request *request, asi_replication_params *params)
{
    *params = (asi_replication_params){
        .source_recording_id = request->recording_id,
        .stop_position = request->stop_position,
        .channel_tag_id = request->channel_tag_id,
        .subscription_tag_id = request->subscription_tag_id,
        .source_stream_id = request->stream_id,
        .file_io_max_length = request->file_io_max_length,
        .is_live = request->live_destination.length > 0,
        .is_tagged = AS_NULL_VALUE != request->channel_tag_id || AS_NULL_VALUE != request->subscription_tag_id,
        .source_channel = copy_text(request->channel),
        .response_channel = copy_text(request->src_response_channel),
        .live_destination = copy_text(request->live_destination),
        .replication_channel = request->replication_channel.length > 0 ? copy_text(request->replication_channel) :
            strdup(archive->config.replication_channel),
        .credentials = malloc((size_t)request->encoded_credentials.length + 1),
        .credentials_length = request->encoded_credentials.length,
    };
    /* Spec: 08 §10.3 - a live stream has the source's session id, and the replay must form one image with it. */
    params->session_id = params->is_live ? AS_NULL_VALUE : request->replication_session_id;
    if (NULL == params->source_channel || NULL == params->response_channel || NULL == params->live_destination ||
        NULL == params->replication_channel || NULL == params->credentials)
    {
        params->credentials_length = NULL == params->credentials ? 0 : params->credentials_length;
        return asi_fail(AS_E_INTERNAL, 0, "no memory for a replication");
    }
    if (params->credentials_length > 0)
    {
        memcpy(params->credentials, request->encoded_credentials.data, (size_t)params->credentials_length);
    }
    const as_result result = check_channels(params);
    return AS_OK == result ? choose_response_channel(archive, params) : result;
}

static void start(as_archive *archive, asi_replication *replication)
{
    snprintf(replication->client_info, sizeof(replication->client_info),
        "name=archive archiveId=%lld replicationSessionId=%lld version=%s commit=%s", (long long)archive->archive_id,
        (long long)replication->id, as_version_text(), as_commit_text());
    asi_client_session *source = &replication->source;
    source->aeron = archive->client;
    source->clock = archive->clock;
    source->message_timeout_ns = archive->config.message_timeout_ns;
    source->control_session_id = AS_NULL_VALUE;
    as_archive_client_options options;
    as_archive_client_options_init(&options);
    options.control_channel = replication->params.source_channel;
    options.control_stream_id = replication->params.source_stream_id;
    options.response_channel = replication->params.response_channel;
    options.response_stream_id = (int32_t)archive->config.control_response_stream_id;
    options.client_info = replication->client_info;
    options.credentials = replication->params.credentials;
    options.credentials_length = replication->params.credentials_length;
    asi_replication_enter(replication, ASI_REPLICATION_CONNECT);
    asi_connect_start(&replication->connect, source, &options);
    replication->next = archive->replications;
    archive->replications = replication;
}

/* Spec: 08 §10.2, rows 3 and 4. */
static bool is_destination_refused(asi_control_session *session, const asi_codec_request *request)
{
    asi_catalog_record record;
    const int64_t recording_id = request->dst_recording_id;
    if (AS_NULL_VALUE == recording_id)
    {
        return false;
    }
    if (!asi_catalog_find(session->archive->catalog, recording_id, &record))
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_UNKNOWN_RECORDING,
            "unknown destination recording id %lld", (long long)recording_id);
        return true;
    }
    if (NULL != asi_uses_recorded(session->archive, recording_id))
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_ACTIVE_RECORDING,
            "cannot replicate to active recording %lld", (long long)recording_id);
        return true;
    }
    return false;
}

void asi_replications_start(asi_control_session *session, const asi_codec_request *request)
{
    as_archive *archive = session->archive;
    asi_replication *replication = calloc(1, sizeof(*replication));
    if (NULL == replication)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC, "no memory for a replication");
        return;
    }
    if (AS_OK != read_params(archive, request, &replication->params))
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC, "%s", as_error_text());
        free_params(&replication->params);
        free(replication);
        return;
    }
    if (is_destination_refused(session, request))
    {
        free_params(&replication->params);
        free(replication);
        return;
    }
    replication->archive = archive;
    replication->id = archive->sessions->next_id++; /* Spec: 07 §6.1 - from the same sequence as session ids */
    replication->control_session_id = session->id;
    replication->recording_id = request->dst_recording_id;
    replication->subscription_id = AS_NULL_VALUE;
    replication->source_position = AS_NULL_VALUE;
    replication->token = AS_NULL_VALUE;
    replication->publication_request = AS_NULL_VALUE;
    replication->destination_request = AS_NULL_VALUE;
    replication->replay_session_id = AS_NULL_VALUE;
    start(archive, replication);
    asi_control_ok(session, request->correlation_id, replication->id);
}

void asi_replications_stop(asi_control_session *session, const asi_codec_request *request)
{
    asi_replication *at = session->archive->replications;
    while (NULL != at && (at->id != request->replication_id || ASI_REPLICATION_CLOSING == at->state))
    {
        at = at->next;
    }
    if (NULL == at)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_UNKNOWN_REPLICATION, "unknown replication id %lld",
            (long long)request->replication_id);
        return;
    }
    asi_control_ok(session, request->correlation_id, 0);
    asi_replication_finish(at);
}

/* -- duty cycle -------------------------------------------------------------------------------------------------------------- */

int asi_replications_step(as_archive *archive)
{
    int work_count = 0;
    for (asi_replication **at = &archive->replications; NULL != *at;)
    {
        asi_replication *replication = *at;
        work_count += asi_replication_step(replication);
        if (ASI_REPLICATION_CLOSING == replication->state && is_settled(replication))
        {
            *at = replication->next;
            free_replication(replication);
        }
        else
        {
            at = &replication->next;
        }
    }
    return work_count;
}

void asi_replications_close(as_archive *archive)
{
    while (NULL != archive->replications)
    {
        asi_replication *replication = archive->replications;
        archive->replications = replication->next;
        free_replication(replication);
    }
}
