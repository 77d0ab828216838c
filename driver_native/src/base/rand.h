/* Random numbers as an injected dependency: seeded from the kernel in production, from a printed seed in tests. Not for
 * secrets. Thread rule: one owner per generator. */
#ifndef ASI_BASE_RAND_H
#define ASI_BASE_RAND_H

#include <stdint.h>

typedef struct asi_rand
{
    uint64_t state;
} asi_rand;

void asi_rand_seed(asi_rand *rand, uint64_t seed);
void asi_rand_seed_system(asi_rand *rand);
uint64_t asi_rand_u64(asi_rand *rand);

static inline int32_t asi_rand_i32(asi_rand *rand) { return (int32_t)(asi_rand_u64(rand) >> 32); }

#endif
