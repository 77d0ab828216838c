/* Finds the end of a recording that was active when its archive died. Spec: 06 §6. Used by the server at start, which stores the
 * result, and by the folder reader, which does not.
 *
 * Recovery scans only the file with the highest base, frame by frame, to the first position without a frame. The last frame may
 * be incomplete only if it crosses a 4 KiB page, because pages reach the disk in any order. Such a frame is proven whole by its
 * checksum, or if each later page that it touches holds a byte other than zero. Padding frames are whole by construction, as only
 * their header is ever written. (Stock rejects a padding frame there and can misjudge a frame that spans its read buffer; ours
 * reads the fragment again as a whole. Spec: 06 §6, QUIRKs.) */
#ifndef ASI_STORE_RECOVER_H
#define ASI_STORE_RECOVER_H

#include "store/catalog.h"

typedef struct asi_recovered_end
{
    int64_t stop_position;          /* after the last frame; the start position if there is no file */
    int64_t last_fragment_position; /* start of that frame; == stop_position if there is none */
    bool is_proven;                 /* false: the last frame crosses a page and may be incomplete */
    char path[AS_PATH_MAX];         /* the file that was scanned, "" if there is none */
} asi_recovered_end;

/* The segment files of one recording in a folder. */
typedef struct asi_recover_files
{
    int64_t recording_id;
    int64_t lowest_base;  /* -1: no file */
    int64_t highest_base; /* -1: no file */
    char bad_name[256];   /* one without a possible position, "" if there is none */
} asi_recover_files;

/* Lists a recording's segment files by their names. AS_E_STORAGE: the folder can't be read. */
as_result asi_recover_find_files(
    const asi_file_ops *files, const char *archive_dir, int64_t recording_id, asi_recover_files *found) AS_MUST_USE;

/* Finds the end; writes nothing. `checksum` proves the last frame (NONE: the page test). AS_E_DATA: an impossible frame (`end`
 * holds its position and file) or an impossible file name (`end` names no file). AS_E_STORAGE: the folder can't be read. */
as_result asi_recover_end(const asi_file_ops *files, const char *archive_dir, const asi_catalog_record *record,
    as_record_checksum checksum, asi_recovered_end *end) AS_MUST_USE;
typedef struct asi_recover_options
{
    as_record_checksum checksum;
    int32_t file_sync_level;      /* above 0: makes the bytes durable before it stores the stop position */
    bool is_last_frame_whole;     /* the last archive wrote such that a frame that begins is whole: no test, no refusal */
    bool cuts_unproven;           /* cuts off an unproven last frame, and everything from a broken frame on; else AS_E_DATA */
    int64_t now_ms;
} asi_recover_options;

/* Recovers the server's catalog. Stores stop position and time of every active recording, extends its last segment to full
 * length, and adds an empty segment if the last one is full (Spec: 06 §7.2). An unproven last frame is AS_E_DATA, and the text
 * names the tool that repairs it, unless the options say otherwise. `recovered` (may be NULL) receives the number of recordings
 * that were active. */
as_result asi_recover_catalog(asi_catalog *catalog, const asi_file_ops *files, const char *archive_dir,
    const asi_recover_options *options, int32_t *recovered) AS_MUST_USE;
/* Deletes the files that an earlier archive left of purged recordings, and skips ids that have segments. `is_clean`: no purged
 * recording has files any more. */
as_result asi_recover_leftovers(
    asi_catalog *catalog, const asi_file_ops *files, const char *archive_dir, bool *is_clean) AS_MUST_USE;

#endif
