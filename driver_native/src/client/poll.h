/* Polls of images and subscriptions. Thread rule: the polling thread. */
#ifndef ASI_CLIENT_POLL_H
#define ASI_CLIENT_POLL_H

#include "client/state.h"

/* Why a poll was refused: AS_E_CLOSED, or AS_E_USAGE when another one is under way. */
as_result asi_subscription_refuse_poll(as_subscription *subscription) AS_MUST_USE;

#endif
