/* A receiver over a network in memory and a clock of the test's own, with a minimal conductor: it makes an image of every SETUP,
 * rebuilds and schedules each cycle for subscribers whose positions the test sets, and keeps the receiver's commands.
 * The peer is a socket that plays the publisher's driver. Only the test advances the time. */
#ifndef AS_TESTS_RX_RIG_H
#define AS_TESTS_RX_RIG_H

#include "../net/fake_net.h"
#include "base/atomic.h"
#include "driver/rx/image_loss.h"
#include "driver/rx/image_status.h"
#include "driver/rx/receiver.h"
#include "support.h"

#define RIG_US 1000LL
#define RIG_MS 1000000LL
#define RIG_SECOND 1000000000LL
#define RIG_COUNTERS 256
#define RIG_IMAGES 8
#define RIG_RECEIVER_ID 0x1122334455667788LL

#define STREAM 1001
#define SESSION 77
#define TERM 65536
#define MTU 1408
#define INITIAL_TERM 7

typedef struct rig_options
{
    const char *channel;   /* NULL: endpoint=127.0.0.1:24000 */
    const char *second;    /* a second destination (MDS) */
    int32_t stream_session_limit;
    int32_t receiver_window;
    bool is_unreliable;
    bool is_group;
    bool is_ahead;
    bool is_manual_images; /* the test makes images, not the rig */
    bool no_interest;
    asi_congestion_params congestion;
} rig_options;

typedef struct rig_frame /* what a peer read last */
{
    int32_t length;
    uint8_t bytes[65536] __attribute__((aligned(8)));
    asi_address source;
} rig_frame;

typedef struct rx_rig
{
    rig_options options;
    char dir[SCRATCH_CAPACITY];
    int64_t now_ns;
    fake_net net;
    asi_udp_ops ops;
    asi_command_queue command;
    asi_command_queue to_conductor;
    asi_counters counters;
    int64_t unique_suffix;
    asi_name_resolver resolver;
    asi_receiver receiver;
    asi_receive_endpoint endpoint;
    asi_receive_destination destinations[2];
    asi_udp_socket *peer;
    asi_address data_address; /* where the peer sends to: the first destination */
    rig_frame got;
    int32_t create_count;
    asi_command_create_image create; /* last one */
    int32_t error_count;
    int32_t resolve_count;
    char error[ASI_COMMAND_TEXT_CAPACITY];
    asi_rx_image *images[RIG_IMAGES];
    int32_t image_count;
    int64_t min_position; /* of subscribers; INT64_MAX: they read everything at once */
    int64_t max_position;
    asi_gap published;    /* last gap handed to the receiver */
    int32_t published_count;
} rx_rig;

static inline int64_t rig_nano_time(void *context) { return ((rx_rig *)context)->now_ns; }
static inline int64_t rig_epoch_ms(void *context) { return 1700000000000LL + ((rx_rig *)context)->now_ns / RIG_MS; }

static inline int64_t rig_counter(const rx_rig *rig, int32_t id) { return *asi_counter_addr(&rig->counters, id); }

static inline void rig_send_command(rx_rig *rig, asi_receiver_command command)
{
    if (NULL == command.endpoint)
    {
        command.endpoint = &rig->endpoint;
    }
    CHECK(asi_command_queue_put(&rig->command, &command));
}

static inline void rig_open_destination(rx_rig *rig, const char *text, const asi_udp_channel *subscription, int index)
{
    const asi_udp_channel_context context = {
        .resolver = &rig->resolver, .ops = &rig->ops, .next_unique_suffix = &rig->unique_suffix
    };
    const asi_socket_defaults defaults = { .rcvbuf_length = 128 * 1024 };
    asi_udp_params params;
    asi_udp_channel *channel;
    asi_udp_socket *socket;
    CHECK_I64(asi_udp_channel_open_untrusted(&context, text, (int64_t)strlen(text), 0 != index, &channel), AS_OK);
    asi_udp_channel_receive_params(channel, NULL == subscription ? channel : subscription, &defaults, &params);
    CHECK_I64(rig->ops.open(rig->ops.context, &params, &socket), AS_OK);
    asi_receive_destination_init(
        &rig->destinations[index], 100 + index, channel, NULL == subscription ? channel : subscription, socket, rig->now_ns);
    rig->endpoint.destinations[rig->endpoint.destination_count++] = &rig->destinations[index];
}

