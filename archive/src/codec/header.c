/* The table-driven engine of the archive's codec; rules and ownership in header.h. */
#include "codec/header.h"

#include <inttypes.h>

#include "base/bits.h"

#define VAR_LENGTH_BYTES 4

as_result asi_codec_header_decode_untrusted(const uint8_t *bytes, int64_t length, asi_codec_header *header)
{
    if (length < ASI_CODEC_HEADER_LENGTH)
    {
        return asi_fail(AS_E_DATA, 0, "archive message of %" PRId64 " bytes is shorter than its header of %d", length,
            ASI_CODEC_HEADER_LENGTH);
    }
    const uint16_t schema_id = asi_get_u16(bytes + 4);
    if (ASI_CODEC_SCHEMA_ID != schema_id)
    {
        return asi_fail(AS_E_DATA, 0, "expected schemaId=%d, actual=%d", ASI_CODEC_SCHEMA_ID, schema_id);
    }
    header->block_length = asi_get_u16(bytes);
    header->template_id = asi_get_u16(bytes + 2);
    header->version = asi_get_u16(bytes + 6);
    return AS_OK;
}

const asi_codec_layout *asi_codec_layout_find(const asi_codec_table *table, int32_t template_id)
{
    for (int32_t i = 0; i < table->count; i++)
    {
        if (table->layouts[i].template_id == template_id)
        {
            return &table->layouts[i];
        }
    }
    return NULL;
}

as_result asi_codec_layout_find_untrusted(const asi_codec_table *table, const uint8_t *bytes, int64_t length,
    asi_codec_header *header, const asi_codec_layout **layout)
{
    const as_result result = asi_codec_header_decode_untrusted(bytes, length, header);
    if (AS_OK != result)
    {
        return result;
    }
    *layout = asi_codec_layout_find(table, header->template_id);
    return NULL == *layout ? AS_AGAIN : AS_OK;
}

static bool is_flag_value(int32_t value)
{
    return 0 == value || 1 == value || INT32_MIN == value;
}

as_result asi_codec_decode_untrusted(const asi_codec_layout *layout, const asi_codec_header *header, const uint8_t *bytes,
    int64_t length, void *message)
{
    int64_t at = ASI_CODEC_HEADER_LENGTH;
    const int64_t block_end = at + header->block_length;
    if (block_end > length)
    {
        return asi_fail(AS_E_DATA, 0, "%s of %" PRId64 " bytes is too short for its block of %d", layout->name, length,
            header->block_length);
    }
    for (const asi_codec_field *field = layout->fields; 0 != field->size && field->since <= header->version; field++)
    {
        if (at + field->size > block_end)
        {
            return asi_fail(AS_E_DATA, 0, "%s of schema version %d has a block of %d bytes, which ends inside of a field",
                layout->name, header->version, header->block_length);
        }
        if (field->is_flag && !is_flag_value(asi_get_i32(bytes + at)))
        {
            return asi_fail(AS_E_DATA, 0, "%s has the value %d at byte %" PRId64 ", where only 0 and 1 are defined", layout->name,
                asi_get_i32(bytes + at), at);
        }
        memcpy((uint8_t *)message + field->at, bytes + at, field->size);
        at += field->size;
    }
    at = block_end;
    for (const asi_codec_field *var = layout->vars; 0 != var->size && var->since <= header->version; var++)
    {
        const int64_t left = length - at - VAR_LENGTH_BYTES;
        const uint32_t var_length = left < 0 ? 0 : (uint32_t)asi_get_i32(bytes + at);
        if (left < 0 || var_length > left || var_length > ASI_CODEC_VAR_LENGTH_MAX)
        {
            return asi_fail(AS_E_DATA, 0, "%s of %" PRId64 " bytes is too short for its variable data %d", layout->name,
                length, (int)(var - layout->vars));
        }
        const asi_codec_var value = { .data = (const char *)bytes + at + VAR_LENGTH_BYTES, .length = var_length };
        memcpy((uint8_t *)message + var->at, &value, sizeof(value));
        at += VAR_LENGTH_BYTES + var_length;
    }
    return AS_OK;
}

static asi_codec_var var_of(const void *message, const asi_codec_field *field)
{
    asi_codec_var value;
    memcpy(&value, (const uint8_t *)message + field->at, sizeof(value));
    return value;
}

as_result asi_codec_encode(const asi_codec_table *table, int32_t template_id, const void *message, uint8_t *to, int64_t capacity,
    int64_t *length)
{
    const asi_codec_layout *layout = asi_codec_layout_find(table, template_id);
    if (NULL == layout)
    {
        return asi_fail(AS_E_USAGE, 0, "template id %d is no %s of the archive protocol", template_id, table->what);
    }
    int64_t needed = ASI_CODEC_HEADER_LENGTH + layout->block_length;
    for (const asi_codec_field *var = layout->vars; 0 != var->size; var++)
    {
        needed += VAR_LENGTH_BYTES + var_of(message, var).length;
    }
    if (needed > capacity)
    {
        return asi_fail(AS_E_USAGE, 0, "%s of %" PRId64 " bytes is longer than the %" PRId64 " there is room for: shorten "
            "its channels or texts", layout->name, needed, capacity);
    }
    asi_put_u16(to, layout->block_length);
    asi_put_u16(to + 2, layout->template_id);
    asi_put_u16(to + 4, ASI_CODEC_SCHEMA_ID);
    asi_put_u16(to + 6, ASI_CODEC_SCHEMA_VERSION);
    uint8_t *next = to + ASI_CODEC_HEADER_LENGTH;
    for (const asi_codec_field *field = layout->fields; 0 != field->size; field++)
    {
        memcpy(next, (const uint8_t *)message + field->at, field->size);
        next += field->size;
    }
    for (const asi_codec_field *var = layout->vars; 0 != var->size; var++)
    {
        const asi_codec_var value = var_of(message, var);
        asi_put_i32(next, (int32_t)value.length);
        next += VAR_LENGTH_BYTES;
        if (value.length > 0)
        {
            memcpy(next, value.data, (size_t)value.length);
            next += value.length;
        }
    }
    *length = needed;
    return AS_OK;
}
