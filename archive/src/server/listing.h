/* Descriptors and queries. Thread rule: the conductor's. Spec: 08 §6. */
#ifndef ASI_SERVER_LISTING_H
#define ASI_SERVER_LISTING_H

#include "codec/request.h"
#include "server/session.h"

/* Begins the listing that the request asks for; one at a time per session. */
void asi_listing_begin(asi_control_session *session, const asi_codec_request *request);
void asi_query_list_recording(asi_control_session *session, const asi_codec_request *request);
void asi_query_find_last(asi_control_session *session, const asi_codec_request *request);
void asi_query_position(asi_control_session *session, const asi_codec_request *request);

#endif
