/* One captured packet to its payload. Used by capture_file.c; see capture_packet.c. */
#ifndef AERON_SPARK_CAPTURE_PACKET_H
#define AERON_SPARK_CAPTURE_PACKET_H

#include <stddef.h>
#include <string.h>

#include "aeron_spark/as_capture.h"

/* A packet as its headers tell of it: offsets count from the packet's first byte. */
typedef struct asi_packet
{
    as_capture_kind kind;
    int64_t start;
    int64_t length;
    uint32_t sequence;
    uint32_t more;
    as_capture_flow flow; /* set if the kind has one */
} asi_packet;

static inline uint32_t asi_big_16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }
static inline uint32_t asi_big_32(const uint8_t *at) { return asi_big_16(at) << 16 | asi_big_16(at + 2); }

/* False: a link type that is not known, so the packet is AS_CAPTURE_OTHER. `length`: bytes that the capture holds; `is_cut`: the
 * packet had more. */
bool asi_packet_read_untrusted(int32_t link, const uint8_t *bytes, int64_t length, bool is_cut, asi_packet *packet);

#endif
