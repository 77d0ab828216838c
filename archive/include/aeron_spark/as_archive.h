/* Public API of the Archive: server, client, and direct reads of an archive's folder.
 * Spec: 06 (storage), 07 (protocol), 08 (behaviour).
 *
 * Three independent parts:
 *   as_archive         records streams of a media driver to segment files and replays them; process or embedded threads
 *   as_archive_client  client of an archive, ours or a stock one: as_archive_client.h, which this header includes
 *   as_folder          read-only view of an archive folder: descriptors, the extent of each recording, rows as columns, times;
 *                      works on live, stopped and crashed archives without writing to them
 * Thread rule: each object belongs to one thread at a time; different objects are independent. */
#ifndef AERON_SPARK_AS_ARCHIVE_H
#define AERON_SPARK_AS_ARCHIVE_H

#include "aeron_spark/as_archive_client.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
/* CFFI-BEGIN */
/* -- server -------------------------------------------------------------------------------------------------------------- */

typedef struct as_archive_config as_archive_config;
typedef struct as_archive as_archive;

as_result as_archive_config_open(as_archive_config **config) AS_MUST_USE;
void as_archive_config_close(as_archive_config *config);
/* Sets one setting by its stock name, for example "aeron.archive.dir" or "AERON_ARCHIVE_DIR". Unknown names are accepted and
 * ignored. "aeron.dir" selects the media driver. AS_E_USAGE: the value is not valid. */
as_result as_archive_config_set(as_archive_config *config, const char *name, const char *value) AS_MUST_USE;
/* Names of all archive settings, by index from 0. Returns NULL after the last one. */
const char *as_archive_config_name(int64_t index);
as_result as_archive_config_load_environment(as_archive_config *config) AS_MUST_USE;
as_result as_archive_config_load_properties(as_archive_config *config, const char *path) AS_MUST_USE;
const char *as_archive_config_archive_dir(const as_archive_config *config);

/* Claims the folder by its mark file, opens and recovers the catalog, connects to the driver, opens the control channels.
 * AS_E_USAGE: an active archive owns the folder; AS_E_DATA: foreign or damaged catalog. Each error text names the cure. */
as_result as_archive_open(const as_archive_config *config, as_archive **archive) AS_MUST_USE;
/* Starts the threads (DEDICATED: conductor, recorder, replayer; SHARED: one). In INVOKER mode call as_archive_do_work instead. */
as_result as_archive_start(as_archive *archive) AS_MUST_USE;
int as_archive_do_work(as_archive *archive);
/* True after a fatal failure, for example a lost driver. The owner should close the archive; as_archive_failure says why. */
bool as_archive_has_failed(const as_archive *archive);
const char *as_archive_failure(const as_archive *archive);
/* True once the archive had no control session, recording or replay for aeron.spark.archive.exit.when.idle. */
bool as_archive_is_idle_expired(const as_archive *archive);
int64_t as_archive_id(const as_archive *archive);
/* Ends the sessions, stores the stop positions of active recordings, and releases the mark file. */
void as_archive_close(as_archive *archive);

/* -- folder ---------------------------------------------------------------------------------------------------------------- */

typedef struct as_folder as_folder;
typedef struct as_segment_reader as_segment_reader;

typedef enum as_record_checksum_e
{
    AS_CHECKSUM_AUTO = 0,   /* detected from the recording's first frames; Spec: 06 §8 */
    AS_CHECKSUM_NONE = 1,
    AS_CHECKSUM_CRC32 = 2,
    AS_CHECKSUM_CRC32C = 3
} as_record_checksum;

typedef struct as_folder_options
{
    const char *aeron_dir;       /* NULL: the directory that the mark file names */
    as_record_checksum checksum; /* default AUTO */
    bool without_counters;       /* no file of the Aeron directory is mapped: extents of active recordings are AS_E_PEER */
} as_folder_options;

typedef struct as_folder_info
{
    int64_t archive_id;           /* from the mark file; -1 if it has none */
    int64_t pid;                  /* of the archive; 0 without a mark file */
    int64_t activity_timestamp_ms;/* -1 after a clean shutdown */
    bool has_mark_file;
    bool is_live;                 /* the mark file's activity timestamp is younger than 10 s */
    int32_t local_control_stream_id; /* stream for IPC control sessions; 0 without a mark file */
    int64_t invalid_count;        /* recordings marked INVALID; they are not listed */
    const char *aeron_dir;        /* "" if unknown; valid until the folder is closed */
} as_folder_info;

