/* The time index, <recordingId>.time-index, stores when the bytes of a recording were written. It is our own sidecar file in the
 * archive's folder; stock archives and tools ignore it. The recorder writes it, the conductor edits it, the folder reader reads
 * it.
 *
 * Guarantee. A message's time is the archive's clock (ns since 1970-01-01 UTC) at the write that completed it. It is never less
 * than the time of the previous write. For a time T, the index gives a reader a message boundary at or before the first message
 * at or after T: never after that message, and before it by at most one interval of writes.
 *
 * A run is a stretch of the recording that was written by one write, or by several within the interval of time and of bytes. A
 * run consists of whole frames, but a message may span two runs. One entry describes one run:
 *
 *   header (64 bytes, little-endian, as all)
 *     0 i64 magic | 8 i32 version (1) | 12 i32 length of an entry (32) | 16 i64 recordingId | 24 i64 controlSessionId |
 *     32 i64 correlationId | 40 i32 sessionId | 44 zero | 48 i64 first slot in use | 56 u32 interval of entries in ms, rounded up,
 *     0: the archive adds none | 60 u32 CRC-32C of bytes 0 to 59
 *   slot n, at 64 + 32 n
 *     0 i64 position of its first byte | 8 i64 time of its first write | 16 i64 time of its last write |
 *     24 u32 length (a multiple of 32), bit 0: rebuilt, see below | 28 u32 CRC-32C of bytes 0 to 27, recordingId (i64), n (i64)
 *
 * Positions and times do not decrease from slot to slot, and runs do not overlap. The bytes between two runs are a gap: their
 * times are only known to lie between the times of the two runs. Hence every loss is harmless. A torn, zero or missing slot is a
 * gap, and the search returns the gap's start, which is earlier than necessary but never later. Without the file, the search uses
 * the segments' modification times and is early by at most one segment.
 *
 * Only entries of bytes that were replaced later could make a result late. Two rules exclude them:
 *   - Before a writer continues at a position, it cuts the index there and syncs the cut; only then it records the first byte. A
 *     reader ignores entries outside the recording, so the order of the steps between truncating and writing again does not
 * matter.
 *   - controlSessionId, correlationId and sessionId are those of the catalog at the last start or extension that this file knows.
 *     An archive that does not know the file changes them when it extends the recording. Then the whole file is invalid.
 *
 * The file is there, with its interval, before the recorded position shows the first bytes. So a reader of an active recording
 * knows whether entries will come, and for how long to wait for those of the last bytes: two intervals.
 *
 * A crash loses the entries that were not written yet: at most two intervals. Nothing is synced while recording. After a power
 * failure the file may hold entries of bytes that the segments have lost, which lie outside the recording, and holes, which are
 * gaps. A failed write (full disk) loses its entries; the recording continues.
 *
 * Detached segments keep their entries, in case the segments are attached again. When a quarter of the entries lies before the
 * recording's start, the recorder frees their blocks in the file system and moves `first slot`.
 *
 * Rebuilt entries (bit 0) are made from the file system's modification times, one run for each segment, and have their accuracy.
 * In a copy of a folder that did not keep these times, results are earlier.
 *
 * Thread rule: one writer or editor at a time; any number of concurrent readers, also in other processes. */
#ifndef ASI_STORE_TIME_INDEX_H
#define ASI_STORE_TIME_INDEX_H

#include "base/clock.h"
#include "store/catalog.h"
#include "store/file_ops.h"

#define ASI_TIME_INDEX_SUFFIX ".time-index"
#define ASI_TIME_INDEX_HEADER_LENGTH 64
#define ASI_TIME_INDEX_ENTRY_LENGTH 32
#define ASI_TIME_INDEX_VERSION 1

typedef struct asi_time_run
{
    int64_t position;
    int64_t length;
    int64_t first_ns;
    int64_t last_ns;
    bool is_rebuilt;
} asi_time_run;

