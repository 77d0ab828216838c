/* Polls, decodes and routes requests of the control streams; each request has one short handler. See on_request.h. Spec: 07 §5,
 * §7, §9.
 *
 * Messages are copied during the poll and routed afterwards: a handler may wait for the driver, which invokes the client whose
 * subscription is being polled. Messages that are not requests of the protocol are ignored. */
#include "server/on_request.h"

#include <stdlib.h>
#include <string.h>

#include "server/control.h"
#include "server/listing.h"
#include "server/migrate.h"
#include "server/recordings.h"
#include "server/replays.h"
#include "server/replications.h"
#include "server/reply.h"
#include "server/report.h"
#include "server/segments.h"
#include "server/tokens.h"
#include "server/tokens_redeem.h"
#include "server/truncate.h"
#include "server/update_channel.h"

#define FRAGMENT_LIMIT 10
/* Whoever is connected gets as much memory for a request that never ends, without a login. The longest have four channels of 4
 * KiB, and credentials of a plug-in. */
#define REQUEST_MAX_LENGTH (128 * 1024)

typedef void (*request_handler)(asi_control_session *session, const asi_codec_request *request);

static void on_keep_alive(asi_control_session *session, const asi_codec_request *request)
{
    (void)session; /* the lookup of the session has activated it; keep-alives are not answered */
    (void)request;
}

static void on_close(asi_control_session *session, const asi_codec_request *request)
{
    (void)request;
    asi_control_close(session);
}

static void on_archive_id(asi_control_session *session, const asi_codec_request *request)
{
    asi_control_ok(session, request->correlation_id, session->archive->archive_id);
}

/* The recordings that a request uses: their catalog entries must be valid. Queries report entries as they are, and a purge
 * removes them. */
typedef enum works_with
{
    WORKS_WITH_NONE = 0,
    WORKS_WITH_RECORDING = 1,
    WORKS_WITH_DESTINATION = 2
} works_with;

typedef struct route
{
    int32_t template_id;
    request_handler handler;
    uint32_t recordings;
} route;

static const route ROUTES[] = {
    { ASI_CODEC_KEEP_ALIVE, on_keep_alive, WORKS_WITH_NONE },
    { ASI_CODEC_CLOSE_SESSION, on_close, WORKS_WITH_NONE },
    { ASI_CODEC_ARCHIVE_ID, on_archive_id, WORKS_WITH_NONE },
    { ASI_CODEC_START_RECORDING, asi_recordings_start, WORKS_WITH_NONE },
    { ASI_CODEC_START_RECORDING_2, asi_recordings_start, WORKS_WITH_NONE },
    { ASI_CODEC_EXTEND_RECORDING, asi_recordings_extend, WORKS_WITH_RECORDING },
    { ASI_CODEC_EXTEND_RECORDING_2, asi_recordings_extend, WORKS_WITH_RECORDING },
    { ASI_CODEC_STOP_RECORDING, asi_recordings_stop_channel, WORKS_WITH_NONE },
    { ASI_CODEC_STOP_RECORDING_SUBSCRIPTION, asi_recordings_stop_subscription, WORKS_WITH_NONE },
    { ASI_CODEC_STOP_RECORDING_BY_IDENTITY, asi_recordings_stop_identity, WORKS_WITH_NONE },
    { ASI_CODEC_REPLAY, asi_replays_start, WORKS_WITH_RECORDING },
    { ASI_CODEC_BOUNDED_REPLAY, asi_replays_start, WORKS_WITH_RECORDING },
    { ASI_CODEC_STOP_REPLAY, asi_replays_stop, WORKS_WITH_NONE },
    { ASI_CODEC_STOP_ALL_REPLAYS, asi_replays_stop_all, WORKS_WITH_NONE },
    { ASI_CODEC_REPLAY_TOKEN, asi_tokens_issue, WORKS_WITH_NONE },
    { ASI_CODEC_REPLICATE, asi_replications_start, WORKS_WITH_DESTINATION },
    { ASI_CODEC_TAGGED_REPLICATE, asi_replications_start, WORKS_WITH_DESTINATION },
    { ASI_CODEC_REPLICATE_2, asi_replications_start, WORKS_WITH_DESTINATION },
    { ASI_CODEC_STOP_REPLICATION, asi_replications_stop, WORKS_WITH_NONE },
    { ASI_CODEC_LIST_RECORDINGS, asi_listing_begin, WORKS_WITH_NONE },
    { ASI_CODEC_LIST_RECORDINGS_FOR_URI, asi_listing_begin, WORKS_WITH_NONE },
    { ASI_CODEC_LIST_RECORDING_SUBSCRIPTIONS, asi_listing_begin, WORKS_WITH_NONE },
    { ASI_CODEC_LIST_RECORDING, asi_query_list_recording, WORKS_WITH_NONE },
    { ASI_CODEC_FIND_LAST_MATCHING_RECORDING, asi_query_find_last, WORKS_WITH_NONE },
    { ASI_CODEC_START_POSITION, asi_query_position, WORKS_WITH_NONE },
    { ASI_CODEC_STOP_POSITION, asi_query_position, WORKS_WITH_NONE },
    { ASI_CODEC_RECORDING_POSITION, asi_query_position, WORKS_WITH_NONE },
    { ASI_CODEC_MAX_RECORDED_POSITION, asi_query_position, WORKS_WITH_NONE },
    { ASI_CODEC_TRUNCATE_RECORDING, asi_truncate_recording, WORKS_WITH_RECORDING },
    { ASI_CODEC_PURGE_RECORDING, asi_purge_recording, WORKS_WITH_NONE },
    { ASI_CODEC_DETACH_SEGMENTS, asi_segments_detach, WORKS_WITH_RECORDING },
    { ASI_CODEC_DELETE_DETACHED_SEGMENTS, asi_segments_delete_detached, WORKS_WITH_RECORDING },
    { ASI_CODEC_PURGE_SEGMENTS, asi_segments_purge, WORKS_WITH_RECORDING },
    { ASI_CODEC_ATTACH_SEGMENTS, asi_segments_attach, WORKS_WITH_RECORDING },
    { ASI_CODEC_MIGRATE_SEGMENTS, asi_migrate_segments, WORKS_WITH_RECORDING | WORKS_WITH_DESTINATION },
    { ASI_CODEC_UPDATE_CHANNEL, asi_update_channel, WORKS_WITH_NONE },
};

