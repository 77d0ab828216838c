/* How many files this process has open and may have. Any thread; for the limit alone: before others look at it. */
#ifndef ASI_BASE_OPEN_FILES_H
#define ASI_BASE_OPEN_FILES_H

#include <stdint.h>

/* A service manager's soft limit of 1,024 is meant for programs that use select(): we go up to the hard one, as a virtual machine does. */
void asi_open_files_raise_limit(void);
/* INT64_MAX: there is none, or it can't be told. */
int64_t asi_open_files_limit(void);
/* Reads a folder of as many entries. -1: it can't be told. */
int64_t asi_open_files_count(void);

#endif
