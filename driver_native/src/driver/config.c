/* See config.h. The table is in the order of the stock driver's print-configuration. */
#include "driver/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/properties.h"
#include "base/trust.h"
#include "shm/broadcast.h"
#include "shm/cnc.h"
#include "shm/ring_mpsc.h"

typedef enum setting_kind
{
    KIND_TEXT,
    KIND_DIRECTORY, /* text without a slash at its end: names of other files are made from it */
    KIND_BOOL,
    KIND_SIZE,
    KIND_NUMBER,
    KIND_DURATION,
    KIND_OPTIONAL_DURATION, /* -1 means not set */
    KIND_THREADING_MODE,
    KIND_THREAD_NAMING,
    KIND_VALIDATOR,
    KIND_INFERABLE,
    KIND_OPTIONAL_TAG, /* int64; has_receiver_group_tag records whether it was given */
    KIND_PORT_RANGE,
    KIND_LOG_FORMAT,
    KIND_LOG_LEVEL
} setting_kind;

typedef struct setting
{
    const char *property;
    const char *printed;  /* name in print-configuration; NULL: not printed */
    setting_kind kind;
    size_t offset;
    size_t capacity;      /* of text settings */
    int64_t min;          /* numbers outside the range are clamped silently, Spec: 05 §1 */
    int64_t max;
    const char *fallback; /* parsed as if given; NULL: the default Aeron directory */
} setting;

#define FIELD(name) offsetof(asi_driver_settings, name), sizeof(((asi_driver_settings *)0)->name)
#define NO_RANGE INT64_MIN, INT64_MAX
#define MICROSECOND 1000
#define DURATION_MAX ASI_DURATION_MAX_NS
#define RTT_MAX (DURATION_MAX / 4) /* 4 times it is waited for an answer */
#define KIB (1024LL)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define RING_DEFAULT (MIB + ASI_RING_TRAILER_LENGTH)
#define BROADCAST_DEFAULT (MIB + ASI_BROADCAST_TRAILER_LENGTH)

