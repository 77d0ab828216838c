/* Goal: the loss report is read as it is written, whatever the lengths of its texts; hostile reports do no harm.
 * Method: entries of every length of text, known bytes, random bytes with a printed seed. Spec: 01 §9. */
#include "shm/loss_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "support.h"

#define REPORT 8192

typedef struct entries
{
    int64_t count;
    asi_loss_entry items[128];
} entries;

static void collect(const asi_loss_entry *entry, void *context)
{
    entries *to = context;
    to->items[to->count++ % 128] = *entry;
}

static entries read_all(const void *report, int64_t length)
{
    entries read = { 0 };
    CHECK_I64(asi_loss_report_read_untrusted(report, length, collect, &read), read.count);
    return read;
}

static bool is_text(const char *text, int64_t length, const char *expected)
{
    return length == (int64_t)strlen(expected) && 0 == memcmp(text, expected, strlen(expected));
}

static void reads_what_was_written(void)
{
    static uint8_t bytes[REPORT] __attribute__((aligned(64)));
    asi_loss_report report = { .buffer = bytes, .length = REPORT };
    static const char LETTERS[] = "aeron:udp?endpoint=localhost:40123|alias=of-a-stream-with-a-long-name-0123456789";
    char channels[64][sizeof(LETTERS)];
    for (int i = 0; i < 64; i++)
    {
        snprintf(channels[i], sizeof(channels[i]), "%.*s", i, LETTERS);
        const asi_loss_source source = { .session_id = -i, .stream_id = 1000 + i, .channel = channels[i],
            .source = 0 == i % 2 ? "127.0.0.1:5" : "[::1]:50000" };
        const int64_t entry = asi_loss_report_add(&report, &source, 100 + i, 5000);
        CHECK(entry >= 0 && 0 == entry % 64);
        asi_loss_report_observe(&report, entry, 1, 6000 + i);
    }
    const entries read = read_all(bytes, REPORT);
    CHECK_I64(read.count, 64);
    for (int i = 0; i < 64; i++)
    {
        const asi_loss_entry *entry = &read.items[i];
        CHECK_I64(entry->observation_count, 2);
        CHECK_I64(entry->total_bytes_lost, 101 + i);
        CHECK_I64(entry->first_observation_ms, 5000);
        CHECK_I64(entry->last_observation_ms, 6000 + i);
        CHECK_I64(entry->session_id, -i);
        CHECK_I64(entry->stream_id, 1000 + i);
        CHECK(is_text(entry->channel, entry->channel_length, channels[i]));
        CHECK(is_text(entry->source, entry->source_length, 0 == i % 2 ? "127.0.0.1:5" : "[::1]:50000"));
    }
}

static void a_full_report_takes_no_more(void)
{
    static uint8_t bytes[192] __attribute__((aligned(64)));
    asi_loss_report report = { .buffer = bytes, .length = sizeof(bytes) };
    const asi_loss_source source = { .session_id = 1, .stream_id = 2, .channel = "aeron:udp?endpoint=a:1", .source = "b:2" };
    CHECK_I64(asi_loss_report_add(&report, &source, 1, 1), 0);
    CHECK_I64(asi_loss_report_add(&report, &source, 1, 1), AS_NULL_VALUE); /* 75 bytes from 128 on */
    CHECK_I64(read_all(bytes, sizeof(bytes)).count, 1);
}

static void hostile_lengths_end_the_reading(void)
{
    static const int32_t LENGTHS[] = { -1, INT32_MIN, INT32_MAX, REPORT, REPORT - 43, REPORT - 44 };
    static uint8_t bytes[REPORT] __attribute__((aligned(64)));
    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
    {
        memset(bytes, 0, sizeof(bytes));
        asi_put_i64(bytes, 1);
        asi_put_i32(bytes + 40, LENGTHS[i]);
        CHECK_I64(read_all(bytes, REPORT).count, 0);
        asi_put_i32(bytes + 40, 0);
        asi_put_i32(bytes + 44, LENGTHS[i]);
        CHECK_I64(read_all(bytes, REPORT).count, REPORT - 48 >= LENGTHS[i] && LENGTHS[i] >= 0 ? 1 : 0);
    }
    for (int64_t length = 0; length < 128; length++)
    {
        asi_put_i32(bytes + 44, 3);
        read_all(bytes, length);
    }
}

static void random_reports_do_no_harm(void)
{
    const unsigned seed = 20260801;
    srand(seed);
    for (int round = 0; round < 2000; round++)
    {
        const int64_t length = rand() % 512;
        uint8_t *bytes = aligned_alloc(64, 512);
        CHECK(NULL != bytes);
        for (int64_t i = 0; i < 512; i++)
        {
            bytes[i] = (uint8_t)(0 == rand() % 3 ? rand() : 0);
        }
        const entries read = read_all(bytes, length);
        for (int64_t i = 0; i < read.count; i++)
        {
            const asi_loss_entry *entry = &read.items[i];
            const char *end = (const char *)bytes + length;
            if (entry->channel + entry->channel_length > end || entry->source + entry->source_length > end)
            {
                fprintf(stderr, "seed %u, round %d: a text beyond the report\n", seed, round);
                exit(1);
            }
        }
        free(bytes);
    }
}

int main(void)
{
    RUN(reads_what_was_written);
    RUN(a_full_report_takes_no_more);
    RUN(hostile_lengths_end_the_reading);
    RUN(random_reports_do_no_harm);
    return 0;
}
