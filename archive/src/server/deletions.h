/* Deletions of files, and how their requesters are notified. See deletions.c. Thread rule: conductor only, except the queue.
 * Spec: 08 §9. */
#ifndef ASI_SERVER_DELETIONS_H
#define ASI_SERVER_DELETIONS_H

#include "codec/request.h"
#include "server/archive.h"
#include "server/deleter.h"
#include "server/uses.h"

typedef struct asi_deletion
{
    asi_delete_work work;        /* first: the deleter returns this pointer */
    asi_use use;                 /* has end_position and, for a truncation, awaits_replays (nothing has changed yet) */
    struct asi_deletion *next;
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t catalog_bytes;       /* for a purge: size of the recording's record; else 0 */
    int64_t answer;              /* relevant id of the OK; AS_NULL_VALUE: the number of files */
    bool is_answered;
    /* For a truncation: */
    int64_t start_position;      /* at the time of the request */
    int64_t old_stop_position;
    int64_t new_stop_position;   /* AS_NULL_VALUE: not a truncation */
} asi_deletion;

typedef struct asi_deletions
{
    asi_deletion *outstanding;   /* at most one per recording */
    asi_deleter deleter;
    asi_intrusive_queue returned; /* filled by the deleter */
} asi_deletions;

/* Creates a deletion, which the caller fills in and begins. NULL: out of memory, which is reported to the requester. */
asi_deletion *asi_deletions_make(asi_control_session *session, const asi_codec_request *request,
    const asi_catalog_record *record);
/* Creates a deletion for the archive itself; no client is answered. NULL: out of memory. */
asi_deletion *asi_deletions_make_own(const as_archive *archive, const asi_catalog_record *record);
/* Frees a deletion that was not begun. */
void asi_deletions_discard(asi_deletion *deletion);
/* Transfers ownership to the archive, which answers OK and signals DELETE when all files are deleted. */
void asi_deletions_begin(as_archive *archive, asi_deletion *deletion);
/* Whether the request was refused because the recording has an outstanding deletion. */
bool asi_deletions_refuse_second(asi_control_session *session, const asi_codec_request *request, int64_t recording_id);
int asi_deletions_step(as_archive *archive);
/* Finishes outstanding deletions, within some seconds. Recordings and replays must already be closed. */
void asi_deletions_close(as_archive *archive);

#endif