static const setting SETTINGS[] = {
    { "aeron.dir", "aeron_dir", KIND_DIRECTORY, FIELD(aeron_dir), NO_RANGE, NULL },
    { ASI_TRUST_OWNER, NULL, KIND_TEXT, FIELD(dir_owner), NO_RANGE, "" },
    { ASI_TRUST_WRITERS, NULL, KIND_TEXT, FIELD(dir_writers), NO_RANGE, "" },
    { "aeron.driver.timeout", "driver_timeout_ms", KIND_NUMBER, FIELD(driver_timeout_ms), 0, DURATION_MAX, "10000" },
    { "aeron.print.configuration", "print_configuration_on_start", KIND_BOOL, FIELD(print_configuration), NO_RANGE, "false" },
    { "aeron.dir.delete.on.start", "dirs_delete_on_start", KIND_BOOL, FIELD(delete_on_start), NO_RANGE, "false" },
    { "aeron.dir.delete.on.shutdown", "dirs_delete_on_shutdown", KIND_BOOL, FIELD(delete_on_shutdown), NO_RANGE, "false" },
    { "aeron.dir.warn.if.exists", "warn_if_dirs_exists", KIND_BOOL, FIELD(warn_if_exists), NO_RANGE, "false" },
    { "aeron.term.buffer.sparse.file", "term_buffer_sparse_file", KIND_BOOL, FIELD(term_buffer_sparse_file), NO_RANGE, "true" },
    { "aeron.perform.storage.checks", "perform_storage_checks", KIND_BOOL, FIELD(perform_storage_checks), NO_RANGE, "true" },
    { "aeron.spies.simulate.connection", "spies_simulate_connection", KIND_BOOL, FIELD(spies_simulate_connection), NO_RANGE,
        "false" },
    { "aeron.reliable.stream", "reliable_stream", KIND_BOOL, FIELD(reliable_stream), NO_RANGE, "true" },
    { "aeron.tether.subscriptions", "tether_subscriptions", KIND_BOOL, FIELD(tether_subscriptions), NO_RANGE, "true" },
    { "aeron.rejoin.stream", "rejoin_stream", KIND_BOOL, FIELD(rejoin_stream), NO_RANGE, "true" },
    { "aeron.receiver.group.consideration", "receiver_group_consideration", KIND_INFERABLE, FIELD(receiver_group_consideration),
        NO_RANGE, "infer" },
    { "aeron.conductor.buffer.length", "to_driver_buffer_length", KIND_SIZE, FIELD(to_driver_buffer_length), RING_DEFAULT,
        INT32_MAX, "1049344" },
    { "aeron.clients.buffer.length", "to_clients_buffer_length", KIND_SIZE, FIELD(to_clients_buffer_length), BROADCAST_DEFAULT,
        INT32_MAX, "1048704" },
    { "aeron.counters.buffer.length", "counters_values_buffer_length", KIND_SIZE, FIELD(counters_values_buffer_length), MIB,
        500 * MIB, "8m" },
    { "aeron.error.buffer.length", "error_buffer_length", KIND_SIZE, FIELD(error_buffer_length), 4 * MIB, INT32_MAX, "4m" },
    { "aeron.timer.interval", "timer_interval_ns", KIND_DURATION, FIELD(timer_interval_ns), MICROSECOND, DURATION_MAX, "1s" },
    { "aeron.client.liveness.timeout", "client_liveness_timeout_ns", KIND_DURATION, FIELD(client_liveness_timeout_ns),
        MICROSECOND, DURATION_MAX, "10s" },
    { "aeron.image.liveness.timeout", "image_liveness_timeout_ns", KIND_DURATION, FIELD(image_liveness_timeout_ns), MICROSECOND,
        DURATION_MAX, "10s" },
    { "aeron.publication.unblock.timeout", "publication_unblock_timeout_ns", KIND_DURATION,
        FIELD(publication_unblock_timeout_ns), MICROSECOND, DURATION_MAX, "15s" },
    { "aeron.publication.connection.timeout", "publication_connection_timeout_ns", KIND_DURATION,
        FIELD(publication_connection_timeout_ns), MICROSECOND, DURATION_MAX, "5s" },
    { "aeron.publication.linger.timeout", "publication_linger_timeout_ns", KIND_DURATION, FIELD(publication_linger_timeout_ns),
        MICROSECOND, DURATION_MAX, "5s" },
    { "aeron.untethered.window.limit.timeout", "untethered_window_limit_timeout_ns", KIND_DURATION,
        FIELD(untethered_window_limit_timeout_ns), 0, DURATION_MAX, "5s" },
    { "aeron.untethered.linger.timeout", NULL, KIND_OPTIONAL_DURATION, FIELD(untethered_linger_timeout_ns), -1, DURATION_MAX,
        "-1" },
    { "aeron.untethered.resting.timeout", "untethered_resting_timeout_ns", KIND_DURATION, FIELD(untethered_resting_timeout_ns),
        0, DURATION_MAX, "10s" },
    { "aeron.max.resend", "max_resend", KIND_NUMBER, FIELD(max_resend), 1, 256, "16" },
    { "aeron.retransmit.unicast.delay", "retransmit_unicast_delay_ns", KIND_DURATION, FIELD(retransmit_unicast_delay_ns), 0,
        DURATION_MAX, "0" },
    { "aeron.retransmit.unicast.linger", "retransmit_unicast_linger_ns", KIND_DURATION, FIELD(retransmit_unicast_linger_ns),
        MICROSECOND, DURATION_MAX, "10ms" },
    { "aeron.nak.unicast.delay", "nak_unicast_delay_ns", KIND_DURATION, FIELD(nak_unicast_delay_ns), MICROSECOND, DURATION_MAX,
        "1us" },
    { "aeron.nak.unicast.retry.delay.ratio", "nak_unicast_retry_delay_ratio", KIND_NUMBER,
        FIELD(nak_unicast_retry_delay_ratio), 1, INT64_MAX, "100" },
    { "aeron.nak.multicast.max.backoff", "nak_multicast_max_backoff_ns", KIND_DURATION, FIELD(nak_multicast_max_backoff_ns),
        MICROSECOND, DURATION_MAX, "10ms" },
    { "aeron.unicast.flow.control.rrwm", "unicast_flow_control_rrwm", KIND_NUMBER, FIELD(unicast_rrwm), 1, INT32_MAX, "16" },
    { "aeron.multicast.flow.control.rrwm", "multicast_flow_control_rrwm", KIND_NUMBER, FIELD(multicast_rrwm), 1, INT32_MAX,
        "4" },
    { "aeron.nak.multicast.group.size", "nak_multicast_group_size", KIND_NUMBER, FIELD(nak_multicast_group_size), 1,
        INT32_MAX, "10" },
    { "aeron.rcv.status.message.timeout", "status_message_timeout_ns", KIND_DURATION, FIELD(status_message_timeout_ns),
        MICROSECOND, DURATION_MAX, "200ms" },
    { "aeron.counters.free.to.reuse.timeout", "counter_free_to_reuse_ns", KIND_DURATION, FIELD(counter_free_to_reuse_ns), 0,
        DURATION_MAX, "1s" },
    { "aeron.driver.conductor.cycle.threshold", "conductor_cycle_threshold_ns", KIND_DURATION,
        FIELD(conductor_cycle_threshold_ns), 0, DURATION_MAX, "100ms" },
    { "aeron.driver.sender.cycle.threshold", "sender_cycle_threshold_ns", KIND_DURATION, FIELD(sender_cycle_threshold_ns), 0,
        DURATION_MAX, "100ms" },
    { "aeron.driver.receiver.cycle.threshold", "receiver_cycle_threshold_ns", KIND_DURATION, FIELD(receiver_cycle_threshold_ns),
        0, DURATION_MAX, "100ms" },
    { "aeron.name.resolver.threshold", "name_resolver_threshold_ns", KIND_DURATION, FIELD(name_resolver_threshold_ns), 0,
        DURATION_MAX, "5s" },
    { "aeron.term.buffer.length", "term_buffer_length", KIND_SIZE, FIELD(term_buffer_length), AS_TERM_MIN_LENGTH,
        AS_TERM_MAX_LENGTH, "16m" },
    { "aeron.ipc.term.buffer.length", "ipc_term_buffer_length", KIND_SIZE, FIELD(ipc_term_buffer_length), AS_TERM_MIN_LENGTH,
        AS_TERM_MAX_LENGTH, "64m" },
    { "aeron.publication.term.window.length", "publication_window_length", KIND_SIZE, FIELD(publication_window_length), 0,
        GIB, "0" },
    { "aeron.ipc.publication.term.window.length", "ipc_publication_window_length", KIND_SIZE,
        FIELD(ipc_publication_window_length), 0, GIB, "0" },
    { "aeron.rcv.initial.window.length", "initial_window_length", KIND_SIZE, FIELD(initial_window_length), 256, INT32_MAX,
        "128k" },
    { "aeron.socket.so_sndbuf", "socket_sndbuf_length", KIND_SIZE, FIELD(socket_sndbuf_length), 0, INT32_MAX, "0" },
    { "aeron.socket.so_rcvbuf", "socket_rcvbuf_length", KIND_SIZE, FIELD(socket_rcvbuf_length), 0, INT32_MAX, "128k" },
    { "aeron.socket.multicast.ttl", "multicast_ttl", KIND_NUMBER, FIELD(multicast_ttl), 0, 255, "0" },
    { "aeron.mtu.length", "mtu_length", KIND_SIZE, FIELD(mtu_length), AS_FRAME_HEADER_LENGTH, AS_MAX_UDP_PAYLOAD_LENGTH,
        "1408" },
    { "aeron.ipc.mtu.length", "ipc_mtu_length", KIND_SIZE, FIELD(ipc_mtu_length), AS_FRAME_HEADER_LENGTH,
        AS_MAX_UDP_PAYLOAD_LENGTH, "1408" },
    { "aeron.file.page.size", "file_page_size", KIND_SIZE, FIELD(file_page_size), 4 * KIB, GIB, "4k" },
    { "aeron.low.file.store.warning.threshold", "low_file_store_warning_threshold", KIND_SIZE,
        FIELD(low_file_store_warning_threshold), 0, INT64_MAX, "160m" },
    { "aeron.publication.reserved.session.id.low", "publication_reserved_session_id_low", KIND_NUMBER,
        FIELD(reserved_session_id_low), INT32_MIN, INT32_MAX, "-1" },
    { "aeron.publication.reserved.session.id.high", "publication_reserved_session_id_high", KIND_NUMBER,
        FIELD(reserved_session_id_high), INT32_MIN, INT32_MAX, "1000" },
    { "aeron.loss.report.buffer.length", "loss_report_length", KIND_SIZE, FIELD(loss_report_length), KIB, INT32_MAX, "1m" },
    { "aeron.send.to.status.poll.ratio", "send_to_sm_poll_ratio", KIND_NUMBER, FIELD(send_to_status_poll_ratio), 1,
        INT32_MAX, "6" },
    { "aeron.receiver.io.vector.capacity", "receiver_io_vector_capacity", KIND_NUMBER, FIELD(receiver_io_vector_capacity), 1,
        16, "4" },
    { "aeron.sender.io.vector.capacity", "sender_io_vector_capacity", KIND_NUMBER, FIELD(sender_io_vector_capacity), 1, 16,
        "4" },
    { "aeron.network.publication.max.messages.per.send", "network_publication_max_messages_per_send", KIND_NUMBER,
        FIELD(max_messages_per_send), 1, 16, "4" },
    { "aeron.conductor.cpu.affinity", "conductor_cpu_affinity_no", KIND_NUMBER, FIELD(conductor_cpu_affinity), -1, 255, "-1" },
    { "aeron.receiver.cpu.affinity", "receiver_cpu_affinity_no", KIND_NUMBER, FIELD(receiver_cpu_affinity), -1, 255, "-1" },
    { "aeron.sender.cpu.affinity", "sender_cpu_affinity_no", KIND_NUMBER, FIELD(sender_cpu_affinity), -1, 255, "-1" },
    { "aeron.driver.cpuset.affinity", "cpuset_affinity", KIND_BOOL, FIELD(cpuset_affinity), NO_RANGE, "false" },
    { "aeron.driver.cpuset.warnings.as.errors", "cpuset_warnings_as_errors", KIND_BOOL, FIELD(cpuset_warnings_as_errors),
        NO_RANGE, "false" },
    { "aeron.threading.mode", "threading_mode", KIND_THREADING_MODE, FIELD(threading_mode), NO_RANGE, "DEDICATED" },
    { "aeron.thread.naming", NULL, KIND_THREAD_NAMING, FIELD(has_new_thread_names), NO_RANGE, "classic" },
    { "aeron.conductor.idle.strategy", "conductor_idle_strategy_func", KIND_TEXT, FIELD(conductor_idle_strategy), NO_RANGE,
        "backoff" },
    { "aeron.conductor.idle.strategy.init.args", "conductor_idle_strategy_init_args", KIND_TEXT, FIELD(conductor_idle_args),
        NO_RANGE, "" },
    { "aeron.sender.idle.strategy", "sender_idle_strategy_func", KIND_TEXT, FIELD(sender_idle_strategy), NO_RANGE, "backoff" },
    { "aeron.sender.idle.strategy.init.args", "sender_idle_strategy_init_args", KIND_TEXT, FIELD(sender_idle_args), NO_RANGE,
        "" },
    { "aeron.receiver.idle.strategy", "receiver_idle_strategy_func", KIND_TEXT, FIELD(receiver_idle_strategy), NO_RANGE,
        "backoff" },
    { "aeron.receiver.idle.strategy.init.args", "receiver_idle_strategy_init_args", KIND_TEXT, FIELD(receiver_idle_args),
        NO_RANGE, "" },
    { "aeron.sharednetwork.idle.strategy", "shared_network_idle_strategy_func", KIND_TEXT,
        FIELD(shared_network_idle_strategy), NO_RANGE, "backoff" },
    { "aeron.sharednetwork.idle.strategy.init.args", "shared_network_idle_strategy_init_args", KIND_TEXT,
        FIELD(shared_network_idle_args), NO_RANGE, "" },
    { "aeron.shared.idle.strategy", "shared_idle_strategy_func", KIND_TEXT, FIELD(shared_idle_strategy), NO_RANGE, "backoff" },
    { "aeron.shared.idle.strategy.init.args", "shared_idle_strategy_init_args", KIND_TEXT, FIELD(shared_idle_args), NO_RANGE,
        "" },
    { "aeron.unicast.FlowControl.supplier", "unicast_flow_control_supplier_func", KIND_TEXT, FIELD(unicast_flow_control),
        NO_RANGE, "unicast_max" },
    { "aeron.multicast.FlowControl.supplier", "multicast_flow_control_supplier_func", KIND_TEXT,
        FIELD(multicast_flow_control), NO_RANGE, "multicast_max" },
    { "aeron.receiver.group.tag", "receiver_group_tag.value", KIND_OPTIONAL_TAG, FIELD(receiver_group_tag), NO_RANGE, "" },
    { "aeron.flow.control.group.tag", "flow_control.group_tag", KIND_NUMBER, FIELD(flow_control_group_tag), INT64_MIN,
        INT64_MAX, "-1" },
    { "aeron.flow.control.group.min.size", "flow_control.group_min_size", KIND_NUMBER, FIELD(flow_control_group_min_size), 0,
        INT32_MAX, "0" },
    { "aeron.flow.control.receiver.timeout", "flow_control_receiver_timeout_ns", KIND_DURATION,
        FIELD(flow_control_receiver_timeout_ns), 0, DURATION_MAX, "5s" },
    { "aeron.CongestionControl.supplier", "congestion_control_supplier_func", KIND_TEXT, FIELD(congestion_control), NO_RANGE,
        "default" },
    { "aeron.CubicCongestionControl.measureRtt", NULL, KIND_BOOL, FIELD(cubic_measure_rtt), NO_RANGE, "false" },
    { "aeron.CubicCongestionControl.initialRtt", NULL, KIND_DURATION, FIELD(cubic_initial_rtt_ns), MICROSECOND, RTT_MAX,
        "100us" },
    { "aeron.CubicCongestionControl.tcpMode", NULL, KIND_BOOL, FIELD(cubic_tcp_mode), NO_RANGE, "false" },
    { "aeron.driver.termination.validator", "termination_validator_func", KIND_VALIDATOR, FIELD(allow_termination), NO_RANGE,
        "deny" },
    { "aeron.name.resolver.supplier", "name_resolver_supplier_func", KIND_TEXT, FIELD(name_resolver), NO_RANGE, "default" },
    { "aeron.name.resolver.init.args", "name_resolver_init_args", KIND_TEXT, FIELD(name_resolver_args), NO_RANGE, "" },
    { "aeron.driver.resolver.name", "resolver_name", KIND_TEXT, FIELD(resolver_name), NO_RANGE, "" },
    { "aeron.driver.resolver.interface", "resolver_interface", KIND_TEXT, FIELD(resolver_interface), NO_RANGE, "" },
    { "aeron.driver.resolver.bootstrap.neighbor", "resolver_bootstrap_neighbor", KIND_TEXT, FIELD(resolver_bootstrap),
        NO_RANGE, "" },
    { "aeron.driver.resolver.neighbor.timeout", NULL, KIND_DURATION, FIELD(resolver_neighbor_timeout_ns), 1000000, DURATION_MAX,
        "10s" },
    { "aeron.driver.resolver.self.resolution.interval", NULL, KIND_DURATION, FIELD(resolver_self_interval_ns), 1000000,
        DURATION_MAX, "1s" },
    { "aeron.driver.resolver.neighbor.resolution.interval", NULL, KIND_DURATION, FIELD(resolver_neighbor_interval_ns),
        1000000, DURATION_MAX, "2s" },
    { "aeron.driver.resolver.bootstrap.neighbor.resolution.interval", NULL, KIND_DURATION,
        FIELD(resolver_bootstrap_interval_ns), 1000000, DURATION_MAX, "10s" },
    { "aeron.driver.reresolution.check.interval", "re_resolution_check_interval_ns", KIND_DURATION,
        FIELD(reresolution_check_interval_ns), 0, DURATION_MAX, "1s" },
    { "aeron.sender.wildcard.port.range", "sender_wildcard_port_range", KIND_PORT_RANGE, FIELD(sender_port_range), NO_RANGE,
        "0 0" },
    { "aeron.receiver.wildcard.port.range", "receiver_wildcard_port_range", KIND_PORT_RANGE, FIELD(receiver_port_range),
        NO_RANGE,
        "0 0" },
    { "aeron.driver.stream.session.limit", "stream_session_limit", KIND_NUMBER, FIELD(stream_session_limit), 1, INT32_MAX,
        "2147483647" },
    { "aeron.spark.driver.images.unbegun.max", NULL, KIND_NUMBER, FIELD(images_unbegun_max), 1, INT32_MAX, "1536" },
    { "aeron.spark.driver.image.term.length.max", NULL, KIND_SIZE, FIELD(image_term_length_max), AS_TERM_MIN_LENGTH,
        AS_TERM_MAX_LENGTH, "1g" },
    { "aeron.spark.driver.destinations.max", NULL, KIND_NUMBER, FIELD(destinations_max), 1, 65536, "1024" },
    { "aeron.spark.driver.destinations.per.address.max", NULL, KIND_NUMBER, FIELD(destinations_per_address_max), 1, 65536, "64" },
    { "aeron.spark.driver.nak.ahead", NULL, KIND_BOOL, FIELD(nak_ahead), NO_RANGE, "false" },
    { "aeron.driver.connect", NULL, KIND_BOOL, FIELD(connect_sockets), NO_RANGE, "true" },
    { "aeron.udp.channel.outgoing.interceptors", "outgoing_interceptors", KIND_TEXT, FIELD(outgoing_interceptors), NO_RANGE,
        "" },
    { "aeron.udp.channel.incoming.interceptors", "incoming_interceptors", KIND_TEXT, FIELD(incoming_interceptors), NO_RANGE,
        "" },
    { "aeron.udp.channel.transport.bindings.loss.args", NULL, KIND_TEXT, FIELD(loss_args), NO_RANGE, "" },
    { "aeron.udp.channel.transport.bindings.fixed.loss.args", NULL, KIND_TEXT, FIELD(fixed_loss_args), NO_RANGE, "" },
    { "aeron.udp.channel.transport.bindings.multi.gap.loss.args", NULL, KIND_TEXT, FIELD(multi_gap_loss_args), NO_RANGE, "" },
    { "aeron.event.log", NULL, KIND_TEXT, FIELD(event_log), NO_RANGE, "" },
    { "aeron.event.log.disable", NULL, KIND_TEXT, FIELD(event_log_disable), NO_RANGE, "" },
    { "aeron.event.log.filename", NULL, KIND_TEXT, FIELD(event_log_filename), NO_RANGE, "" },
    { "aeron.event.log.file.max.length", NULL, KIND_SIZE, FIELD(event_log_file_max_length), 0, INT64_MAX, "0" },
    { "aeron.spark.log.format", NULL, KIND_LOG_FORMAT, FIELD(log_format), NO_RANGE, "text" },
    { "aeron.spark.log.level", NULL, KIND_LOG_LEVEL, FIELD(log_level), NO_RANGE, "info" },
    { "aeron.spark.driver.exit.when.idle", "spark_driver_exit_when_idle_ns", KIND_OPTIONAL_DURATION, FIELD(exit_when_idle_ns),
        -1, DURATION_MAX, "-1" },
};

