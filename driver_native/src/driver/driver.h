/* Opens a driver with given dependencies: as_driver_open passes the system's clock, random numbers and network, and tests pass
 * their own. Called by driver.c and tests. Thread rule: as as_driver.h. */
#ifndef ASI_DRIVER_DRIVER_H
#define ASI_DRIVER_DRIVER_H

#include "base/console.h"
#include "base/service.h"
#include "driver/ctl/conductor.h"

typedef struct asi_driver_dependencies
{
    asi_clock clock;
    asi_rand rand;
    uint64_t secret;            /* not guessable: seeds nothing that the driver sends but MACs */
    asi_udp_ops ops;            /* used by the threads of all three agents */
    asi_name_resolver resolver;
    asi_error_sink errors;
} asi_driver_dependencies;

as_result asi_driver_open_with(const asi_driver_settings *settings, const asi_driver_dependencies *dependencies,
    as_on_termination on_termination, void *context, as_driver **driver) AS_MUST_USE;
/* Uses the kernel's network and the system's resolver. */
as_result asi_driver_open(const asi_driver_settings *settings, asi_clock clock, asi_rand rand, as_on_termination on_termination,
    void *context, as_driver **driver) AS_MUST_USE;
/* The state, with all that the conductor lent to sender and receiver: for tests that audit it between the cycles of a driver
 * without threads of its own. */
const asi_conductor *asi_driver_conductor(const as_driver *driver);
/* As as_driver_run_main, with reports to a service manager by this thread, and lines of the service log (NULL: none) about
 * errors that repeat. */
void asi_driver_run_watched(as_driver *driver, const bool *keep_running, asi_watchdog watchdog, asi_console *console);

#endif
