/* The conductor's state, which all files of ctl/ use: its configuration, its clients and streams, and its half of the network.
 *
 * Code here reads the time from now_ns and now_ms, never from the clock. When an agent's queue is full, its commands wait in an
 * outbox, in order. No command is lost, however many resources one client leaves behind. Thread rule: the conductor's, except
 * idle_expired, which any thread may load. */
#ifndef ASI_DRIVER_CTL_STATE_H
#define ASI_DRIVER_CTL_STATE_H

#include "base/clock.h"
#include "base/map.h"
#include "base/rand.h"
#include "base/round_robin.h"
#include "driver/config.h"
#include "driver/ctl/list.h"
#include "driver/cycle_time.h"
#include "driver/events.h"
#include "driver/net/udp_channel.h"
#include "driver/net/udp_socket.h"
#include "driver/queues/conductor_command.h"
#include "driver/queues/receiver_command.h"
#include "driver/queues/sender_command.h"
#include "shm/broadcast.h"
#include "shm/cnc.h"
#include "shm/counters.h"
#include "shm/error_log.h"
#include "shm/loss_report.h"
#include "shm/ring_mpsc.h"

typedef struct asi_conductor asi_conductor;

typedef struct asi_network
{
    asi_udp_ops send_ops;        /* for the sockets of the sender */
    asi_udp_ops receive_ops;     /* for the sockets of the receiver */
    asi_udp_ops own_ops;         /* for the conductor's own sockets */
    struct asi_names *names;     /* owned */
    asi_name_resolver resolver;  /* uses names */
    asi_name_resolver system_resolver; /* the fallback, and for lookups that must not depend on other drivers */
    asi_socket_limits limits;
    asi_command_queue *to_sender;      /* borrowed from the driver, as are the next two */
    asi_command_queue *to_receiver;
    asi_command_queue *from_agents;
    asi_list sender_outbox;      /* of asi_sender_command, owned */
    asi_list receiver_outbox;    /* of asi_receiver_command, owned */
    int64_t next_unique_suffix;
    int64_t next_id;             /* ids of endpoints and receive destinations in commands */
    int64_t next_receiver_id;
    uint16_t next_sender_port;   /* in the managed ranges; 0 at first */
    uint16_t next_receiver_port;
    asi_list send_channels;      /* of asi_send_channel, owned; includes closing ones until the sender returns them */
    asi_list receive_channels;   /* of asi_receive_channel, owned; likewise */
    int32_t closing_send_count;  /* count of closing channels; 0 skips their check in the cycle */
    int32_t closing_receive_count; /* likewise, their destinations included */
    asi_list publications;       /* of asi_network_publication, owned */
    asi_list images;             /* of asi_network_image, owned */
    asi_round_robin publication_schedule;
    asi_round_robin image_schedule;
    asi_loss_report loss_report;
} asi_network;

typedef struct asi_peer_budget
{
    int64_t since_ns;
    int32_t taken;
} asi_peer_budget;

struct asi_conductor
{
    const asi_driver_settings *settings; /* borrowed from the driver, as are the sections of the CnC file below */
    asi_clock clock;
    asi_rand rand;
    asi_ring_mpsc to_driver;
    asi_broadcast to_clients;
    asi_counters_manager counters;
    asi_error_log errors;
    asi_events *events;       /* borrowed; NULL: no event log */
    as_on_termination on_termination; /* may be NULL */
    void *termination_context;

    int64_t now_ns;
    int64_t now_ms;           /* refreshed at most every millisecond */
    int64_t last_refresh_ns;  /* of now_ms */
    int64_t last_timer_ns;
    asi_cycle_time cycle;

    int64_t blocked_command_position; /* head of the ring when it last moved */
    int64_t blocked_command_since_ns;

    asi_list clients;       /* of asi_driver_client, owned */
    asi_list publications;  /* of asi_ipc_publication, owned */
    asi_list subscriptions; /* of asi_ctl_subscription, owned */
    asi_list waiting_commands; /* of asi_waiting_command, owned; see log_files.h */
    struct asi_waiting_command *resumed_command; /* the one of them that runs now: it alone gets its log. NULL: none */
    int32_t next_session_id;
    asi_network network;

    asi_peer_budget peer_failures; /* see asi_peer_budget_takes */
    asi_peer_budget peer_publication_errors;

    int64_t idle_since_ns;     /* last time with a client or a command */
    int64_t idle_allowance_ns; /* maximum idle time; longer before the first client; INT64_MAX: unlimited */
    bool idle_expired;        /* release by the conductor, acquire by the code that ends the process */
};

#endif