/* Settings of the stock C driver that load native code into it. This driver can't run such code, so it reports a setting instead
 * of ignoring it. */
static const char *const FOREIGN_SETTINGS[] = {
    "AERON_AGENT_ON_START_FUNCTION",
    "AERON_DRIVER_DYNAMIC_LIBRARIES",
    "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA",
    "AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA",
};

#define FOREIGN_COUNT (sizeof(FOREIGN_SETTINGS) / sizeof(FOREIGN_SETTINGS[0]))
#define SETTING_COUNT (sizeof(SETTINGS) / sizeof(SETTINGS[0]))

static const char *const MODES[] = { "DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER" };

static const char *const INFERABLES[] = { "false", "true", "infer" };

#define MODE_COUNT ((int)(sizeof(MODES) / sizeof(MODES[0])))

const char *asi_threading_mode_text(asi_threading_mode mode) { return MODES[mode]; }

/* Spec: 05 §7 - the environment name is the property in upper case with '_' for '.', with one exception. */
static void to_environment_name(const char *name, char *to, size_t capacity)
{
    size_t i = 0;
    for (; '\0' != name[i] && i < capacity - 1; i++)
    {
        to[i] = '.' == name[i] ? '_' : (char)toupper((unsigned char)name[i]);
    }
    to[i] = '\0';
    if (0 == strcmp(to, "AERON_NAME_RESOLVER_THRESHOLD"))
    {
        snprintf(to, capacity, "AERON_DRIVER_NAME_RESOLVER_THRESHOLD");
    }
}

