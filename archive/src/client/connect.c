/* The connect sequence of a control session; rules in connect.h. */
#include "client/connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/command.h"

#define ENDPOINT_KEY "endpoint"
#define ENDPOINT_CAPACITY 128
#define SESSION_ID_KEY "session-id"
#define RESPONSE_CORRELATION_ID_KEY "response-correlation-id"

/* Starts a channel with the parameters of `uri` except `left_out`. */
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

/* Writes `channel` with the options' control settings, where the channel does not set them, and `key`=`value`. Spec: 07 §5. */
static as_result put_control_keys(const as_archive_client_options *options, const char *channel, const char *key, int64_t value,
    asi_uri_builder *builder)
{
    asi_uri uri;
    const as_result result = asi_uri_parse_untrusted(&uri, channel, (int64_t)strlen(channel));
    if (AS_OK != result)
    {
        return result;
    }
    copy_uri(builder, &uri, NULL == key ? "" : key);
    if (NULL == asi_uri_get(&uri, "term-length"))
    {
        asi_uri_build_put_i64(builder, "term-length", options->control_term_length);
    }
    if (NULL == asi_uri_get(&uri, "mtu"))
    {
        asi_uri_build_put_i64(builder, "mtu", options->control_mtu_length);
    }
    if (NULL == asi_uri_get(&uri, "sparse"))
    {
        asi_uri_build_put(builder, "sparse", options->control_term_sparse ? "true" : "false");
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

static const char *control_channel_of(const asi_connect *connect)
{
    return NULL == connect->options.control_channel ? "aeron:ipc" : connect->options.control_channel;
}

static const char *response_channel_of(const asi_connect *connect)
{
    return NULL == connect->options.response_channel ? "aeron:ipc" : connect->options.response_channel;
}

/* -- resources ---------------------------------------------------------------------------------------------------------------- */

/* Maps a temporary lack of driver resources to AS_AGAIN, so that the step retries. */
static as_result retry_if_temporary(as_result polled)
{
    return AS_E_PEER == polled && ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE == as_error_code() ? AS_AGAIN : polled;
}

/* Chooses an id that keeps other clients' responses out of the subscription; for a response channel the registration id does. */
static as_result step_session_id(asi_connect *connect)
{
    asi_client_session *session = connect->session;
    as_result result = AS_OK;
    if (AS_NULL_VALUE == connect->driver_request)
    {
        result = is_response_channel(response_channel_of(connect), &connect->is_response);
        if (AS_OK == result && !connect->is_response)
        {
            result = as_client_async_next_session_id(
                session->aeron, connect->options.control_stream_id, &connect->driver_request);
        }
        if (AS_OK != result)
        {
            return asi_fail_in(result, "archive response channel %s", response_channel_of(connect));
        }
    }
    if (AS_NULL_VALUE != connect->driver_request)
    {
        result = as_client_poll_session_id(session->aeron, connect->driver_request, &connect->session_id);
        connect->driver_request = AS_AGAIN == result ? connect->driver_request : AS_NULL_VALUE;
    }
    if (AS_OK == result)
    {
        connect->state = ASI_CONNECT_RESPONSES;
    }
    return result;
}

static as_result step_responses(asi_connect *connect)
{
    asi_client_session *session = connect->session;
    const char *channel = response_channel_of(connect);
    as_result result = AS_OK;
    if (AS_NULL_VALUE == connect->driver_request)
    {
        asi_uri_builder builder;
        result = put_control_keys(&connect->options, channel, connect->is_response ? NULL : SESSION_ID_KEY, connect->session_id, &builder);
        if (AS_OK == result)
        {
            result = as_client_async_add_subscription(session->aeron, builder.text, connect->options.response_stream_id, NULL,
                NULL, NULL, &connect->driver_request);
        }
    }
    if (AS_OK == result)
    {
        result = as_client_poll_subscription(session->aeron, connect->driver_request, &session->responses);
        connect->driver_request = AS_AGAIN == result ? connect->driver_request : AS_NULL_VALUE;
        result = retry_if_temporary(result);
    }
    if (AS_OK == result)
    {
        connect->state = ASI_CONNECT_REQUESTS;
    }
    return result < 0 ? asi_fail_in(result, "archive response channel %s", channel) : result;
}

static as_result step_requests(asi_connect *connect)
{
    asi_client_session *session = connect->session;
    const char *channel = control_channel_of(connect);
    as_result result = AS_OK;
    if (AS_NULL_VALUE == connect->driver_request)
    {
        as_subscription_constants responses;
        asi_uri_builder builder;
        as_subscription_get_constants(session->responses, &responses);
        result = put_control_keys(&connect->options, channel, connect->is_response ? RESPONSE_CORRELATION_ID_KEY : SESSION_ID_KEY,
            connect->is_response ? responses.registration_id : connect->session_id, &builder);
        if (AS_OK == result)
        {
            result = as_client_async_add_exclusive_publication(
                session->aeron, builder.text, connect->options.control_stream_id, &connect->driver_request);
        }
    }
    if (AS_OK == result)
    {
        result = as_client_poll_publication(session->aeron, connect->driver_request, &session->requests);
        connect->driver_request = AS_AGAIN == result ? connect->driver_request : AS_NULL_VALUE;
        result = retry_if_temporary(result);
    }
    if (AS_OK == result)
    {
        connect->state = ASI_CONNECT_REQUESTS_CONNECTED;
    }
    return result < 0 ? asi_fail_in(result, "archive control channel %s", channel) : result;
}

/* -- requests ------------------------------------------------------------------------------------------------------------------ */

static void send_close_session(asi_client_session *session)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_CLOSE_SESSION);
    /* No action on failure: the archive also detects the end of the publication. */
    (void)!asi_client_session_offer(session, &request);
}

