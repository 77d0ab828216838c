/* The connect sequence of a control session; rules in connect.h. */
#include "client/connect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_ID_KEY "session-id"
#define RESPONSE_CORRELATION_ID_KEY "response-correlation-id"

/* What a stock client puts on both control channels unless the caller chose. Spec: 07 §5. */
static const struct
{
    const char *key;
    const char *value;
} CONTROL_DEFAULTS[] = { { "term-length", "65536" }, { "mtu", "1408" }, { "sparse", "true" } };

/* Starts a channel with the parameters of `uri` but for `left_out`. */
static void copy_uri(asi_uri_builder *builder, const asi_uri *uri, const char *left_out)
{
    asi_uri_build_start(builder, uri->media, uri->is_spy);
    for (int32_t i = 0; i < uri->param_count; i++)
    {
        if (0 != strcmp(uri->params[i].key, left_out))
        {
            asi_uri_build_put(builder, uri->params[i].key, NULL == uri->params[i].value ? "" : uri->params[i].value);
        }
    }
}

as_result asi_connect_put_session(const char *channel, int32_t session_id, asi_uri_builder *builder)
{
    asi_uri uri;
    const as_result result = asi_uri_parse_untrusted(&uri, channel, (int64_t)strlen(channel));
    if (AS_OK != result)
    {
        return result;
    }
    copy_uri(builder, &uri, SESSION_ID_KEY);
    asi_uri_build_put_i64(builder, SESSION_ID_KEY, session_id);
    return asi_uri_build_end(builder);
}

/* `channel` with the control defaults and `key`=`value`. */
static as_result put_control_keys(const char *channel, const char *key, int64_t value, asi_uri_builder *builder)
{
    asi_uri uri;
    const as_result result = asi_uri_parse_untrusted(&uri, channel, (int64_t)strlen(channel));
    if (AS_OK != result)
    {
        return result;
    }
    copy_uri(builder, &uri, NULL == key ? "" : key);
    for (size_t i = 0; i < sizeof(CONTROL_DEFAULTS) / sizeof(CONTROL_DEFAULTS[0]); i++)
    {
        if (NULL == asi_uri_get(&uri, CONTROL_DEFAULTS[i].key))
        {
            asi_uri_build_put(builder, CONTROL_DEFAULTS[i].key, CONTROL_DEFAULTS[i].value);
        }
    }
    if (NULL != key)
    {
        asi_uri_build_put_i64(builder, key, value);
    }
    return asi_uri_build_end(builder);
}

static as_result is_response_channel(const char *channel, bool *is_response)
{
    asi_uri uri;
    const as_result result = asi_uri_parse_untrusted(&uri, channel, (int64_t)strlen(channel));
    if (AS_OK == result)
    {
        const char *mode = asi_uri_get(&uri, "control-mode");
        *is_response = NULL != mode && 0 == strcmp(mode, "response");
    }
    return result;
}

/* Response subscription first, so that the archive finds it; then the request publication. Both carry one fresh session id,
 * which keeps other clients' responses out of the subscription; with a response channel the registration id does that. */
static as_result add_resources(asi_async *async, const as_archive_client_options *options)
{
    const char *control_channel = NULL == options->control_channel ? "aeron:ipc" : options->control_channel;
    const char *response_channel = NULL == options->response_channel ? "aeron:ipc" : options->response_channel;
    bool is_response = false;
    int32_t session_id = 0;
    asi_uri_builder builder;
    as_result result = is_response_channel(response_channel, &is_response);
    if (AS_OK == result && !is_response)
    {
        result = as_client_next_session_id(async->aeron, options->control_stream_id, &session_id);
    }
    if (AS_OK == result)
    {
        result = put_control_keys(response_channel, is_response ? NULL : SESSION_ID_KEY, session_id, &builder);
    }
    if (AS_OK == result)
    {
        result = as_client_add_subscription_with(
            async->aeron, builder.text, options->response_stream_id, NULL, NULL, NULL, &async->responses);
    }
    if (AS_OK != result)
    {
        return asi_fail_in(result, "archive response channel %s", response_channel);
    }
    as_subscription_constants constants;
    as_subscription_get_constants(async->responses, &constants);
    result = put_control_keys(control_channel, is_response ? RESPONSE_CORRELATION_ID_KEY : SESSION_ID_KEY,
        is_response ? constants.registration_id : session_id, &builder);
    if (AS_OK == result)
    {
        result = as_client_add_exclusive_publication(
            async->aeron, builder.text, options->control_stream_id, &async->requests);
    }
    return AS_OK == result ? AS_OK : asi_fail_in(result, "archive control channel %s", control_channel);
}

static bool is_request_connected(const asi_async *async) { return as_publication_is_connected(async->requests); }

static bool is_response_connected(const asi_async *async) { return as_subscription_is_connected(async->responses); }

static as_result await_connected(asi_async *async, bool (*is_connected)(const asi_async *), int64_t deadline_ns,
    const char *what, const char *channel, int32_t stream_id)
{
    while (!is_connected(async))
    {
        if (as_client_is_closed(async->aeron))
        {
            return asi_async_check_connected(async);
        }
        if (asi_clock_ns(&async->clock) >= deadline_ns)
        {
            char timeout[32];
            asi_format_duration(timeout, sizeof(timeout), async->message_timeout_ns);
            return asi_fail(AS_E_TIMEOUT, 0, "%s on channel=%s streamId=%d within %s: is an archive running on the driver in "
                "%s, with this control stream?", what, channel, stream_id, timeout, as_client_aeron_dir(async->aeron));
        }
        asi_async_idle(async, 0);
    }
    return AS_OK;
}

