/* Operations on segments at the head of a recording: detach, delete detached ones, purge, attach. See segments.h. Spec: 08 §9.
 *
 * The start position moves by whole segments, and before any file is deleted. The recording may be active: its recorder writes
 * at much higher positions than those of the segments that may be detached. */
#include "server/segments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/reply.h"
#include "server/uses.h"
#include "store/segment_layout.h"
#include "store/segment_read.h"

#define SCAN_LENGTH 4096

static bool find_or_refuse(asi_control_session *session, const asi_codec_request *request, asi_catalog_record *record)
{
    if (!asi_catalog_find(session->archive->catalog, request->recording_id, record))
    {
        asi_control_unknown_recording(session, request->correlation_id, request->recording_id);
        return false;
    }
    return true;
}

static int64_t base_of(const asi_catalog_record *record, int64_t position)
{
    return asi_segment_base(
        record->start_position, position, record->term_buffer_length, record->segment_file_length);
}

int64_t asi_segments_last_base(const as_archive *archive, const asi_catalog_record *record)
{
    const int64_t recorded = asi_uses_recorded_position(archive, record->recording_id);
    return base_of(record, AS_NULL_VALUE == recorded ? record->stop_position : recorded);
}

/* Whether the request may move the start position. If not, it was refused. */
static bool check_new_start(asi_control_session *session, const asi_codec_request *request, const asi_catalog_record *record)
{
    const as_archive *archive = session->archive;
    const int64_t correlation_id = request->correlation_id;
    const long long position = request->position;
    const int64_t lower = base_of(record, record->start_position) + record->segment_file_length;
    const int64_t upper = asi_segments_last_base(archive, record);
    int64_t replayed_base;
    if (position < 0 || base_of(record, position) != position)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC, "invalid segment start: newStartPosition=%lld", position);
        return false;
    }
    if (position < lower)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC,
            "invalid detach: newStartPosition=%lld lowerBound=%lld", position, (long long)lower);
        return false;
    }
    if (position > upper)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC,
            "invalid detach: in use, newStartPosition=%lld upperBound=%lld", position, (long long)upper);
        return false;
    }
    const asi_replay_session *held = asi_uses_replay_before(archive, record->recording_id, position, &replayed_base);
    if (NULL != held)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC,
            "invalid detach: replay in progress -  state=%s newStartPosition=%lld upperBound=%lld sessionId=%d streamId=%d channel=%s",
            0 != held->replay_session_id ? "REPLAY" : "INIT", position,
            (long long)replayed_base, held->publication_session_id, held->publication_stream_id, held->channel);
        return false;
    }
    return true;
}

void asi_segments_detach(asi_control_session *session, const asi_codec_request *request)
{
    asi_catalog_record record;
    if (!find_or_refuse(session, request, &record) || !check_new_start(session, request, &record))
    {
        return;
    }
    if (AS_OK != asi_catalog_set_start_position(session->archive->catalog, record.recording_id, request->position))
    {
        asi_control_storage_error(session, request->correlation_id);
        return;
    }
    asi_control_ok(session, request->correlation_id, 0);
}

void asi_segments_delete_detached(asi_control_session *session, const asi_codec_request *request)
{
    asi_catalog_record record;
    if (!find_or_refuse(session, request, &record) ||
        asi_deletions_refuse_second(session, request, record.recording_id))
    {
        return;
    }
    asi_deletion *deletion = asi_deletions_make(session, request, &record);
    if (NULL != deletion)
    {
        deletion->work.scope = ASI_DELETE_DETACHED;
        deletion->work.end_base = base_of(&record, record.start_position);
        deletion->use.end_position = deletion->work.end_base;
        asi_deletions_begin(session->archive, deletion);
    }
}

as_result asi_segments_purge_to(
    as_archive *archive, asi_deletion *deletion, const asi_catalog_record *record, int64_t new_start)
{
    deletion->work.scope = ASI_DELETE_RANGE;
    deletion->work.first_base = base_of(record, record->start_position);
    deletion->work.end_base = new_start;
    deletion->use.end_position = new_start;
    const as_result result = asi_catalog_set_start_position(archive->catalog, record->recording_id, new_start);
    if (AS_OK == result)
    {
        asi_deletions_begin(archive, deletion);
    }
    else
    {
        asi_deletions_discard(deletion);
    }
    return result;
}

void asi_segments_purge(asi_control_session *session, const asi_codec_request *request)
{
    asi_catalog_record record;
    if (!find_or_refuse(session, request, &record) || !check_new_start(session, request, &record) ||
        asi_deletions_refuse_second(session, request, record.recording_id))
    {
        return;
    }
    asi_deletion *deletion = asi_deletions_make(session, request, &record);
    if (NULL == deletion)
    {
        return;
    }
    if (AS_OK != asi_segments_purge_to(session->archive, deletion, &record, request->position))
    {
        asi_control_storage_error(session, request->correlation_id);
    }
}

/* -- attach ------------------------------------------------------------------------------------------------------------------ */

