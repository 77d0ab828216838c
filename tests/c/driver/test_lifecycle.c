/* How publications, subscriptions and blocked claims end over time.
 *
 * Method: a rig whose clock the test moves; the test plays the client through shared memory as a client process would. Times
 * are the stock defaults: timer 1 s, liveness 10 s, unblock 15 s, untethered 5 s + 5 s + 10 s.
 * Spec: 02 §7, 03 §7, §11, §12. */
#include "rig.h"

#define PUBLISHER 101
#define SUBSCRIBER 102
#define STREAM 1001

/* A publisher and a subscriber, two clients, linked. */
typedef struct test_stream
{
    test_rig rig;
    int32_t publisher_heartbeat;
    int32_t subscriber_heartbeat;
    rig_publication publication;
    rig_image image;
} test_stream;

/* Both live on for `duration_ns`. */
static void pass_alive(test_stream *stream, int64_t duration_ns)
{
    for (int64_t passed = 0; passed < duration_ns; passed += 100 * RIG_MS)
    {
        rig_heartbeat(&stream->rig, stream->publisher_heartbeat);
        rig_heartbeat(&stream->rig, stream->subscriber_heartbeat);
        rig_pass(&stream->rig, 100 * RIG_MS);
    }
}

static void open_stream(test_stream *stream, bool is_exclusive, const char *publication_channel, const char *subscription_channel)
{
    rig_open(&stream->rig, NULL);
    rig_send_add(&stream->rig, is_exclusive ? ASI_CMD_ADD_EXCLUSIVE_PUBLICATION : ASI_CMD_ADD_PUBLICATION, PUBLISHER, 1, STREAM,
        publication_channel);
    stream->publisher_heartbeat = rig_expect_i32(&stream->rig, ASI_RSP_COUNTER_READY, PUBLISHER);
    rig_expect_publication(&stream->rig, is_exclusive, &stream->publication);
    CHECK_I64(rig_offer(&stream->publication, 100), AS_NOT_CONNECTED);
    rig_send_add(&stream->rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 2, STREAM, subscription_channel);
    stream->subscriber_heartbeat = rig_expect_i32(&stream->rig, ASI_RSP_COUNTER_READY, SUBSCRIBER);
    rig_expect_i32(&stream->rig, ASI_RSP_SUBSCRIPTION_READY, 2);
    rig_expect_image(&stream->rig, 2, &stream->image);
    rig_expect_none(&stream->rig);
}

static void close_stream(test_stream *stream)
{
    asi_log_close(&stream->publication.log);
    rig_close(&stream->rig);
}

static void remove_publication(test_stream *stream, bool revoke)
{
    const asi_cmd_remove_publication command = { { PUBLISHER, 50 }, 1, revoke ? ASI_REMOVE_PUBLICATION_REVOKE : 0 };
    rig_send(&stream->rig, ASI_CMD_REMOVE_PUBLICATION, &command, sizeof(command));
    rig_expect_success(&stream->rig, 50);
    rig_expect_none(&stream->rig);
}

static bool log_exists(const test_stream *stream)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/publications/1.logbuffer", stream->rig.dir);
    return asi_file_exists(path);
}

static int32_t is_connected(const test_stream *stream)
{
    return asi_load_acquire_i32(&stream->publication.log.metadata->is_connected);
}

/* Offers until the limit; returns the position reached. */
static int64_t fill(test_stream *stream, int64_t length)
{
    int64_t reached = 0;
    for (;;)
    {
        const int64_t position = rig_offer(&stream->publication, length);
        if (AS_BACK_PRESSURED == position || AS_NOT_CONNECTED == position)
        {
            return reached;
        }
        CHECK(position > 0 || AS_ADMIN_ACTION == position);
        reached = position > 0 ? position : reached;
    }
}

