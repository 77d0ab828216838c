/* Replays that are asked for by a token. See tokens.h. Thread rule: the conductor's. */
#ifndef ASI_SERVER_TOKENS_REDEEM_H
#define ASI_SERVER_TOKENS_REDEEM_H

#include "codec/request.h"
#include "server/session.h"

/* Whether the request is a replay that shows a token: one for a response channel. On others a token means nothing. */
bool asi_tokens_are_shown(const asi_codec_request *request);
/* The session whose token it is; its replay goes to the publication that `image` is of: `channel` gets the replay channel that
 * says so, and `request` points to it. NULL: refused, and told where there is a session. */
asi_control_session *asi_tokens_redeem(
    as_archive *archive, asi_codec_request *request, const as_image *image, asi_channel *channel);

#endif
