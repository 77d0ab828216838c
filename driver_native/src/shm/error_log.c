/* The distinct error log; see error_log.h.
 *
 * Record: i32 length (24 + text bytes; 0 ends the log), i32 observations, i64 last and i64 first epoch ms, text; next record
 * at the next multiple of 8. The length is stored last, so a reader sees text and first time, although the count may still be
 * 0. Spec: 01 §8. */
#include "shm/error_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/bits.h"

#define RECORD_ALIGNMENT 8
#define UNRECORDED_INTERVAL_MS 1000

typedef struct error_record
{
    int32_t length;   /* 0..3, release last */
    int32_t count;    /* 4..7 */
    int64_t last_ms;  /* 8..15 */
    int64_t first_ms; /* 16..23 */
} error_record;

AS_STATIC_ASSERT(sizeof(error_record) == 24, "Spec: 01 §8");

void asi_error_log_init(asi_error_log *log, void *section, int64_t length, int64_t *error_counter)
{
    *log = (asi_error_log){ .buffer = section, .length = length, .error_counter = error_counter };
    pthread_mutex_init(&log->mutex, NULL);
}

void asi_error_log_close(asi_error_log *log)
{
    free(log->observations);
    pthread_mutex_destroy(&log->mutex);
    *log = (asi_error_log){ 0 };
}

static error_record *record_at(const asi_error_log *log, int64_t offset)
{
    return (error_record *)(void *)(log->buffer + offset);
}

static error_record *find_record(const asi_error_log *log, int32_t code, const char *text, int64_t text_length)
{
    for (int64_t i = 0; i < log->observation_count; i++)
    {
        const asi_error_observation *observation = &log->observations[i];
        error_record *record = record_at(log, observation->offset);
        if (observation->code == code && observation->text_length <= text_length &&
            0 == memcmp(record + 1, text, (size_t)observation->text_length))
        {
            return record;
        }
    }
    return NULL;
}

static bool grow_observations(asi_error_log *log)
{
    if (log->observation_count < log->observation_capacity)
    {
        return true;
    }
    const int64_t capacity = log->observation_capacity > 0 ? log->observation_capacity * 2 : 16;
    asi_error_observation *observations =
        realloc(log->observations, (size_t)capacity * sizeof(*observations));
    if (NULL == observations)
    {
        return false;
    }
    log->observations = observations;
    log->observation_capacity = capacity;
    return true;
}

/* NULL if the record does not fit. */
static error_record *add_record(
    asi_error_log *log, int64_t room, int32_t code, const char *text, int64_t text_length, int64_t now_ms)
{
    const int64_t record_length = (int64_t)sizeof(error_record) + text_length;
    if (record_length > room - log->next_offset || record_length > INT32_MAX || !grow_observations(log))
    {
        return NULL;
    }
    error_record *record = record_at(log, log->next_offset);
    memcpy(record + 1, text, (size_t)text_length);
    record->first_ms = now_ms;
    asi_store_relaxed_i32(&record->count, 0);
    asi_store_release_i32(&record->length, (int32_t)record_length);
    log->observations[log->observation_count++] =
        (asi_error_observation){ .code = code, .offset = log->next_offset, .text_length = text_length };
    log->next_offset = asi_align_i64(log->next_offset + record_length, RECORD_ALIGNMENT);
    return record;
}

/* False if the record does not fit into the first `room` bytes. */
static bool record_within(asi_error_log *log, int64_t room, int32_t code, const char *text, int64_t now_ms)
{
    const int64_t text_length = (int64_t)strlen(text);
    pthread_mutex_lock(&log->mutex);
    error_record *record = find_record(log, code, text, text_length);
    const bool is_new = NULL == record;
    if (is_new)
    {
        record = add_record(log, room, code, text, text_length, now_ms);
    }
    if (NULL != record)
    {
        asi_fetch_add_i32(&record->count, 1);
        asi_store_release_i64(&record->last_ms, now_ms);
    }
    pthread_mutex_unlock(&log->mutex);
    if (is_new && NULL != record && NULL != log->sink.on_error)
    {
        log->sink.on_error(log->sink.context, code, text);
    }
    return NULL != record;
}

static void count_error(asi_error_log *log)
{
    if (NULL != log->error_counter)
    {
        asi_fetch_add_i64(log->error_counter, 1);
    }
}

/* An error that does not fit. Whether it is new is unknown, so the sink gets one of them a second. */
static void tell_unrecorded(asi_error_log *log, int32_t code, const char *text, int64_t now_ms)
{
    pthread_mutex_lock(&log->mutex);
    const bool is_first = !log->is_full_told;
    const bool is_due = is_first || now_ms >= log->next_told_ms;
    log->is_full_told = true;
    log->next_told_ms = is_due ? now_ms + UNRECORDED_INTERVAL_MS : log->next_told_ms;
    pthread_mutex_unlock(&log->mutex);
    if (is_first)
    {
        fprintf(stderr, "aeron_spark: error log is full, unrecordable error %" PRId32 ": %s\n", code, text);
    }
    if (is_due && NULL != log->sink.on_error)
    {
        log->sink.on_error(log->sink.context, code, text);
    }
}

void asi_error_log_record(asi_error_log *log, int32_t code, const char *text, int64_t now_ms)
{
    count_error(log);
    if (!record_within(log, log->length, code, text, now_ms))
    {
        tell_unrecorded(log, code, text, now_ms);
    }
}

void asi_error_log_record_of_peer(asi_error_log *log, int32_t code, const char *text, const char *kind, int64_t now_ms)
{
    count_error(log);
    if (NULL == kind)
    {
        (void)record_within(log, log->length / 2, code, text, now_ms);
    }
    else if (!record_within(log, log->length / 4, code, text, now_ms) && !record_within(log, log->length, code, kind, now_ms))
    {
        tell_unrecorded(log, code, text, now_ms);
    }
}

int64_t asi_error_log_read_untrusted(const void *section, int64_t length, int64_t since_ms,
    void (*on_entry)(const asi_error_entry *entry, void *context), void *context)
{
    const uint8_t *buffer = section;
    int64_t entries = 0;
    int64_t offset = 0;
    while (length - offset >= (int64_t)sizeof(error_record))
    {
        const error_record *record = (const error_record *)(const void *)(buffer + offset);
        int64_t record_length = asi_load_acquire_i32(&record->length);
        if (record_length < (int64_t)sizeof(error_record))
        {
            break; /* the end, or a length that no writer stores */
        }
        if (record_length > length - offset)
        {
            record_length = length - offset;
        }
        const asi_error_entry entry = {
            .count = asi_load_acquire_i32(&record->count),
            .first_ms = record->first_ms,
            .last_ms = asi_load_acquire_i64(&record->last_ms),
            .text = (const char *)(record + 1),
            .text_length = record_length - (int64_t)sizeof(error_record),
        };
        if (entry.last_ms >= since_ms)
        {
            on_entry(&entry, context);
            entries++;
        }
        offset = asi_align_i64(offset + record_length, RECORD_ALIGNMENT);
    }
    return entries;
}
