/* Applies the archive's own retention policy. See retention.h; the rules are those of as_retention_plan, which the command
 * shares.
 *
 *   interval over --> scan on a thread: folder listed, times looked up, plan made --> applied, a recording per cycle --> interval
 *
 * Listing a large folder takes a long time, so the conductor does not do it; in INVOKER mode only the application's thread
 * exists. The plan is checked against the current state when it is applied: meanwhile a recording may have been removed, extended
 * or replayed. A replay holds back the bytes that it still reads, which the error log reports; earlier bytes are
 * deleted. */
#include "server/retention.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "server/deletions.h"
#include "server/report.h"
#include "server/segments.h"
#include "server/truncate.h"
#include "server/uses.h"
#include "store/segment_layout.h"

#define NS_PER_MS 1000000

static int64_t bound_of(int64_t setting) { return 0 == setting ? AS_NULL_VALUE : setting; }

void asi_retention_init(as_archive *archive)
{
    const as_archive_config *config = &archive->config;
    asi_retention *retention = archive->retention;
    retention->policy = (as_retention_policy){
        .older_than_ms = 0 == config->retain_older_than_ns ? AS_NULL_VALUE : config->retain_older_than_ns / NS_PER_MS,
        .max_bytes = bound_of(config->retain_max_bytes),
        .keep_recordings = bound_of(config->retain_keep_recordings) };
    retention->has_policy =
        config->retain_older_than_ns > 0 || config->retain_max_bytes > 0 || config->retain_keep_recordings > 0;
}

/* -- scanning ---------------------------------------------------------------------------------------------------------------- */

/* Runs on the scan's thread. It accesses only the archive's settings, clock and scan. */
static void *scan(void *context)
{
    as_archive *archive = context;
    asi_retention *retention = archive->retention;
    retention->result =
        asi_retention_scan_open(archive->config.archive_dir, archive->config.aeron_dir, &retention->scan);
    if (AS_OK == retention->result)
    {
        retention->result = as_retention_plan(
            &retention->policy, asi_clock_ms(&archive->clock), retention->scan.recordings, retention->scan.count);
    }
    if (AS_OK != retention->result)
    {
        retention->failure_code = as_error_code();
        snprintf(retention->failure, sizeof(retention->failure), "retention: %s", as_error_text());
    }
    asi_store_release_bool(&retention->has_scanned, true);
    return NULL;
}

