/* Send channel endpoints: found, opened, shared, closed. Spec: 03 §14, 04 §3. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_SEND_CHANNELS_H
#define ASI_DRIVER_CTL_SEND_CHANNELS_H

#include "driver/ctl/endpoints.h"
#include "driver/ctl/state.h"

/* Takes over `channel`, also on failure. Finds the endpoint or opens a new one without users; call drop_if_unused when
 * the user does not come. */
as_result asi_send_channel_get(asi_conductor *conductor, asi_udp_channel *channel, int64_t registration_id,
    asi_send_channel **found) AS_MUST_USE;
void asi_send_channel_release(asi_conductor *conductor, asi_send_channel *channel); /* one user less */
void asi_send_channel_drop_if_unused(asi_conductor *conductor, asi_send_channel *channel);
/* By id, as commands of the sender name them; NULL when gone. */
asi_send_channel *asi_send_channel_by_id(const asi_conductor *conductor, int64_t id);
/* Frees what the sender has given back; returns the work count. */
int asi_send_channels_collect(asi_conductor *conductor);
/* All of them, when the sender has stopped. */
void asi_send_channels_close(asi_conductor *conductor);

#endif
