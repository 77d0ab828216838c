/* Settings of the media driver by their stock names. Spec: 05 §7-8.
 *
 * One table in config.c holds name, type, default and range of each; as_driver.h's config functions are its public interface. The
 * driver copies the settings at open and never changes them. Only settings that this driver reads exist. Unknown names are
 * ignored, as stock drivers do with property files, because a name may belong to another program or be misspelt.
 * Thread rule: one owner. */
#ifndef ASI_DRIVER_CONFIG_H
#define ASI_DRIVER_CONFIG_H

#include "aeron_spark/as_driver.h"
#include "base/console.h"
#include "base/idle.h"
#include "shm/error_log.h"

typedef enum asi_threading_mode
{
    ASI_THREADING_DEDICATED,
    ASI_THREADING_SHARED_NETWORK,
    ASI_THREADING_SHARED,
    ASI_THREADING_INVOKER
} asi_threading_mode;

typedef enum asi_inferable
{
    ASI_INFER_FALSE,
    ASI_INFER_TRUE,
    ASI_INFER
} asi_inferable;

typedef struct asi_port_range /* 0 0: the kernel chooses */
{
    uint16_t low;
    uint16_t high;
} asi_port_range;

/* 146 years, for never: with any time added, which is less, it stays within 64 bits. */
#define ASI_DURATION_MAX_NS (INT64_MAX / 2)

#define ASI_IDLE_TEXT_CAPACITY 128
#define ASI_SUPPLIER_TEXT_CAPACITY 128
#define ASI_ARGS_TEXT_CAPACITY 1024
#define ASI_RESOLVER_NAME_CAPACITY 256
#define ASI_OWNER_TEXT_CAPACITY 64
#define ASI_WRITERS_TEXT_CAPACITY 16

