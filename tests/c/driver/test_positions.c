/* Goal: the limit of a publisher follows what its readers have consumed, and the bytes that it releases to a publisher are
 * zero before the publisher can see the limit. Method: publications laid out by hand over a log in memory, updated as the
 * conductor's cycle does; a page that calls the test while it is cleaned. Spec: 02 §7.2-7.3, §8, 04 §5.7. */
#include "driver/ctl/network_publications.h"

#include "term/append.h"
#include "term/log_fixture.h"
#include "trap.h"

#define WINDOW (TERM / 2)
#define PAGE 4096
#define SECOND 1000000000LL

typedef struct readers
{
    asi_ctl_subscription subscriptions[2];
    int64_t positions[2];
    asi_subscriber_position items[2];
} readers;

static asi_subscribers make_readers(readers *r, int32_t count)
{
    for (int i = 0; i < 2; i++)
    {
        r->positions[i] = 0;
        r->items[i] = (asi_subscriber_position){ .subscription = &r->subscriptions[i], .position = &r->positions[i] };
    }
    return (asi_subscribers){ .items = r->items, .count = count, .capacity = 2 };
}

typedef struct network
{
    asi_network_publication publication;
    int64_t position_counter;
    int64_t limit_counter;
    readers spies;
} network;

/* Connected to one receiver, which has taken all up to `sent`. */
static void network_open(network *n, int64_t sent, int32_t spies)
{
    *n = (network){ .publication = { .params = { .window_length = WINDOW }, .producer_position = sent, .quiet_until_ns = INT64_MIN } };
    asi_network_publication *publication = &n->publication;
    publication->sender.log = log_create(5, 5 + (int32_t)(sent / TERM), (int32_t)(sent % TERM));
    publication->sender.log.page_next_at = INT64_MAX;
    publication->sender.position = sent;
    publication->sender.has_receivers = true;
    publication->sender.has_required_receivers = true;
    publication->position_counter = &n->position_counter;
    publication->limit_counter = &n->limit_counter;
    publication->spies = make_readers(&n->spies, spies);
}

static void network_produce(network *n, int64_t position)
{
    asi_log *log = &n->publication.sender.log;
    const int32_t term_count = (int32_t)(position / TERM);
    log->metadata->tail_counters[asi_log_index(term_count)] = asi_log_raw_tail(5 + term_count, position % TERM);
    log->metadata->active_term_count = term_count;
}

/* Any process can write spies' counters: values below the cleaned and above the published position are ignored. */
static void hostile_spies_move_no_limit(void)
{
    static const struct { int64_t told; int64_t believed; } ROWS[] = {
        { INT64_MAX, 4096 }, { 4096 + 32, 4096 }, { 4096, 4096 }, { 2048, 2048 }, { 0, 0 }, { -32, 0 }, { INT64_MIN, 0 },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        network n;
        network_open(&n, 8192, 1);
        n.publication.producer_position = 4096;
        network_produce(&n, 4096); /* the sender can't be ahead of it: of two bounds the lower holds */
        n.spies.positions[0] = ROWS[i].told;
        (void)asi_network_publication_update(&n.publication, 0);
        CHECK_I64(n.limit_counter, ROWS[i].believed + WINDOW);
        CHECK_I64(n.publication.limit, n.limit_counter);
        log_delete(&n.publication.sender.log);
    }
}

/* The span that the rules work on, of those that count only. */
static void spans(void)
{
    readers r;
    asi_subscribers subscribers = make_readers(&r, 2);
    r.positions[0] = INT64_MAX;
    r.positions[1] = INT64_MIN;
    asi_position_span span = asi_subscribers_span(&subscribers, 64, 4096);
    CHECK(span.has_working);
    CHECK_I64(span.min, 64);
    CHECK_I64(span.max, 4096);
    r.items[0].state = ASI_TETHER_RESTING;
    span = asi_subscribers_span(&subscribers, 64, 4096);
    CHECK_I64(span.max, 64);
    CHECK(asi_subscribers_has_working(&subscribers));
    r.items[1].state = ASI_TETHER_LINGER;
    CHECK(asi_subscribers_has_working(&subscribers));
    CHECK(asi_subscribers_have_read(&subscribers, 4096)); /* no subscriber has the image */
    r.items[1].state = ASI_TETHER_CLOSED;
    span = asi_subscribers_span(&subscribers, 64, 4096);
    CHECK(!span.has_working && !asi_subscribers_has_working(&subscribers));
    CHECK_I64(span.min, INT64_MAX);
    CHECK_I64(span.max, INT64_MIN);
    r.items[1].state = ASI_TETHER_ACTIVE;
    r.positions[1] = 4064;
    CHECK(!asi_subscribers_have_read(&subscribers, 4096));
    CHECK(asi_subscribers_have_read(&subscribers, 4064));
}

