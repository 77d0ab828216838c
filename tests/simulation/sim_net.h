/* A network in memory under simulated time: hosts with one address each, sockets behind udp_ops, and faults drawn from a seed.
 * The simulation uses it (sim_world), and the conformance suite of udp_ops, which injects no faults.
 *
 * Faults, and why the system above must survive each:
 *   lost        UDP promises nothing. NAKs, heartbeats and repeated SETUPs and status messages repair a loss.
 *   duplicated  Switches and retries duplicate datagrams. The position in every frame identifies a copy.
 *   delayed, reordered   Routes change. The header gives a frame's place, not the order of arrival.
 *   stale       A copy that arrives seconds later. Receivers compare positions with what they acknowledged, senders with their
 *               own.
 *   truncated   A sender or middle box has a smaller buffer. Lengths are checked against the datagram (Spec: 04 §2).
 *   corrupted   UDP has a checksum, so a flipped bit does not arrive. A broken or hostile sender can send wrong fields with a
 *               right checksum. The network makes only datagrams that a peer can recognise: a wrong version or type,
 *               impossible lengths, offsets and terms, positions outside the stream, unknown sessions and receivers, negative
 *               windows. No Aeron peer can recognise a well-formed frame with another payload, or with an in-window position
 *               of another frame.
 *   forged      Such a datagram in addition to the good one, or random bytes.
 *   partitioned Links are cut for a time, in one direction or both. Timeouts end what is gone, and both sides must reconnect.
 *   overflowed  Receive buffers are bounded, as the kernel's are.
 *   short sends A send takes fewer datagrams than it was given, as with EAGAIN.
 *   hostile     Datagrams of an adversary, with any source address (sim_adversary.h).
 *
 * Owns the datagrams in flight. Deterministic: random numbers come from `rand` only, time from `now_ns` only. One thread. */
#ifndef AS_SIM_NET_H
#define AS_SIM_NET_H

#include "base/rand.h"
#include "driver/net/udp_ops.h"

#define SIM_NET_MAX_HOSTS 24 /* a driver that is started again is a new host at the same address */
#define SIM_NET_MAX_SOCKETS 256
#define SIM_NET_MAX_NODES 4

typedef enum sim_fault
{
    SIM_FAULT_LOST,
    SIM_FAULT_DUPLICATED,
    SIM_FAULT_REORDERED,
    SIM_FAULT_STALE,
    SIM_FAULT_TRUNCATED,
    SIM_FAULT_CORRUPTED,
    SIM_FAULT_FORGED,
    SIM_FAULT_PARTITIONED,
    SIM_FAULT_OVERFLOWED,
    SIM_FAULT_SHORT_SEND,
    SIM_FAULT_HOSTILE,
    SIM_FAULT_COUNT
} sim_fault;

/* Chances in 10,000 per datagram and receiver. */
typedef struct sim_faults
{
    int32_t lost;
    int32_t duplicated;
    int32_t reordered;
    int32_t stale;
    int32_t truncated;
    int32_t corrupted;
    int32_t forged;
    int32_t short_send; /* per call */
    int64_t delay_ns;   /* of every datagram */
    int64_t jitter_ns;  /* added, up to */
    int64_t stale_ns;   /* of stale ones, up to */
} sim_faults;

typedef struct sim_net sim_net;

typedef struct sim_host
{
    sim_net *net;
    int32_t node;  /* address 10.0.0.(node + 1) */
    bool is_dead;  /* a killed driver's: nothing goes in or out any more */
    int64_t sent_datagrams;
    int64_t sent_bytes;
    int64_t taken_datagrams;
    int64_t taken_bytes;
} sim_host;

typedef struct sim_sighting
{
    const sim_host *from;
    const asi_address *source;
    const asi_address *to;
    const uint8_t *bytes;
    int32_t length;
} sim_sighting;

/* Where datagrams are taken. */
typedef struct sim_endpoint
{
    asi_address address;
    asi_address peer; /* if set, only its datagrams are received */
} sim_endpoint;

/* Each datagram that a socket takes out of the network, as the driver will see it. */
typedef void (*sim_tap)(void *context, const sim_host *host, const uint8_t *bytes, int32_t length, bool is_hostile);
/* Each datagram that a host sends, before any fault; a listener on the path sees the same. */
typedef void (*sim_spy)(void *context, const sim_sighting *sighting);

struct sim_net
{
    const int64_t *now_ns;
    int64_t epoch_offset_ns; /* receive timestamps are now + this */
    asi_rand rand;
    sim_faults faults;
    bool is_cut[SIM_NET_MAX_NODES][SIM_NET_MAX_NODES]; /* from, to */
    sim_tap tap;             /* may be NULL */
    void *tap_context;
    sim_spy spy;             /* may be NULL */
    void *spy_context;
    bool has_no_sockets;     /* opening a socket fails, as without descriptors */
    int64_t injected[SIM_FAULT_COUNT];
    int64_t datagrams;
    /* Its own. */
    sim_host hosts[SIM_NET_MAX_HOSTS];
    int32_t host_count;
    asi_udp_socket *sockets[SIM_NET_MAX_SOCKETS];
    int32_t socket_end;      /* none was ever open from here on */
    uint16_t next_port;
    int64_t next_sequence;
};

void sim_net_init(sim_net *net, const int64_t *now_ns, uint64_t seed);
/* Frees everything. */
void sim_net_close(sim_net *net);
/* A host at the node's address; an earlier host there must be dead. */
sim_host *sim_net_add_host(sim_net *net, int32_t node);
/* As when its process is killed: its ports are free, its datagrams gone; the driver may still close its sockets. */
void sim_net_kill_host(sim_host *host);
asi_udp_ops sim_net_ops(sim_host *host);
/* When the next datagram arrives anywhere, later than now: of those that have arrived and wait, their driver takes some when it
 * looks. INT64_MAX if none is in flight. */
int64_t sim_net_next_ns(const sim_net *net);
int32_t sim_net_open_sockets(const sim_net *net, const sim_host *host);
/* A datagram from no socket: neither lost nor changed. Returns how many sockets get it. */
int32_t sim_net_inject(sim_net *net, const asi_address *source, const asi_address *to, const void *bytes, int32_t length);
/* Of living hosts; at most `capacity`, returns how many. */
int32_t sim_net_endpoints(const sim_net *net, sim_endpoint *to, int32_t capacity);
asi_address sim_net_address(int32_t node, uint16_t port);
const char *sim_fault_name(sim_fault fault);

#endif
