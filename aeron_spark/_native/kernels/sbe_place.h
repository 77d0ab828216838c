/* Where the values of a column are, and which instances have them. See as_sbe.h. */
#ifndef ASI_SBE_PLACE_H
#define ASI_SBE_PLACE_H

#include "sbe_batch.h"

typedef struct asi_sbe_place
{
    const uint8_t *bytes;
    const int64_t *starts;
    const int32_t *lengths;     /* NULL: all equal */
    const int64_t *versions;
    int32_t length;
    int64_t version;
    int64_t count;
    bool is_big_endian;
    bool must_look;     /* some instance may lack the field */
} asi_sbe_place;

static inline asi_sbe_place asi_sbe_place_of(const as_sbe_batch *batch, const as_sbe_column *column)
{
    const asi_sbe_instances *level = &batch->levels[column->level];
    return (asi_sbe_place){
        .bytes = batch->bytes,
        .starts = level->starts,
        .lengths = level->is_mixed ? level->lengths : NULL,
        .versions = level->versions,
        .length = level->length,
        .version = level->version,
        .count = level->count,
        .is_big_endian = batch->plan->is_big_endian,
        .must_look = level->shortest < column->field_end || level->oldest < column->since || level->shortest < 0
    };
}

static inline bool asi_sbe_is_nan(uint64_t bits, int32_t width)
{
    return 4 == width ? (bits & 0x7fffffff) > 0x7f800000 : (bits & INT64_MAX) > 0x7ff0000000000000;
}

static inline bool asi_sbe_is_null(uint64_t bits, int32_t width, uint64_t null_bits, bool null_is_nan)
{
    return null_is_nan ? asi_sbe_is_nan(bits, width) : bits == null_bits;
}

/* Whether the instance has the field and its composite is not null. */
static inline bool asi_sbe_has_field(const asi_sbe_place *p, const as_sbe_column *column, int64_t i)
{
    if (p->must_look)
    {
        const int32_t length = NULL != p->lengths ? p->lengths[i] : p->length;
        const int64_t version = NULL != p->lengths ? p->versions[i] : p->version;
        if (length < column->field_end || version < column->since || length < 0)
        {
            return false;
        }
    }
    return !column->has_guard || !asi_sbe_is_null(
        asi_sbe_load(p->bytes + p->starts[i] + column->guard_offset, column->guard_width, p->is_big_endian),
        column->guard_width, column->guard_bits, column->guard_is_nan);
}

/* Whether every instance has the field: only the value itself can then be null. */
static inline bool asi_sbe_all_have(const asi_sbe_place *p, const as_sbe_column *column)
{
    return !p->must_look && !column->has_guard;
}

static inline void asi_sbe_set_valid(uint8_t *validity, int64_t i, bool is_valid)
{
    const uint8_t bit = (uint8_t)(1u << (i % 8));
    validity[i / 8] = is_valid ? validity[i / 8] | bit : validity[i / 8] & (uint8_t)~bit;
}

#endif