static inline void rig_open(rx_rig *rig, const rig_options *options)
{
    memset(rig, 0, sizeof(*rig));
    rig->options = *options;
    scratch_create(rig->dir);
    rig->now_ns = RIG_SECOND;
    rig->ops = fake_net_ops(&rig->net);
    rig->resolver = asi_name_resolver_system();
    rig->min_position = INT64_MAX;
    rig->max_position = INT64_MAX;
    CHECK_I64(asi_command_queue_open(&rig->command, 64, sizeof(asi_receiver_command)), AS_OK);
    CHECK_I64(asi_command_queue_open(&rig->to_conductor, 64, sizeof(asi_conductor_command)), AS_OK);
    void *metadata = calloc(RIG_COUNTERS, sizeof(asi_counter_metadata));
    void *values = calloc(RIG_COUNTERS, sizeof(asi_counter_value));
    CHECK_I64(asi_counters_init(&rig->counters, metadata, RIG_COUNTERS * (int64_t)sizeof(asi_counter_metadata), values,
        RIG_COUNTERS * (int64_t)sizeof(asi_counter_value)), AS_OK);
    const char *channel = NULL == options->channel ? "aeron:udp?endpoint=127.0.0.1:24000" : options->channel;
    rig_open_destination(rig, channel, NULL, 0);
    const int32_t destination_count = rig->endpoint.destination_count;
    asi_receive_destination *first = rig->endpoint.destinations[0];
    asi_receive_endpoint_init(&rig->endpoint, 5, rig->destinations[0].channel, RIG_RECEIVER_ID, NULL);
    rig->endpoint.destinations[0] = first;
    rig->endpoint.destination_count = destination_count;
    if (NULL != options->second)
    {
        rig_open_destination(rig, options->second, first->channel, 1);
    }
    rig->data_address = first->channel->remote_data;
    if (!rig->destinations[0].channel->has_explicit_endpoint)
    {
        CHECK_I64(rig->ops.bound_address(rig->ops.context, first->socket, &rig->data_address), AS_OK);
        rig->data_address = fake_address("127.0.0.1", asi_address_port(&rig->data_address));
    }
    const asi_udp_params peer = { .bind = fake_address("127.0.0.1", 24100) };
    CHECK_I64(rig->ops.open(rig->ops.context, &peer, &rig->peer), AS_OK);
    const asi_receiver_params params = {
        .clock = { .nano_time = rig_nano_time, .epoch_ms = rig_epoch_ms, .context = rig },
        .ops = &rig->ops,
        .command = &rig->command,
        .conductor = &rig->to_conductor,
        .counters = &rig->counters,
        .io_vector_capacity = 4,
        .stream_session_limit = 0 == options->stream_session_limit ? INT32_MAX : options->stream_session_limit,
        .status_message_timeout_ns = 200 * RIG_MS,
        .re_resolution_interval_ns = RIG_SECOND,
        .cycle_threshold_ns = 100 * RIG_MS
    };
    CHECK_I64(asi_receiver_open(&rig->receiver, &params), AS_OK);
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_ADD_ENDPOINT });
    if (!options->no_interest)
    {
        rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_ADD_STREAM, .stream_id = STREAM });
    }
    CHECK_I64(asi_receiver_do_work(&rig->receiver) > 0, 1);
    asi_receiver_do_work(&rig->receiver);
}

static inline void rig_free_image(asi_rx_image *image)
{
    asi_log_close(&image->log);
    free(image);
}

static inline void rig_close(rx_rig *rig)
{
    for (int32_t i = 0; i < rig->image_count; i++)
    {
        rig_free_image(rig->images[i]);
    }
    asi_receiver_close(&rig->receiver);
    for (int i = 0; i < 2; i++)
    {
        if (NULL != rig->destinations[i].channel)
        {
            rig->ops.close(rig->ops.context, rig->destinations[i].socket);
            asi_udp_channel_close(rig->destinations[i].channel);
        }
    }
    rig->ops.close(rig->ops.context, rig->peer);
    asi_command_queue_close(&rig->command);
    asi_command_queue_close(&rig->to_conductor);
    free(rig->counters.metadata);
    free(rig->counters.values);
    scratch_delete(rig->dir);
}

/* --- the conductor's part --- */

