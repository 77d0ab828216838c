/* Deletes files, and the tails of files, outside the agents that must not wait for a disk.
 *
 * A file system needs milliseconds to free a large file, and seconds for thousands of small ones. On the conductor, this would
 * delay every client and, in SHARED mode, the recordings. The deleter therefore runs on its own thread, which starts with the
 * first work item and sleeps while there is none. In INVOKER mode, where the application provides the only thread, the archive's
 * cycle handles one file at a time. Spec: 08 §9, 06 §9.
 *
 * The conductor owns each work item, passes it to the deleter with asi_deleter_put and receives it back on its own queue. Each
 * item makes this round trip twice: first to prepare (list the existing files, cut the file that stays), then, after the
 * requester was answered, to delete. The deleter does not depend on catalogs and sessions. Thread rule: init, put, step and
 * close on the conductor's thread. */
#ifndef ASI_SERVER_DELETER_H
#define ASI_SERVER_DELETER_H

#include "base/clock.h"
#include "record/intrusive_queue.h"
#include "store/file_ops.h"

typedef enum asi_delete_scope
{
    ASI_DELETE_RANGE,    /* segments first_base, first_base + segment_length, .. < end_base, whether they exist or not */
    ASI_DELETE_DETACHED, /* listed: the same range, from the lowest existing segment */
    ASI_DELETE_ALL       /* listed: every <id>-*.rec and <id>-*.del */
} asi_delete_scope;

typedef struct asi_name_list /* empty when zeroed */
{
    char *text; /* owned: names, each terminated */
    int64_t length;
    int64_t capacity;
    int64_t count;
} asi_name_list;

typedef struct asi_delete_work
{
    asi_intrusive_queue_item item;
    struct asi_delete_work *next_work; /* link of the deleter's queue */
    /* Set by the conductor. */
    const asi_file_ops *files;         /* borrowed */
    const char *archive_dir;           /* borrowed */
    int64_t recording_id;
    asi_delete_scope scope;
    int64_t first_base;                /* set for RANGE; for DETACHED after the preparation */
    int64_t end_base;
    int64_t segment_length;
    int64_t cut_base;                  /* of the segment to cut; AS_NULL_VALUE: none */
    int64_t cut_offset;                /* offset in that segment; the bytes from there on become zeros */
    int32_t file_sync_level;
    bool must_prepare;                 /* false: delete */
    /* Set by the deleter; the conductor reads these after the item has returned. */
    asi_name_list names;               /* for ALL */
    int64_t count;                     /* number of names to delete */
    int64_t done;                      /* number of names that are deleted or failed */
    int64_t name_offset;
    asi_name_list failed;              /* paths that exist and can't be deleted */
    as_result failure;                 /* of the preparation: nothing has changed, see `failure_code` and `failure_text` */
    int32_t failure_code;
    char failure_text[1024];
} asi_delete_work;

/* Initialises everything except the fields that the conductor sets. Frees nothing. */
void asi_delete_work_init(asi_delete_work *work);
void asi_delete_work_close(asi_delete_work *work);
/* Handles one file, the listing or the cut. Returns true while more remains. */
bool asi_delete_work_step(asi_delete_work *work);

typedef struct asi_deleter
{
    asi_intrusive_queue *returned; /* borrowed: the conductor's queue */
    bool has_thread;          /* false: asi_deleter_step does the work */
    bool is_started;
    pthread_t thread;
    pthread_mutex_t mutex;    /* guards the fields below */
    pthread_cond_t wake;
    asi_delete_work *first;
    asi_delete_work *last;
    bool must_end;            /* also read without the mutex between files: a stale read delays the end by one file */
} asi_deleter;

void asi_deleter_init(asi_deleter *deleter, asi_intrusive_queue *returned, bool has_thread);
void asi_deleter_put(asi_deleter *deleter, asi_delete_work *work);
/* Without a thread: executes one step of the first work item. */
int asi_deleter_step(asi_deleter *deleter);
/* Ends the thread after its current file. Its work item returns, finished or not. Work that is put later is done by
 * asi_deleter_step. */
void asi_deleter_stop(asi_deleter *deleter);
/* No work may be queued any more, or its owner frees it. */
void asi_deleter_close(asi_deleter *deleter);

#endif
