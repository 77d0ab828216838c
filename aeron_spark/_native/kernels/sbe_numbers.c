/* Columns of numbers from a walked batch. See as_sbe.h.
 *
 * All tasks run over one block of instances at a time; a block's messages fit in the L1 cache. The common tasks, where every
 * instance has the field, each have a loop specialised by inlining for one width, form and byte order. Whether blocks must be
 * checked (a short block, an old version, an absent message) is decided once per column. Values are first stored contiguously, in
 * a loop that the compiler must not vectorise (CMakeLists.txt); a vectorised loop then detects the nulls. */
#include "sbe_decimal.h"
#include "sbe_nulls.h"
#include "sbe_place.h"

#define BLOCK 1024 /* maximum number of instances; a multiple of 64, so that validity begins at a byte */
#define NEAR 24576 /* bytes of messages that fit in the L1 cache together with the columns */

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
    if (task->most > 0 && (uint64_t)raw > task->most)
    {
        return false;
    }
    const int64_t divided = raw / task->divisor - (raw % task->divisor < 0 ? 1 : 0);
    return !__builtin_mul_overflow(divided, task->factor, value);
}

static bool to_decimal(uint64_t bits, const as_sbe_task *task, __int128 *value)
{
    const __int128 wide =
        AS_SBE_FORM_SIGNED_DECIMAL == task->form ? (__int128)asi_sbe_extend(bits, task->column.width) : (__int128)bits;
    return !__builtin_mul_overflow(wide, (__int128)task->factor, value);
}

