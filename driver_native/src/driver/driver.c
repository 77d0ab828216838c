/* Opens, runs and closes a driver: settings, shared memory, agents and their threads. Public interface in as_driver.h.
 *
 * Owns the CnC file, the loss report and their directory, the three agents (conductor, sender, receiver), their command queues
 * and their threads. */
#define _GNU_SOURCE
#include "driver/driver.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/thread.h"
#include "driver/cpus.h"
#include "driver/ctl/network.h"
#include "driver/ctl/report.h"
#include "driver/directory.h"
#include "driver/interceptors.h"
#include "driver/rx/receiver.h"
#include "driver/tx/sender.h"
#include "shm/error_repeats.h"

#define PATH_CAPACITY (AS_PATH_MAX + 32)

struct as_driver
{
    asi_driver_settings settings;
    pid_t pid; /* the process that opened it */
    asi_cnc cnc;
    asi_map loss_report;
    asi_conductor conductor;
    asi_sender sender;
    asi_receiver receiver;
    asi_command_queue to_sender;
    asi_command_queue to_receiver;
    asi_command_queue to_conductor;
    asi_events *events; /* owned; NULL: no event log */
    asi_interceptors incoming[2]; /* for the sender's and the receiver's sockets */
    asi_agent agents[3];
    asi_idle idle;
    asi_idle sender_idle;
    asi_idle receiver_idle;
    struct stat cnc_identity; /* so that it deletes only its own directory */
};

const asi_conductor *asi_driver_conductor(const as_driver *driver) { return &driver->conductor; }

static int run_conductor(void *context) { return asi_conductor_do_work(&((as_driver *)context)->conductor); }
static int run_sender(void *context) { return asi_sender_do_work(&((as_driver *)context)->sender); }
static int run_receiver(void *context) { return asi_receiver_do_work(&((as_driver *)context)->receiver); }
static int run_network(void *context) { return run_sender(context) + run_receiver(context); }
static int run_all(void *context) { return run_network(context) + run_conductor(context); }

/* The agents that the conductor's thread runs. Spec: 05 §8. */
static int (*main_work(const as_driver *driver))(void *context)
{
    const asi_threading_mode mode = driver->settings.threading_mode;
    return ASI_THREADING_SHARED == mode || ASI_THREADING_INVOKER == mode ? run_all : run_conductor;
}

static void file_path(const asi_driver_settings *settings, const char *name, char *to)
{
    snprintf(to, PATH_CAPACITY, "%s/%s", settings->aeron_dir, name);
}

static as_result open_files(as_driver *driver, const asi_clock *clock)
{
    const asi_driver_settings *settings = &driver->settings;
    const asi_cnc_params params = {
        .lengths = {
            .to_driver = (int32_t)settings->to_driver_buffer_length,
            .to_clients = (int32_t)settings->to_clients_buffer_length,
            .counters_metadata = (int32_t)(4 * settings->counters_values_buffer_length),
            .counters_values = (int32_t)settings->counters_values_buffer_length,
            .error_log = (int32_t)settings->error_buffer_length
        },
        .client_liveness_timeout_ns = settings->client_liveness_timeout_ns,
        .start_timestamp_ms = asi_clock_ms(clock),
        .pid = getpid(),
        .file_page_size = (int32_t)settings->file_page_size
    };
    char path[PATH_CAPACITY];
    as_result result = asi_cnc_create(&driver->cnc, settings->aeron_dir, &params);
    if (AS_OK != result)
    {
        return result;
    }
    file_path(settings, ASI_CNC_FILE, path);
    if (0 != stat(path, &driver->cnc_identity))
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot stat %s", path);
    }
    file_path(settings, ASI_LOSS_REPORT_FILE, path);
    return asi_map_create(
        &driver->loss_report, path, asi_align_i64(settings->loss_report_length, settings->file_page_size), true);
}

static void close_files(as_driver *driver)
{
    asi_cnc_close(&driver->cnc);
    asi_map_close(&driver->loss_report);
}

static as_result open_queues(as_driver *driver)
{
    as_result result = asi_command_queue_open(&driver->to_sender, ASI_SENDER_COMMAND_CAPACITY, sizeof(asi_sender_command));
    if (AS_OK == result)
    {
        result = asi_command_queue_open(&driver->to_receiver, ASI_RECEIVER_COMMAND_CAPACITY, sizeof(asi_receiver_command));
    }
    return AS_OK == result ?
        asi_command_queue_open(&driver->to_conductor, ASI_CONDUCTOR_COMMAND_CAPACITY, sizeof(asi_conductor_command)) : result;
}

static as_result open_interceptors(as_driver *driver, const asi_udp_ops *ops)
{
    as_result result = asi_interceptors_open(&driver->incoming[0], &driver->settings, ops);
    return AS_OK == result ? asi_interceptors_open(&driver->incoming[1], &driver->settings, ops) : result;
}

