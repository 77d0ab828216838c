/* See udp_channels.h. */
#include "driver/ctl/udp_channels.h"

as_result asi_network_parse_channel(
    asi_conductor *conductor, const char *text, int64_t length, bool is_destination, asi_udp_channel **channel)
{
    const asi_udp_channel_context context = { .resolver = &conductor->network.resolver, .ops = &conductor->network.send_ops,
        .next_unique_suffix = &conductor->network.next_unique_suffix };
    asi_udp_channel *opened = NULL;
    bool is_secured = false;
    as_result result = asi_udp_channel_open_untrusted(&context, text, length, is_destination, &opened);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_uri_get_bool(&opened->uri, "ats", false, &is_secured);
    if (AS_OK != result)
    {
        result = asi_fail_in(result, "failed to parse channel");
    }
    else if (is_secured)
    {
        result = asi_fail(AS_E_USAGE, EINVAL, "ATS is not enabled and thus ats=true not allowed: channel=%s", opened->original);
    }
    if (AS_OK != result)
    {
        asi_udp_channel_close(opened);
        return result;
    }
    *channel = opened;
    return AS_OK;
}
