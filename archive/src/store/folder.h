/* Internals of as_folder, the read-only view of an archive folder. Shared by folder.c (descriptors), folder_extent.c (end,
 * checksum), folder_plan.c (boundaries) and segment_reader.c (rows). Public API: aeron_spark/as_archive.h. Nothing here
 * writes. */
#ifndef ASI_STORE_FOLDER_H
#define ASI_STORE_FOLDER_H

#include "base/clock.h"
#include "store/mark.h"
#include "store/position_counters.h"
#include "store/segment_read.h"

typedef struct asi_folder_recording
{
    asi_catalog_record record;    /* its texts are not used: they are not terminated */
    const char *stripped_channel; /* borrowed from the view's texts */
    const char *original_channel;
    const char *source_identity;
    int64_t revision;
} asi_folder_recording;

typedef struct asi_folder_view /* the folder's state at open or at the last refresh */
{
    asi_folder_recording *recordings; /* owned; by ascending id: VALID ones, and those with an impossible state */
    int64_t count;
    int64_t invalid_count;            /* of records marked INVALID, which are not listed */
    char *texts;                      /* owned */
    asi_mark_info mark;
    bool has_mark;
    bool is_live;
} asi_folder_view;

struct as_folder
{
    const asi_file_ops *files; /* borrowed */
    asi_clock clock;
    char path[AS_PATH_MAX];
    char *aeron_dir;           /* owned; NULL: use the mark file's */
    as_record_checksum checksum;
    bool without_counters;
    asi_folder_view view;
    int64_t last_revision;
    asi_position_counters counters;
};

/* AS_E_USAGE: unknown id; the text names the ids that exist. AS_E_DATA: an impossible descriptor. */
as_result asi_folder_find(const as_folder *folder, int64_t recording_id, const asi_folder_recording **recording) AS_MUST_USE;
asi_segment_source asi_folder_source(const as_folder *folder, const asi_catalog_record *record);
asi_segment_source asi_segment_source_of(
    const asi_file_ops *files, const char *archive_dir, const asi_catalog_record *record);

as_result asi_folder_read_mark(const as_folder *folder, asi_mark_info *mark, bool *has_mark, bool *is_live) AS_MUST_USE;
/* The directory that the caller chose, else the mark file's; "" if unknown. */
const char *asi_folder_aeron_dir(const as_folder *folder, const asi_mark_info *mark);

/* The catalog, for asi_catalog_reread_in: a descriptor, or -errno. */
int asi_catalog_reread_open(const asi_file_ops *files, const char *archive_dir);
/* Reads the catalog's entry of record->recording_id again, first at its last known offset. Does not return texts. AS_E_DATA: the
 * recording no longer exists. */
as_result asi_catalog_reread_in(const asi_file_ops *files, const char *archive_dir, int fd, asi_catalog_record *record) AS_MUST_USE;
/* The same, for one entry. */
as_result asi_catalog_reread(const asi_file_ops *files, const char *archive_dir, asi_catalog_record *record) AS_MUST_USE;

/* True if the entry has a checksum and it is correct: then its archive also writes frame checksums. */
bool asi_catalog_entry_is_checked(const asi_file_ops *files, const char *archive_dir, const asi_catalog_record *record);

#endif
