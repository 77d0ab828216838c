/* Files that go, and how their requesters hear of it. See deletions.c. Thread rule: the conductor's, but the queue. Spec: 08 §9. */
#ifndef ASI_SERVER_DELETIONS_H
#define ASI_SERVER_DELETIONS_H

#include "codec/request.h"
#include "server/archive.h"
#include "server/deleter.h"
#include "server/uses.h"

typedef struct asi_deletion
{
    asi_delete_work work;        /* first: the deleter hands this back */
    asi_use use;                 /* end_position; and of a truncation awaits_replays: nothing has changed yet */
    struct asi_deletion *next;
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t catalog_bytes;       /* of a purge: of the recording's record; else 0 */
    int64_t answer;              /* relevant id of the OK; AS_NULL_VALUE: the number of files */
    bool is_answered;
    /* A truncation: */
    int64_t start_position;      /* when it was asked for */
    int64_t old_stop_position;
    int64_t new_stop_position;   /* AS_NULL_VALUE: this is no truncation */
} asi_deletion;

typedef struct asi_deletions
{
    asi_deletion *outstanding;   /* at most one per recording */
    asi_deleter deleter;
    asi_intrusive_queue returned; /* by the deleter */
} asi_deletions;

/* NULL: no memory, the requester is told. To be filled in and begun. */
asi_deletion *asi_deletions_make(asi_control_session *session, const asi_codec_request *request,
    const asi_catalog_record *record);
/* One that the archive itself wants: nobody is answered. NULL: no memory. */
asi_deletion *asi_deletions_make_own(const as_archive *archive, const asi_catalog_record *record);
/* Instead of beginning it. */
void asi_deletions_discard(asi_deletion *deletion);
/* The archive's from here on: answers OK and, when all files are gone, signals DELETE. */
void asi_deletions_begin(as_archive *archive, asi_deletion *deletion);
/* Whether the request was refused because one is outstanding. */
bool asi_deletions_refuse_second(asi_control_session *session, const asi_codec_request *request, int64_t recording_id);
int asi_deletions_step(as_archive *archive);
/* Recordings and replays must have been closed. Finishes what is outstanding, within some seconds. */
void asi_deletions_close(as_archive *archive);

#endif
