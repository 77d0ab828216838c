/* Texts get one number for each value, in the order of their first rows. Method: each answer is compared with that of a search
 * through all rows before, over texts of all lengths around the width of a word, in memory that ends with the last one. */
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_sbe.h"
#include "check.h"

#define ROWS 3000
#define MOST 1024

typedef struct texts
{
    uint8_t *bytes; /* exactly as many as there are */
    int32_t offsets[ROWS + 1];
    int64_t count;
} texts;

static void add(texts *to, const void *text, int32_t length)
{
    const int32_t at = to->offsets[to->count];
    to->bytes = realloc(to->bytes, (size_t)(at + length + (0 == at + length)));
    CHECK(NULL != to->bytes);
    memcpy(to->bytes + at, text, (size_t)length);
    to->offsets[++to->count] = at + length;
}

static bool is_same(const texts *of, int64_t a, int64_t b)
{
    const int32_t length = of->offsets[a + 1] - of->offsets[a];
    return of->offsets[b + 1] - of->offsets[b] == length &&
        0 == memcmp(of->bytes + of->offsets[a], of->bytes + of->offsets[b], (size_t)length);
}

/* Compares each row with the first of its number, and each first row with all before it. */
static void check(const texts *of, int64_t expected)
{
    static int32_t numbers[ROWS];
    static int64_t first_rows[MOST];
    const int64_t found = as_sbe_distinct(of->bytes, of->offsets, of->count, numbers, first_rows, MOST);
    CHECK_I64(found, expected);
    int64_t next = 0;
    for (int64_t row = 0; row < of->count; row++)
    {
        CHECK(numbers[row] >= 0 && numbers[row] <= next && numbers[row] < found);
        if (numbers[row] == next)
        {
            CHECK_I64(first_rows[next], row);
            for (int64_t before = 0; before < next; before++)
            {
                CHECK(!is_same(of, first_rows[before], row));
            }
            next++;
        }
        CHECK(is_same(of, first_rows[numbers[row]], row));
    }
    CHECK_I64(next, found);
}

static void values_have_one_number_each(void)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz";
    texts all = { .count = 0 };
    for (int round = 0; round < 3; round++)
    {
        for (int32_t length = 0; length <= 26; length++)
        {
            add(&all, LETTERS, length);
        }
        add(&all, "abcdefgh\0", 9); /* a zero counts */
        add(&all, "abcdefgX", 8);   /* one word that differs in its last byte */
        add(&all, "Xbcdefghabc", 11);
        add(&all, "ab\0", 3);
    }
    check(&all, 27 + 4);
    free(all.bytes);
}

static void texts_at_the_end_of_memory(void)
{
    for (int32_t length = 0; length <= 16; length++)
    {
        texts all = { .count = 0 };
        add(&all, "0123456789abcdef", length);
        check(&all, 1);
        add(&all, "0123456789abcdef", length);
        check(&all, 1);
        free(all.bytes);
    }
}

static void more_values_than_asked_for(void)
{
    int32_t numbers[4];
    int64_t first_rows[2];
    texts all = { .count = 0 };
    add(&all, "a", 1);
    add(&all, "b", 1);
    add(&all, "a", 1);
    CHECK_I64(as_sbe_distinct(all.bytes, all.offsets, all.count, numbers, first_rows, 2), 2);
    add(&all, "c", 1);
    CHECK_I64(as_sbe_distinct(all.bytes, all.offsets, all.count, numbers, first_rows, 2), -1);
    free(all.bytes);
}

static void no_more_values_than_there_is_room_for(void)
{
    static int32_t numbers[ROWS];
    static int64_t first_rows[ROWS];
    texts all = { .count = 0 };
    for (int32_t i = 0; i < 2 * MOST; i++)
    {
        add(&all, &i, sizeof(i));
    }
    CHECK_I64(as_sbe_distinct(all.bytes, all.offsets, all.count, numbers, first_rows, ROWS), -1);
    free(all.bytes);
}

/* The text of eight bytes with this hash: the steps of sbe_distinct.c, backwards. */
static uint64_t text_of_hash(uint64_t hash)
{
    const uint64_t inverse = UINT64_C(0xF1DE83E19937733D); /* times 0x9E3779B97F4A7C15 it is 1 */
    const uint64_t before_tail = (hash ^ hash >> 32) * inverse;
    return (before_tail ^ before_tail >> 32) * inverse ^ 8;
}

static void texts_chosen_for_one_hash_take_no_longer(void)
{
    static int32_t numbers[ROWS];
    static int64_t first_rows[MOST];
    texts all = { .count = 0 };
    for (uint64_t i = 0; i < 16; i++)
    {
        const uint64_t text = text_of_hash(i << 32 | 7);
        add(&all, &text, sizeof(text));
    }
    check(&all, 16);
    for (uint64_t i = 16; i < 20; i++)
    {
        const uint64_t text = text_of_hash(i << 32 | 7);
        add(&all, &text, sizeof(text));
    }
    CHECK_I64(as_sbe_distinct(all.bytes, all.offsets, all.count, numbers, first_rows, MOST), -1);
    free(all.bytes);
}

int main(void)
{
    RUN(values_have_one_number_each);
    RUN(texts_at_the_end_of_memory);
    RUN(more_values_than_asked_for);
    RUN(no_more_values_than_there_is_room_for);
    RUN(texts_chosen_for_one_hash_take_no_longer);
    return 0;
}
