/* What every simulated machine has: when it starts, a resolver that knows no name, and random numbers below a bound. */
#ifndef AS_SIM_MACHINE_H
#define AS_SIM_MACHINE_H

#include <stdbool.h>

#include "base/rand.h"
#include "driver/net/udp_ops.h"

#define SIM_EPOCH_NS 1700000000000000000LL

int64_t sim_random_below(asi_rand *rand, int64_t bound);
bool sim_random_percent(asi_rand *rand, int64_t chance);
/* A resolver that fails for every name: the simulations use addresses. */
as_result sim_resolve(void *context, const char *name, const char *param, bool is_re_resolution, asi_address *address);

#endif
