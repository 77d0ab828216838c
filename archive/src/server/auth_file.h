/* Authenticator that uses a credentials file. See auth_file.c. */
#ifndef ASI_SERVER_AUTH_FILE_H
#define ASI_SERVER_AUTH_FILE_H

#include "server/auth_calls.h"

/* Fails as asi_auth_open does. */
as_result asi_auth_open_file(asi_auth *auth, const char *path) AS_MUST_USE;

#endif
