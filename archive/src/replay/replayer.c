/* See replayer.h. */
#include "replay/replayer.h"

#include <stdlib.h>

void asi_replayer_init(asi_replayer *replayer, asi_intrusive_queue *closed, asi_intrusive_queue *answers, const asi_clock *clock)
{
    *replayer = (asi_replayer){ .closed = closed, .answers = answers, .clock = clock };
    asi_intrusive_queue_init(&replayer->incoming);
}

/* Out of memory: ends the session with revoke and returns it to the conductor at once. */
static int take_incoming(asi_replayer *replayer)
{
    asi_replay_session *session = (asi_replay_session *)asi_intrusive_queue_take(&replayer->incoming);
    if (NULL == session)
    {
        return 0;
    }
    if (replayer->session_count == replayer->session_capacity)
    {
        const int32_t capacity = replayer->session_capacity + 16;
        asi_replay_session **grown = realloc(replayer->sessions, (size_t)capacity * sizeof(*grown));
        if (NULL == grown)
        {
            asi_replay_session_end(session, true);
            asi_intrusive_queue_put(replayer->closed, &session->item);
            return 1;
        }
        replayer->sessions = grown;
        replayer->session_capacity = capacity;
    }
    replayer->sessions[replayer->session_count++] = session;
    return 1;
}

static void publish(asi_replayer *replayer, const asi_replay_work *work)
{
    if (0 == work->bytes && 0 == work->ns)
    {
        return;
    }
    as_counter_set(replayer->total_read_bytes, as_counter_get(replayer->total_read_bytes) + work->bytes);
    as_counter_set(replayer->total_read_ns, as_counter_get(replayer->total_read_ns) + work->ns);
    if (work->max_ns > as_counter_get(replayer->max_read_ns))
    {
        as_counter_set(replayer->max_read_ns, work->max_ns);
    }
}

int asi_replayer_do_work(void *context)
{
    asi_replayer *replayer = context;
    int work_count = 0;
    while (0 != take_incoming(replayer))
    {
        work_count++;
    }
    if (0 == replayer->session_count)
    {
        return work_count;
    }
    asi_replay_work work = {
        .now_ns = asi_clock_ns(replayer->clock),
        .clock = replayer->clock,
        .inspector = replayer->inspector,
        .answers = replayer->answers,
    };
    for (int32_t i = replayer->session_count - 1; i >= 0; i--)
    {
        asi_replay_session *session = replayer->sessions[i];
        work_count += asi_replay_session_step(session, &work);
        if (ASI_REPLAY_DONE == session->state)
        {
            replayer->sessions[i] = replayer->sessions[--replayer->session_count];
            asi_intrusive_queue_put(replayer->closed, &session->item);
        }
    }
    publish(replayer, &work);
    return work_count;
}

void asi_replayer_close(asi_replayer *replayer)
{
    while (0 != take_incoming(replayer))
    {
    }
    for (int32_t i = 0; i < replayer->session_count; i++)
    {
        asi_replay_session_end(replayer->sessions[i], true);
        asi_intrusive_queue_put(replayer->closed, &replayer->sessions[i]->item);
    }
    free(replayer->sessions);
    asi_intrusive_queue_close(&replayer->incoming);
    replayer->sessions = NULL;
    replayer->session_count = 0;
}
