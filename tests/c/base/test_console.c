/* Goal: an event is one line of standard error, at once, valid whatever bytes it has, and nothing makes the caller wait.
 * Method: pipes, a clock of the test's. */
#define _GNU_SOURCE
#include "base/console.h"

#include <fcntl.h>
#include <signal.h>

#include "support.h"

#define SECOND_NS 1000000000LL

typedef struct world
{
    int64_t now_ns;
    int64_t now_ms;
    int in;
    int out;
    asi_console console;
    char text[65536];
} world;

#define AT "2026-11-25T08:00:47.123Z "
#define AT_MS 1795593647123LL
#define JSON_AT "{\"time\":\"2026-11-25T08:00:47.123Z\",\"level\":\""

static int64_t read_clock(void *context) { return ((world *)context)->now_ns; }
static int64_t read_epoch(void *context) { return ((world *)context)->now_ms; }

static void open_as(world *w, asi_log_format format, asi_log_level level)
{
    int ends[2];
    memset(w, 0, sizeof(*w));
    CHECK(0 == pipe2(ends, O_CLOEXEC));
    w->out = ends[0];
    w->in = ends[1];
    CHECK(0 == fcntl(w->out, F_SETFL, O_NONBLOCK));
    w->now_ms = AT_MS;
    const asi_clock clock = { .nano_time = read_clock, .epoch_ms = read_epoch, .context = w };
    const asi_console_options options = { .server = "driver", .command = "aeron-spark errors --dir /d", .format = format,
        .level = level, .fd = w->in };
    asi_console_init(&w->console, &options, clock);
}

static void open_world(world *w) { open_as(w, ASI_LOG_TEXT, ASI_LOG_INFO); }

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
        { "no room", AT "ERROR driver: no room code=22\n" },
        { "(22) Invalid argument\nno such endpoint\n", AT "ERROR driver: (22) Invalid argument: no such endpoint code=22\n" },
        { "a\n\n\nb\n\n", AT "ERROR driver: a: b code=22\n" },
        { "WARN - little room", AT "WARNING driver: little room code=22\n" },
        { "ERROR - no room at all", AT "ERROR driver: no room at all code=22\n" },
        { "", AT "ERROR driver:  code=22\n" },
        { "\x1b[2J\r\t\x7f \xc2\x9b \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", AT "ERROR driver: \\u001b[2J\\u000d\\u0009\\u007f \\u009b "
            "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 code=22\n" },
        /* Cut, overlong, a surrogate, beyond the last character. */
        { "\xff\xc3|\xc0\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82", AT "ERROR driver: \xef\xbf\xbd\xef\xbf\xbd|"
            "\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|"
            "\xef\xbf\xbd\xef\xbf\xbd code=22\n" },
    };
    world w;
    open_world(&w);
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        w.now_ns += SECOND_NS;
        asi_console_on_error(&w.console, 22, ROWS[i].text);
        CHECK_TEXT(printed(&w), ROWS[i].line);
    }
    asi_console_error(&w.console, 0, "again and the rest", 5, 57);
    CHECK_TEXT(printed(&w), AT "ERROR driver: again count=57\n");
    close_world(&w);
}

static const asi_fact FACTS[] = { { .name = "dir", .text = "/dev/shm/aeron" }, { .name = "empty", .text = "" },
    { .name = "channel", .text = "aeron:udp?endpoint=a b\"\\\x01" }, { .name = "pid", .number = -7 } };

static void events_have_facts(void)
{
    world w;
    open_world(&w);
    asi_console_event(&w.console, ASI_LOG_INFO, "ready \"now\"", FACTS, 4);
    CHECK_TEXT(printed(&w), AT "INFO driver: ready \"now\" dir=/dev/shm/aeron empty=\"\" "
        "channel=\"aeron:udp?endpoint=a b\\\"\\\\\\u0001\" pid=-7\n");
    close_world(&w);
    open_as(&w, ASI_LOG_JSON, ASI_LOG_INFO);
    asi_console_event(&w.console, ASI_LOG_INFO, "ready \"now\"", FACTS, 4);
    CHECK_TEXT(printed(&w), JSON_AT "INFO\",\"module\":\"driver\",\"message\":\"ready \\\"now\\\"\",\"dir\":\"/dev/shm/aeron\","
        "\"empty\":\"\",\"channel\":\"aeron:udp?endpoint=a b\\\"\\\\\\u0001\",\"pid\":-7}\n");
    asi_console_on_error(&w.console, 22, "bad\n\xff\"\x1b");
    CHECK_TEXT(printed(&w), JSON_AT "ERROR\",\"module\":\"driver\",\"message\":\"bad: \xef\xbf\xbd\\\"\\u001b\",\"code\":22}\n");
    close_world(&w);
}

