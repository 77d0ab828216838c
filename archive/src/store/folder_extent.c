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

#include "shm/cnc.h"
#include "shm/counters.h"
#include "store/checksum.h"
#include "store/folder.h"
#include "store/folder_extent.h"
#include "store/recover.h"
#include "store/segment_layout.h"

#define COUNTER_WAIT_MS 1000
#define COUNTER_POLL_NS 1000000
#define CHECKSUM_SAMPLE_FRAMES 16

/* -- extent --------------------------------------------------------------------------------------------------------------- */

typedef struct counter_wanted
{
    int64_t recording_id;
    int64_t archive_id; /* -1: any */
} counter_wanted;

/* Key of a recording position. Spec: 08 §3 - 0 i64 recordingId, 12 i32 length L of the source identity at 16, 16+L i64
 * archiveId; several archives on one driver may have the same recording ids. */
static bool is_counter_of(const asi_counters *counters, int32_t counter_id, void *context)
{
    const counter_wanted *wanted = context;
    const uint8_t *key = counters->metadata[counter_id].key;
    const int32_t identity_length = asi_get_i32(key + 12);
    const bool has_archive_id = identity_length >= 0 && identity_length <= ASI_COUNTER_KEY_CAPACITY - 24;
    return asi_get_i64(key) == wanted->recording_id &&
        (AS_NULL_VALUE == wanted->archive_id || (has_archive_id && asi_get_i64(key + 16 + identity_length) == wanted->archive_id));
}

/* The counters of the archive's driver, open during one call. */
typedef struct driver_counters
{
    bool is_open;
    char aeron_dir[AS_PATH_MAX];
    asi_cnc cnc;
    asi_counters counters;
    int32_t last_id; /* the counter found last: recordings that began one after another have consecutive counters */
} driver_counters;

static void close_counters(driver_counters *of)
{
    if (of->is_open)
    {
        asi_cnc_close(&of->cnc);
        of->is_open = false;
    }
}

static as_result open_counters(driver_counters *of, const char *aeron_dir)
{
    if (of->is_open && 0 == strcmp(of->aeron_dir, aeron_dir))
    {
        return AS_OK;
    }
    close_counters(of);
    as_result result = asi_cnc_open_read_only_untrusted(&of->cnc, aeron_dir);
    if (AS_OK != result)
    {
        return AS_AGAIN == result ? AS_E_PEER : result;
    }
    result = asi_counters_init(&of->counters, of->cnc.counters_metadata, of->cnc.lengths.counters_metadata,
        of->cnc.counters_values, of->cnc.lengths.counters_values);
    if (AS_OK != result)
    {
        asi_cnc_close(&of->cnc);
        return result;
    }
    snprintf(of->aeron_dir, sizeof(of->aeron_dir), "%s", aeron_dir);
    of->is_open = true;
    of->last_id = -1;
    return AS_OK;
}

static bool is_allocated_to(const asi_counters *counters, int32_t id, counter_wanted *wanted)
{
    return ASI_COUNTER_ALLOCATED == asi_counter_state(counters, id) &&
        ASI_COUNTER_TYPE_RECORDING_POSITION == counters->metadata[id].type_id && is_counter_of(counters, id, wanted);
}

/* Finds a counter. Starts after the one found last; -1: there is none. */
static int32_t find_counter(const driver_counters *of, counter_wanted *wanted)
{
    for (int32_t id = of->last_id + 1; id < of->counters.max_count; id++)
    {
        if (ASI_COUNTER_UNUSED == asi_counter_state(&of->counters, id))
        {
            break; /* ids are assigned in order: all later ones are unused too */
        }
        if (is_allocated_to(&of->counters, id, wanted))
        {
            return id;
        }
    }
    return asi_counters_find(&of->counters, ASI_COUNTER_TYPE_RECORDING_POSITION, is_counter_of, wanted);
}

/* AS_OK with the recorded position; AS_AGAIN if the driver has no such counter. */
static as_result read_position(driver_counters *of, const char *aeron_dir, counter_wanted *wanted, int64_t *position)
{
    const as_result result = open_counters(of, aeron_dir);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_counters *counters = &of->counters;
    const int32_t id = find_counter(of, wanted);
    if (id < 0)
    {
        return AS_AGAIN;
    }
    *position = asi_load_acquire_i64(asi_counter_addr(counters, id));
    of->last_id = id;
    /* Check that the counter is still the same: it may have been freed and reused between the two reads. */
    return is_allocated_to(counters, id, wanted) ? AS_OK : AS_AGAIN;
}

static as_result live_position(const as_folder *folder, driver_counters *counters, const asi_mark_info *mark,
    const asi_catalog_record *record, int64_t *position)
{
    if (folder->without_counters)
    {
        return asi_fail(AS_E_PEER, 0, "recording %" PRId64 " of %s is being recorded, and counters are not read",
            record->recording_id, folder->path);
    }
    const char *aeron_dir = asi_folder_aeron_dir(folder, mark);
    counter_wanted wanted = { .recording_id = record->recording_id, .archive_id = mark->archive_id };
    const as_result result = read_position(counters, aeron_dir, &wanted, position);
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

static as_result find_extent(as_folder *folder, driver_counters *counters, int64_t recording_id, as_recording_extent *extent)
{
    const asi_folder_recording *recording;
    as_result result = asi_folder_find(folder, recording_id, &recording);
    const int64_t deadline_ns = asi_clock_ns(&folder->clock) + COUNTER_WAIT_MS * 1000000LL;
    while (AS_OK == result)
    {
        asi_catalog_record record = recording->record;
        result = asi_catalog_reread(folder->files, folder->path, &record);
        if (AS_OK != result)
        {
            break;
        }
        as_recording_extent now = { .start_position = record.start_position, .limit_position = record.stop_position };
        asi_mark_info mark;
        bool has_mark = false;
        bool is_live = false;
        if (AS_NULL_VALUE == record.stop_position)
        {
            result = asi_folder_read_mark(folder, &mark, &has_mark, &is_live);
            result = AS_OK != result ? result :
                is_live ? live_position(folder, counters, &mark, &record, &now.limit_position) :
                recovered_position(folder, &record, &now.limit_position);
            now.is_active = is_live;
        }
        if (AS_OK == result)
        {
            *extent = now;
        }
        if (AS_AGAIN != result)
        {
            break;
        }
        /* The next call may find another driver. */
        close_counters(counters);
        /* No counter: the recording has just begun, or it has just stopped and the catalog has its end. */
        if (asi_clock_ns(&folder->clock) >= deadline_ns)
        {
            return asi_fail(AS_E_PEER, 0,
                "recording %" PRId64 " of %s is active, but its recording position is not among the counters of "
                "Aeron directory %s: if the archive just died, try again in %d s; else set the archive's Aeron directory",
                recording_id, folder->path, asi_folder_aeron_dir(folder, &mark), ASI_MARK_LIVENESS_TIMEOUT_MS / 1000);
        }
        const struct timespec pause = { .tv_nsec = COUNTER_POLL_NS };
        nanosleep(&pause, NULL);
        result = AS_OK;
    }
    return result;
}

as_result as_folder_extents(as_folder *folder, const int64_t *recording_ids, int64_t count, as_recording_extent *extents)
{
    driver_counters counters = { .is_open = false };
    as_result result = AS_OK;
    for (int64_t i = 0; AS_OK == result && i < count; i++)
    {
        result = find_extent(folder, &counters, recording_ids[i], &extents[i]);
    }
    close_counters(&counters);
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
