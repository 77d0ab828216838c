/* Runs control sessions: connect, authenticate, respond, keep alive, close. See control.h. Spec: 07 §6-8, §10.
 *
 *   INIT --decided; publication and counter exist--> CONNECTING --client listens--> CONNECTED
 *   CONNECTED --accepted, OK sent--> AUTHENTICATED --first authorised request--> ACTIVE
 *   CONNECTED --challenge sent--> CHALLENGED --its answer--> CONNECTED;  CONNECTED --rejected--> REJECTED
 *   any --deadline | client gone | closed--> DONE --nothing outstanding--> freed
 *
 * The authenticator is called when the request arrives. Before it decides, the session opens nothing except a log with the
 * smallest terms. That log carries the rejection to a refused client, and it lets a client prove that it receives responses
 * before its password is checked (logins.h). Departure from Spec: 07 §6.1 - the deadline of a session that is not accepted is
 * never cleared: a client that only requests a challenge is limited to five seconds, too. Requests of a session must arrive on
 * the image of its connect request, and so must answers to a challenge, so that no other client can act for the session by
 * guessing its id. A replay token is intended for a different image. Spec: 11 A1 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/control.h"
#include "server/logins.h"
#include "server/reply.h"
#include "server/report.h"
#include "server/tokens.h"
#include "shm/counters.h"
#include "wire/command.h"

#define RESEND_INTERVAL_NS 200000000LL

static const char *const STATE_NAMES[] = { "INIT", "CONNECTING", "CONNECTED", "CHALLENGED", "AUTHENTICATED", "ACTIVE",
    "REJECTED", "DONE" };

/* -- closing ----------------------------------------------------------------------------------------------------------------- */

static void free_session(asi_control_session *session)
{
    free(session->listing);
    asi_tokens_drop_session(session->archive, session->id);
    asi_control_free_queue(session);
    if (NULL != session->publication)
    {
        as_publication_revoke(session->publication); /* Spec: 07 §6.4 */
    }
    as_counter_close(session->counter);
    as_image_release(session->image);
    if (session->is_asked)
    {
        asi_auth_on_closed(&session->archive->auth, session->id);
    }
    free(session->client_info);
    free(session->requested_channel);
    free(session);
}

void asi_control_close(asi_control_session *session)
{
    asi_control_finish(session, "session closed", false);
}

void asi_control_on_unavailable_image(void *context, as_subscription *subscription, as_image *image)
{
    (void)subscription;
    as_archive *archive = context;
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    for (asi_control_session *session = archive->sessions->first; NULL != session; session = session->next)
    {
        /* Departure from Spec: 07 §6.4, which closes only the first session - no session can continue without its request
         * image. */
        if (session->image_correlation_id == constants.correlation_id)
        {
            session->is_image_gone = true;
        }
    }
}

/* -- connecting -------------------------------------------------------------------------------------------------------------- */

static as_result request_publication(asi_control_session *session)
{
    return as_client_async_add_exclusive_publication(session->archive->client, session->response_channel.text,
        session->response_stream_id, &session->publication_request);
}

static as_result request_counter(asi_control_session *session, const as_image_constants *image)
{
    const asi_session_counter counter = {
        .archive_id = session->archive->archive_id,
        .control_session_id = session->id,
        .client_info = session->client_info,
        .source_identity = image->source_identity,
        .session_id = image->session_id,
    };
    return asi_counters_async_add_session(session->archive->client, &counter, &session->counter_request);
}

/* Whoever connects has a session for some seconds, without a login: of a text it keeps no more than it needs. */
static char *copy_text(asi_codec_var text, int64_t most)
{
    const int64_t length = text.length < most ? text.length : most;
    return strndup(0 == length ? "" : text.data, (size_t)length);
}

