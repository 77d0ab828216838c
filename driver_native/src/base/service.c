/* See service.h. */
#define _GNU_SOURCE
#include "base/service.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT_CAPACITY (2 * AS_PATH_MAX + 256)

/* A name that begins with '@' is in the abstract namespace: its first byte is 0, and it ends with the length. */
static as_result address_of(const char *name, struct sockaddr_un *address, socklen_t *length)
{
    const size_t name_length = strlen(name);
    if (('/' != name[0] && '@' != name[0]) || name_length >= sizeof(address->sun_path))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "NOTIFY_SOCKET=%s is no path of a socket, of at most %zu bytes", name,
            sizeof(address->sun_path) - 1);
    }
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(address->sun_path, name, name_length);
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name_length);
    if ('@' == name[0])
    {
        address->sun_path[0] = '\0';
    }
    return AS_OK;
}

static as_result notify(const char *text, int flags)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    socklen_t length = 0;
    if (NULL == name || '\0' == name[0])
    {
        return AS_OK;
    }
    const as_result result = address_of(name, &address, &length);
    if (AS_OK != result)
    {
        return result;
    }
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const ssize_t sent =
        fd < 0 ? -1 : sendto(fd, text, strlen(text), flags | MSG_NOSIGNAL, (const struct sockaddr *)&address, length);
    const int error = errno;
    if (fd >= 0)
    {
        close(fd);
    }
    return sent >= 0 ? AS_OK : asi_fail_errno(AS_E_USAGE, error, "cannot notify the service manager at NOTIFY_SOCKET=%s", name);
}

/* A status is one line: what follows a newline would be another report, and it may be a text that a peer sent. */
static as_result notify_with_status(const char *state, const char *status, int flags)
{
    char text[TEXT_CAPACITY];
    const int length = snprintf(text, sizeof(text), "%s\nSTATUS=", state);
    snprintf(text + length, sizeof(text) - (size_t)length, "%s", status);
    for (char *at = strchr(text + length, '\n'); NULL != at; at = strchr(at, '\n'))
    {
        *at = ' ';
    }
    return notify(text, flags);
}

as_result asi_service_ready(const char *status) { return notify_with_status("READY=1", status, 0); }

void asi_service_stopping(const char *status)
{
    (void)!notify_with_status("STOPPING=1", status, MSG_DONTWAIT); /* the manager sees the end of the process in any case */
}

static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    errno = 0;
    const long long value = NULL == text ? 0 : strtoll(text, &end, 10);
    return NULL == text || 0 != errno || end == text || '\0' != *end || value < 0 ? 0 : value;
}

asi_watchdog asi_watchdog_from_environment(void)
{
    const int64_t pid = number_of("WATCHDOG_PID");
    const int64_t interval_us = number_of("WATCHDOG_USEC");
    const bool is_for_us = (0 == pid || getpid() == pid) && interval_us <= INT64_MAX / 1000;
    return (asi_watchdog){ .interval_ns = is_for_us ? interval_us * 1000 / 2 : 0 };
}

bool asi_watchdog_is_due(const asi_watchdog *watchdog, int64_t now_ns)
{
    return 0 != watchdog->interval_ns && now_ns >= watchdog->next_ns;
}

void asi_watchdog_report(asi_watchdog *watchdog, int64_t now_ns)
{
    watchdog->next_ns = now_ns + watchdog->interval_ns;
    (void)!notify("WATCHDOG=1", MSG_DONTWAIT); /* a lost report is made up for by the next one */
}
