/* Migrates folders of older storage versions. Spec: 06 §3.4, §13; the behaviour was observed on the stock tool.
 *
 *   0 -> 1  renames segments from their index to the position of their first byte
 *   1 -> 2  counts the positions of recordings that began after their first term from their start
 *   2 -> 3  stores the catalog's records with the length that they need, and the next recording id in the header
 * Each step first creates an empty marker file migration-<from>-to-<to>.dat and finally stores the version. A marker of a step
 * that is still to do shows that the step was interrupted. Two faults of stock are avoided: segments are renamed in an order in
 * which none overwrites another, and a recording that 0 -> 1 has renamed by position is not moved again by 1 -> 2. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/catalog_format.h"
#include "store/catalog_scan.h"
#include "store/segment_layout.h"
#include "tools/compact.h"

#define OLD_ALIGNMENT 1024
#define MAJOR(number) ((number) << 16)

typedef struct migration
{
    const asi_file_ops *files;
    const char *dir;
    char catalog_path[AS_PATH_MAX];
    asi_tool_lock lock;
    int32_t *mark_version; /* in the lock's mapping; NULL: no mark file */
    int32_t version;
    uint8_t *bytes;        /* owned: the catalog */
    int64_t length;
    bool is_dry;
    as_on_text on_step;
    void *context;
} migration;

__attribute__((format(printf, 2, 3))) static void report(const migration *run, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (NULL != run->on_step)
    {
        run->on_step(run->context, text);
    }
}

/* -- segments ------------------------------------------------------------------------------------------------------------- */

typedef struct segment_list
{
    int64_t recording_id;
    int64_t *numbers; /* owned: the numbers after the id in the names */
    int64_t count;
    int64_t capacity;
    bool is_out_of_memory;
} segment_list;

static bool take_name(void *context, const char *name)
{
    segment_list *list = context;
    int64_t recording_id = -1;
    int64_t number = -1;
    if (ASI_SEGMENT_NAME_LIVE != asi_segment_name_parse(name, &recording_id, &number) || recording_id != list->recording_id)
    {
        return true;
    }
    if (list->count == list->capacity)
    {
        const int64_t capacity = 0 == list->capacity ? 64 : list->capacity * 2;
        int64_t *numbers = realloc(list->numbers, (size_t)capacity * sizeof(*numbers));
        list->is_out_of_memory = NULL == numbers;
        if (list->is_out_of_memory)
        {
            return false;
        }
        list->numbers = numbers;
        list->capacity = capacity;
    }
    list->numbers[list->count++] = number;
    return true;
}

