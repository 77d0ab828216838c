/* See events.h. */
#include "record/events.h"

#define EVENT_CAPACITY (64 + 2 * (AS_CHANNEL_MAX_LENGTH + 1))
#define SEND_ATTEMPTS 3

static as_result offer(const asi_record_events *events, const asi_codec_event *event, int attempts)
{
    uint8_t buffer[EVENT_CAPACITY];
    int64_t length;
    const as_result encoded = asi_codec_event_encode(event, buffer, sizeof(buffer), &length);
    if (AS_OK != encoded)
    {
        return encoded;
    }
    for (int i = 0; i < attempts; i++)
    {
        const int64_t position = as_publication_offer(events->publication, buffer, length);
        if (position > 0 || AS_NOT_CONNECTED == position)
        {
            return AS_OK;
        }
        if (AS_PUBLICATION_CLOSED == position)
        {
            return asi_fail(AS_E_CLOSED, 0, "recording events publication is closed");
        }
        if (AS_MAX_POSITION_EXCEEDED == position)
        {
            as_publication_constants constants;
            as_publication_get_constants(events->publication, &constants);
            return asi_fail(AS_E_CLOSED, 0, "recording events publication at max position, term-length=%d", constants.term_length);
        }
    }
    return AS_AGAIN;
}

as_result asi_record_events_started(const asi_record_events *events, int64_t recording_id, int64_t start_position,
    int32_t session_id, int32_t stream_id, const char *channel, const char *source_identity)
{
    if (NULL == events->publication)
    {
        return AS_OK;
    }
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_RECORDING_STARTED);
    event.recording_id = recording_id;
    event.start_position = start_position;
    event.session_id = session_id;
    event.stream_id = stream_id;
    event.original_channel = asi_codec_text(channel);
    event.source_identity = asi_codec_text(source_identity);
    return offer(events, &event, SEND_ATTEMPTS);
}

as_result asi_record_events_stopped(
    const asi_record_events *events, int64_t recording_id, int64_t start_position, int64_t stop_position)
{
    if (NULL == events->publication)
    {
        return AS_OK;
    }
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_RECORDING_STOPPED);
    event.recording_id = recording_id;
    event.start_position = start_position;
    event.stop_position = stop_position;
    return offer(events, &event, SEND_ATTEMPTS);
}

as_result asi_record_events_progress(
    const asi_record_events *events, int64_t recording_id, int64_t start_position, int64_t position)
{
    if (NULL == events->publication)
    {
        return AS_OK;
    }
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_RECORDING_PROGRESS);
    event.recording_id = recording_id;
    event.start_position = start_position;
    event.position = position;
    return offer(events, &event, 1);
}