typedef struct asi_driver_settings
{
    char aeron_dir[AS_PATH_MAX];
    char dir_owner[ASI_OWNER_TEXT_CAPACITY];     /* see base/trust.h */
    char dir_writers[ASI_WRITERS_TEXT_CAPACITY];
    int64_t driver_timeout_ms;
    bool print_configuration;
    bool delete_on_start;
    bool delete_on_shutdown;
    bool warn_if_exists;
    bool term_buffer_sparse_file;
    bool perform_storage_checks;
    bool spies_simulate_connection;
    bool tether_subscriptions;
    bool rejoin_stream;
    bool allow_termination;
    int64_t to_driver_buffer_length; /* trailers included */
    int64_t to_clients_buffer_length;
    int64_t counters_values_buffer_length;
    int64_t error_buffer_length;
    int64_t loss_report_length;
    int64_t timer_interval_ns;
    int64_t client_liveness_timeout_ns;
    int64_t image_liveness_timeout_ns;
    int64_t publication_unblock_timeout_ns;
    int64_t publication_linger_timeout_ns;
    int64_t untethered_window_limit_timeout_ns;
    int64_t untethered_linger_timeout_ns; /* -1: the window limit timeout */
    int64_t untethered_resting_timeout_ns;
    int64_t counter_free_to_reuse_ns;
    int64_t conductor_cycle_threshold_ns;
    int64_t sender_cycle_threshold_ns;
    int64_t receiver_cycle_threshold_ns;
    int64_t name_resolver_threshold_ns;
    int64_t ipc_term_buffer_length;
    int64_t ipc_publication_window_length; /* 0: half the term */
    int64_t ipc_mtu_length;
    int64_t term_buffer_length;
    int64_t publication_window_length; /* 0: half the term */
    int64_t mtu_length;
    int64_t initial_window_length;     /* for receivers */
    int64_t socket_sndbuf_length;      /* 0: the kernel's default */
    int64_t socket_rcvbuf_length;
    int64_t multicast_ttl;             /* 0: the kernel's default */
    int64_t max_messages_per_send;     /* datagrams of a publication per duty cycle */
    int64_t sender_io_vector_capacity;
    int64_t receiver_io_vector_capacity;
    int64_t stream_session_limit;
    int64_t images_unbegun_max;
    int64_t image_term_length_max;
    int64_t destinations_max;             /* of one multi-destination publication */
    int64_t destinations_per_address_max; /* of one multi-destination publication, from one address */
    int64_t max_resend;
    int64_t send_to_status_poll_ratio;
    int64_t publication_connection_timeout_ns;
    int64_t status_message_timeout_ns;
    int64_t nak_unicast_delay_ns;
    bool nak_ahead;                       /* all gaps of a window are requested at once; docs/decisions/56-gaps-ahead.md */
    int64_t nak_unicast_retry_delay_ratio;
    int64_t nak_multicast_max_backoff_ns;
    int64_t nak_multicast_group_size;
    int64_t retransmit_unicast_delay_ns;
    int64_t retransmit_unicast_linger_ns;
    int64_t unicast_rrwm;              /* retransmit receiver window multiple */
    int64_t multicast_rrwm;
    int64_t flow_control_receiver_timeout_ns;
    int64_t flow_control_group_tag;
    int64_t flow_control_group_min_size;
    int64_t cubic_initial_rtt_ns;
    int64_t reresolution_check_interval_ns; /* 0: never */
    int64_t receiver_group_tag;        /* valid with has_receiver_group_tag */
    bool has_receiver_group_tag;
    bool reliable_stream;
    bool cubic_measure_rtt;
    bool cubic_tcp_mode;
    bool connect_sockets;              /* of unicast publications */
    asi_inferable receiver_group_consideration;
    asi_port_range sender_port_range;
    asi_port_range receiver_port_range;
    int64_t file_page_size;
    int64_t low_file_store_warning_threshold;
    int64_t reserved_session_id_low;
    int64_t reserved_session_id_high;
    int64_t conductor_cpu_affinity; /* -1: none */
    int64_t sender_cpu_affinity;
    int64_t receiver_cpu_affinity;
    bool cpuset_affinity;           /* threads without a setting get a CPU of those that the process may use */
    bool cpuset_warnings_as_errors;
    int64_t exit_when_idle_ns;      /* -1: never */
    asi_log_format log_format;      /* of the executable; also the next field */
    asi_log_level log_level;
    asi_threading_mode threading_mode;
    bool has_new_thread_names;      /* Spec: 11 T3 */
    char conductor_idle_strategy[ASI_IDLE_TEXT_CAPACITY];
    char conductor_idle_args[ASI_IDLE_TEXT_CAPACITY];
    char shared_idle_strategy[ASI_IDLE_TEXT_CAPACITY];
    char shared_idle_args[ASI_IDLE_TEXT_CAPACITY];
    char sender_idle_strategy[ASI_IDLE_TEXT_CAPACITY];
    char sender_idle_args[ASI_IDLE_TEXT_CAPACITY];
    char receiver_idle_strategy[ASI_IDLE_TEXT_CAPACITY];
    char receiver_idle_args[ASI_IDLE_TEXT_CAPACITY];
    char shared_network_idle_strategy[ASI_IDLE_TEXT_CAPACITY];
    char shared_network_idle_args[ASI_IDLE_TEXT_CAPACITY];
    char unicast_flow_control[ASI_SUPPLIER_TEXT_CAPACITY];   /* stock supplier names, Spec: 05 §6 */
    char multicast_flow_control[ASI_SUPPLIER_TEXT_CAPACITY];
    char congestion_control[ASI_SUPPLIER_TEXT_CAPACITY];
    char name_resolver[ASI_SUPPLIER_TEXT_CAPACITY];          /* default, driver, csv_table */
    char name_resolver_args[ASI_ARGS_TEXT_CAPACITY];
    char outgoing_interceptors[ASI_ARGS_TEXT_CAPACITY];      /* comma lists, Spec: 05 §10 */
    char incoming_interceptors[ASI_ARGS_TEXT_CAPACITY];
    char loss_args[ASI_ARGS_TEXT_CAPACITY];
    char fixed_loss_args[ASI_ARGS_TEXT_CAPACITY];
    char multi_gap_loss_args[ASI_ARGS_TEXT_CAPACITY];
    char resolver_name[ASI_RESOLVER_NAME_CAPACITY];
    char resolver_interface[ASI_RESOLVER_NAME_CAPACITY];
    char resolver_bootstrap[ASI_ARGS_TEXT_CAPACITY];
    char event_log[ASI_ARGS_TEXT_CAPACITY];                  /* Spec: 05 §11 */
    char event_log_disable[ASI_ARGS_TEXT_CAPACITY];
    char event_log_filename[AS_PATH_MAX];                    /* "": standard output */
    int64_t event_log_file_max_length;                       /* 0: no limit */
    int64_t resolver_neighbor_timeout_ns;
    int64_t resolver_self_interval_ns;
    int64_t resolver_neighbor_interval_ns;
    int64_t resolver_bootstrap_interval_ns;
} asi_driver_settings;

struct as_driver_config
{
    asi_driver_settings settings;
    asi_error_sink error_sink;
};

void asi_driver_settings_init(asi_driver_settings *settings);
/* Checks ranges and relations between several settings. Spec: 05 §7.6. */
as_result asi_driver_settings_check(const asi_driver_settings *settings) AS_MUST_USE;
const char *asi_threading_mode_text(asi_threading_mode mode);
/* Idle strategies of the conductor's thread, the sender's (or both) and the receiver's. */
as_result asi_driver_settings_idle(
    const asi_driver_settings *settings, asi_idle *conductor, asi_idle *sender, asi_idle *receiver) AS_MUST_USE;
/* Handles a setting as a stock driver does: prints a warning to stderr for an invalid value and keeps the default.
 * Spec: 05 §1. */
void asi_driver_config_set_leniently(as_driver_config *config, const char *name, const char *value);

#endif
