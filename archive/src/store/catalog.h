/* The catalog file, archive.catalog, lists the recordings of an archive folder. Spec: 06 §2-5. The archive's conductor writes it;
 * the folder reader scans it read-only.
 *
 * Format (little-endian): file header of 32 bytes, then records, the first at offset 32, each a multiple of the alignment.
 *   file header    0 i32 version | 4 i32 length (32) | 8 i64 nextRecordingId | 16 i32 alignment (64) | zero to 31
 *   record header  0 i32 length of what follows, padding included (<= 0 ends the catalog) | 4 i32 state | 8 i32 checksum | zero
 *   record body   32 i64 controlSessionId | 40 i64 correlationId | 48 i64 recordingId | 56 i64 startTimestamp |
 *                 64 i64 stopTimestamp | 72 i64 startPosition | 80 i64 stopPosition | 88 i32 initialTermId |
 *                 92 i32 segmentFileLength | 96 i32 termBufferLength | 100 i32 mtuLength | 104 i32 sessionId |
 *                 108 i32 streamId | 112 strippedChannel, originalChannel, sourceIdentity (u32 length + ASCII each) | zero
 * Recording ids increase with the offset and are never reused; nextRecordingId keeps that true after purges.
 *
 * Why positional writes and not a mapping: on a full disk a store to a sparse mapping kills the process with SIGBUS, but a write
 * fails with ENOSPC. Positional writes also allow a simulated disk. Stock tools that map the file see the writes through the page
 * cache. A mirror in memory holds all bytes; the conductor reads the mirror.
 *
 * Crash states. The writes of each mutation are ordered so that a crash after any of them leaves a catalog that opens:
 *   add      nextRecordingId, then the body and a terminating header after it, then the record header with length and state.
 * Crash
 *            before the last write: the record is invisible and an id is skipped. (Stock writes nextRecordingId last. A crash
 *            before that makes a catalog that stock itself refuses, so ours writes it first. The resulting bytes are equal.)
 *   stop     stopTimestamp, then stopPosition: a reader that sees a position sees its time. Crash between: the recording is still
 *            active, and recovery finds its end again.
 *   extend   ids and stopTimestamp, stopPosition last: while it holds the old stop position the recording counts as stopped.
 *   replace, compact
 *            a new file, synced and renamed over the old one. A write over several records, or over a record that crosses a
 *            sector, may reach the disk in part, and a torn record makes the whole catalog unreadable. A process that has the old
 *            file open must open it again.
 *   state    one 4-byte write.
 *   a stop that the disk refuses, an extension or an add that it refuses in part and that is taken back
 *            the mirror holds the stop, the file does not. The next mutation rewrites the file. After a crash before that, recovery
 *            finds the end again.
 * With a sync level above 0, the body of an added record is durable before its header is written. After a failed sync, no earlier
 * write counts as durable, because the kernel forgets the pages that it failed to write: the next mutation rewrites everything.
 * Every mutation then refreshes the checksum (over `length` bytes, also where stock does not) and syncs as configured. A failed
 * mutation may have reached the file but not the mirror. The writer retries or reports it; both hold valid catalogs.
 *
 * Thread rule: the owner (the archive's conductor) for everything except asi_recording_positions, which any thread may read. */
#ifndef ASI_STORE_CATALOG_H
#define ASI_STORE_CATALOG_H

#include "store/catalog_record.h"
#include "store/catalog_scan.h"

/* Opens the catalog; creates the file if it does not exist. AS_E_DATA: another major version, malformed records, ids that do not
 * increase, or nextRecordingId too low; the text names the file and the cure. Recordings with impossible values are found and
 * listed: call asi_recording_check_untrusted before using one. */
as_result asi_catalog_open(const asi_catalog_params *params, asi_catalog **catalog) AS_MUST_USE;
/* Syncs; harmless on NULL. */
void asi_catalog_close(asi_catalog *catalog);

/* AS_E_STORAGE: disk error, or "catalog is full, max capacity reached: <max>" / "recording is too big: ...". If only the last
 * sync failed, the recording is listed, stopped at its start position. */
as_result asi_catalog_add(asi_catalog *catalog, const asi_recording_params *params, int64_t *recording_id) AS_MUST_USE;
as_result asi_catalog_stop(asi_catalog *catalog, int64_t recording_id, int64_t stop_position, int64_t stop_timestamp_ms) AS_MUST_USE;
/* Makes a stopped recording active. After a failure it is stopped as before. */
as_result asi_catalog_extend(asi_catalog *catalog, int64_t recording_id, int64_t control_session_id, int64_t correlation_id,
    int32_t session_id) AS_MUST_USE;
as_result asi_catalog_set_start_position(asi_catalog *catalog, int64_t recording_id, int64_t position) AS_MUST_USE;
as_result asi_catalog_set_stop_position(asi_catalog *catalog, int64_t recording_id, int64_t position) AS_MUST_USE;
/* Changes VALID to DELETED or INVALID. Removes the recording from the index; its bytes stay. */
as_result asi_catalog_invalidate(asi_catalog *catalog, int64_t recording_id, int32_t state) AS_MUST_USE;

/* Never assigns ids below next_recording_id: segment files with such ids exist. */
as_result asi_catalog_skip_ids(asi_catalog *catalog, int64_t next_recording_id) AS_MUST_USE;
/* Ids of DELETED records in ascending order; the caller frees the array. NULL with a count of -1: out of memory. */
int64_t *asi_catalog_deleted(const asi_catalog *catalog, int64_t *count);

/* Identifies the archive that writes the folder, for the next start after a crash. Stored in bytes 20 to 27 of the file's header,
 * which other implementations do not use; zeros after a clean shutdown. Format: `u8 0xA0 | file sync level, 3 bytes of the mark
 * file's start time, u32 of the machine's boot`. */
typedef struct asi_catalog_writer
{
    bool is_known;          /* one of our archives did not shut down cleanly */
    int32_t file_sync_level;
    uint32_t start;         /* the low 24 bits of the mark file's start timestamp */
    uint32_t boot;          /* id of the machine's boot at that start */
} asi_catalog_writer;

asi_catalog_writer asi_catalog_get_writer(const asi_catalog *catalog);
as_result asi_catalog_set_writer(asi_catalog *catalog, const asi_catalog_writer *writer) AS_MUST_USE;

/* VALID recordings by id, and by index in ascending order of ids. */
bool asi_catalog_find(const asi_catalog *catalog, int64_t recording_id, asi_catalog_record *record);
int64_t asi_catalog_count(const asi_catalog *catalog);
void asi_catalog_at(const asi_catalog *catalog, int64_t index, asi_catalog_record *record);
/* Index of the first recording with an id >= recording_id; the count if there is none. */
int64_t asi_catalog_index_from(const asi_catalog *catalog, int64_t recording_id);
/* Index of the last recording with that session and stream id in [from, below); -1 if there is none. Decodes no record, because
 * that dominates the cost of a search over many. */
int64_t asi_catalog_last_of(const asi_catalog *catalog, int64_t from, int64_t below, int32_t session_id, int32_t stream_id);
int64_t asi_catalog_next_recording_id(const asi_catalog *catalog);
int64_t asi_catalog_capacity(const asi_catalog *catalog);
int64_t asi_catalog_used_bytes(const asi_catalog *catalog);
int64_t asi_catalog_deleted_bytes(const asi_catalog *catalog); /* the part of used_bytes in DELETED records */

/* NULL for an unknown id. Call on the owner's thread; other threads may use the result. */
const asi_recording_positions *asi_catalog_positions(const asi_catalog *catalog, int64_t recording_id);

#endif
