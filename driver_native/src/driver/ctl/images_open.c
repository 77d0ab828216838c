/* See images_open.h. */
#include "driver/ctl/images_open.h"

#include <inttypes.h>

#include "driver/ctl/agent_queues.h"
#include "driver/ctl/channel.h"
#include "driver/ctl/endpoints.h"
#include "driver/ctl/log_files.h"
#include "driver/ctl/params.h"
#include "driver/ctl/receive_channels.h"
#include "driver/ctl/report.h"
#include "driver/ctl/subscribers.h"
#include "driver/ctl/subscription.h"
#include "driver/rx/image_status.h"

/* -- checks, Spec: 04 §2.6, §8.4 -------------------------------------------------------------------------------------------- */

/* The receiver has checked the rest of the SETUP: wire/frame_check.h. */
static as_result check_setup_untrusted(const asi_command_create_image *setup)
{
    const int64_t position = asi_log_position(
        setup->active_term_id, setup->term_offset, asi_log2(setup->term_length), setup->initial_term_id);
    if (position > asi_log_max_position(setup->term_length))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "position is outside the stream: initialTermId=%d activeTermId=%d termOffset=%d "
            "termLength=%d", setup->initial_term_id, setup->active_term_id, setup->term_offset, setup->term_length);
    }
    return asi_check_mtu_length(setup->mtu_length);
}

static as_result check_windows(
    const asi_conductor *conductor, const asi_udp_channel *channel, const asi_command_create_image *setup)
{
    const int64_t window = asi_effective_receiver_window(conductor, channel);
    const int64_t rcvbuf = asi_effective_rcvbuf(conductor, channel);
    if (setup->mtu_length > window)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "mtuLength=%d > initialWindowLength=%" PRId64
            ": raise rcv-wnd to the sender's mtu at least, channel=%s", setup->mtu_length, window, channel->original);
    }
    if (0 != rcvbuf && window > rcvbuf)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "Max Window length greater than socket SO_RCVBUF: window=%" PRId64 " so-rcvbuf=%"
            PRId64 ", channel=%s", window, rcvbuf, channel->original);
    }
    return 0 == rcvbuf || setup->mtu_length <= rcvbuf ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "Sender MTU greater than socket SO_RCVBUF: sender-mtu=%d so-rcvbuf=%" PRId64 ": raise so-rcvbuf, channel=%s",
        setup->mtu_length, rcvbuf, channel->original);
}

/* -- creation ------------------------------------------------------------------------------------------------------------ */

typedef struct image_creation
{
    asi_conductor *conductor;
    const asi_command_create_image *setup;
    asi_receive_channel *channel;
    asi_receive_transport *transport;
    const asi_ctl_subscription *first; /* the first linked subscription: its options apply */
    const asi_ctl_subscription *oldest;
    bool is_multicast;
    bool needs_proof;
} image_creation;

static bool find_subscriptions(image_creation *creation)
{
    const asi_list *subscriptions = &creation->conductor->subscriptions;
    for (int32_t i = 0; i < subscriptions->count; i++)
    {
        const asi_ctl_subscription *subscription = subscriptions->items[i];
        if (asi_ctl_subscription_matches_image(
                subscription, creation->channel, creation->setup->stream_id, creation->setup->session_id))
        {
            creation->first = NULL == creation->first ? subscription : creation->first;
            creation->oldest = NULL == creation->oldest ||
                subscription->registration_id < creation->oldest->registration_id ? subscription : creation->oldest;
        }
    }
    return NULL != creation->first;
}

static bool has_multicast_semantics(const image_creation *creation)
{
    const asi_inferable group = creation->first->group;
    return ASI_INFER == group ? creation->transport->channel->is_multicast ||
            0 != (creation->setup->flags & ASI_SETUP_FLAG_GROUP) :
        ASI_INFER_TRUE == group;
}

