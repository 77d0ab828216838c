/* Destination commands: add and remove the addresses that a manual multi-destination publication sends to, and those where a
 * multi-destination subscription receives. Spec: 03 §6.6-6.7. Called by on_command.c. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_DESTINATIONS_H
#define ASI_DRIVER_CTL_DESTINATIONS_H

#include "driver/ctl/state.h"

typedef struct asi_destination_command
{
    int64_t client_id;
    int64_t correlation_id;
    int64_t registration_id; /* of the publication (the original one) or subscription */
    const char *channel;     /* need not be terminated */
    int64_t channel_length;
} asi_destination_command;

as_result asi_send_destination_add(asi_conductor *conductor, const asi_destination_command *command) AS_MUST_USE;
as_result asi_send_destination_remove(asi_conductor *conductor, const asi_destination_command *command) AS_MUST_USE;
as_result asi_send_destination_remove_by_id(
    asi_conductor *conductor, int64_t correlation_id, int64_t publication_id, int64_t destination_id) AS_MUST_USE;
as_result asi_receive_destination_add(asi_conductor *conductor, const asi_destination_command *command) AS_MUST_USE;
as_result asi_receive_destination_remove(asi_conductor *conductor, const asi_destination_command *command) AS_MUST_USE;

#endif
