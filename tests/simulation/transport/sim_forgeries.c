/* The adversary's datagrams; sim_adversary.h lists them, and why the system withstands each. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "sim_adversary.h"
#include "wire/frame.h"

#define FIRST_STREAM_ID 1001 /* stream ids are easily guessed */
#define GROUPS 0xE0141E00u   /* 224.20.30.0 */
#define PAYLOAD_MAX 512
#define NEW_SESSIONS (SIM_HOSTILE_SESSIONS - 1) /* the last one strays */

static int32_t below(sim_adversary *adversary, int64_t bound) { return (int32_t)sim_adversary_below(adversary, bound); }

#define PICK(adversary, array) ((array)[below((adversary), (int64_t)(sizeof(array) / sizeof((array)[0])))])

static int32_t some_stream(sim_adversary *adversary)
{
    return sim_adversary_percent(adversary, 90) ? FIRST_STREAM_ID + below(adversary, adversary->plan->flow_count) :
        (int32_t)asi_rand_u64(&adversary->rand);
}

static int32_t new_session(sim_adversary *adversary)
{
    return SIM_HOSTILE_SESSION(adversary->next_session++ % NEW_SESSIONS);
}

/* One that it may have begun lately. */
static int32_t some_session(sim_adversary *adversary)
{
    const int32_t back = 1 + below(adversary, 32);
    return SIM_HOSTILE_SESSION((adversary->next_session + NEW_SESSIONS - back) % NEW_SESSIONS);
}

static const int32_t BAD_LENGTHS[] = { INT32_MIN, -1, -32, 0, 1, 31, 33, 1 << 20, INT32_MAX, INT32_MAX - 31 };

/* -- sessions of its own ------------------------------------------------------------------------------------------------ */

/* Its streams begin where their ids say, so that a later datagram knows without a table. */
static int32_t join_offset(int32_t session_id) { return AS_FRAME_ALIGNMENT * (session_id & 0x3ff); }

static asi_setup_frame setup_of(sim_adversary *adversary, int32_t session_id, int32_t stream_id)
{
    static const int32_t TERMS[] = { 65536, 65536, 131072, 1 << 20, 1 << 24, 1 << 28, 1 << 30 };
    static const int32_t MTUS[] = { 96, 1408, 8192, AS_MAX_UDP_PAYLOAD_LENGTH / 32 * 32 };
    return (asi_setup_frame){
        .prefix = { .frame_length = sizeof(asi_setup_frame), .type = ASI_FRAME_SETUP,
            .flags = sim_adversary_percent(adversary, 20) ? (uint8_t)asi_rand_u64(&adversary->rand) : 0 },
        .term_offset = join_offset(session_id),
        .session_id = session_id,
        .stream_id = stream_id,
        .initial_term_id = session_id,
        .active_term_id = session_id,
        .term_length = PICK(adversary, TERMS),
        .mtu_length = PICK(adversary, MTUS),
        .ttl = below(adversary, 300)
    };
}

static asi_frame_header frame_of(int32_t session_id, int32_t stream_id, int32_t term_offset, int32_t length)
{
    return (asi_frame_header){ .frame_length = length, .flags = ASI_FLAG_UNFRAGMENTED, .type = ASI_FRAME_DATA,
        .term_offset = term_offset, .session_id = session_id, .stream_id = stream_id, .term_id = session_id };
}

/* A heartbeat or a message at the join, half a term ahead (the largest window of the shortest term), or further. */
static void send_frame(sim_adversary *adversary, const asi_address *source, const asi_address *to, int32_t session_id,
    int32_t stream_id)
{
    uint8_t bytes[AS_FRAME_HEADER_LENGTH + PAYLOAD_MAX] __attribute__((aligned(8))) = { 0 };
    static const int32_t AHEAD[] = { 0, 0, AS_FRAME_ALIGNMENT, 4096, 32768 - 1024, 32768, 1 << 20, 1 << 27 };
    const int32_t ahead = PICK(adversary, AHEAD);
    const int32_t length = sim_adversary_percent(adversary, 60) ? 0 : AS_FRAME_ALIGNMENT * (2 + below(adversary, PAYLOAD_MAX / 32 - 1));
    const asi_frame_header frame = frame_of(session_id, stream_id, join_offset(session_id) + ahead, length);
    memcpy(bytes, &frame, sizeof(frame));
    const int32_t sockets = sim_adversary_send(adversary, source, to, bytes, 0 == length ? AS_FRAME_HEADER_LENGTH : length);
    if (sockets > 0)
    {
        auditor_on_hostile_frame(adversary->audit, session_id, ahead, 0 == length);
    }
}

