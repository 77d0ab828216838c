/* Runs seeds of a simulation, each in a process of its own, so that a crash fails its seed only and no state is carried from
 * one seed to the next. A seed reports a row of counts: the digest first, then what the simulation adds up.
 *
 * [--seed N | --seeds A-B | --soak SECONDS] [--jobs N] [--verbose] [--twice] [--keep-on] A soak of 0 seconds runs until it is
 * stopped; its first seed comes from the clock. --twice runs each seed two times and compares the digests. --keep-on starts
 * further seeds after a failure. */
#ifndef SIM_SEEDS_H
#define SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_SEEDS_MAX_COUNTS 32

typedef struct sim_seeds
{
    const char *name;          /* of the command */
    const char *again;         /* what runs one seed again: "make sim" */
    unsigned timeout_seconds; /* of real time for one seed: it hangs */
    const char *option;        /* a flag of its own, as "--adversary"; NULL: it has none */
    bool *option_is_set;
    const char *again_with;    /* appended to `again` if set */
    int32_t count;             /* of counts that are added up, behind the digest */
    /* The run, in a child process, which it may end. `report` passes the counts on; a child that ends without has failed. */
    void (*run)(uint64_t seed, const char *dir, bool is_verbose, void (*report)(uint64_t digest, const int64_t *counts));
    void (*print)(const char *name, const int64_t *counts);
} sim_seeds;

/* 0: every seed passed; 1: one failed, and was printed; 2: the arguments are wrong. */
int sim_seeds_main(const sim_seeds *seeds, int count, char **arguments);

/* Of this process, and some that the look needs: for comparison only. */
int32_t sim_open_descriptors(void);

#endif
