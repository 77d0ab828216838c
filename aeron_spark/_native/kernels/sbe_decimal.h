/* Mantissas with powers of ten as doubles. See sbe_decimal.c. */
#ifndef ASI_SBE_DECIMAL_H
#define ASI_SBE_DECIMAL_H

#include <stdint.h>

/* Up to this power of ten, doubles are exact. */
#define ASI_SBE_MAX_POWER 22

extern const double ASI_SBE_POWERS[ASI_SBE_MAX_POWER + 1];

/* The nearest double. The mantissa has 64 bits at most. */
double asi_sbe_double(__int128 mantissa, int32_t exponent);

#endif
