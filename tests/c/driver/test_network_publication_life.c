/* The table of a network publication's states and what hangs on it: spies, their tethers, clients, errors of destinations.
 * Spec: 03 §8, §10-12, 04 §5.8, §13. What shows on the wire alone is in test_network_publisher.c.
 *
 * Method: network_rig.h; a raw socket Q is the receiver. Times are the stock defaults: timer 1 s, linger 5 s, liveness 10 s. */
#include "network_rig.h"

#define CLIENT 1
#define OTHER 2
#define PUBLICATION 10
#define TERM 65536

typedef struct stage
{
    test_rig rig;
    peer q;
    int32_t heartbeat;
    char channel[256];
    rig_publication publication;
} stage;

/* Time passes, the clients live, and Q with them unless `window` is negative. */
static void pass(stage *s, int64_t duration_ns, int64_t position, int32_t window)
{
    for (int64_t passed = 0; passed < duration_ns; passed += 100 * RIG_MS)
    {
        rig_heartbeat(&s->rig, s->heartbeat);
        if (window >= 0)
        {
            send_status(&s->rig, &s->q, &s->publication, position, window, 0);
        }
        rig_pass(&s->rig, 100 * RIG_MS);
    }
}

static void open_stage(stage *s, const char *params)
{
    rig_open(&s->rig, network_settings);
    peer_open(&s->q);
    snprintf(s->channel, sizeof(s->channel), "aeron:udp?endpoint=127.0.0.1:%d%s", s->q.port, params);
    rig_send_add(&s->rig, ASI_CMD_ADD_PUBLICATION, CLIENT, PUBLICATION, NETWORK_STREAM, s->channel);
    s->heartbeat = rig_expect_i32(&s->rig, ASI_RSP_COUNTER_READY, CLIENT);
    rig_expect_publication(&s->rig, false, &s->publication);
    rig_cycles(&s->rig, 3);
    peer_expect(&s->q, ASI_FRAME_SETUP);
}

static void close_stage(stage *s)
{
    asi_log_close(&s->publication.log);
    peer_close(&s->q);
    rig_close(&s->rig);
}

static void send_subscription(stage *s, int64_t registration_id, const char *format, const char *params)
{
    char channel[400];
    snprintf(channel, sizeof(channel), format, s->channel, params);
    rig_send_add(&s->rig, ASI_CMD_ADD_SUBSCRIPTION, CLIENT, registration_id, NETWORK_STREAM, channel);
    CHECK_I64(rig_expect_i32(&s->rig, ASI_RSP_SUBSCRIPTION_READY, registration_id), -1);
}

static void add_spy(stage *s, int64_t registration_id, const char *params, rig_image *image)
{
    send_subscription(s, registration_id, "aeron-spy:%s%s", params);
    rig_expect_image(&s->rig, registration_id, image);
}

static void remove_publication(stage *s, int64_t registration_id, uint64_t flags)
{
    const asi_cmd_remove_publication command = { { CLIENT, 500 }, registration_id, flags };
    rig_send(&s->rig, ASI_CMD_REMOVE_PUBLICATION, &command, sizeof(command));
    rig_expect_success(&s->rig, 500);
}

static bool is_there(const stage *s)
{
    return asi_counters_find(&s->rig.counters, ASI_COUNTER_TYPE_SENDER_POSITION, NULL, NULL) >= 0;
}

static bool is_connected(const stage *s) { return 1 == asi_load_acquire_i32(&s->publication.log.metadata->is_connected); }
static int64_t sent(const stage *s) { return rig_counter_of_type(&s->rig, ASI_COUNTER_TYPE_SENDER_POSITION); }
static int64_t end_of_stream(const stage *s)
{
    return asi_load_acquire_i64(&s->publication.log.metadata->end_of_stream_position);
}

static int64_t publish(stage *s, int count, int64_t length)
{
    int64_t position = 0;
    for (int i = 0; i < count; i++)
    {
        position = rig_offer(&s->publication, length);
        CHECK(position > 0);
        rig_cycles(&s->rig, 3);
    }
    return position;
}

/* Flags of the last heartbeat that came, 0 without any; drops all else. */
static uint8_t heartbeat_flags(stage *s)
{
    uint8_t flags = 0;
    while (peer_receive(&s->q))
    {
        flags = ASI_FRAME_DATA == peer_type(&s->q) && 32 == s->q.length ? s->q.bytes[5] : flags;
    }
    return flags;
}