/* Spec: 05 §7.6 - a buffer that the kernel does not grant causes only a warning. */
static void warn_of_buffer(const char *option, const char *limit, int64_t wanted, int64_t granted)
{
    if (granted > 0 && wanted > granted)
    {
        fprintf(stderr, "WARNING: Could not get desired %s, adjust OS to allow it: attempted=%" PRId64 ", actual=%" PRId64
            ", sysctl -w net.core.%s=%" PRId64 "\n", option, wanted, granted, limit, wanted);
    }
}

/* Spec: 05 §7.6 - minimum buffers of one socket. */
static as_result check_sockets(const asi_driver_settings *settings, const asi_socket_limits *limits)
{
    const int64_t sndbuf = 0 != settings->socket_sndbuf_length ? settings->socket_sndbuf_length : limits->default_sndbuf_length;
    const int64_t rcvbuf = 0 != settings->socket_rcvbuf_length ? settings->socket_rcvbuf_length : limits->default_rcvbuf_length;
    if (0 != sndbuf && settings->mtu_length > sndbuf)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "aeron.mtu.length=%" PRId64 " is more than a socket's send buffer of %" PRId64
            ": lower it or raise aeron.socket.so_sndbuf", settings->mtu_length, sndbuf);
    }
    return 0 == rcvbuf || settings->initial_window_length <= rcvbuf ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "aeron.rcv.initial.window.length=%" PRId64 " is more than a socket's receive buffer of %" PRId64
        ": lower it or raise aeron.socket.so_rcvbuf", settings->initial_window_length, rcvbuf);
}

/* Call after the conductor is open: the agents use its counters. */
static as_result open_network(as_driver *driver, const asi_driver_dependencies *dependencies)
{
    const asi_driver_settings *settings = &driver->settings;
    asi_network_params network = {
        .own_ops = dependencies->ops,
        .resolver = dependencies->resolver,
        .to_sender = &driver->to_sender,
        .to_receiver = &driver->to_receiver,
        .from_agents = &driver->to_conductor,
        .loss_report = &driver->loss_report
    };
    asi_udp_socket_limits(&network.limits);
    warn_of_buffer("SO_SNDBUF", "wmem_max", settings->socket_sndbuf_length, network.limits.max_sndbuf_length);
    warn_of_buffer("SO_RCVBUF", "rmem_max", settings->socket_rcvbuf_length, network.limits.max_rcvbuf_length);
    as_result result = check_sockets(settings, &network.limits);
    result = AS_OK == result ? open_queues(driver) : result;
    result = AS_OK == result ? open_interceptors(driver, &dependencies->ops) : result;
    if (AS_OK != result)
    {
        return result;
    }
    const asi_udp_ops send_ops = asi_interceptors_ops(&driver->incoming[0]);
    const asi_udp_ops receive_ops = asi_interceptors_ops(&driver->incoming[1]);
    network.send_ops = asi_events_ops(driver->events, 0, &send_ops);
    network.receive_ops = asi_events_ops(driver->events, 1, &receive_ops);
    result = asi_network_open(&driver->conductor, &network);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_sender_params sender = {
        .clock = dependencies->clock,
        .settings = settings,
        .command = &driver->to_sender,
        .conductor = &driver->to_conductor,
        .counters = &driver->conductor.counters.counters,
        .events = driver->events
    };
    asi_sender_open(&driver->sender, &sender);
    const asi_receiver_params receiver = {
        .clock = dependencies->clock,
        .ops = &driver->conductor.network.receive_ops,
        .command = &driver->to_receiver,
        .conductor = &driver->to_conductor,
        .counters = &driver->conductor.counters.counters,
        .io_vector_capacity = (int32_t)settings->receiver_io_vector_capacity,
        .stream_session_limit = (int32_t)settings->stream_session_limit,
        .status_message_timeout_ns = settings->status_message_timeout_ns,
        .re_resolution_interval_ns = settings->reresolution_check_interval_ns,
        .cycle_threshold_ns = settings->receiver_cycle_threshold_ns,
        .secret = dependencies->secret
    };
    return asi_receiver_open(&driver->receiver, &receiver);
}

static void close_network(as_driver *driver)
{
    asi_sender_close(&driver->sender);
    asi_receiver_close(&driver->receiver);
    asi_command_queue_close(&driver->to_sender);
    asi_command_queue_close(&driver->to_receiver);
    asi_command_queue_close(&driver->to_conductor);
    asi_interceptors_close(&driver->incoming[0]);
    asi_interceptors_close(&driver->incoming[1]);
}

