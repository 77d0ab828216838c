/* The Archive: server, client, and reading an archive's folder directly. Spec: 06 (storage), 07 (protocol), 08 (behaviour).
 *
 * Three independent parts:
 *   as_archive         records streams of a media driver to segment files and replays them; process or embedded threads
 *   as_archive_client  what talks to an archive, ours or a stock one: as_archive_client.h, which this includes
 *   as_folder          read-only view of an archive folder: descriptors, how far each recording goes, rows as columns, times;
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

as_result as_archive_config_open(as_archive_config **config);
void as_archive_config_close(as_archive_config *config);
/* One setting by its stock name, "aeron.archive.dir" or "AERON_ARCHIVE_DIR"; names of others are accepted and ignored.
 * "aeron.dir" says which driver to work with. AS_E_USAGE: the value can't be. */
as_result as_archive_config_set(as_archive_config *config, const char *name, const char *value);
/* Names of all archive settings, by index from 0; NULL behind the last one. */
const char *as_archive_config_name(int64_t index);
as_result as_archive_config_load_environment(as_archive_config *config);
as_result as_archive_config_load_properties(as_archive_config *config, const char *path);
const char *as_archive_config_archive_dir(const as_archive_config *config);

/* Claims the folder by its mark file, opens and recovers the catalog, connects to the driver, opens the control channels.
 * AS_E_USAGE: an active archive owns the folder; AS_E_DATA: foreign or damaged catalog; each text says what to do. */
as_result as_archive_open(const as_archive_config *config, as_archive **archive);
/* Starts the threads (DEDICATED: conductor, recorder, replayer; SHARED: one). In INVOKER mode call as_archive_do_work. */
as_result as_archive_start(as_archive *archive);
int as_archive_do_work(as_archive *archive);
/* True after a fatal failure (driver gone): the owner should close it; as_archive_failure says why. */
bool as_archive_has_failed(const as_archive *archive);
const char *as_archive_failure(const as_archive *archive);
/* True once aeron.spark.archive.exit.when.idle passed without control session, recording or replay. */
bool as_archive_is_idle_expired(const as_archive *archive);
int64_t as_archive_id(const as_archive *archive);
/* Ends sessions, stores real stop positions of active recordings, releases the mark file. */
void as_archive_close(as_archive *archive);

/* -- folder ---------------------------------------------------------------------------------------------------------------- */

typedef struct as_folder as_folder;
typedef struct as_segment_reader as_segment_reader;

typedef enum as_record_checksum_e
{
    AS_CHECKSUM_AUTO = 0,   /* found out from the recording's first frames; Spec: 06 §8 */
    AS_CHECKSUM_NONE = 1,
    AS_CHECKSUM_CRC32 = 2,
    AS_CHECKSUM_CRC32C = 3
} as_record_checksum;

typedef struct as_folder_options
{
    const char *aeron_dir;       /* NULL: the one the mark file names */
    as_record_checksum checksum; /* default AUTO */
} as_folder_options;

typedef struct as_folder_info
{
    int64_t archive_id;           /* of the mark file; -1 if it has none */
    int64_t pid;                  /* of the archive; 0 without a mark file */
    int64_t activity_timestamp_ms;/* -1 after an orderly end */
    bool has_mark_file;
    bool is_live;                 /* the mark file's activity is younger than 10 s */
    int32_t local_control_stream_id; /* where the archive takes IPC control sessions; 0 without a mark file */
    int64_t invalid_count;        /* recordings that are marked INVALID, and not listed */
    const char *aeron_dir;        /* "" if unknown; valid until the folder is closed */
} as_folder_info;

/* How far a recording can be read now. */
typedef struct as_recording_extent
{
    int64_t start_position;
    int64_t limit_position; /* recorded position if live, stop position if stopped, last whole frame if the archive died */
    bool is_active;         /* being recorded now: limit_position grows */
} as_recording_extent;

