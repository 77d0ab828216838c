/* See sim_seeds.h. */
#include "sim_seeds.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "sim_trace.h"

#define MAX_JOBS 16
#define OUTPUT_CAPACITY (64 * 1024)
#define SOAK_LINE_SECONDS 10
/* Time 0 of a soak's seeds is no other soak's: a second has room for as many as can run in it. */
#define SOAK_SEEDS_PER_SECOND 1000

typedef struct options
{
    uint64_t first;
    uint64_t last;
    int32_t jobs;
    int64_t soak_seconds; /* -1: no soak, 0: until stopped */
    bool is_verbose;
    bool is_twice;
    bool is_keeping_on; /* after a failure */
} options;

/* Told by the child through its pipe; anything less than all of it is a failure. */
typedef struct outcome
{
    uint64_t digest;
    int64_t counts[SIM_SEEDS_MAX_COUNTS];
} outcome;

typedef struct job
{
    pid_t pid; /* 0: free */
    uint64_t seed;
    uint64_t index;
    int results;
    FILE *output; /* a nameless file that the child prints to */
    char dir[64];
} job;

typedef struct run
{
    const sim_seeds *seeds;
    options options;
    job jobs[MAX_JOBS];
    outcome sum;
    uint64_t first_digest; /* of the two runs of a seed */
    uint64_t next;
    int64_t passed;
    int64_t failed;
    int64_t start_seconds;
} run;

static volatile sig_atomic_t is_stopped;

static void on_signal(int number)
{
    (void)number;
    is_stopped = 1;
}

/* -- one seed, in the child --------------------------------------------------------------------------------------------- */

static int reported;
static int32_t reported_count;

static void report(uint64_t digest, const int64_t *counts)
{
    outcome told = { .digest = digest };
    memcpy(told.counts, counts, sizeof(*counts) * (size_t)reported_count);
    if ((ssize_t)sizeof(told) != write(reported, &told, sizeof(told)))
    {
        exit(1);
    }
}

static bool start_job(const run *all, job *mine)
{
    int ends[2];
    strcpy(mine->dir, SIM_FOLDER "XXXXXX");
    mine->index = all->next;
    mine->seed = all->options.first + (all->options.is_twice ? all->next / 2 : all->next);
    mine->output = tmpfile();
    if (NULL == mine->output || NULL == mkdtemp(mine->dir) || 0 != pipe(ends))
    {
        fprintf(stderr, "cannot start a run: %s\n", strerror(errno));
        return false;
    }
    fflush(stdout);
    mine->pid = fork();
    if (0 == mine->pid)
    {
        close(ends[0]);
        dup2(fileno(mine->output), STDOUT_FILENO);
        dup2(fileno(mine->output), STDERR_FILENO);
        signal(SIGINT, SIG_IGN);
        alarm(all->seeds->timeout_seconds);
        reported = ends[1];
        reported_count = all->seeds->count;
        all->seeds->run(mine->seed, mine->dir, all->options.is_verbose, report);
        exit(0);
    }
    close(ends[1]);
    mine->results = ends[0];
    return mine->pid > 0;
}

/* -- the parent --------------------------------------------------------------------------------------------------------- */

static void print_output(FILE *output)
{
    static char text[OUTPUT_CAPACITY];
    rewind(output);
    for (size_t length = fread(text, 1, sizeof(text), output); length > 0; length = fread(text, 1, sizeof(text), output))
    {
        fwrite(text, 1, length, stdout);
    }
}

