/* Migrates segments: moves the whole of one recording to the head or the tail of another. See migrate.h. Spec: 08 §9.
 *
 * Stock renames the files and then moves the positions; a crash in between leaves files under a name that no position covers.
 * This implementation first gives the files a second name (a hard link), then extends the destination's position over them, then
 * moves the source's position back. Last, the deleter removes the first names. At each instant every byte belongs to a
 * recording. Where the file system has no hard links, the files are renamed as by stock. Then a marker is in the folder from before
 * the first name to after the positions, and a start that finds it takes the names back, or finishes: an extension of the
 * destination would delete the files that it has got behind its end. */
#include "server/migrate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/deletions.h"
#include "server/reply.h"
#include "server/report.h"
#include "store/segment_layout.h"
#include "store/segment_write.h"
#include "store/time_index.h"
#include "store/time_index_edit.h"

typedef struct migration
{
    const asi_file_ops *files;
    const char *archive_dir;
    asi_catalog_record src;
    asi_catalog_record dst;
    int32_t sync_level;
    bool is_head;          /* the source precedes the destination */
    int64_t seam;
    int64_t first_base;    /* first of the source's segments */
    int64_t end_base;      /* end of the segments that hold bytes */
} migration;

/* -- checks ------------------------------------------------------------------------------------------------------------------ */

static as_result check_parameters(const migration *work)
{
    const asi_catalog_record *src = &work->src;
    const asi_catalog_record *dst = &work->dst;
    const struct
    {
        const char *name;
        int32_t src;
        int32_t dst;
    } rows[] = {
        { "SegmentFileLength", src->segment_file_length, dst->segment_file_length },
        { "TermBufferLength", src->term_buffer_length, dst->term_buffer_length },
        { "InitialTermId", src->initial_term_id, dst->initial_term_id },
        { "StreamId", src->stream_id, dst->stream_id },
        { "MtuLength", src->mtu_length, dst->mtu_length },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        if (rows[i].src != rows[i].dst)
        {
            return asi_fail(AS_E_USAGE, 0, "invalid migrate: src%s=%d dst%s=%d", rows[i].name, rows[i].src, rows[i].name,
                rows[i].dst);
        }
    }
    return AS_OK;
}

static int64_t base_of(const asi_catalog_record *record, int64_t position)
{
    return asi_segment_base(
        record->start_position, position, record->term_buffer_length, record->segment_file_length);
}

static as_result check_boundary(const migration *work, const asi_catalog_record *record, const char *whose)
{
    const int64_t base = base_of(record, work->seam);
    return work->seam == base ? AS_OK : asi_fail(AS_E_USAGE, 0,
        "invalid migrate: join position is not on segment boundary of %s recording seamPosition=%" PRId64 " startPosition=%"
        PRId64 " stopPosition=%" PRId64 " termBufferLength=%d segmentFileLength=%d", whose, work->seam, record->start_position,
        record->stop_position, record->term_buffer_length, record->segment_file_length);
}

static as_result check_seam(migration *work)
{
    const asi_catalog_record *src = &work->src;
    const asi_catalog_record *dst = &work->dst;
    work->is_head = src->stop_position == dst->start_position;
    if (!work->is_head && src->start_position != dst->stop_position)
    {
        return asi_fail(AS_E_USAGE, 0, "invalid migrate: src and dst are not contiguous srcStartPosition=%" PRId64
            " srcStopPosition=%" PRId64 " dstStartPosition=%" PRId64 " dstStopPosition=%" PRId64, src->start_position,
            src->stop_position, dst->start_position, dst->stop_position);
    }
    work->seam = work->is_head ? dst->start_position : src->start_position;
    const as_result result = check_boundary(work, src, "src");
    return AS_OK == result ? check_boundary(work, dst, "dst") : result;
}

static as_result segment_path(const migration *work, const asi_catalog_record *record, int64_t base, char *path)
{
    return asi_segment_path(path, AS_PATH_MAX, work->archive_dir, record->recording_id, base);
}

static bool exists(const migration *work, const char *path)
{
    const int fd = work->files->open(work->files->context, path, ASI_FILE_READ);
    if (fd >= 0)
    {
        work->files->close(work->files->context, fd);
    }
    return -ENOENT != fd;
}

