/* A credentials file, and credentials shown to the users it names: read or refused with a text, accepted never but by chance. The
 * file ends at the first zero byte; what follows are the credentials, and after another one the answer to a challenge. */
#include <sys/stat.h>

#include "fuzz.h"
#include "server/auth.h"
#include "server/auth_file.h"

static char path[SCRATCH_CAPACITY];

static int64_t take_text(fuzz_input *input, uint8_t **text)
{
    int64_t length = 0;
    while (length < input->left && 0 != input->at[length])
    {
        length++;
    }
    int64_t taken;
    *text = fuzz_take(input, length, &taken);
    (void)fuzz_u8(input);
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = { .at = data, .left = (int64_t)size };
    if ('\0' == path[0])
    {
        snprintf(path, sizeof(path), "/dev/shm/aeron-spark-fuzz-%d", (int)getpid());
    }
    uint8_t *text;
    uint8_t *credentials;
    uint8_t *answer;
    const int64_t length = take_text(&input, &text);
    const int64_t credentials_length = take_text(&input, &credentials);
    const int64_t answer_length = take_text(&input, &answer);
    FILE *file = fopen(path, "wb");
    CHECK(NULL != file && 0 == fchmod(fileno(file), 0600) && (size_t)length == fwrite(text, 1, (size_t)length, file) &&
        0 == fclose(file));
    asi_auth auth = { .calls = NULL };
    if (AS_OK == asi_auth_open_file(&auth, path))
    {
        as_auth_bytes out;
        as_auth_decision decision = asi_auth_on_connect(&auth, 1, credentials, credentials_length, &out);
        for (int i = 0; i < 8 && AS_AUTH_WAIT == decision; i++)
        {
            decision = asi_auth_on_wait(&auth, 1, &out);
        }
        if (AS_AUTH_CHALLENGE == decision)
        {
            decision = asi_auth_on_challenge_response(&auth, 1, answer, answer_length, &out);
            CHECK(AS_AUTH_REJECT == decision);
        }
        for (int32_t action = -1; action < 130; action++)
        {
            (void)asi_auth_allows(&auth, &out, action);
        }
        asi_auth_on_closed(&auth, 1);
        asi_auth_close(&auth);
    }
    else
    {
        CHECK('\0' != as_error_text()[0]);
    }
    CHECK(0 == unlink(path));
    free(text);
    free(credentials);
    free(answer);
    return 0;
}
