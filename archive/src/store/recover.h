/* Where a recording ends that was active when its archive died. Spec: 06 §6. Used by the server at start, which stores the
 * result, and by the folder reader, which does not.
 *
 * Only the file with the highest base is scanned, frame by frame, to the first place without one. Whether the last frame is
 * whole is in doubt only when it crosses a 4 KiB page: pages reach the disk in any order. It is proven by its checksum, or when
 * each later page that it touches holds something else than zeros. Padding frames are whole by construction, as only their
 * header is ever written. (Stock rejects a padding frame there and can misjudge a frame that spans its read buffer; ours reads
 * the fragment again as a whole. Spec: 06 §6, QUIRKs.) */
#ifndef ASI_STORE_RECOVER_H
#define ASI_STORE_RECOVER_H

#include "store/catalog.h"

typedef struct asi_recovered_end
{
    int64_t stop_position;          /* after the last frame; the start position if there is no file */
    int64_t last_fragment_position; /* where that frame begins; == stop_position if there is none */
    bool is_proven;                 /* false: the last frame crosses a page and may be incomplete */
    char path[AS_PATH_MAX];         /* the file that was scanned, "" if there is none */
} asi_recovered_end;

/* Reads only. `checksum` proves the last frame (NONE: the page test). AS_E_DATA: a frame that can't be (`end` is where it begins, and
 * says which file), or a file name (no file is named); AS_E_STORAGE: the folder can't be read. */
as_result asi_recover_end(const asi_file_ops *files, const char *archive_dir, const asi_catalog_record *record,
    as_record_checksum checksum, asi_recovered_end *end) AS_MUST_USE;
typedef struct asi_recover_options
{
    as_record_checksum checksum;
    int32_t file_sync_level;      /* above 0: what is found is made durable before the catalog says so */
    bool is_last_frame_whole;     /* the last archive wrote so that a frame that begins is whole: no test, nothing to refuse */
    bool cuts_unproven;           /* a last frame that is not proven is cut off, and all from a broken one on; else it is AS_E_DATA */
    int64_t now_ms;
} asi_recover_options;

/* The server's refresh: stores stop position and time of every active recording, and brings its last segment to full length, with
 * an empty one behind it when it is full (Spec: 06 §7.2). An unproven last frame is AS_E_DATA and names the tool that repairs it, unless
 * the options say otherwise. `recovered` (may be NULL) counts the recordings that were active. */
as_result asi_recover_catalog(asi_catalog *catalog, const asi_file_ops *files, const char *archive_dir,
    const asi_recover_options *options, int32_t *recovered) AS_MUST_USE;
/* Deletes what an earlier archive left of purged recordings, and skips ids of which there are segments. `is_clean`: no purged
 * recording has files any more. */
as_result asi_recover_leftovers(
    asi_catalog *catalog, const asi_file_ops *files, const char *archive_dir, bool *is_clean) AS_MUST_USE;

#endif
