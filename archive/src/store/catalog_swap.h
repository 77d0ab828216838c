/* Mutations of a catalog that replace its file by a new one. See catalog.h. */
#ifndef ASI_STORE_CATALOG_SWAP_H
#define ASI_STORE_CATALOG_SWAP_H

#include "store/catalog.h"

/* Removes DELETED records, except those for which `must_stay` returns true because their ids are still needed. Ids, order and
 * nextRecordingId do not change. The file shrinks down to the capacity that it was opened with. It is replaced by a new file, as
 * in asi_catalog_replace. At every sync level the new file becomes durable, and after the earlier deletions of files. A failure
 * before the rename changes nothing. */
typedef bool (*asi_catalog_must_stay)(void *context, int64_t recording_id);
as_result asi_catalog_compact(
    asi_catalog *catalog, asi_catalog_must_stay must_stay, void *context, int64_t *reclaimed_bytes) AS_MUST_USE;
/* Replaces the body except control session and correlation id, and sets the state to VALID. Later records move if it grows. The
 * texts must not point into the catalog. */
as_result asi_catalog_replace(asi_catalog *catalog, int64_t recording_id, const asi_recording_params *params) AS_MUST_USE;

#endif
