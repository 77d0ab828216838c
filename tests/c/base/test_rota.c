/* Whose turn it is: everyone while there are few or too many are busy; else the busy, and the others in time. */
#include "base/rota.h"

#include "check.h"

#define MANY 1000

static void few_have_their_turn_in_each_cycle(void)
{
    const asi_rota rota = { .busy_count = 0 };
    CHECK_I64(asi_rota_turns(&rota, 0, 0), 0);
    CHECK_I64(asi_rota_turns(&rota, 2 * ASI_ROTA_TURNS, 0), 2 * ASI_ROTA_TURNS);
    CHECK_I64(asi_rota_turns(&rota, MANY, 0), ASI_ROTA_TURNS);
}

static void everyone_has_a_turn_in_time(void)
{
    asi_rota rota = { .busy_count = 0 };
    int turns[MANY] = { 0 };
    for (int cycle = 0; cycle < 2 * MANY / ASI_ROTA_TURNS; cycle++)
    {
        for (int32_t i = asi_rota_turns(&rota, MANY, 0); i > 0; i--)
        {
            turns[asi_rota_next(&rota, MANY)]++;
        }
    }
    for (int i = 0; i < MANY; i++)
    {
        CHECK(turns[i] >= 1 && turns[i] <= 2);
    }
    CHECK_I64(asi_rota_next(&rota, 1), 0); /* however few are left */
}

static void the_busy_are_known_until_they_rest(void)
{
    asi_rota rota = { .busy_count = 0 };
    int items[3];
    asi_rota_note(&rota, &items[0], 0);
    asi_rota_note(&rota, &items[1], 0);
    asi_rota_note(&rota, &items[0], ASI_ROTA_BUSY_NS);
    CHECK_I64(rota.busy_count, 2);
    asi_rota_tire(&rota, ASI_ROTA_BUSY_NS);
    CHECK_I64(rota.busy_count, 2);
    asi_rota_tire(&rota, ASI_ROTA_BUSY_NS + 1);
    CHECK_I64(rota.busy_count, 1);
    CHECK(rota.busy[0].item == &items[0]);
    asi_rota_note(&rota, &items[2], ASI_ROTA_BUSY_NS);
    asi_rota_forget(&rota, &items[0]);
    asi_rota_forget(&rota, &items[1]);
    CHECK_I64(rota.busy_count, 1);
    CHECK(rota.busy[0].item == &items[2]);
}

static void too_many_busy_ones_are_everyone(void)
{
    asi_rota rota = { .busy_count = 0 };
    int items[MANY];
    for (int i = 0; i < MANY; i++)
    {
        asi_rota_note(&rota, &items[i], 0);
    }
    CHECK_I64(rota.busy_count, ASI_ROTA_BUSY_CAPACITY);
    CHECK_I64(asi_rota_turns(&rota, MANY, 0), MANY);
    asi_rota_tire(&rota, ASI_ROTA_BUSY_NS + 1);
    CHECK_I64(asi_rota_turns(&rota, MANY, ASI_ROTA_BUSY_NS + 1), ASI_ROTA_TURNS);
}

static void time_that_passed_gives_more_turns(void)
{
    asi_rota rota = { .busy_count = 0 };
    asi_rota_tire(&rota, 5000);
    CHECK_I64(asi_rota_turns(&rota, MANY, 5000 + 10 * ASI_ROTA_TURN_NS), ASI_ROTA_TURNS + 10);
    CHECK_I64(asi_rota_turns(&rota, MANY, 5000 + MANY * ASI_ROTA_TURN_NS), MANY);
    CHECK_I64(asi_rota_turns(&rota, MANY, INT64_MAX), MANY);
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
