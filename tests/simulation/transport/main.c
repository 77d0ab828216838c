/* The command of the transport simulation. `make sim`, `make soak` and the mutants' runner call it; tests/simulation/README.md
 * explains how, sim_seeds.h lists its options. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sim_seeds.h"
#include "sim_trace.h"
#include "sim_world.h"

enum
{
    BYTES,
    MESSAGES,
    GAPS,
    DATAGRAMS,
    EVENTS,
    SIMULATED_NS,
    FAULTS,
    COUNTS = FAULTS + SIM_FAULT_COUNT
};

_Static_assert(COUNTS <= SIM_SEEDS_MAX_COUNTS, "room for what is counted");

static bool has_adversary; /* in all seeds */

static void run(uint64_t seed, const char *dir, bool is_verbose, void (*report)(uint64_t digest, const int64_t *counts))
{
    static sim_plan plan;
    static sim_world world;
    sim_trace_open(&world.now_ns, is_verbose);
    sim_plan_make(&plan, seed, has_adversary);
    if (is_verbose)
    {
        sim_plan_print(&plan);
    }
    sim_run(&world, &plan, dir);
    int64_t counts[COUNTS] = { [BYTES] = world.audit.delivered_bytes, [MESSAGES] = world.audit.delivered_messages,
        [GAPS] = world.audit.gaps, [DATAGRAMS] = world.net.datagrams, [EVENTS] = world.events, [SIMULATED_NS] = world.now_ns };
    memcpy(counts + FAULTS, world.net.injected, sizeof(world.net.injected));
    report(sim_digest_value(), counts);
}

static void print(const char *name, const int64_t *counts)
{
    printf("%s: %.1f s simulated, %" PRId64 " bytes in %" PRId64 " messages delivered, %" PRId64 " gaps told, %" PRId64
        " datagrams, %" PRId64 " events; faults:", name, (double)counts[SIMULATED_NS] / 1e9, counts[BYTES], counts[MESSAGES],
        counts[GAPS], counts[DATAGRAMS], counts[EVENTS]);
    for (int32_t i = 0; i < SIM_FAULT_COUNT; i++)
    {
        printf(" %s=%" PRId64, sim_fault_name((sim_fault)i), counts[FAULTS + i]);
    }
    printf("\n");
}

int main(int count, char **arguments)
{
    const sim_seeds seeds = { .name = "sim", .again = "make sim", .timeout_seconds = 300, .option = "--adversary",
        .option_is_set = &has_adversary, .again_with = " ADVERSARY=1", .count = COUNTS, .run = run, .print = print };
    return sim_seeds_main(&seeds, count, arguments);
}
