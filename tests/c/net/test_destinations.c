/* Destination lists over a network in memory: which receivers are added and dropped, what is sent to which, and what counts as
 * sent. Spec: 04 §11, §25 scenarios 28-30. */
#include "fake_net.h"

#include "driver/net/destinations.h"

#define SECOND 1000000000LL

static fake_net net;
static asi_udp_ops ops;
static int64_t counter;
static asi_newcomer_reserve reserve;

static asi_udp_socket *open_at(uint16_t port)
{
    const asi_udp_params params = { .bind = fake_address("127.0.0.1", port) };
    asi_udp_socket *socket;
    CHECK_I64(ops.open(ops.context, &params, &socket), AS_OK);
    return socket;
}

static int32_t send_three(asi_destinations *destinations, asi_udp_socket *from, int64_t now_ns, as_result expected, int64_t *bytes)
{
    const asi_outgoing datagrams[] = {
        { .bytes = "a", .length = 1 }, { .bytes = "bb", .length = 2 }, { .bytes = "ccc", .length = 3 }
    };
    asi_fan_out fan_out = { 0 };
    int64_t budget = INT64_MAX;
    int32_t sent = -1;
    CHECK_I64(asi_destinations_send(
        destinations, &ops, from, datagrams, 3, now_ns, &fan_out, &budget, &sent, bytes), expected);
    CHECK_I64(fan_out.slots, 0);
    return sent;
}

static void dynamic_ones_come_and_go(void)
{
    asi_destinations destinations;
    asi_udp_socket *from = open_at(100);
    asi_udp_socket *q1 = open_at(101);
    asi_udp_socket *q2 = open_at(102);
    const asi_address at1 = fake_address("127.0.0.1", 101);
    const asi_address at2 = fake_address("127.0.0.1", 102);
    const asi_address elsewhere = fake_address("10.0.0.1", 101);
    int64_t bytes;
    CHECK_I64(asi_destinations_open(&destinations, false, 4, 4, &counter), AS_OK);
    CHECK_I64(send_three(&destinations, from, SECOND, AS_OK, &bytes), 3); /* no receiver: all is sent */
    CHECK_I64(bytes, 0);
    asi_destinations_on_status_message(&destinations, 1, &at1, ASI_PROVEN, SECOND);
    asi_destinations_on_status_message(&destinations, 2, &at2, ASI_PROVEN, SECOND);
    asi_destinations_on_status_message(&destinations, 1, &elsewhere, ASI_PROVEN, SECOND); /* same receiver and port: same one */
    CHECK_I64(counter, 2);
    CHECK_I64(send_three(&destinations, from, 2 * SECOND, AS_OK, &bytes), 3);
    CHECK_I64(bytes, 12);
    CHECK_I64(q1->count, 3);
    CHECK_I64(q2->count, 3);
    asi_destinations_on_status_message(&destinations, 1, &at1, ASI_PROVEN, 6 * SECOND);
    CHECK_I64(send_three(&destinations, from, 6 * SECOND, AS_OK, &bytes), 3);
    CHECK_I64(counter, 2); /* exactly 5 s is not more than 5 s */
    CHECK_I64(send_three(&destinations, from, 6 * SECOND + 1, AS_OK, &bytes), 3);
    CHECK_I64(counter, 1);
    CHECK_I64(bytes, 6);
    CHECK_I64(asi_destinations_find(&destinations, 1, &at1)->registration_id, -1);
    CHECK(NULL == asi_destinations_next_silent(&destinations, 100 * SECOND));
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
    ops.close(ops.context, q1);
    ops.close(ops.context, q2);
}

static void a_flood_is_bounded(void)
{
    asi_destinations destinations;
    CHECK_I64(asi_destinations_open(&destinations, false, 8, 100, &counter), AS_OK);
    for (int64_t i = 0; i < 100; i++)
    {
        const asi_address at = fake_address("127.0.0.1", (uint16_t)(1000 + i));
        asi_destinations_on_status_message(&destinations, i, &at, ASI_PROVEN, SECOND);
    }
    CHECK_I64(counter, 8);
    asi_destinations_close(&destinations);
    asi_destinations_close(&destinations);
}

static const uint8_t introduction[40];

/* A channel of so many streams; the frame of each begins with its number. */
typedef struct channel
{
    int32_t streams;
    uint8_t frames[ASI_NEWCOMER_FRAMES][40];
} channel;