as_result asi_connect_replay_requests(
    const asi_client_session *session, int64_t subscription_registration_id, asi_uri_builder *builder)
{
    static const char *const LEFT_OUT[] = { SESSION_ID_KEY, RESPONSE_CORRELATION_ID_KEY, "init-term-id", "term-id",
        "term-offset", "term-length", "ssc" };
    as_publication_constants constants;
    as_publication_get_constants(session->requests, &constants);
    asi_uri uri;
    const as_result result = asi_uri_parse_untrusted(&uri, constants.channel, (int64_t)strlen(constants.channel));
    if (AS_OK != result)
    {
        return result;
    }
    asi_uri_build_start(builder, uri.media, false);
    for (int32_t i = 0; i < uri.param_count; i++)
    {
        bool is_left_out = false;
        for (size_t j = 0; j < sizeof(LEFT_OUT) / sizeof(LEFT_OUT[0]); j++)
        {
            is_left_out = is_left_out || 0 == strcmp(uri.params[i].key, LEFT_OUT[j]);
        }
        if (!is_left_out)
        {
            asi_uri_build_put(builder, uri.params[i].key, NULL == uri.params[i].value ? "" : uri.params[i].value);
        }
    }
    asi_uri_build_put(builder, "term-length", "65536");
    asi_uri_build_put(builder, "ssc", "false");
    asi_uri_build_put_i64(builder, RESPONSE_CORRELATION_ID_KEY, subscription_registration_id);
    return asi_uri_build_end(builder);
}

as_result asi_connect_resolved_channel(const as_subscription *subscription, asi_uri_builder *builder)
{
    as_subscription_constants constants;
    as_subscription_get_constants(subscription, &constants);
    asi_uri uri;
    as_result result = asi_uri_parse_untrusted(&uri, constants.channel, (int64_t)strlen(constants.channel));
    if (AS_OK != result)
    {
        return result;
    }
    const char *endpoint = asi_uri_get(&uri, ENDPOINT_KEY);
    const char *colon = NULL == endpoint ? NULL : strrchr(endpoint, ':');
    const bool is_resolved = NULL == colon || 0 != strcmp(colon, ":0");
    char resolved[ENDPOINT_CAPACITY];
    if (!is_resolved)
    {
        result = as_subscription_resolved_endpoint(subscription, resolved, sizeof(resolved));
        if (AS_OK != result)
        {
            return result;
        }
    }
    copy_uri(builder, &uri, is_resolved ? "" : ENDPOINT_KEY);
    if (!is_resolved)
    {
        asi_uri_build_put(builder, ENDPOINT_KEY, resolved);
    }
    return asi_uri_build_end(builder);
}

