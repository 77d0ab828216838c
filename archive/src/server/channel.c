/* See channel.h. KEYS has the order in which the stock server prints the keys (Spec: 08 §2.2), so that labels and catalogs
 * match. */
#include "server/channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/log_layout.h"

typedef struct channel_key
{
    const char *name;
    bool is_kept; /* kept by stripping; the other keys appear only when the archive sets them */
} channel_key;

static const channel_key KEYS[] = {
    { "tags", true }, { "endpoint", true }, { "interface", true }, { "control", true }, { "control-mode", true },
    { "mtu", false }, { "term-length", false }, { "init-term-id", false }, { "term-id", false }, { "term-offset", false },
    { "session-id", true }, { "ttl", true }, { "linger", false }, { "alias", true }, { "cc", true }, { "fc", true },
    { "gtag", true }, { "sparse", false }, { "eos", false }, { "tether", true }, { "group", true }, { "rejoin", true },
    { "so-sndbuf", true }, { "so-rcvbuf", true }, { "rcv-wnd", true }, { "media-rcv-ts-offset", true },
    { "channel-rcv-ts-offset", true }, { "channel-snd-ts-offset", true }, { "response-endpoint", true },
    { "response-correlation-id", true }, { "stream-id", true }, { "setup-backoff", false },
};
#define KEY_COUNT (sizeof(KEYS) / sizeof(KEYS[0]))

/* Values that replace or extend those of the request's URI. */
typedef struct channel_value
{
    const char *key;
    char value[32];
} channel_value;

#define VALUE_CAPACITY 8

typedef struct channel_values
{
    channel_value items[VALUE_CAPACITY];
    int count;
} channel_values;

static void put_text(channel_values *values, const char *key, const char *value)
{
    channel_value *item = &values->items[values->count++];
    item->key = key;
    snprintf(item->value, sizeof(item->value), "%s", value);
}

static void put_i64(channel_values *values, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    put_text(values, key, text);
}

/* Uses the largest of the suffixes g, m, k that divides the size. Spec: 05 §1. */
static void put_size(channel_values *values, const char *key, int64_t bytes)
{
    static const char SUFFIXES[] = { 'g', 'm', 'k' };
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)bytes);
    for (int i = 0; i < 3; i++)
    {
        const int64_t unit = 1LL << (10 * (3 - i));
        if (bytes >= unit && 0 == bytes % unit)
        {
            snprintf(text, sizeof(text), "%lld%c", (long long)(bytes / unit), SUFFIXES[i]);
            break;
        }
    }
    put_text(values, key, text);
}

static const char *value_of(const channel_values *values, const char *key)
{
    for (int i = 0; i < values->count; i++)
    {
        if (0 == strcmp(key, values->items[i].key))
        {
            return values->items[i].value;
        }
    }
    return NULL;
}

/* Drops an "aeron-spy:" prefix. Spec: 08 §2.2. */
static as_result build(const asi_uri *uri, const channel_values *values, asi_channel *to)
{
    asi_uri_builder builder;
    asi_uri_build_start(&builder, uri->media, false);
    for (size_t i = 0; i < KEY_COUNT; i++)
    {
        const char *value = value_of(values, KEYS[i].name);
        if (NULL == value && KEYS[i].is_kept)
        {
            value = asi_uri_get(uri, KEYS[i].name);
        }
        if (NULL != value)
        {
            asi_uri_build_put(&builder, KEYS[i].name, value);
        }
    }
    const as_result result = asi_uri_build_end(&builder);
    if (AS_OK == result)
    {
        memcpy(to->text, builder.text, (size_t)builder.length);
        to->text[builder.length] = '\0';
    }
    return result;
}

