/* Requests to migrate the segments of one recording to another. See deletions.h for the steps after the checks. Spec: 08 §9. */
#ifndef ASI_SERVER_MIGRATE_H
#define ASI_SERVER_MIGRATE_H

#include "codec/request.h"
#include "server/archive.h"

void asi_migrate_segments(asi_control_session *session, const asi_codec_request *request);

#endif
