/* See sbe_program.h. The bytes are used in place: each structure is aligned, and its pointers are set to what follows it. */
#include "sbe_program.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 8
#define ARROW_ARRAY_WORDS 10
#define ARROW_RELEASE 8 /* the word of a struct ArrowArray that holds its release function; NULL: released */

struct asj_sbe
{
    uint8_t *program;
    as_sbe_plan *plan;
    int64_t later_count; /* numbers: level, version and end of each field of a later version */
    const int64_t *later;
    bool is_framed;
    int64_t skip;
    const as_sbe_framing *framing;
    int64_t other_count;
    const int64_t *others;
    as_sbe_task **tasks;
    int64_t *task_counts;
    as_sbe_node *nodes;  /* a struct of the wanted columns */
    int64_t node_count;
    as_sbe_batch *batch;
    int64_t capacity;    /* of messages */
    int64_t *starts;
    int64_t *ends;
    int64_t *payloads;
    int64_t *ids;
    uint8_t *errors;
    int64_t *wide_offsets;
    int64_t wide_capacity;
    int32_t *of_rows;
    bool has_of_rows;
    void *array[ARROW_ARRAY_WORDS];
};

typedef struct cursor
{
    uint8_t *at;
    int64_t left;
    bool is_bad;
} cursor;

static void *take(cursor *from, int64_t count, size_t size)
{
    if (from->is_bad || count < 0 || count > from->left / (int64_t)size)
    {
        from->is_bad = true;
        return NULL;
    }
    const int64_t length = (count * (int64_t)size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (length > from->left)
    {
        from->is_bad = true;
        return NULL;
    }
    void *taken = from->at;
    from->at += length;
    from->left -= length;
    return taken;
}

static int64_t take_number(cursor *from)
{
    const int64_t *number = take(from, 1, sizeof(int64_t));
    return NULL == number ? 0 : *number;
}

static const int64_t *take_numbers(cursor *from, int64_t *count)
{
    *count = take_number(from);
    return take(from, *count, sizeof(int64_t));
}

static void take_plan(cursor *from, asj_sbe *to)
{
    static const size_t SIZES[] = { sizeof(as_sbe_plan), sizeof(as_sbe_level), sizeof(as_sbe_data), sizeof(as_sbe_framing),
        sizeof(as_sbe_task), sizeof(as_sbe_node) };
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
    {
        from->is_bad |= take_number(from) != (int64_t)SIZES[i];
    }
    to->plan = take(from, 1, sizeof(as_sbe_plan));
    if (from->is_bad)
    {
        return;
    }
    as_sbe_level *levels = take(from, to->plan->level_count, sizeof(as_sbe_level));
    to->plan->levels = levels;
    for (int32_t i = 0; i < to->plan->level_count && !from->is_bad; i++)
    {
        levels[i].needs = take(from, levels[i].need_count, sizeof(as_sbe_need));
    }
    to->plan->data = take(from, to->plan->data_count, sizeof(as_sbe_data));
    to->later = take_numbers(from, &to->later_count);
    to->is_framed = 0 != take_number(from);
    to->skip = take_number(from);
    to->framing = to->is_framed ? take(from, 1, sizeof(as_sbe_framing)) : NULL;
    to->others = take_numbers(from, &to->other_count);
}

static void take_enum(cursor *from, as_sbe_task *task)
{
    const int64_t tables = take_number(from);
    if (1 == tables)
    {
        task->of_byte = take(from, UINT8_MAX + 1, sizeof(int16_t));
    }
    else if (2 == tables)
    {
        task->values = take(from, task->value_count, sizeof(int64_t));
        task->indices = take(from, task->value_count, sizeof(int16_t));
    }
}

static int64_t take_tasks(cursor *from, asj_sbe *to)
{
    const int32_t levels = to->plan->level_count;
    to->tasks = calloc((size_t)levels, sizeof(*to->tasks));
    to->task_counts = calloc((size_t)levels, sizeof(*to->task_counts));
    if (NULL == to->tasks || NULL == to->task_counts)
    {
        return ASJ_NO_MEMORY;
    }
    for (int32_t level = 0; level < levels && !from->is_bad; level++)
    {
        to->task_counts[level] = take_number(from);
        to->tasks[level] = take(from, to->task_counts[level], sizeof(as_sbe_task));
        for (int64_t i = 0; i < to->task_counts[level] && !from->is_bad; i++)
        {
            take_enum(from, &to->tasks[level][i]);
        }
    }
    return AS_OK;
}

static void take_node(cursor *from, as_sbe_node *node)
{
    const as_sbe_node *taken = take(from, 1, sizeof(*node));
    const bool has_column = 0 != take_number(from);
    const as_sbe_column *column = has_column ? take(from, 1, sizeof(*column)) : NULL;
    if (from->is_bad)
    {
        return;
    }
    *node = *taken;
    node->column = column;
    node->name_offsets = take(from, (int64_t)node->name_count + 1, sizeof(int32_t));
    node->names = take(from, NULL == node->name_offsets ? 0 : node->name_offsets[node->name_count], 1);
    node->bits = take(from, take_number(from), 1);
}

/* The column's nodes, from the first one on. */
static int64_t nodes_of(const as_sbe_node *nodes, int64_t left)
{
    int64_t count = 1;
    for (int32_t child = 0; child < nodes[0].child_count && count < left; child++)
    {
        count += nodes_of(nodes + count, left - count);
    }
    return count;
}

/* The nodes of the wanted columns, below a struct of the rows. */
static int64_t take_nodes(cursor *from, asj_sbe *to, const uint8_t *wanted, int64_t wanted_count)
{
    const int64_t count = take_number(from);
    if (from->is_bad || count < 0 || count > from->left)
    {
        return ASJ_NO_PROGRAM;
    }
    to->nodes = calloc((size_t)count + 1, sizeof(as_sbe_node));
    if (NULL == to->nodes)
    {
        return ASJ_NO_MEMORY;
    }
    as_sbe_node *all = to->nodes + 1;
    for (int64_t i = 0; i < count && !from->is_bad; i++)
    {
        take_node(from, &all[i]);
    }
    to->nodes[0] = (as_sbe_node){ .kind = AS_SBE_NODE_STRUCT, .repeat = 1 };
    int64_t kept = 0;
    int64_t column = 0;
    for (int64_t i = 0; i < count && !from->is_bad; column++)
    {
        const int64_t its = nodes_of(all + i, count - i);
        if (column < wanted_count && 0 != wanted[column])
        {
            memmove(all + kept, all + i, (size_t)its * sizeof(as_sbe_node));
            kept += its;
            to->nodes[0].child_count++;
        }
        i += its;
    }
    to->node_count = kept + 1;
    return column == wanted_count ? AS_OK : ASJ_NO_PROGRAM;
}

/* Leaves out tasks that no node uses. */
static int64_t keep_used_tasks(asj_sbe *to)
{
    for (int32_t level = 0; level < to->plan->level_count; level++)
    {
        const int64_t count = to->task_counts[level];
        int32_t *moved = malloc((size_t)(count + 1) * sizeof(int32_t));
        if (NULL == moved)
        {
            return ASJ_NO_MEMORY;
        }
        memset(moved, -1, (size_t)(count + 1) * sizeof(int32_t));
        int64_t kept = 0;
        bool is_right = true;
        for (int64_t i = 0; i < to->node_count; i++)
        {
            as_sbe_node *node = &to->nodes[i];
            if (node->level == level && (AS_SBE_NODE_NUMBERS == node->kind || AS_SBE_NODE_ENUM == node->kind))
            {
                is_right &= node->index >= 0 && node->index < count && -1 == moved[node->index];
                moved[is_right ? node->index : 0] = 0;
            }
        }
        for (int64_t i = 0; i < count; i++)
        {
            if (0 == moved[i])
            {
                moved[i] = (int32_t)kept;
                to->tasks[level][kept++] = to->tasks[level][i];
            }
        }
        to->task_counts[level] = kept;
        for (int64_t i = 0; i < to->node_count && is_right; i++)
        {
            as_sbe_node *node = &to->nodes[i];
            if (node->level == level && (AS_SBE_NODE_NUMBERS == node->kind || AS_SBE_NODE_ENUM == node->kind))
            {
                node->index = moved[node->index];
            }
        }
        free(moved);
        if (!is_right)
        {
            return ASJ_NO_PROGRAM;
        }
    }
    return AS_OK;
}

static int64_t build(asj_sbe *to, int64_t length, const uint8_t *wanted, int64_t wanted_count)
{
    cursor from = { .at = to->program, .left = length };
    take_plan(&from, to);
    if (from.is_bad)
    {
        return ASJ_NO_PROGRAM;
    }
    int64_t result = take_tasks(&from, to);
    result = AS_OK == result ? take_nodes(&from, to, wanted, wanted_count) : result;
    if (AS_OK != result || from.is_bad)
    {
        return AS_OK != result ? result : ASJ_NO_PROGRAM;
    }
    result = keep_used_tasks(to);
    return AS_OK != result ? result : AS_OK == as_sbe_batch_open(to->plan, &to->batch) ? AS_OK : ASJ_NO_MEMORY;
}

int64_t asj_sbe_open(const uint8_t *bytes, int64_t length, const uint8_t *wanted, int64_t wanted_count, asj_sbe **opened)
{
    asj_sbe *made = calloc(1, sizeof(*made));
    if (NULL == made)
    {
        return ASJ_NO_MEMORY;
    }
    made->program = malloc((size_t)length + ALIGNMENT);
    if (NULL == made->program)
    {
        free(made);
        return ASJ_NO_MEMORY;
    }
    memcpy(made->program, bytes, (size_t)length);
    const int64_t result = build(made, length, wanted, wanted_count);
    if (AS_OK != result)
    {
        asj_sbe_close(made);
        return result;
    }
    *opened = made;
    return AS_OK;
}

static void release_array(asj_sbe *sbe)
{
    void (*release)(void *array) = NULL;
    memcpy(&release, &sbe->array[ARROW_RELEASE], sizeof(release));
    if (NULL != release)
    {
        release(sbe->array);
        sbe->array[ARROW_RELEASE] = NULL;
    }
}

void asj_sbe_close(asj_sbe *sbe)
{
    release_array(sbe);
    as_sbe_batch_close(sbe->batch);
    free(sbe->tasks);
    free(sbe->task_counts);
    free(sbe->nodes);
    free(sbe->starts);
    free(sbe->ends);
    free(sbe->payloads);
    free(sbe->ids);
    free(sbe->errors);
    free(sbe->of_rows);
    free(sbe->wide_offsets);
    free(sbe->program);
    free(sbe);
}

static bool grow(void *memory, int64_t count, size_t size)
{
    void *old;
    memcpy(&old, memory, sizeof(old));
    void *grown = realloc(old, (size_t)count * size);
    if (NULL != grown)
    {
        memcpy(memory, &grown, sizeof(grown));
    }
    return NULL != grown;
}

static bool reserve(asj_sbe *sbe, int64_t count)
{
    if (count <= sbe->capacity)
    {
        return true;
    }
    if (!grow(&sbe->starts, count, sizeof(int64_t)) || !grow(&sbe->ends, count, sizeof(int64_t)) ||
        !grow(&sbe->payloads, count, sizeof(int64_t)) || !grow(&sbe->ids, count, sizeof(int64_t)) ||
        !grow(&sbe->errors, count, 1) || !grow(&sbe->of_rows, count, sizeof(int32_t)))
    {
        return false;
    }
    sbe->capacity = count;
    return true;
}

/* Messages of payloads that are messages. */
static int64_t whole(asj_sbe *sbe, const int32_t *offsets, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
    {
        const int64_t start = offsets[i] + sbe->skip;
        sbe->ends[i] = offsets[i + 1];
        sbe->starts[i] = start < sbe->ends[i] ? start : sbe->ends[i];
        sbe->payloads[i] = i;
    }
    return count;
}

/* Messages in the frames of payloads. */
static int64_t framed(asj_sbe *sbe, const uint8_t *bytes, const int32_t *offsets, int64_t count)
{
    if (count >= sbe->wide_capacity)
    {
        if (!grow(&sbe->wide_offsets, count + 1, sizeof(int64_t)))
        {
            return ASJ_NO_MEMORY;
        }
        sbe->wide_capacity = count + 1;
    }
    for (int64_t i = 0; i <= count; i++)
    {
        sbe->wide_offsets[i] = offsets[i];
    }
    int64_t found = sbe->capacity;
    do
    {
        if (!reserve(sbe, found))
        {
            return ASJ_NO_MEMORY;
        }
        found = as_sbe_frames(sbe->framing, bytes, sbe->wide_offsets, count, sbe->capacity, sbe->starts, sbe->ends,
            sbe->payloads, sbe->errors);
    } while (found > sbe->capacity);
    for (int64_t i = 0; i < found; i++)
    {
        if (0 != sbe->errors[i] || sbe->ends[i] - sbe->starts[i] < sbe->plan->header_size)
        {
            return ASJ_NOT_PLAIN;
        }
    }
    return found;
}

static int compare(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a;
    const int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Leaves out messages of other templates. */
static int64_t without_others(asj_sbe *sbe, const uint8_t *bytes, int64_t count)
{
    if (0 == sbe->other_count)
    {
        return count;
    }
    if (AS_OK != as_sbe_template_ids(sbe->plan, bytes, sbe->starts, sbe->ends, count, sbe->ids))
    {
        return ASJ_NO_MEMORY;
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
    {
        if (sbe->ids[i] == sbe->plan->own_template_id ||
            NULL == bsearch(&sbe->ids[i], sbe->others, (size_t)sbe->other_count, sizeof(int64_t), compare))
        {
            sbe->starts[kept] = sbe->starts[i];
            sbe->ends[kept] = sbe->ends[i];
            sbe->payloads[kept++] = sbe->payloads[i];
        }
    }
    return kept;
}

static bool has_short_fields(const asj_sbe *sbe)
{
    for (int64_t i = 0; i + 2 < sbe->later_count; i += 3)
    {
        if (as_sbe_batch_short(sbe->batch, (int32_t)sbe->later[i], sbe->later[i + 1], (int32_t)sbe->later[i + 2]) > 0)
        {
            return true;
        }
    }
    return false;
}

/* Of those, all are decoded, or none. */
static int64_t columns_of(asj_sbe *sbe, const uint8_t *bytes, int64_t count)
{
    if (AS_OK != as_sbe_batch_walk(sbe->batch, bytes, sbe->starts, sbe->ends, count) ||
        as_sbe_batch_error_count(sbe->batch) > 0 || has_short_fields(sbe))
    {
        return ASJ_NOT_PLAIN;
    }
    if (1 == sbe->node_count)
    {
        return count;
    }
    int64_t lost = 0;
    int64_t unknown = 0;
    const as_result result = as_sbe_export(sbe->batch, sbe->nodes, sbe->node_count, (as_sbe_task *const *)sbe->tasks,
        sbe->task_counts, sbe->array, &lost, &unknown);
    if (AS_OK != result || unknown > 0)
    {
        sbe->array[ARROW_RELEASE] = NULL;
        return ASJ_NOT_PLAIN;
    }
    return lost > 0 ? ASJ_NOT_PLAIN : count;
}

int64_t asj_sbe_decode(asj_sbe *sbe, const uint8_t *bytes, const int32_t *offsets, int64_t count)
{
    release_array(sbe);
    if (!reserve(sbe, count))
    {
        return ASJ_NO_MEMORY;
    }
    int64_t found = sbe->is_framed ? framed(sbe, bytes, offsets, count) : whole(sbe, offsets, count);
    found = found < 0 ? found : without_others(sbe, bytes, found);
    found = found < 0 ? found : columns_of(sbe, bytes, found);
    sbe->has_of_rows = sbe->is_framed || found != count;
    for (int64_t i = 0; i < found && sbe->has_of_rows; i++)
    {
        sbe->of_rows[i] = (int32_t)sbe->payloads[i];
    }
    return found;
}

const void *asj_sbe_array(const asj_sbe *sbe) { return NULL == sbe->array[ARROW_RELEASE] ? NULL : sbe->array; }

const int32_t *asj_sbe_payloads(const asj_sbe *sbe) { return sbe->has_of_rows ? sbe->of_rows : NULL; }
