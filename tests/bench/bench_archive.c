/* Load on an archive over our client, whosever archive and driver serve the directory. Prints one JSON line.
 *
 *   bench_archive record --dir D --channel C --stream S --streams N --length L --messages M --warmup W --pid P
 *   bench_archive replay --dir D --channel C --stream S --streams N --length L --messages M
 *   bench_archive stall  --dir D --channel C --stream S --length L --file F
 *   bench_archive catalog --dir D --messages M
 *
 * record  publishes W + M messages of L bytes on each of N streams, S and up, which somebody asked the archive to record. The
 * time runs
 *         from the end of the warm-up until the archive's counters tell that all is recorded. With --pid the process's use of
 *         cores in that time is told, too.
 * replay  prints READY once it is subscribed to N streams, to each of which somebody then has the archive replay M messages
 * that
 *         `record` published. The time runs from the first message to the last; each must be the next of its stream.
 * stall   publishes 16 messages at a time and waits until they are recorded; after half a second prints READY, then goes on
 * until
 *         0.1 s after file F has gone. Tells the longest time that a turn took before and since.
 * catalog lists all M recordings, then looks 20 times for the first, by the fragment "alias=0|" of its channel, stream 1 and
 * session 1.
 *
 * One thread and one client: it offers blocks of messages, polls, or gives up its core. */
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "aeron_spark/as_archive.h"

#define TIMEOUT_NS 60000000000LL
#define STREAMS_MAX 64
#define BLOCK_BYTES (128 * 1024) /* of one stream at a time, so that none starves */
#define MESSAGE_MAX (64 * 1024)
#define HEADER_LENGTH 32
#define FRAME_ALIGNMENT 32
#define FLAG_BEGIN 0x80
#define FLAG_END 0x40
#define TYPE_DATA 1
#define STALL_MESSAGES 16
#define STALL_WARMUP_NS 500000000
#define STALL_REST_NS 100000000
#define POLL_FRAGMENTS 1000
#define SEARCHES 20

typedef struct stream
{
    as_publication *publication;
    as_subscription *subscription;
    as_publication_constants constants;
    int64_t number; /* of the next message */
    int32_t counter_id;
} stream;

static const char *dir;
static const char *channel = "aeron:ipc";
static const char *file = "";
static int64_t stream_id = 1001;
static int64_t stream_count = 1;
static int64_t message_length = 1024;
static int64_t message_count = 1;
static int64_t warmup_count = 1;
static int64_t pid;
static stream streams[STREAMS_MAX];
static as_client *client;
static uint8_t block[BLOCK_BYTES + 2 * MESSAGE_MAX];
static int64_t first_ns;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_archive: %s: %s\n", what, as_error_text());
    exit(1);
}

/* Gives up the core, for a minute at most. */
static void rest(int64_t since_ns, const char *waiting_for)
{
    if (now_ns() - since_ns > TIMEOUT_NS)
    {
        fprintf(stderr, "bench_archive: a minute has gone by, waiting for %s\n", waiting_for);
        exit(1);
    }
    sched_yield();
}

/* Nanoseconds of core that this process has used. */
static int64_t own_core_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* The same of the process with --pid. */
static int64_t core_ns(void)
{
    char path[320];
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/task", pid);
    DIR *tasks = 0 == pid ? NULL : opendir(path);
    int64_t sum = 0;
    const struct dirent *task;
    while (NULL != tasks && NULL != (task = readdir(tasks)))
    {
        snprintf(path, sizeof(path), "/proc/%" PRId64 "/task/%.20s/schedstat", pid, task->d_name);
        FILE *times = '.' == task->d_name[0] ? NULL : fopen(path, "re");
        int64_t used = 0;
        if (NULL != times && 1 == fscanf(times, "%" SCNd64, &used))
        {
            sum += used;
        }
        if (NULL != times)
        {
            fclose(times);
        }
    }
    if (NULL != tasks)
    {
        closedir(tasks);
    }
    return sum;
}

/* -- recording ------------------------------------------------------------------------------------------------------------ */