static void begin_session(sim_adversary *adversary)
{
    const sim_endpoint *target = sim_adversary_target(adversary);
    const int32_t session_id = new_session(adversary);
    const int32_t stream_id = some_stream(adversary);
    const asi_setup_frame setup = setup_of(adversary, session_id, stream_id);
    const asi_address source = sim_adversary_percent(adversary, 80) ? sim_adversary_stranger(adversary) :
        sim_adversary_target(adversary)->address;
    (void)sim_adversary_send(adversary, &source, &target->address, &setup, sizeof(setup));
    if (sim_adversary_percent(adversary, 60))
    {
        send_frame(adversary, &source, &target->address, session_id, stream_id);
    }
}

/* A machine that has a stream's data and its status messages, or two streams at one port, has sockets of both groups: the kernel
 * gives them what came for either, unless they ask for their own. */
static void stray(sim_adversary *adversary)
{
    const sim_plan *plan = adversary->plan;
    const sim_flow_plan *of = &plan->flows[below(adversary, plan->flow_count)];
    const sim_flow_plan *other = &plan->flows[below(adversary, plan->flow_count)];
    if (SIM_MULTICAST != of->kind || SIM_MULTICAST != other->kind || of->first_port != other->first_port)
    {
        return;
    }
    asi_address group = asi_address_any(AF_INET);
    group.v4.sin_addr.s_addr = htonl(GROUPS + (uint32_t)other->group + (of == other ? 1 : 0));
    asi_address_set_port(&group, (uint16_t)of->first_port);
    const asi_address source = sim_adversary_stranger(adversary);
    const asi_setup_frame setup = setup_of(adversary, SIM_STRAY_SESSION, of->stream_id);
    (void)sim_adversary_send(adversary, &source, &group, &setup, sizeof(setup));
    send_frame(adversary, &source, &group, SIM_STRAY_SESSION, of->stream_id);
}

static void follow_session(sim_adversary *adversary)
{
    const asi_address source = sim_adversary_stranger(adversary);
    send_frame(adversary, &source, &sim_adversary_target(adversary)->address, some_session(adversary), some_stream(adversary));
}

/* Each is refused in words of its own. */
static void tell_nonsense(sim_adversary *adversary)
{
    asi_setup_frame setup = setup_of(adversary, new_session(adversary), some_stream(adversary));
    setup.term_length = AS_TERM_MIN_LENGTH;
    setup.mtu_length = 1408;
    setup.active_term_id = asi_wrap_sub(setup.initial_term_id, 1 + adversary->next_text++);
    sim_adversary_send_at(adversary, sim_adversary_target(adversary), &setup, sizeof(setup));
}

static void spoil_setup(sim_adversary *adversary, asi_setup_frame *setup)
{
    static const int32_t BAD_TERMS[] = { INT32_MIN, -1, 0, 1, 32768, 100000, 3 * 65536, INT32_MAX };
    switch (below(adversary, 4))
    {
        case 0: setup->term_length = PICK(adversary, BAD_TERMS); break;
        case 1: setup->mtu_length = 0 == below(adversary, 2) ? 16 : 1409; break;
        case 2: setup->term_offset = setup->term_length; break;
        default: setup->term_offset = -AS_FRAME_ALIGNMENT; break;
    }
}

static void bad_setup(sim_adversary *adversary)
{
    asi_setup_frame setup = setup_of(adversary, new_session(adversary), some_stream(adversary));
    spoil_setup(adversary, &setup);
    sim_adversary_send_at(adversary, sim_adversary_target(adversary), &setup, sizeof(setup));
}

static void ask(sim_adversary *adversary)
{
    const asi_frame_header frame = frame_of(new_session(adversary), some_stream(adversary), 0, 0);
    sim_adversary_send_at(adversary, sim_adversary_target(adversary), &frame, sizeof(frame));
}

