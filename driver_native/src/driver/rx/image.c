/* Images: handles the datagrams of a known stream on the receiver; see image.h. */
#include "driver/rx/image.h"

#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "wire/frame_check.h"

#define ZEROED_AT_ONCE 4096 /* the minimum page length */

static void count(const asi_rx_image *image, int32_t system_counter_id)
{
    asi_fetch_add_i64(asi_counter_addr(image->counters, system_counter_id), 1);
}

static void init_connection(asi_rx_image_connection *connection, asi_receive_destination *destination, const asi_address *source)
{
    *connection = (asi_rx_image_connection){ .destination = destination, .last_frame_ns = INT64_MIN };
    if (NULL != source)
    {
        connection->control_address = *source;
    }
}

void asi_rx_image_init(asi_rx_image *image, const asi_log *log, const asi_rx_image_params *params)
{
    const int64_t join_position =
        asi_log_position(params->active_term_id, params->term_offset, log->position_bits, log->initial_term_id);
    AS_ASSERT(join_position >= 0 && 0 == join_position % AS_FRAME_ALIGNMENT);
    *image = (asi_rx_image){
        .correlation_id = params->correlation_id,
        .session_id = params->session_id,
        .stream_id = params->stream_id,
        .endpoint = params->endpoint,
        .log = *log,
        .join_position = join_position,
        .liveness_timeout_ns = params->liveness_timeout_ns,
        .is_reliable = params->is_reliable,
        .hwm_counter = params->hwm_counter,
        .position_counter = params->position_counter,
        .naks_counter = params->naks_counter,
        .counters = params->counters,
        .loss = { .delay = params->nak_delay, .rand = params->rand, .ahead_deadline_ns = INT64_MAX },
        .rebuild_position = join_position,
        .floor_position = join_position,
        .next_sm_position = join_position,
        .response_session_id = ASI_NO_RESPONSE_SESSION,
        .response_deadline_ns = INT64_MIN,
        .last_packet_ns = params->now_ns,
        .hwm = join_position,
        .rtt_ns = params->congestion.initial_rtt_ns,
        .last_sm_position = join_position,
        .over_run_threshold = join_position + log->term_length / 2,
        .zeroed_position = join_position,
        .sm_deadline_ns = params->now_ns - 1, /* the first SM is due at once; Spec: 04 §24 T20 */
        .last_rttm_ns = params->now_ns,
        .is_measuring_rtt = params->congestion.is_measuring_rtt,
        .rtt_timeout_ns = 4 * params->congestion.initial_rtt_ns,
        .list_index = -1,
        .connection_count = 1
    };
    asi_congestion_init(&image->congestion, &params->congestion, log->term_length, log->mtu_length,
        params->receiver_window_length, params->now_ns);
    /* The status messages announce rcv-wnd as it is, but gaps are cut to it, and frames begin at these slots only. */
    image->max_window = image->congestion.max_window & ~(AS_FRAME_ALIGNMENT - 1);
    image->next_sm_window = asi_congestion_window(&image->congestion);
    image->sm_schedule.position = join_position;
    image->sm_schedule.window = image->next_sm_window;
    init_connection(&image->connections[0], params->destination, params->source);
    image->connections[0].known_since_ns = params->now_ns;
    image->connections[0].last_activity_ns = params->now_ns;
    image->connections[0].last_frame_ns = params->now_ns;
    image->connections[0].answerable_bytes = asi_answers_for(sizeof(asi_setup_frame));
    asi_store_release_i32(&log->metadata->active_transport_count, 1);
}

/* --- connections --- */

static asi_rx_image_connection *find_connection(asi_rx_image *image, const asi_receive_destination *destination)
{
    for (int32_t i = 0; i < image->connection_count; i++)
    {
        if (image->connections[i].destination == destination)
        {
            return &image->connections[i];
        }
    }
    return NULL;
}

static asi_rx_image_connection *add_connection(asi_rx_image *image, asi_receive_destination *destination)
{
    if (ASI_IMAGE_MAX_CONNECTIONS == image->connection_count)
    {
        return NULL; /* an endpoint has at most that many destinations, so this one is not the endpoint's */
    }
    asi_rx_image_connection *connection = &image->connections[image->connection_count++];
    init_connection(connection, destination, NULL);
    return connection;
}

