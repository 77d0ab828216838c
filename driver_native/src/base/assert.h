/* Assertions for bugs in this code only; untrusted bytes are checked, and the check returns an as_result. AS_STATIC_ASSERT:
 * layouts and relations between constants. AS_ASSERT: state changes; on in every build unless CMake gets
 * AERON_SPARK_ASSERTS=OFF. docs/decisions/40-assertions.md says what is asserted, and what it costs. */
#ifndef ASI_BASE_ASSERT_H
#define ASI_BASE_ASSERT_H

#define AS_STATIC_ASSERT(condition, text) _Static_assert(condition, text)

#if defined(AS_NO_ASSERTS)
#define AS_ASSERT(condition) ((void)(0 && (condition)))
#else
#define AS_ASSERT(condition)                                       \
    do                                                             \
    {                                                              \
        if (__builtin_expect(!(condition), 0))                     \
        {                                                          \
            asi_assert_failed(#condition, __FILE__, __LINE__);     \
        }                                                          \
    } while (0)
#endif

/* A legal move of a state machine: `moves[from]` has bit `to`. */
#define AS_ASSERT_MOVE(moves, from, to) AS_ASSERT(0 != ((moves)[from] >> (to) & 1U))

/* Prints the condition and its place on stderr, and aborts. */
__attribute__((cold, noreturn)) void asi_assert_failed(const char *condition, const char *file, int line);

#endif
