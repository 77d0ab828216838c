/* Goal: alignment and wrapping arithmetic hold at the edges of their types. Method: a table of values. */
#include "base/bits.h"

#include "check.h"

static void aligns_up(void)
{
    static const struct { int64_t value; int64_t to; int64_t expected; } ROWS[] = {
        { 0, 32, 0 }, { 1, 32, 32 }, { 32, 32, 32 }, { 33, 32, 64 }, { 7, 8, 8 }, { INT32_MAX, 32, 2147483648LL }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        CHECK_I64(asi_align_i64(ROWS[i].value, ROWS[i].to), ROWS[i].expected);
    }
}

static void tells_powers_of_two(void)
{
    CHECK(asi_is_power_of_two(1));
    CHECK(asi_is_power_of_two(65536));
    CHECK(!asi_is_power_of_two(0));
    CHECK(!asi_is_power_of_two(-65536));
    CHECK(!asi_is_power_of_two(INT64_MIN));
    CHECK(!asi_is_power_of_two(65535));
    CHECK_I64(asi_log2(65536), 16);
}

static void wraps(void)
{
    CHECK_I64(asi_wrap_add(INT32_MAX, 1), INT32_MIN);
    CHECK_I64(asi_wrap_sub(INT32_MIN, 1), INT32_MAX);
    CHECK_I64(asi_wrap_sub(0, INT32_MIN), INT32_MIN);
    CHECK_I64(asi_wrap_add_i64(INT64_MAX, 1), INT64_MIN);
    CHECK_I64(asi_wrap_sub_i64(INT64_MIN, 1), INT64_MAX);
}

int main(void)
{
    RUN(aligns_up);
    RUN(tells_powers_of_two);
    RUN(wraps);
    return 0;
}
