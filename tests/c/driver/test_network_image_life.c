/* The table of an image's states, who may read it, and the clients that do. Spec: 03 §9-12, 04 §8.9.
 *
 * Method: network_rig.h; a raw socket P is the publisher's driver. Times are the stock defaults: timer 1 s, SM timeout 200 ms,
 * liveness 10 s, untethered 5 s + 5 s + 10 s. */
#include "network_rig.h"

#define CLIENT 1
#define OTHER 2
#define SESSION 77
#define TERM 65536
#define INITIAL_TERM 7

typedef struct stage
{
    test_rig rig;
    peer p;
    int port;
    int32_t heartbeat;
    int64_t sent; /* what P has sent, and says in heartbeats */
    int statuses; /* by flags, counted by `pass` */
    int eos_statuses;
} stage;

static void send_frame(stage *s, const void *frame, size_t length)
{
    peer_send_to(&s->p, frame, length, s->port);
    rig_cycles(&s->rig, 3);
}

static void send_setup(stage *s, int64_t position)
{
    const asi_setup_frame frame = {
        .prefix = { .frame_length = sizeof(frame), .type = ASI_FRAME_SETUP },
        .session_id = SESSION,
        .stream_id = NETWORK_STREAM,
        .initial_term_id = INITIAL_TERM,
        .active_term_id = INITIAL_TERM + (int32_t)(position / TERM),
        .term_offset = (int32_t)(position % TERM),
        .term_length = TERM,
        .mtu_length = 1408
    };
    send_frame(s, &frame, sizeof(frame));
}

static asi_frame_header data_header(int64_t position, int32_t frame_length, uint8_t flags)
{
    return (asi_frame_header){
        .frame_length = frame_length,
        .flags = flags,
        .type = ASI_FRAME_DATA,
        .term_offset = (int32_t)(position % TERM),
        .session_id = SESSION,
        .stream_id = NETWORK_STREAM,
        .term_id = INITIAL_TERM + (int32_t)(position / TERM)
    };
}

static void send_heartbeat(stage *s, uint8_t flags)
{
    const asi_frame_header frame = data_header(s->sent, 0, flags);
    send_frame(s, &frame, sizeof(frame));
}

/* Frames of 1024 bytes. */
static void send_data(stage *s, int count)
{
    uint8_t bytes[1024] __attribute__((aligned(8))) = { 0 };
    for (int i = 0; i < count; i++)
    {
        const asi_frame_header frame = data_header(s->sent, 1024, 0xC0);
        memcpy(bytes, &frame, sizeof(frame));
        send_frame(s, bytes, sizeof(bytes));
        s->sent += 1024;
    }
}

static void take_statuses(stage *s)
{
    while (peer_receive(&s->p))
    {
        const bool is_status = ASI_FRAME_STATUS == peer_type(&s->p);
        s->statuses += is_status && 0 == s->p.bytes[5] ? 1 : 0;
        s->eos_statuses += is_status && ASI_STATUS_FLAG_EOS == s->p.bytes[5] ? 1 : 0;
    }
}

/* In small steps: a status message that is due goes out with the step. */
static void pass_100_ms(stage *s)
{
    for (int i = 0; i < 5; i++)
    {
        s->rig.now_ns += 20 * RIG_MS;
        rig_cycle(&s->rig);
    }
}

/* Time passes and the client lives; P says these flags every 100 ms, unless they are 0. */
static void pass(stage *s, int64_t duration_ns, uint8_t flags)
{
    for (int64_t passed = 0; passed < duration_ns; passed += 100 * RIG_MS)
    {
        rig_heartbeat(&s->rig, s->heartbeat);
        if (0 != flags)
        {
            send_heartbeat(s, flags);
        }
        pass_100_ms(s);
        take_statuses(s);
    }
}

static void send_subscription(stage *s, int64_t client_id, int64_t registration_id, const char *params)
{
    char channel[256];
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:%d%s", s->port, params);
    rig_send_add(&s->rig, ASI_CMD_ADD_SUBSCRIPTION, client_id, registration_id, NETWORK_STREAM, channel);
}

/* One more of the first client. */
static void add_subscription(stage *s, int64_t registration_id, const char *params)
{
    send_subscription(s, CLIENT, registration_id, params);
    rig_expect_i32(&s->rig, ASI_RSP_SUBSCRIPTION_READY, registration_id);
}

