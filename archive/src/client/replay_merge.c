/* ReplayMerge: merges a replay into a live stream. Spec: 08 §14; contract in as_archive.h.
 *
 *   RESOLVE_REPLAY_PORT > GET_RECORDING_POSITION > REPLAY > CATCHUP <> ATTEMPT_LIVE_JOIN > MERGED
 *
 * One multi-destination subscription receives the replay first and then the live stream too. Both carry the recording's session
 * id, so they are one image with two transports. The driver inserts both into the same log, where a frame that arrives twice is
 * stored once. So no message is repeated or skipped. This file decides only when to add the live destination (when the replay is
 * less than a window behind the recorded position) and when to remove the replay destination (when the image has caught up and
 * both transports are active).
 * Owns its image reference; borrows archive client and subscription. Thread rule: one thread, the archive client's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive_client.h"
#include "client/connect.h"

#define MILLISECOND_NS INT64_C(1000000)
#define PROGRESS_TIMEOUT_NS (5000 * MILLISECOND_NS)
#define QUERY_BACKOFF_MIN_NS (8 * MILLISECOND_NS)
#define QUERY_BACKOFF_MAX_NS (500 * MILLISECOND_NS)
#define IDLE_POLL_INTERVAL_NS (100 * MILLISECOND_NS)
#define LIVE_ADD_MAX_WINDOW (32 * 1024 * 1024)
#define FAILURE_TEXT_CAPACITY 1024
#define ENDPOINT_CAPACITY 128

struct as_replay_merge
{
    asi_client_session *session;    /* of the archive client, borrowed */
    as_subscription *subscription;  /* borrowed */
    as_image *image;                /* retained; NULL until it is found */
    char *replay_channel;           /* owned, as are the next two; the endpoint is added later */
    char *replay_destination;
    char *live_destination;
    char endpoint[ENDPOINT_CAPACITY]; /* of the replay destination, its port resolved */
    int64_t recording_id;
    int64_t start_position;
    int64_t progress_timeout_ns;
    as_replay_merge_state state;
    int32_t stream_id;
    asi_call call;                  /* the only one in flight */
    int64_t destination_request;    /* unanswered; AS_NULL_VALUE: none */
    int64_t replay_session_id;
    int64_t target_position;
    int64_t flow_position;          /* of the image at the last check */
    int64_t last_progress_ns;
    int64_t next_query_ns;
    int64_t query_backoff_ns;
    int64_t next_idle_poll_ns;
    int64_t error_count;            /* the session's error count before the merge */
    bool is_live_added;
    bool is_replay_active;          /* started, and not stopped by this merge */
    bool is_replay_added;           /* the replay destination is added */
    bool is_leaving_replay;         /* the removal of the replay destination is in flight */
    as_result failure;
    int32_t failure_code;
    char failure_text[FAILURE_TEXT_CAPACITY];
};

static const char *const STATE_NAMES[] = {
    "RESOLVE_REPLAY_PORT", "GET_RECORDING_POSITION", "REPLAY", "CATCHUP", "ATTEMPT_LIVE_JOIN", "MERGED", "FAILED", "CLOSED"
};

/* -- opening ------------------------------------------------------------------------------------------------------------------- */

void as_replay_merge_options_init(as_replay_merge_options *options)
{
    *options = (as_replay_merge_options){ .recording_id = AS_NULL_VALUE, .progress_timeout_ns = PROGRESS_TIMEOUT_NS };
}

static as_result parse_udp(asi_uri *uri, const char *channel, const char *what)
{
    if (NULL == channel)
    {
        return asi_fail(AS_E_USAGE, 0, "ReplayMerge needs a %s", what);
    }
    const as_result result = asi_uri_parse_untrusted(uri, channel, (int64_t)strlen(channel));
    if (AS_OK != result)
    {
        return asi_fail_in(result, "ReplayMerge: %s %s", what, channel);
    }
    return ASI_MEDIA_UDP == uri->media ? AS_OK :
        asi_fail(AS_E_USAGE, 0, "IPC merging is not supported: %s is %s", what, channel);
}