static int descending(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a;
    const int64_t right = *(const int64_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

static as_result rename_segment(const migration *run, int64_t recording_id, int64_t from, int64_t to)
{
    char old_path[AS_PATH_MAX];
    char new_path[AS_PATH_MAX];
    as_result result = asi_segment_path(old_path, sizeof(old_path), run->dir, recording_id, from);
    result = AS_OK == result ? asi_segment_path(new_path, sizeof(new_path), run->dir, recording_id, to) : result;
    if (AS_OK != result)
    {
        return result;
    }
    report(run, "(recordingId=%" PRId64 ") renaming %s -> %s", recording_id, old_path, new_path);
    const int error = run->is_dry ? 0 : run->files->rename(run->files->context, old_path, new_path);
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot rename %s to %s", old_path, new_path);
}

/* Renames segments to number * scale + shift. Starts with the highest, because no position gets smaller. */
static as_result rename_segments(
    const migration *run, const asi_catalog_record *record, const segment_list *list, int64_t scale, int64_t shift)
{
    as_result result = AS_OK;
    for (int64_t i = 0; AS_OK == result && i < list->count; i++)
    {
        const int64_t number = list->numbers[i];
        if (number > ((int64_t)record->term_buffer_length << 31) / scale)
        {
            return asi_fail(AS_E_DATA, 0, "recording %" PRId64 ": segment %" PRId64 " can't be; move the file away",
                record->recording_id, number);
        }
        const int64_t to = number * scale + shift;
        result = to == number ? AS_OK : rename_segment(run, record->recording_id, number, to);
    }
    return result;
}

static as_result migrate_segments(const migration *run, const asi_catalog_record *record, int32_t to_version)
{
    segment_list list = { .recording_id = record->recording_id };
    const int error = run->files->readdir(run->files->context, run->dir, take_name, &list);
    as_result result = error < 0 ? asi_fail_errno(AS_E_STORAGE, -error, "cannot list archive folder %s", run->dir) :
        list.is_out_of_memory ? asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the segments of %s", run->dir) : AS_OK;
    if (AS_OK == result && list.count > 0)
    {
        qsort(list.numbers, (size_t)list.count, sizeof(list.numbers[0]), descending);
        const int64_t segment = record->segment_file_length;
        const int64_t floored = record->start_position / segment * segment;
        const int64_t term_base = asi_term_base(record->start_position, record->term_buffer_length);
        const int64_t lowest = list.numbers[list.count - 1];
        if (MAJOR(1) == to_version)
        {
            result = rename_segments(run, record, &list, segment, floored);
        }
        else if (0 != term_base && record->term_buffer_length != segment && lowest != term_base)
        {
            result = 0 == lowest || floored == lowest ? rename_segments(run, record, &list, 1, term_base - lowest) :
                asi_fail(AS_E_DATA, 0, "recording %" PRId64 " begins at position %" PRId64 ", but its first segment is %" PRId64
                    ": restore the segments before it", record->recording_id, record->start_position, lowest);
        }
    }
    free(list.numbers);
    return result;
}

/* -- catalog -------------------------------------------------------------------------------------------------------------- */

static asi_catalog_scan old_scan(const migration *run)
{
    return (asi_catalog_scan){ .bytes = run->bytes, .length = run->length, .path = run->catalog_path, .version = run->version,
        .alignment = OLD_ALIGNMENT, .offset = OLD_ALIGNMENT, .last_recording_id = -1 };
}

static as_result rename_all(const migration *run, int32_t to_version)
{
    asi_catalog_scan scan = old_scan(run);
    asi_catalog_record record;
    as_result result;
    while (AS_OK == (result = asi_catalog_scan_next_untrusted(&scan, &record)))
    {
        /* Include segments of records that are not VALID, because these can be made valid again. */
        if (AS_OK == asi_recording_check_untrusted(&record))
        {
            result = migrate_segments(run, &record, to_version);
            if (AS_OK != result)
            {
                return result;
            }
        }
        else
        {
            report(run, "(recordingId=%" PRId64 ") ERR: skipped, %s", record.recording_id, as_error_text());
        }
    }
    return AS_AGAIN == result ? AS_OK : result;
}

/* Length of a record's header and texts, without the old padding. */
static int64_t needed_length(const asi_catalog_record *record)
{
    return asi_align_i64((int64_t)RECORD_TEXTS + 12 + record->stripped_channel.length + record->original_channel.length +
        record->source_identity.length, ASI_CATALOG_ALIGNMENT);
}

/* Updates a record's checksum, because it covers the padding, which changes. */
static void refresh_checksum(const uint8_t *old, uint8_t *frame, int64_t frame_length)
{
    static const as_record_checksum kinds[] = { AS_CHECKSUM_CRC32, AS_CHECKSUM_CRC32C };
    const int32_t stored = asi_get_i32(old + RECORD_CHECKSUM);
    for (size_t i = 0; 0 != stored && i < sizeof(kinds) / sizeof(kinds[0]); i++)
    {
        const asi_frame_checksum function = asi_checksum_function(kinds[i]);
        if ((int32_t)function(old + RECORD_BODY, asi_get_i32(old + RECORD_LENGTH)) == stored)
        {
            asi_put_i32(frame + RECORD_CHECKSUM, (int32_t)function(frame + RECORD_BODY, frame_length - RECORD_BODY));
        }
    }
}

static as_result rewrite_catalog(migration *run)
{
    uint8_t *packed = calloc(1, (size_t)run->length + ASI_CATALOG_HEADER_LENGTH);
    if (NULL == packed)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for %s", run->catalog_path);
    }
    asi_catalog_scan scan = old_scan(run);
    asi_catalog_record record;
    int64_t length = ASI_CATALOG_HEADER_LENGTH;
    int64_t count = 0;
    as_result result;
    while (AS_OK == (result = asi_catalog_scan_next_untrusted(&scan, &record)))
    {
        const uint8_t *old = run->bytes + record.offset;
        uint8_t *frame = packed + length;
        const int64_t frame_length = needed_length(&record);
        const int64_t kept = frame_length < record.frame_length ? frame_length : record.frame_length;
        memcpy(frame, old, (size_t)kept);
        asi_put_i32(frame + RECORD_LENGTH, (int32_t)(frame_length - ASI_CATALOG_RECORD_HEADER_LENGTH));
        refresh_checksum(old, frame, frame_length);
        length += frame_length;
        count++;
    }
    if (AS_AGAIN == result)
    {
        asi_put_i32(packed + CATALOG_VERSION, MAJOR(3));
        asi_put_i32(packed + CATALOG_LENGTH, ASI_CATALOG_HEADER_LENGTH);
        asi_put_i64(packed + CATALOG_NEXT_RECORDING_ID, scan.last_recording_id + 1);
        asi_put_i32(packed + CATALOG_RECORD_ALIGNMENT, ASI_CATALOG_ALIGNMENT);
        report(run, "rewriting %s: %" PRId64 " recordings, next recording id %" PRId64, run->catalog_path, count,
            scan.last_recording_id + 1);
        char temporary[AS_PATH_MAX + 16];
        snprintf(temporary, sizeof(temporary), "%s.updated", run->catalog_path);
        result = run->is_dry ? AS_OK :
            asi_tool_replace_file(run->files, run->dir, temporary, run->catalog_path, packed, length);
    }
    free(packed);
    return result;
}

/* -- steps ---------------------------------------------------------------------------------------------------------------- */

static as_result make_marker(const migration *run, int32_t to_version)
{
    char path[AS_PATH_MAX];
    if ((size_t)snprintf(path, sizeof(path), "%s/migration-%d-to-%d.dat", run->dir, run->version, to_version) >= sizeof(path))
    {
        return asi_fail(AS_E_USAGE, ENAMETOOLONG, "archive folder name is too long: %s", run->dir);
    }
    const asi_file_ops *files = run->files;
    const int fd = files->open(files->context, path, run->is_dry ? ASI_FILE_READ : ASI_FILE_CREATE_NEW);
    if (fd >= 0)
    {
        files->close(files->context, fd);
    }
    if (-EEXIST == fd || (run->is_dry && fd >= 0))
    {
        return asi_fail(AS_E_DATA, 0, "%s is there, so this step was begun before and cut short: restore the folder from a copy, "
            "and migrate that", path);
    }
    return fd >= 0 || run->is_dry ? AS_OK : asi_fail_errno(AS_E_STORAGE, -fd, "cannot create %s", path);
}

static as_result store_version(migration *run, int32_t version)
{
    run->version = version;
    if (run->is_dry)
    {
        return AS_OK;
    }
    const asi_file_ops *files = run->files;
    const int fd = files->open(files->context, run->catalog_path, ASI_FILE_WRITE);
    int error = fd < 0 ? fd : asi_file_write_all(files, fd, &version, sizeof(version), CATALOG_VERSION);
    error = 0 == error ? files->fsync(files->context, fd) : error;
    if (fd >= 0)
    {
        files->close(files->context, fd);
    }
    if (0 == error && NULL != run->mark_version)
    {
        *run->mark_version = version;
        asi_map_sync(&run->lock.map);
    }
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot write %s", run->catalog_path);
}

static as_result run_steps(migration *run, int32_t *steps)
{
    as_result result = AS_OK;
    for (int32_t to = ASI_ARCHIVE_STORAGE_MAJOR(run->version) + 1;
         AS_OK == result && to <= ASI_ARCHIVE_STORAGE_MAJOR(ASI_ARCHIVE_STORAGE_VERSION); to++)
    {
        report(run, "Migration step to %d(Major %d Minor 0 Patch 0)", MAJOR(to), to);
        result = make_marker(run, MAJOR(to));
        result = AS_OK == result ? (3 == to ? rewrite_catalog(run) : rename_all(run, MAJOR(to))) : result;
        result = AS_OK == result ? store_version(run, MAJOR(to)) : result;
        *steps += AS_OK == result;
    }
    return result;
}

static as_result load(migration *run)
{
    const asi_file_ops *files = run->files;
    if ((size_t)snprintf(run->catalog_path, sizeof(run->catalog_path), "%s/" ASI_CATALOG_FILE, run->dir) >= sizeof(run->catalog_path))
    {
        return asi_fail(AS_E_USAGE, ENAMETOOLONG, "archive folder name is too long: %s", run->dir);
    }
    const int fd = files->open(files->context, run->catalog_path, ASI_FILE_READ);
    if (fd < 0)
    {
        return asi_catalog_fail_open(run->dir, run->catalog_path, fd);
    }
    as_result result = asi_catalog_read(files, fd, run->catalog_path, &run->bytes, &run->length);
    files->close(files->context, fd);
    if (AS_OK == result && run->length < ASI_CATALOG_HEADER_LENGTH)
    {
        result = asi_fail(AS_E_DATA, 0, "%s has %" PRId64 " bytes, too few for a catalog", run->catalog_path, run->length);
    }
    asi_mark_info mark;
    const as_result marked = AS_OK == result ? asi_mark_read_any_untrusted(run->dir, &mark) : AS_AGAIN;
    if (AS_OK != result || (AS_OK != marked && AS_AGAIN != marked))
    {
        return AS_OK != result ? result : marked;
    }
    const int32_t catalog_version = asi_get_i32(run->bytes + CATALOG_VERSION);
    const bool has_mark = AS_OK == marked && 0 != mark.version;
    run->version = has_mark ? mark.version : catalog_version;
    if (AS_OK == marked && NULL != run->lock.map.base)
    {
        run->mark_version = (int32_t *)(void *)(run->lock.map.base + mark.block_offset + ASI_MARK_BLOCK_VERSION);
    }
    char mark_text[64] = "none";
    if (has_mark)
    {
        snprintf(mark_text, sizeof(mark_text), "%d(Major %d Minor %d Patch %d)", mark.version, mark.version >> 16,
            (mark.version >> 8) & 0xFF, mark.version & 0xFF);
    }
    report(run, "MarkFile version=%s", mark_text);
    report(run, "Catalog version=%d(Major %d Minor %d Patch %d)", catalog_version, catalog_version >> 16,
        (catalog_version >> 8) & 0xFF, catalog_version & 0xFF);
    report(run, "Latest version=%d(Major %d Minor %d Patch %d)", ASI_ARCHIVE_STORAGE_VERSION, ASI_ARCHIVE_STORAGE_VERSION >> 16,
        (ASI_ARCHIVE_STORAGE_VERSION >> 8) & 0xFF, ASI_ARCHIVE_STORAGE_VERSION & 0xFF);
    const int32_t latest = ASI_ARCHIVE_STORAGE_MAJOR(ASI_ARCHIVE_STORAGE_VERSION);
    const int32_t major = ASI_ARCHIVE_STORAGE_MAJOR(run->version);
    const int32_t catalog_major = ASI_ARCHIVE_STORAGE_MAJOR(catalog_version);
    /* A step stores the catalog's version, then the mark file's. A step interrupted between the two is complete. */
    if (major < 0 || major > latest || (catalog_major != major && !(major < latest && catalog_major == major + 1)))
    {
        return asi_fail(AS_E_DATA, 0, "%s: the versions of mark file and catalog do not go together, or are of later software: "
            "nothing was changed", run->dir);
    }
    if (catalog_major > major)
    {
        run->version = catalog_version;
        if (NULL != run->mark_version)
        {
            *run->mark_version = catalog_version;
        }
    }
    return AS_OK;
}

as_result as_archive_migrate(const char *archive_dir, bool is_dry, as_on_text on_step, void *context, int32_t *steps)
{
    migration run = { .files = asi_file_ops_posix(), .dir = archive_dir, .is_dry = is_dry, .on_step = on_step,
        .context = context };
    *steps = 0;
    as_result result = is_dry ? AS_OK : asi_tool_lock_take(&run.lock, archive_dir);
    result = AS_OK == result ? load(&run) : result;
    result = AS_OK == result ? run_steps(&run, steps) : result;
    asi_tool_lock_release(&run.lock);
    free(run.bytes);
    return result;
}
