/* Removes the records of purged recordings from the catalog. See compaction.c. */
#ifndef ASI_SERVER_COMPACTION_H
#define ASI_SERVER_COMPACTION_H

#include "server/archive.h"

typedef struct asi_compaction
{
    bool is_possible;                    /* false once a record is needed for files that could not be deleted */
    int64_t reclaimable_bytes;           /* size of the records of purged recordings whose files are deleted */
    int64_t retry_ms;                    /* time of the next attempt after a failure */
} asi_compaction;

/* Reports that the files of a purged recording are deleted, or could not be. `catalog_bytes` is the size of its record. */
void asi_compaction_on_purged(as_archive *archive, int64_t catalog_bytes, bool are_files_gone);
int asi_compaction_step(as_archive *archive);

#endif
