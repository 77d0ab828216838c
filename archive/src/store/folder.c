/* as_folder: opens an archive folder and reads its descriptors; see folder.h and aeron_spark/as_archive.h.
 *
 * The archive may write the catalog meanwhile. It writes records from low to high addresses and the header length last, so a scan
 * sees whole records. Our archive replaces a record by renaming a new file. A stock archive moves records within the file, so a
 * failed scan is repeated. */
#include "store/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/catalog_format.h"
#include "store/catalog_scan.h"
#include "store/segment_layout.h"

#define CATALOG_ATTEMPTS 5

void as_folder_options_init(as_folder_options *options)
{
    *options = (as_folder_options){ .aeron_dir = NULL, .checksum = AS_CHECKSUM_AUTO };
}

/* -- catalog -------------------------------------------------------------------------------------------------------------- */

static as_result read_catalog(
    const asi_file_ops *files, const char *archive_dir, char *path, size_t capacity, uint8_t **bytes, int64_t *length)
{
    if (snprintf(path, capacity, "%s/" ASI_CATALOG_FILE, archive_dir) >= (int)capacity)
    {
        return asi_fail(AS_E_USAGE, ENAMETOOLONG, "archive folder name is too long: %s", archive_dir);
    }
    const int fd = files->open(files->context, path, ASI_FILE_READ);
    if (fd < 0)
    {
        return asi_catalog_fail_open(archive_dir, path, fd);
    }
    const as_result result = asi_catalog_read(files, fd, path, bytes, length);
    files->close(files->context, fd);
    return result;
}

static char *keep_text(char **at, asi_text text)
{
    char *kept = *at;
    memcpy(kept, text.at, (size_t)text.length);
    kept[text.length] = '\0';
    *at += text.length + 1;
    return kept;
}

typedef struct lost_search
{
    int64_t last_recording_id; /* of the catalog */
    int64_t lost_id;           /* -1: none found */
} lost_search;

static bool is_not_lost(void *context, const char *name)
{
    lost_search *search = context;
    int64_t recording_id;
    int64_t base;
    const bool is_lost = ASI_SEGMENT_NAME_LIVE == asi_segment_name_parse(name, &recording_id, &base) &&
        recording_id > search->last_recording_id;
    search->lost_id = is_lost ? recording_id : -1;
    return !is_lost;
}

/* Where the segment files of a catalog's recordings are: in a folder, or, without one (NULL), those of the recordings in `ids`. A
 * copy of a catalog may be older than segments beside it: what it has not counted yet is not lost. */
typedef struct segments_of
{
    const as_folder *folder;
    const int64_t *ids;
    int64_t count;
} segments_of;

/* Returns 0, or a negative errno. */
static int search_lost(const segments_of *segments, const asi_catalog_scan *ended, lost_search *search)
{
    const as_folder *folder = segments->folder;
    if (NULL != folder)
    {
        return folder->files->readdir(folder->files->context, folder->path, is_not_lost, search);
    }
    for (int64_t i = 0; i < segments->count; i++)
    {
        const int64_t id = segments->ids[i];
        search->lost_id = id > ended->last_recording_id && id < ended->next_recording_id ? id : search->lost_id;
    }
    return 0;
}

/* A file truncated right after a record looks like a compacted catalog. The segment files distinguish the two, because compaction
 * deletes the segments of dropped records. */
static as_result check_not_cut(const segments_of *segments, const asi_catalog_scan *ended)
{
    lost_search search = { .last_recording_id = ended->last_recording_id, .lost_id = -1 };
    const bool is_cut_or_full = ended->length - ended->offset < ASI_CATALOG_RECORD_HEADER_LENGTH;
    if (!is_cut_or_full || ended->last_recording_id + 1 >= ended->next_recording_id)
    {
        return AS_OK;
    }
    const int error = search_lost(segments, ended, &search);
    if (error < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, -error, "cannot list archive folder %s", segments->folder->path);
    }
    return -1 == search.lost_id ? AS_OK : asi_fail(AS_E_DATA, 0,
        "%s is truncated: it ends with recording %" PRId64 ", but there are segments of recording %" PRId64
        "; restore it from a copy", ended->path, ended->last_recording_id, search.lost_id);
}