static as_result parse_mode(const char *text, asi_threading_mode *mode)
{
    for (int i = 0; i < MODE_COUNT; i++)
    {
        if (0 == strcmp(text, MODES[i]))
        {
            *mode = (asi_threading_mode)i;
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EINVAL, "'%s' is not one of DEDICATED, SHARED_NETWORK, SHARED, INVOKER", text);
}

static as_result parse_naming(const char *text, bool *is_new)
{
    if (0 != strcmp(text, "classic") && 0 != strcmp(text, "new"))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "'%s' is neither classic nor new", text);
    }
    *is_new = 'n' == text[0];
    return AS_OK;
}

static as_result parse_validator(const char *text, bool *allow)
{
    static const struct { const char *name; bool allow; } VALIDATORS[] = {
        { "allow", true }, { "aeron_driver_termination_validator_default_allow", true },
        { "io.aeron.driver.DefaultAllowTerminationValidator", true },
        { "deny", false }, { "aeron_driver_termination_validator_default_deny", false },
        { "io.aeron.driver.DefaultDenyTerminationValidator", false }
    };
    for (size_t i = 0; i < sizeof(VALIDATORS) / sizeof(VALIDATORS[0]); i++)
    {
        if (0 == strcmp(text, VALIDATORS[i].name))
        {
            *allow = VALIDATORS[i].allow;
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EINVAL, "termination validator '%s' is neither allow nor deny", text);
}

static void parse_inferable(const char *text, asi_inferable *value)
{
    *value = 0 == strcmp(text, "infer") ? ASI_INFER : 0 == strcmp(text, "true") ? ASI_INFER_TRUE : ASI_INFER_FALSE;
}

static as_result parse_port_range(const char *text, asi_port_range *range)
{
    unsigned low = 0;
    unsigned high = 0;
    char rest;
    if (2 != sscanf(text, "%5u %5u%c", &low, &high, &rest) || low > high || high > UINT16_MAX)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "'%s' is not two ports from 0 to 65535, the lower first, with a space between", text);
    }
    *range = (asi_port_range){ .low = (uint16_t)low, .high = (uint16_t)high };
    return AS_OK;
}

