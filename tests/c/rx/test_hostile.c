/* Datagrams of an attacker: random bytes, and stock frames with changed fields, among the frames of an honest publisher.
 * Nothing is read or written out of bounds (address and undefined sanitizers), the log beyond the window stays zero, and the
 * honest stream, whose session the attacker does not know, is received whole. TEST_SEED repeats a run. */
#include "rig.h"

#define ROUNDS 20000
#define HOSTILE_SESSION (SESSION + 1)

static int32_t bent_value(asi_rand *rand, int32_t honest)
{
    static const int32_t edges[] = { 0, -1, 1, 31, 32, 33, TERM - 32, TERM, TERM + 32, INT32_MAX, INT32_MIN, MTU, 40, 44 };
    switch (test_rand_below(rand, 4))
    {
        case 0: return edges[test_rand_below(rand, sizeof(edges) / sizeof(edges[0]))];
        case 1: return (int32_t)asi_rand_u64(rand);
        default: return honest;
    }
}

/* A frame of any type; `session_id` of the attacker's. Returns the datagram's length. */
static int32_t bent_frame(asi_rand *rand, uint8_t *bytes, int32_t session_id)
{
    for (int i = 0; i < 256; i += 8)
    {
        asi_put_i64(bytes + i, 0 == test_rand_below(rand, 2) ? (int64_t)asi_rand_u64(rand) : 0);
    }
    asi_frame_header *frame = (asi_frame_header *)(void *)bytes;
    const int32_t frame_length = (int32_t)test_rand_below(rand, 256);
    *frame = (asi_frame_header){
        .frame_length = bent_value(rand, frame_length),
        .version = 0 == test_rand_below(rand, 16) ? 1 : 0,
        .flags = (uint8_t)asi_rand_u64(rand),
        .type = (uint16_t)test_rand_below(rand, 13),
        .term_offset = bent_value(rand, 32 * (int32_t)test_rand_below(rand, TERM / 32)),
        .session_id = session_id,
        .stream_id = STREAM,
        .term_id = bent_value(rand, INITIAL_TERM),
        .reserved_value = (int64_t)asi_rand_u64(rand)
    };
    if (ASI_FRAME_SETUP == frame->type)
    {
        asi_setup_frame setup = setup_frame();
        setup.session_id = session_id;
        setup.term_offset = bent_value(rand, 0);
        setup.initial_term_id = bent_value(rand, INITIAL_TERM);
        setup.mtu_length = bent_value(rand, MTU);
        setup.term_length = bent_value(rand, TERM);
        memcpy(bytes, &setup, sizeof(setup));
    }
    if (ASI_FRAME_RTTM == frame->type)
    {
        ((asi_rttm_frame *)(void *)bytes)->session_id = session_id;
        ((asi_rttm_frame *)(void *)bytes)->stream_id = STREAM;
        ((asi_rttm_frame *)(void *)bytes)->receiver_id = 0 == test_rand_below(rand, 2) ? RIG_RECEIVER_ID : 0;
    }
    return 0 == test_rand_below(rand, 4) ? (int32_t)test_rand_below(rand, 257) :
        asi_align_i32(frame_length < 32 ? 32 : frame_length, 32);
}

