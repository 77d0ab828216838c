/* The channels of a replication. See replication.h. */
#ifndef ASI_SERVER_REPLICATION_CHANNELS_H
#define ASI_SERVER_REPLICATION_CHANNELS_H

#include "server/replication.h"

/* Builds the channel that the destination's recording subscribes to. */
as_result asi_replication_recording_channel(const asi_replication *replication, asi_uri_builder *channel) AS_MUST_USE;
/* Builds the destination on which a manual subscription receives the source's replay. */
as_result asi_replication_destination_channel(const asi_replication *replication, asi_uri_builder *channel) AS_MUST_USE;
/* Builds the channel that the source replays to. AS_AGAIN: the subscription has no port yet. */
as_result asi_replication_replay_channel(
    const asi_replication *replication, const as_subscription *subscription, asi_uri_builder *channel) AS_MUST_USE;

#endif