static as_result parse_text(const char *text, char *to, size_t capacity)
{
    if (strlen(text) >= capacity)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "the value has %zu bytes, %zu are possible", strlen(text), capacity - 1);
    }
    memcpy(to, text, strlen(text) + 1);
    return AS_OK;
}

static void strip_slashes(char *path)
{
    for (size_t length = strlen(path); length > 1 && '/' == path[length - 1]; length--)
    {
        path[length - 1] = '\0';
    }
}

static as_result parse_directory(const char *text, char *to, size_t capacity)
{
    const as_result result = parse_text(text, to, capacity);
    if (AS_OK == result)
    {
        strip_slashes(to);
    }
    return result;
}

static as_result parse_setting(asi_driver_settings *settings, const setting *row, const char *text)
{
    void *field = (uint8_t *)settings + row->offset;
    int64_t number = 0;
    as_result result = AS_OK;
    switch (row->kind)
    {
        case KIND_TEXT: return parse_text(text, field, row->capacity);
        case KIND_DIRECTORY: return parse_directory(text, field, row->capacity);
        case KIND_BOOL: return asi_parse_bool(text, field);
        case KIND_THREADING_MODE: return parse_mode(text, field);
        case KIND_THREAD_NAMING: return parse_naming(text, field);
        case KIND_VALIDATOR: return parse_validator(text, field);
        case KIND_INFERABLE: parse_inferable(text, field); return AS_OK;
        case KIND_PORT_RANGE: return parse_port_range(text, field);
        case KIND_LOG_FORMAT: return asi_log_format_parse(text, field);
        case KIND_LOG_LEVEL: return asi_log_level_parse(text, field);
        case KIND_OPTIONAL_TAG:
            result = '\0' == text[0] ? AS_OK : asi_parse_i64(text, &number);
            settings->has_receiver_group_tag = AS_OK == result && '\0' != text[0];
            break;
        case KIND_NUMBER: result = asi_parse_i64(text, &number); break;
        case KIND_SIZE: result = asi_parse_size(text, &number); break;
        case KIND_DURATION: result = asi_parse_duration_ns(text, &number); break;
        case KIND_OPTIONAL_DURATION:
            number = -1;
            result = 0 == strcmp(text, "-1") ? AS_OK : asi_parse_duration_ns(text, &number);
            break;
    }
    if (AS_OK == result)
    {
        number = number < row->min ? row->min : number;
        *(int64_t *)field = number > row->max ? row->max : number;
    }
    return result;
}

