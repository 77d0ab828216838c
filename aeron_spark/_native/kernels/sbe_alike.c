/* The walk over messages that are alike: same header, groups whose entries are blocks of one length, data behind them.
 *
 * Most batches hold nothing else, and most of the full walk's work is to be ready for everything else. Here a message is taken only
 * if nothing about it is new; whatever is (an error, too, a group that is the first to have entries, no room left in a list) ends the
 * run before anything of that message counts, and the full walk takes it. So there is one judge of messages, and this one says only
 * "as before". Instances, lists and data are kept beyond their counts until the message is taken whole. */
#include "sbe_alike.h"

#define HOT static inline __attribute__((always_inline))

#define MAX_MEMBERS 8

/* An unsigned number of 1 to 8 bytes, read as 8 of which the others are cut off. */
typedef struct number
{
    int32_t offset;
    int32_t spare_bits;
} number;

typedef struct alike_group
{
    asi_sbe_instances *instances;
    int32_t header_size;
    bool is_there;
    number length;
    number count;
    int64_t new_count;
} alike_group;

typedef struct alike_data
{
    asi_sbe_content *content;
    int32_t head;
    int32_t offset;
    bool is_there;
    number length;
} alike_data;

typedef struct alike
{
    uint64_t header;
    int64_t length;
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

/* False: the message's kind, or what the batch has seen so far, asks for the full walk. */
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
        a->groups[a->group_count++] = (alike_group){
            .instances = &batch->levels[child],
            .header_size = level->header_size,
            .is_there = level->since <= known->version,
            .length = number_of(&level->block_length),
            .count = number_of(&level->count)
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
        a->data[a->data_count++] = (alike_data){
            .content = &batch->data[index],
            .head = data->head,
            .offset = data->offset,
            .is_there = data->since <= known->version,
            .length = number_of(&data->length)
        };
    }
    return true;
}

/* Returns where the group ends, or -1. Eight bytes may be read from any of its header's. */
HOT int64_t take_group(alike_group *group, const uint8_t *bytes, int64_t at, int64_t end, int64_t version, bool is_big_endian)
{
    asi_sbe_instances *instances = group->instances;
    if (group->header_size > end - at)
    {
        return -1;
    }
    const int64_t length = read_number(bytes + at, group->length, is_big_endian);
    const int64_t count = read_number(bytes + at, group->count, is_big_endian);
    at += group->header_size;
    group->new_count = instances->count;
    if (0 == count)
    {
        return length >= 0 && length <= INT32_MAX ? at : -1;
    }
    if (0 == instances->count || instances->is_mixed || length != instances->length || version != instances->version ||
        length <= 0 || count < 0 || count > instances->capacity - instances->count || count > (end - at) / length ||
        instances->count + count > INT32_MAX)
    {
        return -1;
    }
    int64_t *starts = instances->starts + instances->count;
    for (int64_t i = 0; i < count; i++)
    {
        starts[i] = at + i * length;
    }
    group->new_count += count;
    return at + count * length;
}

HOT int64_t take_data(const alike_data *data, const uint8_t *bytes, int64_t at, int64_t end, bool is_big_endian)
{
    asi_sbe_content *content = data->content;
    if (!data->is_there)
    {
        content->starts[content->count] = 0;
        content->lengths[content->count] = -1;
        return at;
    }
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
    content->starts[content->count] = at;
    content->lengths[content->count] = (int32_t)length;
    return at + length;
}

HOT void end_lists(alike *a)
{
    for (int32_t k = 0; k < a->group_count; k++)
    {
        asi_sbe_instances *instances = a->groups[k].instances;
        const int64_t list = instances->list_count++;
        if (a->groups[k].is_there)
        {
            instances->count = a->groups[k].new_count;
        }
        else
        {
            instances->list_validity[list / 8] &= (uint8_t)~(1u << (list % 8));
        }
        instances->list_offsets[list + 1] = (int32_t)instances->count;
    }
    for (int32_t k = 0; k < a->data_count; k++)
    {
        asi_sbe_content *content = a->data[k].content;
        const int32_t length = content->lengths[content->count++];
        content->bytes += length > 0 ? length : 0;
    }
}

HOT int64_t walk(as_sbe_batch *batch, alike *a, const int64_t *starts, const int64_t *ends, int64_t first, bool is_big_endian)
{
    asi_sbe_instances *roots = &batch->levels[0];
    const uint8_t *bytes = batch->bytes;
    const int64_t version = roots->version;
    int64_t i = first;
    for (; i < batch->count; i++)
    {
        /* Numbers are read as 8 bytes, which must be bytes of the payloads; only the last message's may not be. */
        const int64_t end = ends[i];
        int64_t at = starts[i] + 8;
        if (end - at < a->length || asi_sbe_load(bytes + at - 8, 8, false) != a->header)
        {
            break;
        }
        roots->starts[roots->count] = at;
        at += a->length;
        for (int32_t k = 0; k < a->group_count && at >= 0; k++)
        {
            if (a->groups[k].is_there)
            {
                at = at + a->groups[k].header_size + 8 > batch->limit ? -1 :
                    take_group(&a->groups[k], bytes, at, end, version, is_big_endian);
            }
        }
        for (int32_t k = 0; k < a->data_count && at >= 0; k++)
        {
            at = at + a->data[k].head + 8 > batch->limit ? -1 : take_data(&a->data[k], bytes, at, end, is_big_endian);
        }
        if (at < 0)
        {
            break;
        }
        roots->count++;
        end_lists(a);
        batch->errors[i] = AS_SBE_OK;
        batch->ends[i] = at - starts[i];
        batch->unread += end - at;
    }
    return i;
}

int64_t asi_sbe_walk_alike(
    as_sbe_batch *batch, const asi_sbe_known *known, const int64_t *starts, const int64_t *ends, int64_t first)
{
    alike a;
    if (!learn(batch, known, &a))
    {
        return first;
    }
    return batch->plan->is_big_endian ? walk(batch, &a, starts, ends, first, true) : walk(batch, &a, starts, ends, first, false);
}
