/* Columns out of a walked batch: one tight loop each. See as_sbe.h.
 *
 * Each loop is made for one width and byte order by inlining; whether blocks need a look (a short one, an old version, a message that
 * is not there) is settled once for the column. */
#include <limits.h>

#include "sbe_batch.h"

typedef struct place
{
    const uint8_t *bytes;
    const int64_t *starts;
    const int32_t *lengths;
    const int64_t *versions;
    int64_t count;
    bool is_big_endian;
    bool must_look;     /* some instance may lack the field */
} place;

static place place_of(const as_sbe_batch *batch, const as_sbe_column *column)
{
    const asi_sbe_instances *level = &batch->levels[column->level];
    return (place){
        .bytes = batch->bytes,
        .starts = level->starts,
        .lengths = level->lengths,
        .versions = level->versions,
        .count = level->count,
        .is_big_endian = batch->plan->is_big_endian,
        .must_look = level->shortest < column->field_end || level->oldest < column->since || level->shortest < 0
    };
}

static inline bool is_nan_bits(uint64_t bits, int32_t width)
{
    return 4 == width ? (bits & 0x7fffffff) > 0x7f800000 : (bits & INT64_MAX) > 0x7ff0000000000000;
}

static inline bool is_null_bits(uint64_t bits, int32_t width, uint64_t null_bits, bool null_is_nan)
{
    return null_is_nan ? is_nan_bits(bits, width) : bits == null_bits;
}

/* Whether the instance has the field, and its composite is not null. */
static inline bool has_field(const place *p, const as_sbe_column *column, int64_t i)
{
    if (p->must_look && (p->lengths[i] < column->field_end || p->versions[i] < column->since || p->lengths[i] < 0))
    {
        return false;
    }
    return !column->has_guard || !is_null_bits(
        asi_sbe_load(p->bytes + p->starts[i] + column->guard_offset, column->guard_width, p->is_big_endian),
        column->guard_width, column->guard_bits, column->guard_is_nan);
}

static inline void set_valid(uint8_t *validity, int64_t i, bool is_valid)
{
    const uint8_t bit = (uint8_t)(1u << (i % 8));
    validity[i / 8] = is_valid ? validity[i / 8] | bit : validity[i / 8] & (uint8_t)~bit;
}

/* -- values -------------------------------------------------------------------------------------------------------------------- */

static inline bool to_long(uint64_t bits, int32_t width, bool is_signed, int64_t factor, int64_t *value)
{
    if (!is_signed && bits > INT64_MAX)
    {
        return false;
    }
    return !__builtin_mul_overflow(is_signed ? asi_sbe_extend(bits, width) : (int64_t)bits, factor, value);
}

static inline bool to_decimal(uint64_t bits, int32_t width, bool is_signed, int64_t factor, __int128 *value)
{
    const __int128 wide = is_signed ? (__int128)asi_sbe_extend(bits, width) : (__int128)bits;
    return !__builtin_mul_overflow(wide, (__int128)factor, value);
}

/* Writes one value; false: it does not fit. */
static inline __attribute__((always_inline)) bool put(
    void *out, int64_t at, uint64_t bits, int32_t width, as_sbe_form form, bool is_signed, int64_t factor)
{
    switch (form)
    {
        case AS_SBE_FORM_SAME:
            memcpy((uint8_t *)out + at * width, &bits, (size_t)width);
            return true;
        case AS_SBE_FORM_WIDEN:
            /* The widest is 64 bits: of 32. */
            memcpy((uint8_t *)out + at * 2 * width, &bits, width < 8 ? 2 * (size_t)width : 8);
            return true;
        case AS_SBE_FORM_LONG:
        {
            int64_t value = 0;
            const bool fits = to_long(bits, width, is_signed, factor, &value);
            ((int64_t *)out)[at] = fits ? value : 0;
            return fits;
        }
        default:
        {
            __int128 value = 0;
            const bool fits = to_decimal(bits, width, AS_SBE_FORM_SIGNED_DECIMAL == form, factor, &value);
            value = fits ? value : 0;
            memcpy((uint8_t *)out + at * 16, &value, 16);
            return fits;
        }
    }
}

