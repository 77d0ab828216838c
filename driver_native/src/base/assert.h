/* Assertions for bugs in this code only; untrusted bytes are checked, and the check returns an as_result. AS_STATIC_ASSERT:
 * layouts and relations between constants. AS_ASSERT: stays enabled in release builds. */
#ifndef ASI_BASE_ASSERT_H
#define ASI_BASE_ASSERT_H

#include <stdio.h>
#include <stdlib.h>

#define AS_STATIC_ASSERT(condition, text) _Static_assert(condition, text)

#define AS_ASSERT(condition)                                                                              \
    do                                                                                                    \
    {                                                                                                     \
        if (__builtin_expect(!(condition), 0))                                                            \
        {                                                                                                 \
            fprintf(stderr, "aeron_spark bug: %s is false at %s:%d\n", #condition, __FILE__, __LINE__);   \
            abort();                                                                                      \
        }                                                                                                 \
    } while (0)

#endif