static inline asi_rx_image *rig_make_image(rx_rig *rig, const asi_command_create_image *setup)
{
    char path[SCRATCH_CAPACITY + 32];
    asi_log log;
    CHECK(rig->image_count < RIG_IMAGES);
    const int32_t base = ASI_SYSTEM_COUNTER_COUNT + 3 * rig->image_count;
    snprintf(path, sizeof(path), "%s/%d.logbuffer", rig->dir, rig->image_count);
    CHECK_I64(asi_log_create(&log, path, setup->term_length, 4096), AS_OK);
    asi_log_init_tails(&log, setup->initial_term_id, setup->active_term_id, setup->term_offset);
    log.mtu_length = setup->mtu_length;
    log.metadata->end_of_stream_position = INT64_MAX;
    const asi_rx_image_params params = {
        .correlation_id = 9 + rig->image_count,
        .session_id = setup->session_id,
        .stream_id = setup->stream_id,
        .active_term_id = setup->active_term_id,
        .term_offset = setup->term_offset,
        .endpoint = &rig->endpoint,
        .destination = &rig->destinations[setup->destination_id - 100],
        .source = &setup->source,
        .receiver_window_length = 0 == rig->options.receiver_window ? 128 * 1024 : rig->options.receiver_window,
        .liveness_timeout_ns = 10 * RIG_SECOND,
        .is_reliable = !rig->options.is_unreliable,
        .nak_delay = rig->options.is_unreliable ? (asi_nak_delay){ 0 } :
            (asi_nak_delay){ .is_multicast = rig->options.is_group, .is_ahead = rig->options.is_ahead, .first_ns = RIG_US, .retry_ns = 100 * RIG_US,
                .max_backoff_ns = 10 * RIG_MS, .group_size = 10 },
        .congestion = rig->options.congestion,
        .hwm_counter = asi_counter_addr(&rig->counters, base),
        .position_counter = asi_counter_addr(&rig->counters, base + 1),
        .naks_counter = asi_counter_addr(&rig->counters, base + 2),
        .counters = &rig->counters,
        .now_ns = rig->now_ns
    };
    asi_rx_image *image = aligned_alloc(ASI_CACHE_LINE, sizeof(asi_rx_image));
    CHECK(NULL != image);
    asi_rx_image_init(image, &log, &params);
    rig->images[rig->image_count++] = image;
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_ADD_IMAGE, .image = image });
    return image;
}

static inline void rig_drain_commands(rx_rig *rig)
{
    asi_conductor_command command;
    while (asi_command_queue_take(&rig->to_conductor, &command))
    {
        if (ASI_CONDUCTOR_CREATE_IMAGE == command.kind)
        {
            rig->create_count++;
            rig->create = command.create_image;
            if (!rig->options.is_manual_images)
            {
                rig_make_image(rig, &command.create_image);
            }
        }
        else if (ASI_CONDUCTOR_ERROR == command.kind)
        {
            rig->error_count++;
            snprintf(rig->error, sizeof(rig->error), "%s", command.error.text);
        }
        else if (ASI_CONDUCTOR_RESOLVE_CONTROL == command.kind)
        {
            rig->resolve_count++;
        }
    }
}

static inline void rig_track(rx_rig *rig, asi_rx_image *image)
{
    bool found_loss;
    asi_gap published;
    asi_rx_image_rebuild(image, rig->max_position, rig->now_ns, &found_loss, &published);
    asi_rx_image_update_status(
        image, INT64_MAX == rig->min_position ? image->rebuild_position : rig->min_position, found_loss, rig->now_ns);
    if (published.length > 0)
    {
        rig->published = published;
        rig->published_count++;
    }
}

static inline void rig_cycle(rx_rig *rig)
{
    asi_receiver_do_work(&rig->receiver);
    rig_drain_commands(rig);
    for (int32_t i = 0; i < rig->image_count; i++)
    {
        rig_track(rig, rig->images[i]);
    }
}

/* A cycle takes 2 us of the test's time: enough for the first NAK delay. */
static inline void rig_cycles(rx_rig *rig, int count)
{
    for (int i = 0; i < count; i++)
    {
        rig_cycle(rig);
        rig->now_ns += 2 * RIG_US;
    }
}

static inline void rig_pass(rx_rig *rig, int64_t duration_ns, int64_t step_ns)
{
    for (int64_t passed = 0; passed < duration_ns; passed += step_ns)
    {
        rig->now_ns += step_ns;
        rig_cycle(rig);
    }
}

/* --- the publisher's side --- */

static inline void peer_send_to(rx_rig *rig, asi_udp_socket *peer, const void *bytes, int32_t length, const asi_address *to)
{
    const asi_outgoing datagram = { .bytes = bytes, .length = length, .to = to };
    int32_t sent;
    CHECK_I64(rig->ops.send(rig->ops.context, peer, &datagram, 1, &sent), AS_OK);
    CHECK_I64(sent, 1);
}

static inline void peer_send(rx_rig *rig, const void *bytes, int32_t length)
{
    peer_send_to(rig, rig->peer, bytes, length, &rig->data_address);
}