static int32_t next_frames(void *context, int64_t *cursor, asi_outgoing *datagrams, int32_t capacity)
{
    channel *of = context;
    const int32_t count = capacity < of->streams ? capacity : of->streams;
    for (int32_t i = 0; i < count; i++)
    {
        of->frames[i][0] = (uint8_t)((*cursor + i) % of->streams);
        datagrams[i] = (asi_outgoing){ .bytes = of->frames[i], .length = sizeof(of->frames[i]) };
    }
    *cursor += count;
    return count;
}

/* Rounds for newcomers to a channel of so many streams; the bytes that went out. */
static int64_t introduce(asi_destinations *destinations, asi_udp_socket *from, int32_t streams, int64_t now_ns)
{
    channel of = { .streams = streams };
    const asi_introductions introductions = { .next = next_frames, .context = &of };
    return asi_destinations_introduce(destinations, &reserve, &ops, from, &introductions, now_ns);
}

/* Who only asks gets three rounds for each time it asks, and no data; who then names what only a hearer of the answer knows gets it,
 * where it named it; and whose last proof is old is asked again. */
static void a_newcomer_proves_itself_first(void)
{
    asi_destinations destinations;
    asi_udp_socket *from = open_at(100);
    asi_udp_socket *q = open_at(101);
    const asi_address at = fake_address("127.0.0.1", 101);
    const asi_address forged = fake_address("10.0.0.1", 101);
    const asi_outgoing setup = { .bytes = introduction, .length = sizeof(introduction) };
    int64_t bytes;
    CHECK_I64(asi_destinations_open(&destinations, false, 8, 8, &counter), AS_OK);
    CHECK_I64(destinations.next_round_ns, INT64_MAX);
    asi_destinations_on_status_message(&destinations, 1, &forged, ASI_UNPROVEN, SECOND);
    CHECK_I64(counter, 1);
    CHECK_I64(send_three(&destinations, from, SECOND, AS_OK, &bytes), 3);
    CHECK_I64(bytes, 0);
    CHECK_I64(destinations.next_round_ns, SECOND);
    net.is_busy = true; /* full of what goes to hosts that may not exist */
    CHECK_I64(introduce(&destinations, from, 1, SECOND), 0);
    net.is_busy = false;
    asi_destinations_on_status_message(&destinations, 1, &forged, ASI_UNPROVEN, SECOND);
    destinations.items[0].next_round_ns = destinations.next_round_ns = SECOND;
    CHECK_I64(introduce(&destinations, from, 1, SECOND), 40);
    CHECK_I64(introduce(&destinations, from, 1, SECOND), 0);
    CHECK_I64(destinations.next_round_ns, SECOND + ASI_NEWCOMER_INTERVAL_NS);
    CHECK_I64(introduce(&destinations, from, 1, 2 * SECOND), 40);
    CHECK_I64(asi_destinations_send_introduced(&destinations, &ops, from, &setup, 2 * SECOND), 0);
    CHECK_I64(introduce(&destinations, from, 1, 3 * SECOND), 40);
    CHECK_I64(introduce(&destinations, from, 1, 4 * SECOND), 0);
    CHECK_I64(destinations.next_round_ns, INT64_MAX);
    /* Many publications: so many frames, whatever the rounds. */
    asi_destinations_on_status_message(&destinations, 1, &forged, ASI_INTRODUCED, 5 * SECOND);
    CHECK_I64(introduce(&destinations, from, 20, 5 * SECOND), 800);
    CHECK_I64(asi_destinations_send_introduced(&destinations, &ops, from, &setup, 5 * SECOND), 40);
    CHECK_I64(introduce(&destinations, from, 20, 6 * SECOND), 480);
    CHECK_I64(introduce(&destinations, from, 20, 7 * SECOND), 0);
    CHECK_I64(q->count, 0);
    asi_destinations_on_status_message(&destinations, 1, &at, ASI_PROVEN, 7 * SECOND);
    CHECK_I64(send_three(&destinations, from, 7 * SECOND, AS_OK, &bytes), 3);
    CHECK_I64(q->count, 3);
    CHECK_I64(counter, 1);
    /* It goes on asking, but proves nothing. */
    asi_destinations_on_status_message(&destinations, 1, &at, ASI_UNPROVEN, 12 * SECOND);
    CHECK_I64(introduce(&destinations, from, 1, 12 * SECOND), 0);
    CHECK_I64(send_three(&destinations, from, 12 * SECOND + 1, AS_OK, &bytes), 3);
    CHECK_I64(bytes, 0);
    CHECK_I64(counter, 1);
    CHECK_I64(destinations.newcomer_count, 1);
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
    ops.close(ops.context, q);
}

