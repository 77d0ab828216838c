/* Load over our client, on whatever driver serves a directory. Prints one JSON line.
 *
 *   bench_load MODE --dir D [--channel aeron:ipc] [--stream 1001] [--length 32] [--messages 1000000] [--seconds 0]
 *              [--warmup 0] [--batch 256] [--verify 0] [--sub-channel C] [--idle-streams 0]
 *              [--idle-channel C] [--drain 1]
 *
 * pub     offers warmup + messages messages on an exclusive publication, waiting for a subscriber; then closes it.
 * sub     receives them; prints READY once it is subscribed; the time runs from the end of the warm-up to the last message.
 * stream  both, each on a thread and with a client of its own.
 * solo    both on one thread and one client, which spins, in turns: one core is the client's, the other the driver's.
 * rtt     one thread and one client, which spins: sends on the stream, echoes to stream + 1, waits there.
 * paced   one thread and one client: a message each 10 ms on each of --idle-streams streams, for --seconds; reads them all.
 *
 * The subscription is on --sub-channel where that is given: another way to the same stream, as through a relay. --seconds ends
 * the measuring by time instead of by count; what was sent until then is still read, unless --drain 0. --idle-streams adds
 * that many idle streams, connected, from stream + 2 on. Every message begins with its number, which the receiver checks;
 * --verify 1 fills and checks all of it, as tests/interop/stock_c/src/load.rs does, the same program over the stock client. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aeron_spark/as_client.h"

#define TIMEOUT_NS 60000000000LL
#define GOLDEN 0x9E3779B97F4A7C15ULL
/* Offers of one turn of solo: some datagrams, so that neither side of the stream starves. */
#define SOLO_TURN_BYTES (128 * 1024)

#define IDLE_AT_ONCE 50
#define MAX_PACED 1000
#define PACE_NS 10000000

typedef struct load
{
    const char *mode;
    const char *dir;
    const char *channel;
    const char *sub_channel;
    const char *idle_channel;
    double seconds;
    int64_t stream_id;
    int64_t length;
    int64_t messages;
    int64_t warmup;
    int64_t batch;
    int64_t verify;
    int64_t idle_streams;
    int64_t drain;
    /* Publisher's. */
    int64_t retries;
    uint64_t sent_checksum;
    uint8_t *message;
    int64_t refused_since_ns;
    bool was_connected;
    /* Subscriber's. */
    int64_t received;
    uint64_t checksum;
    int64_t begin_ns;
    int64_t end_ns;
    int64_t measured;
} load;

static atomic_bool measured_enough;
static atomic_bool drained;
/* What the publisher of the same process sent, once it has ended. */
static _Atomic int64_t sent_in_all = INT64_MAX;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_load: %s: %s\n", what, as_error_text());
    exit(1);
}

static as_client *connect_client(const load *run)
{
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = run->dir;
    as_client *client;
    if (AS_OK != as_client_open(&options, &client))
    {
        fail("cannot connect");
    }
    return client;
}

static as_publication *add_publication(as_client *client, const char *channel, int64_t stream_id)
{
    as_publication *publication;
    if (AS_OK != as_client_add_exclusive_publication(client, channel, (int32_t)stream_id, &publication))
    {
        fail("cannot publish");
    }
    return publication;
}

static as_subscription *add_subscription(as_client *client, const char *channel, int64_t stream_id)
{
    as_subscription *subscription;
    if (AS_OK != as_client_add_subscription(client, channel, (int32_t)stream_id, &subscription))
    {
        fail("cannot subscribe");
    }
    return subscription;
}

static void fill(load *run, int64_t number)
{
    memcpy(run->message, &number, sizeof(number));
    if (run->verify)
    {
        run->sent_checksum += (uint64_t)number;
        for (int64_t j = 1; j < run->length / 8; j++)
        {
            const uint64_t word = (uint64_t)number * GOLDEN + (uint64_t)j;
            memcpy(run->message + 8 * j, &word, sizeof(word));
            run->sent_checksum += word;
        }
    }
}

