/* Deletes files of recordings after the request was answered. See deletions.h, and deleter.h for the thread. Spec: 08 §9, 06 §9.
 *
 *   begun --truncation, replayed: its replays have ended--> committed
 *   committed --files listed, tail cut--> OK --all files deleted--> DELETE signal
 *
 * The catalog changes first: it stores the new start or end of a recording before any byte is deleted. A crash can therefore
 * leave surplus files, but never a recording without its files. If the cut of a truncation fails, its stop position is restored,
 * and nothing has changed. Files that a crash left are harmless except in one case, see leftovers.c. Thread rule: conductor
 * only. */
#include "server/deletions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/compaction.h"
#include "server/reply.h"
#include "server/report.h"
#include "store/time_index.h"
#include "store/time_index_edit.h"

#define CLOSE_LIMIT_NS INT64_C(5000000000)

/* -- creating ---------------------------------------------------------------------------------------------------------------- */

bool asi_deletions_refuse_second(asi_control_session *session, const asi_codec_request *request, int64_t recording_id)
{
    if (NULL == asi_uses_deletion(session->archive, recording_id))
    {
        return false;
    }
    asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC,
        "another delete operation in progress for recording id: %lld", (long long)recording_id);
    return true;
}

asi_deletion *asi_deletions_make(
    asi_control_session *session, const asi_codec_request *request, const asi_catalog_record *record)
{
    asi_deletion *deletion = asi_deletions_make_own(session->archive, record);
    if (NULL == deletion)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC, "no memory to delete segments");
        return NULL;
    }
    deletion->control_session_id = session->id;
    deletion->correlation_id = request->correlation_id;
    return deletion;
}

asi_deletion *asi_deletions_make_own(const as_archive *archive, const asi_catalog_record *record)
{
    asi_deletion *deletion = calloc(1, sizeof(*deletion));
    if (NULL == deletion)
    {
        return NULL;
    }
    asi_delete_work_init(&deletion->work);
    deletion->work.files = archive->files;
    deletion->work.archive_dir = archive->config.archive_dir;
    deletion->work.recording_id = record->recording_id;
    deletion->work.segment_length = record->segment_file_length;
    deletion->work.file_sync_level = (int32_t)archive->config.file_sync_level;
    deletion->control_session_id = AS_NULL_VALUE;
    deletion->correlation_id = AS_NULL_VALUE;
    deletion->start_position = record->start_position;
    deletion->old_stop_position = record->stop_position;
    deletion->new_stop_position = AS_NULL_VALUE;
    deletion->use = (asi_use){ .kind = ASI_USE_DELETES, .recording_id = record->recording_id, .end_position = INT64_MAX };
    deletion->answer = AS_NULL_VALUE;
    return deletion;
}

void asi_deletions_discard(asi_deletion *deletion)
{
    asi_delete_work_close(&deletion->work);
    free(deletion);
}

/* -- steps of one deletion --------------------------------------------------------------------------------------------------- */

static void remove_deletion(as_archive *archive, asi_deletion *deletion)
{
    for (asi_deletion **at = &archive->deletions->outstanding; NULL != *at; at = &(*at)->next)
    {
        if (*at == deletion)
        {
            *at = deletion->next;
            break;
        }
    }
    asi_uses_remove(archive, &deletion->use);
    asi_deletions_discard(deletion);
}

static void tell_error(as_archive *archive, const asi_deletion *deletion, int32_t code, const char *text)
{
    asi_archive_log(archive, code, text);
    asi_control_respond(archive, deletion->control_session_id, deletion->correlation_id, ASI_CODEC_ERROR, code, text);
}

/* Removes the times of deleted bytes from the time index. A failure is harmless: readers ignore index entries for missing bytes,
 * and those entries are cut off before other bytes can take their place. */
static void edit_time_index(as_archive *archive, const asi_deletion *deletion)
{
    const asi_delete_work *work = &deletion->work;
    const as_result result = ASI_DELETE_ALL == work->scope ?
        asi_time_index_remove(work->files, work->archive_dir, work->recording_id) :
        AS_NULL_VALUE == deletion->new_stop_position ? AS_OK :
        asi_time_index_truncate(work->files, work->archive_dir, work->recording_id, deletion->new_stop_position);
    if (AS_OK != result)
    {
        asi_archive_log(archive, as_error_code(), NULL);
    }
}

static void finish(as_archive *archive, asi_deletion *deletion)
{
    const asi_name_list *failed = &deletion->work.failed;
    for (int64_t at = 0; at < failed->length; at += (int64_t)strlen(failed->text + at) + 1)
    {
        char text[AS_PATH_MAX + 384];
        snprintf(text, sizeof(text), "unable to delete segment file: %s", failed->text + at);
        tell_error(archive, deletion, ASI_CODEC_E_GENERIC, text);
    }
    asi_control_signal(archive, deletion->control_session_id, deletion->correlation_id, deletion->work.recording_id,
        AS_NULL_VALUE, AS_NULL_VALUE, AS_SIGNAL_DELETE);
    asi_compaction_on_purged(archive, deletion->catalog_bytes, 0 == failed->length);
    remove_deletion(archive, deletion);
}

/* Restores the stop position. If that fails, the failure is logged, and the catalog holds either position. */
static void undo(as_archive *archive, const asi_deletion *deletion)
{
    if (AS_NULL_VALUE != deletion->new_stop_position && AS_OK != asi_catalog_set_stop_position(
        archive->catalog, deletion->work.recording_id, deletion->old_stop_position))
    {
        asi_archive_log(archive, as_error_code(), NULL);
    }
}

