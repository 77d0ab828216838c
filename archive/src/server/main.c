/* The executable aeron-spark-archive: the archive as a process, by default with its own media driver.
 * Spec: 08 §1, §12, 05 §13.2, §15.
 *
 * With its own driver, both use the same settings, each the names it knows. The driver runs on its configured threads, the
 * archive on its own. Exit status: the signal's number after SIGINT or SIGTERM; 0 after a termination command to the driver in
 * this process; 1 on any failure. Started in place of `java` with one of the stock main classes (launch.h), it exits as a virtual
 * machine does: with 128 plus the signal's number. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "aeron_spark/as_archive.h"
#include "aeron_spark/as_driver.h"
#include "base/atomic.h"
#include "base/console.h"
#include "base/map.h"
#include "base/open_files.h"
#include "base/properties.h"
#include "base/service.h"
#include "base/thread.h"
#include "server/archive.h"
#include "server/launch.h"
#include "shm/error_repeats.h"
#include "store/mark.h"

#define FACTS(facts) facts, (int64_t)(sizeof(facts) / sizeof((facts)[0]))
#define WAIT_NS 20000000L /* interval at which the main thread checks its flags */

static const char USAGE[] =
    "usage: %s [-v | --version] [--help] [--check] [--beside-driver] [--log-format text|json] [--log-level LEVEL]\n"
    "       [-Dname=value]... [main class] [propertiesFile]...\n";

static const char HELP[] =
    "\n"
    "Records streams of a media driver of this machine to segment files and replays them, as the stock Aeron Archive does.\n"
    "Takes the stock settings from the environment (AERON_ARCHIVE_DIR=...), then from -D, then from property files; the later\n"
    "wins. Names and units: conf/archive.properties, and conf/driver.properties for the driver in the same process.\n"
    "\n"
    "  --beside-driver  no driver in this process: work with the one that runs in aeron.dir\n"
    "  -Dname=value     one setting, by property name (aeron.archive.dir=/data/archive);\n"
    "                   aeron.spark.archive.exit.when.idle=10s ends the archive once it had no control session, recording or\n"
    "                   replay for that long\n"
    "  --log-format text|json, --log-level info|warning|error|off\n"
    "                   the service log on standard error; also -Daeron.spark.log.format, -Daeron.spark.log.level\n"
    "  --check          start nothing: exit with 0 if an archive is alive in aeron.archive.dir, else with 1 and the reason\n"
    "  -v, --version    print the version\n"
    "  main class       io.aeron.archive.ArchivingMediaDriver, or io.aeron.archive.Archive for --beside-driver: a command line\n"
    "                   of the stock archive with `java` replaced by this program; options of a virtual machine are passed over,\n"
    "                   the service log begins with warnings, and the exit status after a signal is 128 and its number\n"
    "  propertiesFile   a path or file:// URL\n"
    "\n"
    "Exit status: the signal's number after SIGINT or SIGTERM, 0 when the driver was ended by command or the\n"
    "archive was idle long enough, 1 on failure.\n";

/* Written by the handler and the termination hook, read by the main loop; a signal handler has no context to pass. */
static bool keep_running = true;
static volatile sig_atomic_t received_signal = 0;

static void on_signal(int signal_number)
{
    received_signal = signal_number;
    asi_store_release_bool(&keep_running, false);
}

static void on_termination(void *context) { asi_store_release_bool(context, false); }

typedef struct settings
{
    as_archive_config *archive;
    as_driver_config *driver;
    bool is_beside_driver;
    bool is_in_place_of_java;
    bool is_check;
    asi_console of_archive;
    asi_console of_driver;
} settings;

static int fail(const char *stage)
{
    fprintf(stderr, "ERROR: %s (%d) %s\n", stage, as_error_code(), as_error_text());
    return EXIT_FAILURE;
}