/* Refuses a key without a value at the end of the URI, as a stock archive does. A driver ignores such a key. */
static as_result check_last_key(const char *params, const char *text, int64_t length)
{
    for (const char *at = text + length; at > params && '|' != at[-1]; at--)
    {
        if ('=' == at[-1])
        {
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, 0, "no more input found, state=PARAMS_KEY in %.*s", (int)(length < 200 ? length : 200), text);
}

as_result asi_channel_parse_untrusted(asi_uri *uri, const char *text, int64_t length)
{
    static const char SPY[] = "aeron-spy:";
    static const char SCHEME[] = "aeron:";
    const int shown = (int)(length < 200 ? length : 200);
    const char *at = text;
    int64_t left = length;
    if (left >= (int64_t)sizeof(SPY) - 1 && 0 == memcmp(at, SPY, sizeof(SPY) - 1))
    {
        at += sizeof(SPY) - 1;
        left -= (int64_t)sizeof(SPY) - 1;
    }
    if (left < (int64_t)sizeof(SCHEME) - 1 || 0 != memcmp(at, SCHEME, sizeof(SCHEME) - 1))
    {
        return asi_fail(AS_E_USAGE, 0, "Aeron URIs must start with 'aeron:', found: %.*s", shown, text);
    }
    at += sizeof(SCHEME) - 1;
    left -= (int64_t)sizeof(SCHEME) - 1;
    int64_t media = 0;
    while (media < left && '?' != at[media])
    {
        media++;
    }
    if (3 != media || (0 != memcmp(at, "ipc", 3) && 0 != memcmp(at, "udp", 3)))
    {
        return asi_fail(AS_E_USAGE, 0, "unknown media: %.*s", (int)(media < 200 ? media : 200), at);
    }
    const as_result result = asi_uri_parse_untrusted(uri, text, length);
    return AS_OK == result && media < left ? check_last_key(at + media + 1, text, length) : result;
}

bool asi_channel_is_response(const asi_uri *uri)
{
    const char *mode = asi_uri_get(uri, "control-mode");
    return NULL != mode && 0 == strcmp(mode, "response");
}

as_result asi_channel_answer_to(const asi_uri *uri, int64_t request_correlation_id, asi_channel *channel)
{
    asi_uri_builder builder;
    asi_uri_build_start(&builder, uri->media, false);
    for (int32_t i = 0; i < uri->param_count; i++)
    {
        if (0 != strcmp(uri->params[i].key, "response-correlation-id"))
        {
            asi_uri_build_put(&builder, uri->params[i].key, NULL == uri->params[i].value ? "" : uri->params[i].value);
        }
    }
    asi_uri_build_put_i64(&builder, "response-correlation-id", request_correlation_id);
    const as_result result = asi_uri_build_end(&builder);
    if (AS_OK == result)
    {
        memcpy(channel->text, builder.text, (size_t)builder.length + 1);
    }
    return result;
}

/* The stock server's reading of numbers: an optional sign and decimal digits, nothing before or behind. */
static bool is_integer(const char *text, int64_t min, int64_t max)
{
    const bool has_sign = '-' == text[0] || '+' == text[0];
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    return NULL != memchr("0123456789", text[has_sign ? 1 : 0], 10) && 0 == errno && '\0' == *end && min <= value && value <= max;
}

/* What a parameter's value must be, with the stock server's text for others. */
typedef struct value_rule
{
    const char *key;
    int64_t min;
    int64_t max;
    const char *word;   /* also allowed */
    const char *text;
    bool shows_value;   /* behind the text */
} value_rule;

#define OFFSET_RULE(key, name) { key, INT32_MIN, INT32_MAX, "reserved", name " must be a number or the value 'reserved' found: ", true }

static const value_rule RULES[] = {
    { "session-id", INT32_MIN, INT32_MAX, NULL, "'session-id' must be a valid integer", false },
    { "ttl", INT32_MIN, INT32_MAX, NULL, "'ttl' must be a value integer", false },
    { "ttl", 0, 255, NULL, "TTL not in range 0-255: ", true },
    { "gtag", INT64_MIN, INT64_MAX, NULL, "'gtag' must be a valid long value", false },
    { "stream-id", INT32_MIN, INT32_MAX, NULL, "stream-id must be a number", false },
    { "response-correlation-id", -1, INT64_MAX, "prototype",
        "responseCorrelationId must be a number greater than or equal to -1, or the value 'prototype' found: ", true },
    OFFSET_RULE("media-rcv-ts-offset", "mediaReceiveTimestampOffset"),
    OFFSET_RULE("channel-rcv-ts-offset", "channelReceiveTimestampOffset"),
    OFFSET_RULE("channel-snd-ts-offset", "channelSendTimestampOffset"),
};

/* The driver judges a tag. */
static bool is_session_tag(const value_rule *rule, const char *value)
{
    return 0 == strcmp(rule->key, "session-id") && 0 == strncmp(value, "tag:", 4);
}

/* A driver reads some of these values otherwise, or only for one medium, and what it ignores would stay in the catalog. */
static as_result check_values(const asi_uri *uri)
{
    for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); i++)
    {
        const value_rule *rule = &RULES[i];
        const char *value = asi_uri_get(uri, rule->key);
        const bool is_right = NULL == value || (NULL != rule->word && 0 == strcmp(value, rule->word)) ||
            is_session_tag(rule, value) || is_integer(value, rule->min, rule->max);
        if (!is_right)
        {
            return asi_fail(AS_E_USAGE, 0, "%s%.200s", rule->text, rule->shows_value ? value : "");
        }
    }
    const char *mode = asi_uri_get(uri, "control-mode");
    return NULL == mode || 0 == strcmp(mode, "manual") || 0 == strcmp(mode, "dynamic") || 0 == strcmp(mode, "response") ? AS_OK :
        asi_fail(AS_E_USAGE, 0, "invalid control mode: %.200s", mode);
}

