/* The command of the archive's simulation: runs seeds, each in a process of its own. `make sim-archive` and the mutants' runner
 * call it; tests/sim/README.md tells how.
 *
 * sim_archive [--seed N | --seeds A-B | --soak [SECONDS]] [--jobs N] [--verbose] [--twice]
 * Ends with 0 when every seed passed, 1 when one failed (the first is told, then no more are begun), 2 for wrong arguments. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "sim_trace.h"
#include "world.h"

#define MAX_JOBS 16
#define PATIENCE_SECONDS 60 /* of real time for one seed: it hangs */

typedef struct sim_options
{
    uint64_t first;
    uint64_t last;
    int32_t jobs;
    int64_t soak_seconds; /* -1: no soak, 0: until stopped */
    bool is_verbose;
    bool is_twice;
} sim_options;

/* Told by the child through its pipe; anything less than all of it is a failure. */
typedef struct sim_outcome
{
    uint64_t digest;
    int64_t starts;
    int64_t recordings;
    int64_t frames;
    int64_t checked_bytes;
    int64_t replayed_bytes;
    int64_t written_bytes;
    int64_t synced_bytes;
    int64_t simulated_ns;
    int64_t faults[SIM_DISK_FAULT_COUNT];
} sim_outcome;

typedef struct sim_job
{
    pid_t pid; /* 0: free */
    uint64_t seed;
    uint64_t index;
    int results;
    FILE *output;
    char dir[64];
} sim_job;

static void run_seed(const sim_job *mine, const sim_options *options, int results)
{
    static sim_world world;
    alarm(PATIENCE_SECONDS);
    sim_trace_open(&world.now_ns, options->is_verbose);
    world_run(&world, mine->seed, mine->dir);
    sim_outcome told = { .digest = sim_digest_value(), .starts = world.starts, .recordings = world.audit.count,
        .frames = world.audit.checked_frames, .checked_bytes = world.audit.checked_bytes, .replayed_bytes = world.replayed_bytes,
        .written_bytes = world.disk.written_bytes, .synced_bytes = world.disk.synced_bytes, .simulated_ns = world.now_ns };
    memcpy(told.faults, world.disk.injected, sizeof(told.faults));
    auditor_close(&world.audit);
    sim_disk_close(&world.disk);
    as_archive_config_close(world.config);
    sim_disk_close(&world.source.disk);
    as_archive_config_close(world.source.config);
    fflush(stdout);
    /* Killed archives left their memory behind, as killed processes do: no leak of the product's. */
    _exit((ssize_t)sizeof(told) == write(results, &told, sizeof(told)) ? 0 : 1);
}

static bool start_job(sim_job *mine, uint64_t seed, const sim_options *options)
{
    int ends[2];
    snprintf(mine->dir, sizeof(mine->dir), SIM_FOLDER "XXXXXX");
    mine->seed = seed;
    mine->output = tmpfile();
    if (NULL == mine->output || NULL == mkdtemp(mine->dir) || 0 != pipe(ends))
    {
        perror("cannot start a run");
        return false;
    }
    fflush(stdout);
    mine->pid = fork();
    if (0 == mine->pid)
    {
        close(ends[0]);
        dup2(fileno(mine->output), STDOUT_FILENO);
        dup2(fileno(mine->output), STDERR_FILENO);
        run_seed(mine, options, ends[1]);
    }
    close(ends[1]);
    mine->results = ends[0];
    return mine->pid > 0;
}

static void print_file(FILE *file)
{
    char text[4096];
    rewind(file);
    for (size_t length = fread(text, 1, sizeof(text), file); length > 0; length = fread(text, 1, sizeof(text), file))
    {
        fwrite(text, 1, length, stdout);
    }
}

static bool finish_job(sim_job *mine, int status, bool is_verbose, sim_outcome *told)
{
    const bool is_well = (ssize_t)sizeof(*told) == read(mine->results, told, sizeof(*told)) && WIFEXITED(status) &&
        0 == WEXITSTATUS(status);
    if (!is_well || is_verbose)
    {
        print_file(mine->output);
    }
    if (!is_well)
    {
        if (WIFSIGNALED(status))
        {
            printf("FAILED check=%s: ended by signal %d\n", SIGALRM == WTERMSIG(status) ? "hang" : "crash", WTERMSIG(status));
        }
        printf("FAILED seed %" PRIu64 ", again by: make sim-archive SEED=%" PRIu64 "\n", mine->seed, mine->seed);
    }
    fclose(mine->output);
    close(mine->results);
    if (AS_OK != asi_dir_delete(mine->dir))
    {
        printf("%s\n", as_error_text());
    }
    mine->pid = 0;
    return is_well;
}

static void add(sim_outcome *sum, const sim_outcome *one)
{
    int64_t *to = &sum->starts;
    const int64_t *from = &one->starts;
    for (size_t i = 0; i < (sizeof(*sum) - offsetof(sim_outcome, starts)) / sizeof(*to); i++)
    {
        to[i] += from[i];
    }
}

