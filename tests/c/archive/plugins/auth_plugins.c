/* Plug-ins for test_server_auth.c: one that challenges twice and takes its time, and some that are wrong. */
#include <stdio.h>
#include <string.h>

#include "aeron_spark/as_archive_auth.h"

static int answers = 0;
static int waits = 0;

static as_auth_decision challenge(as_auth_bytes *out, const char *text)
{
    out->length = (int64_t)strlen(text);
    memcpy(out->bytes, text, strlen(text));
    return AS_AUTH_CHALLENGE;
}

static as_auth_decision on_connect(
    void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out)
{
    (void)state;
    (void)session_id;
    (void)credentials;
    (void)length;
    answers = 0;
    return challenge(out, "first");
}

static as_auth_decision on_challenge_response(
    void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out)
{
    (void)state;
    (void)session_id;
    if (0 == answers++)
    {
        return 3 == length && 0 == memcmp(credentials, "one", 3) ? challenge(out, "second") : AS_AUTH_REJECT;
    }
    waits = 5;
    return 3 == length && 0 == memcmp(credentials, "two", 3) ? AS_AUTH_WAIT : AS_AUTH_REJECT;
}

static as_auth_decision on_wait(void *state, int64_t session_id, as_auth_bytes *out)
{
    (void)state;
    (void)session_id;
    (void)out;
    return 0 == --waits ? AS_AUTH_ACCEPT : AS_AUTH_WAIT;
}

static as_auth_decision answer_nonsense(
    void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out)
{
    (void)state;
    (void)session_id;
    (void)credentials;
    (void)length;
    out->length = AS_ARCHIVE_AUTH_BYTES_MAX + 1;
    return AS_AUTH_ACCEPT;
}

static int refuse(void **state, const char *argument, char *error, int64_t error_capacity)
{
    (void)state;
    snprintf(error, (size_t)error_capacity, "the directory of '%s' is not reachable", argument);
    return 7;
}

const as_archive_auth challenges_twice = { .version = AS_ARCHIVE_AUTH_VERSION, .on_connect = on_connect,
    .on_challenge_response = on_challenge_response, .on_wait = on_wait };
const as_archive_auth without_answers = { .version = AS_ARCHIVE_AUTH_VERSION, .on_connect = on_connect };
const as_archive_auth talks_nonsense = { .version = AS_ARCHIVE_AUTH_VERSION, .on_connect = answer_nonsense };
const as_archive_auth of_the_future = { .version = AS_ARCHIVE_AUTH_VERSION + 1, .on_connect = on_connect };
const as_archive_auth without_connect = { .version = AS_ARCHIVE_AUTH_VERSION };
const as_archive_auth refuses_to_open = { .version = AS_ARCHIVE_AUTH_VERSION, .open = refuse, .on_connect = on_connect };