as_result asi_channel_strip(const asi_uri *uri, asi_channel *stripped)
{
    const channel_values none = { .count = 0 };
    const as_result result = check_values(uri);
    return AS_OK == result ? build(uri, &none, stripped) : result;
}

as_result asi_channel_key(const asi_uri *uri, int32_t stream_id, asi_channel *key)
{
    static const char *const NAMES[] = { "endpoint", "interface", "control", "session-id", "tags" };
    const size_t capacity = sizeof(key->text);
    size_t used = (size_t)snprintf(key->text, capacity, "%d:%s?", stream_id, ASI_MEDIA_IPC == uri->media ? "ipc" : "udp");
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
    {
        const char *value = asi_uri_get(uri, NAMES[i]);
        if (NULL != value && used < capacity)
        {
            used += (size_t)snprintf(key->text + used, capacity - used, "%s=%s|", NAMES[i], value);
        }
    }
    if (used >= capacity)
    {
        return asi_fail(AS_E_USAGE, 0, "the channel is longer than %d bytes", AS_CHANNEL_MAX_LENGTH);
    }
    key->text[used - 1] = '\0';
    return AS_OK;
}

static as_result put_request_size(channel_values *values, const asi_uri *uri, const char *key, int64_t fallback, int64_t max)
{
    int64_t value;
    const as_result result = asi_uri_get_size(uri, key, fallback, &value);
    if (AS_OK == result)
    {
        put_size(values, key, value < max ? value : max);
    }
    return result;
}

static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

as_result asi_channel_response(const asi_uri *uri, const as_archive_config *config, bool is_logged_in,
    int64_t request_correlation_id, asi_channel *response)
{
    channel_values values = { .count = 0 };
    const int64_t term_max =
        is_logged_in ? larger_of(config->control_term_length, config->response_term_length_max) : AS_TERM_MIN_LENGTH;
    as_result result = put_request_size(&values, uri, "mtu", config->control_mtu, config->control_mtu);
    result = AS_OK == result ? put_request_size(&values, uri, "term-length", config->control_term_length, term_max) : result;
    bool sparse = false;
    result = AS_OK == result ? asi_uri_get_bool(uri, "sparse", config->control_term_sparse, &sparse) : result;
    if (AS_OK != result)
    {
        return result;
    }
    put_text(&values, "sparse", sparse || config->control_term_sparse || !is_logged_in ? "true" : "false");
    if (!is_logged_in)
    {
        put_text(&values, "setup-backoff", "true"); /* our driver's; others ignore it */
    }
    if (asi_channel_is_response(uri))
    {
        put_i64(&values, "response-correlation-id", request_correlation_id);
    }
    return build(uri, &values, response);
}

int64_t asi_source_address_length(const char *source_identity)
{
    const char *colon = strrchr(source_identity, ':');
    return NULL == colon ? (int64_t)strlen(source_identity) : colon - source_identity;
}

static bool is_loopback(const char *address, int64_t length)
{
    return 0 == strncmp(address, "127.", 4) || (5 == length && 0 == memcmp(address, "[::1]", 5));
}

