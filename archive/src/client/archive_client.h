/* What the other calls, ReplayMerge, PersistentSubscription and tests see of an archive client. Thread rule: as async.h. */
#ifndef ASI_CLIENT_ARCHIVE_CLIENT_H
#define ASI_CLIENT_ARCHIVE_CLIENT_H

#include "client/async.h"

/* A session that is connected to nothing yet: handlers, timeouts and idle strategy of the options, over `aeron`. */
as_result asi_archive_client_prepare(asi_async *async, const as_archive_client_options *options, as_client *aeron,
    const asi_clock *clock) AS_MUST_USE;
/* as_archive_client_open with time injected. */
as_result asi_archive_client_open_with(
    const as_archive_client_options *options, const asi_clock *clock, as_archive_client **client) AS_MUST_USE;
/* Borrowed until the client is closed. */
asi_async *asi_archive_client_async(as_archive_client *client);
/* AS_E_USAGE inside of a handler; AS_E_CLOSED once the session was lost, whose streams are then closed. Spec: 08 §13. */
as_result asi_archive_client_check(as_archive_client *client) AS_MUST_USE;
/* Sends the request and awaits its answer, a number; `value` may be NULL. */
as_result asi_archive_client_call(as_archive_client *client, asi_codec_request *request, int64_t *value) AS_MUST_USE;

#endif
