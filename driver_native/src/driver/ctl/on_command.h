/* Client commands: decodes each one, checks its length and routes it, one at a time. A failure becomes ON_ERROR.
 * Spec: 03 §2, §5-6.
 *
 * The stock Java driver answers malformed and unknown commands, with codes 7 and 6 and correlation id 0, and so does this driver.
 * The stock C driver sends nothing, and the client times out. Correlation id 0, because when the lengths of a message can't be
 * trusted, its ids can't be trusted either. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_ON_COMMAND_H
#define ASI_DRIVER_CTL_ON_COMMAND_H

#include "driver/ctl/state.h"

/* Handler for asi_ring_mpsc_read; `context` is the conductor. */
asi_ring_action asi_on_command_untrusted(int32_t type_id, const uint8_t *message, int64_t length, void *context);

/* Runs a command whose log is ready; returns a work count. */
int asi_waiting_commands_do_work(asi_conductor *conductor);

#endif
