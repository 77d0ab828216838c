/* Goal: both checksums equal their bit-by-bit definition at every length and alignment, so that the tables, the instruction and
 * the folding all agree. Method: random bytes, printed seed; and the check values of the two standards.
 * Spec: 06 §8. */
#include "store/checksum.h"

#include "support.h"

static uint32_t crc_by_bits(uint32_t polynomial, const uint8_t *bytes, int64_t length)
{
    uint32_t crc = ~0u;
    for (int64_t i = 0; i < length; i++)
    {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
        {
            crc = (crc >> 1) ^ (0 != (crc & 1) ? polynomial : 0);
        }
    }
    return ~crc;
}

static void known_values(void)
{
    const uint8_t *digits = (const uint8_t *)"123456789";
    CHECK_I64(asi_crc32(digits, 9), 0xCBF43926);
    CHECK_I64(asi_crc32c(digits, 9), 0xE3069283);
    CHECK_I64(asi_crc32(digits, 0), 0);
    CHECK_I64(asi_crc32c(digits, 0), 0);
}

static void every_length_and_alignment(void)
{
    asi_rand rand = test_rand();
    uint8_t bytes[1024 + 16];
    for (size_t i = 0; i < sizeof(bytes); i++)
    {
        bytes[i] = (uint8_t)asi_rand_u64(&rand);
    }
    for (int64_t length = 0; length <= 1024; length++)
    {
        const int64_t shift = length % 16;
        CHECK_I64(asi_crc32(bytes + shift, length), crc_by_bits(0xEDB88320u, bytes + shift, length));
        CHECK_I64(asi_crc32c(bytes + shift, length), crc_by_bits(0x82F63B78u, bytes + shift, length));
        CHECK_I64(asi_crc32c_by_table(bytes + shift, length), crc_by_bits(0x82F63B78u, bytes + shift, length));
    }
}

static void names(void)
{
    static const struct
    {
        const char *name;
        as_record_checksum checksum;
    } rows[] = { { "", AS_CHECKSUM_NONE }, { "CRC-32", AS_CHECKSUM_CRC32 }, { "org.agrona.checksum.Crc32", AS_CHECKSUM_CRC32 },
        { "io.aeron.archive.checksum.Crc32c", AS_CHECKSUM_CRC32C }, { "CRC-32C", AS_CHECKSUM_CRC32C } };
    as_record_checksum checksum = AS_CHECKSUM_AUTO;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        CHECK_I64(asi_checksum_from_name(rows[i].name, &checksum), AS_OK);
        CHECK_I64(checksum, rows[i].checksum);
    }
    CHECK_I64(asi_checksum_from_name("md5", &checksum), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "CRC-32C"));
    CHECK(NULL == asi_checksum_function(AS_CHECKSUM_NONE));
}

int main(void)
{
    RUN(known_values);
    RUN(every_length_and_alignment);
    RUN(names);
    return 0;
}