static as_result check_subscription(const as_subscription *subscription)
{
    as_subscription_constants constants;
    as_subscription_get_constants(subscription, &constants);
    asi_uri uri;
    const as_result result = parse_udp(&uri, constants.channel, "subscription");
    if (AS_OK != result)
    {
        return result;
    }
    const char *mode = asi_uri_get(&uri, "control-mode");
    return NULL != mode && 0 == strcmp(mode, "manual") ? AS_OK :
        asi_fail(AS_E_USAGE, 0, "ReplayMerge adds the subscription's destinations, so its channel must have control-mode=manual: %s",
            constants.channel);
}

/* The replay ends with its publication, without linger: none of its frames may remain once the live stream continues. */
static as_result take_replay_channel(as_replay_merge *merge, const char *channel)
{
    asi_uri uri;
    as_result result = parse_udp(&uri, channel, "replay_channel");
    if (AS_OK != result)
    {
        return result;
    }
    asi_uri_builder builder;
    asi_uri_build_start(&builder, ASI_MEDIA_UDP, false);
    for (int32_t i = 0; i < uri.param_count; i++)
    {
        const char *key = uri.params[i].key;
        if (0 != strcmp(key, "linger") && 0 != strcmp(key, "eos") && 0 != strcmp(key, "endpoint"))
        {
            asi_uri_build_put(&builder, key, NULL == uri.params[i].value ? "" : uri.params[i].value);
        }
    }
    asi_uri_build_put(&builder, "linger", "0");
    asi_uri_build_put(&builder, "eos", "false");
    result = asi_uri_build_end(&builder);
    if (AS_OK == result)
    {
        merge->replay_channel = strdup(builder.text);
        result = NULL == merge->replay_channel ? asi_fail(AS_E_INTERNAL, 0, "no memory for a channel") : AS_OK;
    }
    return result;
}

static as_result take_destinations(as_replay_merge *merge, const as_replay_merge_options *options)
{
    asi_uri uri;
    as_result result = parse_udp(&uri, options->live_destination, "live_destination");
    if (AS_OK == result)
    {
        result = parse_udp(&uri, options->replay_destination, "replay_destination");
    }
    if (AS_OK != result)
    {
        return result;
    }
    const char *endpoint = asi_uri_get(&uri, "endpoint");
    const size_t length = NULL == endpoint ? 0 : strlen(endpoint);
    if (0 == length || length >= sizeof(merge->endpoint))
    {
        return asi_fail(AS_E_USAGE, 0, "ReplayMerge: replay_destination %s needs an endpoint", options->replay_destination);
    }
    memcpy(merge->endpoint, endpoint, length + 1);
    merge->state = length >= 2 && 0 == strcmp(endpoint + length - 2, ":0") ? AS_MERGE_RESOLVE_REPLAY_PORT :
        AS_MERGE_GET_RECORDING_POSITION;
    merge->replay_destination = strdup(options->replay_destination);
    merge->live_destination = strdup(options->live_destination);
    return NULL == merge->replay_destination || NULL == merge->live_destination ?
        asi_fail(AS_E_INTERNAL, 0, "no memory for a channel") : AS_OK;
}

