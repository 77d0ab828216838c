/* One active recording: writes an image's frames to segment files. Spec: 08 §4.4, §5, 06 §7.2.
 *
 * The conductor makes the session and queues it to the recorder. The recorder steps it once a cycle and returns it when it has
 * stopped. The conductor then stores the stop position and frees it.
 *
 *   INIT ----opened----> RECORDING --abort | end of stream | closed | write or log error--> STOPPED
 *      `---- open failed ------------------------------------------------------------------^
 *
 * One step completes an abort in any state. With a single thread, a stopped recording has therefore ended before the next
 * request.
 *
 * Invariant: the recorded position moves only after the write (and sync) of all bytes before it has succeeded. */
#ifndef ASI_RECORD_SESSION_H
#define ASI_RECORD_SESSION_H

#include "aeron_spark/as_archive.h"
#include "base/clock.h"
#include "record/events.h"
#include "record/intrusive_queue.h"
#include "record/recorded.h"
#include "store/segment_write.h"
#include "store/time_index_write.h"

typedef enum asi_record_state
{
    ASI_RECORD_INIT,
    ASI_RECORD_RECORDING,
    ASI_RECORD_STOPPED
} asi_record_state;

#define ASI_RECORD_ERROR_CAPACITY 1024

typedef struct asi_record_session
{
    asi_intrusive_queue_item item;  /* used by the queue */
    /* Set by the conductor before it queues the session; constant until the session is returned. */
    asi_segment_writer_params writer_params;
    asi_time_writer_params time_params;
    as_image *image;                /* retained; released by the conductor */
    as_counter *counter;            /* 100; closed by the conductor */
    asi_recorded *recorded;         /* one reference */
    char *channel;                  /* owned: channel of the request, for the Started event */
    int32_t block_limit;
    /* Written by the conductor (release), read by the recorder. A stale read costs one more block. */
    bool is_aborted;
    /* Written by the recorder; read by the conductor after the session is returned. */
    asi_record_state state;
    asi_segment_writer *writer;
    asi_time_writer *times;         /* NULL: no index */
    int time_failure;               /* errno of the index's first failure, 0: none; the recording continues */
    int64_t reported_position;      /* of the last Progress event */
    as_result failure;              /* AS_OK: ended without error */
    int32_t failure_code;           /* of the system, ENOSPC: the disk is full; 0: none */
    char failure_text[ASI_RECORD_ERROR_CAPACITY];
} asi_record_session;

/* Totals of the recorder's sessions in one cycle. */
typedef struct asi_record_work
{
    const asi_clock *clock;
    int64_t bytes;
    int64_t ns;
    int64_t max_ns;
} asi_record_work;

/* Does one step and returns its work count. The state is STOPPED when the recording has ended. */
int asi_record_session_step(asi_record_session *session, const asi_record_events *events, asi_record_work *work);
/* Sets the state to STOPPED at once: closes the files and makes the position final. */
void asi_record_session_stop(asi_record_session *session, const asi_record_events *events);

#endif
