/* Goal: threads get the CPUs that settings name, or one each of those that the process may use. Method: a table of settings and
 * CPUs; then a driver's threads in /proc. Spec: 05 §7.5. */
#define _GNU_SOURCE
#include "driver/cpus.h"

#include <dirent.h>
#include <sched.h>

#include "driver/driver.h"
#include "support.h"

typedef struct cpu_row
{
    asi_threading_mode mode;
    bool is_cpuset;
    int64_t conductor; /* settings */
    int64_t sender;
    int64_t receiver;
    asi_cpu_set allowed;
    asi_driver_cpus expected;
    bool is_too_few;
} cpu_row;

static const cpu_row ROWS[] = {
    { ASI_THREADING_DEDICATED, false, -1, -1, -1, { 3, { 4, 5, 6 } }, { -1, -1, -1 }, false },
    { ASI_THREADING_DEDICATED, false, 2, -1, 0, { 3, { 4, 5, 6 } }, { 2, -1, 0 }, false },
    { ASI_THREADING_DEDICATED, true, -1, -1, -1, { 4, { 4, 5, 6, 9 } }, { 4, 5, 6 }, false },
    { ASI_THREADING_DEDICATED, true, -1, 4, -1, { 4, { 4, 5, 6, 9 } }, { 5, 4, 6 }, false },
    { ASI_THREADING_DEDICATED, true, -1, -1, 1, { 2, { 0, 1 } }, { -1, -1, 1 }, true },
    { ASI_THREADING_SHARED_NETWORK, true, -1, -1, -1, { 2, { 0, 1 } }, { 0, 1, -1 }, false },
    { ASI_THREADING_SHARED, true, -1, -1, -1, { 1, { 7 } }, { 7, -1, -1 }, false },
    { ASI_THREADING_SHARED, true, -1, -1, -1, { 0, { 0 } }, { -1, -1, -1 }, true },
};

static void cpus_are_given_out(void)
{
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        const cpu_row *row = &ROWS[i];
        asi_driver_cpus cpus = { 99, 99, 99 };
        asi_driver_settings settings;
        asi_driver_settings_init(&settings);
        settings.threading_mode = row->mode;
        settings.cpuset_affinity = row->is_cpuset;
        settings.conductor_cpu_affinity = row->conductor;
        settings.sender_cpu_affinity = row->sender;
        settings.receiver_cpu_affinity = row->receiver;
        CHECK_I64(asi_driver_cpus_choose(&settings, &row->allowed, &cpus), AS_OK);
        CHECK_I64(cpus.conductor, row->expected.conductor);
        CHECK_I64(cpus.sender, row->expected.sender);
        CHECK_I64(cpus.receiver, row->expected.receiver);
        settings.cpuset_warnings_as_errors = true;
        CHECK_I64(asi_driver_cpus_choose(&settings, &row->allowed, &cpus), row->is_too_few ? AS_E_USAGE : AS_OK);
    }
}