static void attacker_without_the_session(void)
{
    rx_rig rig;
    const rig_options options = { .is_manual_images = true };
    asi_rand rand = test_rand();
    uint8_t bytes[512] __attribute__((aligned(8)));
    rig_open(&rig, &options);
    peer_setup(&rig);
    rig_cycles(&rig, 1);
    asi_rx_image *image = rig_make_image(&rig, &rig.create);
    rig_cycles(&rig, 2);
    int64_t position = 0;
    for (int round = 0; round < ROUNDS; round++)
    {
        const int32_t session_id = 0 == round % 2 ? HOSTILE_SESSION : (int32_t)asi_rand_u64(&rand);
        const int32_t length = bent_frame(&rand, bytes, SESSION == session_id ? HOSTILE_SESSION : session_id);
        if (length > 0)
        {
            peer_send(&rig, bytes, length);
        }
        if (0 == round % 4)
        {
            peer_data(&rig, position, 96);
            position += 128;
        }
        rig_cycles(&rig, 1);
        CHECK_I64(image->rebuild_position, position);
        if (0 == round % 100)
        {
            while (peer_receive(&rig, -1) > 0) {}
            rig_pass(&rig, 10 * RIG_MS, 10 * RIG_MS);
        }
    }
    CHECK(rig_counter(&rig, ASI_SYSTEM_INVALID_PACKETS) > 0);
    CHECK(rig.receiver.pending_count <= ASI_PENDING_SETUP_CAPACITY);
    rig_close(&rig);
}

/* It knows the session: the stream may suffer, nothing else may. */
static void attacker_with_the_session(void)
{
    rx_rig rig;
    const rig_options options = { .is_manual_images = true, .is_unreliable = true };
    asi_rand rand = test_rand();
    uint8_t bytes[512] __attribute__((aligned(8)));
    rig_open(&rig, &options);
    peer_setup(&rig);
    rig_cycles(&rig, 1);
    asi_rx_image *image = rig_make_image(&rig, &rig.create);
    rig_cycles(&rig, 2);
    for (int round = 0; round < ROUNDS; round++)
    {
        const int32_t length = bent_frame(&rand, bytes, SESSION);
        if (length > 0)
        {
            peer_send(&rig, bytes, length);
        }
        /* Subscribers' counters may hold anything, too. */
        rig.min_position = 0 == test_rand_below(&rand, 8) ? (int64_t)asi_rand_u64(&rand) : image->rebuild_position;
        rig.max_position = 0 == test_rand_below(&rand, 8) ? (int64_t)asi_rand_u64(&rand) : image->rebuild_position;
        const int64_t rebuilt = image->rebuild_position;
        rig_cycles(&rig, 1);
        CHECK(image->rebuild_position >= rebuilt);
        CHECK(image->next_sm_position <= image->rebuild_position);
        /* A padding frame that begins inside the window may end behind it, with its term at the latest. */
        CHECK(image->hwm <= asi_align_i64(image->over_run_threshold, TERM) || image->hwm == image->join_position);
        CHECK(image->floor_position >= image->join_position && image->floor_position <= image->rebuild_position);
        if (0 == round % 100)
        {
            while (peer_receive(&rig, -1) > 0) {}
        }
    }
    rig_close(&rig);
}

/* Data of ever new sessions: memory and answers are bounded. */
static void a_flood_of_sessions(void)
{
    rx_rig rig;
    const rig_options options = { .is_manual_images = true };
    uint8_t bytes[512] __attribute__((aligned(8)));
    rig_open(&rig, &options);
    for (int32_t i = 0; i < ASI_PENDING_SETUP_CAPACITY + 1000; i++)
    {
        const int32_t length = put_frame(bytes, 0, 96);
        ((asi_frame_header *)(void *)bytes)->session_id = i;
        peer_send(&rig, bytes, length);
        rig_cycle(&rig);
        while (peer_receive(&rig, -1) > 0) {}
    }
    CHECK_I64(rig.receiver.pending_count, ASI_PENDING_SETUP_CAPACITY);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_STATUS_MESSAGES_SENT), ASI_PENDING_SETUP_CAPACITY);
    rig_pass(&rig, 1100 * RIG_MS, 100 * RIG_MS);
    CHECK_I64(rig.receiver.pending_count, 0);
    CHECK(NULL == asi_dispatch_find(&rig.receiver.dispatch, &rig.endpoint, STREAM, 5));
    rig_close(&rig);
}

int main(void)
{
    RUN(attacker_without_the_session);
    RUN(attacker_with_the_session);
    RUN(a_flood_of_sessions);
    return 0;
}
