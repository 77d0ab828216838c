/* Making and ending a control session: channels, resources, connect request, challenge, archive id. Spec: 07 §5-6.
 *
 * A step machine that never waits, so that an archive's conductor can connect to another archive with it; asi_connect_open turns
 * it until it is done, for blocking clients.
 *
 *   SESSION_ID > RESPONSES > REQUESTS > REQUESTS_CONNECTED > SEND > ANSWER > (CHALLENGE > ANSWER)* > ARCHIVE_ID >
 *   ARCHIVE_ID_ANSWER > KEEP_ALIVE > DONE
 *
 * The caller drives the Aeron client, whose answers the steps look for. Thread rule: as async.h. */
#ifndef ASI_CLIENT_CONNECT_H
#define ASI_CLIENT_CONNECT_H

#include "client/async.h"
#include "wire/uri.h"

typedef enum asi_connect_state
{
    ASI_CONNECT_SESSION_ID,         /* both channels carry one, unless the response channel's mode is "response" */
    ASI_CONNECT_RESPONSES,          /* the subscription first, so that the archive finds it */
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
    asi_async *async;                   /* borrowed */
    as_archive_client_options options;  /* its strings and bytes are borrowed until DONE */
    asi_connect_state state;
    int64_t deadline_ns;                /* of the whole sequence: the message timeout */
    int64_t driver_request;             /* not answered yet; AS_NULL_VALUE: none */
    int64_t archive_id;                 /* AS_NULL_VALUE when the archive is too old to tell */
    asi_codec_request request;          /* the one that is awaited, for texts */
    int32_t session_id;
    bool is_response;                   /* the response channel's mode is "response" */
} asi_connect;

/* `async` has its Aeron client, clock, timeout and handlers, and nothing else. Nothing is sent yet. */
void asi_connect_start(asi_connect *connect, asi_async *async, const as_archive_client_options *options);
/* AS_AGAIN until the session is made (AS_OK); any other result is final and has its text: AS_E_PEER with the archive's code,
 * AS_E_TIMEOUT says what was missing. Then settle and close. */
as_result asi_connect_step(asi_connect *connect) AS_MUST_USE;
/* False while the driver still owes an answer, whose resource is then closed: `async` must not be closed before. For a machine
 * that is given up; true at once for one that is done. */
bool asi_connect_is_settled(asi_connect *connect);
/* Opens the session on `async`, whose Aeron client, timeouts and handlers are set; bounded by the message timeout. On failure
 * the caller closes `async`. *archive_id is AS_NULL_VALUE when the archive is too old to tell. */
as_result asi_connect_open(asi_async *async, const as_archive_client_options *options, int64_t *archive_id) AS_MUST_USE;
/* Tells the archive, if it is there, and frees what `async` owns. Harmless on what was never or only partly opened. */
void asi_connect_close(asi_async *async);
/* `channel` with "session-id=<n>" put in or replaced. AS_E_USAGE: no channel URI, or too long. */
as_result asi_connect_put_session(const char *channel, int32_t session_id, asi_uri_builder *builder) AS_MUST_USE;
/* Channel of a second request publication, on which a replay with a token asks to be answered to the subscription of that
 * registration id. Spec: 07 §11. Its session id is its own: two publications can't share one. */
as_result asi_connect_replay_requests(
    const asi_async *async, int64_t subscription_registration_id, asi_uri_builder *builder) AS_MUST_USE;
/* The channel of `subscription`, a port 0 of its endpoint replaced by the one it got. AS_AGAIN: not bound yet. */
as_result asi_connect_resolved_channel(const as_subscription *subscription, asi_uri_builder *builder) AS_MUST_USE;

#endif
