/* Reads the frames of a recording from its segment files through a checked window. Used by the folder reader, by planning and by
 * recovery.
 *
 * A window holds a piece of one term in memory, read by pread. It is not mapped, because another process may truncate or purge
 * the file at any time: touching a mapping beyond the new end kills the process (the Spark worker) with SIGBUS, but pread returns
 * a short read. The window fits into the second-level cache, so copying from it costs little more than copying from the page
 * cache. It grows only for a larger message.
 * Thread rule: one thread for each object. */
#ifndef ASI_STORE_SEGMENT_READ_H
#define ASI_STORE_SEGMENT_READ_H

#include "store/catalog.h"
#include "term/frame_walk.h"

#define ASI_WINDOW_LENGTH (512 * 1024)

/* Properties of a recording that reading needs. The values have passed asi_recording_check_untrusted. */
typedef struct asi_segment_source
{
    const asi_file_ops *files; /* borrowed */
    const char *archive_dir;   /* borrowed */
    int64_t recording_id;
    int64_t start_position;
    int32_t term_length;
    int32_t segment_length;
    int32_t initial_term_id;
    int32_t stream_id;
    int32_t mtu_length;        /* no data frame is longer; 0: unknown */
} asi_segment_source;

typedef struct asi_segment_window
{
    asi_segment_source source;
    int fd;                  /* of the open segment, -1 if none */
    int64_t segment_base;    /* position of its first byte */
    uint8_t *buffer;         /* owned */
    int64_t capacity;
    int64_t position;        /* of buffer[0] */
    int64_t length;          /* valid bytes */
} asi_segment_window;

void asi_segment_window_init(asi_segment_window *window, const asi_segment_source *source);
void asi_segment_window_close(asi_segment_window *window);
/* Loads the bytes of [position, position + length), cut at the end of position's term and at `limit`. AS_E_DATA: the segment is
 * missing or shorter; the text names recording, file and position. */
as_result asi_segment_window_load(asi_segment_window *window, int64_t position, int64_t length, int64_t limit) AS_MUST_USE;
/* Reads bytes of one segment into the caller's memory. The window's contents do not change. Fails as asi_segment_window_load
 * does. */
as_result asi_segment_window_read(asi_segment_window *window, int64_t position, int64_t length, uint8_t *to) AS_MUST_USE;

static inline int64_t asi_segment_window_end(const asi_segment_window *window) { return window->position + window->length; }

/* Address that the first byte of the window's term would have: frames are addressed by term offset. Only the window's part of the
 * term may be accessed through it. The rest is not our memory, hence no pointer arithmetic. */
static inline const uint8_t *asi_segment_window_term(const asi_segment_window *window)
{
    const uintptr_t before = (uintptr_t)(window->position & ((int64_t)window->source.term_length - 1));
    return (const uint8_t *)((uintptr_t)window->buffer - before);
}

#define ASI_SEGMENT_TOO_LONG "broken frame: it is longer than the recording's mtuLength; restore the segment, or the catalog"
#define ASI_SEGMENT_TORN \
    "broken message: a fragment that belongs to no message, or a message that passes the end of its term; restore the segment"
#define ASI_SEGMENT_LOST_TYPE \
    "broken frame: padding whose session id is the checksum of its bytes, so it was a message; restore the segment"
/* Returns AS_E_DATA with a text that names recording, position and file, then `what`. */
as_result asi_segment_fail(const asi_segment_source *source, int64_t position, const char *what) AS_MUST_USE;

/* -- headers only --------------------------------------------------------------------------------------------------------- */

typedef enum asi_segment_step
{
    ASI_SEGMENT_FRAME,  /* a frame at frame_position, which ends at or before the limit */
    ASI_SEGMENT_LIMIT,  /* no more frames before the limit; a frame that passes it does not count */
    ASI_SEGMENT_GAP,    /* no frame at `position`, which is before the limit */
    ASI_SEGMENT_FAILED  /* an impossible frame, or no file: the result is in `failure` */
} asi_segment_step;

typedef struct asi_segment_walk
{
    asi_segment_window *window; /* borrowed */
    int64_t position;           /* of the next frame */
    int64_t limit;
    bool check_headers;         /* term id, term offset and stream id must fit the position, the length the MTU */
    asi_frame_walk frames;
    int64_t term_base;          /* position of the term that `frames` walks */
    as_result failure;
    int64_t frame_position;     /* after ASI_SEGMENT_FRAME; frames.frame and frames.frame_length describe the frame */
} asi_segment_walk;

asi_segment_walk asi_segment_walk_start(asi_segment_window *window, int64_t position, int64_t limit, bool check_headers);
/* The frame's header is in memory; its payload only as far as the window reaches. */
asi_segment_step asi_segment_walk_next(asi_segment_walk *walk);

#endif
