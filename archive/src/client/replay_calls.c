/* Blocking calls that start a replay. A replay whose channel responds to a publication is requested with a token.
 * Spec: 07 §9, §11; contracts in as_archive.h. Thread rule: one thread at a time. */
#include <string.h>

#include "client/archive_client.h"
#include "client/connect.h"

void as_replay_params_init(as_replay_params *params)
{
    *params = (as_replay_params){
        .position = AS_NULL_VALUE,
        .length = AS_NULL_VALUE,
        .bounding_limit_counter_id = AS_NULL_VALUE,
        .file_io_max_length = AS_NULL_VALUE,
        .subscription_registration_id = AS_NULL_VALUE,
    };
}

/* -- replays by token -------------------------------------------------------------------------------------------------------- */

as_result as_archive_client_replay_token(as_archive_client *client, int64_t recording_id, int64_t *token)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_REPLAY_TOKEN);
    request.recording_id = recording_id;
    return asi_archive_client_call(client, &request, token);
}

/* The archive finds the replay's target by the image of the request, so both must use one medium. */
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

/* Waits until the archive subscribes to the publication and grants a window. */
static as_result await_requests(asi_client_session *session, as_publication *requests, int64_t deadline_ns)
{
    while (!as_publication_is_connected(requests) || as_publication_available_window(requests) <= 0)
    {
        const as_result result = asi_client_session_check_connected(session);
        if (AS_OK != result)
        {
            return result;
        }
        if (asi_clock_ns(&session->clock) >= deadline_ns)
        {
            return asi_fail(AS_E_TIMEOUT, 0, "the archive does not read the replay's request publication");
        }
        asi_client_session_idle(session, 0);
    }
    return AS_OK;
}

/* Starts a replay whose channel has control-mode=response: sends a token on a new publication, *requests, and takes the answer on
 * the session. The caller closes *requests once the image is available. `request` is the replay's. */
static as_result replay_by_token(as_archive_client *client, asi_codec_request *request,
    int64_t subscription_registration_id, int64_t *replay_session_id, as_publication **requests)
{
    asi_client_session *session = asi_archive_client_session(client);
    asi_call call = { .session = NULL };
    int64_t started = AS_NULL_VALUE;
    as_result result = asi_archive_client_check(client);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t deadline_ns = asi_clock_ns(&session->clock) + session->message_timeout_ns;
    as_publication_constants constants;
    asi_uri_builder channel;
    as_publication_get_constants(session->requests, &constants);
    result = check_media(&constants, request);
    result = AS_OK == result ? asi_connect_replay_requests(session, subscription_registration_id, &channel) : result;
    result = AS_OK == result ?
        as_client_add_exclusive_publication(session->aeron, channel.text, constants.stream_id, requests) : result;
    result = AS_OK == result ? await_requests(session, *requests, deadline_ns) : result;
    /* The token is requested last: it is valid only for the archive's connect timeout. */
    result = AS_OK == result ?
        as_archive_client_replay_token(client, request->recording_id, &request->replay_token) : result;
    result = AS_OK == result ? asi_call_run(&call, session, *requests, request, NULL, deadline_ns) : result;
    result = AS_OK == result ? asi_call_value(&call, &started) : result;
    if (AS_OK == result && NULL != replay_session_id)
    {
        *replay_session_id = started;
    }
    return result;
}

/* -- replays ------------------------------------------------------------------------------------------------------------------ */

static asi_codec_request replay_request(
    int64_t recording_id, const char *replay_channel, int32_t replay_stream_id, const as_replay_params *params)
{
    as_replay_params defaults;
    as_replay_params_init(&defaults);
    const as_replay_params *chosen = NULL == params ? &defaults : params;
    const bool is_bounded = AS_NULL_VALUE != chosen->bounding_limit_counter_id;
    asi_codec_request request;
    asi_codec_request_init(&request, is_bounded ? ASI_CODEC_BOUNDED_REPLAY : ASI_CODEC_REPLAY);
    request.recording_id = recording_id;
    request.position = chosen->position;
    request.length = chosen->length;
    request.limit_counter_id = chosen->bounding_limit_counter_id;
    request.file_io_max_length = chosen->file_io_max_length;
    request.channel = asi_codec_text(replay_channel);
    request.stream_id = replay_stream_id;
    return request;
}

