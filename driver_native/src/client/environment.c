/* Reads the client's settings from the environment, by their stock names. Spec: 05 §12. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/idle.h"
#include "base/result.h"
#include "client/state.h"

#define NAME_MAX_LENGTH 100
#define NS_PER_MS 1000000LL
#define NS_PER_S 1000000000LL

static as_result load_driver_timeout(as_client_options *options, const char *text)
{
    int64_t ms;
    const as_result result = asi_parse_i64(text, &ms);
    if (AS_OK != result)
    {
        return result;
    }
    if (ms <= 0 || ms > INT64_MAX / NS_PER_MS)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "'%s' is not a number of milliseconds above 0", text);
    }
    options->driver_timeout_ns = ms * NS_PER_MS;
    return AS_OK;
}

static as_result load_name(as_client_options *options, const char *text)
{
    if (strlen(text) > NAME_MAX_LENGTH)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "'%.20s...' is longer than %d characters", text, NAME_MAX_LENGTH);
    }
    options->client_name = text;
    return AS_OK;
}

static as_result load_linger(as_client_options *options, const char *text)
{
    return asi_parse_duration_ns(text, &options->resource_linger_ns);
}

static as_result load_idle_sleep(as_client_options *options, const char *text)
{
    int64_t sleep_ns;
    const as_result result = asi_parse_duration_ns(text, &sleep_ns);
    if (AS_OK == result && sleep_ns > NS_PER_S)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "'%s' is more than 1s: the driver would take this client for dead", text);
    }
    if (AS_OK == result)
    {
        options->idle_sleep_ns = sleep_ns;
    }
    return result;
}

static as_result load_pre_touch(as_client_options *options, const char *text)
{
    return asi_parse_bool(text, &options->pre_touch);
}

as_result as_client_options_load_environment(as_client_options *options)
{
    static const struct { const char *name; as_result (*load)(as_client_options *options, const char *text); } SETTINGS[] = {
        { "AERON_DRIVER_TIMEOUT", load_driver_timeout },
        { "AERON_CLIENT_NAME", load_name },
        { "AERON_CLIENT_RESOURCE_LINGER_DURATION", load_linger },
        { "AERON_CLIENT_IDLE_SLEEP_DURATION", load_idle_sleep },
        { "AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY", load_pre_touch }
    };
    for (size_t i = 0; i < sizeof(SETTINGS) / sizeof(SETTINGS[0]); i++)
    {
        const char *text = getenv(SETTINGS[i].name);
        if (NULL == text || '\0' == text[0])
        {
            continue;
        }
        const as_result result = SETTINGS[i].load(options, text);
        if (AS_OK != result)
        {
            char reason[256];
            snprintf(reason, sizeof(reason), "%s", as_error_text());
            return asi_fail(AS_E_USAGE, EINVAL, "%s in the environment: %s", SETTINGS[i].name, reason);
        }
    }
    return AS_OK;
}
