/* Edits existing time indexes, and writes new ones from runs in memory. See time_index.h. */
#ifndef ASI_STORE_TIME_INDEX_EDIT_H
#define ASI_STORE_TIME_INDEX_EDIT_H

#include "store/time_index.h"

/* Cuts an index that is open for writing at `position`. Keeps the runs before it, and the first part of a run that spans it.
 * *slots receives the number of slots left, *last_ns the time of the last one (0: none). Returns 0 or -errno. */
int asi_time_file_cut(asi_time_file *file, int64_t position, int64_t *slots, int64_t *last_ns, bool *has_changed);

/* -- editing, by the conductor: the recording is not being recorded ---------------------------------------------------------- */

/* Removes the entries at or after `position`. AS_OK if there is no index. */
as_result asi_time_index_truncate(
    const asi_file_ops *files, const char *dir, int64_t recording_id, int64_t position) AS_MUST_USE;
/* Deletes the file. AS_OK if there is none. */
as_result asi_time_index_remove(const asi_file_ops *files, const char *dir, int64_t recording_id) AS_MUST_USE;
/* All bytes of a stopped recording were written no later than that (ns). */
int64_t asi_time_written_by(const asi_catalog_record *record);
/* Moves the entries of `from` to the index of `to`, for a migration that moves all segments of `from`. Both records are those of
 * the catalog before their positions change. */
as_result asi_time_index_move(const asi_file_ops *files, const char *dir, const asi_catalog_record *from,
    const asi_catalog_record *to) AS_MUST_USE;

/* Runs in memory, by position. */
typedef struct asi_time_runs
{
    asi_time_run *runs; /* owned */
    int64_t count;
    int64_t capacity;
} asi_time_runs;

as_result asi_time_runs_add(asi_time_runs *runs, const asi_time_run *run) AS_MUST_USE;
/* Writes the runs to a new file, syncs it and renames it over the index. */
as_result asi_time_runs_write(const asi_file_ops *files, const char *dir, const asi_time_header *header,
    const asi_time_runs *runs) AS_MUST_USE;

#endif
