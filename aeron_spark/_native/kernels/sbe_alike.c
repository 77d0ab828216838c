/* Fast path of the walk, for alike messages: same header, groups whose entries are blocks of one length, followed by data.
 *
 * Most batches contain only such messages, and most of the full walk's cost is generality. This walk accepts a message only if
 * all of its properties are known. Anything new (an error, the first group with entries, no room left in a list) ends the run
 * before that message is counted, and the full walk processes it. So only the full walk validates messages; this one only detects
 * repetition. Instances, lists and data are written past their counts until the whole message is accepted. */
#include "sbe_alike.h"

#define HOT static inline __attribute__((always_inline))

#define MAX_MEMBERS 8

/* An unsigned number of 1 to 8 bytes, read as 8 bytes; a shift removes the excess bits. */
typedef struct number
{
    int32_t offset;
    int32_t spare_bits;
} number;

/* State of a group before the run, and the run's additions. Counts are kept here and written back at the end of the run. */
typedef struct alike_group
{
    asi_sbe_instances *instances;
    int32_t header_size;
    bool is_there;
    number block_length;
    number entry_count;
    int64_t length;   /* of all blocks so far; -1: they differ, or there are none */
    int64_t count;
    int64_t capacity;
    int64_t *starts;
    int32_t *list_offsets;
} alike_group;

typedef struct alike_data
{
    asi_sbe_content *content;
    int32_t head;
    int32_t offset;
    bool is_there;
    number length;
    int64_t *starts;
    int32_t *lengths;
    int64_t bytes;
} alike_data;

typedef struct alike
{
    uint64_t header;
    int64_t length;
    int64_t unread;
    int32_t group_count;
    int32_t data_count;
    alike_group groups[MAX_MEMBERS];
    alike_data data[MAX_MEMBERS];
} alike;

static bool is_plain(const as_sbe_role *role) { return role->size > 0 && !role->is_signed; }

static number number_of(const as_sbe_role *role) { return (number){ role->offset, 64 - 8 * role->size }; }

HOT int64_t read_number(const uint8_t *base, number of, bool is_big_endian)
{
    uint64_t bits;
    memcpy(&bits, base + of.offset, sizeof(bits));
    bits = is_big_endian ? __builtin_bswap64(bits) : bits << of.spare_bits;
    return (int64_t)(bits >> of.spare_bits);
}

/* False: the message's kind, or the batch's state, requires the full walk. */
static bool learn(as_sbe_batch *batch, const asi_sbe_known *known, alike *a)
{
    const as_sbe_plan *plan = batch->plan;
    const asi_sbe_instances *roots = &batch->levels[0];
    if (known->version > plan->own_version || roots->is_mixed || 0 == roots->count || roots->length != known->length ||
        roots->version != known->version)
    {
        return false;
    }
    *a = (alike){ .header = known->header, .length = known->length };
    for (int32_t child = plan->levels[0].first_child; child >= 0; child = plan->levels[child].next_sibling)
    {
        const as_sbe_level *level = &plan->levels[child];
        if (MAX_MEMBERS == a->group_count || level->first_child >= 0 || level->data_count > 0 ||
            !is_plain(&level->block_length) || !is_plain(&level->count))
        {
            return false;
        }
        asi_sbe_instances *instances = &batch->levels[child];
        const bool is_known = instances->count > 0 && !instances->is_mixed && instances->version == known->version;
        a->groups[a->group_count++] = (alike_group){
            .instances = instances,
            .header_size = level->header_size,
            .is_there = level->since <= known->version,
            .block_length = number_of(&level->block_length),
            .entry_count = number_of(&level->count),
            .length = is_known && instances->length > 0 ? instances->length : -1,
            .count = instances->count,
            .capacity = instances->capacity < INT32_MAX ? instances->capacity : INT32_MAX,
            .starts = instances->starts,
            .list_offsets = instances->list_offsets
        };
    }
    for (int32_t i = 0; i < plan->levels[0].data_count; i++)
    {
        const int32_t index = plan->levels[0].first_data + i;
        const as_sbe_data *data = &plan->data[index];
        if (MAX_MEMBERS == a->data_count || !is_plain(&data->length))
        {
            return false;
        }
        asi_sbe_content *content = &batch->data[index];
        a->data[a->data_count++] = (alike_data){
            .content = content,
            .starts = content->starts,
            .lengths = content->lengths,
            .head = data->head,
            .offset = data->offset,
            .is_there = data->since <= known->version,
            .length = number_of(&data->length)
        };
    }
    return true;
}

/* Returns the group's end, or -1. May read eight bytes from any field of its header. */
HOT int64_t take_group(const alike_group *group, const uint8_t *bytes, int64_t at, int64_t end, int64_t *added, bool is_big_endian)
{
    if (group->header_size > end - at)
    {
        return -1;
    }
    const int64_t length = read_number(bytes + at, group->block_length, is_big_endian);
    const int64_t count = read_number(bytes + at, group->entry_count, is_big_endian);
    at += group->header_size;
    *added = count;
    if (0 == count)
    {
        return length >= 0 && length <= INT32_MAX ? at : -1;
    }
    if (length <= 0 || length != group->length || count < 0 || count > group->capacity - group->count ||
        count * length > end - at)
    {
        return -1;
    }
    int64_t *starts = group->starts + group->count;
    for (int64_t i = 0; i < count; i++)
    {
        starts[i] = at + i * length;
    }
    return at + count * length;
}