static void open_stage(stage *s, const char *params)
{
    *s = (stage){ .sent = 0 };
    rig_open(&s->rig, network_settings);
    peer_open(&s->p);
    s->port = s->p.port;
    peer_close(&s->p); /* free a moment ago */
    peer_open(&s->p);
    send_subscription(s, CLIENT, 10, params);
    s->heartbeat = rig_expect_i32(&s->rig, ASI_RSP_COUNTER_READY, CLIENT);
    rig_expect_i32(&s->rig, ASI_RSP_SUBSCRIPTION_READY, 10);
    rig_cycles(&s->rig, 3);
}

/* With its image. */
static void open_image(stage *s, const char *params, rig_image *image)
{
    open_stage(s, params);
    send_setup(s, 0);
    rig_expect_image(&s->rig, 10, image);
    rig_expect_none(&s->rig);
    take_statuses(s);
    CHECK_I64(s->statuses, 1);
}

static void close_stage(stage *s)
{
    peer_close(&s->p);
    rig_close(&s->rig);
}

static void remove_subscription(stage *s, int64_t registration_id)
{
    rig_send_remove(&s->rig, ASI_CMD_REMOVE_SUBSCRIPTION, CLIENT, 900, registration_id);
    rig_expect_success(&s->rig, 900);
}

static bool has_counter(const stage *s, int32_t type_id)
{
    return asi_counters_find(&s->rig.counters, type_id, NULL, NULL) >= 0;
}

typedef enum cause
{
    CAUSE_REVOKED,
    CAUSE_ENDED,
    CAUSE_SILENT
} cause;

/* ACTIVE over DRAINING to LINGER: the time for each cause, with the received data read and unread. */
static void what_ends_an_image(void)
{
    static const struct
    {
        cause cause;
        bool is_read;
        int64_t not_before_ms; /* since the cause: then the image is still there */
        int64_t by_ms;         /* then it is gone; 0: it stays while it is not read */
        int least_eos_statuses;
    } ROWS[] = {
        { CAUSE_REVOKED, false, 0, 2100, 0 },
        { CAUSE_REVOKED, true, 0, 2100, 0 },
        { CAUSE_ENDED, true, 1000, 2300, 5 },
        { CAUSE_ENDED, false, 25000, 0, 5 },
        { CAUSE_SILENT, true, 10900, 13300, 0 }, /* after 5 s of silence nothing is sent, not even the end: Spec: 04 §8.7.4 */
        { CAUSE_SILENT, false, 30000, 0, 0 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        rig_image image;
        open_image(&s, "", &image);
        send_data(&s, 2);
        if (ROWS[i].is_read)
        {
            asi_store_release_i64(image.position, s.sent);
        }
        const uint8_t flags = CAUSE_REVOKED == ROWS[i].cause ? 0xF0 : CAUSE_ENDED == ROWS[i].cause ? 0xE0 : 0;
        pass(&s, ROWS[i].not_before_ms * RIG_MS, flags);
        rig_expect_none(&s.rig);
        if (0 == ROWS[i].by_ms)
        {
            asi_store_release_i64(image.position, s.sent);
            pass(&s, 1200 * RIG_MS, flags);
        }
        else
        {
            pass(&s, (ROWS[i].by_ms - ROWS[i].not_before_ms) * RIG_MS, flags);
        }
        rig_expect_unavailable(&s.rig, image.available.image_correlation_id, 10);
        rig_expect_none(&s.rig);
        CHECK(s.eos_statuses >= ROWS[i].least_eos_statuses);
        CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_PUBLICATION_IMAGES_REVOKED), CAUSE_REVOKED == ROWS[i].cause ? 1 : 0);
        close_stage(&s);
    }
}

