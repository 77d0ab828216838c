/* What recorded frames say about their neighbours: which fragments can follow which. Spec: 02 §10.4, 06 §7.3.
 *
 * A header is outside its frame's checksum, so a flag or a type that has changed shows in the neighbours alone. What leaves parts of
 * messages in a recording that nobody damaged:
 *   - lost packets of a stream that does not send again: receivers put padding in their place, in the midst of a term;
 *   - claims that were given up or unblocked: padding in the midst of a term, too;
 *   - a recording that began, or was extended, inside a message;
 *   - a publisher that died inside a message, and another session that extends the recording from there on.
 * What is left can't be: a message passes the end of its term, or goes on although none was begun. Publications fill each fragment but
 * the last of a message, so a message that breaks off with a short one is in doubt. So is one that breaks off where the next begins in
 * the same session: a recording with checksums doesn't tell sessions. Pure functions. */
#ifndef ASI_TERM_CHAIN_H
#define ASI_TERM_CHAIN_H

#include <string.h>

#include "wire/frame.h"

/* CRC of a frame's aligned payload, as recorded in the session id field; NULL = not checked. */
typedef uint32_t (*asi_frame_checksum)(const uint8_t *bytes, int64_t length);

/* No transport sends longer frames (MTU), so no longer one can carry a checksum. */
#define ASI_DATA_FRAME_MAX_LENGTH (64 * 1024)

typedef enum asi_chain_before
{
    ASI_BEFORE_UNKNOWN, /* where reading began, or a message that was begun before that */
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

/* Of a message that was begun and has no end; `is_short`: one of its fragments has less than the MTU. */
static inline asi_chain_verdict asi_chain_judge_cut(asi_chain_cut cut, bool is_short)
{
    switch (cut)
    {
        case ASI_CUT_BY_TERM_END:
            return ASI_CHAIN_WRONG;
        case ASI_CUT_BY_MESSAGE:
            return ASI_CHAIN_DOUBTFUL;
        case ASI_CUT_BY_PADDING:
            return is_short ? ASI_CHAIN_DOUBTFUL : ASI_CHAIN_RIGHT;
        case ASI_CUT_BY_OTHER_SESSION:
            break;
    }
    return ASI_CHAIN_RIGHT;
}

/* Of a fragment without a BEGIN flag that no message goes on with; `is_short`: it is not the last and has less than the MTU. */
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
    uint32_t bits; /* version, flags, type: read at once, as each frame is asked */
    memcpy(&bits, &frame->version, sizeof(bits));
    return 0 == (bits & 0xFFFE00FFu);
}

static inline bool asi_bytes_are_zero(const uint8_t *bytes, int64_t length)
{
    return length <= 0 || (0 == bytes[0] && 0 == memcmp(bytes, bytes + 1, (size_t)length - 1));
}

/* Where frames carry checksums padding keeps its session id (Spec: 06 §8): a checksum there is that of a data frame. The checksum of
 * nothing is 0, which a recording's session id may be too. */
static inline bool asi_padding_was_data(
    const asi_frame_header *frame, const uint8_t *bytes, int64_t length, asi_frame_checksum checksum, int32_t recording_session_id)
{
    return length < ASI_DATA_FRAME_MAX_LENGTH && (length > 0 || 0 != recording_session_id) &&
        checksum(bytes, length) == (uint32_t)frame->session_id;
}

#endif
