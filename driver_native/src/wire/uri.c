/* Parses and builds channel URIs; grammar and rules in uri.h. Where the stock drivers differ (a key without '=' at the end, a
 * final '|', an empty value before another parameter) this follows the C driver. Spec: 05 §2. */
#include "wire/uri.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/idle.h"
#include "wire/command.h"

#define SCHEME "aeron:"

/* Moves *at past `prefix` if it starts with it. */
static bool skip_prefix(char **at, const char *prefix)
{
    const size_t length = strlen(prefix);
    if (0 != strncmp(*at, prefix, length))
    {
        return false;
    }
    *at += length;
    return true;
}

static as_result fail_channel(const char *reason, const char *text)
{
    return asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "%s: %s", reason, text);
}

/* "key=value|key=value" */
static as_result parse_params(asi_uri *uri, char *at, const char *original)
{
    while ('\0' != *at)
    {
        char *key = at;
        at += strcspn(at, "=|");
        if ('|' == *at)
        {
            return fail_channel("invalid end of key", original);
        }
        if ('\0' == *at)
        {
            return AS_OK; /* a key without a value at the end counts as absent */
        }
        if (at == key)
        {
            return fail_channel("empty key not allowed", original);
        }
        *at++ = '\0';
        char *value = at;
        at += strcspn(at, "|");
        if (at == value && '|' == *at)
        {
            return fail_channel("empty value not allowed", original);
        }
        if (ASI_URI_MAX_PARAMS == uri->param_count)
        {
            return fail_channel("more than 64 parameters", original);
        }
        uri->params[uri->param_count].key = key;
        uri->params[uri->param_count].value = at == value ? NULL : value;
        uri->param_count++;
        if ('|' == *at)
        {
            *at++ = '\0';
        }
    }
    return AS_OK;
}

as_result asi_uri_parse_untrusted(asi_uri *uri, const char *text, int64_t length)
{
    if (length < 0 || length > AS_CHANNEL_MAX_LENGTH)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "URI length (%" PRIu64 ") exceeds max supported length (%d): %.*s",
            (uint64_t)length, AS_CHANNEL_MAX_LENGTH, length < 0 ? 0 : AS_CHANNEL_MAX_LENGTH + 1, text);
    }
    char original[AS_CHANNEL_MAX_LENGTH + 1]; /* for error texts, because parsing cuts the copy in the struct */
    memcpy(original, text, (size_t)length);
    original[length] = '\0';
    if (strlen(original) != (size_t)length)
    {
        return fail_channel("URI contains a zero byte", original);
    }
    memcpy(uri->text, original, (size_t)length + 1);
    uri->param_count = 0;
    char *at = uri->text;
    uri->is_spy = skip_prefix(&at, ASI_SPY_CHANNEL_PREFIX);
    if (!skip_prefix(&at, SCHEME))
    {
        return fail_channel("invalid URI scheme or transport", original);
    }
    if (skip_prefix(&at, "ipc"))
    {
        uri->media = ASI_MEDIA_IPC;
    }
    else if (skip_prefix(&at, "udp"))
    {
        uri->media = ASI_MEDIA_UDP;
    }
    else
    {
        return fail_channel("invalid URI scheme or transport", original);
    }
    if ('\0' == *at)
    {
        return AS_OK;
    }
    return '?' == *at ? parse_params(uri, at + 1, original) : fail_channel("invalid URI scheme or transport", original);
}

const char *asi_uri_get(const asi_uri *uri, const char *key)
{
    for (int32_t i = uri->param_count - 1; i >= 0; i--)
    {
        if (0 == strcmp(uri->params[i].key, key))
        {
            return uri->params[i].value;
        }
    }
    return NULL;
}

static as_result fail_value(const char *key, const char *value, const char *as_what)
{
    return asi_fail(AS_E_USAGE, EINVAL, "could not parse %s=%s%s in URI", key, value, as_what);
}

