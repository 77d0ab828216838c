/* Floods of forged datagrams against a whole driver, over a network in memory and a clock of the test's own: limits bound what
 * they make it write, keep, send and report to its clients, and an honest stream beside them is not disturbed. Each number
 * below is a limit that the code names; without the limit the flood of the test exceeds it. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/net/destinations.h"
#include "memory_rig.h"
#include "shm/error_log.h"
#include "wire/frame.h"

#define STREAM 1001
#define SESSION 123456

#define UNBEGUN_MAX 1536 /* by default */
#define UNBEGUN_MAX_OF_HOST (UNBEGUN_MAX * 2 / 3)

static asi_setup_frame setup_of(int32_t session_id)
{
    return (asi_setup_frame){ .prefix = { .frame_length = sizeof(asi_setup_frame), .type = ASI_FRAME_SETUP },
        .session_id = session_id, .stream_id = STREAM, .initial_term_id = 7, .active_term_id = 7,
        .term_length = AS_TERM_MIN_LENGTH, .mtu_length = 1408 };
}

static asi_status_frame status_of(int64_t receiver_id)
{
    return (asi_status_frame){ .prefix = { .frame_length = ASI_STATUS_LENGTH, .type = ASI_FRAME_STATUS },
        .session_id = SESSION, .stream_id = STREAM, .consumption_term_id = 7, .receiver_window = 32768,
        .receiver_id = receiver_id };
}

/* Datagrams that wait for the peer; they are read away. */
static int64_t count_received(memory_rig *h, int64_t *bytes)
{
    int64_t count = 0;
    *bytes = 0;
    for (int32_t received = 1; 1 == received;)
    {
        static uint8_t buffer[65536] __attribute__((aligned(8)));
        asi_incoming incoming = { .buffer = buffer, .capacity = sizeof(buffer) };
        CHECK_I64(fake_receive(&h->net, h->peer, &incoming, 1, &received), AS_OK);
        count += received;
        *bytes += 1 == received ? incoming.length : 0;
    }
    return count;
}

static int32_t count_broadcasts(memory_rig *h, int32_t type_id)
{
    int32_t count = 0;
    while (rig_receive(&h->rig))
    {
        count += type_id == h->rig.last.type_id ? 1 : 0;
    }
    return count;
}

static void count_text(const asi_error_entry *entry, void *context) { *(int64_t *)context += entry->text_length + 24; }

static int64_t error_log_bytes(const memory_rig *h)
{
    int64_t bytes = 0;
    asi_error_log_read_untrusted(h->rig.cnc.error_log, h->rig.cnc.lengths.error_log, 0, count_text, &bytes);
    return bytes;
}

static int32_t count_counters(const memory_rig *h, int32_t type_id)
{
    int32_t count = 0;
    const asi_counter_metadata *metadata = (const asi_counter_metadata *)(const void *)h->rig.counters.metadata;
    for (int32_t i = 0; i < h->rig.counters.max_count; i++)
    {
        count += 1 == metadata[i].state && type_id == metadata[i].type_id ? 1 : 0;
    }
    return count;
}

static void send_heartbeat(memory_rig *h, int32_t session_id, int32_t term_offset)
{
    const asi_frame_header frame = { .type = ASI_FRAME_DATA, .flags = ASI_FLAG_UNFRAGMENTED, .term_offset = term_offset,
        .session_id = session_id, .stream_id = STREAM, .term_id = 7 };
    memory_rig_send(h, &frame, sizeof(frame), 24000);
}

/* Bytes of storage that the logs of images take. */
static int64_t storage_of_images(const memory_rig *h)
{
    char path[SCRATCH_CAPACITY + 512];
    int64_t bytes = 0;
    snprintf(path, sizeof(path), "%s/images", h->rig.dir);
    DIR *dir = opendir(path);
    CHECK(NULL != dir);
    for (const struct dirent *entry = readdir(dir); NULL != entry; entry = readdir(dir))
    {
        struct stat status;
        snprintf(path, sizeof(path), "%s/images/%s", h->rig.dir, entry->d_name);
        CHECK_I64(stat(path, &status), 0);
        bytes += S_ISREG(status.st_mode) ? (int64_t)status.st_blocks * 512 : 0;
    }
    closedir(dir);
    return bytes;
}

