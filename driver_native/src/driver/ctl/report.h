/* What the conductor tells of itself: system counters, the distinct error log, error codes and texts of the protocol, and the budget
 * for what strangers make it write. Used by all files of ctl/. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_REPORT_H
#define ASI_DRIVER_CTL_REPORT_H

#include "driver/ctl/state.h"

#define ASI_FAILURE_TEXT_CAPACITY 8192 /* Spec: 03 §4 - longer texts are cut */

/* Adds to a system counter. */
void asi_conductor_count(asi_conductor *conductor, int32_t system_counter_id, int64_t delta);
/* Puts this thread's last failure into the distinct error log. */
void asi_conductor_log_failure(asi_conductor *conductor, as_result result);
/* The same for failures that datagrams of anyone can cause, in texts of ever new numbers: they fill half of the log at most, and
 * those past the conductor's budget of peer failures are only counted. */
void asi_conductor_log_peer_failure(asi_conductor *conductor, as_result result);
/* False for more than 256 in a second. What datagrams of anyone make the driver write or tell its clients goes by a budget of its
 * kind: a flood must neither keep the conductor busy nor overrun the clients' broadcasts, nor hide what is of another kind. */
bool asi_peer_budget_takes(asi_peer_budget *budget, int64_t now_ns);
/* Wire code of this thread's last failure. Spec: 03 §4 - the protocol's own codes as they are, errnos as GENERIC or STORAGE. */
int32_t asi_conductor_failure_code(as_result result);
/* "(<code>) <short text>\n<text>\n" of this thread's last failure, the form of the stock C driver. */
void asi_conductor_failure_text(as_result result, char *to, size_t capacity);

#endif
