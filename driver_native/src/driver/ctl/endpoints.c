/* Common to send and receive endpoints: socket buffers and windows in effect; see endpoints.h. */
#include "driver/ctl/endpoints.h"

#include <inttypes.h>
#include <stdio.h>

int64_t asi_effective_sndbuf(const asi_conductor *conductor, const asi_udp_channel *channel)
{
    const int64_t configured = conductor->settings->socket_sndbuf_length;
    return 0 != channel->sndbuf_length ? channel->sndbuf_length :
        0 != configured ? configured : conductor->network.limits.default_sndbuf_length;
}

int64_t asi_effective_rcvbuf(const asi_conductor *conductor, const asi_udp_channel *channel)
{
    const int64_t configured = conductor->settings->socket_rcvbuf_length;
    return 0 != channel->rcvbuf_length ? channel->rcvbuf_length :
        0 != configured ? configured : conductor->network.limits.default_rcvbuf_length;
}

int64_t asi_effective_receiver_window(const asi_conductor *conductor, const asi_udp_channel *channel)
{
    return 0 != channel->receiver_window_length ? channel->receiver_window_length :
        conductor->settings->initial_window_length;
}

/* A channel that names a length gets exactly that length or fails, no matter which channel opened the socket or where its length
 * came from. A channel that names none accepts the existing length, as in the stock Java driver. */
as_result asi_channel_check_buffers(
    const asi_conductor *conductor, const asi_udp_channel *existing, const asi_udp_channel *requested)
{
    const struct { const char *param; int64_t requested; int64_t existing; int64_t configured; } rows[] = {
        { "so-sndbuf", requested->sndbuf_length, asi_effective_sndbuf(conductor, existing),
            0 != existing->sndbuf_length ? existing->sndbuf_length : conductor->settings->socket_sndbuf_length },
        { "so-rcvbuf", requested->rcvbuf_length, asi_effective_rcvbuf(conductor, existing),
            0 != existing->rcvbuf_length ? existing->rcvbuf_length : conductor->settings->socket_rcvbuf_length },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        if (0 != rows[i].requested && rows[i].requested != rows[i].existing)
        {
            char length[32];
            snprintf(length, sizeof(length), "%" PRId64, rows[i].existing);
            return asi_fail(AS_E_USAGE, EINVAL, "%s=%" PRId64 " does not match existing value of %s: existingChannel=%s "
                "channel=%s", rows[i].param, rows[i].requested, 0 == rows[i].configured ? "OS default" : length,
                existing->original, requested->original);
        }
    }
    return AS_OK;
}

as_result asi_channel_check_timestamp(const char *param, const asi_udp_channel *existing, int32_t existing_offset,
    const asi_udp_channel *requested, int32_t requested_offset)
{
    const bool is_off = ASI_TIMESTAMP_OFF == requested_offset;
    return existing_offset == requested_offset ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "option conflicts with existing subscription: %s=%d %s existingChannel=%s channel=%s", param,
        is_off ? -1 : requested_offset, is_off ? "(not specified)" : "", existing->original, requested->original);
}
