/* Replay tokens: what lets a replay request come on another publication than its session's, so that the replay finds its way back
 * to that publication's driver (response channels). Spec: 07 §11, 08 §11.
 *
 *   session: ReplayTokenRequest > OK(token)
 *   second publication, with response-correlation-id: Replay or BoundedReplay with the token > answered on the session
 *
 * A token belongs to a session and a recording, lasts for the connect timeout, may be used until then, and ends with its session.
 * Where the stock archive is silent (a token that is unknown, too old, or another recording's) ours answers error 0 on the session
 * that the request names; an archive that authenticates its clients only if it came on that session's own publication. The
 * authorisation that replays need is asked for token replays too; the stock archive asks none.
 * Thread rule: the conductor's. */
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
