/* Detects nulls among contiguous values, and divides them, in loops that the compiler vectorises, also for wider vectors where the
 * processor has them. Flags are bytes here; sbe_numbers.c packs eight of them into bits at once. */
#include "sbe_nulls.h"

#define FIXED static inline __attribute__((always_inline))

#define DEFINE_CLEAR(name, type, is_kept)                                                        \
    FIXED void name(type *restrict values, int64_t count, type null, uint8_t *restrict flags)    \
    {                                                                                            \
        (void)null;                                                                              \
        for (int64_t i = 0; i < count; i++)                                                      \
        {                                                                                        \
            const type value = values[i];                                                        \
            flags[i] = is_kept;                                                                  \
            values[i] = is_kept ? value : 0;                                                     \
        }                                                                                        \
    }

DEFINE_CLEAR(clear_1, uint8_t, value != null)
DEFINE_CLEAR(clear_2, uint16_t, value != null)
DEFINE_CLEAR(clear_4, uint32_t, value != null)
DEFINE_CLEAR(clear_8, uint64_t, value != null)
DEFINE_CLEAR(clear_float, float, value == value)
DEFINE_CLEAR(clear_double, double, value == value)

FIXED void clear_nulls(void *values, int64_t count, int32_t width, uint64_t null_bits, uint8_t *flags)
{
    switch (width)
    {
        case 1: clear_1(values, count, (uint8_t)null_bits, flags); break;
        case 2: clear_2(values, count, (uint16_t)null_bits, flags); break;
        case 4: clear_4(values, count, (uint32_t)null_bits, flags); break;
        default: clear_8(values, count, null_bits, flags); break;
    }
}

/* Processors convert 64-bit integers to doubles one by one. In the bits of a double between 2^52 and 2^53 the last bit is worth 1, so
 * adding an integer to the bits of 1.5 * 2^52 adds its value, and the subtraction is exact. */
FIXED bool divide(const int64_t *restrict mantissas, bool is_signed, const double *restrict down, const double *restrict up,
    int64_t count, double *restrict out)
{
    const double middle = 0x1.8p52;
    const uint64_t half = is_signed ? (uint64_t)1 << 51 : 0;
    uint64_t bits_of_middle;
    uint64_t seen = 0;
    memcpy(&bits_of_middle, &middle, sizeof(bits_of_middle));
    for (int64_t i = 0; i < count; i++)
    {
        const uint64_t mantissa = (uint64_t)mantissas[i];
        const uint64_t bits = mantissa + bits_of_middle;
        double sum;
        memcpy(&sum, &bits, sizeof(sum));
        seen |= mantissa + half;
        out[i] = (sum - middle) / down[i] * up[i];
    }
    return 0 == seen >> (is_signed ? 52 : 51);
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

bool asi_sbe_has_avx2;

/* Not by __builtin_cpu_supports, which needs a part of libgcc that not every toolchain has. The system saves the wide registers
 * of AVX only where XCR0 says so (Intel SDM 1, 14.3). */
__attribute__((constructor, target("xsave"))) static void ask(void)
{
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
    {
        return;
    }
    asi_sbe_has_avx2 = 6 == (_xgetbv(0) & 6) && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_AVX2);
}

__attribute__((target("avx2"))) static void clear_nulls_avx2(
    void *values, int64_t count, int32_t width, uint64_t null_bits, uint8_t *flags)
{
    clear_nulls(values, count, width, null_bits, flags);
}

__attribute__((target("avx2"))) static bool divide_avx2(
    const int64_t *mantissas, bool is_signed, const double *down, const double *up, int64_t count, double *out)
{
    return divide(mantissas, is_signed, down, up, count, out);
}
#endif

void asi_sbe_clear_nulls(void *values, int64_t count, int32_t width, uint64_t null_bits, uint8_t *flags)
{
#if defined(__x86_64__)
    if (asi_sbe_has_avx2)
    {
        clear_nulls_avx2(values, count, width, null_bits, flags);
        return;
    }
#endif
    clear_nulls(values, count, width, null_bits, flags);
}

bool asi_sbe_divide(const int64_t *mantissas, bool is_signed, const double *down, const double *up, int64_t count, double *out)
{
#if defined(__x86_64__)
    if (asi_sbe_has_avx2)
    {
        return divide_avx2(mantissas, is_signed, down, up, count, out);
    }
#endif
    return divide(mantissas, is_signed, down, up, count, out);
}

void asi_sbe_clear_nans(void *values, int64_t count, int32_t width, uint8_t *flags)
{
    4 == width ? clear_float(values, count, 0, flags) : clear_double(values, count, 0, flags);
}

void asi_sbe_flag_bytes(uint8_t *bytes, int64_t count, uint8_t null)
{
    for (int64_t i = 0; i < count; i++)
    {
        bytes[i] = bytes[i] != null;
    }
}

int64_t asi_sbe_count_negative(const int16_t *values, int64_t count)
{
    uint32_t found = 0;
    for (int64_t i = 0; i < count; i++)
    {
        found += values[i] < 0;
    }
    return found;
}
