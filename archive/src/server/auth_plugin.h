/* Authenticator that uses a plug-in. See aeron_spark/as_archive_auth.h. */
#ifndef ASI_SERVER_AUTH_PLUGIN_H
#define ASI_SERVER_AUTH_PLUGIN_H

#include "server/auth_calls.h"

/* Fails as asi_auth_open does. */
as_result asi_auth_open_plugin(asi_auth *auth, const as_archive_config *config) AS_MUST_USE;
/* Closes the plug-in's library. Harmless without one. */
void asi_auth_close_plugin(asi_auth *auth);

#endif
