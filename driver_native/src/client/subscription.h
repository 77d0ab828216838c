/* Subscriptions of a client and their lists of images. Thread rule: the caller holds the client's lock. */
#ifndef ASI_CLIENT_SUBSCRIPTION_H
#define ASI_CLIENT_SUBSCRIPTION_H

#include "client/state.h"

as_result asi_client_subscription_create(as_client *client, asi_request *request, int32_t channel_status_counter_id) AS_MUST_USE;
as_result asi_client_subscription_add_image(
    as_subscription *subscription, const asi_rsp_available_image *available, const char *path, const char *source_identity)
    AS_MUST_USE;
void asi_client_subscription_remove_image(as_subscription *subscription, int64_t correlation_id);
/* Closes every image, calls the unavailable handlers and marks the subscription closed. */
void asi_client_subscription_terminate(as_subscription *subscription);
void asi_client_subscription_free(as_subscription *subscription);
/* Frees lists and images that no thread can be reading any more. */
int asi_client_subscription_sweep(as_client *client, int64_t now_ns);
/* AS_E_CLOSED, with the reason why the client is closed. Any thread, no lock: once a client is closed, its reason stays. */
as_result asi_client_subscription_fail_closed(const as_subscription *subscription) AS_MUST_USE;

#endif
