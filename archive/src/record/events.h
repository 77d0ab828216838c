/* Publishes the recording events stream: Started, Progress and Stopped of every recording. Spec: 07 §12.
 *
 * The recorder's sessions call it, on the recorder's thread only. The conductor opens the publication, and closes it after the
 * recorder has ended. Events are off if the publication is NULL. */
#ifndef ASI_RECORD_EVENTS_H
#define ASI_RECORD_EVENTS_H

#include "aeron_spark/as_client.h"
#include "codec/event.h"

typedef struct asi_record_events
{
    as_publication *publication; /* borrowed, exclusive; NULL: off */
} asi_record_events;

/* Tries three times. Without a subscriber the event is lost. AS_E_CLOSED: the stream is closed or at its maximum position. */
as_result asi_record_events_started(const asi_record_events *events, int64_t recording_id, int64_t start_position,
    int32_t session_id, int32_t stream_id, const char *channel, const char *source_identity) AS_MUST_USE;
as_result asi_record_events_stopped(
    const asi_record_events *events, int64_t recording_id, int64_t start_position, int64_t stop_position) AS_MUST_USE;
/* Tries once. AS_AGAIN: report a later position next time. */
as_result asi_record_events_progress(
    const asi_record_events *events, int64_t recording_id, int64_t start_position, int64_t position) AS_MUST_USE;

#endif
