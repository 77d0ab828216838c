/* Control sessions from connect to close. See control.c. Spec: 07 §6, §8, §10. Thread rule: conductor only. */
#ifndef ASI_SERVER_CONTROL_H
#define ASI_SERVER_CONTROL_H

#include "codec/request.h"
#include "server/session.h"

/* Handles the connect request `request`, which arrived on `image`. Failures are logged, because no session exists to answer
 * on. */
void asi_control_connect(as_archive *archive, const asi_codec_request *request, as_image *image);
void asi_control_on_challenge_response(as_archive *archive, const asi_codec_request *request, const as_image *image);
/* Returns the session that may make this request, and activates it. NULL in three cases: the session is unknown, which is
 * logged; the session is not authenticated and the request does not close it; the request is not authorised, which is reported
 * to the client. */
asi_control_session *asi_control_session_for(as_archive *archive, const asi_codec_request *request, const as_image *image);
void asi_control_close(asi_control_session *session);
int asi_control_step(as_archive *archive);
void asi_control_close_all(as_archive *archive);
/* Handler for as_client: marks the session whose request image has become unavailable. */
void asi_control_on_unavailable_image(void *context, as_subscription *subscription, as_image *image);

#endif
