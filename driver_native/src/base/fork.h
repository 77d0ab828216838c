/* Detects a fork: a forked child has its parent's memory and none of its threads. */
#ifndef ASI_BASE_FORK_H
#define ASI_BASE_FORK_H

#include "base/result.h"

/* Call before the generation is read for the first time; any thread, any number of times. */
as_result asi_fork_watch(void) AS_MUST_USE;
/* Number of forks between this process and its ancestor that called asi_fork_watch first. Comparing generations identifies a
 * child without the system call of getpid, so a client can do it in each call. Any thread. */
int32_t asi_fork_generation(void);

#endif