/* The limit follows the slowest of spies and sender exactly, and never decreases. */
static void the_slowest_holds_the_limit(void)
{
    network n;
    network_open(&n, 0, 2);
    network_produce(&n, 8192);
    CHECK(asi_network_publication_update(&n.publication, 0) > 0);
    CHECK_I64(n.position_counter, 8192);
    CHECK_I64(n.limit_counter, WINDOW);
    CHECK_I64(n.publication.sender.log.metadata->is_connected, 1);
    n.publication.sender.position = 8192;
    n.spies.positions[0] = 4096;
    n.spies.positions[1] = 2048;
    (void)asi_network_publication_update(&n.publication, 0);
    CHECK_I64(n.limit_counter, 2048 + WINDOW);
    n.spies.positions[1] = 1024;
    CHECK_I64(asi_network_publication_update(&n.publication, 0), 0);
    CHECK_I64(n.limit_counter, 2048 + WINDOW);
    n.publication.spies.count = 0;
    (void)asi_network_publication_update(&n.publication, 0);
    CHECK_I64(n.limit_counter, 8192 + WINDOW);
    /* No receiver: the limit goes back to the sent position, so that nothing is published without a reader. */
    n.publication.sender.has_receivers = false;
    (void)asi_network_publication_update(&n.publication, 0);
    CHECK_I64(n.limit_counter, 8192);
    CHECK_I64(n.publication.sender.log.metadata->is_connected, 0);
    log_delete(&n.publication.sender.log);
}

/* What the driver believes of the tails, which are in shared memory. */
static void hostile_tails_move_no_position(void)
{
    network n;
    network_open(&n, 0, 0);
    network_produce(&n, 8192);
    (void)asi_network_publication_update(&n.publication, 0);
    network_produce(&n, 4096);
    (void)asi_network_publication_update(&n.publication, SECOND);
    CHECK_I64(n.position_counter, 8192);
    asi_log_metadata *metadata = n.publication.sender.log.metadata;
    metadata->active_term_count = 0;
    metadata->tail_counters[0] = asi_log_raw_tail((int32_t)(5U + INT32_MAX), TERM);
    n.publication.sender.has_receivers = false;
    (void)asi_network_publication_update(&n.publication, 2 * SECOND);
    CHECK_I64(n.position_counter, asi_log_max_position(TERM)); /* the largest position of a stream */
    metadata->tail_counters[0] = asi_log_raw_tail(4, 0);
    (void)asi_network_publication_update(&n.publication, 3 * SECOND);
    CHECK_I64(n.position_counter, asi_log_max_position(TERM));
    log_delete(&n.publication.sender.log);
}

typedef struct cleaning
{
    const int64_t *limit_counter;
    int64_t limit_then;
} cleaning;

static void look_at_limit(void *context)
{
    cleaning *c = context;
    c->limit_then = *c->limit_counter;
}

/* A publisher that sees the limit may write at once: the released bytes are zero by then. */
static void cleaned_before_the_limit_of_a_network_publication(void)
{
    network n;
    const int64_t sent = TERM + 2 * TRAP_LENGTH;
    network_open(&n, sent, 0);
    n.limit_counter = n.publication.limit = TERM + WINDOW;
    memset(n.publication.sender.log.terms[0], 7, TERM);
    cleaning c = { .limit_counter = &n.limit_counter };
    trap_arm(n.publication.sender.log.terms[0] + TRAP_LENGTH, look_at_limit, &c);
    (void)asi_network_publication_update(&n.publication, 0);
    trap_check_touched();
    CHECK_I64(c.limit_then, TERM + WINDOW);
    CHECK_I64(n.limit_counter, sent + WINDOW);
    CHECK_I64(n.publication.clean_position, sent - TERM);
    CHECK_I64(n.publication.sender.zeroed_limit, sent + 2 * TERM);
    const uint8_t *term = n.publication.sender.log.terms[0];
    CHECK_I64(term[0], 0);
    CHECK_I64(term[sent - TERM - 1], 0);
    CHECK_I64(term[sent - TERM], 7);
    log_delete(&n.publication.sender.log);
}

/* Cleaning stops at the end of a term; the limit waits until the term that it would open is clean. */
static void the_limit_waits_for_the_cleaning(void)
{
    network n;
    const int64_t sent = 2 * TERM + WINDOW;
    network_open(&n, sent, 0);
    memset(n.publication.sender.log.terms[0], 7, TERM);
    memset(n.publication.sender.log.terms[1], 7, TERM);
    n.publication.clean_position = 64; /* far behind */
    n.limit_counter = n.publication.limit = 2 * TERM;
    CHECK(asi_network_publication_update(&n.publication, 0) > 0);
    CHECK_I64(n.publication.clean_position, TERM); /* with a term in between whose first half is dirty */
    CHECK_I64(n.limit_counter, 2 * TERM);
    CHECK(asi_network_publication_update(&n.publication, 0) > 0);
    CHECK_I64(n.publication.clean_position, sent - TERM);
    CHECK_I64(n.limit_counter, sent + WINDOW);
    log_delete(&n.publication.sender.log);
}

typedef struct ipc
{
    asi_ipc_publication publication;
    int64_t position_counter;
    int64_t limit_counter;
    readers readers;
} ipc;

