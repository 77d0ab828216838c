/* Constants and structs of a catalog: a decoded record, its parameters and positions. The format is described in catalog.h. */
#ifndef ASI_STORE_CATALOG_RECORD_H
#define ASI_STORE_CATALOG_RECORD_H

#include "aeron_spark/as_archive.h"
#include "base/atomic.h"
#include "store/file_ops.h"

#define ASI_CATALOG_FILE "archive.catalog"
#define ASI_CATALOG_HEADER_LENGTH 32
#define ASI_CATALOG_RECORD_HEADER_LENGTH 32
#define ASI_CATALOG_ALIGNMENT 64
#define ASI_CATALOG_MIN_CAPACITY 32
#define ASI_CATALOG_MAX_CAPACITY INT32_MAX
#define ASI_CATALOG_DEFAULT_CAPACITY (1024 * 1024)
/* Version 3.1.0, in the catalog's header and in the mark file. Only the major part must match. Spec: 06 §2. */
#define ASI_ARCHIVE_STORAGE_VERSION 0x00030100
#define ASI_ARCHIVE_STORAGE_MAJOR(version) ((version) >> 16)

enum
{
    ASI_RECORDING_INVALID = 0,
    ASI_RECORDING_VALID = 1,
    ASI_RECORDING_DELETED = 2
};

typedef struct asi_text /* borrowed ASCII, not terminated */
{
    const char *at;
    int32_t length;
} asi_text;

/* One decoded record. Texts and descriptor point into the catalog's memory: valid until its next mutation or close. */
typedef struct asi_catalog_record
{
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t recording_id;
    int64_t start_timestamp_ms;
    int64_t stop_timestamp_ms;
    int64_t start_position;
    int64_t stop_position;
    int32_t initial_term_id;
    int32_t segment_file_length;
    int32_t term_buffer_length;
    int32_t mtu_length;
    int32_t session_id;
    int32_t stream_id;
    asi_text stripped_channel;
    asi_text original_channel;
    asi_text source_identity;
    int32_t state;
    int32_t checksum;
    /* The bytes that the control protocol sends after its own control session and correlation id: from recordingId to the end
     * of the record, padding included. Spec: 06 §3.3. */
    const uint8_t *descriptor;
    int32_t descriptor_length;
    int64_t offset;       /* of the record header in the file */
    int64_t frame_length; /* of record header, body and padding */
} asi_catalog_record;

typedef struct asi_catalog asi_catalog;

typedef struct asi_catalog_params
{
    const asi_file_ops *files;   /* borrowed until close */
    const char *archive_dir;
    int64_t capacity;            /* minimum file length in bytes; ASI_CATALOG_DEFAULT_CAPACITY */
    int32_t sync_level;          /* aeron.archive.catalog.file.sync.level */
    as_record_checksum checksum; /* aeron.archive.record.checksum */
    bool is_after_crash;         /* repairs what the last archive left half done, instead of refusing it */
    /* Called with each record that is kept although its values are impossible, or that the repair removes or hides. May be
     * NULL. */
    void (*on_damage)(void *context, const char *text);
    void *damage_context;
} asi_catalog_params;

typedef struct asi_recording_params
{
    int64_t start_timestamp_ms;
    int64_t stop_timestamp_ms;   /* AS_NULL_VALUE: active */
    int64_t start_position;
    int64_t stop_position;       /* AS_NULL_VALUE: active */
    int32_t initial_term_id;
    int32_t segment_file_length;
    int32_t term_buffer_length;
    int32_t mtu_length;
    int32_t session_id;
    int32_t stream_id;
    asi_text stripped_channel;
    asi_text original_channel;
    asi_text source_identity;
} asi_recording_params;

/* Positions for other threads. The catalog's owner writes them with release after the write to the file; others read with
 * acquire. A stale stop of -1 costs one more read. The address stays valid until the catalog is closed, also after a purge. */
typedef struct asi_recording_positions
{
    int64_t start_position;
    int64_t stop_position;
} asi_recording_positions;

static inline int64_t asi_recording_start(const asi_recording_positions *positions)
{
    return asi_load_acquire_i64(&positions->start_position);
}

static inline int64_t asi_recording_stop(const asi_recording_positions *positions)
{
    return asi_load_acquire_i64(&positions->stop_position);
}

#endif
