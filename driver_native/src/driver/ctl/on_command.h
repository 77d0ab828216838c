/* Client commands: decoded, length-checked and routed, one at a time; a failure becomes ON_ERROR. Spec: 03 §2, §5-6.
 *
 * Malformed and unknown commands are answered like the stock Java driver does, with codes 7 and 6 and correlation id 0, where
 * the stock C driver stays silent and leaves the client to its timeout: the ids of a message that can't be trusted in its
 * lengths are not trusted either. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_ON_COMMAND_H
#define ASI_DRIVER_CTL_ON_COMMAND_H

#include "driver/ctl/state.h"

/* Handler for asi_ring_mpsc_read; `context` is the conductor. */
asi_ring_action asi_on_command_untrusted(int32_t type_id, const uint8_t *message, int64_t length, void *context);

/* Carries out a command whose log is there now; returns a work count. */
int asi_waiting_commands_do_work(asi_conductor *conductor);

#endif
