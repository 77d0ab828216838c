/* Goal: zeroing past the caches touches every byte of the range and none beside it. Method: every length up to some lines, at every
 * place within a line. */
#include "base/zero.h"

#include "check.h"

#define LINE 64
#define LENGTH_MAX (4 * LINE)

static void zeroes_the_range_and_nothing_else(void)
{
    uint8_t memory[LENGTH_MAX + 3 * LINE];
    for (int64_t begin = LINE; begin < 2 * LINE; begin++)
    {
        for (int64_t length = 0; length <= LENGTH_MAX; length++)
        {
            memset(memory, 0xff, sizeof(memory));
            asi_zero_uncached(memory + begin, (size_t)length);
            for (int64_t i = 0; i < (int64_t)sizeof(memory); i++)
            {
                CHECK_I64(memory[i], i >= begin && i < begin + length ? 0 : 0xff);
            }
        }
    }
}

int main(void)
{
    RUN(zeroes_the_range_and_nothing_else);
    return 0;
}