/* The limit is the slowest subscriber plus the window, raised in steps of an eighth; the log is zero ahead of it. */
static void limits(void)
{
    static const struct { const char *channel; int64_t window; } ROWS[] = {
        { "aeron:ipc?term-length=64k", 32768 },
        { "aeron:ipc?term-length=64k|pub-wnd=16k", 16384 },
        { "aeron:ipc?term-length=128k", 65536 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        test_stream stream;
        open_stream(&stream, true, ROWS[i].channel, "aeron:ipc");
        const int64_t window = ROWS[i].window;
        CHECK_I64(asi_load_acquire_i64(stream.publication.limit), window);
        CHECK_I64(is_connected(&stream), 1);
        for (int lap = 0; lap < 50; lap++)
        {
            const int64_t position = fill(&stream, 1000);
            CHECK(position >= asi_load_acquire_i64(stream.publication.limit));
            rig_cycle(&stream.rig);
            CHECK_I64(rig_offer(&stream.publication, 1), AS_BACK_PRESSURED);
            asi_store_release_i64(stream.image.position, position - window / 8);
            rig_cycle(&stream.rig);
            asi_store_release_i64(stream.image.position, position);
            rig_cycle(&stream.rig);
            const int64_t limit = asi_load_acquire_i64(stream.publication.limit);
            CHECK(limit <= position + window && limit >= position + window - window / 8);
            /* Everything a publisher may write to next is zero. */
            const asi_log *log = &stream.publication.log;
            for (int64_t at = position; at < limit; at += AS_FRAME_ALIGNMENT)
            {
                const uint8_t *term = log->terms[asi_log_index_of_position(at, log->position_bits)];
                CHECK_I64(asi_get_i32(term + (at & (log->term_length - 1))), 0);
            }
        }
        close_stream(&stream);
    }
}

/* Unsound numbers in a subscriber's counter neither crash the driver nor move the publisher backwards. */
static void hostile_positions(void)
{
    static const int64_t VALUES[] = { INT64_MAX, INT64_MIN, -1, 33, 1LL << 40, -(1LL << 62) };
    test_stream stream;
    open_stream(&stream, false, "aeron:ipc?term-length=64k", "aeron:ipc?tether=false");
    fill(&stream, 1000);
    for (size_t i = 0; i < sizeof(VALUES) / sizeof(VALUES[0]); i++)
    {
        asi_store_release_i64(stream.image.position, VALUES[i]);
        pass_alive(&stream, 2 * RIG_SECOND);
        stream.publication.log.metadata->tail_counters[i % 3] = VALUES[i];
        asi_store_release_i32(&stream.publication.log.metadata->active_term_count, (int32_t)VALUES[i]);
        pass_alive(&stream, 20 * RIG_SECOND);
    }
    CHECK(asi_load_acquire_i64(stream.publication.limit) >= 0);
    close_stream(&stream);
}

/* A publication that starts at a given position. */
static void explicit_position(void)
{
    test_stream stream;
    const int64_t start = 65536LL * 4 + 64;
    open_stream(&stream, true, "aeron:ipc?term-length=64k|init-term-id=7|term-id=11|term-offset=64", "aeron:ipc");
    CHECK_I64(asi_log_producer_position(&stream.publication.log), start);
    CHECK_I64(*stream.image.position, start);
    CHECK_I64(asi_load_acquire_i64(stream.publication.limit), start + 32768);
    CHECK_I64(fill(&stream, 1000) > start, true);
    close_stream(&stream);
}

typedef enum publication_end
{
    END_CLOSED,      /* last reference removed */
    END_REVOKED,
    END_TIMED_OUT    /* publisher's client died */
} publication_end;

/* Spec: 03 §7 - what a subscriber hears, and when the log goes. */
static void ends(void)
{
    static const struct { publication_end end; bool is_exclusive; bool is_read; bool goes_at_once; } ROWS[] = {
        { END_CLOSED, true, true, true },
        { END_CLOSED, false, true, true },
        { END_CLOSED, true, false, false },
        { END_REVOKED, true, false, true },
        { END_REVOKED, false, false, true },
        { END_TIMED_OUT, true, false, false },
        { END_TIMED_OUT, true, true, true },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        test_stream stream;
        open_stream(&stream, ROWS[i].is_exclusive, "aeron:ipc?term-length=64k", "aeron:ipc");
        const int64_t position = rig_offer(&stream.publication, 1000);
        CHECK(position > 0);
        if (ROWS[i].is_read)
        {
            asi_store_release_i64(stream.image.position, position);
        }
        rig_cycle(&stream.rig);
        if (END_TIMED_OUT == ROWS[i].end)
        {
            for (int tenth = 0; tenth < 115; tenth++)
            {
                rig_heartbeat(&stream.rig, stream.subscriber_heartbeat);
                rig_pass(&stream.rig, 100 * RIG_MS);
            }
            rig_expect(&stream.rig, ASI_RSP_CLIENT_TIMEOUT);
            CHECK_I64(asi_get_i64(stream.rig.last.bytes), PUBLISHER);
            rig_expect_i32(&stream.rig, ASI_RSP_UNAVAILABLE_COUNTER, PUBLISHER);
            CHECK_I64(rig_system(&stream.rig, ASI_SYSTEM_CLIENT_TIMEOUTS), 1);
        }
        else
        {
            remove_publication(&stream, END_REVOKED == ROWS[i].end);
        }
        asi_log_metadata *metadata = stream.publication.log.metadata;
        if (END_REVOKED != ROWS[i].end)
        {
            CHECK_I64(asi_load_acquire_i64(&metadata->end_of_stream_position), position);
        }
        CHECK_I64(metadata->is_publication_revoked, END_REVOKED == ROWS[i].end);
        if (!ROWS[i].goes_at_once)
        {
            rig_heartbeat(&stream.rig, stream.subscriber_heartbeat);
            rig_pass(&stream.rig, 5 * RIG_SECOND);
            rig_expect_none(&stream.rig);
            CHECK(log_exists(&stream));
            asi_store_release_i64(stream.image.position, position);
        }
        rig_pass(&stream.rig, RIG_SECOND);
        rig_expect_unavailable(&stream.rig, 1, 2);
        rig_expect_none(&stream.rig);
        CHECK_I64(asi_load_acquire_i64(&metadata->end_of_stream_position), position);
        CHECK(!log_exists(&stream));
        CHECK_I64(rig_system(&stream.rig, ASI_SYSTEM_PUBLICATIONS_REVOKED), END_REVOKED == ROWS[i].end);
        CHECK_I64(asi_counter_state(&stream.rig.counters, stream.image.available.subscriber_position_id),
            ASI_COUNTER_RECLAIMED);
        close_stream(&stream);
    }
}

/* A shared publication lives until its last publisher leaves. */
static void shared(void)
{
    test_stream stream;
    open_stream(&stream, false, "aeron:ipc?term-length=64k", "aeron:ipc");
    rig_send_add(&stream.rig, ASI_CMD_ADD_PUBLICATION, SUBSCRIBER, 3, STREAM, "aeron:ipc");
    asi_rsp_publication_ready ready;
    memcpy(&ready, rig_expect(&stream.rig, ASI_RSP_PUBLICATION_READY), sizeof(ready));
    CHECK_I64(ready.correlation_id, 3);
    CHECK_I64(ready.registration_id, 1);
    CHECK_I64(ready.session_id, stream.publication.ready.session_id);
    remove_publication(&stream, false);
    pass_alive(&stream, 3 * RIG_SECOND);
    rig_expect_none(&stream.rig);
    CHECK(log_exists(&stream));
    rig_send_remove(&stream.rig, ASI_CMD_REMOVE_PUBLICATION, PUBLISHER, 51, 3); /* the other client's */
    rig_expect_error(&stream.rig, 51, ASI_ERR_UNKNOWN_PUBLICATION);
    rig_send_remove(&stream.rig, ASI_CMD_REMOVE_PUBLICATION, SUBSCRIBER, 52, 3);
    rig_expect_success(&stream.rig, 52);
    pass_alive(&stream, RIG_SECOND);
    rig_expect_unavailable(&stream.rig, 1, 2);
    CHECK(!log_exists(&stream));
    close_stream(&stream);
}

/* Who adds the stream while its revocation waits for the timer gets a publication of its own, not the one that is ending. */
static void added_while_revoked(void)
{
    test_stream stream;
    rig_publication fresh;
    open_stream(&stream, false, "aeron:ipc?term-length=64k", "aeron:ipc");
    remove_publication(&stream, true);
    rig_send_add(&stream.rig, ASI_CMD_ADD_PUBLICATION, PUBLISHER, 3, STREAM, "aeron:ipc?term-length=64k");
    rig_expect_publication(&stream.rig, false, &fresh);
    CHECK_I64(fresh.ready.registration_id, 3);
    CHECK(fresh.ready.session_id != stream.publication.ready.session_id);
    rig_expect_image(&stream.rig, 2, &stream.image);
    pass_alive(&stream, RIG_SECOND);
    rig_expect_unavailable(&stream.rig, 1, 2);
    rig_expect_none(&stream.rig);
    CHECK(rig_offer(&fresh, 100) > 0);
    asi_log_close(&fresh.log);
    close_stream(&stream);
}

/* Subscribers come and go: connected or not, and where a late one joins. */
static void subscribers(void)
{
    test_stream stream;
    rig_image late;
    open_stream(&stream, true, "aeron:ipc?term-length=64k", "aeron:ipc");
    const int64_t first = rig_offer(&stream.publication, 1000);
    const int64_t second = rig_offer(&stream.publication, 1000);
    asi_store_release_i64(stream.image.position, first);
    rig_cycle(&stream.rig);
    rig_send_add(&stream.rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 3, STREAM, "aeron:ipc");
    rig_expect_i32(&stream.rig, ASI_RSP_SUBSCRIPTION_READY, 3);
    rig_expect_image(&stream.rig, 3, &late);
    CHECK_I64(*late.position, first);
    asi_store_release_i64(stream.image.position, second);
    rig_cycle(&stream.rig);
    rig_send_remove(&stream.rig, ASI_CMD_REMOVE_SUBSCRIPTION, SUBSCRIBER, 60, 2);
    rig_expect_success(&stream.rig, 60);
    CHECK_I64(is_connected(&stream), 1);
    rig_send_remove(&stream.rig, ASI_CMD_REMOVE_SUBSCRIPTION, SUBSCRIBER, 61, 3);
    rig_expect_success(&stream.rig, 61);
    CHECK_I64(is_connected(&stream), 0);
    CHECK_I64(asi_load_acquire_i64(stream.publication.limit), second);
    CHECK_I64(rig_offer(&stream.publication, 1000), AS_NOT_CONNECTED);
    rig_send_add(&stream.rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 4, STREAM, "aeron:ipc");
    rig_expect_i32(&stream.rig, ASI_RSP_SUBSCRIPTION_READY, 4);
    rig_expect_image(&stream.rig, 4, &late);
    CHECK_I64(*late.position, second);
    CHECK_I64(asi_load_acquire_i64(stream.publication.limit), second + 32768);
    /* What the last one read before it left, read it has. */
    const int64_t third = rig_offer(&stream.publication, 1000);
    rig_cycle(&stream.rig);
    asi_store_release_i64(late.position, third);
    rig_send_remove(&stream.rig, ASI_CMD_REMOVE_SUBSCRIPTION, SUBSCRIBER, 62, 4);
    rig_expect_success(&stream.rig, 62);
    rig_send_add(&stream.rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 5, STREAM, "aeron:ipc");
    rig_expect_i32(&stream.rig, ASI_RSP_SUBSCRIPTION_READY, 5);
    rig_expect_image(&stream.rig, 5, &late);
    CHECK_I64(*late.position, third);
    rig_expect_none(&stream.rig);
    close_stream(&stream);
}

/* Which subscriptions match which session. Spec: 03 §10. */
static void matching(void)
{
    static const struct { const char *channel; int32_t stream_id; bool matches; } ROWS[] = {
        { "aeron:ipc", STREAM, true },
        { "aeron:ipc", STREAM + 1, false },
        { "aeron:ipc?session-id=55", STREAM, true },
        { "aeron:ipc?session-id=56", STREAM, false },
        { "aeron:ipc?control-mode=response", STREAM, false },
        { "aeron:ipc?control-mode=response|session-id=55", STREAM, true },
        { "aeron-spy:aeron:udp?endpoint=127.0.0.1:24300", STREAM, false },
    };
    test_stream stream;
    open_stream(&stream, true, "aeron:ipc?session-id=55", "aeron:ipc");
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        rig_image image;
        rig_send_add(
            &stream.rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 10 + (int64_t)i, ROWS[i].stream_id, ROWS[i].channel);
        CHECK_I64(rig_expect_i32(&stream.rig, ASI_RSP_SUBSCRIPTION_READY, 10 + (int64_t)i), -1);
        if (ROWS[i].matches)
        {
            rig_expect_image(&stream.rig, 10 + (int64_t)i, &image);
        }
        rig_expect_none(&stream.rig);
    }
    close_stream(&stream);
}

