/* Mutations of a catalog that write a new file in its place. See catalog.h. */
#ifndef ASI_STORE_CATALOG_SWAP_H
#define ASI_STORE_CATALOG_SWAP_H

#include "store/catalog.h"

/* Takes DELETED records out, but those that `must_stay` names, whose ids something still needs: ids, order and nextRecordingId stay as
 * they are, the file shrinks down to the capacity that it was opened with. By a new file, as replace, and durable at every sync
 * level, behind the deletions of files that went before. A failure before the new file has its name changes nothing. */
typedef bool (*asi_catalog_must_stay)(void *context, int64_t recording_id);
as_result asi_catalog_compact(
    asi_catalog *catalog, asi_catalog_must_stay must_stay, void *context, int64_t *reclaimed_bytes) AS_MUST_USE;
/* Whole body but control session and correlation id; makes the state VALID. Later records move when it grows. The texts must not be
 * the catalog's own. */
as_result asi_catalog_replace(asi_catalog *catalog, int64_t recording_id, const asi_recording_params *params) AS_MUST_USE;

#endif
