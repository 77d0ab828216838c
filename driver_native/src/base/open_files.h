/* Number of files that this process has open, and its limit. Any thread; raise the limit before other threads read it. */
#ifndef ASI_BASE_OPEN_FILES_H
#define ASI_BASE_OPEN_FILES_H

#include <stdint.h>

/* A service manager's soft limit of 1,024 is meant for programs that use select(). This raises it to the hard limit, as a
   Java virtual machine does. */
void asi_open_files_raise_limit(void);
/* INT64_MAX: no limit, or unknown. */
int64_t asi_open_files_limit(void);
/* Reads a directory with one entry per open file. -1: unknown. */
int64_t asi_open_files_count(void);

#endif
