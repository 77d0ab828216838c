/* Destinations of a multi-destination publication: receivers that announce themselves by status messages (dynamic), or addresses
 * that commands add (manual). Spec: 04 §11.
 *
 * Any host can forge the source of a status message. A dynamic destination therefore gets data only after a proof that it
 * receives from this driver: a status message with session, stream and a position within half a term of the publication's, as in
 * the SETUP that was sent to it. Before its proof it is a newcomer. Each of its status messages allows ASI_NEWCOMER_ROUNDS
 * rounds; a round sends it one frame for each publication, of at most 40 bytes, and all rounds together send ASI_NEWCOMER_FRAMES
 * at most. A heartbeat makes a receiver request the SETUP, and a SETUP makes it create an image. A proof is valid as long as the
 * destination exists. Newcomers use only slots that no other destination needs; a new one replaces the oldest.
 *
 * A round of one frame costs about what the status message cost its sender. What a round has beyond its first frame comes from a
 * reserve that all newcomers of a driver share: who begins while nobody attacks is introduced to all streams at once, and a flood
 * of forged status messages empties the reserve and gets three frames for each of them. A round continues where the newcomer's
 * last one ended, so that three frames at a time introduce it to every stream, too. A newcomer that a fast flood replaces before it
 * asks again begins elsewhere each time, by chance, so that no flood in step with it keeps a stream from it. Stock receivers do not
 * name the stream that they want, so all streams have to be told.
 *
 * Owned by a send endpoint; after the conductor has opened it, only the sender uses it. Capacity is fixed at opening: a flood of
 * forged receivers must neither grow memory nor multiply datagrams without bound. Thread rule: the sender's. */
#ifndef ASI_DRIVER_NET_DESTINATIONS_H
#define ASI_DRIVER_NET_DESTINATIONS_H

#include "base/rand.h"
#include "driver/net/udp_ops.h"

#define ASI_DESTINATION_TIMEOUT_NS 5000000000LL
#define ASI_NEWCOMERS_CAPACITY 256          /* at most; also at most a quarter of the capacity */
#define ASI_NEWCOMER_ROUNDS 3               /* for each status message: one at once, the others against loss */
#define ASI_NEWCOMER_INTERVAL_NS 100000000LL /* between rounds */
#define ASI_NEWCOMER_FRAMES 32              /* in all rounds, and in one */
#define ASI_NEWCOMER_FRAMES_PER_CYCLE 128
#define ASI_NEWCOMER_RESERVE 1024           /* frames */
#define ASI_NEWCOMER_RESERVE_NS 8000000LL   /* in which the reserve gains one: 125 a second, 10 kB with all headers */
#define ASI_NEWCOMER_SKIPS 8                /* a first round begins up to so many streams behind the last one's end */
#define ASI_SEND_CALL_COST 1024             /* cost of a call, in bytes that it could have copied in the time */

typedef struct asi_destination
{
    bool is_used;
    bool is_proven;           /* always set for manual ones */
    bool is_introduced;       /* not proven, but requested the SETUP: gets the SETUPs that go to all */
    bool has_receiver_id;
    asi_address address;      /* none while the name of a manual one is unresolved */
    int64_t receiver_id;      /* manual: bound by the first status message */
    int64_t last_activity_ns; /* time of the last status message, or of adding */
    int64_t last_proof_ns;
    int64_t registration_id;  /* manual: of the command that added it */
    int32_t rounds_left;      /* these five are for newcomers */
    int32_t frames_left;
    bool has_cursor;          /* it had a round */
    int64_t cursor;           /* where among the introductions the next round begins */
    int64_t next_round_ns;
} asi_destination;

/* The frames for newcomers: one for each stream of the endpoint, in an order that stays the same. */
typedef struct asi_introductions
{
    /* Writes up to `capacity` frames from *cursor on, each stream's once, and moves *cursor behind the last one; after the last
     * stream comes the first one. The bytes are valid until the next call. A cursor begins with 0. */
    int32_t (*next)(void *context, int64_t *cursor, asi_outgoing *datagrams, int32_t capacity);
    void *context;
} asi_introductions;

