/* What send and receive endpoints share: buffers and windows in effect; see endpoints.h. */
#include "driver/ctl/endpoints.h"

#include <inttypes.h>

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

static as_result check_buffer(const char *param, int64_t requested, int64_t existing)
{
    return 0 == requested || existing == requested ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "%s=%" PRId64 " does not match existing value of %" PRId64 "%s", param, requested, existing,
        0 == existing ? " (OS default)" : "");
}

as_result asi_channel_check_buffers(const asi_udp_channel *existing, const asi_udp_channel *requested)
{
    const as_result result = check_buffer("so-sndbuf", requested->sndbuf_length, existing->sndbuf_length);
    return AS_OK == result ? check_buffer("so-rcvbuf", requested->rcvbuf_length, existing->rcvbuf_length) : result;
}
