/* Rules for neighbouring recorded frames: which fragments can follow which. Spec: 02 §10.4, 06 §7.3.
 *
 * A frame's checksum does not cover its header, so only the neighbours show that a flag or a type has changed. An undamaged
 * recording can contain incomplete messages for these reasons:
 *   - lost packets of an unreliable stream: receivers insert padding for them in the middle of a term;
 *   - claims that were aborted or unblocked: also padding in the middle of a term;
 *   - a recording that began, or was extended, inside a message;
 *   - a publisher that died inside a message, when another session then extends the recording.
 * Everything else is impossible: a message that passes the end of its term, or a fragment that continues no message.
 * Publications fill each fragment of a message except the last, so a message that breaks off with a short fragment is
 * doubtful. So is a message that breaks off where the next one begins in the same session, because a recording with checksums
 * does not identify sessions. Pure functions. */
#ifndef ASI_TERM_CHAIN_H
#define ASI_TERM_CHAIN_H

#include <string.h>

#include "wire/frame.h"

/* CRC of a frame's aligned payload, as recorded in the session id field; NULL = not checked. */
typedef uint32_t (*asi_frame_checksum)(const uint8_t *bytes, int64_t length);

/* No transport sends longer frames (MTU), so no longer frame can carry a checksum. */
#define ASI_DATA_FRAME_MAX_LENGTH (64 * 1024)

typedef enum asi_chain_before
{
    ASI_BEFORE_UNKNOWN, /* reading began here, or inside a message that began earlier */
    ASI_BEFORE_MESSAGE, /* a message's last fragment */
    ASI_BEFORE_PADDING
} asi_chain_before;

typedef enum asi_chain_cut
{
    ASI_CUT_BY_PADDING,
    ASI_CUT_BY_OTHER_SESSION,
    ASI_CUT_BY_MESSAGE,
    ASI_CUT_BY_TERM_END
} asi_chain_cut;

typedef enum asi_chain_verdict
{
    ASI_CHAIN_RIGHT,
    ASI_CHAIN_DOUBTFUL,
    ASI_CHAIN_WRONG
} asi_chain_verdict;

/* Verdict on a message that has begun but has no end. `is_short`: one of its fragments is shorter than the MTU. */
static inline asi_chain_verdict asi_chain_judge_cut(asi_chain_cut cut, bool is_short)
{
    switch (cut)
    {
        case ASI_CUT_BY_TERM_END:
            return ASI_CHAIN_WRONG;
        case ASI_CUT_BY_MESSAGE:
            return ASI_CHAIN_DOUBTFUL;
        case ASI_CUT_BY_PADDING:
        case ASI_CUT_BY_OTHER_SESSION:
            break;
    }
    return is_short ? ASI_CHAIN_DOUBTFUL : ASI_CHAIN_RIGHT;
}

/* Verdict on a fragment without a BEGIN flag that continues no message. `is_short`: it is not the last and is shorter than
   the MTU. */
static inline asi_chain_verdict asi_chain_judge_orphan(asi_chain_before before, int64_t term_offset, bool is_short)
{
    return 0 == term_offset || ASI_BEFORE_MESSAGE == before ? ASI_CHAIN_WRONG : is_short ? ASI_CHAIN_DOUBTFUL : ASI_CHAIN_RIGHT;
}

static inline asi_chain_before asi_chain_after_orphan(asi_chain_before before, uint8_t flags)
{
    return 0 != (flags & ASI_FLAG_END) ? ASI_BEFORE_MESSAGE : before;
}

/* Version 0, and data or padding. */
static inline bool asi_frame_is_of_log(const asi_frame_header *frame)
{
    uint32_t bits; /* version, flags and type in one load, because this runs for each frame */
    memcpy(&bits, &frame->version, sizeof(bits));
    return 0 == (bits & 0xFFFE00FFu);
}

/* In recordings with checksums, padding keeps its session id (Spec: 06 §8). A checksum in that field therefore belongs to a
 * data frame. The checksum of no bytes is 0, which a recording's session id may also be. */
static inline bool asi_padding_was_data(
    const asi_frame_header *frame, const uint8_t *bytes, int64_t length, asi_frame_checksum checksum, int32_t recording_session_id)
{
    return length < ASI_DATA_FRAME_MAX_LENGTH && (length > 0 || 0 != recording_session_id) &&
        checksum(bytes, length) == (uint32_t)frame->session_id;
}

#endif
