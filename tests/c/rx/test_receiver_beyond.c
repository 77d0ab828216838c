/* The receiver beyond the scenarios of Spec: 04 §25: destinations, full queues, and a log that is used for many laps.
 * Spec: 04 §8.8. */
#include "rig.h"

/* Spec: 04 §3.2 - data on the odd address, control to the even one; Spec: 04 §8.4 - a SETUP that may go further than we can answer. */
static void multicast_control_goes_to_the_even_address(void)
{
    rx_rig rig;
    const rig_options options = { .channel = "aeron:udp?endpoint=224.20.30.39:24000|interface=127.0.0.1" };
    rig_open(&rig, &options);
    const asi_udp_params params = { .bind = fake_address("0.0.0.0", 24000), .group = fake_address("224.20.30.40", 24000) };
    asi_udp_socket *control;
    CHECK_I64(rig.ops.open(rig.ops.context, &params, &control), AS_OK);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 2);
    CHECK_I64(peer_receive_at(&rig, control, -1), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, ASI_STATUS_FLAG_SEND_SETUP);
    asi_setup_frame setup = setup_frame();
    setup.ttl = 4;
    setup.prefix.flags = ASI_SETUP_FLAG_GROUP;
    peer_send(&rig, &setup, sizeof(setup));
    rig_cycles(&rig, 3);
    CHECK_I64(rig.create.flags, ASI_SETUP_FLAG_GROUP);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_POSSIBLE_TTL_ASYMMETRY), 1);
    CHECK_I64(peer_receive_at(&rig, control, -1), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, 0);
    CHECK_I64(peer_receive(&rig, -1), 0);
    rig.destinations[0].ttl = 4; /* as the settings' default would be: what counts is how far the socket really reaches */
    setup.session_id = SESSION + 1;
    peer_send(&rig, &setup, sizeof(setup));
    rig_cycles(&rig, 3);
    CHECK_I64(rig.image_count, 2);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_POSSIBLE_TTL_ASYMMETRY), 1);
    rig.ops.close(rig.ops.context, control);
    rig_close(&rig);
}

/* A session that was asked for through a destination that goes is asked for through the next one its data comes in by. */
static void a_destination_takes_its_questions_with_it(void)
{
    rx_rig rig;
    const rig_options options = { .second = "aeron:udp?endpoint=127.0.0.1:24001" };
    rig_open(&rig, &options);
    const asi_address second = fake_address("127.0.0.1", 24001);
    uint8_t bytes[512] __attribute__((aligned(8)));
    const int32_t length = put_frame(bytes, 0, 96);
    peer_send_to(&rig, rig.peer, bytes, length, &second);
    rig_cycles(&rig, 1);
    CHECK_I64(peer_count(&rig, ASI_FRAME_STATUS), 1);
    rig_send_command(&rig,
        (asi_receiver_command){ .kind = ASI_RECEIVER_REMOVE_DESTINATION, .destination = &rig.destinations[1] });
    rig_cycles(&rig, 1);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 1);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_STATUS), 36);
    CHECK_I64(got_status(&rig)->prefix.flags, ASI_STATUS_FLAG_SEND_SETUP);
    rig_close(&rig);
}

/* Endpoint away with everything that hangs on it. */
static void endpoints_are_given_back(void)
{
    rx_rig rig;
    const rig_options options = { .channel = "aeron:udp?endpoint=127.0.0.1:24000|control=127.0.0.1:24100" };
    rig_open(&rig, &options);
    peer_data(&rig, 0, 96);
    rig_cycles(&rig, 1);
    CHECK(rig.receiver.pending_count >= 2);
    rig_send_command(&rig, (asi_receiver_command){ .kind = ASI_RECEIVER_REMOVE_ENDPOINT });
    rig_cycles(&rig, 1);
    CHECK(rig.endpoint.is_released && rig.destinations[0].is_released);
    CHECK_I64(rig.receiver.pending_count, 0);
    CHECK_I64(rig.receiver.endpoint_count, 0);
    CHECK_I64(rig.endpoint.stream_count, 0);
    rig_close(&rig);
}