/* SETUPs of ever new sessions, with heartbeats here and far ahead, which cost their sender as little: images up to the cap, and none
 * after, each with a page for its metadata and one for where it joins; those that no data follows go. */
static void setups_of_ever_new_sessions(memory_rig *h)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    rig_send_add(&h->rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, "aeron:udp?endpoint=127.0.0.1:24000");
    memory_rig_cycles(h, 3);
    for (int32_t i = 0; i < UNBEGUN_MAX_OF_HOST + 500; i++)
    {
        const asi_setup_frame frame = setup_of(i);
        memory_rig_send(h, &frame, sizeof(frame), 24000);
        memory_rig_cycles(h, 2);
        send_heartbeat(h, i, 0);
        send_heartbeat(h, i, AS_TERM_MIN_LENGTH / 2);
        (void)count_broadcasts(h, 0);
    }
    memory_rig_cycles(h, 50);
    CHECK_I64(count_counters(h, ASI_COUNTER_TYPE_RECEIVER_POSITION), UNBEGUN_MAX_OF_HOST);
    CHECK(storage_of_images(h) <= 2 * page * UNBEGUN_MAX_OF_HOST);
    for (int i = 0; i < 75; i++)
    {
        h->rig.now_ns += 400 * RIG_MS;
        memory_rig_cycles(h, 40); /* the receiver takes a command per cycle */
        (void)count_broadcasts(h, 0);
    }
    CHECK_I64(count_counters(h, ASI_COUNTER_TYPE_RECEIVER_POSITION), 0);
}

static void set_few_images(asi_driver_settings *settings) { settings->images_unbegun_max = 30; }

/* How many images there are when that host has sent SETUPs of forty sessions to the port. */
static int32_t images_after_flood(memory_rig *h, const char *host, uint16_t port)
{
    static int32_t session_id;
    const asi_address source = fake_address(host, 5000);
    const asi_address bound = fake_address("127.0.0.1", port);
    asi_udp_socket *to = NULL;
    for (int i = 0; i < FAKE_NET_SOCKETS; i++)
    {
        to = NULL != h->net.sockets[i] && asi_address_equal(&h->net.sockets[i]->bound, &bound) ? h->net.sockets[i] : to;
    }
    CHECK(NULL != to);
    for (int i = 0; i < 40; i++)
    {
        const asi_setup_frame frame = setup_of(session_id++);
        const asi_outgoing datagram = { .bytes = &frame, .length = sizeof(frame) };
        fake_put(to, &datagram, &source);
        memory_rig_cycles(h, 3);
        (void)count_broadcasts(h, 0);
    }
    return count_counters(h, ASI_COUNTER_TYPE_RECEIVER_POSITION);
}

/* One host leaves room for others at its endpoint, these for streams at other endpoints. */
static void setups_leave_room_for_others(void)
{
    memory_rig h;
    memory_rig_open(&h, set_few_images);
    rig_send_add(&h.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, "aeron:udp?endpoint=127.0.0.1:24000");
    rig_send_add(&h.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 11, STREAM, "aeron:udp?endpoint=127.0.0.1:24001");
    memory_rig_cycles(&h, 4);
    CHECK_I64(images_after_flood(&h, "10.0.0.1", 24000), 20); /* two thirds */
    CHECK_I64(images_after_flood(&h, "10.0.0.2", 24000), 24); /* four fifths */
    CHECK_I64(images_after_flood(&h, "10.0.0.3", 24000), 24);
    CHECK_I64(images_after_flood(&h, "10.0.0.1", 24001), 28); /* two thirds of the rest */
    CHECK_I64(images_after_flood(&h, "10.0.0.2", 24001), 29);
    CHECK_I64(images_after_flood(&h, "10.0.0.1", 24000), 29);
    memory_rig_close(&h);
}

