/* Channel endpoints: sockets shared by the publications or subscriptions of one channel, with their status counters; found by
 * tag or canonical form, counted, closed when the last user is gone. Spec: 03 §14, 04 §3, 01 §7.
 *
 * The agents' halves are the first members; these records are the conductor's. A closing endpoint refuses new users until its
 * agent has given it back. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_ENDPOINTS_H
#define ASI_DRIVER_CTL_ENDPOINTS_H

#include "driver/ctl/state.h"
#include "driver/rx/endpoint.h"
#include "driver/tx/endpoint.h"

enum /* values of channel status counters */
{
    ASI_CHANNEL_ERRORED = -1,
    ASI_CHANNEL_INITIALIZING = 0,
    ASI_CHANNEL_ACTIVE = 1,
    ASI_CHANNEL_CLOSING = 2
};

/* A manual destination, kept for its name. */
typedef struct asi_send_destination
{
    int64_t registration_id;
    char *endpoint;      /* owned: "host:port" */
    asi_address address; /* as last resolved */
} asi_send_destination;

typedef struct asi_send_channel
{
    asi_sender_endpoint sender; /* first */
    asi_udp_channel *channel;   /* owned */
    asi_udp_socket *socket;     /* owned */
    asi_address bound;
    int32_t reference_count;    /* publications */
    bool is_closing;
    int32_t status_counter_id;  /* -1 each: not allocated */
    int32_t local_address_counter_id;
    int32_t destinations_counter_id;
    asi_list destinations;      /* of asi_send_destination, owned */
} asi_send_channel;

/* A socket of a receive endpoint: the only one, or one of a multi-destination subscription's. */
typedef struct asi_receive_transport
{
    asi_receive_destination destination; /* first */
    asi_udp_channel *channel;            /* owned, unless it is the endpoint's */
    asi_udp_socket *socket;              /* owned */
    asi_address bound;
    bool is_channel_owned;
    bool is_closing;
    int32_t local_address_counter_id;
} asi_receive_transport;

/* Who wants what; counted, the receiver hears of the first and the last. */
typedef struct asi_receive_interest
{
    int32_t stream_id;
    int32_t session_id;
    bool has_session_id;
    int32_t count;
} asi_receive_interest;

typedef struct asi_receive_channel
{
    asi_receive_endpoint endpoint; /* first */
    asi_udp_channel *channel;      /* owned */
    int64_t registration_id;       /* of the subscription that it was opened for */
    asi_list transports;           /* of asi_receive_transport, owned */
    asi_list interests;            /* of asi_receive_interest, owned */
    int32_t response_count;        /* subscriptions for responses that have no session yet */
    int32_t image_count;
    bool is_closing;
    int32_t status_counter_id;
} asi_receive_channel;

/* SO_SNDBUF and SO_RCVBUF in effect: of the channel, else the settings', else the kernel's. */
int64_t asi_effective_sndbuf(const asi_conductor *conductor, const asi_udp_channel *channel);
int64_t asi_effective_rcvbuf(const asi_conductor *conductor, const asi_udp_channel *channel);
int64_t asi_effective_receiver_window(const asi_conductor *conductor, const asi_udp_channel *channel);

/* Buffers that a channel asks for must be those of the endpoint it shares. */
as_result asi_channel_check_buffers(
    const asi_conductor *conductor, const asi_udp_channel *existing, const asi_udp_channel *requested) AS_MUST_USE;
/* And so the offset of timestamps that `param` names, given or not. */
as_result asi_channel_check_timestamp(const char *param, const asi_udp_channel *existing, int32_t existing_offset,
    const asi_udp_channel *requested, int32_t requested_offset) AS_MUST_USE;

#endif
