/* Finds the end of a folder's recordings and the checksum of their frames; see folder.h and aeron_spark/as_archive.h.
 *
 * A stopped recording ends at the catalog's stop position. An active recording of a live archive ends at its recording position
 * counter, which never passes the bytes written to the operating system. An active recording of a dead archive ends where
 * recovery would find its end. The catalog is read before the counter. If the recording stops between the two reads, the counter
 * is gone and the catalog is read again. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store/checksum.h"
#include "store/folder.h"
#include "store/folder_extent.h"
#include "store/recover.h"
#include "store/segment_layout.h"

#define COUNTER_WAIT_MS 1000
#define COUNTER_POLL_NS 1000000
#define CHECKSUM_SAMPLE_FRAMES 16

/* -- extent --------------------------------------------------------------------------------------------------------------- */

static as_result live_position(
    as_folder *folder, const asi_mark_info *mark, const asi_catalog_record *record, int64_t *position)
{
    if (folder->without_counters)
    {
        return asi_fail(AS_E_PEER, 0, "recording %" PRId64 " of %s is being recorded, and counters are not read",
            record->recording_id, folder->path);
    }
    const char *aeron_dir = asi_folder_aeron_dir(folder, mark);
    const as_result result =
        asi_position_counters_read(&folder->counters, aeron_dir, record->recording_id, mark->archive_id, position);
    if (AS_OK != result && AS_AGAIN != result)
    {
        return asi_fail_in(AS_E_PEER,
            "recording %" PRId64 " of %s is being recorded by process %" PRId64 ", but how far it got cannot be "
            "read from its Aeron directory %s (the archive's own name for it is %s; on another host or in a container set the "
            "directory's local name, else read through the archive)", record->recording_id, folder->path, mark->pid, aeron_dir,
            mark->aeron_dir);
    }
    if (AS_OK == result && (*position < record->start_position || 0 != *position % AS_FRAME_ALIGNMENT))
    {
        return asi_fail(AS_E_PEER, 0,
            "recording %" PRId64 " of %s: the recording position %" PRId64 " in Aeron directory %s cannot be of "
            "a recording that starts at %" PRId64 "; set the archive's Aeron directory", record->recording_id, folder->path,
            *position, aeron_dir, record->start_position);
    }
    return result;
}

static as_result recovered_position(const as_folder *folder, const asi_catalog_record *record, int64_t *position)
{
    asi_segment_window window;
    const asi_segment_source source = asi_folder_source(folder, record);
    as_record_checksum checksum = folder->checksum;
    as_result result = AS_OK;
    if (AS_CHECKSUM_AUTO == checksum)
    {
        const int64_t sample_limit = asi_segment_base(source.start_position, source.start_position, source.term_length,
            source.segment_length) + source.segment_length;
        asi_segment_window_init(&window, &source);
        result = asi_folder_detect_checksum(&window, source.start_position, sample_limit, record->session_id, &checksum, NULL);
        asi_segment_window_close(&window);
        /* The reader that needs a missing or truncated first file reports it. */
        checksum = AS_OK == result ? checksum : AS_CHECKSUM_NONE;
    }
    asi_recovered_end end;
    result = asi_recover_end(folder->files, folder->path, record, checksum, &end);
    if (AS_OK == result)
    {
        *position = end.is_proven ? end.stop_position : end.last_fragment_position;
    }
    return result;
}

/* What is opened or read once for a call, however many recordings it is about. */
typedef struct files_read
{
    int catalog_fd;
    bool has_mark_read; /* also the next three; then the counters are checked, too */
    asi_mark_info mark;
    bool has_mark;
    bool is_live;
} files_read;

static void begin_read(const as_folder *folder, files_read *read)
{
    read->catalog_fd = asi_catalog_reread_open(folder->files, folder->path);
    read->has_mark_read = false;
}

static void end_read(const as_folder *folder, files_read *read)
{
    if (read->catalog_fd >= 0)
    {
        folder->files->close(folder->files->context, read->catalog_fd);
    }
}

static as_result read_mark_once(as_folder *folder, files_read *read)
{
    if (read->has_mark_read)
    {
        return AS_OK;
    }
    const as_result result = asi_folder_read_mark(folder, &read->mark, &read->has_mark, &read->is_live);
    asi_position_counters_check(&folder->counters);
    read->has_mark_read = AS_OK == result;
    return result;
}