/* Interest goes while there is an image: its data is ignored from then on. */
static void images_nobody_wants_get_no_data(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_REMOVE_STREAM, .stream_id = STREAM });
    rig_cycles(rig, 1);
    peer_data(rig, 0, 96);
    rig_cycles(rig, 1);
    CHECK_I64(image->hwm, 0);
    CHECK_I64(peer_receive(rig, -1), 0);
    rig_pass(rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_count(rig, ASI_FRAME_STATUS), 1); /* it still owes status messages until it is removed */
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_REMOVE_IMAGE, .image = image });
    rig_cycles(rig, 1);
    CHECK(image->is_released);
    CHECK_I64(rig->receiver.image_count, 0);
}

/* Interest in one session ends with the subscription that had it: later data of the session requests no SETUP, and a SETUP asks
 * for no image. Another session of the stream keeps its own. */
static void a_session_nobody_wants_is_left_alone(void)
{
    static const struct { bool is_removed; int32_t removed; int asked; } ROWS[] = {
        { false, 0, 1 }, { true, SESSION, 0 }, { true, SESSION + 1, 1 }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        rx_rig rig;
        const rig_options options = { .no_interest = true };
        rig_open(&rig, &options);
        for (int32_t session = SESSION; session <= SESSION + 1; session++)
        {
            rig_send_command(&rig,
                (asi_receiver_command){ .kind = ASI_RECEIVER_ADD_SESSION, .stream_id = STREAM, .session_id = session });
        }
        if (ROWS[i].is_removed)
        {
            rig_send_command(&rig, (asi_receiver_command){
                .kind = ASI_RECEIVER_REMOVE_SESSION, .stream_id = STREAM, .session_id = ROWS[i].removed });
        }
        rig_cycles(&rig, 1);
        peer_data(&rig, 0, 96);
        rig_cycles(&rig, 1);
        CHECK_I64(peer_count(&rig, ASI_FRAME_STATUS), ROWS[i].asked);
        peer_setup(&rig);
        rig_cycles(&rig, 1);
        CHECK_I64(rig.create_count, ROWS[i].asked);
        rig_close(&rig);
    }
}

/* A host that invents sessions can fill the table. Others are then neither asked for nor made, and the receiver continues. */
static void a_full_table_of_sessions(rx_rig *rig)
{
    int32_t session = SESSION + 1;
    while (NULL != asi_dispatch_get_or_add(&rig->receiver.dispatch, &rig->endpoint, STREAM, session))
    {
        session++;
    }
    peer_data(rig, 0, 96);
    peer_setup(rig);
    rig_cycles(rig, 2);
    CHECK_I64(rig->create_count, 0);
    CHECK_I64(peer_receive(rig, -1), 0);
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_REMOVE_STREAM, .stream_id = STREAM });
    rig_send_command(rig, (asi_receiver_command){ .kind = ASI_RECEIVER_ADD_STREAM, .stream_id = STREAM });
    rig_cycles(rig, 1);
    rig_join(rig);
}

/* A full conductor's box loses the request only; the next SETUP asks again. */
static void a_full_conductor_box_loses_nothing_for_good(rx_rig *rig)
{
    const asi_conductor_command filler = { .kind = ASI_CONDUCTOR_ERROR };
    while (asi_command_queue_put(&rig->to_conductor, &filler))
    {
    }
    peer_setup(rig);
    asi_receiver_do_work(&rig->receiver);
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_CONDUCTOR_OFFER_FAILURES), 1);
    rig_drain_commands(rig);
    CHECK_I64(rig->create_count, 0);
    rig_join(rig);
}

/* Sends that fail or don't fit are counted and not fatal. */
static void short_sends_are_counted(rx_rig *rig)
{
    rig_join(rig);
    peer_be_heard(rig);
    rig->net.is_full = true;
    rig_pass(rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_SHORT_SENDS), 1);
    rig->net.is_full = false;
    rig->net.fail_with = EPERM;
    rig_pass(rig, 220 * RIG_MS, 20 * RIG_MS);
    rig->net.fail_with = 0;
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_SHORT_SENDS), 2);
    CHECK_I64(rig->error_count, 1);
    rig_pass(rig, 220 * RIG_MS, 20 * RIG_MS);
    CHECK_I64(peer_count(rig, ASI_FRAME_STATUS), 1);
}

