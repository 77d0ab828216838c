/* Receive endpoints and destinations; see endpoint.h. */
#include "driver/rx/endpoint.h"

#include <string.h>

void asi_receive_destination_init(asi_receive_destination *destination, int64_t id, asi_udp_channel *channel,
    const asi_udp_channel *subscription, asi_udp_socket *socket, int64_t now_ns)
{
    *destination = (asi_receive_destination){
        .id = id,
        .channel = channel,
        .socket = socket,
        .is_multicast = channel->is_multicast,
        .ttl = channel->ttl,
        .has_explicit_control = channel->has_explicit_control,
        .media_timestamp_offset = subscription->media_receive_timestamp_offset,
        .channel_timestamp_offset = subscription->channel_receive_timestamp_offset,
        .last_activity_ns = now_ns
    };
    if (channel->is_multicast || channel->has_explicit_control) /* Spec: 04 §8.8 */
    {
        destination->control_address = channel->is_multicast ? channel->remote_control : channel->local;
    }
}

void asi_receive_endpoint_init(asi_receive_endpoint *endpoint, int64_t id, const asi_udp_channel *channel, int64_t receiver_id,
    const int64_t *default_group_tag)
{
    *endpoint = (asi_receive_endpoint){
        .id = id,
        .receiver_id = receiver_id,
        .has_group_tag = channel->has_group_tag || NULL != default_group_tag,
        .group_tag = channel->has_group_tag ? channel->group_tag : NULL != default_group_tag ? *default_group_tag : 0
    };
}