/* LINGER: the log and the position stay for 10 s, or until no subscriber has them. */
static void how_long_an_image_lingers(void)
{
    for (int is_closed = 0; is_closed < 2; is_closed++)
    {
        stage s;
        rig_image image;
        open_image(&s, "", &image);
        send_heartbeat(&s, 0xE0);
        pass(&s, 2300 * RIG_MS, 0xE0);
        rig_expect_unavailable(&s.rig, image.available.image_correlation_id, 10);
        CHECK(has_counter(&s, ASI_COUNTER_TYPE_RECEIVER_HWM) && has_counter(&s, ASI_COUNTER_TYPE_SUBSCRIBER_POSITION));
        if (is_closed)
        {
            remove_subscription(&s, 10);
            CHECK(!has_counter(&s, ASI_COUNTER_TYPE_SUBSCRIBER_POSITION)); /* at once */
            pass(&s, 1200 * RIG_MS, 0);
        }
        else
        {
            pass(&s, 8500 * RIG_MS, 0);
            CHECK(has_counter(&s, ASI_COUNTER_TYPE_RECEIVER_HWM) && has_counter(&s, ASI_COUNTER_TYPE_SUBSCRIBER_POSITION));
            pass(&s, 3200 * RIG_MS, 0);
        }
        CHECK(!has_counter(&s, ASI_COUNTER_TYPE_RECEIVER_HWM));
        CHECK(!has_counter(&s, ASI_COUNTER_TYPE_SUBSCRIBER_POSITION));
        CHECK(!has_counter(&s, ASI_COUNTER_TYPE_RECEIVE_CHANNEL_STATUS) == (0 != is_closed));
        rig_expect_none(&s.rig);
        close_stage(&s);
    }
}

/* The last subscription goes: positions at once, P gets EOS, then image and endpoint; no client event, nothing is left. */
static void nobody_reads_any_more(void)
{
    stage s;
    rig_image image;
    rig_image second;
    open_image(&s, "", &image);
    add_subscription(&s, 11, "");
    rig_expect_image(&s.rig, 11, &second);
    send_data(&s, 2);
    remove_subscription(&s, 10);
    CHECK_I64(asi_counter_state(&s.rig.counters, image.available.subscriber_position_id), ASI_COUNTER_RECLAIMED);
    pass(&s, 3 * RIG_SECOND, 0xC0);
    CHECK_I64(s.eos_statuses, 0);
    remove_subscription(&s, 11);
    CHECK(!has_counter(&s, ASI_COUNTER_TYPE_SUBSCRIBER_POSITION));
    pass(&s, 4500 * RIG_MS, 0xC0);
    CHECK(s.eos_statuses >= 5);
    CHECK(!has_counter(&s, ASI_COUNTER_TYPE_RECEIVER_HWM));
    CHECK(!has_counter(&s, ASI_COUNTER_TYPE_RECEIVE_CHANNEL_STATUS));
    CHECK(!has_counter(&s, ASI_COUNTER_TYPE_LOCAL_SOCKADDR));
    rig_expect_none(&s.rig);
    close_stage(&s);
}

/* A subscription is closed and added again before the timer ends its image. P, which has the same receiver, hears of no end. */
static void who_subscribes_again_at_once(void)
{
    stage s;
    rig_image image;
    rig_image again;
    open_image(&s, "", &image);
    send_data(&s, 4); /* the receiver answers no more than what it hears */
    pass(&s, 1300 * RIG_MS, 0xC0);
    remove_subscription(&s, 10);
    add_subscription(&s, 11, "");
    send_setup(&s, s.sent);
    rig_expect_image(&s.rig, 11, &again);
    CHECK(again.available.image_correlation_id != image.available.image_correlation_id);
    s.statuses = 0;
    pass(&s, 3 * RIG_SECOND, 0xC0);
    CHECK_I64(s.eos_statuses, 0);
    CHECK(s.statuses >= 10);
    rig_expect_none(&s.rig);
    remove_subscription(&s, 11);
    pass(&s, 3 * RIG_SECOND, 0xC0);
    CHECK(s.eos_statuses >= 5);
    close_stage(&s);
}

