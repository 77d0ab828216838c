/* Access to a walk's results. See as_sbe.h. */
#include "sbe_batch.h"

const uint8_t *as_sbe_batch_errors(const as_sbe_batch *batch) { return batch->errors; }

int64_t as_sbe_batch_error_count(const as_sbe_batch *batch) { return batch->error_count; }

const int64_t *as_sbe_batch_ends(const as_sbe_batch *batch) { return batch->ends; }

int64_t as_sbe_batch_instances(const as_sbe_batch *batch, int32_t level) { return batch->levels[level].count; }

const int64_t *as_sbe_batch_starts(const as_sbe_batch *batch, int32_t level) { return batch->levels[level].starts; }

const int64_t *as_sbe_batch_data_starts(const as_sbe_batch *batch, int32_t data) { return batch->data[data].starts; }

const int32_t *as_sbe_batch_list_offsets(const as_sbe_batch *batch, int32_t level) { return batch->levels[level].list_offsets; }

const uint8_t *as_sbe_batch_list_validity(const as_sbe_batch *batch, int32_t level) { return batch->levels[level].list_validity; }

int64_t as_sbe_batch_data_bytes(const as_sbe_batch *batch, int32_t data) { return batch->data[data].bytes; }

int64_t as_sbe_batch_unread(const as_sbe_batch *batch) { return batch->unread; }

int64_t as_sbe_batch_short(const as_sbe_batch *batch, int32_t index, int64_t since, int32_t end)
{
    const asi_sbe_instances *level = &batch->levels[index];
    if (level->shortest >= end)
    {
        return 0;
    }
    if (!level->is_mixed)
    {
        return level->length >= 0 && level->version >= since && level->length < end ? level->count : 0;
    }
    int64_t found = 0;
    for (int64_t i = 0; i < level->count; i++)
    {
        found += level->lengths[i] >= 0 && level->versions[i] >= since && level->lengths[i] < end;
    }
    return found;
}
