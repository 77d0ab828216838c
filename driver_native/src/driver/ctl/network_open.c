/* See network_open.h. */
#include "driver/ctl/network_open.h"

#include <inttypes.h>

#include "driver/ctl/channel.h"
#include "driver/ctl/log_files.h"
#include "driver/ctl/send_channels.h"
#include "driver/ctl/subscribers.h"
#include "wire/command.h"

static as_result open_log(asi_conductor *conductor, asi_network_publication *publication)
{
    asi_sender_publication *sender = &publication->sender;
    const asi_log_file_request request = {
        .folder = "publications",
        .registration_id = sender->registration_id,
        .term_length = publication->params.term_length,
        .is_sparse = publication->params.is_sparse
    };
    const asi_ctl_publication_identity identity = { .registration_id = sender->registration_id,
        .session_id = sender->session_id, .stream_id = sender->stream_id, .is_exclusive = publication->is_exclusive };
    const as_result result = asi_log_file_create(conductor, &request, &sender->log, &publication->log_path);
    if (AS_OK == result)
    {
        const asi_udp_channel *channel = publication->channel->channel;
        asi_log_metadata *metadata = sender->log.metadata;
        metadata->socket_sndbuf_length = (int32_t)channel->sndbuf_length;
        metadata->socket_rcvbuf_length = (int32_t)channel->rcvbuf_length;
        metadata->group = sender->is_group;
        asi_log_file_describe(conductor, &sender->log, &identity, &publication->params);
        sender->log.mtu_length = publication->params.mtu_length;
    }
    return result;
}

static as_result allocate_counter(
    asi_conductor *conductor, asi_network_publication *publication, int32_t index, asi_stream_counter *counter)
{
    counter->registration_id = publication->sender.registration_id;
    counter->counter_registration_id = publication->sender.registration_id;
    counter->session_id = publication->sender.session_id;
    counter->stream_id = publication->sender.stream_id;
    return asi_counters_allocate_stream(
        &conductor->counters, counter, conductor->now_ms, &publication->counter_ids[index]);
}

static int64_t *counter_address(const asi_conductor *conductor, const asi_network_publication *publication, int32_t index)
{
    return asi_counter_addr(&conductor->counters.counters, publication->counter_ids[index]);
}

/* In the stock drivers' order. Spec: 01 §7.2. */
static as_result open_counters(asi_conductor *conductor, asi_network_publication *publication)
{
    const struct { int32_t type_id; const char *name; bool is_position; } rows[] = {
        [ASI_NETWORK_PUBLISHER_POSITION] = { ASI_COUNTER_TYPE_PUBLISHER_POSITION,
            publication->is_exclusive ? "pub-pos (exclusive)" : "pub-pos (concurrent)", true },
        [ASI_NETWORK_PUBLISHER_LIMIT] = { ASI_COUNTER_TYPE_PUBLISHER_LIMIT, "pub-lmt", true },
        [ASI_NETWORK_SENDER_POSITION] = { ASI_COUNTER_TYPE_SENDER_POSITION, "snd-pos", true },
        [ASI_NETWORK_SENDER_LIMIT] = { ASI_COUNTER_TYPE_SENDER_LIMIT, "snd-lmt", true },
        [ASI_NETWORK_SENDER_BACK_PRESSURE] = { ASI_COUNTER_TYPE_SENDER_BPE, "snd-bpe", false },
        [ASI_NETWORK_SENDER_NAKS] = { ASI_COUNTER_TYPE_SENDER_NAKS_RECEIVED, "snd-naks-received", false },
    };
    as_result result = AS_OK;
    for (int32_t i = 0; AS_OK == result && i < ASI_NETWORK_FLOW_RECEIVERS; i++)
    {
        asi_stream_counter counter = { .type_id = rows[i].type_id, .name = rows[i].name, .owner_id = publication->client_id,
            .channel = publication->uri, .initial_value = rows[i].is_position ? publication->starting_position : 0 };
        result = allocate_counter(conductor, publication, i, &counter);
    }
    if (AS_OK != result)
    {
        return result;
    }
    asi_sender_publication *sender = &publication->sender;
    publication->position_counter = counter_address(conductor, publication, ASI_NETWORK_PUBLISHER_POSITION);
    publication->limit_counter = counter_address(conductor, publication, ASI_NETWORK_PUBLISHER_LIMIT);
    sender->position_counter = counter_address(conductor, publication, ASI_NETWORK_SENDER_POSITION);
    sender->limit_counter = counter_address(conductor, publication, ASI_NETWORK_SENDER_LIMIT);
    sender->back_pressure_counter = counter_address(conductor, publication, ASI_NETWORK_SENDER_BACK_PRESSURE);
    sender->naks_counter = counter_address(conductor, publication, ASI_NETWORK_SENDER_NAKS);
    return AS_OK;
}