/* Call with the directory claimed. */
static as_result open_parts(as_driver *driver, const asi_driver_dependencies *dependencies)
{
    as_result result = open_files(driver, &dependencies->clock);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_events_open(&driver->settings, dependencies->clock, &driver->events);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t mapped_bytes = driver->cnc.map.length + driver->settings.loss_report_length; /* Spec: 01 §1.3 step 5 */
    result = asi_conductor_open(&driver->conductor, &driver->settings, &driver->cnc, dependencies->clock, dependencies->rand,
        mapped_bytes);
    if (AS_OK != result)
    {
        return result;
    }
    driver->conductor.events = driver->events;
    driver->conductor.errors.sink = dependencies->errors;
    result = open_network(driver, dependencies);
    if (AS_OK != result)
    {
        asi_conductor_close(&driver->conductor);
        close_network(driver);
    }
    return result;
}

as_result asi_driver_open_with(const asi_driver_settings *settings, const asi_driver_dependencies *dependencies,
    as_on_termination on_termination, void *context, as_driver **driver)
{
    as_result result = asi_driver_settings_check(settings);
    if (AS_OK != result)
    {
        return result;
    }
    as_driver *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a media driver");
    }
    opened->settings = *settings;
    opened->pid = getpid();
    asi_directory directory = ASI_DIRECTORY_NONE;
    result = asi_driver_settings_idle(settings, &opened->idle, &opened->sender_idle, &opened->receiver_idle);
    if (AS_OK == result)
    {
        result = asi_directory_claim(settings, &dependencies->clock, &directory);
    }
    if (AS_OK == result)
    {
        result = open_parts(opened, dependencies);
    }
    if (AS_OK == result)
    {
        opened->conductor.on_termination = on_termination;
        opened->conductor.termination_context = context;
        asi_cnc_publish(&opened->cnc);
        *driver = opened;
    }
    else
    {
        asi_events_close(opened->events);
        close_files(opened);
        free(opened);
    }
    asi_directory_unlock(&directory);
    return result;
}

static asi_driver_dependencies kernel_dependencies(asi_clock clock, asi_rand rand)
{
    asi_rand secret; /* of its own: from what `rand` gave, which peers see, all that it gives can be computed */
    asi_rand_seed_system(&secret);
    return (asi_driver_dependencies){ .clock = clock, .rand = rand, .secret = secret.state, .ops = asi_udp_ops_kernel(),
        .resolver = asi_name_resolver_system() };
}

as_result asi_driver_open(const asi_driver_settings *settings, asi_clock clock, asi_rand rand, as_on_termination on_termination,
    void *context, as_driver **driver)
{
    const asi_driver_dependencies dependencies = kernel_dependencies(clock, rand);
    return asi_driver_open_with(settings, &dependencies, on_termination, context, driver);
}

as_result as_driver_open(
    const as_driver_config *config, as_on_termination on_termination, void *context, as_driver **driver)
{
    asi_rand rand;
    asi_rand_seed_system(&rand);
    asi_driver_dependencies dependencies = kernel_dependencies(asi_clock_system(), rand);
    dependencies.errors = config->error_sink;
    as_result result = asi_driver_open_with(&config->settings, &dependencies, on_termination, context, driver);
    if (AS_OK == result && config->settings.print_configuration)
    {
        result = as_driver_config_print(config);
        if (AS_OK != result)
        {
            as_driver_close(*driver);
            *driver = NULL;
        }
    }
    return result;
}

static as_result choose_cpus(const as_driver *driver, asi_driver_cpus *cpus)
{
    asi_cpu_set allowed;
    asi_cpu_set_of_process(&allowed);
    return asi_driver_cpus_choose(&driver->settings, &allowed, cpus);
}

typedef enum agent_role
{
    ROLE_CONDUCTOR,
    ROLE_SENDER,
    ROLE_RECEIVER,
    ROLE_NETWORK,
    ROLE_ALL
} agent_role;

/* Spec: 11 T3; a name has 15 bytes at most, so some classic names differ from stock's. */
static const char *name_of(const as_driver *driver, agent_role role)
{
    static const char *const CLASSIC[] = { "conductor", "sender", "receiver", "sender,receiver", "driver" };
    static const char *const NEW[] = { "aeron-md-cnd", "aeron-md-snd", "aeron-md-rcv", "aeron-md-net", "aeron-md-shd" };
    return driver->settings.has_new_thread_names ? NEW[role] : CLASSIC[role];
}

static const char *name_of_main(const as_driver *driver)
{
    return name_of(driver, ASI_THREADING_SHARED == driver->settings.threading_mode ? ROLE_ALL : ROLE_CONDUCTOR);
}

