/* Converts mantissas with exponents to decimals of one scale and to doubles. Spec: 10 §14.3. See as_sbe.h. */
#include "sbe_decimal.h"

#include <stdio.h>
#include <stdlib.h>

#include "sbe_place.h"

const double ASI_SBE_DOWN[ASI_SBE_POWERS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1e22, 1e21, 1e20, 1e19, 1e18, 1e17, 1e16, 1e15, 1e14, 1e13,
    1e12, 1e11, 1e10, 1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1 };
const double ASI_SBE_UP[ASI_SBE_POWERS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1, 1,
    1, 1, 1, 1, 1, 1, 1 };

static bool is_valid_at(const uint8_t *validity, int64_t i) { return NULL == validity || 0 != (validity[i / 8] >> i % 8 & 1); }

static __int128 power_of_ten(int32_t exponent)
{
    __int128 power = 1;
    for (int32_t i = 0; i < exponent; i++)
    {
        power *= 10;
    }
    return power;
}

/* False if the result is not exact. Mantissas have at most 64 bits, so removing 20 decimal digits leaves 0. */
static bool shift_decimal(__int128 mantissa, int32_t shift, __int128 *shifted)
{
    if (0 == mantissa)
    {
        *shifted = 0;
        return true;
    }
    if (shift >= 0)
    {
        return shift <= 38 && !__builtin_mul_overflow(mantissa, power_of_ten(shift), shifted);
    }
    const __int128 divisor = power_of_ten(-shift < 20 ? -shift : 20);
    *shifted = mantissa / divisor;
    return 0 == mantissa % divisor;
}

int64_t as_sbe_rescale(const void *mantissas, const int8_t *exponents, int64_t stride, int64_t count, int32_t digits, int32_t scale,
    const uint8_t *validity, void *out, uint8_t *out_validity)
{
    const __int128 limit = power_of_ten(digits);
    int64_t lost = 0;
    for (int64_t i = 0; i < count; i++)
    {
        __int128 mantissa;
        __int128 value = 0;
        const bool is_there = is_valid_at(validity, i);
        memcpy(&mantissa, (const uint8_t *)mantissas + 16 * i, 16);
        const bool fits = is_there && shift_decimal(mantissa, scale + exponents[i * stride], &value) && value < limit && value > -limit;
        value = fits ? value : 0;
        memcpy((uint8_t *)out + 16 * i, &value, 16);
        asi_sbe_set_valid(out_validity, i, fits);
        lost += is_there && !fits ? 1 : 0;
    }
    return lost;
}

double asi_sbe_double(__int128 mantissa, int32_t exponent)
{
    const int64_t exact = (int64_t)1 << 53;
    const int64_t narrow = (int64_t)mantissa;
    if (narrow == mantissa && narrow <= exact && narrow >= -exact && exponent >= -ASI_SBE_MAX_POWER && exponent <= ASI_SBE_MAX_POWER)
    {
        /* All operands are exact, and one of the powers is 1, so the result is rounded once. Without a branch by the exponent's
         * sign, which the processor cannot guess where messages of several instruments mix. */
        const uint32_t index = asi_sbe_power_index(exponent);
        return (double)narrow / ASI_SBE_DOWN[index] * ASI_SBE_UP[index];
    }
    char text[48];
    const uint64_t size = mantissa < 0 ? (uint64_t)-mantissa : (uint64_t)mantissa;
    snprintf(text, sizeof(text), "%s%llue%d", mantissa < 0 ? "-" : "", (unsigned long long)size, exponent);
    return strtod(text, NULL);
}

void as_sbe_to_double(const void *mantissas, const int8_t *exponents, int64_t stride, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; i++)
    {
        __int128 mantissa;
        memcpy(&mantissa, (const uint8_t *)mantissas + 16 * i, 16);
        out[i] = asi_sbe_double(mantissa, exponents[i * stride]);
    }
}
