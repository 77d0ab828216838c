/* Finds the messages in payloads. Spec: 10 §15. See as_sbe.h. */
#include "sbe_batch.h"

typedef struct frames
{
    const as_sbe_framing *framing;
    const uint8_t *bytes;
    int64_t capacity;
    int64_t count;
    int64_t payload;
    int64_t *starts;
    int64_t *ends;
    int64_t *payloads;
    uint8_t *errors;
} frames;

static void add(frames *f, int64_t start, int64_t end, as_sbe_error error)
{
    if (f->count < f->capacity)
    {
        f->starts[f->count] = start;
        f->ends[f->count] = end;
        f->payloads[f->count] = f->payload;
        f->errors[f->count] = (uint8_t)error;
    }
    f->count++;
}

static int64_t number(const frames *f, const as_sbe_role *role, int64_t at)
{
    return (int64_t)asi_sbe_load(f->bytes + at + role->offset, role->size, f->framing->is_big_endian);
}

static bool has_mark(const frames *f, int64_t at)
{
    for (int32_t i = 0; i < f->framing->mark_count; i++)
    {
        if (0 == memcmp(f->bytes + at + f->framing->mark_offset, f->framing->marks + 2 * i, 2))
        {
            return true;
        }
    }
    return 0 == f->framing->mark_count;
}

static bool is_quiet(const frames *f, int64_t at, int64_t length)
{
    const as_sbe_framing *framing = f->framing;
    return 0 != framing->quiet_bytes && length >= framing->quiet_bytes && length <= framing->packet_header &&
        0 == memcmp(f->bytes + at, framing->quiet_mark, sizeof framing->quiet_mark);
}

static void cut_packet(frames *f, int64_t at, int64_t end)
{
    const as_sbe_framing *framing = f->framing;
    if (is_quiet(f, at, end - at))
    {
        return;
    }
    if (end - at < framing->packet_header)
    {
        add(f, at, at, AS_SBE_FRAME_SIZE);
        return;
    }
    if (framing->mark_is_of_packet && !has_mark(f, at))
    {
        add(f, at, at, AS_SBE_FRAME_TYPE);
        return;
    }
    int64_t left = 0 == framing->count.size ? -1 : number(f, &framing->count, at);
    const int64_t head = framing->size.offset + framing->size.size;
    const int64_t least = framing->skip > head ? framing->skip : head;
    for (at += framing->packet_header; 0 != left && (left > 0 || at < end); left--)
    {
        if (head > end - at)
        {
            add(f, at, at, AS_SBE_FRAME_SIZE);
            return;
        }
        const int64_t size = number(f, &framing->size, at) + framing->size_adds;
        if (size < least || size > end - at)
        {
            add(f, at, at, AS_SBE_FRAME_SIZE);
            return;
        }
        if (!framing->mark_is_of_packet && !has_mark(f, at))
        {
            add(f, at, at, AS_SBE_FRAME_TYPE);
            return;
        }
        add(f, at + framing->skip, at + size, AS_SBE_OK);
        at += size;
    }
}

int64_t as_sbe_frames(const as_sbe_framing *framing, const uint8_t *bytes, const int64_t *offsets, int64_t payload_count,
    int64_t capacity, int64_t *starts, int64_t *ends, int64_t *payloads, uint8_t *errors)
{
    frames f = { .framing = framing, .bytes = bytes, .capacity = capacity, .starts = starts, .ends = ends, .payloads = payloads,
        .errors = errors };
    for (int64_t i = 0; i < payload_count; i++)
    {
        f.payload = i;
        const int64_t at = offsets[i] + framing->payload_skip;
        cut_packet(&f, at < offsets[i + 1] ? at : offsets[i + 1], offsets[i + 1]);
    }
    return f.count;
}
