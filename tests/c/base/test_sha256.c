/* Goal: hashes, MACs and derived keys are those of the standards. Method: published vectors (FIPS 180-4 examples, RFC 4231,
 * RFC 7914 §11), whole and in pieces. */
#include "base/sha256.h"
#include "check.h"

static void check_hex(const uint8_t digest[ASI_SHA256_LENGTH], const char *expected)
{
    char text[2 * ASI_SHA256_LENGTH + 1];
    for (int i = 0; i < ASI_SHA256_LENGTH; i++)
    {
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    CHECK_TEXT(text, expected);
}

static void digests(void)
{
    uint8_t digest[ASI_SHA256_LENGTH];
    asi_sha256_of("", 0, digest);
    check_hex(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    asi_sha256_of("abc", 3, digest);
    check_hex(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    static const char TWO_BLOCKS[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    asi_sha256_of(TWO_BLOCKS, sizeof(TWO_BLOCKS) - 1, digest);
    check_hex(digest, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    asi_sha256 hash;
    asi_sha256_init(&hash);
    for (int i = 0; i < 1000000; i += 1000)
    {
        char block[1000];
        memset(block, 'a', sizeof(block));
        asi_sha256_update(&hash, block, 1000);
    }
    asi_sha256_final(&hash, digest);
    check_hex(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void lengths_around_a_block_are_the_same_in_pieces(void)
{
    uint8_t bytes[200];
    for (int i = 0; i < 200; i++)
    {
        bytes[i] = (uint8_t)(i * 7);
    }
    for (int length = 50; length <= 200; length++)
    {
        uint8_t whole[ASI_SHA256_LENGTH];
        uint8_t pieces[ASI_SHA256_LENGTH];
        asi_sha256_of(bytes, length, whole);
        asi_sha256 hash;
        asi_sha256_init(&hash);
        for (int at = 0; at < length; at += 13)
        {
            asi_sha256_update(&hash, bytes + at, length - at < 13 ? length - at : 13);
        }
        asi_sha256_final(&hash, pieces);
        CHECK(0 == memcmp(whole, pieces, sizeof(whole)));
    }
}

static void macs(void)
{
    uint8_t mac[ASI_SHA256_LENGTH];
    uint8_t key[131];
    memset(key, 0x0b, 20);
    asi_hmac_sha256(key, 20, "Hi There", 8, mac);
    check_hex(mac, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    asi_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, mac);
    check_hex(mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    asi_hmac_sha256(key, sizeof(key), "Test Using Larger Than Block-Size Key - Hash Key First", 54, mac);
    check_hex(mac, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void derived_keys(void)
{
    asi_pbkdf2 derivation;
    asi_pbkdf2_start(&derivation, "passwd", 6, "salt", 4, 1);
    CHECK(asi_pbkdf2_step(&derivation, 0));
    check_hex(derivation.key, "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc");
    asi_pbkdf2_start(&derivation, "Password", 8, "NaCl", 4, 80000);
    int64_t steps = 0;
    while (!asi_pbkdf2_step(&derivation, 999))
    {
        steps++;
    }
    CHECK_I64(steps, 80);
    check_hex(derivation.key, "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56");
}

static void secrets_are_compared_whole(void)
{
    CHECK(asi_is_equal_secret("abc", "abc", 3));
    CHECK(!asi_is_equal_secret("abc", "abd", 3));
    CHECK(!asi_is_equal_secret("xbc", "abc", 3));
    CHECK(asi_is_equal_secret("a", "b", 0));
}

int main(void)
{
    RUN(digests);
    RUN(lengths_around_a_block_are_the_same_in_pieces);
    RUN(macs);
    RUN(derived_keys);
    RUN(secrets_are_compared_whole);
    return 0;
}
