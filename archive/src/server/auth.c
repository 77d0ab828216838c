/* See auth.h. */
#include "server/auth.h"

#include <string.h>

#include "base/result.h"
#include "server/auth_file.h"
#include "server/auth_plugin.h"

static as_auth_decision accept_everybody(
    void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out)
{
    (void)state;
    (void)session_id;
    (void)credentials;
    (void)length;
    out->length = 0; /* Spec: 07 §7 - an empty principal */
    return AS_AUTH_ACCEPT;
}

static const as_archive_auth EVERYBODY = { .version = AS_ARCHIVE_AUTH_VERSION, .on_connect = accept_everybody };

static as_result check_settings(const as_archive_config *config)
{
    const bool has_file = '\0' != config->credentials_file[0];
    const bool has_library = '\0' != config->auth_library[0];
    if (has_file && has_library)
    {
        return asi_fail(AS_E_USAGE, 0, "aeron.spark.archive.credentials.file and aeron.spark.archive.auth.library are both set: "
            "leave one of them out");
    }
    if (has_file && ASI_AUTHENTICATOR_DEFAULT == config->authenticator)
    {
        return asi_fail(AS_E_USAGE, 0, "aeron.archive.authenticator.supplier names the default, which lets everybody in, and "
            "aeron.spark.archive.credentials.file names users: leave one of them out");
    }
    if (has_library && ASI_AUTHENTICATOR_DEFAULT == config->authenticator)
    {
        return asi_fail(AS_E_USAGE, 0, "aeron.archive.authenticator.supplier names the default, which lets everybody in, and "
            "aeron.spark.archive.auth.library names a plug-in: leave one of them out");
    }
    if (has_file && ASI_AUTHORISATION_ALLOW_ALL == config->authorisation)
    {
        return asi_fail(AS_E_USAGE, 0, "aeron.archive.authorisation.service.supplier=ALLOW_ALL would void what the users of "
            "aeron.spark.archive.credentials.file may do: leave it out");
    }
    return AS_OK;
}

as_result asi_auth_open(asi_auth *auth, const as_archive_config *config)
{
    *auth = (asi_auth){ .deny_all = ASI_AUTHORISATION_DENY_ALL == config->authorisation };
    const as_result result = check_settings(config);
    if (AS_OK != result)
    {
        return result;
    }
    if ('\0' != config->credentials_file[0])
    {
        return asi_auth_open_file(auth, config->credentials_file);
    }
    if ('\0' != config->auth_library[0])
    {
        return asi_auth_open_plugin(auth, config);
    }
    auth->calls = &EVERYBODY;
    return AS_OK;
}

void asi_auth_close(asi_auth *auth)
{
    if (auth->is_open && NULL != auth->calls->close)
    {
        auth->calls->close(auth->state);
    }
    asi_auth_close_plugin(auth);
    *auth = (asi_auth){ .calls = NULL };
}

static as_auth_decision checked(as_auth_decision decision, as_auth_bytes *out)
{
    const bool is_known = AS_AUTH_WAIT == decision || AS_AUTH_ACCEPT == decision || AS_AUTH_CHALLENGE == decision;
    if (!is_known || out->length < 0 || out->length > AS_ARCHIVE_AUTH_BYTES_MAX)
    {
        out->length = 0;
        return AS_AUTH_REJECT;
    }
    return decision;
}

as_auth_decision asi_auth_on_connect(
    const asi_auth *auth, int64_t session_id, const void *credentials, int64_t length, as_auth_bytes *out)
{
    out->length = 0;
    return checked(auth->calls->on_connect(auth->state, session_id, credentials, length, out), out);
}

as_auth_decision asi_auth_on_challenge_response(
    const asi_auth *auth, int64_t session_id, const void *credentials, int64_t length, as_auth_bytes *out)
{
    out->length = 0;
    return NULL == auth->calls->on_challenge_response ? AS_AUTH_REJECT :
        checked(auth->calls->on_challenge_response(auth->state, session_id, credentials, length, out), out);
}

as_auth_decision asi_auth_on_wait(const asi_auth *auth, int64_t session_id, as_auth_bytes *out)
{
    out->length = 0;
    return NULL == auth->calls->on_wait ? AS_AUTH_REJECT :
        checked(auth->calls->on_wait(auth->state, session_id, out), out);
}

void asi_auth_on_closed(const asi_auth *auth, int64_t session_id)
{
    if (NULL != auth->calls->on_closed)
    {
        auth->calls->on_closed(auth->state, session_id);
    }
}

bool asi_auth_has_principals(const asi_auth *auth) { return &EVERYBODY != auth->calls; }

bool asi_auth_allows(const asi_auth *auth, const as_auth_bytes *principal, int32_t action_id)
{
    if (auth->deny_all)
    {
        return false;
    }
    return NULL == auth->calls->is_authorised ||
        auth->calls->is_authorised(auth->state, principal->bytes, principal->length, action_id);
}

bool asi_auth_is_same(const as_auth_bytes *a, const as_auth_bytes *b)
{
    return a->length == b->length && 0 == memcmp(a->bytes, b->bytes, (size_t)a->length);
}