/* Makes two passes over the same bytes: counts the recordings, then stores them. */
static as_result keep_recordings(const segments_of *segments, asi_catalog_scan scan, asi_folder_view *view)
{
    asi_catalog_scan counting = scan;
    asi_catalog_record record;
    as_result result;
    int64_t count = 0;
    int64_t text_bytes = 0;
    while (AS_OK == (result = asi_catalog_scan_next_untrusted(&counting, &record)))
    {
        count++;
        text_bytes += (int64_t)record.stripped_channel.length + record.original_channel.length + record.source_identity.length + 3;
    }
    result = AS_AGAIN == result ? asi_catalog_scan_check_end_untrusted(&counting) : result;
    result = AS_OK == result ? check_not_cut(segments, &counting) : result;
    if (AS_OK != result)
    {
        return result;
    }
    view->recordings = calloc((size_t)count + 1, sizeof(view->recordings[0]));
    view->texts = malloc((size_t)text_bytes + 1);
    if (NULL == view->recordings || NULL == view->texts)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for %" PRId64 " recordings of %s", count, scan.path);
    }
    char *texts = view->texts;
    while (AS_OK == asi_catalog_scan_next_untrusted(&scan, &record))
    {
        view->invalid_count += ASI_RECORDING_INVALID == record.state;
        if (ASI_RECORDING_INVALID != record.state && ASI_RECORDING_DELETED != record.state)
        {
            asi_folder_recording *recording = &view->recordings[view->count++];
            recording->stripped_channel = keep_text(&texts, record.stripped_channel);
            recording->original_channel = keep_text(&texts, record.original_channel);
            recording->source_identity = keep_text(&texts, record.source_identity);
            recording->record = record;
        }
    }
    return AS_OK;
}

static void free_view(asi_folder_view *view)
{
    free(view->recordings);
    free(view->texts);
    *view = (asi_folder_view){ 0 };
}

/* `view` is empty after a failure. */
static as_result view_catalog(
    const segments_of *segments, const uint8_t *bytes, int64_t length, const char *path, asi_folder_view *view)
{
    asi_catalog_scan scan;
    as_result result = asi_catalog_scan_start_untrusted(&scan, bytes, length, path);
    result = AS_OK == result ? keep_recordings(segments, scan, view) : result;
    if (AS_OK != result)
    {
        free_view(view);
    }
    return result;
}

static as_result scan_catalog(const as_folder *folder, asi_folder_view *view)
{
    char path[AS_PATH_MAX];
    uint8_t *bytes = NULL;
    int64_t length = 0;
    as_result result = read_catalog(folder->files, folder->path, path, sizeof(path), &bytes, &length);
    if (AS_OK == result)
    {
        result = view_catalog(&(segments_of){ .folder = folder }, bytes, length, path, view);
        free(bytes);
    }
    return result;
}

as_result asi_folder_read_mark(const as_folder *folder, asi_mark_info *mark, bool *has_mark, bool *is_live)
{
    const as_result result = asi_mark_read_untrusted(folder->path, mark);
    if (AS_OK != result && AS_AGAIN != result)
    {
        return result;
    }
    *has_mark = AS_OK == result;
    *is_live = *has_mark && asi_mark_is_live(mark, asi_clock_ms(&folder->clock));
    return AS_OK;
}

/* True if only positions and the stop time differ. */
static bool is_same_recording(const asi_folder_recording *a, const asi_folder_recording *b)
{
    const asi_catalog_record *x = &a->record;
    const asi_catalog_record *y = &b->record;
    return x->recording_id == y->recording_id && x->start_timestamp_ms == y->start_timestamp_ms &&
        x->initial_term_id == y->initial_term_id && x->segment_file_length == y->segment_file_length &&
        x->term_buffer_length == y->term_buffer_length && x->mtu_length == y->mtu_length && x->session_id == y->session_id &&
        x->stream_id == y->stream_id && 0 == strcmp(a->stripped_channel, b->stripped_channel) &&
        0 == strcmp(a->original_channel, b->original_channel) && 0 == strcmp(a->source_identity, b->source_identity);
}

/* Both views are in id order. */
static void number_revisions(const asi_folder_view *before, asi_folder_view *now, int64_t *last_revision)
{
    int64_t old = 0;
    for (int64_t i = 0; i < now->count; i++)
    {
        asi_folder_recording *recording = &now->recordings[i];
        while (old < before->count && before->recordings[old].record.recording_id < recording->record.recording_id)
        {
            old++;
        }
        const bool is_same = old < before->count && is_same_recording(&before->recordings[old], recording);
        recording->revision = is_same ? before->recordings[old].revision : ++*last_revision;
    }
}

