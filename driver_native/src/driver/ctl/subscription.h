/* One subscription of a client: its options, and the streams that it matches. Spec: 03 §6.8, §10, 05 §3 scope S.
 *
 * One struct serves three kinds: of IPC publications, of a receive endpoint (network), and spies on network publications. A
 * multi-destination subscription may also have IPC and spy destinations. Each of those is a separate subscription with the same
 * registration id. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_SUBSCRIPTION_H
#define ASI_DRIVER_CTL_SUBSCRIPTION_H

#include "driver/ctl/endpoints.h"
#include "driver/ctl/state.h"
#include "wire/uri.h"

struct asi_receive_channel;

typedef struct asi_ctl_subscription
{
    int64_t client_id;
    int64_t registration_id;
    int32_t stream_id;
    int32_t session_id;
    bool has_session_id;
    bool is_spy;
    bool is_response;  /* matches nothing until a response publication gives it a session id */
    bool is_tethered;
    bool is_rejoin;
    bool is_reliable;
    bool is_sparse;
    asi_inferable group;
    struct asi_receive_channel *receive; /* network: borrowed, holds interest in it; else NULL */
    asi_udp_channel *udp;  /* spies: owned; else NULL */
    char *channel;         /* owned */
} asi_ctl_subscription;

typedef struct asi_ctl_subscription_request
{
    int64_t client_id;
    int64_t registration_id;
    int32_t stream_id;
    const char *channel; /* need not be terminated */
    int64_t channel_length;
} asi_ctl_subscription_request;

/* Reads the options and allocates the struct. The new subscription is in no list and has no links. */
as_result asi_driver_subscription_create(const asi_conductor *conductor, const asi_uri *uri,
    const asi_ctl_subscription_request *request, asi_ctl_subscription **created) AS_MUST_USE;
void asi_driver_subscription_free(asi_ctl_subscription *subscription);
bool asi_ctl_subscription_matches_ipc(const asi_ctl_subscription *subscription, int32_t stream_id, int32_t session_id);
bool asi_ctl_subscription_matches_image(const asi_ctl_subscription *subscription, const struct asi_receive_channel *receive,
    int32_t stream_id, int32_t session_id);
/* True when a subscription of a receive endpoint has this registration id. */
bool asi_ctl_subscription_is_on_network(const asi_conductor *conductor, int64_t registration_id);

#endif
