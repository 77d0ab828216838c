/* Checks of unchecked datagrams; see frame_check.h. */
#include "wire/frame_check.h"

/* Version, and the common header itself. Spec: 04 §2.1. */
static bool has_prefix(const void *datagram, int64_t length)
{
    const asi_frame_prefix *prefix = datagram;
    return length >= (int64_t)sizeof(*prefix) && 0 == prefix->version;
}

static asi_datagram_verdict verdict_of(bool is_valid) { return is_valid ? ASI_DATAGRAM_ACCEPTED : ASI_DATAGRAM_INVALID; }

static bool is_multiple_of_alignment(int64_t value) { return value >= 0 && 0 == (value & (AS_FRAME_ALIGNMENT - 1)); }

asi_datagram_verdict asi_check_data_datagram_untrusted(const void *datagram, int64_t length)
{
    if (!has_prefix(datagram, length))
    {
        return ASI_DATAGRAM_INVALID;
    }
    switch (((const asi_frame_prefix *)datagram)->type)
    {
        case ASI_FRAME_DATA:
        case ASI_FRAME_PAD:
            return verdict_of(length >= AS_FRAME_HEADER_LENGTH && is_multiple_of_alignment(length) &&
                is_multiple_of_alignment(((const asi_frame_header *)datagram)->term_offset));
        case ASI_FRAME_SETUP:
            return verdict_of(length >= (int64_t)sizeof(asi_setup_frame));
        case ASI_FRAME_RTTM:
            return verdict_of(length >= (int64_t)sizeof(asi_rttm_frame));
        default:
            return ASI_DATAGRAM_IGNORED;
    }
}

/* Spec: 04 §2.8. The bound by the term's length is the publication's to check. */
static bool is_valid_nak(const asi_nak_frame *nak) { return is_multiple_of_alignment(nak->term_offset) && nak->length >= 0; }

asi_datagram_verdict asi_check_control_datagram_untrusted(const void *datagram, int64_t length)
{
    if (!has_prefix(datagram, length))
    {
        return ASI_DATAGRAM_INVALID;
    }
    const asi_frame_prefix *prefix = datagram;
    const bool is_whole = prefix->frame_length >= 0 && length >= prefix->frame_length; /* Spec: 04 §2.3 */
    switch (prefix->type)
    {
        case ASI_FRAME_NAK:
            return verdict_of(is_whole && length >= (int64_t)sizeof(asi_nak_frame) && is_valid_nak(datagram));
        case ASI_FRAME_STATUS:
            return verdict_of(is_whole && length >= ASI_STATUS_LENGTH);
        case ASI_FRAME_ERROR:
            return verdict_of(is_whole && length >= (int64_t)sizeof(asi_error_frame));
        case ASI_FRAME_RTTM:
            return verdict_of(is_whole && length >= (int64_t)sizeof(asi_rttm_frame));
        case ASI_FRAME_RESPONSE_SETUP:
            return verdict_of(is_whole && length >= (int64_t)sizeof(asi_response_setup_frame));
        default:
            return ASI_DATAGRAM_IGNORED;
    }
}

int64_t asi_data_extent_untrusted(const void *datagram, int64_t length)
{
    const uint8_t *bytes = datagram;
    int64_t offset = 0;
    while (offset < length)
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)(bytes + offset);
        if (frame->frame_length < AS_FRAME_HEADER_LENGTH)
        {
            return -1;
        }
        const int64_t occupied = asi_frame_occupancy(frame->frame_length);
        if (ASI_FRAME_PAD == frame->type && offset + AS_FRAME_HEADER_LENGTH == length)
        {
            return offset + occupied;
        }
        if (occupied > length - offset)
        {
            return -1;
        }
        offset += occupied;
    }
    return offset;
}

int32_t asi_error_text_length_untrusted(const void *datagram, int64_t length)
{
    const asi_error_frame *frame = datagram;
    int64_t text_length = frame->error_length;
    const int64_t available = length - (int64_t)sizeof(*frame);
    text_length = text_length > available ? available : text_length;
    text_length = text_length > ASI_ERROR_TEXT_MAX_LENGTH ? ASI_ERROR_TEXT_MAX_LENGTH : text_length;
    return (int32_t)(text_length < 0 ? 0 : text_length);
}
