/* Channels as the archive rewrites them: stripped for subscribing and for the catalog, the key of a recording subscription, the
 * response and the replay publication. Spec: 08 §2.1-2.2, §7.2, 07 §6.2.
 *
 * Called by the conductor's handlers with channels of requests, which are unchecked text. Pure; any thread. */
#ifndef ASI_SERVER_CHANNEL_H
#define ASI_SERVER_CHANNEL_H

#include "base/result.h"
#include "server/config.h"
#include "wire/uri.h"

typedef struct asi_channel
{
    char text[ASI_ARCHIVE_CHANNEL_CAPACITY];
} asi_channel;

/* AS_E_USAGE with the stock server's text for what is no Aeron URI. */
as_result asi_channel_parse_untrusted(asi_uri *uri, const char *text, int64_t length) AS_MUST_USE;
/* Spec: 08 §2.2. */
as_result asi_channel_strip(const asi_uri *uri, asi_channel *stripped) AS_MUST_USE;
/* Spec: 08 §2.1. */
as_result asi_channel_key(const asi_uri *uri, int32_t stream_id, asi_channel *key) AS_MUST_USE;
/* Response publication of a control session; `request_correlation_id` is that of the image the request came on. Term length and MTU
 * are what the request asks for, as far as the settings let it; a client that did not log in gets the smallest terms. */
as_result asi_channel_response(const asi_uri *uri, const as_archive_config *config, bool is_logged_in,
    int64_t request_correlation_id, asi_channel *response) AS_MUST_USE;
/* AS_E_USAGE unless answers on the channel go to where the request came from (`source_identity` of its image): over the same medium and,
 * by UDP, to the same address; by a name only where the client logged in. */
as_result asi_channel_check_response(const asi_uri *uri, const char *source_identity, bool is_logged_in) AS_MUST_USE;
/* Whether a receiver there, who is heard of, shows that the request came from where it says: a log of the smallest terms may lead there
 * before the login and is what it wants, and nobody elsewhere sees the port to which status messages go. The session id is no secret:
 * clients choose it. Spec: 07 §5 */
bool asi_channel_proves_source(const asi_uri *uri, const as_archive_config *config, const char *source_identity);
/* Length of the address in a source identity, its port left out. */
int64_t asi_source_address_length(const char *source_identity);

/* Whether its control mode is "response". */
bool asi_channel_is_response(const asi_uri *uri);
/* The channel itself, but answering to the image of that correlation id. */
as_result asi_channel_answer_to(const asi_uri *uri, int64_t request_correlation_id, asi_channel *channel) AS_MUST_USE;

typedef struct asi_replay_origin
{
    int64_t position;
    int32_t initial_term_id;
    int32_t term_length;
    int32_t mtu;
    int64_t linger_ns;    /* unless the channel names one */
} asi_replay_origin;

/* Replay publication that begins at `origin`. */
as_result asi_channel_replay(const asi_uri *uri, const asi_replay_origin *origin, asi_channel *replay) AS_MUST_USE;

#endif
