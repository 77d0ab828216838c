/* What UDP over loopback can move on this machine: one thread sends runs of equal datagrams (UDP_SEGMENT), another reads them
 * joined (UDP_GRO). The bench rows of UDP are held against it. Prints one JSON line.
 *
 *   udp_limit [DATAGRAM_BYTES 1408] [SECONDS 1] */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#define MAX_SEND 65000
#define MAX_SEGMENTS 64

static atomic_bool stopped;
static char buffer[MAX_SEND];
static char received[65536];
static int segment;
static size_t run_length;

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void need(int result, const char *what)
{
    if (result < 0)
    {
        perror(what);
        exit(1);
    }
}

static void *send_all(void *context)
{
    const int fd = *(int *)context;
    while (!stopped)
    {
        /* A full buffer is no failure: what does not fit is not counted, only what arrives is. */
        (void)!send(fd, buffer, run_length, 0);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    segment = argc > 1 ? atoi(argv[1]) : 1408;
    const double seconds = argc > 2 ? atof(argv[2]) : 1;
    if (segment < 1 || segment > MAX_SEND || seconds <= 0)
    {
        fprintf(stderr, "udp_limit: datagrams of 1 to %d bytes, and some time\n", MAX_SEND);
        return 2;
    }
    const int fit = MAX_SEND / segment;
    run_length = (size_t)segment * (size_t)(fit < MAX_SEGMENTS ? fit : MAX_SEGMENTS);
    const int in = socket(AF_INET, SOCK_DGRAM, 0);
    int out = socket(AF_INET, SOCK_DGRAM, 0);
    const int size = 2 * 1024 * 1024;
    const int one = 1;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    need(setsockopt(in, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), "SO_RCVBUF");
    need(setsockopt(out, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), "SO_SNDBUF");
    need(setsockopt(in, SOL_UDP, UDP_GRO, &one, sizeof(one)), "UDP_GRO");
    if (run_length > (size_t)segment)
    {
        need(setsockopt(out, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)), "UDP_SEGMENT");
    }
    need(bind(in, (struct sockaddr *)&address, sizeof(address)), "bind");
    need(getsockname(in, (struct sockaddr *)&address, &length), "getsockname");
    need(connect(out, (struct sockaddr *)&address, length), "connect");
    const struct timeval timeout = { .tv_sec = 0, .tv_usec = 100000 };
    need(setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), "SO_RCVTIMEO");
    pthread_t sender;
    need(-pthread_create(&sender, NULL, send_all, &out), "pthread_create");
    const double begin = now_s();
    double bytes = 0;
    double end;
    while ((end = now_s()) - begin < seconds)
    {
        const ssize_t got = recv(in, received, sizeof(received), 0);
        bytes += got > 0 ? (double)got : 0;
    }
    stopped = true;
    pthread_join(sender, NULL);
    printf("{\"program\": \"udp_limit\", \"datagram_bytes\": %d, \"bytes_per_second\": %.0f}\n", segment,
        bytes / (end - begin));
    close(in);
    close(out);
    return 0;
}
