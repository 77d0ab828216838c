/* Columns of numbers out of a walked batch. See as_sbe.h.
 *
 * Tasks run in turn over a block of instances that stays in the cache. The common ones, where every instance has the field, have a loop
 * made for one width, form and byte order by inlining; whether blocks need a look (a short one, an old version, a message that is not
 * there) is settled once for the column. */
#include "sbe_place.h"

#define BLOCK 2048 /* instances; a multiple of 64, so that validity begins at a byte */

#define FIXED static inline __attribute__((always_inline))

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

static bool to_long(uint64_t bits, const as_sbe_task *task, int64_t *value)
{
    if (!task->is_signed && bits > INT64_MAX)
    {
        return false;
    }
    const int64_t raw = task->is_signed ? asi_sbe_extend(bits, task->column.width) : (int64_t)bits;
    const int64_t divided = raw / task->divisor - (raw % task->divisor < 0 ? 1 : 0);
    return !__builtin_mul_overflow(divided, task->factor, value);
}

static bool to_decimal(uint64_t bits, const as_sbe_task *task, __int128 *value)
{
    const __int128 wide =
        AS_SBE_FORM_SIGNED_DECIMAL == task->form ? (__int128)asi_sbe_extend(bits, task->column.width) : (__int128)bits;
    return !__builtin_mul_overflow(wide, (__int128)task->factor, value);
}

/* Writes one value that is not null; false: it does not fit. */
static bool put(as_sbe_task *task, int64_t at, uint64_t bits)
{
    const int32_t width = task->column.width;
    switch (task->form)
    {
        case AS_SBE_FORM_SAME:
            memcpy((uint8_t *)task->out + at * width, &bits, (size_t)width);
            return true;
        case AS_SBE_FORM_WIDEN:
            /* The widest is 64 bits: of 32. */
            memcpy((uint8_t *)task->out + at * 2 * width, &bits, width < 8 ? 2 * (size_t)width : 8);
            return true;
        case AS_SBE_FORM_ENUM:
        {
            const int64_t raw = task->is_signed ? asi_sbe_extend(bits, width) : (int64_t)bits;
            const int16_t index =
                1 == width ? task->of_byte[bits] : index_of(raw, task->values, task->indices, task->value_count);
            ((int16_t *)task->out)[at] = index;
            task->unknown += index < 0 ? 1 : 0;
            return true;
        }
        case AS_SBE_FORM_LONG:
        {
            int64_t value = 0;
            const bool fits = to_long(bits, task, &value);
            ((int64_t *)task->out)[at] = fits ? value : 0;
            return fits;
        }
        default:
        {
            __int128 value = 0;
            const bool fits = to_decimal(bits, task, &value);
            value = fits ? value : 0;
            memcpy((uint8_t *)task->out + at * 16, &value, 16);
            return fits;
        }
    }
}

static void put_nothing(as_sbe_task *task, int64_t at)
{
    const int32_t width = task->column.width;
    const int32_t widths[] = { width, width < 8 ? 2 * width : 8, 16, 16, 8, 2 };
    memset((uint8_t *)task->out + at * widths[task->form], 0, (size_t)widths[task->form]);
}

/* Any task, value by value. */
static void gather_any(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end)
{
    const as_sbe_column *column = &task->column;
    for (int64_t i = first; i < end; i++)
    {
        const bool is_there = asi_sbe_has_field(p, column, i);
        for (int32_t k = 0; k < column->repeat; k++)
        {
            const int64_t at = i * column->repeat + k;
            const uint64_t bits = !is_there ? 0 :
                asi_sbe_load(p->bytes + p->starts[i] + column->offset + k * column->width, column->width, p->is_big_endian);
            const bool is_null = !is_there || (column->has_null &&
                asi_sbe_is_null(bits, column->width, column->null_bits, column->null_is_nan));
            const bool fits = !is_null && put(task, at, bits);
            if (is_null)
            {
                put_nothing(task, at);
            }
            asi_sbe_set_valid(task->validity, at, fits);
            task->nulls += fits ? 0 : 1;
            task->lost += !is_null && !fits ? 1 : 0;
        }
    }
}

/* -- every instance has it ------------------------------------------------------------------------------------------------------------ */

FIXED void put_fixed(uint8_t *out, int64_t i, uint64_t bits, int32_t width, as_sbe_form form, const int16_t *of_byte)
{
    switch (form)
    {
        case AS_SBE_FORM_SAME:
            memcpy(out + i * width, &bits, (size_t)width);
            return;
        case AS_SBE_FORM_WIDEN:
            memcpy(out + i * 2 * width, &bits, width < 8 ? 2 * (size_t)width : 8);
            return;
        case AS_SBE_FORM_ENUM:
            memcpy(out + i * 2, &of_byte[bits], 2);
            return;
        default:
        {
            const int64_t low = AS_SBE_FORM_DECIMAL == form ? (int64_t)bits : asi_sbe_extend(bits, width);
            const int64_t halves[2] = { low, AS_SBE_FORM_DECIMAL == form ? 0 : low >> 63 };
            memcpy(out + i * (AS_SBE_FORM_LONG == form ? 8 : 16), halves, AS_SBE_FORM_LONG == form ? 8 : 16);
            return;
        }
    }
}

