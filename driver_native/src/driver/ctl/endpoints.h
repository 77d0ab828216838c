/* Channel endpoints: sockets with status counters, shared by the publications or subscriptions of one channel. An endpoint is
 * found by tag or canonical form, is reference-counted, and closes with its last user. Spec: 03 §14, 04 §3, 01 §7.
 *
 * The first member of each record belongs to the agent; the rest belongs to the conductor. A closing endpoint refuses new users
 * until its agent has returned it. Thread rule: the conductor's. */
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

/* A manual destination. The name is kept for re-resolution. */
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
    int32_t reference_count;    /* count of publications */
    bool is_closing;
    int32_t status_counter_id;  /* -1 each: not allocated */
    int32_t local_address_counter_id;
    int32_t destinations_counter_id;
    asi_list destinations;      /* of asi_send_destination, owned */
} asi_send_channel;

/* A socket of a receive endpoint: its only one, or one of several in a multi-destination subscription. */
typedef struct asi_receive_transport
{
    asi_receive_destination destination; /* first */
    asi_udp_channel *channel;            /* owned, unless it is the endpoint's channel */
    asi_udp_socket *socket;              /* owned */
    asi_address bound;
    bool is_channel_owned;
    bool is_closing;
    int32_t local_address_counter_id;
} asi_receive_transport;

/* Reference count for one stream and session filter. The receiver is notified of the first and the last reference. */
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
    int64_t registration_id;       /* of the subscription that opened it */
    asi_list transports;           /* of asi_receive_transport, owned */
    asi_list interests;            /* of asi_receive_interest, owned */
    int32_t response_count;        /* count of response subscriptions without a session id yet */
    int32_t image_count;
    bool is_closing;
    int32_t status_counter_id;
} asi_receive_channel;

/* SO_SNDBUF and SO_RCVBUF in effect: the channel's, else the settings', else the kernel's. */
int64_t asi_effective_sndbuf(const asi_conductor *conductor, const asi_udp_channel *channel);
int64_t asi_effective_rcvbuf(const asi_conductor *conductor, const asi_udp_channel *channel);
int64_t asi_effective_receiver_window(const asi_conductor *conductor, const asi_udp_channel *channel);

/* Fails when the channel asks for buffers other than those of the endpoint that it shares. */
as_result asi_channel_check_buffers(
    const asi_conductor *conductor, const asi_udp_channel *existing, const asi_udp_channel *requested) AS_MUST_USE;
/* The same for the timestamp offset that `param` names, whether the channel gives one or not. */
as_result asi_channel_check_timestamp(const char *param, const asi_udp_channel *existing, int32_t existing_offset,
    const asi_udp_channel *requested, int32_t requested_offset) AS_MUST_USE;

#endif
