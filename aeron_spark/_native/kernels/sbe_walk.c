/* The walk: checks all bounds, once. See as_sbe.h. */
#include "sbe_alike.h"
#include "sbe_instances.h"

#define MESSAGES_AT_A_TIME 1024 /* a multiple of 64, for asi_sbe_gather_some; of usual messages the L2 cache holds so many */
#define EMPTY_ENTRIES (1 << 20) /* that a batch may have, and EMPTY_ENTRIES_OF_A_MESSAGE more for each message */
#define EMPTY_ENTRIES_OF_A_MESSAGE 64
#define MAX_SKIP_DEPTH 64 /* maximum nesting depth of unknown groups */

typedef struct walk
{
    as_sbe_batch *batch;
    int64_t at;
    int64_t end;
    int64_t version;
    int64_t empty_entries; /* of the message: entries that took no bytes; the remaining bytes bound all others */
    int64_t empty_entries_left; /* of the batch */
    as_sbe_error error;
    bool has_memory;
    bool has_known;          /* the last header of 8 bytes, decoded; most headers repeat it */
    asi_sbe_known known;
    int64_t known_groups;
    int64_t known_data;
} walk;

ASI_SBE_HOT int64_t role_of(const as_sbe_plan *plan, const as_sbe_role *role, const uint8_t *base)
{
    if (0 == role->size)
    {
        return role->constant;
    }
    const uint64_t value = asi_sbe_load(base + role->offset, role->size, plan->is_big_endian);
    if (role->is_signed)
    {
        return asi_sbe_extend(value, role->size);
    }
    /* Clamped to INT64_MAX: exceeds any message's length and any version, and is never negative. */
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static bool fail(walk *w, as_sbe_error error)
{
    w->error = error;
    return false;
}

static bool out_of_memory(walk *w)
{
    w->has_memory = false;
    return false;
}

/* Counts `count` more entries that take no bytes. */
ASI_SBE_HOT bool take_empty(walk *w, int64_t count)
{
    if (count > w->batch->plan->max_entries - w->empty_entries)
    {
        return fail(w, AS_SBE_LIMIT);
    }
    w->empty_entries += count;
    return true;
}

ASI_SBE_HOT bool add_instance(walk *w, asi_sbe_instances *level, int64_t start, int32_t length)
{
    if (!asi_sbe_reserve_instances(level, 1))
    {
        return out_of_memory(w);
    }
    asi_sbe_take_shape(level, length, w->version);
    asi_sbe_keep_shape(level, length, w->version, level->count, level->count + 1);
    level->starts[level->count++] = start;
    return true;
}

ASI_SBE_HOT bool end_list(walk *w, asi_sbe_instances *level, bool is_there)
{
    if (!asi_sbe_reserve_list(level, 1) || level->count > INT32_MAX)
    {
        return out_of_memory(w);
    }
    const int64_t i = level->list_count++;
    level->list_offsets[i + 1] = (int32_t)level->count;
    if (is_there)
    {
        level->list_validity[i / 8] |= (uint8_t)(1u << (i % 8));
    }
    else
    {
        level->list_validity[i / 8] &= (uint8_t)~(1u << (i % 8));
    }
    return true;
}

ASI_SBE_HOT bool add_data(walk *w, asi_sbe_content *data, int64_t start, int32_t length)
{
    if (!asi_sbe_reserve_data(data, 1))
    {
        return out_of_memory(w);
    }
    data->starts[data->count] = start;
    data->lengths[data->count] = length;
    data->count++;
    data->bytes += length > 0 ? length : 0;
    return true;
}

ASI_SBE_HOT bool walk_data(walk *w, int32_t index)
{
    const as_sbe_plan *plan = w->batch->plan;
    const as_sbe_data *data = &plan->data[index];
    if (data->since > w->version)
    {
        return add_data(w, &w->batch->data[index], 0, -1);
    }
    if (data->head > w->end - w->at)
    {
        return fail(w, AS_SBE_SHORT_DATA_LENGTH);
    }
    const int64_t length = role_of(plan, &data->length, w->batch->bytes + w->at);
    w->at += data->offset;
    if (length < 0 || length > w->end - w->at || length > INT32_MAX)
    {
        return fail(w, AS_SBE_SHORT_DATA);
    }
    const int64_t start = w->at;
    w->at += length;
    return add_data(w, &w->batch->data[index], start, (int32_t)length);
}

/* Number of groups and data after a block: -1, as many as the schema has. */
typedef struct following
{
    int64_t groups;
    int64_t data;
} following;

/* Only newer versions have more than the schema knows. */
ASI_SBE_HOT following told(const walk *w, const as_sbe_role *groups, const as_sbe_role *data, const uint8_t *header)
{
    const as_sbe_plan *plan = w->batch->plan;
    return w->version <= plan->own_version ? (following){ -1, -1 } :
        (following){ role_of(plan, groups, header), role_of(plan, data, header) };
}

static bool walk_group(walk *w, int32_t index);
static bool skip_group(walk *w, const as_sbe_level *like, int32_t depth);

/* Unknown data has the encoding of its level's known data. */
static bool skip_data(walk *w, const as_sbe_level *level)
{
    const as_sbe_plan *plan = w->batch->plan;
    if (0 == level->data_count)
    {
        return fail(w, AS_SBE_NEWER_VERSION);
    }
    const as_sbe_data *like = &plan->data[level->first_data];
    if (like->head > w->end - w->at)
    {
        return fail(w, AS_SBE_SHORT_DATA_LENGTH);
    }
    const int64_t length = role_of(plan, &like->length, w->batch->bytes + w->at);
    w->at += like->offset;
    if (length < 0 || length > w->end - w->at)
    {
        return fail(w, AS_SBE_SHORT_DATA);
    }
    w->at += length;
    return true;
}

static bool skip_rest(walk *w, const as_sbe_level *level, following more, int32_t depth)
{
    for (int64_t i = 0; i < more.groups; i++)
    {
        const int64_t start = w->at;
        if (!skip_group(w, level, depth) || (start == w->at && !take_empty(w, 1)))
        {
            return false;
        }
    }
    for (int64_t i = 0; i < more.data; i++)
    {
        const int64_t start = w->at;
        if (!skip_data(w, level) || (start == w->at && !take_empty(w, 1)))
        {
            return false;
        }
    }
    return true;
}

/* An unknown group has the dimension encoding of its level's known groups, and its header states its own content. */
static bool skip_group(walk *w, const as_sbe_level *level, int32_t depth)
{
    const as_sbe_plan *plan = w->batch->plan;
    const as_sbe_level *like = level->first_child < 0 ? NULL : &plan->levels[level->first_child];
    if (NULL == like || (0 == like->groups_told.size && -1 == like->groups_told.constant) || depth >= MAX_SKIP_DEPTH)
    {
        return fail(w, AS_SBE_NEWER_VERSION);
    }
    if (like->header_size > w->end - w->at)
    {
        return fail(w, AS_SBE_SHORT_GROUP_HEADER);
    }
    const uint8_t *header = w->batch->bytes + w->at;
    const int64_t length = role_of(plan, &like->block_length, header);
    const int64_t count = role_of(plan, &like->count, header);
    const following inner = told(w, &like->groups_told, &like->data_told, header);
    w->at += like->header_size;
    if (length < 0 || count < 0)
    {
        return fail(w, AS_SBE_SHORT_GROUP_ENTRY);
    }
    if (0 == length && inner.groups <= 0 && inner.data <= 0)
    {
        return take_empty(w, count);
    }
    for (int64_t i = 0; i < count; i++)
    {
        const int64_t start = w->at;
        if (length > w->end - w->at)
        {
            return fail(w, AS_SBE_SHORT_GROUP_ENTRY);
        }
        w->at += length;
        if (!skip_rest(w, level, inner, depth + 1) || (start == w->at && !take_empty(w, 1)))
        {
            return false;
        }
    }
    return true;
}

/* Walks the part after a block: its groups, then its data. */
static inline bool walk_rest(walk *w, const as_sbe_level *level, following there)
{
    int64_t groups = 0;
    for (int32_t child = level->first_child; child >= 0; child = w->batch->plan->levels[child].next_sibling, groups++)
    {
        if (!walk_group(w, child))
        {
            return false;
        }
    }
    if (there.groups > groups && !skip_rest(w, level, (following){ there.groups - groups, 0 }, 0))
    {
        return false;
    }
    for (int32_t i = 0; i < level->data_count; i++)
    {
        if (!walk_data(w, level->first_data + i))
        {
            return false;
        }
    }
    return there.data <= level->data_count || skip_rest(w, level, (following){ 0, there.data - level->data_count }, 0);
}

/* Adds entries that contain only their block, without a walk of each. */
ASI_SBE_HOT bool add_bare_entries(walk *w, asi_sbe_instances *instances, int64_t length, int64_t count)
{
    if (!asi_sbe_reserve_instances(instances, count))
    {
        return out_of_memory(w);
    }
    if (0 == count)
    {
        return true;
    }
    asi_sbe_take_shape(instances, (int32_t)length, w->version);
    asi_sbe_keep_shape(instances, (int32_t)length, w->version, instances->count, instances->count + count);
    int64_t *starts = instances->starts + instances->count;
    for (int64_t i = 0; i < count; i++)
    {
        starts[i] = w->at + i * length;
    }
    instances->count += count;
    w->at += count * length;
    return true;
}

/* Whether a block of this length lacks a field that it must have. */
ASI_SBE_HOT bool is_too_small(const walk *w, const as_sbe_level *level, int64_t length)
{
    if (length < level->need)
    {
        return true;
    }
    for (int32_t i = 0; i < level->need_count; i++)
    {
        if (level->needs[i].since <= w->version && length < level->needs[i].end)
        {
            return true;
        }
    }
    return false;
}

ASI_SBE_HOT bool walk_entries(walk *w, const as_sbe_level *level, asi_sbe_instances *instances, int64_t length, int64_t count,
    following there)
{
    const bool is_bare = level->first_child < 0 && 0 == level->data_count && there.groups <= 0 && there.data <= 0;
    if (is_bare && 0 == length && !take_empty(w, count))
    {
        return false;
    }
    if (count > 0 && length <= w->end - w->at && is_too_small(w, level, length))
    {
        return fail(w, AS_SBE_GROUP_BLOCK_TOO_SMALL);
    }
    if (is_bare)
    {
        const int64_t whole = 0 == length ? count : (w->end - w->at) / length;
        if (count > whole)
        {
            w->at += whole * length;
            return fail(w, AS_SBE_SHORT_GROUP_ENTRY);
        }
        return add_bare_entries(w, instances, length, count);
    }
    for (int64_t i = 0; i < count; i++)
    {
        const int64_t start = w->at;
        if (length > w->end - w->at)
        {
            return fail(w, AS_SBE_SHORT_GROUP_ENTRY);
        }
        if (!add_instance(w, instances, w->at, (int32_t)length))
        {
            return false;
        }
        w->at += length;
        if (!walk_rest(w, level, there) || (start == w->at && !take_empty(w, 1)))
        {
            return false;
        }
    }
    return true;
}

static bool walk_group(walk *w, int32_t index)
{
    const as_sbe_plan *plan = w->batch->plan;
    const as_sbe_level *level = &plan->levels[index];
    asi_sbe_instances *instances = &w->batch->levels[index];
    if (level->since > w->version)
    {
        return end_list(w, instances, false);
    }
    if (level->header_size > w->end - w->at)
    {
        return fail(w, AS_SBE_SHORT_GROUP_HEADER);
    }
    const uint8_t *header = w->batch->bytes + w->at;
    const int64_t length = role_of(plan, &level->block_length, header);
    const int64_t count = role_of(plan, &level->count, header);
    const following there = told(w, &level->groups_told, &level->data_told, header);
    w->at += level->header_size;
    if (length < 0 || count < 0 || (count > 0 && length > INT32_MAX))
    {
        return fail(w, AS_SBE_SHORT_GROUP_ENTRY);
    }
    return walk_entries(w, level, instances, length, count, there) && end_list(w, instances, true);
}

ASI_SBE_HOT bool walk_header(walk *w, int64_t *block_length, following *there)
{
    const as_sbe_plan *plan = w->batch->plan;
    const uint8_t *header = w->batch->bytes + w->at;
    if (w->end - w->at < plan->header_size)
    {
        return fail(w, AS_SBE_SHORT_HEADER);
    }
    if (w->has_known && asi_sbe_load(header, 8, false) == w->known.header)
    {
        w->version = w->known.version;
        *block_length = w->known.length;
        *there = (following){ w->known_groups, w->known_data };
        w->at += 8;
        return true;
    }
    w->version = role_of(plan, &plan->version, header);
    if (role_of(plan, &plan->schema_id, header) != plan->own_schema_id)
    {
        return fail(w, AS_SBE_UNKNOWN_SCHEMA);
    }
    if (role_of(plan, &plan->template_id, header) != plan->own_template_id)
    {
        return fail(w, AS_SBE_UNKNOWN_TEMPLATE);
    }
    if (plan->wants_own_version && w->version != plan->own_version)
    {
        return fail(w, AS_SBE_HEADER_INCOMPLETE);
    }
    *block_length = role_of(plan, &plan->block_length, header);
    *there = told(w, &plan->groups_told, &plan->data_told, header);
    w->at += plan->header_size;
    w->has_known = 8 == plan->header_size;
    if (w->has_known)
    {
        w->known = (asi_sbe_known){ asi_sbe_load(header, 8, false), w->version, *block_length };
        w->known_groups = there->groups;
        w->known_data = there->data;
    }
    return true;
}

ASI_SBE_HOT bool walk_message(walk *w)
{
    const as_sbe_plan *plan = w->batch->plan;
    int64_t length;
    following there;
    if (!walk_header(w, &length, &there))
    {
        return false;
    }
    if (length < 0 || length > w->end - w->at || length > INT32_MAX)
    {
        return fail(w, AS_SBE_SHORT_BLOCK);
    }
    if (is_too_small(w, &plan->levels[0], length))
    {
        return fail(w, AS_SBE_BLOCK_TOO_SMALL);
    }
    if (!add_instance(w, &w->batch->levels[0], w->at, (int32_t)length))
    {
        return false;
    }
    w->at += length;
    return walk_rest(w, &plan->levels[0], there);
}

ASI_SBE_HOT void take_marks(const as_sbe_batch *batch, asi_sbe_mark *marks)
{
    const as_sbe_plan *plan = batch->plan;
    for (int32_t i = 0; i < plan->level_count; i++)
    {
        marks[i] = (asi_sbe_mark){ batch->levels[i].count, batch->levels[i].list_count };
    }
    for (int32_t i = 0; i < plan->data_count; i++)
    {
        marks[plan->level_count + i] = (asi_sbe_mark){ batch->data[i].count, 0 };
    }
}

/* Marks the message as an absent instance, with absent groups and data. */
static bool give_up_message(walk *w, const asi_sbe_mark *marks)
{
    as_sbe_batch *batch = w->batch;
    const as_sbe_plan *plan = batch->plan;
    for (int32_t i = 0; i < plan->level_count; i++)
    {
        batch->levels[i].count = marks[i].count;
        batch->levels[i].list_count = marks[i].list_count;
    }
    for (int32_t i = 0; i < plan->data_count; i++)
    {
        asi_sbe_content *data = &batch->data[i];
        while (data->count > marks[plan->level_count + i].count)
        {
            data->count--;
            data->bytes -= data->lengths[data->count] > 0 ? data->lengths[data->count] : 0;
        }
    }
    w->version = 0;
    if (!add_instance(w, &batch->levels[0], 0, -1))
    {
        return false;
    }
    for (int32_t child = plan->levels[0].first_child; child >= 0; child = plan->levels[child].next_sibling)
    {
        if (!end_list(w, &batch->levels[child], false))
        {
            return false;
        }
    }
    for (int32_t i = 0; i < plan->levels[0].data_count; i++)
    {
        if (!add_data(w, &batch->data[plan->levels[0].first_data + i], 0, -1))
        {
            return false;
        }
    }
    return true;
}

/* Reserves the root's members for all messages; lists count as present until a message lacks one. */
static bool reserve_members(as_sbe_batch *batch)
{
    const as_sbe_plan *plan = batch->plan;
    bool is_done = asi_sbe_reserve_instances(&batch->levels[0], batch->count);
    for (int32_t i = 1; is_done && i < plan->level_count; i++)
    {
        is_done = asi_sbe_reserve_list(&batch->levels[i], 0);
    }
    for (int32_t child = plan->levels[0].first_child; is_done && child >= 0; child = plan->levels[child].next_sibling)
    {
        is_done = asi_sbe_reserve_list(&batch->levels[child], batch->count);
        if (is_done)
        {
            memset(batch->levels[child].list_validity, 0xff, (size_t)(batch->count + 7) / 8);
        }
    }
    for (int32_t i = 0; is_done && i < plan->levels[0].data_count; i++)
    {
        is_done = asi_sbe_reserve_data(&batch->data[plan->levels[0].first_data + i], batch->count);
    }
    return is_done;
}

/* Each message has one root, present or not, so that its values can be gathered before the next message is walked: what is known
 * of all roots so far is true of it. */
static as_result walk_all(
    as_sbe_batch *batch, const int64_t *starts, const int64_t *ends, as_sbe_task *tasks, int64_t task_count)
{
    const as_sbe_plan *plan = batch->plan;
    /* One message is never too much. */
    const int64_t most = INT64_MAX / 2;
    const int64_t least = plan->max_entries < EMPTY_ENTRIES ? EMPTY_ENTRIES : plan->max_entries > most ? most : plan->max_entries;
    walk w = { .batch = batch, .has_memory = true, .empty_entries_left = least + EMPTY_ENTRIES_OF_A_MESSAGE * batch->count };
    if (!reserve_members(batch))
    {
        return AS_E_INTERNAL;
    }
    for (int64_t i = 0; i < batch->count; i++)
    {
        batch->limit = ends[i] > batch->limit ? ends[i] : batch->limit;
    }
    const int64_t step = task_count > 0 ? MESSAGES_AT_A_TIME : batch->count;
    int64_t gathered = 0;
    for (int64_t i = 0; i < batch->count; i++)
    {
        const int64_t stop = batch->count - gathered < step ? batch->count : gathered + step;
        w.at = starts[i];
        w.end = ends[i];
        w.error = AS_SBE_OK;
        w.version = 0;
        w.empty_entries = 0;
        take_marks(batch, batch->marks);
        if (!walk_message(&w))
        {
            const bool is_newer = w.version > plan->own_version && w.error >= AS_SBE_SHORT_BLOCK;
            if (!w.has_memory || !give_up_message(&w, batch->marks))
            {
                return AS_E_INTERNAL;
            }
            w.error = is_newer ? AS_SBE_NEWER_VERSION : w.error;
            batch->error_count++;
            w.empty_entries = 0;
        }
        w.empty_entries_left -= w.empty_entries;
        if (w.empty_entries_left < 0)
        {
            return AS_E_USAGE;
        }
        batch->unread += AS_SBE_OK == w.error ? w.end - w.at : 0;
        batch->errors[i] = (uint8_t)w.error;
        batch->ends[i] = w.at - starts[i];
        if (w.has_known && AS_SBE_OK == w.error)
        {
            i = asi_sbe_walk_alike(batch, &w.known, starts, ends, i + 1, stop) - 1;
        }
        if (i + 1 == stop)
        {
            asi_sbe_gather_some(batch, tasks, task_count, gathered, stop);
            gathered = stop;
        }
    }
    return AS_OK;
}

static bool reserve_messages(as_sbe_batch *batch, int64_t count)
{
    if (count <= batch->capacity && NULL != batch->errors)
    {
        return true;
    }
    if (!asi_sbe_grow((void **)&batch->errors, 1, count + 1) || !asi_sbe_grow((void **)&batch->ends, sizeof(*batch->ends), count + 1))
    {
        return false;
    }
    batch->capacity = count;
    return true;
}

as_result as_sbe_batch_walk(as_sbe_batch *batch, const uint8_t *bytes, const int64_t *starts, const int64_t *ends, int64_t count)
{
    return as_sbe_batch_walk_gather(batch, bytes, starts, ends, count, NULL, 0);
}

as_result as_sbe_batch_walk_gather(as_sbe_batch *batch, const uint8_t *bytes, const int64_t *starts, const int64_t *ends,
    int64_t count, as_sbe_task *tasks, int64_t task_count)
{
    if (!reserve_messages(batch, count))
    {
        return AS_E_INTERNAL;
    }
    batch->bytes = bytes;
    batch->count = count;
    batch->limit = 0;
    batch->error_count = 0;
    batch->unread = 0;
    memset(batch->errors, AS_SBE_OK, (size_t)count);
    for (int32_t i = 0; i < batch->plan->level_count; i++)
    {
        asi_sbe_instances *level = &batch->levels[i];
        level->count = 0;
        level->list_count = 0;
        level->is_mixed = false;
        level->shortest = INT32_MAX;
        level->oldest = INT64_MAX;
    }
    for (int32_t i = 0; i < batch->plan->data_count; i++)
    {
        batch->data[i].count = 0;
        batch->data[i].bytes = 0;
    }
    asi_sbe_clear_counts(tasks, task_count);
    return walk_all(batch, starts, ends, tasks, task_count);
}

as_result as_sbe_template_ids(const as_sbe_plan *plan, const uint8_t *bytes, const int64_t *starts, const int64_t *ends,
    int64_t count, int64_t *template_ids)
{
    for (int64_t i = 0; i < count; i++)
    {
        template_ids[i] =
            ends[i] - starts[i] < plan->header_size ? -1 : role_of(plan, &plan->template_id, bytes + starts[i]);
    }
    return AS_OK;
}