/* An open file that is to be attached. */
typedef struct candidate
{
    const asi_file_ops *files;
    const asi_catalog_record *record;
    int64_t base;
    int fd;
    char path[AS_PATH_MAX];
} candidate;

/* Finds the first frame of the first term. AS_AGAIN: there is none. A recording that began within a term has zeros before it. */
static as_result find_first_frame(const candidate *file, asi_frame_header *frame, int32_t *offset)
{
    uint8_t buffer[SCAN_LENGTH];
    const int32_t term_length = file->record->term_buffer_length;
    for (int32_t at = 0; at < term_length; at += SCAN_LENGTH)
    {
        const int64_t count = asi_file_read_full(file->files, file->fd, buffer, SCAN_LENGTH, at);
        if (count < SCAN_LENGTH)
        {
            return asi_fail_errno(AS_E_STORAGE, count < 0 ? (int)-count : EIO, "cannot read segment %s", file->path);
        }
        for (int32_t i = 0; i < SCAN_LENGTH; i += AS_FRAME_ALIGNMENT)
        {
            if (asi_get_i32(buffer + i) > 0)
            {
                memcpy(frame, buffer + i, sizeof(*frame));
                *offset = at + i;
                return AS_OK;
            }
        }
    }
    return AS_AGAIN;
}

/* AS_OK: the segment belongs to the recording, and its bytes begin at `offset`. */
static as_result check_segment(const candidate *file, int32_t *offset)
{
    const asi_catalog_record *record = file->record;
    const int64_t size = file->files->size(file->files->context, file->fd);
    if (size != record->segment_file_length)
    {
        return size < 0 ? asi_fail_errno(AS_E_STORAGE, (int)-size, "cannot find the length of segment %s", file->path) :
            asi_fail(AS_E_DATA, 0, "fileLength=%" PRId64 " not equal to segmentLength=%d", size, record->segment_file_length);
    }
    asi_frame_header frame = { 0 };
    const as_result found = find_first_frame(file, &frame, offset);
    const int32_t term_id =
        asi_segment_term_id(file->base, record->term_buffer_length, record->initial_term_id);
    if (AS_AGAIN == found)
    {
        return asi_fail(AS_E_DATA, 0, "fragment not found in first term of segment %s", file->path);
    }
    if (AS_OK == found && frame.term_id != term_id)
    {
        return asi_fail(AS_E_DATA, 0, "term id does not match: actual=%d expected=%d", frame.term_id, term_id);
    }
    if (AS_OK == found && frame.stream_id != record->stream_id)
    {
        return asi_fail(AS_E_DATA, 0, "stream id does not match: actual=%d expected=%d", frame.stream_id, record->stream_id);
    }
    return found;
}

/* AS_OK: attached, and the recording would start at *start. AS_AGAIN: the file does not exist. */
static as_result take_segment(const as_archive *archive, const asi_catalog_record *record, int64_t base, int64_t *start)
{
    candidate file = { .files = archive->files, .record = record, .base = base };
    as_result result =
        asi_segment_path(file.path, sizeof(file.path), archive->config.archive_dir, record->recording_id, base);
    if (AS_OK != result)
    {
        return result;
    }
    file.fd = file.files->open(file.files->context, file.path, ASI_FILE_READ);
    if (-ENOENT == file.fd)
    {
        return AS_AGAIN;
    }
    if (file.fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -file.fd, "cannot open segment %s", file.path);
    }
    int32_t offset = 0;
    result = check_segment(&file, &offset);
    file.files->close(file.files->context, file.fd);
    *start = AS_OK == result ? base + offset : *start;
    return result;
}

/* As in stock, segments attached before one that fails stay attached, and the error names the failed segment. */
void asi_segments_attach(asi_control_session *session, const asi_codec_request *request)
{
    as_archive *archive = session->archive;
    asi_catalog_record record;
    /* Departure from Spec: 08 §9 - stock attaches segments that it is deleting at the same time. */
    if (!find_or_refuse(session, request, &record) ||
        asi_deletions_refuse_second(session, request, record.recording_id))
    {
        return;
    }
    const int32_t length = record.segment_file_length;
    int64_t base = base_of(&record, record.start_position);
    int64_t start = record.start_position;
    int64_t count = 0;
    as_result result = base == start ? AS_OK : AS_AGAIN; /* the recording begins within a segment: nothing precedes it */
    while (AS_OK == result && base >= length && start == base)
    {
        base -= length;
        result = take_segment(archive, &record, base, &start);
        count += AS_OK == result ? 1 : 0;
    }
    char text[1024];
    snprintf(text, sizeof(text), "%s", result < 0 ? as_error_text() : "");
    if (start != record.start_position &&
        AS_OK != asi_catalog_set_start_position(archive->catalog, record.recording_id, start))
    {
        asi_control_storage_error(session, request->correlation_id);
    }
    else if (result < 0)
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC, "%s", text);
    }
    else
    {
        asi_control_ok(session, request->correlation_id, count);
    }
}
