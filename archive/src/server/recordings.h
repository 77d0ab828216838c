/* Recording subscriptions and the recordings they feed: what their two files share. Others see archive.h.
 *
 *   recordings.c         subscriptions: requests to start, extend and stop
 *   recordings_images.c  each image that appears on one becomes a recording (start) or goes on with the named one (extend)
 *
 * The recorder runs a recording; when it comes back the stop position is stored, the requester told, and a subscription that nothing
 * holds any more is closed: one that was stopped, or whose requester asked for auto-stop. The conductor's thread. */
#ifndef ASI_SERVER_RECORDINGS_H
#define ASI_SERVER_RECORDINGS_H

#include "server/archive.h"

/* Nobody finds or lists it any more; it takes no further image. */
void asi_recordings_unlist(asi_recording_subscription *subscription);
void asi_recordings_free_if_unused(as_archive *archive, asi_recording_subscription *subscription);
/* Lets the recorder end all recordings of a subscription. */
void asi_recordings_abort(as_archive *archive, const asi_recording_subscription *subscription);
/* The active one; NULL: the recording is not active. */
asi_active_recording *asi_recordings_find(const as_archive *archive, int64_t recording_id);
/* When nothing records any more. */
void asi_recordings_free_subscriptions(as_archive *archive);

#endif
