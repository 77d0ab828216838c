/* Goal: each distinct error stands once with its count and times, stock logs are read and written alike, hostile ones do no
 * harm. Method: golden sections, single steps, threads, random bytes. Spec: 01 §8. */
#include "shm/error_log.h"

#include <pthread.h>

#include "support.h"

#define SECTION 4096

typedef struct entries
{
    int64_t count;
    asi_error_entry items[64];
} entries;

static void collect(const asi_error_entry *entry, void *context)
{
    entries *to = context;
    to->items[to->count++ % 64] = *entry;
}

static entries read_all(const void *section, int64_t length, int64_t since_ms)
{
    entries read = { 0 };
    CHECK_I64(asi_error_log_read_untrusted(section, length, since_ms, collect, &read), read.count);
    return read;
}

static bool is_text(const asi_error_entry *entry, const char *text)
{
    return entry->text_length == (int64_t)strlen(text) && 0 == memcmp(entry->text, text, strlen(text));
}

static void records_distinct_errors(void)
{
    static uint8_t section[SECTION] __attribute__((aligned(64)));
    int64_t error_counter = 0;
    asi_error_log log;
    asi_error_log_init(&log, section, SECTION, &error_counter);
    asi_error_log_record(&log, 1, "first", 100);
    asi_error_log_record(&log, 2, "first", 200);
    asi_error_log_record(&log, 1, "first", 300);
    asi_error_log_record(&log, 1, "first and more", 400); /* starts with a stored one */
    asi_error_log_record(&log, 1, "firs", 500);
    CHECK_I64(error_counter, 5);
    entries read = read_all(section, SECTION, 0);
    CHECK_I64(read.count, 3);
    CHECK(is_text(&read.items[0], "first"));
    CHECK_I64(read.items[0].count, 3);
    CHECK_I64(read.items[0].first_ms, 100);
    CHECK_I64(read.items[0].last_ms, 400);
    CHECK_I64(read.items[1].count, 1);
    CHECK(is_text(&read.items[2], "firs"));
    CHECK_I64(read_all(section, SECTION, 401).count, 1);
    asi_error_log_close(&log);
}

static void take_text(void *context, int32_t code, const char *text)
{
    char *told = context;
    snprintf(told + strlen(told), 64, "%d %s;", code, text);
}

static void sink_hears_of_each_error_once(void)
{
    static uint8_t section[SECTION] __attribute__((aligned(64)));
    char told[256] = "";
    asi_error_log log;
    asi_error_log_init(&log, section, 128, NULL);
    log.sink = (asi_error_sink){ .on_error = take_text, .context = told };
    asi_error_log_record(&log, 1, "first", 100);
    asi_error_log_record(&log, 1, "first", 200);
    asi_error_log_record_of_peer(&log, 2, "peer", NULL, 300);
    asi_error_log_record_of_peer(&log, 2, "peer", NULL, 400);
    CHECK_TEXT(told, "1 first;2 peer;");
    asi_error_log_record_of_peer(&log, 3, "no room", NULL, 500);
    CHECK_TEXT(told, "1 first;2 peer;");
    asi_error_log_close(&log);
}

/* The handler writes the service log, which must not fall silent when the error log is full. */
static void sink_hears_of_what_a_full_log_can_not_take(void)
{
    static uint8_t section[64] __attribute__((aligned(64)));
    char told[256] = "";
    asi_error_log log;
    asi_error_log_init(&log, section, sizeof(section), NULL);
    log.sink = (asi_error_sink){ .on_error = take_text, .context = told };
    asi_error_log_record(&log, 1, "this one fits", 100);
    asi_error_log_record(&log, 2, "first", 200);
    asi_error_log_record(&log, 3, "too soon", 1199);
    asi_error_log_record(&log, 1, "this one fits", 1200); /* known */
    asi_error_log_record(&log, 4, "second", 1200);
    asi_error_log_record(&log, 2, "first", 2300);
    CHECK_TEXT(told, "1 this one fits;2 first;4 second;2 first;");
    asi_error_log_close(&log);
}

/* Opens a log in which peers have reported more errors than fit. */
static void fill_by_peers(asi_error_log *log, uint8_t *section, int64_t *errors, const char *kind)
{
    char text[64];
    asi_error_log_init(log, section, SECTION, errors);
    for (int i = 0; i < SECTION; i++)
    {
        snprintf(text, sizeof(text), "session %d is unknown", i);
        asi_error_log_record_of_peer(log, 1, text, kind, i);
    }
}

/* A kind is recorded also where the half of the log that peers may fill is full. */
static void a_kind_is_recorded_whatever_others_filled(void)
{
    static uint8_t section[SECTION] __attribute__((aligned(64)));
    int64_t errors = 0;
    asi_error_log log;
    fill_by_peers(&log, section, &errors, NULL);
    CHECK(log.next_offset > SECTION / 3 && log.next_offset <= SECTION / 2);
    asi_error_log_record_of_peer(&log, 28, "no room for log 5", "no room", 1);
    const entries read = read_all(section, SECTION, 0);
    CHECK(is_text(&read.items[read.count - 1], "no room"));
    asi_error_log_close(&log);
}

