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

#include "server/archive.h"

void asi_tokens_issue(asi_control_session *session, const asi_codec_request *request);
/* Whether the request is a replay that shows a token: one for a response channel. On others a token means nothing. */
bool asi_tokens_are_shown(const asi_codec_request *request);
/* The session whose token it is; its replay goes to the publication that `image` is of: `channel` gets the replay channel that
 * says so, and `request` points to it. NULL: refused, and told where there is a session. */
asi_control_session *asi_tokens_redeem(
    as_archive *archive, asi_codec_request *request, const as_image *image, asi_channel *channel);
int asi_tokens_expire(as_archive *archive);
void asi_tokens_drop_session(as_archive *archive, int64_t control_session_id);
void asi_tokens_close(as_archive *archive);

#endif