/* Two frames whose lengths and offsets contradict each other, at `first`. Returns the length of both. */
static int32_t put_torn_list(sim_adversary *adversary, uint8_t *bytes, const asi_frame_header *first)
{
    asi_frame_header frames[2] = { *first, *first };
    frames[0].frame_length = 64;
    frames[1].frame_length = 64;
    frames[1].term_offset = first->term_offset + 64;
    switch (below(adversary, 4))
    {
        case 0: frames[1].frame_length = PICK(adversary, BAD_LENGTHS); break;
        case 1: frames[1].term_offset += 0 == below(adversary, 2) ? AS_FRAME_ALIGNMENT : -64; break;
        case 2: frames[0].frame_length = 0 == below(adversary, 2) ? 160 : INT32_MAX; break;
        default: frames[1].type = (uint16_t)(2 + below(adversary, 60)); break;
    }
    if (64 == frames[1].frame_length || 33 == frames[1].frame_length)
    {
        frames[1].frame_length = 1 == frames[1].type || 0 == frames[1].type ? frames[1].frame_length + 64 : 64;
    }
    memset(bytes, 0xA5, 128);
    memcpy(bytes, &frames[0], sizeof(frames[0]));
    memcpy(bytes + 64, &frames[1], sizeof(frames[1]));
    return 128;
}

static void torn_list(sim_adversary *adversary)
{
    uint8_t bytes[128] __attribute__((aligned(8)));
    const int32_t session_id = some_session(adversary);
    const asi_frame_header first = frame_of(session_id, some_stream(adversary), join_offset(session_id) + 32 * below(adversary, 64), 64);
    const int32_t length = put_torn_list(adversary, bytes, &first);
    sim_adversary_send_at(adversary, sim_adversary_target(adversary), bytes, length);
}

/* -- to publishers, of sessions that are not there ---------------------------------------------------------------------- */

/* From a few addresses: each is a destination to a dynamic publication. */
static void plant(sim_adversary *adversary)
{
    const sim_endpoint *target = sim_adversary_target(adversary);
    const int32_t index = below(adversary, SIM_PLANTED_MAX);
    const bool has_peer = !asi_address_is_none(&target->peer) && !asi_address_is_multicast(&target->peer);
    const asi_address source = has_peer ? target->peer : sim_net_address(SIM_ADVERSARY_NODE, (uint16_t)(9000 + index));
    const bool is_wildcard = sim_adversary_percent(adversary, 50);
    const asi_status_frame status = {
        .prefix = { .frame_length = sim_adversary_percent(adversary, 80) ? ASI_STATUS_LENGTH : ASI_STATUS_TAGGED_LENGTH,
            .type = ASI_FRAME_STATUS, .flags = is_wildcard ? ASI_STATUS_FLAG_SEND_SETUP : 0 },
        .session_id = is_wildcard ? 0 : some_session(adversary),
        .stream_id = is_wildcard ? 0 : some_stream(adversary),
        .consumption_term_id = (int32_t)asi_rand_u64(&adversary->rand),
        .consumption_term_offset = AS_FRAME_ALIGNMENT * below(adversary, 1 << 20),
        .receiver_window = sim_adversary_percent(adversary, 50) ? 32768 : PICK(adversary, BAD_LENGTHS),
        .receiver_id = SIM_HOSTILE_SESSION(index)
    };
    if (!has_peer)
    {
        auditor_on_planted(adversary->audit, &source);
    }
    (void)sim_adversary_send(adversary, &source, &target->address, &status, status.prefix.frame_length);
}

static void nak_nobody(sim_adversary *adversary)
{
    const asi_nak_frame nak = { .prefix = { .frame_length = sizeof(nak), .type = ASI_FRAME_NAK },
        .session_id = some_session(adversary), .stream_id = some_stream(adversary), .length = PICK(adversary, BAD_LENGTHS) };
    sim_adversary_send_at(adversary, sim_adversary_target(adversary), &nak, sizeof(nak));
}