/* Prints the owner of the folder that caused the failure: the archive's folder if the error names it, else the driver's. */
static void print_owner(const settings *from)
{
    const char *aeron_dir = as_driver_config_aeron_dir(from->driver);
    const char *archive_dir = from->archive->archive_dir;
    const bool is_of_driver = NULL == strstr(as_error_text(), archive_dir);
    char owner[64];
    asi_path_owner(is_of_driver ? aeron_dir : archive_dir, owner, sizeof(owner));
    fprintf(stderr, "  -> sudo -u %s aeron-spark-archive %s-Daeron.dir=%s -Daeron.archive.dir=%s  # whose directory it is; or another %s\n",
        owner, from->is_beside_driver ? "--beside-driver " : "", aeron_dir, archive_dir,
        is_of_driver ? "-Daeron.dir" : "-Daeron.archive.dir");
}

static int fail_to_start(const settings *from, const char *stage, as_result result)
{
    (void)fail(stage);
    if (EACCES == as_error_code() || EPERM == as_error_code())
    {
        print_owner(from);
    }
    else if (AS_E_TIMEOUT == result)
    {
        fprintf(stderr, "  -> aeron-spark-driver -Daeron.dir=%s  # in another terminal; or leave --beside-driver out\n",
            as_driver_config_aeron_dir(from->driver));
    }
    return EXIT_FAILURE;
}

/* -- arguments --------------------------------------------------------------------------------------------------------------- */

static as_result on_property(void *context, const char *name, const char *value)
{
    settings *to = context;
    const as_result result = as_archive_config_set(to->archive, name, value);
    return AS_OK == result ? as_driver_config_set(to->driver, name, value) : result;
}

