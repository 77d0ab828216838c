/* Frame headers as they are in term buffers, segment files and datagrams. Spec: 02 §3, 04 §1.
 *
 * In logs every frame starts on a 32-byte boundary. frame_length: 0 = no frame yet, negative = being written (its absolute
 * value is the future length), positive = committed; unaligned, header included. Only DATA and PAD occur in logs.
 *
 * A datagram holds one control frame, or one or more DATA frames that are 32-byte aligned. The last of them may be a PAD, of
 * which only the header is sent. A DATA datagram of exactly 32 bytes with frame_length 0 is a heartbeat. */
#ifndef ASI_WIRE_FRAME_H
#define ASI_WIRE_FRAME_H

#include <stddef.h>

#include "aeron_spark/as_types.h"
#include "base/assert.h"
#include "base/bits.h"

enum
{
    ASI_FRAME_PAD = 0x00,
    ASI_FRAME_DATA = 0x01,
    ASI_FRAME_NAK = 0x02,
    ASI_FRAME_STATUS = 0x03,
    ASI_FRAME_ERROR = 0x04,
    ASI_FRAME_SETUP = 0x05,
    ASI_FRAME_RTTM = 0x06,
    ASI_FRAME_RESOLUTION = 0x07,
    ASI_FRAME_RESPONSE_SETUP = 0x0B
};

enum
{
    ASI_FLAG_BEGIN = 0x80,
    ASI_FLAG_END = 0x40,
    ASI_FLAG_UNFRAGMENTED = 0xC0,
    ASI_FLAG_EOS = 0x20,    /* this flag and the next occur in heartbeats only */
    ASI_FLAG_REVOKED = 0x10,
    ASI_SETUP_FLAG_RESPONSE = 0x80,   /* the publisher requests a response channel */
    ASI_SETUP_FLAG_GROUP = 0x40,      /* multicast or multi-destination publication */
    ASI_STATUS_FLAG_SEND_SETUP = 0x80,
    ASI_STATUS_FLAG_EOS = 0x40,
    ASI_RTTM_FLAG_REQUEST = 0x80,     /* requests a reply */
    ASI_ERROR_FLAG_GROUP_TAG = 0x08   /* group_tag is valid */
};

#define ASI_STATUS_LENGTH 36
#define ASI_STATUS_TAGGED_LENGTH 44
#define ASI_ERROR_TEXT_MAX_LENGTH 1023
#define ASI_DATAGRAM_MAX_LENGTH 65507 /* UDP over IPv4; receive buffers must hold any length that a sender may choose */

typedef struct asi_frame_header
{
    int32_t frame_length;   /* bytes 0..3 */
    uint8_t version;        /* byte 4 */
    uint8_t flags;          /* byte 5 */
    uint16_t type;          /* bytes 6..7 */
    int32_t term_offset;    /* bytes 8..11 */
    int32_t session_id;     /* bytes 12..15; in an archive with record checksums the payload's CRC (Spec: 06 §8) */
    int32_t stream_id;      /* bytes 16..19 */
    int32_t term_id;        /* bytes 20..23 */
    int64_t reserved_value; /* bytes 24..31 */
} asi_frame_header;

AS_STATIC_ASSERT(sizeof(asi_frame_header) == AS_FRAME_HEADER_LENGTH, "Spec: 02 §3");
AS_STATIC_ASSERT(offsetof(asi_frame_header, flags) == 5, "Spec: 02 §3");
AS_STATIC_ASSERT(offsetof(asi_frame_header, type) == 6, "Spec: 02 §3");
AS_STATIC_ASSERT(offsetof(asi_frame_header, term_offset) == 8, "Spec: 02 §3");
AS_STATIC_ASSERT(offsetof(asi_frame_header, session_id) == 12, "Spec: 02 §3");
AS_STATIC_ASSERT(offsetof(asi_frame_header, stream_id) == 16, "Spec: 02 §3");
AS_STATIC_ASSERT(offsetof(asi_frame_header, term_id) == 20, "Spec: 02 §3");
AS_STATIC_ASSERT(offsetof(asi_frame_header, reserved_value) == 24, "Spec: 02 §3");

#define ASI_RESOLUTION_MIN_LENGTH 22 /* prefix and an IPv4 entry without a name */

/* Bytes that a frame of `frame_length` occupies. 64-bit: an invalid frame_length near INT32_MAX must not wrap. */
static inline int64_t asi_frame_occupancy(int32_t frame_length)
{
    return asi_align_i64(frame_length, AS_FRAME_ALIGNMENT);
}

/* The start of every frame. */
typedef struct asi_frame_prefix
{
    int32_t frame_length; /* 0..3 */
    uint8_t version;      /* 4: 0 */
    uint8_t flags;        /* 5 */
    uint16_t type;        /* 6..7 */
} asi_frame_prefix;