static as_result init_session(
    asi_control_session *session, const asi_codec_request *request, as_image *image, as_archive *archive)
{
    session->archive = archive;
    session->correlation_id = request->correlation_id;
    session->client_version = request->client_version;
    session->response_stream_id = request->stream_id;
    session->publication_request = AS_NULL_VALUE;
    session->counter_request = AS_NULL_VALUE;
    session->deadline_ns = asi_clock_ns(&archive->clock) + archive->config.connect_timeout_ns;
    session->image = as_image_retain(image);
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    session->image_correlation_id = constants.correlation_id;
    session->client_info = copy_text(request->client_info, ASI_COUNTER_LABEL_CAPACITY); /* no more of it is shown */
    session->requested_channel = copy_text(request->channel, AS_CHANNEL_MAX_LENGTH + 1); /* so that longer ones are refused */
    if (NULL == session->client_info || NULL == session->requested_channel)
    {
        return asi_fail(AS_E_INTERNAL, 0, "no memory for a control session");
    }
    session->id = archive->sessions->next_id++;
    session->is_asked = true;
    session->decision = asi_auth_on_connect(&archive->auth, session->id, request->encoded_credentials.data,
        request->encoded_credentials.length, &session->auth);
    asi_logins_begin(session);
    return AS_OK;
}

void asi_control_connect(as_archive *archive, const asi_codec_request *request, as_image *image)
{
    if (!asi_logins_make_room(archive, image))
    {
        char text[128];
        snprintf(text, sizeof(text), "max control sessions reached %lld: connect request dropped",
            (long long)archive->config.max_control_sessions);
        asi_archive_log(archive, 0, text);
        return;
    }
    asi_control_session *session = calloc(1, sizeof(*session));
    if (NULL == session)
    {
        asi_archive_log(archive, 0, "no memory for a control session");
        return;
    }
    const as_result result = init_session(session, request, image, archive);
    if (AS_OK != result)
    {
        asi_archive_log(archive, 0, NULL);
        asi_control_enter(session, ASI_CONTROL_DONE); /* its step frees it when the driver has answered all outstanding requests */
    }
    session->next = archive->sessions->first;
    archive->sessions->first = session;
    archive->sessions->count++;
    as_counter_set(archive->counters.control_sessions, archive->sessions->count);
}

/* Finds the session of a request that arrived on `image`; see the top of this file. */
static asi_control_session *find_for(as_archive *archive, const asi_codec_request *request, const as_image *image)
{
    char text[256];
    as_image_constants constants;
    asi_control_session *session = asi_control_find(archive, request->control_session_id);
    if (NULL == session && ASI_CODEC_CLOSE_SESSION == request->template_id)
    {
        return NULL; /* a client that leaves: that it no longer listens may be seen before its request */
    }
    if (NULL == session)
    {
        snprintf(text, sizeof(text), "control request for unknown session: controlSessionId=%lld templateId=%d",
            (long long)request->control_session_id, request->template_id);
        asi_archive_log_of_peer(archive, "WARN", 0, text, "control requests for unknown sessions");
        return NULL;
    }
    as_image_get_constants(image, &constants);
    if (constants.correlation_id == session->image_correlation_id)
    {
        return session;
    }
    if (ASI_CODEC_CLOSE_SESSION != request->template_id)
    {
        snprintf(text, sizeof(text), "unauthorised archive action=%d controlSessionId=%lld source=%s", request->template_id,
            (long long)session->id, constants.source_identity);
        asi_archive_log_of_peer(archive, "WARN", ASI_CODEC_E_UNAUTHORISED_ACTION, text, "unauthorised archive actions");
    }
    return NULL;
}

void asi_control_on_challenge_response(as_archive *archive, const asi_codec_request *request, const as_image *image)
{
    asi_control_session *session = find_for(archive, request, image);
    if (NULL != session && ASI_CONTROL_CHALLENGED == session->state)
    {
        session->correlation_id = request->correlation_id;
        session->decision = asi_auth_on_challenge_response(&archive->auth, session->id, request->encoded_credentials.data,
            request->encoded_credentials.length, &session->auth);
        asi_control_enter(session, ASI_CONTROL_CONNECTED);
        session->resend_ns = 0;
    }
}

