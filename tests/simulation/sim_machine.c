/* See sim_machine.h. */
#include "sim_machine.h"

#include "wire/command.h"

int64_t sim_random_below(asi_rand *rand, int64_t bound) { return (int64_t)(asi_rand_u64(rand) % (uint64_t)bound); }
bool sim_random_percent(asi_rand *rand, int64_t chance) { return sim_random_below(rand, 100) < chance; }

as_result sim_resolve(void *context, const char *name, const char *param, bool is_re_resolution, asi_address *address)
{
    (void)context;
    (void)is_re_resolution;
    (void)address;
    return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST, "Unresolved - %s=%s", param, name);
}
