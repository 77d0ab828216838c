/* See receive_channels.h. */
#include "driver/ctl/receive_channels.h"

#include <inttypes.h>

#include "driver/ctl/agent_queues.h"
#include "driver/ctl/channel_counters.h"
#include "driver/ctl/ports.h"
#include "wire/command.h"

asi_receive_channel *asi_receive_channel_by_id(const asi_conductor *conductor, int64_t id)
{
    for (int32_t i = 0; i < conductor->network.receive_channels.count; i++)
    {
        asi_receive_channel *channel = conductor->network.receive_channels.items[i];
        if (id == channel->endpoint.id && !channel->is_closing)
        {
            return channel;
        }
    }
    return NULL;
}

asi_receive_transport *asi_receive_transport_by_id(const asi_receive_channel *channel, int64_t id)
{
    for (int32_t i = 0; i < channel->transports.count; i++)
    {
        asi_receive_transport *transport = channel->transports.items[i];
        if (id == transport->destination.id && !transport->is_closing)
        {
            return transport;
        }
    }
    return NULL;
}

/* -- sockets ------------------------------------------------------------------------------------------------------------ */

static void close_transport(asi_conductor *conductor, asi_receive_transport *transport)
{
    conductor->network.closing_receive_count -= transport->is_closing ? 1 : 0;
    const asi_udp_ops *ops = &conductor->network.receive_ops;
    if (NULL != transport->socket)
    {
        ops->close(ops->context, transport->socket);
    }
    asi_channel_counter_free(conductor, &transport->local_address_counter_id);
    if (transport->is_channel_owned)
    {
        asi_udp_channel_close(transport->channel);
    }
    free(transport);
}

/* Opens the socket. Takes ownership of `destination`, also on failure, unless it is the endpoint's own channel. */
static as_result open_transport(asi_conductor *conductor, const asi_receive_channel *channel, asi_udp_channel *destination,
    asi_receive_transport **created)
{
    const asi_driver_settings *settings = conductor->settings;
    asi_network *network = &conductor->network;
    asi_receive_transport *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        if (destination != channel->channel)
        {
            asi_udp_channel_close(destination);
        }
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a receive destination");
    }
    const asi_socket_defaults defaults = {
        .ttl = (int32_t)settings->multicast_ttl,
        .sndbuf_length = (int32_t)settings->socket_sndbuf_length,
        .rcvbuf_length = (int32_t)settings->socket_rcvbuf_length
    };
    asi_udp_params params;
    opened->channel = destination;
    opened->is_channel_owned = destination != channel->channel;
    opened->local_address_counter_id = AS_NULL_VALUE;
    asi_udp_channel_receive_params(destination, channel->channel, &defaults, &params);
    as_result result = asi_ports_open_receiver(conductor, &params, &opened->socket);
    if (AS_OK == result)
    {
        result = network->receive_ops.bound_address(network->receive_ops.context, opened->socket, &opened->bound);
    }
    if (AS_OK != result)
    {
        result = asi_fail_in(result, "uri = %s correlation_id=%" PRId64, destination->original, channel->registration_id);
        close_transport(conductor, opened);
        return result;
    }
    asi_receive_destination_init(&opened->destination, network->next_id++, destination, channel->channel, opened->socket,
        conductor->now_ns);
    opened->destination.ttl = params.ttl;
    *created = opened;
    return AS_OK;
}

/* Adds the transport to the channel, with its counter. The transport is closed on failure. */
static as_result add_transport(
    asi_conductor *conductor, asi_receive_channel *channel, asi_receive_transport *transport)
{
    as_result result = asi_local_address_counter_allocate(conductor, "rcv-local-sockaddr", channel->registration_id,
        channel->status_counter_id, &transport->bound, &transport->local_address_counter_id);
    if (AS_OK == result)
    {
        result = asi_list_add(&channel->transports, transport);
    }
    if (AS_OK != result)
    {
        close_transport(conductor, transport);
    }
    return result;
}

/* -- opening and finding ------------------------------------------------------------------------------------------------- */

