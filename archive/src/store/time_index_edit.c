/* Edits time indexes of inactive recordings; see time_index.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/time_index_edit.h"

#define NEW_SUFFIX "-new"
#define WRITE_SLOTS 128

static bool ends_behind(void *context, const asi_time_run *run) { return asi_time_run_end(run) > *(const int64_t *)context; }

int asi_time_file_cut(asi_time_file *file, int64_t position, int64_t *slots, int64_t *last_ns, bool *has_changed)
{
    int64_t before;
    asi_time_run run;
    int64_t keep = asi_time_file_search(file, ends_behind, &position, &before);
    *last_ns = 0;
    *has_changed = false;
    int error = 0;
    if (before >= 0 && asi_time_file_run(file, before, &run))
    {
        *last_ns = run.last_ns;
    }
    if (asi_time_file_run(file, keep, &run) && run.position < position)
    {
        uint8_t entry[ASI_TIME_INDEX_ENTRY_LENGTH];
        run.length = position - run.position;
        asi_time_run_encode(&run, file->header.recording_id, keep, entry);
        error = asi_file_write_all(file->files, file->fd, entry, sizeof(entry), asi_time_slot_offset(keep));
        *last_ns = run.last_ns;
        *has_changed = true;
        keep++;
    }
    *slots = keep;
    if (0 == error && keep < file->slot_count)
    {
        error = file->files->ftruncate(file->files->context, file->fd, asi_time_slot_offset(keep));
        *has_changed = true;
    }
    return error;
}

as_result asi_time_index_remove(const asi_file_ops *files, const char *dir, int64_t recording_id)
{
    char path[AS_PATH_MAX];
    as_result result = asi_time_index_path(path, sizeof(path), dir, recording_id);
    const int error = AS_OK == result ? files->unlink(files->context, path) : 0;
    return 0 == error || -ENOENT == error ? result : asi_fail_errno(AS_E_STORAGE, -error, "cannot delete the time index %s", path);
}

as_result asi_time_index_truncate(const asi_file_ops *files, const char *dir, int64_t recording_id, int64_t position)
{
    asi_time_file file;
    const as_result result = asi_time_file_open_untrusted(&file, files, dir, recording_id, ASI_FILE_WRITE);
    if (AS_OK != result)
    {
        return AS_AGAIN == result ? AS_OK : result;
    }
    int64_t slots;
    int64_t last_ns;
    bool has_changed;
    const int error = asi_time_file_cut(&file, position, &slots, &last_ns, &has_changed);
    asi_time_file_close(&file);
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot cut the time index of recording %" PRId64 " in %s",
        recording_id, dir);
}

/* -- runs in memory --------------------------------------------------------------------------------------------------------- */

as_result asi_time_runs_add(asi_time_runs *runs, const asi_time_run *run)
{
    if (runs->count == runs->capacity)
    {
        const int64_t capacity = 0 == runs->capacity ? 64 : runs->capacity * 2;
        asi_time_run *grown = realloc(runs->runs, (size_t)capacity * sizeof(*grown));
        if (NULL == grown)
        {
            return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for %" PRId64 " runs of a time index", capacity);
        }
        runs->runs = grown;
        runs->capacity = capacity;
    }
    runs->runs[runs->count++] = *run;
    return AS_OK;
}

static int write_runs(const asi_file_ops *files, int fd, const asi_time_header *header, const asi_time_runs *runs)
{
    uint8_t bytes[WRITE_SLOTS * ASI_TIME_INDEX_ENTRY_LENGTH];
    int error = files->ftruncate(files->context, fd, 0);
    asi_time_header_encode(header, bytes);
    error = 0 == error ? asi_file_write_all(files, fd, bytes, ASI_TIME_INDEX_HEADER_LENGTH, 0) : error;
    for (int64_t slot = 0; 0 == error && slot < runs->count; slot += WRITE_SLOTS)
    {
        const int64_t count = runs->count - slot < WRITE_SLOTS ? runs->count - slot : WRITE_SLOTS;
        for (int64_t i = 0; i < count; i++)
        {
            asi_time_run_encode(
                &runs->runs[slot + i], header->recording_id, slot + i, bytes + i * ASI_TIME_INDEX_ENTRY_LENGTH);
        }
        error = asi_file_write_all(files, fd, bytes, count * ASI_TIME_INDEX_ENTRY_LENGTH, asi_time_slot_offset(slot));
    }
    return 0 == error ? files->fdatasync(files->context, fd) : error;
}

