/* Recovers recordings that were active at a crash; see recover.h. */
#include "store/recover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/checksum.h"
#include "store/segment_layout.h"
#include "store/segment_read.h"
#include "store/segment_write.h"

#define DISK_PAGE_LENGTH 4096
/* Two blocks of the default maximum write length (aeron.archive.file.io.max.length). */
#define REWRITE_LENGTH (2 * 1024 * 1024)
/* No transport sends longer frames (MTU), so a longer frame can't carry a checksum. */
#define MAX_DATA_FRAME_LENGTH (64 * 1024)

static bool take_name(void *context, const char *name)
{
    asi_recover_files *found = context;
    int64_t recording_id = -1;
    int64_t base = -1;
    const asi_segment_name kind = asi_segment_name_parse(name, &recording_id, &base);
    if (recording_id != found->recording_id)
    {
        return true;
    }
    if (ASI_SEGMENT_NAME_BAD_BASE == kind)
    {
        snprintf(found->bad_name, sizeof(found->bad_name), "%s", name);
    }
    if (ASI_SEGMENT_NAME_LIVE == kind && (found->lowest_base < 0 || base < found->lowest_base))
    {
        found->lowest_base = base;
    }
    if (ASI_SEGMENT_NAME_LIVE == kind && base > found->highest_base)
    {
        found->highest_base = base;
    }
    return true;
}

as_result asi_recover_find_files(
    const asi_file_ops *files, const char *archive_dir, int64_t recording_id, asi_recover_files *found)
{
    *found = (asi_recover_files){ .recording_id = recording_id, .lowest_base = -1, .highest_base = -1 };
    const int error = files->readdir(files->context, archive_dir, take_name, found);
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot list archive folder %s", archive_dir);
}

/* Spec: 06 §6 steps 1 to 3. */
static as_result find_highest(
    const asi_file_ops *files, const char *archive_dir, const asi_catalog_record *record, int64_t *base)
{
    asi_recover_files found;
    const as_result result = asi_recover_find_files(files, archive_dir, record->recording_id, &found);
    if (AS_OK != result)
    {
        return result;
    }
    if ('\0' != found.bad_name[0])
    {
        const bool is_negative = NULL != strstr(found.bad_name, "--");
        return asi_fail(AS_E_DATA, 0, "%s: %s in %s; move the file away", is_negative ?
            "negative position encoded in the file name" : "no position encoded in the file name", found.bad_name, archive_dir);
    }
    const int64_t boundary =
        asi_segment_base(record->start_position, found.highest_base, record->term_buffer_length, record->segment_file_length);
    if (found.highest_base >= 0 && boundary != found.highest_base)
    {
        return asi_fail(AS_E_DATA, 0, "segment %s/%" PRId64 "-%" PRId64 ".rec is not at a segment boundary of recording %" PRId64
            " (startPosition=%" PRId64 " segmentFileLength=%d); move the file away", archive_dir, record->recording_id, found.highest_base,
            record->recording_id, record->start_position, record->segment_file_length);
    }
    *base = found.highest_base;
    return AS_OK;
}

/* Length to scan: min(segment length, file length), rounded down to the frame alignment. */
static as_result scan_length(const asi_file_ops *files, const char *path, int32_t segment_length, int64_t *length)
{
    const int fd = files->open(files->context, path, ASI_FILE_READ);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -fd, "cannot open segment %s", path);
    }
    const int64_t size = files->size(files->context, fd);
    files->close(files->context, fd);
    if (size < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, (int)-size, "cannot find the length of segment %s", path);
    }
    *length = (size < segment_length ? size : segment_length) & ~(AS_FRAME_ALIGNMENT - 1LL);
    return AS_OK;
}

typedef struct last_frame
{
    int64_t position;
    int64_t end;    /* aligned */
    bool is_padding;
    int32_t session_id;
} last_frame;

static bool crosses_page(int64_t segment_base, const last_frame *last)
{
    return (last->position - segment_base) / DISK_PAGE_LENGTH != (last->end - 1 - segment_base) / DISK_PAGE_LENGTH;
}