/* Status messages in others' names, to a channel with many streams. While the reserve is full, who asks gets all streams at once; a
 * flood gets three frames for each of its own, and what the reserve gains. */
static void a_flood_is_answered_in_kind(void)
{
    enum { STREAMS = 20, ASKED = 3000, SECONDS = 10 };
    asi_destinations destinations;
    asi_udp_socket *from = open_at(100);
    asi_udp_socket *honest = open_at(101);
    const asi_address at = fake_address("127.0.0.1", 101);
    int64_t sent = 0;
    reserve = (asi_newcomer_reserve){ 0 };
    CHECK_I64(asi_destinations_open(&destinations, false, 8, 8, &counter), AS_OK);
    asi_destinations_on_status_message(&destinations, 1, &at, ASI_UNPROVEN, SECOND);
    CHECK_I64(introduce(&destinations, from, STREAMS, SECOND), STREAMS * 40);
    CHECK_I64(honest->count, STREAMS);
    for (int64_t i = 0; i < ASKED; i++)
    {
        const int64_t now_ns = 2 * SECOND + i * SECONDS * SECOND / ASKED;
        const asi_address forged = fake_address("10.0.0.1", (uint16_t)(1000 + i));
        asi_destinations_on_status_message(&destinations, 10 + i, &forged, ASI_UNPROVEN, now_ns);
        sent += introduce(&destinations, from, STREAMS, now_ns);
    }
    CHECK(sent <= (ASI_NEWCOMER_ROUNDS * ASKED + ASI_NEWCOMER_RESERVE + SECONDS * SECOND / ASI_NEWCOMER_RESERVE_NS) * 40);
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
    ops.close(ops.context, honest);
}

/* The flood takes the honest one's place before it asks again, always after as many requests as there are streams. */
static void a_fast_flood_in_step_hides_no_stream(void)
{
    enum { STREAMS = 24, ASKS = 400 };
    asi_destinations destinations;
    asi_udp_socket *from = open_at(100);
    asi_udp_socket *honest = open_at(101);
    const asi_address at = fake_address("127.0.0.1", 101);
    bool is_heard[STREAMS] = { false };
    int32_t heard = 0;
    reserve = (asi_newcomer_reserve){ .taken = ASI_NEWCOMER_RESERVE, .counted_ns = SECOND };
    CHECK_I64(asi_destinations_open(&destinations, false, 8, 8, &counter), AS_OK);
    for (int64_t i = 0; i < (int64_t)ASKS * STREAMS; i++)
    {
        const asi_address forged = fake_address("10.0.0.1", (uint16_t)(1000 + i));
        const bool is_honest = 0 == i % STREAMS;
        asi_destinations_on_status_message(&destinations, is_honest ? 1 : 10 + i, is_honest ? &at : &forged, ASI_UNPROVEN, SECOND);
        (void)introduce(&destinations, from, STREAMS, SECOND);
        for (; honest->count > 0; honest->count--, honest->head = (honest->head + 1) % FAKE_NET_QUEUE)
        {
            fake_datagram *datagram = &honest->queue[honest->head];
            heard += is_heard[datagram->bytes[0]] ? 0 : 1;
            is_heard[datagram->bytes[0]] = true;
            free(datagram->bytes);
        }
    }
    CHECK_I64(heard, STREAMS);
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
    ops.close(ops.context, honest);
}