static int64_t recorded(const stream *at)
{
    as_counter_row row;
    return AS_OK == as_client_counter(client, at->counter_id, &row) ? row.value : AS_NULL_VALUE;
}

static void begin_stream(stream *at, int64_t index)
{
    if (AS_OK != as_client_add_exclusive_publication(client, channel, (int32_t)(stream_id + index), &at->publication))
    {
        fail("cannot publish");
    }
    as_publication_get_constants(at->publication, &at->constants);
    const int64_t since_ns = now_ns();
    while (AS_NULL_VALUE == (at->counter_id =
                                    as_recording_position_find_by_session(client, at->constants.session_id, AS_NULL_VALUE)) ||
        !as_publication_is_connected(at->publication))
    {
        rest(since_ns, "a recording");
    }
}

typedef struct frame
{
    int32_t frame_length;
    uint8_t version;
    uint8_t flags;
    uint16_t type;
    int32_t term_offset;
    int32_t session_id;
    int32_t stream_id;
    int32_t term_id;
    int64_t reserved_value;
    int64_t number;
} frame;

/* Frames of the stream's next message; what it fills of the term. Nothing but headers and number is written: the load must cost less
 * than recording it does. */
static int64_t put_message(const stream *at, uint8_t *to, int64_t term_offset, int32_t term_id)
{
    const int64_t max_payload = at->constants.max_payload_length;
    int64_t filled = 0;
    for (int64_t done = 0; done < message_length; done += max_payload)
    {
        const int64_t payload = message_length - done < max_payload ? message_length - done : max_payload;
        const int flags = (0 == done ? FLAG_BEGIN : 0) | (done + payload == message_length ? FLAG_END : 0);
        const frame header = { .frame_length = (int32_t)(HEADER_LENGTH + payload), .flags = (uint8_t)flags, .type = TYPE_DATA,
            .term_offset = (int32_t)(term_offset + filled), .session_id = at->constants.session_id,
            .stream_id = at->constants.stream_id, .term_id = term_id, .number = at->number };
        memcpy(to + filled, &header, 0 == done ? sizeof(header) : HEADER_LENGTH);
        filled += (HEADER_LENGTH + payload + FRAME_ALIGNMENT - 1) / FRAME_ALIGNMENT * FRAME_ALIGNMENT;
    }
    return filled;
}

/* Offers a block of messages, `count` at most, or what is left of a term that the next one does not fit. How many were taken. */
static int64_t offer(stream *at, int64_t count)
{
    const int64_t term_length = at->constants.term_length;
    const int64_t position = as_publication_position(at->publication);
    const int64_t room = term_length - position % term_length;
    const int32_t term_id = (int32_t)(at->constants.initial_term_id + position / term_length);
    const int64_t first_number = at->number;
    int64_t length = 0;
    while (at->number - first_number < count)
    {
        const int64_t end = length + put_message(at, block + length, position % term_length + length, term_id);
        if (end > room || end > BLOCK_BYTES)
        {
            break;
        }
        length = end;
        at->number++;
    }
    const int64_t taken = 0 == length ? as_publication_append_padding(at->publication, room - HEADER_LENGTH) :
        as_publication_offer_block(at->publication, block, length);
    if (taken < 0)
    {
        if (AS_BACK_PRESSURED != taken && AS_ADMIN_ACTION != taken)
        {
            fprintf(stderr, "bench_archive: messages were refused with %" PRId64 ": %s\n", taken, as_error_text());
            exit(1);
        }
        at->number = first_number;
    }
    return at->number - first_number;
}

static void publish(int64_t until_number)
{
    int64_t since_ns = now_ns();
    for (int64_t left = stream_count; left > 0;)
    {
        int64_t taken = 0;
        left = 0;
        for (int64_t i = 0; i < stream_count; i++)
        {
            taken += streams[i].number < until_number ? offer(&streams[i], until_number - streams[i].number) : 0;
            left += streams[i].number < until_number;
        }
        if (0 == taken)
        {
            rest(since_ns, "room to publish");
        }
        else
        {
            since_ns = now_ns();
        }
    }
    for (int64_t i = 0; i < stream_count; i++)
    {
        while (recorded(&streams[i]) < as_publication_position(streams[i].publication))
        {
            rest(since_ns, "the end of a recording");
        }
    }
}