static void describe_log(const image_creation *creation, const asi_network_image *image, asi_log *log)
{
    const asi_command_create_image *setup = creation->setup;
    const asi_udp_channel *channel = creation->channel->channel;
    asi_log_metadata *metadata = log->metadata;
    log->initial_term_id = setup->initial_term_id;
    log->mtu_length = setup->mtu_length;
    metadata->correlation_id = image->registration_id;
    metadata->initial_term_id = setup->initial_term_id;
    metadata->mtu_length = setup->mtu_length;
    metadata->receiver_window_length = (int32_t)asi_effective_receiver_window(creation->conductor, channel);
    metadata->socket_sndbuf_length = (int32_t)channel->sndbuf_length;
    metadata->socket_rcvbuf_length = (int32_t)channel->rcvbuf_length;
    metadata->os_default_socket_sndbuf_length = creation->conductor->network.limits.default_sndbuf_length;
    metadata->os_default_socket_rcvbuf_length = creation->conductor->network.limits.default_rcvbuf_length;
    metadata->untethered_window_limit_timeout_ns = image->untethered.window_limit_ns;
    metadata->untethered_linger_timeout_ns = image->untethered.linger_ns;
    metadata->untethered_resting_timeout_ns = image->untethered.resting_ns;
    metadata->group = creation->is_multicast;
    metadata->is_response = creation->first->is_response;
    metadata->rejoin = creation->first->is_rejoin;
    metadata->tether = creation->first->is_tethered;
    metadata->reliable = creation->first->is_reliable;
    metadata->sparse = creation->oldest->is_sparse;
    metadata->type = ASI_LOG_PUBLICATION_IMAGE;
    asi_log_init_default_header(log, setup->session_id, setup->stream_id, setup->initial_term_id);
    asi_store_release_i64(&metadata->end_of_stream_position, INT64_MAX);
}

static as_result open_log(const image_creation *creation, asi_network_image *image)
{
    const asi_log_file_request request = {
        .folder = "images",
        .registration_id = image->registration_id,
        .term_length = creation->setup->term_length,
        .is_sparse = true /* a log that is not to be sparse is populated when data arrives: any host can send a SETUP */
    };
    asi_log *log = &image->image.log;
    const as_result result = asi_log_file_create(creation->conductor, &request, log, &image->log_path);
    if (AS_OK != result)
    {
        return result;
    }
    describe_log(creation, image, log);
    const as_result tracked = asi_log_track_backing(log);
    image->populated = creation->oldest->is_sparse ? log->map.length : 0;
    /* Readers read the join position before any data arrives. */
    const int64_t join_position = asi_log_position(
        creation->setup->active_term_id, creation->setup->term_offset, log->position_bits, log->initial_term_id);
    return AS_OK != tracked || asi_log_back(log, join_position, AS_FRAME_ALIGNMENT) ? tracked :
        asi_fail(AS_E_STORAGE, ENOSPC, "no room for an image of stream-id=%d in %s: free space there, or give the stream a smaller "
            "term-length", creation->setup->stream_id, creation->conductor->settings->aeron_dir);
}

/* In the stock drivers' order. Spec: 01 §7.2. */
static as_result open_counters(const image_creation *creation, asi_network_image *image, bool is_cubic, int64_t join_position)
{
    const struct { int32_t type_id; const char *name; } rows[] = {
        [ASI_IMAGE_RTT_COUNTER] = { ASI_COUNTER_TYPE_PER_IMAGE, "rcv-cc-cubic-rtt" },
        [ASI_IMAGE_WINDOW_COUNTER] = { ASI_COUNTER_TYPE_PER_IMAGE, "rcv-cc-cubic-wnd" },
        [ASI_IMAGE_HWM_COUNTER] = { ASI_COUNTER_TYPE_RECEIVER_HWM, "rcv-hwm" },
        [ASI_IMAGE_POSITION_COUNTER] = { ASI_COUNTER_TYPE_RECEIVER_POSITION, "rcv-pos" },
        [ASI_IMAGE_NAKS_COUNTER] = { ASI_COUNTER_TYPE_RECEIVER_NAKS_SENT, "rcv-naks-sent" },
    };
    asi_conductor *conductor = creation->conductor;
    for (int32_t i = is_cubic ? 0 : ASI_IMAGE_HWM_COUNTER; i < ASI_IMAGE_COUNTER_COUNT; i++)
    {
        const bool is_congestion = i < ASI_IMAGE_HWM_COUNTER;
        const asi_stream_counter counter = {
            .type_id = rows[i].type_id,
            .name = rows[i].name,
            .registration_id = image->registration_id,
            .counter_registration_id = image->registration_id,
            .owner_id = is_congestion ? AS_NULL_VALUE : creation->first->client_id,
            .session_id = creation->setup->session_id,
            .stream_id = creation->setup->stream_id,
            .channel = is_congestion ? creation->channel->channel->original : creation->first->channel,
            .initial_value = ASI_IMAGE_HWM_COUNTER == i || ASI_IMAGE_POSITION_COUNTER == i ? join_position : 0
        };
        const as_result result = asi_counters_allocate_stream(
            &conductor->counters, &counter, conductor->now_ms, &image->counter_ids[i]);
        if (AS_OK != result)
        {
            return result;
        }
    }
    return AS_OK;
}