static as_result await_request_connected(asi_async *async, int64_t deadline_ns)
{
    as_publication_constants constants;
    as_publication_get_constants(async->requests, &constants);
    return await_connected(async, is_request_connected, deadline_ns, "no archive reads control requests", constants.channel,
        constants.stream_id);
}

static as_result await_response_connected(asi_async *async, int64_t deadline_ns)
{
    as_subscription_constants constants;
    as_subscription_get_constants(async->responses, &constants);
    return await_connected(async, is_response_connected, deadline_ns, "the archive did not open its responses",
        constants.channel, constants.stream_id);
}

static void send_close_session(asi_async *async)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_CLOSE_SESSION);
    /* The best that can be done when this fails is what happens anyway: the archive sees the publication end. */
    (void)!asi_async_send(async, &request, 0);
}

static as_result check_protocol_version(int32_t version)
{
    if (ASI_CODEC_VERSION_MAJOR(version) != ASI_CODEC_VERSION_MAJOR(ASI_CODEC_PROTOCOL_VERSION))
    {
        return asi_fail(AS_E_PEER, 0, "the archive speaks control protocol %d.%d.%d, this client %d.%d.%d: use an archive of "
            "the same major version", ASI_CODEC_VERSION_MAJOR(version), ASI_CODEC_VERSION_MINOR(version),
            ASI_CODEC_VERSION_PATCH(version), ASI_CODEC_VERSION_MAJOR(ASI_CODEC_PROTOCOL_VERSION),
            ASI_CODEC_VERSION_MINOR(ASI_CODEC_PROTOCOL_VERSION), ASI_CODEC_VERSION_PATCH(ASI_CODEC_PROTOCOL_VERSION));
    }
    return AS_OK;
}

/* Connect request and its answer, which brings the control session id. */
static as_result make_session(asi_async *async, const as_archive_client_options *options, int64_t deadline_ns)
{
    as_subscription_constants constants;
    as_subscription_get_constants(async->responses, &constants);
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_AUTH_CONNECT);
    request.stream_id = constants.stream_id;
    request.client_version = ASI_CODEC_PROTOCOL_VERSION;
    request.channel = asi_codec_text(constants.channel);
    request.client_info = asi_codec_text(options->client_info);
    as_result result = asi_async_send(async, &request, deadline_ns);
    if (AS_OK == result)
    {
        result = await_response_connected(async, deadline_ns);
    }
    if (AS_OK == result)
    {
        result = asi_async_await(async, &request, NULL, deadline_ns);
    }
    if (AS_OK != result)
    {
        return result;
    }
    async->control_session_id = async->answer.control_session_id;
    if (ASI_CODEC_CHALLENGE == async->answer.template_id)
    {
        return asi_fail(AS_E_PEER, ASI_CODEC_E_AUTHENTICATION_REJECTED, "the archive challenges its clients to authenticate, "
            "which this client can't: use an archive with the default authenticator");
    }
    if (ASI_CODEC_OK != async->answer.code)
    {
        return asi_async_fail_as_answered(async, "AuthConnectRequest");
    }
    return check_protocol_version(async->answer.protocol_version);
}

as_result asi_connect_open(asi_async *async, const as_archive_client_options *options, int64_t *archive_id)
{
    const int64_t deadline_ns = asi_clock_ns(&async->clock) + async->message_timeout_ns;
    int64_t id = AS_NULL_VALUE;
    as_result result = add_resources(async, options);
    if (AS_OK == result)
    {
        result = await_request_connected(async, deadline_ns);
    }
    if (AS_OK == result)
    {
        result = make_session(async, options, deadline_ns);
    }
    asi_codec_request request;
    if (AS_OK == result && async->answer.protocol_version >= ASI_CODEC_ARCHIVE_ID_MIN_VERSION)
    {
        asi_codec_request_init(&request, ASI_CODEC_ARCHIVE_ID);
        result = asi_async_call(async, &request, NULL);
        id = async->answer.relevant_id;
    }
    if (AS_OK == result)
    {
        /* Spec: 07 §6.1 - until a first request the archive repeats its OK for ever; older archives got none yet. */
        asi_codec_request_init(&request, ASI_CODEC_KEEP_ALIVE);
        result = asi_async_send(async, &request, deadline_ns);
    }
    if (AS_OK == result)
    {
        *archive_id = id;
    }
    return result;
}

void asi_connect_close(asi_async *async)
{
    if (NULL != async->requests && AS_NULL_VALUE != async->control_session_id &&
        as_publication_is_connected(async->requests))
    {
        send_close_session(async);
    }
    as_publication_close(async->requests);
    as_subscription_close(async->responses);
    as_controlled_assembler_close(async->assembler);
    free(async->strings);
    async->requests = NULL;
    async->responses = NULL;
    async->assembler = NULL;
    async->strings = NULL;
}
