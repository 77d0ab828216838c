/* Handles the conductor's commands to the receiver. Thread rule: the receiver's. */
#ifndef ASI_DRIVER_RX_RECEIVER_COMMANDS_H
#define ASI_DRIVER_RX_RECEIVER_COMMANDS_H

#include "driver/rx/receiver_state.h"

/* Handles one command. */
void asi_receiver_on_command(asi_receiver *receiver, const asi_receiver_command *command);

#endif
