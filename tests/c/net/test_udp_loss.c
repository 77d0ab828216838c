/* Loss generators over a network in memory: which datagrams are lost, that a lost one arrives when it is sent again, and
 * which arguments are refused. Spec: 05 §10. */
#include "fake_net.h"

#include "base/bits.h"
#include "driver/net/udp_loss.h"
#include "wire/frame.h"

#define FRAME 1408

static fake_net net;
static asi_udp_ops inner;

typedef struct loss_rig
{
    asi_udp_loss *loss;
    asi_udp_ops ops;
    asi_udp_socket *from;
    asi_udp_socket *to;
    asi_address target;
} loss_rig;

static void rig_open_to(loss_rig *rig, asi_loss_direction direction, const char *kind, const char *args)
{
    const asi_udp_params from = { .bind = fake_address("127.0.0.1", 100) };
    const asi_udp_params to = { .bind = fake_address("127.0.0.1", 101) };
    rig->target = to.bind;
    CHECK_I64(asi_udp_loss_open(&inner, direction, kind, args, &rig->loss), AS_OK);
    rig->ops = asi_udp_loss_ops(rig->loss);
    CHECK_I64(rig->ops.open(rig->ops.context, &from, &rig->from), AS_OK);
    CHECK_I64(rig->ops.open(rig->ops.context, &to, &rig->to), AS_OK);
}

static void rig_open(loss_rig *rig, const char *kind, const char *args)
{
    rig_open_to(rig, ASI_LOSS_INCOMING, kind, args);
}

static void rig_close(loss_rig *rig)
{
    rig->ops.close(rig->ops.context, rig->from);
    rig->ops.close(rig->ops.context, rig->to);
    asi_udp_loss_close(rig->loss);
}

/* Sends frames of a stream, frame i at i * FRAME, and returns by bits which arrived, in order. */
static uint64_t pass_through(loss_rig *rig, int32_t session_id, int32_t term_id, int32_t count)
{
    static uint8_t buffers[ASI_UDP_MAX_BATCH][2048] __attribute__((aligned(8)));
    asi_incoming incoming[ASI_UDP_MAX_BATCH];
    uint64_t came = 0;
    int32_t last = -1;
    for (int32_t i = 0; i < count; i++)
    {
        uint8_t bytes[FRAME] __attribute__((aligned(8))) = { 0 };
        const asi_frame_header header = { .frame_length = FRAME, .type = ASI_FRAME_DATA, .term_offset = i * FRAME,
            .session_id = session_id, .stream_id = 1001, .term_id = term_id };
        memcpy(bytes, &header, sizeof(header));
        asi_put_i32(bytes + AS_FRAME_HEADER_LENGTH, i);
        const asi_outgoing datagram = { .bytes = bytes, .length = FRAME, .to = &rig->target };
        int32_t sent;
        CHECK_I64(rig->ops.send(rig->ops.context, rig->from, &datagram, 1, &sent), AS_OK);
    }
    for (int i = 0; i < ASI_UDP_MAX_BATCH; i++)
    {
        incoming[i] = (asi_incoming){ .buffer = buffers[i], .capacity = sizeof(buffers[i]) };
    }
    while (rig->to->count > 0)
    {
        int32_t received;
        CHECK_I64(rig->ops.receive(rig->ops.context, rig->to, incoming, 5, &received), AS_OK);
        for (int32_t i = 0; i < received; i++)
        {
            const int32_t index = asi_get_i32(incoming[i].buffer + AS_FRAME_HEADER_LENGTH);
            CHECK(index > last && FRAME == incoming[i].length && 2048 == incoming[i].capacity);
            last = index;
            came |= 1ULL << index;
        }
    }
    return came;
}

static void a_range_is_lost_once_per_stream(void)
{
    loss_rig rig;
    rig_open(&rig, "fixed-loss", "term-id=7|term-offset=1408|length=2816");
    CHECK_I64(pass_through(&rig, 1, 7, 6), 0x39);  /* frames 1 and 2 */
    CHECK_I64(pass_through(&rig, 1, 7, 6), 0x3F);
    CHECK_I64(pass_through(&rig, 2, 7, 6), 0x39);
    CHECK_I64(pass_through(&rig, 3, 8, 6), 0x3F);
    CHECK_I64(asi_udp_loss_dropped_count(rig.loss), 4);
    rig_close(&rig);
}