static asi_rttm_frame rttm_of(sim_adversary *adversary, int32_t session_id, int32_t stream_id, int64_t receiver_id)
{
    static const int64_t TIMES[] = { 0, 1, -1, INT64_MIN, INT64_MAX, 1000000000LL };
    return (asi_rttm_frame){
        .prefix = { .frame_length = sizeof(asi_rttm_frame), .type = ASI_FRAME_RTTM,
            .flags = sim_adversary_percent(adversary, 60) ? ASI_RTTM_FLAG_REQUEST : 0 },
        .session_id = session_id, .stream_id = stream_id, .echo_timestamp_ns = PICK(adversary, TIMES),
        .reception_delta_ns = PICK(adversary, TIMES), .receiver_id = receiver_id };
}

static void rttm_nobody(sim_adversary *adversary)
{
    const asi_rttm_frame rttm = rttm_of(adversary, some_session(adversary), some_stream(adversary), 0);
    sim_adversary_send_at(adversary, sim_adversary_target(adversary), &rttm, sizeof(rttm));
}

static asi_error_frame error_of(sim_adversary *adversary, int32_t session_id, int32_t stream_id, int64_t receiver_id)
{
    return (asi_error_frame){ .prefix = { .frame_length = sizeof(asi_error_frame), .type = ASI_FRAME_ERROR,
            .flags = sim_adversary_percent(adversary, 50) ? ASI_ERROR_FLAG_GROUP_TAG : 0 },
        .session_id = session_id, .stream_id = stream_id, .receiver_id = receiver_id,
        .group_tag = below(adversary, 10), .error_code = below(adversary, 20) };
}

static void error_of_nobody(sim_adversary *adversary)
{
    asi_error_frame error =
        error_of(adversary, some_session(adversary), some_stream(adversary), (int64_t)asi_rand_u64(&adversary->rand));
    error.error_length = sim_adversary_percent(adversary, 50) ? 0 : PICK(adversary, BAD_LENGTHS);
    sim_adversary_send_at(adversary, sim_adversary_target(adversary), &error, sizeof(error));
}

static void respond_to_nobody(sim_adversary *adversary)
{
    const asi_response_setup_frame setup = { .prefix = { .frame_length = sizeof(setup), .type = ASI_FRAME_RESPONSE_SETUP },
        .session_id = some_session(adversary), .stream_id = some_stream(adversary),
        .response_session_id = some_session(adversary) };
    sim_adversary_send_at(adversary, sim_adversary_target(adversary), &setup, sizeof(setup));
}

/* Entries of ever new names, at addresses of nobody; some lie about their lengths. Spec: 04 §17. */
static void invent_names(sim_adversary *adversary)
{
    uint8_t bytes[1024] __attribute__((aligned(8))) = { 0 };
    int32_t at = (int32_t)sizeof(asi_frame_prefix);
    for (int32_t i = 1 + below(adversary, 4); i > 0; i--)
    {
        char name[128];
        const int32_t name_length = snprintf(name, sizeof(name), "stranger-%d-%0*d", adversary->next_text++, 1 + below(adversary, 80), 0);
        const asi_address address = sim_adversary_stranger(adversary);
        uint8_t *entry = bytes + at;
        entry[0] = sim_adversary_percent(adversary, 90) ? 1 : (uint8_t)asi_rand_u64(&adversary->rand);
        entry[1] = sim_adversary_percent(adversary, 50) ? 0x80 : 0;
        asi_put_u16(entry + 2, asi_address_port(&address));
        asi_put_i32(entry + 4, below(adversary, 1000));
        memcpy(entry + 8, &address.v4.sin_addr, sizeof(address.v4.sin_addr));
        asi_put_u16(entry + 12, (uint16_t)(sim_adversary_percent(adversary, 90) ? name_length : below(adversary, 65536)));
        memcpy(entry + 14, name, (size_t)name_length);
        at += (int32_t)asi_align_i64(14 + name_length, 8);
    }
    const asi_frame_prefix prefix = { .frame_length = at, .type = ASI_FRAME_RESOLUTION };
    memcpy(bytes, &prefix, sizeof(prefix));
    const asi_address source = sim_adversary_stranger(adversary);
    const asi_address to = sim_net_address(below(adversary, adversary->plan->node_count), SIM_RESOLVER_PORT);
    (void)sim_adversary_send(adversary, &source, &to, bytes, at);
}

