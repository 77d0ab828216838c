/* Subscriptions: add, link to publications, remove. Spec: 03 §6.8-6.9, §10.
 *
 * One struct for the three kinds: of IPC publications, of a receive endpoint (network), and spies on network publications. A
 * multi-destination subscription may have IPC and spy destinations, too: each is a subscription of its own with the same
 * registration id. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_SUBSCRIPTIONS_H
#define ASI_DRIVER_CTL_SUBSCRIPTIONS_H

#include "driver/ctl/conductor.h"
#include "wire/uri.h"

struct asi_receive_channel;

typedef struct asi_subscription
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
} asi_subscription;

/* `channel` need not be terminated. Answers SUBSCRIPTION_READY, then links. */
as_result asi_subscription_add(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int32_t stream_id,
    const char *channel, int64_t channel_length) AS_MUST_USE;
as_result asi_subscription_remove(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int64_t registration_id)
    AS_MUST_USE;
/* Every subscription of a client that is gone. */
void asi_subscriptions_remove_client(asi_conductor *conductor, int64_t client_id);
bool asi_subscription_matches_ipc(const asi_subscription *subscription, int32_t stream_id, int32_t session_id);
bool asi_subscription_matches_image(const asi_subscription *subscription, const struct asi_receive_channel *receive,
    int32_t stream_id, int32_t session_id);
/* Whether a subscription of a receive endpoint has this registration id. */
bool asi_subscription_is_on_network(const asi_conductor *conductor, int64_t registration_id);

typedef struct asi_subscription_request
{
    int64_t client_id;
    int64_t registration_id;
    int32_t stream_id;
    const char *channel; /* need not be terminated */
    int64_t channel_length;
} asi_subscription_request;

/* Reads the options and makes the struct; in no list, linked to nothing. */
as_result asi_driver_subscription_create(const asi_conductor *conductor, const asi_uri *uri, const asi_subscription_request *request,
    asi_subscription **created) AS_MUST_USE;
void asi_driver_subscription_free(asi_subscription *subscription);
/* Links it to the publications and images that it matches. */
void asi_subscription_link(asi_conductor *conductor, asi_subscription *subscription);
/* Makes, lists and links a subscription of IPC publications or a spy, for a client that is known. */
as_result asi_subscription_add_local(asi_conductor *conductor, const asi_uri *uri, const asi_subscription_request *request,
    asi_subscription **added) AS_MUST_USE;
/* Takes it out of the list at `index` and frees it; with `withdraw`, its images are withdrawn first. */
void asi_subscription_remove_at(asi_conductor *conductor, int32_t index, bool withdraw);
void asi_subscriptions_release(asi_conductor *conductor);

#endif
