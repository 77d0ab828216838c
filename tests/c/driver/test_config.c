/* Settings by name: both spellings, grammars, clamping, relations, property files. Spec: 05 §1, §7, §15. */
#include "driver/config.h"
#include "support.h"

static as_driver_config *opened(void)
{
    as_driver_config *config = NULL;
    CHECK_I64(as_driver_config_open(&config), AS_OK);
    return config;
}

typedef struct set_row
{
    const char *name;
    const char *value;
    as_result result;
    size_t offset;
    int64_t expected;
} set_row;

#define NUMBER(field) offsetof(asi_driver_settings, field)

static const set_row NUMBERS[] = {
    { "aeron.ipc.term.buffer.length", "64k", AS_OK, NUMBER(ipc_term_buffer_length), 65536 },
    { "AERON_IPC_TERM_BUFFER_LENGTH", "128K", AS_OK, NUMBER(ipc_term_buffer_length), 131072 },
    { "aeron.ipc.term.buffer.length", "1k", AS_OK, NUMBER(ipc_term_buffer_length), 65536 },
    { "aeron.ipc.term.buffer.length", "4g", AS_OK, NUMBER(ipc_term_buffer_length), 1 << 30 },
    { "aeron.ipc.term.buffer.length", "abc", AS_E_USAGE, NUMBER(ipc_term_buffer_length), 64 << 20 },
    { "aeron.conductor.buffer.length", "64k", AS_OK, NUMBER(to_driver_buffer_length), (1 << 20) + 768 },
    { "aeron.driver.timeout", "5000", AS_OK, NUMBER(driver_timeout_ms), 5000 },
    { "aeron.driver.timeout", "5s", AS_E_USAGE, NUMBER(driver_timeout_ms), 10000 },
    { "aeron.client.liveness.timeout", "2s", AS_OK, NUMBER(client_liveness_timeout_ns), 2000000000 },
    { "AERON_CLIENT_LIVENESS_TIMEOUT", "2500ms", AS_OK, NUMBER(client_liveness_timeout_ns), 2500000000 },
    { "aeron.timer.interval", "1", AS_OK, NUMBER(timer_interval_ns), 1000 },
    { "aeron.timer.interval", "5m", AS_E_USAGE, NUMBER(timer_interval_ns), 1000000000 },
    { "aeron.untethered.linger.timeout", "-1", AS_OK, NUMBER(untethered_linger_timeout_ns), -1 },
    { "aeron.untethered.linger.timeout", "7s", AS_OK, NUMBER(untethered_linger_timeout_ns), 7000000000 },
    { "aeron.publication.reserved.session.id.low", "-5", AS_OK, NUMBER(reserved_session_id_low), -5 },
    { "aeron.name.resolver.threshold", "6s", AS_OK, NUMBER(name_resolver_threshold_ns), 6000000000 },
    { "AERON_DRIVER_NAME_RESOLVER_THRESHOLD", "7s", AS_OK, NUMBER(name_resolver_threshold_ns), 7000000000 },
    { "aeron.spark.driver.exit.when.idle", "10s", AS_OK, NUMBER(exit_when_idle_ns), 10000000000 },
    { "AERON_SPARK_DRIVER_EXIT_WHEN_IDLE", "1ms", AS_OK, NUMBER(exit_when_idle_ns), 1000000 },
    /* For never: the time of now is added to these. */
    { "aeron.rcv.status.message.timeout", "9223372036854775807", AS_OK, NUMBER(status_message_timeout_ns), INT64_MAX / 2 },
    { "aeron.retransmit.unicast.linger", "9999999999s", AS_OK, NUMBER(retransmit_unicast_linger_ns), INT64_MAX / 2 },
    { "aeron.CubicCongestionControl.initialRtt", "9999999999s", AS_OK, NUMBER(cubic_initial_rtt_ns), INT64_MAX / 2 / 4 },
    { "aeron.driver.timeout", "9223372036854775807", AS_OK, NUMBER(driver_timeout_ms), INT64_MAX / 2 },
    { "aeron.no.such.setting", "abc", AS_OK, NUMBER(exit_when_idle_ns), -1 },
};

