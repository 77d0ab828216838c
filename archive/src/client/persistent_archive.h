/* PersistentSubscription's session with the archive, and the states that request the recording's descriptor. See
 * persistent_state.h. */
#ifndef ASI_CLIENT_PERSISTENT_ARCHIVE_H
#define ASI_CLIENT_PERSISTENT_ARCHIVE_H

#include "client/persistent_state.h"

/* Runs one duty cycle of the session with the archive. */
void asi_persistent_link_work(as_persistent_subscription *self);
/* The states of this file; each returns the number of fragments consumed. */
int64_t asi_persistent_await_archive(as_persistent_subscription *self);
int64_t asi_persistent_send_list(as_persistent_subscription *self);
int64_t asi_persistent_await_list(as_persistent_subscription *self);

#endif
