/* Builds the channels of a replication from the replication channel. See replication.h. Spec: 08 §10.3 (EXTEND, REPLAY). */
#include "server/replication_channels.h"

#include <stdio.h>
#include <string.h>

#define ENDPOINT_CAPACITY 128

static bool is_left_out(const char *key, const char *const *left_out)
{
    while (NULL != *left_out && 0 != strcmp(key, *left_out))
    {
        left_out++;
    }
    return NULL != *left_out;
}

static as_result copy(
    const asi_replication *replication, const char *const *left_out, asi_uri *uri, asi_uri_builder *channel)
{
    const char *text = replication->params.replication_channel;
    const as_result parsed = asi_channel_parse_untrusted(uri, text, (int64_t)strlen(text));
    if (AS_OK != parsed)
    {
        return parsed;
    }
    asi_uri_build_start(channel, uri->media, false);
    for (int32_t i = 0; i < uri->param_count; i++)
    {
        if (!is_left_out(uri->params[i].key, left_out))
        {
            asi_uri_build_put(channel, uri->params[i].key, NULL == uri->params[i].value ? "" : uri->params[i].value);
        }
    }
    return AS_OK;
}

static int32_t session_id_of(const asi_replication *replication)
{
    return AS_NULL_VALUE == replication->params.session_id ? replication->record.session_id : replication->params.session_id;
}

static bool is_manual(const asi_replication *replication)
{
    return replication->params.is_live || replication->params.is_tagged;
}

as_result asi_replication_recording_channel(const asi_replication *replication, asi_uri_builder *channel)
{
    static const char *const plain[] = { "session-id", "rejoin", NULL };
    static const char *const manual[] = { "session-id", "rejoin", "endpoint", "interface", "tags", "control-mode", NULL };
    asi_uri uri;
    const as_result result = copy(replication, is_manual(replication) ? manual : plain, &uri, channel);
    if (AS_OK != result)
    {
        return result;
    }
    asi_uri_build_put(channel, "rejoin", "false"); /* the end of the image is the end of the copy */
    if (!replication->params.is_response)
    {
        asi_uri_build_put_i64(channel, "session-id", session_id_of(replication));
    }
    if (is_manual(replication))
    {
        char tags[64];
        const int64_t channel_tag = replication->params.channel_tag_id;
        const int64_t subscription_tag = replication->params.subscription_tag_id;
        snprintf(tags, sizeof(tags), "%lld,%lld",
            (long long)(AS_NULL_VALUE == channel_tag ? replication->id : channel_tag),
            (long long)(AS_NULL_VALUE == subscription_tag ? replication->id : subscription_tag));
        asi_uri_build_put(channel, "tags", tags);
        asi_uri_build_put(channel, "control-mode", "manual");
    }
    return asi_uri_build_end(channel);
}

as_result asi_replication_destination_channel(const asi_replication *replication, asi_uri_builder *channel)
{
    static const char *const KEPT[] = { "endpoint", "interface" };
    const char *text = replication->params.replication_channel;
    asi_uri uri;
    const as_result parsed = asi_channel_parse_untrusted(&uri, text, (int64_t)strlen(text));
    if (AS_OK != parsed)
    {
        return parsed;
    }
    asi_uri_build_start(channel, uri.media, false);
    for (size_t i = 0; i < sizeof(KEPT) / sizeof(KEPT[0]); i++)
    {
        const char *value = asi_uri_get(&uri, KEPT[i]);
        if (NULL != value)
        {
            asi_uri_build_put(channel, KEPT[i], value);
        }
    }
    return asi_uri_build_end(channel);
}

static bool has_open_port(const char *endpoint)
{
    const char *colon = strrchr(endpoint, ':');
    return NULL != colon && 0 == strcmp(colon, ":0");
}

as_result asi_replication_replay_channel(
    const asi_replication *replication, const as_subscription *subscription, asi_uri_builder *channel)
{
    static const char *const left_out[] = { "endpoint", "session-id", "response-correlation-id", "linger", "eos", NULL };
    asi_uri uri;
    as_result result = copy(replication, left_out, &uri, channel);
    if (AS_OK != result)
    {
        return result;
    }
    const char *endpoint = asi_uri_get(&uri, "endpoint");
    if (NULL != endpoint)
    {
        char resolved[ENDPOINT_CAPACITY];
        result = has_open_port(endpoint) ? as_subscription_resolved_endpoint(subscription, resolved, sizeof(resolved)) : AS_OK;
        if (AS_OK != result)
        {
            return result;
        }
        asi_uri_build_put(channel, "endpoint", has_open_port(endpoint) ? resolved : endpoint);
    }
    if (replication->params.is_response)
    {
        asi_uri_build_put_i64(channel, "response-correlation-id", replication->subscription_id);
    }
    else
    {
        asi_uri_build_put_i64(channel, "session-id", session_id_of(replication));
    }
    if (replication->params.is_live)
    {
        /* The live stream follows at once, and must not be mistaken for ended. */
        asi_uri_build_put(channel, "linger", "0");
        asi_uri_build_put(channel, "eos", "false");
    }
    return asi_uri_build_end(channel);
}
