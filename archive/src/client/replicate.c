/* Blocking calls for replication, and for replays that answer to a publication. Spec: 07 §11, 08 §10; contracts in as_archive.h
 * and archive_client.h. Thread rule: one thread at a time. */
#include <string.h>

#include "client/archive_client.h"
#include "client/connect.h"

static as_result call(as_archive_client *client, asi_codec_request *request, int64_t *value)
{
    asi_async *async = asi_archive_client_async(client);
    as_result result = asi_archive_client_check(client);
    result = AS_OK == result ? asi_async_call(async, request, NULL) : result;
    if (AS_OK == result && NULL != value)
    {
        *value = async->answer.relevant_id;
    }
    return result;
}

/* -- replays by token -------------------------------------------------------------------------------------------------------- */

as_result as_archive_client_replay_token(as_archive_client *client, int64_t recording_id, int64_t *token)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_REPLAY_TOKEN);
    request.recording_id = recording_id;
    return call(client, &request, token);
}

/* The replay finds its way by the image of the request, so both must be of one medium. */
static as_result check_media(const as_publication_constants *requests, const asi_codec_request *request)
{
    asi_uri control;
    asi_uri replay;
    as_result result = asi_uri_parse_untrusted(&control, requests->channel, (int64_t)strlen(requests->channel));
    result = AS_OK == result ? asi_uri_parse_untrusted(&replay, request->channel.data, request->channel.length) : result;
    return AS_OK != result || control.media == replay.media ? result :
        asi_fail(AS_E_USAGE, 0, "the replay answers to a request publication on %s, and can't on %.*s: give both channels the "
            "same medium", requests->channel, (int)request->channel.length, request->channel.data);
}

/* Waits for the archive to read the publication. */
static as_result await_requests(asi_async *async, as_publication *requests, int64_t deadline_ns)
{
    while (!as_publication_is_connected(requests) || as_publication_available_window(requests) <= 0)
    {
        const as_result result = asi_async_check_connected(async);
        if (AS_OK != result)
        {
            return result;
        }
        if (asi_clock_ns(&async->clock) >= deadline_ns)
        {
            return asi_fail(AS_E_TIMEOUT, 0, "the archive does not read the replay's request publication");
        }
        asi_async_idle(async, 0);
    }
    return AS_OK;
}

/* The request goes out on `requests`, its answer comes on the session. */
static as_result ask_on(asi_async *async, as_publication *requests, asi_codec_request *request, int64_t deadline_ns)
{
    as_result result = asi_async_begin_on(async, requests, request, NULL);
    while (AS_AGAIN == result && asi_clock_ns(&async->clock) < deadline_ns)
    {
        asi_async_idle(async, 0);
        result = asi_async_begin_on(async, requests, request, NULL);
    }
    if (AS_AGAIN == result)
    {
        return asi_fail(AS_E_TIMEOUT, 0, "failed to send %s: the archive does not read its control stream",
            asi_codec_request_name(request->template_id));
    }
    result = AS_OK == result ? asi_async_await(async, request, NULL, deadline_ns) : result;
    return AS_OK == result && ASI_CODEC_ERROR == async->answer.code ?
        asi_async_fail_as_answered(async, asi_codec_request_name(request->template_id)) : result;
}

as_result asi_archive_client_replay_by_token(as_archive_client *client, asi_codec_request *request,
    int64_t subscription_registration_id, int64_t *replay_session_id, as_publication **requests)
{
    asi_async *async = asi_archive_client_async(client);
    as_result result = asi_archive_client_check(client);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t deadline_ns = asi_clock_ns(&async->clock) + async->message_timeout_ns;
    as_publication_constants constants;
    asi_uri_builder channel;
    as_publication_get_constants(async->requests, &constants);
    result = check_media(&constants, request);
    result = AS_OK == result ? asi_connect_replay_requests(async, subscription_registration_id, &channel) : result;
    result = AS_OK == result ?
        as_client_add_exclusive_publication(async->aeron, channel.text, constants.stream_id, requests) : result;
    result = AS_OK == result ? await_requests(async, *requests, deadline_ns) : result;
    /* The token last: it lives for the archive's connect timeout only. */
    result = AS_OK == result ?
        as_archive_client_replay_token(client, request->recording_id, &request->replay_token) : result;
    result = AS_OK == result ? ask_on(async, *requests, request, deadline_ns) : result;
    if (AS_OK == result && NULL != replay_session_id)
    {
        *replay_session_id = async->answer.relevant_id;
    }
    return result;
}