/* Request and response over IPC: the answers reach the subscription made for them. Spec: 03 §6.4 step 8. */
static void responses(void)
{
    test_rig rig;
    rig_image image;
    rig_open(&rig, NULL);
    rig_send_add(&rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 2, 20, "aeron:ipc?control-mode=response");
    rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, SUBSCRIBER);
    rig_expect_i32(&rig, ASI_RSP_SUBSCRIPTION_READY, 2);
    rig_send_add(&rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, SUBSCRIBER, 3, 10, "aeron:ipc?response-correlation-id=2");
    rig_expect(&rig, ASI_RSP_EXCLUSIVE_PUBLICATION_READY);
    rig_send_add(&rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, SUBSCRIBER, 4, 20, "aeron:ipc?session-id=5");
    rig_expect(&rig, ASI_RSP_EXCLUSIVE_PUBLICATION_READY);
    rig_expect_none(&rig);
    rig_send_add(&rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, SUBSCRIBER, 5, 20,
        "aeron:ipc?control-mode=response|response-correlation-id=3|session-id=6");
    rig_expect(&rig, ASI_RSP_EXCLUSIVE_PUBLICATION_READY);
    rig_expect_image(&rig, 2, &image);
    CHECK_I64(image.available.session_id, 6);
    rig_expect_none(&rig);
    rig_close(&rig);
}

