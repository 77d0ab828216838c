/* Reading the bytes of a catalog, whoever wrote them. See catalog.h. */
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
    int64_t offset;        /* of the next record; where the scan ended */
    int64_t last_recording_id; /* -1 at first */
} asi_catalog_scan;

/* AS_E_DATA: too short, another major version, impossible header. */
as_result asi_catalog_scan_start_untrusted(asi_catalog_scan *scan, const uint8_t *bytes, int64_t length, const char *path) AS_MUST_USE;
/* AS_OK and a record of any state; AS_AGAIN at the end; AS_E_DATA: a record that can't be (passes the end of the file, texts
 * past its frame, ids not increasing, a length that takes in the next record). Impossible values of fields are for asi_recording_check_untrusted. */
as_result asi_catalog_scan_next_untrusted(asi_catalog_scan *scan, asi_catalog_record *record) AS_MUST_USE;
/* After the scan's end, for readers: AS_E_DATA where a record stands behind it, so that what ended it is damage. An archive takes what
 * is there (it may have been left by a crash). */
as_result asi_catalog_scan_check_end_untrusted(const asi_catalog_scan *scan) AS_MUST_USE;
/* State, term, segment and mtu lengths, positions: AS_E_DATA names recording, field and value. */
as_result asi_recording_check_untrusted(const asi_catalog_record *record) AS_MUST_USE;

/* One whole record frame; false if its texts do not fit. Leaves offset to the caller. */
bool asi_catalog_parse_untrusted(const uint8_t *frame, int64_t frame_length, asi_catalog_record *record);
/* The file's bytes up to its end or the first mebibyte of zeros; *bytes is the caller's to free. */
as_result asi_catalog_read(
    const asi_file_ops *files, int fd, const char *path, uint8_t **bytes, int64_t *length) AS_MUST_USE;
/* as_error_text() goes to params->on_damage. */
void asi_catalog_tell_damage(const asi_catalog_params *params);

#endif
