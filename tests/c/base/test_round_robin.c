/* Goal: every item runs in each cycle while there are few or too many are busy; otherwise the busy items do, and the others in
 * rotation. */
#include "base/round_robin.h"

#include "check.h"

#define MANY 1000

static void few_have_their_turn_in_each_cycle(void)
{
    const asi_round_robin schedule = { .busy_count = 0 };
    CHECK_I64(asi_round_robin_slots(&schedule, 0, 0), 0);
    CHECK_I64(asi_round_robin_slots(&schedule, 2 * ASI_ROUND_ROBIN_SLOTS, 0), 2 * ASI_ROUND_ROBIN_SLOTS);
    CHECK_I64(asi_round_robin_slots(&schedule, MANY, 0), ASI_ROUND_ROBIN_SLOTS);
}

static void everyone_has_a_turn_in_time(void)
{
    asi_round_robin schedule = { .busy_count = 0 };
    int turns[MANY] = { 0 };
    for (int cycle = 0; cycle < 2 * MANY / ASI_ROUND_ROBIN_SLOTS; cycle++)
    {
        for (int32_t i = asi_round_robin_slots(&schedule, MANY, 0); i > 0; i--)
        {
            turns[asi_round_robin_next(&schedule, MANY)]++;
        }
    }
    for (int i = 0; i < MANY; i++)
    {
        CHECK(turns[i] >= 1 && turns[i] <= 2);
    }
    CHECK_I64(asi_round_robin_next(&schedule, 1), 0); /* however few are left */
}

static void the_busy_are_known_until_they_rest(void)
{
    asi_round_robin schedule = { .busy_count = 0 };
    int items[3];
    asi_round_robin_mark_busy(&schedule, &items[0], 0);
    asi_round_robin_mark_busy(&schedule, &items[1], 0);
    asi_round_robin_mark_busy(&schedule, &items[0], ASI_ROUND_ROBIN_BUSY_NS);
    CHECK_I64(schedule.busy_count, 2);
    asi_round_robin_expire_busy(&schedule, ASI_ROUND_ROBIN_BUSY_NS);
    CHECK_I64(schedule.busy_count, 2);
    asi_round_robin_expire_busy(&schedule, ASI_ROUND_ROBIN_BUSY_NS + 1);
    CHECK_I64(schedule.busy_count, 1);
    CHECK(schedule.busy[0].item == &items[0]);
    asi_round_robin_mark_busy(&schedule, &items[2], ASI_ROUND_ROBIN_BUSY_NS);
    asi_round_robin_remove(&schedule, &items[0]);
    asi_round_robin_remove(&schedule, &items[1]);
    CHECK_I64(schedule.busy_count, 1);
    CHECK(schedule.busy[0].item == &items[2]);
}

static void too_many_busy_ones_are_everyone(void)
{
    asi_round_robin schedule = { .busy_count = 0 };
    int items[MANY];
    for (int i = 0; i < MANY; i++)
    {
        asi_round_robin_mark_busy(&schedule, &items[i], 0);
    }
    CHECK_I64(schedule.busy_count, ASI_ROUND_ROBIN_BUSY_CAPACITY);
    CHECK_I64(asi_round_robin_slots(&schedule, MANY, 0), MANY);
    asi_round_robin_expire_busy(&schedule, ASI_ROUND_ROBIN_BUSY_NS + 1);
    CHECK_I64(asi_round_robin_slots(&schedule, MANY, ASI_ROUND_ROBIN_BUSY_NS + 1), ASI_ROUND_ROBIN_SLOTS);
}

static void time_that_passed_gives_more_turns(void)
{
    asi_round_robin schedule = { .busy_count = 0 };
    asi_round_robin_expire_busy(&schedule, 5000);
    CHECK_I64(asi_round_robin_slots(&schedule, MANY, 5000 + 10 * ASI_ROUND_ROBIN_SLOT_NS), ASI_ROUND_ROBIN_SLOTS + 10);
    CHECK_I64(asi_round_robin_slots(&schedule, MANY, 5000 + MANY * ASI_ROUND_ROBIN_SLOT_NS), MANY);
    CHECK_I64(asi_round_robin_slots(&schedule, MANY, INT64_MAX), MANY);
}

int main(void)
{
    RUN(time_that_passed_gives_more_turns);
    RUN(few_have_their_turn_in_each_cycle);
    RUN(everyone_has_a_turn_in_time);
    RUN(the_busy_are_known_until_they_rest);
    RUN(too_many_busy_ones_are_everyone);
    return 0;
}