static inline __attribute__((always_inline)) int64_t gather(const place *p, const as_sbe_column *column, int32_t width,
    as_sbe_form form, bool is_signed, int64_t factor, void *out, uint8_t *validity)
{
    const int32_t repeat = column->repeat;
    int64_t nulls = 0;
    for (int64_t i = 0; i < p->count; i++)
    {
        const bool is_there = has_field(p, column, i);
        const uint8_t *from = p->bytes + p->starts[i] + column->offset;
        for (int32_t k = 0; k < repeat; k++)
        {
            const int64_t at = i * repeat + k;
            const uint64_t bits = is_there ? asi_sbe_load(from + k * width, width, p->is_big_endian) : 0;
            const bool is_null = !is_there ||
                (column->has_null && is_null_bits(bits, width, column->null_bits, column->null_is_nan));
            const bool is_valid = put(out, at, is_null ? 0 : bits, width, form, is_signed, factor) && !is_null;
            set_valid(validity, at, is_valid);
            nulls += is_valid ? 0 : 1;
        }
    }
    return nulls;
}

/* The common case: every instance has the field, and nothing in it is null. */
static inline __attribute__((always_inline)) void copy_all(const place *p, int32_t offset, int32_t width, uint8_t *out)
{
    const uint8_t *bytes = p->bytes + offset;
    for (int64_t i = 0; i < p->count; i++)
    {
        const uint64_t bits = asi_sbe_load(bytes + p->starts[i], width, p->is_big_endian);
        memcpy(out + i * width, &bits, (size_t)width);
    }
}

static bool copied_all(const place *p, const as_sbe_column *column, as_sbe_form form, void *out, uint8_t *validity)
{
    if (p->must_look || column->has_null || column->has_guard || 1 != column->repeat || AS_SBE_FORM_SAME != form)
    {
        return false;
    }
    memset(validity, 0xff, (size_t)((p->count + 7) / 8));
    switch (column->width)
    {
        case 1: copy_all(p, column->offset, 1, out); break;
        case 2: copy_all(p, column->offset, 2, out); break;
        case 4: copy_all(p, column->offset, 4, out); break;
        default: copy_all(p, column->offset, 8, out); break;
    }
    return true;
}

static int64_t gather_form(const place *p, const as_sbe_column *column, as_sbe_form form, bool is_signed, int64_t factor, void *out,
    uint8_t *validity)
{
    switch (column->width)
    {
        case 1: return gather(p, column, 1, form, is_signed, factor, out, validity);
        case 2: return gather(p, column, 2, form, is_signed, factor, out, validity);
        case 4: return gather(p, column, 4, form, is_signed, factor, out, validity);
        default: return gather(p, column, 8, form, is_signed, factor, out, validity);
    }
}

void as_sbe_gather_values(const as_sbe_batch *batch, const as_sbe_column *column, as_sbe_form form, bool is_signed, int64_t factor,
    void *out, uint8_t *validity, int64_t *nulls)
{
    const place p = place_of(batch, column);
    *nulls = 0;
    if (copied_all(&p, column, form, out, validity))
    {
        return;
    }
    switch (form)
    {
        case AS_SBE_FORM_SAME: *nulls = gather_form(&p, column, AS_SBE_FORM_SAME, is_signed, factor, out, validity); break;
        case AS_SBE_FORM_WIDEN: *nulls = gather_form(&p, column, AS_SBE_FORM_WIDEN, is_signed, factor, out, validity); break;
        case AS_SBE_FORM_LONG: *nulls = gather_form(&p, column, AS_SBE_FORM_LONG, is_signed, factor, out, validity); break;
        default: *nulls = gather_form(&p, column, form, is_signed, factor, out, validity); break;
    }
}

void as_sbe_gather_presence(const as_sbe_batch *batch, const as_sbe_column *column, uint8_t *validity, int64_t *nulls)
{
    const place p = place_of(batch, column);
    *nulls = 0;
    for (int64_t i = 0; i < p.count; i++)
    {
        const bool is_there = has_field(&p, column, i);
        set_valid(validity, i, is_there);
        *nulls += is_there ? 0 : 1;
    }
}

