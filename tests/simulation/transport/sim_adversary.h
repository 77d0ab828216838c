/* Somebody who means harm, beside the cast of a run: a node with an address of its own, which sends datagrams with any source
 * address. What it can do is drawn from the seed; what holds against it is what docs/security.md promises, and no more, so that it
 * makes no forgery that no Aeron peer could tell from the real thing.
 *
 * It guesses: it knows addresses and ports of sockets, and the peers of connected ones, whose addresses it takes; stream ids are small
 * numbers. Sessions it invents (auditor_bounds.h), so it hits none of the cast's. It sends
 *   set-ups      of ever new sessions, terms up to a gigabyte, positions that can't be, each in other words; floods of them
 *   far frames   heartbeats and data for its sessions at the join, half a term ahead, beyond, in lists whose lengths lie
 *   questions    data of sessions without set-up, with sources that are others' addresses: who answers whom?
 *   statuses     for no session, to dynamic publications too, which plants destinations; absurd windows and positions
 *   naks, rttms, errors, response set-ups   for sessions that are not there, with lengths that lie
 *   names        to the resolvers, where drivers tell each other theirs: ever new ones, at addresses of nobody
 *   garbage      of every type and length
 *
 * It listens: besides, it sees each datagram that a driver sends, with its sessions, streams, positions and receivers. Who does can
 * forge data, padding, status messages, set-ups of sessions to come and ends of streams, and nothing holds then (docs/security.md). So
 * of what it knows it makes only
 *   windows      status messages of a real receiver with more than half a term or less than nothing, at offsets that can't be or far
 *                from where the sender is: each is invalid or out of bounds (Spec: 11 N4, 04 §6), its other fields count for nothing
 *   torn lists   frames of a real session in a datagram whose lengths or offsets lie: the datagram is dropped whole (N2)
 *   far beats    heartbeats of a real session up to half a term ahead: they cost a look at a window and a NAK now and then. Of reliable
 *                streams: an unreliable one fills what it believes lost
 *   nak storms   of a real session: ranges that can't be are invalid (N5), of the others a publication answers a bounded part
 *   rttms        requests to both sides, and replies with times that can't be
 *   errors       of a real session for receivers that are not there, or with a text that is longer than the datagram
 *   set-ups      of a real session that can't be (N3); in the calm, where each image is there, with other values than the stream's
 *   replays      of what it heard, seconds later or at once, of dead sessions and dead drivers too, with the source it came from: what
 *                was true once is told by its position. Not in the calm: ends, errors and requests for set-ups, which are forgeries
 *                when the stream goes on
 *   reflections  of what it heard, to another socket or back to where it came from
 *
 * In the storm it does all of that. Before the calm it rests, so that its images time out and streams that have yet to begin find room:
 * nobody is promised a place in a flood of set-ups. When all streams are there it begins again, while messages are published: what was
 * acknowledged must be delivered, and no image may end. Auditor_bounds.h has what it may cost.
 *
 * Datagrams of its own are neither lost nor changed. One thread; all chance comes from `rand`. */
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
