/* Requests about segments at the head of a recording. See deletions.h for what follows its checks. Spec: 08 §9. */
#ifndef ASI_SERVER_SEGMENTS_H
#define ASI_SERVER_SEGMENTS_H

#include "server/deletions.h"

void asi_segments_detach(asi_control_session *session, const asi_codec_request *request);
void asi_segments_delete_detached(asi_control_session *session, const asi_codec_request *request);
void asi_segments_purge(asi_control_session *session, const asi_codec_request *request);
/* The segment that a recording ends in, or is being written. */
int64_t asi_segments_last_base(const as_archive *archive, const asi_catalog_record *record);
/* Makes the recording start with the segment `new_start`, which was checked, and deletes what lies before. The deletion is begun, or
 * discarded with AS_E_STORAGE. */
as_result asi_segments_purge_to(as_archive *archive, asi_deletion *deletion, const asi_catalog_record *record,
    int64_t new_start) AS_MUST_USE;
void asi_segments_attach(asi_control_session *session, const asi_codec_request *request);

#endif
