/* Prints errors of a server's executable to its standard error: one line per error, never more than the terminal or pipe can
 * take at once.
 *
 * The agents call this, so nothing here waits. Lines that arrive too fast, or that nobody reads, are dropped and counted; the
 * error log has them all. Any thread. */
#ifndef ASI_BASE_CONSOLE_H
#define ASI_BASE_CONSOLE_H

#include <pthread.h>

#include "aeron_spark/as_types.h"
#include "base/clock.h"

#define ASI_CONSOLE_LINES_PER_SECOND 10

typedef struct asi_console
{
    const char *server;  /* borrowed: "driver" */
    const char *command; /* borrowed: the command that shows the whole error log */
    asi_clock clock;
    int fd;
    pthread_mutex_t mutex;
    int64_t second_begin_ns;
    int64_t second_lines;
    int64_t left_out;
} asi_console;

void asi_console_init(asi_console *console, const char *server, const char *command, asi_clock clock, int fd);
/* An as_on_logged_error; `context` is the console. */
void asi_console_on_error(void *context, int32_t code, const char *text);
/* Prints how many lines were dropped since the last one, if any. */
void asi_console_close(asi_console *console);

#endif
