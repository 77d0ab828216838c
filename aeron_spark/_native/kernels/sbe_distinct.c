/* Distinct texts of a column. See as_sbe.h. */
#include <string.h>

#include "aeron_spark/as_sbe.h"

#define SLOTS 4096 /* a power of two; a quarter of them at most are in use */
#define MAX_DISTINCT (SLOTS / 4)
/* Texts that somebody chose to have one hash cost no more than this for each row. */
#define MAX_PROBES 16

typedef struct texts
{
    const uint8_t *bytes;
    const int32_t *offsets;
    int64_t end; /* of all bytes */
} texts;

static inline uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

/* `length` below 8. Loads of 8 bytes at once, except near the end of all texts. */
static inline uint64_t short_word(const texts *all, int64_t at, int64_t length)
{
    uint64_t word = 0;
    if (all->end - at >= 8)
    {
        memcpy(&word, all->bytes + at, 8);
        return word & ((UINT64_C(1) << 8 * length) - 1);
    }
    memcpy(&word, all->bytes + at, (size_t)length);
    return word;
}

/* What tells a text from others: its bytes behind the last whole word, which are all of a short one, its hash and its length. */
typedef struct text_key
{
    uint64_t tail;
    uint64_t hash;
    int64_t length;
} text_key;

static inline text_key key_of(const texts *all, int64_t at, int64_t length)
{
    uint64_t hash = (uint64_t)length;
    int64_t left = length;
    for (; left >= 8; at += 8, left -= 8)
    {
        uint64_t word;
        memcpy(&word, all->bytes + at, 8);
        hash = mixed(hash, word);
    }
    const uint64_t tail = short_word(all, at, left);
    return (text_key){ .tail = tail, .hash = mixed(hash, tail), .length = length };
}

static inline bool is_same(const texts *all, int64_t row, const text_key *of_row, int64_t at, const text_key *key)
{
    return of_row->tail == key->tail && of_row->length == key->length &&
        (key->length < 8 || 0 == memcmp(all->bytes + all->offsets[row], all->bytes + at, (size_t)key->length));
}

int64_t as_sbe_distinct(
    const uint8_t *bytes, const int32_t *offsets, int64_t count, int32_t *numbers, int64_t *first_rows, int64_t capacity)
{
    const texts all = { .bytes = bytes, .offsets = offsets, .end = offsets[count] };
    text_key keys[MAX_DISTINCT];
    int16_t slots[SLOTS]; /* number and 1; 0: free */
    int64_t found = 0;
    memset(slots, 0, sizeof(slots));
    capacity = capacity < MAX_DISTINCT ? capacity : MAX_DISTINCT;
    for (int64_t row = 0; row < count; row++)
    {
        const int64_t at = offsets[row];
        const text_key key = key_of(&all, at, offsets[row + 1] - at);
        uint64_t slot = key.hash % SLOTS;
        int64_t probes = 0;
        while (0 != slots[slot] && !is_same(&all, first_rows[slots[slot] - 1], &keys[slots[slot] - 1], at, &key))
        {
            slot = (slot + 1) % SLOTS;
            if (++probes > MAX_PROBES)
            {
                return -1;
            }
        }
        if (0 == slots[slot])
        {
            if (found == capacity)
            {
                return -1;
            }
            first_rows[found] = row;
            keys[found] = key;
            slots[slot] = (int16_t)++found;
        }
        numbers[row] = slots[slot] - 1;
    }
    return found;
}
