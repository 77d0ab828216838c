/* Exports a walked batch as one Arrow array, by the C data interface. See as_sbe.h.
 *
 * One block of memory holds everything: the array structs, their buffers, and the names of enums. Releasing the root frees it.
 * The interface allows an importer to move children out so that they outlive the root; this export does not support that. Arrow,
 * the only importer, keeps them together. */
#include <limits.h>
#include <stdlib.h>

#include "sbe_place.h"

#define ALIGNMENT 64
#define SPARE_BYTES 16 /* after text, for copies of fixed length */
#define BUFFERS_MAX 3

/* As defined by the Arrow C data interface. */
struct ArrowArray
{
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *array);
    void *private_data;
};

typedef struct one
{
    struct ArrowArray array;
    const void *buffers[BUFFERS_MAX];
} one;

typedef struct export
{
    const as_sbe_batch *batch;
    const as_sbe_node *nodes;
    int64_t node_count;
    one *arrays;                   /* of the nodes, then what belongs to one: dictionaries, a set's items */
    one *more;                     /* the next of those */
    struct ArrowArray **children;  /* room for one pointer per node */
    uint8_t *at;                   /* the next free buffer */
} export;

static void release_part(struct ArrowArray *array) { array->release = NULL; }

static void release_all(struct ArrowArray *array)
{
    array->release = NULL;
    free(array->private_data);
}