/* The range of a recording that can be read now. */
typedef struct as_recording_extent
{
    int64_t start_position;
    int64_t limit_position; /* recorded position if live, stop position if stopped, last whole frame if the archive died */
    bool is_active;         /* being recorded now: limit_position grows */
} as_recording_extent;

void as_folder_options_init(as_folder_options *options);
/* Opens a folder; writes nothing. AS_E_DATA: no catalog, or a foreign or truncated one; AS_E_STORAGE: a read failed. */
as_result as_folder_open(const char *path, const as_folder_options *options, as_folder **folder) AS_MUST_USE;
void as_folder_close(as_folder *folder);
/* Reads catalog and mark file again to find new recordings and changed positions. Strings returned earlier become invalid. */
as_result as_folder_refresh(as_folder *folder) AS_MUST_USE;
as_result as_folder_get_info(const as_folder *folder, as_folder_info *info) AS_MUST_USE;
/* Recordings in state VALID, in id order. Strings stay valid until refresh or close. */
int64_t as_folder_recording_count(const as_folder *folder);
as_result as_folder_recording_at(const as_folder *folder, int64_t index, as_recording *recording) AS_MUST_USE;

/* Arrays for planning over many recordings: as_folder_recording_count elements each, in id order. */
typedef struct as_folder_columns
{
    int64_t *recording_id;
    int64_t *revision;       /* counted by the folder object; changes when more than positions and the stop time has changed */
    int64_t *start_position;
    int64_t *stop_position;  /* AS_NULL_VALUE: active, or a damaged entry; call as_folder_extent */
} as_folder_columns;

/* Fills the columns with the state of the last refresh. */
void as_folder_get_columns(const as_folder *folder, const as_folder_columns *columns);

/* AS_E_USAGE: unknown id; the text names the ids that exist. */
as_result as_folder_recording(const as_folder *folder, int64_t recording_id, as_recording *recording) AS_MUST_USE;
/* AS_E_PEER: the archive is live, but the counters of its driver can't be read. The text names the setting to change. */
as_result as_folder_extent(as_folder *folder, int64_t recording_id, as_recording_extent *extent) AS_MUST_USE;
/* The same for several recordings. Opens the driver's counters once for all of them. */
as_result as_folder_extents(as_folder *folder, const int64_t *recording_ids, int64_t count, as_recording_extent *extents)
    AS_MUST_USE;
/* The checksum of the recording's frames. Never AUTO. */
as_result as_folder_checksum(as_folder *folder, int64_t recording_id, as_record_checksum *checksum) AS_MUST_USE;
/* A 48-bit fingerprint of the frame that ends at each position. A later call detects with it whether the bytes there were
 * replaced. The upper 32 bits cover the frame without its session id. The lower 16 bits cover the session id; they are 0 where a
 * checksum is stored in its field. The fingerprint is 0 where no frame is found to end at the position: at the recording's start,
 * or where the bytes are purged. AS_E_USAGE: unknown recording. */
as_result as_folder_fingerprints(
    as_folder *folder, const int64_t *recording_ids, const int64_t *positions, int64_t count, int64_t *fingerprints) AS_MUST_USE;
/* Finds the largest message boundary `to` in [from, limit] with to - from <= max_bytes and at most max_messages messages.
 * AS_NULL_VALUE for either means no bound. The range holds at least one message if a whole message ends before `limit`. Padding
 * at the end is included. `from` is any position of the recording; one inside a message is moved up to the next message. */
as_result as_folder_advance(as_folder *folder, int64_t recording_id, int64_t from, int64_t limit, int64_t max_bytes,
    int64_t max_messages, int64_t *to) AS_MUST_USE;
/* Finds the message boundary at or after `position` (with `back`: at or before it) inside [start_position, limit]. */
as_result as_folder_align(
    as_folder *folder, int64_t recording_id, int64_t position, int64_t limit, bool back, int64_t *boundary) AS_MUST_USE;
/* Splits [start, end) into ranges of about target_bytes. It splits where a term begins; inside a term, only at message
 * boundaries. Writes the start of each range to `starts` and their number, at most `capacity`, to *count. The same arguments
 * always give the same ranges. */
as_result as_folder_split(as_folder *folder, int64_t recording_id, int64_t start, int64_t end, int64_t target_bytes,
    int64_t *starts, int64_t capacity, int64_t *count) AS_MUST_USE;

