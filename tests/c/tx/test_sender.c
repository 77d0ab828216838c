/* The sender over a network of the test's own that takes as many datagrams as the test allows: partial batches, refusals,
 * errors, batches of many datagrams; and status messages that no receiver sends. The whole driver runs, invoked, under the
 * test's clock; the test keeps what it sends and provides what it receives. Spec: 04 §4. */
#include "driver/rig.h"

#include "wire/frame.h"

#define STREAM 1001
#define CHANNEL "aeron:udp?endpoint=127.0.0.1:24999"
#define SENT_CAPACITY 4096

typedef struct fake_network
{
    int32_t accept;       /* datagrams taken per call; -1: all */
    bool is_failing;
    int32_t sent_count;   /* datagrams taken so far */
    int32_t send_calls;
    int32_t largest_batch;
    int64_t sent_bytes;
    uint16_t types[SENT_CAPACITY];
    uint8_t last[65536];
    int32_t last_length;
    uint8_t incoming[256];
    int32_t incoming_length; /* 0: nothing there */
    asi_address source;
} fake_network;

struct asi_udp_socket
{
    asi_udp_params params;
};

static as_result fake_open(void *context, const asi_udp_params *params, asi_udp_socket **opened_socket)
{
    (void)context;
    *opened_socket = malloc(sizeof(**opened_socket));
    CHECK(NULL != *opened_socket);
    (*opened_socket)->params = *params;
    return AS_OK;
}

static void fake_close(void *context, asi_udp_socket *closed)
{
    (void)context;
    free(closed);
}

static as_result fake_send(
    void *context, asi_udp_socket *over, const asi_outgoing *datagrams, int32_t count, int32_t *sent)
{
    (void)over;
    fake_network *network = context;
    network->send_calls++;
    network->largest_batch = count > network->largest_batch ? count : network->largest_batch;
    *sent = network->accept >= 0 && network->accept < count ? network->accept : count;
    for (int32_t i = 0; i < *sent; i++)
    {
        network->types[network->sent_count % SENT_CAPACITY] = asi_get_u16((const uint8_t *)datagrams[i].bytes + 6);
        network->sent_count++;
        network->sent_bytes += datagrams[i].length;
        memcpy(network->last, datagrams[i].bytes, (size_t)datagrams[i].length);
        network->last_length = datagrams[i].length;
    }
    return network->is_failing ? asi_fail(AS_E_INTERNAL, 71, "the network is down") : AS_OK;
}

static as_result fake_receive(
    void *context, asi_udp_socket *over, asi_incoming *datagrams, int32_t count, int32_t *received)
{
    (void)over;
    fake_network *network = context;
    *received = 0;
    if (network->incoming_length > 0 && count > 0)
    {
        memcpy(datagrams[0].buffer, network->incoming, (size_t)network->incoming_length);
        datagrams[0].length = network->incoming_length;
        datagrams[0].source = network->source;
        network->incoming_length = 0;
        *received = 1;
    }
    return AS_OK;
}

static as_result fake_reconnect(void *context, asi_udp_socket *over, const asi_address *peer)
{
    (void)context;
    over->params.connect = *peer;
    return AS_OK;
}

static as_result fake_bound_address(void *context, asi_udp_socket *over, asi_address *address)
{
    (void)context;
    *address = over->params.bind;
    return AS_OK;
}

static as_result fake_interfaces(void *context, asi_interface *to, int32_t capacity, int32_t *count)
{
    (void)context;
    (void)to;
    (void)capacity;
    *count = 0;
    return AS_OK;
}

typedef struct stage
{
    test_rig rig; /* first */
    fake_network network;
    rig_publication publication;
    int32_t *grows; /* frame length of the publication's log that a hostile client raises when the clock is read next */
} stage;

static int64_t stage_epoch_ns(void *context)
{
    stage *s = context;
    if (NULL != s->grows)
    {
        asi_store_release_i32(s->grows, AS_TERM_MIN_LENGTH);
        s->grows = NULL;
    }
    return INT64_MAX;
}

