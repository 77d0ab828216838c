/* See interceptors.h. */
#include "driver/interceptors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *args_of(const asi_driver_settings *settings, const char *kind)
{
    return 0 == strcmp(kind, "fixed-loss") ? settings->fixed_loss_args :
        0 == strcmp(kind, "multi-gap-loss") ? settings->multi_gap_loss_args : settings->loss_args;
}

static as_result add(
    asi_interceptors *interceptors, const asi_driver_settings *settings, asi_loss_direction direction, const char *kind)
{
    const int32_t at = interceptors->count;
    if (ASI_INTERCEPTOR_MAX == at)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "more than %d names", ASI_INTERCEPTOR_MAX);
    }
    const as_result result =
        asi_udp_loss_open(&interceptors->ops[at], direction, kind, args_of(settings, kind), &interceptors->losses[at]);
    if (AS_OK == result)
    {
        interceptors->ops[at + 1] = asi_udp_loss_ops(interceptors->losses[at]);
        interceptors->count++;
    }
    return result;
}

static as_result add_all(
    asi_interceptors *interceptors, const asi_driver_settings *settings, asi_loss_direction direction, const char *list)
{
    char names[ASI_ARGS_TEXT_CAPACITY];
    snprintf(names, sizeof(names), "%s", list);
    char *rest = NULL;
    as_result result = AS_OK;
    for (const char *name = strtok_r(names, ", ", &rest); NULL != name && AS_OK == result; name = strtok_r(NULL, ", ", &rest))
    {
        result = add(interceptors, settings, direction, name);
    }
    return AS_OK == result ? AS_OK : asi_fail_in(result, "aeron.udp.channel.%s.interceptors=%s",
        ASI_LOSS_INCOMING == direction ? "incoming" : "outgoing", list);
}

as_result asi_interceptors_open(asi_interceptors *interceptors, const asi_driver_settings *settings, const asi_udp_ops *network)
{
    *interceptors = (asi_interceptors){ .ops[0] = *network };
    const as_result result = add_all(interceptors, settings, ASI_LOSS_OUTGOING, settings->outgoing_interceptors);
    return AS_OK == result ? add_all(interceptors, settings, ASI_LOSS_INCOMING, settings->incoming_interceptors) : result;
}

void asi_interceptors_close(asi_interceptors *interceptors)
{
    for (int32_t i = 0; i < interceptors->count; i++)
    {
        asi_udp_loss_close(interceptors->losses[i]);
    }
    interceptors->count = 0;
}

asi_udp_ops asi_interceptors_ops(const asi_interceptors *interceptors) { return interceptors->ops[interceptors->count]; }
