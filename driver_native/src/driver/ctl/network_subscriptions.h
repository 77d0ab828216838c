/* Subscriptions on receive endpoints: channel checks, interest, and the session id that a response channel gets later.
 * Spec: 03 §6.8, 04 §8.1, §14. Called by subscriptions.c and on_agent_command.c. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_NETWORK_SUBSCRIPTIONS_H
#define ASI_DRIVER_CTL_NETWORK_SUBSCRIPTIONS_H

#include "driver/ctl/state.h"
#include "driver/ctl/subscription.h"

/* Answers SUBSCRIPTION_READY, then AVAILABLE_IMAGE for each image that it links. */
as_result asi_network_subscription_add(
    asi_conductor *conductor, const asi_uri *uri, const asi_ctl_subscription_request *request) AS_MUST_USE;
/* Drops the subscription's interest; the endpoint closes with the last one. */
void asi_network_subscription_release(asi_conductor *conductor, asi_ctl_subscription *subscription);
/* Handles an RSP_SETUP for one of this driver's requests. */
void asi_network_subscription_on_response(asi_conductor *conductor, const asi_command_response *response);

#endif