/* Spec: 03 §7 - everybody off, and back on after the image liveness timeout since the last rejection. */
static void rejection(void)
{
    test_stream stream;
    open_stream(&stream, true, "aeron:ipc?term-length=64k", "aeron:ipc");
    const int64_t position = rig_offer(&stream.publication, 1000);
    asi_store_release_i64(stream.image.position, position);
    rig_cycle(&stream.rig);
    const asi_cmd_reject_image reject = { { SUBSCRIBER, 70 }, 1, 0, 0 };
    for (int i = 0; i < 2; i++)
    {
        rig_send(&stream.rig, ASI_CMD_REJECT_IMAGE, &reject, sizeof(reject));
        rig_expect(&stream.rig, ASI_RSP_PUBLICATION_ERROR);
        if (0 == i)
        {
            rig_expect_unavailable(&stream.rig, 1, 2);
        }
        rig_expect_success(&stream.rig, 70);
        CHECK_I64(is_connected(&stream), 0);
        pass_alive(&stream, 6 * RIG_SECOND);
        rig_expect_none(&stream.rig);
    }
    CHECK_I64(rig_system(&stream.rig, ASI_SYSTEM_IMAGES_REJECTED), 2);
    CHECK_I64(rig_system(&stream.rig, ASI_SYSTEM_ERRORS), 2);
    CHECK_I64(rig_offer(&stream.publication, 1000), AS_NOT_CONNECTED);
    pass_alive(&stream, 6 * RIG_SECOND);
    rig_expect_image(&stream.rig, 2, &stream.image);
    CHECK_I64(*stream.image.position, position);
    CHECK_I64(is_connected(&stream), 1);
    close_stream(&stream);
}