/* ACTIVE to DRAINING at once, when the last of its holders goes. */
static void the_last_holder_ends_it(void)
{
    stage s;
    open_stage(&s, "");
    send_status(&s.rig, &s.q, &s.publication, 0, TERM / 2, 0);
    rig_send_add(&s.rig, ASI_CMD_ADD_PUBLICATION, CLIENT, 11, NETWORK_STREAM, s.channel);
    rig_publication again;
    rig_expect_publication(&s.rig, false, &again);
    CHECK_I64(again.ready.registration_id, PUBLICATION);
    CHECK_I64(again.ready.session_id, s.publication.ready.session_id);
    const int64_t end = publish(&s, 3, 100);
    remove_publication(&s, PUBLICATION, 0);
    pass(&s, 3 * RIG_SECOND, end, TERM / 2);
    CHECK_I64(heartbeat_flags(&s), 0xC0);
    CHECK_I64(end_of_stream(&s), INT64_MAX);
    CHECK(rig_offer(&again, 100) > 0);
    rig_cycles(&s.rig, 3);
    remove_publication(&s, 11, 0);
    CHECK_I64(end_of_stream(&s), end + 160);
    CHECK_I64(*s.publication.limit, end + 160);
    rig_run(&s.rig, 101);
    CHECK_I64(heartbeat_flags(&s), 0xE0);
    CHECK(rig_offer(&again, 100) < 0);
    asi_log_close(&again.log);
    close_stage(&s);
}

/* A revoke by one of two holders ends it for both, at the next tick, and takes the spies' images, read or not. */
static void one_holder_revokes_it(void)
{
    stage s;
    rig_image spy;
    open_stage(&s, "");
    rig_send_add(&s.rig, ASI_CMD_ADD_PUBLICATION, CLIENT, 11, NETWORK_STREAM, s.channel);
    rig_publication again;
    rig_expect_publication(&s.rig, false, &again);
    add_spy(&s, 20, "", &spy);
    send_status(&s.rig, &s.q, &s.publication, 0, TERM / 2, 0);
    const int64_t end = publish(&s, 3, 100);
    remove_publication(&s, PUBLICATION, ASI_REMOVE_PUBLICATION_REVOKE);
    rig_cycles(&s.rig, 3);
    rig_expect_none(&s.rig);
    CHECK_I64(end_of_stream(&s), INT64_MAX);
    pass(&s, RIG_SECOND + 200 * RIG_MS, 0, TERM / 2);
    rig_expect_unavailable(&s.rig, PUBLICATION, 20);
    CHECK_I64(end_of_stream(&s), end);
    CHECK_I64(*s.publication.limit, end);
    CHECK(!is_connected(&s));
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_PUBLICATIONS_REVOKED), 1);
    CHECK_I64(heartbeat_flags(&s), 0xF0);
    pass(&s, 8 * RIG_SECOND, end, TERM / 2); /* LINGER lasts while a client holds it */
    CHECK(is_there(&s));
    remove_publication(&s, 11, 0);
    pass(&s, 2 * RIG_SECOND, end, TERM / 2);
    CHECK(!is_there(&s));
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_PUBLICATIONS_REVOKED), 1);
    rig_expect_none(&s.rig);
    asi_log_close(&again.log);
    close_stage(&s);
}

/* DRAINING ends when everything is sent and every spy has read it; LINGER after 5 s. */
static void spies_hold_the_end(void)
{
    stage s;
    rig_image spy;
    open_stage(&s, "");
    add_spy(&s, 20, "", &spy);
    send_status(&s.rig, &s.q, &s.publication, 0, TERM / 2, 0);
    const int64_t end = publish(&s, 3, 100);
    remove_publication(&s, PUBLICATION, 0);
    pass(&s, 20 * RIG_SECOND, end, TERM / 2);
    rig_expect_none(&s.rig);
    CHECK(is_there(&s));
    asi_store_release_i64(spy.position, end);
    pass(&s, 1200 * RIG_MS, end, TERM / 2);
    rig_expect_unavailable(&s.rig, PUBLICATION, 20);
    pass(&s, 4 * RIG_SECOND, end, TERM / 2);
    CHECK(is_there(&s));
    pass(&s, 3 * RIG_SECOND, end, TERM / 2);
    CHECK(!is_there(&s));
    close_stage(&s);
}

