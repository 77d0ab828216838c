/* Adds to the instances of a level and to its data, for the walk: room first, then the entries. */
#ifndef ASI_SBE_INSTANCES_H
#define ASI_SBE_INSTANCES_H

#include "sbe_batch.h"

#define ASI_SBE_HOT static inline __attribute__((always_inline))

/* All return false where there is no memory, and leave what there was. */
bool asi_sbe_grow(void **array, int64_t size, int64_t capacity);
bool asi_sbe_grow_instances(asi_sbe_instances *level, int64_t more);
bool asi_sbe_grow_list(asi_sbe_instances *level, int64_t more);
bool asi_sbe_grow_data(asi_sbe_content *data, int64_t more);

ASI_SBE_HOT bool asi_sbe_reserve_instances(asi_sbe_instances *level, int64_t more)
{
    return level->count + more <= level->capacity || asi_sbe_grow_instances(level, more);
}

/* Sets length and version of the instances from `count` on. If they differ from all before, values are stored per instance from
 * here. */
ASI_SBE_HOT void asi_sbe_take_shape(asi_sbe_instances *level, int32_t length, int64_t version)
{
    if (level->is_mixed || (length == level->length && version == level->version && level->count > 0))
    {
        return;
    }
    level->is_mixed = level->count > 0;
    for (int64_t i = 0; i < level->count; i++)
    {
        level->lengths[i] = level->length;
        level->versions[i] = level->version;
    }
    level->length = length;
    level->version = version;
}

ASI_SBE_HOT void asi_sbe_keep_shape(asi_sbe_instances *level, int32_t length, int64_t version, int64_t first, int64_t end)
{
    for (int64_t i = first; level->is_mixed && i < end; i++)
    {
        level->lengths[i] = length;
        level->versions[i] = version;
    }
    level->shortest = length < level->shortest ? length : level->shortest;
    level->oldest = version < level->oldest ? version : level->oldest;
}

ASI_SBE_HOT bool asi_sbe_reserve_list(asi_sbe_instances *level, int64_t more)
{
    return level->list_count + more + 1 <= level->list_capacity || asi_sbe_grow_list(level, more);
}

ASI_SBE_HOT bool asi_sbe_reserve_data(asi_sbe_content *data, int64_t more)
{
    return data->count + more <= data->capacity || asi_sbe_grow_data(data, more);
}

#endif
