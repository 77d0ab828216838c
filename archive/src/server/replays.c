/* Starts requested replays: checks the request, adds the publication, and cleans up when the replayer returns a replay. See
 * replays.h. Spec: 08 §7. */
#include "server/replays.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/descriptors.h"
#include "server/reply.h"
#include "server/report.h"
#include "store/segment_layout.h"
#include "wire/command.h"

#define LENGTH_FOLLOW (-1)       /* up to the end, including live data */
#define LENGTH_TO_CURRENT_END (-2)

static void show_replay_count(const as_archive *archive)
{
    as_counter_set(archive->counters.replay_sessions, archive->uses->count[ASI_USE_REPLAYS]);
}

/* Frees what the conductor gave the session. The publication drains and lingers, or is revoked. */
static void free_replay(asi_replay *replay)
{
    asi_replay_session *session = &replay->session;
    if (NULL != session->publication && session->must_revoke)
    {
        as_publication_revoke(session->publication);
    }
    else
    {
        as_publication_close(session->publication);
    }
    asi_recorded_release(session->recorded);
    free(session->archive_dir);
    free(session->channel);
    free(replay);
}

static void remove_replay(as_archive *archive, asi_replay *replay)
{
    for (asi_replay **at = &archive->replays->first; NULL != *at; at = &(*at)->next)
    {
        if (*at == replay)
        {
            *at = replay->next;
            asi_uses_remove(archive, &replay->use);
            show_replay_count(archive);
            break;
        }
    }
    free_replay(replay);
}

/* -- the request ------------------------------------------------------------------------------------------------------------- */

/* Where a replay begins, and the current end of the recording. */
typedef struct replay_range
{
    int64_t position;
    int64_t stop_position;
    int64_t limit;             /* position where the replay ends */
    int64_t bound;             /* value of the limit counter */
    int64_t bound_registration_id;
    asi_recorded *recorded;    /* not retained; NULL: the recording is stopped */
} replay_range;

/* A failed check: the error sent to the requester. */
typedef struct refusal
{
    int32_t code;
    char text[512];
} refusal;

static bool __attribute__((format(printf, 3, 4))) refuse(refusal *refused, int32_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refused->code = code;
    vsnprintf(refused->text, sizeof(refused->text), format, arguments);
    va_end(arguments);
    return false;
}

static bool is_bounded(const asi_codec_request *request)
{
    return ASI_CODEC_BOUNDED_REPLAY == request->template_id;
}

static bool resolve_bound(
    const as_archive *archive, const asi_codec_request *request, replay_range *range, refusal *refused)
{
    const int32_t id = request->limit_counter_id;
    as_counter_row row;
    const int32_t max_id = as_inspector_max_counter_id(archive->inspector);
    if (id < 0 || id > max_id)
    {
        return refuse(refused, ASI_CODEC_E_GENERIC,
            "unable to create replay limit counter id= %d because of: counter id %d out of range: 0 - maxCounterId=%d", id, id,
            max_id);
    }
    if (AS_OK != as_inspector_counter(archive->inspector, id, &row))
    {
        return refuse(refused, ASI_CODEC_E_GENERIC,
            "unable to create replay limit counter id= %d because of: ERROR - Counter id is not allocated: %d", id, id);
    }
    range->bound = row.value;
    range->bound_registration_id = row.registration_id;
    return true;
}

/* Spec: 08 §7.1, rows 9 to 11. When `limit` is AS_NULL_VALUE, only the recording's end limits the replay. As with stock, a limit
 * counter with the value -1 is treated the same way here; the replayer waits for it nevertheless. */
static bool check_length(const asi_codec_request *request, const asi_catalog_record *record, int64_t limit, replay_range *range,
    refusal *refused)
{
    const long long id = record->recording_id;
    const bool has_limit = AS_NULL_VALUE != limit;
    if (has_limit && range->position > limit)
    {
        return refuse(refused, ASI_CODEC_E_INVALID_POSITION,
            "requested replay start position=%lld must be less than the limit position=%lld for recording %lld",
            (long long)range->position, (long long)limit, id);
    }
    range->stop_position = has_limit ? limit : record->stop_position;
    const int64_t max_length = (has_limit ? INT64_MAX : range->stop_position) - range->position;
    int64_t length = request->length < max_length ? request->length : max_length;
    if (LENGTH_FOLLOW == request->length)
    {
        length = max_length;
    }
    else if (LENGTH_TO_CURRENT_END == request->length)
    {
        length = range->stop_position - range->position;
        if (0 == length)
        {
            return refuse(refused, ASI_CODEC_E_EMPTY_RECORDING,
                "when replaying and stopping the replay length must be non-zero, recordingId=%lld", id);
        }
    }
    if (length < 0)
    {
        return refuse(refused, ASI_CODEC_E_GENERIC,
            "replay length must be positive: replayLength=%lld, length=%lld, stopPosition=%lld, replayPosition=%lld for "
            "recording %lld", (long long)length, (long long)request->length, (long long)range->stop_position,
            (long long)range->position, id);
    }
    range->limit = range->position + length;
    return true;
}

