/* Requests to migrate the segments of one recording to another. See deletions.h for the steps after the checks. Spec: 08 §9. */
#ifndef ASI_SERVER_MIGRATE_H
#define ASI_SERVER_MIGRATE_H

#include "codec/request.h"
#include "server/archive.h"

void asi_migrate_segments(asi_control_session *session, const asi_codec_request *request);
/* Takes back or finishes what a migration by renames had begun when the archive died. Call after recovery, before anything is
 * extended. AS_E_STORAGE: a file can't be renamed. */
as_result asi_migrate_settle(as_archive *archive) AS_MUST_USE;

#endif