static void open_stage_on(stage *s, const char *channel)
{
    char dir[SCRATCH_CAPACITY];
    memset(s, 0, sizeof(*s));
    s->network.accept = -1;
    s->network.source = asi_address_any(AF_INET);
    scratch_create(dir);
    snprintf(s->rig.dir, sizeof(s->rig.dir), "%s", dir);
    s->rig.now_ns = RIG_SECOND;
    asi_driver_settings settings = rig_settings(s->rig.dir);
    settings.term_buffer_length = AS_TERM_MIN_LENGTH;
    settings.max_messages_per_send = 16;
    asi_driver_dependencies dependencies = {
        .clock = { .nano_time = rig_nano_time, .epoch_ms = rig_epoch_ms, .epoch_ns = stage_epoch_ns, .context = s },
        .ops = { .open = fake_open, .close = fake_close, .send = fake_send, .receive = fake_receive,
            .reconnect = fake_reconnect, .bound_address = fake_bound_address, .interfaces = fake_interfaces,
            .context = &s->network },
        .resolver = asi_name_resolver_system()
    };
    asi_rand_seed(&dependencies.rand, 4711);
    CHECK_I64(asi_driver_open_with(&settings, &dependencies, NULL, NULL, &s->rig.driver), AS_OK);
    rig_attach(&s->rig);
    rig_send_add(&s->rig, ASI_CMD_ADD_PUBLICATION, 1, 10, STREAM, channel);
    rig_expect_i32(&s->rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect_publication(&s->rig, false, &s->publication);
    rig_cycle(&s->rig);
}

static void open_stage(stage *s) { open_stage_on(s, CHANNEL); }

static void close_stage(stage *s)
{
    asi_log_close(&s->publication.log);
    rig_close(&s->rig);
}

static void receive(stage *s, const void *frame, int32_t length)
{
    memcpy(s->network.incoming, frame, (size_t)length);
    s->network.incoming_length = length;
    for (int i = 0; i < 3; i++)
    {
        rig_cycle(&s->rig);
    }
    CHECK_I64(s->network.incoming_length, 0);
}

static void receive_status(stage *s, int64_t position, int32_t window)
{
    const asi_log *log = &s->publication.log;
    const asi_status_frame frame = {
        .prefix = { .frame_length = ASI_STATUS_LENGTH, .type = ASI_FRAME_STATUS },
        .session_id = s->publication.ready.session_id,
        .stream_id = STREAM,
        .consumption_term_id = asi_log_term_id_of_position(position, log->position_bits, log->initial_term_id),
        .consumption_term_offset = (int32_t)(position & (log->term_length - 1)),
        .receiver_window = window,
        .receiver_id = 1
    };
    receive(s, &frame, ASI_STATUS_LENGTH);
}

static int64_t counter(const stage *s, int32_t type_id)
{
    const int32_t id = asi_counters_find(&s->rig.counters, type_id, NULL, NULL);
    CHECK(id >= 0);
    return asi_load_acquire_i64(asi_counter_addr(&s->rig.counters, id));
}

static void a_batch_goes_out_in_one_call(stage *s)
{
    receive_status(s, 0, 32768);
    for (int i = 0; i < 10; i++)
    {
        CHECK(rig_offer(&s->publication, 1376) > 0);
    }
    s->network.send_calls = 0;
    s->network.largest_batch = 0;
    rig_cycle(&s->rig);
    CHECK_I64(s->network.send_calls, 1);
    CHECK_I64(s->network.largest_batch, 10);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), 14080);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_BYTES_SENT), 14080 + 32);
}

/* Accepted datagrams are not sent again; the others follow in the next cycle. */
static void a_partial_batch_goes_on_where_it_stopped(stage *s)
{
    receive_status(s, 0, 32768);
    for (int i = 0; i < 10; i++)
    {
        CHECK(rig_offer(&s->publication, 1376) > 0);
    }
    s->network.accept = 3;
    s->network.sent_count = 0;
    for (int i = 1; i <= 3; i++)
    {
        rig_cycle(&s->rig);
        CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), 3 * 1408 * i);
        CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_SHORT_SENDS), i);
    }
    rig_cycle(&s->rig);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), 10 * 1408);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_SHORT_SENDS), 3);
    CHECK_I64(s->network.sent_count, 10);
}

/* What still fitted goes out in the cycle that meets the limit: the wait that follows is one episode, not two. */
static void back_pressure_counts_once_an_episode(stage *s)
{
    const int32_t window = 2 * 1408 + 512; /* two frames, and not enough for a third */
    receive_status(s, 0, window);
    for (int64_t episode = 1; episode <= 3; episode++)
    {
        for (int i = 0; i < 2 + (1 == episode); i++)
        {
            CHECK(rig_offer(&s->publication, 1376) > 0);
        }
        for (int i = 0; i < 4; i++)
        {
            rig_cycle(&s->rig);
        }
        CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), episode * 2 * 1408);
        CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_BPE), episode);
        CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_SENDER_FLOW_CONTROL_LIMITS), episode);
        receive_status(s, episode * 2 * 1408, window);
    }
}

