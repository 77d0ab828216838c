/* The simulation's command: runs seeds, each in a process of its own, so that a crash is a seed's failure too and nothing is
 * carried from one to the next. `make sim`, `make soak` and the mutants' runner call it; README.md tells how.
 *
 * sim [--seed N | --seeds A-B | --soak [SECONDS]] [--jobs N] [--verbose] [--twice] [--keep-on]
 * Ends with 0 when every seed passed, 1 with the first failing ones told, 2 when the arguments are wrong. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "sim_trace.h"
#include "sim_world.h"

#define MAX_JOBS 16
#define OUTPUT_CAPACITY (64 * 1024)
#define PATIENCE_SECONDS 300 /* of real time for one seed: it hangs */
#define SOAK_LINE_SECONDS 10

typedef struct sim_options
{
    uint64_t first;
    uint64_t last;
    int32_t jobs;
    int64_t soak_seconds; /* -1: no soak, 0: until told to stop */
    bool is_verbose;
    bool is_twice; /* each seed two times, with the same digest */
    bool is_keeping_on; /* after a failure */
} sim_options;

/* What a run found out, told by the child through its pipe. */
typedef struct sim_outcome
{
    bool is_done; /* written last: anything less is a failure */
    uint64_t digest;
    int64_t bytes;
    int64_t messages;
    int64_t gaps;
    int64_t datagrams;
    int64_t events;
    int64_t simulated_ns;
    int64_t faults[SIM_FAULT_COUNT];
} sim_outcome;

typedef struct sim_job
{
    pid_t pid; /* 0: free */
    uint64_t seed;
    int results;
    FILE *output; /* a nameless file that the child prints to */
    char dir[64];
} sim_job;

typedef struct sim_totals
{
    sim_outcome sum;
    int64_t passed;
    int64_t failed;
} sim_totals;

static volatile sig_atomic_t is_stopped;

static void on_signal(int number)
{
    (void)number;
    is_stopped = 1;
}

/* -- one seed, in the child --------------------------------------------------------------------------------------------- */

static void run_seed(const sim_job *job, const sim_options *options, int results)
{
    static sim_plan plan;
    static sim_world world;
    sim_outcome outcome = { .is_done = true };
    alarm(PATIENCE_SECONDS);
    sim_trace_open(&world.now_ns, options->is_verbose);
    sim_plan_make(&plan, job->seed);
    if (options->is_verbose)
    {
        sim_plan_print(&plan);
    }
    sim_run(&world, &plan, job->dir);
    outcome.digest = sim_digest_value();
    outcome.bytes = world.audit.delivered_bytes;
    outcome.messages = world.audit.delivered_messages;
    outcome.gaps = world.audit.gaps;
    outcome.datagrams = world.net.datagrams;
    outcome.events = world.events;
    outcome.simulated_ns = world.now_ns;
    memcpy(outcome.faults, world.net.injected, sizeof(outcome.faults));
    if ((ssize_t)sizeof(outcome) != write(results, &outcome, sizeof(outcome)))
    {
        exit(1);
    }
}

static bool start_job(sim_job *job, uint64_t seed, const sim_options *options)
{
    int ends[2];
    strcpy(job->dir, SIM_FOLDER "XXXXXX");
    job->seed = seed;
    job->output = tmpfile();
    if (NULL == job->output || NULL == mkdtemp(job->dir) || 0 != pipe(ends))
    {
        fprintf(stderr, "cannot start a run: %s\n", strerror(errno));
        return false;
    }
    fflush(stdout);
    job->pid = fork();
    if (0 == job->pid)
    {
        close(ends[0]);
        dup2(fileno(job->output), STDOUT_FILENO);
        dup2(fileno(job->output), STDERR_FILENO);
        signal(SIGINT, SIG_IGN);
        run_seed(job, options, ends[1]);
        exit(0);
    }
    close(ends[1]);
    job->results = ends[0];
    return job->pid > 0;
}

/* -- the parent --------------------------------------------------------------------------------------------------------- */

static void print_faults(const sim_outcome *outcome)
{
    for (int32_t i = 0; i < SIM_FAULT_COUNT; i++)
    {
        printf(" %s=%" PRId64, sim_fault_name((sim_fault)i), outcome->faults[i]);
    }
}

static void print_output(FILE *output)
{
    static char text[OUTPUT_CAPACITY];
    rewind(output);
    for (size_t length = fread(text, 1, sizeof(text), output); length > 0; length = fread(text, 1, sizeof(text), output))
    {
        fwrite(text, 1, length, stdout);
    }
}

static void add(sim_totals *all, const sim_outcome *one)
{
    all->sum.bytes += one->bytes;
    all->sum.messages += one->messages;
    all->sum.gaps += one->gaps;
    all->sum.datagrams += one->datagrams;
    all->sum.events += one->events;
    all->sum.simulated_ns += one->simulated_ns;
    for (int32_t i = 0; i < SIM_FAULT_COUNT; i++)
    {
        all->sum.faults[i] += one->faults[i];
    }
}

static void print_outcome(const char *name, const sim_outcome *outcome)
{
    printf("%s: %.1f s simulated, %" PRId64 " bytes in %" PRId64 " messages delivered, %" PRId64 " gaps told, %" PRId64
        " datagrams, %" PRId64 " events; faults:", name, (double)outcome->simulated_ns / 1e9, outcome->bytes, outcome->messages,
        outcome->gaps, outcome->datagrams, outcome->events);
    print_faults(outcome);
    printf("\n");
}