static int64_t *counter_address(const image_creation *creation, const asi_network_image *image, int32_t index)
{
    return image->counter_ids[index] < 0 ? NULL :
        asi_counter_addr(&creation->conductor->counters.counters, image->counter_ids[index]);
}

static void init_image(const image_creation *creation, asi_network_image *image, asi_congestion_kind kind)
{
    const asi_driver_settings *settings = creation->conductor->settings;
    const asi_command_create_image *setup = creation->setup;
    const asi_udp_channel *channel = creation->channel->channel;
    const bool is_unreliable = !creation->first->is_reliable;
    const int64_t asked_ns = channel->nak_delay_ns >= 0 ? channel->nak_delay_ns : settings->nak_unicast_delay_ns;
    const int64_t first_ns = asked_ns < ASI_DURATION_MAX_NS ? asked_ns : ASI_DURATION_MAX_NS;
    const int64_t base_ns = first_ns > 1000 ? first_ns : 1000; /* Spec: 04 §23 row 13 */
    const int64_t ratio = settings->nak_unicast_retry_delay_ratio;
    asi_rand rand;
    asi_rand_seed(&rand, asi_rand_u64(&creation->conductor->rand));
    const asi_rx_image_params params = {
        .correlation_id = image->registration_id,
        .session_id = setup->session_id,
        .stream_id = setup->stream_id,
        .active_term_id = setup->active_term_id,
        .term_offset = setup->term_offset,
        .endpoint = &creation->channel->endpoint,
        .destination = &creation->transport->destination,
        .source = &setup->source,
        .receiver_window_length = (int32_t)asi_effective_receiver_window(creation->conductor, channel),
        .liveness_timeout_ns = settings->image_liveness_timeout_ns,
        .is_reliable = !is_unreliable,
        .nak_delay = {
            .is_multicast = creation->is_multicast && !is_unreliable,
            .is_ahead = settings->nak_ahead && !creation->is_multicast && !is_unreliable,
            .first_ns = is_unreliable ? 0 : first_ns,
            .retry_ns = is_unreliable ? 0 : base_ns > ASI_DURATION_MAX_NS / ratio ? ASI_DURATION_MAX_NS : base_ns * ratio,
            .max_backoff_ns = settings->nak_multicast_max_backoff_ns,
            .group_size = settings->nak_multicast_group_size
        },
        .congestion = {
            .kind = kind,
            .is_measuring_rtt = ASI_CONGESTION_CUBIC == kind && settings->cubic_measure_rtt,
            .is_tcp_mode = settings->cubic_tcp_mode,
            .initial_rtt_ns = settings->cubic_initial_rtt_ns,
            .rtt_counter = counter_address(creation, image, ASI_IMAGE_RTT_COUNTER),
            .window_counter = counter_address(creation, image, ASI_IMAGE_WINDOW_COUNTER)
        },
        .rand = rand,
        .hwm_counter = counter_address(creation, image, ASI_IMAGE_HWM_COUNTER),
        .position_counter = counter_address(creation, image, ASI_IMAGE_POSITION_COUNTER),
        .naks_counter = counter_address(creation, image, ASI_IMAGE_NAKS_COUNTER),
        .counters = &creation->conductor->counters.counters,
        .now_ns = creation->conductor->now_ns
    };
    const asi_log log = image->image.log;
    asi_rx_image_init(&image->image, &log, &params);
}

