/* A relay of UDP datagrams with a fixed delay each way, for tests and benchmarks on kernels without netem: what comes to its
 * port goes to the target, what the target answers goes back to whom the last datagram came from. Runs until SIGTERM.
 *
 *   udp_relay LISTEN_PORT TARGET_PORT DELAY_US
 *
 * Datagrams leave one by one, in order, as they came: a firewall rule on the target's port sees each of them. One that does
 * not find room in the store is dropped, and counted on standard output at the end. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 16384
#define SLOT_BYTES 9216
#define BURST 64

typedef struct held
{
    int64_t due_ns;
    ssize_t length;
    uint8_t bytes[SLOT_BYTES];
} held;

/* One direction. Head and tail only grow. */
typedef struct road
{
    held *slots;
    uint64_t head;
    uint64_t tail;
    uint64_t dropped;
    int from;
    int to;
} road;

static volatile sig_atomic_t stopped;
static struct sockaddr_in source;

static void on_signal(int number)
{
    stopped = number;
}

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
}

static int bound(int port)
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const int size = 4 * 1024 * 1024;
    const struct sockaddr_in address = loopback(port);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
    {
        perror("udp_relay: bind");
        exit(1);
    }
    return fd;
}

static void take(road *way, int64_t delay_ns, struct sockaddr_in *from)
{
    const int64_t due_ns = now_ns() + delay_ns;
    for (int i = 0; i < BURST; i++)
    {
        uint8_t overflow[SLOT_BYTES];
        held *slot = &way->slots[way->head % SLOTS];
        const int full = way->head - way->tail == SLOTS;
        socklen_t size = sizeof(*from);
        const ssize_t length = recvfrom(way->from, full ? overflow : slot->bytes, SLOT_BYTES, 0, (struct sockaddr *)from,
            NULL == from ? NULL : &size);
        if (length < 0)
        {
            return;
        }
        if (full)
        {
            way->dropped++;
            continue;
        }
        slot->due_ns = due_ns;
        slot->length = length;
        way->head++;
    }
}

/* Returns when the next one is due; INT64_MAX where none is held. */
static int64_t give(road *way, const struct sockaddr_in *to)
{
    const int64_t now = now_ns();
    for (; way->tail < way->head; way->tail++)
    {
        const held *slot = &way->slots[way->tail % SLOTS];
        if (slot->due_ns > now)
        {
            return slot->due_ns;
        }
        if (sendto(way->to, slot->bytes, (size_t)slot->length, 0, (const struct sockaddr *)to, sizeof(*to)) < 0)
        {
            if (EAGAIN == errno)
            {
                return now;
            }
            way->dropped++;
        }
    }
    return INT64_MAX;
}

int main(int argc, char **argv)
{
    if (argc != 4)
    {
        fprintf(stderr, "usage: udp_relay LISTEN_PORT TARGET_PORT DELAY_US\n");
        return 2;
    }
    signal(SIGTERM, on_signal);
    const int near = bound(atoi(argv[1]));
    const int far = bound(0);
    const struct sockaddr_in target = loopback(atoi(argv[2]));
    const int64_t delay_ns = 1000 * strtoll(argv[3], NULL, 10);
    road there = { .slots = malloc(SLOTS * sizeof(held)), .from = near, .to = far };
    road back = { .slots = malloc(SLOTS * sizeof(held)), .from = far, .to = near };
    if (NULL == there.slots || NULL == back.slots)
    {
        perror("udp_relay: malloc");
        return 1;
    }
    printf("READY\n");
    fflush(stdout);
    while (!stopped)
    {
        take(&there, delay_ns, &source);
        take(&back, delay_ns, NULL);
        const int64_t due_there = give(&there, &target);
        const int64_t due_back = give(&back, &source);
        const int64_t due = due_there < due_back ? due_there : due_back;
        int64_t wait_ns = INT64_MAX == due ? 100000000 : due - now_ns();
        if (wait_ns > 0)
        {
            struct pollfd ready[] = { { .fd = near, .events = POLLIN }, { .fd = far, .events = POLLIN } };
            const struct timespec timeout = { .tv_sec = 0, .tv_nsec = wait_ns };
            ppoll(ready, 2, &timeout, NULL);
        }
    }
    printf("{\"dropped_there\": %llu, \"dropped_back\": %llu}\n", (unsigned long long)there.dropped,
        (unsigned long long)back.dropped);
    free(there.slots);
    free(back.slots);
    close(near);
    close(far);
    return 0;
}
