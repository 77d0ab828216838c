/* Detects nulls among contiguous values, in loops that the compiler vectorises, also for wider vectors where the processor has
 * them. Flags are bytes here; sbe_numbers.c packs eight of them into bits at once. */
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
