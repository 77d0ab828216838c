/* Goal: the walk gives every committed frame once and stops before anything else, never leaving its range.
 * Method: tables of lengths at the edges of a range.
 * Spec: 02 §3, 06 §7.3. */
#include "term/frame_walk.h"

#include "log_fixture.h"

static void steps_over_committed_frames(void)
{
    asi_log log = log_create(5, 5, 0);
    const int64_t second = put_frame(&log, 0, 0, 1, ASI_FLAG_UNFRAGMENTED, 'a');
    const int64_t third = put_frame(&log, 0, second, 32, ASI_FLAG_UNFRAGMENTED, 'b');
    asi_frame_walk walk = asi_frame_walk_start(log.terms[0], 0, TERM, TERM);
    CHECK_I64(asi_frame_walk_next(&walk), ASI_WALK_FRAME);
    CHECK_I64(walk.frame_offset, 0);
    CHECK_I64(walk.frame_length, 33);
    CHECK_I64(walk.offset, second);
    CHECK_I64(asi_frame_walk_next(&walk), ASI_WALK_FRAME);
    CHECK_I64(walk.frame_offset, second);
    CHECK_I64(asi_frame_walk_next(&walk), ASI_WALK_END);
    CHECK_I64(walk.offset, third);
    frame_at(&log, 0, third)->frame_length = -64; /* being written */
    CHECK_I64(asi_frame_walk_next(&walk), ASI_WALK_END);
    frame_at(&log, 0, third)->frame_length = 64;
    CHECK_I64(asi_frame_walk_next(&walk), ASI_WALK_FRAME);

    walk = asi_frame_walk_start(log.terms[0], 0, second, TERM); /* a frame at the limit is not looked at */
    CHECK_I64(asi_frame_walk_next(&walk), ASI_WALK_FRAME);
    CHECK_I64(asi_frame_walk_next(&walk), ASI_WALK_END);
    CHECK_I64(walk.offset, second);
    log_delete(&log);
}

static void stops_at_what_cannot_be(void)
{
    static const struct { int64_t offset; int32_t length; asi_walk_step step; } ROWS[] = {
        { 0, 32, ASI_WALK_FRAME }, { 0, TERM, ASI_WALK_FRAME }, { 0, TERM + 1, ASI_WALK_BROKEN }, { 0, INT32_MAX, ASI_WALK_BROKEN },
        { 0, 31, ASI_WALK_BROKEN }, { 0, 1, ASI_WALK_BROKEN }, { 0, 0, ASI_WALK_END }, { 0, INT32_MIN, ASI_WALK_END },
        { TERM - 32, 32, ASI_WALK_FRAME }, { TERM - 32, 33, ASI_WALK_BROKEN }
    };
    asi_log log = log_create(5, 5, 0);
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        frame_at(&log, 0, ROWS[i].offset)->frame_length = ROWS[i].length;
        asi_frame_walk walk = asi_frame_walk_start(log.terms[0], ROWS[i].offset, TERM, TERM);
        CHECK_I64(asi_frame_walk_next(&walk), ROWS[i].step);
        CHECK_I64(ASI_WALK_FRAME == ROWS[i].step || walk.offset == ROWS[i].offset, true);
    }
    asi_frame_walk walk = asi_frame_walk_start(log.terms[0], TERM - 16, TERM, TERM); /* no room for a header */
    CHECK_I64(asi_frame_walk_next(&walk), ASI_WALK_END);
    walk = asi_frame_walk_start(log.terms[0], TERM, TERM, TERM);
    CHECK_I64(asi_frame_walk_next(&walk), ASI_WALK_END);
    log_delete(&log);
}

int main(void)
{
    RUN(steps_over_committed_frames);
    RUN(stops_at_what_cannot_be);
    return 0;
}
