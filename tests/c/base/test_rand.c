/* Goal: a seed repeats its numbers for ever (printed seeds must stay useful), and system seeds differ.
 * Method: the published first outputs of splitmix64 for seed 1234567. */
#include "base/rand.h"

#include "check.h"

static void repeats_from_a_seed(void)
{
    static const uint64_t EXPECTED[] = {
        6457827717110365317ULL, 3203168211198807973ULL, 9817491932198370423ULL, 4593380528125082431ULL, 16408922859458223821ULL
    };
    asi_rand rand;
    asi_rand_seed(&rand, 1234567);
    for (size_t i = 0; i < sizeof(EXPECTED) / sizeof(EXPECTED[0]); i++)
    {
        CHECK(asi_rand_u64(&rand) == EXPECTED[i]);
    }
}

static void system_seeds_differ(void)
{
    asi_rand a;
    asi_rand b;
    asi_rand_seed_system(&a);
    asi_rand_seed_system(&b);
    CHECK(a.state != b.state);
}

int main(void)
{
    RUN(repeats_from_a_seed);
    RUN(system_seeds_differ);
    return 0;
}
