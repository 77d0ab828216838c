/* A UDP channel: parses a URI into addresses, canonical form and the options of endpoints. Spec: 04 §3, 05 §3-5.
 *
 * The conductor creates one for each command that names a network channel; endpoints, destinations and links own theirs. It
 * resolves names, so it may block. Other code reads the options of publications and subscriptions (mtu, session-id, ...) from
 * `uri`. Thread rule: constant after creation. */
#ifndef ASI_DRIVER_NET_UDP_CHANNEL_H
#define ASI_DRIVER_NET_UDP_CHANNEL_H

#include "driver/net/udp_ops.h"
#include "wire/uri.h"

#define ASI_CANONICAL_CAPACITY 1024

typedef enum asi_control_mode
{
    ASI_CONTROL_MODE_NONE,
    ASI_CONTROL_MODE_DYNAMIC,
    ASI_CONTROL_MODE_MANUAL,
    ASI_CONTROL_MODE_RESPONSE
} asi_control_mode;

typedef enum asi_group_param
{
    ASI_GROUP_INFER,
    ASI_GROUP_TRUE,
    ASI_GROUP_FALSE
} asi_group_param;

#define ASI_TIMESTAMP_OFF INT32_MIN
#define ASI_TIMESTAMP_RESERVED (-8) /* offset of the reserved value from the payload */

typedef struct asi_udp_channel
{
    asi_uri uri;                          /* the texts borrow from here */
    char original[AS_CHANNEL_MAX_LENGTH + 1];
    char canonical[ASI_CANONICAL_CAPACITY];
    asi_control_mode control_mode;
    asi_address remote_data;
    asi_address remote_control;
    asi_address local;                    /* for data and control; for multicast the interface's address, port 0 */
    uint32_t interface_index;             /* multicast */
    bool is_multicast;
    bool has_explicit_endpoint;
    bool has_explicit_control;
    bool has_tag;                         /* channel tag */
    int64_t tag;
    int32_t ttl;                          /* 0 when absent */
    int64_t sndbuf_length;                /* 0 when absent */
    int64_t rcvbuf_length;
    int64_t receiver_window_length;       /* 0 when absent */
    int64_t nak_delay_ns;                 /* -1 when absent */
    asi_group_param group;
    bool has_group_tag;
    int64_t group_tag;
    int32_t media_receive_timestamp_offset;
    int32_t channel_receive_timestamp_offset;
    int32_t channel_send_timestamp_offset;
} asi_udp_channel;

typedef struct asi_udp_channel_context
{
    const asi_name_resolver *resolver;
    const asi_udp_ops *ops;     /* for listing interfaces */
    int64_t *next_unique_suffix; /* for canonical forms that are never shared; starts at 0 */
} asi_udp_channel_context;

/* `text` need not be terminated; a spy's prefix is removed. AS_E_USAGE with a protocol code describes the fault. */
as_result asi_udp_channel_open_untrusted(const asi_udp_channel_context *context, const char *text, int64_t length,
    bool is_destination, asi_udp_channel **channel) AS_MUST_USE;
void asi_udp_channel_close(asi_udp_channel *channel); /* no effect on NULL */
/* Publications: rejects port 0, and control without control-mode. Subscriptions: rejects control port 0. Spec: 04 §3.4. */
as_result asi_udp_channel_check_publication(const asi_udp_channel *channel) AS_MUST_USE;
as_result asi_udp_channel_check_subscription(const asi_udp_channel *channel) AS_MUST_USE;
/* A send destination must be udp and have an endpoint with a port; both kinds reject forbidden keys. `channel` is the text.
 * Spec: 04 §3.12, 03 §6.6. */
as_result asi_udp_channel_check_send_destination_untrusted(const asi_uri *uri, const char *channel) AS_MUST_USE;
as_result asi_udp_channel_check_destination_keys_untrusted(const asi_uri *uri, const char *channel) AS_MUST_USE;

bool asi_udp_channel_has_group_semantics(const asi_udp_channel *channel); /* multicast or MDC */
bool asi_udp_channel_is_multi_destination(const asi_udp_channel *channel); /* manual or dynamic */
/* True without endpoint and control: such a channel matches any channel of the same tag. */
bool asi_udp_channel_is_wildcard(const asi_udp_channel *channel);
/* Checks whether `wanted` refers to the endpoint of `existing`. By channel tag: the caller checks the tags of all endpoints
 * before the canonical forms. AS_OK with *matches, or AS_E_USAGE when the tags agree and the rest does not.
 * Spec: 05 §5, 03 §14. */
as_result asi_udp_channel_matches_tag(const asi_udp_channel *existing, const asi_udp_channel *wanted, bool *matches)
    AS_MUST_USE;
bool asi_udp_channel_matches_canonical(const asi_udp_channel *existing, const asi_udp_channel *wanted);

/* Defaults for opening a socket: `ttl` and the buffers apply when the channel gives none. */
typedef struct asi_socket_defaults
{
    int32_t ttl;
    int32_t sndbuf_length;
    int32_t rcvbuf_length;
    bool is_connecting; /* unicast publications connect their socket */
} asi_socket_defaults;
void asi_udp_channel_send_params(
    const asi_udp_channel *channel, const asi_socket_defaults *defaults, asi_udp_params *params);
/* Buffers and timestamps come from the subscription's channel, addresses from the destination's; both may be the same. */
void asi_udp_channel_receive_params(const asi_udp_channel *destination, const asi_udp_channel *subscription,
    const asi_socket_defaults *defaults, asi_udp_params *params);

#endif
