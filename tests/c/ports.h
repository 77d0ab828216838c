/* UDP ports that no other test process on this machine uses: other tests, and drivers, may run beside. */
#ifndef AS_TESTS_PORTS_H
#define AS_TESTS_PORTS_H

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

/* A port that was free a moment ago. */
static inline int free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(fd >= 0 && 0 == bind(fd, (struct sockaddr *)&address, length) &&
        0 == getsockname(fd, (struct sockaddr *)&address, &length));
    close(fd);
    return ntohs(address.sin_port);
}

/* The channel with an address of the loopback network that is this process's own for 127.0.0.1: ports that a table of channels names
 * are free there, whatever runs beside the test. */
static inline void network_own(const char *channel, char *to, size_t capacity)
{
    static const char LOOPBACK[] = "127.0.0.1";
    const unsigned pid = (unsigned)getpid();
    size_t length = 0;
    to[0] = '\0';
    for (const char *found; NULL != (found = strstr(channel, LOOPBACK)); channel = found + sizeof(LOOPBACK) - 1)
    {
        length += (size_t)snprintf(to + length, capacity - length, "%.*s127.%u.%u.%u", (int)(found - channel), channel,
            1 + (pid >> 16) % 254, (pid >> 8) % 256, pid % 256);
        CHECK(length < capacity);
    }
    CHECK(length + strlen(channel) < capacity);
    snprintf(to + length, capacity - length, "%s", channel);
}

#endif