/* What a dead publisher had claimed is padded over at the first tick of DRAINING, so that the stream can end. */
static void a_claim_does_not_hold_the_end(void)
{
    stage s;
    uint8_t *frame;
    open_stage(&s, "");
    send_status(&s.rig, &s.q, &s.publication, 0, TERM / 2, 0);
    publish(&s, 1, 100);
    const int64_t claimed = asi_append_claim(&s.publication.appender, 200, &frame);
    CHECK(claimed > 0);
    remove_publication(&s, PUBLICATION, 0);
    CHECK_I64(end_of_stream(&s), claimed);
    pass(&s, 2200 * RIG_MS, 160, TERM / 2);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_UNBLOCKED_PUBLICATIONS), 1);
    CHECK_I64(sent(&s), claimed);
    CHECK_I64(heartbeat_flags(&s), 0xE0);
    close_stage(&s);
}

/* A publisher that claimed and died, while others go on: after the timeout the sender gets past its claim, not before, and of a
 * stream that goes on nothing is taken. */
static void a_claim_blocks_until_the_timeout(void)
{
    stage s;
    uint8_t *frame;
    open_stage(&s, "");
    send_status(&s.rig, &s.q, &s.publication, 0, TERM / 2, 0);
    publish(&s, 1, 100);
    pass(&s, 40 * RIG_SECOND, 160, TERM / 2); /* idle is not blocked */
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_UNBLOCKED_PUBLICATIONS), 0);
    const int64_t claimed = asi_append_claim(&s.publication.appender, 200, &frame);
    CHECK(claimed > 0);
    publish(&s, 1, 100);
    pass(&s, 14 * RIG_SECOND, 160, TERM / 2);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_UNBLOCKED_PUBLICATIONS), 0);
    CHECK_I64(sent(&s), 160);
    pass(&s, 3500 * RIG_MS, 160, TERM / 2); /* 15 s and two ticks */
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_UNBLOCKED_PUBLICATIONS), 1);
    CHECK_I64(((const asi_frame_header *)(const void *)frame)->type, ASI_FRAME_PAD);
    CHECK_I64(sent(&s), claimed + 160);
    close_stage(&s);
}

/* Without receivers unsent data holds nothing up, and no heartbeat says that the stream was sent to its end. */
static void nobody_holds_the_end(void)
{
    stage s;
    open_stage(&s, "");
    send_status(&s.rig, &s.q, &s.publication, 0, 0, 0);
    publish(&s, 2, 100);
    remove_publication(&s, PUBLICATION, 0);
    pass(&s, 4500 * RIG_MS, 0, -1);
    CHECK_I64(heartbeat_flags(&s), 0xC0);
    pass(&s, 8 * RIG_SECOND, 0, -1); /* 5 s to the receiver's end, 5 s of linger, two ticks */
    CHECK_I64(heartbeat_flags(&s), 0xC0);
    CHECK(!is_there(&s));
    close_stage(&s);
}

/* Spec: 03 §8 "Accepting spies", "Spy join position". */
static void when_spies_may_join(void)
{
    static const struct { bool has_spy; bool is_unsent; bool is_closed; bool is_accepted; } ROWS[] = {
        { false, false, false, true },
        { true, true, false, true },
        { true, true, true, true },
        { false, true, true, false },
        { true, false, true, false },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        rig_image spy;
        open_stage(&s, "");
        if (ROWS[i].has_spy)
        {
            add_spy(&s, 20, "", &spy);
        }
        send_status(&s.rig, &s.q, &s.publication, 0, 160, 0);
        publish(&s, ROWS[i].is_unsent ? 2 : 1, 100);
        CHECK_I64(sent(&s), 160);
        if (ROWS[i].is_closed)
        {
            remove_publication(&s, PUBLICATION, 0);
        }
        send_subscription(&s, 21, "aeron-spy:%s%s", "");
        if (ROWS[i].is_accepted)
        {
            rig_expect_image(&s.rig, 21, &spy);
            CHECK_I64(*spy.position, 160);
        }
        rig_expect_none(&s.rig);
        close_stage(&s);
    }
}

