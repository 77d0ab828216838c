/* Memory of a batch's instances and data; see sbe_instances.h. */
#include "sbe_instances.h"

#include <stdlib.h>

bool asi_sbe_grow(void **array, int64_t size, int64_t capacity)
{
    void *grown = realloc(*array, (size_t)(size * capacity));
    if (NULL == grown)
    {
        return false;
    }
    *array = grown;
    return true;
}

bool asi_sbe_grow_instances(asi_sbe_instances *level, int64_t more)
{
    const int64_t capacity = 2 * level->capacity + more + 64;
    if (!asi_sbe_grow((void **)&level->starts, sizeof(*level->starts), capacity) ||
        !asi_sbe_grow((void **)&level->versions, sizeof(*level->versions), capacity) ||
        !asi_sbe_grow((void **)&level->lengths, sizeof(*level->lengths), capacity))
    {
        return false;
    }
    level->capacity = capacity;
    return true;
}

bool asi_sbe_grow_list(asi_sbe_instances *level, int64_t more)
{
    const int64_t capacity = (2 * level->list_capacity + more + 71) / 8 * 8;
    if (!asi_sbe_grow((void **)&level->list_offsets, sizeof(*level->list_offsets), capacity) ||
        !asi_sbe_grow((void **)&level->list_validity, 1, (capacity + 7) / 8))
    {
        return false;
    }
    memset(level->list_validity + level->list_capacity / 8, 0xff, (size_t)(capacity / 8 - level->list_capacity / 8));
    level->list_capacity = capacity;
    level->list_offsets[0] = 0;
    return true;
}

bool asi_sbe_grow_data(asi_sbe_content *data, int64_t more)
{
    const int64_t capacity = 2 * data->capacity + more + 64;
    if (!asi_sbe_grow((void **)&data->starts, sizeof(*data->starts), capacity) ||
        !asi_sbe_grow((void **)&data->lengths, sizeof(*data->lengths), capacity))
    {
        return false;
    }
    data->capacity = capacity;
    return true;
}