void as_folder_options_init(as_folder_options *options);
/* AS_E_DATA: no catalog, foreign or truncated one; AS_E_STORAGE: can't be read. Writes nothing. */
as_result as_folder_open(const char *path, const as_folder_options *options, as_folder **folder);
void as_folder_close(as_folder *folder);
/* Reads catalog and mark file again: new recordings, changed positions. Strings given out before become invalid. */
as_result as_folder_refresh(as_folder *folder);
as_result as_folder_get_info(const as_folder *folder, as_folder_info *info);
/* Valid recordings in id order; strings valid until refresh or close. */
int64_t as_folder_recording_count(const as_folder *folder);
as_result as_folder_recording_at(const as_folder *folder, int64_t index, as_recording *recording);

/* What planning over very many recordings goes by: arrays of as_folder_recording_count elements, in id order. */
typedef struct as_folder_columns
{
    int64_t *recording_id;
    int64_t *revision;       /* of the folder object: a new one whenever more has changed than positions and the stop time */
    int64_t *start_position;
    int64_t *stop_position;  /* AS_NULL_VALUE: ask as_folder_extent, it is active or its entry is damaged */
} as_folder_columns;

/* As of the last refresh. */
void as_folder_get_columns(const as_folder *folder, const as_folder_columns *columns);

/* AS_E_USAGE for an unknown id, naming what ids there are. */
as_result as_folder_recording(const as_folder *folder, int64_t recording_id, as_recording *recording);
/* AS_E_PEER when the archive is live but its driver's counters can't be reached (the text says what to set). */
as_result as_folder_extent(as_folder *folder, int64_t recording_id, as_recording_extent *extent);
/* The same of several: the driver's counters are opened once for all of them. */
as_result as_folder_extents(as_folder *folder, const int64_t *recording_ids, int64_t count, as_recording_extent *extents);
/* The checksum that applies to the recording: never AUTO. */
as_result as_folder_checksum(as_folder *folder, int64_t recording_id, as_record_checksum *checksum);
/* 48 bits of the frame that ends at each position, to tell later whether other bytes stand there: the upper 32 are of the frame
 * without its session id, the lower 16 of that, 0 where a checksum takes its place. 0: no frame is seen to end there, as it is
 * the recording's start, or its bytes are purged. AS_E_USAGE for an unknown recording. */
as_result as_folder_fingerprints(
    as_folder *folder, const int64_t *recording_ids, const int64_t *positions, int64_t count, int64_t *fingerprints);
/* The largest message boundary `to` in [from, limit] with to - from <= max_bytes and at most max_messages messages (either
 * AS_NULL_VALUE: no bound), but at least one message when a whole one lies before limit. Padding at the end is included.
 * `from` must be a message boundary or any position of the recording, which is then moved up to the next message. */
as_result as_folder_advance(as_folder *folder, int64_t recording_id, int64_t from, int64_t limit, int64_t max_bytes,
    int64_t max_messages, int64_t *to);
/* The message boundary at or after `position` (`back`: at or before it) inside [start_position, limit]. */
as_result as_folder_align(
    as_folder *folder, int64_t recording_id, int64_t position, int64_t limit, bool back, int64_t *boundary);
/* Cuts [start, end) into ranges of about target_bytes: where a term begins, inside a term only at message boundaries. Writes the
 * start of each range; *count of at most `capacity`. The same arguments give the same cuts for ever. */
as_result as_folder_split(as_folder *folder, int64_t recording_id, int64_t start, int64_t end, int64_t target_bytes,
    int64_t *starts, int64_t capacity, int64_t *count);

/* -- times. An archive of ours keeps a time index beside each recording: a message's time is the archive's clock (ns since
 * 1970-01-01 UTC) at the write that made the message whole, never less than that of the write before it. -- */

typedef struct as_time_position
{
    int64_t position; /* a message boundary at or before the first message at or after the time; the limit: there is none yet */
    bool is_rebuilt;  /* known from modification times of segments only: early by up to a segment */
} as_time_position;

/* From the index, early by at most one interval (aeron.spark.archive.time.index.*), or by the message that lies across an
 * interval's begin, and never late; without index from the segments' modification times. */
