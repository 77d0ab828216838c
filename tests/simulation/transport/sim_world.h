/* One run: drivers, clients, publishers and subscribers of a plan, over simulated time and network, in one thread.
 *
 * Time advances in rounds. In a round every driver and client runs once, every publisher and subscriber does one thing, and
 * the auditor checks. After a round with work the clock advances by a step, else to the next arrival of a datagram or by an
 * idle step, so that silence costs little. A run has three parts: a storm, in which the network is bad and nodes are stopped,
 * killed, partitioned and restarted; a calm, in which everything must reconnect and be delivered; and an end, in which all is
 * closed in order and nothing may remain. sim_world.c has machines and time, sim_actors.c publishers and subscribers,
 * sim_storm.c the faults, sim_adversary.c the adversary, sim_run.c the three parts. */
#ifndef AS_SIM_WORLD_H
#define AS_SIM_WORLD_H

#include "driver/driver.h"
#include "sim_adversary.h"
#include "sim_plan.h"

#define SIM_MAX_CLIENTS 256
#define SIM_MAX_SEATS 512
#define SIM_MAX_ZOMBIES 16

typedef struct sim_world sim_world;

typedef struct sim_node
{
    int32_t index;
    sim_world *world;
    int64_t clock_offset_ns; /* monotonic clocks of machines have nothing in common */
    asi_clock clock;
    char dir[AS_PATH_MAX];
    as_driver *driver;       /* NULL while it is dead */
    sim_host *host;
    int32_t judged;          /* the auditor's number of the driver */
    int64_t paused_until_ns;
    int64_t killed_ns;
    int64_t restart_ns;
    bool is_refused;         /* an attempt to start too early was made and refused */
} sim_node;

/* A client; of one publisher or subscriber at a time. */
typedef struct sim_client
{
    as_client *client;
    sim_node *node;
    int64_t stalled_until_ns;
    bool is_zombie; /* abandoned: never run again, freed in the end */
} sim_client;

/* One subscription's context for its handlers: outlives it. */
typedef struct sim_seat
{
    sim_world *world;
    sim_client *client;
    int32_t judged;
    bool is_local;
    bool is_reliable;
    bool is_tethered;
    bool is_leaving;
} sim_seat;

typedef struct sim_publisher
{
    const sim_flow_plan *plan;
    sim_client *client;
    as_publication *handles[2];
    int64_t requests[2];    /* correlation ids, AS_NULL_VALUE when none is in flight */
    int32_t destinations_added;
    auditor_stream *stream;
    int64_t next_send_ns;
    int64_t reopen_ns;
    int64_t next_number;
    bool has_abandoned_claim;
    bool is_done;           /* not to be opened again */
} sim_publisher;

typedef struct sim_subscriber
{
    const sim_flow_plan *flow;
    const sim_subscriber_plan *plan;
    sim_client *client;
    sim_seat *seat;
    as_subscription *subscription;
    int64_t request;
    int32_t destinations_added;
    int64_t stalled_until_ns;
    int64_t reopen_ns;
    bool is_done;
} sim_subscriber;

typedef struct sim_flow
{
    sim_publisher publisher;
    sim_subscriber subscribers[SIM_MAX_SUBSCRIBERS];
} sim_flow;

struct sim_world
{
    const sim_plan *plan;
    int64_t now_ns;
    asi_rand rand;
    sim_net net;
    auditor audit;
    sim_adversary adversary;
    char dir[AS_PATH_MAX];
    sim_node nodes[SIM_NET_MAX_NODES];
    sim_flow flows[SIM_MAX_FLOWS];
    sim_client clients[SIM_MAX_CLIENTS];
    int32_t client_count;
    sim_seat seats[SIM_MAX_SEATS];
    int32_t seat_count;
    as_driver *zombies[SIM_MAX_ZOMBIES]; /* killed drivers: their memory is still there */
    int32_t zombie_count;
    const sim_client *waiting;           /* the client that a blocking call is in */
    int64_t next_event_ns;
    int64_t next_full_ns;                /* when storage and descriptors run out, or are there again */
    int64_t heal_ns[SIM_NET_MAX_NODES][SIM_NET_MAX_NODES]; /* when a cut link works again */
    bool is_publishing;
    bool is_storm;
    int64_t rounds;
    int64_t events;
};

/* -- sim_world.c -- */
void sim_world_open(sim_world *world, const sim_plan *plan, const char *dir);
void sim_world_close(sim_world *world);
/* One round; returns after time has gone on. */
void sim_world_round(sim_world *world);
int64_t sim_below(sim_world *world, int64_t bound);
bool sim_percent(sim_world *world, int64_t chance);
void sim_node_start(sim_node *node);
void sim_node_kill(sim_node *node);
/* NULL when there is no live driver. */
sim_client *sim_client_open(sim_node *node);
void sim_client_close(sim_world *world, sim_client *client);

/* -- sim_actors.c: each returns whether it had something to do -- */
bool sim_publisher_work(sim_world *world, sim_flow *flow);
bool sim_subscriber_work(sim_world *world, sim_subscriber *subscriber);
void sim_publisher_close(sim_world *world, sim_publisher *publisher, bool revoke);
void sim_subscriber_close(sim_world *world, sim_subscriber *subscriber);
/* Their client will never be run again; they come back with another one. */
void sim_publisher_abandon(sim_world *world, sim_publisher *publisher);
void sim_subscriber_abandon(sim_world *world, sim_subscriber *subscriber);

/* -- sim_storm.c -- */
void sim_storm_work(sim_world *world);
/* Everything works again from now on. */
void sim_storm_end(sim_world *world);

/* -- sim_run.c -- */
/* A whole run; ends the process by sim_fail when a check does not hold. */
void sim_run(sim_world *world, const sim_plan *plan, const char *dir);

#endif
