/* Zeroes memory that is not read or written soon, such as a log larger than the caches that is cleaned for its next use.
 *
 * The stores bypass the caches: this takes half the time of memset and evicts nothing. If the memory is soon written again
 * from a cache, memset is better. Thread rule: any. The zeroes are visible before any later store of the thread, of whatever
 * kind. */
#ifndef ASI_BASE_ZERO_H
#define ASI_BASE_ZERO_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>

static inline void asi_zero_uncached(uint8_t *at, size_t length)
{
    const size_t line = 64;
    const size_t before = (size_t)(-(uintptr_t)at & (line - 1));
    if (length < before + line)
    {
        memset(at, 0, length);
        return;
    }
    memset(at, 0, before);
    const __m128i zero = _mm_setzero_si128();
    uint8_t *to = at + before;
    for (uint8_t *end = to + (length - before) / line * line; to < end; to += line)
    {
        _mm_stream_si128((__m128i *)(void *)to, zero);
        _mm_stream_si128((__m128i *)(void *)(to + 16), zero);
        _mm_stream_si128((__m128i *)(void *)(to + 32), zero);
        _mm_stream_si128((__m128i *)(void *)(to + 48), zero);
    }
    memset(to, 0, (size_t)(at + length - to));
    _mm_sfence(); /* these stores are not ordered: the caller's release store would overtake them */
}
#else
static inline void asi_zero_uncached(uint8_t *at, size_t length) { memset(at, 0, length); }
#endif

#endif
