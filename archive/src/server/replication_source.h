/* A replication's session with the source archive: requests, answers, errors. See replication.h. */
#ifndef ASI_SERVER_REPLICATION_SOURCE_H
#define ASI_SERVER_REPLICATION_SOURCE_H

#include "server/replication.h"

/* Fails with the thread's last failure, as a general error. */
void asi_replication_fail_as_told(asi_replication *replication);
/* False once the state's time is over, which ends the replication. */
bool asi_replication_has_time(asi_replication *replication);
/* A fresh request about the source recording. */
asi_codec_request *asi_replication_prepare(asi_replication *replication, int32_t template_id);
/* Sends replication->request, if it is not in flight, and looks for the answer. AS_OK: OK, or a descriptor; AS_AGAIN; other
 * results have ended the replication. */
as_result asi_replication_ask(asi_replication *replication, asi_async_listing *listing) AS_MUST_USE;
as_result asi_replication_ask_on(
    asi_replication *replication, as_publication *publication, asi_async_listing *listing) AS_MUST_USE;
/* Asks for the source's recorded position. AS_OK: source_position is fresh; others as asi_replication_ask. */
as_result asi_replication_query_position(asi_replication *replication) AS_MUST_USE;
/* Errors that the source tells on its own, such as a replay that failed. False: the replication has ended. */
bool asi_replication_is_source_well(asi_replication *replication);

#endif