static as_result check_files(const migration *work)
{
    for (int64_t base = work->first_base; base < work->end_base; base += work->src.segment_file_length)
    {
        char src[AS_PATH_MAX];
        char dst[AS_PATH_MAX];
        as_result result = segment_path(work, &work->src, base, src);
        result = AS_OK == result ? segment_path(work, &work->dst, base, dst) : result;
        if (AS_OK != result)
        {
            return result;
        }
        if (!exists(work, src))
        {
            return asi_fail(AS_E_DATA, 0, "missing src segment file %s", src);
        }
        /* A migration to the tail replaces the empty segment after the destination's end. */
        const bool is_own_end = !work->is_head && base == work->dst.stop_position;
        if (!is_own_end && exists(work, dst))
        {
            return asi_fail(AS_E_DATA, 0, "preexisting dst segment file %s", dst);
        }
    }
    return AS_OK;
}

/* -- moving ------------------------------------------------------------------------------------------------------------------ */

static void marker_path(const migration *work, char *path)
{
    (void)snprintf(path, AS_PATH_MAX, "%s/segments-%" PRId64 "-to-%" PRId64 ".moving", work->archive_dir,
        work->src.recording_id, work->dst.recording_id);
}

static int sync_folder(const migration *work)
{
    return work->sync_level > 0 ? work->files->sync_directory(work->files->context, work->archive_dir) : 0;
}

static int put_marker(const migration *work)
{
    char path[AS_PATH_MAX];
    marker_path(work, path);
    const int fd = work->files->open(work->files->context, path, ASI_FILE_CREATE);
    if (fd < 0)
    {
        return fd;
    }
    work->files->close(work->files->context, fd);
    return sync_folder(work);
}

/* One that stays is removed at the next start. */
static int drop_marker(const migration *work)
{
    char path[AS_PATH_MAX];
    marker_path(work, path);
    return work->files->unlink(work->files->context, path);
}

/* An empty segment after a recording's end, if it has none. Returns whether it was added. */
static bool add_empty_end(const migration *work, const asi_catalog_record *record, int64_t stop, char *path)
{
    return AS_OK == segment_path(work, record, stop, path) && !exists(work, path) &&
        0 == asi_segment_replace_by_empty(work->files, path, record->segment_file_length, work->sync_level);
}

/* The one after the destination's end goes for the first of the source's segments. */
static void put_back_end(const migration *work)
{
    char path[AS_PATH_MAX];
    if (!work->is_head)
    {
        (void)add_empty_end(work, &work->dst, work->dst.stop_position, path);
    }
}

/* Removes the new names of the segments below `end`. */
static void unname_files(const migration *work, bool is_linked, int64_t end)
{
    int error = 0;
    for (int64_t base = work->first_base; base < end; base += work->src.segment_file_length)
    {
        char src[AS_PATH_MAX];
        char dst[AS_PATH_MAX];
        if (AS_OK == segment_path(work, &work->src, base, src) && AS_OK == segment_path(work, &work->dst, base, dst))
        {
            const int failed = is_linked ? work->files->unlink(work->files->context, dst) :
                work->files->rename(work->files->context, dst, src);
            error = 0 != failed ? failed : error;
        }
    }
    put_back_end(work);
    if (!is_linked && 0 == error && 0 == sync_folder(work))
    {
        (void)drop_marker(work);
    }
}

/* Gives one segment its new name. It keeps the old name while *is_linked. */
static as_result name_file(const migration *work, int64_t base, bool *is_linked)
{
    const asi_file_ops *files = work->files;
    char src[AS_PATH_MAX];
    char dst[AS_PATH_MAX];
    as_result result = segment_path(work, &work->src, base, src);
    result = AS_OK == result ? segment_path(work, &work->dst, base, dst) : result;
    if (AS_OK != result)
    {
        return result;
    }
    int error = !work->is_head && base == work->dst.stop_position ? files->unlink(files->context, dst) : 0;
    error = -ENOENT == error ? 0 : error;
    if (0 == error && *is_linked)
    {
        error = asi_file_link(files, src, dst);
        *is_linked = -ENOTSUP != error;
        error = *is_linked ? error : put_marker(work);
    }
    if (0 == error && !*is_linked)
    {
        error = files->rename(files->context, src, dst);
    }
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot move segment %s to %s", src, dst);
}

static as_result name_files(const migration *work, bool *is_linked)
{
    as_result result = AS_OK;
    int64_t base = work->first_base;
    while (AS_OK == result && base < work->end_base)
    {
        result = name_file(work, base, is_linked);
        base += AS_OK == result ? work->src.segment_file_length : 0;
    }
    if (AS_OK == result)
    {
        const int error = sync_folder(work);
        result = 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot sync %s", work->archive_dir);
    }
    if (AS_OK != result)
    {
        unname_files(work, *is_linked, base);
    }
    return result;
}

/* Spec: 06 §12.1 - tools expect an empty segment after a full one. The destination may have none, as nothing was ever written to
 * it, or its own is replaced. If the disk has no room for it, the next extension creates it. Returns whether it was added. */
