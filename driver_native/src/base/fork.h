/* Whether this is the process that it was: a forked child has its parent's memory and none of its threads. */
#ifndef ASI_BASE_FORK_H
#define ASI_BASE_FORK_H

#include "base/result.h"

/* Before the first look at the generation; any thread, any number of times. */
as_result asi_fork_watch(void) AS_MUST_USE;
/* How many forks are between this process and its ancestor that watched first. Compared, it tells a child without the system call
 * that getpid is, so a client can ask in each of its calls. Any thread. */
int32_t asi_fork_generation(void);

#endif