/* The last challenge that has come to the peer; false: none. */
static bool receive_challenge(memory_rig *h, asi_rttm_frame *challenge)
{
    bool found = false;
    for (int32_t received = 1; 1 == received;)
    {
        static uint8_t buffer[65536] __attribute__((aligned(8)));
        asi_incoming incoming = { .buffer = buffer, .capacity = sizeof(buffer) };
        CHECK_I64(fake_receive(&h->net, h->peer, &incoming, 1, &received), AS_OK);
        if (1 == received && ASI_FRAME_RTTM == ((const asi_frame_prefix *)(const void *)buffer)->type)
        {
            memcpy(challenge, buffer, sizeof(*challenge));
            found = true;
        }
    }
    return found;
}

/* A stream of the peer's; it answers the challenge, or gives another number in its place. True when there is one more image. */
static bool begin_stream(memory_rig *h, int32_t session_id, int64_t error)
{
    const int32_t images = count_counters(h, ASI_COUNTER_TYPE_RECEIVER_POSITION);
    const asi_setup_frame setup = setup_of(session_id);
    asi_rttm_frame challenge;
    (void)receive_challenge(h, &challenge); /* empties the peer's queue */
    memory_rig_send(h, &setup, sizeof(setup), 24000);
    memory_rig_cycles(h, 3);
    CHECK(receive_challenge(h, &challenge));
    CHECK_I64(challenge.session_id, session_id);
    CHECK(0 != (challenge.prefix.flags & ASI_RTTM_FLAG_REQUEST));
    challenge.prefix.flags = 0;
    challenge.echo_timestamp_ns ^= error;
    memory_rig_send(h, &challenge, sizeof(challenge), 24000);
    memory_rig_send(h, &setup, sizeof(setup), 24000);
    memory_rig_cycles(h, 3);
    (void)count_broadcasts(h, 0);
    return count_counters(h, ASI_COUNTER_TYPE_RECEIVER_POSITION) > images;
}

/* Invented hosts take what there is for strangers, at the endpoint that clients use: who answers the challenge gets in, as publishers
 * do; streams of the proven have a limit of their own. */
static void who_proves_that_it_hears_finds_room(void)
{
    memory_rig h;
    memory_rig_open(&h, set_few_images);
    rig_send_add(&h.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, "aeron:udp?endpoint=127.0.0.1:24000");
    memory_rig_cycles(&h, 4);
    (void)images_after_flood(&h, "10.0.0.1", 24000);
    CHECK_I64(images_after_flood(&h, "10.0.0.2", 24000), 24);
    CHECK(!begin_stream(&h, 800000, 1));
    for (int32_t i = 0; i < 20; i++)
    {
        CHECK(begin_stream(&h, 700000 + i, 0));
    }
    const asi_setup_frame setup = setup_of(900000);
    asi_rttm_frame challenge;
    CHECK(!begin_stream(&h, 900000, 0)); /* two thirds of thirty are of this host */
    memory_rig_send(&h, &setup, sizeof(setup), 24000);
    memory_rig_cycles(&h, 3);
    CHECK(!receive_challenge(&h, &challenge)); /* it has proven itself, that does not help */
    memory_rig_close(&h);
}

static void set_few_counters(asi_driver_settings *settings)
{
    settings->counters_values_buffer_length = 1024 * 1024;
    settings->images_unbegun_max = 100000;
    settings->image_liveness_timeout_ns = 1000 * RIG_SECOND;
}