/* LONG here is of a signed number. */
FIXED void gather_fixed(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, int32_t width, as_sbe_form form,
    bool is_big_endian, bool has_null)
{
    const uint8_t *bytes = p->bytes + task->column.offset;
    const uint64_t null_bits = task->column.null_bits;
    const int16_t *of_byte = task->of_byte;
    uint8_t *out = task->out;
    int64_t nulls = 0;
    int64_t unknown = 0;
    for (int64_t i = first; i < end; i += 64)
    {
        const int64_t count = end - i < 64 ? end - i : 64;
        const int64_t *starts = p->starts + i;
        uint64_t valid = 0;
        for (int64_t k = 0; k < count; k++)
        {
            const uint64_t bits = asi_sbe_load(bytes + starts[k], width, is_big_endian);
            const bool is_null = has_null && bits == null_bits;
            put_fixed(out, i + k, is_null ? 0 : bits, width, form, of_byte);
            if (has_null)
            {
                valid |= (uint64_t)!is_null << k;
                nulls += is_null;
            }
            if (AS_SBE_FORM_ENUM == form)
            {
                unknown += !is_null && of_byte[bits] < 0;
            }
        }
        if (has_null)
        {
            memcpy(task->validity + i / 8, &valid, (size_t)(count + 7) / 8);
        }
    }
    task->nulls += nulls;
    task->unknown += unknown;
}

FIXED void gather_width(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, as_sbe_form form, bool is_big_endian,
    bool has_null)
{
    switch (task->column.width)
    {
        case 1: gather_fixed(p, task, first, end, 1, form, is_big_endian, has_null); break;
        case 2: gather_fixed(p, task, first, end, 2, form, is_big_endian, has_null); break;
        case 4: gather_fixed(p, task, first, end, 4, form, is_big_endian, has_null); break;
        default: gather_fixed(p, task, first, end, 8, form, is_big_endian, has_null); break;
    }
}

FIXED void gather_form(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, bool is_big_endian, bool has_null)
{
    switch (task->form)
    {
        case AS_SBE_FORM_SAME: gather_width(p, task, first, end, AS_SBE_FORM_SAME, is_big_endian, has_null); break;
        case AS_SBE_FORM_WIDEN: gather_width(p, task, first, end, AS_SBE_FORM_WIDEN, is_big_endian, has_null); break;
        case AS_SBE_FORM_DECIMAL: gather_width(p, task, first, end, AS_SBE_FORM_DECIMAL, is_big_endian, has_null); break;
        case AS_SBE_FORM_SIGNED_DECIMAL:
            gather_width(p, task, first, end, AS_SBE_FORM_SIGNED_DECIMAL, is_big_endian, has_null);
            break;
        case AS_SBE_FORM_LONG: gather_width(p, task, first, end, AS_SBE_FORM_LONG, is_big_endian, has_null); break;
        default: gather_fixed(p, task, first, end, 1, AS_SBE_FORM_ENUM, is_big_endian, has_null); break;
    }
}

static void gather_common(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end)
{
    if (p->is_big_endian)
    {
        task->column.has_null ? gather_form(p, task, first, end, true, true) : gather_form(p, task, first, end, true, false);
        return;
    }
    task->column.has_null ? gather_form(p, task, first, end, false, true) : gather_form(p, task, first, end, false, false);
}

/* Whether there is a loop of its own for it. */
static bool is_common(const asi_sbe_place *p, const as_sbe_task *task)
{
    const as_sbe_column *column = &task->column;
    if (!asi_sbe_all_have(p, column) || column->null_is_nan || 1 != column->repeat || 1 != task->factor || 1 != task->divisor)
    {
        return false;
    }
    switch (task->form)
    {
        case AS_SBE_FORM_WIDEN: return column->width < 8;
        case AS_SBE_FORM_LONG: return task->is_signed;
        case AS_SBE_FORM_ENUM: return 1 == column->width;
        default: return true;
    }
}

void as_sbe_gather(const as_sbe_batch *batch, as_sbe_task *tasks, int64_t count)
{
    const int64_t instances = count > 0 ? batch->levels[tasks[0].column.level].count : 0;
    for (int64_t k = 0; k < count; k++)
    {
        tasks[k].nulls = tasks[k].lost = tasks[k].unknown = 0;
    }
    for (int64_t first = 0; first < instances; first += BLOCK)
    {
        const int64_t end = instances - first < BLOCK ? instances : first + BLOCK;
        for (int64_t k = 0; k < count; k++)
        {
            const asi_sbe_place p = asi_sbe_place_of(batch, &tasks[k].column);
            if (is_common(&p, &tasks[k]))
            {
                gather_common(&p, &tasks[k], first, end);
            }
            else
            {
                gather_any(&p, &tasks[k], first, end);
            }
        }
    }
}
