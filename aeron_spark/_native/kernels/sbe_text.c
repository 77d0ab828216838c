/* Text of char arrays and of data, as UTF-8. See as_sbe.h. */
#include <limits.h>

#include "sbe_place.h"

static int64_t put_replacement(uint8_t *out)
{
    memcpy(out, "\xef\xbf\xbd", 3);
    return 3;
}

/* Length of the sequence that begins here if it is complete and valid. Otherwise minus the number of bytes that one U+FFFD
 * replaces: the longest prefix of a valid sequence, at least one. Unicode, table 3-7. */
static int64_t utf8_sequence(const uint8_t *at, int64_t left)
{
    const uint8_t first = at[0];
    const int64_t wanted = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (wanted <= 1)
    {
        return 1 == wanted ? 1 : -1;
    }
    const uint8_t low = 0xe0 == first ? 0xa0 : 0xf0 == first ? 0x90 : 0x80;
    const uint8_t high = 0xed == first ? 0x9f : 0xf4 == first ? 0x8f : 0xbf;
    for (int64_t i = 1; i < wanted; i++)
    {
        if (i >= left || at[i] < (1 == i ? low : 0x80) || at[i] > (1 == i ? high : 0xbf))
        {
            return -i;
        }
    }
    return wanted;
}

static int64_t put_utf8(const uint8_t *from, int64_t length, uint8_t *out)
{
    int64_t written = 0;
    for (int64_t i = 0; i < length;)
    {
        const int64_t step = utf8_sequence(from + i, length - i);
        if (step > 0)
        {
            memcpy(out + written, from + i, (size_t)step);
            written += step;
            i += step;
        }
        else
        {
            written += put_replacement(out + written);
            i -= step;
        }
    }
    return written;
}

static int64_t put_narrow(const uint8_t *from, int64_t length, bool is_latin1, uint8_t *out)
{
    int64_t written = 0;
    for (int64_t i = 0; i < length; i++)
    {
        const uint8_t byte = from[i];
        if (byte < 0x80)
        {
            out[written++] = byte;
        }
        else if (is_latin1)
        {
            out[written++] = (uint8_t)(0xc0 | byte >> 6);
            out[written++] = (uint8_t)(0x80 | (byte & 0x3f));
        }
        else
        {
            written += put_replacement(out + written);
        }
    }
    return written;
}

/* Copies a short ASCII text completely, possibly with bytes after it. The caller guarantees 16 readable and 16 writable bytes. */
static inline bool put_short(const uint8_t *from, int64_t length, uint8_t *out)
{
    uint64_t low;
    uint64_t high;
    memcpy(&low, from, 8);
    memcpy(&high, from + 8, 8);
    memcpy(out, &low, 8);
    memcpy(out + 8, &high, 8);
    const uint64_t low_mask = length >= 8 ? UINT64_MAX : ((uint64_t)1 << 8 * length) - 1;
    const uint64_t high_mask = length >= 16 ? UINT64_MAX : length <= 8 ? 0 : ((uint64_t)1 << 8 * (length - 8)) - 1;
    return 0 == (((low & low_mask) | (high & high_mask)) & 0x8080808080808080);
}

static int64_t put_text(const uint8_t *from, int64_t length, as_sbe_charset charset, uint8_t *out)
{
    switch (charset)
    {
        case AS_SBE_BYTES:
            memcpy(out, from, (size_t)length);
            return length;
        case AS_SBE_UTF8:
            return put_utf8(from, length, out);
        default:
            return put_narrow(from, length, AS_SBE_LATIN1 == charset, out);
    }
}

/* Upper bound of a text's length after conversion. */
static int64_t text_room(int64_t length, as_sbe_charset charset) { return AS_SBE_BYTES == charset ? length : 3 * length; }

/* Appends a piece; false: no room, or an offset beyond 32 bits. */
static inline bool append(const as_sbe_batch *batch, const uint8_t *from, int64_t length, as_sbe_charset charset, uint8_t *out,
    int64_t capacity, int64_t *written)
{
    if (*written + 16 <= capacity && length <= 16 && batch->bytes + batch->limit - from >= 16 && *written <= INT32_MAX - 16 &&
        (put_short(from, length, out + *written) || AS_SBE_BYTES == charset))
    {
        *written += length;
        return true;
    }
    if (*written + text_room(length, charset) > capacity || *written > INT32_MAX - text_room(length, charset))
    {
        return false;
    }
    *written += put_text(from, length, charset, out + *written);
    return true;
}

