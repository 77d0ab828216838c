/* Rewrites channels for the archive: the stripped channel for subscribing and for the catalog, the key of a recording
 * subscription, the response channel and the replay channel. Spec: 08 §2.1-2.2, §7.2, 07 §6.2.
 *
 * The conductor's handlers pass channels of requests, which are unchecked text. Pure functions; any thread. */
#ifndef ASI_SERVER_CHANNEL_H
#define ASI_SERVER_CHANNEL_H

#include "base/result.h"
#include "server/config.h"
#include "wire/uri.h"

typedef struct asi_channel
{
    char text[ASI_ARCHIVE_CHANNEL_CAPACITY];
} asi_channel;

/* AS_E_USAGE with the stock server's text when `text` is not an Aeron URI. */
as_result asi_channel_parse_untrusted(asi_uri *uri, const char *text, int64_t length) AS_MUST_USE;
/* AS_E_USAGE, as with asi_channel_replay, with the stock server's text for a value that the stock server refuses. Spec: 08 §2.2. */
as_result asi_channel_strip(const asi_uri *uri, asi_channel *stripped) AS_MUST_USE;
/* Spec: 08 §2.1. */
as_result asi_channel_key(const asi_uri *uri, int32_t stream_id, asi_channel *key) AS_MUST_USE;
/* Builds the channel of a control session's response publication. `request_correlation_id` is the correlation id of the image on
 * which the request arrived. Term length and MTU are those of the request, within the limits of the settings; a client that has
 * not logged in gets the smallest terms. */
as_result asi_channel_response(const asi_uri *uri, const as_archive_config *config, bool is_logged_in,
    int64_t request_correlation_id, asi_channel *response) AS_MUST_USE;
/* AS_E_USAGE unless responses on the channel reach the origin of the request (`source_identity` of its image): the medium must
 * match and, for UDP, the address. A host name is accepted only from a client that has logged in. */
as_result asi_channel_check_response(const asi_uri *uri, const char *source_identity, bool is_logged_in) AS_MUST_USE;
/* Whether a connected receiver on this channel proves the source address of the request. A log with the smallest terms must be
 * allowed on the channel before the login, and it must be what the request asks for. The proof holds because no other host sees
 * the port that receives status messages. The session id is not a secret: clients choose it. Spec: 07 §5 */
bool asi_channel_proves_source(const asi_uri *uri, const as_archive_config *config, const char *source_identity);
/* Length of the address in a source identity, without its port. */
int64_t asi_source_address_length(const char *source_identity);

/* Whether the channel's control mode is "response". */
bool asi_channel_is_response(const asi_uri *uri);
/* Copies the channel and sets its response correlation id to that of the given image. */
as_result asi_channel_answer_to(const asi_uri *uri, int64_t request_correlation_id, asi_channel *channel) AS_MUST_USE;

typedef struct asi_replay_origin
{
    int64_t position;
    int32_t initial_term_id;
    int32_t term_length;
    int32_t mtu;
    int64_t linger_ns;    /* default, when the channel does not set linger */
} asi_replay_origin;

/* Builds the channel of a replay publication that begins at `origin`. */
as_result asi_channel_replay(const asi_uri *uri, const asi_replay_origin *origin, asi_channel *replay) AS_MUST_USE;

#endif
