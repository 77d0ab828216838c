/* Requests for segments at the head of a recording. See deletions.h for the steps after the checks. Spec: 08 §9. */
#ifndef ASI_SERVER_SEGMENTS_H
#define ASI_SERVER_SEGMENTS_H

#include "server/deletions.h"

void asi_segments_detach(asi_control_session *session, const asi_codec_request *request);
void asi_segments_delete_detached(asi_control_session *session, const asi_codec_request *request);
void asi_segments_purge(asi_control_session *session, const asi_codec_request *request);
/* Base of the segment in which a recording ends, or which is being written. */
int64_t asi_segments_last_base(const as_archive *archive, const asi_catalog_record *record);
/* Moves the start of the recording to the segment `new_start`, which was checked, and deletes everything before it. The deletion
 * is begun, or discarded with AS_E_STORAGE. */
as_result asi_segments_purge_to(as_archive *archive, asi_deletion *deletion, const asi_catalog_record *record,
    int64_t new_start) AS_MUST_USE;
void asi_segments_attach(asi_control_session *session, const asi_codec_request *request);

#endif