/* Streams of invented hosts with data take three quarters of the counters: the last quarter is for who hears. */
static void the_last_counters_are_for_who_hears(void)
{
    enum { COUNTERS = 8192, OF_AN_IMAGE = 32 };
    memory_rig h;
    memory_rig_open(&h, set_few_counters);
    for (int32_t i = 0; i < OF_AN_IMAGE - 3; i++) /* each has a counter of its own at each image, beside its three */
    {
        rig_send_add(&h.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10 + i, STREAM, "aeron:udp?endpoint=127.0.0.1:24000");
        memory_rig_cycles(&h, 4);
        (void)count_broadcasts(&h, 0);
    }
    for (int32_t i = 0; i < COUNTERS / OF_AN_IMAGE; i++)
    {
        const asi_address own = h.peer->bound;
        h.peer->bound = fake_address("10.0.0.1", 5000);
        const asi_setup_frame setup = setup_of(i);
        struct
        {
            asi_frame_header header;
            uint8_t payload[32];
        } data = { .header = { .frame_length = sizeof(data), .type = ASI_FRAME_DATA, .flags = ASI_FLAG_UNFRAGMENTED,
            .session_id = i, .stream_id = STREAM, .term_id = 7 } };
        memory_rig_send(&h, &setup, sizeof(setup), 24000);
        memory_rig_cycles(&h, 2);
        memory_rig_send(&h, &data, sizeof(data), 24000);
        h.peer->bound = own;
        memory_rig_cycles(&h, 1);
        (void)count_broadcasts(&h, 0);
    }
    const int32_t images = count_counters(&h, ASI_COUNTER_TYPE_RECEIVER_POSITION);
    CHECK(images > COUNTERS / OF_AN_IMAGE / 2 && images <= COUNTERS / OF_AN_IMAGE * 3 / 4);
    for (int32_t i = 0; i < 5; i++)
    {
        CHECK(!begin_stream(&h, 800000 + i, 1));
        CHECK(begin_stream(&h, 700000 + i, 0));
    }
    memory_rig_close(&h);
}

/* A heartbeat half a term ahead of an unreliable subscription: what it says is missing is padded over, window by window, and only the
 * paddings' headers take storage. */
static void a_beat_far_ahead_that_is_filled(memory_rig *h)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int32_t window = 128 * 1024;
    rig_send_add(&h->rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, "aeron:udp?endpoint=127.0.0.1:24000|reliable=false");
    memory_rig_cycles(h, 3);
    asi_setup_frame frame = setup_of(SESSION);
    frame.term_length = 16 << 20;
    memory_rig_send(h, &frame, sizeof(frame), 24000);
    memory_rig_cycles(h, 5);
    send_heartbeat(h, SESSION, frame.term_length / 2);
    memory_rig_cycles(h, 500);
    CHECK_I64(rig_system(&h->rig, ASI_SYSTEM_LOSS_GAP_FILLS), frame.term_length / 2 / window);
    CHECK(storage_of_images(h) <= (2 + frame.term_length / 2 / window) * page);
}

static void set_short_terms(asi_driver_settings *settings) { settings->image_term_length_max = 1 << 17; }

static void terms_that_are_longer_than_wanted(void)
{
    memory_rig h;
    memory_rig_open(&h, set_short_terms);
    rig_send_add(&h.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, "aeron:udp?endpoint=127.0.0.1:24000");
    memory_rig_cycles(&h, 3);
    for (int32_t i = 0; i < 2; i++)
    {
        asi_setup_frame frame = setup_of(i);
        frame.term_length = 1 << (17 + i);
        memory_rig_send(&h, &frame, sizeof(frame), 24000);
        memory_rig_cycles(&h, 5);
        CHECK_I64(count_counters(&h, ASI_COUNTER_TYPE_RECEIVER_POSITION), 1);
        CHECK_I64(rig_system(&h.rig, ASI_SYSTEM_ERRORS), i);
    }
    memory_rig_close(&h);
}

/* SETUPs that can't be, each in other words: errors are counted all, the texts take half of the log at most. */
static void setups_that_fill_the_error_log(memory_rig *h)
{
    rig_send_add(&h->rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, "aeron:udp?endpoint=127.0.0.1:24000");
    memory_rig_cycles(h, 3);
    for (int32_t i = 0; i < 3000; i++)
    {
        asi_setup_frame frame = setup_of(i);
        frame.active_term_id = asi_wrap_sub(frame.initial_term_id, 1 + i);
        memory_rig_send(h, &frame, sizeof(frame), 24000);
        h->rig.now_ns += 10 * RIG_MS;
        memory_rig_cycles(h, 3);
    }
    CHECK_I64(rig_system(&h->rig, ASI_SYSTEM_ERRORS), 3000);
    CHECK(error_log_bytes(h) > 1000 && error_log_bytes(h) <= h->rig.cnc.lengths.error_log / 2);
}

/* Commands that fail, each in other words: a client that tries ever new channels leaves three quarters to other errors, and the
 * errors that are not told apart any more are there by their code. */