as_result as_folder_refresh(as_folder *folder)
{
    asi_folder_view view = { 0 };
    as_result result = AS_E_DATA;
    for (int attempt = 0; AS_E_DATA == result && attempt < CATALOG_ATTEMPTS; attempt++)
    {
        result = scan_catalog(folder, &view);
    }
    result = AS_OK == result ? asi_folder_read_mark(folder, &view.mark, &view.has_mark, &view.is_live) : result;
    if (AS_OK != result)
    {
        free_view(&view);
        return result;
    }
    number_revisions(&folder->view, &view, &folder->last_revision);
    free_view(&folder->view);
    folder->view = view;
    return AS_OK;
}

as_result as_folder_open(const char *path, const as_folder_options *options, as_folder **folder_out)
{
    as_folder_options defaults;
    as_folder_options_init(&defaults);
    options = NULL != options ? options : &defaults;
    const size_t path_length = strlen(path);
    if (0 == path_length || path_length >= AS_PATH_MAX || (int)options->checksum < AS_CHECKSUM_AUTO ||
        options->checksum > AS_CHECKSUM_CRC32C)
    {
        return asi_fail(AS_E_USAGE, EINVAL,
            "archive folder name has %zu bytes (1 to %d are possible), checksum option is %d (0 to 3)",
            path_length, AS_PATH_MAX - 1, (int)options->checksum);
    }
    as_folder *folder = calloc(1, sizeof(*folder));
    if (NULL == folder)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the folder %s", path);
    }
    folder->files = asi_file_ops_posix();
    folder->clock = asi_clock_system();
    folder->checksum = options->checksum;
    folder->without_counters = options->without_counters;
    memcpy(folder->path, path, path_length + 1);
    as_result result = AS_OK;
    if (NULL != options->aeron_dir && '\0' != options->aeron_dir[0])
    {
        folder->aeron_dir = strdup(options->aeron_dir);
        result = NULL != folder->aeron_dir ? AS_OK : asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the folder %s", path);
    }
    result = AS_OK == result ? as_folder_refresh(folder) : result;
    if (AS_OK != result)
    {
        as_folder_close(folder);
        return result;
    }
    *folder_out = folder;
    return AS_OK;
}

void as_folder_close(as_folder *folder)
{
    if (NULL != folder)
    {
        asi_position_counters_close(&folder->counters);
        free_view(&folder->view);
        free(folder->aeron_dir);
        free(folder);
    }
}

const char *asi_folder_aeron_dir(const as_folder *folder, const asi_mark_info *mark)
{
    return NULL != folder->aeron_dir ? folder->aeron_dir : mark->aeron_dir;
}

as_result as_folder_get_info(const as_folder *folder, as_folder_info *info)
{
    const asi_folder_view *view = &folder->view;
    *info = (as_folder_info){ .archive_id = view->mark.archive_id, .pid = view->mark.pid,
        .activity_timestamp_ms = view->mark.activity_timestamp_ms, .has_mark_file = view->has_mark, .is_live = view->is_live,
        .local_control_stream_id = view->mark.local_control_stream_id, .invalid_count = view->invalid_count,
        .aeron_dir = asi_folder_aeron_dir(folder, &view->mark) };
    return AS_OK;
}

/* -- descriptors ---------------------------------------------------------------------------------------------------------- */

int64_t as_folder_recording_count(const as_folder *folder) { return folder->view.count; }

static void describe(const asi_folder_recording *from, as_recording *to)
{
    const asi_catalog_record *record = &from->record;
    *to = (as_recording){ .recording_id = record->recording_id, .start_timestamp_ms = record->start_timestamp_ms,
        .stop_timestamp_ms = record->stop_timestamp_ms, .start_position = record->start_position,
        .stop_position = record->stop_position, .initial_term_id = record->initial_term_id,
        .segment_file_length = record->segment_file_length, .term_buffer_length = record->term_buffer_length,
        .mtu_length = record->mtu_length, .session_id = record->session_id, .stream_id = record->stream_id,
        .stripped_channel = from->stripped_channel, .original_channel = from->original_channel,
        .source_identity = from->source_identity };
}

as_result as_folder_recording_at(const as_folder *folder, int64_t index, as_recording *recording)
{
    if (index < 0 || index >= folder->view.count)
    {
        return asi_fail(AS_E_USAGE, 0, "recording index %" PRId64 " is not below the count %" PRId64, index, folder->view.count);
    }
    describe(&folder->view.recordings[index], recording);
    return AS_OK;
}

