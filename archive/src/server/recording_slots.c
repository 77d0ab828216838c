/* See recording_slots.h. */
#include "server/recording_slots.h"

#include <stdio.h>
#include <string.h>

#include "server/descriptors.h"

#define EMPTY_FORGOTTEN_MS 60000

static int64_t used_slots(const as_archive *archive)
{
    int64_t count = archive->uses->count[ASI_USE_RECORDS];
    for (const asi_recording_subscription *at = archive->recordings->subscriptions; NULL != at; at = at->next)
    {
        count += at->is_listed && !at->had_session ? 1 : 0;
    }
    return count;
}

bool asi_slots_has_free(const as_archive *archive)
{
    return used_slots(archive) < archive->config.max_concurrent_recordings;
}

static bool is_empty(const asi_active_recording *recording)
{
    const asi_record_session *session = &recording->session;
    return asi_load_acquire_i64(&session->recorded->position) == session->writer_params.join_position;
}

static int64_t empty_count(const as_archive *archive, asi_recording_subscription *subscription)
{
    const int64_t forgotten = (archive->tick_ms - subscription->empty_ms) / EMPTY_FORGOTTEN_MS;
    if (forgotten > 0)
    {
        subscription->empty_count = subscription->empty_count > forgotten ? subscription->empty_count - forgotten : 0;
        subscription->empty_ms += forgotten * EMPTY_FORGOTTEN_MS;
    }
    return subscription->empty_count;
}

/* Whether one more recording without data would exceed a limit. */
static bool must_await_data(const as_archive *archive, asi_recording_subscription *subscription)
{
    int64_t of_subscription = empty_count(archive, subscription);
    int64_t of_all = 0;
    for (const asi_active_recording *at = archive->recordings->active; NULL != at; at = at->next)
    {
        const bool counts = at->is_further_of_network && is_empty(at);
        of_all += counts ? 1 : 0;
        of_subscription += counts && at->subscription == subscription ? 1 : 0;
    }
    const as_archive_config *config = &archive->config;
    return of_subscription >= config->unbegun_recordings_max || of_all >= (config->max_concurrent_recordings + 1) / 2;
}

static int64_t count_of_source(const as_archive *archive, const as_image *image)
{
    as_image_constants of_image;
    as_image_get_constants(image, &of_image);
    const int64_t length = asi_source_address_length(of_image.source_identity);
    int64_t count = 0;
    for (const asi_active_recording *at = archive->recordings->active; NULL != at; at = at->next)
    {
        as_image_constants constants;
        as_image_get_constants(at->session.image, &constants);
        count += at->is_further_of_network && asi_source_address_length(constants.source_identity) == length &&
            0 == memcmp(constants.source_identity, of_image.source_identity, (size_t)length) ? 1 : 0;
    }
    return count;
}

/* Where logins are required, the default limit keeps half of the slots free of any single source, for clients that are logged
 * in. */
static int64_t source_max(const as_archive *archive)
{
    const as_archive_config *config = &archive->config;
    const int64_t slots = config->max_concurrent_recordings;
    const int64_t unset = asi_auth_has_principals(&archive->auth) ? (slots + 1) / 2 : slots;
    return 0 == config->source_recordings_max ? unset : config->source_recordings_max;
}

/* Sets `reason` when the image must not be recorded now, whatever data it has. */
static bool may_start(as_archive *archive, const asi_recording_subscription *subscription, const as_image *image, char *reason,
    size_t capacity)
{
    const as_archive_config *config = &archive->config;
    if (subscription->had_session && !asi_slots_has_free(archive))
    {
        snprintf(reason, capacity, "max concurrent recordings reached %lld: raise aeron.archive.max.concurrent.recordings",
            (long long)config->max_concurrent_recordings);
        return false;
    }
    if (subscription->had_session && subscription->is_network && count_of_source(archive, image) >= source_max(archive))
    {
        snprintf(reason, capacity, "max concurrent recordings of one source reached %lld: raise "
            "aeron.spark.archive.recordings.source.max", (long long)source_max(archive));
        return false;
    }
    return asi_descriptors_has_room(archive, ASI_DESCRIPTORS_OF_RECORDING, reason, capacity);
}

asi_slot asi_slots_for_image(as_archive *archive, asi_recording_subscription *subscription, const as_image *image,
    char *text, size_t capacity)
{
    char reason[256];
    const bool may = may_start(archive, subscription, image, reason, sizeof(reason));
    const bool is_further_of_network = subscription->is_network && subscription->had_session;
    if (is_further_of_network && !as_image_has_data(image))
    {
        return may && !must_await_data(archive, subscription) ? ASI_SLOT_FREE : ASI_SLOT_AWAITS_DATA;
    }
    if (may)
    {
        return ASI_SLOT_FREE;
    }
    snprintf(text, capacity, "a stream waits to be recorded, and its publisher with it, until a recording ends: %s: streamId=%d "
        "channel=%s", reason, subscription->stream_id, subscription->channel);
    return ASI_SLOT_AWAITS_END;
}

void asi_slots_on_start(as_archive *archive, asi_active_recording *recording)
{
    asi_descriptors_take(archive, ASI_DESCRIPTORS_OF_RECORDING);
    asi_recording_subscription *subscription = recording->subscription;
    recording->is_further_of_network = subscription->is_network && subscription->had_session;
    subscription->had_session = true;
    subscription->is_limit_told = false;
}

void asi_slots_on_end(as_archive *archive, const asi_active_recording *recording)
{
    asi_recording_subscription *subscription = recording->subscription;
    if (recording->is_further_of_network && is_empty(recording))
    {
        if (0 == empty_count(archive, subscription))
        {
            subscription->empty_ms = archive->tick_ms;
        }
        subscription->empty_count++;
    }
}