/* Spec: 04 §10.2 - the channel's parameter, else the settings'. */
static as_result read_congestion(const asi_conductor *conductor, const asi_udp_channel *channel, asi_congestion_kind *kind)
{
    const char *configured = conductor->settings->congestion_control;
    const char *cc = asi_uri_get(&channel->uri, "cc");
    if (0 == strcmp(configured, "static") || 0 == strcmp(configured, "aeron_static_window_congestion_control_strategy_supplier"))
    {
        cc = "static";
    }
    else if (0 == strcmp(configured, "cubic") || 0 == strcmp(configured, "aeron_cubic_congestion_control_strategy_supplier"))
    {
        cc = "cubic";
    }
    return asi_congestion_parse(cc, kind);
}

static as_result open_image(image_creation *creation, asi_network_image **created)
{
    const asi_command_create_image *setup = creation->setup;
    asi_conductor *conductor = creation->conductor;
    const asi_udp_channel *channel = creation->channel->channel;
    asi_congestion_kind kind;
    as_result result = read_congestion(conductor, channel, &kind);
    if (AS_OK != result)
    {
        return result;
    }
    const size_t length = (size_t)asi_align_i64(sizeof(asi_network_image), ASI_CACHE_LINE);
    asi_network_image *opened = aligned_alloc(ASI_CACHE_LINE, length); /* the receiver's half needs this alignment */
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for an image of stream %d", setup->stream_id);
    }
    memset(opened, 0, length);
    opened->channel = creation->channel;
    opened->registration_id = asi_ring_mpsc_next_correlation_id(&conductor->to_driver);
    opened->wants_response = 0 != (setup->flags & ASI_SETUP_FLAG_RESPONSE);
    opened->state_since_ns = conductor->now_ns;
    opened->is_proven = setup->is_proven;
    opened->source = setup->source;
    opened->loss_entry = AS_NULL_VALUE;
    asi_address_format(&setup->source, opened->source_identity);
    for (int32_t i = 0; i < ASI_IMAGE_COUNTER_COUNT; i++)
    {
        opened->counter_ids[i] = AS_NULL_VALUE;
    }
    const int64_t join_position = asi_log_position(
        setup->active_term_id, setup->term_offset, asi_log2(setup->term_length), setup->initial_term_id);
    opened->loss_channel = asi_channel_copy(channel->original, (int64_t)strlen(channel->original));
    result = NULL != opened->loss_channel ? asi_untethered_timeouts_read(conductor, &channel->uri, &opened->untethered) : AS_E_INTERNAL;
    result = AS_OK == result ? open_log(creation, opened) : result;
    result = AS_OK == result ? open_counters(creation, opened, ASI_CONGESTION_CUBIC == kind, join_position) : result;
    if (AS_OK != result)
    {
        asi_network_image_close(conductor, opened);
        return result;
    }
    init_image(creation, opened, kind);
    opened->subscribers = (asi_subscribers){
        .image_id = opened->registration_id,
        .session_id = setup->session_id,
        .stream_id = setup->stream_id,
        .log_path = opened->log_path,
        .source_identity = opened->source_identity
    };
    *created = opened;
    return AS_OK;
}

void asi_network_image_close(asi_conductor *conductor, asi_network_image *image)
{
    if (NULL == image)
    {
        return;
    }
    asi_events_log(conductor->events, ASI_EVENT_REMOVE_IMAGE_CLEANUP, "sessionId=%d streamId=%d source=%s",
        image->image.session_id, image->image.stream_id, image->source_identity);
    asi_subscribers_unlink_all(conductor, &image->subscribers);
    for (int32_t i = 0; i < ASI_IMAGE_COUNTER_COUNT; i++)
    {
        if (image->counter_ids[i] >= 0)
        {
            asi_counters_free(&conductor->counters, image->counter_ids[i], conductor->now_ms);
        }
    }
    asi_log_file_delete(conductor, &image->image.log, image->log_path);
    free(image->subscribers.items);
    free(image->log_path);
    free(image->loss_channel);
    free(image);
}

