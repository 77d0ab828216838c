/* Steps of the copy itself, plain or merged with the live stream, after the replay's image is recorded. See replication.h. Spec:
 * 08 §10.3, REPLICATE to ATTEMPT_LIVE_JOIN. */
#include "server/replication_copy.h"

#include "server/recording.h"
#include "server/replication_source.h"
#include "server/uses.h"

#define QUERY_ATTEMPTS 3
#define QUERY_INTERVAL_NS 10000000LL
#define LIVE_WINDOW_MAX (32 * 1024 * 1024)

/* Whether everything requested is copied up to `position`. If so, and if the source has no more data, signals SYNC. */
static bool is_complete(asi_replication *replication, int64_t position)
{
    const int64_t source_stop = replication->record.stop_position;
    const int64_t stop = replication->params.stop_position;
    if (AS_NULL_VALUE != source_stop && position >= source_stop)
    {
        replication->replay_session_id = AS_NULL_VALUE; /* the replay has ended by itself */
        asi_replication_signal(replication, position, AS_SIGNAL_SYNC);
        return true;
    }
    return AS_NULL_VALUE != stop && position >= stop;
}

int asi_replication_step_replicate(asi_replication *replication)
{
    const int64_t recorded = asi_uses_recorded_position(replication->archive, replication->recording_id);
    const bool is_running = !replication->has_ended && AS_NULL_VALUE != recorded;
    const int64_t position = is_running ? recorded : replication->end_position;
    if (is_complete(replication, position) || !is_running)
    {
        asi_replication_finish(replication);
        return 1;
    }
    return asi_replication_is_source_well(replication) ? 0 : 1;
}

void asi_replications_on_recording_end(as_archive *archive, int64_t subscription_id, int64_t stop_position)
{
    for (asi_replication *at = archive->replications; NULL != at; at = at->next)
    {
        if (at->subscription_id == subscription_id && ASI_REPLICATION_CLOSING != at->state)
        {
            at->has_ended = true;
            at->end_position = stop_position;
            if (ASI_REPLICATION_REPLICATE == at->state && is_complete(at, stop_position))
            {
                asi_replication_finish(at); /* SYNC precedes the recording's STOP */
            }
        }
    }
}

/* -- the live merge ---------------------------------------------------------------------------------------------------------- */

static bool is_image_lost(asi_replication *replication)
{
    if (!replication->has_ended && !as_image_is_closed(replication->image))
    {
        return false;
    }
    asi_replication_fail(replication, ASI_CODEC_E_GENERIC, "replication image closed unexpectedly before it merged with the live "
        "stream: the source's replay, or the recording here, has ended");
    return true;
}

int asi_replication_step_catchup(asi_replication *replication)
{
    if (is_image_lost(replication) || !asi_replication_is_source_well(replication))
    {
        return 1;
    }
    const int64_t now = asi_clock_ns(&replication->archive->clock);
    if (as_image_position(replication->image) < replication->source_position || now < replication->query_ns)
    {
        return 0;
    }
    asi_replication_enter(replication, ASI_REPLICATION_LIVE_JOIN);
    replication->query_ns = now + QUERY_INTERVAL_NS;
    replication->deadline_ns += (QUERY_ATTEMPTS - 1) * replication->archive->config.message_timeout_ns;
    return 1;
}

/* Adds the live destination when the replay is close to the live position; removes the replay's destination when the live stream
 * has arrived. */
static as_result join_live(asi_replication *replication, const asi_recording_subscription *recorded)
{
    const int32_t term_window = replication->record.term_buffer_length / 4;
    const int64_t window = term_window < LIVE_WINDOW_MAX ? term_window : LIVE_WINDOW_MAX;
    const int64_t gap = replication->source_position - as_image_position(replication->image);
    if (!replication->is_live_added)
    {
        if (gap <= window)
        {
            replication->is_live_added = true;
            return as_subscription_async_add_destination(
                recorded->subscription, replication->params.live_destination, &replication->destination_request);
        }
    }
    else if (gap <= 0 && as_image_active_transport_count(replication->image) >= 2)
    {
        replication->is_merged = true;
        return as_subscription_async_remove_destination(
            recorded->subscription, replication->replay_destination, &replication->destination_request);
    }
    asi_replication_enter(replication, ASI_REPLICATION_CATCHUP);
    return AS_OK;
}

int asi_replication_step_live_join(asi_replication *replication)
{
    const asi_recording_subscription *recorded = asi_replication_recorded(replication);
    if (is_image_lost(replication) || asi_replication_is_recording_lost(replication, recorded))
    {
        return 1;
    }
    as_result result = asi_replication_poll_destination(replication);
    if (AS_AGAIN == result)
    {
        return asi_replication_has_time(replication) ? 0 : 1;
    }
    if (AS_OK == result && replication->is_merged)
    {
        asi_replication_signal(replication, as_image_position(replication->image), AS_SIGNAL_MERGE);
        asi_replication_finish(replication);
        return 1;
    }
    if (AS_OK == result)
    {
        const as_result asked = asi_replication_query_position(replication);
        if (AS_OK != asked)
        {
            return AS_AGAIN == asked ? 0 : 1;
        }
        if (AS_NULL_VALUE == replication->source_position)
        {
            asi_replication_fail(replication, ASI_CODEC_E_GENERIC, "cannot live merge without active source recording");
            return 1;
        }
        result = join_live(replication, recorded);
    }
    if (AS_OK != result)
    {
        asi_replication_fail_as_told(replication);
    }
    return 1;
}
