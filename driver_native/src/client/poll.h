/* Polls of images and subscriptions. Thread rule: the polling thread. */
#ifndef ASI_CLIENT_POLL_H
#define ASI_CLIENT_POLL_H

#include "client/state.h"

/* The reason for a refused poll: AS_E_CLOSED, or AS_E_USAGE when another poll is running. */
as_result asi_client_subscription_refuse_poll(as_subscription *subscription) AS_MUST_USE;

#endif
