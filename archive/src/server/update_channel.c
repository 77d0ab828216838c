/* Changes the stored channel of a recording. See update_channel.h. Spec: 08 §11.
 *
 * Departure from Spec: 08 §11 - an invalid channel is answered with an error; stock only logs it and its client times out. */
#include "server/update_channel.h"

#include <stdlib.h>
#include <string.h>

#include "server/reply.h"
#include "store/catalog_swap.h"

static char *copy(asi_text text) { return strndup(text.at, (size_t)text.length); }

/* `channel` is terminated. */
static as_result replace(asi_catalog *catalog, const asi_catalog_record *record, const char *channel)
{
    asi_uri uri;
    asi_channel stripped;
    as_result result = asi_channel_parse_untrusted(&uri, channel, (int64_t)strlen(channel));
    result = AS_OK == result ? asi_channel_strip(&uri, &stripped) : result;
    if (AS_OK != result)
    {
        return result;
    }
    /* The record's own texts move when the catalog changes. */
    char *source_identity = copy(record->source_identity);
    if (NULL == source_identity)
    {
        return asi_fail(AS_E_INTERNAL, 0, "no memory to update a channel");
    }
    const asi_recording_params params = {
        .start_timestamp_ms = record->start_timestamp_ms,
        .stop_timestamp_ms = record->stop_timestamp_ms,
        .start_position = record->start_position,
        .stop_position = record->stop_position,
        .initial_term_id = record->initial_term_id,
        .segment_file_length = record->segment_file_length,
        .term_buffer_length = record->term_buffer_length,
        .mtu_length = record->mtu_length,
        .session_id = record->session_id,
        .stream_id = record->stream_id,
        .stripped_channel = asi_text_of(stripped.text),
        .original_channel = asi_text_of(channel),
        .source_identity = asi_text_of(source_identity),
    };
    result = asi_catalog_replace(catalog, record->recording_id, &params);
    free(source_identity);
    return result;
}

void asi_update_channel(asi_control_session *session, const asi_codec_request *request)
{
    const int64_t correlation_id = request->correlation_id;
    asi_catalog *catalog = session->archive->catalog;
    asi_catalog_record record;
    if (NULL != session->listing)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_ACTIVE_LISTING, "active listing already in progress");
        return;
    }
    if (!asi_catalog_find(catalog, request->recording_id, &record))
    {
        asi_control_respond(session->archive, session->id, correlation_id, ASI_CODEC_RECORDING_UNKNOWN,
            request->recording_id, NULL);
        return;
    }
    char *channel = copy((asi_text){ .at = 0 == request->channel.length ? "" : request->channel.data,
        .length = (int32_t)request->channel.length });
    if (NULL == channel)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC, "no memory to update a channel");
        return;
    }
    const as_result replaced = replace(catalog, &record, channel);
    if (AS_OK == replaced)
    {
        asi_control_ok(session, correlation_id, 0);
    }
    else
    {
        asi_control_failure(session, correlation_id, replaced);
    }
    free(channel);
}
