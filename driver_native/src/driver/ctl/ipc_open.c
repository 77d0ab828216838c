/* See ipc_open.h. */
#include "driver/ctl/ipc_open.h"

#include <inttypes.h>

#include "driver/ctl/channel.h"
#include "driver/ctl/log_files.h"
#include "driver/ctl/subscribers.h"
#include "wire/command.h"

static as_result open_log(asi_conductor *conductor, asi_ipc_publication *publication)
{
    const asi_log_file_request request = {
        .folder = "publications",
        .registration_id = publication->registration_id,
        .term_length = publication->params.term_length,
        .is_sparse = publication->params.is_sparse
    };
    const asi_ctl_publication_identity identity = { .registration_id = publication->registration_id,
        .session_id = publication->session_id, .stream_id = publication->stream_id, .is_exclusive = publication->is_exclusive };
    const as_result result = asi_log_file_create(conductor, &request, &publication->log, &publication->log_path);
    if (AS_OK == result)
    {
        asi_log_file_describe(conductor, &publication->log, &identity, &publication->params);
    }
    return result;
}

static as_result allocate_counter(asi_conductor *conductor, const asi_ipc_publication *publication, int32_t type_id,
    const char *name, int32_t *counter_id)
{
    const asi_stream_counter counter = {
        .type_id = type_id,
        .name = name,
        .registration_id = publication->registration_id,
        .counter_registration_id = publication->registration_id,
        .owner_id = publication->client_id,
        .session_id = publication->session_id,
        .stream_id = publication->stream_id,
        .channel = publication->channel,
        .initial_value = publication->starting_position
    };
    return asi_counters_allocate_stream(&conductor->counters, &counter, conductor->now_ms, counter_id);
}

static as_result open_counters(asi_conductor *conductor, asi_ipc_publication *publication)
{
    as_result result = allocate_counter(conductor, publication, ASI_COUNTER_TYPE_PUBLISHER_POSITION,
        publication->is_exclusive ? "pub-pos (exclusive)" : "pub-pos (concurrent)", &publication->position_counter_id);
    if (AS_OK == result)
    {
        publication->position_counter = asi_counter_addr(&conductor->counters.counters, publication->position_counter_id);
        result = allocate_counter(
            conductor, publication, ASI_COUNTER_TYPE_PUBLISHER_LIMIT, "pub-lmt", &publication->limit_counter_id);
    }
    if (AS_OK == result)
    {
        publication->limit_counter = asi_counter_addr(&conductor->counters.counters, publication->limit_counter_id);
    }
    return result;
}

static void init_positions(asi_conductor *conductor, asi_ipc_publication *publication)
{
    const asi_ctl_publication_params *params = &publication->params;
    const int64_t position = asi_log_position(
        params->term_id, params->term_offset, asi_log2(params->term_length), params->initial_term_id);
    publication->starting_position = position;
    publication->producer_position = position;
    publication->consumer_position = position;
    publication->clean_position = position;
    publication->limit = position;
    publication->trip_limit = position;
    publication->blocked_position = position;
    publication->blocked_since_ns = conductor->now_ns;
}

as_result asi_ipc_open(asi_conductor *conductor, const asi_ipc_request *request, const asi_ctl_publication_params *params,
    asi_ipc_publication **publication)
{
    asi_ipc_publication *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for publication %" PRId64, request->registration_id);
    }
    opened->registration_id = request->registration_id;
    opened->client_id = request->client_id;
    opened->session_id = request->session_id;
    opened->stream_id = request->stream_id;
    opened->is_exclusive = request->is_exclusive;
    opened->params = *params;
    opened->channel = asi_channel_copy(request->channel, request->channel_length);
    init_positions(conductor, opened);
    as_result result = NULL != opened->channel ? open_log(conductor, opened) : AS_E_INTERNAL;
    if (AS_OK == result)
    {
        result = open_counters(conductor, opened);
    }
    if (AS_OK != result)
    {
        asi_ipc_close(conductor, opened);
        return result;
    }
    opened->subscribers = (asi_subscribers){
        .image_id = opened->registration_id,
        .session_id = opened->session_id,
        .stream_id = opened->stream_id,
        .log_path = opened->log_path,
        .source_identity = ASI_IPC_SOURCE_IDENTITY
    };
    *publication = opened;
    return AS_OK;
}

void asi_ipc_close(asi_conductor *conductor, asi_ipc_publication *publication)
{
    if (NULL == publication)
    {
        return;
    }
    asi_events_log(conductor->events, ASI_EVENT_REMOVE_PUBLICATION_CLEANUP, "sessionId=%d streamId=%d channel=%s",
        publication->session_id, publication->stream_id, NULL == publication->channel ? "" : publication->channel);
    asi_subscribers_unlink_all(conductor, &publication->subscribers);
    if (NULL != publication->position_counter)
    {
        asi_counters_free(&conductor->counters, publication->position_counter_id, conductor->now_ms);
    }
    if (NULL != publication->limit_counter)
    {
        asi_counters_free(&conductor->counters, publication->limit_counter_id, conductor->now_ms);
    }
    asi_log_file_delete(conductor, &publication->log, publication->log_path);
    free(publication->subscribers.items);
    free(publication->log_path);
    free(publication->channel);
    free(publication);
}
