/* Encodes columns to messages. Spec: 10 §16. See as_sbe.h. */
#include "sbe_batch.h"

typedef struct writer
{
    const as_sbe_wire_plan *plan;
    uint8_t *out;
    int64_t capacity;
    int64_t at;
} writer;

/* Reserves the next bytes; NULL if they exceed the capacity. */
static uint8_t *take(writer *w, int64_t length)
{
    uint8_t *here = w->at + length <= w->capacity ? w->out + w->at : NULL;
    w->at += length;
    return here;
}

static void put_role(uint8_t *base, const as_sbe_role *role, int64_t value, bool is_big_endian)
{
    for (int32_t i = 0; i < role->size; i++)
    {
        base[role->offset + (is_big_endian ? role->size - 1 - i : i)] = (uint8_t)((uint64_t)value >> 8 * i);
    }
}

static void put_block(writer *w, const as_sbe_wire_level *level, int64_t i)
{
    uint8_t *block = take(w, level->block_length);
    if (NULL == block)
    {
        return;
    }
    memset(block, 0, (size_t)level->block_length);
    for (int32_t k = 0; k < level->field_count; k++)
    {
        const as_sbe_wire_field *field = &w->plan->fields[level->first_field + k];
        memcpy(block + field->offset, field->values + i * field->width, (size_t)field->width);
    }
}

static void put_data(writer *w, const as_sbe_wire_data *data, int64_t i)
{
    const int64_t length = data->offsets[i + 1] - data->offsets[i];
    uint8_t *head = take(w, data->head);
    uint8_t *content = take(w, length);
    if (NULL == content)
    {
        return;
    }
    memset(head, 0, (size_t)data->head);
    put_role(head, &data->length, length, w->plan->is_big_endian);
    if (length > 0)
    {
        memcpy(content, data->bytes + data->offsets[i], (size_t)length);
    }
}

static void put_group(writer *w, const as_sbe_wire_level *level, int64_t parent);

/* Writes a block, its groups and its data. The schema bounds the recursion depth. */
static void put_instance(writer *w, const as_sbe_wire_level *level, int64_t i)
{
    put_block(w, level, i);
    for (int32_t child = level->first_child; child >= 0; child = w->plan->levels[child].next_sibling)
    {
        put_group(w, &w->plan->levels[child], i);
    }
    for (int32_t k = 0; k < level->data_count; k++)
    {
        put_data(w, &w->plan->data[level->first_data + k], i);
    }
}

static void put_group(writer *w, const as_sbe_wire_level *level, int64_t parent)
{
    const int64_t first = level->offsets[parent];
    const int64_t end = level->offsets[parent + 1];
    uint8_t *header = take(w, level->header_size);
    if (NULL != header)
    {
        memcpy(header, level->header, (size_t)level->header_size);
        put_role(header, &level->count, end - first, w->plan->is_big_endian);
    }
    for (int64_t i = first; i < end; i++)
    {
        put_instance(w, level, i);
    }
}

int64_t as_sbe_encode(const as_sbe_wire_plan *plan, int64_t count, uint8_t *out, int64_t capacity, int64_t *offsets)
{
    writer w = { .plan = plan, .out = out, .capacity = capacity };
    const as_sbe_wire_level *root = &plan->levels[0];
    for (int64_t i = 0; i < count; i++)
    {
        offsets[i] = w.at;
        uint8_t *frame = take(&w, plan->frame_size);
        uint8_t *header = take(&w, root->header_size);
        if (NULL != header)
        {
            memcpy(header, root->header, (size_t)root->header_size);
        }
        put_instance(&w, root, i);
        if (NULL != frame && plan->frame_size > 0)
        {
            memcpy(frame, plan->frame, (size_t)plan->frame_size);
            put_role(frame, &plan->frame_length, w.at - offsets[i] - plan->frame_adds, plan->frame_is_big_endian);
        }
    }
    offsets[count] = w.at;
    return w.at;
}
