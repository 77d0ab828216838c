/* Authenticates control sessions and authorises their requests. Spec: 07 §7.
 *
 * All authenticators share one table of calls (as_archive_auth.h): accept everybody (the default), the users of a credentials
 * file (auth_file.c), a plug-in (auth_plugin.c). The authorisation service of the settings overrides the table: DENY_ALL refuses
 * every request. control.c asks for decisions, on_request.c and replays.c for permission. Thread rule: the conductor's. */
#ifndef ASI_SERVER_AUTH_H
#define ASI_SERVER_AUTH_H

#include "server/auth_calls.h"

/* AS_E_USAGE: contradicting settings, a credentials file that others can read or that is malformed, or an incomplete plug-in. The
 * text names file, line or symbol and the remedy, and never a secret. */
as_result asi_auth_open(asi_auth *auth, const as_archive_config *config) AS_MUST_USE;
void asi_auth_close(asi_auth *auth);
/* True if principals exist: then sessions are isolated from each other. */
bool asi_auth_has_principals(const asi_auth *auth);
bool asi_auth_allows(const asi_auth *auth, const as_auth_bytes *principal, int32_t action_id);
bool asi_auth_is_same(const as_auth_bytes *a, const as_auth_bytes *b);

/* As the calls of as_archive_auth.h. A missing function or an invalid result of a plug-in is a rejection. */
as_auth_decision asi_auth_on_connect(
    const asi_auth *auth, int64_t session_id, const void *credentials, int64_t length, as_auth_bytes *out);
as_auth_decision asi_auth_on_challenge_response(
    const asi_auth *auth, int64_t session_id, const void *credentials, int64_t length, as_auth_bytes *out);
as_auth_decision asi_auth_on_wait(const asi_auth *auth, int64_t session_id, as_auth_bytes *out);
void asi_auth_on_closed(const asi_auth *auth, int64_t session_id);

#endif
