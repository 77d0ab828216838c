/* What of a recording looks damaged, or contradicts its catalog entry, and can be read all the same. A frame's header is outside its
 * checksum, and so is a catalog record's: only what stands beside them can tell that they have changed. Used by the segment reader and
 * by verify. term/chain.h tells what is certain and what is in doubt. Nothing here writes. */
#ifndef ASI_STORE_SEGMENT_JUDGE_H
#define ASI_STORE_SEGMENT_JUDGE_H

#include "store/segment_read.h"
#include "term/columns.h"

/* Doubts of a recording: those of its frames (asi_columns_doubt), and what its entry says of them. */
typedef enum asi_recording_doubt
{
    ASI_DOUBT_BELOW_START = ASI_DOUBTS, /* bytes before the start position */
    ASI_DOUBT_BEHIND_STOP,              /* a frame of the recording at the stop position */
    ASI_DOUBT_UNCHECKED,                /* the entry has a checksum, no frame that was looked at has */
    ASI_RECORDING_DOUBTS
} asi_recording_doubt;

/* A sentence's end for "recording R at position P: ". */
const char *asi_doubt_text(int kind);

typedef enum asi_padding_verdict
{
    ASI_PADDING_EMPTY,   /* a hole, as writers leave it */
    ASI_PADDING_FILLED,  /* holds bytes */
    ASI_PADDING_WAS_DATA /* its session id is the checksum of its bytes */
} asi_padding_verdict;

/* Judges the bytes of padding up to `limit`; what the window holds stays. `header` is the frame's. */
as_result asi_segment_judge_padding(asi_segment_window *window, const asi_frame_header *header, int64_t position, int64_t limit,
    asi_frame_checksum checksum, int32_t recording_session_id, asi_padding_verdict *verdict) AS_MUST_USE;
/* Whether bytes stand in the first segment before the start position, where a recording that began within a term has a hole. A
 * segment that can't be read says nothing. */
bool asi_segment_has_bytes_below(asi_segment_window *window, int64_t start_position);
/* Whether a frame of the recording stands at the position. A segment that can't be read says no. */
bool asi_segment_has_frame_at(asi_segment_window *window, int64_t position);
/* What the frame before `position`, a fragment without a beginning, was; walks the position's term. UNKNOWN: a message that it goes on
 * with, or nothing that can be said. */
asi_chain_before asi_segment_before(asi_segment_window *window, int64_t position);
/* All of the header's fields that the position tells are right, and the length can be. */
bool asi_segment_is_frame(const asi_segment_source *source, const asi_frame_header *frame, int64_t position);

#endif
