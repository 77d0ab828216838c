/* Reads the credentials file: users, their stored keys and their permitted actions. One user a line, fields separated by spaces
 * or tabs:
 *
 *      <user> scram-sha-256$<iterations>$<salt>$<stored key> <action>[,<action>]...
 *
 * '#' begins a comment line. A user is 1 to 64 of A-Z a-z 0-9 . _ @ -; salt (8 to 64 bytes) and stored key (32) are hexadecimal.
 * With P = PBKDF2-HMAC-SHA-256(password, salt, iterations) and C = HMAC-SHA-256(P, "Client Key") the stored key is SHA-256(C), as
 * in RFC 5802. A thief of the file can neither read passwords nor log in with the stored keys.
 *
 * Actions: `all`; the groups `query`, `record`, `replay`, `maintain`, `replicate`; single requests by their name in the protocol
 * (`StartRecordingRequest2`) or its number; `stop-any-replay`. Archive id and keep-alive are allowed to every user, because
 * connecting needs them. Thread rule: read once, constant afterwards. */
#ifndef ASI_SERVER_AUTH_USERS_H
#define ASI_SERVER_AUTH_USERS_H

#include "base/result.h"
#include "base/sha256.h"

#define ASI_AUTH_USER_MAX 64
#define ASI_AUTH_SALT_MAX 64
#define ASI_AUTH_ITERATIONS_MIN 1000
#define ASI_AUTH_ITERATIONS_MAX 10000000
#define ASI_AUTH_ACTIONS 128            /* template ids are less */

typedef struct asi_auth_user
{
    char name[ASI_AUTH_USER_MAX + 1];
    uint8_t salt[ASI_AUTH_SALT_MAX];
    int64_t salt_length;
    int64_t iterations;
    uint8_t stored_key[ASI_SHA256_LENGTH];
    bool actions[ASI_AUTH_ACTIONS];
    bool can_stop_any_replay;
} asi_auth_user;

typedef struct asi_auth_users
{
    asi_auth_user *items;
    int64_t count;
} asi_auth_users;

/* AS_E_USAGE: others can read the file, or a line is malformed (the text has its number and never its secret). AS_E_STORAGE: a
 * read failed. */
as_result asi_auth_users_load_untrusted(asi_auth_users *users, const char *path) AS_MUST_USE;
void asi_auth_users_close(asi_auth_users *users);
const asi_auth_user *asi_auth_users_find(const asi_auth_users *users, const char *name, int64_t length);
/* Decodes hexadecimal digits. AS_NULL_VALUE: other characters, an odd number of digits, or more than `capacity` bytes. */
int64_t asi_auth_parse_hex(const char *text, int64_t length, uint8_t *to, int64_t capacity);
void asi_auth_format_hex(char *to, const uint8_t *bytes, int64_t length);

#endif
