/* Turns images into recordings, and ends recordings. See recordings.h. Spec: 08 §4.1-4.4. */
#include "server/recordings_images.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/leftovers.h"
#include "server/recording_slots.h"
#include "server/recordings.h"
#include "server/reply.h"
#include "server/report.h"
#include "store/segment_layout.h"

static void show_recording_count(const as_archive *archive)
{
    as_counter_set(archive->counters.recording_sessions, archive->uses->count[ASI_USE_RECORDS]);
}

/* -- from image to recording ------------------------------------------------------------------------------------------------- */

/* Reports to the requester that an image is not recorded; with auto-stop, the subscription is closed. */
static void answer_image(as_archive *archive, asi_recording_subscription *subscription, int32_t code, const char *text)
{
    asi_control_respond(
        archive, subscription->control_session_id, subscription->correlation_id, ASI_CODEC_ERROR, code, text);
    if (subscription->auto_stop)
    {
        asi_recordings_unlist(subscription);
    }
}

/* Refuses an image that does not match. */
static void refuse_image(as_archive *archive, asi_recording_subscription *subscription, int32_t code, const char *text)
{
    asi_archive_warn(archive, code, text);
    answer_image(archive, subscription, code, text);
}

/* Spec: 08 §4.2 - properties that an image needs to extend a recording. */
static bool check_extension(as_archive *archive, asi_recording_subscription *subscription, const as_image_constants *image)
{
    const long long id = subscription->extend_recording_id;
    char text[ASI_ARCHIVE_CHANNEL_CAPACITY + 160];
    asi_catalog_record record;
    if (!asi_catalog_find(archive->catalog, subscription->extend_recording_id, &record))
    {
        snprintf(text, sizeof(text), "unknown recording id: %lld", id);
        refuse_image(archive, subscription, ASI_CODEC_E_UNKNOWN_RECORDING, text);
        return false;
    }
    if (NULL != asi_uses_recorded(archive, subscription->extend_recording_id))
    {
        snprintf(text, sizeof(text), "cannot extend active recording %lld streamId=%d channel=%s", id, image->stream_id,
            subscription->channel);
        refuse_image(archive, subscription, ASI_CODEC_E_ACTIVE_RECORDING, text);
        return false;
    }
    const char *holding = asi_uses_holding_tail(archive, &record);
    if (NULL != holding)
    {
        snprintf(text, sizeof(text), "cannot extend recording %lld due to %s: streamId=%d channel=%s", id, holding,
            image->stream_id, subscription->channel);
        refuse_image(archive, subscription, ASI_CODEC_E_GENERIC, text);
        return false;
    }
    const struct
    {
        const char *image_name;
        const char *record_name;
        int64_t of_image;
        int64_t of_record;
    } rows[] = {
        { "joinPosition", "stopPosition", image->join_position, record.stop_position },
        { "initialTermId", "initialTermId", image->initial_term_id, record.initial_term_id },
        { "termBufferLength", "termBufferLength", image->term_length, record.term_buffer_length },
        { "mtuLength", "mtuLength", image->mtu_length, record.mtu_length },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        if (rows[i].of_image != rows[i].of_record)
        {
            snprintf(text, sizeof(text), "cannot extend recording %lld image.%s=%lld != rec.%s=%lld", id, rows[i].image_name,
                (long long)rows[i].of_image, rows[i].record_name, (long long)rows[i].of_record);
            refuse_image(archive, subscription, ASI_CODEC_E_INVALID_EXTENSION, text);
            return false;
        }
    }
    return true;
}

static as_result add_to_catalog(as_archive *archive, const asi_recording_subscription *subscription,
    const as_image_constants *image, int64_t *recording_id)
{
    const asi_recording_params params = {
        .start_timestamp_ms = asi_clock_ms(&archive->clock),
        .stop_timestamp_ms = AS_NULL_VALUE,
        .start_position = image->join_position,
        .stop_position = AS_NULL_VALUE,
        .initial_term_id = image->initial_term_id,
        .segment_file_length = asi_segment_length_of((int32_t)archive->config.segment_file_length, image->term_length),
        .term_buffer_length = image->term_length,
        .mtu_length = image->mtu_length,
        .session_id = image->session_id,
        .stream_id = image->stream_id,
        .stripped_channel = asi_text_of(subscription->stripped.text),
        .original_channel = asi_text_of(subscription->channel),
        .source_identity = asi_text_of(image->source_identity),
    };
    return asi_catalog_add(archive->catalog, &params, recording_id);
}