/* Reaps it; true when the seed passed. */
static bool finish_job(sim_job *job, int status, const sim_options *options, sim_outcome *outcome)
{
    *outcome = (sim_outcome){ 0 };
    const ssize_t length = read(job->results, outcome, sizeof(*outcome));
    const bool is_well = WIFEXITED(status) && 0 == WEXITSTATUS(status) && (ssize_t)sizeof(*outcome) == length && outcome->is_done;
    if (!is_well || options->is_verbose)
    {
        print_output(job->output);
    }
    if (!is_well)
    {
        if (WIFSIGNALED(status))
        {
            printf("FAILED check=%s: ended by signal %d\n", SIGALRM == WTERMSIG(status) ? "hang" : "crash", WTERMSIG(status));
        }
        printf("FAILED seed %" PRIu64 ", again by: make sim SEED=%" PRIu64 "\n", job->seed, job->seed);
    }
    fclose(job->output);
    close(job->results);
    if (AS_OK != asi_dir_delete(job->dir))
    {
        printf("%s\n", as_error_text());
    }
    job->pid = 0;
    return is_well;
}

static sim_job *find_job(sim_job *jobs, int32_t count, pid_t pid)
{
    for (int32_t i = 0; i < count; i++)
    {
        if (jobs[i].pid == pid)
        {
            return &jobs[i];
        }
    }
    return NULL;
}

static int64_t now_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

/* The first outcome of each seed, for --twice; a ring is enough for what is under way. */
static uint64_t first_digests[1024];

static bool check_digest(const sim_options *options, uint64_t index, uint64_t seed, const sim_outcome *outcome)
{
    uint64_t *first = &first_digests[seed % (sizeof(first_digests) / sizeof(first_digests[0]))];
    if (!options->is_twice || 0 == index % 2)
    {
        *first = outcome->digest;
        return true;
    }
    if (*first != outcome->digest)
    {
        printf("FAILED check=deterministic: seed %" PRIu64 " gives %016" PRIx64 " and then %016" PRIx64 "\n", seed, *first,
            outcome->digest);
    }
    return *first == outcome->digest;
}

static bool is_over(const sim_options *options, uint64_t next, int64_t start_seconds, const sim_totals *all)
{
    if (is_stopped || (all->failed > 0 && !options->is_keeping_on))
    {
        return true;
    }
    if (options->soak_seconds < 0)
    {
        return next > (options->last - options->first + 1) * (options->is_twice ? 2 : 1) - 1;
    }
    return options->soak_seconds > 0 && now_seconds() - start_seconds >= options->soak_seconds;
}

static bool reap(sim_job *jobs, const sim_options *options, sim_totals *all)
{
    int status;
    const pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0)
    {
        return EINTR == errno;
    }
    sim_job *done = find_job(jobs, options->jobs, pid);
    if (NULL == done)
    {
        return true;
    }
    sim_outcome outcome;
    /* With --twice the runs of a seed follow each other, so there is one job at a time. */
    const uint64_t index = (uint64_t)(all->passed + all->failed);
    const bool is_well = finish_job(done, status, options, &outcome) && check_digest(options, index, done->seed, &outcome);
    all->passed += is_well ? 1 : 0;
    all->failed += is_well ? 0 : 1;
    add(all, &outcome);
    if (is_well && options->is_verbose)
    {
        char name[64];
        snprintf(name, sizeof(name), "seed %" PRIu64 " digest %016" PRIx64, done->seed, outcome.digest);
        print_outcome(name, &outcome);
    }
    return true;
}

static int run_all(const sim_options *options)
{
    static sim_job jobs[MAX_JOBS];
    sim_totals all = { 0 };
    const int64_t start_seconds = now_seconds();
    int64_t next_line_seconds = start_seconds + SOAK_LINE_SECONDS;
    uint64_t next = 0;
    for (;;)
    {
        sim_job *idle = is_over(options, next, start_seconds, &all) ? NULL : find_job(jobs, options->jobs, 0);
        if (NULL != idle)
        {
            if (!start_job(idle, options->first + (options->is_twice ? next / 2 : next), options))
            {
                return 1;
            }
            next++;
            continue;
        }
        if (!reap(jobs, options, &all))
        {
            break; /* none is left */
        }
        if (options->soak_seconds >= 0 && now_seconds() >= next_line_seconds)
        {
            next_line_seconds += SOAK_LINE_SECONDS;
            printf("%" PRId64 " seeds passed, up to %" PRIu64 ", %" PRId64 " s\n", all.passed, options->first + next - 1,
                now_seconds() - start_seconds);
            fflush(stdout);
        }
    }
    char name[96];
    snprintf(name, sizeof(name), "%" PRId64 " runs passed, %" PRId64 " failed, %" PRId64 " s", all.passed, all.failed,
        now_seconds() - start_seconds);
    print_outcome(name, &all.sum);
    return 0 == all.failed ? 0 : 1;
}

static bool read_options(int count, char **arguments, sim_options *options)
{
    *options = (sim_options){ .first = 1, .last = 1, .jobs = 1, .soak_seconds = -1 };
    for (int i = 1; i < count; i++)
    {
        const char *value = i + 1 < count ? arguments[i + 1] : "";
        char *end = NULL;
        bool *flag = 0 == strcmp(arguments[i], "--verbose") ? &options->is_verbose :
            0 == strcmp(arguments[i], "--twice") ? &options->is_twice :
            0 == strcmp(arguments[i], "--keep-on") ? &options->is_keeping_on : NULL;
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
    return options->first <= options->last && options->jobs >= 1 && options->jobs <= MAX_JOBS;
}

int main(int count, char **arguments)
{
    sim_options options;
    if (!read_options(count, arguments, &options))
    {
        fprintf(stderr, "usage: sim [--seed N | --seeds A-B | --soak SECONDS] [--jobs N] [--verbose] [--twice] [--keep-on]\n");
        return 2;
    }
    const struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return run_all(&options);
}