as_result as_catalog_list(const char *name, const uint8_t *bytes, int64_t length, const int64_t *with_segments, int64_t count,
    as_on_recording on_recording, void *context)
{
    asi_folder_view view = { 0 };
    const segments_of segments = { .ids = with_segments, .count = count };
    as_result result = view_catalog(&segments, bytes, length, name, &view);
    bool is_wanted = true;
    for (int64_t i = 0; AS_OK == result && is_wanted && i < view.count; i++)
    {
        as_recording recording;
        describe(&view.recordings[i], &recording);
        result = asi_recording_check_untrusted(&view.recordings[i].record);
        is_wanted = AS_OK == result && on_recording(context, &recording);
    }
    result = AS_E_DATA == result ? asi_fail_in(result, "%s", name) : result;
    free_view(&view);
    return result;
}

void as_folder_get_columns(const as_folder *folder, const as_folder_columns *columns)
{
    for (int64_t i = 0; i < folder->view.count; i++)
    {
        const asi_folder_recording *recording = &folder->view.recordings[i];
        const bool is_sound = AS_OK == asi_recording_check_untrusted(&recording->record);
        columns->recording_id[i] = recording->record.recording_id;
        columns->revision[i] = recording->revision;
        columns->start_position[i] = recording->record.start_position;
        columns->stop_position[i] = is_sound ? recording->record.stop_position : AS_NULL_VALUE;
    }
}

static as_result fail_unknown(const as_folder *folder, int64_t recording_id)
{
    char ids[256] = "";
    size_t length = 0;
    for (int64_t i = 0; i < folder->view.count; i++)
    {
        if (length > sizeof(ids) - 48)
        {
            snprintf(ids + length, sizeof(ids) - length, ", ... (%" PRId64 " in all)", folder->view.count);
            break;
        }
        length += (size_t)snprintf(
            ids + length, sizeof(ids) - length, "%s%" PRId64, 0 == i ? "" : ", ", folder->view.recordings[i].record.recording_id);
    }
    return asi_fail(AS_E_USAGE, 0,
        "unknown recording id: %" PRId64 "; the archive folder %s has %s%s", recording_id, folder->path,
        0 == folder->view.count ? "no recordings" : "recordings ", ids);
}

as_result asi_folder_find(const as_folder *folder, int64_t recording_id, const asi_folder_recording **recording)
{
    int64_t low = 0;
    int64_t high = folder->view.count;
    while (low < high)
    {
        const int64_t middle = low + (high - low) / 2;
        if (folder->view.recordings[middle].record.recording_id < recording_id)
        {
            low = middle + 1;
        }
        else
        {
            high = middle;
        }
    }
    if (low >= folder->view.count || folder->view.recordings[low].record.recording_id != recording_id)
    {
        return fail_unknown(folder, recording_id);
    }
    const as_result result = asi_recording_check_untrusted(&folder->view.recordings[low].record);
    if (AS_OK != result)
    {
        return asi_fail_in(result, "%s", folder->path);
    }
    *recording = &folder->view.recordings[low];
    return AS_OK;
}

as_result as_folder_recording(const as_folder *folder, int64_t recording_id, as_recording *recording)
{
    const asi_folder_recording *found;
    const as_result result = asi_folder_find(folder, recording_id, &found);
    if (AS_OK == result)
    {
        describe(found, recording);
    }
    return result;
}

asi_segment_source asi_folder_source(const as_folder *folder, const asi_catalog_record *record)
{
    return asi_segment_source_of(folder->files, folder->path, record);
}

asi_segment_source asi_segment_source_of(const asi_file_ops *files, const char *archive_dir, const asi_catalog_record *record)
{
    return (asi_segment_source){ .files = files, .archive_dir = archive_dir, .recording_id = record->recording_id,
        .start_position = record->start_position, .term_length = record->term_buffer_length,
        .segment_length = record->segment_file_length, .initial_term_id = record->initial_term_id, .stream_id = record->stream_id,
        .mtu_length = record->mtu_length };
}

/* -- the entry as it is now ----------------------------------------------------------------------------------------------- */

/* Reads the entry's bytes at its last known offset. Returns NULL, `small`, or memory that the caller frees. */
static uint8_t *load_entry(const asi_file_ops *files, int fd, const asi_catalog_record *record, uint8_t *small,
    int64_t small_length)
{
    uint8_t *frame = record->frame_length <= small_length ? small : malloc((size_t)record->frame_length);
    const bool is_read = fd >= 0 && NULL != frame &&
        record->frame_length == asi_file_read_full(files, fd, frame, record->frame_length, record->offset);
    if (!is_read && frame != small)
    {
        free(frame);
    }
    return is_read ? frame : NULL;
}

