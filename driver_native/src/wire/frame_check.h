/* The only reader of untrusted datagrams: decides which of them are whole frames of a type that its side handles. Spec: 04
 * §1-2; 11 N1-N3, N6.
 *
 * The receiver and the sender call it for each datagram, before anything else. After ASI_DATAGRAM_ACCEPTED the header struct
 * of the frame's type lies within the datagram and the rules below hold. Values (ids, positions, term lengths) are still the
 * peer's; the code that knows the stream checks them. Datagrams must lie in memory aligned to 8. Pure; any thread. */
#ifndef ASI_WIRE_FRAME_CHECK_H
#define ASI_WIRE_FRAME_CHECK_H

#include "wire/frame.h"

typedef enum asi_datagram_verdict
{
    ASI_DATAGRAM_ACCEPTED,
    ASI_DATAGRAM_IGNORED, /* a type that this side does not handle: dropped without a counter */
    ASI_DATAGRAM_INVALID  /* count "Invalid packets" */
} asi_datagram_verdict;

/* For receive sockets: DATA, PAD, SETUP and RTTM. DATA and PAD: length and term offset are multiples of 32 and not negative.
 * SETUP: term length, offset and MTU are possible for a stream. */
asi_datagram_verdict asi_check_data_datagram_untrusted(const void *datagram, int64_t length);
/* For send sockets: NAK, SM, ERR, RTTM and RSP_SETUP; 0 <= frame_length <= length. ERR: the text lies within the frame. */
asi_datagram_verdict asi_check_control_datagram_untrusted(const void *datagram, int64_t length);
/* Bytes of term that the frames of an accepted DATA or PAD datagram span, including the unsent body of a final PAD. -1 if the
 * frames do not lie back to back, each at the offset in its header, or do not end with the datagram. Not for heartbeats.
 * Spec: 11 N2 */
int64_t asi_data_extent_untrusted(const void *datagram, int64_t length);

/* Spec: 11 N2 - of either type. */
static inline bool asi_is_heartbeat(const void *accepted_datagram, int64_t length)
{
    const asi_frame_prefix *prefix = accepted_datagram;
    return AS_FRAME_HEADER_LENGTH == length && 0 == prefix->frame_length;
}

#endif
