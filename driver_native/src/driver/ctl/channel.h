/* Parses the channel of a command and checks that its medium is valid for the command. Spec: 05 §2. Called for publications and
 * subscriptions. Pure. */
#ifndef ASI_DRIVER_CTL_CHANNEL_H
#define ASI_DRIVER_CTL_CHANNEL_H

#include "wire/uri.h"

/* Accepts IPC and UDP, not spies. Fails with INVALID_CHANNEL on anything else. */
as_result asi_channel_parse_publication_untrusted(asi_uri *uri, const char *channel, int64_t length) AS_MUST_USE;
/* Accepts IPC, UDP, and a spy on a UDP publication. */
as_result asi_channel_parse_subscription_untrusted(asi_uri *uri, const char *channel, int64_t length) AS_MUST_USE;
/* Terminated copy, owned by the caller; NULL when out of memory (recorded as failure). */
char *asi_channel_copy(const char *channel, int64_t length);

#endif
