/* See config.h: what must hold between settings. */
#include <errno.h>
#include <inttypes.h>

#include "base/bits.h"
#include "base/trust.h"
#include "driver/config.h"
#include "shm/broadcast.h"
#include "shm/cnc.h"
#include "shm/ring_mpsc.h"

/* The texts of both settings say how an agent idles; an error names both. */
static as_result parse_idle(asi_idle *idle, const char *setting, const char *strategy, const char *args)
{
    const as_result result = asi_idle_parse(idle, strategy, args);
    return AS_OK == result ? AS_OK : asi_fail_in(result, "%s, %s.init.args", setting, setting);
}

as_result asi_driver_settings_idle(
    const asi_driver_settings *settings, asi_idle *conductor, asi_idle *sender, asi_idle *receiver)
{
    const bool is_shared = ASI_THREADING_SHARED == settings->threading_mode || ASI_THREADING_INVOKER == settings->threading_mode;
    as_result result = is_shared ?
        parse_idle(conductor, "aeron.shared.idle.strategy", settings->shared_idle_strategy, settings->shared_idle_args) :
        parse_idle(conductor, "aeron.conductor.idle.strategy", settings->conductor_idle_strategy, settings->conductor_idle_args);
    if (AS_OK == result)
    {
        result = ASI_THREADING_SHARED_NETWORK == settings->threading_mode ?
            parse_idle(sender, "aeron.sharednetwork.idle.strategy", settings->shared_network_idle_strategy,
                settings->shared_network_idle_args) :
            parse_idle(sender, "aeron.sender.idle.strategy", settings->sender_idle_strategy, settings->sender_idle_args);
    }
    return AS_OK != result ? result : parse_idle(receiver, "aeron.receiver.idle.strategy", settings->receiver_idle_strategy,
        settings->receiver_idle_args);
}

static as_result check_lengths(const asi_driver_settings *settings)
{
    const asi_cnc_lengths lengths = {
        .to_driver = (int32_t)settings->to_driver_buffer_length,
        .to_clients = (int32_t)settings->to_clients_buffer_length,
        .counters_metadata = (int32_t)(4 * settings->counters_values_buffer_length),
        .counters_values = (int32_t)settings->counters_values_buffer_length,
        .error_log = (int32_t)settings->error_buffer_length
    };
    if (!asi_is_power_of_two(settings->to_driver_buffer_length - ASI_RING_TRAILER_LENGTH))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.conductor.buffer.length=%" PRId64 " is not a power of two plus %d",
            settings->to_driver_buffer_length, ASI_RING_TRAILER_LENGTH);
    }
    if (!asi_is_power_of_two(settings->to_clients_buffer_length - ASI_BROADCAST_TRAILER_LENGTH))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.clients.buffer.length=%" PRId64 " is not a power of two plus %d",
            settings->to_clients_buffer_length, ASI_BROADCAST_TRAILER_LENGTH);
    }
    if (!asi_is_power_of_two(settings->file_page_size))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.file.page.size=%" PRId64 " is not a power of two", settings->file_page_size);
    }
    if (asi_cnc_file_length(&lengths, (int32_t)settings->file_page_size) < 0)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "the buffers of cnc.dat are longer than 2^31 - 1 bytes together: lower "
            "aeron.counters.buffer.length or the others");
    }
    if (!asi_is_power_of_two(settings->ipc_term_buffer_length))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.ipc.term.buffer.length=%" PRId64 " is not a power of two",
            settings->ipc_term_buffer_length);
    }
    if (!asi_is_power_of_two(settings->term_buffer_length))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.term.buffer.length=%" PRId64 " is not a power of two",
            settings->term_buffer_length);
    }
    if (settings->mtu_length <= AS_FRAME_HEADER_LENGTH || 0 != settings->mtu_length % AS_FRAME_ALIGNMENT)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.mtu.length=%" PRId64 " is not a multiple of %d above %d",
            settings->mtu_length, AS_FRAME_ALIGNMENT, AS_FRAME_HEADER_LENGTH);
    }
    if (settings->initial_window_length < settings->mtu_length)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.rcv.initial.window.length=%" PRId64 " is less than aeron.mtu.length=%" PRId64,
            settings->initial_window_length, settings->mtu_length);
    }
    if (settings->ipc_mtu_length <= AS_FRAME_HEADER_LENGTH || 0 != settings->ipc_mtu_length % AS_FRAME_ALIGNMENT)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.ipc.mtu.length=%" PRId64 " is not a multiple of %d above %d",
            settings->ipc_mtu_length, AS_FRAME_ALIGNMENT, AS_FRAME_HEADER_LENGTH);
    }
    return AS_OK;
}

as_result asi_driver_settings_check(const asi_driver_settings *settings)
{
    const struct { const char *greater_name; int64_t greater; const char *less_name; int64_t less; } relations[] = {
        { "aeron.publication.unblock.timeout", settings->publication_unblock_timeout_ns,
            "aeron.client.liveness.timeout", settings->client_liveness_timeout_ns },
        { "aeron.client.liveness.timeout", settings->client_liveness_timeout_ns,
            "aeron.timer.interval", settings->timer_interval_ns },
        { "aeron.untethered.window.limit.timeout", settings->untethered_window_limit_timeout_ns,
            "aeron.timer.interval", settings->timer_interval_ns },
        { "aeron.untethered.resting.timeout", settings->untethered_resting_timeout_ns,
            "aeron.timer.interval", settings->timer_interval_ns },
        { "aeron.untethered.linger.timeout",
            settings->untethered_linger_timeout_ns < 0 ? INT64_MAX : settings->untethered_linger_timeout_ns,
            "aeron.timer.interval", settings->timer_interval_ns },
    };
    for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++)
    {
        if (relations[i].greater <= relations[i].less)
        {
            return asi_fail(AS_E_USAGE, EINVAL, "%s=%" PRId64 "ns must be greater than %s=%" PRId64 "ns",
                relations[i].greater_name, relations[i].greater, relations[i].less_name, relations[i].less);
        }
    }
    if (settings->reserved_session_id_low > settings->reserved_session_id_high)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.publication.reserved.session.id.low is above .high");
    }
    /* A reserved range with all ids would leave none to assign. */
    if (settings->reserved_session_id_high - settings->reserved_session_id_low > INT32_MAX)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.publication.reserved.session.id.low to .high are more than 2^31 - 1 apart");
    }
    if (settings->nak_unicast_delay_ns > INT64_MAX / settings->nak_unicast_retry_delay_ratio)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.nak.unicast.delay times aeron.nak.unicast.retry.delay.ratio is beyond 2^63");
    }
    if ('\0' != settings->resolver_interface[0] && '\0' == settings->resolver_name[0])
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.driver.resolver.interface needs a resolverName: set aeron.driver.resolver.name");
    }
    asi_idle idle;
    asi_trust trust;
    as_result result = asi_trust_parse(&trust, settings->dir_owner, settings->dir_writers);
    result = AS_OK == result ? check_lengths(settings) : result;
    return AS_OK == result ? asi_driver_settings_idle(settings, &idle, &idle, &idle) : result;
}