as_result asi_uri_get_i64(const asi_uri *uri, const char *key, int64_t fallback, int64_t *value)
{
    const char *text = asi_uri_get(uri, key);
    if (NULL == text)
    {
        *value = fallback;
        return AS_OK;
    }
    char *end;
    errno = 0;
    const long long parsed = strtoll(text, &end, 0);
    if (0 != errno || '\0' != *end || isspace((unsigned char)text[0]))
    {
        return fail_value(key, text, " as int64_t");
    }
    *value = parsed;
    return AS_OK;
}

as_result asi_uri_get_i32(const asi_uri *uri, const char *key, int32_t fallback, int32_t *value)
{
    int64_t wide;
    if (AS_OK != asi_uri_get_i64(uri, key, fallback, &wide) || wide < INT32_MIN || wide > INT32_MAX)
    {
        return fail_value(key, asi_uri_get(uri, key), " as int32_t");
    }
    *value = (int32_t)wide;
    return AS_OK;
}

static as_result get_parsed(const asi_uri *uri, const char *key, int64_t fallback, int64_t *value,
    as_result (*parse)(const char *text, int64_t *value))
{
    const char *text = asi_uri_get(uri, key);
    if (NULL == text)
    {
        *value = fallback;
        return AS_OK;
    }
    int64_t parsed;
    if (AS_OK != parse(text, &parsed))
    {
        return fail_value(key, text, "");
    }
    *value = parsed;
    return AS_OK;
}

as_result asi_uri_get_size(const asi_uri *uri, const char *key, int64_t fallback, int64_t *value)
{
    return get_parsed(uri, key, fallback, value, asi_parse_size);
}

as_result asi_uri_get_duration_ns(const asi_uri *uri, const char *key, int64_t fallback, int64_t *value)
{
    return get_parsed(uri, key, fallback, value, asi_parse_duration_ns);
}

as_result asi_uri_get_bool(const asi_uri *uri, const char *key, bool fallback, bool *value)
{
    const char *text = asi_uri_get(uri, key);
    if (NULL == text)
    {
        *value = fallback;
        return AS_OK;
    }
    const bool is_true = 0 == strncmp(text, "true", strlen("true"));
    if (!is_true && 0 != strncmp(text, "false", strlen("false")))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "could not parse %s=%s as bool from URI", key, text);
    }
    *value = is_true;
    return AS_OK;
}

static void append(asi_uri_builder *builder, const char *text)
{
    const size_t length = strlen(text);
    if (length > (size_t)(AS_CHANNEL_MAX_LENGTH - builder->length))
    {
        builder->overflow = true;
        return;
    }
    memcpy(builder->text + builder->length, text, length + 1);
    builder->length += (int32_t)length;
}

void asi_uri_build_start(asi_uri_builder *builder, asi_uri_media media, bool is_spy)
{
    builder->length = 0;
    builder->param_count = 0;
    builder->overflow = false;
    builder->invalid = false;
    append(builder, is_spy ? ASI_SPY_CHANNEL_PREFIX : "");
    append(builder, ASI_MEDIA_IPC == media ? SCHEME "ipc" : SCHEME "udp");
}

void asi_uri_build_put(asi_uri_builder *builder, const char *key, const char *value)
{
    if ('\0' == key[0] || '\0' == value[0] || NULL != strpbrk(key, "?|=") || NULL != strpbrk(value, "|"))
    {
        builder->invalid = true;
        return;
    }
    append(builder, 0 == builder->param_count++ ? "?" : "|");
    append(builder, key);
    append(builder, "=");
    append(builder, value);
}

void asi_uri_build_put_i64(asi_uri_builder *builder, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, value);
    asi_uri_build_put(builder, key, text);
}

as_result asi_uri_build_end(const asi_uri_builder *builder)
{
    if (builder->overflow)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "channel is longer than %d bytes: %s...", AS_CHANNEL_MAX_LENGTH,
            builder->text);
    }
    if (builder->invalid)
    {
        return fail_channel("channel parameter is empty, or has one of ? | = in its key or | in its value", builder->text);
    }
    return AS_OK;
}