as_result asi_time_runs_write(
    const asi_file_ops *files, const char *dir, const asi_time_header *header, const asi_time_runs *runs)
{
    char path[AS_PATH_MAX];
    char new_path[AS_PATH_MAX + sizeof(NEW_SUFFIX)];
    const as_result result = asi_time_index_path(path, sizeof(path), dir, header->recording_id);
    if (AS_OK != result)
    {
        return result;
    }
    snprintf(new_path, sizeof(new_path), "%s" NEW_SUFFIX, path);
    const int fd = files->open(files->context, new_path, ASI_FILE_CREATE);
    int error = fd < 0 ? fd : write_runs(files, fd, header, runs);
    if (fd >= 0)
    {
        files->close(files->context, fd);
    }
    error = 0 == error ? files->rename(files->context, new_path, path) : error;
    if (0 != error)
    {
        files->unlink(files->context, new_path);
        return asi_fail_errno(AS_E_STORAGE, -error, "cannot write the time index %s", path);
    }
    return AS_OK;
}

/* -- moving ----------------------------------------------------------------------------------------------------------------- */

/* Appends the recording's runs inside [begin, end), with times not below *floor_ns, which it raises to the last one. A missing or
 * invalid index has none. */
static as_result take_runs(const asi_file_ops *files, const char *dir, const asi_catalog_record *record, int64_t begin, int64_t end,
    asi_time_runs *runs, int64_t *floor_ns)
{
    asi_time_file file;
    as_result result = asi_time_file_open_untrusted(&file, files, dir, record->recording_id, ASI_FILE_READ);
    if (AS_OK != result)
    {
        return AS_AGAIN == result ? AS_OK : result;
    }
    const asi_time_era era = asi_time_era_of(record);
    const int64_t slots = asi_time_era_equals(&file.header.era, &era) ? file.slot_count : 0;
    for (int64_t slot = file.header.first_slot; AS_OK == result && slot < slots; slot++)
    {
        asi_time_run run;
        if (!asi_time_file_run(&file, slot, &run) || run.position < begin || run.position >= end)
        {
            continue;
        }
        run.length = asi_time_run_end(&run) < end ? run.length : end - run.position;
        run.first_ns = run.first_ns > *floor_ns ? run.first_ns : *floor_ns;
        run.last_ns = run.last_ns > *floor_ns ? run.last_ns : *floor_ns;
        *floor_ns = run.last_ns;
        result = asi_time_runs_add(runs, &run);
    }
    asi_time_file_close(&file);
    return result;
}

int64_t asi_time_written_by(const asi_catalog_record *record)
{
    const int64_t ms = record->stop_timestamp_ms;
    return ms < 0 ? 0 : asi_time_of_ms(ms < INT64_MAX ? ms + 1 : ms);
}

as_result asi_time_index_move(
    const asi_file_ops *files, const char *dir, const asi_catalog_record *from, const asi_catalog_record *to)
{
    const bool is_head = from->stop_position == to->start_position;
    const asi_catalog_record *first = is_head ? from : to;
    const asi_catalog_record *second = is_head ? to : from;
    const int64_t seam = second->start_position;
    asi_time_runs runs = { 0 };
    int64_t floor_ns = 0;
    as_result result = take_runs(files, dir, first, is_head ? from->start_position : 0, seam, &runs, &floor_ns);
    const bool is_known_to_end = runs.count > 0 && asi_time_run_end(&runs.runs[runs.count - 1]) == seam;
    if (!is_known_to_end && asi_time_written_by(first) > floor_ns)
    {
        floor_ns = asi_time_written_by(first); /* a crash has lost the last entries */
    }
    result = AS_OK == result ?
        take_runs(files, dir, second, seam, is_head ? INT64_MAX : from->stop_position, &runs, &floor_ns) : result;
    const asi_time_header header = { .recording_id = to->recording_id, .era = asi_time_era_of(to) };
    result = AS_OK == result && runs.count > 0 ? asi_time_runs_write(files, dir, &header, &runs) : result;
    result = AS_OK == result ? asi_time_index_remove(files, dir, from->recording_id) : result;
    free(runs.runs);
    return result;
}
