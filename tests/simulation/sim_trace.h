/* The trace of a run: a ring of the last events, the digest of all events, and the end of a run that failed. Called by every
 * file of the simulation. Process-wide, because each seed runs in a process of its own. */
#ifndef AS_SIM_TRACE_H
#define AS_SIM_TRACE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_FOLDER "/dev/shm/as-sim-" /* a run's directory: this and six letters of chance */
#define SIM_FOLDER_CHANCE 6

/* `now_ns` is read at each event; `is_verbose` prints them as they come. */
void sim_trace_open(const int64_t *now_ns, bool is_verbose);
/* Into the ring and the digest. */
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Into the digest alone: deliveries and the like, too many to be kept. */
void sim_digest(int64_t a, int64_t b, int64_t c);
uint64_t sim_digest_value(void);
/* Ends the process with 1 after printing the check, what it saw, and the last events. */
_Noreturn void sim_fail(const char *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
