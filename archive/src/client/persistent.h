/* Internal interface of PersistentSubscription for its tests; contract in as_archive.h. Thread rule: one thread. */
#ifndef ASI_CLIENT_PERSISTENT_H
#define ASI_CLIENT_PERSISTENT_H

#include "client/persistent_state.h"

/* as_persistent_subscription_open with an injected clock. */
as_result asi_persistent_open_with(const as_persistent_options *options, const asi_clock *clock,
    as_persistent_subscription **subscription) AS_MUST_USE;

#endif