/* One try. False: not taken now; ends the program where it never will be. */
static bool try_offer(load *run, as_publication *publication)
{
    const int64_t position = as_publication_offer(publication, run->message, run->length);
    if (position >= 0)
    {
        run->was_connected = true;
        run->refused_since_ns = 0;
        return true;
    }
    run->retries++;
    if (AS_BACK_PRESSURED != position && AS_ADMIN_ACTION != position && AS_NOT_CONNECTED != position)
    {
        fprintf(stderr, "bench_load: a message was refused with %" PRId64 "\n", position);
        exit(1);
    }
    if (run->seconds > 0 && AS_NOT_CONNECTED == position && run->was_connected)
    {
        measured_enough = true;
    }
    if (0 == (run->retries & 0xFFF))
    {
        const int64_t now = now_ns();
        run->refused_since_ns = 0 == run->refused_since_ns ? now : run->refused_since_ns;
        if (now - run->refused_since_ns > TIMEOUT_NS)
        {
            fprintf(stderr, "bench_load: a message was refused for a minute, at last with %" PRId64 "\n", position);
            exit(1);
        }
    }
    return false;
}

static bool must_send(const load *run, int64_t sent)
{
    return run->seconds > 0 ? !atomic_load_explicit(&measured_enough, memory_order_relaxed)
                            : sent < run->messages + run->warmup;
}

static void *publish(void *context)
{
    load *run = context;
    as_client *client = connect_client(run);
    as_publication *publication = add_publication(client, run->channel, run->stream_id);
    int64_t sent = 0;
    while (must_send(run, sent))
    {
        fill(run, sent);
        bool taken;
        while (!(taken = try_offer(run, publication)) && must_send(run, sent))
        {
            sched_yield();
        }
        sent += taken;
    }
    sent_in_all = sent;
    /* A stream that is being read stays open until it is read. */
    while (0 == strcmp(run->mode, "stream") && !drained)
    {
        sched_yield();
    }
    as_publication_close(publication);
    as_client_close(client);
    run->measured = sent;
    return NULL;
}

static void verify(load *run, const uint8_t *data, int64_t number)
{
    run->checksum += (uint64_t)number;
    for (int64_t j = 1; j < run->length / 8; j++)
    {
        uint64_t word;
        memcpy(&word, data + 8 * j, sizeof(word));
        if (word != (uint64_t)number * GOLDEN + (uint64_t)j)
        {
            fprintf(stderr, "bench_load: message %" PRId64 " is damaged at byte %" PRId64 "\n", number, 8 * j);
            exit(1);
        }
        run->checksum += word;
    }
}

static void on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)header;
    load *run = context;
    int64_t number;
    memcpy(&number, data, sizeof(number));
    if (number != run->received || length != run->length)
    {
        fprintf(stderr, "bench_load: message %" PRId64 " of %" PRId64 " bytes came where %" PRId64 " was due\n", number,
            length, run->received);
        exit(1);
    }
    if (run->verify)
    {
        verify(run, data, number);
    }
    if (++run->received == run->warmup)
    {
        run->begin_ns = now_ns();
    }
}

/* True once the measuring is over and what was sent beside it is read. */
static bool is_read(load *run, bool with_publisher)
{
    const bool enough = run->seconds > 0 ? run->received >= run->warmup && now_ns() - run->begin_ns >= run->seconds * 1e9
                                         : run->received >= run->messages + run->warmup;
    if (enough && 0 == run->end_ns)
    {
        run->end_ns = now_ns();
        run->measured = run->received - run->warmup;
        measured_enough = true;
    }
    /* The rest is read, or the next run on the stream would begin with it. */
    return enough && (!with_publisher || !run->drain || run->received >= sent_in_all);
}

/* `publication` is NULL where another thread or process publishes. */
static void subscribe(load *run, as_subscription *subscription, as_publication *publication)
{
    as_fragment_assembler *assembler;
    if (AS_OK != as_fragment_assembler_open(on_message, run, &assembler))
    {
        fail("cannot assemble");
    }
    int64_t quiet_since_ns = 0;
    int64_t sent = 0;
    const int64_t turn = 1 + SOLO_TURN_BYTES / run->length;
    run->begin_ns = now_ns();
    while (!is_read(run, 0 != strcmp(run->mode, "sub")))
    {
        for (int64_t i = 0; NULL != publication && i < turn; i++)
        {
            if (!must_send(run, sent))
            {
                sent_in_all = sent;
                break;
            }
            fill(run, sent);
            if (!try_offer(run, publication))
            {
                break;
            }
            sent++;
        }
        const int64_t fragments =
            as_subscription_poll(subscription, as_fragment_assembler_on_fragment, assembler, run->batch);
        if (fragments < 0)
        {
            fail("cannot poll");
        }
        if (fragments > 0)
        {
            quiet_since_ns = 0;
            continue;
        }
        const int64_t now = now_ns();
        quiet_since_ns = 0 == quiet_since_ns ? now : quiet_since_ns;
        if (now - quiet_since_ns > TIMEOUT_NS)
        {
            fprintf(stderr, "bench_load: the stream went quiet after %" PRId64 " messages\n", run->received);
            exit(1);
        }
        if (NULL == publication)
        {
            sched_yield();
        }
    }
    as_fragment_assembler_close(assembler);
    drained = true;
    as_subscription_close(subscription);
}