static void record(void)
{
    for (int64_t i = 0; i < stream_count; i++)
    {
        begin_stream(&streams[i], i);
    }
    publish(warmup_count);
    const int64_t begin_ns = now_ns();
    const int64_t begin_core_ns = core_ns();
    const int64_t begin_own_ns = own_core_ns();
    publish(warmup_count + message_count);
    const double seconds = (double)(now_ns() - begin_ns) / 1e9;
    printf("{\"bytes_per_second\": %.1f, \"core_seconds\": %.6f, \"own_core_seconds\": %.6f}\n",
        (double)(stream_count * message_count * message_length) / seconds, (double)(core_ns() - begin_core_ns) / 1e9,
        (double)(own_core_ns() - begin_own_ns) / 1e9);
}

/* -- replaying ------------------------------------------------------------------------------------------------------------ */

static void on_fragment(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)header;
    stream *at = context;
    int64_t number;
    memcpy(&number, data, sizeof(number));
    if (number != at->number || length != message_length)
    {
        fprintf(stderr, "bench_archive: message %" PRId64 " of %" PRId64 " bytes came where %" PRId64 " was due\n", number, length,
            at->number);
        exit(1);
    }
    at->number++;
}

static void replay(void)
{
    for (int64_t i = 0; i < stream_count; i++)
    {
        if (AS_OK != as_client_add_subscription(client, channel, (int32_t)(stream_id + i), &streams[i].subscription))
        {
            fail("cannot subscribe");
        }
    }
    printf("READY\n");
    fflush(stdout);
    int64_t since_ns = now_ns();
    for (int64_t left = stream_count; left > 0;)
    {
        int64_t fragments = 0;
        left = 0;
        for (int64_t i = 0; i < stream_count; i++)
        {
            const int64_t polled = as_subscription_poll(streams[i].subscription, on_fragment, &streams[i], POLL_FRAGMENTS);
            if (polled < 0)
            {
                fail("cannot poll");
            }
            fragments += polled;
            left += streams[i].number < message_count;
        }
        if (0 == fragments)
        {
            rest(since_ns, "replayed messages");
            continue;
        }
        since_ns = now_ns();
        first_ns = 0 == first_ns ? since_ns : first_ns;
    }
    const double seconds = (double)(now_ns() - first_ns) / 1e9;
    printf("{\"bytes_per_second\": %.1f}\n", (double)(stream_count * message_count * message_length) / seconds);
}

/* -- stalls --------------------------------------------------------------------------------------------------------------- */

/* Turns until 0.1 s after `is_over` first says so; the longest one's time. */
static int64_t longest_turn_ns(bool (*is_over)(int64_t begin_ns))
{
    int64_t longest_ns = 0;
    int64_t end_ns = 0;
    const int64_t begin_ns = now_ns();
    for (int64_t now = begin_ns; 0 == end_ns || now < end_ns;)
    {
        const int64_t turn_ns = now;
        publish(streams[0].number + STALL_MESSAGES);
        now = now_ns();
        longest_ns = now - turn_ns > longest_ns ? now - turn_ns : longest_ns;
        if (0 == end_ns && is_over(begin_ns))
        {
            end_ns = now + STALL_REST_NS;
        }
    }
    return longest_ns;
}

static bool has_run_warm(int64_t begin_ns) { return now_ns() - begin_ns > STALL_WARMUP_NS; }

static bool is_file_gone(int64_t begin_ns)
{
    if (now_ns() - begin_ns > TIMEOUT_NS)
    {
        fprintf(stderr, "bench_archive: %s is still there after a minute\n", file);
        exit(1);
    }
    return 0 != access(file, F_OK);
}

static void stall(void)
{
    begin_stream(&streams[0], 0);
    const int64_t before_ns = longest_turn_ns(has_run_warm);
    printf("READY\n");
    fflush(stdout);
    const int64_t longest_ns = longest_turn_ns(is_file_gone);
    printf("{\"longest_ns\": %" PRId64 ", \"longest_before_ns\": %" PRId64 "}\n", longest_ns, before_ns);
}