/* Spec: 08 §7.1, row 12. Departures: a truncation that still waits for other replays to end allows no new one; and a deletion of
 * an active recording is no reason to refuse, as it is in stock, because it affects only bytes before the recording's start. */
static bool check_deletion(
    const as_archive *archive, const asi_catalog_record *record, const replay_range *range, refusal *refused)
{
    const asi_use *deletion = asi_uses_deletion(archive, record->recording_id);
    const int64_t stop = record->stop_position;
    if (NULL != deletion && (deletion->awaits_replays ||
        (AS_NULL_VALUE != stop && deletion->end_position > stop && range->stop_position > stop)))
    {
        return refuse(refused, ASI_CODEC_E_GENERIC,
            "cannot start replay of recording %lld due to an outstanding delete operation", (long long)record->recording_id);
    }
    return true;
}

/* Spec: 08 §7.1, rows 3 to 12, in that order. */
static bool check_range(const as_archive *archive, const asi_codec_request *request, const asi_catalog_record *record,
    replay_range *range, refusal *refused)
{
    const long long id = record->recording_id;
    const int64_t asked = request->position;
    range->recorded = asi_uses_recorded(archive, record->recording_id);
    if (AS_NULL_VALUE != asked && 0 != (asked & (AS_FRAME_ALIGNMENT - 1)))
    {
        return refuse(refused, ASI_CODEC_E_GENERIC,
            "requested replay start position=%lld is not a multiple of FRAME_ALIGNMENT (%d) for recording %lld",
            (long long)asked, AS_FRAME_ALIGNMENT, id);
    }
    range->position = AS_NULL_VALUE == asked ? record->start_position : asked;
    if (range->position < record->start_position)
    {
        return refuse(refused, ASI_CODEC_E_INVALID_POSITION,
            "requested replay start position=%lld is less than recording start position=%lld for recording %lld",
            (long long)range->position, (long long)record->start_position, id);
    }
    /* A request without a position may replay an empty recording. */
    if (AS_NULL_VALUE != asked && AS_NULL_VALUE != record->stop_position && asked >= record->stop_position)
    {
        return refuse(refused, ASI_CODEC_E_INVALID_POSITION,
            "requested replay start position=%lld must be less than the limit position=%lld for recording %lld",
            (long long)asked, (long long)record->stop_position, id);
    }
    if (request->file_io_max_length > 0 && request->file_io_max_length < record->mtu_length)
    {
        return refuse(refused, ASI_CODEC_E_GENERIC, "fileIoMaxLength=%d < mtuLength=%d", request->file_io_max_length,
            record->mtu_length);
    }
    const int64_t limit = is_bounded(request) ? range->bound :
        NULL != range->recorded ? asi_load_acquire_i64(&range->recorded->position) : AS_NULL_VALUE;
    return check_length(request, record, limit, range, refused) &&
        check_deletion(archive, record, range, refused);
}

static as_result build_channel(const as_archive *archive, const asi_codec_request *request, const asi_catalog_record *record,
    int64_t position, asi_channel *channel)
{
    asi_uri uri;
    const asi_replay_origin origin = {
        .position = position,
        .initial_term_id = record->initial_term_id,
        .term_length = record->term_buffer_length,
        .mtu = record->mtu_length,
        .linger_ns = archive->config.replay_linger_ns,
    };
    const as_result parsed = asi_channel_parse_untrusted(&uri, request->channel.data, request->channel.length);
    return AS_OK == parsed ? asi_channel_replay(&uri, &origin, channel) : parsed;
}

static as_result request_publication(as_archive *archive, asi_replay *replay)
{
    return as_client_async_add_exclusive_publication(
        archive->client, replay->session.channel, replay->session.publication_stream_id, &replay->publication_request);
}