static as_result open_flow(asi_conductor *conductor, asi_network_publication *publication, const asi_flow_params *params)
{
    int64_t *receivers_counter = NULL;
    if (ASI_FLOW_MAX != params->kind)
    {
        asi_stream_counter counter = { .type_id = ASI_COUNTER_TYPE_FLOW_CONTROL_RECEIVERS, .name = "fc-receivers",
            .owner_id = AS_NULL_VALUE, .channel = publication->channel->channel->original };
        const as_result result = allocate_counter(conductor, publication, ASI_NETWORK_FLOW_RECEIVERS, &counter);
        if (AS_OK != result)
        {
            return result;
        }
        receivers_counter = counter_address(conductor, publication, ASI_NETWORK_FLOW_RECEIVERS);
    }
    asi_flow *flow = &publication->sender.flow;
    const as_result result = asi_flow_open(flow, params, receivers_counter);
    flow->events = conductor->events;
    flow->session_id = publication->sender.session_id;
    flow->stream_id = publication->sender.stream_id;
    return result;
}

static as_result open_retransmit(
    const asi_conductor *conductor, asi_network_publication *publication, const asi_flow_params *flow)
{
    const asi_driver_settings *settings = conductor->settings;
    const int32_t max_resend = publication->params.max_resend;
    const asi_retransmit_params params = {
        .is_group = publication->sender.is_group,
        .max_resend = 0 != max_resend ? max_resend : (int32_t)settings->max_resend,
        .term_length = publication->params.term_length,
        .rrwm = flow->rrwm,
        .delay_ns = settings->retransmit_unicast_delay_ns,
        .linger_ns = settings->retransmit_unicast_linger_ns
    };
    return asi_retransmit_open(&publication->sender.retransmit, &params);
}

static void init_positions(asi_conductor *conductor, asi_network_publication *publication)
{
    const asi_ctl_publication_params *params = &publication->params;
    const int64_t position = asi_log_position(
        params->term_id, params->term_offset, asi_log2(params->term_length), params->initial_term_id);
    publication->starting_position = position;
    publication->producer_position = position;
    publication->clean_position = position;
    publication->limit = position;
    publication->blocked_position = position;
    publication->blocked_since_ns = conductor->now_ns;
    publication->sender.position = position;
    publication->sender.limit = position;
    publication->sender.max_spy_position = position;
    /* A log that begins within a term is zero from there to the same offset three terms later. */
    publication->sender.zeroed_limit = position + ASI_LOG_PARTITION_COUNT * (int64_t)params->term_length;
}

