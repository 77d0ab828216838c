/* Who may open control sessions, and what each may ask for. Spec: 07 §7.
 *
 * One table of calls (as_archive_auth.h) serves all kinds: everybody (the default), the users of a credentials file
 * (auth_file.c), a plug-in (auth_plugin.c). The authorisation service of the settings stands above it: DENY_ALL refuses whatever
 * the table says. control.c asks for decisions, on_request.c and replays.c for permission. Thread rule: the conductor's. */
#ifndef ASI_SERVER_AUTH_H
#define ASI_SERVER_AUTH_H

#include "server/auth_calls.h"

/* AS_E_USAGE: settings that contradict each other, a credentials file that others can read or that is wrong, a plug-in that lacks
 * something; the text names file, line or symbol and the remedy, and never a secret. */
as_result asi_auth_open(asi_auth *auth, const as_archive_config *config) AS_MUST_USE;
void asi_auth_close(asi_auth *auth);
/* True when principals exist: sessions are then held apart. */
bool asi_auth_has_principals(const asi_auth *auth);
bool asi_auth_allows(const asi_auth *auth, const as_auth_bytes *principal, int32_t action_id);
bool asi_auth_is_same(const as_auth_bytes *a, const as_auth_bytes *b);

/* As the calls of as_archive_auth.h; what a plug-in lacks or gets wrong is a rejection. */
as_auth_decision asi_auth_on_connect(
    const asi_auth *auth, int64_t session_id, const void *credentials, int64_t length, as_auth_bytes *out);
as_auth_decision asi_auth_on_challenge_response(
    const asi_auth *auth, int64_t session_id, const void *credentials, int64_t length, as_auth_bytes *out);
as_auth_decision asi_auth_on_wait(const asi_auth *auth, int64_t session_id, as_auth_bytes *out);
void asi_auth_on_closed(const asi_auth *auth, int64_t session_id);

#endif
