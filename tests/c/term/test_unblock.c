/* Goal: unblocking clears every state that a dead publisher can leave, and never touches a live one's work. Method: each case of
 * Spec: 02 §7.6 laid out by hand. */
#include "term/unblock.h"

#include "log_fixture.h"
#include "term/append.h"
#include "trap.h"

static void check_padding(const asi_log *log, int32_t partition, int64_t offset, int32_t length)
{
    const asi_frame_header *frame = frame_at(log, partition, offset);
    CHECK_I64(frame->frame_length, length);
    CHECK_I64(frame->type, ASI_FRAME_PAD);
    CHECK_I64(frame->flags, ASI_FLAG_UNFRAGMENTED);
    CHECK_I64(frame->term_offset, offset);
    CHECK_I64(frame->session_id, SESSION);
    CHECK_I64(frame->stream_id, STREAM);
    CHECK_I64(frame->term_id, asi_log_term_id(log->metadata->tail_counters[partition]));
}

static void claimed_but_not_committed(void)
{
    asi_log log = log_create(5, 5, 0);
    asi_appender appender;
    uint8_t *frame;
    asi_appender_init(&appender, &log, SESSION, STREAM, false);
    CHECK_I64(asi_append_claim(&appender, 100, &frame), 160);
    CHECK(asi_log_unblock(&log, 0, true));
    check_padding(&log, 0, 0, 132);
    CHECK(!asi_log_unblock(&log, 0, true));
    CHECK(!asi_log_unblock(&log, 160, true)); /* nothing was claimed there */
    CHECK_I64(asi_append_claim(&appender, 0, &frame), 192);
    CHECK(asi_log_unblock(&log, 160, true)); /* no longer than its header */
    check_padding(&log, 0, 160, 32);
    CHECK_I64(asi_append_claim(&appender, 1, &frame), 256);
    frame_at(&log, 0, 192)->frame_length = -(TERM - 192); /* as long as the term is */
    CHECK(asi_log_unblock(&log, 192, true));
    check_padding(&log, 0, 192, TERM - 192);
    log_delete(&log);
}

static void died_before_its_first_store(void)
{
    asi_log log = log_create(5, 5, 0);
    log.metadata->tail_counters[0] = asi_log_raw_tail(5, 256);
    CHECK(!asi_log_unblock(&log, 0, true)); /* its size can't be known yet */
    (void)put_frame(&log, 0, 96, 32, ASI_FLAG_UNFRAGMENTED, 'x');
    CHECK(asi_log_unblock(&log, 0, true));
    check_padding(&log, 0, 0, 96);
    log_delete(&log);
}

static void died_and_the_next_did_too(void)
{
    asi_log log = log_create(5, 5, 0);
    log.metadata->tail_counters[0] = asi_log_raw_tail(5, 256);
    frame_at(&log, 0, 64)->frame_length = -128;
    CHECK(asi_log_unblock(&log, 0, true));
    check_padding(&log, 0, 0, 64);
    CHECK(asi_log_unblock(&log, 64, true));
    check_padding(&log, 0, 64, 128);
    log_delete(&log);
}

static void died_claiming_the_end_of_the_term(void)
{
    asi_log log = log_create(5, 5, 0);
    log.metadata->tail_counters[0] = asi_log_raw_tail(5, TERM + 64);
    CHECK(asi_log_unblock(&log, TERM - 128, true));
    check_padding(&log, 0, TERM - 128, 128);
    CHECK_I64(log.metadata->active_term_count, 1);
    CHECK_I64(log.metadata->tail_counters[1], asi_log_raw_tail(6, 0));
    log_delete(&log);
}

static void died_before_it_rotated(void)
{
    asi_log log = log_create(5, 5, 0);
    log.metadata->tail_counters[0] = asi_log_raw_tail(5, TERM + 64);
    CHECK(asi_log_unblock(&log, TERM, true));
    CHECK_I64(log.metadata->active_term_count, 1);
    CHECK_I64(log.metadata->tail_counters[1], asi_log_raw_tail(6, 0));
    CHECK(!asi_log_unblock(&log, TERM, true));
    log_delete(&log);
}