static void garbage(sim_adversary *adversary)
{
    static const uint16_t TYPES[] = { ASI_FRAME_PAD, ASI_FRAME_DATA, ASI_FRAME_NAK, ASI_FRAME_ERROR, ASI_FRAME_SETUP,
        ASI_FRAME_RTTM, ASI_FRAME_RESOLUTION, 0x08, 0x0A, ASI_FRAME_RESPONSE_SETUP, 0xFFFF };
    uint8_t bytes[PAYLOAD_MAX] __attribute__((aligned(8)));
    const int32_t length = below(adversary, 10) < 8 ? below(adversary, 72) : below(adversary, (int64_t)sizeof(bytes));
    for (int32_t i = 0; i < length; i++)
    {
        bytes[i] = (uint8_t)asi_rand_u64(&adversary->rand);
    }
    if (length >= (int32_t)sizeof(asi_frame_prefix))
    {
        const asi_frame_prefix prefix = { .type = PICK(adversary, TYPES), .flags = bytes[5],
            .frame_length = sim_adversary_percent(adversary, 50) ? length : PICK(adversary, BAD_LENGTHS) };
        memcpy(bytes, &prefix, sizeof(prefix));
    }
    sim_adversary_send_at(adversary, sim_adversary_target(adversary), bytes, length);
}

/* -- of what it heard --------------------------------------------------------------------------------------------------- */

/* A session with a set-up and a status message, or NULL. */
static const sim_known *some_known(sim_adversary *adversary)
{
    if (0 == adversary->known_count)
    {
        return NULL;
    }
    const sim_known *known = &adversary->known[below(adversary, adversary->known_count)];
    return 0 == known->term_length || asi_address_is_none(&known->status_to) ? NULL : known;
}

static const sim_flow_plan *flow_of(const sim_adversary *adversary, const sim_known *known)
{
    for (int32_t i = 0; i < adversary->plan->flow_count; i++)
    {
        if (adversary->plan->flows[i].stream_id == known->stream_id)
        {
            return &adversary->plan->flows[i];
        }
    }
    return NULL;
}

static void absurd_window(sim_adversary *adversary)
{
    const sim_known *known = some_known(adversary);
    if (NULL == known)
    {
        return;
    }
    asi_status_frame status = { .prefix = { .frame_length = ASI_STATUS_LENGTH, .type = ASI_FRAME_STATUS },
        .session_id = known->session_id, .stream_id = known->stream_id, .consumption_term_id = known->consumption_term_id,
        .consumption_term_offset = known->consumption_term_offset, .receiver_window = known->term_length / 4,
        .receiver_id = known->receiver_id };
    const int32_t half = known->term_length / 2;
    switch (below(adversary, 5))
    {
        case 0: status.receiver_window = half + 1 + below(adversary, INT32_MAX - half); break;
        case 1: status.receiver_window = -1 - below(adversary, INT32_MAX); break;
        case 2: status.consumption_term_offset = 0 == below(adversary, 2) ? known->term_length : -AS_FRAME_ALIGNMENT; break;
        case 3: status.consumption_term_offset |= 1 + below(adversary, 31); break;
        default:
            status.consumption_term_id = asi_wrap_add(known->term_id, 0 == below(adversary, 2) ? 2 + below(adversary, 1000) :
                -2 - below(adversary, 1000));
            break;
    }
    (void)sim_adversary_send(adversary, &known->status_source, &known->status_to, &status, ASI_STATUS_LENGTH);
}

static void tear_known(sim_adversary *adversary)
{
    uint8_t bytes[128] __attribute__((aligned(8)));
    const sim_known *known = some_known(adversary);
    if (NULL == known)
    {
        return;
    }
    asi_frame_header first = frame_of(known->session_id, known->stream_id, known->term_offset, 64);
    first.term_id = known->term_id;
    first.term_offset += AS_FRAME_ALIGNMENT * below(adversary, 512);
    const int32_t length = put_torn_list(adversary, bytes, &first);
    (void)sim_adversary_send(adversary, &known->publisher, &known->receiver, bytes, length);
}