static void need(as_result result, const char *what)
{
    if (AS_OK != result)
    {
        fail(what);
    }
}

static void await_subscription(as_client *client, int64_t id)
{
    as_subscription *added;
    as_result result;
    while (AS_AGAIN == (result = as_client_poll_subscription(client, id, &added)))
    {
        sched_yield();
    }
    need(result, "cannot subscribe to an idle stream");
}

static void await_publication(as_client *client, int64_t id)
{
    as_publication *added;
    as_result result;
    while (AS_AGAIN == (result = as_client_poll_publication(client, id, &added)))
    {
        sched_yield();
    }
    need(result, "cannot publish an idle stream");
    const int64_t deadline_ns = now_ns() + TIMEOUT_NS;
    while (!as_publication_is_connected(added))
    {
        if (now_ns() > deadline_ns)
        {
            fail("an idle stream did not connect");
        }
        sched_yield();
    }
}

/* Some at a time, so that the driver answers each before its client times out. */
static void add_idle_streams(const load *run, as_client *client)
{
    int64_t subscriptions[IDLE_AT_ONCE];
    int64_t publications[IDLE_AT_ONCE];
    for (int64_t done = 0; done < run->idle_streams; done += IDLE_AT_ONCE)
    {
        const int64_t left = run->idle_streams - done;
        const int64_t count = left < IDLE_AT_ONCE ? left : IDLE_AT_ONCE;
        for (int64_t i = 0; i < count; i++)
        {
            const int32_t stream_id = (int32_t)(run->stream_id + 2 + done + i);
            need(as_client_async_add_subscription(client, run->idle_channel, stream_id, NULL, NULL, NULL, &subscriptions[i]),
                "cannot subscribe to an idle stream");
            need(as_client_async_add_exclusive_publication(client, run->idle_channel, stream_id, &publications[i]),
                "cannot publish an idle stream");
        }
        for (int64_t i = 0; i < count; i++)
        {
            await_subscription(client, subscriptions[i]);
            await_publication(client, publications[i]);
        }
    }
}

static void on_number(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)length;
    (void)header;
    memcpy(context, data, sizeof(int64_t));
}

/* Polls one fragment; true where it is message `number`. */
static bool arrives(as_subscription *subscription, int64_t *seen, int64_t number)
{
    if (as_subscription_poll(subscription, on_number, seen, 1) < 0)
    {
        fail("cannot poll");
    }
    return *seen == number;
}

