/* Captured packets: what is in a pcap or pcapng file, as columns of datagrams and TCP segments. The caller hands over the file's
 * bytes piece by piece; all of them are unchecked.
 *
 *      bytes > as_capture_read (blocks, packets, link, IP, UDP and TCP headers; every length checked) > columns
 *
 * Nothing is copied: a row is where a packet's payload lies in the piece. Ports and addresses become the number of a flow.
 * Thread rule: a capture belongs to one thread at a time. */
#ifndef AERON_SPARK_AS_CAPTURE_H
#define AERON_SPARK_AS_CAPTURE_H

#include "aeron_spark/as_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)
/* CFFI-BEGIN */
#define AS_CAPTURE_MAX_FLOWS 65536
#define AS_CAPTURE_MAX_INTERFACES 65536
#define AS_CAPTURE_MAX_BLOCK 16777216

typedef enum as_capture_kind_e
{
    AS_CAPTURE_UDP = 0,
    AS_CAPTURE_TCP,
    AS_CAPTURE_FRAGMENT,    /* of an IP packet: the payload is IP's, the flow has no ports */
    AS_CAPTURE_CUT,         /* the capture holds less of the packet than its headers say; `flow` is -1, as for the following */
    AS_CAPTURE_OTHER,       /* neither UDP nor TCP over IP, of a link type that is not known, or left out */
    AS_CAPTURE_MALFORMED    /* headers that contradict each other */
} as_capture_kind;

typedef enum as_capture_error_e
{
    AS_CAPTURE_FINE = 0,
    AS_CAPTURE_NO_CAPTURE,      /* the first bytes are of no pcap or pcapng file */
    AS_CAPTURE_BAD_BLOCK,       /* a length that no block or packet can have */
    AS_CAPTURE_TRUNCATED,       /* the file ends within a packet */
    AS_CAPTURE_TOO_MANY_INTERFACES, /* more than AS_CAPTURE_MAX_INTERFACES in a section of the file */
    AS_CAPTURE_NO_MEMORY
} as_capture_error;

/* Rows of packets, arrays of the caller. */
typedef struct as_capture_rows
{
    int64_t *time_ns;
    int64_t *start;      /* of the payload in the bytes */
    int64_t *length;     /* of the payload, as far as it is captured */
    int32_t *flow;
    uint8_t *kind;
    uint32_t *sequence;  /* TCP: of the first byte of payload; a fragment: its identification */
    uint32_t *more;      /* TCP: flags; a fragment: offset in bytes, bit 31: more follow */
} as_capture_rows;

typedef struct as_capture_flow
{
    uint8_t source[16];  /* an IPv4 address is in the first 4 bytes */
    uint8_t target[16];
    uint16_t source_port;
    uint16_t target_port;
    uint8_t protocol;    /* of IP: 17 UDP, 6 TCP */
    bool is_ipv6;
} as_capture_flow;

typedef struct as_capture as_capture;

/* NULL: out of memory. */
as_capture *as_capture_open(void);
void as_capture_close(as_capture *capture);
/* Reads whole packets from the front of `bytes`, at most `capacity`. *count receives their number, *consumed how many bytes they
 * took: hand over the rest again with more behind it. Progress needs a whole packet in `bytes`: one has at most
 * AS_CAPTURE_MAX_BLOCK bytes. `is_last`: nothing follows these bytes. After an error, the rows before it are there. */
as_capture_error as_capture_read(as_capture *capture, const uint8_t *bytes, int64_t length, bool is_last,
    const as_capture_rows *rows, int64_t capacity, int64_t *count, int64_t *consumed) AS_MUST_USE;
int64_t as_capture_flow_count(const as_capture *capture);
/* NULL: there is none of that number. Valid until the next read. */
const as_capture_flow *as_capture_flow_at(const as_capture *capture, int64_t index);
/* Number of the flow; -1: there are too many, or no memory. */
int32_t as_capture_flow_of(as_capture *capture, const as_capture_flow *flow) AS_MUST_USE;
/* The first link type of a packet so far that is not known; -1: all are. */
int32_t as_capture_other_link(const as_capture *capture);
/* Packets so far that are left out, since their flow would be one more than AS_CAPTURE_MAX_FLOWS. */
int64_t as_capture_left_out(const as_capture *capture);
/* CFFI-END */
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
