/* The authenticator's table of calls, of any kind. auth.c calls it; auth_file.c and auth_plugin.c open it. */
#ifndef ASI_SERVER_AUTH_CALLS_H
#define ASI_SERVER_AUTH_CALLS_H

#include "aeron_spark/as_archive_auth.h"
#include "server/config.h"

typedef struct asi_auth
{
    const as_archive_auth *calls;   /* NULL before it is open */
    void *state;
    void *library;                  /* of a plug-in */
    bool deny_all;
    bool is_open;                   /* `state` is to be closed */
    bool is_working;                /* pending decisions compute in the conductor's cycles, not elsewhere */
} asi_auth;

#endif
