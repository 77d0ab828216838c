/* Who uses a recording: whoever records, replays or deletes it enters here, so that each can ask about the others without knowing them.
 *
 *   recordings, replays, deletions > uses < recordings, replays, deletions, segments, truncate, retention, compaction, listing
 *
 * A use lies in its owner's struct; the owner adds it when it begins and removes it when it ends. Thread rule: the conductor's. */
#ifndef ASI_SERVER_USES_H
#define ASI_SERVER_USES_H

#include "record/recorded.h"
#include "replay/session.h"
#include "store/catalog.h"

typedef enum asi_use_kind
{
    ASI_USE_RECORDS,
    ASI_USE_REPLAYS,             /* also while its publication is on its way */
    ASI_USE_DELETES,             /* some or all of its files; one at most */
    ASI_USE_KINDS
} asi_use_kind;

typedef struct asi_use
{
    struct asi_use *next;
    asi_use_kind kind;
    int64_t recording_id;
    asi_recorded *recorded;      /* RECORDS: how far; borrowed */
    asi_replay_session *replay;  /* REPLAYS; borrowed */
    int64_t end_position;        /* DELETES: no byte from here on goes; INT64_MAX: all may */
    bool awaits_replays;         /* DELETES: begins when no replay is left, and lets none begin */
} asi_use;

typedef struct asi_uses
{
    asi_use *first[ASI_USE_KINDS]; /* newest first */
    int64_t count[ASI_USE_KINDS];
} asi_uses;

void asi_uses_add(as_archive *archive, asi_use *use);
/* Harmless if it was not added. */
void asi_uses_remove(as_archive *archive, asi_use *use);

/* How far the recording is recorded, to be retained by whoever keeps it; NULL: it is not active. */
asi_recorded *asi_uses_recorded(const as_archive *archive, int64_t recording_id);
/* The position that it is recorded to; AS_NULL_VALUE: it is not active. */
int64_t asi_uses_recorded_position(const as_archive *archive, int64_t recording_id);

/* A replay of the recording; NULL: none. */
const asi_replay_session *asi_uses_replay(const as_archive *archive, int64_t recording_id);
/* A replay of the recording that has bytes before `position` still to read, and the segment that it reads; NULL: none. */
const asi_replay_session *asi_uses_replay_before(
    const as_archive *archive, int64_t recording_id, int64_t position, int64_t *segment_base);
/* Ends the recording's replays, without an answer to whoever asked for them. */
void asi_uses_abort_replays(as_archive *archive, int64_t recording_id);

/* The outstanding deletion; NULL: none. */
const asi_use *asi_uses_deletion(const as_archive *archive, int64_t recording_id);
/* Whether bytes at or behind the stop position are being deleted: what is recorded there could go with them. Spec: 08 §4.2, row 5. */
bool asi_uses_deletes_tail(const as_archive *archive, const asi_catalog_record *record);

#endif
