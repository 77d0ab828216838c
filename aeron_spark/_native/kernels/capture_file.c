/* Reads capture files piece by piece; see as_capture.h.
 *
 * pcap: a header of 24 bytes, then packets, each with 16 bytes of time and lengths before it, or the next file. pcapng: blocks,
 * each with its type and its length before and behind it; a section's header gives the byte order, an interface's description
 * the link type and the unit of time. A length that no block can have ends the read: where the next one begins is unknown. */
#include <stdlib.h>

#include "capture_packet.h"

enum
{
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET_OLD = 2,
    BLOCK_PACKET_SIMPLE = 3,
    BLOCK_PACKET = 6,
    BLOCK_SECTION = 0x0a0d0d0a
};

enum
{
    OPTION_END = 0,
    OPTION_TIME_UNIT = 9,
    OPTION_TIME_OFFSET = 14
};

#define PCAP_MICROSECONDS 0xa1b2c3d4U
#define PCAP_NANOSECONDS 0xa1b23c4dU
#define BYTE_ORDER_MAGIC 0x1a2b3c4dU
#define PCAP_HEADER 24
#define PCAP_PACKET_HEADER 16
#define BLOCK_FRAME 12 /* type, length, length again */
#define NS_A_SECOND INT64_C(1000000000)
#define MOST_SECONDS (INT64_MAX / NS_A_SECOND / 2)
#define TABLE_SIZE (2 * AS_CAPTURE_MAX_FLOWS)

typedef struct interface
{
    int32_t link;
    uint32_t snap_length;
    uint64_t units_a_second;
    int64_t offset_s;
} interface;

struct as_capture
{
    enum
    {
        FORMAT_UNKNOWN,
        FORMAT_PCAP,
        FORMAT_PCAPNG
    } format;
    bool is_swapped;     /* the file is big-endian */
    int64_t time_ns;     /* of the last packet, for those without */
    int32_t other_link;  /* the first link type that is not known; -1: none */
    int64_t left_out;    /* packets for whose flow there is no room */
    int64_t interface_count;
    interface interfaces[AS_CAPTURE_MAX_INTERFACES]; /* pages of those that there are not take no memory */
    int64_t flow_count;
    int64_t flow_capacity;
    as_capture_flow *flows; /* owned */
    int32_t *table;         /* owned: number of a flow and 1, at its hash or behind; 0: free */
};

as_capture *as_capture_open(void)
{
    as_capture *capture = calloc(1, sizeof(*capture));
    int32_t *table = calloc(TABLE_SIZE, sizeof(*table));
    if (NULL == capture || NULL == table)
    {
        free(capture);
        free(table);
        return NULL;
    }
    capture->table = table;
    capture->other_link = -1;
    return capture;
}

void as_capture_close(as_capture *capture)
{
    if (NULL != capture)
    {
        free(capture->flows);
        free(capture->table);
        free(capture);
    }
}

int32_t as_capture_other_link(const as_capture *capture) { return capture->other_link; }

int64_t as_capture_left_out(const as_capture *capture) { return capture->left_out; }

/* -- flows ---------------------------------------------------------------------------------------------------------------- */

int64_t as_capture_flow_count(const as_capture *capture) { return capture->flow_count; }

const as_capture_flow *as_capture_flow_at(const as_capture *capture, int64_t index)
{
    return index >= 0 && index < capture->flow_count ? &capture->flows[index] : NULL;
}

static bool is_same(const as_capture_flow *a, const as_capture_flow *b)
{
    return 0 == memcmp(a->source, b->source, sizeof(a->source)) && 0 == memcmp(a->target, b->target, sizeof(a->target)) &&
        a->source_port == b->source_port && a->target_port == b->target_port && a->protocol == b->protocol &&
        a->is_ipv6 == b->is_ipv6;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const as_capture_flow *flow)
{
    uint64_t words[4];
    memcpy(words, flow->source, 16);
    memcpy(words + 2, flow->target, 16);
    uint64_t hash = mix((uint64_t)flow->source_port << 16 | flow->target_port, flow->protocol);
    for (int i = 0; i < 4; i++)
    {
        hash = mix(hash, words[i]);
    }
    return hash;
}

