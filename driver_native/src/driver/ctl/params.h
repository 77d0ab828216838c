/* What a publication's channel asks for, checked and completed with the driver's defaults. Spec: 03 §6.1, 05 §3.
 * Called by publications.c. Reads the conductor's settings and, for session-id=tag:, its publications. Thread rule: the
 * conductor's. */
#ifndef ASI_DRIVER_CTL_PARAMS_H
#define ASI_DRIVER_CTL_PARAMS_H

#include "driver/ctl/conductor.h"
#include "wire/uri.h"

#define ASI_RESPONSE_PROTOTYPE (-2) /* response-correlation-id=prototype: holds the endpoint for responses to come */

typedef struct asi_publication_params
{
    int32_t term_length;
    int32_t mtu_length;
    int32_t window_length;
    int32_t max_resend;      /* 0 unless given */
    int32_t session_id;
    int32_t initial_term_id; /* these three when has_position */
    int32_t term_id;
    int32_t term_offset;
    bool has_term_length;
    bool has_mtu_length;
    bool has_session_id;
    bool has_position;
    bool is_sparse;
    bool signal_eos;
    bool spies_simulate_connection;
    bool is_response;
    int64_t entity_tag;
    int64_t response_correlation_id; /* -1 none, -2 prototype */
    int64_t linger_timeout_ns;
    int64_t untethered_window_limit_timeout_ns;
    int64_t untethered_linger_timeout_ns;
    int64_t untethered_resting_timeout_ns;
} asi_publication_params;

/* AS_E_USAGE names the parameter and what is wrong with its value. */
as_result asi_publication_params_read(
    const asi_conductor *conductor, const asi_uri *uri, bool is_network, asi_publication_params *params) AS_MUST_USE;

#endif