static asi_replay *make_replay(as_archive *archive, const asi_control_session *control, const asi_codec_request *request,
    const asi_catalog_record *record, const replay_range *range, const asi_channel *channel)
{
    asi_replay *replay = calloc(1, sizeof(*replay));
    if (NULL == replay)
    {
        return NULL;
    }
    asi_replay_session *session = &replay->session;
    session->archive_dir = strdup(archive->config.archive_dir);
    session->channel = strdup(channel->text);
    session->recorded = NULL == range->recorded ? NULL : asi_recorded_retain(range->recorded);
    if (NULL == session->archive_dir || NULL == session->channel)
    {
        free_replay(replay);
        return NULL;
    }
    session->source = (asi_segment_source){
        .files = archive->files,
        .archive_dir = session->archive_dir,
        .recording_id = record->recording_id,
        .start_position = record->start_position,
        .term_length = record->term_buffer_length,
        .segment_length = record->segment_file_length,
        .initial_term_id = record->initial_term_id,
        .stream_id = record->stream_id,
        .mtu_length = record->mtu_length,
    };
    const int32_t io_length = (int32_t)archive->config.file_io_max_length;
    session->checksum = asi_checksum_function((as_record_checksum)archive->config.replay_checksum);
    replay->use = (asi_use){ .kind = ASI_USE_REPLAYS, .recording_id = record->recording_id, .replay = session };
    replay->owner = control->auth;
    session->control_session_id = control->id;
    session->correlation_id = request->correlation_id;
    session->bound_counter_id = is_bounded(request) ? request->limit_counter_id : AS_NULL_VALUE;
    session->bound_registration_id = range->bound_registration_id;
    session->bound = range->bound;
    session->publication_stream_id = request->stream_id;
    session->batch_limit = request->file_io_max_length > 0 && request->file_io_max_length < io_length ?
        request->file_io_max_length : io_length;
    session->position = range->position;
    session->reached_position = range->position;
    session->recording_end = record->stop_position;
    session->replay_limit = range->limit;
    return replay;
}

void asi_replays_start(asi_control_session *session, const asi_codec_request *request)
{
    as_archive *archive = session->archive;
    const int64_t correlation_id = request->correlation_id;
    replay_range range = { .bound = 0 };
    refusal refused;
    asi_catalog_record record;
    char text[256];
    if (is_bounded(request) && !resolve_bound(archive, request, &range, &refused))
    {
        asi_control_error(session, correlation_id, refused.code, "%s", refused.text);
        return;
    }
    if (archive->uses->count[ASI_USE_REPLAYS] >= archive->config.max_concurrent_replays)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_MAX_REPLAYS, "max concurrent replays reached %lld",
            (long long)archive->config.max_concurrent_replays);
        return;
    }
    if (!asi_descriptors_has_room(archive, ASI_DESCRIPTORS_OF_REPLAY, text, sizeof(text)))
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_MAX_REPLAYS, "%s", text);
        return;
    }
    if (!asi_catalog_find(archive->catalog, request->recording_id, &record))
    {
        asi_control_unknown_recording(session, correlation_id, request->recording_id);
        return;
    }
    if (!check_range(archive, request, &record, &range, &refused))
    {
        asi_control_error(session, correlation_id, refused.code, "%s", refused.text);
        return;
    }
    asi_channel channel;
    if (AS_OK != build_channel(archive, request, &record, range.position, &channel))
    {
        asi_control_error(
            session, correlation_id, ASI_CODEC_E_GENERIC, "failed to process replayChannel - %s", as_error_text());
        return;
    }
    asi_replay *replay = make_replay(archive, session, request, &record, &range, &channel);
    if (NULL == replay || AS_OK != request_publication(archive, replay))
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC, "failed to create replay publication: %s",
            NULL == replay ? "no memory" : as_error_text());
        if (NULL != replay)
        {
            free_replay(replay);
        }
        return;
    }
    replay->next = archive->replays->first;
    archive->replays->first = replay;
    asi_uses_add(archive, &replay->use);
    asi_descriptors_take(archive, ASI_DESCRIPTORS_OF_REPLAY);
    show_replay_count(archive);
}

static void abort_replay(asi_replay *replay)
{
    asi_store_release_bool(&replay->session.is_aborted, true);
}

/* With principals, only the owner of a replay may stop it. Sessions of one principal share ownership, so that a client can stop
 * its replays after it reconnects. Without principals any session may stop it, as upstream. Spec: 08 §7.4. */
static bool may_stop(const asi_control_session *session, const asi_replay *replay)
{
    const asi_auth *auth = &session->archive->auth;
    return !asi_auth_has_principals(auth) || asi_auth_is_same(&session->auth, &replay->owner) ||
        asi_auth_allows(auth, &session->auth, AS_AUTH_ACTION_STOP_ANY_REPLAY);
}

