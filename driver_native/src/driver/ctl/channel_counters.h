/* Counters of channel endpoints: status, local socket address, number of destinations. Spec: 01 §7.
 * Called by send_channels and receive_channels. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_CHANNEL_COUNTERS_H
#define ASI_DRIVER_CTL_CHANNEL_COUNTERS_H

#include "driver/ctl/state.h"
#include "driver/net/address.h"

typedef struct asi_channel_counter
{
    int32_t type_id;
    const char *name;
    const char *channel;    /* URI as the client gave it */
    const char *suffix;     /* suffix of the label; may be NULL */
    int64_t registration_id;
    int64_t initial_value;
} asi_channel_counter;

as_result asi_channel_counter_allocate(asi_conductor *conductor, const asi_channel_counter *counter, int32_t *counter_id)
    AS_MUST_USE;
/* Allocates snd-local-sockaddr or rcv-local-sockaddr; its status is ACTIVE from the start. */
as_result asi_local_address_counter_allocate(asi_conductor *conductor, const char *name, int64_t registration_id,
    int32_t status_counter_id, const asi_address *address, int32_t *counter_id) AS_MUST_USE;
/* Frees the counter and sets the id to -1. No effect on -1. */
void asi_channel_counter_free(asi_conductor *conductor, int32_t *counter_id);

#endif