/* -- times. Our archive keeps a time index beside each recording. The time of a message is the archive's clock (ns since
 * 1970-01-01 UTC) at the write that completed the message. It is never less than the time of the previous write. -- */

typedef struct as_time_position
{
    int64_t position; /* a message boundary at or before the first message at or after the time; the limit if no message is */
    bool is_rebuilt;  /* derived from modification times of segments: early by up to a segment */
} as_time_position;

/* Finds a position by time. With the index, the position is early by at most one interval (aeron.spark.archive.time.index.*) or
 * by the message that spans the interval's start, and never late. Without the index it uses the segments' modification times. */
as_result as_folder_position_at_time(as_folder *folder, int64_t recording_id, int64_t time_ns, as_time_position *found)
    AS_MUST_USE;
/* Finds the first message whose reserved value is at or after time_ns; the limit if there is none. The reserved value is a time
 * since 1970-01-01 UTC in units of unit_ns (1: ns, 1000: us, 1000000: ms). The result is exact if publishers stamp messages when
 * they send them, in ascending order, with clocks at most skew_ns ahead of the archive's. The call reads skew_ns more of the
 * recording. */
as_result as_folder_position_at_reserved_time(as_folder *folder, int64_t recording_id, int64_t time_ns, int64_t unit_ns,
    int64_t skew_ns, int64_t *position) AS_MUST_USE;

typedef enum as_time_from_e
{
    AS_TIME_FROM_INDEX = 0,   /* at most one interval before the write */
    AS_TIME_FROM_SEGMENT = 1, /* from modification times: at most a segment's time before the write */
    AS_TIME_FROM_BEFORE = 2   /* no time is known at this position: the last known time before it */
} as_time_from;

/* Gives the write times of the bytes at `count` positions, and the source of each time. A time is never later than the write.
 * Ascending positions give times that do not decrease, and are faster. */
as_result as_folder_times_at(as_folder *folder, int64_t recording_id, const int64_t *positions, int64_t count, int64_t *times_ns,
    uint8_t *sources) AS_MUST_USE;

typedef struct as_time_reach
{
    int64_t position;    /* what ends at or before it has its time, or none for good; the limit if no entry comes any more */
    int64_t interval_ns; /* of the entries to come, the archive writes one within two of these after the bytes; 0: none comes */
} as_time_reach;

/* Tells how far the messages of an active recording have their times of the index: entries come later than the bytes. */
as_result as_folder_time_reach(as_folder *folder, int64_t recording_id, as_time_reach *reach) AS_MUST_USE;

typedef struct as_time_run
{
    int64_t position;
    int64_t length;
    int64_t first_ns; /* of its first write */
    int64_t last_ns;  /* of its last write */
    bool is_rebuilt;
} as_time_run;

/* Gives the runs that end after `from`, at most `capacity`. A run is the bytes of one write, or of several within an interval. */
as_result as_folder_time_runs(as_folder *folder, int64_t recording_id, int64_t from, as_time_run *runs, int64_t capacity,
    int64_t *count) AS_MUST_USE;

typedef struct as_time_index_info
{
    int64_t file_length;
    int64_t run_count;       /* inside the recording */
    int64_t rebuilt_count;   /* runs made from modification times */
    int64_t broken_count;    /* entries torn or lost in a crash */
    int64_t indexed_bytes;
    int64_t recording_bytes;
    int64_t first_ns;        /* -1 without a run */
    int64_t last_ns;
    bool exists;
    bool is_believed;        /* false: missing, or an archive without time index has extended the recording since */
} as_time_index_info;

as_result as_folder_time_index_info(as_folder *folder, int64_t recording_id, as_time_index_info *info) AS_MUST_USE;
/* Rewrites the recording's time index. It keeps the entries of the index and fills gaps from the modification times of segments.
 * No other as_folder call writes. AS_E_USAGE: the recording is active. */
as_result as_folder_rebuild_time_index(as_folder *folder, int64_t recording_id) AS_MUST_USE;

/* -- retention: selects what to delete. The archive's policy (aeron.spark.archive.retain.*) and the command share these rules.
 * They delete whole segments from a recording's start on, and never the segment being written. A stopped recording is purged if
 * all of its segments are selected. -- */

