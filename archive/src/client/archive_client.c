/* Blocking calls to an archive. Spec: 07 §9, 08 §13; contracts in as_archive.h.
 *
 * Each call builds a request, runs it and reads the number in the answer. Owns the session and, when the caller passed none, the
 * Aeron client below it. Thread rule: one thread at a time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive_client.h"
#include "client/call.h"
#include "client/connect.h"

struct as_archive_client
{
    asi_client_session session;
    as_client *own_aeron; /* owned; NULL when the caller's client is used */
    int64_t archive_id;
    bool is_session_closed;          /* the session was lost and its streams are closed */
    as_on_recording_signal on_signal; /* the application's */
    void *on_signal_context;
    int64_t signal_count;            /* total received */
};

void as_archive_client_options_init(as_archive_client_options *options)
{
    *options = (as_archive_client_options){
        .control_stream_id = 10,
        .response_stream_id = 20,
        .message_timeout_ns = INT64_C(10000000000),
        .control_term_length = 64 * 1024,
        .control_mtu_length = 1408,
        .control_term_sparse = true,
    };
}

static void count_signal(void *context, const as_signal *signal);

static as_result open_own_aeron(as_archive_client *client, const char *aeron_dir)
{
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = aeron_dir;
    options.client_name = "archive-client";
    return as_client_open(&options, &client->own_aeron);
}

as_result asi_archive_client_prepare(
    asi_client_session *session, const as_archive_client_options *options, as_client *aeron, const asi_clock *clock)
{
    if (options->message_timeout_ns <= 0)
    {
        return asi_fail(AS_E_USAGE, 0, "message_timeout_ns is %" PRId64 ": give the archive some time to answer",
            options->message_timeout_ns);
    }
    *session = (asi_client_session){
        .aeron = aeron,
        .is_aeron_invoked = as_client_invoke(aeron) >= 0,
        .clock = *clock,
        .message_timeout_ns = options->message_timeout_ns,
        .control_session_id = AS_NULL_VALUE,
        .action = AS_ACTION_CONTINUE,
        .on_signal = options->on_signal,
        .on_signal_context = options->on_signal_context,
        .on_error = options->on_error,
        .on_error_context = options->on_error_context,
        .invoker = options->invoker,
        .invoker_context = options->invoker_context,
    };
    return asi_idle_parse(&session->idle, "backoff", NULL);
}

as_result asi_archive_client_open_with(
    const as_archive_client_options *options, const asi_clock *clock, as_archive_client **client)
{
    as_archive_client *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, 0, "no memory for an archive client");
    }
    as_result result = NULL == options->client ? open_own_aeron(opened, options->aeron_dir) : AS_OK;
    if (AS_OK == result)
    {
        result = asi_archive_client_prepare(
            &opened->session, options, NULL == options->client ? opened->own_aeron : options->client, clock);
    }
    opened->on_signal = options->on_signal;
    opened->on_signal_context = options->on_signal_context;
    opened->session.on_signal = count_signal;
    opened->session.on_signal_context = opened;
    if (AS_OK == result)
    {
        result = asi_connect_open(&opened->session, options, &opened->archive_id);
    }
    if (AS_OK != result)
    {
        as_archive_client_close(opened);
        return result;
    }
    *client = opened;
    return AS_OK;
}

as_result as_archive_client_open(const as_archive_client_options *options, as_archive_client **client)
{
    const asi_clock clock = asi_clock_system();
    return asi_archive_client_open_with(options, &clock, client);
}

asi_client_session *asi_archive_client_session(as_archive_client *client) { return &client->session; }

void as_archive_client_close(as_archive_client *client)
{
    if (NULL == client || client->session.in_handler)
    {
        return;
    }
    asi_connect_close(&client->session);
    as_client_close(client->own_aeron);
    free(client);
}

as_client *as_archive_client_aeron(as_archive_client *client) { return client->session.aeron; }

int64_t as_archive_client_control_session_id(const as_archive_client *client) { return client->session.control_session_id; }

int64_t as_archive_client_archive_id(const as_archive_client *client) { return client->archive_id; }

static as_result check_and_poll(as_archive_client *client)
{
    const as_result result = asi_archive_client_check(client);
    if (AS_OK != result)
    {
        return result;
    }
    asi_client_session_invoke(&client->session);
    return asi_client_session_poll(&client->session);
}