static void a_refused_batch_is_tried_again(stage *s)
{
    receive_status(s, 0, 32768);
    CHECK(rig_offer(&s->publication, 100) > 0);
    s->network.accept = 0;
    rig_cycle(&s->rig);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), 0);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_SHORT_SENDS), 1);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_ERRORS), 0);
    s->network.accept = -1;
    rig_cycle(&s->rig);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), 160);
}

static void a_failing_network_is_logged_once_in_words(stage *s)
{
    receive_status(s, 0, 32768);
    s->network.is_failing = true;
    s->network.accept = 0;
    CHECK(rig_offer(&s->publication, 100) > 0);
    for (int i = 0; i < 10; i++)
    {
        rig_cycle(&s->rig);
    }
    CHECK(rig_system(&s->rig, ASI_SYSTEM_ERRORS) > 0);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), 0);
    s->network.is_failing = false;
    s->network.accept = -1;
    rig_cycle(&s->rig);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), 160);
}

/* Spec: 11 N4, D7. A window of more than half a term would let the sender overwrite data that no receiver has. */
static void windows_that_no_receiver_has(stage *s)
{
    static const int32_t WINDOWS[] = { -1, 32769, 65536, INT32_MAX, INT32_MIN };
    enum { COUNT = sizeof(WINDOWS) / sizeof(WINDOWS[0]) };
    for (int i = 0; i < COUNT; i++)
    {
        receive_status(s, 0, WINDOWS[i]);
    }
    receive_status(s, 4, 1408);
    receive_status(s, 65536 - 4, 1408);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_INVALID_PACKETS), COUNT + 2);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_STATUS_MESSAGES_RECEIVED), 0);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_LIMIT), 0);
    receive_status(s, 0, 32768);
    CHECK_I64(rig_system(&s->rig, ASI_SYSTEM_STATUS_MESSAGES_RECEIVED), 1);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_LIMIT), 32768);
}

/* A publication that was quiet sends on at once, also when the frame that woke it is cleaned meanwhile. */
static void what_was_quiet_stays_awake(stage *s)
{
    receive_status(s, 0, 32768);
    s->rig.now_ns += RIG_MS;
    rig_cycle(&s->rig);
    rig_cycle(&s->rig);
    CHECK_I64(rig_offer(&s->publication, 96), 128);
    rig_cycle(&s->rig);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), 128);
    memset(s->publication.log.terms[0], 0, 128);
    CHECK_I64(rig_offer(&s->publication, 96), 256);
    rig_cycle(&s->rig);
    CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), 256);
}

static bool is_connected_to(stage *s, int64_t receiver_id, uint8_t flags)
{
    const asi_status_frame frame = {
        .prefix = { .frame_length = ASI_STATUS_LENGTH, .flags = flags, .type = ASI_FRAME_STATUS },
        .session_id = s->publication.ready.session_id,
        .stream_id = STREAM,
        .consumption_term_id = s->publication.log.initial_term_id,
        .receiver_window = 32768,
        .receiver_id = receiver_id
    };
    receive(s, &frame, ASI_STATUS_LENGTH);
    return 1 == asi_load_acquire_i32(&s->publication.log.metadata->is_connected);
}

/* A publication that wants two receivers is connected while it has two. */
static void a_group_of_two(void)
{
    stage s;
    open_stage_on(&s, "aeron:udp?control=127.0.0.1:24999|control-mode=dynamic|fc=min,g:/2");
    CHECK(!is_connected_to(&s, 1, 0));
    CHECK(is_connected_to(&s, 2, 0));
    CHECK(!is_connected_to(&s, 2, ASI_STATUS_FLAG_EOS));
    close_stage(&s);
}

/* Or the sender's thread would rest while receivers send. */
static void a_control_frame_is_work(stage *s)
{
    receive_status(s, 0, 32768);
    CHECK_I64(as_driver_do_work(s->rig.driver), 0);
    memcpy(s->network.incoming, "?", 1);
    s->network.incoming_length = 1;
    CHECK_I64(as_driver_do_work(s->rig.driver), 1);
}

