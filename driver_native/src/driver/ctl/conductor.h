/* Runs the conductor: the one thread that owns every resource of the driver. A duty cycle reads the clock once, takes at most one
 * client command, runs the timers that are due, and updates the publisher limits. Spec: 03 §13.
 *
 * driver.c opens it over a mapped CnC file. It runs on its own thread, on the caller's thread, or by invocation. The other files
 * of ctl/ work on its state; they take the time from now_ns and now_ms, never from the clock. Thread rule: one thread, except
 * idle_expired, which any thread may load. */
#ifndef ASI_DRIVER_CTL_CONDUCTOR_H
#define ASI_DRIVER_CTL_CONDUCTOR_H

#include "driver/ctl/state.h"

/* Initialises ring, broadcast, counters and error log in a new CnC file. After that only the file's version is missing for
 * clients: the system counters exist, one correlation id is consumed, heartbeat = now. Spec: 01 §1.3 steps 5-6. `mapped_bytes` is
 * the initial value of "bytes currently mapped". */
as_result asi_conductor_open(asi_conductor *conductor, const asi_driver_settings *settings, asi_cnc *cnc, asi_clock clock,
    asi_rand rand, int64_t mapped_bytes) AS_MUST_USE;
/* Runs one duty cycle; returns its work count. */
int asi_conductor_do_work(asi_conductor *conductor);
/* Deletes the log buffers, frees the counters, then marks the CnC file closed (heartbeat -1). */
void asi_conductor_close(asi_conductor *conductor);

#endif