asi_control_session *asi_control_session_for(as_archive *archive, const asi_codec_request *request, const as_image *image)
{
    asi_control_session *session = find_for(archive, request, image);
    if (NULL == session || ASI_CODEC_CLOSE_SESSION == request->template_id)
    {
        return session; /* Spec: 07 §6.3 - a rejected client closes its session, too */
    }
    if (ASI_CONTROL_AUTHENTICATED != session->state && ASI_CONTROL_ACTIVE != session->state)
    {
        return NULL;
    }
    if (!asi_auth_allows(&archive->auth, &session->auth, request->template_id))
    {
        const char *name = asi_codec_request_name(request->template_id);
        char text[256];
        as_image_constants constants;
        as_image_get_constants(image, &constants);
        snprintf(text, sizeof(text), "unauthorised archive action=%d controlSessionId=%lld source=%s (%s)", request->template_id,
            (long long)session->id, constants.source_identity, NULL == name ? "unknown request" : name);
        asi_archive_log_of_peer(archive, "WARN", ASI_CODEC_E_UNAUTHORISED_ACTION, text, "unauthorised archive actions");
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_UNAUTHORISED_ACTION, "unauthorised action");
        return NULL;
    }
    if (ASI_CONTROL_AUTHENTICATED == session->state)
    {
        asi_control_enter(session, ASI_CONTROL_ACTIVE);
        session->ping_ns = asi_clock_ns(&archive->clock) + archive->config.session_liveness_check_ns;
    }
    return session;
}

static bool has_our_version(const asi_control_session *session)
{
    return ASI_CODEC_VERSION_MAJOR(session->client_version) == ASI_CODEC_VERSION_MAJOR(ASI_CODEC_PROTOCOL_VERSION);
}

/* -- duty cycle -------------------------------------------------------------------------------------------------------------- */

/* Polls the driver's answers. AS_E_* when the driver refused a resource that the session needs. */
static as_result poll_resources(asi_control_session *session)
{
    as_client *client = session->archive->client;
    if (AS_NULL_VALUE != session->publication_request)
    {
        const as_result polled = as_client_poll_publication(client, session->publication_request, &session->publication);
        if (AS_AGAIN != polled)
        {
            session->publication_request = AS_NULL_VALUE;
        }
        if (AS_E_PEER == polled && ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE == as_error_code() &&
            ASI_CONTROL_DONE != session->state)
        {
            return request_publication(session);
        }
        if (polled < 0)
        {
            return polled;
        }
    }
    if (AS_NULL_VALUE != session->counter_request)
    {
        const as_result polled = as_client_poll_counter(client, session->counter_request, &session->counter);
        if (AS_AGAIN != polled)
        {
            session->counter_request = AS_NULL_VALUE;
        }
        if (polled < 0)
        {
            return polled;
        }
    }
    return AS_OK;
}

static as_result parse_response(
    const asi_control_session *session, const as_image_constants *image, bool is_logged_in, asi_uri *uri)
{
    const as_archive_config *config = &session->archive->config;
    const as_result result =
        asi_channel_parse_untrusted(uri, session->requested_channel, (int64_t)strlen(session->requested_channel));
    return AS_OK == result && asi_auth_has_principals(&session->archive->auth) && !config->response_anywhere ?
        asi_channel_check_response(uri, image->source_identity, is_logged_in) : result;
}

static as_result open_response(asi_control_session *session)
{
    const as_archive_config *config = &session->archive->config;
    const bool is_logged_in = AS_AUTH_ACCEPT == session->decision;
    asi_uri uri;
    as_image_constants image;
    as_image_get_constants(session->image, &image);
    as_result result = parse_response(session, &image, is_logged_in, &uri);
    if (AS_OK == result)
    {
        result = asi_channel_response(&uri, config, is_logged_in, image.correlation_id, &session->response_channel);
    }
    if (AS_OK != result)
    {
        return asi_fail_in(result, "connect request of %s: no response channel to answer on", image.source_identity);
    }
    result = request_publication(session);
    return AS_OK == result ? request_counter(session, &image) : result;
}

