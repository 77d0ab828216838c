/* splitmix64: small state, full period, sufficient for choosing term and session ids; see rand.h. */
#include "base/rand.h"

#include <sys/random.h>
#include <time.h>

void asi_rand_seed(asi_rand *rand, uint64_t seed) { rand->state = seed; }

void asi_rand_seed_system(asi_rand *rand)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
    {
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        seed = (uint64_t)ts.tv_nsec ^ ((uint64_t)ts.tv_sec << 32);
    }
    asi_rand_seed(rand, seed);
}

uint64_t asi_rand_u64(asi_rand *rand)
{
    uint64_t z = (rand->state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}
