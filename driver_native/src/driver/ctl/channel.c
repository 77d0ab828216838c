/* See channel.h. */
#include "driver/ctl/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/command.h"

as_result asi_channel_parse_publication_untrusted(asi_uri *uri, const char *channel, int64_t length)
{
    const as_result parsed = asi_uri_parse_untrusted(uri, channel, length);
    return AS_OK != parsed || !uri->is_spy ? parsed : asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL,
        "invalid URI scheme or transport: %.*s: %s is for subscriptions only", (int)length, channel, ASI_SPY_CHANNEL_PREFIX);
}

as_result asi_channel_parse_subscription_untrusted(asi_uri *uri, const char *channel, int64_t length)
{
    const as_result parsed = asi_uri_parse_untrusted(uri, channel, length);
    return AS_OK != parsed || !uri->is_spy || ASI_MEDIA_UDP == uri->media ? parsed :
        asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "failed to parse channel: UDP channels must use UDP URIs: %.*s: "
            "spies are of UDP publications, subscribe to an IPC one directly", (int)length, channel);
}

char *asi_channel_copy(const char *channel, int64_t length)
{
    char *copy = malloc((size_t)length + 1);
    if (NULL == copy)
    {
        asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a channel of %lld bytes", (long long)length);
        return NULL;
    }
    memcpy(copy, channel, (size_t)length);
    copy[length] = '\0';
    return copy;
}