/* Spec: 11 A3. */
static void fail_session(asi_control_session *session)
{
    char reason[ASI_CONTROL_REASON_CAPACITY];
    snprintf(reason, sizeof(reason), "failed with exception: %s", as_error_text());
    asi_archive_log_of_peer(session->archive, "WARN", as_error_code(), as_error_text(), "response channels that can't be opened");
    asi_control_finish(session, reason, true);
}

/* Checks the response channel before the login, so that no password is checked for a login that cannot be answered. */
static void check_response(asi_control_session *session, int64_t now_ns)
{
    asi_uri uri;
    as_image_constants image;
    as_image_get_constants(session->image, &image);
    session->is_checked = true;
    if (AS_OK != parse_response(session, &image, true, &uri))
    {
        fail_session(session);
        return;
    }
    session->is_provable = session->archive->auth.is_working &&
        asi_channel_proves_source(&uri, &session->archive->config, image.source_identity);
    if (!session->is_provable)
    {
        asi_logins_queue(session, now_ns);
    }
}

static int step_init(asi_control_session *session, int64_t now_ns)
{
    if ('\0' == session->response_channel.text[0])
    {
        if (AS_AUTH_WAIT == session->decision && has_our_version(session))
        {
            if (!session->is_checked)
            {
                check_response(session, now_ns);
                return 1;
            }
            if (!session->is_provable)
            {
                return 0;
            }
        }
        if (AS_OK != open_response(session))
        {
            fail_session(session);
        }
        return 1;
    }
    if (AS_OK != poll_resources(session))
    {
        fail_session(session);
        return 1;
    }
    if (NULL == session->publication || NULL == session->counter)
    {
        return 0;
    }
    as_publication_constants publication;
    as_publication_get_constants(session->publication, &publication);
    as_counter_set(session->counter, session->id);
    /* Spec: 01 §5.2 - reference id at byte 24 of the value's record. */
    asi_store_release_i64(as_counter_address(session->counter) + 3, publication.registration_id);
    session->deadline_ns = now_ns + session->archive->config.connect_timeout_ns;
    asi_control_enter(session, ASI_CONTROL_CONNECTING);
    return 1;
}

static void answer_connect(asi_control_session *session, const asi_codec_event *event, as_result *sent)
{
    uint8_t bytes[ASI_CONTROL_RESPONSE_CAPACITY];
    int64_t length;
    *sent = asi_codec_event_encode(event, bytes, sizeof(bytes), &length);
    if (AS_OK == *sent)
    {
        const as_iovec part = { .data = bytes, .length = length };
        *sent = asi_control_offer(session, &part, 1);
    }
}

/* True once per interval. */
static bool is_time_to_send(asi_control_session *session, int64_t now_ns)
{
    if (now_ns < session->resend_ns)
    {
        return false;
    }
    session->resend_ns = now_ns + RESEND_INTERVAL_NS;
    return true;
}

/* Keeps the deadline, which then ends the session. */
static void tell_version(asi_control_session *session)
{
    const int32_t version = session->client_version;
    char text[128];
    as_result sent;
    snprintf(text, sizeof(text), "invalid client version %d.%d.%d, archive is %d.%d.%d", ASI_CODEC_VERSION_MAJOR(version),
        ASI_CODEC_VERSION_MINOR(version), ASI_CODEC_VERSION_PATCH(version),
        ASI_CODEC_VERSION_MAJOR(ASI_CODEC_PROTOCOL_VERSION), ASI_CODEC_VERSION_MINOR(ASI_CODEC_PROTOCOL_VERSION),
        ASI_CODEC_VERSION_PATCH(ASI_CODEC_PROTOCOL_VERSION));
    const asi_codec_event event =
        asi_control_response(session, session->correlation_id, ASI_CODEC_ERROR, session->id, text);
    answer_connect(session, &event, &sent);
}

static void tell_rejection(asi_control_session *session)
{
    as_result sent; /* repeated until the deadline */
    const asi_codec_event event = asi_control_response(session, session->correlation_id, ASI_CODEC_ERROR,
        ASI_CODEC_E_AUTHENTICATION_REJECTED, "authentication rejected");
    answer_connect(session, &event, &sent);
}

