/* Byte offsets of the catalog's fields. The format is described in catalog.h. */
#ifndef ASI_STORE_CATALOG_FORMAT_H
#define ASI_STORE_CATALOG_FORMAT_H

#include <stdlib.h>

#include "store/catalog_record.h"
#include "store/checksum.h"

enum /* in the file header */
{
    CATALOG_VERSION = 0,
    CATALOG_LENGTH = 4,
    CATALOG_NEXT_RECORDING_ID = 8,
    CATALOG_RECORD_ALIGNMENT = 16,
    CATALOG_WRITER = 20, /* u8; Spec: 06 §3.1 - unused by other implementations */
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
#define FIRST_CHUNK (64 * 1024) /* all records of most archives, where a file has a MiB */
/* A record holds three texts, each from a control message. A longer record is damaged, and reading it would take its memory. */
#define RECORD_MAX_LENGTH (1024 * 1024)

#endif