as_result as_archive_client_poll(as_archive_client *client, int32_t *handled)
{
    asi_client_session *session = &client->session;
    as_result result = check_and_poll(client);
    if (AS_OK == result)
    {
        result = asi_client_session_take_error(session);
    }
    if (AS_OK == result && 0 == session->handled)
    {
        result = asi_client_session_check_connected(session);
    }
    if (AS_OK == result)
    {
        *handled = session->handled;
    }
    return result;
}

as_archive_client_state as_archive_client_get_state(const as_archive_client *client)
{
    if (client->is_session_closed)
    {
        return AS_ARCHIVE_CLOSED;
    }
    return client->session.is_lost ? AS_ARCHIVE_DISCONNECTED : AS_ARCHIVE_CONNECTED;
}

as_result asi_archive_client_check(as_archive_client *client)
{
    asi_client_session *session = &client->session;
    if (session->is_lost && !session->in_handler && !client->is_session_closed)
    {
        asi_connect_close(session);
        client->is_session_closed = true;
    }
    return asi_client_session_check_usable(session);
}

as_result as_archive_client_poll_for_error(as_archive_client *client, const char **text)
{
    asi_client_session *session = &client->session;
    *text = NULL;
    const as_result result = check_and_poll(client);
    if (AS_OK == result && session->unawaited.count > 0)
    {
        session->unawaited.count = 0;
        *text = session->unawaited.text;
    }
    else if (AS_OK == result && AS_OK != asi_client_session_check_connected(session))
    {
        *text = "not connected";
    }
    return result;
}

static void count_signal(void *context, const as_signal *signal)
{
    as_archive_client *client = context;
    client->signal_count++;
    if (NULL != client->on_signal)
    {
        client->on_signal(client->on_signal_context, signal);
    }
}

as_result as_archive_client_poll_for_signals(as_archive_client *client, int32_t *count)
{
    const int64_t before = client->signal_count;
    int32_t handled = 0;
    const as_result result = as_archive_client_poll(client, &handled);
    if (AS_OK == result)
    {
        *count = client->signal_count > before ? 1 : 0;
    }
    return result;
}

as_result as_archive_client_keepalive(as_archive_client *client)
{
    asi_client_session *session = &client->session;
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_KEEP_ALIVE);
    as_result result = check_and_poll(client);
    if (AS_OK == result)
    {
        result = asi_client_session_check_connected(session);
    }
    if (AS_OK == result)
    {
        result = asi_client_session_send(
            session, session->requests, &request, asi_clock_ns(&session->clock) + session->message_timeout_ns);
    }
    return result;
}

/* Runs the request; `listing` and `value` may be NULL. */
static as_result run(
    as_archive_client *client, asi_codec_request *request, const asi_call_listing *listing, int64_t *value)
{
    asi_client_session *session = &client->session;
    asi_call call = { .session = NULL };
    int64_t answered = 0;
    as_result result = asi_archive_client_check(client);
    if (AS_OK == result)
    {
        result = asi_call_run(&call, session, session->requests, request, listing,
            asi_clock_ns(&session->clock) + session->message_timeout_ns);
    }
    if (AS_OK == result)
    {
        result = asi_call_value(&call, &answered);
    }
    if (AS_OK == result && NULL != value)
    {
        *value = answered;
    }
    return result;
}

as_result asi_archive_client_call(as_archive_client *client, asi_codec_request *request, int64_t *value)
{
    return run(client, request, NULL, value);
}

static as_result call_for_recording(as_archive_client *client, int32_t template_id, int64_t recording_id, int64_t *value)
{
    asi_codec_request request;
    asi_codec_request_init(&request, template_id);
    request.recording_id = recording_id;
    return asi_archive_client_call(client, &request, value);
}

/* -- recording ------------------------------------------------------------------------------------------------------------- */

as_result as_archive_client_start_recording(as_archive_client *client, const char *channel, int32_t stream_id,
    as_source_location location, bool auto_stop, int64_t *subscription_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_START_RECORDING_2);
    request.channel = asi_codec_text(channel);
    request.stream_id = stream_id;
    request.source_location = (int32_t)location;
    request.auto_stop = auto_stop ? 1 : 0;
    return asi_archive_client_call(client, &request, subscription_id);
}