static void init_sender(
    asi_conductor *conductor, asi_network_publication *publication, const asi_ipc_request *request)
{
    const asi_driver_settings *settings = conductor->settings;
    const asi_ctl_publication_params *params = &publication->params;
    const asi_udp_channel *channel = publication->channel->channel;
    asi_sender_publication *sender = &publication->sender;
    sender->registration_id = request->registration_id;
    sender->session_id = request->session_id;
    sender->stream_id = request->stream_id;
    sender->endpoint = &publication->channel->sender;
    sender->max_messages_per_send = (int32_t)settings->max_messages_per_send;
    /* Spec: 04 §23 row 12 - the effective TTL, which receivers can compare with their own. */
    sender->setup_ttl = !channel->is_multicast ? 0 : 0 != channel->ttl ? channel->ttl : (int32_t)settings->multicast_ttl;
    sender->is_group = asi_udp_channel_has_group_semantics(channel);
    sender->signal_eos = params->signal_eos;
    sender->spies_simulate_connection = params->spies_simulate_connection;
    sender->backs_off_setups = params->backs_off_setups;
    sender->is_response = params->is_response;
    sender->response_correlation_id = params->response_correlation_id;
    sender->has_response_subscription = !params->is_response && params->response_correlation_id >= 0;
    sender->connection_timeout_ns = settings->publication_connection_timeout_ns;
}

as_result asi_network_publication_open(asi_conductor *conductor, const asi_ipc_request *request,
    const asi_ctl_publication_params *params, asi_send_channel *channel, asi_network_publication **publication)
{
    asi_flow_params flow;
    const asi_udp_channel *udp = channel->channel;
    as_result result = asi_flow_params_read(
        conductor->settings, &udp->uri, udp->original, asi_udp_channel_has_group_semantics(udp), &flow);
    if (AS_OK != result)
    {
        return result;
    }
    /* The sender's half needs this alignment; the size is a multiple of it. */
    asi_network_publication *opened = aligned_alloc(ASI_CACHE_LINE, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for publication %" PRId64, request->registration_id);
    }
    memset(opened, 0, sizeof(*opened));
    opened->channel = channel;
    channel->reference_count++;
    opened->client_id = request->client_id;
    opened->is_exclusive = request->is_exclusive;
    opened->params = *params;
    for (int32_t i = 0; i < ASI_NETWORK_COUNTER_COUNT; i++)
    {
        opened->counter_ids[i] = AS_NULL_VALUE;
    }
    init_sender(conductor, opened, request);
    init_positions(conductor, opened);
    opened->uri = asi_channel_copy(request->channel, request->channel_length);
    result = NULL != opened->uri ? open_log(conductor, opened) : AS_E_INTERNAL;
    result = AS_OK == result ? open_flow(conductor, opened, &flow) : result; /* first: in the stock drivers' order */
    result = AS_OK == result ? open_counters(conductor, opened) : result;
    result = AS_OK == result ? open_retransmit(conductor, opened, &flow) : result;
    if (AS_OK != result)
    {
        asi_network_publication_close(conductor, opened);
        return result;
    }
    opened->sender.has_required_receivers = asi_flow_has_required_receivers(&opened->sender.flow);
    opened->spies = (asi_subscribers){
        .image_id = request->registration_id,
        .session_id = request->session_id,
        .stream_id = request->stream_id,
        .log_path = opened->log_path,
        .source_identity = ASI_IPC_SOURCE_IDENTITY
    };
    *publication = opened;
    return AS_OK;
}

void asi_network_publication_close(asi_conductor *conductor, asi_network_publication *publication)
{
    if (NULL == publication)
    {
        return;
    }
    asi_events_log(conductor->events, ASI_EVENT_REMOVE_PUBLICATION_CLEANUP, "sessionId=%d streamId=%d channel=%s",
        publication->sender.session_id, publication->sender.stream_id, NULL == publication->uri ? "" : publication->uri);
    asi_subscribers_unlink_all(conductor, &publication->spies);
    for (int32_t i = 0; i < ASI_NETWORK_COUNTER_COUNT; i++)
    {
        if (publication->counter_ids[i] >= 0)
        {
            asi_counters_free(&conductor->counters, publication->counter_ids[i], conductor->now_ms);
        }
    }
    asi_log_file_delete(conductor, &publication->sender.log, publication->log_path);
    asi_flow_close(&publication->sender.flow);
    asi_retransmit_close(&publication->sender.retransmit);
    asi_send_channel_release(conductor, publication->channel);
    free(publication->spies.items);
    free(publication->log_path);
    free(publication->uri);
    free(publication);
}
