/* Fingerprints the frame that ends at a position, to detect later whether the bytes before the position were replaced. See
 * as_archive.h.
 *
 * The session id has its own bits, because it changes with an extension unless the publisher fixed it. A checksum may be stored
 * in its field, now or later, and does not identify the session. A truncated, purged or unwritten frame has no fingerprint. */
#include "base/sha256.h"
#include "store/checksum.h"
#include "store/folder.h"
#include "store/segment_layout.h"

#define FIRST_LOOK 4096
#define SESSION_BITS 16

static int64_t of_session(const asi_frame_header *frame, int64_t length)
{
    const int64_t covered = length - AS_FRAME_HEADER_LENGTH;
    const uint8_t *payload = (const uint8_t *)(frame + 1);
    const uint32_t field = (uint32_t)frame->session_id;
    if (0 == covered || asi_crc32(payload, covered) == field || asi_crc32c(payload, covered) == field)
    {
        return 0;
    }
    uint8_t digest[ASI_SHA256_LENGTH];
    asi_sha256_of(&frame->session_id, sizeof(frame->session_id), digest);
    const int64_t bits = (int64_t)digest[0] << 8 | digest[1];
    return 0 != bits ? bits : 1;
}

static int64_t of_frame(const asi_frame_header *frame, int64_t length)
{
    const uint8_t *bytes = (const uint8_t *)frame;
    const int64_t before = offsetof(asi_frame_header, session_id), after = before + (int64_t)sizeof(frame->session_id);
    asi_sha256 hash;
    uint8_t digest[ASI_SHA256_LENGTH];
    asi_sha256_init(&hash);
    asi_sha256_update(&hash, bytes, before);
    asi_sha256_update(&hash, bytes + after, length - after);
    asi_sha256_final(&hash, digest);
    const int64_t bits = (int64_t)digest[0] << 24 | (int64_t)digest[1] << 16 | (int64_t)digest[2] << 8 | digest[3];
    return (0 != bits ? bits : 1) << SESSION_BITS | of_session(frame, length);
}

/* Finds the frame that ends at `end`. Searches backwards, because frames hold their length and term offset. NULL: none. */
static const asi_frame_header *last_frame(asi_segment_window *window, int64_t term, int64_t end)
{
    for (int64_t length = FIRST_LOOK;; length *= 4)
    {
        const int64_t begin = end - length > term ? end - length : term;
        if (AS_OK != asi_segment_window_load(window, begin, end - begin, end))
        {
            return NULL;
        }
        for (int64_t at = end - AS_FRAME_ALIGNMENT; at >= begin; at -= AS_FRAME_ALIGNMENT)
        {
            const asi_frame_header *frame = (const void *)(window->buffer + (at - begin));
            const bool ends_here = frame->frame_length > 0 && frame->frame_length <= end - at &&
                asi_frame_occupancy(frame->frame_length) == end - at;
            if (ends_here && frame->term_offset == at - term)
            {
                return frame;
            }
        }
        if (begin == term)
        {
            return NULL;
        }
    }
}

static int64_t fingerprint(const as_folder *folder, const asi_folder_recording *recording, int64_t position)
{
    const asi_segment_source source = asi_folder_source(folder, &recording->record);
    if (position <= source.start_position || 0 != position % AS_FRAME_ALIGNMENT)
    {
        return 0;
    }
    asi_segment_window window;
    asi_segment_window_init(&window, &source);
    const asi_frame_header *frame = last_frame(&window, asi_term_base(position - 1, source.term_length), position);
    const int64_t found = NULL == frame ? 0 : of_frame(frame, asi_frame_occupancy(frame->frame_length));
    asi_segment_window_close(&window);
    return found;
}

as_result as_folder_fingerprints(
    as_folder *folder, const int64_t *recording_ids, const int64_t *positions, int64_t count, int64_t *fingerprints)
{
    as_result result = AS_OK;
    for (int64_t i = 0; AS_OK == result && i < count; i++)
    {
        const asi_folder_recording *recording;
        result = asi_folder_find(folder, recording_ids[i], &recording);
        if (AS_OK == result)
        {
            fingerprints[i] = fingerprint(folder, recording, positions[i]);
        }
    }
    return result;
}
