/* See session.h. */
#include "record/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "codec/header.h"

typedef struct block_context
{
    asi_record_session *session;
    asi_record_work *work;
} block_context;

static void set_failure(asi_record_session *session, as_result failure, int32_t code)
{
    session->failure = failure;
    session->failure_code = code;
    snprintf(session->failure_text, sizeof(session->failure_text), "%s", as_error_text());
}

/* Runs inside block poll, which moves the subscriber position past the block even if the write fails. The recorded position is
 * therefore the writer's own position, which a failed write leaves unchanged. */
static void on_block(void *context, const uint8_t *frames, int64_t length, int32_t session_id, int32_t term_id)
{
    (void)session_id;
    (void)term_id;
    block_context *block = context;
    asi_record_session *session = block->session;
    asi_record_work *work = block->work;
    const int64_t before_bytes = asi_segment_writer_bytes_written(session->writer);
    const int64_t position = asi_segment_writer_position(session->writer);
    const int64_t now_ns = NULL == session->times ? 0 : asi_clock_epoch_ns(work->clock);
    const int64_t begin_ns = asi_clock_ns(work->clock);
    const as_result written = asi_segment_writer_append(session->writer, frames, length);
    const int64_t elapsed_ns = asi_clock_ns(work->clock) - begin_ns;
    work->ns += elapsed_ns;
    work->max_ns = elapsed_ns > work->max_ns ? elapsed_ns : work->max_ns;
    work->bytes += asi_segment_writer_bytes_written(session->writer) - before_bytes;
    if (AS_OK != written)
    {
        set_failure(session, written, asi_segment_writer_is_out_of_space(session->writer) ? ENOSPC : as_error_code());
    }
    else if (NULL != session->times)
    {
        asi_time_writer_add(session->times, position, length, now_ns);
    }
}

void asi_record_session_stop(asi_record_session *session, const asi_record_events *events)
{
    if (ASI_RECORD_STOPPED == session->state)
    {
        return;
    }
    const bool had_begun = NULL != session->writer;
    asi_segment_writer_close(session->writer);
    session->writer = NULL;
    if (NULL != session->times)
    {
        session->time_failure = asi_time_writer_close(session->times);
        session->times = NULL;
    }
    session->state = ASI_RECORD_STOPPED;
    asi_store_release_bool(&session->recorded->is_final, true);
    if (had_begun)
    {
        const as_result sent = asi_record_events_stopped(events, session->writer_params.recording_id,
            session->writer_params.join_position, session->recorded->position);
        (void)sent; /* Spec: 07 §12 - a lost event is not resent */
    }
}

static void open_writer(asi_record_session *session, const asi_record_events *events)
{
    const as_result opened = asi_segment_writer_open(&session->writer_params, &session->writer);
    if (AS_OK != opened)
    {
        set_failure(session, opened, as_error_code());
        asi_record_session_stop(session, events);
        return;
    }
    if (AS_OK != asi_time_writer_open(&session->time_params, &session->times))
    {
        session->time_failure = 0 == as_error_code() ? EIO : as_error_code();
    }
    AS_ASSERT(ASI_RECORD_INIT == session->state && NULL != session->writer);
    session->state = ASI_RECORD_RECORDING;
    as_image_constants image;
    as_image_get_constants(session->image, &image);
    const as_result sent = asi_record_events_started(events, session->writer_params.recording_id,
        session->writer_params.join_position, image.session_id, image.stream_id, session->channel, image.source_identity);
    (void)sent; /* Spec: 07 §12 - a lost event is not resent; the recording has priority */
}

static int record(asi_record_session *session, const asi_record_events *events, asi_record_work *work)
{
    /* Read both before the poll, so that the poll below takes all that was committed before the end. */
    const bool is_aborted = asi_load_acquire_bool(&session->is_aborted);
    const bool is_closed = as_image_is_closed(session->image);
    block_context block = { .session = session, .work = work };
    const int64_t polled = is_aborted ? 0 : as_image_block_poll(session->image, on_block, &block, session->block_limit);
    if (polled < 0)
    {
        set_failure(session, (as_result)polled, as_error_code()); /* the image's log is damaged: no more data can be read */
    }
    if (0 == polled && NULL != session->times && asi_time_writer_is_waiting(session->times))
    {
        asi_time_writer_idle(session->times, asi_clock_epoch_ns(work->clock));
    }
    const int64_t position = asi_segment_writer_position(session->writer);
    if (position != session->recorded->position)
    {
        AS_ASSERT(position > session->recorded->position && 0 == position % AS_FRAME_ALIGNMENT);
        asi_store_release_i64(&session->recorded->position, position);
        as_counter_set(session->counter, position);
    }
    if (position > session->reported_position &&
        AS_OK == asi_record_events_progress(
            events, session->writer_params.recording_id, session->writer_params.join_position, position))
    {
        session->reported_position = position;
    }
    if (is_aborted || AS_OK != session->failure ||
        (0 == polled && (is_closed || as_image_is_end_of_stream(session->image))))
    {
        asi_record_session_stop(session, events);
        return 1;
    }
    return polled > 0 ? 1 : 0;
}

int asi_record_session_step(asi_record_session *session, const asi_record_events *events, asi_record_work *work)
{
    int work_count = 0;
    if (ASI_RECORD_INIT == session->state)
    {
        open_writer(session, events);
        work_count = 1;
    }
    const bool is_due = 0 == work_count || asi_load_acquire_bool(&session->is_aborted);
    return ASI_RECORD_RECORDING == session->state && is_due ? work_count + record(session, events, work) : work_count;
}