int asi_catalog_reread_open(const asi_file_ops *files, const char *archive_dir)
{
    char path[AS_PATH_MAX];
    const bool is_fit = snprintf(path, sizeof(path), "%s/" ASI_CATALOG_FILE, archive_dir) < (int)sizeof(path);
    return is_fit ? files->open(files->context, path, ASI_FILE_READ) : -ENAMETOOLONG;
}

static void close_catalog(const asi_file_ops *files, int fd)
{
    if (fd >= 0)
    {
        files->close(files->context, fd);
    }
}

bool asi_catalog_entry_is_checked(const asi_file_ops *files, const char *archive_dir, const asi_catalog_record *record)
{
    uint8_t small[1024];
    const int fd = 0 != record->checksum ? asi_catalog_reread_open(files, archive_dir) : -1;
    uint8_t *frame = load_entry(files, fd, record, small, sizeof(small));
    close_catalog(files, fd);
    const int64_t length = record->frame_length - RECORD_BODY;
    const bool is_checked = NULL != frame && ((uint32_t)record->checksum == asi_crc32(frame + RECORD_BODY, length) ||
        (uint32_t)record->checksum == asi_crc32c(frame + RECORD_BODY, length));
    if (frame != small)
    {
        free(frame);
    }
    return is_checked;
}

/* Clears texts and descriptor, which would point into freed memory. */
static void forget_texts(asi_catalog_record *record)
{
    record->stripped_channel = record->original_channel = record->source_identity = (asi_text){ 0 };
    record->descriptor = NULL;
    record->descriptor_length = 0;
}

/* Reads the entry at its last known offset; false if it is not there any more. */
static bool reread_in_place(const asi_file_ops *files, int fd, asi_catalog_record *record)
{
    uint8_t small[1024];
    uint8_t *frame = load_entry(files, fd, record, small, sizeof(small));
    asi_catalog_record now;
    const bool is_same = NULL != frame && asi_catalog_parse_untrusted(frame, record->frame_length, &now) &&
        now.recording_id == record->recording_id && ASI_RECORDING_VALID == now.state &&
        AS_OK == asi_recording_check_untrusted(&now);
    if (is_same)
    {
        now.offset = record->offset;
        *record = now;
    }
    if (frame != small)
    {
        free(frame);
    }
    return is_same;
}

static as_result reread_by_scan(const asi_file_ops *files, const char *archive_dir, asi_catalog_record *record)
{
    char path[AS_PATH_MAX];
    uint8_t *bytes = NULL;
    int64_t length = 0;
    as_result result = read_catalog(files, archive_dir, path, sizeof(path), &bytes, &length);
    if (AS_OK != result)
    {
        return result;
    }
    asi_catalog_scan scan;
    asi_catalog_record now;
    result = asi_catalog_scan_start_untrusted(&scan, bytes, length, path);
    while (AS_OK == result && AS_OK == (result = asi_catalog_scan_next_untrusted(&scan, &now)))
    {
        if (now.recording_id == record->recording_id && ASI_RECORDING_VALID == now.state)
        {
            result = asi_recording_check_untrusted(&now);
            break;
        }
    }
    if (AS_OK == result)
    {
        *record = now;
    }
    free(bytes);
    return AS_AGAIN != result ? result : asi_fail(AS_E_DATA, 0,
        "recording %" PRId64 " of %s is gone: it was purged or marked invalid "
        "meanwhile", record->recording_id, archive_dir);
}

as_result asi_catalog_reread_in(const asi_file_ops *files, const char *archive_dir, int fd, asi_catalog_record *record)
{
    as_result result = AS_E_DATA;
    for (int attempt = 0; AS_E_DATA == result && attempt < CATALOG_ATTEMPTS; attempt++)
    {
        result = reread_in_place(files, fd, record) ? AS_OK : reread_by_scan(files, archive_dir, record);
    }
    if (AS_OK == result)
    {
        forget_texts(record);
    }
    return result;
}

as_result asi_catalog_reread(const asi_file_ops *files, const char *archive_dir, asi_catalog_record *record)
{
    const int fd = asi_catalog_reread_open(files, archive_dir);
    const as_result result = asi_catalog_reread_in(files, archive_dir, fd, record);
    close_catalog(files, fd);
    return result;
}
