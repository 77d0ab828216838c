/* Making and ending a control session: channels, resources, connect request, archive id. Spec: 07 §5-6.
 *
 * Called by archive_client.c. Thread rule: as async.h. */
#ifndef ASI_CLIENT_CONNECT_H
#define ASI_CLIENT_CONNECT_H

#include "client/async.h"
#include "wire/uri.h"

/* Opens the session on `async`, whose Aeron client, timeouts and handlers are set; bounded by the message timeout. On failure
 * the caller closes `async`. *archive_id is AS_NULL_VALUE when the archive is too old to tell. */
as_result asi_connect_open(asi_async *async, const as_archive_client_options *options, int64_t *archive_id) AS_MUST_USE;
/* Tells the archive, if it is there, and frees what `async` owns. Harmless on what was never or only partly opened. */
void asi_connect_close(asi_async *async);
/* `channel` with "session-id=<n>" put in or replaced. AS_E_USAGE: no channel URI, or too long. */
as_result asi_connect_put_session(const char *channel, int32_t session_id, asi_uri_builder *builder) AS_MUST_USE;

#endif