/* Whole terms, several laps: slots are zeroed in time, and readers see correct bytes only. */
static void laps_of_the_log(rx_rig *rig)
{
    asi_rx_image *image = rig_join(rig);
    int64_t at = 0;
    int32_t payload = 96;
    while (at < 10 * (int64_t)TERM)
    {
        const int64_t left = TERM - at % TERM;
        const int32_t fits = left - 32 < payload ? (int32_t)left - 32 : payload;
        peer_data(rig, at, fits);
        rig_cycles(rig, 2);
        CHECK(log_has(image, at, fits));
        at += asi_frame_occupancy(32 + fits);
        CHECK_I64(image->rebuild_position, at);
        payload = 32 + (payload * 7 + 96) % 1312;
    }
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_FLOW_CONTROL_OVER_RUNS), 0);
}

static bool is_zero(const asi_rx_image *image, int64_t position, int64_t length)
{
    const uint8_t *slot = image->log.terms[position / TERM % ASI_LOG_PARTITION_COUNT] + position % TERM;
    for (int64_t i = 0; i < length; i++)
    {
        if (0 != slot[i])
        {
            return false;
        }
    }
    return true;
}

/* Datagrams of a window in any order, some of them twice, over several laps: what is there reads as it was sent, and what is not
 * is zero, though the lap before left its bytes everywhere. */
static void laps_out_of_order(rx_rig *rig)
{
    enum { COUNT = 24, PAYLOAD = 640 - 32, STEP = 640 };
    asi_rx_image *image = rig_join(rig);
    asi_rand rand = test_rand();
    for (int64_t base = 0; base < 8 * (int64_t)TERM;)
    {
        const int64_t left = (TERM - base % TERM) / STEP;
        const int32_t count = left < COUNT ? (int32_t)left : COUNT;
        bool is_there[COUNT + 1] = { false };
        for (int32_t missing = count; missing > 0;)
        {
            const int32_t at = (int32_t)test_rand_below(&rand, count);
            missing -= is_there[at] ? 0 : 1;
            is_there[at] = true;
            peer_data(rig, base + (int64_t)at * STEP, PAYLOAD);
            asi_receiver_do_work(&rig->receiver);
            for (int32_t i = 0; i <= count && base + (int64_t)i * STEP <= image->hwm; i++)
            {
                const int64_t position = base + (int64_t)i * STEP;
                const int64_t seen = image->hwm - position < STEP ? AS_FRAME_ALIGNMENT : STEP;
                CHECK(is_there[i] ? log_has(image, position, PAYLOAD) : is_zero(image, position, seen));
            }
        }
        base += (int64_t)count * STEP;
        if (TERM - base % TERM < STEP)
        {
            uint8_t padding[AS_FRAME_HEADER_LENGTH] __attribute__((aligned(8)));
            put_frame(padding, base, 0);
            ((asi_frame_header *)(void *)padding)->frame_length = (int32_t)(TERM - base % TERM);
            ((asi_frame_header *)(void *)padding)->type = ASI_FRAME_PAD;
            peer_send(rig, padding, sizeof(padding));
            base += TERM - base % TERM;
        }
        rig_cycles(rig, 2);
        CHECK_I64(image->rebuild_position, base);
        CHECK(is_zero(image, base, AS_FRAME_ALIGNMENT));
    }
}

/* A datagram whose first frame is known is dropped whole; rcv-hwm rises by what it brought, and what is there now must be zero
 * and not what the lap before left. One whose frames are no frames raises nothing. */
static void known_first_frame(rx_rig *rig)
{
    enum { PAYLOAD = 640 - 32, STEP = 640 };
    asi_rx_image *image = rig_join(rig);
    int64_t at = 0;
    while (at < 4 * (int64_t)TERM)
    {
        const int64_t left = TERM - at % TERM;
        const int32_t payload = (int32_t)(left < STEP ? left : STEP) - AS_FRAME_HEADER_LENGTH;
        peer_data(rig, at, payload);
        rig_cycles(rig, 2);
        at += asi_frame_occupancy(AS_FRAME_HEADER_LENGTH + payload);
    }
    uint8_t bytes[2 * STEP + AS_FRAME_ALIGNMENT] __attribute__((aligned(8))) = { 0 };
    put_frame(bytes, at, PAYLOAD);
    peer_data(rig, at, PAYLOAD);
    peer_send(rig, bytes, STEP + AS_FRAME_ALIGNMENT);
    rig_cycles(rig, 2);
    CHECK_I64(image->hwm, at + STEP);
    CHECK_I64(rig_counter(rig, ASI_SYSTEM_INVALID_PACKETS), 1);
    put_frame(bytes + STEP, at + STEP, PAYLOAD);
    peer_send(rig, bytes, 2 * STEP);
    rig_cycles(rig, 2);
    CHECK_I64(image->hwm, at + 2 * STEP);
    CHECK_I64(image->rebuild_position, at + STEP);
    CHECK(is_zero(image, at + STEP, STEP + AS_FRAME_ALIGNMENT));
    peer_send(rig, bytes + STEP, STEP);
    rig_cycles(rig, 2);
    CHECK_I64(image->rebuild_position, at + 2 * STEP);
    CHECK(log_has(image, at + STEP, PAYLOAD));
}