void asi_replays_stop(asi_control_session *session, const asi_codec_request *request)
{
    for (asi_replay *at = session->archive->replays->first; NULL != at; at = at->next)
    {
        const bool has_id = AS_NULL_VALUE == at->publication_request;
        if (!has_id || at->session.replay_session_id != request->replay_session_id)
        {
            continue;
        }
        if (!may_stop(session, at))
        {
            asi_control_error(session, request->correlation_id, ASI_CODEC_E_UNAUTHORISED_ACTION,
                "unauthorised action: another user's replay, replaySessionId=%lld", (long long)request->replay_session_id);
            return;
        }
        abort_replay(at);
    }
    asi_control_ok(session, request->correlation_id, 0);
}

void asi_replays_stop_all(asi_control_session *session, const asi_codec_request *request)
{
    for (asi_replay *at = session->archive->replays->first; NULL != at; at = at->next)
    {
        const bool is_meant =
            AS_NULL_VALUE == request->recording_id || at->session.source.recording_id == request->recording_id;
        if (is_meant && may_stop(session, at))
        {
            abort_replay(at);
        }
    }
    asi_control_ok(session, request->correlation_id, 0);
}

/* -- duty cycle -------------------------------------------------------------------------------------------------------------- */

static void run(as_archive *archive, asi_replay *replay)
{
    asi_replay_session *session = &replay->session;
    as_publication_constants constants;
    as_publication_get_constants(session->publication, &constants);
    session->publication_session_id = constants.session_id;
    session->replay_session_id =
        (int64_t)(((uint64_t)archive->replays->next_number++ << 32) | (uint32_t)constants.session_id);
    session->connect_deadline_ns = asi_clock_ns(&archive->clock) + archive->config.connect_timeout_ns;
    asi_intrusive_queue_put(&archive->replays->replayer.incoming, &session->item);
}

static int poll_publication(as_archive *archive, asi_replay *replay)
{
    asi_replay_session *session = &replay->session;
    const as_result polled =
        as_client_poll_publication(archive->client, replay->publication_request, &session->publication);
    if (AS_AGAIN == polled)
    {
        return 0;
    }
    replay->publication_request = AS_NULL_VALUE;
    if (AS_OK == polled)
    {
        run(archive, replay);
        return 1;
    }
    if (AS_E_PEER == polled && ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE == as_error_code() && !session->is_aborted &&
        AS_OK == request_publication(archive, replay))
    {
        return 1;
    }
    char text[1024];
    snprintf(text, sizeof(text), "failed to create replay publication: %s", as_error_text());
    asi_archive_log_of_peer(archive, "ERROR", as_error_code(), text, "replay publications that can't be created");
    asi_control_respond(archive, session->control_session_id, session->correlation_id, ASI_CODEC_ERROR,
        ASI_CODEC_E_GENERIC, text);
    remove_replay(archive, replay);
    return 1;
}

static int tell_answers(as_archive *archive)
{
    int work_count = 0;
    for (;;)
    {
        asi_replay_answer *answer = (asi_replay_answer *)asi_intrusive_queue_take(&archive->replays->answers);
        if (NULL == answer)
        {
            return work_count;
        }
        if (ASI_CODEC_ERROR == answer->code)
        {
            asi_archive_log_of_peer(archive, "ERROR", (int32_t)answer->relevant_id, answer->text, "replays that failed");
        }
        asi_control_respond(archive, answer->control_session_id, answer->correlation_id, answer->code, answer->relevant_id,
            answer->text);
        free(answer);
        work_count++;
    }
}

static int take_closed(as_archive *archive)
{
    int work_count = 0;
    for (;;)
    {
        asi_replay *replay = (asi_replay *)(void *)asi_intrusive_queue_take(&archive->replays->closed);
        if (NULL == replay)
        {
            return work_count;
        }
        remove_replay(archive, replay);
        work_count++;
    }
}

int asi_replays_step(as_archive *archive)
{
    int work_count = tell_answers(archive) + take_closed(archive);
    for (asi_replay *at = archive->replays->first; NULL != at;)
    {
        asi_replay *next = at->next;
        if (AS_NULL_VALUE != at->publication_request)
        {
            work_count += poll_publication(archive, at);
        }
        at = next;
    }
    return work_count;
}

void asi_replays_close(as_archive *archive)
{
    tell_answers(archive);
    take_closed(archive);
    while (NULL != archive->replays->first)
    {
        asi_replay *replay = archive->replays->first;
        archive->replays->first = replay->next;
        asi_uses_remove(archive, &replay->use);
        free_replay(replay);
    }
}