static bool add_new_end(const migration *work, char *path)
{
    const int64_t stop = work->is_head ? work->dst.stop_position : work->src.stop_position;
    return AS_NULL_VALUE != stop && stop == base_of(&work->src, stop) && add_empty_end(work, &work->dst, stop, path);
}

static as_result move_destination(const as_archive *archive, const migration *work, const asi_catalog_record *to)
{
    return work->is_head ? asi_catalog_set_start_position(archive->catalog, work->dst.recording_id, to->start_position) :
        asi_catalog_set_stop_position(archive->catalog, work->dst.recording_id, to->stop_position);
}

/* Moves the destination first, so that for an instant the bytes belong to both recordings and never to neither. After a failure
 * they belong to the source as before, or to both. */
static as_result move_positions(const as_archive *archive, const migration *work, bool is_linked)
{
    as_result result = move_destination(archive, work, &work->src);
    if (AS_OK == result)
    {
        result = asi_catalog_set_stop_position(archive->catalog, work->src.recording_id, work->src.start_position);
    }
    if (AS_OK != result)
    {
        char reason[1024];
        const int32_t code = as_error_code();
        snprintf(reason, sizeof(reason), "%s", as_error_text());
        if (AS_OK == asi_catalog_set_stop_position(archive->catalog, work->src.recording_id, work->src.stop_position) &&
            AS_OK == move_destination(archive, work, &work->dst))
        {
            unname_files(work, is_linked, work->end_base);
        }
        return asi_fail(result, code, "%s", reason);
    }
    return AS_OK;
}

/* The time index of a destination that is being recorded stays in place, with the moved range as a gap. It goes if bytes of that
 * range may be younger than its first entries: a lookup by time would pass them over. */
static as_result migrate_times(const migration *work)
{
    if (AS_NULL_VALUE != work->dst.stop_position)
    {
        return asi_time_index_move(work->files, work->archive_dir, &work->src, &work->dst);
    }
    return asi_time_written_by(&work->src) > asi_time_of_ms(work->dst.start_timestamp_ms) ?
        asi_time_index_remove(work->files, work->archive_dir, work->dst.recording_id) : AS_OK;
}

static void migrate(asi_control_session *session, const asi_codec_request *request, migration *work)
{
    const as_archive *archive = session->archive;
    const int64_t moved = (work->end_base - work->first_base) / work->src.segment_file_length;
    bool is_linked = true;
    asi_deletion *deletion = asi_deletions_make(session, request, &work->src);
    if (NULL == deletion)
    {
        return;
    }
    char end[AS_PATH_MAX];
    const bool has_new_end = add_new_end(work, end);
    as_result result = name_files(work, &is_linked);
    result = AS_OK == result ? move_positions(archive, work, is_linked) : result;
    if (AS_OK == result && !is_linked)
    {
        (void)drop_marker(work);
    }
    if (AS_OK != result)
    {
        if (has_new_end)
        {
            (void)work->files->unlink(work->files->context, end);
        }
        asi_deletions_discard(deletion);
        asi_control_storage_error(session, request->correlation_id);
        return;
    }
    if (AS_OK != migrate_times(work))
    {
        asi_archive_log(session->archive, as_error_code(), NULL);
    }
    /* Deletes the source's names, and the empty segment after its end. */
    deletion->work.scope = ASI_DELETE_RANGE;
    deletion->work.first_base = is_linked ? work->first_base : work->end_base;
    deletion->work.end_base = work->end_base + work->src.segment_file_length;
    deletion->answer = moved;
    asi_deletions_begin(session->archive, deletion);
}

void asi_migrate_segments(asi_control_session *session, const asi_codec_request *request)
{
    as_archive *archive = session->archive;
    const int64_t correlation_id = request->correlation_id;
    migration work = { .files = archive->files, .archive_dir = archive->config.archive_dir,
        .sync_level = (int32_t)archive->config.file_sync_level };
    if (!asi_catalog_find(archive->catalog, request->recording_id, &work.src))
    {
        asi_control_unknown_recording(session, correlation_id, request->recording_id);
        return;
    }
    if (!asi_catalog_find(archive->catalog, request->dst_recording_id, &work.dst))
    {
        asi_control_unknown_recording(session, correlation_id, request->dst_recording_id);
        return;
    }
    if (work.src.recording_id == work.dst.recording_id)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC, "invalid migrate: src and dst are the same recording %lld",
            (long long)work.src.recording_id);
        return;
    }
    if (AS_NULL_VALUE == work.src.stop_position)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC, "recording %lld is still active",
            (long long)work.src.recording_id);
        return;
    }
    as_result result = check_parameters(&work);
    result = AS_OK == result ? check_seam(&work) : result;
    /* Departure from Spec: 08 §9 - stock migrates files that it is deleting at the same time. */
    if (AS_OK == result && (asi_deletions_refuse_second(session, request, work.src.recording_id) ||
        asi_deletions_refuse_second(session, request, work.dst.recording_id)))
    {
        return;
    }
    work.first_base = base_of(&work.src, work.src.start_position);
    work.end_base = base_of(&work.src, work.src.stop_position + work.src.segment_file_length - 1);
    result = AS_OK == result ? check_files(&work) : result;
    if (AS_OK != result)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC, "%s", as_error_text());
        return;
    }
    migrate(session, request, &work);
}