as_result as_sbe_gather_text(const as_sbe_batch *batch, const as_sbe_column *column, as_sbe_charset charset, int32_t *offsets,
    uint8_t *out, int64_t capacity, uint8_t *validity, int64_t *nulls)
{
    const asi_sbe_place p = asi_sbe_place_of(batch, column);
    const bool may_be_null = !asi_sbe_all_have(&p, column) || column->has_null;
    int64_t written = 0;
    *nulls = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < p.count; i++)
    {
        const uint8_t *from = p.bytes + p.starts[i] + column->offset;
        const bool is_there =
            asi_sbe_has_field(&p, column, i) && (!column->has_null || *from != (uint8_t)column->null_bits);
        if (is_there)
        {
            const uint8_t *end = memchr(from, 0, (size_t)column->repeat);
            if (!append(batch, from, NULL == end ? column->repeat : end - from, charset, out, capacity, &written))
            {
                return AS_E_USAGE;
            }
        }
        offsets[i + 1] = (int32_t)written;
        if (may_be_null)
        {
            asi_sbe_set_valid(validity, i, is_there);
            *nulls += is_there ? 0 : 1;
        }
    }
    return AS_OK;
}

/* Copies all data contiguously, unchanged; the caller provides room for 16 more bytes. */
static int64_t put_all(const as_sbe_batch *batch, const asi_sbe_content *content, int32_t *offsets, uint8_t *out)
{
    const int64_t near_end = batch->limit - 16;
    int64_t written = 0;
    for (int64_t i = 0; i < content->count; i++)
    {
        const int64_t length = content->lengths[i] > 0 ? content->lengths[i] : 0;
        const int64_t start = content->starts[i];
        if (length <= 16 && start <= near_end)
        {
            memcpy(out + written, batch->bytes + start, 16);
        }
        else if (length > 0)
        {
            memcpy(out + written, batch->bytes + start, (size_t)length);
        }
        written += length;
        offsets[i + 1] = (int32_t)written;
    }
    return written;
}

static bool is_ascii(const uint8_t *bytes, int64_t count)
{
    uint8_t seen = 0;
    for (int64_t i = 0; i < count; i++)
    {
        seen |= bytes[i];
    }
    return seen < 0x80;
}

static int64_t keep_presence(const asi_sbe_content *content, uint8_t *validity)
{
    int64_t nulls = 0;
    for (int64_t i = 0; i < content->count; i++)
    {
        asi_sbe_set_valid(validity, i, content->lengths[i] >= 0);
        nulls += content->lengths[i] < 0;
    }
    return nulls;
}

as_result as_sbe_gather_data(const as_sbe_batch *batch, int32_t data, as_sbe_charset charset, int32_t *offsets, uint8_t *out,
    int64_t capacity, uint8_t *validity, int64_t *nulls)
{
    const asi_sbe_content *content = &batch->data[data];
    const bool may_be_null = batch->plan->data[data].since > 0 || batch->error_count > 0;
    *nulls = may_be_null ? keep_presence(content, validity) : 0;
    offsets[0] = 0;
    if (content->bytes <= INT32_MAX && content->bytes + 16 <= capacity)
    {
        const int64_t whole = put_all(batch, content, offsets, out);
        if (AS_SBE_BYTES == charset || is_ascii(out, whole))
        {
            return AS_OK;
        }
    }
    int64_t written = 0;
    for (int64_t i = 0; i < content->count; i++)
    {
        const int64_t length = content->lengths[i];
        if (length > 0 && !append(batch, batch->bytes + content->starts[i], length, charset, out, capacity, &written))
        {
            return AS_E_USAGE;
        }
        offsets[i + 1] = (int32_t)written;
    }
    return AS_OK;
}

bool as_sbe_are_utf8(const uint8_t *bytes, const int32_t *offsets, int64_t count)
{
    if (is_ascii(bytes + offsets[0], offsets[count] - offsets[0]))
    {
        return true;
    }
    for (int64_t i = 0; i < count; i++)
    {
        for (int64_t at = offsets[i]; at < offsets[i + 1];)
        {
            const int64_t step = utf8_sequence(bytes + at, offsets[i + 1] - at);
            if (step < 0)
            {
                return false;
            }
            at += step;
        }
    }
    return true;
}
