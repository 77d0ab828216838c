/* The archive's deleter: takes files away, and the tails of files, beside the agents that must not wait for a disk.
 *
 * To free a large file takes a file system milliseconds, thousands of small ones take it seconds; a conductor that did it would
 * hold up every client, and in SHARED mode the recordings. So a thread of its own does it: started with the first work, asleep
 * while there is none. In INVOKER mode, where the application gives the only thread, the archive's cycle does one file at a time.
 * Spec: 08 §9, 06 §9.
 *
 * Work is the conductor's, goes to the deleter by asi_deleter_put and comes back on the conductor's queue; once to prepare
 * (list what there is, cut the file that stays), then, when the requester was answered, to delete. The deleter knows nothing of
 * catalogs and sessions. Thread rule: init, put, step and close on the conductor's thread. */
#ifndef ASI_SERVER_DELETER_H
#define ASI_SERVER_DELETER_H

#include "base/clock.h"
#include "record/intrusive_queue.h"
#include "store/file_ops.h"

typedef enum asi_delete_scope
{
    ASI_DELETE_RANGE,    /* segments first_base, first_base + segment_length, .. < end_base, whether they exist or not */
    ASI_DELETE_DETACHED, /* listed: the same range from the lowest segment that exists */
    ASI_DELETE_ALL       /* listed: every <id>-*.rec and <id>-*.del */
} asi_delete_scope;

typedef struct asi_name_list /* zeroed: empty */
{
    char *text; /* owned: names, each terminated */
    int64_t length;
    int64_t capacity;
    int64_t count;
} asi_name_list;

typedef struct asi_delete_work
{
    asi_intrusive_queue_item item;
    struct asi_delete_work *next_work; /* the deleter's queue */
    /* Set by the conductor. */
    const asi_file_ops *files;         /* borrowed */
    const char *archive_dir;           /* borrowed */
    int64_t recording_id;
    asi_delete_scope scope;
    int64_t first_base;                /* of RANGE; of DETACHED once prepared */
    int64_t end_base;
    int64_t segment_length;
    int64_t cut_base;                  /* of the segment to be cut; AS_NULL_VALUE: none */
    int64_t cut_offset;                /* in it: what follows becomes zeros */
    int32_t file_sync_level;
    bool sync_directory;
    bool must_prepare;                 /* else delete */
    /* The deleter's; read by the conductor when it came back. */
    asi_name_list names;               /* of ALL */
    int64_t count;                     /* names to delete */
    int64_t done;                      /* of them, gone or failed */
    int64_t name_offset;
    asi_name_list failed;              /* paths that exist and can't be deleted */
    as_result failure;                 /* of preparing: nothing was changed, `failure_code` and `failure_text` tell */
    int32_t failure_code;
    char failure_text[1024];
} asi_delete_work;

/* Everything but what the conductor sets. Frees nothing. */
void asi_delete_work_init(asi_delete_work *work);
void asi_delete_work_close(asi_delete_work *work);
/* A file, the listing or the cut; true while there is more. */
bool asi_delete_work_step(asi_delete_work *work);

typedef struct asi_deleter
{
    asi_intrusive_queue *returned; /* borrowed: the conductor's */
    bool has_thread;          /* else asi_deleter_step does the work */
    bool is_started;
    pthread_t thread;
    pthread_mutex_t mutex;    /* guards what follows */
    pthread_cond_t wake;
    asi_delete_work *first;
    asi_delete_work *last;
    bool must_end;            /* also read without the mutex, between files: a stale read costs one more */
} asi_deleter;

void asi_deleter_init(asi_deleter *deleter, asi_intrusive_queue *returned, bool has_thread);
void asi_deleter_put(asi_deleter *deleter, asi_delete_work *work);
/* Without a thread: one step of the first work. */
int asi_deleter_step(asi_deleter *deleter);
/* Ends the thread within the file it is at; its work comes back, done or not, and asi_deleter_step does what is put from here on. */
void asi_deleter_stop(asi_deleter *deleter);
/* Nothing must be queued any more, or be freed with its owner. */
void asi_deleter_close(asi_deleter *deleter);

#endif