typedef struct as_retention_policy
{
    int64_t older_than_ms;   /* deletes segments last written longer ago; AS_NULL_VALUE in any field: no bound */
    int64_t max_bytes;       /* deletes the oldest segments until no more than this is used */
    int64_t keep_recordings; /* keeps this many recordings of each channel and stream, the newest, and all active ones */
} as_retention_policy;

typedef struct as_retention_segment
{
    int64_t base;
    int64_t bytes;      /* used on the disk */
    int64_t written_ms; /* time of the last write */
} as_retention_segment;

typedef enum as_retention_reason_e
{
    AS_RETENTION_KEPT = 0,
    AS_RETENTION_TOO_OLD = 1,
    AS_RETENTION_TOO_BIG = 2,
    AS_RETENTION_TOO_MANY = 3
} as_retention_reason;

typedef struct as_retention_recording
{
    int64_t recording_id;
    int64_t stream;            /* equal numbers mean the same channel and stream */
    bool is_active;
    bool is_kept;              /* the whole recording is kept, whatever the policy */
    int64_t stop_timestamp_ms; /* AS_NULL_VALUE: unknown */
    int64_t last_base;         /* base of the segment in which the recording ends now */
    const as_retention_segment *segments; /* borrowed; in ascending order of base */
    int64_t segment_count;
    /* Set by as_retention_plan. */
    as_retention_reason reason;
    int64_t goes;              /* number of segments to delete */
    bool is_purged;            /* the recording is deleted too */
    int64_t new_start;         /* new start position if it is not purged; AS_NULL_VALUE: unchanged */
} as_retention_recording;

/* True if stream id and original channel are those of the ledger of the Spark sink's exactly-once writes. The ledger records
 * which messages count, so a retention policy must not delete it: that would undo committed writes. */
bool as_is_ledger(int32_t stream_id, const char *original_channel);

/* Writes the plan into `recordings`. AS_E_INTERNAL: out of memory. */
as_result as_retention_plan(
    const as_retention_policy *policy, int64_t now_ms, as_retention_recording *recordings, int64_t count) AS_MUST_USE;

/* Reads the messages that begin in [start, end) as rows. To complete the last message, the reader reads up to `limit` >= end.
 * AS_E_USAGE: positions outside [start_position, limit_position]; AS_E_DATA: a segment is missing, the text names file and
 * position. */
as_result as_segment_reader_open(as_folder *folder, int64_t recording_id, int64_t start, int64_t end, int64_t limit,
    as_segment_reader **reader) AS_MUST_USE;
/* Fills the columns from row 0 on; of a `byte_capacity` of 256 KiB or more, up to 64 KiB may stay free. AS_OK with rows, or with
 * row_count 0 at the end of the range. AS_E_DATA: a broken frame, a wrong header or checksum, or a missing segment; the text names
 * recording, file and position. */
as_result as_segment_reader_next(as_segment_reader *reader, as_columns *columns) AS_MUST_USE;
int64_t as_segment_reader_position(const as_segment_reader *reader);

typedef struct as_doubt
{
    int64_t position;
    char text[400]; /* names recording and position */
} as_doubt;

/* Reports possible damage in the rows returned so far or in the bytes between them. The data may be correct: the frames' checksum
 * does not cover the frame headers and the catalog. Each kind is reported once, with its first position. False: no more
 * reports. */
bool as_segment_reader_doubt(as_segment_reader *reader, as_doubt *doubt) AS_MUST_USE;
/* The checksum of the frames that the reader checks: the given one, or the detected one. Never AUTO. */
as_record_checksum as_segment_reader_checksum(const as_segment_reader *reader);
void as_segment_reader_close(as_segment_reader *reader);

/* -- recordings whose files are not on a local path, for example in an object store: the caller fetches the bytes, which are
 * checked and read as files are -- */

/* Calls on_recording with each VALID recording of a catalog, in id order. `bytes` is the whole file, `name` its name in error
 * texts; `with_segments` are the ids of the `count` recordings of which there are segment files. AS_E_DATA: a foreign or damaged
 * catalog, a recording with impossible values, or segment files of one that was cut off at the end. */
as_result as_catalog_list(const char *name, const uint8_t *bytes, int64_t length, const int64_t *with_segments, int64_t count,
    as_on_recording on_recording, void *context) AS_MUST_USE;

