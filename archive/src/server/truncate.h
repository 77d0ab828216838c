/* Requests to truncate and purge a recording. See deletions.h for the steps after the checks. Spec: 08 §9. */
#ifndef ASI_SERVER_TRUNCATE_H
#define ASI_SERVER_TRUNCATE_H

#include "server/deletions.h"

void asi_truncate_recording(asi_control_session *session, const asi_codec_request *request);
void asi_purge_recording(asi_control_session *session, const asi_codec_request *request);
/* Deletes a stopped recording that is not being replayed; the deletion is handled as by asi_segments_purge_to. */
as_result asi_purge_whole(as_archive *archive, asi_deletion *deletion, const asi_catalog_record *record) AS_MUST_USE;

#endif