/* -- replication ---------------------------------------------------------------------------------------------------------------- */

void as_replication_params_init(as_replication_params *params)
{
    *params = (as_replication_params){
        .dst_recording_id = AS_NULL_VALUE,
        .stop_position = AS_NULL_VALUE,
        .channel_tag_id = AS_NULL_VALUE,
        .subscription_tag_id = AS_NULL_VALUE,
        .file_io_max_length = AS_NULL_VALUE,
        .session_id = AS_NULL_VALUE,
    };
}

/* Spec: 07 §7 - a stock archive does not answer when one of these is no URI. */
static as_result check_channel(const char *channel, const char *name)
{
    asi_uri uri;
    const as_result result = NULL == channel ? AS_OK : asi_uri_parse_untrusted(&uri, channel, (int64_t)strlen(channel));
    return AS_OK == result ? AS_OK : asi_fail_in(result, "%s %s", name, channel);
}

as_result as_archive_client_replicate(as_archive_client *client, int64_t src_recording_id, const char *src_control_channel,
    int32_t src_control_stream_id, const as_replication_params *params, int64_t *replication_id)
{
    as_replication_params defaults;
    as_replication_params_init(&defaults);
    const as_replication_params *chosen = NULL == params ? &defaults : params;
    if (NULL == src_control_channel)
    {
        return asi_fail(AS_E_USAGE, 0, "a replication needs the source archive's control channel");
    }
    if (NULL != chosen->live_destination && AS_NULL_VALUE != chosen->session_id)
    {
        return asi_fail(AS_E_USAGE, 0, "live_destination and session_id can't be given together: the replay needs the live "
            "stream's session id to become one image with it");
    }
    as_result result = check_channel(src_control_channel, "source control channel");
    result = AS_OK == result ? check_channel(chosen->replication_channel, "replication channel") : result;
    result = AS_OK == result ? check_channel(chosen->live_destination, "live destination") : result;
    result = AS_OK == result ? check_channel(chosen->src_response_channel, "source response channel") : result;
    if (AS_OK != result)
    {
        return result;
    }
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_REPLICATE_2);
    request.recording_id = src_recording_id;
    request.dst_recording_id = chosen->dst_recording_id;
    request.stop_position = chosen->stop_position;
    request.channel_tag_id = chosen->channel_tag_id;
    request.subscription_tag_id = chosen->subscription_tag_id;
    request.stream_id = src_control_stream_id;
    request.file_io_max_length = chosen->file_io_max_length;
    request.replication_session_id = chosen->session_id;
    request.channel = asi_codec_text(src_control_channel);
    request.live_destination = asi_codec_text(chosen->live_destination);
    request.replication_channel = asi_codec_text(chosen->replication_channel);
    request.encoded_credentials = (asi_codec_var){ .data = (const char *)chosen->credentials,
        .length = NULL == chosen->credentials ? 0 : chosen->credentials_length };
    request.src_response_channel = asi_codec_text(chosen->src_response_channel);
    return call(client, &request, replication_id);
}

as_result as_archive_client_stop_replication(as_archive_client *client, int64_t replication_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_STOP_REPLICATION);
    request.replication_id = replication_id;
    return call(client, &request, NULL);
}

as_result as_archive_client_try_stop_replication(as_archive_client *client, int64_t replication_id, bool *was_active)
{
    as_result result = as_archive_client_stop_replication(client, replication_id);
    const bool is_unknown = AS_E_PEER == result && ASI_CODEC_E_UNKNOWN_REPLICATION == as_error_code();
    result = is_unknown ? AS_OK : result;
    if (AS_OK == result && NULL != was_active)
    {
        *was_active = !is_unknown;
    }
    return result;
}