static void print_outcome(const char *name, const sim_outcome *told)
{
    printf("%s: %.1f s simulated, %" PRId64 " starts, %" PRId64 " recordings, %" PRId64 " bytes written, %" PRId64 " synced, %" PRId64
        " frames with %" PRId64 " bytes compared, %" PRId64 " replayed; faults:", name, (double)told->simulated_ns / 1e9, told->starts,
        told->recordings, told->written_bytes, told->synced_bytes, told->frames, told->checked_bytes, told->replayed_bytes);
    for (int32_t i = 0; i < SIM_DISK_FAULT_COUNT; i++)
    {
        printf("%s %s=%" PRId64, 0 == i ? "" : ",", sim_disk_fault_name((sim_disk_fault)i), told->faults[i]);
    }
    printf("\n");
}

static int64_t now_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

static int run_all(const sim_options *options)
{
    static sim_job jobs[MAX_JOBS];
    sim_outcome sum = { 0 };
    int64_t passed = 0;
    int64_t failed = 0;
    uint64_t first_digest = 0;
    const uint64_t repeats = options->is_twice ? 2 : 1;
    const uint64_t count = options->soak_seconds >= 0 ? UINT64_MAX : (options->last - options->first + 1) * repeats;
    const int64_t begin = now_seconds();
    int32_t running = 0;
    for (uint64_t next = 0;;)
    {
        const bool is_late = options->soak_seconds > 0 && now_seconds() - begin >= options->soak_seconds;
        if (next < count && running < options->jobs && 0 == failed && !is_late)
        {
            sim_job *idle = jobs;
            while (0 != idle->pid)
            {
                idle++;
            }
            idle->index = next;
            if (!start_job(idle, options->first + next / repeats, options))
            {
                return 1;
            }
            next++;
            running++;
            continue;
        }
        if (0 == running)
        {
            break;
        }
        int status;
        const pid_t pid = waitpid(-1, &status, 0);
        for (int32_t i = 0; i < options->jobs; i++)
        {
            if (jobs[i].pid != pid || pid <= 0)
            {
                continue;
            }
            sim_outcome told = { 0 };
            bool is_well = finish_job(&jobs[i], status, options->is_verbose, &told);
            if (is_well && options->is_twice && 1 == jobs[i].index % 2 && told.digest != first_digest)
            {
                printf("FAILED check=deterministic: seed %" PRIu64 " gives %016" PRIx64 " and then %016" PRIx64 "\n", jobs[i].seed,
                    first_digest, told.digest);
                is_well = false;
            }
            first_digest = told.digest;
            passed += is_well ? 1 : 0;
            failed += is_well ? 0 : 1;
            running--;
            add(&sum, &told);
        }
    }
    char name[96];
    snprintf(name, sizeof(name), "%" PRId64 " runs passed, %" PRId64 " failed, %" PRId64 " s", passed, failed, now_seconds() - begin);
    print_outcome(name, &sum);
    return 0 == failed ? 0 : 1;
}

static bool read_options(int count, char **arguments, sim_options *options)
{
    *options = (sim_options){ .first = 1, .last = 1, .jobs = 1, .soak_seconds = -1 };
    for (int i = 1; i < count; i++)
    {
        const char *value = i + 1 < count ? arguments[i + 1] : "";
        char *end = NULL;
        bool *flag = 0 == strcmp(arguments[i], "--verbose") ? &options->is_verbose :
            0 == strcmp(arguments[i], "--twice") ? &options->is_twice : NULL;
        if (NULL != flag)
        {
            *flag = true;
            continue;
        }
        i++;
        if (0 == strcmp(arguments[i - 1], "--seed"))
        {
            options->first = options->last = strtoull(value, &end, 10);
        }
        else if (0 == strcmp(arguments[i - 1], "--seeds"))
        {
            options->first = strtoull(value, &end, 10);
            options->last = '-' == *end ? strtoull(end + 1, &end, 10) : 0;
        }
        else if (0 == strcmp(arguments[i - 1], "--soak"))
        {
            options->soak_seconds = strtoll(value, &end, 10);
            options->first = (uint64_t)time(NULL) * 1000;
        }
        else if (0 == strcmp(arguments[i - 1], "--jobs"))
        {
            options->jobs = (int32_t)strtol(value, &end, 10);
        }
        if (NULL == end || end == value || '\0' != *end)
        {
            return false;
        }
    }
    options->jobs = options->is_twice ? 1 : options->jobs;
    return (options->soak_seconds >= 0 || options->first <= options->last) && options->jobs >= 1 && options->jobs <= MAX_JOBS;
}

int main(int count, char **arguments)
{
    sim_options options;
    if (!read_options(count, arguments, &options))
    {
        fprintf(stderr, "usage: sim_archive [--seed N | --seeds A-B | --soak SECONDS] [--jobs N] [--verbose] [--twice]\n");
        return 2;
    }
    return run_all(&options);
}