/* CPUs that the named thread of this process may use. */
static int32_t cpus_of_thread(const char *name)
{
    DIR *threads = opendir("/proc/self/task");
    CHECK(NULL != threads);
    int32_t count = 0;
    for (const struct dirent *entry = readdir(threads); NULL != entry; entry = readdir(threads))
    {
        char path[300];
        char found[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (NULL != file && NULL != fgets(found, sizeof(found), file) && 0 == strncmp(found, name, strlen(name)))
        {
            cpu_set_t mask;
            CHECK(0 == sched_getaffinity((pid_t)strtol(entry->d_name, NULL, 10), sizeof(mask), &mask));
            count = CPU_COUNT(&mask);
        }
        if (NULL != file)
        {
            fclose(file);
        }
    }
    closedir(threads);
    return count;
}

/* The calling thread is the conductor's: pinning it must not pin those that it started. Spec: 11 T2, D18 */
static void others_are_not_pinned_with_the_conductor(void)
{
    asi_cpu_set allowed;
    asi_driver_settings settings;
    as_driver *driver = NULL;
    asi_rand rand;
    asi_rand_seed(&rand, 1);
    asi_cpu_set_of_process(&allowed);
    CHECK(allowed.count > 0);
    asi_driver_settings_init(&settings);
    scratch_create(settings.aeron_dir);
    settings.conductor_cpu_affinity = allowed.cpus[0];
    CHECK_I64(asi_driver_open(&settings, asi_clock_system(), rand, NULL, NULL, &driver), AS_OK);
    CHECK_I64(as_driver_start_others(driver), AS_OK);
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ms = asi_clock_ms(&clock) + 10000;
    while (0 == cpus_of_thread("receiver") || 0 == cpus_of_thread("sender")) /* until they have their names */
    {
        CHECK(asi_clock_ms(&clock) < deadline_ms);
    }
    CHECK_I64(cpus_of_thread("receiver"), allowed.count);
    CHECK_I64(cpus_of_thread("sender"), allowed.count);
    cpu_set_t mask;
    CHECK(0 == sched_getaffinity(0, sizeof(mask), &mask));
    CHECK_I64(CPU_COUNT(&mask), 1);
    as_driver_close(driver);
    scratch_delete(settings.aeron_dir);
}

/* Whether a thread of this process has that name, once it had the time to take it. */
static void expect_thread(const char *name)
{
    const asi_clock clock = asi_clock_system();
    const int64_t deadline_ms = asi_clock_ms(&clock) + 10000;
    while (0 == cpus_of_thread(name))
    {
        CHECK(asi_clock_ms(&clock) < deadline_ms);
    }
}

/* Spec: 11 T3, D19. */
static void threads_have_the_names_that_are_set(void)
{
    static const struct { const char *value; asi_threading_mode mode; const char *names[3]; } NAMINGS[] = {
        { "classic", ASI_THREADING_DEDICATED, { "conductor", "sender", "receiver" } },
        { "new", ASI_THREADING_DEDICATED, { "aeron-md-cnd", "aeron-md-snd", "aeron-md-rcv" } },
        { "new", ASI_THREADING_SHARED_NETWORK, { "aeron-md-cnd", "aeron-md-net", "aeron-md-net" } },
        { "new", ASI_THREADING_SHARED, { "aeron-md-shd", "aeron-md-shd", "aeron-md-shd" } },
        { "bogus", ASI_THREADING_DEDICATED, { "conductor", "sender", "receiver" } },
    };
    for (size_t i = 0; i < sizeof(NAMINGS) / sizeof(NAMINGS[0]); i++)
    {
        as_driver_config *config = NULL;
        as_driver *driver = NULL;
        CHECK_I64(as_driver_config_open(&config), AS_OK);
        CHECK((AS_OK == as_driver_config_set(config, "aeron.thread.naming", NAMINGS[i].value)) == (0 != strcmp(NAMINGS[i].value, "bogus")));
        asi_driver_config_set_leniently(config, "aeron.thread.naming", NAMINGS[i].value);
        config->settings.threading_mode = NAMINGS[i].mode;
        scratch_create(config->settings.aeron_dir);
        CHECK_I64(as_driver_open(config, NULL, NULL, &driver), AS_OK);
        CHECK_I64(as_driver_start(driver), AS_OK);
        for (size_t k = 0; k < 3; k++)
        {
            expect_thread(NAMINGS[i].names[k]);
        }
        as_driver_close(driver);
        scratch_delete(config->settings.aeron_dir);
        as_driver_config_close(config);
    }
}

/* The main thread takes its role's name in `new` alone: it names the process. */
static void the_main_thread_names_the_process(void)
{
    for (int is_new = 0; is_new < 2; is_new++)
    {
        const bool keep_running = false;
        as_driver_config *config = NULL;
        as_driver *driver = NULL;
        CHECK_I64(as_driver_config_open(&config), AS_OK);
        CHECK_I64(as_driver_config_set(config, "aeron.thread.naming", 0 == is_new ? "classic" : "new"), AS_OK);
        scratch_create(config->settings.aeron_dir);
        CHECK_I64(as_driver_open(config, NULL, NULL, &driver), AS_OK);
        as_driver_run_main(driver, &keep_running);
        CHECK((cpus_of_thread("aeron-md-cnd") > 0) == (1 == is_new));
        as_driver_close(driver);
        scratch_delete(config->settings.aeron_dir);
        as_driver_config_close(config);
    }
}

int main(void)
{
    RUN(cpus_are_given_out);
    RUN(others_are_not_pinned_with_the_conductor);
    RUN(threads_have_the_names_that_are_set);
    RUN(the_main_thread_names_the_process);
    return 0;
}