/* The claim of the last publisher, who died before its first store: nothing lies behind it to tell its size but the tail. */
static void died_last_of_all(void)
{
    asi_log log = log_create(5, 5, 0);
    log.metadata->tail_counters[0] = asi_log_raw_tail(5, 256);
    CHECK(!asi_log_unblock(&log, 64, true)); /* it may be about to write */
    CHECK(asi_log_unblock(&log, 64, false));
    check_padding(&log, 0, 64, 192);
    CHECK(!asi_log_unblock(&log, 256, false));
    log.metadata->tail_counters[0] = asi_log_raw_tail(5, 512);
    frame_at(&log, 0, 384)->frame_length = 64;
    CHECK(asi_log_unblock(&log, 256, false));
    check_padding(&log, 0, 256, 128); /* up to what another one wrote */
    log_delete(&log);
}

/* At its last position a stream has no next term. */
static void full_stream_is_not_rotated(void)
{
    asi_log log = log_create(5, (int32_t)(5U + INT32_MAX), 0);
    const int32_t index = asi_log_index(INT32_MAX);
    log.metadata->tail_counters[index] = asi_log_raw_tail((int32_t)(5U + INT32_MAX), TERM);
    CHECK(!asi_log_unblock(&log, asi_log_max_position(TERM), true));
    CHECK(!asi_log_unblock(&log, asi_log_max_position(TERM), false));
    CHECK_I64(log.metadata->active_term_count, INT32_MAX);
    log_delete(&log);
}

static void hostile_states_are_left_alone(void)
{
    static const int64_t POSITIONS[] = { -1, INT64_MIN, INT64_MAX, 7, TERM + 96, 100LL * TERM };
    asi_log log = log_create(5, 5, 0);
    for (size_t i = 0; i < sizeof(POSITIONS) / sizeof(POSITIONS[0]); i++)
    {
        CHECK(!asi_log_unblock(&log, POSITIONS[i], true));
    }
    static const int32_t LENGTHS[] = { -1, -31, -TERM, -TERM - 32, INT32_MIN };
    log.metadata->tail_counters[0] = asi_log_raw_tail(5, 256);
    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
    {
        frame_at(&log, 0, 32)->frame_length = LENGTHS[i];
        CHECK(!asi_log_unblock(&log, 32, true));
        CHECK_I64(frame_at(&log, 0, 32)->frame_length, LENGTHS[i]);
    }
    log_delete(&log);
}

static void begin_frame(void *first_frame) { asi_store_release_i32(first_frame, -128); }

/* The publisher was slow, not dead: it begins its frame while the driver looks for the end of it. */
static void who_writes_meanwhile_is_left_alone(void)
{
    static const struct { int64_t tail; int64_t next_frame; bool has_publisher; } ROWS[] = {
        { 3 * TRAP_LENGTH, 2 * TRAP_LENGTH, true }, /* another's frame lies behind */
        { 3 * TRAP_LENGTH, -1, false },
        { TERM, -1, true },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_log log = log_create(5, 5, 0);
        log.metadata->tail_counters[0] = asi_log_raw_tail(5, ROWS[i].tail);
        if (ROWS[i].next_frame > 0)
        {
            (void)put_frame(&log, 0, ROWS[i].next_frame, 32, ASI_FLAG_UNFRAGMENTED, 'x');
        }
        trap_arm(log.terms[0] + TRAP_LENGTH, begin_frame, log.terms[0]);
        CHECK(!asi_log_unblock(&log, 0, ROWS[i].has_publisher));
        trap_check_touched();
        CHECK_I64(frame_at(&log, 0, 0)->frame_length, -128);
        CHECK_I64(frame_at(&log, 0, 0)->type, 0);
        CHECK_I64(log.metadata->active_term_count, 0);
        log_delete(&log);
    }
}

int main(void)
{
    RUN(claimed_but_not_committed);
    RUN(died_before_its_first_store);
    RUN(died_and_the_next_did_too);
    RUN(died_claiming_the_end_of_the_term);
    RUN(died_before_it_rotated);
    RUN(died_last_of_all);
    RUN(full_stream_is_not_rotated);
    RUN(hostile_states_are_left_alone);
    RUN(who_writes_meanwhile_is_left_alone);
    return 0;
}
