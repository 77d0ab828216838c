/* The catalog without purged recordings. See compaction.c. */
#ifndef ASI_SERVER_COMPACTION_H
#define ASI_SERVER_COMPACTION_H

#include "server/archive.h"

typedef struct asi_compaction
{
    bool is_possible;                    /* no record is needed for files that could not be deleted */
    int64_t reclaimable_bytes;           /* of records of purged recordings whose files are gone */
    int64_t retry_ms;                    /* after a failure: when to try again */
} asi_compaction;

/* The files of a purged recording are gone, or could not be deleted; `catalog_bytes` of its record. */
void asi_compaction_on_purged(as_archive *archive, int64_t catalog_bytes, bool are_files_gone);
int asi_compaction_step(as_archive *archive);

#endif