/* Bytes of one segment file; the rest of the file reads as zeros. */
typedef struct as_segment_bytes
{
    const char *folder;          /* its name in error texts */
    const uint8_t *bytes;        /* borrowed until the reader is closed */
    int64_t position;            /* of the first byte, in the stream */
    int64_t length;
    as_record_checksum checksum; /* AUTO: detected from the frames in the range */
} as_segment_bytes;

/* As as_segment_reader_open. `recording` begins and stops in the segment: its positions are those of the catalog, cut to the
 * segment. AS_E_USAGE: bytes or positions outside of it; AS_E_DATA: impossible values in `recording`. */
as_result as_segment_reader_open_bytes(const as_recording *recording, const as_segment_bytes *bytes, int64_t start, int64_t end,
    int64_t limit, as_segment_reader **reader) AS_MUST_USE;

/* -- tools ----------------------------------------------------------------------------------------------------------------- */

/* The catalog of a folder for the command line tools: every record, in any state. Spec: 06 §12, §13. Calls that write need
 * as_catalog_open with `writable`. That refuses a live archive and holds the mark file as an archive does, so that no archive
 * starts meanwhile. as_catalog_close releases the mark file. */
typedef struct as_catalog as_catalog;

typedef enum as_recording_state_e
{
    AS_RECORDING_INVALID = 0,
    AS_RECORDING_VALID = 1,
    AS_RECORDING_DELETED = 2
} as_recording_state;

typedef struct as_catalog_info
{
    int32_t version;          /* major * 65536 + minor * 256 + patch */
    int32_t alignment;
    int64_t next_recording_id;
    int64_t capacity;         /* bytes of the file */
    int64_t used;             /* bytes up to the end of the last record */
    const char *damage;       /* why the records after the last one can't be read; "" without damage */
} as_catalog_info;

typedef struct as_catalog_entry
{
    as_recording recording;   /* texts valid until close */
    int64_t control_session_id;
    int64_t correlation_id;
    int32_t state;            /* as_recording_state, or another number that is stored */
    int32_t checksum;         /* as stored; 0: none */
    int64_t offset;           /* of the record in the file */
    int64_t length;           /* of the record, header and padding included */
} as_catalog_entry;

typedef struct as_mark_view
{
    int32_t version;
    int64_t activity_timestamp_ms; /* -1 after a clean shutdown */
    int64_t start_timestamp_ms;
    int64_t pid;
    int64_t archive_id;
    int32_t control_stream_id;
    int32_t local_control_stream_id;
    int32_t events_stream_id;
    int32_t header_length;
    int32_t error_buffer_length;
    bool is_live;
    const char *path;         /* this text and those below stay valid until the catalog is closed */
    const char *control_channel;
    const char *local_control_channel;
    const char *events_channel;
    const char *aeron_dir;
} as_mark_view;

/* Called every few MiB of a long operation. Returning false stops it, and the operation returns AS_AGAIN. */
typedef bool (*as_on_progress)(void *context, int64_t bytes_done);

/* AS_E_DATA: no catalog, another major version, a damaged header. AS_E_USAGE with `writable`: a live archive owns the folder. */
as_result as_catalog_open(const char *archive_dir, bool writable, as_catalog **catalog) AS_MUST_USE;
void as_catalog_close(as_catalog *catalog);
as_result as_catalog_get_info(const as_catalog *catalog, as_catalog_info *info) AS_MUST_USE;
int64_t as_catalog_count(const as_catalog *catalog);
as_result as_catalog_at(const as_catalog *catalog, int64_t index, as_catalog_entry *entry) AS_MUST_USE;
/* AS_AGAIN: there is no mark file. */
as_result as_catalog_mark(as_catalog *catalog, as_mark_view *mark) AS_MUST_USE;
/* Calls `on_entry` with each distinct error that the folder's archives logged. Returns their number, 0 without a mark file. */
int64_t as_catalog_errors(as_catalog *catalog, as_on_error_entry on_entry, void *context) AS_MUST_USE;
/* Changes VALID to INVALID or back. AS_E_USAGE: any other transition. */
as_result as_catalog_set_state(as_catalog *catalog, int64_t index, as_recording_state state) AS_MUST_USE;
/* Changes where a recording ends, in a copy of a folder: AS_NULL_VALUE, twice, makes it one whose end a recovery finds. AS_E_USAGE:
 * a position before the start, or inside a frame's alignment. */
as_result as_catalog_set_stop(
    as_catalog *catalog, int64_t index, int64_t stop_position, int64_t stop_timestamp_ms) AS_MUST_USE;