/* Spec: 07 §7 - a stock archive does not answer when the replay channel is not a URI. */
static as_result check_replay_channel(const char *replay_channel, bool *is_response)
{
    asi_uri uri;
    const as_result result = asi_uri_parse_untrusted(&uri, replay_channel, (int64_t)strlen(replay_channel));
    if (AS_OK != result)
    {
        return asi_fail_in(result, "replay channel %s", replay_channel);
    }
    const char *mode = asi_uri_get(&uri, "control-mode");
    *is_response = NULL != mode && 0 == strcmp(mode, "response");
    return AS_OK;
}

as_result as_archive_client_start_replay(as_archive_client *client, int64_t recording_id, const char *replay_channel,
    int32_t replay_stream_id, const as_replay_params *params, int64_t *replay_session_id)
{
    bool is_response = false;
    const as_result result = check_replay_channel(replay_channel, &is_response);
    if (AS_OK != result)
    {
        return result;
    }
    asi_codec_request request = replay_request(recording_id, replay_channel, replay_stream_id, params);
    if (!is_response)
    {
        return asi_archive_client_call(client, &request, replay_session_id);
    }
    if (NULL == params || AS_NULL_VALUE == params->subscription_registration_id)
    {
        return asi_fail(AS_E_USAGE, 0, "replay channel %s answers to a subscription: set subscription_registration_id, or call "
            "as_archive_client_replay, which subscribes", replay_channel);
    }
    as_publication *requests = NULL;
    const as_result started = replay_by_token(
        client, &request, params->subscription_registration_id, replay_session_id, &requests);
    as_publication_close(requests);
    return started;
}

/* The subscription is added first, because the replay responds to it. */
static as_result replay_to_response(as_archive_client *client, asi_codec_request *request, const char *replay_channel,
    int64_t *replay_session_id, as_subscription **subscription)
{
    asi_client_session *session = asi_archive_client_session(client);
    as_subscription *added = NULL;
    as_result result = as_client_add_subscription(session->aeron, replay_channel, request->stream_id, &added);
    if (AS_OK != result)
    {
        return asi_fail_in(result, "subscribing to replay channel %s", replay_channel);
    }
    as_subscription_constants constants;
    as_subscription_get_constants(added, &constants);
    as_publication *requests = NULL;
    result = replay_by_token(
        client, request, constants.registration_id, replay_session_id, &requests);
    const int64_t deadline_ns = asi_clock_ns(&session->clock) + session->message_timeout_ns;
    while (AS_OK == result && !as_subscription_is_connected(added))
    {
        if (asi_clock_ns(&session->clock) >= deadline_ns)
        {
            result = asi_fail(AS_E_TIMEOUT, 0, "no image of the replay came on channel %s", replay_channel);
        }
        asi_client_session_idle(session, 0);
    }
    as_publication_close(requests);
    if (AS_OK != result)
    {
        as_subscription_close(added);
        return result;
    }
    *subscription = added;
    return AS_OK;
}

as_result as_archive_client_replay(as_archive_client *client, int64_t recording_id, const char *replay_channel,
    int32_t replay_stream_id, const as_replay_params *params, int64_t *replay_session_id, as_subscription **subscription)
{
    int64_t session = AS_NULL_VALUE;
    as_subscription *added = NULL;
    asi_uri_builder channel;
    bool is_response = false;
    as_result result = check_replay_channel(replay_channel, &is_response);
    if (AS_OK == result && is_response)
    {
        asi_codec_request request = replay_request(recording_id, replay_channel, replay_stream_id, params);
        return replay_to_response(client, &request, replay_channel, replay_session_id, subscription);
    }
    result = AS_OK != result ? result :
        as_archive_client_start_replay(client, recording_id, replay_channel, replay_stream_id, params, &session);
    if (AS_OK != result)
    {
        return result;
    }
    /* The image's session id is the low half of the replay session id. Spec: 07 §9. */
    result = asi_connect_put_session(replay_channel, (int32_t)(uint32_t)(uint64_t)session, &channel);
    if (AS_OK == result)
    {
        result = as_client_add_subscription(asi_archive_client_session(client)->aeron, channel.text, replay_stream_id, &added);
    }
    if (AS_OK != result)
    {
        /* Without a subscriber the replay ends after the archive's connect timeout. */
        return asi_fail_in(result, "subscribing to replay channel %s", replay_channel);
    }
    *subscription = added;
    if (NULL != replay_session_id)
    {
        *replay_session_id = session;
    }
    return AS_OK;
}
