/* Checks untrusted datagrams; see frame_check.h. */
#include "wire/frame_check.h"

static bool is_multiple_of_alignment(int64_t value) { return value >= 0 && 0 == (value & (AS_FRAME_ALIGNMENT - 1)); }

/* Shortest datagram of a type that arrives alone; 0: no such type. Spec: 11 N1 */
static int64_t least_length(uint16_t type)
{
    switch (type)
    {
        case ASI_FRAME_NAK: return sizeof(asi_nak_frame);
        case ASI_FRAME_STATUS: return ASI_STATUS_LENGTH;
        case ASI_FRAME_ERROR: return sizeof(asi_error_frame);
        case ASI_FRAME_SETUP: return sizeof(asi_setup_frame);
        case ASI_FRAME_RTTM: return sizeof(asi_rttm_frame);
        case ASI_FRAME_RESPONSE_SETUP: return sizeof(asi_response_setup_frame);
        case ASI_FRAME_RESOLUTION: return ASI_RESOLUTION_MIN_LENGTH;
        default: return 0;
    }
}

/* True if the first frame is possible at all, on any socket. Spec: 11 N1 */
static bool passes_gate(const void *datagram, int64_t length)
{
    const asi_frame_prefix *prefix = datagram;
    if (length < (int64_t)sizeof(*prefix) || 0 != prefix->version || prefix->frame_length < 0)
    {
        return false;
    }
    if (ASI_FRAME_DATA == prefix->type || ASI_FRAME_PAD == prefix->type)
    {
        return length >= AS_FRAME_HEADER_LENGTH && is_multiple_of_alignment(length);
    }
    const int64_t least = least_length(prefix->type);
    return 0 != least && length >= least && length >= prefix->frame_length;
}

/* Spec: 11 N3. Term ids are checked where the image is created. */
static bool is_valid_setup(const asi_setup_frame *setup)
{
    const int32_t term = setup->term_length, mtu = setup->mtu_length;
    return term >= AS_TERM_MIN_LENGTH && term <= AS_TERM_MAX_LENGTH && 0 == (term & (term - 1)) &&
        is_multiple_of_alignment(setup->term_offset) && setup->term_offset < term &&
        is_multiple_of_alignment(mtu) && mtu >= AS_FRAME_HEADER_LENGTH && mtu <= AS_MAX_UDP_PAYLOAD_LENGTH;
}

asi_datagram_verdict asi_check_data_datagram_untrusted(const void *datagram, int64_t length)
{
    if (!passes_gate(datagram, length))
    {
        return ASI_DATAGRAM_INVALID;
    }
    bool is_valid = true;
    switch (((const asi_frame_prefix *)datagram)->type)
    {
        case ASI_FRAME_DATA:
        case ASI_FRAME_PAD: is_valid = is_multiple_of_alignment(((const asi_frame_header *)datagram)->term_offset); break;
        case ASI_FRAME_SETUP: is_valid = is_valid_setup(datagram); break;
        case ASI_FRAME_RTTM: break;
        default: return ASI_DATAGRAM_IGNORED;
    }
    return is_valid ? ASI_DATAGRAM_ACCEPTED : ASI_DATAGRAM_INVALID;
}

/* Spec: 11 N6 */
static bool is_valid_error(const asi_error_frame *error)
{
    const int64_t text_length = error->error_length;
    return text_length >= 0 && text_length <= ASI_ERROR_TEXT_MAX_LENGTH &&
        (int64_t)sizeof(*error) + text_length <= error->prefix.frame_length;
}

asi_datagram_verdict asi_check_control_datagram_untrusted(const void *datagram, int64_t length)
{
    if (!passes_gate(datagram, length))
    {
        return ASI_DATAGRAM_INVALID;
    }
    switch (((const asi_frame_prefix *)datagram)->type)
    {
        case ASI_FRAME_ERROR: return is_valid_error(datagram) ? ASI_DATAGRAM_ACCEPTED : ASI_DATAGRAM_INVALID;
        case ASI_FRAME_NAK:
        case ASI_FRAME_STATUS:
        case ASI_FRAME_RTTM:
        case ASI_FRAME_RESPONSE_SETUP: return ASI_DATAGRAM_ACCEPTED;
        default: return ASI_DATAGRAM_IGNORED;
    }
}

int64_t asi_data_extent_untrusted(const void *datagram, int64_t length)
{
    AS_STATIC_ASSERT(0 == ASI_FRAME_PAD && 1 == ASI_FRAME_DATA, "one comparison finds both");
    const uint8_t *bytes = datagram;
    const int64_t first_offset = ((const asi_frame_header *)datagram)->term_offset;
    int64_t offset = 0;
    while (offset < length)
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)(bytes + offset);
        /* One branch for three checks: small messages make 20 frames a datagram. */
        if ((frame->frame_length < AS_FRAME_HEADER_LENGTH) | (frame->term_offset != first_offset + offset) |
            (frame->type > ASI_FRAME_DATA))
        {
            return -1;
        }
        const int64_t occupied = asi_frame_occupancy(frame->frame_length);
        if (occupied > length - offset)
        {
            return ASI_FRAME_PAD == frame->type ? offset + occupied : -1; /* only the header of padding is sent */
        }
        offset += occupied;
    }
    return offset;
}