/* -- after a death ------------------------------------------------------------------------------------------------------------- */

typedef struct marker
{
    int64_t src_id;
    int64_t dst_id;
    bool is_there;
} marker;

static bool take_marker(void *context, const char *name)
{
    static const char begin[] = "segments-";
    static const char middle[] = "-to-";
    marker *found = context;
    char *end = NULL;
    if (0 != strncmp(name, begin, sizeof(begin) - 1))
    {
        return true;
    }
    found->src_id = strtoll(name + sizeof(begin) - 1, &end, 10);
    if (0 != strncmp(end, middle, sizeof(middle) - 1))
    {
        return true;
    }
    found->dst_id = strtoll(end + sizeof(middle) - 1, &end, 10);
    found->is_there = 0 == strcmp(end, ".moving");
    return !found->is_there;
}

/* Renames what has not got the name that goes with the positions: the source's, or the destination's if that covers the bytes. */
static as_result settle_names(const migration *work, bool is_moved)
{
    const asi_catalog_record *from = is_moved ? &work->src : &work->dst;
    const asi_catalog_record *to = is_moved ? &work->dst : &work->src;
    for (int64_t base = work->first_base; base < work->end_base; base += work->src.segment_file_length)
    {
        char old_path[AS_PATH_MAX];
        char new_path[AS_PATH_MAX];
        as_result result = segment_path(work, from, base, old_path);
        result = AS_OK == result ? segment_path(work, to, base, new_path) : result;
        const int error = AS_OK != result || exists(work, new_path) || !exists(work, old_path) ? 0 :
            work->files->rename(work->files->context, old_path, new_path);
        if (AS_OK != result || 0 != error)
        {
            return AS_OK != result ? result : asi_fail_errno(AS_E_STORAGE, -error,
                "cannot rename segment %s to %s, which a migration was moving when the archive died", old_path, new_path);
        }
    }
    const int error = sync_folder(work);
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot sync %s", work->archive_dir);
}

static as_result settle(const as_archive *archive, migration *work)
{
    const asi_catalog_record *src = &work->src;
    const asi_catalog_record *dst = &work->dst;
    work->first_base = base_of(src, src->start_position);
    work->end_base = base_of(src, src->stop_position + src->segment_file_length - 1);
    const bool is_moved = dst->start_position <= src->start_position && dst->stop_position >= src->stop_position;
    const as_result result = settle_names(work, is_moved);
    if (AS_OK != result || is_moved)
    {
        return AS_OK != result ? result :
            asi_catalog_set_stop_position(archive->catalog, src->recording_id, src->start_position);
    }
    work->is_head = dst->stop_position != src->start_position;
    put_back_end(work);
    return AS_OK;
}

as_result asi_migrate_settle(as_archive *archive)
{
    for (;;)
    {
        marker found = { 0 };
        migration work = { .files = archive->files, .archive_dir = archive->config.archive_dir,
            .sync_level = (int32_t)archive->config.file_sync_level };
        int error = work.files->readdir(work.files->context, work.archive_dir, take_marker, &found);
        if (0 != error || !found.is_there)
        {
            return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot list archive folder %s", work.archive_dir);
        }
        const bool is_known = asi_catalog_find(archive->catalog, found.src_id, &work.src) &&
            asi_catalog_find(archive->catalog, found.dst_id, &work.dst);
        const as_result result = is_known && work.src.stop_position > work.src.start_position ? settle(archive, &work) : AS_OK;
        work.src.recording_id = found.src_id;
        work.dst.recording_id = found.dst_id;
        error = AS_OK == result ? drop_marker(&work) : 0;
        if (AS_OK != result || 0 != error)
        {
            return AS_OK != result ? result : asi_fail_errno(AS_E_STORAGE, -error, "cannot delete segments-%" PRId64 "-to-%" PRId64
                ".moving in %s", found.src_id, found.dst_id, work.archive_dir);
        }
    }
}