typedef struct asi_destinations
{
    asi_destination *items;   /* owned; slots keep their index, so that a batch in progress survives changes */
    int32_t slot_count;       /* all used slots are below it */
    int32_t count;            /* number of used slots */
    int32_t newcomer_count;
    int32_t capacity;
    int32_t capacity_per_address; /* limit of proven ones */
    int32_t next_start;       /* rotates with each batch */
    int32_t next_newcomer;
    int64_t first_cursor;     /* near which the next newcomer's first round begins */
    asi_rand rand;
    int64_t next_round_ns;    /* of the newcomers; INT64_MAX: none is due */
    bool is_manual;
    bool has_refused;         /* one was refused by the limit per address */
    int64_t *count_counter;   /* borrowed: mdc-num-dest */
} asi_destinations;

/* Frames for newcomers beyond the first of each round; one for all endpoints of a sender. Zeroed: full. */
typedef struct asi_newcomer_reserve
{
    int32_t taken;        /* at most ASI_NEWCOMER_RESERVE */
    int64_t counted_ns;   /* until when its gain is counted */
} asi_newcomer_reserve;

/* What a status message proves about its sender. */
typedef enum asi_destination_proof
{
    ASI_UNPROVEN,   /* matches no publication of this endpoint */
    ASI_INTRODUCED, /* requests the SETUP of one */
    ASI_PROVEN      /* contains a position of one */
} asi_destination_proof;

/* A batch in progress to all destinations, over as many calls as needed. Zeroed: none. */
typedef struct asi_fan_out
{
    int32_t slots; /* slots left to process; 0: no batch in progress */
    int32_t start;
    int32_t done;
    bool has_sent;   /* to one destination at least */
    bool has_failed; /* to one at least */
} asi_fan_out;

/* The caller may seed `rand` then. */
as_result asi_destinations_open(asi_destinations *destinations, bool is_manual, int32_t capacity, int32_t capacity_per_address,
    int64_t *count_counter) AS_MUST_USE;
void asi_destinations_close(asi_destinations *destinations); /* no effect on a zeroed one */

/* Call for every valid SM, including setup-eliciting ones and those of unknown streams. */
void asi_destinations_on_status_message(asi_destinations *destinations, int64_t receiver_id, const asi_address *source,
    asi_destination_proof proof, int64_t now_ns);
/* False when full. */
bool asi_destinations_add(
    asi_destinations *destinations, const asi_address *address, int64_t registration_id, int64_t now_ns);
/* Removes the first match; no effect when there is none. */
void asi_destinations_remove(asi_destinations *destinations, int64_t registration_id);
/* Returns the destination of a receiver; NULL if none. */
const asi_destination *asi_destinations_find(
    const asi_destinations *destinations, int64_t receiver_id, const asi_address *source);
/* Drops dynamic destinations that were silent too long, then sends the batch to each proven one. Stops when *budget is used up,
 * which counts bytes of copies and ASI_SEND_CALL_COST for each call. *sent is then 0, `fan_out` has slots left, and the next call
 * continues the same batch. At the end *sent is `count`, also without any destination and when one of them accepted only a part,
 * but 0 when the sends to all of them failed. The first failure of this call is returned; *bytes counts its copies. A departure:
 * in stock C one failed send stops the stream for all (docs/decisions/54). Spec: 04 §11.3. */
as_result asi_destinations_send(asi_destinations *destinations, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagrams, int32_t count, int64_t now_ns, asi_fan_out *fan_out, int64_t *budget, int32_t *sent,
    int64_t *bytes) AS_MUST_USE;
/* Sends a SETUP that goes to all also to newcomers that requested one. Returns the bytes sent. Failures are not reported, because
 * any host can cause them. */
int64_t asi_destinations_send_introduced(asi_destinations *destinations, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagram, int64_t now_ns);
/* Sends the due rounds of introductions, at most ASI_NEWCOMER_FRAMES each. */
int64_t asi_destinations_introduce(asi_destinations *destinations, asi_newcomer_reserve *reserve, const asi_udp_ops *ops,
    asi_udp_socket *socket, const asi_introductions *introductions, int64_t now_ns);
/* Returns the first manual destination without a matching SM for longer than the timeout, and restarts its timer. NULL if
 * none. */
asi_destination *asi_destinations_next_silent(asi_destinations *destinations, int64_t now_ns);

#endif
