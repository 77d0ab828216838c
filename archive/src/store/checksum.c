/* CRC-32 and CRC-32C; see checksum.h.
 *
 * Both are bit-reflected with initial and final inversion. x86-64 has an instruction for CRC-32C (SSE 4.2) and carry-less
 * multiplication for CRC-32; otherwise eight table look-ups process eight bytes a step. */
#include "store/checksum.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/bits.h"
#include "base/cpu.h"
#include "base/result.h"

#define POLYNOMIAL_CRC32 0xEDB88320u
#define POLYNOMIAL_CRC32C 0x82F63B78u

typedef struct crc_table
{
    uint32_t of[8][256]; /* of[k][b]: effect of byte b with k bytes after it */
} crc_table;

/* Constant after the pthread_once below. Computed, because nobody would review 4096 numbers in source text. */
static crc_table table_crc32;
static crc_table table_crc32c;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_table(crc_table *table, uint32_t polynomial)
{
    for (uint32_t byte = 0; byte < 256; byte++)
    {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
        {
            crc = (crc >> 1) ^ (0 != (crc & 1) ? polynomial : 0);
        }
        table->of[0][byte] = crc;
    }
    for (int behind = 1; behind < 8; behind++)
    {
        for (int byte = 0; byte < 256; byte++)
        {
            const uint32_t crc = table->of[behind - 1][byte];
            table->of[behind][byte] = (crc >> 8) ^ table->of[0][crc & 0xFF];
        }
    }
}

static void fill_tables(void)
{
    fill_table(&table_crc32, POLYNOMIAL_CRC32);
    fill_table(&table_crc32c, POLYNOMIAL_CRC32C);
}

static uint32_t crc_by_table(const crc_table *table, uint32_t crc, const uint8_t *bytes, int64_t length)
{
    pthread_once(&tables_once, fill_tables);
    while (length >= 8)
    {
        const uint32_t low = (uint32_t)asi_get_i32(bytes) ^ crc;
        const uint32_t high = (uint32_t)asi_get_i32(bytes + 4);
        crc = table->of[7][low & 0xFF] ^ table->of[6][(low >> 8) & 0xFF] ^ table->of[5][(low >> 16) & 0xFF] ^
            table->of[4][low >> 24] ^ table->of[3][high & 0xFF] ^ table->of[2][(high >> 8) & 0xFF] ^
            table->of[1][(high >> 16) & 0xFF] ^ table->of[0][high >> 24];
        bytes += 8;
        length -= 8;
    }
    for (; length > 0; length--)
    {
        crc = (crc >> 8) ^ table->of[0][(crc ^ *bytes++) & 0xFF];
    }
    return crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("sse4.2,crc32"))) static uint32_t crc32c_by_instruction(uint32_t start, const uint8_t *bytes, int64_t length)
{
    uint64_t crc = start;
    while (length >= 8)
    {
        crc = _mm_crc32_u64(crc, (uint64_t)asi_get_i64(bytes));
        bytes += 8;
        length -= 8;
    }
    for (; length > 0; length--)
    {
        crc = _mm_crc32_u8((uint32_t)crc, *bytes++);
    }
    return (uint32_t)crc;
}

#define PCLMUL_MIN_LENGTH 64

