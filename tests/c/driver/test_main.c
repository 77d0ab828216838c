/* The executable from outside: arguments, exit statuses, signals, output. Spec: 05 §15.
 *
 * Method: aeron-spark-driver from this test's own build folder is run as a child with its output in pipes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "driver/driver.h"
#include "support.h"

#define OUTPUT_CAPACITY 16384
#define MAX_ARGUMENTS 8
#define DEADLINE_MS 30000

typedef struct child_process
{
    pid_t pid;
    int out;
    int err;
} child_process;

typedef struct child_outcome
{
    int status; /* exit status; -1: ended by a signal */
    char out[OUTPUT_CAPACITY];
    char err[OUTPUT_CAPACITY];
} child_outcome;

static child_process start(const char *const *arguments)
{
    char own[AS_PATH_MAX];
    char program[AS_PATH_MAX + 32];
    const ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
    CHECK(length > 0);
    own[length] = '\0';
    snprintf(program, sizeof(program), "%s/aeron-spark-driver", dirname(own));
    const char *argv[MAX_ARGUMENTS + 2] = { program };
    for (int i = 0; i < MAX_ARGUMENTS && NULL != arguments[i]; i++)
    {
        argv[i + 1] = arguments[i];
    }
    int out[2];
    int err[2];
    CHECK(0 == pipe2(out, O_CLOEXEC) && 0 == pipe2(err, O_CLOEXEC));
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (0 == pid)
    {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        execv(program, (char *const *)argv);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    return (child_process){ .pid = pid, .out = out[0], .err = err[0] };
}

static void read_all(int fd, char *to)
{
    size_t used = 0;
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    for (;;)
    {
        CHECK(1 == poll(&poll_fd, 1, DEADLINE_MS));
        const ssize_t count = read(fd, to + used, OUTPUT_CAPACITY - 1 - used);
        CHECK(count >= 0);
        if (0 == count)
        {
            break;
        }
        used += (size_t)count;
    }
    to[used] = '\0';
    close(fd);
}

static void finish(const child_process *child, child_outcome *outcome)
{
    int status;
    read_all(child->out, outcome->out);
    read_all(child->err, outcome->err);
    CHECK(child->pid == waitpid(child->pid, &status, 0));
    outcome->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void await_driver(const char *dir)
{
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ms = asi_clock_ms(&clock) + DEADLINE_MS;
    asi_idle idle;
    CHECK_I64(asi_idle_parse(&idle, "sleep-ms", NULL), AS_OK);
    bool is_active = false;
    while (!is_active)
    {
        CHECK(asi_clock_ms(&clock) < deadline_ms);
        CHECK_I64(asi_cnc_is_driver_active(dir, 5000, &clock, &is_active), AS_OK);
        asi_idle_cycle(&idle, 0);
    }
}

typedef struct argument_row
{
    const char *arguments[MAX_ARGUMENTS];
    int status;
    const char *out; /* a part of it */
    const char *err;
} argument_row;

/* Arguments with which no driver runs, or only for a moment. */
static const argument_row ARGUMENTS[] = {
    { { "-v" }, 0, "major ", "" },
    { { "--help" }, 0, "--exit-when-idle <duration>", "" },
    { { "-x" }, 1, "", "usage: " },
    { { "-Dnothing" }, 1, "", "malformed define: -Dnothing" },
    { { "-D", "aeron.dir=/nowhere" }, 1, "", "[-Dname=value]..." },
    { { "/nowhere/driver.properties" }, 1, "", "ERROR: loading properties from /nowhere/driver.properties" },
    { { "--log-format" }, 1, "", "--log-format needs text or json\n" },
    { { "--log-level", "loud" }, 1, "", "--log-level needs info, warning, error or off, not loud\n" },
    { { "--log-levels=off" }, 1, "", "unknown option --log-levels=off" },
    { { "--exit-when-idle" }, 1, "", "needs a duration" },
    { { "--exit-when-idle", "soon" }, 1, "", "not soon" },
    { { "-Daeron.dir=/proc/aeron-spark-test" }, 1, "", "ERROR: driver init (" },
    { { "-Daeron.timer.interval=20s" }, 1, "", "must be greater than aeron.timer.interval" },
    { { "-Daeron.driver.timeout=1", "--exit-when-idle=1ms" }, 0, "Shutting down driver...\n",
        " INFO driver: ended reason=\"no client was there for aeron.spark.driver.exit.when.idle\"\n" },
    { { "-Daeron.driver.timeout=1", "--exit-when-idle=1ms", "--log-format=json" }, 0, "",
        "\"level\":\"INFO\",\"module\":\"driver\",\"message\":\"ended\",\"reason\":\"no client" },
    { { "-Daeron.driver.timeout=1", "--exit-when-idle=1ms", "--log-level", "warning" }, 0, "Shutting down driver...\n", "" },
    { { "-Daeron.driver.timeout=1", "-Daeron.spark.driver.exit.when.idle=1ms", "-Daeron.print.configuration=true" }, 0,
        "    threading_mode=DEDICATED\n", " INFO driver: ready pid=" },
    { { "-Daeron.driver.timeout=1", "--exit-when-idle", "1ms", "-Daeron.threading.mode=INVOKER" }, 0, "",
        " settings=\"aeron.driver.timeout=1 aeron.threading.mode=INVOKER aeron.spark.driver.exit.when.idle=1000000\"\n" },
    { { "-Daeron.driver.timeout=1", "--exit-when-idle", "1ms", "-Daeron.threading.mode=FAST" }, 0, "",
        "WARNING: aeron.threading.mode=FAST is invalid, using default: aeron.threading.mode: 'FAST' is not one of DEDICATED, SHARED" },
    { { "-Daeron.driver.timeout=1", "--exit-when-idle", "1ms", "-Daeron.driver.dynamic.libraries=x.so" }, 0, "",
        "WARNING: AERON_DRIVER_DYNAMIC_LIBRARIES=x.so has no effect" },
    { { "-Daeron.driver.timeout=1", "--exit-when-idle", "1ms", "-Daeron.udp.channel.transport.bindings.media=default",
        "--log-level=off" }, 0, "", "" },
    { { "-Daeron.driver.timeout=1", "--exit-when-idle", "1ms", "-Daeron.socket.so_rcvbuf=1g" }, 0, "",
        "WARNING: Could not get desired SO_RCVBUF" },
    { { "-Daeron.driver.timeout=1", "--exit-when-idle", "1ms", "-Daeron.socket.so_sndbuf=1g" }, 0, "",
        "sysctl -w net.core.wmem_max=1073741824\n" },
};

static void arguments(void)
{
    const char *dir = scratch_folder();
    CHECK(0 == setenv("AERON_DIR", dir, 1));
    for (size_t i = 0; i < sizeof(ARGUMENTS) / sizeof(ARGUMENTS[0]); i++)
    {
        child_outcome outcome;
        const child_process child = start(ARGUMENTS[i].arguments);
        finish(&child, &outcome);
        CHECK_I64(outcome.status, ARGUMENTS[i].status);
        CHECK(NULL != strstr(outcome.out, ARGUMENTS[i].out));
        CHECK('\0' == ARGUMENTS[i].err[0] ? '\0' == outcome.err[0] : NULL != strstr(outcome.err, ARGUMENTS[i].err));
    }
}

static void signals(void)
{
    static const int SIGNALS[] = { SIGINT, SIGTERM };
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++)
    {
        char dir[SCRATCH_CAPACITY];
        child_outcome outcome;
        scratch_create(dir);
        CHECK(0 == setenv("AERON_DIR", dir, 1));
        const char *const none[MAX_ARGUMENTS] = { "-Daeron.dir.delete.on.shutdown=true" };
        const child_process child = start(none);
        await_driver(dir);

        const char *const second[MAX_ARGUMENTS] = { NULL };
        const child_process other = start(second);
        finish(&other, &outcome);
        CHECK_I64(outcome.status, 1);
        CHECK(NULL != strstr(outcome.err, "Active media driver detected"));

        CHECK(0 == kill(child.pid, SIGNALS[i]));
        finish(&child, &outcome);
        CHECK_I64(outcome.status, SIGNALS[i]);
        char line[2 * AS_PATH_MAX];
        CHECK_TEXT(outcome.out, "Shutting down driver...\n");
        snprintf(line, sizeof(line), " INFO driver: starting version=%s commit=%s pid=%d dir=%s "
            "settings=\"aeron.dir.delete.on.shutdown=true\"\n", as_version_text(), as_commit_text(), child.pid, dir);
        CHECK(NULL != strstr(outcome.err, line));
        snprintf(line, sizeof(line), " INFO driver: ready pid=%d dir=%s threads=DEDICATED\n", child.pid, dir);
        CHECK(NULL != strstr(outcome.err, line));
        snprintf(line, sizeof(line), " INFO driver: ended reason=%s\n", SIGINT == SIGNALS[i] ? "SIGINT" : "SIGTERM");
        CHECK(NULL != strstr(outcome.err, line));
        CHECK(!asi_dir_exists(dir));
    }
}

/* Killed, it leaves what the next one takes over as soon as its heartbeat is old. */
static void killed(void)
{
    child_outcome outcome;
    const char *dir = scratch_folder();
    CHECK(0 == setenv("AERON_DIR", dir, 1));
    const char *const none[MAX_ARGUMENTS] = { NULL };
    const child_process first = start(none);
    await_driver(dir);
    CHECK(0 == kill(first.pid, SIGKILL));
    finish(&first, &outcome);
    CHECK_I64(outcome.status, -1);
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ms = asi_clock_ms(&clock) + DEADLINE_MS;
    const char *const next[MAX_ARGUMENTS] = { "-Daeron.driver.timeout=1100", "--exit-when-idle=1ms" };
    do
    {
        CHECK(asi_clock_ms(&clock) < deadline_ms);
        const child_process child = start(next);
        finish(&child, &outcome);
    } while (1 == outcome.status && NULL != strstr(outcome.err, "Active media driver detected"));
    CHECK_I64(outcome.status, 0);
}

int main(void)
{
    RUN(arguments);
    RUN(signals);
    RUN(killed);
    return 0;
}