/* Random datagrams with a plausible beginning, for the sanitizers. */
static void random_control_frames(void)
{
    stage s;
    open_stage(&s);
    receive_status(&s, 0, 32768);
    for (int i = 0; i < 20; i++)
    {
        CHECK(rig_offer(&s.publication, 1000) > 0);
        rig_cycle(&s.rig);
    }
    asi_rand rand;
    asi_rand_seed(&rand, 4711);
    static const uint16_t TYPES[] = { ASI_FRAME_NAK, ASI_FRAME_STATUS, ASI_FRAME_ERROR, ASI_FRAME_RTTM, ASI_FRAME_RESPONSE_SETUP,
        ASI_FRAME_SETUP, 0xFFFF };
    for (int i = 0; i < 20000; i++)
    {
        uint8_t datagram[128];
        for (size_t at = 0; at < sizeof(datagram); at += 8)
        {
            asi_put_i64(datagram + at, 0 == asi_rand_u64(&rand) % 2 ? (int64_t)asi_rand_u64(&rand) :
                (int64_t)(asi_rand_u64(&rand) % 65536));
        }
        const int32_t length = (int32_t)(asi_rand_u64(&rand) % sizeof(datagram)) + 1;
        datagram[4] = (uint8_t)(0 == asi_rand_u64(&rand) % 20);
        asi_put_i32(datagram, 0 == asi_rand_u64(&rand) % 4 ? (int32_t)asi_rand_u64(&rand) : length);
        asi_put_u16(datagram + 6, TYPES[asi_rand_u64(&rand) % (sizeof(TYPES) / sizeof(TYPES[0]))]);
        asi_put_i32(datagram + 8, s.publication.ready.session_id);
        asi_put_i32(datagram + 12, STREAM);
        if (0 == asi_rand_u64(&rand) % 2)
        {
            asi_put_i32(datagram + 16, s.publication.log.initial_term_id);
        }
        memcpy(s.network.incoming, datagram, (size_t)length);
        s.network.incoming_length = length;
        s.rig.now_ns += RIG_MS;
        rig_cycle(&s.rig);
        while (rig_receive(&s.rig))
        {
        }
    }
    close_stage(&s);
}

/* Clients can change lengths in the log at any time: a timestamp lies within the scanned frames. */
static void no_stamp_beyond_the_datagram(void)
{
    stage s;
    open_stage_on(&s, CHANNEL "|channel-snd-ts-offset=1000");
    receive_status(&s, 0, 32768);
    CHECK(rig_offer(&s.publication, 1376) > 0);
    CHECK(rig_offer(&s.publication, 100) > 0);
    uint8_t *term = s.publication.log.terms[0];
    s.grows = (int32_t *)(void *)(term + 1408);
    rig_cycle(&s.rig);
    CHECK(NULL == s.grows);
    CHECK_I64(asi_get_i64(term + 32 + 1000), INT64_MAX);
    CHECK_I64(asi_get_i64(term + 1408 + 32 + 1000), 0);
    close_stage(&s);
}

/* While all are idle an agent parks for a millisecond in each cycle: who wakes among many must not wait for many of them. */
static void one_of_many_wakes_in_time(stage *s)
{
    receive_status(s, 0, 32768);
    for (int i = 1; i < 1000; i++)
    {
        rig_send_add(&s->rig, ASI_CMD_ADD_PUBLICATION, 1, 10 + i, STREAM + i, CHANNEL);
        while (rig_receive(&s->rig))
        {
        }
    }
    for (int trial = 0; trial < 10; trial++)
    {
        for (int i = 0; i < 151 + trial * 7; i++)
        {
            s->rig.now_ns += RIG_MS;
            rig_cycle(&s->rig);
        }
        const int64_t position = rig_offer(&s->publication, 96);
        CHECK(position > 0);
        int cycles = 0;
        while (counter(s, ASI_COUNTER_TYPE_SENDER_POSITION) < position && cycles < 100)
        {
            s->rig.now_ns += RIG_MS;
            rig_cycle(&s->rig);
            cycles++;
        }
        CHECK(cycles <= 4);
    }
    for (int i = 0; i < 10; i++) /* and then sends in each cycle, however short */
    {
        const int64_t position = rig_offer(&s->publication, 96);
        s->rig.now_ns += 10000;
        rig_cycle(&s->rig);
        CHECK_I64(counter(s, ASI_COUNTER_TYPE_SENDER_POSITION), position);
    }
}

static int32_t setups_in(stage *s, int32_t duration_ms)
{
    s->network.sent_count = 0;
    for (int32_t i = 0; i < duration_ms; i += 20)
    {
        s->rig.now_ns += 20 * RIG_MS;
        rig_cycle(&s->rig);
    }
    int32_t count = 0;
    for (int32_t i = 0; i < s->network.sent_count; i++)
    {
        count += ASI_FRAME_SETUP == s->network.types[i] ? 1 : 0;
    }
    return count;
}

