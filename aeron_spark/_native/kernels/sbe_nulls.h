/* Detects nulls among contiguous values, and other loops in vectors. See sbe_nulls.c. */
#ifndef ASI_SBE_NULLS_H
#define ASI_SBE_NULLS_H

#include "sbe_batch.h"

/* For values of `width` bytes: sets null values and their flags to 0, and all other flags to 1. A float is null if it is NaN. */
void asi_sbe_clear_nulls(void *values, int64_t count, int32_t width, uint64_t null_bits, uint8_t *flags);
void asi_sbe_clear_nans(void *values, int64_t count, int32_t width, uint8_t *flags);
/* Replaces bytes by flags: 0 for the null value, else 1. */
void asi_sbe_flag_bytes(uint8_t *bytes, int64_t count, uint8_t null);
/* Mantissas, each divided by a power of ten and multiplied by one, of which one is 1: rounded once. False, and `out` is undefined, if a
 * mantissa is below -2^51, or not below 2^51. */
bool asi_sbe_divide(
    const int64_t *mantissas, bool is_signed, const double *down, const double *up, int64_t count, double *out);
/* Returns the number of negative values. */
int64_t asi_sbe_count_negative(const int16_t *values, int64_t count);

#if defined(__x86_64__)
/* Written while the program or library is loaded, never after. */
extern bool asi_sbe_has_avx2;
#endif

#endif