/* Frees everything except the image. */
static void discard(asi_active_recording *recording)
{
    as_counter_close(recording->session.counter);
    asi_recorded_release(recording->session.recorded);
    free(recording->session.channel);
    free(recording);
}

/* Builds a recording session, except its place in the catalog. NULL: failed, see as_error_text(). */
static asi_active_recording *make_recording(as_archive *archive, asi_recording_subscription *subscription, as_image *image,
    const as_image_constants *constants, const asi_catalog_record *record)
{
    asi_active_recording *recording = calloc(1, sizeof(*recording));
    if (NULL == recording)
    {
        (void)asi_fail(AS_E_INTERNAL, 0, "no memory for a recording");
        return NULL;
    }
    asi_record_session *session = &recording->session;
    const asi_recording_counter counter = {
        .recording_id = record->recording_id,
        .archive_id = archive->archive_id,
        .session_id = constants->session_id,
        .stream_id = constants->stream_id,
        .source_identity = constants->source_identity,
        .stripped_channel = subscription->stripped.text,
    };
    session->channel = strdup(subscription->channel);
    session->recorded = asi_recorded_open(constants->join_position);
    const bool has_memory = NULL != session->channel && NULL != session->recorded;
    if (!has_memory || AS_OK != asi_counters_add_recording(archive->client, &counter, &session->counter))
    {
        if (!has_memory)
        {
            (void)asi_fail(AS_E_INTERNAL, 0, "no memory for a recording");
        }
        discard(recording);
        return NULL;
    }
    as_counter_set(session->counter, constants->join_position);
    const as_archive_config *config = &archive->config;
    session->writer_params = (asi_segment_writer_params){
        .files = archive->files,
        .archive_dir = config->archive_dir,
        .recording_id = record->recording_id,
        .start_position = record->start_position,
        .join_position = constants->join_position,
        .initial_term_id = record->initial_term_id,
        .term_length = record->term_buffer_length,
        .segment_length = record->segment_file_length,
        .file_sync_level = (int32_t)config->file_sync_level,
        .checksum = (as_record_checksum)config->record_checksum,
    };
    session->time_params = (asi_time_writer_params){
        .files = archive->files,
        .archive_dir = config->archive_dir,
        .recording_id = record->recording_id,
        .join_position = constants->join_position,
        .not_before_ns = asi_time_of_ms(record->stop_timestamp_ms),
        .interval_ns = config->time_index_interval_ns,
        .interval_bytes = config->time_index_bytes,
        .is_off = !config->time_index,
        .known_era = asi_time_era_of(record),
        .era = asi_time_era_of(record),
        .term_length = record->term_buffer_length,
        .segment_length = record->segment_file_length,
        .positions = asi_catalog_positions(archive->catalog, record->recording_id),
    };
    session->image = image;
    session->block_limit = constants->term_length < config->file_io_max_length ? constants->term_length :
        (int32_t)config->file_io_max_length;
    session->reported_position = constants->join_position;
    recording->subscription = subscription;
    recording->use = (asi_use){ .kind = ASI_USE_RECORDS, .recording_id = record->recording_id, .recorded = session->recorded };
    return recording;
}

static void run(as_archive *archive, asi_active_recording *recording, as_recording_signal signal)
{
    asi_recording_subscription *subscription = recording->subscription;
    recording->next = archive->recordings->active;
    archive->recordings->active = recording;
    asi_uses_add(archive, &recording->use);
    subscription->recording_count++;
    asi_slots_on_start(archive, recording);
    show_recording_count(archive);
    asi_control_signal(archive, subscription->control_session_id, subscription->correlation_id,
        recording->session.writer_params.recording_id, subscription->id, recording->session.writer_params.join_position, signal);
    asi_intrusive_queue_put(&archive->recordings->recorder.incoming, &recording->session.item);
}

