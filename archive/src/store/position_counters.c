/* Finds the recording position of a recording; see position_counters.h. */
#include "store/position_counters.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"

typedef struct counter_wanted
{
    int64_t recording_id;
    int64_t archive_id; /* -1: any */
} counter_wanted;

/* Key of a recording position. Spec: 08 §3 - 0 i64 recordingId, 12 i32 length L of the source identity at 16, 16+L i64
 * archiveId; several archives on one driver may have the same recording ids. */
static bool is_counter_of(const asi_counters *counters, int32_t counter_id, void *context)
{
    const counter_wanted *wanted = context;
    const uint8_t *key = counters->metadata[counter_id].key;
    const int32_t identity_length = asi_get_i32(key + 12);
    const bool has_archive_id = identity_length >= 0 && identity_length <= ASI_COUNTER_KEY_CAPACITY - 24;
    return asi_get_i64(key) == wanted->recording_id &&
        (AS_NULL_VALUE == wanted->archive_id || (has_archive_id && asi_get_i64(key + 16 + identity_length) == wanted->archive_id));
}

void asi_position_counters_close(asi_position_counters *of)
{
    if (of->is_open)
    {
        asi_cnc_close(&of->cnc);
        of->is_open = false;
    }
}

void asi_position_counters_check(asi_position_counters *of)
{
    if (of->is_open && !asi_cnc_is_at(&of->cnc, of->aeron_dir))
    {
        asi_position_counters_close(of);
    }
}

static as_result open_counters(asi_position_counters *of, const char *aeron_dir)
{
    if (of->is_open && 0 == strcmp(of->aeron_dir, aeron_dir))
    {
        return AS_OK;
    }
    asi_position_counters_close(of);
    as_result result = asi_cnc_open_read_only_untrusted(&of->cnc, aeron_dir);
    if (AS_OK != result)
    {
        return AS_AGAIN == result ? AS_E_PEER : result;
    }
    result = asi_counters_init(&of->counters, of->cnc.counters_metadata, of->cnc.lengths.counters_metadata,
        of->cnc.counters_values, of->cnc.lengths.counters_values);
    if (AS_OK != result)
    {
        asi_cnc_close(&of->cnc);
        return result;
    }
    snprintf(of->aeron_dir, sizeof(of->aeron_dir), "%s", aeron_dir);
    of->is_open = true;
    of->last_id = 0;
    return AS_OK;
}

static bool is_allocated_to(const asi_counters *counters, int32_t id, counter_wanted *wanted)
{
    return ASI_COUNTER_ALLOCATED == asi_counter_state(counters, id) &&
        ASI_COUNTER_TYPE_RECORDING_POSITION == counters->metadata[id].type_id && is_counter_of(counters, id, wanted);
}

/* Finds a counter. Starts at the one found last; -1: there is none. */
static int32_t find_counter(const asi_position_counters *of, counter_wanted *wanted)
{
    for (int32_t id = of->last_id; id < of->counters.max_count; id++)
    {
        if (ASI_COUNTER_UNUSED == asi_counter_state(&of->counters, id))
        {
            break; /* ids are assigned in order: all later ones are unused too */
        }
        if (is_allocated_to(&of->counters, id, wanted))
        {
            return id;
        }
    }
    return asi_counters_find(&of->counters, ASI_COUNTER_TYPE_RECORDING_POSITION, is_counter_of, wanted);
}

as_result asi_position_counters_read(asi_position_counters *of, const char *aeron_dir, int64_t recording_id, int64_t archive_id,
    int64_t *position)
{
    const as_result result = open_counters(of, aeron_dir);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_counters *counters = &of->counters;
    counter_wanted wanted = { .recording_id = recording_id, .archive_id = archive_id };
    const int32_t id = find_counter(of, &wanted);
    if (id < 0)
    {
        return AS_AGAIN;
    }
    *position = asi_load_acquire_i64(asi_counter_addr(counters, id));
    of->last_id = id;
    /* Check that the counter is still the same: it may have been freed and reused between the two reads. */
    return is_allocated_to(counters, id, &wanted) ? AS_OK : AS_AGAIN;
}
