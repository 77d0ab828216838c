/* Copies frames of one term into caller-owned columns of whole messages. Spec: 02 §10.4, 06 §7.3, §8.
 *
 * Used by image polling and by the archive's segment reader. A message never leaves its term, and its fragments follow each
 * other in the term, so assembly needs no state. An incomplete message is rolled back and found again by the next call.
 * Fragments without a BEGIN (the range starts inside a message, or an unblocked publisher left them) are skipped. */
#ifndef ASI_TERM_COLUMNS_H
#define ASI_TERM_COLUMNS_H

#include "aeron_spark/as_client.h"
#include "term/chain.h"
#include "term/frame_walk.h"

typedef enum asi_columns_stop
{
    ASI_COLUMNS_END,       /* nothing more to take before begin_limit (or the committed end) */
    ASI_COLUMNS_FULL,      /* row or byte capacity reached; the next message begins at `offset` */
    ASI_COLUMNS_TOO_LARGE, /* the columns are empty and the message at `offset` alone is larger: needs `needed_bytes` */
    ASI_COLUMNS_PARTIAL,   /* the message that begins at `offset` has no END before data_limit */
    ASI_COLUMNS_BROKEN,    /* bad frame at `fault_offset`, see fault */
    ASI_COLUMNS_PADDING,   /* the padding at `offset` passes data_limit; the caller checks its bytes and steps over it */
} asi_columns_stop;

typedef enum asi_columns_fault
{
    ASI_FAULT_NONE,
    ASI_FAULT_LENGTH,   /* impossible frame length */
    ASI_FAULT_HEADER,   /* term id, term offset or stream id does not match the location */
    ASI_FAULT_CHECKSUM, /* payload does not match the recorded checksum */
    ASI_FAULT_MTU,      /* a data frame longer than the MTU */
    ASI_FAULT_FRAGMENT, /* a fragment that no message can hold, see chain.h */
    ASI_FAULT_PADDING   /* padding whose session id is the checksum of its bytes: a data frame with a damaged type */
} asi_columns_fault;

/* Suspicious but possible findings in recorded frames. The rows are delivered anyway. */
typedef enum asi_columns_doubt
{
    ASI_DOUBT_CUT,     /* a message breaks off where the next one begins, see chain.h */
    ASI_DOUBT_SHORT,   /* a message breaks off before padding, with a fragment that is not full */
    ASI_DOUBT_PADDING, /* the body of padding is not zero */
    ASI_DOUBT_TAIL,    /* nonzero bytes between the frame's length and the next frame */
    ASI_DOUBT_KIND,    /* version or type that no publication writes; the frame counts as data */
    ASI_DOUBTS
} asi_columns_doubt;

typedef struct asi_columns_range
{
    /* in */
    const uint8_t *term;       /* first byte of the term */
    int64_t term_length;
    int64_t term_position;     /* stream position of the term's first byte */
    int64_t begin_limit;       /* messages that begin at or after this offset are left */
    int64_t data_limit;        /* committed bytes end here; a frame that passes it has not arrived (padding: its header counts) */
    bool check_headers;        /* compare each frame's header with the next two fields and its own offset */
    int32_t term_id;
    int32_t stream_id;
    int32_t mtu_length;        /* of a recording, also enables the checks between neighbouring frames (chain.h); 0: no checks */
    asi_frame_checksum checksum;
    bool override_session_id;  /* recordings with checksums replaced the frame's own; report this one */
    int32_t session_id;
    /* in and out */
    int64_t offset;            /* where to start; then where the next call continues (a frame boundary) */
    asi_chain_before before;   /* what precedes `offset` */
    int64_t doubt_position[ASI_DOUBTS]; /* of the first of each kind; the caller sets -1 */
    /* out */
    int64_t fault_offset;
    asi_columns_fault fault;
    int64_t needed_bytes;
    int64_t unfinished_end;    /* ASI_COLUMNS_PARTIAL: end of the fragments that have arrived */
    int64_t skipped_fragments; /* number of skipped fragments, accumulated */
} asi_columns_range;

/* Appends to columns from row_count/byte_count on. The frames may lie in `value` itself, at byte_count or later. Payloads
 * then move down over headers that have been read, and the rest stays unchanged. With `value_end` whole payloads stay where they
 * are, and the further fragments of a message move behind the first. */
asi_columns_stop asi_columns_append(asi_columns_range *range, as_columns *columns);

#endif
