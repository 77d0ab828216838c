/* The sender: the agent that sends publications' data and hears their receivers. Spec: 04 §4.1.
 *
 * Duty cycle: clock, commands of the conductor, every publication in turn, control sockets when due, silence of peers when
 * due. Owns no resources: endpoints and publications are the conductor's (command/sender_command.h). Thread rule: one thread; put
 * command from the conductor's. */
#ifndef ASI_DRIVER_TX_SENDER_H
#define ASI_DRIVER_TX_SENDER_H

#include "driver/tx/sender_state.h"

void asi_sender_open(asi_sender *sender, const asi_sender_params *params);
void asi_sender_close(asi_sender *sender); /* harmless on a zeroed one */
/* One duty cycle; returns its work count. */
int asi_sender_do_work(asi_sender *sender);

#endif