static as_result take_options(as_replay_merge *merge, const as_replay_merge_options *options)
{
    if (NULL == options->archive || NULL == options->subscription || options->recording_id < 0 ||
        options->start_position < 0 || options->progress_timeout_ns <= 0)
    {
        return asi_fail(AS_E_USAGE, 0, "ReplayMerge needs an archive client, a subscription, and a recording_id, start_position "
            "and progress_timeout_ns that are not negative");
    }
    as_subscription_constants constants;
    as_subscription_get_constants(options->subscription, &constants);
    merge->session = asi_archive_client_session(options->archive);
    merge->subscription = options->subscription;
    merge->stream_id = constants.stream_id;
    merge->recording_id = options->recording_id;
    merge->start_position = options->start_position;
    merge->progress_timeout_ns = options->progress_timeout_ns;
    merge->destination_request = AS_NULL_VALUE;
    merge->replay_session_id = AS_NULL_VALUE;
    merge->query_backoff_ns = QUERY_BACKOFF_MIN_NS;
    merge->error_count = merge->session->error_count;
    merge->last_progress_ns = asi_clock_ns(&merge->session->clock);
    as_result result = asi_client_session_check_usable(merge->session);
    result = AS_OK == result ? check_subscription(options->subscription) : result;
    result = AS_OK == result ? take_destinations(merge, options) : result;
    return AS_OK == result ? take_replay_channel(merge, options->replay_channel) : result;
}

static void free_merge(as_replay_merge *merge)
{
    asi_call_end(&merge->call);
    as_image_release(merge->image);
    free(merge->replay_channel);
    free(merge->replay_destination);
    free(merge->live_destination);
    free(merge);
}

as_result as_replay_merge_open(const as_replay_merge_options *options, as_replay_merge **merge)
{
    as_replay_merge *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, 0, "no memory for a replay merge");
    }
    as_result result = take_options(opened, options);
    if (AS_OK == result)
    {
        result = as_subscription_async_add_destination(
            opened->subscription, opened->replay_destination, &opened->destination_request);
    }
    if (AS_OK != result)
    {
        free_merge(opened);
        return result;
    }
    opened->is_replay_added = true;
    *merge = opened;
    return AS_OK;
}

/* -- steps ----------------------------------------------------------------------------------------------------------------------- */

static int64_t now_of(const as_replay_merge *merge) { return asi_clock_ns(&merge->session->clock); }

static void note_progress(as_replay_merge *merge) { merge->last_progress_ns = now_of(merge); }

/* Keeps the last recorded failure. */
static as_result fail(as_replay_merge *merge, as_result failure)
{
    asi_call_end(&merge->call);
    merge->failure = failure;
    merge->failure_code = as_error_code();
    snprintf(merge->failure_text, sizeof(merge->failure_text), "%s", as_error_text());
    merge->state = AS_MERGE_FAILED;
    return failure;
}

static void enter_catchup(as_replay_merge *merge)
{
    merge->state = AS_MERGE_CATCHUP;
    merge->query_backoff_ns = QUERY_BACKOFF_MIN_NS;
    merge->next_query_ns = 0;
}

static as_result step_resolve(as_replay_merge *merge)
{
    const as_result result =
        as_subscription_resolved_endpoint(merge->subscription, merge->endpoint, sizeof(merge->endpoint));
    if (AS_OK == result)
    {
        merge->state = AS_MERGE_GET_RECORDING_POSITION;
        note_progress(merge);
    }
    return result;
}

/* Requests the recorded position. AS_AGAIN: no answer yet; AS_OK: target_position holds the answer. */
static as_result query_position(as_replay_merge *merge)
{
    as_result result;
    if (!merge->call.is_in_flight)
    {
        const int64_t now_ns = now_of(merge);
        if (now_ns < merge->next_query_ns)
        {
            return AS_AGAIN;
        }
        asi_codec_request request;
        asi_codec_request_init(&request, ASI_CODEC_MAX_RECORDED_POSITION);
        request.recording_id = merge->recording_id;
        result = asi_call_start(&merge->call, merge->session, &request, NULL);
        if (AS_OK == result)
        {
            merge->next_query_ns = now_ns + merge->query_backoff_ns;
            merge->query_backoff_ns *= 2;
            merge->query_backoff_ns =
                merge->query_backoff_ns > QUERY_BACKOFF_MAX_NS ? QUERY_BACKOFF_MAX_NS : merge->query_backoff_ns;
            note_progress(merge);
        }
        return AS_OK == result ? AS_AGAIN : result;
    }
    result = asi_call_check(&merge->call);
    if (AS_OK == result)
    {
        result = asi_call_value(&merge->call, &merge->target_position);
        note_progress(merge);
    }
    return result;
}

