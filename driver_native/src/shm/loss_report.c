/* See loss_report.h. */
#include "shm/loss_report.h"

#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/bits.h"

#define ENTRY_ALIGNMENT 64

typedef struct loss_entry
{
    int64_t observation_count;    /* 0..7 */
    int64_t total_bytes_lost;     /* 8..15 */
    int64_t first_observation_ms; /* 16..23 */
    int64_t last_observation_ms;  /* 24..31 */
    int32_t session_id;           /* 32..35 */
    int32_t stream_id;            /* 36..39 */
} loss_entry;

AS_STATIC_ASSERT(sizeof(loss_entry) == 40, "Spec: 01 §9");

static int64_t put_text(uint8_t *to, const char *text, int32_t length)
{
    asi_put_i32(to, length);
    memcpy(to + sizeof(int32_t), text, (size_t)length);
    return (int64_t)sizeof(int32_t) + length;
}

int64_t asi_loss_report_add(asi_loss_report *report, const asi_loss_source *source, int64_t bytes_lost, int64_t now_ms)
{
    const int32_t channel_length = (int32_t)strlen(source->channel);
    const int32_t source_length = (int32_t)strlen(source->source);
    const int64_t channel_field = asi_align_i64((int64_t)sizeof(int32_t) + channel_length, (int64_t)sizeof(int32_t));
    const int64_t length = (int64_t)sizeof(loss_entry) + channel_field + (int64_t)sizeof(int32_t) + source_length;
    const int64_t offset = report->next_offset;
    if (NULL == report->buffer || length > report->length - offset)
    {
        return AS_NULL_VALUE;
    }
    loss_entry *entry = (loss_entry *)(void *)(report->buffer + offset);
    entry->total_bytes_lost = bytes_lost;
    entry->first_observation_ms = now_ms;
    entry->last_observation_ms = now_ms;
    entry->session_id = source->session_id;
    entry->stream_id = source->stream_id;
    uint8_t *texts = report->buffer + offset + sizeof(loss_entry);
    put_text(texts, source->channel, channel_length);
    put_text(texts + channel_field, source->source, source_length);
    report->next_offset = asi_align_i64(offset + length, ENTRY_ALIGNMENT);
    asi_store_release_i64(&entry->observation_count, 1);
    return offset;
}

void asi_loss_report_observe(asi_loss_report *report, int64_t entry_offset, int64_t bytes_lost, int64_t now_ms)
{
    loss_entry *entry = (loss_entry *)(void *)(report->buffer + entry_offset);
    asi_store_release_i64(&entry->last_observation_ms, now_ms);
    asi_fetch_add_i64(&entry->total_bytes_lost, bytes_lost);
    asi_fetch_add_i64(&entry->observation_count, 1);
}

/* Finds the text at `offset`. False if its length is invalid or the file ends before the text does. */
static bool get_text(const uint8_t *report, int64_t length, int64_t offset, const char **text, int64_t *text_length)
{
    if (length - offset < (int64_t)sizeof(int32_t))
    {
        return false;
    }
    *text_length = asi_get_i32(report + offset);
    *text = (const char *)(report + offset + sizeof(int32_t));
    return *text_length >= 0 && *text_length <= length - offset - (int64_t)sizeof(int32_t);
}

int64_t asi_loss_report_read_untrusted(
    const void *report, int64_t length, void (*on_entry)(const asi_loss_entry *entry, void *context), void *context)
{
    const uint8_t *buffer = report;
    int64_t entries = 0;
    int64_t offset = 0;
    while (length - offset >= (int64_t)sizeof(loss_entry))
    {
        const loss_entry *stored = (const loss_entry *)(const void *)(buffer + offset);
        asi_loss_entry entry = { .observation_count = asi_load_acquire_i64(&stored->observation_count) };
        if (entry.observation_count <= 0)
        {
            break;
        }
        entry.total_bytes_lost = asi_load_acquire_i64(&stored->total_bytes_lost);
        entry.first_observation_ms = stored->first_observation_ms;
        entry.last_observation_ms = asi_load_acquire_i64(&stored->last_observation_ms);
        entry.session_id = stored->session_id;
        entry.stream_id = stored->stream_id;
        const int64_t channel_offset = offset + (int64_t)sizeof(loss_entry);
        if (!get_text(buffer, length, channel_offset, &entry.channel, &entry.channel_length))
        {
            break;
        }
        const int64_t source_offset =
            channel_offset + asi_align_i64((int64_t)sizeof(int32_t) + entry.channel_length, (int64_t)sizeof(int32_t));
        if (!get_text(buffer, length, source_offset, &entry.source, &entry.source_length))
        {
            break;
        }
        on_entry(&entry, context);
        entries++;
        offset = asi_align_i64(source_offset + (int64_t)sizeof(int32_t) + entry.source_length, ENTRY_ALIGNMENT);
    }
    return entries;
}
