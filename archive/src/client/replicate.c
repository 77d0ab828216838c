/* Blocking calls for replication. Spec: 08 §10; contracts in as_archive.h. Thread rule: one thread at a time. */
#include <string.h>

#include "client/archive_client.h"
#include "wire/uri.h"

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

/* Spec: 07 §7 - a stock archive does not answer when one of these is not a URI. */
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
    return asi_archive_client_call(client, &request, replication_id);
}

as_result as_archive_client_stop_replication(as_archive_client *client, int64_t replication_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_STOP_REPLICATION);
    request.replication_id = replication_id;
    return asi_archive_client_call(client, &request, NULL);
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
