/* Goal: NAKs request exactly the gap, are counted, and the loss is reported once with its bytes. Method: memory_rig.h;
 * the test plays the publisher's driver. Spec: 04 §9, §19. */
#include "memory_rig.h"
#include "shm/loss_report.h"
#include "wire/frame.h"

#define STREAM 1001
#define SESSION 4711
#define CHANNEL "aeron:udp?endpoint=127.0.0.1:24000"

static void open_with_image(memory_rig *m, const char *channel)
{
    rig_image image;
    memory_rig_open(m, NULL);
    rig_send_add(&m->rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, channel);
    rig_expect_i32(&m->rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect_i32(&m->rig, ASI_RSP_SUBSCRIPTION_READY, 10);
    memory_rig_cycles(m, 3);
    const asi_setup_frame setup = { .prefix = { .frame_length = sizeof(setup), .type = ASI_FRAME_SETUP }, .session_id = SESSION,
        .stream_id = STREAM, .initial_term_id = 7, .active_term_id = 7, .term_length = AS_TERM_MIN_LENGTH, .mtu_length = 1408 };
    memory_rig_send(m, &setup, sizeof(setup), 24000);
    memory_rig_cycles(m, 5);
    rig_expect_image(&m->rig, 10, &image);
}

static void send_frame(memory_rig *m, int32_t offset, int32_t frame_length)
{
    uint8_t bytes[1024] __attribute__((aligned(8))) = { 0 };
    const asi_frame_header header = { .frame_length = frame_length, .flags = ASI_FLAG_UNFRAGMENTED, .type = ASI_FRAME_DATA,
        .term_offset = offset, .session_id = SESSION, .stream_id = STREAM, .term_id = 7 };
    memcpy(bytes, &header, sizeof(header));
    memory_rig_send(m, bytes, 0 == frame_length ? AS_FRAME_HEADER_LENGTH : frame_length, 24000);
    memory_rig_cycles(m, 2);
}

static void pass_ms(memory_rig *m, int64_t duration_ms)
{
    for (int64_t i = 0; i < duration_ms; i++)
    {
        m->rig.now_ns += RIG_MS;
        memory_rig_cycles(m, 2);
    }
}

/* The next NAK at the test's socket; false when there is none. */
static bool take_nak(memory_rig *m, asi_nak_frame *nak)
{
    static uint8_t buffer[65536] __attribute__((aligned(8)));
    for (;;)
    {
        asi_incoming incoming = { .buffer = buffer, .capacity = sizeof(buffer) };
        int32_t received;
        CHECK_I64(fake_receive(&m->net, m->peer, &incoming, 1, &received), AS_OK);
        if (0 == received)
        {
            return false;
        }
        memcpy(nak, buffer, sizeof(*nak));
        if (ASI_FRAME_NAK == nak->prefix.type)
        {
            CHECK_I64(incoming.length, sizeof(*nak));
            return true;
        }
    }
}

static void expect_nak(memory_rig *m, int32_t offset, int32_t length)
{
    asi_nak_frame nak;
    CHECK(take_nak(m, &nak));
    CHECK_I64(nak.prefix.frame_length, sizeof(nak));
    CHECK_I64(nak.prefix.version, 0);
    CHECK_I64(nak.prefix.flags, 0);
    CHECK_I64(nak.session_id, SESSION);
    CHECK_I64(nak.stream_id, STREAM);
    CHECK_I64(nak.term_id, 7);
    CHECK_I64(nak.term_offset, offset);
    CHECK_I64(nak.length, length);
    while (take_nak(m, &nak)) /* asked again in the meantime */
    {
        CHECK_I64(nak.term_offset, offset);
        CHECK_I64(nak.length, length);
    }
}

static void keep_entry(const asi_loss_entry *entry, void *context)
{
    asi_loss_entry *last = context;
    *last = *entry;
    CHECK_I64(entry->channel_length, strlen(CHANNEL));
    CHECK(0 == memcmp(entry->channel, CHANNEL, strlen(CHANNEL)));
    CHECK_I64(entry->source_length, strlen("127.0.0.1:24100"));
    CHECK(0 == memcmp(entry->source, "127.0.0.1:24100", strlen("127.0.0.1:24100")));
}

static int64_t read_report(const memory_rig *m, asi_loss_entry *last)
{
    char path[128];
    asi_map map;
    snprintf(path, sizeof(path), "%s/%s", m->rig.dir, ASI_LOSS_REPORT_FILE);
    CHECK_I64(asi_map_open(&map, path, 1, false), AS_OK);
    const int64_t count = asi_loss_report_read_untrusted(map.base, map.length, keep_entry, last);
    asi_map_close(&map);
    return count;
}

static void a_gap_is_asked_for_and_reported(void)
{
    memory_rig m;
    asi_nak_frame nak;
    asi_loss_entry entry;
    open_with_image(&m, CHANNEL);
    send_frame(&m, 0, 1024);
    pass_ms(&m, 5);
    CHECK(!take_nak(&m, &nak));
    CHECK_I64(read_report(&m, &entry), 0);
    send_frame(&m, 2048, 0); /* a heartbeat: the publisher's position */
    pass_ms(&m, 5);
    expect_nak(&m, 1024, 1024);
    CHECK(rig_counter_of_type(&m.rig, ASI_COUNTER_TYPE_RECEIVER_NAKS_SENT) > 0);
    CHECK_I64(rig_counter_of_type(&m.rig, ASI_COUNTER_TYPE_RECEIVER_NAKS_SENT), rig_system(&m.rig, ASI_SYSTEM_NAKS_SENT));
    CHECK_I64(rig_counter_of_type(&m.rig, ASI_COUNTER_TYPE_RECEIVER_HWM), 2048);
    CHECK_I64(rig_counter_of_type(&m.rig, ASI_COUNTER_TYPE_RECEIVER_POSITION), 1024);
    CHECK_I64(read_report(&m, &entry), 1);
    CHECK_I64(entry.session_id, SESSION);
    CHECK_I64(entry.stream_id, STREAM);
    CHECK_I64(entry.observation_count, 1);
    CHECK_I64(entry.total_bytes_lost, 1024);
    send_frame(&m, 3072, 1024); /* the gap grew: by so much more was lost */
    pass_ms(&m, 5);
    expect_nak(&m, 1024, 2048);
    CHECK_I64(read_report(&m, &entry), 1);
    CHECK_I64(entry.observation_count, 2);
    CHECK_I64(entry.total_bytes_lost, 2048);
    send_frame(&m, 1024, 1024);
    send_frame(&m, 2048, 1024);
    pass_ms(&m, 100);
    (void)take_nak(&m, &nak);
    while (take_nak(&m, &nak))
    {
    }
    CHECK_I64(rig_counter_of_type(&m.rig, ASI_COUNTER_TYPE_RECEIVER_POSITION), 4096);
    pass_ms(&m, 100);
    CHECK(!take_nak(&m, &nak));
    send_frame(&m, 4096 + 512, 512);
    pass_ms(&m, 5);
    expect_nak(&m, 4096, 512);
    CHECK_I64(read_report(&m, &entry), 1);
    CHECK_I64(entry.observation_count, 3);
    CHECK_I64(entry.total_bytes_lost, 2048 + 512);
    CHECK(entry.last_observation_ms > entry.first_observation_ms);
    memory_rig_close(&m);
}

/* Nothing is asked for: the gap is passed over, and reported all the same. */
static void an_unreliable_image_fills_its_gaps(void)
{
    memory_rig m;
    asi_nak_frame nak;
    open_with_image(&m, CHANNEL "|reliable=false");
    send_frame(&m, 0, 1024);
    send_frame(&m, 3072, 1024);
    pass_ms(&m, 5);
    CHECK(!take_nak(&m, &nak));
    CHECK_I64(rig_counter_of_type(&m.rig, ASI_COUNTER_TYPE_RECEIVER_POSITION), 4096);
    CHECK_I64(rig_system(&m.rig, ASI_SYSTEM_LOSS_GAP_FILLS), 1);
    CHECK_I64(rig_system(&m.rig, ASI_SYSTEM_NAKS_SENT), 0);
    memory_rig_close(&m);
}

int main(void)
{
    RUN(a_gap_is_asked_for_and_reported);
    RUN(an_unreliable_image_fills_its_gaps);
    return 0;
}
