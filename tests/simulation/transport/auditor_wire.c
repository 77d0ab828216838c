/* Checks sent frames as a strict peer does: such a peer drops a wrong frame, and the stream is then silent without an error at
 * either end. Written from the specification alone; it calls none of the product's checks of received frames. Spec: 11 N1-N6,
 * §3. */
#include <stdlib.h>

#include "auditor.h"
#include "sim_trace.h"
#include "wire/frame.h"

#define ERROR_TEXT_MAX 1023

void auditor_set_flow(auditor *a, const auditor_flow *flow)
{
    if (AUDITOR_MAX_FLOWS == a->flow_count)
    {
        sim_fail("setup", "more than %d flows", AUDITOR_MAX_FLOWS);
    }
    a->flows[a->flow_count++] = *flow;
}

const auditor_flow *auditor_find_flow(const auditor *a, int32_t stream_id)
{
    for (int32_t i = 0; i < a->flow_count; i++)
    {
        if (a->flows[i].stream_id == stream_id)
        {
            return &a->flows[i];
        }
    }
    return NULL;
}

/* The adversary's streams, and those that a broken set-up made, have terms of any length. */
static int32_t term_length_at_receiver(const auditor *a, int32_t session_id, int32_t stream_id)
{
    for (int32_t i = 0; i < a->stream_count; i++)
    {
        if (a->streams[i].session_id == session_id && a->streams[i].stream_id == stream_id)
        {
            return a->streams[i].term_length;
        }
    }
    return AS_TERM_MAX_LENGTH;
}

static bool is_offset(int64_t offset, int64_t term_length)
{
    return offset >= 0 && offset < term_length && 0 == offset % AS_FRAME_ALIGNMENT;
}

/* N2, and no more of it than a publisher of ours has reason to send: one padding at most, without its body, at the end. */
static const char *judge_data(const auditor_flow *flow, const uint8_t *bytes, int32_t length)
{
    const asi_frame_header *first = (const asi_frame_header *)(const void *)bytes;
    if (0 != length % AS_FRAME_ALIGNMENT || !is_offset(first->term_offset, flow->term_length))
    {
        return "data of an odd length or offset";
    }
    if (AS_FRAME_HEADER_LENGTH == length && 0 == first->frame_length)
    {
        return NULL; /* a heartbeat */
    }
    if (length > flow->mtu_length)
    {
        return "more than an MTU";
    }
    for (int32_t at = 0; at < length;)
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)(bytes + at);
        const int64_t occupied = asi_align_i64(frame->frame_length, AS_FRAME_ALIGNMENT);
        const bool is_padding = ASI_FRAME_PAD == frame->type;
        if (frame->frame_length < AS_FRAME_HEADER_LENGTH || (ASI_FRAME_DATA != frame->type && !is_padding) ||
            frame->session_id != first->session_id || frame->stream_id != first->stream_id || frame->term_id != first->term_id ||
            frame->term_offset != first->term_offset + at || frame->term_offset + occupied > flow->term_length)
        {
            return "frames that do not lie back to back in a term";
        }
        if (is_padding)
        {
            return at + AS_FRAME_HEADER_LENGTH == length ? NULL : "padding with something behind its header";
        }
        if (occupied > length - at)
        {
            return "a frame that is cut off";
        }
        at += (int32_t)occupied;
    }
    return NULL;
}

static const char *judge_setup(const auditor_flow *flow, const uint8_t *bytes, int32_t length)
{
    const asi_setup_frame *setup = (const asi_setup_frame *)(const void *)bytes;
    if (sizeof(*setup) != (size_t)length || setup->prefix.frame_length != length)
    {
        return "a set-up of another length";
    }
    return setup->term_length == flow->term_length && setup->mtu_length == flow->mtu_length &&
        is_offset(setup->term_offset, setup->term_length) ? NULL : "a set-up with what the stream is not";
}

