/* See recorder.h. */
#include "record/recorder.h"

#include <stdlib.h>

void asi_recorder_init(asi_recorder *recorder, asi_intrusive_queue *closed, const asi_clock *clock)
{
    *recorder = (asi_recorder){ .closed = closed, .clock = clock };
    asi_intrusive_queue_init(&recorder->incoming);
}

/* Out of memory: stops the session and returns it to the conductor at once, which ends the recording in an orderly way. */
static int take_incoming(asi_recorder *recorder)
{
    asi_record_session *session = (asi_record_session *)asi_intrusive_queue_take(&recorder->incoming);
    if (NULL == session)
    {
        return 0;
    }
    if (recorder->session_count == recorder->session_capacity)
    {
        const int32_t capacity = recorder->session_capacity + 16;
        asi_record_session **grown = realloc(recorder->sessions, (size_t)capacity * sizeof(*grown));
        if (NULL == grown)
        {
            asi_record_session_stop(session, &recorder->events);
            asi_intrusive_queue_put(recorder->closed, &session->item);
            return 1;
        }
        recorder->sessions = grown;
        recorder->session_capacity = capacity;
    }
    recorder->sessions[recorder->session_count++] = session;
    return 1;
}

static void publish(asi_recorder *recorder, const asi_record_work *work)
{
    if (0 == work->bytes && 0 == work->ns)
    {
        return;
    }
    as_counter_set(recorder->total_write_bytes, as_counter_get(recorder->total_write_bytes) + work->bytes);
    as_counter_set(recorder->total_write_ns, as_counter_get(recorder->total_write_ns) + work->ns);
    if (work->max_ns > as_counter_get(recorder->max_write_ns))
    {
        as_counter_set(recorder->max_write_ns, work->max_ns);
    }
}

int asi_recorder_do_work(void *context)
{
    asi_recorder *recorder = context;
    int work_count = 0;
    while (0 != take_incoming(recorder))
    {
        work_count++;
    }
    asi_record_work work = { .clock = recorder->clock };
    for (int32_t i = recorder->session_count - 1; i >= 0; i--)
    {
        asi_record_session *session = recorder->sessions[i];
        work_count += asi_record_session_step(session, &recorder->events, &work);
        if (ASI_RECORD_STOPPED == session->state)
        {
            recorder->sessions[i] = recorder->sessions[--recorder->session_count];
            asi_intrusive_queue_put(recorder->closed, &session->item);
        }
    }
    publish(recorder, &work);
    return work_count;
}

void asi_recorder_close(asi_recorder *recorder)
{
    while (0 != take_incoming(recorder))
    {
    }
    for (int32_t i = 0; i < recorder->session_count; i++)
    {
        asi_record_session_stop(recorder->sessions[i], &recorder->events);
        asi_intrusive_queue_put(recorder->closed, &recorder->sessions[i]->item);
    }
    free(recorder->sessions);
    asi_intrusive_queue_close(&recorder->incoming);
    recorder->sessions = NULL;
    recorder->session_count = 0;
}