static void start_scan(as_archive *archive)
{
    asi_retention *retention = archive->retention;
    retention->is_scanning = true;
    retention->has_scanned = false;
    retention->at = 0;
    if (ASI_ARCHIVE_INVOKER != archive->config.threading)
    {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        retention->has_thread = 0 == pthread_create(&retention->thread, NULL, scan, archive);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (!retention->has_thread)
    {
        scan(archive);
    }
}

static void join(asi_retention *retention)
{
    if (retention->has_thread)
    {
        pthread_join(retention->thread, NULL);
        retention->has_thread = false;
    }
}

/* -- applying ---------------------------------------------------------------------------------------------------------------- */

static void tell_held(as_archive *archive, int64_t recording_id, const asi_replay_session *replay)
{
    char text[ASI_ARCHIVE_CHANNEL_CAPACITY + 256];
    snprintf(text, sizeof(text), "retention: segments of recording %" PRId64 " are held back by a replay: sessionId=%d streamId=%d "
        "channel=%s", recording_id, replay->publication_session_id, replay->publication_stream_id, replay->channel);
    asi_archive_warn(archive, 0, text);
}

/* Position up to which the recording's head may be deleted: `wanted`, or less where a replay holds it back. */
static int64_t free_to(as_archive *archive, const asi_catalog_record *record, int64_t wanted)
{
    const int64_t last = asi_segments_last_base(archive, record);
    int64_t to = wanted < last ? wanted : last;
    int64_t replayed_base;
    const asi_replay_session *held_by = NULL;
    for (const asi_replay_session *replay;
        NULL != (replay = asi_uses_replay_before(archive, record->recording_id, to, &replayed_base));)
    {
        held_by = replay;
        to = replayed_base;
    }
    if (NULL != held_by)
    {
        tell_held(archive, record->recording_id, held_by);
    }
    return to;
}

static as_result purge_head(as_archive *archive, const asi_catalog_record *record, int64_t wanted)
{
    const int64_t first = asi_segment_base(
        record->start_position, record->start_position, record->term_buffer_length, record->segment_file_length);
    const int64_t to = free_to(archive, record, wanted);
    if (to <= first)
    {
        return AS_OK;
    }
    asi_deletion *deletion = asi_deletions_make_own(archive, record);
    return NULL == deletion ? asi_fail(AS_E_INTERNAL, 0, "no memory to delete segments") :
        asi_segments_purge_to(archive, deletion, record, to);
}

static as_result purge_whole(as_archive *archive, const asi_catalog_record *record)
{
    const asi_replay_session *replay = asi_uses_replay(archive, record->recording_id);
    if (NULL != replay)
    {
        tell_held(archive, record->recording_id, replay);
        return purge_head(archive, record, INT64_MAX);
    }
    asi_deletion *deletion = asi_deletions_make_own(archive, record);
    return NULL == deletion ? asi_fail(AS_E_INTERNAL, 0, "no memory to delete a recording") :
        asi_purge_whole(archive, deletion, record);
}

static void apply(as_archive *archive, const as_retention_recording *planned)
{
    asi_catalog_record record;
    /* Another stop time: it was extended since the plan was made, and has data that the policy has not seen. */
    if (AS_RETENTION_KEPT == planned->reason || !asi_catalog_find(archive->catalog, planned->recording_id, &record) ||
        planned->stop_timestamp_ms != record.stop_timestamp_ms || NULL != asi_uses_deletion(archive, planned->recording_id))
    {
        return; /* the recording is gone, or the next round handles it */
    }
    as_result result = AS_OK;
    if (AS_NULL_VALUE != planned->new_start)
    {
        result = purge_head(archive, &record, planned->new_start);
    }
    else if (planned->is_purged && AS_NULL_VALUE != record.stop_position)
    {
        result = purge_whole(archive, &record);
    }
    if (AS_OK != result)
    {
        asi_archive_log(archive, as_error_code(), NULL);
    }
}

/* -- duty cycle -------------------------------------------------------------------------------------------------------------- */

static void end_round(as_archive *archive)
{
    asi_retention *retention = archive->retention;
    asi_retention_scan_close(&retention->scan);
    retention->is_scanning = false;
    retention->next_ms = archive->tick_ms + archive->config.retain_interval_ns / NS_PER_MS;
}

int asi_retention_step(as_archive *archive)
{
    asi_retention *retention = archive->retention;
    if (!retention->has_policy)
    {
        return 0;
    }
    if (!retention->is_scanning)
    {
        if (archive->tick_ms < retention->next_ms)
        {
            return 0;
        }
        start_scan(archive);
        return 1;
    }
    if (!asi_load_acquire_bool(&retention->has_scanned))
    {
        return 0;
    }
    join(retention);
    if (AS_OK != retention->result)
    {
        asi_archive_log(archive, retention->failure_code, retention->failure);
        end_round(archive);
        return 1;
    }
    while (retention->at < retention->scan.count && AS_RETENTION_KEPT == retention->scan.recordings[retention->at].reason)
    {
        retention->at++;
    }
    if (retention->at < retention->scan.count)
    {
        apply(archive, &retention->scan.recordings[retention->at++]);
    }
    else
    {
        end_round(archive);
    }
    return 1;
}

void asi_retention_close(as_archive *archive)
{
    join(archive->retention);
    asi_retention_scan_close(&archive->retention->scan);
}