static void numbers(void)
{
    for (size_t i = 0; i < sizeof(NUMBERS) / sizeof(NUMBERS[0]); i++)
    {
        const set_row *row = &NUMBERS[i];
        as_driver_config *config = opened();
        CHECK_I64(as_driver_config_set(config, row->name, row->value), row->result);
        CHECK(AS_OK == row->result || NULL != strstr(as_error_text(), row->name));
        CHECK_I64(*(const int64_t *)(const void *)((const uint8_t *)&config->settings + row->offset), row->expected);
        as_driver_config_close(config);
    }
}

static void words(void)
{
    as_driver_config *config = opened();
    CHECK_I64(as_driver_config_set(config, "aeron.threading.mode", "SHARED"), AS_OK);
    CHECK_I64(config->settings.threading_mode, ASI_THREADING_SHARED);
    CHECK_I64(as_driver_config_set(config, "aeron.threading.mode", "shared"), AS_E_USAGE);
    CHECK_I64(config->settings.threading_mode, ASI_THREADING_SHARED);
    CHECK_I64(as_driver_config_set(config, "aeron.threading.mode", ""), AS_OK);
    CHECK_I64(config->settings.threading_mode, ASI_THREADING_DEDICATED);
    CHECK_I64(as_driver_config_set(config, "aeron.driver.termination.validator", "allow"), AS_OK);
    CHECK(config->settings.allow_termination);
    CHECK_I64(as_driver_config_set(config, "aeron.driver.termination.validator", "perhaps"), AS_E_USAGE);
    CHECK_I64(as_driver_config_set(config, "AERON_DIR_DELETE_ON_START", "on"), AS_OK);
    CHECK(config->settings.delete_on_start);
    CHECK_I64(as_driver_config_set(config, "AERON_DIR_DELETE_ON_START", "0"), AS_OK);
    CHECK(!config->settings.delete_on_start);
    CHECK_I64(as_driver_config_set(config, "aeron.dir", "/dev/shm/somewhere"), AS_OK);
    CHECK_TEXT(as_driver_config_aeron_dir(config), "/dev/shm/somewhere");
    /* The saved error log's name begins with it, and would be in the directory. */
    CHECK_I64(as_driver_config_set(config, "aeron.dir", "/dev/shm/elsewhere//"), AS_OK);
    CHECK_TEXT(as_driver_config_aeron_dir(config), "/dev/shm/elsewhere");
    CHECK_I64(as_driver_config_set(config, "aeron.dir", "/"), AS_OK);
    CHECK_TEXT(as_driver_config_aeron_dir(config), "/");
    char *long_path = calloc(1, AS_PATH_MAX + 10);
    memset(long_path, 'x', AS_PATH_MAX + 5);
    CHECK_I64(as_driver_config_set(config, "aeron.dir", long_path), AS_E_USAGE);
    free(long_path);
    as_driver_config_close(config);
}