as_result as_archive_client_extend_recording(as_archive_client *client, int64_t recording_id, const char *channel,
    int32_t stream_id, as_source_location location, bool auto_stop, int64_t *subscription_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_EXTEND_RECORDING_2);
    request.recording_id = recording_id;
    request.channel = asi_codec_text(channel);
    request.stream_id = stream_id;
    request.source_location = (int32_t)location;
    request.auto_stop = auto_stop ? 1 : 0;
    return asi_archive_client_call(client, &request, subscription_id);
}

as_result as_archive_client_stop_recording(as_archive_client *client, const char *channel, int32_t stream_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_STOP_RECORDING);
    request.channel = asi_codec_text(channel);
    request.stream_id = stream_id;
    return asi_archive_client_call(client, &request, NULL);
}

as_result as_archive_client_stop_recording_subscription(as_archive_client *client, int64_t subscription_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_STOP_RECORDING_SUBSCRIPTION);
    request.subscription_id = subscription_id;
    return asi_archive_client_call(client, &request, NULL);
}

as_result as_archive_client_stop_recording_by_identity(as_archive_client *client, int64_t recording_id, bool *was_active)
{
    int64_t stopped = 0;
    const as_result result =
        call_for_recording(client, ASI_CODEC_STOP_RECORDING_BY_IDENTITY, recording_id, &stopped);
    if (AS_OK == result && NULL != was_active)
    {
        *was_active = 0 != stopped;
    }
    return result;
}

/* -- queries --------------------------------------------------------------------------------------------------------------- */

static as_result call_for_listing(
    as_archive_client *client, asi_codec_request *request, const asi_call_listing *listing, int32_t *listed)
{
    if (listing->wanted <= 0)
    {
        /* Spec: 08 §6 - a stock archive does not answer 0 and never ends a negative count. */
        return asi_fail(AS_E_USAGE, 0, "%s for %d entries: ask for at least one",
            asi_codec_request_name(request->template_id), listing->wanted);
    }
    int64_t given = 0;
    const as_result result = run(client, request, listing, &given);
    if (AS_OK == result && NULL != listed)
    {
        *listed = (int32_t)given;
    }
    return result;
}

as_result as_archive_client_list_recordings(as_archive_client *client, int64_t from_recording_id, int32_t count,
    as_on_recording on_recording, void *context, int32_t *listed)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_LIST_RECORDINGS);
    request.recording_id = from_recording_id;
    request.record_count = count;
    const asi_call_listing listing = { .on_recording = on_recording, .context = context, .wanted = count };
    return call_for_listing(client, &request, &listing, listed);
}

as_result as_archive_client_list_recordings_for_uri(as_archive_client *client, int64_t from_recording_id, int32_t count,
    const char *channel_fragment, int32_t stream_id, as_on_recording on_recording, void *context, int32_t *listed)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_LIST_RECORDINGS_FOR_URI);
    request.recording_id = from_recording_id;
    request.record_count = count;
    request.channel = asi_codec_text(channel_fragment);
    request.stream_id = stream_id;
    const asi_call_listing listing = { .on_recording = on_recording, .context = context, .wanted = count };
    return call_for_listing(client, &request, &listing, listed);
}

as_result as_archive_client_list_recording(
    as_archive_client *client, int64_t recording_id, as_on_recording on_recording, void *context, int32_t *listed)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_LIST_RECORDING);
    request.recording_id = recording_id;
    const asi_call_listing listing = { .on_recording = on_recording, .context = context, .wanted = 1 };
    return call_for_listing(client, &request, &listing, listed);
}

as_result as_archive_client_list_recording_subscriptions(as_archive_client *client, int32_t pseudo_index, int32_t count,
    const char *channel_fragment, int32_t stream_id, bool apply_stream_id, as_on_recording_subscription on_subscription,
    void *context, int32_t *listed)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS);
    request.pseudo_index = pseudo_index;
    request.record_count = count;
    request.channel = asi_codec_text(channel_fragment);
    request.stream_id = stream_id;
    request.apply_stream_id = apply_stream_id ? 1 : 0;
    const asi_call_listing listing = { .on_subscription = on_subscription, .context = context, .wanted = count };
    return call_for_listing(client, &request, &listing, listed);
}

as_result as_archive_client_find_last_matching(as_archive_client *client, int64_t min_recording_id,
    const char *channel_fragment, int32_t stream_id, int32_t session_id, int64_t *recording_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_FIND_LAST_MATCHING_RECORDING);
    request.recording_id = min_recording_id;
    request.channel = asi_codec_text(channel_fragment);
    request.stream_id = stream_id;
    request.session_id = session_id;
    return asi_archive_client_call(client, &request, recording_id);
}

