/* Replay tokens: a replay request with a token may arrive on another publication than its session's, so that the replay is sent
 * back to the driver of that publication (response channels). Spec: 07 §11, 08 §11.
 *
 *   session: ReplayTokenRequest > OK(token)
 *   second publication, with response-correlation-id: Replay or BoundedReplay with the token > answered on the session
 *
 * A token belongs to a session and a recording. It is valid for the connect timeout, may be used more than once, and ends with
 * its session. The stock archive does not answer a token that is unknown, expired or for another recording. This archive answers
 * error 0 on the session that the request names; if it authenticates its clients, only when the request arrived on that
 * session's own publication. Token replays need the same authorisation as other replays; the stock archive does not check it.
 * Thread rule: conductor only. */
#ifndef ASI_SERVER_TOKENS_H
#define ASI_SERVER_TOKENS_H

#include "codec/request.h"
#include "server/session.h"

typedef struct asi_replay_token
{
    struct asi_replay_token *next;
    int64_t token;
    int64_t recording_id;
    int64_t control_session_id;
    int64_t deadline_ns;
} asi_replay_token;

void asi_tokens_issue(asi_control_session *session, const asi_codec_request *request);
/* NULL: unknown. */
asi_replay_token *asi_tokens_find(const as_archive *archive, int64_t token);
int asi_tokens_expire(as_archive *archive);
void asi_tokens_drop_session(as_archive *archive, int64_t control_session_id);
void asi_tokens_close(as_archive *archive);

#endif
