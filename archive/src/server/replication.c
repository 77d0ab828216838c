/* One replication: its state, its end, and its destination recording. See replication.h. Spec: 08 §10.1-10.2. */
#include "server/replication.h"

#include <stdio.h>

#include "base/assert.h"
#include "server/recordings.h"
#include "server/reply.h"
#include "server/report.h"

#define MAX_LOGGED_CODE 255

#define LOOK_INTERVAL_NS 100000000LL

void asi_replication_enter(asi_replication *replication, asi_replication_state state)
{
    /* Forward only, but LIVE_JOIN and CATCHUP alternate until the live stream has been joined; CLOSING is the end. */
    AS_ASSERT(state > replication->state ||
        (ASI_REPLICATION_CATCHUP == state && ASI_REPLICATION_LIVE_JOIN == replication->state) ||
        ASI_REPLICATION_CONNECT == state);
    AS_ASSERT(ASI_REPLICATION_CLOSING != replication->state);
    const as_archive *archive = replication->archive;
    replication->state = state;
    replication->deadline_ns = asi_clock_ns(&archive->clock) + archive->config.message_timeout_ns;
    replication->look_ns = asi_clock_ns(&archive->clock) + LOOK_INTERVAL_NS;
    asi_call_end(&replication->call);
}

void asi_replication_signal(const asi_replication *replication, int64_t position, as_recording_signal signal)
{
    asi_control_signal(replication->archive, replication->control_session_id, replication->id, replication->recording_id,
        replication->subscription_id, position, signal);
}

/* Tries once: if the request fails, the source's replay ends when its subscriber is gone. */
static void stop_source_replay(asi_replication *replication)
{
    if (AS_NULL_VALUE != replication->replay_session_id && as_publication_is_connected(replication->source.requests))
    {
        asi_codec_request request;
        asi_codec_request_init(&request, ASI_CODEC_STOP_REPLAY);
        request.replay_session_id = replication->replay_session_id;
        (void)!asi_client_session_offer(&replication->source, &request);
    }
    replication->replay_session_id = AS_NULL_VALUE;
}

void asi_replication_finish(asi_replication *replication)
{
    if (ASI_REPLICATION_CLOSING == replication->state)
    {
        return;
    }
    as_archive *archive = replication->archive;
    asi_recording_subscription *recorded = AS_NULL_VALUE == replication->subscription_id ? NULL :
        asi_recordings_subscription(archive, replication->subscription_id);
    asi_replication_enter(replication, ASI_REPLICATION_CLOSING);
    stop_source_replay(replication);
    if (NULL != recorded && !replication->is_merged)
    {
        asi_recordings_stop(archive, recorded);
        replication->subscription_id = AS_NULL_VALUE;
    }
    replication->subscription_id = replication->is_merged ? replication->subscription_id : AS_NULL_VALUE;
    asi_replication_signal(replication, AS_NULL_VALUE, AS_SIGNAL_REPLICATE_END);
}

void asi_replication_fail(asi_replication *replication, int32_t code, const char *text)
{
    as_archive *archive = replication->archive;
    char logged[ASI_CLIENT_TEXT_CAPACITY + 64];
    snprintf(logged, sizeof(logged), "replicationId=%lld: %s", (long long)replication->id, text);
    /* The code may be the other archive's, which could vary it, and errors of two codes take two entries. */
    asi_archive_log_of_peer(archive, "ERROR", code >= 0 && code <= MAX_LOGGED_CODE ? code : 0, logged, "replications that failed");
    asi_control_respond(
        archive, replication->control_session_id, replication->id, ASI_CODEC_ERROR, code, text);
    asi_replication_finish(replication);
}

asi_recording_subscription *asi_replication_recorded(const asi_replication *replication)
{
    return asi_recordings_subscription(replication->archive, replication->subscription_id);
}

bool asi_replication_is_recording_lost(asi_replication *replication, const asi_recording_subscription *recorded)
{
    if (NULL != recorded)
    {
        return false;
    }
    asi_replication_finish(replication);
    return true;
}

as_result asi_replication_poll_destination(asi_replication *replication)
{
    if (AS_NULL_VALUE == replication->destination_request)
    {
        return AS_OK;
    }
    const as_result result = as_client_poll_destination(replication->archive->client, replication->destination_request);
    if (AS_AGAIN != result)
    {
        replication->destination_request = AS_NULL_VALUE;
    }
    return result;
}