int32_t as_capture_flow_of(as_capture *capture, const as_capture_flow *flow)
{
    uint64_t slot = hash_of(flow) % TABLE_SIZE;
    while (0 != capture->table[slot])
    {
        const int32_t known = capture->table[slot] - 1;
        if (is_same(&capture->flows[known], flow))
        {
            return known;
        }
        slot = (slot + 1) % TABLE_SIZE;
    }
    if (AS_CAPTURE_MAX_FLOWS == capture->flow_count)
    {
        return -1;
    }
    if (capture->flow_count == capture->flow_capacity)
    {
        const int64_t grown = 0 == capture->flow_capacity ? 64 : 2 * capture->flow_capacity;
        as_capture_flow *flows = realloc(capture->flows, (size_t)grown * sizeof(*flows));
        if (NULL == flows)
        {
            return -1;
        }
        capture->flows = flows;
        capture->flow_capacity = grown;
    }
    capture->flows[capture->flow_count] = *flow;
    capture->flow_count++;
    capture->table[slot] = (int32_t)capture->flow_count;
    return (int32_t)capture->flow_count - 1;
}

/* -- blocks --------------------------------------------------------------------------------------------------------------- */

static uint32_t number_32(const as_capture *capture, const uint8_t *at)
{
    return capture->is_swapped ? asi_big_32(at) : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static uint32_t number_16(const as_capture *capture, const uint8_t *at)
{
    return capture->is_swapped ? asi_big_16(at) : (uint32_t)at[1] << 8 | at[0];
}

/* Nanoseconds of `time` in an interface's unit; 0 where its seconds are below 1970 or more than 64 bits hold. A unit can be so fine
 * that its number in a second, times the nanoseconds in one, needs more than 64 bits. */
static int64_t nanoseconds(const interface *from, uint64_t time)
{
    const uint64_t seconds = time / from->units_a_second;
    const uint64_t rest = time % from->units_a_second;
    if (seconds > (uint64_t)MOST_SECONDS || from->offset_s < -(int64_t)seconds || from->offset_s > MOST_SECONDS - 1)
    {
        return 0;
    }
    const unsigned __int128 scaled = (unsigned __int128)rest * (uint64_t)NS_A_SECOND;
    return ((int64_t)seconds + from->offset_s) * NS_A_SECOND + (int64_t)(scaled / from->units_a_second);
}

/* One packet to one row. A file can have interfaces of several link types, so one that is not known concerns its packets only. */
static as_capture_error add(as_capture *capture, int32_t link, const uint8_t *bytes, int64_t at, int64_t length, bool is_cut,
    int64_t time_ns, const as_capture_rows *rows, int64_t *count)
{
    asi_packet packet;
    if (!asi_packet_read_untrusted(link, bytes + at, length, is_cut, &packet) && capture->other_link < 0)
    {
        capture->other_link = link;
    }
    const bool has_flow = packet.kind <= AS_CAPTURE_FRAGMENT;
    const int32_t flow = has_flow ? as_capture_flow_of(capture, &packet.flow) : -1;
    if (has_flow && flow < 0)
    {
        if (capture->flow_count < AS_CAPTURE_MAX_FLOWS)
        {
            return AS_CAPTURE_NO_MEMORY;
        }
        packet = (asi_packet){ .kind = AS_CAPTURE_OTHER };
        capture->left_out++;
    }
    const int64_t row = *count;
    capture->time_ns = time_ns;
    rows->time_ns[row] = time_ns;
    rows->start[row] = at + packet.start;
    rows->length[row] = packet.length;
    rows->flow[row] = flow;
    rows->kind[row] = (uint8_t)packet.kind;
    rows->sequence[row] = packet.sequence;
    rows->more[row] = packet.more;
    *count = row + 1;
    return AS_CAPTURE_FINE;
}

static as_capture_error read_interface(as_capture *capture, const uint8_t *body, int64_t length)
{
    if (AS_CAPTURE_MAX_INTERFACES == capture->interface_count)
    {
        return AS_CAPTURE_TOO_MANY_INTERFACES;
    }
    if (length < 8)
    {
        return AS_CAPTURE_BAD_BLOCK;
    }
    interface made = { .link = (int32_t)number_16(capture, body), .snap_length = number_32(capture, body + 4),
        .units_a_second = 1000000 };
    int64_t at = 8;
    while (length - at >= 4)
    {
        const uint32_t code = number_16(capture, body + at);
        const int64_t size = number_16(capture, body + at + 2);
        if (OPTION_END == code || size > length - at - 4)
        {
            break;
        }
        const uint8_t *value = body + at + 4;
        if (OPTION_TIME_UNIT == code && size >= 1)
        {
            const int exponent = value[0] & 0x7f;
            if (exponent > (0 != (value[0] & 0x80) ? 62 : 18))
            {
                return AS_CAPTURE_BAD_BLOCK;
            }
            made.units_a_second = 1;
            for (int i = 0; i < exponent; i++)
            {
                made.units_a_second *= 0 != (value[0] & 0x80) ? 2 : 10;
            }
        }
        else if (OPTION_TIME_OFFSET == code && size >= 8)
        {
            const uint64_t low = number_32(capture, value + (capture->is_swapped ? 4 : 0));
            const uint64_t high = number_32(capture, value + (capture->is_swapped ? 0 : 4));
            made.offset_s = (int64_t)(high << 32 | low);
        }
        at += 4 + ((size + 3) & ~INT64_C(3));
    }
    capture->interfaces[capture->interface_count] = made;
    capture->interface_count++;
    return AS_CAPTURE_FINE;
}

/* `body` has `length` bytes, and lies at `at` of `bytes`. */
static as_capture_error read_packet_block(as_capture *capture, uint32_t type, const uint8_t *bytes, int64_t at, int64_t length,
    const as_capture_rows *rows, int64_t *count)
{
    const uint8_t *body = bytes + at;
    const bool is_simple = BLOCK_PACKET_SIMPLE == type;
    const int64_t head = is_simple ? 4 : 20;
    if (length < head)
    {
        return AS_CAPTURE_BAD_BLOCK;
    }
    const uint32_t number = is_simple ? 0 : BLOCK_PACKET == type ? number_32(capture, body) : number_16(capture, body);
    if (number >= capture->interface_count)
    {
        return AS_CAPTURE_BAD_BLOCK;
    }
    const interface *from = &capture->interfaces[number];
    int64_t captured = 0;
    int64_t original = 0;
    int64_t time_ns = capture->time_ns;
    if (is_simple)
    {
        original = number_32(capture, body);
        captured = 0 != from->snap_length && from->snap_length < original ? from->snap_length : original;
    }
    else
    {
        captured = number_32(capture, body + 12);
        original = number_32(capture, body + 16);
        time_ns = nanoseconds(from, (uint64_t)number_32(capture, body + 4) << 32 | number_32(capture, body + 8));
    }
    if (captured > length - head)
    {
        return AS_CAPTURE_BAD_BLOCK;
    }
    return add(capture, from->link, bytes, at + head, captured, captured < original, time_ns, rows, count);
}

/* AS_CAPTURE_TRUNCATED: the block is not whole. *taken receives its length. */
static as_capture_error read_block(as_capture *capture, const uint8_t *bytes, int64_t at, int64_t length,
    const as_capture_rows *rows, int64_t *count, int64_t *taken)
{
    if (length - at < BLOCK_FRAME)
    {
        return AS_CAPTURE_TRUNCATED;
    }
    const uint32_t type = number_32(capture, bytes + at);
    if (BLOCK_SECTION == type)
    {
        capture->is_swapped = BYTE_ORDER_MAGIC == asi_big_32(bytes + at + 8);
        if (BYTE_ORDER_MAGIC != number_32(capture, bytes + at + 8))
        {
            return AS_CAPTURE_BAD_BLOCK;
        }
        capture->interface_count = 0;
    }
    const int64_t size = number_32(capture, bytes + at + 4);
    if (size < BLOCK_FRAME || 0 != size % 4 || size > AS_CAPTURE_MAX_BLOCK)
    {
        return AS_CAPTURE_BAD_BLOCK;
    }
    if (size > length - at)
    {
        return AS_CAPTURE_TRUNCATED;
    }
    if (size != number_32(capture, bytes + at + size - 4))
    {
        return AS_CAPTURE_BAD_BLOCK;
    }
    *taken = size;
    switch (type)
    {
        case BLOCK_INTERFACE: return read_interface(capture, bytes + at + 8, size - BLOCK_FRAME);
        case BLOCK_PACKET:
        case BLOCK_PACKET_OLD:
        case BLOCK_PACKET_SIMPLE: return read_packet_block(capture, type, bytes, at + 8, size - BLOCK_FRAME, rows, count);
        default: return AS_CAPTURE_FINE;
    }
}

/* A pcap file's header, from which on the capture reads as it says. *taken receives its length. AS_CAPTURE_NO_CAPTURE: the bytes, 16 at
 * least, are none. */
static as_capture_error read_pcap_header(as_capture *capture, const uint8_t *bytes, int64_t length, int64_t *taken)
{
    const bool was_swapped = capture->is_swapped;
    for (int i = 0; i < 2; i++)
    {
        capture->is_swapped = 0 != i;
        const uint32_t magic = number_32(capture, bytes);
        const bool is_header = (PCAP_MICROSECONDS == magic || PCAP_NANOSECONDS == magic) && 2 == number_16(capture, bytes + 4);
        if (is_header && length >= PCAP_HEADER)
        {
            capture->interfaces[0] = (interface){ .link = (int32_t)(number_32(capture, bytes + 20) & 0xffff),
                .units_a_second = PCAP_NANOSECONDS == magic ? (uint64_t)NS_A_SECOND : 1000000 };
            capture->interface_count = 1;
            *taken = PCAP_HEADER;
            return AS_CAPTURE_FINE;
        }
        if (is_header)
        {
            capture->is_swapped = was_swapped;
            return AS_CAPTURE_TRUNCATED;
        }
    }
    capture->is_swapped = was_swapped;
    return AS_CAPTURE_NO_CAPTURE;
}

static as_capture_error read_pcap_packet(as_capture *capture, const uint8_t *bytes, int64_t at, int64_t length,
    const as_capture_rows *rows, int64_t *count, int64_t *taken)
{
    if (length - at < PCAP_PACKET_HEADER)
    {
        return AS_CAPTURE_TRUNCATED;
    }
    const interface *from = capture->interfaces;
    const int64_t captured = number_32(capture, bytes + at + 8);
    const int64_t original = number_32(capture, bytes + at + 12);
    const int64_t fraction = number_32(capture, bytes + at + 4);
    if (0 == captured && 0 == original)
    {
        /* No packet is so short, and a header has zeros there: another file follows, as where those of a rotation were joined. */
        const as_capture_error error = read_pcap_header(capture, bytes + at, length - at, taken);
        if (AS_CAPTURE_NO_CAPTURE != error)
        {
            return error;
        }
    }
    if (captured > AS_CAPTURE_MAX_BLOCK - PCAP_PACKET_HEADER || fraction >= (int64_t)from->units_a_second)
    {
        return AS_CAPTURE_BAD_BLOCK;
    }
    if (captured > length - at - PCAP_PACKET_HEADER)
    {
        return AS_CAPTURE_TRUNCATED;
    }
    *taken = PCAP_PACKET_HEADER + captured;
    const int64_t time_ns =
        number_32(capture, bytes + at) * NS_A_SECOND + fraction * (NS_A_SECOND / (int64_t)from->units_a_second);
    return add(capture, from->link, bytes, at + PCAP_PACKET_HEADER, captured, captured < original, time_ns, rows, count);
}

/* Recognises the file. *taken receives the length of a pcap file's header. */
static as_capture_error begin(as_capture *capture, const uint8_t *bytes, int64_t length, int64_t *taken)
{
    if (length < PCAP_HEADER)
    {
        return AS_CAPTURE_TRUNCATED;
    }
    if (BLOCK_SECTION == asi_big_32(bytes))
    {
        capture->format = FORMAT_PCAPNG;
        return AS_CAPTURE_FINE;
    }
    const as_capture_error error = read_pcap_header(capture, bytes, length, taken);
    capture->format = AS_CAPTURE_FINE == error ? FORMAT_PCAP : FORMAT_UNKNOWN;
    return error;
}

as_capture_error as_capture_read(as_capture *capture, const uint8_t *bytes, int64_t length, bool is_last,
    const as_capture_rows *rows, int64_t capacity, int64_t *count, int64_t *consumed)
{
    int64_t at = 0;
    *count = 0;
    as_capture_error error = AS_CAPTURE_FINE;
    while (AS_CAPTURE_FINE == error && *count < capacity && at < length)
    {
        int64_t taken = 0;
        if (FORMAT_UNKNOWN == capture->format)
        {
            error = begin(capture, bytes + at, length - at, &taken);
        }
        else if (FORMAT_PCAP == capture->format)
        {
            error = read_pcap_packet(capture, bytes, at, length, rows, count, &taken);
        }
        else
        {
            error = read_block(capture, bytes, at, length, rows, count, &taken);
        }
        at += AS_CAPTURE_FINE == error ? taken : 0;
    }
    *consumed = at;
    if (is_last && FORMAT_UNKNOWN == capture->format)
    {
        return AS_CAPTURE_NO_CAPTURE; /* also of an empty file, which has nothing to fail at */
    }
    return AS_CAPTURE_TRUNCATED == error && !is_last ? AS_CAPTURE_FINE : error;
}