static void ipc_open(ipc *p, int64_t position)
{
    *p = (ipc){ .publication = { .params = { .window_length = WINDOW }, .producer_position = position } };
    p->publication.log = log_create(5, 5 + (int32_t)(position / TERM), (int32_t)(position % TERM));
    p->publication.log.page_next_at = INT64_MAX;
    p->publication.position_counter = &p->position_counter;
    p->publication.limit_counter = &p->limit_counter;
    p->publication.subscribers = make_readers(&p->readers, 1);
}

static void cleaned_before_the_limit_of_an_ipc_publication(void)
{
    ipc p;
    const int64_t read = 2 * TRAP_LENGTH;
    ipc_open(&p, read);
    p.limit_counter = p.publication.limit = p.publication.trip_limit = WINDOW;
    p.readers.positions[0] = read;
    memset(p.publication.log.terms[0], 7, TERM);
    cleaning c = { .limit_counter = &p.limit_counter };
    trap_arm(p.publication.log.terms[0] + TRAP_LENGTH, look_at_limit, &c);
    CHECK_I64(asi_ipc_update(&p.publication), 1);
    trap_check_touched();
    CHECK_I64(c.limit_then, WINDOW);
    CHECK_I64(p.limit_counter, read + WINDOW);
    CHECK_I64(p.publication.clean_position, read);
    CHECK_I64(p.publication.log.terms[0][read - 1], 0);
    CHECK_I64(p.publication.log.terms[0][read], 7);
    log_delete(&p.publication.log);
}

/* A page without storage, as on a full file system, makes cleaning go page by page; the limit waits for it. */
static void the_limit_of_an_ipc_publication_waits_for_the_cleaning(void)
{
    ipc p;
    const int64_t read = 2 * TERM + WINDOW;
    ipc_open(&p, read);
    p.limit_counter = p.publication.limit = p.publication.trip_limit = read;
    p.readers.positions[0] = read;
    asi_log *log = &p.publication.log;
    memset(log->terms[0], 7, TERM);
    CHECK_I64(munmap(log->terms[0] + PAGE, PAGE), 0); /* a touch of it would end the test */
    int32_t cycles = 0;
    while (read == p.limit_counter)
    {
        CHECK_I64(asi_ipc_update(&p.publication), 1);
        CHECK(++cycles <= TERM / PAGE + 2);
        CHECK(read == p.limit_counter || p.limit_counter - p.publication.clean_position < 2 * TERM);
    }
    CHECK(cycles > 2);
    CHECK_I64(p.limit_counter, read + WINDOW);
    CHECK_I64(log->terms[0][0], 0);
    CHECK_I64(log->terms[0][2 * PAGE], 0);
    CHECK(MAP_FAILED != mmap(log->terms[0] + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    log_delete(log);
}

static void hostile_readers_of_ipc_move_no_limit(void)
{
    static const struct { int64_t told; int64_t limit; } ROWS[] = {
        { INT64_MAX, 16384 + WINDOW }, { 16384 + 32, 16384 + WINDOW }, { 8192, 8192 + WINDOW }, { 0, 4096 + WINDOW },
        { INT64_MIN, 4096 + WINDOW },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        ipc p;
        ipc_open(&p, 16384);
        p.publication.clean_position = 4096;
        p.readers.positions[0] = ROWS[i].told;
        CHECK_I64(asi_ipc_update(&p.publication), 1);
        CHECK_I64(p.limit_counter, ROWS[i].limit);
        CHECK_I64(p.publication.consumer_position, ROWS[i].limit - WINDOW);
        CHECK_I64(p.publication.trip_limit, ROWS[i].limit + WINDOW / 8);
        log_delete(&p.publication.log);
    }
}

/* pub-pos of an IPC publication is what its producers have claimed, and nothing impossible. */
static void the_position_of_an_ipc_publication_is_shown(void)
{
    ipc p;
    ipc_open(&p, 0);
    p.publication.clean_position = 0;
    p.publication.log.metadata->tail_counters[0] = asi_log_raw_tail(5, 4096);
    (void)asi_ipc_update(&p.publication);
    CHECK_I64(p.position_counter, 4096);
    p.publication.log.metadata->tail_counters[0] = asi_log_raw_tail(5, 4064); /* back */
    (void)asi_ipc_update(&p.publication);
    CHECK_I64(p.position_counter, 4096);
    log_delete(&p.publication.log);
}

int main(void)
{
    RUN(hostile_spies_move_no_limit);
    RUN(spans);
    RUN(the_slowest_holds_the_limit);
    RUN(hostile_tails_move_no_position);
    RUN(cleaned_before_the_limit_of_a_network_publication);
    RUN(the_limit_waits_for_the_cleaning);
    RUN(cleaned_before_the_limit_of_an_ipc_publication);
    RUN(the_limit_of_an_ipc_publication_waits_for_the_cleaning);
    RUN(hostile_readers_of_ipc_move_no_limit);
    RUN(the_position_of_an_ipc_publication_is_shown);
    return 0;
}
