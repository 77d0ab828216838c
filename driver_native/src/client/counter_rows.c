/* Rows of a driver's counters, for inspectors and clients. Any thread: nothing is locked, a counter that changes hands while it
 * is read is passed over. Spec: 01 §5.3. */
#include "client/counter_rows.h"

#include <string.h>

as_result asi_counter_row_read(const asi_counters *counters, int32_t counter_id, as_counter_row *row)
{
    if (ASI_COUNTER_ALLOCATED != asi_counter_state(counters, counter_id))
    {
        return AS_AGAIN;
    }
    const asi_counter_metadata *metadata = &counters->metadata[counter_id];
    const asi_counter_value *value = &counters->values[counter_id];
    as_counter_row read = {
        .id = counter_id,
        .registration_id = asi_load_acquire_i64(&value->registration_id),
        .type_id = metadata->type_id,
        .value = asi_load_acquire_i64(&value->value),
        .owner_id = value->owner_id,
        .reference_id = value->reference_id,
        .key_length = ASI_COUNTER_KEY_CAPACITY,
    };
    memcpy(read.key, metadata->key, sizeof(read.key));
    asi_counter_label(counters, counter_id, read.label);
    read.label_length = (int32_t)strlen(read.label);
    /* Spec: 01 §5.3 - the id may have been freed and given out anew while it was read. */
    if (ASI_COUNTER_ALLOCATED != asi_counter_state(counters, counter_id) ||
        read.registration_id != asi_load_acquire_i64(&value->registration_id))
    {
        return AS_AGAIN;
    }
    *row = read;
    return AS_OK;
}

int32_t as_client_max_counter_id(const as_client *client)
{
    return client->counters.max_count - 1;
}

as_result as_client_counter(const as_client *client, int32_t counter_id, as_counter_row *row)
{
    return asi_counter_row_read(&client->counters, counter_id, row);
}

int64_t asi_channel_status(const as_client *client, int32_t counter_id)
{
    /* Spec: 03 §15.5 - no counter means active, id 0 (a system counter) that it is not made yet. */
    if (AS_NULL_VALUE == counter_id)
    {
        return 1;
    }
    if (counter_id <= 0 || counter_id >= client->counters.max_count)
    {
        return 0;
    }
    return asi_load_acquire_i64(asi_counter_addr(&client->counters, counter_id));
}