/* -- catalogs ------------------------------------------------------------------------------------------------------------- */

static bool on_recording(void *context, const as_recording *recording)
{
    int64_t *next_id = context;
    if (recording->recording_id != *next_id)
    {
        fprintf(stderr, "bench_archive: recording %" PRId64 " came where %" PRId64 " was due\n", recording->recording_id, *next_id);
        exit(1);
    }
    ++*next_id;
    return true;
}

static void catalog(void)
{
    as_archive_client_options options;
    as_archive_client_options_init(&options);
    options.client = client;
    options.message_timeout_ns = TIMEOUT_NS;
    as_archive_client *archive;
    if (AS_OK != as_archive_client_open(&options, &archive))
    {
        fail("no archive");
    }
    int64_t next_id = 0;
    int32_t listed = 0;
    int64_t begin_ns = now_ns();
    if (AS_OK != as_archive_client_list_recordings(archive, 0, (int32_t)message_count, on_recording, &next_id, &listed) ||
        listed != message_count)
    {
        fail("cannot list");
    }
    const double list_seconds = (double)(now_ns() - begin_ns) / 1e9;
    begin_ns = now_ns();
    for (int i = 0; i < SEARCHES; i++)
    {
        int64_t found = AS_NULL_VALUE;
        if (AS_OK != as_archive_client_find_last_matching(archive, 0, "alias=0|", 1, 1, &found) || 0 != found)
        {
            fail("cannot find");
        }
    }
    printf("{\"list_seconds\": %.6f, \"find_seconds\": %.6f}\n", list_seconds,
        (double)(now_ns() - begin_ns) / 1e9 / SEARCHES);
    as_archive_client_close(archive);
}

static void parse(int argc, char **argv)
{
    const struct { const char *name; const char **text; int64_t *number; } OPTIONS[] = {
        { "--dir", &dir, NULL },
        { "--channel", &channel, NULL },
        { "--file", &file, NULL },
        { "--stream", NULL, &stream_id },
        { "--streams", NULL, &stream_count },
        { "--length", NULL, &message_length },
        { "--messages", NULL, &message_count },
        { "--warmup", NULL, &warmup_count },
        { "--pid", NULL, &pid },
    };
    const size_t known = sizeof(OPTIONS) / sizeof(OPTIONS[0]);
    for (int i = 2; i < argc; i += 2)
    {
        size_t at = 0;
        while (at < known && 0 != strcmp(argv[i], OPTIONS[at].name))
        {
            at++;
        }
        if (at == known || i + 1 == argc)
        {
            fprintf(stderr, "bench_archive: option %s is unknown or has no value\n", argv[i]);
            exit(2);
        }
        if (NULL != OPTIONS[at].text)
        {
            *OPTIONS[at].text = argv[i + 1];
        }
        else
        {
            *OPTIONS[at].number = strtoll(argv[i + 1], NULL, 10);
        }
    }
    if (argc < 2 || NULL == dir || message_length < 8 || message_length > MESSAGE_MAX || stream_count < 1 || stream_count > STREAMS_MAX)
    {
        fprintf(stderr, "bench_archive: a mode and --dir are needed, 8 to %d bytes of length, 1 to %d streams\n", MESSAGE_MAX,
            STREAMS_MAX);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = dir;
    if (AS_OK != as_client_open(&options, &client))
    {
        fail("cannot connect");
    }
    if (0 == strcmp(argv[1], "record"))
    {
        record();
    }
    else if (0 == strcmp(argv[1], "replay"))
    {
        replay();
    }
    else if (0 == strcmp(argv[1], "stall"))
    {
        stall();
    }
    else if (0 == strcmp(argv[1], "catalog"))
    {
        catalog();
    }
    else
    {
        fprintf(stderr, "bench_archive: mode %s is none of record, replay, stall, catalog\n", argv[1]);
        return 2;
    }
    as_client_close(client);
    return 0;
}
