/* What the kernel says of the CPU, to compare with. */
#ifndef AS_TESTS_CPUINFO_H
#define AS_TESTS_CPUINFO_H

#include <stdbool.h>

#include "check.h"

/* Whether the line "flags" of /proc/cpuinfo has the word: only what the CPU has and the kernel lets programs use. */
static inline bool cpuinfo_has(const char *word)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    CHECK(NULL != file);
    static char line[16384];
    bool has = false;
    while (!has && NULL != fgets(line, sizeof(line), file))
    {
        if (0 == strncmp(line, "flags", 5))
        {
            for (char *rest = line, *flag; !has && NULL != (flag = strtok_r(rest, " \t\n", &rest));)
            {
                has = 0 == strcmp(flag, word);
            }
        }
    }
    fclose(file);
    return has;
}

#endif
