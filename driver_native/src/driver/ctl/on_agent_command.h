/* Handles the commands from sender and receiver, one handler per kind. Called by network.c. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_ON_AGENT_COMMAND_H
#define ASI_DRIVER_CTL_ON_AGENT_COMMAND_H

#include "driver/ctl/state.h"

void asi_on_agent_command(asi_conductor *conductor, const asi_conductor_command *command);

#endif
