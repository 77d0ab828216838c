/* Numbers of messages become exactly their values, and values that do not fit a column become null and are counted. Method:
 * messages of one field of eight bytes, values at the edges; the expected results are written down here. */
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_sbe.h"
#include "check.h"
#include "cpuinfo.h"
#include "sbe_nulls.h"

#define ROLE(at, bytes) { .offset = (at), .size = (bytes) }
#define NOT_TOLD { .constant = -1 }
#define ROWS_MAX 4096
#define MESSAGE_LENGTH 16

/* A header of eight bytes, a block of eight. `short_at`: a message whose block is too short; -1: none. With a task, it is gathered
 * during the walk. */
static as_sbe_batch *walk_with(
    const uint64_t *values, int64_t count, int64_t short_at, as_sbe_task *task)
{
    static const as_sbe_level LEVEL = { .first_child = -1, .next_sibling = -1, .need = 8 };
    static const as_sbe_plan PLAN = { .header_size = 8, .block_length = ROLE(0, 2), .template_id = ROLE(2, 2),
        .schema_id = ROLE(4, 2), .version = ROLE(6, 2), .groups_told = NOT_TOLD, .data_told = NOT_TOLD, .own_template_id = 1,
        .own_schema_id = 1, .levels = &LEVEL, .level_count = 1 };
    static uint8_t bytes[ROWS_MAX * MESSAGE_LENGTH];
    static int64_t starts[ROWS_MAX];
    static int64_t ends[ROWS_MAX];
    CHECK(count <= ROWS_MAX);
    for (int64_t i = 0; i < count; i++)
    {
        const uint8_t header[] = { i == short_at ? 7 : 8, 0, 1, 0, 1, 0, 0, 0 };
        memcpy(bytes + i * MESSAGE_LENGTH, header, sizeof(header));
        memcpy(bytes + i * MESSAGE_LENGTH + 8, &values[i], 8);
        starts[i] = i * MESSAGE_LENGTH;
        ends[i] = starts[i] + MESSAGE_LENGTH;
    }
    as_sbe_batch *batch;
    CHECK_I64(as_sbe_batch_open(&PLAN, &batch), AS_OK);
    CHECK_I64(NULL == task ? as_sbe_batch_walk(batch, bytes, starts, ends, count) :
        as_sbe_batch_walk_gather(batch, bytes, starts, ends, count, task, 1), AS_OK);
    CHECK_I64(as_sbe_batch_error_count(batch), short_at >= 0 && short_at < count);
    return batch;
}

static as_sbe_batch *walk(const uint64_t *values, int64_t count) { return walk_with(values, count, -1, NULL); }

typedef struct gathered
{
    __int128 out[ROWS_MAX];
    uint8_t validity[ROWS_MAX / 8];
    as_sbe_task task;
} gathered;

static void prepare(gathered *into, const as_sbe_task *task, int32_t width)
{
    memset(into, 0, sizeof(*into));
    into->task = *task;
    into->task.column.width = width;
    into->task.column.repeat = 1;
    into->task.column.field_end = width;
    into->task.factor = 0 == task->factor ? 1 : task->factor;
    into->task.divisor = 0 == task->divisor ? 1 : task->divisor;
    into->task.out = into->out;
    into->task.validity = into->validity;
}

static void gather(gathered *into, const as_sbe_task *task, int32_t width, const uint64_t *values, int64_t count)
{
    prepare(into, task, width);
    as_sbe_batch *batch = walk(values, count);
    as_sbe_gather(batch, &into->task, 1);
    as_sbe_batch_close(batch);
}

static bool is_valid(const gathered *of, int64_t i) { return 0 == of->task.nulls || 0 != (of->validity[i / 8] >> i % 8 & 1); }

static void times_are_rounded_down(void)
{
    static const int64_t VALUES[] = { -1, -999, -1000, -1001, -2000, 0, 1, 999, 1000, 1001, INT64_MIN };
    static const int64_t FLOORS[] = { -1, -1, -1, -2, -2, 0, 0, 0, 1, 1, INT64_MIN / 1000 - 1 };
    gathered g;
    gather(&g, &(as_sbe_task){ .form = AS_SBE_FORM_LONG, .is_signed = true, .divisor = 1000 }, 8, (const uint64_t *)VALUES, 11);
    for (int i = 0; i < 11; i++)
    {
        CHECK_I64(((int64_t *)g.out)[i], FLOORS[i]);
    }
    CHECK_I64(g.task.nulls, 0);
    gather(&g, &(as_sbe_task){ .form = AS_SBE_FORM_LONG, .divisor = 1000 }, 8, (const uint64_t[]){ 999, 1000, 1999 }, 3);
    CHECK(0 == ((int64_t *)g.out)[0] && 1 == ((int64_t *)g.out)[1] && 1 == ((int64_t *)g.out)[2]);
}

