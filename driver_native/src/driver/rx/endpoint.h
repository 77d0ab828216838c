/* A receive endpoint: the sockets that feed one table of interests. Spec: 04 §8.1, §12.
 *
 * The conductor makes it and its destinations, opens the sockets and hands both over by commands; from then until `is_released` the
 * receiver uses them alone, except the constants. A subscription with control-mode=manual starts without destination,
 * any other has exactly one, made from its own channel. Thread rule: as each group says. */
#ifndef ASI_DRIVER_RX_ENDPOINT_H
#define ASI_DRIVER_RX_ENDPOINT_H

#include "base/bits.h"
#include "driver/net/udp_channel.h"

#define ASI_ENDPOINT_MAX_DESTINATIONS 64

typedef struct asi_receive_destination
{
    /* Constant; written by the conductor before it hands it over, freed by it. */
    int64_t id;                /* tells it in command to the conductor */
    asi_udp_channel *channel;  /* owned by the conductor's record of it */
    asi_udp_socket *socket;    /* owned likewise */
    bool is_multicast;
    int32_t ttl;               /* the socket's, 0 when neither channel nor settings give one */
    bool has_explicit_control; /* SMs go to control_address whatever the source of data */
    int32_t media_timestamp_offset; /* ASI_TIMESTAMP_OFF, or from the payload's start */
    int32_t channel_timestamp_offset;

    /* The receiver's, once handed over. */
    struct asi_receive_endpoint *endpoint; /* NULL: not taken, there was no room */
    asi_address control_address; /* group or explicit control; replaced by re-resolution */
    int64_t last_activity_ns;    /* data, SETUP or RTTM; or the last re-resolution request */
    bool is_released;            /* release, last of all; acquire by the conductor, which then may free it */
} asi_receive_destination;

typedef struct asi_receive_endpoint
{
    /* Constant. */
    int64_t id; /* tells it in command to the conductor */
    int64_t receiver_id;
    bool has_group_tag;
    int64_t group_tag;

    /* The receiver's, once handed over. */
    asi_receive_destination *destinations[ASI_ENDPOINT_MAX_DESTINATIONS]; /* borrowed */
    int32_t destination_count;
    int32_t stream_count; /* streams with any interest */
    bool is_released;     /* as of destinations */
} asi_receive_endpoint;

/* Fills the constants of both from a channel; `destination` and `subscription` channel are the same but for MDS. */
void asi_receive_destination_init(asi_receive_destination *destination, int64_t id, asi_udp_channel *channel,
    const asi_udp_channel *subscription, asi_udp_socket *socket, int64_t now_ns);
/* `default_group_tag`: the driver's setting, NULL if it has none. */
void asi_receive_endpoint_init(asi_receive_endpoint *endpoint, int64_t id, const asi_udp_channel *channel, int64_t receiver_id,
    const int64_t *default_group_tag);

#endif
