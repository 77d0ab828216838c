/* Reads the parameters of a publication's channel, checks them, and fills in the driver's defaults. Spec: 03 §6.1, 05 §3. Called
 * by publications.c. Reads the conductor's settings and, for session-id=tag:, its publications. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_PARAMS_H
#define ASI_DRIVER_CTL_PARAMS_H

#include "driver/ctl/state.h"
#include "wire/uri.h"

#define ASI_RESPONSE_PROTOTYPE (-2) /* response-correlation-id=prototype: keeps the endpoint open for later responses */

typedef struct asi_untethered_timeouts
{
    int64_t window_limit_ns;
    int64_t linger_ns;
    int64_t resting_ns;
} asi_untethered_timeouts;

typedef struct asi_ctl_publication_params
{
    int32_t term_length;
    int32_t mtu_length;
    int32_t window_length;
    int32_t max_resend;      /* 0 unless given */
    int32_t session_id;
    int32_t initial_term_id; /* these three are valid when has_position is set */
    int32_t term_id;
    int32_t term_offset;
    bool has_term_length;
    bool has_mtu_length;
    bool has_session_id;
    bool has_position;
    bool is_sparse;
    bool signal_eos;
    bool spies_simulate_connection;
    bool backs_off_setups;   /* setup-backoff: ours, not of Aeron */
    bool is_response;
    int64_t entity_tag;
    int64_t response_correlation_id; /* -1 none, -2 prototype */
    int64_t linger_timeout_ns;
    asi_untethered_timeouts untethered;
} asi_ctl_publication_params;

/* Finds a publication of the channel's medium by its entity tag: returns its parameters and session id, NULL when there is
 * none. */
typedef const asi_ctl_publication_params *(*asi_find_tagged)(const asi_conductor *conductor, int64_t tag, int32_t *session_id);

/* AS_E_USAGE names the parameter and the reason why its value is invalid. */
as_result asi_ctl_publication_params_read(const asi_conductor *conductor, const asi_uri *uri, bool is_network,
    asi_find_tagged find_tagged, asi_ctl_publication_params *params) AS_MUST_USE;
/* Checks the parameters that `requested` gives against those of the shared publication. */
as_result asi_ctl_publication_params_check_same(
    const asi_ctl_publication_params *existing, int32_t existing_session_id,
    const asi_ctl_publication_params *requested) AS_MUST_USE;
/* Next free session id outside the reserved range. */
int32_t asi_session_id_next(asi_conductor *conductor,
    bool (*is_used)(const asi_conductor *conductor, int32_t session_id, const void *context), const void *context);

/* For publications, subscriptions and the subscriptions' images. */
as_result asi_untethered_timeouts_read(
    const asi_conductor *conductor, const asi_uri *uri, asi_untethered_timeouts *timeouts) AS_MUST_USE;
/* Checks a term length from a channel or a peer. */
as_result asi_check_term_length(int64_t length) AS_MUST_USE;
as_result asi_check_mtu_length(int64_t length) AS_MUST_USE;

#endif