/* Returns the connection that received a datagram of `length`; NULL: not of this endpoint. */
static asi_rx_image_connection *refresh(
    asi_rx_image *image, asi_receive_destination *destination, const asi_address *source, int32_t length, int64_t now_ns)
{
    asi_rx_image_connection *connection = find_connection(image, destination);
    if (NULL == connection)
    {
        connection = add_connection(image, destination);
    }
    if (NULL != connection)
    {
        if (asi_address_is_none(&connection->control_address)) /* Spec: 04 §8.8 - permanent once set */
        {
            connection->control_address = *source;
            connection->known_since_ns = now_ns;
        }
        connection->last_activity_ns = now_ns;
        connection->answerable_bytes += asi_answers_for(length);
    }
    return connection;
}

/* As refresh, for data and heartbeats, which make a transport active. */
static asi_rx_image_connection *track(
    asi_rx_image *image, asi_receive_destination *destination, const asi_address *source, int32_t length, int64_t now_ns)
{
    asi_rx_image_connection *connection = refresh(image, destination, source, length, now_ns);
    if (NULL != connection)
    {
        const bool is_new = INT64_MIN == connection->last_frame_ns;
        connection->last_frame_ns = now_ns;
        if (is_new)
        {
            asi_rx_image_update_active_transports(image, now_ns);
        }
    }
    return connection;
}

/* A SETUP does not make a transport active. Its sender has not received a status message of this image yet, and a sender that
 * does not wait for receivers could still leave the image behind. A merge that stopped its replay because of a SETUP would end
 * there. Spec: 04 §12.3-12.4. */
void asi_rx_image_on_setup(asi_rx_image *image, asi_receive_destination *destination, const asi_setup_frame *frame,
    const asi_address *source, int64_t now_ns)
{
    (void)refresh(image, destination, source, sizeof(*frame), now_ns);
    const asi_log *log = &image->log;
    const int64_t position =
        asi_log_position(frame->active_term_id, frame->term_offset, log->position_bits, log->initial_term_id);
    /* Another sender may be about to fill the image from the join position. */
    const bool is_its_only_sender =
        1 == image->connection_count && asi_address_equal(source, &image->connections[0].control_address);
    if (image->is_heard || !is_its_only_sender || frame->initial_term_id != log->initial_term_id ||
        frame->term_length != log->term_length || position > asi_log_max_position(log->term_length))
    {
        return;
    }
    if (position > image->join_position + log->term_length / 2)
    {
        asi_store_release_bool(&image->is_left_behind, true);
    }
}

void asi_rx_image_count_received(asi_rx_image *image, const asi_receive_destination *destination, int32_t length)
{
    asi_rx_image_connection *connection = find_connection(image, destination);
    if (NULL != connection)
    {
        connection->answerable_bytes += asi_answers_for(length);
    }
}

void asi_rx_image_add_connection(asi_rx_image *image, asi_receive_destination *destination, int64_t now_ns)
{
    if (NULL == find_connection(image, destination))
    {
        asi_rx_image_connection *connection = add_connection(image, destination);
        if (NULL != connection)
        {
            connection->last_activity_ns = now_ns;
        }
    }
}

void asi_rx_image_remove_connection(asi_rx_image *image, const asi_receive_destination *destination, int64_t now_ns)
{
    asi_rx_image_connection *connection = find_connection(image, destination);
    if (NULL != connection)
    {
        *connection = image->connections[--image->connection_count];
        asi_rx_image_update_active_transports(image, now_ns);
    }
}

static bool has_own_control(const asi_receive_destination *destination)
{
    return destination->is_multicast || destination->has_explicit_control;
}

const asi_address *asi_rx_image_connection_address(const asi_rx_image_connection *connection)
{
    const asi_receive_destination *destination = connection->destination;
    const asi_address *address =
        has_own_control(destination) ? &destination->control_address : &connection->control_address;
    return asi_address_is_none(address) ? NULL : address;
}

const asi_address *asi_rx_image_live_connection_address(const asi_rx_image_connection *connection, int64_t now_ns)
{
    return now_ns - connection->last_activity_ns >= ASI_CONNECTION_TIMEOUT_NS ? NULL : asi_rx_image_connection_address(connection);
}

bool asi_rx_image_may_answer(asi_rx_image_connection *connection, int32_t length, int32_t spare)
{
    if (has_own_control(connection->destination))
    {
        return true;
    }
    const int64_t cost = (int64_t)length + ASI_DATAGRAM_HEADERS_LENGTH;
    if (connection->answerable_bytes < cost + spare)
    {
        return false;
    }
    connection->answerable_bytes -= cost;
    return true;
}

bool asi_rx_image_connection_is_stranger(const asi_rx_image_connection *connection, int64_t now_ns)
{
    return !has_own_control(connection->destination) && now_ns - connection->known_since_ns < ASI_STRANGER_NS &&
        connection->answerable_bytes < asi_answers_for(ASI_STRANGER_BYTES);
}