/* Spec: 03 §10, rows of spies. `stream` 0 is the publication's. */
static void whom_spies_match(void)
{
    static const struct { const char *params; const char *spy; int32_t stream; bool is_matched; } ROWS[] = {
        { "", "", 0, true },
        { "", "", 1, false },
        { "", "|session-id=5", 0, false },
        { "|session-id=5", "|session-id=5", 0, true },
        { "|session-id=5", "", 0, true },
        { "|tags=7", "|tags=7", 0, true },
        { "|tags=7|session-id=5", "|tags=7|session-id=6", 0, true },
        { "|tags=7", "|tags=8", 0, false },
        { "|tags=7", "", 0, true },
        { "", "|mtu=8192|term-length=1m", 0, true },
        { "", "|interface=127.0.0.1", 0, false },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        stage s;
        rig_image spy;
        open_stage(&s, ROWS[i].params);
        char channel[400];
        snprintf(channel, sizeof(channel), "aeron-spy:aeron:udp?endpoint=127.0.0.1:%d%s", s.q.port, ROWS[i].spy);
        rig_send_add(&s.rig, ASI_CMD_ADD_SUBSCRIPTION, CLIENT, 20, NETWORK_STREAM + ROWS[i].stream, channel);
        rig_expect_i32(&s.rig, ASI_RSP_SUBSCRIPTION_READY, 20);
        if (ROWS[i].is_matched)
        {
            rig_expect_image(&s.rig, 20, &spy);
        }
        if (rig_receive(&s.rig))
        {
            fprintf(stderr, "publication %s, spy %s: matched\n", ROWS[i].params, ROWS[i].spy);
            exit(1);
        }
        close_stage(&s);
    }
}

/* Two spies that simulate a connection: the sender follows the fast one, the limit the slow one, to the very end. */
static void spies_in_place_of_receivers(void)
{
    stage s;
    rig_image fast;
    rig_image slow;
    open_stage(&s, "|ssc=true");
    CHECK(!is_connected(&s));
    add_spy(&s, 20, "", &fast);
    add_spy(&s, 21, "", &slow);
    rig_cycles(&s.rig, 3);
    CHECK(is_connected(&s));
    const int64_t end = publish(&s, 20, 992);
    CHECK_I64(sent(&s), 0);
    asi_store_release_i64(fast.position, end);
    rig_cycles(&s.rig, 3);
    CHECK_I64(sent(&s), end);
    CHECK_I64(*s.publication.limit, TERM / 2);
    asi_store_release_i64(slow.position, 1024);
    rig_cycles(&s.rig, 3);
    CHECK_I64(*s.publication.limit, 1024 + TERM / 2);
    const int64_t last = publish(&s, 2, 992);
    remove_publication(&s, PUBLICATION, 0);
    pass(&s, 3 * RIG_SECOND, 0, -1);
    CHECK_I64(sent(&s), end);
    asi_store_release_i64(fast.position, last);
    pass(&s, 7 * RIG_SECOND, 0, -1);
    CHECK_I64(sent(&s), last);
    rig_expect_none(&s.rig);
    asi_store_release_i64(slow.position, last);
    pass(&s, 1200 * RIG_MS, 0, -1);
    rig_expect_unavailable(&s.rig, PUBLICATION, 20);
    rig_expect_unavailable(&s.rig, PUBLICATION, 21);
    pass(&s, 7 * RIG_SECOND, 0, -1);
    CHECK(!is_there(&s));
    while (peer_receive(&s.q))
    {
        CHECK_I64(peer_type(&s.q), ASI_FRAME_SETUP); /* nothing else on the wire, not even the end */
    }
    close_stage(&s);
}