/* Spec: 03 §9 "Accepting subscriptions", "Join position of late subscriber". */
static void when_subscriptions_may_join(void)
{
    static const struct { bool is_ended; int64_t read; bool is_accepted; int64_t joins_at; } ROWS[] = {
        { false, 1024, true, 1024 },
        { false, 2048, true, 2048 },
        { true, 1024, true, 1024 },
        { true, 2048, false, 0 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        rig_image image;
        open_image(&s, "", &image);
        send_data(&s, 2);
        asi_store_release_i64(image.position, ROWS[i].read);
        if (ROWS[i].is_ended)
        {
            send_heartbeat(&s, 0xE0);
            rig_cycles(&s.rig, 3);
        }
        add_subscription(&s, 11, "");
        if (ROWS[i].is_accepted)
        {
            rig_expect_image(&s.rig, 11, &image);
            CHECK_I64(*image.position, ROWS[i].joins_at);
        }
        rig_expect_none(&s.rig);
        close_stage(&s);
    }
}

/* Spec: 03 §10, row of network links. */
static void whom_subscriptions_match(void)
{
    static const struct { const char *params; int32_t stream; bool is_matched; } ROWS[] = {
        { "", 0, true },
        { "", 1, false },
        { "|session-id=77", 0, true },
        { "|session-id=78", 0, false },
        { "|control-mode=response|control=127.0.0.1:24391", 0, false },
        { "|control=127.0.0.1:24391|control-mode=dynamic", 0, true },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        rig_image image;
        char channel[256];
        open_stage(&s, "");
        remove_subscription(&s, 10);
        pass(&s, 200 * RIG_MS, 0);
        snprintf(channel, sizeof(channel), "aeron:udp?endpoint=127.0.0.1:%d%s", s.port, ROWS[i].params);
        rig_send_add(&s.rig, ASI_CMD_ADD_SUBSCRIPTION, CLIENT, 20, NETWORK_STREAM + ROWS[i].stream, channel);
        rig_expect_i32(&s.rig, ASI_RSP_SUBSCRIPTION_READY, 20);
        rig_cycles(&s.rig, 3);
        send_setup(&s, 0);
        if (ROWS[i].is_matched)
        {
            rig_expect_image(&s.rig, 20, &image);
        }
        if (rig_receive(&s.rig))
        {
            fprintf(stderr, "%s of stream %d: matched\n", ROWS[i].params, ROWS[i].stream);
            exit(1);
        }
        close_stage(&s);
    }
}

/* A stream that has ended may come again under the same session; one that fell silent only with rejoin. */
static void what_comes_again(void)
{
    static const struct { const char *params; uint8_t flags; bool comes_again; } ROWS[] = {
        { "", 0xE0, true }, { "|rejoin=false", 0xE0, true }, { "", 0, true }, { "|rejoin=false", 0, false },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        rig_image image;
        open_image(&s, ROWS[i].params, &image);
        const int64_t first_id = image.available.image_correlation_id;
        pass(&s, (0 == ROWS[i].flags ? 13500 : 2300) * RIG_MS, ROWS[i].flags);
        rig_expect_unavailable(&s.rig, first_id, 10);
        send_setup(&s, 4096);
        if (ROWS[i].comes_again)
        {
            rig_expect_image(&s.rig, 10, &image);
            CHECK(image.available.image_correlation_id != first_id);
            CHECK_I64(*image.position, 4096);
        }
        rig_expect_none(&s.rig);
        close_stage(&s);
    }
}

/* The first status message grants what `rcv-wnd` says, at most half a term, from where the SETUP says that the stream is; the log's
 * metadata tell it to the clients. */
static void the_first_window(void)
{
    static const struct { const char *params; int64_t position; int32_t granted; int32_t configured; } ROWS[] = {
        { "", 0, TERM / 2, 128 * 1024 },
        { "|rcv-wnd=16k", 4096, 16384, 16384 },
        { "|rcv-wnd=64k", 2 * TERM + 64, TERM / 2, 65536 },
        { "|rcv-wnd=1408", 0, 1408, 1408 }, /* as long as the MTU */
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        asi_log log;
        open_stage(&s, ROWS[i].params);
        send_setup(&s, ROWS[i].position);
        rig_image image;
        rig_expect_image(&s.rig, 10, &image);
        CHECK_I64(*image.position, ROWS[i].position);
        CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_RECEIVER_HWM), ROWS[i].position);
        CHECK_I64(rig_counter_of_type(&s.rig, ASI_COUNTER_TYPE_RECEIVER_POSITION), ROWS[i].position);
        rig_map_log((const char *)s.rig.last.bytes + sizeof(image.available), image.available.log_file_name_length, &log);
        CHECK_I64(log.metadata->receiver_window_length, ROWS[i].configured);
        CHECK_I64(log.metadata->mtu_length, 1408);
        CHECK_I64(log.initial_term_id, INITIAL_TERM);
        CHECK_I64(log.metadata->correlation_id, image.available.image_correlation_id);
        CHECK_I64(log.metadata->end_of_stream_position, INT64_MAX);
        const asi_status_frame *status = peer_expect(&s.p, ASI_FRAME_STATUS);
        CHECK_I64(status->consumption_term_id, INITIAL_TERM + ROWS[i].position / TERM);
        CHECK_I64(status->consumption_term_offset, ROWS[i].position % TERM);
        CHECK_I64(status->receiver_window, ROWS[i].granted);
        asi_log_close(&log);
        close_stage(&s);
    }
}