void as_sbe_gather_bytes(
    const as_sbe_batch *batch, const as_sbe_column *column, uint8_t *out, uint8_t *validity, int64_t *nulls)
{
    const place p = place_of(batch, column);
    *nulls = 0;
    for (int64_t i = 0; i < p.count; i++)
    {
        const bool is_there = has_field(&p, column, i);
        uint8_t *to = out + i * column->repeat;
        if (is_there)
        {
            memcpy(to, p.bytes + p.starts[i] + column->offset, (size_t)column->repeat);
        }
        else
        {
            memset(to, 0, (size_t)column->repeat);
        }
        set_valid(validity, i, is_there);
        *nulls += is_there ? 0 : 1;
    }
}

/* -- text ------------------------------------------------------------------------------------------------------------------------ */

static int64_t put_replacement(uint8_t *out)
{
    memcpy(out, "\xef\xbf\xbd", 3);
    return 3;
}

/* Length of the sequence that begins here if it is whole and right; else minus the bytes that one U+FFFD stands for: the longest
 * beginning of a right sequence, at least one. Unicode, table 3-7. */
static int64_t utf8_sequence(const uint8_t *at, int64_t left)
{
    const uint8_t first = at[0];
    const int64_t wanted = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (wanted <= 1)
    {
        return 1 == wanted ? 1 : -1;
    }
    const uint8_t low = 0xe0 == first ? 0xa0 : 0xf0 == first ? 0x90 : 0x80;
    const uint8_t high = 0xed == first ? 0x9f : 0xf4 == first ? 0x8f : 0xbf;
    for (int64_t i = 1; i < wanted; i++)
    {
        if (i >= left || at[i] < (1 == i ? low : 0x80) || at[i] > (1 == i ? high : 0xbf))
        {
            return -i;
        }
    }
    return wanted;
}

static int64_t put_utf8(const uint8_t *from, int64_t length, uint8_t *out)
{
    int64_t written = 0;
    for (int64_t i = 0; i < length;)
    {
        const int64_t step = utf8_sequence(from + i, length - i);
        if (step > 0)
        {
            memcpy(out + written, from + i, (size_t)step);
            written += step;
            i += step;
        }
        else
        {
            written += put_replacement(out + written);
            i -= step;
        }
    }
    return written;
}

static int64_t put_narrow(const uint8_t *from, int64_t length, bool is_latin1, uint8_t *out)
{
    int64_t written = 0;
    for (int64_t i = 0; i < length; i++)
    {
        const uint8_t byte = from[i];
        if (byte < 0x80)
        {
            out[written++] = byte;
        }
        else if (is_latin1)
        {
            out[written++] = (uint8_t)(0xc0 | byte >> 6);
            out[written++] = (uint8_t)(0x80 | (byte & 0x3f));
        }
        else
        {
            written += put_replacement(out + written);
        }
    }
    return written;
}

static int64_t put_text(const uint8_t *from, int64_t length, as_sbe_charset charset, uint8_t *out)
{
    switch (charset)
    {
        case AS_SBE_BYTES:
            memcpy(out, from, (size_t)length);
            return length;
        case AS_SBE_UTF8:
            return put_utf8(from, length, out);
        default:
            return put_narrow(from, length, AS_SBE_LATIN1 == charset, out);
    }
}

/* What a piece of text may grow to. */
static int64_t text_room(int64_t length, as_sbe_charset charset) { return AS_SBE_BYTES == charset ? length : 3 * length; }

as_result as_sbe_gather_text(const as_sbe_batch *batch, const as_sbe_column *column, as_sbe_charset charset, int32_t *offsets,
    uint8_t *out, int64_t capacity, uint8_t *validity, int64_t *nulls)
{
    const place p = place_of(batch, column);
    int64_t written = 0;
    *nulls = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < p.count; i++)
    {
        bool is_there = has_field(&p, column, i);
        if (is_there)
        {
            const uint8_t *from = p.bytes + p.starts[i] + column->offset;
            is_there = !column->has_null || *from != (uint8_t)column->null_bits;
            if (is_there)
            {
                const uint8_t *end = memchr(from, 0, (size_t)column->repeat);
                const int64_t length = NULL == end ? column->repeat : end - from;
                if (written + text_room(length, charset) > capacity || written > INT32_MAX - 3 * length)
                {
                    return AS_E_USAGE;
                }
                written += put_text(from, length, charset, out + written);
            }
        }
        offsets[i + 1] = (int32_t)written;
        set_valid(validity, i, is_there);
        *nulls += is_there ? 0 : 1;
    }
    return AS_OK;
}

