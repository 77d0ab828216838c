/* See console.h. */
#include "base/console.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL
/* Prefix of entries in an archive's error log, as in the stock one. */
#define WARNING "WARN - "
#define ERROR "ERROR - "

void asi_console_init(asi_console *console, const char *server, const char *command, asi_clock clock, int fd)
{
    *console = (asi_console){ .server = server, .command = command, .clock = clock, .fd = fd,
        .second_begin_ns = asi_clock_ns(&clock) };
    pthread_mutex_init(&console->mutex, NULL);
}

/* Line breaks inside an error become ": "; those at its end are dropped. */
static void append_text(char *to, size_t capacity, const char *text)
{
    size_t used = strlen(to);
    for (; '\0' != *text && used + 3 < capacity; text++)
    {
        if ('\n' != *text)
        {
            to[used++] = *text;
        }
        else if ('\0' != text[strspn(text, "\n")])
        {
            text += strspn(text, "\n") - 1;
            to[used++] = ':';
            to[used++] = ' ';
        }
    }
    to[used++] = '\n';
    to[used] = '\0';
}

/* Does not wait: poll reports a pipe writable when it can take PIPE_BUF bytes, and a line is never longer. */
static bool print(const asi_console *console, const char *line)
{
    struct pollfd out = { .fd = console->fd, .events = POLLOUT };
    return 1 == poll(&out, 1, 0) && POLLOUT == out.revents && write(console->fd, line, strlen(line)) > 0;
}

static bool print_left_out(asi_console *console)
{
    char line[PIPE_BUF];
    snprintf(line, sizeof(line), "WARNING: %s: %" PRId64 " more errors were not printed, see: %s\n", console->server,
        console->left_out, console->command);
    if (console->left_out > 0 && print(console, line))
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

void asi_console_on_error(void *context, int32_t code, const char *text)
{
    asi_console *console = context;
    char line[PIPE_BUF];
    (void)code; /* the text contains the code where it matters */
    const bool is_warning = 0 == strncmp(text, WARNING, sizeof(WARNING) - 1);
    const bool has_severity = is_warning || 0 == strncmp(text, ERROR, sizeof(ERROR) - 1);
    const size_t severity = !has_severity ? 0 : is_warning ? sizeof(WARNING) - 1 : sizeof(ERROR) - 1;
    snprintf(line, sizeof(line), "%s: %s: ", is_warning ? "WARNING" : "ERROR", console->server);
    append_text(line, sizeof(line), text + severity);
    pthread_mutex_lock(&console->mutex);
    if (!is_in_budget(console) || !print_left_out(console) || !print(console, line))
    {
        console->left_out++;
    }
    pthread_mutex_unlock(&console->mutex);
}

void asi_console_close(asi_console *console)
{
    (void)print_left_out(console);
    pthread_mutex_destroy(&console->mutex);
}