/* An image whose log cannot be made is an error of its own: the next SETUP is answered as usual. */
static void a_log_that_cannot_be_made(void)
{
    stage s;
    rig_image image;
    char folder[SCRATCH_CAPACITY + 16];
    open_stage(&s, "");
    snprintf(folder, sizeof(folder), "%s/images", s.rig.dir);
    CHECK_I64(rmdir(folder), 0);
    send_setup(&s, 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_ERRORS), 1);
    rig_expect_none(&s.rig);
    CHECK_I64(mkdir(folder, 0700), 0);
    send_setup(&s, 0);
    rig_expect_image(&s.rig, 10, &image);
    close_stage(&s);
}

/* A window that one datagram does not fit into would never be filled. */
static void a_window_below_the_mtu(void)
{
    stage s;
    open_stage(&s, "|rcv-wnd=1376");
    send_setup(&s, 0);
    rig_expect_none(&s.rig);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_ERRORS), 1);
    CHECK(!has_counter(&s, ASI_COUNTER_TYPE_RECEIVER_POSITION));
    close_stage(&s);
}

/* What a SETUP may say of its stream, from the edge of what can be to beyond it. Spec: 04 §2.6. */
static void setups_at_the_edge(void)
{
    static const struct { int32_t active_term_id; int32_t term_offset; int32_t term_length; int32_t mtu_length; bool is_taken; } ROWS[] = {
        { INITIAL_TERM, TERM - 32, TERM, 1408, true },
        { INITIAL_TERM, TERM, TERM, 1408, false },
        { INITIAL_TERM, TERM + 32, TERM, 1408, false },
        { INITIAL_TERM, -32, TERM, 1408, false },
        { INITIAL_TERM, 16, TERM, 1408, false },
        { INITIAL_TERM - 1, 0, TERM, 1408, false },
        { (int32_t)(INITIAL_TERM + 0x7FFFFFFFU), TERM - 32, TERM, 1408, true },
        { (int32_t)(INITIAL_TERM + 0x80000000U), 0, TERM, 1408, true }, /* the maximum position */
        { INT32_MIN, 0, TERM, 1408, true },
        { INITIAL_TERM, 0, 2 * TERM, 1408, true },
        { INITIAL_TERM, 0, TERM / 2, 1408, false },
        { INITIAL_TERM, 0, TERM + 32, 1408, false },
        { INITIAL_TERM, 0, 3 * TERM, 1408, false },
        { INITIAL_TERM, 0, INT32_MIN, 1408, false },
        { INITIAL_TERM, 0, 0, 1408, false },
        { INITIAL_TERM, 0, TERM, 64, true },
        { INITIAL_TERM, 0, TERM, 32, false },
        { INITIAL_TERM, 0, TERM, 1400, false },
        { INITIAL_TERM, 0, TERM, -1408, false },
        { INITIAL_TERM, 0, TERM, 65504, true },
        { INITIAL_TERM, 0, TERM, 65536, false },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        rig_image image;
        open_stage(&s, "");
        const asi_setup_frame frame = {
            .prefix = { .frame_length = sizeof(frame), .type = ASI_FRAME_SETUP },
            .session_id = SESSION,
            .stream_id = NETWORK_STREAM,
            .initial_term_id = INITIAL_TERM,
            .active_term_id = ROWS[i].active_term_id,
            .term_offset = ROWS[i].term_offset,
            .term_length = ROWS[i].term_length,
            .mtu_length = ROWS[i].mtu_length
        };
        send_frame(&s, &frame, sizeof(frame));
        if (ROWS[i].is_taken)
        {
            rig_expect_image(&s.rig, 10, &image);
            CHECK_I64(*image.position, (int64_t)(uint32_t)(ROWS[i].active_term_id - (int64_t)INITIAL_TERM) * ROWS[i].term_length +
                ROWS[i].term_offset);
        }
        rig_expect_none(&s.rig);
        CHECK_I64(has_counter(&s, ASI_COUNTER_TYPE_RECEIVER_POSITION), ROWS[i].is_taken);
        /* What no stream can have fills no error log. Spec: 11 N3. What only this one can't is logged. */
        CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_INVALID_PACKETS) + rig_system(&s.rig, ASI_SYSTEM_ERRORS), ROWS[i].is_taken ? 0 : 1);
        const bool is_told = INITIAL_TERM - 1 == ROWS[i].active_term_id || 32 == ROWS[i].mtu_length;
        CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_ERRORS), is_told ? 1 : 0);
        close_stage(&s);
    }
}