static as_result step_get_position(as_replay_merge *merge)
{
    const as_result result = query_position(merge);
    if (AS_OK == result && AS_NULL_VALUE != merge->target_position)
    {
        merge->state = AS_MERGE_REPLAY;
    }
    return result;
}

static as_result start_replay(as_replay_merge *merge)
{
    asi_uri uri;
    as_result result = asi_uri_parse_untrusted(&uri, merge->replay_channel, (int64_t)strlen(merge->replay_channel));
    if (AS_OK != result)
    {
        return result;
    }
    asi_uri_builder channel;
    asi_uri_build_start(&channel, uri.media, false);
    for (int32_t i = 0; i < uri.param_count; i++)
    {
        asi_uri_build_put(&channel, uri.params[i].key, NULL == uri.params[i].value ? "" : uri.params[i].value);
    }
    asi_uri_build_put(&channel, "endpoint", merge->endpoint);
    result = asi_uri_build_end(&channel);
    if (AS_OK != result)
    {
        return result;
    }
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_REPLAY);
    request.recording_id = merge->recording_id;
    request.position = merge->start_position;
    request.length = INT64_MAX;
    request.stream_id = merge->stream_id;
    request.channel = asi_codec_text(channel.text);
    result = asi_call_start(&merge->call, merge->session, &request, NULL);
    if (AS_OK == result)
    {
        note_progress(merge);
    }
    return AS_OK == result ? AS_AGAIN : result;
}

static as_result step_replay(as_replay_merge *merge)
{
    if (!merge->call.is_in_flight)
    {
        return start_replay(merge);
    }
    as_result result = asi_call_check(&merge->call);
    if (AS_OK == result)
    {
        result = asi_call_value(&merge->call, &merge->replay_session_id);
    }
    if (AS_OK == result)
    {
        merge->is_replay_active = true;
        note_progress(merge);
        enter_catchup(merge);
    }
    return result;
}

static as_result check_image(const as_replay_merge *merge)
{
    return !as_image_is_closed(merge->image) ? AS_OK :
        asi_fail(AS_E_CLOSED, 0, "ReplayMerge Image closed unexpectedly.");
}

static as_result step_catchup(as_replay_merge *merge)
{
    if (NULL == merge->image)
    {
        merge->image = as_subscription_image_by_session(
            merge->subscription, (int32_t)(uint32_t)(uint64_t)merge->replay_session_id);
        if (NULL == merge->image)
        {
            return AS_AGAIN;
        }
        merge->flow_position = AS_NULL_VALUE;
        note_progress(merge);
    }
    const as_result result = check_image(merge);
    if (AS_OK != result)
    {
        return result;
    }
    /* A long message takes its time to come whole. */
    const int64_t flow_position = as_image_flow_position(merge->image);
    if (flow_position > merge->flow_position)
    {
        merge->flow_position = flow_position;
        note_progress(merge);
    }
    if (as_image_position(merge->image) < merge->target_position)
    {
        return AS_AGAIN;
    }
    merge->state = AS_MERGE_ATTEMPT_LIVE_JOIN;
    return AS_OK;
}

static int64_t live_window(const as_image *image)
{
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    const int64_t window = constants.term_length / 4;
    return window < LIVE_ADD_MAX_WINDOW ? window : LIVE_ADD_MAX_WINDOW;
}

/* Best effort: the replay also ends when its subscriber is gone. */
static as_result offer_stop_replay(as_replay_merge *merge)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_STOP_REPLAY);
    request.replay_session_id = merge->replay_session_id;
    return asi_client_session_offer(merge->session, &request);
}

