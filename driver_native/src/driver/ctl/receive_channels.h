/* Finds, opens, shares and closes receive channel endpoints and the sockets of multi-destination subscriptions.
 * Spec: 03 §14, 04 §3. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_RECEIVE_CHANNELS_H
#define ASI_DRIVER_CTL_RECEIVE_CHANNELS_H

#include "driver/ctl/endpoints.h"
#include "driver/ctl/state.h"

/* As asi_send_channel_get. */
as_result asi_receive_channel_get(asi_conductor *conductor, asi_udp_channel *channel, int64_t registration_id,
    asi_receive_channel **found) AS_MUST_USE;
void asi_receive_channel_drop_if_unused(asi_conductor *conductor, asi_receive_channel *channel);
as_result asi_receive_channel_add_interest(asi_conductor *conductor, asi_receive_channel *channel, int32_t stream_id,
    bool has_session_id, int32_t session_id) AS_MUST_USE;
void asi_receive_channel_remove_interest(asi_conductor *conductor, asi_receive_channel *channel, int32_t stream_id,
    bool has_session_id, int32_t session_id);
/* Opens another socket for a multi-destination subscription. Takes ownership of `channel`, also on failure. */
as_result asi_receive_channel_add_transport(
    asi_conductor *conductor, asi_receive_channel *channel, asi_udp_channel *destination) AS_MUST_USE;
/* Finds the socket by canonical form; no effect when there is none. */
void asi_receive_channel_remove_transport(
    asi_conductor *conductor, asi_receive_channel *channel, const asi_udp_channel *destination);
/* By id, as in the receiver's commands; NULL when it no longer exists. */
asi_receive_channel *asi_receive_channel_by_id(const asi_conductor *conductor, int64_t id);
asi_receive_transport *asi_receive_transport_by_id(const asi_receive_channel *channel, int64_t id);
/* Frees what the receiver has returned; returns the work count. */
int asi_receive_channels_collect(asi_conductor *conductor);
/* Closes all of them, after the receiver has stopped. */
void asi_receive_channels_close(asi_conductor *conductor);

#endif
