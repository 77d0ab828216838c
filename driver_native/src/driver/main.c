/* aeron-spark-driver: runs the media driver as a process, a drop-in for the stock C driver's aeronmd. Spec: 05 §15.
 *
 * Exit status: the signal's number after SIGINT or SIGTERM; 0 after a termination command or when idle; 1 on any failure. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/console.h"
#include "base/map.h"
#include "base/open_files.h"
#include "base/properties.h"
#include "base/service.h"
#include "driver/config.h"
#include "driver/driver.h"

#define IDLE_PROPERTY "aeron.spark.driver.exit.when.idle"
#define FACTS(facts) facts, (int64_t)(sizeof(facts) / sizeof((facts)[0]))

static const char USAGE[] =
    "usage: %s [-v | --version] [--help] [--check] [--exit-when-idle <duration>] [--log-format text|json] [--log-level LEVEL]\n"
    "       [-Dname=value]... [propertiesFile]...\n";

static const char HELP[] =
    "\n"
    "Media driver for Aeron clients of this machine (IPC and UDP). Takes the settings of the stock aeronmd from the environment\n"
    "(AERON_DIR=...), then from -D, then from property files; the later wins. Names and units: conf/driver.properties.\n"
    "\n"
    "  -Dname=value                 one setting, by property name (aeron.dir=/dev/shm/mine)\n"
    "  --exit-when-idle <duration>  end after no client was there for that long (10s, 500ms); also -D" IDLE_PROPERTY "\n"
    "  --log-format text|json       form of the service log on standard error; also -Daeron.spark.log.format\n"
    "  --log-level LEVEL            info, warning, error or off; also -Daeron.spark.log.level\n"
    "  --check                      start nothing: exit with 0 if a driver is alive in aeron.dir, else with 1 and the reason\n"
    "  -v, --version                print the version\n"
    "  propertiesFile               a path or file:// URL\n"
    "\n"
    "Exit status: the signal's number after SIGINT or SIGTERM, 0 when ended by command or idleness, 1 on failure.\n";

/* Written by the signal handler and the termination hook, read by the loop of the duty cycle; a signal handler gets no
 * context. */
static bool keep_running = true;
static volatile sig_atomic_t received_signal = 0;

static void on_signal(int signal_number)
{
    received_signal = signal_number;
    asi_store_release_bool(&keep_running, false);
}

static void on_termination(void *context) { asi_store_release_bool(context, false); }

static int fail(const char *stage)
{
    fprintf(stderr, "ERROR: %s (%d) %s\n", stage, as_error_code(), as_error_text());
    return EXIT_FAILURE;
}

static int fail_to_start(const char *stage, const char *dir)
{
    const int32_t code = as_error_code();
    char owner[64];
    (void)fail(stage);
    if (EACCES == code || EPERM == code)
    {
        asi_path_owner(dir, owner, sizeof(owner));
        fprintf(stderr, "  -> sudo -u %s aeron-spark-driver -Daeron.dir=%s  # whose directory it is; or another -Daeron.dir\n", owner, dir);
    }
    return EXIT_FAILURE;
}

static int print_version(const char *program)
{
    int parts[3] = { 0 };
    if (3 != sscanf(as_version_text(), "%d.%d.%d", &parts[0], &parts[1], &parts[2]))
    {
        parts[0] = 0;
    }
    printf("%s <aeron_spark version=%s commit=%s> major %d minor %d patch %d git %s\n", program, as_version_text(),
        as_commit_text(), parts[0], parts[1], parts[2], as_commit_text());
    return EXIT_SUCCESS;
}

static as_result on_define(void *context, const char *name, const char *value)
{
    asi_driver_config_set_leniently(context, name, value);
    return AS_OK;
}

