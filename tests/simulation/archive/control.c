/* The control session, as messages; see world.h. */
#include <stdio.h>
#include <string.h>

#include "logins.h"
#include "sim_trace.h"
#include "world.h"

#define THINKING_ROUNDS 6
#define RESPONSE_STREAM 20
#define TIMEOUT_ROUNDS 2000

/* A recording with a publisher stops at the client's request, or when the disk fails. */
static void check_stop(sim_world *world, int64_t recording_id)
{
    const audited *recording = auditor_find(&world->audit, recording_id);
    const world_stream *stream = NULL == recording ? NULL : world_stream_of(world, recording);
    if (NULL != stream && stream->recording == recording && AUDIT_ACTIVE == recording->life && !world->session.is_stopping &&
        world->disk.errors == world->audit.errors_before_start)
    {
        sim_fail("changed", "recording %" PRId64 " has stopped, and nobody who may asked for it", recording_id);
    }
}

static void on_signal(sim_world *world, const asi_codec_event *event)
{
    sim_trace("signal %d of recording %" PRId64 " at %" PRId64, event->signal, event->recording_id, event->position);
    for (int32_t i = 0; i < world->stream_count; i++)
    {
        world_stream *stream = &world->streams[i];
        audited *recording = stream->recording;
        if (NULL == recording || stream->correlation_id != event->correlation_id)
        {
            continue;
        }
        if (AS_SIGNAL_START == event->signal)
        {
            if (NULL != auditor_find(&world->audit, event->recording_id) || event->recording_id <= world->audit.highest_id)
            {
                sim_fail("unknown", "the id %" PRId64 " is given again", event->recording_id);
            }
            recording->id = event->recording_id;
            world->audit.highest_id = recording->id;
            recording->recorded = event->position;
            recording->life = AUDIT_ACTIVE;
        }
        if (AS_SIGNAL_EXTEND == event->signal && recording->id == event->recording_id)
        {
            recording->life = AUDIT_TAINTED == recording->life ? AUDIT_TAINTED : AUDIT_ACTIVE;
            recording->stop = -1;
        }
    }
    world_on_copy_signal(world, event);
    if (AS_SIGNAL_STOP == event->signal)
    {
        check_stop(world, event->recording_id);
        auditor_on_stopped(&world->audit, event->recording_id, event->position, world->disk.catalog_errors > 0);
    }
}

static void keep(world_session *session, const asi_codec_event *event, const asi_codec_var *text)
{
    const int32_t at = session->event_count % WORLD_MAX_EVENTS;
    session->events[at] = *event;
    snprintf(session->texts[at], sizeof(session->texts[at]), "%.*s", (int)text->length, 0 == text->length ? "" : text->data);
    session->event_count++;
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)header;
    sim_world *world = context;
    world_session *session = &world->session;
    asi_codec_event event;
    const as_result result = asi_codec_event_decode_untrusted(data, length, &event);
    if (AS_AGAIN == result)
    {
        return;
    }
    if (AS_OK != result)
    {
        sim_fail("session", "a message of the archive: %s", as_error_text());
    }
    if (AS_NULL_VALUE != session->id && session->id != event.control_session_id)
    {
        if (!world->adversary.shares_source)
        {
            sim_fail("session", "a message for session %" PRId64 ", which is another's", event.control_session_id);
        }
        return;
    }
    if (world->adversary.has_logins && AS_NULL_VALUE != event.correlation_id && 0 != event.correlation_id >> 32)
    {
        sim_fail("session", "a message about %" PRId64 ", which was not asked for", event.correlation_id);
    }
    if (ASI_CODEC_CHALLENGE == event.template_id)
    {
        keep(session, &event, &event.encoded_challenge);
    }
    if (ASI_CODEC_RECORDING_SIGNAL == event.template_id)
    {
        on_signal(world, &event);
    }
    else if (ASI_CODEC_CONTROL_RESPONSE == event.template_id)
    {
        keep(session, &event, &event.error_message);
        world_on_copy_answer(world, &event);
        if (ASI_CODEC_ERROR == event.code)
        {
            sim_trace("error %" PRId64 " to %" PRId64 ": %.160s", event.relevant_id, event.correlation_id,
                session->texts[(session->event_count - 1) % WORLD_MAX_EVENTS]);
        }
    }
}

void world_listen(sim_world *world)
{
    world_session *session = &world->session;
    if (NULL != session->responses && NULL != world->archive)
    {
        if (as_subscription_poll(session->responses, as_fragment_assembler_on_fragment, session->assembler, 10) < 0)
        {
            sim_fail("client", "responses can't be polled: %s", as_error_text());
        }
    }
}

const char *world_answer_text(const sim_world *world, const asi_codec_event *event)
{
    return world->session.texts[event - world->session.events];
}

