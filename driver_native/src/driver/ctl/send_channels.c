/* See send_channels.h. */
#include "driver/ctl/send_channels.h"

#include <inttypes.h>
#include <stdio.h>

#include "driver/ctl/agent_queues.h"
#include "driver/ctl/channel_counters.h"
#include "driver/ctl/ports.h"
#include "wire/command.h"

asi_send_channel *asi_send_channel_by_id(const asi_conductor *conductor, int64_t id)
{
    for (int32_t i = 0; i < conductor->network.send_channels.count; i++)
    {
        asi_send_channel *channel = conductor->network.send_channels.items[i];
        if (id == channel->sender.id && !channel->is_closing)
        {
            return channel;
        }
    }
    return NULL;
}

/* -- opening ------------------------------------------------------------------------------------------------------------ */

static as_result open_socket(asi_conductor *conductor, asi_send_channel *opened)
{
    const asi_driver_settings *settings = conductor->settings;
    const asi_network *network = &conductor->network;
    const asi_socket_defaults defaults = {
        .ttl = (int32_t)settings->multicast_ttl,
        .sndbuf_length = (int32_t)settings->socket_sndbuf_length,
        .rcvbuf_length = (int32_t)settings->socket_rcvbuf_length,
        .is_connecting = settings->connect_sockets
    };
    asi_udp_params params;
    asi_udp_channel_send_params(opened->channel, &defaults, &params);
    opened->sender.is_connected = !asi_address_is_none(&params.connect);
    as_result result = opened->channel->has_explicit_control ?
        asi_ports_open_sender(conductor, &params, &opened->socket) :
        network->send_ops.open(network->send_ops.context, &params, &opened->socket);
    if (AS_OK == result)
    {
        result = network->send_ops.bound_address(network->send_ops.context, opened->socket, &opened->bound);
    }
    return result;
}

static as_result open_counters(asi_conductor *conductor, asi_send_channel *opened, int64_t registration_id)
{
    char bound[ASI_ADDRESS_TEXT_CAPACITY];
    asi_address_format(&opened->bound, bound);
    asi_channel_counter counter = {
        .type_id = ASI_COUNTER_TYPE_SEND_CHANNEL_STATUS,
        .name = "snd-channel",
        .channel = opened->channel->original,
        .suffix = bound,
        .registration_id = registration_id,
        .initial_value = ASI_CHANNEL_ACTIVE
    };
    as_result result = asi_channel_counter_allocate(conductor, &counter, &opened->status_counter_id);
    if (AS_OK == result && opened->sender.has_destinations) /* in the order of the stock C driver */
    {
        counter = (asi_channel_counter){ .type_id = ASI_COUNTER_TYPE_MDC_DESTINATIONS, .name = "mdc-num-dest",
            .channel = opened->channel->original, .registration_id = registration_id };
        result = asi_channel_counter_allocate(conductor, &counter, &opened->destinations_counter_id);
    }
    if (AS_OK == result)
    {
        result = asi_local_address_counter_allocate(conductor, "snd-local-sockaddr", registration_id,
            opened->status_counter_id, &opened->bound, &opened->local_address_counter_id);
    }
    if (AS_OK == result && opened->sender.has_destinations)
    {
        result = asi_destinations_open(&opened->sender.destinations,
            ASI_CONTROL_MODE_MANUAL == opened->channel->control_mode, (int32_t)conductor->settings->destinations_max,
            (int32_t)conductor->settings->destinations_per_address_max,
            asi_counter_addr(&conductor->counters.counters, opened->destinations_counter_id));
        asi_rand_seed(&opened->sender.destinations.rand, asi_rand_u64(&conductor->rand));
    }
    return result;
}

static void free_destinations(asi_send_channel *channel)
{
    for (int32_t i = 0; i < channel->destinations.count; i++)
    {
        asi_send_destination *destination = channel->destinations.items[i];
        free(destination->endpoint);
        free(destination);
    }
    asi_list_close(&channel->destinations);
}

static void close_channel(asi_conductor *conductor, asi_send_channel *channel)
{
    conductor->network.closing_send_count -= channel->is_closing ? 1 : 0;
    const asi_udp_ops *ops = &conductor->network.send_ops;
    if (NULL != channel->socket)
    {
        ops->close(ops->context, channel->socket);
    }
    asi_events_log(conductor->events, ASI_EVENT_SEND_CHANNEL_CLOSE, "%s", channel->channel->original);
    asi_channel_counter_free(conductor, &channel->status_counter_id);
    asi_channel_counter_free(conductor, &channel->local_address_counter_id);
    asi_channel_counter_free(conductor, &channel->destinations_counter_id);
    asi_destinations_close(&channel->sender.destinations);
    free_destinations(channel);
    asi_udp_channel_close(channel->channel);
    free(channel);
}