/* Moves one 128-bit lane forward by the distance of `k` and joins it with the bytes there. */
__attribute__((target("pclmul,sse4.1"))) static inline __m128i fold(__m128i lane, __m128i k, __m128i next)
{
    const __m128i low = _mm_clmulepi64_si128(lane, k, 0x00);
    const __m128i high = _mm_clmulepi64_si128(lane, k, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse4.1"))) static inline __m128i load(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Folding by carry-less multiplication; length is a multiple of 16 and at least 64. The constants are x^n mod P, bit-reflected,
 * for the distances in bits given with each; the end is a Barrett reduction. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t crc32_by_pclmul(uint32_t start, const uint8_t *bytes, int64_t length)
{
    const __m128i by_512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4); /* 480 | 544 */
    const __m128i by_128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0); /* 96 | 160 */
    const __m128i by_64 = _mm_set_epi64x(0, 0x0163cd6124);             /* 64 */
    const __m128i reduction = _mm_set_epi64x(0x01f7011641, 0x01db710641); /* mu | P */
    __m128i lane_0 = _mm_xor_si128(load(bytes), _mm_cvtsi32_si128((int)start));
    __m128i lane_1 = load(bytes + 16);
    __m128i lane_2 = load(bytes + 32);
    __m128i lane_3 = load(bytes + 48);
    for (bytes += 64, length -= 64; length >= 64; bytes += 64, length -= 64)
    {
        lane_0 = fold(lane_0, by_512, load(bytes));
        lane_1 = fold(lane_1, by_512, load(bytes + 16));
        lane_2 = fold(lane_2, by_512, load(bytes + 32));
        lane_3 = fold(lane_3, by_512, load(bytes + 48));
    }
    __m128i lane = fold(lane_0, by_128, lane_1);
    lane = fold(lane, by_128, lane_2);
    lane = fold(lane, by_128, lane_3);
    for (; length >= 16; bytes += 16, length -= 16)
    {
        lane = fold(lane, by_128, load(bytes));
    }
    const __m128i low_32_bits = _mm_set_epi32(0, -1, 0, -1);
    lane = _mm_xor_si128(_mm_srli_si128(lane, 8), _mm_clmulepi64_si128(lane, by_128, 0x10));
    lane = _mm_xor_si128(_mm_srli_si128(lane, 4), _mm_clmulepi64_si128(_mm_and_si128(lane, low_32_bits), by_64, 0x00));
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(lane, low_32_bits), reduction, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32_bits), reduction, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(lane, quotient), 1);
}
#endif

uint32_t asi_crc32(const uint8_t *bytes, int64_t length)
{
    uint32_t crc = ~0u;
#if defined(__x86_64__)
    if (length >= PCLMUL_MIN_LENGTH && asi_this_cpu.has_pclmul)
    {
        const int64_t folded = length & ~15LL;
        crc = crc32_by_pclmul(crc, bytes, folded);
        bytes += folded;
        length -= folded;
    }
#endif
    return ~crc_by_table(&table_crc32, crc, bytes, length);
}

uint32_t asi_crc32c_by_table(const uint8_t *bytes, int64_t length)
{
    return ~crc_by_table(&table_crc32c, ~0u, bytes, length);
}

uint32_t asi_crc32c(const uint8_t *bytes, int64_t length)
{
#if defined(__x86_64__)
    if (asi_this_cpu.has_sse4_2)
    {
        return ~crc32c_by_instruction(~0u, bytes, length);
    }
#endif
    return asi_crc32c_by_table(bytes, length);
}

asi_frame_checksum asi_checksum_function(as_record_checksum checksum)
{
    switch (checksum)
    {
        case AS_CHECKSUM_CRC32:
            return asi_crc32;
        case AS_CHECKSUM_CRC32C:
            return asi_crc32c;
        default:
            return NULL;
    }
}

as_result asi_checksum_from_name(const char *name, as_record_checksum *checksum)
{
    static const struct
    {
        const char *name;
        as_record_checksum checksum;
    } known[] = {
        { "", AS_CHECKSUM_NONE },
        { "none", AS_CHECKSUM_NONE },
        { "org.agrona.checksum.Crc32", AS_CHECKSUM_CRC32 },
        { "io.aeron.archive.checksum.Crc32", AS_CHECKSUM_CRC32 },
        { "CRC-32", AS_CHECKSUM_CRC32 },
        { "org.agrona.checksum.Crc32c", AS_CHECKSUM_CRC32C },
        { "io.aeron.archive.checksum.Crc32c", AS_CHECKSUM_CRC32C },
        { "CRC-32C", AS_CHECKSUM_CRC32C },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    {
        if (0 == strcmp(name, known[i].name))
        {
            *checksum = known[i].checksum;
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EINVAL, "unknown checksum '%s': use CRC-32 or CRC-32C, their class names "
        "org.agrona.checksum.Crc32 and org.agrona.checksum.Crc32c, or none", name);
}

const char *asi_checksum_name(as_record_checksum checksum)
{
    return AS_CHECKSUM_CRC32 == checksum ? "CRC-32" : AS_CHECKSUM_CRC32C == checksum ? "CRC-32C" : "none";
}
