/* Control sessions from connect to end. See control.c. Spec: 07 §6, §8, §10. Thread rule: the conductor's. */
#ifndef ASI_SERVER_CONTROL_H
#define ASI_SERVER_CONTROL_H

#include "codec/request.h"
#include "server/session.h"

/* `request` is a connect request that came on `image`. Failures are logged: there is no session to answer on. */
void asi_control_connect(as_archive *archive, const asi_codec_request *request, as_image *image);
void asi_control_on_challenge_response(as_archive *archive, const asi_codec_request *request, const as_image *image);
/* The session that may make this request, activated by it. NULL: it is unknown, which is logged; it is not authenticated and
 * does not ask to be closed; or the request is not authorised, which it was told. */
asi_control_session *asi_control_session_for(as_archive *archive, const asi_codec_request *request, const as_image *image);
void asi_control_close(asi_control_session *session);
int asi_control_step(as_archive *archive);
void asi_control_close_all(as_archive *archive);
/* For as_client: notes the session whose requests can't come any more. */
void asi_control_on_unavailable_image(void *context, as_subscription *subscription, as_image *image);

#endif