/* Spec: 06 §6 step 4, tests (a) and (b). Reads the fragment again, independent of the scan's windows. */
static as_result prove(
    asi_segment_window *window, int64_t limit, const last_frame *last, asi_frame_checksum checksum, bool *is_proven)
{
    const int64_t segment_base =
        asi_segment_base(window->source.start_position, last->position, window->source.term_length, window->source.segment_length);
    *is_proven = false;
    if (NULL != checksum && last->end - last->position <= MAX_DATA_FRAME_LENGTH)
    {
        const int64_t length = last->end - last->position;
        const as_result result = asi_segment_window_load(window, last->position, length, limit);
        if (AS_OK != result)
        {
            return result;
        }
        const uint8_t *frame = window->buffer + (last->position - window->position);
        if (checksum(frame + AS_FRAME_HEADER_LENGTH, length - AS_FRAME_HEADER_LENGTH) == (uint32_t)last->session_id)
        {
            *is_proven = true;
            return AS_OK;
        }
    }
    const int64_t first_page = segment_base + asi_align_i64(last->position - segment_base + 1, DISK_PAGE_LENGTH);
    for (int64_t page = first_page; page < last->end; page += DISK_PAGE_LENGTH)
    {
        const int64_t length = page + DISK_PAGE_LENGTH < last->end ? DISK_PAGE_LENGTH : last->end - page;
        const as_result result = asi_segment_window_load(window, page, length, limit);
        if (AS_OK != result)
        {
            return result;
        }
        if (asi_bytes_are_zero(window->buffer + (page - window->position), length))
        {
            return AS_OK;
        }
    }
    *is_proven = true;
    return AS_OK;
}

/* Scans frames from `from` to the first position without a frame. */
static as_result scan(asi_segment_window *window, int64_t from, int64_t limit, last_frame *last)
{
    /* A frame that passes the limit (a truncated file) counts too: it is the last frame, and incomplete. */
    asi_segment_walk walk = asi_segment_walk_start(window, from, limit, false);
    *last = (last_frame){ .position = from, .end = from };
    asi_segment_step step;
    while (ASI_SEGMENT_FRAME == (step = asi_segment_walk_next(&walk)))
    {
        *last = (last_frame){ .position = walk.frame_position, .end = walk.position,
            .is_padding = asi_frame_is_padding(walk.frames.frame), .session_id = walk.frames.frame->session_id };
    }
    return ASI_SEGMENT_FAILED == step ? walk.failure : AS_OK;
}

as_result asi_recover_end(const asi_file_ops *files, const char *archive_dir, const asi_catalog_record *record,
    as_record_checksum checksum, asi_recovered_end *end)
{
    int64_t base = -1;
    as_result result = find_highest(files, archive_dir, record, &base);
    if (AS_OK != result)
    {
        return result;
    }
    *end = (asi_recovered_end){ .stop_position = record->start_position, .last_fragment_position = record->start_position,
        .is_proven = true };
    const int64_t start_term_base = asi_term_base(record->start_position, record->term_buffer_length);
    if (base < start_term_base)
    {
        return AS_OK; /* no file, or only detached ones before the start */
    }
    int64_t length = 0;
    result = asi_segment_path(end->path, sizeof(end->path), archive_dir, record->recording_id, base);
    result = AS_OK == result ? scan_length(files, end->path, record->segment_file_length, &length) : result;
    if (AS_OK != result)
    {
        return result;
    }
    const asi_segment_source source = { .files = files, .archive_dir = archive_dir, .recording_id = record->recording_id,
        .start_position = record->start_position, .term_length = record->term_buffer_length,
        .segment_length = record->segment_file_length, .initial_term_id = record->initial_term_id, .stream_id = record->stream_id };
    asi_segment_window window;
    asi_segment_window_init(&window, &source);
    last_frame last;
    const int64_t from = base == start_term_base ? record->start_position : base;
    const as_result scanned = scan(&window, from, base + length, &last);
    const bool has_end = AS_OK == scanned || AS_E_DATA == scanned;
    result = AS_OK;
    /* Spec: 06 §6, QUIRK - a padding frame is whole by construction. */
    if (has_end && last.end > last.position && !last.is_padding && crosses_page(base, &last))
    {
        result = prove(&window, base + length, &last, asi_checksum_function(checksum), &end->is_proven);
    }
    asi_segment_window_close(&window);
    if (AS_OK == result && has_end)
    {
        end->stop_position = last.end;
        end->last_fragment_position = last.position;
    }
    return AS_OK == result ? scanned : result;
}

