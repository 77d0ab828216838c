/* The client's settings in the environment. Spec: 05 §12. */
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_client.h"
#include "check.h"

static const char *const NAMES[] = { "AERON_DRIVER_TIMEOUT", "AERON_CLIENT_NAME", "AERON_CLIENT_RESOURCE_LINGER_DURATION",
    "AERON_CLIENT_IDLE_SLEEP_DURATION", "AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY" };

static void clear(void)
{
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
    {
        CHECK_I64(unsetenv(NAMES[i]), 0);
    }
}

static void nothing_set_changes_nothing(void)
{
    clear();
    as_client_options options;
    as_client_options_init(&options);
    CHECK_I64(setenv("AERON_CLIENT_NAME", "", 1), 0);
    CHECK_I64(as_client_options_load_environment(&options), AS_OK);
    CHECK_I64(options.driver_timeout_ns, 10000000000);
    CHECK(NULL == options.client_name);
    CHECK_I64(options.resource_linger_ns, 3000000000);
    CHECK_I64(options.idle_sleep_ns, 16000000);
    CHECK(!options.pre_touch);
}

static void what_is_set_is_taken(void)
{
    clear();
    as_client_options options;
    as_client_options_init(&options);
    CHECK_I64(setenv(NAMES[0], "1500", 1), 0);
    CHECK_I64(setenv(NAMES[1], "prices", 1), 0);
    CHECK_I64(setenv(NAMES[2], "5s", 1), 0);
    CHECK_I64(setenv(NAMES[3], "250us", 1), 0);
    CHECK_I64(setenv(NAMES[4], "true", 1), 0);
    CHECK_I64(as_client_options_load_environment(&options), AS_OK);
    CHECK_I64(options.driver_timeout_ns, 1500000000);
    CHECK_TEXT(options.client_name, "prices");
    CHECK_I64(options.resource_linger_ns, 5000000000);
    CHECK_I64(options.idle_sleep_ns, 250000);
    CHECK(options.pre_touch);
}

static void what_can_not_be_is_named(void)
{
    char long_name[102];
    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    const char *const wrong[] = { "10s", long_name, "3 s", "2s", "maybe" };
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
    {
        clear();
        as_client_options options;
        as_client_options_init(&options);
        CHECK_I64(setenv(NAMES[i], wrong[i], 1), 0);
        CHECK_I64(as_client_options_load_environment(&options), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), NAMES[i]));
    }
}

int main(void)
{
    RUN(nothing_set_changes_nothing);
    RUN(what_is_set_is_taken);
    RUN(what_can_not_be_is_named);
    return 0;
}