/* -- limits -------------------------------------------------------------------------------------------------------------- */

/* A SETUP costs its sender nothing, but an image costs counters and a log for ten seconds. Images that have received no data at
 * their join position are therefore bounded: in number and, where logs take all their storage at once, in bytes. Heartbeats do
 * not count as data, because they are as cheap as a SETUP.
 *
 * The limits also keep capacity free for others. One host may have up to twice as many such images at an endpoint as there are
 * free ones, and one endpoint four times as many. Without other demand the maximum is therefore two thirds and four fifths of the
 * total; with other floods it is less. A refused stream is requested again after 100 ms.
 *
 * Sources can be forged, and data, too. So who is refused is challenged, and streams of proven sources have room of their own: as
 * much for those without data, and the last quarter of the counters. */
#define HOST_SHARE 2
#define ENDPOINT_SHARE 4
#define COUNTERS_SHARE 4

static bool is_same_host(const asi_address *a, const asi_address *b)
{
    asi_address other = *b;
    asi_address_set_port(&other, asi_address_port(a));
    return asi_address_equal(a, &other);
}

static as_result check_unbegun(image_creation *creation)
{
    asi_conductor *conductor = creation->conductor;
    const asi_command_create_image *setup = creation->setup;
    const asi_driver_settings *settings = conductor->settings;
    int64_t bytes = 0;
    int64_t count = 0;
    int64_t at_endpoint = 0;
    int64_t of_host = 0;
    for (int32_t i = 0; i < conductor->network.images.count; i++)
    {
        const asi_network_image *image = conductor->network.images.items[i];
        if (image->is_proven == setup->is_proven && !asi_load_acquire_bool(&image->image.is_begun))
        {
            count++;
            bytes += NULL == image->image.log.backed ? image->image.log.map.length : 0;
            at_endpoint += image->channel == creation->channel ? 1 : 0;
            of_host += image->channel == creation->channel && is_same_host(&image->source, &setup->source) ? 1 : 0;
        }
    }
    const int64_t free = settings->images_unbegun_max - count;
    const bool is_full = free <= 0 || of_host >= HOST_SHARE * free || at_endpoint >= ENDPOINT_SHARE * free;
    const int32_t counters = asi_counters_left(&conductor->counters);
    const bool is_scarce = !setup->is_proven && counters < conductor->counters.counters.max_count / COUNTERS_SHARE;
    const bool is_much = bytes > 0 && settings->perform_storage_checks && bytes > asi_usable_space(settings->aeron_dir);
    creation->needs_proof = !setup->is_proven && (is_full || is_scarce);
    if (is_scarce)
    {
        return asi_fail(AS_E_USAGE, ENOSPC, "too many streams: stream-id=%d session-id=%d waits until its publisher has proven that it "
            "hears (%d counters are left): raise aeron.counters.buffer.length if they are yours",
            setup->stream_id, setup->session_id, counters);
    }
    return !is_full && !is_much ? AS_OK : asi_fail(AS_E_USAGE, ENOSPC,
        "too many streams wait for their first data: stream-id=%d session-id=%d waits for room (%" PRId64 " images, %" PRId64
        " here, %" PRId64 " of its host, %" PRId64 " bytes): raise aeron.spark.driver.images.unbegun.max if they are yours",
        setup->stream_id, setup->session_id, count, at_endpoint, of_host, bytes);
}

/* The publisher chooses the term length, and a log has three terms. */
static as_result check_term_length(const asi_conductor *conductor, const asi_command_create_image *setup)
{
    const int64_t max = conductor->settings->image_term_length_max;
    return setup->term_length <= max ? AS_OK : asi_fail(AS_E_USAGE, EINVAL, "termLength=%d > %" PRId64
        ": raise aeron.spark.driver.image.term.length.max, or have stream-id=%d published with a smaller term-length",
        setup->term_length, max, setup->stream_id);
}

/* -- on SETUP ----------------------------------------------------------------------------------------------------------- */