static void set_default(asi_driver_settings *settings, const setting *row)
{
    if (NULL == row->fallback)
    {
        asi_default_aeron_dir((char *)settings + row->offset, row->capacity);
        strip_slashes((char *)settings + row->offset);
    }
    else if (AS_OK != parse_setting(settings, row, row->fallback))
    {
        abort(); /* the table itself is invalid */
    }
}

void asi_driver_settings_init(asi_driver_settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    for (size_t i = 0; i < SETTING_COUNT; i++)
    {
        set_default(settings, &SETTINGS[i]);
    }
}

static const setting *find_setting(const char *name)
{
    char wanted[128];
    char candidate[128];
    to_environment_name(name, wanted, sizeof(wanted));
    for (size_t i = 0; i < SETTING_COUNT; i++)
    {
        to_environment_name(SETTINGS[i].property, candidate, sizeof(candidate));
        if (0 == strcmp(wanted, candidate))
        {
            return &SETTINGS[i];
        }
    }
    return NULL;
}

const char *as_driver_config_name(int64_t index)
{
    return index >= 0 && index < (int64_t)SETTING_COUNT ? SETTINGS[index].property : NULL;
}

as_result as_driver_config_open(as_driver_config **config)
{
    as_driver_config *opened = malloc(sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the driver's configuration");
    }
    asi_driver_settings_init(&opened->settings);
    opened->error_sink = (asi_error_sink){ 0 };
    *config = opened;
    return AS_OK;
}

