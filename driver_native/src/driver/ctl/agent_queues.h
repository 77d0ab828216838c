/* Commands from the conductor to sender and receiver. When a queue is full, the command waits in an outbox, in order.
 * Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_AGENT_QUEUES_H
#define ASI_DRIVER_CTL_AGENT_QUEUES_H

#include "driver/ctl/state.h"

void asi_network_to_sender(asi_conductor *conductor, const asi_sender_command *command);
void asi_network_to_receiver(asi_conductor *conductor, const asi_receiver_command *command);
/* Call each duty cycle. Moves commands from the outboxes to the queues; returns how many. */
int asi_agent_queues_flush(asi_conductor *conductor);
/* Frees the waiting commands; the agents have stopped. */
void asi_agent_queues_close(asi_conductor *conductor);

#endif