static void close_channel(asi_conductor *conductor, asi_receive_channel *channel)
{
    conductor->network.closing_receive_count -= channel->is_closing ? 1 : 0;
    for (int32_t i = 0; i < channel->transports.count; i++)
    {
        close_transport(conductor, channel->transports.items[i]);
    }
    for (int32_t i = 0; i < channel->interests.count; i++)
    {
        free(channel->interests.items[i]);
    }
    asi_list_close(&channel->transports);
    asi_list_close(&channel->interests);
    asi_events_log(conductor->events, ASI_EVENT_RECEIVE_CHANNEL_CLOSE, "%s", channel->channel->original);
    asi_channel_counter_free(conductor, &channel->status_counter_id);
    asi_udp_channel_close(channel->channel);
    free(channel);
}

static as_result open_status_counter(
    asi_conductor *conductor, asi_receive_channel *opened, const asi_receive_transport *transport)
{
    char bound[ASI_ADDRESS_TEXT_CAPACITY] = "";
    if (NULL != transport)
    {
        asi_address_format(&transport->bound, bound);
    }
    const asi_channel_counter counter = {
        .type_id = ASI_COUNTER_TYPE_RECEIVE_CHANNEL_STATUS,
        .name = "rcv-channel",
        .channel = opened->channel->original,
        .suffix = bound, /* empty, after its space, when all sockets belong to destinations */
        .registration_id = opened->registration_id,
        .initial_value = ASI_CHANNEL_ACTIVE
    };
    return asi_channel_counter_allocate(conductor, &counter, &opened->status_counter_id);
}

/* Commands add the sockets of a multi-destination subscription. Any other endpoint has its own socket. */
static as_result fill_channel(asi_conductor *conductor, asi_receive_channel *opened)
{
    asi_receive_transport *transport = NULL;
    as_result result = ASI_CONTROL_MODE_MANUAL == opened->channel->control_mode ? AS_OK :
        open_transport(conductor, opened, opened->channel, &transport);
    if (AS_OK == result)
    {
        result = open_status_counter(conductor, opened, transport);
        if (AS_OK != result && NULL != transport)
        {
            close_transport(conductor, transport);
        }
    }
    if (AS_OK == result && NULL != transport)
    {
        result = add_transport(conductor, opened, transport);
    }
    return AS_OK == result ? asi_list_add(&conductor->network.receive_channels, opened) : result;
}

static as_result open_channel(
    asi_conductor *conductor, asi_udp_channel *channel, int64_t registration_id, asi_receive_channel **created)
{
    asi_network *network = &conductor->network;
    const asi_driver_settings *settings = conductor->settings;
    asi_receive_channel *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        asi_udp_channel_close(channel);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a receive channel endpoint");
    }
    opened->channel = channel;
    opened->registration_id = registration_id;
    opened->status_counter_id = AS_NULL_VALUE;
    asi_receive_endpoint_init(&opened->endpoint, network->next_id++, channel, network->next_receiver_id++,
        settings->has_receiver_group_tag ? &settings->receiver_group_tag : NULL);
    const as_result result = fill_channel(conductor, opened);
    if (AS_OK != result)
    {
        close_channel(conductor, opened);
        return result;
    }
    if (opened->transports.count > 0)
    {
        asi_receive_transport *first = opened->transports.items[0];
        opened->endpoint.destinations[opened->endpoint.destination_count++] = &first->destination;
    }
    const asi_receiver_command agent_command = { .kind = ASI_RECEIVER_ADD_ENDPOINT, .endpoint = &opened->endpoint };
    asi_network_to_receiver(conductor, &agent_command);
    asi_events_log(conductor->events, ASI_EVENT_RECEIVE_CHANNEL_CREATION, "%s", channel->original);
    *created = opened;
    return AS_OK;
}

static as_result find_channel(const asi_conductor *conductor, const asi_udp_channel *channel, asi_receive_channel **found)
{
    const asi_list *channels = &conductor->network.receive_channels;
    *found = NULL;
    for (int32_t i = 0; i < channels->count; i++)
    {
        asi_receive_channel *candidate = channels->items[i];
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
        asi_receive_channel *candidate = channels->items[i];
        *found = asi_udp_channel_matches_canonical(candidate->channel, channel) ? candidate : NULL;
    }
    return AS_OK;
}

