/* The struct of asi_catalog and its file: writes, syncs, file length, encoding. Used by catalog.c (open, add, fields) and
 * catalog_swap.c (replaces the file by a new one). */
#ifndef ASI_STORE_CATALOG_FILE_H
#define ASI_STORE_CATALOG_FILE_H

#include "store/catalog_format.h"
#include "store/catalog_index.h"

struct asi_catalog
{
    const asi_file_ops *files; /* borrowed */
    int fd;
    int32_t sync_level;
    int32_t alignment;
    asi_frame_checksum checksum;
    char *archive_dir;         /* owned */
    char path[AS_PATH_MAX];
    uint8_t *bytes;            /* owned mirror of the file from 0 to `end`, and zeros up to bytes_capacity */
    int64_t bytes_capacity;
    int64_t end;               /* offset of the next record */
    int64_t file_length;
    int64_t least_length;      /* minimum length of the file: params.capacity */
    int64_t deleted_bytes;     /* of records in state DELETED */
    bool must_sync_directory;  /* the file was renamed; the new name may not be durable */
    bool must_rewrite;         /* the file may lack bytes of the mirror */
    asi_catalog_index index;   /* owned; VALID recordings */
};

/* Always AS_E_INTERNAL. */
as_result asi_catalog_fail_memory(const asi_catalog *catalog) AS_MUST_USE;
/* Grows the mirror to hold [0, needed). */
as_result asi_catalog_reserve(asi_catalog *catalog, int64_t needed) AS_MUST_USE;
/* Finds a recording. AS_E_USAGE: no VALID recording has that id. */
as_result asi_catalog_require(const asi_catalog *catalog, int64_t recording_id, asi_catalog_entry **entry) AS_MUST_USE;
/* Writes to the file, then to the mirror. */
as_result asi_catalog_put(asi_catalog *catalog, int64_t offset, const void *from, int64_t length) AS_MUST_USE;
as_result asi_catalog_sync(asi_catalog *catalog) AS_MUST_USE;
as_result asi_catalog_sync_directory(asi_catalog *catalog) AS_MUST_USE;
/* Length of a file that holds [0, needed). Grows by half, as stock does. Spec: 06 §5. */
as_result asi_catalog_grown_length(
    const asi_catalog *catalog, int64_t needed, int64_t frame_length, int64_t *length) AS_MUST_USE;
int64_t asi_catalog_frame_length(const asi_catalog *catalog, const asi_recording_params *params);
/* Frame length of the record at an offset of the mirror. */
int64_t asi_catalog_frame_length_at(const asi_catalog *catalog, int64_t offset);
/* Checksum of a record's body; 0 if checksums are off. */
int32_t asi_catalog_checksum(const asi_catalog *catalog, const uint8_t *frame);
/* Encodes a record into a zeroed frame: body, then the record header. The stored length follows from `frame_length`. */
void asi_catalog_encode(const asi_catalog *catalog, uint8_t *frame, int64_t frame_length, int64_t recording_id,
    const asi_recording_params *params);

#endif