/* More newcomers than a cycle serves: the next cycle continues behind the last one that was served. */
static void newcomers_take_turns(void)
{
    enum { NEWCOMERS = 6 }; /* four a cycle */
    static const int32_t ROUNDS[2][NEWCOMERS] = { { 1, 1, 1, 1, 0, 0 }, { 2, 2, 1, 1, 1, 1 } };
    asi_destinations destinations;
    asi_udp_socket *from = open_at(100);
    asi_udp_socket *askers[NEWCOMERS];
    reserve = (asi_newcomer_reserve){ 0 };
    CHECK_I64(asi_destinations_open(&destinations, false, 4 * NEWCOMERS, NEWCOMERS, &counter), AS_OK);
    for (uint16_t i = 0; i < NEWCOMERS; i++)
    {
        askers[i] = open_at((uint16_t)(101 + i));
    }
    for (int cycle = 0; cycle < 2; cycle++)
    {
        const int64_t now_ns = (1 + cycle) * SECOND;
        for (uint16_t i = 0; i < NEWCOMERS; i++)
        {
            const asi_address at = fake_address("127.0.0.1", (uint16_t)(101 + i));
            asi_destinations_on_status_message(&destinations, i, &at, ASI_UNPROVEN, now_ns);
        }
        (void)introduce(&destinations, from, ASI_NEWCOMER_FRAMES, now_ns);
        for (int i = 0; i < NEWCOMERS; i++)
        {
            CHECK_I64(askers[i]->count, ROUNDS[cycle][i] * ASI_NEWCOMER_FRAMES);
        }
    }
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
    for (int i = 0; i < NEWCOMERS; i++)
    {
        ops.close(ops.context, askers[i]);
    }
}

/* Newcomers take a quarter, the newest the place of the oldest; a proof takes the place of any; one address has its share. */
static void newcomers_keep_nobody_out(void)
{
    asi_destinations destinations;
    CHECK_I64(asi_destinations_open(&destinations, false, 8, 3, &counter), AS_OK);
    for (int64_t i = 0; i < 100; i++)
    {
        const asi_address at = fake_address("127.0.0.1", (uint16_t)(1000 + i));
        asi_destinations_on_status_message(&destinations, i, &at, ASI_UNPROVEN, SECOND + i);
    }
    CHECK_I64(counter, 2);
    const asi_address last = fake_address("127.0.0.1", 1099);
    CHECK(NULL != asi_destinations_find(&destinations, 99, &last));
    for (int64_t i = 0; i < 4; i++)
    {
        const asi_address at = fake_address("127.0.0.1", (uint16_t)(2000 + i));
        CHECK(!destinations.has_refused);
        asi_destinations_on_status_message(&destinations, 200 + i, &at, ASI_PROVEN, 2 * SECOND);
        CHECK(asi_destinations_find(&destinations, 200 + i, &at)->is_proven == (i < 3));
    }
    CHECK(destinations.has_refused);
    for (int64_t i = 0; i < 9; i++)
    {
        char host[16];
        snprintf(host, sizeof(host), "10.0.0.%d", (int)(1 + i));
        const asi_address at = fake_address(host, 3000);
        asi_destinations_on_status_message(&destinations, 300 + i, &at, ASI_PROVEN, 3 * SECOND);
        CHECK((NULL != asi_destinations_find(&destinations, 300 + i, &at)) == (i < 5));
    }
    CHECK_I64(counter, 8);
    CHECK_I64(destinations.newcomer_count, 0);
    asi_destinations_on_status_message(&destinations, 99, &last, ASI_UNPROVEN, 3 * SECOND);
    CHECK(NULL == asi_destinations_find(&destinations, 99, &last));
    asi_destinations_close(&destinations);
}

/* A batch that its budget cuts short continues where it was, although destinations change, and reaches each one once. */
static void a_batch_takes_as_many_calls_as_it_needs(void)
{
    asi_destinations destinations;
    asi_udp_socket *from = open_at(100);
    asi_udp_socket *peers[6];
    const asi_outgoing datagram = { .bytes = "a", .length = 1 };
    asi_fan_out fan_out = { 0 };
    int64_t bytes = 0;
    int32_t sent = -1;
    CHECK_I64(asi_destinations_open(&destinations, true, 8, 1, &counter), AS_OK);
    for (uint16_t i = 0; i < 6; i++)
    {
        const asi_address at = fake_address("127.0.0.1", (uint16_t)(101 + i));
        peers[i] = open_at((uint16_t)(101 + i));
        CHECK(i >= 5 || asi_destinations_add(&destinations, &at, i, SECOND));
    }
    for (int32_t i = 0; i < 4; i++)
    {
        int64_t budget = 1; /* one call */
        CHECK_I64(asi_destinations_send(
            &destinations, &ops, from, &datagram, 1, SECOND, &fan_out, &budget, &sent, &bytes), AS_OK);
        CHECK_I64(sent, 3 == i ? 1 : 0);
        CHECK_I64(bytes, 1);
        const asi_address at = fake_address("127.0.0.1", 106);
        if (0 == i)
        {
            asi_destinations_remove(&destinations, 0); /* was served */
            asi_destinations_remove(&destinations, 3); /* was not */
            CHECK(asi_destinations_add(&destinations, &at, 5, SECOND)); /* where the first was: gets the next batch */
        }
    }
    CHECK_I64(fan_out.slots, 0);
    const int32_t expected[] = { 1, 1, 1, 0, 1, 0 };
    for (int32_t i = 0; i < 6; i++)
    {
        CHECK_I64(peers[i]->count, expected[i]);
        ops.close(ops.context, peers[i]);
    }
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
}