static void on_prepared(as_archive *archive, asi_deletion *deletion)
{
    asi_delete_work *work = &deletion->work;
    if (AS_OK != work->failure)
    {
        undo(archive, deletion);
        tell_error(archive, deletion, asi_control_storage_code(work->failure_code), work->failure_text);
        asi_compaction_on_purged(archive, deletion->catalog_bytes, false);
        remove_deletion(archive, deletion);
        return;
    }
    edit_time_index(archive, deletion);
    work->must_prepare = false;
    deletion->is_answered = true;
    asi_control_respond(archive, deletion->control_session_id, deletion->correlation_id, ASI_CODEC_OK,
        AS_NULL_VALUE == deletion->answer ? work->count : deletion->answer, NULL);
    if (work->count > 0)
    {
        asi_deleter_put(&archive->deletions->deleter, work);
    }
    else
    {
        finish(archive, deletion);
    }
}

/* AS_E_STORAGE: the position could not be stored; the old one was restored. */
static as_result store_stop_position(as_archive *archive, const asi_deletion *deletion)
{
    if (AS_NULL_VALUE == deletion->new_stop_position)
    {
        return AS_OK;
    }
    asi_catalog_record record;
    const int64_t recording_id = deletion->work.recording_id;
    if (!asi_catalog_find(archive->catalog, recording_id, &record) || record.start_position != deletion->start_position)
    {
        return asi_fail(AS_E_USAGE, 0, "cannot truncate recording %" PRId64 ": its start position was moved while its replays were "
            "ended; ask again", recording_id);
    }
    const as_result result =
        asi_catalog_set_stop_position(archive->catalog, recording_id, deletion->new_stop_position);
    if (AS_OK != result)
    {
        char reason[1024];
        const int32_t code = as_error_code();
        snprintf(reason, sizeof(reason), "%s", as_error_text());
        undo(archive, deletion);
        return asi_fail(result, code, "cannot truncate recording %" PRId64 ": %s", recording_id, reason);
    }
    return AS_OK;
}

static void commit(as_archive *archive, asi_deletion *deletion)
{
    deletion->use.awaits_replays = false;
    if (AS_OK != store_stop_position(archive, deletion))
    {
        char text[1200];
        const int32_t code = asi_control_storage_code(as_error_code());
        snprintf(text, sizeof(text), "%s", as_error_text());
        tell_error(archive, deletion, code, text);
        remove_deletion(archive, deletion);
        return;
    }
    asi_delete_work *work = &deletion->work;
    if (ASI_DELETE_RANGE == work->scope && AS_NULL_VALUE == work->cut_base)
    {
        (void)asi_delete_work_step(work); /* only counts the files */
        on_prepared(archive, deletion);
    }
    else
    {
        asi_deleter_put(&archive->deletions->deleter, work);
    }
}

void asi_deletions_begin(as_archive *archive, asi_deletion *deletion)
{
    deletion->next = archive->deletions->outstanding;
    archive->deletions->outstanding = deletion;
    asi_uses_add(archive, &deletion->use);
    if (!deletion->use.awaits_replays)
    {
        commit(archive, deletion);
    }
}

/* -- duty cycle -------------------------------------------------------------------------------------------------------------- */

static void on_returned(as_archive *archive, asi_deletion *deletion)
{
    asi_delete_work *work = &deletion->work;
    if (work->must_prepare)
    {
        on_prepared(archive, deletion);
    }
    else if (work->done < work->count)
    {
        asi_deleter_put(&archive->deletions->deleter, work); /* the deleter's thread has ended */
    }
    else
    {
        finish(archive, deletion);
    }
}

int asi_deletions_step(as_archive *archive)
{
    if (NULL == archive->deletions->outstanding)
    {
        return 0;
    }
    int work_count = asi_deleter_step(&archive->deletions->deleter);
    for (;;)
    {
        asi_deletion *deletion = (asi_deletion *)(void *)asi_intrusive_queue_take(&archive->deletions->returned);
        if (NULL == deletion)
        {
            break;
        }
        on_returned(archive, deletion);
        work_count++;
    }
    for (asi_deletion *at = archive->deletions->outstanding; NULL != at;)
    {
        asi_deletion *next = at->next;
        if (at->use.awaits_replays && NULL == asi_uses_replay(archive, at->work.recording_id))
        {
            commit(archive, at);
            work_count++;
        }
        at = next;
    }
    return work_count;
}

void asi_deletions_close(as_archive *archive)
{
    asi_deleter_stop(&archive->deletions->deleter);
    const int64_t limit_ns = asi_clock_ns(&archive->clock) + CLOSE_LIMIT_NS;
    while (NULL != archive->deletions->outstanding && asi_clock_ns(&archive->clock) < limit_ns)
    {
        asi_deletions_step(archive);
    }
    while (NULL != archive->deletions->outstanding)
    {
        asi_deletion *deletion = archive->deletions->outstanding;
        char text[256];
        snprintf(text, sizeof(text), "the archive ended with %" PRId64 " segment files of recording %" PRId64
            " still to be deleted; delete-orphaned-segments and compact find them",
            deletion->work.count - deletion->work.done, deletion->work.recording_id);
        asi_archive_warn(archive, 0, text);
        remove_deletion(archive, deletion);
    }
    asi_deleter_close(&archive->deletions->deleter);
}
