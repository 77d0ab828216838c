/* Counts forks; see fork.h. The count belongs to the process, so it is the one variable here that no caller owns. */
#include "base/fork.h"

#include <pthread.h>

#include "base/atomic.h"

static int32_t generation;     /* written in a child before its fork returns, while it has one thread; needs no memory order */
static int watch_error;        /* set by pthread_once */
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void on_fork(void) { asi_store_relaxed_i32(&generation, asi_load_relaxed_i32(&generation) + 1); }
static void watch(void) { watch_error = pthread_atfork(NULL, NULL, on_fork); }

as_result asi_fork_watch(void)
{
    pthread_once(&watched, watch);
    return 0 == watch_error ? AS_OK :
        asi_fail_errno(AS_E_INTERNAL, watch_error, "cannot register the handler that detects forked children");
}

int32_t asi_fork_generation(void) { return asi_load_relaxed_i32(&generation); }