/* Rewrites the end of the segment, up to `length`. After a failed sync the kernel treats bytes as durable that never reached the
 * disk; only another write cures that. The dead archive may have had such a failure with its last block. Holes stay holes,
 * because the disk may be full. */
static int rewrite_end(const asi_file_ops *files, int fd, int64_t length)
{
    uint8_t bytes[DISK_PAGE_LENGTH];
    int64_t at = length > REWRITE_LENGTH ? (length - REWRITE_LENGTH) & ~(DISK_PAGE_LENGTH - 1LL) : 0;
    int error = 0;
    for (; 0 == error && at < length; at += DISK_PAGE_LENGTH)
    {
        const int64_t step = length - at < DISK_PAGE_LENGTH ? length - at : DISK_PAGE_LENGTH;
        const int64_t count = asi_file_read_full(files, fd, bytes, step, at);
        error = count == step ? 0 : count < 0 ? (int)count : -EIO;
        if (0 == error && !asi_bytes_are_zero(bytes, step))
        {
            error = asi_file_write_all(files, fd, bytes, step, at);
        }
    }
    return error;
}

/* Puts the last segment into the state that a running archive keeps: cleared after the end, at full length, durable. */
static as_result settle_segment(const asi_file_ops *files, const asi_recover_options *options, const asi_catalog_record *record,
    int64_t base, const asi_recovered_end *end, bool is_cut)
{
    const int fd = asi_segment_open_own(files, end->path);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -fd, "cannot open segment %s", end->path);
    }
    const int64_t size = files->size(files->context, fd);
    int error = size < 0 ? (int)size : 0;
    if (0 == error && is_cut)
    {
        error = files->ftruncate(files->context, fd, end->stop_position - base);
    }
    if (0 == error && (is_cut || size < record->segment_file_length))
    {
        error = files->ftruncate(files->context, fd, record->segment_file_length);
    }
    if (0 == error && options->file_sync_level > 0)
    {
        error = rewrite_end(files, fd, end->stop_position - base);
    }
    error = 0 == error ? asi_file_sync(files, fd, options->file_sync_level) : error;
    files->close(files->context, fd);
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot settle segment %s", end->path);
}

/* Spec: 06 §7.2 - an empty segment follows a full one. On a full disk the next extension creates it. */
static as_result add_empty_segment(const asi_file_ops *files, const char *archive_dir, const asi_recover_options *options,
    const asi_catalog_record *record, int64_t base)
{
    char path[AS_PATH_MAX];
    const as_result result = asi_segment_path(path, sizeof(path), archive_dir, record->recording_id, base);
    if (AS_OK != result)
    {
        return result;
    }
    const int error = asi_segment_replace_by_empty(files, path, record->segment_file_length, options->file_sync_level);
    return 0 == error || -ENOSPC == error || -EDQUOT == error ? AS_OK :
        asi_fail_errno(AS_E_STORAGE, -error, "cannot create segment %s", path);
}

/* The archive may have died after creating a segment and before its name was durable. */
static as_result settle_names(const asi_file_ops *files, const char *archive_dir, int32_t file_sync_level)
{
    const int error = file_sync_level > 0 ? files->sync_directory(files->context, archive_dir) : 0;
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot sync archive folder %s", archive_dir);
}