/* Spec: 03 §11 - from the window's limit to lingering, resting, and back or never. */
static void untethered(void)
{
    static const struct { bool is_rejoin; const char *channel; } ROWS[] = {
        { true, "aeron:ipc?tether=false" }, { false, "aeron:ipc?tether=false|rejoin=false" }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        test_stream stream;
        rig_image fast;
        open_stream(&stream, true, "aeron:ipc?term-length=64k", ROWS[i].channel);
        rig_send_add(&stream.rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 3, STREAM, "aeron:ipc");
        rig_expect_i32(&stream.rig, ASI_RSP_SUBSCRIPTION_READY, 3);
        rig_expect_image(&stream.rig, 3, &fast);

        const int64_t full = fill(&stream, 1000);
        asi_store_release_i64(fast.position, full);
        pass_alive(&stream, 4 * RIG_SECOND);
        rig_expect_none(&stream.rig);
        pass_alive(&stream, 3 * RIG_SECOND);
        rig_expect_unavailable(&stream.rig, 1, 2);
        CHECK_I64(rig_offer(&stream.publication, 1000), AS_BACK_PRESSURED); /* T10: LINGER still counts */
        pass_alive(&stream, 7 * RIG_SECOND);
        CHECK(rig_offer(&stream.publication, 1000) != AS_BACK_PRESSURED);
        CHECK_I64(asi_counter_state(&stream.rig.counters, stream.image.available.subscriber_position_id),
            ROWS[i].is_rejoin ? ASI_COUNTER_ALLOCATED : ASI_COUNTER_RECLAIMED);
        pass_alive(&stream, 12 * RIG_SECOND);
        if (ROWS[i].is_rejoin)
        {
            const int32_t counter_id = stream.image.available.subscriber_position_id;
            rig_expect_image(&stream.rig, 2, &stream.image);
            CHECK_I64(stream.image.available.subscriber_position_id, counter_id);
            CHECK_I64(*stream.image.position, full);
        }
        rig_expect_none(&stream.rig);
        CHECK_I64(is_connected(&stream), 1);
        close_stream(&stream);
    }
}

