/* Finds, opens, shares and closes send channel endpoints. Spec: 03 §14, 04 §3. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_SEND_CHANNELS_H
#define ASI_DRIVER_CTL_SEND_CHANNELS_H

#include "driver/ctl/endpoints.h"
#include "driver/ctl/state.h"

/* Takes ownership of `channel`, also on failure. Finds the endpoint or opens a new one without users. Call drop_if_unused when
 * the caller does not become a user. */
as_result asi_send_channel_get(asi_conductor *conductor, asi_udp_channel *channel, int64_t registration_id,
    asi_send_channel **found) AS_MUST_USE;
void asi_send_channel_release(asi_conductor *conductor, asi_send_channel *channel); /* removes one user */
void asi_send_channel_drop_if_unused(asi_conductor *conductor, asi_send_channel *channel);
/* By id, as in the sender's commands; NULL when it no longer exists. */
asi_send_channel *asi_send_channel_by_id(const asi_conductor *conductor, int64_t id);
/* Frees what the sender has returned; returns the work count. */
int asi_send_channels_collect(asi_conductor *conductor);
/* Closes all of them, after the sender has stopped. */
void asi_send_channels_close(asi_conductor *conductor);

#endif