/* Texts that a peer can vary use a quarter of the log, then only their kind is counted; other errors still fit. */
static void texts_with_numbers_of_others_fill_a_quarter(void)
{
    static uint8_t section[SECTION] __attribute__((aligned(64)));
    int64_t errors = 0;
    asi_error_log log;
    fill_by_peers(&log, section, &errors, "unknown sessions");
    CHECK_I64(errors, SECTION);
    CHECK(log.next_offset > SECTION / 5 && log.next_offset < SECTION / 3);
    asi_error_log_record_of_peer(&log, 2, "another thing", NULL, 1);
    const entries read = read_all(section, SECTION, 0);
    CHECK(is_text(&read.items[0], "session 0 is unknown"));
    CHECK(is_text(&read.items[read.count - 2], "unknown sessions"));
    CHECK(read.items[read.count - 2].count > SECTION / 2);
    CHECK(is_text(&read.items[read.count - 1], "another thing"));
    asi_error_log_close(&log);
}

static void full_log_keeps_what_it_has(void)
{
    static uint8_t section[64] __attribute__((aligned(64)));
    asi_error_log log;
    asi_error_log_init(&log, section, sizeof(section), NULL);
    asi_error_log_record(&log, 1, "12345678", 1);
    asi_error_log_record(&log, 2, "123456789", 2);
    CHECK_I64(read_all(section, sizeof(section), 0).count, 1);
    asi_error_log_record(&log, 3, "12345678", 3);
    CHECK_I64(read_all(section, sizeof(section), 0).count, 2);
    asi_error_log_record(&log, 1, "12345678", 4);
    CHECK_I64(read_all(section, sizeof(section), 0).items[0].count, 2);
    asi_error_log_close(&log);
}

/* Records a stock log's entries again; bytes must come out the same. */
static void stock_bytes_come_out_the_same(void)
{
    static const struct { const char *name; int64_t count; } ROWS[] = {
        { "shm/c-driver-error-log.bin", 12 }, { "shm/java-driver-error-log.bin", 4 }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        int64_t length;
        uint8_t *stock = golden_load(ROWS[i].name, &length);
        const entries read = read_all(stock, length, 0);
        CHECK_I64(read.count, ROWS[i].count);
        uint8_t *ours = calloc(1, (size_t)length);
        asi_error_log log;
        asi_error_log_init(&log, ours, length, NULL);
        for (int64_t entry = 0; entry < read.count; entry++)
        {
            char *text = strndup(read.items[entry].text, (size_t)read.items[entry].text_length);
            for (int32_t again = 0; again < read.items[entry].count; again++)
            {
                asi_error_log_record(&log, (int32_t)entry, text, 0 == again ? read.items[entry].first_ms : read.items[entry].last_ms);
            }
            free(text);
        }
        CHECK(0 == memcmp(ours, stock, (size_t)length));
        asi_error_log_close(&log);
        free(ours);
        free(stock);
    }
}

static void reading_survives_hostile_lengths(void)
{
    static const int32_t LENGTHS[] = { INT32_MIN, -1, 0, 1, 23, 24, 4096, INT32_MAX };
    uint8_t *section = aligned_alloc(64, 256);
    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
    {
        memset(section, 0, 256);
        asi_put_i32(section, LENGTHS[i]);
        const entries read = read_all(section, 256, 0);
        CHECK_I64(read.count, LENGTHS[i] >= 24 ? 1 : 0);
        if (LENGTHS[i] > 256)
        {
            CHECK_I64(read.items[0].text_length, 256 - 24);
        }
    }
    CHECK_I64(read_all(section, 23, 0).count, 0);
    CHECK_I64(read_all(section, 0, 0).count, 0);

    asi_rand rand = test_rand();
    for (int round = 0; round < 5000; round++)
    {
        for (int64_t at = 0; at < 256; at += 4)
        {
            asi_put_i32(section + at, (int32_t)test_rand_below(&rand, 120) - 10);
        }
        (void)read_all(section, 256, INT64_MIN);
    }
    free(section);
}

static void *record_many(void *context)
{
    for (int i = 0; i < 4000; i++)
    {
        char text[32];
        snprintf(text, sizeof(text), "error %d.", i % 7);
        asi_error_log_record(context, i % 7, text, i);
    }
    return NULL;
}

static void threads_share_a_log(void)
{
    static uint8_t section[SECTION] __attribute__((aligned(64)));
    int64_t error_counter = 0;
    asi_error_log log;
    asi_error_log_init(&log, section, SECTION, &error_counter);
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
    {
        CHECK_I64(pthread_create(&threads[i], NULL, record_many, &log), 0);
    }
    for (size_t i = 0; i < 3; i++)
    {
        CHECK_I64(pthread_join(threads[i], NULL), 0);
    }
    const entries read = read_all(section, SECTION, 0);
    CHECK_I64(read.count, 7);
    int64_t sum = 0;
    for (int64_t i = 0; i < read.count; i++)
    {
        sum += read.items[i].count;
    }
    CHECK_I64(sum, 12000);
    CHECK_I64(error_counter, 12000);
    asi_error_log_close(&log);
}

int main(void)
{
    RUN(records_distinct_errors);
    RUN(sink_hears_of_each_error_once);
    RUN(sink_hears_of_what_a_full_log_can_not_take);
    RUN(a_kind_is_recorded_whatever_others_filled);
    RUN(texts_with_numbers_of_others_fill_a_quarter);
    RUN(full_log_keeps_what_it_has);
    RUN(stock_bytes_come_out_the_same);
    RUN(reading_survives_hostile_lengths);
    RUN(threads_share_a_log);
    return 0;
}