as_result as_archive_client_start_position(as_archive_client *client, int64_t recording_id, int64_t *position)
{
    return call_for_recording(client, ASI_CODEC_START_POSITION, recording_id, position);
}

as_result as_archive_client_recording_position(as_archive_client *client, int64_t recording_id, int64_t *position)
{
    return call_for_recording(client, ASI_CODEC_RECORDING_POSITION, recording_id, position);
}

as_result as_archive_client_stop_position(as_archive_client *client, int64_t recording_id, int64_t *position)
{
    return call_for_recording(client, ASI_CODEC_STOP_POSITION, recording_id, position);
}

as_result as_archive_client_max_recorded_position(as_archive_client *client, int64_t recording_id, int64_t *position)
{
    return call_for_recording(client, ASI_CODEC_MAX_RECORDED_POSITION, recording_id, position);
}

/* -- replay ---------------------------------------------------------------------------------------------------------------- */

as_result as_archive_client_stop_replay(as_archive_client *client, int64_t replay_session_id)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_STOP_REPLAY);
    request.replay_session_id = replay_session_id;
    return asi_archive_client_call(client, &request, NULL);
}

as_result as_archive_client_stop_all_replays(as_archive_client *client, int64_t recording_id)
{
    return call_for_recording(client, ASI_CODEC_STOP_ALL_REPLAYS, recording_id, NULL);
}

/* -- maintenance ----------------------------------------------------------------------------------------------------------- */

/* Takes a recording id and a position in that recording. */
static as_result call_for_position(
    as_archive_client *client, int32_t template_id, int64_t recording_id, int64_t position, int64_t *value)
{
    asi_codec_request request;
    asi_codec_request_init(&request, template_id);
    request.recording_id = recording_id;
    request.position = position;
    return asi_archive_client_call(client, &request, value);
}

as_result as_archive_client_truncate_recording(
    as_archive_client *client, int64_t recording_id, int64_t position, int64_t *count)
{
    return call_for_position(client, ASI_CODEC_TRUNCATE_RECORDING, recording_id, position, count);
}

as_result as_archive_client_purge_recording(as_archive_client *client, int64_t recording_id, int64_t *count)
{
    return call_for_recording(client, ASI_CODEC_PURGE_RECORDING, recording_id, count);
}

as_result as_archive_client_detach_segments(as_archive_client *client, int64_t recording_id, int64_t new_start_position)
{
    return call_for_position(client, ASI_CODEC_DETACH_SEGMENTS, recording_id, new_start_position, NULL);
}

as_result as_archive_client_delete_detached_segments(as_archive_client *client, int64_t recording_id, int64_t *count)
{
    return call_for_recording(client, ASI_CODEC_DELETE_DETACHED_SEGMENTS, recording_id, count);
}

as_result as_archive_client_purge_segments(
    as_archive_client *client, int64_t recording_id, int64_t new_start_position, int64_t *count)
{
    return call_for_position(client, ASI_CODEC_PURGE_SEGMENTS, recording_id, new_start_position, count);
}

as_result as_archive_client_attach_segments(as_archive_client *client, int64_t recording_id, int64_t *count)
{
    return call_for_recording(client, ASI_CODEC_ATTACH_SEGMENTS, recording_id, count);
}

as_result as_archive_client_migrate_segments(
    as_archive_client *client, int64_t src_recording_id, int64_t dst_recording_id, int64_t *count)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_MIGRATE_SEGMENTS);
    request.recording_id = src_recording_id;
    request.dst_recording_id = dst_recording_id;
    return asi_archive_client_call(client, &request, count);
}

as_result as_archive_client_update_channel(as_archive_client *client, int64_t recording_id, const char *channel)
{
    /* Spec: 08 §11 - a stock archive does not answer when the channel is not a URI. */
    asi_uri uri;
    const as_result parsed = asi_uri_parse_untrusted(&uri, channel, (int64_t)strlen(channel));
    if (AS_OK != parsed)
    {
        return asi_fail_in(parsed, "channel %s for recording %" PRId64, channel, recording_id);
    }
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_UPDATE_CHANNEL);
    request.recording_id = recording_id;
    request.channel = asi_codec_text(channel);
    return asi_archive_client_call(client, &request, NULL);
}
