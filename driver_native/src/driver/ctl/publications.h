/* Adding, sharing and removing publications: channel parameters, matching, session ids. Spec: 03 §6.1-6.5, §6.11-6.12.
 * Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_PUBLICATIONS_H
#define ASI_DRIVER_CTL_PUBLICATIONS_H

#include "driver/ctl/state.h"

/* Answers (EXCLUSIVE_)PUBLICATION_READY, then AVAILABLE_IMAGE for each subscription that it links. */
as_result asi_ctl_publication_add(asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int32_t stream_id,
    const char *channel, int64_t channel_length, bool is_exclusive) AS_MUST_USE;
as_result asi_ctl_publication_remove(
    asi_conductor *conductor, int64_t client_id, int64_t correlation_id, int64_t registration_id, bool revoke) AS_MUST_USE;
void asi_ctl_publication_next_session_id(asi_conductor *conductor, int64_t correlation_id, int32_t stream_id);
as_result asi_ctl_publication_reject_image(asi_conductor *conductor, int64_t correlation_id, int64_t image_correlation_id,
    const char *reason, int64_t reason_length) AS_MUST_USE;
void asi_ctl_publications_on_timer(asi_conductor *conductor);
void asi_ctl_publications_release(asi_conductor *conductor);

#endif
