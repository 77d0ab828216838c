/* Authentication by a credentials file. See auth_file.c. */
#ifndef ASI_SERVER_AUTH_FILE_H
#define ASI_SERVER_AUTH_FILE_H

#include "server/auth_calls.h"

/* Errors as of asi_auth_open. */
as_result asi_auth_open_file(asi_auth *auth, const char *path) AS_MUST_USE;

#endif
