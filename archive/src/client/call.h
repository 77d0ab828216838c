/* Requests that no caller blocks on: sent once, checked at each poll, any number at a time. Spec: 08 §13, §14, §16.
 *
 * The public as_archive_call holds one on the heap; ReplayMerge and PersistentSubscription embed theirs.
 * Invariant: a call in flight is linked in its session's list, so it must not move or be freed before asi_call_end.
 * Thread rule: as async.h. */
#ifndef ASI_CLIENT_CALL_H
#define ASI_CLIENT_CALL_H

#include "client/async.h"

/* Tries once to send the request; AS_AGAIN: back-pressured, start again. `listing` may be NULL; it is borrowed until the call
 * ends. If `call` is still in flight, it is ended first. */
as_result asi_call_start(
    asi_call *call, asi_async *async, asi_codec_request *request, asi_async_listing *listing) AS_MUST_USE;
/* The same for a request whose ids are set and that was already sent by other means. */
void asi_call_watch(asi_call *call, asi_async *async, const asi_codec_request *request, asi_async_listing *listing);
/* The call's outcome after a poll of the session: AS_AGAIN, AS_OK (any answer, errors included), AS_E_TIMEOUT, or AS_E_CLOSED
 * when its session was closed. Any result but AS_AGAIN ends the call. */
as_result asi_call_check(asi_call *call) AS_MUST_USE;
/* Removes the call from its session; a later answer counts as unawaited. Harmless on a call that never started (all zero) or has
 * ended. */
void asi_call_end(asi_call *call);
static inline bool asi_call_is_under_way(const asi_call *call) { return 0 != call->template_id; }
/* AS_OK and the answer's number; AS_E_PEER for ERROR and the UNKNOWN codes. */
as_result asi_call_value(const asi_async_answer *answer, int32_t template_id, int64_t *value) AS_MUST_USE;
/* Ends every call in flight with AS_E_CLOSED. */
void asi_call_abandon_all(asi_async *async);

#endif
