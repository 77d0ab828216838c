/* Reports the conductor's state and failures: system counters, the distinct error log, error codes and texts of the protocol, and
 * the budget for output that untrusted peers can cause. Used by all files of ctl/. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_REPORT_H
#define ASI_DRIVER_CTL_REPORT_H

#include "driver/ctl/state.h"

#define ASI_FAILURE_TEXT_CAPACITY 8192 /* Spec: 03 §4 - longer texts are truncated */

/* Adds to a system counter. */
void asi_conductor_count(asi_conductor *conductor, int32_t system_counter_id, int64_t delta);
/* Writes this thread's last failure to the distinct error log. */
void asi_conductor_log_failure(asi_conductor *conductor, as_result result);
/* The same for a command that a client is told has failed: its texts hold channels and ids of the client's. They fill a quarter
 * of the log, then only their error is recorded. */
void asi_conductor_log_command_failure(asi_conductor *conductor, as_result result);
/* The same for failures that any host can cause with datagrams, and whose texts contain ever new numbers. They fill at most half
 * of the log; those beyond the conductor's budget of peer failures are only counted. */
void asi_conductor_log_peer_failure(asi_conductor *conductor, as_result result);
/* False beyond 256 in a second. Each kind of log entry or client message that any host can cause with datagrams has its own
 * budget. A flood must neither keep the conductor busy, nor overrun the clients' broadcast buffer, nor hide entries of another
 * kind. */
bool asi_peer_budget_takes(asi_peer_budget *budget, int64_t now_ns);
/* Wire code of this thread's last failure. Spec: 03 §4 - the protocol's own codes unchanged, errnos as GENERIC or STORAGE. */
int32_t asi_conductor_failure_code(as_result result);
/* "(<code>) <short text>\n<text>\n" of this thread's last failure, in the format of the stock C driver. */
void asi_conductor_failure_text(as_result result, char *to, size_t capacity);

#endif
