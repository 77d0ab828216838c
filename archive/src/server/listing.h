/* Listings of descriptors, and queries. Thread rule: conductor only. Spec: 08 §6. */
#ifndef ASI_SERVER_LISTING_H
#define ASI_SERVER_LISTING_H

#include "codec/request.h"
#include "server/session.h"

/* Begins the requested listing; a session has at most one. */
void asi_listing_begin(asi_control_session *session, const asi_codec_request *request);
void asi_query_list_recording(asi_control_session *session, const asi_codec_request *request);
void asi_query_find_last(asi_control_session *session, const asi_codec_request *request);
void asi_query_position(asi_control_session *session, const asi_codec_request *request);

#endif