void as_driver_config_close(as_driver_config *config) { free(config); }

static void warn_if_foreign(const char *name, const char *value)
{
    char environment[128];
    to_environment_name(name, environment, sizeof(environment));
    for (size_t i = 0; i < FOREIGN_COUNT && '\0' != value[0] && 0 != strcmp(value, "default"); i++)
    {
        if (0 == strcmp(environment, FOREIGN_SETTINGS[i]))
        {
            fprintf(stderr, "WARNING: %s=%s has no effect, this driver loads no foreign code\n", environment, value);
        }
    }
}

as_result as_driver_config_set(as_driver_config *config, const char *name, const char *value)
{
    const setting *row = find_setting(name);
    if (NULL == row)
    {
        warn_if_foreign(name, value);
        return AS_OK;
    }
    if ('\0' == value[0])
    {
        set_default(&config->settings, row);
        return AS_OK;
    }
    const as_result result = parse_setting(&config->settings, row, value);
    return AS_OK == result ? AS_OK : asi_fail_in(result, "%s", name);
}

void asi_driver_config_set_leniently(as_driver_config *config, const char *name, const char *value)
{
    if (AS_OK != as_driver_config_set(config, name, value))
    {
        fprintf(stderr, "WARNING: %s=%s is invalid, using default: %s\n", name, value, as_error_text());
        set_default(&config->settings, find_setting(name));
    }
}

