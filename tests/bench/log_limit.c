/* What streams and an archive can reach on this machine: two threads and a log buffer of three terms, between which bytes go that
 * nobody frames, checks or counts. The bench's rows are held against it. Prints one JSON line.
 *
 *   log_limit record FOLDER BYTES [STREAMS 1]  one thread copies blocks into the log, another writes them to segment files
 *   log_limit replay FOLDER BYTES [STREAMS 1]  one thread reads such files into the log, another a word of each message there
 *   log_limit stream LENGTH BYTES              one thread copies messages of a length into the log, another takes them: a word of
 *                                              each where it fits into a frame, else all of it, as it is put together; a third
 *                                              zeroes what was taken, as a log must be before it is written again
 *
 * A block goes up to the end of a term, the largest block of the archive, and what the other thread has left free. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ARCHIVE_TERM ((int64_t)16 << 20)
#define STREAM_TERM ((int64_t)64 << 20)
#define FRAME 1408        /* the longest of a stream over shared memory, by default */
#define HEADER 32
#define SEGMENT ((int64_t)128 << 20)
#define LARGEST ((int64_t)1 << 20)
#define BLOCK ((int64_t)128 << 10)
#define MESSAGE 1056 /* of the archive's rows, in its frame */
#define STREAMS_MAX 64

typedef enum role
{
    PUBLISHER,
    SUBSCRIBER,
    CLEANER,
} role;

typedef struct progress
{
    _Alignas(128) _Atomic int64_t position;
} progress;

typedef struct stream
{
    uint8_t *log;
    progress of[3]; /* by role */
    int fd;
} stream;

static stream streams[STREAMS_MAX];
static int64_t stream_count = 1;
static int64_t bytes_each;
static uint8_t block[LARGEST];
static uint8_t taken[LARGEST];
static int64_t message = MESSAGE;
static int64_t term = ARCHIVE_TERM;
static const char *folder;

static double seconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void need(int64_t result, const char *what)
{
    if (result < 0)
    {
        perror(what);
        exit(1);
    }
}