static void commands_that_fill_the_error_log(memory_rig *h)
{
    const int32_t length = h->rig.cnc.lengths.error_log;
    for (int32_t i = 0; i < 400; i++)
    {
        char channel[384];
        snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:24000|mtu=x%0300d", i);
        rig_send_add(&h->rig, ASI_CMD_ADD_PUBLICATION, 1, 10, STREAM, channel);
        memory_rig_cycles(h, 3);
        CHECK_I64(count_broadcasts(h, ASI_RSP_ERROR), 1);
    }
    CHECK_I64(rig_system(&h->rig, ASI_SYSTEM_ERRORS), 400);
    CHECK(error_log_bytes(h) > length / 5 && error_log_bytes(h) < length / 4 + 1024);
}

static void add_publication(memory_rig *h, const char *channel)
{
    rig_send_add(&h->rig, ASI_CMD_ADD_PUBLICATION, 1, 10, STREAM, channel);
    memory_rig_cycles(h, 3);
    (void)count_broadcasts(h, 0);
}

/* From a source of the attacker's choice. */
static void forge_request(memory_rig *h, uint16_t number)
{
    const asi_status_frame frame = { .prefix = { .frame_length = ASI_STATUS_LENGTH, .type = ASI_FRAME_STATUS,
        .flags = ASI_STATUS_FLAG_SEND_SETUP }, .receiver_id = 1000 + number };
    const asi_address own = h->peer->bound;
    h->peer->bound = fake_address("10.0.0.1", number);
    memory_rig_send(h, &frame, ASI_STATUS_LENGTH, 24001);
    h->peer->bound = own;
}

/* Marks the streams of which the peer has been told. */
static void mark_streams(memory_rig *h, bool *is_known, int32_t streams)
{
    for (int32_t received = 1; 1 == received;)
    {
        static uint8_t buffer[65536] __attribute__((aligned(8)));
        asi_incoming incoming = { .buffer = buffer, .capacity = sizeof(buffer) };
        CHECK_I64(fake_receive(&h->net, h->peer, &incoming, 1, &received), AS_OK);
        if (1 == received)
        {
            const int32_t stream = asi_get_i32(buffer + offsetof(asi_setup_frame, stream_id)) - STREAM;
            CHECK(stream >= 0 && stream < streams);
            is_known[stream] = true;
        }
    }
}

/* The channel has more streams than a round has frames. A receiver that asks once a second, as receivers do, hears of three each
 * time, and of each stream within a third as many seconds. 64: two rounds' worth, of which a flood in step showed one only. */
static void a_flood_hides_none_of_many_streams(memory_rig *h)
{
    enum { STREAMS = 64, STEP_MS = 10, DRAINED_MS = 4000, ASKS_MS = 1000 };
    for (int32_t i = 0; i < STREAMS; i++)
    {
        rig_send_add(&h->rig, ASI_CMD_ADD_PUBLICATION, 1, 10 + i, STREAM + i,
            "aeron:udp?control=127.0.0.1:24001|control-mode=dynamic|term-length=64k");
        memory_rig_cycles(h, 3);
        (void)count_broadcasts(h, 0);
    }
    const asi_status_frame request = { .prefix = { .frame_length = ASI_STATUS_LENGTH, .type = ASI_FRAME_STATUS,
        .flags = ASI_STATUS_FLAG_SEND_SETUP }, .receiver_id = 1 };
    bool is_known[STREAMS] = { false };
    for (int32_t ms = 0; ms < DRAINED_MS + ASKS_MS * (STREAMS + 2) / ASI_NEWCOMER_ROUNDS; ms += STEP_MS)
    {
        h->rig.now_ns += STEP_MS * RIG_MS;
        for (int32_t i = 0; i < (ms < DRAINED_MS ? 10 : 1) && (ms < DRAINED_MS || 0 == ms % 50); i++)
        {
            forge_request(h, (uint16_t)(1000 + ms + i));
        }
        if (ms >= DRAINED_MS && 0 == ms % ASKS_MS)
        {
            memory_rig_send(h, &request, ASI_STATUS_LENGTH, 24001);
        }
        memory_rig_cycles(h, 1);
        mark_streams(h, is_known, STREAMS);
    }
    for (int32_t i = 0; i < STREAMS; i++)
    {
        CHECK(is_known[i]);
    }
}

