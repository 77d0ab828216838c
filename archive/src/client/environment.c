/* Reads an archive client's options from the environment, under the stock C client's names. Spec: 07 §5. */
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_archive.h"
#include "base/idle.h"
#include "base/result.h"

#define CLIENT_NAME_MAX_LENGTH 100

static void read_text(const char *name, const char **value)
{
    const char *text = getenv(name);
    *value = NULL == text || '\0' == text[0] ? *value : text;
}

static as_result fail_value(const char *name, const char *text, const char *wanted)
{
    return asi_fail(AS_E_USAGE, 0, "%s=%s: %s", name, text, wanted);
}

static as_result read_i32(const char *name, int32_t *value)
{
    const char *text = getenv(name);
    if (NULL == text)
    {
        return AS_OK;
    }
    int64_t number;
    if (AS_OK != asi_parse_i64(text, &number) || number < INT32_MIN || number > INT32_MAX)
    {
        return fail_value(name, text, "give a stream id, a number of 32 bits");
    }
    *value = (int32_t)number;
    return AS_OK;
}

static as_result read_size(const char *name, int64_t *value)
{
    const char *text = getenv(name);
    int64_t size;
    if (NULL == text)
    {
        return AS_OK;
    }
    if (AS_OK != asi_parse_size(text, &size) || size <= 0)
    {
        return fail_value(name, text, "give a number of bytes, like 64k");
    }
    *value = size;
    return AS_OK;
}

static as_result read_duration(const char *name, int64_t *value)
{
    const char *text = getenv(name);
    int64_t duration_ns;
    if (NULL == text)
    {
        return AS_OK;
    }
    if (AS_OK != asi_parse_duration_ns(text, &duration_ns) || duration_ns <= 0)
    {
        return fail_value(name, text, "give a duration, like 10s");
    }
    *value = duration_ns;
    return AS_OK;
}

static as_result read_bool(const char *name, bool *value)
{
    const char *text = getenv(name);
    if (NULL == text)
    {
        return AS_OK;
    }
    return AS_OK == asi_parse_bool(text, value) ? AS_OK : fail_value(name, text, "give true or false");
}

as_result as_archive_client_options_load_environment(as_archive_client_options *options)
{
    as_archive_client_options loaded = *options;
    read_text("AERON_DIR", &loaded.aeron_dir);
    read_text("AERON_ARCHIVE_CONTROL_CHANNEL", &loaded.control_channel);
    read_text("AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL", &loaded.response_channel);
    read_text("AERON_ARCHIVE_CLIENT_NAME", &loaded.client_info);
    if (NULL != loaded.client_info && strlen(loaded.client_info) > CLIENT_NAME_MAX_LENGTH)
    {
        return asi_fail(AS_E_USAGE, 0, "AERON_ARCHIVE_CLIENT_NAME is longer than %d bytes", CLIENT_NAME_MAX_LENGTH);
    }
    as_result result = read_i32("AERON_ARCHIVE_CONTROL_STREAM_ID", &loaded.control_stream_id);
    result = AS_OK == result ? read_i32("AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID", &loaded.response_stream_id) : result;
    result = AS_OK == result ? read_duration("AERON_ARCHIVE_MESSAGE_TIMEOUT", &loaded.message_timeout_ns) : result;
    result = AS_OK == result ? read_size("AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH", &loaded.control_term_length) : result;
    result = AS_OK == result ? read_size("AERON_MTU_LENGTH", &loaded.control_mtu_length) : result;
    result = AS_OK == result ? read_size("AERON_ARCHIVE_CONTROL_MTU_LENGTH", &loaded.control_mtu_length) : result;
    result = AS_OK == result ? read_bool("AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE", &loaded.control_term_sparse) : result;
    if (AS_OK == result)
    {
        *options = loaded;
    }
    return result;
}
