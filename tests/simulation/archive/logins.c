/* See logins.h. */
#include "logins.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/auth_users.h"
#include "sim_trace.h"

static const uint8_t SALT[] = "saltsalt";
#define SALT_LENGTH ((int64_t)sizeof(SALT) - 1)

/* In the place of asi_pbkdf2_step: takes as many duty cycles, and no time, which was more than half of a run's. Keys are those of one
 * iteration, for making and checking passwords alike; different passwords still give different keys. */
bool __wrap_asi_pbkdf2_step(asi_pbkdf2 *derivation, int64_t iterations);
bool __wrap_asi_pbkdf2_step(asi_pbkdf2 *derivation, int64_t iterations)
{
    derivation->left -= iterations < derivation->left ? iterations : derivation->left;
    return 0 == derivation->left;
}

static void keys_of(const char *password, uint8_t client_key[ASI_SHA256_LENGTH], uint8_t stored_key[ASI_SHA256_LENGTH])
{
    asi_pbkdf2 derivation;
    asi_pbkdf2_start(&derivation, password, (int64_t)strlen(password), SALT, SALT_LENGTH, ASI_AUTH_ITERATIONS_MIN);
    while (!asi_pbkdf2_step(&derivation, ASI_AUTH_ITERATIONS_MIN))
    {
    }
    asi_hmac_sha256(derivation.key, sizeof(derivation.key), "Client Key", 10, client_key);
    asi_sha256_of(client_key, ASI_SHA256_LENGTH, stored_key);
}

static void write_line(FILE *file, const char *user, const char *password, const char *actions)
{
    uint8_t client_key[ASI_SHA256_LENGTH];
    uint8_t stored_key[ASI_SHA256_LENGTH];
    char salt[2 * sizeof(SALT)];
    char key[LOGIN_ANSWER_CAPACITY];
    keys_of(password, client_key, stored_key);
    asi_auth_format_hex(salt, SALT, SALT_LENGTH);
    asi_auth_format_hex(key, stored_key, sizeof(stored_key));
    fprintf(file, "%s scram-sha-256$%d$%s$%s %s\n", user, ASI_AUTH_ITERATIONS_MIN, salt, key, actions);
}

void logins_write(const char *path)
{
    FILE *file = fopen(path, "w");
    if (NULL == file || 0 != chmod(path, 0600))
    {
        sim_fail("setup", "cannot write %s", path);
    }
    write_line(file, HONEST_USER, HONEST_PASSWORD, "all");
    write_line(file, "guest", "guest", "query");
    if (0 != fclose(file))
    {
        sim_fail("setup", "cannot write %s", path);
    }
}

void logins_answer(const char *challenge, char answer[LOGIN_ANSWER_CAPACITY])
{
    uint8_t key[ASI_SHA256_LENGTH];
    uint8_t stored[ASI_SHA256_LENGTH];
    uint8_t signature[ASI_SHA256_LENGTH];
    keys_of(HONEST_PASSWORD, key, stored);
    asi_hmac_sha256(stored, sizeof(stored), challenge, (int64_t)strlen(challenge), signature);
    for (int i = 0; i < ASI_SHA256_LENGTH; i++)
    {
        key[i] ^= signature[i];
    }
    asi_auth_format_hex(answer, key, sizeof(key));
}
