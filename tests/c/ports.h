/* UDP ports that no other test process on this machine uses: other tests, and drivers, may run beside. */
#ifndef AS_TESTS_PORTS_H
#define AS_TESTS_PORTS_H

#include <arpa/inet.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

/* They lie below those that the system gives to sockets without a port of their own (ip_local_port_range): such a socket, of this
 * test or of another process, would else take one between its choice and its use. A block belongs to one process until it ends.
 * aeron_spark.testing.ports shares the blocks. */
enum
{
    PORTS_LOWEST = 10000,
    PORTS_PER_BLOCK = 100,
    PORTS_BLOCKS = 220,
    PORTS_NAMED = 24000, /* and below PORTS_NAMED_END: tables of these tests name them */
    PORTS_NAMED_END = 25000,
};

/* The claim is an abstract socket: the kernel takes it back whatever ends the process. */
static inline bool port_block_claim(int block)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    const int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "aeron-spark-test-ports-%d",
        PORTS_LOWEST + block * PORTS_PER_BLOCK);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    const bool claimed =
        0 == bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length));
    if (!claimed)
    {
        close(fd);
    }
    return claimed;
}

static inline bool port_is_free(int port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)port) };
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    const bool is_free = 0 == bind(fd, (const struct sockaddr *)&address, sizeof(address));
    close(fd);
    return is_free;
}

/* The first of `count` ports in a row that were free a moment ago; none of them is given again in this process. */
static inline int free_ports(int count)
{
    static int next = 0;
    static int end = 0;
    static int blocks_tried = 0;
    for (int found = 0; found < count;)
    {
        if (next == end)
        {
            CHECK(blocks_tried < PORTS_BLOCKS);
            const int block = ((int)getpid() * 37 + blocks_tried++) % PORTS_BLOCKS;
            next = PORTS_LOWEST + block * PORTS_PER_BLOCK;
            const bool is_named = next >= PORTS_NAMED && next < PORTS_NAMED_END;
            end = !is_named && port_block_claim(block) ? next + PORTS_PER_BLOCK : next;
            found = 0;
            continue;
        }
        found = port_is_free(next++) ? found + 1 : 0;
    }
    return next - count;
}

static inline int free_port(void)
{
    return free_ports(1);
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