static as_result recover_one(asi_catalog *catalog, const asi_file_ops *files, const char *archive_dir,
    const asi_recover_options *options, const asi_catalog_record *record)
{
    asi_recovered_end end = { .is_proven = true };
    as_result result = asi_recover_end(files, archive_dir, record, options->checksum, &end);
    /* Our archive wrote without sync and the machine lost power: old bytes or half of the new bytes are not a frame. */
    const bool is_cut = options->cuts_unproven && !options->is_last_frame_whole;
    const bool is_broken = AS_E_DATA == result && is_cut && '\0' != end.path[0];
    result = is_broken ? AS_OK : result;
    const bool is_doubtful = AS_OK == result && !end.is_proven && !options->is_last_frame_whole;
    if (is_doubtful && !is_cut)
    {
        result = asi_fail(AS_E_DATA, 0, "Found potentially incomplete last fragment straddling page boundary in file: %s; to cut it "
            "off: aeron-spark archive verify %s --repair", end.path, archive_dir);
    }
    if (is_doubtful)
    {
        end.stop_position = end.last_fragment_position;
    }
    if (AS_OK == result && '\0' != end.path[0])
    {
        const int64_t base = asi_segment_base(
            record->start_position, end.last_fragment_position, record->term_buffer_length, record->segment_file_length);
        result = settle_segment(files, options, record, base, &end, is_doubtful || is_broken);
        if (AS_OK == result && end.stop_position == base + record->segment_file_length)
        {
            result = add_empty_segment(files, archive_dir, options, record, end.stop_position);
        }
        result = AS_OK == result ? settle_names(files, archive_dir, options->file_sync_level) : result;
    }
    if (AS_OK != result)
    {
        return result;
    }
    /* On a full disk the next start repeats this; until then the mirror holds the stop. */
    const as_result stopped = asi_catalog_stop(catalog, record->recording_id, end.stop_position, options->now_ms);
    return AS_E_STORAGE == stopped ? AS_OK : stopped;
}

as_result asi_recover_catalog(asi_catalog *catalog, const asi_file_ops *files, const char *archive_dir,
    const asi_recover_options *options, int32_t *recovered)
{
    int32_t active_count = 0;
    for (int64_t i = 0; i < asi_catalog_count(catalog); i++)
    {
        asi_catalog_record record;
        asi_catalog_at(catalog, i, &record);
        if (AS_NULL_VALUE != record.stop_position || AS_OK != asi_recording_check_untrusted(&record))
        {
            continue;
        }
        const as_result result = recover_one(catalog, files, archive_dir, options, &record);
        if (AS_OK != result)
        {
            return result;
        }
        active_count++;
    }
    if (NULL != recovered)
    {
        *recovered = active_count;
    }
    return AS_OK;
}

/* -- leftovers ------------------------------------------------------------------------------------------------------------ */

typedef struct leftover_search
{
    const asi_file_ops *files;
    const char *archive_dir;
    const int64_t *deleted;
    int64_t deleted_count;
    int64_t highest_id;
    bool is_clean;
} leftover_search;

static int compare_ids(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a;
    const int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right ? 1 : 0;
}

static bool delete_leftover(void *context, const char *name)
{
    leftover_search *search = context;
    int64_t id;
    int64_t base;
    const asi_segment_name kind = asi_segment_name_parse(name, &id, &base);
    if (ASI_SEGMENT_NAME_LIVE != kind && ASI_SEGMENT_NAME_DELETED != kind)
    {
        return true;
    }
    search->highest_id = id > search->highest_id && id < INT64_MAX - 1 ? id : search->highest_id; /* above it there are no ids */
    if (NULL != bsearch(&id, search->deleted, (size_t)search->deleted_count, sizeof(id), compare_ids))
    {
        char path[AS_PATH_MAX];
        const bool is_short = snprintf(path, sizeof(path), "%s/%s", search->archive_dir, name) < (int)sizeof(path);
        /* A file that can't be deleted only uses space; the next start tries again. */
        search->is_clean = is_short && 0 == search->files->unlink(search->files->context, path) && search->is_clean;
    }
    return true;
}

as_result asi_recover_leftovers(asi_catalog *catalog, const asi_file_ops *files, const char *archive_dir, bool *is_clean)
{
    int64_t count;
    int64_t *deleted = asi_catalog_deleted(catalog, &count);
    if (NULL == deleted)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the recordings of %s", archive_dir);
    }
    leftover_search search = { .files = files, .archive_dir = archive_dir, .deleted = deleted, .deleted_count = count,
        .highest_id = -1, .is_clean = true };
    const int error = files->readdir(files->context, archive_dir, delete_leftover, &search);
    free(deleted);
    *is_clean = 0 == error && search.is_clean;
    return 0 == error ? asi_catalog_skip_ids(catalog, search.highest_id + 1) :
        asi_fail_errno(AS_E_STORAGE, -error, "cannot list archive folder %s", archive_dir);
}
