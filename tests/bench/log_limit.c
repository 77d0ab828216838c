/* What an archive can reach on this machine: two threads and a log buffer of three terms, between which bytes go that nobody frames,
 * checks or counts. The archive's bench rows are held against it. Prints one JSON line.
 *
 *   archive_limit record FOLDER BYTES [STREAMS 1]  one thread copies blocks into the log, another writes them to segment files
 *   archive_limit replay FOLDER BYTES [STREAMS 1]  one thread reads such files into the log, another a word of each message there
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

#define TERM ((int64_t)16 << 20)
#define LOG (3 * TERM)
#define WINDOW (TERM / 2) /* as far as a publisher may be ahead of a subscriber */
#define SEGMENT ((int64_t)128 << 20)
#define LARGEST ((int64_t)1 << 20)
#define BLOCK ((int64_t)128 << 10)
#define MESSAGE 1088
#define STREAMS_MAX 64

typedef struct stream
{
    uint8_t *log;
    _Alignas(128) _Atomic int64_t published;
    _Alignas(128) _Atomic int64_t consumed;
    int fd;
    bool fails;
} stream;

static stream streams[STREAMS_MAX];
static int64_t stream_count = 1;
static int64_t bytes_each;
static uint8_t block[BLOCK];
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

/* What a side does with a block. */
typedef void (*move_block)(stream *at, int64_t position, int64_t length);

static void copy_in(stream *at, int64_t position, int64_t length) { memcpy(at->log + position % LOG, block, (size_t)length); }

static void write_out(stream *at, int64_t position, int64_t length)
{
    if (0 == position % SEGMENT)
    {
        open_segment(at, position);
    }
    need(pwrite(at->fd, at->log + position % LOG, (size_t)length, position % SEGMENT) - length, "pwrite");
}

static void read_in(stream *at, int64_t position, int64_t length)
{
    if (0 == position % SEGMENT)
    {
        open_segment(at, position);
    }
    need(pread(at->fd, at->log + position % LOG, (size_t)length, position % SEGMENT) - length, "pread");
}

static void look(stream *at, int64_t position, int64_t length)
{
    for (int64_t i = 0; i < length; i += MESSAGE)
    {
        at->fails |= 0 == *(volatile const uint8_t *)(at->log + (position + i) % LOG);
    }
}

typedef struct side
{
    move_block move;
    int64_t largest;
} side;

static int64_t step(stream *at, const side *by, bool publishes)
{
    _Atomic int64_t *own = publishes ? &at->published : &at->consumed;
    const int64_t position = atomic_load_explicit(own, memory_order_relaxed);
    const int64_t limit = publishes ? least(bytes_each, atomic_load_explicit(&at->consumed, memory_order_acquire) + WINDOW) :
        atomic_load_explicit(&at->published, memory_order_acquire);
    const int64_t length = least(least(limit - position, TERM - position % TERM), by->largest);
    if (length > 0)
    {
        by->move(at, position, length);
        atomic_store_explicit(own, position + length, memory_order_release);
    }
    return length;
}

static void run(const side *by, bool publishes)
{
    for (int64_t left = bytes_each * stream_count; left > 0;)
    {
        int64_t moved = 0;
        for (int64_t i = 0; i < stream_count; i++)
        {
            moved += step(&streams[i], by, publishes);
        }
        left -= moved;
        if (0 == moved)
        {
            sched_yield();
        }
    }
}

typedef struct other_thread
{
    const side *by;
    bool publishes;
} other_thread;

static void *run_other(void *context)
{
    const other_thread *at = context;
    run(at->by, at->publishes);
    return NULL;
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

int main(int count, char **arguments)
{
    const bool is_replay = count > 1 && 0 == strcmp(arguments[1], "replay");
    stream_count = count > 4 ? atoll(arguments[4]) : 1;
    bytes_each = count > 3 && stream_count > 0 ? atoll(arguments[3]) / stream_count / LARGEST * LARGEST : 0;
    if (count < 4 || stream_count > STREAMS_MAX || bytes_each <= 0)
    {
        fprintf(stderr, "archive_limit record|replay FOLDER BYTES [STREAMS, at most %d]\n", STREAMS_MAX);
        return 1;
    }
    folder = arguments[2];
    for (int64_t i = 0; i < stream_count; i++)
    {
        streams[i].log = aligned_alloc(4096, LOG);
        if (NULL == streams[i].log)
        {
            perror("log");
            return 1;
        }
        memset(streams[i].log, 1, LOG); /* its pages are there before the clock runs */
    }
    static const side COPIES = { copy_in, BLOCK };
    static const side WRITES = { write_out, LARGEST };
    static const side READS = { read_in, LARGEST };
    static const side LOOKS = { look, LARGEST };
    if (is_replay)
    {
        make_segments();
    }
    other_thread beside = { .by = is_replay ? &LOOKS : &COPIES, .publishes = !is_replay };
    pthread_t other;
    const double begin = seconds(CLOCK_MONOTONIC);
    const double begin_core = seconds(CLOCK_THREAD_CPUTIME_ID);
    need(-pthread_create(&other, NULL, run_other, &beside), "pthread_create");
    run(is_replay ? &READS : &WRITES, is_replay);
    const double core = seconds(CLOCK_THREAD_CPUTIME_ID) - begin_core;
    pthread_join(other, NULL);
    const double bytes = (double)(bytes_each * stream_count);
    printf("{\"bytes_per_second\": %.1f, \"core_seconds_per_gb\": %.4f}\n", bytes / (seconds(CLOCK_MONOTONIC) - begin),
        core / (bytes / 1e9));
    return 0;
}