as_result as_folder_position_at_time(as_folder *folder, int64_t recording_id, int64_t time_ns, as_time_position *found);
/* The first message whose reserved value, a time in units of unit_ns (1 ns, 1000 us, 1000000 ms) since 1970-01-01 UTC, is at or
 * after time_ns; the limit if there is none. Exact if publishers stamp messages when they send them, in ascending order, with
 * clocks at most skew_ns before the archive's: that much is read besides. */
as_result as_folder_position_at_reserved_time(as_folder *folder, int64_t recording_id, int64_t time_ns, int64_t unit_ns,
    int64_t skew_ns, int64_t *position);

typedef enum as_time_from_e
{
    AS_TIME_FROM_INDEX = 0,   /* at most an interval before the write */
    AS_TIME_FROM_SEGMENT = 1, /* of modification times: at most a segment's time before the write */
    AS_TIME_FROM_BEFORE = 2   /* nothing is known here: the last time that is known before it */
} as_time_from;

/* When the bytes at `count` positions were written: no later than that is each time, and what it was told from. Ascending
 * positions give times that do not decrease, and are fast. */
as_result as_folder_times_at(as_folder *folder, int64_t recording_id, const int64_t *positions, int64_t count, int64_t *times_ns,
    uint8_t *sources);

typedef struct as_time_run
{
    int64_t position;
    int64_t length;
    int64_t first_ns; /* of its first write */
    int64_t last_ns;  /* of its last write */
    bool is_rebuilt;
} as_time_run;

/* The runs that end behind `from`, at most `capacity`: bytes that one write, or several within an interval, recorded. */
as_result as_folder_time_runs(as_folder *folder, int64_t recording_id, int64_t from, as_time_run *runs, int64_t capacity,
    int64_t *count);

typedef struct as_time_index_info
{
    int64_t file_length;
    int64_t run_count;       /* inside of the recording */
    int64_t rebuilt_count;   /* of them made of modification times */
    int64_t broken_count;    /* entries that a crash tore or lost */
    int64_t indexed_bytes;
    int64_t recording_bytes;
    int64_t first_ns;        /* -1 without a run */
    int64_t last_ns;
    bool exists;
    bool is_believed;        /* false: missing, or an archive that does not know it extended the recording since */
} as_time_index_info;

as_result as_folder_time_index_info(as_folder *folder, int64_t recording_id, as_time_index_info *info);
/* Writes the recording's time index anew, the one call here that writes: what the index says stays, gaps are filled from the
 * modification times of segments. AS_E_USAGE: the recording is active. */
as_result as_folder_rebuild_time_index(as_folder *folder, int64_t recording_id);

/* -- retention: what may go, by rules that the archive's own policy (aeron.spark.archive.retain.*) and the command share. Whole
 * segments, from a recording's start on, never the one that is written; a stopped recording all of whose segments may go is
 * purged. -- */

typedef struct as_retention_policy
{
    int64_t older_than_ms;   /* segments written longer ago go; AS_NULL_VALUE: no bound, as below */
    int64_t max_bytes;       /* the oldest go until no more is used */
    int64_t keep_recordings; /* of each channel and stream so many stay, the newest; active ones always do */
} as_retention_policy;

typedef struct as_retention_segment
{
    int64_t base;
    int64_t bytes;      /* that it takes on the disk */
    int64_t written_ms; /* when it was last written */
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
    int64_t stream;            /* equal numbers: the same channel and stream */
    bool is_active;
    bool is_kept;              /* whole, whatever the policy says */
    int64_t stop_timestamp_ms; /* AS_NULL_VALUE: unknown */
    int64_t last_base;         /* of the segment that it ends in now */
    const as_retention_segment *segments; /* borrowed; by ascending base */
    int64_t segment_count;
    /* Set by as_retention_plan. */
    as_retention_reason reason;
    int64_t goes;              /* how many of the segments */
    bool is_purged;            /* the recording goes with them */
    int64_t new_start;         /* else where it starts; AS_NULL_VALUE: as it did */
} as_retention_recording;