/* The next datagram that came to `peer`, of `type` when that is not negative; 0 when there is none. */
static inline int32_t peer_receive_at(rx_rig *rig, asi_udp_socket *peer, int32_t type)
{
    for (;;)
    {
        asi_incoming incoming = { .buffer = rig->got.bytes, .capacity = sizeof(rig->got.bytes) };
        int32_t received;
        CHECK_I64(rig->ops.receive(rig->ops.context, peer, &incoming, 1, &received), AS_OK);
        rig->got.length = 1 == received ? incoming.length : 0;
        rig->got.source = incoming.source;
        if (0 == received || type < 0 || ((asi_frame_prefix *)(void *)rig->got.bytes)->type == type)
        {
            return rig->got.length;
        }
    }
}

static inline int32_t peer_receive(rx_rig *rig, int32_t type) { return peer_receive_at(rig, rig->peer, type); }

static inline int32_t peer_count(rx_rig *rig, int32_t type)
{
    int32_t count = 0;
    while (peer_receive(rig, type) > 0)
    {
        count++;
    }
    return count;
}

static inline const asi_status_frame *got_status(const rx_rig *rig)
{
    return (const asi_status_frame *)(const void *)rig->got.bytes;
}
static inline const asi_nak_frame *got_nak(const rx_rig *rig) { return (const asi_nak_frame *)(const void *)rig->got.bytes; }

static inline asi_setup_frame setup_frame(void)
{
    return (asi_setup_frame){
        .prefix = { .frame_length = sizeof(asi_setup_frame), .type = ASI_FRAME_SETUP },
        .session_id = SESSION,
        .stream_id = STREAM,
        .initial_term_id = INITIAL_TERM,
        .active_term_id = INITIAL_TERM,
        .term_length = TERM,
        .mtu_length = MTU
    };
}

static inline void peer_setup(rx_rig *rig)
{
    const asi_setup_frame frame = setup_frame();
    peer_send(rig, &frame, sizeof(frame));
}

/* A message's frame at a position of the stream: payload byte j is position + j. Returns its aligned length. */
static inline int32_t put_frame(uint8_t *to, int64_t position, int32_t payload_length)
{
    const asi_frame_header header = {
        .frame_length = AS_FRAME_HEADER_LENGTH + payload_length,
        .flags = ASI_FLAG_UNFRAGMENTED,
        .type = ASI_FRAME_DATA,
        .term_offset = (int32_t)(position % TERM),
        .session_id = SESSION,
        .stream_id = STREAM,
        .term_id = asi_wrap_add(INITIAL_TERM, (int32_t)(position / TERM))
    };
    const int32_t occupied = (int32_t)asi_frame_occupancy(header.frame_length);
    memset(to, 0, (size_t)occupied);
    memcpy(to, &header, sizeof(header));
    for (int32_t i = 0; i < payload_length; i++)
    {
        to[AS_FRAME_HEADER_LENGTH + i] = (uint8_t)(position + i);
    }
    return occupied;
}

static inline void peer_data(rx_rig *rig, int64_t position, int32_t payload_length)
{
    uint8_t bytes[65536] __attribute__((aligned(8)));
    peer_send(rig, bytes, put_frame(bytes, position, payload_length));
}

static inline void peer_heartbeat(rx_rig *rig, int64_t position, uint8_t flags)
{
    uint8_t bytes[AS_FRAME_HEADER_LENGTH] __attribute__((aligned(8)));
    put_frame(bytes, position, 0);
    ((asi_frame_header *)(void *)bytes)->frame_length = 0;
    ((asi_frame_header *)(void *)bytes)->flags = flags;
    peer_send(rig, bytes, sizeof(bytes));
}

/* So that a publisher which is silent from then on may still be sent a lot. */
static inline void peer_be_heard(rx_rig *rig)
{
    for (int i = 0; i < 64; i++)
    {
        peer_heartbeat(rig, 0, 0xC0);
        rig_cycle(rig);
    }
}

/* SETUP, image, first SM read away. */
static inline asi_rx_image *rig_join(rx_rig *rig)
{
    peer_setup(rig);
    rig_cycles(rig, 3);
    CHECK_I64(rig->image_count, 1);
    CHECK_I64(peer_receive(rig, ASI_FRAME_STATUS), rig->endpoint.has_group_tag ? 44 : 36);
    return rig->images[0];
}

/* Whether the log holds the frame that put_frame makes. */
static inline bool log_has(const asi_rx_image *image, int64_t position, int32_t payload_length)
{
    uint8_t bytes[65536] __attribute__((aligned(8)));
    const int32_t occupied = put_frame(bytes, position, payload_length);
    const int32_t index = (int32_t)(position / TERM % ASI_LOG_PARTITION_COUNT);
    return 0 == memcmp(image->log.terms[index] + position % TERM, bytes, (size_t)occupied);
}

#define RUN_IN_RIG(test) RUN_IN(rx_rig, rig_open(&fixture, &(rig_options){ 0 }), test, rig_close(&fixture))

#endif
