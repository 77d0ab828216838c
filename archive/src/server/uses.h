/* Registry of the uses of recordings: code that records, replays or deletes a recording registers here, so that each module can
 * query the others' uses without depending on them.
 *
 *   recordings, replays, deletions > uses < recordings, replays, deletions, segments, truncate, retention, compaction, listing
 *
 * A use is embedded in its owner's struct; the owner adds it when it begins and removes it when it ends. Thread rule: conductor
 * only. */
#ifndef ASI_SERVER_USES_H
#define ASI_SERVER_USES_H

#include "record/recorded.h"
#include "replay/session.h"
#include "store/catalog.h"

typedef enum asi_use_kind
{
    ASI_USE_RECORDS,
    ASI_USE_REPLAYS,             /* also while its publication is pending */
    ASI_USE_DELETES,             /* deletes some or all files; at most one */
    ASI_USE_KINDS
} asi_use_kind;

typedef struct asi_use
{
    struct asi_use *next;
    asi_use_kind kind;
    int64_t recording_id;
    asi_recorded *recorded;      /* RECORDS: the recorded position; borrowed */
    asi_replay_session *replay;  /* REPLAYS; borrowed */
    int64_t end_position;        /* DELETES: no byte from this position on is deleted; INT64_MAX: all may be */
    bool awaits_replays;         /* DELETES: begins when no replay is left, and prevents new replays */
} asi_use;

typedef struct asi_uses
{
    asi_use *first[ASI_USE_KINDS]; /* newest first */
    int64_t count[ASI_USE_KINDS];
} asi_uses;

void asi_uses_add(as_archive *archive, asi_use *use);
/* No effect if the use was not added. */
void asi_uses_remove(as_archive *archive, asi_use *use);

/* Returns the recording's progress, which a caller that keeps it must retain. NULL: the recording is not active. */
asi_recorded *asi_uses_recorded(const as_archive *archive, int64_t recording_id);
/* Returns the recorded position. AS_NULL_VALUE: the recording is not active. */
int64_t asi_uses_recorded_position(const as_archive *archive, int64_t recording_id);

/* Returns a replay of the recording. NULL: none. */
const asi_replay_session *asi_uses_replay(const as_archive *archive, int64_t recording_id);
/* Returns a replay of the recording that still has bytes before `position` to read, and sets *segment_base to the segment that
 * it reads. NULL: none. */
const asi_replay_session *asi_uses_replay_before(
    const as_archive *archive, int64_t recording_id, int64_t position, int64_t *segment_base);
/* Ends the recording's replays; their requesters get no answer. */
void asi_uses_abort_replays(as_archive *archive, int64_t recording_id);

/* Returns the outstanding deletion. NULL: none. */
const asi_use *asi_uses_deletion(const as_archive *archive, int64_t recording_id);
/* Why nothing may be recorded at the stop position now: bytes from there on are being deleted, and data recorded there could be
 * deleted with them (Spec: 08 §4.2, row 5); or a replay still reads bytes from there on, and would read the new data in their
 * place. NULL: it may. */
const char *asi_uses_holding_tail(const as_archive *archive, const asi_catalog_record *record);

#endif
