/* The auditor: knows what was published, what the client was told, and what the settings promise, and reads the disk with
 * readers of its own. Checks, by the name that a failure prints:
 *   starts      the archive starts again on whatever a fault left
 *   lost        data that was acknowledged (a recorded position, a signal, an answer) and promised to survive exists
 *   invented    every frame before the stop position was published there, byte for byte
 *   position    stop and start positions lie within what was acknowledged and published
 *   unknown     no recording that nobody requested; no id twice
 *   catalog     the file follows the rules that other software relies on (Spec: 06 §14): header, alignment, increasing ids, a
 *               next id above all, checksums, zeros behind the last record
 *   segments    files of full length (the last of a stopped one may be short), the one behind a full one, none of a purged
 *               recording
 *   promise     at a sync level above 0 the recorded position is durable when it is reported
 *   time        no entry of a time index gives bytes a time before they were written; for data recorded without a fault the
 *               entries are complete, within an interval of time and bytes
 *   channel     the channel is the last one that was set
 * Promised after a kill: everything. After a power cut: the catalog at a catalog sync level above 0, frames at a file sync
 * level above 0. Otherwise only `starts`, `catalog` and `unknown` hold, and the run continues from what exists. */
#ifndef AS_SIM_ARCHIVE_AUDITOR_H
#define AS_SIM_ARCHIVE_AUDITOR_H

#include "aeron_spark/as_archive.h"
#include "sim_disk.h"
#include "store/catalog.h"

#define AUDIT_MAX_RECORDINGS 256

typedef enum audit_life
{
    AUDIT_ASKED,    /* requested, not confirmed: it may exist */
    AUDIT_ACTIVE,
    AUDIT_STOPPED,
    AUDIT_PURGING,  /* requested: it may be there whole, or gone */
    AUDIT_PURGED,
    AUDIT_TAINTED,  /* exists, its frames are not promised any more */
    AUDIT_FORGOTTEN /* nothing is promised */
} audit_life;

/* A frame that was published: where, and what. */
typedef struct audit_frame
{
    int64_t begin;
    int64_t end;         /* aligned */
    int32_t length;      /* of the payload */
    int32_t offset;      /* of the payload in its message */
    uint64_t message;    /* seed of the message's bytes; 0: zeros */
    int64_t not_before;  /* it was not recorded before that time (ns since 1970), */
    int64_t seen;        /* and was at that; 0: nobody saw it */
} audit_frame;

typedef struct audited
{
    int64_t id;             /* -1 until it is known */
    int32_t stream_id;
    int32_t mtu;
    int32_t term_length;
    int32_t segment_length;
    int32_t initial_term_id;
    int64_t start;
    int64_t asked_start;    /* of a request in flight, else == start */
    audit_life life;
    audit_frame *frames;
    int64_t frame_count;
    int64_t frame_capacity;
    int64_t published;      /* end of the last frame handed to the log */
    int64_t recorded;       /* highest position that was reported as recorded */
    int64_t stop;           /* as reported; -1 while active or in doubt */
    int64_t asked_stop;     /* of a truncate in flight; -1: none */
    int64_t cut;            /* where it was last truncated: no empty segment needs to be there; -1: nowhere */
    bool is_tainted;        /* of ASKED: its frames are not promised */
    bool is_stop_doubtful;  /* the disk refused calls on the catalog meanwhile */
    int64_t attach_low;     /* segments before `start` may be there down to here, */
    int64_t attach_sure;    /* and are down to here */
    bool is_attaching;      /* asked: it may start anywhere between attach_low and `start` */
    bool is_moving;         /* of the migration in flight, or in doubt */
    int32_t channel;        /* the number of the one given last; 0: none of ours */
    int32_t asked_channel;  /* of a request in flight or in doubt, else == channel */
    int32_t original;       /* of a copy: which; -1: it is none, or has got other bytes */
    int64_t starts_asked;   /* when its recording was asked for: how often the archive had started, */
    int64_t errors_asked;   /* and calls on the disk had failed */
} audited;

/* Segments of one recording become those of another. */
typedef struct audit_migration
{
    audited *src; /* NULL: none is in flight or in doubt */
    audited *dst;
} audit_migration;

typedef struct auditor
{
    sim_disk *disk;
    int32_t file_sync_level;
    int32_t catalog_sync_level;
    as_record_checksum checksum;
    audited recordings[AUDIT_MAX_RECORDINGS];
    int32_t count;
    int64_t highest_id;
    int64_t oldest_id;       /* recordings requested since the last start have higher ids */
    int64_t checked_frames;
    int64_t checked_bytes;
    int64_t checked_times;
    audit_migration migration;
    asi_catalog *catalog;    /* of the living archive; NULL: dead */
    int64_t starts;
    int64_t errors_before_start; /* calls on the disk that had failed when it was started last */
    const int64_t *now_ns;
    int64_t epoch_ns;        /* ns from 1970 to now_ns = 0 */
    int64_t round_ns;        /* when the archive's last turn began */
} auditor;

audited *auditor_add(auditor *audit, const audited *recording);
audited *auditor_find(auditor *audit, int64_t id);
int64_t audit_base_of(const audited *recording, int64_t position);
/* A message of `length` bytes ends at `end`; frames hold at most `max_payload` of it. */
void auditor_on_published(const auditor *audit, audited *recording, int64_t end, int32_t length, int32_t max_payload, uint64_t message);
/* The recorded position as any process may see it. */
void auditor_on_recorded(auditor *audit, int64_t id, int64_t position);
void auditor_on_stopped(auditor *audit, int64_t id, int64_t position, bool is_doubtful);
/* Frames behind the position are not part of the recording any more. */
void auditor_cut(audited *recording, int64_t position);
/* Frames of another archive's recording are about to be copied behind the recording's. */
void auditor_on_copying(const auditor *audit, audited *copy, const audited *original);
/* -- auditor_moves.c: migrations, as the catalog shows them */
void auditor_on_migrating(auditor *audit, audited *src, audited *dst);
void auditor_on_migrated(auditor *audit, bool is_done);
/* Before the recordings are checked one by one: how far a migration got that a death ended. */
void auditor_settle_migration(auditor *audit, asi_catalog *catalog);
/* The text of a channel's number. */
void audit_channel(int32_t number, char *to, size_t capacity);
/* -- auditor_times.c: the time index of a recording; `is_whole`: it was recorded without a fault and has just stopped */
void auditor_check_times(auditor *audit, const audited *recording, const asi_catalog_record *record, bool is_whole);
/* Before the archive starts again. */
void auditor_on_power_cut(auditor *audit);
/* The archive has started: all checks. */
void auditor_on_started(auditor *audit, asi_catalog *catalog);
/* Everything about one recording that is stopped at `stop`. */
void auditor_check_frames(auditor *audit, audited *recording, int64_t stop);
/* The bytes of the catalog. */
void auditor_check_catalog(auditor *audit);
/* Bytes [offset, offset + length) of a message. */
void audit_fill(uint64_t message, uint8_t *to, int64_t length, int64_t offset);
void auditor_close(auditor *audit);

#endif
