/* archive.catalog: the recordings of an archive folder. Spec: 06 §2-5. Written by the archive's conductor, scanned read-only by
 * the folder reader.
 *
 * Format (little-endian): file header of 32 bytes, then records, the first at offset 32, each a multiple of the alignment.
 *   file header    0 i32 version | 4 i32 length (32) | 8 i64 nextRecordingId | 16 i32 alignment (64) | zero to 31
 *   record header  0 i32 length of what follows, padding included (<= 0 ends the catalog) | 4 i32 state | 8 i32 checksum | zero
 *   record body   32 i64 controlSessionId | 40 i64 correlationId | 48 i64 recordingId | 56 i64 startTimestamp |
 *                 64 i64 stopTimestamp | 72 i64 startPosition | 80 i64 stopPosition | 88 i32 initialTermId |
 *                 92 i32 segmentFileLength | 96 i32 termBufferLength | 100 i32 mtuLength | 104 i32 sessionId |
 *                 108 i32 streamId | 112 strippedChannel, originalChannel, sourceIdentity (u32 length + ASCII each) | zero
 * Recording ids increase with the offset and are never used twice; nextRecordingId remembers that over purges.
 *
 * Why positional writes and not a mapping: on a full disk a store to a sparse mapping kills the process by SIGBUS, a write
 * answers ENOSPC; and the disk can be simulated. Stock tools that map the file see the writes through the page cache. All
 * bytes are mirrored in memory; the conductor reads there.
 *
 * Crash states. Each mutation is ordered so that a crash after any of its writes leaves a catalog that opens:
 *   add      nextRecordingId, body and a terminating header behind it, then the record header with length and state. Crash
 *            before the last: the record is invisible, an id is skipped. (Stock writes nextRecordingId last; a crash before it
 *            makes a catalog that stock itself refuses, so ours goes first. The resulting bytes are equal.)
 *   stop     stopTimestamp, then stopPosition: a reader that sees a position sees its time. Crash between: still active,
 *            recovery finds the end again.
 *   extend   ids and stopTimestamp, stopPosition last: while it still holds the old stop the recording counts as stopped.
 *   replace, compact
 *            a new file, synced and renamed over the old: a write over several records, or over a record that crosses a sector,
 *            may reach the disk in part, and a record in pieces makes the whole catalog unreadable. Who has the old file open
 *            must open it again.
 *   state    one 4-byte write.
 *   stopped, but the disk refuses: the mirror knows the stop, the file does not; the next mutation writes the file anew, and a crash
 *            before it lets recovery find the end again.
 * With a sync level above 0 the body of an added record is durable before its header is written. After a failed sync nothing that
 * was written before counts as durable: the next mutation writes everything again (the kernel forgets what it failed to write).
 * Every mutation then refreshes the checksum (over `length` bytes, also where stock forgets to) and syncs as configured. A
 * failed mutation may have reached the file but not the mirror; the writer retries or reports, both hold valid catalogs.
 *
 * Thread rule: the owner (the archive's conductor) for everything but asi_recording_positions, which any thread may read. */
#ifndef ASI_STORE_CATALOG_H
#define ASI_STORE_CATALOG_H

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
/* 3.1.0: of the catalog's header and of the mark file; only the major part must be equal. Spec: 06 §2. */
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

asi_text asi_text_of(const char *terminated);

/* One record, taken apart. Texts and descriptor point into the catalog's memory: valid until its next mutation or close. */
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
    /* The bytes that the control protocol sends behind its own control session and correlation id: from recordingId to the
     * end of the record, padding included. Spec: 06 §3.3. */
    const uint8_t *descriptor;
    int32_t descriptor_length;
    int64_t offset;       /* of the record header in the file */
    int64_t frame_length; /* of record header, body and padding */
} asi_catalog_record;

/* -- scanning bytes ------------------------------------------------------------------------------------------------------- */

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

/* -- the archive's writable catalog --------------------------------------------------------------------------------------- */

typedef struct asi_catalog asi_catalog;

typedef struct asi_catalog_params
{
    const asi_file_ops *files;   /* borrowed until close */
    const char *archive_dir;
    int64_t capacity;            /* bytes the file has at least; ASI_CATALOG_DEFAULT_CAPACITY */
    int32_t sync_level;          /* aeron.archive.catalog.file.sync.level */
    as_record_checksum checksum; /* aeron.archive.record.checksum */
    bool is_after_crash;         /* what the last archive may have left half done is put right, not refused */
    /* Told of each record that is kept although its values can't be, or that the repair takes back or hides. NULL: nobody is. */
    void (*on_damage)(void *context, const char *text);
    void *damage_context;
} asi_catalog_params;

/* Creates the file if there is none. AS_E_DATA: another major version, records that are none, ids not increasing,
 * nextRecordingId too low; the text names the file and what to do. Recordings whose values can't be are found and listed; whoever works
 * with one calls asi_recording_check_untrusted first. */
as_result asi_catalog_open(const asi_catalog_params *params, asi_catalog **catalog) AS_MUST_USE;
/* Syncs; harmless on NULL. */
void asi_catalog_close(asi_catalog *catalog);

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