static void times_that_do_not_fit_are_null(void)
{
    static const uint64_t VALUES[] = { INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX, 5 };
    gathered g;
    as_sbe_task task = { .form = AS_SBE_FORM_LONG, .column = { .has_null = true, .null_bits = UINT64_MAX } };
    gather(&g, &task, 8, VALUES, 4);
    CHECK_I64(g.task.nulls, 2);
    CHECK_I64(g.task.lost, 1);
    CHECK(is_valid(&g, 0) && !is_valid(&g, 1) && !is_valid(&g, 2) && is_valid(&g, 3));
    CHECK_I64(((int64_t *)g.out)[0], INT64_MAX);
    task.most = 100;
    gather(&g, &task, 8, VALUES, 4);
    CHECK_I64(g.task.lost, 2);
    CHECK(!is_valid(&g, 0) && is_valid(&g, 3));

    task = (as_sbe_task){ .form = AS_SBE_FORM_LONG, .is_signed = true, .factor = 1000 };
    gather(&g, &task, 8, (const uint64_t[]){ INT64_MAX / 1000, INT64_MAX / 1000 + 1, (uint64_t)(INT64_MIN / 1000 - 1) }, 3);
    CHECK_I64(((int64_t *)g.out)[0], INT64_MAX / 1000 * 1000);
    CHECK_I64(g.task.lost, 2);
    CHECK(is_valid(&g, 0) && !is_valid(&g, 1) && !is_valid(&g, 2));
}

/* By the loops made for a width, with and without a null, and by the one for all. */
static void decimals_keep_their_sign(void)
{
    static const int32_t WIDTHS[] = { 1, 2, 4, 8 };
    static const int64_t VALUES[] = { -5, 5, -128, 127, 0, -1 };
    for (size_t w = 0; w < 4; w++)
    {
        for (int kind = 0; kind < 3; kind++)
        {
            gathered g;
            const int64_t factor = 2 == kind ? 1000 : 1;
            const as_sbe_task task = { .form = AS_SBE_FORM_SIGNED_DECIMAL, .factor = factor,
                .column = { .has_null = 1 == kind, .null_bits = 0x7e } };
            gather(&g, &task, WIDTHS[w], (const uint64_t *)VALUES, 6);
            for (int i = 0; i < 6; i++)
            {
                CHECK(g.out[i] == (__int128)VALUES[i] * factor);
            }
            CHECK_I64(g.task.nulls, 0);
        }
    }
    gathered g;
    gather(&g, &(as_sbe_task){ .form = AS_SBE_FORM_DECIMAL }, 8, (const uint64_t[]){ UINT64_MAX, 1 }, 2);
    CHECK(g.out[0] == (__int128)UINT64_MAX && 1 == g.out[1]);
}

static void nulls_stand_in_their_rows(void)
{
    uint64_t values[100];
    gathered g;
    for (int form = AS_SBE_FORM_SAME; form <= AS_SBE_FORM_LONG; form++)
    {
        int64_t nulls = 0;
        for (int i = 0; i < 100; i++)
        {
            values[i] = 0 == i * i % 7 ? 200 : (uint64_t)i;
            nulls += 200 == values[i];
        }
        const as_sbe_task task = { .form = (as_sbe_form)form, .is_signed = true, .column = { .has_null = true, .null_bits = 200 } };
        gather(&g, &task, 4, values, 100);
        CHECK_I64(g.task.nulls, nulls);
        for (int i = 0; i < 100; i++)
        {
            CHECK_I64(is_valid(&g, i), 200 != values[i]);
        }
    }
}

static void enums_know_their_values(void)
{
    static const int64_t VALUES[] = { -300, 0, 7, 30000 };
    static const int16_t INDICES[] = { 4, 3, 2, 1 };
    static const int64_t GIVEN[] = { 30000, 7, 0, -300, 8, -301, 30001 };
    static const int16_t WANTED[] = { 1, 2, 3, 4, -1, -1, -1 };
    gathered g;
    const as_sbe_task task =
        { .form = AS_SBE_FORM_ENUM, .is_signed = true, .values = VALUES, .indices = INDICES, .value_count = 4 };
    gather(&g, &task, 2, (const uint64_t *)GIVEN, 7);
    for (int i = 0; i < 7; i++)
    {
        CHECK_I64(((int16_t *)g.out)[i], WANTED[i]);
    }
    CHECK_I64(g.task.unknown, 3);
}

