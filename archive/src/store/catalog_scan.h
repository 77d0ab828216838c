/* Reads the bytes of a catalog, which are untrusted input. See catalog.h. */
#ifndef ASI_STORE_CATALOG_SCAN_H
#define ASI_STORE_CATALOG_SCAN_H

#include "store/catalog_record.h"

asi_text asi_text_of(const char *terminated);

typedef struct asi_catalog_scan
{
    const uint8_t *bytes;  /* borrowed: the file from offset 0 */
    int64_t length;
    const char *path;      /* borrowed, for error texts */
    int32_t version;
    int32_t alignment;
    int64_t next_recording_id; /* as stored */
    int64_t offset;        /* of the next record; after the scan, its end */
    int64_t last_recording_id; /* -1 before the first record */
} asi_catalog_scan;

/* AS_E_DATA: too short, another major version or an impossible header. */
as_result asi_catalog_scan_start_untrusted(asi_catalog_scan *scan, const uint8_t *bytes, int64_t length, const char *path) AS_MUST_USE;
/* AS_OK: a record in any state. AS_AGAIN: the end. AS_E_DATA: an impossible record: it passes the end of the file, its texts pass
 * its frame, its id does not increase, or its length covers the next record. asi_recording_check_untrusted checks the values of
 * the fields. */
as_result asi_catalog_scan_next_untrusted(asi_catalog_scan *scan, asi_catalog_record *record) AS_MUST_USE;
/* Checks the scan's end, for readers. AS_E_DATA: a record follows the end, so damage has ended the scan. An archive does not call
 * this and takes the records before the end, because a crash may have left such a catalog. */
as_result asi_catalog_scan_check_end_untrusted(const asi_catalog_scan *scan) AS_MUST_USE;
/* Offset of the first bytes in [from, to) that look like a record with an id above `after` and below the next id; -1: none. For
 * bytes that belong to no record. */
int64_t asi_catalog_find_record_like(const asi_catalog_scan *scan, int64_t from, int64_t to, int64_t after);
/* Offset of the first byte behind the texts of the record at scan->offset, a multiple of 32: its padding begins there. */
int64_t asi_catalog_padding_of(const asi_catalog_scan *scan, const asi_catalog_record *record);
/* Checks state, term, segment and MTU lengths, and positions. AS_E_DATA names recording, field and value. */
as_result asi_recording_check_untrusted(const asi_catalog_record *record) AS_MUST_USE;

/* Decodes one whole record frame; false if its texts do not fit. The caller sets `offset`. */
bool asi_catalog_parse_untrusted(const uint8_t *frame, int64_t frame_length, asi_catalog_record *record);
/* The error for a catalog that could not be opened. `error` is a negative errno: where the file is absent, the folder is none of
 * an archive (AS_E_DATA). */
as_result asi_catalog_fail_open(const char *archive_dir, const char *path, int error) AS_MUST_USE;
/* Reads the file up to its end or the first mebibyte of zeros. The caller frees *bytes. */
as_result asi_catalog_read(
    const asi_file_ops *files, int fd, const char *path, uint8_t **bytes, int64_t *length) AS_MUST_USE;
/* Passes as_error_text() to params->on_damage. */
void asi_catalog_report_damage(const asi_catalog_params *params);

#endif