static as_result finish(as_replay_merge *merge)
{
    if (merge->is_replay_active)
    {
        const as_result result = offer_stop_replay(merge);
        if (AS_AGAIN == result)
        {
            return result;
        }
        merge->is_replay_active = false;
    }
    merge->state = AS_MERGE_MERGED;
    return AS_OK;
}

static as_result step_attempt_live_join(as_replay_merge *merge)
{
    if (merge->is_leaving_replay)
    {
        return finish(merge);
    }
    as_result result = check_image(merge);
    result = AS_OK == result ? query_position(merge) : result;
    if (AS_OK != result || AS_NULL_VALUE == merge->target_position)
    {
        return result;
    }
    const int64_t left = merge->target_position - as_image_position(merge->image);
    if (!merge->is_live_added && left <= live_window(merge->image))
    {
        result = as_subscription_async_add_destination(
            merge->subscription, merge->live_destination, &merge->destination_request);
        merge->is_live_added = AS_OK == result;
    }
    else if (merge->is_live_added && left <= 0 && as_image_active_transport_count(merge->image) >= 2)
    {
        result = as_subscription_async_remove_destination(
            merge->subscription, merge->replay_destination, &merge->destination_request);
        merge->is_leaving_replay = AS_OK == result;
        merge->is_replay_added = AS_OK != result;
        return result;
    }
    if (AS_OK == result)
    {
        enter_catchup(merge);
    }
    return result;
}

/* -- the machine ----------------------------------------------------------------------------------------------------------------- */

/* AS_AGAIN until the driver has answered the change of destinations. */
static as_result await_destination(as_replay_merge *merge)
{
    const as_result result = as_client_poll_destination(merge->session->aeron, merge->destination_request);
    if (AS_AGAIN != result)
    {
        merge->destination_request = AS_NULL_VALUE;
        note_progress(merge);
    }
    return result < 0 ? asi_fail_in(result, "ReplayMerge: destination") : result;
}

/* Polls the session: every time while a call is in flight, otherwise at intervals. */
static as_result poll_archive(as_replay_merge *merge)
{
    asi_client_session *session = merge->session;
    const int64_t now_ns = now_of(merge);
    if (!merge->call.is_in_flight && now_ns < merge->next_idle_poll_ns)
    {
        return AS_OK;
    }
    merge->next_idle_poll_ns = now_ns + IDLE_POLL_INTERVAL_NS;
    as_result result = asi_client_session_poll(session);
    if (AS_OK == result && session->error_count != merge->error_count)
    {
        session->unawaited.count = 0;
        result = asi_fail(AS_E_PEER, session->unawaited.code, "ReplayMerge: the archive reported error %d for correlationId=%"
            PRId64 ": %s", session->unawaited.code, session->unawaited.correlation_id, session->unawaited.text);
    }
    const bool is_answered = merge->call.is_in_flight && merge->call.is_answered;
    if (AS_OK == result && !is_answered && AS_OK != asi_client_session_check_connected(session))
    {
        result = asi_fail_in(AS_E_CLOSED, "archive is not connected");
    }
    return result;
}

static as_result check_progress(const as_replay_merge *merge)
{
    if (now_of(merge) - merge->last_progress_ns < merge->progress_timeout_ns)
    {
        return AS_OK;
    }
    const int32_t transports = NULL == merge->image ? 0 : as_image_active_transport_count(merge->image);
    return asi_fail(AS_E_TIMEOUT, 0, "ReplayMerge no progress: state=%s, activeTransportCount=%d", STATE_NAMES[merge->state],
        transports);
}

