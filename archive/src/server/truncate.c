/* Truncates and purges recordings. See truncate.h; deletions.c executes the steps after the checks. Spec: 08 §9.
 *
 * Departure from Spec: 08 §9 - the frame at the new end is checked before anything changes; stock stores the new stop position
 * first, and keeps it when the check fails. */
#include "server/truncate.h"

#include <errno.h>
#include <inttypes.h>

#include "server/compaction.h"
#include "server/reply.h"
#include "server/uses.h"
#include "store/segment_layout.h"
#include "store/segment_read.h"

/* Whether a frame of the recording begins at the position. AS_E_USAGE: no frame does; AS_E_STORAGE, AS_E_DATA: it can't be
 * read. */
static as_result check_frame(const as_archive *archive, const asi_catalog_record *record, int64_t position)
{
    asi_frame_header frame;
    char path[AS_PATH_MAX];
    const int64_t base =
        asi_segment_base(record->start_position, position, record->term_buffer_length, record->segment_file_length);
    const asi_file_ops *files = archive->files;
    const as_result result =
        asi_segment_path(path, sizeof(path), archive->config.archive_dir, record->recording_id, base);
    if (AS_OK != result)
    {
        return result;
    }
    const int fd = files->open(files->context, path, ASI_FILE_READ);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -fd, "cannot open segment %s to truncate it", path);
    }
    const int64_t count = asi_file_read_full(files, fd, &frame, sizeof(frame), position - base);
    files->close(files->context, fd);
    if (count < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, (int)-count, "cannot read segment %s to truncate it", path);
    }
    const bool is_frame = count == (int64_t)sizeof(frame) && frame.frame_length > 0 && frame.stream_id == record->stream_id &&
        frame.term_offset == (int32_t)(position & (record->term_buffer_length - 1)) &&
        frame.term_id == asi_segment_term_id(position, record->term_buffer_length, record->initial_term_id);
    return is_frame ? AS_OK : asi_fail(AS_E_USAGE, 0, "%" PRId64 " position not aligned to a data header", position);
}

/* Determines which files are deleted, and which one is cut. AS_E_*: the recording can't end at the position. */
static as_result plan(const as_archive *archive, const asi_catalog_record *record, int64_t position, asi_delete_work *work)
{
    if (position == record->start_position)
    {
        work->scope = ASI_DELETE_ALL;
        return AS_OK;
    }
    const int64_t start = record->start_position;
    const int32_t term = record->term_buffer_length;
    const int32_t segment = record->segment_file_length;
    const int64_t base = asi_segment_base(start, position, term, segment);
    work->scope = ASI_DELETE_RANGE;
    work->first_base = position > base ? base + segment : base;
    work->end_base = asi_segment_base(start, record->stop_position, term, segment) + segment;
    if (position > base && position != record->stop_position)
    {
        work->cut_base = base;
        work->cut_offset = position - base;
        return check_frame(archive, record, position);
    }
    return AS_OK;
}

void asi_truncate_recording(asi_control_session *session, const asi_codec_request *request)
{
    as_archive *archive = session->archive;
    const int64_t correlation_id = request->correlation_id;
    const int64_t id = request->recording_id;
    const int64_t position = request->position;
    asi_catalog_record record;
    if (!asi_catalog_find(archive->catalog, id, &record))
    {
        asi_control_unknown_recording(session, correlation_id, id);
    }
    else if (AS_NULL_VALUE == record.stop_position)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_ACTIVE_RECORDING, "cannot truncate active recording");
    }
    else if (position < record.start_position || position > record.stop_position || 0 != position % AS_FRAME_ALIGNMENT)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_INVALID_POSITION,
            "invalid position %lld: start=%lld stop=%lld alignment=%d", (long long)position, (long long)record.start_position,
            (long long)record.stop_position, AS_FRAME_ALIGNMENT);
    }
    else if (!asi_deletions_refuse_second(session, request, id))
    {
        asi_deletion *deletion = asi_deletions_make(session, request, &record);
        if (NULL == deletion)
        {
            return;
        }
        const as_result planned = plan(archive, &record, position, &deletion->work);
        if (AS_OK != planned)
        {
            asi_deletions_discard(deletion);
            asi_control_failure(session, correlation_id, planned);
            return;
        }
        deletion->new_stop_position = position;
        deletion->use.awaits_replays = NULL != asi_uses_replay(archive, id);
        asi_uses_abort_replays(archive, id);
        asi_deletions_begin(archive, deletion);
    }
}

as_result asi_purge_whole(as_archive *archive, asi_deletion *deletion, const asi_catalog_record *record)
{
    deletion->work.scope = ASI_DELETE_ALL;
    deletion->catalog_bytes = record->frame_length;
    const as_result result = asi_catalog_invalidate(archive->catalog, record->recording_id, ASI_RECORDING_DELETED);
    if (AS_OK == result)
    {
        asi_deletions_begin(archive, deletion);
    }
    else
    {
        /* The record may be removed, but not durably; the next start finds the files by the record and deletes them. */
        archive->compaction->is_possible = false;
        asi_deletions_discard(deletion);
    }
    return result;
}

void asi_purge_recording(asi_control_session *session, const asi_codec_request *request)
{
    as_archive *archive = session->archive;
    const int64_t correlation_id = request->correlation_id;
    const int64_t id = request->recording_id;
    asi_catalog_record record;
    if (!asi_catalog_find(archive->catalog, id, &record))
    {
        asi_control_unknown_recording(session, correlation_id, id);
    }
    else if (NULL != asi_uses_replay(archive, id))
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_ACTIVE_RECORDING, "cannot purge recording with active replay %lld",
            (long long)id);
    }
    else if (AS_NULL_VALUE == record.stop_position)
    {
        asi_control_error(
            session, correlation_id, ASI_CODEC_E_ACTIVE_RECORDING, "cannot purge active recording %lld", (long long)id);
    }
    else if (!asi_deletions_refuse_second(session, request, id))
    {
        asi_deletion *deletion = asi_deletions_make(session, request, &record);
        if (NULL != deletion && AS_OK != asi_purge_whole(archive, deletion, &record))
        {
            asi_control_storage_error(session, correlation_id);
        }
    }
}
