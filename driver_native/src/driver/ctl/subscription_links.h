/* Links subscriptions to the publications and images that they match. Spec: 03 §10. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_SUBSCRIPTION_LINKS_H
#define ASI_DRIVER_CTL_SUBSCRIPTION_LINKS_H

#include "driver/ctl/state.h"
#include "driver/ctl/subscription.h"

/* Links the subscription to the publications and images that it matches. */
void asi_ctl_subscription_link(asi_conductor *conductor, asi_ctl_subscription *subscription);
/* Removes all of its links. With `withdraw`, notifies its client that the images are unavailable. */
void asi_ctl_subscription_unlink(asi_conductor *conductor, const asi_ctl_subscription *subscription, bool withdraw);

#endif