/* A position ahead of the receiver's by up to half a term, or by much more. */
static void far_beat(sim_adversary *adversary)
{
    const sim_known *known = some_known(adversary);
    const sim_flow_plan *flow = NULL == known ? NULL : flow_of(adversary, known);
    if (NULL == flow || !flow->subscribers[0].is_reliable)
    {
        return;
    }
    asi_frame_header frame = frame_of(known->session_id, known->stream_id, 0, 0);
    const int64_t ahead = sim_adversary_percent(adversary, 80) ? below(adversary, known->term_length / 2) :
        (int64_t)known->term_length * below(adversary, 1000);
    const int64_t offset = (known->consumption_term_offset + ahead) & ~(int64_t)(AS_FRAME_ALIGNMENT - 1);
    frame.term_id = asi_wrap_add(known->consumption_term_id, (int32_t)(offset / known->term_length));
    frame.term_offset = (int32_t)(offset % known->term_length);
    (void)sim_adversary_send(adversary, &known->publisher, &known->receiver, &frame, sizeof(frame));
}

static void nak_storm(sim_adversary *adversary)
{
    const sim_known *known = some_known(adversary);
    if (NULL == known)
    {
        return;
    }
    const int32_t term_length = known->term_length;
    asi_nak_frame nak = { .prefix = { .frame_length = sizeof(nak), .type = ASI_FRAME_NAK }, .session_id = known->session_id,
        .stream_id = known->stream_id, .term_id = known->term_id };
    if (sim_adversary_percent(adversary, 30))
    {
        nak.term_offset = 0 == below(adversary, 2) ? AS_FRAME_ALIGNMENT * below(adversary, term_length / AS_FRAME_ALIGNMENT) :
            PICK(adversary, BAD_LENGTHS);
        nak.length = PICK(adversary, BAD_LENGTHS);
    }
    else /* from half a term behind the sender on */
    {
        const int64_t behind = AS_FRAME_ALIGNMENT * (int64_t)(1 + below(adversary, term_length / 2 / AS_FRAME_ALIGNMENT));
        const int64_t offset = known->term_offset + (int64_t)term_length - behind;
        nak.term_id = asi_wrap_add(known->term_id, offset < term_length ? -1 : 0);
        nak.term_offset = (int32_t)(offset % term_length);
        nak.length = term_length - nak.term_offset;
    }
    (void)sim_adversary_send(adversary, &known->status_source, &known->status_to, &nak, sizeof(nak));
}

static void rttm_known(sim_adversary *adversary)
{
    const sim_known *known = some_known(adversary);
    if (NULL == known)
    {
        return;
    }
    const bool is_to_publisher = sim_adversary_percent(adversary, 50);
    const asi_rttm_frame rttm = rttm_of(adversary, known->session_id, known->stream_id,
        sim_adversary_percent(adversary, 50) ? known->receiver_id : 0);
    (void)sim_adversary_send(adversary, is_to_publisher ? &known->status_source : &known->publisher,
        is_to_publisher ? &known->status_to : &known->receiver, &rttm, sizeof(rttm));
}

static void error_known(sim_adversary *adversary)
{
    const sim_known *known = some_known(adversary);
    if (NULL == known)
    {
        return;
    }
    const bool is_lie = sim_adversary_percent(adversary, 50);
    asi_error_frame error =
        error_of(adversary, known->session_id, known->stream_id, is_lie ? known->receiver_id : known->receiver_id ^ 0x5A5A5A5A);
    error.error_length = is_lie ? 1 + below(adversary, 2000) : 0;
    (void)sim_adversary_send(adversary, &known->status_source, &known->status_to, &error, sizeof(error));
}

static void bad_setup_known(sim_adversary *adversary)
{
    const sim_known *known = some_known(adversary);
    if (NULL == known)
    {
        return;
    }
    asi_setup_frame setup = setup_of(adversary, known->session_id, known->stream_id);
    setup.initial_term_id = known->initial_term_id;
    setup.active_term_id = known->term_id;
    setup.term_length = known->term_length;
    setup.mtu_length = known->mtu_length;
    setup.term_offset = known->term_offset;
    spoil_setup(adversary, &setup);
    (void)sim_adversary_send(adversary, &known->publisher, &known->receiver, &setup, sizeof(setup));
}