AS_STATIC_ASSERT(sizeof(asi_frame_prefix) == 8, "Spec: 04 §1.2");

typedef struct asi_setup_frame
{
    asi_frame_prefix prefix; /* 0..7 */
    int32_t term_offset;     /* 8..11: of the sender's position */
    int32_t session_id;      /* 12..15 */
    int32_t stream_id;       /* 16..19 */
    int32_t initial_term_id; /* 20..23 */
    int32_t active_term_id;  /* 24..27 */
    int32_t term_length;     /* 28..31 */
    int32_t mtu_length;      /* 32..35 */
    int32_t ttl;             /* 36..39 */
} asi_setup_frame;

AS_STATIC_ASSERT(sizeof(asi_setup_frame) == 40, "Spec: 04 §1.6");
AS_STATIC_ASSERT(offsetof(asi_setup_frame, active_term_id) == 24, "Spec: 04 §1.6");
AS_STATIC_ASSERT(offsetof(asi_setup_frame, ttl) == 36, "Spec: 04 §1.6");

/* The wire format does not align 64-bit fields. The type's lower alignment makes that known to the compiler. */
typedef int64_t asi_wire_i64 __attribute__((aligned(4)));

typedef struct asi_status_frame
{
    asi_frame_prefix prefix;      /* 0..7: frame_length 36, or 44 with the group tag */
    int32_t session_id;           /* 8..11 */
    int32_t stream_id;            /* 12..15 */
    int32_t consumption_term_id;  /* 16..19 */
    int32_t consumption_term_offset; /* 20..23 */
    int32_t receiver_window;      /* 24..27 */
    asi_wire_i64 receiver_id;     /* 28..35 */
    asi_wire_i64 group_tag;       /* 36..43: absent when frame_length is 36 */
} asi_status_frame;

AS_STATIC_ASSERT(sizeof(asi_status_frame) == ASI_STATUS_TAGGED_LENGTH, "Spec: 04 §1.7");
AS_STATIC_ASSERT(offsetof(asi_status_frame, receiver_id) == 28, "Spec: 04 §1.7");
AS_STATIC_ASSERT(offsetof(asi_status_frame, group_tag) == ASI_STATUS_LENGTH, "Spec: 04 §1.7");

typedef struct asi_nak_frame
{
    asi_frame_prefix prefix; /* 0..7 */
    int32_t session_id;      /* 8..11 */
    int32_t stream_id;       /* 12..15 */
    int32_t term_id;         /* 16..19 */
    int32_t term_offset;     /* 20..23 */
    int32_t length;          /* 24..27: of the gap, from term_offset */
} asi_nak_frame;

AS_STATIC_ASSERT(sizeof(asi_nak_frame) == 28, "Spec: 04 §1.8");
AS_STATIC_ASSERT(offsetof(asi_nak_frame, length) == 24, "Spec: 04 §1.8");

typedef struct asi_rttm_frame
{
    asi_frame_prefix prefix;      /* 0..7 */
    int32_t session_id;           /* 8..11 */
    int32_t stream_id;            /* 12..15 */
    asi_wire_i64 echo_timestamp_ns;  /* 16..23: the requester's clock, opaque to the other side */
    asi_wire_i64 reception_delta_ns; /* 24..31 */
    asi_wire_i64 receiver_id;     /* 32..39 */
} asi_rttm_frame;

AS_STATIC_ASSERT(sizeof(asi_rttm_frame) == 40, "Spec: 04 §1.9");
AS_STATIC_ASSERT(offsetof(asi_rttm_frame, receiver_id) == 32, "Spec: 04 §1.9");

/* Followed by error_length bytes of text, neither terminated nor padded. */
typedef struct asi_error_frame
{
    asi_frame_prefix prefix;  /* 0..7: frame_length 40 + error_length */
    int32_t session_id;       /* 8..11 */
    int32_t stream_id;        /* 12..15 */
    asi_wire_i64 receiver_id; /* 16..23 */
    asi_wire_i64 group_tag;   /* 24..31 */
    int32_t error_code;       /* 32..35 */
    int32_t error_length;     /* 36..39 */
} asi_error_frame;

AS_STATIC_ASSERT(sizeof(asi_error_frame) == 40, "Spec: 04 §1.10");
AS_STATIC_ASSERT(offsetof(asi_error_frame, error_length) == 36, "Spec: 04 §1.10");

typedef struct asi_response_setup_frame
{
    asi_frame_prefix prefix;     /* 0..7 */
    int32_t session_id;          /* 8..11: of the request stream, like the next */
    int32_t stream_id;           /* 12..15 */
    int32_t response_session_id; /* 16..19 */
} asi_response_setup_frame;

AS_STATIC_ASSERT(sizeof(asi_response_setup_frame) == 20, "Spec: 04 §1.11");

#endif