static int load_file(settings *to, const char *name)
{
    static const char FILE_SCHEME[] = "file://";
    const bool is_url = 0 == strncmp(name, FILE_SCHEME, sizeof(FILE_SCHEME) - 1);
    if (AS_OK != asi_properties_load_untrusted(is_url ? name + sizeof(FILE_SCHEME) - 1 : name, on_property, to))
    {
        fprintf(stderr, "ERROR: loading properties from %s (%d) %s\n", name, as_error_code(), as_error_text());
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* Sets a property. As in a virtual machine, `-Dname` sets an empty value. */
static bool define(settings *to, const char *argument, int *status)
{
    const char *name = argument + 2;
    const bool has_value = NULL != strpbrk(name, "=:");
    if (AS_OK != (has_value ? asi_property_parse_untrusted(name, on_property, to) : on_property(to, name, "")))
    {
        *status = fail("-D");
    }
    return EXIT_SUCCESS != *status;
}

/* Applies an option of the service log, whose value stands behind "=" or is the next argument (NULL: there is none). Returns how
 * many arguments it took; 0: it is another option. */
static int apply_log_option(settings *to, const char *argument, const char *next, int *status)
{
    static const struct { const char *name; const char *property; const char *values; } OPTIONS[] = {
        { "--log-format", "aeron.spark.log.format", "text or json" },
        { "--log-level", "aeron.spark.log.level", "info, warning, error or off" }
    };
    const size_t length = strcspn(argument, "=");
    for (size_t i = 0; i < sizeof(OPTIONS) / sizeof(OPTIONS[0]); i++)
    {
        if (length == strlen(OPTIONS[i].name) && 0 == strncmp(argument, OPTIONS[i].name, length))
        {
            const bool has_value = '=' == argument[length];
            const char *value = has_value ? argument + length + 1 : next;
            *status = EXIT_SUCCESS;
            if (NULL == value || AS_OK != on_property(to, OPTIONS[i].property, value))
            {
                fprintf(stderr, "ERROR: %s needs %s%s%s\n", OPTIONS[i].name, OPTIONS[i].values, NULL == value ? "" : ", not ",
                    NULL == value ? "" : value);
                *status = EXIT_FAILURE;
            }
            return has_value ? 1 : 2;
        }
    }
    return 0;
}

/* Applies one option. True: the process must exit with *status. */
static bool apply_option(settings *to, const char *program, const char *argument, int *status)
{
    *status = EXIT_SUCCESS;
    if (0 == strncmp(argument, "-D", 2) && '\0' != argument[2])
    {
        return define(to, argument, status);
    }
    if (0 == strcmp(argument, "--beside-driver"))
    {
        to->is_beside_driver = true;
        return false;
    }
    if (0 == strcmp(argument, "--check"))
    {
        to->is_check = true;
        return false;
    }
    if (0 == strcmp(argument, "-v") || 0 == strcmp(argument, "--version"))
    {
        printf("%s <aeron_spark version=%s commit=%s>\n", program, as_version_text(), as_commit_text());
        return true;
    }
    if (0 == strcmp(argument, "--help") || 0 == strcmp(argument, "-h"))
    {
        printf(USAGE, program);
        fputs(HELP, stdout);
        return true;
    }
    fprintf(stderr, "unknown option %s\n", argument);
    fprintf(stderr, USAGE, program);
    *status = EXIT_FAILURE;
    return true;
}

static int apply_class(settings *to, const char *name, asi_main_class main_class)
{
    if (ASI_MAIN_OTHER == main_class)
    {
        fprintf(stderr, "ERROR: main class %s is not what this program can stand for: name "
            "io.aeron.archive.ArchivingMediaDriver or io.aeron.archive.Archive\n", name);
        return EXIT_FAILURE;
    }
    to->is_beside_driver = to->is_beside_driver || ASI_MAIN_ARCHIVE == main_class;
    to->is_in_place_of_java = true;
    /* A virtual machine says nothing on standard error while all is well, and harnesses of the stock archive expect that. */
    to->archive->log_level = ASI_LOG_INFO == to->archive->log_level ? ASI_LOG_WARNING : to->archive->log_level;
    return EXIT_SUCCESS;
}

static bool apply_arguments(settings *to, int argc, char **argv, int *status)
{
    int i = 1;
    while (i < argc && '-' == argv[i][0])
    {
        *status = EXIT_SUCCESS;
        int taken = asi_launch_jvm_option(argv[i]);
        taken = 0 == taken ? apply_log_option(to, argv[i], i + 1 < argc ? argv[i + 1] : NULL, status) : taken;
        if (EXIT_SUCCESS != *status || (0 == taken && apply_option(to, argv[0], argv[i], status)))
        {
            return true;
        }
        i += taken > 0 ? taken : 1;
    }
    *status = EXIT_SUCCESS;
    const asi_main_class main_class = i < argc ? asi_launch_main_class(argv[i]) : ASI_MAIN_NONE;
    if (ASI_MAIN_NONE != main_class)
    {
        *status = apply_class(to, argv[i++], main_class);
    }
    for (; i < argc && EXIT_SUCCESS == *status; i++)
    {
        *status = load_file(to, argv[i]);
    }
    return EXIT_SUCCESS != *status;
}

/* -- running ----------------------------------------------------------------------------------------------------------------- */

static bool is_wanted(const as_archive *archive)
{
    return asi_load_acquire_bool(&keep_running) && !as_archive_has_failed(archive) && !as_archive_is_idle_expired(archive);
}

/* Whether the archive's conductor keeps its mark file up to date. */
static as_result check_alive(const as_archive_config *config, bool *is_alive)
{
    const asi_clock clock = asi_clock_system();
    asi_mark_info mark;
    const as_result result = asi_mark_read_untrusted(config->archive_dir, &mark);
    *is_alive = AS_OK == result && 0 != mark.version && asi_mark_is_live(&mark, asi_clock_ms(&clock));
    return AS_AGAIN == result ? AS_OK : result;
}

static int check(const settings *from)
{
    bool is_alive = false;
    if (AS_OK != check_alive(from->archive, &is_alive))
    {
        return fail("check");
    }
    if (!is_alive)
    {
        fprintf(stderr, "ERROR: check: no live archive in %s: none was started there, or its mark file is older than %d ms\n",
            from->archive->archive_dir, ASI_MARK_LIVENESS_TIMEOUT_MS);
        return EXIT_FAILURE;
    }
    printf("aeron-spark-archive: alive in %s\n", from->archive->archive_dir);
    return EXIT_SUCCESS;
}

static void report_if_due(asi_watchdog *watchdog, const as_archive_config *config)
{
    const asi_clock clock = asi_clock_system();
    const int64_t now_ns = 0 == watchdog->interval_ns ? 0 : asi_clock_ns(&clock);
    bool is_alive = false;
    if (asi_watchdog_is_due(watchdog, now_ns) && AS_OK == check_alive(config, &is_alive) && is_alive)
    {
        asi_watchdog_report(watchdog, now_ns);
    }
}

/* Runs until a stop is requested. In INVOKER mode this thread does the archive's work. */
static void run_while_wanted(as_archive *archive, settings *from)
{
    const as_archive_config *config = from->archive;
    const struct timespec interval = { .tv_nsec = WAIT_NS };
    const asi_clock clock = asi_clock_system();
    asi_idle idle = config->conductor_idle;
    asi_watchdog watchdog = asi_watchdog_from_environment();
    asi_error_repeats repeats;
    asi_error_repeats_init(&repeats, &from->of_archive, archive->error_log.buffer, archive->error_log.length);
    while (is_wanted(archive))
    {
        if (ASI_ARCHIVE_INVOKER == config->threading)
        {
            asi_idle_cycle(&idle, as_archive_do_work(archive));
        }
        else
        {
            nanosleep(&interval, NULL); /* a signal ends the sleep early */
        }
        report_if_due(&watchdog, config);
        asi_error_repeats_poll(&repeats, asi_clock_ns(&clock));
    }
}

static void log_start(settings *from)
{
    const as_archive_config *config = from->archive;
    asi_settings_text changed = { "" };
    asi_archive_config_changed(config, asi_settings_text_add, &changed);
    const asi_fact facts[] = { { .name = "version", .text = as_version_text() }, { .name = "commit", .text = as_commit_text() },
        { .name = "pid", .number = getpid() }, { .name = "folder", .text = config->archive_dir },
        { .name = "settings", .text = changed.text } };
    asi_console_event(&from->of_archive, ASI_LOG_INFO, "starting", FACTS(facts));
}

static void log_ready(const as_archive *archive, settings *from)
{
    const as_archive_config *config = &archive->config;
    const bool has_network = config->control_channel_enabled && '\0' != config->control_channel[0];
    char folder[AS_PATH_MAX];
    char status[2 * AS_PATH_MAX + 64];
    const asi_fact facts[] = { { .name = "pid", .number = getpid() },
        { .name = "folder", .text = NULL == realpath(config->archive_dir, folder) ? config->archive_dir : folder },
        { .name = "control", .text = has_network ? config->control_channel : config->local_control_channel },
        { .name = "stream", .number = has_network ? config->control_stream_id : config->local_control_stream_id },
        { .name = "driver", .text = from->is_beside_driver ? "beside" : "own" }, { .name = "dir", .text = config->aeron_dir } };
    asi_console_event(&from->of_archive, ASI_LOG_INFO, "ready", FACTS(facts));
    snprintf(status, sizeof(status), "records in %s, driver in %s", config->archive_dir, config->aeron_dir);
    if (AS_OK != asi_service_ready(status))
    {
        asi_console_event(&from->of_archive, ASI_LOG_WARNING, as_error_text(), NULL, 0);
    }
}

static const char *end_reason(const as_archive *archive)
{
    switch (received_signal)
    {
        case SIGINT: return "SIGINT";
        case SIGTERM: return "SIGTERM";
        default: return as_archive_is_idle_expired(archive) ? "idle for aeron.spark.archive.exit.when.idle" :
            "a client asked the driver to end";
    }
}

static int run_archive(settings *from)
{
    as_archive *archive = NULL;
    log_start(from);
    const as_result opened = as_archive_open(from->archive, &archive);
    if (AS_OK != opened)
    {
        return fail_to_start(from, "archive init", opened);
    }
    if (AS_OK != as_archive_start(archive))
    {
        const int status = fail("archive start");
        as_archive_close(archive);
        return status;
    }
    log_ready(archive, from);
    run_while_wanted(archive, from);
    int status = 0 != received_signal && from->is_in_place_of_java ? 128 + received_signal : received_signal;
    const bool has_failed = as_archive_has_failed(archive);
    char failure[1024];
    snprintf(failure, sizeof(failure), "%s", has_failed ? as_archive_failure(archive) : end_reason(archive));
    asi_service_stopping(failure);
    printf(from->is_in_place_of_java ? "Shutdown Archive...\n" : "Shutting down archive...\n");
    fflush(stdout);
    as_archive_close(archive);
    const asi_fact facts[] = { { .name = "reason", .text = failure },
        { .name = "remedy", .text = "start it again: recordings that were active are recovered then" } };
    status = has_failed ? EXIT_FAILURE : status;
    asi_console_event(&from->of_archive, has_failed ? ASI_LOG_ERROR : ASI_LOG_INFO, "ended", facts, has_failed ? 2 : 1);
    return status;
}

/* Runs the driver's first agent on a thread of its own, also with a driver in INVOKER mode, because the main thread runs the
 * archive or waits for it. */
typedef struct driver_main
{
    as_driver *driver;
    bool keep_running;
} driver_main;

static int run_driver_main(void *context)
{
    driver_main *of = context;
    as_driver_run_main(of->driver, &of->keep_running);
    return 0;
}

static as_result start_driver(driver_main *of, asi_agent *agent)
{
    const asi_idle once = { .kind = ASI_IDLE_YIELD };
    const as_result result = as_driver_start_others(of->driver);
    return AS_OK == result ? asi_agent_start(agent, "driver", run_driver_main, of, &once, -1) : result;
}

static void log_driver_start(settings *from)
{
    asi_settings_text changed = { "" };
    as_driver_config_changed(from->driver, asi_settings_text_add, &changed);
    const asi_fact facts[] = { { .name = "version", .text = as_version_text() }, { .name = "commit", .text = as_commit_text() },
        { .name = "pid", .number = getpid() }, { .name = "dir", .text = as_driver_config_aeron_dir(from->driver) },
        { .name = "settings", .text = changed.text } };
    asi_console_event(&from->of_driver, ASI_LOG_INFO, "starting", FACTS(facts));
}

static int run_with_driver(settings *from)
{
    as_driver *driver = NULL;
    log_driver_start(from);
    const as_result opened = as_driver_open(from->driver, on_termination, &keep_running, &driver);
    if (AS_OK != opened)
    {
        return fail_to_start(from, "driver init", opened);
    }
    driver_main first = { .driver = driver, .keep_running = true };
    asi_agent agent = { .started = false };
    int status;
    if (AS_OK != start_driver(&first, &agent))
    {
        status = fail("driver start");
    }
    else if (AS_OK != as_archive_config_set(from->archive, "aeron.dir", as_driver_aeron_dir(driver)))
    {
        status = fail("archive init");
    }
    else
    {
        status = run_archive(from);
    }
    asi_store_release_bool(&first.keep_running, false);
    asi_agent_stop(&agent);
    as_driver_close(driver);
    return status;
}

static int run_with_consoles(settings *given)
{
    char archive_command[AS_PATH_MAX + 64];
    char driver_command[AS_PATH_MAX + 64];
    snprintf(archive_command, sizeof(archive_command), "aeron-spark archive errors %s", given->archive->archive_dir);
    snprintf(driver_command, sizeof(driver_command), "aeron-spark errors --dir %s", as_driver_config_aeron_dir(given->driver));
    asi_console_options options = { .server = "archive", .command = archive_command, .format = given->archive->log_format,
        .level = given->archive->log_level, .fd = STDERR_FILENO };
    asi_console_init(&given->of_archive, &options, asi_clock_system());
    options.server = "driver";
    options.command = driver_command;
    asi_console_init(&given->of_driver, &options, asi_clock_system());
    as_archive_config_on_error(given->archive, asi_console_on_error, &given->of_archive);
    as_driver_config_on_error(given->driver, asi_console_on_error, &given->of_driver);
    const int status = given->is_beside_driver ? run_archive(given) : run_with_driver(given);
    asi_console_close(&given->of_archive);
    asi_console_close(&given->of_driver);
    return status;
}

int main(int argc, char **argv)
{
    asi_open_files_raise_limit();
    struct sigaction action = { .sa_handler = on_signal };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed output pipe must not end the archive */

    settings given = { .is_beside_driver = false };
    int status = EXIT_SUCCESS;
    if (AS_OK != as_archive_config_open(&given.archive) || AS_OK != as_driver_config_open(&given.driver) ||
        AS_OK != as_archive_config_load_environment(given.archive) ||
        AS_OK != as_driver_config_load_environment(given.driver))
    {
        status = fail("context init");
    }
    else if (!apply_arguments(&given, argc, argv, &status))
    {
        status = given.is_check ? check(&given) : run_with_consoles(&given);
    }
    as_driver_config_close(given.driver);
    as_archive_config_close(given.archive);
    return status;
}