/* A receiver that comes and errs, over and over: clients hear of the first ones only. */
static void errors_of_ever_new_receivers(memory_rig *h)
{
    add_publication(h, "aeron:udp?control=127.0.0.1:24001|control-mode=dynamic|session-id=123456|init-term-id=7|term-id=7|"
        "term-offset=0|term-length=64k");
    for (int32_t i = 0; i < 2000; i++)
    {
        const asi_status_frame status = status_of(i);
        const asi_error_frame error = { .prefix = { .frame_length = sizeof(error), .type = ASI_FRAME_ERROR },
            .session_id = SESSION, .stream_id = STREAM, .receiver_id = i, .error_code = 13 };
        memory_rig_send(h, &status, ASI_STATUS_LENGTH, 24001);
        memory_rig_send(h, &error, sizeof(error), 24001);
        memory_rig_cycles(h, 2);
    }
    const int32_t told = count_broadcasts(h, ASI_RSP_PUBLICATION_ERROR);
    CHECK(told > 0 && told <= 256);
    CHECK_I64(rig_system(&h->rig, ASI_SYSTEM_ERROR_FRAMES_RECEIVED), 2000);
}

/* Within one second, SETUPs that can't be; then one receiver rejects its image: its publisher hears of it all the same. */
static void bad_setups_hide_no_rejection(memory_rig *h)
{
    rig_send_add(&h->rig, ASI_CMD_ADD_SUBSCRIPTION, 2, 11, STREAM, "aeron:udp?endpoint=127.0.0.1:24000");
    add_publication(h, "aeron:udp?control=127.0.0.1:24001|control-mode=dynamic|session-id=123456|init-term-id=7|term-id=7|"
        "term-offset=0|term-length=64k");
    for (int32_t i = 0; i < 600; i++)
    {
        asi_setup_frame frame = setup_of(i);
        frame.active_term_id = asi_wrap_sub(frame.initial_term_id, 1 + i);
        memory_rig_send(h, &frame, sizeof(frame), 24000);
        memory_rig_cycles(h, 3);
    }
    CHECK_I64(rig_system(&h->rig, ASI_SYSTEM_ERRORS), 600);
    const asi_status_frame status = status_of(1);
    const asi_error_frame error = { .prefix = { .frame_length = sizeof(error), .type = ASI_FRAME_ERROR },
        .session_id = SESSION, .stream_id = STREAM, .receiver_id = 1, .error_code = 13 };
    memory_rig_send(h, &status, ASI_STATUS_LENGTH, 24001);
    memory_rig_send(h, &error, sizeof(error), 24001);
    memory_rig_cycles(h, 4);
    CHECK_I64(count_broadcasts(h, ASI_RSP_PUBLICATION_ERROR), 1);
}