/* A publisher that waits for nobody is half a term further before it has a status message: it takes none from where the image joined,
 * so the image ends, long before the liveness timeout, and another joins where the publisher is. */
static void what_was_left_behind_before_it_began(void)
{
    static const struct { int64_t position; int heard; bool ends; } ROWS[] = {
        { TERM / 2 + 32, 0, true }, { 3 * TERM, 0, true }, { TERM / 2, 0, false }, { 3 * TERM, 1, false },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        rig_image image;
        open_image(&s, "", &image);
        const int64_t first_id = image.available.image_correlation_id;
        send_data(&s, ROWS[i].heard);
        send_setup(&s, ROWS[i].position);
        pass(&s, 3300 * RIG_MS, 0);
        if (ROWS[i].ends)
        {
            rig_expect_unavailable(&s.rig, first_id, 10);
            send_setup(&s, ROWS[i].position + 4096);
            rig_expect_image(&s.rig, 10, &image);
            CHECK_I64(*image.position, ROWS[i].position + 4096);
        }
        rig_expect_none(&s.rig);
        close_stage(&s);
    }
}

/* Spec: 03 §11, images: behind the fastest by three quarters of a window for 5 s, LINGER 5 s, RESTING 10 s. */
static void untethered_readers(void)
{
    static const char *const ROWS[] = { "|tether=false", "|tether=false|rejoin=false", "" };
    for (int i = 0; i < 3; i++)
    {
        stage s;
        rig_image slow;
        rig_image fast;
        open_image(&s, ROWS[i], &slow);
        add_subscription(&s, 11, 1 == i ? "|rejoin=false" : "");
        rig_expect_image(&s.rig, 11, &fast);
        send_data(&s, 30);
        asi_store_release_i64(fast.position, s.sent);
        pass(&s, 4500 * RIG_MS, 0xC0);
        rig_expect_none(&s.rig);
        pass(&s, 2 * RIG_SECOND, 0xC0);
        if (2 == i)
        {
            pass(&s, 25 * RIG_SECOND, 0xC0);
            rig_expect_none(&s.rig);
            close_stage(&s);
            continue;
        }
        rig_expect_unavailable(&s.rig, slow.available.image_correlation_id, 10);
        peer_drain(&s.p, 0);
        pass(&s, 300 * RIG_MS, 0);
        CHECK_I64(((const asi_status_frame *)(const void *)s.p.bytes)->consumption_term_offset, 0); /* T10 */
        pass(&s, 6200 * RIG_MS, 0xC0);
        CHECK_I64(((const asi_status_frame *)(const void *)s.p.bytes)->consumption_term_offset, s.sent);
        CHECK_I64(asi_counter_state(&s.rig.counters, slow.available.subscriber_position_id),
            0 == i ? ASI_COUNTER_ALLOCATED : ASI_COUNTER_RECLAIMED);
        rig_expect_none(&s.rig);
        pass(&s, 12 * RIG_SECOND, 0xC0);
        if (0 == i)
        {
            const int32_t counter_id = slow.available.subscriber_position_id;
            rig_expect_image(&s.rig, 10, &slow);
            CHECK_I64(slow.available.subscriber_position_id, counter_id);
            CHECK_I64(*slow.position, s.sent);
        }
        rig_expect_none(&s.rig);
        close_stage(&s);
    }
}