/* What only the whole of the settings shows to be wrong. Spec: 05 §7.6. */
static void relations(void)
{
    static const struct { const char *name; const char *value; as_result result; } ROWS[] = {
        { "aeron.dir", "/dev/shm/x", AS_OK },
        { "aeron.publication.unblock.timeout", "10s", AS_E_USAGE },
        { "aeron.client.liveness.timeout", "1s", AS_E_USAGE },
        { "aeron.client.liveness.timeout", "16s", AS_E_USAGE },
        { "aeron.timer.interval", "10s", AS_E_USAGE },
        { "aeron.untethered.window.limit.timeout", "1s", AS_E_USAGE },
        { "aeron.untethered.resting.timeout", "1s", AS_E_USAGE },
        { "aeron.untethered.linger.timeout", "500ms", AS_E_USAGE },
        { "aeron.ipc.term.buffer.length", "100000", AS_E_USAGE },
        { "aeron.term.buffer.length", "100000", AS_E_USAGE },
        { "aeron.ipc.mtu.length", "1409", AS_E_USAGE },
        { "aeron.ipc.mtu.length", "32", AS_E_USAGE },
        { "aeron.ipc.mtu.length", "8k", AS_OK },
        { "aeron.mtu.length", "1409", AS_E_USAGE },
        { "aeron.mtu.length", "32", AS_E_USAGE },
        { "aeron.rcv.initial.window.length", "1k", AS_E_USAGE }, /* less than a datagram */
        { "aeron.nak.unicast.delay", "93000000s", AS_E_USAGE },
        { "aeron.nak.unicast.delay", "92000000s", AS_OK },
        { "aeron.driver.resolver.interface", "127.0.0.1:8050", AS_E_USAGE }, /* without a name */
        { "aeron.conductor.buffer.length", "2m", AS_E_USAGE },
        { "aeron.conductor.buffer.length", "2097920", AS_OK },
        { "aeron.clients.buffer.length", "2m", AS_E_USAGE },
        { "aeron.file.page.size", "5000", AS_E_USAGE },
        { "aeron.file.page.size", "2m", AS_OK },
        { "aeron.counters.buffer.length", "500m", AS_E_USAGE },
        { "aeron.publication.reserved.session.id.low", "2000", AS_E_USAGE },
        { "aeron.publication.reserved.session.id.low", "-2147482647", AS_OK },
        { "aeron.publication.reserved.session.id.low", "-2147482648", AS_E_USAGE },
        { "aeron.conductor.idle.strategy", "snoring", AS_E_USAGE },
        { "aeron.conductor.idle.strategy.init.args", "1-2", AS_E_USAGE },
        { "aeron.conductor.idle.strategy", "spin", AS_OK },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        as_driver_config *config = opened();
        CHECK_I64(as_driver_config_set(config, ROWS[i].name, ROWS[i].value), AS_OK);
        const as_result result = asi_driver_settings_check(&config->settings);
        if (result != ROWS[i].result || (AS_OK != result && NULL == strstr(as_error_text(), ROWS[i].name)))
        {
            fprintf(stderr, "%s=%s: %d, %s\n", ROWS[i].name, ROWS[i].value, (int)result, as_error_text());
            CHECK(false);
        }
        as_driver_config_close(config);
    }
}

static void property_file(void)
{
    const char *path = scratch_file("driver.properties");
    FILE *file = fopen(path, "w");
    CHECK(NULL != file);
    fputs("# a comment\naeron.threading.mode=SHARED\naeron.client.liveness.timeout = \\\n 3s\nother.program: whatever\n", file);
    CHECK(0 == fclose(file));
    as_driver_config *config = opened();
    CHECK_I64(as_driver_config_load_properties(config, path), AS_OK);
    CHECK_I64(config->settings.threading_mode, ASI_THREADING_SHARED);
    CHECK_I64(config->settings.client_liveness_timeout_ns, 3000000000);
    CHECK_I64(as_driver_config_load_properties(config, "/nowhere/driver.properties"), AS_E_STORAGE);
    as_driver_config_close(config);
}

static void environment(void)
{
    CHECK(0 == setenv("AERON_IPC_MTU_LENGTH", "8192", 1));
    as_driver_config *config = opened();
    CHECK_I64(as_driver_config_load_environment(config), AS_OK);
    CHECK_I64(config->settings.ipc_mtu_length, 8192);
    as_driver_config_close(config);
    CHECK(0 == unsetenv("AERON_IPC_MTU_LENGTH"));
}

/* conf/driver.properties says what the defaults are: taken at its word it changes nothing. */
static void documented_defaults(void)
{
    FILE *file = fopen(AS_GOLDEN_DIR "/../../conf/driver.properties", "r");
    CHECK(NULL != file);
    as_driver_config *config = opened();
    as_driver_config *defaults = opened();
    char line[512];
    int count = 0;
    while (NULL != fgets(line, sizeof(line), file))
    {
        char name[128];
        char value[128];
        if (2 == sscanf(line, "#%127[a-zA-Z._]=%127[^\n]", name, value))
        {
            CHECK_I64(as_driver_config_set(config, name, value), AS_OK);
            count++;
        }
    }
    fclose(file);
    CHECK(count > 80);
    CHECK(0 == memcmp(&config->settings, &defaults->settings, sizeof(config->settings)));
    as_driver_config_close(defaults);
    as_driver_config_close(config);
}

int main(void)
{
    RUN(documented_defaults);
    RUN(numbers);
    RUN(words);
    RUN(relations);
    RUN(property_file);
    RUN(environment);
    return 0;
}
