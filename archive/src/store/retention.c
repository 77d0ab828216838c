/* Selects the segments and recordings that a retention policy deletes. The rules are in as_archive.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aeron_spark/as_archive.h"
#include "base/result.h"

#define LEDGER_STREAM_ID 0x41534C45 /* "ASLE" */
#define LEDGER_ALIAS "alias=aeron-spark-ledger"

bool as_is_ledger(int32_t stream_id, const char *original_channel)
{
    return LEDGER_STREAM_ID == stream_id && NULL != strstr(original_channel, LEDGER_ALIAS);
}

/* Number of segments that may be deleted: all of a stopped recording; of an active one, those before the segment being
 * written. */
static int64_t free_count(const as_retention_recording *one)
{
    if (one->is_kept)
    {
        return 0;
    }
    int64_t count = 0;
    while (count < one->segment_count && (!one->is_active || one->segments[count].base < one->last_base))
    {
        count++;
    }
    return count;
}

static void let_go(as_retention_recording *one, int64_t count, as_retention_reason reason)
{
    one->goes = count;
    one->reason = reason;
}

/* -- too many ------------------------------------------------------------------------------------------------------------- */

static int by_stream_and_age(const void *a, const void *b)
{
    const as_retention_recording *left = *(as_retention_recording *const *)a;
    const as_retention_recording *right = *(as_retention_recording *const *)b;
    if (left->stream != right->stream)
    {
        return left->stream < right->stream ? -1 : 1;
    }
    if (left->is_active != right->is_active)
    {
        return left->is_active ? -1 : 1;
    }
    return left->recording_id > right->recording_id ? -1 : left->recording_id < right->recording_id ? 1 : 0;
}

static as_result drop_surplus(as_retention_recording *recordings, int64_t count, int64_t keep)
{
    as_retention_recording **newest_first = malloc((size_t)(count + 1) * sizeof(*newest_first));
    if (NULL == newest_first)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for a retention of %lld recordings", (long long)count);
    }
    for (int64_t i = 0; i < count; i++)
    {
        newest_first[i] = &recordings[i];
    }
    qsort(newest_first, (size_t)count, sizeof(*newest_first), by_stream_and_age);
    int64_t place = 0; /* index within the stream */
    for (int64_t i = 0; i < count; i++)
    {
        place = i > 0 && newest_first[i]->stream == newest_first[i - 1]->stream ? place + 1 : 0;
        if (place >= keep && !newest_first[i]->is_active && !newest_first[i]->is_kept)
        {
            let_go(newest_first[i], newest_first[i]->segment_count, AS_RETENTION_TOO_MANY);
        }
    }
    free(newest_first);
    return AS_OK;
}

/* -- too old -------------------------------------------------------------------------------------------------------------- */

static void drop_old(as_retention_recording *one, int64_t oldest_ms)
{
    const int64_t may_go = free_count(one);
    int64_t count = 0;
    while (count < may_go && one->segments[count].written_ms < oldest_ms)
    {
        count++;
    }
    const bool is_old_and_empty = 0 == one->segment_count && !one->is_active && !one->is_kept &&
        AS_NULL_VALUE != one->stop_timestamp_ms && one->stop_timestamp_ms < oldest_ms;
    if (count > one->goes || is_old_and_empty)
    {
        let_go(one, count, AS_RETENTION_TOO_OLD);
    }
}

/* -- too big -------------------------------------------------------------------------------------------------------------- */

typedef struct candidate
{
    int64_t written_ms;
    as_retention_recording *recording;
    int64_t index;
} candidate;

static int by_age(const void *a, const void *b)
{
    const candidate *left = a;
    const candidate *right = b;
    if (left->written_ms != right->written_ms)
    {
        return left->written_ms < right->written_ms ? -1 : 1;
    }
    if (left->recording->recording_id != right->recording->recording_id)
    {
        return left->recording->recording_id < right->recording->recording_id ? -1 : 1;
    }
    return left->index < right->index ? -1 : left->index > right->index ? 1 : 0;
}

static as_result shrink(as_retention_recording *recordings, int64_t count, int64_t max_bytes)
{
    int64_t used = 0;
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++)
    {
        total += recordings[i].segment_count;
        for (int64_t j = recordings[i].goes; j < recordings[i].segment_count; j++)
        {
            used += recordings[i].segments[j].bytes;
        }
    }
    candidate *candidates = malloc((size_t)(total + 1) * sizeof(*candidates));
    if (NULL == candidates)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for a retention of %lld segments", (long long)total);
    }
    int64_t candidate_count = 0;
    for (int64_t i = 0; i < count; i++)
    {
        const int64_t may_go = free_count(&recordings[i]);
        int64_t written_ms = INT64_MIN;
        for (int64_t j = 0; j < may_go; j++)
        {
            /* Segments of a recording are deleted in order, whatever their files' times. */
            const int64_t own_ms = recordings[i].segments[j].written_ms;
            written_ms = own_ms > written_ms ? own_ms : written_ms;
            if (j >= recordings[i].goes)
            {
                candidates[candidate_count++] =
                    (candidate){ .written_ms = written_ms, .recording = &recordings[i], .index = j };
            }
        }
    }
    qsort(candidates, (size_t)candidate_count, sizeof(*candidates), by_age);
    for (int64_t i = 0; i < candidate_count && used > max_bytes; i++)
    {
        const candidate *oldest = &candidates[i];
        used -= oldest->recording->segments[oldest->index].bytes;
        let_go(oldest->recording, oldest->index + 1, AS_RETENTION_TOO_BIG);
    }
    free(candidates);
    return AS_OK;
}

/* ------------------------------------------------------------------------------------------------------------------------- */

static void settle(as_retention_recording *one)
{
    one->is_purged = AS_RETENTION_KEPT != one->reason && !one->is_active && one->goes == one->segment_count;
    one->new_start = one->is_purged || 0 == one->goes ? AS_NULL_VALUE :
        one->goes < one->segment_count ? one->segments[one->goes].base : one->last_base;
}

as_result as_retention_plan(
    const as_retention_policy *policy, int64_t now_ms, as_retention_recording *recordings, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
    {
        let_go(&recordings[i], 0, AS_RETENTION_KEPT);
    }
    as_result result = AS_NULL_VALUE == policy->keep_recordings ? AS_OK :
        drop_surplus(recordings, count, policy->keep_recordings);
    for (int64_t i = 0; i < count && AS_NULL_VALUE != policy->older_than_ms; i++)
    {
        drop_old(&recordings[i], now_ms - policy->older_than_ms);
    }
    if (AS_OK == result && AS_NULL_VALUE != policy->max_bytes)
    {
        result = shrink(recordings, count, policy->max_bytes);
    }
    for (int64_t i = 0; i < count; i++)
    {
        settle(&recordings[i]);
    }
    return result;
}