/* Writes one non-null value; false: it does not fit. `exponent`: of a double. */
static bool put(as_sbe_task *task, int64_t at, uint64_t bits, int32_t exponent)
{
    const int32_t width = task->column.width;
    switch (task->form)
    {
        case AS_SBE_FORM_SAME:
            memcpy((uint8_t *)task->out + at * width, &bits, (size_t)width);
            return true;
        case AS_SBE_FORM_WIDEN:
            /* Widens to at most 64 bits, from 32. */
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
        case AS_SBE_FORM_DOUBLE:
            ((double *)task->out)[at] =
                asi_sbe_double(task->is_signed ? (__int128)asi_sbe_extend(bits, width) : (__int128)bits, exponent);
            return true;
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
    const int32_t widths[] = { width, width < 8 ? 2 * width : 8, 16, 16, 8, 2, 8 };
    memset((uint8_t *)task->out + at * widths[task->form], 0, (size_t)widths[task->form]);
}

/* Generic loop for any task, value by value. `e`: where the exponents are. */
static void gather_any(const asi_sbe_place *p, const asi_sbe_place *e, as_sbe_task *task, int64_t first, int64_t end)
{
    const as_sbe_column *column = &task->column;
    for (int64_t i = first; i < end; i++)
    {
        const bool is_there =
            asi_sbe_has_field(p, column, i) && (!task->has_exponent || asi_sbe_has_field(e, &task->exponent, i));
        const int32_t exponent = !task->has_exponent ? task->shift :
            is_there ? (int32_t)asi_sbe_extend(p->bytes[p->starts[i] + task->exponent.offset], 1) : 0;
        for (int32_t k = 0; k < column->repeat; k++)
        {
            const int64_t at = i * column->repeat + k;
            const uint64_t bits = !is_there ? 0 :
                asi_sbe_load(p->bytes + p->starts[i] + column->offset + k * column->width, column->width, p->is_big_endian);
            const bool is_null = !is_there || (column->has_null &&
                asi_sbe_is_null(bits, column->width, column->null_bits, column->null_is_nan));
            const bool fits = !is_null && put(task, at, bits, exponent);
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

/* -- every instance has it --------------------------------------------------------------------------------------------------- */

typedef enum null_kind
{
    NO_NULL,
    NULL_BITS,
    NULL_NAN
} null_kind;

FIXED void put_fixed(uint8_t *out, int64_t i, uint64_t bits, int32_t width, as_sbe_form form)
{
    switch (form)
    {
        case AS_SBE_FORM_SAME:
            memcpy(out + i * width, &bits, (size_t)width);
            return;
        case AS_SBE_FORM_WIDEN:
            memcpy(out + i * 2 * width, &bits, width < 8 ? 2 * (size_t)width : 8);
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

/* Packs flags into validity bits. The flags need room for eight more bytes. */
static void keep_flags(as_sbe_task *task, uint8_t *flags, int64_t first, int64_t count)
{
    int64_t valid = 0;
    uint8_t *validity = task->validity + first / 8;
    memset(flags + count, 0, 8);
    for (int64_t i = 0; i < count; i += 8)
    {
        uint64_t eight;
        memcpy(&eight, flags + i, sizeof(eight));
        validity[i / 8] = (uint8_t)(eight * 0x0102040810204080 >> 56);
        valid += (int64_t)(eight * 0x0101010101010101 >> 56);
    }
    task->nulls += count - valid;
}

/* Copies values of at most 8 bytes into `out`, unchanged. */
FIXED void put_block(
    const asi_sbe_place *p, const as_sbe_column *column, int64_t first, int64_t end, int32_t width, as_sbe_form form,
    bool is_big_endian, uint8_t *restrict out)
{
    const uint8_t *bytes = p->bytes + column->offset;
    const int64_t *restrict starts = p->starts + first;
    for (int64_t i = 0; i < end - first; i++)
    {
        put_fixed(out, i, asi_sbe_load(bytes + starts[i], width, is_big_endian), width, form);
    }
}

FIXED int32_t width_of(as_sbe_form form, int32_t width)
{
    return AS_SBE_FORM_SAME == form ? width : AS_SBE_FORM_WIDEN == form ? 2 * width : 8;
}

FIXED void gather_narrow(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, int32_t width, as_sbe_form form,
    bool is_big_endian, null_kind null)
{
    const int32_t wide = width_of(form, width);
    uint8_t *out = (uint8_t *)task->out + first * wide;
    put_block(p, &task->column, first, end, width, form, is_big_endian, out);
    if (NO_NULL == null)
    {
        return;
    }
    uint8_t flags[BLOCK + 8];
    const uint64_t bits = task->column.null_bits;
    if (NULL_NAN == null)
    {
        asi_sbe_clear_nans(out, end - first, wide, flags);
    }
    else
    {
        asi_sbe_clear_nulls(
            out, end - first, wide, AS_SBE_FORM_LONG == form ? (uint64_t)asi_sbe_extend(bits, width) : bits, flags);
    }
    keep_flags(task, flags, first, end - first);
}

/* Integers of at most 8 bytes, as 64 bits. */
FIXED void load_integers(const asi_sbe_place *p, const as_sbe_task *task, int64_t first, int64_t count, int32_t width,
    bool is_signed, bool is_big_endian, int64_t *restrict out)
{
    const uint8_t *bytes = p->bytes + task->column.offset;
    const int64_t *restrict starts = p->starts + first;
    for (int64_t i = 0; i < count; i++)
    {
        const uint64_t value = asi_sbe_load(bytes + starts[i], width, is_big_endian);
        out[i] = is_signed ? asi_sbe_extend(value, width) : (int64_t)value;
    }
}

/* Widens to 16 bytes, via 8. */
FIXED void gather_decimal(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, int32_t width, bool is_signed,
    bool is_big_endian, null_kind null)
{
    if (NO_NULL == null)
    {
        put_block(p, &task->column, first, end, width, is_signed ? AS_SBE_FORM_SIGNED_DECIMAL : AS_SBE_FORM_DECIMAL, is_big_endian,
            (uint8_t *)task->out + first * 16);
        return;
    }
    int64_t mantissas[BLOCK];
    uint8_t flags[BLOCK + 8];
    const uint64_t bits = task->column.null_bits;
    load_integers(p, task, first, end - first, width, is_signed, is_big_endian, mantissas);
    asi_sbe_clear_nulls(mantissas, end - first, 8, is_signed ? (uint64_t)asi_sbe_extend(bits, width) : bits, flags);
    int64_t *restrict out = (int64_t *)task->out + first * 2;
    for (int64_t i = 0; i < end - first; i++)
    {
        out[2 * i] = mantissas[i];
        out[2 * i + 1] = is_signed ? mantissas[i] >> 63 : 0;
    }
    keep_flags(task, flags, first, end - first);
}

FIXED void gather_fixed(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, int32_t width, as_sbe_form form,
    bool is_big_endian, null_kind null)
{
    switch (form)
    {
        case AS_SBE_FORM_DECIMAL: gather_decimal(p, task, first, end, width, false, is_big_endian, null); break;
        case AS_SBE_FORM_SIGNED_DECIMAL: gather_decimal(p, task, first, end, width, true, is_big_endian, null); break;
        default: gather_narrow(p, task, first, end, width, form, is_big_endian, null); break;
    }
}

/* An enum of one byte, whose null has the index 0. */
FIXED void gather_enum(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, bool has_null)
{
    const uint8_t *bytes = p->bytes + task->column.offset;
    const int64_t *restrict starts = p->starts + first;
    const int16_t *restrict of_byte = task->of_byte;
    int16_t *restrict out = (int16_t *)task->out + first;
    uint8_t flags[BLOCK + 8];
    for (int64_t i = 0; i < end - first; i++)
    {
        const uint8_t byte = bytes[starts[i]];
        flags[i] = byte;
        out[i] = of_byte[byte];
    }
    task->unknown += asi_sbe_count_negative(out, end - first);
    if (has_null)
    {
        asi_sbe_flag_bytes(flags, end - first, (uint8_t)task->column.null_bits);
        keep_flags(task, flags, first, end - first);
    }
}

/* An unsigned 64-bit time, `divisor` fixed by inlining. A value beyond 63 bits counts as lost unless it is the null value. */
FIXED void gather_unsigned_long(
    const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, bool is_big_endian, bool has_null, int64_t divisor)
{
    const uint8_t *bytes = p->bytes + task->column.offset;
    const int64_t *restrict starts = p->starts;
    const uint64_t null_bits = task->column.null_bits;
    const uint64_t most = task->most > 0 ? task->most : INT64_MAX;
    int64_t *restrict out = task->out;
    uint8_t flags[BLOCK + 8];
    int64_t lost = 0;
    for (int64_t i = first; i < end; i++)
    {
        const uint64_t bits = asi_sbe_load(bytes + starts[i], 8, is_big_endian);
        const bool is_null = has_null && bits == null_bits;
        const bool fits = bits <= most;
        out[i] = is_null || !fits ? 0 : (int64_t)(bits / (uint64_t)divisor);
        lost += !is_null && !fits;
        flags[i - first] = !is_null && fits;
    }
    task->lost += lost;
    keep_flags(task, flags, first, end - first);
}

/* Powers of ten to divide and to multiply by. False: they are not right, as an exponent is beyond those of exact doubles. Not inlined,
 * where the tables' addresses have no registers. */
static __attribute__((noinline)) bool load_powers(
    const uint8_t *bytes, const int64_t *restrict starts, int64_t count, double *restrict down, double *restrict up)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++)
    {
        const int32_t exponent = (int32_t)asi_sbe_extend(bytes[starts[i]], 1);
        const uint32_t index = asi_sbe_power_index(exponent);
        const uint32_t above = (uint32_t)(exponent + ASI_SBE_MAX_POWER);
        down[i] = ASI_SBE_DOWN[index];
        up[i] = ASI_SBE_UP[index];
        most = above > most ? above : most;
    }
    return most <= 2 * ASI_SBE_MAX_POWER;
}

FIXED bool fill_powers(const as_sbe_task *task, int64_t count, double *restrict down, double *restrict up)
{
    for (int64_t i = 0; i < count; i++)
    {
        down[i] = ASI_SBE_DOWN[asi_sbe_power_index(task->shift)];
        up[i] = ASI_SBE_UP[asi_sbe_power_index(task->shift)];
    }
    return task->shift <= ASI_SBE_MAX_POWER && task->shift >= -ASI_SBE_MAX_POWER;
}

FIXED void gather_double(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, int32_t width, bool is_signed,
    bool is_big_endian, null_kind null)
{
    const int64_t count = end - first;
    int64_t mantissas[BLOCK];
    double down[BLOCK];
    double up[BLOCK];
    double *out = (double *)task->out + first;
    if (count <= 0)
    {
        return; /* which a block never is; the compiler wants to see that all of what is read below was written */
    }
    load_integers(p, task, first, count, width, is_signed, is_big_endian, mantissas);
    if (NO_NULL != null)
    {
        uint8_t flags[BLOCK + 8];
        const uint64_t bits = task->column.null_bits;
        asi_sbe_clear_nulls(mantissas, count, 8, is_signed ? (uint64_t)asi_sbe_extend(bits, width) : bits, flags);
        keep_flags(task, flags, first, count);
    }
    const uint8_t *bytes = p->bytes + task->exponent.offset;
    const bool is_exact =
        task->has_exponent ? load_powers(bytes, p->starts + first, count, down, up) : fill_powers(task, count, down, up);
    if (is_exact && asi_sbe_divide(mantissas, is_signed, down, up, count, out))
    {
        return;
    }
    for (int64_t i = 0; i < count; i++)
    {
        const int64_t mantissa = mantissas[i];
        out[i] = asi_sbe_double(is_signed ? (__int128)mantissa : (__int128)(uint64_t)mantissa,
            task->has_exponent ? (int32_t)asi_sbe_extend(bytes[p->starts[first + i]], 1) : task->shift);
    }
}

/* Of 4 and 8 bytes; others have no decimals of many. */
FIXED void gather_doubles(
    const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, bool is_big_endian, null_kind null)
{
    switch (2 * task->column.width + task->is_signed)
    {
        case 8: gather_double(p, task, first, end, 4, false, is_big_endian, null); break;
        case 9: gather_double(p, task, first, end, 4, true, is_big_endian, null); break;
        case 16: gather_double(p, task, first, end, 8, false, is_big_endian, null); break;
        default: gather_double(p, task, first, end, 8, true, is_big_endian, null); break;
    }
}

FIXED void gather_width(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, as_sbe_form form, bool is_big_endian,
    null_kind null)
{
    switch (task->column.width)
    {
        case 1: gather_fixed(p, task, first, end, 1, form, is_big_endian, null); break;
        case 2: gather_fixed(p, task, first, end, 2, form, is_big_endian, null); break;
        case 4: gather_fixed(p, task, first, end, 4, form, is_big_endian, null); break;
        default: gather_fixed(p, task, first, end, 8, form, is_big_endian, null); break;
    }
}

FIXED void gather_float(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, bool is_big_endian)
{
    4 == task->column.width ? gather_fixed(p, task, first, end, 4, AS_SBE_FORM_SAME, is_big_endian, NULL_NAN) :
        gather_fixed(p, task, first, end, 8, AS_SBE_FORM_SAME, is_big_endian, NULL_NAN);
}

FIXED void gather_long(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, bool is_big_endian, null_kind null)
{
    if (task->is_signed)
    {
        gather_width(p, task, first, end, AS_SBE_FORM_LONG, is_big_endian, null);
        return;
    }
    1000 == task->divisor ? gather_unsigned_long(p, task, first, end, is_big_endian, NO_NULL != null, 1000) :
        gather_unsigned_long(p, task, first, end, is_big_endian, NO_NULL != null, 1);
}

FIXED void gather_form(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, bool is_big_endian, null_kind null)
{
    switch (task->form)
    {
        case AS_SBE_FORM_SAME: gather_width(p, task, first, end, AS_SBE_FORM_SAME, is_big_endian, null); break;
        case AS_SBE_FORM_WIDEN: gather_width(p, task, first, end, AS_SBE_FORM_WIDEN, is_big_endian, null); break;
        case AS_SBE_FORM_DECIMAL: gather_width(p, task, first, end, AS_SBE_FORM_DECIMAL, is_big_endian, null); break;
        case AS_SBE_FORM_SIGNED_DECIMAL: gather_width(p, task, first, end, AS_SBE_FORM_SIGNED_DECIMAL, is_big_endian, null); break;
        case AS_SBE_FORM_LONG: gather_long(p, task, first, end, is_big_endian, null); break;
        case AS_SBE_FORM_DOUBLE: gather_doubles(p, task, first, end, is_big_endian, null); break;
        default: gather_enum(p, task, first, end, NO_NULL != null); break;
    }
}

FIXED void gather_order(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end, bool is_big_endian)
{
    if (task->column.has_null && task->column.null_is_nan)
    {
        gather_float(p, task, first, end, is_big_endian);
    }
    else if (task->column.has_null)
    {
        gather_form(p, task, first, end, is_big_endian, NULL_BITS);
    }
    else
    {
        gather_form(p, task, first, end, is_big_endian, NO_NULL);
    }
}

static void gather_common(const asi_sbe_place *p, as_sbe_task *task, int64_t first, int64_t end)
{
    p->is_big_endian ? gather_order(p, task, first, end, true) : gather_order(p, task, first, end, false);
}

/* Whether a specialised loop exists for the task. */
static bool is_common(const asi_sbe_place *p, const asi_sbe_place *e, const as_sbe_task *task)
{
    const as_sbe_column *column = &task->column;
    if (task->has_exponent && !asi_sbe_all_have(e, &task->exponent))
    {
        return false;
    }
    if (!asi_sbe_all_have(p, column) || 1 != column->repeat || 1 != task->factor)
    {
        return false;
    }
    if (AS_SBE_FORM_LONG == task->form && !task->is_signed)
    {
        return 8 == column->width && (1 == task->divisor || 1000 == task->divisor);
    }
    if (1 != task->divisor || task->most > 0 || (column->null_is_nan && AS_SBE_FORM_SAME != task->form))
    {
        return false;
    }
    switch (task->form)
    {
        case AS_SBE_FORM_WIDEN: return column->width < 8;
        case AS_SBE_FORM_ENUM: return 1 == column->width;
        case AS_SBE_FORM_DOUBLE: return column->width >= 4;
        default: return true;
    }
}

/* Number of instances whose messages fit in the L1 cache. */
static int64_t block_of(const asi_sbe_instances *level, int64_t first, int64_t end)
{
    const int64_t spread = level->starts[end - 1] - level->starts[first];
    const int64_t each = spread > 0 ? spread / (end - first) + 1 : 1;
    const int64_t fitting = NEAR / each / 64 * 64;
    return fitting < 64 ? 64 : fitting > BLOCK ? BLOCK : fitting;
}

void asi_sbe_clear_counts(as_sbe_task *tasks, int64_t task_count)
{
    for (int64_t k = 0; k < task_count; k++)
    {
        tasks[k].nulls = tasks[k].lost = tasks[k].unknown = 0;
    }
}

void asi_sbe_gather_some(const as_sbe_batch *batch, as_sbe_task *tasks, int64_t task_count, int64_t first, int64_t end)
{
    if (0 == task_count || first >= end)
    {
        return;
    }
    const int64_t block = block_of(&batch->levels[tasks[0].column.level], first, end);
    for (int64_t at = first; at < end; at += block)
    {
        const int64_t to = end - at < block ? end : at + block;
        for (int64_t k = 0; k < task_count; k++)
        {
            const asi_sbe_place p = asi_sbe_place_of(batch, &tasks[k].column);
            const asi_sbe_place e = tasks[k].has_exponent ? asi_sbe_place_of(batch, &tasks[k].exponent) : p;
            if (is_common(&p, &e, &tasks[k]))
            {
                gather_common(&p, &tasks[k], at, to);
            }
            else
            {
                gather_any(&p, &e, &tasks[k], at, to);
            }
        }
    }
}

void as_sbe_gather(const as_sbe_batch *batch, as_sbe_task *tasks, int64_t count)
{
    asi_sbe_clear_counts(tasks, count);
    asi_sbe_gather_some(batch, tasks, count, 0, 0 == count ? 0 : batch->levels[tasks[0].column.level].count);
}