static void decimals_are_rescaled_exactly_or_not_at_all(void)
{
    static const struct { int64_t mantissa; int8_t exponent; bool fits; int64_t value; } ROWS[] = {
        { 12, -1, true, 120 }, { -12, -1, true, -120 }, { 125, -3, false, 0 }, { -125, -3, false, 0 }, { 1250, -3, true, 125 },
        { 99999, -2, true, 99999 }, { -99999, -2, true, -99999 }, { 100000, -2, false, 0 }, { -100000, -2, false, 0 },
        { 1, 100, false, 0 }, { 0, 127, true, 0 }, { 1, -128, false, 0 },
    };
    enum { COUNT = sizeof(ROWS) / sizeof(ROWS[0]) };
    __int128 mantissas[COUNT];
    int8_t exponents[COUNT];
    __int128 out[COUNT];
    uint8_t validity[COUNT / 8 + 1] = { 0 };
    int64_t lost = 0;
    for (int i = 0; i < COUNT; i++)
    {
        mantissas[i] = ROWS[i].mantissa;
        exponents[i] = ROWS[i].exponent;
        lost += !ROWS[i].fits;
    }
    CHECK_I64(as_sbe_rescale(mantissas, exponents, 1, COUNT, 5, 2, NULL, out, validity), lost);
    for (int i = 0; i < COUNT; i++)
    {
        CHECK_I64(validity[i / 8] >> i % 8 & 1, ROWS[i].fits);
        CHECK_I64(out[i], ROWS[i].value);
    }
}

