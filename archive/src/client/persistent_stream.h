/* PersistentSubscription's states that have a stream or wait for the live one; each returns the number of fragments consumed. See
 * persistent_state.h. */
#ifndef ASI_CLIENT_PERSISTENT_STREAM_H
#define ASI_CLIENT_PERSISTENT_STREAM_H

#include "client/persistent_state.h"

int64_t asi_persistent_replay(as_persistent_subscription *self);
int64_t asi_persistent_switch(as_persistent_subscription *self);
int64_t asi_persistent_add_live(as_persistent_subscription *self);
int64_t asi_persistent_await_live(as_persistent_subscription *self);
int64_t asi_persistent_live(as_persistent_subscription *self);

#endif
