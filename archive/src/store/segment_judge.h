/* Finds readable data of a recording that looks damaged or contradicts its catalog entry. Checksums cover neither frame headers
 * nor catalog record headers, so only the neighbouring bytes can show that a header has changed. Used by the segment reader and
 * by verify. term/chain.h separates certain damage from doubt. Nothing here writes. */
#ifndef ASI_STORE_SEGMENT_JUDGE_H
#define ASI_STORE_SEGMENT_JUDGE_H

#include "store/segment_read.h"
#include "term/columns.h"

/* Doubts of a recording: those of its frames (asi_columns_doubt), and contradictions between frames and catalog entry. */
typedef enum asi_recording_doubt
{
    ASI_DOUBT_BELOW_START = ASI_DOUBTS, /* bytes before the start position */
    ASI_DOUBT_BEHIND_STOP,              /* a frame of the recording at the stop position */
    ASI_DOUBT_UNCHECKED,                /* the entry has a checksum, but no frame that was checked has one */
    ASI_DOUBT_HOLDS_FRAMES,             /* frames of the recording stand inside a message; only verify looks for them */
    ASI_RECORDING_DOUBTS
} asi_recording_doubt;

/* Text that continues "recording R at position P: ". */
const char *asi_doubt_text(int kind);

typedef enum asi_padding_verdict
{
    ASI_PADDING_EMPTY,   /* a hole, as writers leave it */
    ASI_PADDING_FILLED,  /* holds bytes */
    ASI_PADDING_WAS_DATA /* its session id is the checksum of its bytes */
} asi_padding_verdict;

/* Checks the bytes of a padding frame up to `limit`. The window's contents do not change. `header` is the frame's header. */
as_result asi_segment_judge_padding(asi_segment_window *window, const asi_frame_header *header, int64_t position, int64_t limit,
    asi_frame_checksum checksum, int32_t recording_session_id, asi_padding_verdict *verdict) AS_MUST_USE;
/* True if the first segment holds bytes before the start position. A recording that began inside a term has a hole there. False
 * if the segment can't be read. */
bool asi_segment_has_bytes_below(asi_segment_window *window, int64_t start_position);
/* True if a frame of the recording begins at the position. False if the segment can't be read. */
bool asi_segment_has_frame_at(asi_segment_window *window, int64_t position);
/* Classifies the frame before `position`, where a fragment without BEGIN flag is. Walks the position's term. UNKNOWN: the
 * fragment continues a message, or the frame can't be classified. */
asi_chain_before asi_segment_before(asi_segment_window *window, int64_t position);
/* True if all header fields that follow from the position are correct and the length is possible. */
bool asi_segment_is_frame(const asi_segment_source *source, const asi_frame_header *frame, int64_t position);

#endif
