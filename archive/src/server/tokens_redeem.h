/* Replays requested with a token. See tokens.h. Thread rule: conductor only. */
#ifndef ASI_SERVER_TOKENS_REDEEM_H
#define ASI_SERVER_TOKENS_REDEEM_H

#include "codec/request.h"
#include "server/session.h"

/* Whether the request is a replay that presents a token: one for a response channel. On other channels a token has no meaning. */
bool asi_tokens_are_shown(const asi_codec_request *request);
/* Returns the session that owns the token. Its replay is sent to the publication of `image`: `channel` is set to the replay
 * channel that names that image, and `request` points to it. NULL: refused, and the error is reported where a session exists. */
asi_control_session *asi_tokens_redeem(
    as_archive *archive, asi_codec_request *request, const as_image *image, asi_channel *channel);

#endif