static int64_t up(int64_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* How many instances. */
static int64_t count_of(const as_sbe_batch *batch, const as_sbe_node *node)
{
    return batch->levels[AS_SBE_NODE_LIST == node->kind ? node->parent : node->level].count;
}

/* How many values of a task. */
static int64_t number_count(const as_sbe_batch *batch, const as_sbe_node *node)
{
    return batch->levels[node->level].count * node->repeat;
}

static int64_t size_of_names(const as_sbe_node *node)
{
    return 0 == node->name_count ? 0 : up(4 * ((int64_t)node->name_count + 1)) + up(node->name_offsets[node->name_count]);
}

/* Arrays besides the node's own. */
static int64_t more_count(const as_sbe_node *node)
{
    const bool has_dictionary =
        AS_SBE_NODE_ENUM == node->kind || (AS_SBE_NODE_CONSTANT == node->kind && node->name_count > 0);
    return AS_SBE_NODE_SET == node->kind ? 2 : has_dictionary ? 1 : 0;
}

static int64_t text_capacity(const as_sbe_batch *batch, const as_sbe_node *node, int64_t count)
{
    const int64_t size =
        AS_SBE_NODE_DATA == node->kind ? batch->data[node->index].bytes : count * node->column->repeat;
    return (AS_SBE_NODE_DATA == node->kind && AS_SBE_BYTES == node->charset ? size : 3 * size) + SPARE_BYTES;
}

/* Size of a node's buffers. */
static int64_t size_of(const as_sbe_batch *batch, const as_sbe_node *node)
{
    const int64_t count = count_of(batch, node);
    const int64_t bitmap = up((count + 7) / 8);
    const int64_t offsets = up(4 * (count + 1));
    switch (node->kind)
    {
        case AS_SBE_NODE_NUMBERS:
        case AS_SBE_NODE_ENUM:
        {
            const int64_t values = number_count(batch, node);
            return up(values * node->width) + up((values + 7) / 8) + size_of_names(node);
        }
        case AS_SBE_NODE_CONSTANT:
            return up(count * node->width) + bitmap + size_of_names(node);
        case AS_SBE_NODE_LIST:
        case AS_SBE_NODE_ARRAY:
            return offsets + bitmap;
        case AS_SBE_NODE_STRUCT:
            return NULL == node->column ? 0 : bitmap;
        case AS_SBE_NODE_BYTES:
            return offsets + bitmap + up(count * node->column->repeat);
        case AS_SBE_NODE_SET:
            return offsets + bitmap + up(2 * (count * node->name_count + 1)) + size_of_names(node);
        default:
            return offsets + bitmap + up(text_capacity(batch, node, count));
    }
}

static void *take(export *e, int64_t size)
{
    void *taken = e->at;
    e->at += up(size);
    return taken;
}

static void describe(one *made, int64_t count, int64_t nulls, int64_t buffer_count, const void *validity)
{
    made->buffers[0] = nulls > 0 ? validity : NULL;
    made->array = (struct ArrowArray){
        .length = count, .null_count = nulls, .n_buffers = buffer_count, .buffers = made->buffers, .release = release_part
    };
}

static void give_room(export *e, int64_t i, as_sbe_task *task, int64_t count)
{
    one *made = &e->arrays[i];
    task->out = take(e, count * e->nodes[i].width);
    task->validity = take(e, (count + 7) / 8);
    made->buffers[1] = task->out;
}

/* The names that an array's values are indices of. */
static void export_names(export *e, one *of, const as_sbe_node *node)
{
    one *made = e->more++;
    of->array.dictionary = &made->array;
    int32_t *offsets = take(e, 4 * (node->name_count + 1));
    uint8_t *names = take(e, node->name_offsets[node->name_count]);
    memcpy(offsets, node->name_offsets, 4 * ((size_t)node->name_count + 1));
    memcpy(names, node->names, (size_t)node->name_offsets[node->name_count]);
    describe(made, node->name_count, 0, 3, NULL);
    made->buffers[1] = offsets;
    made->buffers[2] = names;
}

/* Cuts spaces off the end of each text, in place. */
static void trim(int32_t *offsets, uint8_t *bytes, int64_t count)
{
    int32_t written = 0;
    int32_t begin = 0;
    for (int64_t i = 0; i < count; i++)
    {
        int32_t end = offsets[i + 1];
        const int32_t next = end;
        while (end > begin && ' ' == bytes[end - 1])
        {
            end--;
        }
        memmove(bytes + written, bytes + begin, (size_t)(end - begin));
        written += end - begin;
        offsets[i + 1] = written;
        begin = next;
    }
}

static as_result export_text(export *e, int64_t i, int64_t count)
{
    const as_sbe_node *node = &e->nodes[i];
    const int64_t capacity = text_capacity(e->batch, node, count);
    int32_t *offsets = take(e, 4 * (count + 1));
    uint8_t *validity = take(e, (count + 7) / 8);
    uint8_t *out = take(e, capacity);
    int64_t nulls = 0;
    const as_result result = AS_SBE_NODE_DATA == node->kind ?
        as_sbe_gather_data(e->batch, node->index, node->charset, offsets, out, capacity, validity, &nulls) :
        as_sbe_gather_text(e->batch, node->column, node->charset, offsets, out, capacity, validity, &nulls);
    if (AS_OK == result && node->is_trimmed)
    {
        trim(offsets, out, count);
    }
    describe(&e->arrays[i], count, nulls, 3, validity);
    e->arrays[i].buffers[1] = offsets;
    e->arrays[i].buffers[2] = out;
    return result;
}

static as_result fill_offsets(int32_t *offsets, int64_t count, int32_t each)
{
    if (count * each > INT32_MAX)
    {
        return AS_E_USAGE;
    }
    for (int64_t i = 0; i <= count; i++)
    {
        offsets[i] = (int32_t)(i * each);
    }
    return AS_OK;
}

/* Arrays of numbers, and of bytes: all of one length. */
static as_result export_fixed(export *e, int64_t i, int64_t count)
{
    const as_sbe_node *node = &e->nodes[i];
    const bool is_list = AS_SBE_NODE_ARRAY == node->kind;
    int32_t *offsets = take(e, 4 * (count + 1));
    uint8_t *validity = take(e, (count + 7) / 8);
    int64_t nulls = 0;
    if (is_list)
    {
        as_sbe_gather_presence(e->batch, node->column, validity, &nulls);
    }
    else
    {
        uint8_t *out = take(e, count * node->column->repeat);
        as_sbe_gather_bytes(e->batch, node->column, out, validity, &nulls);
        e->arrays[i].buffers[2] = out;
    }
    describe(&e->arrays[i], count, nulls, is_list ? 2 : 3, validity);
    e->arrays[i].buffers[1] = offsets;
    return fill_offsets(offsets, count, node->column->repeat);
}

static as_result export_set(export *e, int64_t i, int64_t count)
{
    const as_sbe_node *node = &e->nodes[i];
    int32_t *offsets = take(e, 4 * (count + 1));
    uint8_t *validity = take(e, (count + 7) / 8);
    int16_t *out = take(e, 2 * (count * node->name_count + 1));
    int64_t nulls = 0;
    const as_result result =
        as_sbe_gather_set(e->batch, node->column, node->bits, node->name_count, offsets, out, validity, &nulls);
    describe(&e->arrays[i], count, nulls, 2, validity);
    e->arrays[i].buffers[1] = offsets;
    if (AS_OK == result)
    {
        one *items = e->more++;
        describe(items, offsets[count], 0, 2, NULL);
        items->buffers[1] = out;
        export_names(e, items, node);
        e->arrays[i].array.n_children = 1;
        e->arrays[i].array.children = e->children;
        *e->children++ = &items->array;
    }
    return result;
}

static void export_constant(export *e, int64_t i, int64_t count)
{
    const as_sbe_node *node = &e->nodes[i];
    uint8_t *out = take(e, count * node->width);
    uint8_t *validity = take(e, (count + 7) / 8);
    for (int64_t k = 0; k < count; k++)
    {
        memcpy(out + k * node->width, node->value, (size_t)node->width);
    }
    int64_t nulls = 0;
    as_sbe_gather_presence(e->batch, node->column, validity, &nulls);
    describe(&e->arrays[i], count, nulls, 2, validity);
    e->arrays[i].buffers[1] = out;
    if (node->name_count > 0)
    {
        export_names(e, &e->arrays[i], node);
    }
}

static void export_struct(export *e, int64_t i, int64_t count)
{
    const as_sbe_node *node = &e->nodes[i];
    int64_t nulls = 0;
    uint8_t *validity = NULL;
    if (NULL != node->column)
    {
        validity = take(e, (count + 7) / 8);
        as_sbe_gather_presence(e->batch, node->column, validity, &nulls);
    }
    describe(&e->arrays[i], count, nulls, 1, validity);
}

static void export_list(export *e, int64_t i, int64_t count)
{
    const as_sbe_node *node = &e->nodes[i];
    const asi_sbe_instances *level = &e->batch->levels[node->level];
    int32_t *offsets = take(e, 4 * (count + 1));
    uint8_t *validity = take(e, (count + 7) / 8);
    memcpy(offsets, level->list_offsets, 4 * ((size_t)count + 1));
    int64_t nulls = 0;
    if (e->batch->plan->levels[node->level].since > 0 || e->batch->error_count > 0)
    {
        memcpy(validity, level->list_validity, (size_t)(count + 7) / 8);
        for (int64_t k = 0; k < count; k++)
        {
            nulls += 0 == (validity[k / 8] >> k % 8 & 1);
        }
    }
    describe(&e->arrays[i], count, nulls, 2, validity);
    e->arrays[i].buffers[1] = offsets;
}

/* Links a node to its children, which follow it; returns the index after them. */
static int64_t link_children(export *e, int64_t i)
{
    struct ArrowArray *array = &e->arrays[i].array;
    int64_t next = i + 1;
    if (0 == e->nodes[i].child_count)
    {
        return next; /* a set's items are linked */
    }
    array->n_children = e->nodes[i].child_count;
    array->children = e->children;
    e->children += array->n_children;
    for (int64_t k = 0; k < array->n_children; k++)
    {
        array->children[k] = &e->arrays[next].array;
        next = link_children(e, next);
    }
    return next;
}

static as_result fill(export *e, as_sbe_task *const *tasks, const int64_t *task_counts, int64_t *lost, int64_t *unknown)
{
    for (int64_t i = 0; i < e->node_count; i++)
    {
        const as_sbe_node *node = &e->nodes[i];
        if (AS_SBE_NODE_NUMBERS == node->kind || AS_SBE_NODE_ENUM == node->kind)
        {
            give_room(e, i, &tasks[node->level][node->index], number_count(e->batch, node));
        }
    }
    for (int32_t level = 0; level < e->batch->plan->level_count; level++)
    {
        as_sbe_gather(e->batch, tasks[level], task_counts[level]);
        for (int64_t k = 0; k < task_counts[level]; k++)
        {
            *lost += tasks[level][k].lost;
            *unknown += tasks[level][k].unknown;
        }
    }
    as_result result = AS_OK;
    for (int64_t i = 0; i < e->node_count && AS_OK == result; i++)
    {
        const as_sbe_node *node = &e->nodes[i];
        const int64_t count = count_of(e->batch, node);
        switch (node->kind)
        {
            case AS_SBE_NODE_NUMBERS:
            case AS_SBE_NODE_ENUM:
            {
                const as_sbe_task *task = &tasks[node->level][node->index];
                describe(&e->arrays[i], number_count(e->batch, node), task->nulls, 2, task->validity);
                if (AS_SBE_NODE_ENUM == node->kind)
                {
                    export_names(e, &e->arrays[i], node);
                }
                break;
            }
            case AS_SBE_NODE_LIST:
                export_list(e, i, count);
                break;
            case AS_SBE_NODE_STRUCT:
                export_struct(e, i, count);
                break;
            case AS_SBE_NODE_ARRAY:
            case AS_SBE_NODE_BYTES:
                result = export_fixed(e, i, count);
                break;
            case AS_SBE_NODE_SET:
                result = export_set(e, i, count);
                break;
            case AS_SBE_NODE_CONSTANT:
                export_constant(e, i, count);
                break;
            default:
                result = export_text(e, i, count);
                break;
        }
    }
    return result;
}

as_result as_sbe_export(const as_sbe_batch *batch, const as_sbe_node *nodes, int64_t node_count, as_sbe_task *const *tasks,
    const int64_t *task_counts, void *array, int64_t *lost, int64_t *unknown)
{
    int64_t array_count = node_count;
    int64_t size = 0;
    for (int64_t i = 0; i < node_count; i++)
    {
        array_count += more_count(&nodes[i]);
        size += size_of(batch, &nodes[i]);
    }
    const int64_t described = up(array_count * (int64_t)sizeof(one)) + up(array_count * (int64_t)sizeof(struct ArrowArray *));
    uint8_t *block = aligned_alloc(ALIGNMENT, (size_t)(described + size));
    if (NULL == block)
    {
        return AS_E_INTERNAL;
    }
    export e = { .batch = batch, .nodes = nodes, .node_count = node_count, .arrays = (one *)block, .at = block + described };
    e.more = e.arrays + node_count;
    e.children = (struct ArrowArray **)(block + up(array_count * (int64_t)sizeof(one)));
    *lost = 0;
    *unknown = 0;
    const as_result result = fill(&e, tasks, task_counts, lost, unknown);
    if (AS_OK != result || *unknown > 0)
    {
        free(block);
        return result;
    }
    link_children(&e, 0);
    struct ArrowArray *root = array;
    *root = e.arrays[0].array;
    root->private_data = block;
    root->release = release_all;
    return AS_OK;
}
