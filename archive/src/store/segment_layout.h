/* Maps positions of a recording to segment files. Spec: 06 §1, §7.1, 08 §17.
 *
 * Segments are counted from the term base of the recording's CURRENT start position, not from multiples of the segment length.
 * Detach and purge move the start by whole segments, so the boundaries stay. A file is named <recordingId>-<base>.rec, where base
 * is the position of its first byte. Pure functions; any thread. */
#ifndef ASI_STORE_SEGMENT_LAYOUT_H
#define ASI_STORE_SEGMENT_LAYOUT_H

#include "base/bits.h"
#include "base/result.h"

#define ASI_SEGMENT_MIN_LENGTH (64 * 1024)
#define ASI_SEGMENT_MAX_LENGTH (1024 * 1024 * 1024)
#define ASI_SEGMENT_SUFFIX ".rec"
#define ASI_SEGMENT_DELETED_SUFFIX ".del"
#define ASI_SEGMENT_NAME_CAPACITY 64

static inline int64_t asi_term_base(int64_t position, int32_t term_length) { return position & ~((int64_t)term_length - 1); }

/* Position of the first byte of the segment that holds `position` (>= start_position). */
static inline int64_t asi_segment_base(int64_t start_position, int64_t position, int32_t term_length, int32_t segment_length)
{
    const int64_t first = asi_term_base(start_position, term_length);
    return first + ((position - first) & ~((int64_t)segment_length - 1));
}

/* Segment length of a new recording: the configured length, but never less than a term. Spec: 06 §7.1. */
static inline int32_t asi_segment_length_of(int32_t configured_length, int32_t term_length)
{
    return configured_length > term_length ? configured_length : term_length;
}

/* Writes "<dir>/<id>-<base>.rec". AS_E_USAGE: it does not fit. */
as_result asi_segment_path(char *to, size_t capacity, const char *dir, int64_t recording_id, int64_t base) AS_MUST_USE;

typedef enum asi_segment_name
{
    ASI_SEGMENT_NAME_OTHER,    /* not a segment's name: ignore it */
    ASI_SEGMENT_NAME_LIVE,     /* <id>-<base>.rec */
    ASI_SEGMENT_NAME_DELETED,  /* <id>-<base>.rec.del or <id>-<base>.del, left by older archives */
    ASI_SEGMENT_NAME_BAD_BASE  /* <id>-<something>.rec with an impossible position, e.g. negative */
} asi_segment_name;

/* Parses a name. Sets the id for all results except OTHER, and the base for LIVE and DELETED. */
asi_segment_name asi_segment_name_parse(const char *name, int64_t *recording_id, int64_t *base);

/* The term id that a frame header at `position` must hold. */
static inline int32_t asi_segment_term_id(int64_t position, int32_t term_length, int32_t initial_term_id)
{
    return asi_wrap_add(initial_term_id, (int32_t)(position >> asi_log2(term_length)));
}

#endif
