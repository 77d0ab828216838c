/* See sha256.h. */
#include "base/sha256.h"

#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static uint32_t rotate(uint32_t value, int bits)
{
    return value >> bits | value << (32 - bits);
}

static uint32_t get_big(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void put_big(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
    {
        bytes[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static void compress(uint32_t state[8], const uint8_t block[ASI_SHA256_BLOCK])
{
    uint32_t words[64];
    for (int i = 0; i < 16; i++)
    {
        words[i] = get_big(block + 4 * i);
    }
    for (int i = 16; i < 64; i++)
    {
        const uint32_t near = words[i - 2];
        const uint32_t far = words[i - 15];
        words[i] = words[i - 16] + (rotate(far, 7) ^ rotate(far, 18) ^ far >> 3) + words[i - 7] +
            (rotate(near, 17) ^ rotate(near, 19) ^ near >> 10);
    }
    uint32_t a = state[0];
    uint32_t b = state[1];
    uint32_t c = state[2];
    uint32_t d = state[3];
    uint32_t e = state[4];
    uint32_t f = state[5];
    uint32_t g = state[6];
    uint32_t h = state[7];
    for (int i = 0; i < 64; i++)
    {
        const uint32_t first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + words[i];
        const uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    const uint32_t after[8] = { a, b, c, d, e, f, g, h };
    for (int i = 0; i < 8; i++)
    {
        state[i] += after[i];
    }
}

void asi_sha256_init(asi_sha256 *hash)
{
    static const uint32_t INITIAL[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
        0x5be0cd19 };
    memset(hash, 0, sizeof(*hash));
    memcpy(hash->state, INITIAL, sizeof(INITIAL));
}

void asi_sha256_update(asi_sha256 *hash, const void *bytes, int64_t length)
{
    const uint8_t *at = bytes;
    while (length > 0)
    {
        const int64_t used = (int64_t)(hash->length % ASI_SHA256_BLOCK);
        const int64_t taken = length < ASI_SHA256_BLOCK - used ? length : ASI_SHA256_BLOCK - used;
        memcpy(hash->block + used, at, (size_t)taken);
        hash->length += (uint64_t)taken;
        at += taken;
        length -= taken;
        if (ASI_SHA256_BLOCK == used + taken)
        {
            compress(hash->state, hash->block);
        }
    }
}

void asi_sha256_final(asi_sha256 *hash, uint8_t digest[ASI_SHA256_LENGTH])
{
    const uint64_t bits = hash->length * 8;
    static const uint8_t PADDING[ASI_SHA256_BLOCK] = { 0x80 };
    const int64_t used = (int64_t)(hash->length % ASI_SHA256_BLOCK);
    asi_sha256_update(hash, PADDING, used < 56 ? 56 - used : 120 - used);
    uint8_t length[8];
    put_big(length, (uint32_t)(bits >> 32));
    put_big(length + 4, (uint32_t)bits);
    asi_sha256_update(hash, length, sizeof(length));
    for (int i = 0; i < 8; i++)
    {
        put_big(digest + 4 * i, hash->state[i]);
    }
}

void asi_sha256_of(const void *bytes, int64_t length, uint8_t digest[ASI_SHA256_LENGTH])
{
    asi_sha256 hash;
    asi_sha256_init(&hash);
    asi_sha256_update(&hash, bytes, length);
    asi_sha256_final(&hash, digest);
}

static void init_hmac(asi_sha256 *inner, asi_sha256 *outer, const void *key, int64_t key_length)
{
    uint8_t block[ASI_SHA256_BLOCK] = { 0 };
    if (key_length > ASI_SHA256_BLOCK)
    {
        asi_sha256_of(key, key_length, block);
    }
    else if (key_length > 0)
    {
        memcpy(block, key, (size_t)key_length);
    }
    uint8_t padded[ASI_SHA256_BLOCK];
    for (int i = 0; i < ASI_SHA256_BLOCK; i++)
    {
        padded[i] = block[i] ^ 0x36;
    }
    asi_sha256_init(inner);
    asi_sha256_update(inner, padded, sizeof(padded));
    for (int i = 0; i < ASI_SHA256_BLOCK; i++)
    {
        padded[i] = block[i] ^ 0x5c;
    }
    asi_sha256_init(outer);
    asi_sha256_update(outer, padded, sizeof(padded));
    explicit_bzero(block, sizeof(block));
    explicit_bzero(padded, sizeof(padded));
}

static void end_hmac(asi_sha256 *inner, const asi_sha256 *outer, uint8_t mac[ASI_SHA256_LENGTH])
{
    uint8_t digest[ASI_SHA256_LENGTH];
    asi_sha256_final(inner, digest);
    asi_sha256 hash = *outer;
    asi_sha256_update(&hash, digest, sizeof(digest));
    asi_sha256_final(&hash, mac);
}

void asi_hmac_sha256(
    const void *key, int64_t key_length, const void *bytes, int64_t length, uint8_t mac[ASI_SHA256_LENGTH])
{
    asi_sha256 inner;
    asi_sha256 outer;
    init_hmac(&inner, &outer, key, key_length);
    asi_sha256_update(&inner, bytes, length);
    end_hmac(&inner, &outer, mac);
}

void asi_pbkdf2_start(asi_pbkdf2 *derivation, const void *password, int64_t password_length, const void *salt,
    int64_t salt_length, int64_t iterations)
{
    static const uint8_t FIRST_BLOCK[4] = { 0, 0, 0, 1 };
    init_hmac(&derivation->inner, &derivation->outer, password, password_length);
    asi_sha256 hash = derivation->inner;
    asi_sha256_update(&hash, salt, salt_length);
    asi_sha256_update(&hash, FIRST_BLOCK, sizeof(FIRST_BLOCK));
    end_hmac(&hash, &derivation->outer, derivation->last);
    memcpy(derivation->key, derivation->last, sizeof(derivation->key));
    derivation->left = iterations - 1;
}

bool asi_pbkdf2_step(asi_pbkdf2 *derivation, int64_t iterations)
{
    for (; iterations > 0 && derivation->left > 0; iterations--, derivation->left--)
    {
        asi_sha256 hash = derivation->inner;
        asi_sha256_update(&hash, derivation->last, sizeof(derivation->last));
        end_hmac(&hash, &derivation->outer, derivation->last);
        for (int i = 0; i < ASI_SHA256_LENGTH; i++)
        {
            derivation->key[i] ^= derivation->last[i];
        }
    }
    return 0 == derivation->left;
}

bool asi_is_equal_secret(const void *a, const void *b, int64_t length)
{
    const volatile uint8_t *first = a;
    const volatile uint8_t *second = b;
    uint8_t difference = 0;
    for (int64_t i = 0; i < length; i++)
    {
        difference |= first[i] ^ second[i];
    }
    return 0 == difference;
}
