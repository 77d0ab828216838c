/* A replication's session with the source archive: requests, answers, errors. See replication.h. */
#ifndef ASI_SERVER_REPLICATION_SOURCE_H
#define ASI_SERVER_REPLICATION_SOURCE_H

#include "server/replication.h"

/* Fails the replication with the thread's last error, as a general error. */
void asi_replication_fail_as_told(asi_replication *replication);
/* False when the state's deadline has passed, which ends the replication. */
bool asi_replication_has_time(asi_replication *replication);
/* Initialises replication->request as a new request for the source recording. */
asi_codec_request *asi_replication_prepare(asi_replication *replication, int32_t template_id);
/* Sends replication->request, unless it is in flight, and polls for the answer. AS_OK: OK, or a descriptor; AS_AGAIN: no answer
 * yet; other results have ended the replication. */
as_result asi_replication_ask(asi_replication *replication, const asi_call_listing *listing) AS_MUST_USE;
as_result asi_replication_ask_on(
    asi_replication *replication, as_publication *publication, const asi_call_listing *listing) AS_MUST_USE;
/* Requests the source's recorded position. AS_OK: source_position is current; other results as asi_replication_ask. */
as_result asi_replication_query_position(asi_replication *replication) AS_MUST_USE;
/* Checks for errors that the source reports without a request, such as a failed replay. False: the replication has ended. */
bool asi_replication_is_source_well(asi_replication *replication);

#endif
