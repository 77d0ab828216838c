/* Collects the input of a retention policy: an archive folder's recordings and their segments, with the time of each segment's
 * last write and its disk usage. Used by the archive's own policy, on a thread that may wait for the disk; rules in as_archive.h.
 *
 * The time of a segment's last write comes from the first of these that has it: the time index at the segment's end; the catalog,
 * for the last segment of a stopped recording; the file's modification time. Sizes count disk blocks, because segments are
 * sparse. */
#ifndef ASI_STORE_RETENTION_SCAN_H
#define ASI_STORE_RETENTION_SCAN_H

#include "aeron_spark/as_archive.h"

typedef struct asi_retention_scan
{
    as_retention_recording *recordings; /* owned; VALID ones with a known end, by ascending id */
    int64_t count;
    as_retention_segment *segments;     /* owned: of all of them */
} asi_retention_scan;

/* On AS_OK the caller closes the scan. Writes nothing. */
as_result asi_retention_scan_open(const char *archive_dir, const char *aeron_dir, asi_retention_scan *scan) AS_MUST_USE;
void asi_retention_scan_close(asi_retention_scan *scan);

#endif