/* Spec: 03 §11, spies: three quarters of a window behind the sent position for 5 s, LINGER 5 s, RESTING 10 s. */
static void untethered_spies(void)
{
    static const char *const ROWS[] = { "|tether=false", "|tether=false|rejoin=false", "" };
    for (int i = 0; i < 3; i++)
    {
        stage s;
        rig_image spy;
        open_stage(&s, "");
        add_spy(&s, 20, ROWS[i], &spy);
        send_status(&s.rig, &s.q, &s.publication, 0, TERM / 2, 0);
        const int64_t end = publish(&s, 30, 992);
        pass(&s, 4500 * RIG_MS, end, TERM / 2);
        rig_expect_none(&s.rig);
        CHECK_I64(*s.publication.limit, TERM / 2);
        pass(&s, 2 * RIG_SECOND, end, TERM / 2);
        if (2 == i)
        {
            pass(&s, 20 * RIG_SECOND, end, TERM / 2);
            rig_expect_none(&s.rig);
            CHECK_I64(*s.publication.limit, TERM / 2);
            close_stage(&s);
            continue;
        }
        rig_expect_unavailable(&s.rig, PUBLICATION, 20);
        CHECK_I64(*s.publication.limit, TERM / 2); /* T10: LINGER still counts */
        pass(&s, 6500 * RIG_MS, end, TERM / 2);
        CHECK_I64(*s.publication.limit, end + TERM / 2);
        CHECK_I64(asi_counter_state(&s.rig.counters, spy.available.subscriber_position_id),
            0 == i ? ASI_COUNTER_ALLOCATED : ASI_COUNTER_RECLAIMED);
        rig_expect_none(&s.rig);
        pass(&s, 12 * RIG_SECOND, end, TERM / 2);
        if (0 == i)
        {
            const int32_t counter_id = spy.available.subscriber_position_id;
            rig_expect_image(&s.rig, 20, &spy);
            CHECK_I64(spy.available.subscriber_position_id, counter_id);
            CHECK_I64(*spy.position, end);
        }
        rig_expect_none(&s.rig);
        close_stage(&s);
    }
}

static void open_manual_stage(stage *s)
{
    rig_open(&s->rig, network_settings);
    peer_open(&s->q);
    rig_send_add(&s->rig, ASI_CMD_ADD_PUBLICATION, CLIENT, PUBLICATION, NETWORK_STREAM, "aeron:udp?control-mode=manual");
    s->heartbeat = rig_expect_i32(&s->rig, ASI_RSP_COUNTER_READY, CLIENT);
    rig_expect_publication(&s->rig, false, &s->publication);
}

static void add_destination(stage *s, int64_t registration_id, const char *host, int port)
{
    uint8_t message[128];
    char channel[64];
    const int length = snprintf(channel, sizeof(channel), "aeron:udp?endpoint=%s:%d", host, port);
    const asi_cmd_destination command = { { CLIENT, registration_id }, PUBLICATION, length };
    memcpy(message, &command, sizeof(command));
    memcpy(message + sizeof(command), channel, (size_t)length);
    rig_send(&s->rig, ASI_CMD_ADD_DESTINATION, message, (int64_t)sizeof(command) + length);
    rig_expect_success(&s->rig, registration_id);
}

/* Decision 54 - the kernel refuses what goes to all hosts at once (EACCES). The other destination gets each frame, once. */
static void a_destination_that_is_refused_holds_no_other(void)
{
    stage s = { .heartbeat = 0 };
    int64_t heard = 0;
    open_manual_stage(&s);
    add_destination(&s, 30, "255.255.255.255", s.q.port);
    add_destination(&s, 31, "127.0.0.1", s.q.port);
    rig_run(&s.rig, 101);
    peer_expect(&s.q, ASI_FRAME_SETUP);
    send_status(&s.rig, &s.q, &s.publication, 0, TERM / 2, 0);
    const int64_t end = publish(&s, 10, 100);
    CHECK_I64(sent(&s), end);
    while (peer_receive(&s.q))
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)s.q.bytes;
        const bool is_message = ASI_FRAME_DATA == peer_type(&s.q) && frame->frame_length > AS_FRAME_HEADER_LENGTH;
        CHECK(!is_message || frame->term_offset == heard);
        heard += is_message ? s.q.length : 0;
    }
    CHECK_I64(heard, end);
    CHECK(rig_system(&s.rig, ASI_SYSTEM_ERRORS) > 0);
    CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_SHORT_SENDS), 0);
    close_stage(&s);
}

