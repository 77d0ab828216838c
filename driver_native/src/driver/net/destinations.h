/* Where a multi-destination publication sends to: receivers that announced themselves by status messages (dynamic), or those
 * that commands listed (manual). Spec: 04 §11.
 *
 * Anybody can send a status message in another's name, so a dynamic destination gets data only after it has proved that it hears
 * us: by a status message that names session, stream and a position within half a term of ours, which stand in the SETUP that was
 * sent to it. Until then each of its status messages is worth ASI_NEWCOMER_ROUNDS rounds of a frame for each publication, of at most
 * 40 bytes and ASI_NEWCOMER_FRAMES in all: a heartbeat makes a receiver ask for the SETUP, a SETUP makes it begin. A proof lasts
 * as long as a destination does. Newcomers take room that nobody else needs, the newest that of the oldest.
 *
 * Owned by a send endpoint; used by the sender alone after the conductor opened it. Capacity is fixed at opening: a flood of
 * invented receivers must neither grow memory nor multiply datagrams without bound. Thread rule: the sender's. */
#ifndef ASI_DRIVER_NET_DESTINATIONS_H
#define ASI_DRIVER_NET_DESTINATIONS_H

#include "driver/net/udp_ops.h"

#define ASI_DESTINATION_TIMEOUT_NS 5000000000LL
#define ASI_NEWCOMERS_CAPACITY 256          /* at most; and a quarter of all */
#define ASI_NEWCOMER_ROUNDS 3               /* for a status message: one at once, and against loss */
#define ASI_NEWCOMER_INTERVAL_NS 100000000LL /* between them */
#define ASI_NEWCOMER_FRAMES 32              /* in all of them, and in one */
#define ASI_NEWCOMER_FRAMES_PER_CYCLE 128
#define ASI_SEND_CALL_COST 1024             /* what a call costs, in the bytes that it could have copied */

typedef struct asi_destination
{
    bool is_used;
    bool is_proven;           /* manual ones always are */
    bool is_introduced;       /* not proven, but knows session and stream: gets the SETUPs that go to all */
    bool has_receiver_id;
    asi_address address;      /* none while a manual one's name is unresolved */
    int64_t receiver_id;      /* manual: once bound by a status message */
    int64_t last_activity_ns; /* status message, or adding */
    int64_t last_proof_ns;
    int64_t registration_id;  /* manual: of the command that added it */
    int32_t rounds_left;      /* of a newcomer, as the next two */
    int32_t frames_left;
    int64_t next_round_ns;
} asi_destination;

typedef struct asi_destinations
{
    asi_destination *items;   /* owned; slots, so that what a batch has yet to do survives coming and going */
    int32_t slot_count;       /* no used one at or behind it */
    int32_t count;            /* used */
    int32_t newcomer_count;
    int32_t capacity;
    int32_t capacity_per_address; /* proven ones */
    int32_t next_start;       /* rotates with each batch */
    int32_t next_newcomer;
    int64_t next_round_ns;    /* of a newcomer; INT64_MAX: none waits */
    bool is_manual;
    bool has_refused;         /* one that is beyond its address's share */
    int64_t *count_counter;   /* borrowed: mdc-num-dest */
} asi_destinations;

/* What a status message says of its sender. */
typedef enum asi_acquaintance
{
    ASI_STRANGER,   /* names no publication of ours */
    ASI_INTRODUCED, /* asks for the SETUP of one */
    ASI_PROVEN      /* names a position in one */
} asi_acquaintance;

/* A batch on its way to all destinations, over as many calls as it takes. Zeroed: none. */
typedef struct asi_fan_out
{
    int32_t slots; /* to be looked at; 0: none on its way */
    int32_t start;
    int32_t done;
    bool has_failed;
} asi_fan_out;

as_result asi_destinations_open(asi_destinations *destinations, bool is_manual, int32_t capacity, int32_t capacity_per_address,
    int64_t *count_counter) AS_MUST_USE;
void asi_destinations_close(asi_destinations *destinations); /* harmless on a zeroed one */

/* Every SM that passed its checks, also setup-eliciting ones and those of unknown streams. */
void asi_destinations_on_status_message(asi_destinations *destinations, int64_t receiver_id, const asi_address *source,
    asi_acquaintance acquaintance, int64_t now_ns);
/* false when full. */
bool asi_destinations_add(
    asi_destinations *destinations, const asi_address *address, int64_t registration_id, int64_t now_ns);
/* The first that matches; none is fine. */
void asi_destinations_remove(asi_destinations *destinations, int64_t registration_id);
/* The one of a receiver; NULL if none. */
const asi_destination *asi_destinations_find(
    const asi_destinations *destinations, int64_t receiver_id, const asi_address *source);
/* Sends the batch to each proven one, after dropping dynamic ones that were silent too long. Stops where *budget, in bytes of
 * copies and ASI_SEND_CALL_COST for each call, is used up: *sent is 0 then, `fan_out` has slots left, and the next call with the
 * same batch goes on. At the end *sent is `count`, also without any destination and when one of them took a part only, but 0
 * when a send failed; *bytes counts the copies of this call. Spec: 04 §11.3. */
as_result asi_destinations_send(asi_destinations *destinations, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagrams, int32_t count, int64_t now_ns, asi_fan_out *fan_out, int64_t *budget, int32_t *sent,
    int64_t *bytes) AS_MUST_USE;
/* A SETUP that goes to all goes to newcomers that asked for one. Bytes sent; failures are not told, as anybody can cause them. */
int64_t asi_destinations_send_introduced(asi_destinations *destinations, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagram, int64_t now_ns);
/* The rounds that are due; each is these frames, at most ASI_NEWCOMER_FRAMES. */
int64_t asi_destinations_greet(asi_destinations *destinations, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagrams, int32_t count, int64_t now_ns);
/* First manual destination without a matching SM for longer than the timeout; its timer restarts. NULL if none. */
asi_destination *asi_destinations_next_silent(asi_destinations *destinations, int64_t now_ns);

#endif