/* The request's bytes are borrowed from the caller until it is sent. */
static as_result begin_connect(asi_connect *connect)
{
    const as_result result = asi_call_start(&connect->call, connect->session, &connect->request, NULL);
    connect->request.channel = asi_codec_text(NULL);
    connect->request.encoded_credentials = asi_codec_text(NULL);
    if (AS_OK == result)
    {
        connect->state = ASI_CONNECT_ANSWER;
    }
    return result;
}

static as_result step_send(asi_connect *connect)
{
    asi_client_session *session = connect->session;
    const as_archive_client_options *options = &connect->options;
    asi_uri_builder channel;
    as_result result = asi_connect_resolved_channel(session->responses, &channel);
    if (AS_OK != result)
    {
        return result;
    }
    asi_codec_request_init(&connect->request, ASI_CODEC_AUTH_CONNECT);
    connect->request.stream_id = options->response_stream_id;
    connect->request.client_version = ASI_CODEC_PROTOCOL_VERSION;
    connect->request.channel = asi_codec_text(channel.text);
    connect->request.client_info = asi_codec_text(options->client_info);
    connect->request.encoded_credentials.data = (const char *)options->credentials;
    connect->request.encoded_credentials.length = options->credentials_length;
    return begin_connect(connect);
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

/* AS_AGAIN: no answer yet. Only the deadline of the whole sequence counts. */
static as_result poll_answer(asi_connect *connect)
{
    const as_result result = asi_client_session_poll(connect->session);
    return AS_OK == result && !connect->call.is_answered ? AS_AGAIN : result;
}

/* Reads the answer to the connect request or to a challenge response; it contains the control session id. */
static as_result step_answer(asi_connect *connect)
{
    const asi_call_answer *answer = &connect->call.answer;
    as_result result = poll_answer(connect);
    if (AS_OK != result)
    {
        return result;
    }
    connect->session->control_session_id = answer->control_session_id;
    if (ASI_CODEC_CHALLENGE == answer->template_id)
    {
        connect->state = ASI_CONNECT_CHALLENGE;
        return AS_OK;
    }
    int64_t ignored;
    result = asi_call_value(&connect->call, &ignored);
    result = AS_OK == result ? check_protocol_version(answer->protocol_version) : result;
    connect->state = answer->protocol_version >= ASI_CODEC_ARCHIVE_ID_MIN_VERSION ? ASI_CONNECT_ARCHIVE_ID :
        ASI_CONNECT_KEEP_ALIVE;
    return result;
}

static as_result step_challenge(asi_connect *connect)
{
    const asi_call_answer *challenge = &connect->call.answer;
    const as_archive_client_options *options = &connect->options;
    if (NULL == options->on_challenge)
    {
        return asi_fail(AS_E_PEER, ASI_CODEC_E_AUTHENTICATION_REJECTED, "the archive challenges its clients to authenticate, "
            "and this client was given no on_challenge to answer with");
    }
    uint8_t credentials[ASI_CLIENT_TEXT_CAPACITY];
    const int64_t length = options->on_challenge(options->on_challenge_context, (const uint8_t *)challenge->text,
        challenge->text_length, credentials, (int64_t)sizeof(credentials));
    if (length < 0 || length > (int64_t)sizeof(credentials))
    {
        return asi_fail(AS_E_PEER, ASI_CODEC_E_AUTHENTICATION_REJECTED,
            "the archive challenges its clients to authenticate, and on_challenge had no answer");
    }
    asi_codec_request_init(&connect->request, ASI_CODEC_CHALLENGE_RESPONSE);
    connect->request.encoded_credentials.data = (const char *)credentials;
    connect->request.encoded_credentials.length = length;
    return begin_connect(connect);
}

static as_result step_archive_id(asi_connect *connect)
{
    asi_codec_request_init(&connect->request, ASI_CODEC_ARCHIVE_ID);
    const as_result result = asi_call_start(&connect->call, connect->session, &connect->request, NULL);
    if (AS_OK == result)
    {
        connect->state = ASI_CONNECT_ARCHIVE_ID_ANSWER;
    }
    return result;
}

static as_result step_archive_id_answer(asi_connect *connect)
{
    as_result result = poll_answer(connect);
    if (AS_AGAIN == result)
    {
        return asi_client_session_check_connected(connect->session) < 0 ? AS_E_CLOSED : AS_AGAIN;
    }
    result = AS_OK == result ? asi_call_value(&connect->call, &connect->archive_id) : result;
    if (AS_OK == result)
    {
        connect->state = ASI_CONNECT_KEEP_ALIVE;
    }
    return result;
}

/* Spec: 07 §6.1 - the archive repeats its OK until a first request arrives; older archives have received none at this step. */
static as_result step_keep_alive(asi_connect *connect)
{
    asi_codec_request_init(&connect->request, ASI_CODEC_KEEP_ALIVE);
    const as_result result = asi_client_session_offer(connect->session, &connect->request);
    if (AS_OK == result)
    {
        connect->state = ASI_CONNECT_DONE;
    }
    return result;
}

/* -- the machine --------------------------------------------------------------------------------------------------------------- */

void asi_connect_start(asi_connect *connect, asi_client_session *session, const as_archive_client_options *options)
{
    *connect = (asi_connect){
        .session = session,
        .options = *options,
        .state = ASI_CONNECT_SESSION_ID,
        .deadline_ns = asi_clock_ns(&session->clock) + session->message_timeout_ns,
        .driver_request = AS_NULL_VALUE,
        .archive_id = AS_NULL_VALUE,
    };
}

static as_result step_requests_connected(asi_connect *connect)
{
    if (!as_publication_is_connected(connect->session->requests))
    {
        return AS_AGAIN;
    }
    connect->state = ASI_CONNECT_SEND;
    return AS_OK;
}

/* Names the event that did not arrive before the deadline. */
static as_result fail_by_timeout(const asi_connect *connect)
{
    const asi_client_session *session = connect->session;
    char timeout[32];
    asi_format_duration(timeout, sizeof(timeout), session->message_timeout_ns);
    if (connect->state < ASI_CONNECT_REQUESTS_CONNECTED)
    {
        return asi_fail(AS_E_TIMEOUT, 0, "no answer of the driver in %s about %s within %s",
            as_client_aeron_dir(session->aeron), ASI_CONNECT_REQUESTS == connect->state ? control_channel_of(connect) :
            response_channel_of(connect), timeout);
    }
    if (connect->state <= ASI_CONNECT_SEND)
    {
        as_publication_constants constants;
        as_publication_get_constants(session->requests, &constants);
        static const char UDP[] = "aeron:udp";
        const bool is_udp = 0 == strncmp(constants.channel, UDP, sizeof(UDP) - 1);
        return asi_fail(AS_E_TIMEOUT, 0, "no archive reads control requests on channel=%s streamId=%d within %s: is an archive "
            "running %s%s, with this control stream?", constants.channel, constants.stream_id, timeout,
            is_udp ? "there, its aeron.archive.control.channel enabled and within reach" : "on the driver in ",
            is_udp ? "" : as_client_aeron_dir(session->aeron));
    }
    if (!as_subscription_is_connected(session->responses))
    {
        as_subscription_constants constants;
        as_subscription_get_constants(session->responses, &constants);
        return asi_fail(AS_E_TIMEOUT, 0, "the archive did not open its responses on channel=%s streamId=%d within %s: is an "
            "archive running on the driver in %s, with this control stream?", constants.channel, constants.stream_id, timeout,
            as_client_aeron_dir(session->aeron));
    }
    return asi_call_fail_by_timeout(session, connect->request.template_id, connect->request.correlation_id);
}

as_result asi_connect_step(asi_connect *connect)
{
    static as_result (*const STEPS[])(asi_connect *) = {
        [ASI_CONNECT_SESSION_ID] = step_session_id,
        [ASI_CONNECT_RESPONSES] = step_responses,
        [ASI_CONNECT_REQUESTS] = step_requests,
        [ASI_CONNECT_REQUESTS_CONNECTED] = step_requests_connected,
        [ASI_CONNECT_SEND] = step_send,
        [ASI_CONNECT_ANSWER] = step_answer,
        [ASI_CONNECT_CHALLENGE] = step_challenge,
        [ASI_CONNECT_ARCHIVE_ID] = step_archive_id,
        [ASI_CONNECT_ARCHIVE_ID_ANSWER] = step_archive_id_answer,
        [ASI_CONNECT_KEEP_ALIVE] = step_keep_alive,
    };
    as_result result = AS_OK;
    while (AS_OK == result && ASI_CONNECT_DONE != connect->state)
    {
        result = STEPS[connect->state](connect);
    }
    if (AS_AGAIN == result && as_client_is_closed(connect->session->aeron))
    {
        result = asi_client_session_check_connected(connect->session);
    }
    if (AS_AGAIN == result && asi_clock_ns(&connect->session->clock) >= connect->deadline_ns)
    {
        result = fail_by_timeout(connect);
    }
    if (AS_AGAIN != result)
    {
        asi_call_end(&connect->call);
    }
    return result;
}

bool asi_connect_is_settled(asi_connect *connect)
{
    asi_client_session *session = connect->session;
    if (AS_NULL_VALUE == connect->driver_request)
    {
        return true;
    }
    as_result result;
    switch (connect->state)
    {
        case ASI_CONNECT_SESSION_ID:
            result = as_client_poll_session_id(session->aeron, connect->driver_request, &connect->session_id);
            break;
        case ASI_CONNECT_RESPONSES:
            result = as_client_poll_subscription(session->aeron, connect->driver_request, &session->responses);
            break;
        default:
            result = as_client_poll_publication(session->aeron, connect->driver_request, &session->requests);
            break;
    }
    if (AS_AGAIN == result)
    {
        return false;
    }
    connect->driver_request = AS_NULL_VALUE;
    return true;
}

as_result asi_connect_open(asi_client_session *session, const as_archive_client_options *options, int64_t *archive_id)
{
    asi_connect connect;
    asi_connect_start(&connect, session, options);
    as_result result = asi_connect_step(&connect);
    while (AS_AGAIN == result)
    {
        asi_client_session_idle(session, 0);
        result = asi_connect_step(&connect);
    }
    if (AS_OK == result)
    {
        *archive_id = connect.archive_id;
        return AS_OK;
    }
    char reason[ASI_CLIENT_TEXT_CAPACITY];
    const int32_t code = as_error_code();
    snprintf(reason, sizeof(reason), "%s", as_error_text());
    while (!asi_connect_is_settled(&connect))
    {
        asi_client_session_idle(session, 0);
    }
    return asi_fail(result, code, "%s", reason);
}

void asi_connect_close(asi_client_session *session)
{
    asi_call_abandon_all(session);
    if (NULL != session->requests && AS_NULL_VALUE != session->control_session_id &&
        as_publication_is_connected(session->requests))
    {
        send_close_session(session);
    }
    as_publication_close(session->requests);
    as_subscription_close(session->responses);
    as_controlled_assembler_close(session->assembler);
    free(session->strings);
    session->requests = NULL;
    session->responses = NULL;
    session->assembler = NULL;
    session->strings = NULL;
}
