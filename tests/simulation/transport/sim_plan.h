/* What a seed means: settings of the drivers, streams with their channels and loads, faults of the network. Pure: a table
 * drawn from random numbers, read by sim_world. */
#ifndef AS_SIM_PLAN_H
#define AS_SIM_PLAN_H

#include "auditor.h"
#include "driver/config.h"

#define SIM_MAX_FLOWS 4
#define SIM_MAX_SUBSCRIBERS 3
#define SIM_MAX_DESTINATIONS 2
#define SIM_CHANNEL_CAPACITY 512
#define SIM_PORTS_PER_FLOW 20

typedef enum sim_kind
{
    SIM_UNICAST,
    SIM_MULTICAST,
    SIM_MDC_DYNAMIC,
    SIM_MDC_MANUAL,
    SIM_MDS,  /* manual publication to two destinations of one subscription */
    SIM_IPC,
    SIM_KIND_COUNT
} sim_kind;

typedef struct sim_subscriber_plan
{
    int32_t node;
    bool is_spy;
    bool is_reliable;
    bool is_tethered;
    char channel[SIM_CHANNEL_CAPACITY];
    int32_t destination_count; /* of the subscription (MDS) */
    char destinations[SIM_MAX_DESTINATIONS][SIM_CHANNEL_CAPACITY];
} sim_subscriber_plan;

typedef struct sim_flow_plan
{
    sim_kind kind;
    int32_t stream_id;
    int32_t node;               /* the publisher's */
    char channel[SIM_CHANNEL_CAPACITY];
    int32_t term_length;
    int32_t mtu_length;
    int32_t first_port;         /* of SIM_PORTS_PER_FLOW that are its own, but for a group's, which another group may have, too */
    int32_t group;              /* multicast: last byte of its data's group; that of its status messages is one more */
    bool is_exclusive;
    int32_t handles;            /* of a shared publication */
    bool has_eos;
    int64_t window_length;      /* pub-wnd, 0: half a term */
    int32_t destination_count;  /* of the publication (manual MDC) */
    char destinations[SIM_MAX_SUBSCRIBERS * SIM_MAX_DESTINATIONS][SIM_CHANNEL_CAPACITY];
    int32_t subscriber_count;
    sim_subscriber_plan subscribers[SIM_MAX_SUBSCRIBERS];
    int32_t max_length;         /* of messages */
    int64_t interval_ns;        /* between bursts */
    int32_t burst;
    bool is_claiming;           /* by try_claim where a message fits, some given up */
} sim_flow_plan;

typedef struct sim_plan
{
    uint64_t seed;
    int32_t node_count;
    asi_driver_settings settings; /* of every driver; the directory is the world's */
    auditor_times times;
    int64_t step_ns;            /* a busy round takes so long */
    int64_t idle_step_ns;       /* and an idle one at most */
    int64_t max_pause_ns;       /* of a driver */
    int64_t keepalive_ns;       /* of clients */
    int64_t max_stall_ns;       /* of a subscriber that resumes */
    int64_t max_stale_ns;       /* how late the network brings a copy */
    int64_t storm_ns;           /* how long things go wrong */
    int64_t event_interval_ns;  /* between things that go wrong */
    bool has_driver_deaths;
    sim_faults faults;          /* while they do */
    bool has_adversary;
    bool is_sighted;            /* the adversary sees all sent datagrams */
    bool has_resolver;          /* drivers exchange their names */
    bool is_scarce;             /* storage and descriptors run out at times */
    int32_t flow_count;
    sim_flow_plan flows[SIM_MAX_FLOWS];
} sim_plan;

/* Each third seed has an adversary. `is_siege`: every one, and storm and timeouts are short, so that many seeds have their turn. */
void sim_plan_make(sim_plan *plan, uint64_t seed, bool is_siege);
/* The cast, one line per stream. */
void sim_plan_print(const sim_plan *plan);

#endif
