/* Calls to an archive: requests in flight, any number at a time, checked at each poll of their session. Spec: 08 §13, §14, §16.
 *
 * A blocking call is a call that is polled until it is done. The public as_archive_call holds one on the heap; the connect
 * sequence, ReplayMerge, PersistentSubscription and replications embed theirs.
 * Invariant: a call in flight is linked in its session's list, so it must not move or be freed before asi_call_end.
 * Thread rule: as control_session.h. */
#ifndef ASI_CLIENT_CALL_H
#define ASI_CLIENT_CALL_H

#include "client/control_session.h"

/* Tries once to send the request; AS_AGAIN: back-pressured, start again. `listing` is copied; NULL: the request lists nothing. If
 * `call` is still in flight, it is ended first. */
as_result asi_call_start(asi_call *call, asi_client_session *session, asi_codec_request *request,
    const asi_call_listing *listing) AS_MUST_USE;
/* The same on another publication to the archive. */
as_result asi_call_start_on(asi_call *call, asi_client_session *session, as_publication *publication,
    asi_codec_request *request, const asi_call_listing *listing) AS_MUST_USE;
/* The call's outcome after a poll of the session: AS_AGAIN, AS_OK (any answer, errors included), AS_E_TIMEOUT, or AS_E_CLOSED
 * when its session was closed. Any result but AS_AGAIN ends the call. */
as_result asi_call_check(asi_call *call) AS_MUST_USE;
/* Polls the session, then as asi_call_check; a failure of the session ends the call too. AS_E_USAGE inside a handler, which does
 * not end it. */
as_result asi_call_poll(asi_call *call) AS_MUST_USE;
/* Blocks: sends the request on `publication` and polls until the call is done, or until `deadline_ns`. The call has ended when
 * this returns. Results as asi_call_poll. */
as_result asi_call_run(asi_call *call, asi_client_session *session, as_publication *publication, asi_codec_request *request,
    const asi_call_listing *listing, int64_t deadline_ns) AS_MUST_USE;
/* Reads the answer. AS_OK: its number, or for a listing the number of descriptors given; AS_E_PEER: it is an ERROR, or UNKNOWN
 * for a request that is not a listing, or no answer to the request. */
as_result asi_call_value(const asi_call *call, int64_t *value) AS_MUST_USE;
/* Removes the call from its session; a later answer counts as unawaited. Harmless on a call that never started (all zero) or has
 * ended. */
void asi_call_end(asi_call *call);
/* Builds AS_E_TIMEOUT for a request that was not answered in time. */
as_result asi_call_fail_by_timeout(
    const asi_client_session *session, int32_t template_id, int64_t correlation_id) AS_MUST_USE;
/* Takes every call in flight off the session; their next check is AS_E_CLOSED, unless they are answered. */
void asi_call_abandon_all(asi_client_session *session);

#endif