/* A channel may ask that SETUPs to an address which nobody has proven become fewer, until a receiver answers. */
static void setups_that_nobody_answers_become_fewer(void)
{
    stage s;
    open_stage_on(&s, CHANNEL "|setup-backoff=true");
    CHECK_I64(setups_in(&s, 1000), 3);
    CHECK_I64(setups_in(&s, 4000), 5);
    close_stage(&s);
    open_stage(&s);
    CHECK(setups_in(&s, 4000) >= 30);
    close_stage(&s);
}

/* A server that gives up on a peer that never answered, as its address may be forged, writes there no more from then on. */
static void what_nobody_heard_of_is_revoked_in_silence(stage *s)
{
    CHECK(setups_in(s, 1000) >= 8);
    const asi_cmd_remove_publication revoke = { { 1, 30 }, 10, ASI_REMOVE_PUBLICATION_REVOKE };
    rig_send(&s->rig, ASI_CMD_REMOVE_PUBLICATION, &revoke, sizeof(revoke));
    rig_cycle(&s->rig);
    CHECK_I64(setups_in(s, 6000), 0);
}

static const asi_frame_header *pass_until_heartbeat(stage *s)
{
    s->rig.now_ns += 150 * RIG_MS;
    s->network.last_length = 0;
    rig_cycle(&s->rig);
    CHECK_I64(s->network.last_length, AS_FRAME_HEADER_LENGTH);
    return (const asi_frame_header *)(const void *)s->network.last;
}

/* Spec: 11 §3 - a receiver refuses the name of the maximum position. So heartbeats name the slot before it, and what a receiver
 * then asks for ends there, too: in the middle of the last frame. */
static void the_maximum_position(void)
{
    stage s;
    open_stage_on(&s, CHANNEL "|init-term-id=7|term-id=-2147483642|term-offset=65408|term-length=64k");
    const int64_t max = asi_log_max_position(65536);
    receive_status(&s, max - 128, 32768);
    CHECK_I64(rig_offer(&s.publication, 96), max);
    rig_cycle(&s.rig);
    CHECK_I64(counter(&s, ASI_COUNTER_TYPE_SENDER_POSITION), max);
    const asi_frame_header *heartbeat = pass_until_heartbeat(&s);
    CHECK_I64(heartbeat->frame_length, 0);
    CHECK_I64(heartbeat->term_id, -2147483642);
    CHECK_I64(heartbeat->term_offset, 65536 - 32);
    const asi_nak_frame nak = {
        .prefix = { .frame_length = sizeof(asi_nak_frame), .type = ASI_FRAME_NAK },
        .session_id = s.publication.ready.session_id,
        .stream_id = STREAM,
        .term_id = -2147483642,
        .term_offset = 65408,
        .length = 96
    };
    receive(&s, &nak, sizeof(nak));
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_RETRANSMITTED_BYTES), 128);
    /* Stock's receiver names it by the id after the last term. */
    receive_status(&s, max, 32768);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_STATUS_MESSAGES_REJECTED), 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS), 0);
    CHECK_I64(counter(&s, ASI_COUNTER_TYPE_SENDER_LIMIT), max + 32768);
    close_stage(&s);
}

#define RUN_ON_STAGE(test) RUN_IN(stage, open_stage(&fixture), test, close_stage(&fixture))

int main(void)
{
    RUN(no_stamp_beyond_the_datagram);
    RUN_ON_STAGE(one_of_many_wakes_in_time);
    RUN_ON_STAGE(a_batch_goes_out_in_one_call);
    RUN_ON_STAGE(a_partial_batch_goes_on_where_it_stopped);
    RUN_ON_STAGE(back_pressure_counts_once_an_episode);
    RUN_ON_STAGE(a_refused_batch_is_tried_again);
    RUN_ON_STAGE(a_failing_network_is_logged_once_in_words);
    RUN_ON_STAGE(windows_that_no_receiver_has);
    RUN_ON_STAGE(a_control_frame_is_work);
    RUN_ON_STAGE(what_was_quiet_stays_awake);
    RUN(a_group_of_two);
    RUN(setups_that_nobody_answers_become_fewer);
    RUN_ON_STAGE(what_nobody_heard_of_is_revoked_in_silence);
    RUN(the_maximum_position);
    RUN(random_control_frames);
    return 0;
}
