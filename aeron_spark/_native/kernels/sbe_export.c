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
    one *arrays;                   /* of the nodes, then dictionaries */
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

static int64_t count_of(const as_sbe_batch *batch, const as_sbe_node *node)
{
    return batch->levels[AS_SBE_NODE_LIST == node->kind ? node->parent : node->level].count;
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
            return up(count * node->width) + bitmap;
        case AS_SBE_NODE_ENUM:
            return up(count * node->width) + bitmap + up(4 * (node->name_count + 1)) + up(node->name_offsets[node->name_count]);
        case AS_SBE_NODE_LIST:
            return offsets + bitmap;
        case AS_SBE_NODE_STRUCT:
            return 0;
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

static void export_names(export *e, one *made, const as_sbe_node *node)
{
    int32_t *offsets = take(e, 4 * (node->name_count + 1));
    uint8_t *names = take(e, node->name_offsets[node->name_count]);
    memcpy(offsets, node->name_offsets, 4 * ((size_t)node->name_count + 1));
    memcpy(names, node->names, (size_t)node->name_offsets[node->name_count]);
    describe(made, node->name_count, 0, 3, NULL);
    made->buffers[1] = offsets;
    made->buffers[2] = names;
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
    describe(&e->arrays[i], count, nulls, 3, validity);
    e->arrays[i].buffers[1] = offsets;
    e->arrays[i].buffers[2] = out;
    return result;
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
            give_room(e, i, &tasks[node->level][node->index], count_of(e->batch, node));
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
    one *dictionary = e->arrays + e->node_count;
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
                describe(&e->arrays[i], count, task->nulls, 2, task->validity);
                if (AS_SBE_NODE_ENUM == node->kind)
                {
                    export_names(e, dictionary, node);
                    e->arrays[i].array.dictionary = &dictionary++->array;
                }
                break;
            }
            case AS_SBE_NODE_LIST:
                export_list(e, i, count);
                break;
            case AS_SBE_NODE_STRUCT:
                describe(&e->arrays[i], count, 0, 1, NULL);
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
        array_count += AS_SBE_NODE_ENUM == nodes[i].kind ? 1 : 0;
        size += size_of(batch, &nodes[i]);
    }
    const int64_t described = up(array_count * (int64_t)sizeof(one)) + up(node_count * (int64_t)sizeof(struct ArrowArray *));
    uint8_t *block = aligned_alloc(ALIGNMENT, (size_t)(described + size));
    if (NULL == block)
    {
        return AS_E_INTERNAL;
    }
    export e = { .batch = batch, .nodes = nodes, .node_count = node_count, .arrays = (one *)block, .at = block + described };
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
