/* Recording subscriptions: start, extend, stop, and close when no recording uses them. See recordings.h. Spec: 08 §4. */
#include "server/recordings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "server/descriptors.h"
#include "server/recording_slots.h"
#include "server/reply.h"
#include "server/report.h"
#include "store/segment_layout.h"

asi_active_recording *asi_recordings_find(const as_archive *archive, int64_t recording_id)
{
    asi_active_recording *recording = archive->recordings->active;
    while (NULL != recording && recording->session.writer_params.recording_id != recording_id)
    {
        recording = recording->next;
    }
    return recording;
}

/* -- subscriptions ----------------------------------------------------------------------------------------------------------- */

static asi_recording_subscription *find_by_key(const as_archive *archive, const char *key)
{
    asi_recording_subscription *at = archive->recordings->subscriptions;
    while (NULL != at && !(at->is_listed && 0 == strcmp(at->key.text, key)))
    {
        at = at->next;
    }
    return at;
}

static void drop_images(asi_recording_subscription *subscription)
{
    for (int32_t i = 0; i < subscription->image_count; i++)
    {
        as_image_release(subscription->images[i]);
    }
    subscription->image_count = 0;
}

static void free_subscription(asi_recording_subscription *subscription)
{
    as_subscription_close(subscription->subscription);
    drop_images(subscription);
    free(subscription->images);
    free(subscription->channel);
    free(subscription);
}

/* Hides the subscription from lookups. It is freed when its last recording has returned. */
void asi_recordings_unlist(asi_recording_subscription *subscription)
{
    subscription->is_listed = false;
}

void asi_recordings_free_if_unused(as_archive *archive, asi_recording_subscription *subscription)
{
    if (subscription->is_listed || subscription->recording_count > 0)
    {
        return;
    }
    for (asi_recording_subscription **at = &archive->recordings->subscriptions; NULL != *at; at = &(*at)->next)
    {
        if (*at == subscription)
        {
            *at = subscription->next;
            break;
        }
    }
    free_subscription(subscription);
}

void asi_recordings_abort(as_archive *archive, const asi_recording_subscription *subscription)
{
    for (asi_active_recording *at = archive->recordings->active; NULL != at; at = at->next)
    {
        if (at->subscription == subscription)
        {
            asi_store_release_bool(&at->session.is_aborted, true);
        }
    }
}

/* Handler of the Aeron client: only notes the image. */
static void on_available_image(void *context, as_subscription *subscription, as_image *image)
{
    (void)subscription;
    asi_recording_subscription *recorded = context;
    if (recorded->image_count == recorded->image_capacity)
    {
        const int32_t capacity = recorded->image_capacity + 8;
        as_image **grown = realloc(recorded->images, (size_t)capacity * sizeof(*grown));
        if (NULL == grown)
        {
            asi_archive_log(recorded->archive, 0, "no memory to record a new image; it is not recorded");
            return;
        }
        recorded->images = grown;
        recorded->image_capacity = capacity;
    }
    recorded->images[recorded->image_count++] = as_image_retain(image);
    recorded->has_new_image = true;
}

