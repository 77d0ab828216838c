/* Recording subscriptions: requests to start, extend and stop. See recording.h. Spec: 08 §4.
 *
 *   recordings.c         subscriptions
 *   recordings_images.c  each image that appears on one becomes a recording (start) or goes on with the named one (extend)
 *
 * The recorder runs a recording; when it comes back the stop position is stored, the requester told, and a subscription that nothing
 * holds any more is closed: one that was stopped, or whose requester asked for auto-stop. The conductor's thread. */
#ifndef ASI_SERVER_RECORDINGS_H
#define ASI_SERVER_RECORDINGS_H

#include "codec/request.h"
#include "server/recording.h"

void asi_recordings_start(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_extend(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_stop_channel(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_stop_subscription(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_stop_identity(asi_control_session *session, const asi_codec_request *request);
/* An extension that the archive itself wants: answered and refused as one that came by a session, which may be gone. The
 * request names the session. NULL: refused, and told. */
asi_recording_subscription *asi_recordings_extend_for(as_archive *archive, const asi_codec_request *request);
/* NULL: it was stopped, or its recording has ended. */
asi_recording_subscription *asi_recordings_subscription(const as_archive *archive, int64_t subscription_id);
/* It can't be found any more; its recordings end. */
void asi_recordings_stop(as_archive *archive, asi_recording_subscription *subscription);

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