void asi_rx_image_update_active_transports(asi_rx_image *image, int64_t now_ns)
{
    int32_t active = 0;
    for (int32_t i = 0; i < image->connection_count; i++)
    {
        const int64_t last = image->connections[i].last_frame_ns;
        active += INT64_MIN != last && now_ns - last < image->liveness_timeout_ns ? 1 : 0;
    }
    int32_t *field = &image->log.metadata->active_transport_count;
    if (active != asi_load_relaxed_i32(field))
    {
        asi_store_release_i32(field, active);
    }
}

/* --- inserting --- */

static uint8_t *slot_at(const asi_rx_image *image, int64_t position)
{
    return image->log.terms[asi_log_index_of_position(position, image->log.position_bits)] +
        (position & (image->log.term_length - 1));
}

/* A stream in order zeroes one slot for each datagram: with a length that the compiler knows, this takes two stores. */
static void zero(uint8_t *slot, int64_t length)
{
    if (AS_FRAME_ALIGNMENT == length)
    {
        memset(slot, 0, AS_FRAME_ALIGNMENT);
    }
    else
    {
        memset(slot, 0, (size_t)length);
    }
}

/* Beyond `zeroed_position` the log holds bytes of its last wrap. Data received in order overwrites them, so only the slot after
 * it must be zeroed, where readers stop. A gap is zeroed completely, page by page, but only pages that have storage: a frame far
 * ahead in a new log allocates none. (Spec: 04 §8.7.7 has the conductor zero a term behind the readers: every byte goes through a
 * cache once more.) */
static void zero_up_to(asi_rx_image *image, int64_t position)
{
    while (image->zeroed_position < position)
    {
        const int64_t left_in_page = ZEROED_AT_ONCE - (image->zeroed_position & (ZEROED_AT_ONCE - 1));
        const int64_t wanted = position - image->zeroed_position;
        const int64_t length = wanted < left_in_page ? wanted : left_in_page;
        uint8_t *slot = slot_at(image, image->zeroed_position);
        if (asi_log_is_backed(&image->log, slot))
        {
            zero(slot, length);
        }
        image->zeroed_position += length;
    }
}

static void raise_hwm(asi_rx_image *image, int64_t position)
{
    if (position > image->hwm)
    {
        /* Readers stop at a zero length: there must be one at the high-water mark before it moves. */
        AS_ASSERT(0 == position % AS_FRAME_ALIGNMENT && position + AS_FRAME_ALIGNMENT <= image->zeroed_position);
        asi_store_release_i64(&image->hwm, position);
        asi_store_release_i64(image->hwm_counter, position);
    }
}

/* Records that the stream ends at `position` on this connection. The image ends when every connection has reported the end.
 * Spec: 04 §8.6. */
static void on_end_of_stream(asi_rx_image *image, asi_rx_image_connection *connection, int64_t position, bool is_revoked)
{
    connection->is_eos = true;
    connection->eos_position = position;
    if (image->is_end_of_stream)
    {
        return;
    }
    int64_t end_position = position;
    for (int32_t i = 0; i < image->connection_count; i++)
    {
        if (!image->connections[i].is_eos)
        {
            return;
        }
        end_position = image->connections[i].eos_position > end_position ? image->connections[i].eos_position : end_position;
    }
    if (is_revoked) /* before the position: a client that sees the end must also see the reason */
    {
        asi_store_release_u8(&image->log.metadata->is_publication_revoked, 1);
        asi_store_release_bool(&image->is_revoked, true);
        count(image, ASI_SYSTEM_PUBLICATION_IMAGES_REVOKED);
    }
    asi_store_release_i64(&image->log.metadata->end_of_stream_position, end_position);
    asi_store_release_bool(&image->is_end_of_stream, true);
}

static int32_t insert_heartbeat(asi_rx_image *image, asi_receive_destination *destination, const asi_frame_header *frame,
    int64_t position, const asi_address *source, int64_t now_ns)
{
    /* Spec: 04 §24 T5 - heartbeats may lag behind the acknowledged position by up to a term. */
    const int64_t bottom = image->last_sm_position - image->log.term_length;
    if (position < bottom)
    {
        count(image, ASI_SYSTEM_FLOW_CONTROL_UNDER_RUNS);
        return 0;
    }
    asi_rx_image_connection *connection = track(image, destination, source, AS_FRAME_HEADER_LENGTH, now_ns);
    asi_store_release_i64(&image->last_packet_ns, now_ns);
    image->is_heard = true;
    if (0 != (frame->flags & ASI_FLAG_EOS) && NULL != connection)
    {
        on_end_of_stream(image, connection, position, 0 != (frame->flags & ASI_FLAG_REVOKED));
    }
    zero_up_to(image, position + AS_FRAME_ALIGNMENT);
    raise_hwm(image, position);
    count(image, ASI_SYSTEM_HEARTBEATS_RECEIVED);
    return AS_FRAME_HEADER_LENGTH;
}

