/* Authentication by a plug-in. See aeron_spark/as_archive_auth.h. */
#ifndef ASI_SERVER_AUTH_PLUGIN_H
#define ASI_SERVER_AUTH_PLUGIN_H

#include "server/auth_calls.h"

/* Errors as of asi_auth_open. */
as_result asi_auth_open_plugin(asi_auth *auth, const as_archive_config *config) AS_MUST_USE;
/* Its library; harmless where there is none. */
void asi_auth_close_plugin(asi_auth *auth);

#endif
