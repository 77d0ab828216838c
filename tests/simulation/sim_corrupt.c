/* See sim_corrupt.h. */
#include "sim_corrupt.h"

#include <string.h>

static int32_t below(asi_rand *rand, int32_t bound) { return (int32_t)(asi_rand_u64(rand) % (uint64_t)bound); }

/* Of terms that no stream of the simulation reaches. */
static int32_t far_term(int32_t term_id, asi_rand *rand)
{
    return asi_wrap_add(term_id, 0 == below(rand, 2) ? 0x10000000 : -0x10000000);
}

/* Appended bytes are no frame: zeroes, or not a multiple of the alignment. */
static int32_t grow(uint8_t *bytes, int32_t length, asi_rand *rand)
{
    const int32_t added = 0 == below(rand, 2) ? AS_FRAME_ALIGNMENT : 1 + below(rand, AS_FRAME_ALIGNMENT - 1);
    memset(bytes + length, 0, (size_t)added);
    return length + added;
}

static int32_t corrupt_data(uint8_t *bytes, int32_t length, asi_rand *rand)
{
    static const int32_t LENGTHS[] = { -1, -128, 0, 31, INT32_MAX, INT32_MIN, 1 << 20 };
    asi_frame_header *frame = (asi_frame_header *)(void *)bytes;
    const bool is_heartbeat = 0 == frame->frame_length;
    switch (below(rand, 6))
    {
        case 0: frame->term_offset += 1 + below(rand, 31); break;
        case 1: frame->term_offset = 0 == below(rand, 2) ? -AS_FRAME_ALIGNMENT : (1 << 30) - AS_FRAME_ALIGNMENT; break;
        case 2: frame->term_id = far_term(frame->term_id, rand); break;
        case 3: frame->session_id ^= 0x55555555; break;
        case 4: frame->stream_id ^= 0x55555555; break;
        default:
            if (is_heartbeat || AS_FRAME_HEADER_LENGTH == length)
            {
                frame->version = 1; /* other lengths of a header alone are heartbeats or padding of a plausible size */
            }
            else
            {
                frame->frame_length = LENGTHS[below(rand, sizeof(LENGTHS) / sizeof(LENGTHS[0]))];
            }
            break;
    }
    return length;
}

static void corrupt_setup(asi_setup_frame *setup, asi_rand *rand)
{
    switch (below(rand, 6))
    {
        case 0: setup->term_length = 100000; break;
        case 1: setup->term_length = 0 == below(rand, 2) ? 0 : 32 * 1024; break;
        case 2: setup->mtu_length += 1 + below(rand, 31); break;
        case 3: setup->mtu_length = 0 == below(rand, 2) ? 32 : -32; break;
        case 4: setup->term_offset = 0 == below(rand, 2) ? setup->term_length + 32 : -32; break;
        default: setup->active_term_id = asi_wrap_sub(setup->initial_term_id, 1 + below(rand, 1000)); break;
    }
}

static void corrupt_status(asi_status_frame *status, asi_rand *rand)
{
    switch (below(rand, 5))
    {
        case 0:
            status->prefix.flags &= (uint8_t)~ASI_STATUS_FLAG_SEND_SETUP;
            status->consumption_term_id = far_term(status->consumption_term_id, rand);
            break;
        case 1: status->receiver_window = -1 - below(rand, 1 << 20); break;
        case 2: status->prefix.frame_length += 100; break;
        case 3: status->session_id ^= 0x55555555; break;
        default: status->prefix.flags = ASI_STATUS_FLAG_SEND_SETUP; break;
    }
}

static void corrupt_nak(asi_nak_frame *nak, asi_rand *rand)
{
    switch (below(rand, 5))
    {
        case 0: nak->term_offset += 1 + below(rand, 31); break;
        case 1: nak->term_offset = -32; break;
        case 2: nak->length = 0 == below(rand, 2) ? -1 : INT32_MAX; break;
        case 3: nak->term_id = far_term(nak->term_id, rand); break;
        default: nak->term_offset = AS_FRAME_ALIGNMENT * below(rand, 2048); break;
    }
}

int32_t sim_corrupt(uint8_t *bytes, int32_t length, asi_rand *rand)
{
    asi_frame_prefix *prefix = (asi_frame_prefix *)(void *)bytes;
    if (length < (int32_t)sizeof(*prefix))
    {
        return length;
    }
    const int32_t kind = below(rand, 8);
    const bool is_data = ASI_FRAME_DATA == prefix->type || ASI_FRAME_PAD == prefix->type;
    if (0 == kind)
    {
        prefix->version = (uint8_t)(1 + below(rand, 255));
    }
    else if (1 == kind)
    {
        prefix->type = (uint16_t)(0x20 + below(rand, 0xffff - 0x20));
    }
    else if (2 == kind && !(is_data && AS_FRAME_HEADER_LENGTH == length && 0 == prefix->frame_length))
    {
        length = grow(bytes, length, rand);
    }
    else if (is_data && length >= AS_FRAME_HEADER_LENGTH)
    {
        length = corrupt_data(bytes, length, rand);
    }
    else if (ASI_FRAME_SETUP == prefix->type && length >= (int32_t)sizeof(asi_setup_frame))
    {
        corrupt_setup((asi_setup_frame *)(void *)bytes, rand);
    }
    else if (ASI_FRAME_STATUS == prefix->type && length >= ASI_STATUS_LENGTH)
    {
        corrupt_status((asi_status_frame *)(void *)bytes, rand);
    }
    else if (ASI_FRAME_NAK == prefix->type && length >= (int32_t)sizeof(asi_nak_frame))
    {
        corrupt_nak((asi_nak_frame *)(void *)bytes, rand);
    }
    else
    {
        prefix->frame_length = 0 == below(rand, 2) ? -1 : length + 1 + below(rand, 1000);
        prefix->version = (uint8_t)(ASI_FRAME_ERROR == prefix->type ? 0 : 1);
    }
    return length;
}

/* Random bytes with a known frame type. */
static int32_t make_garbage(uint8_t *bytes, asi_rand *rand)
{
    static const uint16_t TYPES[] = { ASI_FRAME_DATA, ASI_FRAME_PAD, ASI_FRAME_NAK, ASI_FRAME_ERROR, ASI_FRAME_SETUP,
        ASI_FRAME_RTTM, ASI_FRAME_RESOLUTION, ASI_FRAME_RESPONSE_SETUP };
    const int32_t length = below(rand, 128);
    for (int32_t i = 0; i < length; i++)
    {
        bytes[i] = (uint8_t)asi_rand_u64(rand);
    }
    if (length >= (int32_t)sizeof(asi_frame_prefix) && 0 != below(rand, 4))
    {
        asi_frame_prefix *prefix = (asi_frame_prefix *)(void *)bytes;
        prefix->version = 0;
        prefix->type = TYPES[below(rand, sizeof(TYPES) / sizeof(TYPES[0]))];
    }
    return length;
}

int32_t sim_forge(uint8_t *bytes, int32_t length, asi_rand *rand)
{
    /* Room for garbage in every datagram: the shortest frame is 20 bytes, the buffer has SIM_CORRUPT_MAX_GROWTH more. */
    return 0 == below(rand, 4) && length >= AS_FRAME_HEADER_LENGTH ? make_garbage(bytes, rand) : sim_corrupt(bytes, length, rand);
}