/* Takes over the image's reference on success. AS_E_*: not recorded, see as_error_text(). */
static as_result start_image(as_archive *archive, asi_recording_subscription *subscription, as_image *image,
    const as_image_constants *constants)
{
    int64_t recording_id;
    as_result result = add_to_catalog(archive, subscription, constants, &recording_id);
    if (AS_OK != result)
    {
        return result;
    }
    asi_catalog_record record;
    asi_catalog_find(archive->catalog, recording_id, &record);
    asi_active_recording *recording = make_recording(archive, subscription, image, constants, &record);
    if (NULL == recording)
    {
        char reason[512];
        snprintf(reason, sizeof(reason), "%s", as_error_text());
        result = asi_catalog_stop(
            archive->catalog, recording_id, constants->join_position, asi_clock_ms(&archive->clock));
        return AS_OK == result ? asi_fail(AS_E_INTERNAL, 0, "%s", reason) : result;
    }
    run(archive, recording, AS_SIGNAL_START);
    return AS_OK;
}

static as_result extend_image(as_archive *archive, asi_recording_subscription *subscription, as_image *image,
    const as_image_constants *constants)
{
    asi_catalog_record record;
    const int64_t recording_id = subscription->extend_recording_id;
    asi_catalog_find(archive->catalog, recording_id, &record);
    const as_result cleared = asi_leftovers_clear_above(archive, &record);
    if (AS_OK != cleared)
    {
        return cleared;
    }
    asi_active_recording *recording = make_recording(archive, subscription, image, constants, &record);
    if (NULL == recording)
    {
        return asi_fail_in(AS_E_INTERNAL, "extend recording %lld", (long long)recording_id);
    }
    const as_result result = asi_catalog_extend(archive->catalog, recording_id, subscription->control_session_id,
        subscription->correlation_id, constants->session_id);
    if (AS_OK != result)
    {
        discard(recording);
        return result;
    }
    asi_catalog_find(archive->catalog, recording_id, &record);
    recording->session.time_params.era = asi_time_era_of(&record);
    run(archive, recording, AS_SIGNAL_EXTEND);
    return AS_OK;
}

static void record_image(as_archive *archive, asi_recording_subscription *subscription, as_image *image,
    const as_image_constants *constants)
{
    const as_result result = AS_NULL_VALUE != subscription->extend_recording_id ?
        extend_image(archive, subscription, image, constants) : start_image(archive, subscription, image, constants);
    if (AS_OK != result)
    {
        char text[1024];
        const int32_t code = asi_control_storage_code(as_error_code());
        snprintf(text, sizeof(text), "%s", as_error_text());
        asi_archive_log(archive, code, text);
        answer_image(archive, subscription, code, text);
        as_image_release(image);
    }
}

/* False: the image stays in the list of waiting images. */
static bool take_image(as_archive *archive, asi_recording_subscription *subscription, as_image *image)
{
    char text[ASI_ARCHIVE_CHANNEL_CAPACITY + 320];
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    const asi_slot slot = asi_slots_for_image(archive, subscription, image, text, sizeof(text));
    const bool is_extension = AS_NULL_VALUE != subscription->extend_recording_id;
    if (!subscription->is_listed || (ASI_SLOT_FREE != slot && as_image_is_closed(image)) ||
        (is_extension && !check_extension(archive, subscription, &constants)))
    {
        as_image_release(image);
        return true;
    }
    if (ASI_SLOT_FREE == slot)
    {
        record_image(archive, subscription, image, &constants);
        return true;
    }
    if (ASI_SLOT_AWAITS_END == slot && !subscription->is_limit_told)
    {
        subscription->is_limit_told = true;
        asi_archive_warn(archive, ASI_CODEC_E_MAX_RECORDINGS, text);
        asi_control_respond(archive, subscription->control_session_id, subscription->correlation_id, ASI_CODEC_ERROR,
            ASI_CODEC_E_MAX_RECORDINGS, text);
    }
    return false;
}

