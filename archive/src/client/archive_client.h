/* Internal interface of an archive client, for the other calls, ReplayMerge, PersistentSubscription and tests. Thread rule: as
 * control_session.h. */
#ifndef ASI_CLIENT_ARCHIVE_CLIENT_H
#define ASI_CLIENT_ARCHIVE_CLIENT_H

#include "client/control_session.h"

/* Prepares an unconnected session over `aeron`: sets handlers, timeouts and idle strategy from the options. */
as_result asi_archive_client_prepare(asi_client_session *session, const as_archive_client_options *options, as_client *aeron,
    const asi_clock *clock) AS_MUST_USE;
/* as_archive_client_open with an injected clock. */
as_result asi_archive_client_open_with(
    const as_archive_client_options *options, const asi_clock *clock, as_archive_client **client) AS_MUST_USE;
/* Borrowed until the client is closed. */
asi_client_session *asi_archive_client_session(as_archive_client *client);
/* AS_E_USAGE inside a handler. AS_E_CLOSED once the session was lost; the session's streams are closed then. Spec: 08 §13. */
as_result asi_archive_client_check(as_archive_client *client) AS_MUST_USE;
/* Sends the request and waits for its numeric answer; `value` may be NULL. */
as_result asi_archive_client_call(as_archive_client *client, asi_codec_request *request, int64_t *value) AS_MUST_USE;

#endif
