/* Opens and closes a control session: channels, resources, connect request, challenge, archive id. Spec: 07 §5-6.
 *
 * A non-blocking state machine, so that an archive's conductor can use it to connect to another archive. For blocking clients,
 * asi_connect_open drives it to completion.
 *
 *   SESSION_ID > RESPONSES > REQUESTS > REQUESTS_CONNECTED > SEND > ANSWER > (CHALLENGE > ANSWER)* > ARCHIVE_ID >
 *   ARCHIVE_ID_ANSWER > KEEP_ALIVE > DONE
 *
 * The caller drives the Aeron client; the steps poll for its results. Thread rule: as control_session.h. */
#ifndef ASI_CLIENT_CONNECT_H
#define ASI_CLIENT_CONNECT_H

#include "client/call.h"
#include "wire/uri.h"

typedef enum asi_connect_state
{
    ASI_CONNECT_SESSION_ID,         /* both channels carry one, unless the response channel's mode is "response" */
    ASI_CONNECT_RESPONSES,          /* added first, so that the archive's responses find the subscription */
    ASI_CONNECT_REQUESTS,
    ASI_CONNECT_REQUESTS_CONNECTED,
    ASI_CONNECT_SEND,
    ASI_CONNECT_ANSWER,
    ASI_CONNECT_CHALLENGE,
    ASI_CONNECT_ARCHIVE_ID,
    ASI_CONNECT_ARCHIVE_ID_ANSWER,
    ASI_CONNECT_KEEP_ALIVE,
    ASI_CONNECT_DONE
} asi_connect_state;

typedef struct asi_connect
{
    asi_client_session *session;        /* borrowed */
    as_archive_client_options options;  /* its strings and bytes are borrowed until DONE */
    asi_connect_state state;
    int64_t deadline_ns;                /* of the whole sequence: start plus message timeout */
    int64_t driver_request;             /* unanswered; AS_NULL_VALUE: none */
    int64_t archive_id;                 /* AS_NULL_VALUE when the archive is too old to report it */
    asi_codec_request request;          /* the last one, named in error texts */
    asi_call call;
    int32_t session_id;
    bool is_response;                   /* the response channel's mode is "response" */
} asi_connect;

/* Sends nothing. `session` must have its Aeron client, clock, timeout and handlers, and no other resources. */
void asi_connect_start(asi_connect *connect, asi_client_session *session, const as_archive_client_options *options);
/* AS_AGAIN until the session is established (AS_OK). Any other result is final and sets the error text: AS_E_PEER with the
 * archive's code; AS_E_TIMEOUT names what was missing. Then settle and close. */
as_result asi_connect_step(asi_connect *connect) AS_MUST_USE;
/* False while a driver request is unanswered; its resource is closed once the answer arrives, so `session` must not be closed
 * before. For a machine that is abandoned; true at once for a machine that is done. */
bool asi_connect_is_settled(asi_connect *connect);
/* Opens the session on `session`, whose Aeron client, timeouts and handlers are set; bounded by the message timeout. On failure
 * the caller closes `session`. *archive_id is AS_NULL_VALUE when the archive is too old to report it. */
as_result asi_connect_open(
    asi_client_session *session, const as_archive_client_options *options, int64_t *archive_id) AS_MUST_USE;
/* Ends every call, notifies the archive, if connected, and frees what `session` owns. Harmless on a session that was never or only
 * partly opened. */
void asi_connect_close(asi_client_session *session);
/* `channel` with "session-id=<n>" added or replaced. AS_E_USAGE: not a channel URI, or too long. */
as_result asi_connect_put_session(const char *channel, int32_t session_id, asi_uri_builder *builder) AS_MUST_USE;
/* Channel of a second request publication, for a replay with a token that responds to the subscription with that registration
 * id. Spec: 07 §11. It has its own session id, because two publications can't share one. */
as_result asi_connect_replay_requests(
    const asi_client_session *session, int64_t subscription_registration_id, asi_uri_builder *builder) AS_MUST_USE;
/* The channel of `subscription`, with port 0 of its endpoint replaced by the bound port. AS_AGAIN: not bound yet. */
as_result asi_connect_resolved_channel(const as_subscription *subscription, asi_uri_builder *builder) AS_MUST_USE;

#endif