/* Spec: 11 T4, D20 - the first of a batch is another one each time, and each is it as often. */
static void each_begins_a_batch_as_often(void)
{
    asi_destinations destinations;
    asi_udp_socket *from = open_at(100);
    int32_t first_of[3] = { 0 };
    asi_fan_out fan_out = { 0 };
    int64_t bytes;
    int32_t sent;
    CHECK_I64(asi_destinations_open(&destinations, true, 3, 1, &counter), AS_OK);
    for (uint16_t i = 0; i < 3; i++)
    {
        const asi_address at = fake_address("127.0.0.1", (uint16_t)(101 + i));
        CHECK(asi_destinations_add(&destinations, &at, i, SECOND));
    }
    for (int32_t i = 0; i < 300; i++)
    {
        const asi_outgoing datagram = { .bytes = "a", .length = 1 };
        int64_t budget = 1; /* one call */
        CHECK_I64(asi_destinations_send(
            &destinations, &ops, from, &datagram, 1, SECOND, &fan_out, &budget, &sent, &bytes), AS_OK);
        first_of[fan_out.start]++;
        budget = INT64_MAX;
        CHECK_I64(asi_destinations_send(
            &destinations, &ops, from, &datagram, 1, SECOND, &fan_out, &budget, &sent, &bytes), AS_OK);
    }
    CHECK(100 == first_of[0] && 100 == first_of[1] && 100 == first_of[2]);
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
}

static void manual_ones_are_listed(void)
{
    asi_destinations destinations;
    const asi_address at1 = fake_address("127.0.0.1", 101);
    const asi_address at2 = fake_address("127.0.0.1", 102);
    const asi_address at3 = fake_address("127.0.0.1", 103);
    const asi_address nowhere = { .any = { .sa_family = AF_UNSPEC } };
    int64_t bytes;
    asi_udp_socket *from = open_at(100);
    CHECK_I64(asi_destinations_open(&destinations, true, 3, 1, &counter), AS_OK);
    CHECK(asi_destinations_add(&destinations, &at1, 11, SECOND));
    CHECK(asi_destinations_add(&destinations, &at2, 12, SECOND));
    CHECK(asi_destinations_add(&destinations, &nowhere, 13, SECOND)); /* its name is not known yet */
    CHECK(!asi_destinations_add(&destinations, &at3, 14, SECOND));
    asi_destinations_on_status_message(&destinations, 7, &at3, ASI_PROVEN, SECOND);
    CHECK_I64(counter, 3);
    CHECK_I64(send_three(&destinations, from, 100 * SECOND, AS_OK, &bytes), 3);
    CHECK_I64(bytes, 12);
    /* Bound to a receiver by its first SM. */
    asi_destinations_on_status_message(&destinations, 21, &at1, ASI_PROVEN, 99 * SECOND);
    const asi_address moved = fake_address("10.0.0.1", 101);
    CHECK_I64(asi_destinations_find(&destinations, 21, &moved)->registration_id, 11);
    CHECK(NULL == asi_destinations_find(&destinations, 22, &at1));
    asi_destinations_on_status_message(&destinations, 22, &at1, ASI_PROVEN, 300 * SECOND); /* of another receiver */
    CHECK_I64(destinations.items[0].last_activity_ns, 99 * SECOND);
    CHECK_I64(destinations.items[0].receiver_id, 21);
    CHECK_I64(asi_destinations_find(&destinations, 22, &at2)->registration_id, 12);
    /* The silent ones are asked about once per timeout. */
    CHECK_I64(asi_destinations_next_silent(&destinations, 100 * SECOND)->registration_id, 12);
    CHECK_I64(asi_destinations_next_silent(&destinations, 100 * SECOND)->registration_id, 13);
    CHECK(NULL == asi_destinations_next_silent(&destinations, 100 * SECOND));
    asi_destinations_remove(&destinations, 14); /* absent: fine */
    asi_destinations_remove(&destinations, 11);
    asi_destinations_remove(&destinations, 13);
    asi_destinations_remove(&destinations, 13);
    CHECK_I64(counter, 1);
    CHECK(12 == destinations.items[1].registration_id && destinations.items[1].is_used && !destinations.items[0].is_used);
    asi_destinations_on_status_message(&destinations, 7, &at3, ASI_PROVEN, SECOND); /* there is space, but no command added it */
    CHECK_I64(counter, 1);
    CHECK(asi_destinations_add(&destinations, &at3, 14, SECOND)); /* into the place of one that went */
    CHECK_I64(destinations.slot_count, 2);
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
}

