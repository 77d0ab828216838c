/* Gathers the non-numeric parts of a block: presence, bytes, sets. See as_sbe.h. */
#include <limits.h>

#include "sbe_place.h"

void as_sbe_gather_presence(const as_sbe_batch *batch, const as_sbe_column *column, uint8_t *validity, int64_t *nulls)
{
    const asi_sbe_place p = asi_sbe_place_of(batch, column);
    *nulls = 0;
    for (int64_t i = 0; i < p.count && !asi_sbe_all_have(&p, column); i++)
    {
        const bool is_there = asi_sbe_has_field(&p, column, i);
        asi_sbe_set_valid(validity, i, is_there);
        *nulls += is_there ? 0 : 1;
    }
}

void as_sbe_gather_bytes(
    const as_sbe_batch *batch, const as_sbe_column *column, uint8_t *out, uint8_t *validity, int64_t *nulls)
{
    const asi_sbe_place p = asi_sbe_place_of(batch, column);
    *nulls = 0;
    for (int64_t i = 0; i < p.count; i++)
    {
        const bool is_there = asi_sbe_has_field(&p, column, i);
        uint8_t *to = out + i * column->repeat;
        if (is_there)
        {
            memcpy(to, p.bytes + p.starts[i] + column->offset, (size_t)column->repeat);
        }
        else
        {
            memset(to, 0, (size_t)column->repeat);
        }
        asi_sbe_set_valid(validity, i, is_there);
        *nulls += is_there ? 0 : 1;
    }
}

as_result as_sbe_gather_set(const as_sbe_batch *batch, const as_sbe_column *column, const uint8_t *bits, int64_t bit_count,
    int32_t *offsets, int16_t *out, uint8_t *validity, int64_t *nulls)
{
    const asi_sbe_place p = asi_sbe_place_of(batch, column);
    int64_t written = 0;
    *nulls = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < p.count; i++)
    {
        const bool is_there = asi_sbe_has_field(&p, column, i);
        const uint64_t raw = is_there ? asi_sbe_load(p.bytes + p.starts[i] + column->offset, column->width, p.is_big_endian) : 0;
        if (written > INT32_MAX - bit_count)
        {
            return AS_E_USAGE;
        }
        for (int64_t k = 0; k < bit_count; k++)
        {
            out[written] = (int16_t)k;
            written += (int64_t)(raw >> bits[k] & 1);
        }
        offsets[i + 1] = (int32_t)written;
        asi_sbe_set_valid(validity, i, is_there);
        *nulls += is_there ? 0 : 1;
    }
    return AS_OK;
}