static void gaps_at_multiples(void)
{
    loss_rig rig;
    rig_open(&rig, "multi-gap-loss", "term-id=7|gap-radix=4224|gap-length=1408|total-gaps=3");
    CHECK_I64(pass_through(&rig, 1, 7, 15), 0x7FFF & ~(1 << 0 | 1 << 3 | 1 << 6));
    CHECK_I64(pass_through(&rig, 1, 7, 15), 0x7FFF);
    CHECK_I64(asi_udp_loss_dropped_count(rig.loss), 3);
    rig_close(&rig);
}

static void chance_by_seed(void)
{
    uint64_t first[4];
    for (int round = 0; round < 2; round++)
    {
        loss_rig rig;
        rig_open(&rig, "loss", "rate=0.25|seed=4711");
        for (int i = 0; i < 4; i++)
        {
            const uint64_t came = pass_through(&rig, 1, 7, 60);
            CHECK(0 == round || came == first[i]);
            first[i] = came;
        }
        const int64_t dropped = asi_udp_loss_dropped_count(rig.loss);
        CHECK(dropped > 30 && dropped < 90);
        rig_close(&rig);
    }
}

static void only_types_in_the_mask(void)
{
    loss_rig rig;
    rig_open(&rig, "loss", "rate=1.0|recv-msg-mask=0x4"); /* NAKs */
    CHECK_I64(pass_through(&rig, 1, 7, 5), 0x1F);
    rig_close(&rig);
    rig_open(&rig, "loss", "rate=1.0|recv-msg-mask=2"); /* DATA */
    CHECK_I64(pass_through(&rig, 1, 7, 5), 0);
    rig_close(&rig);
}

static void outgoing_ones_lose_what_is_sent(void)
{
    loss_rig rig;
    rig_open_to(&rig, ASI_LOSS_OUTGOING, "fixed-loss", "term-id=7|term-offset=1408|length=2816");
    const asi_address target = rig.target;
    uint8_t frames[4][FRAME] __attribute__((aligned(8))) = { 0 };
    asi_outgoing batch[4];
    for (int32_t i = 0; i < 4; i++)
    {
        const asi_frame_header header = { .frame_length = FRAME, .type = ASI_FRAME_DATA, .term_offset = i * FRAME,
            .session_id = 1, .stream_id = 1001, .term_id = 7 };
        memcpy(frames[i], &header, sizeof(header));
        batch[i] = (asi_outgoing){ .bytes = frames[i], .length = FRAME, .to = &target };
    }
    for (int32_t round = 0; round < 2; round++)
    {
        int32_t sent;
        CHECK_I64(rig.ops.send(rig.ops.context, rig.from, batch, 4, &sent), AS_OK);
        CHECK_I64(sent, 4); /* the lost ones, too: as on a network */
        CHECK_I64(rig.to->count, 0 == round ? 2 : 6);
    }
    CHECK_I64(asi_udp_loss_dropped_count(rig.loss), 2);
    rig_close(&rig);
}

static void refusals(void)
{
    static const char *const rows[][2] = {
        { "other", "" }, { "loss", "rate=2" }, { "loss", "rate=x" }, { "loss", "rate" }, { "loss", "what=1" },
        { "loss", "seed=-x" }, { "multi-gap-loss", "term-id=1" }, { "multi-gap-loss", "gap-radix=10|total-gaps=100000" },
        { "fixed-loss", "term-id=" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_udp_loss *loss = NULL;
        CHECK_I64(asi_udp_loss_open(&inner, ASI_LOSS_INCOMING, rows[i][0], rows[i][1], &loss), AS_E_USAGE);
        CHECK(NULL == loss);
    }
    asi_udp_loss_close(NULL);
}

int main(void)
{
    inner = fake_net_ops(&net);
    RUN(a_range_is_lost_once_per_stream);
    RUN(gaps_at_multiples);
    RUN(chance_by_seed);
    RUN(only_types_in_the_mask);
    RUN(outgoing_ones_lose_what_is_sent);
    RUN(refusals);
    return 0;
}