static void open_segment(stream *at, int64_t position)
{
    char path[4096];
    if (at->fd > 0)
    {
        close(at->fd);
    }
    snprintf(path, sizeof(path), "%s/%d-%lld.rec", folder, (int)(at - streams), (long long)position);
    at->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    need(at->fd, path);
    need(ftruncate(at->fd, SEGMENT), path);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* What one of the two threads does with a block. */
typedef void (*move_block)(stream *at, int64_t position, int64_t length);

static void copy_in(stream *at, int64_t position, int64_t length) { memcpy(at->log + position % (3 * term), block, (size_t)length); }

static void write_out(stream *at, int64_t position, int64_t length)
{
    if (0 == position % SEGMENT)
    {
        open_segment(at, position);
    }
    need(pwrite(at->fd, at->log + position % (3 * term), (size_t)length, position % SEGMENT) - length, "pwrite");
}

static void read_in(stream *at, int64_t position, int64_t length)
{
    if (0 == position % SEGMENT)
    {
        open_segment(at, position);
    }
    need(pread(at->fd, at->log + position % (3 * term), (size_t)length, position % SEGMENT) - length, "pread");
}

static void look(stream *at, int64_t position, int64_t length)
{
    for (int64_t i = 0; i < length; i += message)
    {
        (void)*(volatile const uint8_t *)(at->log + (position + i) % (3 * term));
    }
}

static void copy_out(stream *at, int64_t position, int64_t length) { memcpy(taken, at->log + position % (3 * term), (size_t)length); }

typedef struct side
{
    role role;
    move_block move;
    int64_t largest;
} side;

static void zero(stream *at, int64_t position, int64_t length) { memset(at->log + position % (3 * term), 0, (size_t)length); }

static int64_t reached(stream *at, role by) { return atomic_load_explicit(&at->of[by].position, memory_order_acquire); }

static int64_t limit_of(stream *at, role by)
{
    if (PUBLISHER != by)
    {
        return reached(at, SUBSCRIBER == by ? PUBLISHER : SUBSCRIBER);
    }
    /* A publisher may be half a term ahead of a subscriber, and two terms of what is clean. */
    return least(bytes_each, least(reached(at, SUBSCRIBER) + term / 2, reached(at, CLEANER) + 2 * term));
}

static int64_t step(stream *at, const side *by)
{
    const int64_t position = reached(at, by->role);
    const int64_t length = least(least(limit_of(at, by->role) - position, term - position % term), by->largest);
    if (length > 0)
    {
        by->move(at, position, length);
        atomic_store_explicit(&at->of[by->role].position, position + length, memory_order_release);
    }
    return length;
}

/* A driver sleeps where there is nothing to clean. */
static void wait_for_others(role by)
{
    const struct timespec nap = { .tv_nsec = 100000 };
    CLEANER == by ? (void)nanosleep(&nap, NULL) : (void)sched_yield();
}

static void run(const side *by)
{
    for (int64_t left = bytes_each * stream_count; left > 0;)
    {
        int64_t moved = 0;
        for (int64_t i = 0; i < stream_count; i++)
        {
            moved += step(&streams[i], by);
        }
        left -= moved;
        if (0 == moved)
        {
            wait_for_others(by->role);
        }
    }
}

static void *run_other(void *by)
{
    run(by);
    return NULL;
}

static pthread_t start(side *by)
{
    pthread_t thread;
    need(-pthread_create(&thread, NULL, run_other, by), "pthread_create");
    return thread;
}

/* Segments full of messages, and no file open. */
static void make_segments(void)
{
    for (int64_t i = 0; i < stream_count; i++)
    {
        for (int64_t position = 0; position < bytes_each; position += LARGEST)
        {
            write_out(&streams[i], position, LARGEST);
        }
        close(streams[i].fd);
        streams[i].fd = 0;
    }
}

static int usage(void)
{
    fprintf(stderr, "log_limit record|replay FOLDER BYTES [STREAMS, at most %d], or log_limit stream LENGTH BYTES\n", STREAMS_MAX);
    return 1;
}

int main(int count, char **arguments)
{
    if (count < 4)
    {
        return usage();
    }
    const bool is_replay = 0 == strcmp(arguments[1], "replay");
    const bool is_stream = 0 == strcmp(arguments[1], "stream");
    side copies = { PUBLISHER, copy_in, BLOCK };
    side takes = { SUBSCRIBER, write_out, LARGEST };
    side cleans = { CLEANER, zero, BLOCK };
    if (is_replay)
    {
        copies.move = read_in;
        copies.largest = LARGEST;
        takes.move = look;
    }
    if (is_stream)
    {
        term = STREAM_TERM;
        message = (atoll(arguments[2]) + HEADER + 31) / 32 * 32;
        copies.largest = least(message, LARGEST);
        takes.move = message > FRAME ? copy_out : look;
    }
    folder = arguments[2];
    stream_count = count > 4 ? atoll(arguments[4]) : 1;
    bytes_each = stream_count > 0 ? atoll(arguments[3]) / stream_count / LARGEST * LARGEST : 0;
    if (stream_count > STREAMS_MAX || bytes_each <= 0 || message < 1)
    {
        return usage();
    }
    for (int64_t i = 0; i < stream_count; i++)
    {
        streams[i].log = aligned_alloc(4096, (size_t)(3 * term));
        if (NULL == streams[i].log)
        {
            perror("log");
            return 1;
        }
        memset(streams[i].log, 1, (size_t)(3 * term)); /* its pages are there before the clock runs */
        streams[i].of[CLEANER].position = is_stream ? 0 : bytes_each;
    }
    if (is_replay)
    {
        make_segments();
    }
    const double begin = seconds(CLOCK_MONOTONIC);
    const double begin_core = seconds(CLOCK_THREAD_CPUTIME_ID);
    const pthread_t other = start(is_replay ? &takes : &copies);
    const pthread_t cleaner = is_stream ? start(&cleans) : other;
    run(is_replay ? &copies : &takes);
    const double core = seconds(CLOCK_THREAD_CPUTIME_ID) - begin_core;
    pthread_join(other, NULL);
    is_stream ? pthread_join(cleaner, NULL) : 0;
    const double bytes = (double)(bytes_each * stream_count);
    const double took = seconds(CLOCK_MONOTONIC) - begin;
    printf("{\"bytes_per_second\": %.1f, \"core_seconds_per_gb\": %.4f, \"messages_per_second\": %.1f}\n", bytes / took,
        core / (bytes / 1e9), bytes / (double)message / took);
    return 0;
}
