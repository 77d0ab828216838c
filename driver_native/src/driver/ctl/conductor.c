/* See conductor.h. */
#include "driver/ctl/conductor.h"

#include <stdio.h>

#include "base/atomic.h"
#include "driver/ctl/ipc.h"
#include "driver/ctl/liveness.h"
#include "driver/ctl/log_files.h"
#include "driver/ctl/network.h"
#include "driver/ctl/on_command.h"
#include "driver/ctl/publications.h"
#include "driver/ctl/report.h"
#include "driver/ctl/subscriptions.h"
#include "wire/command.h"

#define NANOS_PER_MS 1000000LL

static int64_t add_saturating(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

static as_result open_sections(asi_conductor *conductor, asi_cnc *cnc)
{
    const asi_driver_settings *settings = conductor->settings;
    asi_counters counters;
    as_result result = asi_ring_mpsc_init(&conductor->to_driver, cnc->to_driver, cnc->lengths.to_driver);
    if (AS_OK == result)
    {
        result = asi_broadcast_init(&conductor->to_clients, cnc->to_clients, cnc->lengths.to_clients);
    }
    if (AS_OK == result)
    {
        result = asi_counters_init(&counters, cnc->counters_metadata, cnc->lengths.counters_metadata, cnc->counters_values,
            cnc->lengths.counters_values);
    }
    if (AS_OK == result)
    {
        /* Spec: 01 §5.3 - a positive timeout below a millisecond is one millisecond. */
        const int64_t reuse_ns = settings->counter_free_to_reuse_ns;
        const int64_t reuse_ms = reuse_ns > 0 && reuse_ns < NANOS_PER_MS ? 1 : reuse_ns / NANOS_PER_MS;
        result = asi_counters_manager_init(&conductor->counters, &counters, reuse_ms);
    }
    return result;
}

as_result asi_conductor_open(asi_conductor *conductor, const asi_driver_settings *settings, asi_cnc *cnc, asi_clock clock,
    asi_rand rand, int64_t mapped_bytes)
{
    *conductor = (asi_conductor){ .settings = settings, .clock = clock, .rand = rand };
    as_result result = open_sections(conductor, cnc);
    if (AS_OK != result)
    {
        return result;
    }
    conductor->now_ns = asi_clock_ns(&clock);
    conductor->now_ms = asi_clock_ms(&clock);
    conductor->last_refresh_ns = conductor->now_ns;
    conductor->last_timer_ns = conductor->now_ns;
    conductor->blocked_command_since_ns = conductor->now_ns;
    conductor->idle_since_ns = conductor->now_ns;
    conductor->idle_allowance_ns = settings->exit_when_idle_ns < 0 ? INT64_MAX :
        add_saturating(settings->exit_when_idle_ns,
            settings->driver_timeout_ms > INT64_MAX / NANOS_PER_MS ? INT64_MAX : settings->driver_timeout_ms * NANOS_PER_MS);
    conductor->next_session_id = asi_rand_i32(&conductor->rand);

    const asi_system_labels labels = {
        .mode = asi_threading_mode_text(settings->threading_mode),
        .driver_name = settings->resolver_name,
        .conductor_threshold_ns = settings->conductor_cycle_threshold_ns,
        .sender_threshold_ns = settings->sender_cycle_threshold_ns,
        .receiver_threshold_ns = settings->receiver_cycle_threshold_ns,
        .resolver_threshold_ns = settings->name_resolver_threshold_ns
    };
    result = asi_counters_allocate_system(&conductor->counters, &labels, conductor->now_ms);
    if (AS_OK != result)
    {
        asi_counters_manager_close(&conductor->counters);
        return result;
    }
    asi_error_log_init(&conductor->errors, cnc->error_log, cnc->lengths.error_log,
        asi_counter_addr(&conductor->counters.counters, ASI_SYSTEM_ERRORS));
    asi_conductor_count(conductor, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED, mapped_bytes);
    asi_ring_mpsc_next_correlation_id(&conductor->to_driver); /* so that no client gets id 0 */
    asi_ring_mpsc_set_consumer_heartbeat(&conductor->to_driver, conductor->now_ms);
    return AS_OK;
}

/* Spec: 03 §13 - a command that a dead client claimed and never committed blocks all clients. */
static void check_blocked_commands(asi_conductor *conductor)
{
    const int64_t position = asi_ring_mpsc_consumer_position(&conductor->to_driver);
    if (position != conductor->blocked_command_position ||
        asi_ring_mpsc_producer_position(&conductor->to_driver) <= position)
    {
        conductor->blocked_command_position = position;
        conductor->blocked_command_since_ns = conductor->now_ns;
    }
    else if (conductor->now_ns - conductor->blocked_command_since_ns > conductor->settings->client_liveness_timeout_ns &&
        asi_ring_mpsc_unblock(&conductor->to_driver))
    {
        asi_conductor_count(conductor, ASI_SYSTEM_UNBLOCKED_COMMANDS, 1);
    }
}

static void on_timer(asi_conductor *conductor)
{
    asi_ring_mpsc_set_consumer_heartbeat(&conductor->to_driver, conductor->now_ms);
    asi_clients_on_timer(conductor, asi_ctl_subscriptions_remove_client);
    asi_ctl_publications_on_timer(conductor);
    asi_network_on_timer(conductor);
    check_blocked_commands(conductor);
}

static void track_idleness(asi_conductor *conductor, int64_t commands)
{
    if (conductor->settings->exit_when_idle_ns < 0)
    {
        return;
    }
    if (commands > 0 || conductor->clients.count > 0)
    {
        conductor->idle_since_ns = conductor->now_ns;
        conductor->idle_allowance_ns = conductor->settings->exit_when_idle_ns;
    }
    else if (conductor->now_ns - conductor->idle_since_ns > conductor->idle_allowance_ns)
    {
        asi_store_release_bool(&conductor->idle_expired, true);
    }
}

int asi_conductor_do_work(asi_conductor *conductor)
{
    const int64_t now_ns = asi_clock_ns(&conductor->clock);
    conductor->now_ns = now_ns;
    asi_cycle_time_track(&conductor->cycle, now_ns, conductor->settings->conductor_cycle_threshold_ns,
        &conductor->counters.counters, ASI_SYSTEM_CONDUCTOR_MAX_CYCLE_TIME, ASI_SYSTEM_CONDUCTOR_CYCLE_EXCEEDED);
    if (now_ns - conductor->last_refresh_ns >= NANOS_PER_MS)
    {
        conductor->now_ms = asi_clock_ms(&conductor->clock);
        conductor->last_refresh_ns = now_ns;
    }
    int work = 0;
    if (now_ns - conductor->last_timer_ns >= conductor->settings->timer_interval_ns)
    {
        conductor->last_timer_ns = now_ns;
        on_timer(conductor);
        work++;
    }
    const int64_t commands = asi_ring_mpsc_read(&conductor->to_driver, asi_on_command_untrusted, conductor, 1);
    work += (int)commands;
    work += asi_waiting_commands_do_work(conductor);
    work += asi_network_do_work(conductor);
    for (int32_t i = 0; i < conductor->publications.count; i++)
    {
        work += asi_ipc_update(conductor->publications.items[i]);
    }
    track_idleness(conductor, commands);
    return work;
}

void asi_conductor_close(asi_conductor *conductor)
{
    asi_log_files_close(conductor);
    asi_ctl_publications_release(conductor);
    asi_network_close(conductor);
    asi_ctl_subscriptions_release(conductor);
    asi_clients_release(conductor);
    asi_ring_mpsc_set_consumer_heartbeat(&conductor->to_driver, AS_NULL_VALUE);
    asi_error_log_close(&conductor->errors);
    asi_counters_manager_close(&conductor->counters);
}
