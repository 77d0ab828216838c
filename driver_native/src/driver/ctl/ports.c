/* See ports.h. */
#include "driver/ctl/ports.h"

#include "driver/ctl/endpoints.h"

static bool is_sender_port(const asi_conductor *conductor, uint16_t port)
{
    for (int32_t i = 0; i < conductor->network.send_channels.count; i++)
    {
        const asi_send_channel *channel = conductor->network.send_channels.items[i];
        if (port == asi_address_port(&channel->bound))
        {
            return true;
        }
    }
    return false;
}

static bool is_receiver_port(const asi_conductor *conductor, uint16_t port)
{
    for (int32_t i = 0; i < conductor->network.receive_channels.count; i++)
    {
        const asi_receive_channel *channel = conductor->network.receive_channels.items[i];
        for (int32_t j = 0; j < channel->transports.count; j++)
        {
            const asi_receive_transport *transport = channel->transports.items[j];
            if (port == asi_address_port(&transport->bound))
            {
                return true;
            }
        }
    }
    return false;
}

static as_result open_in_range(const asi_conductor *conductor, const asi_udp_ops *ops, const asi_udp_params *params,
    const asi_port_range *range, uint16_t *next_port, bool (*is_used)(const asi_conductor *conductor, uint16_t port),
    asi_udp_socket **socket)
{
    if (0 != asi_address_port(&params->bind) || 0 == range->high)
    {
        return ops->open(ops->context, params, socket);
    }
    asi_udp_params tried = *params;
    const int32_t count = range->high - range->low + 1;
    for (int32_t i = 0; i < count; i++)
    {
        const uint16_t port = *next_port < range->low || *next_port > range->high ? range->low : *next_port;
        *next_port = (uint16_t)(port + 1);
        asi_address_set_port(&tried.bind, port);
        if (!is_used(conductor, port) && AS_OK == ops->open(ops->context, &tried, socket))
        {
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EADDRINUSE, "no available ports in range %u %u", range->low, range->high);
}

as_result asi_ports_open_sender(asi_conductor *conductor, const asi_udp_params *params, asi_udp_socket **socket)
{
    asi_network *network = &conductor->network;
    return open_in_range(conductor, &network->send_ops, params, &conductor->settings->sender_port_range,
        &network->next_sender_port, is_sender_port, socket);
}

as_result asi_ports_open_receiver(asi_conductor *conductor, const asi_udp_params *params, asi_udp_socket **socket)
{
    asi_network *network = &conductor->network;
    return open_in_range(conductor, &network->receive_ops, params, &conductor->settings->receiver_port_range,
        &network->next_receiver_port, is_receiver_port, socket);
}
