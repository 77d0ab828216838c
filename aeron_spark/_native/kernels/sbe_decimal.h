/* Mantissas with powers of ten as doubles. See sbe_decimal.c. */
#ifndef ASI_SBE_DECIMAL_H
#define ASI_SBE_DECIMAL_H

#include <stdint.h>

/* Up to this power of ten, doubles are exact. */
#define ASI_SBE_MAX_POWER 22
#define ASI_SBE_POWERS 64

/* Of an exponent between -22 and 22, at asi_sbe_power_index of it: what to divide by and to multiply by, of which one is 1. */
extern const double ASI_SBE_DOWN[ASI_SBE_POWERS];
extern const double ASI_SBE_UP[ASI_SBE_POWERS];

/* In the tables, whatever the exponent. */
static inline uint32_t asi_sbe_power_index(int32_t exponent)
{
    return (uint32_t)(exponent + ASI_SBE_POWERS / 2) % ASI_SBE_POWERS;
}

/* The nearest double. The mantissa has 64 bits at most. */
double asi_sbe_double(__int128 mantissa, int32_t exponent);

#endif