/* Returns the end of message i's data, or -1. */
HOT int64_t take_data(const alike_data *data, const uint8_t *bytes, int64_t i, int64_t at, int64_t end, bool is_big_endian)
{
    if (data->head > end - at)
    {
        return -1;
    }
    const int64_t length = read_number(bytes + at, data->length, is_big_endian);
    at += data->offset;
    if (length < 0 || length > end - at || length > INT32_MAX)
    {
        return -1;
    }
    data->starts[i] = at;
    data->lengths[i] = (int32_t)length;
    return at + length;
}

/* Every message has one root, one list per group and one entry per data: all of them have index i. */
HOT int64_t walk_some(as_sbe_batch *batch, alike *a, const int64_t *starts, const int64_t *ends, int64_t first, int64_t count,
    bool is_big_endian, int32_t group_count, int32_t data_count)
{
    const uint8_t *bytes = batch->bytes;
    const int64_t limit = batch->limit;
    int64_t *roots = batch->levels[0].starts;
    int64_t i = first;
    for (; i < count; i++)
    {
        const int64_t end = ends[i];
        int64_t at = starts[i] + 8;
        int64_t added[MAX_MEMBERS];
        if (end - at < a->length || asi_sbe_load(bytes + at - 8, 8, false) != a->header)
        {
            return i;
        }
        roots[i] = at;
        at += a->length;
        for (int32_t k = 0; k < group_count; k++)
        {
            added[k] = 0;
            if (a->groups[k].is_there)
            {
                at = at + a->groups[k].header_size + 8 > limit ? -1 :
                    take_group(&a->groups[k], bytes, at, end, &added[k], is_big_endian);
            }
            if (at < 0)
            {
                return i;
            }
        }
        for (int32_t k = 0; k < data_count; k++)
        {
            if (a->data[k].is_there)
            {
                at = at + a->data[k].head + 8 > limit ? -1 : take_data(&a->data[k], bytes, i, at, end, is_big_endian);
            }
            else
            {
                a->data[k].starts[i] = 0;
                a->data[k].lengths[i] = -1;
            }
            if (at < 0)
            {
                return i;
            }
        }
        for (int32_t k = 0; k < group_count; k++)
        {
            a->groups[k].count += added[k];
            a->groups[k].list_offsets[i + 1] = (int32_t)a->groups[k].count;
        }
        for (int32_t k = 0; k < data_count; k++)
        {
            a->data[k].bytes += a->data[k].is_there ? a->data[k].lengths[i] : 0;
        }
        a->unread += end - at;
    }
    return i;
}

/* A separate loop for the common case. */
HOT int64_t walk(as_sbe_batch *batch, alike *a, const int64_t *starts, const int64_t *ends, int64_t first, int64_t count,
    bool is_big_endian)
{
    switch (16 * a->group_count + a->data_count)
    {
        case 0x00: return walk_some(batch, a, starts, ends, first, count, is_big_endian, 0, 0);
        case 0x01: return walk_some(batch, a, starts, ends, first, count, is_big_endian, 0, 1);
        case 0x10: return walk_some(batch, a, starts, ends, first, count, is_big_endian, 1, 0);
        case 0x20: return walk_some(batch, a, starts, ends, first, count, is_big_endian, 2, 0);
        default: return walk_some(batch, a, starts, ends, first, count, is_big_endian, a->group_count, a->data_count);
    }
}

static void keep(as_sbe_batch *batch, const alike *a, int64_t first, int64_t end)
{
    batch->levels[0].count += end - first;
    batch->unread += a->unread;
    for (int32_t k = 0; k < a->group_count; k++)
    {
        asi_sbe_instances *instances = a->groups[k].instances;
        instances->count = a->groups[k].count;
        instances->list_count += end - first;
        for (int64_t i = first; i < end && !a->groups[k].is_there; i++)
        {
            instances->list_validity[i / 8] &= (uint8_t)~(1u << (i % 8));
        }
    }
    for (int32_t k = 0; k < a->data_count; k++)
    {
        a->data[k].content->count += end - first;
        a->data[k].content->bytes += a->data[k].bytes;
    }
}

int64_t asi_sbe_walk_alike(
    as_sbe_batch *batch, const asi_sbe_known *known, const int64_t *starts, const int64_t *ends, int64_t first, int64_t count)
{
    alike a;
    if (!learn(batch, known, &a))
    {
        return first;
    }
    const int64_t end = batch->plan->is_big_endian ? walk(batch, &a, starts, ends, first, count, true) :
        walk(batch, &a, starts, ends, first, count, false);
    keep(batch, &a, first, end);
    return end;
}