/* The catalog's ids of the last writer. */
typedef struct asi_time_era
{
    int64_t control_session_id;
    int64_t correlation_id;
    int32_t session_id;
} asi_time_era;

typedef struct asi_time_header
{
    int64_t recording_id;
    asi_time_era era;
    int64_t first_slot;
    uint32_t interval_ms; /* 0: nobody adds entries */
} asi_time_header;

static inline asi_time_era asi_time_era_of(const asi_catalog_record *record)
{
    return (asi_time_era){ .control_session_id = record->control_session_id, .correlation_id = record->correlation_id,
        .session_id = record->session_id };
}

/* Converts with clamping, because the catalog's timestamps can have any value. */
static inline int64_t asi_time_of_ms(int64_t ms)
{
    return ms < 0 ? 0 : ms > INT64_MAX / 1000000 ? INT64_MAX : ms * 1000000;
}

static inline bool asi_time_era_equals(const asi_time_era *a, const asi_time_era *b)
{
    return a->control_session_id == b->control_session_id && a->correlation_id == b->correlation_id &&
        a->session_id == b->session_id;
}

static inline int64_t asi_time_run_end(const asi_time_run *run) { return run->position + run->length; }
static inline int64_t asi_time_slot_offset(int64_t slot)
{
    return ASI_TIME_INDEX_HEADER_LENGTH + slot * ASI_TIME_INDEX_ENTRY_LENGTH;
}

as_result asi_time_index_path(char *to, size_t capacity, const char *dir, int64_t recording_id) AS_MUST_USE;
/* True for the name of an index; sets the id. */
bool asi_time_index_name_parse(const char *name, int64_t *recording_id);

void asi_time_header_encode(const asi_time_header *header, uint8_t *to);
/* False: not a header, or another version. */
bool asi_time_header_decode_untrusted(const uint8_t *from, asi_time_header *header);
void asi_time_run_encode(const asi_time_run *run, int64_t recording_id, int64_t slot, uint8_t *to);
/* False: torn, zero, of another file or slot, or not a run. */
bool asi_time_run_decode_untrusted(const uint8_t *from, int64_t recording_id, int64_t slot, asi_time_run *run);

/* -- an open file --------------------------------------------------------------------------------------------------------- */

#define ASI_TIME_WINDOW_SLOTS 128

typedef struct asi_time_file
{
    const asi_file_ops *files; /* borrowed */
    int fd;                    /* -1: closed */
    asi_time_run *runs;        /* owned: runs in memory instead of a file's; NULL: the file's */
    asi_time_header header;
    int64_t slot_count;        /* number of whole slots in the file when it was opened */
    int64_t window_slot;       /* first slot in `window` */
    int64_t window_count;
    uint8_t window[ASI_TIME_WINDOW_SLOTS * ASI_TIME_INDEX_ENTRY_LENGTH];
} asi_time_file;

/* AS_AGAIN: no file, or no header of this recording. AS_E_STORAGE: the file can't be read. On AS_OK the caller closes the
 * file. */
as_result asi_time_file_open_untrusted(asi_time_file *file, const asi_file_ops *files, const char *dir, int64_t recording_id,
    asi_file_mode mode) AS_MUST_USE;
void asi_time_file_close(asi_time_file *file);
/* False: a gap, or the slot can't be read. */
bool asi_time_file_run(asi_time_file *file, int64_t slot, asi_time_run *run);

/* Slots may be gaps; the search skips them. */
typedef bool (*asi_time_predicate)(void *context, const asi_time_run *run);

/* Finds the first valid slot for which the predicate holds; slot_count if there is none. The predicate must hold for every later
 * slot too. *before receives the last valid slot before it (-1: none). */
int64_t asi_time_file_search(asi_time_file *file, asi_time_predicate holds, void *context, int64_t *before);
/* The same where the run of a slot is known to fail the predicate: takes less time the nearer the slot that is looked for. */
int64_t asi_time_file_search_behind(
    asi_time_file *file, int64_t slot, asi_time_predicate holds, void *context, int64_t *before);

#endif