static const asi_codec_event *find_answer(const world_session *session, int64_t correlation_id)
{
    const int32_t first = session->event_count > WORLD_MAX_EVENTS ? session->event_count - WORLD_MAX_EVENTS : 0;
    for (int32_t i = first; i < session->event_count; i++)
    {
        const asi_codec_event *event = &session->events[i % WORLD_MAX_EVENTS];
        if (event->correlation_id == correlation_id)
        {
            return event;
        }
    }
    return NULL;
}

const asi_codec_event *world_ask(sim_world *world, asi_codec_request *request)
{
    world_session *session = &world->session;
    uint8_t bytes[WORLD_EVENT_CAPACITY];
    int64_t length;
    request->control_session_id = session->id;
    request->correlation_id =
        AS_NULL_VALUE == request->correlation_id ? as_client_next_correlation_id(world->client) : request->correlation_id;
    if (AS_OK != asi_codec_request_encode(request, bytes, sizeof(bytes), &length))
    {
        sim_fail("setup", "request: %s", as_error_text());
    }
    adversary_capture_request(world, request, bytes, length);
    bool is_sent = false;
    for (int32_t i = 0; i < TIMEOUT_ROUNDS && NULL != world->archive; i++)
    {
        is_sent = is_sent || as_publication_offer(session->requests, bytes, length) > 0;
        world_round(world);
        const asi_codec_event *event = NULL == world->archive ? NULL : find_answer(session, request->correlation_id);
        if (NULL != event)
        {
            return event;
        }
    }
    if (NULL != world->archive)
    {
        sim_fail("session", "%s is not answered", asi_codec_request_name(request->template_id));
    }
    return NULL;
}

static void open_session(sim_world *world, char *response, size_t capacity)
{
    world_session *session = &world->session;
    const bool is_remote = world->is_visiting && !world->adversary.is_visitor_local;
    char requests[128];
    int32_t session_id = 0;
    as_result result = as_client_next_session_id(world->client, 10, &session_id);
    snprintf(requests, sizeof(requests), "aeron:ipc?term-length=64k|session-id=%d", session_id);
    snprintf(response, capacity, "%s", requests);
    if (is_remote)
    {
        snprintf(requests, sizeof(requests), "aeron:udp?endpoint=10.0.0.1:%d|term-length=64k", ADVERSARY_CONTROL_PORT);
        snprintf(response, capacity, "aeron:udp?endpoint=10.0.0.1:%d|term-length=64k|session-id=%d", HONEST_RESPONSE_PORT, session_id);
    }
    result = AS_OK == result ? as_client_add_subscription(world->client, response, RESPONSE_STREAM, &session->responses) : result;
    result = AS_OK == result ? as_client_add_exclusive_publication(world->client, requests, 10, &session->requests) : result;
    result = AS_OK == result ? as_fragment_assembler_open(on_message, world, &session->assembler) : result;
    if (AS_OK != result)
    {
        sim_fail("setup", "session: %s", as_error_text());
    }
}

/* Proves himself to the challenge, after some thought. */
static const asi_codec_event *answer_challenge(sim_world *world, const asi_codec_event *challenge)
{
    char answer[LOGIN_ANSWER_CAPACITY];
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_CHALLENGE_RESPONSE);
    logins_answer(world_answer_text(world, challenge), answer);
    request.encoded_credentials = asi_codec_text(answer);
    world->session.id = challenge->control_session_id;
    for (int64_t i = world_below(world, THINKING_ROUNDS); i > 0 && NULL != world->archive; i--)
    {
        world_round(world);
    }
    return NULL == world->archive ? NULL : world_ask(world, &request);
}

bool world_connect(sim_world *world)
{
    world_session *session = &world->session;
    char response[128];
    memset(session, 0, sizeof(*session));
    session->id = AS_NULL_VALUE;
    open_session(world, response, sizeof(response));
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_AUTH_CONNECT);
    request.stream_id = RESPONSE_STREAM;
    request.client_version = ASI_CODEC_PROTOCOL_VERSION;
    request.channel = asi_codec_text(response);
    if (world->adversary.has_logins)
    {
        request.encoded_credentials =
            asi_codec_text(world_percent(world, 50) ? HONEST_USER : HONEST_USER ":" HONEST_PASSWORD);
    }
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL != event && ASI_CODEC_CHALLENGE == event->template_id)
    {
        event = answer_challenge(world, event);
    }
    if (NULL != event && ASI_CODEC_OK != event->code && world->adversary.is_there)
    {
        sim_fail("session", "the honest client is not let in: %s", world_answer_text(world, event));
    }
    session->is_open = NULL != event && ASI_CODEC_OK == event->code;
    session->id = session->is_open ? event->control_session_id : AS_NULL_VALUE;
    return session->is_open;
}

void world_disconnect(sim_world *world)
{
    world_session *session = &world->session;
    if (NULL != session->responses)
    {
        as_publication_close(session->requests);
        as_subscription_close(session->responses);
        as_fragment_assembler_close(session->assembler);
    }
    memset(session, 0, sizeof(*session));
}