static void reject(stage *s, int64_t image_id, const char *reason)
{
    uint8_t message[64];
    const int32_t length = (int32_t)strlen(reason);
    const asi_cmd_reject_image command = { { CLIENT, 901 }, image_id, 0, length };
    memcpy(message, &command, sizeof(command));
    memcpy(message + sizeof(command), reason, (size_t)length);
    rig_send(&s->rig, ASI_CMD_REJECT_IMAGE, message, (int64_t)sizeof(command) + length);
    rig_expect_success(&s->rig, 901);
}

/* A rejected image ends by the liveness time although P continues; the first reason stays. */
static void a_rejected_image(void)
{
    stage s;
    rig_image image;
    open_image(&s, "", &image);
    send_data(&s, 1);
    asi_store_release_i64(image.position, s.sent);
    reject(&s, image.available.image_correlation_id, "first");
    reject(&s, image.available.image_correlation_id, "second");
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_IMAGES_REJECTED), 2);
    s.statuses = 0;
    for (int i = 0; i < 95; i++)
    {
        rig_heartbeat(&s.rig, s.heartbeat);
        send_heartbeat(&s, 0xC0);
        pass_100_ms(&s);
        while (peer_receive(&s.p))
        {
            CHECK_I64(peer_type(&s.p), ASI_FRAME_ERROR);
            CHECK_I64(s.p.length, 45);
            CHECK(0 == memcmp(s.p.bytes + 40, "first", 5));
            s.statuses++;
        }
    }
    CHECK(s.statuses >= 40);
    rig_expect_none(&s.rig);
    pass(&s, 4 * RIG_SECOND, 0);
    rig_expect_unavailable(&s.rig, image.available.image_correlation_id, 10);
    rig_expect_none(&s.rig);
    close_stage(&s);
}

/* Spec: 03 §12 - a client that goes takes its subscriptions along; those of others go on. */
static void a_client_goes(void)
{
    for (int is_alone = 0; is_alone < 2; is_alone++)
    {
        stage s;
        rig_image image;
        int32_t other_heartbeat = -1;
        open_image(&s, "", &image);
        if (!is_alone)
        {
            send_subscription(&s, OTHER, 11, "");
            other_heartbeat = rig_expect_i32(&s.rig, ASI_RSP_COUNTER_READY, OTHER);
            rig_expect_i32(&s.rig, ASI_RSP_SUBSCRIPTION_READY, 11);
            rig_expect_image(&s.rig, 11, &image);
        }
        for (int i = 0; i < 160; i++)
        {
            if (!is_alone)
            {
                rig_heartbeat(&s.rig, other_heartbeat);
            }
            send_heartbeat(&s, 0xC0);
            rig_pass(&s.rig, 100 * RIG_MS);
            take_statuses(&s);
        }
        rig_expect(&s.rig, ASI_RSP_CLIENT_TIMEOUT);
        CHECK_I64(rig_expect_i32(&s.rig, ASI_RSP_UNAVAILABLE_COUNTER, CLIENT), s.heartbeat);
        rig_expect_none(&s.rig);
        CHECK_I64(s.eos_statuses > 0, is_alone);
        CHECK_I64(has_counter(&s, ASI_COUNTER_TYPE_SUBSCRIBER_POSITION), !is_alone);
        CHECK_I64(has_counter(&s, ASI_COUNTER_TYPE_RECEIVER_HWM), !is_alone);
        CHECK_I64(has_counter(&s, ASI_COUNTER_TYPE_RECEIVE_CHANNEL_STATUS), !is_alone);
        close_stage(&s);
    }
}

int main(void)
{
    RUN(what_ends_an_image);
    RUN(how_long_an_image_lingers);
    RUN(nobody_reads_any_more);
    RUN(who_subscribes_again_at_once);
    RUN(when_subscriptions_may_join);
    RUN(whom_subscriptions_match);
    RUN(what_comes_again);
    RUN(what_was_left_behind_before_it_began);
    RUN(the_first_window);
    RUN(setups_at_the_edge);
    RUN(a_log_that_cannot_be_made);
    RUN(a_window_below_the_mtu);
    RUN(untethered_readers);
    RUN(a_rejected_image);
    RUN(a_client_goes);
    return 0;
}