/* Whether a recording is the ledger of the Spark sink's exactly-once writes, by stream and original channel. It says which
 * recorded messages count, so a policy that takes what is old or much would undo what was committed. */
bool as_is_ledger(int32_t stream_id, const char *original_channel);

/* Writes the answer into `recordings`. AS_E_INTERNAL: no memory. */
as_result as_retention_plan(
    const as_retention_policy *policy, int64_t now_ms, as_retention_recording *recordings, int64_t count);

/* Rows of the messages that begin in [start, end). `limit` >= end is how far bytes may be read to complete the last one.
 * AS_E_USAGE: positions outside of [start_position, limit_position]; AS_E_DATA: a segment is missing, names file and position. */
as_result as_segment_reader_open(as_folder *folder, int64_t recording_id, int64_t start, int64_t end, int64_t limit,
    as_segment_reader **reader);
/* Fills the columns from row 0 on: AS_OK with rows, or with row_count 0 at the end of the range. AS_E_DATA: a broken frame, wrong
 * header or checksum, missing segment; the text names recording, file and position. */
as_result as_segment_reader_next(as_segment_reader *reader, as_columns *columns);
int64_t as_segment_reader_position(const as_segment_reader *reader);

typedef struct as_doubt
{
    int64_t position;
    char text[400]; /* names recording and position */
} as_doubt;

/* What looks damaged in the rows given so far, or in what stands between them, and may be right: a frame's header, and the catalog, are
 * outside of the frames' checksum. Each kind is told once, with the first position. False: nothing more. */
bool as_segment_reader_doubt(as_segment_reader *reader, as_doubt *doubt);
void as_segment_reader_close(as_segment_reader *reader);

/* -- tools ----------------------------------------------------------------------------------------------------------------- */

/* The catalog of a folder as the command line tools see it: every record, in any state. Spec: 06 §12, §13. What writes needs
 * as_catalog_open with `writable`, which refuses a live archive and holds the mark file as an archive would, so that none starts
 * meanwhile; as_catalog_close gives it back. */
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
    const char *damage;       /* why the records behind the last one can't be read; "" if all is well */
} as_catalog_info;

typedef struct as_catalog_entry
{
    as_recording recording;   /* texts valid until close */
    int64_t control_session_id;
    int64_t correlation_id;
    int32_t state;            /* as_recording_state, or what else is stored */
    int32_t checksum;         /* as stored, 0: none */
    int64_t offset;           /* of the record in the file */
    int64_t length;           /* of the record, header and padding included */
} as_catalog_entry;

typedef struct as_mark_view
{
    int32_t version;
    int64_t activity_timestamp_ms; /* -1 after an orderly end */
    int64_t start_timestamp_ms;
    int64_t pid;
    int64_t archive_id;
    int32_t control_stream_id;
    int32_t local_control_stream_id;
    int32_t events_stream_id;
    int32_t header_length;
    int32_t error_buffer_length;
    bool is_live;
    const char *path;         /* this and the texts below: valid until the catalog is closed */
    const char *control_channel;
    const char *local_control_channel;
    const char *events_channel;
    const char *aeron_dir;
} as_mark_view;

/* Called each few MiB of long work; false stops it: the call returns AS_AGAIN. */
typedef bool (*as_on_progress)(void *context, int64_t bytes_done);

/* AS_E_DATA: no catalog, another major version, a damaged header; AS_E_USAGE with `writable`: a live archive owns the folder. */
as_result as_catalog_open(const char *archive_dir, bool writable, as_catalog **catalog);
void as_catalog_close(as_catalog *catalog);
as_result as_catalog_get_info(const as_catalog *catalog, as_catalog_info *info);
int64_t as_catalog_count(const as_catalog *catalog);
as_result as_catalog_at(const as_catalog *catalog, int64_t index, as_catalog_entry *entry);
/* AS_AGAIN: there is no mark file. */
as_result as_catalog_mark(as_catalog *catalog, as_mark_view *mark);
/* The distinct errors that the folder's archives logged; returns their number, 0 without a mark file. */
int64_t as_catalog_errors(as_catalog *catalog, as_on_error_entry on_entry, void *context);
/* VALID to INVALID and back. AS_E_USAGE: another transition. */
as_result as_catalog_set_state(as_catalog *catalog, int64_t index, as_recording_state state);

