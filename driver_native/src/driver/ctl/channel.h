/* Channels as commands give them: which medium, and whether the command may name such a one. Spec: 05 §2.
 * Called for publications and subscriptions. Pure. */
#ifndef ASI_DRIVER_CTL_CHANNEL_H
#define ASI_DRIVER_CTL_CHANNEL_H

#include "wire/uri.h"

/* IPC or UDP, no spy. INVALID_CHANNEL for what is no such channel. */
as_result asi_channel_parse_publication_untrusted(asi_uri *uri, const char *channel, int64_t length) AS_MUST_USE;
/* IPC or UDP, or a spy on a UDP publication. */
as_result asi_channel_parse_subscription_untrusted(asi_uri *uri, const char *channel, int64_t length) AS_MUST_USE;
/* Copy with a terminator, owned by the caller; NULL without memory (recorded as failure). */
char *asi_channel_copy(const char *channel, int64_t length);

#endif