typedef struct as_verify_options
{
    bool all_segments;           /* false: the last segment only */
    bool repair;                 /* stores the corrections; the catalog must be writable */
    as_record_checksum checksum; /* AUTO: the checksum that the frames carry; a stale catalog checksum is then no error */
    int64_t live_limit;          /* recorded position of a recording that is active now; AS_NULL_VALUE: not active */
    as_on_progress on_progress;  /* may be NULL */
    void *context;
} as_verify_options;

typedef enum as_verify_outcome_e
{
    AS_VERIFY_OK = 0,
    AS_VERIFY_SKIPPED = 1,    /* deleted */
    AS_VERIFY_REPAIRABLE = 2, /* `text` describes what `repair` would do */
    AS_VERIFY_REPAIRED = 3,
    AS_VERIFY_BAD = 4
} as_verify_outcome;

typedef struct as_verify_report
{
    int32_t outcome;             /* as_verify_outcome */
    as_record_checksum checksum; /* the one that was verified; NONE: none */
    bool is_catalog_checksum_stale;
    int64_t stop_position;       /* end of the frames */
    int64_t frames;
    int64_t bytes;               /* length of the positions walked */
    char text[768];              /* the fault or a note; "" if there is none */
} as_verify_report;

void as_verify_options_init(as_verify_options *options);
/* Verifies one recording. A bad recording gives AS_OK and is described in the report. Error results are failures of writing and
 * of the folder. */
as_result as_catalog_verify(as_catalog *catalog, int64_t index, const as_verify_options *options, as_verify_report *report)
    AS_MUST_USE;

typedef struct as_checksum_report
{
    int64_t frames;  /* frames with a checksum */
    int64_t changed; /* how many of them changed */
    int64_t bytes;
} as_checksum_report;

/* Computes the checksum of the catalog record, and those of the DATA frames in the last segment or in all, and stores them. With
 * `is_dry` it only counts. AS_E_DATA: a frame can't be walked; the checksums of the frames before it are stored. */
as_result as_catalog_checksum(as_catalog *catalog, int64_t index, as_record_checksum checksum, bool all_segments, bool is_dry,
    as_on_progress on_progress, void *context, as_checksum_report *report) AS_MUST_USE;

/* Packs the VALID records into a new catalog that replaces the old one. Delete the segment files of all other records first.
 * Afterwards the catalog must be closed. `deleted` is the number of records dropped, `reclaimed` the bytes that they used. */
as_result as_catalog_compact(as_catalog *catalog, int64_t *deleted, int64_t *reclaimed) AS_MUST_USE;

typedef struct as_dump as_dump;

typedef struct as_dump_frame
{
    int64_t position;
    int64_t segment_base;
    int32_t frame_length;
    int32_t version;
    int32_t flags;
    int32_t type;
    int32_t term_offset;
    int32_t session_id;
    int32_t stream_id;
    int32_t term_id;
    int64_t reserved_value;
    const uint8_t *payload;   /* borrowed until the next call */
    int64_t payload_length;   /* 0 for padding: only its header is stored */
} as_dump_frame;

/* Reads the frames that begin in [start, end) and checks their headers against their position. `limit` >= end is the end of the
 * recording. A `start` inside a frame is moved up to the next frame. */
as_result as_dump_open(as_catalog *catalog, int64_t index, int64_t start, int64_t end, int64_t limit, as_dump **dump) AS_MUST_USE;
/* AS_AGAIN: end of the range. AS_E_DATA: a bad frame; the text names recording, file and position. */
as_result as_dump_next(as_dump *dump, as_dump_frame *frame) AS_MUST_USE;
void as_dump_close(as_dump *dump);

typedef void (*as_on_text)(void *context, const char *text);
/* Migrates a folder of storage version 0, 1 or 2 to the current version, step by step. Each step calls `on_step` with each action
 * that it takes, or with `is_dry` would take. AS_E_USAGE: a live archive owns the folder. AS_E_DATA: the folder has no such
 * version, or the marker file of an interrupted step exists. `steps` receives the number of steps. Spec: 06 §13. */
as_result as_archive_migrate(const char *archive_dir, bool is_dry, as_on_text on_step, void *context, int32_t *steps) AS_MUST_USE;
/* CFFI-END */
/* Sets a handler for logged errors. Without it, errors are only in the mark file's error log. */
void as_archive_config_on_error(as_archive_config *config, as_on_logged_error on_error, void *context);
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