static as_result open_channel(
    asi_conductor *conductor, asi_udp_channel *channel, int64_t registration_id, asi_send_channel **created)
{
    asi_network *network = &conductor->network;
    asi_send_channel *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        asi_udp_channel_close(channel);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a send channel endpoint");
    }
    opened->channel = channel;
    opened->status_counter_id = AS_NULL_VALUE;
    opened->local_address_counter_id = AS_NULL_VALUE;
    opened->destinations_counter_id = AS_NULL_VALUE;
    opened->sender.id = network->next_id++;
    opened->sender.channel = channel;
    opened->sender.ops = &network->send_ops;
    opened->sender.has_destinations = asi_udp_channel_is_multi_destination(channel);
    opened->sender.is_response = ASI_CONTROL_MODE_RESPONSE == channel->control_mode;
    opened->sender.is_re_resolvable = channel->has_explicit_endpoint && !channel->is_multicast &&
        !opened->sender.has_destinations && !opened->sender.is_response;
    opened->sender.peer = channel->remote_data;
    as_result result = open_socket(conductor, opened);
    opened->sender.socket = opened->socket;
    if (AS_OK == result)
    {
        result = open_counters(conductor, opened, registration_id);
    }
    if (AS_OK == result)
    {
        result = asi_list_add(&network->send_channels, opened);
    }
    if (AS_OK != result)
    {
        result = asi_fail_in(result, "uri=%s", channel->original);
        close_channel(conductor, opened);
        return result;
    }
    const asi_sender_command agent_command = { .kind = ASI_SENDER_ADD_ENDPOINT, .endpoint = &opened->sender };
    asi_network_to_sender(conductor, &agent_command);
    asi_events_log(conductor->events, ASI_EVENT_SEND_CHANNEL_CREATION, "%s", channel->original);
    *created = opened;
    return AS_OK;
}

/* -- finding, Spec: 03 §14, 05 §5 ------------------------------------------------------------------------------------------ */

static as_result find_channel(const asi_conductor *conductor, const asi_udp_channel *channel, asi_send_channel **found)
{
    const asi_list *channels = &conductor->network.send_channels;
    *found = NULL;
    for (int32_t i = 0; i < channels->count; i++)
    {
        asi_send_channel *candidate = channels->items[i];
        bool matches = false;
        const as_result result = asi_udp_channel_matches_tag(candidate->channel, channel, &matches);
        if (AS_OK != result || matches)
        {
            *found = AS_OK == result ? candidate : NULL;
            return result;
        }
    }
    for (int32_t i = 0; i < channels->count && NULL == *found; i++)
    {
        asi_send_channel *candidate = channels->items[i];
        *found = asi_udp_channel_matches_canonical(candidate->channel, channel) ? candidate : NULL;
    }
    return AS_OK;
}

static as_result check_existing(
    const asi_conductor *conductor, const asi_send_channel *existing, const asi_udp_channel *requested)
{
    if (existing->is_closing)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE,
            "send_channel_endpoint found in CLOSING state, please retry: channel=%s", requested->original);
    }
    const as_result result = asi_channel_check_buffers(conductor, existing->channel, requested);
    return AS_OK == result ? asi_channel_check_timestamp("channel-snd-ts-offset", existing->channel,
        existing->channel->channel_send_timestamp_offset, requested, requested->channel_send_timestamp_offset) : result;
}

/* A channel with a tag alone refers to an existing endpoint. Spec: 03 §6.1. */
static as_result check_original(const asi_udp_channel *channel)
{
    return !channel->has_tag || channel->has_explicit_control || channel->has_explicit_endpoint ||
            ASI_CONTROL_MODE_MANUAL == channel->control_mode ? AS_OK :
        asi_fail(AS_E_USAGE, EINVAL,
            "URI must have explicit control, endpoint, or be manual control-mode when original: channel=%s", channel->original);
}

as_result asi_send_channel_get(
    asi_conductor *conductor, asi_udp_channel *channel, int64_t registration_id, asi_send_channel **found)
{
    asi_send_channel *existing = NULL;
    as_result result = find_channel(conductor, channel, &existing);
    if (AS_OK == result)
    {
        result = NULL == existing ? check_original(channel) : check_existing(conductor, existing, channel);
    }
    if (AS_OK == result && NULL == existing)
    {
        return open_channel(conductor, channel, registration_id, found);
    }
    asi_udp_channel_close(channel);
    if (AS_OK == result)
    {
        *found = existing;
    }
    return result;
}

/* -- closing ------------------------------------------------------------------------------------------------------------- */

void asi_send_channel_drop_if_unused(asi_conductor *conductor, asi_send_channel *channel)
{
    if (channel->reference_count > 0 || channel->is_closing)
    {
        return;
    }
    channel->is_closing = true;
    conductor->network.closing_send_count++;
    asi_store_release_i64(
        asi_counter_addr(&conductor->counters.counters, channel->status_counter_id), ASI_CHANNEL_CLOSING);
    const asi_sender_command agent_command = { .kind = ASI_SENDER_REMOVE_ENDPOINT, .endpoint = &channel->sender };
    asi_network_to_sender(conductor, &agent_command);
}

void asi_send_channel_release(asi_conductor *conductor, asi_send_channel *channel)
{
    channel->reference_count--;
    asi_send_channel_drop_if_unused(conductor, channel);
}

int asi_send_channels_collect(asi_conductor *conductor)
{
    int work = 0;
    asi_list *channels = &conductor->network.send_channels;
    for (int32_t i = channels->count - 1; i >= 0 && conductor->network.closing_send_count > 0; i--)
    {
        asi_send_channel *channel = channels->items[i];
        if (channel->is_closing && asi_load_acquire_bool(&channel->sender.is_released))
        {
            asi_list_remove_at(channels, i);
            close_channel(conductor, channel);
            work++;
        }
    }
    return work;
}

void asi_send_channels_close(asi_conductor *conductor)
{
    asi_list *channels = &conductor->network.send_channels;
    for (int32_t i = 0; i < channels->count; i++)
    {
        close_channel(conductor, channels->items[i]);
    }
    asi_list_close(channels);
}
