/* The effect of another thread at one exact instant, without another thread: the first access to one page calls the test, then
 * continues. For orders of stores and loads that only a thread in between could observe. The accessing instruction itself
 * raises the fault, so it happens at the same place each time, and sanitizers run the handler at once. */
#ifndef AS_TESTS_TRAP_H
#define AS_TESTS_TRAP_H

#include <signal.h>
#include <sys/mman.h>

#include "check.h"

#define TRAP_LENGTH 4096

typedef struct trap
{
    uint8_t *page;
    void (*on_touch)(void *context);
    void *context;
    int touches;
} trap;

static trap trap_armed;

static inline void trap_on_fault(int signal_number, siginfo_t *info, void *machine)
{
    (void)machine;
    const uint8_t *at = info->si_addr;
    if (0 != trap_armed.touches || at < trap_armed.page || at >= trap_armed.page + TRAP_LENGTH)
    {
        signal(signal_number, SIG_DFL); /* a fault of its own */
        return;
    }
    trap_armed.touches++;
    if (0 != mprotect(trap_armed.page, TRAP_LENGTH, PROT_READ | PROT_WRITE))
    {
        abort();
    }
    trap_armed.on_touch(trap_armed.context);
}

/* `page` begins a page of memory. */
static inline void trap_arm(void *page, void (*on_touch)(void *context), void *context)
{
    const struct sigaction action = { .sa_sigaction = trap_on_fault, .sa_flags = SA_SIGINFO };
    trap_armed = (trap){ .page = page, .on_touch = on_touch, .context = context };
    CHECK_I64(sigaction(SIGSEGV, &action, NULL), 0);
    CHECK_I64(mprotect(page, TRAP_LENGTH, PROT_NONE), 0);
}

static inline void trap_check_touched(void)
{
    signal(SIGSEGV, SIG_DFL);
    CHECK_I64(trap_armed.touches, 1);
}

#endif
