/* Goal: a service manager hears that the process is ready, alive and ending, and nobody else does. Method: sockets of the test's own. */
#define _GNU_SOURCE
#include "base/service.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "support.h"

static char text[16384];

static int listen_at(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    memcpy(address.sun_path, name, strlen(name));
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    address.sun_path[0] = '@' == name[0] ? '\0' : name[0];
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && 0 == bind(fd, (struct sockaddr *)&address, length));
    CHECK_I64(setenv("NOTIFY_SOCKET", name, 1), 0);
    return fd;
}

/* "" if there is no datagram. */
static const char *heard(int fd)
{
    const ssize_t length = recv(fd, text, sizeof(text) - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

static void says_when_it_is_ready_and_when_it_ends(void)
{
    char folder[SCRATCH_CAPACITY];
    char path[SCRATCH_CAPACITY + 16];
    char abstract[SCRATCH_CAPACITY + 16];
    scratch_create(folder);
    snprintf(path, sizeof(path), "%s/notify", folder);
    snprintf(abstract, sizeof(abstract), "@%s", folder);
    const char *const names[] = { path, abstract };
    for (size_t i = 0; i < 2; i++)
    {
        const int fd = listen_at(names[i]);
        CHECK_I64(asi_service_ready("serves /d"), AS_OK);
        CHECK_TEXT(heard(fd), "READY=1\nSTATUS=serves /d");
        asi_service_stopping("no room\nMAINPID=1\n");
        CHECK_TEXT(heard(fd), "STOPPING=1\nSTATUS=no room MAINPID=1 ");
        CHECK_TEXT(heard(fd), "");
        close(fd);
    }
    scratch_delete(folder);
}

static void says_nothing_without_a_manager(void)
{
    CHECK_I64(unsetenv("NOTIFY_SOCKET"), 0);
    CHECK_I64(asi_service_ready("x"), AS_OK);
    asi_service_stopping("x");
    CHECK_I64(setenv("NOTIFY_SOCKET", "", 1), 0);
    CHECK_I64(asi_service_ready("x"), AS_OK);
}

static void a_manager_that_cannot_be_reached_is_told(void)
{
    char longest[256];
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    const char *const names[] = { "/dev/shm/no-such-socket", "relative", longest };
    for (size_t i = 0; i < 3; i++)
    {
        CHECK_I64(setenv("NOTIFY_SOCKET", names[i], 1), 0);
        CHECK_I64(asi_service_ready("x"), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), names[i]));
    }
}

static asi_watchdog of(const char *usec, const char *pid)
{
    CHECK_I64(NULL == usec ? unsetenv("WATCHDOG_USEC") : setenv("WATCHDOG_USEC", usec, 1), 0);
    CHECK_I64(NULL == pid ? unsetenv("WATCHDOG_PID") : setenv("WATCHDOG_PID", pid, 1), 0);
    return asi_watchdog_from_environment();
}

static void a_watchdog_is_for_the_process_that_is_named(void)
{
    char own[16];
    snprintf(own, sizeof(own), "%d", getpid());
    CHECK_I64(of("30000000", NULL).interval_ns, 15000000000LL);
    CHECK_I64(of("30000000", own).interval_ns, 15000000000LL);
    CHECK_I64(of("30000000", "1").interval_ns, 0);
    CHECK_I64(of(NULL, own).interval_ns, 0);
    const char *const impossible[] = { "", "-1", "3s", "99999999999999999999", "9223372036854775807" };
    for (size_t i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++)
    {
        CHECK_I64(of(impossible[i], own).interval_ns, 0);
    }
}

static void a_watchdog_hears_twice_in_its_interval(void)
{
    char name[64];
    snprintf(name, sizeof(name), "@aeron-spark-test-watchdog-%d", getpid());
    const int fd = listen_at(name);
    asi_watchdog watchdog = of("2000", NULL);
    CHECK(asi_watchdog_is_due(&watchdog, 5));
    asi_watchdog_report(&watchdog, 5);
    CHECK_TEXT(heard(fd), "WATCHDOG=1");
    CHECK(!asi_watchdog_is_due(&watchdog, 1000004));
    CHECK(asi_watchdog_is_due(&watchdog, 1000005));
    close(fd);
    asi_watchdog_report(&watchdog, 1000005); /* nobody listens: no harm */
    const asi_watchdog none = of(NULL, NULL);
    CHECK(!asi_watchdog_is_due(&none, INT64_MAX));
}

int main(void)
{
    RUN(says_when_it_is_ready_and_when_it_ends);
    RUN(says_nothing_without_a_manager);
    RUN(a_manager_that_cannot_be_reached_is_told);
    RUN(a_watchdog_is_for_the_process_that_is_named);
    RUN(a_watchdog_hears_twice_in_its_interval);
    return 0;
}