static as_result start_network(as_driver *driver, const asi_driver_cpus *cpus)
{
    const asi_driver_settings *settings = &driver->settings;
    as_result result = AS_OK;
    switch (settings->threading_mode)
    {
        case ASI_THREADING_DEDICATED:
            result = asi_agent_start(&driver->agents[1], name_of(driver, ROLE_SENDER), run_sender, driver,
                &driver->sender_idle, cpus->sender);
            return AS_OK == result ? asi_agent_start(&driver->agents[2], name_of(driver, ROLE_RECEIVER), run_receiver, driver,
                &driver->receiver_idle, cpus->receiver) : result;
        case ASI_THREADING_SHARED_NETWORK:
            return asi_agent_start(&driver->agents[1], name_of(driver, ROLE_NETWORK), run_network, driver, &driver->sender_idle,
                cpus->sender);
        default: return AS_OK;
    }
}

as_result as_driver_start(as_driver *driver)
{
    const asi_threading_mode mode = driver->settings.threading_mode;
    if (ASI_THREADING_INVOKER == mode)
    {
        return AS_OK;
    }
    asi_driver_cpus cpus;
    as_result result = choose_cpus(driver, &cpus);
    result = AS_OK == result ? start_network(driver, &cpus) : result;
    return AS_OK == result ? asi_agent_start(&driver->agents[0], name_of_main(driver), main_work(driver), driver,
        &driver->idle, cpus.conductor) : result;
}

int as_driver_do_work(as_driver *driver) { return main_work(driver)(driver); }

static as_result pin_caller(int32_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return 0 == sched_setaffinity(0, sizeof(set), &set) ? AS_OK :
        asi_fail_errno(AS_E_USAGE, errno, "cannot run on cpu %d", cpu);
}

as_result as_driver_start_others(as_driver *driver)
{
    asi_driver_cpus cpus;
    as_result result = choose_cpus(driver, &cpus);
    if (AS_OK == result)
    {
        result = start_network(driver, &cpus); /* first: threads inherit the CPU set of their parent */
    }
    return AS_OK == result && cpus.conductor >= 0 ? pin_caller(cpus.conductor) : result;
}

void asi_driver_run_watched(as_driver *driver, const bool *keep_running, asi_watchdog watchdog, asi_console *console)
{
    const asi_clock clock = asi_clock_system();
    asi_error_repeats repeats;
    asi_error_repeats_init(&repeats, console, driver->cnc.error_log, driver->cnc.lengths.error_log);
    asi_thread_sleep_exactly();
    if (driver->settings.has_new_thread_names)
    {
        asi_thread_name(name_of_main(driver));
    }
    while (asi_load_acquire_bool(keep_running) && !as_driver_is_idle_expired(driver))
    {
        asi_idle_cycle(&driver->idle, as_driver_do_work(driver));
        const int64_t now_ns = 0 == watchdog.interval_ns ? 0 : asi_clock_ns(&clock);
        if (asi_watchdog_is_due(&watchdog, now_ns))
        {
            asi_watchdog_report(&watchdog, now_ns);
        }
        asi_error_repeats_poll(&repeats, driver->conductor.now_ns);
    }
}

void as_driver_run_main(as_driver *driver, const bool *keep_running)
{
    asi_driver_run_watched(driver, keep_running, (asi_watchdog){ .interval_ns = 0 }, NULL);
}

const char *as_driver_aeron_dir(const as_driver *driver) { return driver->settings.aeron_dir; }

bool as_driver_is_idle_expired(const as_driver *driver) { return asi_load_acquire_bool(&driver->conductor.idle_expired); }

static bool is_still_ours(const as_driver *driver)
{
    char path[PATH_CAPACITY];
    struct stat st;
    file_path(&driver->settings, ASI_CNC_FILE, path);
    return 0 == stat(path, &st) && st.st_dev == driver->cnc_identity.st_dev && st.st_ino == driver->cnc_identity.st_ino;
}

void as_driver_close(as_driver *driver)
{
    /* In a forked child the driver belongs to the parent, which still uses its files and serves its clients. */
    if (NULL == driver || driver->pid != getpid())
    {
        return;
    }
    for (size_t i = 0; i < sizeof(driver->agents) / sizeof(driver->agents[0]); i++)
    {
        asi_agent_stop(&driver->agents[i]);
    }
    asi_directory directory = ASI_DIRECTORY_NONE;
    /* Lock before the file is marked closed: after that another driver may claim the directory. */
    if (driver->settings.delete_on_shutdown && is_still_ours(driver) &&
        AS_OK != asi_directory_lock(&driver->settings, &directory))
    {
        asi_conductor_log_failure(&driver->conductor, AS_E_STORAGE);
    }
    asi_conductor_close(&driver->conductor);
    close_network(driver);
    asi_events_close(driver->events);
    asi_map_sync(&driver->cnc.map);
    close_files(driver);
    if (directory.fd >= 0 && AS_OK != asi_directory_delete(&directory, driver->settings.aeron_dir))
    {
        fprintf(stderr, "WARNING: %s\n", as_error_text());
    }
    asi_directory_unlock(&directory);
    free(driver);
}
