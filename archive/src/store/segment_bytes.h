/* The bytes of one segment file as a disk with that file only, so that the code that reads and checks files reads them too.
 * Callers have fetched them, for example from an object store. */
#ifndef ASI_STORE_SEGMENT_BYTES_H
#define ASI_STORE_SEGMENT_BYTES_H

#include "store/catalog_record.h"

typedef struct asi_segment_bytes
{
    asi_file_ops files;    /* its context is this struct, which must not move */
    as_segment_bytes given;
    int64_t base;          /* position of the segment's first byte */
    int64_t length;        /* of the segment */
    char path[AS_PATH_MAX];
} asi_segment_bytes;

/* Checks that the bytes and the recording's range are of one segment. AS_E_USAGE: they are not. */
as_result asi_segment_bytes_init(
    asi_segment_bytes *disk, const as_segment_bytes *given, const asi_catalog_record *record) AS_MUST_USE;

#endif