/* A subscriber without its image reads no more: the end of the stream does not wait for it. */
static void untethered_at_the_end(void)
{
    test_stream stream;
    rig_image fast;
    open_stream(&stream, true, "aeron:ipc?term-length=64k", "aeron:ipc?tether=false");
    rig_send_add(&stream.rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 3, STREAM, "aeron:ipc");
    rig_expect_i32(&stream.rig, ASI_RSP_SUBSCRIPTION_READY, 3);
    rig_expect_image(&stream.rig, 3, &fast);
    asi_store_release_i64(fast.position, fill(&stream, 1000));
    pass_alive(&stream, 7 * RIG_SECOND);
    rig_expect_unavailable(&stream.rig, 1, 2);
    remove_publication(&stream, false);
    pass_alive(&stream, 2 * RIG_SECOND);
    rig_expect_unavailable(&stream.rig, 1, 3);
    rig_expect_none(&stream.rig);
    CHECK(!log_exists(&stream));
    close_stream(&stream);
}

/* Spec: 02 §7.5-7.6 - what a dead publisher left is made padding, for concurrent publications only. */
static void blocked_publishers(void)
{
    static const struct { bool is_exclusive; bool is_claimed; int64_t unblocked; } ROWS[] = {
        { false, true, 1 },  /* negative length written */
        { false, false, 1 }, /* tail moved, nothing written, a later frame follows */
        { true, true, 0 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        test_stream stream;
        open_stream(&stream, ROWS[i].is_exclusive, "aeron:ipc?term-length=64k", "aeron:ipc");
        const int64_t before = rig_offer(&stream.publication, 100);
        uint8_t *frame;
        const int64_t claimed = asi_append_claim(&stream.publication.appender, 200, &frame);
        CHECK(claimed > before);
        if (!ROWS[i].is_claimed)
        {
            memset(frame, 0, AS_FRAME_HEADER_LENGTH);
        }
        const int64_t after = rig_offer(&stream.publication, 100);
        CHECK(after > claimed);
        asi_store_release_i64(stream.image.position, before);
        pass_alive(&stream, 14 * RIG_SECOND);
        CHECK_I64(rig_system(&stream.rig, ASI_SYSTEM_UNBLOCKED_PUBLICATIONS), 0);
        pass_alive(&stream, 4 * RIG_SECOND);
        CHECK_I64(rig_system(&stream.rig, ASI_SYSTEM_UNBLOCKED_PUBLICATIONS) > 0, ROWS[i].unblocked);
        if (ROWS[i].unblocked)
        {
            const asi_frame_header *padding = (const asi_frame_header *)(const void *)frame;
            CHECK_I64(padding->type, ASI_FRAME_PAD);
            CHECK_I64(asi_frame_occupancy(padding->frame_length), claimed - before);
        }
        asi_store_release_i64(stream.image.position, after);
        rig_cycle(&stream.rig);
        close_stream(&stream);
    }
}

/* A publisher that ends with a claim open is unblocked without waiting, so that its subscribers come to the end; also where
 * it died between moving the tail and its first store, and only the tail shows the claim. */
static void blocked_while_draining(void)
{
    static const struct { bool is_exclusive; bool is_written; } ROWS[] = {
        { false, true }, { true, true }, { false, false }, { true, false }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        test_stream stream;
        open_stream(&stream, ROWS[i].is_exclusive, "aeron:ipc?term-length=64k", "aeron:ipc");
        const int64_t before = rig_offer(&stream.publication, 100);
        uint8_t *frame;
        const int64_t claimed = asi_append_claim(&stream.publication.appender, 200, &frame);
        CHECK(claimed > before);
        if (!ROWS[i].is_written)
        {
            memset(frame, 0, AS_FRAME_HEADER_LENGTH);
        }
        remove_publication(&stream, false);
        asi_store_release_i64(stream.image.position, before);
        rig_pass(&stream.rig, RIG_SECOND);
        const asi_frame_header *padding = (const asi_frame_header *)(const void *)frame;
        CHECK_I64(padding->type, ASI_FRAME_PAD);
        CHECK_I64(asi_frame_occupancy(padding->frame_length), claimed - before);
        asi_store_release_i64(stream.image.position, claimed);
        rig_pass(&stream.rig, RIG_SECOND);
        rig_expect_unavailable(&stream.rig, 1, 2);
        CHECK(!log_exists(&stream));
        close_stream(&stream);
    }
}

/* Spec: 01 §3.4 - a command that was claimed and never committed. */
static void blocked_commands(test_rig *rig)
{
    uint8_t *message;
    CHECK_I64(asi_ring_mpsc_try_claim(&rig->ring, ASI_CMD_CLIENT_KEEPALIVE, 16, &message), AS_OK);
    rig_send_add(rig, ASI_CMD_ADD_SUBSCRIPTION, SUBSCRIBER, 2, STREAM, "aeron:ipc");
    rig_pass(rig, 9 * RIG_SECOND);
    rig_expect_none(rig);
    rig_pass(rig, 4 * RIG_SECOND);
    rig_expect_i32(rig, ASI_RSP_COUNTER_READY, SUBSCRIBER);
    rig_expect_i32(rig, ASI_RSP_SUBSCRIPTION_READY, 2);
    CHECK_I64(rig_system(rig, ASI_SYSTEM_UNBLOCKED_COMMANDS), 1);
}

int main(void)
{
    RUN(limits);
    RUN(hostile_positions);
    RUN(explicit_position);
    RUN(ends);
    RUN(shared);
    RUN(added_while_revoked);
    RUN(subscribers);
    RUN(matching);
    RUN(responses);
    RUN(rejection);
    RUN(untethered);
    RUN(untethered_at_the_end);
    RUN(blocked_publishers);
    RUN(blocked_while_draining);
    RUN_IN_RIG(blocked_commands);
    return 0;
}