/* Starting a recording waits for the driver; during the wait the handler may add more images. */
static int take_images_of(as_archive *archive, asi_recording_subscription *subscription)
{
    int work_count = 0;
    int32_t at = 0;
    subscription->has_new_image = false;
    while (at < subscription->image_count)
    {
        as_image *image = subscription->images[at];
        if (!take_image(archive, subscription, image))
        {
            at++;
            continue;
        }
        subscription->image_count--;
        memmove(subscription->images + at, subscription->images + at + 1,
            (size_t)(subscription->image_count - at) * sizeof(*subscription->images));
        work_count++;
    }
    return work_count;
}

/* Checks waiting images once per tick: a sender that floods an endpoint can create a thousand of them. */
static int take_images(as_archive *archive)
{
    const bool is_tick = archive->recordings->images_ms != archive->tick_ms;
    int work_count = 0;
    archive->recordings->images_ms = archive->tick_ms;
    for (asi_recording_subscription *at = archive->recordings->subscriptions; NULL != at;)
    {
        if (at->image_count > 0 && (is_tick || at->has_new_image))
        {
            work_count += take_images_of(archive, at);
        }
        asi_recording_subscription *next = at->next;
        asi_recordings_free_if_unused(archive, at);
        at = next;
    }
    return work_count;
}

/* -- ending a recording ------------------------------------------------------------------------------------------------------ */

static void remove_recording(as_archive *archive, asi_active_recording *recording)
{
    for (asi_active_recording **at = &archive->recordings->active; NULL != *at; at = &(*at)->next)
    {
        if (*at == recording)
        {
            *at = recording->next;
            break;
        }
    }
    asi_uses_remove(archive, &recording->use);
    show_recording_count(archive);
}

/* Executes the steps in the order of Spec: 08 §4.4. */
static void end_recording(as_archive *archive, asi_active_recording *recording)
{
    asi_recording_subscription *subscription = recording->subscription;
    const asi_record_session *session = &recording->session;
    const int64_t recording_id = session->writer_params.recording_id;
    const int64_t stop_position = session->recorded->position;
    if (!archive->is_aborting &&
        AS_OK != asi_catalog_stop(archive->catalog, recording_id, stop_position, asi_clock_ms(&archive->clock)))
    {
        asi_archive_log(archive, as_error_code(), NULL);
    }
    if (AS_OK != session->failure)
    {
        const int32_t code = asi_control_storage_code(session->failure_code);
        asi_archive_log(archive, code, session->failure_text);
        asi_control_respond(archive, subscription->control_session_id, subscription->correlation_id, ASI_CODEC_ERROR, code,
            session->failure_text);
    }
    if (0 != session->time_failure)
    {
        char text[160];
        snprintf(text, sizeof(text), "time index of recording %lld has gaps, times there are found earlier than they were: %s",
            (long long)recording_id, strerror(session->time_failure));
        asi_archive_warn(archive, ASI_CODEC_E_GENERIC, text);
    }
    if (NULL != subscription->on_recording_end)
    {
        subscription->on_recording_end(archive, subscription->id, stop_position);
    }
    asi_control_signal(archive, subscription->control_session_id, subscription->correlation_id, recording_id, subscription->id,
        stop_position, AS_SIGNAL_STOP);
    asi_slots_on_end(archive, recording);
    remove_recording(archive, recording);
    subscription->recording_count--;
    if (subscription->auto_stop || (subscription->ends_with_last && 0 == subscription->recording_count))
    {
        asi_recordings_unlist(subscription);
        asi_recordings_abort(archive, subscription);
    }
    as_image_release(session->image);
    discard(recording);
    asi_recordings_free_if_unused(archive, subscription);
}

static int take_closed(as_archive *archive)
{
    int work_count = 0;
    for (;;)
    {
        asi_active_recording *recording = (asi_active_recording *)(void *)asi_intrusive_queue_take(&archive->recordings->closed);
        if (NULL == recording)
        {
            return work_count;
        }
        end_recording(archive, recording);
        work_count++;
    }
}

int asi_recordings_step(as_archive *archive)
{
    return take_closed(archive) + take_images(archive);
}

void asi_recordings_close(as_archive *archive)
{
    take_closed(archive);
    asi_recordings_free_subscriptions(archive);
}
