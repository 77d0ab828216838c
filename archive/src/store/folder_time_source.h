/* Where the times of a recording's bytes come from. folder_time.c (lookups) and folder_time_rebuild.c build on it; the public side is
 * aeron_spark/as_archive.h. */
#ifndef ASI_STORE_FOLDER_TIME_SOURCE_H
#define ASI_STORE_FOLDER_TIME_SOURCE_H

#include "store/folder.h"
#include "store/time_index_edit.h"

/* The runs of one recording, wherever they come from, and how far it goes. */
typedef struct asi_time_source
{
    asi_catalog_record record; /* as it is now; without texts */
    as_recording_extent extent;
    asi_time_file runs;
    bool has_file;             /* runs are those of the index; else of the segments' modification times */
    bool is_believed;          /* has_file, and no archive that ignores it wrote since */
} asi_time_source;

/* On AS_OK close it. */
as_result asi_time_source_open(as_folder *folder, int64_t recording_id, asi_time_source *source) AS_MUST_USE;
/* With runs of the segments where the index is missing or not to be believed. */
as_result asi_time_source_open_believed(as_folder *folder, int64_t recording_id, asi_time_source *source) AS_MUST_USE;
void asi_time_source_close(asi_time_source *source);

/* Appends the runs of the segments in [begin, end), as the file system's modification times tell them, all within [not_before,
 * not_after]. */
as_result asi_time_of_segments(const as_folder *folder, const asi_catalog_record *record, int64_t begin, int64_t end,
    int64_t not_before, int64_t not_after, asi_time_runs *runs) AS_MUST_USE;

#endif
