/* The conductor: the one thread that owns every resource of the driver. Its duty cycle reads the clock once, takes at most one
 * client command, runs the timers when due, and moves the publications' limits. Spec: 03 §13.
 *
 * Called by driver.c, which opens it over a mapped CnC file and runs it on a thread, in the caller's, or invoked. The other
 * files of ctl/ are its parts and work on its state; they take the time from now_ns and now_ms, never from the clock.
 * Thread rule: one thread, except idle_expired, which any thread may load. */
#ifndef ASI_DRIVER_CTL_CONDUCTOR_H
#define ASI_DRIVER_CTL_CONDUCTOR_H

#include "driver/ctl/state.h"

/* Initialises ring, broadcast, counters and error log in a fresh CnC file and makes it ready for clients but for its version:
 * system counters, one correlation id consumed, heartbeat = now. Spec: 01 §1.3 steps 5-6. `mapped_bytes` is the first value
 * of "bytes currently mapped". */
as_result asi_conductor_open(asi_conductor *conductor, const asi_driver_settings *settings, asi_cnc *cnc, asi_clock clock,
    asi_rand rand, int64_t mapped_bytes) AS_MUST_USE;
/* One duty cycle; returns its work count. */
int asi_conductor_do_work(asi_conductor *conductor);
/* Deletes log buffers, releases counters, then marks the CnC file closed (heartbeat -1). */
void asi_conductor_close(asi_conductor *conductor);

#endif