static void doubles_are_the_nearest(void)
{
    static const struct { int64_t mantissa; int8_t exponent; double value; } ROWS[] = {
        { 1, -1, 0.1 }, { -3, -1, -0.3 }, { 9007199254740993, 1, 90071992547409930.0 }, { INT64_MAX, -3, 9223372036854775.807 },
        { INT64_MIN, 0, -9223372036854775808.0 }, { 5, 23, 5e23 }, { 123456789, -25, 123456789e-25 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        const __int128 mantissa = ROWS[i].mantissa;
        double out = 0;
        as_sbe_to_double(&mantissa, &ROWS[i].exponent, 0, 1, &out);
        CHECK(0 == memcmp(&out, &ROWS[i].value, sizeof(out)));
    }
}

static double double_of(uint64_t bits, int32_t width, bool is_signed, int8_t exponent)
{
    const int shift = 64 - 8 * width;
    const __int128 mantissa = is_signed ? (__int128)((int64_t)(bits << shift) >> shift) : (__int128)(bits << shift >> shift);
    double out;
    as_sbe_to_double(&mantissa, &exponent, 0, 1, &out);
    return out;
}

static void check_doubles(const gathered *g, const uint64_t *values, int64_t count, uint64_t null)
{
    for (int64_t i = 0; i < count; i++)
    {
        const int32_t width = g->task.column.width;
        const int8_t exponent = (int8_t)(g->task.has_exponent ? (int32_t)(values[i] >> 32 & 0xff) : g->task.shift);
        const uint64_t mantissa = 8 == width ? values[i] : values[i] & (((uint64_t)1 << 8 * width) - 1);
        const bool is_null = g->task.column.has_null && mantissa == null;
        const double wanted = double_of(mantissa, width, g->task.is_signed, exponent);
        CHECK_I64(is_valid(g, i), !is_null);
        CHECK(is_null || 0 == memcmp((const double *)g->out + i, &wanted, sizeof(wanted)));
    }
}

/* Mantissas at the ends of what the loop in vectors takes, of what is exact, and of 64 bits: each among small ones, so that it alone
 * decides on the loop. */
static void doubles_of_wide_mantissas(void)
{
    static const int64_t EDGES[] = { 0, (int64_t)1 << 51, ((int64_t)1 << 51) + 1, -((int64_t)1 << 51), -((int64_t)1 << 51) - 1,
        (int64_t)1 << 53, ((int64_t)1 << 53) + 1, -((int64_t)1 << 53) - 1, INT64_MAX, INT64_MIN, INT64_MIN + 1, -1, -7 };
    static const int32_t SHIFTS[] = { 0, -8, 3, 22, -22, 23, -23, -30 };
    uint64_t values[100];
    gathered g;
    for (size_t edge = 0; edge < sizeof(EDGES) / sizeof(EDGES[0]); edge++)
    {
        for (int i = 0; i < 100; i++)
        {
            values[i] = (uint64_t)(i * 1234567);
        }
        values[37] = (uint64_t)EDGES[edge];
        for (size_t shift = 0; shift < sizeof(SHIFTS) / sizeof(SHIFTS[0]); shift++)
        {
            for (int kind = 0; kind < 8; kind++)
            {
                const as_sbe_task task = { .form = AS_SBE_FORM_DOUBLE, .is_signed = kind & 1, .shift = SHIFTS[shift],
                    .factor = 0 != (kind & 4) ? 2 : 1, /* which doubles do without: the loop for any task */
                    .column = { .has_null = 0 != (kind & 2), .null_bits = (uint64_t)INT64_MIN } };
                gather(&g, &task, 8, values, 100);
                check_doubles(&g, values, 100, (uint64_t)INT64_MIN);
            }
        }
    }
}

/* Of every width, with all exponents there are. */
static void doubles_by_exponents_of_their_messages(void)
{
    static const int32_t WIDTHS[] = { 1, 2, 4 };
    uint64_t values[512];
    gathered g;
    for (int64_t i = 0; i < 512; i++)
    {
        values[i] = (uint64_t)(uint32_t)(int32_t)(i % 3 * 21474839 - 21474000) | (uint64_t)(uint8_t)i << 32;
    }
    for (size_t width = 0; width < 3; width++)
    {
        for (int kind = 0; kind < 4; kind++)
        {
            as_sbe_task task = { .form = AS_SBE_FORM_DOUBLE, .is_signed = kind & 1, .has_exponent = true,
                .exponent = { .offset = 4, .width = 1, .repeat = 1, .field_end = 5 },
                .column = { .has_null = 0 != (kind & 2), .null_bits = values[1] & (((uint64_t)1 << 8 * WIDTHS[width]) - 1) } };
            gather(&g, &task, WIDTHS[width], values, 512);
            check_doubles(&g, values, 512, task.column.null_bits);
            /* Small ones of both signs, and beyond the exact ones only above or only below: each alone decides on the loop. */
            static const struct { int first; int count; } PARTS[] = { { 240, 32 }, { 10, 40 }, { 200, 40 } };
            for (size_t part = 0; part < 3; part++)
            {
                gather(&g, &task, WIDTHS[width], values + PARTS[part].first, PARTS[part].count);
                check_doubles(&g, values + PARTS[part].first, PARTS[part].count, task.column.null_bits);
            }
            task.exponent.field_end = 9;
            gather(&g, &task, WIDTHS[width], values, 512);
            CHECK_I64(g.task.nulls, 512);
        }
    }
}

static void values_gathered_during_the_walk(void)
{
    static const int64_t SHORT_AT[] = { -1, 0, 1, 1023, 1024, 1025, 3000, 3499 };
    static uint64_t values[3500];
    static gathered during;
    static gathered after;
    for (int64_t i = 0; i < 3500; i++)
    {
        values[i] = 0 == i % 7 ? 200 : (uint64_t)i + 1000;
    }
    for (size_t i = 0; i < sizeof(SHORT_AT) / sizeof(SHORT_AT[0]); i++)
    {
        const as_sbe_task task = { .form = AS_SBE_FORM_LONG, .is_signed = true, .column = { .has_null = true, .null_bits = 200 } };
        prepare(&during, &task, 8);
        prepare(&after, &task, 8);
        during.task.nulls = 5; /* of a walk before */
        as_sbe_batch_close(walk_with(values, 3500, SHORT_AT[i], &during.task));
        as_sbe_batch *batch = walk_with(values, 3500, SHORT_AT[i], NULL);
        as_sbe_gather(batch, &after.task, 1);
        as_sbe_batch_close(batch);
        CHECK_I64(during.task.nulls, 500 + (SHORT_AT[i] >= 0 && 0 != SHORT_AT[i] % 7));
        CHECK_I64(during.task.nulls, after.task.nulls);
        CHECK(0 == memcmp(during.validity, after.validity, 3500 / 8));
        CHECK(0 == memcmp(during.out, after.out, 3500 * sizeof(int64_t)));
    }
}

static void wide_vectors_are_found_where_the_cpu_has_them(void)
{
#if defined(__x86_64__)
    CHECK_I64(asi_sbe_has_avx2, cpuinfo_has("avx2"));
#endif
}

int main(void)
{
    RUN(wide_vectors_are_found_where_the_cpu_has_them);
    RUN(times_are_rounded_down);
    RUN(times_that_do_not_fit_are_null);
    RUN(decimals_keep_their_sign);
    RUN(nulls_stand_in_their_rows);
    RUN(enums_know_their_values);
    RUN(decimals_are_rescaled_exactly_or_not_at_all);
    RUN(doubles_are_the_nearest);
    RUN(doubles_of_wide_mantissas);
    RUN(doubles_by_exponents_of_their_messages);
    RUN(values_gathered_during_the_walk);
    return 0;
}
