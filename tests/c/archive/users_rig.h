/* An archive with a credentials file that the test writes, and sessions that log in; for tests of the archive's logins. */
#ifndef AS_TEST_USERS_RIG_H
#define AS_TEST_USERS_RIG_H

#include <sys/stat.h>

#include "server/auth_users.h"
#include "server_rig.h"

#define ITERATIONS 1000

static test_rig rig;

/* -- a credentials file --------------------------------------------------------------------------------------------------------- */

static const uint8_t SALT[] = "saltsalt";

static inline void client_key_of(const char *password, const uint8_t *salt, int64_t salt_length, uint8_t key[ASI_SHA256_LENGTH])
{
    asi_pbkdf2 derivation;
    asi_pbkdf2_start(&derivation, password, (int64_t)strlen(password), salt, salt_length, ITERATIONS);
    while (!asi_pbkdf2_step(&derivation, 100))
    {
    }
    asi_hmac_sha256(derivation.key, sizeof(derivation.key), "Client Key", 10, key);
}

static inline void line_of(char *to, size_t capacity, const char *user, const char *password, const char *actions)
{
    uint8_t client_key[ASI_SHA256_LENGTH];
    uint8_t stored_key[ASI_SHA256_LENGTH];
    char salt[2 * sizeof(SALT)];
    char key[2 * ASI_SHA256_LENGTH + 1];
    client_key_of(password, SALT, sizeof(SALT) - 1, client_key);
    asi_sha256_of(client_key, sizeof(client_key), stored_key);
    asi_auth_format_hex(salt, SALT, sizeof(SALT) - 1);
    asi_auth_format_hex(key, stored_key, sizeof(stored_key));
    snprintf(to, capacity, "%s\tscram-sha-256$%d$%s$%s  %s\n", user, ITERATIONS, salt, key, actions);
}

static inline void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    CHECK(NULL != file && EOF != fputs(text, file) && 0 == fclose(file));
    CHECK(0 == chmod(path, mode));
}

static char path_of_file[AS_PATH_MAX];

/* alice may do everything, bob list and replay, carol one thing. */
static inline void open_with_users(void)
{
    char text[4096] = "# users of this test\n\n";
    static const char *const USERS[][3] = { { "alice", "open sesame", "all" }, { "bob", "b:o:b", "query,replay" },
        { "carol", "c", "StartRecordingRequest2,63,stop-any-replay" } };
    for (size_t i = 0; i < 3; i++)
    {
        const size_t used = strlen(text);
        line_of(text + used, sizeof(text) - used, USERS[i][0], USERS[i][1], USERS[i][2]);
    }
    rig_open(&rig);
    snprintf(path_of_file, sizeof(path_of_file), "%s/users", rig.scratch);
    write_file(path_of_file, text, 0600);
    rig_set(&rig, "aeron.spark.archive.credentials.file", path_of_file);
    rig_open_archive(&rig);
}

/* -- sessions --------------------------------------------------------------------------------------------------------------------- */

static inline void send_connect(raw_session *session, const void *credentials, int64_t length)
{
    as_subscription_constants constants;
    as_subscription_get_constants(session->responses, &constants);
    asi_codec_request request = request_of(ASI_CODEC_AUTH_CONNECT, AS_NULL_VALUE);
    request.stream_id = 20;
    request.client_version = ASI_CODEC_PROTOCOL_VERSION;
    request.channel = asi_codec_text(constants.channel);
    request.encoded_credentials = (asi_codec_var){ .data = credentials, .length = length };
    raw_send(session, &request);
}

static inline const asi_codec_event *connect_with(raw_session *session, const char *credentials)
{
    send_connect(session, credentials, (int64_t)strlen(credentials));
    return raw_await(session, ASI_CODEC_CONTROL_RESPONSE, session->last_correlation_id);
}

#endif