static const char *judge_status(const auditor *a, const uint8_t *bytes, int32_t length)
{
    const asi_status_frame *status = (const asi_status_frame *)(const void *)bytes;
    if ((ASI_STATUS_LENGTH != length && ASI_STATUS_TAGGED_LENGTH != length) || status->prefix.frame_length != length)
    {
        return "a status message of another length";
    }
    const int32_t term_length = term_length_at_receiver(a, status->session_id, status->stream_id);
    return is_offset(status->consumption_term_offset, term_length) && status->receiver_window >= 0 &&
        status->receiver_window <= term_length / 2 ? NULL : "a status message whose offset or window can't be";
}

static const char *judge_nak(const auditor *a, const uint8_t *bytes, int32_t length)
{
    const asi_nak_frame *nak = (const asi_nak_frame *)(const void *)bytes;
    if (sizeof(*nak) != (size_t)length || nak->prefix.frame_length != length)
    {
        return "a NAK of another length";
    }
    const int32_t term_length = term_length_at_receiver(a, nak->session_id, nak->stream_id);
    return is_offset(nak->term_offset, term_length) && nak->length > 0 && nak->length <= term_length - nak->term_offset ? NULL :
        "a NAK of what no term has";
}

static const char *judge_error(const uint8_t *bytes, int32_t length)
{
    const asi_error_frame *error = (const asi_error_frame *)(const void *)bytes;
    return length >= (int32_t)sizeof(*error) && error->prefix.frame_length == length && error->error_length >= 0 &&
        error->error_length <= ERROR_TEXT_MAX && length == (int32_t)sizeof(*error) + error->error_length ? NULL :
        "an error frame whose text is not as long as it says";
}

static const char *judge_length(const uint8_t *bytes, int32_t length, size_t due)
{
    return due == (size_t)length && asi_get_i32(bytes) == length ? NULL : "a frame of another length";
}

static const char *judge_of_publication(const auditor *a, const uint8_t *bytes, int32_t length, bool is_setup)
{
    if (length < AS_FRAME_HEADER_LENGTH)
    {
        return "a part of a header";
    }
    const auditor_flow *flow = auditor_find_flow(a, asi_get_i32(bytes + (is_setup ? offsetof(asi_setup_frame, stream_id) :
        offsetof(asi_frame_header, stream_id))));
    return NULL == flow ? "a stream that nobody publishes" :
        is_setup ? judge_setup(flow, bytes, length) : judge_data(flow, bytes, length);
}

static const char *judge(const auditor *a, const uint8_t *bytes, int32_t length)
{
    if (length < (int32_t)sizeof(asi_frame_prefix) || 0 != bytes[4])
    {
        return "no frame";
    }
    switch (asi_get_u16(bytes + 6))
    {
        case ASI_FRAME_DATA:
        case ASI_FRAME_PAD: return judge_of_publication(a, bytes, length, false);
        case ASI_FRAME_SETUP: return judge_of_publication(a, bytes, length, true);
        case ASI_FRAME_STATUS: return judge_status(a, bytes, length);
        case ASI_FRAME_NAK: return judge_nak(a, bytes, length);
        case ASI_FRAME_ERROR: return judge_error(bytes, length);
        case ASI_FRAME_RTTM: return judge_length(bytes, length, sizeof(asi_rttm_frame));
        case ASI_FRAME_RESPONSE_SETUP: return judge_length(bytes, length, sizeof(asi_response_setup_frame));
        case ASI_FRAME_RESOLUTION: return 0 == length % 8 && asi_get_i32(bytes) == length ? NULL : "names of another length";
        default: return "a frame of no type";
    }
}

void auditor_judge_sent(const auditor *a, const sim_sighting *sighting)
{
    const char *what = judge(a, sighting->bytes, sighting->length);
    if (NULL != what)
    {
        sim_fail("wire", "node %d sends %s: type %d, %d bytes, the frame %d, at %d", sighting->from->node, what,
            sighting->length < 8 ? -1 : asi_get_u16(sighting->bytes + 6), sighting->length,
            sighting->length < 4 ? -1 : asi_get_i32(sighting->bytes), sighting->length < 12 ? -1 : asi_get_i32(sighting->bytes + 8));
    }
}