/* False for digits and dots or for brackets: every other host requires name resolution. */
static bool is_name(const char *host, int64_t length)
{
    int64_t digits = 0;
    while (digits < length && NULL != memchr("0123456789.", host[digits], 11))
    {
        digits++;
    }
    return digits < length && '[' != host[0];
}

static bool answers_to_source(const asi_uri *uri, const char *source, bool is_logged_in)
{
    const char *endpoint = asi_uri_get(uri, "endpoint");
    if (asi_channel_is_response(uri))
    {
        return true;
    }
    if (NULL == endpoint || NULL != asi_uri_get(uri, "control") || NULL != asi_uri_get(uri, "tags"))
    {
        return false; /* several receivers, or an endpoint that another client of the driver defined */
    }
    const int64_t host = asi_source_address_length(endpoint);
    const int64_t address = asi_source_address_length(source);
    if (host == address && 0 == memcmp(endpoint, source, (size_t)host))
    {
        return true;
    }
    const bool is_localhost = 9 == host && 0 == memcmp(endpoint, "localhost", 9);
    return is_localhost ? is_loopback(source, address) : is_logged_in && is_name(endpoint, host);
}

as_result asi_channel_check_response(const asi_uri *uri, const char *source_identity, bool is_logged_in)
{
    const bool is_ipc = 0 == strcmp(source_identity, "aeron:ipc");
    const bool is_allowed = (ASI_MEDIA_IPC == uri->media) == is_ipc && (is_ipc || answers_to_source(uri, source_identity, is_logged_in));
    return is_allowed ? AS_OK : asi_fail(AS_E_USAGE, 0, "response channel leads elsewhere than %s, where the request came from: ask for "
        "an endpoint of that address or for control-mode=response, or set aeron.spark.archive.control.response.anywhere=true",
        source_identity);
}

bool asi_channel_proves_source(const asi_uri *uri, const as_archive_config *config, const char *source_identity)
{
    int64_t term_length;
    return AS_OK == asi_channel_check_response(uri, source_identity, false) &&
        AS_OK == asi_uri_get_size(uri, "term-length", config->control_term_length, &term_length) &&
        term_length <= AS_TERM_MIN_LENGTH;
}

/* Spec: 08 §7.2 - linger is a plain integer in ns here; a value with a unit is refused with the stock server's text. */
static as_result put_linger(channel_values *values, const asi_uri *uri, int64_t fallback_ns)
{
    const char *text = asi_uri_get(uri, "linger");
    int64_t linger_ns = fallback_ns;
    if (NULL != text)
    {
        if (!is_integer(text, INT64_MIN, INT64_MAX))
        {
            return asi_fail(AS_E_USAGE, 0, "For input string: \"%.60s\"", text);
        }
        linger_ns = strtoll(text, NULL, 10);
    }
    char duration[32];
    asi_format_duration(duration, sizeof(duration), linger_ns);
    put_text(values, "linger", duration);
    return AS_OK;
}

static void put_request_bool(channel_values *values, const asi_uri *uri, const char *key)
{
    const char *text = asi_uri_get(uri, key);
    if (NULL != text)
    {
        /* Spec: 05 §1 - Java reads any URI value except "true" as false. */
        put_text(values, key, 0 == strcmp(text, "true") ? "true" : "false");
    }
}

as_result asi_channel_replay(const asi_uri *uri, const asi_replay_origin *origin, asi_channel *replay)
{
    const int32_t bits = asi_log2(origin->term_length);
    channel_values values = { .count = 0 };
    put_size(&values, "mtu", origin->mtu);
    put_size(&values, "term-length", origin->term_length);
    put_i64(&values, "init-term-id", origin->initial_term_id);
    put_i64(&values, "term-id", asi_log_term_id_of_position(origin->position, bits, origin->initial_term_id));
    put_i64(&values, "term-offset", origin->position & (origin->term_length - 1));
    put_request_bool(&values, uri, "sparse");
    put_request_bool(&values, uri, "eos");
    as_result result = check_values(uri);
    result = AS_OK == result ? put_linger(&values, uri, origin->linger_ns) : result;
    return AS_OK == result ? build(uri, &values, replay) : result;
}
