/* Commands on subscriptions: add, remove, and clean-up after a client. Spec: 03 §6.8-6.9. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_SUBSCRIPTIONS_H
#define ASI_DRIVER_CTL_SUBSCRIPTIONS_H

#include "driver/ctl/state.h"
#include "driver/ctl/subscription.h"
#include "wire/uri.h"

/* `channel` need not be terminated. Answers SUBSCRIPTION_READY, then links. */
as_result asi_ctl_subscription_add(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int32_t stream_id,
    const char *channel, int64_t channel_length) AS_MUST_USE;
as_result asi_ctl_subscription_remove(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int64_t registration_id)
    AS_MUST_USE;
/* Removes every subscription of a client that is gone. */
void asi_ctl_subscriptions_remove_client(asi_conductor *conductor, int64_t client_id);

/* Creates, lists and links a subscription of IPC publications or a spy, for a known client. */
as_result asi_ctl_subscription_add_local(asi_conductor *conductor, const asi_uri *uri, const asi_ctl_subscription_request *request,
    asi_ctl_subscription **added) AS_MUST_USE;
/* Removes the subscription at `index` from the list and frees it; with `withdraw`, withdraws its images first. */
void asi_ctl_subscription_remove_at(asi_conductor *conductor, int32_t index, bool withdraw);
void asi_ctl_subscriptions_release(asi_conductor *conductor);

#endif