/* Of a stream that every receiver has, and keeps: what it says then is heard by nobody. */
static void other_setup(sim_adversary *adversary)
{
    const sim_known *known = some_known(adversary);
    const sim_flow_plan *flow = NULL == known ? NULL : flow_of(adversary, known);
    const auditor *audit = adversary->audit;
    if (NULL == flow || !adversary->is_calm || audit->has_untethered)
    {
        return;
    }
    for (int32_t i = 0; i < audit->stream_count; i++)
    {
        const auditor_stream *stream = &audit->streams[i];
        if (stream->session_id == known->session_id && stream->stream_id == known->stream_id && AUDITOR_OPEN == stream->end &&
            stream->waits_for_all)
        {
            asi_setup_frame setup = setup_of(adversary, known->session_id, known->stream_id);
            setup.initial_term_id = asi_wrap_add(known->initial_term_id, below(adversary, 3));
            setup.active_term_id = asi_wrap_add(known->term_id, below(adversary, 5));
            setup.term_offset = 0;
            (void)sim_adversary_send(adversary, &known->publisher, &known->receiver, &setup, sizeof(setup));
        }
    }
}

static const sim_heard *some_heard(sim_adversary *adversary)
{
    const sim_heard *heard = &adversary->heard[below(adversary, SIM_HEARD_MAX)];
    if (NULL == heard->bytes)
    {
        return NULL;
    }
    const uint16_t type = asi_get_u16(heard->bytes + 6);
    const uint8_t flags = heard->bytes[5];
    const bool is_end = ASI_FRAME_ERROR == type || (ASI_FRAME_STATUS == type && 0 != flags) ||
        (ASI_FRAME_DATA == type && 0 != (flags & (ASI_FLAG_EOS | ASI_FLAG_REVOKED)));
    return adversary->is_calm && is_end ? NULL : heard;
}

static void replay(sim_adversary *adversary)
{
    const sim_heard *heard = some_heard(adversary);
    if (NULL != heard)
    {
        (void)sim_adversary_send(adversary, &heard->source, &heard->to, heard->bytes, heard->length);
    }
}

static void reflect(sim_adversary *adversary)
{
    const sim_heard *heard = some_heard(adversary);
    if (NULL == heard)
    {
        return;
    }
    const bool is_back = sim_adversary_percent(adversary, 50);
    (void)sim_adversary_send(adversary, is_back ? &heard->to : &heard->source,
        is_back ? &heard->source : &sim_adversary_target(adversary)->address, heard->bytes, heard->length);
}

const sim_kind_of_forgery SIM_FORGERIES[] = {
    { "begins sessions", begin_session, false, true },
    { "floods with set-ups", begin_session, false, true },
    { "sends frames for its sessions", follow_session, false, true },
    { "sends set-ups in ever other words", tell_nonsense, false, true },
    { "sends set-ups that can't be", bad_setup, false, true },
    { "sends data of nobody", ask, false, true },
    { "sends lists that lie", torn_list, false, true },
    { "plants destinations", plant, false, true },
    { "asks for resends of nobody's frames", nak_nobody, false, true },
    { "asks nobody for times", rttm_nobody, false, true },
    { "sends errors of nobody", error_of_nobody, false, true },
    { "responds to nobody", respond_to_nobody, false, true },
    { "invents names", invent_names, false, true },
    { "sends to other groups", stray, false, true },
    { "sends garbage", garbage, false, true },
    { "sends windows that nobody has", absurd_window, true, true },
    { "sends lists of a session that lie", tear_known, true, true },
    { "sends heartbeats far ahead", far_beat, true, true },
    { "asks for everything again", nak_storm, true, true },
    { "asks for times", rttm_known, true, true },
    { "sends errors for other receivers", error_known, true, true },
    { "sends set-ups of a session that can't be", bad_setup_known, true, true },
    { "sends other set-ups of a session", other_setup, true, true },
    { "replays", replay, true, true },
    { "reflects", reflect, true, true }
};
const int32_t SIM_FORGERY_COUNT = (int32_t)(sizeof(SIM_FORGERIES) / sizeof(SIM_FORGERIES[0]));