/* An error frame identifies its destination of a manual cast; unicast and unlisted ones have none. */
static void errors_of_destinations(void)
{
    stage s = { .heartbeat = 0 };
    peer other;
    open_manual_stage(&s);
    peer_open(&other);
    peer *const peers[] = { &s.q, &other };
    for (int i = 0; i < 2; i++)
    {
        add_destination(&s, 30 + i, "127.0.0.1", peers[i]->port);
    }
    rig_run(&s.rig, 101);
    for (int i = 0; i < 2; i++)
    {
        peer_expect(peers[i], ASI_FRAME_SETUP);
        asi_status_frame status = make_status(&s.publication, 0, TERM / 2, 0);
        status.receiver_id = 900 + i;
        peer_send(peers[i], &status, ASI_STATUS_LENGTH);
        rig_cycles(&s.rig, 3);
    }
    for (int i = 1; i >= 0; i--)
    {
        const asi_error_frame frame = {
            .prefix = { .frame_length = sizeof(frame), .type = ASI_FRAME_ERROR },
            .session_id = s.publication.ready.session_id,
            .stream_id = NETWORK_STREAM,
            .receiver_id = 900 + i,
            .error_code = ASI_ERR_IMAGE_REJECTED
        };
        peer_send(peers[i], &frame, sizeof(frame));
        rig_cycles(&s.rig, 3);
        asi_rsp_publication_error error;
        memcpy(&error, rig_expect(&s.rig, ASI_RSP_PUBLICATION_ERROR), sizeof(error));
        CHECK_I64(error.registration_id, PUBLICATION);
        CHECK_I64(error.destination_registration_id, 30 + i);
        CHECK_I64(error.receiver_id, 900 + i);
        CHECK_I64(error.source_port, peers[i]->port);
    }
    peer_close(&other);
    close_stage(&s);
}

/* Spec: 03 §12 - a client that goes, silently or not, leaves its streams to end as if it had closed each. */
static void a_client_goes(void)
{
    for (int is_closed = 0; is_closed < 2; is_closed++)
    {
        stage s;
        rig_image spy;
        rig_publication shared;
        open_stage(&s, "");
        add_spy(&s, 20, "", &spy);
        rig_send_add(&s.rig, ASI_CMD_ADD_PUBLICATION, OTHER, 12, 1002, "aeron:udp?endpoint=127.0.0.1:24390");
        const int32_t other_heartbeat = rig_expect_i32(&s.rig, ASI_RSP_COUNTER_READY, OTHER);
        rig_expect_publication(&s.rig, false, &shared);
        send_status(&s.rig, &s.q, &s.publication, 0, TERM / 2, 0);
        const int64_t end = publish(&s, 3, 100);
        if (is_closed)
        {
            rig_send_ids(&s.rig, ASI_CMD_CLIENT_CLOSE, CLIENT, -1);
        }
        for (int i = 0; i < (is_closed ? 12 : 120); i++)
        {
            send_status(&s.rig, &s.q, &s.publication, end, TERM / 2, 0);
            rig_heartbeat(&s.rig, other_heartbeat);
            rig_pass(&s.rig, 100 * RIG_MS);
        }
        if (!is_closed)
        {
            rig_expect(&s.rig, ASI_RSP_CLIENT_TIMEOUT);
        }
        CHECK_I64(rig_expect_i32(&s.rig, ASI_RSP_UNAVAILABLE_COUNTER, CLIENT), s.heartbeat);
        rig_expect_none(&s.rig);
        CHECK_I64(end_of_stream(&s), end);
        CHECK_I64(heartbeat_flags(&s), 0xE0);
        CHECK_I64(asi_counter_state(&s.rig.counters, spy.available.subscriber_position_id), ASI_COUNTER_RECLAIMED);
        for (int i = 0; i < 80; i++)
        {
            rig_heartbeat(&s.rig, other_heartbeat);
            rig_pass(&s.rig, 100 * RIG_MS);
        }
        const int32_t left = asi_counters_find(&s.rig.counters, ASI_COUNTER_TYPE_SENDER_POSITION, NULL, NULL);
        CHECK(left >= 0); /* the other client's */
        CHECK_I64(*asi_counter_addr(&s.rig.counters, left), 0);
        CHECK_I64(rig_system(&s.rig, ASI_SYSTEM_PUBLICATIONS_REVOKED), 0);
        asi_log_close(&shared.log);
        close_stage(&s);
    }
}

int main(void)
{
    RUN(the_last_holder_ends_it);
    RUN(one_holder_revokes_it);
    RUN(spies_hold_the_end);
    RUN(a_claim_does_not_hold_the_end);
    RUN(a_claim_blocks_until_the_timeout);
    RUN(nobody_holds_the_end);
    RUN(when_spies_may_join);
    RUN(whom_spies_match);
    RUN(spies_in_place_of_receivers);
    RUN(untethered_spies);
    RUN(a_destination_that_is_refused_holds_no_other);
    RUN(errors_of_destinations);
    RUN(a_client_goes);
    return 0;
}
