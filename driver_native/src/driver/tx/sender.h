/* The sender: the agent that sends the data of publications and handles control frames from their receivers. Spec: 04 §4.1.
 *
 * Duty cycle: clock, commands of the conductor, the publications in rotation, control sockets when due, silent peers when due. It
 * owns no resources: endpoints and publications are the conductor's (queues/sender_command.h).
 * Thread rule: one thread; the conductor's thread queues commands. */
#ifndef ASI_DRIVER_TX_SENDER_H
#define ASI_DRIVER_TX_SENDER_H

#include "driver/tx/sender_state.h"

void asi_sender_open(asi_sender *sender, const asi_sender_params *params);
void asi_sender_close(asi_sender *sender); /* no effect on a zeroed one */
/* Runs one duty cycle; returns its work count. */
int asi_sender_do_work(asi_sender *sender);

#endif
