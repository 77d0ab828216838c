/* What a retention policy decides on: an archive folder's recordings with their segments, when each was last written and what it
 * takes on the disk. Used by the archive's own policy, on a thread that may wait for the disk; rules in as_archive.h.
 *
 * When a segment was written last is told, in this order, by the time index at the segment's end; by the catalog, for the last
 * segment of a stopped recording; by the file's modification time. Sizes are blocks: segments are sparse. */
#ifndef ASI_STORE_RETENTION_SCAN_H
#define ASI_STORE_RETENTION_SCAN_H

#include "aeron_spark/as_archive.h"

typedef struct asi_retention_scan
{
    as_retention_recording *recordings; /* owned; VALID ones whose end can be told, by ascending id */
    int64_t count;
    as_retention_segment *segments;     /* owned: of all of them */
} asi_retention_scan;

/* On AS_OK close it. Writes nothing. */
as_result asi_retention_scan_open(const char *archive_dir, const char *aeron_dir, asi_retention_scan *scan) AS_MUST_USE;
void asi_retention_scan_close(asi_retention_scan *scan);

#endif