static void tell_challenge(asi_control_session *session)
{
    as_result sent;
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_CHALLENGE);
    event.control_session_id = session->id;
    event.correlation_id = session->correlation_id;
    event.protocol_version = ASI_CODEC_PROTOCOL_VERSION;
    event.encoded_challenge.data = (const char *)session->auth.bytes;
    event.encoded_challenge.length = session->auth.length;
    answer_connect(session, &event, &sent);
    if (AS_OK == sent)
    {
        asi_control_enter(session, ASI_CONTROL_CHALLENGED);
    }
}

static void tell_ok(asi_control_session *session)
{
    as_result sent;
    const asi_codec_event event =
        asi_control_response(session, session->correlation_id, ASI_CODEC_OK, session->id, NULL);
    answer_connect(session, &event, &sent);
    if (AS_OK == sent)
    {
        asi_control_enter(session, ASI_CONTROL_AUTHENTICATED);
        session->deadline_ns = AS_NULL_VALUE;
    }
}

static void reject(asi_control_session *session)
{
    char text[256];
    as_image_constants constants;
    as_image_get_constants(session->image, &constants);
    snprintf(text, sizeof(text), "authentication rejected: sourceIdentity=%s", constants.source_identity);
    asi_archive_log_of_peer(session->archive, "WARN", ASI_CODEC_E_AUTHENTICATION_REJECTED, text, "authentication rejected");
    asi_control_enter(session, ASI_CONTROL_REJECTED);
    session->resend_ns = 0;
}

static int step_connected(asi_control_session *session, int64_t now_ns)
{
    const bool has_version = has_our_version(session);
    if (has_version && AS_AUTH_REJECT == session->decision)
    {
        reject(session);
        return 1;
    }
    if ((has_version && AS_AUTH_WAIT == session->decision) || !is_time_to_send(session, now_ns))
    {
        return 0;
    }
    if (!has_version)
    {
        tell_version(session);
    }
    else if (AS_AUTH_CHALLENGE == session->decision)
    {
        tell_challenge(session);
    }
    else
    {
        tell_ok(session);
    }
    return 1;
}

/* Refusals of requests that were back-pressured wait in the queue here, as in ACTIVE. */
static int step_authenticated(asi_control_session *session, int64_t now_ns)
{
    const int work_count = asi_control_drain_queue(session);
    if (ASI_CONTROL_DONE == session->state || !is_time_to_send(session, now_ns))
    {
        return work_count;
    }
    tell_ok(session);
    return work_count + 1;
}

static int step_rejected(asi_control_session *session, int64_t now_ns)
{
    if (!is_time_to_send(session, now_ns))
    {
        return 0;
    }
    tell_rejection(session);
    return 1;
}

/* Calls the authenticator again when it has asked for more time. */
static int step_decision(asi_control_session *session, int64_t now_ns)
{
    const asi_auth *auth = &session->archive->auth;
    if (!session->is_asked || AS_AUTH_WAIT != session->decision || ASI_CONTROL_DONE == session->state ||
        (auth->is_working && session->id != session->archive->logins->deciding_session_id))
    {
        return 0;
    }
    session->decision = asi_auth_on_wait(auth, session->id, &session->auth);
    if (AS_AUTH_REJECT == session->decision)
    {
        asi_logins_on_wrong(session, now_ns);
    }
    return auth->is_working || AS_AUTH_WAIT != session->decision ? 1 : 0;
}

static void ping(asi_control_session *session, int64_t now_ns)
{
    if (now_ns < session->ping_ns)
    {
        return;
    }
    session->ping_ns = now_ns + session->archive->config.session_liveness_check_ns;
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_PING);
    event.control_session_id = session->id;
    uint8_t bytes[64];
    int64_t length;
    if (AS_OK == asi_codec_event_encode(&event, bytes, sizeof(bytes), &length))
    {
        const as_iovec part = { .data = bytes, .length = length };
        const as_result sent = asi_control_try_send(session, &part, 1);
        (void)sent; /* a ping that was refused has armed the deadline */
    }
}

