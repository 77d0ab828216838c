/* See fork.h. The count belongs to the process, as does what it counts: it is the one variable here that no caller owns. */
#include "base/fork.h"

#include <pthread.h>

#include "base/atomic.h"

static int32_t generation;     /* written in a child before its fork returns, when it has one thread; no order is needed */
static int watch_error;        /* by pthread_once */
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void on_fork(void) { asi_store_relaxed_i32(&generation, asi_load_relaxed_i32(&generation) + 1); }
static void watch(void) { watch_error = pthread_atfork(NULL, NULL, on_fork); }

as_result asi_fork_watch(void)
{
    pthread_once(&watched, watch);
    return 0 == watch_error ? AS_OK : asi_fail_errno(AS_E_INTERNAL, watch_error, "no memory to tell forked children");
}

int32_t asi_fork_generation(void) { return asi_load_relaxed_i32(&generation); }
