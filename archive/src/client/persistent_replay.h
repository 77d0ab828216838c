/* PersistentSubscription's states from a request to a replay image; each returns the number of fragments consumed. See
 * persistent_state.h. */
#ifndef ASI_CLIENT_PERSISTENT_REPLAY_H
#define ASI_CLIENT_PERSISTENT_REPLAY_H

#include "client/persistent_state.h"

void asi_persistent_set_up_replay(as_persistent_subscription *self);
int64_t asi_persistent_send_replay(as_persistent_subscription *self);
int64_t asi_persistent_await_replay_response(as_persistent_subscription *self);
int64_t asi_persistent_add_replay(as_persistent_subscription *self);
int64_t asi_persistent_await_replay_subscription(as_persistent_subscription *self);
int64_t asi_persistent_await_endpoint(as_persistent_subscription *self);
int64_t asi_persistent_add_requests(as_persistent_subscription *self);
int64_t asi_persistent_await_requests(as_persistent_subscription *self);
int64_t asi_persistent_send_token(as_persistent_subscription *self);
int64_t asi_persistent_await_token(as_persistent_subscription *self);

#endif