static void levels(void)
{
    for (int level = ASI_LOG_INFO; level <= ASI_LOG_OFF; level++)
    {
        world w;
        open_as(&w, ASI_LOG_TEXT, (asi_log_level)level);
        asi_console_event(&w.console, ASI_LOG_INFO, "ready", NULL, 0);
        asi_console_on_error(&w.console, 0, "WARN - little room");
        asi_console_on_error(&w.console, 0, "no room");
        const char *text = printed(&w);
        CHECK_I64(NULL != strstr(text, "INFO driver: ready\n"), level <= ASI_LOG_INFO);
        CHECK_I64(NULL != strstr(text, "WARNING driver: little room\n"), level <= ASI_LOG_WARNING);
        CHECK_I64(NULL != strstr(text, "ERROR driver: no room\n"), level <= ASI_LOG_ERROR);
        close_world(&w);
        asi_log_level parsed;
        CHECK_I64(asi_log_level_parse(asi_log_level_text((asi_log_level)level), &parsed), AS_OK);
        CHECK_I64(parsed, level);
    }
    asi_log_level level;
    asi_log_format format;
    CHECK_I64(asi_log_level_parse("loud", &level), AS_E_USAGE);
    CHECK_I64(asi_log_format_parse("xml", &format), AS_E_USAGE);
    CHECK_I64(asi_log_format_parse("json", &format), AS_OK);
    CHECK_TEXT(asi_log_format_text(format), "json");
}

/* Of the worst text for each form, the line is whole: its facts and its end are there. */
static void a_long_text_ends_with_its_line(void)
{
    static const char *const WORST[] = { "x", "\x01", "\"", "\xff", "\xf0\x9f\x98\x80" };
    for (size_t i = 0; i < 2 * sizeof(WORST) / sizeof(WORST[0]); i++)
    {
        static char text[3 * 4096];
        size_t used = 0;
        while (used + 4 < sizeof(text))
        {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", WORST[i / 2]);
        }
        world w;
        open_as(&w, 0 == i % 2 ? ASI_LOG_TEXT : ASI_LOG_JSON, ASI_LOG_INFO);
        asi_console_on_error(&w.console, 22, text);
        const char *end = 0 == i % 2 ? " code=22\n" : "\",\"code\":22}\n";
        const size_t length = strlen(printed(&w));
        CHECK(length > 3000 && length <= 4096);
        CHECK_TEXT(w.text + length - strlen(end), end);
        const asi_fact facts[] = { { .name = "a", .text = text }, { .name = "b", .text = text } };
        asi_console_event(&w.console, ASI_LOG_INFO, "long facts", facts, 2);
        const size_t both = strlen(printed(&w));
        CHECK(both > 4000 && both <= 4096);
        CHECK_TEXT(w.text + both - (0 == i % 2 ? 1 : 3), 0 == i % 2 ? "\n" : "\"}\n");
        close_world(&w);
    }
}

static void too_many_are_counted(void)
{
    world w;
    open_world(&w);
    for (int i = 0; i < ASI_CONSOLE_LINES_PER_SECOND + 3; i++)
    {
        asi_console_on_error(&w.console, 0, "e");
    }
    CHECK_I64(strlen(printed(&w)), ASI_CONSOLE_LINES_PER_SECOND * strlen(AT "ERROR driver: e\n"));
    w.now_ns += SECOND_NS;
    asi_console_on_error(&w.console, 0, "later");
    CHECK_TEXT(printed(&w),
        AT "WARNING driver: errors were not printed count=3 see=\"aeron-spark errors --dir /d\"\n" AT "ERROR driver: later\n");
    for (int i = 0; i < ASI_CONSOLE_LINES_PER_SECOND; i++)
    {
        asi_console_on_error(&w.console, 0, "e");
    }
    (void)printed(&w);
    asi_console_close(&w.console);
    CHECK_TEXT(printed(&w), AT "WARNING driver: errors were not printed count=1 see=\"aeron-spark errors --dir /d\"\n");
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
        AT "WARNING driver: errors were not printed count=1 see=\"aeron-spark errors --dir /d\"\n" AT "ERROR driver: next\n");
    close(w.out);
    asi_console_on_error(&w.console, 0, "to nobody"); /* no SIGPIPE */
    asi_console_close(&w.console);
    close(w.in);
}

int main(void)
{
    RUN(one_line_for_an_error);
    RUN(events_have_facts);
    RUN(levels);
    RUN(a_long_text_ends_with_its_line);
    RUN(too_many_are_counted);
    RUN(nobody_reads);
    return 0;
}
