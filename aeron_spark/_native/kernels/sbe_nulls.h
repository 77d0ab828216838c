/* Nulls among values that stand one behind the other. See sbe_nulls.c. */
#ifndef ASI_SBE_NULLS_H
#define ASI_SBE_NULLS_H

#include "sbe_batch.h"

/* Values of `width` bytes: those that are null become 0, and their flag, too; the other flags become 1. Floats are null if they
 * are not a number. */
void asi_sbe_clear_nulls(void *values, int64_t count, int32_t width, uint64_t null_bits, uint8_t *flags);
void asi_sbe_clear_nans(void *values, int64_t count, int32_t width, uint8_t *flags);
/* Bytes become flags. */
void asi_sbe_flag_bytes(uint8_t *bytes, int64_t count, uint8_t null);
/* How many are below 0. */
int64_t asi_sbe_count_negative(const int16_t *values, int64_t count);

#endif
