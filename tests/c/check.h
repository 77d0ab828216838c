/* The whole C test framework: a test is a function, main() lists them with RUN or RUN_IN, CHECK says what did not hold and where.
 * A failed CHECK ends the program with 1; there is no skip. */
#ifndef AS_TESTS_CHECK_H
#define AS_TESTS_CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_types.h"

#define CHECK(condition)                                                                              \
    do                                                                                                \
    {                                                                                                 \
        if (!(condition))                                                                             \
        {                                                                                             \
            fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", __FILE__, __LINE__,          \
                #condition, as_error_text());                                                         \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

#define CHECK_I64(actual, expected)                                                                   \
    do                                                                                                \
    {                                                                                                 \
        const int64_t check_actual = (int64_t)(actual);                                               \
        const int64_t check_expected = (int64_t)(expected);                                           \
        if (check_actual != check_expected)                                                           \
        {                                                                                             \
            fprintf(stderr, "%s:%d: %s is %" PRId64 ", expected %" PRId64 "; last error: %s\n",       \
                __FILE__, __LINE__, #actual, check_actual, check_expected, as_error_text());          \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

#define CHECK_TEXT(actual, expected)                                                                  \
    do                                                                                                \
    {                                                                                                 \
        const char *check_actual = (actual);                                                          \
        const char *check_expected = (expected);                                                      \
        if (NULL == check_actual || 0 != strcmp(check_actual, check_expected))                        \
        {                                                                                             \
            fprintf(stderr, "%s:%d: %s is '%s', expected '%s'\n", __FILE__, __LINE__, #actual,        \
                NULL == check_actual ? "(null)" : check_actual, check_expected);                      \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

#define RUN(test)                                                                                     \
    do                                                                                                \
    {                                                                                                 \
        test();                                                                                       \
        printf("ok %s\n", #test);                                                                     \
        fflush(stdout);                                                                               \
    } while (0)

/* A test that is given a fixture; `open` and `close` are expressions with `fixture`. */
#define RUN_IN(type, open, test, close)                                                               \
    do                                                                                                \
    {                                                                                                 \
        type fixture;                                                                                 \
        open;                                                                                         \
        test(&fixture);                                                                               \
        close;                                                                                        \
        printf("ok %s\n", #test);                                                                     \
        fflush(stdout);                                                                               \
    } while (0)

#endif
