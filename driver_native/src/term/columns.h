/* Frames of one term to caller-owned columns of whole messages. Spec: 02 §10.4; 06 §7.3, §8.
 *
 * Used by image polling and by the archive's segment reader. A message never leaves its term and its fragments follow each
 * other in it, so assembly needs no state: a message that is not complete yet is rolled back and found again next time.
 * Fragments without a BEGIN before them (a start inside a message, or what an unblocked publisher left) are passed over. */
#ifndef ASI_TERM_COLUMNS_H
#define ASI_TERM_COLUMNS_H

#include "aeron_spark/as_client.h"
#include "term/frame_walk.h"

typedef enum asi_columns_stop
{
    ASI_COLUMNS_END,       /* nothing more to take before begin_limit (or the committed end) */
    ASI_COLUMNS_FULL,      /* row or byte capacity reached; the next message begins at `offset` */
    ASI_COLUMNS_TOO_LARGE, /* the columns are empty and the message at `offset` alone is larger: needs `needed_bytes` */
    ASI_COLUMNS_PARTIAL,   /* the message that begins at `offset` has no END before data_limit */
    ASI_COLUMNS_BROKEN,    /* bad frame at `fault_offset`, see fault */
} asi_columns_stop;

typedef enum asi_columns_fault
{
    ASI_FAULT_NONE,
    ASI_FAULT_LENGTH,   /* impossible frame length */
    ASI_FAULT_HEADER,   /* term id, term offset or stream id is not the place's */
    ASI_FAULT_CHECKSUM  /* payload does not match the recorded checksum */
} asi_columns_fault;

/* CRC of a frame's aligned payload, as recorded in the session id field; NULL = not checked. */
typedef uint32_t (*asi_frame_checksum)(const uint8_t *bytes, int64_t length);

typedef struct asi_columns_range
{
    /* in */
    const uint8_t *term;       /* first byte of the term */
    int64_t term_length;
    int64_t term_position;     /* stream position of the term's first byte */
    int64_t begin_limit;       /* messages that begin at or after this offset are not taken */
    int64_t data_limit;        /* committed bytes end here; a frame that passes it is not there yet (padding is by its header) */
    bool check_headers;        /* compare each frame with the next two and its own offset */
    int32_t term_id;
    int32_t stream_id;
    asi_frame_checksum checksum;
    bool override_session_id;  /* recordings with checksums lost the frame's own: show this one */
    int32_t session_id;
    /* in and out */
    int64_t offset;            /* where to start; then where the next call continues (a frame boundary) */
    /* out */
    int64_t fault_offset;
    asi_columns_fault fault;
    int64_t needed_bytes;
    int64_t unfinished_end;    /* ASI_COLUMNS_PARTIAL: where the fragments end that are there */
    int64_t skipped_fragments; /* fragments passed over, added up */
} asi_columns_range;

/* Appends to columns from row_count/byte_count on. The frames may lie in `value` itself, from byte_count on or behind: payloads move
 * down over headers that were read, and what is not taken stays as it was. */
asi_columns_stop asi_columns_append(asi_columns_range *range, as_columns *columns);

#endif
