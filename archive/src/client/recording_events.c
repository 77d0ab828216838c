/* Reader of the recording events stream: passes messages 101 to 103 to a handler. Spec: 07 §12, 08 §15.
 * Owns its assembler; borrows the subscription. Thread rule: one polling thread. */
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_archive.h"
#include "base/result.h"
#include "codec/event.h"

struct as_recording_events
{
    as_subscription *subscription; /* borrowed */
    as_fragment_assembler *assembler; /* owned */
    as_on_recording_event on_event;
    void *context;
    as_result failure;             /* of the current poll */
};

/* NUL-terminated copies of the two texts of a start event; NULL if the allocation fails. */
static char *copy_texts(const asi_codec_event *event, const char **channel, const char **source_identity)
{
    const size_t channel_length = (size_t)event->original_channel.length;
    const size_t source_length = (size_t)event->source_identity.length;
    char *texts = calloc(1, channel_length + source_length + 2);
    if (NULL == texts)
    {
        return NULL;
    }
    if (channel_length > 0)
    {
        memcpy(texts, event->original_channel.data, channel_length);
    }
    if (source_length > 0)
    {
        memcpy(texts + channel_length + 1, event->source_identity.data, source_length);
    }
    *channel = texts;
    *source_identity = texts + channel_length + 1;
    return texts;
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    as_recording_events *events = context;
    (void)header;
    asi_codec_event event;
    const as_result result = asi_codec_event_decode_untrusted(data, length, &event);
    if (result < 0)
    {
        events->failure = result;
    }
    if (AS_OK != result || event.template_id < ASI_CODEC_RECORDING_STARTED || event.template_id > ASI_CODEC_RECORDING_STOPPED)
    {
        return;
    }
    const bool is_start = ASI_CODEC_RECORDING_STARTED == event.template_id;
    as_recording_event reported = {
        .kind = (as_recording_event_kind)event.template_id,
        .session_id = is_start ? event.session_id : 0,
        .stream_id = is_start ? event.stream_id : 0,
        .channel = "",
        .source_identity = "",
        .recording_id = event.recording_id,
        .start_position = event.start_position,
        .position = is_start ? event.start_position :
            ASI_CODEC_RECORDING_PROGRESS == event.template_id ? event.position : event.stop_position,
    };
    char *texts = is_start ? copy_texts(&event, &reported.channel, &reported.source_identity) : NULL;
    if (is_start && NULL == texts)
    {
        events->failure = asi_fail(AS_E_INTERNAL, 0, "no memory for a recording event");
        return;
    }
    events->on_event(events->context, &reported);
    free(texts);
}

as_result as_recording_events_open(
    as_subscription *subscription, as_on_recording_event on_event, void *context, as_recording_events **events)
{
    if (NULL == subscription || NULL == on_event)
    {
        return asi_fail(AS_E_USAGE, 0, "a reader of recording events needs a subscription and a handler");
    }
    as_recording_events *opened = calloc(1, sizeof(*opened));
    as_result result = NULL == opened ? asi_fail(AS_E_INTERNAL, 0, "no memory for a reader of recording events") : AS_OK;
    if (AS_OK == result)
    {
        opened->subscription = subscription;
        opened->on_event = on_event;
        opened->context = context;
        result = as_fragment_assembler_open(on_message, opened, &opened->assembler);
    }
    if (AS_OK != result)
    {
        free(opened);
        return result;
    }
    *events = opened;
    return AS_OK;
}

int64_t as_recording_events_poll(as_recording_events *events, int64_t limit)
{
    events->failure = AS_OK;
    const int64_t fragments =
        as_subscription_poll(events->subscription, as_fragment_assembler_on_fragment, events->assembler, limit);
    return fragments >= 0 && AS_OK != events->failure ? (int64_t)events->failure : fragments;
}

void as_recording_events_close(as_recording_events *events)
{
    if (NULL != events)
    {
        as_fragment_assembler_close(events->assembler);
        free(events);
    }
}