static const route *route_of(int32_t template_id)
{
    for (size_t i = 0; i < sizeof(ROUTES) / sizeof(ROUTES[0]); i++)
    {
        if (ROUTES[i].template_id == template_id)
        {
            return &ROUTES[i];
        }
    }
    return NULL;
}

/* True for an unknown recording, which the handler refuses. */
static bool is_sound(const as_archive *archive, int64_t recording_id)
{
    asi_catalog_record record;
    return !asi_catalog_find(archive->catalog, recording_id, &record) || AS_OK == asi_recording_check_untrusted(&record);
}

static bool are_recordings_sound(const as_archive *archive, const route *to, const asi_codec_request *request)
{
    return (0 == (to->recordings & WORKS_WITH_RECORDING) || is_sound(archive, request->recording_id)) &&
        (0 == (to->recordings & WORKS_WITH_DESTINATION) || is_sound(archive, request->dst_recording_id));
}

/* `request` is modified when a replay token replaces the session. */
static void route_request(as_archive *archive, asi_codec_request *request, as_image *image)
{
    if (ASI_CODEC_AUTH_CONNECT == request->template_id)
    {
        asi_control_connect(archive, request, image);
        return;
    }
    if (ASI_CODEC_CHALLENGE_RESPONSE == request->template_id)
    {
        asi_control_on_challenge_response(archive, request, image);
        return;
    }
    asi_channel channel;
    asi_control_session *session = asi_tokens_are_shown(request) ?
        asi_tokens_redeem(archive, request, image, &channel) : asi_control_session_for(archive, request, image);
    if (NULL == session)
    {
        return;
    }
    const route *to = route_of(request->template_id);
    if (NULL != to && !are_recordings_sound(archive, to, request))
    {
        asi_control_error(session, request->correlation_id, ASI_CODEC_E_GENERIC, "%s", as_error_text());
    }
    else if (NULL != to)
    {
        to->handler(session, request);
    }
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    as_archive *archive = context;
    asi_request *request = malloc(sizeof(*request) + (size_t)length);
    if (NULL == request)
    {
        asi_archive_log(archive, 0, "no memory for a request; it is lost");
        return;
    }
    request->next = NULL;
    request->image = as_image_retain(header->image);
    request->length = length;
    memcpy(request->bytes, data, (size_t)length);
    if (NULL == archive->requests->first)
    {
        archive->requests->first = request;
    }
    else
    {
        archive->requests->last->next = request;
    }
    archive->requests->last = request;
}

static asi_request *take(as_archive *archive)
{
    asi_request *request = archive->requests->first;
    if (NULL != request)
    {
        archive->requests->first = request->next;
    }
    return request;
}

static void free_request(asi_request *request)
{
    as_image_release(request->image);
    explicit_bzero(request->bytes, (size_t)request->length); /* it may contain credentials */
    free(request);
}

static int64_t poll_stream(as_archive *archive, as_subscription *subscription)
{
    return NULL == subscription ? 0 :
        as_subscription_poll(subscription, as_fragment_assembler_on_fragment, archive->requests->assembler, FRAGMENT_LIMIT);
}

static bool open_assembler(as_archive *archive)
{
    if (AS_OK != as_fragment_assembler_open(on_message, archive, &archive->requests->assembler))
    {
        asi_archive_log(archive, 0, NULL);
        return false;
    }
    as_fragment_assembler_set_max_length(archive->requests->assembler, REQUEST_MAX_LENGTH);
    return true;
}

int asi_requests_step(as_archive *archive)
{
    if (NULL == archive->requests->assembler && !open_assembler(archive))
    {
        return 0;
    }
    poll_stream(archive, archive->requests->network);
    poll_stream(archive, archive->requests->local);
    int work_count = 0;
    for (asi_request *raw = take(archive); NULL != raw; raw = take(archive))
    {
        asi_codec_request request;
        const as_result decoded = asi_codec_request_decode_untrusted(raw->bytes, raw->length, &request);
        if (AS_OK == decoded)
        {
            route_request(archive, &request, raw->image);
        }
        else if (AS_AGAIN != decoded)
        {
            asi_archive_log_of_peer(archive, "ERROR", 0, as_error_text(), "malformed requests");
        }
        free_request(raw);
        work_count++;
    }
    return work_count;
}

void asi_requests_close(as_archive *archive)
{
    for (asi_request *raw = take(archive); NULL != raw; raw = take(archive))
    {
        free_request(raw);
    }
    as_fragment_assembler_close(archive->requests->assembler);
    archive->requests->assembler = NULL;
}