/* `existing` is NULL for a new endpoint. */
static as_result check_window(
    const asi_conductor *conductor, const asi_receive_channel *existing, const asi_udp_channel *channel)
{
    const int64_t window = asi_effective_receiver_window(conductor, channel);
    const int64_t rcvbuf = asi_effective_rcvbuf(conductor, channel);
    return window <= rcvbuf ? AS_OK : asi_fail(AS_E_USAGE, EINVAL, "Initial window greater than SO_RCVBUF for channel: rcv-wnd=%"
        PRId64 " so-rcvbuf=%" PRId64 "%s%s channel=%s: lower the one or raise the other", window, rcvbuf,
        NULL == existing ? "" : " existingChannel=", NULL == existing ? "" : existing->channel->original, channel->original);
}

static as_result check_existing(
    const asi_conductor *conductor, const asi_receive_channel *existing, const asi_udp_channel *requested)
{
    const asi_udp_channel *channel = existing->channel;
    if (existing->is_closing)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE,
            "receive_channel_endpoint found in CLOSING state, please retry: channel=%s", requested->original);
    }
    as_result result =
        ASI_CONTROL_MODE_MANUAL == channel->control_mode ? AS_OK : asi_channel_check_buffers(conductor, channel, requested);
    if (AS_OK == result)
    {
        result = asi_channel_check_timestamp("media-rcv-ts-offset", channel, channel->media_receive_timestamp_offset, requested,
            requested->media_receive_timestamp_offset);
    }
    return AS_OK != result ? result : asi_channel_check_timestamp("channel-rcv-ts-offset", channel,
        channel->channel_receive_timestamp_offset, requested, requested->channel_receive_timestamp_offset);
}