as_result as_sbe_gather_data(const as_sbe_batch *batch, int32_t data, as_sbe_charset charset, int32_t *offsets, uint8_t *out,
    int64_t capacity, uint8_t *validity, int64_t *nulls)
{
    const asi_sbe_content *content = &batch->data[data];
    int64_t written = 0;
    *nulls = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < content->count; i++)
    {
        const int64_t length = content->lengths[i];
        if (length > 0)
        {
            if (written + text_room(length, charset) > capacity || written > INT32_MAX - text_room(length, charset))
            {
                return AS_E_USAGE;
            }
            written += put_text(batch->bytes + content->starts[i], length, charset, out + written);
        }
        offsets[i + 1] = (int32_t)written;
        set_valid(validity, i, length >= 0);
        *nulls += length >= 0 ? 0 : 1;
    }
    return AS_OK;
}

/* -- enums and sets ---------------------------------------------------------------------------------------------------------------- */

static int16_t index_of(int64_t raw, const int64_t *values, const int16_t *indices, int64_t count)
{
    int64_t low = 0;
    for (int64_t high = count; low < high;)
    {
        const int64_t middle = low + (high - low) / 2;
        if (values[middle] < raw)
        {
            low = middle + 1;
        }
        else
        {
            high = middle;
        }
    }
    return low < count && values[low] == raw ? indices[low] : -1;
}

void as_sbe_gather_enum(const as_sbe_batch *batch, const as_sbe_column *column, bool is_signed, const int64_t *values,
    const int16_t *indices, int64_t value_count, int16_t *out, uint8_t *validity, int64_t *nulls, int64_t *unknown)
{
    const place p = place_of(batch, column);
    int16_t of_byte[256];
    const bool is_byte = 1 == column->width;
    for (int32_t byte = 0; is_byte && byte < 256; byte++)
    {
        of_byte[byte] = index_of(is_signed ? (int8_t)byte : byte, values, indices, value_count);
    }
    *nulls = 0;
    *unknown = 0;
    for (int64_t i = 0; i < p.count; i++)
    {
        const bool is_there = has_field(&p, column, i);
        const uint64_t bits = is_there ? asi_sbe_load(p.bytes + p.starts[i] + column->offset, column->width, p.is_big_endian) : 0;
        const bool is_valid = is_there && !(column->has_null && bits == column->null_bits);
        const int64_t raw = is_signed ? asi_sbe_extend(bits, column->width) : (int64_t)bits;
        out[i] = !is_valid ? 0 : is_byte ? of_byte[bits] : index_of(raw, values, indices, value_count);
        set_valid(validity, i, is_valid);
        *nulls += is_valid ? 0 : 1;
        *unknown += out[i] < 0 ? 1 : 0;
    }
}

as_result as_sbe_gather_set(const as_sbe_batch *batch, const as_sbe_column *column, const uint8_t *bits, int64_t bit_count,
    int32_t *offsets, int16_t *out, uint8_t *validity, int64_t *nulls)
{
    const place p = place_of(batch, column);
    int64_t written = 0;
    *nulls = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < p.count; i++)
    {
        const bool is_there = has_field(&p, column, i);
        const uint64_t raw = is_there ? asi_sbe_load(p.bytes + p.starts[i] + column->offset, column->width, p.is_big_endian) : 0;
        if (written > INT32_MAX - bit_count)
        {
            return AS_E_USAGE;
        }
        for (int64_t k = 0; k < bit_count; k++)
        {
            out[written] = (int16_t)k;
            written += raw >> bits[k] & 1;
        }
        offsets[i + 1] = (int32_t)written;
        set_valid(validity, i, is_there);
        *nulls += is_there ? 0 : 1;
    }
    return AS_OK;
}
