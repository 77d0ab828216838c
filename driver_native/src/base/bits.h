/* Alignment, powers of two, wrapping 32-bit arithmetic, and unaligned little-endian access. Pure; any thread. */
#ifndef ASI_BASE_BITS_H
#define ASI_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "shared memory, wire and archive formats are little-endian and accessed in place; a big-endian port needs byte swaps"
#endif

#define ASI_CACHE_LINE 64

static inline int64_t asi_align_i64(int64_t value, int64_t power_of_two)
{
    return (value + (power_of_two - 1)) & ~(power_of_two - 1);
}

static inline int32_t asi_align_i32(int32_t value, int32_t power_of_two)
{
    return (int32_t)asi_align_i64(value, power_of_two);
}

static inline bool asi_is_power_of_two(int64_t value) { return value > 0 && 0 == (value & (value - 1)); }

static inline int32_t asi_log2(int64_t power_of_two) { return __builtin_ctzll((unsigned long long)power_of_two); }

/* Term ids wrap, and positions read from shared memory can have any value. Signed overflow is undefined in C, so the sums are
 * computed unsigned. */
static inline int32_t asi_wrap_sub(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }
static inline int32_t asi_wrap_add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

static inline int64_t asi_wrap_sub_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline int64_t asi_wrap_add_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

static inline bool asi_bytes_are_zero(const uint8_t *bytes, int64_t length)
{
    return length <= 0 || (0 == bytes[0] && 0 == memcmp(bytes, bytes + 1, (size_t)length - 1));
}

static inline int32_t asi_get_i32(const void *from)
{
    int32_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline int64_t asi_get_i64(const void *from)
{
    int64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline uint16_t asi_get_u16(const void *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline void asi_put_i32(void *to, int32_t value) { memcpy(to, &value, sizeof(value)); }
static inline void asi_put_i64(void *to, int64_t value) { memcpy(to, &value, sizeof(value)); }
static inline void asi_put_u16(void *to, uint16_t value) { memcpy(to, &value, sizeof(value)); }

#endif
