/* Handles requests to start, extend and stop recordings, and owns the recording subscriptions. See recording.h. Spec: 08 §4.
 *
 *   recordings.c         subscriptions
 *   recordings_images.c  each new image of a subscription starts a recording (start) or continues the named one (extend)
 *
 * The recorder runs a recording. When the recording returns, its stop position is stored and the requester is notified. A
 * subscription that no recording uses is closed if it was stopped or if its requester set auto-stop. Thread rule: conductor
 * only. */
#ifndef ASI_SERVER_RECORDINGS_H
#define ASI_SERVER_RECORDINGS_H

#include "codec/request.h"
#include "server/recording.h"

void asi_recordings_start(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_extend(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_stop_channel(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_stop_subscription(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_stop_identity(asi_control_session *session, const asi_codec_request *request);
/* Extends a recording for the archive itself. Success and refusal are reported as for a request of a session. `request` names
 * the session, which may be gone. NULL: refused, and the error was reported. */
asi_recording_subscription *asi_recordings_extend_for(as_archive *archive, const asi_codec_request *request);
/* NULL: the subscription was stopped, or its recording has ended. */
asi_recording_subscription *asi_recordings_subscription(const as_archive *archive, int64_t subscription_id);
/* Hides the subscription from lookups and ends its recordings. */
void asi_recordings_stop(as_archive *archive, asi_recording_subscription *subscription);

/* Hides the subscription from lookups and listings; it accepts no further image. */
void asi_recordings_unlist(asi_recording_subscription *subscription);
void asi_recordings_free_if_unused(as_archive *archive, asi_recording_subscription *subscription);
/* Requests the recorder to end all recordings of a subscription. */
void asi_recordings_abort(as_archive *archive, const asi_recording_subscription *subscription);
/* Returns the active recording. NULL: the recording is not active. */
asi_active_recording *asi_recordings_find(const as_archive *archive, int64_t recording_id);
/* To be called when no recording is active any more. */
void asi_recordings_free_subscriptions(as_archive *archive);

#endif
