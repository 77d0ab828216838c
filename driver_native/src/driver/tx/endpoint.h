/* The sender's half of a send channel endpoint: a socket, its destinations, and the publications that share it.
 *
 * The conductor's half in ctl/endpoints embeds this struct, opens it, and frees it after is_released. Publications are found by
 * stream and session in a fixed table of chains, so that adding one does not allocate on the sender's thread. */
#ifndef ASI_DRIVER_TX_ENDPOINT_H
#define ASI_DRIVER_TX_ENDPOINT_H

#include "driver/net/destinations.h"
#include "driver/net/udp_channel.h"
#include "shm/counters.h"

#define ASI_SEND_BUCKETS 256

struct asi_sender_publication;

typedef struct asi_sender_endpoint
{
    /* Written by the conductor before the sender gets the endpoint. */
    int64_t id;
    const asi_udp_channel *channel; /* owned by the conductor's half */
    const asi_udp_ops *ops;         /* borrowed */
    asi_udp_socket *socket;         /* opened and closed by the conductor */
    bool has_destinations;          /* MDC: manual or dynamic */
    bool is_response;               /* sends to addresses learned for each publication */
    bool is_connected;              /* the socket is connected; otherwise data goes to peer */
    bool is_re_resolvable;          /* unicast with a name whose address may change */

    /* The sender's. */
    asi_destinations destinations;
    asi_address peer;               /* for unconnected single-destination channels */
    int64_t last_status_ns;         /* time of the last status message for any of its publications */
    struct asi_sender_publication *buckets[ASI_SEND_BUCKETS];
    struct asi_sender_endpoint *next;

    bool is_released; /* release, the sender's last store; acquire by the conductor */
} asi_sender_endpoint;

void asi_sender_endpoint_add(asi_sender_endpoint *endpoint, struct asi_sender_publication *publication);
void asi_sender_endpoint_remove(asi_sender_endpoint *endpoint, struct asi_sender_publication *publication);
struct asi_sender_publication *asi_sender_endpoint_find(
    const asi_sender_endpoint *endpoint, int32_t stream_id, int32_t session_id);

/* Sends up to ASI_UDP_MAX_BATCH datagrams for `publication`; the endpoint fills in their `to`. *sent: datagrams that reached all
 * of their destinations. *bytes: bytes of all copies in this call. The caller logs a failure; *sent is valid then, too. *budget
 * decreases by what was sent. With many destinations one batch may take several calls, see asi_destinations_send. */
as_result asi_sender_endpoint_send(asi_sender_endpoint *endpoint, const struct asi_sender_publication *publication,
    asi_outgoing *datagrams, int32_t count, int64_t now_ns, asi_fan_out *fan_out, int64_t *budget, int32_t *sent,
    int64_t *bytes) AS_MUST_USE;

#endif
