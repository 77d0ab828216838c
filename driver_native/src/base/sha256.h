/* SHA-256, and HMAC and PBKDF2 over it, for the credentials of the archive's users; and a comparison in constant time. FIPS
 * 180-4, RFC 2104, RFC 8018.
 *
 * PBKDF2 runs in steps of a size that the caller chooses, because deriving a key takes as long as its iterations require, and
 * the calling thread has a duty cycle. Plain portable code: for a few hundred bytes and some logins per second, not for bulk
 * data. Thread rule: pure; an object has one owner. */
#ifndef ASI_BASE_SHA256_H
#define ASI_BASE_SHA256_H

#include <stdbool.h>
#include <stdint.h>

#define ASI_SHA256_LENGTH 32
#define ASI_SHA256_BLOCK 64

typedef struct asi_sha256
{
    uint32_t state[8];
    uint64_t length;    /* bytes so far */
    uint8_t block[ASI_SHA256_BLOCK];
} asi_sha256;

void asi_sha256_init(asi_sha256 *hash);
void asi_sha256_update(asi_sha256 *hash, const void *bytes, int64_t length);
void asi_sha256_final(asi_sha256 *hash, uint8_t digest[ASI_SHA256_LENGTH]);
void asi_sha256_of(const void *bytes, int64_t length, uint8_t digest[ASI_SHA256_LENGTH]);
void asi_hmac_sha256(
    const void *key, int64_t key_length, const void *bytes, int64_t length, uint8_t mac[ASI_SHA256_LENGTH]);

/* Derivation of one key of 32 bytes, in progress. */
typedef struct asi_pbkdf2
{
    asi_sha256 inner;                 /* the HMAC key's halves */
    asi_sha256 outer;
    uint8_t last[ASI_SHA256_LENGTH];
    uint8_t key[ASI_SHA256_LENGTH];   /* the result when `left` is 0 */
    int64_t left;                     /* iterations to go */
} asi_pbkdf2;

/* Keeps nothing of the password except the HMAC's key. */
void asi_pbkdf2_start(asi_pbkdf2 *derivation, const void *password, int64_t password_length, const void *salt,
    int64_t salt_length, int64_t iterations);
/* Runs at most `iterations` more; true when the key is complete. */
bool asi_pbkdf2_step(asi_pbkdf2 *derivation, int64_t iterations);

/* Takes a time that depends on `length` only. */
bool asi_is_equal_secret(const void *a, const void *b, int64_t length);

#endif
