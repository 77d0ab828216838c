/* The sender's reports: system counters, and commands to the conductor. Thread rule: the sender's. */
#ifndef ASI_DRIVER_TX_SENDER_REPORT_H
#define ASI_DRIVER_TX_SENDER_REPORT_H

#include "driver/tx/sender_state.h"

void asi_sender_count(asi_sender *sender, int32_t system_counter_id, int64_t delta);
void asi_sender_short_send(asi_sender *sender);
/* Sends this thread's last failure to the conductor. */
void asi_sender_log_failure(asi_sender *sender, as_result result);
void asi_sender_notify_conductor(asi_sender *sender, const asi_conductor_command *command);

#endif
