/* An authenticator of one's own for the archive: whoever knows the token of a file may list and replay, and nothing else.
 *
 *      cc -shared -fPIC -I include -o /opt/auth/token.so archive_auth_plugin.c
 *      aeron-spark-archive -Daeron.spark.archive.auth.library=/opt/auth/token.so
 *          -Daeron.spark.archive.auth.argument=/etc/archive-token ...
 *
 * Clients send the token as their credentials. as_archive_auth.h tells what each call must do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_archive_auth.h"

#define TOKEN_MAX 128

typedef struct token
{
    int64_t length;
    uint8_t bytes[TOKEN_MAX];
} token;

static int open_token(void **state, const char *argument, char *error, int64_t error_capacity)
{
    token *read = calloc(1, sizeof(*read));
    FILE *file = NULL == read ? NULL : fopen(argument, "re");
    if (NULL == file)
    {
        snprintf(error, (size_t)error_capacity, "can't read the token's file '%s'", argument);
        free(read);
        return 1;
    }
    read->length = (int64_t)fread(read->bytes, 1, sizeof(read->bytes), file);
    fclose(file);
    while (read->length > 0 && '\n' == read->bytes[read->length - 1])
    {
        read->length--;
    }
    if (0 == read->length)
    {
        snprintf(error, (size_t)error_capacity, "no token stands in '%s'", argument);
        free(read);
        return 1;
    }
    *state = read;
    return 0;
}

static void close_token(void *state) { free(state); }

/* In a time that does not tell where the two differ. */
static as_auth_decision on_connect(
    void *state, int64_t session_id, const uint8_t *credentials, int64_t length, as_auth_bytes *out)
{
    static const char PRINCIPAL[] = "reader";
    const token *expected = state;
    (void)session_id;
    uint8_t difference = length == expected->length ? 0 : 1;
    for (int64_t i = 0; i < length && i < expected->length; i++)
    {
        difference |= credentials[i] ^ expected->bytes[i];
    }
    if (0 != difference)
    {
        return AS_AUTH_REJECT;
    }
    out->length = sizeof(PRINCIPAL) - 1;
    memcpy(out->bytes, PRINCIPAL, sizeof(PRINCIPAL) - 1);
    return AS_AUTH_ACCEPT;
}

static bool is_authorised(void *state, const uint8_t *principal, int64_t length, int32_t action_id)
{
    /* Replay, stop and list requests; positions; keep alive, archive id, replay token. Spec: 07 §3. */
    static const int32_t ALLOWED[] = { 6, 7, 8, 9, 10, 12, 15, 16, 17, 18, 19, 52, 61, 67, 68, 105 };
    (void)state;
    (void)principal;
    (void)length;
    for (size_t i = 0; i < sizeof(ALLOWED) / sizeof(ALLOWED[0]); i++)
    {
        if (ALLOWED[i] == action_id)
        {
            return true;
        }
    }
    return false;
}

const as_archive_auth as_archive_auth_plugin = {
    .version = AS_ARCHIVE_AUTH_VERSION,
    .open = open_token,
    .close = close_token,
    .on_connect = on_connect,
    .is_authorised = is_authorised,
};
