/* Authenticates with a credentials file (auth_users.h). A client can authenticate in two ways:
 *
 *   connect with `user:password`            simple, for clients whose credentials are a constant; the password crosses the wire
 *   connect with `user`                     is challenged with the text
 *       scram-sha-256 <iterations> <salt> <nonce>     (salt and nonce hexadecimal)
 *     and answers with 64 hexadecimal digits: C xor HMAC-SHA-256(SHA-256(C), the challenge's text), C as in auth_users.h.
 *     The password never crosses the wire, and an answer is valid for one challenge.
 *
 * Deriving a key from a password takes many cycles of the conductor, one login at a time (logins.h selects it), so that a flood
 * of wrong logins delays only other logins. An unknown user costs the same time as a known one and gets a challenge with a
 * constant salt, so that clients can't find out which names exist. Spec: 07 §7. */
#include "server/auth_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/result.h"
#include "codec/request.h"
#include "server/auth_users.h"

#define STEP_ITERATIONS 256         /* about 0.15 ms */
#define NONCE_LENGTH 16
#define UNKNOWN_SALT_LENGTH 16
#define CREDENTIALS_MAX 1024

/* A session without decision yet. */
typedef struct login
{
    struct login *next;
    int64_t session_id;
    const asi_auth_user *user;      /* NULL: unknown */
    asi_pbkdf2 derivation;          /* of a password */
    bool is_deriving;
    char challenge[AS_ARCHIVE_AUTH_BYTES_MAX]; /* "": none */
} login;

typedef struct credentials_file
{
    asi_auth_users users;
    login *logins;                  /* oldest first */
    uint8_t secret[ASI_SHA256_LENGTH]; /* key for the salts of unknown users */
} credentials_file;

/* -- proofs ------------------------------------------------------------------------------------------------------------------ */

static bool has_client_key(const asi_auth_user *user, const uint8_t client_key[ASI_SHA256_LENGTH])
{
    uint8_t stored[ASI_SHA256_LENGTH];
    asi_sha256_of(client_key, ASI_SHA256_LENGTH, stored);
    return asi_is_equal_secret(stored, user->stored_key, sizeof(stored));
}

static bool has_password(const login *of)
{
    static const char LABEL[] = "Client Key";
    uint8_t client_key[ASI_SHA256_LENGTH];
    asi_hmac_sha256(of->derivation.key, ASI_SHA256_LENGTH, LABEL, sizeof(LABEL) - 1, client_key);
    const bool is_right = NULL != of->user && has_client_key(of->user, client_key);
    explicit_bzero(client_key, sizeof(client_key));
    return is_right;
}

static bool has_proof(const login *of, const uint8_t *answer, int64_t length)
{
    uint8_t key[ASI_SHA256_LENGTH];
    uint8_t signature[ASI_SHA256_LENGTH];
    if (NULL == of->user || '\0' == of->challenge[0] ||
        ASI_SHA256_LENGTH != asi_auth_parse_hex((const char *)answer, length, key, sizeof(key)))
    {
        return false;
    }
    asi_hmac_sha256(of->user->stored_key, ASI_SHA256_LENGTH, of->challenge, (int64_t)strlen(of->challenge), signature);
    for (int i = 0; i < ASI_SHA256_LENGTH; i++)
    {
        key[i] ^= signature[i];
    }
    const bool is_right = has_client_key(of->user, key);
    explicit_bzero(key, sizeof(key));
    return is_right;
}

/* Computes salt and iterations; for an unknown user they are made up, and always the same for the same name. */
static void salt_of(const credentials_file *file, const asi_auth_user *user, const uint8_t *name, int64_t length,
    uint8_t salt[ASI_AUTH_SALT_MAX], int64_t *salt_length, int64_t *iterations)
{
    if (NULL != user)
    {
        memcpy(salt, user->salt, (size_t)user->salt_length);
        *salt_length = user->salt_length;
        *iterations = user->iterations;
        return;
    }
    uint8_t made[ASI_SHA256_LENGTH];
    asi_hmac_sha256(file->secret, sizeof(file->secret), name, length, made);
    memcpy(salt, made, UNKNOWN_SALT_LENGTH);
    *salt_length = UNKNOWN_SALT_LENGTH;
    /* Users may have different counts. Take the count of an existing user: any other count would reveal an unknown user. */
    *iterations = file->users.items[made[UNKNOWN_SALT_LENGTH] % file->users.count].iterations;
}

/* -- logins ------------------------------------------------------------------------------------------------------------------ */

static login *find_login(const credentials_file *file, int64_t session_id)
{
    login *at = file->logins;
    while (NULL != at && at->session_id != session_id)
    {
        at = at->next;
    }
    return at;
}

static login *add_login(credentials_file *file, int64_t session_id, const asi_auth_user *user)
{
    login *made = calloc(1, sizeof(*made));
    if (NULL == made)
    {
        return NULL;
    }
    made->session_id = session_id;
    made->user = user;
    login **last = &file->logins;
    while (NULL != *last)
    {
        last = &(*last)->next;
    }
    *last = made;
    return made;
}

static void remove_login(credentials_file *file, int64_t session_id)
{
    for (login **at = &file->logins; NULL != *at; at = &(*at)->next)
    {
        if ((*at)->session_id == session_id)
        {
            login *over = *at;
            *at = over->next;
            explicit_bzero(over, sizeof(*over));
            free(over);
            return;
        }
    }
}

