/* An archive folder seen from outside: the inside of as_folder, shared by folder.c (descriptors), folder_extent.c (end, checksum),
 * folder_plan.c (boundaries) and segment_reader.c (rows). Public side: aeron_spark/as_archive.h. Nothing here writes. */
#ifndef ASI_STORE_FOLDER_H
#define ASI_STORE_FOLDER_H

#include "base/clock.h"
#include "store/mark.h"
#include "store/segment_read.h"

typedef struct asi_folder_recording
{
    asi_catalog_record record;    /* its texts are not used: they are not terminated */
    const char *stripped_channel; /* borrowed from the view's texts */
    const char *original_channel;
    const char *source_identity;
    int64_t revision;
} asi_folder_recording;

typedef struct asi_folder_view /* what open or the last refresh saw */
{
    asi_folder_recording *recordings; /* owned; by ascending id: VALID ones, and those of a state that can't be */
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
    char *aeron_dir;           /* owned; NULL: the mark file's */
    as_record_checksum checksum;
    asi_folder_view view;
    int64_t last_revision;
};

/* AS_E_USAGE for an unknown id, naming what ids there are; AS_E_DATA for a descriptor that can't be. */
as_result asi_folder_find(const as_folder *folder, int64_t recording_id, const asi_folder_recording **recording) AS_MUST_USE;
asi_segment_source asi_folder_source(const as_folder *folder, const asi_catalog_record *record);

as_result asi_folder_read_mark(const as_folder *folder, asi_mark_info *mark, bool *has_mark, bool *is_live) AS_MUST_USE;
/* The caller's choice, else the one that the mark file names; "" if unknown. */
const char *asi_folder_aeron_dir(const as_folder *folder, const asi_mark_info *mark);

/* Reads the catalog's entry of record->recording_id again, first where it was seen last. Texts are not given. AS_E_DATA: the
 * recording is no longer there. */
as_result asi_catalog_reread(const asi_file_ops *files, const char *archive_dir, asi_catalog_record *record) AS_MUST_USE;

/* Whether the entry has a checksum of its own, and it is right: then its archive gives frames theirs, too. */
bool asi_catalog_entry_is_checked(const asi_file_ops *files, const char *archive_dir, const asi_catalog_record *record);

#endif
