/* Recording events stream: Started, Progress, Stopped of every recording, for whoever subscribes. Spec: 07 §12.
 *
 * Called by the recorder's sessions, on the recorder's thread alone; the conductor opened the publication and closes it after the
 * recorder has ended. A publication of NULL means that events are off. */
#ifndef ASI_RECORD_EVENTS_H
#define ASI_RECORD_EVENTS_H

#include "codec/event.h"
#include "aeron_spark/as_client.h"

typedef struct asi_record_events
{
    as_publication *publication; /* borrowed, exclusive; NULL: off */
} asi_record_events;

/* Three tries; lost when nobody listens. AS_E_CLOSED when the stream can't go on. */
as_result asi_record_events_started(const asi_record_events *events, int64_t recording_id, int64_t start_position,
    int32_t session_id, int32_t stream_id, const char *channel, const char *source_identity) AS_MUST_USE;
as_result asi_record_events_stopped(
    const asi_record_events *events, int64_t recording_id, int64_t start_position, int64_t stop_position) AS_MUST_USE;
/* One try: AS_AGAIN means to report a later position next time. */
as_result asi_record_events_progress(
    const asi_record_events *events, int64_t recording_id, int64_t start_position, int64_t position) AS_MUST_USE;

#endif
