/* Offsets of catalog fields and helpers shared by scan and catalog; private to them. The essay is in catalog.h. */
#ifndef ASI_STORE_CATALOG_FORMAT_H
#define ASI_STORE_CATALOG_FORMAT_H

#include <stdlib.h>

#include "store/catalog.h"
#include "store/checksum.h"

enum /* in the file header */
{
    CATALOG_VERSION = 0,
    CATALOG_LENGTH = 4,
    CATALOG_NEXT_RECORDING_ID = 8,
    CATALOG_RECORD_ALIGNMENT = 16,
    CATALOG_WRITER = 20, /* u8; Spec: 06 §3.1 - unused by others */
    CATALOG_WRITER_START = 21, /* 3 bytes */
    CATALOG_WRITER_BOOT = 24 /* u32 */
};

enum /* in a record */
{
    RECORD_LENGTH = 0,
    RECORD_STATE = 4,
    RECORD_CHECKSUM = 8,
    RECORD_BODY = 32,
    RECORD_CONTROL_SESSION_ID = RECORD_BODY,
    RECORD_CORRELATION_ID = RECORD_BODY + 8,
    RECORD_RECORDING_ID = RECORD_BODY + 16,
    RECORD_START_TIMESTAMP = RECORD_BODY + 24,
    RECORD_STOP_TIMESTAMP = RECORD_BODY + 32,
    RECORD_START_POSITION = RECORD_BODY + 40,
    RECORD_STOP_POSITION = RECORD_BODY + 48,
    RECORD_INITIAL_TERM_ID = RECORD_BODY + 56,
    RECORD_SEGMENT_FILE_LENGTH = RECORD_BODY + 60,
    RECORD_TERM_BUFFER_LENGTH = RECORD_BODY + 64,
    RECORD_MTU_LENGTH = RECORD_BODY + 68,
    RECORD_SESSION_ID = RECORD_BODY + 72,
    RECORD_STREAM_ID = RECORD_BODY + 76,
    RECORD_TEXTS = RECORD_BODY + 80
};

#define READ_CHUNK (1024 * 1024)
/* Three texts, each of which came in a control message: what is longer is damage, and would be memory. */
#define RECORD_MAX_LENGTH (1024 * 1024)

/* One whole record frame; false if its texts do not fit. Leaves offset to the caller. */
bool asi_catalog_parse_untrusted(const uint8_t *frame, int64_t frame_length, asi_catalog_record *record);
/* The file's bytes up to its end or the first mebibyte of zeros; *bytes is the caller's to free. */
as_result asi_catalog_read(
    const asi_file_ops *files, int fd, const char *path, uint8_t **bytes, int64_t *length) AS_MUST_USE;
/* as_error_text() goes to params->on_damage. */
void asi_catalog_tell_damage(const asi_catalog_params *params);

#endif