static int load_file(as_driver_config *config, const char *name)
{
    static const char file_scheme[] = "file://";
    const bool is_file_url = 0 == strncmp(name, file_scheme, sizeof(file_scheme) - 1);
    if (AS_OK != as_driver_config_load_properties(config, is_file_url ? name + sizeof(file_scheme) - 1 : name))
    {
        fprintf(stderr, "ERROR: loading properties from %s (%d) %s\n", name, as_error_code(), as_error_text());
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

typedef struct option
{
    const char *name;
    const char *property;
    const char *values;
} option;

static const option OPTIONS[] = {
    { "--exit-when-idle", IDLE_PROPERTY, "a duration such as 10s or 500ms" },
    { "--log-format", "aeron.spark.log.format", "text or json" },
    { "--log-level", "aeron.spark.log.level", "info, warning, error or off" },
};

static const option *find_option(const char *argument)
{
    const size_t length = strcspn(argument, "=");
    for (size_t i = 0; i < sizeof(OPTIONS) / sizeof(OPTIONS[0]); i++)
    {
        if (length == strlen(OPTIONS[i].name) && 0 == strncmp(argument, OPTIONS[i].name, length))
        {
            return &OPTIONS[i];
        }
    }
    return NULL;
}

static int set_option(as_driver_config *config, const option *given, const char *value)
{
    if (NULL == value || AS_OK != as_driver_config_set(config, given->property, value))
    {
        fprintf(stderr, "ERROR: %s needs %s%s%s\n", given->name, given->values, NULL == value ? "" : ", not ",
            NULL == value ? "" : value);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* True when the process is done, with its exit status. */
static bool apply_arguments(as_driver_config *config, int argc, char **argv, bool *is_check, int *status)
{
    *status = EXIT_SUCCESS;
    int i = 1;
    for (; i < argc && '-' == argv[i][0] && EXIT_SUCCESS == *status; i++)
    {
        const char *argument = argv[i];
        if (0 == strncmp(argument, "-D", 2))
        {
            if (AS_OK != asi_property_parse_untrusted(argument + 2, on_define, config))
            {
                fprintf(stderr, "malformed define: %s\n", argument);
                fprintf(stderr, USAGE, argv[0]);
                *status = EXIT_FAILURE;
            }
        }
        else if (0 == strcmp(argument, "-v") || 0 == strcmp(argument, "--version"))
        {
            *status = print_version(argv[0]);
            return true;
        }
        else if (0 == strcmp(argument, "--help") || 0 == strcmp(argument, "-h"))
        {
            printf(USAGE, argv[0]);
            fputs(HELP, stdout);
            return true;
        }
        else if (0 == strcmp(argument, "--check"))
        {
            *is_check = true;
        }
        else if (NULL != find_option(argument))
        {
            const char *equals = strchr(argument, '=');
            const char *value = NULL != equals ? equals + 1 : ++i < argc ? argv[i] : NULL;
            *status = set_option(config, find_option(argument), value);
        }
        else
        {
            fprintf(stderr, "unknown option %s\n", argument);
            fprintf(stderr, USAGE, argv[0]);
            *status = EXIT_FAILURE;
        }
    }
    for (; i < argc && EXIT_SUCCESS == *status; i++)
    {
        *status = load_file(config, argv[i]);
    }
    return EXIT_SUCCESS != *status;
}

static int check_alive(const as_driver_config *config)
{
    const asi_clock clock = asi_clock_system();
    const char *dir = config->settings.aeron_dir;
    bool is_active = false;
    if (AS_OK != asi_cnc_is_driver_active(dir, config->settings.driver_timeout_ms, &clock, &is_active))
    {
        return fail("check");
    }
    if (!is_active)
    {
        fprintf(stderr, "ERROR: check: no live driver in %s: none was started there, or its heartbeat is older than %" PRId64 " ms\n",
            dir, config->settings.driver_timeout_ms);
        return EXIT_FAILURE;
    }
    printf("aeron-spark-driver: alive in %s\n", dir);
    return EXIT_SUCCESS;
}

static void log_start(const as_driver_config *config, asi_console *console)
{
    asi_settings_text changed = { "" };
    as_driver_config_changed(config, asi_settings_text_add, &changed);
    const asi_fact facts[] = { { .name = "version", .text = as_version_text() }, { .name = "commit", .text = as_commit_text() },
        { .name = "pid", .number = getpid() }, { .name = "dir", .text = config->settings.aeron_dir },
        { .name = "settings", .text = changed.text } };
    asi_console_event(console, ASI_LOG_INFO, "starting", FACTS(facts));
}

static void log_ready(const as_driver_config *config, asi_console *console)
{
    const char *dir = config->settings.aeron_dir;
    const char *threads = asi_threading_mode_text(config->settings.threading_mode);
    char status[AS_PATH_MAX + 64];
    const asi_fact facts[] = { { .name = "pid", .number = getpid() }, { .name = "dir", .text = dir },
        { .name = "threads", .text = threads } };
    asi_console_event(console, ASI_LOG_INFO, "ready", FACTS(facts));
    snprintf(status, sizeof(status), "serves %s, threads %s", dir, threads);
    if (AS_OK != asi_service_ready(status))
    {
        asi_console_event(console, ASI_LOG_WARNING, as_error_text(), NULL, 0);
    }
}

static const char *end_reason(const as_driver *driver)
{
    switch (received_signal)
    {
        case SIGINT: return "SIGINT";
        case SIGTERM: return "SIGTERM";
        default: return as_driver_is_idle_expired(driver) ? "no client was there for " IDLE_PROPERTY : "a client asked for it";
    }
}

static int run(const as_driver_config *config, asi_console *console)
{
    as_driver *driver = NULL;
    log_start(config, console);
    if (AS_OK != as_driver_open(config, on_termination, &keep_running, &driver))
    {
        return fail_to_start("driver init", config->settings.aeron_dir);
    }
    if (AS_OK != as_driver_start_others(driver))
    {
        const int status = fail("driver start");
        as_driver_close(driver);
        return status;
    }
    log_ready(config, console);
    asi_driver_run_watched(driver, &keep_running, asi_watchdog_from_environment(), console);
    const asi_fact facts[] = { { .name = "reason", .text = end_reason(driver) } };
    asi_service_stopping(facts[0].text);
    printf("Shutting down driver...\n");
    fflush(stdout);
    as_driver_close(driver);
    asi_console_event(console, ASI_LOG_INFO, "ended", FACTS(facts));
    return received_signal;
}

static int run_with_console(as_driver_config *config)
{
    asi_console console;
    char command[AS_PATH_MAX + 64];
    snprintf(command, sizeof(command), "aeron-spark errors --dir %s", config->settings.aeron_dir);
    const asi_console_options options = { .server = "driver", .command = command, .format = config->settings.log_format,
        .level = config->settings.log_level, .fd = STDERR_FILENO };
    asi_console_init(&console, &options, asi_clock_system());
    as_driver_config_on_error(config, asi_console_on_error, &console);
    const int status = run(config, &console);
    asi_console_close(&console);
    return status;
}

int main(int argc, char **argv)
{
    asi_open_files_raise_limit();
    struct sigaction action = { .sa_handler = on_signal };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed stdout or stderr must not end the driver */

    as_driver_config *config = NULL;
    if (AS_OK != as_driver_config_open(&config) || AS_OK != as_driver_config_load_environment(config))
    {
        return fail("context init");
    }
    int status = EXIT_SUCCESS;
    bool is_check = false;
    if (!apply_arguments(config, argc, argv, &is_check, &status))
    {
        status = is_check ? check_alive(config) : run_with_console(config);
    }
    as_driver_config_close(config);
    return status;
}