static as_auth_decision decide(credentials_file *file, login *of, bool is_right, as_auth_bytes *out)
{
    as_auth_decision decision = AS_AUTH_REJECT;
    if (is_right)
    {
        out->length = (int64_t)strlen(of->user->name);
        memcpy(out->bytes, of->user->name, (size_t)out->length);
        decision = AS_AUTH_ACCEPT;
    }
    remove_login(file, of->session_id);
    return decision;
}

static as_auth_decision challenge(const credentials_file *file, login *of, const uint8_t *name, int64_t length, as_auth_bytes *out)
{
    uint8_t salt[ASI_AUTH_SALT_MAX];
    uint8_t nonce[NONCE_LENGTH];
    char salt_text[2 * ASI_AUTH_SALT_MAX + 1];
    char nonce_text[2 * NONCE_LENGTH + 1];
    int64_t salt_length;
    int64_t iterations;
    salt_of(file, of->user, name, length, salt, &salt_length, &iterations);
    if ((ssize_t)sizeof(nonce) != getrandom(nonce, sizeof(nonce), 0))
    {
        return AS_AUTH_REJECT;
    }
    asi_auth_format_hex(salt_text, salt, salt_length);
    asi_auth_format_hex(nonce_text, nonce, sizeof(nonce));
    snprintf(of->challenge, sizeof(of->challenge), "scram-sha-256 %" PRId64 " %s %s", iterations, salt_text, nonce_text);
    out->length = (int64_t)strlen(of->challenge);
    memcpy(out->bytes, of->challenge, (size_t)out->length);
    return AS_AUTH_CHALLENGE;
}

static as_auth_decision on_connect(
    void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out)
{
    credentials_file *file = state;
    if (length <= 0 || length > CREDENTIALS_MAX)
    {
        return AS_AUTH_REJECT;
    }
    const uint8_t *colon = memchr(credentials, ':', (size_t)length);
    const int64_t name_length = NULL == colon ? length : colon - credentials;
    const asi_auth_user *user = asi_auth_users_find(&file->users, (const char *)credentials, name_length);
    login *made = add_login(file, session_id, user);
    if (NULL == made)
    {
        return AS_AUTH_REJECT;
    }
    if (NULL == colon)
    {
        return challenge(file, made, credentials, name_length, out);
    }
    uint8_t salt[ASI_AUTH_SALT_MAX];
    int64_t salt_length;
    int64_t iterations;
    salt_of(file, user, credentials, name_length, salt, &salt_length, &iterations);
    asi_pbkdf2_start(&made->derivation, colon + 1, length - name_length - 1, salt, salt_length, iterations);
    made->is_deriving = true;
    return AS_AUTH_WAIT;
}

static as_auth_decision on_challenge_response(
    void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out)
{
    credentials_file *file = state;
    login *of = find_login(file, session_id);
    return NULL == of ? AS_AUTH_REJECT : decide(file, of, has_proof(of, credentials, length), out);
}

static as_auth_decision on_wait(void *state, int64_t session_id, as_auth_bytes *out)
{
    credentials_file *file = state;
    login *of = find_login(file, session_id);
    if (NULL == of || !of->is_deriving)
    {
        return AS_AUTH_REJECT;
    }
    return asi_pbkdf2_step(&of->derivation, STEP_ITERATIONS) ? decide(file, of, has_password(of), out) : AS_AUTH_WAIT;
}

static bool is_authorised(void *state, const uint8_t *principal, int64_t length, int32_t action_id)
{
    const credentials_file *file = state;
    const asi_auth_user *user = asi_auth_users_find(&file->users, (const char *)principal, length);
    if (NULL == user)
    {
        return false;
    }
    if (AS_AUTH_ACTION_STOP_ANY_REPLAY == action_id)
    {
        return user->can_stop_any_replay;
    }
    return action_id > 0 && action_id < ASI_AUTH_ACTIONS && user->actions[action_id];
}

static void on_closed(void *state, int64_t session_id) { remove_login(state, session_id); }

static void close_file(void *state)
{
    credentials_file *file = state;
    while (NULL != file->logins)
    {
        remove_login(file, file->logins->session_id);
    }
    asi_auth_users_close(&file->users);
    explicit_bzero(file, sizeof(*file));
    free(file);
}

static const as_archive_auth CREDENTIALS_FILE = {
    .version = AS_ARCHIVE_AUTH_VERSION,
    .close = close_file,
    .on_connect = on_connect,
    .on_challenge_response = on_challenge_response,
    .on_wait = on_wait,
    .is_authorised = is_authorised,
    .on_closed = on_closed,
};

as_result asi_auth_open_file(asi_auth *auth, const char *path)
{
    credentials_file *file = calloc(1, sizeof(*file));
    if (NULL == file)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the credentials file");
    }
    as_result result = asi_auth_users_load_untrusted(&file->users, path);
    if (AS_OK == result && (ssize_t)sizeof(file->secret) != getrandom(file->secret, sizeof(file->secret), 0))
    {
        result = asi_fail_errno(AS_E_INTERNAL, errno, "no random bytes from the system");
    }
    if (AS_OK != result)
    {
        close_file(file);
        return result;
    }
    auth->calls = &CREDENTIALS_FILE;
    auth->state = file;
    auth->is_open = true;
    auth->is_working = true;
    return AS_OK;
}
