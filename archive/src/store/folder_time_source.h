/* Source of the write times of a recording's bytes: its time index or its segments' modification times. Used by folder_time.c
 * (lookups) and folder_time_rebuild.c. Public API: aeron_spark/as_archive.h. */
#ifndef ASI_STORE_FOLDER_TIME_SOURCE_H
#define ASI_STORE_FOLDER_TIME_SOURCE_H

#include "store/folder.h"
#include "store/time_index_edit.h"

/* The runs of one recording from either source, and the recording's extent. */
typedef struct asi_time_source
{
    asi_catalog_record record; /* as of now; without texts */
    as_recording_extent extent;
    asi_time_file runs;
    bool has_file;             /* true: the runs are those of the index; false: of the segments' modification times */
    bool is_believed;          /* has_file, and no archive that ignores the index has written since */
} asi_time_source;

/* On AS_OK the caller closes the source. */
as_result asi_time_source_open(as_folder *folder, int64_t recording_id, asi_time_source *source) AS_MUST_USE;
/* The same, with runs of the segments if the index is missing or invalid. Not bounded: the extent has no end, and is not
 * asked for; for who has read the bytes whose times it wants. */
as_result asi_time_source_open_believed(as_folder *folder, int64_t recording_id, bool is_bounded, asi_time_source *source) AS_MUST_USE;
void asi_time_source_close(asi_time_source *source);

/* Appends the runs of the segments in [begin, end), made from the files' modification times and clamped to [not_before,
 * not_after]. */
as_result asi_time_of_segments(const as_folder *folder, const asi_catalog_record *record, int64_t begin, int64_t end,
    int64_t not_before, int64_t not_after, asi_time_runs *runs) AS_MUST_USE;

#endif
