/* Commands from the conductor to sender and receiver. One that finds its queue full waits in an outbox, in order. Thread rule: the
 * conductor's. */
#ifndef ASI_DRIVER_CTL_AGENT_QUEUES_H
#define ASI_DRIVER_CTL_AGENT_QUEUES_H

#include "driver/ctl/state.h"

void asi_network_to_sender(asi_conductor *conductor, const asi_sender_command *command);
void asi_network_to_receiver(asi_conductor *conductor, const asi_receiver_command *command);
/* Each duty cycle: what waits in the outboxes. Returns how many commands it sent. */
int asi_agent_queues_flush(asi_conductor *conductor);
/* Frees what waits; the agents have stopped. */
void asi_agent_queues_close(asi_conductor *conductor);

#endif