/* Reports the error by session id, because the session may be gone when the archive itself is the requester (replication). */
static void __attribute__((format(printf, 4, 5))) refuse(
    as_archive *archive, const asi_codec_request *request, int32_t code, const char *format, ...)
{
    char text[ASI_ARCHIVE_CHANNEL_CAPACITY + 256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    asi_control_respond(archive, request->control_session_id, request->correlation_id, ASI_CODEC_ERROR, code, text);
}

static bool is_low_on_storage(as_archive *archive, const asi_codec_request *request)
{
    const int64_t threshold = archive->config.low_storage_threshold;
    const int64_t usable = archive->files->usable_space(archive->files->context, archive->config.archive_dir);
    if (usable > threshold)
    {
        return false;
    }
    refuse(archive, request, ASI_CODEC_E_STORAGE_SPACE, "low storage threshold=%lld <= usableSpace=%lld",
        (long long)threshold, (long long)usable);
    return true;
}

/* Sets the channel texts of a new subscription. AS_E_USAGE: the channel is not an Aeron URI. */
static as_result describe(asi_recording_subscription *subscription, const asi_codec_request *request)
{
    asi_uri uri;
    as_result result = asi_channel_parse_untrusted(&uri, request->channel.data, request->channel.length);
    result = AS_OK == result ? asi_channel_key(&uri, request->stream_id, &subscription->key) : result;
    result = AS_OK == result ? asi_channel_strip(&uri, &subscription->stripped) : result;
    if (AS_OK != result)
    {
        return result;
    }
    /* Spec: 08 §4.1 - a publication of this host is recorded through a spy subscription, because it has no image here. */
    const bool is_spy = ASI_MEDIA_UDP == uri.media && AS_SOURCE_LOCAL == request->source_location;
    subscription->is_network = ASI_MEDIA_UDP == uri.media && !is_spy;
    const int length = snprintf(subscription->subscribed.text, sizeof(subscription->subscribed.text), "%s%s",
        is_spy ? "aeron-spy:" : "", subscription->stripped.text);
    return length < (int)sizeof(subscription->subscribed.text) ? AS_OK :
        asi_fail(AS_E_USAGE, 0, "the channel is longer than %d bytes", AS_CHANNEL_MAX_LENGTH);
}

static void append_subscription(as_archive *archive, asi_recording_subscription *subscription)
{
    asi_recording_subscription **at = &archive->recordings->subscriptions;
    while (NULL != *at)
    {
        at = &(*at)->next;
    }
    *at = subscription;
}

/* Common end of start and extend: subscribes and answers. NULL: refused, and the error was reported. */
static asi_recording_subscription *subscribe(
    as_archive *archive, const asi_codec_request *request, int64_t extend_recording_id)
{
    const int64_t correlation_id = request->correlation_id;
    asi_recording_subscription *subscription = calloc(1, sizeof(*subscription));
    char *channel = strndup(0 == request->channel.length ? "" : request->channel.data, (size_t)request->channel.length);
    if (NULL == subscription || NULL == channel)
    {
        free(subscription);
        free(channel);
        refuse(archive, request, ASI_CODEC_E_GENERIC, "no memory for a recording");
        return NULL;
    }
    subscription->archive = archive;
    subscription->channel = channel;
    subscription->control_session_id = request->control_session_id;
    subscription->correlation_id = correlation_id;
    subscription->extend_recording_id = extend_recording_id;
    subscription->stream_id = request->stream_id;
    subscription->auto_stop = 1 == request->auto_stop;
    as_result result = describe(subscription, request);
    if (AS_OK == result && NULL != find_by_key(archive, subscription->key.text))
    {
        refuse(archive, request, ASI_CODEC_E_ACTIVE_SUBSCRIPTION, "recording exists for streamId=%d channel=%s",
            request->stream_id, channel);
        free_subscription(subscription);
        return NULL;
    }
    if (AS_OK == result)
    {
        result = as_client_add_subscription_with(archive->client, subscription->subscribed.text, request->stream_id,
            on_available_image, NULL, subscription, &subscription->subscription);
    }
    if (AS_OK != result)
    {
        asi_archive_log_of_peer(archive, "ERROR", as_error_code(), as_error_text(), "channels that can't be recorded");
        refuse(archive, request, ASI_CODEC_E_GENERIC, "%s", as_error_text());
        free_subscription(subscription);
        return NULL;
    }
    as_subscription_constants constants;
    as_subscription_get_constants(subscription->subscription, &constants);
    subscription->id = constants.registration_id;
    subscription->is_listed = true;
    append_subscription(archive, subscription);
    asi_control_respond(
        archive, subscription->control_session_id, correlation_id, ASI_CODEC_OK, subscription->id, NULL);
    return subscription;
}

void asi_recordings_start(asi_control_session *session, const asi_codec_request *request)
{
    as_archive *archive = session->archive;
    char text[256];
    if (!asi_slots_has_free(archive))
    {
        refuse(archive, request, ASI_CODEC_E_MAX_RECORDINGS, "max concurrent recordings reached %lld",
            (long long)archive->config.max_concurrent_recordings);
    }
    else if (!asi_descriptors_has_room(archive, ASI_DESCRIPTORS_OF_RECORDING, text, sizeof(text)))
    {
        refuse(archive, request, ASI_CODEC_E_MAX_RECORDINGS, "%s", text);
    }
    else if (!is_low_on_storage(archive, request))
    {
        subscribe(archive, request, AS_NULL_VALUE);
    }
}

asi_recording_subscription *asi_recordings_extend_for(as_archive *archive, const asi_codec_request *request)
{
    const int64_t recording_id = request->recording_id;
    asi_catalog_record record;
    char text[256];
    if (!asi_slots_has_free(archive))
    {
        refuse(archive, request, ASI_CODEC_E_MAX_RECORDINGS, "max concurrent recordings reached at %lld",
            (long long)archive->config.max_concurrent_recordings);
    }
    else if (!asi_descriptors_has_room(archive, ASI_DESCRIPTORS_OF_RECORDING, text, sizeof(text)))
    {
        refuse(archive, request, ASI_CODEC_E_MAX_RECORDINGS, "%s", text);
    }
    else if (!asi_catalog_find(archive->catalog, recording_id, &record))
    {
        refuse(archive, request, ASI_CODEC_E_UNKNOWN_RECORDING, "unknown recording id: %lld", (long long)recording_id);
    }
    else if (record.stream_id != request->stream_id)
    {
        refuse(archive, request, ASI_CODEC_E_UNKNOWN_RECORDING,
            "cannot extend recording %lld with streamId=%d for existing streamId=%d", (long long)recording_id,
            request->stream_id, record.stream_id);
    }
    else if (NULL != asi_uses_recorded(archive, recording_id))
    {
        refuse(archive, request, ASI_CODEC_E_ACTIVE_RECORDING, "cannot extend active recording %lld", (long long)recording_id);
    }
    else if (NULL != asi_uses_holding_tail(archive, &record))
    {
        refuse(archive, request, ASI_CODEC_E_GENERIC, "cannot extend recording %lld due to %s", (long long)recording_id,
            asi_uses_holding_tail(archive, &record));
    }
    else if (!is_low_on_storage(archive, request))
    {
        return subscribe(archive, request, recording_id);
    }
    return NULL;
}

void asi_recordings_extend(asi_control_session *session, const asi_codec_request *request)
{
    asi_recordings_extend_for(session->archive, request);
}

/* -- stopping ---------------------------------------------------------------------------------------------------------------- */

static void stop_all_of(as_archive *archive, asi_recording_subscription *subscription)
{
    asi_recordings_unlist(subscription);
    asi_recordings_abort(archive, subscription);
    asi_recordings_free_if_unused(archive, subscription);
}

asi_recording_subscription *asi_recordings_subscription(const as_archive *archive, int64_t subscription_id)
{
    asi_recording_subscription *at = archive->recordings->subscriptions;
    while (NULL != at && !(at->is_listed && at->id == subscription_id))
    {
        at = at->next;
    }
    return at;
}

void asi_recordings_stop(as_archive *archive, asi_recording_subscription *subscription)
{
    stop_all_of(archive, subscription);
}

void asi_recordings_stop_channel(asi_control_session *session, const asi_codec_request *request)
{
    asi_uri uri;
    asi_channel key;
    if (AS_OK != asi_channel_parse_untrusted(&uri, request->channel.data, request->channel.length) ||
        AS_OK != asi_channel_key(&uri, request->stream_id, &key))
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC, "%s", as_error_text());
        return;
    }
    asi_recording_subscription *subscription = find_by_key(session->archive, key.text);
    if (NULL == subscription)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_UNKNOWN_SUBSCRIPTION,
            "no recording found for streamId=%d channel=%.*s", request->stream_id, (int)request->channel.length,
            request->channel.data);
        return;
    }
    stop_all_of(session->archive, subscription);
    asi_control_ok(session, request->correlation_id, 0);
}

