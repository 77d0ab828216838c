/* Compacts the catalog while the archive runs: removes the records of purged recordings after their files are deleted. See
 * compaction.h.
 *
 * Until the files are deleted, the record lets the next start identify files that a crash left. The catalog is rewritten when at
 * least half of it, and at least the threshold, is reclaimable. Each rewrite therefore copies about one record for each record
 * that it removes, and the file never exceeds twice its valid content plus the threshold. Readers always find a complete catalog
 * under its name. The conductor runs the compaction, because only the conductor accesses the catalog. Recorder and replayer
 * continue meanwhile. */
#include "server/compaction.h"

#include <inttypes.h>

#include "server/report.h"
#include "server/uses.h"
#include "store/catalog_swap.h"

#define RETRY_MS 10000

void asi_compaction_on_purged(as_archive *archive, int64_t catalog_bytes, bool are_files_gone)
{
    if (catalog_bytes > 0 && are_files_gone)
    {
        archive->compaction->reclaimable_bytes += catalog_bytes;
    }
    else if (catalog_bytes > 0)
    {
        archive->compaction->is_possible = false; /* the next start retries the deletion of the files */
    }
}

static bool must_stay(void *context, int64_t recording_id)
{
    return NULL != asi_uses_deletion(context, recording_id);
}

int asi_compaction_step(as_archive *archive)
{
    asi_compaction *compaction = archive->compaction;
    const int64_t threshold = archive->config.catalog_compaction_threshold;
    const int64_t reclaimable = compaction->reclaimable_bytes;
    if (0 == threshold || reclaimable < threshold || !compaction->is_possible ||
        reclaimable < asi_catalog_used_bytes(archive->catalog) / 2 || archive->tick_ms < compaction->retry_ms)
    {
        return 0;
    }
    int64_t reclaimed;
    if (AS_OK != asi_catalog_compact(archive->catalog, must_stay, archive, &reclaimed))
    {
        asi_archive_log(archive, as_error_code(), NULL);
        compaction->retry_ms = archive->tick_ms + RETRY_MS;
        return 1;
    }
    compaction->reclaimable_bytes = 0;
    return 1;
}
