/* Computes the two checksums of recordings, CRC-32 (zlib) and CRC-32C (Castagnoli). Spec: 06 §8.
 *
 * A frame's checksum covers its payload and the alignment padding. A catalog record's checksum covers the `length` bytes after
 * its header.
 * Thread rule: pure functions, any thread. */
#ifndef ASI_STORE_CHECKSUM_H
#define ASI_STORE_CHECKSUM_H

#include "aeron_spark/as_archive.h"
#include "term/columns.h"

uint32_t asi_crc32(const uint8_t *bytes, int64_t length);
uint32_t asi_crc32c(const uint8_t *bytes, int64_t length);
/* The implementation of asi_crc32c for a processor without a CRC-32C instruction. */
uint32_t asi_crc32c_by_table(const uint8_t *bytes, int64_t length);

/* NULL for AS_CHECKSUM_NONE and AUTO, which are no algorithms. */
asi_frame_checksum asi_checksum_function(as_record_checksum checksum);
/* Accepts the stock class names and their aliases, "" and "none". AS_E_USAGE lists the known names. */
as_result asi_checksum_from_name(const char *name, as_record_checksum *checksum) AS_MUST_USE;
/* "none", "CRC-32", "CRC-32C". */
const char *asi_checksum_name(as_record_checksum checksum);

#endif
