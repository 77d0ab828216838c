/* An adversary beside the honest nodes of a run: a node with an address of its own that sends datagrams with any source
 * address. The seed chooses its powers. The promises of docs/security.md hold against it, so it sends no forgery that an Aeron
 * peer cannot tell from the real datagram.
 *
 * It guesses: it knows addresses and ports of sockets, and the peers of connected ones, whose addresses it takes; stream ids
 * are small numbers. It invents sessions (auditor_bounds.h), so none is an honest one. It sends
 *   SETUPs       of new sessions, terms up to a gigabyte, impossible positions, each with another error text; floods of them
 *   far frames   heartbeats and data for its sessions at the join, half a term ahead, beyond, in datagrams with wrong lengths
 *   questions    data of sessions without SETUP, with source addresses of others: a driver that answers would reflect
 *   statuses     for no session, to dynamic publications too, which adds destinations; absurd windows and positions
 *   NAKs, RTTMs, errors, response SETUPs   for unknown sessions, with wrong lengths
 *   names        to the resolvers with which drivers exchange names: new ones at unused addresses
 *   strays       SETUPs and data of a stream to another group at its port: to that of its status messages, or another stream's
 *   garbage      of every type and length
 *
 * It listens: it also sees each datagram that a driver sends, with its sessions, streams, positions and receivers. A listener
 * can forge data, padding, status messages, SETUPs of later sessions and ends of streams, and no promise holds then
 * (docs/security.md). So from what it knows it makes only
 *   windows      status messages of a real receiver with more than half a term or a negative window, at impossible offsets or
 *                far from the sender's position: each is invalid or out of bounds (Spec: 11 N4, 04 §6), and its other fields
 *                are ignored
 *   torn lists   frames of a real session in a datagram with wrong lengths or offsets: the datagram is dropped whole (N2)
 *   far beats    heartbeats of a real session up to half a term ahead: they cost a scan of a window and a NAK. Of reliable
 *                streams only: an unreliable one fills what it believes lost
 *   NAK storms   of a real session: impossible ranges are invalid (N5); to the others a publication answers with a bounded
 *                part
 *   RTTMs        requests to both sides, and replies with impossible times
 *   errors       of a real session for unknown receivers, or with a text that is longer than the datagram
 *   SETUPs       of a real session that are impossible (N3); in the calm, when each image exists, with other values than the
 *                stream's
 *   replays      of datagrams that it heard, seconds later or at once, of dead sessions and dead drivers too, with their
 *                source address: their positions show their age. Not in the calm: ends, errors and requests for SETUPs, which
 *                are forgeries while the stream goes on
 *   reflections  of datagrams that it heard, to another socket or back to their source
 *
 * In the storm it does all of that. Before the calm it pauses, so that its images time out and the remaining streams find
 * slots: no stream is promised a slot during a flood of SETUPs. When all streams exist it starts again, while messages are
 * published: what was acknowledged must be delivered, and no image may end. auditor_bounds.h has the limits of its cost.
 *
 * The network neither loses nor changes its datagrams. One thread; random numbers come from `rand` only. */
#ifndef AS_SIM_ADVERSARY_H
#define AS_SIM_ADVERSARY_H

#include "auditor.h"
#include "sim_plan.h"

#define SIM_ADVERSARY_NODE 3 /* plans have three at most */
#define SIM_RESOLVER_PORT 8050
#define SIM_HEARD_MAX 256
#define SIM_KNOWN_MAX 32
#define SIM_TARGETS_MAX SIM_NET_MAX_SOCKETS

/* A datagram that it heard. */
typedef struct sim_heard
{
    asi_address source;
    asi_address to;
    int32_t length;
    uint8_t *bytes; /* owned; NULL: nothing yet */
} sim_heard;

/* A session that it heard of; lengths and ids of 0 are not known yet. */
typedef struct sim_known
{
    int32_t session_id;
    int32_t stream_id;
    int32_t initial_term_id;
    int32_t term_length;
    int32_t mtu_length;
    int32_t term_id;          /* of its last frame */
    int32_t term_offset;
    asi_address publisher;    /* where its frames come from */
    asi_address receiver;     /* and go to */
    int64_t receiver_id;
    int32_t consumption_term_id; /* of the last status message */
    int32_t consumption_term_offset;
    asi_address status_source;
    asi_address status_to;    /* none: no status message was heard */
} sim_known;

typedef struct sim_adversary
{
    sim_net *net;
    auditor *audit;
    const sim_plan *plan;
    asi_rand rand;
    bool is_active;
    bool is_calm;             /* streams are there, and go on */
    int64_t next_ns;
    int32_t kind;             /* of the burst */
    int32_t rounds_left;      /* of the burst */
    int32_t next_session;     /* of those it invents */
    int32_t next_text;        /* of errors that are each other ones */
    sim_endpoint targets[SIM_TARGETS_MAX];
    int32_t target_count;
    sim_heard heard[SIM_HEARD_MAX];
    sim_known known[SIM_KNOWN_MAX];
    int32_t known_count;
    int64_t sent;
} sim_adversary;

void sim_adversary_open(sim_adversary *adversary, sim_net *net, auditor *audit, const sim_plan *plan);
void sim_adversary_close(sim_adversary *adversary);
/* It begins or rests. */
void sim_adversary_set_active(sim_adversary *adversary, bool is_active, bool is_calm);
/* A datagram goes by. */
void sim_adversary_see(sim_adversary *adversary, const sim_sighting *sighting);
/* In each round. */
void sim_adversary_work(sim_adversary *adversary);

/* -- sim_forgeries.c: one datagram, or a few that belong together -- */
typedef void (*sim_forgery)(sim_adversary *adversary);
typedef struct sim_kind_of_forgery
{
    const char *name;
    sim_forgery forge;
    bool needs_hearing;
    bool is_for_calm;  /* streams that are there bear it without a pause that the auditor would have to know of */
} sim_kind_of_forgery;
extern const sim_kind_of_forgery SIM_FORGERIES[];
extern const int32_t SIM_FORGERY_COUNT;

/* -- for them -- */
int64_t sim_adversary_below(sim_adversary *adversary, int64_t bound);
bool sim_adversary_percent(sim_adversary *adversary, int64_t chance);
/* To whoever takes it; returns how many do. */
int32_t sim_adversary_send(
    sim_adversary *adversary, const asi_address *source, const asi_address *to, const void *bytes, int32_t length);
/* To a socket, from its peer where it has one, else from anybody. */
void sim_adversary_send_at(sim_adversary *adversary, const sim_endpoint *target, const void *bytes, int32_t length);
const sim_endpoint *sim_adversary_target(sim_adversary *adversary);
/* An address of nobody. */
asi_address sim_adversary_stranger(sim_adversary *adversary);

#endif