/* Spec: 02 §9 - the length of the first frame is stored last (release). A thread that loads it with acquire sees the whole
 * datagram. */
static void copy_in(uint8_t *to, const uint8_t *from, int32_t length)
{
    memcpy(to + AS_FRAME_HEADER_LENGTH, from + AS_FRAME_HEADER_LENGTH, (size_t)(length - AS_FRAME_HEADER_LENGTH));
    memcpy(to + sizeof(int64_t), from + sizeof(int64_t), AS_FRAME_HEADER_LENGTH - sizeof(int64_t));
    asi_store_release_i64((int64_t *)(void *)to, asi_get_i64(from));
}

/* Zeroes before a datagram, and after it, where the next frame will be. The header of a padding frame covers more than the
 * datagram. */
static void prepare_slots(asi_rx_image *image, int64_t position, int32_t length, int64_t extent)
{
    zero_up_to(image, position);
    if (image->zeroed_position < position + length)
    {
        image->zeroed_position = position + length;
    }
    zero_up_to(image, position + extent + AS_FRAME_ALIGNMENT);
}

static int32_t insert_data(asi_rx_image *image, asi_receive_destination *destination, const asi_frame_header *frame, int32_t length,
    int64_t position, const asi_address *source, int64_t now_ns)
{
    /* First, even for data that was already received: the extent that a datagram announces raises rcv-hwm. Spec: 11 N2 */
    const int64_t extent = asi_data_extent_untrusted(frame, length);
    if (extent < 0 || extent > image->log.term_length - frame->term_offset)
    {
        return ASI_IMAGE_INVALID;
    }
    if (position < image->last_sm_position)
    {
        count(image, ASI_SYSTEM_FLOW_CONTROL_UNDER_RUNS);
        if (position + length >= image->last_sm_position - image->max_window)
        {
            (void)track(image, destination, source, length, now_ns);
        }
        return 0;
    }
    if (!asi_log_back(&image->log, position, length) || !asi_log_back(&image->log, position + extent, AS_FRAME_ALIGNMENT))
    {
        return ASI_IMAGE_NO_ROOM;
    }
    uint8_t *slot = slot_at(image, position);
    /* In the zeroed part of the log, a non-zero length marks a duplicate. Spec: 04 §24 T18
     * What begins before the end of a filled gap comes too late: it would replace paddings, up to the middle of one of them, and
     * readers would stop there for ever. */
    if (position >= image->filled_position &&
        (position >= image->zeroed_position || 0 == asi_load_acquire_i32((const int32_t *)(const void *)slot)))
    {
        prepare_slots(image, position, length, extent);
        copy_in(slot, (const uint8_t *)frame, length);
    }
    else
    {
        /* A retransmit with other frame boundaries may have more frames after its first one. They are dropped and requested
         * again. */
        zero_up_to(image, position + extent + AS_FRAME_ALIGNMENT);
    }
    (void)track(image, destination, source, length, now_ns);
    asi_store_release_i64(&image->last_packet_ns, now_ns);
    image->is_heard = true;
    if (position == image->join_position)
    {
        asi_store_release_bool(&image->is_begun, true);
    }
    raise_hwm(image, position + extent);
    return length;
}

int32_t asi_rx_image_insert_untrusted(asi_rx_image *image, asi_receive_destination *destination, const void *datagram,
    int32_t length, const asi_address *source, int64_t now_ns)
{
    const asi_frame_header *frame = datagram;
    const bool is_heartbeat = asi_is_heartbeat(datagram, length);
    const asi_log *log = &image->log;
    const int32_t spanned = is_heartbeat ? 0 : length;
    const int64_t position = asi_log_position(frame->term_id, frame->term_offset, log->position_bits, log->initial_term_id);
    if (image->is_rejected)
    {
        asi_rx_image_count_received(image, destination, length);
        return 0;
    }
    if (position + spanned > asi_log_max_position(log->term_length) || frame->term_offset >= log->term_length ||
        spanned > log->term_length - frame->term_offset)
    {
        return ASI_IMAGE_INVALID;
    }
    if (position + spanned > image->over_run_threshold)
    {
        count(image, ASI_SYSTEM_FLOW_CONTROL_OVER_RUNS);
        return 0;
    }
    return is_heartbeat ? insert_heartbeat(image, destination, frame, position, source, now_ns) :
        insert_data(image, destination, frame, length, position, source, now_ns);
}

