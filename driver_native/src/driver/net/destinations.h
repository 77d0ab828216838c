/* Where a multi-destination publication sends to: receivers that announced themselves by status messages (dynamic), or those
 * that commands listed (manual). Spec: 04 §11.
 *
 * Owned by a send endpoint; used by the sender alone after the conductor opened it. Capacity is fixed at opening: a flood of
 * invented receivers must neither grow memory nor multiply datagrams without bound. Thread rule: the sender's. */
#ifndef ASI_DRIVER_NET_DESTINATIONS_H
#define ASI_DRIVER_NET_DESTINATIONS_H

#include "driver/net/udp_ops.h"

#define ASI_DESTINATION_TIMEOUT_NS 5000000000LL
#define ASI_DESTINATIONS_CAPACITY 1024

typedef struct asi_destination
{
    asi_address address;      /* none while a manual one's name is unresolved */
    int64_t receiver_id;      /* manual: once bound by a status message */
    bool has_receiver_id;
    int64_t last_activity_ns; /* status message, or adding */
    int64_t registration_id;  /* manual: of the command that added it */
} asi_destination;

typedef struct asi_destinations
{
    asi_destination *items;   /* owned */
    int32_t count;
    int32_t capacity;
    int32_t next_start;       /* rotates with each batch */
    bool is_manual;
    int64_t *count_counter;   /* borrowed: mdc-num-dest */
} asi_destinations;

as_result asi_destinations_open(
    asi_destinations *destinations, bool is_manual, int32_t capacity, int64_t *count_counter) AS_MUST_USE;
void asi_destinations_close(asi_destinations *destinations); /* harmless on a zeroed one */

/* Every SM that passed its checks, also setup-eliciting ones and those of unknown streams. */
void asi_destinations_on_status_message(
    asi_destinations *destinations, int64_t receiver_id, const asi_address *source, int64_t now_ns);
/* false when full. */
bool asi_destinations_add(
    asi_destinations *destinations, const asi_address *address, int64_t registration_id, int64_t now_ns);
/* The first that matches; none is fine. */
void asi_destinations_remove(asi_destinations *destinations, int64_t registration_id);
/* Registration id of the manual destination that a receiver is bound to; -1 if none. */
int64_t asi_destinations_find_registration(const asi_destinations *destinations, int64_t receiver_id, const asi_address *source);
/* Sends the batch to each, after dropping dynamic ones that were silent too long. *sent is `count`, also without any
 * destination and when one of them took a part only, but 0 when a send failed; *bytes counts all copies. Spec: 04 §11.3. */
as_result asi_destinations_send(asi_destinations *destinations, const asi_udp_ops *ops, asi_udp_socket *socket,
    const asi_outgoing *datagrams, int32_t count, int64_t now_ns, int32_t *sent, int64_t *bytes) AS_MUST_USE;
/* First manual destination without a matching SM for longer than the timeout; its timer restarts. NULL if none. */
asi_destination *asi_destinations_next_silent(asi_destinations *destinations, int64_t now_ns);

#endif
