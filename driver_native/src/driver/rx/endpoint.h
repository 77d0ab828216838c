/* A receive endpoint: the sockets that feed one table of interests. Spec: 04 §8.1, §12.
 *
 * The conductor creates the endpoint and its destinations, opens the sockets and passes both to the receiver by commands. From
 * then until `is_released` only the receiver uses them, except for the constants. A subscription with control-mode=manual starts
 * without destinations. Any other has exactly one, made from its own channel. Thread rule: as each group says. */
#ifndef ASI_DRIVER_RX_ENDPOINT_H
#define ASI_DRIVER_RX_ENDPOINT_H

#include "base/bits.h"
#include "driver/net/udp_channel.h"

#define ASI_ENDPOINT_MAX_DESTINATIONS 64

typedef struct asi_receive_destination
{
    /* Constant; the conductor writes it before the receiver gets the destination, and frees it. */
    int64_t id;                /* id in commands to the conductor */
    asi_udp_channel *channel;  /* owned by the conductor's record of the destination */
    asi_udp_socket *socket;    /* owned likewise */
    bool is_multicast;
    int32_t ttl;               /* the socket's; 0 when neither channel nor settings give one */
    bool has_explicit_control; /* status messages go to control_address, whatever the source of the data */
    int32_t media_timestamp_offset; /* ASI_TIMESTAMP_OFF, or an offset from the start of the payload */
    int32_t channel_timestamp_offset;

    /* The receiver's, after the conductor has passed it on. */
    struct asi_receive_endpoint *endpoint; /* NULL: not accepted, the table was full */
    asi_address control_address; /* group or explicit control address; replaced by re-resolution */
    int64_t last_activity_ns;    /* time of the last data, SETUP or RTTM, or of the last re-resolution request */
    bool is_released;            /* release, the receiver's last store; acquire by the conductor, which may then free it */
} asi_receive_destination;

typedef struct asi_receive_endpoint
{
    /* Constant. */
    int64_t id; /* id in commands to the conductor */
    int64_t receiver_id;
    bool has_group_tag;
    int64_t group_tag;

    /* The receiver's, after the conductor has passed it on. */
    asi_receive_destination *destinations[ASI_ENDPOINT_MAX_DESTINATIONS]; /* borrowed */
    int32_t destination_count;
    int32_t stream_count; /* number of streams with any interest */
    bool is_released;     /* as in destinations */
} asi_receive_endpoint;

/* Fills the constants of both from a channel. The `destination` and `subscription` channels are the same except for MDS. */
void asi_receive_destination_init(asi_receive_destination *destination, int64_t id, asi_udp_channel *channel,
    const asi_udp_channel *subscription, asi_udp_socket *socket, int64_t now_ns);
/* `default_group_tag`: the driver's setting, NULL when there is none. */
void asi_receive_endpoint_init(asi_receive_endpoint *endpoint, int64_t id, const asi_udp_channel *channel, int64_t receiver_id,
    const int64_t *default_group_tag);

#endif
