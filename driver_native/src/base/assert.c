/* See assert.h. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void asi_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "aeron_spark bug: %s is false at %s:%d\n", condition, file, line);
    abort();
}