as_result asi_receive_channel_get(
    asi_conductor *conductor, asi_udp_channel *channel, int64_t registration_id, asi_receive_channel **found)
{
    asi_receive_channel *existing;
    as_result result = find_channel(conductor, channel, &existing);
    if (AS_OK == result)
    {
        result = check_window(conductor, existing, channel);
    }
    if (AS_OK == result && NULL != existing)
    {
        result = check_existing(conductor, existing, channel);
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

/* -- interest ------------------------------------------------------------------------------------------------------------ */

static int32_t find_interest(
    const asi_receive_channel *channel, int32_t stream_id, bool has_session_id, int32_t session_id)
{
    for (int32_t i = 0; i < channel->interests.count; i++)
    {
        const asi_receive_interest *interest = channel->interests.items[i];
        if (stream_id == interest->stream_id && has_session_id == interest->has_session_id &&
            (!has_session_id || session_id == interest->session_id))
        {
            return i;
        }
    }
    return -1;
}

static void notify_interest(asi_conductor *conductor, asi_receive_channel *channel, const asi_receive_interest *interest,
    asi_receiver_command_kind of_stream, asi_receiver_command_kind of_session)
{
    const asi_receiver_command agent_command = {
        .kind = interest->has_session_id ? of_session : of_stream,
        .endpoint = &channel->endpoint,
        .stream_id = interest->stream_id,
        .session_id = interest->session_id
    };
    asi_network_to_receiver(conductor, &agent_command);
}

as_result asi_receive_channel_add_interest(asi_conductor *conductor, asi_receive_channel *channel, int32_t stream_id,
    bool has_session_id, int32_t session_id)
{
    const int32_t at = find_interest(channel, stream_id, has_session_id, session_id);
    if (at >= 0)
    {
        ((asi_receive_interest *)channel->interests.items[at])->count++;
        return AS_OK;
    }
    asi_receive_interest *interest = malloc(sizeof(*interest));
    if (NULL == interest)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for interest in stream %d", stream_id);
    }
    *interest = (asi_receive_interest){ .stream_id = stream_id, .session_id = session_id,
        .has_session_id = has_session_id, .count = 1 };
    const as_result result = asi_list_add(&channel->interests, interest);
    if (AS_OK != result)
    {
        free(interest);
        return result;
    }
    notify_interest(conductor, channel, interest, ASI_RECEIVER_ADD_STREAM, ASI_RECEIVER_ADD_SESSION);
    return AS_OK;
}

void asi_receive_channel_remove_interest(
    asi_conductor *conductor, asi_receive_channel *channel, int32_t stream_id, bool has_session_id, int32_t session_id)
{
    const int32_t at = find_interest(channel, stream_id, has_session_id, session_id);
    asi_receive_interest *interest = at < 0 ? NULL : channel->interests.items[at];
    if (NULL != interest && 0 == --interest->count)
    {
        notify_interest(conductor, channel, interest, ASI_RECEIVER_REMOVE_STREAM, ASI_RECEIVER_REMOVE_SESSION);
        asi_list_remove_at(&channel->interests, at);
        free(interest);
    }
}

/* -- destinations of a multi-destination subscription, Spec: 03 §6.7, 04 §12 ----------------------------------------------- */

as_result asi_receive_channel_add_transport(
    asi_conductor *conductor, asi_receive_channel *channel, asi_udp_channel *destination)
{
    if (channel->transports.count >= ASI_ENDPOINT_MAX_DESTINATIONS)
    {
        asi_udp_channel_close(destination);
        return asi_fail(AS_E_USAGE, EINVAL, "a subscription has at most %d destinations: channel=%s",
            ASI_ENDPOINT_MAX_DESTINATIONS, channel->channel->original);
    }
    asi_receive_transport *transport = NULL;
    as_result result = open_transport(conductor, channel, destination, &transport);
    if (AS_OK == result)
    {
        result = add_transport(conductor, channel, transport);
    }
    if (AS_OK != result)
    {
        return result;
    }
    const asi_receiver_command agent_command = { .kind = ASI_RECEIVER_ADD_DESTINATION, .endpoint = &channel->endpoint,
        .destination = &transport->destination };
    asi_network_to_receiver(conductor, &agent_command);
    return AS_OK;
}

void asi_receive_channel_remove_transport(
    asi_conductor *conductor, asi_receive_channel *channel, const asi_udp_channel *destination)
{
    for (int32_t i = 0; i < channel->transports.count; i++)
    {
        asi_receive_transport *transport = channel->transports.items[i];
        if (!transport->is_closing && asi_udp_channel_matches_canonical(transport->channel, destination))
        {
            transport->is_closing = true;
            conductor->network.closing_receive_count++;
            const asi_receiver_command agent_command = { .kind = ASI_RECEIVER_REMOVE_DESTINATION, .endpoint = &channel->endpoint,
                .destination = &transport->destination };
            asi_network_to_receiver(conductor, &agent_command);
            return;
        }
    }
}

/* -- closing ------------------------------------------------------------------------------------------------------------- */

void asi_receive_channel_drop_if_unused(asi_conductor *conductor, asi_receive_channel *channel)
{
    if (channel->is_closing || channel->interests.count > 0 || channel->response_count > 0 || channel->image_count > 0)
    {
        return;
    }
    channel->is_closing = true;
    conductor->network.closing_receive_count++;
    asi_store_release_i64(
        asi_counter_addr(&conductor->counters.counters, channel->status_counter_id), ASI_CHANNEL_CLOSING);
    const asi_receiver_command agent_command = { .kind = ASI_RECEIVER_REMOVE_ENDPOINT, .endpoint = &channel->endpoint };
    asi_network_to_receiver(conductor, &agent_command);
}

static int collect_transports(asi_conductor *conductor, asi_receive_channel *channel)
{
    int work = 0;
    for (int32_t i = channel->transports.count - 1; i >= 0; i--)
    {
        asi_receive_transport *transport = channel->transports.items[i];
        if (transport->is_closing && asi_load_acquire_bool(&transport->destination.is_released))
        {
            asi_list_remove_at(&channel->transports, i);
            close_transport(conductor, transport);
            work++;
        }
    }
    return work;
}

int asi_receive_channels_collect(asi_conductor *conductor)
{
    int work = 0;
    asi_list *channels = &conductor->network.receive_channels;
    for (int32_t i = channels->count - 1; i >= 0 && conductor->network.closing_receive_count > 0; i--)
    {
        asi_receive_channel *channel = channels->items[i];
        work += collect_transports(conductor, channel);
        if (channel->is_closing && asi_load_acquire_bool(&channel->endpoint.is_released))
        {
            asi_list_remove_at(channels, i);
            close_channel(conductor, channel);
            work++;
        }
    }
    return work;
}

void asi_receive_channels_close(asi_conductor *conductor)
{
    asi_list *channels = &conductor->network.receive_channels;
    for (int32_t i = 0; i < channels->count; i++)
    {
        close_channel(conductor, channels->items[i]);
    }
    asi_list_close(channels);
}
