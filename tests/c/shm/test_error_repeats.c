/* Goal: an error that repeats is printed with its count, every ten seconds at most, and only where the count has grown.
 * Method: a distinct error log in memory, a pipe, time given by the test. */
#define _GNU_SOURCE
#include "shm/error_repeats.h"

#include <fcntl.h>

#include "shm/error_log.h"
#include "support.h"

#define INTERVAL_NS ASI_ERROR_REPEATS_INTERVAL_NS

static char text[65536];

static const char *printed(int from)
{
    const ssize_t length = read(from, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

static int64_t stopped(void *context) { return *(const int64_t *)context; }

static void counts_are_told(void)
{
    static uint8_t section[65536];
    static asi_error_repeats repeats;
    int ends[2];
    int64_t now = 0;
    asi_error_log log;
    asi_console console;
    CHECK(0 == pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    const asi_clock clock = { .nano_time = stopped, .epoch_ms = stopped, .context = &now };
    const asi_console_options options = { .server = "driver", .command = "x", .fd = ends[1] };
    asi_console_init(&console, &options, clock);
    asi_error_log_init(&log, section, sizeof(section), NULL);
    log.sink = (asi_error_sink){ .on_error = asi_console_on_error, .context = &console };
    asi_error_repeats_init(&repeats, &console, section, sizeof(section));

    asi_error_log_record(&log, 1, "once", 1);
    asi_error_log_record(&log, 2, "often", 1);
    CHECK(NULL != strstr(printed(ends[0]), "ERROR driver: often code=2\n"));
    for (int i = 0; i < 56; i++)
    {
        asi_error_log_record(&log, 2, "often", 2);
    }
    CHECK_TEXT(printed(ends[0]), "");
    asi_error_repeats_poll(&repeats, 1);
    CHECK_TEXT(printed(ends[0]), "1970-01-01T00:00:00.000Z ERROR driver: often count=57\n");
    asi_error_log_record(&log, 2, "often", 2);
    asi_error_repeats_poll(&repeats, INTERVAL_NS);
    CHECK_TEXT(printed(ends[0]), "");
    asi_error_repeats_poll(&repeats, INTERVAL_NS + 1);
    CHECK_TEXT(printed(ends[0]), "1970-01-01T00:00:00.000Z ERROR driver: often count=58\n");
    asi_error_repeats_poll(&repeats, 3 * INTERVAL_NS);
    CHECK_TEXT(printed(ends[0]), "");

    /* More distinct errors than are followed, each twice: those beyond are told once only. */
    for (int i = 0; i < 2 * (ASI_ERROR_REPEATS_CAPACITY + 10); i++)
    {
        char one[32];
        snprintf(one, sizeof(one), "error %d;", i / 2);
        now += 1000000000;
        asi_error_log_record(&log, 3, one, 2);
        (void)printed(ends[0]);
    }
    int lines = 0;
    for (int64_t poll = 4; poll < 100; poll++)
    {
        now += 1000000000;
        asi_error_repeats_poll(&repeats, poll * INTERVAL_NS);
        const char *at = printed(ends[0]);
        while (NULL != (at = strstr(at, " count=2\n")))
        {
            lines++;
            at++;
        }
    }
    CHECK_I64(lines, ASI_ERROR_REPEATS_CAPACITY - 2); /* "once" and "often" are the first two */

    /* Without a console nothing is printed. */
    asi_error_repeats_init(&repeats, NULL, section, sizeof(section));
    asi_error_repeats_poll(&repeats, 1);
    CHECK_I64(repeats.index, 0);
    asi_error_log_close(&log);
    asi_console_close(&console);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    RUN(counts_are_told);
    return 0;
}