void asi_recordings_stop_subscription(asi_control_session *session, const asi_codec_request *request)
{
    asi_recording_subscription *at = asi_recordings_subscription(session->archive, request->subscription_id);
    if (NULL == at)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_UNKNOWN_SUBSCRIPTION,
            "no recording subscription found for subscriptionId=%lld", (long long)request->subscription_id);
        return;
    }
    stop_all_of(session->archive, at);
    asi_control_ok(session, request->correlation_id, 0);
}

/* Departure from Spec: 08 §4.3 - a subscription with further recordings stays listed until the last of them ends; in upstream
 * they continue but can no longer be listed or stopped by subscription. */
void asi_recordings_stop_identity(asi_control_session *session, const asi_codec_request *request)
{
    asi_catalog_record record;
    if (!asi_catalog_find(session->archive->catalog, request->recording_id, &record))
    {
        asi_control_unknown_recording(session, request->correlation_id, request->recording_id);
        return;
    }
    asi_active_recording *recording = asi_recordings_find(session->archive, request->recording_id);
    if (NULL != recording)
    {
        asi_store_release_bool(&recording->session.is_aborted, true);
        recording->subscription->ends_with_last = true;
        if (1 == recording->subscription->recording_count)
        {
            asi_recordings_unlist(recording->subscription);
        }
    }
    asi_control_ok(session, request->correlation_id, NULL == recording ? 0 : 1);
}

void asi_recordings_free_subscriptions(as_archive *archive)
{
    while (NULL != archive->recordings->subscriptions)
    {
        asi_recording_subscription *subscription = archive->recordings->subscriptions;
        archive->recordings->subscriptions = subscription->next;
        free_subscription(subscription);
    }
}