static int by_size(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Sorted times as quantiles, and as counts below each power of two. */
static void print_times(const load *run, const int64_t *times)
{
    const int64_t count = run->messages;
    printf("{\"program\": \"bench_load\", \"mode\": \"rtt\", \"length\": %" PRId64 ", \"messages\": %" PRId64
           ", \"min_ns\": %" PRId64 ", \"p50_ns\": %" PRId64 ", \"p99_ns\": %" PRId64 ", \"p999_ns\": %" PRId64
           ", \"p9999_ns\": %" PRId64 ", \"max_ns\": %" PRId64,
        run->length, count, times[0], times[count / 2], times[count * 99 / 100], times[count * 999 / 1000],
        times[count * 9999 / 10000], times[count - 1]);
    int64_t below = 0;
    for (int64_t bound = 64; below < count; bound *= 2)
    {
        const int64_t before = below;
        while (below < count && times[below] < bound)
        {
            below++;
        }
        if (below > before)
        {
            printf(", \"below_%" PRId64 "_ns\": %" PRId64, bound, below - before);
        }
    }
    printf("}\n");
}

static void round_trips(load *run, as_client *client)
{
    as_subscription *near = add_subscription(client, run->channel, run->stream_id);
    as_subscription *far = add_subscription(client, run->channel, run->stream_id + 1);
    as_publication *ping = add_publication(client, run->channel, run->stream_id);
    as_publication *pong = add_publication(client, run->channel, run->stream_id + 1);
    int64_t *times = calloc((size_t)run->messages, sizeof(*times));
    int64_t echo = -1;
    int64_t answer = -1;
    int64_t end = now_ns();
    for (int64_t number = 0; number < run->messages + run->warmup; number++)
    {
        const int64_t begin = now_ns();
        fill(run, number);
        while (!try_offer(run, ping))
        {
        }
        for (uint32_t turns = 1; answer != number; turns++)
        {
            if (echo < number && arrives(near, &echo, number))
            {
                while (!try_offer(run, pong))
                {
                }
            }
            arrives(far, &answer, number);
            if (0 == (turns & 0xFFFFF) && now_ns() - end > TIMEOUT_NS)
            {
                fprintf(stderr, "bench_load: message %" PRId64 " did not come back\n", number);
                exit(1);
            }
        }
        end = now_ns();
        if (number >= run->warmup)
        {
            times[number - run->warmup] = end - begin;
        }
    }
    qsort(times, (size_t)run->messages, sizeof(*times), by_size);
    print_times(run, times);
    free(times);
}

static void on_any(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    (void)data;
    (void)length;
    (void)header;
    ++*(int64_t *)context;
}

typedef struct paced_streams
{
    as_publication *publications[MAX_PACED];
    as_subscription *subscriptions[MAX_PACED];
    int64_t received[MAX_PACED];
    int64_t sent;
    int64_t count;
} paced_streams;

/* A message on each stream, and what has come; then sleeps. What is not taken at once, and missed turns, are left out. */
static void pace(const load *run, paced_streams *streams)
{
    const int64_t until_ns = now_ns() + PACE_NS;
    for (int64_t i = 0; i < streams->count; i++)
    {
        streams->sent += as_publication_offer(streams->publications[i], run->message, run->length) >= 0;
        if (as_subscription_poll(streams->subscriptions[i], on_any, &streams->received[i], 10) < 0)
        {
            fail("cannot poll");
        }
    }
    const struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static int64_t total_received(const paced_streams *streams, int64_t *quiet)
{
    int64_t total = *quiet = 0;
    for (int64_t i = 0; i < streams->count; i++)
    {
        total += streams->received[i];
        *quiet += 0 == streams->received[i];
    }
    return total;
}

/* READY is printed, and the seconds begin, when each stream has brought a message. */
static void paced(const load *run, as_client *client)
{
    static paced_streams streams;
    streams.count = run->idle_streams;
    if (streams.count < 1 || streams.count > MAX_PACED)
    {
        fprintf(stderr, "bench_load: paced needs 1 to %d streams, by --idle-streams\n", MAX_PACED);
        exit(2);
    }
    for (int64_t i = 0; i < streams.count; i++)
    {
        streams.subscriptions[i] = add_subscription(client, run->channel, run->stream_id + i);
        streams.publications[i] = add_publication(client, run->channel, run->stream_id + i);
    }
    const int64_t latest = now_ns() + TIMEOUT_NS;
    for (int64_t quiet = streams.count; quiet > 0;)
    {
        pace(run, &streams);
        total_received(&streams, &quiet);
        if (now_ns() > latest)
        {
            fprintf(stderr, "bench_load: %" PRId64 " streams brought nothing for a minute\n", quiet);
            exit(1);
        }
    }
    const int64_t sent = streams.sent;
    int64_t quiet;
    const int64_t received = total_received(&streams, &quiet);
    printf("READY\n");
    fflush(stdout);
    for (const int64_t end = now_ns() + (int64_t)(run->seconds * 1e9); now_ns() < end;)
    {
        pace(run, &streams);
    }
    printf("{\"program\": \"bench_load\", \"mode\": \"paced\", \"streams\": %" PRId64 ", \"sent\": %" PRId64
           ", \"received\": %" PRId64 "}\n", streams.count, streams.sent - sent, total_received(&streams, &quiet) - received);
}

static void print_figures(const load *run)
{
    const double seconds = (double)(run->end_ns - run->begin_ns) / 1e9;
    printf("{\"program\": \"bench_load\", \"mode\": \"%s\", \"length\": %" PRId64 ", \"received\": %" PRId64
           ", \"messages\": %" PRId64 ", \"seconds\": %.6f, \"messages_per_second\": %.1f, \"bytes_per_second\": %.1f"
           ", \"checksum\": %" PRIu64 ", \"retries\": %" PRId64 "}\n",
        run->mode, run->length, run->received, run->measured, seconds, (double)run->measured / seconds,
        (double)run->measured * (double)run->length / seconds, run->checksum, run->retries);
}

static void parse(load *run, int argc, char **argv)
{
    const struct { const char *name; const char **text; int64_t *number; double *decimal; } OPTIONS[] = {
        { "--dir", &run->dir, NULL, NULL },
        { "--channel", &run->channel, NULL, NULL },
        { "--sub-channel", &run->sub_channel, NULL, NULL },
        { "--idle-channel", &run->idle_channel, NULL, NULL },
        { "--stream", NULL, &run->stream_id, NULL },
        { "--length", NULL, &run->length, NULL },
        { "--messages", NULL, &run->messages, NULL },
        { "--seconds", NULL, NULL, &run->seconds },
        { "--warmup", NULL, &run->warmup, NULL },
        { "--batch", NULL, &run->batch, NULL },
        { "--verify", NULL, &run->verify, NULL },
        { "--idle-streams", NULL, &run->idle_streams, NULL },
        { "--drain", NULL, &run->drain, NULL },
    };
    for (int i = 2; i < argc; i += 2)
    {
        size_t at = 0;
        while (at < sizeof(OPTIONS) / sizeof(OPTIONS[0]) && 0 != strcmp(argv[i], OPTIONS[at].name))
        {
            at++;
        }
        if (at == sizeof(OPTIONS) / sizeof(OPTIONS[0]) || i + 1 == argc)
        {
            fprintf(stderr, "bench_load: option %s is unknown or has no value\n", argv[i]);
            exit(2);
        }
        if (NULL != OPTIONS[at].text)
        {
            *OPTIONS[at].text = argv[i + 1];
        }
        else if (NULL != OPTIONS[at].number)
        {
            *OPTIONS[at].number = strtoll(argv[i + 1], NULL, 10);
        }
        else
        {
            *OPTIONS[at].decimal = strtod(argv[i + 1], NULL);
        }
    }
    if (argc < 2 || run->length < 8 || run->messages < 1 || run->warmup < 0 || run->batch < 1)
    {
        fprintf(stderr, "bench_load: a mode is needed; length must be at least 8, messages and batch at least 1\n");
        exit(2);
    }
    run->mode = argv[1];
}

static void run_stream(load *run, as_client *client)
{
    const char *channel = NULL == run->sub_channel ? run->channel : run->sub_channel;
    as_subscription *subscription = add_subscription(client, channel, run->stream_id);
    printf("READY\n");
    fflush(stdout);
    if (0 == strcmp(run->mode, "solo"))
    {
        subscribe(run, subscription, add_publication(client, run->channel, run->stream_id));
    }
    else if (0 == strcmp(run->mode, "sub"))
    {
        subscribe(run, subscription, NULL);
    }
    else
    {
        load publisher = *run;
        pthread_t thread;
        if (0 != pthread_create(&thread, NULL, publish, &publisher))
        {
            perror("bench_load: pthread_create");
            exit(1);
        }
        subscribe(run, subscription, NULL);
        pthread_join(thread, NULL);
        run->retries = publisher.retries;
    }
    print_figures(run);
}

int main(int argc, char **argv)
{
    load run = { .channel = "aeron:ipc", .idle_channel = "aeron:ipc", .stream_id = 1001, .length = 32, .messages = 1000000,
        .batch = 256, .drain = 1 };
    parse(&run, argc, argv);
    run.message = calloc(1, (size_t)run.length);
    if (0 == strcmp(run.mode, "pub"))
    {
        publish(&run);
        printf("{\"program\": \"bench_load\", \"mode\": \"pub\", \"length\": %" PRId64 ", \"messages\": %" PRId64
               ", \"checksum\": %" PRIu64 ", \"retries\": %" PRId64 "}\n",
            run.length, run.measured, run.sent_checksum, run.retries);
        free(run.message);
        return 0;
    }
    as_client *client = connect_client(&run);
    if (0 == strcmp(run.mode, "paced"))
    {
        paced(&run, client);
        as_client_close(client);
        free(run.message);
        return 0;
    }
    add_idle_streams(&run, client);
    if (0 == strcmp(run.mode, "rtt"))
    {
        round_trips(&run, client);
    }
    else if (0 == strcmp(run.mode, "stream") || 0 == strcmp(run.mode, "sub") || 0 == strcmp(run.mode, "solo"))
    {
        run_stream(&run, client);
    }
    else
    {
        fprintf(stderr, "bench_load: mode %s is none of pub, sub, stream, solo, rtt, paced\n", run.mode);
        return 2;
    }
    as_client_close(client);
    free(run.message);
    return 0;
}