as_result as_driver_config_load_environment(as_driver_config *config)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
    {
        char name[128];
        to_environment_name(SETTINGS[i].property, name, sizeof(name));
        const char *value = getenv(name);
        if (NULL != value)
        {
            asi_driver_config_set_leniently(config, name, value);
        }
    }
    for (size_t i = 0; i < FOREIGN_COUNT; i++)
    {
        const char *value = getenv(FOREIGN_SETTINGS[i]);
        if (NULL != value)
        {
            warn_if_foreign(FOREIGN_SETTINGS[i], value);
        }
    }
    return AS_OK;
}

static as_result on_property(void *context, const char *name, const char *value)
{
    asi_driver_config_set_leniently(context, name, value);
    return AS_OK;
}

as_result as_driver_config_load_properties(as_driver_config *config, const char *path)
{
    return asi_properties_load_untrusted(path, on_property, config);
}

void as_driver_config_on_error(as_driver_config *config, as_on_logged_error on_error, void *context)
{
    config->error_sink = (asi_error_sink){ .on_error = on_error, .context = context };
}

const char *as_driver_config_aeron_dir(const as_driver_config *config) { return config->settings.aeron_dir; }

/* The value as text; returns it, in `to` or elsewhere. */
static const char *value_text(const setting *row, const asi_driver_settings *settings, char *to, size_t capacity)
{
    const void *field = (const uint8_t *)settings + row->offset;
    switch (row->kind)
    {
        case KIND_TEXT:
        case KIND_DIRECTORY: return field;
        case KIND_BOOL: return *(const bool *)field ? "true" : "false";
        case KIND_VALIDATOR: return *(const bool *)field ? "allow" : "deny";
        case KIND_THREAD_NAMING: return *(const bool *)field ? "new" : "classic";
        case KIND_INFERABLE: return INFERABLES[*(const asi_inferable *)field];
        case KIND_THREADING_MODE: return MODES[*(const asi_threading_mode *)field];
        case KIND_LOG_FORMAT: return asi_log_format_text(*(const asi_log_format *)field);
        case KIND_LOG_LEVEL: return asi_log_level_text(*(const asi_log_level *)field);
        case KIND_PORT_RANGE:
            snprintf(to, capacity, "%u %u", ((const asi_port_range *)field)->low, ((const asi_port_range *)field)->high);
            return to;
        default:
            snprintf(to, capacity, "%" PRId64, *(const int64_t *)field);
            return to;
    }
}

static int print_value(const setting *row, const asi_driver_settings *settings)
{
    char text[64];
    const char *value = KIND_BOOL != row->kind ? value_text(row, settings, text, sizeof(text)) :
        *(const bool *)((const uint8_t *)settings + row->offset) ? "1" : "0";
    return printf("    %s=%s\n", row->printed, value);
}

void as_driver_config_changed(const as_driver_config *config, as_on_setting on_setting, void *context)
{
    asi_driver_settings defaults;
    asi_driver_settings_init(&defaults);
    for (size_t i = 0; i < SETTING_COUNT; i++)
    {
        char text[64];
        char usual[64];
        const char *value = value_text(&SETTINGS[i], &config->settings, text, sizeof(text));
        if (0 != strcmp(value, value_text(&SETTINGS[i], &defaults, usual, sizeof(usual))))
        {
            on_setting(context, SETTINGS[i].property, value);
        }
    }
}

as_result as_driver_config_print(const as_driver_config *config)
{
    int written = printf("aeron_driver_context_t {\n    cnc_version=%d.%d.%d\n", ASI_CNC_VERSION >> 16 & 0xff,
        ASI_CNC_VERSION >> 8 & 0xff, ASI_CNC_VERSION & 0xff);
    for (size_t i = 0; written >= 0 && i < SETTING_COUNT; i++)
    {
        written = NULL == SETTINGS[i].printed ? written : print_value(&SETTINGS[i], &config->settings);
    }
    written = written < 0 ? written : printf("}\n");
    return written >= 0 && 0 == fflush(stdout) ? AS_OK : asi_fail_errno(AS_E_STORAGE, errno, "cannot print the configuration");
}
