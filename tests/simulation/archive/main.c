/* The command of the archive's simulation. `make sim-archive` and the mutants' runner call it; tests/simulation/README.md
 * explains how, sim_seeds.h lists its options. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim_seeds.h"
#include "sim_trace.h"
#include "world.h"

#define SHARE_OF_SEEDS 35 /* of a hundred have an adversary */

static int32_t share = SHARE_OF_SEEDS;

enum
{
    STARTS,
    RECORDINGS,
    FRAMES,
    CHECKED_BYTES,
    REPLAYED_BYTES,
    WRITTEN_BYTES,
    SYNCED_BYTES,
    SIMULATED_NS,
    HOSTILE,
    FAULTS,
    COUNTS = FAULTS + SIM_DISK_FAULT_COUNT
};

_Static_assert(COUNTS <= SIM_SEEDS_MAX_COUNTS, "room for what is counted");

static void run(uint64_t seed, const char *dir, bool is_verbose, void (*report)(uint64_t digest, const int64_t *counts))
{
    static sim_world world;
    sim_trace_open(&world.now_ns, is_verbose);
    world_run(&world, seed, dir, share);
    int64_t counts[COUNTS] = { [STARTS] = world.starts, [RECORDINGS] = world.audit.count, [FRAMES] = world.audit.checked_frames,
        [CHECKED_BYTES] = world.audit.checked_bytes, [REPLAYED_BYTES] = world.replayed_bytes,
        [WRITTEN_BYTES] = world.disk.written_bytes, [SYNCED_BYTES] = world.disk.synced_bytes, [SIMULATED_NS] = world.now_ns,
        [HOSTILE] = world.adversary.messages };
    memcpy(counts + FAULTS, world.disk.injected, sizeof(world.disk.injected));
    auditor_close(&world.audit);
    sim_disk_close(&world.disk);
    as_archive_config_close(world.config);
    sim_disk_close(&world.source.disk);
    as_archive_config_close(world.source.config);
    report(sim_digest_value(), counts);
    fflush(stdout);
    /* Killed archives left their memory behind, as killed processes do: no leak of the product's. */
    _exit(0);
}

static void print(const char *name, const int64_t *counts)
{
    printf("%s: %.1f s simulated, %" PRId64 " starts, %" PRId64 " recordings, %" PRId64 " bytes written, %" PRId64 " synced, %" PRId64
        " frames with %" PRId64 " bytes compared, %" PRId64 " replayed, %" PRId64 " hostile messages; faults:", name, (double)counts[SIMULATED_NS] / 1e9,
        counts[STARTS], counts[RECORDINGS], counts[WRITTEN_BYTES], counts[SYNCED_BYTES], counts[FRAMES], counts[CHECKED_BYTES],
        counts[REPLAYED_BYTES], counts[HOSTILE]);
    for (int32_t i = 0; i < SIM_DISK_FAULT_COUNT; i++)
    {
        printf("%s %s=%" PRId64, 0 == i ? "" : ",", sim_disk_fault_name((sim_disk_fault)i), counts[FAULTS + i]);
    }
    printf("\n");
}

/* --adversary N: in N of a hundred seeds; it is taken out of the arguments, which are sim_seeds.c's. */
static int read_share(int count, char **arguments)
{
    int kept = 1;
    for (int i = 1; i < count; i++)
    {
        if (0 == strcmp(arguments[i], "--adversary") && i + 1 < count)
        {
            share = (int32_t)strtol(arguments[++i], NULL, 10);
        }
        else
        {
            arguments[kept++] = arguments[i];
        }
    }
    return kept;
}

int main(int count, char **arguments)
{
    const sim_seeds seeds = { .name = "sim_archive", .again = "make sim-archive", .timeout_seconds = 60, .count = COUNTS,
        .run = run, .print = print };
    return sim_seeds_main(&seeds, read_share(count, arguments), arguments);
}