static as_result find_extent(as_folder *folder, files_read *read, int64_t recording_id, as_recording_extent *extent)
{
    const asi_folder_recording *recording;
    as_result result = asi_folder_find(folder, recording_id, &recording);
    const int64_t deadline_ns = asi_clock_ns(&folder->clock) + COUNTER_WAIT_MS * 1000000LL;
    while (AS_OK == result)
    {
        asi_catalog_record record = recording->record;
        result = asi_catalog_reread_in(folder->files, folder->path, read->catalog_fd, &record);
        if (AS_OK != result)
        {
            break;
        }
        as_recording_extent now = { .start_position = record.start_position, .limit_position = record.stop_position };
        if (AS_NULL_VALUE == record.stop_position)
        {
            result = read_mark_once(folder, read);
            result = AS_OK != result ? result :
                read->is_live ? live_position(folder, &read->mark, &record, &now.limit_position) :
                recovered_position(folder, &record, &now.limit_position);
            now.is_active = read->is_live;
        }
        if (AS_OK == result)
        {
            *extent = now;
        }
        if (AS_AGAIN != result)
        {
            break;
        }
        /* The next round may find another archive, and another driver. */
        end_read(folder, read);
        begin_read(folder, read);
        asi_position_counters_close(&folder->counters);
        /* No counter: the recording has just begun, or it has just stopped and the catalog has its end. */
        if (asi_clock_ns(&folder->clock) >= deadline_ns)
        {
            return asi_fail(AS_E_PEER, 0,
                "recording %" PRId64 " of %s is active, but its recording position is not among the counters of "
                "Aeron directory %s: if the archive just died, try again in %d s; else set the archive's Aeron directory",
                recording_id, folder->path, asi_folder_aeron_dir(folder, &read->mark), ASI_MARK_LIVENESS_TIMEOUT_MS / 1000);
        }
        const struct timespec pause = { .tv_nsec = COUNTER_POLL_NS };
        nanosleep(&pause, NULL);
        result = AS_OK;
    }
    return result;
}

as_result as_folder_extents(as_folder *folder, const int64_t *recording_ids, int64_t count, as_recording_extent *extents)
{
    files_read read = { 0 };
    begin_read(folder, &read);
    as_result result = AS_OK;
    for (int64_t i = 0; AS_OK == result && i < count; i++)
    {
        result = find_extent(folder, &read, recording_ids[i], &extents[i]);
    }
    end_read(folder, &read);
    return result;
}

as_result as_folder_extent(as_folder *folder, int64_t recording_id, as_recording_extent *extent)
{
    return as_folder_extents(folder, &recording_id, 1, extent);
}

/* -- checksum ------------------------------------------------------------------------------------------------------------- */

typedef struct checksum_votes
{
    int32_t crc32;
    int32_t crc32c;
    int32_t like_catalog; /* number of frames with the catalog's session id */
} checksum_votes;

static void vote(const asi_frame_header *frame, int32_t catalog_session_id, checksum_votes *votes)
{
    const int64_t covered = asi_frame_occupancy(frame->frame_length) - AS_FRAME_HEADER_LENGTH;
    const uint8_t *payload = (const uint8_t *)(frame + 1);
    votes->like_catalog += frame->session_id == catalog_session_id;
    if (covered > 0 && frame->session_id != catalog_session_id)
    {
        votes->crc32 += asi_crc32(payload, covered) == (uint32_t)frame->session_id;
        votes->crc32c += asi_crc32c(payload, covered) == (uint32_t)frame->session_id;
    }
}

/* One match is enough, and mismatches do not count. A match by chance happens once in 2^32 frames, but a mismatch may be the
 * damage that the checksum is meant to find. */
as_result asi_folder_detect_checksum(asi_segment_window *window, int64_t position, int64_t limit, int32_t catalog_session_id,
    as_record_checksum *checksum, bool *is_unlike)
{
    checksum_votes votes = { 0 };
    int32_t sampled = 0;
    as_result result = AS_OK;
    asi_segment_walk walk = asi_segment_walk_start(window, position, limit, true);
    while (AS_OK == result && sampled < CHECKSUM_SAMPLE_FRAMES)
    {
        const asi_segment_step step = asi_segment_walk_next(&walk);
        result = ASI_SEGMENT_FAILED == step ? walk.failure : AS_OK;
        if (ASI_SEGMENT_FRAME != step)
        {
            break;
        }
        if (asi_frame_is_padding(walk.frames.frame))
        {
            continue;
        }
        if (walk.position > asi_segment_window_end(window))
        {
            /* Load again from this frame on, so that its payload is in memory. */
            result = asi_segment_window_load(window, walk.frame_position, walk.position - walk.frame_position, limit);
            walk = asi_segment_walk_start(window, walk.frame_position, limit, true);
            continue;
        }
        vote(walk.frames.frame, catalog_session_id, &votes);
        sampled++;
    }
    *checksum = votes.crc32 > votes.crc32c ? AS_CHECKSUM_CRC32 : votes.crc32c > 0 ? AS_CHECKSUM_CRC32C : AS_CHECKSUM_NONE;
    if (NULL != is_unlike)
    {
        *is_unlike = sampled > 0 && 0 == votes.like_catalog;
    }
    return result;
}

as_result as_folder_checksum(as_folder *folder, int64_t recording_id, as_record_checksum *checksum)
{
    const asi_folder_recording *recording;
    as_recording_extent extent;
    as_result result = asi_folder_find(folder, recording_id, &recording);
    if (AS_OK == result && AS_CHECKSUM_AUTO != folder->checksum)
    {
        *checksum = folder->checksum;
        return AS_OK;
    }
    result = AS_OK == result ? as_folder_extent(folder, recording_id, &extent) : result;
    if (AS_OK == result)
    {
        asi_segment_source source = asi_folder_source(folder, &recording->record);
        source.start_position = extent.start_position;
        asi_segment_window window;
        asi_segment_window_init(&window, &source);
        result = asi_folder_detect_checksum(
            &window, extent.start_position, extent.limit_position, recording->record.session_id, checksum, NULL);
        asi_segment_window_close(&window);
    }
    return result;
}