void asi_rx_image_fill_gap(asi_rx_image *image, const asi_gap *gap)
{
    const int64_t position = asi_log_position(
        gap->term_id, gap->term_offset, image->log.position_bits, image->log.initial_term_id);
    /* Readers read the padding's header and the slot after it, nothing between. One heartbeat far ahead must not allocate storage
     * for the whole gap that it announces. */
    if (!asi_log_back(&image->log, position, AS_FRAME_HEADER_LENGTH) ||
        !asi_log_back(&image->log, position + gap->length, AS_FRAME_ALIGNMENT))
    {
        return;
    }
    uint8_t *slot = slot_at(image, position);
    for (int32_t offset = gap->length - AS_FRAME_ALIGNMENT; offset >= 0; offset -= AS_FRAME_ALIGNMENT)
    {
        if (asi_log_is_backed(&image->log, slot + offset) && 0 != asi_load_acquire_i32((const int32_t *)(const void *)(slot + offset)))
        {
            return; /* data arrived since: the conductor will find the smaller gap */
        }
    }
    const asi_frame_header padding = {
        .frame_length = gap->length,
        .flags = ASI_FLAG_UNFRAGMENTED,
        .type = ASI_FRAME_PAD,
        .term_offset = gap->term_offset,
        .session_id = image->session_id,
        .stream_id = image->stream_id,
        .term_id = gap->term_id
    };
    copy_in(slot, (const uint8_t *)&padding, AS_FRAME_HEADER_LENGTH);
    image->filled_position = position + gap->length;
    count(image, ASI_SYSTEM_LOSS_GAP_FILLS);
}

/* --- exchange with the conductor --- */

/* Writer: begin, fields, end; reader: end, fields, begin. The release fence keeps the fields after `begin`, the acquire fence
 * keeps them before the reader's load of it: equal numbers mean that the fields did not change meanwhile. */
void asi_rx_image_publish_gap(asi_rx_image *image, const asi_gap *gap)
{
    asi_gap_schedule *schedule = &image->gap_schedule;
    const int64_t change = asi_load_relaxed_i64(&schedule->change_end) + 1;
    asi_store_relaxed_i64(&schedule->change_begin, change);
    asi_fence_release();
    asi_store_relaxed_i32(&schedule->term_id, gap->term_id);
    asi_store_relaxed_i32(&schedule->term_offset, gap->term_offset);
    asi_store_relaxed_i32(&schedule->length, gap->length);
    asi_store_release_i64(&schedule->change_end, change);
}

bool asi_rx_image_is_gap_taken(const asi_rx_image *image)
{
    return asi_load_relaxed_i64(&image->last_gap_change) == asi_load_relaxed_i64(&image->gap_schedule.change_end);
}

bool asi_rx_image_poll_gap(asi_rx_image *image, asi_gap *gap)
{
    const asi_gap_schedule *schedule = &image->gap_schedule;
    const int64_t change = asi_load_acquire_i64(&schedule->change_end);
    if (change == image->last_gap_change)
    {
        return false;
    }
    const asi_gap found = {
        .term_id = asi_load_relaxed_i32(&schedule->term_id),
        .term_offset = asi_load_relaxed_i32(&schedule->term_offset),
        .length = asi_load_relaxed_i32(&schedule->length)
    };
    asi_fence_acquire();
    if (change != asi_load_relaxed_i64(&schedule->change_begin))
    {
        return false;
    }
    asi_store_relaxed_i64(&image->last_gap_change, change);
    *gap = found;
    return true;
}

void asi_rx_image_publish_sm(asi_rx_image *image, int64_t position, int32_t window)
{
    asi_sm_schedule *schedule = &image->sm_schedule;
    const int64_t change = asi_load_relaxed_i64(&schedule->change_end) + 1;
    asi_store_relaxed_i64(&schedule->change_begin, change);
    asi_fence_release();
    asi_store_relaxed_i64(&schedule->position, position);
    asi_store_relaxed_i32(&schedule->window, window);
    asi_store_release_i64(&schedule->change_end, change);
}

bool asi_rx_image_read_sm(const asi_rx_image *image, int64_t *position, int32_t *window, int64_t *change)
{
    const asi_sm_schedule *schedule = &image->sm_schedule;
    *change = asi_load_acquire_i64(&schedule->change_end);
    *position = asi_load_relaxed_i64(&schedule->position);
    *window = asi_load_relaxed_i32(&schedule->window);
    asi_fence_acquire();
    return *change == asi_load_relaxed_i64(&schedule->change_begin);
}
