/* Goal: SHA-256, HMAC and PBKDF2 give the standards' bytes. Method: every line of a file of vectors, those of NIST's CAVP and of
 * Wycheproof (tests/golden/hashes, whose README tells the format). Each message is hashed whole, and in pieces. Another file is
 * named as the argument: tests/python/test_hashes.py makes some with Python's hashlib by seed. */
#include "base/sha256.h"
#include "check.h"

#define FIELDS_MAX 5

static const char *path = AS_GOLDEN_DIR "/hashes/vectors.txt";

typedef struct bytes
{
    uint8_t *at;
    int64_t length;
} bytes;

/* Owned by the caller. The buffer has exactly the length, so that a sanitizer sees a read behind it. */
static bytes bytes_of(const char *hex)
{
    const int64_t length = 0 == strcmp(hex, "-") ? 0 : (int64_t)strlen(hex) / 2;
    bytes made = { .at = malloc(length > 0 ? (size_t)length : 1), .length = length };
    CHECK(NULL != made.at);
    for (int64_t i = 0; i < length; i++)
    {
        unsigned int value = 0;
        CHECK(1 == sscanf(hex + 2 * i, "%2x", &value));
        made.at[i] = (uint8_t)value;
    }
    return made;
}

static void digest_in_pieces(bytes message, int64_t piece, uint8_t digest[ASI_SHA256_LENGTH])
{
    asi_sha256 hash;
    asi_sha256_init(&hash);
    for (int64_t at = 0; at < message.length; at += piece)
    {
        asi_sha256_update(&hash, message.at + at, message.length - at < piece ? message.length - at : piece);
    }
    asi_sha256_final(&hash, digest);
}

static bool is_digest(bytes message, bytes expected)
{
    static const int64_t PIECES[] = { 1, 55, 64, 65 };
    uint8_t digest[ASI_SHA256_LENGTH];
    asi_sha256_of(message.at, message.length, digest);
    bool is = ASI_SHA256_LENGTH == expected.length && 0 == memcmp(digest, expected.at, sizeof(digest));
    for (size_t i = 0; i < sizeof(PIECES) / sizeof(PIECES[0]); i++)
    {
        digest_in_pieces(message, PIECES[i], digest);
        is = is && 0 == memcmp(digest, expected.at, sizeof(digest));
    }
    return is;
}

static bool is_monte(bytes seed, bytes expected)
{
    uint8_t last[3][ASI_SHA256_LENGTH];
    for (int i = 0; i < 3; i++)
    {
        memcpy(last[i], seed.at, ASI_SHA256_LENGTH);
    }
    for (int i = 0; i < 1000; i++)
    {
        uint8_t next[ASI_SHA256_LENGTH];
        asi_sha256_of(last, sizeof(last), next);
        memmove(last[0], last[1], 2 * sizeof(last[0]));
        memcpy(last[2], next, sizeof(next));
    }
    return ASI_SHA256_LENGTH == expected.length && 0 == memcmp(last[2], expected.at, sizeof(last[2]));
}

static bool is_mac(bytes key, bytes message, bytes tag)
{
    uint8_t mac[ASI_SHA256_LENGTH];
    asi_hmac_sha256(key.at, key.length, message.at, message.length, mac);
    CHECK(tag.length > 0 && tag.length <= ASI_SHA256_LENGTH);
    return asi_is_equal_secret(mac, tag.at, tag.length);
}

static bool is_derived(int64_t iterations, bytes password, bytes salt, bytes key)
{
    asi_pbkdf2 derivation;
    asi_pbkdf2_start(&derivation, password.at, password.length, salt.at, salt.length, iterations);
    while (!asi_pbkdf2_step(&derivation, 1000))
    {
    }
    CHECK(key.length > 0 && key.length <= ASI_SHA256_LENGTH);
    return 0 == memcmp(derivation.key, key.at, (size_t)key.length);
}

static bool holds(const char *kind, const char *fields[FIELDS_MAX])
{
    bytes values[FIELDS_MAX] = { 0 };
    const bool is_derivation = 0 == strcmp(kind, "pbkdf2");
    for (int i = is_derivation ? 1 : 0; i < FIELDS_MAX && NULL != fields[i]; i++)
    {
        values[i] = bytes_of(fields[i]);
    }
    const bool is = 0 == strcmp(kind, "sha256") ? is_digest(values[0], values[1]) :
        0 == strcmp(kind, "monte") ? is_monte(values[0], values[1]) :
        0 == strcmp(kind, "hmac") ? is_mac(values[0], values[1], values[2]) :
        0 == strcmp(kind, "not-hmac") ? !is_mac(values[0], values[1], values[2]) :
        is_derivation && is_derived(strtoll(fields[0], NULL, 10), values[1], values[2], values[3]);
    for (int i = 0; i < FIELDS_MAX; i++)
    {
        free(values[i].at);
    }
    return is;
}

static void every_vector_holds(void)
{
    FILE *file = fopen(path, "r");
    CHECK(NULL != file);
    char *line = NULL;
    size_t capacity = 0;
    int count = 0;
    for (int number = 1; getline(&line, &capacity, file) > 0; number++)
    {
        if ('#' == line[0])
        {
            continue;
        }
        const char *fields[FIELDS_MAX] = { NULL };
        const char *kind = strtok(line, " \n");
        for (int i = 0; i < FIELDS_MAX; i++)
        {
            fields[i] = strtok(NULL, " \n");
        }
        if (NULL == kind || !holds(kind, fields))
        {
            fprintf(stderr, "%s:%d: the vector does not hold\n", path, number);
            exit(1);
        }
        count++;
    }
    free(line);
    fclose(file);
    CHECK(count > 0);
    printf("%d vectors\n", count);
}

int main(int argc, char **argv)
{
    path = argc > 1 ? argv[1] : path;
    RUN(every_vector_holds);
    return 0;
}
