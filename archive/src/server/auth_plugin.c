/* Authenticator that uses a shared object of the user's. See auth.h; as_archive_auth.h documents the interface for plug-in
 * authors. */
#include "server/auth_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/result.h"

#define ERROR_CAPACITY 512

/* Refuses a file that others can change: its code runs with the archive's rights. */
static as_result check_file(const char *path)
{
    struct stat st;
    if ('/' != path[0])
    {
        return asi_fail(AS_E_USAGE, 0, "aeron.spark.archive.auth.library=%s: give its whole path", path);
    }
    if (0 != stat(path, &st))
    {
        return asi_fail_errno(AS_E_USAGE, errno, "aeron.spark.archive.auth.library: can't look at %s", path);
    }
    if (!S_ISREG(st.st_mode))
    {
        return asi_fail(AS_E_USAGE, 0, "aeron.spark.archive.auth.library: %s is no file", path);
    }
    if (0 != (st.st_mode & (S_IWGRP | S_IWOTH)) || (0 != st.st_uid && geteuid() != st.st_uid))
    {
        return asi_fail(AS_E_USAGE, 0, "aeron.spark.archive.auth.library: others than its user can change %s: chown it to the "
            "archive's user and chmod go-w it", path);
    }
    return AS_OK;
}

static as_result check_table(const as_archive_auth *calls, const char *path, const char *symbol)
{
    if (AS_ARCHIVE_AUTH_VERSION != calls->version)
    {
        return asi_fail(AS_E_USAGE, 0, "%s: %s has version %d, this archive knows %d: build it with this archive's "
            "as_archive_auth.h", path, symbol, calls->version, AS_ARCHIVE_AUTH_VERSION);
    }
    if (NULL == calls->on_connect)
    {
        return asi_fail(AS_E_USAGE, 0, "%s: %s has no on_connect, which decides who gets in", path, symbol);
    }
    return AS_OK;
}

static as_result open_state(asi_auth *auth, const as_archive_config *config)
{
    char error[ERROR_CAPACITY] = "";
    if (NULL == auth->calls->open)
    {
        auth->is_open = true;
        return AS_OK;
    }
    const int code = auth->calls->open(&auth->state, config->auth_argument, error, sizeof(error));
    error[sizeof(error) - 1] = '\0';
    if (0 != code)
    {
        return asi_fail(AS_E_USAGE, code, "%s: %s refused to open: %s", config->auth_library, config->auth_symbol,
            '\0' == error[0] ? "it gave no reason" : error);
    }
    auth->is_open = true;
    return AS_OK;
}

static as_result find_table(asi_auth *auth, const as_archive_config *config)
{
    const char *path = config->auth_library;
    const char *symbol = config->auth_symbol;
    auth->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (NULL == auth->library)
    {
        return asi_fail(AS_E_USAGE, 0, "aeron.spark.archive.auth.library: can't load: %s", dlerror());
    }
    auth->calls = dlsym(auth->library, symbol);
    if (NULL == auth->calls)
    {
        return asi_fail(AS_E_USAGE, 0, "%s exports no %s: define `const as_archive_auth %s`, or name another by "
            "aeron.spark.archive.auth.symbol", path, symbol, symbol);
    }
    return check_table(auth->calls, path, symbol);
}

as_result asi_auth_open_plugin(asi_auth *auth, const as_archive_config *config)
{
    as_result result = check_file(config->auth_library);
    result = AS_OK == result ? find_table(auth, config) : result;
    return AS_OK == result ? open_state(auth, config) : result;
}

void asi_auth_close_plugin(asi_auth *auth)
{
    if (NULL != auth->library)
    {
        dlclose(auth->library);
    }
}
