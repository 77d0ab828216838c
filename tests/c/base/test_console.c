/* Goal: an error is one line of standard error, at once, and nothing makes the caller wait. Method: pipes, a clock of the test's. */
#define _GNU_SOURCE
#include "base/console.h"

#include <fcntl.h>
#include <signal.h>

#include "support.h"

#define SECOND_NS 1000000000LL

typedef struct world
{
    int64_t now_ns;
    int in;
    int out;
    asi_console console;
    char text[65536];
} world;

static int64_t read_clock(void *context) { return ((world *)context)->now_ns; }

static void open_world(world *w)
{
    int ends[2];
    memset(w, 0, sizeof(*w));
    CHECK(0 == pipe2(ends, O_CLOEXEC));
    w->out = ends[0];
    w->in = ends[1];
    CHECK(0 == fcntl(w->out, F_SETFL, O_NONBLOCK));
    const asi_clock clock = { .nano_time = read_clock, .epoch_ms = read_clock, .context = w };
    asi_console_init(&w->console, "driver", "aeron-spark errors --dir /d", clock, w->in);
}

static const char *printed(world *w)
{
    const ssize_t length = read(w->out, w->text, sizeof(w->text) - 1);
    w->text[length > 0 ? length : 0] = '\0';
    return w->text;
}

static void close_world(world *w)
{
    asi_console_close(&w->console);
    close(w->in);
    close(w->out);
}

static void one_line_for_an_error(void)
{
    static const struct { const char *text; const char *line; } ROWS[] = {
        { "no room", "ERROR: driver: no room\n" },
        { "(22) Invalid argument\nno such endpoint\n", "ERROR: driver: (22) Invalid argument: no such endpoint\n" },
        { "a\n\n\nb\n\n", "ERROR: driver: a: b\n" },
        { "WARN - little room", "WARNING: driver: little room\n" },
        { "ERROR - no room at all", "ERROR: driver: no room at all\n" },
        { "", "ERROR: driver: \n" },
    };
    world w;
    open_world(&w);
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_console_on_error(&w.console, 22, ROWS[i].text);
        CHECK_TEXT(printed(&w), ROWS[i].line);
    }
    close_world(&w);
}

static void a_long_text_ends_with_its_line(void)
{
    static char text[3 * 4096];
    memset(text, 'x', sizeof(text) - 1);
    world w;
    open_world(&w);
    asi_console_on_error(&w.console, 0, text);
    const size_t length = strlen(printed(&w));
    CHECK(length > 4000 && length <= 4096);
    CHECK('\n' == w.text[length - 1]);
    close_world(&w);
}

static void too_many_are_counted(void)
{
    world w;
    open_world(&w);
    for (int i = 0; i < ASI_CONSOLE_LINES_PER_SECOND + 3; i++)
    {
        asi_console_on_error(&w.console, 0, "e");
    }
    CHECK_I64(strlen(printed(&w)), ASI_CONSOLE_LINES_PER_SECOND * strlen("ERROR: driver: e\n"));
    w.now_ns += SECOND_NS;
    asi_console_on_error(&w.console, 0, "later");
    CHECK_TEXT(printed(&w),
        "WARNING: driver: 3 more errors were not printed, see: aeron-spark errors --dir /d\nERROR: driver: later\n");
    for (int i = 0; i < ASI_CONSOLE_LINES_PER_SECOND; i++)
    {
        asi_console_on_error(&w.console, 0, "e");
    }
    (void)printed(&w);
    asi_console_close(&w.console);
    CHECK_TEXT(printed(&w), "WARNING: driver: 1 more errors were not printed, see: aeron-spark errors --dir /d\n");
    close(w.in);
    close(w.out);
}

/* A reader that stalls, as a terminal after Ctrl-S, or is gone: the caller continues. */
static void nobody_reads(void)
{
    static char filler[4096];
    world w;
    open_world(&w);
    CHECK(0 == fcntl(w.in, F_SETFL, O_NONBLOCK));
    while (write(w.in, filler, sizeof(filler)) > 0)
    {
    }
    CHECK(0 == fcntl(w.in, F_SETFL, 0));
    asi_console_on_error(&w.console, 0, "lost");
    while (read(w.out, filler, sizeof(filler)) > 0)
    {
    }
    asi_console_on_error(&w.console, 0, "next");
    CHECK_TEXT(printed(&w),
        "WARNING: driver: 1 more errors were not printed, see: aeron-spark errors --dir /d\nERROR: driver: next\n");
    close(w.out);
    asi_console_on_error(&w.console, 0, "to nobody"); /* no SIGPIPE */
    asi_console_close(&w.console);
    close(w.in);
}

int main(void)
{
    RUN(one_line_for_an_error);
    RUN(a_long_text_ends_with_its_line);
    RUN(too_many_are_counted);
    RUN(nobody_reads);
    return 0;
}