/* One that has ended has no channel any more. */
static bool is_of_session(const asi_network_image *image, const image_creation *creation)
{
    return image->channel == creation->channel && image->image.stream_id == creation->setup->stream_id &&
        image->image.session_id == creation->setup->session_id;
}

/* A departure: stock drivers make another image. When interest is removed and added again while a SETUP is on its way here, the
 * receiver has forgotten it, and the next SETUP follows. The same subscribers would read what came in between from both images. */
static bool is_read_already(const image_creation *creation)
{
    const asi_list *images = &creation->conductor->network.images;
    bool is_read = false;
    for (int32_t i = 0; !is_read && i < images->count; i++)
    {
        const asi_network_image *image = images->items[i];
        is_read = is_of_session(image, creation) && asi_subscribers_has_working(&image->subscribers);
    }
    return is_read;
}

/* Only the newest image of a session sends status messages for it. Spec: 04 §8.4. One that lost its last subscriber is ACTIVE up
 * to the next timer, and would then tell the publisher, by the same receiver id, that nobody listens. */
static void silence_older(const image_creation *creation, const asi_network_image *image)
{
    const asi_list *images = &creation->conductor->network.images;
    for (int32_t i = 0; i < images->count; i++)
    {
        asi_network_image *older = images->items[i];
        if (older != image && is_of_session(older, creation))
        {
            asi_store_release_bool(&older->image.is_sm_disabled, true);
        }
    }
}

static as_result create(image_creation *creation)
{
    asi_conductor *conductor = creation->conductor;
    as_result result = check_setup_untrusted(creation->setup);
    result = AS_OK == result ? check_windows(conductor, creation->channel->channel, creation->setup) : result;
    result = AS_OK == result ? check_term_length(conductor, creation->setup) : result;
    result = AS_OK == result ? check_unbegun(creation) : result;
    asi_network_image *image = NULL;
    result = AS_OK == result ? open_image(creation, &image) : result;
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_list_add(&conductor->network.images, image);
    if (AS_OK != result)
    {
        asi_network_image_close(conductor, image);
        return result;
    }
    creation->channel->image_count++;
    silence_older(creation, image);
    for (int32_t i = 0; i < conductor->subscriptions.count; i++)
    {
        asi_ctl_subscription *subscription = conductor->subscriptions.items[i];
        if (asi_network_image_is_wanted(image, subscription))
        {
            image->is_rejoin = subscription->is_rejoin;
            result = asi_subscribers_link(conductor, &image->subscribers, subscription, image->image.join_position);
            if (AS_OK != result)
            {
                asi_conductor_log_failure(conductor, result);
            }
        }
    }
    const asi_receiver_command command = { .kind = ASI_RECEIVER_ADD_IMAGE, .endpoint = &creation->channel->endpoint,
        .destination = &creation->transport->destination, .image = &image->image };
    asi_network_to_receiver(conductor, &command);
    return AS_OK;
}

void asi_network_image_create(asi_conductor *conductor, const asi_command_create_image *setup)
{
    image_creation creation = { .conductor = conductor, .setup = setup };
    creation.channel = asi_receive_channel_by_id(conductor, setup->endpoint_id);
    if (NULL == creation.channel)
    {
        return;
    }
    creation.transport = asi_receive_transport_by_id(creation.channel, setup->destination_id);
    as_result result = AS_AGAIN; /* nobody wants it, or has it already: no error */
    if (NULL != creation.transport && find_subscriptions(&creation) && !is_read_already(&creation))
    {
        creation.is_multicast = has_multicast_semantics(&creation);
        result = create(&creation);
    }
    if (AS_OK != result)
    {
        if (AS_AGAIN != result)
        {
            asi_conductor_log_peer_failure(conductor, result);
        }
        asi_receiver_command command = { .kind = ASI_RECEIVER_CLEAR_INIT, .endpoint = &creation.channel->endpoint,
            .stream_id = setup->stream_id, .session_id = setup->session_id };
        if (creation.needs_proof)
        {
            command.kind = ASI_RECEIVER_CHALLENGE;
            command.destination = &creation.transport->destination;
            command.address = setup->source;
        }
        asi_network_to_receiver(conductor, &command);
    }
}