/* Spec: 04 §11.3 */
static void what_counts_as_sent(void)
{
    asi_destinations destinations;
    const asi_address at1 = fake_address("127.0.0.1", 101);
    asi_udp_socket *from = open_at(100);
    int64_t bytes;
    CHECK_I64(asi_destinations_open(&destinations, true, 3, 1, &counter), AS_OK);
    CHECK(asi_destinations_add(&destinations, &at1, 11, SECOND));
    net.is_full = true;
    CHECK_I64(send_three(&destinations, from, SECOND, AS_OK, &bytes), 3);
    CHECK_I64(bytes, 0);
    net.is_full = false;
    net.fail_with = EPERM;
    CHECK_I64(send_three(&destinations, from, SECOND, AS_E_USAGE, &bytes), 0);
    net.fail_with = 0;
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
}

/* Decision 54. Whichever begins, in one call or in several. */
static void a_failing_one_holds_no_other(void)
{
    asi_destinations destinations;
    asi_udp_socket *from = open_at(100);
    asi_udp_socket *other = open_at(102);
    const asi_address at1 = fake_address("127.0.0.1", 101);
    const asi_address at2 = fake_address("127.0.0.1", 102);
    const asi_outgoing datagram = { .bytes = "a", .length = 1 };
    int64_t bytes;
    CHECK_I64(asi_destinations_open(&destinations, true, 2, 1, &counter), AS_OK);
    CHECK(asi_destinations_add(&destinations, &at1, 11, SECOND) && asi_destinations_add(&destinations, &at2, 12, SECOND));
    net.fail_with = ENETUNREACH;
    net.fail_to = 101;
    for (int i = 1; i <= 4; i++)
    {
        CHECK_I64(send_three(&destinations, from, SECOND, AS_E_USAGE, &bytes), 3);
        CHECK_I64(bytes, 6);
        CHECK_I64(other->count, 3 * i);
    }
    for (int i = 0; i < 2; i++)
    {
        asi_fan_out fan_out = { 0 };
        int failures = 0;
        int32_t sent = 0;
        for (int call = 0; call < 2; call++)
        {
            int64_t budget = 1;
            CHECK_I64(sent, 0);
            failures += AS_OK != asi_destinations_send(
                &destinations, &ops, from, &datagram, 1, SECOND, &fan_out, &budget, &sent, &bytes) ? 1 : 0;
        }
        CHECK(1 == failures && 1 == sent && 0 == fan_out.slots);
        CHECK_I64(other->count, 13 + i);
    }
    net.fail_to = 0;
    CHECK_I64(send_three(&destinations, from, SECOND, AS_E_USAGE, &bytes), 0);
    net.fail_with = 0;
    asi_destinations_close(&destinations);
    ops.close(ops.context, from);
    ops.close(ops.context, other);
}

int main(void)
{
    ops = fake_net_ops(&net);
    RUN(dynamic_ones_come_and_go);
    RUN(a_flood_is_bounded);
    RUN(a_newcomer_proves_itself_first);
    RUN(a_flood_is_answered_in_kind);
    RUN(a_fast_flood_in_step_hides_no_stream);
    RUN(newcomers_take_turns);
    RUN(newcomers_keep_nobody_out);
    RUN(a_batch_takes_as_many_calls_as_it_needs);
    RUN(each_begins_a_batch_as_often);
    RUN(manual_ones_are_listed);
    RUN(what_counts_as_sent);
    RUN(a_failing_one_holds_no_other);
    return 0;
}