/* Stock's sender names the maximum position by the id after its last term. Its receiver does not know that name. */
static void the_maximum_position(void)
{
    rx_rig rig;
    const rig_options options = { .receiver_window = 256 };
    rig_open(&rig, &options);
    enum { PAYLOAD = 96, STEP = 128 };
    const int64_t max = asi_log_max_position(TERM);
    asi_setup_frame setup = setup_frame();
    setup.active_term_id = asi_wrap_add(INITIAL_TERM, INT32_MAX);
    setup.term_offset = TERM - 2 * STEP;
    peer_send(&rig, &setup, sizeof(setup));
    rig_cycles(&rig, 2);
    CHECK_I64(rig.image_count, 1);
    const asi_rx_image *image = rig.images[0];
    peer_data(&rig, max - 2 * STEP, PAYLOAD);
    rig_cycles(&rig, 2);
    CHECK_I64(image->rebuild_position, max - STEP);
    for (int i = 0; i < 64; i++) /* so that it may be sent as much */
    {
        peer_heartbeat(&rig, max, 0xC0);
        rig_cycles(&rig, 1);
    }
    CHECK_I64(image->hwm, max);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_NAK), sizeof(asi_nak_frame));
    CHECK_I64(got_nak(&rig)->term_offset, TERM - STEP);
    CHECK_I64(got_nak(&rig)->length, STEP);
    peer_data(&rig, max - STEP, PAYLOAD);
    rig_cycles(&rig, 2);
    CHECK_I64(image->rebuild_position, max);
    while (peer_receive(&rig, -1) > 0)
    {
    }
    rig_pass(&rig, 400 * RIG_MS, 100 * RIG_MS);
    CHECK_I64(peer_receive(&rig, ASI_FRAME_STATUS), ASI_STATUS_LENGTH);
    CHECK_I64(got_status(&rig)->consumption_term_id, setup.active_term_id);
    CHECK_I64(got_status(&rig)->consumption_term_offset, TERM - AS_FRAME_ALIGNMENT);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_INVALID_PACKETS), 0);
    /* Nothing lies beyond it. */
    peer_data(&rig, max, PAYLOAD);
    peer_heartbeat(&rig, max + 32, 0xC0);
    peer_heartbeat(&rig, max + TERM, 0xC0);
    peer_heartbeat(&rig, -TERM, 0xC0);
    rig_cycles(&rig, 4);
    CHECK_I64(rig_counter(&rig, ASI_SYSTEM_INVALID_PACKETS), 4);
    CHECK_I64(image->hwm, max);
    setup.term_offset = 0;
    setup.active_term_id = asi_wrap_add(INITIAL_TERM, INT32_MIN);
    peer_send(&rig, &setup, sizeof(setup));
    peer_heartbeat(&rig, max, 0xE0);
    rig_cycles(&rig, 2);
    CHECK(image->is_end_of_stream && !image->is_left_behind);
    CHECK_I64(image->log.metadata->end_of_stream_position, max);
    rig_close(&rig);
}

int main(void)
{
    RUN(multicast_control_goes_to_the_even_address);
    RUN(a_destination_takes_its_questions_with_it);
    RUN(endpoints_are_given_back);
    RUN_IN_RIG(images_nobody_wants_get_no_data);
    RUN(a_session_nobody_wants_is_left_alone);
    RUN_IN_RIG(a_full_table_of_sessions);
    RUN_IN_RIG(a_full_conductor_box_loses_nothing_for_good);
    RUN_IN_RIG(short_sends_are_counted);
    RUN_IN_RIG(laps_of_the_log);
    RUN_IN_RIG(laps_out_of_order);
    RUN_IN_RIG(known_first_frame);
    RUN(the_maximum_position);
    return 0;
}
