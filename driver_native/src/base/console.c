/* See console.h. */
#include "base/console.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL
/* Prefix of entries in an archive's error log, as in the stock one. */
#define WARNING "WARN - "
#define ERROR "ERROR - "
#define MESSAGE_CAPACITY 3000 /* of a line's bytes; the rest is for facts */
#define TAIL 8                /* room for what closes a value and the line */
#define REPLACEMENT "\xef\xbf\xbd"

static const char *const LEVELS[] = { "info", "warning", "error", "off" };
static const char *const PRINTED_LEVELS[] = { "INFO", "WARNING", "ERROR", "OFF" };
static const char *const FORMATS[] = { "text", "json" };

as_result asi_log_level_parse(const char *text, asi_log_level *level)
{
    for (int i = 0; i < (int)(sizeof(LEVELS) / sizeof(LEVELS[0])); i++)
    {
        if (0 == strcmp(text, LEVELS[i]))
        {
            *level = (asi_log_level)i;
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EINVAL, "'%s' is not one of info, warning, error, off", text);
}

as_result asi_log_format_parse(const char *text, asi_log_format *format)
{
    for (int i = 0; i < (int)(sizeof(FORMATS) / sizeof(FORMATS[0])); i++)
    {
        if (0 == strcmp(text, FORMATS[i]))
        {
            *format = (asi_log_format)i;
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EINVAL, "'%s' is neither text nor json", text);
}

const char *asi_log_level_text(asi_log_level level) { return LEVELS[level]; }
const char *asi_log_format_text(asi_log_format format) { return FORMATS[format]; }

void asi_settings_text_add(void *context, const char *name, const char *value)
{
    asi_settings_text *to = context;
    const size_t used = strlen(to->text);
    const int length = snprintf(to->text + used, sizeof(to->text) - used, "%s%s=%s", 0 == used ? "" : " ", name, value);
    if ((size_t)length >= sizeof(to->text) - used)
    {
        to->text[used] = '\0';
    }
}

/* -- building a line --------------------------------------------------------------------------------------------------------- */

typedef struct line
{
    char bytes[PIPE_BUF];
    size_t used;
    size_t limit; /* where texts are cut */
} line;

static void append_raw(line *to, const char *text)
{
    const size_t length = strlen(text);
    if (to->used + length <= sizeof(to->bytes))
    {
        memcpy(to->bytes + to->used, text, length);
        to->used += length;
    }
}

/* Length of the UTF-8 character at `text`; 0 if there is none. */
static size_t character_length(const uint8_t *text, size_t left)
{
    const uint8_t first = text[0];
    const size_t length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : 0xe0 == (first & 0xf0) ? 3 :
        first >= 0xf0 && first < 0xf5 ? 4 : 0;
    if (0 == length || length > left)
    {
        return 0;
    }
    for (size_t i = 1; i < length; i++)
    {
        if (0x80 != (text[i] & 0xc0))
        {
            return 0;
        }
    }
    const bool is_overlong = (0xe0 == first && text[1] < 0xa0) || (0xf0 == first && text[1] < 0x90);
    const bool is_beyond = (0xed == first && text[1] >= 0xa0) || (0xf4 == first && text[1] >= 0x90);
    return is_overlong || is_beyond ? 0 : length;
}

/* Writes one character to `to`, escaped where it needs it, and returns how many bytes of the text it took. */
static size_t escape(const char *text, size_t left, bool is_quoted, char to[8])
{
    const uint8_t first = (uint8_t)text[0];
    const size_t length = character_length((const uint8_t *)text, left);
    if (0 == length)
    {
        memcpy(to, REPLACEMENT, sizeof(REPLACEMENT));
        return 1;
    }
    /* Also the control characters from U+0080 to U+009F, which some terminals obey. */
    const bool is_control = first < 0x20 || 0x7f == first || (0xc2 == first && (uint8_t)text[1] < 0xa0);
    if (is_control)
    {
        snprintf(to, 8, "\\u%04x", 1 == length ? (unsigned)first : (unsigned)(uint8_t)text[1]);
    }
    else if (is_quoted && ('"' == first || '\\' == first))
    {
        snprintf(to, 8, "\\%c", (char)first);
    }
    else
    {
        memcpy(to, text, length);
        to[length] = '\0';
    }
    return length;
}

/* Line breaks inside a text become ": "; those at its end are dropped. */
static void append_text(line *to, const char *text, size_t length, bool is_quoted)
{
    while (length > 0 && ('\n' == text[length - 1] || '\0' == text[length - 1]))
    {
        length--;
    }
    size_t i = 0;
    while (i < length)
    {
        char next[8] = ": ";
        size_t taken = 0;
        while (i + taken < length && '\n' == text[i + taken])
        {
            taken++;
        }
        if (0 == taken)
        {
            taken = escape(text + i, length - i, is_quoted, next);
        }
        if (to->used + strlen(next) > to->limit)
        {
            return;
        }
        append_raw(to, next);
        i += taken;
    }
}

static bool needs_quotes(const char *text)
{
    for (const char *at = text; '\0' != *at; at++)
    {
        if ((uint8_t)*at <= ' ' || (uint8_t)*at >= 0x7f || NULL != strchr("\"=\\", *at))
        {
            return true;
        }
    }
    return '\0' == text[0];
}

static void append_fact(line *to, const asi_fact *fact, bool is_json)
{
    char number[32];
    snprintf(number, sizeof(number), "%" PRId64, fact->number);
    const size_t name_length = strlen(fact->name) + 6;
    if (to->used + name_length + sizeof(number) > to->limit)
    {
        return;
    }
    append_raw(to, is_json ? ",\"" : " ");
    append_raw(to, fact->name);
    append_raw(to, is_json ? "\":" : "=");
    const bool is_quoted = NULL != fact->text && (is_json || needs_quotes(fact->text));
    append_raw(to, is_quoted ? "\"" : "");
    append_text(to, NULL == fact->text ? number : fact->text, strlen(NULL == fact->text ? number : fact->text), is_quoted);
    append_raw(to, is_quoted ? "\"" : "");
}

static void append_time(line *to, int64_t now_ms)
{
    const time_t seconds = (time_t)(now_ms / 1000);
    struct tm utc;
    char text[64];
    gmtime_r(&seconds, &utc);
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
        utc.tm_hour, utc.tm_min, utc.tm_sec, (int)(now_ms % 1000));
    append_raw(to, text);
}

typedef struct event
{
    asi_log_level level;
    const char *message;
    size_t message_length;
    const asi_fact *facts;
    int64_t fact_count;
} event;

static void build(const asi_console *console, const event *from, line *to)
{
    const bool is_json = ASI_LOG_JSON == console->options.format;
    to->used = 0;
    append_raw(to, is_json ? "{\"time\":\"" : "");
    append_time(to, asi_clock_ms(&console->clock));
    append_raw(to, is_json ? "\",\"level\":\"" : " ");
    append_raw(to, PRINTED_LEVELS[from->level]);
    append_raw(to, is_json ? "\",\"module\":\"" : " ");
    append_raw(to, console->options.server);
    append_raw(to, is_json ? "\",\"message\":\"" : ": ");
    to->limit = MESSAGE_CAPACITY;
    append_text(to, from->message, from->message_length, is_json);
    append_raw(to, is_json ? "\"" : "");
    to->limit = sizeof(to->bytes) - TAIL;
    for (int64_t i = 0; i < from->fact_count; i++)
    {
        append_fact(to, &from->facts[i], is_json);
    }
    append_raw(to, is_json ? "}\n" : "\n");
}

/* -- printing ---------------------------------------------------------------------------------------------------------------- */

void asi_console_init(asi_console *console, const asi_console_options *options, asi_clock clock)
{
    *console = (asi_console){ .options = *options, .clock = clock, .second_begin_ns = asi_clock_ns(&clock) };
    pthread_mutex_init(&console->mutex, NULL);
}

/* Does not wait: poll reports a pipe writable when it can take PIPE_BUF bytes, and a line is never longer. */
static bool print(const asi_console *console, const event *from)
{
    line text;
    build(console, from, &text);
    struct pollfd out = { .fd = console->options.fd, .events = POLLOUT };
    return 1 == poll(&out, 1, 0) && POLLOUT == out.revents && write(console->options.fd, text.bytes, text.used) > 0;
}

static bool print_left_out(asi_console *console)
{
    static const char message[] = "errors were not printed";
    const asi_fact facts[] = { { .name = "count", .number = console->left_out },
        { .name = "see", .text = console->options.command } };
    const event left_out = { .level = ASI_LOG_WARNING, .message = message, .message_length = sizeof(message) - 1,
        .facts = facts, .fact_count = 2 };
    if (console->left_out > 0 && (console->options.level > ASI_LOG_WARNING || print(console, &left_out)))
    {
        console->left_out = 0;
    }
    return 0 == console->left_out;
}

static bool is_in_budget(asi_console *console)
{
    const int64_t now_ns = asi_clock_ns(&console->clock);
    if (now_ns - console->second_begin_ns >= SECOND_NS)
    {
        console->second_begin_ns = now_ns;
        console->second_lines = 0;
    }
    return console->second_lines++ < ASI_CONSOLE_LINES_PER_SECOND;
}

void asi_console_event(
    asi_console *console, asi_log_level level, const char *message, const asi_fact *facts, int64_t fact_count)
{
    const event from = { .level = level, .message = message, .message_length = strlen(message), .facts = facts,
        .fact_count = fact_count };
    if (level >= console->options.level)
    {
        pthread_mutex_lock(&console->mutex);
        (void)print(console, &from);
        pthread_mutex_unlock(&console->mutex);
    }
}

static bool begins_with(const char *text, int64_t length, const char *prefix)
{
    const size_t wanted = strlen(prefix);
    return (size_t)length >= wanted && 0 == memcmp(text, prefix, wanted);
}

bool asi_console_error(asi_console *console, int32_t code, const char *text, int64_t text_length, int64_t count)
{
    const bool is_warning = begins_with(text, text_length, WARNING);
    const size_t severity = is_warning ? sizeof(WARNING) - 1 : begins_with(text, text_length, ERROR) ? sizeof(ERROR) - 1 : 0;
    asi_fact facts[2];
    int64_t fact_count = 0;
    if (0 != code)
    {
        facts[fact_count++] = (asi_fact){ .name = "code", .number = code };
    }
    if (count > 0)
    {
        facts[fact_count++] = (asi_fact){ .name = "count", .number = count };
    }
    const event from = { .level = is_warning ? ASI_LOG_WARNING : ASI_LOG_ERROR, .message = text + severity,
        .message_length = (size_t)text_length - severity, .facts = facts, .fact_count = fact_count };
    if (from.level < console->options.level)
    {
        return true;
    }
    pthread_mutex_lock(&console->mutex);
    const bool is_printed = is_in_budget(console) && print_left_out(console) && print(console, &from);
    console->left_out += is_printed ? 0 : 1;
    pthread_mutex_unlock(&console->mutex);
    return is_printed;
}

void asi_console_on_error(void *context, int32_t code, const char *text)
{
    (void)asi_console_error(context, code, text, (int64_t)strlen(text), 0);
}

void asi_console_close(asi_console *console)
{
    (void)print_left_out(console);
    pthread_mutex_destroy(&console->mutex);
}