/* NAKs that take turns between two places: each asks for nearly a whole term, and no time passes. */
static void naks_for_everything(void)
{
    memory_rig h;
    rig_publication publication;
    int64_t bytes;
    memory_rig_open(&h, NULL);
    rig_send_add(&h.rig, ASI_CMD_ADD_PUBLICATION, 1, 10, STREAM,
        "aeron:udp?endpoint=127.0.0.1:24100|session-id=123456|init-term-id=7|term-id=7|term-offset=0|term-length=64k");
    rig_expect_i32(&h.rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect_publication(&h.rig, false, &publication);
    memory_rig_cycles(&h, 3);
    const asi_address source = fake_address("127.0.0.1", 24100);
    asi_udp_socket *socket = NULL;
    for (int i = 0; i < FAKE_NET_SOCKETS; i++)
    {
        socket = NULL != h.net.sockets[i] && h.peer != h.net.sockets[i] ? h.net.sockets[i] : socket;
    }
    asi_status_frame status = status_of(1);
    const asi_outgoing granted = { .bytes = &status, .length = ASI_STATUS_LENGTH };
    fake_put(socket, &granted, &source);
    memory_rig_cycles(&h, 3);
    while (rig_offer(&publication, 1344) > 0)
    {
        memory_rig_cycles(&h, 1);
    }
    memory_rig_cycles(&h, 10);
    (void)count_received(&h, &bytes);
    CHECK(bytes > 20000);
    for (int32_t i = 0; i < 1000; i++)
    {
        const asi_nak_frame nak = { .prefix = { .frame_length = sizeof(nak), .type = ASI_FRAME_NAK }, .session_id = SESSION,
            .stream_id = STREAM, .term_id = 7, .term_offset = 0 == i % 2 ? 0 : 13760, .length = 13760 };
        const asi_outgoing datagram = { .bytes = &nak, .length = sizeof(nak) };
        fake_put(socket, &datagram, &source);
        memory_rig_cycles(&h, 1);
    }
    memory_rig_cycles(&h, 3);
    const int64_t resent = rig_system(&h.rig, ASI_SYSTEM_RETRANSMITTED_BYTES);
    const int64_t sent = rig_counter_of_type(&h.rig, ASI_COUNTER_TYPE_SENDER_POSITION);
    CHECK(resent <= AS_TERM_MIN_LENGTH / 2 + 2 * sent); /* a window, and twice what was sent: no less either */
    CHECK(resent > AS_TERM_MIN_LENGTH / 2 + 2 * sent - 1376 - 16);
    CHECK_I64(rig_system(&h.rig, ASI_SYSTEM_NAKS_RECEIVED), 1000);
    h.rig.now_ns += 11 * RIG_MS; /* and then it answers again */
    const asi_nak_frame nak = { .prefix = { .frame_length = sizeof(nak), .type = ASI_FRAME_NAK }, .session_id = SESSION,
        .stream_id = STREAM, .term_id = 7, .term_offset = 0, .length = 1376 };
    const asi_outgoing datagram = { .bytes = &nak, .length = sizeof(nak) };
    fake_put(socket, &datagram, &source);
    memory_rig_cycles(&h, 2);
    CHECK_I64(rig_system(&h.rig, ASI_SYSTEM_RETRANSMITTED_BYTES), resent + 1376);
    asi_log_close(&publication.log);
    memory_rig_close(&h);
}

/* Requests for replies, to a publication that forged status messages gave a hundred destinations. */
static void rttms_to_many_destinations(memory_rig *h)
{
    add_publication(h, "aeron:udp?control=127.0.0.1:24001|control-mode=dynamic|session-id=123456|init-term-id=7|term-id=7|"
        "term-offset=0|term-length=64k");
    for (int32_t i = 0; i < 100; i++)
    {
        const asi_status_frame status = status_of(i);
        memory_rig_send(h, &status, ASI_STATUS_LENGTH, 24001);
        memory_rig_cycles(h, 1);
    }
    const int32_t sends = h->net.sends;
    for (int32_t i = 0; i < 1000; i++)
    {
        const asi_rttm_frame rttm = { .prefix = { .frame_length = sizeof(rttm), .flags = ASI_RTTM_FLAG_REQUEST,
            .type = ASI_FRAME_RTTM }, .session_id = SESSION, .stream_id = STREAM };
        memory_rig_send(h, &rttm, sizeof(rttm), 24001);
        memory_rig_cycles(h, 1);
    }
    CHECK(h->net.sends - sends - 1000 >= 1000 && h->net.sends - sends - 1000 <= 1024 + 100 + 200);
}

int main(void)
{
    RUN_IN_MEMORY_RIG(setups_of_ever_new_sessions);
    RUN(setups_leave_room_for_others);
    RUN(who_proves_that_it_hears_finds_room);
    RUN(the_last_counters_are_for_who_hears);
    RUN_IN_MEMORY_RIG(a_beat_far_ahead_that_is_filled);
    RUN(terms_that_are_longer_than_wanted);
    RUN_IN_MEMORY_RIG(setups_that_fill_the_error_log);
    RUN_IN_MEMORY_RIG(commands_that_fill_the_error_log);
    RUN_IN_MEMORY_RIG(a_flood_hides_none_of_many_streams);
    RUN_IN_MEMORY_RIG(errors_of_ever_new_receivers);
    RUN_IN_MEMORY_RIG(bad_setups_hide_no_rejection);
    RUN(naks_for_everything);
    RUN_IN_MEMORY_RIG(rttms_to_many_destinations);
    return 0;
}