static int step_active(asi_control_session *session, int64_t now_ns)
{
    int work_count = asi_control_drain_queue(session);
    if (ASI_CONTROL_DONE != session->state && NULL != session->listing)
    {
        work_count += session->step_listing(session);
    }
    if (ASI_CONTROL_DONE != session->state)
    {
        ping(session, now_ns);
    }
    return work_count;
}

static int step_state(asi_control_session *session, int64_t now_ns)
{
    switch (session->state)
    {
        case ASI_CONTROL_INIT:
            return step_init(session, now_ns);
        case ASI_CONTROL_CONNECTING:
            if (!as_publication_is_connected(session->publication))
            {
                return 0;
            }
            asi_control_enter(session, ASI_CONTROL_CONNECTED);
            if (AS_AUTH_WAIT == session->decision && has_our_version(session))
            {
                asi_logins_queue(session, now_ns);
            }
            return 1;
        case ASI_CONTROL_CONNECTED:
            return step_connected(session, now_ns);
        case ASI_CONTROL_AUTHENTICATED:
            return step_authenticated(session, now_ns);
        case ASI_CONTROL_ACTIVE:
            return step_active(session, now_ns);
        case ASI_CONTROL_REJECTED:
            return step_rejected(session, now_ns);
        case ASI_CONTROL_CHALLENGED:
        case ASI_CONTROL_DONE:
            break;
    }
    return 0;
}

static int step_session(asi_control_session *session, int64_t now_ns)
{
    if (session->is_image_gone)
    {
        asi_control_finish(session, "control request publication image unavailable", false);
    }
    if (session->state >= ASI_CONTROL_CONNECTED && ASI_CONTROL_DONE != session->state &&
        !as_publication_is_connected(session->publication))
    {
        asi_control_finish(session, "control response publication is not connected", false);
    }
    if (ASI_CONTROL_DONE != session->state && AS_NULL_VALUE != session->deadline_ns && now_ns > session->deadline_ns)
    {
        char reason[ASI_CONTROL_REASON_CAPACITY];
        if (ASI_CONTROL_ACTIVE == session->state)
        {
            snprintf(reason, sizeof(reason), "failed to send response for more than connectTimeoutMs=%lld",
                (long long)(session->archive->config.connect_timeout_ns / 1000000));
        }
        else
        {
            snprintf(reason, sizeof(reason), "failed to establish initial connection: state=%s", STATE_NAMES[session->state]);
        }
        asi_control_finish(session, reason, true);
    }
    const int work_count = step_decision(session, now_ns);
    return work_count + step_state(session, now_ns);
}

/* A finished session waits for its pending publication or counter; otherwise the driver would keep that resource. */
static bool can_free(asi_control_session *session)
{
    if (AS_OK != poll_resources(session))
    {
        asi_archive_log(session->archive, as_error_code(), NULL);
    }
    return AS_NULL_VALUE == session->publication_request && AS_NULL_VALUE == session->counter_request;
}

int asi_control_step(as_archive *archive)
{
    if (NULL == archive->sessions->first)
    {
        return 0;
    }
    const int64_t now_ns = asi_clock_ns(&archive->clock);
    int work_count = 0;
    asi_logins_choose(archive);
    for (asi_control_session **at = &archive->sessions->first; NULL != *at;)
    {
        asi_control_session *session = *at;
        work_count += step_session(session, now_ns);
        if (ASI_CONTROL_DONE == session->state && can_free(session))
        {
            *at = session->next;
            free_session(session);
            archive->sessions->count--;
            as_counter_set(archive->counters.control_sessions, archive->sessions->count);
        }
        else
        {
            at = &session->next;
        }
    }
    return work_count;
}

void asi_control_close_all(as_archive *archive)
{
    while (NULL != archive->sessions->first)
    {
        asi_control_session *session = archive->sessions->first;
        archive->sessions->first = session->next;
        free_session(session);
    }
}