static as_result step(as_replay_merge *merge)
{
    switch (merge->state)
    {
        case AS_MERGE_RESOLVE_REPLAY_PORT:
            return step_resolve(merge);
        case AS_MERGE_GET_RECORDING_POSITION:
            return step_get_position(merge);
        case AS_MERGE_REPLAY:
            return step_replay(merge);
        case AS_MERGE_CATCHUP:
            return step_catchup(merge);
        case AS_MERGE_ATTEMPT_LIVE_JOIN:
            return step_attempt_live_join(merge);
        case AS_MERGE_MERGED:
        case AS_MERGE_FAILED:
        case AS_MERGE_CLOSED:
            break;
    }
    return AS_AGAIN;
}

as_result as_replay_merge_do_work(as_replay_merge *merge, int32_t *work_count)
{
    *work_count = 0;
    if (AS_MERGE_FAILED == merge->state)
    {
        return asi_fail(merge->failure, merge->failure_code, "%s", merge->failure_text);
    }
    asi_client_session_invoke(merge->session);
    if (AS_MERGE_MERGED == merge->state)
    {
        return AS_OK;
    }
    if (merge->session->in_handler)
    {
        return asi_client_session_check_usable(merge->session);
    }
    as_result result = AS_NULL_VALUE == merge->destination_request ? AS_OK : await_destination(merge);
    if (AS_OK == result)
    {
        result = poll_archive(merge);
    }
    if (AS_OK == result)
    {
        result = step(merge);
        *work_count = AS_OK == result ? 1 : 0;
    }
    if (result >= 0)
    {
        result = check_progress(merge);
    }
    return result < 0 ? fail(merge, result) : AS_OK;
}

static as_image *readable_image(const as_replay_merge *merge)
{
    return NULL != merge->image && !as_image_is_closed(merge->image) ? merge->image : NULL;
}

int64_t as_replay_merge_poll(as_replay_merge *merge, as_fragment_handler handler, void *context, int64_t limit)
{
    int32_t work_count;
    const as_result result = as_replay_merge_do_work(merge, &work_count);
    if (AS_OK != result)
    {
        return result;
    }
    as_image *image = readable_image(merge);
    return NULL == image ? 0 : as_image_poll(image, handler, context, limit);
}

as_result as_replay_merge_poll_columns(as_replay_merge *merge, as_columns *columns, int64_t timeout_ns)
{
    asi_client_session *session = merge->session;
    const int64_t start_ns = now_of(merge);
    columns->row_count = 0;
    columns->byte_count = 0;
    for (;;)
    {
        int32_t work_count;
        as_result result = as_replay_merge_do_work(merge, &work_count);
        as_image *image = readable_image(merge);
        if (AS_OK == result && NULL != merge->image)
        {
            result = NULL != image ? as_image_poll_columns(image, columns, 0) : check_image(merge);
        }
        if (AS_OK != result || columns->row_count > 0 || now_of(merge) - start_ns >= timeout_ns)
        {
            return result;
        }
        asi_client_session_idle(session, work_count);
    }
}

as_replay_merge_state as_replay_merge_get_state(const as_replay_merge *merge) { return merge->state; }

bool as_replay_merge_is_live_added(const as_replay_merge *merge) { return merge->is_live_added; }

as_image *as_replay_merge_image(as_replay_merge *merge) { return merge->image; }

void as_replay_merge_close(as_replay_merge *merge)
{
    if (NULL == merge || merge->session->in_handler)
    {
        return;
    }
    as_client *aeron = merge->session->aeron;
    if (AS_NULL_VALUE != merge->destination_request)
    {
        as_client_forget(aeron, merge->destination_request);
    }
    if (AS_MERGE_MERGED != merge->state && merge->is_replay_added && !as_subscription_is_closed(merge->subscription))
    {
        int64_t request;
        if (AS_OK == as_subscription_async_remove_destination(merge->subscription, merge->replay_destination, &request))
        {
            as_client_forget(aeron, request);
        }
    }
    if (merge->is_replay_active && !merge->session->is_lost)
    {
        (void)!offer_stop_replay(merge);
    }
    free_merge(merge);
}
