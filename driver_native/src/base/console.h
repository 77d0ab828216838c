/* The service log of a server's executable: one line an event to standard error, as text or as JSON.
 *
 *   2026-11-25T08:00:47.123Z ERROR driver: (22) Invalid argument: no such endpoint code=22
 *   {"time":"2026-11-25T08:00:47.123Z","level":"ERROR","module":"driver","message":"(22) Invalid argument: ...","code":22}
 *
 * A line is one write of at most PIPE_BUF bytes, so lines of several processes do not mix; what does not fit is cut. Texts come
 * from peers, too: control characters and bytes that are no UTF-8 are escaped or replaced, so that a text cannot forge a line,
 * and JSON is always valid.
 *
 * The agents call this, so nothing here waits. Errors that come too fast, and lines that nobody reads, are dropped and counted;
 * the error log has them all. Any thread. */
#ifndef ASI_BASE_CONSOLE_H
#define ASI_BASE_CONSOLE_H

#include <pthread.h>

#include "aeron_spark/as_types.h"
#include "base/clock.h"
#include "base/result.h"

#define ASI_CONSOLE_LINES_PER_SECOND 10

typedef enum asi_log_level
{
    ASI_LOG_INFO,
    ASI_LOG_WARNING,
    ASI_LOG_ERROR,
    ASI_LOG_OFF
} asi_log_level;

typedef enum asi_log_format
{
    ASI_LOG_TEXT,
    ASI_LOG_JSON
} asi_log_format;

/* Values of aeron.spark.log.level (info, warning, error, off) and aeron.spark.log.format (text, json). AS_E_USAGE: another one. */
as_result asi_log_level_parse(const char *text, asi_log_level *level) AS_MUST_USE;
as_result asi_log_format_parse(const char *text, asi_log_format *format) AS_MUST_USE;
const char *asi_log_level_text(asi_log_level level);
const char *asi_log_format_text(asi_log_format format);

typedef struct asi_console_options
{
    const char *server;  /* borrowed: "driver" */
    const char *command; /* borrowed: the command that shows the whole error log */
    asi_log_format format;
    asi_log_level level; /* events below it are not printed */
    int fd;
} asi_console_options;

typedef struct asi_console
{
    asi_console_options options;
    asi_clock clock;
    pthread_mutex_t mutex;
    int64_t second_begin_ns;
    int64_t second_lines;
    int64_t left_out;
} asi_console;

typedef struct asi_fact
{
    const char *name;
    const char *text; /* NULL: `number` is the value */
    int64_t number;
} asi_fact;

/* Text of several settings, "name=value name=value"; what does not fit is left out. Begins empty. */
typedef struct asi_settings_text
{
    char text[2048];
} asi_settings_text;

/* `context` is an asi_settings_text. */
void asi_settings_text_add(void *context, const char *name, const char *value);

void asi_console_init(asi_console *console, const asi_console_options *options, asi_clock clock);
/* Prints one event. */
void asi_console_event(
    asi_console *console, asi_log_level level, const char *message, const asi_fact *facts, int64_t fact_count);
/* Prints an error if the budget allows; false: it was not printed. `count` is how often it happened so far, 0: do not tell. The
 * severity that an archive's entries begin with becomes the level. */
bool asi_console_error(asi_console *console, int32_t code, const char *text, int64_t text_length, int64_t count);
/* An as_on_logged_error; `context` is the console. */
void asi_console_on_error(void *context, int32_t code, const char *text);
/* Prints how many lines were dropped since the last one, if any. */
void asi_console_close(asi_console *console);

#endif