/* AS_E_STORAGE: disk, or "catalog is full, max capacity reached: <max>" / "recording is too big: ...". */
as_result asi_catalog_add(asi_catalog *catalog, const asi_recording_params *params, int64_t *recording_id) AS_MUST_USE;
as_result asi_catalog_stop(asi_catalog *catalog, int64_t recording_id, int64_t stop_position, int64_t stop_timestamp_ms) AS_MUST_USE;
as_result asi_catalog_extend(asi_catalog *catalog, int64_t recording_id, int64_t control_session_id, int64_t correlation_id,
    int32_t session_id) AS_MUST_USE;
as_result asi_catalog_set_start_position(asi_catalog *catalog, int64_t recording_id, int64_t position) AS_MUST_USE;
as_result asi_catalog_set_stop_position(asi_catalog *catalog, int64_t recording_id, int64_t position) AS_MUST_USE;
/* Takes DELETED records out, but those that `must_stay` names, whose ids something still needs: ids, order and nextRecordingId stay as
 * they are, the file shrinks down to the capacity that it was opened with. By a new file, as replace, and durable at every sync
 * level, behind the deletions of files that went before. A failure before the new file has its name changes nothing. */
typedef bool (*asi_catalog_must_stay)(void *context, int64_t recording_id);
as_result asi_catalog_compact(
    asi_catalog *catalog, asi_catalog_must_stay must_stay, void *context, int64_t *reclaimed_bytes) AS_MUST_USE;
/* Whole body but control session and correlation id; makes the state VALID. Later records move when it grows. The texts must not be
 * the catalog's own. */
as_result asi_catalog_replace(asi_catalog *catalog, int64_t recording_id, const asi_recording_params *params) AS_MUST_USE;
/* VALID to DELETED or INVALID: the recording leaves the index, its bytes stay. */
as_result asi_catalog_invalidate(asi_catalog *catalog, int64_t recording_id, int32_t state) AS_MUST_USE;

/* Ids below are not given out any more: there are files of them. */
as_result asi_catalog_skip_ids(asi_catalog *catalog, int64_t next_recording_id) AS_MUST_USE;
/* Ids of DELETED records in ascending order, for the caller to free; NULL with a count of -1: no memory. */
int64_t *asi_catalog_deleted(const asi_catalog *catalog, int64_t *count);

/* Who writes the folder now, for the next start after a crash: kept in bytes 20 to 27 of the file's header, which others leave
 * alone; zeros once the archive has ended in order. `u8 0xA0 | file sync level, 3 bytes of the mark file's start time, u32 of the
 * machine's boot`. */
typedef struct asi_catalog_writer
{
    bool is_known;          /* an archive of ours did not end in order */
    int32_t file_sync_level;
    uint32_t start;         /* the low 24 bits of the mark file's start timestamp */
    uint32_t boot;          /* of the boot that it ran in */
} asi_catalog_writer;

asi_catalog_writer asi_catalog_get_writer(const asi_catalog *catalog);
as_result asi_catalog_set_writer(asi_catalog *catalog, const asi_catalog_writer *writer) AS_MUST_USE;

/* VALID recordings by id, and by place in ascending order of ids. */
bool asi_catalog_find(const asi_catalog *catalog, int64_t recording_id, asi_catalog_record *record);
int64_t asi_catalog_count(const asi_catalog *catalog);
void asi_catalog_at(const asi_catalog *catalog, int64_t index, asi_catalog_record *record);
/* Index of the first recording with an id >= recording_id; the count if there is none. */
int64_t asi_catalog_index_from(const asi_catalog *catalog, int64_t recording_id);
/* Index of the last recording of that session and stream id in [from, below); -1 if there is none. Takes no record apart, which is
 * what a search through very many costs. */
int64_t asi_catalog_last_of(const asi_catalog *catalog, int64_t from, int64_t below, int32_t session_id, int32_t stream_id);
int64_t asi_catalog_next_recording_id(const asi_catalog *catalog);
int64_t asi_catalog_capacity(const asi_catalog *catalog);
int64_t asi_catalog_used_bytes(const asi_catalog *catalog);
int64_t asi_catalog_deleted_bytes(const asi_catalog *catalog); /* of them, of DELETED records */

/* Positions for other threads. Written by the catalog's owner with release after the file was written; read with acquire.
 * A stale stop of -1 costs one more look. The address lives until the catalog is closed, also after a purge. */
typedef struct asi_recording_positions
{
    int64_t start_position;
    int64_t stop_position;
} asi_recording_positions;

/* NULL for an unknown id. Owner's thread; the result may be handed to other threads. */
const asi_recording_positions *asi_catalog_positions(const asi_catalog *catalog, int64_t recording_id);

static inline int64_t asi_recording_start(const asi_recording_positions *positions)
{
    return asi_load_acquire_i64(&positions->start_position);
}

static inline int64_t asi_recording_stop(const asi_recording_positions *positions)
{
    return asi_load_acquire_i64(&positions->stop_position);
}

#endif