/* Reaps it; true when the seed passed. */
static bool finish_job(const run *all, job *mine, int status, outcome *told)
{
    *told = (outcome){ 0 };
    const ssize_t length = read(mine->results, told, sizeof(*told));
    const bool is_well = WIFEXITED(status) && 0 == WEXITSTATUS(status) && (ssize_t)sizeof(*told) == length;
    if (!is_well || all->options.is_verbose)
    {
        print_output(mine->output);
    }
    if (!is_well)
    {
        if (WIFSIGNALED(status))
        {
            printf("FAILED check=%s: ended by signal %d\n", SIGALRM == WTERMSIG(status) ? "hang" : "crash", WTERMSIG(status));
        }
        printf("FAILED seed %" PRIu64 ", again by: %s SEED=%" PRIu64 "%s\n", mine->seed, all->seeds->again, mine->seed,
            NULL != all->seeds->option && *all->seeds->option_is_set ? all->seeds->again_with : "");
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

static job *find_job(run *all, pid_t pid)
{
    for (int32_t i = 0; i < all->options.jobs; i++)
    {
        if (all->jobs[i].pid == pid)
        {
            return &all->jobs[i];
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

/* With --twice there is one job at a time, so the runs of a seed follow each other. */
static bool check_digest(run *all, const job *done, uint64_t digest)
{
    if (!all->options.is_twice || 0 == done->index % 2)
    {
        all->first_digest = digest;
        return true;
    }
    if (all->first_digest != digest)
    {
        printf("FAILED check=deterministic: seed %" PRIu64 " gives %016" PRIx64 " and then %016" PRIx64 "\n", done->seed,
            all->first_digest, digest);
    }
    return all->first_digest == digest;
}

static bool is_over(const run *all)
{
    const options *asked = &all->options;
    if (is_stopped || (all->failed > 0 && !asked->is_keeping_on))
    {
        return true;
    }
    if (asked->soak_seconds < 0)
    {
        return all->next > (asked->last - asked->first + 1) * (asked->is_twice ? 2 : 1) - 1;
    }
    return asked->soak_seconds > 0 && now_seconds() - all->start_seconds >= asked->soak_seconds;
}

static bool reap(run *all)
{
    int status;
    const pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0)
    {
        return EINTR == errno;
    }
    job *done = find_job(all, pid);
    if (NULL == done)
    {
        return true;
    }
    outcome told;
    const bool is_well = finish_job(all, done, status, &told) && check_digest(all, done, told.digest);
    all->passed += is_well ? 1 : 0;
    all->failed += is_well ? 0 : 1;
    for (int32_t i = 0; i < all->seeds->count; i++)
    {
        all->sum.counts[i] += told.counts[i];
    }
    if (is_well && all->options.is_verbose)
    {
        char name[64];
        snprintf(name, sizeof(name), "seed %" PRIu64 " digest %016" PRIx64, done->seed, told.digest);
        all->seeds->print(name, told.counts);
    }
    return true;
}

static int run_all(run *all)
{
    int64_t next_line_seconds = all->start_seconds + SOAK_LINE_SECONDS;
    for (;;)
    {
        job *idle = is_over(all) ? NULL : find_job(all, 0);
        if (NULL != idle)
        {
            if (!start_job(all, idle))
            {
                return 1;
            }
            all->next++;
            continue;
        }
        if (!reap(all))
        {
            break; /* none is left */
        }
        if (all->options.soak_seconds >= 0 && now_seconds() >= next_line_seconds)
        {
            next_line_seconds += SOAK_LINE_SECONDS;
            printf("%" PRId64 " seeds passed, up to %" PRIu64 ", %" PRId64 " s\n", all->passed, all->options.first + all->next - 1,
                now_seconds() - all->start_seconds);
            fflush(stdout);
        }
    }
    char name[96];
    snprintf(name, sizeof(name), "%" PRId64 " runs passed, %" PRId64 " failed, %" PRId64 " s", all->passed, all->failed,
        now_seconds() - all->start_seconds);
    all->seeds->print(name, all->sum.counts);
    return 0 == all->failed ? 0 : 1;
}

/* -- arguments ---------------------------------------------------------------------------------------------------------- */

static bool read_options(const sim_seeds *seeds, int count, char **arguments, options *asked)
{
    *asked = (options){ .first = 1, .last = 1, .jobs = 1, .soak_seconds = -1 };
    for (int i = 1; i < count; i++)
    {
        const char *value = i + 1 < count ? arguments[i + 1] : "";
        char *end = NULL;
        bool *flag = 0 == strcmp(arguments[i], "--verbose") ? &asked->is_verbose :
            0 == strcmp(arguments[i], "--twice") ? &asked->is_twice :
            0 == strcmp(arguments[i], "--keep-on") ? &asked->is_keeping_on :
            NULL != seeds->option && 0 == strcmp(arguments[i], seeds->option) ? seeds->option_is_set : NULL;
        if (NULL != flag)
        {
            *flag = true;
            continue;
        }
        i++;
        if (0 == strcmp(arguments[i - 1], "--seed"))
        {
            asked->first = asked->last = strtoull(value, &end, 10);
        }
        else if (0 == strcmp(arguments[i - 1], "--seeds"))
        {
            asked->first = strtoull(value, &end, 10);
            asked->last = '-' == *end ? strtoull(end + 1, &end, 10) : 0;
        }
        else if (0 == strcmp(arguments[i - 1], "--soak"))
        {
            asked->soak_seconds = strtoll(value, &end, 10);
            asked->first = asked->last = (uint64_t)time(NULL) * SOAK_SEEDS_PER_SECOND;
        }
        else if (0 == strcmp(arguments[i - 1], "--jobs"))
        {
            asked->jobs = (int32_t)strtol(value, &end, 10);
        }
        if (NULL == end || end == value || '\0' != *end)
        {
            return false;
        }
    }
    asked->jobs = asked->is_twice ? 1 : asked->jobs;
    return asked->first <= asked->last && asked->jobs >= 1 && asked->jobs <= MAX_JOBS;
}

int sim_seeds_main(const sim_seeds *seeds, int count, char **arguments)
{
    static run all;
    all.seeds = seeds;
    if (!read_options(seeds, count, arguments, &all.options))
    {
        fprintf(stderr, "usage: %s [--seed N | --seeds A-B | --soak SECONDS] [--jobs N] [--verbose] [--twice] [--keep-on]%s%s\n",
            seeds->name, NULL != seeds->option ? " " : "", NULL != seeds->option ? seeds->option : "");
        return 2;
    }
    const struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    all.start_seconds = now_seconds();
    return run_all(&all);
}

int32_t sim_open_descriptors(void)
{
    int32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (NULL != folder && NULL != readdir(folder))
    {
        count++;
    }
    if (NULL != folder)
    {
        closedir(folder);
    }
    return count;
}