typedef struct as_verify_options
{
    bool all_segments;           /* else the last one */
    bool repair;                 /* stores what is found; the catalog must be writable */
    as_record_checksum checksum; /* AUTO: what the frames carry; a stale catalog checksum then is no error */
    int64_t live_limit;          /* recorded position of a recording that is active now; AS_NULL_VALUE: it is not */
    as_on_progress on_progress;  /* may be NULL */
    void *context;
} as_verify_options;

typedef enum as_verify_outcome_e
{
    AS_VERIFY_OK = 0,
    AS_VERIFY_SKIPPED = 1,    /* deleted */
    AS_VERIFY_REPAIRABLE = 2, /* `text` says what `repair` does */
    AS_VERIFY_REPAIRED = 3,
    AS_VERIFY_BAD = 4
} as_verify_outcome;

typedef struct as_verify_report
{
    int32_t outcome;             /* as_verify_outcome */
    as_record_checksum checksum; /* that was verified; NONE: none */
    bool is_catalog_checksum_stale;
    int64_t stop_position;       /* where the frames end */
    int64_t frames;
    int64_t bytes;               /* of positions walked */
    char text[768];              /* what is wrong, or worth to know; "" if nothing is */
} as_verify_report;

void as_verify_options_init(as_verify_options *options);
/* One recording. A recording that is bad is told in the report and AS_OK; failures are those of writing and of the folder. */
as_result as_catalog_verify(as_catalog *catalog, int64_t index, const as_verify_options *options, as_verify_report *report);

typedef struct as_checksum_report
{
    int64_t frames;  /* with a checksum */
    int64_t changed; /* of them */
    int64_t bytes;
} as_checksum_report;

/* Computes the catalog's checksum and those of the DATA frames of the last or of all segments anew, and stores them. With `is_dry`
 * it only counts. AS_E_DATA: frames can't be walked; those before are stored. */
as_result as_catalog_checksum(as_catalog *catalog, int64_t index, as_record_checksum checksum, bool all_segments, bool is_dry,
    as_on_progress on_progress, void *context, as_checksum_report *report);

/* Packs the VALID records into a new catalog and puts it in the old one's place; segment files of others should be gone before.
 * The catalog must be closed then. `reclaimed` are the bytes that the others took. */
as_result as_catalog_compact(as_catalog *catalog, int64_t *deleted, int64_t *reclaimed);

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
    int64_t payload_length;   /* 0 of padding, of which only the header is stored */
} as_dump_frame;

/* Frames that begin in [start, end), headers checked against their position; `limit` >= end is how far the recording goes. A
 * `start` inside a frame is moved up to the next one. */
as_result as_dump_open(as_catalog *catalog, int64_t index, int64_t start, int64_t end, int64_t limit, as_dump **dump);
/* AS_AGAIN: the end; AS_E_DATA names recording, file and position. */
as_result as_dump_next(as_dump *dump, as_dump_frame *frame);
void as_dump_close(as_dump *dump);

typedef void (*as_on_text)(void *context, const char *text);
/* Brings a folder of storage version 0, 1 or 2 to the current one, step by step; each step tells `on_step` each thing that it does,
 * or with `is_dry` would do. AS_E_USAGE: a live archive owns the folder; AS_E_DATA: not such a folder, or a step's marker file
 * is there, so a step was cut short. `steps` counts. Spec: 06 §13. */
as_result as_archive_migrate(const char *archive_dir, bool is_dry, as_on_text on_step, void *context, int32_t *steps);
/* CFFI-END */
/* Nobody is called unless this is set: the errors are in the mark file's error log only. */
void as_archive_config_on_error(as_archive_config *config, as_on_logged_error on_error, void *context);
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
