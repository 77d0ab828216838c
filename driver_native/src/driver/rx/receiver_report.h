/* The receiver's reports: system counters, and commands to the conductor. Thread rule: the receiver's. */
#ifndef ASI_DRIVER_RX_RECEIVER_REPORT_H
#define ASI_DRIVER_RX_RECEIVER_REPORT_H

#include "driver/rx/receiver_state.h"

void asi_receiver_count(asi_receiver *receiver, int32_t system_counter_id, int64_t delta);
/* False when the conductor's queue is full. The event is then counted and dropped, because the peer repeats it. */
bool asi_receiver_notify_conductor(asi_receiver *receiver, const asi_conductor_command *command);
/* Sends this thread's last failure to the conductor for its error log. */
void asi_receiver_report(asi_receiver *receiver, as_result result);

#endif
